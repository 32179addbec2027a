//! Memory hazards: a barrier separates two accesses to the same element of a tensor under different layouts.
//!
//! Ops that no value connects have their own layouts. So have the two copies of a straight-line region for full and for masked tiles. If
//! one op stores a tile and another loads it, an element may therefore move to another thread through global memory, and a barrier must
//! separate the two ops. The same holds for two stores, because the later one must win, and for a load before a store, because the load
//! must not see it.
//!
//! ```text
//! store y, layout A                  touched: y by A
//! load y, layout A                   the same threads: no barrier
//! load y, layout B                   a barrier before; touched: y by B
//! ```
//!
//! Different elements of tiles that access one address are not ordered. So two accesses conflict only if the same element may have the same
//! address in both, under different layouts, and one of them writes. In three cases no element has the same address twice, so that no barrier
//! is needed ([`crate::analysis::index_overlap`]):
//!
//! - between the iterations of a loop whose index moves the address of each element;
//! - between such a loop and a later one that continues at the index where it ends;
//! - between the iterations of a loop in which all addresses of an iteration are beyond all addresses of the previous one.

use rustc_hash::FxHashMap;

use crate::analysis::index_overlap::{IndexRanges, Iterations, Later};
use crate::analysis::loops;
use crate::ir::{Function, Inst, Op, Region, SideTable, Stored, Value, may_alias};
use crate::layout::Layout;

use super::Placement;
use super::barrier_state::BarrierState;

/// The accesses to tensors that are known at the current point of the program.
#[derive(Default)]
pub(crate) struct Hazards {
    /// The pointers that the kernel writes through.
    stored: Stored,
    /// A number for each layout, for fast comparison.
    layouts: FxHashMap<Layout, u32>,
    pub(crate) touched: BarrierState<Touch>,
    /// Counted loops that have ended.
    ended: Vec<Counter>,
    ranges: IndexRanges,
}

/// An access to a tile of a tensor that the kernel writes.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Touch {
    base: Value,
    offset: Value,
    /// The number of its layout.
    layout: u32,
    writes: bool,
}

/// With more recorded accesses than this, a barrier precedes an access without checking for conflicts.
const MOST_TOUCHED: usize = 512;
/// The maximum number of pairs of accesses under different layouts that are checked at one point; further pairs are assumed to conflict.
const MOST_PAIRS: usize = 4096;

/// The bounds of a loop, its step and its index.
pub(crate) type Counted = ([Value; 3], Value);

/// The index and bounds of a counted loop, and its step if it is constant.
#[derive(Clone, Copy)]
struct Counter {
    index: Value,
    lower: Value,
    upper: Value,
    step: Option<i64>,
}

/// One iteration of a loop and a later one.
pub(crate) struct Iteration {
    /// The loop's counter, if it is counted.
    counter: Option<Counter>,
    /// The values that each iteration defines.
    inside: SideTable<Value, bool>,
}

impl Hazards {
    /// The state at the start of the kernel.
    pub(crate) fn of(func: &Function) -> Hazards {
        let bases = func.all_insts().into_iter().filter_map(|inst| match func.inst(inst).op {
            Op::Store { base, .. } | Op::Atomic { base, .. } => Some(base),
            _ => None,
        });
        Hazards { ranges: IndexRanges::of(func), stored: Stored::through(func, bases), ..Hazards::default() }
    }

    fn touch(&mut self, func: &Function, op: &Op) -> Option<Touch> {
        let (base, offset, writes) = match *op {
            Op::Load { base, offset, .. } | Op::AsyncCopy { base, offset, .. } => (base, offset, false),
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

impl Placement<'_> {
    /// Places a barrier in front of an op if the op may access an element that another thread has accessed.
    pub(crate) fn keep_order(&mut self, inst: Inst) {
        let Some(now) = self.hazards.touch(self.func, &self.func.inst(inst).op) else { return };
        if self.hazards.touched.done().len() >= MOST_TOUCHED {
            self.place_program_barrier(inst);
        }
        self.wait_for_touched(inst, &[now], &[]);
        self.hazards.touched.note(now);
        self.hazards.touched.expose(&now);
    }

    /// Places a barrier in front of an op if one of these accesses conflicts with an earlier one. `takes_over` pairs iterations of earlier loops with
    /// those of the loop that begins here.
    fn wait_for_touched(&mut self, at: Inst, next: &[Touch], takes_over: &[Iterations]) {
        let is_past = |cx: &mut Self, before: &Touch, now: &Touch| {
            takes_over.iter().any(|iterations| !cx.meets(before, now, Some(Later { iterations: Some(*iterations), varies: None })))
        };
        let meets = |cx: &mut Self, before: &Touch, now: &Touch| !is_past(cx, before, now) && cx.meets(before, now, None);
        if self.any_meets(next, meets) {
            self.place_program_barrier(at);
        }
    }

    /// Whether one of these accesses conflicts with an earlier one.
    fn any_meets(&mut self, next: &[Touch], mut meets: impl FnMut(&mut Self, &Touch, &Touch) -> bool) -> bool {
        let touched = self.hazards.touched.done().to_vec();
        let mut pairs = 0;
        next.iter().any(|now| {
            touched.iter().filter(|before| before.layout != now.layout && (before.writes || now.writes)).any(|before| {
                pairs += 1;
                pairs > MOST_PAIRS || meets(self, before, now)
            })
        })
    }

    /// Places one barrier in front of a loop for all hazards between its iterations and earlier code.
    pub(crate) fn order_loop(&mut self, inst: Inst, counted: Option<Counted>, regions: &[Region]) -> Iteration {
        let func = self.func;
        let insts = regions.iter().flat_map(|region| func.regions_under(*region)).flat_map(|region| &func.region(region).insts);
        let touches: Vec<Touch> = insts.filter_map(|inst| self.hazards.touch(func, &func.inst(*inst).op)).collect();
        let counter = counted.map(|([lower, upper, step], index)| Counter {
            index,
            lower,
            upper,
            step: loops::constant(func, step).filter(|step| *step > 0),
        });
        let takes_over = counter.map_or(Vec::new(), |own| self.taken_over(own));
        self.wait_for_touched(inst, &touches, &takes_over);
        Iteration { counter, inside: loops::defined_in(func, regions) }
    }

    /// Between two iterations, the second of which accesses `exposed` before any barrier. `at` is the end of the first one.
    pub(crate) fn order_iterations(&mut self, Iteration { counter, inside }: Iteration, exposed: &[Touch], at: Inst) {
        let iterations = counter.map(|own| Iterations { indices: [own.index; 2], step: own.step });
        let later = Later { iterations, varies: Some(&inside) };
        if self.any_meets(exposed, |cx, before, now| cx.meets(before, now, Some(later))) {
            self.place_program_barrier(at);
        }
        self.hazards.ended.extend(counter);
    }

    /// The earlier loops that end where this loop begins.
    fn taken_over(&mut self, own: Counter) -> Vec<Iterations> {
        let (mut iterations, mut lower, mut step) = (Vec::new(), own.lower, own.step);
        // Loops are walked in order, so an earlier one ends earlier.
        for first in self.hazards.ended.clone().into_iter().rev() {
            if first.upper == lower {
                // The last iteration is one step away only if the loop takes whole iterations.
                let [from, to] = [first.lower, first.upper].map(|bound| self.facts.get(self.func, bound).map(|bound| bound.start.clone()));
                let span = from.zip(to).map(|(from, to)| to.minus(&from));
                step = step.filter(|step| {
                    first.step.is_some_and(|first| first % step == 0) && span.is_some_and(|span| span.is_multiple_of(*step))
                });
                iterations.push(Iterations { indices: [first.index, own.index], step });
                lower = first.lower;
            }
        }
        iterations
    }

    /// Whether an element may have the same address in both accesses, in different threads. Two different pointers may overlap at any
    /// offset, so only indices under the same pointer are compared.
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
        first.zip(second).is_none_or(|(first, second)| self.hazards.ranges.may_meet(&first, &second, later))
    }
}
