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

use std::collections::HashMap;

use crate::analysis::meeting::{IndexRanges, Later, Turns, constant};
use crate::ir::{Function, Op, Region, SideTable, Stored, Value, may_alias};
use crate::layout::Layout;

use super::Emitter;
use super::since::Since;

/// What is known of accesses to tensors at this place of the program.
#[derive(Default)]
pub(super) struct Order {
    /// The pointers that the kernel writes through.
    stored: Stored,
    /// A number for each layout, so that accesses are compared fast.
    layouts: HashMap<Layout, u32>,
    pub(super) touched: Since<Touch>,
    /// Counted loops that have ended.
    ended: Vec<Counter>,
    ranges: IndexRanges,
}

/// An access to a tile of a tensor that the kernel writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Touch {
    base: Value,
    offset: Value,
    /// The number of its layout.
    layout: u32,
    writes: bool,
}

/// An access waits for more accesses than that without a look at which of them it meets.
const MOST_TOUCHED: usize = 512;
/// So many pairs of accesses under different layouts are looked at in one place; beyond, they are taken to meet.
const MOST_PAIRS: usize = 4096;

/// The bounds of a loop, its step and its index.
pub(super) type Counted = ([Value; 3], Value);

/// How a loop counts; the step if it is known.
#[derive(Clone, Copy)]
struct Counter {
    index: Value,
    lower: Value,
    upper: Value,
    step: Option<i64>,
}

/// One turn of a loop and a later one.
pub(super) struct Turn {
    /// How the loop counts, if it does.
    counter: Option<Counter>,
    /// What each turn makes anew.
    inside: SideTable<Value, bool>,
}

impl Order {
    /// Of a kernel of which nothing is emitted yet.
    pub(super) fn of(func: &Function) -> Order {
        let bases = func.all_insts().into_iter().filter_map(|inst| match func.inst(inst).op {
            Op::Store { base, .. } | Op::Atomic { base, .. } => Some(base),
            _ => None,
        });
        Order { ranges: IndexRanges::of(func), stored: Stored::through(func, bases), ..Order::default() }
    }

    fn touch(&mut self, func: &Function, op: &Op) -> Option<Touch> {
        let (base, offset, writes) = match *op {
            Op::Load { base, offset, .. } | Op::Fetch { base, offset, .. } => (base, offset, false),
            Op::Store { base, offset, .. } => (base, offset, true),
            Op::Atomic { base, offset, op, .. } => (base, offset, op.writes()),
            _ => return None,
        };
        if !func.ty(offset).is_tile() || !self.stored.may_alias(func, base) {
            return None;
        }
        let (known, layout) = (self.layouts.len() as u32, func.layouts[offset].as_ref()?);
        let layout = match self.layouts.get(layout) {
            Some(number) => *number,
            None => *self.layouts.entry(layout.clone()).or_insert(known),
        };
        Some(Touch { base, offset, layout, writes })
    }
}

impl Emitter<'_> {
    /// In front of an op: waits if it touches what another thread may have touched for the same lane.
    pub(super) fn keep_order(&mut self, op: &Op) {
        let Some(now) = self.order.touch(self.func, op) else { return };
        if self.order.touched.done().len() >= MOST_TOUCHED {
            self.program_barrier();
        }
        self.wait_for_touched(&[now], &[]);
        self.order.touched.note(now);
        self.order.touched.expose(&now);
    }

    /// Waits if any of these touches what was touched before; `takes_over` are turns of loops before and of the one that now begins.
    fn wait_for_touched(&mut self, next: &[Touch], takes_over: &[Turns]) {
        let is_past = |cx: &mut Self, before: &Touch, now: &Touch| {
            takes_over.iter().any(|turns| !cx.meets(before, now, Some(Later { turns: Some(*turns), varies: None })))
        };
        let meets = |cx: &mut Self, before: &Touch, now: &Touch| !is_past(cx, before, now) && cx.meets(before, now, None);
        if self.any_meets(next, meets) {
            self.program_barrier();
        }
    }

    /// Does one of these accesses meet one that was touched before?
    fn any_meets(&mut self, next: &[Touch], mut meets: impl FnMut(&mut Self, &Touch, &Touch) -> bool) -> bool {
        let touched = self.order.touched.done().to_vec();
        let mut pairs = 0;
        next.iter().any(|now| {
            touched.iter().filter(|before| before.layout != now.layout && (before.writes || now.writes)).any(|before| {
                pairs += 1;
                pairs > MOST_PAIRS || meets(self, before, now)
            })
        })
    }

    /// In front of a loop: what its turns would have to wait for they wait for here, once.
    pub(super) fn order_loop(&mut self, counted: Option<Counted>, regions: &[Region]) -> Turn {
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
        let takes_over = counter.map_or(Vec::new(), |own| self.taken_over(own));
        self.wait_for_touched(&touches, &takes_over);
        Turn { counter, inside }
    }

    /// Between two turns, the second of which touches `exposed` before any barrier.
    pub(super) fn order_turns(&mut self, Turn { counter, inside }: Turn, exposed: &[Touch]) {
        let turns = counter.map(|own| Turns { indices: [own.index; 2], step: own.step });
        let later = Later { turns, varies: Some(&inside) };
        if self.any_meets(exposed, |cx, before, now| cx.meets(before, now, Some(later))) {
            self.program_barrier();
        }
        self.order.ended.extend(counter);
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

    /// May a lane find one place in both accesses, and in another thread? Of two pointers, one may lead into the middle of the other's tensor, so places
    /// are compared under one pointer alone.
    fn meets(&mut self, before: &Touch, now: &Touch, later: Option<Later<'_>>) -> bool {
        let func = self.func;
        let (other, stored) = if now.writes { (before.base, now.base) } else { (now.base, before.base) };
        if !(before.writes || now.writes) || !may_alias(func, other, stored) || before.layout == now.layout {
            return false;
        }
        if before.base != now.base {
            return true;
        }
        let [first, second] = [before, now].map(|touch| Some((self.facts.get(func, touch.offset)?, func.ty(touch.offset).extents())));
        first.zip(second).is_none_or(|(first, second)| self.order.ranges.may_meet(&first, &second, later))
    }
}
