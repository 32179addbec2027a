//! Sets of values. A launch has many programs, and each of them computes a scalar from its own program ids. A set contains the results of all these
//! programs: integers are a range with common low bits, floats are a range.

use std::ops::Range;

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, CompareOp, ConstExpr, UnaryOp};
use crate::scalar::{self, Scalar};

/// A set of values that contains the value of each program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// One value.
    Exactly(Scalar),
    /// Integers, or booleans as 0 and 1.
    Integers(Integers),
    /// The floats from `low` to `high`, which are finite.
    Floats { low: Scalar, high: Scalar },
    /// Any value.
    Any,
}

/// The integers from `low` to `high` whose lowest `known` bits are those of `bits`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Integers {
    low: i128,
    high: i128,
    bits: u64,
    known: u32,
}

impl Integers {
    fn exactly(value: i128) -> Integers {
        Integers { low: value, high: value, bits: value as u64, known: 64 }
    }

    fn between(low: i128, high: i128) -> Integers {
        if low == high { Integers::exactly(low) } else { Integers { low, high, bits: 0, known: 0 } }
    }

    /// The same range with the lowest `known` bits of `bits`.
    fn with_bits(self, bits: u64, known: u32) -> Integers {
        if self.low == self.high { self } else { Integers { bits: bits & ones(known), known: known.min(64), ..self } }
    }

    fn value(self) -> Option<i128> {
        (self.low == self.high).then_some(self.low)
    }

    fn is_natural(self) -> bool {
        self.low >= 0
    }

    /// The number of low bits that are known to be 0.
    fn zeros(self) -> u32 {
        self.bits.trailing_zeros().min(self.known)
    }

    /// All integers of either.
    fn or(self, other: Integers) -> Integers {
        let known = (self.bits ^ other.bits).trailing_zeros().min(self.known).min(other.known);
        Integers::between(self.low.min(other.low), self.high.max(other.high)).with_bits(self.bits, known)
    }
}

/// The lowest `count` bits.
fn ones(count: u32) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

/// The least and the greatest value of an integer type, or of `bool` as 0 and 1.
fn limits(dtype: Dtype) -> Option<(i128, i128)> {
    let bits = dtype.bits();
    match dtype {
        Dtype::Bool => Some((0, 1)),
        _ if dtype.is_signed_int() => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
        _ if dtype.is_int() => Some((0, (1 << bits) - 1)),
        _ => None,
    }
}

impl Known {
    /// The program ids of a range of programs along an axis, which is not empty.
    pub(super) fn ids(programs: Range<u32>) -> Known {
        Known::of_integers(Integers::between(programs.start.into(), i128::from(programs.end) - 1), Dtype::I64)
    }

    /// The integers of a type from `low` to `high`.
    pub(crate) fn between(low: i128, high: i128, dtype: Dtype) -> Known {
        Known::of_integers(Integers::between(low, high), dtype)
    }

    /// The least and the greatest integer of the set.
    pub(crate) fn range(self) -> Option<(i128, i128)> {
        self.integers().map(|integers| (integers.low, integers.high))
    }

    /// Has a condition this value in every program?
    pub(super) fn is(&self, holds: bool) -> bool {
        matches!(self, Known::Exactly(value) if value.dtype() == Dtype::Bool && value.bits() == u64::from(holds))
    }

    /// Is a value possible?
    #[cfg(test)]
    pub(super) fn contains(&self, value: Scalar) -> bool {
        match self {
            Known::Exactly(known) => *known == value,
            Known::Integers(known) => {
                let Some(value) = Known::Exactly(value).integers().and_then(Integers::value) else { return false };
                known.low <= value && value <= known.high && (value as u64 ^ known.bits) & ones(known.known) == 0
            }
            Known::Floats { low, high } => finite(value).is_some_and(|value| finite(*low) <= Some(value) && Some(value) <= finite(*high)),
            Known::Any => true,
        }
    }

    /// The value, if it is the same in all programs.
    pub(super) fn value(&self) -> Option<Scalar> {
        match self {
            Known::Exactly(value) => Some(*value),
            _ => None,
        }
    }

    /// A result of integer arithmetic without bounds: out of the type's range it wraps, which keeps its low bits.
    fn of_integers(integers: Integers, dtype: Dtype) -> Known {
        let Some((low, high)) = limits(dtype) else { return Known::Any };
        let fits = low <= integers.low && integers.high <= high;
        match integers.value().filter(|_| fits) {
            Some(value) => Known::Exactly(element(value, dtype)),
            None if fits => Known::Integers(integers),
            None => {
                let (bits, known) = (integers.bits, integers.known.min(dtype.bits()));
                Known::Integers(Integers::between(low, high).with_bits(bits, known))
            }
        }
    }

    fn integers(self) -> Option<Integers> {
        match self {
            Known::Exactly(value) => match value.to_const() {
                ConstExpr::Int(value) => Some(Integers::exactly(value)),
                ConstExpr::Bool(value) => Some(Integers::exactly(value.into())),
                _ => None,
            },
            Known::Integers(integers) => Some(integers),
            Known::Floats { .. } | Known::Any => None,
        }
    }

    /// The ends of a range of finite floats.
    fn ends(self) -> Option<[Scalar; 2]> {
        match self {
            Known::Exactly(value) => finite(value).map(|_| [value; 2]),
            Known::Floats { low, high } => Some([low, high]),
            Known::Integers(_) | Known::Any => None,
        }
    }

    /// The range of the values that an op computes at the ends of its operands' ranges. The op is monotone in each operand.
    fn of_corners(values: impl Iterator<Item = Option<Scalar>>) -> Known {
        let mut ends: Option<[Scalar; 2]> = None;
        for value in values {
            let Some(number) = value.and_then(finite) else { return Known::Any };
            let Some(value) = value else { return Known::Any };
            let [low, high] = ends.unwrap_or([value; 2]);
            let is_below = finite(low).is_some_and(|low| number < low);
            let is_above = finite(high).is_some_and(|high| number > high);
            ends = Some([if is_below { value } else { low }, if is_above { value } else { high }]);
        }
        match ends {
            // Zeros of both signs are one number, but two values.
            Some([low, high]) if low == high && finite(low) != Some(0.0) => Known::Exactly(low),
            Some([low, high]) => Known::Floats { low, high },
            None => Known::Any,
        }
    }

    /// `op(self)`, of a type.
    pub(crate) fn unary(self, op: UnaryOp, dtype: Dtype) -> Known {
        if let Known::Exactly(x) = self {
            return scalar::unary(op, x).map_or(Known::Any, Known::Exactly);
        }
        if let Some(ends) = self.ends() {
            return match op {
                UnaryOp::Neg | UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Rint | UnaryOp::Trunc => {
                    Known::of_corners(ends.into_iter().map(|x| scalar::unary(op, x)))
                }
                _ => Known::Any,
            };
        }
        let Some(x) = self.integers() else { return Known::Any };
        match op {
            UnaryOp::Neg => Known::of_integers(difference(Integers::exactly(0), x), dtype),
            UnaryOp::Not if dtype == Dtype::Bool => Known::of_integers(difference(Integers::exactly(1), x), dtype),
            UnaryOp::Not if dtype.is_signed_int() => Known::of_integers(difference(Integers::exactly(-1), x), dtype),
            UnaryOp::Abs if x.is_natural() => self,
            _ => Known::any(dtype),
        }
    }

    /// `op(self, other)`, both of a type.
    pub(crate) fn binary(self, op: BinaryOp, other: Known, dtype: Dtype) -> Known {
        if let (Known::Exactly(lhs), Known::Exactly(rhs)) = (self, other) {
            return scalar::binary(op, lhs, rhs).map_or(Known::Any, Known::Exactly);
        }
        if dtype.is_float() {
            return self.binary_of_floats(op, other);
        }
        let (Some(lhs), Some(rhs)) = (self.integers(), other.integers()) else { return Known::Any };
        match integer_binary(op, lhs, rhs, dtype) {
            Some(result) => Known::of_integers(result, dtype),
            None => Known::any(dtype),
        }
    }

    fn binary_of_floats(self, op: BinaryOp, other: Known) -> Known {
        let (Some(lhs), Some(rhs)) = (self.ends(), other.ends()) else { return Known::Any };
        let is_monotone = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max => true,
            BinaryOp::Div => rhs.iter().all(|end| finite(*end) > Some(0.0)) || rhs.iter().all(|end| finite(*end) < Some(0.0)),
            _ => false,
        };
        if !is_monotone {
            return Known::Any;
        }
        Known::of_corners(lhs.into_iter().flat_map(|lhs| rhs.map(|rhs| scalar::binary(op, lhs, rhs))))
    }

    /// `self * b + c`, rounded once.
    pub(super) fn fma(self, b: Known, c: Known) -> Known {
        if let (Known::Exactly(a), Known::Exactly(b), Known::Exactly(c)) = (self, b, c) {
            return scalar::fma(a, b, c).map_or(Known::Any, Known::Exactly);
        }
        let (Some(a), Some(b), Some(c)) = (self.ends(), b.ends(), c.ends()) else { return Known::Any };
        let corners = (0..8).map(|corner| scalar::fma(a[corner & 1], b[corner >> 1 & 1], c[corner >> 2]));
        Known::of_corners(corners)
    }

    /// `op(self, other)` as `bool`.
    pub(crate) fn compare(self, op: CompareOp, other: Known) -> Known {
        if let (Known::Exactly(lhs), Known::Exactly(rhs)) = (self, other) {
            return scalar::compare(op, lhs, rhs).map_or(Known::Any, Known::Exactly);
        }
        let order = match (self.integers(), other.integers()) {
            (Some(lhs), Some(rhs)) => Order::of_integers(lhs, rhs),
            _ => match (self.ends(), other.ends()) {
                (Some(lhs), Some(rhs)) => Order::of_floats(lhs, rhs),
                _ => return Known::any(Dtype::Bool),
            },
        };
        match order.holds(op) {
            Some(holds) => Known::Exactly(Scalar::from_bits(Dtype::Bool, holds.into())),
            None => Known::any(Dtype::Bool),
        }
    }

    /// `on_true` if `self`, else `on_false`; both of a type.
    pub(crate) fn select(self, on_true: Known, on_false: Known, dtype: Dtype) -> Known {
        if let Known::Exactly(cond) = self {
            return if cond.bits() == 1 { on_true } else { on_false };
        }
        if let (Some(one), Some(other)) = (on_true.integers(), on_false.integers()) {
            return Known::of_integers(one.or(other), dtype);
        }
        match (on_true.ends(), on_false.ends()) {
            (Some(one), Some(other)) => Known::of_corners(one.into_iter().chain(other).map(Some)),
            _ => Known::Any,
        }
    }

    /// `self as to`.
    pub(crate) fn cast(self, to: Dtype, from: Dtype) -> Known {
        if let Known::Exactly(x) = self {
            return Known::Exactly(scalar::cast(x, to));
        }
        if let Some(x) = self.integers() {
            return match limits(to) {
                // A conversion to `bool` asks whether the integer is 0.
                Some(_) if to == Dtype::Bool && from != Dtype::Bool => self.compare(CompareOp::Ne, Known::Exactly(element(0, from))),
                Some(_) => Known::of_integers(x, to),
                None => Known::of_corners([x.low, x.high].into_iter().map(|end| Some(scalar::cast(element(end, from), to)))),
            };
        }
        let Some(ends) = self.ends() else { return Known::any(to) };
        let [low, high] = ends.map(|end| scalar::cast(end, to));
        if to.is_float() {
            return Known::of_corners([Some(low), Some(high)].into_iter());
        }
        match (Known::Exactly(low).integers(), Known::Exactly(high).integers()) {
            (Some(low), Some(high)) if to != Dtype::Bool => Known::of_integers(Integers::between(low.low, high.high), to),
            _ => Known::any(to),
        }
    }

    /// The bits of `self` as another type of the same width.
    pub(crate) fn bitcast(self, to: Dtype) -> Known {
        match self {
            Known::Exactly(x) => scalar::bitcast(x, to).map_or(Known::Any, Known::Exactly),
            Known::Integers(x) if to.is_int() => Known::of_integers(x, to),
            _ => Known::any(to),
        }
    }

    /// Any value of a type.
    pub(crate) fn any(dtype: Dtype) -> Known {
        limits(dtype).map_or(Known::Any, |(low, high)| Known::Integers(Integers::between(low, high)))
    }
}

/// The element of an integer type, or of `bool`, with that value.
fn element(value: i128, dtype: Dtype) -> Scalar {
    Scalar::from_bits(dtype, value as u64)
}

/// The value of a float that is finite.
fn finite(value: Scalar) -> Option<f64> {
    match value.to_const() {
        ConstExpr::Float(value) if value.is_finite() => Some(value),
        _ => None,
    }
}

/// `lhs - rhs` without bounds.
fn difference(lhs: Integers, rhs: Integers) -> Integers {
    let bits = lhs.bits.wrapping_sub(rhs.bits);
    Integers::between(lhs.low - rhs.high, lhs.high - rhs.low).with_bits(bits, lhs.known.min(rhs.known))
}

/// The product without bounds; `None` if it does not fit in 128 bits.
fn product(lhs: Integers, rhs: Integers) -> Option<Integers> {
    let (mut low, mut high) = (i128::MAX, i128::MIN);
    for (lhs, rhs) in [(lhs.low, rhs.low), (lhs.low, rhs.high), (lhs.high, rhs.low), (lhs.high, rhs.high)] {
        let corner = lhs.checked_mul(rhs)?;
        (low, high) = (low.min(corner), high.max(corner));
    }
    // With x = a + 2^k u and y = b + 2^m v, the product is ab + 2^k ub + 2^m va + 2^(k + m) uv.
    let known = (lhs.known + rhs.zeros()).min(rhs.known + lhs.zeros()).min(lhs.known + rhs.known);
    Some(Integers::between(low, high).with_bits(lhs.bits.wrapping_mul(rhs.bits), known.min(64)))
}

/// The result of an integer op, before it wraps to the type; `None` if nothing is known of it.
fn integer_binary(op: BinaryOp, lhs: Integers, rhs: Integers, dtype: Dtype) -> Option<Integers> {
    let known = lhs.known.min(rhs.known);
    let naturals = lhs.is_natural() && rhs.is_natural();
    match op {
        BinaryOp::Add => {
            let bits = lhs.bits.wrapping_add(rhs.bits);
            Some(Integers::between(lhs.low + rhs.low, lhs.high + rhs.high).with_bits(bits, known))
        }
        BinaryOp::Sub => Some(difference(lhs, rhs)),
        BinaryOp::Mul => product(lhs, rhs),
        BinaryOp::And => {
            // A mask of low bits that are all known leaves one value.
            for (mask, x) in [(lhs, rhs), (rhs, lhs)] {
                if let Some(mask) = mask.value().filter(|mask| *mask >= 0)
                    && i128::from(ones(x.known)) >= mask
                {
                    return Some(Integers::exactly(i128::from(x.bits) & mask));
                }
            }
            // A mask of all but low bits rounds down.
            for (mask, x) in [(lhs, rhs), (rhs, lhs)] {
                if let Some(mask) = mask.value().filter(|mask| *mask < 0 && (-mask & (-mask - 1)) == 0) {
                    let known = if x.known >= mask.trailing_zeros() { x.known } else { mask.trailing_zeros() };
                    return Some(Integers::between(x.low & mask, x.high & mask).with_bits(x.bits & mask as u64, known));
                }
            }
            let most = if naturals { Some(lhs.high.min(rhs.high)) } else { [lhs, rhs].iter().find(|x| x.is_natural()).map(|x| x.high) };
            Some(Integers::between(0, most?).with_bits(lhs.bits & rhs.bits, known))
        }
        BinaryOp::Or | BinaryOp::Xor => {
            let bits = if op == BinaryOp::Or { lhs.bits | rhs.bits } else { lhs.bits ^ rhs.bits };
            let range = if naturals {
                let low = if op == BinaryOp::Or { lhs.low.max(rhs.low) } else { 0 };
                Integers::between(low, (1 << (128 - (lhs.high | rhs.high).leading_zeros())) - 1)
            } else {
                let (low, high) = limits(dtype)?;
                Integers::between(low, high)
            };
            Some(range.with_bits(bits, known))
        }
        BinaryOp::Shl => {
            let by = rhs.value().filter(|by| (0..i128::from(dtype.bits())).contains(by))?;
            product(lhs, Integers::exactly(1 << by))
        }
        BinaryOp::Shr => {
            let by = rhs.value().filter(|by| (0..i128::from(dtype.bits())).contains(by))?;
            Some(Integers::between(lhs.low >> by, lhs.high >> by).with_bits(lhs.bits >> by, lhs.known.saturating_sub(by as u32)))
        }
        BinaryOp::Div if rhs.low > 0 => {
            // Truncation is monotone, and a larger divisor moves the quotient towards 0.
            let quotient = |x: i128, by: [i128; 2]| if x < 0 { x / by[0] } else { x / by[1] };
            Some(Integers::between(quotient(lhs.low, [rhs.low, rhs.high]), quotient(lhs.high, [rhs.high, rhs.low])))
        }
        // A quotient by 0 is 0.
        BinaryOp::Div => {
            let most = lhs.low.abs().max(lhs.high.abs());
            Some(Integers::between(if naturals { 0 } else { -most }, most))
        }
        BinaryOp::Rem if rhs.low > 0 && lhs.is_natural() => {
            if lhs.high < rhs.low {
                return Some(lhs);
            }
            match rhs.value() {
                Some(by) if by & (by - 1) == 0 && i128::from(ones(lhs.known)) >= by - 1 => {
                    Some(Integers::exactly(i128::from(lhs.bits) & (by - 1)))
                }
                Some(by) if lhs.low / by == lhs.high / by => Some(Integers::between(lhs.low % by, lhs.high % by)),
                _ => Some(Integers::between(0, lhs.high.min(rhs.high - 1))),
            }
        }
        // It has the sign of the dividend, and no larger magnitude.
        BinaryOp::Rem => Some(Integers::between(lhs.low.min(0), lhs.high.max(0))),
        BinaryOp::Min | BinaryOp::Max => {
            let least = op == BinaryOp::Min;
            if lhs.high <= rhs.low || rhs.high <= lhs.low {
                return Some(if (lhs.high <= rhs.low) == least { lhs } else { rhs });
            }
            let either = lhs.or(rhs);
            let (low, high) =
                if least { (lhs.low.min(rhs.low), lhs.high.min(rhs.high)) } else { (lhs.low.max(rhs.low), lhs.high.max(rhs.high)) };
            Some(Integers::between(low, high).with_bits(either.bits, either.known))
        }
        BinaryOp::MulHigh => {
            let (whole, width) = (product(lhs, rhs)?, dtype.bits());
            Some(Integers::between(whole.low >> width, whole.high >> width))
        }
        _ => None,
    }
}

/// What is known of the order of two numbers.
struct Order {
    may_be_less: bool,
    may_be_equal: bool,
    may_be_greater: bool,
}

impl Order {
    fn of_integers(lhs: Integers, rhs: Integers) -> Order {
        let bits_differ = (lhs.bits ^ rhs.bits) & ones(lhs.known.min(rhs.known)) != 0;
        Order {
            may_be_less: lhs.low < rhs.high,
            may_be_equal: lhs.low <= rhs.high && rhs.low <= lhs.high && !bits_differ,
            may_be_greater: lhs.high > rhs.low,
        }
    }

    fn of_floats(lhs: [Scalar; 2], rhs: [Scalar; 2]) -> Order {
        let ([low, high], [rhs_low, rhs_high]) = (lhs.map(finite), rhs.map(finite));
        Order { may_be_less: low < rhs_high, may_be_equal: low <= rhs_high && rhs_low <= high, may_be_greater: high > rhs_low }
    }

    /// Does a comparison hold? `None` if it may or may not.
    fn holds(&self, op: CompareOp) -> Option<bool> {
        let [less, equal, greater] = match op {
            CompareOp::Eq => [false, true, false],
            CompareOp::Ne => [true, false, true],
            CompareOp::Lt => [true, false, false],
            CompareOp::Le => [true, true, false],
            CompareOp::Gt => [false, false, true],
            CompareOp::Ge => [false, true, true],
        };
        let cases = [(self.may_be_less, less), (self.may_be_equal, equal), (self.may_be_greater, greater)];
        let may_hold = cases.iter().any(|(may, holds)| *may && *holds);
        let may_fail = cases.iter().any(|(may, holds)| *may && !*holds);
        match (may_hold, may_fail) {
            (true, false) => Some(true),
            (false, true) => Some(false),
            _ => None,
        }
    }
}
