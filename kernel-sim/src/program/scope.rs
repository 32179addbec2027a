//! The names that are visible in a function.

use std::collections::HashMap;

use crate::instructions::{Register, Special};
use crate::ptx::{Space, Type};

/// The entity that a name denotes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Named {
    /// A register.
    Register { register: Register, ty: Type },
    /// A variable: its address in its state space, which for `.global` and `.const` is also its generic address.
    Variable { space: Space, address: u64 },
    /// A special register.
    Special(Special),
}

/// The names that are visible at one position of the text, innermost block last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    blocks: Vec<HashMap<String, Named>>,
}

impl Scope {
    /// Enters a block.
    pub(crate) fn enter(&mut self) {
        self.blocks.push(HashMap::new());
    }

    /// Leaves a block and drops its names.
    pub(crate) fn leave(&mut self) {
        self.blocks.pop();
    }

    /// Declares a name in the innermost block; returns false if the block already declares it.
    pub(crate) fn declare(&mut self, name: &str, named: Named) -> bool {
        if self.blocks.is_empty() {
            self.enter();
        }
        self.blocks.last_mut().is_some_and(|block| block.insert(name.to_owned(), named).is_none())
    }

    /// The scope with only the outermost block, which has the names of the module.
    pub(crate) fn outermost(&self) -> Scope {
        Scope { blocks: self.blocks.first().cloned().into_iter().collect() }
    }

    /// The entity that a name denotes.
    pub(crate) fn lookup(&self, name: &str) -> Option<Named> {
        self.blocks.iter().rev().find_map(|block| block.get(name).copied()).or_else(|| Special::parse(name).map(Named::Special))
    }
}
