//! Programs made at random, on several streams and GPUs, leave what they would leave on one: the rules of `memory/cuda.rs`.
//!
//! A GPU shows a missing wait where it is slow at the right time; the simulated driver, which does nothing before it must, shows it always.

use kernel_runtime::prelude::*;

use crate::Test;
use crate::kernels::{BLOCK, add, slow_copy};

pub(crate) const TESTS: &[Test] = &[("random_programs_are_in_order", random_programs_are_in_order)];

const N: usize = 300;
const TENSORS: usize = 5;
const STEPS: usize = 120;
/// GPU clock cycles of a slow copy.
const SLOW: i64 = 200_000;

/// xorshift*.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }
}

/// A tensor, and what it holds if all is in order.
struct Mirrored {
    tensor: Tensor<f32>,
    value: Vec<f32>,
}

fn random_programs_are_in_order(_: Device) {
    let gpus: Vec<Device> = (0..Device::cuda_count().min(2)).map(|gpu| Device::cuda(gpu).unwrap()).collect();
    for seed in 1..13 {
        let mut random = Random(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(seed));
        let streams: Vec<Vec<Stream>> = gpus.iter().map(|gpu| (0..3).map(|_| gpu.new_stream().unwrap()).collect()).collect();
        let new = |random: &mut Random| {
            let value = random.below(100) as f32;
            Mirrored { tensor: gpus[random.below(gpus.len())].full(N, value).unwrap(), value: vec![value; N] }
        };
        let mut all: Vec<Mirrored> = (0..TENSORS).map(|_| new(&mut random)).collect();
        for step in 0..STEPS {
            let chosen = random.below(TENSORS);
            let mut target = all.swap_remove(chosen);
            let source = &all[random.below(all.len())];
            let gpu = gpus.iter().position(|gpu| *gpu == target.tensor.device()).unwrap();
            let stream = &streams[gpu][random.below(3)];
            let is_near = source.tensor.device() == target.tensor.device();
            match random.below(8) {
                0 | 1 if is_near => {
                    slow_copy(&source.tensor, &mut target.tensor, SLOW).on(stream).grid(cdiv(N, BLOCK)).launch().unwrap();
                    target.value.clone_from(&source.value);
                }
                2 | 3 if is_near => {
                    let other = &all.iter().find(|other| other.tensor.device() == target.tensor.device()).unwrap_or(source);
                    add(&source.tensor, &other.tensor, &mut target.tensor, N).on(stream).grid(cdiv(N, BLOCK)).launch().unwrap();
                    target.value = source.value.iter().zip(&other.value).map(|(x, y)| x + y).collect();
                    // Sums of sums grow, and are exact below 2^24.
                    if target.value.iter().any(|value| *value > 1e5) {
                        target.tensor.fill(1.0).unwrap();
                        target.value = vec![1.0; N];
                    }
                }
                4 => {
                    let value = random.below(100) as f32;
                    target.tensor.slice_mut(N / 3..).unwrap().fill(value).unwrap();
                    target.value[N / 3..].fill(value);
                }
                5 => {
                    let (to, from) = (random.below(N / 2), random.below(N / 2));
                    let part = source.tensor.slice(from..from + N / 2).unwrap();
                    target.tensor.slice_mut(to..to + N / 2).unwrap().copy_from(&part).unwrap();
                    target.value[to..to + N / 2].copy_from_slice(&source.value[from..from + N / 2]);
                }
                6 => target.tensor.set_stream(stream).unwrap(),
                7 => {
                    drop(target);
                    target = new(&mut random);
                }
                _ => {
                    let values: Vec<f32> = (0..N).map(|_| random.below(50) as f32).collect();
                    target.tensor.copy_from_slice(&values).unwrap();
                    target.value = values;
                }
            }
            if random.below(10) == 0 {
                assert_eq!(target.tensor.to_vec().unwrap(), target.value, "seed {seed}, step {step}");
            }
            all.push(target);
        }
        for Mirrored { tensor, value } in &all {
            assert_eq!(tensor.to_vec().unwrap(), *value, "seed {seed}");
        }
    }
}
