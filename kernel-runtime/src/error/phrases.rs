//! The parts of an error's text that depend on its fields.

pub(super) fn tensor(parameter: &str, length: u64) -> String {
    match parameter {
        "" => "what an address leads to".to_string(),
        _ => format!("`{parameter}`, which has {length} elements"),
    }
}

/// The condition on the offsets with which a mask excludes such an index.
pub(super) fn kept(index: i64) -> &'static str {
    if index < 0 { ">= 0" } else { "< n" }
}

pub(super) fn work_argument(kernel: Option<&str>, argument: &str) -> String {
    match kernel {
        Some(kernel) => format!("argument `{argument}` of kernel `{kernel}`"),
        None => argument.to_owned(),
    }
}

pub(super) fn shared(only_shared: bool) -> &'static str {
    if only_shared { " to be written, only to be read" } else { "" }
}

pub(super) fn lend(only_shared: bool) -> &'static str {
    if only_shared {
        "lend what is written by `&mut`: `replay.launch((&x, &mut y))`"
    } else {
        "lend every tensor of the capture, `replay.launch((&x, &mut y))`; others take their place by `replay.update(..)`"
    }
}

pub(super) fn without_compiler(list: &str) -> String {
    if list.is_empty() { "check it on `Device::cpu()`".to_owned() } else { format!("list it, `#[kernel({list})]`") }
}

/// A negative number comes from a wrong subtraction, not from too much work.
pub(super) fn grid_help(programs: i64) -> &'static str {
    if programs < 0 {
        "a grid counts programs: look at how this one is computed"
    } else {
        "give each program more work, or use another axis"
    }
}

/// An example of a shape with this many axes, in source form.
pub(super) fn extents(axes: usize) -> String {
    let extents: Vec<String> = match axes {
        1 => vec!["n".to_owned()],
        2 => vec!["m".to_owned(), "n".to_owned()],
        _ => (0..axes).map(|axis| format!("n{axis}")).collect(),
    };
    format!("[{}]", extents.join(", "))
}

pub(super) fn found(count: usize) -> String {
    match count {
        0 => "the driver sees no GPU".to_owned(),
        1 => "the driver sees one GPU, number 0".to_owned(),
        n => format!("the driver sees {n} GPUs, numbers 0 to {}", n - 1),
    }
}

/// The text of a fault, with its location in the format of the compiler's errors.
#[cfg(feature = "sim")]
pub(super) fn fault_text(fault: &kernel_sim::Fault) -> String {
    let kernel_sim::Fault { kind, kernel, file, line, column, callers, ptx_line, instruction, cta, thread, .. } = fault;
    let element = fault.element().map_or_else(String::new, |element| format!("\n   = {element}"));
    let position = match file {
        Some(file) if *line > 0 => format!("\n  --> {file}:{line}:{column}"),
        _ => String::new(),
    };
    let callers: String = callers.iter().map(|caller| format!("\n   = called at {caller}")).collect();
    let three = |[x, y, z]: &[u32; 3]| format!("({x}, {y}, {z})");
    let (program, thread) = (three(cta), three(thread));
    format!(
        "kernel `{kernel}`: {kind}{position}{callers}{element}\n   = program id {program}, thread {thread}\n   = PTX line {ptx_line}: `{instruction}`"
    )
}

pub(super) fn asked_by(variable: Option<&str>) -> String {
    variable.map_or_else(String::new, |variable| format!("the environment variable {variable}: "))
}

/// Formats names as `a`, `b` and `c`, each in backticks.
pub(super) fn listed(names: &[String]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

pub(super) fn count(shape: &[usize]) -> String {
    match shape.iter().try_fold(1usize, |len, &dim| len.checked_mul(dim)) {
        Some(len) => len.to_string(),
        None => "too many".to_owned(),
    }
}

pub(super) fn log_or_hint(log: &str) -> String {
    match log.trim() {
        "" => "help: a newer driver may know this PTX version or this device".to_owned(),
        log => log.lines().map(|line| format!("  | {line}")).collect::<Vec<_>>().join("\n"),
    }
}

/// The advice for a lost device, which depends on the cause.
pub(super) fn lost(code: &str) -> &'static str {
    match code {
        "CUDA_ERROR_ECC_UNCORRECTABLE" | "CUDA_ERROR_NVLINK_UNCORRECTABLE" | "CUDA_ERROR_EXTERNAL_DEVICE" => {
            "no launch is at fault: `nvidia-smi -q` and the system's log say more"
        }
        "CUDA_ERROR_MPS_RPC_FAILURE" | "CUDA_ERROR_MPS_CLIENT_TERMINATED" => {
            "start it again: another client of the MPS server may be at fault"
        }
        _ => "run the same launches on `Device::cpu()` with `.checked()` to find the one at fault",
    }
}

/// The maximum number of threads of a program on any GPU.
const MOST_THREADS: u32 = 1024;

/// The reason for a refused launch, as far as its code tells. A driver reports too many threads as an invalid value, like many other errors.
enum Refusal {
    Resources,
    TooManyThreads,
    Cluster,
    /// No text is added; a simulated GPU's own description states the reason.
    Other,
}

fn refusal(code: &str, threads: u32) -> Refusal {
    match code {
        "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES" => Refusal::Resources,
        "CUDA_ERROR_INVALID_VALUE" | "INVALID_LAUNCH" if threads > MOST_THREADS => Refusal::TooManyThreads,
        "CUDA_ERROR_INVALID_CLUSTER_SIZE" => Refusal::Cluster,
        _ => Refusal::Other,
    }
}

/// The resources of a refused launch, if they are the reason.
pub(super) fn with_resources(code: &str, threads: u32, shared_bytes: u32) -> String {
    match refusal(code, threads) {
        Refusal::Resources | Refusal::TooManyThreads => {
            format!(" with {threads} threads and {shared_bytes} bytes of shared memory a program")
        }
        Refusal::Cluster | Refusal::Other => String::new(),
    }
}

/// The advice for a refused launch.
pub(super) fn refused(code: &str, threads: u32) -> String {
    match refusal(code, threads) {
        Refusal::Resources => "\nhelp: use fewer warps, smaller blocks or fewer stages".to_owned(),
        Refusal::TooManyThreads => format!("\nhelp: use fewer warps: a program has at most {MOST_THREADS} threads"),
        Refusal::Cluster => "\nhelp: use fewer CTAs a program".to_owned(),
        Refusal::Other => String::new(),
    }
}
