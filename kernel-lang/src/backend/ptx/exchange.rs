//! What the CTAs of a program tell each other: each writes a scalar into the shared memory of all, and behind one barrier of the cluster
//! each reads its own.
//!
//! A CTA that is ahead may tell the next thing while another still reads the last one, so there are two places, which take turns: what lies
//! in one is overwritten two exchanges later, and nobody gets there before all have arrived at the barrier between, behind their reading.
//! No CTA reads another's memory, so a CTA may end without waiting for the others.
//!
//! Nobody may write to a CTA that has not begun. All arrive at a barrier at the top, and wait there late: in front of the first exchange.

use crate::dtype::Dtype;
use crate::ir::{Function, Op};

use super::Emitter;
use super::registers::{Class, Reg, asm};
use super::shared::WIDEST;

/// Room for one scalar of any type.
const SCALAR: u32 = 8;

/// The places, and what is known of them here.
pub(super) struct Exchange {
    /// Where the next exchange writes, behind the start of shared memory.
    place: Reg,
    /// The sum of both places, which tells one from the other.
    both: u32,
    /// May a CTA of the cluster not have begun yet?
    awaits_start: bool,
}

impl Emitter<'_> {
    /// At the top of a kernel: takes the places, if several CTAs reduce anything to a scalar.
    pub(super) fn prepare_exchange(&mut self) {
        let scalars = if self.schedule.num_ctas > 1 { most_scalars(self.func) } else { 0 };
        if scalars == 0 {
            return;
        }
        let bytes = scalars * self.schedule.num_ctas * SCALAR;
        let range = self.hold(2 * bytes);
        let place = self.reg(Class::B32);
        asm!(self, "mov.b32 {place}, {}", range.start);
        asm!(self, "barrier.cluster.arrive.release.aligned");
        self.exchange = Some(Exchange { place, both: 2 * range.start + bytes, awaits_start: true });
    }

    /// Waits until all CTAs of the cluster have begun, if that is not known.
    pub(super) fn await_cluster(&mut self) {
        if let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.awaits_start) {
            exchange.awaits_start = false;
            asm!(self, "barrier.cluster.wait.acquire.aligned");
        }
    }

    /// Tells all CTAs of the cluster these scalars, which all threads of a CTA have alike; gives what the CTAs of these ranks told, each.
    ///
    /// A rank is told as its bits that are the same for all who ask, and a register of the others.
    pub(super) fn tell(&mut self, dtypes: &[Dtype], own: &[Reg], ranks: &[u32], others: Option<Reg>) -> Vec<Vec<Reg>> {
        self.await_cluster();
        let exchange = self.exchange.as_ref().expect("a kernel whose CTAs combine scalars has places for them");
        let (place, both, num_ctas) = (exchange.place, exchange.both, self.schedule.num_ctas);
        let start = |input: usize| input as u32 * num_ctas * SCALAR;
        let base = self.shared_address(Some(place));
        // The thread of a CTA's number tells that CTA.
        let (thread, rank) = (self.thread(), self.threads.block());
        let tells = self.reg(Class::Pred);
        asm!(self, "setp.lt.u32 {tells}, {thread}, {num_ctas}");
        for (input, (dtype, reg)) in dtypes.iter().zip(own).enumerate() {
            let [here, there] = [0; 2].map(|_| self.reg(Class::B32));
            asm!(self, "mad.lo.s32 {here}, {rank}, {}, {base}", dtype.bytes());
            asm!(self, "@{tells} mapa.shared::cluster.u32 {there}, {here}, {thread}");
            self.store_group("st.shared::cluster", &format!("[{there}+{}]", start(input)), *dtype, Some(tells), &[*reg]);
        }
        // The other place's turn.
        asm!(self, "sub.s32 {place}, {both}, {place}");
        self.program_barrier();
        let is_row = others.is_none() && ranks.iter().enumerate().all(|(index, rank)| index as u32 == *rank);
        let mut told = vec![Vec::new(); ranks.len()];
        for (input, dtype) in dtypes.iter().enumerate() {
            let size = dtype.bytes() as u32;
            let mut from = base;
            if let Some(others) = others {
                from = self.reg(Class::B32);
                asm!(self, "mad.lo.s32 {from}, {others}, {size}, {base}");
            }
            let group = if is_row { (WIDEST / size).min(ranks.len() as u32) } else { 1 };
            for first in (0..ranks.len()).step_by(group as usize) {
                let from = format!("[{from}+{}]", start(input) + ranks[first] * size);
                let regs = self.load_group("ld.shared", &from, *dtype, None, &vec![None; group as usize]);
                told[first..].iter_mut().zip(regs).for_each(|(told, reg)| told.push(reg));
            }
        }
        told
    }
}

/// The most values that one reduction of the kernel leaves of a tile.
fn most_scalars(func: &Function) -> u32 {
    let counts = func.all_insts().into_iter().filter_map(|inst| match &func.inst(inst).op {
        Op::Reduce { inputs, .. } if func.inst(inst).results.iter().all(|result| !func.ty(*result).is_tile()) => Some(inputs.len() as u32),
        _ => None,
    });
    counts.max().unwrap_or_default()
}
