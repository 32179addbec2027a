//! Shared memory of ops: where an op exchanges elements between threads, or where the slots of an async buffer are.
//!
//! ```text
//! %1 = convert %0 {at_once = [512], shared = "0..2048, cta 0..2048"} : ..
//! ```
//!
//! The threads exchange 512 elements at once, in two parts. In front of the second one, all threads of the CTA wait: some may still read the first one.

use std::ops::Range;

use crate::ir::constexpr::ConstExpr;
use crate::ir::fields::{AttributeValue, Parts, take_attribute};

/// The shared memory of an op.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Scratch {
    /// How much goes through shared memory at once, for each exchange of the op: elements, registers of a thread, or runs of a reduction and, if not even one fits,
    /// its inputs.
    pub at_once: Vec<u32>,
    /// The bytes, in the order in which the op uses them.
    pub parts: Vec<Part>,
}

/// Bytes of shared memory that an op uses for one part of an exchange.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The offsets of the bytes.
    pub range: Range<u32>,
    /// The threads that wait for each other before the op writes: some may still read what was in these bytes.
    pub wait: Option<Wait>,
}

/// Threads that wait for each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// Those of each CTA.
    Cta,
    /// Those of all CTAs of a program.
    Program,
}

impl Scratch {
    /// The end of the last bytes.
    pub fn end(&self) -> u32 {
        self.parts.iter().map(|part| part.range.end).max().unwrap_or_default()
    }

    /// Adds itself to the attributes of an op.
    pub(crate) fn print(&self, parts: &mut Parts) {
        if !self.at_once.is_empty() {
            let list = self.at_once.iter().map(|count| ConstExpr::Int((*count).into())).collect();
            parts.attributes.push(("at_once".to_string(), AttributeValue::List(list)));
        }
        if !self.parts.is_empty() {
            let list: Vec<String> = self.parts.iter().map(Part::text).collect();
            parts.attributes.push(("shared".to_string(), AttributeValue::Text(list.join(", "))));
        }
    }

    /// Takes itself out of the attributes of an op; `None` if it uses no shared memory.
    ///
    /// # Errors
    /// A message in the terms of the text form.
    pub(crate) fn parse(parts: &mut Parts) -> Result<Option<Scratch>, String> {
        let mut scratch = Scratch::default();
        match take_attribute("at_once", parts) {
            None => {}
            Some(AttributeValue::List(list)) => {
                let counts = list.iter().map(|count| count.as_int().and_then(|count| u32::try_from(count).ok()));
                scratch.at_once = counts.collect::<Option<_>>().ok_or("`at_once` is a list of counts")?;
            }
            Some(_) => return Err("`at_once` is a list of counts".to_string()),
        }
        match take_attribute("shared", parts) {
            None => {}
            Some(AttributeValue::Text(text)) => {
                scratch.parts =
                    text.split(", ").map(Part::parse).collect::<Option<_>>().ok_or_else(|| format!("`shared` cannot be \"{text}\""))?;
            }
            Some(_) => return Err("attribute `shared` is not a text".to_string()),
        }
        Ok(Some(scratch).filter(|scratch| *scratch != Scratch::default()))
    }
}

impl Part {
    fn text(&self) -> String {
        let wait = match self.wait {
            None => "",
            Some(Wait::Cta) => "cta ",
            Some(Wait::Program) => "program ",
        };
        format!("{wait}{}..{}", self.range.start, self.range.end)
    }

    fn parse(text: &str) -> Option<Part> {
        let (wait, range) = match text.split_once(' ') {
            None => (None, text),
            Some(("cta", range)) => (Some(Wait::Cta), range),
            Some(("program", range)) => (Some(Wait::Program), range),
            Some(_) => return None,
        };
        let (start, end) = range.split_once("..")?;
        Some(Part { range: start.parse().ok()?..end.parse().ok()?, wait })
    }
}
