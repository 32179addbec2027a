//! What a launch is made of while it runs: the grid, clusters of CTAs, warps.

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

/// What is the same for all threads of a launch.
pub(crate) struct Grid {
    /// The memory that the launch may touch.
    pub(crate) global: GlobalView,
    /// The bytes of the kernel's parameters.
    pub(crate) params: Vec<u8>,
    /// The memory among them, for faults.
    pub(crate) arguments: Arguments,
    /// CTAs along each axis.
    pub(crate) grid: [u32; 3],
    /// Threads along each axis.
    pub(crate) block: [u32; 3],
    /// CTAs of a cluster along each axis.
    pub(crate) cluster: [u32; 3],
    /// Was a cluster asked for?
    pub(crate) is_explicit_cluster: bool,
    pub(crate) dynamic_shared_bytes: u32,
    pub(crate) total_shared_bytes: u32,
    pub(crate) num_sms: u32,
    /// May memory be read that nobody wrote?
    pub(crate) allow_uninitialised: bool,
    /// What is kept to find races in global memory; none where they are allowed.
    pub(crate) record: Option<LaunchRecord>,
}

/// A warp: registers of its 32 lanes, and which of them still run.
pub(crate) struct Warp {
    /// Its number in its CTA.
    pub(crate) index: usize,
    /// Lanes that exist and did not exit.
    pub(crate) live: Lanes,
    /// By [`Register`].
    pub(crate) registers: Vec<Row>,
    /// Lanes in which a register was written.
    pub(crate) defined: Vec<Lanes>,
    /// Registers of lanes that were written with a value that nobody knows. Looked up only where the register is not `defined`.
    pub(crate) unknown: HashMap<(Register, usize), Unknown>,
    /// Lanes whose carry flag is set (`CC.CF`): PTX ISA, 9.7.2.
    pub(crate) carry: Lanes,
    /// Local memory of each lane.
    pub(crate) local: LocalMemory,
    /// What a lane that waits has been promised: 0, or a ticket of the instruction it waits in. Only that instruction reads it.
    pub(crate) tickets: [u64; WARP],
    /// Registers of matrix instructions in flight, and the lanes for which they may not be touched.
    pub(crate) pending: HashMap<Register, Lanes>,
    /// Copies of `cp.async` that were not waited for.
    pub(crate) copies: Copies,
    /// What its fences order.
    pub(crate) fences: Fences,
    /// Instructions executed.
    pub(crate) executed: u64,
    /// The limit of registers a `setmaxnreg` left it.
    pub(crate) max_registers: u32,
    /// Matrix products in flight.
    pub(crate) matrices: Matrices,
    /// What its lanes repeat.
    pub(crate) cycles: Cycles,
}

/// A CTA: what its threads share.
pub(crate) struct Cta {
    /// Its index in the grid.
    pub(crate) id: [u32; 3],
    pub(crate) shared: SharedMemory,
    /// The 16 barriers of `bar`; the family that executes them says what is in it.
    pub(crate) barriers: Barriers,
    /// The mbarrier objects in its shared memory.
    pub(crate) mbarriers: Mbarriers,
    /// What its warpgroups do together.
    pub(crate) warpgroups: Warpgroups,
    /// Threads that did not exit.
    pub(crate) live_threads: u32,
}

/// CTAs that can reach each other's shared memory: most often one alone.
pub(crate) struct Cluster {
    /// Its index in the grid of clusters.
    pub(crate) id: [u32; 3],
    /// By rank.
    pub(crate) ctas: Vec<Cta>,
    /// The barrier of `barrier.cluster`.
    pub(crate) barrier: ClusterBarrier,
    /// What was released in shared memory.
    pub(crate) published: Published,
    /// What accesses to global memory left for later ones.
    pub(crate) global: GlobalState,
    /// Asynchronous operations in flight, oldest first. The scheduler completes them at a time of its choice, and so may an
    /// instruction that waits for one.
    pub(crate) in_flight: VecDeque<InFlight>,
    /// The bulk groups of its threads.
    pub(crate) bulk_groups: BulkGroups,
    /// Counts what may set a waiting lane free.
    pub(crate) events: u64,
    /// How often something has changed that lanes may look at.
    pub(crate) progress: Progress,
    /// Which thread knows of which, for races.
    pub(crate) clocks: Clocks,
    pub(crate) counters: Counters,
}

/// What accesses to global memory left for later ones, of this cluster and of those that run in turns with it.
#[derive(Default)]
pub(crate) struct GlobalState {
    /// What was released there.
    pub(crate) published: Published,
    /// For races; none where they are allowed.
    pub(crate) shadow: Option<Shadow>,
}

/// An asynchronous operation, and who issued it.
pub(crate) struct InFlight {
    pub(crate) issuer: Issuer,
    pub(crate) operation: Box<dyn AsyncOperation>,
}

/// Who issued an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Issuer {
    /// Rank of the CTA in its cluster.
    pub(crate) rank: usize,
    pub(crate) warp: usize,
    pub(crate) lane: usize,
    /// The instruction, by its place in the program, for messages.
    pub(crate) step: u32,
}

/// Something that happens later than the instruction that asks for it.
pub(crate) trait AsyncOperation: Send {
    /// Makes it happen.
    fn complete(&mut self, cluster: &mut Cluster, grid: &Grid, issuer: Issuer) -> Result<(), Trap>;

    /// May it happen now, by itself? An operation that only starts with its group's `commit` says no until then.
    fn is_ready(&self) -> bool {
        true
    }

    /// To find it again.
    fn as_any(&mut self) -> &mut dyn std::any::Any;
}

impl Warp {
    /// A warp whose lanes have done nothing.
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
    /// A CTA whose threads have done nothing.
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
    /// A cluster of these CTAs, each of that many threads.
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

    /// Lanes of a warp exited: barriers no longer wait for them.
    pub(crate) fn ended(&mut self, rank: usize, warp: usize, lanes: Lanes) {
        self.ctas[rank].live_threads -= lanes.count();
        instructions::exited(self, rank, warp, lanes);
        self.progress.changed();
        self.happened();
    }

    /// To be called when something happened that may set a waiting lane free: a barrier completed, an mbarrier changed phase, data arrived.
    pub(crate) fn happened(&mut self) {
        self.events += 1;
    }
}

impl GlobalState {
    /// Nothing was done yet.
    pub(crate) fn new(grid: &Grid) -> GlobalState {
        let shadow = grid.record.as_ref().map(|_| Shadow::new(View::AsyncGlobal));
        GlobalState { published: Published::default(), shadow }
    }

    /// An agent reads these bytes of an allocation.
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

    /// An agent writes these bytes of an allocation; `unchanged(range)` says whether it leaves some of them as they are.
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

    /// The index of the cluster of that number, and of its CTA of that rank.
    pub(crate) fn cta(&self, cluster: u64, rank: u32) -> ([u32; 3], [u32; 3]) {
        let clusters: [u64; 3] = std::array::from_fn(|axis| u64::from(self.grid[axis] / self.cluster[axis]));
        let id = [cluster % clusters[0], cluster / clusters[0] % clusters[1], cluster / clusters[0] / clusters[1]].map(|id| id as u32);
        let [width, height, _] = self.cluster;
        let inside = [rank % width, rank / width % height, rank / width / height];
        (id, std::array::from_fn(|axis| id[axis] * self.cluster[axis] + inside[axis]))
    }

    /// The fault of an access to global memory that is not ordered after another one.
    pub(crate) fn race(&self, conflict: &Conflict, clocks: &Clocks, touch: Touch, element_bytes: u32) -> FaultKind {
        let (offset, allocation) = self.global.place(conflict.address);
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
