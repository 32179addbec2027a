//! The assembler that the environment names, whose machine code the cache keeps, see [`crate::cache`].

use std::path::PathBuf;
use std::sync::OnceLock;

use super::{Assembler, VARIABLE, of_environment};

/// An assembler whose code is kept.
#[derive(Debug)]
pub(crate) struct Kept {
    assembler: Assembler,
    /// A hash of the executable, for the keys of the cache. The same assembler makes the same code, whatever its path and installation time. A lookup
    /// in the cache starts no process.
    name: String,
}

impl Kept {
    /// The assembler of this process; `None` if the environment names none. If the named file cannot be read, a warning is shown, once.
    pub(crate) fn current() -> Option<&'static Kept> {
        static CURRENT: OnceLock<Option<Kept>> = OnceLock::new();
        CURRENT.get_or_init(|| Kept::at(of_environment()?)).as_ref()
    }

    fn at(path: PathBuf) -> Option<Kept> {
        let assembler = Assembler { path };
        let hash = || {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(std::fs::File::open(&assembler.path)?)?;
            Ok(hasher.finalize().to_hex().to_string())
        };
        match hash() {
            Ok(name) => Some(Kept { assembler, name }),
            Err(error) => {
                warn(&assembler, &error);
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
        match self.assembler.assemble(ptx, &architecture) {
            Ok(assembled) => assembled.ok().map(|assembled| assembled.code),
            Err(error) => {
                warn(&self.assembler, &error);
                None
            }
        }
    }
}

fn warn(assembler: &Assembler, reason: &std::io::Error) {
    let path = assembler.path.display();
    crate::launch::prints::show(format!(
        "warning: `{VARIABLE}` names {path}, which cannot be used: {reason}\nhelp: the driver compiles instead"
    ));
}

// Shell scripts stand in for the assembler.
#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::path::Path;

    use kernel_lang::target::Target;

    use super::*;

    fn script(directory: &Path, text: &str) -> Kept {
        Kept::at(super::super::script(directory, text).path).unwrap()
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
        let (none, told) = crate::capture_prints(|| Kept::at(directory.path().join("nothing")));
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
        assert_ne!(Kept::at(path).unwrap().name(), name);
    }
}
