//! Gated activations and dropout. Gradients are held to difference quotients of the function, which know nothing of its derivative.

use galatea::prelude::*;
use kernel_library::kernels;

use crate::{Real, check, devices, numbers};

const SIZES: [usize; 5] = [0, 1, 511, 4096, 5003];

pub(crate) fn silu(v: f64) -> f64 {
    v / (1.0 + (-v).exp())
}

/// `erf` by Simpson's rule over its density: within 1e-7, and its error as smooth.
pub(crate) fn gelu(v: f64) -> f64 {
    let to = v.clamp(-9.0, 9.0);
    let (steps, density) = (200, |t: f64| (-t * t / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt());
    let h = to / f64::from(steps);
    let weight = |i: i32| if i == 0 || i == steps { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
    let area: f64 = (0..=steps).map(|i| weight(i) * density(f64::from(i) * h)).sum::<f64>() * h / 3.0;
    v * (0.5 + area)
}

/// The slope of a function, to the fourth order.
pub(crate) fn slope(f: fn(f64) -> f64, v: f64) -> f64 {
    let h = 1e-3;
    (8.0 * (f(v + h) - f(v - h)) - (f(v + 2.0 * h) - f(v - 2.0 * h))) / (12.0 * h)
}

fn gated<T: Real>(is_gelu: bool) {
    let f = if is_gelu { gelu } else { silu };
    for n in SIZES {
        let host = [(6.0, 1), (2.0, 2), (2.0, 3)].map(|(scale, seed)| numbers::<T>(n, scale, seed));
        let [g, u, d] = [0, 1, 2].map(|k| host[k].iter().map(|v| v.wide()).collect::<Vec<f64>>());
        let (values, slopes): (Vec<f64>, Vec<f64>) = g.iter().map(|g| (f(*g), slope(f, *g))).unzip();
        for device in devices() {
            let [gate, up, dy] = [0, 1, 2].map(|i| device.tensor(&host[i]).unwrap());
            let [mut y, mut dgate, mut dup] = [0; 3].map(|_| device.empty_like(&gate).unwrap());
            if is_gelu {
                kernels::geglu(&gate, &up, &mut y, n).grid(|config| cdiv(n, config.BLOCK_SIZE)).launch().unwrap();
                kernels::geglu_backward(&dy, &gate, &up, &mut dgate, &mut dup, n)
                    .grid(|config| cdiv(n, config.BLOCK_SIZE))
                    .launch()
                    .unwrap();
            } else {
                kernels::swiglu(&gate, &up, &mut y, n).grid(|config| cdiv(n, config.BLOCK_SIZE)).launch().unwrap();
                kernels::swiglu_backward(&dy, &gate, &up, &mut dgate, &mut dup, n)
                    .grid(|config| cdiv(n, config.BLOCK_SIZE))
                    .launch()
                    .unwrap();
            }
            check(device, &y.to_vec().unwrap(), 0.5, |i| values[i] * u[i]);
            check(device, &dup.to_vec().unwrap(), 0.5, |i| values[i] * d[i]);
            check(device, &dgate.to_vec().unwrap(), 0.5, |i| slopes[i] * u[i] * d[i]);
        }
    }
}

#[test]
fn swiglus() {
    gated::<f32>(false);
    gated::<f16>(false);
    gated::<bf16>(false);
}

#[test]
fn geglus() {
    gated::<f32>(true);
    gated::<f16>(true);
    gated::<bf16>(true);
}

/// Large numbers of either sign leave the gate open or shut.
#[test]
fn gates_that_are_open_or_shut() {
    for device in devices() {
        let gate = device.tensor(&[1e30f32, -1e30, f32::NAN]).unwrap();
        let up = device.tensor(&[2.0f32; 3]).unwrap();
        for is_gelu in [false, true] {
            let mut y = device.empty_like(&gate).unwrap();
            if is_gelu {
                kernels::geglu(&gate, &up, &mut y, 3).grid(|config| cdiv(3, config.BLOCK_SIZE)).launch().unwrap();
            } else {
                kernels::swiglu(&gate, &up, &mut y, 3).grid(|config| cdiv(3, config.BLOCK_SIZE)).launch().unwrap();
            }
            check(device, &y.to_vec().unwrap(), 0.0, |i| [2.0 * f64::from(1e30f32), 0.0, f64::NAN][i]);
        }
    }
}

fn dropped<T: Real>(device: Device, x: &[T], p: f32, seed: u64) -> Vec<T> {
    let dx = device.tensor(x).unwrap();
    let mut y = device.empty_like(&dx).unwrap();
    kernels::dropout(&dx, &mut y, x.len(), p, seed).grid(|config| cdiv(x.len(), config.BLOCK_SIZE)).launch().unwrap();
    y.to_vec().unwrap()
}

fn dropouts<T: Real>() {
    // The mask of a dropout: its result on the CPU for ones of `f32`.
    let kept = |n: usize, p: f32, seed: u64| dropped(Device::cpu(), &vec![1.0f32; n], p, seed);
    for device in devices() {
        for n in SIZES {
            for p in [0.0, 0.1, 0.5, 1.0] {
                // No element is zero by itself.
                let x: Vec<T> = numbers::<T>(n, 1.0, 5).into_iter().map(|v| T::near(v.wide() + 2.0)).collect();
                let mask = kept(n, p, 11);
                let y = dropped(device, &x, p, 11);
                check(device, &y, 0.0, |i| if mask[i] == 0.0 { 0.0 } else { x[i].wide() / (1.0 - f64::from(p)) });
                let zeros = y.iter().filter(|y| y.wide() == 0.0).count() as f64;
                let (want, spread) = (n as f64 * f64::from(p), (n as f64 * f64::from(p * (1.0 - p))).sqrt());
                assert!((zeros - want).abs() <= 5.0 * spread, "{zeros} of {n} are zero, not {want}");
            }
        }
        assert_ne!(kept(511, 0.5, 11), kept(511, 0.5, 12));
    }
}

#[test]
fn dropouts_of_every_type() {
    dropouts::<f32>();
    dropouts::<f16>();
    dropouts::<bf16>();
}
