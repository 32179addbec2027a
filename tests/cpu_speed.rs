//! The run time of kernels on the CPU. Ignored by default, because it is meaningful only in release, beside another build of it:
//! `cargo test --release -p galatea-tests --test cpu_speed -- --ignored --nocapture`

use std::hint::black_box;
use std::time::{Duration, Instant};

use galatea::prelude::*;
use kernel_library::kernels;

const N: usize = 1 << 18;
const COLUMNS: usize = 1000;
const ROWS: usize = 256;

#[kernel(BLOCK_SIZE = [1024])]
fn vector_add<const BLOCK_SIZE: usize>(x: Ptr<f32>, y: Ptr<f32>, out: PtrMut<f32>, n: usize) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    store(out + at, load(x + at, mask = at < n) + load(y + at, mask = at < n), mask = at < n);
}

#[kernel(T = [f32, bf16], BLOCK_SIZE = [1024])]
fn silu<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let v = load(x + at, mask = at < n) as f32;
    store(y + at, (v * sigmoid(v)) as T, mask = at < n);
}

#[kernel(BLOCK_SIZE = [1024])]
fn scale_in_place<const BLOCK_SIZE: usize>(x: PtrMut<f32>, n: usize, factor: f32) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    store(x + at, load(x + at, mask = at < n) * factor, mask = at < n);
}

/// Programs that may meet, for all that the executor can see: where each element goes is data.
#[kernel(BLOCK_SIZE = [1024])]
fn scatter<const BLOCK_SIZE: usize>(x: Ptr<f32>, indices: Ptr<i64>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    store(y + load(indices + at, mask = at < n), load(x + at, mask = at < n), mask = at < n);
}

/// Whole rows that go where data says.
#[kernel(BLOCK_SIZE = [1024])]
fn scatter_rows<const BLOCK_SIZE: usize>(x: Ptr<f32>, indices: Ptr<i64>, y: PtrMut<f32>, columns: usize) {
    let column = arange(0, BLOCK_SIZE);
    let to = load(indices + program_id(0)) * columns;
    let v = load(x + program_id(0) * columns + column, mask = column < columns);
    store(y + to + column, v, mask = column < columns);
}

#[kernel(BLOCK_SIZE = [1024])]
fn count_bytes<const BLOCK_SIZE: usize>(x: Ptr<u8>, counts: PtrMut<i32>, n: usize) {
    let at = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    atomic_add(counts + load(x + at, mask = at < n) as i64, 1, mask = at < n, sem = "relaxed");
}

/// Prints the least time of many launches.
fn time(name: &str, mut launch: impl FnMut() -> Result<()>) -> Result<()> {
    launch()?;
    let end = Instant::now() + Duration::from_millis(400);
    let mut best = Duration::MAX;
    while Instant::now() < end {
        let start = Instant::now();
        launch()?;
        best = best.min(start.elapsed());
    }
    println!("{name:16} {:9.2} us", best.as_secs_f64() * 1e6);
    Ok(())
}

#[test]
#[ignore = "a measurement"]
fn kernels_on_the_cpu() -> Result<()> {
    let device = Device::cpu();
    let floats: Vec<f32> = (0..N).map(|i| (i % 1000) as f32 * 0.02 - 10.0).collect();
    let x = device.tensor(&floats)?;
    let half = device.tensor(&floats.iter().map(|x| bf16::from_f32(*x)).collect::<Vec<_>>())?;
    let weight = device.tensor(&floats[..COLUMNS])?;
    let bytes = device.tensor(&(0..N).map(|i| ((i * 7919) >> 3) as u8).collect::<Vec<_>>())?;
    let indices = device.tensor(&(0..N as i64).map(|i| i * 7919 % N as i64).collect::<Vec<_>>())?;
    let rows = device.tensor(&(0..ROWS as i64).map(|i| i * 79 % ROWS as i64).collect::<Vec<_>>())?;
    let (mut y, mut y_half) = (device.empty_like(&x)?, device.empty_like(&half)?);
    let [mut mean, mut rstd] = [device.empty::<f32>(ROWS)?, device.empty::<f32>(ROWS)?];
    let [mut m, mut v] = [device.zeros::<f32>(N)?, device.zeros::<f32>(N)?];
    let mut counts = device.zeros::<i32>(256)?;
    let grid = N / 1024;

    time("vector_add", || vector_add::<1024>(&x, &x, &mut y, N).grid(grid).launch())?;
    time("silu f32", || silu::<f32, 1024>(&x, &mut y, N).grid(grid).launch())?;
    time("silu bf16", || silu::<bf16, 1024>(&half, &mut y_half, N).grid(grid).launch())?;
    time("scale_in_place", || scale_in_place::<1024>(&mut y, N, 1.0).grid(grid).launch())?;
    time("adamw", || kernels::adamw::<f32, 1024>(&mut y, &x, &mut m, &mut v, N, 0.1, 0.9, 0.999, 1e-8, 0.0, 1).grid(grid).launch())?;
    time("softmax", || kernels::softmax(&x, &mut y, COLUMNS).grid(|_| ROWS).launch())?;
    time("layer_norm", || {
        kernels::layer_norm(&x, &weight, &weight, &mut y, &mut mean, &mut rstd, ROWS, COLUMNS, 1e-5)
            .grid(|config| cdiv(ROWS, config.ROWS))
            .launch()
    })?;
    time("row_sum", || kernels::row_sum(&x, &mut mean, COLUMNS).grid(|_| ROWS).launch())?;
    time("transpose", || kernels::transpose(&x, &mut y, ROWS, COLUMNS).grid(|c| (cdiv(ROWS, c.ROWS), cdiv(COLUMNS, c.COLUMNS))).launch())?;
    time("scatter", || scatter::<1024>(&x, &indices, &mut y, N).grid(grid).launch())?;
    time("scatter_rows", || scatter_rows::<1024>(&x, &rows, &mut y, COLUMNS).grid(ROWS).launch())?;
    time("count_bytes", || count_bytes::<1024>(&bytes, &mut counts, N).grid(grid).launch())?;
    time("bin_counts", || kernels::bin_counts::<f32, 64, 1024>(&x, &mut counts, N, -10.0, 10.0).grid(64).launch())?;
    // Small enough that what a launch costs by itself is a part of it.
    time("small add", || vector_add::<1024>(&x, &x, &mut y, 1 << 16).grid(64).launch())?;
    black_box((y, y_half, counts));
    Ok(())
}
