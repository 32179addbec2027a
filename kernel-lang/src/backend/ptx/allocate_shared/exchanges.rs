//! The shared memory of each op: the size of each part, and the barriers that [`crate::backend::ptx::exchange`] emits.

use crate::analysis::symmetry::is_symmetric;
use crate::dtype::Dtype;
use crate::ir::product::multiplier;
use crate::ir::renaming::trades;
use crate::ir::{Handle, Inst, Op, Reader, Value};
use crate::layout::{Conversion, Layout, Level, Multiplier, known_conversion};

use super::Placement;
use crate::backend::ptx::exchange::outer_products;
use crate::backend::ptx::exchange::reduce::{Bit, index_bits, lanes_alike};
use crate::backend::ptx::exchange::relayout::EXCHANGED_BYTES;
use crate::backend::ptx::exchange::slices::slices;

impl Placement<'_> {
    /// Walks over the shared memory and the barriers of one op.
    pub(super) fn exchange(&mut self, inst: Inst) {
        let func = self.func;
        let data = func.inst(inst);
        if let [result] = data.results[..]
            && data.op.is_pure()
            && func.ty(result).is_tile()
            && self.facts.get(func, result).is_some()
        {
            // Indices are computed from their affine form.
            return;
        }
        match &data.op {
            Op::Barrier {} => self.at_program_barrier(),
            Op::Convert { x } => self.convert(*x, data.results[0]),
            Op::Flip { x, axis } => self.flip(*x, *axis as usize),
            Op::Butterfly { x, axis, bit } => self.butterfly(*x, *axis as usize, *bit),
            Op::Gather { src, .. } => {
                let (bytes, numel) = (func.ty(*src).dtype().bytes() as u32, func.ty(*src).numel() as u32);
                self.in_parts(numel, bytes, 1, false);
            }
            Op::Dot { a, b, precision, .. } if multiplier(func.ty(*a).dtype(), *precision) == Multiplier::Fma => {
                let [left, right] = [a, b].map(|x| func.layouts[*x].as_ref().expect("tiles have layouts"));
                let range = self.scratch(outer_products::bytes(left, right));
                self.at_barrier();
                self.reads_shared(range);
            }
            Op::Histogram { .. } => self.in_parts(func.ty(data.results[0]).numel() as u32, 4, 2, false),
            Op::Reduce { .. } | Op::Scan { .. } => self.reduce(&data.op, &data.results),
            Op::Load { offset, reader: Reader::Broadcast, .. } => self.broadcast(*offset, data.results[0], false),
            Op::LocalLoad { buffer, reader, .. } => {
                if !func.ty(*buffer).is_tile() {
                    self.at_warp_barrier();
                }
                if *reader == Reader::Broadcast {
                    self.broadcast(data.results[0], data.results[0], false);
                }
            }
            Op::AsyncCopy { buffer, .. } if !func.ty(*buffer).is_tile() => self.at_warp_barrier(),
            Op::Atomic { .. } => self.atomic(inst),
            _ => {}
        }
    }

    /// An exchange of `count` elements that begins anew for each part, with `barriers` barriers before it reads the last time.
    fn in_parts(&mut self, count: u32, bytes: u32, barriers: u32, within_warps: bool) {
        let at_once = self.at_once(count, &|count| count * bytes);
        let range = self.scratch(at_once * bytes);
        let is_whole = at_once == count;
        for _ in 0..barriers {
            if within_warps && is_whole { self.at_warp_barrier() } else { self.at_barrier() }
        }
        self.reads_shared(range);
        if !is_whole {
            self.at_barrier();
        }
    }

    /// An exchange of the registers of a thread, one part after the other.
    fn in_turn(&mut self, registers: u32, most: u32, bytes: u32) {
        let at_once = self.at_once(most, &|registers| registers * bytes);
        for first in (0..registers).step_by(at_once as usize) {
            let range = self.scratch(at_once.min(registers - first) * bytes);
            self.at_barrier();
            self.reads_shared(range);
        }
    }

    fn convert(&mut self, x: Value, result: Value) {
        let (true, Some(from), Some(to)) = (self.each[x], &self.func.layouts[x], &self.func.layouts[result]) else { return };
        let bytes = self.func.ty(x).dtype().bytes() as u32;
        if let Ok(Conversion::Shared(plan)) = known_conversion(from, to, 8 * bytes).as_ref() {
            self.in_parts(plan.memory.elements(), bytes, 1, plan.within_warps);
        }
    }

    fn flip(&mut self, x: Value, axis: usize) {
        let (true, Some(layout)) = (self.each[x], &self.func.layouts[x]) else { return };
        let inverse = layout.pseudo_inverse().expect("layouts of verified tiles hold every element");
        if layout.coordinate(inverse.apply(layout.mask_along(axis))).warp != 0 {
            let (registers, bytes) = (layout.registers_per_thread(), self.bytes_of_threads(x));
            self.in_turn(registers, (EXCHANGED_BYTES / bytes).clamp(1, registers), bytes);
        }
    }

    fn butterfly(&mut self, x: Value, axis: usize, bit: u32) {
        let (true, Some(layout)) = (self.each[x], &self.func.layouts[x]) else { return };
        let is_of = |level: Level| (0..layout.bits(level)).any(|at| layout.basis_along(level, at, axis) == 1 << bit);
        if !is_of(Level::Register) && !is_of(Level::Lane) {
            let (registers, bytes) = (layout.registers_per_thread(), self.bytes_of_threads(x));
            self.in_turn(registers, registers, bytes);
        }
    }

    /// The bytes of one register of each thread.
    fn bytes_of_threads(&self, x: Value) -> u32 {
        self.schedule.threads() * self.func.ty(x).dtype().bytes() as u32
    }

    fn reduce(&mut self, op: &Op, results: &[Value]) {
        let func = self.func;
        let (inputs, axis, combine, is_scan) = match op {
            Op::Reduce { inputs, axis, combine } => (inputs, *axis as usize, *combine, false),
            Op::Scan { inputs, axis, combine, .. } => (inputs, *axis as usize, *combine, true),
            _ => unreachable!("`{}` combines nothing", op.name()),
        };
        let layout = func.layouts[inputs[0]].as_ref().expect("tiles have layouts");
        let mut bits = index_bits(layout, axis, !is_scan && is_symmetric(func, combine));
        let mut runs = layout.registers_per_thread() as usize;
        if self.summed[inputs[0].index()] {
            runs >>= bits.iter().filter(|bit| bit.level == Level::Register).count();
            bits.retain(|bit| bit.level != Level::Register);
        }
        let trades = results.first().and_then(|result| trades(func, op, inputs[0], *result)).unwrap_or_default();
        let is_lane = |bit: &Bit, lane: usize| bit.level == Level::Lane && bit.bit == lane;
        let kept = trades.iter().filter(|trade| !bits.iter().any(|bit| is_lane(bit, trade.lane))).count();
        let mut is_kept = false;
        let dtypes: Vec<Dtype> = inputs.iter().map(|input| func.ty(*input).dtype()).collect();
        let mut at = 0;
        while at < bits.len() {
            let level = bits[at].level;
            // Lanes that hold copies of the whole tile keep a part of it each.
            if level != Level::Register && !std::mem::replace(&mut is_kept, true) {
                runs >>= kept;
            }
            let row = bits[at..].iter().take_while(|next| next.level == level).count();
            match level {
                Level::Register => runs >>= 1,
                Level::Lane => runs >>= usize::from(trades.iter().any(|trade| is_lane(&bits[at], trade.lane))),
                Level::Warp => {
                    let is_alike = trades.is_empty() && lanes_alike(layout, &bits[at..], axis);
                    let writers = if is_alike { self.schedule.num_warps } else { self.schedule.threads() };
                    self.combine(runs, &dtypes, writers, false);
                }
                // The CTAs broadcast a scalar.
                Level::Block if runs == 1 && results.iter().all(|result| !func.ty(*result).is_tile()) => self.at_program_barrier(),
                Level::Block => self.combine(runs, &dtypes, self.schedule.threads(), true),
            }
            at += if matches!(level, Level::Warp | Level::Block) { row } else { 1 };
        }
    }

    /// Runs that warps or CTAs exchange.
    fn combine(&mut self, runs: usize, dtypes: &[Dtype], writers: u32, by_cluster: bool) {
        for slice in slices(runs, dtypes, writers, &mut |count, bytes| self.at_once(count, bytes)) {
            let range = self.scratch(slice.bytes(dtypes, writers));
            if by_cluster {
                self.at_program_barrier();
                self.cluster_reads_shared(range);
            } else {
                self.at_barrier();
                self.reads_shared(range);
            }
        }
    }

    fn atomic(&mut self, inst: Inst) {
        let data = self.func.inst(inst);
        let Op::Atomic { op, offset, sem, .. } = data.op else { return };
        let old = data.results.first().copied().filter(|result| self.needed[result.index()]);
        if old.is_none() && !op.writes() {
            return;
        }
        let sem = if old.is_some() { sem } else { sem.without_acquire() };
        if sem.releases() {
            self.at_program_barrier();
            // The barrier precedes the access, which was recorded before the barrier; record it again.
            self.keep_order(inst);
        }
        if let Some(result) = old {
            self.broadcast(offset, result, sem.acquires());
            if sem.acquires() && self.schedule.num_ctas > 1 {
                self.at_program_barrier();
            }
        }
    }

    /// Owners of elements broadcast values of the type of `of`. With `waits`, no thread goes on before.
    fn broadcast(&mut self, offset: Value, of: Value, waits: bool) {
        let layout = self.func.layouts[offset].as_ref();
        let free = layout.map(Layout::free_bits);
        let (threads, count) = (self.schedule.threads(), layout.map_or(1, Layout::registers_per_thread));
        let found = (0..count).filter(|register| register & free.map_or(0, |free| free.register) == 0).count() as u32;
        let free = free.map_or(u32::MAX, |free| free.lane | free.warp << 5) & (threads - 1);
        if free >> 5 == 0 {
            return if waits {
                self.at_barrier()
            };
        }
        let owners = (!free & (threads - 1)) + 1;
        self.in_turn(found, found, owners * self.func.ty(of).dtype().bytes() as u32);
    }
}
