//! A small interpreter of straight-line IR, a batch of elements at a time: what the primitives mean, written independently of the backends.
//!
//! The approximations of the device are modelled as the exact function with an error up to the documented bound (PTX ISA: `ex2.approx`
//! 2 ulp, `rcp.approx` 1 ulp, `rsqrt.approx` 2 ulp, `lg2.approx` 2^-22, absolute between 1/2 and 2, relative elsewhere), drawn from a hash of the input or always at one end.

use kernel_lang::dtype::Dtype;
use kernel_lang::ir::{BinaryOp, CompareOp, ConstExpr, Function, Op, UnaryOp, Value};
use std::collections::HashMap;

use crate::reduction;

/// Which error an approximation makes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Device {
    /// Any within the bound, decided by a hash of the input and this seed.
    Random(u64),
    /// The largest upwards.
    High,
    /// The largest downwards.
    Low,
    /// As good as `f32` allows.
    Exact,
}

/// The elements of a value. Halves and 16-bit integers are their bits.
#[derive(Clone, Debug)]
pub(crate) enum Column {
    Bool(Vec<bool>),
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    I64(Vec<i64>),
    U32(Vec<u32>),
    U64(Vec<u64>),
    Half(Vec<u16>),
}

use Column::{F32, F64, Half, I32, I64, U32, U64};

/// Runs a kernel whose parameters are scalars or tiles and whose last op but `return` gives the result.
pub(crate) fn run(func: &Function, inputs: &[Column], device: Device) -> Column {
    let len = length(&inputs[0]);
    let mut values: HashMap<Value, Column> = HashMap::new();
    for (param, input) in func.params.iter().zip(inputs) {
        values.insert(param.value, input.clone());
    }
    let mut last = None;
    let mut loads = func.params.iter().zip(inputs).filter(|(param, _)| func.ty(param.value).is_pointer()).map(|(_, input)| input);
    for inst in &func.region(func.body).insts {
        let data = func.inst(*inst);
        // A kernel of one element: its loads are the inputs in their order, and what it stores is the result.
        if let Op::Store { value, .. } = &data.op {
            last = Some(*value);
            break;
        }
        let Some(result) = data.results.first() else { continue };
        let dtype = func.ty(*result).dtype();
        let at = |value: &Value| &values[value];
        let column = match &data.op {
            Op::Const { value } => constant(value, dtype, len),
            Op::Load { .. } => loads.next().expect("one load an input").clone(),
            Op::Unary { op, x } => unary(*op, at(x), device),
            Op::Binary { op, lhs, rhs } => binary(*op, at(lhs), at(rhs)),
            Op::Compare { op, lhs, rhs } => compare(*op, at(lhs), at(rhs)),
            Op::Fma { a, b, c } => match (at(a), at(b), at(c)) {
                (F32(a), F32(b), F32(c)) => F32(zip3(a, b, c, f32::mul_add)),
                (F64(a), F64(b), F64(c)) => F64(zip3(a, b, c, f64::mul_add)),
                other => panic!("fma of {other:?}"),
            },
            Op::Select { cond, on_true, on_false } => select(at(cond), at(on_true), at(on_false)),
            Op::Cast { x } => cast(at(x), func.ty(*x).dtype(), dtype),
            Op::Bitcast { x } => bitcast(at(x), dtype),
            Op::ReducePio2 { x } => {
                let F32(x) = at(x) else { panic!("reduce_pio2 of a column that is not f32") };
                let (rest, quadrant): (Vec<f32>, Vec<i32>) = x.iter().map(|x| reduction::reduce_pio2(*x)).unzip();
                values.insert(data.results[1], I32(quadrant));
                F32(rest)
            }
            op => panic!("`{}` is not a primitive", op.name()),
        };
        values.insert(*result, column);
        last = Some(*result);
    }
    values.remove(&last.expect("a kernel computes something")).expect("the last value was computed")
}

pub(crate) fn length(column: &Column) -> usize {
    match column {
        Column::Bool(x) => x.len(),
        F32(x) => x.len(),
        F64(x) => x.len(),
        I32(x) => x.len(),
        I64(x) => x.len(),
        U32(x) => x.len(),
        U64(x) => x.len(),
        Half(x) => x.len(),
    }
}

fn map<A: Copy, B>(x: &[A], f: impl Fn(A) -> B) -> Vec<B> {
    x.iter().map(|x| f(*x)).collect()
}

fn zip<A: Copy, B>(a: &[A], b: &[A], f: impl Fn(A, A) -> B) -> Vec<B> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

fn zip3<A: Copy>(a: &[A], b: &[A], c: &[A], f: impl Fn(A, A, A) -> A) -> Vec<A> {
    a.iter().zip(b).zip(c).map(|((a, b), c)| f(*a, *b, *c)).collect()
}

fn constant(value: &ConstExpr, dtype: Dtype, len: usize) -> Column {
    match (value, dtype) {
        (ConstExpr::Float(x), Dtype::F32) => {
            assert!(x.is_nan() || f64::from(*x as f32) == *x, "the constant {x:?} is not an f32");
            F32(vec![*x as f32; len])
        }
        (ConstExpr::Float(x), Dtype::F64) => F64(vec![*x; len]),
        (ConstExpr::Int(x), Dtype::I32) => I32(vec![i32::try_from(*x).unwrap(); len]),
        (ConstExpr::Int(x), Dtype::U32) => U32(vec![u32::try_from(*x).unwrap(); len]),
        (ConstExpr::Int(x), Dtype::I64) => I64(vec![i64::try_from(*x).unwrap(); len]),
        (ConstExpr::Int(x), Dtype::U64) => U64(vec![u64::try_from(*x).unwrap(); len]),
        (ConstExpr::Int(x), Dtype::U16) => Half(vec![u16::try_from(*x).unwrap(); len]),
        other => panic!("constant {other:?}"),
    }
}

fn unary(op: UnaryOp, x: &Column, device: Device) -> Column {
    macro_rules! float {
        ($x:expr, $wrap:expr) => {
            $wrap(match op {
                UnaryOp::Neg => map($x, |x| -x),
                UnaryOp::Abs => map($x, |x| x.abs()),
                UnaryOp::Sqrt => map($x, |x| x.sqrt()),
                UnaryOp::Floor => map($x, |x| x.floor()),
                UnaryOp::Ceil => map($x, |x| x.ceil()),
                UnaryOp::Rint => map($x, |x| x.round_ties_even()),
                UnaryOp::Trunc => map($x, |x| x.trunc()),
                op => panic!("`{}` is not a primitive", op.name()),
            })
        };
    }
    if let (UnaryOp::Not, Column::Bool(x)) = (op, x) {
        return Column::Bool(map(x, |x| !x));
    }
    let approximate = |x: &[f32], f: fn(f64) -> f64, ulps: f64| F32(map(x, |x| perturbed(x, f, ulps, device)));
    match (op, x) {
        (UnaryOp::ExpApprox2, F32(x)) => approximate(x, f64::exp2, 2.0),
        (UnaryOp::ExpApproxFtz2, F32(x)) => approximate(x, |x| if x < -126.0 { 0.0 } else { x.exp2() }, 2.0),
        (UnaryOp::LogApprox2, F32(x)) => F32(map(x, |x| approximate_log2(x, device))),
        (UnaryOp::RecipApprox, F32(x)) => approximate(x, f64::recip, 1.0),
        (UnaryOp::SqrtApprox, F32(x)) => approximate(x, f64::sqrt, 1.0),
        (UnaryOp::RsqrtApprox, F32(x)) => approximate(x, |x| 1.0 / x.sqrt(), 2.0),
        (_, F32(x)) => float!(x, F32),
        (_, F64(x)) => float!(x, F64),
        other => panic!("unary {other:?}"),
    }
}

/// `f(x)` with an error of at most `ulps`, the half ulp of its own rounding counted in.
fn perturbed(x: f32, f: fn(f64) -> f64, ulps: f64, device: Device) -> f32 {
    let exact = f(f64::from(x));
    if exact.abs() < 2f64.powi(-200) || !(exact as f32).is_finite() {
        return exact as f32;
    }
    let unit = unit(x, device);
    // Below the normal floats the device keeps its relative error and rounds once more.
    let exponent = ((exact.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let ulp = f64::from_bits(((exponent - 23 + 1023) as u64) << 52);
    let result = (exact + unit * (ulps - 0.5) * ulp) as f32;
    let is_allowed = |result: f32| exponent < -126 || (f64::from(result) - exact).abs() <= ulps * ulp;
    // Across a power of two the last rounding is coarser: then the next float on the way back.
    match (is_allowed(result), f64::from(result) < exact) {
        (true, _) => result,
        (false, true) => result.next_up(),
        (false, false) => result.next_down(),
    }
}

/// Which part of the largest error the device makes at x: from -1 to 1.
fn unit(x: f32, device: Device) -> f64 {
    match device {
        Device::Random(seed) => {
            let mut hash = (u64::from(x.to_bits()) ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hash ^= hash >> 32;
            hash = hash.wrapping_mul(0xd6e8_feb8_6659_fd93);
            (hash >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }
        Device::High => 1.0,
        Device::Low => -1.0,
        Device::Exact => 0.0,
    }
}

fn approximate_log2(x: f32, device: Device) -> f32 {
    let exact = f64::from(x).log2();
    if !exact.is_finite() {
        return exact as f32;
    }
    (exact + unit(x, device) * 2f64.powi(-22) * exact.abs().max(1.0)) as f32
}

fn binary(op: BinaryOp, lhs: &Column, rhs: &Column) -> Column {
    macro_rules! float {
        ($a:expr, $b:expr, $wrap:expr) => {
            $wrap(match op {
                BinaryOp::Add => zip($a, $b, |a, b| a + b),
                BinaryOp::Sub => zip($a, $b, |a, b| a - b),
                BinaryOp::Mul => zip($a, $b, |a, b| a * b),
                BinaryOp::Div => zip($a, $b, |a, b| a / b),
                BinaryOp::Rem => zip($a, $b, |a, b| a % b),
                BinaryOp::Min => zip($a, $b, |a, b| a.min(b)),
                BinaryOp::Max => zip($a, $b, |a, b| a.max(b)),
                BinaryOp::CopySign => zip($a, $b, |a, b| a.copysign(b)),
                op => panic!("`{}` of floats is not a primitive", op.name()),
            })
        };
    }
    macro_rules! int {
        ($a:expr, $b:expr, $wrap:expr, $int:ty, $wide:ty) => {
            $wrap(match op {
                BinaryOp::Add => zip($a, $b, |a, b| a.wrapping_add(b)),
                BinaryOp::Sub => zip($a, $b, |a, b| a.wrapping_sub(b)),
                BinaryOp::Mul => zip($a, $b, |a, b| a.wrapping_mul(b)),
                BinaryOp::And => zip($a, $b, |a, b| a & b),
                BinaryOp::Or => zip($a, $b, |a, b| a | b),
                BinaryOp::Xor => zip($a, $b, |a, b| a ^ b),
                BinaryOp::Shl => zip($a, $b, |a, b| if (b as u64) < u64::from(<$int>::BITS) { a << b } else { 0 }),
                BinaryOp::Shr => {
                    zip(
                        $a,
                        $b,
                        |a, b| if (b as u64) < u64::from(<$int>::BITS) { a >> b } else { (a >> (<$int>::BITS / 2)) >> (<$int>::BITS / 2) },
                    )
                }
                BinaryOp::MulHigh => zip($a, $b, |a, b| ((<$wide>::from(a) * <$wide>::from(b)) >> <$int>::BITS) as $int),
                BinaryOp::Min => zip($a, $b, |a, b| a.min(b)),
                BinaryOp::Max => zip($a, $b, |a, b| a.max(b)),
                op => panic!("`{}` of integers is not used in formulas", op.name()),
            })
        };
    }
    if let (Column::Bool(a), Column::Bool(b)) = (lhs, rhs) {
        return Column::Bool(match op {
            BinaryOp::And => zip(a, b, |a, b| a & b),
            BinaryOp::Or => zip(a, b, |a, b| a | b),
            BinaryOp::Xor => zip(a, b, |a, b| a ^ b),
            op => panic!("`{}` of booleans", op.name()),
        });
    }
    match (lhs, rhs) {
        (F32(a), F32(b)) => float!(a, b, F32),
        (F64(a), F64(b)) => float!(a, b, F64),
        (I32(a), I32(b)) => int!(a, b, I32, i32, i64),
        (U32(a), U32(b)) => int!(a, b, U32, u32, u64),
        (I64(a), I64(b)) => int!(a, b, I64, i64, i128),
        (U64(a), U64(b)) => int!(a, b, U64, u64, u128),
        (Half(a), Half(b)) => int!(a, b, Half, u16, u32),
        other => panic!("binary {other:?}"),
    }
}

fn compare(op: CompareOp, lhs: &Column, rhs: &Column) -> Column {
    macro_rules! ordered {
        ($a:expr, $b:expr) => {
            match op {
                CompareOp::Eq => zip($a, $b, |a, b| a == b),
                CompareOp::Ne => zip($a, $b, |a, b| a != b),
                CompareOp::Lt => zip($a, $b, |a, b| a < b),
                CompareOp::Le => zip($a, $b, |a, b| a <= b),
                CompareOp::Gt => zip($a, $b, |a, b| a > b),
                CompareOp::Ge => zip($a, $b, |a, b| a >= b),
            }
        };
    }
    Column::Bool(match (lhs, rhs) {
        (Column::Bool(a), Column::Bool(b)) => ordered!(a, b),
        (F32(a), F32(b)) => ordered!(a, b),
        (F64(a), F64(b)) => ordered!(a, b),
        (I32(a), I32(b)) => ordered!(a, b),
        (U32(a), U32(b)) => ordered!(a, b),
        (I64(a), I64(b)) => ordered!(a, b),
        (U64(a), U64(b)) => ordered!(a, b),
        other => panic!("compare {other:?}"),
    })
}

fn select(cond: &Column, on_true: &Column, on_false: &Column) -> Column {
    let Column::Bool(cond) = cond else { panic!("a condition that is not bool") };
    fn pick<T: Copy>(cond: &[bool], a: &[T], b: &[T]) -> Vec<T> {
        cond.iter().zip(a.iter().zip(b)).map(|(cond, (a, b))| if *cond { *a } else { *b }).collect()
    }
    match (on_true, on_false) {
        (F32(a), F32(b)) => F32(pick(cond, a, b)),
        (F64(a), F64(b)) => F64(pick(cond, a, b)),
        (Column::Bool(a), Column::Bool(b)) => Column::Bool(pick(cond, a, b)),
        (I32(a), I32(b)) => I32(pick(cond, a, b)),
        (U32(a), U32(b)) => U32(pick(cond, a, b)),
        (I64(a), I64(b)) => I64(pick(cond, a, b)),
        (U64(a), U64(b)) => U64(pick(cond, a, b)),
        other => panic!("select {other:?}"),
    }
}

fn cast(x: &Column, from: Dtype, to: Dtype) -> Column {
    use half::{bf16, f16};
    match (x, from, to) {
        (Half(x), Dtype::F16, Dtype::F32) => F32(map(x, |x| f16::from_bits(x).to_f32())),
        (Half(x), Dtype::Bf16, Dtype::F32) => F32(map(x, |x| bf16::from_bits(x).to_f32())),
        (F32(x), _, Dtype::F16) => Half(map(x, |x| f16::from_f32(x).to_bits())),
        (F32(x), _, Dtype::Bf16) => Half(map(x, |x| bf16::from_f32(x).to_bits())),
        (F32(x), _, Dtype::F64) => F64(map(x, f64::from)),
        (F64(x), _, Dtype::F32) => F32(map(x, |x| x as f32)),
        (Column::Bool(x), _, Dtype::F32) => F32(map(x, |x| f32::from(u8::from(x)))),
        (I32(x), _, Dtype::F32) => F32(map(x, |x| x as f32)),
        (I32(x), _, Dtype::F64) => F64(map(x, f64::from)),
        (U64(x), _, Dtype::U32) => U32(map(x, |x| x as u32)),
        (U32(x), _, Dtype::U64) => U64(map(x, u64::from)),
        (F32(x), _, Dtype::I32) => I32(map(x, |x| x as i32)),
        (I32(x), _, Dtype::I64) => I64(map(x, i64::from)),
        (I64(x), _, Dtype::F64) => F64(map(x, |x| x as f64)),
        (I64(x), _, Dtype::I32) => I32(map(x, |x| x as i32)),
        (U64(x), _, Dtype::F64) => F64(map(x, |x| x as f64)),
        (F64(x), _, Dtype::I64) => I64(map(x, |x| x as i64)),
        (F64(x), _, Dtype::I32) => I32(map(x, |x| x as i32)),
        other => panic!("cast {other:?}"),
    }
}

fn bitcast(x: &Column, to: Dtype) -> Column {
    match (x, to) {
        (F32(x), Dtype::U32) => U32(map(x, f32::to_bits)),
        (F32(x), Dtype::I32) => I32(map(x, |x| x.to_bits() as i32)),
        (I32(x), Dtype::F32) => F32(map(x, |x| f32::from_bits(x as u32))),
        (U32(x), Dtype::F32) => F32(map(x, f32::from_bits)),
        (I32(x), Dtype::U32) => U32(map(x, |x| x as u32)),
        (U32(x), Dtype::I32) => I32(map(x, |x| x as i32)),
        (F64(x), Dtype::U64) => U64(map(x, f64::to_bits)),
        (U64(x), Dtype::F64) => F64(map(x, f64::from_bits)),
        (F64(x), Dtype::I64) => I64(map(x, |x| x.to_bits() as i64)),
        (I64(x), Dtype::F64) => F64(map(x, |x| f64::from_bits(x as u64))),
        (I64(x), Dtype::U64) => U64(map(x, |x| x as u64)),
        (U64(x), Dtype::I64) => I64(map(x, |x| x as i64)),
        (Half(x), Dtype::U16 | Dtype::F16 | Dtype::Bf16) => Half(x.clone()),
        other => panic!("bitcast {other:?}"),
    }
}
