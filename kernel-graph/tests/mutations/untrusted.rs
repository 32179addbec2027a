//! Packages of strangers, with checksums that fit: each is an error or an answer, within its limits.
//!
//! The cases run in child processes. So a crash is one case, and what a process never frees, such as kernels, is that of few cases.
//! `GALATEA_MUTATIONS=2000 cargo test -p kernel-graph --test mutations untrusted` makes 10,000 of them; the default is 200.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use galatea::ops::Tensor;
use galatea::{Device, Target};
use kernel_graph::{Limits, Package, PackageError, RunError};

use crate::changes::{self, Entries, Random, entries, signed, structure, values};
use crate::{allocator, alone, program};

const LIMITS: Limits = Limits::new().memory(48 << 20).time(Duration::from_millis(300));
/// The most time of a case: those of loading and of a run, an instruction after each, and the work of a busy machine.
const MOST_TIME: Duration = Duration::from_secs(20);
/// The memory in which the kernels of the programs are compiled, in bytes.
const COMPILATION: usize = 1 << 20;
/// The cases of a child.
const CASES: usize = 250;

/// The kinds of changes.
const KINDS: [&str; 5] = ["typed-ir", "ir", "json", "bytes", "zip"];

fn change(kind: &str, file: &[u8], of: &Entries, random: &mut Random) -> Vec<u8> {
    let mut changed = of.clone();
    let json = ["plan.json", "manifest.json"][random.below(2)];
    let mut entry = |name: &str, ending: &str, change: &dyn Fn(&[u8], &mut Random) -> Vec<u8>| {
        let found: Vec<usize> = (0..changed.len()).filter(|at| changed[*at].0.contains(name) && changed[*at].0.ends_with(ending)).collect();
        let at = found[random.below(found.len())];
        changed[at].1 = change(&changed[at].1, random);
    };
    match kind {
        "typed-ir" => entry("kernels/", ".ir", &changes::typed_ir),
        "ir" => entry("kernels/", ".ir", &changes::ir),
        "json" => entry("", json, &values),
        // Bytes and lengths of any entry.
        "bytes" => entry("", "", &changes::bytes),
        _ => return structure(file, of, random),
    }
    signed(changed)
}

/// How a case ends.
fn outcome(file: Arc<[u8]>) -> String {
    let loaded = Package::untrusted(file, LIMITS).and_then(|package| package.load(&Device::cpu()));
    let session = match loaded {
        Ok(session) => session,
        Err(error) => {
            if std::env::var_os("GALATEA_REASONS").is_some() {
                println!("reason {error}");
            }
            return if is_crash(&error.to_string()) { format!("crash {error}") } else { "refused".to_owned() };
        }
    };
    match session.run([&program::x()]) {
        Ok(outputs) => {
            outputs.iter().for_each(|output| drop(output.to_bytes().unwrap()));
            "answered".to_owned()
        }
        Err(error) if error.to_string().contains("the time for the run is over") => "stopped".to_owned(),
        Err(error) if is_crash(&error.to_string()) => format!("crash {error}"),
        Err(_) => "failed".to_owned(),
    }
}

/// Compiles the package for a GPU and runs it on the simulated one, which checks each access. Only of packages that have run on the CPU.
fn outcome_on_gpu(kind: &str, file: Arc<[u8]>) -> String {
    let device = Device::sim(Target::SM_80).unwrap();
    let run = || {
        let session = Package::untrusted(file, LIMITS)?.load(&device)?;
        Ok::<_, PackageError>(session.run([&program::x().to_device(&device)?])?)
    };
    match run() {
        Ok(_) => "answered-gpu".to_owned(),
        // A changed kernel may have programs that write one element.
        Err(error) if error.to_string().contains("race at address") => "raced-gpu".to_owned(),
        // GPUs run fewer schedules than the CPU, which ignores them.
        Err(error) if kind == "json" && !is_fault(&error) && !is_crash(&error.to_string()) => "failed-gpu".to_owned(),
        Err(error) => format!("crash {error}"),
    }
}

/// Whether the simulated GPU has seen a mistake of the kernel, such as an access outside of a tensor.
fn is_fault(error: &PackageError) -> bool {
    let PackageError::Run(error) = error else { return false };
    let mut cause = &**error;
    while let RunError::Node { source, .. } = cause {
        cause = source;
    }
    matches!(cause, RunError::Runtime(error) if matches!(**error, galatea::Error::Fault { .. }))
}

/// Whether an error is one of a defect.
fn is_crash(error: &str) -> bool {
    error.contains("the compiler crashed") || error.contains("a defect of galatea")
}

/// The cases of one child, if this process is one.
#[test]
fn child_of_untrusted_cases() {
    let Ok(task) = std::env::var("GALATEA_UNTRUSTED_CASES") else { return };
    let [kind, seed, count] = &task.split(' ').collect::<Vec<_>>()[..] else { panic!("`{task}`") };
    let (mut random, count) = (Random(seed.parse().unwrap()), count.parse::<usize>().unwrap());
    let files = [program::package(16), program::package_of_families()];
    let files = files.map(|file| (entries(&Package::from_bytes(file.clone()).unwrap()), file));
    let path = std::env::temp_dir().join(format!("galatea-untrusted-{kind}-{seed}.gpk"));
    for case in 0..count {
        let (of, file) = &files[case % 2];
        let file: Arc<[u8]> = change(kind, file, of, &mut random).into();
        // After a crash, the file of the case is there.
        std::fs::write(&path, &file).unwrap();
        let (before, begin) = (allocator::begin(), Instant::now());
        let outcome = catch_unwind(AssertUnwindSafe(|| outcome(file.clone()))).unwrap_or_else(|_| "crash: it panics".to_owned());
        let (taken, time) = (allocator::taken(before), begin.elapsed());
        // The simulator is slower than the CPU, and no limit ends its runs.
        let is_short = time < Duration::from_millis(30);
        if ["ir", "typed-ir", "json"].contains(kind) && outcome == "answered" && is_short && case % 4 < 2 {
            let outcome =
                catch_unwind(AssertUnwindSafe(|| outcome_on_gpu(kind, file.clone()))).unwrap_or_else(|_| "crash: it panics".to_owned());
            assert!(!outcome.starts_with("crash"), "case {case}: {outcome}; the file is {}", path.display());
            println!("\ngpu-{outcome}");
        }
        // What is refused has declared nothing that counts, and its kernels are those of the file.
        let is_read = outcome == "refused" && !kind.ends_with("ir");
        let most = if is_read { crate::allowed(file.len(), crate::json_bytes(&file)) + COMPILATION } else { LIMITS.most_memory() as usize };
        let is_fine = !outcome.starts_with("crash") && taken <= most && time < MOST_TIME;
        assert!(is_fine, "case {case}: {outcome}; {taken} bytes, {time:?}; the file is {}", path.display());
        println!("outcome {outcome}");
        println!("time {}", time.as_millis());
        println!("memory {taken}");
    }
    std::fs::remove_file(path).unwrap();
}

/// Runs cases of a kind in children, and counts how they end.
fn attack(kind: &str) -> BTreeMap<String, usize> {
    let count = std::env::var("GALATEA_MUTATIONS").map_or(40, |count| count.parse().expect("`GALATEA_MUTATIONS` is a number"));
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    let seed = std::env::var("GALATEA_SEED").map_or(seed, |seed| seed.parse().expect("`GALATEA_SEED` is a number"));
    let (mut outcomes, mut on_gpu) = (BTreeMap::new(), BTreeMap::<String, usize>::new());
    let (mut slowest, mut largest) = (0, 0);
    for first in (0..count).step_by(CASES) {
        let seed = seed.wrapping_add(first as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let task = format!("{kind} {seed} {}", CASES.min(count - first));
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "untrusted::child_of_untrusted_cases", "--nocapture"]).env("GALATEA_UNTRUSTED_CASES", &task);
        let output = child.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "GALATEA_UNTRUSTED_CASES=\"{task}\": {}\n{errors}", output.status);
        for line in text.lines() {
            let numbers = |name: &str| line.strip_prefix(name).and_then(|number| number.trim().parse::<usize>().ok());
            slowest = slowest.max(numbers("time").unwrap_or(0));
            largest = largest.max(numbers("memory").unwrap_or(0));
            if let Some(outcome) = line.strip_prefix("outcome ") {
                *outcomes.entry(outcome.to_owned()).or_insert(0) += 1;
            }
            if let Some(outcome) = line.strip_prefix("gpu-") {
                *on_gpu.entry(outcome.to_owned()).or_insert(0) += 1;
            }
        }
    }
    println!("{kind}: {outcomes:?}, {on_gpu:?}, slowest {slowest} ms, at most {largest} bytes");
    assert_eq!(outcomes.values().sum::<usize>(), count, "{outcomes:?}");
    outcomes
}

#[test]
fn untrusted_packages_with_new_checksums_are_errors_or_answers() {
    let _alone = alone();
    // Few changes of IR leave a kernel. By chance, the cases of one kind may lack it.
    let ended: Vec<BTreeMap<String, usize>> = KINDS.iter().map(|kind| attack(kind)).collect();
    let count = |outcome: &str| ended.iter().filter(|outcomes| outcomes.contains_key(outcome)).count();
    assert!(count("refused") + 1 >= KINDS.len() && count("answered") + 1 >= KINDS.len(), "{ended:?}");
}

/// The package of a program, untrusted.
fn whole(limits: Limits) -> Result<Package, PackageError> {
    Package::untrusted(program::package(16), limits)
}

#[test]
fn an_untrusted_package_computes_what_the_trusted_one_does() {
    let _alone = alone();
    let cpu = Device::cpu();
    for file in [program::package(16), program::package_of_families()] {
        let expected = crate::bytes(&Package::from_bytes(file.clone()).unwrap().load(&cpu).unwrap().run([&program::x()]).unwrap());
        let session = Package::untrusted(file, Limits::new()).unwrap().load(&cpu).unwrap();
        for _ in 0..2 {
            assert_eq!(crate::bytes(&session.run([&program::x()]).unwrap()), expected);
        }
    }
}

/// Each need is an error with both numbers before the memory is taken.
#[test]
fn memory_is_limited_before_it_is_taken() {
    let _alone = alone();
    let needed = |error: PackageError| match error {
        PackageError::Run(error) => match *error {
            RunError::MemoryLimit { needed, limit } => (needed, limit),
            error => panic!("{error}"),
        },
        error => panic!("{error}"),
    };
    let mut of = entries(&Package::from_bytes(program::package(1 << 16)).unwrap());
    let (_, plan) = of.iter_mut().find(|(name, _)| name == "plan.json").unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(plan).unwrap();
    // A run takes more than a compilation, whose memory is free again by then.
    json["dims"][0]["range"][1] = (1 << 16).into();
    *plan = json.to_string().into_bytes();
    let file: Arc<[u8]> = signed(of).into();
    let before = allocator::begin();
    let (needed_to_read, _) = needed(Package::untrusted(file.clone(), Limits::new().memory(1000)).unwrap_err());
    assert!(needed_to_read >= file.len() as u64 && allocator::taken(before) < 64 << 10);
    let package = Package::untrusted(file.clone(), Limits::new().memory(needed_to_read)).unwrap();
    let (needed_to_load, limit) = needed(package.load(&Device::cpu()).unwrap_err());
    assert!(needed_to_load > limit && limit == needed_to_read);
    // Compilation and scratch memory are not counted in that. Each error names a need beyond the limit, until there is none.
    let (mut limit, mut errors) = (needed_to_load, 0);
    while let Err(error) = Package::untrusted(file.clone(), Limits::new().memory(limit)).unwrap().load(&Device::cpu()) {
        let (needed, given) = needed(error);
        assert!(needed > limit && given == limit);
        (limit, errors) = (needed, errors + 1);
    }
    assert!(errors > 0 && limit < needed_to_load + (8 << 20), "{errors} errors, {limit}");
    let x: Tensor = Device::cpu().zeros::<f32>([1 << 16, 5]).unwrap().into();
    let run = |limit: u64| Package::untrusted(file.clone(), Limits::new().memory(limit)).unwrap().load(&Device::cpu()).unwrap().run([&x]);
    let error = run(limit).unwrap_err();
    let RunError::MemoryLimit { needed, .. } = error else { panic!("{error}") };
    assert!(run(needed - 1).is_err() && run(needed).is_ok());
}

#[test]
fn a_run_ends_in_time() {
    let _alone = alone();
    for programs in [1, i64::from(i32::MAX)] {
        let file = program::endless_package(programs);
        let session = Package::untrusted(file, Limits::new().time(Duration::from_millis(200))).unwrap().load(&Device::cpu()).unwrap();
        let begin = Instant::now();
        let error = session.run([&program::x()]).unwrap_err().to_string();
        assert!(error.contains("was stopped: the time for the run is over"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    }
}

/// Allocations share memory, so that the limit of memory does not bound their fills; nor may many of them take long to load.
#[test]
fn fills_end_in_time() {
    let _alone = alone();
    let mut of = entries(&Package::from_bytes(program::package(16)).unwrap());
    let (_, plan) = of.iter_mut().find(|(name, _)| name == "plan.json").unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(plan).unwrap();
    for (count, ty) in [(60_000, "f32[1]"), (2000, "f32[50000000]")] {
        for _ in 0..count {
            let value = json["values"].as_array().unwrap().len();
            json["values"].as_array_mut().unwrap().push(ty.into());
            json["nodes"].as_array_mut().unwrap().push(serde_json::json!({ "alloc": "zeros", "results": [value], "at": "a:1:1" }));
        }
    }
    *plan = json.to_string().into_bytes();
    let begin = Instant::now();
    let limits = Limits::new().memory(4 << 30).time(Duration::from_secs(3));
    let session = Package::untrusted(signed(of), limits).unwrap().load(&Device::cpu()).unwrap();
    let error = session.run([&program::x()]).unwrap_err().to_string();
    assert!(error.contains("was stopped: the time for the run is over"), "{error}");
    assert!(begin.elapsed() < MOST_TIME, "{:?}", begin.elapsed());
}

#[test]
fn a_file_is_opened_within_its_limit() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gpk");
    std::fs::write(&path, program::package(16)).unwrap();
    assert!(Package::open_untrusted(&path, Limits::new()).unwrap().load(&Device::cpu()).is_ok());
    let error = Package::open_untrusted(&path, Limits::new().memory(99)).unwrap_err().to_string();
    assert!(error.contains("and 99 is its limit"), "{error}");
    assert!(whole(Limits::new().time(Duration::ZERO)).unwrap().load(&Device::cpu()).unwrap_err().to_string().contains("longer to compile"));
}
