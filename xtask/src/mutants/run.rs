//! Runs tests with one defect on, and finds out whether any notices.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::list::{Defect, Number};
use super::tree::VARIABLE;
use crate::artifacts::Executable;
use crate::process;

/// Tests that run in one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suite {
    executable: &'static str,
    /// Of the tests' names; an empty one means all.
    filter: &'static str,
}

/// Tests that compare results: with other devices, with `f64` references, with what must hold. Those that notice much in little time come first.
pub(super) const BEHAVIOUR: [Suite; 11] = [
    Suite { executable: "tiles", filter: "" },
    Suite { executable: "layout", filter: "" },
    Suite { executable: "kernel_lang", filter: "" },
    Suite { executable: "run", filter: "sim::" },
    Suite { executable: "fuzz", filter: "sim::" },
    Suite { executable: "ops", filter: "sim::" },
    Suite { executable: "math", filter: "" },
    Suite { executable: "rows", filter: "" },
    // Of an older target, which lacks some instructions.
    Suite { executable: "run", filter: "sim:sm_80::" },
    Suite { executable: "ops", filter: "sim:sm_80::" },
    Suite { executable: "conformance", filter: "sim::" },
];

/// Tests that compare texts with what the compiler wrote before: they notice nearly everything, and are blessed as easily.
pub(super) const GOLDENS: [Suite; 1] = [Suite { executable: "filetests", filter: "" }];

/// The shortest suites, by which the tool itself is checked.
pub(super) const QUICK: Suite = BEHAVIOUR[0];

/// The most memory that a test may take, in KiB: a defect may make the compiler grow without end.
const MOST_MEMORY_KIB: u64 = 12 << 20;
/// The time limit of tests whose usual time is not known.
const LONGEST: Duration = Duration::from_secs(900);

/// How a run of tests ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    Passed,
    /// The test that failed, or how else the executable ended.
    Failed(String),
}

/// What became of a defect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// By which executable's test.
    Noticed(String),
    /// By no test that compares results, but by one that compares texts.
    NoticedByGoldens(String),
    Survived,
}

/// Where tests run.
pub(super) struct Bench {
    executables: BTreeMap<String, PathBuf>,
    /// How long each suite takes while no defect is on.
    usual: BTreeMap<String, Duration>,
    /// Tests that fail while no defect is on, because of how the copy differs.
    failing: BTreeMap<String, Vec<String>>,
}

impl Suite {
    /// As it is shown and kept: `run sim::`.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.executable, self.filter).trim().to_owned()
    }
}

impl Bench {
    pub(super) fn new(executables: &[Executable]) -> Bench {
        let executables = executables.iter().map(|executable| (executable.target.clone(), executable.path.clone())).collect();
        Bench { executables, usual: BTreeMap::new(), failing: BTreeMap::new() }
    }

    /// Runs a suite while no defect is on: how long it takes, and which tests fail.
    pub(super) fn measure(&mut self, suite: Suite) -> Result<(Duration, Vec<String>)> {
        let start = Instant::now();
        let mut failing = Vec::new();
        self.run(0, suite.executable, &[suite.filter], LONGEST, &mut |test| {
            failing.push(test.to_owned());
            false
        })?;
        self.know(&suite.name(), start.elapsed(), failing.clone());
        Ok((start.elapsed(), failing))
    }

    /// Takes over what was measured before.
    pub(super) fn know(&mut self, suite: &str, usual: Duration, failing: Vec<String>) {
        self.usual.insert(suite.to_owned(), usual);
        self.failing.insert(suite.to_owned(), failing);
    }

    /// When the test executables were built.
    pub(super) fn built(&self) -> Result<Vec<std::time::SystemTime>> {
        self.executables.values().map(|path| Ok(std::fs::metadata(path)?.modified()?)).collect()
    }

    /// Runs a suite up to the first test that fails and does not fail without a defect.
    pub(super) fn notices(&self, number: Number, suite: Suite) -> Result<Ended> {
        let name = suite.name();
        // Three times as long as usual, and some more, is a hang.
        let limit = self.usual.get(&name).map_or(LONGEST, |usual| 3 * *usual + Duration::from_secs(30));
        let none = Vec::new();
        let failing = self.failing.get(&name).unwrap_or(&none);
        let mut arguments = vec![suite.filter];
        for test in failing {
            arguments.extend(["--skip", test]);
        }
        self.run(number, suite.executable, &arguments, limit, &mut |_| true)
    }

    /// What becomes of a defect: first the tests that are said to notice it, then all, until one does.
    pub(super) fn judge(&self, number: Number, defect: &Defect) -> Result<Outcome> {
        if let Some((executable, filter)) = &defect.noticed_by
            && let Ended::Failed(test) = self.run(number, executable, &[filter], LONGEST, &mut |_| true)?
        {
            let is_golden = GOLDENS.iter().any(|suite| suite.executable == executable);
            let test = format!("{executable} {test}");
            return Ok(if is_golden { Outcome::NoticedByGoldens(test) } else { Outcome::Noticed(test) });
        }
        for suite in BEHAVIOUR {
            if let Ended::Failed(test) = self.notices(number, suite)? {
                return Ok(Outcome::Noticed(format!("{} {test}", suite.executable)));
            }
        }
        for suite in GOLDENS {
            if let Ended::Failed(test) = self.notices(number, suite)? {
                return Ok(Outcome::NoticedByGoldens(format!("{} {test}", suite.executable)));
            }
        }
        Ok(Outcome::Survived)
    }

    /// Runs tests one after the other. `ends` is told each that fails, and says whether that is enough.
    fn run(
        &self,
        number: Number,
        executable: &str,
        arguments: &[&str],
        limit: Duration,
        ends: &mut dyn FnMut(&str) -> bool,
    ) -> Result<Ended> {
        let path = self.executables.get(executable).with_context(|| format!("there is no test executable `{executable}`"))?;
        let mut command = Command::new("sh");
        command.args(["-c", &format!("ulimit -v {MOST_MEMORY_KIB} -c 0; exec \"$@\""), "sh"]).arg(path).arg("--test-threads=1");
        command.args(arguments.iter().filter(|argument| !argument.is_empty()));
        command.env(VARIABLE, number.to_string()).env("GALATEA_CACHE", "off").env("RAYON_NUM_THREADS", "1").env("RUST_BACKTRACE", "0");
        // The same inputs in every run.
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
        let deadline = Instant::now() + limit;
        let (mut failed, mut running) = (None, String::new());
        let ended = loop {
            match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    if let Some(test) = line.strip_prefix("test ").and_then(|line| line.split_once(" ...")).map(|(test, _)| test.trim()) {
                        running = test.to_owned();
                        if line.trim_end().ends_with("FAILED") {
                            failed.get_or_insert_with(|| running.clone());
                            if ends(&running) {
                                break Ended::Failed(running);
                            }
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => break Ended::Failed(format!("(no end within {} s, behind {running})", limit.as_secs())),
                Err(RecvTimeoutError::Disconnected) => {
                    let status = child.wait()?;
                    break match failed {
                        _ if status.success() => Ended::Passed,
                        Some(test) => Ended::Failed(test),
                        None => Ended::Failed(format!("({status}, behind {running})")),
                    };
                }
            }
        };
        // It may have ended by itself.
        let _ = child.kill();
        child.wait()?;
        drop(receiver);
        let _ = reader.join();
        Ok(ended)
    }
}

/// How many processes run side by side unless somebody says otherwise.
pub(super) fn usual_jobs() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The folder of what a run leaves.
pub(super) fn folder() -> PathBuf {
    process::target_dir().join("mutants")
}
