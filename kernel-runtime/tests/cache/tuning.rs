//! Tuning records across processes: on a simulated GPU, whose clock gives the same times in every run.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use kernel_runtime::cache::{Kind, Records, Store};
use kernel_runtime::prelude::*;
use kernel_runtime::private::{KeyPart, RecordsFile, Rules, Tuner};
use kernel_runtime::tune::{Found, Origin};

use crate::Test;
use crate::children::{child, outputs, say, succeed};
use crate::faults::file;
use crate::tuned::{Config, of, tuned};

pub(crate) const TESTS: &[Test] = &[
    ("a_second_process_tunes_nothing", a_second_process_tunes_nothing),
    ("a_recorded_result_does_not_wait_for_another_tuning", a_recorded_result_does_not_wait_for_another_tuning),
    ("a_record_that_does_not_fit_is_tuned_again", a_record_that_does_not_fit_is_tuned_again),
    ("of_sixteen_processes_one_tunes", of_sixteen_processes_one_tunes),
    ("committed_records_come_before_the_disk", committed_records_come_before_the_disk),
    ("committed_records_that_do_not_fit_are_none", committed_records_that_do_not_fit_are_none),
    ("a_result_is_written_out_wherever_it_was_found", a_result_is_written_out_wherever_it_was_found),
];

/// Three warps are none.
const CONFIGS: &[Config] = &[of(1024, 4), of(64, 3), of(32, 2)];

/// Names a file of records that stands for one that was embedded.
const COMMITTED: &str = "GALATEA_CACHE_TEST_RECORDS";

/// Launches once and says how often the kernel ran, and what was tried.
pub(crate) fn tune(n: usize) {
    let committed = std::env::var_os(COMMITTED).map(|file| &*fs::read_to_string(file).unwrap().leak());
    let files: Vec<RecordsFile> = committed.into_iter().map(|text| RecordsFile::new("tuned.json", text)).collect();
    const KEY: &[KeyPart] = &[KeyPart::exact(5)];
    let tuner: &'static Tuner<Config> = Box::leak(Box::new(Tuner::new(CONFIGS, KEY).records(files.leak())));
    let device = Device::sim(Target::SM_90A).unwrap();
    let (x, mut y) = (device.full(n, 3.0f32).unwrap(), device.full(n, 0.5f32).unwrap());
    let launch = |y: &mut Tensor<f32>, is_report: bool| {
        let launch = tuned(&x, y, tuner, &Rules::NONE).grid(|config| cdiv(n, config.block_size));
        if is_report { launch.report().unwrap().to_string() } else { launch.launch().map(|()| String::new()).unwrap() }
    };
    launch(&mut y, false);
    assert_eq!(y.to_vec().unwrap(), vec![3.5; n]);
    let runs = device.sim_report().unwrap().kernel("axpy").unwrap().launches;
    say(&format!("{runs} runs\n{}", launch(&mut y, true)));
}

/// As [`tune`], on a thread of its own, while this one tunes and waits for it.
pub(crate) fn tune_beside(n: usize) {
    static TUNER: Tuner<Config> = Tuner::new(CONFIGS, &[]);
    static LEN: AtomicUsize = AtomicUsize::new(0);
    const RULES: &Rules<Config, 6> = &Rules::<Config, 6>::NONE.pre_hook(|_, _| {
        let n = LEN.swap(0, Ordering::Relaxed);
        if n > 0 {
            let (done, is_done) = mpsc::channel();
            std::thread::spawn(move || {
                tune(n);
                done.send(()).unwrap();
            });
            is_done.recv_timeout(Duration::from_secs(60)).expect("what is on record waits for no tuning");
        }
    });
    LEN.store(n, Ordering::Relaxed);
    let device = Device::sim(Target::SM_90A).unwrap();
    let (x, mut y) = (device.full(n, 3.0f32).unwrap(), device.full(n, 0.5f32).unwrap());
    tuned(&x, &mut y, &TUNER, RULES).grid(|config| cdiv(n, config.block_size)).launch().unwrap();
    assert_eq!(LEN.load(Ordering::Relaxed), 0, "it was tuned");
}

fn run(directory: &Path, n: u64) -> String {
    run_as("tune", directory, n)
}

fn run_as(role: &str, directory: &Path, n: u64) -> String {
    let mut command = child(role, directory, n);
    command.env("GALATEA_CACHE", directory);
    let (out, err) = succeed(command);
    assert_eq!(err, "");
    out
}

fn a_second_process_tunes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    let first = run(directory.path(), 1000);
    // Each that can ran once, and the best once more.
    assert!(first.starts_with("3 runs\n") && first.contains("us    1 runs  Config { block_size: 32"), "{first}");
    let second = run(directory.path(), 1000);
    assert_eq!(second, first.replacen("3 runs", "1 runs", 1));

    let records = Records::of_store(&store).unwrap();
    let record = records.iter().next().unwrap();
    assert_eq!((records.len(), record.of.kernel.as_str(), record.of.device.as_str()), (1, "axpy", "simulated H200 (sm_90a)"));
    assert!(record.of.values.contains(&1000), "{record}");
    assert_eq!((record.chosen, record.chosen().config.as_str()), (2, "Config { block_size: 32, num_warps: 2 }"));
    assert!(record.attempts[1].failed.as_ref().unwrap().contains("num_warps"), "{record}");
    assert!(run(directory.path(), 999).starts_with("3 runs\n"), "another key");

    // Exported records can be imported into the store of another machine.
    let elsewhere = tempfile::tempdir().unwrap();
    Records::parse(&records.to_string()).unwrap().keep_in(&Store::open(elsewhere.path())).unwrap();
    assert_eq!(run(elsewhere.path(), 1000).lines().next(), Some("1 runs"));
}

fn a_recorded_result_does_not_wait_for_another_tuning() {
    let directory = tempfile::tempdir().unwrap();
    run(directory.path(), 1000);
    assert_eq!(run_as("tune beside", directory.path(), 1000).lines().next(), Some("1 runs"));
}

fn a_record_that_does_not_fit_is_tuned_again() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(directory.path());
    let first = run(directory.path(), 500);
    let entry = store.entries().unwrap().into_iter().find(|entry| entry.key.kind() == Kind::Tuning).unwrap();
    let text = String::from_utf8(store.get(&entry.key).unwrap()).unwrap();
    let chosen = "\"chosen\": \"Config { block_size: 32, num_warps: 2 }\"";
    assert!(text.contains(chosen), "{text}");
    let cases = [
        // The one that failed, one that is not there, a field that is gone, another number of values, and no JSON.
        text.replace(chosen, "\"chosen\": \"Config { block_size: 64, num_warps: 3 }\""),
        text.replace(chosen, "\"chosen\": \"Config { block_size: 16 }\""),
        text.replace("\"tried\"", "\"trials\""),
        text.replacen("\"key\": [", "\"key\": [7, ", 1),
        "no record".to_owned(),
    ];
    for case in cases {
        assert_ne!(case, text);
        store.put(&entry.key, case.as_bytes()).unwrap();
        assert_eq!(run(directory.path(), 500), first, "{case}");
        assert_eq!(store.get(&entry.key).unwrap(), text.as_bytes(), "it is as it was");
    }
    fs::write(file(&store, &entry.key), &text[..100]).unwrap();
    assert_eq!(run(directory.path(), 500), first);
}

fn of_sixteen_processes_one_tunes() {
    let directory = tempfile::tempdir().unwrap();
    let start = |_| child("tune", directory.path(), 3000).env("GALATEA_CACHE", directory.path()).spawn().unwrap();
    let children: Vec<_> = (0..16).map(start).collect();
    let mut tuned = 0;
    for child in children {
        let (out, err, success) = outputs(child);
        assert!(success && err.is_empty(), "{out}\n{err}");
        tuned += usize::from(out.starts_with("3 runs\n"));
        assert!(out.starts_with("3 runs\n") || out.starts_with("1 runs\n"), "{out}");
    }
    assert_eq!(tuned, 1);
}

/// Runs with records that are embedded; gives both outputs.
fn run_with(records: &str, directory: &Path, variables: &[(&str, &Path)]) -> (String, String) {
    let file = directory.join("tuned.json");
    fs::write(&file, records).unwrap();
    let mut command = child("tune", directory, 1000);
    command.env("GALATEA_CACHE", directory).env(COMMITTED, &file).envs(variables.iter().copied());
    succeed(command)
}

fn exported(store: &Store) -> String {
    Records::of_store(store).unwrap().to_string()
}

/// The first and the last configuration in the output of a child of [`run_with`]. Tuning chooses the last one.
const FIRST: &str = "Config { block_size: 1024, num_warps: 4 }";
const LAST: &str = "Config { block_size: 32, num_warps: 2 }";

fn committed_records_come_before_the_disk() {
    let directory = tempfile::tempdir().unwrap();
    run(directory.path(), 1000);
    let records = exported(&Store::open(directory.path()));
    let chosen = |config: &str| format!("\"chosen\": \"{config}\"");
    assert!(records.contains(&chosen(LAST)), "{records}");
    // Another driver, and another choice than the disk's: it is what was committed.
    let driver = Records::parse(&records).unwrap().iter().next().unwrap().of.driver.clone();
    let other = records.replace(&driver, "12.8 (1.2.3)").replace(&chosen(LAST), &chosen(FIRST));
    let (out, err) = run_with(&other, directory.path(), &[]);
    assert!(
        out.starts_with("1 runs\n") && out.lines().any(|line| line.starts_with('*') && line.contains(FIRST)) && err.is_empty(),
        "{out}{err}"
    );
    // One of the first format does not say for how many programs it is, and serves any number; one for another number serves none of these.
    let few = "      \"programs\": \"up to one wave\",\n";
    assert_eq!(other.matches(few).count(), 1, "{other}");
    let first_format = other.replace("tuning records 2", "tuning records 1").replace(few, "");
    let (out, err) = run_with(&first_format, directory.path(), &[]);
    assert!(
        out.starts_with("1 runs\n") && out.lines().any(|line| line.starts_with('*') && line.contains(FIRST)) && err.is_empty(),
        "{out}"
    );
    let empty = tempfile::tempdir().unwrap();
    let (out, err) = run_with(&other.replace("up to one wave", "many waves"), empty.path(), &[("GALATEA_PRINT_TUNING", Path::new("1"))]);
    assert!(out.starts_with("3 runs\n") && !err.contains("note: "), "{out}{err}");
    // It serves as well where it was imported: on the disk, of this driver.
    let imported = tempfile::tempdir().unwrap();
    let of_this_driver = first_format.replace("12.8 (1.2.3)", &driver);
    Records::parse(&of_this_driver).unwrap().keep_in(&Store::open(imported.path())).unwrap();
    let out = run(imported.path(), 1000);
    assert!(out.starts_with("1 runs\n") && out.lines().any(|line| line.starts_with('*') && line.contains(FIRST)), "{out}");

    // A key that the file does not have is on the disk.
    let elsewhere = records.replacen("      1000\n", "      999\n", 1).replace("1000,", "999,");
    assert_ne!(elsewhere, records);
    let (out, _) = run_with(&elsewhere, directory.path(), &[]);
    assert!(out.starts_with("1 runs\n") && out.lines().any(|line| line.starts_with('*') && line.contains(LAST)), "{out}");
}

fn committed_records_that_do_not_fit_are_none() {
    let directory = tempfile::tempdir().unwrap();
    run(directory.path(), 1000);
    let records = exported(&Store::open(directory.path()));
    let content = Records::parse(&records).unwrap().iter().next().unwrap().of.content.clone();
    let device = "simulated H200 (sm_90a)";
    let cases = [
        (records.replace(&content, "edited"), "note: `axpy` is not what it was"),
        (records.replace(device, "NVIDIA A100"), ""),
        (records.replace("\"kernel\": \"axpy\"", "\"kernel\": \"other\""), ""),
        (records.replace("\"tried\"", "\"trials\""), "warning: tuned.json: these are no records of tuning: record 0 has no field `tried`"),
        (records[..records.len() / 2].to_owned(), "warning: tuned.json: these are no records of tuning: EOF"),
        // It is chosen, and has failed.
        (
            records.replace(
                "\"chosen\": \"Config { block_size: 32, num_warps: 2 }\"",
                "\"chosen\": \"Config { block_size: 64, num_warps: 3 }\"",
            ),
            "",
        ),
    ];
    for (text, told) in cases {
        assert_ne!(text, records);
        let empty = tempfile::tempdir().unwrap();
        let (out, err) = run_with(&text, empty.path(), &[]);
        assert!(out.starts_with("3 runs\n") && err.is_empty(), "{out}{err}");
        let empty = tempfile::tempdir().unwrap();
        let (out, err) = run_with(&text, empty.path(), &[("GALATEA_PRINT_TUNING", Path::new("1"))]);
        assert!(out.starts_with("3 runs\n") && err.contains("tuned in ") && err.contains(told), "{err}");
        assert_eq!(err.matches("note: ").count() + err.matches("warning: ").count(), usize::from(!told.is_empty()), "{err}");
    }
}

fn a_result_is_written_out_wherever_it_was_found() {
    let directory = tempfile::tempdir().unwrap();
    let [tuned, again] = ["tuned", "again"].map(|name| directory.path().join(name));
    let run = |records: Option<&str>, asked: &[(&str, &Path)]| {
        let _ = fs::remove_dir_all(&tuned);
        fs::create_dir(&tuned).unwrap();
        let variables = [&[("GALATEA_TUNED", tuned.as_path())], asked].concat();
        let out = match records {
            Some(records) => run_with(records, directory.path(), &variables).0,
            None => {
                let mut command = child("tune", directory.path(), 1000);
                command.env("GALATEA_CACHE", directory.path()).envs(variables);
                succeed(command).0
            }
        };
        let found = Found::read_all(&tuned).unwrap();
        assert_eq!(found.len(), 1, "{out}");
        (out, found.into_iter().next().unwrap())
    };
    let (out, first) = run(None, &[]);
    assert!(out.starts_with("3 runs\n") && first.origin == Origin::Timed && !first.took.is_zero(), "{out}{first}");
    let (out, second) = run(None, &[]);
    assert!(out.starts_with("1 runs\n") && second.origin == Origin::Stored && second.record == first.record, "{out}{second}");
    let records: Records = [first.record.clone()].into_iter().collect();
    let (out, third) = run(Some(&records.to_string()), &[]);
    assert!(out.starts_with("1 runs\n") && third.origin == Origin::Committed, "{out}{third}");
    let (out, fourth) = run(Some(&records.to_string()), &[("GALATEA_TUNE_AGAIN", &again)]);
    assert!(out.starts_with("3 runs\n") && fourth.origin == Origin::Timed && fourth.record == first.record, "{out}{fourth}");
}
