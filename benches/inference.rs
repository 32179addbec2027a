//! Times of inference with a packaged model: a linear layer, SiLU and a linear layer, of `bf16`, as in the example `silu_mlp`.
//!
//! ```sh
//! cargo bench -p galatea-benches --bench inference
//! ```

use std::error::Error;
use std::time::{Duration, Instant};

use galatea::graph::{Package, export, input};
use galatea::ops::Tensor;
use galatea::{Device, Dim, Dtype};
use kernel_library::nn::{Linear, Seed, normal};
use kernel_library::ops::silu;

/// How often a run is timed.
const RUNS: usize = 2000;

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::default()?;
    let mut seed = Seed(42);
    let [first, second] = [(128, 64), (64, 128)].map(|(inner, columns)| Linear::init(&device, Dtype::Bf16, inner, columns, &mut seed));
    let (first, second) = (first?, second?);
    let forward = |x: &Tensor| second.forward(&silu(&first.forward(x)?)?);
    let batch = Dim::new("batch", 1..=1024);
    let start = Instant::now();
    let graph = export(|[x]| forward(x), [input("x", [&batch, &128.into()], Dtype::Bf16)])?;
    let bytes = graph.package().to_bytes()?;
    println!("recording and packaging: {:.1?}, {} kB", start.elapsed(), bytes.len().div_ceil(1000));
    let start = Instant::now();
    let session = Package::from_bytes(bytes)?.load(&device)?;
    session.run([&normal(&device, Dtype::Bf16, &[1, 128], &mut seed)?])?;
    device.synchronize()?;
    println!("opening, loading and the first run: {:.1?}", start.elapsed());
    println!("batch | run, queued | run, to its end | run_into, queued | run_into, to its end | eager, to its end");
    for rows in [1, 16, 128, 1024] {
        let x = normal(&device, Dtype::Bf16, &[rows, 128], &mut seed)?;
        if session.run([&x])?[0].to_bytes()? != forward(&x)?.to_bytes()? {
            return Err(format!("the outputs differ for {rows} rows").into());
        }
        let packaged = median(&device, || Ok(session.run([&x]).map(drop)?))?;
        let eager = median(&device, || Ok(forward(&x).map(drop)?))?;
        let mut outputs = session.run([&x])?;
        let again = median(&device, || Ok(session.run_into([&x], &mut outputs)?))?;
        println!("{rows} | {:.1?} | {:.1?} | {:.1?} | {:.1?} | {:.1?}", packaged.0, packaged.1, again.0, again.1, eager.1);
    }
    println!("launches of a graph: {}", session.is_replayed());
    Ok(())
}

/// The median times until a run was queued, and until it was complete.
fn median(device: &Device, mut run: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<(Duration, Duration), Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        run()?;
        let queued = start.elapsed();
        device.synchronize()?;
        times.push((queued, start.elapsed()));
    }
    let of = |pick: fn(&(Duration, Duration)) -> Duration| {
        let mut times: Vec<Duration> = times.iter().map(pick).collect();
        times.sort_unstable();
        times[RUNS / 2]
    };
    Ok((of(|time| time.0), of(|time| time.1)))
}
