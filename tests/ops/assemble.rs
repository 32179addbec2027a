//! The PTX of a case, through NVIDIA's assembler: `cargo xtask ptxas` names it in `GALATEA_PTXAS`.

use std::ffi::OsString;
use std::process::Command;

use kernel_lang::target::Target;
use kernel_lang::{Bindings, Options};
use libtest_mimic::Failed;

/// The assembler, if there is one.
pub(crate) fn assembler() -> Option<OsString> {
    std::env::var_os("GALATEA_PTXAS")
}

/// Assembles a kernel for every target; a warning is a failure.
pub(crate) fn check(name: &str, text: &str, assembler: &OsString) -> Result<(), Failed> {
    let func = kernel_lang::ir::parse(text)?;
    for target in Target::ALL {
        let compiled = kernel_lang::compile(&func, &Options::new(Bindings::new(), target)).map_err(|errors| errors.render(&func.files))?;
        let path = std::env::temp_dir().join(format!("galatea-{}-{name}-{target}.ptx", std::process::id()));
        std::fs::write(&path, &compiled.ptx)?;
        let run =
            Command::new(assembler).args(["--warning-as-error", "-arch", &target.to_string(), "-o", "/dev/null"]).arg(&path).output()?;
        std::fs::remove_file(&path)?;
        if !run.status.success() {
            return Err(format!("{}\n{}", String::from_utf8_lossy(&run.stderr), compiled.ptx).into());
        }
    }
    Ok(())
}
