//! What a kernel did wrong, and where.

use std::fmt;

use crate::arguments::{self, Element};
use crate::lanes::Lanes;
use crate::ptx::Space;

/// A mistake of a kernel: what, where in the source and in the PTX, and which thread.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// What is wrong.
    pub kind: FaultKind,
    /// The kernel.
    pub kernel: String,
    /// The source file that a `.loc` names, if any.
    pub file: Option<String>,
    /// Line in that file; 0 without `.loc`.
    pub line: u32,
    /// Column in that file; 0 without `.loc`.
    pub column: u32,
    /// The lines that called the device function which the line is in, inlined or not; innermost first.
    pub callers: Vec<Caller>,
    /// Line in the PTX.
    pub ptx_line: u32,
    /// The PTX instruction.
    pub instruction: String,
    /// The program (CTA) of the thread.
    pub cta: [u32; 3],
    /// The thread, inside its CTA.
    pub thread: [u32; 3],
    /// The element of the launch's arguments that an access to global memory meant: more than one if arguments overlap, none if no argument is there.
    pub elements: Vec<Element>,
}

impl Fault {
    /// The elements as one phrase, such as ``element 17 of argument `x` ``; none if no argument is meant.
    pub fn element(&self) -> Option<String> {
        (!self.elements.is_empty()).then(|| arguments::phrase(&self.elements))
    }
}

/// A line that calls a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The source file, if its number has a name.
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
        /// Where.
        space: Space,
        /// The address.
        address: u64,
        /// How many bytes.
        bytes: u32,
        /// The allocation that ends or begins next to it.
        nearest: Option<String>,
    },
    /// An access to memory that was freed.
    #[error("access of {bytes} bytes at address {address:#x}, in memory that was freed")]
    Freed {
        /// The address.
        address: u64,
        /// How many bytes.
        bytes: u32,
    },
    /// A store to memory that may only be read.
    #[error("store to {space} address {address:#x}, which is read-only")]
    ReadOnly {
        /// Where.
        space: Space,
        /// The address.
        address: u64,
    },
    /// An address that is no multiple of what the access asks for.
    #[error("{space} address {address:#x} is not a multiple of {alignment}")]
    Misaligned {
        /// Where.
        space: Space,
        /// The address.
        address: u64,
        /// What it must be a multiple of.
        alignment: u32,
    },
    /// A register was read before it was written, and something depends on what it held.
    #[error("register `{register}` is read before it is written")]
    UninitialisedRegister {
        /// Its name.
        register: String,
    },
    /// Memory was read before it was written, and, if it is shared or local, something depends on what it held.
    #[error("{space} memory at address {address:#x} is read before it is written")]
    UninitialisedMemory {
        /// Where.
        space: Space,
        /// The address of the first such byte.
        address: u64,
    },
    /// Two threads use the same shared memory, one of them writes, and nothing orders them.
    #[error("shared memory race at address {address:#x}: this {access} and a {other_access} by thread {other_thread:?}{} are not ordered{hint}", at_line(*other_line))]
    SharedRace {
        /// The shared address.
        address: u64,
        /// `load`, `store` or what else this access is.
        access: &'static str,
        /// The same of the other.
        other_access: &'static str,
        /// The other thread, inside its CTA.
        other_thread: [u32; 3],
        /// The source line of the other access; 0 if it is not known.
        other_line: u32,
        /// What is missing, with a leading `: `; or nothing.
        hint: &'static str,
    },
    /// Two threads of one program or of two use the same global memory, one of them writes, and nothing orders them.
    #[error("global memory race at address {address:#x}, element {element} of {element_bytes} bytes in {allocation}: this {access} and a {other_access} by thread {other_thread:?} of program {other_cta:?}{} are not ordered{hint}", at_line(*other_line))]
    GlobalRace {
        /// The address of the first byte that both use.
        address: u64,
        /// The element of the allocation that it is in, counted in elements of this access.
        element: u64,
        /// The bytes of such an element.
        element_bytes: u8,
        /// The allocation.
        allocation: Box<str>,
        /// `load`, `store` or what else this access is.
        access: &'static str,
        /// The same of the other.
        other_access: &'static str,
        /// The program (CTA) of the other thread.
        other_cta: [u32; 3],
        /// The other thread, inside its CTA.
        other_thread: [u32; 3],
        /// The source line of the other access; 0 if it is not known.
        other_line: u32,
        /// What is missing, with a leading `: `; or nothing.
        hint: &'static str,
    },
    /// Data of an asynchronous operation was touched before the operation was waited for.
    #[error("{space} address {address:#x} belongs to {operation} that was not waited for{}", at_line(*issued_line))]
    PendingAsync {
        /// Where.
        space: Space,
        /// The address.
        address: u64,
        /// `an asynchronous copy`, `a wgmma`.
        operation: &'static str,
        /// The source line that issued it; 0 if it is not known.
        issued_line: u32,
    },
    /// Registers of an asynchronous matrix instruction were touched before it was waited for.
    #[error("register `{register}` belongs to a wgmma that was not waited for")]
    PendingRegister {
        /// Its name.
        register: String,
    },
    /// An instruction that a whole warp must execute together was reached by a part of it.
    #[error("only {} of the {} running threads of the warp execute this together", reached.count(), expected.count())]
    DivergentWarp {
        /// The lanes that came.
        reached: LaneSet,
        /// The lanes that should have come.
        expected: LaneSet,
    },
    /// A member mask that does not name the threads that execute the instruction.
    #[error("member mask {mask:#010x}: {reason}")]
    MemberMask {
        /// The mask.
        mask: u32,
        /// What is wrong with it.
        reason: String,
    },
    /// A lane uses what a shuffle read from a lane that did not take part. The reading alone is no mistake.
    #[error("lane {lane} uses what it read from lane {source_lane}, which did not take part in the shuffle")]
    InactiveSource {
        /// The lane that read.
        lane: u32,
        /// The lane that was read.
        source_lane: u32,
    },
    /// A barrier used in a way that the ISA forbids.
    #[error("barrier {barrier}: {reason}")]
    Barrier {
        /// Its number.
        barrier: u32,
        /// What is wrong.
        reason: String,
    },
    /// An mbarrier used in a way that the ISA forbids.
    #[error("mbarrier at shared address {address:#x}: {reason}")]
    Mbarrier {
        /// Its address.
        address: u64,
        /// What is wrong.
        reason: String,
    },
    /// Every thread that is left waits for something that can not happen, in an instruction or in a loop that nothing will end.
    #[error("no thread can make progress: {description}")]
    Deadlock {
        /// Who waits for what.
        description: String,
    },
    /// More instructions than the launch allows.
    #[error("no end after {instructions} instructions of one warp")]
    TooLong {
        /// How many were executed.
        instructions: u64,
    },
    /// An operand value that the ISA leaves undefined.
    #[error("{reason}")]
    Illegal {
        /// What is wrong.
        reason: String,
    },
    /// A `trap` instruction, or a failed device assertion.
    #[error("the kernel trapped{}", if message.is_empty() { String::new() } else { format!(": {message}") })]
    Trap {
        /// The message of an assertion.
        message: String,
    },
}

impl FaultKind {
    /// The address of the access to global memory that is at fault; none for other memory and other mistakes.
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

/// A set of lanes of a warp, as bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaneSet(pub u32);

impl LaneSet {
    /// How many lanes.
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

/// A fault inside an instruction, before anybody has said where: the lane and the mistake.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Trap {
    pub(crate) lane: usize,
    pub(crate) kind: Box<FaultKind>,
    /// The step that made the mistake, if it is not the one that shows it.
    pub(crate) step: Option<u32>,
}

impl Trap {
    pub(crate) fn new(lane: usize, kind: FaultKind) -> Trap {
        Trap { lane, kind: Box::new(kind), step: None }
    }

    /// The mistake is at that step, unless the trap names one.
    pub(crate) fn at(self, step: u32) -> Trap {
        Trap { step: self.step.or(Some(step)), ..self }
    }
}
