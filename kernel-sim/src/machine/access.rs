//! Memory accesses of a warp: resolves the address of each lane to a memory, performs every check, and updates the counters.

use std::ops::Range;

use crate::counters::LineCounters;
use crate::fault::{FaultKind, Trap};
use crate::lanes::{Lanes, Row, WARP, WideRow};
use crate::machine::{Access, Cluster, Cx, Grid, Unknown, window};
use crate::memory::{Agent, Allocation, Operation, Scope, Touch};
use crate::ptx::Space;

/// Bit position of the CTA rank in a shared address. The value 0 means the thread's own CTA; `r + 1` means the CTA of rank `r`.
const RANK_SHIFT: u32 = 24;

/// A resolved address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Location {
    /// Global memory.
    Global(u64),
    /// Shared memory of the CTA with this rank in the cluster.
    Shared { rank: usize, offset: u64 },
    /// Local memory of the thread.
    Local(u64),
    /// The kernel's parameters.
    Param(u64),
}

/// A lane that loaded uninitialised bytes of shared or local memory.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Missing {
    pub(crate) lane: usize,
    /// A bit for each uninitialised byte of the access.
    pub(crate) bytes: u16,
    pub(crate) unknown: Unknown,
}

/// The memories that an access can reach.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Window {
    Global,
    Shared,
    Local,
    Param,
}

impl Cx<'_> {
    /// Resolves an address of a state space to a memory, as seen by the threads of the warp.
    pub(crate) fn resolve(&self, space: Space, address: u64) -> Result<Location, FaultKind> {
        let (window, address) = window_of(space, address);
        Ok(match window {
            Window::Global => Location::Global(address),
            Window::Local => Location::Local(address),
            Window::Param => Location::Param(address),
            Window::Shared => {
                let (rank, offset) = self.shared_location(space, address, 0)?;
                Location::Shared { rank, offset }
            }
        })
    }

    /// Loads: checks and counts every access. Inactive lanes read 0.
    pub(crate) fn load(&mut self, access: Access, addresses: &Row) -> Result<WideRow, Trap> {
        let (row, missing) = self.load_through(access, addresses)?;
        missing.first().map_or(Ok(row), |missing| Err(missing.unknown.trap(missing.lane)))
    }

    /// Loads from global memory for asynchronous operations, one operation for each active lane.
    pub(crate) fn load_asynchronously(
        &mut self,
        access: Access,
        addresses: &Row,
        operations: &[Option<Operation>],
    ) -> Result<WideRow, Trap> {
        self.check_alignment(access, addresses)?;
        let mut row = [0; WARP];
        self.load_global(access, self.lanes, addresses, operations, &mut row)?;
        Ok(row)
    }

    /// Loads like [`Self::load`], but lanes may load uninitialised bytes of shared or local memory as long as nothing depends on the
    /// values. An uninitialised byte of global memory is a fault: a kernel has no reason to read data that it was not given.
    pub(crate) fn load_through(&mut self, access: Access, addresses: &Row) -> Result<(WideRow, Vec<Missing>), Trap> {
        self.check_alignment(access, addresses)?;
        let mut row = [0; WARP];
        let mut missing = Vec::new();
        self.in_each_window(access.space, addresses, |cx, window, lanes, addresses| match window {
            Window::Global => cx.load_global(access, lanes, addresses, &[], &mut row),
            Window::Shared => cx.load_shared(access, lanes, addresses, (&mut row, &mut missing)),
            Window::Local => cx.load_local(access, lanes, addresses, (&mut row, &mut missing)),
            Window::Param => each_lane(lanes, |lane| {
                row[lane] = cx.grid.load_param(addresses[lane], access.bytes)?;
                Ok(())
            }),
        })?;
        self.has_read(access, addresses, &row);
        Ok((row, missing))
    }

    /// Stores the low `access.bytes` bytes of each value: checks and counts every access.
    pub(crate) fn store(&mut self, access: Access, addresses: &Row, values: &WideRow) -> Result<(), Trap> {
        self.check_alignment(access, addresses)?;
        self.will_store(access, addresses, values);
        self.in_each_window(access.space, addresses, |cx, window, lanes, addresses| match window {
            Window::Global => cx.store_global(access, lanes, addresses, values),
            Window::Shared => cx.store_shared(access, lanes, addresses, values),
            Window::Local => each_lane(lanes, |lane| cx.warp.local.store(lane, addresses[lane], access.bytes, values[lane])),
            Window::Param => each_lane(lanes, |lane| Err(FaultKind::ReadOnly { space: Space::Param, address: addresses[lane] })),
        })
    }

    /// Atomically replaces the value at each address by `update(lane, value)`, one lane after the other; returns the old values.
    pub(crate) fn update(&mut self, access: Access, addresses: &Row, update: &dyn Fn(usize, u128) -> u128) -> Result<WideRow, Trap> {
        self.check_alignment(access, addresses)?;
        let access = Access { scope: access.scope.or(Some(Scope::Gpu)), ..access };
        let mut row = [0; WARP];
        self.in_each_window(access.space, addresses, |cx, window, lanes, addresses| match window {
            Window::Global => cx.update_global(access, lanes, addresses, update, &mut row),
            Window::Shared => cx.update_shared(access, lanes, addresses, update, &mut row),
            Window::Local => each_lane(lanes, |lane| {
                let local = &mut cx.warp.local;
                row[lane] = local.load(lane, addresses[lane], access.bytes, cx.grid.allow_uninitialised)?;
                local.store(lane, addresses[lane], access.bytes, update(lane, row[lane]))
            }),
            Window::Param => each_lane(lanes, |lane| Err(FaultKind::ReadOnly { space: Space::Param, address: addresses[lane] })),
        })?;
        self.has_updated(access, addresses, &row, update);
        self.has_read(access, addresses, &row);
        Ok(row)
    }

    fn check_alignment(&self, access: Access, addresses: &Row) -> Result<(), Trap> {
        let below = u64::from(access.alignment.max(1)) - 1;
        match self.lanes.into_iter().find(|&lane| addresses[lane] & below != 0) {
            None => Ok(()),
            Some(lane) => {
                let (space, address, alignment) = (access.space, addresses[lane], access.alignment);
                Err(Trap::new(lane, FaultKind::Misaligned { space, address, alignment }))
            }
        }
    }

    /// Splits the lanes by the memory that their addresses resolve to, executes each part, and returns the fault of the lowest lane.
    fn in_each_window(
        &mut self,
        space: Space,
        addresses: &Row,
        mut execute: impl FnMut(&mut Self, Window, Lanes, &Row) -> Result<(), Trap>,
    ) -> Result<(), Trap> {
        let lanes = self.lanes;
        match space {
            Space::Global | Space::Const => return execute(self, Window::Global, lanes, addresses),
            Space::Shared | Space::SharedCluster => return execute(self, Window::Shared, lanes, addresses),
            Space::Local => return execute(self, Window::Local, lanes, addresses),
            Space::Param => return execute(self, Window::Param, lanes, addresses),
            Space::Generic => {}
        }
        let mut inner = *addresses;
        let mut rest = lanes;
        let mut fault: Option<Trap> = None;
        while let Some(lane) = rest.lowest() {
            let (window, _) = window_of(space, addresses[lane]);
            let mut same = Lanes::NONE;
            for lane in rest {
                let (own, address) = window_of(space, addresses[lane]);
                if own == window {
                    inner[lane] = address;
                    same = same.or(Lanes::of(lane));
                }
            }
            rest = rest.without(same);
            if let Err(trap) = execute(self, window, same, &inner)
                && fault.as_ref().is_none_or(|fault| trap.lane < fault.lane)
            {
                fault = Some(trap);
            }
        }
        fault.map_or(Ok(()), Err)
    }

    fn load_global(
        &mut self,
        access: Access,
        lanes: Lanes,
        addresses: &Row,
        operations: &[Option<Operation>],
        row: &mut WideRow,
    ) -> Result<(), Trap> {
        let grid = self.grid;
        self.count_global((true, false), lanes, addresses, access.bytes);
        let (warp, touch) = self.toucher(access);
        let Cluster { clocks, global, .. } = &mut *self.cluster;
        let mut last = None;
        each_lane(lanes, |lane| {
            let (allocation, offset) = find(grid, &mut last, addresses[lane], access.bytes)?;
            let agent = match operations.get(lane).and_then(Option::as_ref) {
                Some(operation) => Agent::Async(operation),
                None => Agent::Thread { warp, lane },
            };
            global.read((grid, clocks, allocation), agent, bytes_of(access, addresses[lane]), touch, access.element)?;
            check_written(grid, allocation, offset, access)?;
            row[lane] = value(access, allocation, offset);
            Ok(())
        })
    }

    fn store_global(&mut self, access: Access, lanes: Lanes, addresses: &Row, values: &WideRow) -> Result<(), Trap> {
        let grid = self.grid;
        self.count_global((false, true), lanes, addresses, access.bytes);
        let (warp, touch) = self.toucher(access);
        let Cluster { clocks, global, .. } = &mut *self.cluster;
        let mut last = None;
        each_lane(lanes, |lane| {
            let (allocation, offset) = find(grid, &mut last, addresses[lane], access.bytes)?;
            check_writable(allocation, access, addresses[lane])?;
            let start = addresses[lane];
            let unchanged = |part: &Range<u64>| {
                let (shift, mask) = (8 * (part.start - start), u128::MAX >> (128 - 8 * (part.end - part.start)));
                (value(access, allocation, offset) ^ values[lane]) >> shift & mask == 0
            };
            let agent = Agent::Thread { warp, lane };
            global.write((grid, clocks, allocation), agent, bytes_of(access, start), (touch, access.element), unchanged)?;
            for piece in pieces(access) {
                allocation.store(offset + piece, access.bytes.min(access.alignment), values[lane] >> (8 * piece));
            }
            Ok(())
        })
    }

    fn update_global(
        &mut self,
        access: Access,
        lanes: Lanes,
        addresses: &Row,
        update: &dyn Fn(usize, u128) -> u128,
        row: &mut WideRow,
    ) -> Result<(), Trap> {
        let grid = self.grid;
        self.count_global((true, true), lanes, addresses, access.bytes);
        let (warp, touch) = self.toucher(access);
        let touch = Touch { is_atomic: true, ..touch };
        let Cluster { clocks, global, .. } = &mut *self.cluster;
        let mut last = None;
        each_lane(lanes, |lane| {
            let (allocation, offset) = find(grid, &mut last, addresses[lane], access.bytes)?;
            check_writable(allocation, access, addresses[lane])?;
            let agent = Agent::Thread { warp, lane };
            let bytes = bytes_of(access, addresses[lane]);
            global.write((grid, clocks, allocation), agent, bytes, (touch, access.element), |_| false)?;
            check_written(grid, allocation, offset, access)?;
            row[lane] = allocation.update(offset, access.bytes, |old| update(lane, old));
            Ok(())
        })
    }

    fn load_shared(
        &mut self,
        access: Access,
        lanes: Lanes,
        addresses: &Row,
        (row, missing): (&mut WideRow, &mut Vec<Missing>),
    ) -> Result<(), Trap> {
        self.here().shared.record_load(lanes, addresses, access.bytes);
        let (warp, touch) = self.toucher(access);
        each_lane(lanes, |lane| {
            let (rank, offset) = self.shared_location(access.space, addresses[lane], access.bytes)?;
            let cluster = &mut *self.cluster;
            let shared = &mut cluster.ctas[rank].shared;
            match shared.load(Agent::Thread { warp, lane }, &cluster.clocks, offset, access.bytes, touch) {
                Err(kind @ FaultKind::UninitialisedMemory { .. }) => {
                    row[lane] = shared.peek(offset, access.bytes)?;
                    let bytes = shared.unwritten(offset, access.bytes)?;
                    missing.push(Missing { lane, bytes, unknown: self.unknown(kind) });
                }
                loaded => row[lane] = loaded?,
            }
            Ok(())
        })
    }

    fn load_local(
        &mut self,
        access: Access,
        lanes: Lanes,
        addresses: &Row,
        (row, missing): (&mut WideRow, &mut Vec<Missing>),
    ) -> Result<(), Trap> {
        let local = &self.warp.local;
        each_lane(lanes, |lane| {
            let (offset, bytes) = (addresses[lane], access.bytes);
            match local.load(lane, offset, bytes, self.grid.allow_uninitialised) {
                Err(kind @ FaultKind::UninitialisedMemory { .. }) => {
                    row[lane] = local.load(lane, offset, bytes, true)?;
                    missing.push(Missing { lane, bytes: local.unwritten(lane, offset, bytes)?, unknown: self.unknown(kind) });
                }
                loaded => row[lane] = loaded?,
            }
            Ok(())
        })
    }

    fn store_shared(&mut self, access: Access, lanes: Lanes, addresses: &Row, values: &WideRow) -> Result<(), Trap> {
        self.here().shared.record_store(lanes, addresses, access.bytes);
        let (warp, touch) = self.toucher(access);
        each_lane(lanes, |lane| {
            let (rank, offset) = self.shared_location(access.space, addresses[lane], access.bytes)?;
            let cluster = &mut *self.cluster;
            let shared = &mut cluster.ctas[rank].shared;
            shared.store(Agent::Thread { warp, lane }, &cluster.clocks, offset, access.bytes, values[lane], touch)
        })
    }

    fn update_shared(
        &mut self,
        access: Access,
        lanes: Lanes,
        addresses: &Row,
        update: &dyn Fn(usize, u128) -> u128,
        row: &mut WideRow,
    ) -> Result<(), Trap> {
        self.here().shared.record_update(lanes, addresses, access.bytes);
        let (warp, touch) = self.toucher(access);
        let touch = Touch { is_atomic: true, ..touch };
        each_lane(lanes, |lane| {
            let (rank, offset) = self.shared_location(access.space, addresses[lane], access.bytes)?;
            let cluster = &mut *self.cluster;
            let shared = &mut cluster.ctas[rank].shared;
            let agent = Agent::Thread { warp, lane };
            row[lane] = shared.update(agent, &cluster.clocks, offset, access.bytes, touch, |old| update(lane, old))?;
            Ok(())
        })
    }

    /// Counts an access to global memory: whether it loads, and whether it stores. An atomic does both.
    fn count_global(&mut self, (loads, stores): (bool, bool), lanes: Lanes, addresses: &Row, bytes: u32) {
        let traffic = &mut self.here().global;
        match (loads, stores) {
            (true, true) => traffic.record_update(lanes, addresses, bytes),
            (false, true) => traffic.record_store(lanes, addresses, bytes),
            (_, false) => traffic.record_load(lanes, addresses, bytes),
        }
        if self.grid.count_sectors {
            let sectors = self.cluster.counters.sectors_at(self.line);
            if loads {
                sectors.record_load(lanes, addresses, bytes);
            }
            if stores {
                sectors.record_store(lanes, addresses, bytes);
            }
        }
    }

    /// The counters of the instruction's source line.
    fn here(&mut self) -> &mut LineCounters {
        self.cluster.counters.at(self.line)
    }

    /// The warp's number in its cluster, and the access as the race check records it.
    fn toucher(&self, access: Access) -> (usize, Touch) {
        let touch = Touch { scope: access.scope, ..Touch::plain(access.name, self.line.line) };
        (self.cluster.clocks.warp(self.rank, self.warp.index), touch)
    }

    /// The rank of the CTA that a shared address refers to, and the offset in that CTA's shared memory.
    fn shared_location(&self, space: Space, address: u64, bytes: u32) -> Result<(usize, u64), FaultKind> {
        let (rank, offset) = (address >> RANK_SHIFT, address & ((1 << RANK_SHIFT) - 1));
        let nearest = match rank.checked_sub(1) {
            None => return Ok((self.rank, offset)),
            Some(rank) if rank == self.rank as u64 => return Ok((self.rank, offset)),
            Some(_) if space == Space::Shared => "it is of another program of the cluster, so `.shared::cluster` is wanted".to_owned(),
            Some(rank) if rank < self.cluster.ctas.len() as u64 => return Ok((rank as usize, offset)),
            Some(_) => format!("the cluster has {} programs", self.cluster.ctas.len()),
        };
        Err(FaultKind::OutOfBounds { space: Space::Shared, address, bytes, nearest: Some(nearest) })
    }
}

impl Grid {
    fn load_param(&self, offset: u64, bytes: u32) -> Result<u128, FaultKind> {
        let end = offset.checked_add(u64::from(bytes)).filter(|&end| end <= self.params.len() as u64);
        match end {
            Some(end) => Ok(self.params[offset as usize..end as usize].iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte))),
            None => {
                let nearest = Some(format!("the parameters have {} bytes", self.params.len()));
                Err(FaultKind::OutOfBounds { space: Space::Param, address: offset, bytes, nearest })
            }
        }
    }
}

/// The memory that an address refers to, and the address inside it.
fn window_of(space: Space, address: u64) -> (Window, u64) {
    match space {
        Space::Global | Space::Const => (Window::Global, address),
        Space::Shared | Space::SharedCluster => (Window::Shared, address),
        Space::Local => (Window::Local, address),
        Space::Param => (Window::Param, address),
        Space::Generic if window::SHARED.contains(&address) => (Window::Shared, address - window::SHARED.start),
        Space::Generic if window::LOCAL.contains(&address) => (Window::Local, address - window::LOCAL.start),
        Space::Generic if window::PARAM.contains(&address) => (Window::Param, address - window::PARAM.start),
        Space::Generic => (Window::Global, address),
    }
}

fn each_lane(lanes: Lanes, mut execute: impl FnMut(usize) -> Result<(), FaultKind>) -> Result<(), Trap> {
    lanes.into_iter().try_for_each(|lane| execute(lane).map_err(|kind| Trap::new(lane, kind)))
}

/// Finds the allocation of an access. Tries the allocation of the previous lane first, because neighbouring lanes mostly use the same one.
fn find<'a>(grid: &'a Grid, last: &mut Option<&'a Allocation>, address: u64, bytes: u32) -> Result<(&'a Allocation, u64), FaultKind> {
    if let Some(allocation) = last
        && allocation.holds(address, bytes)
    {
        return Ok((allocation, address - allocation.address()));
    }
    let (allocation, offset) = grid.global.find(address, bytes)?;
    *last = Some(allocation);
    Ok((allocation, offset))
}

fn check_written(grid: &Grid, allocation: &Allocation, offset: u64, access: Access) -> Result<(), FaultKind> {
    if grid.allow_uninitialised {
        return Ok(());
    }
    let bytes = access.bytes.min(access.alignment);
    match pieces(access).find_map(|piece| allocation.first_unwritten(offset + piece, bytes)) {
        None => Ok(()),
        Some(offset) => Err(FaultKind::UninitialisedMemory { space: access.space, address: allocation.address() + offset }),
    }
}

fn check_writable(allocation: &Allocation, access: Access, address: u64) -> Result<(), FaultKind> {
    match allocation.is_read_only() {
        true => Err(FaultKind::ReadOnly { space: access.space, address }),
        false => Ok(()),
    }
}

/// The address range of an access.
fn bytes_of(access: Access, address: u64) -> Range<u64> {
    address..address + u64::from(access.bytes)
}

/// The value that an allocation has at an offset, for an access of this size.
fn value(access: Access, allocation: &Allocation, offset: u64) -> u128 {
    let bytes = access.bytes.min(access.alignment);
    pieces(access).rev().fold(0, |value, piece| value << (8 * (bytes % 16)) | allocation.load(offset + piece, bytes))
}

/// The offsets of the naturally aligned parts of an access; mostly there is one part.
fn pieces(access: Access) -> impl DoubleEndedIterator<Item = u64> {
    let bytes = access.bytes.min(access.alignment).max(1);
    (0..access.bytes / bytes).map(move |piece| u64::from(piece * bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instructions::harness::Harness;
    use crate::machine::{Cluster, Cta};
    use crate::memory::GlobalMemory;
    use crate::ptx::SourceLine;

    const LINE: SourceLine = SourceLine { file: 1, line: 5, column: 2 };

    fn access(space: Space, bytes: u32) -> Access {
        Access::plain("access", space, bytes)
    }

    fn cx(harness: &mut Harness) -> Cx<'_> {
        let Harness { warp, cluster, grid, lanes, .. } = harness;
        Cx { lanes: *lanes, warp, cluster, rank: 0, grid, step: 0, line: LINE, names: &[] }
    }

    fn row(address: impl Fn(u64) -> u64) -> Row {
        std::array::from_fn(|lane| address(lane as u64))
    }

    fn values(value: impl Fn(u64) -> u128) -> WideRow {
        std::array::from_fn(|lane| value(lane as u64))
    }

    /// A machine with an initialised allocation of 512 bytes.
    fn with_global() -> (Harness, GlobalMemory, u64) {
        let memory = GlobalMemory::new(1 << 20);
        let address = memory.allocate(512).unwrap();
        memory.write(address, &(0..=255).cycle().take(512).collect::<Vec<_>>()).unwrap();
        let mut harness = Harness::new();
        harness.grid.global = memory.view();
        (harness, memory, address)
    }

    #[test]
    fn the_lowest_lane_with_a_fault_is_named() {
        let (mut harness, _, address) = with_global();
        let trap = cx(&mut harness).load(access(Space::Global, 4), &row(|lane| address + 24 * lane)).unwrap_err();
        assert_eq!(trap.lane, 22, "22 * 24 is beyond 512");
        assert!(matches!(*trap.kind, FaultKind::OutOfBounds { space: Space::Global, bytes: 4, .. }));
        harness.lanes = Lanes::first(22);
        let loaded = cx(&mut harness).load(access(Space::Global, 4), &row(|lane| address + 24 * lane)).unwrap();
        assert_eq!((loaded[1], loaded[22]), (0x1b1a_1918, 0));
        let trap = cx(&mut harness).load(access(Space::Global, 8), &row(|lane| address + 12 * lane)).unwrap_err();
        assert_eq!((trap.lane, &*trap.kind), (1, &FaultKind::Misaligned { space: Space::Global, address: address + 12, alignment: 8 }));
    }

    #[test]
    fn an_access_may_be_wider_than_its_alignment() {
        let (mut harness, _, address) = with_global();
        let four = Access { alignment: 4, ..access(Space::Generic, 16) };
        let addresses = row(|lane| address + 4 + 12 * lane);
        let numbers = values(|lane| u128::from(lane + 1) << 100 | u128::from(lane));
        harness.lanes = Lanes::of(9);
        cx(&mut harness).store(four, &addresses, &numbers).unwrap();
        assert_eq!(cx(&mut harness).load(four, &addresses).unwrap()[9], numbers[9]);
    }

    #[test]
    fn read_only_and_uninitialised_memory_is_checked() {
        let memory = GlobalMemory::new(1 << 20);
        let constant = memory.allocate_variable("table", &[7; 8], true).unwrap();
        let fresh = memory.allocate(8).unwrap();
        let mut harness = Harness::new();
        harness.grid.global = memory.view();
        harness.lanes = Lanes::of(4);
        let mut cx = cx(&mut harness);
        assert_eq!(cx.load(access(Space::Const, 8), &[constant; WARP]).unwrap()[4], 0x0707_0707_0707_0707);
        let trap = cx.store(access(Space::Generic, 4), &[constant; WARP], &[0; WARP]).unwrap_err();
        assert_eq!((trap.lane, *trap.kind), (4, FaultKind::ReadOnly { space: Space::Generic, address: constant }));
        let trap = cx.update(access(Space::Global, 4), &[fresh; WARP], &|_, old| old).unwrap_err();
        assert_eq!(*trap.kind, FaultKind::UninitialisedMemory { space: Space::Global, address: fresh });
        cx.store(access(Space::Global, 2), &[fresh; WARP], &[5; WARP]).unwrap();
        let trap = cx.load(access(Space::Global, 4), &[fresh; WARP]).unwrap_err();
        assert_eq!(*trap.kind, FaultKind::UninitialisedMemory { space: Space::Global, address: fresh + 2 });
    }

    #[test]
    fn generic_addresses_reach_every_memory_in_one_instruction() {
        let (mut harness, _, address) = with_global();
        harness.grid.params = vec![1, 2, 3, 4, 5, 6, 7, 8];
        let mut cx = cx(&mut harness);
        let address_of = |lane: u64| match lane % 3 {
            0 => address + 4 * lane,
            1 => window::SHARED.start + 4 * lane,
            _ => window::LOCAL.start + 8,
        };
        cx.store(access(Space::Generic, 4), &row(address_of), &values(|lane| u128::from(lane) + 1000)).unwrap();
        assert_eq!(cx.load(access(Space::Generic, 4), &row(address_of)).unwrap(), values(|lane| u128::from(lane) + 1000));
        let counters = cx.cluster.counters.total();
        assert_eq!((counters.global.store_bytes, counters.shared.store_bytes), (11 * 4, 11 * 4));
        assert_eq!(cx.load(access(Space::Generic, 2), &[window::PARAM.start + 4; WARP]).unwrap(), [0x0605; WARP]);
        assert_eq!(cx.load(access(Space::Param, 4), &[4; WARP]).unwrap(), [0x0807_0605; WARP]);
        assert!(matches!(*cx.load(access(Space::Param, 8), &[8; WARP]).unwrap_err().kind, FaultKind::OutOfBounds { .. }));
        assert!(matches!(*cx.store(access(Space::Param, 4), &[0; WARP], &[0; WARP]).unwrap_err().kind, FaultKind::ReadOnly { .. }));
        // Lane 1 has an address of global memory. Lanes 0 and 2 have addresses of shared memory, which is handled first.
        let mixed = row(|lane| match lane {
            0 => window::SHARED.start,
            1 => 64,
            _ => window::SHARED.end - 4,
        });
        cx.lanes = Lanes::first(3);
        let trap = cx.store(access(Space::Generic, 4), &mixed, &[0; WARP]).unwrap_err();
        assert_eq!(trap.lane, 1);
    }

    #[test]
    fn an_address_may_name_another_program_of_the_cluster() {
        let mut harness = Harness::new();
        let ctas = (0..2).map(|x| Cta::new([x, 0, 0], 32, &harness.grid)).collect();
        harness.cluster = Cluster::new([0; 3], ctas, [32, 1, 1]);
        let mut cx = cx(&mut harness);
        let of_rank = |rank: u64| row(|lane| ((rank + 1) << RANK_SHIFT) + 4 * lane);
        cx.store(access(Space::SharedCluster, 4), &of_rank(1), &values(u128::from)).unwrap();
        assert_eq!(cx.cluster.ctas[1].shared.peek(4 * 7, 4), Ok(7));
        assert_eq!(cx.resolve(Space::SharedCluster, 2 << RANK_SHIFT | 8), Ok(Location::Shared { rank: 1, offset: 8 }));
        assert_eq!(cx.resolve(Space::Generic, window::SHARED.start + 12), Ok(Location::Shared { rank: 0, offset: 12 }));
        cx.store(access(Space::Shared, 4), &of_rank(0), &values(u128::from)).unwrap();
        assert!(cx.load(access(Space::SharedCluster, 4), &of_rank(2)).is_err(), "there is no third program");
        assert!(cx.load(access(Space::Shared, 4), &of_rank(1)).is_err(), "`.shared` is the own program's");
        let end = u64::from(cx.grid.total_shared_bytes);
        assert!(cx.store(access(Space::Shared, 4), &[end; WARP], &[0; WARP]).is_err());
    }

    #[test]
    fn an_update_visits_one_lane_after_the_other() {
        let (mut harness, memory, address) = with_global();
        memory.write(address, &[0; 4]).unwrap();
        let mut cx = cx(&mut harness);
        let add = |lane: usize, old: u128| old + lane as u128;
        let old = cx.update(access(Space::Global, 4), &[address; WARP], &add).unwrap();
        assert_eq!((old[0], old[1], old[4], old[31]), (0, 0, 6, 465));
        cx.cluster.ctas[0].shared.poke(0, 4, 100).unwrap();
        let old = cx.update(access(Space::Shared, 4), &[0; WARP], &add).unwrap();
        assert_eq!((old[0], old[4], old[31]), (100, 106, 565));
        assert_eq!(cx.cluster.ctas[0].shared.peek(0, 4), Ok(596));
    }
}
