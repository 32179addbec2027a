//! Sums in `f32`: adds and multiplies values of `f16` and `bf16` in `f32`, and rounds once.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<f16>, %x: ptr<f16>) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %1 = load %x, %0 : tile<f16, [64]>
//!     %2 = scan %1 (%3: f16, %4: f16) {
//!         %5 = add %3, %4 : f16
//!         yield %5
//!     } : tile<f16, [64]>
//!     store %y, %0, %2
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<f16>, %x: ptr<f16>) {
//!     %0 = arange {start = 0, end = 64} : tile<i64, [64]>
//!     %1 = load %x, %0 : tile<f16, [64]>
//!     %2 = cast %1 : tile<f32, [64]>
//!     %6 = scan %2 (%3: f32, %4: f32) {
//!         %5 = add %3, %4 : f32
//!         yield %5
//!     } : tile<f32, [64]>
//!     %7 = cast %6 : tile<f16, [64]>
//!     store %y, %0, %7
//!     return
//! }
//! ```
//!
//! A sum over several axes is a reduction of a reduction. The value in between stays `f32`, also through a `select` with a constant, such
//! as the one that pads a tile.
//!
//! The pass widens only a `reduce` or `scan` of one input by a single `add` or `mul`. With any other combining function, the kernel's
//! author chooses the types. A generic kernel cannot widen its own sums, because it does not know whether its type is a half.

use crate::dtype::Dtype;
use crate::ir::rewrite::{Changed, Substitution, substitute};
use crate::ir::{BinaryOp, Builder, Function, Inst, Op, Region, SideTable, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut with = Substitution::new();
    let mut wide = SideTable::new();
    for region in func.regions_under(func.body) {
        for inst in std::mem::take(func.insts_mut(region)) {
            match folded(func, inst) {
                Some((input, combine)) => widen(func, region, inst, (input, combine), &mut wide, &mut with),
                None => func.insts_mut(region).push(inst),
            }
        }
    }
    let body = func.body;
    substitute(func, body, &with)
}

/// The input and the region of a sum or product of halves.
fn folded(func: &Function, inst: Inst) -> Option<(Value, Region)> {
    let (Op::Reduce { inputs, combine, .. } | Op::Scan { inputs, combine, .. }) = &func.inst(inst).op else { return None };
    let &[input] = &inputs[..] else { return None };
    let (&[first, last], data) = (&func.region(*combine).insts[..], func.region(*combine)) else { return None };
    let folds = matches!(
        &func.inst(first).op,
        Op::Binary { op: BinaryOp::Add | BinaryOp::Mul, lhs, rhs } if [*lhs, *rhs] == data.params[..]
    );
    let yields = matches!(&func.inst(last).op, Op::Yield { values } if values[..] == func.inst(first).results[..]);
    (folds && yields && matches!(func.ty(input).dtype(), Dtype::F16 | Dtype::Bf16)).then_some((input, *combine))
}

fn widen(
    func: &mut Function,
    region: Region,
    inst: Inst,
    (input, combine): (Value, Region),
    wide: &mut SideTable<Value, Option<Value>>,
    with: &mut Substitution,
) {
    let data = func.inst(inst).clone();
    let half = func.ty(input).dtype();
    let scalars = [&func.region(combine).params[..], &func.inst(func.region(combine).insts[0]).results].concat();
    for value in scalars {
        let ty = func.ty(value).with_elem(Dtype::F32);
        func.set_ty(value, ty);
    }
    let mut b = Builder::new(func, region, data.loc);
    let input = unrounded(&mut b, input, wide).unwrap_or_else(|| b.cast(input, Dtype::F32));
    let mut op = data.op;
    op.map_operands(&mut |_| input);
    let sum = b.op(op, &[]);
    let rounded = b.cast(sum, half);
    wide[data.results[0]] = Some(sum);
    with.insert(data.results[0], rounded);
}

/// The `f32` value that was rounded to an input, if the input is itself a sum.
fn unrounded(b: &mut Builder<'_>, input: Value, wide: &SideTable<Value, Option<Value>>) -> Option<Value> {
    if let Some(sum) = wide[input] {
        return Some(sum);
    }
    let &Op::Select { cond, on_true, on_false } = b.func.def_op(input)? else { return None };
    let (sum, Op::Const { .. }) = (wide[on_true]?, b.func.def_op(on_false)?) else { return None };
    let padding = b.cast(on_false, Dtype::F32);
    Some(b.select(cond, sum, padding))
}
