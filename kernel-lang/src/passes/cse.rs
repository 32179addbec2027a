//! Common subexpression elimination: replaces an op by an earlier equal op that dominates it.
//!
//! ```text
//! ; before
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = mul %n, %n : i64
//!     %1 = mul %n, %n : i64
//!     store %y, %0, %1
//!     return
//! }
//! ; after
//! kernel @k(%y: ptr_mut<i64>, %n: i64) {
//!     %0 = mul %n, %n : i64
//!     store %y, %0, %0
//!     return
//! }
//! ```
//!
//! Loads are left alone: the memory that they read may have changed.

use rustc_hash::FxHashMap;

use crate::ir::rewrite::{Changed, Substitution};
use crate::ir::{Function, Inst, InstData, Op, Region, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let buckets = func.value_count().next_power_of_two().max(2);
    let mut cx = Cx { with: Substitution::new(), seen: vec![Vec::new(); buckets], changed: false };
    cx.region(func, func.body);
    cx.changed
}

struct Cx {
    with: Substitution,
    /// The ops that dominate the current op, in hash buckets.
    seen: Vec<Vec<Inst>>,
    changed: bool,
}

impl Cx {
    fn region(&mut self, func: &mut Function, region: Region) {
        let mut added = Vec::new();
        let mut kept: Vec<Inst> = Vec::new();
        for inst in func.region(region).insts.clone() {
            if !self.with.is_empty() {
                func.inst_mut(inst).op.map_operands(&mut |value| self.with.get(value));
            }
            let mut inner = Vec::new();
            func.inst(inst).op.for_each_region(&mut |region| inner.push(region));
            inner.into_iter().for_each(|region| self.region(func, region));
            let data = func.inst(inst);
            if !data.op.is_pure() || data.results.is_empty() {
                kept.push(inst);
                continue;
            }
            let bucket = self.bucket(&data.op);
            match self.seen[bucket].iter().find(|known| is_same(func, func.inst(**known), data)) {
                Some(known) => {
                    data.results.iter().zip(&func.inst(*known).results).for_each(|(result, known)| self.with.insert(*result, *known));
                    self.changed = true;
                }
                None => {
                    self.seen[bucket].push(inst);
                    added.push(bucket);
                    kept.push(inst);
                }
            }
        }
        *func.insts_mut(region) = kept;
        // A value of a region is not visible after the region.
        added.into_iter().for_each(|bucket| {
            self.seen[bucket].pop();
        });
    }

    /// The hash bucket of an op. Equal ops share a bucket, and other ops seldom do.
    fn bucket(&self, op: &Op) -> usize {
        // Fibonacci hashing: the high bits of the product depend on all bits of the number.
        let spread = op.hash().wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (spread >> (64 - self.seen.len().trailing_zeros())) as usize
    }
}

/// Do two ops compute the same value?
fn is_same(func: &Function, one: &InstData, other: &InstData) -> bool {
    let is_same_op = match (&one.op, &other.op) {
        (Op::Reduce { combine: known, .. }, Op::Reduce { combine, .. }) | (Op::Scan { combine: known, .. }, Op::Scan { combine, .. }) => {
            let mut renamed = other.op.clone();
            renamed.map_regions(&mut |_| *known);
            one.op == renamed && combines_alike(func, *known, *combine)
        }
        (one, other) => one.is_same(other),
    };
    is_same_op
        && one.results.len() == other.results.len()
        && one.results.iter().zip(&other.results).all(|(a, b)| func.ty(*a) == func.ty(*b))
}

/// Do two regions of reductions of the same values consist of the same ops?
fn combines_alike(func: &Function, one: Region, other: Region) -> bool {
    let (one, other) = (func.region(one), func.region(other));
    let mut with: FxHashMap<Value, Value> = other.params.iter().copied().zip(one.params.iter().copied()).collect();
    one.insts.len() == other.insts.len()
        && one.insts.iter().zip(&other.insts).all(|(one, other)| {
            let (one, mut other) = (func.inst(*one), func.inst(*other).clone());
            other.op.map_operands(&mut |value| with.get(&value).copied().unwrap_or(value));
            with.extend(other.results.iter().copied().zip(one.results.iter().copied()));
            is_same(func, one, &other)
        })
}
