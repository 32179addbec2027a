//! Local memory: the bytes of each lane of a warp, and a record of which bytes were written.

use crate::fault::FaultKind;
use crate::lanes::WARP;
use crate::memory::POISON;
use crate::ptx::Space;

/// The local memory of a warp's lanes.
pub(crate) struct LocalMemory {
    bytes_of_a_lane: usize,
    /// The bytes of lane 0, then those of lane 1, and so on; empty until the first store.
    bytes: Vec<u8>,
    /// One flag for each byte.
    written: Vec<bool>,
}

impl LocalMemory {
    /// Local memory of this many bytes for each lane.
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
        if let (Some(index), false) = (unwritten, allow_uninitialised) {
            return Err(FaultKind::UninitialisedMemory { space: Space::Local, address: offset + index as u64 });
        }
        let byte = |index: usize| u128::from(self.bytes.get(first + index).copied().unwrap_or(POISON));
        Ok((0..bytes as usize).rev().fold(0, |value, index| value << 8 | byte(index)))
    }

    /// A bit for each uninitialised byte of an access of up to 16 bytes by a lane.
    pub(crate) fn unwritten(&self, lane: usize, offset: u64, bytes: u32) -> Result<u16, FaultKind> {
        let first = self.check(lane, offset, bytes)?;
        let is_missing = |index: usize| !self.written.get(first + index).copied().unwrap_or(false);
        Ok((0..bytes as usize).filter(|&index| is_missing(index)).fold(0, |bits, index| bits | 1 << index))
    }

    /// Stores 1 to 16 bytes of a lane.
    pub(crate) fn store(&mut self, lane: usize, offset: u64, bytes: u32, value: u128) -> Result<(), FaultKind> {
        let first = self.check(lane, offset, bytes)?;
        self.bytes.resize(self.bytes_of_a_lane * WARP, POISON);
        self.written.resize(self.bytes_of_a_lane * WARP, false);
        for index in 0..bytes as usize {
            self.bytes[first + index] = (value >> (8 * index)) as u8;
            self.written[first + index] = true;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_have_their_own_bytes() {
        let mut local = LocalMemory::new(24);
        local.store(3, 8, 4, 0x1234_5678).unwrap();
        assert_eq!(local.load(3, 8, 2, false), Ok(0x5678));
        assert_eq!(local.load(3, 8, 4, false), Ok(0x1234_5678));
        let unwritten = |address| Err(FaultKind::UninitialisedMemory { space: Space::Local, address });
        assert_eq!(local.load(3, 8, 8, false), unwritten(12));
        assert_eq!(local.load(4, 8, 4, false), unwritten(8));
        assert_eq!(local.load(4, 8, 4, true), Ok(0xffff_ffff));
        let fault = local.store(31, 20, 8, 0).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "access of 8 bytes at local address 0x14, which is outside every allocation (a thread of this kernel has 24 bytes)"
        );
    }

    #[test]
    fn nothing_is_there_before_the_first_store() {
        assert_eq!(LocalMemory::new(8).load(0, 0, 4, true), Ok(0xffff_ffff));
        assert!(LocalMemory::new(8).load(0, 0, 4, false).is_err());
        assert!(LocalMemory::new(0).load(0, 0, 1, true).is_err());
    }
}
