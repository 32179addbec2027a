//! What a lane stores, it reads, also where another thread holds it by then.
//!
//! Ops that no value connects have layouts of their own, and so have the two copies of a stretch whose tiles are full or not. A tile that is
//! stored by one and loaded by another then crosses the threads in global memory, and a barrier has to stand between. So it has between two
//! stores, the later of which must win, and between a load and a store that it must not see.
//!
//! ```text
//! store y, layout A                  touched: y by A
//! load y, layout A                   the same threads: nobody waits
//! load y, layout B                   a barrier in front; touched: y by B
//! ```
//!
//! Between lanes nothing is promised: accesses only meet where the addresses of one lane may be the same. In a loop whose index moves them on
//! they are not, nor in the loop that takes over from it; nor where all that one turn touches lies behind what the one before has touched.

use crate::analysis::meeting::{IndexRanges, Later, Turns, constant};
use crate::ir::{Function, Op, Region, SideTable, Value, may_alias};

use super::Emitter;

/// What was touched since the last barrier, at this place of the program.
#[derive(Default)]
pub(super) struct Order {
    /// The pointers that the kernel writes through.
    stored: Vec<Value>,
    touched: Vec<Touch>,
    loops: Vec<Loop>,
    /// Counted loops that have ended.
    ended: Vec<Counter>,
    ranges: IndexRanges,
}

/// An access to a tile of a tensor that the kernel writes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Touch {
    base: Value,
    offset: Value,
    writes: bool,
}

/// How a loop counts; the step if it is known.
#[derive(Clone, Copy)]
struct Counter {
    index: Value,
    lower: Value,
    upper: Value,
    step: Option<i64>,
}

/// A loop that is being emitted.
struct Loop {
    /// Its turns, one and a later one, if it counts.
    turns: Option<Turns>,
    counter: Option<Counter>,
    /// What each turn makes anew.
    inside: SideTable<Value, bool>,
    /// Was there surely a barrier since the body began?
    is_fenced: bool,
    /// What is touched before that.
    exposed: Vec<Touch>,
}

/// The state before a branch.
pub(super) struct Fork {
    touched: Vec<Touch>,
    fenced: Vec<bool>,
}

impl Order {
    /// Of a kernel of which nothing is emitted yet.
    pub(super) fn of(func: &Function) -> Order {
        let mut order = Order { ranges: IndexRanges::of(func), ..Order::default() };
        for inst in func.all_insts() {
            if let Op::Store { base, .. } | Op::Atomic { base, .. } = func.inst(inst).op {
                note(&mut order.stored, base);
            }
        }
        order
    }

    /// All threads of the program wait for each other here.
    pub(super) fn all_wait(&mut self) {
        self.touched.clear();
        self.loops.iter_mut().for_each(|around| around.is_fenced = true);
    }

    pub(super) fn fork(&self) -> Fork {
        Fork { touched: self.touched.clone(), fenced: self.loops.iter().map(|around| around.is_fenced).collect() }
    }

    /// Goes back to the fork, for the other arm.
    pub(super) fn other_arm(&mut self, fork: &Fork) {
        self.touched.clone_from(&fork.touched);
        self.loops.iter_mut().zip(&fork.fenced).for_each(|(around, is_fenced)| around.is_fenced = *is_fenced);
    }

    /// Where two ways meet.
    pub(super) fn join(&mut self, other: Fork) {
        other.touched.into_iter().for_each(|touch| note(&mut self.touched, touch));
        self.loops.iter_mut().zip(other.fenced).for_each(|(around, is_fenced)| around.is_fenced &= is_fenced);
    }

    fn touch(&self, func: &Function, op: &Op) -> Option<Touch> {
        let (base, offset, writes) = match *op {
            Op::Load { base, offset, .. } | Op::Fetch { base, offset, .. } => (base, offset, false),
            Op::Store { base, offset, .. } => (base, offset, true),
            Op::Atomic { base, offset, op, .. } => (base, offset, op.writes()),
            _ => return None,
        };
        let is_stored = self.stored.iter().any(|stored| may_alias(func, base, *stored));
        (is_stored && func.ty(offset).is_tile()).then_some(Touch { base, offset, writes })
    }
}

fn note<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}

impl Emitter<'_> {
    /// In front of an op: waits if it touches what another thread may have touched for the same lane.
    pub(super) fn keep_order(&mut self, op: &Op) {
        let Some(now) = self.order.touch(self.func, op) else { return };
        self.wait_for_touched(&[now], &[]);
        note(&mut self.order.touched, now);
        self.order.loops.iter_mut().filter(|around| !around.is_fenced).for_each(|around| note(&mut around.exposed, now));
    }

    /// Waits if any of these touches what was touched before; `takes_over` are turns of loops before and of the one that now begins.
    fn wait_for_touched(&mut self, next: &[Touch], takes_over: &[Turns]) {
        let touched = self.order.touched.clone();
        let must_wait = next.iter().any(|now| {
            touched.iter().any(|before| {
                let is_past = takes_over.iter().any(|turns| !self.meets(before, now, Some(Later { turns: *turns, varies: None })));
                !is_past && self.meets(before, now, None)
            })
        });
        if must_wait {
            self.program_barrier();
        }
    }

    /// Begins a loop: what its turns would have to wait for they wait for in front of it, once. A loop that counts has bounds and an index.
    pub(super) fn order_loop(&mut self, counted: Option<([Value; 3], Value)>, regions: &[Region]) -> Fork {
        let func = self.func;
        let (mut inside, mut touches): (SideTable<Value, bool>, _) = (SideTable::new(), Vec::new());
        for region in regions.iter().flat_map(|region| func.regions_under(*region)) {
            func.region(region).params.iter().for_each(|param| inside[*param] = true);
            for inst in &func.region(region).insts {
                let data = func.inst(*inst);
                data.results.iter().for_each(|result| inside[*result] = true);
                touches.extend(self.order.touch(func, &data.op));
            }
        }
        let counter = counted.map(|([lower, upper, step], index)| Counter {
            index,
            lower,
            upper,
            step: constant(func, step).filter(|step| *step > 0),
        });
        let turns = counter.map(|own| Turns { indices: [own.index; 2], step: own.step });
        let takes_over = counter.map_or(Vec::new(), |own| self.taken_over(own));
        self.wait_for_touched(&touches, &takes_over);
        self.order.loops.push(Loop { turns, counter, inside, is_fenced: false, exposed: Vec::new() });
        let front = self.order.fork();
        // With what was touched in front no turn meets.
        self.order.touched.clear();
        front
    }

    /// At the end of a loop's body, with the state in front of it: the next turn may touch what this one has.
    pub(super) fn order_loop_end(&mut self, front: Fork) {
        let Some(around) = self.order.loops.pop() else { return };
        let touched = self.order.touched.clone();
        let later = around.turns.map(|turns| Later { turns, varies: Some(&around.inside) });
        if around.exposed.iter().any(|now| touched.iter().any(|before| self.meets(before, now, later))) {
            self.program_barrier();
        }
        self.order.join(front);
        self.order.ended.extend(around.counter);
    }

    /// The loops that end where another begins.
    fn taken_over(&mut self, own: Counter) -> Vec<Turns> {
        let (mut turns, mut lower, mut step) = (Vec::new(), own.lower, own.step);
        // One that was emitted before ends before.
        for first in self.order.ended.clone().into_iter().rev() {
            if first.upper == lower {
                // Only where it takes whole turns is its last one a turn away.
                let [from, to] = [first.lower, first.upper].map(|bound| self.facts.get(self.func, bound).map(|bound| bound.start));
                let span = from.zip(to).map(|(from, to)| to.minus(&from));
                step = step.filter(|step| {
                    first.step.is_some_and(|first| first % step == 0) && span.is_some_and(|span| span.is_multiple_of(*step))
                });
                turns.push(Turns { indices: [first.index, own.index], step });
                lower = first.lower;
            }
        }
        turns
    }

    /// May a lane find one place in both accesses, and in another thread? Two pointers lead to one tensor or to two: none leads into the middle of
    /// another's.
    fn meets(&mut self, before: &Touch, now: &Touch, later: Option<Later<'_>>) -> bool {
        let func = self.func;
        let (other, stored) = if now.writes { (before.base, now.base) } else { (now.base, before.base) };
        if !(before.writes || now.writes) || !may_alias(func, other, stored) || self.layout(before.offset) == self.layout(now.offset) {
            return false;
        }
        let [first, second] = [before, now].map(|touch| Some((self.facts.get(func, touch.offset)?, func.ty(touch.offset).extents())));
        first.zip(second).is_none_or(|(first, second)| self.order.ranges.may_meet(&first, &second, later))
    }
}
