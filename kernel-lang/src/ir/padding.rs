//! Extents that are no powers of two.
//!
//! A tile of 96 elements is kept as one of 128, of which the last 32 do not exist: nothing loads or stores them, and nothing that is
//! combined sees them. `passes::pad_tiles` makes it so; behind that pass every extent is a power of two. This file says what the ops in
//! front of it may do.

use crate::ir::constexpr::ConstExpr;
use crate::ir::function::Function;
use crate::ir::ops::Op;
use crate::ir::types::Type;

/// The extent that a tile is kept with: the next power of two.
pub fn padded(extent: usize) -> usize {
    extent.max(1).next_power_of_two()
}

/// The extents, where all of them are known.
fn known(ty: &Type) -> Option<Vec<usize>> {
    ty.shape().iter().map(|dim| dim.as_int().and_then(|int| usize::try_from(int).ok())).collect()
}

/// Do elements in row-major order keep their places among the padding when a tile of the one shape becomes one of the other?
///
/// Axes that together make as many elements on both sides are taken together. Among them only the first may have padding, which then lies
/// behind all the elements:
///
/// ```text
/// [96] to [3, 32]     128 places to 4 * 32, the first 96 are elements in both: yes
/// [6, 16] to [3, 32]  8 * 16 to 4 * 32: yes
/// [96] to [32, 3]     128 to 32 * 4, with a gap in each row: no
/// [5, 96] to [480]    8 * 128 to 512: no
/// ```
pub fn keeps_order(from: &[usize], to: &[usize]) -> bool {
    let without_ones = |shape: &[usize]| shape.iter().copied().filter(|extent| *extent != 1).collect::<Vec<_>>();
    let (from, to) = (without_ones(from), without_ones(to));
    let (mut at, mut into) = (0, 0);
    while at < from.len() && into < to.len() {
        let (mut left, mut right, mut fits) = (from[at], to[into], true);
        (at, into) = (at + 1, into + 1);
        while left != right {
            let (shape, next, product) = if left < right { (&from, &mut at, &mut left) } else { (&to, &mut into, &mut right) };
            let Some(extent) = shape.get(*next) else { return false };
            *product *= extent;
            *next += 1;
            fits &= extent.is_power_of_two();
        }
        if !fits {
            return false;
        }
    }
    true
}

/// Has the type an extent that is known to be no power of two?
fn is_odd(ty: &Type) -> bool {
    // A loop, because this is asked of every operand of every op.
    for dim in ty.shape() {
        if let ConstExpr::Int(extent) = dim
            && *extent > 0
            && extent & (extent - 1) != 0
        {
            return true;
        }
    }
    false
}

/// May the op take and give tiles of these extents?
///
/// # Errors
/// In the language's words, that it needs powers of two.
pub fn check(func: &Function, op: &Op, given: &[&Type]) -> Result<(), String> {
    let mut odd = None;
    op.for_each_operand(&mut |value| {
        if odd.is_none() && is_odd(func.ty(value)) {
            odd = Some(func.ty(value));
        }
    });
    let Some(odd) = odd.or(given.iter().copied().find(|ty| is_odd(ty))) else { return Ok(()) };
    let numel = |shape: &[usize]| shape.iter().map(|extent| *extent as u128).product::<u128>();
    match op {
        Op::Reshape { x } => match (known(func.ty(*x)), given.first().and_then(|ty| known(ty))) {
            // Another number of elements is told by the rule of the op: extents that do not divide would be told to be no powers of two.
            (Some(from), Some(to)) if numel(&from) == numel(&to) && !keeps_order(&from, &to) => Err(format!(
                "cannot reshape `{}` to `{}`: of the axes that change, only the first may have an extent that is no power of two",
                func.ty(*x),
                given[0]
            )),
            _ => Ok(()),
        },
        Op::Unary { .. }
        | Op::Binary { .. }
        | Op::Compare { .. }
        | Op::Const { .. }
        | Op::Arange { .. }
        | Op::Broadcast { .. }
        | Op::ExpandDims { .. }
        | Op::Permute { .. }
        | Op::Reduce { .. }
        | Op::Scan { .. }
        | Op::Flip { .. }
        | Op::Gather { .. }
        | Op::Histogram { .. }
        | Op::Sort { .. }
        | Op::Fma { .. }
        | Op::Select { .. }
        | Op::Cast { .. }
        | Op::Bitcast { .. }
        | Op::ReducePio2 { .. }
        | Op::InlinePtx { .. }
        | Op::Load { .. }
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::Print { .. }
        | Op::If { .. }
        | Op::For { .. }
        | Op::While { .. }
        | Op::StaticIf { .. }
        | Op::StaticFor { .. }
        | Op::Yield { .. }
        | Op::Condition { .. } => Ok(()),
        // A new op is here until it says what padding means to it.
        op => Err(format!("`{}` takes extents that are powers of two, not `{odd}`", op.name())),
    }
}

#[cfg(test)]
mod tests {
    use super::keeps_order;

    /// The place of each element among the padding, both ways: they must be the same.
    #[test]
    fn a_reshape_is_allowed_exactly_where_every_element_stays() {
        let places = |shape: &[usize]| -> Vec<usize> {
            (0..shape.iter().product())
                .map(|mut index: usize| {
                    let (mut place, mut stride) = (0, 1);
                    for extent in shape.iter().rev() {
                        place += index % extent * stride;
                        stride *= extent.next_power_of_two();
                        index /= extent;
                    }
                    place
                })
                .collect()
        };
        let shapes: Vec<Vec<usize>> = (1..=12)
            .flat_map(|a| (1..=12).flat_map(move |b| (1..=6).flat_map(move |c| [vec![a, b, c], vec![a, b * c], vec![a * b * c]])))
            .filter(|shape| [12, 24, 48, 60, 64, 96].contains(&shape.iter().product::<usize>()))
            .collect();
        let mut allowed = 0;
        for from in &shapes {
            for to in shapes.iter().filter(|to| to.iter().product::<usize>() == from.iter().product()) {
                let stays = places(from) == places(to);
                assert!(!keeps_order(from, to) || stays, "{from:?} to {to:?}");
                // Where it is refused although it would do, axes of extent 1 aside, an axis with padding is not the first.
                allowed += usize::from(keeps_order(from, to));
                assert!(keeps_order(from, to) || !stays, "{from:?} to {to:?} would do");
            }
        }
        assert!(allowed > 1000, "{allowed}");
    }
}
