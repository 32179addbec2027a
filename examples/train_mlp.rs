//! Trains a perceptron with a hidden layer to compute sin on [-pi, pi]: a training step, recorded once with its gradients and its optimizer, and run many times.
//!
//! ```sh
//! cargo run --release --features bench-report --example train_mlp -- --device cpu --steps 2000
//! ```
//!
//! Prints the loss as it falls, compares the first steps with those of the function that was recorded, and writes a plot of the losses. `--out FOLDER` is where the plot goes; the
//! folder for temporary files by default.

use std::error::Error;
use std::path::PathBuf;

use galatea::bench::chart::{Curve, CurveChart, CurvePoint};
use galatea::graph::{Level, Session, export, input};
use galatea::ops::{Tensor, compare};
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_library::nn::{Linear, Seed};
use kernel_library::{AdamW, ops};

/// The number of hidden units.
const HIDDEN: usize = 64;
/// The number of points of a step.
const BATCH: usize = 128;
/// The weights and biases of both layers.
const WEIGHTS: usize = 4;
/// Those, their two moments, and the number of the step.
const STATE: usize = 3 * WEIGHTS + 1;
/// The inputs of a step: points, values and the state.
const INPUTS: usize = 2 + STATE;

/// The state before the first step.
fn initial(device: &Device) -> Result<Vec<Tensor>> {
    let mut seed = Seed(42);
    let mut weights = Vec::new();
    for (inner, columns) in [(1, HIDDEN), (HIDDEN, 1)] {
        let Linear { weight, bias } = Linear::init(device, Dtype::F32, inner, columns, &mut seed)?;
        weights.extend([Some(weight), bias].into_iter().flatten());
    }
    let moments = weights.iter().chain(&weights).map(Tensor::zeros_like).collect::<Result<Vec<_>>>()?;
    let step = Tensor::zeros(device, Dtype::I64, [0usize; 0])?;
    Ok(weights.into_iter().chain(moments).chain([step]).collect())
}

fn model(x: &Tensor, weights: &[Tensor]) -> Result<Tensor> {
    let hidden = ops::tanh(&ops::linear(x, &weights[0], Some(&weights[1]))?)?;
    ops::linear(&hidden, &weights[2], Some(&weights[3]))
}

// ANCHOR: step
/// A training step: the loss, and the state after the step.
fn train([x, y, state @ ..]: [&Tensor; INPUTS]) -> Result<Vec<Tensor>> {
    let mut state: Vec<Tensor> = state.iter().map(|tensor| tensor.detach()).collect();
    let (weights, rest) = state.split_at_mut(WEIGHTS);
    let (m, rest) = rest.split_at_mut(WEIGHTS);
    let (v, step) = rest.split_at_mut(WEIGHTS);
    for weight in weights.iter_mut() {
        *weight = weight.clone().requires_grad()?;
    }
    let loss = ops::mse_loss(&model(x, weights)?, y)?;
    let mut gradients = loss.backward()?;
    ops::count_step(&mut step[0])?;
    let parameters = AdamW { lr: 5e-3, weight_decay: 0.0, ..AdamW::default() };
    for ((weight, m), v) in weights.iter_mut().zip(m).zip(v) {
        if let Some(gradient) = gradients.take(weight) {
            ops::adamw(weight, &gradient, m, v, &step[0], &parameters)?;
        }
        *weight = weight.detach();
    }
    Ok([loss.detach()].into_iter().chain(state).collect())
}
// ANCHOR_END: step

/// Points from -pi to pi, and the sines of them.
fn batch(device: &Device, seed: &mut Seed) -> Result<[Tensor; 2]> {
    let points: Vec<f32> = (0..BATCH).map(|_| std::f32::consts::PI * seed.uniform()).collect();
    let sines: Vec<f32> = points.iter().map(|x| x.sin()).collect();
    Ok([device.tensor_from(&points, [BATCH, 1])?.into(), device.tensor_from(&sines, [BATCH, 1])?.into()])
}

fn main() -> Result<(), Box<dyn Error>> {
    let Args { device, steps, out } = Args::parse()?;
    let mut state = initial(&device)?;
    let rows = Dim::new("batch", 1..=1024);
    let mut inputs = vec![input("x", [&rows, &1.into()], Dtype::F32), input("y", [&rows, &1.into()], Dtype::F32)];
    for (number, tensor) in state.iter().enumerate() {
        let (kind, layer) = (["weights", "m", "v", "step"][number / WEIGHTS], number % WEIGHTS);
        inputs.push(input(&format!("{kind}{layer}"), tensor.dims(), tensor.dtype()));
    }
    let inputs: [_; INPUTS] = inputs.try_into().map_err(|_| "a step has another number of inputs")?;
    let graph = export(train, inputs)?.named("train_mlp");
    println!("{}", graph.text(Level::Ops));
    println!("{}", graph.flops_at(&[("batch", BATCH as i64)])?);

    let session = Session::new(graph, &device)?;
    let (mut seed, mut losses) = (Seed(7), Vec::with_capacity(steps));
    for number in 0..steps {
        let points = batch(&device, &mut seed)?;
        let tensors: Vec<&Tensor> = points.iter().chain(&state).collect();
        let mut outputs = session.run(&tensors)?;
        if number < 3 {
            let eager = train(tensors.try_into().map_err(|_| "a step has another number of inputs")?)?;
            let pairs = eager.iter().zip(&outputs);
            let is_equal = pairs.map(|(eager, recorded)| Ok(compare(eager, recorded)?.bit_equal)).collect::<Result<Vec<bool>>>()?;
            if is_equal.contains(&false) {
                return Err(format!("step {}: the recorded step and the function differ", number + 1).into());
            }
            println!("step {}: {} results of the recorded step have the bits of the function's", number + 1, is_equal.len());
        }
        let loss = outputs.remove(0).to_vec::<f32>()?[0];
        state = outputs;
        losses.push(loss);
        if (number + 1).is_multiple_of((steps / 10).max(1)) {
            println!("step {}: loss {loss:.6}", number + 1);
        }
    }

    let points = Tensor::from(device.tensor_from(&[-3.0f32, -1.0, 0.0, 0.5, 2.0], [5, 1])?);
    let found = model(&points, &state[..WEIGHTS])?.to_vec::<f32>()?;
    for (x, found) in points.to_vec::<f32>()?.into_iter().zip(found) {
        println!("sin({x}) is {:.4}, and the model gives {found:.4}", x.sin());
    }
    let path = out.join("train_mlp.svg");
    std::fs::write(&path, plot(&losses).svg())?;
    println!("wrote {}", path.display());

    let last = &losses[steps.saturating_sub(10)..];
    let mean = last.iter().sum::<f32>() / last.len() as f32;
    println!("final loss {mean:.6}, the mean of the last {} steps", last.len());
    // sin has a mean square of 0.5, which is the loss of a model that gives 0.
    let most = if steps >= 1000 { 1e-3 } else { 0.5 };
    if mean < most { Ok(()) } else { Err(format!("the loss is not below {most}").into()) }
}

/// The losses over the steps, each curve point the mean of up to 100 steps, in the range of them.
fn plot(losses: &[f32]) -> CurveChart {
    let width = losses.len().div_ceil(100).max(1);
    let points = losses.chunks(width).enumerate().map(|(number, chunk)| {
        let (low, high) = chunk.iter().fold((f32::MAX, f32::MIN), |(low, high), loss| (low.min(*loss), high.max(*loss)));
        let mean = chunk.iter().sum::<f32>() / chunk.len() as f32;
        let [low, y, high] = [low, mean, high].map(|loss| f64::from(loss.sqrt()));
        CurvePoint { x: (number * width + chunk.len() / 2 + 1) as f64, low, y, high }
    });
    CurveChart {
        caption: "A perceptron that learns sin".into(),
        x: "step".into(),
        y: "root of the mean square error".into(),
        log_x: false,
        curves: vec![Curve { name: "recorded step, AdamW".into(), points: points.collect() }],
    }
}

/// The command-line arguments.
struct Args {
    device: Device,
    steps: usize,
    out: PathBuf,
}

impl Args {
    fn parse() -> Result<Args, Box<dyn Error>> {
        let (mut device, mut steps, mut out) = (None, None, std::env::temp_dir());
        let mut words = std::env::args().skip(1);
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("`{word}` needs a value"));
            match word.as_str() {
                "--device" => device = Some(Device::parse(&value()?)?),
                "--steps" => steps = Some(value()?.parse::<usize>().map_err(|_| "`--steps` needs a number")?.max(1)),
                "--out" => out = value()?.into(),
                _ => {
                    let known = "`--device cpu|cuda|sim`, `--steps N` and `--out FOLDER`";
                    return Err(format!("unknown argument `{word}`; the arguments are {known}").into());
                }
            }
        }
        let device = device.map_or_else(Device::default, Ok)?;
        // A simulated GPU is slow.
        let default_steps = if device.is_sim() { 20 } else { 2000 };
        Ok(Args { device, steps: steps.unwrap_or(default_steps), out })
    }
}
