//! Steps of AdamW.

use galatea::prelude::*;
use kernel_library::{AdamW, adamw};

use super::{SHAPES, agree, devices, extents, of_every_type, sample};
use crate::Real;

/// The shapes of all, and one of two programs.
const OF_STEPS: [&[usize]; 5] = [SHAPES[0], SHAPES[1], SHAPES[2], SHAPES[3], &[1100]];

fn steps<T: Real>(shapes: &[&[usize]]) {
    let parameters = AdamW { lr: 0.01, beta1: 0.8, beta2: 0.99, eps: 1e-6, weight_decay: 0.1 };
    let AdamW { lr, beta1, beta2, eps, weight_decay } = parameters;
    let [lr, beta1, beta2, eps, decay] = [lr, beta1, beta2, eps, weight_decay].map(f64::from);
    for device in devices() {
        for shape in shapes {
            let (mut weights, before) = sample::<T>(device, shape, 1.0);
            let (mut m, mut v) = (device.zeros::<f32>(*shape).unwrap(), device.zeros::<f32>(*shape).unwrap());
            let [mut first, mut second] = [0; 2].map(|_| vec![0.0; extents(shape).0]);
            let mut before: Vec<f64> = before.into_iter().map(T::wide).collect();
            for step in 1..=3 {
                let (gradients, g) = sample::<T>(device, shape, 3.0);
                adamw(&mut weights, &gradients, &mut m, &mut v, &parameters, step).unwrap();
                for (i, g) in g.into_iter().map(T::wide).enumerate() {
                    first[i] = first[i] * beta1 + (1.0 - beta1) * g;
                    second[i] = second[i] * beta2 + (1.0 - beta2) * g * g;
                }
                agree(device, &m, shape, 1.0, |i| first[i]);
                agree(device, &v, shape, 1.0, |i| second[i]);
                agree(device, &weights, shape, 0.1, |i| {
                    let [first, second] = [first[i] / (1.0 - beta1.powi(step as i32)), second[i] / (1.0 - beta2.powi(step as i32))];
                    before[i] * (1.0 - lr * decay) - lr * first / (second.sqrt() + eps)
                });
                // A step starts at weights that are rounded.
                before = weights.to_vec().unwrap().into_iter().map(T::wide).collect();
            }
        }
    }
}

#[test]
fn adamw_of_tensors() {
    of_every_type!(steps, OF_STEPS);
}
