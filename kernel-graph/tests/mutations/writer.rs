//! A writer that is killed: the file is the old package or the new one, at any time.
//!
//! `GALATEA_KILLS=200 cargo test -p kernel-graph --test mutations writer` kills as many; the default is 16.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use galatea::Device;
use kernel_graph::{Package, PackageWriter, Plan};

use crate::changes::Random;
use crate::{alone, program};

/// The elements of the weight in each package that the writer writes. The larger ones take several writes of the operating system.
const ELEMENTS: [usize; 3] = [16, 20_000, 600_000];
/// How long a busy machine may keep a writer from its next file.
const PATIENCE: Duration = Duration::from_secs(20);

/// The plans of the packages of a folder. Their kernels have variants, so that a writer compiles nothing.
fn plans(folder: &Path) -> [Plan; 3] {
    [0, 1, 2].map(|number| Package::open(folder.join(format!("{number}.gpk"))).unwrap().plan(&Device::cpu()).unwrap())
}

/// Writes packages over and over, if this process is the writer.
#[test]
fn child_that_writes() {
    let Some(folder) = std::env::var_os("GALATEA_WRITER").map(PathBuf::from) else { return };
    let plans = plans(&folder.join("sources"));
    println!("\nready");
    for plan in plans.iter().cycle() {
        PackageWriter::new(plan).write(folder.join("model.gpk")).unwrap();
        println!("written");
    }
}

/// Whether the file is one of the packages; none if it does not exist.
fn number(path: &Path, packages: &[Vec<u8>]) -> Option<usize> {
    let found = std::fs::read(path).ok()?;
    let number = packages.iter().position(|package| *package == found);
    Some(number.unwrap_or_else(|| panic!("{} has {} bytes, which are none of the packages", path.display(), found.len())))
}

/// Checks that a reader at this time finds a file with the size of a package, or none.
fn is_whole(path: &Path, packages: &[Vec<u8>]) {
    let Ok(metadata) = std::fs::metadata(path) else { return };
    assert!(packages.iter().any(|package| package.len() as u64 == metadata.len()), "a reader finds {} bytes", metadata.len());
}

/// The temporary files of writers. There is never another file.
fn temporary(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let others = entries.filter(|entry| !["model.gpk", "sources"].iter().any(|name| entry.file_name() == *name));
    let others: Vec<PathBuf> = others.map(|entry| entry.path()).collect();
    let is_temporary = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(".galatea-");
    assert!(others.iter().all(is_temporary), "{others:?}");
    others
}

#[test]
fn a_writer_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let _alone = alone();
    let kills = std::env::var("GALATEA_KILLS").map_or(16usize, |count| count.parse().expect("`GALATEA_KILLS` is a number"));
    let folder = tempfile::tempdir().unwrap();
    let (path, sources) = (folder.path().join("model.gpk"), folder.path().join("sources"));
    std::fs::create_dir(&sources).unwrap();
    for (number, elements) in ELEMENTS.into_iter().enumerate() {
        std::fs::write(sources.join(format!("{number}.gpk")), program::package(elements)).unwrap();
    }
    let packages = plans(&sources).map(|plan| PackageWriter::new(&plan).to_bytes().unwrap());
    let mut random = Random(std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1);
    let (mut seen, mut cut_off) = (BTreeMap::new(), 0);
    for kill in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "writer::child_that_writes", "--nocapture"]).env("GALATEA_WRITER", folder.path());
        let mut child = child.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        // The writer would end at its next line without a reader.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line == "ready"));
        // A slow disk takes longer for the largest package than for all else, so some kills follow its write at once, and find it.
        let complete = kill / 2 % (ELEMENTS.len() + 1);
        for _ in 0..complete {
            assert_eq!(lines.next().as_deref(), Some("written"));
        }
        // On a machine of any speed, some kills hit a file that is not complete, and the others hit anything.
        let begin = Instant::now();
        while kill % 2 > 0 && temporary(folder.path()).is_empty() && begin.elapsed() < PATIENCE {
            is_whole(&path, &packages);
        }
        let most_us = match (complete, kill % 2) {
            (3, _) => 1,
            (_, 0) => 100_000,
            _ => 3000,
        };
        let (begin, end) = (Instant::now(), Duration::from_micros(random.below(most_us) as u64));
        while begin.elapsed() < end {
            is_whole(&path, &packages);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        *seen.entry(number(&path, &packages)).or_insert(0) += 1;
        for left in temporary(folder.path()) {
            cut_off += 1;
            std::fs::remove_file(left).unwrap();
        }
    }
    println!("{kills} kills: {seen:?}, {cut_off} during a write");
    assert!(cut_off > 0 && seen.keys().flatten().count() > 1, "{seen:?}, {cut_off}");
}
