//! Many processes at one key.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;

use kernel_runtime::cache::{Kind, Store};

use crate::Test;
use crate::children::{child, outputs, own_record, shared_key, succeed};
use crate::faults::VERSION;

pub(crate) const TESTS: &[Test] = &[
    ("of_sixteen_processes_one_makes_what_all_use", made_once),
    ("sixteen_processes_save_one_key_and_none_is_lost_or_mixed", saved_by_many),
    ("a_hanging_process_is_not_waited_for_forever", patience),
];

fn made_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut children: Vec<_> =
        (0..16).map(|number| child("make", directory.path(), number).stdin(Stdio::piped()).spawn().unwrap()).collect();
    // All are running before the first asks.
    let mut readers: Vec<_> = children.iter_mut().map(|child| BufReader::new(child.stdout.take().unwrap())).collect();
    for reader in &mut readers {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
    }
    children.iter_mut().for_each(|child| child.stdin.take().unwrap().write_all(b"!").unwrap());
    let mut lines: Vec<String> = readers.iter_mut().map(|reader| reader.lines().next().unwrap().unwrap()).collect();
    for child in children {
        assert!(outputs(child).2);
    }
    lines.sort();
    let made: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("made ")).collect();
    assert_eq!(made.len(), 1, "{lines:?}");
    assert!(lines.iter().filter_map(|line| line.strip_prefix("found ")).eq(std::iter::repeat_n(made[0], 15)), "{lines:?}");
}

fn saved_by_many() {
    let directory = tempfile::tempdir().unwrap();
    let children: Vec<_> = (0..16).map(|number| child("save", directory.path(), number).spawn().unwrap()).collect();
    for child in children {
        let (out, err, success) = outputs(child);
        assert!(success && out == "saved\n", "{out}\n{err}");
    }
    let store = Store::open(directory.path());
    let last = store.get(&shared_key()).unwrap();
    assert_eq!(last, own_record(u64::from(last[0])));
    assert_eq!(std::fs::read_dir(directory.path().join(VERSION).join("tmp")).unwrap().count(), 0);
    let entries = store.entries().unwrap();
    assert!(entries.len() == 1 && entries[0].key.kind() == Kind::Tuning);
}

fn patience() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    let held = store.lock(&shared_key(), Duration::ZERO).unwrap();
    assert!(store.lock(&shared_key(), Duration::from_millis(20)).is_none());
    let made =
        store.get_or_make(&shared_key(), Duration::from_millis(20), Some, || Ok::<_, ()>((vec![1], vec![1])), |error| panic!("{error}"));
    assert_eq!(made, Ok(vec![1]));
    assert_eq!(store.get(&shared_key()), Some(vec![1]));
    drop(held);
    // A process that another test starts just now has the file open until it runs its program.
    assert!(store.lock(&shared_key(), Duration::from_secs(10)).is_some());
    // The lock of the dead is free, too.
    let mut writer = child("make", directory.path(), 0).stdin(Stdio::piped()).spawn().unwrap();
    store.remove(&shared_key());
    writer.stdin.take().unwrap().write_all(b"!").unwrap();
    std::thread::sleep(Duration::from_millis(50));
    writer.kill().unwrap();
    writer.wait().unwrap();
    let (out, _) = succeed(child("make", directory.path(), 5));
    assert!(out.starts_with("ready\n") && out.lines().count() == 2, "{out}");
}
