//! Faults: the kinds of mistakes in a kernel, and the source line, PTX instruction and thread of each.

use std::fmt;

use crate::arguments::{self, Element};
use crate::lanes::Lanes;
use crate::ptx::Space;

/// A mistake in a kernel, with its source line, its PTX instruction and its thread.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// The kind of the mistake.
    pub kind: FaultKind,
    /// The name of the kernel.
    pub kernel: String,
    /// The source file that `.loc` names; `None` without `.loc` or without a name for its number.
    pub file: Option<String>,
    /// Line in that file; 0 without `.loc`.
    pub line: u32,
    /// Column in that file; 0 without `.loc`.
    pub column: u32,
    /// The call sites of the device functions that contain the line, inlined or not; innermost first.
    pub callers: Vec<Caller>,
    /// Line in the PTX.
    pub ptx_line: u32,
    /// The PTX instruction.
    pub instruction: String,
    /// The program (CTA) of the thread.
    pub cta: [u32; 3],
    /// The thread, inside its CTA.
    pub thread: [u32; 3],
    /// The elements of the launch's arguments that the address of a global access belongs to: several if arguments overlap. For an address
    /// outside every argument, the element of the nearest argument; empty if no argument is near.
    pub elements: Vec<Element>,
}

impl Fault {
    /// The elements as one phrase, such as ``element 17 of argument `x` ``; `None` if there are no elements.
    pub fn element(&self) -> Option<String> {
        (!self.elements.is_empty()).then(|| arguments::phrase(&self.elements))
    }
}

/// The source line of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The source file, if the file number of `.loc` has a name.
    pub file: Option<String>,
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file.as_deref().unwrap_or("?"), self.line, self.column)
    }
}

/// The kinds of mistakes.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// An access to bytes that belong to no allocation or variable.
    #[error("access of {bytes} bytes at {space} address {address:#x}, which is outside every allocation{}", nearest.as_ref().map_or(String::new(), |text| format!(" ({text})")))]
    OutOfBounds {
        /// The state space.
        space: Space,
        /// The address.
        address: u64,
        /// The size of the access.
        bytes: u32,
        /// A description of the nearest allocation.
        nearest: Option<String>,
    },
    /// An access to memory that was freed.
    #[error("access of {bytes} bytes at address {address:#x}, in memory that was freed")]
    Freed {
        /// The address.
        address: u64,
        /// The size of the access.
        bytes: u32,
    },
    /// A store to read-only memory.
    #[error("store to {space} address {address:#x}, which is read-only")]
    ReadOnly {
        /// The state space.
        space: Space,
        /// The address.
        address: u64,
    },
    /// An address that is not a multiple of the required alignment.
    #[error("{space} address {address:#x} is not a multiple of {alignment}")]
    Misaligned {
        /// The state space.
        space: Space,
        /// The address.
        address: u64,
        /// The required alignment in bytes.
        alignment: u32,
    },
    /// A read of a register that was not written before, where a result depends on the value.
    #[error("register `{register}` is read before it is written")]
    UninitialisedRegister {
        /// The name of the register.
        register: String,
    },
    /// A read of memory that was not written before. In shared and local memory this is a fault only where a result depends on the value.
    #[error("{space} memory at address {address:#x} is read before it is written")]
    UninitialisedMemory {
        /// The state space.
        space: Space,
        /// The address of the first uninitialised byte.
        address: u64,
    },
    /// Two conflicting accesses to shared memory by different threads, without happens-before between them.
    #[error("shared memory race at address {address:#x}: this {access} and a {other_access} by thread {other_thread:?}{} are not ordered{hint}", at_line(*other_line))]
    SharedRace {
        /// The shared address.
        address: u64,
        /// The kind of this access, such as `load` or `store`.
        access: &'static str,
        /// The kind of the other access.
        other_access: &'static str,
        /// The index of the other thread in its CTA.
        other_thread: [u32; 3],
        /// The source line of the other access; 0 if it is unknown.
        other_line: u32,
        /// The missing synchronisation, with a leading `: `; may be empty.
        hint: &'static str,
    },
    /// Two conflicting accesses to global memory by different threads, of one program or of two, without happens-before between them.
    #[error("global memory race at address {address:#x}, element {element} of {element_bytes} bytes in {allocation}: this {access} and a {other_access} by thread {other_thread:?} of program {other_cta:?}{} are not ordered{hint}", at_line(*other_line))]
    GlobalRace {
        /// The address of the first byte that both accesses use.
        address: u64,
        /// The index of this byte's element in the allocation, in units of `element_bytes`.
        element: u64,
        /// The element size of this access in bytes.
        element_bytes: u8,
        /// A description of the allocation.
        allocation: Box<str>,
        /// The kind of this access, such as `load` or `store`.
        access: &'static str,
        /// The kind of the other access.
        other_access: &'static str,
        /// The program (CTA) of the other thread.
        other_cta: [u32; 3],
        /// The index of the other thread in its CTA.
        other_thread: [u32; 3],
        /// The source line of the other access; 0 if it is unknown.
        other_line: u32,
        /// The missing synchronisation, with a leading `: `; may be empty.
        hint: &'static str,
    },
    /// An access to the data of an asynchronous operation before a wait for the operation.
    #[error("{space} address {address:#x} belongs to {operation} that was not waited for{}", at_line(*issued_line))]
    PendingAsync {
        /// The state space.
        space: Space,
        /// The address.
        address: u64,
        /// The kind of the operation: `an asynchronous copy` or `a wgmma`.
        operation: &'static str,
        /// The source line that issued the operation; 0 if it is unknown.
        issued_line: u32,
    },
    /// An access to a register of an asynchronous matrix instruction before a wait for the instruction.
    #[error("register `{register}` belongs to a wgmma that was not waited for")]
    PendingRegister {
        /// The name of the register.
        register: String,
    },
    /// An instruction that all threads of a warp must execute together (`.aligned`) was reached by only a part of them.
    #[error("only {} of the {} running threads of the warp execute this together", reached.count(), expected.count())]
    DivergentWarp {
        /// The lanes that reached the instruction.
        reached: LaneSet,
        /// The lanes that have to reach the instruction.
        expected: LaneSet,
    },
    /// A member mask that does not match the threads that execute the instruction.
    #[error("member mask {mask:#010x}: {reason}")]
    MemberMask {
        /// The mask.
        mask: u32,
        /// The reason why the mask is wrong.
        reason: String,
    },
    /// A use of a value that a shuffle read from a lane that did not execute the shuffle. The shuffle alone is no mistake.
    #[error("lane {lane} uses what it read from lane {source_lane}, which did not take part in the shuffle")]
    InactiveSource {
        /// The lane that used the value.
        lane: u32,
        /// The lane that the shuffle read from.
        source_lane: u32,
    },
    /// A use of a barrier that the PTX ISA forbids.
    #[error("barrier {barrier}: {reason}")]
    Barrier {
        /// The number of the barrier.
        barrier: u32,
        /// The reason why the use is wrong.
        reason: String,
    },
    /// A use of an mbarrier that the PTX ISA forbids.
    #[error("mbarrier at shared address {address:#x}: {reason}")]
    Mbarrier {
        /// The address of the mbarrier.
        address: u64,
        /// The reason why the use is wrong.
        reason: String,
    },
    /// Every remaining thread waits for an event that cannot happen: in an instruction, or in a loop that can never end.
    #[error("no thread can make progress: {description}")]
    Deadlock {
        /// The threads, their lines, and the event that each of them waits for.
        description: String,
    },
    /// A warp executed more instructions than the launch allows.
    #[error("no end after {instructions} instructions of one warp")]
    TooLong {
        /// The number of executed instructions.
        instructions: u64,
    },
    /// An operand value for which the PTX ISA leaves the behaviour undefined.
    #[error("{reason}")]
    Illegal {
        /// The reason why the value is illegal.
        reason: String,
    },
    /// A `trap` instruction, or a failed device assertion.
    #[error("the kernel trapped{}", if message.is_empty() { String::new() } else { format!(": {message}") })]
    Trap {
        /// The message of the assertion; empty for a `trap`.
        message: String,
    },
}

impl FaultKind {
    /// The address of the access to global memory at fault; `None` for other memory and other kinds of mistakes.
    pub(crate) fn global_address(&self) -> Option<u64> {
        match self {
            FaultKind::OutOfBounds { space, address, .. }
            | FaultKind::ReadOnly { space, address }
            | FaultKind::Misaligned { space, address, .. }
            | FaultKind::UninitialisedMemory { space, address }
            | FaultKind::PendingAsync { space, address, .. } => {
                matches!(space, Space::Global | Space::Const | Space::Generic).then_some(*address)
            }
            FaultKind::Freed { address, .. } | FaultKind::GlobalRace { address, .. } => Some(*address),
            _ => None,
        }
    }
}

/// A set of lanes of a warp, as a bit mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaneSet(pub u32);

impl LaneSet {
    /// The number of lanes.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }
}

impl From<Lanes> for LaneSet {
    fn from(lanes: Lanes) -> LaneSet {
        LaneSet(lanes.0)
    }
}

fn at_line(line: u32) -> String {
    if line == 0 { String::new() } else { format!(" (line {line})") }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { kind, kernel, file, line, column, callers, ptx_line, instruction, cta, thread, .. } = self;
        writeln!(f, "kernel `{kernel}`: {kind}")?;
        if let Some(element) = self.element() {
            writeln!(f, "  {element}")?;
        }
        if *line > 0 {
            writeln!(f, "  at {}:{line}:{column}", file.as_deref().unwrap_or("?"))?;
        }
        for caller in callers {
            writeln!(f, "  called at {caller}")?;
        }
        writeln!(f, "  in program {cta:?}, thread {thread:?}")?;
        write!(f, "  PTX line {ptx_line}: {instruction}")
    }
}

impl std::error::Error for Fault {}

/// A fault inside an instruction, before its location is known: only the lane and the kind.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Trap {
    pub(crate) lane: usize,
    pub(crate) kind: Box<FaultKind>,
    /// The step that made the mistake, if it is not the step that detected the mistake.
    pub(crate) step: Option<u32>,
}

impl Trap {
    pub(crate) fn new(lane: usize, kind: FaultKind) -> Trap {
        Trap { lane, kind: Box::new(kind), step: None }
    }

    /// Sets the step of the mistake, unless the trap already has one.
    pub(crate) fn at(self, step: u32) -> Trap {
        Trap { step: self.step.or(Some(step)), ..self }
    }
}
