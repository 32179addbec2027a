//! Skipping of selections: a warp selects between two tiles only if one of its threads takes an element of the second one.
//!
//! ```text
//! ; before
//! ; num_warps 1
//! kernel @k(%ends: ptr<i32>, %w: ptr<f32>, %y: ptr_mut<f16>) {
//!     %run = arange {start = 0, end = 32} : tile<i64, [32]>
//!     %end = load %ends, %run {in_bounds = true} : tile<i32, [32]>
//!     %eight = const {value = 8} : tile<i32, [32]>
//!     %crosses = lt %end, %eight : tile<bool, [32]>
//!     %next = const {value = 1} : tile<i64, [32]>
//!     %other = add %run, %next : tile<i64, [32]>
//!     %w0 = load %w, %run {in_bounds = true} : tile<f32, [32]>
//!     %w1 = load %w, %other {mask = %crosses, in_bounds = true} : tile<f32, [32]>
//!     %0 = expand_dims %w0 {axis = 1} : tile<f32, [32, 1]>
//!     %first = broadcast %0 : tile<f32, [32, 8]>
//!     %1 = expand_dims %w1 {axis = 1} : tile<f32, [32, 1]>
//!     %second = broadcast %1 : tile<f32, [32, 8]>
//!     %2 = expand_dims %end {axis = 1} : tile<i32, [32, 1]>
//!     %ends8 = broadcast %2 : tile<i32, [32, 8]>
//!     %3 = arange {start = 0, end = 8} : tile<i64, [8]>
//!     %4 = cast %3 : tile<i32, [8]>
//!     %5 = expand_dims %4 {axis = 0} : tile<i32, [1, 8]>
//!     %position = broadcast %5 : tile<i32, [32, 8]>
//!     %is_second = ge %position, %ends8 : tile<bool, [32, 8]>
//!     %weight = select %is_second, %second, %first : tile<f32, [32, 8]>
//!     %6 = expand_dims %run {axis = 1} : tile<i64, [32, 1]>
//!     %7 = broadcast %6 : tile<i64, [32, 8]>
//!     %stride = const {value = 8} : tile<i64, [32, 8]>
//!     %8 = mul %7, %stride : tile<i64, [32, 8]>
//!     %9 = expand_dims %3 {axis = 0} : tile<i64, [1, 8]>
//!     %10 = broadcast %9 : tile<i64, [32, 8]>
//!     %at = add %8, %10 : tile<i64, [32, 8]>
//!     %twice = add %weight, %weight : tile<f32, [32, 8]>
//!     %half = cast %twice : tile<f16, [32, 8]>
//!     store %y, %at, %half {in_bounds = true, align = 16}
//!     return
//! }
//! ; after
//! kernel @k(%ends: ptr<i32>, %w: ptr<f32>, %y: ptr_mut<f16>) {
//!     %0 = arange {start = 0, end = 32} : tile<i64, [32]> layout<[32], register = [], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %1 = load %ends, %0 {in_bounds = true} : tile<i32, [32]> layout<[32], register = [], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %2 = const {value = 8} : tile<i32, [32]> layout<[32], register = [], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %3 = lt %1, %2 : tile<bool, [32]> layout<[32], register = [], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %4 = load %w, %0 {in_bounds = true} : tile<f32, [32]> layout<[32], register = [], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!     %5 = expand_dims %4 {axis = 1} : tile<f32, [32, 1]> layout<[32, 1], register = [], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!     %6 = broadcast %5 : tile<f32, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!     %7 = arange {start = 0, end = 8} : tile<i64, [8]> layout<[8], register = [1, 2, 4], lane = [0, 0, 0, 0, 0], warp = [], block = []>
//!     %8 = expand_dims %0 {axis = 1} : tile<i64, [32, 1]> layout<[32, 1], register = [], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!     %9 = broadcast %8 : tile<i64, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!     %10 = const {value = 8} : tile<i64, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!     %11 = mul %9, %10 : tile<i64, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!     %12 = expand_dims %7 : tile<i64, [1, 8]> layout<[1, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(0, 0), (0, 0), (0, 0), (0, 0), (0, 0)], warp = [], block = []>
//!     %13 = broadcast %12 : tile<i64, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!     %14 = add %11, %13 : tile<i64, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!     %15 = any_in_warp %3 : bool
//!     %30 = if %15 () {
//!         %16 = const {value = 1} : tile<i64, [32]> layout<[32], register = [], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!         %17 = add %0, %16 : tile<i64, [32]> layout<[32], register = [], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!         %18 = load %w, %17 {mask = %3, in_bounds = true} : tile<f32, [32]> layout<[32], register = [], lane = [1, 2, 4, 8, 16], warp = [], block = []>
//!         %19 = expand_dims %18 {axis = 1} : tile<f32, [32, 1]> layout<[32, 1], register = [], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!         %20 = broadcast %19 : tile<f32, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!         %21 = expand_dims %1 {axis = 1} : tile<i32, [32, 1]> layout<[32, 1], register = [], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!         %22 = broadcast %21 : tile<i32, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!         %23 = cast %7 : tile<i32, [8]> layout<[8], register = [1, 2, 4], lane = [0, 0, 0, 0, 0], warp = [], block = []>
//!         %24 = expand_dims %23 : tile<i32, [1, 8]> layout<[1, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(0, 0), (0, 0), (0, 0), (0, 0), (0, 0)], warp = [], block = []>
//!         %25 = broadcast %24 : tile<i32, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!         %26 = ge %25, %22 : tile<bool, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!         %27 = select %26, %20, %6 : tile<f32, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!         %28 = add %27, %27 : tile<f32, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!         yield %28
//!     } () {
//!         %29 = add %6, %6 : tile<f32, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!         yield %29
//!     } : tile<f32, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!     %31 = cast %30 : tile<f16, [32, 8]> layout<[32, 8], register = [(0, 1), (0, 2), (0, 4)], lane = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], warp = [], block = []>
//!     store %y, %14, %31 {in_bounds = true, align = 16}
//!     return
//! }
//! ```
//!
//! A run of neighbouring elements with one quotient has one weight, or two if it crosses a multiple of the divisor. `passes/flat_indices` loads the second weight of
//! the runs that cross, and selects a weight for each element. Few runs cross, and a warp without any skips the second loads and the selections. In a group norm
//! over 4095 pixels, of 233 instructions of an iteration 162 are left (`f16`, blocks of 4096, 8 warps).
//!
//! The pass handles `select(position >= end, second, first)`, where a load with the mask `end < n` loads `second`, and no position exceeds `n - 1`. Where the mask does
//! not hold, each position is less than the end. Ops that only the selection needs move into the branch. Elementwise ops on the selected tile follow it: for a
//! branch that yields the selected tile itself, the driver's compiler would copy a register for each element. All threads of a warp take the same side of the branch.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, copy_laid_out, substitute, use_counts, used_elsewhere};
use crate::ir::{BinaryOp, CompareOp, ConstExpr, Function, Handle, Inst, Op, Type, Value};

use super::skip_masked::is_for_each;

/// The fewest elements of a thread for which a test is worth its instructions.
const LEAST_ELEMENTS: u32 = 8;

/// The most ops that spread the elements of one tile over another.
const MOST_STEPS: usize = 8;

/// Of so many ops in front of a selection, those that only the selection needs move into its branch. Each selection searches them.
const MOST_OPS: usize = 512;

/// Runs the pass. All tiles have layouts.
pub fn run(func: &mut Function) -> Changed {
    let (uses, mut with, mut changed) = (use_counts(func), Substitution::new(), false);
    for region in func.frequent_regions() {
        let mut selections = Selections { uses: &uses, out: Vec::new(), chain: Chain::default(), with: &mut with };
        for inst in func.region(region).insts.clone() {
            selections.add(func, inst);
        }
        selections.close(func);
        let out = selections.out;
        // Closing a chain may reorder ops even if the chain is not rewritten, so the lists of ops are compared.
        changed |= func.region(region).insts != out;
        *func.insts_mut(region) = out;
    }
    substitute(func, func.body, &with) || changed
}

/// A `select` that takes no element of its second tile in a warp in which the mask holds for no element.
struct Selection {
    mask: Value,
    first: Value,
}

/// Selections under one mask, and elementwise ops on the selected tiles. They stand in one region, and no op between them needs their results.
#[derive(Default)]
struct Chain {
    insts: Vec<Inst>,
    results: FxHashSet<Value>,
    /// Of each `select`, by its result.
    selections: FxHashMap<Value, Selection>,
}

impl Chain {
    fn mask(&self) -> Option<Value> {
        self.selections.values().next().map(|selection| selection.mask)
    }

    /// Does an op need a result of the chain?
    fn is_used_by(&self, func: &Function, inst: Inst) -> bool {
        let mut found = false;
        let mut look = |value: Value| found |= self.results.contains(&value);
        func.inst(inst).op.for_each_operand(&mut look);
        func.inst(inst).op.for_each_region(&mut |region| {
            func.for_each_inst(region, &mut |inner| func.inst(inner).op.for_each_operand(&mut look));
        });
        found
    }
}

/// The rewrite of one region.
struct Selections<'a> {
    uses: &'a [u32],
    out: Vec<Inst>,
    /// The chain that grows.
    chain: Chain,
    /// The results of the branches in place of those of the chains.
    with: &'a mut Substitution,
}

impl Selections<'_> {
    fn add(&mut self, func: &mut Function, inst: Inst) {
        let selection = selection(func, inst);
        let follows = self.chain.is_used_by(func, inst);
        let joins = match &selection {
            Some(selection) => self.chain.mask().is_none_or(|mask| mask == selection.mask),
            None => follows && computes_elements(func, inst),
        };
        if !joins && (follows || selection.is_some()) {
            self.close(func);
        }
        if !joins && selection.is_none() {
            return self.out.push(inst);
        }
        let result = func.result(inst);
        self.chain.insts.push(inst);
        self.chain.results.insert(result);
        self.chain.selections.extend(selection.map(|selection| (result, selection)));
    }

    /// Ends the chain: appends a branch with two versions of it.
    fn close(&mut self, func: &mut Function) {
        let chain = std::mem::take(&mut self.chain);
        let Some(mask) = chain.mask() else { return };
        let yielded = used_elsewhere(func, &chain.insts, self.uses);
        let is_computed = |value: &Value| !chain.selections.contains_key(value) && func.ty(*value).dtype().bytes() >= 4;
        if !yielded.iter().all(is_computed) {
            return self.out.extend(chain.insts);
        }
        let loc = func.inst(chain.insts[0]).loc;
        let any = func.make_inst(Op::AnyInWarp { mask }, [Type::scalar(Dtype::Bool)], loc);
        let mut firsts = Substitution::new();
        chain.selections.iter().for_each(|(result, selection)| firsts.insert(*result, selection.first));
        let is_selection = |inst: &Inst| chain.selections.contains_key(&func.result(*inst));
        let without: Vec<Inst> = chain.insts.iter().copied().filter(|inst| !is_selection(inst)).collect();
        let selecting = [self.take_along(func, &chain, mask), chain.insts].concat();
        let [then_region, else_region] = [(selecting, Substitution::new()), (without, firsts)].map(|(insts, mut map)| {
            let arm = func.add_region();
            copy_laid_out(func, &insts, arm, &mut map);
            let values = yielded.iter().map(|value| map.get(*value)).collect();
            func.append(arm, Op::Yield { values }, [], loc);
            arm
        });
        let types: Vec<Type> = yielded.iter().map(|value| func.ty(*value).clone()).collect();
        let branch = func.make_inst(Op::If { cond: func.result(any), then_region, else_region, rare: false }, types, loc);
        for (old, new) in yielded.iter().zip(func.inst(branch).results.clone()) {
            func.layouts[new] = func.layouts[*old].clone();
            self.with.insert(*old, new);
        }
        self.out.extend([any, branch]);
    }

    /// Takes out the ops in front of a chain that only its selections need, in order.
    fn take_along(&mut self, func: &Function, chain: &Chain, mask: Value) -> Vec<Inst> {
        let mut needed: FxHashMap<Value, u32> = FxHashMap::default();
        for inst in &chain.insts {
            if let Op::Select { cond, on_true, .. } = func.inst(*inst).op
                && chain.selections.contains_key(&func.result(*inst))
            {
                [cond, on_true].into_iter().for_each(|value| *needed.entry(value).or_default() += 1);
            }
        }
        let mut taken = Vec::new();
        for at in (self.out.len().saturating_sub(MOST_OPS)..self.out.len()).rev() {
            let data = func.inst(self.out[at]);
            let [result] = data.results[..] else { continue };
            let is_needed_only = needed.get(&result).is_some_and(|needed| *needed == self.uses[result.index()]);
            if result != mask && is_needed_only && data.op.stays_in_threads(func) && func.ty(result).is_tile() {
                data.op.for_each_operand(&mut |value| *needed.entry(value).or_default() += 1);
                taken.push(self.out.remove(at));
            }
        }
        taken.reverse();
        taken
    }
}

/// Does an op compute each element of a tile from the operands' elements alone? A division tests all dividends, and a cast to narrow elements takes two at once.
fn computes_elements(func: &Function, inst: Inst) -> bool {
    let data = func.inst(inst);
    let is_simple = match data.op {
        Op::Binary { op, .. } => !matches!(op, BinaryOp::Div | BinaryOp::Rem),
        Op::Cast { .. } => func.ty(data.results[0]).dtype().bytes() >= 4,
        _ => true,
    };
    is_simple && is_for_each(func, inst) && func.ty(data.results[0]).is_tile()
}

fn selection(func: &Function, inst: Inst) -> Option<Selection> {
    let Op::Select { cond, on_true: second, on_false: first } = func.inst(inst).op else { return None };
    let elements = func.layouts[func.result(inst)].as_ref()?.registers_per_thread();
    let Some(Op::Load { mask: Some(mask), .. }) = func.def_op(converted_from(func, second)) else { return None };
    let Op::Compare { op: CompareOp::Ge, lhs: position, rhs: end } = *func.def_op(cond)? else { return None };
    let Op::Compare { op: CompareOp::Lt, lhs: own_end, rhs: limit } = *func.def_op(*mask)? else { return None };
    let Some(Op::Const { value: ConstExpr::Int(limit) }) = func.def_op(limit) else { return None };
    let Some(Op::Arange { start, end: behind }) = func.def_op(converted_from(func, position)) else { return None };
    // The limit has the type of the position, so that positions below it keep their values when they are cast.
    let is_below = start.as_int()? >= 0 && behind.as_int()? <= *limit && func.ty(end).dtype().is_int();
    (is_below && spread_from(func, end) == own_end && elements >= LEAST_ELEMENTS).then_some(Selection { mask: *mask, first })
}

/// The tile whose elements a tile repeats in the same threads.
fn spread_from(func: &Function, mut tile: Value) -> Value {
    for _ in 0..MOST_STEPS {
        match func.def_op(tile) {
            Some(Op::ExpandDims { x, .. } | Op::Broadcast { x }) => tile = *x,
            _ => break,
        }
    }
    tile
}

/// The same, if the elements may have been cast once.
fn converted_from(func: &Function, tile: Value) -> Value {
    match func.def_op(spread_from(func, tile)) {
        Some(Op::Cast { x, .. }) => spread_from(func, *x),
        _ => spread_from(func, tile),
    }
}
