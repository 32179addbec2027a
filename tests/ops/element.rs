//! Elements as bits: inputs that reach the corners, and launches for any pair of types.

use galatea::prelude::*;
use galatea::{__private as private, Dtype};
use kernel_lang::scalar::Scalar;

/// An element and its bits.
pub(crate) trait Bits: private::Element {
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! bits {
    ($($ty:ty: $from:expr, $to:expr;)*) => {$(
        impl Bits for $ty {
            fn from_bits(bits: u64) -> $ty {
                ($from)(bits)
            }
            fn bits(self) -> u64 {
                ($to)(self)
            }
        }
    )*};
}

bits! {
    bool: |bits| bits & 1 != 0, u64::from;
    i8: |bits| bits as i8, |x: i8| u64::from(x as u8);
    i16: |bits| bits as i16, |x: i16| u64::from(x as u16);
    i32: |bits| bits as i32, |x: i32| u64::from(x as u32);
    i64: |bits| bits as i64, |x: i64| x as u64;
    u8: |bits| bits as u8, u64::from;
    u16: |bits| bits as u16, u64::from;
    u32: |bits| bits as u32, u64::from;
    u64: |bits| bits, |x: u64| x;
    f16: |bits| f16::from_bits(bits as u16), |x: f16| x.to_bits().into();
    bf16: |bits| bf16::from_bits(bits as u16), |x: bf16| x.to_bits().into();
    f32: |bits| f32::from_bits(bits as u32), |x: f32| x.to_bits().into();
    f64: f64::from_bits, f64::to_bits;
    f8e4m3: |bits| f8e4m3::from_bits(bits as u8), |x: f8e4m3| x.to_bits().into();
    f8e5m2: |bits| f8e5m2::from_bits(bits as u8), |x: f8e5m2| x.to_bits().into();
}

/// Calls a generic function for a type known by its dtype.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $call:expr) => {
        match $dtype {
            Dtype::Bool => {
                type $T = bool;
                $call
            }
            Dtype::I8 => {
                type $T = i8;
                $call
            }
            Dtype::I16 => {
                type $T = i16;
                $call
            }
            Dtype::I32 => {
                type $T = i32;
                $call
            }
            Dtype::I64 => {
                type $T = i64;
                $call
            }
            Dtype::U8 => {
                type $T = u8;
                $call
            }
            Dtype::U16 => {
                type $T = u16;
                $call
            }
            Dtype::U32 => {
                type $T = u32;
                $call
            }
            Dtype::U64 => {
                type $T = u64;
                $call
            }
            Dtype::F16 => {
                type $T = f16;
                $call
            }
            Dtype::Bf16 => {
                type $T = bf16;
                $call
            }
            Dtype::F32 => {
                type $T = f32;
                $call
            }
            Dtype::F64 => {
                type $T = f64;
                $call
            }
            Dtype::F8E4M3 => {
                type $T = f8e4m3;
                $call
            }
            Dtype::F8E5M2 => {
                type $T = f8e5m2;
                $call
            }
        }
    };
}

/// Runs a kernel of three inputs and one output, all as bits. The output starts poisoned.
pub(crate) fn run(device: &Device, text: &str, from: Dtype, to: Dtype, operands: &[Vec<u64>; 3]) -> galatea::Result<Vec<u64>> {
    with_type!(from, T => with_type!(to, U => typed::<T, U>(device, text, operands)))
}

fn typed<T: Bits, U: Bits>(device: &Device, text: &str, operands: &[Vec<u64>; 3]) -> galatea::Result<Vec<u64>> {
    let operands = operands.each_ref().map(|operand| operand.iter().map(|bits| T::from_bits(*bits)).collect::<Vec<T>>());
    let len = operands[0].len();
    let mut out = device.full(len, U::from_bits(0x5a5a_5a5a_5a5a_5a5b))?;
    crate::launch(device, text, &operands, &mut out)?;
    Ok(out.to_vec()?.into_iter().map(Bits::bits).collect())
}

pub(crate) fn is_nan(scalar: Scalar) -> bool {
    scalar.dtype().is_float() && as_f64(scalar).is_nan()
}

/// The value of a float.
pub(crate) fn as_f64(scalar: Scalar) -> f64 {
    match scalar.to_const() {
        kernel_lang::ir::ConstExpr::Float(value) => value,
        other => panic!("`{other}` is no float"),
    }
}

/// Three columns of inputs: corners of the type in all pairs, then random ones of every magnitude; a length that is no multiple of
/// anything. The same for the same name.
pub(crate) fn inputs(dtype: Dtype, name: &str) -> [Vec<u64>; 3] {
    let corners = corners(dtype);
    let mut state = name.bytes().fold(0x51_7c_c1_b7_27_22_0a_95u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let mut columns = [Vec::new(), Vec::new(), Vec::new()];
    for a in &corners {
        for b in &corners {
            let c = corners[random() as usize % corners.len()];
            columns.iter_mut().zip([*a, *b, c]).for_each(|(column, value)| column.push(value));
        }
    }
    for _ in 0..5000 {
        columns.iter_mut().for_each(|column| column.push(typical(dtype, random())));
    }
    let odd = columns[0].len() | 1;
    columns.iter_mut().for_each(|column| column.resize(odd, 0));
    columns
}

/// Half the time any bits at all, half the time a number of moderate size.
fn typical(dtype: Dtype, random: u64) -> u64 {
    let bits = random >> (64 - dtype.bits());
    if random & 1 == 0 {
        return bits;
    }
    let value = (random >> 20) as f64 / 2f64.powi(44) * 40.0 - 20.0;
    match dtype {
        Dtype::F16 => f16::from_f64(value).to_bits().into(),
        Dtype::Bf16 => bf16::from_f64(value).to_bits().into(),
        Dtype::F32 => (value as f32).to_bits().into(),
        Dtype::F64 => value.to_bits(),
        Dtype::F8E4M3 => f8e4m3::from_f32(value as f32).to_bits().into(),
        Dtype::F8E5M2 => f8e5m2::from_f32(value as f32).to_bits().into(),
        _ => (value as i64 as u64) & (u64::MAX >> (64 - dtype.bits())),
    }
}

fn corners(dtype: Dtype) -> Vec<u64> {
    let width = u64::MAX >> (64 - dtype.bits());
    if dtype.is_float8() {
        return (0..=width).collect();
    }
    if dtype.is_float() {
        let values = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            -0.5,
            1.5,
            -1.5,
            2.5,
            3.0,
            -3.0,
            1e-3,
            65504.0,
            -65504.0,
            1e9,
            127.5,
            128.0,
            -129.0,
            255.5,
            32767.5,
            2147483648.0,
            -2147483904.0,
            9.3e18,
            1.9e19,
            -88.0,
            -104.0,
            88.5,
            1e-30,
            1e-42,
            -1e-42,
            3.4e38,
            0.1,
            1.5707964,
            std::f64::consts::PI,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        let narrow = |value: f64| match dtype {
            Dtype::F16 => f16::from_f64(value).to_bits().into(),
            Dtype::Bf16 => bf16::from_f64(value).to_bits().into(),
            Dtype::F32 => (value as f32).to_bits().into(),
            _ => value.to_bits(),
        };
        return values.map(narrow).to_vec();
    }
    let small: Vec<u64> = (0..5).chain([7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 200, 255]).collect();
    let mut corners: Vec<u64> = small.iter().flat_map(|value| [*value & width, value.wrapping_neg() & width]).collect();
    corners.extend([width, width >> 1, (width >> 1) + 1, (width >> 1).wrapping_sub(1), width - 1, 0x5555_5555_5555_5555 & width]);
    corners.sort_unstable();
    corners.dedup();
    corners
}
