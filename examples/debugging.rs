//! Four mistakes, and how each of them shows: a checked launch, an assertion, printing, and a simulated GPU.
//!
//! ```sh
//! cargo run --release --features sim --example debugging -- --device cpu
//! ```

mod report;

use galatea::prelude::*;
use galatea::{Target, capture_prints};

// ANCHOR: differences
/// `y[i] = x[i + 1] - x[i]`. The mask admits `i = n - 1`, for which `x[i + 1]` is outside the tensor.
#[kernel(BLOCK_SIZE = 128)]
fn differences<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let i = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = i < n;
    store(y + i, load(x + i + 1, mask = mask) - load(x + i, mask = mask), mask = mask);
}
// ANCHOR_END: differences

// ANCHOR: logarithms
#[kernel(BLOCK_SIZE = 128)]
fn logarithms<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let i = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let v = load(x + i, mask = i < n, other = 1.0);
    device_assert!(v > 0.0, "the logarithm of a number that is not positive");
    store(y + i, log(v), mask = i < n);
}
// ANCHOR_END: logarithms

// ANCHOR: printing
/// Sums each block, and prints the sum.
#[kernel(BLOCK_SIZE = 128)]
fn block_sums<const BLOCK_SIZE: usize>(x: Ptr<f32>, sums: PtrMut<f32>, n: usize) {
    let i = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let total = sum(load(x + i, mask = i < n));
    let block = program_id(0);
    device_print!("block {block} of {n} elements: {}", total);
    store(sums + program_id(0), total);
}
// ANCHOR_END: printing

// ANCHOR: smooth
/// `x[i] = (x[i] + x[i + 1]) / 2` in place: one thread reads the element that another thread writes.
#[kernel(BLOCK_SIZE = 128)]
fn smooth_in_place<const BLOCK_SIZE: usize>(x: PtrMut<f32>, n: usize) {
    let i = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = i + 1 < n;
    let mean = (load(x + i, mask = mask) + load(x + i + 1, mask = mask)) / 2.0;
    store(x + i, mean, mask = mask);
}
// ANCHOR_END: smooth

/// Prints an error that is expected; without it the example has failed.
fn expect<T>(what: &str, result: Result<T>, words: &[&str]) -> Result<(), Box<dyn std::error::Error>> {
    let Err(error) = result else { return Err(format!("{what}: the mistake was not found").into()) };
    println!("--- {what}\n{error}\n");
    let text = error.to_string();
    match words.iter().find(|word| !text.contains(**word)) {
        Some(word) => Err(format!("{what}: the error does not name `{word}`").into()),
        None => Ok(()),
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse(1000)?;
    // Every program prints, and on the simulator each access is checked: a thousand elements show as much as a million.
    let n = len.clamp(129, 1000);
    let grid = cdiv(n, 128);
    println!("mistakes in {n} elements on {device}\n");
    let x = device.tensor(&report::random(n, 1))?;
    let mut y = device.zeros::<f32>(n)?;

    // ANCHOR: unchecked
    // Not checked: the access outside the tensor reads 0, and the last difference is silently wrong.
    differences::<128>(&x, &mut y, n).grid(grid).launch()?;
    assert_eq!(y.to_vec()?[n - 1], -x.to_vec()?[n - 1]);
    // ANCHOR_END: unchecked
    // ANCHOR: checked
    let result = differences::<128>(&x, &mut y, n).grid(grid).checked().launch();
    assert!(matches!(&result, Err(Error::OutOfBounds(access)) if access.index == n as i64));
    // ANCHOR_END: checked
    expect(
        "an access outside the tensor",
        result,
        &["out of bounds in kernel `differences`: load at index", "debugging.rs", "help: mask the access"],
    )?;

    let result = logarithms::<128>(&x, &mut y, n).grid(grid).checked().launch();
    expect("an assertion", result, &["in kernel `logarithms`: assertion failed: the logarithm of a number that is not positive"])?;

    // ANCHOR: capture
    let mut sums = device.zeros::<f32>(grid)?;
    let (result, lines) = capture_prints(|| block_sums::<128>(&x, &mut sums, n).grid(grid).launch());
    result?;
    // ANCHOR_END: capture
    println!("--- printing\n{}\n", lines.join("\n"));
    let printed: Vec<f64> = lines.iter().filter_map(|line| line.rsplit_once(": ")?.1.parse().ok()).collect();
    let all: Vec<f64> = x.to_vec()?.into_iter().map(f64::from).collect();
    report::check("printed sums", &printed, |block| all.chunks(128).nth(block).unwrap_or_default().iter().sum(), 1e-5)?;
    assert_eq!(printed.len(), grid, "every program prints one line");

    // ANCHOR: race
    let simulated = Device::sim(Target::SM_90A)?;
    let mut z = simulated.tensor(&report::random(n, 1))?;
    let result = smooth_in_place::<128>(&mut z, n).grid(grid).launch();
    // ANCHOR_END: race
    expect("a race", result, &["kernel `smooth_in_place`: global memory race", "are not ordered", "debugging.rs", "of argument `x`"])?;

    // ANCHOR: uninitialised
    let unwritten = simulated.empty::<f32>(n)?;
    let result = block_sums::<128>(&unwritten, &mut simulated.zeros::<f32>(grid)?, n).grid(grid).launch();
    // ANCHOR_END: uninitialised
    expect(
        "memory that nothing has written",
        result,
        &["kernel `block_sums`", "is read before it is written", "debugging.rs", "of argument `x`"],
    )?;

    println!("--- what checking costs: a launch without and with it");
    report::measure(&device, 8 * n, || differences::<128>(&x, &mut y, n).grid(grid).launch())?;
    let longer = device.zeros::<f32>(n + 1)?;
    report::measure(&device, 8 * n, || differences::<128>(&longer, &mut y, n).grid(grid).checked().launch())?;
    Ok(())
}
