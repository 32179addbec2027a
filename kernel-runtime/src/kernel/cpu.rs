//! Launches on the CPU: the programs of a grid run in order on this thread, or in parallel on all threads.

use std::cell::Cell;
use std::ops::Range;
use std::time::{Duration, Instant};

use rayon::prelude::*;

use crate::error::{AssertionFailed, Error, OutOfBounds, Result};
use crate::kernel::Kernel;
use crate::launch::prints;
use kernel_cpu::{Conflicts, Deadline, Program, Scratch, Violation};
use kernel_lang::backend::print_records;

/// Other threads are used only if this thread alone would take longer: waking them takes some microseconds.
const ALONE: Duration = Duration::from_micros(20);

/// Tasks for each thread: enough to balance uneven programs, few enough that taking a task costs nothing.
const TASKS_PER_THREAD: u64 = 8;

thread_local! {
    /// When launches of this thread stop.
    static END: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Reused by the next launch. It is taken out while in use, so a thread that is given another task meanwhile makes a new one.
    static SCRATCH: Cell<Option<Scratch>> = const { Cell::new(None) };
}

/// Calls `work`. Launches on the CPU in it, of this thread, stop at a time, and then are [`Error::TimeLimit`].
pub fn stopping_at<R>(end: Instant, work: impl FnOnce() -> R) -> R {
    struct Before(Option<Instant>);
    impl Drop for Before {
        fn drop(&mut self) {
            END.set(self.0);
        }
    }
    let before = Before(END.get());
    END.set(Some(before.0.map_or(end, |before| before.min(end))));
    work()
}

/// Runs all programs of the grid, which is not empty. Axis 0 varies fastest.
///
/// A checked run ends with the first violation in the order of programs. The programs of an unchecked run cannot fail.
pub(crate) fn run(kernel: &'static str, program: &Program, words: &[u64], grid: [u32; 3], checked: bool) -> Result<()> {
    if program.words() != words.len() {
        return Err(Error::ArgumentCount { kernel, expected: program.words(), given: words.len() });
    }
    let deadline = END.get().map(Deadline::at);
    let work = Work { program, words, grid, checked, conflicts: Conflicts::none(), deadline: deadline.as_ref() };
    run_all(kernel, work)?;
    // Of a launch that ends in time, the deadline may pass now.
    match deadline.is_some_and(|deadline| deadline.has_passed()) {
        true => Err(Error::TimeLimit { kernel }),
        false => Ok(()),
    }
}

fn run_all(kernel: &'static str, work: Work<'_>) -> Result<()> {
    let Work { program, words, grid, .. } = work;
    let programs = grid.into_iter().map(u64::from).product::<u64>();

    // Start on this thread; if that takes long, share the remaining programs.
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

/// [`run`] for a kernel that takes a print buffer after its arguments.
#[cold]
pub(crate) fn run_printing(kernel: &Kernel, program: &Program, words: &[u64], grid: [u32; 3], checked: bool) -> Result<()> {
    let mut buffer = vec![0u64; print_records::WORDS];
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
    /// Conflicts with other programs, if several threads run them.
    conflicts: Conflicts,
    deadline: Option<&'a Deadline>,
}

impl Work<'_> {
    /// Runs programs in order until the range or the time ends. Returns the index after the last program that ran.
    fn run(&self, range: Range<u64>, until: Option<Instant>) -> Result<u64, Violation> {
        let Work { program, words, grid, checked, ref conflicts, deadline } = *self;
        let mut scratch = SCRATCH.take().unwrap_or_default();
        let mut result = Ok(range.end);
        for index in range {
            // SAFETY: the words are the arguments of this kernel. The memory to which they point is initialised, aligned and alive, and borrowed
            // mutably if the kernel writes it, so only the kernel's own programs access it meanwhile. These programs run on one thread, or know their
            // conflicts. For the addresses that an `unchecked` kernel computes, the caller of its `unsafe` launch gave the guarantee.
            let ran = unsafe { program.run_until(words, grid, coordinates(index, grid), &mut scratch, checked, conflicts, deadline) };
            if let Err(violation) = ran {
                result = Err(violation);
                break;
            }
            // The caller finds that the deadline has passed.
            if deadline.is_some_and(Deadline::has_passed) {
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

/// The coordinates of the program with this index. Axis 0 varies fastest.
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
