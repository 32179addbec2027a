//! NVIDIA's assembler `ptxas`, which makes machine code of PTX: for the cache, if `GALATEA_PTXAS` names it (`kept`), and for packages (`machine_code`).
//!
//! Without an assembler, the driver compiles PTX when it loads it, and keeps the result in its own cache. The driver's linker can return machine
//! code, but replaces neither. It compiles as if other modules were to be linked, and uses up to twice the registers; a row-wise kernel took 1.8
//! times as long.

mod advisory;
#[cfg(feature = "cache")]
mod kept;
mod machine_code;
mod usage;

use std::path::{Path, PathBuf};
use std::process::Command;

use kernel_lang::ir::Requirement;

pub use advisory::Advisory;
#[cfg(feature = "cache")]
pub(crate) use kept::Kept;
pub use usage::Usage;

/// The environment variable that names an executable `ptxas`.
const VARIABLE: &str = "GALATEA_PTXAS";

/// An available assembler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Assembler {
    path: PathBuf,
}

/// Machine code, and what its functions take.
struct Assembled {
    code: Vec<u8>,
    usages: Vec<Usage>,
}

impl Assembler {
    /// The assembler that is named, else that of `GALATEA_PTXAS`, else `ptxas` in `PATH` if it runs.
    ///
    /// # Errors
    /// If the named one cannot be run.
    pub fn find(named: Option<&Path>) -> Result<Option<Assembler>, String> {
        let runs = |path: &Path| Command::new(path).arg("--version").output().is_ok_and(|output| output.status.success());
        match named.map(Path::to_owned).or_else(of_environment) {
            Some(path) if runs(&path) => Ok(Some(Assembler { path })),
            Some(path) => Err(format!("`{}` is no assembler that can be run", path.display())),
            None => Ok(Some(PathBuf::from("ptxas")).filter(|path| runs(path)).map(|path| Assembler { path })),
        }
    }

    /// The path of the executable.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Compiles PTX for an architecture.
    ///
    /// # Errors
    /// The outer one if the assembler cannot be started, the inner one with its messages if it rejects the PTX, or makes code that loses what the kernel requires.
    fn assemble(&self, ptx: &str, architecture: &str) -> std::io::Result<Result<Assembled, String>> {
        let directory = tempfile::tempdir()?;
        let [text, code] = ["kernel.ptx", "kernel.cubin"].map(|name| directory.path().join(name));
        std::fs::write(&text, ptx)?;
        let mut command = Command::new(&self.path);
        command.arg(format!("-arch={architecture}")).arg("-o").arg(&code).arg(&text).arg("--verbose");
        let output = command.output()?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        if !output.status.success() {
            return Ok(Err(said.trim().to_owned()));
        }
        let losses: Vec<String> =
            Advisory::parse_all(&said).iter().filter(|advisory| advisory.is_loss()).map(|loss| loss.describe(ptx)).collect();
        if !losses.is_empty() && Requirement::is_stated(ptx) {
            return Ok(Err(losses.join("\n")));
        }
        Ok(Ok(Assembled { code: std::fs::read(&code)?, usages: Usage::parse_all(&said) }))
    }
}

/// The path that the environment names.
fn of_environment() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).filter(|name| !name.is_empty()).map(PathBuf::from)
}

/// A shell script that stands in for the assembler.
#[cfg(all(test, unix))]
fn script(directory: &Path, text: &str) -> Assembler {
    use std::os::unix::fs::PermissionsExt;

    let path = directory.join("ptxas");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    Assembler { path }
}
