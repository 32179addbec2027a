//! The report of `galatea explain`, as data. [`super::text`] prints it, and `--json` writes it.

use kernel_lang::explain::{self, Explained, Limit};
use kernel_lang::ir::Function;
use serde::Serialize;

use super::card::Card;
use super::estimate::Times;
use super::occupancy::{Occupancy, most_registers};
use super::products::{self, Product, Roles};
use super::request::Request;
use super::simulate::{Run, Traffic};
use kernel_lang::occupancy::Cta;
use kernel_runtime::assembler::Usage;

/// Requests of wide accesses touch at most one sector more than they must. If they touch so many times as many, they leave gaps.
const GAPS: f64 = 1.5;

/// The report. docs/explain.md documents it, and other programs read it. A change that breaks readers needs another `format`.
#[derive(Serialize)]
pub(super) struct Report {
    pub(super) format: &'static str,
    pub(super) kernel: String,
    pub(super) gpu: &'static str,
    pub(super) target: String,
    pub(super) programs: u64,
    pub(super) programs_simulated: u64,
    pub(super) accesses: Vec<Row>,
    pub(super) resources: Resources,
    pub(super) traffic: Bytes,
    pub(super) times: Times,
    pub(super) products: Vec<Product>,
    /// `null` for a kernel without products.
    pub(super) roles: Option<Roles>,
}

/// An access of the source, in a whole launch.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: u32,
    pub(super) builtin: &'static str,
    pub(super) tensors: Vec<String>,
    pub(super) dtype: String,
    pub(super) tile: Vec<usize>,
    pub(super) asked_bytes: f64,
    pub(super) requests: f64,
    pub(super) sectors_per_request: f64,
    pub(super) least_sectors_per_request: f64,
    /// The width of one thread's access that moves the most bytes; 0 if the access is not executed.
    pub(super) width: u32,
    /// The part of the bytes that move in narrower accesses.
    pub(super) narrower: f64,
    /// The width of the widest instruction in the code.
    pub(super) widest: u32,
    pub(super) limits: Vec<Why>,
    pub(super) hint: &'static str,
    pub(super) hint_reason: &'static str,
}

/// Why an access is not wider, and what the user can do.
#[derive(Serialize)]
pub(super) struct Why {
    pub(super) reason: String,
    pub(super) help: Option<String>,
}

/// What a CTA takes, and how many a multiprocessor holds.
#[derive(Serialize)]
pub(super) struct Resources {
    pub(super) ctas: u64,
    pub(super) warps_per_cta: u32,
    pub(super) registers: Option<u32>,
    pub(super) spill_bytes: Option<u32>,
    pub(super) shared_bytes: u32,
    pub(super) ctas_per_multiprocessor: u32,
    pub(super) warps_per_multiprocessor: u32,
    pub(super) limited_by: Vec<&'static str>,
    /// The most registers of a thread with which a multiprocessor holds as many CTAs.
    pub(super) most_registers: u32,
}

/// The bytes that a launch moves.
#[derive(Serialize)]
pub(super) struct Bytes {
    pub(super) least_bytes: f64,
    pub(super) memory_bytes: f64,
    pub(super) l2_bytes: f64,
    pub(super) l1_lines: f64,
    pub(super) instructions: f64,
    pub(super) bank_conflicts: f64,
}

/// What a CTA of the kernel takes.
pub(super) fn cta(request: &Request, run: &Run) -> Cta {
    Cta { warps: request.options.schedule.num_warps, shared_bytes: run.shared_bytes }
}

/// Puts the parts together.
pub(super) fn of(explained: &Explained, request: &Request, run: &Run, usage: Option<&Usage>, card: &Card, func: &Function) -> Report {
    let schedule = request.options.schedule;
    let (products, roles) = products::of(explained, func, request, run, card);
    let (cta, ctas) = (cta(request, run), run.programs * u64::from(schedule.num_ctas));
    let occupancy = Occupancy::of(card.multiprocessor, cta, usage.map(|usage| usage.registers));
    Report {
        format: "galatea explain 1",
        kernel: func.name.to_string(),
        gpu: card.name,
        target: card.target.to_string(),
        programs: run.programs,
        programs_simulated: run.programs_run,
        accesses: explained.accesses.iter().zip(&run.accesses).map(|(access, traffic)| row(explained, access, traffic)).collect(),
        resources: Resources {
            ctas,
            warps_per_cta: cta.warps,
            registers: usage.map(|usage| usage.registers),
            spill_bytes: usage.map(|usage| usage.spill_bytes),
            shared_bytes: cta.shared_bytes,
            ctas_per_multiprocessor: occupancy.ctas,
            warps_per_multiprocessor: occupancy.warps,
            limited_by: occupancy.limits,
            most_registers: most_registers(card.multiprocessor, cta, occupancy.ctas),
        },
        traffic: Bytes {
            least_bytes: run.least_bytes,
            memory_bytes: run.memory_bytes,
            l2_bytes: run.l2_bytes,
            l1_lines: run.l1_lines,
            instructions: run.instructions,
            bank_conflicts: run.bank_conflicts,
        },
        times: Times::of(card, run, ctas),
        products,
        roles,
    }
}

fn row(explained: &Explained, access: &explain::Access, traffic: &Traffic) -> Row {
    let moved: f64 = traffic.bytes_by_width.iter().sum();
    let most = traffic
        .bytes_by_width
        .iter()
        .enumerate()
        .rev()
        .fold((0, 0.0), |most, (log, bytes)| if *bytes > most.1 { (log, *bytes) } else { most });
    let width = if moved > 0.0 { 1 << most.0 } else { 0 };
    let narrower: f64 = traffic.bytes_by_width[..most.0].iter().sum();
    let per_request = |sectors: f64| if traffic.requests > 0.0 { sectors / traffic.requests } else { 0.0 };
    // Of an access that nothing executes, only what executes in its place is of interest.
    let is_told = |limit: &&Limit| if width == 0 { matches!(limit, Limit::Neighbours { .. }) } else { width < explain::WIDEST };
    let limits = access.limits.iter().filter(is_told);
    let mut limits: Vec<Why> = limits.map(|limit| Why { reason: limit.to_string(), help: limit.help() }).collect();
    if width == explain::WIDEST && traffic.sectors > GAPS * traffic.least_sectors {
        limits.push(Why {
            reason: "a request leaves gaps between threads: each thread holds more elements than it moves at once".to_owned(),
            help: Some("convert narrow elements of these tiles to wider ones first, or load them in another kernel".to_owned()),
        });
    }
    Row {
        file: explained.files.get(usize::from(access.loc.file)).map_or(String::new(), ToString::to_string),
        line: access.loc.line,
        column: access.loc.column,
        builtin: access.builtin,
        tensors: access.tensors.iter().map(ToString::to_string).collect(),
        dtype: access.dtype.to_string(),
        tile: access.tile.clone(),
        asked_bytes: traffic.asked_bytes,
        requests: traffic.requests,
        sectors_per_request: per_request(traffic.sectors),
        least_sectors_per_request: per_request(traffic.least_sectors),
        width,
        narrower: if moved > 0.0 { narrower / moved } else { 0.0 },
        widest: access.widest,
        limits,
        hint: access.hint.text,
        hint_reason: access.hint.reason,
    }
}
