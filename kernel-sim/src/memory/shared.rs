//! Shared memory of a CTA: its bytes, and records of which bytes were written, of the accesses to them, and of the operations in flight.

use std::ops::Range;

use crate::fault::FaultKind;
use crate::machine::Issuer;
use crate::memory::POISON;
use crate::memory::clocks::{Agent, Clocks, View};
use crate::memory::shadow::{Conflict, Shadow};
use crate::memory::touch::Touch;
use crate::ptx::Space;

/// The shared memory of a CTA. Offsets are relative to its first byte.
pub(crate) struct SharedMemory {
    bytes: Vec<u8>,
    /// One bit for each byte: whether the byte was written.
    written: Vec<u64>,
    allow_uninitialised: bool,
    shadow: Shadow,
    /// Operations in flight, indexed by the offset divided by [`PIECE`].
    pending: Vec<Vec<Pending>>,
}

/// The size of the granules in which operations in flight are listed.
const PIECE: usize = 128;

/// The bytes that an operation in flight uses.
#[derive(Clone, Debug)]
struct Pending {
    range: Range<usize>,
    operation: &'static str,
    issued_line: u32,
    owner: Issuer,
    /// The operation only reads the bytes, so other threads may read them, too.
    only_reads: bool,
}

impl SharedMemory {
    /// Uninitialised shared memory of this many bytes.
    pub(crate) fn new(bytes: usize, allow_uninitialised: bool) -> SharedMemory {
        SharedMemory {
            bytes: vec![POISON; bytes],
            written: vec![0; bytes.div_ceil(64)],
            allow_uninitialised,
            shadow: Shadow::new(View::AsyncShared),
            pending: Vec::new(),
        }
    }

    /// The size in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Loads up to 16 bytes, little-endian. Checks bounds, races, and that the bytes are initialised.
    pub(crate) fn load(&mut self, agent: Agent<'_>, clocks: &Clocks, offset: u64, bytes: u32, touch: Touch) -> Result<u128, FaultKind> {
        let mut buffer = [0; 16];
        self.load_bytes(agent, clocks, offset, &mut buffer[..bytes as usize], touch)?;
        Ok(u128::from_le_bytes(buffer))
    }

    /// Stores the low bytes of a value, at most 16. Checks bounds and races.
    pub(crate) fn store(
        &mut self,
        agent: Agent<'_>,
        clocks: &Clocks,
        offset: u64,
        bytes: u32,
        value: u128,
        touch: Touch,
    ) -> Result<(), FaultKind> {
        self.store_bytes(agent, clocks, offset, &value.to_le_bytes()[..bytes as usize], touch)
    }

    /// Loads bytes, with the same checks as [`Self::load`].
    pub(crate) fn load_bytes(
        &mut self,
        agent: Agent<'_>,
        clocks: &Clocks,
        offset: u64,
        bytes: &mut [u8],
        touch: Touch,
    ) -> Result<(), FaultKind> {
        let range = self.check(offset, bytes.len())?;
        self.check_pending(agent, &range, true)?;
        // A read of uninitialised bytes is recorded, too: a later write of these bytes must be ordered after it.
        self.shadow.read(agent, clocks, wide(&range), touch).map_err(|conflict| race(*conflict, clocks, touch))?;
        self.check_written(&range)?;
        bytes.copy_from_slice(&self.bytes[range]);
        Ok(())
    }

    /// Stores bytes, with the same checks as [`Self::store`].
    pub(crate) fn store_bytes(
        &mut self,
        agent: Agent<'_>,
        clocks: &Clocks,
        offset: u64,
        bytes: &[u8],
        touch: Touch,
    ) -> Result<(), FaultKind> {
        let range = self.check(offset, bytes.len())?;
        self.check_pending(agent, &range, false)?;
        let old = &self.bytes;
        let start = range.start;
        let unchanged = |part: &Range<u64>| {
            let part = part.start as usize..part.end as usize;
            old[part.clone()] == bytes[part.start - start..part.end - start]
        };
        self.shadow.write(agent, clocks, wide(&range), touch, unchanged).map_err(|conflict| race(*conflict, clocks, touch))?;
        self.put(range, bytes);
        Ok(())
    }

    /// Atomically replaces up to 16 bytes by `change(old)`, and returns the old value. Checks as for loads and stores.
    pub(crate) fn update(
        &mut self,
        agent: Agent<'_>,
        clocks: &Clocks,
        offset: u64,
        bytes: u32,
        touch: Touch,
        change: impl FnOnce(u128) -> u128,
    ) -> Result<u128, FaultKind> {
        let range = self.check(offset, bytes as usize)?;
        self.check_pending(agent, &range, false)?;
        self.check_written(&range)?;
        self.shadow.write(agent, clocks, wide(&range), touch, |_| false).map_err(|conflict| race(*conflict, clocks, touch))?;
        let old = self.value(&range);
        self.put(range, &change(old).to_le_bytes()[..bytes as usize]);
        Ok(old)
    }

    /// A bit for each uninitialised byte of an access of up to 16 bytes.
    pub(crate) fn unwritten(&self, offset: u64, bytes: u32) -> Result<u16, FaultKind> {
        let range = self.check(offset, bytes as usize)?;
        let is_missing = |index: usize| self.written[index / 64] >> (index % 64) & 1 == 0;
        Ok((0..bytes as usize).filter(|&byte| is_missing(range.start + byte)).fold(0, |bits, byte| bits | 1 << byte))
    }

    /// Loads up to 16 bytes, little-endian. Checks only bounds.
    pub(crate) fn peek(&self, offset: u64, bytes: u32) -> Result<u128, FaultKind> {
        Ok(self.value(&self.check(offset, bytes as usize)?))
    }

    /// Stores the low bytes of a value, at most 16. Checks only bounds.
    pub(crate) fn poke(&mut self, offset: u64, bytes: u32, value: u128) -> Result<(), FaultKind> {
        let range = self.check(offset, bytes as usize)?;
        self.put(range, &value.to_le_bytes()[..bytes as usize]);
        Ok(())
    }

    /// Marks bytes that an operation in flight will write. Threads must not access them until the operation completes.
    pub(crate) fn mark_pending(&mut self, range: Range<u64>, operation: &'static str, issued_line: u32, owner: Issuer) {
        self.add_pending(range, operation, issued_line, owner, false);
    }

    /// Marks bytes that an operation in flight will read. Threads must not write them until the operation completes.
    pub(crate) fn mark_pending_read(&mut self, range: Range<u64>, operation: &'static str, issued_line: u32, owner: Issuer) {
        self.add_pending(range, operation, issued_line, owner, true);
    }

    /// Clears the mark of an operation of this owner with exactly this range.
    pub(crate) fn clear_pending(&mut self, range: Range<u64>, owner: Issuer) {
        let range = range.start as usize..range.end as usize;
        for piece in pieces(&range) {
            if let Some(list) = self.pending.get_mut(piece)
                && let Some(index) = list.iter().position(|pending| pending.range == range && pending.owner == owner)
            {
                list.remove(index);
            }
        }
    }

    fn add_pending(&mut self, range: Range<u64>, operation: &'static str, issued_line: u32, owner: Issuer, only_reads: bool) {
        let range = range.start as usize..range.end.min(self.bytes.len() as u64) as usize;
        if self.pending.is_empty() {
            self.pending.resize_with(self.bytes.len().div_ceil(PIECE), Vec::new);
        }
        for piece in pieces(&range) {
            self.pending[piece].push(Pending { range: range.clone(), operation, issued_line, owner, only_reads });
        }
    }

    fn check(&self, offset: u64, bytes: usize) -> Result<Range<usize>, FaultKind> {
        let all = self.bytes.len() as u64;
        match offset.checked_add(bytes as u64) {
            Some(end) if end <= all => Ok(offset as usize..end as usize),
            _ => Err(FaultKind::OutOfBounds {
                space: Space::Shared,
                address: offset,
                bytes: bytes as u32,
                nearest: Some(format!("the program has {all} bytes of shared memory")),
            }),
        }
    }

    fn check_pending(&self, agent: Agent<'_>, range: &Range<usize>, is_read: bool) -> Result<(), FaultKind> {
        if self.pending.is_empty() || matches!(agent, Agent::Async(_)) {
            return Ok(());
        }
        let found = pieces(range)
            .flat_map(|piece| &self.pending[piece])
            .find(|pending| pending.range.start < range.end && range.start < pending.range.end && !(is_read && pending.only_reads));
        match found {
            None => Ok(()),
            Some(pending) => Err(FaultKind::PendingAsync {
                space: Space::Shared,
                address: range.start.max(pending.range.start) as u64,
                operation: pending.operation,
                issued_line: pending.issued_line,
            }),
        }
    }

    fn check_written(&self, range: &Range<usize>) -> Result<(), FaultKind> {
        if self.allow_uninitialised {
            return Ok(());
        }
        let mut offset = range.start;
        while offset < range.end {
            let bytes = (range.end - offset).min(64 - offset % 64);
            let missing = !(self.written[offset / 64] >> (offset % 64)) & u64::MAX >> (64 - bytes);
            if missing != 0 {
                let address = offset as u64 + u64::from(missing.trailing_zeros());
                return Err(FaultKind::UninitialisedMemory { space: Space::Shared, address });
            }
            offset += bytes;
        }
        Ok(())
    }

    fn value(&self, range: &Range<usize>) -> u128 {
        self.bytes[range.clone()].iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte))
    }

    fn put(&mut self, range: Range<usize>, bytes: &[u8]) {
        let mut offset = range.start;
        while offset < range.end {
            let count = (range.end - offset).min(64 - offset % 64);
            self.written[offset / 64] |= u64::MAX >> (64 - count) << (offset % 64);
            offset += count;
        }
        self.bytes[range].copy_from_slice(bytes);
    }
}

fn wide(range: &Range<usize>) -> Range<u64> {
    range.start as u64..range.end as u64
}

fn race(conflict: Conflict, clocks: &Clocks, touch: Touch) -> FaultKind {
    FaultKind::SharedRace {
        address: conflict.address,
        access: touch.name,
        other_access: conflict.touch.name,
        other_thread: clocks.thread(conflict.warp, conflict.lane),
        other_line: conflict.touch.line,
        hint: conflict.hint,
    }
}

/// The granules that overlap a range.
fn pieces(range: &Range<usize>) -> Range<usize> {
    if range.is_empty() { 0..0 } else { range.start / PIECE..(range.end - 1) / PIECE + 1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_load_returns_the_stored_bytes(stores in prop::collection::vec((1usize..17, 0u64..140, any::<u128>()), 1..40)) {
            let mut shared = SharedMemory::new(140, false);
            let clocks = Clocks::new(1, [32, 1, 1]);
            let agent = Agent::Thread { warp: 0, lane: 0 };
            let touch = Touch::plain("access", 1);
            let mut model = [None; 140];
            for (bytes, offset, value) in stores {
                let cells = model.get_mut(offset as usize..offset as usize + bytes);
                let stored = shared.store(agent, &clocks, offset, bytes as u32, value, touch);
                let Some(cells) = cells else {
                    let is_outside = matches!(stored, Err(FaultKind::OutOfBounds { address, .. }) if address == offset);
                    prop_assert!(is_outside);
                    continue;
                };
                prop_assert_eq!(stored, Ok(()));
                cells.iter_mut().zip(value.to_le_bytes()).for_each(|(cell, byte)| *cell = Some(byte));
                let start = offset as usize / 2;
                let cells = &model[start..start + bytes];
                let loaded = shared.load(agent, &clocks, start as u64, bytes as u32, touch);
                match cells.iter().position(Option::is_none) {
                    None => prop_assert_eq!(loaded, Ok(cells.iter().rev().fold(0, |value, cell| value << 8 | u128::from(cell.unwrap_or(0))))),
                    Some(index) => {
                        let address = (start + index) as u64;
                        prop_assert_eq!(loaded, Err(FaultKind::UninitialisedMemory { space: Space::Shared, address }));
                    }
                }
            }
        }
    }

    #[test]
    fn an_update_returns_the_old_value() {
        let mut shared = SharedMemory::new(16, false);
        let clocks = Clocks::new(1, [32, 1, 1]);
        let agent = Agent::Thread { warp: 0, lane: 0 };
        let touch = Touch { scope: Some(crate::memory::Scope::Gpu), ..Touch::plain("atomic", 1) };
        assert!(shared.update(agent, &clocks, 4, 4, touch, |old| old).is_err(), "nobody wrote it");
        shared.poke(4, 4, 41).unwrap();
        assert_eq!(shared.update(agent, &clocks, 4, 4, touch, |old| old + 1), Ok(41));
        assert_eq!(shared.peek(4, 4), Ok(42));
        assert_eq!(shared.peek(8, 1), Ok(0xff));
        assert!(shared.peek(13, 4).is_err());
    }
}
