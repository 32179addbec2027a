//! Scopes that observe and replace calls of ops.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use galatea::graph::{Level, Session, export, input};
use galatea::ops::{self, Intercepted, Interceptor, OpInput, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype, op};

use crate::kernels::{mlp_op, row_sums, scale, scale_op, silu_op, sum_difference};
use crate::numbers;

/// Counts the calls of each op.
#[derive(Default)]
struct Counter(RefCell<BTreeMap<&'static str, usize>>);

impl Interceptor for Counter {
    fn call(&self, call: Intercepted<'_>) -> Result<Vec<Tensor>> {
        *self.0.borrow_mut().entry(call.def.name).or_default() += 1;
        call.proceed()
    }
}

fn bytes(tensors: &[&Tensor]) -> Vec<Vec<u8>> {
    tensors.iter().map(|tensor| tensor.to_bytes().unwrap()).collect()
}

/// Also calls in the bodies of ops are counted. What they compute is the same.
pub(crate) fn calls_are_counted(device: Device) {
    let (x, weight) = (numbers(&device, 40), [numbers(&device, 41).slice(1..41).unwrap()]);
    let (total, silu) = mlp_op(&x, &weight, None, true).unwrap();
    let counter = Counter::default();
    let run = || {
        let by_name = ops::get("test::silu")?.call([(&x).into()])?;
        assert_eq!(by_name.len(), 1);
        mlp_op(&x, &weight, None, true)
    };
    let counted = ops::intercept(&counter, run).unwrap();
    assert_eq!(bytes(&[&counted.0, &counted.1]), bytes(&[&total, &silu]));
    let expected = BTreeMap::from([("test::mlp", 1), ("test::scale_", 1), ("test::silu", 3)]);
    assert_eq!(*counter.0.borrow(), expected);
    mlp_op(&x, &weight, None, true).unwrap();
    std::thread::scope(|scope| {
        let other = |device: Device| silu_op(&numbers(&device, 3)).map(drop);
        ops::intercept(&counter, || scope.spawn(move || other(device)).join().unwrap()).unwrap();
    });
    assert_eq!(*counter.0.borrow(), expected, "nothing behind the scope is counted, and no other thread");
}

/// The sum of all elements.
#[op("intercept::total")]
fn total(x: &Tensor) -> Result<Tensor> {
    row_sums(&x.reshape([Dim::from(1), x.numel()])?)
}

/// Computes totals as sums of those of two halves, as two devices would.
fn halved(call: Intercepted<'_>) -> Result<Vec<Tensor>> {
    let (def, [OpInput::Tensor(x)]) = (call.def, &call.inputs[..]) else { return call.proceed() };
    if def.name != "intercept::total" {
        return call.proceed();
    }
    let (n, middle) = (x.numel(), x.numel() / 2);
    let halves = [total(&x.slice(Dim::from(0)..middle.clone())?)?, total(&x.slice(middle..n)?)?];
    Ok(vec![sum_difference(&halves[0], &halves[1])?.0])
}

pub(crate) fn a_call_is_replaced_by_shards(device: Device) {
    let sharded = |x: &Tensor| ops::intercept(&halved, || total(x));
    let graph = export(|[x]| sharded(x), [input("x", [&Dim::new("n", 2..=100)], Dtype::F32)]).unwrap();
    let calls: Vec<&str> = graph.calls().iter().map(|call| call.def.name).collect();
    assert_eq!(calls, ["intercept::total", "intercept::total"], "the replaced call is none: {graph}");
    assert!(graph.text(Level::Ops).contains("launch sum_and_difference"), "{graph}");
    let session = Session::new(graph, &device).unwrap();
    for n in [2, 3, 64, 99] {
        let x = numbers(&device, n);
        let counter = Counter::default();
        let eager = ops::intercept(&counter, || sharded(&x)).unwrap();
        assert_eq!(counter.0.borrow().get("intercept::total"), Some(&2), "the scope around sees the two calls");
        // The numbers are quarters, whose sums are exact in any order.
        assert_eq!(bytes(&[&eager]), bytes(&[&total(&x).unwrap()]), "{n}");
        assert_eq!(bytes(&[&session.run([&x]).unwrap()[0]]), bytes(&[&eager]), "{n}");
    }
}

/// Interceptors are called from the inside, and see the calls of bodies, and not their own.
pub(crate) fn scopes_are_nested() {
    let log = RefCell::new(Vec::new());
    let logs = |name: &'static str, own: bool| {
        let log = &log;
        move |call: Intercepted<'_>| {
            log.borrow_mut().push(format!("{name} {}", call.def.name));
            if own {
                silu_op(&numbers(&Device::cpu(), 2))?;
            }
            let results = call.proceed();
            log.borrow_mut().push(format!("end {name}"));
            results
        }
    };
    #[op("intercept::outer")]
    fn outer(x: &Tensor) -> Result<Tensor> {
        total(x)
    }
    let (a, b) = (logs("a", false), logs("b", true));
    ops::intercept(&a, || ops::intercept(&b, || outer(&numbers(&Device::cpu(), 4)))).unwrap();
    let expected = "b intercept::outer, a test::silu, end a, a intercept::outer, b intercept::total, a test::silu, end a, a intercept::total, \
                    end a, end b, end a, end b";
    assert_eq!(log.take().join(", "), expected);
    // A scope ends also if its closure panics.
    let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ops::intercept(&a, || panic!("on purpose"))));
    assert!(panics.is_err() && silu_op(&numbers(&Device::cpu(), 2)).is_ok() && log.borrow().is_empty());
}

/// An argument of each type.
#[op("intercept::all")]
#[expect(clippy::too_many_arguments, reason = "an argument of each type")]
fn all(
    x: &Tensor,
    y: &mut Tensor,
    bias: Option<&Tensor>,
    none: Option<&Tensor>,
    list: &[Tensor],
    borrowed: &[&Tensor],
    n: usize,
    m: &Dim,
    d: Dim,
    a: f32,
    b: f64,
    on: bool,
    text: &str,
    dtype: Dtype,
) -> Result<Vec<Tensor>> {
    assert!(bias.is_some() && none.is_none() && list.len() == 1 && borrowed.len() == 2 && on && text == "text");
    assert_eq!((n, m, &d, a, b), (usize::MAX >> 1, &Dim::from(-3), &Dim::from(4), 0.1, 0.2));
    scale(y, 2.0, 1)?;
    Ok(vec![x.clone(), borrowed[1].clone(), x.new_zeros(dtype, [2])?])
}

pub(crate) fn arguments_and_results_are_those_of_the_function() {
    let cpu = Device::cpu();
    let (x, z, mut y) = (numbers(&cpu, 3), numbers(&cpu, 4), numbers(&cpu, 5));
    let seen = Cell::new(0);
    let count = |call: Intercepted<'_>| {
        seen.set(call.inputs.len());
        assert!(format!("{call:?}").contains("intercept::all"));
        call.proceed()
    };
    let mut call = || {
        let list = [x.clone()];
        all(&x, &mut y, Some(&x), None, &list, &[&x, &z], usize::MAX >> 1, &Dim::from(-3), 4.into(), 0.1, 0.2, true, "text", Dtype::I64)
    };
    let results = ops::intercept(&count, &mut call).unwrap();
    assert_eq!(seen.get(), 14);
    assert!(results[0].is_same(&x) && results[1].is_same(&z) && results[2].dtype() == Dtype::I64);
    call().unwrap();
    let twice = |v: f32| 2.0 * (2.0 * v + 1.0) + 1.0;
    assert_eq!(y.to_vec::<f32>().unwrap(), numbers(&cpu, 5).to_vec::<f32>().unwrap().into_iter().map(twice).collect::<Vec<_>>());
}

pub(crate) fn arguments_and_written_tensors_may_be_others(device: Device) {
    // The factor of a call in place is another one.
    let tenfold = |mut call: Intercepted<'_>| {
        assert_eq!(call.def.schema, "test::scale_(Tensor(a!) y, float a, SymInt b) -> ()");
        call.inputs[1] = 10.0.into();
        call.proceed()
    };
    let mut y = numbers(&device, 3);
    ops::intercept(&tenfold, || scale_op(&mut y, 2.0, 1)).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [-29.0, -21.5, -14.0]);
    // The call writes something else, with or without a recording.
    let zeroes = |mut call: Intercepted<'_>| {
        let OpInput::TensorMut(y) = &mut call.inputs[0] else { panic!("{call:?}") };
        **y = y.zeros_like()?;
        Ok(Vec::new())
    };
    let program = |x: &Tensor| {
        let mut y = x.clone();
        ops::intercept(&zeroes, || scale_op(&mut y, 2.0, 1))?;
        scale_op(&mut y, 2.0, 1)?;
        Ok(y)
    };
    let graph = export(|[x]| program(x), [input("x", [3], Dtype::F32)]).unwrap();
    assert_eq!(graph.calls().len(), 1, "{graph}");
    for y in [program(&y).unwrap(), graph.compile(&device).unwrap().run([&y]).unwrap().remove(0)] {
        assert_eq!(y.to_vec::<f32>().unwrap(), [1.0; 3]);
    }
}

/// x^2 of an opaque op, whose gradient is 2x.
#[op("intercept::square", opaque, fake = Tensor::empty_like, backward(x) = doubled)]
fn square(x: &Tensor) -> Result<Tensor> {
    let squares: Vec<f32> = x.to_vec::<f32>()?.into_iter().map(|x| x * x).collect();
    Tensor::from_numbers(&x.device().unwrap_or_else(Device::cpu), Dtype::F32, x.dims(), &squares)
}

/// 2 * x * grad, with an op for the factor.
fn doubled(grad: &Tensor, x: &Tensor) -> Result<Tensor> {
    let (grads, values) = (grad.to_vec::<f32>()?, x.to_vec::<f32>()?);
    let products: Vec<f32> = grads.iter().zip(values).map(|(grad, x)| grad * x).collect();
    let mut y = Tensor::from_numbers(&x.device().unwrap_or_else(Device::cpu), Dtype::F32, x.dims(), &products)?;
    scale_op(&mut y, 2.0, 0)?;
    Ok(y)
}

pub(crate) fn gradients_and_sessions_are_intercepted(device: Device) {
    let x = numbers(&device, 3).requires_grad().unwrap();
    let ones = Tensor::from_numbers(&device, Dtype::F32, [3], &[1.0; 3]).unwrap();
    let gradient = |interceptor: &dyn Interceptor| {
        let grads = ops::intercept(interceptor, || square(&x)?.backward_from(&ones)).unwrap();
        grads.get(&x).unwrap().to_vec::<f32>().unwrap()
    };
    let counter = Counter::default();
    assert_eq!(gradient(&counter), [-6.0, -4.5, -3.0]);
    assert_eq!(*counter.0.borrow(), BTreeMap::from([("intercept::square", 1), ("test::scale_", 1)]));
    // The gradient is that of the replacement: of 4 times the square.
    let of_double = |call: Intercepted<'_>| match (call.def.name, &call.inputs[..]) {
        ("intercept::square", [OpInput::Tensor(x)]) => Ok(vec![quadruple(&square(x)?)?]),
        _ => call.proceed(),
    };
    assert_eq!(gradient(&of_double), [-24.0, -18.0, -12.0]);
    let session = Session::new(export(|[x]| square(x), [input("x", [3], Dtype::F32)]).unwrap(), &device).unwrap();
    let counter = Counter::default();
    ops::intercept(&counter, || session.run([&x.detach()])).unwrap();
    assert_eq!(*counter.0.borrow(), BTreeMap::from([("intercept::square", 1)]));
}

#[op("intercept::quadruple", backward() = quadruple)]
fn quadruple(x: &Tensor) -> Result<Tensor> {
    let mut y = x.clone();
    scale(&mut y, 4.0, 0)?;
    Ok(y)
}

pub(crate) fn mistakes_of_interceptors_are_errors() {
    let x = numbers(&Device::cpu(), 3);
    let error = |interceptor: &dyn Interceptor| ops::intercept(interceptor, || silu_op(&x)).unwrap_err().to_string();
    let expected =
        |found| format!("wrong number of results for an op: {found} returned, and the schema is `test::silu(Tensor x) -> Tensor`");
    assert_eq!(error(&|_: Intercepted<'_>| Ok(Vec::new())), expected(0));
    assert_eq!(error(&|_: Intercepted<'_>| Ok(vec![x.clone(), x.clone()])), expected(2));
    let by_name = ops::intercept(&|_: Intercepted<'_>| Ok(Vec::new()), || ops::get("test::silu")?.call([(&x).into()]));
    assert_eq!(by_name.unwrap_err().to_string(), expected(0));
    let drops_arguments = |mut call: Intercepted<'_>| {
        call.inputs.clear();
        call.proceed()
    };
    assert!(error(&drops_arguments).starts_with("wrong number of arguments for `test::silu`: 1 expected, 0 given"));
    let fails = |_: Intercepted<'_>| Err(Error::Ops(ops::OpsError::NothingToCheck));
    assert_eq!(error(&fails), Error::Ops(ops::OpsError::NothingToCheck).to_string());
}
