//! The report of `galatea variants` and `cargo galatea variants`: the values that kernels were compiled for, and the resources of each
//! variant.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::{Args, ValueEnum};
use kernel_lang::Schedule;
use kernel_runtime::assembler::Usage;
use serde_json::{Value, json};

use crate::{output, ptxas};

/// How variants are printed
#[derive(Args)]
pub(crate) struct Report {
    /// Sort by this column, numbers in descending order
    #[arg(long, value_enum, value_name = "COLUMN", default_value_t = Sort::Kernel)]
    sort: Sort,
    /// Print as JSON
    #[arg(long)]
    json: bool,
    /// Count registers and spills with this ptxas [default: `GALATEA_PTXAS`, else `ptxas` in `PATH`]
    #[arg(long, value_name = "PATH")]
    ptxas: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Sort {
    Kernel,
    Registers,
    Shared,
    Spills,
    Ptx,
    Time,
}

/// A line of `variants.jsonl`, which the macros write to the folder `GALATEA_PTX_DIR`.
struct Variant {
    package: Option<String>,
    kernel: String,
    file: String,
    values: BTreeMap<String, String>,
    /// The parts of the schedule that are not the default, such as `num_warps`.
    schedule: Vec<(&'static str, u64)>,
    target: Option<String>,
    outcome: Outcome,
}

enum Outcome {
    Compiled { ptx: String, shared_bytes: u64, compile_us: u64, usage: Option<Result<Usage, String>> },
    Pruned(String),
}

/// The default schedule. The number of warps is always shown.
const USUAL: [(&str, Option<u64>); 4] = [
    ("num_warps", None),
    ("num_ctas", Some(Schedule::DEFAULT.num_ctas as u64)),
    ("num_stages", Some(Schedule::DEFAULT.num_stages as u64)),
    ("maxnreg", None),
];

/// Reports the variants in these folders and `variants.jsonl` files. `is_wanted` selects them by package and crate.
pub(crate) fn report(paths: &[PathBuf], is_wanted: &dyn Fn(&str, &str) -> bool, report: &Report) -> Result<String, String> {
    let mut variants: Vec<Variant> = Vec::new();
    let mut seen: Vec<Value> = Vec::new();
    for path in paths {
        let file = if path.is_dir() { path.join("variants.jsonl") } else { path.clone() };
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(error) => {
                return Err(format!(
                    "cannot read `{}`: {error}\nhelp: a build with `GALATEA_PTX_DIR={}` writes it, if a kernel is compiled anew",
                    file.display(),
                    path.display()
                ));
            }
        };
        for (number, line) in (1..).zip(text.lines()) {
            let wrong = || format!("{}: line {number} tells of no variant", file.display());
            let mut value: Value = serde_json::from_str(line).map_err(|_| wrong())?;
            let variant = read(&value).ok_or_else(wrong)?;
            // A library is compiled once for itself and once for its tests, so skip equal variants.
            value["compile_us"] = Value::Null;
            let owner = ["package", "crate"].map(|name| value[name].as_str().unwrap_or_default());
            if is_wanted(owner[0], owner[1]) && !seen.contains(&value) {
                seen.push(value);
                variants.push(variant);
            }
        }
    }
    let ptxas = ptxas::find(report.ptxas.as_deref())?;
    if let Some(ptxas) = &ptxas {
        assemble(ptxas, &mut variants);
    }
    variants.sort_by(|a, b| b.amount(report.sort).cmp(&a.amount(report.sort)).then_with(|| a.name().cmp(&b.name())));
    Ok(if report.json { in_json(&variants) } else { table(&variants, ptxas.is_some()) })
}

fn read(value: &Value) -> Option<Variant> {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    let mut schedule = Vec::new();
    for (name, usual) in USUAL {
        let part = &value[name];
        schedule.extend(part.as_u64().filter(|part| Some(*part) != usual).map(|part| (name, part)));
    }
    let values = value["values"].as_object()?.iter().map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
    let outcome = match text("pruned") {
        Some(note) => Outcome::Pruned(note),
        None => {
            let [shared_bytes, compile_us] = ["shared_bytes", "compile_us"].map(|name| value[name].as_u64());
            Outcome::Compiled { ptx: text("ptx")?, shared_bytes: shared_bytes?, compile_us: compile_us?, usage: None }
        }
    };
    Some(Variant {
        package: text("package"),
        kernel: text("kernel")?,
        file: text("file")?,
        values: values.collect::<Option<_>>()?,
        schedule,
        target: text("target"),
        outcome,
    })
}

impl Variant {
    /// The sort key of the list.
    fn name(&self) -> [String; 5] {
        // Pad numbers to the same length, so that they sort by value.
        let values = self.values.values().map(|value| format!("{value:>20}")).collect();
        let target = self.target.clone().unwrap_or_default();
        [self.file.clone(), self.kernel.clone(), values, format!("{:?}", self.schedule), target]
    }

    /// Formats the values, types first: `T = f32, BLOCK_SIZE = 1024`
    fn values(&self) -> String {
        let is_number = |value: &str| value.parse::<i128>().is_ok();
        let mut values: Vec<_> = self.values.iter().collect();
        values.sort_by_key(|(_, value)| is_number(value));
        values.into_iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
    }

    fn schedule(&self) -> String {
        self.schedule.iter().map(|(name, value)| format!("{name} = {value}")).collect::<Vec<_>>().join(", ")
    }

    fn usage(&self) -> Option<&Usage> {
        match &self.outcome {
            Outcome::Compiled { usage: Some(Ok(usage)), .. } => Some(usage),
            _ => None,
        }
    }

    fn amount(&self, sort: Sort) -> u64 {
        let Outcome::Compiled { ptx, shared_bytes, compile_us, .. } = &self.outcome else { return 0 };
        match sort {
            Sort::Kernel => 0,
            Sort::Registers => self.usage().map_or(0, |usage| usage.registers.into()),
            Sort::Spills => self.usage().map_or(0, |usage| usage.spill_bytes.into()),
            Sort::Shared => *shared_bytes,
            Sort::Ptx => ptx.len() as u64,
            Sort::Time => *compile_us,
        }
    }
}

/// Assembles all variants on all cores.
fn assemble(ptxas: &Path, variants: &mut [Variant]) {
    let (next, count) = (AtomicUsize::new(0), variants.len());
    let work = Mutex::new(variants);
    let take = || {
        let index = next.fetch_add(1, Ordering::Relaxed);
        let work = work.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        work.get(index).map(|variant| match (&variant.outcome, &variant.target) {
            (Outcome::Compiled { ptx, .. }, Some(target)) => (index, Some((ptx.clone(), target.clone()))),
            _ => (index, None),
        })
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(count);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((index, job)) = take() {
                    let Some((ptx, target)) = job else { continue };
                    let found = ptxas::usage(ptxas, &ptx, &target);
                    if let Outcome::Compiled { usage, .. } =
                        &mut work.lock().unwrap_or_else(std::sync::PoisonError::into_inner)[index].outcome
                    {
                        *usage = Some(found);
                    }
                }
            });
        }
    });
}

fn table(variants: &[Variant], is_assembled: bool) -> String {
    if variants.is_empty() {
        return "no kernel is compiled there for values that are known\n".to_owned();
    }
    let titles = ["KERNEL", "VALUES", "SCHEDULE", "TARGET", "REGISTERS", "SPILLS", "SHARED", "PTX", "COMPILED IN"];
    let (mut rows, mut notes) = (Vec::new(), Vec::new());
    for variant in variants {
        let target = variant.target.clone().unwrap_or_else(|| "any".to_owned());
        let what = [variant.kernel.clone(), variant.values(), variant.schedule(), target];
        let numbers = match &variant.outcome {
            Outcome::Pruned(note) => {
                let named: Vec<&str> = what.iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
                notes.push(format!("{}: {note}", named.join(", ")));
                continue;
            }
            Outcome::Compiled { ptx, shared_bytes, compile_us, usage } => {
                let (registers, spills) = match usage {
                    Some(Ok(usage)) => (usage.registers.to_string(), format!("{} B", usage.spill_bytes)),
                    Some(Err(_)) => ("refused".to_owned(), String::new()),
                    None => ("-".to_owned(), "-".to_owned()),
                };
                if let Some(Err(complaint)) = usage {
                    notes.push(format!("{}, {}: {complaint}", variant.kernel, variant.values()));
                }
                let time = format!("{:.1} ms", *compile_us as f64 / 1e3);
                [registers, spills, format!("{shared_bytes} B"), format!("{} B", ptx.len()), time]
            }
        };
        let [kernel, values, schedule, target] = what;
        let [registers, spills, shared, ptx, time] = numbers;
        rows.push([kernel, values, schedule, target, registers, spills, shared, ptx, time]);
    }
    let compiled = rows.len();
    let mut text = output::table(titles, rows, &[4, 5, 6, 7, 8]);
    text += &format!("{compiled} variant{}, {} left out\n", if compiled == 1 { "" } else { "s" }, variants.len() - compiled);
    for note in notes {
        text += &format!("note: {note}\n");
    }
    if !is_assembled && compiled > 0 {
        text += "help: registers and spills are what NVIDIA's assembler says: `--ptxas PATH`\n";
    }
    text
}

fn in_json(variants: &[Variant]) -> String {
    let list = variants.iter().map(|variant| {
        let schedule: BTreeMap<_, _> = variant.schedule.iter().copied().collect();
        let mut value = json!({
            "package": variant.package, "kernel": variant.kernel, "file": variant.file, "values": variant.values, "schedule": schedule, "target": variant.target,
        });
        match &variant.outcome {
            Outcome::Pruned(note) => value["pruned"] = note.as_str().into(),
            Outcome::Compiled { ptx, shared_bytes, compile_us, usage } => {
                value["shared_bytes"] = (*shared_bytes).into();
                value["ptx_bytes"] = ptx.len().into();
                value["compile_us"] = (*compile_us).into();
                match usage {
                    Some(Ok(usage)) => {
                        value["registers"] = usage.registers.into();
                        value["spill_bytes"] = usage.spill_bytes.into();
                        value["local_bytes"] = usage.local_bytes.into();
                    }
                    Some(Err(complaint)) => value["refused"] = complaint.as_str().into(),
                    None => {}
                }
            }
        }
        value
    });
    format!("{:#}\n", Value::Array(list.collect()))
}
