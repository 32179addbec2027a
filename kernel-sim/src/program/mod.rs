//! A kernel, ready to run: names looked up, calls expanded, branches resolved.

mod build;
mod callers;
mod effect;
mod place;
mod reconverge;
mod scope;

use std::sync::Arc;

use crate::instructions::{Instruction, Register, Uses, Value};
use crate::ptx::{Position, SourceLine};

pub(crate) use build::build;
pub(crate) use effect::Effect;
pub(crate) use place::{Globals, bytes as bytes_of, place_shared};
pub(crate) use scope::{Named, Scope};

/// A kernel, ready to run.
pub(crate) struct Program {
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    /// Names of registers, by [`Register`].
    pub(crate) registers: Vec<String>,
    pub(crate) params: Vec<Param>,
    /// Static shared memory.
    pub(crate) shared_bytes: u32,
    /// What the start of dynamic shared memory is a multiple of; it comes after the static part.
    pub(crate) dynamic_shared_start: u32,
    /// Local memory of a thread.
    pub(crate) local_bytes: u32,
    /// `.reqntid` and its like.
    pub(crate) directives: Vec<(String, Vec<u64>)>,
    /// File names that a `.loc` may number.
    pub(crate) files: Vec<(u32, String)>,
    /// May one CTA see what another did while both run?
    pub(crate) is_cooperative: bool,
}

/// Where a parameter stands among the bytes of them all.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Param {
    pub(crate) name: String,
    pub(crate) offset: u32,
    pub(crate) bytes: u32,
}

/// One instruction of a program.
pub(crate) struct Step {
    pub(crate) action: Action,
    /// The predicate, and the value it must have.
    pub(crate) guard: Option<(Register, bool)>,
    /// The registers of its operands.
    pub(crate) uses: Uses,
    pub(crate) effect: Effect,
    pub(crate) line: SourceLine,
    /// The lines that called the function that the line is in, innermost first.
    pub(crate) callers: Arc<[SourceLine]>,
    pub(crate) position: Position,
    pub(crate) text: String,
}

/// What a step does.
pub(crate) enum Action {
    /// An instruction of the table.
    Work(Box<dyn Instruction>),
    /// Goes to another step.
    Branch { target: u32, reconverge: Option<u32> },
    /// Goes to the step of a table.
    BranchTable { index: Value, targets: Vec<u32>, reconverge: Option<u32> },
    /// Ends the thread.
    Exit,
}

/// What is wrong with a text, and where.
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
