//! The requirements of `#[kernel(require(..))]`: instructions that the code of a kernel must have.

use std::fmt;

/// The beginning of the comment in the head of a PTX text.
const STATED: &str = "// requires ";

/// A part of the fast path of matrix products that a kernel may not lose: `#[kernel(require(..))]`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Requirement {
    /// Each `dot` is a product of warpgroups, in launches whose tensors can be copied in blocks.
    Wgmma,
    /// In these, the operands of each `dot` and the stores of what it gives are tensor copies.
    Tma,
    /// In these, a warp of its own copies ahead.
    Specialized,
}

impl Requirement {
    /// All of them.
    pub const ALL: [Requirement; 3] = [Requirement::Wgmma, Requirement::Tma, Requirement::Specialized];

    /// Its name in attributes and in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Requirement::Wgmma => "wgmma",
            Requirement::Tma => "tma",
            Requirement::Specialized => "specialized",
        }
    }

    /// The comment in the head of a PTX text, with the end of the line; empty without requirements.
    pub(crate) fn stated(requires: &[Requirement]) -> String {
        let names: Vec<&str> = requires.iter().map(|requirement| requirement.name()).collect();
        if names.is_empty() { String::new() } else { format!("{STATED}{}\n", names.join(", ")) }
    }

    /// Does a PTX text state in its head that the kernel requires something?
    pub fn is_stated(ptx: &str) -> bool {
        ptx.lines().take_while(|line| line.starts_with("//")).any(|line| line.starts_with(STATED))
    }

    /// The requirement with that name.
    pub fn of_name(name: &str) -> Option<Requirement> {
        Requirement::ALL.into_iter().find(|requirement| requirement.name() == name)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
