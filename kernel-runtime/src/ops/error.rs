//! Errors of tensors of ops.

use std::panic::Location;

use kernel_lang::dtype::Dtype;

use crate::{Dim, Site};

/// A mistake in the use of a tensor of [`ops`](crate::ops).
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpsError {
    /// Elements were to be used as those of another type.
    #[error("the elements are `{found}`, not `{expected}`\nhelp: name the dtype of the tensor, or convert its elements")]
    WrongDtype {
        /// The type that was named.
        expected: Dtype,
        /// The dtype of the elements.
        found: Dtype,
    },
    /// A launch was given a tensor of another dtype than that of its parameter.
    #[error("kernel `{kernel}`: argument `{argument}` has elements of type `{found}`, and the launch expects `{expected}`")]
    ArgumentDtype {
        /// The kernel.
        kernel: &'static str,
        /// The parameter.
        argument: &'static str,
        /// The type of the parameter.
        expected: Dtype,
        /// The dtype of the argument.
        found: Dtype,
    },
    /// Two tensors of one type parameter, for which the launch names [`Any`](super::Any), have two dtypes.
    #[error(
        "kernel `{kernel}`: arguments `{}` and `{}` are both of type `{parameter}`, and have elements of types `{}` and `{}`\nhelp: convert the elements of one of them",
        .first.0, .second.0, .first.1, .second.1
    )]
    MixedDtypes {
        /// The kernel.
        kernel: &'static str,
        /// The type parameter.
        parameter: &'static str,
        /// The first tensor parameter of the type, and the dtype of its argument.
        first: (&'static str, Dtype),
        /// The first one with another dtype, and that dtype.
        second: (&'static str, Dtype),
    },
    /// The dtype of a tensor for which the launch names [`Any`](super::Any) is not one that the type parameter allows.
    #[error(
        "kernel `{kernel}`: argument `{argument}` has elements of type `{found}`, and `{parameter}` allows {}\nhelp: convert the elements, or launch another kernel for `{found}`",
        dtypes(.allowed)
    )]
    DtypeNotAllowed {
        /// The kernel.
        kernel: &'static str,
        /// The type parameter.
        parameter: &'static str,
        /// The first tensor parameter of the type.
        argument: &'static str,
        /// The dtype of the argument.
        found: Dtype,
        /// The dtypes that the bound of the type parameter allows.
        allowed: &'static [Dtype],
    },
    /// The dtype of the tensors cannot represent a scalar of the same type parameter, for which the launch names [`Any`](super::Any).
    #[error(
        "kernel `{kernel}`: argument `{argument}` is {number}, which `{dtype}` cannot represent\nhelp: `{argument}` has the dtype of `{tensor}`: convert the elements of `{tensor}`, or pass another number"
    )]
    ScalarNotOfDtype {
        /// The kernel.
        kernel: &'static str,
        /// The scalar parameter.
        argument: &'static str,
        /// The number as text.
        number: String,
        /// The dtype of the tensors.
        dtype: Dtype,
        /// The first tensor parameter of the same type.
        tensor: &'static str,
    },
    /// A launch takes a tensor through which gradients flow, and it has no gradient itself.
    #[error(
        "{}kernel `{kernel}` has no gradient, which `{argument}` needs\nhelp: {}; `detach()` the tensor, or call it in `no_grad`, if no gradient is wanted",
        .op.map(|(op, input)| format!("`{op}` has no backward function, which its input `{input}` needs: ")).unwrap_or_default(),
        .op.map_or_else(
            || "call the kernel in an op: `#[op(\"ns::name\", backward(..) = f)]`".to_owned(),
            |(op, _)| format!("give the op one: `#[op(\"{op}\", backward(..) = f)]`")
        )
    )]
    NoBackward {
        /// The kernel.
        kernel: &'static str,
        /// The argument of the launch.
        argument: &'static str,
        /// The op that launches the kernel, and its input.
        op: Option<(&'static str, &'static str)>,
    },
    /// The elements of a tensor through which gradients flow were to be written from the host.
    #[error("a write of these elements has no gradient ({location})\nhelp: write them in `no_grad`, or write a `detach()`ed tensor")]
    GradientLost {
        /// Where.
        location: &'static Location<'static>,
    },
    /// An opaque op takes a tensor through which gradients flow, and has no backward function.
    #[error(
        "`{op}` has no backward function, which its input `{input}` needs\nhelp: give the op one: `#[op(\"{op}\", backward(..) = f, ..)]`; `detach()` the tensor, or call it in `no_grad`, if no gradient is wanted"
    )]
    OpaqueGradient {
        /// The op.
        op: &'static str,
        /// The argument.
        input: &'static str,
    },
    /// A gradient was asked for where none flows.
    #[error("no gradient flows to this tensor: it was computed from no tensor with `requires_grad()`, or in `no_grad`")]
    NoGradient,
    /// A gradient was asked for a tensor with several elements.
    #[error(
        "{found} is no scalar, whose gradients `backward` computes\nhelp: sum the elements first, or pass their gradients to `backward_from`"
    )]
    NotScalar {
        /// The dtype and the extents.
        found: String,
    },
    /// A model was to have parameters of a dtype that is no float.
    #[error("the parameters of a model cannot become `{dtype}`\nhelp: name a dtype of floats; parameters of other dtypes keep theirs")]
    ModelDtype {
        /// The dtype.
        dtype: Dtype,
    },
    /// A gradient was asked for elements that have none.
    #[error("elements of type `{dtype}` have no gradients")]
    NotDifferentiable {
        /// The dtype.
        dtype: Dtype,
    },
    /// The gradients of a result were computed twice.
    #[error(
        "the gradients of `{op}` were computed before, which freed what they need\nhelp: compute its result again, or add the results and call `backward` once"
    )]
    BackwardTwice {
        /// The op.
        op: &'static str,
    },
    /// A backward function returned too few or too many gradients.
    #[error(
        "wrong number of gradients from the backward function of `{op}`: {expected} expected, one for each tensor of the op, {found} returned"
    )]
    GradientCount {
        /// The op.
        op: &'static str,
        /// The number of tensors that the op takes.
        expected: usize,
        /// The number of gradients.
        found: usize,
    },
    /// A backward function returned a gradient of another dtype or shape than that of its input.
    #[error("the backward function of `{op}` returns {found} for `{input}`, which is {expected}")]
    GradientType {
        /// The op.
        op: &'static str,
        /// The input.
        input: &'static str,
        /// The dtype and the extents of the input.
        expected: String,
        /// Those of the gradient.
        found: String,
    },
    /// A gradient is not what finite differences give.
    #[error("the gradient of element {element} of input {input} is {analytic:?}, and finite differences give {numeric:?}")]
    WrongGradient {
        /// The number of the input.
        input: usize,
        /// The number of the element.
        element: usize,
        /// What the backward functions computed.
        analytic: f64,
        /// What finite differences give.
        numeric: f64,
    },
    /// No input of a comparison with finite differences can be moved.
    #[error("no input has `f64` elements, which finite differences need")]
    NothingToCheck,
    /// No op of the program has the name.
    #[error("there is no op `{name}`{}", .similar.map(|name| format!("\nhelp: there is `{name}`")).unwrap_or_default())]
    UnknownOp {
        /// The name.
        name: String,
        /// A similar name.
        similar: Option<&'static str>,
    },
    /// Two ops of the program have one name.
    #[error("two ops are named `{name}`: in {} line {} and in {} line {}\nhelp: use the name of your project as the namespace", .first.0, .first.1, .second.0, .second.1)]
    DuplicateOp {
        /// The name.
        name: &'static str,
        /// The source file and the line of one of them.
        first: (&'static str, u32),
        /// Those of the other one.
        second: (&'static str, u32),
    },
    /// A call by name has other arguments than the schema.
    #[error("{reason}: the schema is `{schema}`")]
    OpArguments {
        /// What does not fit.
        reason: String,
        /// The schema.
        schema: &'static str,
    },
    /// An op failed with an error of its own type.
    #[error("`{op}`: {message}")]
    OpFailed {
        /// The op.
        op: &'static str,
        /// The error.
        message: String,
    },
    /// A tensor that shares its memory was written where copies are denied.
    #[error(
        "writing a tensor that is shared copies {bytes} bytes, which is denied here ({location})\nhelp: drop the other handles before the tensor is written"
    )]
    CopyDenied {
        /// The number of bytes.
        bytes: usize,
        /// Where the tensor was written.
        location: Site,
    },
    /// The number of elements in a new shape differs from that of the tensor.
    #[error("a tensor of {} cannot have the dims {}", dims(.from), dims(.to))]
    Reshape {
        /// The dims of the tensor.
        from: Vec<Dim>,
        /// The new dims.
        to: Vec<Dim>,
    },
    /// A tensor was to be made of too few or too many bytes.
    #[error("wrong number of bytes for the elements: {expected} expected, {given} given")]
    ByteCount {
        /// The bytes of all elements.
        expected: usize,
        /// The number of bytes that were given.
        given: usize,
    },
    /// An argument of an op has other extents than the op takes.
    #[error("`{op}`: `{argument}` is {found}, and {} is expected", dims(.expected))]
    Dims {
        /// The op.
        op: &'static str,
        /// The argument.
        argument: &'static str,
        /// Its dtype and extents.
        found: String,
        /// The extents that the op takes.
        expected: Vec<Dim>,
    },
    /// An argument of an op has another dtype than the op takes.
    #[error("`{op}`: `{argument}` is {found}, and `{expected}` elements are expected\nhelp: convert its elements")]
    OpDtype {
        /// The op.
        op: &'static str,
        /// The argument.
        argument: &'static str,
        /// Its dtype and extents.
        found: String,
        /// The dtype that the op takes.
        expected: Dtype,
    },
    /// The extents of two arguments of an op are not equal, and none of them is 1.
    #[error(
        "`{op}`: `{}` of {} and `{}` of {} do not broadcast\nhelp: the extents of an axis, counted from the last one, are equal, or one of them is 1: reshape a tensor",
        .first.0, dims(&.first.1), .second.0, dims(&.second.1)
    )]
    Broadcast {
        /// The op.
        op: &'static str,
        /// The first argument and its extents.
        first: (&'static str, Vec<Dim>),
        /// The second argument and its extents.
        second: (&'static str, Vec<Dim>),
    },
    /// A number is none of the dtype of a tensor.
    #[error("{number} is no `{dtype}`\nhelp: round it, or choose another dtype")]
    Number {
        /// The number.
        number: f32,
        /// The dtype.
        dtype: Dtype,
    },
    /// A range exceeds the axis that it slices.
    #[error("range {start}..{end} does not fit an axis of {extent}")]
    DimOutOfRange {
        /// The first index.
        start: Dim,
        /// The index after the last one.
        end: Dim,
        /// The extent of the axis.
        extent: Dim,
    },
    /// The elements of a tensor were asked for while the program is recorded.
    #[error(
        "a recorded tensor {tensor} has no elements to read ({location})\nhelp: compute with kernels; values are known when the recorded graph runs"
    )]
    RecordedData {
        /// The type of the tensor.
        tensor: String,
        /// Where the elements were asked for.
        location: &'static Location<'static>,
    },
    /// A tensor of a recording was used after the recorded function has returned.
    #[error("the recording of this tensor has ended ({location})\nhelp: use recorded tensors only in the function that is recorded")]
    RecordingEnded {
        /// Where the tensor was used.
        location: Site,
    },
    /// The parts of a kernel, or those of a launch, do not belong together.
    #[error("`{name}` is no kernel: {reason}\nhelp: write the package again")]
    NotAKernel {
        /// The name of the kernel.
        name: String,
        /// What does not fit.
        reason: String,
    },
    /// The kernels of untrusted packages take too much memory, which the process does not free.
    #[error(
        "kernel `{kernel}` does not fit: the kernels of untrusted packages would take {needed} bytes in this process, and {limit} are the most\nhelp: run packages of strangers in processes that end"
    )]
    KernelMemory {
        /// The kernel.
        kernel: String,
        /// The bytes of all such kernels, this one included.
        needed: usize,
        /// The most bytes.
        limit: usize,
    },
    /// The parts of a call of an opaque op do not belong together.
    #[error("`{schema}` is not called so: {reason}\nhelp: write the package again")]
    NotACall {
        /// The schema of the op.
        schema: String,
        /// What does not fit.
        reason: String,
    },
    /// A call of an opaque op takes tensors of a recording and cannot be recorded.
    #[error("a call of `{op}` cannot be recorded: {reason}\nhelp: {help}")]
    CallNotRecorded {
        /// The op.
        op: &'static str,
        /// Why not.
        reason: String,
        /// How to mend it.
        help: &'static str,
    },
    /// A function that stands for an op returned another number of tensors than the op does.
    #[error("wrong number of results for an op: {found} returned, and the schema is `{schema}`")]
    ResultCount {
        /// The schema.
        schema: &'static str,
        /// The number of tensors.
        found: usize,
    },
    /// A launch takes tensors of a recording and cannot be recorded.
    #[error("kernel `{kernel}` cannot be recorded: {reason}\nhelp: {help}")]
    NotRecorded {
        /// The kernel.
        kernel: &'static str,
        /// Why not.
        reason: String,
        /// How to mend it.
        help: &'static str,
    },
}

fn dtypes(dtypes: &[Dtype]) -> String {
    let mut names: Vec<String> = dtypes.iter().map(|dtype| format!("`{dtype}`")).collect();
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} and {last}", names.join(", ")),
        last => last.unwrap_or_default(),
    }
}

fn dims(dims: &[Dim]) -> String {
    format!("[{}]", dims.iter().map(Dim::to_string).collect::<Vec<_>>().join(", "))
}
