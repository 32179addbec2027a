//! Atomics of the CPU executor, by atomics of the host, because programs run concurrently.

use std::hint;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::Violation;
use crate::access::{BLOCK, tensor};
use crate::code::Atomic;
use crate::execute::{Machine, rows};
use crate::memory;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{AtomicOp, Semantics};
use kernel_lang::scalar::{self, Scalar};

impl Machine<'_> {
    /// Executes an atomic for each element, in the order of the tile.
    ///
    /// # Safety
    /// See [`Machine::load`].
    pub(super) unsafe fn atomic(&self, atomic: &Atomic) -> Result<(), Violation> {
        let access = &atomic.access;
        let count = access.extents.last().copied().unwrap_or(1);
        let width = access.dtype.bytes();
        for row in 0..rows(&access.extents) {
            for first in (0..count).step_by(BLOCK) {
                let lanes = first..count.min(first + BLOCK);
                let at = row * count + first;
                let mut offsets = [0i64; BLOCK];
                // SAFETY: the slots hold the values that the access describes.
                let chosen = unsafe { self.chosen(access, row, lanes.clone(), &mut offsets)? };
                if atomic.op.has_result() {
                    // SAFETY: the result has these elements.
                    unsafe { self.at(access.data).add(at * width).write_bytes(0, lanes.len() * width) };
                }
                for bit in (0..lanes.len()).filter(|bit| chosen >> bit & 1 != 0) {
                    // SAFETY: the operands and the result have this element, and a chosen element is inside the tensor.
                    unsafe {
                        let operands = atomic.operands.map(|slot| element(self.at(slot), at + bit, width));
                        let old = step(atomic, tensor(self.address(access), offsets[bit], width), operands);
                        if atomic.op.has_result() {
                            memory::by_bytes!(width, T => self.at(access.data).cast::<T>().add(at + bit).write(old as T));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// The bits of an element of a tile.
unsafe fn element(tile: *const u8, lane: usize, width: usize) -> u64 {
    // SAFETY: the caller guarantees that the tile has this element.
    memory::by_bytes!(width, T => unsafe { Into::<u64>::into(tile.cast::<T>().add(lane).read()) })
}

/// Applies the atomic to an element and returns its old value.
///
/// # Safety
/// The address is that of an element of a tensor.
unsafe fn step(atomic: &Atomic, address: *mut u8, operands: [u64; 2]) -> u64 {
    let (load, store, both) = orderings(atomic.sem);
    let dtype = atomic.access.dtype;
    macro_rules! step {
        ($Cell:ident, $T:ident) => {{
            // SAFETY: the tensor is aligned for its elements, and programs that share an element access it by atomics.
            let cell = unsafe { $Cell::from_ptr(address.cast()) };
            let [a, b] = operands.map(|bits| bits as $T);
            let old: $T = match atomic.op {
                AtomicOp::Load => cell.load(load),
                AtomicOp::Store => {
                    cell.store(a, store);
                    0
                }
                AtomicOp::Exchange => cell.swap(a, both),
                AtomicOp::CompareAndSwap => cell.compare_exchange(a, b, both, load).unwrap_or_else(|old| {
                    // A spin lock retries at once.
                    hint::spin_loop();
                    old
                }),
                AtomicOp::And => cell.fetch_and(a, both),
                AtomicOp::Or => cell.fetch_or(a, both),
                AtomicOp::Xor => cell.fetch_xor(a, both),
                AtomicOp::Add if dtype.is_int() => cell.fetch_add(a, both),
                AtomicOp::Add | AtomicOp::Max | AtomicOp::Min => {
                    let operand = Scalar::from_bits(dtype, a.into());
                    let next = |old: $T| scalar::atomic(atomic.op, Scalar::from_bits(dtype, old.into()), &[operand]);
                    cell.fetch_update(both, load, |old| next(old).map(|new| new.bits() as $T)).unwrap_or_else(|old| old)
                }
            };
            u64::from(old)
        }};
    }
    let old = match dtype.bytes() {
        1 => step!(AtomicU8, u8),
        2 => step!(AtomicU16, u16),
        4 => step!(AtomicU32, u32),
        _ => step!(AtomicU64, u64),
    };
    if dtype == Dtype::Bool { u64::from(old != 0) } else { old }
}

/// The orderings of a load, a store, and a read-modify-write.
fn orderings(sem: Semantics) -> (Ordering, Ordering, Ordering) {
    match sem {
        Semantics::AcquireRelease => (Ordering::Acquire, Ordering::Release, Ordering::AcqRel),
        Semantics::Acquire => (Ordering::Acquire, Ordering::Relaxed, Ordering::Acquire),
        Semantics::Release => (Ordering::Relaxed, Ordering::Release, Ordering::Release),
        Semantics::Relaxed => (Ordering::Relaxed, Ordering::Relaxed, Ordering::Relaxed),
    }
}
