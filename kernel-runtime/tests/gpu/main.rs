//! Tests on a GPU, or on the simulated driver in its place (`cargo xtask ci driver`). Without either every test is reported as ignored, with the
//! reason as its kind.

#[path = "../allocations/mod.rs"]
mod allocations;
#[path = "../axpy/mod.rs"]
mod axpy;
#[path = "../blocks/mod.rs"]
mod blocks;
#[cfg(feature = "jit")]
mod facts;
mod failures;
mod foreign_captures;
mod interop;
mod kernels;
mod launches;
mod orders;
mod overhead;
mod persistent;
mod profiles;
mod replays;
#[cfg(not(feature = "cache"))]
use no_store as store;
#[cfg(feature = "cache")]
mod store;
mod streams;
#[path = "../trusted/mod.rs"]
mod trusted;
#[path = "../axpy/tuned.rs"]
mod tuned;
mod tuning;

use kernel_runtime::bench::Roof;
use kernel_runtime::{Device, Error};
use libtest_mimic::{Arguments, Trial};

type Test = (&'static str, fn(Device));

/// A stand-in for the tests of the store in a build without the feature `cache`.
#[cfg(not(feature = "cache"))]
mod no_store {
    pub(crate) const TESTS: &[crate::Test] = &[];
    pub(crate) const ASSEMBLED: &[&str] = &[];

    pub(crate) fn assembler() -> Option<std::path::PathBuf> {
        None
    }
}

/// A stand-in for the tests of variants that are compiled in the process, in a build without the feature `jit`.
#[cfg(not(feature = "jit"))]
mod no_compiler {
    pub(crate) const TESTS: &[crate::Test] = &[];
}

/// Tests of times, of which a simulated GPU has none.
const TIMED: [&str; 8] = [
    "readers_and_homes_overlap",
    "events_time_the_gpu",
    "benchmarks_see_the_bandwidth",
    "a_launch_costs_little_more_than_the_drivers",
    "a_persistent_launch_costs_little_more",
    "a_replay_costs_less_than_its_launches",
    "the_roof_is_above_what_is_reached",
    "kernels_of_a_profile_follow_each_other",
];

/// A test that compares with what the driver tells of its clocks.
const ROOFS: [&str; 1] = ["the_roof_is_above_what_is_reached"];

/// Tests of launches that overlap.
const OVERLAPPING: [&str; 1] = ["an_early_launch_waits_before_it_reads"];

/// Tests of clusters.
const CLUSTERS: [&str; 1] = ["clusters_are_captured"];

/// Why a test says nothing on this device.
fn reason_to_skip(name: &str, device: Device) -> Option<&'static str> {
    let is_hopper = device.compute_capability() >= Some((9, 0));
    if kernels::is_simulated() && TIMED.contains(&name) {
        Some("skipped: a simulated GPU takes no time")
    } else if !kernels::is_simulated() && failures::TESTS.iter().chain(persistent::PLANTED).any(|(planted, _)| *planted == name) {
        Some("skipped: only the simulated driver fails when it is told to")
    } else if ROOFS.contains(&name) && Roof::of(&device).is_none() {
        Some("skipped: the driver tells no clocks")
    } else if store::ASSEMBLED.contains(&name) && store::assembler().is_none() {
        Some("skipped: there is no ptxas in PATH")
    } else if !is_hopper && OVERLAPPING.contains(&name) {
        Some("skipped: launches do not overlap on this GPU")
    } else if !is_hopper && persistent::TESTS.iter().any(|(mapped, _)| *mapped == name) {
        Some("skipped: this GPU has no tensor maps")
    } else if !is_hopper && CLUSTERS.contains(&name) {
        Some("skipped: this GPU has no clusters")
    } else {
        None
    }
}

fn main() {
    if std::env::var_os(launches::CRASH).is_some() {
        return launches::crash();
    }
    #[cfg(feature = "cache")]
    if std::env::var_os(store::CHILD).is_some() {
        return store::child();
    } else if std::env::var_os("GALATEA_CACHE").is_none() {
        // Tests leave the user's store alone.
        kernel_runtime::cache::set(None);
    }
    let device = Device::cuda(0);
    let reason = match &device {
        Ok(_) => "cuda".to_owned(),
        Err(Error::NoDriver) => "skipped: no CUDA driver".to_owned(),
        Err(Error::NoDevice { .. }) => "skipped: no GPU".to_owned(),
        Err(error) => panic!("{error}"),
    };
    let device = device.ok();
    #[cfg(not(feature = "jit"))]
    use no_compiler as facts;
    let tests = [
        launches::TESTS,
        streams::TESTS,
        failures::TESTS,
        foreign_captures::TESTS,
        orders::TESTS,
        interop::TESTS,
        tuning::TESTS,
        replays::TESTS,
        overhead::TESTS,
        persistent::TESTS,
        persistent::PLANTED,
        profiles::TESTS,
        store::TESTS,
        facts::TESTS,
    ]
    .concat();
    let mut named = TIMED.iter().chain(&ROOFS).chain(&OVERLAPPING).chain(&CLUSTERS).chain(store::ASSEMBLED);
    assert!(named.all(|special| tests.iter().any(|(name, _)| name == special)), "what may be skipped is a test");
    let trials = tests.into_iter().map(|(name, test)| {
        let run = move || {
            device.into_iter().for_each(test);
            Ok(())
        };
        let skip = device.and_then(|device| reason_to_skip(name, device));
        let kind = skip.map_or_else(|| reason.clone(), str::to_owned);
        Trial::test(name, run).with_ignored_flag(device.is_none() || skip.is_some()).with_kind(kind)
    });
    let two = replays::OF_TWO.iter().map(|&(name, test)| {
        let kind = if Device::cuda_count() < 2 { "skipped: fewer than two GPUs" } else { "cuda" };
        let run = move || {
            device.into_iter().for_each(test);
            Ok(())
        };
        Trial::test(name, run).with_ignored_flag(Device::cuda_count() < 2).with_kind(kind)
    });
    // One after the other: several of them take times.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials.chain(two).collect()).exit();
}
