//! Elements that programs change together.
//!
//! An atomic reads an element, computes its new value and writes it in one step: no other program sees anything between. It gives what
//! the element was before. Lanes (of one program or of several) that meet at one element take turns, in no certain order.
//!
//! The pointer comes from a `PtrMut` parameter and is to one element or to a tile of them; values have its element type and its shape, or
//! are scalars. Lanes whose `mask` is false, and lanes outside of the tensor, do nothing and give 0.
//!
//! | word | types of elements |
//! |---|---|
//! | [`atomic_add`] | `i32 i64 u32 u64 f16 bf16 f32 f64` |
//! | [`atomic_max`] [`atomic_min`] [`atomic_xchg`] | `i32 i64 u32 u64 f32 f64` |
//! | [`atomic_and`] [`atomic_or`] [`atomic_xor`] | `i32 i64 u32 u64` |
//! | [`atomic_cas`] | those with 16, 32 and 64 bits |
//! | [`atomic_load`] [`atomic_store`] | all |
//!
//! A kernel that is generic over `T` names the types that it is for: `#[kernel(T = [f32, f64])]`.
//!
//! # Order
//!
//! `sem` says what an atomic promises about the other accesses of its program, all lanes of them:
//!
//! * `"relaxed"`: nothing. This is the fastest, and enough for sums and counters that only the next launch reads.
//! * `"release"`: what stands in front of it has happened before it.
//! * `"acquire"`: what stands behind it sees what was released by the atomic whose value it found. It must be found: where nobody uses the
//!   old value, nothing is acquired.
//! * `"acq_rel"`, the default: both.
//!
//! `scope` says among whom: `"gpu"`, the default, all programs; `"cta"` this program; `"sys"` other GPUs and the host too.
//!
//! # Waiting
//!
//! A program may wait for another, as for a lock, only if that one runs already. Programs start in no certain order, and some not before
//! others end: who needs those in front of it takes its number from a counter, `atomic_add(next, 1)`, instead of `program_id`.
//!
//! ```text
//! while atomic_cas(lock, 0, 1) == 1 {}        // sem = "acq_rel": the lock is taken before the sum is read
//! store(sum + offsets, load(sum + offsets) + v);
//! atomic_xchg(lock, 0);                       // and the sum is stored before the lock is free
//! ```

use super::{Ptr, PtrMut, Value, only_in_a_kernel};

/// Adds to the elements at a pointer, and gives what they were.
///
/// Integers wrap. `f16`, `bf16` and `f64` round once, and so does `f32`, where subnormal numbers count as zeros. Sums of floats depend on
/// the order, which differs from launch to launch.
///
/// ```ignore
/// atomic_add(y + offsets, v, mask = mask, sem = "relaxed");
/// let old = atomic_add(y, sum(v));
/// ```
pub fn atomic_add<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Makes the elements at a pointer at least `value`, and gives what they were.
///
/// Of floats, -0.0 is less than 0.0. A NaN `value` changes nothing; a NaN in memory is beyond the infinity of its sign.
///
/// ```ignore
/// atomic_max(y, max(v, axis = 0), sem = "relaxed");
/// ```
pub fn atomic_max<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Makes the elements at a pointer at most `value`, and gives what they were. Floats as in [`atomic_max`].
///
/// ```ignore
/// atomic_min(y + offsets, v, mask = mask);
/// ```
pub fn atomic_min<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Clears the bits of integers at a pointer that `value` has not, and gives what they were.
///
/// ```ignore
/// atomic_and(flags + offsets, 0xffff);
/// ```
pub fn atomic_and<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Sets the bits of integers at a pointer that `value` has, and gives what they were.
///
/// ```ignore
/// let seen = (atomic_or(flags + offsets / 32, 1 << (offsets % 32) as i32) >> (offsets % 32) as i32) & 1;
/// ```
pub fn atomic_or<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Inverts the bits of integers at a pointer that `value` has, and gives what they were.
///
/// ```ignore
/// atomic_xor(flags, xor_sum(offsets as i32));
/// ```
pub fn atomic_xor<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Writes the elements at a pointer, and gives what they were.
///
/// ```ignore
/// atomic_xchg(lock, 0);
/// ```
pub fn atomic_xchg<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Writes `value` to the elements at a pointer that have the bits of `compare`, and gives what they were: equal to `compare` where it wrote.
///
/// ```ignore
/// while atomic_cas(lock, 0, 1) == 1 {}
/// ```
pub fn atomic_cas<T>(
    pointer: PtrMut<T>,
    compare: Value<T>,
    value: Value<T>,
    mask: Option<Value<bool>>,
    sem: Option<&str>,
    scope: Option<&str>,
) -> Value<T> {
    only_in_a_kernel()
}

/// Reads the elements at a pointer, each in one step, while other programs may write them.
///
/// `sem` is `"acquire"`, the default, or `"relaxed"`.
///
/// ```ignore
/// while atomic_load(lock) != 0 {}
/// ```
pub fn atomic_load<T>(pointer: Ptr<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Writes the elements at a pointer, each in one step, while other programs may read them.
///
/// `sem` is `"release"`, the default, or `"relaxed"`.
///
/// ```ignore
/// atomic_store(lock, 1);
/// ```
pub fn atomic_store<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) {
    only_in_a_kernel()
}

/// Waits until every lane of the program is here: what they stored before, all of them [`load`](super::load) behind it.
///
/// Without it, a lane may miss what another lane of the program has stored.
///
/// ```ignore
/// store(y + offsets, v, mask = mask);
/// debug_barrier();
/// let turned = load(y + (N - 1 - offsets));
/// ```
pub fn debug_barrier() {
    only_in_a_kernel()
}
