//! Steps of a loop, and runs of recorded programs.

use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::profile::{Profile, Profiler, StepSchedule, Trace, span};
use galatea::{Dim, Dtype};
use kernel_graph::{export, input};
use kernel_package::{Package, Session};
use serde_json::json;

use crate::numbers;
use crate::ops::{affine, both, scale_elements};
use crate::trace_events::{events, names};

/// Runs the steps of a loop as a user of PyTorch writes them.
fn steps(profiler: &mut Profiler<'_>, count: usize, x: &Tensor) {
    for step in 0..count {
        let work = span(format!("step_{step}"));
        affine(x, 2.0, 1.0).unwrap();
        drop(work);
        profiler.step();
    }
}

fn span_names(trace: &Trace) -> Vec<&str> {
    trace.spans().iter().map(|span| span.name.as_str()).collect()
}

pub(crate) fn each_cycle_of_steps_is_a_trace(device: Device) {
    let x = numbers(&device, 100);
    let mut profiler = Profiler::start(StepSchedule::new().wait(1).warmup(1).active(2).repeat(2));
    steps(&mut profiler, 10, &x);
    assert_eq!(profiler.current_step(), 10);
    let traces = profiler.finish();
    assert_eq!(traces.len(), 2);
    for (trace, first) in traces.iter().zip([2, 6]) {
        let expected =
            (first..first + 2).flat_map(|step| [format!("ProfilerStep#{step}"), format!("step_{step}"), "test::affine".to_owned()]);
        assert_eq!(span_names(trace), expected.collect::<Vec<_>>());
        assert_eq!(trace.spans().iter().map(|span| span.parent).collect::<Vec<_>>(), [None, Some(0), Some(1), None, Some(3), Some(4)]);
        let events = events(trace);
        assert_eq!((names(&events, "kernel").len(), names(&events, "cpu_op").len()), (2, 2), "{events:?}");
        assert_eq!(names(&events, "user_annotation").len(), 4);
    }
    assert!(traces[0].started() < traces[1].started());
    assert!(!galatea::profile::is_recording());
}

pub(crate) fn a_callback_takes_the_traces(device: Device) {
    let x = numbers(&device, 100);
    let mut ready = Vec::new();
    let mut profiler = Profiler::start(StepSchedule::new().active(1)).on_trace_ready(|trace| ready.push(span_names(&trace).join(" ")));
    steps(&mut profiler, 3, &x);
    assert!(profiler.finish().is_empty());
    let expected = |step: usize| format!("ProfilerStep#{step} step_{step} test::affine");
    assert_eq!(ready, [0, 1, 2].map(expected));
}

pub(crate) fn an_interrupted_cycle_is_a_trace_if_something_happened(device: Device) {
    let x = numbers(&device, 100);
    let cycles = |count: usize| {
        let mut profiler = Profiler::start(StepSchedule::new().warmup(1).active(3));
        steps(&mut profiler, count, &x);
        profiler.finish().iter().map(|trace| trace.launches().len()).collect::<Vec<_>>()
    };
    // A warmup is no trace, nor is a step in which nothing has happened.
    assert_eq!([0, 1, 2, 3, 4, 5, 6].map(cycles), [vec![], vec![], vec![1], vec![2], vec![3], vec![3], vec![3, 1]]);
    let mut profiler = Profiler::start(StepSchedule::new().active(3));
    steps(&mut profiler, 1, &x);
    drop(profiler);
    assert!(!galatea::profile::is_recording(), "a profiler that is dropped discards its profile");
}

/// A program of three launches, for all sizes.
fn program() -> kernel_graph::Graph {
    let n = Dim::new("n", 1..=300);
    let weight = numbers(&Device::cpu(), 2);
    let body = |x: &Tensor| both(x, std::slice::from_ref(&weight), None, true);
    export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap().named("model")
}

pub(crate) fn launches_of_a_run_are_in_the_span_of_the_program(device: Device) {
    let graph = program();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gpk");
    graph.package().write(&path).unwrap();
    let sessions = [graph.compile(&device).unwrap(), Package::open(&path).unwrap().load(&device).unwrap()];
    for (session, what) in sessions.iter().zip(["compiled", "packaged"]) {
        let x = numbers(&device, 100);
        session.run([&x]).unwrap();
        let profile = Profile::start();
        let run = span(what);
        session.run([&x]).unwrap();
        drop(run);
        let trace = profile.finish();
        let events = events(&trace);
        assert_eq!((names(&events, "user_annotation"), names(&events, "cpu_op")), (vec![what], vec!["model"]));
        assert_eq!(names(&events, "kernel"), ["affine_elements", "scale_elements", "scale_elements"]);
        let run = events.iter().find(|event| event.name == "model").unwrap();
        assert_eq!((&run.args["Input Dims"], &run.args["Input type"]), (&json!([[100]]), &json!(["f32"])));
        // Two programs of 64 elements with four operations each, in three launches.
        assert_eq!(run.args["Flops"], 2 * 64 * 4);
        assert!(
            events.iter().filter(|event| event.category == "kernel").all(|kernel| kernel.args["External id"] == run.args["External id"])
        );
    }
}

pub(crate) fn a_copy_of_a_run_has_the_line_of_the_recorded_launch(device: Device) {
    let n = Dim::new("n", 1..=300);
    let line = line!() + 4;
    let body = |x: &Tensor| {
        let n = x.numel();
        let mut y = x.clone();
        scale_elements(&mut y, 2.0, &n).grid(n.cdiv(64)).launch()?;
        Ok(y)
    };
    let session = Session::new(export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap(), &device).unwrap();
    let profile = Profile::start();
    session.run([&numbers(&device, 70)]).unwrap();
    let trace = profile.finish();
    let events = events(&trace);
    assert_eq!(names(&events, "cpu_op"), ["graph", "galatea::copy_shared"]);
    let copy = &events.iter().find(|event| event.name == "galatea::copy_shared").unwrap().args;
    let text = copy["line"].as_str().unwrap();
    assert!(text.starts_with(&format!("{}:{line}:", file!())) && copy["bytes"] == 280, "{copy}, and not line {line}");
    assert_eq!(trace.launches()[0].line, text);
}

pub(crate) fn recording_a_program_makes_no_spans(_: Device) {
    let profile = Profile::start();
    program();
    let trace = profile.finish();
    assert!(trace.spans().is_empty() && trace.launches().is_empty(), "{trace:?}");
}
