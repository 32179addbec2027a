//! Our kernels beside Triton's and torch's, in one run, by one method.
//!
//! Each work is timed in rounds: ours, then the peers (`peers.py`, a child process on the same GPU), so that all see the same clocks. A
//! time is the median over rounds of the median of event-timed launches, the L2 cache flushed before each.
//!
//! ```sh
//! cargo bench --bench against_peers -- --out results.json     # where python3 has torch and triton
//! cargo xtask bench-report results.json                       # writes docs/benchmarks.*
//! ```

mod peers;

use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;

use galatea::bench::do_bench;
use galatea::prelude::*;
use kernel_library::kernels;
use peers::Peers;
use serde_json::{Value, json};

const ROUNDS: usize = 5;

#[autotune(
    configs = [
        Config { BLOCK_SIZE: 512, num_warps: 4 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 1024, num_warps: 8 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
    ],
    key = [n],
)]
#[kernel]
fn vector_add<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let sum = load(x + offsets, mask = mask) + load(y + offsets, mask = mask);
    store(out + offsets, sum, mask = mask);
}

#[autotune(
    configs = [
        Config { BLOCK_SIZE: 1024, num_warps: 2 },
        Config { BLOCK_SIZE: 1024, num_warps: 4 },
        Config { BLOCK_SIZE: 2048, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 4 },
        Config { BLOCK_SIZE: 4096, num_warps: 8 },
        Config { BLOCK_SIZE: 8192, num_warps: 8 },
    ],
    key = [n],
)]
#[kernel]
fn silu<const BLOCK_SIZE: usize>(x: Ptr<bf16>, y: PtrMut<bf16>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    // Half of the traffic is writes, and they leave the L2 sooner, in longer runs, if the input is to stay.
    let v = load(x + offsets, mask = mask, evict = "evict_last") as f32;
    store(y + offsets, (v * sigmoid(v)) as bf16, mask = mask);
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let (mut out, mut only) = (None, String::new());
    while let Some(word) = words.next() {
        match word.as_str() {
            "--out" => out = Some(PathBuf::from(words.next().ok_or("`--out` needs a file")?)),
            "--only" => only = words.next().ok_or("`--only` needs a part of a work's name")?,
            _ => return Err(format!("unknown argument `{word}`\nhelp: there are `--out FILE` and `--only WORK`").into()),
        }
    }
    if Device::cuda_count() == 0 {
        println!("skipped: there is no CUDA device");
        return Ok(());
    }
    let device = Device::cuda(0)?;
    let mut peers = Peers::start()?;
    let versions = peers.ask("versions")?;
    let text = |name: &str| versions[name].as_str().unwrap_or("unknown").to_string();

    let mut rows = Vec::new();
    for (work, row) in works() {
        if work.contains(&only) {
            rows.push(row(&device, &mut peers)?);
        }
    }

    let run = json!({
        "date": today(),
        "gpu": text("gpu"),
        "driver": text("driver"),
        "versions": { "galatea": env!("CARGO_PKG_VERSION"), "torch": text("torch"), "triton": text("triton") },
        "command": "cargo bench --bench against_peers",
        "rows": rows,
    });
    if let Some(out) = out {
        std::fs::write(&out, serde_json::to_string_pretty(&run)?)?;
    }
    Ok(())
}

fn vector_add_row(device: &Device, peers: &mut Peers, shape: &str, len: usize) -> Result<Value, Box<dyn Error>> {
    let data = values(len);
    let (x, y) = (device.tensor(&data)?, device.tensor(&data)?);
    let mut out = device.empty::<f32>(len)?;
    let mut launch = || vector_add(&x, &y, &mut out, len).grid(|config| cdiv(len, config.BLOCK_SIZE)).launch();
    launch()?;
    let row = measure(device, peers, ("vector_add f32", shape, &len.to_string(), 3 * size_of::<f32>() * len), &mut launch)?;
    print!("{}", vector_add(&x, &y, &mut out, len).grid(|config| cdiv(len, config.BLOCK_SIZE)).report()?);
    let wrong = out.to_vec()?.iter().zip(&data).position(|(got, x)| *got != x + x);
    wrong.map_or(Ok(row), |index| Err(format!("vector_add is wrong at {index}").into()))
}

fn silu_row(device: &Device, peers: &mut Peers, shape: &str, len: usize) -> Result<Value, Box<dyn Error>> {
    let data: Vec<bf16> = values(len).into_iter().map(bf16::from_f32).collect();
    let x = device.tensor(&data)?;
    let mut y = device.empty_like(&x)?;
    let mut launch = || silu(&x, &mut y, len).grid(|config| cdiv(len, config.BLOCK_SIZE)).launch();
    launch()?;
    let row = measure(device, peers, ("silu bf16", shape, &len.to_string(), 2 * size_of::<bf16>() * len), &mut launch)?;
    print!("{}", silu(&x, &mut y, len).grid(|config| cdiv(len, config.BLOCK_SIZE)).report()?);
    let is_wrong = |(got, x): (&bf16, &bf16)| {
        let (got, x) = (f64::from(*got), f64::from(*x));
        let want = x / (1.0 + (-x).exp());
        (got - want).abs() > 4e-3 * want.abs().max(1e-2)
    };
    let wrong = y.to_vec()?.iter().zip(&data).position(is_wrong);
    wrong.map_or(Ok(row), |index| Err(format!("silu is wrong at {index}").into()))
}

type Row = Box<dyn Fn(&Device, &mut Peers) -> Result<Value, Box<dyn Error>>>;

/// What is timed, by name, in the order of the table.
fn works() -> Vec<(&'static str, Row)> {
    fn row(run: impl Fn(&Device, &mut Peers) -> Result<Value, Box<dyn Error>> + 'static) -> Row {
        Box::new(run)
    }
    let mut works = vec![
        ("vector_add f32", row(|device, peers| vector_add_row(device, peers, "2^27", 1 << 27))),
        ("vector_add f32", row(|device, peers| vector_add_row(device, peers, "2^27+3", (1 << 27) + 3))),
        ("silu bf16", row(|device, peers| silu_row(device, peers, "2^28", 1 << 28))),
        ("softmax bf16", row(|device, peers| softmax_row(device, peers, bf16::from_f32, 8192, 4096))),
    ];
    for (rows, columns) in [(4096, 12_672), (8192, 781), (2048, 65_536), (512, 262_144)] {
        works.push(("softmax f32", row(move |device, peers| softmax_row(device, peers, f32::from, rows, columns))));
    }
    for (rows, columns) in [(4096, 8192), (8192, 4096), (4096, 1024)] {
        works.push(("layer_norm f16", row(move |device, peers| layer_norm_row(device, peers, rows, columns))));
    }
    for (rows, columns) in [(4096, 8192), (8192, 4096), (4096, 1024)] {
        works.push(("rms_norm f16", row(move |device, peers| rms_norm_row(device, peers, rows, columns))));
    }
    works.push(("row_sum f32", row(|device, peers| row_sum_row(device, peers, 4096, 8192))));
    for (rows, columns) in [(4096, 8192), (8192, 4096), (4096, 1024)] {
        works.push(("layer_norm_backward f16", row(move |device, peers| layer_norm_backward_row(device, peers, rows, columns))));
    }
    for (rows, classes) in [(8192, 32_000), (4096, 128_256)] {
        works.push(("cross_entropy bf16", row(move |device, peers| cross_entropy_row(device, peers, rows, classes))));
        works.push(("cross_entropy_backward bf16", row(move |device, peers| cross_entropy_backward_row(device, peers, rows, classes))));
    }
    works.push(("transpose f32", row(|device, peers| transpose_row(device, peers, f32::from, 8192, 8192))));
    works.push(("transpose f16", row(|device, peers| transpose_row(device, peers, f16::from_f32, 8192, 8192))));
    works.push(("transpose f32", row(|device, peers| transpose_row(device, peers, f32::from, 5000, 7001))));
    works
}

/// What to do with a call.
#[derive(Clone, Copy)]
enum What {
    Launch,
    /// Print what tuning tried.
    Report,
}

macro_rules! run {
    ($what:ident, $call:expr) => {
        match $what {
            What::Launch => $call.launch(),
            What::Report => $call.report().map(|report| print!("{report}")),
        }
    };
}

fn softmax_row<T: Float>(
    device: &Device,
    peers: &mut Peers,
    from: fn(f32) -> T,
    rows: usize,
    columns: usize,
) -> Result<Value, Box<dyn Error>> {
    let x = device.tensor(&values(rows * columns).into_iter().map(from).collect::<Vec<_>>())?;
    let mut y = device.empty_like(&x)?;
    let mut launch = |what| run!(what, kernels::softmax(&x, &mut y, columns).grid(|_| rows));
    let work = format!("softmax {}", T::DTYPE);
    matrix_row(device, peers, &work, (rows, columns), 2 * size_of::<T>() * rows * columns, &mut launch)
}

fn layer_norm_row(device: &Device, peers: &mut Peers, rows: usize, columns: usize) -> Result<Value, Box<dyn Error>> {
    let halves = |len| values(len).into_iter().map(f16::from_f32).collect::<Vec<_>>();
    let (x, weight, bias) = (device.tensor(&halves(rows * columns))?, device.tensor(&halves(columns))?, device.tensor(&halves(columns))?);
    let (mut y, mut mean, mut rstd) = (device.empty_like(&x)?, device.empty::<f32>(rows)?, device.empty::<f32>(rows)?);
    let mut launch = |what| run!(what, kernels::layer_norm(&x, &weight, &bias, &mut y, &mut mean, &mut rstd, columns, 1e-5).grid(|_| rows));
    matrix_row(device, peers, "layer_norm f16", (rows, columns), 2 * size_of::<f16>() * rows * columns, &mut launch)
}

fn rms_norm_row(device: &Device, peers: &mut Peers, rows: usize, columns: usize) -> Result<Value, Box<dyn Error>> {
    let halves = |len| values(len).into_iter().map(f16::from_f32).collect::<Vec<_>>();
    let (x, weight) = (device.tensor(&halves(rows * columns))?, device.tensor(&halves(columns))?);
    let (mut y, mut rstd) = (device.empty_like(&x)?, device.empty::<f32>(rows)?);
    let mut launch = |what| run!(what, kernels::rms_norm(&x, &weight, &mut y, &mut rstd, columns, 1e-5).grid(|_| rows));
    matrix_row(device, peers, "rms_norm f16", (rows, columns), 2 * size_of::<f16>() * rows * columns, &mut launch)
}

fn row_sum_row(device: &Device, peers: &mut Peers, rows: usize, columns: usize) -> Result<Value, Box<dyn Error>> {
    let x = device.tensor(&values(rows * columns))?;
    let mut y = device.empty::<f32>(rows)?;
    let mut launch = |what| run!(what, kernels::row_sum(&x, &mut y, columns).grid(|_| rows));
    matrix_row(device, peers, "row_sum f32", (rows, columns), size_of::<f32>() * rows * (columns + 1), &mut launch)
}

fn layer_norm_backward_row(device: &Device, peers: &mut Peers, rows: usize, columns: usize) -> Result<Value, Box<dyn Error>> {
    let halves = |len| values(len).into_iter().map(f16::from_f32).collect::<Vec<_>>();
    let [x, dy] = [0, 1].map(|shift| device.tensor(&halves(rows * columns + shift)[shift..]));
    let (x, dy, weight) = (x?, dy?, device.tensor(&halves(columns))?);
    let [mean, rstd] = [0.0, 0.5].map(|value| device.tensor(&vec![value; rows]));
    let (mean, rstd) = (mean?, rstd?);
    let groups = 132;
    let mut parts = device.empty::<f32>(groups * 2 * columns)?;
    let (mut dx, mut both) = (device.empty_like(&x)?, device.empty::<f16>(2 * columns)?);
    let mut launch = |what| {
        let norm = kernels::layer_norm_backward(&dy, &x, &weight, &mean, &rstd, &mut dx, &mut parts, rows, columns);
        run!(what, norm.grid(|_| groups))?;
        let sum = kernels::column_sum(&parts, &mut both, groups, 2 * columns);
        run!(what, sum.grid(|config| cdiv(2 * columns, config.BLOCK_SIZE)))
    };
    matrix_row(device, peers, "layer_norm_backward f16", (rows, columns), 3 * size_of::<f16>() * rows * columns, &mut launch)
}

fn cross_entropy_row(device: &Device, peers: &mut Peers, rows: usize, classes: usize) -> Result<Value, Box<dyn Error>> {
    let (logits, targets) = logits(device, rows, classes)?;
    let (mut losses, mut lse) = (device.empty::<f32>(rows)?, device.empty::<f32>(rows)?);
    let mut launch = |what| run!(what, kernels::cross_entropy(&logits, &targets, &mut losses, &mut lse, classes, -100).grid(|_| rows));
    matrix_row(device, peers, "cross_entropy bf16", (rows, classes), size_of::<bf16>() * rows * classes, &mut launch)
}

fn cross_entropy_backward_row(device: &Device, peers: &mut Peers, rows: usize, classes: usize) -> Result<Value, Box<dyn Error>> {
    let (logits, targets) = logits(device, rows, classes)?;
    let (lse, dlosses) = (device.tensor(&vec![12.0f32; rows])?, device.tensor(&values(rows))?);
    let mut dlogits = device.empty_like(&logits)?;
    let mut launch = |what| {
        let call = kernels::cross_entropy_backward(&logits, &targets, &lse, &dlosses, &mut dlogits, classes, -100, 1.0);
        run!(what, call.grid(|config| rows * cdiv(classes, config.BLOCK_SIZE)))
    };
    matrix_row(device, peers, "cross_entropy_backward bf16", (rows, classes), 2 * size_of::<bf16>() * rows * classes, &mut launch)
}

fn logits(device: &Device, rows: usize, classes: usize) -> Result<(Tensor<bf16>, Tensor<i64>), Box<dyn Error>> {
    let logits = values(rows * classes).into_iter().map(bf16::from_f32).collect::<Vec<_>>();
    let targets = (0..rows).map(|row| (row * 7919 % classes) as i64).collect::<Vec<_>>();
    Ok((device.tensor(&logits)?, device.tensor(&targets)?))
}

fn transpose_row<T: Float>(
    device: &Device,
    peers: &mut Peers,
    from: fn(f32) -> T,
    rows: usize,
    columns: usize,
) -> Result<Value, Box<dyn Error>> {
    let x = device.tensor(&values(rows * columns).into_iter().map(from).collect::<Vec<_>>())?;
    let mut y = device.empty_like(&x)?;
    let mut launch = |what| {
        let call = kernels::transpose(&x, &mut y, rows, columns);
        run!(what, call.grid(|config| (cdiv(rows, config.ROWS), cdiv(columns, config.COLUMNS))))
    };
    let work = format!("transpose {}", T::DTYPE);
    matrix_row(device, peers, &work, (rows, columns), 2 * size_of::<T>() * rows * columns, &mut launch)
}

/// Times a kernel of rows. Whether it is right the library's own tests say.
fn matrix_row(
    device: &Device,
    peers: &mut Peers,
    work: &str,
    (rows, columns): (usize, usize),
    bytes: usize,
    launch: &mut dyn FnMut(What) -> galatea::Result<()>,
) -> Result<Value, Box<dyn Error>> {
    launch(What::Launch)?;
    let row =
        measure(device, peers, (work, &format!("{rows}x{columns}"), &format!("{rows} {columns}"), bytes), &mut || launch(What::Launch))?;
    launch(What::Report)?;
    Ok(row)
}

/// Times one work in rounds and prints its line.
fn measure(
    device: &Device,
    peers: &mut Peers,
    (work, shape, sizes, bytes): (&str, &str, &str, usize),
    launch: &mut dyn FnMut() -> galatea::Result<()>,
) -> Result<Value, Box<dyn Error>> {
    let request = format!("time {work} {sizes}");
    peers.ask(&request)?; // makes its data, checks itself, picks its best configuration
    let (mut ours, mut copies) = (Vec::new(), Vec::new());
    let mut theirs = BTreeMap::from([("torch", Vec::new()), ("triton", Vec::new())]);
    for _ in 0..ROUNDS {
        ours.push(do_bench(device, &mut *launch)?.median_us);
        let answer = peers.ask(&request)?;
        let time = |name: &str| answer[format!("{name}_us")].as_f64().ok_or("a peer gave no time");
        for (peer, times) in &mut theirs {
            times.push(time(peer)?);
        }
        copies.push(time("copy")?);
    }
    let (ours, copy) = (median(ours), median(copies));
    let theirs: BTreeMap<&str, f64> = theirs.into_iter().map(|(peer, times)| (peer, median(times))).collect();
    let line: Vec<String> = theirs.iter().map(|(peer, us)| format!("{peer} {us:.1} us ({:.3}x)", us / ours)).collect();
    println!("{work} {shape}: {ours:.1} us, {:.0} GB/s; {}, a copy {copy:.1} us", bytes as f64 / ours / 1e3, line.join(", "));
    Ok(json!({ "work": work, "shape": shape, "bytes": bytes, "ours_us": ours, "copy_us": copy, "peers": theirs }))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Values without structure between -4 and 4: zeros and ramps can run faster than real data.
fn values(len: usize) -> Vec<f32> {
    let mix = |i: usize| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5bd1_e995_37a4_66f1;
    (0..len).map(|i| (mix(i).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 40) as f32 / (1 << 21) as f32 - 4.0).collect()
}

/// The day in UTC, as `2026-01-31` (Hinnant, "chrono-compatible low-level date algorithms").
fn today() -> String {
    let seconds = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let days = (seconds / 86_400) as i64 + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let (day, month) = (day_of_year - (153 * shifted + 2) / 5 + 1, if shifted < 10 { shifted + 3 } else { shifted - 9 });
    format!("{:04}-{month:02}-{day:02}", year_of_era + era * 400 + i64::from(month <= 2))
}
