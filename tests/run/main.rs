//! Kernels as a user writes them, run on the CPU, on simulated GPUs and on the first GPU, against references that know nothing of the
//! compiler.
//!
//! Every test is one trial a device: `cpu::masks::scalar_mask`, `sim::masks::scalar_mask`, `cuda::masks::scalar_mask`. Inputs are fresh in every run; a failure
//! prints its seed, and `GALATEA_SEED` sets it.

mod addresses;
mod addressing;
mod assumptions;
mod atomics;
mod budgets;
mod casts;
mod checked;
mod clusters;
mod constants;
mod device_functions;
#[path = "../devices/mod.rs"]
mod devices;
mod divided_indices;
mod dot_types;
mod dots;
mod elementwise;
mod facts;
mod float8;
mod forms;
mod grids;
mod heuristics;
mod inline_ptx;
mod integers;
mod lab;
mod library_math;
mod lookups;
mod loops;
mod masks;
mod names;
mod odd_extents;
mod operands;
mod order;
mod overlap;
mod pieces;
mod printing;
mod products;
mod random;
mod reductions;
mod register_operands;
mod replays;
mod role_epilogues;
mod role_launches;
mod role_loads;
mod roles;
mod rows;
mod scalars;
mod scans;
mod schedules;
mod sectors;
mod shapes;
mod stages;
mod statistics;
mod streams;
mod strides;
mod structs;
mod tolerance;
mod tuning;
mod value;
mod verified;
mod views;

use std::panic::{AssertUnwindSafe, catch_unwind};

use galatea::prelude::*;
use lab::Lab;
use libtest_mimic::{Arguments, Failed};

/// A test's name, and what it does on the device of its lab.
pub(crate) type Test = (&'static str, fn(&mut Lab));

/// The tests of a module: functions, and generic functions once for each type.
macro_rules! tests {
    ($($name:ident $(<$($ty:ident),*>)?),* $(,)?) => {
        pub(crate) fn tests() -> Vec<crate::Test> {
            let tests: &[&[crate::Test]] = &[$(tests!(@ $name $($($ty)*)?)),*];
            tests.concat()
        }
    };
    (@ $name:ident) => { &[(stringify!($name), $name)] };
    (@ $name:ident $($ty:ident)*) => { &[$((concat!(stringify!($name), "_", stringify!($ty)), $name::<$ty>)),*] };
}
use tests;

fn modules() -> Vec<(&'static str, Vec<Test>)> {
    macro_rules! modules {
        ($($name:ident),* $(,)?) => { vec![$((stringify!($name), $name::tests())),*] };
    }
    modules![
        addresses,
        addressing,
        assumptions,
        atomics,
        budgets,
        casts,
        checked,
        clusters,
        constants,
        device_functions,
        elementwise,
        facts,
        float8,
        forms,
        replays,
        grids,
        heuristics,
        inline_ptx,
        integers,
        library_math,
        lookups,
        loops,
        masks,
        names,
        odd_extents,
        operands,
        order,
        overlap,
        pieces,
        divided_indices,
        dot_types,
        dots,
        role_epilogues,
        role_launches,
        role_loads,
        roles,
        printing,
        random,
        reductions,
        register_operands,
        rows,
        scalars,
        scans,
        schedules,
        sectors,
        shapes,
        stages,
        statistics,
        strides,
        streams,
        structs,
        tuning,
        verified,
        views
    ]
}

fn main() {
    let arguments = Arguments::from_args();
    let seed = seed();
    let columns = devices::columns(seed);
    let mut trials = Vec::new();
    for (module, tests) in modules() {
        for (test_name, test) in tests {
            let name = format!("{module}::{test_name}");
            trials.extend(columns.iter().map(|column| {
                let own_name = name.clone();
                let reason = move |device| reason_to_skip(module, test_name, device);
                column.trial_unless(&name, reason, move |device| run(test, device, &own_name, seed))
            }));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Why a test says nothing on a device.
fn reason_to_skip(module: &str, test: &str, device: Device) -> Option<&'static str> {
    match module {
        "clusters" => clusters::reason_to_skip(test, device),
        "verified" => verified::reason_to_skip(test, device),
        _ => None,
    }
}

/// The seed in `GALATEA_SEED`, else one from the clock.
fn seed() -> u64 {
    match std::env::var("GALATEA_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("GALATEA_SEED is a number, not `{text}`")),
        Err(_) => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64),
    }
}

fn run(test: fn(&mut Lab), device: Device, name: &str, seed: u64) -> Result<(), Failed> {
    let mut lab = Lab::new(device, seed, name);
    catch_unwind(AssertUnwindSafe(|| test(&mut lab))).map_err(|panic| {
        let text = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or(panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic without a text");
        Failed::from(format!("{text}\nto repeat: GALATEA_SEED={seed}"))
    })
}
