//! Broadcast of scalars between the CTAs of a program: each CTA writes a scalar into the shared memory of all CTAs, and after one barrier
//! of the cluster each CTA reads its own memory.
//!
//! A CTA that is ahead may broadcast the next scalar while another CTA still reads the previous one. Exchanges therefore alternate between
//! two slots. A slot is overwritten two exchanges later. No CTA reaches that exchange before all CTAs have arrived at the barrier of the
//! exchange between, which follows their reads. No CTA reads the memory of another, so a CTA can end without waiting for the others.
//!
//! No CTA may write to a CTA that has not started. All CTAs arrive at a barrier at the top of the kernel, and wait for it late: before the
//! first exchange.

use crate::dtype::Dtype;
use crate::ir::{Function, Op};
use crate::schedule::Schedule;

use crate::backend::ptx::Emitter;
use crate::backend::ptx::exchange::shared::WIDEST;
use crate::backend::ptx::text::registers::{Class, Reg, asm};

/// The bytes of one scalar of any type.
const SCALAR: u32 = 8;

/// The two slots, and the state of the exchange at this point of the program.
pub(crate) struct Exchange {
    /// The offset in shared memory of the slot of the next exchange.
    offset: Reg,
    /// The sum of the offsets of both slots; subtracting one offset gives the other.
    both: u32,
    /// Whether a CTA of the cluster may not have started yet.
    awaits_start: bool,
}

impl Emitter<'_> {
    /// At the top of a kernel: sets up the slots if several CTAs reduce a tile to a scalar.
    pub(crate) fn prepare_exchange(&mut self) {
        let Some(bytes) = slot_bytes(self.func, self.schedule) else { return };
        let offset = self.reg(Class::B32);
        asm!(self, "mov.b32 {offset}, 0");
        asm!(self, "barrier.cluster.arrive.release.aligned");
        self.exchange = Some(Exchange { offset, both: bytes, awaits_start: true });
    }

    /// Waits until all CTAs of the cluster have started, unless the wait was emitted already.
    pub(crate) fn await_cluster(&mut self) {
        if let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.awaits_start) {
            exchange.awaits_start = false;
            asm!(self, "barrier.cluster.wait.acquire.aligned");
        }
    }

    /// Broadcasts scalars, which are equal in all threads of a CTA, to all CTAs of the cluster. Returns the scalars of the CTAs with the
    /// given ranks.
    ///
    /// A rank consists of the bits in `ranks`, which are the same for all readers, and a register with the other bits.
    pub(crate) fn broadcast_to_cluster(&mut self, dtypes: &[Dtype], own: &[Reg], ranks: &[u32], others: Option<Reg>) -> Vec<Vec<Reg>> {
        self.await_cluster();
        let exchange = self.exchange.as_ref().expect("a kernel whose CTAs combine scalars has slots for them");
        let (offset, both, num_ctas) = (exchange.offset, exchange.both, self.schedule.num_ctas);
        let start = |input: usize| input as u32 * num_ctas * SCALAR;
        let base = self.shared_address(Some(offset));
        // Thread `i` writes to CTA `i`.
        let (thread, rank) = (self.thread(), self.threads.block());
        let broadcasts = self.reg(Class::Pred);
        asm!(self, "setp.lt.u32 {broadcasts}, {thread}, {num_ctas}");
        for (input, (dtype, reg)) in dtypes.iter().zip(own).enumerate() {
            let [here, there] = [0; 2].map(|_| self.reg(Class::B32));
            asm!(self, "mad.lo.s32 {here}, {rank}, {}, {base}", dtype.bytes());
            asm!(self, "@{broadcasts} mapa.shared::cluster.u32 {there}, {here}, {thread}");
            self.store_group("st.shared::cluster", &format!("[{there}+{}]", start(input)), *dtype, Some(broadcasts), &[*reg]);
        }
        // Switch to the other slot.
        asm!(self, "sub.s32 {offset}, {both}, {offset}");
        self.program_barrier();
        let is_row = others.is_none() && ranks.iter().enumerate().all(|(index, rank)| index as u32 == *rank);
        let mut received = vec![Vec::new(); ranks.len()];
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
                received[first..].iter_mut().zip(regs).for_each(|(received, reg)| received.push(reg));
            }
        }
        received
    }
}

/// The bytes of one of both slots, of which the first begins shared memory. `None` if the CTAs of a program reduce no tile to a scalar.
pub(crate) fn slot_bytes(func: &Function, schedule: Schedule) -> Option<u32> {
    let scalars = if schedule.num_ctas > 1 { most_scalars(func) } else { 0 };
    (scalars > 0).then_some(scalars * schedule.num_ctas * SCALAR)
}

/// The maximum number of scalars that one reduction of the kernel produces.
fn most_scalars(func: &Function) -> u32 {
    let counts = func.all_insts().into_iter().filter_map(|inst| match &func.inst(inst).op {
        Op::Reduce { inputs, .. } if func.inst(inst).results.iter().all(|result| !func.ty(*result).is_tile()) => Some(inputs.len() as u32),
        _ => None,
    });
    counts.max().unwrap_or_default()
}
