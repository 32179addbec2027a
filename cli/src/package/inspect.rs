//! `galatea inspect`: prints what a package holds.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::of_file;
use super::summary::{Kernel, MachineCode, Step, Summary, Variant};
use super::trust::Trust;
use crate::output::{self, print};

/// Print what a package holds: inputs, outputs, constants, kernels, steps and sizes
#[derive(Args)]
#[command(after_help = "Examples:
  galatea inspect model.gpk
  galatea inspect model.gpk --json | jq .inputs
  galatea inspect downloaded.gpk --untrusted")]
pub(crate) struct Inspect {
    /// Package
    file: PathBuf,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    trust: Trust,
}

impl Inspect {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let text = self.text().map_err(|error| self.trust.shown(error))?;
        print(&text).map(|()| ExitCode::SUCCESS)
    }

    fn text(&self) -> Result<String, String> {
        let package = self.trust.open(&self.file)?;
        let (summary, _) = Summary::of(&package).map_err(|error| of_file(&self.file, &error))?;
        Ok(match self.json {
            true => {
                json_for_terminals(&serde_json::to_string_pretty(&summary).map_err(|error| format!("cannot write JSON: {error}"))?) + "\n"
            }
            false => self.trust.shown(text(&summary)),
        })
    }
}

/// JSON without commands for terminals. JSON itself escapes only some control characters.
fn json_for_terminals(json: &str) -> String {
    let escaped = |c: char| if c.is_control() && c != '\n' { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    json.chars().map(escaped).collect()
}

fn text(summary: &Summary) -> String {
    let Summary { program, package_format, written_by, dims, inputs, outputs, constants, kernels, opaque_ops, steps, entries, .. } =
        summary;
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
    if !opaque_ops.is_empty() {
        text += &output::table(["OPAQUE OP"], opaque_ops.iter().map(|schema| [schema.clone()]), &[]);
        text.push('\n');
    }
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
    let row = |variant: &Variant| {
        let sizes = [variant.shared_bytes.to_string(), variant.ptx_bytes.to_string()];
        let [shared, ptx] = sizes;
        [variant.values.clone(), variant.target.clone(), variant.schedule.text(), shared, ptx]
    };
    let titles = ["VARIANT", "TARGET", "SCHEDULE", "SHARED BYTES", "PTX BYTES"];
    // An untrusted package has none.
    if !kernel.variants.is_empty() {
        text += &output::table(titles, kernel.variants.iter().map(row), &[3, 4]);
    }
    text.push('\n');
    let codes: Vec<[String; 4]> = kernel.variants.iter().flat_map(machine_code).collect();
    if !codes.is_empty() {
        text += &output::table(["MACHINE CODE OF", "SCHEDULE", "ARCHITECTURE", "BYTES"], codes, &[3]);
        text.push('\n');
    }
    if !kernel.tuning.is_empty() {
        let row = |tuned: &super::summary::Tuned| {
            let programs = tuned.programs.clone().unwrap_or_else(|| "any".to_owned());
            let median = tuned.median_us.map_or_else(String::new, |median| format!("{median:.1}"));
            [tuned.device.clone(), programs, tuned.chosen.clone(), median]
        };
        text += &output::table(["TUNED FOR", "PROGRAMS", "CHOSEN", "MEDIAN US"], kernel.tuning.iter().map(row), &[3]);
        text.push('\n');
    }
    text
}

fn machine_code(variant: &Variant) -> impl Iterator<Item = [String; 4]> {
    let row = |code: &MachineCode| [variant.values.clone(), variant.schedule.text(), code.architecture.clone(), code.bytes.to_string()];
    variant.machine_code.iter().map(row)
}

fn configurations((number, step): (usize, &Step)) -> impl Iterator<Item = [String; 3]> {
    step.configurations.iter().map(move |of| [number.to_string(), of.text.clone(), format!("[{}]", of.grid.join(", "))])
}

fn step((number, step): (usize, &Step)) -> [String; 5] {
    let results: Vec<String> = step.results.iter().map(|result| format!("{}: {}", result.name, result.ty)).collect();
    let grid = step.grid.as_ref().map_or_else(|| "-".to_owned(), |grid| format!("[{}]", grid.join(", ")));
    [number.to_string(), step.operation.clone(), grid, results.join(", "), step.recorded.clone()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_has_no_commands_of_terminals() {
        let text = serde_json::to_string("\u{1b}[2J \u{7f}\u{9b} é\n").unwrap();
        let shown = json_for_terminals(&text);
        assert_eq!(shown, "\"\\u001b[2J \\u007f\\u009b é\\n\"");
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), "\u{1b}[2J \u{7f}\u{9b} é\n");
    }
}
