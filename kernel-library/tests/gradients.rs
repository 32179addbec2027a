//! Gradients of ops beside finite differences in f64, and beside the f64 gradients in the other dtypes and on simulated GPUs.

mod samples;

use galatea::Dtype;
use galatea::ops::{GradTolerance, Tensor, gradcheck};
use galatea::prelude::*;
use kernel_library::nn::Seed;
use kernel_library::ops;
use samples::{devices, normal_f64, rounded, values};

/// A differentiable function, and the extents of its inputs.
struct Case {
    name: &'static str,
    function: fn(&[Tensor]) -> Result<Vec<Tensor>>,
    dims: &'static [&'static [usize]],
    /// Applied to the numbers of the inputs, for functions that are not defined, or not smooth, everywhere.
    domain: fn(f64) -> f64,
    /// The error in units of the rounding of a dtype: of `size * unit`, for gradients of about 1.
    units: f64,
}

const ALL: fn(f64) -> f64 = |x| x;
/// At least 0.5.
const POSITIVE: fn(f64) -> f64 = |x| x.abs() + 0.5;
/// Away from 0 by 0.25.
const NOT_ZERO: fn(f64) -> f64 = |x| x + 0.25f64.copysign(x);

macro_rules! case {
    ($name:literal, [$($dims:expr),*], $domain:expr, $units:expr, |$x:ident| $value:expr) => {
        Case { name: $name, function: |$x: &[Tensor]| Ok(vec![$value?]), dims: &[$(&$dims),*], domain: $domain, units: $units }
    };
}

const CASES: &[Case] = &[
    case!("linear", [[5, 7], [3, 7], [3]], ALL, 40.0, |x| ops::linear(&x[0], &x[1], Some(&x[2]))),
    case!("linear, without a bias", [[2, 3, 7], [33, 7]], ALL, 90.0, |x| ops::linear(&x[0], &x[1], None)),
    case!("linear, of a vector", [[7], [3, 7], [3]], ALL, 40.0, |x| ops::linear(&x[0], &x[1], Some(&x[2]))),
    case!("matmul", [[5, 7], [7, 67]], ALL, 120.0, |x| ops::matmul(&x[0], &x[1])),
    case!("matmul, of tiles", [[17, 65], [65, 3]], ALL, 120.0, |x| ops::matmul(&x[0], &x[1])),
    case!("add", [[2, 3], [2, 3]], ALL, 4.0, |x| ops::add(&x[0], &x[1])),
    case!("add, a bias", [[4, 3], [3]], ALL, 8.0, |x| ops::add(&x[0], &x[1])),
    case!("sub, a column", [[4, 3], [4, 1]], ALL, 8.0, |x| ops::sub(&x[0], &x[1])),
    case!("sub, from a scalar", [[], [4, 3]], ALL, 16.0, |x| ops::sub(&x[0], &x[1])),
    case!("mul", [[2, 3], [2, 3]], ALL, 8.0, |x| ops::mul(&x[0], &x[1])),
    case!("mul, a row and a column", [[4, 1], [1, 5]], ALL, 24.0, |x| ops::mul(&x[0], &x[1])),
    case!("mul, a middle axis", [[2, 3, 4], [3, 1]], ALL, 24.0, |x| ops::mul(&x[0], &x[1])),
    case!("mul, alternating axes", [[2, 1, 3, 1, 2], [1, 4, 3, 5, 2]], ALL, 60.0, |x| ops::mul(&x[0], &x[1])),
    case!("mul, of a tensor with itself", [[2, 3]], ALL, 12.0, |x| ops::mul(&x[0], &x[0])),
    case!("div", [[2, 3], [2, 3]], POSITIVE, 24.0, |x| ops::div(&x[0], &x[1])),
    case!("div, by a row", [[4, 3], [3]], POSITIVE, 60.0, |x| ops::div(&x[0], &x[1])),
    case!("neg", [[7]], ALL, 4.0, |x| ops::neg(&x[0])),
    case!("scale", [[7]], ALL, 8.0, |x| ops::scale(&x[0], 2.5)),
    case!("shift", [[7]], ALL, 4.0, |x| ops::shift(&x[0], 2.5)),
    case!("exp", [[7]], ALL, 24.0, |x| ops::exp(&x[0])),
    case!("log", [[7]], POSITIVE, 12.0, |x| ops::log(&x[0])),
    case!("sqrt", [[7]], POSITIVE, 12.0, |x| ops::sqrt(&x[0])),
    case!("sin", [[7]], ALL, 12.0, |x| ops::sin(&x[0])),
    case!("cos", [[7]], ALL, 12.0, |x| ops::cos(&x[0])),
    case!("tanh", [[7]], ALL, 12.0, |x| ops::tanh(&x[0])),
    case!("sigmoid", [[7]], ALL, 12.0, |x| ops::sigmoid(&x[0])),
    case!("relu", [[7]], NOT_ZERO, 4.0, |x| ops::relu(&x[0])),
    case!("silu", [[7]], ALL, 12.0, |x| ops::silu(&x[0])),
    case!("gelu", [[7]], ALL, 12.0, |x| ops::gelu(&x[0])),
    case!("sum", [[3, 5]], ALL, 4.0, |x| ops::sum(&x[0])),
    case!("mean", [[3, 5]], ALL, 4.0, |x| ops::mean(&x[0])),
    case!("sum over the first axis", [[3, 4, 5]], ALL, 4.0, |x| ops::sum_axis(&x[0], 0)),
    case!("sum over the middle axis", [[3, 4, 5]], ALL, 4.0, |x| ops::sum_axis(&x[0], 1)),
    case!("mean over the last axis", [[3, 4, 5]], ALL, 4.0, |x| ops::mean_axis(&x[0], -1)),
    case!("softmax", [[3, 5]], ALL, 12.0, |x| ops::softmax(&x[0])),
    case!("log_softmax", [[3, 5]], ALL, 24.0, |x| ops::log_softmax(&x[0])),
    case!("mse_loss", [[3, 5], [3, 5]], ALL, 12.0, |x| ops::mse_loss(&x[0], &x[1])),
    case!("layer_norm", [[3, 9], [9], [9]], ALL, 60.0, |x| ops::layer_norm(&x[0], &x[1], &x[2], 1e-3)),
    case!("layer_norm, of a vector", [[9], [9], [9]], ALL, 60.0, |x| ops::layer_norm(&x[0], &x[1], &x[2], 1e-3)),
    case!("rms_norm", [[2, 3, 9], [9]], ALL, 60.0, |x| ops::rms_norm(&x[0], &x[1], 1e-3)),
    case!("cross_entropy", [[5, 4]], ALL, 12.0, |x| ops::cross_entropy(&x[0], &indices(&x[0], &[0, 3, -100, 1, 1])?, -100)),
    case!("embedding", [[4, 3]], ALL, 16.0, |x| ops::embedding(&x[0], &indices(&x[0], &[0, 3, 3, 2, -1, 4])?.reshape([2, 3])?)),
    // Rows of several blocks, and rows and columns of several programs.
    // A mean, because finite differences of long sums have few digits.
    case!("log_softmax, of long rows", [[2, 1030]], ALL, 24.0, |x| ops::scale(&ops::mean(&ops::log_softmax(&x[0])?)?, 100.0)),
    case!("softmax, of long rows", [[2, 1030]], ALL, 12.0, |x| ops::softmax(&x[0])),
    case!("layer_norm, of long rows", [[2, 1030], [1030], [1030]], ALL, 60.0, |x| ops::layer_norm(&x[0], &x[1], &x[2], 1e-3)),
    case!("layer_norm, of many rows", [[260, 3], [3], [3]], ALL, 400.0, |x| ops::layer_norm(&x[0], &x[1], &x[2], 1e-3)),
    case!("rms_norm, of many rows", [[260, 3], [3]], ALL, 400.0, |x| ops::rms_norm(&x[0], &x[1], 1e-3)),
    case!("cross_entropy, of long rows", [[2, 1030]], ALL, 12.0, |x| ops::cross_entropy(&x[0], &indices(&x[0], &[1029, 3])?, -100)),
    case!("embedding, of long rows", [[2, 260]], ALL, 16.0, |x| ops::embedding(&x[0], &indices(&x[0], &[1, 1, 0])?)),
    case!("a chain", [[3, 5], [4, 5], [4]], ALL, 90.0, |x| {
        let y = ops::gelu(&ops::linear(&x[0], &x[1], Some(&x[2]))?)?;
        ops::mean(&ops::mul(&ops::softmax(&y)?, &y.slice(0..1)?)?)
    }),
];

/// Indices on the device of a tensor.
fn indices(x: &Tensor, indices: &[i64]) -> Result<Tensor> {
    Ok(x.device().expect("it is real").tensor(indices)?.into())
}

fn inputs(case: &Case, seed: u64) -> Vec<Tensor> {
    let mut seed = Seed(seed);
    case.dims.iter().map(|dims| normal_f64(&Device::cpu(), dims, &mut seed, case.domain)).collect()
}

#[test]
fn gradients_are_finite_differences() {
    // Rounding of sums over long rows is small beside this step.
    let mut tolerance = GradTolerance::with(1e-4, 1e-6);
    tolerance.elements = 32;
    for case in CASES {
        let inputs = inputs(case, 1);
        let elements: usize = case.dims.iter().map(|dims| dims.iter().product::<usize>().min(tolerance.elements)).sum();
        let check = gradcheck(&inputs, tolerance, case.function).unwrap_or_else(|error| panic!("{}: {error}", case.name));
        assert!(check.max_error < 1e-6 && 2 * check.checked >= elements, "{}: {check}", case.name);
    }
}

/// The gradients of the inputs for the gradient `weights` of the result.
fn gradients(case: &Case, inputs: &[Tensor], weight: f64) -> (Tensor, Vec<Tensor>) {
    let leaves: Vec<Tensor> = inputs.iter().map(|input| input.detach().requires_grad().unwrap()).collect();
    let y = (case.function)(&leaves).unwrap_or_else(|error| panic!("{}: {error}", case.name)).remove(0);
    let count = values(&y.detach()).len();
    let numbers: Vec<f32> = (0..count).map(|at| (weight + (at % 5) as f64 * 0.25) as f32).collect();
    let grad = Tensor::from_numbers(&y.device().unwrap(), y.dtype(), y.dims(), &numbers).unwrap();
    let mut grads = y.backward_from(&grad).unwrap_or_else(|error| panic!("{}: {error}", case.name));
    (y.detach(), leaves.iter().map(|leaf| grads.take(leaf).unwrap()).collect())
}

#[test]
fn all_dtypes_and_devices_agree_with_f64() {
    for device in devices() {
        for dtype in [Dtype::F32, Dtype::F16, Dtype::Bf16] {
            // What long and many rows add does not depend on the dtype, and a simulated GPU is slow.
            for case in CASES.iter().filter(|case| dtype == Dtype::F32 || !case.name.ends_with("rows")) {
                let narrow: Vec<Tensor> = inputs(case, 2).iter().map(|input| rounded(input, &device, dtype)).collect();
                // The reference computes with the rounded numbers.
                let exact: Vec<Tensor> = narrow.iter().map(|input| rounded(input, &Device::cpu(), Dtype::F64)).collect();
                let (y, grads) = gradients(case, &narrow, 0.5);
                let (y_exact, grads_exact) = gradients(case, &exact, 0.5);
                let unit = match dtype {
                    Dtype::F32 => f64::from(f32::EPSILON) / 2.0,
                    Dtype::F16 => 2f64.powi(-11),
                    _ => 2f64.powi(-8),
                };
                for (number, (found, expected)) in [(&y, &y_exact)].into_iter().chain(grads.iter().zip(&grads_exact)).enumerate() {
                    assert_eq!(found.dims(), expected.dims(), "{}", case.name);
                    for (at, (found, expected)) in values(found).into_iter().zip(values(expected)).enumerate() {
                        let error = (found - expected).abs() / (unit * expected.abs().max(1.0));
                        let what = if number == 0 { "the result".to_owned() } else { format!("the gradient of input {}", number - 1) };
                        assert!(
                            error <= case.units,
                            "{} of {dtype} on {device}: element {at} of {what} is {found}, not {expected}: {error} units",
                            case.name
                        );
                    }
                }
            }
        }
    }
}
