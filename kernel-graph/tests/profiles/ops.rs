//! Spans of ops and of copies.

use galatea::Dtype;
use galatea::bench::do_bench;
use galatea::op;
use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::profile::{Profile, Trace, span};
use serde_json::json;

use crate::numbers;
use crate::trace_events::{Event, events, names};

/// y = a * x + b
#[kernel]
pub(crate) fn affine_elements(x: Ptr<f32>, y: PtrMut<f32>, a: f32, b: f32, n: usize) {
    let at = program_id(0) * 64 + arange(0, 64);
    store(y + at, load(x + at, mask = at < n) * a + b, mask = at < n);
}

/// y = a * y, in place
#[kernel]
pub(crate) fn scale_elements(y: PtrMut<f32>, a: f32, n: usize) {
    let at = program_id(0) * 64 + arange(0, 64);
    store(y + at, load(y + at, mask = at < n) * a, mask = at < n);
}

/// y[i] = the sum of row i
#[kernel]
fn sum_rows(x: View<f32, 2>, y: PtrMut<f32>) {
    let mut total = 0.0;
    for first in range(0, extent(x, 1), 32) {
        total += sum(x.load([program_id(0), first], [1, 32]));
    }
    store(y + program_id(0), total);
}

#[op("test::affine")]
pub(crate) fn affine(x: &Tensor, a: f32, b: f32) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    affine_elements(x, &mut y, a, b, &n).grid(n.cdiv(64)).launch()?;
    Ok(y)
}

#[op("test::scale_")]
pub(crate) fn scale(y: &mut Tensor, a: f32) -> Result<()> {
    let n = y.numel();
    scale_elements(y, a, &n).grid(n.cdiv(64)).launch()
}

#[op("test::row_sums")]
fn row_sums(x: &Tensor) -> Result<Tensor> {
    let mut y = x.new_empty(x.dtype(), [x.dim(0)])?;
    sum_rows(x, &mut y).grid(x.dim(0)).launch()?;
    Ok(y)
}

/// An op that calls others.
#[op("test::both")]
pub(crate) fn both(x: &Tensor, all: &[Tensor], bias: Option<&Tensor>, twice: bool) -> Result<Tensor> {
    let mut y = affine(x, 2.0, 1.0)?;
    scale(&mut y, all.len() as f32)?;
    if twice && bias.is_none() {
        scale(&mut y, 0.5)?;
    }
    Ok(y)
}

fn profiled(run: impl FnOnce() -> Result<()>) -> Trace {
    let profile = Profile::start();
    run().unwrap();
    profile.finish()
}

fn one<'e>(events: &'e [Event], category: &str, name: &str) -> &'e Event {
    let found: Vec<&Event> = events.iter().filter(|event| event.category == category && event.name == name).collect();
    let [event] = found[..] else { panic!("{} events are `{name}`: {events:?}", found.len()) };
    event
}

/// The category of launches on a device.
fn launch_category(device: Device) -> &'static str {
    if device.is_cuda() { "cuda_driver" } else { "launch" }
}

pub(crate) fn an_op_is_a_span_over_its_launches(device: Device) {
    let x = numbers(&device, 100);
    let all = [numbers(&device, 3), numbers(&device, 4)];
    both(&x, &all, None, true).unwrap();
    let trace = profiled(|| {
        let _step = span("step");
        both(&x, &all, None, true).map(drop)
    });
    let events = events(&trace);
    assert_eq!(names(&events, "user_annotation"), ["step"]);
    assert_eq!(names(&events, "cpu_op"), ["test::both", "test::affine", "test::scale_", "test::scale_"]);
    assert_eq!(names(&events, "kernel"), ["affine_elements", "scale_elements", "scale_elements"]);
    let launches = names(&events, launch_category(device)).len();
    assert_eq!((launches, events.len()), (3, 11), "{events:?}");
    let (step, outer, inner) =
        (one(&events, "user_annotation", "step"), one(&events, "cpu_op", "test::both"), one(&events, "cpu_op", "test::affine"));
    assert!(step.is_around(outer) && outer.is_around(inner));
    let kernel = one(&events, "kernel", "affine_elements");
    assert_eq!(kernel.args["External id"], inner.args["External id"], "the innermost op launched it");
    let launch = events.iter().find(|event| event.category == launch_category(device)).unwrap();
    assert!(inner.is_around(launch) && launch.args["kernel"] == "affine_elements");
    // As the API shows it.
    let around: Vec<_> = trace.launches().iter().map(|launch| trace.spans()[launch.span.unwrap()].name.as_str()).collect();
    assert_eq!(around, ["test::affine", "test::scale_", "test::scale_"]);
    assert_eq!(trace.spans().iter().map(|span| span.parent).collect::<Vec<_>>(), [None, Some(0), Some(1), Some(1), Some(1)]);
    let averages = trace.key_averages();
    let row = |name: &str| averages.rows().iter().find(|row| row.name == name).unwrap();
    assert_eq!((row("test::scale_").calls, row("test::both").calls, row("scale_elements").calls), (2, 1, 2));
    assert_eq!(row("step").device_total, row("scale_elements").device_total + row("affine_elements").device_total);
}

pub(crate) fn inputs_have_their_extents_and_dtypes(device: Device) {
    let x = numbers(&device, 100).reshape([25, 4]).unwrap();
    let all = [numbers(&device, 3), numbers(&device, 4)];
    let bias = Tensor::zeros(&device, Dtype::Bf16, [7]).unwrap();
    let events = events(&profiled(|| both(&x, &all, Some(&bias), true).map(drop)));
    let args = &one(&events, "cpu_op", "test::both").args;
    assert_eq!(args["Input Dims"], json!([[25, 4], [[3], [4]], [7], []]));
    assert_eq!(args["Input type"], json!(["f32", "TensorList", "bf16", "Scalar"]));
    assert_eq!(args["Concrete Inputs"], json!(["", "", "", "true"]));
    let args = &one(&events, "cpu_op", "test::affine").args;
    assert_eq!((&args["Input Dims"], &args["Concrete Inputs"]), (&json!([[25, 4], [], []]), &json!(["", "2.0", "1.0"])));
    assert_eq!(one(&events, "cpu_op", "test::scale_").args["Input Dims"], json!([[25, 4], []]));
}

pub(crate) fn operations_are_those_of_the_grid(device: Device) {
    let x = numbers(&device, 300);
    let rows = x.reshape([3, 100]).unwrap();
    let all = [numbers(&device, 3)];
    let trace = profiled(|| {
        let _step = span("step");
        both(&x, &all, None, false)?;
        row_sums(&rows).map(drop)
    });
    let events = events(&trace);
    // Five programs of 64 elements: a product and a sum, and then a product.
    let (affine, scale) = (5 * 64 * 2, 5 * 64);
    // Three programs: in each of four iterations 31 sums of the reduction and one more.
    let rows = 3 * 4 * 32;
    let flops = |category: &str, name: &str| one(&events, category, name).args["Flops"].as_u64();
    assert_eq!(flops("cpu_op", "test::affine"), Some(affine));
    assert_eq!(flops("kernel", "scale_elements"), Some(scale));
    assert_eq!(flops("cpu_op", "test::both"), Some(affine + scale));
    assert_eq!(flops("cpu_op", "test::row_sums"), Some(rows));
    assert_eq!(flops("user_annotation", "step"), Some(affine + scale + rows));
    let total: u64 = trace.launches().iter().map(|launch| launch.flops.unwrap()).sum();
    assert_eq!(total, affine + scale + rows);
}

pub(crate) fn a_copy_names_its_bytes_and_its_line(device: Device) {
    let mut x = numbers(&device, 100);
    let kept = x.clone();
    let line = line!() + 1;
    let trace = profiled(|| scale_elements(&mut x, 2.0, 100).grid(2).launch());
    let own = events(&trace);
    let copy = one(&own, "cpu_op", "galatea::copy_shared");
    assert_eq!((&copy.args["bytes"], &copy.args["Input Dims"], &copy.args["Input type"]), (&json!(400), &json!([[100]]), &json!(["f32"])));
    let text = copy.args["line"].as_str().unwrap();
    assert!(text.starts_with(&format!("{}:{line}:", file!())), "{text}, and not line {line}");
    assert_eq!(trace.launches()[0].line, text);
    drop(kept);
    // A write of the host has its own line, also before a launch.
    let kept = x.clone();
    let line = line!() + 2;
    let trace = profiled(|| {
        x.view_mut::<f32>()?.fill(1.0)?;
        scale(&mut x, 2.0)
    });
    let own = events(&trace);
    let text = one(&own, "cpu_op", "galatea::copy_shared").args["line"].as_str().unwrap();
    assert!(text.starts_with(&format!("{}:{line}:", file!())), "{text}, and not line {line}");
    drop(kept);
    // In an op, the copy is inside of its span.
    let kept = x.clone();
    let in_op = events(&profiled(|| scale(&mut x, 2.0)));
    assert!(one(&in_op, "cpu_op", "test::scale_").is_around(one(&in_op, "cpu_op", "galatea::copy_shared")));
    drop(kept);
    let without = events(&profiled(|| scale(&mut x, 2.0)));
    assert_eq!(names(&without, "cpu_op"), ["test::scale_"]);
}

pub(crate) fn an_op_that_fails_ends_its_span(device: Device) {
    #[op("test::fails")]
    fn fails(x: &Tensor) -> Result<Tensor> {
        affine(x, 1.0, 1.0)?;
        x.reshape([x.numel() + 1])
    }
    #[op("test::panics")]
    fn panics(x: &Tensor) -> Result<Tensor> {
        panic!("on purpose, with {:?}", x.dims())
    }
    let x = numbers(&device, 5);
    let trace = profiled(|| {
        assert!(fails(&x).is_err());
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| panics(&x))).is_err());
        affine(&x, 1.0, 1.0).map(drop)
    });
    assert_eq!(names(&events(&trace), "cpu_op"), ["test::fails", "test::affine", "test::panics", "test::affine"]);
    assert_eq!(trace.spans().iter().map(|span| span.parent).collect::<Vec<_>>(), [None, Some(0), None, None]);
}

pub(crate) fn a_benchmark_of_an_op_has_no_spans_of_it(device: Device) {
    let x = numbers(&device, 5);
    let trace = profiled(|| {
        do_bench(&device, || affine(&x, 1.0, 1.0).map(drop))?;
        affine(&x, 1.0, 1.0).map(drop)
    });
    assert_eq!(trace.spans().iter().map(|span| span.name.as_str()).collect::<Vec<_>>(), ["benchmark", "test::affine"]);
}
