//! Times of inference with a packaged model: a linear layer, SiLU and a linear layer, of `bf16`, as in the example `silu_mlp`.
//!
//! ```sh
//! CUDA_CACHE_DISABLE=1 cargo bench -p galatea-benches --bench inference
//! ```
//!
//! Without the variable, the driver may have cached the machine code of the PTX. `GALATEA_PTXAS` or `PATH` names the assembler for machine code.
//!
//! With the path of a file, as in `-- model.safetensors`, it compares function, session and package for each batch of the range instead, and writes the weights, an input and the
//! output to the file, for comparisons with other frameworks.

use std::error::Error;
use std::time::{Duration, Instant};

use galatea::graph::{Package, Session, export, input, weights};
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
    // `cargo bench` adds `--bench`.
    if let Some(path) = std::env::args().skip(1).find(|argument| argument != "--bench") {
        let sessions = [graph.compile(&device)?, Package::from_bytes(bytes)?.load(&device)?];
        let x = normal(&device, Dtype::Bf16, &[1024, 128], &mut seed)?;
        let y = all_batches(&x, &forward, &sessions)?;
        let weight = |name: &str, layer: &Linear| -> Result<[(String, Tensor); 2], Box<dyn Error>> {
            let bias = layer.bias.clone().ok_or("a layer has no bias")?;
            Ok([(format!("{name}.weight"), layer.weight.clone()), (format!("{name}.bias"), bias)])
        };
        let tensors = [weight("linear1", &first)?, weight("linear2", &second)?].concat();
        weights::save(&path, &[tensors, vec![("x".to_owned(), x), ("y".to_owned(), y)]].concat())?;
        println!("function, session and package are byte-equal for all batches of 1 to 1024; wrote {path}");
        return Ok(());
    }
    println!("recording and packaging: {:.1?}, {} kB", start.elapsed(), bytes.len().div_ceil(1000));
    let one = normal(&device, Dtype::Bf16, &[1, 128], &mut seed)?;
    device.synchronize()?;
    let (session, times) = first_run(&device, bytes, &one)?;
    println!("opening, loading, the first run and all three, from PTX: {times:.1?}");
    match device.compute_capability().map(|(major, minor)| (major.unsigned_abs(), minor.unsigned_abs())) {
        Some(capability) if device.is_cuda() => {
            let start = Instant::now();
            match graph.package().machine_code([capability]).to_bytes() {
                Ok(bytes) => {
                    println!("packaging with machine code: {:.1?}, {} kB", start.elapsed(), bytes.len().div_ceil(1000));
                    println!(
                        "opening, loading, the first run and all three, from machine code: {:.1?}",
                        first_run(&device, bytes, &one)?.1
                    );
                }
                Err(error) => println!("no machine code: {error}"),
            }
        }
        _ => {}
    }
    println!(
        "batch | run, queued | run, to its end | run_into, queued | run_into, to its end | back to back | launch by launch | eager, to its end"
    );
    for rows in [1, 16, 128, 1024] {
        let x = normal(&device, Dtype::Bf16, &[rows, 128], &mut seed)?;
        if session.run([&x])?[0].to_bytes()? != forward(&x)?.to_bytes()? {
            return Err(format!("the outputs differ for {rows} rows").into());
        }
        let packaged = median(&device, || Ok(session.run([&x]).map(drop)?))?;
        let eager = median(&device, || Ok(forward(&x).map(drop)?))?;
        let mut outputs = session.run([&x])?;
        let again = median(&device, || Ok(session.run_into([&x], &mut outputs)?))?;
        let start = Instant::now();
        for _ in 0..RUNS {
            session.run_into([&x], &mut outputs)?;
        }
        device.synchronize()?;
        let back_to_back = start.elapsed() / RUNS as u32;
        let launches = median(&device, || Ok(session.run_owned([x.clone()]).map(drop)?))?;
        println!(
            "{rows} | {:.1?} | {:.1?} | {:.1?} | {:.1?} | {back_to_back:.1?} | {:.1?} | {:.1?}",
            packaged.0, packaged.1, again.0, again.1, launches.1, eager.1
        );
    }
    println!("launches of a graph: {}", session.is_replayed());
    Ok(())
}

/// Compares the function and the sessions for each batch of the rows of `x`. Returns the output of the largest one.
fn all_batches(x: &Tensor, forward: &dyn Fn(&Tensor) -> galatea::Result<Tensor>, sessions: &[Session]) -> Result<Tensor, Box<dyn Error>> {
    let mut last = None;
    for rows in 1..=1024 {
        let x = x.slice(0..rows)?;
        let y = forward(&x)?;
        let bytes = y.to_bytes()?;
        for session in sessions {
            if session.run([&x])?[0].to_bytes()? != bytes {
                return Err(format!("the outputs differ for {rows} rows").into());
            }
        }
        last = Some(y);
    }
    for rows in [0, 1025] {
        let x = x.new_empty(Dtype::Bf16, [rows, 128])?;
        println!("{rows} rows: {}", sessions[1].run([&x]).err().ok_or("a batch outside the range runs")?);
    }
    Ok(last.ok_or("there is no batch")?)
}

/// The times in which a package is opened, loaded and run for the first time, and their sum, with a context that is open. Each package has kernels of its own, so that nothing
/// is loaded before.
fn first_run(device: &Device, bytes: Vec<u8>, x: &Tensor) -> Result<(Session, [Duration; 4]), Box<dyn Error>> {
    let start = Instant::now();
    let package = Package::from_bytes(bytes)?;
    let opened = start.elapsed();
    let session = package.load(device)?;
    let loaded = start.elapsed();
    session.run([x])?;
    device.synchronize()?;
    let all = start.elapsed();
    Ok((session, [opened, loaded - opened, all - loaded, all]))
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
