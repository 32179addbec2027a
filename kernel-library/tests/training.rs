//! Training steps: a recorded one beside the function that was recorded, optimizers beside sums in f64, and errors of ops.

mod samples;

use galatea::graph::{Session, export, input};
use galatea::ops::{Tensor, compare, no_grad};
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_library::nn::{Linear, Seed, normal};
use kernel_library::{AdamW, ops};
use samples::{devices, rounded, values};

/// The parameters of a perceptron with a hidden layer of 8, the moments of AdamW, and the number of the step.
fn initial(device: &Device, dtype: Dtype) -> Vec<Tensor> {
    let mut seed = Seed(1);
    let layers = [(3, 8), (8, 2)].map(|(inner, columns)| Linear::init(device, dtype, inner, columns, &mut seed).unwrap());
    let weights: Vec<Tensor> = layers.into_iter().flat_map(|layer| [layer.weight, layer.bias.unwrap()]).collect();
    let moments: Vec<Tensor> = weights.iter().chain(&weights).map(|weight| weight.new_zeros(Dtype::F32, weight.dims()).unwrap()).collect();
    let step = Tensor::zeros(device, Dtype::I64, [0usize; 0]).unwrap();
    weights.into_iter().chain(moments).chain([step]).collect()
}

/// The loss, and the next state. `x` is `[batch, 3]` and `target` is `[batch, 2]`.
fn train(x: &Tensor, target: &Tensor, state: &[&Tensor]) -> Result<Vec<Tensor>> {
    let mut state: Vec<Tensor> = state.iter().map(|tensor| tensor.detach()).collect();
    let (weights, rest) = state.split_at_mut(4);
    let (first, rest) = rest.split_at_mut(4);
    let (second, step) = rest.split_at_mut(4);
    for weight in weights.iter_mut() {
        *weight = weight.clone().requires_grad()?;
    }
    let hidden = ops::gelu(&ops::linear(x, &weights[0], Some(&weights[1]))?)?;
    let loss = ops::mse_loss(&ops::linear(&hidden, &weights[2], Some(&weights[3]))?, target)?;
    let gradients = loss.backward()?;
    ops::count_step(&mut step[0])?;
    for ((weight, m), v) in weights.iter_mut().zip(first).zip(second) {
        let gradient = gradients.get(weight).expect("the loss depends on each weight").clone();
        ops::adamw(weight, &gradient, m, v, &step[0], &AdamW { lr: 0.02, ..AdamW::default() })?;
        *weight = weight.detach();
    }
    Ok([loss.detach()].into_iter().chain(state).collect())
}

#[test]
fn a_recorded_step_is_the_step() {
    for device in devices() {
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let mut state = initial(&device, dtype);
            let batch = Dim::new("batch", 1..=64);
            let mut inputs = vec![input("x", [&batch, &3.into()], dtype), input("target", [&batch, &2.into()], dtype)];
            inputs.extend(state.iter().enumerate().map(|(number, tensor)| input(&format!("state{number}"), tensor.dims(), tensor.dtype())));
            let inputs: [_; 15] = inputs.try_into().expect("there are 15");
            let graph = export(|tensors: [&Tensor; 15]| train(tensors[0], tensors[1], &tensors[2..]), inputs).unwrap();
            let session = Session::new(graph, &device).unwrap();
            let (mut seed, mut losses) = (Seed(2), Vec::new());
            for number in 0..if device.is_sim() { 4 } else { 100 } {
                // Batches of several sizes run the same recording.
                let rows = [16, 16, 1, 33][number % 4];
                let x = normal(&device, dtype, &[rows, 3], &mut seed).unwrap();
                let target: Vec<f64> = values(&x).chunks(3).flat_map(|v| [v[0] - 0.5 * v[1], v[2]]).collect();
                let target = rounded(&Tensor::from(Device::cpu().tensor_from(&target, [rows, 2]).unwrap()), &device, dtype);
                let state_inputs: Vec<&Tensor> = state.iter().collect();
                let eager = train(&x, &target, &state_inputs).unwrap();
                let recorded = session.run([&x, &target].into_iter().chain(state_inputs).collect::<Vec<_>>()).unwrap();
                assert_eq!(eager.len(), recorded.len());
                for (at, (eager, recorded)) in eager.iter().zip(&recorded).enumerate() {
                    assert!(
                        compare(eager, recorded).unwrap().bit_equal,
                        "step {number} of {dtype} on {device}, output {at}: {eager} {recorded}"
                    );
                }
                losses.push(values(&recorded[0])[0]);
                state = recorded;
                state.remove(0);
            }
            assert_eq!(state[12].to_vec::<i64>().unwrap(), [losses.len() as i64]);
            if losses.len() == 100 && dtype == Dtype::F32 {
                let mean = |losses: &[f64]| losses.iter().sum::<f64>() / losses.len() as f64;
                assert!(mean(&losses[80..]) < 0.5 * mean(&losses[..20]), "{losses:?}");
            }
        }
    }
}

#[test]
fn optimizers_take_steps() {
    let unit = |dtype| if dtype == Dtype::Bf16 { 2f64.powi(-8) } else { 2f64.powi(-24) };
    for device in devices() {
        for dtype in [Dtype::F32, Dtype::Bf16, Dtype::F64] {
            let wide = if dtype == Dtype::F64 { Dtype::F64 } else { Dtype::F32 };
            let make = |seed| {
                let normal = normal(&Device::cpu(), Dtype::F32, &[1030], &mut Seed(seed)).unwrap();
                rounded(&normal, &device, dtype)
            };
            let (start, g) = (make(1), make(2));
            let zeros = || Tensor::zeros(&device, wide, [1030]).unwrap();
            let close = |what: &str, weight: &Tensor, expected: &dyn Fn(f64, f64) -> f64| {
                for ((found, w), g) in values(weight).into_iter().zip(values(&start)).zip(values(&g)) {
                    let expected = expected(w, g);
                    let most = 8.0 * unit(dtype) * expected.abs().max(1.0);
                    assert!((found - expected).abs() <= most, "{what} of {dtype} on {device}: {found}, not {expected}");
                }
            };
            // A weight that requires its gradient is updated, and still requires it.
            let mut weight = start.clone().requires_grad().unwrap();
            ops::sgd(&mut weight, &g, 0.1, 0.5).unwrap();
            assert!(weight.needs_grad());
            close("sgd", &weight, &|w, g| w - 0.1 * (g + 0.5 * w));
            for nesterov in [false, true] {
                let (mut weight, mut velocity) = (start.clone(), zeros());
                // A weight of 0 leaves the velocity as it is; the learning rate of 0 leaves the weight.
                ops::sgd_momentum(&mut weight, &g, &mut velocity, 0.0, 0.5, 0.0, nesterov).unwrap();
                ops::sgd_momentum(&mut weight, &g, &mut velocity, 0.25, 0.5, 0.0, nesterov).unwrap();
                close("sgd_momentum", &weight, &|w, g| w - 0.25 * if nesterov { g + 0.5 * 1.5 * g } else { 1.5 * g });
            }
            let (mut weight, mut m, mut v) = (start.clone(), zeros(), zeros());
            let mut step = Tensor::zeros(&device, Dtype::I64, [0usize; 0]).unwrap();
            let parameters = AdamW { lr: 0.25, beta1: 0.5, beta2: 0.75, eps: 0.5, weight_decay: 0.125 };
            for _ in 0..2 {
                ops::count_step(&mut step).unwrap();
                ops::adamw(&mut weight, &g, &mut m, &mut v, &step, &parameters).unwrap();
            }
            assert_eq!(step.to_vec::<i64>().unwrap(), [2]);
            // Constant gradients have unbiased moments `g` and `g^2` in each step.
            let once = |w: f64, g: f64| w * (1.0 - 0.25 * 0.125) - 0.25 * g / (g.abs() + 0.5);
            close("adamw", &weight, &|w, g| once(once(w, g), g));
        }
    }
}

#[test]
fn arguments_that_do_not_fit_are_errors() {
    let zeros = |dtype, dims: &[usize]| Tensor::zeros(&Device::cpu(), dtype, dims).unwrap();
    let f32s = |dims: &[usize]| zeros(Dtype::F32, dims);
    let x = f32s(&[2, 3]);
    let cases: Vec<(Result<Tensor>, &str)> = vec![
        (
            ops::add(&x, &f32s(&[2])),
            "`galatea::add`: `x` of [2, 3] and `y` of [2] do not broadcast\nhelp: the extents of an axis, counted from the last one, are equal, or one of them is 1: reshape a tensor",
        ),
        (
            ops::mul(&x, &zeros(Dtype::F16, &[3])),
            "`galatea::mul`: `y` is f16[3], and `f32` elements are expected\nhelp: convert its elements",
        ),
        (ops::matmul(&x, &f32s(&[2, 3])), "`galatea::matmul`: `b` is f32[2, 3], and [3, 3] is expected"),
        (ops::matmul(&f32s(&[3]), &x), "`galatea::matmul`: `a` is f32[3], and [3, 3] is expected"),
        (
            ops::linear(&x, &f32s(&[4, 3]), Some(&zeros(Dtype::F64, &[4]))),
            "`galatea::linear`: `bias` is f64[4], and `f32` elements are expected\nhelp: convert its elements",
        ),
        (ops::sum_axis(&x, 2), "there is no axis 2: the tensor has 2 axes"),
        (ops::mean_axis(&x, -3), "there is no axis -3: the tensor has 2 axes"),
        (ops::softmax(&f32s(&[])), "there is no axis -1: the tensor has 0 axes"),
        (ops::layer_norm(&x, &f32s(&[2]), &f32s(&[3]), 1e-5), "`galatea::layer_norm`: `weight` is f32[2], and [3] is expected"),
        (ops::layer_norm(&x, &f32s(&[3]), &f32s(&[1, 3]), 1e-5), "`galatea::layer_norm`: `bias` is f32[1, 3], and [3] is expected"),
        (ops::cross_entropy(&x, &zeros(Dtype::I64, &[3]), -100), "`galatea::cross_entropy`: `targets` is i64[3], and [2] is expected"),
        (
            ops::cross_entropy(&x, &zeros(Dtype::I32, &[2]), -100),
            "`galatea::cross_entropy`: `targets` is i32[2], and `i64` elements are expected\nhelp: convert its elements",
        ),
        (ops::mse_loss(&x, &f32s(&[3, 2])), "`galatea::mse_loss`: `y` is f32[3, 2], and [2, 3] is expected"),
        (
            ops::embedding(&x, &zeros(Dtype::I32, &[2])),
            "`galatea::embedding`: `indices` is i32[2], and `i64` elements are expected\nhelp: convert its elements",
        ),
    ];
    for (result, expected) in cases {
        assert_eq!(result.unwrap_err().to_string(), expected);
    }
    let (mut weight, mut m, mut v) = (x.clone(), x.clone(), x.clone());
    let step = zeros(Dtype::I64, &[]);
    let parameters = AdamW::default();
    let mut text = |gradients: &Tensor, m: &mut Tensor, parameters: &AdamW| {
        ops::adamw(&mut weight, gradients, m, &mut v, &step, parameters).unwrap_err().to_string()
    };
    assert_eq!(text(&f32s(&[6]), &mut m, &parameters), "`galatea::adamw_`: `gradients` is f32[6], and [2, 3] is expected");
    assert_eq!(
        text(&x, &mut zeros(Dtype::Bf16, &[2, 3]), &parameters),
        "`galatea::adamw_`: `m` is bf16[2, 3], and `f32` elements are expected\nhelp: convert its elements"
    );
    let wrong = text(&x, &mut m, &AdamW { beta2: 1.0, ..parameters });
    assert!(wrong.contains("`beta2`") && wrong.contains("from 0 to below 1"), "{wrong}");
    // An optimizer outside of its function is no differentiable op.
    let mut leaf = x.clone().requires_grad().unwrap();
    let mut step = |leaf: &mut Tensor| ops::adamw_step(leaf, &x, &mut m, &mut v, &step, 0.1, 0.9, 0.99, 1e-8, 0.0);
    assert!(step(&mut leaf).is_err() && no_grad(|| step(&mut leaf)).is_ok());
}
