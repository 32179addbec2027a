//! The program whose package is changed.

use std::sync::Once;

use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype, Target, autotune};
use kernel_graph::{Graph, Package, export, input};

use crate::changes::{entries, signed};

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

/// y = x * x, with configurations, of which `prune` leaves three. The last axis of the grid has several programs, and one of them works.
#[autotune(
    configs = [
        Config { BLOCK: 4, num_warps: 1 },
        Config { BLOCK: 64, num_warps: 2, num_stages: 3 },
        Config { BLOCK: 8, maxnreg: 64 },
        Config { BLOCK: 4096 },
    ],
    key = [bucket(n, 4), scaled],
    warmup = 1,
    rep = 1,
    prune = |config| config.BLOCK > 100 * scaled as usize,
    restore_value = [y],
)]
#[kernel]
fn square<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize, scaled: i32) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(x + at, mask = at < n);
    store(y + at, v * v * (scaled as T), mask = at < n && program_id(2) == 0);
}

fn program(x: &Tensor, weight: &Tensor) -> Result<[Tensor; 3]> {
    let (mut y, n) = (x.clone(), x.numel());
    scale::<f32, 64>(&mut y, 0.5, -3, &n).grid(n.cdiv(64)).launch()?;
    let mut sums = x.new_zeros(Dtype::F32, [x.dim(0)])?;
    sum_rows::<32>(&y, weight, &mut sums).grid(x.dim(0)).launch()?;
    let mut last = sums.slice(x.dim(0) - 1..x.dim(0))?;
    scale::<f32, 64>(&mut last, 2.0, 1, &Dim::from(1)).grid(1).launch()?;
    let (mut squares, n) = (x.empty_like()?, x.numel());
    square::<f32>(x, &mut squares, &n, 1).grid(|config| (n.cdiv(config.BLOCK as i64), 1, 2)).launch()?;
    Ok([sums, last, squares])
}

/// The graph, whose weight has more elements than the program uses.
pub(crate) fn graph(elements: usize) -> Graph {
    let weight: Vec<f32> = (0..elements).map(|number| (number % 7) as f32 - 2.0).collect();
    let weight: Tensor = Device::cpu().tensor(&weight).unwrap().into();
    let rows = Dim::new("rows", 1..=50);
    export(|[x]| program(x, &weight), [input("x", [&rows, &5.into()], Dtype::F32)]).unwrap().named("program")
}

/// The bytes of its package, which has a result of tuning, and machine code that no device of the tests runs.
pub(crate) fn package(elements: usize) -> Vec<u8> {
    static TUNED: Once = Once::new();
    TUNED.call_once(|| {
        let (device, elements) = (Device::sim(Target::SM_80).unwrap(), [1.0f32; 16]);
        let (x, weight) = (x().to_device(&device).unwrap(), device.tensor(&elements).unwrap().into());
        program(&x, &weight).unwrap();
    });
    let package = Package::from_bytes(graph(elements).package().to_bytes().unwrap()).unwrap();
    let mut entries = entries(&package);
    let mut manifest = package.manifest().clone();
    for (number, kernel) in manifest["kernels"].as_array_mut().unwrap().iter_mut().enumerate() {
        let name = format!("kernels/{number}.sm_90a.cubin");
        entries.push((name.clone(), b"\x7fELF\x02\x01".repeat(16)));
        kernel["variants"][0]["machine_code"] = serde_json::json!([{ "architecture": "sm_90a", "code": name }]);
    }
    entries[0].1 = manifest.to_string().into_bytes();
    signed(entries)
}

/// One op of each family on a tile of each kind.
#[kernel]
fn families<T: Float, const B: usize>(x: Ptr<T>, y: PtrMut<T>, counts: PtrMut<i32>, n: usize) {
    let (block, at) = (program_id(0) * B, arange(0, B));
    let inside = block + at < n;
    let v = load(x + block + at, mask = inside, other = 1.0);
    let whole = (abs(v) as i32) % 7;
    atomic_add(counts + whole, 1, mask = inside);
    store(counts + 8 + at % 8, gather(histogram(whole, 8), at % 8, 0), mask = at < 8);
    let mut total = cumsum(sort(v), axis = 0);
    for i in static_range(0, 3) {
        total += flip(total) * (i as T);
    }
    let square = reshape(total, [B / 8, 8]);
    let turned = trans(square) + max(square, axis = 1)[(None, ..)];
    let mut steps = 0i32;
    let mut value = sum(whole);
    while value > 1 && steps < 20 {
        value = if value % 2 == 0 { value / 2 } else { value - 1 };
        steps += 1;
    }
    let ends = select(reshape(turned, [B]) > v, v, total) + exp(v) * (steps as T);
    store(y + block + at, ends, mask = inside);
}

fn families_program(x: &Tensor) -> Result<[Tensor; 2]> {
    let (mut y, n) = (x.empty_like()?, x.numel());
    let mut counts = x.new_zeros(Dtype::I32, [16])?;
    families::<f32, 64>(x, &mut y, &mut counts, &n).grid(n.cdiv(64)).launch()?;
    Ok([y, counts])
}

/// The bytes of a package whose kernel has ops of all families.
pub(crate) fn package_of_families() -> Vec<u8> {
    let rows = Dim::new("rows", 1..=50);
    let graph = export(|[x]| families_program(x), [input("x", [&rows, &5.into()], Dtype::F32)]).unwrap();
    graph.named("families").package().to_bytes().unwrap()
}

/// Loops forever if it can.
#[kernel]
fn endless(x: PtrMut<f32>, is_endless: bool) {
    let mut value = load(x);
    while is_endless && value == value {
        value = value * 1.0;
    }
    store(x, value);
}

/// The bytes of a package with one program that loops forever, or with so many that end.
pub(crate) fn endless_package(programs: i64) -> Vec<u8> {
    let rows = Dim::new("rows", 1..=50);
    let program = |x: &Tensor| {
        let mut y = x.clone();
        endless(&mut y, programs == 1).grid(Dim::from(programs)).launch()?;
        Ok::<_, galatea::Error>(y)
    };
    let graph = export(|[x]| program(x), [input("x", [&rows, &5.into()], Dtype::F32)]).unwrap();
    graph.package().to_bytes().unwrap()
}

/// The input of the runs.
pub(crate) fn x() -> Tensor {
    let numbers: Vec<f32> = (0..15).map(|number| number as f32 * 0.75 - 3.0).collect();
    Device::cpu().tensor_from(&numbers, [3, 5]).unwrap().into()
}
