//! `cargo xtask`: what the project needs done beyond building and testing. One command a file.

mod artifacts;
mod bench_report;
mod bundle;
mod ci;
mod mutants;
mod process;
mod ptxas;

use std::process::ExitCode;

use clap::Parser;

/// The project's own chores.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Runs every check a change must pass, and sums up what failed
    Ci(ci::Args),
    /// Assembles every PTX golden and embedded variant; fails on warnings, spills and local memory
    Ptxas(ptxas::Args),
    /// Makes a folder of executables for a GPU machine that has no Rust
    Bundle(bundle::Args),
    /// Plants defects in the compiler, one at a time, and tells which of them no test notices
    Mutants(mutants::Args),
    /// Writes docs/benchmarks.{md,json,svg} from the results of a benchmark run
    BenchReport(bench_report::Args),
}

fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Ci(args) => ci::run(&args),
        Task::Ptxas(args) => ptxas::run(&args, None),
        Task::Bundle(args) => bundle::run(&args),
        Task::Mutants(args) => mutants::run(&args),
        Task::BenchReport(args) => bench_report::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The message and its causes; a backtrace through this program would help nobody.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
