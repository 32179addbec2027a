//! Our matrix product beside cuBLAS and Triton, in one run, on the same tensors, by the method of `against_peers`.
//!
//! The peers are torch's `mm`, which calls cuBLAS or cuBLASLt, and three kernels of Triton, each in the best of up to twelve configurations: see
//! `peers_matmul.py`.
//!
//! ```sh
//! cargo bench -p galatea-benches --bench matmul -- --out results.json             # the targets; where python3 has torch and triton
//! cargo bench -p galatea-benches --bench matmul -- sweep --budget 400             # sixty shapes in four layouts
//! cargo bench -p galatea-benches --bench matmul -- ragged 16 4096 4096 NT         # a class of the sweep, and a product
//! ```
//!
//! Work runs for a second before the first round of a product, so that the clocks are those of a GPU under load. `--cool SECONDS` lets the GPU rest
//! before each round. `--budget SECONDS` begins no product after that time, and the run says which are left out.

mod cases;
mod options;
#[path = "../peers/mod.rs"]
mod peers;
#[path = "../rounds/mod.rs"]
mod rounds;
#[path = "../shared/mod.rs"]
mod shared;
mod table;

use std::error::Error;
use std::time::{Duration, Instant};

use cases::{Case, Kind};
use galatea::Replay;
use galatea::bench::do_bench_with_rests;
use galatea::prelude::*;
use kernel_library::{Matmul, ScaledMatmul};
use options::Options;
use peers::Peers;
use rounds::{ROUNDS, Rounds, commit, shape_text};
use serde_json::{Value, json};
use shared::Shared;
use table::{Row, table};

const SCRIPT: &str = "peers_matmul.py";
/// How long the GPU is idle before each run, of ours and of the peers: longer than what the peers' Python needs between two runs. Under load, the power limit sets the clocks,
/// so a product with shorter rests would be slower: without rests, 4096 x 4096 matrices took 8 % longer (H200).
const REST: Duration = Duration::from_micros(50);

/// How this program measures, for readers of its results.
const METHOD: &[&str] = &[
    "**Data.** Both sides use the same tensors, at the same addresses of the GPU's memory; the data are normally distributed. Rows and columns of \
     every result of both sides are compared with f64 in the same run, a random one of each block of 128.",
    "**Times.** Both sides replay CUDA graphs, alternating in order, with the L2 cache flushed before each replay, for which the GPU rests for 50 us. A time is the median over the rounds of the \
     mean of the middle half of a round. Products run for some time before the first round, so that the clocks are those of a GPU under load.",
    "**Peers.** \"cublas\" is `torch.mm` by cuBLAS or cuBLASLt, whichever is faster. Triton's kernels are tuned over up to twelve configurations each: with \
     loads by pointers, with TMA descriptors, and persistent with TMA descriptors.",
];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let options = Options::read(words.iter().cloned(), ROUNDS)?;
    if Device::cuda_count() == 0 {
        println!("skipped: there is no CUDA device");
        return Ok(());
    }
    let (begun, device) = (Instant::now(), Device::cuda(0)?);
    let mut peers = Peers::start(SCRIPT)?;
    let versions = peers.ask("versions")?;
    let clocks_before = peers.ask("clocks")?;
    let (mut rows, mut results, mut failed, mut left_out) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for case in &options.cases {
        let name = format!("{} {} {}", shape_text(&case.extents()), case.layout, case.kind.name());
        if options.budget.is_some_and(|budget| begun.elapsed() > budget) {
            left_out.push(name);
            continue;
        }
        let measured = match case.kind {
            Kind::Bf16 => measure::<bf16, bf16>(device, &mut peers, case, &options),
            Kind::Tf32 => measure::<f32, f32>(device, &mut peers, case, &options),
            Kind::Float8 => measure::<f8e4m3, bf16>(device, &mut peers, case, &options),
        };
        match measured {
            Ok((row, result)) => {
                rows.push(row);
                results.push(result);
            }
            Err(error) => {
                eprintln!("{name}: {error}");
                failed.push(name);
                // A start of the peers takes ten seconds, which a wrong result of ours does not need: only peers that lost their GPU.
                if peers.ask("clear").is_err() {
                    peers = Peers::start(SCRIPT)?;
                }
            }
        }
        // After each product, so that a run that is cut off leaves what it measured.
        if let Some(out) = &options.out {
            let run = json!({
                "date": jiff::Timestamp::now().strftime("%Y-%m-%d").to_string(),
                "commit": commit(),
                "gpu": versions["gpu"],
                "driver": versions["driver"],
                "versions": { "galatea": env!("CARGO_PKG_VERSION"), "torch": versions["torch"], "triton": versions["triton"] },
                "method": METHOD,
                "command": format!("cargo bench -p galatea-benches --bench matmul -- {}", words.join(" ")),
                "seconds": begun.elapsed().as_secs_f64(),
                "clocks_before": clocks_before,
                "clocks_after": peers.ask("clocks")?,
                "failed": failed,
                "rows": results,
            });
            std::fs::write(out, serde_json::to_string_pretty(&run)?)?;
        }
    }
    println!("\nTFLOP/s, median of {} rounds, {:.0} s\n\n{}", options.rounds, begun.elapsed().as_secs_f64(), table(&rows));
    println!("clocks before {clocks_before}, after {}", peers.ask("clocks")?);
    if !left_out.is_empty() {
        println!("left out for want of time: {}", left_out.join(", "));
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("not measured: {}", failed.join(", ")).into()) }
}

/// The operands and the result of a product, in the memory that the peers use as well.
struct Product<T: Element, O: Element> {
    case: Case,
    a: Shared<T>,
    b: Shared<T>,
    y: Shared<O>,
    /// For copies of operands, from the first launch that needs one.
    workspace: Option<Tensor<T>>,
}

/// A product in the tiles that tuning chose for its shape. Copies of ragged operands are part of it; their workspace is not allocated again.
trait Launch {
    fn launch(&mut self) -> galatea::Result<()>;
}

impl Launch for Product<bf16, bf16> {
    fn launch(&mut self) -> galatea::Result<()> {
        self.multiply()
    }
}

impl Launch for Product<f32, f32> {
    fn launch(&mut self) -> galatea::Result<()> {
        self.multiply()
    }
}

impl Launch for Product<f8e4m3, bf16> {
    fn launch(&mut self) -> galatea::Result<()> {
        let [of_a, of_b, of_y] = self.case.shapes();
        let (a, b, mut y) = (self.a.view().reshape(of_a)?, self.b.view().reshape(of_b)?, self.y.view_mut().reshape(of_y)?);
        let (transposed_a, transposed_b) = self.case.layout.transposed();
        let product = if transposed_a { ScaledMatmul::new().transposed_a() } else { ScaledMatmul::new() };
        let product = if transposed_b { product.transposed_b() } else { product };
        product.product_into(&a, &b, &mut y)
    }
}

/// A type of operands whose products have options.
trait Factor: kernel_library::Factor {
    fn product<'a>() -> Matmul<'a, Self>;
}

impl Factor for bf16 {
    fn product<'a>() -> Matmul<'a, bf16> {
        Matmul::new()
    }
}

impl Factor for f32 {
    fn product<'a>() -> Matmul<'a, f32> {
        Matmul::tf32()
    }
}

impl<T: Factor> Product<T, T> {
    fn multiply(&mut self) -> galatea::Result<()> {
        let [of_a, of_b, of_y] = self.case.shapes();
        let (a, b, mut y) = (self.a.view().reshape(of_a)?, self.b.view().reshape(of_b)?, self.y.view_mut().reshape(of_y)?);
        let (transposed_a, transposed_b) = self.case.layout.transposed();
        let product = if transposed_a { T::product().transposed_a() } else { T::product() };
        let product = if transposed_b { product.transposed_b() } else { product };
        let len = product.workspace_len(&a, &b)?;
        if self.workspace.as_ref().map_or(0, Tensor::len) < len {
            self.workspace = Some(self.a.device().empty(len)?);
        }
        match &mut self.workspace {
            Some(workspace) => product.workspace(workspace).product_into(&a, &b, &mut y),
            None => product.product_into(&a, &b, &mut y),
        }
    }
}

impl<T: Element, O: Element> Product<T, O> {
    fn replay(&mut self, replay: &mut Replay) -> galatea::Result<()> {
        replay.launch((&*self.a, &*self.b, &mut *self.y, self.workspace.as_mut()))
    }
}

/// Times a product, lets the peers check its result, and prints and returns the row, and what the file of results has of it.
fn measure<T: Element, O: Element>(
    device: Device,
    peers: &mut Peers,
    case: &Case,
    options: &Options,
) -> Result<(Row, Value), Box<dyn Error>>
where
    Product<T, O>: Launch,
{
    let Case { rows, columns, inner, layout, kind, .. } = *case;
    let (transposed_a, transposed_b) = layout.transposed();
    let stored = if kind == Kind::Tf32 { "f32" } else { kind.name() };
    let request = format!("prepare matmul {stored} {rows} {columns} {inner} {} {}", u8::from(transposed_a), u8::from(transposed_b));
    let prepared = peers.ask(&request)?;
    for (peer, reason) in prepared["failed"].as_object().into_iter().flatten() {
        println!("    {peer} is not timed: {}", reason.as_str().unwrap_or_default());
    }
    let mut product = Product::<T, O> {
        case: *case,
        a: open(&device, &prepared, "a")?,
        b: open(&device, &prepared, "b")?,
        y: open(&device, &prepared, "y")?,
        workspace: None,
    };
    product.launch()?; // compiles, and tunes
    let mut replay = Replay::capture(device.stream(), || product.launch())?;
    // A wrong result must not take the time of the rounds. An element that ours fails to write is NaN, not a peer's right one.
    peers.ask("clear")?;
    product.replay(&mut replay)?;
    device.synchronize()?;
    peers.ask("check")?;

    let clocks = peers.ask(&format!("warm {}", options.warm.as_secs_f64()))?;
    let mut rounds = Rounds::default();
    for _ in 0..options.rounds {
        std::thread::sleep(options.cool);
        rounds.time(peers, || Ok(do_bench_with_rests(&device, REST, || product.replay(&mut replay))?.middle_us))?;
    }
    let (ours_us, peers_us) = rounds.medians();

    let speeds: Vec<String> = peers_us.iter().map(|(peer, us)| format!("{peer} {:.1} ({:.3}x)", case.tflops(*us), us / ours_us)).collect();
    let shape = shape_text(&case.extents());
    println!("{shape} {layout} {}: {:.1} TFLOP/s in {ours_us:.1} us; {}", kind.name(), case.tflops(ours_us), speeds.join(", "));
    let result = json!({
        "work": format!("matmul {} {layout}", kind.name()), "shape": shape, "class": case.class, "bytes": prepared["bytes"], "flops": case.flops(),
        "ours_us": ours_us, "peers": peers_us, "seed": prepared["seed"], "config": "tuned", "triton_config": prepared["configs"].to_string(),
        "tuned_us": prepared["tuned_us"], "not_timed": prepared["failed"], "clocks": clocks,
    });
    Ok((Row { case: *case, shape, ours_us, peers_us, sm_mhz: clocks["sm_mhz"].as_f64() }, result))
}

/// A tensor of the peers.
fn open<T: Element>(device: &Device, prepared: &Value, name: &str) -> Result<Shared<T>, String> {
    Shared::open(device, &prepared["tensors"][name]).map_err(|error| format!("`{name}`: {error}"))
}
