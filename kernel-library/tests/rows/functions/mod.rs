//! The functions at the root of the crate: against `f64`, for tensors of one to three axes, empty ones and views; and the text of every error.

mod activations;
mod arguments;
mod axes;
mod embeddings;
mod errors;
mod losses;
mod matmuls;
mod norms;
mod optimizers;
mod positions;
mod reductions;
mod rows;
mod selections;

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use galatea::prelude::*;

use crate::{Real, check, numbers};

/// The CPU, a simulated GPU of each architecture, and the first GPU if there is one.
fn devices() -> Vec<Device> {
    let older = Device::sim(Target::SM_80).expect("a simulated GPU opens");
    crate::devices().into_iter().chain([older]).collect()
}

/// One to three axes, with extents that fill no block. Equal row lengths share their tuning.
const SHAPES: [&[usize]; 4] = [&[33], &[5, 33], &[2, 3, 33], &[1, 3, 257]];

/// The number of elements of a shape, and the number of rows and columns.
fn extents(shape: &[usize]) -> (usize, usize, usize) {
    let columns = shape[shape.len() - 1];
    let rows = shape[..shape.len() - 1].iter().product();
    (rows * columns, rows, columns)
}

/// Runs a test for every float type: with all shapes for `f32`, and with one of three axes for the others.
macro_rules! of_every_type {
    ($test:ident, $shapes:expr) => {
        $test::<f32>(&$shapes);
        $test::<f16>(&$shapes[2..3]);
        $test::<bf16>(&$shapes[2..3]);
    };
}
use of_every_type;

/// A tensor of random numbers from `-scale` to `scale`, and its elements. The seed differs from run to run.
fn sample<T: Real>(device: Device, shape: &[usize], scale: f64) -> (Tensor<T>, Vec<T>) {
    static SEED: LazyLock<u64> = LazyLock::new(|| match std::env::var("GALATEA_SEED") {
        Ok(seed) => seed.parse().expect("GALATEA_SEED is a number"),
        Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.subsec_nanos().into()),
    });
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let seed = *SEED ^ (CALLS.fetch_add(1, Ordering::Relaxed) << 32);
    // Shown if the test fails. Tests run on several threads, so only a run of one test repeats its numbers.
    eprintln!("to repeat: GALATEA_SEED={} for this test alone", *SEED);
    let host = numbers::<T>(shape.iter().product(), scale, seed);
    (device.tensor_from(&host, shape).expect("the shape is that of the elements"), host)
}

/// Compares the shape, the device and the elements of a result, whose size counts as `size` where it is small.
#[track_caller]
fn agree<T: Real>(device: Device, got: &Tensor<T>, shape: &[usize], size: f64, want: impl Fn(usize) -> f64) {
    assert_eq!((got.shape(), got.device()), (shape, device));
    check(device, &got.to_vec().expect("the launch is right"), size, want);
}

/// The result of a call, which a second call gives with the same bits. The first call may tune.
#[track_caller]
fn in_both_calls<T: Real>(call: impl Fn() -> Result<Tensor<T>>) -> Tensor<T> {
    let [first, second] = [call().expect("the first call is right"), call().expect("the second call is right")];
    let bits = |y: &Tensor<T>| y.to_vec().expect("the launches are right").into_iter().map(|v| v.wide().to_bits()).collect::<Vec<_>>();
    assert!(bits(&first) == bits(&second), "two calls differ");
    second
}
