//! The events of a trace, read back from its JSON, of which the rules of the format are checked.

use std::collections::HashMap;

use galatea::profile::Trace;
use serde_json::Value;

/// A complete event.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) category: String,
    pub(crate) name: String,
    pub(crate) args: Value,
    track: (u64, u64),
    time: (f64, f64),
}

impl Event {
    /// Whether the other event is on this event's track and in its time. Doubles lose a nanosecond.
    pub(crate) fn is_around(&self, other: &Event) -> bool {
        self.track == other.track && self.time.0 <= other.time.0 + 1e-3 && other.time.1 <= self.time.1 + 1e-3
    }
}

/// The complete events of a trace, in their order on each track.
///
/// # Panics
/// If the JSON lacks a key of PyTorch's traces, if events overlap without nesting, if a launch and its kernel differ in their correlation or
/// in the span around them, or if an arrow does not lead from a launch to its kernel.
pub(crate) fn events(trace: &Trace) -> Vec<Event> {
    let json: Value = serde_json::from_str(&trace.to_json()).unwrap();
    let keys = "schemaVersion deviceProperties record_shapes with_flops displayTimeUnit baseTimeNanoseconds traceEvents traceName";
    keys.split(' ').for_each(|key| assert!(!json[key].is_null(), "`{key}` is missing"));
    let all = json["traceEvents"].as_array().unwrap();
    let track = |event: &Value| (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
    let mut events = Vec::new();
    for event in all.iter().filter(|event| event["ph"] == "X") {
        let (start, length) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        let text = |key: &str| event[key].as_str().unwrap().to_owned();
        events.push(Event {
            category: text("cat"),
            name: text("name"),
            args: event["args"].clone(),
            track: track(event),
            time: (start, start + length),
        });
    }
    for (index, event) in events.iter().enumerate() {
        for later in events[index + 1..].iter().filter(|later| later.track == event.track) {
            assert!(event.is_around(later) || later.time.0 >= event.time.1 - 1e-3, "{later:?} reaches over the end of {event:?}");
        }
    }
    check_correlations(&events, all);
    events
}

fn check_correlations(events: &[Event], all: &[Value]) {
    let by_correlation = |is_wanted: fn(&str) -> bool| -> HashMap<u64, &Event> {
        let wanted: Vec<&Event> = events.iter().filter(|event| is_wanted(&event.category)).collect();
        let map: HashMap<u64, &Event> = wanted.iter().map(|event| (event.args["correlation"].as_u64().unwrap(), *event)).collect();
        assert_eq!(map.len(), wanted.len(), "no two launches have one correlation");
        map
    };
    let launches = by_correlation(|category| category == "launch" || category == "cuda_driver");
    let kernels = by_correlation(|category| category == "kernel");
    let ids: HashMap<u64, &Event> = events
        .iter()
        .filter(|event| event.category == "cpu_op" || event.category == "user_annotation")
        .map(|event| (event.args["External id"].as_u64().unwrap(), event))
        .collect();
    for (correlation, launch) in &launches {
        let kernel = kernels[correlation];
        assert_eq!((&launch.args["kernel"], &launch.args["External id"]), (&kernel.name.as_str().into(), &kernel.args["External id"]));
        if let Some(id) = launch.args["External id"].as_u64() {
            assert!(ids[&id].is_around(launch), "{launch:?} is not in {:?}", ids[&id]);
            // No span between them is around the launch.
            let is_between = |event: &&&Event| ids[&id].is_around(event) && event.is_around(launch) && !event.is_around(ids[&id]);
            assert_eq!(ids.values().filter(is_between).count(), 0, "{launch:?}");
        }
    }
    let arrows = |phase: &str| all.iter().filter(|event| event["ph"] == phase && event["cat"] == "ac2g").collect::<Vec<_>>();
    let (starts, ends) = (arrows("s"), arrows("f"));
    let has_arrows = kernels.values().any(|kernel| kernel.args["stream"].is_u64()) && !is_simulated(all);
    assert_eq!((starts.len(), ends.len()), if has_arrows { (kernels.len(), kernels.len()) } else { (0, 0) });
    for (arrows, events) in [(starts, &launches), (ends, &kernels)] {
        for arrow in arrows {
            let event = events[&arrow["id"].as_u64().unwrap()];
            let is_in = (event.time.0..=event.time.1).contains(&arrow["ts"].as_f64().unwrap());
            assert!(is_in && (arrow["pid"].as_u64(), arrow["tid"].as_u64()) == (Some(event.track.0), Some(event.track.1)), "{arrow}");
        }
    }
}

fn is_simulated(all: &[Value]) -> bool {
    all.iter().any(|event| event["name"] == "process_name" && event["args"]["name"].as_str().unwrap().contains("times are estimates"))
}

/// The names of the events of a category.
pub(crate) fn names<'e>(events: &'e [Event], category: &str) -> Vec<&'e str> {
    events.iter().filter(|event| event.category == category).map(|event| event.name.as_str()).collect()
}
