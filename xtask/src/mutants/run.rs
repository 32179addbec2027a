//! Runs tests with one defect on, and determines whether any test notices it.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::list::{Defect, Number, Tests};
use super::tree::VARIABLE;
use crate::artifacts::Executable;
use crate::process;

/// A set of tests that run in one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suite {
    executable: &'static str,
    /// A filter of test names; an empty filter selects all.
    filter: &'static str,
}

/// Tests that compare results: with other devices, with `f64` references, or with invariants. Suites that notice much in a short time come
/// first.
pub(super) const BEHAVIOUR: [Suite; 15] = [
    Suite { executable: WRITTEN_FOR_SURVIVORS, filter: "" },
    Suite { executable: "tiles", filter: "" },
    Suite { executable: "layout", filter: "" },
    Suite { executable: "kernel_lang", filter: "" },
    Suite { executable: "run", filter: "sim::" },
    Suite { executable: "fuzz", filter: "sim::" },
    Suite { executable: "ops", filter: "sim::" },
    Suite { executable: "math", filter: "" },
    Suite { executable: "graphs", filter: "" },
    Suite { executable: "kernel_graph", filter: "" },
    Suite { executable: "kernel_runtime", filter: "dim::" },
    Suite { executable: "rows", filter: "" },
    // An older target, which lacks some instructions.
    Suite { executable: "run", filter: "sim:sm" },
    Suite { executable: "ops", filter: "sim:sm" },
    Suite { executable: "conformance", filter: "sim::" },
];

/// The executable with tests for defects that the tests of their files did not notice. It is fast to build and to run.
pub(super) const WRITTEN_FOR_SURVIVORS: &str = "kernels";

/// Tests that compare the compiler's output with goldens. They notice nearly everything, but are easily blessed.
pub(super) const GOLDENS: [Suite; 1] = [Suite { executable: "filetests", filter: "" }];

/// The shortest suite, used to check the tool itself.
pub(super) const QUICK: Suite = BEHAVIOUR[0];

/// The memory limit of a test in KiB: a defect may make the compiler allocate without bound.
const MOST_MEMORY_KIB: u64 = 12 << 20;
/// The CPU time after which a test counts as hanging.
const LONGEST_TEST: Duration = Duration::from_secs(120);
/// The factor for the wall-clock limit. A test that uses little CPU time hangs as well, but other programs may keep the machine busy.
const LONGEST_WAIT: u32 = 15;
/// The interval between checks of a running test.
const LOOK: Duration = Duration::from_secs(5);

/// The result of a run of tests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    Passed,
    /// The name of the test that failed, or a description of how the executable ended.
    Failed(String),
}

/// The outcome of a defect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// A test of results noticed it: the executable and the test.
    Noticed(String),
    /// Only a test of goldens noticed it.
    NoticedByGoldens(String),
    Survived,
}

/// The test executables.
pub(super) struct Bench {
    executables: BTreeMap<String, PathBuf>,
    /// Whether a test passes without a defect, by executable and name. Filled on demand.
    passes: Mutex<BTreeMap<(String, String), bool>>,
}

impl Suite {
    fn tests(self) -> Tests {
        Tests { executable: self.executable.to_owned(), filter: self.filter.to_owned() }
    }
}

impl Bench {
    pub(super) fn new(executables: &[Executable]) -> Bench {
        let executables = executables.iter().map(|executable| (executable.target.clone(), executable.path.clone())).collect();
        Bench { executables, passes: Mutex::default() }
    }

    /// Runs the shortest suite.
    pub(super) fn check(&self, number: Number) -> Result<Ended> {
        self.run(number, QUICK.executable, &[QUICK.filter])
    }

    /// Runs tests up to the first one that fails because of the defect.
    fn notices(&self, number: Number, tests: &Tests) -> Result<Option<String>> {
        let mut arguments = vec![tests.filter.clone()];
        loop {
            let given: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let Ended::Failed(test) = self.run(number, &tests.executable, &given)? else { return Ok(None) };
            // Ignore a test that fails without a defect, because the copy differs from the original.
            if self.passes(&tests.executable, &test)? {
                return Ok(Some(format!("{} {test}", tests.executable)));
            }
            arguments.extend(["--skip".to_owned(), test]);
        }
    }

    fn passes(&self, executable: &str, test: &str) -> Result<bool> {
        // This is not a test but a description of how the executable ended.
        if test.starts_with('(') {
            return Ok(true);
        }
        let key = (executable.to_owned(), test.to_owned());
        let known = self.passes.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        if let Some(known) = known {
            return Ok(known);
        }
        let passes = self.run(0, executable, &[test, "--exact"])? == Ended::Passed;
        if !passes {
            println!("    `{executable} {test}` fails in the copy without a defect, and is left out");
        }
        self.passes.lock().unwrap_or_else(PoisonError::into_inner).insert(key, passes);
        Ok(passes)
    }

    /// Runs the tests that the list names for the defect, as far as they were built.
    pub(super) fn judge_first(&self, number: Number, defect: &Defect) -> Result<Option<Outcome>> {
        let named = defect.noticed_by.iter().chain(&defect.first);
        for tests in named.filter(|tests| self.executables.contains_key(&tests.executable)) {
            if let Some(test) = self.notices(number, tests)? {
                let is_golden = GOLDENS.iter().any(|suite| suite.executable == tests.executable);
                return Ok(Some(if is_golden { Outcome::NoticedByGoldens(test) } else { Outcome::Noticed(test) }));
            }
        }
        Ok(None)
    }

    /// Runs all tests until one notices the defect.
    pub(super) fn judge(&self, number: Number) -> Result<Outcome> {
        for suite in BEHAVIOUR {
            if let Some(test) = self.notices(number, &suite.tests())? {
                return Ok(Outcome::Noticed(test));
            }
        }
        for suite in GOLDENS {
            if let Some(test) = self.notices(number, &suite.tests())? {
                return Ok(Outcome::NoticedByGoldens(test));
            }
        }
        Ok(Outcome::Survived)
    }

    /// Runs tests sequentially, up to the first failure.
    fn run(&self, number: Number, executable: &str, arguments: &[&str]) -> Result<Ended> {
        let path = self.executables.get(executable).with_context(|| format!("there is no test executable `{executable}`"))?;
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MOST_MEMORY_KIB} -c 0; exec \"$@\""), "sh"]).arg(path).arg("--test-threads=1");
        command.args(arguments.iter().filter(|argument| !argument.is_empty()));
        command.env(VARIABLE, number.to_string()).env("GALATEA_CACHE", "off").env("RAYON_NUM_THREADS", "1").env("RUST_BACKTRACE", "0");
        // Use the same inputs in every run.
        command.env("GALATEA_SEED", "1").env_remove("BLESS").current_dir(super::tree::folder());
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().with_context(|| format!("cannot start {}", path.display()))?;
        let stdout = child.stdout.take().context("standard output was not piped")?;
        let (sender, receiver) = channel();
        let reader = thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
                if sender.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                    return;
                }
            }
        });
        let (mut last, mut since) = ("the start".to_owned(), (Instant::now(), Duration::ZERO));
        let ended = loop {
            match receiver.recv_timeout(LOOK) {
                Ok(line) => {
                    since = (Instant::now(), computed(child.id()));
                    if let Some((test, verdict)) = line.strip_prefix("test ").and_then(|line| line.split_once(" ... ")) {
                        // For a test with `should_panic`, the line has this note after the name.
                        last = test.split(" - ").next().unwrap_or(test).trim().to_owned();
                        if verdict.trim_end().ends_with("FAILED") {
                            break Ended::Failed(last);
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    let (began, before) = since;
                    if computed(child.id()).saturating_sub(before) > LONGEST_TEST || began.elapsed() > LONGEST_WAIT * LONGEST_TEST {
                        break Ended::Failed(format!("(a test behind `{last}` does not end)"));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let status = child.wait()?;
                    let failed = || Ended::Failed(format!("({status} behind `{last}`)"));
                    break if status.success() { Ended::Passed } else { failed() };
                }
            }
        };
        // The process may have ended already.
        let _ = child.kill();
        child.wait()?;
        drop(receiver);
        let _ = reader.join();
        Ok(ended)
    }
}

/// The CPU time of a process: the fields `utime` and `stime` of `/proc/PID/stat`, in hundredths of a second. Zero if there is no such file.
fn computed(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The second field, a name in parentheses, may contain spaces.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Duration::from_millis(10 * ticks)
}

/// The default number of parallel processes.
pub(super) fn usual_jobs() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The folder for the output of runs.
pub(super) fn folder() -> PathBuf {
    process::target_dir().join("mutants")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_computes_for_a_time() {
        let start = Instant::now();
        let mut sum = 0u64;
        while start.elapsed() < Duration::from_millis(200) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let is_known = std::path::Path::new("/proc/self/stat").exists();
        assert!(!is_known || (Duration::from_millis(10)..Duration::from_secs(600)).contains(&computed(std::process::id())));
        assert_eq!(computed(u32::MAX), Duration::ZERO);
    }
}
