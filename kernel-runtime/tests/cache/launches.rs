//! Launches with a store: where it is, and that it is used.

use std::fs;
use std::path::Path;

use kernel_runtime::cache::{Kind, Store};

use crate::Test;
use crate::children::{child, succeed};
use crate::faults::file;

pub(crate) const TESTS: &[Test] = &[
    ("a_second_process_runs_what_the_first_compiled", second_process),
    ("a_broken_entry_is_compiled_again", compiled_again),
    ("the_environment_says_where_or_off", environment),
    ("without_a_home_everything_works", no_home),
    ("an_unusable_directory_is_reported_once", impossible),
];

fn launch(directory: &Path) -> String {
    let mut command = child("launch", directory, 3);
    command.env("GALATEA_CACHE", directory);
    let (out, err) = succeed(command);
    assert_eq!(err, "");
    out
}

fn second_process() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    assert_eq!(launch(directory.path()), "7\n");
    let entries = store.entries().unwrap();
    let value = |name: &str| entries.iter().map(|entry| entry.key.field(name).unwrap()).collect::<Vec<_>>();
    assert_eq!((entries.len(), value("kernel"), value("target")), (2, vec!["axpy".to_owned(); 2], vec!["sm_90a".to_owned(); 2]));
    assert!(entries.iter().all(|entry| entry.key.kind() == Kind::Ptx));
    assert!(value("values").contains(&"T = f32, BLOCK_SIZE = 64".to_owned()), "{:?}", value("values"));
    assert_eq!(launch(directory.path()), "7\n");
    assert_eq!(store.entries().unwrap().len(), 2);

    // The second process would compute the right thing without the store, too: one of the sums becomes a difference, and it must show.
    let entry = entries.iter().find(|entry| entry.key.field("values").unwrap().ends_with("64")).unwrap();
    let text = String::from_utf8(store.get(&entry.key).unwrap()).unwrap();
    assert!(text.contains("add.rn.f32"), "{text}");
    store.put(&entry.key, text.replace("add.rn.f32", "sub.rn.f32").as_bytes()).unwrap();
    assert_eq!(launch(directory.path()), "5\n");
}

fn compiled_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    launch(directory.path());
    let entries = store.entries().unwrap();
    let whole: Vec<_> = entries.iter().map(|entry| store.get(&entry.key).unwrap()).collect();
    let half = fs::read(file(&store, &entries[0].key)).unwrap();
    fs::write(file(&store, &entries[0].key), &half[..half.len() / 2]).unwrap();
    // This one is whole, and what it holds is no variant.
    store.put(&entries[1].key, b"nothing").unwrap();
    assert_eq!(launch(directory.path()), "7\n");
    let again: Vec<_> = entries.iter().map(|entry| store.get(&entry.key).unwrap()).collect();
    assert!(again == whole, "both are as they were");
}

fn environment() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("elsewhere");
    let run = |name: &str, value: &Path, cache: Option<&Path>| {
        let mut command = child("launch", &directory, 3);
        command.env("HOME", home.path()).env(name, value).env_remove("GALATEA_CACHE");
        cache.map(|cache| command.env("GALATEA_CACHE", cache));
        assert_eq!(succeed(command), ("7\n".to_owned(), String::new()));
    };
    let entries = |directory: &Path| Store::open(directory).entries().unwrap().len();
    run("NOTHING", Path::new(""), Some(Path::new("off")));
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing is kept");
    run("NOTHING", Path::new(""), Some(&directory));
    assert_eq!((entries(&directory), home.path().join(".cache").exists()), (2, false));
    run("NOTHING", Path::new(""), None);
    let own = home.path().join(".cache").join("galatea");
    assert_eq!(entries(&own), 2);
    assert!(own.join("CACHEDIR.TAG").exists());
    let mode = std::os::unix::fs::MetadataExt::mode(&fs::metadata(&own).unwrap());
    assert_eq!(mode & 0o777, 0o700, "for its owner alone");
    let xdg = home.path().join("xdg");
    run("XDG_CACHE_HOME", &xdg, Some(Path::new("")));
    assert_eq!(entries(&xdg.join("galatea")), 2, "an empty name is none");
}

fn no_home() {
    // `HOME` is no folder, so that nothing can be made in it: usual for services, and not worth a word.
    let mut command = child("launch", Path::new(""), 3);
    command.env_remove("GALATEA_CACHE");
    assert_eq!(succeed(command), ("7\n".to_owned(), String::new()));
}

fn impossible() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let mut command = child("launch", directory.path(), 3);
    command.env("GALATEA_CACHE", file.join("store"));
    let (out, err) = succeed(command);
    assert_eq!((out.as_str(), err.matches("warning: cannot keep").count()), ("7\n", 1), "{err}");
}
