//! The CPU executor: runs one program of a grid, one tile at a time.
//!
//! [`compile`] translates a kernel to a [`Program`] once. Each op becomes an instruction, which is one tight loop over a tile. Its
//! operands have fixed offsets in a [`Scratch`], which liveness analysis keeps small enough for the L1 cache. [`Program::run`] executes the
//! list of instructions. The executor is the default without a GPU, the reference for every GPU result, and, with `checked`, the debugger.
//!
//! | file | concept |
//! |---|---|
//! | `forms`, `affine` | tiles that are functions of an element's index: offsets `a + b * index`, masks `offset < n` |
//! | `translate`, `transfer`, `symbolic`, `control`, `combine` | translation of IR to instructions |
//! | `allocate` | allocation of offsets in the scratch |
//! | `conflicts` | loads and stores that may conflict with those of other programs |
//! | `code` | the instructions |
//! | `execute`, `access`, `atomic`, `dot`, `lookup`, `memory`, `shared` | execution of the instructions |
//!
//! **Memory.** Elements with an offset outside their tensor never access memory, in `unchecked` kernels too. Programs of one launch run in
//! parallel over the same tensors. Two programs may store to one element, or one may load what another stores. Such an element is accessed
//! by relaxed atomics, so that a load returns one of the stored values, never a mixture. An access is plain only if `conflicts` proves that
//! no other program accesses its elements.

mod access;
mod affine;
mod allocate;
mod atomic;
mod code;
mod combine;
mod conflicts;
mod control;
mod dot;
mod execute;
mod forms;
mod lookup;
mod memory;
mod shared;
mod symbolic;
mod transfer;
mod translate;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use code::Code;
use kernel_lang::Bindings;
use kernel_lang::diagnostic::{Diagnostic, Diagnostics};
use kernel_lang::ir::{Function, Verified};
use kernel_lang::location::{Loc, Name};

pub use conflicts::Conflicts;

/// Compiles a kernel for the CPU.
///
/// # Errors
/// As [`kernel_lang::compile`].
pub fn compile(func: &Function, bindings: &Bindings) -> Result<Program, Diagnostics> {
    kernel_lang::compile_cpu(func, bindings, Program::compile)?
}

/// A kernel translated for the CPU. It is immutable: any number of threads can run it, each with its own [`Scratch`].
#[derive(Debug)]
pub struct Program {
    /// Identifies the program for which a scratch was prepared.
    id: u64,
    code: Code,
}

impl Program {
    /// Translates a specialised kernel.
    ///
    /// # Errors
    /// If the tiles that a program holds at the same time take more than 1 GiB.
    pub fn compile(kernel: Verified<'_>) -> Result<Program, Diagnostics> {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let code = translate::translate(kernel.func()).ok_or_else(|| {
            let message = format!("one program of this kernel needs more than {} MiB for its tiles", allocate::MOST_BYTES >> 20);
            Diagnostic::new(Loc::NONE, message).help("let more programs share the work, with smaller tiles")
        })?;
        Ok(Program { id: NEXT.fetch_add(1, Ordering::Relaxed), code })
    }

    /// The number of argument words of [`Program::run`]: two for a pointer (address, then length in elements), one for a scalar.
    pub fn words(&self) -> usize {
        self.code.words
    }

    /// The bytes of scratch memory that a run uses.
    pub fn scratch_bytes(&self) -> usize {
        self.code.scratch_bytes
    }

    /// The bytes of the instructions and of the constants.
    pub fn code_bytes(&self) -> usize {
        // An access is in a box of its own.
        let per_instr = size_of::<code::Instr>() + size_of::<code::Access>();
        self.code.instrs.len() * per_instr + self.code.constants.len()
    }

    /// The loads and stores that may conflict with those of other programs of a launch when programs run concurrently. `args` and `grid`
    /// are as for [`Program::run`].
    ///
    /// Costs some microseconds; the last result is cached.
    ///
    /// # Panics
    /// If the length of `args` is not [`Program::words`].
    pub fn conflicts(&self, args: &[u64], grid: [u32; 3]) -> Conflicts {
        assert_eq!(args.len(), self.code.words, "the kernel takes {} argument words", self.code.words);
        self.code.decider.conflicts(args, grid)
    }

    /// Runs the program at index `program` of a grid of `grid` programs.
    ///
    /// `args` are the parameter words in the order of the signature; a scalar's bits are zero-extended. Elements with an offset outside
    /// their tensor read `other`, or 0, and store nothing. With `checked` the first such element whose mask is true ends the run.
    ///
    /// # Errors
    /// With `checked`: the first access outside its tensor or the first failed assertion, in the order of the kernel's text.
    ///
    /// # Panics
    /// If the length of `args` is not [`Program::words`].
    ///
    /// # Safety
    /// For each pointer parameter, the address is that of `length` initialised elements that live through the call, aligned for their type
    /// if the kernel has atomics on them, or `length` is 0. The elements of a `ptr_mut` overlap no other parameter's, unless the kernel is
    /// `unchecked`, and only programs of this launch access them during the call. Programs of the launch may run concurrently on other
    /// threads if all of them get the `conflicts` that [`Program::conflicts`] returns for these `args` and this `grid`. With
    /// [`Conflicts::none`] the programs run one after another.
    pub unsafe fn run(
        &self,
        args: &[u64],
        grid: [u32; 3],
        program: [u32; 3],
        scratch: &mut Scratch,
        checked: bool,
        conflicts: &Conflicts,
    ) -> Result<(), Violation> {
        // SAFETY: as the caller promises.
        unsafe { self.run_until(args, grid, program, scratch, checked, conflicts, None) }
    }

    /// [`Program::run`], which stops early once a deadline has passed. Then it returns `Ok`, the deadline [has passed](Deadline::has_passed), and the
    /// program has done a part of its work.
    ///
    /// # Errors
    /// As [`Program::run`].
    ///
    /// # Panics
    /// As [`Program::run`].
    ///
    /// # Safety
    /// As [`Program::run`].
    #[expect(clippy::too_many_arguments, reason = "they are those of `run`, and the deadline")]
    pub unsafe fn run_until(
        &self,
        args: &[u64],
        grid: [u32; 3],
        program: [u32; 3],
        scratch: &mut Scratch,
        checked: bool,
        conflicts: &Conflicts,
        deadline: Option<&Deadline>,
    ) -> Result<(), Violation> {
        assert_eq!(args.len(), self.code.words, "the kernel takes {} argument words", self.code.words);
        let memory = scratch.prepare(self);
        // SAFETY: the scratch was prepared for this code; the tensors and the conflicts are the caller's promise.
        unsafe { execute::run(&self.code, memory, args, grid, program, checked, conflicts, deadline) }
    }
}

/// The time at which programs stop. All programs of a launch share one.
#[derive(Debug)]
pub struct Deadline {
    end: Instant,
    passed: AtomicBool,
}

impl Deadline {
    /// A deadline at a time.
    pub fn at(end: Instant) -> Deadline {
        Deadline { end, passed: AtomicBool::new(false) }
    }

    /// Whether a program has stopped because of it, or would stop now.
    pub fn has_passed(&self) -> bool {
        if self.passed.load(Ordering::Relaxed) {
            return true;
        }
        let has_passed = Instant::now() >= self.end;
        if has_passed {
            self.passed.store(true, Ordering::Relaxed);
        }
        has_passed
    }
}

/// The memory in which a program computes. Make one per thread and reuse it.
#[derive(Debug, Default)]
pub struct Scratch {
    blocks: Vec<Block>,
    prepared_for: u64,
}

/// The unit of the scratch, aligned for every element type and for vector code.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Block([u8; Block::BYTES]);

impl Block {
    const BYTES: usize = 64;
}

impl Scratch {
    /// An empty scratch. It grows when a program first runs in it.
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Grows the scratch for a program and writes its constants, unless the last program that ran here is the same.
    fn prepare(&mut self, program: &Program) -> *mut u8 {
        if self.prepared_for != program.id {
            let blocks = program.code.scratch_bytes.div_ceil(Block::BYTES);
            self.blocks.resize(blocks.max(self.blocks.len()), Block([0; Block::BYTES]));
            let constants = &program.code.constants;
            // SAFETY: the scratch begins with the constants, and a `Block` is plain bytes.
            unsafe { self.blocks.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping(constants.as_ptr(), constants.len()) };
            self.prepared_for = program.id;
        }
        self.blocks.as_mut_ptr().cast()
    }
}

/// The reason for the end of a checked run: an access outside its tensor by an element whose mask is true, or a failed assertion.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The message of a failed assertion. In this case there is no access, and `index`, `length`, `parameter` and `lane` have no meaning.
    pub assertion: Option<Name>,
    /// The name of the access: `load`, `store`, `atomic_add`; or `device_assert!`.
    pub op: &'static str,
    /// The source file; empty if the kernel has none.
    pub file: Name,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The index of the program in the grid.
    pub program_id: [u32; 3],
    /// The offset of the element, in elements of the tensor.
    pub index: i64,
    /// The length of the tensor in elements.
    pub length: u64,
    /// The pointer's name in the kernel's signature.
    pub parameter: Name,
    /// The index of the element in the tile, in row-major order.
    pub lane: usize,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Violation { assertion, op, file, line, column, program_id: [x, y, z], index, length, parameter, lane } = self;
        let held = if *length == 1 { "1 element".to_string() } else { format!("{length} elements") };
        match assertion {
            Some(message) => write!(f, "{message}: program ({x}, {y}, {z})")?,
            None if parameter.is_empty() => {
                write!(f, "`{op}` at index {index} of what an address leads to: lane {lane} of program ({x}, {y}, {z})")?;
            }
            None => write!(f, "`{op}` at index {index} of `{parameter}`, which has {held}: lane {lane} of program ({x}, {y}, {z})")?,
        }
        if *line != 0 {
            write!(f, ", at {file}:{line}:{column}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Violation {}
