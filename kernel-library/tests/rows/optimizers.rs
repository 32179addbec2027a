//! Steps of AdamW.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::{Real, check, devices, numbers};

const LR: f32 = 0.01;
const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
const EPS: f32 = 1e-8;
const DECAY: f32 = 0.1;

fn steps<T: Real>() {
    let [lr, beta1, beta2, eps, decay] = [LR, BETA1, BETA2, EPS, DECAY].map(f64::from);
    for device in devices() {
        for n in [0, 1, 1000, 2051] {
            let mut weights = device.tensor(&numbers::<T>(n, 1.0, 1)).unwrap();
            let [mut m, mut v] = [0; 2].map(|_| device.zeros::<f32>(n).unwrap());
            for step in [1, 2, 3, 1000] {
                let gradients = numbers::<T>(n, 3.0, step);
                // Each step is held to its own start, so that the roundings of those before do not count.
                let old = [&m, &v].map(|x| x.to_vec().unwrap().into_iter().map(f64::from).collect::<Vec<f64>>());
                let before = weights.to_vec().unwrap();
                let dgradients = device.tensor(&gradients).unwrap();
                kernels::adamw::<T, 1024>(&mut weights, &dgradients, &mut m, &mut v, n, LR, BETA1, BETA2, EPS, DECAY, step as i64)
                    .grid(cdiv(n, 1024))
                    .launch()
                    .unwrap();
                let g: Vec<f64> = gradients.iter().map(|g| g.wide()).collect();
                let first = |i: usize| old[0][i] * beta1 + (1.0 - beta1) * g[i];
                let second = |i: usize| old[1][i] * beta2 + (1.0 - beta2) * g[i] * g[i];
                check(device, &m.to_vec().unwrap(), 0.1, first);
                check(device, &v.to_vec().unwrap(), 0.001, second);
                check(device, &weights.to_vec().unwrap(), 0.01, |i| {
                    let [first, second] = [first(i) / (1.0 - beta1.powi(step as i32)), second(i) / (1.0 - beta2.powi(step as i32))];
                    before[i].wide() * (1.0 - lr * decay) - lr * first / (second.sqrt() + eps)
                });
            }
        }
    }
}

#[test]
fn adamw_steps() {
    steps::<f32>();
    steps::<f16>();
    steps::<bf16>();
}
