//! Ops: tasks 1, 8 and 10.

use galatea::graph::{NodeOp, OpKernel, Package, compile, input, kernels};
use galatea::ops::{self, Any, GradTolerance, Tensor, gradcheck};
use galatea::prelude::*;
use galatea::{Dim, Dtype, op};

use crate::round_trip::export;
use crate::{assert_same, golden, numbers};

#[kernel(T = [f32, f64], BLOCK = 1024)]
pub(crate) fn sin_elements<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, sin(load(x + at, mask = at < n)), mask = at < n);
}

#[kernel(T = [f32, f64], BLOCK = 1024)]
fn cos_elements<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, cos(load(x + at, mask = at < n)), mask = at < n);
}

#[kernel(T = [f32, f64], BLOCK = 1024)]
fn mul_elements<T: Float, const BLOCK: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(z + at, load(x + at, mask = at < n) * load(y + at, mask = at < n), mask = at < n);
}

#[op("mylib::mysin", backward(x) = mysin_backward, cpu = mysin_cpu, flops = |x| x.numel())]
pub(crate) fn mysin(x: &Tensor) -> Result<Tensor> {
    let mut y = x.empty_like()?;
    sin_elements::<Any, 1024>(x, &mut y, x.numel()).grid(x.numel().cdiv(1024)).launch()?;
    Ok(y)
}

fn mysin_backward(grad: &Tensor, x: &Tensor) -> Result<Tensor> {
    mul(grad, &mycos(x)?)
}

/// On the CPU: the same elements, and a launch that only this function makes.
fn mysin_cpu(x: &Tensor) -> Result<Tensor> {
    let mut y = x.empty_like()?;
    sin_elements::<Any, 256>(x, &mut y, x.numel()).grid(x.numel().cdiv(256)).launch()?;
    Ok(y)
}

#[op("mylib::mycos")]
pub(crate) fn mycos(x: &Tensor) -> Result<Tensor> {
    let mut y = x.empty_like()?;
    cos_elements::<Any, 1024>(x, &mut y, x.numel()).grid(x.numel().cdiv(1024)).launch()?;
    Ok(y)
}

#[op("mylib::mul")]
pub(crate) fn mul(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let mut z = x.empty_like()?;
    mul_elements::<Any, 1024>(x, y, &mut z, x.numel()).grid(x.numel().cdiv(1024)).launch()?;
    Ok(z)
}

pub(crate) fn the_op_of_ten_lines_runs(device: Device) {
    let x = Tensor::from(device.tensor(&[0.0f32, 0.5, 1.0]).unwrap());
    let y = mysin(&x).unwrap();
    assert_eq!(y.device(), Some(device));
    let values: Vec<String> = y.to_vec::<f32>().unwrap().iter().map(|v| format!("{v:.4}")).collect();
    assert_eq!(values, ["0.0000", "0.4794", "0.8415"]);
    if device.is_cpu() {
        golden("mysin.txt", &format!("{y}\ndevice: {device}\n"));
    }
}

/// The kernel of the tutorial: also for lengths that are no multiple of the block, and for none.
pub(crate) fn silu_of_bf16_is_rounded_once(device: Device) {
    for n in [0usize, 1, 255, 256, 257, 1000] {
        let values: Vec<bf16> = (0..n).map(|i| bf16::from_f32((i as f32 - 500.0) / 31.0)).collect();
        let x = Tensor::from(device.tensor(&values).unwrap());
        let y = crate::model::silu(&x).unwrap();
        for (x, y) in values.iter().zip(y.to_vec::<bf16>().unwrap()) {
            let x = f64::from(x.to_f32());
            let expected = bf16::from_f64(x / (1.0 + (-x).exp()));
            assert_eq!(y.to_bits(), expected.to_bits(), "silu({x}) = {y} on {device}, and not {expected}");
        }
    }
}

pub(crate) fn sines_are_those_of_f64(device: Device) {
    for n in [1usize, 1023, 1025] {
        let values: Vec<f32> = (0..n).map(|i| (i as f32 - 300.0) / 17.0).collect();
        let x = Tensor::from(device.tensor(&values).unwrap());
        let (sines, cosines) = (mysin(&x).unwrap().to_vec::<f32>().unwrap(), mycos(&x).unwrap().to_vec::<f32>().unwrap());
        for (x, (s, c)) in values.iter().zip(sines.into_iter().zip(cosines)) {
            let x = f64::from(*x);
            assert!((f64::from(s) - x.sin()).abs() < 2e-7 && (f64::from(c) - x.cos()).abs() < 2e-7, "{x}: {s} {c} on {device}");
        }
    }
}

pub(crate) fn gradcheck_tells_its_error() {
    let x = Tensor::from(Device::cpu().tensor(&[0.5f64, -1.0, 2.0]).unwrap());
    let check = gradcheck(&[x], GradTolerance::default(), |x| Ok(vec![mysin(&x[0])?])).unwrap();
    let text = check.to_string();
    let error = text.strip_prefix("gradcheck: ok, max error ").and_then(|rest| rest.strip_suffix(" in 3 elements")).unwrap();
    assert!(error.parse::<f64>().unwrap() < 1e-8, "{text}");
}

pub(crate) fn a_forgotten_backward_names_op_and_input() {
    let x = Tensor::from(Device::cpu().tensor(&[0.5f64]).unwrap()).requires_grad().unwrap();
    golden("no-backward.txt", &format!("{}\n", mycos(&x).unwrap_err()));
}

/// The names of the kernels that a session would launch, with their types and constants.
fn launches(session: &galatea::graph::Session) -> Vec<String> {
    let launch = |op: &NodeOp| match op {
        NodeOp::Launch(launch) => Some(format!("{}<{}>", launch.kernel(), launch.parameters())),
        _ => None,
    };
    session.plan().nodes.iter().filter_map(|node| launch(&node.op)).collect()
}

pub(crate) fn the_function_for_the_cpu_runs_when_compiled() {
    let (cpu, sim) = (Device::cpu(), Device::sim(galatea::Target::SM_80).unwrap());
    let on = |device: &Device| {
        let n = Dim::new("n", 0..=1 << 20);
        compile(|[x]| mysin(x), [input("x", [&n], Dtype::F32)], device).unwrap()
    };
    assert_eq!(launches(&on(&cpu)), ["sin_elements<T = f32, BLOCK = 256>"]);
    assert_eq!(launches(&on(&sim)), ["sin_elements<T = f32, BLOCK = 1024>"]);
    let x = numbers(&cpu, 1000);
    assert_same(&on(&cpu).run([&x]).unwrap()[0], &mysin(&x).unwrap());
}

/// An op that calls a function that calls a function, ten deep.
#[op("mylib::nested")]
fn nested(x: &Tensor) -> Result<Tensor> {
    const SQUARES: bool = true;
    fn inner(x: &Tensor, depth: usize) -> Result<Tensor> {
        if depth > 0 { inner(x, depth - 1) } else { mycos(x) }
    }
    let mut y = inner(x, 10)?;
    for _ in 0..2 {
        y = mysin(&y)?;
    }
    if SQUARES { mul(&y, &y) } else { mycos(&y) }
}

pub(crate) fn a_graph_lists_all_launches_of_an_op() {
    let n = Dim::new("n", 0..=100);
    let graph = export(|[x]| nested(x), [input("x", [&n], Dtype::F32)]).unwrap();
    let launches: Vec<_> = graph.nodes().iter().filter(|node| matches!(node.op, NodeOp::Launch(_))).collect();
    let kernel = |node: &&galatea::graph::Node| if let NodeOp::Launch(launch) = &node.op { launch.kernel() } else { "" };
    assert_eq!(launches.iter().map(kernel).collect::<Vec<_>>(), ["cos_elements", "sin_elements", "sin_elements", "mul_elements"]);
    assert!(launches.iter().all(|node| node.location.to_string().starts_with("kernel-graph/tests/acceptance/ops.rs:")));
    // The texts of the kernels, which a package holds, are the same in each build of the same source.
    let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
    let texts: Vec<_> = package.entries().into_iter().filter(|(name, _)| name.ends_with(".ir")).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
}

/// Reads the elements of a tensor, and passes one of them to a launch. A recording has no elements, so it records neither the read nor the launch.
#[op("mylib::median", opaque, fake = |x| x.new_empty(x.dtype(), [1]))]
fn median(x: &Tensor) -> Result<Tensor> {
    let mut numbers = x.to_vec::<f32>()?;
    numbers.sort_by(f32::total_cmp);
    mycos(&Tensor::from_numbers(&x.device().unwrap_or_else(Device::cpu), Dtype::F32, [1], &numbers[numbers.len() / 2..][..1])?)
}

/// A loop, a branch on a constant, and launches that no result needs or that are equal.
#[op("mylib::repeated")]
fn repeated(x: &Tensor, times: usize, with_median: bool) -> Result<Tensor> {
    let mut y = nested(x)?;
    for _ in 0..times {
        y = mycos(x)?;
    }
    if with_median { median(&y) } else { Ok(y) }
}

pub(crate) fn kernels_of_an_op_are_its_launches() {
    let n = Dim::new("n", 0..=100);
    let list = |times: usize, with_median: bool| kernels(|[x]| repeated(x, times, with_median), [input("x", [&n], Dtype::F32)]).unwrap();
    let shown = |kernel: &OpKernel| {
        let text = kernel.to_string();
        text.rsplit_once(':').unwrap().0.rsplit_once(':').unwrap().0.to_owned()
    };
    let place = "in kernel-graph/tests/acceptance/ops.rs";
    let of_nested = ["mycos: cos_elements", "mysin: sin_elements", "mysin: sin_elements", "mul: mul_elements"];
    let nested = of_nested
        .map(|kernel| format!("mylib::repeated: mylib::nested: mylib::{kernel}<T = f32, BLOCK = 1024> [cdiv(n, 1024), 1, 1] {place}"));
    let cosine = format!("mylib::repeated: mylib::mycos: cos_elements<T = f32, BLOCK = 1024> [cdiv(n, 1024), 1, 1] {place}");
    for times in [0, 1, 3] {
        for with_median in [false, true] {
            let expected: Vec<String> = nested.iter().cloned().chain(std::iter::repeat_n(cosine.clone(), times)).collect();
            assert_eq!(list(times, with_median).iter().map(shown).collect::<Vec<_>>(), expected, "{times} {with_median}");
        }
    }
    let all = list(1, false);
    let line = |kernel: &OpKernel| kernel.location().to_string();
    assert!(line(&all[0]) == line(&all[4]) && line(&all[0]) != line(&all[1]), "a line for each call of `launch`");
    assert_eq!(all[0].ops().iter().map(|op| op.name).collect::<Vec<_>>(), ["mylib::repeated", "mylib::nested", "mylib::mycos"]);
    let hashes: Vec<String> = all.iter().map(OpKernel::hash).collect();
    assert!(hashes[0] == hashes[4] && hashes[1] == hashes[2] && hashes[0] != hashes[1] && hashes[0].len() == 64, "{hashes:?}");
    // The hash is that of the code alone: of another type and a launch of another line, and of the text in a package without its locations.
    let wide = kernels(|[x]| mysin_cpu(x), [input("x", [&n], Dtype::F64)]).unwrap();
    assert_eq!((wide[0].hash(), wide[0].ops().len(), wide.len()), (hashes[1].clone(), 0, 1));
    let by_name = kernels(|[x]| ops::get("mylib::mysin")?.call([x.into()]), [input("x", [&n], Dtype::F32)]).unwrap();
    assert_eq!(by_name[0].launch().parameters(), "T = f32, BLOCK = 1024", "the body, and not the function for the CPU");
    assert!(kernels(|[x]| median(x), [input("x", [&n], Dtype::F32)]).unwrap().is_empty());
}

/// What an op may write is in its signature: a write through a clone is a write of the clone.
pub(crate) fn an_argument_is_not_written_behind_a_reference() {
    #[op("mylib::hidden_write")]
    fn hidden_write(x: &Tensor) -> Result<Tensor> {
        let mut y = x.clone();
        let other = x.clone();
        mul_elements::<Any, 1024>(&other, &other, &mut y, x.numel()).grid(1).launch()?;
        Ok(y)
    }
    let x = numbers(&Device::cpu(), 5);
    hidden_write(&x).unwrap();
    assert_same(&x, &numbers(&Device::cpu(), 5));
    assert_eq!(hidden_write::DEF.schema, "mylib::hidden_write(Tensor x) -> Tensor");
    galatea::op_check!(hidden_write, &x).unwrap();
    assert!(ops::get("mylib::hidden_write").unwrap().call([(&x).into()]).is_ok());
}

pub(crate) fn a_machine_without_a_gpu_has_a_device() {
    match Device::cuda(0) {
        Ok(device) => assert!(device.is_cuda() && Device::default().unwrap().is_cuda()),
        Err(error) => {
            assert!(matches!(error, Error::NoDriver | Error::NoDevice { .. }), "{error}");
            assert!(Device::default().unwrap().is_cpu());
        }
    }
}
