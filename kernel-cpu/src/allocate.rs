//! Scratch allocation: assigns offsets in the scratch to tiles. Tiles with disjoint lifetimes may share memory.
//!
//! before: lifetimes, in instructions: a 0..3, b 1..2, c 3..5, d 4..5
//! after:  a at 0, b at 4096, c at 4096, d at 0

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use crate::code::{Instr, PENDING, Slot, VIEW};

/// The lifetime of a tile: the first and last instruction that use it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetime {
    pub(super) bytes: usize,
    first: usize,
    last: usize,
}

impl Lifetime {
    pub(super) fn new(bytes: usize) -> Lifetime {
        Lifetime { bytes, first: usize::MAX, last: 0 }
    }
}

const ALIGN: usize = 64;

/// The most bytes of a scratch: the bits of a slot above are marks.
pub(super) const MOST_BYTES: usize = 1 << 30;
const _: () = assert!(MOST_BYTES <= VIEW as usize && MOST_BYTES <= PENDING as usize);

/// Replaces the slots of tiles by offsets, from `start` on, and returns the end of the last one. `loops` lists the first and the last
/// instruction of each loop, inner loops before outer ones; `views` lists the tiles to which addresses may point. None if the tiles do not fit
/// [`MOST_BYTES`].
pub(super) fn allocate(
    instrs: &mut [Instr],
    lifetimes: &mut [Lifetime],
    loops: &[(usize, usize)],
    views: &HashMap<u32, Slot>,
    start: usize,
) -> Option<usize> {
    // The tiles that each instruction uses; those of instruction `i` begin at `names[i]`.
    let (mut named, mut names) = (Vec::new(), Vec::new());
    for (at, instr) in instrs.iter_mut().enumerate() {
        names.push(named.len());
        instr.visit_slots(&mut |slot| {
            let tile = views.get(&slot.0).unwrap_or(slot);
            if let Some(index) = pending(*tile) {
                let lifetime = &mut lifetimes[index];
                lifetime.first = lifetime.first.min(at);
                lifetime.last = lifetime.last.max(at);
                named.push(index);
            }
        });
    }
    // A tile that is defined before a loop and used in it is live to the end of the loop, because each iteration uses it.
    for (begin, end) in loops {
        let behind = names.get(end + 1).copied().unwrap_or(named.len());
        for index in &named[names[*begin]..behind] {
            let lifetime = &mut lifetimes[*index];
            if lifetime.first < *begin {
                lifetime.last = lifetime.last.max(*end);
            }
        }
    }
    let (offsets, end) = first_fit(lifetimes, start.next_multiple_of(ALIGN))?;
    for instr in instrs {
        instr.visit_slots(&mut |slot| {
            if let Some(index) = pending(*slot) {
                *slot = Slot(offsets[index]);
            }
        });
    }
    Some(end)
}

fn pending(slot: Slot) -> Option<usize> {
    (slot.0 & PENDING != 0).then_some((slot.0 & !PENDING) as usize)
}

/// First-fit allocation, in the order of first use. None if the end is behind [`MOST_BYTES`].
fn first_fit(lifetimes: &[Lifetime], start: usize) -> Option<(Vec<u32>, usize)> {
    let mut order: Vec<usize> = (0..lifetimes.len()).filter(|index| lifetimes[*index].first != usize::MAX).collect();
    order.sort_by_key(|index| lifetimes[*index].first);
    let mut offsets = vec![0; lifetimes.len()];
    // The free ranges, from begin to end.
    let mut free: BTreeMap<usize, usize> = BTreeMap::from([(start, usize::MAX)]);
    // The live tiles: last instruction, begin and end. The tile with the earliest last use is popped first.
    let mut live: BinaryHeap<Reverse<(usize, usize, usize)>> = BinaryHeap::new();
    let mut top = start;
    if top > MOST_BYTES {
        return None;
    }
    for index in order {
        let lifetime = lifetimes[index];
        while let Some(Reverse((last, begin, end))) = live.peek().copied()
            && last < lifetime.first
        {
            live.pop();
            give_back(&mut free, begin, end);
        }
        let bytes = lifetime.bytes.next_multiple_of(ALIGN);
        let gap = free.iter().map(|(begin, end)| (*begin, *end)).find(|(begin, end)| end - begin >= bytes);
        let (at, end) = gap.expect("the last free range has no end");
        free.remove(&at);
        if at + bytes < end {
            free.insert(at + bytes, end);
        }
        live.push(Reverse((lifetime.last, at, at + bytes)));
        top = top.max(at + bytes);
        if top > MOST_BYTES {
            return None;
        }
        offsets[index] = at as u32;
    }
    Some((offsets, top))
}

/// Frees a range and merges it with the adjacent free ranges.
fn give_back(free: &mut BTreeMap<usize, usize>, mut begin: usize, mut end: usize) {
    if let Some((&before, _)) = free.range(..begin).next_back().filter(|(_, end)| **end == begin) {
        free.remove(&before);
        begin = before;
    }
    if let Some(behind) = free.remove(&end) {
        end = behind;
    }
    free.insert(begin, end);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifetime(first: usize, last: usize) -> Lifetime {
        Lifetime { bytes: 4000, first, last }
    }

    #[test]
    fn the_example_of_the_module() {
        let lifetimes = [lifetime(0, 3), lifetime(1, 2), lifetime(3, 5), lifetime(4, 5)];
        let (offsets, end) = first_fit(&lifetimes, 0).unwrap();
        // 4000 bytes need 63 blocks of 64.
        assert_eq!(offsets, [0, 4032, 4032, 0]);
        assert_eq!(end, 2 * 4032);
    }

    #[test]
    fn what_a_loop_needs_lives_to_its_end() {
        let copy = |to: u32, from: u32| Instr::Copy { to: Slot(to | PENDING), from: Slot(from | PENDING), bytes: 64 };
        // Tile 0 is defined before the loop 1..=3 and read at its start. Tile 2 is defined after this read and must not reuse the memory of
        // tile 0.
        let mut instrs = [copy(0, 0), copy(1, 0), copy(2, 1), Instr::Jump(1)];
        let mut lifetimes = [Lifetime::new(64), Lifetime::new(64), Lifetime::new(64)];
        let end = allocate(&mut instrs, &mut lifetimes, &[(1, 3)], &HashMap::new(), 0);
        assert_eq!(end, Some(192));
        let mut straight = [copy(0, 0), copy(1, 0), copy(2, 1), Instr::Return];
        let mut lifetimes = [Lifetime::new(64), Lifetime::new(64), Lifetime::new(64)];
        assert_eq!(allocate(&mut straight, &mut lifetimes, &[], &HashMap::new(), 0), Some(128));
    }

    #[test]
    fn a_scratch_has_a_largest_size() {
        let large = Lifetime { bytes: MOST_BYTES / 2, first: 0, last: 1 };
        assert_eq!(first_fit(&[large, large], 0).unwrap().1, MOST_BYTES);
        assert!(first_fit(&[large, large], ALIGN).is_none() && first_fit(&[large, large, lifetime(0, 1)], 0).is_none());
        assert!(first_fit(&[], MOST_BYTES + ALIGN).is_none());
    }
}
