//! Layer norm of the rows of a matrix, and its gradient.
//!
//! ```sh
//! cargo run --release --example layer_norm -- --device cpu
//! ```

mod report;

use galatea::prelude::*;

// ANCHOR: forward
/// `y = (x - mean) * rstd * weight + bias` for each row, where `rstd` is `1 / sqrt(variance + eps)`. Each program handles one row.
#[kernel(heuristics(N = columns.next_power_of_two(), num_warps = if N >= 4096 { 8 } else { 4 }), N = [512, 1024, 2048])]
fn forward<const N: usize>(
    x: Ptr<f32>,
    weight: Ptr<f32>,
    bias: Ptr<f32>,
    y: PtrMut<f32>,
    mean: PtrMut<f32>,
    rstd: PtrMut<f32>,
    columns: usize,
    eps: f32,
) {
    let row = program_id(0);
    let column = arange(0, N);
    let mask = column < columns;
    let v = load(x + row * columns + column, mask = mask);
    let row_mean = sum(v) / columns as f32;
    // Past the end of the row `v` is 0, but `v - row_mean` is not.
    let difference = select(mask, v - row_mean, 0.0);
    let row_rstd = rsqrt(sum(difference * difference) / columns as f32 + eps);
    let w = load(weight + column, mask = mask);
    let b = load(bias + column, mask = mask);
    store(y + row * columns + column, difference * row_rstd * w + b, mask = mask);
    // Kept for the backward pass.
    store(mean + row, row_mean);
    store(rstd + row, row_rstd);
}
// ANCHOR_END: forward

// ANCHOR: backward
/// The gradient `dx` of each row. Each program also writes its partial sums of the gradients of `weight` and `bias` to its row of `parts`.
#[kernel(heuristics(N = columns.next_power_of_two(), num_warps = if N >= 4096 { 8 } else { 4 }), N = [512, 1024, 2048])]
fn backward<const N: usize>(
    dy: Ptr<f32>,
    x: Ptr<f32>,
    weight: Ptr<f32>,
    mean: Ptr<f32>,
    rstd: Ptr<f32>,
    dx: PtrMut<f32>,
    parts: PtrMut<f32>,
    rows: usize,
    columns: usize,
) {
    let column = arange(0, N);
    let mask = column < columns;
    let w = load(weight + column, mask = mask);
    let (mut dweight, mut dbias) = (zeros::<f32>([N]), zeros::<f32>([N]));
    // Every `num_programs(0)`-th row, so that the numbers of rows of two programs differ by at most one.
    for row in range(program_id(0), rows, num_programs(0)) {
        let offsets = row * columns + column;
        let d = load(dy + offsets, mask = mask);
        let row_rstd = load(rstd + row);
        let normal = (load(x + offsets, mask = mask) - load(mean + row)) * row_rstd;
        let g = d * w;
        let common = (normal * sum(g * normal) + sum(g)) / columns as f32;
        store(dx + offsets, (g - common) * row_rstd, mask = mask);
        dweight += d * normal;
        dbias += d;
    }
    let part = parts + 2 * program_id(0) * columns;
    store(part + column, dweight, mask = mask);
    store(part + columns + column, dbias, mask = mask);
}
// ANCHOR_END: backward

// ANCHOR: sums
/// The sum of each column of a matrix.
#[kernel(BLOCK_SIZE = 64)]
fn column_sums<const BLOCK_SIZE: usize>(x: Ptr<f32>, sums: PtrMut<f32>, rows: usize, columns: usize) {
    let column = program_id(0) * BLOCK_SIZE + arange(0, BLOCK_SIZE);
    let mask = column < columns;
    let mut total = zeros::<f32>([BLOCK_SIZE]);
    for row in range(0, rows, 1, unroll = 4) {
        total += load(x + row * columns + column, mask = mask);
    }
    store(sums + column, total, mask = mask);
}
// ANCHOR_END: sums

// ANCHOR: launch
/// A layer norm over `weight.len()` columns, with the values that the forward pass saves for the backward pass.
pub(crate) struct LayerNorm {
    pub(crate) weight: Tensor<f32>,
    pub(crate) bias: Tensor<f32>,
    /// The mean of each row.
    mean: Tensor<f32>,
    rstd: Tensor<f32>,
    /// The partial sums of the gradients of `weight` and `bias`, a row for each program of the backward pass.
    parts: Tensor<f32>,
}

impl LayerNorm {
    const EPS: f32 = 1e-5;

    pub(crate) fn new(weight: Tensor<f32>, bias: Tensor<f32>, rows: usize) -> Result<LayerNorm> {
        let device = weight.device();
        let (mean, rstd) = (device.zeros(rows)?, device.zeros(rows)?);
        // Enough programs to keep a GPU busy, and few enough for their shares to be summed quickly.
        let groups = (2 * device.multiprocessors()).min(rows).max(1);
        let parts = device.zeros([groups, 2 * weight.len()])?;
        Ok(LayerNorm { weight, bias, mean, rstd, parts })
    }

    pub(crate) fn forward(&mut self, x: &Tensor<f32>, y: &mut Tensor<f32>) -> Result<()> {
        let LayerNorm { weight, bias, mean, rstd, .. } = self;
        let (rows, columns) = (mean.len(), weight.len());
        forward(x, &*weight, &*bias, y, mean, rstd, columns, Self::EPS).grid(|_| rows).launch()
    }

    /// Computes the gradients: `dx` of `x`, and of `weight` and `bias` in the two rows of `dparameters`.
    pub(crate) fn backward(
        &mut self,
        dy: &Tensor<f32>,
        x: &Tensor<f32>,
        dx: &mut Tensor<f32>,
        dparameters: &mut Tensor<f32>,
    ) -> Result<()> {
        let LayerNorm { weight, mean, rstd, parts, .. } = self;
        let (rows, columns, groups) = (mean.len(), weight.len(), parts.shape()[0]);
        backward(dy, x, &*weight, &*mean, &*rstd, dx, &mut *parts, rows, columns).grid(|_| groups).launch()?;
        column_sums::<64>(&*parts, dparameters, groups, 2 * columns).grid(cdiv(2 * columns, 64)).launch()
    }
}
// ANCHOR_END: launch

/// A row in `f64`. With `y` the layer norm of `x`, the loss `sum(dy * y)` depends on `x` only by three sums over the row; so its derivative is taken
/// by differences, without a formula for the gradient.
struct Row<'a> {
    x: &'a [f32],
    dy: &'a [f32],
    weight: &'a [f32],
    mean: f64,
    rstd: f64,
}

impl<'a> Row<'a> {
    fn new(x: &'a [f32], dy: &'a [f32], weight: &'a [f32]) -> Row<'a> {
        let n = x.len() as f64;
        let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
        let variance = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>() / n;
        Row { x, dy, weight, mean, rstd: 1.0 / (variance + f64::from(LayerNorm::EPS)).sqrt() }
    }

    fn normal(&self, i: usize) -> f64 {
        (f64::from(self.x[i]) - self.mean) * self.rstd
    }

    // ANCHOR: differences
    /// The derivative of the loss by each `x[i]`: the central difference.
    fn gradient(&self) -> Vec<f64> {
        const H: f64 = 1e-4;
        let n = self.x.len() as f64;
        let g: Vec<f64> = self.dy.iter().zip(self.weight).map(|(dy, w)| f64::from(*dy) * f64::from(*w)).collect();
        let centred: Vec<f64> = self.x.iter().map(|x| f64::from(*x) - self.mean).collect();
        let squares: f64 = centred.iter().map(|c| c * c).sum();
        let (total, product): (f64, f64) = (g.iter().sum(), g.iter().zip(&centred).map(|(g, c)| g * c).sum());
        // The loss after one element grows by `h`, without the bias, which is constant: the mean grows by `h / n`.
        let loss = |i: usize, h: f64| {
            let variance = (squares + 2.0 * centred[i] * h + h * h) / n - (h / n).powi(2);
            (product + g[i] * h - total * h / n) / (variance + f64::from(LayerNorm::EPS)).sqrt()
        };
        (0..g.len()).map(|i| (loss(i, H) - loss(i, -H)) / (2.0 * H)).collect()
    }
    // ANCHOR_END: differences
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let report::Args { device, len } = report::Args::parse(4096 * 1000)?;
    let columns = len.isqrt().clamp(1, 1000);
    let rows = len / columns;
    println!("layer norm of {rows} rows of {columns} f32 on {device}");
    let [x, dy] = [1, 2].map(|seed| report::random(rows * columns, seed));
    let [weight, bias] = [3, 4].map(|seed| report::random(columns, seed));
    let mut norm = LayerNorm::new(device.tensor(&weight)?, device.tensor(&bias)?, rows)?;
    let (on_device, dy_on_device) = (device.tensor(&x)?, device.tensor(&dy)?);
    let [mut y, mut dx] = [device.empty_like(&on_device)?, device.empty_like(&on_device)?];
    let mut dparameters = device.zeros::<f32>([2, columns])?;

    norm.forward(&on_device, &mut y)?;
    norm.backward(&dy_on_device, &on_device, &mut dx, &mut dparameters)?;

    let reference: Vec<Row<'_>> = x.chunks(columns).zip(dy.chunks(columns)).map(|(x, dy)| Row::new(x, dy, &weight)).collect();
    let values = |tensor: &Tensor<f32>| Ok::<Vec<f64>, Error>(tensor.to_vec()?.into_iter().map(f64::from).collect());
    let want = |i: usize| reference[i / columns].normal(i % columns) * f64::from(weight[i % columns]) + f64::from(bias[i % columns]);
    report::check("y", &values(&y)?, want, 1e-5)?;
    let gradient: Vec<f64> = reference.iter().flat_map(Row::gradient).collect();
    report::check("dx", &values(&dx)?, |i| gradient[i], 1e-4)?;
    // The gradients of the parameters are sums over all rows.
    let mut sums = vec![0.0; 2 * columns];
    for row in &reference {
        for i in 0..columns {
            sums[i] += f64::from(row.dy[i]) * row.normal(i);
            sums[columns + i] += f64::from(row.dy[i]);
        }
    }
    report::check("gradients of weight and bias", &values(&dparameters)?, |i| sums[i], 1e-3)?;
    report::measure(&device, 2 * size_of_val(&*x), || norm.forward(&on_device, &mut y))?;
    report::measure(&device, 3 * size_of_val(&*x), || norm.backward(&dy_on_device, &on_device, &mut dx, &mut dparameters))?;
    Ok(())
}
