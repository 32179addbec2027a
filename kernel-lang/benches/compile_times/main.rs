//! The time that the macros take for each variant of a kernel: parsing, checking, compiling and writing the generated code.
//!
//! ```sh
//! cargo bench -p kernel-lang --bench compile_times                   # as an optimised macro
//! cargo bench -p kernel-lang --bench compile_times --profile dev     # as cargo builds macros unless told otherwise
//! cargo bench -p kernel-lang --bench compile_times -- my_kernels.rs  # of other files
//! ```
//!
//! By default the files are those of `kernel-library`. A time is the CPU time of the whole process, so neither the number of threads nor other
//! processes change it. A kernel that calls device functions is expanded twice, with rustc in between: both expansions count, and rustc does not.

mod rustc;

use std::path::{Path, PathBuf};

use cpu_time::ProcessTime;
use kernel_frontend::{Expansion, autotune, kernel, kernel_bundle};
use quote::ToTokens;

use rustc::{Macros, arguments};

/// Expansions of a kernel: the fastest counts.
const TURNS: usize = 3;

fn main() {
    let mut files: Vec<PathBuf> = std::env::args().skip(1).filter(|word| word != "--bench").map(PathBuf::from).collect();
    if files.is_empty() {
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel-library/src/kernels");
        let entries = std::fs::read_dir(&library).unwrap_or_else(|error| panic!("cannot read {}: {error}", library.display()));
        files = entries.map(|entry| entry.expect("the folder is read").path()).collect();
        files.sort();
    }
    let parse = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
        syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display())).items
    };
    let items: Vec<syn::Item> = files.iter().flat_map(parse).collect();
    let macros = Macros::of(&items);
    println!("{:>9}  {:>8}  {:>12}  kernel", "total ms", "variants", "ms a variant");
    let (mut all, mut count, mut worst) = (0.0, 0, (0.0, String::new()));
    for item in items {
        let syn::Item::Fn(item) = item else { continue };
        let Some((ms, variants)) = (0..TURNS).filter_map(|_| expand(&item, &macros)).min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        let name = item.sig.ident.to_string();
        if variants == 0 {
            println!("{ms:>9.1}  {variants:>8}  {:>12}  {name}", "-");
            continue;
        }
        let each = ms / variants as f64;
        println!("{ms:>9.1}  {variants:>8}  {each:>12.2}  {name}");
        (all, count) = (all + ms, count + variants);
        if each > worst.0 {
            worst = (each, name);
        }
    }
    println!("{all:>9.1}  {count:>8}  {:>12.2}  all; the slowest is {} with {:.2}", all / f64::from(count.max(1) as u32), worst.1, worst.0);
}

/// Milliseconds of all processors, and the number of variants; nothing for a function that is no kernel.
fn expand(item: &syn::ItemFn, macros: &Macros) -> Option<(f64, usize)> {
    let mut item = item.clone();
    let place = item.attrs.iter().position(|attribute| attribute.path().is_ident("autotune") || attribute.path().is_ident("kernel"))?;
    let attribute = item.attrs.remove(place);
    let (arguments, item, is_autotune) = (arguments(&attribute), item.into_token_stream(), attribute.path().is_ident("autotune"));
    let (launcher, mut ms) = timed(|| if is_autotune { autotune(arguments, item, &()) } else { kernel(arguments, item, &()) });
    let Some(collected) = macros.follow(&launcher.tokens) else { return Some((ms, launcher.variants.len())) };
    let (compiled, more) = timed(|| kernel_bundle(collected, rustc::CRATE, &()));
    ms += more;
    Some((ms, compiled.variants.len()))
}

fn timed(expansion: impl FnOnce() -> Expansion) -> (Expansion, f64) {
    let start = ProcessTime::now();
    let expansion = expansion();
    let written = expansion.tokens.to_string();
    let ms = start.elapsed().as_secs_f64() * 1e3;
    assert!(!written.contains("compile_error"), "{} does not compile", expansion.name);
    (expansion, ms)
}
