//! Vector clocks over the threads of a cluster. They decide whether one access happens before another.
//!
//! Each warp has a time. The time advances after each release by one of the warp's lanes. An access is identified by its thread and the
//! warp's time. The access happens before an operation of another thread if the other thread's clock for this thread is at least that time.
//! Barriers ([`Clocks::barrier`]) and pairs of a release and an acquire pass clocks on.
//!
//! The async proxy sees a write of the generic proxy only after a proxy fence. Each thread therefore has two more clocks: the one at its
//! last `fence.proxy.async` for shared memory, and the same for global memory. Both include the fences that the thread learned of from
//! other threads ([`View`]).
//!
//! A `fence.sc` need not be adjacent to the store that other threads read, nor to their load. All such fences have one order: an operation
//! before one fence in causality order, by a barrier or otherwise, is known after a later fence ("Fence-SC order"). The order is only
//! inferred from a store that was read between the two fences. Two more clocks are therefore propagated: the one at the last such fence,
//! and the one that such a store showed.
//!
//! Each cluster has its own clocks. A release to global memory reaches other clusters as [`Released`], which has a clock for each cluster.
//!
//! Sources: Mattern, "Virtual Time and Global States of Distributed Systems" (1988), for vector clocks; Flanagan and Freund, "FastTrack:
//! Efficient and Precise Dynamic Race Detection" (PLDI 2009), for the observation that most accesses need the time of only one thread; PTX
//! ISA, "Memory Consistency Model", for the order itself.

use std::cell::Cell;
use std::sync::Arc;

use crate::lanes::{Lanes, WARP};
use crate::memory::vector_clock::{Clusters, VectorClock, join_clusters};

/// The clocks of all threads of a cluster. Warps are numbered through the cluster: `rank * warps of a CTA + warp`.
pub(crate) struct Clocks {
    /// The number of the cluster in the grid.
    cluster: u32,
    warps: Vec<WarpClock>,
    block: [u32; 3],
    warps_of_a_cta: usize,
    /// For each queue of each warp: the time of the last operation, and the lanes that issued an operation at that time.
    issued: Vec<(u32, Lanes)>,
    tracked: u64,
    /// The last join for each view. The lanes of a warp mostly join the same clocks, so the result is reused.
    last_joins: [Option<[Arc<VectorClock>; 3]>; VIEWS],
}

/// A snapshot of a thread's clocks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stamp {
    /// Indexed by [`View`].
    views: [Arc<VectorClock>; VIEWS],
}

/// The clocks that a release publishes to threads of any cluster. A [`Stamp`] holds those of one cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Released {
    /// Indexed by [`View`].
    views: [Clusters; VIEWS],
}

/// The kinds of clocks of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum View {
    /// Operations that happen before.
    Known,
    /// Writes to shared memory that a proxy fence made visible to the async proxy.
    AsyncShared,
    /// Writes to global memory that a proxy fence made visible to the async proxy.
    AsyncGlobal,
    /// Operations that happen before the last known `fence.sc` of GPU scope.
    Sequenced,
    /// Operations before `fence.sc` of other threads, as learned from atomics and flags that this thread read. They are known from this
    /// thread's next `fence.sc` on.
    Observed,
}

const VIEWS: usize = 5;

/// The originator of an access.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Agent<'a> {
    /// A thread.
    Thread { warp: usize, lane: usize },
    /// An asynchronous operation.
    Async(&'a Operation),
}

/// An asynchronous operation: its issuer, the issuer's clocks at the time of issue, and the identity of its accesses.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) warp: usize,
    pub(crate) proxy: Proxy,
    stamp: Stamp,
    moment: Moment,
}

/// The proxy of an access (PTX ISA, "Proxies").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Proxy {
    /// Loads, stores, `cp.async`.
    Generic,
    /// Bulk copies, `wgmma`.
    Async,
}

/// The mechanism that reports the completion of an asynchronous operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queue {
    /// `cp.async`: operations of a thread complete in order.
    Copy,
    /// The reads of bulk copies in bulk groups: operations of a thread complete in order.
    Bulk,
    /// `wgmma`: operations of a thread complete in order.
    Matrix,
    /// An mbarrier: operations complete in any order.
    Mbarrier,
    /// The writes of bulk copies in bulk groups: operations of a thread complete in order.
    BulkWrite,
}

/// The identity of an access: its originator, and the originator's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// Lanes of a warp, or the operations in a queue of these lanes, at one time.
    Lanes { row: u32, lanes: Lanes, time: u32 },
    /// An operation that an mbarrier tracks: its number and its issuer.
    Tracked { number: u64, warp: u16, lane: u8 },
}

/// The reason why two accesses are not ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unordered {
    /// The earlier access, by this lane, does not happen before the later one.
    Unknown { warp: usize, lane: usize },
    /// The later access is not ordered after the completion of the asynchronous operation.
    NotWaited { warp: usize, lane: usize },
    /// The earlier access happens before the later one, but no proxy fence makes its write visible.
    NotFenced { warp: usize, lane: usize },
}

/// The clocks of a warp's lanes: one copy as long as all lanes have the same clock.
enum Shared {
    All(Arc<VectorClock>),
    Each(Box<[Arc<VectorClock>; WARP]>),
}

struct WarpClock {
    time: Cell<u32>,
    /// Whether the warp has released at this time, or passed a barrier or fence. If so, its next access advances the time. The time does not
    /// advance at the release itself: more accesses then have the same time and are recorded together, and lanes that release one after the
    /// other release one time, which keeps clocks small.
    is_over: Cell<bool>,
    /// Indexed by [`View`].
    views: [Shared; VIEWS],
    /// Lanes without a thread. They never execute, so all their operations count as known.
    absent: Lanes,
}

impl Clocks {
    /// Clocks for this number of CTAs with a block of this shape.
    pub(crate) fn new(ctas: usize, block: [u32; 3]) -> Clocks {
        let threads = block.iter().product::<u32>() as usize;
        let warps_of_a_cta = threads.div_ceil(WARP);
        let nothing = Arc::new(VectorClock::default());
        let warps = (0..ctas * warps_of_a_cta).map(|warp| WarpClock {
            time: Cell::new(1),
            is_over: Cell::new(false),
            views: std::array::from_fn(|_| Shared::All(nothing.clone())),
            absent: Lanes::ALL.without(Lanes::first(threads - warp % warps_of_a_cta * WARP)),
        });
        Clocks { cluster: 0, warps: warps.collect(), block, warps_of_a_cta, issued: Vec::new(), tracked: 0, last_joins: Default::default() }
    }

    /// Sets the number of the cluster. The default is the first cluster.
    pub(crate) fn of_cluster(self, cluster: u32) -> Clocks {
        Clocks { cluster, ..self }
    }

    /// The number of the cluster in the grid.
    pub(crate) fn cluster(&self) -> u32 {
        self.cluster
    }

    /// The rank of a warp's CTA in the cluster.
    pub(crate) fn rank(&self, warp: usize) -> usize {
        warp / self.warps_of_a_cta
    }

    /// The number of a warp in its cluster.
    pub(crate) fn warp(&self, rank: usize, warp: usize) -> usize {
        rank * self.warps_of_a_cta + warp
    }

    /// The index of a thread in its CTA.
    pub(crate) fn thread(&self, warp: usize, lane: usize) -> [u32; 3] {
        let linear = (warp % self.warps_of_a_cta * WARP + lane) as u32;
        let [width, height, _] = self.block;
        [linear % width, linear / width % height, linear / width / height]
    }

    /// Whether two warps belong to one CTA.
    pub(crate) fn same_cta(&self, warp: usize, other: usize) -> bool {
        self.rank(warp) == self.rank(other)
    }

    /// A barrier: orders all earlier operations of the participants before all their later ones.
    pub(crate) fn barrier(&mut self, participants: &[(usize, Lanes)]) {
        let times: Vec<_> = participants.iter().map(|&(warp, _)| self.warps[warp].time.get()).collect();
        for view in 0..VIEWS {
            let mut all = Union::default();
            for &(warp, lanes) in participants {
                self.warps[warp].views[view].each(lanes, |vector_clock| all.add(vector_clock));
            }
            let mut all = all.all();
            if view == View::Known as usize {
                let known = Arc::make_mut(&mut all);
                for (&(warp, lanes), &time) in participants.iter().zip(&times) {
                    known.learn(warp, lanes.or(self.warps[warp].absent), time);
                }
            }
            for &(warp, lanes) in participants {
                let clock = &mut self.warps[warp];
                clock.views[view].set(lanes.or(clock.absent), &all);
                clock.is_over.set(true);
            }
        }
    }

    /// A release: returns the clocks that an acquire of this thread's earlier operations joins.
    pub(crate) fn release(&mut self, warp: usize, lane: usize) -> Stamp {
        let clock = &mut self.warps[warp];
        let mut views = clock.views.each_ref().map(|view| view.of(lane).clone());
        Arc::make_mut(&mut views[View::Known as usize]).learn(warp, Lanes::of(lane), clock.time.get());
        clock.is_over.set(true);
        Stamp { views }
    }

    /// An acquire: joins the clocks of a release.
    pub(crate) fn acquire(&mut self, warp: usize, lane: usize, stamp: &Stamp) {
        let clock = &mut self.warps[warp];
        for ((view, other), last) in clock.views.iter_mut().zip(&stamp.views).zip(&mut self.last_joins) {
            if other.is_empty() {
                continue;
            }
            let joined = join(view.of(lane), other, last);
            view.set(Lanes::of(lane), &joined);
        }
    }

    /// A `fence.sc` of GPU scope by a thread.
    pub(crate) fn fence_sequential(&mut self, warp: usize, lane: usize) {
        let clock = &mut self.warps[warp];
        let observed = clock.views[View::Observed as usize].of(lane);
        let known = join(clock.views[View::Known as usize].of(lane), observed, &mut self.last_joins[View::Observed as usize]);
        clock.views[View::Known as usize].set(Lanes::of(lane), &known);
        let mut sequenced = known;
        Arc::make_mut(&mut sequenced).learn(warp, Lanes::of(lane), clock.time.get());
        clock.is_over.set(true);
        clock.views[View::Sequenced as usize].set(Lanes::of(lane), &sequenced);
    }

    /// The clock at the last `fence.sc` of GPU scope that a thread knows of, for threads that read the value that this thread stores now.
    pub(crate) fn sequenced(&self, warp: usize, lane: usize) -> Option<Stamp> {
        let sequenced = self.warps[warp].views[View::Sequenced as usize].of(lane);
        let mut stamp = Stamp::default();
        stamp.views[View::Known as usize] = sequenced.clone();
        (!sequenced.is_empty()).then_some(stamp)
    }

    /// Joins the clock at a `fence.sc` of another thread, after a read of a value that was stored after that fence.
    pub(crate) fn observe(&mut self, warp: usize, lane: usize, stamp: &Stamp) {
        let view = &mut self.warps[warp].views[View::Observed as usize];
        let observed = join(view.of(lane), &stamp.views[View::Known as usize], &mut self.last_joins[View::Observed as usize]);
        view.set(Lanes::of(lane), &observed);
    }

    /// Converts a release in this cluster for readers in any cluster.
    pub(crate) fn spread(&self, stamp: &Stamp) -> Released {
        Released { views: stamp.views.each_ref().map(|view| view.spread(self.cluster)) }
    }

    /// Converts a release of any cluster for a reader in this cluster.
    pub(crate) fn gathered(&self, released: &Released) -> Stamp {
        Stamp { views: released.views.each_ref().map(|view| VectorClock::gathered(view, self.cluster)) }
    }

    /// `fence.proxy.async`: makes the operations of these threads, and all operations known to them, visible to the async proxy, in the
    /// memories of these views.
    ///
    /// Each of the threads then counts every write that any of them fenced as fenced. This hides no access that is not ordered after the
    /// write: [`Clocks::order`] checks that order first, by the thread's own clock.
    pub(crate) fn fence_proxy_async(&mut self, warp: usize, lanes: Lanes, spaces: &[View]) {
        let clock = &mut self.warps[warp];
        for &space in spaces {
            let mut fenced = Union::default();
            clock.views[space as usize].each(lanes, |vector_clock| fenced.add(vector_clock));
            clock.views[View::Known as usize].each(lanes, |vector_clock| fenced.add(vector_clock));
            let mut fenced = fenced.all();
            Arc::make_mut(&mut fenced).learn(warp, lanes.or(clock.absent), clock.time.get());
            clock.views[space as usize].set(lanes, &fenced);
        }
        clock.is_over.set(true);
    }

    /// A thread issues an asynchronous operation. All earlier operations known to the thread happen before the operation.
    pub(crate) fn issue(&mut self, warp: usize, lane: usize, proxy: Proxy, queue: Queue) -> Operation {
        let stamp = self.release(warp, lane);
        let moment = match queue {
            Queue::Mbarrier => {
                self.tracked += 1;
                Moment::Tracked { number: self.tracked, warp: warp as u16, lane: lane as u8 }
            }
            Queue::Copy | Queue::Bulk | Queue::Matrix | Queue::BulkWrite => {
                // The rows of queues follow the rows of warps, as if each queue were a warp.
                let row = self.warps.len() * queue as usize + warp;
                self.issued.resize(self.issued.len().max(row + 1), (0, Lanes::ALL));
                let (time, lanes) = &mut self.issued[row];
                // The lanes of an instruction issue at one time, so that their accesses are recorded together.
                if lanes.has(lane) {
                    (*time, *lanes) = (*time + 1, Lanes::NONE);
                }
                *lanes = lanes.or(Lanes::of(lane));
                Moment::Lanes { row: (self.warps.len() + row) as u32, lanes: Lanes::of(lane), time: *time }
            }
        };
        Operation { warp, proxy, stamp, moment }
    }

    /// The identity of the agent's current access.
    pub(crate) fn moment(&self, agent: Agent<'_>) -> Moment {
        match agent {
            Agent::Thread { warp, lane } => {
                let clock = &self.warps[warp];
                if clock.is_over.replace(false) {
                    clock.time.set(clock.time.get() + 1);
                }
                Moment::Lanes { row: warp as u32, lanes: Lanes::of(lane), time: clock.time.get() }
            }
            Agent::Async(operation) => operation.moment,
        }
    }

    /// Checks that an earlier access of a thread of this cluster happens before the agent's current access. With `needs_fence`, a proxy
    /// fence must also have made it visible to the async proxy.
    pub(crate) fn order(&self, cluster: u32, earlier: Moment, agent: Agent<'_>, needs_fence: Option<View>) -> Result<(), Unordered> {
        let fence = needs_fence.unwrap_or(View::Known) as usize;
        let (known, fenced, own) = match agent {
            Agent::Thread { warp, lane } => {
                let views = &self.warps[warp].views;
                (views[View::Known as usize].of(lane), views[fence].of(lane), Some((warp as u32, Lanes::of(lane))))
            }
            Agent::Async(operation) if cluster == self.cluster && operation.moment == earlier => return Ok(()),
            Agent::Async(operation) => (&operation.stamp.views[View::Known as usize], &operation.stamp.views[fence], None),
        };
        if cluster == self.cluster {
            return self.known_of(earlier, known, fenced, own, needs_fence.is_some());
        }
        let nothing = VectorClock::default();
        let known = known.of_cluster(cluster).map_or(&nothing, |known| &**known);
        let fenced = fenced.of_cluster(cluster).map_or(&nothing, |fenced| &**fenced);
        self.known_of(earlier, known, fenced, None, needs_fence.is_some())
    }

    /// The same check, given the known clocks of the earlier access's cluster; `own` is the row and the lane of the thread itself.
    fn known_of(
        &self,
        earlier: Moment,
        known: &VectorClock,
        fenced: &VectorClock,
        own: Option<(u32, Lanes)>,
        needs_fence: bool,
    ) -> Result<(), Unordered> {
        match earlier {
            Moment::Lanes { row, lanes, time } => {
                let others = match own {
                    Some((own_row, own_lane)) if own_row == row => lanes.without(own_lane),
                    _ => lanes,
                };
                let warp = row as usize % self.warps.len();
                if let Some(lane) = known.first_unknown(row as usize, others, time) {
                    let is_thread = (row as usize) < self.warps.len();
                    return Err(if is_thread { Unordered::Unknown { warp, lane } } else { Unordered::NotWaited { warp, lane } });
                }
                match fenced.first_unknown(row as usize, if needs_fence { others } else { Lanes::NONE }, time) {
                    Some(lane) => Err(Unordered::NotFenced { warp, lane }),
                    None => Ok(()),
                }
            }
            Moment::Tracked { number, .. } if known.knows_operation(number) => Ok(()),
            Moment::Tracked { warp, lane, .. } => Err(Unordered::NotWaited { warp: warp.into(), lane: lane.into() }),
        }
    }
}

impl Stamp {
    /// Joins the clocks of another stamp.
    pub(crate) fn join(&mut self, other: &Stamp) {
        for (own, other) in self.views.iter_mut().zip(&other.views) {
            if own.is_empty() {
                own.clone_from(other);
            } else if !Arc::ptr_eq(own, other) && !other.is_empty() {
                Arc::make_mut(own).join(other);
            }
        }
    }
}

impl Released {
    /// Joins the clocks of another release.
    pub(crate) fn join(&mut self, other: &Released) {
        self.views.iter_mut().zip(&other.views).for_each(|(own, other)| join_clusters(own, other));
    }
}

impl Operation {
    /// The clocks that a wait for this operation joins: only the completion of the operation. The clocks of the issuer are not included.
    pub(crate) fn done(&self) -> Stamp {
        let mut known = VectorClock::default();
        match self.moment {
            Moment::Lanes { row, lanes, time } => known.learn(row as usize, lanes, time),
            Moment::Tracked { number, .. } => known.learn_operation(number),
        }
        let mut stamp = Stamp::default();
        stamp.views[View::Known as usize] = Arc::new(known);
        stamp
    }
}

impl Shared {
    fn of(&self, lane: usize) -> &Arc<VectorClock> {
        match self {
            Shared::All(vector_clock) => vector_clock,
            Shared::Each(lanes) => &lanes[lane],
        }
    }

    /// Visits the clocks of these lanes. A clock that all lanes share is visited once.
    fn each<'a>(&'a self, lanes: Lanes, mut visit: impl FnMut(&'a Arc<VectorClock>)) {
        match self {
            Shared::All(vector_clock) => visit(vector_clock),
            Shared::Each(each) => lanes.into_iter().for_each(|lane| visit(&each[lane])),
        }
    }

    fn set(&mut self, lanes: Lanes, vector_clock: &Arc<VectorClock>) {
        if lanes == Lanes::ALL {
            *self = Shared::All(vector_clock.clone());
            return;
        }
        if let Shared::All(all) = self {
            if Arc::ptr_eq(all, vector_clock) {
                return;
            }
            *self = Shared::Each(Box::new(std::array::from_fn(|_| all.clone())));
        }
        if let Shared::Each(each) = self {
            lanes.into_iter().for_each(|lane| each[lane].clone_from(vector_clock));
            if each.iter().all(|own| Arc::ptr_eq(own, vector_clock)) {
                *self = Shared::All(vector_clock.clone());
            }
        }
    }
}

/// Joins two clocks; `last` caches the two inputs and the result of the previous join.
fn join(own: &Arc<VectorClock>, other: &Arc<VectorClock>, last: &mut Option<[Arc<VectorClock>; 3]>) -> Arc<VectorClock> {
    if Arc::ptr_eq(own, other) || other.is_empty() {
        return own.clone();
    }
    if own.is_empty() {
        return other.clone();
    }
    if let Some([left, right, result]) = last
        && Arc::ptr_eq(left, own)
        && Arc::ptr_eq(right, other)
    {
        return result.clone();
    }
    let mut result = own.clone();
    Arc::make_mut(&mut result).join(other);
    *last = Some([own.clone(), other.clone(), result.clone()]);
    result
}

/// A join of many clocks, most of which are equal.
#[derive(Default)]
struct Union {
    all: Option<Arc<VectorClock>>,
    last: Option<*const VectorClock>,
}

impl Union {
    fn add(&mut self, vector_clock: &Arc<VectorClock>) {
        if self.last == Some(Arc::as_ptr(vector_clock)) || vector_clock.is_empty() {
            return;
        }
        self.last = Some(Arc::as_ptr(vector_clock));
        match &mut self.all {
            None => self.all = Some(vector_clock.clone()),
            Some(all) => Arc::make_mut(all).join(vector_clock),
        }
    }

    fn all(self) -> Arc<VectorClock> {
        self.all.unwrap_or_default()
    }
}
