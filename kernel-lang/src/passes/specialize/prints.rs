//! Lets `device_print!` write into a buffer, which becomes the kernel's last parameter and is read when the launch is over.
//!
//! The buffer is zero before the launch. Its first word counts the words that have been written, or would have been, if there were room. A program
//! takes what it needs from it by one `atomic_add`, so that its records stand in the order of time:
//!
//! ```text
//! word         what it says
//! 0            1 + site; from bit 32 on, how many axes there are; from bit 48 on, how many values
//! 1 2 3        the program's index along x, y, z
//! then         an extent for each axis
//! then         a dtype's code for each value
//! then         the values one after the other, their elements in row-major order, their bits in the low end of a word
//! ```
//!
//! What does not fit is dropped. A specialised kernel has no ops of printing: these atomics and stores are padded, guarded and checked as those
//! of the user.

use crate::dtype::Dtype;
use crate::ir::{AtomicOp, BinaryOp, Builder, Cache, CompareOp, ConstExpr, Evict, Function, Op, Scope, Semantics, Type, Value};

/// The name of the buffer: no parameter of the user can have it.
const NAME: &str = "self";

/// Adds the buffer, and replaces every `print` that is left.
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

/// Takes room and writes a record.
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

/// The number of each element in row-major order; none of a scalar.
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

/// The elements' bits in the low end of a word.
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

/// Stores what there is room for, in a kernel that is trusted with its indices too; what there is none for is no mistake of the user's.
fn store(b: &mut Builder<'_>, buffer: Value, offset: Value, value: Value) {
    let length = b.op(Op::Length { base: buffer }, &[]);
    let shape = b.func.ty(offset).shape().to_vec();
    let length = b.broadcast(length, &shape);
    let mask = Some(b.compare(CompareOp::Lt, offset, length));
    let (cache, evict) = (Cache::Default, Evict::Normal);
    let op = Op::Store { base: buffer, offset, value, mask, cache, evict, in_bounds: true, align: 0 };
    b.func.append(b.region, op, [], b.loc);
}
