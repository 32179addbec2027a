//! How long the macros take for each variant of a kernel: parsing, checking, compiling and writing the generated code out, on one core.
//!
//! ```sh
//! cargo bench -p kernel-lang --bench compile_times                   # as an optimised macro
//! cargo bench -p kernel-lang --bench compile_times --profile dev     # as cargo builds macros unless told otherwise
//! cargo bench -p kernel-lang --bench compile_times -- my_kernels.rs  # of other files
//! ```
//!
//! By default the files are those of `kernel-library`. A time is the wall time of an expansion, in which the cores share the variants, times the cores.

use std::path::{Path, PathBuf};
use std::time::Instant;

use kernel_lang::frontend::{autotune, kernel};
use quote::ToTokens;

/// Expansions of a kernel: the fastest counts.
const TURNS: usize = 3;

fn main() {
    let mut files: Vec<PathBuf> = std::env::args().skip(1).filter(|word| word != "--bench").map(PathBuf::from).collect();
    if files.is_empty() {
        let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel-library/src");
        let entries = std::fs::read_dir(&library).unwrap_or_else(|error| panic!("cannot read {}: {error}", library.display()));
        files = entries.map(|entry| entry.expect("the folder is read").path()).collect();
        files.sort();
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{:>9}  {:>8}  {:>12}  kernel", "total ms", "variants", "ms a variant");
    let (mut all, mut count, mut worst) = (0.0, 0, (0.0, String::new()));
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
        let items = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display())).items;
        for item in items {
            let syn::Item::Fn(item) = item else { continue };
            let Some((ms, variants)) = (0..TURNS).filter_map(|_| expand(&item, cores)).min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
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
    }
    println!("{all:>9.1}  {count:>8}  {:>12.2}  all; the slowest is {} with {:.2}", all / f64::from(count.max(1) as u32), worst.1, worst.0);
}

/// Milliseconds of all cores, and the number of variants; nothing for a function that is no kernel.
fn expand(item: &syn::ItemFn, cores: usize) -> Option<(f64, usize)> {
    let mut item = item.clone();
    let place = item.attrs.iter().position(|attribute| attribute.path().is_ident("autotune") || attribute.path().is_ident("kernel"))?;
    let attribute = item.attrs.remove(place);
    let arguments = match &attribute.meta {
        syn::Meta::List(list) => list.tokens.clone(),
        _ => proc_macro2::TokenStream::new(),
    };
    let is_autotune = attribute.path().is_ident("autotune");
    let start = Instant::now();
    let expansion =
        if is_autotune { autotune(arguments, item.into_token_stream(), &()) } else { kernel(arguments, item.into_token_stream(), &()) };
    let written = expansion.tokens.to_string();
    let ms = start.elapsed().as_secs_f64() * 1e3;
    assert!(!written.contains("compile_error"), "{} does not compile", expansion.name);
    let busy = cores.min(expansion.variants.len().max(1));
    Some((ms * busy as f64, expansion.variants.len()))
}
