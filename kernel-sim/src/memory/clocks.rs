//! Which thread knows of which: vector clocks over the threads of a cluster, which say whether two accesses are ordered.
//!
//! Each warp has a time, which advances whenever one of its lanes lets others know what it did. An access is named by its thread and
//! the warp's time then; it is ordered before another thread if that thread *knows* of it, that is of all that its thread did up to
//! a later or the same time. Knowledge is spread by barriers ([`Clocks::barrier`]) and by pairs of a release and an acquire.
//!
//! What was written in the generic proxy is seen in the async proxy after a proxy fence only, so there are two more kinds of knowledge:
//! what was known at the last `fence.proxy.async` for shared memory, and at the last one for global memory; one's own or that of one
//! who spread it ([`View`]).
//!
//! A `fence.sc` need not stand beside the store that others see, nor beside their load: all such fences have one order, and what is before
//! one of them in the causality order, by a barrier or otherwise, is known behind a later one ("Fence-SC order"). The order is
//! only taken from a store that was seen between the two, so two more kinds of knowledge are carried along: what was before a fence, and
//! what such a store showed.
//!
//! Each cluster has clocks of its own. What is released in global memory reaches other clusters as [`Released`], which says of each cluster
//! what is known of its threads.
//!
//! Vector clocks: Mattern, "Virtual Time and Global States of Distributed Systems" (1988); that most accesses need the time of one
//! thread only: Flanagan and Freund, "FastTrack: Efficient and Precise Dynamic Race Detection" (PLDI 2009). The order itself: PTX ISA,
//! "Memory Consistency Model".

use std::cell::Cell;
use std::sync::Arc;

use crate::lanes::{Lanes, WARP};
use crate::memory::knowledge::{Clusters, Knowledge, join_clusters};

/// Clocks of all threads of a cluster. Warps are numbered through the cluster: `rank * warps of a CTA + warp`.
pub(crate) struct Clocks {
    /// The number of the cluster in the grid.
    cluster: u32,
    warps: Vec<WarpClock>,
    block: [u32; 3],
    warps_of_a_cta: usize,
    /// In each queue of each warp: the time of the last operation, and the lanes that issued one at that time.
    issued: Vec<(u32, Lanes)>,
    tracked: u64,
    /// The last knowledge of each kind that was put together: the lanes of a warp mostly learn the same from the same.
    last_joins: [Option<[Arc<Knowledge>; 3]>; VIEWS],
}

/// A copy of what a thread knew.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stamp {
    /// By [`View`].
    views: [Arc<Knowledge>; VIEWS],
}

/// What threads of any clusters let others know: the same as a [`Stamp`], which is of one cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Released {
    /// By [`View`].
    views: [Clusters; VIEWS],
}

/// The kinds of knowledge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum View {
    /// What happened before.
    Known,
    /// What a proxy fence made visible to the async proxy in shared memory.
    AsyncShared,
    /// The same in global memory.
    AsyncGlobal,
    /// What happened before a `fence.sc` of all the GPU that is itself known.
    Sequenced,
    /// What such fences elsewhere ordered, by atomics and flags that were seen; it is known from the next `fence.sc` on.
    Observed,
}

const VIEWS: usize = 5;

/// Who accesses memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Agent<'a> {
    /// A thread.
    Thread { warp: usize, lane: usize },
    /// An asynchronous operation.
    Async(&'a Operation),
}

/// An asynchronous operation: who issued it, what that thread knew then, and a name for its accesses.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) warp: usize,
    pub(crate) proxy: Proxy,
    stamp: Stamp,
    moment: Moment,
}

/// The way to memory that an access takes (PTX ISA, "Proxies").
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Proxy {
    /// Loads, stores, `cp.async`.
    Generic,
    /// Bulk copies, `wgmma`.
    Async,
}

/// How one learns that an asynchronous operation is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Queue {
    /// `cp.async`: done after all earlier ones of the thread.
    Copy,
    /// Bulk copies in bulk groups, as far as they read: done after all earlier ones of the thread.
    Bulk,
    /// `wgmma`: done after all earlier ones of the thread.
    Matrix,
    /// By an mbarrier: in any order.
    Mbarrier,
    /// Bulk copies in bulk groups, as far as they write: done after all earlier ones of the thread.
    BulkWrite,
}

/// Names an access: who, and that one's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// Lanes of a warp, or the operations of a queue of these lanes, at that time.
    Lanes { row: u32, lanes: Lanes, time: u32 },
    /// An operation that an mbarrier follows, by its number, and who issued it.
    Tracked { number: u64, warp: u16, lane: u8 },
}

/// Why two accesses are not ordered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unordered {
    /// The later one does not know of the earlier one by that lane.
    Unknown { warp: usize, lane: usize },
    /// It does not know that the asynchronous operation is done.
    NotWaited { warp: usize, lane: usize },
    /// It knows, but no proxy fence makes it see what was written.
    NotFenced { warp: usize, lane: usize },
}

/// What the lanes of a warp know; one copy as long as all know the same.
enum Shared {
    All(Arc<Knowledge>),
    Each(Box<[Arc<Knowledge>; WARP]>),
}

struct WarpClock {
    time: Cell<u32>,
    /// Was something let known at this time? Then it ends before the next access: accesses of the same time are found together more
    /// often, and the knowledge of lanes that release one after the other stays small.
    is_over: Cell<bool>,
    /// By [`View`].
    views: [Shared; VIEWS],
    /// Lanes without a thread: they never do anything, so all of it is known.
    absent: Lanes,
}

impl Clocks {
    /// Clocks for that many CTAs of that many threads along each axis.
    pub(crate) fn new(ctas: usize, block: [u32; 3]) -> Clocks {
        let threads = block.iter().product::<u32>() as usize;
        let warps_of_a_cta = threads.div_ceil(WARP);
        let nothing = Arc::new(Knowledge::default());
        let warps = (0..ctas * warps_of_a_cta).map(|warp| WarpClock {
            time: Cell::new(1),
            is_over: Cell::new(false),
            views: std::array::from_fn(|_| Shared::All(nothing.clone())),
            absent: Lanes::ALL.without(Lanes::first(threads - warp % warps_of_a_cta * WARP)),
        });
        Clocks { cluster: 0, warps: warps.collect(), block, warps_of_a_cta, issued: Vec::new(), tracked: 0, last_joins: Default::default() }
    }

    /// The same clocks for the cluster of that number; the first one's if nothing is said.
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

    /// Are two warps of the same CTA?
    pub(crate) fn same_cta(&self, warp: usize, other: usize) -> bool {
        self.rank(warp) == self.rank(other)
    }

    /// All of these threads know what all of them know and did.
    pub(crate) fn barrier(&mut self, participants: &[(usize, Lanes)]) {
        let times: Vec<_> = participants.iter().map(|&(warp, _)| self.warps[warp].time.get()).collect();
        for view in 0..VIEWS {
            let mut all = Union::default();
            for &(warp, lanes) in participants {
                self.warps[warp].views[view].each(lanes, |knowledge| all.add(knowledge));
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

    /// What a thread knows and did; whoever acquires it is ordered after that.
    pub(crate) fn release(&mut self, warp: usize, lane: usize) -> Stamp {
        let clock = &mut self.warps[warp];
        let mut views = clock.views.each_ref().map(|view| view.of(lane).clone());
        Arc::make_mut(&mut views[View::Known as usize]).learn(warp, Lanes::of(lane), clock.time.get());
        clock.is_over.set(true);
        Stamp { views }
    }

    /// A thread learns what was released.
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

    /// A thread executes a `fence.sc` of all the GPU.
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

    /// What happened before the last `fence.sc` of all the GPU that a thread knows, for threads that see what it stores now.
    pub(crate) fn sequenced(&self, warp: usize, lane: usize) -> Option<Stamp> {
        let sequenced = self.warps[warp].views[View::Sequenced as usize].of(lane);
        let mut stamp = Stamp::default();
        stamp.views[View::Known as usize] = sequenced.clone();
        (!sequenced.is_empty()).then_some(stamp)
    }

    /// A thread saw what was stored behind such a fence.
    pub(crate) fn observe(&mut self, warp: usize, lane: usize, stamp: &Stamp) {
        let view = &mut self.warps[warp].views[View::Observed as usize];
        let observed = join(view.of(lane), &stamp.views[View::Known as usize], &mut self.last_joins[View::Observed as usize]);
        view.set(Lanes::of(lane), &observed);
    }

    /// What was released in this cluster, for readers in any.
    pub(crate) fn spread(&self, stamp: &Stamp) -> Released {
        Released { views: stamp.views.each_ref().map(|view| view.spread(self.cluster)) }
    }

    /// What was released in any cluster, for a reader in this one.
    pub(crate) fn gathered(&self, released: &Released) -> Stamp {
        Stamp { views: released.views.each_ref().map(|view| Knowledge::gathered(view, self.cluster)) }
    }

    /// `fence.proxy.async`: what the threads know and did becomes visible to the async proxy, in the memories of these views.
    ///
    /// Each then takes what any of them fenced for fenced. That is exact in effect: who acts on it must also *know* of the write.
    pub(crate) fn fence_proxy_async(&mut self, warp: usize, lanes: Lanes, spaces: &[View]) {
        let clock = &mut self.warps[warp];
        for &space in spaces {
            let mut fenced = Union::default();
            clock.views[space as usize].each(lanes, |knowledge| fenced.add(knowledge));
            clock.views[View::Known as usize].each(lanes, |knowledge| fenced.add(knowledge));
            let mut fenced = fenced.all();
            Arc::make_mut(&mut fenced).learn(warp, lanes.or(clock.absent), clock.time.get());
            clock.views[space as usize].set(lanes, &fenced);
        }
        clock.is_over.set(true);
    }

    /// A thread issues an asynchronous operation, which is ordered after what the thread knows and did.
    pub(crate) fn issue(&mut self, warp: usize, lane: usize, proxy: Proxy, queue: Queue) -> Operation {
        let stamp = self.release(warp, lane);
        let moment = match queue {
            Queue::Mbarrier => {
                self.tracked += 1;
                Moment::Tracked { number: self.tracked, warp: warp as u16, lane: lane as u8 }
            }
            Queue::Copy | Queue::Bulk | Queue::Matrix | Queue::BulkWrite => {
                // The queues stand in the vectors behind the warps, as if each were a warp of its own.
                let row = self.warps.len() * queue as usize + warp;
                self.issued.resize(self.issued.len().max(row + 1), (0, Lanes::ALL));
                let (time, lanes) = &mut self.issued[row];
                // The lanes of an instruction issue at one time, so that their accesses are found together.
                if lanes.has(lane) {
                    (*time, *lanes) = (*time + 1, Lanes::NONE);
                }
                *lanes = lanes.or(Lanes::of(lane));
                Moment::Lanes { row: (self.warps.len() + row) as u32, lanes: Lanes::of(lane), time: *time }
            }
        };
        Operation { warp, proxy, stamp, moment }
    }

    /// The name of what that agent does now.
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

    /// Is that moment of a thread of that cluster ordered before what the agent does now? With `needs_fence`, it must also have been fenced
    /// for the async proxy.
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
        let nothing = Knowledge::default();
        let known = known.of_cluster(cluster).map_or(&nothing, |known| &**known);
        let fenced = fenced.of_cluster(cluster).map_or(&nothing, |fenced| &**fenced);
        self.known_of(earlier, known, fenced, None, needs_fence.is_some())
    }

    /// The same for one of whose cluster that much is known; `own` is the row and the lane of the thread itself.
    fn known_of(
        &self,
        earlier: Moment,
        known: &Knowledge,
        fenced: &Knowledge,
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
    /// Adds what another one knew.
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
    /// Adds what others let know.
    pub(crate) fn join(&mut self, other: &Released) {
        self.views.iter_mut().zip(&other.views).for_each(|(own, other)| join_clusters(own, other));
    }
}

impl Operation {
    /// What one learns from its completion: that it is done. What its issuer knew is not part of it.
    pub(crate) fn done(&self) -> Stamp {
        let mut known = Knowledge::default();
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
    fn of(&self, lane: usize) -> &Arc<Knowledge> {
        match self {
            Shared::All(knowledge) => knowledge,
            Shared::Each(lanes) => &lanes[lane],
        }
    }

    /// Visits what these lanes know, equal neighbours once.
    fn each<'a>(&'a self, lanes: Lanes, mut visit: impl FnMut(&'a Arc<Knowledge>)) {
        match self {
            Shared::All(knowledge) => visit(knowledge),
            Shared::Each(each) => lanes.into_iter().for_each(|lane| visit(&each[lane])),
        }
    }

    fn set(&mut self, lanes: Lanes, knowledge: &Arc<Knowledge>) {
        if lanes == Lanes::ALL {
            *self = Shared::All(knowledge.clone());
            return;
        }
        if let Shared::All(all) = self {
            if Arc::ptr_eq(all, knowledge) {
                return;
            }
            *self = Shared::Each(Box::new(std::array::from_fn(|_| all.clone())));
        }
        if let Shared::Each(each) = self {
            lanes.into_iter().for_each(|lane| each[lane].clone_from(knowledge));
            if each.iter().all(|own| Arc::ptr_eq(own, knowledge)) {
                *self = Shared::All(knowledge.clone());
            }
        }
    }
}

/// What one knows and another knew; `last` are the two that were put together before, and what came of it.
fn join(own: &Arc<Knowledge>, other: &Arc<Knowledge>, last: &mut Option<[Arc<Knowledge>; 3]>) -> Arc<Knowledge> {
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

/// Puts knowledge together, most of which is mostly the same.
#[derive(Default)]
struct Union {
    all: Option<Arc<Knowledge>>,
    last: Option<*const Knowledge>,
}

impl Union {
    fn add(&mut self, knowledge: &Arc<Knowledge>) {
        if self.last == Some(Arc::as_ptr(knowledge)) || knowledge.is_empty() {
            return;
        }
        self.last = Some(Arc::as_ptr(knowledge));
        match &mut self.all {
            None => self.all = Some(knowledge.clone()),
            Some(all) => Arc::make_mut(all).join(knowledge),
        }
    }

    fn all(self) -> Arc<Knowledge> {
        self.all.unwrap_or_default()
    }
}
