//! Cache eviction hints: gives a priority to loads and stores for which the user names none.
//!
//! ```text
//! ; before
//! kernel @row_maximum(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64) {
//!     %0 = program_id : i64
//!     %1 = mul %0, %n : i64
//!     %2 = broadcast %1 : tile<i64, [512]>
//!     %3 = arange {start = 0, end = 512} : tile<i64, [512]>
//!     %4 = add %2, %3 : tile<i64, [512]>
//!     %5 = load %x, %4 : tile<f32, [512]>
//!     %8 = reduce %5 (%6: f32, %7: f32) {
//!         %9 = max %6, %7 : f32
//!         yield %9
//!     } : f32
//!     store %y, %0, %8
//!     return
//! }
//! ; after
//! kernel @row_maximum(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64) {
//!     %0 = program_id : i64
//!     %1 = mul %0, %n : i64
//!     %2 = broadcast %1 : tile<i64, [512]>
//!     %3 = arange {start = 0, end = 512} : tile<i64, [512]>
//!     %4 = add %2, %3 : tile<i64, [512]>
//!     %5 = load %x, %4 {evict = "evict_first_if_small"} : tile<f32, [512]>
//!     %9 = reduce %5 (%6: f32, %7: f32) {
//!         %8 = max %6, %7 : f32
//!         yield %8
//!     } : f32
//!     store %y, %0, %9
//!     return
//! }
//! ```
//!
//! `hint` is the whole rule. It takes how often elements are read ([`reuse`]), whether the kernel mostly reads, and whether it mostly moves wide elements. All are
//! guesses, and a wrong hint costs time only. Loads from tensors that the kernel writes, volatile loads, loads with a cache operator and loads through
//! computed pointers get no hint. A store gets one if a loop of the kernel reads again what an earlier loop has read, which its output would drive out of the L2. For other
//! stores, no hint was faster than none in the measurements.

use crate::analysis::affine::AffineFacts;
use crate::analysis::masks::{self, Condition};
use crate::analysis::reuse::{self, Read, Reuse};
use crate::ir::rewrite::Changed;
use crate::ir::{Cache, Evict, Function, Inst, Op, Region, Stored, Value, computation};

/// The priority for a load. `moves_words` says whether it loads elements of 4 bytes or more in a kernel that mostly moves elements.
fn hint(reuse: Reuse, reads_mostly: bool, moves_words: bool) -> Evict {
    match (reuse, reads_mostly) {
        // The lines that other kernels wrote stay in the L2, and need not go to memory while this kernel reads. While it reads much, they do not matter.
        (Reuse::Once, true) => Evict::FirstIfSmall,
        // The lines that the kernel writes leave the L2 first, and in longer runs.
        (Reuse::Once | Reuse::Parts | Reuse::Gathered, false) => Evict::Last,
        // Another loop of the program reads the lines again, and nothing does after the last one.
        (Reuse::Again, _) => Evict::Last,
        (Reuse::Last, _) => Evict::First,
        // A kernel that only moves wide elements waits for the memory. One that computes more waits for its instructions, and a hint costs more than it saves.
        (Reuse::Shared, false) if moves_words => Evict::Last,
        // Lines that other programs read again must neither leave early nor drive out others.
        (Reuse::Parts | Reuse::Gathered, true) | (Reuse::Shared, _) => Evict::Unset,
    }
}

/// A kernel mostly reads if it reads at least so many bytes for each byte that it stores.
const MOSTLY: u128 = 4;

/// The bytes of a wide element. A kernel of narrower elements takes more instructions for each byte.
const WORD: usize = 4;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    for Decision { inst, evict: chosen, .. } in decide(func) {
        if let Op::Load { evict, .. } | Op::Store { evict, .. } = &mut func.inst_mut(inst).op {
            changed |= *evict != chosen;
            *evict = chosen;
        }
    }
    changed
}

/// The priority of a load or a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The load or the store.
    pub inst: Inst,
    /// Its priority.
    pub evict: Evict,
    /// Why it has this priority.
    pub reason: Reason,
}

/// The reason for the priority of a load or a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// The user names a priority or a cache operator, or the load is volatile.
    Named,
    /// The kernel writes the tensor, or might.
    Written,
    /// The pointer is computed.
    ComputedPointer,
    /// The kernel mostly writes, the elements are narrow, and the mask leaves out a part of the tile that differs between programs.
    PartOfTile,
    /// A store, and whether the kernel reads elements again that its output might drive out of the L2.
    Output {
        /// Does a loop read what an earlier loop has read?
        reads_again: bool,
    },
    /// How often the elements are read, and whether the kernel mostly reads.
    Guess {
        /// How often the elements are read.
        reuse: Reuse,
        /// Whether the kernel reads far more bytes than it stores.
        reads_mostly: bool,
        /// Whether the load is of wide elements, in a kernel that mostly moves elements.
        moves_words: bool,
    },
}

/// The priorities of all loads and of all stores of a kernel, each in order.
pub fn decide(func: &Function) -> Vec<Decision> {
    let reads = reuse::compute(func);
    let mut writes = Vec::new();
    collect_writes(func, func.body, &mut Vec::new(), &mut writes);
    // Atomics work in the L2, so what they write does not count as bytes for the memory.
    let stores = writes.iter().filter(|write| matches!(func.inst(write.inst).op, Op::Store { .. }));
    let stored: u128 = stores.map(|write| write.bytes).fold(0, u128::saturating_add);
    let from_memory = |reuse: Reuse| matches!(reuse, Reuse::Once | Reuse::Parts | Reuse::Gathered | Reuse::Again);
    let read = reads.iter().filter(|read| from_memory(read.reuse));
    let read = read.map(|read| reuse::bytes(func, func.result(read.inst), &read.loops)).fold(0, u128::saturating_add);
    let reads_mostly = read >= stored.saturating_mul(MOSTLY);
    let loaded = reads.iter().map(|read| reuse::bytes(func, func.result(read.inst), &read.loops)).fold(0, u128::saturating_add);
    let moves = loaded < stored.saturating_mul(2);

    let written = Stored::through(func, writes.iter().map(|write| write.base));
    let decision = |read: &Read| {
        let Op::Load { base, cache, evict, volatile, mask, .. } = func.inst(read.inst).op else { unreachable!("a read is a load") };
        let is_known = func.param_index(base).is_some() && !written.may_alias(func, base);
        let is_wide = func.ty(base).dtype().bytes() >= WORD;
        let moves_words = moves && is_wide && func.ty(func.result(read.inst)).is_tile();
        let is_part = || mask.is_some_and(|mask| !is_wide && ends_with_program(func, mask));
        let (evict, reason) = if (cache, evict, volatile) != (Cache::Default, Evict::Unset, false) {
            (evict, Reason::Named)
        } else if is_known && !reads_mostly && read.reuse == Reuse::Once && is_part() {
            (Evict::Unset, Reason::PartOfTile)
        } else if is_known {
            (hint(read.reuse, reads_mostly, moves_words), Reason::Guess { reuse: read.reuse, reads_mostly, moves_words })
        } else {
            (Evict::Unset, if func.param_index(base).is_some() { Reason::Written } else { Reason::ComputedPointer })
        };
        Decision { inst: read.inst, evict, reason }
    };
    let reads_again = reads.iter().any(|read| read.reuse == Reuse::Again);
    let output = |write: &Write| {
        let Op::Store { cache, evict, .. } = func.inst(write.inst).op else { return None };
        let (evict, reason) = match (cache, evict) {
            (Cache::Default, Evict::Unset) => (if reads_again { Evict::First } else { Evict::Unset }, Reason::Output { reads_again }),
            _ => (evict, Reason::Named),
        };
        Some(Decision { inst: write.inst, evict, reason })
    };
    reads.iter().map(decision).chain(writes.iter().filter_map(output)).collect()
}

/// Does a mask end at a number that each program computes from its own ids, as in `column <= row`?
fn ends_with_program(func: &Function, mask: Value) -> bool {
    let is_own = |scalar: Value| {
        let ops = computation(func, scalar, &|_| true).unwrap_or_default();
        ops.into_iter().any(|inst| matches!(func.inst(inst).op, Op::ProgramId { .. }))
    };
    masks::conjuncts(func, &mut AffineFacts::new(), mask).iter().any(|conjunct| match &conjunct.condition {
        Condition::Comparison(comparison) => comparison.limit.scalars().any(is_own),
        Condition::Uniform(_) | Condition::Unknown => false,
    })
}

/// A store or an atomic.
struct Write {
    inst: Inst,
    base: Value,
    bytes: u128,
}

fn collect_writes(func: &Function, region: Region, loops: &mut Vec<Inst>, writes: &mut Vec<Write>) {
    for &inst in &func.region(region).insts {
        match func.inst(inst).op {
            Op::Store { base, value, .. } => writes.push(Write { inst, base, bytes: reuse::bytes(func, value, loops) }),
            Op::Atomic { base, .. } => writes.push(Write { inst, base, bytes: 0 }),
            _ => {}
        }
        let is_loop = matches!(func.inst(inst).op, Op::For { .. } | Op::While { .. });
        loops.extend(is_loop.then_some(inst));
        func.inst(inst).op.for_each_region(&mut |inner| collect_writes(func, inner, loops, writes));
        loops.truncate(loops.len() - usize::from(is_loop));
    }
}
