//! Programs: kernels with resolved names, expanded calls and resolved branches.

mod addresses;
mod build;
mod callers;
mod effect;
mod reconverge;
mod scope;

use std::sync::Arc;

use crate::instructions::{Instruction, Register, Uses, Value};
use crate::ptx::{Position, SourceLine};

pub(crate) use addresses::{Globals, allocate_shared, bytes as bytes_of};
pub(crate) use build::build;
pub(crate) use effect::Effect;
pub(crate) use scope::{Named, Scope};

/// A kernel that is ready to run.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    /// The names of registers, indexed by [`Register`].
    pub(crate) registers: Vec<String>,
    pub(crate) params: Vec<Param>,
    /// The size of static shared memory in bytes.
    pub(crate) shared_bytes: u32,
    /// The start of dynamic shared memory, after the static part and aligned.
    pub(crate) dynamic_shared_start: u32,
    /// The size of a thread's local memory in bytes.
    pub(crate) local_bytes: u32,
    /// Performance directives such as `.reqntid`.
    pub(crate) directives: Vec<(String, Vec<u64>)>,
    /// The numbers and names of `.file`.
    pub(crate) files: Vec<(u32, String)>,
    /// Whether a CTA may observe the work of another running CTA.
    pub(crate) is_cooperative: bool,
}

/// The offset of a parameter among the bytes of all parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// One instruction of a program.
pub(crate) struct Step {
    pub(crate) action: Action,
    /// The predicate register, and the required value.
    pub(crate) guard: Option<(Register, bool)>,
    /// The registers of the operands.
    pub(crate) uses: Uses,
    pub(crate) effect: Effect,
    pub(crate) line: SourceLine,
    /// The call sites of the function that contains the line, innermost first.
    pub(crate) callers: Arc<[SourceLine]>,
    pub(crate) position: Position,
    pub(crate) text: String,
}

/// The action of a step.
pub(crate) enum Action {
    /// A decoded instruction.
    Work(Box<dyn Instruction>),
    /// A branch to another step.
    Branch { target: u32, reconverge: Option<u32> },
    /// An indexed branch to a step of a table.
    BranchTable { index: Value, targets: Vec<u32>, reconverge: Option<u32> },
    /// Exit of the thread.
    Exit,
}

/// A problem of a text, and its position.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Problem {
    pub(crate) position: Position,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(position: Position, message: impl Into<String>) -> Problem {
        Problem { position, message: message.into() }
    }
}
