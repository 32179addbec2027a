//! Loads, stores and views of tensors.

use super::{Ptr, PtrMut, Shape, Value, only_in_a_kernel};

/// Reads the elements at a pointer: a scalar for `x + i`, a tile for `x + offsets`.
///
/// * `mask`: a `bool` scalar or a tile of the shape of the offsets. Elements whose mask is false are not read from memory.
/// * `other`: the value of masked elements and of elements outside the tensor; 0 (or `false`) by default. It has the element type; infinities
///   take the element type, whatever type they name.
/// * `cache`: `"ca"` all levels, `"cg"` L2 only, `"cs"` streaming, `"cv"` not cached, but fetched again by each load.
/// * `evict`: `"evict_normal"`, `"evict_first"`, `"evict_last"`, `"no_allocate"`: eviction priority in the L1 and L2 caches. An instruction
///   takes one of the two options: `evict` is ignored if `cache` is given. Constants may select the text of either option, so that
///   configurations can differ in it: `evict = if KEEP { "evict_last" } else { "evict_normal" }`. Without `evict`, `cache` and `volatile`,
///   the compiler chooses a priority; `"evict_normal"` is the hardware's default.
/// * `volatile = true`: the load is never merged with another load and never removed.
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
/// The value has the element type and the shape of the offsets, or is a scalar. If several elements or programs write to one address, it is
/// unspecified which value remains.
///
/// The threads of a program run in no fixed order. On a GPU, a [`load`] may miss an earlier store to the same address by another thread, or
/// already see a later one, although the CPU executes them in order. Put a [`debug_barrier`](super::debug_barrier) between them. A thread
/// always sees its own stores. A loaded scalar has the same value in the whole program, whatever the timing of stores.
///
/// * `mask`: elements whose mask is false are not stored; elements outside the tensor are not stored either.
/// * `cache`: `"wb"` all levels, `"cg"` the L2, `"cs"` streaming, `"wt"` write through to memory.
/// * `evict`: as for [`load`]; without it, a store has the hardware's default.
///
/// ```ignore
/// store(y + offsets, v * 2.0, mask = mask);
/// store(y + offsets, v, mask = mask, cache = "cs");
/// store(y, 0.0);
/// ```
pub fn store<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, cache: Option<&str>, evict: Option<&str>) {
    only_in_a_kernel()
}

/// Makes a view of several axes from a pointer: element `(i, j)` of `view(x, [m, n], [s, t])` is the element at `x + i * s + j * t`. Extents
/// and strides are `i64` scalars, computed at run time. The result is read and written by blocks, as a parameter [`View`](super::View).
///
/// Elements whose offset lies outside the pointer's tensor read as 0 and are not stored. Write a stride of 1 as the literal 1: along that
/// axis, neighbouring threads then access neighbouring elements. If the other strides are multiples of 16 bytes, accesses are 16 bytes wide.
/// Any other stride may be an argument, and may be 0 or negative.
///
/// ```ignore
/// let rows = view(x, [n / 8, 8], [8, 1]);
/// let columns = view(x, [8, n / 8], [1, 8]);
/// view(y, [n], [1]).store([0], sum(rows.load([0, 0], [4, 8]) * trans(columns.load([0, 0], [8, 4])), axis = 1));
/// ```
pub fn view<T>(pointer: Value<T>, shape: Shape, strides: Shape) -> Value<T> {
    only_in_a_kernel()
}
