//! Helpers that the tests of the CPU executor share.

#![allow(dead_code, reason = "each test uses a part")]

pub(crate) mod matrix_kernels;
pub(crate) mod naive;
pub(crate) mod random_kernels;

use std::collections::{HashMap, HashSet};

use kernel_cpu::{Conflicts, Program, Scratch, Violation};
use kernel_lang::dtype::Dtype;
use kernel_lang::ir;
use naive::Touch;

/// The program of a specialised kernel's text.
pub(crate) fn compile(text: &str) -> Program {
    let func = ir::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    compile_function(&func)
}

/// The program of a specialised kernel.
pub(crate) fn compile_function(func: &ir::Function) -> Program {
    // As the compiler does before all; the naive executor knows the elements as they are.
    let mut padded = func.clone();
    kernel_lang::passes::pad_tiles::run(&mut padded);
    let verified = ir::verify(&padded, ir::Stage::Tile).unwrap_or_else(|violations| panic!("{violations:?}\n{padded}"));
    Program::compile(verified).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// Runs every program of a grid, one after the other. The tests keep what `args` point to alive.
pub(crate) fn run_grid(program: &Program, args: &[u64], grid: [u32; 3], checked: bool) -> Result<(), Violation> {
    let mut scratch = Scratch::new();
    for z in 0..grid[2] {
        for y in 0..grid[1] {
            for x in 0..grid[0] {
                // SAFETY: the addresses in `args` are those of live buffers of at least the given lengths; one thread runs.
                unsafe { program.run(args, grid, [x, y, z], &mut scratch, checked, &Conflicts::none())? };
            }
        }
    }
    Ok(())
}

/// Elements in memory, between guards that show a store outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Buffer {
    pub(crate) dtype: Dtype,
    pub(crate) len: usize,
    words: Vec<u64>,
}

const GUARD: usize = 8;

impl Buffer {
    /// Elements of those bits.
    pub(crate) fn new(dtype: Dtype, bits: &[u64]) -> Buffer {
        let words = vec![0xA5A5_A5A5_A5A5_A5A5; 2 * GUARD + (bits.len() * dtype.bytes()).div_ceil(8)];
        let mut buffer = Buffer { dtype, len: bits.len(), words };
        bits.iter().enumerate().for_each(|(index, bits)| buffer.set(index, *bits));
        buffer
    }

    /// That many elements that no kernel makes.
    pub(crate) fn poisoned(dtype: Dtype, len: usize) -> Buffer {
        Buffer::new(dtype, &vec![0xA5A5_A5A5_A5A5_A5A5; len])
    }

    /// The two argument words.
    pub(crate) fn args(&mut self) -> [u64; 2] {
        let at = self.words[GUARD..].as_mut_ptr();
        [at.expose_provenance() as u64, self.len as u64]
    }

    fn byte(&mut self, at: usize) -> &mut u8 {
        assert!(at < self.words.len() * 8);
        // SAFETY: within the words, which are plain bytes.
        unsafe { &mut *self.words.as_mut_ptr().cast::<u8>().add(at) }
    }

    pub(crate) fn set(&mut self, index: usize, bits: u64) {
        let width = self.dtype.bytes();
        for (byte, value) in bits.to_ne_bytes()[..width].iter().enumerate() {
            *self.byte(GUARD * 8 + index * width + byte) = *value;
        }
    }

    /// The bits of an element.
    pub(crate) fn get(&self, index: usize) -> u64 {
        assert!(index < self.len);
        let width = self.dtype.bytes();
        let mut bytes = [0; 8];
        for (byte, value) in bytes[..width].iter_mut().enumerate() {
            let at = GUARD * 8 + index * width + byte;
            *value = self.words[at / 8].to_ne_bytes()[at % 8];
        }
        u64::from_ne_bytes(bytes)
    }

    /// All elements.
    pub(crate) fn bits(&self) -> Vec<u64> {
        (0..self.len).map(|index| self.get(index)).collect()
    }

    /// Panics if a byte outside the elements has changed.
    pub(crate) fn check_guards(&self) {
        assert!(*self == Buffer::new(self.dtype, &self.bits()), "a store outside the tensor");
    }
}

/// A small generator (PCG-like), so that tests need no seed from outside.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The value of a float's bits, exactly.
pub(crate) fn float(dtype: Dtype, bits: u64) -> f64 {
    match dtype {
        Dtype::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Dtype::Bf16 => half::bf16::from_bits(bits as u16).to_f64(),
        Dtype::F32 => f32::from_bits(bits as u32).into(),
        Dtype::F64 => f64::from_bits(bits),
        Dtype::F8E4M3 | Dtype::F8E5M2 => float8(dtype, bits),
        other => panic!("{other} is no float"),
    }
}

/// The value of 8 bits, as the specification has it.
fn float8(dtype: Dtype, bits: u64) -> f64 {
    let (fraction_bits, bias, has_infinity) = if dtype == Dtype::F8E4M3 { (3, 7, false) } else { (2, 15, true) };
    let (exponent, fraction) =
        ((bits as i32 & 0x7f) >> fraction_bits, (bits & ((1 << fraction_bits) - 1)) as f64 / f64::from(1 << fraction_bits));
    let magnitude = match exponent {
        31 if has_infinity => {
            if fraction == 0.0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        }
        15 if !has_infinity && fraction == 0.875 => f64::NAN,
        0 => fraction * 2f64.powi(1 - bias),
        _ => (1.0 + fraction) * 2f64.powi(exponent - bias),
    };
    if bits & 0x80 != 0 { -magnitude } else { magnitude }
}

/// The nearest finite float of 8 bits, found among all of them.
fn nearest_float8(dtype: Dtype, value: f64) -> u64 {
    if value.is_nan() {
        return 0x7f;
    }
    let distance = |bits: &u64| (float8(dtype, *bits) - value.abs().min(1e9)).abs();
    let finite = (0..0x80).filter(|bits| float8(dtype, *bits).is_finite());
    let nearest = finite.min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1)))).unwrap();
    nearest | u64::from(value.is_sign_negative()) << 7
}

/// The bits of an `f64` that is rounded to `f32` first, for the halves.
pub(crate) fn float_bits(dtype: Dtype, value: f64) -> u64 {
    match dtype {
        Dtype::F16 => half::f16::from_f32_const(value as f32).to_bits().into(),
        Dtype::Bf16 => half::bf16::from_f32_const(value as f32).to_bits().into(),
        Dtype::F32 => (value as f32).to_bits().into(),
        Dtype::F64 => value.to_bits(),
        Dtype::F8E4M3 | Dtype::F8E5M2 => nearest_float8(dtype, value),
        other => panic!("{other} is no float"),
    }
}

/// The value of an integer's (or `bool`'s) bits.
pub(crate) fn int(dtype: Dtype, bits: u64) -> i128 {
    let unused = 128 - dtype.bits();
    if dtype.is_signed_int() { ((i128::from(bits)) << unused) >> unused } else { ((u128::from(bits) << unused) >> unused) as i128 }
}

/// The bits of an integer, wrapped to the type.
pub(crate) fn int_bits(dtype: Dtype, value: i128) -> u64 {
    value as u64 & (u64::MAX >> (64 - dtype.bits()))
}

/// Are they the same element, all NaNs being one?
pub(crate) fn same(dtype: Dtype, a: u64, b: u64) -> bool {
    a == b || dtype.is_float() && float(dtype, a).is_nan() && float(dtype, b).is_nan()
}

/// Interesting elements: zeros, ones, ends of the range, halves, infinities, NaN, and random ones.
pub(crate) fn samples(dtype: Dtype, random_ones: usize) -> Vec<u64> {
    let mut random = Random(dtype.code() * 1000 + 1);
    if dtype == Dtype::Bool {
        return vec![0, 1];
    }
    if let Some((low, high)) = dtype.int_range() {
        let bits = i128::from(dtype.bits());
        let mut values: Vec<i128> = vec![0, 1, 2, 3, 7, 10, -1, -2, -7, low, low + 1, high, high - 1, high / 2, bits - 1, bits, bits + 1];
        values.extend((0..random_ones).map(|_| i128::from(random.bits() as i64) >> random.below(64)));
        return values.into_iter().map(|value| int_bits(dtype, value)).collect();
    }
    let mut values: Vec<f64> = vec![0.0, 1.0, 0.5, 1.5, 2.5, 0.25, 0.1, 3.0, 7.75, 20.0, 88.7, 100.0, 708.0, 1000.0, 1e-4, 1e-8, 1e-30];
    values.extend([f64::INFINITY, f64::NAN, std::f64::consts::PI, std::f64::consts::FRAC_PI_2, 0.49999997, 8388607.5, 65504.0, 3.3e38]);
    values.extend((0..random_ones).map(|_| random.unit() * 40.0 - 20.0));
    let mut bits: Vec<u64> = values.iter().flat_map(|value| [float_bits(dtype, *value), float_bits(dtype, -*value)]).collect();
    // The smallest and largest subnormal and normal numbers, and any bits at all.
    let one = float_bits(dtype, f64::INFINITY) - 1;
    let normal = match dtype {
        Dtype::F16 => 1 << 10,
        Dtype::Bf16 => 1 << 7,
        Dtype::F32 => 1 << 23,
        Dtype::F8E4M3 => 1 << 3,
        Dtype::F8E5M2 => 1 << 2,
        _ => 1 << 52,
    };
    bits.extend([1, 2, normal - 1, normal, normal + 1, one]);
    bits.extend((0..random_ones).map(|_| random.bits() & (u64::MAX >> (64 - dtype.bits()))));
    bits
}

/// Runs a kernel with tensors (for its pointers, in order) and scalars by the executor, checked and not, and by the naive one. Panics where
/// they differ, where a store went outside, or where two programs were at one element by accesses that the executor takes for free of conflicts; returns
/// the tensors and the first access outside.
pub(crate) fn check(
    func: &ir::Function,
    mut tensors: Vec<Option<Buffer>>,
    scalars: &[u64],
    grid: [u32; 3],
) -> (Vec<Option<Buffer>>, Option<Violation>) {
    let program = compile_function(func);
    let is_unpadded = ir::verify(func, ir::Stage::Tile).is_ok();
    let mut expected = tensors.clone();
    let args = words(&mut tensors, scalars);
    assert_eq!(args.len(), program.words());
    let mut scratch = Scratch::new();
    let mut first = None;
    let conflicts = program.conflicts(&args, grid);
    let mut met = Meetings::default();
    for index in (0..grid[2]).flat_map(|z| (0..grid[1]).flat_map(move |y| (0..grid[0]).map(move |x| [x, y, z]))) {
        // Checked, on tensors of its own: the first access outside is the same.
        let mut own = tensors.clone();
        let own_args = words(&mut own, scalars);
        // SAFETY: the tensors live, and one thread runs, here and below.
        let violation = unsafe { program.run(&own_args, grid, index, &mut scratch, true, &Conflicts::none()) }.err();
        let mut rest = scalars.iter();
        let naive_args = expected
            .iter_mut()
            .map(|tensor| tensor.as_mut().map_or_else(|| naive::Arg::Scalar(*rest.next().unwrap()), naive::Arg::Tensor))
            .collect();
        let (outside, touched) = naive::run_tracing(func, naive_args, grid, index);
        met.add(index, touched, &conflicts, func);
        assert_eq!(
            violation.as_ref().map(|violation| (violation.op, violation.index)),
            outside.map(|(op, index, _)| (op, index)),
            "\n{func}"
        );
        // Lanes are counted among the padding.
        if is_unpadded {
            assert_eq!(violation.as_ref().map(|violation| violation.lane), outside.map(|(.., lane)| lane), "\n{func}");
        }
        first = first.or(violation);
        // SAFETY: as above.
        unsafe { program.run(&args, grid, index, &mut scratch, false, &conflicts) }.unwrap();
    }
    for (expected, got) in expected.iter().zip(&tensors).filter_map(|(expected, got)| expected.as_ref().zip(got.as_ref())) {
        got.check_guards();
        for at in 0..got.len {
            let (wanted, found) = (expected.get(at), got.get(at));
            assert!(same(expected.dtype, wanted, found), "{}[{at}] is {found:#x}, not {wanted:#x}\n{func}", expected.dtype);
        }
    }
    (tensors, first)
}

/// Which programs were where: each element with the accesses made to it, by program.
#[derive(Default)]
struct Meetings(HashMap<(usize, i64), HashSet<Visit>>);

/// A program, and what it did to an element.
type Visit = ([u32; 3], Touch);

impl Meetings {
    /// Adds what a program accessed. Panics if it met another one at an element, of which one stored there, and one of both accesses is plain.
    fn add(&mut self, program: [u32; 3], touched: Vec<Touch>, conflicts: &Conflicts, func: &ir::Function) {
        let is_plain = |touch: &Touch| matches!(touch.op, "load" | "store") && !conflicts.contains(touch.access);
        for touch in touched {
            let known = self.0.entry(touch.element).or_default();
            for (other_program, other) in known.iter().filter(|(other, _)| *other != program) {
                let is_race = [&touch, other].iter().any(|touch| touch.op != "load") && (is_plain(&touch) || is_plain(other));
                assert!(!is_race, "program {program:?} has {touch:?}, program {other_program:?} has {other:?}\n{func}");
            }
            known.insert((program, touch));
        }
    }
}

fn words(tensors: &mut [Option<Buffer>], scalars: &[u64]) -> Vec<u64> {
    let mut scalars = scalars.iter();
    let mut words = Vec::new();
    for tensor in tensors {
        match tensor {
            Some(tensor) => words.extend(tensor.args()),
            None => words.push(*scalars.next().expect("a value for each scalar")),
        }
    }
    words
}

/// As [`check`], of a text whose pointers come first; returns the tensors' bits.
pub(crate) fn check_text(text: &str, tensors: Vec<Buffer>, scalars: &[u64], grid: [u32; 3]) -> (Vec<Vec<u64>>, Option<Violation>) {
    let func = ir::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut arguments: Vec<Option<Buffer>> = tensors.into_iter().map(Some).collect();
    arguments.resize(func.params.len(), None);
    let (tensors, violation) = check(&func, arguments, scalars, grid);
    (tensors.into_iter().flatten().map(|tensor| tensor.bits()).collect(), violation)
}
