//! Profiles of launches on the CPU and on simulated GPUs, by many threads, with failures, and of whole processes; their JSON is read back.

mod axpy;
mod trusted;
#[path = "axpy/tuned.rs"]
mod tuned;

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axpy::axpy;
use kernel_runtime::bench::do_bench;
use kernel_runtime::prelude::*;
use kernel_runtime::private::{KeyPart, Rules, Schedule, Tuner};
use kernel_runtime::profile::{Profile, Trace, span};
use serde_json::Value;
use tuned::{Config, of, tuned};

/// A profile has the launches of all threads, so its tests take turns.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn sim() -> Device {
    Device::sim(Target::SM_90A).unwrap()
}

/// Launches on this device; what the tensors hold is no matter.
fn launch(device: Device, n: usize) -> Result<()> {
    let (x, mut y) = (device.full(n, 1.0f32)?, device.full(n, 2.0f32)?);
    axpy::<f32, 64>(3.0, &x, &mut y, n).grid(cdiv(n, 64)).launch()
}

/// The trace as JSON, of which every rule of the format that matters here is checked: complete events nest on their track and stand in order, and each track has a name.
fn checked(trace: &Trace) -> Vec<Value> {
    let json: Value = serde_json::from_str(&trace.to_json()).unwrap();
    let events = json["traceEvents"].as_array().unwrap().clone();
    let track = |event: &Value| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
    let named: Vec<_> = events.iter().filter(|event| event["name"] == "thread_name").map(track).collect();
    let complete: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!(
        complete.len(),
        trace.spans().len() + trace.launches().iter().map(|launch| 1 + usize::from(launch.ran.is_some())).sum::<usize>()
    );
    for own in &named {
        // Ends of the events that are open at this event.
        let mut open: Vec<f64> = Vec::new();
        let mut last = 0.0;
        for event in complete.iter().filter(|event| track(event) == *own) {
            let (ts, dur) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
            assert!(ts >= last && dur >= 0.0, "{event}");
            last = ts;
            // A nanosecond is lost where doubles are added.
            open.retain(|end| *end > ts + 1e-3);
            assert!(open.iter().all(|end| ts + dur <= end + 1e-3), "{event} reaches over the end of what it is inside of");
            open.push(ts + dur);
        }
    }
    assert!(complete.iter().all(|event| named.contains(&track(event))));
    events
}

fn names<'e>(events: &'e [Value], category: &str) -> Vec<&'e str> {
    events.iter().filter(|event| event["ph"] == "X" && event["cat"] == category).filter_map(|event| event["name"].as_str()).collect()
}

#[test]
fn launches_of_many_threads_are_on_their_tracks() {
    let _alone = alone();
    let profile = Profile::start();
    std::thread::scope(|scope| {
        for number in 0..3usize {
            let run = move || {
                let _outer = span(format!("work of {number}"));
                for iteration in 0..4 {
                    let _inner = span("iteration");
                    launch(Device::cpu(), 100 + iteration).unwrap();
                    launch(sim(), 200).unwrap();
                }
            };
            std::thread::Builder::new().name(format!("worker {number}")).spawn_scoped(scope, run).unwrap();
        }
    });
    let trace = profile.finish();
    assert_eq!((trace.launches().len(), trace.spans().len(), trace.left_out()), (24, 15, 0));
    let events = checked(&trace);
    assert_eq!((names(&events, "launch").len(), names(&events, "kernel").len()), (24, 24));
    for launch in trace.launches() {
        let on_sim = launch.device.is_sim();
        assert_eq!((launch.kernel, launch.parameters.as_str()), ("axpy", "T = f32, BLOCK_SIZE = 64"));
        assert_eq!((launch.grid, launch.schedule), (if on_sim { [4, 1, 1] } else { [2, 1, 1] }, on_sim.then_some(Schedule::DEFAULT)));
        assert!(launch.thread.starts_with("worker ") && launch.track < 3 && launch.error.is_none());
        let ran = launch.ran.as_ref().unwrap();
        // The CPU runs while the call lasts; a simulated GPU runs for some estimated microseconds.
        assert!(on_sim || (launch.enqueued.start <= ran.start && ran.end <= launch.enqueued.end), "{launch:?}");
        assert!(!on_sim || (2000..10_000).contains(&(ran.end - ran.start).as_nanos()), "{launch:?}");
        let inside = trace.spans().iter().filter(|span| span.thread == launch.thread);
        let around = inside.filter(|span| span.time.start <= launch.enqueued.start && launch.enqueued.end <= span.time.end);
        assert_eq!(around.count(), 2, "{launch:?}");
    }
    let first = trace.launches().iter().find(|launch| launch.device.is_cpu()).unwrap();
    assert_eq!(first.tensor_bytes, 800);
    let processes: Vec<&str> =
        events.iter().filter(|event| event["name"] == "process_name").filter_map(|event| event["args"]["name"].as_str()).collect();
    assert_eq!(processes, ["host", "CPU", "simulated H200 (sm_90a): times are estimates"]);
    let kernel = events.iter().find(|event| event["cat"] == "kernel" && event["args"]["num_warps"] == 4).unwrap();
    assert_eq!(
        (&kernel["args"]["grid"], &kernel["args"]["parameters"]),
        (&serde_json::json!([4, 1, 1]), &"T = f32, BLOCK_SIZE = 64".into())
    );
}

#[test]
fn failures_are_recorded_and_end_nothing() {
    let _alone = alone();
    for device in [Device::cpu(), sim()] {
        let profile = Profile::start();
        let fails = || -> Result<()> {
            let _span = span("fails");
            let (x, mut y) = (device.full(10, 1.0f32)?, device.full(10, 1.0f32)?);
            axpy::<f32, 64>(3.0, &x, &mut y, 11).grid(1).checked().launch()
        };
        let error = fails().unwrap_err();
        let panics = || {
            let _span = span("panics");
            assert_eq!(axpy_that_does_not_compile(device).unwrap_err().to_string().lines().next(), None, "on purpose");
        };
        assert!(std::panic::catch_unwind(panics).is_err());
        launch(device, 64).unwrap();
        let trace = profile.finish();
        checked(&trace);
        let [outside, uncompiled, good] = trace.launches() else { panic!("{trace:?}") };
        assert_eq!(outside.error, Some(error.to_string()));
        assert!(uncompiled.error.as_ref().is_some_and(|error| error.contains("does not compile")) && uncompiled.ran.is_none());
        assert!(good.error.is_none() && good.ran.is_some());
        assert_eq!(trace.spans().iter().map(|span| span.name.as_str()).collect::<Vec<_>>(), ["fails", "panics"]);
        let json: Value = serde_json::from_str(&trace.to_json()).unwrap();
        let told = json["traceEvents"].as_array().unwrap().iter().any(|event| event["args"]["error"] == error.to_string());
        assert!(told, "{json}");
    }
}

fn axpy_that_does_not_compile(device: Device) -> Result<()> {
    let (x, mut y) = (device.full(10, 1.0f32)?, device.full(10, 1.0f32)?);
    axpy::<f32, 0>(3.0, &x, &mut y, 10).grid(1).launch()
}

#[test]
fn memory_is_bounded_and_profiles_overlap() {
    let _alone = alone();
    launch(Device::cpu(), 1).unwrap();
    let (whole, few) = (Profile::start(), Profile::with_limit(3));
    for n in 1..=5 {
        launch(Device::cpu(), n).unwrap();
    }
    drop(span("the last"));
    let few = few.finish();
    launch(Device::cpu(), 6).unwrap();
    drop(Profile::start());
    launch(Device::cpu(), 7).unwrap();
    let whole = whole.finish();
    launch(Device::cpu(), 8).unwrap();
    let sizes = |trace: &Trace| trace.launches().iter().map(|launch| launch.tensor_bytes / 8).collect::<Vec<_>>();
    assert_eq!((sizes(&few), few.spans().len(), few.left_out()), (vec![1, 2, 3], 0, 3));
    assert_eq!((sizes(&whole), whole.spans().len(), whole.left_out()), (vec![1, 2, 3, 4, 5, 6, 7], 1, 0));
    let json: Value = serde_json::from_str(&few.to_json()).unwrap();
    assert_eq!(json["otherData"]["left out"], 3);
    let nothing = Profile::start().finish();
    assert!(nothing.launches().is_empty() && checked(&nothing).len() == 1);
}

#[test]
fn tuning_and_benchmarks_are_spans() {
    let _alone = alone();
    static TUNER: Tuner<Config> = Tuner::new(&[of(32, 2), of(64, 2), of(128, 2)], &[KeyPart::exact(5)]);
    let device = sim();
    let (x, mut y) = (device.full(1000, 1.0f32).unwrap(), device.full(1000, 1.0f32).unwrap());
    let mut add = || {
        let grid = |config: Config| cdiv(1000, config.block_size);
        tuned(&x, &mut y, &TUNER, &Rules::NONE).grid(grid).launch().unwrap();
        line!() - 1
    };
    let profile = Profile::start();
    add();
    let line = add();
    do_bench(&Device::cpu(), || launch(Device::cpu(), 100_000)).unwrap();
    launch(Device::cpu(), 64).unwrap();
    let trace = profile.finish();
    checked(&trace);
    assert_eq!(trace.spans().iter().map(|span| span.name.as_str()).collect::<Vec<_>>(), ["tune axpy", "benchmark"]);
    let warps: Vec<_> = trace.launches().iter().map(|launch| launch.schedule.map(|schedule| schedule.num_warps)).collect();
    assert_eq!(warps, [Some(2), Some(2), None]);
    let own = format!("{}:{line}:", file!());
    assert_eq!(trace.launches().iter().map(|launch| launch.line.starts_with(&own)).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn replays_are_spans_and_captured_launches_have_no_time() {
    let _alone = alone();
    for device in [Device::cpu(), sim()] {
        let (x, mut y) = (device.full(64, 1.0f32).unwrap(), device.full(64, 2.0f32).unwrap());
        let profile = Profile::start();
        let mut replay = Replay::capture(device.stream(), || axpy::<f32, 64>(3.0, &x, &mut y, 64).grid(1).launch()).unwrap();
        replay.launch((&x, &mut y)).unwrap();
        replay.launch((&x, &mut y)).unwrap();
        let trace = profile.finish();
        assert_eq!(y.to_vec().unwrap(), [8.0; 64]);
        checked(&trace);
        let [captured] = trace.launches() else { panic!("{trace:?}") };
        assert!(captured.ran.is_none() && captured.error.is_none(), "{captured:?}");
        assert_eq!(trace.spans().iter().map(|span| span.name.as_str()).collect::<Vec<_>>(), ["replay", "replay"]);
    }
}

/// Set for the process that profiles itself.
const CHILD: &str = "GALATEA_TEST_PROFILED";

#[test]
fn a_whole_process_is_profiled_if_the_environment_says_so() {
    if std::env::var_os(CHILD).is_some() {
        launch(Device::cpu(), 64).unwrap();
        drop(span("of the child"));
        return launch(sim(), 64).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.json");
    let child = |path: &std::path::Path| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "a_whole_process_is_profiled_if_the_environment_says_so", "--nocapture"]);
        command.env(CHILD, "1").env("GALATEA_PROFILE", path).output().unwrap()
    };
    let output = child(&path);
    assert!(output.status.success(), "{output:?}");
    let json: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let events = json["traceEvents"].as_array().unwrap();
    assert_eq!(
        (names(events, "launch").len(), names(events, "kernel").len(), names(events, "user_annotation")),
        (2, 2, vec!["of the child"])
    );
    // A file that cannot be written is no failure of the program.
    let output = child(folder.path());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && said.contains("warning: GALATEA_PROFILE: cannot write"), "{said}");
}
