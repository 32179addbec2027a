//! The CPU executor: runs one program of a grid, a tile at a time.
//!
//! [`Program::compile`] translates specialised Tile IR once: each op becomes an instruction that is one tight loop over a tile, with its
//! operands at fixed places of a [`Scratch`] which liveness keeps small enough for the L1 cache. [`Program::run`] executes the list. It is
//! the default without a GPU, the reference for every GPU result, and, with `checked`, the debugger.
//!
//! | file | what it knows |
//! |---|---|
//! | `forms` | which tiles are functions of the lane's index: offsets `a + b * lane`, masks `offset < n` |
//! | `translate`, `transfer`, `symbolic`, `control`, `combine` | IR to instructions |
//! | `allocate` | instructions to places in the scratch |
//! | `conflicts` | which loads and stores may meet those of other programs |
//! | `code` | the instructions |
//! | `execute`, `access`, `atomic`, `lookup`, `memory`, `shared` | running them |
//!
//! **Memory.** Lanes outside their tensor never touch memory, in `unchecked` kernels too. Programs of one launch run in parallel over the same
//! tensors. Two programs may store to one element, or one may load what another stores: such an element is accessed by relaxed atomics, so that a load
//! gives one of the values that were stored, whole. An access is plain only where `conflicts` proves that no other program accesses its elements.

mod access;
mod allocate;
mod atomic;
mod code;
mod combine;
mod conflicts;
mod control;
mod execute;
mod forms;
mod lookup;
mod memory;
mod shared;
mod symbolic;
mod transfer;
mod translate;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::ir::Verified;
use crate::location::Name;
use code::Code;

pub use conflicts::Conflicts;

/// A kernel translated for the CPU. Immutable: any number of threads may run it, each with a [`Scratch`] of its own.
#[derive(Debug)]
pub struct Program {
    /// Tells scratches apart that were prepared for different programs.
    id: u64,
    code: Code,
}

impl Program {
    /// Translates a specialised kernel.
    pub fn compile(kernel: Verified<'_>) -> Program {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Program { id: NEXT.fetch_add(1, Ordering::Relaxed), code: translate::translate(kernel.func()) }
    }

    /// How many argument words [`Program::run`] takes: two for a pointer (address, then length in elements), one for a scalar.
    pub fn words(&self) -> usize {
        self.code.words
    }

    /// How many bytes of scratch memory a run works in.
    pub fn scratch_bytes(&self) -> usize {
        self.code.scratch_bytes
    }

    /// Which loads and stores may conflict with those of other programs of a launch, when programs run at the same time. `args` and `grid` are as for
    /// [`Program::run`].
    ///
    /// Costs some microseconds; the last answer is remembered.
    ///
    /// # Panics
    /// If `args` has not [`Program::words`] words.
    pub fn conflicts(&self, args: &[u64], grid: [u32; 3]) -> Conflicts {
        assert_eq!(args.len(), self.code.words, "the kernel takes {} argument words", self.code.words);
        self.code.decider.conflicts(args, grid)
    }

    /// Runs the program at index `program` of a grid of `grid` programs.
    ///
    /// `args` are the parameter words in the order of the signature; a scalar's bits are zero-extended. Lanes outside their tensor read
    /// `other`, or 0, and store nothing; with `checked` the first such lane whose mask is true ends the run.
    ///
    /// # Errors
    /// With `checked`: the first access outside its tensor or assertion that does not hold, in the order of the kernel's text.
    ///
    /// # Panics
    /// If `args` has not [`Program::words`] words.
    ///
    /// # Safety
    /// For each pointer parameter, the address is that of `length` initialised elements that live through the call, aligned for their type if
    /// the kernel has atomics on them, or `length` is 0.
    /// Those of a `ptr_mut` overlap no other parameter's, unless the kernel is `unchecked`, and nobody but programs of this launch accesses them
    /// during the call. Programs of the launch may run on other threads at the same time if `conflicts` is what [`Program::conflicts`] gives for
    /// these `args` and this `grid`, for all of them; with [`Conflicts::none`] they run one after another.
    pub unsafe fn run(
        &self,
        args: &[u64],
        grid: [u32; 3],
        program: [u32; 3],
        scratch: &mut Scratch,
        checked: bool,
        conflicts: &Conflicts,
    ) -> Result<(), Violation> {
        assert_eq!(args.len(), self.code.words, "the kernel takes {} argument words", self.code.words);
        let memory = scratch.prepare(self);
        // SAFETY: the scratch was prepared for this code; the tensors and the conflicts are the caller's promise.
        unsafe { execute::run(&self.code, memory, args, grid, program, checked, conflicts) }
    }
}

/// The memory that a program computes in: make one a thread and reuse it.
#[derive(Debug, Default)]
pub struct Scratch {
    blocks: Vec<Block>,
    prepared_for: u64,
}

/// What the scratch is made of: aligned for every element and for vector code.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Block([u8; Block::BYTES]);

impl Block {
    const BYTES: usize = 64;
}

impl Scratch {
    /// An empty one; it grows when a program first runs in it.
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Makes room for a program and writes its constants, unless the last program that ran here is the same.
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

/// What ends a checked run: an access outside its tensor, by a lane whose mask was true, or an assertion that does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// What a failed assertion says: then there is no access, and `index`, `length`, `parameter` and `lane` mean nothing.
    pub assertion: Option<Name>,
    /// The word that accesses: `load`, `store`, `atomic_add`; or `device_assert!`.
    pub op: &'static str,
    /// The source file; empty if the kernel names none.
    pub file: Name,
    /// The line, from 1; 0 if unknown.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// Which program of the grid.
    pub program_id: [u32; 3],
    /// The offset of the lane in elements.
    pub index: i64,
    /// The length of the tensor in elements.
    pub length: u64,
    /// The pointer's name in the kernel's signature.
    pub parameter: Name,
    /// Which lane of the tile, in row-major order.
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
