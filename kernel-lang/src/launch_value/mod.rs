//! Launch values: scalars that the host computes at launch, for all programs at once.
//!
//! A kernel asks before its fast path whether every element of its tiles is in bounds, whether addresses are aligned, and so on. In almost every launch
//! the answer is the same in all programs, or in all but the last ones of an axis. It also computes reciprocals and bounds of its arguments, which are the same in
//! all programs. So the pass `compute_at_launch` makes such a scalar the result of a `launch_value`:
//!
//! ```text
//! %3 = launch_value () {
//!     %0 = program_id : i64
//!     %1 = mul %0, %columns : i64
//!     %2 = lt %1, %n : bool
//!     yield %2
//! } : bool
//! ```
//!
//! A launch passes the values as parameters that follow those of the kernel:
//!
//! | value | parameters |
//! |---|---|
//! | a scalar that depends on no program id | one of its type; of a `bool`, a `u32` that is 1 or 0 |
//! | a `bool` that depends on program ids | for each axis on whose ids it depends, a bound in a `u32`: it is true in every program whose ids are below the bounds. Then a `u32` that is 1 if it is false in every other program. If that is 0, other programs compute it themselves |
//!
//! The PTX states the values in a comment, as a kernel that consists of one `launch_value`, so the text of a variant is all that a launch needs.
//! [`LaunchValues`] reads the comment. It computes, for each scalar of the region, a range and the low bits that all programs share, so it needs
//! one pass over the ops for all programs of a launch. Further passes leave out the last programs of an axis, or all others.

mod evaluate;
mod known;
pub mod persistent_entry;
pub(crate) mod sizes;
#[cfg(test)]
mod tests;
mod unused;

use rustc_hash::FxHashMap;
use std::fmt::Write as _;

use crate::dtype::Dtype;
use crate::ir::{Function, Inst, InstData, Op, Region, SideTable, Type, Value, computation};
use crate::location::Loc;

pub use evaluate::LaunchValues;
pub(crate) use known::Known;
pub use persistent_entry::PersistentEntry;
pub(crate) use unused::Unused;

/// The first line of the comment in the PTX.
const HEADER: &str = "// launch values:";
/// The last line of the comment.
const END: &str = "// }";

/// The maximum number of parameters that a kernel has for its launch values. Of `nhwc_to_nchw`, which divides flat indices by six numbers, there are 48.
pub const MOST_PARAMETERS: usize = 64;

/// The parameters of a launch value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Parameters {
    /// The number of the first parameter.
    pub(crate) first: usize,
    /// The axes with a bound, in order. Without any, there is one parameter for the value.
    pub(crate) axes: Vec<u32>,
    /// The type of the value.
    pub(crate) dtype: Dtype,
    /// Does the program load it where the op stands? Otherwise it does so where other ops use it: those are in branches that few programs take.
    pub(crate) in_place: bool,
}

impl Parameters {
    /// The number of parameters.
    pub(crate) fn count(&self) -> usize {
        count(&self.axes)
    }

    /// The type of each parameter.
    pub(crate) fn parameter_type(&self) -> Dtype {
        if self.dtype == Dtype::Bool { Dtype::U32 } else { self.dtype }
    }
}

/// The number of parameters of a value that depends on the ids along these axes.
pub(crate) fn count(axes: &[u32]) -> usize {
    match axes.len() {
        0 => 1,
        bounds => bounds + 1,
    }
}

/// The name of a parameter in the PTX.
pub(crate) fn parameter_name(number: usize) -> String {
    format!("launch_{number}")
}

/// The parameters of all launch values, in order.
pub(crate) fn parameters(func: &Function) -> Vec<(Value, Parameters)> {
    let mut next = 0;
    let mut found = Vec::new();
    let usual = used_if_all_holds(func);
    for (result, value) in in_order(func, &usual) {
        let (axes, dtype) = (axes(func, value), func.ty(result).dtype());
        let is_nested = !func.region(func.body).insts.iter().any(|inst| func.inst(*inst).results.contains(&result));
        let parameters = Parameters { first: next, axes, dtype, in_place: usual[result] || is_nested };
        next += parameters.count();
        found.push((result, parameters));
    }
    found
}

/// The results of launch values with the values that their regions yield, in the order of their parameters: first those that a program uses for which
/// every condition holds, the `usual` ones. In front of all is the condition under which this version of the kernel runs. A multiprocessor reads parameters in lines of 64 bytes, and waits for each: 0.08 us a line on an H200 with cold caches.
fn in_order(func: &Function, usual: &SideTable<Value, bool>) -> Vec<(Value, Value)> {
    let results = |(inst, region): &(Inst, Region)| {
        let results = func.inst(*inst).results.iter().copied();
        results.zip(func.yielded(*region).iter().copied()).collect::<Vec<_>>()
    };
    let mut all: Vec<(Value, Value)> = launch_values(func).iter().flat_map(results).collect();
    let condition = condition(func);
    all.sort_by_key(|(result, _)| (Some(*result) != condition, !usual[*result]));
    all
}

/// The launch value that tells which launches this version of the kernel runs.
pub(crate) fn condition(func: &Function) -> Option<Value> {
    func.region(func.body).insts.iter().find_map(|inst| match func.inst(*inst).op {
        Op::RunsIf { cond } => Some(cond),
        _ => None,
    })
}

/// The values that are operands in a program for which the conditions of all branches hold.
fn used_if_all_holds(func: &Function) -> SideTable<Value, bool> {
    let (mut used, mut regions): (SideTable<Value, bool>, Vec<Region>) = (SideTable::new(), vec![func.body]);
    while let Some(region) = regions.pop() {
        for inst in &func.region(region).insts {
            let op = &func.inst(*inst).op;
            op.for_each_operand(&mut |operand| used[operand] = true);
            match op {
                Op::If { then_region, .. } => regions.push(*then_region),
                Op::LaunchValue { .. } => {}
                op => op.for_each_region(&mut |inner| regions.push(inner)),
            }
        }
    }
    used
}

/// The type of each parameter of launch values.
pub(crate) fn parameter_types(values: &[(Value, Parameters)]) -> Vec<Dtype> {
    values.iter().flat_map(|(_, parameters)| std::iter::repeat_n(parameters.parameter_type(), parameters.count())).collect()
}

/// The ops `launch_value` of a kernel with their regions, in the order of the text.
fn launch_values(func: &Function) -> Vec<(Inst, Region)> {
    let launch_value = |inst: Inst| match func.inst(inst).op {
        Op::LaunchValue { compute } => Some((inst, compute)),
        _ => None,
    };
    func.all_insts().into_iter().filter_map(launch_value).collect()
}

/// The axes of the grid on whose program ids a value depends.
pub(crate) fn axes(func: &Function, value: Value) -> Vec<u32> {
    let ops = computation(func, value, &|_| true).unwrap_or_default();
    let axis = |inst: Inst| match func.inst(inst).op {
        Op::ProgramId { axis } => Some(axis),
        _ => None,
    };
    let mut axes: Vec<u32> = ops.into_iter().filter_map(axis).collect();
    axes.sort_unstable();
    axes.dedup();
    axes
}

/// The scalars that the kernel executes in these regions, and that `is_allowed` ops compute from its parameters.
pub(crate) fn known_scalars(func: &Function, executed: &[Region], is_allowed: &dyn Fn(&Op) -> bool) -> SideTable<Value, bool> {
    let mut known: SideTable<Value, bool> = SideTable::new();
    for region in executed {
        for inst in &func.region(*region).insts {
            let data = func.inst(*inst);
            let mut is_known = is_allowed(&data.op) && data.results.iter().all(|result| func.ty(*result).is_scalar());
            if !is_known {
                continue;
            }
            data.op.for_each_operand(&mut |operand| is_known &= known[operand] || func.param_index(operand).is_some());
            if is_known {
                data.results.iter().for_each(|result| known[*result] = true);
            }
        }
    }
    known
}

/// The regions of the kernel, without those of launch values.
pub(crate) fn executed(func: &Function) -> Vec<Region> {
    // A launch value stands in a region that is visited before its own, and there are at most as many as parameters.
    let mut launched: Vec<Region> = Vec::new();
    let mut regions = func.regions_under(func.body);
    regions.retain(|region| {
        let is_executed = !launched.contains(region);
        let compute = |inst: &Inst| if let Op::LaunchValue { compute } = func.inst(*inst).op { Some(compute) } else { None };
        launched.extend(func.region(*region).insts.iter().filter_map(compute));
        is_executed
    });
    regions
}

/// The comment that states the launch values of a kernel; empty if it has none.
pub(crate) fn comment(func: &Function) -> String {
    let all = in_order(func, &used_if_all_holds(func));
    if all.is_empty() {
        return String::new();
    }
    let mut host = Function::new("launch_values");
    let compute = host.add_region();
    let mut copies = Copies::new(compute);
    for param in &func.params {
        let copy = host.add_param(param.name.clone(), func.ty(param.value).clone());
        copies.values[param.value] = Some(copy);
    }
    let yielded = || all.iter().map(|(_, value)| value);
    for inst in yielded().flat_map(|value| computation(func, *value, &|_| true).unwrap_or_default()) {
        copies.add(&mut host, func.inst(inst), func.ty(func.result(inst)));
    }
    let types: Vec<Type> = yielded().map(|value| func.ty(*value).clone()).collect();
    copies.finish(&mut host, yielded().copied(), Loc::NONE);
    host.append(host.body, Op::LaunchValue { compute }, types, Loc::NONE);
    host.append(host.body, Op::Return {}, [], Loc::NONE);
    let mut comment = format!("{HEADER}\n");
    for inst in host.all_insts() {
        host.inst_mut(inst).loc = Loc::NONE;
    }
    for line in host.to_string().lines() {
        let _ = writeln!(comment, "// {line}");
    }
    comment.push('\n');
    comment
}

/// Copies of ops in a region, each different from the others.
pub(crate) struct Copies {
    region: Region,
    /// By their hash.
    ops: FxHashMap<u64, Vec<Inst>>,
    /// By original.
    values: SideTable<Value, Option<Value>>,
}

impl Copies {
    pub(crate) fn new(region: Region) -> Copies {
        Copies { region, ops: FxHashMap::default(), values: SideTable::new() }
    }

    /// Copies the ops that compute a scalar from the kernel's parameters.
    pub(crate) fn add_all(&mut self, func: &mut Function, ops: &[Inst]) {
        for op in ops {
            let (data, ty) = (func.inst(*op).clone(), func.ty(func.result(*op)).clone());
            self.add(func, &data, &ty);
        }
    }

    /// Copies an op with one result, whose operands are copied or parameters of the kernel.
    pub(crate) fn add(&mut self, to: &mut Function, data: &InstData, ty: &Type) {
        let result = data.results[0];
        if self.values[result].is_some() {
            return;
        }
        let mut op = data.op.clone();
        op.map_operands(&mut |value| self.copy(value));
        let alike = self.ops.entry(op.hash()).or_default();
        let known = alike.iter().copied().find(|known| to.inst(*known).op.is_same(&op) && to.ty(to.result(*known)) == ty);
        let copy = known.unwrap_or_else(|| {
            let copy = to.append(self.region, op, [ty.clone()], data.loc);
            alike.push(copy);
            copy
        });
        self.values[result] = Some(to.result(copy));
    }

    /// The copy of a value.
    pub(crate) fn copy(&self, value: Value) -> Value {
        self.values[value].unwrap_or(value)
    }

    /// Ends the region: it yields the copies of these values.
    pub(crate) fn finish(&self, to: &mut Function, values: impl Iterator<Item = Value>, loc: Loc) {
        let values = values.map(|value| self.copy(value)).collect();
        to.append(self.region, Op::Yield { values }, [], loc);
    }
}
