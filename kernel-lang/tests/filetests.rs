//! Every file under `tests/filetests` is a test: its folder says of what.
//!
//! | folder | a file | must give |
//! |---|---|---|
//! | `text/` | IR | itself, printed again |
//! | `verifier/` | IR with `; error: ..` on the guilty lines | exactly those violations |
//! | `passes/<pass>/` | IR, options in front and `; --- expect ---` behind | the IR behind that line |
//! | `ptx/<target>/` | IR, options in front | the PTX in the `.ptx` beside it |
//! | `frontend/accept/` | a kernel in Rust | the IR in the `.kir` beside it |
//! | `frontend/reject/` | a kernel in Rust with one mistake | the diagnostics in the `.stderr` beside it |
//! | `frontend/expand/` | a kernel in Rust | the generated code in the `.expanded` beside it |
//!
//! `BLESS=1 cargo test -p kernel-lang --test filetests` writes what comes out. Review the difference as code.

#[path = "filetests/generate.rs"]
mod generate;
#[path = "filetests/passes.rs"]
mod passes;
#[path = "filetests/reference.rs"]
mod reference;
#[path = "filetests/support.rs"]
mod support;

use kernel_lang::Schedule;
use kernel_lang::ir::{self, Stage};
use support::{each, expect_file};

#[test]
fn text() {
    for_each_kir("text", &mut |text| {
        let func = ir::parse(text).map_err(|error| error.to_string())?;
        ir::verify(&func, Stage::Generic).map_err(|violations| format!("{violations:?}"))?;
        Ok(())
    });
}

/// Whatever prints, parses: on every IR file of the tests.
#[test]
fn round_trip() {
    for_each_kir("", &mut |_| Ok(()));
}

fn for_each_kir(folder: &str, check: &mut dyn FnMut(&str) -> Result<(), String>) {
    each(folder, "kir", &mut |path, text| {
        // A pass's file holds its input and its result, a verifier's may hold what cannot be printed.
        for part in text.split("; ---").map(|part| part.find("kernel @").map_or("", |start| &part[start..])).filter(|part| !part.is_empty())
        {
            if path.components().any(|part| part.as_os_str() == "verifier") {
                continue;
            }
            let func = ir::parse(part).map_err(|error| error.to_string())?;
            let printed = func.to_string();
            let again = ir::parse(&printed).map_err(|error| format!("what it prints does not parse: {error}\n{printed}"))?;
            if again.to_string() != printed {
                return Err(format!("prints differently the second time:\n{}", support::difference(&printed, &again.to_string())));
            }
            check(part)?;
        }
        Ok(())
    });
}

#[test]
fn verifier() {
    each("verifier", "kir", &mut |_, text| {
        let wanted: Vec<(usize, String)> = text
            .lines()
            .enumerate()
            .filter_map(|(index, line)| Some((index + 1, line.split_once("; error: ")?.1.trim().to_string())))
            .collect();
        let stage = stage(text);
        let func = match ir::parse(text) {
            Ok(func) => func,
            Err(error) => {
                let found = vec![(error.line as usize, error.message)];
                return if found == wanted { Ok(()) } else { Err(format!("expected {wanted:?}, found {found:?}")) };
            }
        };
        // A position `@line:column` in such a file names a line of the file itself; a violation of the whole kernel has no position.
        let kernel = text.lines().position(|line| line.starts_with("kernel @")).map_or(0, |index| index + 1);
        let found: Vec<(usize, String)> = match ir::verify(&func, stage) {
            Ok(_) => Vec::new(),
            Err(violations) => violations
                .into_iter()
                .map(|violation| {
                    (
                        if violation.loc.is_some() { violation.loc.line as usize } else { kernel },
                        format!("`{}` {}", violation.op, violation.message),
                    )
                })
                .collect(),
        };
        if found == wanted { Ok(()) } else { Err(format!("expected {wanted:#?}\nfound {found:#?}")) }
    });
}

/// The stage that a file names in its first lines: `; stage gpu`, with `; num_warps 4` and `; num_ctas 2`.
fn stage(text: &str) -> Stage {
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("; ")?.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|number| number.parse().ok())
    };
    let Schedule { num_warps, num_ctas, .. } = Schedule::DEFAULT;
    let schedule = Schedule {
        num_warps: number("num_warps").unwrap_or(num_warps),
        num_ctas: number("num_ctas").unwrap_or(num_ctas),
        ..Schedule::DEFAULT
    };
    match text.lines().find_map(|line| line.strip_prefix("; stage ")) {
        Some("tile") => Stage::Tile,
        Some("gpu") => Stage::Gpu(schedule),
        Some("ptx") => Stage::Ptx(schedule),
        _ => Stage::Generic,
    }
}

#[test]
fn accept() {
    each("frontend/accept", "rs", &mut |path, source| match kernel_frontend::lower_source(source, &file_name(path)) {
        Ok(func) => expect_file(&path.with_extension("kir"), &func.to_string()),
        Err(diagnostics) => Err(diagnostics.render(&[file_name(path).as_str().into()])),
    });
}

#[test]
fn reject() {
    each("frontend/reject", "rs", &mut |path, source| match kernel_frontend::lower_source(source, &file_name(path)) {
        Ok(func) => Err(format!("the mistake is accepted:\n{func}")),
        Err(diagnostics) => {
            let text = diagnostics.render(&[file_name(path).as_str().into()]);
            if let Some(name) = internal_name(&text) {
                return Err(format!("a message says `{name}`, which is internal:\n{text}"));
            }
            expect_file(&path.with_extension("stderr"), &text)
        }
    });
}

/// Messages speak the language of the user's source, and each says how to mend it.
fn internal_name(text: &str) -> Option<&'static str> {
    const INTERNAL: &[&str] = &[
        "Handle",
        "ConstExpr",
        "Poison",
        "poison",
        "Inst",
        "Region",
        "SideTable",
        "OpData",
        "Elem::",
        "Meaning",
        "Span",
        "TokenStream",
        "static_if",
        "ptr_mut<",
        "a broken kernel",
        "unwrap",
        "panicked",
    ];
    INTERNAL.iter().copied().find(|name| text.contains(name))
}

#[test]
fn messages_are_lower_case_without_full_stop() {
    each("frontend/reject", "stderr", &mut |_, text| {
        for line in text.lines() {
            let Some(message) = line.strip_prefix("error: ").or(line.strip_prefix("help: ")) else { continue };
            let first = message.chars().next().unwrap_or('?');
            if first.is_uppercase() || (message.ends_with('.') && !message.ends_with("..")) {
                return Err(format!("style: {line}"));
            }
        }
        Ok(())
    });
}

#[test]
fn expand() {
    each("frontend/expand", "rs", &mut |path, source| {
        let file = syn::parse_file(source).map_err(|error| error.to_string())?;
        let Some(syn::Item::Fn(mut item)) = file.items.into_iter().find(|item| matches!(item, syn::Item::Fn(_))) else {
            return Err("there is no function".to_string());
        };
        let attribute =
            item.attrs.iter().position(|attribute| attribute.path().is_ident("kernel") || attribute.path().is_ident("autotune"));
        let attribute = item.attrs.remove(attribute.ok_or("there is no attribute")?);
        let arguments = attribute.meta.require_list().map_or_else(|_| proc_macro2::TokenStream::new(), |list| list.tokens.clone());
        let tokens = quote::quote!(#item);
        let expansion = if attribute.path().is_ident("kernel") {
            kernel_frontend::kernel(arguments, tokens, &())
        } else {
            kernel_frontend::autotune(arguments, tokens, &())
        };
        let parsed = syn::parse2(expansion.tokens).map_err(|error| error.to_string())?;
        expect_file(&path.with_extension("expanded"), &without_ptx(&prettyplease::unparse(&parsed)))
    });
}

/// PTX is pinned by its own tests; here a line stands for it.
fn without_ptx(text: &str) -> String {
    let mut parts = text.split("ptx: r");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // A raw string ends at a quote with as many hashes as it begins with.
        let (hashes, literal) = part.split_once('"').expect("PTX is a raw string");
        let (_, after) = literal.split_once(&format!("\"{hashes}")).expect("a string ends");
        out = out + "ptx: \"..\"" + after;
    }
    // Outside of a compiler a text has a number for a name, and that depends on what was parsed before.
    match (out.find("<parsed string"), out.find(">\" {")) {
        (Some(start), Some(end)) if start < end => format!("{}kernel.rs{}", &out[..start], &out[end + 1..]),
        _ => out,
    }
}

fn file_name(path: &std::path::Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

/// The page of the book that lists the builtins is what their documentation says.
#[test]
fn reference_page() {
    let page = reference::page().unwrap_or_else(|error| panic!("{error}"));
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/builtins.md");
    if let Err(difference) = expect_file(&path, &page) {
        panic!(
            "docs/builtins.md differs from the documentation in src/dsl: BLESS=1 cargo test -p kernel-lang --test filetests\n{difference}"
        );
    }
}

/// The examples in the documentation of the builtins compile, and every builtin has one.
#[test]
fn documentation() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dsl");
    let mut examples = 0;
    for file in [
        "atomic.rs",
        "bits.rs",
        "lookup.rs",
        "fast.rs",
        "floats.rs",
        "special.rs",
        "random.rs",
        "program.rs",
        "memory.rs",
        "tile.rs",
        "math.rs",
        "shape.rs",
        "reduction.rs",
    ] {
        let text = std::fs::read_to_string(folder.join(file)).expect("the builtins are documented there");
        for (index, block) in text.split("```ignore\n").enumerate().skip(1) {
            let code: Vec<&str> =
                block.lines().take_while(|line| !line.contains("```")).map(|line| line.trim_start_matches("///")).collect();
            let source = format!(
                "#[kernel]\nfn example<const N: usize>(x: Ptr<f32>, y: PtrMut<f32>, flags: PtrMut<i32>, lock: PtrMut<i32>, n: usize, a: f32) {{\n\
                 let offsets = program_id(0) * N + arange(0, N); let mask = offsets < n; let v = load(x + offsets, mask = mask);\n{}\n}}",
                code.join("\n")
            );
            if let Err(diagnostics) = kernel_frontend::lower_source(&source, file) {
                panic!("example {index} of {file}:\n{source}\n{}", diagnostics.render(&[file.into()]));
            }
            examples += 1;
        }
        for signature in text.split("\npub fn ").skip(1) {
            let Some((name, rest)) = signature.split_once(['<', '(']) else { continue };
            let Some(builtin) = kernel_frontend::builtins().find(|builtin| builtin.name == name) else { continue };
            let params = rest.split_once(" {").map_or(rest, |(params, _)| params);
            for (before, _) in builtin.usage.match_indices(" = ") {
                let option = builtin.usage[..before].rsplit([' ', '(']).next().unwrap_or_default();
                assert!(
                    params.contains(&format!("{option}: Option<")),
                    "{file}: the signature of `{name}` does not say that `{option}` is an option"
                );
            }
        }
        let builtins = text.matches("\npub fn ").count();
        assert_eq!(text.matches("```ignore\n").count(), builtins, "{file}: one example a builtin");
    }
    assert!(examples > 30);
}

/// Odd programs are rejected or accepted, never a crash: kernels of the tests with tokens dropped, doubled, swapped and exchanged.
#[test]
fn mutations() {
    let mut sources = Vec::new();
    for folder in ["frontend/accept", "frontend/reject"] {
        each(folder, "rs", &mut |_, text| {
            sources.push(text.to_string());
            Ok(())
        });
    }
    let count: u64 = std::env::var("MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(400);
    let seed: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut crashed = 0;
    for round in 0..count {
        let source = support::mutate(&sources, seed.wrapping_mul(1 << 32) + round);
        let outcome =
            std::panic::catch_unwind(|| kernel_frontend::lower_source(&source, "mutant.rs").map_err(|diagnostics| diagnostics.render(&[])));
        match outcome {
            Err(_) => panic!("seed {seed}, round {round}: this crashes\n{source}"),
            Ok(Ok(func)) => {
                let text = func.to_string();
                let again = ir::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}\n{source}"));
                assert_eq!(again.to_string(), text, "{source}");
            }
            Ok(Err(text)) => {
                assert!(!text.contains("a broken kernel"), "seed {seed}, round {round}: {text}\n{source}");
                crashed += usize::from(text.contains("the compiler crashed"));
                if let Some(name) = internal_name(&text) {
                    panic!("a message says `{name}`:\n{text}\n{source}");
                }
            }
        }
    }
    println!("{crashed} of {count} crash a pass or a backend");
}

/// Random kernels lower to IR that satisfies the invariants and prints what it parses; almost all of them are accepted.
#[test]
fn random_kernels() {
    let count: u64 = std::env::var("MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    let seed: u64 = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut rejected = 0;
    for round in 0..count {
        let source = generate::kernel(seed.wrapping_mul(1 << 20) + round);
        match kernel_frontend::lower_source(&source, "random.rs") {
            Ok(func) => {
                let text = func.to_string();
                let again = ir::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}\n{source}"));
                assert_eq!(again.to_string(), text, "{source}");
            }
            Err(diagnostics) => {
                let text = diagnostics.render(&["random.rs".into()]);
                assert!(!text.contains("defect"), "seed {seed}, round {round}:\n{text}\n{source}");
                if std::env::var_os("SHOW").is_some() {
                    println!("{text}\n{source}");
                }
                rejected += 1;
            }
        }
    }
    assert!(rejected * 5 < count, "{rejected} of {count} are rejected");
}
