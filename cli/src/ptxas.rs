//! NVIDIA's assembler, if there is one: registers and spills of PTX.

use std::path::{Path, PathBuf};

use kernel_lang::launch_value::persistent_entry::split_entries;
use kernel_runtime::assembler::{Assembler, Usage};

/// The assembler that is named, else that of `GALATEA_PTXAS`, else `ptxas` in `PATH` if it runs.
pub(crate) fn find(named: Option<&Path>) -> Result<Option<PathBuf>, String> {
    Ok(Assembler::find(named)?.map(|assembler| assembler.path().to_owned()))
}

/// What the usual entry of a PTX text takes. The assembler lists functions in any order.
pub(crate) fn usage(ptxas: &Path, ptx: &str, target: &str) -> Result<Usage, String> {
    let file = tempfile::Builder::new().suffix(".ptx").tempfile().map_err(|error| format!("cannot write PTX: {error}"))?;
    std::fs::write(file.path(), ptx).map_err(|error| format!("cannot write PTX: {error}"))?;
    let (_, persistent) = split_entries(ptx);
    let is_usual = |usage: &Usage| !persistent.is_some_and(|part| part.contains(&format!(".entry {}(", usage.function)));
    Usage::of_file(ptxas, file.path(), target)?.into_iter().find(is_usual).ok_or_else(|| "there is no function in it".to_owned())
}
