//! The quality and the speed of tuning: the library's kernels at sizes of models, tuned anew in several processes.
//!
//! ```sh
//! cargo bench -p galatea-benches --bench tuning
//! ```
//!
//! The time of a configuration is the median over all processes of its median in each. A choice is right if it is within 2% of the fastest one.
//! A kernel of eleven configurations is measured by itself: the time of its tuning, and that a process which finds the record on disk tunes nothing.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Debug;
use std::process::Command;

use galatea::prelude::*;
use galatea::tune::{Origin, Outcome, Report};
use kernel_library::kernels;
use serde_json::{Value, json};

#[autotune(
    configs = [
        Config { BLOCK_SIZE: 256, num_warps: 1 },
        Config { BLOCK_SIZE: 512, num_warps: 1 },
        Config { BLOCK_SIZE: 512, num_warps: 2 },
        Config { BLOCK_SIZE: 512, num_warps: 4 },
        Config { BLOCK_SIZE: 1024, num_warps: 2 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 1024, num_warps: 8 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, num_warps: 8 },
        Config { BLOCK_SIZE: 4096, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
    ],
    key = [n],
)]
#[kernel]
fn eleven<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let sum = load(x + offsets, mask = mask) + load(y + offsets, mask = mask);
    store(out + offsets, sum, mask = mask);
}

const TUNE: &str = "--tune";
const ELEVEN: &str = "--eleven";
const PROCESSES: usize = 5;
/// A choice that takes at most that much longer than the best is right.
const TOLERANCE: f64 = 1.02;

fn main() -> Result<(), Box<dyn Error>> {
    if Device::cuda_count() == 0 {
        println!("skipped: there is no CUDA device");
        return Ok(());
    }
    let device = Device::cuda(0)?;
    if std::env::args().any(|word| word == TUNE) {
        return tune(&device);
    }
    if std::env::args().any(|word| word == ELEVEN) {
        return tune_eleven(&device);
    }
    let folder = tempfile::tempdir()?;
    for what in ["tuned", "known from disk", "known from disk"] {
        let child = Command::new(std::env::current_exe()?).arg(ELEVEN).env("GALATEA_CACHE", folder.path()).output()?;
        print!("11 configurations, {what}: {}{}", String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    }

    let mut runs = Vec::new();
    for _ in 0..PROCESSES {
        let child = Command::new(std::env::current_exe()?).arg(TUNE).env("GALATEA_CACHE", "off").output()?;
        if !child.status.success() {
            return Err(String::from_utf8_lossy(&child.stderr).into());
        }
        let text = String::from_utf8(child.stdout)?;
        runs.push(text.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?);
    }
    let (mut right, mut all) = (0, 0);
    for pair in 0..runs[0].len() {
        let of_pair: Vec<&Value> = runs.iter().map(|run| &run[pair]).collect();
        let (times, what) = (times(&of_pair), of_pair[0]["what"].as_str().unwrap_or(""));
        if times.is_empty() {
            println!("{what:<44} one configuration is left: nothing is timed");
            continue;
        }
        let best = times.values().copied().fold(f64::INFINITY, f64::min);
        let chosen: Vec<f64> = of_pair.iter().filter_map(|run| times.get(run["chosen"].as_str()?).map(|time| time / best)).collect();
        all += chosen.len();
        right += chosen.iter().filter(|ratio| **ratio <= TOLERANCE).count();
        let worst = chosen.iter().copied().fold(1.0, f64::max);
        let took: Vec<u64> = of_pair.iter().filter_map(|run| run["took_ms"].as_u64()).collect();
        println!("{what:<44} best {best:8.1} us, worst choice {:.1}% slower; tuned in {took:?} ms", (worst - 1.0) * 100.0);
    }
    println!(
        "{right} of {all} choices are within {:.0}% of the best: {:.1}%",
        (TOLERANCE - 1.0) * 100.0,
        right as f64 * 100.0 / all as f64
    );
    Ok(())
}

/// For each configuration the median over processes of its median time.
fn times(of_pair: &[&Value]) -> BTreeMap<String, f64> {
    let mut times: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for trial in of_pair.iter().filter_map(|run| run["trials"].as_array()).flatten() {
        if let (Some(config), Some(time)) = (trial[0].as_str(), trial[1].as_f64()) {
            times.entry(config.to_owned()).or_default().push(time);
        }
    }
    let median = |mut list: Vec<f64>| {
        list.sort_by(f64::total_cmp);
        list[list.len() / 2]
    };
    times.into_iter().map(|(config, list)| (config, median(list))).collect()
}

fn tune_eleven(device: &Device) -> Result<(), Box<dyn Error>> {
    let n = 1 << 25;
    let (x, y, mut out) = (device.full(n, 1.0f32)?, device.full(n, 2.0f32)?, device.zeros::<f32>(n)?);
    let report = eleven(&x, &y, &mut out, n).grid(|config| cdiv(n, config.BLOCK_SIZE)).report()?;
    let runs: usize =
        report.trials.iter().map(|trial| if let Outcome::Measured { samples, .. } = trial.outcome { samples } else { 0 }).sum();
    let (took, tuned) = (report.took, report.origin == Origin::Timed);
    println!("{took:.1?}, {} timed launches", if tuned { runs } else { 0 });
    Ok(())
}

/// Tunes each kernel at each size, and tells what came of it, a line each.
fn tune(device: &Device) -> Result<(), Box<dyn Error>> {
    for (rows, columns) in [(8192, 512), (8192, 781), (4096, 1024), (8192, 4096), (4096, 8192), (4096, 12672), (2048, 32768), (1024, 65536)]
    {
        let shape = format!("{rows}x{columns}");
        let halves = device.tensor(&noise(rows * columns).map(f16::from_f32).collect::<Vec<_>>())?;
        let singles = device.tensor(&noise(rows * columns).collect::<Vec<_>>())?;
        let weight = device.tensor(&noise(columns).map(f16::from_f32).collect::<Vec<_>>())?;
        let (mut y, mut z) = (device.empty_like(&halves)?, device.empty_like(&singles)?);
        let [mut mean, mut rstd, mut sums] = [device.zeros::<f32>(rows)?, device.full(rows, 0.5f32)?, device.zeros::<f32>(rows)?];
        let mut indices = device.zeros::<i64>(rows)?;
        print_report("softmax f16", &shape, &*kernels::softmax(&halves, &mut y, columns).grid(|_| rows).report()?);
        print_report("softmax f32", &shape, &*kernels::softmax(&singles, &mut z, columns).grid(|_| rows).report()?);
        print_report("row_sum f32", &shape, &*kernels::row_sum(&singles, &mut sums, columns).grid(|_| rows).report()?);
        print_report("row_max f32", &shape, &*kernels::row_max(&singles, &mut sums, columns).grid(|_| rows).report()?);
        print_report("row_argmax f32", &shape, &*kernels::row_argmax(&singles, &mut indices, columns).grid(|_| rows).report()?);
        print_report("row_cumsum f32", &shape, &*kernels::row_cumsum(&singles, &mut z, columns).grid(|_| rows).report()?);
        let mut losses = device.zeros::<f32>(rows)?;
        let loss = kernels::cross_entropy(&halves, &indices, &mut losses, &mut sums, columns, -100);
        print_report("cross_entropy f16", &shape, &*loss.grid(|_| rows).report()?);
        if columns <= 32_768 {
            let norm = kernels::layer_norm(&halves, &weight, &weight, &mut y, &mut mean, &mut rstd, rows, columns, 1e-5);
            print_report("layer_norm f16", &shape, &*norm.grid(|config| cdiv(rows, config.ROWS)).report()?);
            let norm = kernels::rms_norm(&halves, &weight, &mut y, &mut rstd, rows, columns, 1e-5);
            print_report("rms_norm f16", &shape, &*norm.grid(|config| cdiv(rows, config.ROWS)).report()?);
        }
        if columns <= 8192 {
            let mut parts = device.empty::<f32>(132 * 2 * columns)?;
            let norm = kernels::layer_norm_backward(&halves, &halves, &weight, &mean, &rstd, &mut y, &mut parts, rows, columns);
            print_report("layer_norm_backward f16", &shape, &*norm.grid(|_| 132).report()?);
        }
        let turned = kernels::transpose(&singles, &mut z, rows, columns);
        print_report("transpose f32", &shape, &*turned.grid(|config| (cdiv(rows, config.ROWS), cdiv(columns, config.COLUMNS))).report()?);
    }
    for n in [1 << 16, 1 << 20, (1 << 22) + 3, 1 << 25] {
        let shape = format!("{n}");
        let x = device.tensor(&noise(n).map(bf16::from_f32).collect::<Vec<_>>())?;
        let mut y = device.empty_like(&x)?;
        print_report("swiglu bf16", &shape, &*kernels::swiglu(&x, &x, &mut y, n).grid(|config| cdiv(n, config.BLOCK_SIZE)).report()?);
        print_report("geglu bf16", &shape, &*kernels::geglu(&x, &x, &mut y, n).grid(|config| cdiv(n, config.BLOCK_SIZE)).report()?);
        print_report("dropout bf16", &shape, &*kernels::dropout(&x, &mut y, n, 0.1, 7).grid(|config| cdiv(n, config.BLOCK_SIZE)).report()?);
    }
    Ok(())
}

fn print_report<C: Debug>(what: &str, shape: &str, report: &Report<C>) {
    let name = |config: &C| format!("{config:?}");
    let trials: Vec<Value> = report
        .trials
        .iter()
        .filter_map(|trial| match trial.outcome {
            Outcome::Measured { median_us, .. } => Some(json!([name(&trial.config), median_us])),
            _ => None,
        })
        .collect();
    let chosen = report.trials.iter().find(|trial| trial.chosen).map(|trial| name(&trial.config));
    let took = u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX);
    println!("{}", json!({ "what": format!("{what} {shape}"), "chosen": chosen, "took_ms": took, "trials": trials }));
}

/// Numbers between -3 and 3 without structure: xorshift*.
fn noise(len: usize) -> impl Iterator<Item = f32> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    std::iter::repeat_with(move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        ((state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 40) as f32 / (1 << 24) as f32 - 0.5) * 6.0
    })
    .take(len)
}
