//! Output in the Trace Event Format: <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.
//!
//! The keys and the categories are those of PyTorch's profiler, so that tools for its traces read these:
//!
//! | event | category | arguments |
//! |---|---|---|
//! | a span that the program names, a step | `user_annotation` | `External id`, `Flops` |
//! | a call of an op, a copy of a shared tensor | `cpu_op` | these, `Input Dims`, `Input type`, `Concrete Inputs`; `bytes`, `line` |
//! | a launch to a CUDA GPU | `cuda_driver` | `External id` of the span around it, `correlation`, the kernel, its parameters and the `line` |
//! | a launch on another device | `launch` | the same |
//! | a kernel | `kernel` | the same, `device`, `stream` |
//! | the arrow from a launch to its kernel | `ac2g` | the `correlation` as `id` |

use std::collections::BTreeMap;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use super::op_span::{CallInput, SpanKind};
use super::trace::{LaunchRecord, SpanRecord, Trace};
use crate::Device;

/// The process number of the host in the format; devices follow.
const HOST: usize = 1;
/// The version of PyTorch's format.
const SCHEMA_VERSION: u32 = 1;

impl Trace {
    /// The trace as JSON for `chrome://tracing` and Perfetto: complete events (`"ph": "X"`) with times in microseconds since `baseTimeNanoseconds`. The
    /// host is one process with a track for each thread; each device is a process with a track for each stream. A flow connects each launch
    /// with its kernel, except on simulated GPUs, whose clocks are independent of the host's. Keys and categories are those of PyTorch's profiler.
    pub fn to_json(&self) -> String {
        self.json("galatea")
    }

    pub(super) fn json(&self, name: &str) -> String {
        let devices = self.devices();
        let number = |device: Device| devices.iter().position(|known| *known == device).unwrap_or(devices.len());
        let mut names = BTreeMap::from([((HOST, None), "host".to_owned())]);
        let mut events = Events::default();
        for (index, span) in self.spans().iter().enumerate() {
            let category = if span.kind == SpanKind::Annotation { "user_annotation" } else { "cpu_op" };
            names.insert((HOST, Some(span.thread_number as usize)), span.thread.clone());
            events.complete(category, &span.name, (HOST, span.thread_number as usize), &span.time, span_arguments(index, span));
        }
        for (index, launch) in self.launches().iter().enumerate() {
            let device = number(launch.device);
            let (thread, track) = ((HOST, launch.thread_number as usize), (HOST + 1 + device, launch.track));
            names.insert((thread.0, Some(thread.1)), launch.thread.clone());
            names.insert((track.0, None), process_name(launch.device));
            names.insert((track.0, Some(track.1)), track_name(launch));
            let correlation = index + 1;
            let mut args = arguments(launch, correlation);
            let (category, name) = if launch.device.is_cuda() { ("cuda_driver", "cuLaunchKernel") } else { ("launch", launch.kernel) };
            events.complete(category, name, thread, &launch.enqueued, args.clone());
            if let Some(ran) = &launch.ran {
                args["device"] = json!(device);
                args["stream"] = json!(launch.track);
                events.complete("kernel", launch.kernel, track, ran, args);
                if !launch.device.is_sim() {
                    events.flow("s", correlation, thread, launch.enqueued.start);
                    events.flow("f", correlation, track, ran.start);
                }
            }
        }
        // Viewers expect outer events before the events inside them.
        events.0.sort_by(|a, b| a.track.cmp(&b.track).then(a.start.cmp(&b.start)).then(b.end.cmp(&a.end)));
        let names = names.into_iter().map(|((process, track), name)| {
            let what = if track.is_some() { "thread_name" } else { "process_name" };
            json!({ "ph": "M", "name": what, "pid": process, "tid": track.unwrap_or(0), "args": { "name": name } })
        });
        let all: Vec<Value> = names.chain(events.0.into_iter().map(|event| event.json)).collect();
        json!({
            "schemaVersion": SCHEMA_VERSION,
            "deviceProperties": devices.iter().enumerate().map(|(id, device)| properties(id, *device)).collect::<Vec<_>>(),
            "record_shapes": 1,
            "with_flops": 1,
            "displayTimeUnit": "ns",
            "baseTimeNanoseconds": self.started().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64),
            "otherData": { "made by": concat!("galatea ", env!("CARGO_PKG_VERSION")), "left out": self.left_out() },
            "traceName": name,
            "traceEvents": all,
        })
        .to_string()
    }

    /// The devices, in the order of their first launches.
    fn devices(&self) -> Vec<Device> {
        let mut devices = Vec::new();
        for launch in self.launches() {
            if !devices.contains(&launch.device) {
                devices.push(launch.device);
            }
        }
        devices
    }
}

#[derive(Default)]
struct Events(Vec<Event>);

struct Event {
    /// The process and the track.
    track: (usize, usize),
    start: Duration,
    end: Duration,
    json: Value,
}

impl Events {
    fn complete(&mut self, category: &str, name: &str, track: (usize, usize), time: &std::ops::Range<Duration>, args: Value) {
        let (start, end) = (time.start, time.end);
        let (ts, dur) = (us(start), us(end.saturating_sub(start)));
        let json = json!({ "ph": "X", "cat": category, "name": name, "pid": track.0, "tid": track.1, "ts": ts, "dur": dur, "args": args });
        self.0.push(Event { track, start, end, json });
    }

    /// One end of an arrow. It belongs to the event at that time.
    fn flow(&mut self, phase: &str, id: usize, track: (usize, usize), at: Duration) {
        let mut json = json!({ "ph": phase, "cat": "ac2g", "name": "ac2g", "id": id, "pid": track.0, "tid": track.1, "ts": us(at) });
        if phase == "f" {
            json["bp"] = json!("e");
        }
        self.0.push(Event { track, start: at, end: at, json });
    }
}

fn us(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

fn properties(id: usize, device: Device) -> Value {
    let mut properties = json!({ "id": id, "name": device.name() });
    if let Some((major, minor)) = device.compute_capability() {
        properties["computeMajor"] = json!(major);
        properties["computeMinor"] = json!(minor);
        properties["numSms"] = json!(device.multiprocessors());
    }
    properties
}

/// The number of a span for [`arguments`].
fn external_id(index: usize) -> usize {
    index + 1
}

fn span_arguments(index: usize, span: &SpanRecord) -> Value {
    let mut args = json!({ "External id": external_id(index) });
    if span.flops > 0 {
        args["Flops"] = json!(span.flops);
    }
    let tensor;
    let inputs = match &span.kind {
        SpanKind::Annotation => return args,
        SpanKind::Op { inputs } => inputs,
        SpanKind::Copy { tensor: copied, bytes, line } => {
            args["bytes"] = json!(bytes);
            args["line"] = json!(line);
            tensor = vec![CallInput::Tensor(copied.clone())];
            &tensor
        }
    };
    args["Input Dims"] = inputs.iter().map(dims).collect();
    args["Input type"] = inputs.iter().map(dtype).collect();
    args["Concrete Inputs"] =
        inputs.iter().map(|input| if let CallInput::Value(text) = input { text.clone() } else { String::new() }).collect();
    args
}

/// The extents of a tensor, those of several, or none.
fn dims(input: &CallInput) -> Value {
    match input {
        CallInput::Tensor(ty) => {
            ty.dims.iter().map(|dim| dim.known().map_or_else(|| json!(dim.to_string()), |extent| json!(extent))).collect()
        }
        CallInput::List(inputs) => inputs.iter().map(dims).collect(),
        CallInput::Value(_) => json!([]),
    }
}

fn dtype(input: &CallInput) -> Value {
    match input {
        CallInput::Tensor(ty) => json!(ty.dtype.to_string()),
        CallInput::List(_) => json!("TensorList"),
        CallInput::Value(_) => json!("Scalar"),
    }
}

fn arguments(launch: &LaunchRecord, correlation: usize) -> Value {
    let mut args = json!({
        "kernel": launch.kernel, "grid": launch.grid, "parameters": launch.parameters, "tensor_bytes": launch.tensor_bytes,
        "line": launch.line, "correlation": correlation,
    });
    if let Some(span) = launch.span {
        args["External id"] = json!(external_id(span));
    }
    if let Some(flops) = launch.flops {
        args["Flops"] = json!(flops);
    }
    if let Some(schedule) = launch.schedule {
        args["num_warps"] = json!(schedule.num_warps);
        args["num_stages"] = json!(schedule.num_stages);
        args["num_ctas"] = json!(schedule.num_ctas);
        if let Some(registers) = schedule.maxnreg {
            args["maxnreg"] = json!(registers);
        }
    }
    if let Some(error) = &launch.error {
        args["error"] = json!(error);
    }
    args
}

fn process_name(device: Device) -> String {
    if device.is_sim() {
        return format!("{}: times are estimates", device.name());
    }
    if device.is_cpu() { "CPU".to_owned() } else { format!("{} ({device})", device.name()) }
}

fn track_name(launch: &LaunchRecord) -> String {
    if launch.stream.is_none() {
        return format!("launched by {}", launch.thread);
    }
    let default = launch.device.stream().queue().map(|queue| queue.raw() as usize);
    if launch.stream == default { "default stream".to_owned() } else { format!("stream {}", launch.track) }
}

#[cfg(test)]
mod tests {
    use kernel_lang::dtype::Dtype;

    use super::super::trace::tests::{launch, span, trace};
    use super::*;
    use crate::ops::recorder::TensorType;

    #[test]
    fn events_are_as_the_format_says() {
        let tensor = |dims: &[i64]| TensorType { dtype: Dtype::Bf16, dims: dims.iter().map(|extent| (*extent).into()).collect() };
        let list = vec![CallInput::Tensor(tensor(&[1])), CallInput::Tensor(tensor(&[]))];
        let inputs = vec![CallInput::Tensor(tensor(&[2, 3])), CallInput::Value("0.5".to_owned()), CallInput::List(list)];
        let spans = vec![
            span("step_0", SpanKind::Annotation, 5..60),
            span("ns::f", SpanKind::Op { inputs }, 6..50),
            span("galatea::copy_shared", SpanKind::Copy { tensor: tensor(&[2, 3]), bytes: 12, line: "a.rs:1:2".to_owned() }, 7..9),
        ];
        let trace = trace(vec![launch(0, 10..30, 50..60), launch(0, 52..53, 61..62)], spans);
        let parsed: Value = serde_json::from_str(&trace.to_json()).unwrap();
        let args = |correlation: usize, external: usize| {
            json!({
                "kernel": "add", "grid": [2, 1, 1], "parameters": "BLOCK_SIZE = 64", "tensor_bytes": 12, "num_warps": 4, "num_stages": 8, "num_ctas": 1,
                "line": "src/main.rs:1:2", "correlation": correlation, "External id": external, "Flops": 100,
            })
        };
        let on_stream = |correlation: usize, external: usize| {
            let mut args = args(correlation, external);
            (args["device"], args["stream"]) = (json!(0), json!(0));
            args
        };
        let want = json!([
            { "ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": { "name": "host" } },
            { "ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": { "name": "main" } },
            { "ph": "M", "name": "process_name", "pid": 2, "tid": 0, "args": { "name": "CPU" } },
            { "ph": "M", "name": "thread_name", "pid": 2, "tid": 0, "args": { "name": "stream 0" } },
            {
                "ph": "X", "cat": "user_annotation", "name": "step_0", "pid": 1, "tid": 1, "ts": 5.0, "dur": 55.0,
                "args": { "External id": 1, "Flops": 200 },
            },
            {
                "ph": "X", "cat": "cpu_op", "name": "ns::f", "pid": 1, "tid": 1, "ts": 6.0, "dur": 44.0,
                "args": {
                    "External id": 2, "Flops": 100,
                    "Input Dims": [[2, 3], [], [[1], []]], "Input type": ["bf16", "Scalar", "TensorList"], "Concrete Inputs": ["", "0.5", ""],
                },
            },
            {
                "ph": "X", "cat": "cpu_op", "name": "galatea::copy_shared", "pid": 1, "tid": 1, "ts": 7.0, "dur": 2.0,
                "args": {
                    "External id": 3, "bytes": 12, "line": "a.rs:1:2",
                    "Input Dims": [[2, 3]], "Input type": ["bf16"], "Concrete Inputs": [""],
                },
            },
            { "ph": "X", "cat": "launch", "name": "add", "pid": 1, "tid": 1, "ts": 10.0, "dur": 20.0, "args": args(1, 2) },
            { "ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 1, "tid": 1, "ts": 10.0 },
            { "ph": "X", "cat": "launch", "name": "add", "pid": 1, "tid": 1, "ts": 52.0, "dur": 1.0, "args": args(2, 1) },
            { "ph": "s", "cat": "ac2g", "name": "ac2g", "id": 2, "pid": 1, "tid": 1, "ts": 52.0 },
            { "ph": "X", "cat": "kernel", "name": "add", "pid": 2, "tid": 0, "ts": 50.0, "dur": 10.0, "args": on_stream(1, 2) },
            { "ph": "f", "bp": "e", "cat": "ac2g", "name": "ac2g", "id": 1, "pid": 2, "tid": 0, "ts": 50.0 },
            { "ph": "X", "cat": "kernel", "name": "add", "pid": 2, "tid": 0, "ts": 61.0, "dur": 1.0, "args": on_stream(2, 1) },
            { "ph": "f", "bp": "e", "cat": "ac2g", "name": "ac2g", "id": 2, "pid": 2, "tid": 0, "ts": 61.0 },
        ]);
        assert_eq!(parsed["traceEvents"], want);
        let rest =
            parsed.as_object().unwrap().iter().filter(|(key, _)| *key != "traceEvents").map(|(key, value)| (key.clone(), value.clone()));
        let want = json!({
            "schemaVersion": 1, "deviceProperties": [{ "id": 0, "name": "CPU" }], "record_shapes": 1, "with_flops": 1, "displayTimeUnit": "ns",
            "baseTimeNanoseconds": 1_000_000_000, "traceName": "galatea",
            "otherData": { "made by": concat!("galatea ", env!("CARGO_PKG_VERSION")), "left out": 0 },
        });
        assert_eq!(Value::Object(rest.collect()), want);
    }
}
