//! Advisories of NVIDIA's assembler about warpgroup products: that it executes them one after another, or adds waits between them.
//!
//! The assembler and the driver, which contains one, print them as information in their logs:
//!
//! ```text
//! ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to .. in the function 'matmul'
//! ptxas info    : (C7517) warpgroup.wait is injected in around line 26 by compiler to allow use of registers defined by GMMA in function 'matmul'
//! ```

use std::fmt;

/// The numbers of these advisories.
const NUMBERS: std::ops::Range<u32> = 7500..7600;
/// The beginning of one about code that is slower than its text.
const LOSS: &str = "Potential Performance Loss";

/// An advisory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advisory {
    /// Its number: 7510 for `C7510`.
    pub number: u32,
    /// What it says.
    pub text: String,
    /// The line of the PTX, if it names one.
    pub line: Option<u32>,
}

impl Advisory {
    /// The advisories in a log, each once.
    pub fn parse_all(log: &str) -> Vec<Advisory> {
        let mut advisories = Vec::new();
        for line in log.lines() {
            let found = line.match_indices("(C").find_map(|(at, _)| {
                let (number, text) = line[at + 2..].split_once(')')?;
                let number = number.parse().ok().filter(|number| NUMBERS.contains(number))?;
                // The line stands in the text, or in front of the number.
                Some(Advisory { number, text: text.trim().to_owned(), line: stated_line(text).or_else(|| stated_line(&line[..at])) })
            });
            advisories.extend(found.filter(|advisory| !advisories.contains(advisory)));
        }
        advisories
    }

    /// Does it say that products are slower than their text, or that registers do not move between warpgroups?
    pub fn is_loss(&self) -> bool {
        self.text.starts_with(LOSS)
    }

    /// The file and the line of the source from which the line of the PTX was made.
    pub fn source<'p>(&self, ptx: &'p str) -> Option<(&'p str, u32)> {
        let before = usize::try_from(self.line?).ok()?;
        let mut numbers = ptx.lines().take(before).filter_map(|line| line.trim_start().strip_prefix(".loc ")).last()?.split_whitespace();
        let (file, line) = (numbers.next()?, numbers.next()?.parse().ok()?);
        let name = ptx.lines().filter_map(|line| line.strip_prefix(".file ")?.split_once(' ')).find(|(number, _)| *number == file)?.1;
        Some((name.trim().trim_matches('"'), line))
    }

    /// The advisory with the line of the source, if it is known.
    pub fn describe(&self, ptx: &str) -> String {
        let source = self.source(ptx).map_or(String::new(), |(file, line)| format!("\n --> {file}:{line}"));
        format!("{self}{source}")
    }
}

/// The number behind the word `line`.
fn stated_line(text: &str) -> Option<u32> {
    let mut words = text.split([' ', ',', ';']).skip_while(|word| *word != "line");
    words.nth(1)?.parse().ok()
}

impl fmt::Display for Advisory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "(C{}) {}", self.number, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of ptxas 13.0 for products whose results are used before the wait, and for one in a loop that not all warps execute.
    const SAID: &str = "\
ptxas info    : (C7519) warpgroup.arrive is injected in around line 6 by compiler to allow use of registers in GMMA in function 'k'
ptxas info    : (C7517) warpgroup.wait is injected in around line 4 by compiler to allow use of registers defined by GMMA in function 'k'
ptxas info    : (C7520) Potential Performance Loss: wgmma.mma_async instructions are serialized due to program dependence on compiler-inserted WG.AR in divergent path in the function 'k'
ptxas info    : (C7520) Potential Performance Loss: wgmma.mma_async instructions are serialized due to program dependence on compiler-inserted WG.AR in divergent path in the function 'k'
ptxas info    : 0 bytes gmem
ptxas info    : (C4201) something else
ptxas info    : Used 30 registers, used 0 barriers
";

    const PTX: &str = ".version 8.0\n.loc 1 7 5\nwgmma.fence.sync.aligned;\nadd.f32 %f4, %f0, %f1;\n\t.loc 2 9 1\nst.global.f32 [%d0], %f4;\n\n.file 1 \"kernel.rs\"\n.file 2 \"other.rs\"\n";

    #[test]
    fn advisories_are_read_off_the_log_with_their_lines() {
        let advisories = Advisory::parse_all(SAID);
        let found: Vec<(u32, Option<u32>, bool)> =
            advisories.iter().map(|advisory| (advisory.number, advisory.line, advisory.is_loss())).collect();
        assert_eq!(found, [(7519, Some(6), false), (7517, Some(4), false), (7520, None, true)]);
        let sources: Vec<Option<(&str, u32)>> = advisories.iter().map(|advisory| advisory.source(PTX)).collect();
        assert_eq!(sources, [Some(("other.rs", 9)), Some(("kernel.rs", 7)), None]);
        let loss = "Potential Performance Loss: wgmma.mma_async instructions are serialized due to program dependence on compiler-inserted WG.AR in divergent path in the function 'k'";
        assert_eq!(advisories[2].describe(PTX), format!("(C7520) {loss}"));
        assert!(advisories[1].describe(PTX).ends_with("in function 'k'\n --> kernel.rs:7"));
    }

    #[test]
    fn a_line_may_stand_in_front() {
        let log =
            "ptxas application ptx input, line 4; info   : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized";
        assert_eq!(Advisory::parse_all(log)[0].source(PTX), Some(("kernel.rs", 7)));
    }

    #[test]
    fn a_log_without_advisories_has_none() {
        for log in ["", "ptxas info    : 0 bytes gmem", "(C", "(C75", "(C7510", "(Cx7510) a", "(C99999999999) a", "ptxas info : (C7600) a"]
        {
            assert_eq!(Advisory::parse_all(log), [], "{log}");
        }
        let unknown = Advisory { number: 7517, text: String::new(), line: Some(u32::MAX) };
        assert_eq!((unknown.source(""), unknown.source(".loc 3 1 1\n")), (None, None));
    }

    /// The assembler itself, if `GALATEA_PTXAS` names one.
    #[test]
    fn the_assembler_says_so_of_such_code() {
        let Some(ptxas) = super::super::of_environment() else { return eprintln!("skipped: `GALATEA_PTXAS` names no assembler") };
        let text = include_str!("advisory.ptx");
        let file = tempfile::Builder::new().suffix(".ptx").tempfile().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let said = super::super::Usage::of_file(&ptxas, file.path(), "sm_90a").unwrap();
        assert_eq!(said[0].advisories.iter().map(|advisory| advisory.source(text)).collect::<Vec<_>>(), [Some(("kernel.rs", 9))]);
    }
}
