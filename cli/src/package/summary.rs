//! What a package holds, as data that `galatea inspect` prints and `galatea diff` compares.

use kernel_lang::Schedule;
use kernel_package::{NodeOp, Package, PackageError, Plan};
use kernel_runtime::cache::Record;
use kernel_runtime::ops::parts::{FactParts, KernelParts, KnownParts, KnownRecords, ParamKind, VariantParts};
use kernel_runtime::ops::recorder::{RecordedArg, RecordedTuning, Value};
use kernel_runtime::{Device, Dim};
use serde::Serialize;

/// The contents of a package. `galatea inspect --json` writes it: docs/packages.md documents the schema.
#[derive(Serialize)]
pub(super) struct Summary {
    pub(super) format: &'static str,
    pub(super) program: String,
    pub(super) package_format: u64,
    pub(super) written_by: String,
    pub(super) dims: Vec<DimRow>,
    pub(super) inputs: Vec<Named>,
    pub(super) outputs: Vec<Named>,
    pub(super) constants: Vec<Constant>,
    pub(super) kernels: Vec<Kernel>,
    /// The schemas of the opaque ops that a process must have to run the program.
    pub(super) opaque_ops: Vec<String>,
    pub(super) steps: Vec<Step>,
    pub(super) entries: Vec<Entry>,
    pub(super) file_bytes: usize,
}

#[derive(Serialize)]
pub(super) struct DimRow {
    pub(super) name: String,
    pub(super) low: i64,
    pub(super) high: i64,
    pub(super) declared: String,
}

/// A value with a name: an input, or an output.
#[derive(Serialize)]
pub(super) struct Named {
    pub(super) name: String,
    #[serde(rename = "type")]
    pub(super) ty: String,
}

#[derive(Serialize)]
pub(super) struct Constant {
    pub(super) name: String,
    pub(super) dtype: String,
    pub(super) shape: Vec<usize>,
    pub(super) bytes: usize,
}

#[derive(Serialize)]
pub(super) struct Kernel {
    pub(super) name: String,
    pub(super) params: Vec<Param>,
    pub(super) facts: Vec<String>,
    pub(super) schedule: ScheduleRow,
    pub(super) variants: Vec<Variant>,
    pub(super) tuning: Vec<Tuned>,
}

#[derive(Serialize)]
pub(super) struct Param {
    pub(super) name: String,
    pub(super) kind: String,
}

#[derive(Serialize)]
pub(super) struct Variant {
    /// The types, constants and facts.
    pub(super) values: String,
    pub(super) target: String,
    pub(super) schedule: ScheduleRow,
    pub(super) shared_bytes: u32,
    pub(super) ptx_bytes: usize,
    pub(super) machine_code: Vec<MachineCode>,
}

/// Machine code of a variant.
#[derive(Serialize)]
pub(super) struct MachineCode {
    pub(super) architecture: String,
    pub(super) bytes: usize,
}

/// A result of tuning.
#[derive(Serialize)]
pub(super) struct Tuned {
    pub(super) device: String,
    pub(super) driver: String,
    /// The class of the number of programs, such as `a few waves`.
    pub(super) programs: Option<String>,
    /// The values of the tuning key.
    pub(super) key: Vec<u64>,
    /// The configuration.
    pub(super) chosen: String,
    pub(super) median_us: Option<f64>,
}

#[derive(Clone, PartialEq, Serialize)]
pub(super) struct ScheduleRow {
    pub(super) num_warps: u32,
    pub(super) num_ctas: u32,
    pub(super) num_stages: u32,
    pub(super) maxnreg: Option<u32>,
}

#[derive(Serialize)]
pub(super) struct Step {
    pub(super) operation: String,
    pub(super) grid: Option<[String; 3]>,
    pub(super) configurations: Vec<Configuration>,
    pub(super) results: Vec<Named>,
    pub(super) recorded: String,
}

/// A configuration of a kernel, of which each run takes one.
#[derive(Serialize)]
pub(super) struct Configuration {
    pub(super) text: String,
    pub(super) grid: [String; 3],
}

#[derive(Serialize)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

impl Summary {
    /// The contents of a package, and its plan on the CPU.
    pub(super) fn of(package: &Package) -> Result<(Summary, Plan), PackageError> {
        let plan = package.plan(&Device::cpu())?;
        let named = |value: Value| Named { name: value_name(&plan, value), ty: plan.ty(value).to_string() };
        let dims = plan.dims();
        let dims = dims.iter().filter_map(Dim::declared).map(|(name, range, site)| DimRow {
            name,
            low: *range.start(),
            high: *range.end(),
            declared: site.to_string(),
        });
        let summary = Summary {
            format: "galatea inspect 1",
            program: plan.name.clone(),
            package_format: package.format(),
            written_by: package.written_by().to_owned(),
            dims: dims.collect(),
            inputs: plan.inputs.iter().map(|input| Named { name: input.name.clone(), ty: input.ty.to_string() }).collect(),
            outputs: plan.outputs.iter().map(|value| named(*value)).collect(),
            constants: constants(&plan),
            kernels: package.kernels()?.iter().map(kernel).collect::<Result<_, _>>()?,
            opaque_ops: plan.opaque_ops().into_iter().map(str::to_owned).collect(),
            steps: plan
                .nodes
                .iter()
                .map(|node| Step {
                    operation: operation(&plan, &node.op),
                    grid: match &node.op {
                        NodeOp::Launch(launch) => Some(launch.grid().each_ref().map(Dim::to_string)),
                        NodeOp::Alloc { .. } | NodeOp::View { .. } | NodeOp::Extern(_) => None,
                    },
                    configurations: configurations(&node.op),
                    results: node.results.iter().map(|value| named(*value)).collect(),
                    recorded: node.location.to_string(),
                })
                .collect(),
            entries: entries(package)?,
            file_bytes: package.file_bytes(),
        };
        Ok((summary, plan))
    }
}

fn constants(plan: &Plan) -> Vec<Constant> {
    let constant = |(name, constant): (String, &kernel_package::Constant)| {
        let dtype = constant.tensor.dtype();
        let shape: Vec<usize> = constant
            .tensor
            .dims()
            .iter()
            .map(|extent| extent.known().and_then(|extent| usize::try_from(extent).ok()).unwrap_or(0))
            .collect();
        let bytes = shape.iter().product::<usize>() * dtype.bytes();
        Constant { name, dtype: dtype.to_string(), shape, bytes }
    };
    plan.constant_names().into_iter().zip(&plan.constants).map(constant).collect()
}

/// The entries in the order of the file.
fn entries(package: &Package) -> Result<Vec<Entry>, PackageError> {
    let mut entries = Vec::new();
    for (name, bytes) in package.entries() {
        entries.push(Entry { name: name.to_owned(), offset: package.offset(name)?, bytes });
    }
    entries.sort_by_key(|entry| entry.offset);
    Ok(entries)
}

fn kernel(parts: &KernelParts) -> Result<Kernel, PackageError> {
    let variant = |variant: &VariantParts| {
        Ok(Variant {
            values: parts.parameters(&variant.key)?,
            target: variant.target.clone(),
            schedule: variant.schedule.into(),
            shared_bytes: variant.shared_bytes,
            ptx_bytes: variant.ptx.len(),
            machine_code: variant
                .machine_code
                .iter()
                .map(|code| MachineCode { architecture: code.architecture.clone(), bytes: code.bytes.len() })
                .collect(),
        })
    };
    Ok(Kernel {
        name: parts.name.clone(),
        params: parts.params.iter().map(|(name, kind)| Param { name: name.clone(), kind: kind_name(*kind) }).collect(),
        facts: parts.facts.iter().map(fact).collect(),
        schedule: parts.schedule.into(),
        variants: parts.variants.iter().map(variant).collect::<Result<_, kernel_runtime::Error>>()?,
        tuning: tuning(parts),
    })
}

/// The results of tuning. A launch ignores a damaged text, and `galatea verify` reports it.
fn tuning(parts: &KernelParts) -> Vec<Tuned> {
    let records = parts.built.as_ref().filter(|built| !built.records.is_empty()).map(|built| KnownRecords::parse(&built.records));
    let records = records.and_then(Result::ok).unwrap_or_default();
    let tuned = |record: &Record| Tuned {
        device: record.of.device.clone(),
        driver: record.of.driver.clone(),
        programs: record.of.programs.map(|programs| programs.to_string()),
        key: record.of.values.clone(),
        chosen: record.chosen().config.clone(),
        median_us: record.chosen().timed.map(|(median_us, _)| median_us),
    };
    records.all().iter().map(tuned).collect()
}

/// The kind of a parameter, as a kernel's signature writes it.
fn kind_name(kind: ParamKind) -> String {
    match kind {
        ParamKind::Pointer => "Ptr".to_owned(),
        ParamKind::PointerMut => "PtrMut".to_owned(),
        ParamKind::View(rank) => format!("View<{rank}>"),
        ParamKind::ViewMut(rank) => format!("ViewMut<{rank}>"),
        ParamKind::Scalar => "scalar".to_owned(),
    }
}

fn fact(fact: &FactParts) -> String {
    match fact.known {
        KnownParts::Is(bits) => format!("{} = {bits}", fact.param),
        KnownParts::MultipleOf(of) => format!("{} % {of} = 0", fact.param),
    }
}

impl From<Schedule> for ScheduleRow {
    fn from(Schedule { num_warps, num_ctas, num_stages, maxnreg }: Schedule) -> ScheduleRow {
        ScheduleRow { num_warps, num_ctas, num_stages, maxnreg }
    }
}

impl ScheduleRow {
    /// The warps, and the other parts that are not the default.
    pub(super) fn text(&self) -> String {
        let mut text = format!("num_warps = {}", self.num_warps);
        for (name, value, usual) in
            [("num_ctas", self.num_ctas, Schedule::DEFAULT.num_ctas), ("num_stages", self.num_stages, Schedule::DEFAULT.num_stages)]
        {
            if value != usual {
                text += &format!(", {name} = {value}");
            }
        }
        if let Some(maxnreg) = self.maxnreg {
            text += &format!(", maxnreg = {maxnreg}");
        }
        text
    }
}

/// The name of a value: that of an input or a constant, or its number.
fn value_name(plan: &Plan, value: Value) -> String {
    let input = plan.inputs.get(value.0 as usize).map(|input| input.name.clone());
    let names = || plan.constants.iter().zip(plan.constant_names());
    let constant = || names().find(|(constant, _)| constant.value == value).map(|(_, name)| name);
    input.or_else(constant).map_or_else(|| format!("%{}", value.0), |name| format!("%{name}"))
}

fn configurations(op: &NodeOp) -> Vec<Configuration> {
    let NodeOp::Launch(launch) = op else { return Vec::new() };
    let configs = launch.tuning().map_or(&[][..], RecordedTuning::configs);
    configs.iter().map(|config| Configuration { text: config.text.clone(), grid: config.grid.each_ref().map(Dim::to_string) }).collect()
}

fn operation(plan: &Plan, op: &NodeOp) -> String {
    match op {
        NodeOp::Alloc { zeroed: false } => "alloc".to_owned(),
        NodeOp::Alloc { zeroed: true } => "alloc zeros".to_owned(),
        NodeOp::View { of, offset } => format!("view {} from {offset}", value_name(plan, *of)),
        NodeOp::Launch(launch) => {
            let argument = |(name, arg): (&str, &RecordedArg)| match arg {
                RecordedArg::Tensor { value, .. } => format!("{name} = {}", value_name(plan, *value)),
                RecordedArg::Word { text, .. } => format!("{name} = {text}"),
                RecordedArg::Dim { dim, .. } => format!("{name} = {dim}"),
            };
            let arguments = launch.args().map(argument).collect::<Vec<_>>().join(", ");
            let generics = match launch.parameters() {
                generics if generics.is_empty() => generics,
                generics => format!("<{generics}>"),
            };
            format!("launch {}{generics}({arguments})", launch.kernel())
        }
        NodeOp::Extern(call) => format!("extern {}", call.text(&|value| value_name(plan, value))),
    }
}
