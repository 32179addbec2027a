//! The cost of an op: a launch in an op beside the same launch in a plain function, until it is queued.
//!
//! ```sh
//! cargo bench -p galatea-benches --bench ops
//! ```
//!
//! Rounds of both alternate. Each launch has one program, so that on a GPU the queue does not fill, and on the CPU little is computed. Fails if the op allocates more
//! than its launch.

#[path = "../kernel-runtime/tests/allocations/mod.rs"]
mod counted;

use std::error::Error;
use std::time::{Duration, Instant};

use counted::allocations;
use galatea::op;
use galatea::ops::{Any, Tensor};
use galatea::prelude::*;

/// How many launches a round has, and how many rounds there are.
const LAUNCHES: u32 = 500;
const ROUNDS: usize = 201;

#[kernel(T = [f32], BLOCK = 64)]
fn scale_elements<T: Float, const BLOCK: usize>(x: PtrMut<T>, by: T, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(x + at, load(x + at, mask = at < n) * by, mask = at < n);
}

fn scale(x: &mut Tensor, by: f32) -> Result<()> {
    let n = x.numel();
    scale_elements::<Any, 64>(x, by, &n).grid(n.cdiv(64)).launch()
}

#[op("bench::scale_", backward(by) = |grad: &Tensor, _| Ok::<_, galatea::Error>(grad.clone()))]
fn scale_op(x: &mut Tensor, by: f32) -> Result<()> {
    scale(x, by)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("device | plain function | op | difference | allocations of the function, and of the op");
    let mut devices = vec![Device::cpu(), Device::default()?];
    devices.dedup();
    for device in devices {
        let mut x: Tensor = device.tensor(&[1.0f32; 32])?.into();
        let (mut plain, mut op) = (Vec::new(), Vec::new());
        let mut allocated = [0; 2];
        for _ in 0..ROUNDS {
            plain.push(round(&device, &mut allocated[0], || scale(&mut x, 1.0))?);
            op.push(round(&device, &mut allocated[1], || scale_op(&mut x, 1.0))?);
        }
        let [plain, op] = [plain, op].map(|mut times: Vec<Duration>| {
            times.sort_unstable();
            times[ROUNDS / 2].as_nanos() as f64 / f64::from(LAUNCHES)
        });
        let [of_launches, of_ops] = allocated;
        let calls = ROUNDS * LAUNCHES as usize;
        println!("{device} | {plain:.0} ns | {op:.0} ns | {:.0} ns | {}, {}", op - plain, of_launches / calls, of_ops / calls);
        if of_ops > of_launches {
            return Err(format!("the ops allocate {of_ops} times, and their launches {of_launches} times").into());
        }
    }
    Ok(())
}

/// The time until the launches of a round are queued. Counts allocations, except those of the first launch.
fn round(device: &Device, allocated: &mut usize, mut launch: impl FnMut() -> Result<()>) -> Result<Duration> {
    launch()?;
    device.synchronize()?;
    let (before, start) = (allocations(), Instant::now());
    for _ in 0..LAUNCHES {
        launch()?;
    }
    let time = start.elapsed();
    *allocated += allocations() - before;
    device.synchronize()?;
    Ok(time)
}
