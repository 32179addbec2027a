//! Ops of models beside sums in f64, on the CPU and on simulated GPUs, and recorded.

mod samples;

use galatea::graph::{Session, export, input};
use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_library::nn::{Linear, Seed, normal};
use kernel_library::ops::{linear, silu};
use samples::{devices, values};

/// The distance that one rounding of a number of this size, and of a sum of `terms` f32 products, may make.
fn tolerance(dtype: Dtype, size: f64, terms: usize) -> f64 {
    let rounding = match dtype {
        Dtype::F16 => 2f64.powi(-11),
        Dtype::Bf16 => 2f64.powi(-8),
        _ => 2f64.powi(-24),
    };
    size * (rounding + terms as f64 * 2f64.powi(-24)) + 1e-30
}

#[test]
fn a_linear_layer_is_a_product_and_a_bias() {
    for device in devices() {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            for (rows, inner, columns) in [(1, 128, 64), (5, 33, 31), (16, 64, 128), (3, 1, 1), (2, 0, 4), (0, 8, 8), (7, 40, 0)] {
                let mut seed = Seed(7);
                let x = normal(&device, dtype, &[rows, inner], &mut seed).unwrap();
                let weight = normal(&device, dtype, &[columns, inner], &mut seed).unwrap();
                let bias = normal(&device, dtype, &[columns], &mut seed).unwrap();
                let with = linear(&x, &weight, Some(&bias)).unwrap();
                let without = linear(&x, &weight, None).unwrap();
                assert_eq!(with.dims(), [Dim::from(rows), Dim::from(columns)]);
                let (x, weight, bias) = (values(&x), values(&weight), values(&bias));
                for (at, (with, without)) in values(&with).into_iter().zip(values(&without)).enumerate() {
                    let (row, column) = (at / columns, at % columns);
                    let products = (0..inner).map(|k| x[row * inner + k] * weight[column * inner + k]);
                    let size: f64 = products.clone().map(f64::abs).sum::<f64>() + bias[column].abs();
                    let (sum, most) = (products.sum::<f64>(), tolerance(dtype, size, inner + 2));
                    let name = format!("{rows}x{inner}x{columns} {dtype} on {device}, element {at}");
                    assert!((with - (sum + bias[column])).abs() <= most, "{name}: {with} instead of {}", sum + bias[column]);
                    assert!((without - sum).abs() <= most, "{name}: {without} instead of {sum}");
                }
            }
        }
    }
}

#[test]
fn leading_axes_are_rows() {
    let device = Device::cpu();
    let layer = Linear::init(&device, Dtype::F32, 6, 5, &mut Seed(1)).unwrap();
    let x = normal(&device, Dtype::F32, &[2, 3, 6], &mut Seed(2)).unwrap();
    let y = layer.forward(&x).unwrap();
    assert_eq!(y.dims(), [2.into(), 3.into(), 5.into()]);
    let flat = layer.forward(&x.reshape([6, 6]).unwrap()).unwrap();
    assert_eq!(y.to_bytes().unwrap(), flat.to_bytes().unwrap());
    let row = layer.forward(&x.reshape([36]).unwrap().slice(0..6).unwrap()).unwrap();
    assert_eq!(row.to_bytes().unwrap(), y.to_bytes().unwrap()[..20]);
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let zeros = |dims: &[usize]| Tensor::zeros(&Device::cpu(), Dtype::F32, dims).unwrap();
    let text = |x: &Tensor, weight: &Tensor, bias: Option<&Tensor>| linear(x, weight, bias).unwrap_err().to_string();
    let weight = zeros(&[4, 3]);
    assert_eq!(text(&zeros(&[2, 5]), &weight, None), "`galatea::linear`: `weight` is f32[4, 3], and [4, 5] is expected");
    assert_eq!(text(&zeros(&[2, 3]), &weight, Some(&zeros(&[3]))), "`galatea::linear`: `bias` is f32[3], and [4] is expected");
    assert_eq!(text(&zeros(&[]), &weight, None), "`galatea::linear`: `x` is f32[], and [3] is expected");
    assert_eq!(text(&zeros(&[2, 3]), &zeros(&[3]), None), "`galatea::linear`: `weight` is f32[3], and [3, 3] is expected");
    let half = Tensor::zeros(&Device::cpu(), Dtype::F16, [4]).unwrap();
    let mixed = text(&zeros(&[2, 3]), &weight, Some(&half));
    assert!(mixed.contains("`bias`") && mixed.contains("f16") && mixed.contains("f32"), "{mixed}");
}

#[test]
fn a_recorded_model_equals_the_model_for_all_batches() {
    for device in devices() {
        let mut seed = Seed(42);
        let [first, second] =
            [(128, 64), (64, 128)].map(|(inner, columns)| Linear::init(&device, Dtype::Bf16, inner, columns, &mut seed).unwrap());
        let forward = |x: &Tensor| second.forward(&silu(&first.forward(x)?)?);
        let batch = Dim::new("batch", 1..=1024);
        let graph = export(|[x]| forward(x), [input("x", [&batch, &128.into()], Dtype::Bf16)]).unwrap();
        let loaded = galatea::graph::Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap().load(&device).unwrap();
        let session = Session::new(graph, &device).unwrap();
        for rows in [1, 3, 4, 5, 17] {
            let x = normal(&device, Dtype::Bf16, &[rows, 128], &mut seed).unwrap();
            let expected = forward(&x).unwrap().to_bytes().unwrap();
            assert_eq!(session.run([&x]).unwrap()[0].to_bytes().unwrap(), expected, "{rows} rows on {device}");
            assert_eq!(loaded.run([&x]).unwrap()[0].to_bytes().unwrap(), expected, "{rows} rows on {device}");
        }
    }
}

#[test]
fn random_numbers_have_their_distributions() {
    let mut seed = Seed(3);
    let n = 100_000;
    let (mut sum, mut squares) = (0.0, 0.0);
    for _ in 0..n {
        let number = f64::from(seed.normal());
        sum += number;
        squares += number * number;
    }
    assert!((sum / f64::from(n)).abs() < 0.02 && (squares / f64::from(n) - 1.0).abs() < 0.03, "{sum} {squares}");
    let uniform: Vec<f32> = (0..n).map(|_| seed.uniform()).collect();
    assert!(uniform.iter().all(|number| (-1.0..1.0).contains(number)));
    let mean = uniform.iter().map(|number| f64::from(*number)).sum::<f64>() / f64::from(n);
    let below = uniform.iter().filter(|number| **number < -0.5).count();
    assert!(mean.abs() < 0.01 && (24_000..26_000).contains(&below), "{mean} {below}");
    assert_eq!(Seed(5).bits(), Seed(5).bits());
}
