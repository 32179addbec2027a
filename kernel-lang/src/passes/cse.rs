//! Computes equal things once: an op is replaced by an earlier equal one that reaches it.
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
//! Loads are left alone: what they read may have changed.

use std::collections::HashMap;

use crate::ir::rewrite::{Changed, Substitution};
use crate::ir::{Function, Inst, Region, Value};

/// Runs the pass.
pub fn run(func: &mut Function) -> Changed {
    let mut cx = Cx { with: Substitution::new(), seen: HashMap::new(), changed: false };
    cx.region(func, func.body);
    cx.changed
}

struct Cx {
    with: Substitution,
    /// The text of an op and its result types to its results: a function of everything that makes two ops equal.
    seen: HashMap<String, Vec<Value>>,
    changed: bool,
}

impl Cx {
    fn region(&mut self, func: &mut Function, region: Region) {
        let mut added = Vec::new();
        let mut kept: Vec<Inst> = Vec::new();
        for inst in func.region(region).insts.clone() {
            func.inst_mut(inst).op.map_operands(&mut |value| self.with.get(value));
            let mut inner = Vec::new();
            func.inst(inst).op.for_each_region(&mut |region| inner.push(region));
            inner.into_iter().for_each(|region| self.region(func, region));
            let data = func.inst(inst);
            if !data.op.is_pure() || data.results.is_empty() {
                kept.push(inst);
                continue;
            }
            let types: Vec<_> = data.results.iter().map(|result| func.ty(*result)).collect();
            let key = format!("{:?} {types:?}", data.op);
            match self.seen.get(&key) {
                Some(known) => {
                    data.results.iter().zip(known).for_each(|(result, known)| self.with.insert(*result, *known));
                    self.changed = true;
                }
                None => {
                    self.seen.insert(key.clone(), data.results.clone());
                    added.push(key);
                    kept.push(inst);
                }
            }
        }
        *func.insts_mut(region) = kept;
        // What a region computes does not reach beyond it.
        added.iter().for_each(|key| {
            self.seen.remove(key);
        });
    }
}
