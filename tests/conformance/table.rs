//! `docs/conformance.md`: how many cases there are of each theme, and what does not apply and why.
//!
//! The suite writes it when it is blessed, and otherwise holds it, and the README, to what the tables of the themes say. Every case of it passes on
//! every device, or the suite fails: what stands there as a case is one that passes.

use std::fmt::Write;

use libtest_mimic::Failed;

use crate::themes::{OUTSIDE, Suite, Theme};

/// The row of a theme in the tables of `docs/conformance.md`.
pub(crate) struct Row {
    suite: Suite,
    name: &'static str,
    upstream: usize,
    cases: usize,
}

impl Row {
    pub(crate) fn new(theme: &Theme) -> Row {
        Row { suite: theme.suite, name: theme.name, upstream: theme.upstream, cases: theme.cases.len() }
    }
}

const WRITTEN: &str = include_str!("../../docs/conformance.md");
const README: &str = include_str!("../../README.md");

/// Compares the file with the table; rewrites it where `BLESS` is set.
pub(crate) fn check(rows: &[Row]) -> Result<(), Failed> {
    for suite in Suite::ALL {
        let listed = of_suite(rows, suite).map(|row| row.upstream).sum::<usize>() + outside(suite);
        if listed != suite.upstream() {
            return Err(format!("{} has {} cases, of which {listed} are listed", suite.name(), suite.upstream()).into());
        }
    }
    let text = render(rows);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/conformance.md"), &text)?;
        return Ok(());
    }
    if text != WRITTEN {
        return Err("docs/conformance.md is not what the themes say: BLESS=1 cargo test --workspace --test conformance table".into());
    }
    let total = thousands(rows.iter().map(|row| row.cases).sum());
    if !README.contains(&format!("{total} cases")) {
        return Err(format!("the README does not say that there are {total} cases").into());
    }
    Ok(())
}

fn of_suite(rows: &[Row], suite: Suite) -> impl Iterator<Item = &Row> {
    rows.iter().filter(move |row| row.suite == suite)
}

fn outside(suite: Suite) -> usize {
    OUTSIDE.iter().filter(|outside| outside.suite == suite).map(|outside| outside.upstream).sum()
}

/// `6,150`
fn thousands(number: usize) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}

fn render(rows: &[Row]) -> String {
    let mut text = String::from(
        "# Conformance\n\n\
         Triton's own suites are the best description of what the builtins of a block-level language mean. `tests/conformance` says the same in cases written\n\
         anew: a kernel template with its types, shapes, axes and options, run on the CPU, on simulated GPUs (`sm_90a` and `sm_80`) and on a GPU where there is\n\
         one, with fresh random inputs at unaligned addresses, and held to a reference in plain Rust. Where the language differs on purpose, the case holds it to\n\
         its own rule: floats never mix by themselves, so a pair of types that is refused meets by a cast; integers of a sum keep their type.\n\n\
         ```sh\n\
         cargo test --workspace --test conformance                        # all of them on every device, but a third of them on simulated sm_80\n\
         cargo test --workspace --test conformance -- sim:sm_80::         # all of them on one device; a theme: sim::scan2d::\n\
         GALATEA_CASES=all cargo test --workspace --test conformance      # and all combinations of options of `dot`\n\
         BLESS=1 cargo test --workspace --test conformance table          # writes this file\n\
         ```\n\n\
         The suite fails unless every case passes and this file is what its tables say.\n\n\
         The themes `dot_loop`, `dot_loop_roles` and `dot_loop_normal` combine the options of a product: types and precision, how operands are stored, the tile\n\
         and what is left of it at the ends, strides, stages, trip counts, warps, what happens to the sums, the grid and the alignment. They are rounds of cases,\n\
         each with all pairs of options. The first round of a theme runs by default; all of them run on a GPU, and everywhere with `GALATEA_CASES=all`.\n\
         Sums are exact, and the results compared exactly, but in `dot_loop_normal`, where elements are random and each sum has an error bound. On the simulated\n\
         `sm_90a`, a case also fails if it runs the wrong version of the kernel: with warp roles, or without.\n\n\
         | suite | cases in Triton | of these not applicable | themes here | cases here, all passing |\n\
         |---|---:|---:|---:|---:|\n",
    );
    let mut totals = [0; 4];
    for suite in Suite::ALL {
        let of = [suite.upstream(), outside(suite), of_suite(rows, suite).count(), of_suite(rows, suite).map(|row| row.cases).sum()];
        totals.iter_mut().zip(of).for_each(|(total, of)| *total += of);
        line(&mut text, &format!("`{}`", suite.name()), &of);
    }
    line(&mut text, "together", &totals);
    for suite in Suite::ALL {
        let _ = write!(text, "\n## {}\n\n| theme | in Triton | here |\n|---|---:|---:|\n", suite.name());
        for row in of_suite(rows, suite) {
            // A theme of no test of that name: more of the one above, or the language's own.
            let upstream = if row.upstream == 0 { String::new() } else { thousands(row.upstream) };
            let _ = writeln!(text, "| `{}` | {upstream} | {} |", row.name, thousands(row.cases));
        }
    }
    text.push_str("\n## What does not apply\n\n| tests of Triton | cases | why |\n|---|---:|---|\n");
    for outside in OUTSIDE {
        let _ = writeln!(text, "| {} | {} | {} |", outside.tests, thousands(outside.upstream), outside.why);
    }
    text
}

fn line(text: &mut String, name: &str, numbers: &[usize]) {
    let numbers: Vec<String> = numbers.iter().map(|number| thousands(*number)).collect();
    let _ = writeln!(text, "| {name} | {} |", numbers.join(" | "));
}
