//! Floating-point operations of a launch, as a number or an expression of the scalar parameters and the grid.
//!
//! ```text
//! kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %n: i64) {    grid [g, 1, 1]
//!     ..
//!     for %i in range(%zero, %n, %step = 64) {            cdiv(n, 64) iterations
//!         %v = load ..  : tile<f32, [64]>
//!         %w = mul %v, %v : tile<f32, [64]>               64
//!         %s = exp %w : tile<f32, [64]>                   64
//!         %t = reduce %s {axis = 0} (add)                 63
//!     }
//! }                                                       191 * cdiv(n, 64) * g
//! ```
//!
//! | op on floats | operations for each element of the result |
//! |---|---:|
//! | sum, difference, product, quotient, remainder, also the approximate ones | 1 |
//! | `fma` | 2 |
//! | `exp`, `log`, `sqrt`, `rsqrt`, `recip_approx`, `sin`, `tanh`, `sigmoid`, `erf` and the like | 1 |
//! | `reduce_pio2`, atomic `add` | 1 |
//! | comparison, minimum, maximum, `select`, negation, absolute value, `copysign`, rounding, conversion | 0 |
//! | reduction or scan of `n` elements along the axis | `n - 1` times those of the combine region |
//! | op whose operands are all constants, sort, gather, load, store | 0 |
//!
//! Integers and booleans count 0. Builtins that are written in the language, such as `pow`, count their ops.
//!
//! - **Masks.** All elements of a tile count, also those that a mask excludes: the programs at the end of a tensor compute them, too.
//! - **Loops** count their body times the trip count, if it is a number that the parameters and the grid determine. A loop from `program_id * step` in
//!   steps of `num_programs * step` has `cdiv(upper, step)` iterations in all programs together.
//! - **Branches** count the arm that the parameters determine, or else the smaller arm.
//! - **Lower bounds.** If a trip count depends on data, the loop counts 0, and the test of a `while` counts once. The count is then a lower bound, and so
//!   it is after a branch that depends on data and whose arms differ, and for inline PTX.
//!
//! Integers are taken as exact: the count of a kernel whose indices overflow is meaningless. The analysis visits each op once, and does a bounded
//! number of operations on [`Number`]s for it. It recurses over regions only, whose nesting is limited
//! ([`MAX_NESTING`](crate::ir::MAX_NESTING)).

use crate::ir::{AtomicOp, BinaryOp, CompareOp, ConstExpr, Function, InstData, Op, Region, SideTable, UnaryOp, Value};
use crate::location::Loc;

/// A number of a count: an integer, or an expression of unknown ones.
pub trait Number: Clone {
    /// An integer.
    fn constant(number: i64) -> Self;

    /// The result of an op on integers of unlimited width: `add`, `sub`, `mul`, `div`, `rem`, `min` or `max`. None if it is not known, or for other ops.
    fn binary(op: BinaryOp, lhs: &Self, rhs: &Self) -> Option<Self>;

    /// Whether the comparison holds, if that is known.
    fn compare(op: CompareOp, lhs: &Self, rhs: &Self) -> Option<bool>;
}

impl Number for i64 {
    fn constant(number: i64) -> i64 {
        number
    }

    fn binary(op: BinaryOp, lhs: &i64, rhs: &i64) -> Option<i64> {
        match op {
            BinaryOp::Add => lhs.checked_add(*rhs),
            BinaryOp::Sub => lhs.checked_sub(*rhs),
            BinaryOp::Mul => lhs.checked_mul(*rhs),
            BinaryOp::Div => lhs.checked_div(*rhs),
            BinaryOp::Rem => lhs.checked_rem(*rhs),
            BinaryOp::Min => Some(*lhs.min(rhs)),
            BinaryOp::Max => Some(*lhs.max(rhs)),
            _ => None,
        }
    }

    fn compare(op: CompareOp, lhs: &i64, rhs: &i64) -> Option<bool> {
        Some(match op {
            CompareOp::Eq => lhs == rhs,
            CompareOp::Ne => lhs != rhs,
            CompareOp::Lt => lhs < rhs,
            CompareOp::Le => lhs <= rhs,
            CompareOp::Gt => lhs > rhs,
            CompareOp::Ge => lhs >= rhs,
        })
    }
}

/// The floating-point operations of all programs of a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flops<N> {
    /// The number of operations.
    pub count: N,
    /// Whether each launch with these parameters does exactly so many. Otherwise the count is a lower bound.
    pub is_exact: bool,
}

/// Counts the operations of a specialised kernel without layouts.
///
/// `params` has a number for each parameter: the value of an integer or a `bool`, and the length of a pointer's tensor. None if it is not known.
pub fn count<N: Number>(func: &Function, params: &[Option<N>], grid: &[N; 3]) -> Flops<N> {
    total(Cx { func, grid, known: SideTable::new(), is_exact: true, executions_of: None }, params)
}

/// Counts how often all programs together execute the products at a position of the source, as [`count`] counts operations.
pub fn products<N: Number>(func: &Function, loc: Loc, params: &[Option<N>], grid: &[N; 3]) -> Flops<N> {
    total(Cx { func, grid, known: SideTable::new(), is_exact: true, executions_of: Some(loc) }, params)
}

fn total<N: Number>(mut cx: Cx<'_, N>, params: &[Option<N>]) -> Flops<N> {
    let (func, grid) = (cx.func, cx.grid);
    for (param, number) in func.params.iter().zip(params) {
        if let Some(number) = number {
            cx.known[param.value] = cx.parameter(param.value, number);
        }
    }
    let body = cx.region(func.body);
    // What was summed over the programs along some axes still occurs for each program along the others.
    let mut total = N::constant(0);
    for (summed, part) in body.0.into_iter().enumerate() {
        let Some(part) = part else { continue };
        let axes = grid.iter().enumerate().filter(|(axis, _)| summed >> axis & 1 == 0);
        let part = axes.map(|(_, programs)| programs).try_fold(part, |part, programs| N::binary(BinaryOp::Mul, &part, programs));
        match part.and_then(|part| N::binary(BinaryOp::Add, &total, &part)) {
            Some(sum) => total = sum,
            None => cx.is_exact = false,
        }
    }
    Flops { count: total, is_exact: cx.is_exact }
}

/// What is known of a scalar. For a pointer: the length of its tensor.
#[derive(Clone)]
enum Known<N> {
    Int(N),
    Bool(bool),
    /// The product of a number and the program id along an axis.
    Program(usize, N),
    /// A constant of another type.
    Constant,
}

/// The operations of a region, by the set of axes over whose programs they are summed already: bit `axis` of the index is set. None is 0.
#[derive(Clone)]
struct Sums<N>([Option<N>; 8]);

impl<N: Number> Sums<N> {
    fn new(number: i64) -> Sums<N> {
        let mut sums = Sums(std::array::from_fn(|_| None));
        sums.0[0] = (number != 0).then(|| N::constant(number));
        sums
    }

    fn is_zero(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }
}

/// The bounds and the step of a `while` that counts: it runs while a value is less than `upper`, which no iteration changes, and adds `step` to the value in each one.
fn counted(func: &Function, init: &[Value], test: Region, body: Region) -> Option<[Value; 3]> {
    let Op::Condition { cond, values } = &func.inst(*func.region(test).insts.last()?).op else { return None };
    let Some(Op::Compare { op: CompareOp::Lt, lhs: counter, rhs: upper }) = func.def_op(*cond) else { return None };
    let params = &func.region(test).params;
    let at = params.iter().position(|param| param == counter)?;
    let is_outside = !params.contains(upper) && !func.region(test).insts.iter().any(|inst| func.inst(*inst).results.contains(upper));
    let inside = func.region(body).params.get(values.iter().position(|value| value == counter)?)?;
    let step = match func.def_op(*func.yielded(body).get(at)?) {
        Some(Op::Binary { op: BinaryOp::Add, lhs, rhs }) if lhs == inside => *rhs,
        Some(Op::Binary { op: BinaryOp::Add, lhs, rhs }) if rhs == inside => *lhs,
        _ => return None,
    };
    is_outside.then_some([*init.get(at)?, *upper, step])
}

struct Cx<'a, N> {
    func: &'a Function,
    grid: &'a [N; 3],
    known: SideTable<Value, Option<Known<N>>>,
    is_exact: bool,
    /// Count the executions of the products at this position, instead of operations.
    executions_of: Option<Loc>,
}

impl<N: Number> Cx<'_, N> {
    /// The operations of the ops in a region.
    fn region(&mut self, region: Region) -> Sums<N> {
        let func = self.func;
        let (mut own, mut nested) = (0i64, Vec::new());
        for inst in &func.region(region).insts {
            let data = func.inst(*inst);
            match &data.op {
                Op::For { lower, upper, step, body, .. } => {
                    let body = self.region(*body);
                    nested.push(self.repeated(&body, *lower, *upper, *step));
                }
                Op::While { init, test, body } => {
                    let counted = counted(func, init, *test, *body);
                    let (test, body) = (self.region(*test), self.region(*body));
                    if let Some([lower, upper, step]) = counted.filter(|_| test.is_zero()) {
                        nested.push(self.repeated(&body, lower, upper, step));
                        continue;
                    }
                    self.is_exact &= test.is_zero() && body.is_zero();
                    // The first test of each program.
                    nested.push(test);
                }
                Op::If { cond, then_region, else_region, .. } => {
                    let sums = self.branch(data, *cond, [*then_region, *else_region]);
                    nested.push(sums);
                }
                Op::Reduce { inputs, axis, combine } | Op::Scan { inputs, axis, combine, .. } => {
                    let extents = func.ty(inputs[0]).extents();
                    let along = extents[*axis as usize];
                    let combines = extents.iter().product::<usize>() / along.max(1) * along.saturating_sub(1);
                    let times = self.region(*combine);
                    nested.push(self.times(&times, &N::constant(combines as i64)));
                }
                Op::LaunchValue { .. } => {}
                op if op.has_regions() || matches!(op, Op::InlinePtx { .. }) => self.is_exact = false,
                _ => {
                    self.set_known(data);
                    own = own.saturating_add(self.operations(data));
                }
            }
        }
        let mut total = Sums::new(own);
        for sums in nested {
            total = self.sum(total, sums);
        }
        total
    }

    /// The operations of an op without regions.
    fn operations(&self, data: &InstData) -> i64 {
        if let Some(loc) = self.executions_of {
            return i64::from(data.loc == loc && matches!(data.op, Op::Dot { .. }));
        }
        let [result, ..] = &data.results[..] else { return self.of_update(&data.op) };
        let ty = self.func.ty(*result);
        let is_float = !ty.is_pointer() && ty.dtype().is_float();
        let each = match &data.op {
            Op::Unary { op, .. } if is_float => of_unary(*op),
            Op::Binary { op, .. } if is_float => of_binary(*op),
            Op::Fma { .. } if is_float => 2,
            Op::ReducePio2 { .. } => 1,
            // A product and an addition for each term of each sum.
            Op::Dot { a, .. } if is_float => 2 * self.func.ty(*a).extents().last().map_or(0, |k| *k as i64),
            op => return self.of_update(op),
        };
        if matches!(self.known[*result], Some(Known::Constant)) { 0 } else { each * ty.numel() as i64 }
    }

    fn of_update(&self, op: &Op) -> i64 {
        match op {
            Op::Atomic { values, op: AtomicOp::Add, .. } if self.func.ty(values[0]).dtype().is_float() => {
                self.func.ty(values[0]).numel() as i64
            }
            _ => 0,
        }
    }

    /// The operations of a loop with this body.
    fn repeated(&mut self, body: &Sums<N>, lower: Value, upper: Value, step: Value) -> Sums<N> {
        if body.is_zero() {
            return Sums::new(0);
        }
        let known = [lower, upper, step].map(|value| self.known[value].clone());
        match known {
            [Some(Known::Int(lower)), Some(Known::Int(upper)), Some(Known::Int(step))] => match trips(&lower, &upper, &step) {
                Some(trips) => self.times(body, &trips),
                None => self.unknown(),
            },
            [Some(Known::Program(axis, block)), Some(Known::Int(upper)), Some(Known::Int(step))] => {
                let stride = N::binary(BinaryOp::Mul, &self.grid[axis], &block);
                let is_interleaved = stride.is_some_and(|stride| N::compare(CompareOp::Eq, &stride, &step) == Some(true));
                // A step that is not positive would be one of no programs.
                let is_positive = N::compare(CompareOp::Gt, &step, &N::constant(0)) == Some(true);
                match trips(&N::constant(0), &upper, &block) {
                    Some(trips) if is_interleaved && is_positive => self.summed(body, axis, &trips),
                    _ => self.unknown(),
                }
            }
            _ => self.unknown(),
        }
    }

    /// The operations of a branch.
    fn branch(&mut self, data: &InstData, cond: Value, arms: [Region; 2]) -> Sums<N> {
        if let Some(Known::Bool(holds)) = self.known[cond] {
            let arm = arms[usize::from(!holds)];
            let sums = self.region(arm);
            let yielded = self.func.yielded(arm);
            for (result, value) in data.results.iter().zip(yielded) {
                self.known[*result] = self.known[*value].clone();
            }
            return sums;
        }
        let [one, other] = arms.map(|arm| self.region(arm));
        // Programs may take different arms, so a sum over programs is none over those of an arm.
        let has_sums = [&one, &other].iter().any(|sums| sums.0[1..].iter().any(Option::is_some));
        let of_programs = |sums: &Sums<N>| sums.0[0].clone().unwrap_or_else(|| N::constant(0));
        let (one, other) = (of_programs(&one), of_programs(&other));
        let mut least = Sums::new(0);
        if has_sums || N::compare(CompareOp::Eq, &one, &other) != Some(true) {
            self.is_exact = false;
        }
        least.0[0] = N::binary(BinaryOp::Min, &one, &other);
        least
    }

    /// The operations of what is not known to be executed at all.
    fn unknown(&mut self) -> Sums<N> {
        self.is_exact = false;
        Sums::new(0)
    }

    fn times(&mut self, sums: &Sums<N>, times: &N) -> Sums<N> {
        let parts = sums.0.each_ref().map(|part| self.kept(part.as_ref().map(|part| N::binary(BinaryOp::Mul, part, times))));
        Sums(parts)
    }

    /// The operations of a body that all programs along an axis execute so often together.
    fn summed(&mut self, body: &Sums<N>, axis: usize, trips: &N) -> Sums<N> {
        let mut total = Sums::new(0);
        for (summed, part) in body.0.iter().enumerate() {
            let Some(part) = part else { continue };
            if summed >> axis & 1 == 1 {
                self.is_exact = false;
                continue;
            }
            total.0[summed | 1 << axis] = self.kept(Some(N::binary(BinaryOp::Mul, part, trips)));
        }
        total
    }

    fn sum(&mut self, one: Sums<N>, other: Sums<N>) -> Sums<N> {
        let mut parts = one.0;
        for (part, added) in parts.iter_mut().zip(other.0) {
            *part = match (part.take(), added) {
                (Some(one), Some(other)) => {
                    let sum = N::binary(BinaryOp::Add, &one, &other);
                    self.is_exact &= sum.is_some();
                    Some(sum.unwrap_or(one))
                }
                (one, other) => one.or(other),
            };
        }
        Sums(parts)
    }

    /// A part, which is left out of the count if its number is not known.
    fn kept(&mut self, part: Option<Option<N>>) -> Option<N> {
        let part = part?;
        self.is_exact &= part.is_some();
        part
    }

    /// What is known of a parameter with this number.
    fn parameter(&self, value: Value, number: &N) -> Option<Known<N>> {
        let ty = self.func.ty(value);
        match ty.elem().dtype()? {
            _ if ty.is_pointer() => Some(Known::Int(number.clone())),
            dtype if dtype.is_int() => Some(Known::Int(number.clone())),
            dtype if dtype.is_float() => None,
            _ => N::compare(CompareOp::Ne, number, &N::constant(0)).map(Known::Bool),
        }
    }

    /// Notes what is known of the result of an op.
    fn set_known(&mut self, data: &InstData) {
        let [result] = data.results[..] else { return };
        if self.func.ty(result).is_scalar() {
            self.known[result] = self.result(&data.op, result);
        }
    }

    fn result(&self, op: &Op, result: Value) -> Option<Known<N>> {
        use Known::{Bool, Constant, Int, Program};
        let known = |value: &Value| self.known[*value].clone();
        let is_int = self.func.ty(result).dtype().is_int();
        match op {
            Op::Const { value: ConstExpr::Int(number) } if is_int => i64::try_from(*number).ok().map(N::constant).map(Int),
            Op::Const { value: ConstExpr::Bool(value) } => Some(Bool(*value)),
            Op::Const { .. } => Some(Constant),
            Op::ProgramId { axis } => {
                let (axis, one) = (*axis as usize, N::constant(1));
                let is_single = N::compare(CompareOp::Eq, &self.grid[axis], &one) == Some(true);
                Some(if is_single { Int(N::constant(0)) } else { Program(axis, one) })
            }
            Op::NumPrograms { axis } => Some(Int(self.grid[*axis as usize].clone())),
            Op::Length { base } => known(base),
            Op::Unary { op, x } => match (op, known(x)?) {
                (UnaryOp::Not, Bool(value)) => Some(Bool(!value)),
                (UnaryOp::Neg, Int(number)) => N::binary(BinaryOp::Sub, &N::constant(0), &number).map(Int),
                (_, Constant) => Some(Constant),
                _ => None,
            },
            Op::Binary { op, lhs, rhs } => match (op, known(lhs), known(rhs)) {
                (BinaryOp::And, Some(Bool(false)), _) | (BinaryOp::And, _, Some(Bool(false))) => Some(Bool(false)),
                (BinaryOp::Or, Some(Bool(true)), _) | (BinaryOp::Or, _, Some(Bool(true))) => Some(Bool(true)),
                (BinaryOp::And | BinaryOp::Or, Some(Bool(_)), Some(Bool(value))) => Some(Bool(value)),
                (_, Some(Int(lhs)), Some(Int(rhs))) => N::binary(*op, &lhs, &rhs).map(Int),
                (BinaryOp::Mul, Some(Program(axis, times)), Some(Int(by))) | (BinaryOp::Mul, Some(Int(by)), Some(Program(axis, times))) => {
                    N::binary(BinaryOp::Mul, &times, &by).map(|times| Program(axis, times))
                }
                (_, Some(Constant), Some(Constant)) => Some(Constant),
                _ => None,
            },
            Op::Fma { a, b, c } => {
                let is_constant = [a, b, c].iter().all(|value| matches!(self.known[**value], Some(Constant)));
                is_constant.then_some(Constant)
            }
            Op::Compare { op, lhs, rhs } => match (known(lhs)?, known(rhs)?) {
                (Int(lhs), Int(rhs)) => N::compare(*op, &lhs, &rhs).map(Bool),
                _ => None,
            },
            Op::Select { cond, on_true, on_false } => match known(cond)? {
                Bool(true) => known(on_true),
                Bool(false) => known(on_false),
                _ => None,
            },
            Op::Cast { x } => match known(x)? {
                known @ (Int(_) | Program(..)) if is_int => Some(known),
                Constant if self.func.ty(result).dtype().is_float() => Some(Constant),
                _ => None,
            },
            _ => None,
        }
    }
}

/// The trip count of a loop, if it is known.
fn trips<N: Number>(lower: &N, upper: &N, step: &N) -> Option<N> {
    let (zero, one) = (N::constant(0), N::constant(1));
    if N::compare(CompareOp::Gt, step, &zero) != Some(true) {
        return None;
    }
    let length = N::binary(BinaryOp::Max, &N::binary(BinaryOp::Sub, upper, lower)?, &zero)?;
    if N::compare(CompareOp::Eq, step, &one) == Some(true) {
        return Some(length);
    }
    N::binary(BinaryOp::Div, &N::binary(BinaryOp::Add, &length, &N::binary(BinaryOp::Sub, step, &one)?)?, step)
}

fn of_unary(op: UnaryOp) -> i64 {
    match op {
        UnaryOp::Neg | UnaryOp::Not | UnaryOp::Abs => 0,
        UnaryOp::Floor | UnaryOp::Ceil | UnaryOp::Round | UnaryOp::Rint | UnaryOp::Trunc => 0,
        UnaryOp::Popc | UnaryOp::Clz | UnaryOp::Brev => 0,
        UnaryOp::Exp | UnaryOp::Exp2 | UnaryOp::Log | UnaryOp::Log2 | UnaryOp::Sqrt | UnaryOp::Rsqrt => 1,
        UnaryOp::Sin | UnaryOp::Cos | UnaryOp::Tan | UnaryOp::Tanh | UnaryOp::Sigmoid | UnaryOp::Erf => 1,
        UnaryOp::ExpApprox2 | UnaryOp::ExpApproxFtz2 | UnaryOp::LogApprox2 | UnaryOp::RecipApprox => 1,
        UnaryOp::RsqrtApprox | UnaryOp::SqrtApprox | UnaryOp::SinApprox | UnaryOp::CosApprox | UnaryOp::TanhApprox => 1,
    }
}

fn of_binary(op: BinaryOp) -> i64 {
    match op {
        BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem | BinaryOp::DivApprox => 1,
        BinaryOp::Min | BinaryOp::Max | BinaryOp::CopySign => 0,
        BinaryOp::And | BinaryOp::Or | BinaryOp::Xor | BinaryOp::Shl | BinaryOp::Shr | BinaryOp::MulHigh => 0,
    }
}

#[cfg(test)]
mod tests;
