//! The names that most programs need: `use kernel_runtime::prelude::*`.

pub use crate::{
    Device, Element, Error, Event, Float, Int, Number, Replay, Result, Stream, Target, Tensor, TensorView, TensorViewMut, bf16, cdiv,
    f8e4m3, f8e5m2, f16,
};
