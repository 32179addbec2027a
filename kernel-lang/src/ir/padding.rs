//! Padding of extents that are not powers of two.
//!
//! A tile of 96 elements is padded to 128; the last 32 do not exist for the program: they are never loaded, stored or combined.
//! `passes::pad_tiles` pads the tiles; after that pass every extent is a power of two. This file defines which ops are allowed on padded
//! tiles before it.

use crate::ir::constexpr::ConstExpr;
use crate::ir::function::Function;
use crate::ir::ops::Op;
use crate::ir::types::Type;

/// The padded extent: the next power of two.
pub fn padded(extent: usize) -> usize {
    extent.max(1).next_power_of_two()
}

/// Does a reshape between these shapes keep each element at its padded row-major index?
///
/// Otherwise `passes::pad_tiles` moves the elements.
///
/// Consecutive axes with equal products of extents on both sides form a group. In a group only the first axis may have padding, which then
/// lies after all the elements:
///
/// ```text
/// [96] to [3, 32]     128 slots to 4 * 32, the first 96 hold elements in both: yes
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

/// Does the type have an extent that is known not to be a power of two?
fn is_odd(ty: &Type) -> bool {
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

/// May the op take and produce tiles of these extents?
///
/// # Errors
/// A message in the terms of the language: the op needs powers of two.
pub fn check(func: &Function, op: &Op, given: &[&Type]) -> Result<(), String> {
    if has_padding(op) {
        return Ok(());
    }
    let mut odd = None;
    op.for_each_operand(&mut |value| odd = odd.or(Some(func.ty(value)).filter(|ty| is_odd(ty))));
    match odd.or(given.iter().copied().find(|ty| is_odd(ty))) {
        None => Ok(()),
        Some(odd) => Err(format!("`{}` takes extents that are powers of two, not `{odd}`", op.name())),
    }
}

/// Is the op's behaviour on padding defined? That of a new op is not, until it is added here.
fn has_padding(op: &Op) -> bool {
    matches!(
        op,
        Op::Reshape { .. }
            | Op::Unary { .. }
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
            | Op::Dot { .. }
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
            | Op::Condition { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::keeps_order;

    /// The padded index of each element, computed for both shapes; they must be equal.
    #[test]
    fn a_reshape_is_allowed_exactly_where_every_element_stays() {
        let padded_indices = |shape: &[usize]| -> Vec<usize> {
            (0..shape.iter().product())
                .map(|mut index: usize| {
                    let (mut padded, mut stride) = (0, 1);
                    for extent in shape.iter().rev() {
                        padded += index % extent * stride;
                        stride *= extent.next_power_of_two();
                        index /= extent;
                    }
                    padded
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
                let stays = padded_indices(from) == padded_indices(to);
                assert!(!keeps_order(from, to) || stays, "{from:?} to {to:?}");
                // If it is rejected although the elements stay, then (ignoring axes of extent 1) an axis with padding is not the first.
                allowed += usize::from(keeps_order(from, to));
                assert!(keeps_order(from, to) || !stays, "{from:?} to {to:?} would do");
            }
        }
        assert!(allowed > 1000, "{allowed}");
    }
}
