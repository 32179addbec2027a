//! The program whose package is changed.

use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_graph::{export, input};

/// y = a * y + b, in place
#[kernel]
fn scale<T: Float, const BLOCK: usize>(y: PtrMut<T>, a: T, b: i32, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(y + at, mask = at < n) * a + b as T, mask = at < n);
}

/// y[i] = the sum of row i, times the weight
#[kernel]
fn sum_rows<const BLOCK: usize>(x: View<f32, 2>, weight: Ptr<f32>, y: PtrMut<f32>) {
    let row = program_id(0);
    let mut total = 0.0;
    for first in range(0, extent(x, 1), BLOCK) {
        total += sum(x.load([row, first], [1, BLOCK]));
    }
    store(y + row, total * load(weight + row % 4));
}

fn program(x: &Tensor, weight: &Tensor) -> Result<[Tensor; 2]> {
    let (mut y, n) = (x.clone(), x.numel());
    scale::<f32, 64>(&mut y, 0.5, -3, &n).grid(n.cdiv(64)).launch()?;
    let mut sums = x.new_zeros(Dtype::F32, [x.dim(0)])?;
    sum_rows::<32>(&y, weight, &mut sums).grid(x.dim(0)).launch()?;
    let mut last = sums.slice(x.dim(0) - 1..x.dim(0))?;
    scale::<f32, 64>(&mut last, 2.0, 1, &Dim::from(1)).grid(1).launch()?;
    Ok([sums, last])
}

/// The bytes of the package, whose weight has more elements than the program uses.
pub(crate) fn package(elements: usize) -> Vec<u8> {
    let weight: Vec<f32> = (0..elements).map(|number| (number % 7) as f32 - 2.0).collect();
    let weight: Tensor = Device::cpu().tensor(&weight).unwrap().into();
    let rows = Dim::new("rows", 1..=50);
    let graph = export(|[x]| program(x, &weight), [input("x", [&rows, &5.into()], Dtype::F32)]).unwrap();
    graph.named("program").package().to_bytes().unwrap()
}

/// The input of the runs.
pub(crate) fn x() -> Tensor {
    let numbers: Vec<f32> = (0..15).map(|number| number as f32 * 0.75 - 3.0).collect();
    Device::cpu().tensor_from(&numbers, [3, 5]).unwrap().into()
}
