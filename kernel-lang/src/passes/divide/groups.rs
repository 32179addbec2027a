//! 32-bit divisions: computes tiles of indices with divisions in 32 bits, if a test at run time shows that all values fit.
//!
//! ```text
//! %0 = arange {start = 0, end = 256}                 %fits = 255 < 2^31 & %n - 1 < 2^31 - 1, unsigned
//! %1 = rem %0, (broadcast %n)                        %1 = if %fits { rem of u32, as i64 } { rem of i64 }
//! store %y, %0, %1                                   store %y, %0, %1
//! ```
//!
//! A kernel that flattens a tensor splits its indices again, with `offsets / columns` and `offsets % columns`, and recombines them. In 64
//! bits this takes an order of magnitude more instructions than in 32. A group is a set of divisions of indices, and of the arithmetic that
//! uses their results. Its values follow from scalars and `arange`s. The module puts the group, with copies of the ops that compute its
//! operands, into both branches of an `if`: once in 32 bits and once in 64. The values that other ops use leave both branches in 64 bits.
//!
//! The test is that of [`crate::analysis::ranges`], as in [`crate::passes::flat_indices`]. That pass goes further: it writes a whole region in 32 bits, with
//! its accesses, and divides once for a run of neighbours. But it needs a straight-line region whose tiles have one axis and one extent.
//!
//! Loops are left alone, because their loads could not be prefetched across an `if`.

use rustc_hash::FxHashMap;

use crate::analysis::ranges::{Ranges, divisor};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{BinaryOp, Builder, Function, Inst, Op, Region, SideTable, Type, Value, postorder};
use crate::location::Loc;
use crate::passes::flat_indices::is_index_tile;

use super::naturals;

/// In a tile of fewer elements, the divisions take less time than the test.
const WORTH: usize = 256;

/// The largest number of tests in a kernel: each test scans the whole kernel. The remaining divisions stay in 64 bits.
const MOST_TESTS: usize = 16;

/// Narrows the groups of a kernel.
pub(super) fn run(func: &mut Function) -> Changed {
    let mut regions = vec![func.body];
    let mut at = 0;
    while let Some(&region) = regions.get(at) {
        for inst in &func.region(region).insts {
            if let Op::If { then_region, else_region, .. } = func.inst(*inst).op {
                regions.extend([then_region, else_region]);
            }
        }
        at += 1;
    }
    let mut tests = 0;
    for region in regions {
        while tests < MOST_TESTS
            && let Some(group) = Group::find(func, region)
        {
            group.narrow(func, region);
            tests += 1;
        }
    }
    tests > 0
}

/// The ops of a region that one test allows to be computed in 32 bits.
struct Group {
    /// The ops in order.
    insts: Vec<Inst>,
    /// The results of the ops.
    own: SideTable<Value, bool>,
    /// The position in the region of the first other op that uses one of the results.
    first_use: usize,
    /// The values that other ops use.
    results: Vec<Value>,
}

impl Group {
    fn find(func: &Function, region: Region) -> Option<Group> {
        let insts = &func.region(region).insts;
        let is_worth = |inst: &Inst| match func.inst(*inst).op {
            // A division by a constant becomes a product.
            Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, lhs, rhs } => {
                func.ty(lhs).is_tile() && func.splat(rhs).is_none() && func.ty(lhs).extents().iter().product::<usize>() >= WORTH
            }
            _ => false,
        };
        if !insts.iter().any(is_worth) {
            return None;
        }
        let followed = followed(func);
        let mut members = Vec::new();
        let mut own: SideTable<Value, bool> = SideTable::new();
        for inst in insts {
            if is_member(func, *inst, &followed, &own) {
                own[func.result(*inst)] = true;
                members.push(*inst);
            }
        }
        if !members.iter().any(is_worth) {
            return None;
        }
        let is_of = |inst: Inst, own: &SideTable<Value, bool>| func.inst(inst).results.first().is_some_and(|result| own[*result]);
        let uses = |inst: Inst, own: &SideTable<Value, bool>| {
            let mut any = false;
            let mut look = |op: &Op| op.for_each_operand(&mut |value| any |= own[value]);
            look(&func.inst(inst).op);
            func.inst(inst).op.for_each_region(&mut |region| func.for_each_inst(region, &mut |inst| look(&func.inst(inst).op)));
            any
        };
        let first_use = insts.iter().position(|inst| !is_of(*inst, &own) && uses(*inst, &own))?;
        // An op whose scalars are computed only after `first_use` is no member.
        let mut early: SideTable<Value, Option<bool>> = SideTable::new();
        for inst in &insts[first_use..] {
            func.inst(*inst).results.iter().filter(|result| func.ty(**result).is_scalar()).for_each(|late| early[*late] = Some(false));
        }
        members.retain(|inst| is_early(func, func.result(*inst), &mut early));
        if !members.iter().any(is_worth) {
            return None;
        }
        let mut own: SideTable<Value, bool> = SideTable::new();
        members.iter().for_each(|inst| own[func.result(*inst)] = true);
        let (mut results, mut is_result) = (Vec::new(), SideTable::<Value, bool>::new());
        for inst in func.all_insts().into_iter().filter(|inst| !is_of(*inst, &own)) {
            func.inst(inst).op.for_each_operand(&mut |value| {
                if own[value] && !std::mem::replace(&mut is_result[value], true) {
                    results.push(value);
                }
            });
        }
        (!results.is_empty()).then_some(Group { insts: members, own, first_use, results })
    }

    /// Moves the group into the branches of an `if`.
    fn narrow(self, func: &mut Function, region: Region) {
        let loc = func.inst(self.insts[0]).loc;
        let [head, narrow, wide] = [0; 3].map(|_| func.add_region());
        let bounds = {
            let all = func.all_insts();
            let mut ranges = Ranges::new(func, &all, &|_| true);
            for inst in &self.insts {
                ranges.of(func.result(*inst));
            }
            ranges.into_bounds()
        };
        let cond = bounds.test(0..bounds.checks(), &mut Builder::new(func, head, loc)).expect("a divisor is tested");

        let mut copy = Copies { func, region: narrow, loc, is_narrow: true, copies: FxHashMap::default() };
        let values: Vec<Value> = self.results.iter().map(|value| copy.of(*value)).collect();
        let b = &mut Builder::new(func, narrow, loc);
        let values = values.into_iter().map(|value| b.cast(value, Dtype::I64)).collect();
        b.yield_values(values);

        let mut copy = Copies { func, region: wide, loc, is_narrow: false, copies: FxHashMap::default() };
        let values = self.results.iter().map(|value| copy.of(*value)).collect();
        Builder::new(func, wide, loc).yield_values(values);

        let types: Vec<Type> = self.results.iter().map(|value| func.ty(*value).clone()).collect();
        let branch = func.make_inst(Op::If { cond, then_region: narrow, else_region: wide, rare: false }, types, loc);
        let mut insts = std::mem::take(func.insts_mut(head));
        insts.push(branch);
        let mut all = std::mem::take(func.insts_mut(region));
        all.splice(self.first_use..self.first_use, insts);
        all.retain(|inst| !func.inst(*inst).results.first().is_some_and(|result| self.own[*result]));
        *func.insts_mut(region) = all;

        let mut with = Substitution::new();
        for (result, value) in self.results.iter().zip(func.inst(branch).results.clone()) {
            with.insert(*result, value);
        }
        substitute(func, func.body, &with);
    }
}

fn is_division(op: &Op) -> bool {
    matches!(op, Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, .. })
}

/// Can a value be computed from scalars that are not marked as late?
fn is_early(func: &Function, value: Value, marks: &mut SideTable<Value, Option<bool>>) -> bool {
    let operands = |value: Value| {
        let mut operands = Vec::new();
        if let Some(op) = func.def_op(value).filter(|_| func.ty(value).is_tile() && func.splat(value).is_none()) {
            op.for_each_operand(&mut |value| operands.push(value));
        }
        operands
    };
    let enter = |marks: &mut SideTable<Value, Option<bool>>, value: Value, before: &mut Vec<Value>| {
        before.extend(operands(value));
        marks[value].is_none()
    };
    postorder(marks, value, enter, |marks, value| {
        let is_early = operands(value).into_iter().all(|operand| marks[operand] == Some(true));
        marks[value] = Some(is_early);
    });
    marks[value] == Some(true)
}

/// The tiles of indices that have a range, and that follow from scalars and `arange`s by ops that are copied in 32 bits.
fn followed(func: &Function) -> SideTable<Value, bool> {
    let all = func.all_insts();
    let mut ranges = Ranges::new(func, &all, &|_| true);
    let mut followed: SideTable<Value, bool> = SideTable::new();
    // In order, so that the recursion of the ranges stays shallow.
    for inst in &all {
        let data = func.inst(*inst);
        let [result] = data.results[..] else { continue };
        if !is_index_tile(func, result) {
            continue;
        }
        let is_copied = match data.op {
            _ if func.splat(result).is_some() => true,
            Op::Arange { ref start, .. } => start.as_int().is_some_and(|start| start >= 0),
            Op::Broadcast { x } if func.ty(x).is_scalar() => true,
            Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } => followed[x],
            Op::Binary { op: BinaryOp::Div | BinaryOp::Rem, lhs, rhs } => followed[lhs] && divisor(func, rhs).is_some(),
            Op::Binary { op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max, lhs, rhs } => {
                followed[lhs] && followed[rhs]
            }
            _ => false,
        };
        followed[result] = is_copied && ranges.of(result).is_some();
    }
    followed
}

/// Is an op a division of indices, or arithmetic on the result of a member? Ops that move elements are no members, because later passes
/// derive from them that neighbours along an axis are equal. Nor are comparisons: predicate registers are few, and all predicates that
/// leave a branch would be live at once.
fn is_member(func: &Function, inst: Inst, followed: &SideTable<Value, bool>, own: &SideTable<Value, bool>) -> bool {
    let data = func.inst(inst);
    let Op::Binary { lhs, rhs, .. } = data.op else { return false };
    (is_division(&data.op) || own[lhs] || own[rhs]) && data.results.iter().all(|result| followed[*result])
}

/// Computes values again, in 32 bits or in 64.
struct Copies<'f> {
    func: &'f mut Function,
    region: Region,
    loc: Loc,
    is_narrow: bool,
    copies: FxHashMap<Value, Value>,
}

impl Copies<'_> {
    fn of(&mut self, value: Value) -> Value {
        if self.func.ty(value).is_scalar() && !self.is_narrow {
            return value;
        }
        if let Some(copy) = self.copies.get(&value) {
            return *copy;
        }
        let copy = self.copy(value);
        self.copies.insert(value, copy);
        copy
    }

    fn copy(&mut self, value: Value) -> Value {
        let mut ty = self.func.ty(value).clone();
        if ty.is_scalar() {
            return Builder::new(self.func, self.region, self.loc).cast(value, Dtype::I32);
        }
        if let Some(constant) = self.func.splat(value).cloned() {
            let ty = if self.is_narrow { ty.with_elem(Dtype::I32) } else { ty };
            return Builder::new(self.func, self.region, self.loc).constant(constant, ty);
        }
        let mut op = self.func.def_op(value).cloned().expect("a tile that is followed is computed");
        if let (true, Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs, rhs }) = (self.is_narrow, &op) {
            let of = divisor(self.func, *rhs).expect("it is followed");
            let dividends = self.of(*lhs);
            return naturals(&mut Builder::new(self.func, self.region, self.loc), *op, dividends, of);
        }
        op.map_operands(&mut |operand| self.of(operand));
        let b = &mut Builder::new(self.func, self.region, self.loc);
        if self.is_narrow && ty.elem().dtype() == Some(Dtype::I64) && !matches!(op, Op::Arange { .. }) {
            ty = ty.with_elem(Dtype::I32);
        }
        match op {
            _ if !self.is_narrow => b.op(op, &[ty]),
            Op::Arange { .. } => {
                let positions = b.op(op, &[ty]);
                b.cast(positions, Dtype::I32)
            }
            _ => b.op(op, &[ty]),
        }
    }
}
