//! The ops that compute a scalar from the kernel's parameters.

use crate::ir::arena::{Inst, SideTable, Value};
use crate::ir::function::{Def, Function};
use crate::ir::ops::Op;

/// The most ops that are followed, so that each query takes bounded time.
const MOST_OPS: usize = 1024;

/// The ops that compute a scalar from the kernel's parameters, in order; `None` if `is_allowed` refuses one of them, if there are more than 1024, or if
/// the scalar is computed otherwise.
pub fn computation(func: &Function, value: Value, is_allowed: &dyn Fn(&Op) -> bool) -> Option<Vec<Inst>> {
    let mut ops: Vec<Inst> = Vec::new();
    let (mut seen, mut count): (SideTable<Value, bool>, usize) = (SideTable::new(), 0);
    // A value is visited twice: before its operands, and after them.
    let mut open = vec![(value, false)];
    while let Some((value, has_operands)) = open.pop() {
        let inst = match func.def(value) {
            Def::Param(..) if func.param_index(value).is_some() => continue,
            Def::Result(inst, 0) => inst,
            _ => return None,
        };
        if has_operands {
            ops.push(inst);
            continue;
        }
        if seen[value] {
            continue;
        }
        seen[value] = true;
        count += 1;
        let op = &func.inst(inst).op;
        if count > MOST_OPS || !is_allowed(op) || op.has_regions() || !func.ty(value).is_scalar() {
            return None;
        }
        open.push((value, true));
        let first = open.len();
        op.for_each_operand(&mut |operand| open.push((operand, false)));
        open[first..].reverse();
    }
    Some(ops)
}
