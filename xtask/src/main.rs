//! `cargo xtask`: tasks of the project beyond building and testing. Each command has its own file.

mod artifacts;
mod bench_report;
mod book;
mod bundle;
mod ci;
mod counters_report;
mod mutants;
mod process;
mod ptxas;
mod quick_start;

use std::process::ExitCode;

use clap::Parser;

/// Run tasks of the project
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Task {
    /// Run every check that a change must pass, and summarise the failures
    Ci(ci::Args),
    /// Assemble every PTX golden and embedded variant; fail on warnings, spills and local memory
    Ptxas(ptxas::Args),
    /// Create a folder of executables for a GPU machine without Rust
    Bundle(bundle::Args),
    /// Plant defects in the compiler, one at a time, and list those that no test notices
    Mutants(mutants::Args),
    /// Write docs/benchmarks.{md,json,svg} from the results of a benchmark run
    BenchReport(bench_report::Args),
    /// Write docs/benchmarks-gallery-counters.md from a profile of the gallery's kernels by `ncu`
    CountersReport(counters_report::Args),
    /// Build the book of docs/ into target/book, and check its links
    Book(book::Args),
    /// Measure the time to a user's first results, from nothing
    QuickStart(quick_start::Args),
}

fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Ci(args) => ci::run(&args),
        Task::Ptxas(args) => ptxas::run(&args, None),
        Task::Bundle(args) => bundle::run(&args),
        Task::Mutants(args) => mutants::run(&args),
        Task::BenchReport(args) => bench_report::run(&args),
        Task::CountersReport(args) => counters_report::run(&args),
        Task::Book(args) => book::run(&args),
        Task::QuickStart(args) => quick_start::run(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The message and its causes; a backtrace of this program does not help.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
