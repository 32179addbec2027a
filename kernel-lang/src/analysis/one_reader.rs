//! Loads that one thread performs for all threads that hold the element: the owner reads, and broadcasts where another holder uses the value.
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
//! An asynchronous copy is such a read, too: the owner fetches into its slots of the ring, and `fetched` broadcasts.

use crate::ir::{Function, Op, SideTable, Stored, Value};

/// Who reads an element that several threads hold.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Reader {
    /// Each of them: nobody writes it.
    #[default]
    Each,
    /// The owner, and the others have no use for it.
    Owner,
    /// The owner, who broadcasts.
    Broadcast,
}

/// The readers of what loads and `fetched` give. That of a ring is the one of what comes out of it.
pub fn compute(func: &Function) -> SideTable<Value, Reader> {
    let mut insts = func.all_insts();
    let bases = insts.iter().filter_map(|inst| match func.inst(*inst).op {
        Op::Store { base, .. } => Some(base),
        Op::Atomic { base, op, .. } => op.writes().then_some(base),
        _ => None,
    });
    let stored = Stored::through(func, bases);
    let is_written = |base: Value| stored.may_alias(func, base);
    let mut is_source_written: SideTable<Value, bool> = SideTable::new();
    for inst in &insts {
        if let Op::Fetch { ring, base, .. } = func.inst(*inst).op {
            is_source_written[ring] |= is_written(base);
        }
    }
    // Users come after what they use. Only values that loops carry do not, and those are taken to go anywhere.
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
            Op::Store { .. } | Op::Atomic { .. } => false,
            Op::Load { base, .. } => {
                let result = data.results[0];
                readers[result] = reader(is_written(*base), travels[result]);
                travels[result]
            }
            Op::Fetched { ring, .. } => {
                let result = data.results[0];
                readers[result] = reader(is_source_written[*ring], travels[result]);
                readers[*ring] = readers[*ring].max(readers[result]);
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

    /// The names of what is marked in a kernel that fetches from `%x` and from `%y` before `tail`.
    fn marked(tail: &str) -> Vec<String> {
        let text = format!(
            "kernel @k(%x: ptr<f32>, %y: ptr_mut<f32>, %z: ptr_mut<f32>) {{
                %i = arange {{start = 0, end = 32}} : tile<i64, [32]>
                %slot = const {{value = 0}} : i32
                %on = const {{value = true}} : bool
                %a = ring {{slots = 2}} : tile<f32, [32]>
                %b = ring {{slots = 2}} : tile<f32, [32]>
                fetch %a, %slot, %on, %x, %i {{align = 16}}
                fetch %b, %slot, %on, %y, %i {{align = 16}}
                fetch_group
                fetch_wait {{pending = 0}}
                %u = fetched %a, %slot : tile<f32, [32]>
                %v = fetched %b, %slot : tile<f32, [32]>
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
    fn of_asynchronous_copies_those_of_written_tensors_have_one_reader() {
        let sum = "%w = add %u, %v : tile<f32, [32]>
            %s = reduce %w (%l: f32, %r: f32) {
                %t = add %l, %r : f32
                yield %t
            } : f32
            store %z, %slot, %s";
        assert_eq!(marked(&format!("{sum}\nstore %y, %i, %u")), ["ring: Broadcast", "fetched: Broadcast"]);
        assert_eq!(marked(sum), [""; 0], "nobody writes what is read");
        let owner_alone = marked("%w = add %u, %v : tile<f32, [32]>\nstore %y, %i, %w");
        assert_eq!(owner_alone, ["ring: Owner", "fetched: Owner"], "the owner stores what it has read");
    }
}
