//! Memory accesses of asynchronous operations and mbarriers: whole ranges, by the async proxy or by a single thread.

use std::ops::Range;

use super::Value;
use crate::fault::{FaultKind, Trap};
use crate::machine::{self, Cluster, Cx, Grid, Issuer, window};
use crate::memory::{Agent, Allocation, Moment, Operation, Proxy, Queue, Stamp, Touch, Unordered};
use crate::ptx::Space;

/// An address in the shared memory of a CTA of the cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SharedLocation {
    pub(super) rank: usize,
    pub(super) offset: u32,
}

/// The bytes that an operation in flight holds, and its issuer.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Held {
    pub(super) range: Range<u64>,
    pub(super) owner: Issuer,
}

/// Resolves a lane's address to shared memory. Checks the CTA, the alignment and the bounds.
pub(super) fn shared_location(
    cx: &Cx<'_>,
    lane: usize,
    space: Space,
    address: u64,
    bytes: u32,
    alignment: u32,
) -> Result<SharedLocation, Trap> {
    let fault = |kind| Trap::new(lane, kind);
    let machine::Location::Shared { rank, offset } = cx.resolve(space, address).map_err(fault)? else {
        return Err(cx.illegal(lane, format!("the generic address {address:#x} is not in shared memory")));
    };
    if space != Space::SharedCluster && rank != cx.rank {
        return Err(cx.illegal(lane, format!("the shared address {address:#x} is of another program, and the own one is wanted")));
    }
    if !offset.is_multiple_of(u64::from(alignment)) {
        return Err(fault(FaultKind::Misaligned { space: Space::Shared, address: offset, alignment }));
    }
    let length = cx.cluster.ctas[rank].shared.len() as u64;
    if offset + u64::from(bytes) > length {
        let nearest = Some(format!("the program has {length} bytes of shared memory"));
        return Err(fault(FaultKind::OutOfBounds { space: Space::Shared, address: offset, bytes, nearest }));
    }
    Ok(SharedLocation { rank, offset: offset as u32 })
}

/// The shared address of an offset in the CTA of this rank.
pub(super) fn remote_address(rank: usize, offset: u64) -> u64 {
    (rank as u64 + 1) << 24 | offset & 0xff_ffff
}

/// The rank of the CTA in a shared address; `None` for the thread's own CTA.
pub(super) fn rank_of(shared: u64) -> Option<u64> {
    (shared >> 24).checked_sub(1)
}

/// Converts a generic address to a shared address; `None` if it is outside the shared window.
pub(super) fn shared_of_generic(address: u64) -> Option<u64> {
    window::SHARED.contains(&address).then(|| address - window::SHARED.start)
}

/// Converts a shared address to a generic address.
pub(super) fn generic_of_shared(address: u64) -> u64 {
    window::SHARED.start + address
}

/// A release by a thread.
pub(super) fn release(cx: &mut Cx<'_>, lane: usize) -> Stamp {
    let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
    cx.cluster.clocks.release(warp, lane)
}

/// An acquire by a thread.
pub(super) fn acquire(cx: &mut Cx<'_>, lane: usize, stamp: &Stamp) {
    let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
    cx.cluster.clocks.acquire(warp, lane, stamp);
}

/// A thread issues an asynchronous operation.
pub(super) fn issue(cx: &mut Cx<'_>, lane: usize, proxy: Proxy, queue: Queue) -> Operation {
    let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
    cx.cluster.clocks.issue(warp, lane, proxy, queue)
}

/// A weak store of up to 8 bytes by a lane.
pub(super) fn store_as_thread(
    cx: &mut Cx<'_>,
    lane: usize,
    location: SharedLocation,
    bytes: u32,
    value: u64,
    name: &'static str,
) -> Result<(), FaultKind> {
    let touch = Touch::plain(name, cx.line.line);
    let Cluster { ctas, clocks, .. } = &mut *cx.cluster;
    let agent = Agent::Thread { warp: clocks.warp(cx.rank, cx.warp.index), lane };
    ctas[location.rank].shared.store(agent, clocks, u64::from(location.offset), bytes, u128::from(value), touch)
}

/// The identity of a lane's current access.
pub(super) fn moment(cx: &Cx<'_>, lane: usize) -> Moment {
    let clocks = &cx.cluster.clocks;
    clocks.moment(Agent::Thread { warp: clocks.warp(cx.rank, cx.warp.index), lane })
}

/// Checks that a lane's access is ordered after an earlier access by another thread, made at the given line. Otherwise they race.
pub(super) fn check_after(
    cx: &Cx<'_>,
    lane: usize,
    location: SharedLocation,
    access: &'static str,
    earlier: (Moment, &'static str, u32),
) -> Result<(), FaultKind> {
    let clocks = &cx.cluster.clocks;
    let (moment, other_access, other_line) = earlier;
    let agent = Agent::Thread { warp: clocks.warp(cx.rank, cx.warp.index), lane };
    clocks.order(clocks.cluster(), moment, agent, None).map_err(|unordered| {
        let (Unordered::Unknown { warp, lane } | Unordered::NotWaited { warp, lane } | Unordered::NotFenced { warp, lane }) = unordered;
        FaultKind::SharedRace {
            address: u64::from(location.offset),
            access,
            other_access,
            other_thread: clocks.thread(warp, lane),
            other_line,
            hint: ": a barrier is missing",
        }
    })
}

/// Loads up to 8 bytes of shared memory without checks; all ones outside it.
pub(super) fn peek(cluster: &Cluster, location: SharedLocation, bytes: u32) -> u64 {
    cluster.ctas[location.rank].shared.peek(u64::from(location.offset), bytes).map_or(u64::MAX, |value| value as u64)
}

/// Stores up to 8 bytes of shared memory without checks.
pub(super) fn poke(cluster: &mut Cluster, location: SharedLocation, bytes: u32, value: u64) -> Result<(), FaultKind> {
    cluster.ctas[location.rank].shared.poke(u64::from(location.offset), bytes, u128::from(value))
}

/// A read of shared memory by an asynchronous operation.
pub(super) fn load_shared(
    cluster: &mut Cluster,
    operation: &Operation,
    location: SharedLocation,
    bytes: &mut [u8],
    touch: Touch,
) -> Result<(), FaultKind> {
    let Cluster { ctas, clocks, .. } = cluster;
    ctas[location.rank].shared.load_bytes(Agent::Async(operation), clocks, u64::from(location.offset), bytes, touch)
}

/// A write of shared memory by an asynchronous operation.
pub(super) fn store_shared(
    cluster: &mut Cluster,
    operation: &Operation,
    location: SharedLocation,
    bytes: &[u8],
    touch: Touch,
) -> Result<(), FaultKind> {
    let Cluster { ctas, clocks, .. } = cluster;
    ctas[location.rank].shared.store_bytes(Agent::Async(operation), clocks, u64::from(location.offset), bytes, touch)
}

/// An atomic update of up to 16 bytes of shared memory by an asynchronous operation.
pub(super) fn update_shared(
    cluster: &mut Cluster,
    operation: &Operation,
    location: SharedLocation,
    bytes: u32,
    touch: Touch,
    change: impl FnOnce(u128) -> u128,
) -> Result<(), FaultKind> {
    let Cluster { ctas, clocks, .. } = cluster;
    ctas[location.rank].shared.update(Agent::Async(operation), clocks, u64::from(location.offset), bytes, touch, change).map(|_| ())
}

/// The context of an asynchronous operation's access to global memory.
pub(super) struct GlobalAccess<'a> {
    pub(super) cluster: &'a mut Cluster,
    pub(super) grid: &'a Grid,
    pub(super) operation: &'a Operation,
    pub(super) touch: Touch,
}

/// A read of global memory by an asynchronous operation, at any address.
pub(super) fn load_global(access: GlobalAccess<'_>, address: u64, bytes: &mut [u8]) -> Result<(), FaultKind> {
    let GlobalAccess { cluster: Cluster { clocks, global, .. }, grid, operation, touch } = access;
    each_part(address, bytes.len(), |range, address| {
        let size = range.len() as u32;
        let (allocation, offset) = grid.global.find(address, size)?;
        let all = address..address + u64::from(size);
        global.read((grid, clocks, allocation), Agent::Async(operation), all, touch, 1)?;
        check_written(grid, allocation, offset, size)?;
        bytes[range].copy_from_slice(&allocation.load(offset, size).to_le_bytes()[..size as usize]);
        Ok(())
    })
}

/// A write of global memory by an asynchronous operation, at any address.
pub(super) fn store_global(access: GlobalAccess<'_>, address: u64, bytes: &[u8]) -> Result<(), FaultKind> {
    let GlobalAccess { cluster: Cluster { clocks, global, .. }, grid, operation, touch } = access;
    each_part(address, bytes.len(), |range, address| {
        let size = range.len() as u32;
        let (allocation, offset) = grid.global.find(address, size)?;
        if allocation.is_read_only() {
            return Err(FaultKind::ReadOnly { space: Space::Global, address });
        }
        let all = address..address + u64::from(size);
        global.write((grid, clocks, allocation), Agent::Async(operation), all, (touch, 1), |_| false)?;
        let value = bytes[range].iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte));
        allocation.store(offset, size, value);
        Ok(())
    })
}

/// An atomic update of an element of global memory by an asynchronous operation. The address must be naturally aligned.
pub(super) fn update_global(access: GlobalAccess<'_>, address: u64, size: u32, change: impl Fn(u128) -> u128) -> Result<(), FaultKind> {
    let GlobalAccess { cluster: Cluster { clocks, global, .. }, grid, operation, touch } = access;
    let (allocation, offset) = grid.global.find(address, size)?;
    if allocation.is_read_only() {
        return Err(FaultKind::ReadOnly { space: Space::Global, address });
    }
    let all = address..address + u64::from(size);
    global.write((grid, clocks, allocation), Agent::Async(operation), all, (touch, size), |_| false)?;
    check_written(grid, allocation, offset, size)?;
    allocation.update(offset, size, change);
    Ok(())
}

fn check_written(grid: &Grid, allocation: &Allocation, offset: u64, size: u32) -> Result<(), FaultKind> {
    match allocation.first_unwritten(offset, size) {
        Some(first) if !grid.allow_uninitialised => {
            Err(FaultKind::UninitialisedMemory { space: Space::Global, address: allocation.address() + first })
        }
        _ => Ok(()),
    }
}

/// Reads bytes at a generic address in global memory or in the kernel's parameters, such as a tensor map.
pub(super) fn load_generic(cx: &Cx<'_>, address: u64, bytes: &mut [u8]) -> Result<(), FaultKind> {
    let size = bytes.len();
    match cx.resolve(Space::Generic, address)? {
        machine::Location::Global(address) => each_part(address, size, |range, address| {
            let size = range.len() as u32;
            let (allocation, offset) = cx.grid.global.find(address, size)?;
            check_written(cx.grid, allocation, offset, size)?;
            bytes[range].copy_from_slice(&allocation.load(offset, size).to_le_bytes()[..size as usize]);
            Ok(())
        }),
        machine::Location::Param(offset) => match cx.grid.params.get(offset as usize..).and_then(|params| params.get(..size)) {
            Some(params) => {
                bytes.copy_from_slice(params);
                Ok(())
            }
            None => Err(FaultKind::OutOfBounds { space: Space::Param, address: offset, bytes: size as u32, nearest: None }),
        },
        _ => Err(FaultKind::Illegal { reason: format!("the generic address {address:#x} is neither in global memory nor in a parameter") }),
    }
}

/// Splits a range into naturally aligned parts of 1 to 16 bytes.
fn each_part(address: u64, bytes: usize, mut visit: impl FnMut(Range<usize>, u64) -> Result<(), FaultKind>) -> Result<(), FaultKind> {
    let mut offset = 0;
    while offset < bytes {
        let at = address + offset as u64;
        let mut size = 16;
        while size > bytes - offset || !at.is_multiple_of(size as u64) {
            size /= 2;
        }
        visit(offset..offset + size, at)?;
        offset += size;
    }
    Ok(())
}

/// Reads an operand without effect, such as a cache policy. Its register must be initialised.
pub(super) fn read_unused(cx: &Cx<'_>, value: Option<Value>) -> Result<(), Trap> {
    value.map_or(Ok(()), |value| cx.read(value).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_large_as_their_address_allows() {
        let parts = |address, bytes| {
            let mut parts = Vec::new();
            each_part(address, bytes, |range, at| {
                parts.push((range, at));
                Ok(())
            })
            .unwrap();
            parts
        };
        assert_eq!(parts(32, 16), [(0..16, 32)]);
        assert_eq!(parts(38, 12), [(0..2, 38), (2..10, 40), (10..12, 48)]);
        assert_eq!(parts(33, 3), [(0..1, 33), (1..3, 34)]);
    }
}
