//! The command `galatea`.

mod argument;
mod cache;
mod output;
mod records_file;
mod sim;
mod tune;
mod variants;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tools for block-level GPU kernels in Rust
#[derive(Parser)]
#[command(name = "galatea", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run PTX, or a whole program, on a simulated GPU that checks every access
    Sim(sim::Sim),
    /// List, show, clear, export and import compiled code and tuning records of the disk cache
    Cache(cache::Cache),
    /// Run a program that tunes its kernels for the sizes of a file, and show and store the chosen configurations
    Tune(tune::Tune),
    /// List the variants that a build with `GALATEA_PTX_DIR` wrote, with their resource use; `cargo galatea variants` also builds
    Variants {
        /// The folder that `GALATEA_PTX_DIR` named, or `variants.jsonl` files from such folders
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
        #[command(flatten)]
        report: variants::Report,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Sim(sim) => sim.run(),
        Command::Cache(cache) => cache.run(),
        Command::Tune(tune) => tune.run(),
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
