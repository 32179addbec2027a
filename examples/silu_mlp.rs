//! A model with a kernel of its own: recorded for all batches, compiled, packaged, loaded, compared and profiled.
//!
//! ```sh
//! cargo run --release --example silu_mlp -- --device cpu --registered-op --level ops
//! ```
//!
//! `--registered-op` calls the kernel in an op, which the graph shows as one line; otherwise a plain function launches it. Both are recorded, at both levels.
//! `--out FOLDER` is where the package and the traces go; the folder for temporary files by default. `--len`, which all examples take, changes nothing here:
//! the model has sizes of its own.

use std::error::Error;
use std::path::PathBuf;

use galatea::graph::{Level, Package, export, input};
use galatea::ops::{Any, Module, Tensor, compare};
use galatea::prelude::*;
use galatea::profile::{Profiler, StepSchedule, span};
use galatea::{Dim, Dtype, op};
use kernel_library::nn::{Linear, Seed, normal, uniform};

/// y = x * sigmoid(x), computed in f32 and rounded once.
#[kernel(T = [bf16])]
fn silu_elements<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let v = load(x + offsets, mask = mask) as f32;
    store(y + offsets, (v * sigmoid(v)) as T, mask = mask);
}

/// The kernel in a plain function.
fn silu(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    silu_elements::<Any, 1024>(x, &mut y, &n).grid(n.cdiv(1024)).launch()?;
    Ok(y)
}

/// The same function as an op.
#[op("custom_ops::silu")]
fn silu_op(x: &Tensor) -> Result<Tensor> {
    silu(x)
}

#[derive(Module)]
struct CustomModel {
    linear1: Linear,
    linear2: Linear,
    #[module(skip)]
    silu: fn(&Tensor) -> Result<Tensor>,
}

impl CustomModel {
    fn init(device: &Device, silu: fn(&Tensor) -> Result<Tensor>) -> Result<CustomModel> {
        let mut seed = Seed(42);
        let mut layer = |inner, columns| {
            Ok::<_, galatea::Error>(Linear {
                weight: uniform(device, Dtype::F32, &[columns, inner], 1.0, &mut seed)?,
                bias: Some(uniform(device, Dtype::F32, &[columns], 1.0, &mut seed)?),
            })
        };
        Ok(CustomModel { linear1: layer(128, 64)?, linear2: layer(64, 128)?, silu })
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let x = self.linear1.forward(x)?;
        let x = (self.silu)(&x)?;
        self.linear2.forward(&x)
    }
}

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let Args { device, registered, level, out } = Args::parse()?;
    println!("Using silu_op: {}", if registered { silu_op::DEF.name } else { "silu, a plain function" });
    let model = CustomModel::init(&device, if registered { silu_op } else { silu })?.to(Dtype::Bf16)?;
    for (name, parameter) in model.parameters() {
        println!("  {name}: {}{:?}", parameter.dtype(), parameter.dims());
    }

    println!("--- Exporting the model ---");
    let batch = Dim::new("batch", 1..=1024);
    let exported = export(|[x]| model.forward(x), [input("x", [&batch, &128.into()], Dtype::Bf16)])?.named("silu_mlp").with_params(&model);
    println!("Model successfully traced and exported!\n\nGraph Nodes Extracted:\n{}", exported.tabular(level));
    println!("{exported}");

    println!("--- Compiling the model ---");
    let compiled = exported.compile(&device)?;

    println!("--- Compiling and Packaging ---");
    let path = out.join("silu_mlp.gpk");
    exported.package().write(&path)?;
    let bytes = std::fs::metadata(&path)?.len();
    println!("Compilation finished! Self-contained package of {} kB saved to: {}", bytes.div_ceil(1000), path.display());
    let loaded = Package::open(&path)?.load(&device)?;

    let x = normal(&device, Dtype::Bf16, &[16, 128], &mut Seed(7))?;
    let eager_output = model.forward(&x)?;
    let [compiled_output] = &compiled.run([&x])?[..] else { return Err("the model has one output".into()) };
    let [packaged_output] = &loaded.run([&x])?[..] else { return Err("the model has one output".into()) };
    println!("compiled output shape: {:?}", compiled_output.dims());
    println!("packaged output shape: {:?}", packaged_output.dims());
    println!("eager output shape: {:?}", eager_output.dims());
    let mut all_equal = true;
    for (what, a, b) in [
        ("compiled correctness vs eager?", compiled_output, &eager_output),
        ("packaged correctness vs eager?", packaged_output, &eager_output),
        ("compiled vs packaged match?", compiled_output, packaged_output),
    ] {
        let comparison = compare(a, b)?;
        println!("{what} -> **{}** ({comparison})", if comparison.within(1e-5, 1e-5) { "True" } else { "False" });
        all_equal &= comparison.bit_equal;
    }
    for rows in [1, 1024, 1025] {
        let x = Tensor::zeros(&device, Dtype::Bf16, [rows, 128])?;
        match loaded.run([&x]) {
            Ok(outputs) => println!("batch {rows}: {:?}", outputs[0].dims()),
            Err(error) => println!("batch {rows}: {error}"),
        }
    }

    for (name, session) in [("compiled", &compiled), ("packaged", &loaded)] {
        println!("\n--- Running the {name} model with the profiler ---");
        let (warmup, steps) = (3, 5);
        let mut profiler = Profiler::start(StepSchedule::new().wait(0).warmup(warmup).active(steps).repeat(1));
        for step in 0..warmup + steps {
            let work = span(format!("step_{step}"));
            session.run([&x])?;
            drop(work);
            profiler.step();
        }
        let traces = profiler.finish();
        let [trace] = &traces[..] else { return Err("the schedule has one cycle".into()) };
        println!("{}", trace.key_averages());
        let path = out.join(format!("{name}_profiler.json"));
        trace.write(&path)?;
        println!("Profiling trace for the {name} model saved to {}", path.display());
    }
    if all_equal { Ok(()) } else { Err("the outputs differ".into()) }
}

/// The command-line arguments.
struct Args {
    device: Device,
    registered: bool,
    level: Level,
    out: PathBuf,
}

impl Args {
    fn parse() -> Result<Args, Box<dyn Error>> {
        let (mut device, mut registered, mut level, mut out) = (None, false, Level::Kernels, std::env::temp_dir());
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--device" => device = Some(Device::parse(&value()?)?),
                "--registered-op" => registered = true,
                "--level" => {
                    level = match value()?.as_str() {
                        "ops" => Level::Ops,
                        "kernels" => Level::Kernels,
                        other => return Err(format!("`{other}` is no level; the levels are `ops` and `kernels`").into()),
                    }
                }
                "--out" => out = value()?.into(),
                "--len" => drop(value()?),
                _ => {
                    let known = "`--device DEVICE`, `--registered-op`, `--level ops|kernels` and `--out FOLDER`";
                    return Err(format!("unknown argument `{word}`; the arguments are {known}").into());
                }
            }
        }
        // Where there is no GPU, the default device prints a note.
        Ok(Args { device: device.map_or_else(Device::default, Ok)?, registered, level, out })
    }
}
