//! Launches on the CPU: programs of a grid, in order on this thread or side by side on all.

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::error::{AssertionFailed, Error, OutOfBounds, Result};
use crate::kernel::Kernel;
use crate::prints;
use kernel_lang::backend::cpu::{Conflicts, Program, Scratch, Violation};
use kernel_lang::backend::printed;

/// A grid is worth other threads if this thread alone would take longer: waking them costs some microseconds.
const ALONE: Duration = Duration::from_micros(20);

/// Tasks for each thread: enough that uneven programs even out, few enough that taking one costs nothing.
const TASKS_PER_THREAD: u64 = 8;

thread_local! {
    /// Kept from launch to launch. Taken while in use, so that a thread which is given another task meanwhile makes a new one.
    static SCRATCH: Cell<Option<Scratch>> = const { Cell::new(None) };
}

/// Runs all programs of the grid, which is not empty; axis 0 is the fastest.
///
/// A checked run ends with the first violation in the order of programs; another cannot fail.
pub(crate) fn run(kernel: &'static str, program: &Program, words: &[u64], grid: [u32; 3], checked: bool) -> Result<()> {
    if program.words() != words.len() {
        return Err(Error::ArgumentCount { kernel, expected: program.words(), given: words.len() });
    }
    let programs = grid.into_iter().map(u64::from).product::<u64>();
    let work = Work { program, words, grid, checked, conflicts: Conflicts::none() };

    // Start alone; if that takes long, share what is left.
    let done = work.run(0..programs, Some(Instant::now() + ALONE)).map_err(|violation| failure(kernel, violation))?;
    let left = programs - done;
    if left == 0 {
        return Ok(());
    }
    let work = Work { conflicts: program.conflicts(words, grid), ..work };
    let tasks = (rayon::current_num_threads() as u64 * TASKS_PER_THREAD).min(left);
    let edge = |task: u64| done + (u128::from(left) * u128::from(task) / u128::from(tasks)) as u64;
    let violation = (0..tasks).into_par_iter().find_map_first(|task| work.run(edge(task)..edge(task + 1), None).err());
    violation.map_or(Ok(()), |violation| Err(failure(kernel, violation)))
}

/// As [`run`], of a kernel that takes a buffer for what it prints behind its arguments.
#[cold]
pub(crate) fn run_printing(kernel: &Kernel, program: &Program, words: &[u64], grid: [u32; 3], checked: bool) -> Result<()> {
    let mut buffer = vec![0u64; printed::WORDS];
    let words = [words, &[buffer.as_mut_ptr().expose_provenance() as u64, buffer.len() as u64]].concat();
    let result = run(kernel.name(), program, &words, grid, checked);
    prints::show_buffer(kernel.parsed()?, &buffer);
    result
}

struct Work<'a> {
    program: &'a Program,
    words: &'a [u64],
    grid: [u32; 3],
    checked: bool,
    /// With other programs, if several threads run them.
    conflicts: Conflicts,
}

impl Work<'_> {
    /// Runs programs in order until the range or the time is over; says where it stopped.
    fn run(&self, range: Range<u64>, until: Option<Instant>) -> Result<u64, Violation> {
        let Work { program, words, grid, checked, ref conflicts } = *self;
        let mut scratch = SCRATCH.take().unwrap_or_default();
        let mut result = Ok(range.end);
        for index in range {
            // SAFETY: the words are the arguments of this kernel; what they point to is initialised, aligned and alive, and borrowed mutably where
            // the kernel writes, so that only its own programs access it meanwhile. These run on one thread, or know their conflicts. What an
            // `unchecked` kernel makes of addresses is the promise of the caller who launched it, `unsafe`ly.
            let ran = unsafe { program.run(words, grid, coordinates(index, grid), &mut scratch, checked, conflicts) };
            if let Err(violation) = ran {
                result = Err(violation);
                break;
            }
            if until.is_some_and(|until| Instant::now() >= until) {
                result = Ok(index + 1);
                break;
            }
        }
        SCRATCH.set(Some(scratch));
        result
    }
}

/// The program with this number: axis 0 is the fastest.
fn coordinates(index: u64, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(x), u64::from(y));
    [(index % x) as u32, (index / x % y) as u32, (index / x / y) as u32]
}

fn failure(kernel: &'static str, violation: Violation) -> Error {
    let Violation { assertion, op, file, line, column, program_id, index, length, parameter, .. } = violation;
    let (file, parameter) = (file.to_string(), parameter.to_string());
    if let Some(message) = assertion {
        let message = message.to_string();
        return Error::AssertionFailed(Box::new(AssertionFailed { kernel, message, file, line, column, program_id }));
    }
    Error::OutOfBounds(Box::new(OutOfBounds { kernel, op, file, line, column, program_id, index, length, parameter }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_numbered_with_axis_0_fastest() {
        let grid = [3, 2, 2];
        let all: Vec<_> = (0..12).map(|index| coordinates(index, grid)).collect();
        assert_eq!((all[0], all[1], all[3], all[6], all[11]), ([0; 3], [1, 0, 0], [0, 1, 0], [0, 0, 1], [2, 1, 1]));
    }
}
