//! Dropout without a mask in memory: the random number of an element is a function of a seed and its index.
//!
//! ```sh
//! cargo run --release --example dropout -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

// ANCHOR: kernel
/// `y = x / (1 - p)`, or 0 with probability `p`.
#[kernel(BLOCK_SIZE = 1024)]
fn dropout_block<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, p: f32, seed: u64) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let v = load(x + offsets, mask = mask);
    let is_kept = rand(seed, offsets) >= p;
    store(y + offsets, select(is_kept, v / (1.0 - p), 0.0), mask = mask);
}
// ANCHOR_END: kernel

// ANCHOR: four
/// The same, with four numbers of one run of the generator: a program has four blocks, one for each of them.
#[kernel(BLOCK_SIZE = 1024)]
fn dropout_four_blocks<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, p: f32, seed: u64) {
    let first = 4 * program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let drop = |offsets, number| {
        let v = load(x + offsets, mask = offsets < n);
        store(y + offsets, select(number >= p, v / (1.0 - p), 0.0), mask = offsets < n)
    };
    let (a, b, c, d) = rand4x(seed, program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE));
    drop(first, a);
    drop(first + BLOCK_SIZE, b);
    drop(first + 2 * BLOCK_SIZE, c);
    drop(first + 3 * BLOCK_SIZE, d);
}
// ANCHOR_END: four

// ANCHOR: launch
/// Drops each element of `x` with probability `p`. The same seed drops the same elements.
pub(crate) fn dropout(x: &Tensor<f32>, y: &mut Tensor<f32>, p: f32, seed: u64) -> Result<()> {
    let n = x.len();
    dropout_block::<1024>(x, y, n, p, seed).grid(cdiv(n, 1024)).launch()
}

/// Like [`dropout`], with a quarter of the random numbers' cost; the same seed drops other elements than there.
pub(crate) fn dropout4(x: &Tensor<f32>, y: &mut Tensor<f32>, p: f32, seed: u64) -> Result<()> {
    let n = x.len();
    dropout_four_blocks::<1024>(x, y, n, p, seed).grid(cdiv(n, 4 * 1024)).launch()
}
// ANCHOR_END: launch

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse((1 << 24) + 3)?;
    const P: f32 = 0.25;
    println!("dropout of {len} f32 with p = {P} on {device}");
    let data = report::random(len, 1);
    let x = device.tensor(&data)?;
    let (mut y, mut again) = (device.zeros::<f32>(len)?, device.zeros::<f32>(len)?);

    type Dropout = fn(&Tensor<f32>, &mut Tensor<f32>, f32, u64) -> Result<()>;
    for (name, run) in [("dropout", dropout as Dropout), ("dropout by four", dropout4)] {
        run(&x, &mut y, P, 7)?;
        // ANCHOR: check
        let got: Vec<f64> = y.to_vec()?.into_iter().map(f64::from).collect();
        // Each element is either dropped or scaled ..
        let scaled = |i: usize| f64::from(data[i]) / (1.0 - f64::from(P));
        report::check(name, &got, |i| if got[i] == 0.0 { 0.0 } else { scaled(i) }, 1e-6)?;
        // .. and as many are dropped as a fair coin of this weight drops: within five standard deviations.
        let dropped = got.iter().filter(|y| **y == 0.0).count() as f64;
        let (mean, deviation) = (len as f64 * f64::from(P), (len as f64 * f64::from(P * (1.0 - P))).sqrt());
        println!("{dropped} of {len} elements are dropped, expected {mean} with a deviation of {deviation:.0}");
        if (dropped - mean).abs() > 5.0 * deviation + 1.0 {
            return Err("the number of dropped elements is not random".into());
        }
        // The gradient goes where the element went: the same seed drops the same elements.
        run(&device.full(len, 1.0f32)?, &mut again, P, 7)?;
        let gradient = again.to_vec()?;
        report::check("its gradient", &got, |i| scaled(i) * f64::from(gradient[i]) * (1.0 - f64::from(P)), 1e-6)?;
        // ANCHOR_END: check
        run(&x, &mut again, P, 8)?;
        if len > 100 && again.to_vec()? == y.to_vec()? {
            return Err("another seed drops the same elements".into());
        }
    }
    report::measure(&device, 2 * size_of::<f32>() * len, || dropout(&x, &mut y, P, 7))?;
    report::measure(&device, 2 * size_of::<f32>() * len, || dropout4(&x, &mut y, P, 7))?;
    Ok(())
}
