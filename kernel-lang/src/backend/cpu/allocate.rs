//! Gives tiles their places in the scratch: two that are never needed at once may share one.
//!
//! before: lifetimes, in instructions: a 0..3, b 1..2, c 3..5, d 4..5
//! after:  a at 0, b at 4096, c at 4096, d at 0

use std::collections::HashMap;

use crate::backend::cpu::code::{Instr, PENDING, Slot, VIEW};

/// From where to where in the list of instructions a tile is needed.
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

/// Replaces the slots of tiles by places from `start` on and returns where the last one ends. `loops` are the first and the last
/// instruction of each loop, an inner one before the one around it; `views` are the tiles that addresses may point to.
pub(super) fn allocate(
    instrs: &mut [Instr],
    lifetimes: &mut [Lifetime],
    loops: &[(usize, usize)],
    views: &HashMap<u32, Slot>,
    start: usize,
) -> usize {
    for (at, instr) in instrs.iter_mut().enumerate() {
        instr.visit_slots(&mut |slot| {
            let tile = views.get(&slot.0).unwrap_or(slot);
            if let Some(lifetime) = pending(*tile).map(|index| &mut lifetimes[index]) {
                lifetime.first = lifetime.first.min(at);
                lifetime.last = lifetime.last.max(at);
            }
        });
    }
    // What was made before a loop and is needed in it is needed by each of its rounds.
    for (begin, end) in loops {
        for lifetime in lifetimes.iter_mut().filter(|lifetime| lifetime.first < *begin && lifetime.last >= *begin) {
            lifetime.last = lifetime.last.max(*end);
        }
    }
    let (places, end) = place(lifetimes, start.next_multiple_of(ALIGN));
    for instr in instrs {
        instr.visit_slots(&mut |slot| {
            if let Some(index) = pending(*slot) {
                *slot = Slot(places[index]);
            }
        });
    }
    end
}

fn pending(slot: Slot) -> Option<usize> {
    (slot.0 & PENDING != 0).then_some((slot.0 & !PENDING) as usize)
}

/// First fit, in the order of first use.
fn place(lifetimes: &[Lifetime], start: usize) -> (Vec<u32>, usize) {
    let mut order: Vec<usize> = (0..lifetimes.len()).filter(|index| lifetimes[*index].first != usize::MAX).collect();
    order.sort_by_key(|index| lifetimes[*index].first);
    let mut places = vec![0; lifetimes.len()];
    // (begin, end, last instruction) of what is placed and still needed, by begin.
    let mut live: Vec<(usize, usize, usize)> = Vec::new();
    let mut top = start;
    for index in order {
        let lifetime = lifetimes[index];
        live.retain(|(_, _, last)| *last >= lifetime.first);
        let bytes = lifetime.bytes.next_multiple_of(ALIGN);
        let mut at = start;
        let mut position = 0;
        for (begin, end, _) in &live {
            if begin - at >= bytes {
                break;
            }
            at = *end;
            position += 1;
        }
        live.insert(position, (at, at + bytes, lifetime.last));
        top = top.max(at + bytes);
        places[index] = u32::try_from(at).ok().filter(|at| at & (PENDING | VIEW) == 0).expect("the tiles of a program fit 1 GiB");
    }
    (places, top)
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
        let (places, end) = place(&lifetimes, 0);
        // 4000 bytes take 63 blocks of 64.
        assert_eq!(places, [0, 4032, 4032, 0]);
        assert_eq!(end, 2 * 4032);
    }

    #[test]
    fn what_a_loop_needs_lives_to_its_end() {
        let copy = |to: u32, from: u32| Instr::Copy { to: Slot(to | PENDING), from: Slot(from | PENDING), bytes: 64 };
        // 0 is made before the loop 1..=3 and read at its begin; 2 is made after that read, and must not take its place.
        let mut instrs = [copy(0, 0), copy(1, 0), copy(2, 1), Instr::Jump(1)];
        let mut lifetimes = [Lifetime::new(64), Lifetime::new(64), Lifetime::new(64)];
        let end = allocate(&mut instrs, &mut lifetimes, &[(1, 3)], &HashMap::new(), 0);
        assert_eq!(end, 192);
        let mut straight = [copy(0, 0), copy(1, 0), copy(2, 1), Instr::Return];
        let mut lifetimes = [Lifetime::new(64), Lifetime::new(64), Lifetime::new(64)];
        assert_eq!(allocate(&mut straight, &mut lifetimes, &[], &HashMap::new(), 0), 128);
    }
}
