//! The cost of the guards: the checks of a run's inputs, without a run.
//!
//! ```sh
//! cargo bench -p galatea-benches --bench guards
//! ```
//!
//! Fails if the guards of the model take more than [`LIMIT`], or if any guards allocate.

#[path = "../kernel-runtime/tests/allocations/mod.rs"]
mod counted;

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use counted::allocations;
use galatea::graph::{Input, Session, export_slice, input};
use galatea::ops::Tensor;
use galatea::{Device, Dim, Dtype};

/// The most time for the guards of a model with one input, as in the example `silu_mlp`.
const LIMIT: Duration = Duration::from_nanos(200);

/// How many checks a round has, and how many rounds there are.
const CHECKS: u32 = 1000;
const ROUNDS: usize = 1001;

fn main() -> Result<(), Box<dyn Error>> {
    let batch = Dim::new("batch", 1..=1024);
    let sequence = Dim::new("sequence", 1..=4096);
    let model = [input("x", [&batch, &128.into()], Dtype::Bf16)];
    let attention = ["q", "k", "v"].map(|name| input(name, [&batch, &8.into(), &sequence, &64.into()], Dtype::Bf16));
    let derived = [input("x", [&batch, &128.into()], Dtype::Bf16), input("y", [&(&batch * 128).cdiv(1024) + 1], Dtype::F32)];
    let many: Vec<Input> = (0..16).map(|number| input(&format!("x{number}"), [&batch, &128.into()], Dtype::Bf16)).collect();
    println!("inputs | median | allocations");
    let of_model = time("one of two axes, as in `silu_mlp`", model.into(), &[&[16, 128]])?;
    time("three of four axes, with two named dims", attention.into(), &[&[2, 8, 512, 64][..]; 3])?;
    time("two, one extent an expression", derived.into(), &[&[16, 128], &[3]])?;
    time("sixteen of two axes", many, &[&[16, 128][..]; 16])?;
    if of_model > LIMIT { Err(format!("the guards of the model take {of_model:?}, and {LIMIT:?} is the limit").into()) } else { Ok(()) }
}

/// Prints the median time of a check of tensors with these extents, and returns it.
fn time(what: &str, inputs: Vec<Input>, extents: &[&[usize]]) -> Result<Duration, Box<dyn Error>> {
    let device = Device::cpu();
    let session = Session::new(export_slice(|_| Ok(()), inputs)?, &device)?;
    let declared = session.plan().inputs.iter().zip(extents);
    let tensors: Vec<Tensor> = declared.map(|(input, dims)| Tensor::zeros(&device, input.ty.dtype, *dims)).collect::<Result<_, _>>()?;
    let given: Vec<&Tensor> = tensors.iter().collect();
    session.check(&given)?;
    let before = allocations();
    let mut times = [Duration::ZERO; ROUNDS];
    for time in &mut times {
        let start = Instant::now();
        for _ in 0..CHECKS {
            session.check(black_box(&given))?;
        }
        *time = start.elapsed();
    }
    let allocated = allocations() - before;
    times.sort_unstable();
    let median = times[ROUNDS / 2] / CHECKS;
    println!("{what} | {median:?} | {allocated}");
    if allocated == 0 { Ok(median) } else { Err(format!("{allocated} allocations").into()) }
}
