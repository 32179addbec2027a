//! What one process tuned, the next one knows: on a simulated GPU, whose clock gives the same times in every run.

use std::fs;
use std::path::Path;

use kernel_runtime::cache::{Kind, Records, Store};
use kernel_runtime::prelude::*;
use kernel_runtime::private::{KeyPart, Rules, Tuner};

use crate::Test;
use crate::axpy::{Config, of, tuned};
use crate::children::{child, outputs, say, succeed};
use crate::faults::file;

pub(crate) const TESTS: &[Test] = &[
    ("a_second_process_tunes_nothing", a_second_process_tunes_nothing),
    ("a_record_that_does_not_fit_is_tuned_again", a_record_that_does_not_fit_is_tuned_again),
    ("of_sixteen_processes_one_tunes", of_sixteen_processes_one_tunes),
];

/// Three warps are none.
const CONFIGS: &[Config] = &[of(1024, 4), of(64, 3), of(32, 2)];

/// Launches once and says how often the kernel ran, and what was tried.
pub(crate) fn tune(n: usize) {
    static TUNER: Tuner<Config> = Tuner::new(CONFIGS, &[KeyPart::exact(5)]);
    let device = Device::sim(Target::SM_90A).unwrap();
    let (x, mut y) = (device.full(n, 3.0f32).unwrap(), device.full(n, 0.5f32).unwrap());
    let launch = |y: &mut Tensor<f32>, is_report: bool| {
        let launch = tuned(&x, y, &TUNER, &Rules::NONE).grid(|config| cdiv(n, config.block_size));
        if is_report { launch.report().unwrap().to_string() } else { launch.launch().map(|()| String::new()).unwrap() }
    };
    launch(&mut y, false);
    assert_eq!(y.to_vec().unwrap(), vec![3.5; n]);
    let runs = device.sim_report().unwrap().kernel("axpy").unwrap().launches;
    say(&format!("{runs} runs\n{}", launch(&mut y, true)));
}

fn run(directory: &Path, n: u64) -> String {
    let mut command = child("tune", directory, n);
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

    // What is exported serves another machine.
    let elsewhere = tempfile::tempdir().unwrap();
    Records::parse(&records.to_string()).unwrap().keep_in(&Store::open(elsewhere.path())).unwrap();
    assert_eq!(run(elsewhere.path(), 1000).lines().next(), Some("1 runs"));
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
