//! What the names of a function mean.

use std::collections::HashMap;

use crate::instructions::{Register, Special};
use crate::ptx::{Space, Type};

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    /// A register.
    Register { register: Register, ty: Type },
    /// A variable: its address in its space (for `.global` and `.const` also its generic address).
    Variable { space: Space, address: u64 },
    /// A special register.
    Special(Special),
}

/// The names that can be seen from one place, innermost block last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    blocks: Vec<HashMap<String, Named>>,
}

impl Scope {
    /// Enters a block.
    pub(crate) fn enter(&mut self) {
        self.blocks.push(HashMap::new());
    }

    /// Leaves it, and forgets its names.
    pub(crate) fn leave(&mut self) {
        self.blocks.pop();
    }

    /// Gives a name a meaning in the innermost block; false if the block has one with that name.
    pub(crate) fn declare(&mut self, name: &str, named: Named) -> bool {
        if self.blocks.is_empty() {
            self.enter();
        }
        self.blocks.last_mut().is_some_and(|block| block.insert(name.to_owned(), named).is_none())
    }

    /// The names of the outermost block alone: those of the module.
    pub(crate) fn outermost(&self) -> Scope {
        Scope { blocks: self.blocks.first().cloned().into_iter().collect() }
    }

    /// What the name stands for.
    pub(crate) fn lookup(&self, name: &str) -> Option<Named> {
        self.blocks.iter().rev().find_map(|block| block.get(name).copied()).or_else(|| Special::parse(name).map(Named::Special))
    }
}
