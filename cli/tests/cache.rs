//! `galatea cache` as a user calls it.

use std::path::Path;
use std::process::{Command, Output};

use kernel_runtime::cache::{Attempt, Key, Kind, Programs, Record, RecordKey, Records, Store};

fn galatea(directory: &Path, arguments: &[&str]) -> (String, String, bool) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_galatea"));
    // `--dir` takes precedence over the environment, which switches the cache off here.
    command.arg("cache").args(arguments).arg("--dir").arg(directory).env("GALATEA_CACHE", "off").env("CARGO_TERM_COLOR", "never");
    let Output { status, stdout, stderr } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (text(stdout), text(stderr), status.success())
}

fn succeed(directory: &Path, arguments: &[&str]) -> String {
    let (out, err, success) = galatea(directory, arguments);
    assert!(success && err.is_empty(), "{arguments:?}: {out}\n{err}");
    out
}

fn fail(directory: &Path, arguments: &[&str]) -> String {
    let (out, err, success) = galatea(directory, arguments);
    assert!(!success && out.is_empty(), "{arguments:?}: {out}\n{err}");
    err
}

fn record(kernel: &str, device: &str, value: u64) -> Record {
    let text = str::to_owned;
    let (kernel, content, device, driver) = (text(kernel), text("3f1c"), text(device), text("13.0"));
    let of = RecordKey { kernel, content, device, driver, programs: Some(Programs::FewWaves), values: vec![value] };
    let attempts = vec![
        Attempt { config: text("Config { B: 64 }"), timed: Some((8.5, 20)), failed: None },
        Attempt { config: text("Config { B: 128 }"), timed: None, failed: Some(text("too much")) },
    ];
    Record { of, attempts, chosen: 0 }
}

/// A store with one entry of each kind, and a record more.
fn store(directory: &Path) -> Store {
    let store = Store::open(directory);
    let code = [("kernel", "silu"), ("architecture", "9.0"), ("driver", "13.0"), ("ptx", "3f1c")];
    store.put(&Key::new(Kind::Code, &code), &[0xff; 3000]).unwrap();
    let ptx = [("kernel", "silu"), ("values", "T = f32"), ("schedule", "num_warps = 4"), ("target", "sm_80")];
    store.put(&Key::new(Kind::Ptx, &ptx), b"silu 0\n.version 7.0\n").unwrap();
    let records: Records = [record("silu", "NVIDIA H200", 7), record("add", "NVIDIA A100", 8)].into_iter().collect();
    records.keep_in(&store).unwrap();
    store
}

#[test]
fn the_list_says_what_there_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    assert_eq!(succeed(path, &["list"]), format!("0 entries, 0 B, of 1.0 GiB at most, in {}\n", path.display()));
    store(path);
    let out = succeed(path, &["list"]);
    for part in [
        "silu, for 9.0, driver 13.0\n",
        "silu, T = f32, num_warps = 4, for sm_80\n",
        "silu, key 7, a few waves, on NVIDIA H200, driver 13.0\n",
        "3.1 KiB  just now  silu, for 9.0",
        "4 entries, ",
    ] {
        assert!(out.contains(part), "{part}: {out}");
    }
    let out = succeed(path, &["list", "--kind", "tuning", "--kernel", "add"]);
    assert!(out.contains("NVIDIA A100") && out.contains("1 entry, ") && !out.contains("silu"), "{out}");
    assert!(fail(path, &["list", "--kind", "cubin"]).contains("there are code, ptx and tuning"));
}

/// docs/caches.md documents the schema, which other programs rely on.
#[test]
fn the_list_as_json_has_a_stable_schema() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let list = |arguments: &[&str]| -> serde_json::Value {
        let text = succeed(path, &[&["list", "--json"], arguments].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    };
    let empty = serde_json::json!({
        "format": "galatea cache list 1", "directory": path.display().to_string(), "limit_bytes": 1u64 << 30, "entries": [],
    });
    assert_eq!(list(&[]), empty);
    let store = store(path);
    let started = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let all = list(&[]);
    assert_eq!(all["entries"].as_array().map(Vec::len), Some(4), "{all}");
    for entry in all["entries"].as_array().unwrap() {
        let names: Vec<&str> = entry.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["bytes", "key", "kind", "name", "used_unix_s"]);
        assert!(entry["used_unix_s"].as_u64().unwrap().abs_diff(started) < 600, "{entry}");
    }
    let entry = store.entries().unwrap().into_iter().find(|entry| entry.key.kind() == Kind::Code).unwrap();
    let mut code = list(&["--kind", "code"])["entries"].take();
    code[0]["used_unix_s"].take();
    let expected = serde_json::json!([{
        "name": entry.key.name(), "kind": "code", "bytes": entry.bytes, "used_unix_s": null,
        "key": { "kernel": "silu", "architecture": "9.0", "driver": "13.0", "ptx": "3f1c" },
    }]);
    assert_eq!(code, expected);
    // Fields are in the order of the documentation.
    let text = succeed(path, &["list", "--json", "--kind", "code"]);
    let offsets: Vec<_> = ["format", "directory", "limit_bytes", "entries", "name", "kind", "bytes", "used_unix_s", "key"]
        .map(|name| text.find(&format!("\"{name}\": ")))
        .into();
    assert!(offsets.iter().all(Option::is_some) && offsets.is_sorted(), "{offsets:?}: {text}");
}

#[test]
fn an_entry_is_shown_and_written() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let entries = store.entries().unwrap();
    let name = |kind| entries.iter().find(|entry| entry.key.kind() == kind).unwrap().key.name();
    let out = succeed(directory.path(), &["show", &name(Kind::Ptx)[..12]]);
    assert!(out.contains("kernel: silu\n") && out.ends_with("\n\nsilu 0\n.version 7.0\n"), "{out}");
    let out = succeed(directory.path(), &["show", name(Kind::Tuning)]);
    assert!(out.contains("\"median_us\": 8.5"), "{out}");
    assert!(succeed(directory.path(), &["show", name(Kind::Code)]).contains("machine code"));
    let file = directory.path().join("silu.cubin");
    assert_eq!(succeed(directory.path(), &["show", name(Kind::Code), "-o", file.to_str().unwrap()]), "");
    assert_eq!(std::fs::read(file).unwrap(), [0xff; 3000]);
    assert!(fail(directory.path(), &["show", "zz"]).contains("help: `galatea cache list`"));
    assert!(fail(directory.path(), &["show", ""]).contains("4 entries are called"));
}

#[test]
fn clearing_removes_what_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let store = store(directory.path());
    let left = || store.entries().unwrap().len();
    let out = succeed(directory.path(), &["clear", "--dry-run"]);
    assert!(out.starts_with("NAME ") && out.contains("4 entries, ") && out.contains(" would be removed from ") && left() == 4, "{out}");
    assert!(succeed(directory.path(), &["clear", "--kernel", "add"]).contains("removed 1 entry, ") && left() == 3);
    assert!(succeed(directory.path(), &["clear", "--kind", "code"]).contains("removed 1 entry, ") && left() == 2);
    assert!(succeed(directory.path(), &["clear"]).contains("removed 2 entries, ") && left() == 0);
}

#[test]
fn records_travel_as_a_file() {
    let [from, to] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let store = store(from.path());
    let file = from.path().join("h200.json");
    let name = file.to_str().unwrap();
    assert!(succeed(from.path(), &["export", "--out", name, "--device", "H200"]).starts_with("1 record in "));
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\n      \"chosen\": \"Config { B: 64 }\""), "{text}");
    assert!(succeed(to.path(), &["import", name]).starts_with("1 record from "));
    let taken = Records::of_store(&Store::open(to.path())).unwrap();
    assert!(taken.iter().eq([&record("silu", "NVIDIA H200", 7)]));

    let all = succeed(from.path(), &["export"]);
    assert_eq!(Records::parse(&all).unwrap(), Records::of_store(&store).unwrap());
    assert_eq!(Records::parse(&succeed(from.path(), &["export", "--kernel", "add"])).unwrap().len(), 1);
    std::fs::write(&file, all.replacen("\"key\"", "\"keys\"", 1)).unwrap();
    let error = fail(to.path(), &["import", name]);
    assert!(error.contains("h200.json: ") && error.contains("record 0 has no field `key`"), "{error}");
    assert!(fail(to.path(), &["import", "none.json"]).contains("cannot read `none.json`"));
    std::fs::File::create(&file).unwrap().set_len(1 << 40).unwrap();
    let error = fail(to.path(), &["import", name]);
    assert!(error.contains("h200.json is larger than 64 MiB"), "{error}");
}

#[cfg(unix)]
#[test]
fn a_store_that_others_can_write_is_refused_and_says_how_to_mend_it() {
    use std::os::unix::fs::PermissionsExt;

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let store = store(path);
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o770)).unwrap();
    for arguments in [&["list"][..], &["clear"], &["clear", "--kernel", "silu"], &["show", "3f"], &["export"]] {
        let error = fail(path, arguments);
        let (why, help) = error.split_once('\n').expect("there are two lines");
        assert!(why.contains("can be written by its group (mode 0770)"), "{error}");
        assert!(help.starts_with("help: take that right away") && help.contains("chmod go-w"), "{error}");
    }
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
    assert_eq!(store.entries().unwrap().len(), 4);
}

#[test]
fn a_cache_that_is_off_is_reported_as_off() {
    let output = Command::new(env!("CARGO_BIN_EXE_galatea")).args(["cache", "list"]).env("GALATEA_CACHE", "off").output().unwrap();
    assert!(!output.status.success() && String::from_utf8_lossy(&output.stderr).contains("help: name a directory"), "{output:?}");
}
