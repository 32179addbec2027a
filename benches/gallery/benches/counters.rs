//! `--profile launches.json`: launches the kernels of each work once on each side, for a profiler that counts what the hardware does.
//!
//! A launch is counted between `cuProfilerStart` and `cuProfilerStop`. Everything else comes before it: tuning, compilation, and a first launch. The file lists
//! which kernels each process launched, in their order, so that `cargo xtask counters-report` finds them in the profiler's report. From the folder of a bundle:
//!
//! ```sh
//! ./benches/against_triton --out results.json --sizes aligned
//! ncu --target-processes all --profile-from-start off --cache-control all --clock-control none --metrics $METRICS --export counters --force-overwrite \
//!     ./benches/against_triton --profile launches.json --configs results.json
//! ncu --import counters.ncu-rep --csv --page raw --print-units base > counters.csv
//! cargo xtask counters-report launches.json counters.csv
//! ```
//!
//! `docs/gallery.md` has the commands with the list of metrics. `--configs FILE,FILE` takes the configurations of both sides from results of this benchmark, so
//! that nothing is tuned under the profiler; a row that the files lack is an error. Without `--configs` both sides are tuned first. `--sizes odd,small`
//! takes these sizes of each work in place of the aligned one; `--only` and `--types` select works as for a measurement.

use std::collections::VecDeque;
use std::error::Error;
use std::path::PathBuf;

use galatea::cudarc::driver::{profiler_start, profiler_stop};
use galatea::profile::Profile;
use galatea::{Device, Dtype};
use galatea_gallery::Work;
use galatea_gallery::work::{Case, Fill, Run};
use serde_json::{Value, json};

use crate::peers::Peers;
use crate::rounds::shape_text;
use crate::{Memory, case};

/// Works of which only the data decides how many sectors they move: they gather or scatter at indices that they load, or several programs add to one element.
const DATA_DEPENDENT: &[&str] = &["scatter_add", "index_select", "embedding_bag", "bin_counts"];

/// The bytes of a sector, the unit in which the caches and the memory of a GPU move data.
const SECTOR: u64 = 32;

/// The rows of earlier results, for their configurations.
pub(crate) struct Configs {
    rows: Vec<Value>,
}

/// The configurations of a work.
pub(crate) struct Known {
    /// Those of our launches.
    ours: VecDeque<String>,
    /// The one of Triton's side, as JSON without spaces.
    theirs: String,
}

impl Configs {
    pub(crate) fn read(files: &[PathBuf]) -> Result<Configs, Box<dyn Error>> {
        let mut rows = Vec::new();
        for file in files {
            let read = || -> Result<Value, Box<dyn Error>> { Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?) };
            let mut run = read().map_err(|error| format!("{}: {error}", file.display()))?;
            let of_file = run["rows"].as_array_mut().ok_or_else(|| format!("{} has no rows", file.display()))?;
            rows.append(of_file);
        }
        Ok(Configs { rows })
    }

    pub(crate) fn of(&self, work: &Work, dtype: Dtype, sizes: &[usize]) -> Result<Known, Box<dyn Error>> {
        let (name, shape) = (format!("{} {dtype}", work.name), shape_text(sizes));
        let row = self.rows.iter().find(|row| row["work"] == name && row["shape"] == shape);
        let row = row.ok_or("the files of `--configs` have no row for it")?;
        let (Some(ours), Some(triton)) = (row["config"].as_str(), row["triton_config"].as_str()) else {
            return Err("its row in the files of `--configs` has no configurations".into());
        };
        let plain = triton.split("; hinted: ").next().unwrap_or_default();
        let theirs: Value = serde_json::from_str(plain).map_err(|error| format!("`{plain}` is no configuration of Triton's: {error}"))?;
        let ours = ours.split_inclusive('}').map(|config| config.trim_start_matches(", ").to_owned());
        Ok(Known { ours: ours.collect(), theirs: theirs.to_string() })
    }
}

/// Launches a work once on each side for the profiler. Returns the row of the list; its field `error` says that Triton's side failed after ours was counted.
pub(crate) fn launch_once(
    device: Device,
    peers: &mut Peers,
    work: &Work,
    dtype: Dtype,
    sizes: &[usize],
    known: Option<Known>,
) -> Result<Value, Box<dyn Error>> {
    let (name, shape) = (format!("{} {dtype}", work.name), shape_text(sizes));
    let words: Vec<String> = sizes.iter().map(usize::to_string).collect();
    let of_work = format!("{} {dtype} {}", work.name, words.join(" "));
    let theirs = match &known {
        Some(known) => known.theirs.clone(),
        None => peers.ask(&format!("prepare {of_work}"))?["triton_config"].to_string(),
    };
    let opened = peers.ask(&format!("open {of_work} {theirs}"))?;
    let case = case(device, work, dtype, sizes, &opened["tensors"], Memory::Copied)?;
    let ours = match known {
        Some(known) => known.ours,
        None => tuned(work, dtype, &case, sizes)?,
    };
    let launch = || (work.launch)(dtype, &case, sizes, &mut Run::With(ours.clone()));

    // Loads the code, and shows which kernels the work launches.
    let profile = Profile::start();
    launch()?;
    let trace = profile.finish();
    let kernels: Vec<&str> = trace.launches().iter().map(|launch| launch.kernel).collect();
    device.synchronize()?;
    let stream = device.stream();
    stream.cuda_stream().ok_or("the device is no CUDA GPU")?.context().bind_to_thread()?;
    profiler_start()?;
    let launched = launch().and_then(|()| device.synchronize());
    profiler_stop()?;
    launched?;

    let bytes = opened["bytes"].as_u64().ok_or("the peers did not say how many bytes the work moves")?;
    let configs: Vec<String> = ours.into();
    let mut row = json!({
        "work": name, "shape": shape, "least": least(work, dtype, sizes, bytes),
        "galatea": { "process": std::process::id(), "kernels": kernels, "config": configs.join(", ") },
    });
    match peers.ask("launch") {
        Ok(_) => row["triton"] = json!({ "process": opened["process"], "kernels": opened["kernels"], "config": theirs }),
        Err(error) => row["error"] = error.to_string().into(),
    }
    println!("{name} {shape}: launched {}", kernels.join(", "));
    Ok(row)
}

/// The configurations that tuning chooses.
fn tuned(work: &Work, dtype: Dtype, case: &Case, sizes: &[usize]) -> Result<VecDeque<String>, Box<dyn Error>> {
    (work.launch)(dtype, case, sizes, &mut Run::Launch)?;
    let mut run = Run::Configs(Vec::new());
    (work.launch)(dtype, case, sizes, &mut run)?;
    let Run::Configs(configs) = run else { unreachable!("a launch does not change its kind") };
    Ok(configs.into())
}

/// The sectors that the inputs and the outputs of the kernels of a work occupy: the least that a launch can read and write. `bytes` is what the work must read
/// and write, each byte once. Null if the data decides it.
///
/// A tensor that one kernel writes for the next one is an output and an input. Where a work reads only parts of a tensor, each part counts as if it began with a
/// sector, so a few sectors more are necessary.
fn least(work: &Work, dtype: Dtype, sizes: &[usize], bytes: u64) -> Value {
    if DATA_DEPENDENT.contains(&work.name) {
        return Value::Null;
    }
    let (mut written, mut written_bytes, mut scratch) = (0, 0, 0);
    for row in (work.tensors)(sizes) {
        let of_tensor = (row.len * row.dtype.unwrap_or(dtype).bytes()) as u64;
        if matches!(row.fill, Fill::Scratch) {
            scratch += of_tensor.div_ceil(SECTOR);
        } else if row.is_output {
            written += of_tensor.div_ceil(SECTOR);
            written_bytes += of_tensor;
        }
    }
    json!({ "read": bytes.saturating_sub(written_bytes).div_ceil(SECTOR) + scratch, "written": written + scratch })
}
