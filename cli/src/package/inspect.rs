//! `galatea inspect`: prints what a package holds.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::summary::{Kernel, Step, Summary};
use super::{of_file, open};
use crate::output::{self, print};

/// Print what a package holds: inputs, outputs, constants, kernels, steps and sizes
#[derive(Args)]
#[command(after_help = "Examples:
  galatea inspect model.gpk
  galatea inspect model.gpk --json | jq .inputs")]
pub(crate) struct Inspect {
    /// Package
    file: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

impl Inspect {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let package = open(&self.file)?;
        let (summary, _) = Summary::of(&package).map_err(|error| of_file(&self.file, &error))?;
        let text = match self.json {
            true => serde_json::to_string_pretty(&summary).map_err(|error| format!("cannot write JSON: {error}"))? + "\n",
            false => text(&summary),
        };
        print(&text).map(|()| ExitCode::SUCCESS)
    }
}

fn text(summary: &Summary) -> String {
    let Summary { program, package_format, written_by, dims, inputs, outputs, constants, kernels, steps, entries, .. } = summary;
    let mut text = format!("program `{program}`, package format {package_format}, written by {written_by}\n\n");
    if !dims.is_empty() {
        let row = |dim: &super::summary::DimRow| [dim.name.clone(), format!("{}..={}", dim.low, dim.high), dim.declared.clone()];
        text += &output::table(["DIM", "RANGE", "DECLARED"], dims.iter().map(row), &[]);
        text.push('\n');
    }
    text += &output::table(["INPUT", "TYPE"], inputs.iter().map(|input| [input.name.clone(), input.ty.clone()]), &[]);
    text.push('\n');
    let row = |(number, output): (usize, &super::summary::Named)| [number.to_string(), output.name.clone(), output.ty.clone()];
    text += &output::table(["OUTPUT", "VALUE", "TYPE"], outputs.iter().enumerate().map(row), &[]);
    text.push('\n');
    if !constants.is_empty() {
        let row = |constant: &super::summary::Constant| {
            [constant.name.clone(), constant.dtype.clone(), format!("{:?}", constant.shape), constant.bytes.to_string()]
        };
        text += &output::table(["CONSTANT", "DTYPE", "SHAPE", "BYTES"], constants.iter().map(row), &[3]);
        text.push('\n');
    }
    kernels.iter().for_each(|kernel| text += &kernel_text(kernel));
    text += &output::table(["STEP", "OPERATION", "GRID", "RESULT", "RECORDED IN"], steps.iter().enumerate().map(step), &[0]);
    text.push('\n');
    let configurations: Vec<[String; 3]> = steps.iter().enumerate().flat_map(configurations).collect();
    if !configurations.is_empty() {
        text += &output::table(["STEP", "CONFIGURATION", "GRID"], configurations, &[0]);
        text.push('\n');
    }
    let row = |entry: &super::summary::Entry| [entry.name.clone(), entry.offset.to_string(), entry.bytes.to_string()];
    text += &output::table(["ENTRY", "OFFSET", "BYTES"], entries.iter().map(row), &[1, 2]);
    text += &format!("{} in {} bytes\n", count(entries.len(), "entry", "entries"), summary.file_bytes);
    text
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

fn kernel_text(kernel: &Kernel) -> String {
    let params: Vec<String> = kernel.params.iter().map(|param| format!("{}: {}", param.name, param.kind)).collect();
    let mut text = format!("kernel {}({}), {}\n", kernel.name, params.join(", "), kernel.schedule.text());
    if !kernel.facts.is_empty() {
        text += &format!("facts: {}\n", kernel.facts.join(", "));
    }
    let row = |variant: &super::summary::Variant| {
        let sizes = [variant.shared_bytes.to_string(), variant.ptx_bytes.to_string()];
        let [shared, ptx] = sizes;
        [variant.values.clone(), variant.target.clone(), variant.schedule.text(), shared, ptx]
    };
    let titles = ["VARIANT", "TARGET", "SCHEDULE", "SHARED BYTES", "PTX BYTES"];
    text += &output::table(titles, kernel.variants.iter().map(row), &[3, 4]);
    text.push('\n');
    text
}

fn configurations((number, step): (usize, &Step)) -> impl Iterator<Item = [String; 3]> {
    step.configurations.iter().map(move |of| [number.to_string(), of.text.clone(), format!("[{}]", of.grid.join(", "))])
}

fn step((number, step): (usize, &Step)) -> [String; 5] {
    let results: Vec<String> = step.results.iter().map(|result| format!("{}: {}", result.name, result.ty)).collect();
    let grid = step.grid.as_ref().map_or_else(|| "-".to_owned(), |grid| format!("[{}]", grid.join(", ")));
    [number.to_string(), step.operation.clone(), grid, results.join(", "), step.recorded.clone()]
}
