//! Every work of the gallery on the CPU, on a simulated GPU, and on the first GPU, against its reference in f64.
//!
//! A work with an element type is one trial on each device: `cpu::bias_relu_f32`, `sim::bias_relu_f32`, `cuda::bias_relu_f32`. Inputs are fresh in every
//! run; a failure prints its seed, and `GALATEA_SEED` sets it.

#[path = "../../../../tests/devices/mod.rs"]
mod devices;
#[path = "../../../../tests/lab/random.rs"]
mod random;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use galatea::{Device, Dtype, Replay};
use galatea_gallery::work::{Case, Fill, Host, Run};
use galatea_gallery::{WORKS, Work};
use libtest_mimic::{Arguments, Failed, Trial};
use values::with_type;

/// A device and a source of random numbers.
pub(crate) struct Lab {
    device: Device,
    state: u64,
}

fn main() {
    let arguments = Arguments::from_args();
    let seed = seed();
    let columns = devices::columns(seed);
    let mut trials = Vec::new();
    for work in WORKS {
        for &dtype in work.dtypes {
            let name = format!("{}_{dtype}", work.name);
            // The older simulated GPU runs the same code but for clusters, which no work has.
            let columns = columns.iter().filter(|column| !column.is_older_target());
            trials.extend(columns.map(|column| column.trial(&name, move |device| run(work, dtype, device, seed))));
        }
    }
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    // A bundle has no pages.
    let page = std::fs::read_to_string(sources.join("../../docs/gallery.md")).ok();
    let is_missing = page.is_none();
    let listed =
        Trial::test("every_work_is_on_the_page_and_in_triton", move || is_listed(&page.unwrap_or_default(), &sources.join("peers")));
    trials.push(if is_missing { listed.with_ignored_flag(true).with_kind("skipped: no sources") } else { listed });
    libtest_mimic::run(&arguments, trials).exit();
}

/// Fails if a work has no row on the page of the gallery, or no function in `peers/`.
fn is_listed(page: &str, peers: &Path) -> Result<(), Failed> {
    let mut scripts = String::new();
    for entry in std::fs::read_dir(peers)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "py") {
            scripts.push_str(&std::fs::read_to_string(path)?);
        }
    }
    for Work { name, .. } in WORKS {
        if !page.contains(&format!("| `{name}` |")) {
            return Err(format!("`{name}` has no row in docs/gallery.md").into());
        }
        if !scripts.contains(&format!("\ndef {name}(dtype")) {
            return Err(format!("`{name}` has no function in benches/gallery/peers").into());
        }
    }
    Ok(())
}

/// The seed in `GALATEA_SEED`, else one from the clock.
fn seed() -> u64 {
    match std::env::var("GALATEA_SEED") {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("GALATEA_SEED is a number, not `{text}`")),
        Err(_) => std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.as_nanos() as u64),
    }
}

fn run(work: &'static Work, dtype: Dtype, device: Device, seed: u64) -> Result<(), Failed> {
    for sizes in work.test_sizes {
        let test = || check(work, dtype, Lab::new(device, seed, work.name), sizes);
        catch_unwind(AssertUnwindSafe(test)).map_err(|panic| {
            let text = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            format!("{sizes:?}, GALATEA_SEED={seed}: {}", text.unwrap_or_default())
        })?;
    }
    Ok(())
}

/// The error of one rounding to a type, relative to the largest result.
fn rounding(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F32 => 1e-6,
        Dtype::F16 => 5e-4,
        Dtype::Bf16 => 4e-3,
        _ => 0.0,
    }
}

fn check(work: &Work, dtype: Dtype, mut lab: Lab, sizes: &[usize]) {
    let (mut host, mut case) = (Host::default(), Case::default());
    let rows = (work.tensors)(sizes);
    for row in &rows {
        let ty = row.dtype.unwrap_or(dtype);
        let numbers: Vec<f64> = match &row.fill {
            Fill::Poison | Fill::Scratch => vec![values::poison(ty); row.len],
            &Fill::Between(low, high) => (0..row.len).map(|_| lab.between(low, high)).collect(),
            &Fill::Below(limit) => (0..row.len).map(|_| lab.below(limit) as f64).collect(),
            Fill::These(numbers) => numbers.clone(),
            Fill::Addresses(of, starts) => {
                case.add_addresses(lab.device, row.name, of, starts).unwrap();
                continue;
            }
        };
        let rounded = with_type!(ty, T, {
            let elements: Vec<T> = numbers.into_iter().map(values::Value::near).collect();
            case.add(row.name, Box::new(lab.device.tensor(&elements).unwrap()));
            elements.into_iter().map(values::Value::wide).collect()
        });
        host.0.insert(row.name, rounded);
    }
    // As the benchmark does: tuned, then captured and replayed, with the outputs as they were.
    (work.launch)(dtype, &case, sizes, &mut Run::Launch).unwrap();
    for row in rows.iter().filter(|row| row.is_output) {
        with_type!(row.dtype.unwrap_or(dtype), T, {
            let elements: Vec<T> = host[row.name].iter().map(|&number| values::Value::near(number)).collect();
            case.write::<T>(row.name).copy_from_slice(&elements).unwrap();
        });
    }
    let mut replay = Replay::capture(lab.device.stream(), || (work.launch)(dtype, &case, sizes, &mut Run::Launch)).unwrap();
    replay.launch(&mut case).unwrap();

    let references = (work.reference)(sizes, &host);
    for row in rows.iter().filter(|row| row.is_output) {
        let (_, want) = references.iter().find(|(name, _)| *name == row.name).unwrap_or_else(|| panic!("`{}` has a reference", row.name));
        let ty = row.dtype.unwrap_or(dtype);
        let got: Vec<f64> = with_type!(ty, T, case.read::<T>(row.name).to_vec().unwrap().into_iter().map(values::Value::wide).collect());
        assert_eq!(got.len(), want.len(), "`{}` has as many elements as its reference", row.name);
        let largest = want.iter().fold(1.0, |largest: f64, value| largest.max(value.abs()));
        let allowed = row.within.unwrap_or(work.tolerance * rounding(ty) * largest);
        for (i, (got, want)) in got.iter().zip(want).enumerate() {
            // NaN and infinities are equal to themselves.
            let is_right = (got - want).abs() <= allowed || got == want || (got.is_nan() && want.is_nan());
            assert!(is_right, "`{}`: element {i} is {got:e}, not {want:e}, allowed is {allowed:e}", row.name);
        }
    }
}
