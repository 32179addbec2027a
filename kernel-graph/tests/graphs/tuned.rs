//! Recorded launches of kernels with configurations: each form of a program takes the configuration that the others take.

use std::sync::{Mutex, PoisonError};

use galatea::cache::{Record, Records};
use galatea::graph::{Level, Package, PackageError, PackageWriter};
use galatea::ops::{Any, Tensor};
use galatea::prelude::*;
use galatea::profile::Profile;
use galatea::tune::{Origin, Outcome};
use galatea::{Dim, Dtype, autotune};
use kernel_graph::{Graph, Session, input};

use crate::numbers;
use crate::round_trip::export;

/// Modules with an autotuned kernel each, so that a test may tune it in another form first. The first configuration is far from the fastest.
macro_rules! adding {
    ($($module:ident: $add:ident)*) => {$(
        mod $module {
            use super::*;

            #[autotune(
                configs = [
                    Config { BLOCK_SIZE: 2, num_warps: 8, num_stages: 3 },
                    Config { BLOCK_SIZE: 4, num_warps: 4, num_stages: 4 },
                    Config { BLOCK_SIZE: 256, num_warps: 4, num_stages: 3 },
                    Config { BLOCK_SIZE: 64, num_warps: 4, num_stages: 3 },
                ],
                key = [],
            )]
            #[kernel]
            pub(super) fn $add<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: usize) {
                let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
                store(out + at, load(x + at, mask = at < n) + load(y + at, mask = at < n), mask = at < n);
            }

            pub(super) fn program(x: &Tensor) -> Result<Tensor> {
                let (n, mut out) = (x.numel(), x.empty_like()?);
                $add::<Any>(x, x, &mut out, &n).grid(|config| n.cdiv(config.BLOCK_SIZE as i64)).launch()?;
                Ok(out)
            }
        }
    )*};
}

adding!(eager_first: add_first session_first: add_second package_first: add_third captured: add_captured shipped: add_shipped repeated: add);

/// Two launches with configurations, of which the second has other scalars.
pub(crate) fn sum_of_pairs(x: &Tensor) -> Result<Tensor> {
    let y = repeated::program(x)?;
    repeated::program(&y.slice(Dim::from(1)..y.dim(0))?)
}

/// The devices take turns: a trace has the launches of all threads.
static TURN: Mutex<()> = Mutex::new(());

fn of_n(body: fn(&Tensor) -> Result<Tensor>) -> Graph {
    export(|[x]| body(x), [input("x", [&Dim::new("n", 1..=4096)], Dtype::F32)]).unwrap()
}

fn packed(graph: &Graph, device: &Device) -> Session {
    Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap().load(device).unwrap()
}

fn bits(tensor: &Tensor) -> Vec<u32> {
    tensor.to_vec::<f32>().unwrap().into_iter().map(f32::to_bits).collect()
}

/// Runs forms in their order. Only the first tunes, and all launch the same variant.
fn takes_turns(device: Device, kernel: &str, forms: [&dyn Fn(&Tensor) -> Tensor; 3]) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let x = numbers(&device, 1001);
    let doubled: Vec<u32> = x.to_vec::<f32>().unwrap().into_iter().map(|x| (x + x).to_bits()).collect();
    let mut launched = Vec::new();
    for (number, form) in forms.into_iter().enumerate() {
        let profile = Profile::start();
        assert_eq!(bits(&form(&x)), doubled);
        let trace = profile.finish();
        let tunings = trace.spans().iter().filter(|span| span.name == format!("tune {kernel}")).count();
        assert_eq!(tunings, usize::from(number == 0 && !device.is_cpu()), "form {number} on {device:?}");
        let launches = trace.launches().iter().filter(|launch| launch.kernel == kernel && launch.device == device);
        launched.extend(launches.map(|launch| (launch.grid, launch.parameters.clone(), launch.schedule)));
    }
    assert_eq!(launched.len(), 3);
    assert!(launched.iter().all(|launch| *launch == launched[0]), "{launched:?}");
    // The CPU takes the first configuration. The simulated clock has no noise, and blocks of 64 are the fastest there.
    let grid = if device.is_cpu() { 501 } else { 16 };
    assert!(!(device.is_cpu() || device.is_sim()) || launched[0].0 == [grid, 1, 1], "{launched:?}");
}

pub(crate) fn all_forms_take_the_configuration_that_one_has_tuned(device: Device) {
    let run = |session: Session| move |x: &Tensor| session.run([x]).unwrap().remove(0);
    let eager = |program: fn(&Tensor) -> Result<Tensor>| move |x: &Tensor| program(x).unwrap();
    let forms = |program: fn(&Tensor) -> Result<Tensor>| {
        let graph = of_n(program);
        (eager(program), run(packed(&graph, &device)), run(Session::new(graph, &device).unwrap()))
    };
    let (function, package, session) = forms(eager_first::program);
    takes_turns(device, "add_first", [&function, &package, &session]);
    let (function, package, session) = forms(session_first::program);
    takes_turns(device, "add_second", [&session, &function, &package]);
    let (function, package, session) = forms(package_first::program);
    takes_turns(device, "add_third", [&package, &session, &function]);
    // Its report says where the times are from.
    let (x, mut out) = (numbers(&device, 1001), numbers(&device, 1001));
    let report = package_first::add_third::<Any>(&x, &x, &mut out, 1001).grid(|config| cdiv(1001, config.BLOCK_SIZE)).report().unwrap();
    assert_eq!(report.origin, if device.is_cpu() { Origin::Untimed } else { Origin::Stored }, "{report}");
}

/// The variable that makes this program a child that runs a package: its path, and the device.
pub(crate) const CHILD: &str = "GALATEA_RUN_OF_PACKAGE";

/// The number of tunings and the grids of one run of a package.
fn observed(session: &Session, device: &Device) -> String {
    let x = numbers(device, 1001);
    let profile = Profile::start();
    let sums = bits(&session.run([&x]).unwrap()[0]);
    let trace = profile.finish();
    assert_eq!(sums, x.to_vec::<f32>().unwrap().into_iter().map(|x| (x + x).to_bits()).collect::<Vec<_>>());
    let tunings = trace.spans().iter().filter(|span| span.name.starts_with("tune ")).count();
    let launches = trace.launches().iter().filter(|launch| launch.kernel == "add_shipped" && launch.device == *device);
    format!("{tunings} tunings, grids {:?}", launches.map(|launch| launch.grid[0]).collect::<Vec<_>>())
}

pub(crate) fn child(task: &str) {
    let (device, path) = task.split_once(' ').unwrap();
    let device = Device::parse(device).unwrap();
    println!("{}", observed(&Package::open(path).unwrap().load(&device).unwrap(), &device));
}

/// A package with the results of tuning of this process, in a process that has none.
pub(crate) fn a_package_runs_the_configurations_that_were_found_elsewhere(device: Device) {
    if device.is_cpu() {
        return;
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tuned.gpk");
    let elsewhere = |file: &[u8]| {
        std::fs::write(&path, file).unwrap();
        let name = match device.compute_capability() {
            _ if device.is_cuda() => "cuda:0",
            Some((8, 0)) => "sim:sm_80",
            _ => "sim:sm_90a",
        };
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        child.env(CHILD, format!("{name} {}", path.display())).env("GALATEA_CACHE", "off");
        let output = child.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned());
        assert!(output.status.success(), "{out}{err}");
        out.trim_end().to_owned()
    };
    let graph = of_n(shipped::program);
    let untuned = graph.package().records("").to_bytes().unwrap();
    assert!(elsewhere(&untuned).starts_with("1 tunings"));
    // Tunes here, also for a type that the package does not use.
    let session = Session::new(of_n(shipped::program), &device).unwrap();
    let here = observed(&session, &device).replace("1 tunings", "0 tunings");
    shipped::program(&device.tensor(&[1.0f64; 1001]).unwrap().into()).unwrap();
    let tuned = graph.package().to_bytes().unwrap();
    assert_eq!(tuned, graph.package().to_bytes().unwrap(), "equal results give equal bytes");
    assert_eq!(elsewhere(&tuned), here);
    // The texts are files of records: what they choose is what runs.
    let package = Package::from_bytes(tuned.clone()).unwrap();
    let text = String::from_utf8(package.entry("kernels/0-add_shipped.tuning.json").unwrap().to_vec()).unwrap();
    let records = Records::parse(&text).unwrap();
    assert_eq!(records.iter().filter(|record| record.of.device == device.name()).count(), 1, "{text}");
    assert_eq!(graph.package().records(&text).to_bytes().unwrap(), tuned);
    let other = records.iter().cloned().map(|record| Record { chosen: 0, ..record }).collect::<Records>().to_string();
    assert_eq!(elsewhere(&graph.package().records(&other).to_bytes().unwrap()), "0 tunings, grids [501]");
    // A package that is written again keeps its results.
    let again = package.plan(&Device::cpu()).unwrap();
    assert_eq!(elsewhere(&PackageWriter::new(&again).records("").to_bytes().unwrap()), here);
    // Committed records replace others, so these stay out.
    let records = format!("\"records\": [[\"team.json\", {}]], \"rep\":", serde_json::Value::from(&*text));
    let committed = crate::packages::changed(&package, "plan.json", &|text| text.replacen("\"rep\":", &records, 1));
    let committed = Package::from_bytes(committed).unwrap().plan(&Device::cpu()).unwrap();
    let committed = PackageWriter::new(&committed).records(&other).to_bytes().unwrap();
    assert!(Package::from_bytes(committed.clone()).unwrap().entry("kernels/0-add_shipped.tuning.json").is_err());
    assert_eq!(elsewhere(&committed), here);
    let wrong = graph.package().records("{}").to_bytes().unwrap_err().to_string();
    assert!(wrong.starts_with("these are no records of tuning: ") && wrong.contains("\nhelp: "), "{wrong}");
}

pub(crate) fn a_session_tunes_in_front_of_its_capture(device: Device) {
    fn twice(x: &Tensor) -> Result<Tensor> {
        captured::program(&captured::program(x)?)
    }
    // A run that a profile records is no launch of a graph.
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let session = Session::new(of_n(twice), &device).unwrap();
    // 4000 elements are another class of the number of programs than 7 on a small GPU, or the same.
    for len in [7, 7, 9, 4000, 4000] {
        let x = numbers(&device, len);
        let expected: Vec<u32> = x.to_vec::<f32>().unwrap().into_iter().map(|x| (x + x + x + x).to_bits()).collect();
        assert_eq!(bits(&session.run([&x]).unwrap()[0]), expected, "{len} elements on {device:?}");
        assert_eq!(session.is_replayed(), device.is_cuda());
    }
}

#[autotune(configs = [Config { BLOCK: 64 }, Config { BLOCK: 128 }], key = [bucket(n, 256)], prune = |config| config.BLOCK > n.max(64))]
#[kernel]
fn pruned<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at, mask = at < n) * 3.0, mask = at < n);
}

fn prune(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    pruned::<Any>(x, &mut y, &n).grid(|config| n.cdiv(config.BLOCK as i64)).launch()?;
    Ok(y)
}

/// A capture that meets a kernel to be tuned must not leave the graph that it changes with the launches in front of that kernel.
pub(crate) fn a_capture_that_cannot_tune_changes_no_graph(device: Device) {
    fn body(x: &Tensor) -> Result<Tensor> {
        prune(&crate::kernels::silu(x)?)
    }
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let (session, mut outputs) = (Session::new(of_n(body), &device).unwrap(), vec![numbers(&device, 300)]);
    let inputs: Vec<Tensor> = (1..=16).map(|len| numbers(&device, len)).collect();
    let mut other = numbers(&device, 300);
    crate::kernels::scale(&mut other, 0.5, 1).unwrap();
    // As many dims as graphs, so that the next one changes a graph. It has a tuning key of its own.
    for x in inputs.iter().chain([&other]).chain(&inputs) {
        session.run_into([x], &mut outputs).unwrap();
        assert_eq!(bits(&outputs[0]), bits(&body(x).unwrap()), "{:?} on {device:?}", x.dims());
    }
    assert_eq!(session.is_replayed(), device.is_cuda());
}

/// Adds up: its result tells how often it ran on the same tensors.
#[autotune(configs = [Config { BLOCK: 64 }, Config { BLOCK: 128 }], key = [n], restore_value = [y], reset_to_zero = [z])]
#[kernel]
fn accumulate<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, z: PtrMut<f32>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(x + at, mask = at < n);
    store(y + at, load(y + at, mask = at < n) + v, mask = at < n);
    store(z + at, load(z + at, mask = at < n) + v, mask = at < n);
}

fn accumulated(x: &Tensor) -> Result<Tensor> {
    let (n, mut y, mut z) = (x.numel(), x.clone(), x.zeros_like()?);
    accumulate(x, &mut y, &mut z, &n).grid(|config| n.cdiv(config.BLOCK as i64)).launch()?;
    accumulate(&y, &mut z, &mut y.zeros_like()?, &n).grid(|config| n.cdiv(config.BLOCK as i64)).launch()?;
    Ok(z)
}

#[autotune(
    configs = [Config { BLOCK: 128 }, Config { BLOCK: 64 }],
    key = [n],
    prune = top_k(1, |config| config.BLOCK as f64 / n as f64),
    verify(cpu, rtol = 1e-3),
)]
#[kernel(heuristics(EVEN = n.is_multiple_of(BLOCK)))]
fn guessed<const BLOCK: usize, const EVEN: bool>(x: Ptr<f32>, y: PtrMut<f32>, rows: usize, n: usize) {
    for row in range(program_id(0), rows, num_programs(0)) {
        for first in range(0, n, BLOCK) {
            let at = first + arange(0, BLOCK);
            let mask = if EVEN { at >= 0 } else { at < n };
            store(y + row * n + at, load(x + row * n + at, mask = mask) + 1.0, mask = mask);
        }
    }
}

fn guess(x: &Tensor) -> Result<Tensor> {
    let mut y = x.empty_like()?;
    guessed(x, &mut y, x.dim(0), x.dim(1)).grid(|_| x.dim(0).cdiv(2)).launch()?;
    Ok(y)
}

pub(crate) fn fields_of_autotune_are_those_of_the_function(device: Device) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let programs = [
        (prune as fn(&Tensor) -> Result<Tensor>, of_n(prune), [vec![1usize], vec![40], vec![2000]]),
        (accumulated, of_n(accumulated), [vec![1], vec![100], vec![300]]),
        (guess, of_rows(guess, 200), [vec![1, 200], vec![6, 200], vec![7, 200]]),
        (guess, of_rows(guess, 256), [vec![1, 256], vec![6, 256], vec![7, 256]]),
    ];
    for (of, (body, graph, extents)) in programs.into_iter().enumerate() {
        let session = Session::new(graph, &device).unwrap();
        for (number, extents) in extents.into_iter().enumerate() {
            let x = numbers(&device, extents.iter().product()).reshape(&extents[..]).unwrap();
            // With numbers in place of dims, what `prune` leaves is known, and a package can hold it.
            let fixed = export(|[x]| body(x), [input("x", &extents[..], Dtype::F32)]).unwrap();
            let package = packed(&fixed, &device);
            let by_session = || session.run([&x]).unwrap().remove(0);
            let by_package = || package.run([&x]).unwrap().remove(0);
            let by_function = || body(&x).unwrap();
            // Each form is the first one for some keys, and tunes. The package is the first one for 300 elements, and for rows of 200.
            let forms: [&dyn Fn() -> Tensor; 3] = match (number + 2 * of) % 3 {
                0 => [&by_session, &by_function, &by_package],
                1 => [&by_package, &by_session, &by_function],
                _ => [&by_function, &by_package, &by_session],
            };
            let expected = bits(&forms[0]());
            let profile = Profile::start();
            for form in forms {
                assert_eq!(bits(&form()), expected, "{extents:?} on {device:?}");
            }
            let trace = profile.finish();
            let own = |name: &str| ["tune pruned", "tune accumulate", "tune guessed"].contains(&name);
            assert!(!trace.spans().iter().any(|span| own(&span.name)), "{extents:?} on {device:?}: the forms have the same keys");
        }
    }
    // The package has tuned this key, with the costs of the function.
    let (x, mut y) = (numbers(&device, 1200), numbers(&device, 1200));
    let report = guessed(&x, &mut y, 6, 200).grid(|_| 3).report().unwrap();
    let outcomes = report.trials.iter().map(|trial| matches!(trial.outcome, Outcome::Pruned)).collect::<Vec<_>>();
    assert_eq!(outcomes, [!device.is_cpu(), false], "{report}");
}

fn of_rows(body: fn(&Tensor) -> Result<Tensor>, columns: usize) -> Graph {
    export(|[x]| body(x), [input("x", [&Dim::new("rows", 1..=50), &columns.into()], Dtype::F32)]).unwrap()
}

pub(crate) fn the_text_has_the_first_grid_and_the_number_of_configurations() {
    assert_eq!(
        of_n(repeated::program).text(Level::Kernels),
        "graph graph(x: f32[n]) where n in 1..=4096
  %0 = alloc : f32[n]
  %1 = launch add<T = f32, BLOCK_SIZE = 2> [cdiv(n, 2), 1, 1] of 4 configurations (x = %x, y = %x, out = %0, n = n) : f32[n]
  return %1
"
    );
    // Heuristics have one configuration, or as many as `configs`.
    assert!(of_rows(guess, 200).to_string().contains("guessed<BLOCK = 128, EVEN = 0> [cdiv(rows, 2), 1, 1] of 2 configurations ("));
    assert!(of_rows(guess, 256).to_string().contains("guessed<BLOCK = 128, EVEN = 1>"));
}

/// Equal launches are one if the grids of all configurations are equal.
pub(crate) fn equal_launches_with_configurations_are_one() {
    fn both(x: &Tensor, second: fn(Dim, usize) -> Dim) -> Result<[Tensor; 2]> {
        let (n, mut a, mut b) = (x.numel(), x.empty_like()?, x.empty_like()?);
        repeated::add::<Any>(x, x, &mut a, &n).grid(|config| n.cdiv(config.BLOCK_SIZE as i64)).launch()?;
        repeated::add::<Any>(x, x, &mut b, &n).grid(|config| second(n.clone(), config.BLOCK_SIZE)).launch()?;
        Ok([crate::kernels::silu(&a)?, crate::kernels::row_sums(&b.reshape([n, 1.into()])?)?])
    }
    let launches = |second: fn(Dim, usize) -> Dim| {
        let n = Dim::new("n", 1..=4096);
        let graph = export(|[x]| both(x, second), [input("x", [&n], Dtype::F32)]).unwrap();
        graph.to_string().matches("launch add").count()
    };
    assert_eq!(launches(|n, block| n.cdiv(block as i64)), 1);
    assert_eq!(launches(|n, block| if block == 64 { n } else { n.cdiv(block as i64) }), 2);
}

#[autotune(configs = [Config { BLOCK: 64 }, Config { BLOCK: 128 }], key = [n], pre_hook = |_| ())]
#[kernel]
fn hooked<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at, mask = at < n), mask = at < n);
}

fn hook(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    hooked(x, &mut y, &n).grid(|config| n.cdiv(config.BLOCK as i64)).launch()?;
    Ok(y)
}

pub(crate) fn fields_that_cannot_be_recorded_or_packed_are_named() {
    let refused = |graph: Graph| match graph.package().to_bytes() {
        Err(error @ PackageError::NotPacked { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    let error = refused(of_n(prune));
    assert!(
        error.starts_with("kernel `pruned` cannot be packed: `prune` depends on `n`, which has no value before a run (recorded in "),
        "{error}"
    );
    assert!(error.contains("tuned.rs:") && error.contains("\nhelp: record with a number in place of the dim"), "{error}");
    let error = refused(of_n(hook));
    assert!(error.starts_with("kernel `hooked` cannot be packed: `pre_hook` is a function of this program (recorded in "), "{error}");
    assert!(error.contains("\nhelp: leave the field out of `#[autotune]`, or run the graph in this program"), "{error}");

    let recorded = |body: fn(&Tensor) -> Result<Tensor>, columns: Dim| {
        export(|[x]| body(x), [input("x", [Dim::new("rows", 1..=50), columns], Dtype::F32)]).unwrap_err().to_string()
    };
    let error = recorded(guess, Dim::new("columns", 1..=512));
    let expected = "kernel `guessed` cannot be recorded: its `heuristics` depend on `n`, which has no value while the program is recorded\n\
                    help: pass a number, or choose the constants and the schedule in `configs`";
    assert!(error.contains(expected), "{error}");
    let report = |x: &Tensor| {
        let mut y = x.empty_like()?;
        hooked(x, &mut y, 64).grid(|_| 1).report().map(|_| y)
    };
    let error = recorded(report, 64.into());
    assert!(error.contains("kernel `hooked` cannot be recorded: `report` and `launch_with` need tensors with elements"), "{error}");
}

/// What a package says of configurations is not believed.
pub(crate) fn damaged_configurations_are_errors() {
    let package = Package::from_bytes(of_n(repeated::program).package().to_bytes().unwrap()).unwrap();
    for (from, to, expected) in [
        ("\"num_warps\": 8", "\"num_warps\": 7", "a configuration has a schedule that is not possible"),
        ("\"num_stages\": 4", "\"num_stages\": 0", "a configuration has a schedule that is not possible"),
        ("\"0x100\"", "\"0x100\", \"0x1\"", "a configuration has other types than its launch"),
        ("\"cdiv(n, 256)\"", "\"cdiv(m, 256)\"", "`m`, which is not declared"),
        ("\"words\": []", "\"words\": [{ \"word\": 4096 }]", "its tuner is damaged"),
        ("\"warmup\": 5", "\"warmup\": -5", "`warmup` is no number"),
    ] {
        let changed = crate::packages::changed(&package, "plan.json", &|text| text.replacen(from, to, 1));
        let error = Package::from_bytes(changed).unwrap().load(&Device::cpu()).expect_err(from).to_string();
        assert!(error.contains(expected), "{from} -> {to}: {error}");
    }
}
