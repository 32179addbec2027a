//! The command `galatea`.

mod argument;
mod cache;
mod command_line;
mod explain;
mod output;
mod package;
mod ptxas;
mod records_file;
mod sim;
mod status;
mod tune;
mod variants;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::command_line::When;

/// Tools for block-level GPU kernels in Rust
#[derive(Parser)]
#[command(
    name = "galatea",
    version,
    arg_required_else_help = true,
    after_help = "Exit status: 0 on success, 1 on failure, 2 for a mistake on the command line. `sim` and `tune` exit with the status of a program
that fails. `diff` exits with 1 if the packages differ, and with 2 for an error."
)]
struct Cli {
    // `command_line` reads it before the command line is parsed.
    /// Coloring
    #[arg(long, global = true, value_name = "WHEN")]
    color: Option<When>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run PTX, or a program, on a simulated GPU that checks every access
    Sim(sim::Sim),
    /// Print why a kernel is as fast as it is: its accesses, registers, occupancy and times
    Explain(explain::Explain),
    /// Print, remove, export and import what the disk cache holds
    Cache(cache::Cache),
    /// Tune the kernels of a program for the sizes in a file
    Tune(tune::Tune),
    /// Print the variants that a build with `GALATEA_PTX_DIR` wrote, and their resources
    Variants {
        /// Folder that `GALATEA_PTX_DIR` named, or `variants.jsonl` file from such a folder
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        report: variants::Report,
    },
    Inspect(package::Inspect),
    Verify(package::Verify),
    Run(package::Run),
    Diff(package::Diff),
}

/// The exit code for a mistake on the command line.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let cli: Cli = match command_line::parse(USAGE) {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    let result = match cli.command {
        Command::Sim(sim) => sim.run(),
        Command::Explain(explain) => explain.run(),
        Command::Cache(cache) => cache.run(),
        Command::Tune(tune) => tune.run(),
        Command::Inspect(inspect) => inspect.run(),
        Command::Verify(verify) => verify.run(),
        Command::Run(run) => run.run(),
        Command::Diff(diff) => diff.run(),
        Command::Variants { paths, report } => {
            variants::report(&paths, &|_, _| true, &report).and_then(|text| output::print(&text)).map(|()| ExitCode::SUCCESS)
        }
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            output::tell(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}
