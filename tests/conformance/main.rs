//! Conformance: the themes of Triton's own suites, each a table of cases: a kernel template with its types, shapes, axes and options, run on the
//! CPU, on simulated GPUs and on the first GPU, and held to a reference in plain Rust that shares nothing with the compiler.
//!
//! A case is one trial a device: `cpu::bin_op::add-i8-f32`. Inputs are fresh in every run; a failure prints its seed, and `GALATEA_SEED` sets it.
//! Most combinations of options of `dot` run only on GPUs, and everywhere if `GALATEA_CASES` is `all`.

mod array;
mod case;
mod covering;
#[path = "../devices/mod.rs"]
mod devices;
mod lab;
mod memory;
mod number;
mod table;
mod themes;
mod tiles;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};

use case::Case;
use galatea::Device;
use lab::Lab;

fn main() {
    let arguments = Arguments::from_args();
    let seed = seed();
    let runs_all = std::env::var("GALATEA_CASES").is_ok_and(|cases| cases == "all");
    let columns = devices::columns(seed);
    let themes = themes::all();
    let rows: Vec<table::Row> = themes.iter().map(table::Row::new).collect();
    let mut trials = vec![Trial::test("table", move || table::check(&rows))];
    for theme in themes {
        for case in theme.cases {
            let name = format!("{}::{}", theme.name, case.name);
            let case = Arc::new(case);
            // The targets differ in few instructions. Unless a filter is given, each run draws a third of the cases for the older one.
            let is_drawn = runs_all || arguments.filter.is_some() || draw(&name, seed).is_multiple_of(3);
            let is_left_out = case.is_further && !runs_all;
            trials.extend(columns.iter().map(|column| {
                let (case, case_name) = (case.clone(), name.clone());
                let is_skipped = !is_drawn && column.is_older_target() || is_left_out && !column.is_gpu();
                let skipped = move |_| is_skipped.then_some("skipped: not drawn in this run");
                column.trial_unless(&name, skipped, move |device| run(&case, device, &case_name, seed))
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The seed in `GALATEA_SEED`, else one from the clock.
fn seed() -> u64 {
    match std::env::var("GALATEA_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("GALATEA_SEED is a number, not `{text}`")),
        Err(_) => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64),
    }
}

/// A number that follows from a name and the seed.
fn draw(name: &str, seed: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name, seed).hash(&mut hasher);
    hasher.finish()
}

fn run(case: &Case, device: Device, name: &str, seed: u64) -> Result<(), Failed> {
    let mut lab = Lab::new(device, seed, name);
    let checked = catch_unwind(AssertUnwindSafe(|| (case.run)(&mut lab))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        Err(text.unwrap_or("a panic without a text").to_string())
    });
    checked.map_err(|error| Failed::from(format!("{error}\nto repeat: GALATEA_SEED={seed}")))
}
