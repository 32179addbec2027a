//! Programs that change the same elements: a histogram by atomic additions, and a maximum with its index under a lock.
//!
//! ```sh
//! cargo run --release --example histogram -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

const BINS: usize = 64;
/// The numbers lie in `LOW .. LOW + BINS * WIDTH`.
const LOW: f32 = -4.0;
const WIDTH: f32 = 0.125;

// ANCHOR: naive
/// One atomic addition for each element. Additions to the same bin are serialized.
#[kernel(BLOCK_SIZE = 1024)]
fn count_each<const BLOCK_SIZE: usize>(x: Ptr<f32>, counts: PtrMut<i32>, n: usize, low: f32, width: f32) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let bin = floor((load(x + offsets, mask = mask) - low) / width) as i32;
    atomic_add(counts + bin, 1, mask = mask, sem = "relaxed");
}
// ANCHOR_END: naive

// ANCHOR: kernel
/// Counts a block within the program, and adds one number for each bin.
#[kernel(BLOCK_SIZE = 4096, BINS = 64)]
fn count_blocks<const BLOCK_SIZE: usize, const BINS: usize>(x: Ptr<f32>, counts: PtrMut<i32>, n: usize, low: f32, width: f32) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let bin = floor((load(x + offsets, mask = mask) - low) / width) as i32;
    let of_block = histogram(bin, BINS, mask = mask);
    atomic_add(counts + arange(0, BINS), of_block, sem = "relaxed");
}
// ANCHOR_END: kernel

// ANCHOR: launch
/// Adds the histogram of `x` to `counts`, with an atomic for each bin of a block.
pub(crate) fn histogram_by_blocks(x: &Tensor<f32>, counts: &mut Tensor<i32>) -> Result<()> {
    let n = x.len();
    count_blocks::<4096, BINS>(x, counts, n, LOW, WIDTH).grid(cdiv(n, 4096)).launch()
}

/// The same with an atomic for each element.
pub(crate) fn histogram_by_elements(x: &Tensor<f32>, counts: &mut Tensor<i32>) -> Result<()> {
    let n = x.len();
    count_each::<1024>(x, counts, n, LOW, WIDTH).grid(cdiv(n, 1024)).launch()
}
// ANCHOR_END: launch

// ANCHOR: lock
/// The largest element and its first index, in two tensors of one element that must change together. The caller sets `best` to -infinity.
#[kernel(BLOCK_SIZE = 4096)]
fn maximum<const BLOCK_SIZE: usize>(x: Ptr<f32>, best: PtrMut<f32>, at: PtrMut<i64>, lock: PtrMut<i32>, n: usize) {
    let first = program_id(0) * BLOCK_SIZE;
    let offsets = first + arange(0, BLOCK_SIZE);
    let v = load(x + offsets, mask = offsets < n, other = f32::NEG_INFINITY);
    let largest = max(v);
    let index = first + argmax(v);

    while atomic_cas(lock, 0, 1) == 1 {} // acquires: later loads see what the last owner stored
    let so_far = load(best);
    if largest > so_far || largest == so_far && index < load(at) {
        store(best, largest);
        store(at, index);
    }
    atomic_xchg(lock, 0); // releases: the next owner sees the stores
}
// ANCHOR_END: lock

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse((1 << 24) + 3)?;
    println!("histogram of {len} f32 in {BINS} bins on {device}");
    let data = report::random(len, 1);
    let x = device.tensor(&data)?;

    let mut want = [0; BINS];
    for x in &data {
        want[((f64::from(*x) - f64::from(LOW)) / f64::from(WIDTH)) as usize] += 1;
    }
    let mut counts = device.zeros::<i32>(BINS)?;
    histogram_by_blocks(&x, &mut counts)?;
    let check = |name: &str, counts: &Tensor<i32>| {
        let got: Vec<f64> = counts.to_vec()?.into_iter().map(f64::from).collect();
        report::check(name, &got, |bin| f64::from(want[bin]), 0.0)
    };
    check("counts by blocks", &counts)?;
    counts.fill(0)?;
    histogram_by_elements(&x, &mut counts)?;
    check("counts by elements", &counts)?;

    let (mut best, mut at, mut lock) = (device.full(1, f32::NEG_INFINITY)?, device.zeros::<i64>(1)?, device.zeros::<i32>(1)?);
    maximum::<4096>(&x, &mut best, &mut at, &mut lock, len).grid(cdiv(len, 4096)).launch()?;
    // Of equal elements `max_by` gives the last one, so the order is reversed.
    let first = (0..len).rev().max_by(|a, b| data[*a].total_cmp(&data[*b])).unwrap_or_default();
    let largest = data.get(first).copied().unwrap_or(f32::NEG_INFINITY);
    let (best, at) = (best.to_vec()?[0], at.to_vec()?[0]);
    println!("the largest element is {best}, at {at}");
    if (best, at) != (largest, first as i64) {
        return Err(format!("the largest element is {largest}, at {first}").into());
    }

    report::measure(&device, size_of_val(&*data), || histogram_by_blocks(&x, &mut counts))?;
    report::measure(&device, size_of_val(&*data), || histogram_by_elements(&x, &mut counts))?;
    Ok(())
}
