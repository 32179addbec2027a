//! Changed packages: each is an error, or its program gives the right answer. None panics, hangs, or takes more memory than its size accounts for.
//!
//! `GALATEA_MUTATIONS=20000 cargo test -p kernel-graph --test mutations` makes as many changes of each kind; the default is a few hundred.

mod allocator;
mod changes;
mod forged;
mod program;
mod untrusted;
mod writer;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use galatea::ops::Tensor;
use galatea::{Device, Dim, DimValues};
use kernel_graph::{NodeOp, Package, PackageError, Plan, Session};

use crate::allocator::Counting;
use crate::changes::{Entries, Random, entries, signed, structure, values, zipped};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How a case ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Outcome {
    Refused,
    RunFailed,
    /// The program has more work than a test can wait for.
    TooLong,
    Answered {
        is_right: bool,
    },
}

/// Runs the cases of one test at a time: the memory of a case is that of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn count() -> usize {
    std::env::var("GALATEA_MUTATIONS").map_or(300, |count| count.parse().expect("`GALATEA_MUTATIONS` is a number"))
}

/// The memory that reading a package may take beside the file: a copy of each text and weight, another while it is made, and the JSON as values.
fn allowed(file: usize, json: usize) -> usize {
    2 * file + 64 * json + (256 << 10)
}

/// Makes many changed packages, and counts how they end.
fn mutate(name: &str, change: &dyn Fn(&mut Random) -> Vec<u8>) -> BTreeMap<Outcome, usize> {
    let seed = std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64 | 1;
    let seed = std::env::var("GALATEA_SEED").map_or(seed, |seed| seed.parse().expect("`GALATEA_SEED` is a number"));
    println!("{name}: GALATEA_SEED={seed}");
    let (whole, session) = load(program::package(16).into()).unwrap();
    let expected = bytes(&run(&session).unwrap());
    let (started, watch) = (Instant::now(), Arc::new(AtomicU64::new(u64::MAX)));
    watch_over(name, started, &watch);
    let (mut random, mut outcomes) = (Random(seed), BTreeMap::new());
    let (mut slowest, mut largest) = (Duration::ZERO, 0.0f64);
    for case in 0..count() {
        let file: Arc<[u8]> = change(&mut random).into();
        let begin = Instant::now();
        watch.store((begin - started).as_millis() as u64, Ordering::Relaxed);
        let before = allocator::begin();
        let mut taken = 0;
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let loaded = load(file.clone());
            taken = allocator::taken(before);
            match loaded {
                Err(_) => Outcome::Refused,
                Ok((_, session)) if is_too_long(session.plan()) => Outcome::TooLong,
                Ok((package, session)) => match run(&session) {
                    Err(_) => Outcome::RunFailed,
                    // The CPU does not use all of the manifest, such as the number of warps.
                    Ok(outputs) => Outcome::Answered { is_right: bytes(&outputs) == expected && package.manifest() == whole.manifest() },
                },
            }
        }));
        watch.store(u64::MAX, Ordering::Relaxed);
        let keep = |what: &str| {
            let path = std::env::temp_dir().join(format!("galatea-mutation-{name}.gpk"));
            std::fs::write(&path, &file).unwrap();
            panic!("{name}, case {case}, GALATEA_SEED={seed}: {what}; the file is {}", path.display());
        };
        let outcome = outcome.unwrap_or_else(|_| keep("it panics"));
        slowest = slowest.max(begin.elapsed());
        let json = json_bytes(&file);
        largest = largest.max(taken as f64 / allowed(file.len(), json) as f64);
        if taken > allowed(file.len(), json) {
            keep(&format!("it takes {taken} bytes of memory for {} bytes with {json} of JSON", file.len()));
        }
        *outcomes.entry(outcome).or_insert(0) += 1;
    }
    println!("{name}: {outcomes:?}, slowest {slowest:?}, memory at most {largest:.2} of the allowed one");
    outcomes
}

/// Ends the process if a case takes a minute.
fn watch_over(name: &str, started: Instant, watch: &Arc<AtomicU64>) {
    let (name, watch) = (name.to_owned(), Arc::downgrade(watch));
    std::thread::spawn(move || {
        while let Some(watch) = watch.upgrade() {
            let begin = watch.load(Ordering::Relaxed);
            drop(watch);
            if begin != u64::MAX && started.elapsed() > Duration::from_millis(begin) + Duration::from_secs(60) {
                eprintln!("{name}: a case takes more than a minute");
                std::process::abort();
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    });
}

fn load(file: Arc<[u8]>) -> Result<(Package, Session), PackageError> {
    let package = Package::from_bytes(file)?;
    let session = package.load(&Device::cpu())?;
    Ok((package, session))
}

fn run(session: &Session) -> Result<Vec<Tensor>, kernel_graph::RunError> {
    session.run([&program::x()])
}

fn bytes(tensors: &[Tensor]) -> Vec<Vec<u8>> {
    tensors.iter().map(|tensor| tensor.to_bytes().unwrap()).collect()
}

/// The size of the entries that hold JSON, or may hold it.
fn json_bytes(file: &Arc<[u8]>) -> usize {
    let Ok(package) = Package::from_bytes(file.clone()) else { return file.len() };
    package.entries().iter().filter(|(name, _)| !name.starts_with("kernels/")).map(|(_, bytes)| bytes).sum()
}

/// Whether a run has launches of many programs. A grid may have 2^31 of them, which is slow and no defect.
fn is_too_long(plan: &Plan) -> bool {
    let dims = plan.dims();
    let values = dims.iter().try_fold(DimValues::new(), |values, dim| values.with(dim, if dim.to_string() == "rows" { 3 } else { 1 }));
    let Ok(values) = values else { return false };
    let product = |grid: &[Dim; 3]| grid.iter().map(|dim| dim.value(&values).unwrap_or(0).max(0) as f64).product::<f64>();
    let programs = |node: &kernel_graph::Node| match &node.op {
        NodeOp::Launch(launch) => launch.grids().map(product).fold(0.0, f64::max),
        NodeOp::Alloc { .. } | NodeOp::View { .. } | NodeOp::Extern(_) => 1.0,
    };
    plan.nodes.iter().map(programs).sum::<f64>() > 1e5
}

/// The package with a changed entry and new checksums.
fn resigned(of: &Entries, name: &str, random: &mut Random, change: &dyn Fn(&[u8], &mut Random) -> Vec<u8>) -> Vec<u8> {
    let mut of = of.clone();
    let entry = of.iter_mut().find(|(known, _)| known.starts_with(name) && !known.ends_with(".ptx")).unwrap();
    entry.1 = change(&entry.1, random);
    signed(of)
}

fn whole() -> (Vec<u8>, Entries) {
    let file = program::package(16);
    let of = entries(&Package::from_bytes(file.clone()).unwrap());
    (file, of)
}

/// Accidents: the checksums notice them, or the answer is right.
fn all_are_right_or_refused(outcomes: &BTreeMap<Outcome, usize>) {
    let are_fine = outcomes.keys().all(|outcome| matches!(outcome, Outcome::Refused | Outcome::Answered { is_right: true }));
    assert!(are_fine && outcomes.contains_key(&Outcome::Refused), "{outcomes:?}");
}

#[test]
fn changed_bytes() {
    let _alone = alone();
    let (file, _) = whole();
    all_are_right_or_refused(&mutate("bytes", &|random| changes::bytes(&file, random)));
}

#[test]
fn changed_structure_of_the_file() {
    let _alone = alone();
    let (file, of) = whole();
    all_are_right_or_refused(&mutate("structure", &|random| structure(&file, &of, random)));
}

#[test]
fn changed_values_with_the_old_checksums() {
    let _alone = alone();
    let (_, of) = whole();
    all_are_right_or_refused(&mutate("values-unsigned", &|random| {
        let mut of = of.clone();
        let entry = of.iter_mut().find(|(name, _)| name == "plan.json").unwrap();
        entry.1 = values(&entry.1, random);
        zipped(&of)
    }));
}

#[test]
fn changed_plans_with_new_checksums() {
    let _alone = alone();
    let (_, of) = whole();
    let outcomes = mutate("plan", &|random| resigned(&of, "plan.json", random, &values));
    assert!(outcomes.contains_key(&Outcome::Refused), "{outcomes:?}");
}

#[test]
fn changed_manifests_with_new_checksums() {
    let _alone = alone();
    let (_, of) = whole();
    let outcomes = mutate("manifest", &|random| resigned(&of, "manifest.json", random, &values));
    assert!(outcomes.contains_key(&Outcome::Refused), "{outcomes:?}");
}

#[test]
fn changed_weights_with_new_checksums() {
    let _alone = alone();
    let (_, of) = whole();
    let outcomes = mutate("weights", &|random| {
        resigned(&of, "weights.safetensors", random, &|file, random| {
            let len = u64::from_le_bytes(*file.first_chunk().unwrap()) as usize;
            let header = match random.below(2) {
                0 => values(&file[8..8 + len], random),
                _ => changes::changed_text(std::str::from_utf8(&file[8..8 + len]).unwrap(), random).into_bytes(),
            };
            let stated = match random.below(8) {
                0 => u64::MAX,
                1 => random.below(1 << 30) as u64,
                _ => header.len() as u64,
            };
            [&stated.to_le_bytes()[..], &header, &file[8 + len..]].concat()
        })
    });
    assert!(outcomes.contains_key(&Outcome::Refused), "{outcomes:?}");
}

#[test]
fn changed_kernels_with_new_checksums() {
    let _alone = alone();
    let (_, of) = whole();
    let outcomes =
        mutate("kernels", &|random| resigned(&of, ["kernels/0", "kernels/1", "kernels/2"][random.below(3)], random, &changes::lines));
    assert!(outcomes.contains_key(&Outcome::Refused), "{outcomes:?}");
}

/// A package of large weights takes the file and one copy of the weights, while one tensor is there twice.
#[test]
fn large_weights_take_no_more_than_twice_the_file() {
    let _alone = alone();
    let file: Arc<[u8]> = program::package(4 << 20).into();
    let before = allocator::begin();
    let loaded = load(file.clone()).unwrap();
    let taken = allocator::taken(before);
    assert!(taken < 2 * file.len() + (2 << 20), "{taken} bytes for {}", file.len());
    drop(loaded);
}
