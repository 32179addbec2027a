//! Division expansion: divides integers by constants with a product and shifts, computes remainders from quotients, and multiplies floats instead of
//! dividing them by powers of two.
//!
//! ```text
//! ; before
//! ; then dce
//! kernel @k(%y: ptr_mut<i64>, %a: i64, %n: i64) {
//!     %0 = const {value = 8} : i64
//!     %1 = div %n, %0 : i64
//!     %2 = rem %a, %n : i64
//!     store %y, %1, %2
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %a: i64, %n: i64) {
//!     %0 = const {value = 63} : i64
//!     %1 = shr %n, %0 : i64
//!     %2 = bitcast %1 : u64
//!     %3 = const {value = 61} : u64
//!     %4 = shr %2, %3 : u64
//!     %5 = bitcast %4 : i64
//!     %6 = add %n, %5 : i64
//!     %7 = const {value = 3} : i64
//!     %8 = shr %6, %7 : i64
//!     %9 = div %a, %n : i64
//!     %10 = mul %9, %n : i64
//!     %11 = sub %a, %10 : i64
//!     store %y, %8, %11
//!     return
//! }
//! ```
//!
//! No GPU has an instruction that divides integers: a 64-bit quotient is a call of about a hundred instructions. If a kernel has both
//! `a / n` and `a % n`, as `cdiv` does, [`super::cse`] leaves one division. Division by constants follows Granlund and Montgomery,
//! "Division by invariant integers using multiplication" (1994), and uses their names: `n / d` of `N` bits, `l` the bits of `d`, `m` a
//! multiple of about `1 / d`.
//!
//! A float division that rounds correctly takes some ten instructions and a branch. If the divisor is a power of two, so is its reciprocal, and the
//! product rounds the same number as the quotient.

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, expand_each};
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Inst, Op, Region, Type, UnaryOp, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    expand_each(func, expand)
}

/// Appends the replacement of an op, if it has one.
fn expand(func: &mut Function, region: Region, inst: Inst) -> Option<Value> {
    let data = func.inst(inst);
    let Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs: n, rhs: d } = data.op else { return None };
    if !func.ty(n).dtype().is_int() {
        let reciprocal = func.splat(d).filter(|_| op == BinaryOp::Div).and_then(|d| exact_reciprocal(d, func.ty(n).dtype()))?;
        let b = &mut Builder::new(func, region, data.loc);
        let reciprocal = b.float_like(reciprocal, n);
        return Some(b.binary(BinaryOp::Mul, n, reciprocal));
    }
    let divisor = func.splat(d).and_then(ConstExpr::as_int);
    let small = small(func, n).filter(|_| divisor.is_none_or(|divisor| divisor.unsigned_abs() < SMALL));
    let b = &mut Builder::new(func, region, data.loc);
    if let Some(sign) = small {
        return Some(of_small(b, op, n, sign, d));
    }
    let quotient = match (op, divisor) {
        (_, Some(divisor)) => by_constant(b, n, divisor),
        (BinaryOp::Rem, None) => b.binary(BinaryOp::Div, n, d),
        _ => return None,
    };
    if op == BinaryOp::Div {
        return Some(quotient);
    }
    // As `n / 0` is 0, `n % 0` is n.
    let product = b.binary(BinaryOp::Mul, quotient, d);
    Some(b.binary(BinaryOp::Sub, n, product))
}

/// The magnitude of a small number is below this.
const SMALL: u128 = 1 << 31;
/// The most ops that are followed to show that a number is small.
const FARTHEST: usize = 8;

/// May a small number be negative?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Positive,
    Any,
}

/// The sign of a 64-bit scalar whose magnitude is known to be below 2^31: the number of a program, and quotients and remainders of it.
fn small(func: &Function, value: Value) -> Option<Sign> {
    let (mut at, mut sign) = (value, Sign::Positive);
    for _ in 0..FARTHEST {
        match *func.def_op(at)? {
            Op::ProgramId { .. } | Op::NumPrograms { .. } => return Some(sign),
            Op::Binary { op: BinaryOp::Rem, lhs, .. } => at = lhs,
            Op::Binary { op: BinaryOp::Div, lhs, rhs } => {
                let is_positive = func.splat(rhs).and_then(ConstExpr::as_int).is_some_and(|divisor| divisor >= 0);
                (at, sign) = (lhs, if is_positive { sign } else { Sign::Any });
            }
            _ => return None,
        }
    }
    None
}

/// The quotient or the remainder of a small number, in 32 bits.
///
/// A divisor of a larger magnitude leaves a small number as it is, as 2^31 does, and so does 0. So with `m = min(|d| - 1, 2^31 - 1) + 1`, where
/// `|d| - 1` is unsigned, `|n| / m` and `|n| % m` are the magnitudes of both results.
fn of_small(b: &mut Builder<'_>, op: BinaryOp, n: Value, sign: Sign, d: Value) -> Value {
    let zero = b.int_like(0, n);
    let magnitude = |b: &mut Builder<'_>, x: Value| {
        let negative = b.binary(BinaryOp::Sub, zero, x);
        b.binary(BinaryOp::Max, x, negative)
    };
    let dividend = if sign == Sign::Positive { n } else { magnitude(b, n) };
    let (one, most) = (b.int_like(1, n), b.constant(ConstExpr::Int(SMALL as i128 - 1), Type::scalar(Dtype::U64)));
    let less = magnitude(b, d);
    let less = b.binary(BinaryOp::Sub, less, one);
    let less = b.bitcast(less, Dtype::U64);
    let less = b.binary(BinaryOp::Min, less, most);
    let [dividend, less] = [dividend, less].map(|value| b.cast(value, Dtype::U32));
    let one = b.int_like(1, less);
    let divisor = b.binary(BinaryOp::Add, less, one);
    let mut result = b.binary(BinaryOp::Div, dividend, divisor);
    if op == BinaryOp::Rem {
        let product = b.binary(BinaryOp::Mul, result, divisor);
        result = b.binary(BinaryOp::Sub, dividend, product);
    }
    let result = b.bitcast(result, Dtype::I32);
    let result = b.cast(result, Dtype::I64);
    // A quotient is negative if one of both numbers is, and a remainder if the dividend is.
    let mut is_negative = (sign == Sign::Any).then(|| b.compare(CompareOp::Lt, n, zero));
    if op == BinaryOp::Div {
        let of_divisor = b.compare(CompareOp::Lt, d, zero);
        is_negative = Some(is_negative.map_or(of_divisor, |of_dividend| b.binary(BinaryOp::Xor, of_dividend, of_divisor)));
    }
    is_negative.map_or(result, |is_negative| {
        let negative = b.binary(BinaryOp::Sub, zero, result);
        b.select(is_negative, negative, result)
    })
}

/// The reciprocal of a power of two, if both are normal numbers of the type.
fn exact_reciprocal(d: &ConstExpr, dtype: Dtype) -> Option<f64> {
    let ConstExpr::Float(d) = *d else { return None };
    let most = match dtype {
        Dtype::F16 => 14,
        Dtype::Bf16 | Dtype::F32 => 126,
        Dtype::F64 => 1022,
        _ => return None,
    };
    let exponent = (d.to_bits() >> 52 & 0x7ff) as i64 - 1023;
    let is_power = d.to_bits() << 12 == 0;
    (is_power && exponent.abs() <= most).then(|| 1.0 / d)
}

/// `n / d`, rounded towards zero; 0 if `d` is 0.
fn by_constant(b: &mut Builder<'_>, n: Value, d: i128) -> Value {
    let dtype = b.func.ty(n).dtype();
    let positive = match d.unsigned_abs() {
        0 => return b.int_like(0, n),
        1 => n,
        d if dtype.bits() < 32 => {
            let wide = b.cast(n, if dtype.is_signed_int() { Dtype::I32 } else { Dtype::U32 });
            let quotient = by_constant(b, wide, d as i128);
            b.cast(quotient, dtype)
        }
        d if dtype.is_signed_int() => by_positive(b, n, d),
        d => by_unsigned(b, n, d),
    };
    if d < 0 { b.unary(UnaryOp::Neg, positive) } else { positive }
}

/// `ceil(log2(d))`
fn log2(d: u128) -> u32 {
    u128::BITS - (d - 1).leading_zeros()
}

/// `n / d` of signed integers, `2 <= d <= 2^(N-1)`.
fn by_positive(b: &mut Builder<'_>, n: Value, d: u128) -> Value {
    let dtype = b.func.ty(n).dtype();
    let (bits, l) = (dtype.bits(), log2(d));
    let sign = shifted(b, n, bits - 1);
    if d.is_power_of_two() {
        // A shift rounds down. For a negative n, d - 1 is added first, so that the quotient is rounded towards zero.
        let ones = b.bitcast(sign, if bits == 64 { Dtype::U64 } else { Dtype::U32 });
        let less = shifted(b, ones, bits - l);
        let less = b.bitcast(less, dtype);
        let sum = b.binary(BinaryOp::Add, n, less);
        return shifted(b, sum, l);
    }
    // m = 2^N + m', which does not fit a signed integer: n * m / 2^N = n + n * m' / 2^N.
    let m = (1u128 << (bits + l - 1)) / d + 1;
    let m = b.int_like(m as i128 - (1i128 << bits), n);
    let high = b.binary(BinaryOp::MulHigh, n, m);
    let sum = b.binary(BinaryOp::Add, n, high);
    let floor = shifted(b, sum, l - 1);
    b.binary(BinaryOp::Sub, floor, sign)
}

/// `n / d` of unsigned integers, `d >= 2`.
fn by_unsigned(b: &mut Builder<'_>, n: Value, d: u128) -> Value {
    let bits = b.func.ty(n).dtype().bits();
    if d.is_power_of_two() {
        return shifted(b, n, log2(d));
    }
    // The smallest shift for which m has N bits and is so close to 2^(N + shift) / d that the quotient is exact for every n.
    let short = (0..log2(d)).find_map(|shift| {
        let m = (1u128 << (bits + shift)) / d + 1;
        (m >> bits == 0 && m * d - (1u128 << (bits + shift)) <= 1 << shift).then_some((m, shift))
    });
    if let Some((m, shift)) = short {
        let m = b.int_like(m as i128, n);
        let high = b.binary(BinaryOp::MulHigh, n, m);
        return shifted(b, high, shift);
    }
    // m = 2^N + m': (n + high) / 2^l, where the sum may have one bit more than n.
    let l = log2(d);
    let m = (((1u128 << l) - d) << bits) / d + 1;
    let m = b.int_like(m as i128, n);
    let high = b.binary(BinaryOp::MulHigh, n, m);
    let rest = b.binary(BinaryOp::Sub, n, high);
    let half = shifted(b, rest, 1);
    let sum = b.binary(BinaryOp::Add, half, high);
    shifted(b, sum, l - 1)
}

/// `x >> count`
fn shifted(b: &mut Builder<'_>, x: Value, count: u32) -> Value {
    if count == 0 {
        return x;
    }
    let count = b.int_like(count.into(), x);
    b.binary(BinaryOp::Shr, x, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passes::canonicalize;
    use crate::scalar::{self, Scalar};

    /// The constant to which an op on constants folds after expansion.
    fn computed(op: BinaryOp, dtype: Dtype, n: i128, d: i128) -> ConstExpr {
        let text = format!(
            "kernel @k(%y: ptr_mut<{dtype}>) {{\n%0 = const {{value = {n}}} : {dtype}\n%1 = const {{value = {d}}} : {dtype}\n\
             %2 = {} %0, %1 : {dtype}\n%3 = const {{value = 0}} : i64\nstore %y, %3, %2\nreturn\n}}",
            op.name()
        );
        let mut func = crate::ir::parse(&text).expect("it is well formed");
        assert!(run(&mut func), "{text}");
        assert!(crate::ir::verify(&func, crate::ir::Stage::Tile).is_ok(), "{func}");
        canonicalize::run(&mut func);
        let stored = func.region(func.body).insts.iter().find_map(|inst| match func.inst(*inst).op {
            Op::Store { value, .. } => Some(value),
            _ => None,
        });
        func.splat(stored.expect("it stores")).unwrap_or_else(|| panic!("not folded: {func}")).clone()
    }

    #[test]
    fn every_quotient_and_remainder_is_what_a_division_gives() {
        let mut state = 7u64;
        let mut random = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            (state >> (state >> 59)) as i128
        };
        for dtype in [Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16, Dtype::I32, Dtype::U32, Dtype::I64, Dtype::U64] {
            let bits = dtype.bits();
            let (least, most) =
                if dtype.is_signed_int() { (-(1i128 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
            let fits = |number: &i128| (least..=most).contains(number);
            let powers = (1..bits).flat_map(|k| [(1i128 << k) - 1, 1 << k, (1 << k) + 1]);
            let mut divisors: Vec<i128> = [0, 1, 3, 5, 6, 7, 10, 11, 12, 25, 28, 60, 100, 125, 641, 1000, 12_672, most, least].to_vec();
            divisors.extend(powers.chain((0..10).map(|_| random() & most)));
            divisors.extend(divisors.clone().iter().map(|d| -d));
            for d in divisors.into_iter().filter(fits) {
                let near = Some(random() & most).into_iter().flat_map(|n| [n, n - n % d.max(1), n - n % d.max(1) - 1, !n]);
                for n in near.chain([0, 1, d, d - 1, d + 1, -d, most, most - 1, least, least + 1]).filter(fits) {
                    for op in [BinaryOp::Div, BinaryOp::Rem] {
                        let [x, y] = [n, d].map(|number| Scalar::from_const(&ConstExpr::Int(number), dtype).expect("it fits"));
                        let want = scalar::binary(op, x, y).expect("it is defined").to_const();
                        assert_eq!(computed(op, dtype, n, d), want, "{n} {} {d} of {dtype}", op.name());
                    }
                }
            }
        }
    }
}
