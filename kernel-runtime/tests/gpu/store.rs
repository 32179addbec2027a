//! The store across processes: a later process loads the compiled code and the tuning records of an earlier one.

use std::path::{Path, PathBuf};
use std::time::Instant;

use kernel_runtime::cache::{Kind, Store};
use kernel_runtime::prelude::*;

use crate::axpy::axpy;
use crate::{Test, tuning};

pub(crate) const TESTS: &[Test] = &[
    ("machine_code_and_records_serve_the_next_process", machine_code_and_records_serve_the_next_process),
    ("machine_code_that_is_wrong_is_made_again", machine_code_that_is_wrong_is_made_again),
];

/// Tests of what an assembler makes.
pub(crate) const ASSEMBLED: &[&str] = &["machine_code_that_is_wrong_is_made_again"];

/// Makes this executable launch and tune, and print what came of it, see [`child`].
pub(crate) const CHILD: &str = "KERNEL_RUNTIME_TEST_STORE";

pub(crate) fn child() {
    let device = Device::cuda(0).unwrap();
    let (x, mut y) = (device.full(100, 3.0f32).unwrap(), device.full(100, 1.0f32).unwrap());
    let start = Instant::now();
    axpy::<f32, 64>(2.0, &x, &mut y, 100).grid(2).launch().unwrap();
    device.synchronize().unwrap();
    eprintln!("first launch to its end: {:.2?}", start.elapsed());
    assert_eq!(y.to_vec().unwrap(), [7.0; 100]);
    println!("{:?}", tuning::outcomes(device));
}

/// A toolkit's assembler, if this machine has one.
pub(crate) fn assembler() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).map(|path| path.join("ptxas")).find(|path| path.is_file())
}

/// Runs the child and returns its output: the outcomes of tuning, with all digits of its times.
fn run(directory: &Path) -> String {
    let program = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new(program);
    // The driver's own cache would hide ours.
    command.env(CHILD, "1").env("GALATEA_CACHE", directory).env("CUDA_CACHE_DISABLE", "1");
    match assembler() {
        Some(path) => command.env("GALATEA_PTXAS", path),
        None => command.env_remove("GALATEA_PTXAS"),
    };
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr));
    print!("{err}");
    assert!(output.status.success() && !err.contains("warning"), "{out}\n{err}");
    out
}

fn machine_code_and_records_serve_the_next_process(_: Device) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    run(directory.path());
    let entries = store.entries().unwrap();
    let count = |kind| entries.iter().filter(|entry| entry.key.kind() == kind).count();
    // The axpy is compiled in process. Of the four configurations three are one text, and the fourth is none.
    let codes = if assembler().is_some() { 2 } else { 0 };
    assert_eq!((count(Kind::Ptx), count(Kind::Code), count(Kind::Tuning)), (1, codes, 1), "{entries:?}");
    for entry in entries.iter().filter(|entry| entry.key.kind() == Kind::Code) {
        println!("{}: {} bytes for {:?}", entry.key.name(), entry.bytes, entry.key.fields());
        assert!(store.get(&entry.key).unwrap().starts_with(b"\x7fELF"));
    }
    // No two tunings measure the same times to the last digit.
    let second = run(directory.path());
    assert_eq!(run(directory.path()), second);
    assert_eq!(store.entries().unwrap().len(), 2 + codes);
    store.clear(&[Kind::Tuning]).unwrap();
    assert_ne!(run(directory.path()), second);
}

fn machine_code_that_is_wrong_is_made_again(_: Device) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    run(directory.path());
    let codes: Vec<_> = store.entries().unwrap().into_iter().filter(|entry| entry.key.kind() == Kind::Code).collect();
    let whole: Vec<_> = codes.iter().map(|entry| store.get(&entry.key).unwrap()).collect();
    // Whole entries, whose code is none, or is cut short.
    store.put(&codes[0].key, b"no code").unwrap();
    store.put(&codes[1].key, &whole[1][..whole[1].len() / 2]).unwrap();
    run(directory.path());
    let again: Vec<_> = codes.iter().map(|entry| store.get(&entry.key).unwrap()).collect();
    assert!(again.iter().zip(&whole).all(|(again, whole)| again.len() == whole.len()), "both were made again");
}
