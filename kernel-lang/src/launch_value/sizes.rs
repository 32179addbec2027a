//! Sizes: which integers a value may be, whatever the arguments are. They follow from the ops that compute it: a program id has 31 bits, the elements of an
//! `arange` are constants, a remainder is no larger than its dividend.
//!
//! The arithmetic is that of launch values ([`Known`]), with sets that contain the value of every launch.

use crate::dtype::Dtype;
use crate::ir::{Function, Op, SideTable, Value};
use crate::scalar::Scalar;

use super::Known;

/// The sizes of all values of a kernel.
pub(crate) struct Sizes {
    known: SideTable<Value, Option<Known>>,
    programs: i128,
}

/// The least and the greatest number that a value may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Size {
    pub(crate) low: i128,
    pub(crate) high: i128,
}

impl Size {
    pub(crate) fn is_natural(self) -> bool {
        self.low >= 0
    }

    /// The largest magnitude.
    pub(crate) fn magnitude(self) -> u128 {
        self.low.unsigned_abs().max(self.high.unsigned_abs())
    }
}

impl Sizes {
    /// The sizes in any launch.
    pub(crate) fn of(func: &Function) -> Sizes {
        Sizes::in_grids_below(func, 1 << 31)
    }

    /// The sizes in launches whose grids have fewer programs along each axis. Visits each op once, after those of its operands.
    pub(crate) fn in_grids_below(func: &Function, programs: i128) -> Sizes {
        let mut sizes = Sizes { known: SideTable::new(), programs };
        for inst in func.all_insts() {
            let data = func.inst(inst);
            if let Op::For { lower, upper, body, .. } = data.op
                && let (Some(lower), Some(upper)) = (sizes.size(func, lower), sizes.size(func, upper))
            {
                let index = func.region(body).params[0];
                let high = (upper.high - 1).max(lower.low);
                sizes.known[index] = Some(Known::between(lower.low, high, func.ty(index).dtype()));
            }
            if let [result] = data.results[..]
                && is_integer(func, result)
            {
                sizes.known[result] = sizes.computed(func, &data.op, func.ty(result).dtype());
            }
        }
        sizes
    }

    /// The size of an integer; `None` for a value of another type.
    pub(crate) fn size(&self, func: &Function, value: Value) -> Option<Size> {
        if !is_integer(func, value) {
            return None;
        }
        let any = || Known::any(func.ty(value).dtype());
        let (low, high) = self.known(func, value).range().or_else(|| any().range())?;
        Some(Size { low, high })
    }

    /// Is an integer never negative?
    pub(crate) fn is_natural(&self, func: &Function, value: Value) -> bool {
        self.size(func, value).is_some_and(Size::is_natural)
    }

    fn known(&self, func: &Function, value: Value) -> Known {
        self.known[value].unwrap_or_else(|| Known::any(func.ty(value).dtype()))
    }

    fn computed(&self, func: &Function, op: &Op, dtype: Dtype) -> Option<Known> {
        let at = |value: &Value| if is_integer(func, *value) { self.known(func, *value) } else { Known::Any };
        let from = |value: &Value| func.ty(*value).dtype();
        Some(match op {
            Op::Const { value } => Known::Exactly(Scalar::from_const(value, dtype)?),
            Op::ProgramId { .. } | Op::NumPrograms { .. } => Known::between(0, self.programs - 1, dtype),
            Op::Length { .. } => Known::between(0, i64::MAX.into(), dtype),
            Op::Arange { start, end } => Known::between(start.as_int()?, end.as_int()? - 1, dtype),
            Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } => at(x),
            Op::Unary { op, x } => at(x).unary(*op, dtype),
            Op::Binary { op, lhs, rhs } => at(lhs).binary(*op, at(rhs), dtype),
            Op::Select { cond, on_true, on_false } => at(cond).select(at(on_true), at(on_false), dtype),
            Op::Compare { op, lhs, rhs } => at(lhs).compare(*op, at(rhs)),
            Op::Cast { x } => at(x).cast(dtype, from(x)),
            Op::Bitcast { x } => at(x).bitcast(dtype),
            _ => return None,
        })
    }
}

/// Is the value an integer or a `bool`, or a tile of these?
fn is_integer(func: &Function, value: Value) -> bool {
    let ty = func.ty(value);
    ty.elem().dtype().is_some_and(|dtype| dtype.is_int() || dtype == Dtype::Bool)
}
