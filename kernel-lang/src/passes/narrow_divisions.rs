//! 32-bit divisions: computes tiles of indices with divisions in 32 bits, if a test at run time shows that all values fit.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = arange {start = 0, end = 256} : tile<i64, [256]>
//!     %1 = broadcast %n : tile<i64, [256]>
//!     %2 = rem %0, %1 : tile<i64, [256]>
//!     store %y, %0, %2
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = arange {start = 0, end = 256} : tile<i64, [256]>
//!     %1 = broadcast %n : tile<i64, [256]>
//!     %2 = const {value = 255} : i64
//!     %3 = const {value = 2147483648} : i64
//!     %4 = bitcast %2 : u64
//!     %5 = bitcast %3 : u64
//!     %6 = lt %4, %5 : bool
//!     %7 = const {value = 1} : i64
//!     %8 = sub %n, %7 : i64
//!     %9 = const {value = 2147483647} : i64
//!     %10 = bitcast %8 : u64
//!     %11 = bitcast %9 : u64
//!     %12 = lt %10, %11 : bool
//!     %13 = min %2, %8 : i64
//!     %14 = and %6, %12 : bool
//!     %27 = if %14 () {
//!         %15 = arange {start = 0, end = 256} : tile<i64, [256]>
//!         %16 = cast %15 : tile<i32, [256]>
//!         %17 = cast %n : i32
//!         %18 = broadcast %17 : tile<i32, [256]>
//!         %19 = bitcast %16 : tile<u32, [256]>
//!         %20 = bitcast %18 : tile<u32, [256]>
//!         %21 = rem %19, %20 : tile<u32, [256]>
//!         %22 = bitcast %21 : tile<i32, [256]>
//!         %23 = cast %22 : tile<i64, [256]>
//!         yield %23
//!     } () {
//!         %24 = arange {start = 0, end = 256} : tile<i64, [256]>
//!         %25 = broadcast %n : tile<i64, [256]>
//!         %26 = rem %24, %25 : tile<i64, [256]>
//!         yield %26
//!     } : tile<i64, [256]>
//!     store %y, %0, %27
//!     return
//! }
//! ```
//!
//! A kernel that flattens a tensor splits its indices again, with `offsets / columns` and `offsets % columns`, and recombines them. In 64
//! bits this takes an order of magnitude more instructions than in 32. A cluster is a set of divisions of indices, and of the arithmetic that
//! uses their results. Its values follow from scalars and `arange`s. The pass puts the cluster, with copies of the ops that compute its
//! operands, into both branches of an `if`: once in 32 bits and once in 64. The values that other ops use leave both branches in 64 bits.
//!
//! The test computes a scalar bound of the magnitude of each value, from the bounds of its operands. Scalars must be at least 0 and less than
//! 2^31, and divisors at least 1. The bounds of factors, products, dividends and results must be less than 2^31. A sum in between needs no
//! test: each value that is computed from it is tested, or is a sum whose bound is at least as large.
//!
//! The pass leaves loops alone, because their loads could not be prefetched across an `if`.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::ranges::{Divisor, divisor};
use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{BinaryOp, Builder, CompareOp, ConstExpr, Function, Inst, Op, Region, SideTable, Type, Value, postorder};
use crate::location::Loc;

/// The tested values must be less than this.
const END: i128 = 1 << 31;
/// In a tile of fewer elements, the divisions take less time than the test.
const WORTH: usize = 256;

/// The largest number of tests in a kernel: each test scans the whole kernel. The remaining divisions stay in 64 bits.
const MOST_TESTS: usize = 16;

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
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
            && let Some(cluster) = Cluster::find(func, region)
        {
            cluster.narrow(func, region);
            tests += 1;
        }
    }
    tests > 0
}

/// The ops of a region that one test allows to be computed in 32 bits.
struct Cluster {
    /// The ops in order.
    insts: Vec<Inst>,
    /// The results of the ops.
    own: SideTable<Value, bool>,
    /// The position in the region of the first other op that uses one of the results.
    first_use: usize,
    /// The values that other ops use.
    results: Vec<Value>,
}

impl Cluster {
    fn find(func: &Function, region: Region) -> Option<Cluster> {
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
        let mut known = Known { func, own: SideTable::new(), forms: FxHashMap::default() };
        for inst in func.all_insts() {
            for result in &func.inst(inst).results {
                known.form(*result); // in order, so that the recursion stays shallow
            }
        }
        let mut members = Vec::new();
        for inst in insts {
            if known.is_member(*inst) {
                known.own[func.result(*inst)] = true;
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
        let first_use = insts.iter().position(|inst| !is_of(*inst, &known.own) && uses(*inst, &known.own))?;
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
        (!results.is_empty()).then_some(Cluster { insts: members, own, first_use, results })
    }

    /// Moves the cluster into the branches of an `if`.
    fn narrow(self, func: &mut Function, region: Region) {
        let loc = func.inst(self.insts[0]).loc;
        let [head, narrow, wide] = [0; 3].map(|_| func.add_region());
        let build = Builder::new(func, head, loc);
        let mut tests =
            Tests { build, bounds: FxHashMap::default(), divisors: FxHashMap::default(), tests: Vec::new(), tested: FxHashSet::default() };
        for inst in &self.insts {
            let result = tests.build.func.result(*inst);
            tests.bound(result);
        }
        for result in &self.results {
            tests.fits(*result);
        }
        let cond = tests.finish();

        let mut copy = Copies { func, region: narrow, loc, is_narrow: true, copies: FxHashMap::default() };
        let values: Vec<Value> = self.results.iter().map(|value| copy.of(*value)).collect();
        let b = &mut Builder::new(func, narrow, loc);
        let values = values.into_iter().map(|value| b.cast(value, Dtype::I64)).collect();
        b.yield_values(values);

        let mut copy = Copies { func, region: wide, loc, is_narrow: false, copies: FxHashMap::default() };
        let values = self.results.iter().map(|value| copy.of(*value)).collect();
        Builder::new(func, wide, loc).yield_values(values);

        let types: Vec<Type> = self.results.iter().map(|value| func.ty(*value).clone()).collect();
        let branch = func.make_inst(Op::If { cond, then_region: narrow, else_region: wide }, types, loc);
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

/// The static bound of the elements of a tile of indices, and the depth of its computation.
#[derive(Clone, Copy)]
struct Form {
    /// May an element be negative?
    is_signed: bool,
    /// The number of terms less than 2^31 whose sum bounds the value.
    terms: u32,
    /// The length of the longest chain of ops that computes it.
    depth: u32,
}

impl Form {
    /// The limit that keeps bounds from overflowing.
    const MOST_TERMS: u32 = 1 << 16;
    /// The limit that keeps the stack from overflowing.
    const MOST_DEPTH: u32 = 48;

    fn leaf(is_signed: bool) -> Form {
        Form { is_signed, terms: 1, depth: 0 }
    }
}

/// Finds indices that are sums, products and quotients of scalars and `arange`s.
struct Known<'f> {
    func: &'f Function,
    /// The results of the members found so far.
    own: SideTable<Value, bool>,
    forms: FxHashMap<Value, Option<Form>>,
}

impl Known<'_> {
    /// Is an op a division of indices, or arithmetic on the result of a member? Ops that move elements are no members, because later passes
    /// derive from them that neighbours along an axis are equal. Nor are comparisons: predicate registers are few, and all predicates that
    /// leave a branch would be live at once.
    fn is_member(&mut self, inst: Inst) -> bool {
        let data = self.func.inst(inst);
        let Op::Binary { lhs, rhs, .. } = data.op else { return false };
        (is_division(&data.op) || self.own[lhs] || self.own[rhs]) && data.results.iter().all(|result| self.form(*result).is_some())
    }

    /// `None` for a value whose op [`Tests`] cannot bound.
    fn form(&mut self, value: Value) -> Option<Form> {
        if let Some(form) = self.forms.get(&value) {
            return *form;
        }
        let form = self.form_of(value);
        self.forms.insert(value, form);
        form
    }

    fn form_of(&mut self, value: Value) -> Option<Form> {
        let ty = self.func.ty(value);
        if !ty.is_tile() || ty.elem().dtype() != Some(Dtype::I64) {
            return None;
        }
        if let Some(constant) = self.func.splat(value) {
            return constant.as_int().filter(|constant| constant.abs() < END).map(|constant| Form::leaf(constant < 0));
        }
        let (is_signed, terms, depth) = match *self.func.def_op(value)? {
            Op::Arange { ref start, ref end } => return (end.as_int()? <= END && start.as_int()? >= 0).then_some(Form::leaf(false)),
            Op::Broadcast { x } if self.func.ty(x).is_scalar() => return Some(Form::leaf(false)),
            Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. } => {
                let x = self.form(x)?;
                (x.is_signed, x.terms, x.depth)
            }
            Op::Binary { op, lhs, rhs } => {
                let (x, y) = (self.form(lhs)?, self.form(rhs)?);
                let (is_signed, terms) = match op {
                    BinaryOp::Add => (x.is_signed || y.is_signed, x.terms + y.terms),
                    BinaryOp::Sub => (true, x.terms + y.terms),
                    BinaryOp::Mul => (x.is_signed || y.is_signed, 1),
                    BinaryOp::Div | BinaryOp::Rem if !x.is_signed && divisor(self.func, rhs).is_some() => (false, 1),
                    _ => return None,
                };
                (is_signed, terms, x.depth.max(y.depth))
            }
            _ => return None,
        };
        (terms <= Form::MOST_TERMS && depth < Form::MOST_DEPTH).then_some(Form { is_signed, terms, depth: depth + 1 })
    }
}

/// Builds the test.
struct Tests<'f> {
    build: Builder<'f>,
    /// Scalars that bound the magnitudes of values, if the tests pass.
    bounds: FxHashMap<Value, Value>,
    divisors: FxHashMap<Divisor, (Value, Value)>,
    tests: Vec<Value>,
    /// The values that have a test.
    tested: FxHashSet<Value>,
}

impl Tests<'_> {
    /// Adds a test: are all elements less than 2^31?
    fn fits(&mut self, value: Value) {
        let bound = self.bound(value);
        self.is_below(bound, END);
    }

    /// Adds a test: is a scalar at least 0 and less than `end`?
    fn is_below(&mut self, scalar: Value, end: i128) {
        if self.tested.insert(scalar) {
            let b = &mut self.build;
            let end = b.index(end);
            let [scalar, end] = [scalar, end].map(|value| b.bitcast(value, Dtype::U64));
            let test = b.compare(CompareOp::Lt, scalar, end);
            self.tests.push(test);
        }
    }

    fn bound(&mut self, value: Value) -> Value {
        if let Some(bound) = self.bounds.get(&value) {
            return *bound;
        }
        let bound = self.bound_of(value);
        self.bounds.insert(value, bound);
        bound
    }

    fn bound_of(&mut self, value: Value) -> Value {
        let func = &*self.build.func;
        if let Some(constant) = func.splat(value).and_then(ConstExpr::as_int) {
            return self.build.index(constant.abs());
        }
        let op = func.def_op(value).cloned();
        match op {
            Some(Op::Arange { end, .. }) => self.build.index(end.as_int().expect("`Known` saw a number") - 1),
            Some(Op::Broadcast { x }) if func.ty(x).is_scalar() => {
                self.is_below(x, END);
                x
            }
            Some(Op::Broadcast { x } | Op::ExpandDims { x, .. } | Op::Reshape { x } | Op::Permute { x, .. }) => self.bound(x),
            Some(Op::Binary { op: BinaryOp::Mul, lhs, rhs }) => {
                // Both factors are less than 2^31, so the product does not overflow.
                self.fits(lhs);
                self.fits(rhs);
                let (x, y) = (self.bound(lhs), self.bound(rhs));
                let product = self.build.binary(BinaryOp::Mul, x, y);
                self.is_below(product, END);
                product
            }
            Some(Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs, rhs }) => {
                self.fits(lhs);
                let most = self.bound(lhs);
                let divisor = divisor(self.build.func, rhs).expect("`Known` saw it");
                let (divisor, rest) = self.divisor(divisor);
                let b = &mut self.build;
                let bound = if op == BinaryOp::Rem {
                    b.binary(BinaryOp::Min, most, rest)
                } else {
                    let [most, divisor] = [most, divisor].map(|value| b.cast(value, Dtype::U32));
                    let quotient = b.binary(BinaryOp::Div, most, divisor);
                    b.cast(quotient, Dtype::I64)
                };
                // The bound is at most that of the dividend, which has a test.
                self.tested.insert(bound);
                bound
            }
            Some(Op::Binary { lhs, rhs, .. }) => {
                // Each side is a sum of few numbers less than 2^31.
                let (x, y) = (self.bound(lhs), self.bound(rhs));
                self.build.binary(BinaryOp::Add, x, y)
            }
            _ => unreachable!("`Known` follows nothing else"),
        }
    }

    /// A divisor, tested to be at least 1, and the divisor minus 1.
    fn divisor(&mut self, divisor: Divisor) -> (Value, Value) {
        if let Some(known) = self.divisors.get(&divisor) {
            return *known;
        }
        let value = match divisor {
            Divisor::Scalar(value) => value,
            Divisor::Constant(constant) => self.build.index(constant.into()),
        };
        let one = self.build.index(1);
        let rest = self.build.binary(BinaryOp::Sub, value, one);
        self.is_below(rest, END - 1);
        self.divisors.insert(divisor, (value, rest));
        (value, rest)
    }

    fn finish(mut self) -> Value {
        let tests = std::mem::take(&mut self.tests);
        let all = tests.into_iter().reduce(|all, test| self.build.binary(BinaryOp::And, all, test));
        all.expect("a divisor is tested")
    }
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
            // Neither side is negative, and an unsigned division takes fewer instructions.
            Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs, rhs } => {
                let [lhs, rhs] = [lhs, rhs].map(|value| b.bitcast(value, Dtype::U32));
                let result = b.binary(op, lhs, rhs);
                b.bitcast(result, Dtype::I32)
            }
            _ => b.op(op, &[ty]),
        }
    }
}
