//! Gated activations and dropout.

use galatea::prelude::*;
use kernel_library::{dropout, dropout_backward, geglu, geglu_backward, swiglu, swiglu_backward};

use super::{SHAPES, agree, devices, extents, of_every_type, sample};
use crate::Real;
use crate::activations::{gelu, silu, slope};

fn gated<T: Real>(shapes: &[&[usize]]) {
    for device in devices() {
        for shape in shapes {
            let ((gate, g), (up, u), (dy, d)) =
                (sample::<T>(device, shape, 6.0), sample::<T>(device, shape, 2.0), sample::<T>(device, shape, 2.0));
            let [g, u, d] = [g, u, d].map(|host| host.iter().map(|v| v.wide()).collect::<Vec<f64>>());
            let swi = swiglu_backward(&dy, &gate, &up).unwrap();
            let ge = geglu_backward(&dy, &gate, &up).unwrap();
            for (y, gradients, f) in
                [(swiglu(&gate, &up).unwrap(), swi, silu as fn(f64) -> f64), (geglu(&gate, &up).unwrap(), ge, gelu as fn(f64) -> f64)]
            {
                agree(device, &y, shape, 0.5, |i| f(g[i]) * u[i]);
                agree(device, &gradients.dup, shape, 0.5, |i| f(g[i]) * d[i]);
                agree(device, &gradients.dgate, shape, 0.5, |i| slope(f, g[i]) * u[i] * d[i]);
            }
        }
    }
}

#[test]
fn gated_activations_of_tensors() {
    of_every_type!(gated, SHAPES);
}

/// The elements that a seed keeps are those of the kernel's definition: `philox` gives the same numbers on every device.
fn dropouts<T: Real>(shapes: &[&[usize]]) {
    for device in devices() {
        for shape in shapes {
            let ones = vec![1.0f32; extents(shape).0];
            let kept = dropout(&Device::cpu().tensor_from(&ones, *shape).unwrap(), 0.5, 11).unwrap().to_vec().unwrap();
            let (x, host) = sample::<T>(device, shape, 1.0);
            let want = |i: usize| if kept[i] == 0.0 { 0.0 } else { 2.0 * host[i].wide() };
            agree(device, &dropout(&x, 0.5, 11).unwrap(), shape, 0.0, want);
            agree(device, &dropout_backward(&x, 0.5, 11).unwrap(), shape, 0.0, want);
            agree(device, &dropout(&x, 0.0, 11).unwrap(), shape, 0.0, |i| host[i].wide());
            agree(device, &dropout(&x, 1.0, 11).unwrap(), shape, 0.0, |_| 0.0);
            assert!(kept.len() < 30 || (kept.contains(&0.0) && kept.contains(&2.0)), "{kept:?}");
        }
    }
}

#[test]
fn dropout_of_tensors() {
    of_every_type!(dropouts, SHAPES);
}
