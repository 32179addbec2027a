//! The evaluation of random tests for all programs of a launch, against their evaluation program by program.

use std::fmt::Write as _;

use super::{HEADER, LaunchValues, known::Known};
use crate::dtype::Dtype;
use crate::ir::{BinaryOp, CompareOp, UnaryOp};
use crate::random::Random;
use crate::scalar::{self, Scalar};

/// The launch values of a text in the form that a PTX has: a region, and its results with their types.
fn values_of(body: &str, results: &str, types: &str) -> LaunchValues {
    let params = "%x: ptr<f32>, %m: i64, %n: i64, %s: i32, %f: f32";
    let names: Vec<String> = (0..types.split(',').count()).map(|result| format!("%{}", 900 + result)).collect();
    let names = names.join(", ");
    let mut ptx = format!(".version 8.0\n{HEADER}\n// kernel @launch_values({params}) {{\n//     {names} = launch_value () {{\n");
    body.lines().for_each(|line| _ = writeln!(ptx, "//         {}", line.trim()));
    let _ = write!(ptx, "//         yield {results}\n//     }} : {types}\n//     return\n// }}\n\n.visible .entry k()\n");
    LaunchValues::of_ptx(&ptx).unwrap().unwrap()
}

/// The words of an address, a length, and the scalars.
fn words(x: u64, length: u64, [m, n]: [i64; 2], s: i32, f: f32) -> Vec<u64> {
    vec![x, length, m as u64, n as u64, u64::from(s as u32), f.to_bits().into()]
}

#[test]
fn a_condition_holds_below_the_bounds_of_its_axes() {
    let values = values_of(
        "%0 = program_id : i64
        %1 = const {value = 128} : i64
        %2 = mul %0, %1 : i64
        %3 = add %2, %1 : i64
        %4 = length %x : i64
        %5 = le %3, %4 : bool
        %6 = program_id {axis = 1} : i64
        %7 = mul %6, %m : i64
        %8 = add %7, %3 : i64
        %9 = le %8, %4 : bool
        %10 = const {value = 7} : i64
        %11 = and %m, %10 : i64
        %12 = const {value = 0} : i64
        %13 = eq %11, %12 : bool",
        "%5, %9, %13",
        "bool, bool, bool",
    );
    assert_eq!(values.parameter_count(), 6);
    let parameters = |length: u64, m: i64, grid: [u32; 3]| values.parameters(&words(0, length, [m, 0], 0, 0.0), grid);
    assert_eq!(parameters(1024, 8, [8, 1, 1]), [8, 1, 8, 1, 1, 1]);
    // The last tile is ragged, so both conditions are false there.
    assert_eq!(parameters(1000, 12, [8, 1, 1]), [7, 1, 7, 1, 1, 0]);
    // More than the last one.
    assert_eq!(parameters(800, 8, [8, 1, 1]), [0, 0, 0, 0, 0, 1]);
    // Every tile.
    assert_eq!(parameters(100, 8, [8, 1, 1]), [0, 1, 0, 0, 1, 1]);
    // The last programs of the second axis, then some of them, then of both.
    assert_eq!(parameters(4 * 1024, 1024, [8, 5, 1]), [8, 1, 8, 4, 1, 1]);
    assert_eq!(parameters(4 * 1024 - 1, 1024, [8, 4, 1]), [8, 1, 7, 4, 0, 1]);
    assert_eq!(parameters(3 * 1024 + 7 * 128, 1024, [8, 4, 1])[2..5], [7, 4, 0]);
    assert_eq!(parameters(2 * 1024 + 7 * 128, 1024, [8, 4, 1])[2..5], [7, 3, 0]);
}

#[test]
fn programs_share_the_low_bits_of_addresses() {
    let values = values_of(
        "%0 = program_id : i64
        %1 = mul %0, %m : i64
        %2 = const {value = 4} : i64
        %3 = mul %1, %2 : i64
        %4 = address %x : i64
        %5 = add %4, %3 : i64
        %6 = const {value = 15} : i64
        %7 = and %5, %6 : i64
        %8 = const {value = 0} : i64
        %9 = eq %7, %8 : bool",
        "%9",
        "bool",
    );
    assert_eq!(values.asked(), [15, 0, 15, 0, 0, 0], "an address counts by its low bits");
    let parameters = |x: u64, m: i64| values.parameters(&words(x, 0, [m, 0], 0, 0.0), [1000, 1, 1]);
    assert_eq!(parameters(1 << 40, 4), [1000, 1]);
    assert_eq!(parameters(1 << 40, -8), [1000, 1]);
    assert_eq!(parameters((1 << 40) + 8, 4), [0, 1], "no program is aligned");
    assert_eq!(parameters(1 << 40, 5), [0, 0], "some programs are");
    // One program is at the same address.
    assert_eq!(values.parameters(&words(16, 0, [5, 0], 0, 0.0), [1, 1, 1]), [1, 1]);
}

#[test]
fn the_number_of_programs_is_that_of_the_launch() {
    let values = values_of(
        "%0 = program_id : i64
        %1 = num_programs : i64
        %2 = const {value = 1} : i64
        %3 = sub %1, %2 : i64
        %4 = lt %0, %3 : bool",
        "%4, %3",
        "bool, i64",
    );
    assert_eq!(values.parameters(&words(0, 0, [0, 0], 0, 0.0), [7, 1, 1]), [6, 1, 6]);
    assert_eq!(values.parameters(&words(0, 0, [0, 0], 0, 0.0), [1, 5, 1]), [0, 1, 0]);
}

#[test]
fn scalars_are_passed_as_they_are() {
    let values = values_of(
        "%0 = cast %n : f32
        %1 = mul %0, %f : f32
        %2 = length %x : i64
        %3 = rem %2, %n : i64
        %4 = add %m, %n : i64
        %5 = const {value = 8} : i64
        %6 = and %4, %5 : i64
        %7 = cast %s : u32
        %8 = mul_high %7, %7 : u32
        %9 = ne %3, %6 : bool",
        "%1, %3, %6, %8, %9",
        "f32, i64, i64, u32, bool",
    );
    let float = |value: f32| u64::from(value.to_bits());
    assert_eq!(values.parameters(&words(0, 100, [5, 3], -1, 0.1), [1, 1, 1]), [float(3.0 * 0.1), 1, 8, 0xffff_fffe, 1]);
    assert_eq!(values.parameters(&words(0, 100, [0, 0], 2, 0.1), [1, 1, 1]), [float(0.0), 100, 0, 0, 1]);
    assert_eq!(values.asked()[2], 15, "a sum carries from the bits below");
    assert_eq!(values.parameter_types().collect::<Vec<_>>(), [Dtype::F32, Dtype::I64, Dtype::I64, Dtype::U32, Dtype::U32]);
}

#[test]
fn a_text_without_launch_values_has_none_and_a_broken_one_is_an_error() {
    assert!(LaunchValues::of_ptx(".version 8.0\n").unwrap().is_none());
    let kernel = |params: &str, body: &str, ty: &str| {
        format!(
            "{HEADER}\n// kernel @k({params}) {{\n//     %1 = launch_value () {{\n//         {body}\n//         yield %0\n//     }} : {ty}\n//     return\n// }}\n"
        )
    };
    assert!(LaunchValues::of_ptx(&kernel("%x: f32", "%0 = sqrt %x : f32", "f32")).is_ok());
    for text in [
        format!("{HEADER}\n// kernel @k() {{\n//     return\n"),
        format!("{HEADER}\n// kernel @k() {{\n//     return\n// }}\n"),
        format!("{HEADER}\n// kernel @k() {{\n//     broken\n// }}\n"),
        format!("{HEADER}\nkernel @k() {{\n"),
        kernel("%x: ptr<i64>, %y: i64", "%0 = load %x, %y : i64", "i64"),
        kernel("%x: f32", "%0 = exp %x : f32", "f32"),
        kernel("%x: f32", "%0 = program_id : i64", "i64"),
    ] {
        assert!(LaunchValues::of_ptx(&text).is_err(), "{text}");
    }
}

const INTEGERS: [BinaryOp; 13] = [
    BinaryOp::Add,
    BinaryOp::Sub,
    BinaryOp::Mul,
    BinaryOp::Div,
    BinaryOp::Rem,
    BinaryOp::And,
    BinaryOp::Or,
    BinaryOp::Xor,
    BinaryOp::Shl,
    BinaryOp::Shr,
    BinaryOp::Min,
    BinaryOp::Max,
    BinaryOp::MulHigh,
];
const FLOATS: [BinaryOp; 7] = [BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Rem, BinaryOp::Min, BinaryOp::Max];
const COMPARISONS: [CompareOp; 6] = [CompareOp::Eq, CompareOp::Ne, CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];
const INTEGER_TYPES: [Dtype; 8] = [Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16, Dtype::I32, Dtype::U32, Dtype::I64, Dtype::U64];

/// What is known of a value, and the value in each program.
struct Value {
    dtype: Dtype,
    known: Known,
    values: Vec<Scalar>,
}

/// Chains of random ops on program ids, constants and arguments of all types. Every value in every program is one that is said to be possible, and
/// what is said to be one value is one.
#[test]
fn what_is_known_of_all_programs_holds_in_each() {
    let mut random = Random { state: 5 };
    let mut decided = 0;
    for _ in 0..20_000 {
        let programs = [1, 2, 5, 16][random.below(4)];
        let id = |program: u32| Scalar::from_bits(Dtype::I64, program.into());
        let mut known: Vec<Value> =
            vec![Value { dtype: Dtype::I64, known: Known::ids(0..programs), values: (0..programs).map(id).collect() }];
        for _ in 0..10 {
            let next = step(&mut random, &known, programs as usize);
            for value in &next.values {
                assert!(next.known.contains(*value), "{value:?} is not in {:?}", next.known);
            }
            decided += usize::from(next.dtype == Dtype::Bool && next.known.is(true) && programs > 1);
            known.push(next);
        }
    }
    assert!(decided > 2000, "{decided} comparisons hold in all programs");
}

/// Two small ranges of integers around 0, each combined by every op: the result contains what the op gives for each pair.
#[test]
fn ops_of_small_ranges_contain_all_their_results() {
    let number = |value: i64| Scalar::from_bits(Dtype::I64, value as u64);
    let range = |low: i64, count: u32| Known::ids(0..count).binary(BinaryOp::Add, Known::Exactly(number(low)), Dtype::I64);
    let mut finite = 0;
    for op in INTEGERS {
        for (low, count) in (-7..4).flat_map(|low| (1..9).map(move |count| (low, count))) {
            for (other_low, other_count) in (-3..4).flat_map(|low| (1..6).map(move |count| (low, count))) {
                let result = range(low, count).binary(op, range(other_low, other_count), Dtype::I64);
                finite += usize::from(!matches!(result, Known::Any));
                for (x, y) in
                    (low..low + i64::from(count)).flat_map(|x| (other_low..other_low + i64::from(other_count)).map(move |y| (x, y)))
                {
                    let value = scalar::binary(op, number(x), number(y)).unwrap();
                    assert!(result.contains(value), "{op:?}: {x}, {y} gives {value:?}, which is not in {result:?}");
                }
            }
        }
    }
    assert!(finite > 20_000, "{finite} results are known");
}

fn step(random: &mut Random, known: &[Value], programs: usize) -> Value {
    let of = |random: &mut Random, dtype: Dtype| -> usize {
        let fitting: Vec<usize> = (0..known.len()).filter(|index| known[*index].dtype == dtype).collect();
        fitting[random.below(fitting.len())]
    };
    let x = random.below(known.len());
    let dtype = known[x].dtype;
    let (y, z) = (of(random, dtype), of(random, dtype));
    let each = |dtype: Dtype, known_of: Known, value: &dyn Fn(usize) -> Scalar| Value {
        dtype,
        known: known_of,
        values: (0..programs).map(value).collect(),
    };
    let at = |index: usize, program: usize| known[index].values[program];
    let (a, b, c) = (known[x].known, known[y].known, known[z].known);
    match random.below(9) {
        0 | 1 => {
            let dtype = if random.below(4) == 0 { random.pick(&[Dtype::F32, Dtype::F64, Dtype::F16]) } else { random.pick(&INTEGER_TYPES) };
            let bits =
                [random.below(40) as u64, (random.below(9) as u64).wrapping_neg(), 1 << random.below(63), u64::MAX, 7][random.below(5)];
            let value =
                if dtype.is_float() { scalar::cast(Scalar::from_bits(Dtype::I64, bits), dtype) } else { Scalar::from_bits(dtype, bits) };
            each(dtype, Known::Exactly(value), &|_| value)
        }
        2 => {
            let to = if random.below(5) == 0 { random.pick(&[Dtype::F32, Dtype::F64, Dtype::F16]) } else { random.pick(&INTEGER_TYPES) };
            each(to, a.cast(to, dtype), &|program| scalar::cast(at(x, program), to))
        }
        3 if dtype.is_int() => {
            let to = INTEGER_TYPES.into_iter().find(|to| to.bits() == dtype.bits() && *to != dtype).unwrap_or(dtype);
            each(to, a.bitcast(to), &|program| scalar::bitcast(at(x, program), to).unwrap())
        }
        4 => {
            let op = random.pick(&COMPARISONS);
            each(Dtype::Bool, a.compare(op, b), &|program| scalar::compare(op, at(x, program), at(y, program)).unwrap())
        }
        5 => {
            let Some(cond) = (0..known.len()).rev().find(|index| known[*index].dtype == Dtype::Bool) else {
                return each(dtype, a, &|program| at(x, program));
            };
            let selected = known[cond].known.select(a, b, dtype);
            each(dtype, selected, &|program| scalar::select(at(cond, program), at(x, program), at(y, program)).unwrap())
        }
        6 => {
            let ops = match dtype {
                Dtype::Bool => &[UnaryOp::Not][..],
                _ if dtype.is_float() => &[UnaryOp::Neg, UnaryOp::Abs, UnaryOp::Sqrt, UnaryOp::Floor, UnaryOp::Ceil, UnaryOp::Rint][..],
                _ => &[UnaryOp::Neg, UnaryOp::Not, UnaryOp::Abs, UnaryOp::Clz, UnaryOp::Popc, UnaryOp::Brev][..],
            };
            let op = random.pick(ops);
            each(dtype, a.unary(op, dtype), &|program| scalar::unary(op, at(x, program)).unwrap())
        }
        7 if dtype.is_float() => each(dtype, a.fma(b, c), &|program| scalar::fma(at(x, program), at(y, program), at(z, program)).unwrap()),
        _ => {
            let op = match dtype {
                Dtype::Bool => random.pick(&[BinaryOp::And, BinaryOp::Or, BinaryOp::Xor]),
                _ if dtype.is_float() => random.pick(&FLOATS),
                _ => random.pick(&INTEGERS),
            };
            each(dtype, a.binary(op, b, dtype), &|program| scalar::binary(op, at(x, program), at(y, program)).unwrap())
        }
    }
}
