//! A convolution along sequences, and a step of an optimizer over a list of tensors.

use galatea::prelude::*;
use galatea::{Dtype, Result};

use crate::work::{Case, FLOATS, Run, Work, addresses, by_dtype, in_place, input, launch, lengths, output, starts, uneven_lengths};

/// A convolution of each channel with four weights of its own, which sees no later elements, over the flat index of `[batch, channels, length]`.
#[autotune(configs = product(BLOCK_SIZE = [512, 1024, 2048, 4096], num_warps = [4, 8]) if BLOCK_SIZE >= 128 * num_warps, key = [n])]
#[kernel(T = [f32, bf16])]
pub fn causal_conv1d<T: Float, const BLOCK_SIZE: usize>(x: Ptr<T>, weight: Ptr<T>, y: PtrMut<T>, n: usize, channels: usize, length: usize) {
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let at = offsets % length;
    let channel = offsets / length % channels;
    let mut total = zeros::<f32>([BLOCK_SIZE]);
    for k in static_range(0, 4) {
        let w = load(weight + channel * 4 + k, mask = mask) as f32;
        total += w * load(x + offsets + k - 3, mask = mask & (at + k >= 3)) as f32;
    }
    store(y + offsets, total as T, mask = mask);
}

/// Causal depthwise convolution: `[batch, channels, length]`.
pub const CAUSAL_CONV1D: Work = Work {
    name: "causal_conv1d",
    dtypes: FLOATS,
    sizes: [&[8, 2048, 2048], &[7, 2047, 2049], &[2, 256, 1000]],
    test_sizes: &[&[2, 8, 64], &[3, 5, 37], &[1, 1, 1], &[2, 3, 0]],
    tensors: |s| vec![input("x", s.iter().product()), input("weight", 4 * s[1]), output("y", s.iter().product())],
    launch: by_dtype!(launch_causal_conv1d),
    reference: |s, host| {
        let mut y = Vec::new();
        for (i, row) in host["x"].chunks(s[2].max(1)).enumerate() {
            let weights = &host["weight"][i % s[1] * 4..][..4];
            y.extend((0..row.len()).map(|t| (0..=t.min(3)).map(|back| weights[3 - back] * row[t - back]).sum::<f64>()));
        }
        vec![("y", y)]
    },
    tolerance: 1.0,
};

fn launch_causal_conv1d<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    let (x, weight, mut y) = (case.read::<T>("x"), case.read::<T>("weight"), case.write::<T>("y"));
    let n = s.iter().product();
    launch!(run, causal_conv1d(&*x, &*weight, &mut *y, n, s[1], s[2]).grid(|config| cdiv(n, config.BLOCK_SIZE)));
    Ok(())
}

/// A step of AdamW on a list of tensors: `list` has the addresses of the weights, of the gradients, and of the two moments.
///
/// It is not autotuned, because tuning cannot restore tensors that it knows only by their addresses.
#[kernel(T = [f32, bf16], BLOCK_SIZE = [1024], unchecked)]
pub fn adamw_list<T: Float, const BLOCK_SIZE: usize>(list: Ptr<i64>, lengths: Ptr<i64>, count: usize, rate: f32, decay: f32, step: f32) {
    let tensor = program_id(1);
    let n = load(lengths + tensor);
    let weights = load(list + tensor) as PtrMut<T>;
    let gradients = load(list + count + tensor) as Ptr<T>;
    let m = load(list + 2 * count + tensor) as PtrMut<f32>;
    let v = load(list + 3 * count + tensor) as PtrMut<f32>;
    let offsets = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = offsets < n;
    let g = load(gradients + offsets, mask = mask) as f32;
    let first = 0.9 * load(m + offsets, mask = mask) + 0.1 * g;
    let second = 0.999 * load(v + offsets, mask = mask) + 0.001 * g * g;
    store(m + offsets, first, mask = mask);
    store(v + offsets, second, mask = mask);
    let mean = first / (1.0 - exp(step * log(0.9f32)));
    let scale = sqrt(second / (1.0 - exp(step * log(0.999f32)))) + 1e-8;
    let w = load(weights + offsets, mask = mask) as f32;
    store(weights + offsets, (w - rate * (mean / scale + decay * w)) as T, mask = mask);
}

/// Uneven lengths, which keep every tensor aligned if the longest length does.
fn tensor_lengths(count: usize, longest: usize) -> Vec<usize> {
    let of = if longest.is_multiple_of(64) { 64 } else { 1 };
    uneven_lengths(count, longest).into_iter().map(|length| length.next_multiple_of(of)).collect()
}

/// AdamW on a list of tensors of uneven lengths: `[tensors, longest]`.
pub const ADAMW_LIST: Work = Work {
    name: "adamw_list",
    dtypes: FLOATS,
    sizes: [&[64, 1 << 20], &[63, 1_000_003], &[16, 50_000]],
    test_sizes: &[&[4, 2048], &[5, 1037], &[1, 1]],
    tensors: |s| {
        let tensors = tensor_lengths(s[0], s[1]);
        let mut starts = starts(&tensors);
        let n = starts.pop().expect("the end is always there");
        let moments = |name| in_place(name, n).of(Dtype::F32);
        let list = addresses("list", &["weights", "gradients", "m", "v"], starts);
        let (m, v) = (moments("m"), moments("v").between(0.5, 1.0));
        vec![in_place("weights", n), input("gradients", n), m, v, list, lengths("lengths", tensors)]
    },
    launch: by_dtype!(launch_adamw_list),
    reference: |_, host| {
        let (mut weights, mut m, mut v) = (Vec::new(), Vec::new(), Vec::new());
        for i in 0..host["weights"].len() {
            let (w, g) = (host["weights"][i], host["gradients"][i]);
            m.push(0.9 * host["m"][i] + 0.1 * g);
            v.push(0.999 * host["v"][i] + 0.001 * g * g);
            let (mean, square) = (m[i] / (1.0 - 0.9f64.powi(STEP)), v[i] / (1.0 - 0.999f64.powi(STEP)));
            weights.push(w - f64::from(RATE) * (mean / (square.sqrt() + 1e-8) + f64::from(DECAY) * w));
        }
        vec![("weights", weights), ("m", m), ("v", v)]
    },
    tolerance: 2.0,
};

/// The numbers of the step; `peers/` has the same.
const RATE: f32 = 0.01;
const DECAY: f32 = 0.1;
const STEP: i32 = 100;

fn launch_adamw_list<T: Float>(case: &Case, s: &[usize], run: &mut Run) -> Result<()> {
    if matches!(run, Run::Configs(_)) {
        return Ok(());
    }
    let (list, lengths) = (case.read::<i64>("list"), case.read::<i64>("lengths"));
    // SAFETY: the list has the addresses of tensors of the case with these lengths, and nothing else uses them meanwhile.
    let call = unsafe { adamw_list::<T, 1024>(&*list, &*lengths, s[0], RATE, DECAY, STEP as f32) };
    call.grid((cdiv(s[1], 1024), s[0])).launch()
}
