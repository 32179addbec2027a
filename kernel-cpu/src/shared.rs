//! Shared elements: accesses by relaxed atomics to elements that several threads access concurrently.
//!
//! All accesses to a tensor that may conflict have the same width and alignment, those of its elements. Atomics of different widths
//! therefore never overlap: they access whole elements or, if a tensor is not aligned, single bytes. (Only an address of an `unchecked`
//! kernel can be unaligned.)

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::memory::by_bytes;

/// The bits of an element.
pub(super) trait Bits: Copy {
    /// The atomic type of this width.
    type Cell;

    /// # Safety
    /// The pointer is to a valid element, and other threads access the element only by atomics of this width.
    unsafe fn load(from: *mut Self) -> Self;

    /// # Safety
    /// See [`Bits::load`].
    unsafe fn store(to: *mut Self, element: Self);

    fn load_cell(cell: &Self::Cell) -> Self;
    fn store_cell(cell: &Self::Cell, element: Self);
}

macro_rules! bits {
    ($($T:ty: $Cell:ty;)*) => {$(
        impl Bits for $T {
            type Cell = $Cell;

            #[inline(always)]
            unsafe fn load(from: *mut $T) -> $T {
                if from.is_aligned() {
                    // SAFETY: the pointer is aligned; the caller guarantees the rest.
                    return Self::load_cell(unsafe { <$Cell>::from_ptr(from) });
                }
                let mut bytes = [0; size_of::<$T>()];
                for (at, byte) in bytes.iter_mut().enumerate() {
                    // SAFETY: the caller guarantees it: if the element is unaligned for one access, it is for all, so all of them take this
                    // path.
                    *byte = unsafe { AtomicU8::from_ptr(from.cast::<u8>().add(at)) }.load(Ordering::Relaxed);
                }
                <$T>::from_ne_bytes(bytes)
            }

            #[inline(always)]
            unsafe fn store(to: *mut $T, element: $T) {
                if to.is_aligned() {
                    // SAFETY: the pointer is aligned; the caller guarantees the rest.
                    return Self::store_cell(unsafe { <$Cell>::from_ptr(to) }, element);
                }
                for (at, byte) in element.to_ne_bytes().into_iter().enumerate() {
                    // SAFETY: as for loads.
                    unsafe { AtomicU8::from_ptr(to.cast::<u8>().add(at)) }.store(byte, Ordering::Relaxed);
                }
            }

            #[inline(always)]
            fn load_cell(cell: &$Cell) -> $T {
                cell.load(Ordering::Relaxed)
            }

            #[inline(always)]
            fn store_cell(cell: &$Cell, element: $T) {
                cell.store(element, Ordering::Relaxed);
            }
        }
    )*};
}
bits! {
    u8: AtomicU8;
    u16: AtomicU16;
    u32: AtomicU32;
    u64: AtomicU64;
}

/// `to[i] = from[i * step]` for each `i` of a range, with `from` in a tensor; both pointers are to element 0.
///
/// # Safety
/// For each `i` of the range both elements are valid. Those of `to` belong to this thread; those of `from` meet the requirements of
/// [`Bits::load`].
pub(super) unsafe fn load_row(to: *mut u8, from: *mut u8, step: i64, width: usize, lanes: Range<usize>) {
    // SAFETY: guaranteed by the caller.
    by_bytes!(width, T => unsafe {
        let (to, from) = (to.cast::<T>(), from.cast::<T>());
        if let Some(cells) = cells(from, step, &lanes) {
            for (cell, lane) in cells.iter().zip(lanes) {
                to.wrapping_add(lane).write(T::load_cell(cell));
            }
            return;
        }
        for lane in lanes {
            to.wrapping_add(lane).write(T::load(from.wrapping_offset((lane as isize).wrapping_mul(step as isize))));
        }
    });
}

/// `to[i * step] = from[i]` for each `i` of a range, with `to` in a tensor; both pointers are to element 0.
///
/// # Safety
/// As for [`load_row`], with `to` and `from` exchanged.
pub(super) unsafe fn store_row(to: *mut u8, step: i64, from: *const u8, width: usize, lanes: Range<usize>) {
    // SAFETY: guaranteed by the caller.
    by_bytes!(width, T => unsafe {
        let (to, from) = (to.cast::<T>(), from.cast::<T>());
        if let Some(cells) = cells(to, step, &lanes) {
            for (cell, lane) in cells.iter().zip(lanes) {
                T::store_cell(cell, from.wrapping_add(lane).read());
            }
            return;
        }
        for lane in lanes {
            T::store(to.wrapping_offset((lane as isize).wrapping_mul(step as isize)), from.wrapping_add(lane).read());
        }
    });
}

/// The elements of a range, if they are adjacent and aligned.
///
/// # Safety
/// The requirements of [`load_row`] on `from`, for the lifetime `'a`.
unsafe fn cells<'a, T: Bits>(at: *mut T, step: i64, lanes: &Range<usize>) -> Option<&'a [T::Cell]> {
    if step != 1 || lanes.is_empty() || !at.is_aligned() {
        return None;
    }
    // SAFETY: an atomic has the memory layout of the integer, and can be shared.
    Some(unsafe { std::slice::from_raw_parts(at.wrapping_add(lanes.start).cast::<T::Cell>(), lanes.len()) })
}
