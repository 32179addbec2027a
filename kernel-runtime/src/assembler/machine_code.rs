//! Machine code for packages: of a variant for GPUs of a compute capability, as loading its PTX there would make it.

use std::sync::Arc;

use kernel_lang::occupancy::{Cta, Multiprocessor, Needs, limited};

use super::{Assembled, Assembler};
use crate::Target;
use crate::kernel::parts::{MachineCodeParts, VariantParts};
use kernel_lang::target::Architecture;

impl Assembler {
    /// The machine code of a variant for GPUs of a compute capability, with fewer registers where a multiprocessor then holds more CTAs. `None` if
    /// these GPUs do not run the variant.
    ///
    /// # Errors
    /// The messages of the assembler, or the reason why it cannot be started.
    pub fn machine_code(&self, variant: &VariantParts, capability: (u32, u32)) -> Result<Option<MachineCodeParts>, String> {
        let target: Option<Target> = variant.target.parse().ok();
        let Some(architecture) = target.and_then(|target| Architecture::of(target, capability)) else { return Ok(None) };
        let architecture = architecture.to_string();
        let assemble = |ptx: &str| {
            let cannot_start = |error: std::io::Error| format!("`{}` cannot be started: {error}", self.path.display());
            let Assembled { code, usages } = self.assemble(ptx, &architecture).map_err(cannot_start)??;
            let usage = usages.into_iter().find(|usage| usage.function == variant.entry).unwrap_or_default();
            Ok::<_, String>((code, Needs { registers: usage.registers, local_bytes: usage.local_bytes }))
        };
        let first = assemble(&variant.ptx)?;
        let cta = Cta { warps: variant.schedule.num_warps, shared_bytes: variant.shared_bytes };
        let code = match Multiprocessor::of(capability) {
            Some(multiprocessor) => multiprocessor.most_ctas(cta, first, |registers| assemble(&limited(&variant.ptx, registers)?).ok()),
            None => first.0,
        };
        Ok(Some(MachineCodeParts { architecture, bytes: Arc::from(code) }))
    }
}

// Shell scripts stand in for the assembler.
#[cfg(unix)]
#[cfg(test)]
mod tests {
    use kernel_lang::Schedule;

    use super::super::script;
    use super::*;

    fn variant(target: &str) -> VariantParts {
        let (entry, ptx) = ("k".to_owned(), ".version 8.0\n.entry k()\n.reqntid 128\n{\n}\n".to_owned());
        VariantParts {
            key: Vec::new(),
            schedule: Schedule::DEFAULT,
            target: target.to_owned(),
            entry,
            shared_bytes: 0,
            ptx,
            machine_code: Vec::new(),
        }
    }

    /// A multiprocessor holds 12 CTAs of 4 warps with 40 registers, and 10 with 44.
    #[test]
    fn registers_are_limited_as_where_ptx_is_loaded() {
        let directory = tempfile::tempdir().unwrap();
        let assembler = script(
            directory.path(),
            "#!/bin/sh\nregisters=44; grep -q 'maxnreg 40' \"$4\" && registers=40\n\
             echo \"ptxas info    : Compiling entry function 'k' for '$1'\" >&2\n\
             echo \"ptxas info    : Used $registers registers, used 0 barriers\" >&2\necho \"$1 $registers\" > \"$3\"\n",
        );
        let code = |target, capability| {
            let made = assembler.machine_code(&variant(target), capability).unwrap();
            made.map(|made| (made.architecture, String::from_utf8(made.bytes.to_vec()).unwrap()))
        };
        let made = |architecture: &str, registers| Some((architecture.to_owned(), format!("-arch={architecture} {registers}\n")));
        assert_eq!(code("sm_90a", (9, 0)), made("sm_90a", 40));
        assert_eq!(code("sm_80", (8, 6)), made("sm_86", 40));
        assert_eq!(code("sm_80", (11, 0)), made("sm_110", 44), "what a multiprocessor holds is not known");
        assert_eq!(code("sm_90a", (8, 0)), None);
    }

    #[test]
    fn messages_of_the_assembler_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        let refuses = script(directory.path(), "#!/bin/sh\necho 'line 3: no' >&2\nexit 1\n");
        assert_eq!(refuses.machine_code(&variant("sm_80"), (8, 0)), Err("line 3: no".to_owned()));
        let missing = Assembler { path: directory.path().join("nothing") };
        assert!(missing.machine_code(&variant("sm_80"), (8, 0)).unwrap_err().contains("nothing` cannot be started: "));
    }
}
