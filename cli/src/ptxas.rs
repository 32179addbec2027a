//! NVIDIA's assembler, if there is one: registers and spills of PTX.

use std::path::{Path, PathBuf};
use std::process::Command;

use kernel_runtime::assembler::Usage;

/// The assembler that is named, else that of `GALATEA_PTXAS`, else `ptxas` in `PATH` if it runs.
pub(crate) fn find(named: Option<&Path>) -> Result<Option<PathBuf>, String> {
    let from_environment = || std::env::var_os("GALATEA_PTXAS").filter(|name| !name.is_empty()).map(PathBuf::from);
    let runs = |path: &Path| Command::new(path).arg("--version").output().is_ok_and(|output| output.status.success());
    match named.map(Path::to_owned).or_else(from_environment) {
        Some(path) if runs(&path) => Ok(Some(path)),
        Some(path) => Err(format!("`{}` is no assembler that can be run", path.display())),
        None => Ok(Some(PathBuf::from("ptxas")).filter(|path| runs(path))),
    }
}

/// What the first function of a PTX text takes.
pub(crate) fn usage(ptxas: &Path, ptx: &str, target: &str) -> Result<Usage, String> {
    let file = tempfile::Builder::new().suffix(".ptx").tempfile().map_err(|error| format!("cannot write PTX: {error}"))?;
    std::fs::write(file.path(), ptx).map_err(|error| format!("cannot write PTX: {error}"))?;
    Usage::of_file(ptxas, file.path(), target)?.into_iter().next().ok_or_else(|| "there is no function in it".to_owned())
}
