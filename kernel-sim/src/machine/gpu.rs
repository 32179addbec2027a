//! The public interface of the simulated GPU: memory, modules and launches.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::counters::Counters;
use crate::machine::launch::{self, Launch, LaunchError};
use crate::machine::variables;
use crate::memory::{GlobalMemory, MemoryError};
use crate::program::{self, Program};
use crate::ptx::{self, PtxError};

/// The properties of a GPU.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gpu {
    /// The name of the GPU.
    pub name: String,
    /// The major and minor compute capability.
    pub compute_capability: (u32, u32),
    /// The number of multiprocessors.
    pub num_sms: u32,
    /// The maximum shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
    /// The size of global memory, in bytes.
    pub memory_bytes: u64,
}

impl Gpu {
    /// An NVIDIA H200, of compute capability 9.0. Its global memory is limited to 64 GiB, because the host has to provide it.
    pub fn h200() -> Gpu {
        Gpu { name: "simulated H200".to_owned(), compute_capability: (9, 0), num_sms: 132, shared_bytes: 227 << 10, memory_bytes: 64 << 30 }
    }

    /// An NVIDIA A100 with 40 GB, of compute capability 8.0.
    pub fn a100() -> Gpu {
        Gpu { name: "simulated A100".to_owned(), compute_capability: (8, 0), num_sms: 108, shared_bytes: 163 << 10, memory_bytes: 40 << 30 }
    }
}

/// A simulated GPU.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use kernel_sim::{Gpu, Launch, Machine};
///
/// let machine = Machine::new(Gpu::h200());
/// let module = machine.load(
///     ".version 7.0
///      .target sm_80
///      .address_size 64
///      .visible .entry triple(.param .u64 x) {
///          .reg .b32 %r<3>;
///          .reg .b64 %rd<4>;
///          ld.param.u64 %rd0, [x];
///          cvta.to.global.u64 %rd1, %rd0;
///          mov.u32 %r0, %tid.x;
///          mul.wide.u32 %rd2, %r0, 4;
///          add.s64 %rd3, %rd1, %rd2;
///          ld.global.u32 %r1, [%rd3];
///          mul.lo.u32 %r2, %r1, 3;
///          st.global.u32 [%rd3], %r2;
///          ret;
///      }",
/// )?;
/// let kernel = module.kernel("triple").ok_or("no such kernel")?;
/// let x = machine.allocate(4 * 64)?;
/// machine.fill(x, &7u32.to_le_bytes(), 64)?;
/// let counters = machine.launch(&kernel, &Launch::new([1; 3], [64, 1, 1], &[&x.to_le_bytes()]))?;
/// let mut first = [0; 4];
/// machine.read(x, &mut first)?;
/// assert_eq!(u32::from_le_bytes(first), 21);
/// assert_eq!(counters.total().global.load_bytes, 4 * 64);
/// # Ok(())
/// # }
/// ```
pub struct Machine {
    gpu: Gpu,
    memory: GlobalMemory,
}

impl Machine {
    /// Creates a GPU without allocations.
    pub fn new(gpu: Gpu) -> Machine {
        let memory = GlobalMemory::new(gpu.memory_bytes);
        Machine { gpu, memory }
    }

    /// The properties of the GPU.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Allocates memory. The address is a multiple of 256, and not null even for 0 bytes. A kernel that reads a byte of the allocation
    /// before the byte is written faults.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`]
    pub fn allocate(&self, bytes: usize) -> Result<u64, MemoryError> {
        self.memory.allocate(bytes)
    }

    /// Frees an allocation. Its addresses are never used again, so that later accesses are detected.
    ///
    /// # Errors
    /// No allocation begins at the address.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        self.memory.free(address)
    }

    /// Copies from the host to the GPU.
    ///
    /// # Errors
    /// The range is not inside one allocation.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.memory.write(address, bytes)
    }

    /// Copies from the GPU to the host. Uninitialised bytes are `0xff`.
    ///
    /// # Errors
    /// The range is not inside one allocation.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        self.memory.read(address, bytes)
    }

    /// Copies inside the GPU. Uninitialised bytes of the source make the bytes of the target uninitialised.
    ///
    /// # Errors
    /// A range is not inside one allocation.
    pub fn copy(&self, from: u64, to: u64, bytes: usize) -> Result<(), MemoryError> {
        self.memory.copy(from, to, bytes)
    }

    /// Writes a pattern of 1, 2, 4 or 8 bytes `count` times.
    ///
    /// # Errors
    /// The range is not inside one allocation.
    pub fn fill(&self, address: u64, pattern: &[u8], count: usize) -> Result<(), MemoryError> {
        self.memory.fill(address, pattern, count)
    }

    /// The free and the total bytes of global memory.
    pub fn free_and_total(&self) -> (u64, u64) {
        self.memory.free_and_total()
    }

    /// Loads PTX and decodes all its kernels. An instruction that the simulator does not support is an error, even if it is never executed.
    ///
    /// # Errors
    /// The first problem of the text, with its position.
    pub fn load(&self, text: &str) -> Result<Module, PtxError> {
        let module = ptx::parse(text)?;
        let located = |problem: program::Problem| PtxError::new(text, problem.position, problem.message);
        let globals = variables::allocate(&module, &self.memory).map_err(located)?;
        let mut kernels = HashMap::new();
        for function in module.functions.iter().filter(|function| function.is_kernel && function.body.is_some()) {
            let program = program::build(&module, &globals, function).map_err(located)?;
            kernels.insert(function.name.clone(), Kernel { program: Arc::new(program) });
        }
        Ok(Module { kernels, globals, files: module.files })
    }

    /// Runs a kernel to its end and returns its counters. CTAs run in parallel on the host's cores. Two runs with the same seed give the
    /// same bytes, counters and faults.
    ///
    /// # Errors
    /// A launch that no GPU would accept, or the first fault in the order of the CTAs.
    pub fn launch(&self, kernel: &Kernel, launch: &Launch<'_>) -> Result<Counters, LaunchError> {
        launch::run(&self.gpu, &self.memory, &kernel.program, launch)
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("gpu", &self.gpu).finish_non_exhaustive()
    }
}

/// Loaded PTX.
#[derive(Clone, Debug)]
pub struct Module {
    kernels: HashMap<String, Kernel>,
    globals: HashMap<String, u64>,
    files: Vec<(u32, String)>,
}

impl Module {
    /// The kernel with this name.
    pub fn kernel(&self, name: &str) -> Option<Kernel> {
        self.kernels.get(name).cloned()
    }

    /// The names of all kernels, in no particular order.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }

    /// The address of a `.global` or `.const` variable.
    pub fn variable(&self, name: &str) -> Option<u64> {
        self.globals.get(name).copied()
    }

    /// The number and name of each source file. The lines of a report refer to these numbers.
    pub fn files(&self) -> &[(u32, String)] {
        &self.files
    }
}

/// A kernel that is ready to be launched. Cloning is cheap.
#[derive(Clone)]
pub struct Kernel {
    program: Arc<Program>,
}

impl Kernel {
    /// The name of the kernel.
    pub fn name(&self) -> &str {
        &self.program.name
    }

    /// Whether both handles refer to one kernel of one loaded module.
    pub fn is_same(&self, other: &Kernel) -> bool {
        Arc::ptr_eq(&self.program, &other.program)
    }

    /// The size of each parameter, in bytes.
    pub fn params(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.program.params.iter().map(|param| param.bytes)
    }

    /// The name of each parameter in the PTX.
    pub fn param_names(&self) -> impl ExactSizeIterator<Item = &str> + '_ {
        self.program.params.iter().map(|param| param.name.as_str())
    }

    /// The CTAs of a cluster, if the PTX states them.
    pub fn cluster(&self) -> Option<[u32; 3]> {
        let (_, numbers) = self.program.directives.iter().find(|(directive, _)| directive == "reqnctapercluster")?;
        Some(std::array::from_fn(|axis| numbers.get(axis).map_or(1, |extent| *extent as u32)))
    }

    /// The number and name of each source file.
    pub fn files(&self) -> &[(u32, String)] {
        &self.program.files
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("name", &self.program.name).field("steps", &self.program.steps.len()).finish()
    }
}
