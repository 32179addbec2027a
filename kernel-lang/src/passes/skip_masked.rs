//! Skipping of masked elements: what is computed from the elements behind the end of a mask is one number, so a warp computes that number only.
//!
//! ```text
//! ; before
//! ; num_warps 1
//! kernel @k(%x: ptr<i8>, %y: ptr_mut<f32>) {
//!     %0 = arange {start = 0, end = 128} : tile<i64, [128]>
//!     %1 = program_id : i64
//!     %2 = broadcast %1 : tile<i64, [128]>
//!     %3 = le %0, %2 : tile<bool, [128]>
//!     %4 = const {value = 3} : tile<i8, [128]>
//!     %5 = load %x, %0 {mask = %3, other = %4, in_bounds = true} : tile<i8, [128]>
//!     %6 = cast %5 : tile<f32, [128]>
//!     %7 = sqrt %6 : tile<f32, [128]>
//!     store %y, %0, %7 {in_bounds = true}
//!     return
//! }
//! ; after
//! kernel @k(%x: ptr<i8>, %y: ptr_mut<f32>) {
//!     %0 = arange {start = 0, end = 128} : tile<i64, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %1 = program_id : i64
//!     %2 = broadcast %1 : tile<i64, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %3 = le %0, %2 : tile<bool, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %4 = const {value = 3} : tile<i8, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %5 = load %x, %0 {mask = %3, other = %4, in_bounds = true} : tile<i8, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %8 = if_any %3 {group = 4} () {
//!         %6 = cast %5 : tile<f32, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!         %7 = sqrt %6 : tile<f32, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!         yield %7
//!     } : tile<f32, [128]> layout<[128], register = [32, 64], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     store %y, %0, %8 {in_bounds = true}
//!     return
//! }
//! ```
//!
//! Where the mask of a load does not hold, each element is the number `other`. An elementwise op on such a tile and on broadcast scalars gives the same number for
//! all of these elements, too. An `if_any` holds such ops. Of a group of elements of which the mask leaves out all, it computes one. So a causal softmax computes
//! half of its exponentials and quotients.
//!
//! A test of a group takes three instructions, and the driver's compiler does not interleave the instructions of two groups. So the pass acts only if both hold:
//!
//! - The mask ends in another place in each program: at a loaded number, or at one that is computed from the program's id. A mask such as `columns < n` holds for
//!   most elements.
//! - The ops that the mask leaves out take longer than the memory takes for the elements.
//!
//! It runs late: the passes before it see the ops in one region.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::analysis::masks::{self, Condition};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, copy_laid_out, substitute, use_counts, used_elsewhere};
use crate::ir::{BinaryOp, CompareOp, Function, Inst, Op, Region, Type, UnaryOp, Value};

/// The instructions for an element, for each byte that is loaded, that one test of all elements of a thread is worth, and tests of groups. With fewer, the memory
/// takes as long as they do.
const LEAST_COST: u32 = 4;
const COST_OF_GROUPS: u32 = 8;
/// The fewest elements of a thread in a group: with fewer, the tests take as long as the elements.
const LEAST_GROUP: u32 = 4;
/// The instructions for an element that the test of a group is worth: with fewer, it takes as long as they do.
const LEAST_OPS: u32 = 4;
/// A scalar that is computed from more values counts as one that all programs share.
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

/// What is known of a tile whose elements are equal where a mask does not hold.
#[derive(Clone, Copy)]
struct Filled {
    mask: Value,
    /// The bytes of an element that is loaded for one of the tile.
    bytes: u32,
}

/// Ops on tiles that one mask fills. They stand in one region, and no op between them needs their results.
struct Chain {
    mask: Value,
    insts: Vec<Inst>,
    /// The results that other ops use.
    yielded: Vec<Value>,
    /// About the instructions for an element, and the bytes that are loaded for one.
    cost: u32,
    bytes: u32,
}

/// The ops of a region in order, of which some are gathered into chains.
enum Item {
    Inst(Inst),
    Chain(Chain),
}

struct Gather<'f> {
    func: &'f Function,
    /// The tiles whose elements are equal where a mask does not hold.
    filled: FxHashMap<Value, Filled>,
    uses: &'f [u32],
    out: Vec<Item>,
    /// The chain that grows, and the results of its ops.
    chain: Vec<Inst>,
    pending: FxHashMap<Value, Filled>,
}

/// Gathers ops of a region into chains, and adds the results that replace theirs to `with`.
fn skip(func: &mut Function, region: Region, eligible: &FxHashSet<Value>, uses: &[u32], with: &mut Substitution) {
    let items = gather(func, region, eligible, uses);
    let mut costs: FxHashMap<Value, (u32, u32)> = FxHashMap::default();
    for item in &items {
        if let Item::Chain(chain) = item {
            let (cost, bytes) = costs.entry(chain.mask).or_default();
            (*cost, *bytes) = (*cost + chain.cost, chain.bytes.max(*bytes));
        }
    }
    let mut out = Vec::new();
    for item in items {
        match item {
            Item::Inst(inst) => out.push(inst),
            Item::Chain(chain) => {
                let (cost, bytes) = costs[&chain.mask];
                // A tile of predicates has no registers to copy.
                let has_registers = chain.yielded.iter().all(|value| func.ty(*value).dtype() != Dtype::Bool);
                let group = group(func, chain.mask, cost, bytes).filter(|_| chain.cost >= LEAST_OPS && has_registers);
                match group {
                    Some(group) => out.push(in_groups(func, &chain, group, with)),
                    None => out.extend(chain.insts),
                }
            }
        }
    }
    *func.insts_mut(region) = out;
}

/// The elements of a thread that one test is for, if tests are worth it: `cost` instructions for an element of which `bytes` are loaded.
fn group(func: &Function, mask: Value, cost: u32, bytes: u32) -> Option<u32> {
    let layout = func.layouts[mask].as_ref()?;
    let neighbours = (0..layout.shape().len()).map(|axis| layout.contiguous_per_thread(axis).elements()).max()?;
    let elements = layout.registers_per_thread();
    if elements < LEAST_GROUP {
        return None;
    }
    if cost >= COST_OF_GROUPS * bytes {
        Some(neighbours.max(LEAST_GROUP).min(elements))
    } else {
        (cost >= LEAST_COST * bytes && neighbours > 1).then_some(elements)
    }
}

/// The ops of a region. Those that compute tiles from a tile that an eligible mask fills are in chains.
fn gather(func: &Function, region: Region, eligible: &FxHashSet<Value>, uses: &[u32]) -> Vec<Item> {
    let mut gather = Gather { func, filled: FxHashMap::default(), uses, out: Vec::new(), chain: Vec::new(), pending: FxHashMap::default() };
    for inst in func.region(region).insts.iter().copied() {
        match func.inst(inst).op {
            Op::Load { mask: Some(mask), other, volatile: false, .. }
                if eligible.contains(&mask) && other.is_none_or(|other| func.is_splat(other)) =>
            {
                let bytes = func.ty(func.result(inst)).dtype().bytes() as u32;
                gather.filled.insert(func.result(inst), Filled { mask, bytes });
            }
            _ => {
                if let Some(filled) = gather.fills(inst) {
                    if gather.pending.values().any(|other| other.mask != filled.mask) {
                        gather.close();
                    }
                    gather.filled.insert(func.result(inst), filled);
                    gather.pending.insert(func.result(inst), filled);
                    gather.chain.push(inst);
                    continue;
                }
            }
        }
        if gather.uses_chain(inst) {
            gather.close();
        }
        gather.out.push(Item::Inst(inst));
    }
    gather.close();
    gather.out
}

impl Gather<'_> {
    /// Does an op compute a filled tile?
    fn fills(&self, inst: Inst) -> Option<Filled> {
        let (func, data) = (self.func, self.func.inst(inst));
        if !is_for_each(func, inst) || !func.ty(data.results[0]).is_tile() {
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
            None => is_known &= func.is_splat(operand),
        });
        Some(Filled { mask: mask.filter(|_| is_known)?, bytes })
    }

    /// Does an op need a result of the chain?
    fn uses_chain(&self, inst: Inst) -> bool {
        let (func, mut found) = (self.func, false);
        let mut look = |value: Value| found |= self.pending.contains_key(&value);
        func.inst(inst).op.for_each_operand(&mut look);
        func.inst(inst).op.for_each_region(&mut |region| {
            func.for_each_inst(region, &mut |inner| func.inst(inner).op.for_each_operand(&mut look));
        });
        found
    }

    /// Ends the chain.
    fn close(&mut self) {
        let insts = std::mem::take(&mut self.chain);
        let Some(Filled { mask, .. }) = self.pending.values().next().copied() else { return };
        let yielded = used_elsewhere(self.func, &insts, self.uses);
        let cost = insts.iter().map(|inst| cost(&self.func.inst(*inst).op)).sum();
        let bytes = yielded.iter().map(|value| self.filled[value].bytes).max().unwrap_or(0);
        self.out.push(Item::Chain(Chain { mask, insts, yielded, cost, bytes }));
        self.pending.clear();
    }
}

/// Moves the ops of a chain into an `if_any`, and adds its results to `with`.
fn in_groups(func: &mut Function, chain: &Chain, group: u32, with: &mut Substitution) -> Inst {
    let loc = func.inst(chain.insts[0]).loc;
    let (body, mut map) = (func.add_region(), Substitution::new());
    copy_laid_out(func, &chain.insts, body, &mut map);
    let values = chain.yielded.iter().map(|value| map.get(*value)).collect();
    func.append(body, Op::Yield { values }, [], loc);
    let types: Vec<Type> = chain.yielded.iter().map(|value| func.ty(*value).clone()).collect();
    let if_any = func.make_inst(Op::IfAny { mask: chain.mask, group, body }, types, loc);
    for (old, new) in chain.yielded.iter().zip(func.inst(if_any).results.clone()) {
        func.layouts[new] = func.layouts[*old].clone();
        with.insert(*old, new);
    }
    if_any
}

/// Does an op compute each element from the operands' elements alone? A quotient of integers takes a test of all dividends.
pub(super) fn is_for_each(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    match data.op {
        Op::Binary { op: BinaryOp::Div, rhs, .. } => func.ty(rhs).dtype() == Dtype::F32 && func.is_splat(rhs),
        Op::Binary { .. }
        | Op::Unary { .. }
        | Op::Compare { .. }
        | Op::Fma { .. }
        | Op::Select { .. }
        | Op::Cast { .. }
        | Op::Bitcast { .. } => true,
        _ => false,
    }
}

/// About the instructions for an element.
fn cost(op: &Op) -> u32 {
    match op {
        Op::Binary { op: BinaryOp::Rem | BinaryOp::Div, .. } | Op::Unary { op: UnaryOp::Sqrt, .. } => 8,
        Op::Bitcast { .. } => 0,
        _ => 1,
    }
}
