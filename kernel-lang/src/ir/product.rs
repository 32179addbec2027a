//! Matrix products: the types that `dot` multiplies and adds, and its type rule. `fragments.rs` has the layouts of its tiles.

use crate::dtype::Dtype;
use crate::ir::arena::Value;
use crate::ir::constexpr::ConstExpr;
use crate::ir::function::Function;
use crate::ir::ops::Precision;
use crate::ir::padding;
use crate::ir::types::{Elem, Type};
use crate::layout::Multiplier;

/// The types of sums of products of these types, the usual one first. None if `dot` does not multiply them.
pub const fn sums(a: Dtype, b: Dtype) -> &'static [Dtype] {
    match (a, b) {
        (Dtype::F16, Dtype::F16) => &[Dtype::F32, Dtype::F16],
        (Dtype::Bf16, Dtype::Bf16) | (Dtype::F32, Dtype::F32) => &[Dtype::F32],
        (Dtype::F64, Dtype::F64) => &[Dtype::F64],
        (Dtype::I8 | Dtype::U8, Dtype::I8 | Dtype::U8) => &[Dtype::I32],
        (Dtype::F8E4M3 | Dtype::F8E5M2, Dtype::F8E4M3 | Dtype::F8E5M2) => &[Dtype::F32],
        _ => &[],
    }
}

/// The types of sums of products of elements, some of which may be parameters: those that some types of the parameters have, the usual ones first.
pub fn possible_sums(func: &Function, a: &Elem, b: &Elem) -> Vec<Dtype> {
    let is_possible = |sum: &Dtype| is_possible(func, [a, b, &Elem::Dtype(*sum)]);
    [Dtype::F32, Dtype::I32, Dtype::F64, Dtype::F16].into_iter().filter(is_possible).collect()
}

/// Is there a product of the first two types that is added in the third, for some types of the kernel's parameters?
///
/// Two elements of different types, one of which is a parameter, are multiplied only if there are products of different types: `T` and `f32` are not, even where
/// `T` could be `f32`.
pub fn is_possible(func: &Function, [a, b, sum]: [&Elem; 3]) -> bool {
    // One parameter has one type.
    let of = |elem: &Elem, known: &[(&Elem, Dtype)]| match known.iter().find(|(other, _)| *other == elem) {
        Some((_, dtype)) => vec![*dtype],
        None => choices(func, elem),
    };
    let may_be_alike = a == b || a.dtype().is_some() && b.dtype().is_some();
    let adds = |x: Dtype, y: Dtype| of(sum, &[(a, x), (b, y)]).iter().any(|sum| sums(x, y).contains(sum));
    of(a, &[]).into_iter().any(|x| of(b, &[(a, x)]).into_iter().any(|y| (x != y || may_be_alike) && adds(x, y)))
}

/// The dtypes that an element type can be.
fn choices(func: &Function, elem: &Elem) -> Vec<Dtype> {
    match elem {
        Elem::Dtype(dtype) => vec![*dtype],
        Elem::Param(name) => func.types.iter().find(|given| given.name == *name).map_or_else(Vec::new, |given| given.choices.clone()),
    }
}

/// Do warpgroups multiply operands of the first two types, and add in the third? `contiguous` are the axes of both operands along which neighbours are adjacent in shared
/// memory, none for an operand in registers. Of 8-bit types and of `f32`, which is rounded to `tf32`, these must be the axes along which products are added.
pub const fn has_warpgroup_product([a, b, sum]: [Dtype; 3], contiguous: [Option<u32>; 2]) -> bool {
    let is_along_sum = matches!(contiguous, [None | Some(1), None | Some(0)]);
    match (a, b, sum) {
        (Dtype::F16, Dtype::F16, Dtype::F32) | (Dtype::Bf16, Dtype::Bf16, Dtype::F32) => true,
        (Dtype::F32, Dtype::F32, Dtype::F32)
        | (Dtype::F8E4M3 | Dtype::F8E5M2, Dtype::F8E4M3 | Dtype::F8E5M2, Dtype::F32)
        | (Dtype::I8 | Dtype::U8, Dtype::I8 | Dtype::U8, Dtype::I32) => is_along_sum,
        _ => false,
    }
}

/// How products of elements of this type are computed.
pub const fn multiplier(factor: Dtype, precision: Precision) -> Multiplier {
    match (factor, precision) {
        (Dtype::F32, Precision::Ieee) => Multiplier::Fma,
        _ => Multiplier::Mma { element_bits: factor.bits() },
    }
}

/// The type rule of `dot`.
///
/// # Errors
/// The violated rule, in the terms of the language.
pub(super) fn check(func: &Function, [a, b, acc]: [Value; 3], precision: Precision) -> Result<(), String> {
    let [a, b, acc] = [a, b, acc].map(|value| func.ty(value));
    let ([batch @ .., m, k], [other @ .., inner, n]) = (a.shape(), b.shape()) else {
        return Err(format!("`dot` takes matrices, not `{a}` and `{b}`"));
    };
    if batch.len() > 1 || other.len() > 1 {
        return Err(format!("`dot` takes matrices or one axis of matrices, not `{a}` and `{b}`"));
    }
    let sums = if a.is_pointer() || b.is_pointer() { Vec::new() } else { possible_sums(func, a.elem(), b.elem()) };
    if sums.is_empty() || batch != other || k != inner {
        return Err(format!("`dot` cannot multiply `{a}` by `{b}`"));
    }
    let shape: Vec<ConstExpr> = [batch, &[m.clone(), n.clone()]].concat();
    if acc.is_pointer() || *acc.shape() != shape || !is_possible(func, [a.elem(), b.elem(), acc.elem()]) {
        let sum = Type::tile(sums[0], shape);
        return Err(format!("`dot` of `{a}` and `{b}` is added to `{sum}`, not to `{acc}`"));
    }
    if precision != Precision::Ieee && !choices(func, a.elem()).contains(&Dtype::F32) {
        return Err(format!("`precision = \"{}\"` is for `f32`, and this `dot` multiplies `{a}` by `{b}`", precision.text()));
    }
    let Some(factor) = a.elem().dtype() else { return Ok(()) };
    let least = multiplier(factor, precision).least().map(|extent| extent as usize);
    for ((extent, what), least) in [(m, "rows"), (n, "columns"), (k, "products a sum")].into_iter().zip(least) {
        let is_small = |extent: &i128| usize::try_from(*extent).is_ok_and(|extent| padding::padded(extent) < least);
        if let Some(extent) = extent.as_int().filter(is_small) {
            // The padding of a smaller extent would be more than half of what an instruction computes.
            let least = least / 2 + 1;
            return Err(format!("`dot` of `{factor}` takes at least {least} {what}, not {extent}: `{a}` and `{b}`"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_has_one_type_in_a_product() {
        let func = crate::ir::parse("kernel @k<T: f16 | bf16 | f32 | f64, U: f16 | i8>(%n: i64) {\nreturn\n}").expect("it is well formed");
        let [t, u] = ["T", "U"].map(|name| Elem::Param(name.into()));
        let of = |dtype: Dtype| Elem::Dtype(dtype);
        assert_eq!(possible_sums(&func, &t, &t), [Dtype::F32, Dtype::F64, Dtype::F16]);
        assert_eq!(possible_sums(&func, &t, &u), []);
        assert_eq!(possible_sums(&func, &t, &of(Dtype::F32)), []);
        assert_eq!(possible_sums(&func, &u, &of(Dtype::U8)), [Dtype::I32]);
        assert_eq!(possible_sums(&func, &of(Dtype::I8), &of(Dtype::F16)), []);
        // Each type adds in itself, except `bf16`.
        assert!(is_possible(&func, [&t, &t, &t]));
        assert!(!is_possible(&func, [&of(Dtype::Bf16), &t, &t]));
    }
}
