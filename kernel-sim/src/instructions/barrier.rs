//! Barriers: `bar`, `barrier`, `barrier.cluster`, `bar.warp.sync` (PTX ISA, 9.7.13.1 to 9.7.13.3).

use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::instructions::barrier_state::{Arrival, Reduction, Threads};
use crate::instructions::{Convergence, Form, Instruction, Progress, Register, Unsupported, Value, shuffle};
use crate::lanes::WARP;
use crate::machine::Cx;
use crate::memory::Scope;
use crate::ptx::{Operand, Type};

/// `bar` and `barrier` of a CTA.
struct CtaBarrier {
    barrier: Value,
    count: Option<Value>,
    /// Whether the instruction waits; `arrive` does not.
    waits: bool,
    reduction: Option<Reduce>,
    is_aligned: bool,
}

/// The reduction of `bar.red`.
struct Reduce {
    kind: Reduction,
    destination: Option<Register>,
    predicate: Value,
}

/// `bar.warp.sync`
struct WarpBarrier {
    members: Value,
}

/// `barrier.cluster.arrive`
struct ClusterArrive {
    is_release: bool,
    is_aligned: bool,
}

/// `barrier.cluster.wait`
struct ClusterWait {
    is_aligned: bool,
}

/// Decodes `bar` and `barrier`. `bar` is `barrier.aligned`.
pub(crate) fn decode(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let is_bar = form.opcode() == "bar";
    if is_bar && form.flag("warp") {
        if !form.flag("sync") {
            return Err(form.error("`bar.warp` is always `bar.warp.sync`"));
        }
        return Ok(Box::new(WarpBarrier { members: form.source(Type::B32)? }));
    }
    if !is_bar && form.flag("cluster") {
        return decode_cluster(form);
    }
    if form.peek_modifier() == Some("cta") {
        form.next_modifier();
    }
    let is_aligned = is_bar || form.flag("aligned");
    if form.flag("red") {
        return decode_reduction(form, is_aligned);
    }
    let waits = form.one_of(&[("sync", true), ("arrive", false)]);
    let waits = waits.ok_or_else(|| form.error(format!("`{}` is `.sync`, `.arrive` or `.red`", form.opcode())))?;
    let barrier = barrier_number(form)?;
    let count = if form.operands_left() > 0 { Some(thread_count(form)?) } else { None };
    if count.is_none() && !waits {
        return Err(form.error("an arrival needs the number of threads that take part"));
    }
    Ok(Box::new(CtaBarrier { barrier, count, waits, reduction: None, is_aligned }))
}

fn decode_reduction(form: &mut Form<'_>, is_aligned: bool) -> Result<Box<dyn Instruction>, Unsupported> {
    let kinds = [("popc", Reduction::Count), ("and", Reduction::And), ("or", Reduction::Or)];
    let kind = form.one_of(&kinds).ok_or_else(|| form.error("a reduction is `.popc`, `.and` or `.or`"))?;
    let wanted = if kind == Reduction::Count { Type::U32 } else { Type::Pred };
    let ty = form.ty()?;
    if ty != wanted {
        return Err(form.error(format!("this reduction gives a `{wanted}`, not a `{ty}`")));
    }
    let destination = form.destination(ty)?;
    let barrier = barrier_number(form)?;
    let count = if form.operands_left() > 1 { Some(thread_count(form)?) } else { None };
    let reduction = Some(Reduce { kind, destination, predicate: form.source(Type::Pred)? });
    Ok(Box::new(CtaBarrier { barrier, count, waits: true, reduction, is_aligned }))
}

fn decode_cluster(form: &mut Form<'_>) -> Result<Box<dyn Instruction>, Unsupported> {
    let is_arrive = form.one_of(&[("arrive", true), ("wait", false)]);
    let is_arrive = is_arrive.ok_or_else(|| form.error("`barrier.cluster` is `.arrive` or `.wait`"))?;
    let is_aligned = form.flag("aligned");
    if is_arrive {
        let is_release = form.one_of(&[("release", true), ("relaxed", false)]).unwrap_or(true);
        return Ok(Box::new(ClusterArrive { is_release, is_aligned }));
    }
    form.flag("acquire");
    Ok(Box::new(ClusterWait { is_aligned }))
}

fn barrier_number(form: &mut Form<'_>) -> Result<Value, Unsupported> {
    match form.peek() {
        Some(Operand::Int(number)) if *number > 15 => Err(form.error(format!("a barrier is one of 0 to 15, not {number}"))),
        _ => form.source(Type::U32),
    }
}

fn thread_count(form: &mut Form<'_>) -> Result<Value, Unsupported> {
    match form.peek() {
        Some(Operand::Int(count)) if count % WARP as u64 != 0 => {
            Err(form.error(format!("the threads that take part are whole warps, and {count} is no multiple of 32")))
        }
        _ => form.source(Type::U32),
    }
}

fn convergence(is_aligned: bool) -> Convergence {
    if is_aligned { Convergence::Aligned } else { Convergence::Free }
}

impl Instruction for CtaBarrier {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let number = cx.read_uniform(self.barrier, "the number of the barrier")? as usize;
        let lanes = cx.lanes;
        let first = lanes.lowest().unwrap_or(0);
        if number > 15 {
            return Err(cx.illegal(first, format!("a barrier is one of 0 to 15, not {number}")));
        }
        let threads = Threads { all: cx.grid.block.iter().product(), live: cx.cta().live_threads };
        if cx.warp.tickets[first] == 0 {
            let arrival = self.arrival(cx, number)?;
            let phase = cx.cta().barriers.arrive(arrival, threads).map_err(|kind| Trap::new(first, kind))?;
            if self.waits {
                lanes.into_iter().for_each(|lane| cx.warp.tickets[lane] = phase + 1);
            }
        }
        settle(cx, number, threads);
        if !self.waits {
            return Ok(Progress::Done);
        }
        let phase = cx.warp.tickets[first] - 1;
        let kind = self.reduction.as_ref().map(|reduction| reduction.kind);
        let Some(result) = cx.cta().barriers.go_on(number, phase, kind, lanes.count()) else {
            return Ok(Progress::Wait);
        };
        lanes.into_iter().for_each(|lane| cx.warp.tickets[lane] = 0);
        if let Some(reduction) = &self.reduction {
            cx.write(reduction.destination, &[u64::from(result); WARP]);
        }
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        convergence(self.is_aligned)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

impl CtaBarrier {
    fn arrival(&self, cx: &mut Cx<'_>, barrier: usize) -> Result<Arrival, Trap> {
        let count = match self.count {
            Some(count) => Some(cx.read_uniform(count, "the number of threads of the barrier")? as u32),
            None => None,
        };
        let reduction = match &self.reduction {
            Some(reduction) => {
                let row = cx.read(reduction.predicate)?;
                Some((reduction.kind, cx.lanes.filter(|lane| row[lane] != 0)))
            }
            None => None,
        };
        let mut stamp = None;
        if !self.waits {
            let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
            for lane in cx.lanes {
                let own = cx.cluster.clocks.release(warp, lane);
                stamp.get_or_insert_with(|| own.clone()).join(&own);
            }
        }
        let (warp, lanes, live) = (cx.warp.index, cx.lanes, cx.warp.live);
        Ok(Arrival { barrier, warp, lanes, live, count, waits: self.waits, reduction, stamp })
    }
}

/// Completes the barrier's phase if all threads have arrived: the operations of all arrived threads happen before the later operations of
/// the waiting threads.
fn settle(cx: &mut Cx<'_>, number: usize, threads: Threads) {
    let Some(completed) = cx.cta().barriers.settle(number, threads) else { return };
    let rank = cx.rank;
    let clocks = &mut cx.cluster.clocks;
    let waiting: Vec<_> = completed.waiting.iter().map(|&(warp, lanes)| (clocks.warp(rank, warp), lanes)).collect();
    clocks.barrier(&waiting);
    if let Some(stamp) = &completed.stamp {
        for (warp, lanes) in waiting {
            lanes.into_iter().for_each(|lane| clocks.acquire(warp, lane, stamp));
        }
    }
    cx.cluster.happened();
}

impl Instruction for WarpBarrier {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
        for lanes in shuffle::member_sets(cx, self.members)? {
            cx.cluster.clocks.barrier(&[(warp, lanes)]);
        }
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        Convergence::Members(self.members)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

/// The number of threads of the cluster that have not exited.
fn live_threads(cx: &Cx<'_>) -> u32 {
    cx.cluster.ctas.iter().map(|cta| cta.live_threads).sum()
}

fn trap(cx: &Cx<'_>, kind: FaultKind) -> Trap {
    Trap::new(cx.lanes.lowest().unwrap_or(0), kind)
}

impl Instruction for ClusterArrive {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        let live = live_threads(cx);
        let mut stamp = None;
        let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
        for lane in cx.lanes {
            // A relaxed arrival releases only the operations before an earlier fence, such as `fence.mbarrier_init`.
            let own = match self.is_release {
                true => Some(cx.cluster.clocks.release(warp, lane)),
                false => cx.warp.fences.fenced(lane, Scope::Cluster).cloned(),
            };
            if let Some(own) = own {
                stamp.get_or_insert_with(|| own.clone()).join(&own);
            }
        }
        let arrived = cx.cluster.barrier.arrive(cx.rank, cx.warp.index, cx.lanes, stamp.as_ref(), live);
        if arrived.map_err(|kind| trap(cx, kind))? {
            cx.cluster.happened();
        }
        Ok(Progress::Done)
    }

    fn convergence(&self) -> Convergence {
        convergence(self.is_aligned)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

impl Instruction for ClusterWait {
    fn execute(&self, cx: &mut Cx<'_>) -> Result<Progress, Trap> {
        // The barrier may be complete because threads exited.
        let live = live_threads(cx);
        if cx.cluster.barrier.settle(live) {
            cx.cluster.happened();
        }
        match cx.cluster.barrier.wait(cx.rank, cx.warp.index, cx.lanes) {
            Ok(None) => Ok(Progress::Wait),
            Ok(Some(stamp)) => {
                let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
                cx.lanes.into_iter().for_each(|lane| cx.cluster.clocks.acquire(warp, lane, stamp));
                Ok(Progress::Done)
            }
            Err(kind) => Err(trap(cx, kind)),
        }
    }

    fn convergence(&self) -> Convergence {
        convergence(self.is_aligned)
    }

    fn class(&self) -> Class {
        Class::Barrier
    }
}

#[cfg(test)]
mod tests {
    use crate::fault::FaultKind;
    use crate::instructions::harness::{Failure, Harness};
    use crate::instructions::{Convergence, Progress};
    use crate::lanes::Lanes;
    use crate::ptx::Type;

    /// A warp of a program with two warps.
    fn harness() -> Harness {
        let mut harness = Harness::new();
        harness.grid.block = [64, 1, 1];
        harness.cluster =
            crate::machine::Cluster::new([0; 3], vec![crate::machine::Cta::new([0; 3], 64, &harness.grid)], harness.grid.block);
        harness
    }

    /// Executes an instruction as this warp.
    fn as_warp(harness: &mut Harness, warp: usize, tickets: &mut [[u64; 32]; 2], text: &str) -> Progress {
        harness.warp.index = warp;
        harness.warp.tickets = tickets[warp];
        let progress = harness.run(text).unwrap_or_else(|failure| panic!("{text} {failure:?}"));
        tickets[warp] = harness.warp.tickets;
        progress
    }

    #[test]
    fn one_warp_waits_for_the_other() {
        let mut harness = harness();
        let mut tickets = [[0; 32]; 2];
        let events = harness.cluster.events;
        assert_eq!(as_warp(&mut harness, 0, &mut tickets, "bar.sync 3;"), Progress::Wait);
        assert_eq!(as_warp(&mut harness, 0, &mut tickets, "bar.sync 3;"), Progress::Wait);
        assert_eq!(harness.cluster.events, events);
        assert_eq!(as_warp(&mut harness, 1, &mut tickets, "barrier.cta.sync 3, 64;"), Progress::Done);
        assert!(harness.cluster.events > events);
        assert_eq!(as_warp(&mut harness, 0, &mut tickets, "bar.sync 3;"), Progress::Done);
        // The next phase has no arrivals.
        assert_eq!(as_warp(&mut harness, 0, &mut tickets, "bar.sync 3;"), Progress::Wait);
        assert_eq!(harness.cluster.ctas[0].barriers.waiting().as_deref(), Some("barrier 3 has 32 of 64 threads"));
        harness.cluster.ended(0, 1, Lanes::ALL);
        assert_eq!(as_warp(&mut harness, 0, &mut tickets, "bar.sync 3;"), Progress::Done);
    }

    #[test]
    fn an_arrival_orders_its_stores_before_the_wait() {
        for (arrives, is_ordered) in [("bar.arrive 1, 64;", true), ("fence.acq_rel.cta;", false)] {
            let mut harness = harness();
            let mut tickets = [[0; 32]; 2];
            harness.define("%address", Type::U32, |lane| 4 * lane as u64);
            harness.declare("%word", Type::U32);
            as_warp(&mut harness, 0, &mut tickets, "st.shared.u32 [%address], 1;");
            as_warp(&mut harness, 0, &mut tickets, arrives);
            let waits = if is_ordered { "bar.sync 1, 64;" } else { "bar.sync 1, 32;" };
            assert_eq!(as_warp(&mut harness, 1, &mut tickets, waits), Progress::Done);
            let load = harness.run("ld.shared.u32 %word, [%address];");
            let is_race = matches!(load, Err(Failure::Trap(0, FaultKind::SharedRace { .. })));
            assert_eq!((load.is_ok(), is_race), (is_ordered, !is_ordered), "{load:?}");
        }
    }

    #[test]
    fn a_flag_orders_if_it_is_released_and_acquired() {
        let writes =
            ["st.release.cta.shared.u32 [256], 1;", "st.relaxed.cta.shared.u32 [256], 1;", "atom.acq_rel.cta.shared.add.u32 _, [256], 1;"];
        let reads = ["ld.acquire.cta.shared.u32 %word, [256];", "ld.volatile.shared.u32 %word, [256];"];
        for (write, fences_before) in writes.into_iter().zip([false, false, false]).chain([(writes[1], true)]) {
            for (read, fences_after) in reads.into_iter().zip([false, false]).chain([(reads[1], true)]) {
                let mut harness = harness();
                let mut tickets = [[0; 32]; 2];
                harness.define("%address", Type::U32, |lane| 4 * lane as u64);
                harness.declare("%word", Type::U32);
                harness.lanes = Lanes::of(0);
                as_warp(&mut harness, 0, &mut tickets, "st.relaxed.cta.shared.u32 [256], 0;");
                as_warp(&mut harness, 0, &mut tickets, "st.shared.u32 [%address], 1;");
                if fences_before {
                    as_warp(&mut harness, 0, &mut tickets, "fence.acq_rel.cta;");
                }
                as_warp(&mut harness, 0, &mut tickets, write);
                // Fences belong to a warp.
                harness.warp.fences = crate::instructions::Fences::default();
                as_warp(&mut harness, 1, &mut tickets, read);
                if fences_after {
                    as_warp(&mut harness, 1, &mut tickets, "membar.cta;");
                }
                let is_ordered = (fences_before || write != writes[1]) && (fences_after || read == reads[0]);
                let load = harness.run("ld.shared.u32 %word, [%address];");
                assert_eq!(load.is_ok(), is_ordered, "{write} {read} {fences_before} {fences_after} {load:?}");
            }
        }
    }

    #[test]
    fn a_reduction_gives_all_threads_the_same_result() {
        let mut harness = harness();
        let mut tickets = [[0; 32]; 2];
        harness.define("%p", Type::Pred, |lane| u64::from(lane < 3));
        harness.declare("%count", Type::U32);
        harness.declare("%all", Type::Pred);
        assert_eq!(as_warp(&mut harness, 0, &mut tickets, "bar.red.popc.u32 %count, 0, %p;"), Progress::Wait);
        assert_eq!(as_warp(&mut harness, 1, &mut tickets, "bar.red.popc.u32 %count, 0, 64, !%p;"), Progress::Done);
        assert_eq!(harness.value("%count"), [32; 32]);
        harness.define("%count", Type::U32, |_| 0);
        assert_eq!(as_warp(&mut harness, 0, &mut tickets, "bar.red.popc.u32 %count, 0, %p;"), Progress::Done);
        assert_eq!(harness.value("%count"), [32; 32]);
        harness.define("%p", Type::Pred, |_| 1);
        assert_eq!(as_warp(&mut harness, 1, &mut tickets, "barrier.red.and.pred %all, 5, %p;"), Progress::Wait);
        assert_eq!(as_warp(&mut harness, 0, &mut tickets, "bar.red.and.pred %all, 5, %p;"), Progress::Done);
        assert_eq!(harness.value("%all"), [1; 32]);
    }

    #[test]
    fn only_aligned_forms_want_the_whole_warp() {
        let harness = harness();
        for (text, is_aligned) in [
            ("bar.sync 0;", true),
            ("barrier.sync.aligned 0;", true),
            ("barrier.sync 0;", false),
            ("barrier.cluster.arrive.aligned;", true),
            ("barrier.cluster.wait;", false),
        ] {
            assert_eq!(matches!(harness.convergence(text), Ok(Convergence::Aligned)), is_aligned, "{text}");
        }
        assert!(matches!(harness.convergence("bar.warp.sync 0xff;"), Ok(Convergence::Members(_))));
    }

    #[test]
    fn misuse_is_a_fault_of_the_thread() {
        let mut harness = harness();
        harness.define("%number", Type::U32, |lane| lane as u64 / 31);
        let differs = harness.run("barrier.sync %number;");
        assert!(matches!(differs, Err(Failure::Trap(31, FaultKind::Illegal { .. }))), "{differs:?}");
        harness.define("%number", Type::U32, |_| 16);
        assert!(matches!(harness.run("bar.sync %number;"), Err(Failure::Trap(0, FaultKind::Illegal { .. }))));
        assert!(matches!(harness.run("bar.sync 0, %number;"), Err(Failure::Trap(0, FaultKind::Barrier { barrier: 0, .. }))));
        assert!(matches!(harness.run("barrier.cluster.wait;"), Err(Failure::Trap(0, FaultKind::Illegal { .. }))));
    }
}
