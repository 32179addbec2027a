//! Barriers: `bar`, `barrier`, `barrier.cluster`, `bar.warp.sync` (PTX ISA, 9.7.13.1 to 9.7.13.3).

use crate::counters::Class;
use crate::fault::{FaultKind, Trap};
use crate::instructions::barrier_state::{Arrival, Reduction, Threads};
use crate::instructions::{Convergence, Form, Instruction, Progress, Register, Unsupported, Value, shuffle};
use crate::lanes::WARP;
use crate::machine::Cx;
use crate::ptx::{Operand, Type};

/// `bar` and `barrier` of a CTA.
struct CtaBarrier {
    barrier: Value,
    count: Option<Value>,
    /// Does it wait? `arrive` does not.
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
    form.flag("cta");
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

/// Ends the barrier's phase if all have arrived: those who waited know what all knew.
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

/// Threads of the cluster that did not exit.
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
        if self.is_release {
            let warp = cx.cluster.clocks.warp(cx.rank, cx.warp.index);
            for lane in cx.lanes {
                let own = cx.cluster.clocks.release(warp, lane);
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
        // Threads that exit may be the last that the barrier waited for.
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
