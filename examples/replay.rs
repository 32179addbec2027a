//! A replay: twenty small launches that are captured once and replayed by one call, and then with another scalar.
//!
//! ```sh
//! cargo run --release --example replay -- --device cpu
//! ```

mod report;

use galatea::Update;
use galatea::prelude::*;

const BLOCK: usize = 1024;
const STEPS: usize = 20;

/// x = x + rate * (target - x): one small step.
#[kernel(BLOCK_SIZE = 1024)]
fn step<const BLOCK_SIZE: usize>(x: PtrMut<f32>, target: Ptr<f32>, rate: f32, n: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let v = load(x + offsets, mask = mask);
    store(x + offsets, v + rate * (load(target + offsets, mask = mask) - v), mask = mask);
}

fn steps(x: &mut Tensor<f32>, target: &Tensor<f32>, rate: f32) -> Result<()> {
    let n = x.len();
    (0..STEPS).try_for_each(|_| step::<BLOCK>(&mut *x, target, rate, n).grid(cdiv(n, BLOCK)).launch())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse(10_000)?;
    println!("{STEPS} steps of {len} elements on {device}");
    let data = report::random(len, 1);
    let target = device.tensor(&data)?;
    let mut x = device.zeros::<f32>(len)?;

    // Nothing runs here: the launches are written down.
    let mut replay = Replay::capture(device.stream(), || steps(&mut x, &target, 0.1))?;
    // Each launch borrows what the captured work reads and writes.
    replay.launch((&mut x, &target))?;
    let values = |x: &Tensor<f32>| Ok::<Vec<f64>, Error>(x.to_vec()?.into_iter().map(f64::from).collect());
    let rest = 0.9f64.powi(20);
    report::check("replayed", &values(&x)?, |i| f64::from(data[i]) * (1.0 - rest), 1e-5)?;

    // The same launches with another scalar change the replay in place.
    let update = replay.update(|| steps(&mut x, &target, 0.25))?;
    println!("with another rate: {update:?}");
    if update != (Update::InPlace { changed: STEPS }) {
        return Err("every step has another rate, and nothing else".into());
    }
    replay.launch((&mut x, &target))?;
    let rest = rest * 0.75f64.powi(20);
    report::check("updated", &values(&x)?, |i| f64::from(data[i]) * (1.0 - rest), 1e-5)?;

    let bytes = STEPS * 3 * size_of_val(&*data);
    println!("one by one:");
    report::measure(&device, bytes, || steps(&mut x, &target, 0.25))?;
    println!("as a replay:");
    report::measure(&device, bytes, || replay.launch((&mut x, &target)))?;
    Ok(())
}
