//! Flattened indices: full tiles whose indices are taken apart by `/` and `%` compute them in 32 bits, once for a run of neighbours.
//!
//! A kernel that flattens a tensor takes its index apart again: `columns = offsets % n`, `rows = offsets / n`. [`super::split_full_tiles`] makes
//! a copy of such code for full tiles. This module writes that copy:
//!
//! - **32 bits.** The condition of the copy also tests that every index fits in 32 bits ([`crate::analysis::ranges`]).
//! - **Bounds.** The same ranges prove that accesses with such indices are in bounds, so these need no guard.
//! - **Runs.** A tile of 1024 elements becomes one of `[128, 8]`: 128 runs of 8 neighbours. If `n` is a multiple of 8, each run has one row, and
//!   neighbouring columns ([`runs`]). So a thread divides once for 8 elements, and accesses 16 bytes at once. A second condition tests
//!   the divisors. If it fails, a run crosses at most one multiple of a divisor that is at least as long: its elements have the quotient of the first
//!   one, or one more. Otherwise, the copy divides for each element. Both still make wide accesses where the index is not divided.
//! - **Ragged tiles.** The last tile of a tensor often is not full because its last elements are masked. The ranges are those of the elements for which
//!   the masks hold. So if the other tests hold, such a tile also needs no guards: a copy of one element a run keeps the masks.
//! - **Division.** A divisor's reciprocal is computed once, and each division is a product and a correction ([`super::divide`]).
//!
//! ```text
//! %o = add (broadcast %start), (arange 0 .. 1024)      if %is_full_and_fits {
//! %c = rem %o, (broadcast %n)                              if %n_is_a_multiple_of_8 {
//! %v = load %x, %c                                             %c = %start + 8 * (arange 0 .. 128) modulo %n, in 32 bits : [128]
//! store %y, %o, %v                                             %v = load %x, %c[:, None] + (arange 0 .. 8) {align = 16} : [128, 8]
//!                                                              store %y, .., %v {align = 16}
//!                                                          } { .. }
//!                                                      } { the code as it was, guarded }
//! ```

mod quotients;
mod runs;
mod translate;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::analysis::affine::AffineFacts;
use crate::analysis::loops::Loop;
use crate::analysis::masks;
use crate::analysis::ranges::{Bounds, Ranges, divisor};
use crate::dtype::Dtype;
use crate::ir::{Access, BinaryOp, Builder, CompareOp, Function, Inst, Op, Region, Type, Value};
use crate::location::Loc;

use super::split_full_tiles::Width;
use runs::{Demands, Grant, Runs};

/// In a tile of fewer elements, the divisions take less time than the tests.
const WORTH: usize = 256;
/// The bytes of the widest access.
const WIDEST: usize = 16;

/// A straight-line region whose tiles are full, and what is known of it.
pub(super) struct Full<'a> {
    /// Its ops.
    pub(super) ops: &'a [Inst],
    /// The accesses that are in bounds, and how each moves its elements.
    pub(super) accesses: &'a FxHashMap<Inst, Width>,
    /// The masks that hold for every element.
    pub(super) masks: FxHashSet<Value>,
    /// Is a copy for tiles that are not full to be written? It relies on neither.
    pub(super) is_ragged: bool,
}

impl Full<'_> {
    /// Does a mask hold for every element?
    fn holds(&self, mask: Value) -> bool {
        !self.is_ragged && self.masks.contains(&mask)
    }

    /// How an access that is in bounds moves its elements.
    fn width(&self, inst: Inst) -> Option<Width> {
        self.accesses.get(&inst).copied().filter(|_| !self.is_ragged)
    }
}

/// A straight-line region with flattened indices.
pub(super) struct Flat {
    /// The extent of all tiles.
    extent: usize,
    /// The number of neighbours in a run.
    run: usize,
    /// The indices of loops that the region uses: the first one, and the distance to the next.
    starts: FxHashMap<Value, [Value; 2]>,
    /// The tiles of indices that are computed in 32 bits.
    indices: FxHashSet<Value>,
    /// The indices that are computed in 32 bits after clamping: a float that was cast may be beyond 32 bits.
    clamped: FxHashSet<Value>,
    /// The accesses that the ranges prove in bounds.
    inside: FxHashSet<Inst>,
    /// The bounds of the indices, and what the condition must test.
    bounds: Bounds,
    /// The number of checks that the copy for full tiles needs. A copy for other tiles needs the further ones, too.
    checks: usize,
    /// What makes runs of equal quotients.
    demands: Demands,
    /// The same for tiles that are not full, if such a tile can be computed in 32 bits.
    ragged: Option<Box<Flat>>,
}

/// The flattened indices of a straight-line region, if it divides indices and all its tiles have one axis and one extent.
pub(super) fn find(
    func: &Function,
    full: &Full<'_>,
    loops: &FxHashMap<Value, Loop>,
    facts: &mut AffineFacts,
    is_usable: &dyn Fn(Value) -> bool,
) -> Option<Flat> {
    // The CTAs of a program share tiles along the last axis, which would cut each run.
    if func.is_cluster {
        return None;
    }
    let extent = common_extent(func, full.ops).filter(|extent| *extent >= WORTH && extent.is_power_of_two())?;
    let mut ranges = Ranges::new(func, full.ops, is_usable);
    let (mut members, mut indices, mut inside) = (FxHashSet::default(), FxHashSet::default(), FxHashSet::default());
    let mut divides = false;
    let results = full.ops.iter().flat_map(|inst| &func.inst(*inst).results);
    let assumed: FxHashSet<Value> = results.copied().filter(|result| full.masks.contains(result) && ranges.assume(*result)).collect();
    for inst in full.ops {
        let data = func.inst(*inst);
        match data.op {
            Op::Binary { op, lhs, rhs } if is_index_tile(func, lhs) => {
                let is_division = matches!(op, BinaryOp::Div | BinaryOp::Rem) && divisor(func, rhs).is_some();
                let result = func.result(*inst);
                let is_clamp = matches!(op, BinaryOp::Min | BinaryOp::Max);
                let is_of_members = members.contains(&lhs) || members.contains(&rhs);
                if (is_division || is_clamp || is_of_members) && ranges.of(result).is_some() {
                    divides |= is_division;
                    members.insert(result);
                    collect(func, result, &mut indices);
                }
            }
            Op::Unary { x, .. } if members.contains(&x) => {
                let result = func.result(*inst);
                if is_index_tile(func, result) && ranges.of(result).is_some() {
                    members.insert(result);
                    collect(func, result, &mut indices);
                }
            }
            Op::Select { on_true, on_false, .. } if members.contains(&on_true) || members.contains(&on_false) => {
                let result = func.result(*inst);
                if ranges.of(result).is_some() {
                    members.insert(result);
                    collect(func, result, &mut indices);
                }
            }
            Op::Compare { lhs, rhs, .. }
                if (members.contains(&lhs) || members.contains(&rhs)) && ranges.of(lhs).is_some() && ranges.of(rhs).is_some() =>
            {
                [lhs, rhs].into_iter().for_each(|side| collect(func, side, &mut indices));
            }
            _ => {}
        }
        if let Some(access) = data.op.access()
            && members.contains(&access.offset)
            && facts.get(func, access.offset).is_none()
            && (func.unchecked || ranges.require_inside(access, facts, &full.masks))
        {
            inside.insert(*inst);
        }
    }
    if !divides || ranges.is_long() {
        return None;
    }
    let clamped: FxHashSet<Value> = indices.iter().copied().filter(|index| ranges.is_clamped(*index)).collect();
    let run = run_length(func, full, extent);
    let starts = loop_starts(func, full.ops, loops);
    let demands = Runs { func, indices: &indices, starts: &starts, run, grant: Grant::Collect }.demands(full, facts, &inside);
    let checks = ranges.seal();
    let ragged = inside_if_ragged(func, full, &assumed, &mut ranges, facts).map(|inside| {
        let mut indices = indices.clone();
        for mask in &assumed {
            func.def_op(*mask).into_iter().for_each(|op| op.for_each_operand(&mut |side| collect(func, side, &mut indices)));
        }
        let (starts, clamped, bounds, demands) = (starts.clone(), clamped.clone(), Bounds::default(), Demands::default());
        Box::new(Flat { extent, run: 1, starts, indices, clamped, inside, bounds, checks: 0, demands, ragged: None })
    });
    Some(Flat { extent, run, starts, indices, clamped, inside, bounds: ranges.into_bounds(), checks, demands, ragged })
}

/// The accesses that are in bounds in a tile that is not full. The ranges assume some masks. So each access must have these masks: its index may be
/// anything where they do not hold.
fn inside_if_ragged(
    func: &Function,
    full: &Full<'_>,
    assumed: &FxHashSet<Value>,
    ranges: &mut Ranges<'_>,
    facts: &mut AffineFacts,
) -> Option<FxHashSet<Inst>> {
    let mut inside = FxHashSet::default();
    for inst in full.ops {
        let Some(access) = func.inst(*inst).op.access().filter(|access| func.ty(access.offset).is_tile()) else { continue };
        let conjuncts = access.mask.map_or(Vec::new(), |mask| masks::conjuncts(func, facts, mask));
        let has = |mask: &Value| conjuncts.iter().any(|conjunct| conjunct.mask == *mask);
        if !assumed.iter().all(has) {
            return None;
        }
        if func.unchecked || ranges.require_inside(access, facts, &full.masks) {
            inside.insert(*inst);
        }
    }
    Some(inside)
}

/// Of each loop index that the ops use: the first one, and the distance to the next.
fn loop_starts(func: &Function, ops: &[Inst], loops: &FxHashMap<Value, Loop>) -> FxHashMap<Value, [Value; 2]> {
    let mut starts = FxHashMap::default();
    for inst in ops {
        func.inst(*inst).op.for_each_operand(&mut |value| {
            if let Some(around) = loops.get(&value) {
                starts.insert(value, [around.lower, around.step]);
            }
        });
    }
    starts
}

/// The extent of all tiles, if they have one axis and the region has only ops that work on each element by itself.
pub(super) fn common_extent(func: &Function, ops: &[Inst]) -> Option<usize> {
    let mut extent = None;
    for inst in ops {
        let data = func.inst(*inst);
        let is_known = match &data.op {
            Op::Broadcast { x } => func.ty(*x).is_scalar(),
            Op::Load { volatile, .. } => !volatile,
            Op::Store { .. } | Op::Atomic { .. } => true,
            op => {
                op.is_pure()
                    && !op.looks_across()
                    && !matches!(op, Op::InlinePtx { .. } | Op::ReducePio2 { .. } | Op::Pointer { .. } | Op::View { .. })
            }
        };
        if !is_known {
            return None;
        }
        let mut is_common = true;
        let mut look = |value: Value| {
            let ty = func.ty(value);
            if ty.is_tile() {
                let extents = ty.extents();
                is_common &= extents.len() == 1 && extents[0] == *extent.get_or_insert(extents[0]);
            }
        };
        data.op.for_each_operand(&mut look);
        data.results.iter().for_each(|result| look(*result));
        if !is_common {
            return None;
        }
    }
    extent
}

/// Is the value a tile of indices?
pub(super) fn is_index_tile(func: &Function, value: Value) -> bool {
    let ty = func.ty(value);
    ty.is_tile() && ty.elem().dtype() == Some(Dtype::I64)
}

/// Adds an index and the indices from which it is computed.
fn collect(func: &Function, value: Value, indices: &mut FxHashSet<Value>) {
    let mut next = vec![value];
    while let Some(value) = next.pop() {
        if is_index_tile(func, value) && indices.insert(value) {
            func.def_op(value).into_iter().for_each(|op| op.for_each_operand(&mut |operand| next.push(operand)));
        }
    }
}

/// The elements that the widest access of the smallest type moves, but not more than one atomic updates: each instruction then updates
/// whole sectors of the L2.
fn run_length(func: &Function, full: &Full<'_>, extent: usize) -> usize {
    let accesses = || full.ops.iter().filter_map(|inst| Some((inst, func.inst(*inst).op.access()?)));
    let elements = |access: Access| WIDEST / func.ty(access.base).dtype().bytes();
    let moved = accesses().filter(|(inst, _)| full.accesses.get(inst) == Some(&Width::Runs)).map(|(_, access)| elements(access));
    let updated = accesses().filter(|(_, access)| access.is_wide_atomic(func)).map(|(_, access)| elements(access));
    moved.max().map_or(1, |moved| updated.fold(moved, usize::min).min(extent))
}

impl Flat {
    /// What is known of the runs, if that is granted.
    fn runs<'a>(&'a self, func: &'a Function, grant: Grant) -> Runs<'a> {
        Runs { func, indices: &self.indices, starts: &self.starts, run: self.run, grant }
    }

    /// Appends the test whether every index fits in 32 bits and the accesses are in bounds.
    pub(super) fn test(&self, b: &mut Builder<'_>) -> Option<Value> {
        self.bounds.test(0..self.checks, b)
    }

    /// The flattened indices of tiles that are not full.
    pub(super) fn ragged(&self) -> Option<&Flat> {
        self.ragged.as_deref()
    }

    /// Appends the test that tiles which are not full need beside the other one.
    pub(super) fn ragged_test(&self, b: &mut Builder<'_>) -> Option<Value> {
        self.bounds.test(self.checks..self.bounds.checks(), b)
    }

    /// Writes the copy for full tiles to `region`, and returns the values that replace `results`, which are scalars.
    pub(super) fn write(
        &self,
        func: &mut Function,
        full: &Full<'_>,
        results: &[Value],
        region: Region,
        facts: &mut AffineFacts,
        loc: Loc,
    ) -> Vec<Value> {
        self.write_granted(func, full, results, region, facts, loc, &self.demands.grants())
    }

    /// Writes a copy for each of these grants, and one for the rest.
    #[expect(clippy::too_many_arguments, reason = "they are the arguments of `write`")]
    fn write_granted(
        &self,
        func: &mut Function,
        full: &Full<'_>,
        results: &[Value],
        region: Region,
        facts: &mut AffineFacts,
        loc: Loc,
        grants: &[Grant],
    ) -> Vec<Value> {
        let Some((grant, rest)) = grants.split_first() else {
            return translate::run(self, func, full, results, region, facts, Grant::None);
        };
        let cond = self.demands.test(&mut Builder::new(func, region, loc), *grant, self.run);
        let [then_region, else_region] = [true, false].map(|is_granted| {
            let inner = func.add_region();
            let values = if is_granted {
                translate::run(self, func, full, results, inner, facts, *grant)
            } else {
                self.write_granted(func, full, results, inner, facts, loc, rest)
            };
            Builder::new(func, inner, loc).yield_values(values);
            inner
        });
        let types: Vec<Type> = results.iter().map(|value| func.ty(*value).clone()).collect();
        let branch = func.append(region, Op::If { cond, then_region, else_region, rare: false }, types, loc);
        func.inst(branch).results.to_vec()
    }
}

/// Appends a test whether all these numbers are multiples of a power of two.
fn are_multiples(b: &mut Builder<'_>, numbers: &[(Value, usize)]) -> Value {
    let rests: Vec<Value> = numbers
        .iter()
        .map(|(number, of)| {
            let low_bits = b.index(*of as i128 - 1);
            b.binary(BinaryOp::And, *number, low_bits)
        })
        .collect();
    let all = rests.into_iter().reduce(|all, rest| b.binary(BinaryOp::Or, all, rest)).expect("there is a number");
    let zero = b.index(0);
    b.compare(CompareOp::Eq, all, zero)
}
