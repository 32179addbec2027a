//! Products of matrices: layouts, batches, epilogues, workspaces for odd row lengths, and gated products.

use galatea::Replay;
use galatea::prelude::*;
use kernel_library::*;

use super::{agree, devices, sample};
use crate::Real;

/// The exact sums of one matrix of `a` and one of `b`, in rows of `columns`.
fn sums<T: Real>(a: &[T], b: &[T], [rows, columns, inner]: [usize; 3], [transposed_a, transposed_b]: [bool; 2]) -> Vec<f64> {
    let left = |row: usize, k: usize| a[if transposed_a { k * rows + row } else { row * inner + k }].wide();
    let right = |k: usize, column: usize| b[if transposed_b { column * inner + k } else { k * columns + column }].wide();
    (0..rows * columns).map(|at| (0..inner).map(|k| left(at / columns, k) * right(k, at % columns)).sum()).collect()
}

/// The shape of a matrix, which is stored transposed or not.
fn shape([down, across]: [usize; 2], is_transposed: bool) -> [usize; 2] {
    if is_transposed { [across, down] } else { [down, across] }
}

/// A product in a layout.
fn of_layout<'a, T: Half>([transposed_a, transposed_b]: [bool; 2]) -> Matmul<'a, T> {
    let product = if transposed_a { Matmul::new().transposed_a() } else { Matmul::new() };
    if transposed_b { product.transposed_b() } else { product }
}

const LAYOUTS: [[bool; 2]; 4] = [[false, false], [false, true], [true, false], [true, true]];

/// Numbers of rows that fill no tile. Rows of the second shape begin at multiples of 16 bytes, so that a Hopper GPU copies operands ahead.
const EXTENTS: [[usize; 3]; 2] = [[5, 33, 17], [72, 40, 80]];

fn products_as<T: Half + Real, O: Real>(layouts: &[[bool; 2]]) {
    for device in devices() {
        for ([rows, columns, inner], layout) in EXTENTS.into_iter().flat_map(|extents| layouts.iter().map(move |layout| (extents, *layout)))
        {
            let (a, host_a) = sample::<T>(device, &shape([rows, inner], layout[0]), 1.0);
            let (b, host_b) = sample::<T>(device, &shape([inner, columns], layout[1]), 1.0);
            let want = sums(&host_a, &host_b, [rows, columns, inner], layout);
            let y = of_layout(layout).product_as::<O>(&a, &b).unwrap();
            // The roundings of sums in `f32` are relative to their largest part.
            agree(device, &y, &[rows, columns], inner as f64, |i| want[i]);
        }
    }
}

#[test]
fn products_of_every_layout_and_type() {
    products_as::<f16, f16>(&LAYOUTS);
    products_as::<bf16, bf16>(&LAYOUTS[..1]);
    // `f32` has what is lost to rounding: its tolerance is that of `f32`.
    products_as::<bf16, f32>(&LAYOUTS[1..2]);
}

/// Elements that `tf32` has give the product of `f32`, also from a workspace.
#[test]
fn products_of_tf32() {
    for device in devices() {
        for ([rows, columns, inner], [transposed_a, transposed_b]) in
            EXTENTS.into_iter().flat_map(|extents| LAYOUTS.map(|layout| (extents, layout)))
        {
            let of = |len: usize| (0..len).map(|at| ((at * 7 + at / 5) % 33) as f32 / 8.0 - 2.0).collect::<Vec<f32>>();
            let (host_a, host_b) = (of(rows * inner), of(inner * columns));
            let a = device.tensor_from(&host_a, shape([rows, inner], transposed_a)).unwrap();
            let b = device.tensor_from(&host_b, shape([inner, columns], transposed_b)).unwrap();
            let want = sums(&host_a, &host_b, [rows, columns, inner], [transposed_a, transposed_b]);
            for padding in [Padding::Never, Padding::Always] {
                let product = if transposed_a { Matmul::tf32().transposed_a() } else { Matmul::tf32() };
                let product = if transposed_b { product.transposed_b() } else { product };
                let y = product.padding(padding).product(&a, &b).unwrap();
                assert!(y.to_vec().unwrap().iter().zip(&want).all(|(got, want)| f64::from(*got) == *want), "{device}");
            }
        }
    }
}

/// 8-bit operands of mixed types in every layout, with each kind of scales, and with epilogues.
#[test]
fn scaled_products() {
    for device in devices() {
        for (at, layout) in LAYOUTS.into_iter().enumerate() {
            for [rows, columns, inner] in [[5, 33, 17], [80, 48, 96]] {
                let integers = |len: usize, step: usize| (0..len).map(move |at| (at * step + at / 3) % 7);
                let a: Vec<i8> = integers(rows * inner, 3).map(|number| number as i8 - 3).collect();
                let b: Vec<u8> = integers(inner * columns, 5).map(|number| number as u8).collect();
                let wide = |number: f64| f8e4m3::from_f32(number as f32);
                let (float_a, float_b): (Vec<f8e4m3>, Vec<f8e5m2>) =
                    (a.iter().map(|x| wide(f64::from(*x))).collect(), b.iter().map(|x| f8e5m2::from_f32(f32::from(*x))).collect());
                let want = {
                    let left = |row: usize, k: usize| f64::from(a[if layout[0] { k * rows + row } else { row * inner + k }]);
                    let right = |k: usize, column: usize| f64::from(b[if layout[1] { column * inner + k } else { k * columns + column }]);
                    (0..rows * columns)
                        .map(|at| (0..inner).map(|k| left(at / columns, k) * right(k, at % columns)).sum::<f64>())
                        .collect::<Vec<f64>>()
                };
                let (of_a, of_b) = (shape([rows, inner], layout[0]), shape([inner, columns], layout[1]));
                let scale_of = |count: usize| (0..count).map(|at| [0.5f32, 1.0, 2.0, 0.25][at % 4]).collect::<Vec<f32>>();
                let (row_scales, column_scales) =
                    if at % 2 == 0 { (scale_of(rows), scale_of(1)) } else { (scale_of(1), scale_of(columns)) };
                let bias: Vec<f32> = (0..columns).map(|at| at as f32 - 4.0).collect();
                let residual: Vec<f32> = (0..rows * columns).map(|at| (at % 9) as f32).collect();
                let [a_scales, b_scales, of_bias] = [&row_scales, &column_scales, &bias].map(|host| device.tensor(host).unwrap());
                let of_residual = device.tensor_from(&residual, [rows, columns]).unwrap();
                let scaled = |at: usize| {
                    let (row, column) = (at / columns, at % columns);
                    want[at] * f64::from(row_scales[row % row_scales.len()]) * f64::from(column_scales[column % column_scales.len()])
                };
                let product = || {
                    let product = if layout[0] { ScaledMatmul::<f32>::new().transposed_a() } else { ScaledMatmul::new() };
                    if layout[1] { product.transposed_b() } else { product }
                };
                let equal = |y: Tensor<f32>, want: &dyn Fn(usize) -> f64| {
                    assert_eq!(y.shape(), [rows, columns]);
                    for (at, got) in y.to_vec().unwrap().into_iter().enumerate() {
                        assert_eq!(f64::from(got), want(at), "{device}, {layout:?}, {rows} x {columns} x {inner}, element {at}");
                    }
                };
                let (x, w) = (device.tensor_from(&a, of_a).unwrap(), device.tensor_from(&b, of_b).unwrap());
                equal(product().product(&x, &w).unwrap(), &|at| want[at]);
                let epilogue = product().scales(&a_scales, &b_scales).bias(&of_bias).activation(Activation::Relu).residual(&of_residual);
                equal(epilogue.product(&x, &w).unwrap(), &|at| {
                    (scaled(at) + f64::from(bias[at % columns])).max(0.0) + f64::from(residual[at])
                });
                let (x, w) = (device.tensor_from(&float_a, of_a).unwrap(), device.tensor_from(&float_b, of_b).unwrap());
                equal(product().scales(&a_scales, &b_scales).product(&x, &w).unwrap(), &scaled);
            }
        }
    }
}

/// A call allocates nothing, so that a replay captures it.
#[test]
fn scaled_products_are_captured() {
    for device in devices() {
        let (a, b) = (device.full([16, 32], 2i8).unwrap(), device.full([32, 16], 3i8).unwrap());
        let mut y = device.zeros::<f32>([16, 16]).unwrap();
        ScaledMatmul::new().product_into(&a, &b, &mut y).unwrap();
        let mut replay = Replay::capture(device.stream(), || ScaledMatmul::new().product_into(&a, &b, &mut y)).unwrap();
        y.fill(0.0).unwrap();
        replay.launch((&a, &b, &mut y)).unwrap();
        assert_eq!(y.to_vec().unwrap(), [192.0; 256], "{device}");
    }
}

/// A matrix of weights for all rows, and batches of both operands with scales of rows.
#[test]
fn scaled_products_of_batches() {
    for device in devices() {
        let of = |shape: &[usize]| {
            let host: Vec<i8> = (0..shape.iter().product()).map(|at| (at % 11) as i8 - 5).collect();
            (device.tensor_from(&host, shape).unwrap(), host)
        };
        let ((x, host_x), (w, host_w), (one, host_one)) = (of(&[2, 9, 16]), of(&[2, 16, 24]), of(&[16, 24]));
        let scales: Vec<f32> = (0..9).map(|row| [0.5, 2.0][row % 2]).collect();
        let (a_scales, b_scales) = (device.tensor(&scales).unwrap(), device.tensor(&[0.25f32]).unwrap());
        for (weights, host, is_batch) in [(&w, &host_w, true), (&one, &host_one, false)] {
            let y: Tensor<f32> = ScaledMatmul::new().scales(&a_scales, &b_scales).product(&x, weights).unwrap();
            assert_eq!(y.shape(), [2, 9, 24]);
            for (at, got) in y.to_vec().unwrap().into_iter().enumerate() {
                let (batch, row, column) = (at / (9 * 24), at / 24 % 9, at % 24);
                let of_batch = if is_batch { batch * 16 * 24 } else { 0 };
                let sum: f64 =
                    (0..16).map(|k| f64::from(host_x[(batch * 9 + row) * 16 + k]) * f64::from(host[of_batch + k * 24 + column])).sum();
                assert_eq!(f64::from(got), sum * 0.25 * f64::from(scales[row]), "{device}, element {at}");
            }
        }
    }
}

/// Pairs of leading axes: batches of both, and one matrix for all of the other.
#[test]
fn products_of_batches() {
    let pairs: [[&[usize]; 2]; 4] = [[&[2, 2], &[2, 2]], [&[3], &[]], [&[], &[3]], [&[1], &[]]];
    let [rows, columns, inner] = [9, 24, 16];
    for device in devices() {
        for ([of_a, of_b], layout) in pairs.into_iter().flat_map(|pair| [[false, false], [true, true]].map(|layout| (pair, layout))) {
            let of = |leading: &[usize], matrix: [usize; 2]| [leading, &matrix].concat();
            let (a, host_a) = sample::<bf16>(device, &of(of_a, shape([rows, inner], layout[0])), 1.0);
            let (b, host_b) = sample::<bf16>(device, &of(of_b, shape([inner, columns], layout[1])), 1.0);
            let leading = if of_a.is_empty() { of_b } else { of_a };
            let count: usize = leading.iter().product();
            let matrix = |host: &[bf16], own: &[usize], batch: usize, len: usize| {
                let batch = if own.is_empty() { 0 } else { batch };
                host[batch * len..][..len].to_vec()
            };
            let of_batch = |batch: usize| {
                let (a, b) = (matrix(&host_a, of_a, batch, rows * inner), matrix(&host_b, of_b, batch, inner * columns));
                sums(&a, &b, [rows, columns, inner], layout)
            };
            let want: Vec<f64> = (0..count).flat_map(of_batch).collect();
            let y = of_layout(layout).product(&a, &b).unwrap();
            agree(device, &y, &of(leading, [rows, columns]), 1.0, |i| want[i]);

            // A bias of rows is that of each matrix.
            let (bias, host_bias) = sample::<bf16>(device, &[rows], 1.0);
            let y = of_layout(layout).row_bias(&bias).product(&a, &b).unwrap();
            agree(device, &y, &of(leading, [rows, columns]), 1.0, |i| want[i] + host_bias[i / columns % rows].wide());
        }
    }
}

/// The activations, computed in f64.
fn activated(activation: Activation, v: f64) -> f64 {
    match activation {
        Activation::None => v,
        Activation::Relu => v.max(0.0),
        Activation::Silu => v / (1.0 + (-v).exp()),
        Activation::Gelu => 0.5 * v * (1.0 + erf(v / 2f64.sqrt())),
    }
}

/// The error function by its Taylor series, for arguments of a few units.
fn erf(x: f64) -> f64 {
    let (mut term, mut sum) = (x, x);
    for n in 1..200 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    (sum * 2.0 / std::f64::consts::PI.sqrt()).clamp(-1.0, 1.0)
}

#[test]
fn epilogues() {
    let extents @ [rows, columns, inner] = [20, 40, 16];
    for device in devices() {
        let (a, host_a) = sample::<f16>(device, &[rows, inner], 1.0);
        let (b, host_b) = sample::<f16>(device, &[inner, columns], 1.0);
        let (bias, host_bias) = sample::<f16>(device, &[columns], 1.0);
        let (residual, host_residual) = sample::<f16>(device, &[rows, columns], 1.0);
        let want = sums(&host_a, &host_b, extents, [false; 2]);
        for activation in [Activation::None, Activation::Relu, Activation::Silu, Activation::Gelu] {
            let biased = |i: usize| activated(activation, 0.5 * want[i] + host_bias[i % columns].wide());
            let y = Matmul::new().scale(0.5).bias(&bias).activation(activation).residual(&residual).product(&a, &b).unwrap();
            agree(device, &y, &[rows, columns], 2.0, |i| biased(i) + host_residual[i].wide());
        }
        let y = Matmul::new().bias(&bias).product(&a, &b).unwrap();
        agree(device, &y, &[rows, columns], 2.0, |i| want[i] + host_bias[i % columns].wide());
    }
}

/// The residual of a batch belongs to the matrices of the batch.
#[test]
fn residuals_of_batches() {
    let extents @ [rows, columns, inner] = [3, 8, 16];
    for device in devices() {
        let (a, host_a) = sample::<f16>(device, &[2, rows, inner], 1.0);
        let (b, host_b) = sample::<f16>(device, &[2, inner, columns], 1.0);
        let (residual, host_residual) = sample::<f16>(device, &[2, rows, columns], 1.0);
        let y = Matmul::new().residual(&residual).product(&a, &b).unwrap();
        let of_batch = |batch: usize| sums(&host_a[batch * rows * inner..], &host_b[batch * inner * columns..], extents, [false; 2]);
        let want = [of_batch(0), of_batch(1)].concat();
        agree(device, &y, &[2, rows, columns], 2.0, |i| want[i] + host_residual[i].wide());
    }
}

/// Copies of one operand or of both give the same sums, in a workspace of the call and in one that exists, for rows and addresses that are not aligned.
#[test]
fn products_of_copies() {
    for device in devices() {
        for ([rows, columns, inner], layout) in
            [[17, 33, 31], [17, 33, 32], [16, 40, 31], [40, 24, 48]].into_iter().zip(LAYOUTS.into_iter().cycle())
        {
            let (stored_a, stored_b) = (shape([rows, inner], layout[0]), shape([inner, columns], layout[1]));
            let (a, host_a) = sample::<bf16>(device, &stored_a, 1.0);
            let (b, host_b) = sample::<bf16>(device, &stored_b, 1.0);
            let want = sums(&host_a, &host_b, [rows, columns, inner], layout);
            let product = || of_layout(layout).padding(Padding::Always);
            agree(device, &product().product(&a, &b).unwrap(), &[rows, columns], 1.0, |i| want[i]);

            let padded = |[down, across]: [usize; 2]| if across % 8 == 0 { 0 } else { down * across.next_multiple_of(8) };
            let len = product().workspace_len(&a, &b).unwrap();
            assert_eq!(len, padded(stored_a) + padded(stored_b), "{rows} {columns} {inner} {layout:?}");
            let mut workspace = device.full(len + 8, bf16::NAN).unwrap();
            let mut y = device.full([rows, columns], f32::NAN).unwrap();
            product().workspace(&mut workspace).product_into(&a, &b, &mut y).unwrap();
            agree(device, &y, &[rows, columns], inner as f64, |i| want[i]);
            // The end of the workspace is not that of this product.
            assert!(workspace.to_vec().unwrap()[len..].iter().all(|element| element.is_nan()), "{device}");
        }
        // Rows of 16 bytes from an address that is no multiple of them.
        let (a, host_a) = sample::<bf16>(device, &[1 + 3 * 8], 1.0);
        let (b, host_b) = sample::<bf16>(device, &[8, 8], 1.0);
        let view = a.slice(1..).unwrap().reshape([3, 8]).unwrap();
        assert_eq!(Matmul::new().padding(Padding::Always).workspace_len(&view, &b).unwrap(), 24);
        let want = sums(&host_a[1..], &host_b, [3, 8, 8], [false; 2]);
        agree(device, &Matmul::new().padding(Padding::Always).product(&view, &b).unwrap(), &[3, 8], 1.0, |i| want[i]);
        agree(device, &matmul(&view, &b).unwrap(), &[3, 8], 1.0, |i| want[i]);
    }
}

#[test]
fn gated_products() {
    for device in devices() {
        for ([rows, columns, inner], layout) in EXTENTS.into_iter().zip([[false, false], [false, true]]) {
            let (x, host_x) = sample::<bf16>(device, &shape([rows, inner], layout[0]), 1.0);
            let (gate, host_gate) = sample::<bf16>(device, &shape([inner, columns], layout[1]), 1.0);
            let (up, host_up) = sample::<bf16>(device, &shape([inner, columns], layout[1]), 1.0);
            let [gates, ups] = [host_gate, host_up].map(|host| sums(&host_x, &host, [rows, columns, inner], layout));
            let y = of_layout(layout).activation(Activation::Gelu).scale(0.25).gated_product(&x, &gate, &up).unwrap();
            agree(device, &y, &[rows, columns], 1.0, |i| activated(Activation::Gelu, 0.25 * gates[i]) * 0.25 * ups[i]);
            if layout == [false; 2] {
                let y = matmul_gated(&x.reshape([1, rows, inner]).unwrap(), &gate, &up).unwrap();
                agree(device, &y, &[1, rows, columns], 4.0, |i| activated(Activation::Silu, gates[i]) * ups[i]);
            }
        }
    }
}

/// Products without elements, and sums of no elements.
#[test]
fn products_of_empty_tensors() {
    for device in devices() {
        let zeros = |shape: &[usize]| device.zeros::<f16>(shape).unwrap();
        for (a, b, y) in [
            (&[0, 4][..], &[4, 3][..], &[0, 3][..]),
            (&[2, 4], &[4, 0], &[2, 0]),
            (&[0, 2, 4], &[0, 4, 3], &[0, 2, 3]),
            (&[0, 2, 4], &[4, 3], &[0, 2, 3]),
        ] {
            assert_eq!(matmul(&zeros(a), &zeros(b)).unwrap().shape(), y, "{device}");
        }
        let bias = device.full(3, f16::ONE).unwrap();
        let y = Matmul::new().bias(&bias).product(&zeros(&[2, 0]), &zeros(&[0, 3])).unwrap();
        assert_eq!((y.shape(), y.to_vec().unwrap()), (&[2, 3][..], vec![f16::ONE; 6]), "{device}");
        assert_eq!(matmul_gated(&zeros(&[0, 4]), &zeros(&[4, 3]), &zeros(&[4, 3])).unwrap().shape(), [0, 3]);
    }
}

/// A product into a tensor that exists, with its workspace, allocates nothing, so that a replay can capture it.
#[test]
fn captured_products() {
    for device in devices() {
        let extents @ [rows, columns, inner] = [17, 33, 31];
        let (a, host_a) = sample::<f16>(device, &[rows, inner], 1.0);
        let (b, host_b) = sample::<f16>(device, &[inner, columns], 1.0);
        let want = sums(&host_a, &host_b, extents, [false; 2]);
        let mut workspace = device.empty::<f16>(Matmul::new().padding(Padding::Always).workspace_len(&a, &b).unwrap()).unwrap();
        let mut y = device.full([rows, columns], f16::NAN).unwrap();
        let mut launch = |y: &mut Tensor<f16>| Matmul::new().padding(Padding::Always).workspace(&mut workspace).product_into(&a, &b, y);
        launch(&mut y).unwrap(); // tunes
        y.fill(f16::NAN).unwrap();
        let mut replay = Replay::capture(device.stream(), || launch(&mut y)).unwrap();
        replay.launch((&a, &b, &mut y, &mut workspace)).unwrap();
        agree(device, &y, &[rows, columns], 1.0, |i| want[i]);
    }
}
