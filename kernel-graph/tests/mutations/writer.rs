//! A writer that is killed: the file is the old package or the new one.
//!
//! `GALATEA_KILLS=200 cargo test -p kernel-graph --test mutations writer` kills as many; the default is 30.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::changes::Random;
use crate::program;

/// The elements of the weight in each package that the writer writes. The larger ones take several writes of the operating system.
const ELEMENTS: [usize; 3] = [16, 20_000, 300_000];

/// Writes packages over and over, if this process is the writer.
#[test]
fn child_that_writes() {
    let Some(path) = std::env::var_os("GALATEA_WRITER") else { return };
    let graphs = ELEMENTS.map(program::graph);
    println!("\nready");
    for graph in graphs.iter().cycle() {
        graph.package().write(&path).unwrap();
    }
}

/// Whether the file is one of the packages; none if it does not exist.
fn number(path: &Path, packages: &[Vec<u8>]) -> Option<usize> {
    let found = std::fs::read(path).ok()?;
    let number = packages.iter().position(|package| *package == found);
    Some(number.unwrap_or_else(|| panic!("{} has {} bytes, which are none of the packages", path.display(), found.len())))
}

#[test]
fn a_writer_that_is_killed_leaves_the_old_file_or_the_new_one() {
    let kills = std::env::var("GALATEA_KILLS").map_or(30, |count| count.parse().expect("`GALATEA_KILLS` is a number"));
    let packages = ELEMENTS.map(program::package);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gpk");
    let mut random = Random(std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1);
    let (mut seen, mut cut_off) = (BTreeMap::new(), 0);
    for _ in 0..kills {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "writer::child_that_writes", "--nocapture"]).env("GALATEA_WRITER", &path);
        let mut child = child.stdout(Stdio::piped()).spawn().unwrap();
        let is_ready = BufReader::new(child.stdout.take().unwrap()).lines().any(|line| line.unwrap() == "ready");
        assert!(is_ready);
        std::thread::sleep(Duration::from_micros(random.below(60_000) as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        *seen.entry(number(&path, &packages)).or_insert(0) += 1;
        // A writer that is killed may leave its temporary file, and never another one.
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if name != "model.gpk" {
                assert!(name.starts_with(".galatea-"), "{name}");
                cut_off += 1;
                std::fs::remove_file(entry.path()).unwrap();
            }
        }
    }
    println!("{kills} kills: {seen:?}, {cut_off} during a write");
    assert!(cut_off > 0 && seen.keys().flatten().count() > 1, "{seen:?}, {cut_off}");
}
