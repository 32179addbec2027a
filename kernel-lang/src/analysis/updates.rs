//! Updates: tensors that a kernel reads and writes, so that a second run on the same arguments gives another result.
//!
//! ```text
//! %1 = load %y, %0 ..          y is read ..
//! %2 = add %1, %x
//! store %y, %0, %2             .. and written: an update
//! %3 = atomic %z, %0, %x {op = add}
//!                              %z is read and written by one op
//! ```
//!
//! The analysis ignores which elements are read and which are written. So a tensor whose halves have different uses is an update, too.

use crate::ir::{AccessKind, AtomicOp, Function};

/// For each tensor parameter, in order: is the tensor read and written?
pub fn compute(func: &Function) -> Vec<bool> {
    let uses = func.params.iter().zip(uses(func));
    uses.filter(|(param, _)| func.ty(param.value).is_pointer()).map(|(_, (read, written))| read && written).collect()
}

/// For each parameter, in order: is it a tensor that is read, and is it one that is written?
pub fn uses(func: &Function) -> Vec<(bool, bool)> {
    let mut uses = vec![(false, false); func.params.len()];
    for access in func.all_insts().into_iter().filter_map(|inst| func.inst(inst).op.access()) {
        let Some(tensor) = func.param_index(access.base) else { continue };
        let (read, write) = match access.kind {
            AccessKind::Load | AccessKind::Atomic(AtomicOp::Load) => (true, false),
            AccessKind::Store | AccessKind::Atomic(AtomicOp::Store) => (false, true),
            AccessKind::Atomic(_) => (true, true),
        };
        uses[tensor] = (uses[tensor].0 || read, uses[tensor].1 || write);
    }
    uses
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_and_written_is_an_update() {
        let text = "
            kernel @k<const N: i64>(%x: ptr<f32>, %copy: ptr_mut<f32>, %sum: ptr_mut<f32>, %n: i64, %count: ptr_mut<i32>, %flag: ptr_mut<i32>) {
                %at = arange {start = 0, end = N} : tile<i64, [N]>
                %value = load %x, %at : tile<f32, [N]>
                store %copy, %at, %value
                %on = lt %n, %n : bool
                if %on () {
                    %old = load %sum, %at : tile<f32, [N]>
                    store %sum, %at, %old
                    yield
                } () {
                    yield
                }
                %one = const {value = 1} : i32
                %was = atomic %count, %n, %one {op = \"add\"} : i32
                %is = atomic %flag, %n {op = \"load\"} : i32
                return
            }";
        let func = crate::ir::parse(text).expect("it parses");
        assert_eq!(compute(&func), [false, false, true, true, false]);
        let [none, read, written, both] = [(false, false), (true, false), (false, true), (true, true)];
        assert_eq!(uses(&func), [read, written, both, none, both, read]);
    }
}
