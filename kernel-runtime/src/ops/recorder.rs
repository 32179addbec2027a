//! The interface between tensors and launches, and the recording that they belong to.
//!
//! A program does three things: it allocates tensors, takes parts of them, and launches kernels. A [`Recorder`] is told of each instead of its effect.

use std::panic::Location;
use std::sync::Arc;

use kernel_lang::dtype::Dtype;

use super::{ExternCall, OpDef, OpValue, Tensor};
use crate::kernel::Kernel;
use crate::launch::scalar::IntegerType;
pub use crate::tune::recorded::{RecordedConfig, RecordedTuning};
use crate::{Dim, DimValues, Site, Stream};

/// The number of a tensor's value in a recording. A launch that writes a tensor gives it a new value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value(pub u32);

/// The dtype and the extents of a recorded tensor.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorType {
    /// The dtype of the elements.
    pub dtype: Dtype,
    /// The extents.
    pub dims: Vec<Dim>,
}

/// The recording of a program.
pub trait Recorder: Send + Sync {
    /// Records new memory: zeros, or arbitrary elements.
    ///
    /// # Errors
    /// If the recording has ended.
    fn alloc(&self, ty: TensorType, zeroed: bool, location: &'static Location<'static>) -> crate::Result<Value>;

    /// Records a part of a value: the elements of `ty` from number `offset` on.
    ///
    /// # Errors
    /// If the recording has ended.
    fn view(&self, of: Value, offset: Dim, ty: TensorType, location: &'static Location<'static>) -> crate::Result<Value>;

    /// The value of a tensor with elements, which are the same in each run.
    ///
    /// # Errors
    /// If the recording has ended.
    fn constant(&self, tensor: Tensor, location: &'static Location<'static>) -> crate::Result<Value>;

    /// Notes that a call of an op begins: all that is recorded until its end belongs to it. Returns the number of the call.
    fn begin_op(&self, def: &'static OpDef, args: Vec<(&'static str, OpValue)>) -> usize;

    /// Whether the recording is for the CPU, so that ops with a function of their own for it call that one. Asked only by such ops.
    fn is_for_cpu(&self) -> bool;

    /// Notes that a call does that many floating-point operations, whatever its launches do.
    fn op_flops(&self, call: usize, count: Dim);

    /// Notes the end of a call, and the values that it returned or wrote.
    fn end_op(&self, call: usize, results: Vec<Value>);

    /// Records a launch. Returns the new value of each tensor that it writes, in the order of the arguments.
    ///
    /// # Errors
    /// If the recording has ended.
    fn launch(&self, launch: RecordedLaunch) -> crate::Result<Vec<Value>>;

    /// Records a call of an opaque op, which returns tensors of these types. Returns the values of these, and then the new value of each tensor that the op
    /// writes, in the order of the arguments.
    ///
    /// # Errors
    /// If the recording has ended.
    fn extern_call(&self, call: ExternCall, results: Vec<TensorType>, location: &'static Location<'static>) -> crate::Result<Vec<Value>>;
}

/// A launch without memory and without values of dims. A [`Launch`](crate::Launch) of recorded tensors makes it, and nothing changes it: the key, the
/// parameters and the dtypes belong together.
#[derive(Clone)]
pub struct RecordedLaunch {
    pub(crate) kernel: &'static Kernel,
    pub(crate) key: Vec<u64>,
    pub(crate) args: Vec<RecordedArg>,
    pub(crate) grid: [Dim; 3],
    /// The configurations, if the kernel has some. `key` and `grid` are those of the first one.
    pub(crate) tuning: Option<Arc<RecordedTuning>>,
    /// Whether a run reports the first access outside a tensor.
    pub(crate) is_checked: bool,
    pub(crate) location: Site,
}

/// An argument of a recorded launch.
#[derive(Clone, Debug)]
pub enum RecordedArg {
    /// A tensor.
    Tensor {
        /// Its value before the launch.
        value: Value,
        /// The dtype of its elements.
        dtype: Dtype,
        /// Whether the kernel may write it.
        writes: bool,
    },
    /// A scalar.
    Word {
        /// The argument word.
        word: u64,
        /// The value as text.
        text: String,
    },
    /// An integer that depends on dims.
    Dim {
        /// The expression.
        dim: Dim,
        /// The type of the parameter.
        ty: IntegerType,
    },
}

/// An argument with memory.
pub enum BoundArg<'a> {
    /// A tensor to read.
    Tensor(&'a Tensor),
    /// A tensor to write.
    TensorMut(&'a mut Tensor),
    /// The value of an integer that depends on dims.
    Dim(i64),
    /// A scalar that is the same in each run.
    Recorded,
}

/// What one run gives a recorded launch.
pub struct Binding<'r, 'a> {
    /// An argument for each parameter of the kernel, in their order.
    pub arguments: &'r mut dyn Iterator<Item = BoundArg<'a>>,
    /// The values of the dims in the grid.
    pub dims: &'r DimValues,
    /// The stream on which the launch runs, ordered with all other uses of its tensors.
    pub stream: &'a Stream,
}

impl RecordedArg {
    /// The value of a tensor that the launch writes.
    pub fn written(&self) -> Option<Value> {
        match self {
            RecordedArg::Tensor { value, writes: true, .. } => Some(*value),
            _ => None,
        }
    }
}

impl RecordedLaunch {
    /// The name of the kernel.
    pub fn kernel(&self) -> &'static str {
        self.kernel.name()
    }

    /// The names of the kernel's parameters with their arguments.
    pub fn args(&self) -> impl Iterator<Item = (&'static str, &RecordedArg)> {
        self.kernel.params().iter().map(|param| param.name).zip(&self.args)
    }

    /// The number of programs along each axis. For a kernel with configurations, it is that of the first one.
    pub fn grid(&self) -> &[Dim; 3] {
        &self.grid
    }

    /// The configurations of a kernel with `#[autotune]` or heuristics, of which each run takes one.
    pub fn tuning(&self) -> Option<&RecordedTuning> {
        self.tuning.as_deref()
    }

    /// The grids of all configurations, or the only grid.
    pub fn grids(&self) -> impl Iterator<Item = &[Dim; 3]> {
        let configs = self.tuning().map_or(&[][..], RecordedTuning::configs);
        let own = configs.is_empty().then_some(&self.grid);
        configs.iter().map(|config| &config.grid).chain(own)
    }

    /// The caller of `launch`.
    pub fn location(&self) -> &Site {
        &self.location
    }

    /// The types and constants of the kernel, such as `T = f32, BLOCK = 1024`.
    pub fn parameters(&self) -> String {
        self.kernel.parameters(&self.key)
    }

    /// Makes each run a [`checked`](crate::Launch::checked) launch.
    pub fn set_checked(&mut self) {
        self.is_checked = true;
    }

    /// Launches with these arguments, as the recorded launch would have run with them.
    ///
    /// # Errors
    /// [`Error::ArgumentCount`](crate::Error::ArgumentCount) for arguments of another number or kind, [`Error::Dim`](crate::Error::Dim) for dims without
    /// values, and those of a launch.
    pub fn run(&self, binding: Binding<'_, '_>) -> crate::Result<()> {
        crate::launch::recording::run(self, binding)
    }
}

impl std::fmt::Debug for RecordedLaunch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RecordedLaunch { kernel, key, args, grid, tuning, is_checked, location } = self;
        f.debug_struct("RecordedLaunch")
            .field("kernel", &kernel.name())
            .field("key", key)
            .field("args", args)
            .field("grid", grid)
            .field("tuning", tuning)
            .field("is_checked", is_checked)
            .field("location", location)
            .finish()
    }
}
