//! The resource usage of kernels, as NVIDIA's assembler reports it.

use std::path::Path;
use std::process::Command;

use super::Advisory;

/// The resource usage of a function, as `ptxas --verbose` reports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The function's name in the PTX.
    pub function: String,
    /// The registers of a thread.
    pub registers: u32,
    /// The barriers of a CTA.
    pub barriers: u32,
    /// The static shared memory of a CTA, in bytes.
    pub shared_bytes: u32,
    /// The local memory of a thread, in bytes.
    pub local_bytes: u32,
    /// The bytes of spill stores and spill loads of a thread.
    pub spill_bytes: u32,
    /// The advisories about its warpgroup products.
    pub advisories: Vec<Advisory>,
}

impl Usage {
    /// Assembles a file of PTX with the `ptxas` at this path, and returns the resource usage of its functions. The machine code is discarded.
    ///
    /// # Errors
    /// The errors and warnings of the assembler, or the reason why it could not run. It is an error if the file states a target other than `target`.
    pub fn of_file(ptxas: &Path, ptx: &Path, target: &str) -> Result<Vec<Usage>, String> {
        let text = std::fs::read_to_string(ptx).map_err(|error| format!("cannot read {}: {error}", ptx.display()))?;
        let stated = stated_target(&text).ok_or("there is no `.target` line")?;
        if stated != target {
            return Err(format!("the file is kept for {target} but says `.target {stated}`"));
        }
        let folder = tempfile::tempdir().map_err(|error| format!("cannot make a directory: {error}"))?;
        let mut command = Command::new(ptxas);
        command.args(["--verbose", "--warning-as-error", "--gpu-name", target, "--output-file"]).arg(folder.path().join("cubin")).arg(ptx);
        let output = command.output().map_err(|error| format!("cannot start {}: {error}", ptxas.display()))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        let complaints: Vec<_> = said.lines().filter(|line| is_complaint(line)).collect();
        if !complaints.is_empty() {
            return Err(complaints.join("\n"));
        }
        if !output.status.success() {
            return Err(format!("ptxas ended with {}: {said}", output.status));
        }
        let usages = Usage::parse_all(&said);
        if usages.is_empty() { Err("ptxas found no function in it".to_owned()) } else { Ok(usages) }
    }

    /// Parses the output of `ptxas --verbose`, which describes each function in up to three lines.
    pub fn parse_all(said: &str) -> Vec<Usage> {
        let mut usages: Vec<Usage> = Vec::new();
        for line in said.lines() {
            if let Some((_, rest)) = line.split_once("Compiling entry function '") {
                let function = rest.split('\'').next().unwrap_or_default().to_owned();
                usages.push(Usage { function, ..Usage::default() });
            }
            let Some(usage) = usages.last_mut() else {
                continue;
            };
            let line = line.rsplit(" : ").next().unwrap_or(line).trim();
            for part in line.split(", ") {
                let number = part.split_whitespace().find_map(|word| word.parse::<u32>().ok()).unwrap_or(0);
                if part.ends_with("registers") {
                    usage.registers = number;
                } else if part.ends_with("barriers") {
                    usage.barriers = number;
                } else if part.ends_with("bytes smem") {
                    usage.shared_bytes = number;
                } else if part.ends_with("bytes lmem") || part.ends_with("bytes stack frame") {
                    usage.local_bytes = usage.local_bytes.max(number);
                } else if part.ends_with("spill stores") || part.ends_with("spill loads") {
                    usage.spill_bytes += number;
                }
            }
        }
        for advisory in Advisory::parse_all(said) {
            let is_of = |usage: &&mut Usage| advisory.text.contains(&format!("function '{}'", usage.function));
            if let Some(usage) = usages.iter_mut().find(is_of) {
                usage.advisories.push(advisory);
            }
        }
        usages
    }
}

/// The target that the PTX states: `sm_90a` for `.target sm_90a, texmode_independent`.
fn stated_target(ptx: &str) -> Option<&str> {
    let rest = ptx.lines().find_map(|line| line.trim_start().strip_prefix(".target"))?;
    rest.split([',', ' ', '\t', '/']).find(|word| !word.is_empty())
}

/// Returns whether a line of output is an error or a warning. With `--verbose`, ptxas also prints information.
fn is_complaint(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with("ptxas info") && !line.starts_with([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'silu' for 'sm_80'
ptxas info    : Function properties for silu
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 12 registers, used 1 barriers, 4096 bytes smem, 380 bytes cmem[0]
ptxas info    : Compile time = 1.204 ms
";

    #[test]
    fn usage_is_read_off_the_verbose_text() {
        let silu = Usage {
            function: "silu".to_owned(),
            registers: 12,
            barriers: 1,
            shared_bytes: 4096,
            local_bytes: 8,
            spill_bytes: 16,
            advisories: Vec::new(),
        };
        assert_eq!(Usage::parse_all(SAID), [silu]);
        let advised = format!("ptxas info    : (C7510) Potential Performance Loss: slow in the function 'silu'\n{SAID}");
        assert_eq!(Usage::parse_all(&advised)[0].advisories.len(), 1);
        assert_eq!(
            Usage::parse_all(
                &advised.replace("(C7510) Potential Performance Loss: slow in the function 'silu'", "(C7510) in function 'silu$roles'")
            )[0]
            .advisories,
            []
        );
        assert!(!SAID.lines().any(is_complaint));
    }

    #[test]
    fn warnings_and_errors_are_complaints() {
        assert!(is_complaint("ptxas warning : Unresolved extern"));
        assert!(is_complaint("ptxas x.ptx, line 3; error   : Parsing error near '@'"));
        assert!(is_complaint("ptxas fatal   : Ptx assembly aborted due to errors"));
    }

    #[test]
    fn the_target_is_read_off_the_text() {
        assert_eq!(stated_target(".version 8.0\n.target sm_90a, debug\n"), Some("sm_90a"));
        assert_eq!(stated_target(".version 8.0\n"), None);
    }

    // A shell script stands in for the assembler.
    #[cfg(unix)]
    #[test]
    fn a_file_is_assembled_for_its_target_and_complaints_are_errors() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let [script, ptx] = ["ptxas", "k.ptx"].map(|name| folder.path().join(name));
        let assemble = |says: &str, target: &str| {
            std::fs::write(&script, format!("#!/bin/sh\ncat <<'END'\n{says}END\n")).unwrap();
            std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
            Usage::of_file(&script, &ptx, target)
        };
        std::fs::write(&ptx, ".version 8.0\n.target sm_80\n").unwrap();
        assert_eq!(assemble(SAID, "sm_80").unwrap()[0].registers, 12);
        assert!(assemble(SAID, "sm_90a").unwrap_err().contains("says `.target sm_80`"));
        assert_eq!(assemble("ptxas warning : odd\n", "sm_80").unwrap_err(), "ptxas warning : odd");
        assert_eq!(assemble("", "sm_80").unwrap_err(), "ptxas found no function in it");
    }
}
