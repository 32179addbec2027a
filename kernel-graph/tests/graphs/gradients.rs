//! Gradients of ops with backward functions: of chains, of tensors with several uses, of parts and lists, in place, recorded; and their errors.

use galatea::graph::{Package, Session, input};
use galatea::ops::{self, Any, GradTolerance, OpInput, OpsError, Tensor, gradcheck, no_grad};
use galatea::prelude::*;
use galatea::{Dim, Dtype, op, op_check};

use crate::round_trip::export;

#[kernel(T = [f32, f64], BLOCK = 64)]
fn sines<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, sin(load(x + at, mask = at < n)), mask = at < n);
}

#[kernel(T = [f32, f64], BLOCK = 64)]
fn cosines<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, cos(load(x + at, mask = at < n)), mask = at < n);
}

#[kernel(T = [f32, f64], BLOCK = 64)]
fn products<T: Float, const BLOCK: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(z + at, load(x + at, mask = at < n) * load(y + at, mask = at < n), mask = at < n);
}

#[kernel(T = [f32, f64], BLOCK = 64)]
fn scaled<T: Float, const BLOCK: usize>(x: PtrMut<T>, by: T, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(x + at, load(x + at, mask = at < n) * by, mask = at < n);
}

#[kernel(T = [f32, f64], BLOCK = 64)]
fn total_of<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let mut sum = zeros::<T>([BLOCK]);
    for first in range(0, n, BLOCK) {
        let at = first + arange(0, BLOCK);
        sum = sum + load(x + at, mask = at < n, other = 0.0);
    }
    store(y, sum(sum, axis = 0));
}

#[kernel(T = [f32, f64], BLOCK = 64)]
fn filled<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, full([BLOCK], load(x)), mask = at < n);
}

#[op("mylib::mysin", backward(x) = mysin_backward, flops = |x| x.numel())]
fn mysin(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    sines::<Any, 64>(x, &mut y, &n).grid(n.cdiv(64)).launch()?;
    Ok(y)
}

fn mysin_backward(grad: &Tensor, x: &Tensor) -> Result<Tensor> {
    mul(grad, &mycos(x)?)
}

#[op("mylib::mycos")]
fn mycos(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    cosines::<Any, 64>(x, &mut y, &n).grid(n.cdiv(64)).launch()?;
    Ok(y)
}

#[op("mylib::mul", backward(x, y) = |grad, x, y| Ok::<_, Error>((mul(grad, y)?, mul(grad, x)?)))]
fn mul(x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let (n, mut z) = (x.numel(), x.empty_like()?);
    products::<Any, 64>(x, y, &mut z, &n).grid(n.cdiv(64)).launch()?;
    Ok(z)
}

/// The sum of all elements as a tensor without axes.
#[op("mylib::total", backward(x) = total_backward)]
fn total(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.new_empty(x.dtype(), [0i64; 0])?);
    total_of::<Any, 64>(x, &mut y, &n).grid(1).launch()?;
    Ok(y)
}

fn total_backward(grad: &Tensor, x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    filled::<Any, 64>(grad, &mut y, &n).grid(n.cdiv(64)).launch()?;
    Ok(y)
}

/// `x *= by`, in place.
#[op("mylib::scale_", backward(by) = scale_backward)]
fn scale(x: &mut Tensor, by: f32) -> Result<()> {
    let n = x.numel();
    scaled::<Any, 64>(x, by, &n).grid(n.cdiv(64)).launch()
}

fn scale_backward(grad: &Tensor, by: f32) -> Result<Tensor> {
    let mut dx = grad.clone();
    scale(&mut dx, by)?;
    Ok(dx)
}

/// sin and cos at once, where the caller may have no use for one of them.
#[op("mylib::both", backward(out0, out1) = both_backward)]
fn both(x: &Tensor) -> Result<(Tensor, Tensor)> {
    Ok((mysin(x)?, mycos(x)?))
}

fn both_backward(dsin: &Tensor, dcos: &Tensor, sin: &Tensor, cos: &Tensor) -> Result<Tensor> {
    let mut second = mul(dcos, sin)?;
    scale(&mut second, -1.0)?;
    sum_of(&[mul(dsin, cos)?, second])
}

/// The sum of all tensors, each times its number.
#[op("mylib::sum_of", backward(all) = sum_of_backward)]
fn sum_of(all: &[Tensor]) -> Result<Tensor> {
    let mut parts = all.iter();
    let mut sum = parts.next().cloned().ok_or(Error::NoDriver)?;
    for part in parts {
        let (n, mut next) = (sum.numel(), sum.empty_like()?);
        sums::<Any, 64>(&sum, part, &mut next, &n).grid(n.cdiv(64)).launch()?;
        sum = next;
    }
    Ok(sum)
}

fn sum_of_backward(grad: &Tensor, all: &[Tensor]) -> Result<Vec<Tensor>> {
    Ok(all.iter().map(|_| grad.clone()).collect())
}

#[kernel(T = [f32, f64], BLOCK = 64)]
fn sums<T: Float, const BLOCK: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(z + at, load(x + at, mask = at < n) + load(y + at, mask = at < n), mask = at < n);
}

/// `x * w`, and `x` itself without `w`.
#[op("mylib::gated", backward(x, w) = gated_backward)]
fn gated(x: &Tensor, w: Option<&Tensor>) -> Result<Tensor> {
    w.map_or_else(|| Ok(x.clone()), |w| mul(x, w))
}

fn gated_backward(grad: &Tensor, x: &Tensor, w: Option<&Tensor>) -> Result<(Tensor, Option<Tensor>)> {
    Ok(match w {
        Some(w) => (mul(grad, w)?, Some(mul(grad, x)?)),
        None => (grad.clone(), None),
    })
}

fn vector(device: &Device, values: &[f64]) -> Tensor {
    device.tensor(values).unwrap().into()
}

pub(crate) fn gradients_flow_through_every_use(device: Device) {
    let x = vector(&device, &[0.5, -1.0, 2.0]).requires_grad().unwrap();
    let w = vector(&device, &[2.0, 3.0, -4.0]).requires_grad().unwrap();
    let unused = vector(&device, &[1.0]).requires_grad().unwrap();
    // x is used twice, and one of its uses is used twice.
    let s = mysin(&x).unwrap();
    let y = mul(&mul(&s, &w).unwrap(), &mul(&s, &x).unwrap()).unwrap();
    let loss = total(&y).unwrap();
    let mut grads = loss.backward().unwrap();
    assert_eq!(grads.len(), 2);
    assert!(grads.get(&unused).is_none());
    let (dx, dw) = (grads.get(&x).unwrap().to_vec::<f64>().unwrap(), grads.get(&w.clone()).unwrap().to_vec::<f64>().unwrap());
    for (at, (x, w)) in [(0.5f64, 2.0), (-1.0, 3.0), (2.0, -4.0)].into_iter().enumerate() {
        let (s, c) = (x.sin(), x.cos());
        let expected = (2.0 * s * c * w * x + s * s * w, s * s * x);
        assert!((dx[at] - expected.0).abs() < 1e-12 && (dw[at] - expected.1).abs() < 1e-12, "{dx:?} {dw:?} {at}: {expected:?}");
    }
    assert!(grads.take(&w).is_some() && grads.take(&w).is_none());
    // The loss is still there, and what the ops kept for it is not.
    let again = loss.backward().unwrap_err();
    assert!(matches!(again, Error::Ops(OpsError::BackwardTwice { op: "mylib::total" })), "{again}");
}

pub(crate) fn gradients_are_finite_differences(device: Device) {
    let x = vector(&device, &[0.5, -1.0, 2.0, 0.1, 0.2, 0.3]);
    let w = vector(&device, &[2.0, 3.0, -4.0, 1.0, 0.0, 9.0]);
    type Function = fn(&[Tensor]) -> Result<Vec<Tensor>>;
    let functions: &[(&str, Function)] = &[
        ("sin", |x| Ok(vec![mysin(&x[0])?])),
        ("a part", |x| Ok(vec![mul(&x[0].slice(1..4)?, &x[1].reshape([2, 3])?.slice(1..2)?.reshape([3])?)?])),
        ("in place", |x| {
            let mut y = mysin(&x[0])?;
            let kept = y.clone();
            scale(&mut y, 3.0)?;
            Ok(vec![mul(&y, &kept)?, y])
        }),
        ("one of two results", |x| Ok(vec![mul(&both(&x[0])?.1, &x[1])?])),
        ("both results", |x| {
            let (s, c) = both(&x[0])?;
            Ok(vec![mul(&s, &x[1])?, c])
        }),
        ("a list", |x| Ok(vec![sum_of(&[mysin(&x[0])?, x[1].clone(), x[0].clone()])?])),
        ("no tensor", |x| Ok(vec![gated(&gated(&x[0], None)?, Some(&x[1]))?])),
        ("a constant", |x| Ok(vec![mul(&x[0], &x[1].detach())?, mul(&x[1], &x[1])?])),
    ];
    for (name, function) in functions {
        let inputs = [x.clone(), w.clone()];
        // Detaching hides a use from the gradient, which finite differences see.
        if *name == "a constant" {
            let error = gradcheck(&inputs, GradTolerance::default(), function).unwrap_err();
            assert!(matches!(error, Error::Ops(OpsError::WrongGradient { input: 1, element: 0, .. })), "{error}");
            continue;
        }
        let check = gradcheck(&inputs, GradTolerance::default(), function).unwrap_or_else(|error| panic!("{name} on {device}: {error}"));
        assert_eq!((check.checked, check.max_error < 1e-7), (12, true), "{name}: {check}");
    }
}

/// A function and its gradients, recorded as one graph, give the bytes that they give without recording.
pub(crate) fn a_step_is_recorded_with_its_gradients(device: Device) {
    let step = |x: &Tensor, w: &Tensor| -> Result<[Tensor; 3]> {
        let (x, w) = (x.clone().requires_grad()?, w.clone().requires_grad()?);
        let rows = mysin(&x)?.slice(0..2)?;
        let loss = total(&mul(&mul(&rows, &w)?, &rows)?)?;
        let mut grads = loss.backward()?;
        Ok([loss, grads.take(&x).unwrap(), grads.take(&w).unwrap()])
    };
    let n = Dim::new("n", 2..=100);
    let inputs = [input("x", [&n, &Dim::from(3)], Dtype::F32), input("w", [2, 3], Dtype::F32)];
    let graph = export(|[x, w]| step(x, w), inputs).unwrap();
    let text = graph.tabular(galatea::graph::Level::Ops).to_string();
    for op in ["mylib.mysin", "mylib.mycos", "mylib.total", "mylib.mul"] {
        assert!(text.contains(op), "{text}");
    }
    let session = Session::new(graph, &device).unwrap();
    let w: Tensor = device.tensor_from(&[1.0f32, 2.0, 3.0, -1.0, -2.0, -3.0], [2, 3]).unwrap().into();
    for rows in [2usize, 3, 100] {
        let values: Vec<f32> = (0..3 * rows).map(|i| i as f32 / 7.0).collect();
        let x: Tensor = device.tensor_from(&values, [rows, 3]).unwrap().into();
        let eager = step(&x, &w).unwrap();
        let recorded = session.run([&x, &w]).unwrap();
        for (eager, recorded) in eager.iter().zip(&recorded) {
            assert!(ops::compare(&eager.detach(), recorded).unwrap().bit_equal, "{rows} rows: {eager} {recorded}");
        }
    }
}

/// Writes of parameters between steps are in place once nothing else holds them.
pub(crate) fn an_optimizer_writes_parameters_in_place(device: Device) {
    let mut w = vector(&device, &[2.0, 3.0]).requires_grad().unwrap();
    for _ in 0..3 {
        let loss = total(&mul(&w, &w).unwrap()).unwrap();
        let grads = loss.backward().unwrap();
        assert_eq!(grads.get(&w).unwrap().to_vec::<f64>().unwrap().len(), 2);
        // `loss` is alive, and holds no elements of `w` any more.
        no_grad(|| ops::deny_copies(|| scale(&mut w, 0.5))).unwrap();
    }
    assert_eq!(w.to_vec::<f64>().unwrap(), [0.25, 0.375]);
    assert!(w.needs_grad());
}

pub(crate) fn mistakes_with_gradients_are_explained() {
    let device = Device::cpu();
    let x = vector(&device, &[0.5, -1.0]).requires_grad().unwrap();
    let text = |error: Error| error.to_string();
    // A launch, and an op without a backward function.
    let mut y = x.detach().zeros_like().unwrap();
    let error = sines::<f64, 64>(&x, &mut y, 2).grid(1).launch().unwrap_err();
    assert_eq!(
        text(error),
        "kernel `sines` has no gradient, which `x` needs\n\
         help: call the kernel in an op: `#[op(\"ns::name\", backward(..) = f)]`; `detach()` the tensor, or call it in `no_grad`, if no gradient is wanted"
    );
    assert_eq!(
        text(mycos(&x).unwrap_err()),
        "`mylib::mycos` has no backward function, which its input `x` needs: kernel `cosines` has no gradient, which `x` needs\n\
         help: give the op one: `#[op(\"mylib::mycos\", backward(..) = f)]`; `detach()` the tensor, or call it in `no_grad`, if no gradient is wanted"
    );
    assert!(no_grad(|| mycos(&x)).is_ok() && mycos(&x.detach()).is_ok());
    // What `backward` takes.
    let error = mysin(&x).unwrap().backward().unwrap_err();
    assert_eq!(
        text(error),
        "f64[2] is no scalar, whose gradients `backward` computes\nhelp: sum the elements first, or pass their gradients to `backward_from`"
    );
    let none = total(&x.detach()).unwrap().backward().unwrap_err();
    assert!(matches!(none, Error::Ops(OpsError::NoGradient)));
    assert!(matches!(no_grad(|| total(&x)).unwrap().backward().unwrap_err(), Error::Ops(OpsError::NoGradient)));
    let wrong = mysin(&x).unwrap().backward_from(&vector(&device, &[1.0])).unwrap_err();
    assert!(matches!(wrong, Error::Ops(OpsError::Dims { op: "backward_from", .. })));
    // Backward functions with mistakes.
    let error = bad_shape(&x).unwrap().backward_from(&vector(&device, &[1.0, 1.0])).unwrap_err();
    assert_eq!(text(error), "the backward function of `mylib::bad_shape` returns f64[1] for `x`, which is f64[2]");
    let error = bad_count(&[x.clone(), x.clone()]).unwrap().backward_from(&vector(&device, &[1.0, 1.0])).unwrap_err();
    assert_eq!(
        text(error),
        "wrong number of gradients from the backward function of `mylib::bad_count`: 2 expected, one for each tensor of the op, 1 returned"
    );
    // Types without gradients, and writes from the host.
    let integers: Tensor = device.tensor(&[1i32]).unwrap().into();
    assert_eq!(text(integers.requires_grad().unwrap_err()), "elements of type `i32` have no gradients");
    let mut x = x;
    assert!(matches!(x.view_mut::<f64>().map(drop).unwrap_err(), Error::Ops(OpsError::GradientLost { .. })));
    assert!(matches!(gradcheck(&[], GradTolerance::default(), |_| Ok(vec![])), Err(Error::Ops(OpsError::NothingToCheck))));
}

#[op("mylib::bad_shape", backward() = |grad: &Tensor| grad.slice(0..1))]
fn bad_shape(x: &Tensor) -> Result<Tensor> {
    mysin(x)
}

#[op("mylib::bad_count", backward() = |grad: &Tensor| Ok::<_, Error>(vec![grad.clone()]))]
fn bad_count(all: &[Tensor]) -> Result<Tensor> {
    mul(&all[0], &all[1])
}

/// A chain of 100,000 calls is walked and dropped without recursion.
pub(crate) fn long_chains_need_no_stack() {
    let x = vector(&Device::cpu(), &[1.0]).requires_grad().unwrap();
    let chain = |calls: usize| {
        let mut y = gated(&x, None).unwrap();
        for _ in 0..calls {
            y = gated(&y, None).unwrap();
        }
        y
    };
    assert_eq!(chain(100_000).backward().unwrap().get(&x).unwrap().to_vec::<f64>().unwrap(), [1.0]);
    drop(chain(100_000));
}

/// A function for the CPU replaces the kernels of an op there.
#[op("mylib::negated", cpu = |x: &Tensor| Tensor::from_numbers(&Device::cpu(), x.dtype(), &*x.dims(), &[42.0]))]
fn negated(x: &Tensor) -> Result<Tensor> {
    let mut y = x.clone();
    scale(&mut y, -1.0)?;
    Ok(y)
}

pub(crate) fn an_op_may_have_a_function_for_the_cpu(device: Device) {
    let x: Tensor = device.tensor(&[3.0f32]).unwrap().into();
    let expected = if device.is_cpu() { 42.0 } else { -3.0 };
    assert_eq!(negated(&x).unwrap().to_vec::<f32>().unwrap(), [expected]);
    assert!(negated::DEF.has_cpu && !mysin::DEF.has_cpu && mysin::DEF.has_backward);
}

pub(crate) fn ops_are_called_by_name() {
    let device = Device::cpu();
    let x = vector(&device, &[0.5, -1.0]);
    let def = ops::get("mylib::mysin").unwrap();
    assert_eq!(def, &mysin::DEF);
    let y = def.call([OpInput::from(&x)]).unwrap();
    assert!(ops::compare(&y[0], &mysin(&x).unwrap()).unwrap().bit_equal);
    assert_eq!(ops::get("mylib::both").unwrap().call([(&x).into()]).unwrap().len(), 2);
    let list = [x.clone(), x.clone()];
    assert_eq!(ops::get("mylib::sum_of").unwrap().call([list[..].into()]).unwrap()[0].to_vec::<f64>().unwrap(), [1.0, -2.0]);
    let mut written = x.clone();
    assert_eq!(ops::get("mylib::scale_").unwrap().call([(&mut written).into(), 2.0.into()]).unwrap().len(), 0);
    assert_eq!(written.to_vec::<f64>().unwrap(), [1.0, -2.0]);
    assert_eq!(x.to_vec::<f64>().unwrap(), [0.5, -1.0]);
    let gate = ops::get("mylib::gated").unwrap();
    assert!(gate.call([(&x).into(), OpInput::None]).unwrap()[0].is_same(&x));
    // Mistakes.
    let text = |result: Result<Vec<Tensor>>| result.unwrap_err().to_string();
    let error = text(ops::get("mylib::scale_").unwrap().call([OpInput::from(&x), 2.0.into()]));
    assert!(error.starts_with("`mylib::scale_` cannot take a tensor as `x`, which it writes: pass `&mut`: the schema is `"), "{error}");
    assert_eq!(
        text(def.call([])),
        "wrong number of arguments for `mylib::mysin`: 1 expected, 0 given: the schema is `mylib::mysin(Tensor x) -> Tensor`"
    );
    assert_eq!(
        text(gate.call([(&x).into(), 3.into()])),
        "`mylib::gated` cannot take the integer 3 as `w`: the schema is `mylib::gated(Tensor x, Tensor? w) -> Tensor`"
    );
    assert_eq!(
        text(ops::get("mylib::scale_").unwrap().call([(&mut written).into(), 0.1.into()])),
        "`mylib::scale_` cannot take the number 0.1 as `by`, whose type is `f32`: pass a number of that type, such as `0.1f32`: the schema is `mylib::scale_(Tensor(a!) x, float by) -> ()`"
    );
    assert_eq!(ops::get("mylib::mysim").unwrap_err().to_string(), "there is no op `mylib::mysim`\nhelp: there is `mylib::mysin`");
    assert_eq!(ops::get("torch::add").unwrap_err().to_string(), "there is no op `torch::add`");
    let twice = ops::get("mylib::twice").unwrap_err().to_string();
    assert!(twice.starts_with("two ops are named `mylib::twice`: in ") && twice.matches("gradients.rs line ").count() == 2, "{twice}");
    let names: Vec<&str> = ops::all().map(|def| def.name).collect();
    assert!(names.is_sorted() && names.contains(&"mylib::both") && names.iter().filter(|name| **name == "mylib::twice").count() == 2);
}

mod first {
    use super::*;

    #[op("mylib::twice")]
    fn twice(x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
}

mod second {
    use super::*;

    #[op("mylib::twice")]
    fn twice(x: &Tensor) -> Result<Tensor> {
        Ok(x.clone())
    }
}

/// Ops with a function of their own for the CPU, and with a formula for their operations.
pub(crate) fn sines_of_halves(x: &Tensor) -> Result<Tensor> {
    mysin(&halved(x)?)
}

pub(crate) fn an_op_may_count_its_operations() {
    let n = Dim::new("n", 1..=100);
    let graph = export(|[x]| mysin(x), [input("x", [&n], Dtype::F32)]).unwrap();
    let table = graph.flops_at(&[("n", 65)]).unwrap().to_string();
    assert!(table.lines().any(|line| line.starts_with("- mylib::mysin") && line.contains(" 65.000 ")), "{table}");
}

/// The function of an op for the CPU runs there in every form: called, recorded, and in the same graph on another device not.
pub(crate) fn a_function_for_the_cpu_is_recorded(device: Device) {
    let n = Dim::new("n", 1..=8);
    let graph = export(|[x]| mysin(&halved(x)?), [input("x", [&n], Dtype::F64)]).unwrap();
    let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
    let sessions = [Session::new(graph.clone(), &device).unwrap(), package.load(&device).unwrap()];
    let x = vector(&device, &[1.0, 2.0]);
    let factor: f64 = if device.is_cpu() { 0.25 } else { 0.5 };
    let eager = mysin(&halved(&x).unwrap()).unwrap();
    for session in sessions {
        let recorded = session.run([&x]).unwrap().remove(0);
        assert!(ops::compare(&eager, &recorded).unwrap().bit_equal, "{eager} {recorded}");
        let first = recorded.to_vec::<f64>().unwrap()[0];
        assert!((first - factor.sin()).abs() < 1e-12, "{first} on {device}");
    }
    // The text has the launches of each.
    let text = graph.to_string();
    let (kernels, on_cpu) = text.split_once("\non cpu\n").unwrap();
    assert!(kernels.contains("by = 0.5") && !kernels.contains("by = 0.25") && on_cpu.contains("by = 0.25"), "{graph}");
}

/// A function for the CPU that reads elements cannot be recorded. The graph runs on all other devices, and says so on the CPU.
pub(crate) fn a_function_that_reads_elements_keeps_its_graph_from_the_cpu(device: Device) {
    let n = Dim::new("n", 1..=8);
    let graph = export(|[x]| counted(x), [input("x", [&n], Dtype::F64)]).unwrap();
    let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
    let x = vector(&device, &[1.0, 2.0]);
    let eager = counted(&x).unwrap();
    let sessions =
        [Session::new(graph, &device).map_err(|error| error.to_string()), package.load(&device).map_err(|error| error.to_string())];
    for session in sessions {
        match session {
            Ok(session) => assert_eq!(session.run([&x]).unwrap()[0].to_vec::<f64>().unwrap(), eager.to_vec::<f64>().unwrap()),
            Err(error) => {
                let start = "the program does not run on the CPU: an op has a function for it (`cpu = ..`) that cannot be recorded: a recorded tensor f64[n] has no";
                assert!(device.is_cpu() && error.starts_with(start), "{error} on {device}");
            }
        }
    }
    let check = op_check!(counted, &x).unwrap();
    assert_eq!(check.recorded.is_ok(), !device.is_cpu());
}

/// Sessions on the CPU would return other types than the graph has.
pub(crate) fn a_function_for_the_cpu_returns_the_same_types() {
    let graph = export(|[x]| narrowed(x), [input("x", [2], Dtype::F64)]).unwrap();
    let error = Session::new(graph.clone(), &Device::cpu()).unwrap_err().to_string();
    assert!(error.ends_with("its plan for the CPU has other inputs or outputs"), "{error}");
    assert!(Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap().load(&Device::cpu()).is_err());
    Session::new(graph, &Device::parse("sim").unwrap()).unwrap();
}

#[op("mylib::narrowed", cpu = |x: &Tensor| x.new_zeros(Dtype::F32, [2]))]
fn narrowed(x: &Tensor) -> Result<Tensor> {
    mysin(x)
}

#[op("mylib::counted", cpu = counted_on_cpu)]
fn counted(x: &Tensor) -> Result<Tensor> {
    let mut y = x.clone();
    scale(&mut y, 0.5)?;
    Ok(y)
}

fn counted_on_cpu(x: &Tensor) -> Result<Tensor> {
    let halves: Vec<f64> = x.to_vec::<f64>()?.into_iter().map(|x| x / 2.0).collect();
    Ok(x.device().unwrap_or_else(Device::cpu).tensor(&halves)?.into())
}

/// An input that requires a gradient would lose it.
pub(crate) fn a_session_refuses_inputs_with_gradients(device: Device) {
    let session = Session::new(export(|[x]| mysin(x), [input("x", [2], Dtype::F64)]).unwrap(), &device).unwrap();
    let x = vector(&device, &[1.0, 2.0]);
    let expected = session.run([&x]).unwrap()[0].to_vec::<f64>().unwrap();
    let x = x.requires_grad().unwrap();
    let error = session.run([&x]).unwrap_err().to_string();
    assert!(error.starts_with("input `x` requires a gradient, and a session computes none\nhelp: pass `x.detach()`"), "{error}");
    assert_eq!(no_grad(|| session.run([&x])).unwrap()[0].to_vec::<f64>().unwrap(), expected);
    assert_eq!(session.run([&x.detach()]).unwrap()[0].to_vec::<f64>().unwrap(), expected);
}

/// Between the parameter and the result are only parts, and no op that brings kernels.
pub(crate) fn a_part_of_a_parameter_has_a_gradient(device: Device) {
    let x = vector(&device, &[0.5, -1.0, 2.0, 3.0]).requires_grad().unwrap();
    let part = x.reshape([2, 2]).unwrap().slice(1..2).unwrap().reshape([2]).unwrap().slice(0..1).unwrap();
    let grads = part.backward().unwrap();
    assert_eq!(grads.get(&x).unwrap().to_vec::<f64>().unwrap(), [0.0, 0.0, 1.0, 0.0]);
    assert_eq!(grads.get(&x).unwrap().dims(), [Dim::from(4)]);
}

/// x / 2; on the CPU x / 4, so that a test sees which one ran.
#[op("mylib::halved", cpu = quartered)]
fn halved(x: &Tensor) -> Result<Tensor> {
    let mut y = x.clone();
    scale(&mut y, 0.5)?;
    Ok(y)
}

fn quartered(x: &Tensor) -> Result<Tensor> {
    let mut y = x.clone();
    scale(&mut y, 0.25)?;
    Ok(y)
}

pub(crate) fn op_check_finds_mistakes() {
    let device = Device::cpu();
    let x = Tensor::from(device.tensor(&[0.5f32, -1.0, 2.0]).unwrap());
    let check = op_check!(mysin, &x).unwrap();
    let text = check.to_string();
    assert!(text.starts_with("mylib::mysin(Tensor x) -> Tensor\n  arguments that are not written keep their elements: ok\n"), "{text}");
    assert!(text.contains("\n  recorded with named dims: ok\n") && text.contains("gradcheck: ok, max error "), "{text}");
    assert_eq!(op_check!(scale, &mut x.clone(), 3.0).unwrap().gradients.unwrap().checked, 3);
    assert_eq!(op_check!(gated, &x, None).unwrap().gradients.unwrap().checked, 3);
    assert_eq!(op_check!(sum_of, &[x.clone(), x.clone()][..]).unwrap().gradients.unwrap().checked, 6);
    assert!(op_check!(mycos, &x).unwrap().gradients.is_none());
    let text = |result: galatea::graph::Result<galatea::graph::OpCheck>| result.unwrap_err().to_string();
    // An op that looks at extents cannot be recorded for all of them.
    let dims = op_check!(by_size, &x).unwrap().dims.unwrap_err();
    assert!(dims.contains("d3") && dims.contains("gradients.rs"), "{dims}");
    let wrong = text(op_check!(wrong_gradient, &x));
    assert!(
        wrong.starts_with("`mylib::wrong_gradient` fails the test of its gradients: the gradient of element 0 of input 0 is 0.5, and"),
        "{wrong}"
    );
    let other = text(op_check!(another_when_recorded, &x));
    assert!(other.starts_with("`mylib::another_when_recorded` fails the test of its recording: result 0 differs: "), "{other}");
}

#[op("mylib::by_size", backward(x) = mysin_backward)]
fn by_size(x: &Tensor) -> Result<Tensor> {
    if x.numel().is_gt(3)? { mysin(x) } else { mysin(&x.clone()) }
}

#[op("mylib::wrong_gradient", backward() = |grad: &Tensor| Ok::<_, Error>(grad.clone()))]
fn wrong_gradient(x: &Tensor) -> Result<Tensor> {
    mysin(x)
}

#[op("mylib::another_when_recorded")]
fn another_when_recorded(x: &Tensor) -> Result<Tensor> {
    if x.recorded().is_some() { mysin(x) } else { mycos(x) }
}
