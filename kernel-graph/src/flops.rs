//! Floating-point operations and bytes of a graph, as the table of PyTorch's `FlopCounterMode`.
//!
//! ```text
//! Module               FLOP    % Total     Bytes    FLOP/byte
//! ---------------  --------  ---------  --------  -----------
//! mlp              262.656K    100.00%  135.168K         1.94
//! - mylib::linear  262.144K     99.81%  131.072K         2.00
//! - mylib::silu      0.512K      0.19%    4.096K         0.12
//! ```

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

use kernel_runtime::ops::recorder::Value;
use kernel_runtime::ops::{CostModel, ExternCall, LaunchCost};
use kernel_runtime::profile::{LaunchRecord, Profile, SpanKind, Trace, span};
use kernel_runtime::{Dim, DimValues};

use crate::error::Result;
use crate::graph::{Graph, Level};
use crate::items::Item;
use kernel_package::{Node, NodeOp};

/// The floating-point operations and bytes of a graph, of its ops and of its launches outside of ops. `Display` prints a table.
///
/// Numbers are written as PyTorch's `FlopCounterMode` writes them: in units of the first row, such as `0.512K`. The bytes are those of the tensors that
/// the launches read and write, each tensor of a launch as a whole. A share or an intensity that differs between values of the dims is written as `-`,
/// and a lower bound begins with `~`: there a number of operations depends on data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlopTable {
    rows: Vec<FlopRow>,
}

/// A row of a [`FlopTable`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlopRow {
    /// The name of the graph, an op or a kernel.
    pub name: String,
    /// The floating-point operations. The chapter "Recorded graphs" of the book has the rules.
    pub flops: Dim,
    /// Whether the launches do exactly so many operations. Otherwise `flops` is a lower bound.
    pub is_exact: bool,
    /// The bytes of the tensors that the launches read.
    pub read_bytes: Dim,
    /// The bytes of the tensors that the launches write.
    pub written_bytes: Dim,
}

impl FlopRow {
    fn new(name: &str) -> FlopRow {
        let zero = || Dim::from(0);
        FlopRow { name: name.to_owned(), flops: zero(), is_exact: true, read_bytes: zero(), written_bytes: zero() }
    }

    /// The bytes that the launches read and write.
    pub fn bytes(&self) -> Dim {
        &self.read_bytes + &self.written_bytes
    }

    fn of(name: &str, cost: LaunchCost) -> FlopRow {
        let LaunchCost { flops, is_exact, read_bytes, written_bytes } = cost;
        FlopRow { name: name.to_owned(), flops, is_exact, read_bytes, written_bytes }
    }

    fn add(&mut self, other: &FlopRow) {
        self.flops = &self.flops + &other.flops;
        self.is_exact &= other.is_exact;
        self.read_bytes = &self.read_bytes + &other.read_bytes;
        self.written_bytes = &self.written_bytes + &other.written_bytes;
    }
}

impl Graph {
    /// Counts the floating-point operations and the bytes of the graph, as expressions of its dims. The rows behind the first one are the ops that the
    /// graph calls, with the sums of equal ops, and then the kernels that it launches outside of ops.
    ///
    /// # Errors
    /// The compiler's error if a kernel cannot be specialised.
    pub fn flops(&self) -> Result<FlopTable> {
        let mut model = CostModel::new();
        let mut costs: HashMap<*const Node, FlopRow> = HashMap::new();
        for node in &self.plan.nodes {
            if let NodeOp::Launch(launch) = &node.op {
                costs.insert(node, FlopRow::of(launch.kernel(), model.cost(launch, &self.plan.types)?));
            }
            if let NodeOp::Extern(call) = &node.op {
                costs.insert(node, self.cost_of_call(call, &node.results));
            }
        }
        let (mut graph, mut ops, mut kernels) = (FlopRow::new(&self.plan.name), Rows::default(), Rows::default());
        for item in self.items(Level::Ops) {
            let (nodes, rows, name, formula) = match item {
                Item::Call(call, ..) => (&self.plan.nodes[call.nodes.clone()], &mut ops, call.def.name, call.flops.as_ref()),
                Item::Node(node) => match &node.op {
                    NodeOp::Launch(launch) => (std::slice::from_ref(node), &mut kernels, launch.kernel(), None),
                    NodeOp::Extern(call) => (std::slice::from_ref(node), &mut ops, call.name(), call.flops()),
                    NodeOp::Alloc { .. } | NodeOp::View { .. } => continue,
                },
            };
            let mut sum = FlopRow::new(name);
            nodes.iter().filter_map(|node| costs.get(&std::ptr::from_ref(node))).for_each(|cost| sum.add(cost));
            if let Some(formula) = formula {
                (sum.flops, sum.is_exact) = (formula.clone(), true);
            }
            graph.add(&sum);
            rows.row(name).add(&sum);
        }
        Ok(FlopTable { rows: std::iter::once(graph).chain(ops.rows).chain(kernels.rows).collect() })
    }

    /// The bytes of an opaque op are those of its tensors. Nothing is known of its operations.
    fn cost_of_call(&self, call: &ExternCall, results: &[Value]) -> FlopRow {
        let bytes = |value: Value| self.ty(value).numel() * self.ty(value).dtype.bytes() as i64;
        let mut row = FlopRow::new(call.name());
        row.is_exact = false;
        call.each_value(&mut |value, _| row.read_bytes = &row.read_bytes + bytes(value));
        row.written_bytes = results.iter().fold(Dim::from(0), |sum, result| sum + bytes(*result));
        row
    }

    /// As [`Graph::flops`], for these values of the named dims.
    ///
    /// # Errors
    /// As [`Graph::flops`], and an error of the runtime for a name that is no dim of the graph, a value outside of its range, and a dim without a value.
    pub fn flops_at(&self, dims: &[(&str, i64)]) -> Result<FlopTable> {
        let named = self.dims();
        let mut values = DimValues::new();
        for (name, value) in dims {
            values.set(&Dim::parse(name, &named)?, *value)?;
        }
        self.flops()?.at(&values)
    }
}

/// Counts the floating-point operations and the bytes of what a function runs on this thread: of a model without a recording, for instance. The first
/// row is the sum, `Global`. The rows behind it are the outermost ops and runs of sessions, and then the kernels that are launched outside of both.
///
/// ```
/// use galatea::graph::flops;
/// use galatea::ops::{Any, Tensor};
/// use galatea::prelude::*;
///
/// #[kernel]
/// fn twice<T: Float>(x: Ptr<T>, y: PtrMut<T>, n: usize) {
///     let at = program_id(0) * 64 + arange(0, 64);
///     store(y + at, 2.0 * load(x + at, mask = at < n), mask = at < n);
/// }
///
/// # fn main() -> galatea::Result<()> {
/// let x: Tensor = Device::cpu().zeros::<f32>(64)?.into();
/// let table = flops(|| {
///     let (n, mut y) = (x.numel(), x.empty_like()?);
///     twice::<Any>(&x, &mut y, &n).grid(n.cdiv(64)).launch()
/// })?;
/// assert_eq!((table.total().flops.known(), table.total().bytes().known()), (Some(64), Some(512)));
/// assert_eq!(table.rows()[1].name, "twice");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The error of the function.
pub fn flops<R, E>(run: impl FnOnce() -> Result<R, E>) -> Result<FlopTable, E> {
    // The name tells the span from those of other threads that count at the same time.
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("flops {}", NEXT.fetch_add(1, Ordering::Relaxed));
    let profile = Profile::start();
    let counted = span(name.clone());
    let result = run();
    drop(counted);
    let trace = profile.finish();
    result.map(|_| FlopTable::of_trace(&trace, &name))
}

impl FlopTable {
    /// The table of the launches in the span of this name.
    fn of_trace(trace: &Trace, name: &str) -> FlopTable {
        let number = |count: u64| Dim::from(i64::try_from(count).unwrap_or(i64::MAX));
        let (spans, mut of_ops) = (trace.spans(), HashMap::<usize, FlopRow>::new());
        let mut kernels = Rows::default();
        // The outermost op around a span, the span included; `None` outside of the span of this name.
        let outermost = |span: Option<usize>| {
            let (mut op, mut is_counted) = (None, false);
            for index in std::iter::successors(span, |span| spans[*span].parent) {
                is_counted |= spans[index].name == name;
                if !is_counted && matches!(spans[index].kind, SpanKind::Op { .. }) {
                    op = Some(index);
                }
            }
            is_counted.then_some(op)
        };
        // An opaque op may launch nothing, and state its operations.
        for index in (0..spans.len()).filter(|index| spans[*index].states_flops && outermost(Some(*index)) == Some(Some(*index))) {
            of_ops.insert(index, FlopRow::new(&spans[index].name));
        }
        for launch in trace.launches() {
            let LaunchRecord { flops, is_exact, read_bytes, written_bytes, .. } = launch;
            let mut cost = FlopRow::new(launch.kernel);
            cost.flops = number(flops.unwrap_or(0));
            cost.is_exact = *is_exact && flops.is_some();
            cost.read_bytes = number(read_bytes.unwrap_or(0));
            cost.written_bytes = number(written_bytes.unwrap_or(0));
            match outermost(launch.span) {
                None => {}
                Some(None) => kernels.row(launch.kernel).add(&cost),
                Some(Some(index)) => of_ops.entry(index).or_insert_with(|| FlopRow::new(&spans[index].name)).add(&cost),
            }
        }
        let (mut total, mut ops) = (FlopRow::new("Global"), Rows::default());
        let mut indices: Vec<usize> = of_ops.keys().copied().collect();
        indices.sort_unstable();
        for index in indices {
            let row = &of_ops[&index];
            let formula = spans[index].states_flops;
            let flops = if formula { number(spans[index].flops) } else { row.flops.clone() };
            ops.row(&row.name).add(&FlopRow { flops, is_exact: formula || row.is_exact, ..row.clone() });
        }
        ops.rows.iter().chain(&kernels.rows).for_each(|row| total.add(row));
        total.is_exact &= trace.left_out() == 0;
        FlopTable { rows: std::iter::once(total).chain(ops.rows).chain(kernels.rows).collect() }
    }
}

/// Rows in the order of their first use.
#[derive(Default)]
struct Rows {
    rows: Vec<FlopRow>,
    indices: HashMap<String, usize>,
}

impl Rows {
    fn row(&mut self, name: &str) -> &mut FlopRow {
        let new = self.rows.len();
        let index = *self.indices.entry(name.to_owned()).or_insert(new);
        if index == new {
            self.rows.push(FlopRow::new(name));
        }
        &mut self.rows[index]
    }
}

impl FlopTable {
    /// The rows: the graph, then its ops, then its kernels outside of ops.
    pub fn rows(&self) -> &[FlopRow] {
        &self.rows
    }

    /// The row of the graph, which is the sum of all others.
    pub fn total(&self) -> &FlopRow {
        &self.rows[0]
    }

    /// The table for these values of the dims.
    ///
    /// # Errors
    /// An error of the runtime for a dim without a value, and a number that exceeds 64 bits.
    pub fn at(&self, values: &DimValues) -> Result<FlopTable> {
        let number = |dim: &Dim| dim.value(values).map(Dim::from);
        let row = |row: &FlopRow| {
            Ok(FlopRow {
                name: row.name.clone(),
                flops: number(&row.flops)?,
                is_exact: row.is_exact,
                read_bytes: number(&row.read_bytes)?,
                written_bytes: number(&row.written_bytes)?,
            })
        };
        Ok(FlopTable { rows: self.rows.iter().map(row).collect::<Result<_>>()? })
    }
}

impl fmt::Display for FlopTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        let total_bytes = total.bytes();
        let mut rows = vec![["Module", "FLOP", "% Total", "Bytes", "FLOP/byte"].map(str::to_owned)];
        for (number, row) in self.rows.iter().enumerate() {
            let name = if number == 0 { row.name.clone() } else { format!("- {}", row.name) };
            let bound = if row.is_exact { "" } else { "~" };
            let share = match (total.flops.known(), ratio(&row.flops, &total.flops)) {
                (Some(0), _) => "0%".to_owned(),
                (_, Some(share)) => format!("{:.2}%", share * 100.0),
                (_, None) => "-".to_owned(),
            };
            let intensity = ratio(&row.flops, &row.bytes()).map_or_else(|| "-".to_owned(), |ratio| format!("{bound}{ratio:.2}"));
            rows.push([name, format!("{bound}{}", scaled(&row.flops, &total.flops)), share, scaled(&row.bytes(), &total_bytes), intensity]);
        }
        // As in Python's `tabulate`, a column is at least two wider than its header.
        let widths: [usize; 5] = std::array::from_fn(|column| {
            let cells = rows.iter().enumerate().map(|(number, row)| row[column].chars().count() + if number == 0 { 2 } else { 0 });
            cells.max().unwrap_or(0)
        });
        rows.insert(1, widths.map(|width| "-".repeat(width)));
        for row in rows {
            let mut line = format!("{:width$}", row[0], width = widths[0]);
            for (cell, width) in row[1..].iter().zip(&widths[1..]) {
                line.push_str(&format!("  {cell:>width$}"));
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

/// The text of a number in the unit of the largest one: thousands, millions, billions or trillions. An expression is written as it is.
fn scaled(number: &Dim, largest: &Dim) -> String {
    let (Some(number), Some(largest)) = (number.known(), largest.known()) else { return number.to_string() };
    // As in PyTorch, `1001M` is not written as `1.001B`.
    let unit = (largest.to_string().len().saturating_sub(2) / 3).min(4);
    format!("{:.3}{}", number as f64 / 1000f64.powi(unit as i32), ["", "K", "M", "B", "T"][unit])
}

/// The quotient of two expressions, if it is the same for all values of their dims.
fn ratio(dividend: &Dim, divisor: &Dim) -> Option<f64> {
    let mut values = DimValues::new();
    for dim in dividend.named().into_iter().chain(divisor.named()) {
        values.set(&dim, *dim.bounds().ok()?.end()).ok()?;
    }
    let (one, other) = (dividend.value(&values).ok()?, divisor.value(&values).ok()?);
    let common = gcd(one, other);
    if common == 0 {
        return None;
    }
    // Two products that overflow are equal, and say nothing.
    let products = [dividend * (other / common), divisor * (one / common)];
    let is_constant = products[0].bounds().is_ok() && products[0] == products[1];
    (other != 0 && is_constant).then(|| one as f64 / other as f64)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
