//! The results of all defects: stored between runs, counted by file, and written as a page.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::list::{self, Defect};
use super::run::{self, Outcome};
use crate::process;

/// For each defect's name: its content, its outcome, and the time of its tests.
#[derive(Default)]
pub(super) struct Results(BTreeMap<String, (String, Outcome, Duration)>);

fn path() -> PathBuf {
    run::folder().join("results.tsv")
}

impl Results {
    /// Reads the results of earlier runs.
    pub(super) fn read() -> Results {
        let text = fs::read_to_string(path()).unwrap_or_default();
        let row = |line: &str| {
            let mut columns = line.split('\t').map(str::to_owned);
            let (name, content, kind, test, seconds) =
                (columns.next()?, columns.next()?, columns.next()?, columns.next()?, columns.next()?.parse().ok()?);
            let outcome = match kind.as_str() {
                "noticed" => Outcome::Noticed(test),
                "goldens" => Outcome::NoticedByGoldens(test),
                _ => Outcome::Survived,
            };
            Some((name, (content, outcome, Duration::try_from_secs_f64(seconds).ok()?)))
        };
        Results(text.lines().filter_map(row).collect())
    }

    pub(super) fn add(&mut self, defect: &Defect, outcome: Outcome, took: Duration) -> Result<()> {
        self.0.insert(defect.name.clone(), (defect.content(), outcome, took));
        let mut text = String::new();
        for (name, (content, outcome, took)) in &self.0 {
            let (kind, test) = match outcome {
                Outcome::Noticed(test) => ("noticed", test.as_str()),
                Outcome::NoticedByGoldens(test) => ("goldens", test.as_str()),
                Outcome::Survived => ("survived", ""),
            };
            let test = test.replace(['\t', '\n'], " ");
            writeln!(text, "{name}\t{content}\t{kind}\t{test}\t{:.1}", took.as_secs_f64())?;
        }
        fs::write(path(), text).with_context(|| format!("cannot write {}", path().display()))
    }

    /// The outcome of a defect, if the defect has not changed since.
    pub(super) fn outcome(&self, defect: &Defect) -> Option<&Outcome> {
        self.0.get(&defect.name).filter(|(content, ..)| *content == defect.content()).map(|(_, outcome, _)| outcome)
    }
}

/// The number of defects of a file, or of all files, and how many of them tests notice.
#[derive(Clone, Copy, Default)]
struct Counts {
    all: usize,
    /// Noticed by tests other than `tests/kernels`, which was written for defects that the tests of their files do not notice.
    by_its_own: usize,
    noticed: usize,
    with_goldens: usize,
    /// Changes that are not defects, with a reason in the list.
    explained: usize,
}

impl Counts {
    fn add(&mut self, defect: &Defect, outcome: &Outcome) {
        let is_explained = !matches!(outcome, Outcome::Noticed(_)) && defect.survives.is_some();
        self.all += 1;
        self.noticed += usize::from(matches!(outcome, Outcome::Noticed(_)));
        self.by_its_own +=
            usize::from(matches!(outcome, Outcome::Noticed(test) if test.split(' ').next() != Some(run::WRITTEN_FOR_SURVIVORS)));
        self.with_goldens += usize::from(*outcome != Outcome::Survived && !is_explained);
        self.explained += usize::from(is_explained);
    }

    /// The percentage of `of` among the actual defects.
    fn rate(self, of: usize) -> String {
        let counted = (self.all - self.explained).max(1);
        format!("{:.1} %", 100.0 * of as f64 / counted as f64)
    }
}

/// Returns whether the defect survived and the list has no reason for it.
pub(super) fn is_unexpected(defect: &Defect, outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Noticed(_)) && defect.survives.is_none()
}

/// The page with all defects that have a result: counts by file, then the survivors.
pub(super) fn page(defects: &[Defect], results: &Results) -> String {
    let mut files: BTreeMap<&str, Counts> = BTreeMap::new();
    let (mut total, mut survivors, mut untried) = (Counts::default(), String::new(), 0);
    for defect in defects {
        let Some(outcome) = results.outcome(defect) else {
            untried += 1;
            continue;
        };
        files.entry(&defect.file).or_default().add(defect, outcome);
        total.add(defect, outcome);
        let golden = match outcome {
            Outcome::Noticed(_) => continue,
            Outcome::NoticedByGoldens(_) => "a golden shows it",
            Outcome::Survived => "nothing shows it",
        };
        let why = defect.survives.as_deref().unwrap_or("**a test is missing**");
        let _ = writeln!(survivors, "- `{}`: {} ({golden}): {why}", short(&defect.file), defect.name);
    }
    let untried = match untried {
        0 => String::new(),
        _ => format!(" {untried} more have no result yet: `cargo xtask mutants --new` runs them."),
    };
    let mut page = format!(
        "# Planted defects\n\n\
         `cargo xtask mutants --report` writes this page from the last results of `cargo xtask mutants`; CONTRIBUTING.md says how the command works.\n\n\
         {} of {} planted defects are noticed by tests that compare results: {}. The tests that the lists name for each file notice {} of \
         these ({}); `tests/kernels` was written for the rest. With the goldens, whose texts are blessed, {} are noticed. \
         {} survive with a reason.{untried}\n\n\
         | file of `kernel-lang/src` | defects | noticed by its tests | by all that compare results | with goldens | survive with a reason |\n|---|---:|---:|---:|---:|---:|\n",
        total.noticed,
        total.all - total.explained,
        total.rate(total.noticed),
        total.by_its_own,
        total.rate(total.by_its_own),
        total.with_goldens,
        total.explained
    );
    for (file, counts) in &files {
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} | {} | {} |",
            short(file),
            counts.all,
            counts.by_its_own,
            counts.noticed,
            counts.with_goldens,
            counts.explained
        );
    }
    page.push_str("\n## Defects that no test of results notices\n\n");
    page.push_str(if survivors.is_empty() { "None.\n" } else { &survivors });
    page
}

fn short(file: &str) -> &str {
    file.strip_prefix("kernel-lang/src/").unwrap_or(file)
}

/// Writes the page.
pub(super) fn write_page(defects: &[Defect], results: &Results) -> Result<()> {
    // Noticed defects get results sooner, so a rate of incomplete results would be biased.
    let missing = defects.iter().filter(|defect| results.outcome(defect).is_none()).count();
    ensure!(missing == 0, "{missing} of {} defects have no result yet: run `cargo xtask mutants --new`", defects.len());
    let path = process::root().join("docs/mutants.md");
    fs::write(&path, page(defects, results)).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the test that noticed each defect into the lists, so that this test runs first from then on.
pub(super) fn record(results: &Results) -> Result<()> {
    for path in list::lists(&process::root().join("xtask/mutants"))? {
        let text = fs::read_to_string(&path)?;
        let recorded = with_tests(&text, results)?;
        if recorded != text {
            fs::write(&path, recorded).with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

/// The text of a list with the tests that noticed its defects.
fn with_tests(text: &str, results: &Results) -> Result<String> {
    let defects = list::parse(text)?;
    let mut out: Vec<String> = Vec::new();
    let mut noticed: Option<String> = None;
    for line in text.lines() {
        let word = line.split_whitespace().next().unwrap_or_default();
        if noticed.is_some() && !["after", "-", "+", "noticed", "survives", "#"].contains(&word) {
            out.extend(noticed.take());
        }
        if word == "defect" {
            let name = line.trim().strip_prefix("defect").unwrap_or_default().trim();
            let outcome = defects.iter().find(|defect| defect.name == name).and_then(|defect| results.outcome(defect));
            if let Some(Outcome::Noticed(test) | Outcome::NoticedByGoldens(test)) = outcome
                // If an executable ended without a failing test, the test is unknown.
                && !test.contains('(')
            {
                noticed = Some(format!("  noticed by  {test}"));
            }
        }
        if word != "noticed" || noticed.is_none() {
            out.push(line.to_owned());
        }
    }
    out.extend(noticed);
    Ok(out.join("\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "file kernel-lang/src/passes/a.rs\n\ndefect one\n  - x\n  + y\n\ndefect two\n  - y\n  + z\n  noticed by  run old\n\
                        \ndefect three\n  - z\n  + x\n  survives it is as good\n";

    fn results(defects: &[Defect]) -> Results {
        let outcomes = [Outcome::Noticed("run sim::a".into()), Outcome::NoticedByGoldens("filetests ptx".into()), Outcome::Survived];
        let rows = defects.iter().zip(outcomes).map(|(defect, outcome)| (defect.name.clone(), (defect.content(), outcome, Duration::ZERO)));
        Results(rows.collect())
    }

    #[test]
    fn the_page_counts_by_file_and_names_survivors() {
        let defects = list::parse(LIST).unwrap();
        let page = page(&defects, &results(&defects));
        assert!(page.contains("1 of 2 planted defects are noticed by tests that compare results: 50.0 %."), "{page}");
        assert!(page.contains("| `passes/a.rs` | 3 | 1 | 1 | 2 | 1 |"), "{page}");
        assert!(page.contains("- `passes/a.rs`: two (a golden shows it): **a test is missing**"), "{page}");
        assert!(!page.contains("no result yet"), "{page}");
        assert!(super::page(&defects, &Results::default()).contains("3 more have no result yet"));
        assert!(page.contains("- `passes/a.rs`: three (nothing shows it): it is as good"), "{page}");
    }

    #[test]
    fn a_list_takes_up_which_tests_noticed() {
        let defects = list::parse(LIST).unwrap();
        let recorded = with_tests(LIST, &results(&defects)).unwrap();
        let expected = LIST.replace("  + y\n", "  + y\n  noticed by  run sim::a\n").replace("run old", "filetests ptx");
        assert_eq!(recorded, expected);
        assert_eq!(with_tests(&recorded, &results(&defects)).unwrap(), recorded);
    }

    #[test]
    fn a_changed_defect_has_no_result() {
        let defects = list::parse(LIST).unwrap();
        let results = results(&defects);
        let changed = list::parse(&LIST.replace("+ y", "+ yy")).unwrap();
        assert!(results.outcome(&defects[0]).is_some() && results.outcome(&changed[0]).is_none());
    }
}
