//! Output in the Trace Event Format: <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::trace::{LaunchRecord, Trace};
use crate::Device;

/// The process number of the host in the format; devices follow.
const HOST: usize = 1;

impl Trace {
    /// The trace as JSON for `chrome://tracing` and Perfetto: complete events (`"ph": "X"`) with times in microseconds. The host is one
    /// process with a track for each thread; each device is a process with a track for each stream. A flow connects each launch to a GPU
    /// with its kernel.
    pub fn to_json(&self) -> String {
        let devices = self.devices();
        let process = |device: Device| HOST + 1 + devices.iter().position(|known| *known == device).unwrap_or(devices.len());
        let mut names = BTreeMap::from([((HOST, None), "host".to_owned())]);
        let mut events = Events::default();
        for span in self.spans() {
            names.insert((HOST, Some(span.thread_number as usize)), span.thread.clone());
            events.complete("span", &span.name, (HOST, span.thread_number as usize), &span.time, json!({}));
        }
        for (number, launch) in self.launches().iter().enumerate() {
            let (thread, track) = ((HOST, launch.thread_number as usize), (process(launch.device), launch.track));
            names.insert((thread.0, Some(thread.1)), launch.thread.clone());
            names.insert((track.0, None), process_name(launch.device));
            names.insert((track.0, Some(track.1)), track_name(launch));
            events.complete("launch", launch.kernel, thread, &launch.enqueued, arguments(launch));
            if let Some(ran) = &launch.ran {
                events.complete("kernel", launch.kernel, track, ran, arguments(launch));
                if launch.stream.is_some() {
                    events.flow("s", number, thread, launch.enqueued.start);
                    events.flow("f", number, track, ran.start);
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
            "displayTimeUnit": "ns",
            "otherData": { "made by": concat!("galatea ", env!("CARGO_PKG_VERSION")), "left out": self.left_out() },
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
        let mut json = json!({ "ph": phase, "cat": "launch", "name": "launch", "id": id, "pid": track.0, "tid": track.1, "ts": us(at) });
        if phase == "f" {
            json["bp"] = json!("e");
        }
        self.0.push(Event { track, start: at, end: at, json });
    }
}

fn us(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

fn arguments(launch: &LaunchRecord) -> Value {
    let mut args = json!({ "grid": launch.grid, "parameters": launch.parameters, "tensor_bytes": launch.tensor_bytes });
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
    use super::super::trace::tests::{launch, trace};
    use super::*;

    #[test]
    fn events_are_as_the_format_says() {
        let trace = trace(vec![launch(0, 10..30, 50..60)]);
        let parsed: Value = serde_json::from_str(&trace.to_json()).unwrap();
        let args = json!({
            "grid": [2, 1, 1], "parameters": "BLOCK_SIZE = 64", "tensor_bytes": 12, "num_warps": 4, "num_stages": 8, "num_ctas": 1,
        });
        let want = json!([
            { "ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": { "name": "host" } },
            { "ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": { "name": "main" } },
            { "ph": "M", "name": "process_name", "pid": 2, "tid": 0, "args": { "name": "CPU" } },
            { "ph": "M", "name": "thread_name", "pid": 2, "tid": 0, "args": { "name": "stream 0" } },
            { "ph": "X", "cat": "launch", "name": "add", "pid": 1, "tid": 1, "ts": 10.0, "dur": 20.0, "args": args },
            { "ph": "s", "cat": "launch", "name": "launch", "id": 0, "pid": 1, "tid": 1, "ts": 10.0 },
            { "ph": "X", "cat": "kernel", "name": "add", "pid": 2, "tid": 0, "ts": 50.0, "dur": 10.0, "args": args },
            { "ph": "f", "bp": "e", "cat": "launch", "name": "launch", "id": 0, "pid": 2, "tid": 0, "ts": 50.0 },
        ]);
        assert_eq!(parsed["traceEvents"], want);
        assert_eq!(parsed["otherData"]["left out"], 0);
    }
}
