//! Results of ops beside functions of f64 that know nothing of the kernels, in all dtypes, on the CPU and on simulated GPUs.

mod samples;

use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_library::nn::Seed;
use kernel_library::ops;
use samples::{devices, normal_f64, rounded, values};

const DTYPES: [Dtype; 4] = [Dtype::F32, Dtype::F16, Dtype::Bf16, Dtype::F64];

/// Half the distance of neighbouring numbers at 1.
fn unit(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F16 => 2f64.powi(-11),
        Dtype::Bf16 => 2f64.powi(-8),
        Dtype::F32 => 2f64.powi(-24),
        _ => 2f64.powi(-53),
    }
}

/// A result whose elements differ from the expected ones by at most `units` roundings of f32 (f64 for f64) of `size`, and one rounding of the result.
fn expect(what: &str, found: &Tensor, expected: &[f64], size: f64, units: f64) {
    let dtype = found.dtype();
    let wide = unit(if dtype == Dtype::F64 { Dtype::F64 } else { Dtype::F32 });
    let what = format!("{what} of {dtype} on {}", found.device().unwrap());
    let found = values(found);
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (found, expected)) in found.into_iter().zip(expected).enumerate() {
        let most =
            unit(dtype) * expected.abs() + units * wide * size.max(expected.abs()) + if dtype == Dtype::F16 { 2f64.powi(-25) } else { 0.0 };
        let is_equal = found == *expected || found.is_nan() && expected.is_nan();
        assert!(is_equal || (found - expected).abs() <= most, "{what}: element {at} is {found}, not {expected}");
    }
}

/// A tensor of the dtype, and its numbers.
fn random(device: &Device, dtype: Dtype, dims: &[usize], seed: u64, domain: fn(f64) -> f64) -> (Tensor, Vec<f64>) {
    let x = rounded(&normal_f64(&Device::cpu(), dims, &mut Seed(seed), domain), device, dtype);
    let numbers = values(&x);
    (x, numbers)
}

fn product(dims: &[usize]) -> usize {
    dims.iter().product()
}

/// erf by its Taylor series, which converges everywhere.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI
}

#[test]
fn elementwise_functions_of_one_tensor() {
    type Op = fn(&Tensor) -> Result<Tensor>;
    type Reference = fn(f64) -> f64;
    let functions: [(&str, Op, Reference); 13] = [
        ("neg", ops::neg, |x| -x),
        ("scale", |x| ops::scale(x, 2.5), |x| 2.5 * x),
        ("shift", |x| ops::shift(x, -0.75), |x| x - 0.75),
        ("exp", ops::exp, f64::exp),
        ("log", ops::log, f64::ln),
        ("sqrt", ops::sqrt, f64::sqrt),
        ("sin", ops::sin, f64::sin),
        ("cos", ops::cos, f64::cos),
        ("tanh", ops::tanh, f64::tanh),
        ("sigmoid", ops::sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
        ("relu", ops::relu, |x| if x <= 0.0 { 0.0 } else { x }),
        ("silu", ops::silu, |x| x / (1.0 + (-x).exp())),
        ("gelu", ops::gelu, |x| 0.5 * x * (1.0 + erf(x / 2f64.sqrt()))),
    ];
    for device in devices() {
        for dtype in DTYPES {
            for n in [0, 1, 1023, 1024, 1025] {
                let (x, numbers) = random(&device, dtype, &[n], 3, |x| x);
                for (name, op, reference) in functions {
                    // The terms of the series of `erf` are up to 4096.
                    let size = if name == "gelu" && dtype == Dtype::F64 { 4096.0 } else { 1.0 };
                    let expected: Vec<f64> = numbers.iter().map(|x| reference(*x)).collect();
                    expect(name, &op(&x).unwrap(), &expected, size, 8.0);
                }
            }
        }
        let special = Tensor::from(device.tensor(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0]).unwrap());
        assert!(values(&ops::relu(&special).unwrap())[0].is_nan(), "{device}");
        assert_eq!(values(&ops::relu(&special).unwrap())[1..], [f64::INFINITY, 0.0, 0.0, 0.0], "{device}");
        assert_eq!(values(&ops::sigmoid(&special).unwrap())[1..], [1.0, 0.0, 0.5, 0.5], "{device}");
    }
}

/// The element of an operand for an element of the result, by the rule of broadcasting.
fn broadcast_index(index: usize, dims: &[usize], operand: &[usize]) -> usize {
    let (mut rest, mut at, mut stride) = (index, 0, 1);
    for (axis, extent) in dims.iter().enumerate().rev() {
        let position = rest % extent;
        rest /= extent;
        if let Some(own) = (axis + operand.len()).checked_sub(dims.len()).map(|axis| operand[axis]) {
            at += if own == 1 { 0 } else { position } * stride;
            stride *= own;
        }
    }
    at
}

#[test]
fn elementwise_functions_of_two_tensors_broadcast() {
    type Op = fn(&Tensor, &Tensor) -> Result<Tensor>;
    type Reference = fn(f64, f64) -> f64;
    let functions: [(&str, Op, Reference); 4] = [
        ("add", ops::add, |x, y| x + y),
        ("sub", ops::sub, |x, y| x - y),
        ("mul", ops::mul, |x, y| x * y),
        ("div", ops::div, |x, y| x / y),
    ];
    let shapes: [(&[usize], &[usize], &[usize]); 14] = [
        (&[2, 3], &[2, 3], &[2, 3]),
        (&[], &[], &[]),
        (&[], &[1, 5], &[1, 5]),
        (&[4, 3], &[3], &[4, 3]),
        (&[4, 3], &[4, 1], &[4, 3]),
        (&[4, 1], &[1, 300], &[4, 300]),
        (&[5], &[4, 1], &[4, 5]),
        (&[2, 3, 4], &[3, 1], &[2, 3, 4]),
        (&[2, 1, 4], &[1, 3, 1], &[2, 3, 4]),
        (&[2, 1, 3, 1, 2], &[2, 4, 3, 5, 2], &[2, 4, 3, 5, 2]),
        (&[2, 1, 3, 1, 2], &[1, 4, 1, 5, 1], &[2, 4, 3, 5, 2]),
        (&[1, 2, 1, 2, 1], &[3, 2, 3, 2, 3], &[3, 2, 3, 2, 3]),
        (&[0, 3], &[3], &[0, 3]),
        (&[1, 3], &[0, 1], &[0, 3]),
    ];
    for device in devices() {
        for dtype in DTYPES {
            for (x_dims, y_dims, dims) in shapes {
                let (x, x_numbers) = random(&device, dtype, x_dims, 4, |x| x);
                let (y, y_numbers) = random(&device, dtype, y_dims, 5, |x| x + 0.5f64.copysign(x));
                for (name, op, reference) in functions {
                    let z = op(&x, &y).unwrap();
                    assert_eq!(z.dims(), dims.iter().map(|extent| Dim::from(*extent)).collect::<Vec<_>>(), "{name}");
                    let element =
                        |at| reference(x_numbers[broadcast_index(at, dims, x_dims)], y_numbers[broadcast_index(at, dims, y_dims)]);
                    let expected: Vec<f64> = (0..product(dims)).map(element).collect();
                    expect(&format!("{name} of {x_dims:?} and {y_dims:?}"), &z, &expected, 0.0, 1.0);
                }
            }
        }
    }
}

#[test]
fn sums_and_means() {
    for device in devices() {
        for dtype in DTYPES {
            // The last two are summed in several parts, over one of their axes.
            let all = 0..3;
            let shapes = [[0, 3, 2], [3, 0, 2], [1, 1, 1], [2, 5, 33], [3, 70, 1]].map(|dims| (dims, all.clone()));
            for (dims, axes) in shapes.into_iter().chain([([1, 4099, 2], 1..2), ([1, 1, 9000], 2..3)]) {
                let (x, numbers) = random(&device, dtype, &dims, 6, |x| x);
                let n = numbers.len();
                let (sum, size) = (numbers.iter().sum::<f64>(), numbers.iter().map(|x| x.abs()).sum::<f64>());
                let units = 40.0;
                expect("sum", &ops::sum(&x).unwrap(), &[sum], size, units);
                expect("mean", &ops::mean(&x).unwrap(), &[sum / n as f64], size / n.max(1) as f64, units);
                for axis in axes {
                    let inner = product(&dims[axis + 1..]);
                    let (mut sums, mut sizes) = (vec![0.0; product(&dims[..axis]) * inner], 0f64);
                    for (at, number) in numbers.iter().enumerate() {
                        sums[at / (inner * dims[axis]) * inner + at % inner] += number;
                        sizes = sizes.max(number.abs() * dims[axis] as f64);
                    }
                    let what = format!("{dims:?} over axis {axis}");
                    let forms = [axis as isize, axis as isize - 3];
                    for axis in forms {
                        let found = ops::sum_axis(&x, axis).unwrap();
                        assert_eq!(found.rank(), 2);
                        expect(&format!("sum of {what}"), &found, &sums, sizes, units);
                    }
                    let count = dims[axis] as f64;
                    let means: Vec<f64> = sums.iter().map(|sum| sum / count).collect();
                    expect(&format!("mean of {what}"), &ops::mean_axis(&x, forms[1]).unwrap(), &means, sizes / count.max(1.0), units);
                }
            }
        }
    }
}

#[test]
fn functions_of_the_last_axis() {
    for device in devices() {
        for dtype in DTYPES {
            for (rows, columns) in [(1, 1), (3, 7), (2, 1024), (2, 1025), (0, 4), (300, 2)] {
                let (x, numbers) = random(&device, dtype, &[rows, columns], 7, |x| 3.0 * x);
                let (weight, w) = random(&device, dtype, &[columns], 8, |x| x);
                let (bias, b) = random(&device, dtype, &[columns], 9, |x| x);
                let targets: Vec<i64> = (0..rows).map(|row| if row % 3 == 2 { -100 } else { (5 * row % columns) as i64 }).collect();
                let [mut soft, mut log_soft, mut layer, mut rms] = [const { Vec::new() }; 4];
                let (mut losses, mut counted) = (0.0, 0.0);
                for row in 0..rows {
                    let v = &numbers[row * columns..][..columns];
                    let top = v.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                    let total: f64 = v.iter().map(|x| (x - top).exp()).sum();
                    soft.extend(v.iter().map(|x| (x - top).exp() / total));
                    log_soft.extend(v.iter().map(|x| x - top - total.ln()));
                    let mean = v.iter().sum::<f64>() / columns as f64;
                    let variance = v.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / columns as f64;
                    layer.extend(v.iter().zip(&w).zip(&b).map(|((x, w), b)| (x - mean) / (variance + 1e-3).sqrt() * w + b));
                    let square = v.iter().map(|x| x * x).sum::<f64>() / columns as f64;
                    rms.extend(v.iter().zip(&w).map(|(x, w)| x / (square + 1e-3).sqrt() * w));
                    if targets[row] >= 0 {
                        losses += top + total.ln() - v[targets[row] as usize];
                        counted += 1.0;
                    }
                }
                let targets: Tensor = device.tensor(&targets).unwrap().into();
                expect("softmax", &ops::softmax(&x).unwrap(), &soft, 1.0, 40.0);
                expect("log_softmax", &ops::log_softmax(&x).unwrap(), &log_soft, 16.0, 40.0);
                expect("layer_norm", &ops::layer_norm(&x, &weight, &bias, 1e-3).unwrap(), &layer, 16.0, 60.0);
                expect("rms_norm", &ops::rms_norm(&x, &weight, 1e-3).unwrap(), &rms, 16.0, 60.0);
                let loss = ops::cross_entropy(&x, &targets, -100).unwrap();
                assert_eq!(loss.dtype(), if dtype == Dtype::F64 { Dtype::F64 } else { Dtype::F32 });
                expect("cross_entropy", &loss, &[losses / counted], 16.0, 40.0);
            }
        }
    }
}

#[test]
fn products_of_matrices_and_squares_of_differences() {
    for device in devices() {
        for dtype in DTYPES {
            for (rows, inner, columns) in [(1, 1, 1), (5, 33, 31), (17, 64, 65), (16, 3, 64), (2, 0, 4), (0, 8, 8), (7, 40, 0)] {
                let (a, a_numbers) = random(&device, dtype, &[rows, inner], 10, |x| x);
                let (b, b_numbers) = random(&device, dtype, &[inner, columns], 11, |x| x);
                let element =
                    |at: usize| (0..inner).map(|k| a_numbers[at / columns * inner + k] * b_numbers[k * columns + at % columns]).sum();
                let expected: Vec<f64> = (0..rows * columns).map(element).collect();
                expect("matmul", &ops::matmul(&a, &b).unwrap(), &expected, 16.0, inner as f64);
                let (c, c_numbers) = random(&device, dtype, &[rows, inner], 12, |x| x);
                let squares: f64 = a_numbers.iter().zip(&c_numbers).map(|(x, y)| (x - y) * (x - y)).sum();
                let loss = ops::mse_loss(&a, &c).unwrap();
                expect("mse_loss", &loss, &[squares / (rows * inner) as f64], 1.0, 60.0);
            }
        }
    }
}

#[test]
fn embeddings_and_conversions_keep_bits() {
    for device in devices() {
        for dtype in DTYPES {
            let (table, numbers) = random(&device, dtype, &[5, 3], 13, |x| x);
            let picked = [4i64, 0, 4, -1, 5, 2];
            let indices = Tensor::from(device.tensor(&picked).unwrap()).reshape([2, 3]).unwrap();
            let y = ops::embedding(&table, &indices).unwrap();
            assert_eq!(y.dims(), [2.into(), 3.into(), 3.into()]);
            let row = |index: i64| (0..3).map(move |column| (index, column));
            let expected: Vec<f64> = picked
                .into_iter()
                .flat_map(row)
                .map(|(index, column)| if (0..5).contains(&index) { numbers[3 * index as usize + column] } else { 0.0 })
                .collect();
            assert_eq!(values(&y), expected);
            for to in DTYPES {
                let converted = ops::convert(&table, to).unwrap();
                assert_eq!(values(&converted), values(&rounded(&table, &device, to)), "{dtype} to {to} on {device}");
            }
        }
    }
}
