//! Shared memory that no program of a launch uses, because some launch values are false in all of them.

use std::fmt;

/// A statement of the PTX: if these launch values are false in all programs, a CTA uses only so many bytes of shared memory.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Unused {
    pub(crate) bytes: u32,
    /// The numbers of the launch values, which are of type `bool`, in order.
    pub(crate) falses: Vec<usize>,
}

impl Unused {
    pub(crate) fn new(falses: &[usize], bytes: u32) -> Unused {
        let mut falses = falses.to_vec();
        falses.sort_unstable();
        falses.dedup();
        Unused { bytes, falses }
    }

    /// Reads the statement from a line of a PTX text, without the `// ` in front of it; `None` if the line is another one.
    pub(super) fn of_line(line: &str) -> Option<Unused> {
        let line = line.strip_prefix("shared memory: ")?;
        let (bytes, falses) = line.split_once(" bytes a CTA without launch values ")?;
        let falses = falses.split(", ").map(|number| number.parse().ok()).collect::<Option<_>>()?;
        Some(Unused { bytes: bytes.parse().ok()?, falses })
    }
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let falses: Vec<String> = self.falses.iter().map(ToString::to_string).collect();
        write!(f, "shared memory: {} bytes a CTA without launch values {}", self.bytes, falses.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_read_as_it_was_written() {
        for falses in [&[12][..], &[7, 3, 7]] {
            let unused = Unused::new(falses, 4096);
            assert_eq!(Unused::of_line(&unused.to_string()), Some(unused));
        }
        assert_eq!(Unused::of_line("shared memory: 4096 bytes a CTA"), None);
        assert_eq!(Unused::of_line("launch values:"), None);
    }
}
