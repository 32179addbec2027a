//! The list of planted defects: its text format, and the location of each defect in the sources.
//!
//! ```text
//! # A comment.
//! file kernel-lang/src/passes/contract.rs
//! first run sim::contract, fuzz sim::
//!
//! defect a fused difference adds the subtrahend
//!   after  (Some((x, y)), ..) => {
//!   -      b.unary(UnaryOp::Neg, rhs)
//!   +      rhs
//!   noticed by  run sim::contract::difference
//! ```
//!
//! The `+` lines replace the `-` lines, which are code of the file. White space in the `-` lines matches any white space, so that
//! reformatting does not matter. The code must occur exactly once in the file. With `after`, it is the first occurrence after that text,
//! which must occur exactly once. Code that ends with `;` is a statement; other code is an expression. A file is one of `kernel-lang`,
//! `kernel-graph`, `kernel-runtime`, or of `kernel-library` outside of its kernels, which cannot ask at run time whether a defect is on.
//!
//! `first`, below `file`, names the tests for a file: a test executable and a filter of its tests, with further ones after commas. These
//! tests run before all others. The test of `noticed by`, which `cargo xtask mutants --record` writes, runs before them. `survives` gives
//! the reason why a change that no test notices is not a defect.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// A planted defect.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Defect {
    /// The description, which is unique.
    pub(super) name: String,
    /// The path, relative to the root of the workspace.
    pub(super) file: String,
    after: Option<String>,
    find: String,
    replace: String,
    /// The test that noticed the defect in the last recorded run.
    pub(super) noticed_by: Option<Tests>,
    /// The tests for its file, which run before all others.
    pub(super) first: Vec<Tests>,
    /// The reason why the change is not a defect.
    pub(super) survives: Option<String>,
}

/// The tests of an executable whose names contain the filter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Tests {
    pub(super) executable: String,
    pub(super) filter: String,
}

/// The number of a defect: its index in the list, counted from 1.
pub(super) type Number = usize;

/// Parses a list.
pub(super) fn parse(text: &str) -> Result<Vec<Defect>> {
    let mut defects: Vec<Defect> = Vec::new();
    let (mut file, mut first): (Option<&str>, Vec<Tests>) = (None, Vec::new());
    for (number, line) in text.lines().enumerate() {
        let (word, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let rest = rest.trim();
        let said = || format!("line {}: `{}`", number + 1, line.trim());
        if word == "file" {
            (file, first) = (Some(rest), Vec::new());
        } else if word == "first" {
            first.extend(rest.split(',').map(|tests| tests_of(tests).with_context(said)).collect::<Result<Vec<_>>>()?);
        } else if word == "defect" {
            let file = file.with_context(|| format!("{}: no `file` stands above it", said()))?;
            defects.push(Defect { name: rest.to_owned(), file: file.to_owned(), first: first.clone(), ..Defect::default() });
        } else if !word.is_empty() && !word.starts_with('#') {
            let defect = defects.last_mut().with_context(|| format!("{}: no `defect` stands above it", said()))?;
            match word {
                "after" => defect.after = Some(rest.to_owned()),
                "-" => add_line(&mut defect.find, rest),
                "+" => add_line(&mut defect.replace, rest),
                "survives" => defect.survives = Some(rest.to_owned()),
                "noticed" => {
                    defect.noticed_by = Some(tests_of(rest.strip_prefix("by").unwrap_or_default()).with_context(said)?);
                }
                _ => bail!("{}: a line begins with `file`, `first`, `defect`, `after`, `-`, `+`, `noticed by`, `survives` or `#`", said()),
            }
        }
    }
    let mut names = BTreeSet::new();
    for defect in &defects {
        ensure!(!defect.find.is_empty(), "`{}` changes nothing: say what by a `-` line", defect.name);
        ensure!(names.insert(&defect.name), "two defects are called `{}`", defect.name);
    }
    Ok(defects)
}

/// Parses `run sim::loops`.
fn tests_of(text: &str) -> Result<Tests> {
    let (executable, filter) = text.trim().split_once(' ').context("say a test executable and a filter of its tests: `run sim::loops`")?;
    Ok(Tests { executable: executable.to_owned(), filter: filter.trim().to_owned() })
}

fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

/// Reads all defects of the lists in a folder, in the order of the file names.
pub(super) fn read(folder: &Path) -> Result<Vec<Defect>> {
    let mut text = String::new();
    for path in lists(folder)? {
        text.push_str(&std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?);
        text.push('\n');
    }
    parse(&text)
}

/// The files of the folder that contain lists, sorted by name.
pub(super) fn lists(folder: &Path) -> Result<Vec<std::path::PathBuf>> {
    let entries = folder.read_dir().with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    Ok(paths)
}

impl Defect {
    /// The byte range of its file that the defect replaces.
    pub(super) fn range(&self, source: &str) -> Result<Range<usize>> {
        let only = |text: &str| -> Result<Range<usize>> {
            let found = occurrences(source, text);
            match &found[..] {
                [one] => Ok(one.clone()),
                _ => bail!("`{}`: {} contains `{text}` {} times, and must contain it once", self.name, self.file, found.len()),
            }
        };
        let range = match &self.after {
            None => only(&self.find)?,
            Some(after) => {
                let from = only(after)?.end;
                let found = occurrences(&source[from..], &self.find).into_iter().next();
                let found = found.with_context(|| format!("`{}`: {} has no `{}` behind `{after}`", self.name, self.file, self.find))?;
                from + found.start..from + found.end
            }
        };
        ensure!(
            !self.is_statement() || !self.find.trim_start().starts_with("let "),
            "`{}`: what a `let` declares would not be known behind it: replace the expression only",
            self.name
        );
        Ok(range)
    }

    fn is_statement(&self) -> bool {
        self.find.trim_end().ends_with(';')
    }

    /// Identifies the replacement; a result applies only to this content.
    pub(super) fn content(&self) -> String {
        let words: Vec<&str> = self.find.split_whitespace().chain(["=>"]).chain(self.replace.split_whitespace()).collect();
        words.join(" ")
    }
}

/// A byte range of a file, and the defects that replace it.
type Choice<'d> = (Range<usize>, Vec<(Number, &'d Defect)>);

/// The source with all its defects planted. At run time, each replaced range selects between the original code and the defects' code.
pub(super) fn planted(source: &str, defects: &[(Number, &Defect)]) -> Result<String> {
    let mut choices: Vec<Choice<'_>> = Vec::new();
    for (number, defect) in defects {
        let range = defect.range(source)?;
        match choices.iter_mut().find(|(known, _)| *known == range) {
            Some((_, same)) => same.push((*number, defect)),
            None => choices.push((range, vec![(*number, defect)])),
        }
    }
    choices.sort_by_key(|(range, _)| range.start);
    for pair in choices.windows(2) {
        let [(first, of_first), (second, of_second)] = pair else { continue };
        let names = || format!("`{}` and `{}`", of_first[0].1.name, of_second[0].1.name);
        ensure!(first.end <= second.start, "{} overlap in {}: replace the same code, or code apart", names(), of_first[0].1.file);
    }
    let mut out = String::new();
    let mut at = 0;
    for (range, defects) in choices {
        out.push_str(&source[at..range.start]);
        let arms: Vec<String> =
            defects.iter().map(|(number, defect)| format!("if crate::planted::is_on({number}) {{ {} }}", defect.replace)).collect();
        let choice = format!("{} else {{ {} }}", arms.join(" else "), &source[range.clone()]);
        if defects[0].1.is_statement() {
            out.push_str(&choice);
        } else {
            out.push_str(&format!("({choice})"));
        }
        at = range.end;
    }
    out.push_str(&source[at..]);
    Ok(out)
}

/// The byte ranges where a text occurs, with any white space between its words.
fn occurrences(source: &str, text: &str) -> Vec<Range<usize>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let Some((first, rest)) = words.split_first() else { return Vec::new() };
    let mut found: Vec<Range<usize>> = Vec::new();
    for (start, _) in source.match_indices(first) {
        let end = rest.iter().try_fold(start + first.len(), |end, word| {
            let behind = source[end..].trim_start();
            behind.starts_with(word).then(|| source.len() - behind.len() + word.len())
        });
        if let Some(end) = end.filter(|_| found.last().is_none_or(|last| last.end <= start)) {
            found.push(start..end);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    const LIST: &str = "
        # Two of one file.
        file a.rs
        first  ops sim::add, fuzz sim::
        defect it adds
          - x - y
          + x + y
          noticed by  run sim::differences
        defect it forgets
          after fn two
          - forget();
          survives nobody remembers
    ";

    #[test]
    fn a_list_says_what_is_replaced_and_which_tests_notice() {
        let defects = parse(LIST).unwrap();
        let tests = |executable: &str, filter: &str| Tests { executable: executable.to_owned(), filter: filter.to_owned() };
        assert_eq!(defects[0].noticed_by, Some(tests("run", "sim::differences")));
        assert_eq!(defects[1].first, [tests("ops", "sim::add"), tests("fuzz", "sim::")]);
        assert_eq!(defects[1].survives.as_deref(), Some("nobody remembers"));
        let source = "fn one() { forget(); x -\n    y }\nfn two() { forget(); }\n";
        let numbered: Vec<(Number, &Defect)> = defects.iter().enumerate().map(|(at, defect)| (at + 1, defect)).collect();
        let planted = planted(source, &numbered).unwrap();
        let expected = "fn one() { forget(); (if crate::planted::is_on(1) { x + y } else { x -\n    y }) }\n\
                        fn two() { if crate::planted::is_on(2) {  } else { forget(); } }\n";
        assert_eq!(planted, expected);
    }

    #[test]
    fn defects_of_the_same_code_are_alternatives() {
        let defects = parse("file a.rs\ndefect a\n- x\n+ y\ndefect b\n- x\n+ z\n").unwrap();
        let planted = planted("f(x)", &[(1, &defects[0]), (2, &defects[1])]).unwrap();
        assert_eq!(planted, "f((if crate::planted::is_on(1) { y } else if crate::planted::is_on(2) { z } else { x }))");
    }

    #[test]
    fn code_that_does_not_occur_exactly_once_is_an_error() {
        let error = |text: &str, source: &str| parse(text).and_then(|defects| defects[0].range(source)).map_err(|error| error.to_string());
        let twice = error("file a.rs\ndefect d\n- x\n+ y", "x x").unwrap_err();
        assert_eq!(twice, "`d`: a.rs contains `x` 2 times, and must contain it once");
        let none = error("file a.rs\ndefect d\nafter b\n- x\n+ y", "x b").unwrap_err();
        assert_eq!(none, "`d`: a.rs has no `x` behind `b`");
        let declared = error("file a.rs\ndefect d\n- let x = 1;\n", "let x = 1;").unwrap_err();
        assert!(declared.contains("replace the expression only"), "{declared}");
        let overlap = parse("file a.rs\ndefect d\n- a b\n+ c\ndefect e\n- b c\n+ d").unwrap();
        let error = planted("a b c", &[(1, &overlap[0]), (2, &overlap[1])]).unwrap_err().to_string();
        assert_eq!(error, "`d` and `e` overlap in a.rs: replace the same code, or code apart");
    }

    #[test]
    fn lists_with_mistakes_are_refused() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert_eq!(error("defect d"), "line 1: `defect d`: no `file` stands above it");
        assert_eq!(error("file a.rs\ndefect d"), "`d` changes nothing: say what by a `-` line");
        assert_eq!(error("file a.rs\ndefect d\n- x\ndefect d\n- y"), "two defects are called `d`");
        assert!(error("file a.rs\ndefect d\n* x").contains("a line begins with"));
        assert_eq!(error("file a.rs\ndefect d\nnoticed by run"), "line 3: `noticed by run`");
    }

    /// A refactoring that moves code fails here, and not only in a run of an hour.
    #[test]
    fn the_code_of_every_planted_defect_occurs_once() {
        let root = process::root();
        let defects = read(&root.join("xtask/mutants")).unwrap();
        let files: BTreeSet<&str> = defects.iter().map(|defect| defect.file.as_str()).collect();
        let mut wrong = Vec::new();
        for file in files {
            let source = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            let own: Vec<(Number, &Defect)> = defects.iter().enumerate().filter(|(_, defect)| defect.file == file).collect();
            wrong.extend(own.iter().filter_map(|(_, defect)| defect.range(&source).err()).map(|error| error.to_string()));
            if wrong.is_empty() {
                match planted(&source, &own) {
                    // Code that is part of an expression, such as `field: value`, leaves a text that is no Rust.
                    Ok(text) => wrong.extend(syn::parse_file(&text).err().map(|error| format!("{file} with its defects: {error}"))),
                    Err(error) => wrong.push(error.to_string()),
                }
            }
        }
        assert!(wrong.is_empty(), "these planted defects do not apply; mend xtask/mutants:\n{}", wrong.join("\n"));
    }

    /// A filter that matches no test passes, and so would notice nothing.
    #[test]
    fn the_tests_that_notice_defects_exist() {
        let root = process::root();
        let file_of = |path: &str| {
            [format!("{path}.rs"), format!("{path}/mod.rs")].map(|path| root.join(path)).into_iter().find(|path| path.exists())
        };
        let exists = |tests: &Tests| match (tests.executable.as_str(), tests.filter.split_once("::")) {
            // The name of a kernel is that of its file, of which a filter may be a part.
            ("kernels", Some(("sim", kernel))) => {
                let (folder, name) = kernel.rsplit_once("::").unwrap_or(("", kernel));
                let entries = root.join("tests/kernels").join(folder.replace("::", "/")).read_dir();
                entries.is_ok_and(|mut entries| entries.any(|entry| entry.unwrap().file_name().to_string_lossy().contains(name)))
            }
            ("kernel_lang", _) if let Some((module, test)) = tests.filter.split_once("::tests::") => {
                let module = format!("kernel-lang/src/{}", module.replace("::", "/"));
                let files = [file_of(&module), file_of(&format!("{module}/tests"))];
                files.into_iter().flatten().any(|file| std::fs::read_to_string(file).unwrap().contains(&format!("fn {test}(")))
            }
            ("graphs", Some((module, test))) => {
                let text = std::fs::read_to_string(root.join(format!("kernel-graph/tests/graphs/{module}.rs"))).unwrap_or_default();
                text.contains(&format!("fn {test}"))
            }
            _ => true,
        };
        let defects = read(&root.join("xtask/mutants")).unwrap();
        let wrong: Vec<String> = defects
            .iter()
            .flat_map(|defect| defect.first.iter().chain(&defect.noticed_by).map(move |tests| (defect, tests)))
            .filter(|(_, tests)| !exists(tests))
            .map(|(defect, tests)| format!("{}: {} {}", defect.name, tests.executable, tests.filter))
            .collect();
        assert!(wrong.is_empty(), "there are no such tests; mend xtask/mutants:\n{}", wrong.join("\n"));
    }

    /// Files in which a planted defect would not change executed code.
    const WITHOUT_DEFECTS: [&str; 2] = ["kernel-lang/src/passes/mod.rs", "kernel-graph/src/passes/mod.rs"];

    /// Does the file define a function, and not only modules?
    fn has_code(path: &Path) -> bool {
        std::fs::read_to_string(path).unwrap().contains("fn ")
    }

    #[test]
    fn every_pass_analysis_and_file_of_the_emitter_has_a_defect() {
        let root = process::root();
        let defects = read(&root.join("xtask/mutants")).unwrap();
        assert!(defects.len() >= 130, "{} planted defects", defects.len());
        let folders = ["kernel-lang/src/passes", "kernel-lang/src/analysis", "kernel-lang/src/backend/ptx", "kernel-graph/src/passes"];
        let mut folders: Vec<String> = folders.map(str::to_owned).into();
        let mut without = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in root.join(&folder).read_dir().unwrap() {
                let entry = entry.unwrap();
                let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
                if entry.path().is_dir() {
                    folders.push(path);
                } else if path.ends_with(".rs")
                    && !path.ends_with("/tests.rs")
                    && !WITHOUT_DEFECTS.contains(&path.as_str())
                    && has_code(&entry.path())
                    && defects.iter().all(|defect| defect.file != path)
                {
                    without.push(path);
                }
            }
        }
        without.sort();
        assert!(without.is_empty(), "plant a defect in each of these, in xtask/mutants:\n{}", without.join("\n"));
    }
}
