//! Errors of runs and of packages.

use std::path::PathBuf;

use kernel_runtime::ops::MissingOp;
use kernel_runtime::ops::parts::NotPacked;
use kernel_runtime::ops::recorder::TensorType;
use kernel_runtime::{Device, DimError, Dtype, Site};

/// An error of a run of a session.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A launch failed, or memory could not be allocated.
    #[error(transparent)]
    Runtime(Box<kernel_runtime::Error>),
    /// A run has another number of inputs than the program.
    #[error("wrong number of inputs: {expected} expected ({names}), {given} given")]
    InputCount {
        /// The number of inputs of the program.
        expected: usize,
        /// Their names.
        names: String,
        /// The number of inputs of the run.
        given: usize,
    },
    /// The type of a program's results has another number of tensors than the program returns.
    #[error("wrong number of outputs: the program returns {returned}, and the type of its results has {typed}")]
    OutputCount {
        /// The number of outputs of the program.
        returned: usize,
        /// The number of tensors in the type.
        typed: usize,
    },
    /// An input of a run has another dtype than the program's.
    #[error("input `{input}` has elements of type `{found}`, and the graph takes `{expected}`")]
    InputDtype {
        /// The name of the input.
        input: String,
        /// The dtype in the program.
        expected: Dtype,
        /// The dtype of the tensor.
        found: Dtype,
    },
    /// An input of a run has another number of axes than the program's.
    #[error("input `{input}` has rank {found}, and the graph takes rank {expected}")]
    InputRank {
        /// The name of the input.
        input: String,
        /// The number of axes in the program.
        expected: usize,
        /// The number of axes of the tensor.
        found: usize,
    },
    /// The extent of an input is not allowed.
    #[error("input `{input}`, axis {axis}: {error}")]
    InputExtent {
        /// The name of the input.
        input: String,
        /// The axis.
        axis: usize,
        /// The value of its dim, and the allowed ones.
        error: Box<DimError>,
    },
    /// The extent of an input differs from its expression in the program.
    #[error("input `{input}`, axis {axis}: `{dim}` is {expected}, and the extent is {found}")]
    InputMismatch {
        /// The name of the input.
        input: String,
        /// The axis.
        axis: usize,
        /// The expression in the program.
        dim: String,
        /// Its value for the other extents.
        expected: i64,
        /// The extent of the tensor.
        found: i64,
    },
    /// An input of a run is on another device than the session.
    #[error("input `{input}` is on `{found}`, and the session runs on `{expected}`\nhelp: move it with `.to_device(&device)`")]
    InputDevice {
        /// The name of the input.
        input: String,
        /// The device of the session.
        expected: Device,
        /// The device of the tensor.
        found: Device,
    },
    /// An input of a run belongs to a recording.
    #[error("input `{input}` has no elements: it belongs to a recording\nhelp: run a session outside of recorded functions")]
    RecordedInput {
        /// The name of the input.
        input: String,
    },
    /// A tensor has a name that no constant of the program has.
    #[error("the program has no constant `{name}`\nhelp: its constants are {}", list(known))]
    NoConstant {
        /// The name.
        name: String,
        /// The names of the constants.
        known: Vec<String>,
    },
    /// An op has a function of its own for the CPU, which could not be recorded.
    #[error("the program does not run on the CPU: an op has a function for it (`cpu = ..`) that cannot be recorded: {reason}")]
    NotOnCpu {
        /// Why the function cannot be recorded.
        reason: String,
    },
    /// The program calls opaque ops that this process lacks. They are code of the program that recorded it, which the plan only names.
    #[error(
        "this process lacks {} that the program calls: {}\nhelp: link the crates that define them (`use mylib as _;`), in the versions that recorded the program",
        if ops.len() == 1 { "an opaque op" } else { "opaque ops" },
        .ops.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    MissingOps {
        /// The ops.
        ops: Vec<MissingOp>,
    },
    /// An opaque op returned, or made of a tensor that it writes, something else than its `fake` function declares.
    #[error("`{op}`: {reason}\nhelp: let the `fake` function of the op make results of the types that the op has")]
    OpResult {
        /// The op.
        op: String,
        /// What differs.
        reason: String,
    },
    /// A run of an untrusted package was stopped between two operations.
    #[error("the program was stopped: the time for the run is over\nhelp: raise the time limit if you trust the program to end")]
    TimeLimit,
    /// Gradients flow through an input.
    #[error(
        "input `{input}` requires a gradient, and a session computes none\nhelp: pass `{input}.detach()`, or run the session in `no_grad(|| ..)`. To train, record a step that calls `backward()`"
    )]
    InputGradient {
        /// The name of the input.
        input: String,
    },
    /// An operation failed in a run.
    #[error("{source}\nthe operation was recorded in {location}")]
    Node {
        /// The error.
        source: Box<RunError>,
        /// The line of the recorded function.
        location: Site,
    },
    /// An untrusted package needs more memory than it may take. Nothing was allocated for it.
    #[error(
        "the package needs {needed} bytes of memory, and {limit} is its limit\nhelp: if you want to run it, raise the limit: `Limits::new().memory(..)`"
    )]
    MemoryLimit {
        /// The bytes that it needs.
        needed: u64,
        /// The most bytes that it may take.
        limit: u64,
    },
    /// Loading an untrusted package takes more time than it may.
    #[error(
        "the kernels of the package take longer to compile than {limit:?}\nhelp: if you want to run it, raise the limit: `Limits::new().time(..)`"
    )]
    LoadTime {
        /// The most time.
        limit: std::time::Duration,
    },
    /// A constant of the program has the name of a parameter that the model lacks.
    #[error(
        "the model has no parameter `{name}`, which is a constant of the program\nhelp: pass a model with the fields of the one that was recorded"
    )]
    NoParameter {
        /// The name.
        name: String,
    },
    /// A parameter of the model has another dtype or shape than the constant of the program.
    #[error(
        "parameter `{name}` is {found}, and the constant of the program is {expected}\nhelp: pass a tensor of that type, such as those of a model with the sizes of the one that was recorded"
    )]
    ParameterType {
        /// The name.
        name: String,
        /// The type of the constant.
        expected: Box<TensorType>,
        /// The type of the parameter.
        found: Box<TensorType>,
    },
    /// A plan breaks a rule of plans.
    #[error("the graph is not valid: {reason}")]
    Invalid {
        /// The broken rule.
        reason: String,
    },
}

impl From<kernel_runtime::Error> for RunError {
    fn from(error: kernel_runtime::Error) -> RunError {
        RunError::Runtime(Box::new(error))
    }
}

impl RunError {
    /// The error with the line of the recorded function.
    pub(crate) fn at(self, location: &Site) -> RunError {
        RunError::Node { source: Box::new(self), location: location.clone() }
    }
}

/// An error of a package: of the file, or of its contents.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// The file cannot be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The path.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The bytes are not those of a package, or have changed since it was written.
    #[error("not a package: {reason}\nhelp: copy the file again, or write the package again")]
    Malformed {
        /// What is wrong, with the name of the entry.
        reason: String,
    },
    /// The package has another format than this program reads.
    #[error(
        "the package has format {found}, and this program reads format {expected}\nhelp: write the package again with this version of Galatea"
    )]
    Format {
        /// The format of the package.
        found: u64,
        /// The format that this program reads.
        expected: u64,
    },
    /// The package of a stranger calls opaque ops: code of this process, which may do anything.
    #[error("an untrusted package cannot call opaque ops: `{}`\nhelp: open it with `Package::open` if you trust its writer", .schemas.join("`, `"))]
    OpaqueOps {
        /// The schemas of the ops.
        schemas: Vec<String>,
    },
    /// A kernel has no code that can be packed.
    #[error("kernel `{kernel}` ({parameters}) was not built for any target\nhelp: {help}")]
    NoCode {
        /// The kernel.
        kernel: String,
        /// Its types and constants.
        parameters: String,
        /// How to mend it.
        help: String,
    },
    /// There is no assembler for [`PackageWriter::machine_code`](crate::PackageWriter::machine_code).
    #[error(
        "machine code needs NVIDIA's assembler, and {reason}\nhelp: install the CUDA toolkit, or name its `ptxas` with `.ptxas(path)` or `GALATEA_PTXAS`"
    )]
    NoAssembler {
        /// Why there is none.
        reason: String,
    },
    /// The assembler rejects the PTX of a kernel.
    #[error(
        "kernel `{kernel}` cannot be assembled for compute capability {}.{}: {reason}\nhelp: use a newer `ptxas`, or leave this GPU out of `.machine_code([..])`",
        .capability.0, .capability.1
    )]
    NotAssembled {
        /// The kernel.
        kernel: String,
        /// The compute capability of the GPU.
        capability: (u32, u32),
        /// The messages of the assembler.
        reason: String,
    },
    /// The text for [`PackageWriter::records`](crate::PackageWriter::records) holds no results of tuning.
    #[error("{reason}")]
    Records {
        /// What is wrong with it, and how to mend it.
        reason: String,
    },
    /// A package cannot hold what `#[autotune]` gives a kernel.
    #[error("kernel `{kernel}` cannot be packed: {reason} (recorded in {location})\nhelp: {}", .reason.help())]
    NotPacked {
        /// The kernel.
        kernel: &'static str,
        /// Why not.
        reason: NotPacked,
        /// The caller of `launch`.
        location: Site,
    },
    /// A file of tensors is not in the safetensors format.
    #[error("{}: not a file of tensors: {reason}\nhelp: copy the file again, or write it again in the safetensors format", .path.display())]
    Weights {
        /// The path.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Two tensors for one file have the same name, or a tensor has one that the format reserves.
    #[error("a file of tensors cannot have two entries `{name}`\nhelp: give each tensor a name of its own, other than `__metadata__`")]
    SameName {
        /// The name.
        name: String,
    },
    /// A file lacks a parameter of the model.
    #[error("{}: it has no tensor `{name}`, which is a parameter of the model\nhelp: write the file from a model with the same fields", .path.display())]
    NoTensor {
        /// The path.
        path: PathBuf,
        /// The name of the parameter.
        name: String,
    },
    /// A file has a tensor that is no parameter of the model.
    #[error("{}: tensor `{name}` is no parameter of the model\nhelp: write the file from a model with the same fields", .path.display())]
    NoParameter {
        /// The path.
        path: PathBuf,
        /// The name of the tensor.
        name: String,
    },
    /// A tensor of a file has another dtype or shape than the parameter of the model.
    #[error("{}: tensor `{name}` is {found}, and the parameter of the model is {expected}\nhelp: make the model with the sizes of the file", .path.display())]
    ParameterType {
        /// The path.
        path: PathBuf,
        /// The name of the parameter.
        name: String,
        /// The type of the parameter.
        expected: String,
        /// The type of the tensor.
        found: String,
    },
    /// Two names of one parameter have different elements in a file.
    #[error(
        "{}: tensors `{first}` and `{second}` are one parameter of the model, and differ\nhelp: write the file from a model that shares them, or give the model two parameters",
        .path.display()
    )]
    SharedParameter {
        /// The path.
        path: PathBuf,
        /// The first name.
        first: String,
        /// Another name.
        second: String,
    },
    /// The program of the package does not run on a device, or breaks a rule.
    #[error(transparent)]
    Run(Box<RunError>),
}

impl From<RunError> for PackageError {
    fn from(error: RunError) -> PackageError {
        PackageError::Run(Box::new(error))
    }
}

impl From<kernel_runtime::Error> for PackageError {
    fn from(error: kernel_runtime::Error) -> PackageError {
        PackageError::Run(Box::new(error.into()))
    }
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { format!("`{}`", names.join("`, `")) }
}
