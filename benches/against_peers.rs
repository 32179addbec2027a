//! Our kernels beside Triton's and torch's, in one run, on the same tensors, by one method.
//!
//! Each work is timed in rounds, in which ours and the peers (`peers.py`, a child process on the same GPU) alternate in order, so that all
//! see the same clocks. A time is the median over rounds of the mean of the middle half of event-timed replays, the L2 cache flushed before each. Both sides
//! replay a CUDA graph, so no time includes what the host takes to launch. Every result is compared with a reference in f64.
//!
//! ```sh
//! cargo bench -p galatea-benches --bench against_peers -- --out results.json     # where python3 has torch and triton
//! cargo xtask bench-report benches/results.json                                  # writes docs/benchmarks.*; Cargo runs benches in their folder
//! ```

mod peers;
mod rounds;
mod shared;

use std::error::Error;
use std::path::PathBuf;

use galatea::bench::do_bench;
use galatea::prelude::*;
use galatea::{Lent, Replay, Tensors};
use peers::Peers;
use rounds::{ROUNDS, Rounds, commit, shape_text};
use serde_json::{Value, json};
use shared::Shared;

/// How this program measures, for the page that shows its results.
const METHOD: &[&str] = &[
    "**Data.** Both sides use the same tensors, at the same addresses of the GPU's memory; the data are normally distributed. Every result of both \
     sides is compared with a reference in f64 in the same run.",
    "**Times.** Both sides replay CUDA graphs, alternating in order, with the L2 cache flushed before each replay. A time is the median over five rounds \
     of the mean of the middle half of a round.",
    "**Peers.** Triton's kernels use the algorithms of ours, and are tuned over block sizes, rows in a program, warps, CTAs in a cluster, stages and the \
     L2 hints of loads. \"torch\" is the eager function, \"torch compiled\" is `torch.compile` with `max-autotune`.",
    "**Copy.** \"copy\" is the faster of two copies that move as many bytes: a memcpy node of a CUDA graph, and a Triton kernel.",
];

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
    // The output leaves the L2 sooner, in longer runs, if the inputs are to stay.
    let sum = load(x + offsets, mask = mask, evict = "evict_last") + load(y + offsets, mask = mask, evict = "evict_last");
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
    // As in `vector_add`.
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
    let mut bench = Bench { device: Device::cuda(0)?, peers: Peers::start("peers.py")?, rows: Vec::new(), work: "", shape: Vec::new() };
    let versions = bench.peers.ask("versions")?;
    let text = |name: &str| versions[name].as_str().unwrap_or("unknown").to_string();

    let clocks_before = bench.peers.ask("clocks")?;
    let mut failed = Vec::new();
    for (work, shape) in works() {
        if !work.contains(&only) {
            continue;
        }
        if let Err(error) = bench.run(work, shape) {
            let row = format!("{work} {}", shape_text(&bench.shape));
            eprintln!("{row}: {error}");
            failed.push(row);
            // The peers may have lost their GPU.
            bench.peers = Peers::start("peers.py")?;
            continue;
        }
        // After each row, so that a run that is cut off leaves what it measured.
        if let Some(out) = &out {
            let run = json!({
                "date": jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
                "commit": commit(),
                "gpu": text("gpu"),
                "driver": text("driver"),
                "versions": { "galatea": env!("CARGO_PKG_VERSION"), "torch": text("torch"), "triton": text("triton") },
                "method": METHOD,
                "command": "cargo bench -p galatea-benches --bench against_peers -- --out results.json",
                "clocks_before": clocks_before,
                "clocks_after": bench.peers.ask("clocks")?,
                "rows": bench.rows,
            });
            std::fs::write(out, serde_json::to_string_pretty(&run)?)?;
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", failed.join(", ")).into()) }
}

/// The works to time, in the order of the table: the name of a work with its element type, and its shape.
fn works() -> Vec<(&'static str, Vec<usize>)> {
    let norms = [vec![4096, 8192], vec![8192, 4096], vec![4096, 1024]];
    let mut works = vec![
        ("vector_add f32", vec![1 << 27]),
        ("vector_add f32", vec![(1 << 27) + 3]),
        ("silu bf16", vec![1 << 28]),
        ("softmax bf16", vec![8192, 4096]),
    ];
    works.extend([[4096, 12_672], [8192, 781], [2048, 65_536], [512, 262_144]].map(|shape| ("softmax f32", shape.to_vec())));
    works.extend(norms.clone().map(|shape| ("layer_norm f16", shape)));
    works.extend(norms.clone().map(|shape| ("rms_norm f16", shape)));
    works.push(("row_sum f32", vec![4096, 8192]));
    works.extend([("transpose f32", vec![8192, 8192]), ("transpose f16", vec![8192, 8192]), ("transpose f32", vec![5000, 7001])]);
    works.extend(norms.map(|shape| ("layer_norm_backward f16", shape)));
    for shape in [[8192, 32_000], [4096, 128_256]] {
        works.push(("cross_entropy bf16", shape.to_vec()));
        works.push(("cross_entropy_backward bf16", shape.to_vec()));
    }
    works
}

struct Bench {
    device: Device,
    peers: Peers,
    rows: Vec<Value>,
    /// The work that is being timed.
    work: &'static str,
    shape: Vec<usize>,
}

/// The use of a launch of a work: to run it, or to ask for its configuration.
#[derive(Clone, Copy)]
enum What {
    Launch,
    /// Return the configuration that tuning has chosen.
    Config,
}

macro_rules! run {
    ($what:ident, $call:expr) => {
        match $what {
            What::Launch => $call.launch().map(|()| String::new()),
            What::Config => $call.report().map(|report| report.chosen().map_or(String::new(), |chosen| format!("{:?}", chosen.config))),
        }
    };
}

/// Lends what a work's launches use: its state, and how to lend that.
struct Lender<'t, S, F>(&'t mut S, &'t F);

impl<'t, S, F: Fn(&'t mut S, &mut Lent<'t>)> Tensors<'t> for Lender<'t, S, F> {
    fn lend(self, lent: &mut Lent<'t>) {
        (self.1)(self.0, lent);
    }
}

impl Bench {
    fn run(&mut self, work: &'static str, shape: Vec<usize>) -> Result<(), Box<dyn Error>> {
        (self.work, self.shape) = (work, shape);
        match work {
            "vector_add f32" => self.vector_add(),
            "silu bf16" => self.silu(),
            "softmax f32" => self.softmax::<f32>(),
            "softmax bf16" => self.softmax::<bf16>(),
            "layer_norm f16" => self.layer_norm(),
            "rms_norm f16" => self.rms_norm(),
            "row_sum f32" => self.row_sum(),
            "layer_norm_backward f16" => self.layer_norm_backward(),
            "cross_entropy bf16" => self.cross_entropy(),
            "cross_entropy_backward bf16" => self.cross_entropy_backward(),
            "transpose f32" => self.transpose::<f32>(),
            "transpose f16" => self.transpose::<f16>(),
            _ => Err(format!("there is no `{work}` on our side").into()),
        }
    }

    fn vector_add(&mut self) -> Result<(), Box<dyn Error>> {
        let (prepared, len) = (self.prepare()?, self.shape[0]);
        let (x, y, out) = (prepared.tensor::<f32>("x")?, prepared.tensor::<f32>("y")?, prepared.tensor::<f32>("out")?);
        self.measure(
            &prepared,
            (x, y, out),
            |(x, y, out), what| run!(what, vector_add(&**x, &**y, &mut **out, len).grid(|config| cdiv(len, config.BLOCK_SIZE))),
            |(x, y, out), lent| (&**x, &**y, &mut **out).lend(lent),
        )
    }

    fn silu(&mut self) -> Result<(), Box<dyn Error>> {
        let (prepared, len) = (self.prepare()?, self.shape[0]);
        let (x, y) = (prepared.tensor::<bf16>("x")?, prepared.tensor::<bf16>("y")?);
        self.measure(
            &prepared,
            (x, y),
            |(x, y), what| run!(what, silu(&**x, &mut **y, len).grid(|config| cdiv(len, config.BLOCK_SIZE))),
            |(x, y), lent| (&**x, &mut **y).lend(lent),
        )
    }

    fn softmax<T: Float>(&mut self) -> Result<(), Box<dyn Error>> {
        let (prepared, (rows, columns)) = (self.prepare()?, self.matrix());
        let (x, y) = (prepared.tensor::<T>("x")?, prepared.tensor::<T>("y")?);
        self.measure(
            &prepared,
            (x, y),
            |(x, y), what| run!(what, kernel_library::kernels::softmax(&**x, &mut **y, columns).grid(|_| rows)),
            |(x, y), lent| (&**x, &mut **y).lend(lent),
        )
    }

    fn layer_norm(&mut self) -> Result<(), Box<dyn Error>> {
        let (prepared, (rows, columns)) = (self.prepare()?, self.matrix());
        let inputs = (prepared.tensor::<f16>("x")?, prepared.tensor::<f16>("weight")?, prepared.tensor::<f16>("bias")?);
        let outputs = (prepared.tensor::<f16>("y")?, prepared.tensor::<f32>("mean")?, prepared.tensor::<f32>("rstd")?);
        self.measure(
            &prepared,
            (inputs, outputs),
            |((x, weight, bias), (y, mean, rstd)), what| {
                let call =
                    kernel_library::kernels::layer_norm(&**x, &**weight, &**bias, &mut **y, &mut **mean, &mut **rstd, rows, columns, 1e-5);
                run!(what, call.grid(|config| cdiv(rows, config.ROWS)))
            },
            |((x, weight, bias), (y, mean, rstd)), lent| ((&**x, &**weight, &**bias), (&mut **y, &mut **mean, &mut **rstd)).lend(lent),
        )
    }

    fn rms_norm(&mut self) -> Result<(), Box<dyn Error>> {
        let (prepared, (rows, columns)) = (self.prepare()?, self.matrix());
        let inputs = (prepared.tensor::<f16>("x")?, prepared.tensor::<f16>("weight")?);
        let outputs = (prepared.tensor::<f16>("y")?, prepared.tensor::<f32>("rstd")?);
        self.measure(
            &prepared,
            (inputs, outputs),
            |((x, weight), (y, rstd)), what| {
                let call = kernel_library::kernels::rms_norm(&**x, &**weight, &mut **y, &mut **rstd, rows, columns, 1e-5);
                run!(what, call.grid(|config| cdiv(rows, config.ROWS)))
            },
            |((x, weight), (y, rstd)), lent| ((&**x, &**weight), (&mut **y, &mut **rstd)).lend(lent),
        )
    }

    fn row_sum(&mut self) -> Result<(), Box<dyn Error>> {
        let (prepared, (rows, columns)) = (self.prepare()?, self.matrix());
        let (x, y) = (prepared.tensor::<f32>("x")?, prepared.tensor::<f32>("y")?);
        self.measure(
            &prepared,
            (x, y),
            |(x, y), what| run!(what, kernel_library::kernels::row_sum(&**x, &mut **y, columns).grid(|_| rows)),
            |(x, y), lent| (&**x, &mut **y).lend(lent),
        )
    }

    fn layer_norm_backward(&mut self) -> Result<(), Box<dyn Error>> {
        let (prepared, (rows, columns)) = (self.prepare()?, self.matrix());
        let halves = (prepared.tensor::<f16>("dy")?, prepared.tensor::<f16>("x")?, prepared.tensor::<f16>("weight")?);
        let per_row = (prepared.tensor::<f32>("mean")?, prepared.tensor::<f32>("rstd")?);
        let groups = 132;
        let parts = self.device.empty::<f32>(groups * 2 * columns)?;
        let (dx, both) = (prepared.tensor::<f16>("dx")?, prepared.tensor::<f16>("dweight and dbias")?);
        self.measure(
            &prepared,
            (halves, per_row, (dx, both, parts)),
            |((dy, x, weight), (mean, rstd), (dx, both, parts)), what| {
                let norm = kernel_library::kernels::layer_norm_backward(
                    &**dy,
                    &**x,
                    &**weight,
                    &**mean,
                    &**rstd,
                    &mut **dx,
                    &mut *parts,
                    rows,
                    columns,
                );
                let first = run!(what, norm.grid(|_| groups))?;
                let sum = kernel_library::kernels::column_sum(&*parts, &mut **both, groups, 2 * columns);
                Ok(format!("{first}, {}", run!(what, sum.grid(|config| cdiv(2 * columns, config.BLOCK_SIZE)))?))
            },
            |((dy, x, weight), (mean, rstd), (dx, both, parts)), lent| {
                ((&**dy, &**x, &**weight), (&**mean, &**rstd), (&mut **dx, &mut **both, parts)).lend(lent);
            },
        )
    }

    fn cross_entropy(&mut self) -> Result<(), Box<dyn Error>> {
        let (prepared, (rows, classes)) = (self.prepare()?, self.matrix());
        let inputs = (prepared.tensor::<bf16>("logits")?, prepared.tensor::<i64>("targets")?);
        let outputs = (prepared.tensor::<f32>("losses")?, prepared.tensor::<f32>("lse")?);
        self.measure(
            &prepared,
            (inputs, outputs),
            |((logits, targets), (losses, lse)), what| {
                let call = kernel_library::kernels::cross_entropy(&**logits, &**targets, &mut **losses, &mut **lse, classes, -100);
                run!(what, call.grid(|_| rows))
            },
            |((logits, targets), (losses, lse)), lent| ((&**logits, &**targets), (&mut **losses, &mut **lse)).lend(lent),
        )
    }

    fn cross_entropy_backward(&mut self) -> Result<(), Box<dyn Error>> {
        let (prepared, (rows, classes)) = (self.prepare()?, self.matrix());
        let of_rows = (prepared.tensor::<i64>("targets")?, prepared.tensor::<f32>("lse")?, prepared.tensor::<f32>("dlosses")?);
        let (logits, dlogits) = (prepared.tensor::<bf16>("logits")?, prepared.tensor::<bf16>("dlogits")?);
        self.measure(
            &prepared,
            (logits, of_rows, dlogits),
            |(logits, (targets, lse, dlosses), dlogits), what| {
                let call = kernel_library::kernels::cross_entropy_backward(
                    &**logits,
                    &**targets,
                    &**lse,
                    &**dlosses,
                    &mut **dlogits,
                    classes,
                    -100,
                    1.0,
                );
                run!(what, call.grid(|config| rows * cdiv(classes, config.BLOCK_SIZE)))
            },
            |(logits, (targets, lse, dlosses), dlogits), lent| ((&**logits, &**targets), (&**lse, &**dlosses), &mut **dlogits).lend(lent),
        )
    }

    fn transpose<T: Float>(&mut self) -> Result<(), Box<dyn Error>> {
        let (prepared, (rows, columns)) = (self.prepare()?, self.matrix());
        let (x, y) = (prepared.tensor::<T>("x")?, prepared.tensor::<T>("y")?);
        self.measure(
            &prepared,
            (x, y),
            |(x, y), what| {
                let call = kernel_library::kernels::transpose(&**x, &mut **y, rows, columns);
                run!(what, call.grid(|config| (cdiv(rows, config.ROWS), cdiv(columns, config.COLUMNS))))
            },
            |(x, y), lent| (&**x, &mut **y).lend(lent),
        )
    }

    fn matrix(&self) -> (usize, usize) {
        (self.shape[0], self.shape[1])
    }

    /// Lets the peers make the tensors of the work, and tune and check themselves.
    fn prepare(&mut self) -> Result<Prepared, Box<dyn Error>> {
        let sizes: Vec<String> = self.shape.iter().map(usize::to_string).collect();
        let answer = self.peers.ask(&format!("prepare {} {}", self.work, sizes.join(" ")))?;
        Ok(Prepared { device: self.device, answer })
    }

    /// Times `launch` and the peers in rounds, lets the peers compare its results with the references, and prints and keeps the row.
    fn measure<S>(
        &mut self,
        prepared: &Prepared,
        mut state: S,
        launch: impl Fn(&mut S, What) -> galatea::Result<String>,
        lend: impl for<'t> Fn(&'t mut S, &mut Lent<'t>),
    ) -> Result<(), Box<dyn Error>> {
        let device = &self.device;
        launch(&mut state, What::Launch)?; // tunes
        let config = launch(&mut state, What::Config)?;
        let mut replay = Replay::capture(device.stream(), || launch(&mut state, What::Launch).map(drop))?;
        let mut rounds = Rounds::default();
        for _ in 0..ROUNDS {
            rounds.time(&mut self.peers, || Ok(do_bench(device, || replay.launch(Lender(&mut state, &lend)))?.middle_us))?;
        }
        let (ours, mut theirs) = rounds.medians();
        // An element that ours fails to write is NaN, not a peer's right one.
        self.peers.ask("clear")?;
        replay.launch(Lender(&mut state, &lend))?;
        device.synchronize()?;
        self.peers.ask("check")?;

        let copy = theirs.remove("copy").ok_or("the peers timed no copy")?;
        let bytes = prepared.answer["bytes"].as_u64().ok_or("the peers did not say how many bytes the work moves")?;
        let (work, shape) = (self.work, shape_text(&self.shape));
        let line: Vec<String> = theirs.iter().map(|(peer, us)| format!("{peer} {us:.1} us ({:.3}x)", us / ours)).collect();
        println!("{work} {shape}: {ours:.1} us, {:.0} GB/s; {}, a copy {copy:.1} us", bytes as f64 / ours / 1e3, line.join(", "));
        println!("    ours {config}\n    triton {}", prepared.answer["triton_config"]);
        self.rows.push(json!({
            "work": work, "shape": shape, "bytes": bytes, "ours_us": ours, "copy_us": copy, "peers": theirs, "seed": prepared.answer["seed"],
            "config": config, "triton_config": prepared.answer["triton_config"].to_string(),
        }));
        Ok(())
    }
}

/// The peers' answer to `prepare`.
struct Prepared {
    device: Device,
    answer: Value,
}

impl Prepared {
    /// A tensor of the work, in the memory that the peers use as well.
    fn tensor<T: Element>(&self, name: &str) -> Result<Shared<T>, Box<dyn Error>> {
        Shared::open(&self.device, &self.answer["tensors"][name]).map_err(|error| format!("`{name}`: {error}").into())
    }
}
