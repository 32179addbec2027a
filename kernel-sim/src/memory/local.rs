//! Local memory: the bytes of each lane of a warp, which remember whether they were written.

use crate::fault::FaultKind;
use crate::lanes::WARP;
use crate::ptx::Space;

/// Local memory of the lanes of a warp.
pub(crate) struct LocalMemory {
    bytes_of_a_lane: usize,
    /// Lane after lane; empty until something is stored.
    bytes: Vec<u8>,
    /// One for each byte.
    written: Vec<bool>,
}

impl LocalMemory {
    /// That many bytes for each lane.
    pub(crate) fn new(bytes_of_a_lane: usize) -> LocalMemory {
        LocalMemory { bytes_of_a_lane, bytes: Vec::new(), written: Vec::new() }
    }

    /// Loads 1 to 16 bytes of a lane.
    pub(crate) fn load(&self, lane: usize, offset: u64, bytes: u32, allow_uninitialised: bool) -> Result<u128, FaultKind> {
        let first = self.check(lane, offset, bytes)?;
        let unwritten = match self.written.get(first..first + bytes as usize) {
            Some(written) => written.iter().position(|&written| !written),
            None => Some(0),
        };
        if let (Some(place), false) = (unwritten, allow_uninitialised) {
            return Err(FaultKind::UninitialisedMemory { space: Space::Local, address: offset + place as u64 });
        }
        let bytes = self.bytes.get(first..first + bytes as usize).unwrap_or_default();
        Ok(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte)))
    }

    /// Stores 1 to 16 bytes of a lane.
    pub(crate) fn store(&mut self, lane: usize, offset: u64, bytes: u32, value: u128) -> Result<(), FaultKind> {
        let first = self.check(lane, offset, bytes)?;
        self.bytes.resize(self.bytes_of_a_lane * WARP, 0xff);
        self.written.resize(self.bytes_of_a_lane * WARP, false);
        for place in 0..bytes as usize {
            self.bytes[first + place] = (value >> (8 * place)) as u8;
            self.written[first + place] = true;
        }
        Ok(())
    }

    fn check(&self, lane: usize, offset: u64, bytes: u32) -> Result<usize, FaultKind> {
        let all = self.bytes_of_a_lane as u64;
        if offset.checked_add(u64::from(bytes)).is_none_or(|end| end > all) {
            let nearest = Some(format!("a thread of this kernel has {all} bytes"));
            return Err(FaultKind::OutOfBounds { space: Space::Local, address: offset, bytes, nearest });
        }
        Ok(lane * self.bytes_of_a_lane + offset as usize)
    }
}
