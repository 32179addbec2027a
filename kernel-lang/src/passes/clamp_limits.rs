//! Clamped limits: the limit of a mask that is the same in all programs is clamped to the range of positions once.
//!
//! ```text
//! ; before
//! kernel @k(%x: ptr_mut<f32>, %n: i64, %f: f32) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %1 = broadcast %n : tile<i64, [64]>
//!     %2 = lt %0, %1 : tile<bool, [64]>
//!     %3 = broadcast %f : tile<f32, [64]>
//!     store %x, %0, %3 {mask = %2}
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr_mut<f32>, %n: i64, %f: f32) {
//!     %0 = const {value = -1} : i64
//!     %1 = const {value = 2147483647} : i64
//!     %2 = max %n, %0 : i64
//!     %3 = min %2, %1 : i64
//!     %4 = cast %3 : i32
//!     %5 = cast %4 : i64
//!     %6 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %7 = broadcast %n : tile<i64, [64]>
//!     %8 = broadcast %5 : tile<i64, [64]>
//!     %9 = lt %6, %8 : tile<bool, [64]>
//!     %10 = broadcast %f : tile<f32, [64]>
//!     store %x, %6, %10 {mask = %9}
//!     return
//! }
//! ```
//!
//! A kernel compares positions in 32 bits. A limit of 64 bits is clamped before: five to eight instructions, one after the other, in front of the first load. The
//! casts tell the backend that the limit fits. The host computes it, because [`super::compute_at_launch`] makes it a launch value
//! if any is left.

use rustc_hash::FxHashMap;

use crate::analysis::affine::AffineFacts;
use crate::analysis::masks::Comparison;
use crate::dtype::Dtype;
use crate::ir::rewrite::Changed;
use crate::ir::{BinaryOp, Builder, Function, Inst, Op, Region, Value};
use crate::launch_value::{executed, known_scalars};
use crate::location::Loc;

/// All positions are below this number, so that the limits -1 and `i32::MAX` are below and above all of them.
const POSITIONS: i64 = 1 << 30;

/// Runs the pass. It takes time linear in the kernel.
pub fn run(func: &mut Function) -> Changed {
    let regions = executed(func);
    let known = known_scalars(func, &regions, &Op::is_uniform);
    let mut facts = AffineFacts::new();
    let mut limits: FxHashMap<Inst, Value> = FxHashMap::default();
    for inst in regions.iter().flat_map(|region| &func.region(*region).insts) {
        let limit = limit_of_positions(func, &mut facts, *inst);
        if let Some(limit) = limit.filter(|limit| known[*limit] || func.param_index(*limit).is_some()) {
            limits.insert(*inst, limit);
        }
    }
    if limits.is_empty() {
        return false;
    }
    // By limit: the clamped one, as a scalar of 64 bits.
    let mut clamped: FxHashMap<Value, Value> = limits.values().map(|limit| (*limit, *limit)).collect();
    let scratch = func.add_region();
    for region in regions {
        if region == func.body {
            let params: Vec<Value> = func.params.iter().map(|param| param.value).collect();
            params.into_iter().for_each(|param| clamp(&mut Builder::new(func, scratch, Loc::NONE), param, &mut clamped));
        }
        for inst in std::mem::take(func.insts_mut(region)) {
            if let Some(limit) = limits.get(&inst) {
                compare_with(func, inst, clamped[limit], scratch);
            }
            func.insts_mut(scratch).push(inst);
            for result in func.inst(inst).results.clone() {
                clamp(&mut Builder::new(func, scratch, Loc::NONE), result, &mut clamped);
            }
        }
        *func.insts_mut(region) = std::mem::take(func.insts_mut(scratch));
    }
    true
}

/// The scalar of 64 bits with which an op compares positions in a tile.
fn limit_of_positions(func: &Function, facts: &mut AffineFacts, inst: Inst) -> Option<Value> {
    let data = func.inst(inst);
    if !matches!(data.op, Op::Compare { .. }) || !func.ty(data.results[0]).is_tile() {
        return None;
    }
    let Comparison { index, extents, scalar, .. } = Comparison::of(func, facts, &data.op)?;
    let limit = scalar.filter(|limit| func.ty(*limit).dtype() == Dtype::I64)?;
    let start = index.start.as_constant().filter(|start| (0..POSITIONS).contains(start))?;
    let last = start + index.maximum_offset(&extents)?;
    let is_narrow = matches!(func.def_op(limit), Some(Op::Const { .. } | Op::Cast { .. }));
    (last < POSITIONS && !index.is_uniform() && !is_narrow).then_some(limit)
}

/// Clamps a scalar if it is a limit.
fn clamp(b: &mut Builder<'_>, limit: Value, clamped: &mut FxHashMap<Value, Value>) {
    if let Some(result) = clamped.get_mut(&limit) {
        let (low, high) = (b.int_like(-1, limit), b.int_like(i32::MAX.into(), limit));
        let at_least = b.binary(BinaryOp::Max, limit, low);
        let between = b.binary(BinaryOp::Min, at_least, high);
        let narrow = b.cast(between, Dtype::I32);
        *result = b.cast(narrow, Dtype::I64);
    }
}

/// Replaces the limit of a comparison.
fn compare_with(func: &mut Function, inst: Inst, limit: Value, scratch: Region) {
    let Op::Compare { lhs, rhs, .. } = func.inst(inst).op else { unreachable!("only comparisons have limits") };
    let is_limit = |operand: Value| matches!(func.def_op(operand), Some(Op::Broadcast { x }) if func.ty(*x).is_scalar());
    let is_right = is_limit(rhs);
    let shape = func.ty(lhs).shape().to_vec();
    let tile = Builder::new(func, scratch, Loc::NONE).broadcast(limit, &shape);
    if let Op::Compare { lhs, rhs, .. } = &mut func.inst_mut(inst).op {
        *(if is_right { rhs } else { lhs }) = tile;
    }
}
