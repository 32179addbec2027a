//! The example `silu_mlp`, and what it shows: tasks 3, 4 and 11. The example runs in a process of its own, as from a command line.

use std::path::Path;
use std::process::Command;

use galatea::Dtype;
use galatea::ops::{Any, Module, Tensor};
use galatea::prelude::*;
use kernel_library::nn::{Linear, Seed};
use serde_json::Value;

use crate::{assert_same, golden};

#[path = "../../../examples/silu_mlp.rs"]
mod silu_mlp;

/// A process with this variable runs the example.
pub(crate) const CHILD: &str = "GALATEA_ACCEPTANCE_EXAMPLE";

/// The kernel of the tutorial.
#[kernel]
fn silu_elements<T: Float, const BLOCK: usize>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    let v = load(x + at, mask = at < n) as f32;
    store(y + at, (v / (1.0 + exp(-v))) as T, mask = at < n);
}

/// The kernel in a plain function.
pub(crate) fn silu(x: &Tensor) -> Result<Tensor> {
    let (n, mut y) = (x.numel(), x.empty_like()?);
    silu_elements::<Any, 1024>(x, &mut y, &n).grid(n.cdiv(1024)).launch()?;
    Ok(y)
}

pub(crate) fn example() {
    if let Err(error) = silu_mlp::main() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// The output of the example, without times, sizes, lines and the name of the folder.
fn story(options: &str, out: &Path) -> String {
    let text = output(options, out);
    let (mut lines, mut is_table) = (String::new(), false);
    for line in text.lines() {
        is_table &= !line.starts_with("Profiling trace");
        let line = match (line.split_once("package of "), line.split_once("examples/silu_mlp.rs:")) {
            _ if is_table => continue,
            (Some((start, size)), _) => format!("{start}package of .. {}", size.split_once(' ').unwrap().1),
            (_, Some((start, _))) => {
                format!("{}examples/silu_mlp.rs:..)", start.trim_end_matches("kernel-graph/tests/acceptance/../../../"))
            }
            _ => line.to_owned(),
        };
        is_table |= line.starts_with("--- Running");
        lines += &(line + "\n");
    }
    lines
}

fn output(options: &str, out: &Path) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--device", "cpu", "--out"]).arg(out).args(options.split_whitespace());
    let output = command.env(CHILD, "1").env("GALATEA_CACHE", "off").output().unwrap();
    // Nor does it note that there is no GPU: it was asked for the CPU.
    assert!(output.status.success() && output.stderr.is_empty(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().replace(&out.display().to_string(), "OUT")
}

/// The output for a registered op at the level of ops, and the two traces.
pub(crate) fn the_story_of_the_example() {
    let folder = tempfile::tempdir().unwrap();
    let text = story("--registered-op --level ops", folder.path());
    golden("silu_mlp.txt", &text);
    assert_eq!(text.matches("-> **True**").count(), 3, "{text}");
    let mut files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["compiled_profiler.json", "packaged_profiler.json", "silu_mlp.gpk"]);
}

/// A registered op and a plain function, at both levels: the table of the graph. The story is one of the four.
pub(crate) fn all_four_forms_are_exported() {
    for (name, options) in
        [("op-kernels", "--registered-op --level kernels"), ("plain-ops", "--level ops"), ("plain-kernels", "--level kernels")]
    {
        let folder = tempfile::tempdir().unwrap();
        let text = story(options, folder.path());
        let table = text.split_once("Graph Nodes Extracted:\n").unwrap().1.split_once("\ngraph ").unwrap().0;
        golden(&format!("table-{name}.txt"), table);
        assert_eq!(text.matches("-> **True**").count(), 3, "{options}: {text}");
    }
}

pub(crate) fn traces_have_five_steps_of_ops_over_kernels() {
    let folder = tempfile::tempdir().unwrap();
    let output = output("--registered-op", folder.path());
    assert_eq!(output.matches("\nProfilerStep* ").count(), 2, "both tables have the steps: {output}");
    for name in ["compiled", "packaged"] {
        let text = std::fs::read_to_string(folder.path().join(format!("{name}_profiler.json"))).unwrap();
        let trace: Value = serde_json::from_str(&text).unwrap();
        let events: Vec<&Value> = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").collect();
        let of = |category: &str| -> Vec<&&Value> { events.iter().filter(|event| event["cat"] == category).collect() };
        let steps: Vec<&str> = of("user_annotation").iter().map(|event| event["name"].as_str().unwrap()).collect();
        let expected: Vec<String> = (3..8).flat_map(|step| [format!("ProfilerStep#{step}"), format!("step_{step}")]).collect();
        assert_eq!(steps, expected, "{name}");
        let (runs, kernels) = (of("cpu_op"), of("kernel"));
        assert_eq!((runs.len(), kernels.len()), (5, 15), "{name}: a run in each step, three kernels in each run");
        for run in &runs {
            assert_eq!((&run["name"], &run["args"]["Input Dims"]), (&"silu_mlp".into(), &serde_json::json!([[16, 128]])));
            assert!(run["args"]["Flops"].as_u64().unwrap() > 2 * 2 * 16 * 64 * 128);
            let time = |event: &Value| (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
            let (start, length) = time(run);
            let inside = of("launch").into_iter().filter(|launch| (start..start + length).contains(&time(launch).0)).count();
            assert_eq!(inside, 3, "{name}: the launches of a run lie in its span");
        }
    }
}

pub(crate) fn seeds_repeat_a_model() {
    let of = |device: &Device, seed| Linear::init(device, Dtype::Bf16, 128, 64, &mut Seed(seed)).unwrap();
    let (cpu, sim) = (Device::cpu(), Device::sim(galatea::Target::SM_80).unwrap());
    let (first, again, elsewhere, other) = (of(&cpu, 42), of(&cpu, 42), of(&sim, 42), of(&cpu, 43));
    assert_same(&first.weight, &again.weight);
    assert_same(&first.weight, &elsewhere.weight.to_device(&cpu).unwrap());
    assert_same(&first.to(&sim).unwrap().weight, &elsewhere.weight);
    assert!(!galatea::ops::compare(&other.weight, &again.weight).unwrap().bit_equal);
}
