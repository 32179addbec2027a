//! A smaller kernel that goes wrong in the same way: lines are left out as long as it does.

use std::time::{Duration, Instant};

use crate::kernel::Kernel;

/// The time limit of a minimisation. The smallest kernel found by then is the result.
const PATIENCE: Duration = Duration::from_secs(60);

/// `wrong` returns the error of a kernel. The smaller kernel fails with the same [`kind`] of error.
pub(crate) fn minimise(kernel: &Kernel, error: &str, wrong: impl Fn(&Kernel) -> Option<String>) -> Kernel {
    let end = Instant::now() + PATIENCE;
    let mut least = kernel.clone();
    let fails = |kernel: &Kernel| Instant::now() < end && wrong(kernel).is_some_and(|other| kind(&other) == kind(error));
    least.launches.retain(|sizes| error.contains(&format!("{sizes:?}")));
    if !fails(&least) {
        least.launches.clone_from(&kernel.launches);
    }
    loop {
        let before = least.lines.len();
        let mut at = 0;
        while at < least.lines.len() {
            let mut smaller = cuts(&least.lines, at).into_iter().map(|end| without(&least, at, end));
            // A kernel that the frontend refuses is skipped without a launch.
            match smaller.find(|kernel| kernel.source().lower().is_ok() && fails(kernel)) {
                Some(kernel) => least = kernel,
                None => at += 1,
            }
        }
        if least.lines.len() == before {
            return least;
        }
    }
}

/// The kind of an error: up to 40 letters of its first line, without the numbers, which differ from kernel to kernel.
fn kind(error: &str) -> String {
    error.lines().next().unwrap_or_default().chars().filter(|c| c.is_alphabetic()).take(40).collect()
}

/// The ends of the lines to leave out from line `start` on: 8 lines, 4 lines, and the statement or block that starts there.
fn cuts(lines: &[String], start: usize) -> Vec<usize> {
    let mut open = 0;
    let block = lines[start..].iter().position(|line| {
        open += line.matches('{').count() as i64 - line.matches('}').count() as i64;
        open <= 0
    });
    let runs = [8, 4].map(|run| start + run);
    runs.into_iter().chain(block.map(|end| start + end + 1)).filter(|end| *end <= lines.len()).collect()
}

fn without(kernel: &Kernel, start: usize, end: usize) -> Kernel {
    let mut smaller = kernel.clone();
    smaller.lines.drain(start..end);
    smaller
}
