//! Opaque ops: one operation of a graph, whose body runs with each session.

use std::sync::Mutex;

use galatea::graph::{Graph, Level, Limits, Package, Session, flops, input};
use galatea::ops::{self, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype, op, op_check};

use crate::kernels::{scale, silu};
use crate::numbers;
use crate::packages::changed;
use crate::round_trip::export;

/// The elements in order. Its body reads them, which no recorded function can.
#[op("opaque::sort", opaque, fake = |x, _| x.empty_like(), flops = |x, _| x.numel() * 3)]
fn sort(x: &Tensor, descending: bool) -> Result<Tensor> {
    let mut values = x.to_vec::<f32>()?;
    values.sort_by(f32::total_cmp);
    if descending {
        values.reverse();
    }
    on_device_of(x, &values)
}

fn on_device_of(x: &Tensor, values: &[f32]) -> Result<Tensor> {
    let device = x.device().unwrap_or_else(Device::cpu);
    Tensor::from(device.tensor(values)?).reshape(x.dims())
}

/// Adds to each element, and returns the sum of the elements before.
#[op("opaque::add_", opaque, fake = |x, _| x.new_empty(x.dtype(), [1]))]
fn add_(x: &mut Tensor, by: f32) -> Result<Tensor> {
    let mut values = x.to_vec::<f32>()?;
    let sum = Tensor::from_numbers(&x.device().unwrap_or_else(Device::cpu), Dtype::F32, [1], &[values.iter().sum()])?;
    values.iter_mut().for_each(|value| *value += by);
    *x = on_device_of(x, &values)?;
    Ok(sum)
}

/// An op of other ops.
#[op("opaque::ordered_silu")]
pub(crate) fn ordered_silu(x: &Tensor) -> Result<Tensor> {
    sort(&silu(x)?, true)
}

fn program(x: &Tensor) -> Result<[Tensor; 3]> {
    let mut y = ordered_silu(x)?;
    scale(&mut y, 2.0, -1)?;
    let before = y.clone();
    let sum = add_(&mut y, 0.5)?;
    scale(&mut y, 2.0, 1)?;
    Ok([before, y, sum])
}

fn graph() -> Graph {
    export(|[x]| program(x), [input("x", [&Dim::new("n", 1..=100)], Dtype::F32)]).unwrap().named("program")
}

fn bytes(tensors: &[Tensor]) -> Vec<Vec<u8>> {
    tensors.iter().map(|tensor| tensor.to_bytes().unwrap()).collect()
}

pub(crate) fn a_session_calls_the_op(device: Device) {
    let package = Package::from_bytes(graph().package().to_bytes().unwrap()).unwrap();
    assert_eq!(package.opaque_ops().unwrap(), [add_::DEF.schema, sort::DEF.schema]);
    for session in [Session::new(graph(), &device).unwrap(), package.load(&device).unwrap(), graph().compile(&device).unwrap().checked()] {
        assert!(!session.is_replayed(), "decided before the first run");
        for n in [1, 64, 65, 100, 3] {
            let x = numbers(&device, n);
            let expected = bytes(&program(&x).unwrap());
            assert_eq!(bytes(&session.run([&x]).unwrap()), expected, "{n} elements");
            assert_eq!(bytes(&session.run_owned([x.clone()]).unwrap()), expected, "{n} elements");
        }
        let dims = [Dim::from(7)];
        let mut outputs = session.run([&numbers(&device, 7)]).unwrap();
        session.run_into([&numbers(&device, 7)], &mut outputs).unwrap();
        assert!(outputs.iter().all(|output| output.device() == Some(device)) && outputs[0].dims() == dims);
        assert!(!session.is_replayed());
    }
}

pub(crate) fn an_opaque_op_is_one_line_at_both_levels() {
    let text = graph().text(Level::Kernels);
    assert_eq!(
        text,
        "graph program(x: f32[n]) where n in 1..=100
  %0 = opaque::ordered_silu(x = %x) : f32[n] {
    %1 = alloc : f32[n]
    %2 = launch silu_elements<T = f32, BLOCK = 64> [cdiv(n, 64), 1, 1] (x = %x, y = %1, n = n) : f32[n]
    %0 = extern opaque::sort(x = %2, descending = true) : f32[n] flops 3*n
  }
  %3 = launch scale_elements [cdiv(n, 64), 1, 1] (y = %0, a = 2.0, b = -1, n = n) : f32[n]
  %4, %5 = extern opaque::add_(x = %3, by = 0.5) : f32[1], f32[n]
  %6 = launch scale_elements [cdiv(n, 64), 1, 1] (y = %5, a = 2.0, b = 1, n = n) : f32[n]
  return %3, %6, %4
"
    );
    let graph = export(|[x]| sort(x, false), [input("x", [4], Dtype::F32)]).unwrap();
    let lines = ["graph graph(x: f32[4])", "  %0 = extern opaque::sort(x = %x, descending = false) : f32[4] flops 12", "  return %0"];
    let table = "opcode         name    target               args         kwargs
-------------  ------  -------------------  ----------  ------
placeholder    x       x                    ()           {}
call_function  sort    opaque.sort.default  (x, false)   {}
output         output  output               ((sort,),)   {}
";
    for level in [Level::Ops, Level::Kernels] {
        assert_eq!(graph.text(level).lines().collect::<Vec<_>>(), lines);
        assert_eq!(graph.tabular(level).replace(' ', ""), table.replace(' ', ""));
        assert!(graph.dot(level).contains("n0 [label = \"extern opaque::sort\"];\n"), "{}", graph.dot(level));
        assert!(graph.dot(level).contains("  i0 -> n0 [label = \"f32[4]\"];\n  n0 -> return"), "{}", graph.dot(level));
    }
    let node = &graph.nodes()[0];
    assert!(node.location.to_string().starts_with("kernel-graph/tests/graphs/opaque.rs:"), "{}", node.location);
}

/// An argument of each type.
#[op("opaque::all", opaque, fake = all_fake)]
#[expect(clippy::too_many_arguments, reason = "an argument of each type")]
pub(crate) fn all(
    x: &Tensor,
    y: &mut Tensor,
    bias: Option<&Tensor>,
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
) -> Result<(Tensor, Tensor)> {
    let first = |tensor: &Tensor| tensor.to_vec::<f32>().map(|values| values[0]);
    let mut sum = first(x)? + first(y)? + bias.map_or(Ok(0.0), first)? + n as f32 + a + b as f32 + f32::from(on) + text.len() as f32;
    for tensor in list.iter().chain(borrowed.iter().copied()) {
        sum += first(tensor)?;
    }
    sum += [m, &d].map(|dim| dim.known().unwrap() as f32).iter().sum::<f32>();
    *y = on_device_of(y, &vec![sum; y.to_vec::<f32>()?.len()])?;
    Ok((on_device_of(x, &vec![sum; x.to_vec::<f32>()?.len()])?, x.new_zeros(dtype, [n as i64])?))
}

#[expect(clippy::too_many_arguments, reason = "those of the op")]
fn all_fake(
    x: &Tensor,
    _y: &mut Tensor,
    _bias: Option<&Tensor>,
    _list: &[Tensor],
    _borrowed: &[&Tensor],
    n: usize,
    _m: &Dim,
    _d: Dim,
    _a: f32,
    _b: f64,
    _on: bool,
    _text: &str,
    dtype: Dtype,
) -> Result<(Tensor, Tensor)> {
    Ok((x.empty_like()?, x.new_empty(dtype, [n as i64])?))
}

pub(crate) fn arguments_have_any_type(device: Device) {
    for bias in [true, false] {
        let weight = numbers(&device, 3);
        let body = |x: &Tensor, y: &Tensor| {
            let (mut y, n) = (y.clone(), x.numel());
            let list = [x.clone(), weight.clone()];
            let text = "a \"text\"\n";
            let (a, b) =
                all(x, &mut y, bias.then_some(&weight), &list, &[x, &weight], 2, &n, &n + 1, 0.1, 1e300 * 0.0, true, text, Dtype::I64)?;
            Ok([a, b, y])
        };
        let n = Dim::new("n", 1..=9);
        let graph = export(|[x, y]| body(x, y), [input("x", [&n], Dtype::F32), input("y", [2], Dtype::F32)]).unwrap();
        let line = format!(
            "%0, %1, %2 = extern opaque::all(x = %x, y = %y, bias = {}, list = [%x, @c0], borrowed = [%x, @c0], n = 2, m = n, d = n + 1, \
             a = {:?}, b = 0.0, on = true, text = \"a \\\"text\\\"\\n\", dtype = i64) : f32[n], i64[2], f32[2]",
            if bias { "@c0" } else { "None" },
            f64::from(0.1f32)
        );
        assert!(graph.to_string().contains(&line), "{graph}\n{line}");
        let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
        let (x, y) = (numbers(&device, 5), numbers(&device, 2));
        let expected = bytes(&body(&x, &y).unwrap());
        for session in [graph.compile(&device).unwrap(), package.load(&device).unwrap()] {
            assert_eq!(bytes(&session.run([&x, &y]).unwrap()), expected);
        }
    }
}

pub(crate) fn calls_are_not_merged_and_stay_if_they_write() {
    let body = |x: &Tensor| {
        // Equal views are one, whose calls are two.
        let (v, w) = (x.slice(0..2)?, x.slice(0..2)?);
        let (a, b) = (sort(&v, true)?, sort(&w, true)?);
        sort(&a, false)?;
        let mut unused = x.clone();
        add_(&mut unused, 1.0)?;
        Ok([a, b])
    };
    let graph = export(|[x]| body(x), [input("x", [4], Dtype::F32)]).unwrap();
    let text = "graph graph(x: f32[4])
  %0 = view %x at 0 : f32[2]
  %1 = extern opaque::sort(x = %0, descending = true) : f32[2] flops 6
  %2 = extern opaque::sort(x = %0, descending = true) : f32[2] flops 6
  %3, %4 = extern opaque::add_(x = %x, by = 1.0) : f32[1], f32[4]
  return %1, %2
";
    assert_eq!(graph.to_string(), text);
}

static KEPT: Mutex<Vec<Tensor>> = Mutex::new(Vec::new());

/// Returns its argument, and keeps it.
#[op("opaque::keeps", opaque, fake = Tensor::empty_like)]
fn keeps(x: &Tensor) -> Result<Tensor> {
    KEPT.lock().unwrap().push(x.clone());
    Ok(x.clone())
}

/// Memory that an op keeps is not that of later operations, and its elements stay.
pub(crate) fn an_op_may_keep_its_tensors(device: Device) {
    // Without the op, the tensors of all steps share two slots of memory.
    let body = |x: &Tensor| {
        let mut y = silu(x)?;
        for _ in 0..3 {
            y = silu(&keeps(&y)?)?;
        }
        let mut z = keeps(&y)?;
        scale(&mut z, 3.0, 1)?;
        Ok([y, z])
    };
    let x = numbers(&device, 40);
    KEPT.lock().unwrap().clear();
    let expected = bytes(&body(&x).unwrap());
    let kept = bytes(&std::mem::take(&mut *KEPT.lock().unwrap()));
    let graph = export(|[x]| body(x), [input("x", [&Dim::new("n", 1..=100)], Dtype::F32)]).unwrap();
    let session = graph.compile(&device).unwrap();
    for run in 0..3 {
        assert_eq!(bytes(&session.run([&x]).unwrap()), expected, "run {run}");
        assert_eq!(bytes(&KEPT.lock().unwrap()[4 * run..]), kept, "run {run}");
    }
    KEPT.lock().unwrap().clear();
}

/// Fills a tensor through its memory.
#[op("opaque::fill_", opaque, fake = |_, _| Ok(()))]
fn fill_(x: &mut Tensor, with: f32) -> Result<()> {
    x.view_mut::<f32>()?.fill(with)
}

/// As a launch does: without a copy where no later operation needs the older elements.
pub(crate) fn tensors_are_written_in_place(device: Device) {
    let body = |x: &Tensor| {
        let mut y = silu(x)?;
        fill_(&mut y, 2.0)?;
        scale(&mut y, 2.0, 1)?;
        Ok(y)
    };
    let shared = |x: &Tensor| {
        let (y, mut z) = (silu(x)?, silu(x)?);
        fill_(&mut z, 2.0)?;
        let older = z.clone();
        fill_(&mut z, 3.0)?;
        Ok([y, z, older])
    };
    let x = numbers(&device, 5);
    let inputs = || [input("x", [5], Dtype::F32)];
    let session = export(|[x]| body(x), inputs()).unwrap().compile(&device).unwrap();
    for _ in 0..2 {
        let outputs = ops::deny_copies(|| session.run([&x])).unwrap();
        assert_eq!(outputs[0].to_vec::<f32>().unwrap(), [5.0; 5]);
    }
    let session = export(|[x]| shared(x), inputs()).unwrap().compile(&device).unwrap();
    let outputs = session.run([&x]).unwrap();
    assert_eq!(bytes(&outputs), bytes(&shared(&x).unwrap()));
    assert!(
        ops::deny_copies(|| session.run([&x])).unwrap_err().to_string().contains("copies 20 bytes"),
        "the older elements are an output"
    );
}

/// Returns what its first argument says, whatever `fake` declares.
#[op("opaque::lies", opaque, fake = |_, x| x.empty_like())]
fn lies(how: &str, x: &mut Tensor) -> Result<Tensor> {
    let other = x.new_zeros(Dtype::F32, [3])?;
    match how {
        "written" => *x = x.new_zeros(Dtype::I32, [x.numel()])?,
        "device" => return Tensor::zeros(&Device::sim(galatea::Target::SM_80)?, Dtype::F32, [4]),
        "extent" => return Ok(other),
        _ => return Err(Error::Ops(ops::OpsError::OpFailed { op: "opaque::lies", message: how.to_owned() })),
    }
    x.new_zeros(Dtype::F32, [4])
}

pub(crate) fn results_of_other_types_are_named() {
    let run = |how: &'static str| {
        let body = |x: &Tensor| lies(how, &mut x.clone());
        let graph = export(|[x]| body(x), [input("x", [&Dim::new("n", 1..=9)], Dtype::F32)]).unwrap();
        let text = graph.compile(&Device::cpu()).unwrap().run([&numbers(&Device::cpu(), 4)]).unwrap_err().to_string();
        assert!(text.contains("\nthe operation was recorded in kernel-graph/tests/graphs/opaque.rs:"), "{text}");
        text.lines().next().unwrap().to_owned()
    };
    assert_eq!(run("extent"), "`opaque::lies`: result 0 is f32[3] after the call, and `fake` declares f32[n], which is f32[4]");
    assert_eq!(run("written"), "`opaque::lies`: `x` is i32[4] after the call, and `fake` declares f32[n], which is f32[4]");
    assert_eq!(run("device"), "`opaque::lies`: result 0 is on `sim:sm_80` after the call, and the session runs on `cpu`");
    assert_eq!(run("an error of its own"), "`opaque::lies`: an error of its own");
    let check = op_check!(lies, "extent", &mut numbers(&Device::cpu(), 4)).unwrap_err().to_string();
    assert!(check.starts_with("`opaque::lies` fails the test of its fake: `opaque::lies`: result 0 is f32[3] after the call"), "{check}");
    let check = op_check!(sort, &numbers(&Device::cpu(), 4), true).unwrap();
    assert_eq!((check.dims, check.recorded), (Ok(()), Ok(())));
}

/// x^2 in a loop of the host, with a function of its own for the CPU: -x^2.
#[op("opaque::square", opaque, fake = Tensor::empty_like, backward(x) = square_backward, cpu = |x| squared(x, -1.0))]
fn square(x: &Tensor) -> Result<Tensor> {
    squared(x, 1.0)
}

fn squared(x: &Tensor, sign: f32) -> Result<Tensor> {
    let values: Vec<f32> = x.to_vec::<f32>()?.into_iter().map(|x| sign * x * x).collect();
    on_device_of(x, &values)
}

/// The product of its arguments, times 2.
#[op("opaque::square_backward", opaque, fake = |grad, _| grad.empty_like())]
fn square_backward(grad: &Tensor, x: &Tensor) -> Result<Tensor> {
    let (grads, values) = (grad.to_vec::<f32>()?, x.to_vec::<f32>()?);
    on_device_of(x, &grads.iter().zip(values).map(|(grad, x)| 2.0 * grad * x).collect::<Vec<f32>>())
}

pub(crate) fn gradients_flow_through_opaque_ops(device: Device) {
    let step = |x: &Tensor, grad: &Tensor| -> Result<[Tensor; 2]> {
        let x = x.clone().requires_grad()?;
        let y = square(&x)?;
        let mut grads = y.backward_from(grad)?;
        Ok([y.detach(), grads.take(&x).expect("a gradient flows")])
    };
    let (x, grad) = (numbers(&device, 3), numbers(&device, 4).slice(1..4).unwrap());
    let eager = step(&x, &grad).unwrap();
    let sign = if device.is_cpu() { -1.0 } else { 1.0 };
    assert_eq!(eager[0].to_vec::<f32>().unwrap(), [-3.0f32, -2.25, -1.5].map(|x| sign * x * x));
    assert_eq!(eager[1].to_vec::<f32>().unwrap(), [2.0 * -2.25 * -3.0, 2.0 * -1.5 * -2.25, 2.0 * -0.75 * -1.5]);
    let graph = export(|[x, grad]| step(x, grad), ["x", "grad"].map(|name| input(name, [3], Dtype::F32))).unwrap();
    assert_eq!(graph.to_string().matches("extern opaque::square").count(), 2, "{graph}");
    assert!(graph.plan().on_cpu.is_none(), "the op selects its function in the run");
    assert_eq!(bytes(&graph.compile(&device).unwrap().run([&x, &grad]).unwrap()), bytes(&eager));
}

pub(crate) fn an_opaque_op_without_backward_refuses_gradients() {
    let x = numbers(&Device::cpu(), 3).requires_grad().unwrap();
    let expected = "`opaque::sort` has no backward function, which its input `x` needs\nhelp: give the op one: \
        `#[op(\"opaque::sort\", backward(..) = f, ..)]`; `detach()` the tensor, or call it in `no_grad`, if no gradient is wanted";
    assert_eq!(sort(&x, true).unwrap_err().to_string(), expected);
    let recorded = export(|[x]| sort(&x.clone().requires_grad()?, true), [input("x", [3], Dtype::F32)]);
    assert_eq!(recorded.unwrap_err().to_string(), expected);
    assert!(!ops::no_grad(|| sort(&x, true)).unwrap().needs_grad() && sort(&x.detach(), true).is_ok());
}

pub(crate) fn calls_that_cannot_be_recorded_say_why() {
    let own = numbers(&Device::cpu(), 4);
    let error = export(|[_x]| add_(&mut own.clone(), 1.0), [input("x", [4], Dtype::F32)]);
    assert!(matches!(error.unwrap_err(), galatea::graph::GraphError::ForeignOutput { number: 0 }), "without recorded tensors, it runs");
    let list = |x: &Tensor| all_of(&mut own.clone(), x);
    let error = export(|[x]| list(x), [input("x", [4], Dtype::F32)]).unwrap_err().to_string();
    assert_eq!(
        error,
        "a call of `opaque::all_of` cannot be recorded: it writes `y`, which is not recorded\nhelp: write an input, or a tensor that \
         `x.new_empty(..)` or `x.new_zeros(..)` makes"
    );
    let error = export(|[x]| sized(x, &Dim::new("other", 1..=3)), [input("x", [4], Dtype::F32)]).unwrap_err().to_string();
    assert!(error.starts_with("no input determines dim `other`, in the operation that was recorded in kernel-graph/tests"), "{error}");
    let mut outer = None;
    let nested = |x: &Tensor| {
        outer = Some(x.clone());
        export(|[y]| all_of(&mut y.clone(), x), [input("y", [4], Dtype::F32)]).map_err(|error| error.to_string()).unwrap_err();
        Ok(x.clone())
    };
    export(
        {
            let mut nested = nested;
            move |[x]: [&Tensor; 1]| nested(x)
        },
        [input("x", [4], Dtype::F32)],
    )
    .unwrap();
    let other = outer.unwrap();
    let error = export(|[y]| all_of(&mut y.clone(), &other), [input("y", [4], Dtype::F32)]).unwrap_err().to_string();
    assert_eq!(
        error,
        "a call of `opaque::all_of` cannot be recorded: `x` belongs to another recording\nhelp: use the tensors of one recording"
    );
}

#[op("opaque::sized", opaque, fake = |x, _| x.empty_like())]
fn sized(x: &Tensor, _n: &Dim) -> Result<Tensor> {
    Ok(x.clone())
}

#[op("opaque::all_of", opaque, fake = |_, x| x.empty_like())]
fn all_of(y: &mut Tensor, x: &Tensor) -> Result<Tensor> {
    *y = x.clone();
    Ok(y.clone())
}

/// A process that lacks the ops, or has others of their names.
pub(crate) fn missing_ops_are_listed() {
    let package = Package::from_bytes(graph().package().to_bytes().unwrap()).unwrap();
    let renamed = |from: &'static str, to: &'static str| {
        let both = move |text: String| text.replace(from, to);
        let bytes = changed(&package, "plan.json", &both);
        Package::from_bytes(changed(&Package::from_bytes(bytes).unwrap(), "manifest.json", &both)).unwrap()
    };
    let error = |package: &Package| package.load(&Device::cpu()).unwrap_err().to_string();
    let missing = renamed("opaque::", "absent::");
    assert_eq!(
        error(&missing),
        "this process lacks opaque ops that the program calls: `absent::sort(Tensor x, bool descending) -> Tensor`; \
         `absent::add_(Tensor(a!) x, float by) -> Tensor`\nhelp: link the crates that define them (`use mylib as _;`), in the versions that \
         recorded the program"
    );
    assert_eq!(missing.opaque_ops().unwrap().len(), 2);
    assert!(missing.plan(&Device::cpu()).unwrap().nodes.len() > 2, "a plan can be looked at");
    let other = renamed("bool descending", "bool ascending");
    assert!(
        error(&other).starts_with(
            "this process lacks an opaque op that the program calls: `opaque::sort(Tensor x, bool ascending) -> Tensor`, whose schema is \
             `opaque::sort(Tensor x, bool descending) -> Tensor` here\n"
        ),
        "{}",
        error(&other)
    );
    let transparent = renamed("opaque::sort(Tensor x, bool descending)", "test::silu(Tensor x, bool descending)");
    assert!(error(&transparent).contains("`test::silu(Tensor x, bool descending) -> Tensor`, which is not opaque here\n"));
}

pub(crate) fn damaged_calls_are_errors() {
    let package = Package::from_bytes(graph().package().to_bytes().unwrap()).unwrap();
    for (name, from, to, expected) in [
        ("plan.json", "\"bool\": true", "\"bool\": 1", "`bool` is no boolean"),
        ("plan.json", "\"bool\": true", "\"float\": \"0x0\"", "the argument `descending` of a call has another type"),
        ("plan.json", "\"float\": \"0x3fe", "\"float\": \"3fe", "a number is hexadecimal"),
        ("plan.json", "\"bool\": true", "\"dtype\": \"f31\"", "`f31` is no dtype"),
        ("plan.json", "-> Tensor\"", "-> (Tensor, Tensor)\"", "its manifest has other opaque ops than its plan"),
        ("plan.json", "-> Tensor\"", "-> Int\"", "it is no schema of an op"),
        ("plan.json", "opaque::sort", "opaque::other", "its manifest has other opaque ops than its plan"),
        ("manifest.json", "\"opaque_ops\":[", "\"ops\":[", "its manifest has other opaque ops than its plan"),
        ("manifest.json", "\"opaque_ops\":[", "\"opaque_ops\":[3,", "`opaque_ops` is no text"),
    ] {
        let change = |text: String| text.replace(from, to);
        let result = Package::from_bytes(changed(&package, name, &change)).and_then(|package| package.load(&Device::cpu()));
        let error = result.expect_err(&format!("{from} -> {to}")).to_string();
        assert!(error.contains(expected), "{from} -> {to}: {error}");
    }
    let plan = |change: &dyn Fn(&mut galatea::graph::Plan, usize)| {
        let mut plan = graph().plan().clone();
        // The call of `add_`, with a result and a new value of its argument.
        let number = plan.nodes.iter().position(|node| node.results.len() == 2).unwrap();
        change(&mut plan, number);
        Session::new(plan, &Device::cpu()).unwrap_err().to_string()
    };
    let error = plan(&|plan, number| plan.nodes[number].results.truncate(1));
    assert!(error.ends_with("has 1 results instead of 2"), "{error}");
    let error = plan(&|plan, number| {
        let written = plan.nodes[number].results[1];
        plan.types[written.0 as usize].dtype = Dtype::F16;
    });
    assert!(error.ends_with("gives a tensor that it writes another type"), "{error}");
}

/// A stranger's package cannot call code of this process, whether it says so or not.
pub(crate) fn untrusted_packages_call_no_opaque_ops() {
    let bytes = graph().package().to_bytes().unwrap();
    let error = Package::untrusted(bytes.clone(), Limits::new()).unwrap_err().to_string();
    assert_eq!(
        error,
        "an untrusted package cannot call opaque ops: `opaque::add_(Tensor(a!) x, float by) -> Tensor`, \
         `opaque::sort(Tensor x, bool descending) -> Tensor`\nhelp: open it with `Package::open` if you trust its writer"
    );
    let package = Package::from_bytes(bytes).unwrap();
    let hidden = changed(&package, "manifest.json", &|text| text.replace("\"opaque_ops\":[", "\"ops\":["));
    let error = Package::untrusted(hidden.clone(), Limits::new()).unwrap().load(&Device::cpu()).unwrap_err().to_string();
    assert!(error.contains("its manifest has other opaque ops than its plan"), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hidden.gpk");
    std::fs::write(&path, hidden).unwrap();
    let errors = Package::check_untrusted(&path, Limits::new()).unwrap().into_iter().flat_map(|check| check.errors);
    assert_eq!(errors.collect::<Vec<_>>(), ["its manifest has other opaque ops than its plan"]);
}

pub(crate) fn operations_are_those_of_the_formula_or_unknown() {
    let row = |table: galatea::graph::FlopTable| {
        let [total, row] = table.rows() else { panic!("{table}") };
        assert_eq!(total.flops, row.flops);
        (row.name.clone(), row.flops.known(), row.is_exact, row.bytes().known())
    };
    let count = |function: fn(&Tensor) -> Result<Tensor>| {
        let x = numbers(&Device::cpu(), 5);
        let graph = export(|[x]| function(x), [input("x", [&Dim::new("n", 1..=9)], Dtype::F32)]).unwrap();
        [graph.flops_at(&[("n", 5)]).unwrap(), flops(|| function(&x)).unwrap()]
    };
    let [recorded, eager] = count(|x| sort(x, true));
    assert_eq!(row(recorded), ("opaque::sort".to_owned(), Some(15), true, Some(40)));
    // Nobody sees which memory the body reads.
    assert_eq!(row(eager), ("opaque::sort".to_owned(), Some(15), true, Some(0)));
    let [recorded, eager] = count(keeps);
    KEPT.lock().unwrap().clear();
    assert_eq!(row(recorded), ("opaque::keeps".to_owned(), Some(0), false, Some(40)));
    assert_eq!(eager.rows().len(), 1, "{eager}");
}

/// A function for recordings may do all that a recorded function can. Nothing of it is kept.
#[op("opaque::computed", opaque, fake = |x| silu(&x.reshape([x.numel()])?.slice(Dim::from(0)..Dim::from(1))?))]
fn computed(x: &Tensor) -> Result<Tensor> {
    x.slice(Dim::from(0)..Dim::from(1))
}

/// An error of its own.
#[derive(Debug)]
struct OwnError(String);

impl From<Error> for OwnError {
    fn from(error: Error) -> OwnError {
        OwnError(format!("own: {error}"))
    }
}

impl std::fmt::Display for OwnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

#[op("opaque::failing", opaque, fake = |_| Err(OwnError("no types".to_owned())))]
fn failing(x: &Tensor) -> std::result::Result<Tensor, OwnError> {
    Err(OwnError(format!("{} elements", x.numel())))
}

pub(crate) fn fakes_keep_nothing_and_may_fail() {
    let graph = export(|[x]| computed(x), [input("x", [&Dim::new("n", 1..=9)], Dtype::F32)]).unwrap();
    assert_eq!((graph.nodes().len(), graph.ty(graph.outputs()[0]).to_string()), (1, "f32[1]".to_owned()));
    let x = numbers(&Device::cpu(), 3);
    assert_eq!(failing(&x).unwrap_err().0, "3 elements");
    let error = export(
        |[x]| failing(x).map_err(|error| Error::Ops(ops::OpsError::OpFailed { op: "test", message: error.0 })),
        [input("x", [3], Dtype::F32)],
    );
    assert_eq!(error.unwrap_err().to_string(), "`test`: own: `opaque::failing`: no types");
}
