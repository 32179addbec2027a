//! Device printing: `device_print!` writes records into a buffer. The buffer is the kernel's last parameter, and the host reads it after
//! the launch.
//!
//! The buffer is zero before the launch. Its first word counts the words that have been written, or would have been written into a larger
//! buffer. A program reserves the words that it needs by one `atomic_add`, so the records are in chronological order:
//!
//! ```text
//! word         contents
//! 0            1 + site; from bit 32 on, the number of axes; from bit 48 on, the number of values
//! 1 2 3        the program's index along x, y, z
//! then         an extent for each axis
//! then         a dtype's code for each value
//! then         the values one after the other, their elements in row-major order, their bits in the low end of a word
//! ```
//!
//! Words that do not fit are dropped. A specialised kernel has no print ops: padding, guards and checks treat these atomics and stores like
//! those of the user.

use crate::dtype::Dtype;
use crate::ir::{AtomicOp, BinaryOp, Builder, Cache, CompareOp, ConstExpr, Evict, Function, Op, Scope, Semantics, Type, Value};

/// The name of the buffer. No parameter of the user can have this name.
pub(crate) const NAME: &str = "self";

/// Adds the buffer, and replaces every remaining `print`.
pub(super) fn write_prints(func: &mut Function) {
    let buffer = func.add_param(NAME, Type::Pointer { elem: Dtype::U64.into(), mutable: true });
    for region in func.regions_under(func.body) {
        let mut out = Vec::new();
        for inst in func.region(region).insts.clone() {
            let (op, loc) = (func.inst(inst).op.clone(), func.inst(inst).loc);
            let Op::Print { values, site, .. } = op else {
                out.push(inst);
                continue;
            };
            let scratch = func.add_region();
            write(&mut Builder::new(func, scratch, loc), buffer, &values, site);
            out.append(func.insts_mut(scratch));
        }
        *func.insts_mut(region) = out;
    }
}

/// Reserves the words of a record and writes it.
fn write(b: &mut Builder<'_>, buffer: Value, values: &[Value], site: u32) {
    let shape = values.first().map_or(Vec::new(), |value| b.func.ty(*value).shape().to_vec());
    let extents: Vec<u64> = shape.iter().filter_map(ConstExpr::as_int).map(|extent| extent as u64).collect();
    let dtypes: Vec<u64> = values.iter().map(|value| b.func.ty(*value).dtype().code()).collect();
    let first = (u64::from(site) + 1) | (shape.len() as u64) << 32 | (values.len() as u64) << 48;
    let numel: u64 = extents.iter().product();
    let word = |b: &mut Builder<'_>, word: u64| b.constant(ConstExpr::Int(word.into()), Type::scalar(Dtype::U64));

    let mut header = vec![word(b, first)];
    for axis in 0..3 {
        let index = b.op(Op::ProgramId { axis }, &[]);
        header.push(b.bitcast(index, Dtype::U64));
    }
    header.extend(extents.iter().chain(&dtypes).map(|number| word(b, *number)));
    let size = header.len() as u64 + numel * values.len() as u64;

    let (size, zero) = (word(b, size), b.index(0));
    let old = b.op(
        Op::Atomic {
            base: buffer,
            offset: zero,
            values: vec![size],
            op: AtomicOp::Add,
            mask: None,
            sem: Semantics::Relaxed,
            scope: Scope::Gpu,
            in_bounds: true,
            align: 0,
        },
        &[],
    );
    let (start, one) = (b.bitcast(old, Dtype::I64), b.index(1));
    let mut at = b.binary(BinaryOp::Add, start, one);
    for value in header {
        store(b, buffer, at, value);
        at = b.binary(BinaryOp::Add, at, one);
    }
    let lanes = row_major(b, &shape);
    let count = b.index(numel.into());
    for value in values {
        let first = b.broadcast(at, &shape);
        let offsets = lanes.map_or(first, |lanes| b.binary(BinaryOp::Add, first, lanes));
        let bits = bits(b, *value);
        store(b, buffer, offsets, bits);
        at = b.binary(BinaryOp::Add, at, count);
    }
}

/// The index of each element in row-major order; `None` for a scalar.
fn row_major(b: &mut Builder<'_>, shape: &[ConstExpr]) -> Option<Value> {
    let mut stride = 1;
    let mut sum: Option<Value> = None;
    for axis in (0..shape.len()).rev() {
        let mut index = b.op(Op::Arange { start: ConstExpr::Int(0), end: shape[axis].clone() }, &[]);
        for other in (0..shape.len()).filter(|other| *other != axis) {
            index = b.expand_dims(index, other as u32);
        }
        let index = b.broadcast(index, shape);
        let factor = b.int_like(stride, index);
        let term = b.binary(BinaryOp::Mul, index, factor);
        sum = Some(sum.map_or(term, |sum| b.binary(BinaryOp::Add, sum, term)));
        stride *= shape[axis].as_int().unwrap_or(1);
    }
    sum
}

/// The bits of the elements in the low end of a word.
fn bits(b: &mut Builder<'_>, value: Value) -> Value {
    let unsigned = match b.func.ty(value).dtype() {
        Dtype::Bool => return b.cast(value, Dtype::U64),
        dtype => match dtype.bits() {
            8 => Dtype::U8,
            16 => Dtype::U16,
            32 => Dtype::U32,
            _ => Dtype::U64,
        },
    };
    let bits = if b.func.ty(value).dtype() == unsigned { value } else { b.bitcast(value, unsigned) };
    b.cast(bits, Dtype::U64)
}

/// Stores the words that fit, also in an `unchecked` kernel. Words that do not fit are not reported as a mistake of the user.
fn store(b: &mut Builder<'_>, buffer: Value, offset: Value, value: Value) {
    let length = b.length(buffer);
    let shape = b.func.ty(offset).shape().to_vec();
    let length = b.broadcast(length, &shape);
    let mask = Some(b.compare(CompareOp::Lt, offset, length));
    let (cache, evict) = (Cache::Default, Evict::Unset);
    let op = Op::Store { base: buffer, offset, value, mask, cache, evict, in_bounds: true, align: 0, partial: false, shifted: false };
    b.func.append(b.region, op, [], b.loc);
}
