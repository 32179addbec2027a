//! Allocation of shared memory, and barriers: where each op exchanges elements between threads, and where threads wait for each other.
//!
//! ```text
//! ; before
//! ; num_warps 2
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64) {
//!     %0 = const {value = 0} : i64
//!     %1 = const {value = 64} : i64
//!     %2 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     for %0, %n, %1 (%3: i64) {
//!         %4 = broadcast %3 : tile<i64, [64]>
//!         %5 = add %4, %2 : tile<i64, [64]>
//!         %6 = load %x, %5 {in_bounds = true} : tile<f32, [64]>
//!         %10 = reduce %6 {axis = 0} (%7: f32, %8: f32) {
//!             %9 = add %7, %8 : f32
//!             yield %9
//!         } : f32
//!         store %y, %3, %10 {in_bounds = true}
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64) {
//!     %0 = const {value = 0} : i64
//!     %1 = const {value = 64} : i64
//!     %2 = arange {start = 0, end = 64} : tile<i64, [64]> layout<[64], register = [], lane = [1, 2, 4, 8, 16], warp = [32], block = []>
//!     for %0, %n, %1 (%3: i64) {
//!         %4 = broadcast %3 : tile<i64, [64]> layout<[64], register = [], lane = [1, 2, 4, 8, 16], warp = [32], block = []>
//!         %5 = add %4, %2 : tile<i64, [64]> layout<[64], register = [], lane = [1, 2, 4, 8, 16], warp = [32], block = []>
//!         %6 = load %x, %5 {in_bounds = true} : tile<f32, [64]> layout<[64], register = [], lane = [1, 2, 4, 8, 16], warp = [32], block = []>
//!         %10 = reduce %6 {at_once = [1, 1], shared = "0..16"} (%7: f32, %8: f32) {
//!             %9 = add %7, %8 : f32
//!             yield %9
//!         } : f32
//!         store %y, %3, %10 {in_bounds = true}
//!         sync_threads {threads = 64}
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! The sum of an iteration takes 16 bytes for the sums of the warps. The next iteration writes them again, so all threads wait at the end of this one.
//!
//! One walk decides both, because each depends on the other. A barrier between two accesses to a tensor also frees the memory that an exchange has read,
//! and a barrier within an exchange also separates accesses. The walk has two states: [`memory`], and the accesses to tensors in [`hazards`]. Both ask the same: what
//! happened after the last barrier, on any path to this point ([`barrier_state`])?
//!
//! An exchange contains its own barriers, between its writes and its reads. The op says if threads must also wait before it writes: that barrier stands behind the
//! part of the op which moves nothing through memory, such as the shuffles of a reduction.

mod barrier_state;
mod exchanges;
mod hazards;
mod memory;
mod registers;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::ir::rewrite::Changed;
use crate::ir::{Function, Handle, Inst, Op, Region, Scratch, SideTable, Value};
use crate::layout::{BLOCK_ALIGNMENT, STAGING_BYTES};
use crate::schedule::Schedule;
use crate::target::Asked;

use super::arithmetic::compare::of_several_blocks;
use super::exchange::cluster;
use super::exchange::reduce::summed_products;
use super::memory::async_buffer::{last_users, slot_bytes};
use super::memory::common_buffer::is_common;
use super::needed::needed;
use super::roles::{CONSUMER_BARRIER, ring_bytes};

/// Runs the pass. All tiles have layouts, and each load has its reader. The bytes may exceed those of the target: see
/// [`check`](crate::backend::ptx::exchange::budget::check).
pub(super) fn run(func: &mut Function, target: &Asked, schedule: Schedule) -> Changed {
    let mut facts = AffineFacts::new();
    let kept = of_several_blocks(func, &mut facts);
    let mut placement = Placement {
        needed: needed(func, &mut facts, &kept),
        summed: summed_products(func),
        each: SideTable::new(),
        kept,
        facts,
        shared: memory::Shared::default(),
        hazards: hazards::Hazards::of(func),
        last_users: last_users(func),
        alive: Vec::new(),
        scratch: Scratch::default(),
        placed: Vec::new(),
        barriers: FxHashMap::default(),
        barrier: 0,
        func,
        target,
        schedule,
    };
    if let Some(bytes) = cluster::slot_bytes(func, schedule) {
        placement.hold(2 * bytes);
        placement.scratch = Scratch::default();
    }
    placement.region(func.body);
    let Placement { placed, barriers, .. } = placement;
    let changed = !placed.is_empty() || !barriers.is_empty();
    for (inst, scratch) in placed {
        func.scratch[inst] = Some(scratch);
    }
    if !barriers.is_empty() {
        for region in func.regions_under(func.body) {
            let mut insts = Vec::new();
            for inst in func.region(region).insts.clone() {
                let loc = func.inst(inst).loc;
                for (id, threads) in barriers.get(&inst).into_iter().flatten().copied() {
                    insts.push(func.make_inst(Op::SyncThreads { id, threads }, [], loc));
                }
                insts.push(inst);
            }
            *func.insts_mut(region) = insts;
        }
    }
    changed
}

/// The state of the walk.
struct Placement<'a> {
    func: &'a Function,
    target: &'a Asked,
    schedule: Schedule,
    /// The values that some instruction needs in registers: an op without such a result is not emitted.
    needed: Vec<bool>,
    summed: Vec<bool>,
    kept: FxHashSet<Value>,
    facts: AffineFacts,
    /// Does the value take a register for each element?
    each: SideTable<Value, bool>,
    shared: memory::Shared,
    hazards: hazards::Hazards,
    /// For each async buffer, the last op of its region that uses the buffer or contains a use.
    last_users: FxHashMap<Value, Inst>,
    /// The live async buffers, each with its last user.
    alive: Vec<(Inst, std::ops::Range<u32>)>,
    /// The shared memory of the current op.
    scratch: Scratch,
    placed: Vec<(Inst, Scratch)>,
    /// The barriers in front of ops: their ids, and the numbers of threads that wait.
    barriers: FxHashMap<Inst, Vec<(u32, u32)>>,
    /// The barrier of the threads that execute the current op.
    barrier: u32,
}

impl Placement<'_> {
    fn region(&mut self, region: Region) {
        let func = self.func;
        // Behind a wait, before all threads have met.
        let mut has_waited = false;
        for &inst in &func.region(region).insts {
            let data = func.inst(inst);
            if !data.op.has_effects() && !data.results.iter().any(|result| self.needed[result.index()]) {
                continue;
            }
            self.keep_order(inst);
            self.note_registers(data);
            match &data.op {
                Op::If { then_region, else_region, .. } => self.branch(*then_region, *else_region),
                Op::For { lower, upper, step, body, .. } => {
                    let params = &func.region(*body).params;
                    params[1..].iter().for_each(|param| self.each[*param] = func.ty(*param).is_tile());
                    let opened = self.begin_loop(inst, Some(([*lower, *upper, *step], params[0])), &[*body]);
                    self.region(*body);
                    self.end_loop(opened, func.terminator(*body));
                }
                Op::Roles { producer, consumer } => {
                    self.reserve_staging(*consumer);
                    let own = std::mem::take(&mut self.scratch);
                    self.region(*producer);
                    self.barrier = CONSUMER_BARRIER;
                    self.region(*consumer);
                    self.scratch = own;
                }
                Op::Ring { slots } => drop(self.hold(ring_bytes(func, inst, *slots))),
                Op::While { test, body, .. } => self.while_loop(inst, *test, *body),
                Op::Return {} => self.end_cluster_reads(inst),
                Op::AsyncWait { .. } => has_waited = true,
                Op::AsyncCopy { buffer, .. } | Op::LocalLoad { buffer, .. } if has_waited && is_common(func, *buffer) => {
                    // The copies of other threads have arrived, and the slot that is copied next has been read.
                    has_waited = false;
                    self.place_barrier(inst);
                }
                Op::AsyncBuffer { slots, .. } => {
                    let range = self.hold(slots * slot_bytes(func, data.results[0], self.schedule));
                    self.alive.push((self.last_users[&data.results[0]], range));
                }
                _ => self.exchange(inst),
            }
            let scratch = std::mem::take(&mut self.scratch);
            if scratch != Scratch::default() {
                self.placed.push((inst, scratch));
            }
            let (gone, alive) = std::mem::take(&mut self.alive).into_iter().partition(|(last, _)| *last == inst);
            self.alive = alive;
            let gone: Vec<_> = gone;
            gone.into_iter().for_each(|(_, range)| self.give_back(range));
        }
    }

    /// Holds the memory through which a consumer stores blocks: copies of the blocks of a program may still read it when the next one begins.
    fn reserve_staging(&mut self, consumer: Region) {
        let mut has_stores = false;
        self.func.for_each_inst(consumer, &mut |inst| has_stores |= matches!(self.func.inst(inst).op, Op::StoreBlock { .. }));
        if has_stores {
            self.hold((self.schedule.num_warps * STAGING_BYTES).next_multiple_of(BLOCK_ALIGNMENT));
        }
    }

    fn branch(&mut self, then_region: Region, else_region: Region) {
        let fork = self.fork();
        self.region(then_region);
        let then_end = self.fork();
        self.go_back(&fork);
        self.region(else_region);
        self.join(then_end);
    }

    fn while_loop(&mut self, inst: Inst, test: Region, body: Region) {
        let func = self.func;
        func.region(test).params.iter().for_each(|param| self.each[*param] = func.ty(*param).is_tile());
        let opened = self.begin_loop(inst, None, &[test, body]);
        self.region(test);
        let tested = self.fork();
        let Op::Condition { values, .. } = &func.inst(func.terminator(test)).op else {
            unreachable!("the test of a verified `while` ends in `condition`")
        };
        for (param, value) in func.region(body).params.iter().chain(&func.inst(inst).results).zip(values.iter().cycle()) {
            self.each[*param] = self.each[*value];
        }
        self.region(body);
        self.end_loop(opened, func.terminator(body));
        self.join(tested);
    }

    /// Places a barrier of all threads of the CTA in front of an op.
    fn place_barrier(&mut self, at: Inst) {
        self.barriers.entry(at).or_default().push((self.barrier, self.schedule.threads()));
        self.at_barrier();
    }

    /// Places a barrier of all threads of the program in front of an op.
    fn place_program_barrier(&mut self, at: Inst) {
        self.barriers.entry(at).or_default().push((self.barrier, self.schedule.threads() * self.schedule.num_ctas));
        self.at_program_barrier();
    }
}
