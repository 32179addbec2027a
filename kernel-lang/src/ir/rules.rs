//! The type rule of each op: its result types, computed from its operands.
//!
//! The builder uses the result types, and the verifier compares them with the actual types. Messages use the terms of the kernel language,
//! because a generic kernel may violate a rule only after specialisation.

use std::borrow::Cow;

use crate::dtype::Dtype;
use crate::ir::arena::Value;
use crate::ir::assembly;
use crate::ir::constexpr::{ConstBinary, ConstExpr};
use crate::ir::few::Few;
use crate::ir::fragments::shared_block;
use crate::ir::function::{Def, Function};
use crate::ir::ops::{Domain, Op};
use crate::ir::padding;
use crate::ir::product;
use crate::ir::types::{Elem, Type};
use crate::layout::SharedBlock;

/// Maximum number of loop iterations in flight.
pub const MAX_STAGES: i128 = 16;
/// Maximum unroll factor of a loop.
pub const MAX_UNROLL: i128 = 64;

/// The types of an op's results: few ops have more than one.
pub type ResultTypes<'a> = Few<Cow<'a, Type>>;

/// The result types that `op` must have. `given` are the types in the text or requested by the builder: an op such as `cast`, whose operands
/// do not determine the result type, keeps them if they are allowed. Most returned types borrow from an operand or from `given`.
///
/// # Errors
/// The violated rule.
pub fn result_types<'a>(func: &'a Function, op: &Op, given: &[&'a Type]) -> Result<ResultTypes<'a>, String> {
    let ty = |value: Value| func.ty(value);
    let wanted = || given.first().copied().ok_or_else(|| format!("`{}` needs a result type", op.name()));
    let all_given = || given.iter().copied().map(Cow::Borrowed).collect();
    let same = |ty: &'a Type| Ok(Few::One(Cow::Borrowed(ty)));
    let one = |ty: Type| Ok(Few::One(Cow::Owned(ty)));
    padding::check(func, op, given)?;
    match op {
        Op::Unary { op, x } => {
            check_domain(func, op.name(), op.domain(), *x)?;
            same(ty(*x))
        }
        Op::Binary { op, lhs, rhs } => {
            same_types(func, op.name(), *lhs, *rhs)?;
            check_domain(func, op.name(), op.domain(), *lhs)?;
            same(ty(*lhs))
        }
        Op::Compare { op, lhs, rhs } => {
            same_types(func, op.name(), *lhs, *rhs)?;
            check_domain(func, op.name(), op.domain(), *lhs)?;
            one(ty(*lhs).with_elem(Dtype::Bool))
        }
        Op::Const { value } => {
            let wanted = wanted()?;
            check_constant(value, wanted)?;
            same(wanted)
        }
        Op::ProgramId { axis } | Op::NumPrograms { axis } if *axis > 2 => {
            Err(format!("`{}({axis})`: a grid has the axes 0, 1 and 2", op.name()))
        }
        Op::ProgramId { .. } | Op::NumPrograms { .. } => one(Type::scalar(Dtype::I64)),
        Op::Arange { start, end } => {
            let extent = ConstExpr::binary(ConstBinary::Sub, end.clone(), start.clone());
            if extent.as_int().is_some_and(|extent| extent <= 0) {
                return Err(format!("`arange({start}, {end})` is empty"));
            }
            one(Type::tile(Dtype::I64, vec![extent]))
        }
        Op::Broadcast { x } => {
            let wanted = wanted()?;
            check_broadcast(ty(*x), wanted)?;
            same(wanted)
        }
        Op::ExpandDims { x, axis } => {
            let mut shape = ty(*x).shape().to_vec();
            if *axis as usize > shape.len() {
                return Err(format!("there is no index {axis} for a new axis in `{}`", ty(*x)));
            }
            shape.insert(*axis as usize, ConstExpr::Int(1));
            one(Type::tile(ty(*x).elem().clone(), shape))
        }
        Op::Reshape { x } => {
            let wanted = wanted()?;
            check_reshape(ty(*x), wanted)?;
            same(wanted)
        }
        Op::Permute { x, order } => {
            let shape = ty(*x).shape();
            let is_permutation = order.len() == shape.len() && (0..shape.len()).all(|axis| order.contains(&(axis as u32)));
            if ty(*x).is_pointer() || !is_permutation {
                return Err(format!("{order:?} is no order of the axes of `{}`", ty(*x)));
            }
            let shape = order.iter().map(|axis| shape[*axis as usize].clone()).collect();
            one(Type::tile(ty(*x).elem().clone(), shape))
        }
        Op::Flip { x, axis } => {
            check_along(func, "flip", &[*x], *axis)?;
            same(ty(*x))
        }
        Op::Reduce { inputs, axis, .. } => {
            check_along(func, op.name(), inputs, *axis)?;
            let without = |value: &Value| {
                let mut shape = ty(*value).shape().to_vec();
                shape.remove(*axis as usize);
                Cow::Owned(Type::tile(ty(*value).elem().clone(), shape))
            };
            Ok(inputs.iter().map(without).collect())
        }
        Op::Scan { inputs, axis, .. } => {
            check_along(func, op.name(), inputs, *axis)?;
            Ok(inputs.iter().map(|value| Cow::Borrowed(ty(*value))).collect())
        }
        Op::Gather { src, index, axis } => {
            check_along(func, "gather", &[*src], *axis)?;
            let (from, to) = (ty(*src).shape(), ty(*index).shape());
            let is_alike = from.len() == to.len() && (0..from.len()).all(|other| other == *axis as usize || from[other] == to[other]);
            if ty(*index).is_pointer() || ty(*index).elem() != &Elem::Dtype(Dtype::I64) || !is_alike {
                return Err(format!("`gather` along axis {axis} cannot look up `{}` in `{}`", ty(*index), ty(*src)));
            }
            one(ty(*index).with_elem(ty(*src).elem().clone()))
        }
        Op::Histogram { x, mask, bins } => {
            check_along(func, "histogram", &[*x], 0)?;
            check_domain(func, "histogram", Domain::Int, *x)?;
            if let Some(mask) = mask {
                expect_bool(func, "a mask", *mask)?;
                same_shapes(func, "histogram", *mask, *x)?;
            }
            one(Type::tile(Dtype::I32, vec![bins.clone()]))
        }
        Op::Sort { x, count, .. } => {
            check_along(func, "sort", &[*x], 0)?;
            let Some(count) = count else { return same(ty(*x)) };
            let mut shape = ty(*x).shape().to_vec();
            *shape.last_mut().expect("a tile has an axis") = (**count).clone();
            one(Type::tile(ty(*x).elem().clone(), shape))
        }
        Op::Butterfly { x, axis, bit } => {
            check_along(func, "butterfly", &[*x], *axis)?;
            if ty(*x).shape()[*axis as usize].as_int().is_some_and(|extent| extent.checked_shr(*bit).unwrap_or(0) <= 1) {
                return Err(format!("an index along axis {axis} of `{}` has no bit {bit}", ty(*x)));
            }
            same(ty(*x))
        }
        Op::Convert { x } => {
            if !ty(*x).is_tile() {
                return Err(format!("`convert` takes a tile, not `{}`", ty(*x)));
            }
            same(ty(*x))
        }
        Op::Fma { a, b, c } => {
            same_types(func, "fma", *a, *b)?;
            same_types(func, "fma", *a, *c)?;
            check_domain(func, "fma", Domain::Float, *a)?;
            same(ty(*a))
        }
        Op::Dot { a, b, acc, precision } => {
            product::check(func, [*a, *b, *acc], *precision)?;
            same(ty(*acc))
        }
        Op::Select { cond, on_true, on_false } => {
            same_types(func, "select", *on_true, *on_false)?;
            expect_bool(func, "the condition of `select`", *cond)?;
            same_shapes(func, "select", *cond, *on_true)?;
            same(ty(*on_true))
        }
        Op::Cast { x } | Op::Bitcast { x } => {
            let wanted = wanted()?;
            if wanted.is_pointer() || ty(*x).is_pointer() || wanted.shape() != ty(*x).shape() {
                return Err(format!("cannot turn `{}` into `{wanted}`", ty(*x)));
            }
            if let (Op::Bitcast { .. }, Some(from), Some(to)) = (op, ty(*x).elem().dtype(), wanted.elem().dtype())
                && (from.bits() != to.bits() || from == Dtype::Bool)
            {
                return Err(format!("`bitcast` needs types of one width, not `{from}` and `{to}`"));
            }
            same(wanted)
        }
        Op::ReducePio2 { x } => {
            if ty(*x).elem() != &Elem::Dtype(Dtype::F32) {
                return Err(format!("`reduce_pio2` takes `f32`, not `{}`", ty(*x)));
            }
            Ok(Few::Many(vec![Cow::Borrowed(ty(*x)), Cow::Owned(ty(*x).with_elem(Dtype::I32))]))
        }
        Op::InlinePtx { inputs, text, pack, .. } => {
            let types: Vec<&Type> = given.iter().copied().chain(inputs.iter().map(|input| ty(*input))).collect();
            if let Some(other) = types.iter().find(|ty| ty.is_pointer() || ty.shape() != types[0].shape()) {
                return Err(format!("what `inline_ptx` takes and gives has one shape, not `{}` and `{other}`", types[0]));
            }
            let dtypes: Vec<Option<Dtype>> = types.iter().map(|ty| ty.elem().dtype()).collect();
            assembly::check(text, &dtypes, (*pack).max(1) as usize)?;
            Ok(all_given())
        }
        Op::Load { base, offset, mask, other, .. } => {
            check_access(func, "load", *base, *offset, *mask)?;
            let result = ty(*offset).with_elem(ty(*base).elem().clone());
            match other {
                Some(other) if ty(*other) != &result => Err(format!("`other` is `{}`, the load gives `{result}`", ty(*other))),
                _ => one(result),
            }
        }
        Op::Store { base, offset, value, mask, .. } => {
            check_access(func, "store", *base, *offset, *mask)?;
            if matches!(ty(*base), Type::Pointer { mutable: false, .. }) {
                return Err(format!("cannot store through `{}`", ty(*base)));
            }
            let expected = ty(*offset).with_elem(ty(*base).elem().clone());
            if ty(*value) != &expected {
                return Err(format!("cannot store `{}` where `{expected}` is expected", ty(*value)));
            }
            Ok(Few::Empty)
        }
        Op::Atomic { base, offset, values, op: atomic, mask, .. } => {
            let builtin = atomic.builtin();
            check_access(func, builtin, *base, *offset, *mask)?;
            if atomic.writes() && matches!(ty(*base), Type::Pointer { mutable: false, .. }) {
                return Err(format!("`{builtin}` cannot change what `{}` points to", ty(*base)));
            }
            let elem = ty(*base).elem();
            if elem.dtype().is_some_and(|dtype| !atomic.dtypes().contains(&dtype)) {
                return Err(format!("`{builtin}` takes {}, not `{elem}`", atomic.describe_types()));
            }
            let expected = ty(*offset).with_elem(elem.clone());
            if values.len() != atomic.operands() {
                return Err(format!("`{builtin}` takes {} values, not {}", atomic.operands(), values.len()));
            }
            if let Some(value) = values.iter().find(|value| ty(**value) != &expected) {
                return Err(format!("`{builtin}` takes `{expected}` here, not `{}`", ty(*value)));
            }
            Ok(if atomic.has_result() { Few::One(Cow::Owned(expected)) } else { Few::Empty })
        }
        Op::Worker {} | Op::NumWorkers {} => one(Type::scalar(Dtype::I64)),
        Op::RunsIf { cond } => {
            expect_scalar(func, "the condition of `runs_if`", *cond, Dtype::Bool)?;
            Ok(Few::Empty)
        }
        Op::Roles { .. } => Ok(Few::Empty),
        Op::Ring { slots } => {
            let are_blocks = !given.is_empty() && given.iter().all(|ty| shared_block(ty).is_some());
            if are_blocks && *slots > 0 {
                Ok(all_given())
            } else {
                Err("has slots, of blocks whose order in shared memory the hardware knows".to_string())
            }
        }
        Op::RingAcquire { ring } => expect_ring(func, *ring).map(|_| Few::Empty),
        Op::RingWait { ring } => expect_ring(func, *ring).map(|blocks| blocks.iter().map(|block| Cow::Borrowed(ty(*block))).collect()),
        Op::ReadBlock { block } => {
            expect_waited(func, *block)?;
            one(Type::tile(ty(*block).elem().clone(), ty(*block).shape().to_vec()))
        }
        Op::RingRelease { block } | Op::RingReleasePrevious { block, .. } => expect_waited(func, *block).map(|()| Few::Empty),
        Op::WarpgroupWait { ring, sums } => {
            expect_ring(func, *ring)?;
            match sums.iter().find(|sum| !ty(**sum).is_tile()) {
                Some(sum) => Err(format!("waits for sums of products, not for `{}`", ty(*sum))),
                None => Ok(sums.iter().map(|sum| Cow::Borrowed(ty(*sum))).collect()),
            }
        }
        Op::CopyBlock { block, base, address, place, once, .. } => {
            expect_ring(func, *block)?;
            once.map_or(Ok(()), |once| expect_scalar(func, "`once` of a `copy_block`", once, Dtype::Bool))?;
            let (block, base) = (ty(*block), ty(*base));
            if !base.is_pointer() || base.elem() != block.elem() {
                return Err(format!("cannot copy `{block}` from `{base}`"));
            }
            expect_place(func, *address, place).map(|()| Few::Empty)
        }
        Op::StoreBlock { base, value, address, place, swapped } => {
            let (tile, base) = (ty(*value), ty(*base));
            let has_parts = |extents: [u32; 2]| {
                let staged = |dtype: Dtype| SharedBlock::staged(extents, dtype.bytes() as u32, *swapped);
                base.elem().dtype().is_some_and(|dtype| [16, 32].contains(&dtype.bits()) && staged(dtype).is_some())
            };
            let extent = |axis: usize| tile.shape().get(axis).and_then(|extent| u32::try_from(extent.as_int()?).ok());
            let is_fine = matches!(base, Type::Pointer { mutable: true, .. })
                && tile.is_tile()
                && tile.shape().len() == 2
                && base.elem() == tile.elem()
                && extent(0).zip(extent(1)).is_some_and(|(rows, columns)| has_parts([rows, columns]));
            if !is_fine {
                return Err(format!("cannot store `{tile}` in `{base}`"));
            }
            expect_place(func, *address, place).map(|()| Few::Empty)
        }
        Op::WarpgroupDot { a, b, acc, swapped, in_flight } => {
            if *in_flight && [a, b].into_iter().any(|operand| ty(*operand).is_tile()) {
                return Err("is in flight, and an operand is in registers that the next product overwrites".to_string());
            }
            [a, b].into_iter().filter(|operand| !ty(**operand).is_tile()).try_for_each(|block| expect_waited(func, *block))?;
            check_warpgroup_product(ty(*a), ty(*b), ty(*acc), *swapped)?;
            same(ty(*acc))
        }
        Op::Barrier {}
        | Op::SyncThreads { .. }
        | Op::GdcWait {}
        | Op::GdcLaunchDependents {}
        | Op::AsyncCommitGroup {}
        | Op::AsyncWait { .. } => Ok(Few::Empty),
        Op::IssueLoads { loads } => {
            let are_loads = loads.iter().all(|load| matches!(func.def_op(*load), Some(Op::Load { .. })));
            if are_loads { Ok(Few::Empty) } else { Err("takes results of `load` only".to_string()) }
        }
        Op::AsyncBuffer { slots, common } => {
            let wanted = wanted()?;
            if *slots == 0 || wanted.is_pointer() {
                return Err(format!("an async buffer holds tiles or numbers, not {slots} of `{wanted}`"));
            }
            if *common && !wanted.is_tile() {
                return Err(format!("threads have tiles in common, not `{wanted}`"));
            }
            same(wanted)
        }
        Op::AsyncCopy { buffer, slot, on, base, offset, mask, .. } => {
            expect_scalar(func, "the slot of an async buffer", *slot, Dtype::I32)?;
            expect_scalar(func, "the condition of an `async_copy`", *on, Dtype::Bool)?;
            let tile = ty(*buffer);
            let is_fine = ty(*base).is_pointer()
                && ty(*base).elem() == tile.elem()
                && *ty(*offset) == tile.with_elem(Dtype::I64)
                && mask.is_none_or(|mask| *ty(mask) == tile.with_elem(Dtype::Bool));
            if is_fine { Ok(Few::Empty) } else { Err(format!("cannot copy `{tile}` from `{}` at `{}`", ty(*base), ty(*offset))) }
        }
        Op::LocalLoad { buffer, slot, first: Some(first), mask, .. } => {
            expect_scalar(func, "the slot of an async buffer", *slot, Dtype::I32)?;
            let (tile, wanted) = (ty(*buffer), wanted()?);
            let is_part = wanted.is_tile() && wanted.elem() == tile.elem() && mask.is_none() && is_part(tile, wanted, first);
            if is_part { same(wanted) } else { Err(format!("`{tile}` has no part `{wanted}` at {first:?}")) }
        }
        Op::LocalLoad { buffer, slot, mask, .. } => {
            expect_scalar(func, "the slot of an async buffer", *slot, Dtype::I32)?;
            let fits = |mask: Value| *ty(mask) == ty(*buffer).with_elem(Dtype::Bool);
            if !mask.is_none_or(fits) {
                return Err("takes a mask of the shape of the buffer's tiles".to_string());
            }
            same(ty(*buffer))
        }
        Op::Report { base, offset, outside, .. } => check_access(func, "report", *base, *offset, Some(*outside)).map(|()| Few::Empty),
        Op::Length { base } | Op::Address { base } => {
            if !ty(*base).is_pointer() {
                return Err(format!("`{}` takes a pointer, not `{}`", op.name(), ty(*base)));
            }
            one(Type::scalar(Dtype::I64))
        }
        Op::Pointer { address } => {
            expect_scalar(func, "an address", *address, Dtype::I64)?;
            let wanted = wanted()?;
            if wanted.is_pointer() { same(wanted) } else { Err(format!("an address leads to no `{wanted}`")) }
        }
        Op::View { base } => {
            let wanted = wanted()?;
            if is_view(wanted, ty(*base)) { same(wanted) } else { Err(format!("`{wanted}` is no view of `{}`", ty(*base))) }
        }
        Op::If { cond, .. } => {
            expect_scalar(func, "the condition of an `if`", *cond, Dtype::Bool)?;
            Ok(all_given())
        }
        Op::LaunchValue { .. } => Ok(all_given()),
        Op::IfAny { mask, .. } => {
            expect_mask(ty(*mask))?;
            Ok(all_given())
        }
        Op::AnyInWarp { mask } => {
            expect_mask(ty(*mask))?;
            Ok(Few::One(Cow::Owned(Type::scalar(Dtype::Bool))))
        }
        Op::For { lower, upper, step, init, num_stages, unroll, .. } => {
            for bound in [lower, upper, step] {
                if !ty(*bound).is_scalar() || ty(*bound) != ty(*lower) {
                    return Err(format!("the bounds of a `for` are `{}` and `{}`", ty(*lower), ty(*bound)));
                }
            }
            check_domain(func, "for", Domain::Int, *lower)?;
            for (name, option, most) in [("num_stages", num_stages, MAX_STAGES), ("unroll", unroll, MAX_UNROLL)] {
                if let Some(value) = option.as_deref().and_then(ConstExpr::as_int).filter(|value| !(1..=most).contains(value)) {
                    return Err(format!("`{name}` of a loop is a number from 1 to {most}, not {value}"));
                }
            }
            Ok(init.iter().map(|value| Cow::Borrowed(ty(*value))).collect())
        }
        Op::While { init, .. } | Op::StaticFor { init, .. } => Ok(init.iter().map(|value| Cow::Borrowed(ty(*value))).collect()),
        Op::StaticIf { .. } => Ok(all_given()),
        Op::Condition { cond, .. } => {
            expect_scalar(func, "the condition of a `while`", *cond, Dtype::Bool)?;
            Ok(Few::Empty)
        }
        Op::Assert { cond, .. } => {
            expect_scalar(func, "the condition of an `assert`", *cond, Dtype::Bool)?;
            Ok(Few::Empty)
        }
        Op::Print { values, .. } => {
            for value in values {
                same_shapes(func, "print", values[0], *value)?;
                check_domain(func, "print", Domain::Any, *value)?;
            }
            Ok(Few::Empty)
        }
        Op::StaticAssert { .. } | Op::StaticPrint { .. } | Op::Yield { .. } | Op::Return {} => Ok(Few::Empty),
    }
}

/// Are the elements in the domain? For a type parameter: are all dtypes that it allows?
fn check_domain(func: &Function, name: &str, domain: Domain, value: Value) -> Result<(), String> {
    let ty = func.ty(value);
    if ty.is_pointer() {
        return Err(format!("`{name}` takes {}, not `{ty}`", domain.describe()));
    }
    let fits = match ty.elem() {
        Elem::Dtype(dtype) => domain.contains(*dtype),
        Elem::Param(param) => {
            func.types.iter().any(|given| given.name == *param && given.choices.iter().all(|dtype| domain.contains(*dtype)))
        }
    };
    if fits { Ok(()) } else { Err(format!("`{name}` takes {}, not `{ty}`", domain.describe())) }
}

fn same_types(func: &Function, name: &str, lhs: Value, rhs: Value) -> Result<(), String> {
    let (lhs, rhs) = (func.ty(lhs), func.ty(rhs));
    if lhs == rhs { Ok(()) } else { Err(format!("the operands of `{name}` are `{lhs}` and `{rhs}`")) }
}

fn same_shapes(func: &Function, name: &str, lhs: Value, rhs: Value) -> Result<(), String> {
    let (lhs, rhs) = (func.ty(lhs), func.ty(rhs));
    if lhs.shape() == rhs.shape() { Ok(()) } else { Err(format!("the operands of `{name}` are `{lhs}` and `{rhs}`")) }
}

fn expect_bool(func: &Function, what: &str, value: Value) -> Result<(), String> {
    let ty = func.ty(value);
    let is_bool = !ty.is_pointer() && ty.elem() == &Elem::Dtype(Dtype::Bool);
    if is_bool { Ok(()) } else { Err(format!("{what} is `{ty}`, not `bool`")) }
}

/// Does a pointer lead to unsigned integers that are several elements behind another pointer?
fn is_view(view: &Type, of: &Type) -> bool {
    let (Type::Pointer { elem: wide, mutable: is_mutable }, Type::Pointer { elem, mutable }) = (view, of) else { return false };
    let (Some(wide), Some(narrow)) = (wide.dtype(), elem.dtype()) else { return false };
    let is_unsigned = wide.is_int() && !wide.is_signed_int();
    is_mutable == mutable && is_unsigned && narrow != Dtype::Bool && wide.bits() > narrow.bits()
}

/// Is `part` what a tile has at the index `first`, in a grid of such parts?
fn is_part(tile: &Type, part: &Type, first: &[u32]) -> bool {
    let (whole, own) = (tile.shape(), part.shape());
    let fits = |((whole, own), first): ((&ConstExpr, &ConstExpr), &u32)| match (whole.as_int(), own.as_int()) {
        (Some(whole), Some(own)) => own > 0 && i128::from(*first) % own == 0 && i128::from(*first) + own <= whole,
        _ => false,
    };
    whole.len() == own.len() && own.len() == first.len() && whole.iter().zip(own).zip(first).all(fits)
}

fn expect_scalar(func: &Function, what: &str, value: Value, dtype: Dtype) -> Result<(), String> {
    let ty = func.ty(value);
    if *ty == Type::scalar(dtype) { Ok(()) } else { Err(format!("{what} is `{ty}`, not `{dtype}`")) }
}

/// The blocks of a slot of the ring that one of them names.
fn expect_ring(func: &Function, block: Value) -> Result<&[Value], String> {
    match func.def(block) {
        Def::Result(inst, _) if matches!(func.inst(inst).op, Op::Ring { .. }) => Ok(&func.inst(inst).results),
        _ => Err("takes a block of a `ring`".to_string()),
    }
}

/// The place of a block of two axes, or of three.
fn expect_place(func: &Function, address: Value, place: &[Value]) -> Result<(), String> {
    if ![6, 9].contains(&place.len()) {
        return Err(format!("the place of a block has three numbers for each of two or three axes, not {} numbers", place.len()));
    }
    [&address].into_iter().chain(place).try_for_each(|number| expect_scalar(func, "the place of a block", *number, Dtype::I64))
}

fn expect_waited(func: &Function, block: Value) -> Result<(), String> {
    match func.def_op(block) {
        Some(Op::RingWait { .. }) => Ok(()),
        _ => Err("takes a block that a `ring_wait` gives".to_string()),
    }
}

/// Is there a warpgroup product of these types?
fn check_warpgroup_product(a: &Type, b: &Type, acc: &Type, swapped: bool) -> Result<(), String> {
    let contiguous = |ty: &Type| if let Type::Shared { contiguous, .. } = ty { Some(*contiguous) } else { None };
    let is_in_shared = !if swapped { a } else { b }.is_tile();
    let extents = |ty: &Type| ty.shape().iter().map(ConstExpr::as_int).collect::<Option<Vec<_>>>().unwrap_or_default();
    let is_multiplied = match (a.elem().dtype(), b.elem().dtype(), acc.elem().dtype()) {
        (Some(left), Some(right), Some(sum)) => product::has_warpgroup_product([left, right, sum], [contiguous(a), contiguous(b)]),
        _ => false,
    };
    let is_fine = acc.is_tile()
        && is_in_shared
        && is_multiplied
        && match (&extents(a)[..], &extents(b)[..], &extents(acc)[..]) {
            ([m, k], [depth, n], [rows, columns]) => {
                let (down, across) = if swapped { (n, m) } else { (m, n) };
                let bytes = a.dtype().bytes() as i128;
                (m, k, n) == (rows, depth, columns)
                    && down % 64 == 0
                    && k * bytes % 32 == 0
                    && (8..=256).contains(across)
                    && across % 8 == 0
            }
            _ => false,
        };
    if is_fine { Ok(()) } else { Err(format!("cannot add the product of `{a}` and `{b}` to `{acc}`")) }
}

fn expect_mask(ty: &Type) -> Result<(), String> {
    let is_mask = ty.is_tile() && ty.elem().dtype() == Some(Dtype::Bool);
    if is_mask { Ok(()) } else { Err(format!("takes a tile of `bool` for its mask, not `{ty}`")) }
}

fn check_access(func: &Function, name: &str, base: Value, offset: Value, mask: Option<Value>) -> Result<(), String> {
    if !func.ty(base).is_pointer() {
        return Err(format!("`{name}` takes a pointer, not `{}`", func.ty(base)));
    }
    if func.ty(offset).is_pointer() || func.ty(offset).elem() != &Elem::Dtype(Dtype::I64) {
        return Err(format!("the offsets of a `{name}` are `{}`, not `i64`", func.ty(offset)));
    }
    if let Some(mask) = mask {
        expect_bool(func, "a mask", mask)?;
        same_shapes(func, name, mask, offset)?;
    }
    Ok(())
}

/// Does a literal fit its type? An expression over parameters is checked when it is bound.
fn check_constant(value: &ConstExpr, ty: &Type) -> Result<(), String> {
    match ty.elem().dtype() {
        _ if ty.is_pointer() => Err("a pointer cannot be a constant".to_string()),
        Some(dtype) => value.to_dtype(dtype).map(|_| ()),
        None => Ok(()),
    }
}

fn check_broadcast(from: &Type, to: &Type) -> Result<(), String> {
    let broken = || Err(format!("cannot broadcast `{from}` to `{to}`"));
    if from.is_pointer() || to.is_pointer() || from.elem() != to.elem() {
        return broken();
    }
    if from.is_scalar() {
        return Ok(());
    }
    if from.shape().len() != to.shape().len() {
        return broken();
    }
    let fits = from.shape().iter().zip(to.shape()).all(|(from, to)| from == to || from.as_int() == Some(1));
    if fits { Ok(()) } else { broken() }
}

/// The numbers of elements must be equal, as far as the extents are known; specialisation checks again.
fn check_reshape(from: &Type, to: &Type) -> Result<(), String> {
    let numel = |ty: &Type| ty.shape().iter().try_fold(1_i128, |numel, dim| numel.checked_mul(dim.as_int()?));
    let counts = numel(from).zip(numel(to)).filter(|(from, to)| from != to);
    if !from.is_pointer() && !to.is_pointer() && from.elem() == to.elem() && counts.is_none() {
        return Ok(());
    }
    let why = counts.map_or(String::new(), |(from, to)| format!(": it has {from} elements, not {to}"));
    Err(format!("cannot reshape `{from}` to `{to}`{why}"))
}

/// The inputs of a reduction or scan must be tiles of one shape that has the axis.
fn check_along(func: &Function, name: &str, inputs: &[Value], axis: u32) -> Result<(), String> {
    let Some(first) = inputs.first() else { return Err(format!("`{name}` has no input")) };
    for input in inputs {
        if func.ty(*input).is_pointer() {
            return Err(format!("`{name}` takes tiles, not `{}`", func.ty(*input)));
        }
        same_shapes(func, name, *first, *input)?;
    }
    if axis as usize >= func.ty(*first).shape().len() {
        return Err(format!("`{}` has no axis {axis}", func.ty(*first)));
    }
    Ok(())
}
