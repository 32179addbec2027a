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

/// Block-level GPU kernels in Rust: what there is beside the library.
#[derive(Parser)]
#[command(name = "galatea", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Runs PTX, or a whole program, on a simulated GPU that checks every access
    Sim(sim::Sim),
    /// Lists, shows, clears, exports and imports what was compiled and tuned and is kept on disk
    Cache(cache::Cache),
    /// Has a program tune its kernels for the sizes of a file, and shows and keeps what was chosen
    Tune(tune::Tune),
    /// Lists the variants that a build with `GALATEA_PTX_DIR` wrote, with what each takes; `cargo galatea variants` builds, too
    Variants {
        /// What `GALATEA_PTX_DIR` named, or files `variants.jsonl` of it
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
