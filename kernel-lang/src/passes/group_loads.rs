//! Grouping of loads: a load goes in front of elementwise ops that wait for other loads.
//!
//! ```text
//! ; before
//! ; num_warps 1
//! kernel @k(%x: ptr<f32>, %y: ptr<f32>, %z: ptr_mut<f32>) {
//!     %0 = arange {start = 0, end = 512} : tile<i64, [512]>
//!     %1 = load %x, %0 {in_bounds = true, align = 16} : tile<f32, [512]>
//!     %2 = abs %1 : tile<f32, [512]>
//!     %3 = load %y, %0 {in_bounds = true, align = 16} : tile<f32, [512]>
//!     %4 = max %2, %3 : tile<f32, [512]>
//!     store %z, %0, %4 {in_bounds = true, align = 16}
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %y: ptr<f32>, %z: ptr_mut<f32>) {
//!     %0 = arange {start = 0, end = 512} : tile<i64, [512]> layout<[512], register = [1, 2, 128, 256], lane = [4, 8, 16, 32, 64], warp = [], block = []>
//!     %1 = load %x, %0 {in_bounds = true, align = 16} : tile<f32, [512]> layout<[512], register = [1, 2, 128, 256], lane = [4, 8, 16, 32, 64], warp = [], block = []>
//!     %2 = load %y, %0 {in_bounds = true, align = 16} : tile<f32, [512]> layout<[512], register = [1, 2, 128, 256], lane = [4, 8, 16, 32, 64], warp = [], block = []>
//!     %3 = abs %1 : tile<f32, [512]> layout<[512], register = [1, 2, 128, 256], lane = [4, 8, 16, 32, 64], warp = [], block = []>
//!     %4 = max %3, %2 : tile<f32, [512]> layout<[512], register = [1, 2, 128, 256], lane = [4, 8, 16, 32, 64], warp = [], block = []>
//!     store %z, %0, %4 {in_bounds = true, align = 16}
//!     return
//! }
//! ```
//!
//! The driver's compiler saves registers: of a maximum over a window it loads a few elements, reduces them to one, and loads the next ones. Each
//! part waits for memory. If all loads stand in front of the first op that waits, it issues them together.
//!
//! It does so anyway with few loads. Many loads are left where they are, because they would take the registers of other programs. If a version
//! of a tile has so many, the pass leaves all versions as they are: they share one register count. Loads move over elementwise ops only: over a
//! reduction, for example, the kernel's author decides. A load whose address was loaded does not move.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ir::rewrite::Changed;
use crate::ir::{Function, Inst, Op, Region, Value};
use crate::passes::issue_loads::registers;

/// Loads that fill no more registers of a thread stay together without the pass.
const FEW_REGISTERS: usize = 16;

/// Loads that fill more registers of a thread are not grouped.
const MOST_REGISTERS: usize = 40;

/// Runs the pass. All tiles have layouts.
pub fn run(func: &mut Function) -> Changed {
    let mut regions: Vec<(Region, Vec<Inst>)> = Vec::new();
    for region in func.regions_under(func.body) {
        let mut ordered = Vec::new();
        for span in func.region(region).insts.split_inclusive(|inst| !is_passed(&func.inst(*inst).op)) {
            let (grouped, filled) = grouped(func, span);
            if filled > MOST_REGISTERS {
                return false;
            }
            ordered.extend(if filled > FEW_REGISTERS { grouped } else { span.to_vec() });
        }
        regions.push((region, ordered));
    }
    let mut changed = false;
    for (region, ordered) in regions {
        changed |= func.region(region).insts != ordered;
        *func.insts_mut(region) = ordered;
    }
    changed
}

/// Do loads move over the op, or is it a load that moves?
fn is_passed(op: &Op) -> bool {
    match op {
        Op::Load { volatile, .. } => !volatile,
        Op::Pointer { .. } | Op::View { .. } => true,
        op => op.is_elementwise() || renames(op),
    }
}

/// Does the op only give a tile another shape? Then it does not wait for the tile.
fn renames(op: &Op) -> bool {
    matches!(op, Op::Broadcast { .. } | Op::ExpandDims { .. } | Op::Reshape { .. } | Op::Permute { .. })
}

/// The ops with the loads in front of those that wait for them, and the registers that the loads fill.
fn grouped(func: &Function, span: &[Inst]) -> (Vec<Inst>, usize) {
    let mut front = Vec::new();
    // The ops behind the first one that waits, until a load needs them; and which of them defines a value.
    let mut behind: Vec<Option<Inst>> = Vec::new();
    let mut defined_behind: FxHashMap<Value, usize> = FxHashMap::default();
    let (mut loaded, mut waiting) = (FxHashSet::<Value>::default(), FxHashSet::<Value>::default());
    let mut filled = 0;
    for inst in span {
        let data = func.inst(*inst);
        let (mut is_loaded, mut waits) = (false, false);
        data.op.for_each_operand(&mut |operand| {
            is_loaded |= loaded.contains(&operand);
            waits |= waiting.contains(&operand);
        });
        if is_loaded && !waits && renames(&data.op) {
            loaded.extend(&data.results);
        } else if is_loaded || waits {
            waiting.extend(&data.results);
            waits = true;
        } else if let Op::Load { volatile: false, .. } = data.op {
            filled += registers(func, *inst);
            front.extend(take_operands(func, *inst, &mut behind, &defined_behind));
            front.push(*inst);
            loaded.extend(&data.results);
            continue;
        }
        if behind.is_empty() && !waits {
            front.push(*inst);
        } else {
            defined_behind.extend(data.results.iter().map(|result| (*result, behind.len())));
            behind.push(Some(*inst));
        }
    }
    front.extend(behind.into_iter().flatten());
    (front, filled)
}

/// Takes the ops that compute the operands of a load, in order.
fn take_operands(func: &Function, load: Inst, behind: &mut [Option<Inst>], defined_behind: &FxHashMap<Value, usize>) -> Vec<Inst> {
    let (mut taken, mut next) = (Vec::new(), vec![load]);
    while let Some(inst) = next.pop() {
        func.inst(inst).op.for_each_operand(&mut |operand| {
            if let Some(&at) = defined_behind.get(&operand)
                && let Some(inst) = behind[at].take()
            {
                taken.push((at, inst));
                next.push(inst);
            }
        });
    }
    taken.sort_unstable_by_key(|(at, _)| *at);
    taken.into_iter().map(|(_, inst)| inst).collect()
}
