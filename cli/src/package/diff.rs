//! `galatea diff`: what differs between two packages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;
use kernel_package::{Package, PackageError, Plan};
use kernel_runtime::ops::parts::KernelParts;
use kernel_runtime::ops::{self, Tensor};
use similar::TextDiff;

use super::of_file;
use super::summary::{Summary, Tuned, Variant};
use super::trust::Trust;
use crate::output::{print, tell};

/// Print what differs between two packages
#[derive(Args)]
#[command(after_help = "Examples:
  galatea diff before.gpk after.gpk
  galatea diff mine.gpk downloaded.gpk --untrusted

Source locations are not compared. As that of diff, the exit status is 0 if the packages are equal, 1 if they differ, and 2 for an error.")]
pub(crate) struct Diff {
    /// Package
    a: PathBuf,
    /// Package to compare with the first
    b: PathBuf,
    #[command(flatten)]
    trust: Trust,
}

/// The exit status for a package that cannot be read.
const TROUBLE: u8 = 2;

/// The lines of a part of a package.
type Lines = fn(&Summary) -> Vec<String>;

/// A package, and what is compared.
struct Side {
    summary: Summary,
    plan: Plan,
    kernels: Vec<KernelParts>,
}

impl Diff {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        match self.text() {
            Ok(text) if text.is_empty() => Ok(ExitCode::SUCCESS),
            Ok(text) => {
                print(&self.trust.shown(format!("--- {}\n+++ {}\n{text}", self.a.display(), self.b.display())))?;
                Ok(ExitCode::FAILURE)
            }
            Err(error) => {
                tell(&self.trust.shown(format!("error: {error}")));
                Ok(ExitCode::from(TROUBLE))
            }
        }
    }

    fn text(&self) -> Result<String, String> {
        let (a, b) = (self.read(&self.a)?, self.read(&self.b)?);
        let lists: [(&str, Lines); 4] = [
            ("program", |summary| vec![summary.program.clone()]),
            ("dims", |summary| summary.dims.iter().map(|dim| format!("{} in {}..={}", dim.name, dim.low, dim.high)).collect()),
            ("inputs", |summary| summary.inputs.iter().map(|input| format!("{}: {}", input.name, input.ty)).collect()),
            ("outputs", |summary| summary.outputs.iter().map(|output| format!("{}: {}", output.name, output.ty)).collect()),
        ];
        let mut text = String::new();
        for (title, list) in lists {
            text += &unified(title, &list(&a.summary), &list(&b.summary));
        }
        text += &constants(&a.plan, &b.plan).map_err(|error| error.to_string())?;
        text += &unified("steps", &steps(&a.summary), &steps(&b.summary));
        text += &kernels(&a, &b);
        Ok(text)
    }

    fn read(&self, path: &Path) -> Result<Side, String> {
        let read = |package: Package| -> Result<Side, PackageError> {
            let (summary, plan) = Summary::of(&package)?;
            Ok(Side { summary, plan, kernels: package.kernels()? })
        };
        read(self.trust.open(path)?).map_err(|error| of_file(path, &error))
    }
}

/// A title and a unified diff of two lists of lines; nothing if they are equal.
fn unified(title: &str, a: &[String], b: &[String]) -> String {
    if a == b {
        return String::new();
    }
    let [a, b] = [a, b].map(|lines| lines.iter().flat_map(|line| [line, "\n"]).collect::<String>());
    let diff = TextDiff::from_lines(&a, &b);
    format!("{title}:\n{}", diff.unified_diff().context_radius(3))
}

/// The steps without the lines that recorded them.
fn steps(summary: &Summary) -> Vec<String> {
    let line = |step: &super::summary::Step| {
        let results: Vec<String> = step.results.iter().map(|result| format!("{}: {}", result.name, result.ty)).collect();
        let grid = step.grid.as_ref().map_or_else(String::new, |grid| format!(" [{}]", grid.join(", ")));
        format!("{} = {}{grid}", results.join(", "), step.operation)
    };
    let configuration = |of: &super::summary::Configuration| format!("  {} [{}]", of.text, of.grid.join(", "));
    let lines = |step| std::iter::once(line(step)).chain(step.configurations.iter().map(configuration));
    summary.steps.iter().flat_map(lines).collect()
}

/// The names, types and elements of constants.
fn constants(a: &Plan, b: &Plan) -> kernel_runtime::Result<String> {
    let named = |plan: &Plan| -> BTreeMap<String, Tensor> {
        plan.constant_names().into_iter().zip(plan.constants.iter().map(|constant| constant.tensor.clone())).collect()
    };
    let ty = |plan: &Plan, name: &str, tensor: &Tensor| {
        let constant = plan.constants.iter().find(|constant| constant.tensor.is_same(tensor));
        format!("{name}: {}", constant.map_or_else(String::new, |constant| plan.ty(constant.value).to_string()))
    };
    let (of_a, of_b) = (named(a), named(b));
    let lines = |plan: &Plan, of: &BTreeMap<String, Tensor>| of.iter().map(|(name, tensor)| ty(plan, name, tensor)).collect::<Vec<_>>();
    let mut text = unified("constants", &lines(a, &of_a), &lines(b, &of_b));
    for (name, tensor) in &of_a {
        let Some(other) = of_b.get(name).filter(|other| other.dtype() == tensor.dtype() && other.dims() == tensor.dims()) else { continue };
        let comparison = ops::compare(tensor, other)?;
        if !comparison.bit_equal {
            let lines = comparison.to_string();
            text += &format!("constant {name}: {}\n", lines.replace('\n', "\n  "));
        }
    }
    Ok(text)
}

/// The kernels of both, by their names. Kernels of one name are numbered.
fn kernels(a: &Side, b: &Side) -> String {
    let named = |side: &Side| -> BTreeMap<(String, usize), usize> {
        let mut of = BTreeMap::new();
        for (at, kernel) in side.kernels.iter().enumerate() {
            let number = side.kernels[..at].iter().filter(|other| other.name == kernel.name).count();
            of.insert((kernel.name.clone(), number), at);
        }
        of
    };
    let (of_a, of_b) = (named(a), named(b));
    let lines = |of: &BTreeMap<(String, usize), usize>| of.keys().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let mut text = unified("kernels", &lines(&of_a), &lines(&of_b));
    for (key, at) in &of_a {
        let Some(to) = of_b.get(key) else { continue };
        let (name, parts) = (&key.0, [&a.kernels[*at], &b.kernels[*to]]);
        let rows = [&a.summary.kernels[*at], &b.summary.kernels[*to]];
        let heads = rows.map(|row| {
            let params = row.params.iter().map(|param| format!("{}: {}", param.name, param.kind));
            params.chain(row.facts.iter().map(|fact| format!("fact {fact}"))).chain([row.schedule.text()]).collect::<Vec<_>>()
        });
        text += &unified(&format!("kernel {name}, parameters, facts and schedule"), &heads[0], &heads[1]);
        let ir = parts.map(|parts| parts.ir_without_locations().lines().map(str::to_owned).collect::<Vec<_>>());
        text += &unified(&format!("kernel {name}, IR"), &ir[0], &ir[1]);
        let tuning = rows.map(|row| row.tuning.iter().map(tuned).collect::<Vec<_>>());
        text += &unified(&format!("kernel {name}, results of tuning"), &tuning[0], &tuning[1]);
        let variants = rows.map(|row| row.variants.iter().map(variant).collect::<Vec<_>>());
        text += &unified(&format!("kernel {name}, variants"), &variants[0], &variants[1]);
        for (number, line) in variants[0].iter().enumerate() {
            let Some(other) = variants[1].iter().position(|other| other == line) else { continue };
            if parts[0].variants[number].ptx_without_locations() != parts[1].variants[other].ptx_without_locations() {
                text += &format!("kernel {name}, variant {line}: its PTX differs\n");
            }
            let codes = [&parts[0].variants[number], &parts[1].variants[other]].map(|variant| &variant.machine_code);
            let named = codes.map(|codes| codes.iter().map(|code| code.architecture.clone()).collect::<Vec<_>>());
            text += &unified(&format!("kernel {name}, variant {line}, machine code"), &named[0], &named[1]);
            for code in codes[0] {
                if codes[1].iter().any(|other| other.architecture == code.architecture && other.bytes != code.bytes) {
                    text += &format!("kernel {name}, variant {line}: its machine code for {} differs\n", code.architecture);
                }
            }
        }
    }
    text
}

/// A result of tuning without its time, which differs from one tuning to the next.
fn tuned(tuned: &Tuned) -> String {
    let programs = tuned.programs.as_deref().unwrap_or("any number of programs");
    format!("{} with driver {}, {programs}, key {:?}: {}", tuned.device, tuned.driver, tuned.key, tuned.chosen)
}

/// A variant without the size of its PTX, to which source locations belong.
fn variant(variant: &Variant) -> String {
    let Variant { values, target, schedule, shared_bytes, .. } = variant;
    let values = if values.is_empty() { String::new() } else { format!("{values}, ") };
    format!("{values}{target}, {}, {shared_bytes} bytes of shared memory", schedule.text())
}
