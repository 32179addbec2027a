//! `cargo xtask mutants`: plants defects in the compiler, one at a time, and lists those that no test notices.
//!
//! The lists in `xtask/mutants` define the defects ([`list`]). All defects are built into one copy of the workspace ([`tree`]). The tests
//! of the copy run once for each defect, up to the first failure ([`run()`]). The outcomes are stored in the target directory
//! ([`results`]).

mod list;
mod results;
mod run;
mod tree;

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::process;
use list::{Defect, Number};
use results::Results;
use run::{Bench, Ended, Outcome};

#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// Run only defects whose names contain one of these texts [default: all]
    names: Vec<String>,
    /// Run only defects of files whose paths contain this text
    #[arg(long, value_name = "TEXT")]
    file: Option<String>,
    /// Run only defects that have no result yet, or have changed since
    #[arg(long)]
    new: bool,
    /// Run only defects that no test of results noticed in their last run
    #[arg(long)]
    survivors: bool,
    /// Run a random sample of the defects that a test of `tests/kernels` is known to notice, with only that test
    #[arg(long, value_name = "COUNT")]
    sample: Option<usize>,
    /// Seed of the sample [default: derived from the last commit]
    #[arg(long, value_name = "NUMBER", requires = "sample")]
    seed: Option<u64>,
    /// Run only the tests that the list names for each defect; a defect that they do not notice survives if the list has a reason, and gets no
    /// result otherwise
    #[arg(long)]
    own: bool,
    /// Number of test executables to run in parallel [default: number of cores]
    #[arg(long, value_name = "COUNT")]
    jobs: Option<usize>,
    /// List the defects and their results, without running tests
    #[arg(long)]
    list: bool,
    /// Write docs/mutants.md from the results, without running tests
    #[arg(long)]
    report: bool,
    /// Write the test that noticed each defect into the lists; with --report, from earlier runs too
    #[arg(long)]
    record: bool,
}

impl Args {
    /// The arguments for a sample of `count` defects, with the seed of the last commit.
    pub(crate) fn sample(count: usize) -> Args {
        Args { sample: Some(count), ..Args::default() }
    }
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let defects = list::read(&process::root().join("xtask/mutants"))?;
    let mut results = Results::read();
    let chosen = chosen(args, &defects, &results)?;
    if args.list {
        for (number, defect) in &chosen {
            println!("{number:>4}  {}: {} ({})", defect.file, defect.name, shown(results.outcome(defect)));
        }
        return Ok(());
    }
    if args.report {
        if args.record {
            results::record(&results)?;
        }
        return results::write_page(&defects, &results);
    }
    ensure!(!chosen.is_empty(), "no defect of the list is meant");

    let start = Instant::now();
    println!("planting {} defects in {}", defects.len(), tree::folder().display());
    tree::write(&with_checks(&defects))?;
    let mut only = args.sample.map(|_| vec![run::WRITTEN_FOR_SURVIVORS]);
    if args.own {
        let named = chosen.iter().flat_map(|(_, defect)| defect.first.iter().chain(&defect.noticed_by));
        only = Some(named.map(|tests| tests.executable.as_str()).chain([run::WRITTEN_FOR_SURVIVORS]).collect());
    }
    let bench = Bench::new(&tree::build(only.as_deref())?);
    println!("built in {:.0} s", start.elapsed().as_secs_f64());
    check_itself(&bench, defects.len())?;
    let jobs = args.jobs.unwrap_or_else(run::usual_jobs).clamp(1, chosen.len());
    let unexpected = judge_all(&bench, &chosen, jobs, args.own || args.sample.is_some(), &mut results)?;
    println!("\n{} defects in {:.0} s\n", chosen.len(), start.elapsed().as_secs_f64());
    let ran: Vec<Defect> = chosen.iter().map(|(_, defect)| (*defect).clone()).collect();
    println!("{}", results::page(&ran, &results));
    if args.record {
        results::record(&results)?;
    }
    if !unexpected.is_empty() {
        bail!("no test of results notices: {}", unexpected.join("; "));
    }
    Ok(())
}

/// The defects that the arguments select, with their numbers.
fn chosen<'d>(args: &Args, defects: &'d [Defect], results: &Results) -> Result<Vec<(Number, &'d Defect)>> {
    let is_meant = |defect: &Defect| {
        let outcome = results.outcome(defect);
        (args.names.is_empty() || args.names.iter().any(|name| defect.name.contains(name)))
            && args.file.as_ref().is_none_or(|file| defect.file.contains(file))
            && (!args.new || outcome.is_none())
            && (!args.survivors || outcome.is_some_and(|outcome| !matches!(outcome, Outcome::Noticed(_))))
    };
    let mut chosen: Vec<(Number, &Defect)> =
        defects.iter().enumerate().map(|(at, defect)| (at + 1, defect)).filter(|(_, defect)| is_meant(defect)).collect();
    if let Some(count) = args.sample {
        // These defects are fast to run: one executable is built, and its tests take almost no time.
        chosen.retain(|(_, defect)| defect.noticed_by.as_ref().is_some_and(|tests| tests.executable == run::WRITTEN_FOR_SURVIVORS));
        let mut state = match args.seed {
            Some(seed) => seed,
            None => seed_of_commit()?,
        };
        println!("a sample of {count}, drawn by --seed {state}");
        while chosen.len() > count {
            // Knuth's multiplier; only the high bits are random.
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            chosen.remove((state >> 33) as usize % chosen.len());
        }
    }
    Ok(chosen)
}

/// The seed of the last commit, so that each commit draws another sample.
fn seed_of_commit() -> Result<u64> {
    let hash = process::output(&mut process::command("git rev-parse HEAD"))?;
    u64::from_str_radix(hash.get(..8).unwrap_or_default(), 16).context("git names no commit")
}

/// The list, followed by the two checks of [`check_itself`]: a change that is no defect, and one that empties every kernel.
fn with_checks(defects: &[Defect]) -> Vec<Defect> {
    let checks = "file kernel-lang/src/backend/ptx/mod.rs\n\
                  defect nothing changes\n- emitter.region(func.body);\n+ emitter.region(func.body);\n\
                  defect kernels are empty\n- emitter.region(func.body);\n+ emitter.asm.line(format_args!(\"ret\"));\n";
    let checks = list::parse(checks).expect("these lines are a list");
    defects.iter().cloned().chain(checks).collect()
}

/// Checks the tool itself. Without a defect, or with a change that is none, no test may fail; with empty kernels, a test must fail.
fn check_itself(bench: &Bench, count: usize) -> Result<()> {
    for (number, expects) in [(0, true), (count + 1, true), (count + 2, false)] {
        let ended = bench.check(number)?;
        ensure!(
            (ended == Ended::Passed) == expects,
            "the copy does not do as it should: with defect {number} of {count} its quickest tests ended so: {ended:?}"
        );
    }
    Ok(())
}

/// Runs tests for each of the defects: first the tests for its file and, if none of these notices, all others. Returns the names of
/// survivors without a reason.
fn judge_all(bench: &Bench, chosen: &[(Number, &Defect)], jobs: usize, own: bool, results: &mut Results) -> Result<Vec<String>> {
    // Shuffle the defects, so that a run that is stopped early has covered every file.
    let step = (chosen.len() * 5 / 8..).find(|step| is_coprime(*step, chosen.len())).unwrap_or(1);
    let shuffled = (0..chosen.len()).map(|at| chosen[at * step % chosen.len()]);
    // The flag says whether the tests for the defect's file have passed. Such a defect goes to the end of the queue, after the first tests
    // of all others.
    let queue: Mutex<VecDeque<(Number, &Defect, bool)>> = Mutex::new(shuffled.map(|(number, defect)| (number, defect, false)).collect());
    let done = Mutex::new((0, results, Vec::new()));
    let work = || -> Result<()> {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
            let Some((number, defect, has_passed)) = next else { return Ok(()) };
            let start = Instant::now();
            let outcome = match if has_passed { Some(bench.judge(number)?) } else { bench.judge_first(number, defect)? } {
                Some(outcome) => outcome,
                // All tests would run for a result that the list already has.
                None if own && defect.survives.is_some() => Outcome::Survived,
                None => {
                    println!("    {:.0} s  {}: {}: not by its own tests", start.elapsed().as_secs_f64(), defect.file, defect.name);
                    if own {
                        done.lock().unwrap_or_else(PoisonError::into_inner).2.push(format!("`{}`", defect.name));
                    } else {
                        queue.lock().unwrap_or_else(PoisonError::into_inner).push_back((number, defect, true));
                    }
                    continue;
                }
            };
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.0 += 1;
            let of = chosen.len();
            println!(
                "[{}/{of}] {:.0} s  {}: {}: {}",
                done.0,
                start.elapsed().as_secs_f64(),
                defect.file,
                defect.name,
                shown(Some(&outcome))
            );
            if results::is_unexpected(defect, &outcome) {
                done.2.push(format!("`{}`", defect.name));
            } else if defect.survives.is_some() && matches!(outcome, Outcome::Noticed(_)) {
                println!("    the list says that it survives: take the sentence out");
            }
            done.1.add(defect, outcome, start.elapsed())?;
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(|_| bail!("a worker panicked")))
    })?;
    Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner).2)
}

fn is_coprime(a: usize, b: usize) -> bool {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a == 1
}

fn shown(outcome: Option<&Outcome>) -> String {
    match outcome {
        None => "no result yet".to_owned(),
        Some(Outcome::Noticed(test)) => format!("noticed by {test}"),
        Some(Outcome::NoticedByGoldens(test)) => format!("SURVIVED but for {test}"),
        Some(Outcome::Survived) => "SURVIVED".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "file a.rs\ndefect one\n- a\n+ b\nnoticed by kernels x\ndefect two\n- b\n+ c\nnoticed by kernels y\nfile b.rs\ndefect three\n- c\n+ d\nnoticed by kernels z\ndefect four\n- d\n+ e\nsurvives it is none\n";

    fn names(args: &Args) -> Vec<String> {
        let defects = list::parse(LIST).unwrap();
        chosen(args, &defects, &Results::default())
            .unwrap()
            .into_iter()
            .map(|(number, defect)| format!("{number} {}", defect.name))
            .collect()
    }

    #[test]
    fn arguments_choose_by_name_and_file() {
        assert_eq!(names(&Args::default()), ["1 one", "2 two", "3 three", "4 four"]);
        assert_eq!(names(&Args { names: vec!["o".into()], file: Some("b.rs".into()), ..Args::default() }), ["4 four"]);
        assert_eq!(names(&Args { survivors: true, ..Args::default() }), [""; 0]);
    }

    #[test]
    fn a_sample_follows_from_its_seed() {
        let sample = |seed| names(&Args { sample: Some(2), seed: Some(seed), ..Args::default() });
        assert_eq!(sample(3), sample(3));
        assert!((0..20).any(|seed| sample(seed) != sample(3)));
        assert!((0..20).all(|seed| sample(seed).len() == 2 && !sample(seed).contains(&"4 four".to_owned())));
    }
}
