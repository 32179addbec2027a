//! An allocator that counts bytes, refuses large sizes, and finds writes outside of what it gave away.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts the bytes that are allocated, and refuses sizes that no test needs. The bytes around each allocation have a pattern.
pub(crate) struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// A larger allocation is refused: that of a tensor is an error of the program, and any other one ends the test.
const LARGEST: usize = 256 << 20;
/// The bytes of the pattern behind an allocation, and at least those before it.
const ZONE: usize = 64;
const PATTERN: u8 = 0xc5;

/// The bytes that are allocated. They are those of the peak from now on.
pub(crate) fn begin() -> usize {
    let now = NOW.load(Ordering::Relaxed);
    PEAK.store(now, Ordering::Relaxed);
    now
}

/// The most bytes since `begin`, beside those of then.
pub(crate) fn taken(before: usize) -> usize {
    PEAK.load(Ordering::Relaxed).saturating_sub(before)
}

/// The layout with both zones, and the size of the first one.
fn zoned(layout: Layout) -> Option<(Layout, usize)> {
    let first = layout.align().max(ZONE);
    let size = layout.size().checked_add(first + ZONE)?;
    Some((Layout::from_size_align(size, layout.align()).ok()?, first))
}

// SAFETY: the system's allocator does the work. The zones keep the alignment, because the first one is a multiple of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some((whole, first)) = zoned(layout).filter(|_| layout.size() <= LARGEST) else { return std::ptr::null_mut() };
        // SAFETY: the size is not 0, and all bytes that are written are those of the allocation.
        unsafe {
            let memory = System.alloc(whole);
            if memory.is_null() {
                return memory;
            }
            memory.write_bytes(PATTERN, first);
            memory.add(first + layout.size()).write_bytes(PATTERN, ZONE);
            PEAK.fetch_max(NOW.fetch_add(layout.size(), Ordering::Relaxed) + layout.size(), Ordering::Relaxed);
            memory.add(first)
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let Some((whole, first)) = zoned(layout) else { return };
        NOW.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the allocation has both zones, as `alloc` made it.
        unsafe {
            let begin = memory.sub(first);
            let before = std::slice::from_raw_parts(begin, first);
            let behind = std::slice::from_raw_parts(memory.add(layout.size()), ZONE);
            // Comparisons of whole slices are fast in a test without optimisations.
            if before.chunks(ZONE).chain([behind]).any(|part| *part != [PATTERN; ZONE][..part.len()]) {
                eprintln!("a write outside of an allocation of {} bytes", layout.size());
                std::process::abort();
            }
            System.dealloc(begin, whole);
        }
    }
}

#[test]
fn the_peak_is_that_of_this_moment() {
    let _alone = crate::alone();
    let before = begin();
    drop(std::hint::black_box(vec![0u8; 64 << 20]));
    // The thread of the test before this one may end meanwhile, and free what it kept.
    assert!(taken(before) >= 48 << 20, "{}", taken(before));
}
