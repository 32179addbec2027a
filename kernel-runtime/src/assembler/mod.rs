//! Machine code that NVIDIA's assembler makes of PTX, where `GALATEA_PTXAS` names one: to be kept, see [`crate::cache`].
//!
//! Without one the driver compiles PTX when it loads it, and keeps what it made in a cache of its own. Its linker, which hands machine code out, does not
//! replace either: it compiles as if other modules were to be linked, with up to twice the registers, and a kernel of rows took 1.8 times as
//! long.

mod usage;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub use usage::Usage;

/// Names an executable `ptxas`.
const VARIABLE: &str = "GALATEA_PTXAS";

/// An assembler that is there.
#[derive(Debug)]
pub(crate) struct Assembler {
    path: PathBuf,
    /// A hash of the executable, in the key of what is kept: wherever it lies and whenever it was installed, the same assembler makes the same code, and no
    /// process is started to look an entry up.
    name: String,
}

impl Assembler {
    /// The assembler of this process; none if the environment names none. One that is not there is told of, once.
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

    /// The machine code of PTX for devices of that compute capability; none if the assembler refuses: the driver then says what is wrong, if it refuses,
    /// too. That no assembler could be started is told of.
    pub(crate) fn assemble(&self, ptx: &str, (major, minor): (i32, i32)) -> Option<Vec<u8>> {
        // Text that asks for what one architecture alone has names it with an `a`.
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
    crate::prints::show(format!("warning: `{VARIABLE}` names {path}, which cannot be used: {reason}\nhelp: the driver compiles instead"));
}

// Scripts stand for the assembler.
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
    fn who_is_not_there_is_told_of_and_who_refuses_is_not() {
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
        // As long as the first one, and as old.
        let path = one.path().join("ptxas");
        let age = path.metadata().unwrap().modified().unwrap();
        std::fs::write(&path, "two").unwrap();
        std::fs::File::open(&path).unwrap().set_modified(age).unwrap();
        assert_ne!(Assembler::at(path).unwrap().name(), name);
    }
}
