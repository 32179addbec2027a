//! Memory order of atomics: an atomic that has nothing to order becomes relaxed.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %at: tile<i64, [64]>) {
//!     %0 = load %x, %at : tile<f32, [64]>
//!     %1 = atomic %y, %at, %0 {op = "add"} : tile<f32, [64]>
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %at: tile<i64, [64]>) {
//!     %0 = load %x, %at : tile<f32, [64]>
//!     %1 = atomic %y, %at, %0 {op = "add", sem = "relaxed"} : tile<f32, [64]>
//!     return
//! }
//! ```
//!
//! A release orders the program's earlier accesses before the atomic, an acquire orders its later accesses behind it. Both take a barrier and a
//! fence, which waits until all loads of a thread are complete. Loads through a `Ptr` need no order, because nothing stores to that memory
//! during the launch. So the release of a program that has only loaded from such memory orders nothing, and neither does the acquire of one
//! that no longer accesses other memory.
//!
//! In a loop, an iteration comes before the next one, so the atomic itself is an earlier and a later access.

use rustc_hash::FxHashMap;

use crate::ir::rewrite::Changed;
use crate::ir::{Function, Inst, Op, Region, Semantics, Type};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let has_order = |inst: &Inst| matches!(func.inst(*inst).op, Op::Atomic { sem, .. } if sem != Semantics::Relaxed);
    if !func.all_insts().iter().any(has_order) {
        return false;
    }
    let mut search = Search { func, accesses: FxHashMap::default(), before: FxHashMap::default(), after: FxHashMap::default() };
    // Inner regions come behind the regions around them.
    for region in func.regions_under(func.body).into_iter().rev() {
        let accesses = func.region(region).insts.iter().any(|inst| search.is_ordered(*inst));
        search.accesses.insert(region, accesses);
    }
    search.forwards(func.body, false);
    search.backwards(func.body, false);
    let Search { before, after, .. } = search;
    let mut changed = false;
    for (inst, is_before) in before {
        if let Op::Atomic { sem, .. } = &mut func.inst_mut(inst).op {
            let relaxed = Semantics::of(sem.acquires() && after[&inst], sem.releases() && is_before);
            changed |= relaxed != *sem;
            *sem = relaxed;
        }
    }
    changed
}

struct Search<'a> {
    func: &'a Function,
    /// Does a region, with those inside it, access memory that needs order?
    accesses: FxHashMap<Region, bool>,
    /// By atomic: may such an access come before it?
    before: FxHashMap<Inst, bool>,
    /// By atomic: may such an access come after it?
    after: FxHashMap<Inst, bool>,
}

impl Search<'_> {
    /// Does the op, or an op in its regions, access memory that needs order? Of ops with other effects, nothing is known.
    fn is_ordered(&self, inst: Inst) -> bool {
        match &self.func.inst(inst).op {
            Op::Load { base, volatile, .. } => *volatile || matches!(self.func.ty(*base), Type::Pointer { mutable: true, .. }),
            op if op.is_terminator() => false,
            op @ (Op::If { .. } | Op::For { .. } | Op::While { .. }) => {
                let mut accesses = false;
                op.for_each_region(&mut |region| accesses |= self.accesses[&region]);
                accesses
            }
            op => op.has_effects() && !op.is_static(),
        }
    }

    /// Notes for each atomic whether an access may come before it. Returns this for the end of the region.
    fn forwards(&mut self, region: Region, mut before: bool) -> bool {
        let func = self.func;
        for inst in &func.region(region).insts {
            let is_ordered = self.is_ordered(*inst);
            match &func.inst(*inst).op {
                Op::Atomic { .. } => {
                    self.before.insert(*inst, before);
                }
                op => {
                    let inside = before || is_ordered && !matches!(op, Op::If { .. });
                    op.for_each_region(&mut |region| {
                        self.forwards(region, inside);
                    });
                }
            }
            before |= is_ordered;
        }
        before
    }

    /// Notes for each atomic whether an access may come after it.
    fn backwards(&mut self, region: Region, mut after: bool) {
        let func = self.func;
        for inst in func.region(region).insts.iter().rev() {
            let is_ordered = self.is_ordered(*inst);
            match &func.inst(*inst).op {
                Op::Atomic { .. } => {
                    self.after.insert(*inst, after);
                }
                op => {
                    let inside = after || is_ordered && !matches!(op, Op::If { .. });
                    op.for_each_region(&mut |region| self.backwards(region, inside));
                }
            }
            after |= is_ordered;
        }
    }
}
