//! The messages for mistakes: every builtin, and every kind of mistake that can be made with it.
//!
//! The rows stand in `mistakes/rows/*.txt` ([`rows`] says how they look). A row is a statement of a kernel with one mistake, between `«` and `»` what
//! has to be underlined, and below it the message and its help. It stands for one case for each builtin at the head of its section. Each must give
//! that message, that help, that range, and nothing else: one mistake is one message.
//!
//! `BLESS=1 cargo test -p kernel-lang --test mistakes` writes what comes out. Review the difference as code.

mod rows;

use std::collections::{BTreeMap, BTreeSet};

use kernel_frontend::BuiltinInfo;
use rows::{File, Row, Section};

/// The start of the kernel around every row. `v`, `w` and the like are tiles, `s`, `k`, `n` and `on` are scalars.
const KERNEL: &str = "
fn row<T: Float, I: Int, E: Element, const N: usize, const K: isize>(
    x: Ptr<f32>, xi: Ptr<i32>, xt: Ptr<T>, xj: Ptr<I>, xe: Ptr<E>, y: PtrMut<f32>, z: PtrMut<i32>, a: View<f32, 2>, b: ViewMut<f32, 2>,
    s: f32, k: i32, n: usize, on: bool,
) {
    let at = arange(0, 64);
    let (v, i) = (load(x + at), load(xi + at));
    let (h, u, m) = (v as f16, i as u32, v > 0.0);
    let (w, wi) = (v.reshape([4, 16]), i.reshape([4, 16]));
    let (t, j, e) = (load(xt + arange(0, N)), load(xj + arange(0, N)), load(xe + arange(0, N)));
    let (st, sj, se) = (load(xt), load(xj), load(xe));
";

/// The structs that the rows on structs use.
const STRUCTS: &str = "
#[device]
mod pairs {
    pub struct Pair<T> { pub a: Value<T>, pub b: Value<T> }
    impl<T: Float> Pair<T> {
        pub fn new(a: Value<T>, b: Value<T>) -> Self { Pair { a, b } }
        pub fn zero() -> Self { Pair { a: 0, b: 0 } }
        pub fn swap(self) -> Self { Pair { a: self.b, b: self.a } }
        pub fn combine(self, other: Self) -> Self { Pair { a: self.a + other.a, b: max(self.b, other.b) } }
    }
    pub struct Single { c: f32 }
    pub struct Block<const N: usize> { at: Value<usize> }
    impl<const N: usize> Block<N> {
        pub fn new(start: usize) -> Self { Block { at: start + arange(0, N) } }
        pub fn with(self, other: Block<N>) -> Self { Block { at: self.at + other.at } }
    }
    pub fn first<T: Float>(pair: Pair<T>) -> Value<T> { pair.a }
}
";

/// The kinds of mistakes.
const KINDS: &[(&str, &str)] = &[
    ("missing argument", "fewer arguments than the builtin takes"),
    ("too many arguments", "more arguments than the builtin takes, or an option given without its name"),
    ("type", "an element type, or something that is no number at all, where another is expected"),
    ("rank", "another number of axes than the builtin takes, a scalar for a tile among them"),
    ("shape", "extents that do not meet"),
    ("constant", "what is computed at run time, where a constant is expected"),
    ("value", "a constant that is out of range"),
    ("unknown option", "an option that the builtin does not have"),
    ("misspelt option", "an option with a slip in its name"),
    ("receiver", "a builtin behind a value it is not a method of"),
    ("generics", "types behind the name that the builtin does not take, or takes and misses"),
    ("mutability", "writing through what is only read"),
];

fn files() -> Vec<File> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes/rows");
    let entries = std::fs::read_dir(folder).expect("the rows stand in this folder");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
    paths.sort();
    paths.iter().map(|path| File::read(path)).collect()
}

/// The outcome of a row for a builtin: the statement with what is underlined, then each message and its help.
fn outcome(row: &Row, builtin: &str) -> Row {
    let statement = row.statement.replace(['«', '»'], "");
    let before = format!("{}\n{KERNEL}    ", completed(&row.attribute));
    let code = statement.replace('$', builtin);
    let end = if code.ends_with(['}', ';']) { "" } else { ";" };
    let source = format!("{before}{code}{end}\n}}\n{STRUCTS}");
    let mut found = row.clone();
    found.statement.clone_from(&statement);
    found.expected.clear();
    for (index, (underlined, diagnostic)) in kernel_frontend::mistakes(&source, "row.rs").into_iter().enumerate() {
        let labels = diagnostic.labels.iter().map(|(_, label)| format!(" ({label})")).collect::<String>();
        let message = format!("{}{labels}", diagnostic.message);
        found.expected.push((in_general(&message, builtin), in_general(diagnostic.help.as_deref().unwrap_or(""), builtin)));
        let inside = before.len()..before.len() + code.len();
        if index > 0 {
            continue;
        }
        found.statement = match inside.contains(&underlined.start) && underlined.end <= inside.end {
            true => {
                let (start, end) = (underlined.start - before.len(), underlined.end - before.len());
                // A marker inside the name cannot be shown in the general statement.
                let marked = format!("{}«{}»{}", &code[..start], &code[start..end], &code[end..]);
                generalized(&statement, builtin, &code, (start, end)).unwrap_or(marked)
            }
            false => format!("{statement} // {:?} is underlined", source.get(underlined).unwrap_or("nothing")),
        };
    }
    found
}

/// The attribute, which fixes some of the kernel's parameters, with a value for each other one: only then something is compiled.
fn completed(attribute: &str) -> String {
    let Some(arguments) = attribute.strip_prefix("#[kernel(").and_then(|rest| rest.strip_suffix(")]")) else {
        return attribute.to_string();
    };
    let is_named = |given: &&str| arguments.split(", ").any(|argument| argument.starts_with(&given[..4]));
    let others = ["T = f32", "I = i32", "E = f32", "N = 64", "K = 4"].into_iter().filter(|given| !is_named(given));
    format!("#[kernel({})]", others.chain([arguments]).collect::<Vec<_>>().join(", "))
}

/// A text with `$` for the builtin where code names it.
fn in_general(text: &str, builtin: &str) -> String {
    let is_part = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let mut general = String::new();
    for (index, part) in text.split('`').enumerate() {
        general += if index > 0 { "`" } else { "" };
        let mut rest = part;
        while let Some(at) = rest.find(builtin).filter(|_| index % 2 == 1 && !builtin.is_empty()) {
            let (before, behind) = (&rest[..at], &rest[at + builtin.len()..]);
            let is_whole = !is_part(before.chars().last()) && !is_part(behind.chars().next());
            general += before;
            general += if is_whole { "$" } else { builtin };
            rest = behind;
        }
        general += rest;
    }
    general
}

/// The statement with `$` for the builtin, and markers around the bytes of the code that are underlined.
fn generalized(statement: &str, builtin: &str, code: &str, (start, end): (usize, usize)) -> Option<String> {
    let mut marked = String::new();
    let mut at = 0;
    let mark = |at: usize, marked: &mut String| {
        if at == end {
            marked.push('»');
        }
        if at == start {
            marked.push('«');
        }
    };
    for letter in statement.chars() {
        mark(at, &mut marked);
        marked.push(letter);
        at += if letter == '$' { builtin.len() } else { letter.len_utf8() };
    }
    mark(at, &mut marked);
    (at == code.len() && marked.contains('«') && marked.contains('»')).then_some(marked)
}

#[test]
fn rows_match_the_messages() {
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut files = files();
    let cases: Vec<(Row, String)> = files.iter().flat_map(cases).collect();
    let mut outcomes = outcomes(&cases).into_iter();
    let mut failed = Vec::new();
    for file in &mut files {
        let name = file.name();
        for section in file.sections_mut() {
            // Mistakes with builtins are of certain kinds; others have names of their own.
            let is_known = |kind: &str| section.builtins.is_empty() || KINDS.iter().any(|(known, _)| *known == kind);
            let unknown = section.rows.iter().find(|row| !is_known(&row.kind));
            assert!(unknown.is_none(), "{name}: there is no kind of mistake as in\n{}", unknown.expect("it was just found"));
            let builtins = builtins_of(section);
            for row in &mut section.rows {
                for (index, builtin) in builtins.iter().enumerate() {
                    let found = outcomes.next().expect("each case has an outcome");
                    if found.expected.len() != 1 {
                        failed.push(format!("{name}: {builtin}: {} messages for one mistake\n{found}", found.expected.len()));
                    } else if found != *row && bless && index == 0 {
                        *row = found;
                    } else if found != *row {
                        failed.push(format!("{name}: {builtin}\n-- expected\n{row}-- found\n{found}"));
                    }
                }
            }
        }
        if bless {
            file.write();
        }
    }
    let bless = "if this is right: BLESS=1 cargo test -p kernel-lang --test mistakes";
    assert!(failed.is_empty(), "{} of {} cases fail\n\n{}\n\n{bless}", failed.len(), cases.len(), failed.join("\n"));
    println!("{} cases", cases.len());
}

/// The builtins of a section; a section without builtins is one case a row.
fn builtins_of(section: &Section) -> Vec<String> {
    let unknown = section.builtins.iter().find(|builtin| kernel_frontend::builtins().all(|known| known.name != **builtin));
    assert!(unknown.is_none(), "there is no function `{}`", unknown.map_or("", |builtin| builtin));
    if section.builtins.is_empty() { vec![String::new()] } else { section.builtins.clone() }
}

/// Each row with each of its builtins, in the order of the file.
fn cases(file: &File) -> Vec<(Row, String)> {
    let of = |section: &Section| {
        let builtins = builtins_of(section);
        section
            .rows
            .iter()
            .flat_map(|row| builtins.iter().map(|builtin| (row.clone(), builtin.clone())).collect::<Vec<_>>())
            .collect::<Vec<_>>()
    };
    file.sections().flat_map(of).collect()
}

/// The outcome of each case. All cores share the cases.
fn outcomes(cases: &[(Row, String)]) -> Vec<Row> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let share = cases.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let work = |chunk: &[(Row, String)]| chunk.iter().map(|(row, builtin)| outcome(row, builtin)).collect::<Vec<_>>();
        let chunks: Vec<_> = cases.chunks(share).map(|chunk| scope.spawn(move || work(chunk))).collect();
        chunks.into_iter().flat_map(|chunk| chunk.join().expect("a case does not crash")).collect()
    })
}

/// Without its mistake, a row would be accepted as far as the kernel around it goes.
#[test]
fn the_kernel_around_the_rows_is_right() {
    let found = kernel_frontend::mistakes(&format!("#[kernel]\n{KERNEL}}}\n{STRUCTS}"), "row.rs");
    assert!(found.is_empty(), "{found:?}");
}

/// In small letters, without a full stop, with a help, and in the terms of the language.
#[test]
fn messages_are_in_the_style_of_the_house() {
    const INTERNAL: &[&str] =
        &["Poison", "poison", "Meaning", "ConstExpr", "Dtype", "TokenStream", "Span", "static_if", "ptr_mut<", "ptr<", "defect"];
    for file in files() {
        for row in file.sections().flat_map(|section| &section.rows) {
            for (message, help) in &row.expected {
                assert!(!help.is_empty(), "{}: there is no help\n{row}", file.name());
                for text in [message, help] {
                    let is_sentence = text.starts_with(char::is_uppercase) || (text.ends_with('.') && !text.ends_with(".."));
                    assert!(!is_sentence, "{}: {text}", file.name());
                    let internal = INTERNAL.iter().find(|name| text.contains(**name));
                    assert!(internal.is_none(), "{}: `{}` is internal: {text}", file.name(), internal.unwrap_or(&""));
                }
            }
        }
    }
}

/// Every new builtin needs rows for its kinds of mistakes.
#[test]
fn every_builtin_has_rows() {
    let mut kinds: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files() {
        for section in file.sections() {
            for builtin in &section.builtins {
                kinds.entry(builtin.clone()).or_default().extend(section.rows.iter().map(|row| row.kind.clone()));
            }
        }
    }
    let mut missing = Vec::new();
    for builtin in kernel_frontend::builtins() {
        let found = kinds.get(builtin.name).cloned().unwrap_or_default();
        let lacking: Vec<&str> = wanted(&builtin).into_iter().filter(|kind| !found.contains(*kind)).collect();
        if !lacking.is_empty() {
            missing.push(format!("{}: {}", builtin.name, lacking.join(", ")));
        }
    }
    assert!(missing.is_empty(), "builtins without rows in tests/mistakes/rows:\n{}", missing.join("\n"));
}

/// The kinds of mistakes that are possible with every builtin of this signature.
fn wanted(builtin: &BuiltinInfo) -> Vec<&'static str> {
    let has_options = builtin.usage.contains(" = ");
    let mut kinds = vec!["too many arguments", "unknown option", "receiver"];
    kinds.extend((builtin.arguments > 0).then_some("missing argument"));
    kinds.extend((builtin.arguments > 0).then_some("type"));
    kinds.extend(has_options.then_some("misspelt option"));
    kinds
}

/// The help for a misspelt builtin names the builtin.
#[test]
fn a_misspelt_builtin_is_suggested() {
    let builtins: Vec<&str> = kernel_frontend::builtins().map(|builtin| builtin.name).collect();
    for builtin in builtins.iter().filter(|builtin| builtin.len() >= 5) {
        // Two letters in the middle are swapped.
        let (front, back) = builtin.split_at(builtin.len() / 2);
        let mut slip = front[..front.len() - 1].to_string();
        slip.extend([&back[..1], &front[front.len() - 1..], &back[1..]]);
        if slip == *builtin || builtins.contains(&slip.as_str()) {
            continue;
        }
        let found = kernel_frontend::mistakes(&format!("#[kernel]\n{KERNEL}    {slip}(v);\n}}\n"), "row.rs");
        let [(_, diagnostic)] = &found[..] else { panic!("{slip}: {found:?}") };
        assert_eq!(diagnostic.message, format!("there is no function `{slip}`"));
        assert_eq!(diagnostic.help, Some(format!("did you mean `{builtin}`?")));
    }
}
