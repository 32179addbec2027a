//! Bulk copies in flight: copies into shared memory complete on mbarriers, copies to global memory complete in bulk groups.

use std::any::Any;

use super::super::async_access::{self, GlobalAccess, Held, SharedLocation};
use super::super::atomic::{self, Reduction};
use super::super::mbarrier;
use crate::fault::{FaultKind, Trap};
use crate::machine::{AsyncOperation, Cluster, Grid, Issuer};
use crate::memory::{Operation, Scope, Touch};
use crate::ptx::Type;

/// Up to 16 bytes that are copied together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::instructions) struct Piece {
    /// The offset in shared memory; for a multicast in every target CTA.
    pub(in crate::instructions) shared: u32,
    /// The address on the other side; `None` outside the tensor.
    pub(in crate::instructions) other: Option<u64>,
    pub(in crate::instructions) bytes: u32,
}

/// Splits a range into pieces.
pub(in crate::instructions) fn pieces(shared: u32, other: u64, bytes: u32) -> Vec<Piece> {
    (0..bytes).step_by(16).map(|at| Piece { shared: shared + at, other: Some(other + u64::from(at)), bytes: 16 }).collect()
}

/// The source of a copy into shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::instructions) enum Source {
    Global,
    /// The shared memory of the CTA of this rank.
    Shared(usize),
}

/// The reduction that combines an element with the old value, instead of a plain write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::instructions) struct Combine {
    pub(in crate::instructions) reduction: Reduction,
    pub(in crate::instructions) ty: Type,
}

/// A copy into shared memory.
pub(in crate::instructions) struct Load {
    pub(in crate::instructions) source: Source,
    /// The ranks of the target CTAs.
    pub(in crate::instructions) targets: Vec<usize>,
    /// The offset of the mbarrier in each target CTA.
    pub(in crate::instructions) mbarrier: u32,
    /// The transaction count on each of these mbarriers.
    pub(in crate::instructions) transaction_bytes: u32,
    pub(in crate::instructions) pieces: Vec<Piece>,
    /// The bytes of an element outside the tensor.
    pub(in crate::instructions) fill: Vec<u8>,
    /// Whether `f32` elements are rounded to `tf32`.
    pub(in crate::instructions) rounds: bool,
    pub(in crate::instructions) combine: Option<Combine>,
    /// The bytes of each target that threads must not access before the copy completes.
    pub(in crate::instructions) held: Held,
    /// The bytes of a shared source that threads must not write before the copy completes.
    pub(in crate::instructions) held_source: Option<Held>,
    pub(in crate::instructions) operation: Operation,
    pub(in crate::instructions) line: u32,
}

impl AsyncOperation for Load {
    fn complete(&mut self, cluster: &mut Cluster, grid: &Grid, issuer: Issuer) -> Result<(), Trap> {
        self.copy(cluster, grid).map_err(|kind| Trap::new(issuer.lane, kind))
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl Load {
    fn copy(&self, cluster: &mut Cluster, grid: &Grid) -> Result<(), FaultKind> {
        for piece in &self.pieces {
            let mut buffer = [0; 16];
            let bytes = &mut buffer[..piece.bytes as usize];
            match (piece.other, self.source) {
                (None, _) => bytes.chunks_mut(self.fill.len()).for_each(|element| element.copy_from_slice(&self.fill)),
                (Some(address), Source::Global) => {
                    let touch = Touch::plain("bulk copy's load", self.line);
                    let access = GlobalAccess { cluster: &mut *cluster, grid, operation: &self.operation, touch };
                    async_access::load_global(access, address, bytes)?;
                }
                (Some(offset), Source::Shared(rank)) => {
                    let location = SharedLocation { rank, offset: offset as u32 };
                    async_access::load_shared(cluster, &self.operation, location, bytes, Touch::plain("bulk copy's load", self.line))?;
                }
            }
            if self.rounds {
                bytes.chunks_exact_mut(4).for_each(round);
            }
            for &rank in &self.targets {
                let location = SharedLocation { rank, offset: piece.shared };
                put(cluster, &self.operation, location, bytes, self.combine, self.line)?;
            }
        }
        if let (Some(held), Source::Shared(rank)) = (&self.held_source, self.source) {
            cluster.ctas[rank].shared.clear_pending(held.range.clone(), held.owner);
        }
        let done = self.operation.done();
        for &rank in &self.targets {
            let location = SharedLocation { rank, offset: self.mbarrier };
            mbarrier::complete_bytes(cluster, location, self.transaction_bytes, std::slice::from_ref(&self.held), &done)?;
        }
        cluster.happened();
        Ok(())
    }
}

/// Writes elements of shared memory for an asynchronous operation, or combines them with the old values.
pub(in crate::instructions) fn put(
    cluster: &mut Cluster,
    operation: &Operation,
    location: SharedLocation,
    bytes: &[u8],
    combine: Option<Combine>,
    line: u32,
) -> Result<(), FaultKind> {
    let Some(combine) = combine else {
        return async_access::store_shared(cluster, operation, location, bytes, Touch::plain("asynchronous store", line));
    };
    let touch = Touch { scope: Some(Scope::Gpu), ..Touch::plain("asynchronous reduction", line) };
    let size = combine.ty.bytes();
    for (element, bytes) in (0..).zip(bytes.chunks_exact(size as usize)) {
        let location = SharedLocation { offset: location.offset + element * size, ..location };
        let value = little_endian(bytes);
        async_access::update_shared(cluster, operation, location, size, touch, |old| combine.apply(old, value, false))?;
    }
    Ok(())
}

/// A copy from the issuer's shared memory to global memory.
pub(in crate::instructions) struct Store {
    pub(in crate::instructions) rank: usize,
    pub(in crate::instructions) pieces: Vec<Piece>,
    pub(in crate::instructions) combine: Option<Combine>,
    /// The bytes that threads must not write before they are read.
    pub(in crate::instructions) held: Held,
    /// The data, after it was read.
    pub(in crate::instructions) buffer: Option<Vec<[u8; 16]>>,
    /// The bulk group in the issuing thread.
    pub(in crate::instructions) group: u64,
    pub(in crate::instructions) operation: Operation,
    /// The write part of the operation.
    pub(in crate::instructions) writing: Operation,
    pub(in crate::instructions) line: u32,
}

impl AsyncOperation for Store {
    fn complete(&mut self, cluster: &mut Cluster, grid: &Grid, issuer: Issuer) -> Result<(), Trap> {
        self.read(cluster).and_then(|()| self.write(cluster, grid)).map_err(|kind| Trap::new(issuer.lane, kind))?;
        cluster.happened();
        Ok(())
    }

    fn as_any(&mut self) -> &mut dyn Any {
        self
    }
}

impl Store {
    /// Reads shared memory, if this has not happened yet. `wait_group.read` waits for this part.
    pub(super) fn read(&mut self, cluster: &mut Cluster) -> Result<(), FaultKind> {
        if self.buffer.is_some() {
            return Ok(());
        }
        let mut buffer = Vec::with_capacity(self.pieces.len());
        for piece in &self.pieces {
            let mut bytes = [0; 16];
            if piece.other.is_some() {
                let location = SharedLocation { rank: self.rank, offset: piece.shared };
                let touch = Touch::plain("bulk copy's load", self.line);
                async_access::load_shared(cluster, &self.operation, location, &mut bytes[..piece.bytes as usize], touch)?;
            }
            buffer.push(bytes);
        }
        cluster.ctas[self.rank].shared.clear_pending(self.held.range.clone(), self.held.owner);
        self.buffer = Some(buffer);
        Ok(())
    }

    fn write(&self, cluster: &mut Cluster, grid: &Grid) -> Result<(), FaultKind> {
        for (piece, bytes) in self.pieces.iter().zip(self.buffer.iter().flatten()) {
            let Some(address) = piece.other else { continue };
            let bytes = &bytes[..piece.bytes as usize];
            let operation = &self.writing;
            let Some(combine) = self.combine else {
                let touch = Touch::plain("bulk copy's store", self.line);
                async_access::store_global(GlobalAccess { cluster: &mut *cluster, grid, operation, touch }, address, bytes)?;
                continue;
            };
            let touch = Touch { scope: Some(Scope::Gpu), ..Touch::plain("bulk reduction", self.line) };
            let size = combine.ty.bytes();
            for (element, bytes) in (0..).zip(bytes.chunks_exact(size as usize)) {
                let value = little_endian(bytes);
                let address = address + u64::from(element * size);
                let access = GlobalAccess { cluster: &mut *cluster, grid, operation, touch };
                async_access::update_global(access, address, size, |old| combine.apply(old, value, true))?;
            }
        }
        Ok(())
    }
}

impl Combine {
    fn apply(self, old: u128, value: u128, is_global: bool) -> u128 {
        atomic::apply(self.reduction, self.ty, old, value, 0, is_global)
    }
}

fn little_endian(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte))
}

/// Rounds an `f32` to the nearest `tf32`, ties to even, as an H200 does in copies of a `tf32` tensor.
fn round(bytes: &mut [u8]) {
    let bits = little_endian(bytes) as u32;
    let rounded = if f32::from_bits(bits).is_finite() { (bits + 0xfff + (bits >> 13 & 1)) & !0x1fff } else { bits };
    bytes.copy_from_slice(&rounded.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_into_pieces_of_16_bytes() {
        let piece = |shared, other| Piece { shared, other: Some(other), bytes: 16 };
        assert_eq!(pieces(64, 0x1000, 48), [piece(64, 0x1000), piece(80, 0x1010), piece(96, 0x1020)]);
    }

    #[test]
    fn tf32_is_rounded_as_it_was_measured() {
        let rounded = |bits: u32| {
            let mut bytes = bits.to_le_bytes();
            round(&mut bytes);
            u32::from_le_bytes(bytes)
        };
        assert_eq!([0x3f80_1fff, 0x3f80_1000, 0x3f80_0001, 1].map(rounded), [0x3f80_2000, 0x3f80_0000, 0x3f80_0000, 0]);
        assert_eq!([0x3f80_3000, 0xff80_0000].map(rounded), [0x3f80_4000, 0xff80_0000]);
    }
}
