//! Atomic operations on elements that several programs change.
//!
//! An atomic reads an element, computes its new value and writes it in one step that no other program can interrupt. It returns the old
//! value. Atomics on one element, from one program or several, are executed one after another in an unspecified order.
//!
//! The pointer comes from a `PtrMut` parameter and points to one element or to a tile of them. Values have the pointer's element type and
//! shape, or are scalars. Elements whose `mask` is false or that lie outside the tensor are not accessed and return 0.
//!
//! | builtin | element types |
//! |---|---|
//! | [`atomic_add`] | `i32 i64 u32 u64 f16 bf16 f32 f64` |
//! | [`atomic_max`] [`atomic_min`] [`atomic_xchg`] | `i32 i64 u32 u64 f32 f64` |
//! | [`atomic_and`] [`atomic_or`] [`atomic_xor`] | `i32 i64 u32 u64` |
//! | [`atomic_cas`] | types of 16, 32 and 64 bits |
//! | [`atomic_load`] [`atomic_store`] | all |
//!
//! A kernel that is generic over `T` names the types that it supports: `#[kernel(T = [f32, f64])]`.
//!
//! # Memory order
//!
//! `sem` is the ordering guarantee for the other accesses of the whole program:
//!
//! * `"relaxed"`: none. This is the fastest. It is enough for sums and counters that only the next launch reads.
//! * `"release"`: accesses before the atomic happen before it.
//! * `"acquire"`: accesses after the atomic see the accesses released by the atomic whose value it read. The kernel must use the returned
//!   value; without a use, nothing is acquired.
//! * `"acq_rel"`, the default: both.
//!
//! `scope` names the participants: `"gpu"`, the default, all programs; `"cta"` this program; `"sys"` also other GPUs and the host.
//!
//! # Waiting
//!
//! A program may wait for another one, as for a lock, only if that program is already running. Programs start in an unspecified order, and
//! some start only after others have ended. A program that depends on earlier ones takes its number from a counter, `atomic_add(next, 1)`,
//! instead of `program_id`.
//!
//! ```text
//! while atomic_cas(lock, 0, 1) == 1 {}        // sem = "acq_rel": the lock is taken before the sum is read
//! store(sum + offsets, load(sum + offsets) + v);
//! atomic_xchg(lock, 0);                       // and the sum is stored before the lock is free
//! ```

use super::{Ptr, PtrMut, Value, only_in_a_kernel};

/// Adds to the elements at a pointer and returns their old values.
///
/// Integers wrap. `f16`, `bf16` and `f64` round once. `f32` rounds once too, and treats subnormal numbers as zeros. Sums of floats depend on
/// the order of the additions, which differs from launch to launch.
///
/// ```ignore
/// atomic_add(y + offsets, v, mask = mask, sem = "relaxed");
/// let old = atomic_add(y, sum(v));
/// ```
pub fn atomic_add<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Replaces the elements at a pointer by the maximum of element and `value`, and returns the old values.
///
/// For floats, -0.0 is less than 0.0. A NaN `value` changes nothing; a NaN in memory is ordered beyond the infinity of its sign.
///
/// ```ignore
/// atomic_max(y, max(v, axis = 0), sem = "relaxed");
/// ```
pub fn atomic_max<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Replaces the elements at a pointer by the minimum of element and `value`, and returns the old values. Floats as in [`atomic_max`].
///
/// ```ignore
/// atomic_min(y + offsets, v, mask = mask);
/// ```
pub fn atomic_min<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Computes the bitwise and of the integers at a pointer and `value`, and returns the old values.
///
/// ```ignore
/// atomic_and(flags + offsets, 0xffff);
/// ```
pub fn atomic_and<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Computes the bitwise or of the integers at a pointer and `value`, and returns the old values.
///
/// ```ignore
/// let seen = (atomic_or(flags + offsets / 32, 1 << (offsets % 32) as i32) >> (offsets % 32) as i32) & 1;
/// ```
pub fn atomic_or<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Computes the bitwise exclusive or of the integers at a pointer and `value`, and returns the old values.
///
/// ```ignore
/// atomic_xor(flags, xor_sum(offsets as i32));
/// ```
pub fn atomic_xor<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Writes the elements at a pointer and returns their old values.
///
/// ```ignore
/// atomic_xchg(lock, 0);
/// ```
pub fn atomic_xchg<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Compare and swap: writes `value` to the elements at a pointer that have the bits of `compare`, and returns the old values. The result
/// equals `compare` where it wrote.
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

/// Reads the elements at a pointer atomically, while other programs may write them.
///
/// `sem` is `"acquire"`, the default, or `"relaxed"`.
///
/// ```ignore
/// while atomic_load(lock) != 0 {}
/// ```
pub fn atomic_load<T>(pointer: Ptr<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) -> Value<T> {
    only_in_a_kernel()
}

/// Writes the elements at a pointer atomically, while other programs may read them.
///
/// `sem` is `"release"`, the default, or `"relaxed"`.
///
/// ```ignore
/// atomic_store(lock, 1);
/// ```
pub fn atomic_store<T>(pointer: PtrMut<T>, value: Value<T>, mask: Option<Value<bool>>, sem: Option<&str>, scope: Option<&str>) {
    only_in_a_kernel()
}

/// A barrier for the threads of the program: a [`load`](super::load) after it sees every store before it, of any thread.
///
/// Without a barrier, a thread may miss the stores of another thread of the program.
///
/// ```ignore
/// store(y + offsets, v, mask = mask);
/// debug_barrier();
/// let turned = load(y + (N - 1 - offsets));
/// ```
pub fn debug_barrier() {
    only_in_a_kernel()
}
