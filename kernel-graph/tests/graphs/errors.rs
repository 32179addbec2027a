//! The errors of recordings and of runs: each names the mistake, and the input or the line.

use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype, autotune};
use kernel_graph::{RunError, Session, input};

use crate::kernels::{scale, scale_elements, silu, silu_elements};
use crate::numbers;
use crate::round_trip::export;

/// The first line of the error of a recorded function of one input of `n` elements.
fn recorded(mut body: impl FnMut(&Tensor) -> Result<Tensor>) -> String {
    let n = Dim::new("n", 0..=4096);
    let error = export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap_err().to_string();
    error.lines().next().unwrap_or_default().to_owned()
}

#[kernel(unchecked)]
fn unchecked_copy(x: Ptr<f32>, y: PtrMut<f32>) {
    store(y + arange(0, 16), load(x + arange(0, 16)));
}

#[kernel]
fn printing_copy(x: Ptr<f32>, y: PtrMut<f32>) {
    let v = load(x + arange(0, 16));
    device_print!("v = {}", v);
    store(y + arange(0, 16), v);
}

#[autotune(configs = [Config { BLOCK: 64 }, Config { BLOCK: 128 }], key = [n])]
#[kernel]
fn tuned_copy<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at, mask = at < n), mask = at < n);
}

pub(crate) fn the_elements_of_a_recorded_tensor_cannot_be_read() {
    let line = line!() + 2;
    let error = recorded(|x| {
        x.to_vec::<f32>()?;
        Ok(x.clone())
    });
    assert_eq!(error, format!("a recorded tensor f32[n] has no elements to read (kernel-graph/tests/graphs/errors.rs:{line}:11)"));
}

pub(crate) fn an_undecided_comparison_names_its_line() {
    let line = line!() + 1;
    let error = recorded(|x| if x.dim(0).is_gt(4)? { silu(x) } else { Ok(x.clone()) });
    assert_eq!(error, format!("`n > 4` is not decided for n in 0..=4096 (kernel-graph/tests/graphs/errors.rs:{line}:42)"));
    let error = recorded(|x| x.reshape([2, 8]));
    assert!(error.starts_with("`16 == n` is not decided for n in 0..=4096 (kernel-graph/tests/graphs/errors.rs:"), "{error}");
    assert_eq!(recorded(|x| x.reshape([x.dim(0), 2.into()])).split(" is not").next(), Some("`2*n == n`"));
    assert_eq!(recorded(|x| x.reshape([x.dim(0) + 1])), "a tensor of [n] cannot have the dims [n + 1]");
    assert_eq!(recorded(|x| x.slice(Dim::from(0)..x.dim(0) + 1)), "range 0..n + 1 does not fit an axis of n");
    assert_eq!(recorded(|x| x.slice(x.dim(1)..x.dim(1))), "there is no axis 1: the tensor has 1 axis");
    assert_eq!(recorded(|x| x.new_empty(Dtype::F32, [x.dim(0) / 0])), "`n` is divided by 0");
}

pub(crate) fn a_launch_that_cannot_be_recorded_says_why() {
    let real = numbers(&Device::cpu(), 16);
    let cannot = |kernel: &str, reason: &str| format!("kernel `{kernel}` cannot be recorded: {reason}");
    let with = |launch: &dyn Fn(&Tensor, &mut Tensor) -> Result<()>| {
        recorded(|x| {
            let mut y = x.empty_like()?;
            launch(x, &mut y)?;
            Ok(y)
        })
    };
    let typed = Device::cpu().zeros::<f32>(16).unwrap();
    let unshared = with(&|_, y| silu_elements::<f32, 64>(&typed, y, 16).grid(1).launch());
    assert_eq!(unshared, cannot("silu_elements", "`x` is not an `ops::Tensor`"));
    let mut target = real.clone();
    let written = recorded(|x| silu_elements::<f32, 64>(x, &mut target, 16).grid(1).launch().map(|()| x.clone()));
    assert_eq!(written, cannot("silu_elements", "it writes `y`, which is not recorded"));
    let checked = with(&|x, y| silu_elements::<f32, 64>(x, y, 16).grid(1).checked().launch());
    assert_eq!(checked, cannot("silu_elements", "it is checked or prints"));
    assert_eq!(with(&|x, y| printing_copy(x, y).grid(1).launch()), cannot("printing_copy", "it is checked or prints"));
    let stream = Device::cpu();
    let on = with(&|x, y| silu_elements::<f32, 64>(x, y, 16).grid(1).on(stream.stream()).launch());
    assert_eq!(on, cannot("silu_elements", "it names a stream, overlaps, or compiles in the background"));
    // SAFETY: the launch does not run.
    let unchecked = with(&|x, y| unsafe { unchecked_copy(x, y) }.grid(1).launch());
    assert_eq!(unchecked, cannot("unchecked_copy", "it is `unchecked`"));
    let checked = with(&|x, y| tuned_copy(x, y, x.numel()).grid(|config| x.numel().cdiv(config.BLOCK)).checked().launch());
    assert_eq!(checked, cannot("tuned_copy", "it is checked or prints"));
}

pub(crate) fn arguments_have_the_dtype_of_their_parameter() {
    let expected = "kernel `silu_elements`: argument `x` has elements of type `f32`, and the launch expects `bf16`";
    let error = recorded(|x| {
        let mut y = x.new_empty(Dtype::Bf16, x.dims())?;
        silu_elements::<bf16, 64>(x, &mut y, &x.numel()).grid(1).launch()?;
        Ok(y)
    });
    assert_eq!(error, expected);
    let (x, mut y) = (numbers(&Device::cpu(), 8), Tensor::zeros(&Device::cpu(), Dtype::Bf16, [8]).unwrap());
    assert_eq!(silu_elements::<bf16, 64>(&x, &mut y, 8).grid(1).launch().unwrap_err().to_string(), expected);
    assert_eq!(x.to_vec::<i32>().unwrap_err().to_string().lines().next(), Some("the elements are `f32`, not `i32`"));
}

pub(crate) fn expressions_have_no_value_outside_of_a_recording() {
    let n = Dim::new("n", 0..=4096);
    let (x, mut y) = (numbers(&Device::cpu(), 8), numbers(&Device::cpu(), 8));
    let scalar = silu_elements::<f32, 64>(&x, &mut y, &n).grid(1).launch().unwrap_err().to_string();
    assert!(scalar.starts_with("dim `n` has no value (declared in kernel-graph/tests/graphs/errors.rs:"), "{scalar}");
    let grid = silu_elements::<f32, 64>(&x, &mut y, 8).grid(n.cdiv(64)).launch().unwrap_err().to_string();
    assert_eq!(grid, scalar);
    assert_eq!(Tensor::zeros(&Device::cpu(), Dtype::F32, [n]).unwrap_err().to_string(), scalar);
    assert_eq!(Tensor::zeros(&Device::cpu(), Dtype::F32, [-1]).unwrap_err().to_string(), "an extent is -1, which is below 0");
    // Numbers are fine as dims.
    silu_elements::<f32, 64>(&x, &mut y, Dim::from(8)).grid(Dim::from(8).cdiv(64)).launch().unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), silu(&x).unwrap().to_vec::<f32>().unwrap());
}

pub(crate) fn a_recorded_tensor_ends_with_its_recording() {
    let mut leaked = None;
    let own = recorded(|x| {
        leaked = Some(x.clone());
        Ok(numbers(&Device::cpu(), 1))
    });
    assert_eq!(own, "output 0 is not a tensor of the recording");
    let leaked = leaked.unwrap();
    let after = silu(&leaked).unwrap_err().to_string();
    assert!(after.starts_with("the recording of this tensor has ended (kernel-graph/tests/graphs/kernels.rs:"), "{after}");
    assert_eq!(recorded(|_| Ok(leaked.clone())), "output 0 is not a tensor of the recording");
    let mixed = recorded(|x| {
        let mut y = x.empty_like()?;
        silu_elements::<f32, 64>(&leaked, &mut y, 16).grid(1).launch()?;
        Ok(y)
    });
    assert_eq!(mixed, "kernel `silu_elements` cannot be recorded: `y` belongs to another recording");
}

pub(crate) fn inputs_determine_the_dims() {
    let [n, m, other] = [Dim::new("n", 0..=9), Dim::new("m", 0..=9), Dim::new("n", 0..=10)];
    let text = |inputs| export(|[a, _]| Ok(a.clone()), inputs).unwrap_err().to_string();
    assert_eq!(text([input("a", [&n], Dtype::F32), input("a", [&n], Dtype::F32)]).lines().next(), Some("two inputs are named `a`"));
    let conflict = text([input("a", [&n], Dtype::F32), input("b", [&other], Dtype::F32)]);
    assert!(conflict.starts_with("input `b`: dim `n` is 0..=9 in kernel-graph/tests/graphs/errors.rs:"), "{conflict}");
    assert_eq!(
        text([input("a", [&n], Dtype::F32), input("b", [&n * &m], Dtype::F32)]).lines().next(),
        Some("no input has an axis of `m`, so its value is not known in a run")
    );
}

pub(crate) fn a_run_checks_its_inputs() {
    let n = Dim::new("n", 2..=9);
    let graph = export(|[a, _]| silu(a), [input("a", [&n], Dtype::F32), input("b", [2 * &n, 3.into()], Dtype::F32)]).unwrap();
    let (session, cpu) = (Session::new(graph, &Device::cpu()).unwrap(), Device::cpu());
    let run = |a: &Tensor, b: &Tensor| session.run([a, b]).map_err(|error| error.to_string()).unwrap_err();
    let (a, b) = (numbers(&cpu, 4), numbers(&cpu, 24).reshape([8, 3]).unwrap());
    session.run([&a, &b]).unwrap();
    assert_eq!(session.run([&a]).unwrap_err().to_string(), "wrong number of inputs: 2 expected (a, b), 1 given");
    assert_eq!(run(&Tensor::zeros(&cpu, Dtype::I32, [4]).unwrap(), &b), "input `a` has elements of type `i32`, and the graph takes `f32`");
    assert_eq!(run(&a, &numbers(&cpu, 24)), "input `b` has rank 1, and the graph takes rank 2");
    for len in [1, 10] {
        let error = run(&numbers(&cpu, len), &b);
        let expected = format!("input `a`, axis 0: dim `n` is {len}, allowed 2..=9 (declared in kernel-graph/tests/graphs/errors.rs:");
        assert!(error.starts_with(&expected), "{error}");
    }
    assert_eq!(run(&numbers(&cpu, 5), &b), "input `b`, axis 0: `2*n` is 10, and the extent is 8");
    assert_eq!(run(&a, &numbers(&cpu, 16).reshape([8, 2]).unwrap()), "input `b`, axis 1: `3` is 3, and the extent is 2");
    let sim = Device::sim(Target::SM_80).unwrap();
    let elsewhere = run(&a, &b.to_device(&sim).unwrap());
    assert!(elsewhere.starts_with("input `b` is on `sim:sm_80`, and the session runs on `cpu`"), "{elsewhere}");
    let twice = export(|[a, _]| Ok(a.clone()), [input("a", [&n], Dtype::F32), input("b", [&n], Dtype::F32)]).unwrap();
    let error = Session::new(twice, &cpu).unwrap().run([&numbers(&cpu, 4), &numbers(&cpu, 5)]).unwrap_err();
    assert_eq!(error.to_string(), "input `b`, axis 0: dim `n` is both 4 and 5");
    assert!(matches!(error, RunError::InputExtent { axis: 0, .. }));
}

pub(crate) fn a_scalar_that_exceeds_its_parameter_is_an_error_of_the_run() {
    let n = Dim::new("n", 0..=1 << 20);
    let body = |x: &Tensor| {
        let mut y = x.clone();
        scale_elements(&mut y, 1.0, x.numel() * (1 << 13), x.numel()).grid(1).launch()?;
        scale(&mut y, 1.0, 0)?;
        Ok(y)
    };
    let session = Session::new(export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap(), &Device::cpu()).unwrap();
    session.run([&numbers(&Device::cpu(), 1000)]).unwrap();
    let error = session.run([&numbers(&Device::cpu(), 1 << 19)]).unwrap_err().to_string();
    assert!(error.starts_with("kernel `scale_elements`: "), "{error}");
    assert!(error.contains("4294967296"), "{error}");
    assert!(error.contains("\nthe operation was recorded in kernel-graph/tests/graphs/errors.rs:"), "{error}");
}

pub(crate) fn dims_of_operations_are_those_of_the_inputs() {
    let k = Dim::new("k", 0..=9);
    let line = line!() + 1;
    let unknown = recorded(|x| x.new_empty(Dtype::F32, [&k]));
    assert!(
        unknown.starts_with("no input determines dim `k`, in the operation that was recorded in kernel-graph/tests/graphs/errors.rs:"),
        "{unknown}"
    );
    assert!(unknown.contains(&format!(":{line}:")), "{unknown}");
    let grid = recorded(|x| {
        let mut y = x.empty_like()?;
        silu_elements::<f32, 64>(x, &mut y, 16).grid(x.dim(0) / 0).launch()?;
        Ok(y)
    });
    assert!(grid.starts_with("`n` is divided by 0, in the operation that was recorded in "), "{grid}");
    let text = |name| export(|[x]| Ok(x.clone()), [input(name, [&k], Dtype::F32)]).unwrap_err().to_string();
    assert_eq!(text("0").lines().next(), Some("`0` is not a name for an input"));
    let big = Dim::new("big", 0..=i64::MAX);
    export(|[x, _]| Ok(x.clone()), [input("x", [&big], Dtype::F32), input("y", [&big], Dtype::F32)]).unwrap();
}

pub(crate) fn a_denied_copy_names_the_launch() {
    let mut x = numbers(&Device::cpu(), 4);
    let _kept = x.clone();
    let line = line!() + 1;
    let denied = galatea::ops::deny_copies(|| scale_elements(&mut x, 1.0, 0, 4).grid(1).launch()).unwrap_err().to_string();
    assert!(denied.contains(&format!("(kernel-graph/tests/graphs/errors.rs:{line}:")), "{denied}");
}

pub(crate) fn a_run_takes_tensors_with_elements() {
    let n = Dim::new("n", 0..=9);
    let session = Session::new(export(|[x]| silu(x), [input("x", [&n], Dtype::F32)]).unwrap(), &Device::cpu()).unwrap();
    let mut inner = String::new();
    let outer = export(
        |[x]| {
            inner = session.run([x]).unwrap_err().to_string();
            Ok(x.clone())
        },
        [input("x", [&n], Dtype::F32)],
    );
    outer.unwrap();
    assert_eq!(inner.lines().next(), Some("input `x` has no elements: it belongs to a recording"));
}

pub(crate) fn sessions_and_graphs_are_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<Session>();
    check::<kernel_graph::Graph>();
    check::<Tensor>();
}
