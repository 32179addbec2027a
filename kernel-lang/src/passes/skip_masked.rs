//! Skipping of masked elements: what is computed from the elements behind the end of a mask is one number, so a warp computes that number only.
//!
//! ```text
//! ; before
//! ; num_warps 1
//! kernel @k(%x: ptr<i8>, %y: ptr_mut<i32>, %n: i32) {
//!     %0 = arange {start = 0, end = 128} : tile<i64, [128]>
//!     %1 = program_id : i64
//!     %2 = broadcast %1 : tile<i64, [128]>
//!     %3 = le %0, %2 : tile<bool, [128]>
//!     %4 = const {value = 3} : tile<i8, [128]>
//!     %5 = load %x, %0 {mask = %3, other = %4, in_bounds = true} : tile<i8, [128]>
//!     %6 = cast %5 : tile<i32, [128]>
//!     %7 = broadcast %n : tile<i32, [128]>
//!     %8 = max %6, %7 : tile<i32, [128]>
//!     %9 = mul %8, %6 : tile<i32, [128]>
//!     %10 = xor %9, %7 : tile<i32, [128]>
//!     store %y, %0, %10 {in_bounds = true}
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<i8>, %y: ptr_mut<i32>, %n: i32) {
//!     %0 = arange {start = 0, end = 128} : tile<i64, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %1 = program_id : i64
//!     %2 = broadcast %1 : tile<i64, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %3 = le %0, %2 : tile<bool, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %4 = const {value = 3} : tile<i8, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %5 = load %x, %0 {mask = %3, other = %4, in_bounds = true} : tile<i8, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %6 = broadcast %n : tile<i32, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %16 = if_any %3 () {
//!         %7 = cast %5 : tile<i32, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!         %8 = max %7, %6 : tile<i32, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!         %9 = mul %8, %7 : tile<i32, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!         %10 = xor %9, %6 : tile<i32, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!         yield %10
//!     } () {
//!         %11 = const {value = 3} : i8
//!         %12 = cast %11 : i32
//!         %13 = max %12, %n : i32
//!         %14 = mul %13, %12 : i32
//!         %15 = xor %14, %n : i32
//!         yield %15
//!     } : tile<i32, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     store %y, %0, %16 {in_bounds = true}
//!     return
//! }
//! ```
//!
//! Where the mask of a load does not hold, each element is the number `other`. An elementwise op on such a tile and on broadcast scalars gives the same number for
//! all of these elements, too. The second region of the `if_any` computes it by the same ops on scalars. So a causal softmax computes half of its exponentials.
//!
//! A thread's elements are tested in groups. A test takes three instructions, and the driver's compiler does not interleave the instructions of two groups. So the
//! pass acts only if both hold:
//!
//! - The mask ends in another place in each program: at a loaded number, or at one that is computed from the program's id. A mask such as `columns < n` holds for
//!   most elements.
//! - The ops take longer than the memory takes for the elements. A causal softmax of `bf16` becomes 2 % faster. One of `f32` would become 1 % slower (rows of
//!   2,048 on an H100).
//!
//! It is the last pass: the passes before it see the ops in one region.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::analysis::masks::{self, Condition};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, copy_insts, substitute, use_counts};
use crate::ir::{BinaryOp, CompareOp, ConstExpr, Function, Handle, Inst, Op, Region, SideTable, Type, UnaryOp, Value};
use crate::location::Loc;

/// The instructions for an element that a test is worth, for each byte that is loaded: with fewer, the memory takes as long as they do.
const LEAST_COST: u32 = 4;
/// A scalar that is computed from more values counts as one that all programs share. A number that needs more ops is not worth them.
const MOST_PARTS: usize = 64;

/// Runs the pass. All tiles have layouts.
pub fn run(func: &mut Function) -> Changed {
    let eligible = masks_with_own_ends(func);
    if eligible.is_empty() {
        return false;
    }
    let (uses, mut with) = (use_counts(func), Substitution::new());
    for region in func.frequent_regions() {
        skip(func, region, &eligible, &uses, &mut with);
    }
    if with.is_empty() {
        return false;
    }
    substitute(func, func.body, &with)
}

/// The masks of loads that end in another place in each program.
fn masks_with_own_ends(func: &Function) -> FxHashSet<Value> {
    let mut facts = AffineFacts::new();
    let (mut seen, mut found) = (FxHashSet::default(), FxHashSet::default());
    for inst in func.all_insts() {
        let Op::Load { mask: Some(mask), volatile: false, .. } = func.inst(inst).op else { continue };
        if func.ty(mask).is_tile() && seen.insert(mask) {
            let has_own_end = |conjunct: masks::Conjunct| match conjunct.condition {
                Condition::Comparison(comparison) => {
                    matches!(comparison.op, CompareOp::Lt | CompareOp::Le)
                        && !comparison.index.is_uniform()
                        && comparison.scalar.into_iter().chain(comparison.limit.scalars()).any(|scalar| is_of_program(func, scalar))
                }
                _ => false,
            };
            found.extend(masks::conjuncts(func, &mut facts, mask).into_iter().any(has_own_end).then_some(mask));
        }
    }
    found
}

/// Is a scalar computed from a program id or from memory?
fn is_of_program(func: &Function, scalar: Value) -> bool {
    let (mut next, mut seen) = (vec![scalar], FxHashSet::default());
    while let Some(value) = next.pop() {
        if !seen.insert(value) {
            continue;
        }
        match func.def_op(value) {
            Some(Op::ProgramId { .. } | Op::Load { .. }) => return true,
            Some(op) if op.is_pure() && seen.len() < MOST_PARTS => op.for_each_operand(&mut |operand| next.push(operand)),
            _ => {}
        }
    }
    false
}

/// What is known of a tile whose elements equal one scalar where a mask does not hold.
struct Filled {
    mask: Value,
    /// Its place in the order of these tiles.
    number: usize,
    /// The bytes of an element that is loaded for one of the tile.
    bytes: u32,
}

/// Ops on tiles that one mask fills, which stand in one region.
struct Chain {
    mask: Value,
    insts: Vec<Inst>,
}

struct Skip<'f> {
    func: &'f mut Function,
    /// The tiles whose elements equal one scalar where a mask does not hold.
    filled: FxHashMap<Value, Filled>,
    uses: &'f [u32],
    out: Vec<Inst>,
    chain: Option<Chain>,
    /// The results of the chain.
    pending: FxHashSet<Value>,
}

/// Gathers ops of a region into chains, and adds the results that replace theirs to `with`.
fn skip(func: &mut Function, region: Region, eligible: &FxHashSet<Value>, uses: &[u32], with: &mut Substitution) {
    let insts = func.region(region).insts.clone();
    let mask_of = |func: &Function, inst: Inst| match func.inst(inst).op {
        Op::Load { mask: Some(mask), other, volatile: false, .. } if eligible.contains(&mask) => {
            other.is_none_or(|other| is_uniform(func, other)).then_some(mask)
        }
        _ => None,
    };
    if !insts.iter().any(|inst| mask_of(func, *inst).is_some()) {
        return;
    }
    let (filled, out, pending) = (FxHashMap::default(), Vec::new(), FxHashSet::default());
    let mut skip = Skip { func, filled, uses, out, chain: None, pending };
    for inst in insts {
        if let Some(mask) = mask_of(skip.func, inst) {
            let bytes = skip.func.ty(skip.func.result(inst)).dtype().bytes() as u32;
            skip.note(inst, mask, bytes);
        } else if let Some((mask, bytes)) = skip.fills(inst) {
            if skip.chain.as_ref().is_some_and(|chain| chain.mask != mask) {
                skip.close(with);
            }
            skip.note(inst, mask, bytes);
            skip.pending.insert(skip.func.result(inst));
            skip.chain.get_or_insert_with(|| Chain { mask, insts: Vec::new() }).insts.push(inst);
            continue;
        }
        if skip.uses_chain(inst) {
            skip.close(with);
        }
        skip.out.push(inst);
    }
    *skip.func.insts_mut(region) = skip.out;
}

/// Do all elements of a tile equal one scalar?
fn is_uniform(func: &Function, tile: Value) -> bool {
    match func.def_op(tile) {
        Some(Op::Const { .. }) => true,
        Some(Op::Broadcast { x }) => func.ty(*x).is_scalar(),
        _ => false,
    }
}

impl Skip<'_> {
    fn note(&mut self, inst: Inst, mask: Value, bytes: u32) {
        let number = self.filled.len();
        self.filled.insert(self.func.result(inst), Filled { mask, number, bytes });
    }

    /// The mask of the tiles from which an op computes a filled one, and the bytes that are loaded for an element.
    fn fills(&self, inst: Inst) -> Option<(Value, u32)> {
        let (func, data) = (&*self.func, self.func.inst(inst));
        if !is_exact(&data.op) || !func.ty(data.results[0]).is_tile() {
            return None;
        }
        // Two narrow elements are cast at once, into one register.
        if matches!(data.op, Op::Cast { .. }) && func.ty(data.results[0]).dtype().bytes() < 4 {
            return None;
        }
        let (mut mask, mut bytes, mut is_known) = (None, 0, true);
        data.op.for_each_operand(&mut |operand| match self.filled.get(&operand) {
            Some(own) => {
                is_known &= *mask.get_or_insert(own.mask) == own.mask;
                bytes = own.bytes.max(bytes);
            }
            None => is_known &= is_uniform(func, operand),
        });
        Some((mask.filter(|_| is_known)?, bytes))
    }

    /// Does an op need a result of the chain?
    fn uses_chain(&self, inst: Inst) -> bool {
        let (func, mut found) = (&*self.func, false);
        let mut look = |value: Value| found |= self.pending.contains(&value);
        func.inst(inst).op.for_each_operand(&mut look);
        func.inst(inst).op.for_each_region(&mut |region| {
            func.for_each_inst(region, &mut |inner| func.inst(inner).op.for_each_operand(&mut look));
        });
        found
    }

    /// Ends the chain: its ops go into an `if_any` if they are worth it.
    fn close(&mut self, with: &mut Substitution) {
        let Some(Chain { mask, insts }) = self.chain.take() else { return };
        self.pending.clear();
        let mut inner: SideTable<Value, u32> = SideTable::new();
        for inst in &insts {
            self.func.inst(*inst).op.for_each_operand(&mut |operand| inner[operand] += 1);
        }
        let results = insts.iter().map(|inst| self.func.result(*inst));
        let yielded: Vec<Value> = results.filter(|result| self.uses[result.index()] > inner[*result]).collect();
        let cost: u32 = insts.iter().map(|inst| cost(&self.func.inst(*inst).op)).sum();
        let bytes = yielded.iter().map(|value| self.filled[value].bytes).max().unwrap_or(0);
        // A tile of predicates has no registers to copy.
        let has_registers = yielded.iter().all(|value| self.func.ty(*value).dtype() != Dtype::Bool);
        let fills = if cost >= LEAST_COST * bytes && has_registers { self.fills_of(&yielded) } else { None };
        let Some(otherwise) = fills else {
            self.out.extend(insts);
            return;
        };
        let func = &mut *self.func;
        let loc = func.inst(insts[0]).loc;
        let (scratch, body, mut map) = (func.add_region(), func.add_region(), Substitution::new());
        *func.insts_mut(scratch) = insts.clone();
        copy_insts(func, scratch, body, &mut map);
        for inst in &insts {
            let result = func.result(*inst);
            func.layouts[map.get(result)] = func.layouts[result].clone();
        }
        let values = yielded.iter().map(|value| map.get(*value)).collect();
        func.append(body, Op::Yield { values }, [], loc);
        let types: Vec<Type> = yielded.iter().map(|value| func.ty(*value).clone()).collect();
        let if_any = func.make_inst(Op::IfAny { mask, body, otherwise }, types, loc);
        for (old, new) in yielded.iter().zip(func.inst(if_any).results.clone()) {
            func.layouts[new] = func.layouts[*old].clone();
            with.insert(*old, new);
        }
        self.out.push(if_any);
    }

    /// A region that computes the numbers of these tiles behind the end of the mask. `None` if it needs more than [`MOST_PARTS`] ops.
    fn fills_of(&mut self, tiles: &[Value]) -> Option<Region> {
        let func = &mut *self.func;
        // The tiles whose numbers the region computes: the given ones and, as far as the load, their operands.
        let (mut needed, mut seen, mut next) = (Vec::new(), FxHashSet::default(), tiles.to_vec());
        while let Some(tile) = next.pop() {
            if !seen.insert(tile) {
                continue;
            }
            if needed.len() == MOST_PARTS {
                return None;
            }
            needed.push(tile);
            let op = func.def_op(tile)?;
            if !matches!(op, Op::Load { .. } | Op::Const { .. } | Op::Broadcast { .. }) {
                op.for_each_operand(&mut |operand| next.push(operand));
            }
        }
        // An op stands behind those of its operands.
        needed.sort_by_key(|tile| self.filled.get(tile).map(|filled| filled.number));
        let (region, mut map) = (func.add_region(), Substitution::new());
        for tile in needed {
            let mut op = func.def_op(tile)?.clone();
            let scalar = Type::scalar(func.ty(tile).elem().clone());
            let value = match op {
                Op::Broadcast { x } => x,
                Op::Load { other: Some(other), .. } => match *func.def_op(other)? {
                    Op::Broadcast { x } => x,
                    ref constant => {
                        let inst = func.append(region, constant.clone(), [scalar], Loc::NONE);
                        func.result(inst)
                    }
                },
                Op::Load { other: None, .. } => {
                    let dtype = func.ty(tile).dtype();
                    let value = if dtype.is_float() { ConstExpr::Float(0.0) } else { ConstExpr::Int(0) };
                    let inst = func.append(region, Op::Const { value }, [scalar], Loc::NONE);
                    func.result(inst)
                }
                _ => {
                    op.map_operands(&mut |operand| map.get(operand));
                    let inst = func.append(region, op, [scalar], Loc::NONE);
                    func.result(inst)
                }
            };
            map.insert(tile, value);
        }
        let values = tiles.iter().map(|tile| map.get(*tile)).collect();
        func.append(region, Op::Yield { values }, [], Loc::NONE);
        Some(region)
    }
}

/// Does an op compute each element from the operands' elements alone, with the same result on scalars? Quotients share the reciprocal of their divisor, and a
/// test of all dividends.
fn is_exact(op: &Op) -> bool {
    match op {
        Op::Binary { op, .. } => !matches!(op, BinaryOp::Div | BinaryOp::DivApprox),
        Op::Unary { .. } | Op::Compare { .. } | Op::Fma { .. } | Op::Select { .. } | Op::Cast { .. } | Op::Bitcast { .. } => true,
        _ => false,
    }
}

/// About the instructions for an element.
fn cost(op: &Op) -> u32 {
    match op {
        Op::Binary { op: BinaryOp::Rem, .. } | Op::Unary { op: UnaryOp::Sqrt, .. } => 8,
        Op::Bitcast { .. } => 0,
        _ => 1,
    }
}
