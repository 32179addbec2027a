//! Scales of tiles: is a divisor computed from the largest magnitude of its dividends?
//!
//! ```text
//! %m = reduce (abs %x) (%a: f32, %b: f32) { %c = max %a, %b; yield %c }
//! %s = div (max %m, 1e-8), 127.0
//! %q = div %x, (broadcast %s)                no |%x| exceeds 127 * %s
//! ```
//!
//! Quantisation divides by such a scale. The quotient cannot overflow, so the division needs no overflow test.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Function, Op, Region, UnaryOp, Value};

/// The most ops that are visited between a divisor and the reduction.
const MOST_STEPS: u32 = 32;
/// The logarithm of the largest ratio of a dividend to its divisor.
pub const MOST_BITS: i32 = 100;

/// Is no magnitude of `x` larger than `s * 2^MOST_BITS`, if `s` is a number and neither infinite nor negative?
pub fn are_scaled(func: &Function, x: Value, s: Value) -> bool {
    func.ty(x).dtype() == Dtype::F32 && is_scale(func, unconverted(func, x), s, None, 0, &mut { MOST_STEPS })
}

/// Is `s` at least `2^(bits - MOST_BITS)` times the largest magnitude of the elements of `x` beside it? `axis` is an axis along which `s` repeats.
fn is_scale(func: &Function, x: Value, s: Value, axis: Option<u32>, bits: i32, steps: &mut u32) -> bool {
    if *steps == 0 || bits > MOST_BITS {
        return false;
    }
    *steps -= 1;
    let mut next = |s: Value, axis: Option<u32>, bits: i32| is_scale(func, x, s, axis, bits, steps);
    // The power of two above a factor, or above its reciprocal.
    let log = |factor: Value| {
        let factor = func.splat(factor)?.as_number().filter(|factor| *factor > 0.0 && factor.is_finite())?;
        Some(factor.log2().abs().ceil() as i32 + 1)
    };
    match func.def_op(s) {
        Some(Op::Convert { x } | Op::Broadcast { x }) => next(*x, axis, bits),
        Some(Op::ExpandDims { x, axis: at }) if axis.is_none() => next(*x, Some(*at), bits),
        Some(Op::Binary { op: BinaryOp::Max, lhs, rhs }) => next(*lhs, axis, bits) || next(*rhs, axis, bits),
        Some(Op::Binary { op: BinaryOp::Div, lhs, rhs }) => log(*rhs).is_some_and(|log| next(*lhs, axis, bits + log)),
        Some(Op::Binary { op: BinaryOp::Mul, lhs, rhs }) => {
            [(*lhs, *rhs), (*rhs, *lhs)].into_iter().any(|(part, factor)| log(factor).is_some_and(|log| next(part, axis, bits + log)))
        }
        Some(Op::Reduce { inputs, axis: reduced, combine, .. }) => {
            let [input] = inputs[..] else { return false };
            let is_beside = match func.ty(input).extents().len() {
                1 => axis.is_none(),
                _ => axis == Some(*reduced),
            };
            is_beside && is_maximum(func, *combine) && is_magnitude(func, input, x)
        }
        _ => false,
    }
}

fn is_magnitude(func: &Function, magnitude: Value, x: Value) -> bool {
    matches!(func.def_op(unconverted(func, magnitude)), Some(Op::Unary { op: UnaryOp::Abs, x: of }) if unconverted(func, *of) == x)
}

/// Does a region combine two values to the larger one?
fn is_maximum(func: &Function, combine: Region) -> bool {
    let params = &func.region(combine).params;
    let of_params = |lhs: Value, rhs: Value| [lhs, rhs] == params[..] || [rhs, lhs] == params[..];
    matches!(func.yielded(combine), [value] if matches!(func.def_op(*value), Some(Op::Binary { op: BinaryOp::Max, lhs, rhs }) if of_params(*lhs, *rhs)))
}

/// The value in its first layout.
fn unconverted(func: &Function, mut value: Value) -> Value {
    while let Some(Op::Convert { x }) = func.def_op(value) {
        value = *x;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;

    /// Is the dividend of the kernel's division scaled by its divisor? The kernel divides a tile of 4 rows and 4 columns by `%s`, which `ops` compute.
    fn is_scaled(ops: &str) -> bool {
        let text = format!(
            "kernel @k(%x: tile<f32, [4, 4]>, %other: tile<f32, [4, 4]>, %y: ptr_mut<f32>, %at: tile<i64, [4, 4]>) {{
                %k = const {{value = 127.0}} : tile<f32, [4]>
                %least = const {{value = 1e-8}} : tile<f32, [4]>
                %huge = const {{value = 1e38}} : tile<f32, [4]>
                %negative = const {{value = -1.0}} : tile<f32, [4]>
                %size = abs %x : tile<f32, [4, 4]>
                {ops}
                %q = div %x, %s : tile<f32, [4, 4]>
                store %y, %at, %q
                return
            }}"
        );
        let func = parse(&text).expect("it is well formed");
        let (x, s) = func
            .all_insts()
            .into_iter()
            .filter_map(|inst| if let Op::Binary { op: BinaryOp::Div, lhs, rhs } = func.inst(inst).op { Some((lhs, rhs)) } else { None })
            .next_back()
            .expect("it divides");
        are_scaled(&func, x, s)
    }

    fn reduced(tile: &str, axis: u32, op: &str) -> String {
        format!("%m = reduce {tile} {{axis = {axis}}} (%a: f32, %b: f32) {{ %c = {op} %a, %b : f32 yield %c }} : tile<f32, [4]>")
    }

    const BESIDE: &str = "%d = expand_dims %scale {axis = 1} : tile<f32, [4, 1]> %s = broadcast %d : tile<f32, [4, 4]>";

    #[test]
    fn a_scale_comes_from_the_largest_magnitude_of_its_row() {
        let rows = reduced("%size", 1, "max");
        for scale in ["div %m, %k", "mul %m, %k", "max %m, %least", "max %least, %m"] {
            assert!(is_scaled(&format!("{rows} %scale = {scale} : tile<f32, [4]> {BESIDE}")), "{scale}");
        }
    }

    /// Each maximum has twice the paths of the one before it.
    #[test]
    fn a_search_ends_after_a_few_ops() {
        let maxima: String = (1..60).map(|at| format!("%m{at} = max %m{0}, %m{0} : tile<f32, [4]> ", at - 1)).collect();
        let paths = format!("%m0 = min %k, %least : tile<f32, [4]> {maxima}");
        assert!(!is_scaled(&format!("{paths} %scale = max %m59, %m59 : tile<f32, [4]> {BESIDE}")));
    }

    #[test]
    fn nothing_else_is_such_a_scale() {
        let rows = reduced("%size", 1, "max");
        for scale in ["min %m, %least", "div %m, %huge", "mul %m, %negative", "div %k, %m", "add %m, %negative"] {
            assert!(!is_scaled(&format!("{rows} %scale = {scale} : tile<f32, [4]> {BESIDE}")), "{scale}");
        }
        let of_other = reduced("%size2", 1, "max");
        let reductions = [
            ("another tile", format!("%size2 = abs %other : tile<f32, [4, 4]> {of_other}")),
            ("signed values", reduced("%x", 1, "max")),
            ("the columns", reduced("%size", 0, "max")),
            ("the smallest", reduced("%size", 1, "min")),
        ];
        for (of, reduction) in reductions {
            assert!(!is_scaled(&format!("{reduction} %scale = div %m, %k : tile<f32, [4]> {BESIDE}")), "{of}");
        }
        let columns = "%d = expand_dims %m {axis = 0} : tile<f32, [1, 4]> %s = broadcast %d : tile<f32, [4, 4]>";
        assert!(!is_scaled(&format!("{rows} {columns}")), "rows beside columns");
    }
}
