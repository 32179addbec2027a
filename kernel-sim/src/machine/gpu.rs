//! The simulated GPU as its user sees it: memory, modules, launches.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::counters::Counters;
use crate::machine::launch::{self, Launch, LaunchError};
use crate::machine::variables;
use crate::memory::{GlobalMemory, MemoryError};
use crate::program::{self, Program};
use crate::ptx::{self, PtxError};

/// What a GPU has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gpu {
    /// Its name.
    pub name: String,
    /// Major and minor.
    pub compute_capability: (u32, u32),
    /// How many multiprocessors it has.
    pub num_sms: u32,
    /// Shared memory that one CTA can have, in bytes.
    pub shared_bytes: u32,
    /// Global memory, in bytes.
    pub memory_bytes: u64,
}

impl Gpu {
    /// An NVIDIA H200, of compute capability 9.0. Its global memory is limited to 64 GiB, for the host's sake.
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
    /// A GPU with nothing in its memory.
    pub fn new(gpu: Gpu) -> Machine {
        let memory = GlobalMemory::new(gpu.memory_bytes);
        Machine { gpu, memory }
    }

    /// What it is.
    pub fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// Reserves memory: an address that is a multiple of 256, and not null even for 0 bytes. Until it is written, reading it
    /// is a fault of a kernel.
    ///
    /// # Errors
    /// [`MemoryError::OutOfMemory`]
    pub fn allocate(&self, bytes: usize) -> Result<u64, MemoryError> {
        self.memory.allocate(bytes)
    }

    /// Gives memory back. Its addresses are never used again, so that a later access is found.
    ///
    /// # Errors
    /// No allocation begins there.
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        self.memory.free(address)
    }

    /// Copies from the host.
    ///
    /// # Errors
    /// The range is not inside one allocation.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), MemoryError> {
        self.memory.write(address, bytes)
    }

    /// Copies to the host. Bytes that nobody wrote are `0xff`.
    ///
    /// # Errors
    /// The range is not inside one allocation.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> Result<(), MemoryError> {
        self.memory.read(address, bytes)
    }

    /// Copies inside the GPU; what was not written stays so.
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

    /// Free and total bytes of its memory.
    pub fn free_and_total(&self) -> (u64, u64) {
        self.memory.free_and_total()
    }

    /// Reads PTX, and makes all its kernels ready to run. Every instruction is decoded now: one that the simulator does not know is
    /// an error, also where it would never be executed.
    ///
    /// # Errors
    /// What is wrong with the text, and where.
    pub fn load(&self, text: &str) -> Result<Module, PtxError> {
        let module = ptx::parse(text)?;
        let located = |problem: program::Problem| PtxError::new(text, problem.position, problem.message);
        let globals = variables::place(&module, &self.memory).map_err(located)?;
        let mut kernels = HashMap::new();
        for function in module.functions.iter().filter(|function| function.is_kernel && function.body.is_some()) {
            let program = program::build(&module, &globals, function).map_err(located)?;
            kernels.insert(function.name.clone(), Kernel { program: Arc::new(program) });
        }
        Ok(Module { kernels, globals, files: module.files })
    }

    /// Runs a kernel to its end, and says what it did. CTAs run in parallel on the host's cores; two runs with the same seed give
    /// the same bytes, counters and faults.
    ///
    /// # Errors
    /// A launch that no GPU would accept, or the first fault in the order of CTAs.
    pub fn launch(&self, kernel: &Kernel, launch: &Launch<'_>) -> Result<Counters, LaunchError> {
        launch::run(&self.gpu, &self.memory, &kernel.program, launch)
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine").field("gpu", &self.gpu).finish_non_exhaustive()
    }
}

/// PTX that is loaded.
#[derive(Clone, Debug)]
pub struct Module {
    kernels: HashMap<String, Kernel>,
    globals: HashMap<String, u64>,
    files: Vec<(u32, String)>,
}

impl Module {
    /// The kernel of that name.
    pub fn kernel(&self, name: &str) -> Option<Kernel> {
        self.kernels.get(name).cloned()
    }

    /// The names of all kernels, in no order.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernels.keys().map(String::as_str)
    }

    /// The address of a `.global` or `.const` variable.
    pub fn variable(&self, name: &str) -> Option<u64> {
        self.globals.get(name).copied()
    }

    /// The names of source files that lines of the report count on, by their numbers.
    pub fn files(&self) -> &[(u32, String)] {
        &self.files
    }
}

/// A kernel that is ready to run. Cloning is cheap.
#[derive(Clone)]
pub struct Kernel {
    program: Arc<Program>,
}

impl Kernel {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.program.name
    }

    /// Is it the same kernel of the same module, loaded once?
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
