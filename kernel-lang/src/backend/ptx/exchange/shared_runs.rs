//! Runs of several warps, or of several CTAs, are combined through shared memory: each thread writes the results of its runs, and reads those of the others.

use crate::backend::ptx::Emitter;
use crate::backend::ptx::exchange::reduce::{Bit, Cx};
use crate::backend::ptx::exchange::shared::WIDEST;
use crate::backend::ptx::exchange::slices::slices;
use crate::backend::ptx::text::registers::{Class, Reg, asm};

/// As many results of warps as are combined between lanes rather than by each lane: 5 shuffles take less time than 8 loads and 31 operations.
const MANY_WARPS: usize = 16;

impl Emitter<'_> {
    /// Every warp writes the results of its runs and reads those of all warps that differ from it in these bits. If the lanes of a warp
    /// hold the same results, one lane writes. The results of [`MANY_WARPS`] are read by one lane each, and then combined between lanes.
    pub(super) fn combine_warps(&mut self, cx: &mut Cx<'_>, bits: &[Bit], is_alike: bool) {
        // Writers are numbered; a bit of the warp index is a bit of the writer index.
        let (writers, warp) = if is_alike { (self.schedule.num_warps, 1) } else { (self.schedule.threads(), 32) };
        let runs: Vec<u32> = cx.totals.keys().copied().collect();
        let dtypes: Vec<_> = cx.inputs.iter().map(|input| self.func.ty(*input).dtype()).collect();
        let mask: u32 = bits.iter().map(|bit| warp << bit.bit).sum();
        let mut order: Vec<u32> = (0..1 << bits.len()).collect();
        if cx.reverse {
            order.reverse();
        }
        let warp_of =
            |part: u32| bits.iter().enumerate().filter(|(index, _)| part >> index & 1 == 1).map(|(_, bit)| warp << bit.bit).sum::<u32>();
        let is_row = order.iter().enumerate().all(|(index, part)| warp_of(*part) == index as u32);
        let by_lanes = order.len() >= MANY_WARPS && is_row && is_alike && cx.is_commutative;
        let reads = if by_lanes { 1 } else { order.len() };
        let (mut number, thread) = (self.thread(), self.thread());
        let mut writes = None;
        // Values that the threads compute once, after the first barrier.
        let mut known: Option<(Vec<Reg>, Vec<Option<Reg>>)> = None;
        let mut own: Vec<Reg> = Vec::new();
        for slice in slices(runs.len(), &dtypes, writers, &mut |_, _| self.at_once()) {
            let range = self.scratch();
            let offset = |input: usize, run: usize, writer: u32| {
                range.start + slice.offset(&dtypes, writers, input, run) + writer * dtypes[input].bytes() as u32
            };
            if own.is_empty() {
                if is_alike {
                    number = self.reg(Class::B32);
                    asm!(self, "shr.u32 {number}, {thread}, 5");
                    writes = self.owner(31, thread);
                }
                own = dtypes.iter().map(|dtype| self.thread_address(number, dtype.bytes())).collect();
            }
            for run in slice.runs.clone() {
                for input in slice.inputs.clone() {
                    let (reg, to) = (cx.totals[&runs[run]][input], format!("[{}+{}]", own[input], offset(input, run, 0)));
                    self.store_group("st.shared", &to, dtypes[input], writes, &[reg]);
                }
            }
            self.barrier();
            if known.is_none() {
                let mut others = self.reg(Class::B32);
                asm!(self, "and.b32 {others}, {number}, {}", !mask & (writers - 1));
                if by_lanes {
                    let (lane, first) = (self.reg(Class::B32), others);
                    others = self.reg(Class::B32);
                    asm!(self, "and.b32 {lane}, {thread}, {mask}");
                    asm!(self, "or.b32 {others}, {first}, {lane}");
                }
                let addresses: Vec<Reg> = dtypes.iter().map(|dtype| self.thread_address(others, dtype.bytes())).collect();
                // The predicates that select this thread's warp in the row.
                let mine: Vec<Option<Reg>> = order
                    .iter()
                    .enumerate()
                    .map(|(index, part)| (cx.scan.is_some() && index > 0).then(|| self.is_part("eq", number, mask, warp_of(*part))))
                    .collect();
                known = Some((addresses, mine));
            }
            let Some((addresses, mine)) = &known else { continue };
            for run in slice.runs.clone() {
                let parts = cx.parts.entry(run).or_insert_with(|| vec![Vec::new(); reads]);
                for input in slice.inputs.clone() {
                    let dtype = dtypes[input];
                    // Load adjacent elements with one vectorised access.
                    let group = if is_row { (WIDEST as usize / dtype.bytes()).min(reads) } else { 1 };
                    for (first, parts) in parts.chunks_mut(group).enumerate() {
                        let from = format!("[{}+{}]", addresses[input], offset(input, run, warp_of(order[first * group])));
                        let regs = self.load_group("ld.shared", &from, dtype, None, &vec![None; group]);
                        parts.iter_mut().zip(regs).for_each(|(part, reg)| part.push(reg));
                    }
                }
                if slice.inputs.end < dtypes.len() {
                    continue;
                }
                let (first, parts) = (runs[run], cx.parts.remove(&run).unwrap_or_default());
                if cx.scan.is_none() {
                    let mut total = self.combined_row(cx.combine, parts);
                    for bit in 0..if by_lanes { bits.len() } else { 0 } {
                        let other = self.of_other_lane(cx.inputs, &total, bit);
                        total = self.combined(cx.combine, &total, &other);
                    }
                    cx.totals.insert(first, total);
                    continue;
                }
                let (mut total, mut before) = (parts[0].clone(), parts[0].clone());
                for (index, next) in parts.iter().enumerate().skip(1) {
                    if let Some(is_mine) = mine[index] {
                        before = if index == 1 { total.clone() } else { self.choose(is_mine, &total, &before) };
                    }
                    total = self.combined(cx.combine, &total, next);
                }
                let is_later = self.is_part("ne", number, mask, warp_of(order[0]));
                if let Some(scan) = &mut cx.scan {
                    self.scan_others(cx.combine, scan, (first, cx.taken), &before, is_later);
                }
                cx.totals.insert(first, total);
            }
        }
    }

    /// Like [`Emitter::combine_warps`], for the CTAs of a cluster: each thread reads from the threads with its index in the other CTAs. If
    /// all threads of a CTA hold the same scalar, the CTAs broadcast it.
    pub(super) fn combine_blocks(&mut self, cx: &mut Cx<'_>, bits: &[Bit], is_same: bool) {
        let runs: Vec<u32> = cx.totals.keys().copied().collect();
        let dtypes: Vec<_> = cx.inputs.iter().map(|input| self.func.ty(*input).dtype()).collect();
        let mask: u32 = bits.iter().map(|bit| 1 << bit.bit).sum();
        let rest = !mask & (self.schedule.num_ctas - 1);
        let others = (rest != 0).then(|| {
            let others = self.asm.reg(Class::B32);
            asm!(self, "and.b32 {others}, {}, {rest}", self.threads.block());
            others
        });
        let along = |part: u32| bits.iter().enumerate().filter(|(index, _)| part >> index & 1 == 1).map(|(_, bit)| 1 << bit.bit).sum();
        let ranks: Vec<u32> = (0..1u32 << bits.len()).map(along).collect();
        if let ([run], true) = (&runs[..], is_same) {
            let received = self.broadcast_to_cluster(&dtypes, &cx.totals[run], &ranks, others);
            let total = self.combined_row(cx.combine, received);
            cx.totals.insert(*run, total);
            return;
        }
        let (thread, threads) = (self.thread(), self.schedule.threads());
        let mut totals: Vec<Vec<Reg>> = Vec::new();
        for slice in slices(runs.len(), &dtypes, threads, &mut |_, _| self.at_once()) {
            let range = self.scratch();
            let offset = |input: usize, run: usize| range.start + slice.offset(&dtypes, threads, input, run);
            let own: Vec<Reg> = dtypes.iter().map(|dtype| self.thread_address(thread, dtype.bytes())).collect();
            for run in slice.runs.clone() {
                for input in slice.inputs.clone() {
                    let to = format!("[{}+{}]", own[input], offset(input, run));
                    self.store_group("st.shared", &to, dtypes[input], None, &[cx.totals[&runs[run]][input]]);
                }
            }
            self.program_barrier();
            for (index, rank) in ranks.iter().enumerate() {
                let block = match others {
                    None => rank.to_string(),
                    Some(others) => {
                        let block = self.reg(Class::B32);
                        asm!(self, "or.b32 {block}, {others}, {rank}");
                        block.to_string()
                    }
                };
                let there: Vec<Reg> = own
                    .iter()
                    .map(|own| {
                        let there = self.asm.reg(Class::B32);
                        asm!(self, "mapa.shared::cluster.u32 {there}, {own}, {block}");
                        there
                    })
                    .collect();
                for run in slice.runs.clone() {
                    let parts = cx.parts.entry(run).or_insert_with(|| vec![Vec::new(); ranks.len()]);
                    for input in slice.inputs.clone() {
                        let from = format!("[{}+{}]", there[input], offset(input, run));
                        parts[index].extend(self.load_group("ld.shared::cluster", &from, dtypes[input], None, &[None]));
                    }
                    if slice.inputs.end < dtypes.len() {
                        continue;
                    }
                    let next = std::mem::take(&mut parts[index]);
                    match totals.get(run) {
                        None => totals.push(next),
                        Some(before) => totals[run] = self.combined(cx.combine, &before.clone(), &next),
                    }
                }
            }
        }
        cx.totals = runs.into_iter().zip(totals).collect();
    }

    /// A predicate: whether the masked bits of the number equal `value`, or not.
    fn is_part(&mut self, comparison: &str, number: Reg, mask: u32, value: u32) -> Reg {
        let (masked, holds) = (self.reg(Class::B32), self.reg(Class::Pred));
        asm!(self, "and.b32 {masked}, {number}, {mask}");
        asm!(self, "setp.{comparison}.s32 {holds}, {masked}, {value}");
        holds
    }
}
