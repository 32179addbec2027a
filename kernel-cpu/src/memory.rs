//! Memory operations on elements, by their width in bytes.

use std::ops::Range;

use crate::code::Walk;

/// Evaluates the expression with the alias `$T` for the unsigned type of that width.
macro_rules! by_bytes {
    ($width:expr, $T:ident => $body:expr) => {
        match $width {
            1 => {
                type $T = u8;
                $body
            }
            2 => {
                type $T = u16;
                $body
            }
            4 => {
                type $T = u32;
                $body
            }
            _ => {
                type $T = u64;
                $body
            }
        }
    };
}
pub(super) use by_bytes;

/// Sets `count` elements to the element at `from`, which may be the first of them.
///
/// # Safety
/// `from` points to an element of `width` bytes and `to` to memory for `count` elements, aligned for them.
pub(super) unsafe fn fill(to: *mut u8, from: *const u8, width: usize, count: usize) {
    // SAFETY: guaranteed by the caller; the element is read before the slice is made.
    by_bytes!(width, T => unsafe {
        let element = from.cast::<T>().read();
        std::slice::from_raw_parts_mut(to.cast::<T>(), count).fill(element);
    });
}

/// `to[i * to_step] = from[i * from_step]` for each `i` of a range; both pointers are to element 0.
///
/// # Safety
/// For each `i` of the range both elements are valid; no element of `to` is one of `from`.
pub(super) unsafe fn copy_strided(to: *mut u8, to_step: i64, from: *const u8, from_step: i64, width: usize, lanes: Range<usize>) {
    if lanes.is_empty() {
        return;
    }
    if (to_step, from_step) == (1, 1) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (to, from) = (to.wrapping_add(lanes.start * width), from.wrapping_add(lanes.start * width));
            to.copy_from_nonoverlapping(from, lanes.len() * width);
        }
        return;
    }
    let at = |lane: usize, step: i64| (lane as isize).wrapping_mul(step as isize);
    // SAFETY: guaranteed by the caller. Unaligned accesses cost nothing here, so alignment of the tensor is not required.
    by_bytes!(width, T => unsafe {
        let (to, from) = (to.cast::<T>(), from.cast::<T>());
        for lane in lanes {
            let element = from.wrapping_offset(at(lane, from_step)).read_unaligned();
            to.wrapping_offset(at(lane, to_step)).write_unaligned(element);
        }
    });
}

/// Copies the elements of one walk over `extents` to those of another.
///
/// # Safety
/// Both tiles hold the elements that their walks visit, and the tiles do not overlap.
pub(super) unsafe fn rearrange(to: (*mut u8, &Walk), from: (*const u8, &Walk), width: usize, extents: &[usize]) {
    let Some((inner, outer)) = extents.split_last() else { return };
    let start = |walk: &Walk, row: usize| {
        let (mut rest, mut at) = (row, walk.first as isize);
        for (extent, stride) in outer.iter().zip(&walk.strides).rev() {
            at += (rest % extent) as isize * stride;
            rest /= extent;
        }
        at as usize * width
    };
    let (to_step, from_step) = (to.1.strides[outer.len()], from.1.strides[outer.len()]);
    for row in 0..outer.iter().product() {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let (to, from) = (to.0.add(start(to.1, row)), from.0.add(start(from.1, row)));
            match (to_step, from_step) {
                (1, 0) => fill(to, from, width, *inner),
                _ => copy_strided(to, to_step as i64, from, from_step as i64, width, 0..*inner),
            }
        }
    }
}

/// Replaces every nonzero byte by 1.
///
/// # Safety
/// `at` points to `count` initialised bytes.
pub(super) unsafe fn normalise_bools(at: *mut u8, count: usize) {
    // SAFETY: guaranteed by the caller.
    let bytes = unsafe { std::slice::from_raw_parts_mut(at, count) };
    bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
}
