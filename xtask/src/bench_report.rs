//! `cargo xtask bench-report benches/results.json`: writes the results of a benchmark run as a page, as data and as a plot.
//!
//! The benchmark writes one JSON object with this schema. Times are in microseconds; each is the median of a run in which ours and the
//! peers were interleaved.
//!
//! ```json
//! {
//!   "date": "2026-01-31",
//!   "commit": "0123456789ab",
//!   "gpu": "NVIDIA H200",
//!   "driver": "580.159.04",
//!   "versions": { "galatea": "0.1.0", "torch": "2.11.0", "triton": "3.6.0" },
//!   "command": "cargo bench -p galatea-benches --bench against_peers -- --out results.json",
//!   "method": ["**Data.** ..", "**Times.** .."],
//!   "clocks_before": { "sm_mhz": 345, "memory_mhz": 3201, "celsius": 32, "watts": 77 },
//!   "clocks_after": { "sm_mhz": 1980, "memory_mhz": 3201, "celsius": 45, "watts": 300 },
//!   "rows": [
//!     { "work": "vector_add f32", "shape": "2^27", "bytes": 1610612736, "ours_us": 370.1, "copy_us": 371.0,
//!       "peers": { "torch": 371.8, "torch compiled": 371.0, "triton": 370.9 },
//!       "seed": 0, "config": "Config { BLOCK_SIZE: 1024, num_warps: 4 }", "triton_config": "{..}" }
//!   ]
//! }
//! ```
//!
//! `bytes` counts the bytes that the work must read and write, each once. `copy_us` is optional: the time that the machine takes to copy
//! half as many bytes, which moves the same number of bytes. It is a lower bound for memory-bound work. So is `floor_us`, which is optional, too: the
//! time to read and to write as many bytes as the work does. The reports derive everything else: GB/s = bytes / time, and ratio = the best peer's time / ours (above 1: ours is faster).
//!
//! `--name gallery` writes the results of the gallery's benchmark, which has the same schema, to `docs/benchmarks-gallery.{md,json,svg}`, and
//! `--name gallery-h100` those of another GPU to `docs/benchmarks-gallery-h100.{md,json,svg}`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use kernel_runtime::bench::chart::{BarChart, BarGroup};
use serde::{Deserialize, Serialize};

use crate::process;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// JSON file that a benchmark run wrote
    #[arg(value_name = "RESULTS.json")]
    results: PathBuf,
    /// Write benchmarks.md, benchmarks.json and benchmarks.svg to this folder
    #[arg(long, value_name = "DIR", default_value = "docs")]
    out: PathBuf,
    /// Write the files benchmarks-NAME.{md,json,svg} instead
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// The name of the files, without their endings.
fn stem(name: Option<&str>) -> String {
    name.map_or("benchmarks".to_owned(), |name| format!("benchmarks-{name}"))
}

#[derive(Deserialize, Serialize)]
struct Run {
    /// The date, as 2026-01-31.
    date: String,
    /// The commit of ours that was measured. Runs before November 2026 have none, nor the other optional fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<String>,
    gpu: String,
    driver: String,
    /// The versions of everything that was measured, including ours.
    versions: BTreeMap<String, String>,
    /// The command line of the benchmark.
    command: String,
    /// How the program measures, one item of a list each.
    method: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clocks_before: Option<Clocks>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clocks_after: Option<Clocks>,
    rows: Vec<Row>,
}

/// The state of the GPU at one time.
#[derive(Deserialize, Serialize)]
struct Clocks {
    sm_mhz: f64,
    memory_mhz: f64,
    celsius: f64,
    watts: f64,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// The work with its element type: `silu bf16`.
    work: String,
    shape: String,
    /// The bytes that the work reads and writes, each counted once.
    bytes: u64,
    ours_us: f64,
    /// The time of a copy that moves as many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    copy_us: Option<f64>,
    /// The time to read and to write as many bytes as the work does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    floor_us: Option<f64>,
    /// The time of each peer in microseconds.
    peers: BTreeMap<String, f64>,
    /// The seed of the random data, which both sides read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    /// The configuration that our tuner chose, and the one that the sweep over Triton's chose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    triton_config: Option<String>,
    /// Derived: absent in the output of a run, present in docs/benchmarks.json.
    #[serde(default, skip_deserializing)]
    gb_per_s: f64,
    #[serde(default, skip_deserializing)]
    ratio: f64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    // Paths are relative to the directory of the command line, which Cargo keeps.
    let text = std::fs::read_to_string(&args.results).with_context(|| format!("cannot read {}", args.results.display()))?;
    let run = read(&text).with_context(|| format!("{} is no result of a benchmark", args.results.display()))?;
    let out = process::root().join(&args.out);
    std::fs::create_dir_all(&out)?;
    let stem = stem(args.name.as_deref());
    std::fs::write(out.join(format!("{stem}.md")), page(&run, args.name.as_deref()))?;
    std::fs::write(out.join(format!("{stem}.json")), serde_json::to_string_pretty(&run)? + "\n")?;
    std::fs::write(out.join(format!("{stem}.svg")), chart(&run).svg())?;
    println!("wrote {stem}.md, {stem}.json and {stem}.svg in {}", args.out.display());
    Ok(())
}

/// Parses and checks a run, and computes the derived fields.
fn read(text: &str) -> Result<Run> {
    // The input may be docs/benchmarks.json: recompute its derived fields.
    let mut value: serde_json::Value = serde_json::from_str(text)?;
    for row in value.get_mut("rows").and_then(|rows| rows.as_array_mut()).into_iter().flatten() {
        if let Some(row) = row.as_object_mut() {
            row.remove("gb_per_s");
            row.remove("ratio");
        }
    }
    let mut run: Run = serde_json::from_value(value)?;
    ensure!(!run.rows.is_empty(), "it has no rows");
    for row in &mut run.rows {
        let name = format!("{} {}", row.work, row.shape);
        let times = || row.peers.values().copied().chain([row.ours_us]).chain(row.copy_us).chain(row.floor_us);
        ensure!(times().all(|us| us.is_finite() && us > 0.0), "{name}: a time is not above zero");
        ensure!(!row.peers.is_empty(), "{name}: no peer was measured in the same run");
        let best = row.peers.values().copied().fold(f64::INFINITY, f64::min);
        row.ratio = best / row.ours_us;
        row.gb_per_s = gb_per_s(row.bytes, row.ours_us);
    }
    Ok(run)
}

fn gb_per_s(bytes: u64, us: f64) -> f64 {
    bytes as f64 / us / 1e3
}

/// All peers of all rows, in one order for table and plot.
fn peers(run: &Run) -> Vec<&str> {
    let names: BTreeSet<&str> = run.rows.iter().flat_map(|row| row.peers.keys()).map(String::as_str).collect();
    names.into_iter().collect()
}

/// The geometric means of the ratios: of the rows whose best peer takes more than 1.10 times as long as the copy, and of the others.
fn means(run: &Run) -> Option<String> {
    let is_behind = |row: &&Row| row.copy_us.is_some_and(|copy| row.ratio * row.ours_us > 1.10 * copy);
    let (behind, beside): (Vec<&Row>, Vec<&Row>) = run.rows.iter().partition(is_behind);
    let mean = |rows: &[&Row]| (rows.iter().map(|row| row.ratio.ln()).sum::<f64>() / rows.len() as f64).exp();
    (!behind.is_empty() && !beside.is_empty()).then(|| {
        format!(
            "- **Means.** The geometric mean of the ratios is {:.3} over the {} rows whose best peer takes more than 1.10 times the time of the copy, and {:.3} over \
             the other {} rows.\n",
            mean(&behind),
            behind.len(),
            mean(&beside),
            beside.len()
        )
    })
}

fn page(run: &Run, name: Option<&str>) -> String {
    let versions: Vec<_> = run.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let mut text = format!(
        "# Benchmarks{}\n\n\
         <!-- Written by `cargo xtask bench-report`; edits are lost. -->\n\n\
         Measured on {} on one {} (driver {}){}: {}.{}\n\n",
        name.map_or(String::new(), |name| match name.split_once('-') {
            Some((benchmark, gpu)) => format!(" of the {benchmark} ({})", gpu.to_uppercase()),
            None => format!(" of the {name}"),
        }),
        run.date,
        run.gpu,
        run.driver,
        run.commit.as_ref().map_or(String::new(), |commit| format!(" at commit {commit}")),
        versions.join(", "),
        run.clocks_before.as_ref().zip(run.clocks_after.as_ref()).map_or(String::new(), |(before, after)| format!(
            " The clock of the multiprocessors was {:.0} MHz before the run and {:.0} MHz after it.",
            before.sm_mhz, after.sm_mhz
        )),
    );
    for rule in &run.method {
        let _ = writeln!(text, "- {rule}");
    }
    text += "- **Ratio.** The best peer's time over ours: above 1.00, ours is faster. GB/s counts every byte that must be read or written once. The copy \
             reads half as many bytes as the work moves, and writes the other half.\n";
    text += &means(run).filter(|_| name.is_some()).unwrap_or_default();
    text += "\n";
    let peers = peers(run);
    let stem = stem(name);
    text += "| work | shape | galatea |";
    for peer in &peers {
        let _ = write!(text, " {peer} |");
    }
    let has_floor = run.rows.iter().any(|row| row.floor_us.is_some());
    text += if has_floor { " copy | floor |" } else { " copy |" };
    text += " GB/s | ratio to the best |\n|---|---|---:|";
    text += &"---:|".repeat(peers.len() + 3 + usize::from(has_floor));
    text += "\n";
    for row in &run.rows {
        let _ = write!(text, "| {} | {} | {:.1} µs |", row.work, row.shape, row.ours_us);
        for peer in &peers {
            match row.peers.get(*peer) {
                Some(us) => _ = write!(text, " {us:.1} µs |"),
                None => text += " |",
            }
        }
        for time in [row.copy_us].into_iter().chain(has_floor.then_some(row.floor_us)) {
            let _ = match time {
                Some(us) => write!(text, " {us:.1} µs |"),
                None => write!(text, " |"),
            };
        }
        let _ = writeln!(text, " {:.0} | {:.3} |", row.gb_per_s, row.ratio);
    }
    let _ = write!(
        text,
        "\n![Throughput of ours and the peers]({stem}.svg)\n\n\
         The same figures as data: [{stem}.json]({stem}.json). Made by:\n\n\
         ```sh\n{}\ncargo xtask bench-report {}\n```\n",
        run.command,
        name.map_or("benches/results.json".to_owned(), |name| {
            let benchmark = name.split('-').next().unwrap_or(name);
            format!("--name {name} benches/{benchmark}/results.json")
        })
    );
    text
}

/// A bar chart of GB/s: one group for each row, ours first, with the ratio beside it and a line at the copy's speed.
fn chart(run: &Run) -> BarChart {
    let peers = peers(run);
    let group = |row: &Row| BarGroup {
        labels: [row.work.clone(), row.shape.clone()],
        lengths: [Some(row.gb_per_s)]
            .into_iter()
            .chain(peers.iter().map(|peer| row.peers.get(*peer).map(|us| gb_per_s(row.bytes, *us))))
            .collect(),
        mark: row.copy_us.map(|us| gb_per_s(row.bytes, us)),
        note: format!("{:.2}x", row.ratio),
    };
    BarChart {
        caption: format!("{}, {}: longer is faster", run.gpu, run.date),
        axis: "GB/s; beside the bars: the best peer's time over ours".to_owned(),
        series: ["galatea"].into_iter().chain(peers.iter().copied()).map(str::to_owned).collect(),
        mark: "a copy of as many bytes".to_owned(),
        groups: run.rows.iter().map(group).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{ "date": "2026-01-31", "gpu": "NVIDIA H200", "driver": "580.1", "command": "cargo bench", "method": ["**Data.** Random."], "commit": "0123456789ab",
        "clocks_before": { "sm_mhz": 345, "memory_mhz": 3201, "celsius": 32, "watts": 77 },
        "clocks_after": { "sm_mhz": 1980, "memory_mhz": 3201, "celsius": 45, "watts": 300 },
        "versions": { "torch": "2.11.0" },
        "rows": [{ "work": "vector_add f32", "shape": "2^20", "bytes": 12000000, "ours_us": 4.0, "copy_us": 4.5,
                   "peers": { "torch": 6.0, "triton": 5.0 }, "seed": 0, "config": "Config", "triton_config": "{}" }] }"#;

    #[test]
    fn speed_and_ratio_follow_from_the_times() {
        let run = read(RUN).unwrap();
        assert_eq!((run.rows[0].gb_per_s, run.rows[0].ratio), (3000.0, 1.25));
        let page = page(&run, None);
        assert!(page.contains("| vector_add f32 | 2^20 | 4.0 µs | 6.0 µs | 5.0 µs | 4.5 µs | 3000 | 1.250 |"), "{page}");
    }

    #[test]
    fn a_floor_is_a_column() {
        let run = read(&RUN.replace(r#""copy_us": 4.5"#, r#""copy_us": 4.5, "floor_us": 3.9"#)).unwrap();
        let page = page(&run, None);
        assert!(page.contains("| copy | floor | GB/s |"), "{page}");
        assert!(page.contains("| 4.5 µs | 3.9 µs | 3000 | 1.250 |"), "{page}");
    }

    #[test]
    fn a_written_report_is_read() {
        let written = serde_json::to_string(&read(RUN).unwrap()).unwrap();
        assert_eq!(serde_json::to_string(&read(&written).unwrap()).unwrap(), written);
    }

    #[test]
    fn the_plot_in_the_repository_is_that_of_its_data() {
        let docs = process::root().join("docs");
        for stem in ["benchmarks", "benchmarks-gallery"] {
            let run = read(&std::fs::read_to_string(docs.join(format!("{stem}.json"))).unwrap()).unwrap();
            assert_eq!(chart(&run).svg(), std::fs::read_to_string(docs.join(format!("{stem}.svg"))).unwrap());
        }
    }

    #[test]
    fn a_run_that_measured_nothing_is_refused() {
        assert!(read(&RUN.replace("4.0", "0.0")).is_err());
        assert!(read(&RUN.replace(r#"{ "torch": 6.0, "triton": 5.0 }"#, "{}")).is_err());
    }
}
