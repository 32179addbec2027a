//! Machine code from NVIDIA's assembler, if `GALATEA_PTXAS` names one. The code is cached on disk, see [`crate::cache`].
//!
//! Without an assembler, the driver compiles PTX when it loads it, and keeps the result in its own cache. The driver's linker can return machine
//! code, but replaces neither. It compiles as if other modules were to be linked, and uses up to twice the registers; a row-wise kernel took 1.8
//! times as long.

mod usage;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub use usage::Usage;

/// The environment variable that names an executable `ptxas`.
const VARIABLE: &str = "GALATEA_PTXAS";

/// An available assembler.
#[derive(Debug)]
pub(crate) struct Assembler {
    path: PathBuf,
    /// A hash of the executable, for the keys of the cache. The same assembler makes the same code, whatever its path and installation time. A lookup
    /// in the cache starts no process.
    name: String,
}

impl Assembler {
    /// The assembler of this process; `None` if the environment names none. If the named file cannot be read, a warning is shown, once.
    pub(crate) fn current() -> Option<&'static Assembler> {
        static CURRENT: OnceLock<Option<Assembler>> = OnceLock::new();
        CURRENT.get_or_init(|| Assembler::at(PathBuf::from(std::env::var_os(VARIABLE).filter(|name| !name.is_empty())?))).as_ref()
    }

    fn at(path: PathBuf) -> Option<Assembler> {
        let hash = || {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(std::fs::File::open(&path)?)?;
            Ok(hasher.finalize().to_hex().to_string())
        };
        match hash() {
            Ok(name) => Some(Assembler { path, name }),
            Err(error) => {
                let error: std::io::Error = error;
                warn(&path, &error.to_string());
                None
            }
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Compiles PTX to machine code for devices of this compute capability. Returns `None` if the assembler rejects it: the driver then reports the
    /// error, if it rejects the PTX too. If the assembler cannot be started, a warning is shown.
    pub(crate) fn assemble(&self, ptx: &str, (major, minor): (i32, i32)) -> Option<Vec<u8>> {
        // PTX that needs the features of one architecture only names that architecture with an `a`.
        let target = ptx.lines().find_map(|line| line.strip_prefix(".target ")).filter(|target| target.ends_with('a'));
        let architecture = target.map_or_else(|| format!("sm_{major}{minor}"), str::to_owned);
        let assemble = || {
            let directory = tempfile::tempdir()?;
            let [text, code] = ["kernel.ptx", "kernel.cubin"].map(|name| directory.path().join(name));
            std::fs::write(&text, ptx)?;
            let output = Command::new(&self.path).arg(format!("-arch={architecture}")).arg("-o").arg(&code).arg(&text).output()?;
            if output.status.success() { std::fs::read(&code).map(Some) } else { Ok(None) }
        };
        assemble().unwrap_or_else(|error: std::io::Error| {
            warn(&self.path, &error.to_string());
            None
        })
    }
}

fn warn(path: &Path, reason: &str) {
    let path = path.display();
    crate::launch::prints::show(format!(
        "warning: `{VARIABLE}` names {path}, which cannot be used: {reason}\nhelp: the driver compiles instead"
    ));
}

// Shell scripts stand in for the assembler.
#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use kernel_lang::target::Target;

    use super::*;

    fn script(directory: &Path, text: &str) -> Assembler {
        let path = directory.join("ptxas");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        Assembler::at(path).unwrap()
    }

    #[test]
    fn the_code_is_what_the_assembler_writes_for_the_architecture() {
        let directory = tempfile::tempdir().unwrap();
        let assembler = script(directory.path(), "#!/bin/sh\n{ echo \"$1\"; cat \"$4\"; } > \"$3\"\n");
        for (target, capability, architecture) in
            [(Target::SM_80, (8, 6), "sm_86".to_owned()), (Target::SM_90A, (9, 0), Target::SM_90A.to_string())]
        {
            let text = format!(".target {target}\n");
            let code = assembler.assemble(&text, capability).unwrap();
            assert_eq!(String::from_utf8(code).unwrap(), format!("-arch={architecture}\n{text}"));
        }
    }

    #[test]
    fn a_missing_assembler_is_reported_and_a_failing_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let refuses = script(directory.path(), "#!/bin/sh\necho no >&2\nexit 1\n");
        let (code, told) = crate::capture_prints(|| refuses.assemble("text", (8, 0)));
        assert!(code.is_none() && told.is_empty(), "{told:?}");
        let (none, told) = crate::capture_prints(|| Assembler::at(directory.path().join("nothing")));
        assert!(none.is_none() && told.concat().contains("which cannot be used"), "{told:?}");
    }

    #[test]
    fn an_assembler_is_known_by_its_content() {
        let [one, two] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        let name = script(one.path(), "one").name().to_owned();
        assert_eq!(script(two.path(), "one").name(), name, "another folder, another time");
        // The same length and modification time as before.
        let path = one.path().join("ptxas");
        let age = path.metadata().unwrap().modified().unwrap();
        std::fs::write(&path, "two").unwrap();
        std::fs::File::open(&path).unwrap().set_modified(age).unwrap();
        assert_ne!(Assembler::at(path).unwrap().name(), name);
    }
}
