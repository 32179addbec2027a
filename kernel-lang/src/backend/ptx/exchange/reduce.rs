//! Reductions and scans: first within a thread, then between lanes, then between warps.
//!
//! An index along the axis consists of bits, each a bit of the register, the lane or the warp. Bit by bit, from the lowest, two
//! neighbouring runs are combined into one: `combine(earlier, later)`, where the earlier run has the bit 0. Registers of one thread are
//! combined directly; lanes exchange by a butterfly shuffle; all warp bits of a group go through shared memory together (`shared_runs.rs`). Afterwards
//! every thread that held a part has the result.
//!
//! ```text
//! index bit     0 1       2 3 4 5 6      7 8         9
//! held by       register  lane           warp        register
//! runs of       1 2       4 .. 64        128, 256    512
//! ```
//!
//! If `combine` is commutative, all register bits come first, so that each thread exchanges only one value.
//!
//! If the result is [scattered](crate::layout::Layout::scattered), a bit of the lane trades with a bit of the register that is not reduced: each lane
//! sends the half of its results that the other lane keeps.
//!
//! A scan does the same, and knows for each run of a thread's neighbours what comes before it: see `scan.rs`.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::analysis::symmetry::is_symmetric;
use crate::dtype::Dtype;
use crate::ir::renaming::{register_sources, trades};
use crate::ir::rewrite::use_counts;
use crate::ir::{BinaryOp, Function, Handle, Op, Region, Value};
use crate::layout::{Layout, Level, Trade};

use crate::backend::ptx::exchange::scan::Scan;
use crate::backend::ptx::text::registers::{Class, Reg, asm};
use crate::backend::ptx::{Emitter, Lanes, Source};

/// The hardware bit that holds a bit of the index along the axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bit {
    pub(crate) level: Level,
    pub(crate) bit: usize,
}

impl Bit {
    fn is_lane(self, lane: usize) -> bool {
        self == Bit { level: Level::Lane, bit: lane }
    }
}

pub(super) struct Cx<'a> {
    pub(super) inputs: &'a [Value],
    pub(super) combine: Region,
    /// Do the two sides of `combine` give the same result when they are exchanged?
    pub(super) is_symmetric: bool,
    /// May the runs of a thread be combined in any order? Those of a scan may not.
    pub(super) is_commutative: bool,
    /// Whether the run with the bit 1 is the earlier one.
    pub(super) reverse: bool,
    /// The result of each run, by its first register: a value for each input.
    pub(super) totals: BTreeMap<u32, Vec<Reg>>,
    /// Of a scan: the results of prefixes.
    pub(super) scan: Option<Scan>,
    /// The register bits that are combined already.
    pub(super) taken: u32,
    /// The results of other warps or CTAs, for runs of which not all inputs have been exchanged yet.
    pub(super) parts: FxHashMap<usize, Vec<Vec<Reg>>>,
}

impl Emitter<'_> {
    pub(crate) fn reduce(&mut self, op: &Op, results: &[Value]) {
        let (inputs, axis, combine, reverse, is_scan) = match op {
            Op::Reduce { inputs, axis, combine } => (inputs, *axis, *combine, false, false),
            Op::Scan { inputs, axis, reverse, combine } => (inputs, *axis, *combine, *reverse, true),
            _ => unreachable!("`{}` combines nothing", op.name()),
        };
        let layout = self.layout(inputs[0]).expect("tiles have layouts").clone();
        let count = layout.registers_per_thread();
        let is_symmetric = is_symmetric(self.func, combine);
        let is_commutative = !is_scan && is_symmetric;
        let mut bits = index_bits(&layout, axis as usize, is_commutative);
        let mut cx = Cx {
            inputs,
            combine,
            is_symmetric,
            is_commutative,
            reverse,
            totals: BTreeMap::new(),
            scan: None,
            taken: 0,
            parts: FxHashMap::default(),
        };
        if let &Source::Product(x, y) = &self.source(inputs[0]) {
            self.sum_products(&mut cx, (x, y), count, &mut bits);
        } else {
            let lanes: Vec<Lanes> = inputs.iter().map(|input| self.lanes(*input)).collect();
            let element = |register: u32| -> Vec<Reg> { lanes.iter().map(|lanes| lanes.get(register as usize)).collect() };
            cx.totals = (0..count).map(|register| (register, element(register))).collect();
            if is_scan {
                cx.scan = Some(Scan::of((0..count).map(element).collect()));
            }
        }
        let trades = results.first().and_then(|result| trades(self.func, op, inputs[0], *result)).unwrap_or_default();
        // Lanes that hold copies of the whole tile only choose what they keep.
        let mut kept: Vec<Trade> = trades.iter().copied().filter(|trade| !bits.iter().any(|bit| bit.is_lane(trade.lane))).collect();
        let mut at = 0;
        while at < bits.len() {
            let Bit { level, bit } = bits[at];
            if level != Level::Register {
                kept.drain(..).for_each(|trade| self.keep_half(&mut cx, trade));
            }
            let row = bits[at..].iter().take_while(|next| next.level == level).count();
            match level {
                Level::Register => self.combine_registers(&mut cx, bit),
                Level::Lane => match trades.iter().find(|trade| trade.lane == bit) {
                    Some(trade) => self.trade_lanes(&mut cx, *trade),
                    None => self.combine_lanes(&mut cx, bit),
                },
                Level::Warp => {
                    let is_alike = trades.is_empty() && lanes_alike(&layout, &bits[at..], axis as usize);
                    self.combine_warps(&mut cx, &bits[at..at + row], is_alike);
                }
                Level::Block => {
                    let is_same = results.iter().all(|result| !self.func.ty(*result).is_tile());
                    self.combine_blocks(&mut cx, &bits[at..at + row], is_same);
                }
            }
            at += if matches!(level, Level::Warp | Level::Block) { row } else { 1 };
        }
        kept.drain(..).for_each(|trade| self.keep_half(&mut cx, trade));
        let prefixes = cx.scan.take().map(|scan| self.prefixes(combine, scan));
        for (index, result) in results.iter().enumerate() {
            let lanes = if let Some(prefixes) = &prefixes {
                Lanes::Each(prefixes.iter().map(|prefix| prefix[index]).collect())
            } else if self.func.ty(*result).is_tile() {
                let sources = register_sources(self.func, op, inputs[0], *result).expect("a verified op moves nothing between threads");
                Lanes::Each(sources.into_iter().map(|register| cx.totals[&(register & !cx.taken)][index]).collect())
            } else {
                Lanes::Splat(cx.totals[&0][index])
            };
            self.define(*result, lanes);
        }
    }

    /// Sums products over the registers along the axis. The register bits are then combined.
    fn sum_products(&mut self, cx: &mut Cx<'_>, (x, y): (Value, Value), count: u32, bits: &mut Vec<Bit>) {
        let dtype = self.func.ty(x).dtype();
        cx.taken = bits.iter().filter(|bit| bit.level == Level::Register).map(|bit| 1 << bit.bit).sum();
        bits.retain(|bit| bit.level != Level::Register);
        let (x, y) = (self.lanes(x), self.lanes(y));
        for run in (0..count).filter(|register| register & cx.taken == 0) {
            // Several independent chains, so that an addition does not wait for the previous one.
            let mut chains: Vec<Reg> = Vec::new();
            for (index, register) in (0..count).filter(|register| register & !cx.taken == run).enumerate() {
                let (x, y) = (x.get(register as usize), y.get(register as usize));
                if index < CHAINS {
                    chains.push(self.binary(BinaryOp::Mul, dtype, x, y));
                } else {
                    chains[index % CHAINS] = self.fma(dtype, x, y, chains[index % CHAINS]);
                }
            }
            let sum = chains.into_iter().reduce(|sum, chain| self.binary(BinaryOp::Add, dtype, sum, chain));
            cx.totals.insert(run, vec![sum.expect("a run has a register")]);
        }
    }

    /// The result of two neighbouring runs.
    pub(super) fn combined(&mut self, combine: Region, earlier: &[Reg], later: &[Reg]) -> Vec<Reg> {
        let func = self.func;
        for (param, reg) in func.region(combine).params.iter().zip(earlier.iter().chain(later)) {
            self.define(*param, Lanes::Splat(*reg));
        }
        self.scoped(combine);
        func.yielded(combine).iter().map(|value| self.scalar(*value)).collect()
    }

    /// The result of a lane's run and of another lane's, which comes first if the lane is the later one.
    fn combined_in_order(&mut self, combine: Region, own: &[Reg], other: &[Reg], is_later: Reg) -> Vec<Reg> {
        let (earlier, later) = (self.choose(is_later, other, own), self.choose(is_later, own, other));
        self.combined(combine, &earlier, &later)
    }

    /// Whether the lane is in the later one of two runs that differ in a bit.
    pub(super) fn is_later_lane(&mut self, bit: usize, reverse: bool) -> Reg {
        let is_set = self.thread_bit(bit);
        if !reverse {
            return is_set;
        }
        let is_clear = self.reg(Class::Pred);
        asm!(self, "not.pred {is_clear}, {is_set}");
        is_clear
    }

    /// The result of a row of neighbouring runs, combined as a tree for short dependence chains.
    pub(super) fn combined_row(&mut self, combine: Region, mut row: Vec<Vec<Reg>>) -> Vec<Reg> {
        while row.len() > 1 {
            row = row.chunks(2).map(|pair| self.combined(combine, &pair[0], &pair[1])).collect();
        }
        row.remove(0)
    }

    fn combine_registers(&mut self, cx: &mut Cx<'_>, bit: usize) {
        let bit = 1 << bit;
        let (early, late) = if cx.reverse { (bit, 0) } else { (0, bit) };
        if let Some(scan) = &mut cx.scan {
            let (totals, taken) = (&cx.totals, cx.taken);
            self.scan_registers(cx.combine, scan, bit, late, |register| &totals[&(register & !taken & !bit | early)]);
        }
        let runs: Vec<u32> = cx.totals.keys().copied().filter(|run| run & bit == 0).collect();
        let totals = runs.into_iter().map(|run| (run, self.combined(cx.combine, &cx.totals[&(run | early)], &cx.totals[&(run | late)])));
        cx.totals = totals.collect();
        cx.taken |= bit;
    }

    fn combine_lanes(&mut self, cx: &mut Cx<'_>, bit: usize) {
        let mut is_later: Option<Reg> = None;
        let runs: Vec<u32> = cx.totals.keys().copied().collect();
        for run in runs {
            let own = cx.totals[&run].clone();
            let other = self.of_other_lane(cx.inputs, &own, bit);
            if let Some(scan) = &mut cx.scan {
                let is_later = *is_later.get_or_insert_with(|| self.is_later_lane(bit, cx.reverse));
                self.scan_others(cx.combine, scan, (run, cx.taken), &other, is_later);
            }
            if cx.is_symmetric {
                cx.totals.insert(run, self.combined(cx.combine, &own, &other));
                continue;
            }
            let is_later = *is_later.get_or_insert_with(|| self.is_later_lane(bit, cx.reverse));
            cx.totals.insert(run, self.combined_in_order(cx.combine, &own, &other, is_later));
        }
    }

    /// Like [`Emitter::combine_lanes`], where each of two lanes keeps half of the results: those of the registers with its own bit.
    /// Only reductions trade, and they are not reversed.
    fn trade_lanes(&mut self, cx: &mut Cx<'_>, Trade { lane, register }: Trade) {
        let (is_later, kept) = (self.thread_bit(lane), 1 << register);
        let runs: Vec<u32> = cx.totals.keys().copied().filter(|run| run & kept == 0).collect();
        let mut totals = BTreeMap::new();
        for run in runs {
            let (low, high) = (cx.totals[&run].clone(), cx.totals[&(run | kept)].clone());
            let (own, sent) = (self.choose(is_later, &high, &low), self.choose(is_later, &low, &high));
            let other = self.of_other_lane(cx.inputs, &sent, lane);
            let total = if cx.is_commutative {
                self.combined(cx.combine, &own, &other)
            } else {
                self.combined_in_order(cx.combine, &own, &other, is_later)
            };
            totals.insert(run, total);
        }
        cx.totals = totals;
        cx.taken |= kept;
    }

    /// Keeps the results of the registers with the lane's own bit. The other lane holds the same results, and keeps the rest.
    fn keep_half(&mut self, cx: &mut Cx<'_>, Trade { lane, register }: Trade) {
        let (is_set, kept) = (self.thread_bit(lane), 1 << register);
        let runs = cx.totals.keys().copied().filter(|run| run & kept == 0);
        cx.totals = runs.map(|run| (run, self.choose(is_set, &cx.totals[&(run | kept)], &cx.totals[&run]))).collect();
        cx.taken |= kept;
    }

    /// The values of the lane whose number differs in this bit.
    pub(super) fn of_other_lane(&mut self, inputs: &[Value], own: &[Reg], bit: usize) -> Vec<Reg> {
        let mut other = Vec::new();
        for (input, reg) in inputs.iter().zip(own) {
            let dtype = self.func.ty(*input).dtype();
            let words = self.words_of(dtype, &[*reg]);
            let words = self.shuffle("bfly", &words, 1 << bit);
            other.extend(self.elements_of(dtype, &words, 1));
        }
        other
    }

    /// The shared-memory address of the thread's element in an array with one element per thread.
    pub(crate) fn thread_address(&mut self, thread: Reg, bytes: usize) -> Reg {
        let mut offset = thread;
        if bytes > 1 {
            offset = self.reg(Class::B32);
            asm!(self, "shl.b32 {offset}, {thread}, {}", bytes.trailing_zeros());
        }
        self.shared_address(Some(offset))
    }
}

/// The number of independent chains for sums of products.
const CHAINS: usize = 4;

/// The products whose only use is a sum along an axis, in a kernel that permits contraction.
pub(crate) fn summed_products(func: &Function) -> Vec<bool> {
    let mut summed = vec![false; func.value_count()];
    if !func.contract {
        return summed;
    }
    let uses = use_counts(func);
    for inst in func.all_insts() {
        let Op::Reduce { inputs, combine, .. } = &func.inst(inst).op else { continue };
        let [input] = inputs[..] else { continue };
        let is_product = matches!(func.def_op(input), Some(Op::Binary { op: BinaryOp::Mul, .. })) && uses[input.index()] == 1;
        let is_float = matches!(func.ty(input).dtype(), Dtype::F32 | Dtype::F64);
        let [first, _] = func.region(*combine).insts[..] else { continue };
        let is_sum = matches!(func.inst(first).op, Op::Binary { op: BinaryOp::Add, .. }) && is_symmetric(func, *combine);
        summed[input.index()] = is_product && is_float && is_sum;
    }
    summed
}

/// Whether all lanes of a warp hold the same values when these bits of the index along the axis remain to be combined.
pub(crate) fn lanes_alike(layout: &Layout, left: &[Bit], axis: usize) -> bool {
    (0..layout.bits(Level::Lane)).all(|bit| {
        let is_along = |at: usize| layout.basis_along(Level::Lane, bit, at) != 0;
        !left.contains(&Bit { level: Level::Lane, bit }) && (0..layout.shape().len()).all(|at| at == axis || !is_along(at))
    })
}

/// The hardware bits of an index along the axis, in the order in which runs are combined.
pub(crate) fn index_bits(layout: &Layout, axis: usize, is_commutative: bool) -> Vec<Bit> {
    let mut bits = Vec::new();
    for level in Level::ALL {
        for bit in 0..layout.bits(level) {
            let step = layout.basis_along(level, bit, axis);
            if step != 0 {
                bits.push((if is_commutative { level as u32 } else { 0 }, step, Bit { level, bit }));
            }
        }
    }
    bits.sort_by_key(|(group, step, _)| (*group, *step));
    bits.into_iter().map(|(.., bit)| bit).collect()
}
