//! Uniform loads: one thread, the owner, loads for all threads that hold the element, and broadcasts the value if another holder uses it.
//!
//! A tensor that the kernel also writes can change while the kernel runs: another program stores to it, or a thread of this program that is ahead.
//! If every holder of an element read it separately, the holders could see different values, and a branch on a scalar could diverge.
//!
//! ```text
//! %c = load %flags, %i        the owner reads and broadcasts: a branch uses the value
//! if %c == 0 { store %flags, %i, 1 }
//!
//! %v = load %x, %at           the owner reads: it is the only holder whose value counts, because it stores
//! store %x, %at, %v * 2.0
//! ```
//!
//! An asynchronous copy can be a uniform load, too: the owner copies into its slots of the async buffer, and `local_load` broadcasts.

use crate::ir::{Function, Op, Reader, SideTable, Stored, Value};

/// The readers of the results of loads and of `local_load`. That of an async buffer is the owner if the owner reads for one of its `local_load`s.
pub fn compute(func: &Function) -> SideTable<Value, Reader> {
    let mut insts = func.all_insts();
    let stored = Stored::by(func, &insts);
    let is_written = |base: Value| stored.may_alias(func, base);
    let mut is_source_written: SideTable<Value, bool> = SideTable::new();
    for inst in &insts {
        if let Op::AsyncCopy { buffer, base, .. } = func.inst(*inst).op {
            is_source_written[buffer] |= is_written(base);
        }
    }
    // In reverse order, users come before the values that they use. Values that loops carry are the exception: they count as used by other
    // holders.
    insts.reverse();
    let mut travels: SideTable<Value, bool> = SideTable::new();
    let mut readers: SideTable<Value, Reader> = SideTable::new();
    let reader = |is_written: bool, travels: bool| match (is_written, travels) {
        (false, _) => Reader::Each,
        (true, false) => Reader::Owner,
        (true, true) => Reader::Broadcast,
    };
    for inst in insts {
        let data = func.inst(inst);
        let goes_on = match &data.op {
            // Every access to an element is performed by the same holder, the owner.
            Op::Store { .. } | Op::Atomic { .. } | Op::IssueLoads { .. } => false,
            Op::Load { base, volatile, .. } => {
                let result = data.results[0];
                // Another kernel may write what a volatile load reads.
                readers[result] = if *volatile { Reader::Broadcast } else { reader(is_written(*base), travels[result]) };
                travels[result]
            }
            Op::LocalLoad { buffer, .. } => {
                let result = data.results[0];
                readers[result] = reader(is_source_written[*buffer], travels[result]);
                if readers[result] != Reader::Each {
                    readers[*buffer] = Reader::Owner;
                }
                travels[result]
            }
            Op::Unary { .. }
            | Op::Binary { .. }
            | Op::Compare { .. }
            | Op::Fma { .. }
            | Op::Select { .. }
            | Op::Cast { .. }
            | Op::Bitcast { .. }
            | Op::ExpandDims { .. }
            | Op::Reshape { .. } => data.results.iter().any(|result| travels[*result]),
            _ => true,
        };
        if goes_on {
            data.op.for_each_operand(&mut |value| travels[value] = true);
        }
    }
    readers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;

    /// The values of a kernel that are not read by each holder. The kernel copies from `%x` and from `%y` asynchronously before `tail`.
    fn marked(tail: &str) -> Vec<String> {
        let text = format!(
            "kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %z: ptr_mut<f32>) {{
                %i = arange {{start = 0, end = 32}} : tile<i64, [32]>
                %slot = const {{value = 0}} : i32
                %on = const {{value = true}} : bool
                %a = async_buffer {{slots = 2}} : tile<f32, [32]>
                %b = async_buffer {{slots = 2}} : tile<f32, [32]>
                async_copy %a, %slot, %on, %x, %i {{align = 16}}
                async_copy %b, %slot, %on, %y, %i {{align = 16}}
                async_commit_group
                async_wait {{pending = 0}}
                %u = local_load %a, %slot : tile<f32, [32]>
                %v = local_load %b, %slot : tile<f32, [32]>
                {tail}
                return
            }}"
        );
        let func = parse(&text).expect("it is well formed");
        let marked = compute(&func);
        let results: Vec<Value> = func.all_insts().into_iter().flat_map(|inst| func.inst(inst).results.clone()).collect();
        let names = results.into_iter().filter(|value| marked[*value] != Reader::Each).map(|value| {
            let op = func.def_op(value).expect("an op made it").name();
            format!("{op}: {:?}", marked[value])
        });
        names.collect()
    }

    #[test]
    fn asynchronous_copies_of_written_tensors_have_one_reading_thread() {
        let sum = "%w = add %u, %v : tile<f32, [32]>
            %s = reduce %w (%l: f32, %r: f32) {
                %t = add %l, %r : f32
                yield %t
            } : f32
            store %z, %slot, %s";
        assert_eq!(marked(&format!("{sum}\nstore %y, %i, %u")), ["async_buffer: Owner", "local_load: Broadcast"]);
        assert_eq!(marked(sum), [""; 0], "nobody writes what is read");
        let owner_alone = marked("%w = add %u, %v : tile<f32, [32]>\nstore %y, %i, %w");
        assert_eq!(owner_alone, ["async_buffer: Owner", "local_load: Owner"], "the owner stores the value that it loaded");
    }
}
