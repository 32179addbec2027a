//! `cargo xtask bench-report results.json`: what a benchmark run measured, as a page, as data and as a plot.
//!
//! The benchmark writes one JSON object; this is its whole schema (times in microseconds, medians of one run
//! in which ours and the peers were interleaved):
//!
//! ```json
//! {
//!   "date": "2026-01-31",
//!   "gpu": "NVIDIA H200",
//!   "driver": "580.159.04",
//!   "versions": { "galatea": "0.1.0", "torch": "2.11.0", "triton": "3.6.0" },
//!   "command": "cargo bench --bench against_peers",
//!   "rows": [
//!     { "work": "vector_add f32", "shape": "2^27", "bytes": 1610612736, "ours_us": 370.1, "copy_us": 371.0,
//!       "peers": { "torch": 371.8, "triton": 370.9 } }
//!   ]
//! }
//! ```
//!
//! `bytes` counts what the work must read and write once. Everything else the reports show follows from these:
//! `copy_us`, which may be absent, is how long the machine takes to copy half as many bytes, and so moves as many: a floor for what is bound by memory.
//! GB/s = bytes / time, ratio = the best peer's time / ours (above 1: ours is faster).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use serde::{Deserialize, Serialize};

use crate::process;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The JSON file a benchmark run wrote
    #[arg(value_name = "RESULTS.json")]
    results: PathBuf,
    /// The folder that receives benchmarks.md, benchmarks.json and benchmarks.svg
    #[arg(long, value_name = "DIR", default_value = "docs")]
    out: PathBuf,
}

#[derive(Deserialize, Serialize)]
struct Run {
    /// The day, as 2026-01-31.
    date: String,
    gpu: String,
    driver: String,
    /// Of everything that was measured, ours included.
    versions: BTreeMap<String, String>,
    /// What was typed to measure.
    command: String,
    rows: Vec<Row>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// What is computed, with its element type: `silu bf16`.
    work: String,
    shape: String,
    /// Read and written by the work, each byte counted once.
    bytes: u64,
    ours_us: f64,
    /// How long a copy takes that moves as many bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    copy_us: Option<f64>,
    /// Each peer's time in microseconds.
    peers: BTreeMap<String, f64>,
    /// Derived; absent in what a run writes, present in docs/benchmarks.json.
    #[serde(default, skip_deserializing)]
    gb_per_s: f64,
    #[serde(default, skip_deserializing)]
    ratio: f64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    // Paths are the caller's, relative to where the command is typed: Cargo keeps that directory.
    let text = std::fs::read_to_string(&args.results).with_context(|| format!("cannot read {}", args.results.display()))?;
    let run = read(&text).with_context(|| format!("{} is no result of a benchmark", args.results.display()))?;
    let out = process::root().join(&args.out);
    std::fs::create_dir_all(&out)?;
    std::fs::write(out.join("benchmarks.md"), page(&run))?;
    std::fs::write(out.join("benchmarks.json"), serde_json::to_string_pretty(&run)? + "\n")?;
    plot(&run, &out.join("benchmarks.svg")).context("cannot draw the plot")?;
    println!("wrote benchmarks.md, benchmarks.json and benchmarks.svg in {}", args.out.display());
    Ok(())
}

/// Parses and checks a run, and fills in what follows from the measured times.
fn read(text: &str) -> Result<Run> {
    // docs/benchmarks.json may be read again: its derived fields are computed anew, not believed.
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
        let times = || row.peers.values().copied().chain([row.ours_us]).chain(row.copy_us);
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

/// Every peer of any row, in one order for table and plot.
fn peers(run: &Run) -> Vec<&str> {
    let names: BTreeSet<&str> = run.rows.iter().flat_map(|row| row.peers.keys()).map(String::as_str).collect();
    names.into_iter().collect()
}

fn page(run: &Run) -> String {
    let versions: Vec<_> = run.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    let mut text = format!(
        "# Benchmarks\n\n\
         <!-- Written by `cargo xtask bench-report`; edits are lost. -->\n\n\
         Measured on {} on one {} (driver {}): {}.\n\n\
         Ours and the peers ran interleaved in one run, timed by the same method: medians of runs with the L2 \
         cache flushed before each. GB/s counts every byte that must be read or written once. The ratio is the \
         best peer's time over ours: above 1.00, ours is faster. The copy is torch's, of a tensor of half as many bytes.\n\n",
        run.date,
        run.gpu,
        run.driver,
        versions.join(", ")
    );
    let peers = peers(run);
    text += "| work | shape | galatea |";
    for peer in &peers {
        let _ = write!(text, " {peer} |");
    }
    text += " copy | GB/s | ratio to the best |\n|---|---|---:|";
    text += &"---:|".repeat(peers.len() + 3);
    text += "\n";
    for row in &run.rows {
        let _ = write!(text, "| {} | {} | {:.1} µs |", row.work, row.shape, row.ours_us);
        for peer in &peers {
            match row.peers.get(*peer) {
                Some(us) => _ = write!(text, " {us:.1} µs |"),
                None => text += " |",
            }
        }
        let _ = match row.copy_us {
            Some(us) => write!(text, " {us:.1} µs |"),
            None => write!(text, " |"),
        };
        let _ = writeln!(text, " {:.0} | {:.3} |", row.gb_per_s, row.ratio);
    }
    let _ = write!(
        text,
        "\n![Throughput of ours and the peers](benchmarks.svg)\n\n\
         The same figures as data: [benchmarks.json](benchmarks.json). Made by:\n\n\
         ```sh\n{}\ncargo xtask bench-report RESULTS.json\n```\n",
        run.command
    );
    text
}

/// Groups of bars side by side in one band of the plot.
const BAND: usize = 6;
/// The height of a band, and what its width is made of, in pixels.
const BAND_HEIGHT: u32 = 340;
const MARGINS: u32 = 160;
const GROUP_WIDTH: u32 = 190;

/// Grouped bars of GB/s: one group a row, ours first, the ratio above it; a band below the other.
fn plot(run: &Run, path: &Path) -> Result<()> {
    let bands: Vec<&[Row]> = run.rows.chunks(BAND).collect();
    let width = MARGINS + GROUP_WIDTH * run.rows.len().clamp(3, BAND) as u32;
    let area = SVGBackend::new(path, (width, BAND_HEIGHT * bands.len() as u32)).into_drawing_area();
    area.fill(&WHITE)?;
    for (index, (part, rows)) in area.split_evenly((bands.len(), 1)).iter().zip(&bands).enumerate() {
        let caption = if index == 0 { format!("{}, {}: higher is better", run.gpu, run.date) } else { String::new() };
        // Groups are as wide in the last band as in the others.
        let groups = if bands.len() > 1 { BAND } else { rows.len() };
        band(part, rows, groups, &peers(run), &caption)?;
    }
    area.present()?;
    Ok(())
}

fn band(area: &DrawingArea<SVGBackend<'_>, Shift>, rows: &[Row], groups: usize, peers: &[&str], caption: &str) -> Result<()> {
    const INK: RGBColor = RGBColor(60, 60, 60);
    const OURS: RGBColor = RGBColor(38, 105, 173);
    const THEIRS: [RGBColor; 4] = [RGBColor(238, 155, 79), RGBColor(150, 150, 150), RGBColor(109, 170, 122), RGBColor(178, 132, 190)];

    let speed = |row: &Row, us: f64| gb_per_s(row.bytes, us);
    let highest = rows.iter().flat_map(|row| row.peers.values().map(|us| speed(row, *us)).chain([row.gb_per_s]));
    // The room above the highest bar is the legend's.
    let top = highest.fold(0.0, f64::max) * 1.35;
    let mut chart = ChartBuilder::on(area)
        .caption(caption, ("sans-serif", 16, &INK))
        .margin(12)
        .x_label_area_size(44)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..groups as f64, 0.0..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(TRANSPARENT)
        .y_desc("GB/s")
        .y_label_formatter(&|value| format!("{value:.0}"))
        .label_style(("sans-serif", 12, &INK))
        .draw()?;

    let bar = 0.76 / (peers.len() + 1) as f64;
    let left_of = |group: usize, slot: usize| group as f64 + 0.12 + bar * slot as f64;
    let rectangle = |group: usize, slot: usize, height: f64, color: RGBColor| {
        let left = left_of(group, slot);
        Rectangle::new([(left, 0.0), (left + bar * 0.92, height)], color.filled())
    };
    let legend = |color: RGBColor| move |(x, y): (i32, i32)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled());
    let ours = rows.iter().enumerate().map(|(group, row)| rectangle(group, 0, row.gb_per_s, OURS));
    chart.draw_series(ours)?.label("galatea").legend(legend(OURS));
    for (slot, peer) in peers.iter().enumerate() {
        let color = THEIRS[slot % THEIRS.len()];
        let bars = rows.iter().enumerate().filter_map(|(group, row)| {
            let us = row.peers.get(*peer)?;
            Some(rectangle(group, slot + 1, speed(row, *us), color))
        });
        chart.draw_series(bars)?.label(*peer).legend(legend(color));
    }

    let label = |pixels: i32, vertical: VPos| ("sans-serif", pixels).into_font().color(&INK).pos(Pos::new(HPos::Center, vertical));
    chart.draw_series(rows.iter().enumerate().map(|(group, row)| {
        let middle = left_of(group, 0) + bar * 0.46;
        Text::new(format!("{:.2}x", row.ratio), (middle, row.gb_per_s + top * 0.01), label(13, VPos::Bottom))
    }))?;
    for (line, text) in [|row: &Row| row.work.clone(), |row: &Row| row.shape.clone()].into_iter().enumerate() {
        for (group, row) in rows.iter().enumerate() {
            let (x, y) = chart.backend_coord(&(group as f64 + 0.5, 0.0));
            area.draw(&Text::new(text(row), (x, y + 8 + 16 * line as i32), label(13, VPos::Top)))?;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.85))
        .label_font(("sans-serif", 13, &INK))
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = r#"{ "date": "2026-01-31", "gpu": "NVIDIA H200", "driver": "580.1", "command": "cargo bench",
        "versions": { "torch": "2.11.0" },
        "rows": [{ "work": "vector_add f32", "shape": "2^20", "bytes": 12000000, "ours_us": 4.0, "copy_us": 4.5,
                   "peers": { "torch": 6.0, "triton": 5.0 } }] }"#;

    #[test]
    fn speed_and_ratio_follow_from_the_times() {
        let run = read(RUN).unwrap();
        assert_eq!((run.rows[0].gb_per_s, run.rows[0].ratio), (3000.0, 1.25));
        let page = page(&run);
        assert!(page.contains("| vector_add f32 | 2^20 | 4.0 µs | 6.0 µs | 5.0 µs | 4.5 µs | 3000 | 1.250 |"), "{page}");
    }

    #[test]
    fn what_it_writes_it_also_reads() {
        let written = serde_json::to_string(&read(RUN).unwrap()).unwrap();
        assert_eq!(serde_json::to_string(&read(&written).unwrap()).unwrap(), written);
    }

    #[test]
    fn a_run_that_measured_nothing_is_refused() {
        assert!(read(&RUN.replace("4.0", "0.0")).is_err());
        assert!(read(&RUN.replace(r#"{ "torch": 6.0, "triton": 5.0 }"#, "{}")).is_err());
    }
}
