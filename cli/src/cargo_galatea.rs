//! The command `cargo galatea`: reports on the kernels of a crate at build time.

mod cargo_options;
mod command_line;
mod output;
mod ptxas;
mod status;
mod variants;

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Parser, Subcommand};

use crate::cargo_options::CargoOptions;

/// Cargo runs this as `cargo-galatea galatea ..`.
#[derive(Parser)]
#[command(name = "cargo", bin_name = "cargo")]
enum Cargo {
    /// Report on the kernels of a crate
    Galatea(Galatea),
}

#[derive(Args)]
#[command(version, arg_required_else_help = true)]
struct Galatea {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Print the kernel variants that a build embeds, and their resources
    Variants(Variants),
}

/// Print the kernel variants that a build embeds, and their resources
#[derive(Args)]
#[command(after_help = "Examples:
  cargo galatea variants --sort registers
  cargo galatea variants --example silu --json

The crates are compiled anew, in the folder `galatea-variants` of the target directory. Variants that no GPU of their target can run are
left out of the program; they stand below the list, each with the reason.

Exit status: 0 on success, 1 for a mistake on the command line, 101 on failure, as cargo's.")]
struct Variants {
    #[command(flatten)]
    report: variants::Report,
    #[command(flatten)]
    cargo: CargoOptions,
}

/// The exit codes of cargo for a mistake on the command line, and for a failure.
const USAGE: u8 = 1;
const FAILURE: u8 = 101;

fn main() -> ExitCode {
    let Cargo::Galatea(Galatea { command: Task::Variants(variants) }) = match command_line::parse(USAGE) {
        Ok(cargo) => cargo,
        Err(code) => return code,
    };
    variants.run().unwrap_or_else(|error| {
        output::tell(&format!("error: {error}"));
        ExitCode::from(FAILURE)
    })
}

impl Variants {
    fn run(&self) -> Result<ExitCode, String> {
        let selection = self.cargo.selection()?;
        let target = selection.target_directory.join("galatea-variants");
        // Cargo recompiles crates with kernels for each value of the variable, so each run uses a new folder.
        let folders = target.join("ptx");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let written = std::path::absolute(folders.join(now.to_string())).map_err(|error| format!("there is no current folder: {error}"))?;
        let cannot = |error: std::io::Error| format!("cannot make {}: {error}", written.display());
        if folders.exists() {
            std::fs::remove_dir_all(&folders).map_err(cannot)?;
        }
        std::fs::create_dir_all(&written).map_err(cannot)?;

        let status = self.cargo.check(&target).env("GALATEA_PTX_DIR", &written).status();
        let status = status.map_err(|error| format!("cannot run cargo: {error}"))?;
        if !status.success() {
            // Cargo has said why.
            return Ok(status::exit_code(status));
        }
        // Crates that are only needed by the selected ones have also written variants.
        let file = written.join("variants.jsonl");
        let files = if file.exists() { vec![file] } else { Vec::new() };
        let text = variants::report(&files, &|package, krate| selection.has(package, krate), &self.report)?;
        output::print(&text).map(|()| ExitCode::SUCCESS)
    }
}
