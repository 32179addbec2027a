//! `cargo xtask bundle`: a folder of stripped test, example and bench executables with a runner script.
//!
//! A machine with a GPU needs only an NVIDIA driver and bash to run it: `./run.sh`. Everything except the script is in one archive, because
//! the programs have much in common; the script unpacks it. The unpacked folder mirrors the workspace, so that a program finds
//! `benches/peers.py` or `tests/data`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use indicatif::ProgressIterator;

use crate::artifacts::{self, Executable};
use crate::process;

const RUNNER: &str = include_str!("../bundle/run.sh");
/// The size limit of a bundle, which is copied to GPU machines.
const LIMIT_MIB: f64 = 48.0;
/// The archive with everything except the script.
const ARCHIVE: &str = "programs.tar.xz";

/// Test targets without work for a GPU, or that need the sources: `(package, target)`.
const LEFT_OUT: &[(&str, &str)] = &[
    ("galatea-tests", "tidy"), // reads the sources
    ("galatea-tests", "sim"),  // uses no GPU, like the rows below
    ("kernel-runtime", "sim"),
    ("kernel-runtime", "cache"),
    ("kernel-runtime", "cpu"),
    ("kernel-runtime", "standard_error"),
    ("kernel-runtime", "tiles"),
    ("galatea-tests", "cpu_speed"),
];
/// Packages whose tests launch kernels. `run.sh sanitize` runs their integration tests. Tests of other packages do not use a GPU.
const ON_THE_GPU: &[&str] = &["galatea-gallery", "galatea-tests", "kernel-graph", "kernel-library", "kernel-runtime"];
/// Tests that the sanitizer skips: thousands of kernels, each launched once. The simulator checks all of their accesses.
const NOT_SANITIZED: &[(&str, &str)] = &[("galatea-tests", "conformance"), ("galatea-tests", "fuzz")];
/// Folders and files that are copied unchanged, if they exist.
const DATA: &[&str] =
    &["tests/data", "tests/kernels", "kernel-runtime/tests/data", "benches/peers.py", "benches/peers_matmul.py", "benches/gallery/peers"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder to create; its previous contents are replaced
    #[arg(long, value_name = "DIR", default_value = ".bundle")]
    out: PathBuf,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let out = process::root().join(&args.out);
    clear(&out)?;

    println!("building tests, examples and benches");
    let json = "--message-format=json-render-diagnostics";
    let packages: Vec<String> = ON_THE_GPU.iter().map(|package| format!("-p {package}")).collect();
    let tests = format!("cargo test {} --profile bench --no-run --quiet {json}", packages.join(" "));
    // One command for both, with the features of the tests, so that Cargo builds the crates once.
    let others = format!(
        "cargo build {} -p galatea -p galatea-benches -p galatea-gallery --profile bench --examples --benches --quiet {json}",
        packages.join(" ")
    );
    let mut built = artifacts::executables(&mut process::command(&tests))?;
    built.retain(|exe| exe.is_test && asks_for_gpu(exe));
    built.extend(
        artifacts::executables(&mut process::command(&others))?.into_iter().filter(|exe| exe.kind == "example" || exe.kind == "bench"),
    );

    let mut gpu_tests = String::new();
    for exe in built.iter().progress() {
        let (folder, name) = folder_and_name(exe);
        strip(&exe.path, &out.join(folder).join(&name))?;
        let is_spared = NOT_SANITIZED.contains(&(exe.package.as_str(), exe.target.as_str()));
        if exe.kind == "test" && ON_THE_GPU.contains(&exe.package.as_str()) && !is_spared {
            gpu_tests.push_str(&name);
            gpu_tests.push('\n');
        }
    }
    std::fs::write(out.join("gpu-tests.txt"), gpu_tests)?;
    for path in DATA.iter().map(Path::new) {
        copy(&process::root().join(path), &out.join(path))?;
    }
    report(&out, &out)?;
    pack(&out)?;
    let runner = out.join("run.sh");
    std::fs::write(&runner, RUNNER)?;
    process::run(process::command("chmod +x").arg(&runner))?;

    let mib = std::fs::metadata(out.join(ARCHIVE))?.len() as f64 / (1024.0 * 1024.0);
    println!("{mib:.1} MiB in {}; run it with ./run.sh there", args.out.display());
    ensure!(mib <= LIMIT_MIB, "the bundle is {mib:.1} MiB, over the limit of {LIMIT_MIB} MiB");
    Ok(())
}

/// Packs the contents of the folder and removes the originals. The same files give the same bytes.
fn pack(out: &Path) -> Result<()> {
    let mut names = out.read_dir()?.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>()?;
    names.sort();
    let mut tar = process::command("tar --create --xz --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner");
    // The programs have much in common, but each is larger than the default dictionary of 8 MiB: one of 128 MiB halves the archive, even with the fast
    // search. A fixed number of threads, because the bytes depend on whether there are several.
    tar.env("XZ_OPT", "-T1 --lzma2=preset=6,dict=128MiB,mf=hc4,mode=fast,depth=16")
        .arg("--directory")
        .arg(out)
        .arg("--file")
        .arg(out.join(ARCHIVE))
        .args(&names);
    process::run(&mut tar)?;
    for name in names {
        let path = out.join(name);
        if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
    }
    Ok(())
}

/// Empties the folder, but only if it is an earlier bundle, because `--out` may be mistyped.
fn clear(out: &Path) -> Result<()> {
    if out.exists() && out.read_dir()?.next().is_some() {
        ensure!(out.join(ARCHIVE).exists(), "{} is not empty and not a bundle; remove it or name another folder", out.display());
        std::fs::remove_dir_all(out)?;
    }
    for folder in ["tests", "examples", "benches"] {
        std::fs::create_dir_all(out.join(folder))?;
    }
    Ok(())
}

/// Returns whether a program may have work for a GPU and runs without the sources.
pub(crate) fn asks_for_gpu(exe: &Executable) -> bool {
    !LEFT_OUT.iter().any(|&(package, target)| package == exe.package && target == exe.target)
}

/// The folder and file name of an executable in the bundle.
fn folder_and_name(exe: &Executable) -> (&'static str, String) {
    match exe.kind.as_str() {
        "example" => ("examples", exe.target.clone()),
        "bench" => ("benches", exe.target.clone()),
        "test" => ("tests", format!("{}-{}", exe.package, exe.target)),
        kind => ("tests", format!("{}-{kind}", exe.package)),
    }
}

fn strip(from: &Path, to: &Path) -> Result<()> {
    process::run(process::command("strip --strip-all -o").arg(to).arg(from)).context("`strip` comes with the binutils package")
}

/// Copies a file or a folder. A missing path is ignored.
fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        for entry in from.read_dir()? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if from.exists() {
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::copy(from, to)?;
    }
    Ok(())
}

/// Prints the size of each file under `folder`, relative to `out`, and returns the total in bytes.
fn report(out: &Path, folder: &Path) -> Result<u64> {
    let mut sum = 0;
    let mut entries = folder.read_dir()?.collect::<std::io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        if entry.path().is_dir() {
            sum += report(out, &entry.path())?;
        } else {
            let bytes = entry.metadata()?.len();
            let path = entry.path();
            println!("{:>9.1} KiB  {}", bytes as f64 / 1024.0, path.strip_prefix(out).unwrap_or(&path).display());
            sum += bytes;
        }
    }
    Ok(sum)
}
