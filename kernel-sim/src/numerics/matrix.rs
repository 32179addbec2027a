//! The arithmetic of tensor cores: an element of `A * B + C` with the bits that a Hopper GPU computes.
//!
//! The ISA leaves the order and the precision of these sums open. The rules here come from experiments on an H200, with the method of Fasi,
//! Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7 (2021). Every recorded result of
//! these experiments is a test.
//!
//! | factors | instruction | sum |
//! |---|---|---|
//! | f16, bf16, tf32 | `mma`, `wgmma` | all products of one instruction and C in one fused sum, 25 bits below the highest exponent |
//! | e4m3, e5m2 | `wgmma` | as above with 13 bits; an f32 result keeps 13 bits of fraction |
//! | e4m3, e5m2 | `mma` | converted to f16; two chained sums without C; then C is added in the result's format |
//! | f64 | `mma` | fused multiply-adds, starting from C in ascending k |
//! | integers, bits | `mma`, `wgmma` | exact, then saturated or wrapped |
//!
//! A fused sum computes exact products; the exponent of a product is the sum of the exponents of its factors. If `e` is the highest exponent
//! of all nonzero terms, or -133 if that is higher, and the table gives `b` bits, the unit is `2^(e - b)`. Every term is truncated towards
//! zero to a multiple of the unit, and the truncated terms are added exactly. The sum is truncated to f32 or rounded to the nearest f16. A
//! zero result is always +0.

use crate::numerics::small_float::{Format, Rounding, Unpacked, e4m3_to_f16, e5m2_to_f16};
use crate::ptx::Type;

/// The arithmetic of a matrix instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// One fused sum of all products and C.
    Fused { a: Format, b: Format, result: Sum },
    /// 8-bit floats, converted to f16, in two sums.
    Emulated { a: Type, b: Type, result: Sum },
    /// A chain of fused multiply-adds in f64.
    Double,
    /// Integers.
    Integer { a: Integer, b: Integer, saturate: bool },
    /// Single bits: the population count of `a ^ b` or of `a & b`.
    Bits { xor: bool },
}

/// An integer element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Integer {
    bits: u32,
    signed: bool,
}

/// The precision and the rounding of a floating-point sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sum {
    /// The format of C and of the result.
    format: Format,
    rounding: Rounding,
    /// The number of bits kept below the highest exponent.
    kept: i32,
    /// The bits of the result that are cleared.
    cleared: u64,
    /// The NaN result of an invalid sum.
    nan: u64,
}

/// The rows of A and D, the columns of B and D, and the terms of each sum.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Kind {
    /// The arithmetic of `mma.sync` with elements of these types; `None` for an illegal combination. Single bits use [`Kind::Bits`].
    pub(crate) fn mma(a: Type, b: Type, result: Type, saturate: bool) -> Option<Kind> {
        let is_small = |ty| matches!(ty, Type::E4m3 | Type::E5m2);
        match (a, b) {
            (Type::F64, Type::F64) => (result == Type::F64 && !saturate).then_some(Kind::Double),
            _ if is_small(a) && is_small(b) => {
                (!saturate).then_some(()).and(Sum::of(result, WIDE)).map(|result| Kind::Emulated { a, b, result })
            }
            _ => Kind::in_both(a, b, result, saturate),
        }
    }

    /// The arithmetic of `wgmma.mma_async` with elements of these types; `None` for an illegal combination.
    pub(crate) fn wgmma(a: Type, b: Type, result: Type, saturate: bool) -> Option<Kind> {
        match (small_format(a), small_format(b)) {
            (Some(a), Some(b)) if !saturate => Sum::of(result, NARROW).map(|result| Kind::Fused { a, b, result }),
            _ => Kind::in_both(a, b, result, saturate),
        }
    }

    fn in_both(a: Type, b: Type, result: Type, saturate: bool) -> Option<Kind> {
        if let (Some(a), Some(b)) = (Integer::of(a), Integer::of(b)) {
            let same_width = a.bits == b.bits;
            return (same_width && result == Type::S32).then_some(Kind::Integer { a, b, saturate });
        }
        let format = match (a, result) {
            _ if a != b || saturate => None,
            (Type::F16, Type::F16 | Type::F32) => Some(Format::F16),
            (Type::Bf16, Type::F32) => Some(Format::BF16),
            (Type::Tf32, Type::F32) => Some(Format::TF32),
            _ => None,
        }?;
        Sum::of(result, WIDE).map(|result| Kind::Fused { a: format, b: format, result })
    }

    /// Computes `d = a * b + d`. A and D are row-major, B is column-major; each word has one element.
    pub(crate) fn multiply(self, shape: Shape, a: &[u64], b: &[u64], d: &mut [u64]) {
        match self {
            Kind::Fused { a: a_format, b: b_format, result } => {
                let a: Vec<Factor> = a.iter().map(|&bits| Factor::new(a_format, bits)).collect();
                let b: Vec<Factor> = b.iter().map(|&bits| Factor::new(b_format, bits)).collect();
                each(shape, &a, &b, d, |a, b, c| result.add(a.iter().zip(b), c));
            }
            Kind::Emulated { a: a_type, b: b_type, result } => {
                let a: Vec<Factor> = a.iter().map(|&bits| Factor::widened(a_type, bits)).collect();
                let b: Vec<Factor> = b.iter().map(|&bits| Factor::widened(b_type, bits)).collect();
                each(shape, &a, &b, d, |a, b, c| {
                    // The conversion first takes the low two of the four elements of a register.
                    let half = |low: bool| a.iter().zip(b).enumerate().filter(move |(k, _)| (k % 4 < 2) == low).map(|(_, pair)| pair);
                    result.plus(result.add(half(false), result.add(half(true), 0)), c)
                });
            }
            Kind::Double => each(shape, a, b, d, |a, b, c| a.iter().zip(b).fold(c, |acc, (&a, &b)| fused_f64(a, b, acc))),
            Kind::Integer { a: a_type, b: b_type, saturate } => each(shape, a, b, d, |a, b, c| {
                let products: i64 = a.iter().zip(b).map(|(&a, &b)| a_type.value(a) * b_type.value(b)).sum();
                let sum = products + i64::from(c as u32 as i32);
                let kept = if saturate { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
                u64::from(kept as u32)
            }),
            Kind::Bits { xor } => each(shape, a, b, d, |a, b, c| {
                let ones = a.iter().zip(b).map(|(&a, &b)| if xor { a ^ b } else { a & b } & 1).sum::<u64>();
                u64::from((ones as u32).wrapping_add(c as u32))
            }),
        }
    }
}

fn each<T>(shape: Shape, a: &[T], b: &[T], d: &mut [u64], element: impl Fn(&[T], &[T], u64) -> u64) {
    let Shape { m, n, k } = shape;
    for row in 0..m {
        for column in 0..n {
            let target = &mut d[row * n + column];
            *target = element(&a[row * k..][..k], &b[column * k..][..k], *target);
        }
    }
}

/// The number of bits kept below the highest exponent for factors of f16, bf16 and tf32.
const WIDE: i32 = 25;

/// The number of bits kept for 8-bit factors.
const NARROW: i32 = 13;

/// The minimum of the highest exponent.
const LOWEST_EXPONENT: i32 = -133;

/// The exponent of zero, lower than every other exponent.
const ZERO_EXPONENT: i32 = -100_000;

fn small_format(ty: Type) -> Option<Format> {
    match ty {
        Type::E4m3 => Some(Format::E4M3),
        Type::E5m2 => Some(Format::E5M2),
        _ => None,
    }
}

impl Integer {
    fn of(ty: Type) -> Option<Integer> {
        let signed = matches!(ty, Type::S8 | Type::S4);
        matches!(ty, Type::S8 | Type::U8 | Type::S4 | Type::U4).then_some(Integer { bits: ty.bits(), signed })
    }

    fn value(self, bits: u64) -> i64 {
        let above = 64 - self.bits;
        if self.signed { ((bits << above) as i64) >> above } else { ((bits << above) >> above) as i64 }
    }
}

/// A factor or addend in the tensor core. The sign of a zero is dropped.
#[derive(Clone, Copy)]
struct Factor {
    /// The significand with its sign; 1 or -1 for an infinity.
    significand: i64,
    /// The exponent of the hidden bit. A subnormal number has the exponent of the smallest normal numbers.
    exponent: i32,
    /// The number of bits of the significand below the hidden bit.
    fraction_bits: i32,
    class: Class,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Finite,
    Infinite,
    Nan,
}

impl Factor {
    fn new(format: Format, bits: u64) -> Factor {
        let fraction_bits = format.fraction_bits() as i32;
        let special = |class, significand| Factor { significand, exponent: ZERO_EXPONENT, fraction_bits, class };
        match format.unpack(bits) {
            Unpacked::Nan => special(Class::Nan, 0),
            Unpacked::Infinite { negative } => special(Class::Infinite, if negative { -1 } else { 1 }),
            Unpacked::Finite { significand: 0, .. } => special(Class::Finite, 0),
            Unpacked::Finite { negative, significand, exponent } => {
                let magnitude = significand as i64;
                let significand = if negative { -magnitude } else { magnitude };
                Factor { significand, exponent: exponent + fraction_bits, fraction_bits, class: Class::Finite }
            }
        }
    }

    /// Converts an 8-bit number to an f16 of the same value.
    fn widened(ty: Type, bits: u64) -> Factor {
        let half = if ty == Type::E4m3 { e4m3_to_f16(bits as u8) } else { e5m2_to_f16(bits as u8) };
        Factor::new(Format::F16, half.into())
    }

    fn is_zero(&self) -> bool {
        self.significand == 0 && self.class == Class::Finite
    }

    fn times(&self, other: &Factor) -> Factor {
        let class = match (self.class, other.class) {
            (Class::Finite, Class::Finite) => Class::Finite,
            (Class::Nan, _) | (_, Class::Nan) => Class::Nan,
            _ if self.is_zero() || other.is_zero() => Class::Nan,
            _ => Class::Infinite,
        };
        Factor {
            significand: self.significand * other.significand,
            exponent: self.exponent + other.exponent,
            fraction_bits: self.fraction_bits + other.fraction_bits,
            class,
        }
    }

    /// The number in units of `2^unit`, truncated.
    fn in_units(&self, unit: i32) -> i64 {
        let shift = self.exponent - self.fraction_bits - unit;
        if shift >= 0 {
            self.significand << shift
        } else {
            let magnitude = (self.significand.unsigned_abs() >> (-shift).min(63)) as i64;
            if self.significand < 0 { -magnitude } else { magnitude }
        }
    }
}

impl Sum {
    fn of(result: Type, kept: i32) -> Option<Sum> {
        match result {
            Type::F32 => {
                let cleared = if kept < 23 { (1 << (23 - kept)) - 1 } else { 0 };
                Some(Sum { format: Format::F32, rounding: Rounding::Zero, kept, cleared, nan: 0x7fff_ffff })
            }
            Type::F16 => Some(Sum { format: Format::F16, rounding: Rounding::NearestEven, kept, cleared: 0, nan: 0x7fff }),
            _ => None,
        }
    }

    /// The fused sum of all products and C.
    fn add<'a>(&self, pairs: impl Iterator<Item = (&'a Factor, &'a Factor)> + Clone, c: u64) -> u64 {
        let c = Factor::new(self.format, c);
        let mut highest = c.exponent.max(LOWEST_EXPONENT);
        let mut is_special = c.class != Class::Finite;
        for (a, b) in pairs.clone() {
            highest = highest.max(a.exponent + b.exponent);
            is_special |= a.class != Class::Finite || b.class != Class::Finite;
        }
        let products = pairs.map(|(a, b)| a.times(b));
        if is_special {
            return self.special(products.chain([c]));
        }
        let unit = highest - self.kept;
        let sum = products.map(|product| product.in_units(unit)).sum::<i64>() + c.in_units(unit);
        let bits = self.format.pack_or_infinity(sum < 0, sum.unsigned_abs().into(), unit, self.rounding) & !self.cleared;
        if bits == self.format.sign_bit() { 0 } else { bits }
    }

    /// The result of a sum with infinities or NaNs.
    fn special(&self, terms: impl Iterator<Item = Factor>) -> u64 {
        let (mut above, mut below) = (false, false);
        for term in terms {
            match term.class {
                Class::Finite => {}
                Class::Nan => return self.nan,
                Class::Infinite if term.significand > 0 => above = true,
                Class::Infinite => below = true,
            }
        }
        let sign = if below { self.format.sign_bit() } else { 0 };
        if above && below { self.nan } else { sign | self.format.infinity() }
    }

    /// The IEEE sum of two numbers, rounded to nearest.
    fn plus(&self, lhs: u64, rhs: u64) -> u64 {
        if self.format == Format::F32 {
            let sum = f32::from_bits(lhs as u32) + f32::from_bits(rhs as u32);
            if sum.is_nan() { self.nan } else { sum.to_bits().into() }
        } else {
            // An f32 has more than twice the precision of an f16, so double rounding is harmless.
            let sum = half::f16::from_bits(lhs as u16) + half::f16::from_bits(rhs as u16);
            if sum.is_nan() { self.nan } else { sum.to_bits().into() }
        }
    }
}

/// A fused multiply-add of f64. A NaN result is the NaN of `b`, else of `c`, else of `a`, as in hardware.
fn fused_f64(a: u64, b: u64, c: u64) -> u64 {
    const QUIET: u64 = 1 << 51;
    const INVALID: u64 = 0xfff8 << 48;
    if let Some(nan) = [b, c, a].into_iter().find(|&bits| f64::from_bits(bits).is_nan()) {
        return nan | QUIET;
    }
    let sum = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
    if sum.is_nan() { INVALID } else { sum.to_bits() }
}
