//! Run-time errors: one enum, whose variants hold the data that a user needs to act.

mod phrases;
mod reports;

#[cfg(feature = "sim")]
use phrases::fault_text;
use phrases::{
    asked_by, count, extents, found, grid_help, lend, listed, log_or_hint, lost, refused, shared, with_resources, without_compiler,
    work_argument,
};

pub use reports::{AssertionFailed, OutOfBounds};

use crate::Device;

/// The result of every fallible function in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A run-time error. Its text states the problem, its location, and how to solve it.
///
/// `Debug` writes the same text as `Display`, because `main`, `unwrap` and `expect` show errors by `Debug`.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // Devices and drivers.
    /// The CUDA driver library is not installed.
    #[error("no CUDA driver is installed\nhelp: install the NVIDIA driver, or use `Device::cpu()`")]
    NoDriver,
    /// There is a driver, but no GPU with this number.
    #[error("there is no CUDA device {ordinal}: {}\nhelp: `Device::default()` takes the first GPU, or the CPU where there is none", found(*.count))]
    NoDevice {
        /// The requested number.
        ordinal: usize,
        /// The number of devices that the driver sees.
        count: usize,
    },
    /// A text is not the name of a device.
    #[error("{}`{name}` is no device\nhelp: there {} {}", asked_by(*.variable), if .known.len() == 1 { "is" } else { "are" }, listed(.known))]
    UnknownDevice {
        /// The text.
        name: String,
        /// The environment variable that held the text, if any.
        variable: Option<&'static str>,
        /// The names of all available devices.
        known: Vec<String>,
    },
    /// The program was built without the simulator.
    #[error(
        "this program was built without the simulator\nhelp: turn on the feature `sim`, as in `cargo run --features sim`, or in the \
         manifest `galatea = {{ .., features = [\"sim\"] }}`"
    )]
    NoSimulator,
    /// A call of the CUDA driver failed.
    #[error("could not {doing}: the CUDA driver reports `{code}` ({description})")]
    Driver {
        /// The operation that failed.
        doing: &'static str,
        /// The driver's name of the error, such as `CUDA_ERROR_INVALID_VALUE`.
        code: String,
        /// The driver's description of the error.
        description: String,
    },
    /// A kernel or a copy that was started earlier failed while it ran. The driver reports the failure only now, and the process can no longer use
    /// this device.
    #[error(
        "work started earlier on the GPU has failed: `{code}` ({description}), noticed while trying to {doing}\n\
         help: the device is lost to this process; {}",
        lost(code)
    )]
    Asynchronous {
        /// The operation that reported the failure.
        doing: &'static str,
        /// The driver's name of the error, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
        code: String,
        /// The driver's description of the error.
        description: String,
    },

    // Tensors of ops.
    /// A mistake in the use of a tensor of [`ops`](crate::ops).
    #[error(transparent)]
    Ops(#[from] crate::ops::OpsError),

    // Memory and shapes.
    /// An expression of dims has no value, or a comparison of dims is not decided.
    #[error(transparent)]
    Dim(#[from] crate::dim::DimError),
    /// The device has not enough free memory.
    #[error("out of memory on `{device}`: {requested} bytes were asked for and {free} are free")]
    OutOfMemory {
        /// The device.
        device: Device,
        /// The requested number of bytes.
        requested: usize,
        /// The number of bytes that were free on the device.
        free: FreeBytes,
    },
    /// The element count of a shape differs from that of the data.
    #[error("shape {shape:?} holds {} elements but there are {len}", count(.shape))]
    ShapeMismatch {
        /// The shape.
        shape: Vec<usize>,
        /// The number of elements in the data.
        len: usize,
    },
    /// A shape has too many dimensions, or more elements than memory can hold.
    #[error("shape {shape:?} is too large: at most {} dimensions and `isize::MAX` bytes are possible", crate::tensor::shape::MAX_RANK)]
    ShapeTooLarge {
        /// The shape.
        shape: Vec<usize>,
    },
    /// Source and destination of a copy differ in length.
    #[error("cannot copy {source_len} elements into {len}: both must have the same length")]
    LengthMismatch {
        /// The number of elements in the source.
        source_len: usize,
        /// The number of elements in the destination.
        len: usize,
    },
    /// A range exceeds the axis that it slices.
    #[error("range {start}..{end} does not fit the first axis of shape {shape:?}")]
    SliceOutOfRange {
        /// The first index.
        start: usize,
        /// The index after the last one.
        end: usize,
        /// The shape of the sliced tensor.
        shape: Vec<usize>,
    },
    /// An operation needs a tensor or a stream of a CUDA GPU.
    #[error("{what} is not on a CUDA GPU, where it is needed\nhelp: move a tensor with `.to_device(&Device::cuda(0)?)`")]
    NotCuda {
        /// The object that is not on a CUDA GPU.
        what: &'static str,
    },
    /// Work for a CUDA GPU has no stream on which it can be queued.
    #[error("there is no stream of `{device}` to queue work on\nhelp: make one with `Device::new_stream`, or use `Device::stream`")]
    NoStream {
        /// The device.
        device: Device,
    },
    /// CUDA's per-thread default stream is a different stream on every thread, so nothing can be ordered with it safely.
    #[error("the per-thread default stream cannot be shared\nhelp: make a stream with `CudaContext::new_stream` or `Device::new_stream`")]
    PerThreadStream,
    /// Memory or a stream of another library belongs to a context that is not the device's primary one.
    #[error(
        "{what} belongs to a CUDA context that is not the primary one of `cuda:{ordinal}`\nhelp: make it with `CudaContext::new({ordinal})`"
    )]
    ForeignContext {
        /// The object that belongs to another context.
        what: &'static str,
        /// The device.
        ordinal: usize,
    },

    /// A stream or an event was used with a device other than its own.
    #[error("{what} belongs to `{device}` but is used with `{expected}`\nhelp: make it with the device whose work it is for")]
    WrongDevice {
        /// The object that belongs to another device.
        what: &'static str,
        /// The device to which it belongs.
        device: Device,
        /// The device with which it was used.
        expected: Device,
    },
    /// Other code captures a stream into a CUDA graph, which would keep the addresses of memory that is only borrowed.
    #[error(
        "cannot {doing} while somebody else captures its stream into a CUDA graph\nhelp: end that capture first, or use another stream; `Replay::capture` captures launches"
    )]
    StreamCaptured {
        /// The refused operation.
        doing: &'static str,
    },
    /// An event was read before it was recorded.
    #[error("this event has not been recorded\nhelp: call `.record(&stream)` before reading it")]
    EventNotRecorded,

    // Calls of functions that take tensors and launch kernels themselves, such as those of `kernel-library`.
    /// A tensor has a shape that a function does not accept.
    #[error("`{function}`: argument `{argument}` has the shape {shape:?}, but {expected}\nhelp: {help}")]
    ArgumentShape {
        /// The function.
        function: &'static str,
        /// The argument.
        argument: &'static str,
        /// The shape of the argument.
        shape: Vec<usize>,
        /// The accepted shape and the reason, such as `[4] is expected: one element for each column`.
        expected: String,
        /// The solution.
        help: String,
    },
    /// Two tensors of a function are on different devices.
    #[error(
        "`{function}`: argument `{argument}` is on `{device}` but `{first}` is on `{expected}`\n\
         help: move it: `{argument}.to_device(&{first}.device())?`"
    )]
    ArgumentDevice {
        /// The function.
        function: &'static str,
        /// The argument that is on another device.
        argument: &'static str,
        /// The device of the argument.
        device: Device,
        /// The argument that decides on which device the function computes.
        first: &'static str,
        /// The device of that argument.
        expected: Device,
    },
    /// A number is outside the range that a function accepts.
    #[error("`{function}`: argument `{argument}` is {value}, but {expected}\nhelp: {help}")]
    ArgumentValue {
        /// The function.
        function: &'static str,
        /// The argument.
        argument: &'static str,
        /// The number.
        value: String,
        /// The accepted range, such as "a probability from 0 to 1 is expected".
        expected: String,
        /// The solution.
        help: &'static str,
    },

    // Launches.
    /// Two arguments of a launch, or an argument and its stream, are on different devices.
    #[error(
        "kernel `{kernel}`: argument `{argument}` lives on `{device}` but {other} on `{expected}`\nhelp: move it with `{argument}.to_device(..)`"
    )]
    DeviceMismatch {
        /// The kernel.
        kernel: &'static str,
        /// The argument that is on another device.
        argument: &'static str,
        /// The device of the argument.
        device: Device,
        /// The reason for the device of the launch, such as "argument `x` lives".
        other: String,
        /// The device of the launch.
        expected: Device,
    },
    /// A grid has more programs along one axis than the hardware supports, or a negative number of them.
    #[error(
        "kernel `{kernel}`: a grid of {programs} programs along axis {axis} is not possible: 0 to {limit} are\nhelp: {}", grid_help(*.programs)
    )]
    GridTooLarge {
        /// The kernel.
        kernel: &'static str,
        /// The axis: 0, 1 or 2.
        axis: usize,
        /// The requested number of programs.
        programs: i64,
        /// The maximum number of programs along this axis.
        limit: i64,
    },
    /// A scalar argument does not fit the kernel's type: an index is a signed 64-bit number.
    #[error("kernel `{kernel}`: argument {position} is {value}, which is more than `i64::MAX`, the largest index of a kernel")]
    ScalarTooLarge {
        /// The kernel.
        kernel: &'static str,
        /// The position of the argument, counted from 1.
        position: usize,
        /// The value of the argument.
        value: u64,
    },
    /// A tensor has another number of axes than the kernel's `View`, or its rows have gaps between their elements.
    #[error(
        "kernel `{kernel}`: argument `{argument}` has the shape {shape:?}, and the kernel takes {expected} axes\nhelp: give it as many: `{argument}.reshape({})`", extents(*.expected)
    )]
    ViewRank {
        /// The kernel.
        kernel: &'static str,
        /// The name of the parameter.
        argument: &'static str,
        /// The number of axes that the kernel takes.
        expected: usize,
        /// The shape of the tensor.
        shape: Vec<usize>,
    },
    /// The number of argument words differs from that of the kernel's parameters: `#[kernel]` did not make the launcher.
    #[error("kernel `{kernel}` takes {expected} argument words but {given} were given\nhelp: call the function that `#[kernel]` made")]
    ArgumentCount {
        /// The kernel.
        kernel: &'static str,
        /// The number of words that the kernel takes.
        expected: usize,
        /// The number of words that were given.
        given: usize,
    },
    /// The driver's compiler, or the simulator, rejected the kernel's PTX.
    #[error("kernel `{kernel}`: `{device}` cannot load its PTX (`{code}`)\n{}", log_or_hint(.log))]
    Jit {
        /// The kernel.
        kernel: &'static str,
        /// The device.
        device: Device,
        /// The driver's name of the error; `INVALID_PTX` from the simulator.
        code: String,
        /// The log of the driver's compiler, or of the simulator.
        log: String,
    },
    /// The driver's compiler made slower code of the kernel's products than the kernel requires: `#[kernel(require(..))]`.
    #[error("kernel `{kernel}`: the driver of `{device}` compiles its products to slower code than the kernel requires\n{}", log_or_hint(.advisories))]
    SlowProducts {
        /// The kernel.
        kernel: &'static str,
        /// The device.
        device: Device,
        /// The advisories of the driver's compiler.
        advisories: String,
    },
    /// The kernel cannot be compiled for these type and constant parameters.
    #[error("kernel `{kernel}` does not compile for {parameters}\n{diagnostics}")]
    Compile {
        /// The kernel.
        kernel: &'static str,
        /// The parameters, such as `T = f32, BLOCK_SIZE = 100`.
        parameters: String,
        /// The rendered errors of the compiler.
        diagnostics: String,
    },
    /// No variant was built for these types and constants, and the program has no compiler, because its feature `jit` is off.
    #[error(
        "kernel `{kernel}` was not built for {parameters} and {num_warps} warps, as `{device}` needs it, and this program cannot compile it: the \
         feature `jit` is off\nhelp: {}, or turn the feature on: `galatea = {{ .., features = [\"jit\"] }}`", without_compiler(.list)
    )]
    NotBuilt {
        /// The kernel.
        kernel: &'static str,
        /// The device.
        device: Device,
        /// The values, such as `T = f32, BLOCK_SIZE = 1024`.
        parameters: String,
        /// The number of warps of a CTA.
        num_warps: u32,
        /// The values as an argument of the attribute; empty for a `.checked()` launch, which no build contains.
        list: String,
    },
    /// The GPU is older than every target that the compiler knows.
    #[error("kernel `{kernel}`: `{device}` has compute capability {}.{}, which is too old: 8.0 is the oldest that runs kernels\nhelp: use `Device::cpu()`", .capability.0, .capability.1)]
    TooOld {
        /// The kernel.
        kernel: &'static str,
        /// The device.
        device: Device,
        /// Its compute capability.
        capability: (i32, i32),
    },
    /// A kernel needs more shared memory than the device has.
    #[error(
        "kernel `{kernel}` needs {requested} bytes of shared memory a program but `{device}` has {limit}\nhelp: use smaller blocks or fewer stages"
    )]
    SharedMemory {
        /// The kernel.
        kernel: &'static str,
        /// The device.
        device: Device,
        /// The bytes that a program needs.
        requested: u32,
        /// The bytes that a program can have.
        limit: u32,
    },
    /// The driver refused to launch a kernel.
    #[error("kernel `{kernel}` cannot start{}: `{code}` ({description}){}", with_resources(code, *.threads, *.shared_bytes), refused(code, *.threads))]
    LaunchRefused {
        /// The kernel.
        kernel: &'static str,
        /// The number of threads of a program.
        threads: u32,
        /// The dynamic shared memory of a program, in bytes.
        shared_bytes: u32,
        /// The driver's name of the error, such as `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES`; `INVALID_LAUNCH` from a simulated GPU.
        code: String,
        /// The description by the driver or the simulator.
        description: String,
    },
    /// A `.checked()` launch accessed an element outside its tensor.
    #[error("{0}")]
    OutOfBounds(Box<OutOfBounds>),
    /// A `device_assert!` failed in a `.checked()` launch.
    #[error("{0}")]
    AssertionFailed(Box<AssertionFailed>),
    /// A launch was stopped before its end.
    #[error("kernel `{kernel}` was stopped: the time for the run is over\nhelp: raise the time limit if you trust the program to end")]
    TimeLimit {
        /// The kernel.
        kernel: &'static str,
    },
    /// A simulated GPU detected a mistake of a kernel.
    #[cfg(feature = "sim")]
    #[error("{}", fault_text(.0))]
    Fault(#[source] Box<kernel_sim::Fault>),
    /// A simulated GPU could not copy or fill memory.
    #[cfg(feature = "sim")]
    #[error("the memory of the simulated GPU: {0}")]
    SimMemory(#[from] kernel_sim::MemoryError),
    /// The report that the environment variable `GALATEA_SIM_REPORT` requests could not be written.
    #[cfg(feature = "sim")]
    #[error("could not write the report of a simulated GPU to `{}`: {error}\nhelp: `GALATEA_SIM_REPORT` names a directory that exists", path.display())]
    Report {
        /// The file.
        path: std::path::PathBuf,
        /// The error of the operating system.
        #[source]
        error: std::io::Error,
    },

    // Replays.
    /// An operation that a replay cannot repeat was called during a capture, on the thread that captures: making a tensor, copying from or to the
    /// host, recording or waiting for events and streams, running a `.checked()` launch or a kernel that prints, tuning, or capturing or launching
    /// another replay. See [`Replay`](crate::Replay).
    #[error("cannot {doing} while a replay is captured\nhelp: {help}")]
    InCapture {
        /// The refused operation.
        doing: &'static str,
        /// The operation to use instead.
        help: &'static str,
    },
    /// A launch of a replay was not lent memory that its work reads or writes.
    #[error("{} was not given to the launch of the replay{}\nhelp: {}", work_argument(*.kernel, argument), shared(*.only_shared), lend(*.only_shared))]
    NotLent {
        /// The kernel; `None` for a copy or a fill.
        kernel: Option<&'static str>,
        /// The parameter, or the role of the memory in the copy or fill.
        argument: &'static str,
        /// Whether it was lent as `&x` although the work writes it.
        only_shared: bool,
    },

    // Tuning.
    /// A file of shapes cannot be used; see [`tune::shapes()`](fn@crate::tune::shapes).
    #[error("{reason}\nhelp: {help}")]
    Shapes {
        /// The problem, with the file, the row and the field.
        reason: String,
        /// The solution.
        help: &'static str,
    },
    /// No configuration of an autotuned kernel runs.
    #[error("kernel `{kernel}`: none of its {} configurations runs on `{device}`\n{}", .failures.len(), .failures.join("\n"))]
    NoConfig {
        /// The kernel.
        kernel: &'static str,
        /// The device.
        device: Device,
        /// Each configuration, with the reason why it does not run.
        failures: Vec<String>,
    },
}

impl std::fmt::Debug for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// A number of free bytes; `None` if the device does not report it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FreeBytes(pub Option<usize>);

impl std::fmt::Display for FreeBytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(bytes) => write!(f, "{bytes}"),
            None => f.write_str("an unknown number"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device() -> Device {
        Device::cpu()
    }

    /// One error of each kind, as a user sees it.
    fn errors() -> Vec<Error> {
        let text = |text: &str| text.to_owned();
        let (kernel, argument) = ("silu", "x");
        let (code, description) = (text("CUDA_ERROR_LAUNCH_FAILED"), text("unspecified launch failure"));
        vec![
            Error::NoDriver,
            Error::NoDevice { ordinal: 3, count: 0 },
            Error::NoDevice { ordinal: 3, count: 2 },
            Error::UnknownDevice { name: text("gpu"), variable: None, known: vec![text("cpu")] },
            Error::UnknownDevice { name: text("gpu"), variable: Some("GALATEA_DEVICE"), known: vec![text("cpu"), text("cuda:0")] },
            Error::NoSimulator,
            Error::Driver { doing: "make a stream", code: code.clone(), description: description.clone() },
            Error::Asynchronous { doing: "wait for a stream", code: code.clone(), description: description.clone() },
            Error::OutOfMemory { device: device(), requested: 1 << 40, free: FreeBytes(Some(1 << 30)) },
            Error::OutOfMemory { device: device(), requested: 1 << 40, free: FreeBytes(None) },
            Error::ShapeMismatch { shape: vec![2, 2], len: 3 },
            Error::ShapeTooLarge { shape: vec![usize::MAX, 2] },
            Error::LengthMismatch { source_len: 2, len: 3 },
            Error::SliceOutOfRange { start: 2, end: 9, shape: vec![4, 3] },
            Error::NotCuda { what: "this tensor" },
            Error::NoStream { device: device() },
            Error::PerThreadStream,
            Error::ForeignContext { what: "this slice", ordinal: 0 },
            Error::WrongDevice { what: "this event", device: device(), expected: device() },
            Error::StreamCaptured { doing: "launch a kernel" },
            Error::EventNotRecorded,
            Error::ArgumentShape {
                function: "layer_norm",
                argument: "weight",
                shape: vec![3],
                expected: text("[4] is expected: one element for each column of `x`, which has the shape [2, 4]"),
                help: text("pass `weight` with the shape [4], or compare the order of the axes of `x`"),
            },
            Error::ArgumentDevice { function: "layer_norm", argument: "weight", device: device(), first: "x", expected: device() },
            Error::ArgumentValue {
                function: "dropout",
                argument: "p",
                value: text("1.5"),
                expected: text("a probability from 0 to 1 is expected"),
                help: "pass a fraction, such as 0.1 to drop a tenth of the elements",
            },
            Error::DeviceMismatch { kernel, argument, device: device(), other: text("argument `y` lives"), expected: device() },
            Error::GridTooLarge { kernel, axis: 1, programs: 70_000, limit: 65_535 },
            Error::ScalarTooLarge { kernel, position: 3, value: u64::MAX },
            Error::ViewRank { kernel, argument, expected: 2, shape: vec![2, 3, 4] },
            Error::ArgumentCount { kernel, expected: 5, given: 4 },
            Error::Jit { kernel, device: device(), code: code.clone(), log: text("line 5: unknown\nline 6: worse") },
            Error::Jit { kernel, device: device(), code: code.clone(), log: text("") },
            Error::SlowProducts { kernel, device: device(), advisories: text("(C7510) slower") },
            Error::Compile { kernel, parameters: text("`B = 3`"), diagnostics: text("error: not a power of two") },
            Error::TooOld { kernel, device: device(), capability: (7, 5) },
            Error::SharedMemory { kernel, device: device(), requested: 300_000, limit: 232_448 },
            Error::LaunchRefused { kernel, threads: 1024, shared_bytes: 0, code, description },
            Error::InCapture { doing: "allocate memory", help: "make tensors before the capture" },
            Error::NotLent { kernel: Some(kernel), argument, only_shared: true },
            Error::NotLent { kernel: None, argument: "the target of a copy", only_shared: false },
            Error::Shapes { reason: text("shapes.json: row 2 of `add` has no field `n`"), help: "add it" },
            Error::NoConfig { kernel, device: device(), failures: vec![text("  Config { B: 3 }: no")] },
        ]
    }

    #[test]
    fn messages_are_in_the_house_style() {
        for error in errors() {
            let text = error.to_string();
            for line in text.lines() {
                assert!(!line.ends_with('.') && !line.ends_with(' '), "{text}");
                assert!(!line.trim_start().starts_with(char::is_uppercase) || line.contains("Config"), "{text}");
            }
            assert_eq!(text.matches('`').count() % 2, 0, "{text}");
            assert!(!text.contains("  ") || text.contains("\n  "), "{text}");
        }
    }

    #[test]
    fn a_result_is_small_where_nothing_fails() {
        assert!(size_of::<Error>() <= 128, "{}", size_of::<Error>());
    }

    #[test]
    fn the_log_of_the_driver_is_set_apart() {
        let error = Error::Jit { kernel: "k", device: device(), code: "CODE".into(), log: "first\nsecond\n".into() };
        assert_eq!(error.to_string(), "kernel `k`: `cpu` cannot load its PTX (`CODE`)\n  | first\n  | second");
    }

    #[test]
    fn main_shows_an_error_as_it_is_written() {
        for error in errors() {
            assert_eq!(format!("{error:?}"), error.to_string());
        }
    }

    #[test]
    fn a_refused_launch_speaks_of_resources_where_they_are_the_cause() {
        let text = |code: &str, threads| {
            let (code, description) = (code.to_owned(), "why".to_owned());
            Error::LaunchRefused { kernel: "k", threads, shared_bytes: 64, code, description }.to_string()
        };
        let too_much = "kernel `k` cannot start with 512 threads and 64 bytes of shared memory a program: `CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES` (why)\n\
                        help: use fewer warps, smaller blocks or fewer stages";
        assert_eq!(text("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", 512), too_much);
        let too_wide = "kernel `k` cannot start with 2048 threads and 64 bytes of shared memory a program: `CUDA_ERROR_INVALID_VALUE` (why)\n\
                        help: use fewer warps: a program has at most 1024 threads";
        assert_eq!(text("CUDA_ERROR_INVALID_VALUE", 2048), too_wide);
        let clusters = "kernel `k` cannot start: `CUDA_ERROR_INVALID_CLUSTER_SIZE` (why)\nhelp: use fewer CTAs a program";
        assert_eq!(text("CUDA_ERROR_INVALID_CLUSTER_SIZE", 512), clusters);
        for other in ["CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_INVALID_HANDLE", "CUDA_ERROR_NOT_SUPPORTED", "CUDA_ERROR_SYSTEM_NOT_READY"] {
            assert_eq!(text(other, 128), format!("kernel `k` cannot start: `{other}` (why)"));
        }
    }

    #[test]
    fn helps_are_of_the_case_at_hand() {
        let help = |error: Error| error.to_string().split_once("help: ").map(|(_, help)| help.to_owned()).unwrap_or_default();
        let lost = |code: &str| help(Error::Asynchronous { doing: "wait for a stream", code: code.to_owned(), description: String::new() });
        let of_a_kernel =
            "the device is lost to this process; run the same launches on `Device::cpu()` with `.checked()` to find the one at fault";
        assert_eq!(lost("CUDA_ERROR_ILLEGAL_ADDRESS"), of_a_kernel);
        let of_the_machine = "the device is lost to this process; no launch is at fault: `nvidia-smi -q` and the system's log say more";
        assert_eq!(lost("CUDA_ERROR_NVLINK_UNCORRECTABLE"), of_the_machine);
        let of_others = "the device is lost to this process; start it again: another client of the MPS server may be at fault";
        assert_eq!(lost("CUDA_ERROR_MPS_CLIENT_TERMINATED"), of_others);

        let grid = |programs| help(Error::GridTooLarge { kernel: "k", axis: 1, programs, limit: 65_535 });
        assert_eq!(grid(65_536), "give each program more work, or use another axis");
        assert_eq!(grid(-1), "a grid counts programs: look at how this one is computed");

        let rank = |expected| help(Error::ViewRank { kernel: "k", argument: "out", expected, shape: vec![12] });
        assert_eq!(rank(2), "give it as many: `out.reshape([m, n])`");
        assert_eq!(rank(3), "give it as many: `out.reshape([n0, n1, n2])`");

        let not_lent = |only_shared| help(Error::NotLent { kernel: Some("k"), argument: "x", only_shared });
        assert_eq!(not_lent(true), "lend what is written by `&mut`: `replay.launch((&x, &mut y))`");
        let all = "lend every tensor of the capture, `replay.launch((&x, &mut y))`; others take their place by `replay.update(..)`";
        assert_eq!(not_lent(false), all);

        let not_built = |list: &str| {
            let (parameters, list) = ("`B = 64`".to_owned(), list.to_owned());
            help(Error::NotBuilt { kernel: "k", device: device(), parameters, num_warps: 4, list })
        };
        let feature = "or turn the feature on: `galatea = { .., features = [\"jit\"] }`";
        assert_eq!(not_built("B = [64]"), format!("list it, `#[kernel(B = [64])]`, {feature}"));
        // No build contains a checked variant, whatever the attribute lists.
        assert_eq!(not_built(""), format!("check it on `Device::cpu()`, {feature}"));
    }
}
