//! Elements that several threads access at a time: by relaxed atomics.
//!
//! All accesses to a tensor that may conflict have one width and alignment, those of its elements. So atomics of different widths never meet: they are of whole
//! elements or, where a tensor is not aligned, of single bytes. (Only an address of an `unchecked` kernel may be unaligned.)

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use crate::backend::cpu::memory::by_bytes;

/// An element's bits.
pub(super) trait Bits: Copy {
    /// The atomic of that width.
    type Cell;

    /// # Safety
    /// An element that no other thread accesses but by atomics of this width.
    unsafe fn load(from: *mut Self) -> Self;

    /// # Safety
    /// As [`Bits::load`].
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
                    // SAFETY: aligned, and the caller's promise.
                    return Self::load_cell(unsafe { <$Cell>::from_ptr(from) });
                }
                let mut bytes = [0; size_of::<$T>()];
                for (at, byte) in bytes.iter_mut().enumerate() {
                    // SAFETY: the caller's promise: where one access finds the element not aligned, all do, and all come here.
                    *byte = unsafe { AtomicU8::from_ptr(from.cast::<u8>().add(at)) }.load(Ordering::Relaxed);
                }
                <$T>::from_ne_bytes(bytes)
            }

            #[inline(always)]
            unsafe fn store(to: *mut $T, element: $T) {
                if to.is_aligned() {
                    // SAFETY: aligned, and the caller's promise.
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

/// `to[lane] = from[lane * step]` for the lanes of a range, `from` in a tensor; both pointers are to lane 0.
///
/// # Safety
/// Both elements of each lane of the range are valid, those of `to` this thread's own, those of `from` as [`Bits::load`] demands.
pub(super) unsafe fn load_row(to: *mut u8, from: *mut u8, step: i64, width: usize, lanes: Range<usize>) {
    // SAFETY: the caller's promise.
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

/// `to[lane * step] = from[lane]` for the lanes of a range, `to` in a tensor; both pointers are to lane 0.
///
/// # Safety
/// As [`load_row`], the other way round.
pub(super) unsafe fn store_row(to: *mut u8, step: i64, from: *const u8, width: usize, lanes: Range<usize>) {
    // SAFETY: the caller's promise.
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

/// The elements of a range of lanes, if they are neighbours and aligned.
///
/// # Safety
/// As [`load_row`] demands of `from`, for `'a`.
unsafe fn cells<'a, T: Bits>(at: *mut T, step: i64, lanes: &Range<usize>) -> Option<&'a [T::Cell]> {
    if step != 1 || lanes.is_empty() || !at.is_aligned() {
        return None;
    }
    // SAFETY: an atomic lies in memory as the integer does, and may be shared.
    Some(unsafe { std::slice::from_raw_parts(at.wrapping_add(lanes.start).cast::<T::Cell>(), lanes.len()) })
}
