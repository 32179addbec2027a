//! The command `galatea`.

mod argument;
mod sim;

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
}

fn main() -> ExitCode {
    let Cli { command: Command::Sim(sim) } = Cli::parse();
    match sim.run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
