//! The chart of what is supported where: a row for each way to write a kernel, a test for each cell.

use galatea::graph::{FlopTable, Graph, Level, Package, Session, flops, input};
use galatea::ops::{self, Any, Tensor};
use galatea::prelude::*;
use galatea::profile::Profile;
use galatea::{Dim, Dtype, autotune, op};

use crate::round_trip::export;
use crate::{assert_same, golden, numbers};

/// y = a * x
#[kernel(T = [f32, f64], BLOCK = 64)]
fn times<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, a: T, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at, mask = at < n) * a, mask = at < n);
}

/// A kernel in a plain function.
fn plain(x: &Tensor, a: f32) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    times::<Any, 64>(x, &mut y, a, &n).grid(n.cdiv(64)).launch()?;
    Ok(y)
}

#[op("chart::twice", backward() = twice)]
fn twice(x: &Tensor) -> Result<Tensor> {
    plain(x, 2.0)
}

/// On the CPU four times the elements, so that a test sees which function ran.
#[op("chart::on_cpu", backward() = twice, cpu = |x| plain(x, 4.0))]
fn on_cpu(x: &Tensor) -> Result<Tensor> {
    plain(x, 2.0)
}

/// A loop of the host. On the CPU four times the elements, as above.
#[op("chart::opaque", opaque, fake = Tensor::empty_like, backward() = opaque_backward, cpu = |x| on_host(x, 4.0), flops = |x| x.numel())]
fn opaque(x: &Tensor) -> Result<Tensor> {
    on_host(x, 2.0)
}

fn opaque_backward(grad: &Tensor) -> Result<Tensor> {
    plain(grad, 2.0)
}

fn on_host(x: &Tensor, factor: f32) -> Result<Tensor> {
    let numbers: Vec<f32> = x.to_vec::<f32>()?.into_iter().map(|x| x * factor).collect();
    Tensor::from_numbers(&x.device().unwrap_or_else(Device::cpu), Dtype::F32, x.dims(), &numbers)
}

#[autotune(configs = [Config { BLOCK: 64 }, Config { BLOCK: 128 }], key = [])]
#[kernel]
fn tuned_times<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, a: f32, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at, mask = at < n) * a, mask = at < n);
}

fn tuned(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    tuned_times(x, &mut y, 2.0, &n).grid(|config| n.cdiv(config.BLOCK as i64)).launch()?;
    Ok(y)
}

fn plainly(x: &Tensor) -> Result<Tensor> {
    plain(x, 2.0)
}

type Function = fn(&Tensor) -> Result<Tensor>;

fn graph(function: Function) -> Graph {
    export(|[x]| function(x), [input("x", [&Dim::new("n", 0..=1000)], Dtype::F32)]).unwrap()
}

/// Runs of the function itself: each element times a factor.
fn eager(function: Function, device: Device, factor: f32) {
    for n in [0, 1, 64, 129] {
        let x = numbers(&device, n);
        let expected: Vec<f32> = x.to_vec::<f32>().unwrap().iter().map(|x| x * factor).collect();
        assert_eq!(function(&x).unwrap().to_vec::<f32>().unwrap(), expected, "{n} on {device}");
    }
}

/// Runs of a session beside those of the function.
fn as_eager(function: Function, device: Device, session: &Session) {
    for n in [0, 1, 64, 129] {
        let x = numbers(&device, n);
        assert_same(&session.run([&x]).unwrap()[0], &function(&x).unwrap());
    }
}

fn recorded(function: Function, device: Device, line: &str) {
    let graph = graph(function);
    let text = graph.text(Level::Ops);
    assert!(text.contains(line), "{text}");
    as_eager(function, device, &graph.compile(&device).unwrap());
}

fn packaged(function: Function, device: Device) {
    let bytes = graph(function).package().to_bytes().unwrap();
    as_eager(function, device, &Package::from_bytes(bytes).unwrap().load(&device).unwrap());
}

/// The spans and the kernels of a call. The kernel was launched in this file.
fn profiled(function: Function, device: Device, spans: &[&str], kernel: &str) {
    let x = numbers(&device, 100);
    function(&x).unwrap();
    let profile = Profile::start();
    function(&x).unwrap();
    let trace = profile.finish();
    assert_eq!(trace.spans().iter().map(|span| &*span.name).collect::<Vec<_>>(), spans);
    let [launch] = trace.launches() else { panic!("{:?}", trace.launches()) };
    assert_eq!((launch.kernel, launch.flops.is_some()), (kernel, true));
    assert!(launch.line.starts_with("kernel-graph/tests/acceptance/chart.rs:"), "{}", launch.line);
}

/// A product for each element of the tiles, with and without a recording.
fn counted(function: Function, device: Device, name: &str) {
    let x = numbers(&device, 100);
    function(&x).unwrap();
    let tables: [FlopTable; 2] = [flops(|| function(&x)).unwrap(), graph(function).flops_at(&[("n", 100)]).unwrap()];
    for table in tables {
        let [_, row] = table.rows() else { panic!("{table}") };
        assert_eq!((&*row.name, row.flops.known(), row.is_exact), (name, Some(128), true), "{table}");
        assert_eq!((row.read_bytes.known(), row.written_bytes.known()), (Some(400), Some(400)), "{table}");
    }
}

fn gradients(function: Function, device: Device, factor: f32) {
    let x = numbers(&device, 3).requires_grad().unwrap();
    let y = function(&x).unwrap();
    let ones = Tensor::from_numbers(&device, Dtype::F32, [3], &[1.0; 3]).unwrap();
    let grads = y.backward_from(&ones).unwrap();
    assert_eq!(grads.get(&x).unwrap().to_vec::<f32>().unwrap(), [factor; 3]);
}

fn no_gradients(function: Function, name: &str) {
    let x = numbers(&Device::cpu(), 3).requires_grad().unwrap();
    golden(name, &format!("{}\n", function(&x).unwrap_err()));
    ops::no_grad(|| function(&x)).unwrap();
}

fn checked(function: Function, device: Device) {
    as_eager(function, device, &graph(function).compile(&device).unwrap().checked());
}

pub(crate) fn plain_eager(device: Device) {
    eager(plainly, device, 2.0);
}

pub(crate) fn plain_recorded(device: Device) {
    recorded(plainly, device, "launch times<T = f32, BLOCK = 64> [cdiv(n, 64), 1, 1] (");
}

pub(crate) fn plain_packaged(device: Device) {
    packaged(plainly, device);
}

pub(crate) fn plain_profiled(device: Device) {
    profiled(plainly, device, &[], "times");
}

pub(crate) fn plain_flops(device: Device) {
    counted(plainly, device, "times");
}

pub(crate) fn plain_gradients() {
    no_gradients(plainly, "plain-gradients.txt");
}

pub(crate) fn plain_checked(device: Device) {
    checked(plainly, device);
}

pub(crate) fn op_eager(device: Device) {
    eager(twice, device, 2.0);
}

pub(crate) fn op_recorded(device: Device) {
    recorded(twice, device, "%0 = chart::twice(x = %x) : f32[n]\n");
    assert!(graph(twice).to_string().contains("launch times<T = f32, BLOCK = 64>"), "its kernel is visible");
}

pub(crate) fn op_packaged(device: Device) {
    packaged(twice, device);
}

pub(crate) fn op_profiled(device: Device) {
    profiled(twice, device, &["chart::twice"], "times");
}

pub(crate) fn op_flops(device: Device) {
    counted(twice, device, "chart::twice");
}

pub(crate) fn op_gradients(device: Device) {
    gradients(twice, device, 2.0);
}

pub(crate) fn op_checked(device: Device) {
    checked(twice, device);
}

pub(crate) fn on_cpu_eager(device: Device) {
    eager(on_cpu, device, if device.is_cpu() { 4.0 } else { 2.0 });
}

pub(crate) fn on_cpu_recorded(device: Device) {
    recorded(on_cpu, device, "%0 = chart::on_cpu(x = %x) : f32[n]\n");
}

pub(crate) fn on_cpu_packaged(device: Device) {
    packaged(on_cpu, device);
}

pub(crate) fn on_cpu_profiled(device: Device) {
    profiled(on_cpu, device, &["chart::on_cpu"], "times");
}

pub(crate) fn on_cpu_flops(device: Device) {
    counted(on_cpu, device, "chart::on_cpu");
}

pub(crate) fn on_cpu_gradients(device: Device) {
    gradients(on_cpu, device, 2.0);
}

pub(crate) fn on_cpu_checked(device: Device) {
    checked(on_cpu, device);
}

pub(crate) fn tuned_eager(device: Device) {
    eager(tuned, device, 2.0);
}

pub(crate) fn tuned_recorded(device: Device) {
    recorded(tuned, device, "launch tuned_times<BLOCK = 64> [cdiv(n, 64), 1, 1] of 2 configurations (");
}

pub(crate) fn tuned_packaged(device: Device) {
    packaged(tuned, device);
}

pub(crate) fn tuned_profiled(device: Device) {
    profiled(tuned, device, &[], "tuned_times");
}

pub(crate) fn tuned_flops(device: Device) {
    counted(tuned, device, "tuned_times");
}

pub(crate) fn tuned_gradients() {
    no_gradients(tuned, "tuned-gradients.txt");
}

pub(crate) fn tuned_checked(device: Device) {
    checked(tuned, device);
}

pub(crate) fn opaque_eager(device: Device) {
    eager(opaque, device, if device.is_cpu() { 4.0 } else { 2.0 });
}

pub(crate) fn opaque_recorded(device: Device) {
    recorded(opaque, device, "%0 = extern chart::opaque(x = %x) : f32[n] flops n\n");
    assert_eq!(graph(opaque).nodes().len(), 1);
}

pub(crate) fn opaque_packaged(device: Device) {
    packaged(opaque, device);
}

/// A call is a span, in a run of a session, too.
pub(crate) fn opaque_profiled(device: Device) {
    let (x, session) = (numbers(&device, 100), graph(opaque).compile(&device).unwrap());
    let profile = Profile::start();
    opaque(&x).unwrap();
    session.run([&x]).unwrap();
    let trace = profile.finish();
    assert_eq!(trace.spans().iter().map(|span| &*span.name).collect::<Vec<_>>(), ["chart::opaque", "graph", "chart::opaque"]);
    assert!(trace.launches().is_empty());
}

/// The operations are those of the formula. The bytes are known in a recording only.
pub(crate) fn opaque_flops(device: Device) {
    let x = numbers(&device, 100);
    let tables: [FlopTable; 2] = [flops(|| opaque(&x)).unwrap(), graph(opaque).flops_at(&[("n", 100)]).unwrap()];
    for (table, bytes) in tables.into_iter().zip([0, 800]) {
        let [_, row] = table.rows() else { panic!("{table}") };
        assert_eq!((&*row.name, row.flops.known(), row.is_exact), ("chart::opaque", Some(100), true), "{table}");
        assert_eq!(row.bytes().known(), Some(bytes), "{table}");
    }
}

pub(crate) fn opaque_gradients(device: Device) {
    gradients(opaque, device, 2.0);
}

/// The launches around it are checked, and it runs as always.
pub(crate) fn opaque_checked(device: Device) {
    checked(|x| plain(&opaque(x)?, 2.0), device);
}

/// A function and its gradient, for a tensor and a gradient of its result.
fn step(x: &Tensor, grad: &Tensor) -> Result<(Tensor, Tensor)> {
    let x = x.clone().requires_grad()?;
    let y = twice(&twice(&x)?)?;
    let mut grads = y.backward_from(grad)?;
    Ok((y.detach(), grads.take(&x).unwrap_or(x)))
}

fn step_graph() -> Graph {
    let n = Dim::new("n", 1..=1000);
    export(|[x, grad]| step(x, grad), ["x", "grad"].map(|name| input(name, [&n], Dtype::F32))).unwrap()
}

fn as_step(device: Device, session: &Session) {
    let (x, grad) = (numbers(&device, 70), numbers(&device, 71).slice(1..71).unwrap());
    let (y, dx) = step(&x, &grad).unwrap();
    let outputs = session.run([&x, &grad]).unwrap();
    assert_same(&outputs[0], &y);
    assert_same(&outputs[1], &dx);
    let expected: Vec<f32> = grad.to_vec::<f32>().unwrap().iter().map(|grad| 4.0 * grad).collect();
    assert_eq!(dx.to_vec::<f32>().unwrap(), expected);
}

pub(crate) fn training_recorded(device: Device) {
    let graph = step_graph();
    assert_eq!(graph.text(Level::Ops).matches("chart::twice(").count(), 4, "{graph}");
    as_step(device, &graph.compile(&device).unwrap());
}

pub(crate) fn training_packaged(device: Device) {
    let package = Package::from_bytes(step_graph().package().to_bytes().unwrap()).unwrap();
    as_step(device, &package.load(&device).unwrap());
}
