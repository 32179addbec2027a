//! The cost of accesses and converts under a layout, in instructions of a thread.
//!
//! An access of 8 bytes a thread takes two instructions where one of 16 bytes would do, but moves as many sectors. A convert through shared
//! memory takes more: it writes each element, waits for the other warps, and reads it. So an access takes a layout that makes it narrower,
//! instead of a convert, as long as each of a warp's instructions accesses whole sectors. An example is a store of `i8` that are computed
//! from loaded `bf16`: a load of 16 bytes gives a thread 8 elements, and a store of 16 bytes would need 16.
//!
//! If a thread has enough elements, two of its loads can be neighbours: together they load a sector, the second one from the L1. The store of the
//! example then moves 16 bytes.

use crate::layout::{Conversion, Layout, Level, known_conversion};
use crate::target::SECTOR;

use super::accesses::{Width, Wish};

/// The bytes of a register. A warp that moves one for each thread accesses a whole cache line.
const WORD: u32 = 4;

/// The bytes that an instruction accesses in shared memory, for each thread.
const WIDEST: u32 = 16;

/// The instructions that a barrier and its wait are worth, and the addresses in shared memory.
const BARRIER: u32 = 16;

/// The instructions of the accesses of a component.
pub(super) fn of(wish: &Wish, layout: &Layout) -> u32 {
    wish.accesses.iter().map(|access| (layout.registers_per_thread() / vector(access, layout)).max(1)).sum()
}

/// The elements that an instruction of the access moves for each thread.
pub(super) fn vector(access: &Width, layout: &Layout) -> u32 {
    access.axis.map_or(1, |axis| layout.contiguous_per_thread(axis).elements().min(access.vector))
}

/// A component with loads only, of which a thread has twice as many neighbours. Each of its instructions loads a part of a sector, and the next
/// one the rest, from the L1.
pub(super) fn wider(wish: &Wish) -> Option<Wish> {
    let vector = 2 * wish.vector;
    let is_possible = wish.accesses.iter().all(|access| access.is_load && access.axis == wish.axis && vector * access.bytes <= SECTOR);
    (wish.is_access() && wish.axis.is_some() && is_possible).then(|| Wish { vector, ..wish.clone() })
}

/// The instructions of a convert of elements of `bytes` bytes.
pub(super) fn of_convert(from: &Layout, to: &Layout, bytes: u32) -> u32 {
    let size = |layout: &Layout| (layout.registers_per_thread() * bytes).div_ceil(WIDEST);
    match known_conversion(from, to, 8 * bytes).as_ref() {
        Ok(Conversion::None | Conversion::Registers(_)) => 0,
        Ok(Conversion::Shuffle(plan)) => 2 * plan.rounds.len() as u32,
        Ok(Conversion::Shared(_)) | Err(_) => size(from) + size(to) + BARRIER,
    }
}

/// Is each access of a component efficient under a layout? Each instruction of a warp must access whole sectors: the elements of a sector are
/// neighbours of one thread, or of neighbouring lanes. And it must move a word for each thread, if the access can be so wide. A load from places that are
/// not known to be consecutive takes an instruction an element in any layout; lanes with copies of an element load it together.
pub(super) fn suits(wish: &Wish, layout: &Layout) -> bool {
    wish.accesses.iter().all(|access| {
        let Some(axis) = access.axis else { return access.is_load && has_neighbouring_lanes(layout) };
        let below: u32 = layout.shape()[axis + 1..].iter().product();
        let sector = (SECTOR / access.bytes).min(layout.shape()[axis]);
        let vector = vector(access, layout);
        let mut covered = vector;
        while covered < sector && layout.flat_bases(Level::Lane).contains(&u64::from(covered * below)) {
            covered *= 2;
        }
        covered >= sector && vector * access.bytes >= WORD.min(access.vector * access.bytes)
    })
}

/// Do neighbouring lanes hold neighbours or copies?
fn has_neighbouring_lanes(layout: &Layout) -> bool {
    let bases = layout.flat_bases(Level::Lane);
    bases.iter().filter(|basis| **basis != 0).enumerate().all(|(index, basis)| *basis == 1 << index)
}

/// Do several warps access parts of a sector?
pub(super) fn splits_sectors(access: &Width, layout: &Layout) -> bool {
    access.axis.is_some_and(|axis| {
        let below: u32 = layout.shape()[axis + 1..].iter().product();
        let sector = u64::from((SECTOR / access.bytes).min(layout.shape()[axis]) * below);
        layout.flat_bases(Level::Warp).iter().any(|basis| (u64::from(below)..sector).contains(basis))
    })
}
