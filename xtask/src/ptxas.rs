//! `cargo xtask ptxas`: assembles all PTX of the project with NVIDIA's assembler.
//!
//! The PTX has three sources:
//!
//! - the goldens `kernel-lang/tests/filetests/ptx/<target>/*.ptx`;
//! - the variants embedded by `#[kernel]`, which the macro also writes to `$GALATEA_PTX_DIR` as
//!   `<crate>/<kernel>-<key>-w<warps>-<target>.ptx` while the workspace is checked;
//! - the kernels of one op each that the test `ops` makes, and the modules of one entry each of the test `separate_modules`.
//!
//! The assembler comes from a Python package, so no CUDA toolkit is needed. The same text gives the same machine code, so a text that has
//! passed is not assembled again: [`KNOWN`] lists the digests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail, ensure};
use comfy_table::{CellAlignment, Table, presets};
use indicatif::{ProgressBar, ProgressStyle};
use kernel_runtime::assembler::Usage;

use crate::process;

/// The Python package with the assembler, and the version that all checks use.
const PACKAGE: &str = "nvidia-cuda-nvcc";
const VERSION: &str = "13.0.88";
/// The path of the assembler in the package.
const INSIDE: &str = "nvidia/cu13/bin/ptxas";

const GOLDENS: &str = "kernel-lang/tests/filetests/ptx";
/// The resources of each variant of the library's kernels, so that a change shows its cost.
const RECORDS: &str = "kernel-library/records.tsv";
/// The digests of texts that assembled without warnings, each with the registers per thread.
const KNOWN: &str = "xtask/assembled.tsv";
/// The source path in the PTX of a kernel of the library.
const LIBRARY: &str = ".file 1 \"kernel-library/";
/// The same of the gallery, whose kernels nobody shapes by hand: a configuration that spills is slow, and tuning does not choose it.
const GALLERY: &str = ".file 1 \"benches/gallery/";
/// Each job mostly waits for its ptxas process, so two jobs for each core keep the cores busy.
const JOBS_PER_CORE: usize = 2;

#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// Assemble only the goldens, without expanding the macros for the embedded variants
    #[arg(long)]
    goldens: bool,
    /// Assemble also texts that are known to pass
    #[arg(long)]
    all: bool,
    /// Use this assembler instead of fetching the pinned one
    #[arg(long, value_name = "PATH")]
    ptxas: Option<PathBuf>,
}

/// A PTX file and its target architecture.
struct Source {
    path: PathBuf,
    target: String,
    text: String,
}

/// The registers per thread, by digest.
type Known = BTreeMap<String, u32>;

/// `written` is the PTX folder of an earlier check of the workspace. Without it, a check is run.
pub(crate) fn run(args: &Args, written: Option<&Path>) -> Result<()> {
    let ptxas = match &args.ptxas {
        Some(path) => path.clone(),
        None => fetch()?,
    };
    let mut sources = goldens()?;
    ensure!(!sources.is_empty(), "{GOLDENS}/<target>/ holds no .ptx file: there is nothing to check");
    if !args.goldens {
        let variants = embedded(written)?;
        ensure!(!variants.is_empty(), "the build wrote no embedded variant to GALATEA_PTX_DIR: does any example have a `#[kernel]`?");
        sources.extend(variants);
    }

    // The digests apply to the pinned assembler only.
    let is_pinned = args.ptxas.is_none();
    let (known, mut passed) = (if args.all || !is_pinned { Known::new() } else { read_known()? }, Known::new());
    let (old, new): (Vec<Source>, Vec<Source>) = sources.into_iter().partition(|source| known.contains_key(&source.digest()));
    let mut records = Vec::new();
    for source in &old {
        let registers = known[&source.digest()];
        passed.insert(source.digest(), registers);
        records.extend(record(source, registers));
    }
    let outcomes = assemble_all(&ptxas, &new)?;
    let mut table = table();
    let mut failures = Vec::new();
    for (source, outcome) in new.iter().zip(outcomes) {
        let name = source.path.strip_prefix(process::root()).unwrap_or(&source.path).display();
        match outcome {
            Err(error) => failures.push(format!("{name}: {error:#}")),
            Ok(usages) => {
                // A text has one line, also if it has two entries: that of the last one, which is the usual one.
                records.extend(usages.last().and_then(|usage| record(source, usage.registers)));
                for usage in usages {
                    match complaint(&usage) {
                        Some(complaint) if !source.text.contains(GALLERY) || !usage.advisories.is_empty() => {
                            failures.push(format!("{name}: {complaint}"))
                        }
                        _ => _ = passed.insert(source.digest(), usage.registers),
                    }
                    add_row(&mut table, source, &usage);
                }
            }
        }
    }
    if !new.is_empty() {
        println!("{table}");
    }
    println!("{} known from {KNOWN}, assembled {} with {}, complaints: {}", old.len(), new.len(), ptxas.display(), failures.len());
    ensure!(failures.is_empty(), "PTX that must be mended:\n{}", failures.join("\n"));
    if !args.goldens {
        records.sort();
        keep_records(&records)?;
        ops(&ptxas)?;
        if is_pinned && std::env::var_os("BLESS").is_some() {
            write_known(&passed)?;
        }
    }
    Ok(())
}

impl Source {
    fn read(path: PathBuf, target: String) -> Result<Source> {
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Source { path, target, text })
    }

    /// The digest of everything that determines the machine code.
    fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(format!("{VERSION} {}\n{}", self.target, self.text).as_bytes());
        hasher.finalize().to_hex()[..16].to_owned()
    }
}

/// Reads the digests of texts that passed before.
fn read_known() -> Result<Known> {
    let text = std::fs::read_to_string(process::root().join(KNOWN)).with_context(|| format!("cannot read {KNOWN}"))?;
    let row = |line: &str| {
        let (digest, registers) = line.split_once('\t')?;
        Some((digest.to_owned(), registers.parse().ok()?))
    };
    let rows = text.lines().filter(|line| !line.starts_with('#'));
    rows.map(|line| row(line).with_context(|| format!("{KNOWN}: `{line}` is no digest and registers"))).collect()
}

fn write_known(passed: &Known) -> Result<()> {
    let title = format!(
        "# Written by `BLESS=1 cargo xtask ptxas`: digests of PTX that ptxas {VERSION} takes without complaint, and registers a thread.\n"
    );
    let rows: String = passed.iter().map(|(digest, registers)| format!("{digest}\t{registers}\n")).collect();
    std::fs::write(process::root().join(KNOWN), title + &rows)?;
    println!("wrote {KNOWN}: {} texts", passed.len());
    Ok(())
}

/// The line of a variant of the library: its name, and the resources that should grow only for a reason.
fn record(source: &Source, registers: u32) -> Option<String> {
    let text = &source.text;
    if !text.contains(LIBRARY) {
        return None;
    }
    let name = source.path.file_stem().unwrap_or_default().to_string_lossy();
    let shared = text.lines().find_map(|line| line.strip_prefix("// shared memory: ")?.split(' ').next()).unwrap_or("0");
    let instructions = text.lines().filter(|line| line.starts_with('\t') && line.ends_with(';') && !line.starts_with("\t.")).count();
    Some(format!("{name}\t{registers}\t{shared}\t{instructions}\n"))
}

/// Compares the library's variants with the file of records, or writes the file if `BLESS` is set.
fn keep_records(records: &[String]) -> Result<()> {
    let path = process::root().join(RECORDS);
    let title = "# Written by `BLESS=1 cargo xtask ptxas`: what each variant of the library's kernels takes.\n\
                 variant\tregisters a thread\tshared bytes a CTA\tPTX instructions\n";
    let now = title.to_owned() + &records.concat();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, now)?;
        println!("wrote {RECORDS}: {} variants", records.len());
        return Ok(());
    }
    let before = std::fs::read_to_string(&path).with_context(|| format!("cannot read {RECORDS}"))?;
    let only_in = |a: &str, b: &str, mark: char| -> Vec<String> {
        let known: std::collections::HashSet<&str> = b.lines().collect();
        a.lines().filter(|line| !known.contains(line)).map(|line| format!("{mark} {line}")).collect()
    };
    let mut changed = only_in(&before, &now, '-');
    changed.extend(only_in(&now, &before, '+'));
    changed.sort_by(|a, b| a[2..].cmp(&b[2..]));
    ensure!(
        changed.is_empty(),
        "the library's kernels take other than {RECORDS} says; if more is worth it: BLESS=1 cargo xtask ptxas\n{}",
        changed.join("\n")
    );
    println!("{RECORDS} holds for {} variants", records.len());
    Ok(())
}

/// The test of every elementwise op on every type assembles its own kernels, because nothing embeds them. So does the test of modules that are separated.
fn ops(ptxas: &Path) -> Result<()> {
    for tests in ["--test ops -- --quiet ptxas::", "--test separate_modules"] {
        let mut command = process::command(&format!("cargo test --quiet --workspace {tests}"));
        process::run(command.env("GALATEA_PTXAS", ptxas))?;
    }
    Ok(())
}

/// Fetches the pinned assembler into the target directory, once.
fn fetch() -> Result<PathBuf> {
    let folder = process::target_dir().join("ptxas").join(VERSION);
    let ptxas = folder.join(INSIDE);
    if ptxas.exists() {
        return Ok(ptxas);
    }
    println!("    fetching {PACKAGE} {VERSION}");
    let partial = folder.with_extension("partial");
    if partial.exists() {
        std::fs::remove_dir_all(&partial).context("cannot remove a half-fetched assembler")?;
    }
    // `--target` unpacks into that folder alone and does not change a Python environment.
    let mut pip = process::command(process::python()?);
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"]);
    pip.args(["--only-binary=:all:", "--target"]).arg(&partial).arg(format!("{PACKAGE}=={VERSION}"));
    // pip warns root against changing the system's packages, which this command does not do.
    pip.env("PIP_ROOT_USER_ACTION", "ignore");
    process::run(&mut pip).context("cannot fetch the assembler; `--ptxas PATH` uses one you have")?;
    make_executable(&partial.join(INSIDE)).context("the package holds no assembler where it should")?;
    // Rename last, so that an interrupted download never looks complete.
    std::fs::rename(&partial, &folder)?;
    Ok(ptxas)
}

#[cfg(unix)]
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn make_executable(path: &Path) -> Result<()> {
    ensure!(path.exists(), "{} is missing", path.display());
    Ok(())
}

/// Reads every golden. The folder names the target.
fn goldens() -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in ptx_files(&process::root().join(GOLDENS))? {
        let folder = path.parent().and_then(Path::file_name).unwrap_or_default();
        sources.push(Source::read(path.clone(), folder.to_string_lossy().into_owned())?);
    }
    Ok(sources)
}

/// An empty folder for `GALATEA_PTX_DIR`. Cargo recompiles crates with kernels only if the variable changes, so each check uses a new
/// folder.
pub(crate) fn new_folder() -> Result<PathBuf> {
    let folders = process::target_dir().join("ptx");
    if folders.exists() {
        std::fs::remove_dir_all(&folders)?;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let folder = folders.join(now.as_nanos().to_string());
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Lists the variants that the macro writes for every crate with kernels. Expanding the macro suffices, so nothing is linked.
fn embedded(written: Option<&Path>) -> Result<Vec<Source>> {
    let written = match written {
        Some(folder) => folder.to_path_buf(),
        None => {
            let folder = new_folder()?;
            println!("    checking the workspace with GALATEA_PTX_DIR set");
            process::run(process::command("cargo check --quiet --workspace --all-targets").env("GALATEA_PTX_DIR", &folder))?;
            folder
        }
    };
    let mut sources = Vec::new();
    for path in ptx_files(&written)? {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let Some((_, target)) = stem.rsplit_once('-') else {
            bail!("{} is not named `<kernel>-<key>-w<warps>-<target>.ptx`", path.display());
        };
        sources.push(Source::read(path.clone(), target.to_owned())?);
    }
    Ok(sources)
}

/// All `.ptx` files under a folder, sorted; none if the folder does not exist.
fn ptx_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    if folder.exists() {
        for entry in folder.read_dir()? {
            let path = entry?.path();
            if path.is_dir() {
                files.extend(ptx_files(&path)?);
            } else if path.extension().is_some_and(|extension| extension == "ptx") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Assembles the sources in parallel. The results are in the order of the sources.
fn assemble_all(ptxas: &Path, sources: &[Source]) -> Result<Vec<Result<Vec<Usage>>>> {
    let style = ProgressStyle::with_template("    assembling {wide_bar} {pos}/{len}")?;
    let bar = ProgressBar::new(sources.len() as u64).with_style(style);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let outcomes = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..(JOBS_PER_CORE * cores).min(sources.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(source) = sources.get(index) else {
                        break;
                    };
                    let outcome = Usage::of_file(ptxas, &source.path, &source.target).map_err(anyhow::Error::msg);
                    outcomes.lock().expect("no worker panics").push((index, outcome));
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    let mut outcomes = outcomes.into_inner().expect("no worker panics");
    outcomes.sort_by_key(|(index, _)| *index);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

/// ptxas may spill a few bytes by itself for fewer registers, with which more warps run at once. Both the stores and the loads count.
const FEW_BYTES: u32 = 32;

fn complaint(usage: &Usage) -> Option<String> {
    let Usage { function, spill_bytes, local_bytes, advisories, .. } = usage;
    if let Some(advisory) = advisories.first() {
        return Some(format!("`{function}` has slower warpgroup products than its text: {advisory}"));
    }
    match (spill_bytes, local_bytes) {
        (0, 0) | (1..=FEW_BYTES, _) => None,
        (0, _) => Some(format!("`{function}` keeps {local_bytes} bytes a thread in local memory")),
        _ => Some(format!("`{function}` spills {spill_bytes} bytes a thread")),
    }
}

fn table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["file", "entry", "target", "registers", "spills", "local", "shared", "barriers"]);
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn add_row(table: &mut Table, source: &Source, usage: &Usage) {
    let file = source.path.file_name().unwrap_or_default().to_string_lossy();
    let numbers = [usage.registers, usage.spill_bytes, usage.local_bytes, usage.shared_bytes, usage.barriers];
    let words = [file.into_owned(), usage.function.clone(), source.target.clone()];
    table.add_row(words.into_iter().chain(numbers.map(|number| number.to_string())));
}

#[cfg(test)]
mod tests {
    use kernel_runtime::assembler::Advisory;

    use super::*;

    #[test]
    fn spills_local_memory_and_advisories_are_complaints() {
        let usage = |spill_bytes, local_bytes| Usage { spill_bytes, local_bytes, ..Usage::default() };
        assert!(complaint(&usage(64, 8)).is_some_and(|text| text.contains("spills 64 bytes")));
        assert_eq!(complaint(&usage(FEW_BYTES, 16)), None);
        assert!(complaint(&usage(0, 8)).is_some_and(|text| text.contains("keeps 8 bytes")));
        assert_eq!(complaint(&usage(0, 0)), None);
        let advisories = Advisory::parse_all("ptxas info : (C7510) Potential Performance Loss: slow in the function 'k'");
        let serialized = Usage { function: "k".to_owned(), advisories, ..Usage::default() };
        assert!(complaint(&serialized).is_some_and(|text| text.contains("`k` has slower warpgroup products") && text.contains("(C7510)")));
    }
}
