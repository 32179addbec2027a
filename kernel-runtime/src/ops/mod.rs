//! Tensors as values: shared handles whose dtype is known when the program runs, and that a recording can hold.
//!
//! A [`Tensor`](crate::Tensor) of the runtime has a static element type and one owner, which suits launches. Models need more: a parameter is used
//! several times, a batch is kept while a later one is computed, and a checkpoint decides the dtype. [`ops::Tensor`](Tensor) is for that.

// A macro is in scope only after its definition, so it precedes the modules.
/// Evaluates an expression with the Rust type of a dtype.
macro_rules! with_element {
    ($dtype:expr, $T:ident => $value:expr) => {
        with_element!(@match $dtype, $T => $value,
            Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 f16, Bf16 bf16, F32 f32, F64 f64, F8E4M3 f8e4m3, F8E5M2 f8e5m2)
    };
    (@match $dtype:expr, $T:ident => $value:expr, $($name:ident $ty:ty),*) => {
        match $dtype {
            $(Dtype::$name => {
                type $T = $ty;
                $value
            })*
        }
    };
}
pub(crate) use with_element;

mod any;
mod arguments;
mod autograd;
mod checks;
mod copies;
mod cost;
mod dims;
mod error;
mod extern_call;
mod gradcheck;
mod input;
mod intercept;
mod module;
mod op;
mod opaque;
pub mod parts;
pub mod recorder;
mod schema;
mod tensor;
mod variant;

pub use any::Any;
pub use autograd::{GradKernels, Grads, IntoGrad, OpGrads, Tape, no_grad};
pub use copies::{copies, deny_copies};
pub(crate) use cost::number;
pub use cost::{CostModel, LaunchCost};
pub use dims::IntoDims;
pub use error::OpsError;
pub use extern_call::{ExternArg, ExternCall, MissingOp};
pub use gradcheck::{GradCheck, GradTolerance, gradcheck};
pub use input::{OpEntry, OpFunction, OpInput, OpInputs, OpParam, all, get};
pub use intercept::{Intercepted, Interceptor, intercept};
#[doc(hidden)]
pub use intercept::{intercepted, is_intercepted};
pub use module::{Module, TensorOptions, path_of};
pub use op::{OpArg, OpCall, OpDef, OpResults, OpValue, Saved};
#[doc(hidden)]
pub use op::{into_error, is_on_cpu, named, own_error, tape};
#[doc(hidden)]
pub use opaque::refuse_gradients;
pub(crate) use tensor::{Real, Traced};
pub use tensor::{Tensor, compare};
pub use variant::LaunchVariant;
