//! The state of a running launch: the grid, clusters of CTAs, and warps.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::arguments::Arguments;
use crate::counters::Counters;
use crate::fault::{FaultKind, Trap};
use crate::instructions::{
    self, Barriers, BulkGroups, ClusterBarrier, Copies, Fences, Matrices, Mbarriers, Published, Register, Special, Warpgroups,
};
use crate::lanes::{Lanes, Row, WARP};
use crate::machine::{Cycles, Progress, Unknown};
use crate::memory::{Agent, Allocation, Clocks, Conflict, GlobalView, LaunchRecord, LocalMemory, Shadow, SharedMemory, Touch, View};

/// The data that all threads of a launch share.
pub(crate) struct Grid {
    /// The global memory that the launch can access.
    pub(crate) global: GlobalView,
    /// The bytes of the kernel's parameters.
    pub(crate) params: Vec<u8>,
    /// The memory that parameters point to, for faults.
    pub(crate) arguments: Arguments,
    /// The number of CTAs along each axis.
    pub(crate) grid: [u32; 3],
    /// The number of threads of a CTA along each axis.
    pub(crate) block: [u32; 3],
    /// The number of CTAs of a cluster along each axis.
    pub(crate) cluster: [u32; 3],
    /// Whether the launch specifies a cluster.
    pub(crate) is_explicit_cluster: bool,
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) total_shared_bytes: u32,
    pub(crate) num_sms: u32,
    /// Whether reads of uninitialised memory are allowed.
    pub(crate) allow_uninitialised: bool,
    pub(crate) count_sectors: bool,
    /// The record for races in global memory; `None` if the launch allows races.
    pub(crate) record: Option<LaunchRecord>,
}

/// A warp: the registers of its 32 lanes, and the set of running lanes.
pub(crate) struct Warp {
    /// The warp's number in its CTA.
    pub(crate) index: usize,
    /// The lanes that exist and have not exited.
    pub(crate) live: Lanes,
    /// Indexed by [`Register`].
    pub(crate) registers: Vec<Row>,
    /// For each register, the lanes in which it is defined.
    pub(crate) defined: Vec<Lanes>,
    /// Lanes whose register was written with an unknown value. Only looked up for registers that are not `defined`.
    pub(crate) unknown: HashMap<(Register, usize), Unknown>,
    /// The lanes whose carry flag `CC.CF` is set (PTX ISA, 9.7.2).
    pub(crate) carry: Lanes,
    /// Local memory of each lane.
    pub(crate) local: LocalMemory,
    /// For each waiting lane, the ticket of the instruction that it waits in, or 0. Only that instruction reads the ticket.
    pub(crate) tickets: [u64; WARP],
    /// The registers of matrix instructions in flight, and the lanes that must not access them.
    pub(crate) pending: HashMap<Register, Lanes>,
    /// The `cp.async` copies without a completed wait.
    pub(crate) copies: Copies,
    /// The state of the warp's fences.
    pub(crate) fences: Fences,
    /// The number of executed instructions.
    pub(crate) executed: u64,
    /// The register limit that the last `setmaxnreg` set.
    pub(crate) max_registers: u32,
    /// The matrix products in flight.
    pub(crate) matrices: Matrices,
    /// The loops without progress of the warp's lanes.
    pub(crate) cycles: Cycles,
}

/// A CTA: the state that its threads share.
pub(crate) struct Cta {
    /// The index of the CTA in the grid.
    pub(crate) id: [u32; 3],
    pub(crate) shared: SharedMemory,
    /// The 16 barriers of `bar`. The module of these instructions defines their state.
    pub(crate) barriers: Barriers,
    /// The mbarrier objects in its shared memory.
    pub(crate) mbarriers: Mbarriers,
    /// The state of warpgroup instructions.
    pub(crate) warpgroups: Warpgroups,
    /// The number of threads that have not exited.
    pub(crate) live_threads: u32,
}

/// CTAs that can access each other's shared memory; without clusters, a single CTA.
pub(crate) struct Cluster {
    /// The index of the cluster in the grid of clusters.
    pub(crate) id: [u32; 3],
    /// Indexed by rank.
    pub(crate) ctas: Vec<Cta>,
    /// The barrier of `barrier.cluster`.
    pub(crate) barrier: ClusterBarrier,
    /// The releases to shared memory.
    pub(crate) published: Published,
    /// The state of global memory for the race check.
    pub(crate) global: GlobalState,
    /// The asynchronous operations in flight, oldest first. The scheduler completes them at a time of its choice. An instruction that waits
    /// for an operation may complete it, too.
    pub(crate) in_flight: VecDeque<InFlight>,
    /// The bulk groups of the cluster's threads.
    pub(crate) bulk_groups: BulkGroups,
    /// The number of events that may release a waiting lane.
    pub(crate) events: u64,
    /// The number of changes that lanes can observe.
    pub(crate) progress: Progress,
    /// The vector clocks of the threads, for the race check.
    pub(crate) clocks: Clocks,
    pub(crate) counters: Counters,
}

/// The state of global memory for the race check: accesses of this cluster and of the clusters that run interleaved with it.
#[derive(Default)]
pub(crate) struct GlobalState {
    /// The releases to global memory.
    pub(crate) published: Published,
    /// The recorded accesses; `None` if the launch allows races.
    pub(crate) shadow: Option<Shadow>,
}

/// An asynchronous operation and its issuer.
pub(crate) struct InFlight {
    pub(crate) issuer: Issuer,
    pub(crate) operation: Box<dyn AsyncOperation>,
}

/// The thread and the instruction that issued an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Issuer {
    /// The rank of the CTA in its cluster.
    pub(crate) rank: usize,
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    /// The index of the instruction's step, for messages.
    pub(crate) step: u32,
}

/// An operation that completes later than the instruction that issues it.
pub(crate) trait AsyncOperation: Send {
    /// Performs the operation.
    fn complete(&mut self, cluster: &mut Cluster, grid: &Grid, issuer: Issuer) -> Result<(), Trap>;

    /// Whether the operation may complete now. An operation that starts with its group's `commit` returns false until then.
    fn is_ready(&self) -> bool {
        true
    }

    /// Access to the concrete type, to find the operation again.
    fn as_any(&mut self) -> &mut dyn std::any::Any;
}

impl Warp {
    /// A warp that has executed nothing.
    pub(crate) fn new(index: usize, lanes: Lanes, registers: usize, local_bytes: u32) -> Warp {
        Warp {
            index,
            live: lanes,
            registers: vec![[0; WARP]; registers],
            defined: vec![Lanes::NONE; registers],
            unknown: HashMap::new(),
            local: LocalMemory::new(local_bytes as usize),
            tickets: [0; WARP],
            pending: HashMap::new(),
            carry: Lanes::NONE,
            copies: Copies::default(),
            fences: Fences::default(),
            executed: 0,
            max_registers: 0,
            matrices: Matrices::default(),
            cycles: Cycles::default(),
        }
    }
}

impl Cta {
    /// A CTA whose threads have executed nothing.
    pub(crate) fn new(id: [u32; 3], threads: u32, grid: &Grid) -> Cta {
        Cta {
            id,
            shared: SharedMemory::new(grid.total_shared_bytes as usize, grid.allow_uninitialised),
            barriers: Barriers::default(),
            mbarriers: Mbarriers::default(),
            warpgroups: Warpgroups::default(),
            live_threads: threads,
        }
    }
}

impl Cluster {
    /// A cluster of these CTAs, each with a block of this shape.
    pub(crate) fn new(id: [u32; 3], ctas: Vec<Cta>, block: [u32; 3]) -> Cluster {
        let clocks = Clocks::new(ctas.len(), block);
        Cluster {
            id,
            ctas,
            barrier: ClusterBarrier::default(),
            published: Published::default(),
            global: GlobalState::default(),
            in_flight: VecDeque::new(),
            bulk_groups: BulkGroups::default(),
            events: 0,
            progress: Progress::default(),
            clocks,
            counters: Counters::default(),
        }
    }

    /// Records that lanes of a warp exited: barriers no longer wait for them.
    pub(crate) fn ended(&mut self, rank: usize, warp: usize, lanes: Lanes) {
        self.ctas[rank].live_threads -= lanes.count();
        instructions::exited(self, rank, warp, lanes);
        self.progress.changed();
        self.happened();
    }

    /// Must be called after each event that may release a waiting lane: a barrier completed, an mbarrier changed phase, data arrived.
    pub(crate) fn happened(&mut self) {
        self.events += 1;
    }
}

impl GlobalState {
    /// A state without accesses.
    pub(crate) fn new(grid: &Grid) -> GlobalState {
        let shadow = grid.record.as_ref().map(|_| Shadow::new(View::AsyncGlobal));
        GlobalState { published: Published::default(), shadow }
    }

    /// Records and checks a read of these bytes of an allocation.
    pub(crate) fn read(
        &mut self,
        (grid, clocks, allocation): (&Grid, &Clocks, &Allocation),
        agent: Agent<'_>,
        range: Range<u64>,
        touch: Touch,
        element: u32,
    ) -> Result<(), FaultKind> {
        let Some(shadow) = &mut self.shadow else { return Ok(()) };
        if allocation.is_read_only() {
            return Ok(());
        }
        shadow.read(agent, clocks, range, touch).map_err(|conflict| grid.race(&conflict, clocks, touch, element))
    }

    /// Records and checks a write of these bytes of an allocation. `unchanged(range)` returns whether the write leaves the bytes of a range
    /// unchanged.
    pub(crate) fn write(
        &mut self,
        (grid, clocks, allocation): (&Grid, &Clocks, &Allocation),
        agent: Agent<'_>,
        range: Range<u64>,
        (touch, element): (Touch, u32),
        unchanged: impl Fn(&Range<u64>) -> bool,
    ) -> Result<(), FaultKind> {
        let Some(shadow) = &mut self.shadow else { return Ok(()) };
        if let Some(record) = &grid.record {
            for address in [range.start, range.end - 1] {
                if shadow.is_first_write(address) {
                    record.before_write(allocation, address);
                }
            }
        }
        shadow.write(agent, clocks, range, touch, unchanged).map_err(|conflict| grid.race(&conflict, clocks, touch, element))
    }
}

impl Grid {
    /// The value of a special register in each lane.
    pub(crate) fn special(&self, special: Special, cluster: &Cluster, rank: usize, warp: &Warp) -> Row {
        let first = warp.index * WARP;
        let [width, height, _] = self.block.map(|extent| extent as usize);
        let each = |value: u64| [value; WARP];
        let lanes = |value: &dyn Fn(usize) -> u64| std::array::from_fn(value);
        let cta = &cluster.ctas[rank];
        let in_cluster = |axis: usize| u64::from(cta.id[axis] % self.cluster[axis]);
        let mask = |lane: usize| 1u64 << lane;
        match special {
            Special::Tid(0) => lanes(&|lane| ((first + lane) % width) as u64),
            Special::Tid(1) => lanes(&|lane| ((first + lane) / width % height) as u64),
            Special::Tid(_) => lanes(&|lane| ((first + lane) / width / height) as u64),
            Special::Ntid(axis) => each(u64::from(self.block[axis])),
            Special::Ctaid(axis) => each(u64::from(cta.id[axis])),
            Special::Nctaid(axis) => each(u64::from(self.grid[axis])),
            Special::LaneId => lanes(&|lane| lane as u64),
            Special::WarpId => each(warp.index as u64),
            Special::NumWarps => each(u64::from(self.block.iter().product::<u32>().div_ceil(WARP as u32))),
            Special::SmId => each(u64::from((cta.id[0] + self.grid[0] * (cta.id[1] + self.grid[1] * cta.id[2])) % self.num_sms)),
            Special::NumSms => each(u64::from(self.num_sms)),
            Special::GridId => each(1),
            Special::LaneMaskEq => lanes(&mask),
            Special::LaneMaskLt => lanes(&|lane| mask(lane) - 1),
            Special::LaneMaskLe => lanes(&|lane| (mask(lane) - 1) | mask(lane)),
            Special::LaneMaskGt => lanes(&|lane| u64::from(!(((mask(lane) - 1) | mask(lane)) as u32))),
            Special::LaneMaskGe => lanes(&|lane| u64::from(!((mask(lane) - 1) as u32))),
            Special::Clock => each(warp.executed & 0xffff_ffff),
            Special::Clock64 | Special::GlobalTimer => each(warp.executed),
            Special::DynamicSharedBytes => each(u64::from(self.dynamic_shared_bytes)),
            Special::TotalSharedBytes => each(u64::from(self.total_shared_bytes)),
            Special::IsExplicitCluster => each(u64::from(self.is_explicit_cluster)),
            Special::ClusterId(axis) => each(u64::from(cluster.id[axis])),
            Special::NumClusters(axis) => each(u64::from(self.grid[axis] / self.cluster[axis])),
            Special::ClusterCtaId(axis) => each(in_cluster(axis)),
            Special::ClusterNumCtas(axis) => each(u64::from(self.cluster[axis])),
            Special::ClusterCtaRank => each(rank as u64),
            Special::ClusterNumCtaRank => each(u64::from(self.cluster.iter().product::<u32>())),
        }
    }

    /// The index of the cluster with this number, and the index of its CTA of this rank.
    pub(crate) fn cta(&self, cluster: u64, rank: u32) -> ([u32; 3], [u32; 3]) {
        let clusters: [u64; 3] = std::array::from_fn(|axis| u64::from(self.grid[axis] / self.cluster[axis]));
        let id = [cluster % clusters[0], cluster / clusters[0] % clusters[1], cluster / clusters[0] / clusters[1]].map(|id| id as u32);
        let [width, height, _] = self.cluster;
        let inside = [rank % width, rank / width % height, rank / width / height];
        (id, std::array::from_fn(|axis| id[axis] * self.cluster[axis] + inside[axis]))
    }

    /// The fault of an access to global memory that is not ordered after an earlier access.
    pub(crate) fn race(&self, conflict: &Conflict, clocks: &Clocks, touch: Touch, element_bytes: u32) -> FaultKind {
        let (offset, allocation) = self.global.locate(conflict.address);
        FaultKind::GlobalRace {
            address: conflict.address,
            element: offset / u64::from(element_bytes.max(1)),
            element_bytes: element_bytes as u8,
            allocation: allocation.into(),
            access: touch.name,
            other_access: conflict.touch.name,
            other_cta: self.cta(conflict.cluster.into(), clocks.rank(conflict.warp) as u32).1,
            other_thread: clocks.thread(conflict.warp, conflict.lane),
            other_line: conflict.touch.line,
            hint: conflict.hint,
        }
    }

    /// The index of a thread in its CTA.
    pub(crate) fn thread(&self, warp: usize, lane: usize) -> [u32; 3] {
        let linear = (warp * WARP + lane) as u32;
        let [width, height, _] = self.block;
        [linear % width, linear / width % height, linear / width / height]
    }
}
