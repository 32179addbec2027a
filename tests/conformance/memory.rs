//! Tensors whose element type is known at run time, each a slice of a larger one that is full of noise.

use galatea::prelude::*;
use galatea::{__private as private, Dtype, TensorViewMut};

use crate::array::Array;
use crate::lab::Lab;

/// Elements on each side of a slice: more than the widest access.
const MARGIN: usize = 64;

/// A tensor on a device.
pub(crate) struct Held {
    tensor: Typed,
    noise: Vec<u64>,
    start: usize,
    len: usize,
}

macro_rules! typed {
    ($($name:ident: $ty:ty, $from:expr, $to:expr;)*) => {
        enum Typed {
            $($name(Tensor<$ty>),)*
        }

        /// The elements that a kernel is given.
        pub(crate) enum Slice<'a> {
            $($name(TensorViewMut<'a, $ty>),)*
        }

        impl Typed {
            fn new(device: Device, dtype: Dtype, bits: &[u64]) -> Result<Typed, String> {
                match dtype {
                    $(Dtype::$name => {
                        let elements: Vec<$ty> = bits.iter().copied().map($from).collect();
                        device.tensor(&elements).map(Typed::$name).map_err(|error| error.to_string())
                    })*
                }
            }

            fn bits(&self) -> galatea::Result<Vec<u64>> {
                match self {
                    $(Typed::$name(tensor) => Ok(tensor.to_vec()?.into_iter().map($to).collect()),)*
                }
            }

            fn slice(&mut self, range: std::ops::Range<usize>) -> galatea::Result<Slice<'_>> {
                match self {
                    $(Typed::$name(tensor) => tensor.slice_mut(range).map(Slice::$name),)*
                }
            }
        }

        impl Slice<'_> {
            fn address(&mut self) -> u64 {
                match self {
                    $(Slice::$name(slice) => slice.address(),)*
                }
            }

            /// As an argument that is read.
            pub(crate) fn read_by<'a, const WORDS: usize>(&'a self, words: &mut private::Args<'a, WORDS>, name: &'static str) {
                match self {
                    $(Slice::$name(slice) => words.pointer::<$ty>(name, slice),)*
                }
            }

            /// As an argument that is written.
            pub(crate) fn written_by<'a, const WORDS: usize>(&'a mut self, words: &mut private::Args<'a, WORDS>, name: &'static str) {
                match self {
                    $(Slice::$name(slice) => words.pointer_mut::<$ty>(name, slice),)*
                }
            }
        }
    };
}

typed! {
    Bool: bool, |bits| bits & 1 != 0, u64::from;
    I8: i8, |bits| bits as i8, |x: i8| u64::from(x as u8);
    I16: i16, |bits| bits as i16, |x: i16| u64::from(x as u16);
    I32: i32, |bits| bits as i32, |x: i32| u64::from(x as u32);
    I64: i64, |bits| bits as i64, |x: i64| x as u64;
    U8: u8, |bits| bits as u8, u64::from;
    U16: u16, |bits| bits as u16, u64::from;
    U32: u32, |bits| bits as u32, u64::from;
    U64: u64, |bits| bits, |x: u64| x;
    F16: f16, |bits| f16::from_bits(bits as u16), |x: f16| x.to_bits().into();
    Bf16: bf16, |bits| bf16::from_bits(bits as u16), |x: bf16| x.to_bits().into();
    F32: f32, |bits| f32::from_bits(bits as u32), |x: f32| x.to_bits().into();
    F64: f64, f64::from_bits, f64::to_bits;
    F8E4M3: f8e4m3, |bits| f8e4m3::from_bits(bits as u8), |x: f8e4m3| x.to_bits().into();
    F8E5M2: f8e5m2, |bits| f8e5m2::from_bits(bits as u8), |x: f8e5m2| x.to_bits().into();
}

impl Held {
    /// A copy of the elements among noise, `shift` elements behind an aligned address. The last one may be the last of the memory, so that the
    /// simulator and the sanitizer notice a load behind it.
    pub(crate) fn new(lab: &mut Lab, array: &Array, shift: usize, ends_the_memory: bool) -> Result<Held, String> {
        let (start, len) = (MARGIN + shift, array.len());
        let mut noise = lab.any(array.dtype, start + len + if ends_the_memory { 0 } else { MARGIN }).bits;
        noise[start..start + len].copy_from_slice(&array.bits);
        Ok(Held { tensor: Typed::new(lab.device(), array.dtype, &noise)?, noise, start, len })
    }

    pub(crate) fn slice(&mut self) -> galatea::Result<Slice<'_>> {
        self.tensor.slice(self.start..self.start + self.len)
    }

    /// Where the first element is.
    pub(crate) fn address(&mut self) -> galatea::Result<u64> {
        Ok(self.slice()?.address())
    }

    /// The elements, if everything around them is untouched.
    pub(crate) fn read(&self) -> Result<Vec<u64>, String> {
        let all = self.tensor.bits().map_err(|error| error.to_string())?;
        let (start, end) = (self.start, self.start + self.len);
        match (0..start).chain(end..all.len()).find(|&index| all[index] != self.noise[index]) {
            Some(index) => Err(format!("element {} outside of {} was written", index as i64 - start as i64, self.len)),
            None => Ok(all[start..end].to_vec()),
        }
    }
}
