//! Reading and writing tensors.

use super::{Ptr, PtrMut, Shape, Value, only_in_a_kernel};

/// Reads the elements at a pointer: a scalar for `x + i`, a tile for `x + offsets`.
///
/// * `mask`: a `bool` scalar or a tile of the shape of the offsets. A lane whose mask is false does not touch memory.
/// * `other`: what such a lane reads, and a lane outside of the tensor too; 0 (or `false`) if it is not given. It has the type of the elements;
///   infinities are those of the elements' type, whatever type they name.
/// * `cache`: `"ca"` all levels, `"cg"` the L2 only, `"cs"` streaming, `"cv"` fetch again.
/// * `evict`: `"evict_normal"`, `"evict_first"`, `"evict_last"`, `"no_allocate"`: which data the caches, L1 and L2, give up first. An instruction
///   takes one of the two: beside a `cache`, `evict` counts for nothing. Constants may choose the text of either, so that configurations can differ
///   in it: `evict = if KEEP { "evict_last" } else { "evict_normal" }`.
/// * `volatile = true`: never merged with another load, never dropped.
///
/// ```ignore
/// let v = load(x + offsets, mask = offsets < n, other = f32::NEG_INFINITY);
/// let scale = load(x);
/// let once = load(x + offsets, mask = mask, evict = "evict_first");
/// ```
pub fn load<T>(
    pointer: Ptr<T>,
    mask: Option<Value<bool>>,
    other: Option<Value<T>>,
    cache: Option<&str>,
    evict: Option<&str>,
    volatile: Option<bool>,
) -> Value<T> {
    only_in_a_kernel()
}

/// Writes `value` to the elements at a pointer, which comes from a `PtrMut` parameter.
///
/// The value has the type of the elements and the shape of the offsets, or is a scalar. If several lanes (or programs) write one
/// element, it is left open whose value stays. Lanes run in no order: what one lane stores, a later [`load`] by another lane may
/// miss on a GPU, although the CPU shows it, and an earlier one may see it already; [`debug_barrier`](super::debug_barrier) stands between them. One
/// lane reads what it wrote, and a scalar is the same for the whole program, whatever was stored when.
///
/// * `mask`: a lane whose mask is false stores nothing; nor does a lane outside of the tensor.
/// * `cache`: `"wb"` all levels, `"cg"` the L2, `"cs"` streaming, `"wt"` through to memory.
/// * `evict`: as for [`load`].
///
/// ```ignore
/// store(y + offsets, v * 2.0, mask = mask);
/// store(y + offsets, v, mask = mask, cache = "cs");
/// store(y, 0.0);
/// ```
pub fn store<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, cache: Option<&str>, evict: Option<&str>) {
    only_in_a_kernel()
}

/// A tensor of several axes behind a pointer: element `(i, j)` of `view(x, [m, n], [s, t])` is that at `x + i * s + j * t`. Extents and strides are
/// `i64` scalars, computed at run time. It is read and written by blocks as a parameter [`View`](super::View) is.
///
/// Elements that its strides lead outside of the pointer's tensor are 0 and are not stored, as everywhere. Write a stride of 1 as the number: along
/// that axis threads then read neighbours, and where the other strides are multiples of 16 bytes, 16 bytes at a time. Any other stride may be an
/// argument, 0 or negative.
///
/// ```ignore
/// let rows = view(x, [n / 8, 8], [8, 1]);
/// let columns = view(x, [8, n / 8], [1, 8]);
/// view(y, [n], [1]).store([0], sum(rows.load([0, 0], [4, 8]) * trans(columns.load([0, 0], [8, 4])), axis = 1));
/// ```
pub fn view<T>(pointer: Value<T>, shape: Shape, strides: Shape) -> Value<T> {
    only_in_a_kernel()
}
