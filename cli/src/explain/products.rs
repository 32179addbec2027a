//! The matrix products of a kernel and its version with roles, as data of the report.

use kernel_lang::analysis::flops;
use kernel_lang::explain::{CopiedBlock, Explained, Lost, WithRoles};
use kernel_lang::ir::Function;
use kernel_lang::location::Loc;
use kernel_lang::passes::specialize_warps::Decisions;
use kernel_lang::{Schedule, specialized};
use serde::Serialize;

use super::card::Card;
use super::product_cost::{Cost, Executed, Machine, Work};
use super::request::{Request, Value};
use super::simulate::Run;

/// A `dot` of the source.
#[derive(Serialize)]
pub(super) struct Product {
    pub(super) line: u32,
    pub(super) column: u32,
    /// The rows and columns of the result, and the terms of each sum.
    pub(super) tile: [usize; 3],
    pub(super) dtype: String,
    /// The instruction of the usual version.
    pub(super) usual: String,
    /// The instruction of the version with roles.
    pub(super) with_roles: Option<String>,
    /// How often the launch executes it, if numbers of the launch determine that.
    pub(super) executions: Option<i64>,
}

/// The version with roles, or why there is none.
#[derive(Serialize)]
pub(super) struct Roles {
    /// Does this launch take it?
    pub(super) taken: bool,
    pub(super) lost: Option<Reason>,
    pub(super) version: Option<Version>,
}

/// Why there is no fast path.
#[derive(Serialize)]
pub(super) struct Reason {
    /// 0 if the reason is about the whole kernel.
    pub(super) line: u32,
    pub(super) reason: String,
    pub(super) help: &'static str,
}

/// The version with roles.
#[derive(Serialize)]
pub(super) struct Version {
    /// What must hold in a launch that takes it.
    pub(super) conditions: Vec<String>,
    pub(super) copies: Vec<Copy>,
    pub(super) usual_stores: Vec<Reason>,
    pub(super) rings: Vec<Ring>,
    pub(super) shared_bytes: u32,
    pub(super) staging_bytes: u32,
    pub(super) producer_threads: u32,
    pub(super) producer_registers: u32,
    pub(super) consumer_threads: u32,
    pub(super) consumer_registers: u32,
    pub(super) workers_per_multiprocessor: u32,
    /// Workers take programs in groups of so many along the first axis of the grid.
    pub(super) group: u32,
    /// `null` if the number of executions of a product is not known.
    pub(super) estimate: Option<Cost>,
}

/// A load or store that is a copy by a tensor map.
#[derive(Serialize)]
pub(super) struct Copy {
    pub(super) line: u32,
    pub(super) builtin: &'static str,
    pub(super) tensor: String,
    pub(super) dtype: String,
    /// The elements that an instruction copies, along the contiguous axis first.
    #[serde(rename = "box")]
    pub(super) block: [u32; 2],
    pub(super) swizzle: u32,
    pub(super) instructions: u32,
    /// Of a store: what must hold for the copy.
    pub(super) conditions: Vec<String>,
}

#[derive(Serialize)]
pub(super) struct Ring {
    pub(super) line: u32,
    pub(super) slots: u32,
    pub(super) slot_bytes: u32,
}

/// The parts of the report about matrix products. The second one is none if the kernel has no products.
pub(super) fn of(explained: &Explained, func: &Function, request: &Request, run: &Run, card: &Card) -> (Vec<Product>, Option<Roles>) {
    let executions = |loc| executions(func, request, run, loc);
    let products: Vec<Product> = explained
        .products
        .iter()
        .map(|product| Product {
            line: product.loc.line,
            column: product.loc.column,
            tile: product.tile,
            dtype: product.dtype.to_string(),
            usual: product.usual.clone(),
            with_roles: product.with_roles.clone(),
            executions: executions(product.loc),
        })
        .collect();
    let roles = (!products.is_empty()).then(|| Roles {
        taken: run.takes_roles,
        lost: explained.roles.as_ref().err().map(reason),
        version: explained.roles.as_ref().ok().map(|roles| version(roles, estimate(&roles.decisions, explained, run, card, &executions))),
    });
    (products, roles)
}

fn reason(lost: &Lost) -> Reason {
    Reason { line: lost.loc.line, reason: lost.reason.clone(), help: lost.help }
}

fn version(roles: &WithRoles, estimate: Option<Cost>) -> Version {
    let decisions = &roles.decisions;
    let [producer_registers, consumer_registers] = decisions.registers.of_roles.unwrap_or([decisions.registers.at_first; 2]);
    Version {
        conditions: roles.conditions.clone(),
        copies: roles.copies.iter().map(copy).collect(),
        usual_stores: roles.usual_stores.iter().map(reason).collect(),
        rings: decisions.rings.iter().map(|ring| Ring { line: ring.loc.line, slots: ring.slots, slot_bytes: ring.slot_bytes }).collect(),
        shared_bytes: decisions.shared_bytes,
        staging_bytes: decisions.staging_bytes,
        producer_threads: Schedule::PRODUCER_THREADS,
        producer_registers,
        consumer_threads: decisions.consumers,
        consumer_registers,
        workers_per_multiprocessor: decisions.workers,
        group: decisions.group,
        estimate,
    }
}

fn copy(CopiedBlock { copy, tensor, conditions }: &CopiedBlock) -> Copy {
    Copy {
        line: copy.loc.line,
        builtin: if copy.is_store { "store" } else { "load" },
        tensor: tensor.to_string(),
        dtype: copy.dtype.to_string(),
        block: copy.block,
        swizzle: copy.swizzle,
        instructions: copy.instructions,
        conditions: conditions.clone(),
    }
}

/// How often all programs of the launch execute the products at a position.
fn executions(func: &Function, request: &Request, run: &Run, loc: Loc) -> Option<i64> {
    let func = specialized(func, &request.options.bindings).map_err(|errors| errors.into_vec()).ok()?;
    let params: Vec<Option<i64>> = request
        .arguments
        .iter()
        .map(|given| match &given.value {
            Value::Tensor { count, .. } => i64::try_from(*count).ok(),
            Value::Scalar { integer, .. } => *integer,
        })
        .collect();
    let count = flops::products(&func, loc, &params, &run.grid.map(i64::from));
    count.is_exact.then_some(count.count)
}

/// The estimated time of the launch, if it takes the version with roles.
fn estimate(decisions: &Decisions, explained: &Explained, run: &Run, card: &Card, executions: &dyn Fn(Loc) -> Option<i64>) -> Option<Cost> {
    let times = |loc| executions(loc).map(|count| count as f64);
    // Several products at one position, as in a loop that is repeated at compile time, are counted together.
    let mut products = decisions.products.clone();
    products.dedup_by_key(|product| product.loc);
    let executed = products.iter().map(|product| {
        let element_bytes = product.dtype.bytes() as u32;
        Some(Executed { tile: product.tile, element_bytes, times: times(product.loc)? })
    });
    let at_one = |loc: Loc| decisions.rings.iter().filter(|ring| ring.loc == loc).count().max(1) as f64;
    let copied = decisions.rings.iter().map(|ring| Some(times(ring.loc)? / at_one(ring.loc) * f64::from(ring.slot_bytes)));
    let stores = explained.accesses.iter().zip(&run.accesses).filter(|(access, _)| access.stores);
    let work = Work {
        programs: run.programs,
        products: executed.collect::<Option<_>>()?,
        copied_bytes: copied.sum::<Option<f64>>()?,
        stored_bytes: stores.map(|(_, traffic)| traffic.asked_bytes).sum(),
        memory_bytes: run.memory_bytes,
        workers: decisions.workers,
    };
    let machine = Machine { multiprocessors: card.multiprocessors, clock_ghz: card.clock_ghz, memory_gb_per_s: card.memory_gb_per_s };
    Some(Cost::of(&work, machine))
}
