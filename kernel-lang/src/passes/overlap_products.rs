//! Overlap of matrix products: a loop begins the products of an iteration while those of the previous iteration are in flight, so that the tensor cores do not wait for the
//! threads.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr<bf16>, %z: ptr_mut<f32>, %n: i64) {
//!     %0, %1 = launch_value () {
//!         %2 = address %x : i64
//!         yield %2, %n
//!     } : i64, i64
//!     %3 = const {value = 1} : i64
//!     %4 = ring {slots = 2} : shared<bf16, [64, 64], 1>
//!     roles () {
//!         for %3, %n, %3 (%5: i64) {
//!             ring_acquire %4
//!             copy_block %4, %x, %0, %5, %5, %1, %1, %1, %3
//!             yield
//!         }
//!         yield
//!     } () {
//!         %6 = const {value = 0.0} : tile<f32, [64, 64]>
//!         %7 = for %3, %n, %3, %6 (%8: i64, %9: tile<f32, [64, 64]>) {
//!             %10 = ring_wait %4 : shared<bf16, [64, 64], 1>
//!             %11 = warpgroup_dot %10, %10, %9 : tile<f32, [64, 64]>
//!             ring_release %10
//!             yield %11
//!         } : tile<f32, [64, 64]>
//!         store_block %z, %7, %0, %3, %3, %1, %1, %1, %3
//!         yield
//!     }
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<bf16>, %z: ptr_mut<f32>, %n: i64) {
//!     %1, %2 = launch_value () {
//!         %0 = address %x : i64
//!         yield %0, %n
//!     } : i64, i64
//!     %3 = const {value = 1} : i64
//!     %4 = ring {slots = 2} : shared<bf16, [64, 64], 1>
//!     roles () {
//!         for %3, %n, %3 (%5: i64) {
//!             ring_acquire %4
//!             copy_block %4, %x, %1, %5, %5, %2, %2, %2, %3
//!             yield
//!         }
//!         yield
//!     } () {
//!         %6 = const {value = 0.0} : tile<f32, [64, 64]>
//!         %11 = for %3, %n, %3, %6 (%7: i64, %8: tile<f32, [64, 64]>) {
//!             %9 = ring_wait %4 : shared<bf16, [64, 64], 1>
//!             %10 = warpgroup_dot %9, %9, %8 {in_flight = true} : tile<f32, [64, 64]>
//!             ring_release_previous %9 {products = 1}
//!             yield %10
//!         } : tile<f32, [64, 64]>
//!         %12 = warpgroup_wait %4, %11 : tile<f32, [64, 64]>
//!         store_block %z, %12, %1, %3, %3, %2, %2, %2, %3
//!         yield
//!     }
//!     return
//! }
//! ```
//!
//! The loop may use the sums only as accumulators of its products, and reads one ring. So a slot is free one iteration later, when its products have ended.
//!
//! Two warpgroups that read few slots do not overlap their products: while one waits for a slot, the other one multiplies, and slots that are free earlier are worth more. A
//! tile of 128 x 256 with four slots then takes 1.3 % less time for matrices of 8192 rows; one of 128 x 128 with six slots takes 10 % more (H200).

use crate::diagnostic::Diagnostics;
use crate::ir::rewrite::{Changed, use_counts};
use crate::ir::{Def, Function, Handle, Inst, Op, Region, Value};
use crate::schedule::Schedule;
use crate::target::Asked;

/// The fewest slots of which two warpgroups hold two.
const FEWEST_OF_TWO: u32 = 5;
/// The warps of a warpgroup.
const WARPS: u32 = 4;

/// A loop whose products overlap.
struct Overlapped {
    around: Inst,
    ring: Value,
    release: Inst,
    block: Value,
    products: Vec<Inst>,
    /// The numbers of the carried values that are sums.
    sums: Vec<usize>,
}

/// Runs the pass.
///
/// # Errors
/// None.
pub fn run(func: &mut Function, _: &Asked, schedule: Schedule) -> Result<Changed, Diagnostics> {
    let insts = func.all_insts();
    if !insts.iter().any(|inst| matches!(func.inst(*inst).op, Op::WarpgroupDot { .. })) {
        return Ok(false);
    }
    let fewest = if schedule.num_warps > WARPS { FEWEST_OF_TWO } else { 0 };
    let uses = use_counts(func);
    let mut changed = false;
    for region in func.regions_under(func.body) {
        for inst in func.region(region).insts.clone() {
            if let Some(found) = overlapped(func, inst, &uses).filter(|found| slots(func, found.ring) >= fewest) {
                rewrite(func, region, &found);
                changed = true;
            }
        }
    }
    Ok(changed)
}

/// The slots of the ring of a block.
fn slots(func: &Function, block: Value) -> u32 {
    match func.def_op(block) {
        Some(Op::Ring { slots }) => *slots,
        _ => 0,
    }
}

/// The loop, if its products can be in flight behind the end of an iteration.
fn overlapped(func: &Function, around: Inst, uses: &[u32]) -> Option<Overlapped> {
    let Op::For { body, .. } = func.inst(around).op else { return None };
    let (mut rings, mut releases, mut products) = (Vec::new(), Vec::new(), Vec::new());
    for inst in &func.region(body).insts {
        match &func.inst(*inst).op {
            Op::RingWait { ring } => rings.push(*ring),
            Op::RingRelease { block } => releases.push((*inst, *block)),
            // The next product would overwrite the registers of such an operand.
            Op::WarpgroupDot { a, b, .. } if [a, b].into_iter().any(|operand| func.ty(*operand).is_tile()) => return None,
            Op::WarpgroupDot { in_flight: false, .. } => products.push(*inst),
            op if op.has_regions() && has_ring(func, *inst) => return None,
            _ => {}
        }
    }
    let (&[ring], &[(release, block)]) = (&rings[..], &releases[..]) else { return None };
    let yielded = func.yielded(body);
    let mut sums = Vec::new();
    let mut chained = 0;
    for (number, last) in yielded.iter().enumerate() {
        let links = chain(func, *last, &products, uses);
        if links.is_empty() {
            continue;
        }
        chained += links.len();
        let Op::WarpgroupDot { acc, .. } = func.inst(links[links.len() - 1]).op else { return None };
        let is_carried = func.region(body).params.get(number + 1) == Some(&acc) && uses[acc.index()] == 1;
        if !is_carried {
            return None;
        }
        sums.push(number);
    }
    (chained == products.len() && chained > 0).then_some(Overlapped { around, ring, release, block, products, sums })
}

/// The products that lead to a value, the last one first: each is the accumulator of the one before it, and has no other use.
fn chain(func: &Function, mut value: Value, products: &[Inst], uses: &[u32]) -> Vec<Inst> {
    let mut links = Vec::new();
    while let Def::Result(inst, _) = func.def(value)
        && products.contains(&inst)
        && uses[value.index()] == 1
        && let Op::WarpgroupDot { acc, .. } = func.inst(inst).op
    {
        links.push(inst);
        value = acc;
    }
    links
}

/// Does an op of a nested region use a ring?
fn has_ring(func: &Function, around: Inst) -> bool {
    let mut has = false;
    func.inst(around).op.for_each_region(&mut |region: Region| {
        func.for_each_inst(region, &mut |inst| has |= matches!(func.inst(inst).op, Op::RingWait { .. }));
    });
    has
}

fn rewrite(func: &mut Function, region: Region, found: &Overlapped) {
    for product in &found.products {
        if let Op::WarpgroupDot { in_flight, .. } = &mut func.inst_mut(*product).op {
            *in_flight = true;
        }
    }
    let products = found.products.len() as u32;
    func.inst_mut(found.release).op = Op::RingReleasePrevious { block: found.block, products };
    let loc = func.inst(found.products[0]).loc;
    let results = func.inst(found.around).results.clone();
    let sums: Vec<Value> = found.sums.iter().map(|number| results[*number]).collect();
    let types: Vec<_> = sums.iter().map(|sum| func.ty(*sum).clone()).collect();
    let wait = func.make_inst(Op::WarpgroupWait { ring: found.ring, sums: sums.clone() }, types, loc);
    let waited = func.inst(wait).results.to_vec();
    for inst in func.all_insts() {
        func.inst_mut(inst).op.map_operands(&mut |value| sums.iter().position(|sum| *sum == value).map_or(value, |at| waited[at]));
    }
    let insts = func.insts_mut(region);
    let at = insts.iter().position(|inst| *inst == found.around).map_or(insts.len(), |at| at + 1);
    insts.insert(at, wait);
}
