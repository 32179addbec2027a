//! Small programs, and the packages that hold them.

use galatea::graph::{export, input};
use galatea::ops::{Module, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype, Target, autotune, op};

#[derive(Module)]
struct Model {
    weight: Tensor,
}

/// y = x * weight, and rows of sums
pub(crate) mod first {
    use galatea::prelude::*;

    #[kernel(BLOCK = [64])]
    pub(crate) fn scale_rows<const BLOCK: usize>(x: View<f32, 2>, weight: Ptr<f32>, y: PtrMut<f32>, factor: f32) {
        let (row, column) = (program_id(0), arange(0, BLOCK));
        let v = x.load([row, 0], [1, BLOCK]);
        let w = load(weight + column, mask = column < extent(x, 1));
        store(y + row * extent(x, 1) + column, reshape(v, [BLOCK]) * w * factor, mask = column < extent(x, 1));
    }
}

/// The kernel of a later version: it adds.
pub(crate) mod second {
    use galatea::prelude::*;

    #[kernel(BLOCK = [64])]
    pub(crate) fn scale_rows<const BLOCK: usize>(x: View<f32, 2>, weight: Ptr<f32>, y: PtrMut<f32>, factor: f32) {
        let (row, column) = (program_id(0), arange(0, BLOCK));
        let v = x.load([row, 0], [1, BLOCK]);
        let w = load(weight + column, mask = column < extent(x, 1));
        store(y + row * extent(x, 1) + column, reshape(v, [BLOCK]) + w * factor, mask = column < extent(x, 1));
    }
}

fn model(first: f32) -> Model {
    Model { weight: Device::cpu().tensor(&[first, 0.5, -1.0, 2.0]).unwrap().into() }
}

impl Model {
    fn forward(&self, x: &Tensor) -> Result<[Tensor; 2]> {
        let mut y = x.empty_like()?;
        first::scale_rows::<64>(x, &self.weight, &mut y, 0.5).grid(x.dim(0)).launch()?;
        let last = y.slice(x.dim(0) - 1..x.dim(0))?;
        Ok([y, last])
    }

    fn forward_later(&self, x: &Tensor) -> Result<Tensor> {
        let mut y = x.new_zeros(Dtype::F32, x.dims())?;
        second::scale_rows::<64>(x, &self.weight, &mut y, 0.5).grid(x.dim(0)).launch()?;
        Ok(y)
    }
}

/// The package, with targets for kernels that were not built.
pub(crate) fn package() -> Vec<u8> {
    let (rows, model) = (Dim::new("rows", 1..=50), model(1.0));
    let graph = export(|[x]| model.forward(x), [input("x", [&rows, &4.into()], Dtype::F32)]).unwrap();
    graph.named("scaled").with_params(&model).package().to_bytes().unwrap()
}

/// The same program with another weight.
pub(crate) fn retrained() -> Vec<u8> {
    let (rows, model) = (Dim::new("rows", 1..=50), model(1.25));
    let graph = export(|[x]| model.forward(x), [input("x", [&rows, &4.into()], Dtype::F32)]).unwrap();
    graph.named("scaled").with_params(&model).package().to_bytes().unwrap()
}

/// A later version: another kernel, range and allocation, and one output.
pub(crate) fn later() -> Vec<u8> {
    let (rows, model) = (Dim::new("rows", 1..=80), model(1.0));
    let graph = export(|[x]| model.forward_later(x), [input("x", [&rows, &4.into()], Dtype::F32)]).unwrap();
    graph.named("scaled").with_params(&model).package().to_bytes().unwrap()
}

/// y = 2 * x
#[autotune(configs = [Config { BLOCK: 64, num_warps: 2 }, Config { BLOCK: 128 }], key = [bucket(n)])]
#[kernel]
fn double<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at, mask = at < n) * 2.0, mask = at < n);
}

fn doubled(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    double(x, &mut y, &n).grid(|config| n.cdiv(config.BLOCK as i64)).launch()?;
    Ok(y)
}

/// A launch with configurations, without results of tuning.
pub(crate) fn tuned() -> Vec<u8> {
    let graph = export(|[x]| doubled(x), [input("x", [&Dim::new("n", 1..=500)], Dtype::F32)]).unwrap();
    graph.named("tuned").package().records("").to_bytes().unwrap()
}

/// The same program with the result of a tuning on a simulated GPU, whose clock has no noise.
pub(crate) fn tuned_here() -> Vec<u8> {
    let device = Device::sim(Target::SM_80).unwrap();
    doubled(&device.tensor(&[1.0f32; 500]).unwrap().into()).unwrap();
    let graph = export(|[x]| doubled(x), [input("x", [&Dim::new("n", 1..=500)], Dtype::F32)]).unwrap();
    graph.named("tuned").package().to_bytes().unwrap()
}

/// The package with machine code for two GPUs. A shell script stands in for the assembler, which writes another text for each `text`.
#[cfg(unix)]
pub(crate) fn assembled(text: &str) -> Vec<u8> {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let ptxas = folder.path().join("ptxas");
    std::fs::write(&ptxas, format!("#!/bin/sh\n[ \"$1\" = --version ] || printf '\\177ELF {text} %s' \"$1\" > \"$3\"\n")).unwrap();
    std::fs::set_permissions(&ptxas, std::fs::Permissions::from_mode(0o755)).unwrap();
    let (rows, model) = (Dim::new("rows", 1..=50), model(1.0));
    let graph = export(|[x]| model.forward(x), [input("x", [&rows, &4.into()], Dtype::F32)]).unwrap();
    graph.named("scaled").with_params(&model).package().machine_code([(9, 0), (8, 6)]).ptxas(ptxas).to_bytes().unwrap()
}

/// A program with an input of 4 GiB.
pub(crate) fn wide() -> Vec<u8> {
    export(|[x]| x.slice(0..1), [input("x", [&Dim::from(1 << 30)], Dtype::F32)]).unwrap().named("wide").package().to_bytes().unwrap()
}

/// An op that `galatea` lacks.
#[op("scaled::sort", opaque, fake = |x, _| x.empty_like())]
fn sort(x: &Tensor, descending: bool) -> Result<Tensor> {
    let mut numbers = x.to_vec::<f32>()?;
    numbers.sort_by(|a, b| if descending { b.total_cmp(a) } else { a.total_cmp(b) });
    Ok(x.device().unwrap_or_else(Device::cpu).tensor(&numbers)?.into())
}

/// A call of an opaque op.
pub(crate) fn opaque() -> Vec<u8> {
    let graph = export(|[x]| sort(x, true), [input("x", [&Dim::new("n", 1..=500)], Dtype::F32)]).unwrap();
    graph.named("opaque").package().to_bytes().unwrap()
}
