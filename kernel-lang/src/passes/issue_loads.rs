//! Issue of loads: a load whose elements are used late is issued together with the loads around it.
//!
//! ```text
//! ; before
//! ; num_warps 1
//! kernel @k(%x: ptr<f32>, %w: ptr<f32>, %y: ptr_mut<f32>) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]>
//!     %1 = load %x, %0 {in_bounds = true, align = 16} : tile<f32, [1024]>
//!     %2 = load %w, %0 {in_bounds = true, align = 16} : tile<f32, [1024]>
//!     %3 = reduce %1 {axis = 0} (%a: f32, %b: f32) {
//!         %4 = add %a, %b : f32
//!         yield %4
//!     } : f32
//!     %5 = broadcast %3 : tile<f32, [1024]>
//!     %6 = mul %2, %5 : tile<f32, [1024]>
//!     store %y, %0, %6 {in_bounds = true, align = 16}
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<f32>, %w: ptr<f32>, %y: ptr_mut<f32>) {
//!     %0 = arange {start = 0, end = 1024} : tile<i64, [1024]> layout<[1024], register = [1, 2, 128, 256, 512], lane = [4, 8, 16, 32, 64], warp = [], block = []>
//!     %1 = load %x, %0 {in_bounds = true, align = 16} : tile<f32, [1024]> layout<[1024], register = [1, 2, 128, 256, 512], lane = [4, 8, 16, 32, 64], warp = [], block = []>
//!     %2 = load %w, %0 {in_bounds = true, align = 16} : tile<f32, [1024]> layout<[1024], register = [1, 2, 128, 256, 512], lane = [4, 8, 16, 32, 64], warp = [], block = []>
//!     issue_loads %2
//!     %6 = reduce %1 (%3: f32, %4: f32) {
//!         %5 = add %3, %4 : f32
//!         yield %5
//!     } : f32
//!     %7 = broadcast %6 : tile<f32, [1024]> layout<[1024], register = [1, 2, 128, 256, 512], lane = [4, 8, 16, 32, 64], warp = [], block = []>
//!     %8 = mul %2, %7 : tile<f32, [1024]> layout<[1024], register = [1, 2, 128, 256, 512], lane = [4, 8, 16, 32, 64], warp = [], block = []>
//!     store %y, %0, %8 {in_bounds = true, align = 16}
//!     return
//! }
//! ```
//!
//! A norm loads its weights with the row, and uses them behind the sum of the row. The driver's compiler uses few registers: it moves the load
//! of the weights behind the sum, and each program then waits for memory twice. For rows of 8192 halves and 4 warps, this took 36.4 us
//! instead of 35.5 us on an H200.
//!
//! Few elements stay in front of the sum without an `issue_loads`. Very many are left where the driver's compiler moves them: otherwise too few
//! programs would run at once. Elements of rows that are not aligned take a register each, so fewer of them are many. Of these, the driver's compiler loads
//! two at a time behind the sum, in the registers of the two before, also where the first op that uses them stands in front of it.

use std::ops::RangeInclusive;

use rustc_hash::FxHashSet;

use crate::ir::rewrite::Changed;
use crate::ir::{Function, Inst, Op, Region, SideTable, Value};
use crate::layout::Level;

/// The registers of a thread that the loads of a group fill, if the group needs the op.
const REGISTERS: RangeInclusive<usize> = 64..=80;
/// The same for a group with narrow accesses, or with elements that are converted or otherwise used in front of the sum, but not for it.
const OF_FEW: RangeInclusive<usize> = 24..=40;

/// Runs the pass. All tiles have layouts.
pub fn run(func: &mut Function) -> Changed {
    let mut changed = false;
    let frequent: FxHashSet<Region> = func.frequent_regions().into_iter().collect();
    for region in func.regions_under(func.body) {
        for (at, loads) in groups(func, region, frequent.contains(&region)).into_iter().rev() {
            let loc = func.inst(func.region(region).insts[at]).loc;
            let issue = func.make_inst(Op::IssueLoads { loads }, [], loc);
            func.insts_mut(region).insert(at, issue);
            changed = true;
        }
    }
    changed
}

/// A load of a tile, with the positions of its op and of the first op that uses its elements.
struct Loaded {
    result: Value,
    at: usize,
    first_use: usize,
}

/// For each group of loads that needs the op: the position of the first op that uses one of them, and the loads that are used late. Narrow accesses count if
/// the region is frequent.
fn groups(func: &Function, region: Region, is_frequent: bool) -> Vec<(usize, Vec<Value>)> {
    let insts = &func.region(region).insts;
    let reductions: Vec<usize> =
        (0..insts.len()).filter(|at| matches!(func.inst(insts[*at]).op, Op::Reduce { .. } | Op::Scan { .. })).collect();
    let loads = if reductions.is_empty() { Vec::new() } else { loads(func, insts, is_frequent) };
    let (mut groups, mut rest) = (Vec::new(), &loads[..]);
    while let Some(first) = rest.first() {
        let (mut used, mut length) = (first.first_use, 1);
        while let Some(next) = rest.get(length).filter(|next| next.at < used) {
            (used, length) = (used.min(next.first_use), length + 1);
        }
        let (group, behind) = rest.split_at(length);
        rest = behind;
        let Some(reduction) = reductions.iter().find(|reduction| **reduction >= used) else { break };
        let is_narrow = group.iter().any(|load| !matches!(func.inst(insts[load.at]).op, Op::Load { align: 4.., .. }));
        let needed = needed_by(func, insts, *reduction);
        // The driver's compiler moves ops on elements behind the sum with their loads.
        let is_moved = |load: &Loaded| !needed.contains(&load.result) && (is_narrow || load.first_use <= *reduction);
        let range = if group.iter().any(is_moved) { OF_FEW } else { REGISTERS };
        let is_late = |load: &&Loaded| load.first_use > *reduction || is_moved(load);
        let late: Vec<Value> = group.iter().filter(is_late).map(|load| load.result).collect();
        if !late.is_empty() && range.contains(&group.iter().map(|load| registers(func, insts[load.at])).sum()) {
            groups.push((used, late));
        }
    }
    groups
}

/// The values of a region from which an op is computed.
fn needed_by(func: &Function, insts: &[Inst], op: usize) -> FxHashSet<Value> {
    let mut needed = FxHashSet::default();
    func.inst(insts[op]).op.for_each_operand(&mut |value| _ = needed.insert(value));
    for inst in insts[..op].iter().rev() {
        let data = func.inst(*inst);
        if data.results.iter().any(|result| needed.contains(result)) {
            data.op.for_each_operand(&mut |value| _ = needed.insert(value));
        }
    }
    needed
}

/// The loads of tiles, in order: all that are in bounds, or those whose accesses fill whole registers.
fn loads(func: &Function, insts: &[Inst], has_narrow: bool) -> Vec<Loaded> {
    let mut loads: Vec<Loaded> = Vec::new();
    // The number of the load whose elements a value has, perhaps in another shape.
    let mut numbers: SideTable<Value, Option<usize>> = SideTable::new();
    for (at, inst) in insts.iter().enumerate() {
        let data = func.inst(*inst);
        if let Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } = data.op {
            numbers[data.results[0]] = numbers[x];
            continue;
        }
        let mut note = |value: Value| {
            if let Some(number) = numbers[value] {
                loads[number].first_use = loads[number].first_use.min(at);
            }
        };
        data.op.for_each_operand(&mut note);
        data.op.for_each_region(&mut |region| func.for_each_inst(region, &mut |inner| func.inst(inner).op.for_each_operand(&mut note)));
        if let Op::Load { volatile: false, align, in_bounds, .. } = data.op
            && func.ty(data.results[0]).is_tile()
            && (align >= 4 || has_narrow && in_bounds)
        {
            numbers[data.results[0]] = Some(loads.len());
            loads.push(Loaded { result: data.results[0], at, first_use: insts.len() });
        }
    }
    loads
}

/// The 32-bit registers that a thread needs for what it loads. Elements that narrow accesses load have a register each.
pub(super) fn registers(func: &Function, load: Inst) -> usize {
    let data = func.inst(load);
    let bytes = func.ty(data.results[0]).dtype().bytes();
    let elements = func.layouts[data.results[0]].as_ref().map_or(1, |layout| {
        let copies = layout.free_bits().register.count_ones();
        1 << layout.bits(Level::Register) >> copies
    });
    let is_wide = matches!(data.op, Op::Load { align: 4.., .. });
    if is_wide { (elements * bytes).div_ceil(4) } else { elements * bytes.div_ceil(4) }
}
