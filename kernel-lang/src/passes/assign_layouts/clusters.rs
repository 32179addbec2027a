//! Cluster limits: ops that the CTAs of a cluster cannot share.
//!
//! CTAs share a program's elementwise ops, its memory accesses and its reductions. Ops that move single elements between CTAs are rejected:
//! access to another CTA's shared memory is slow, and a kernel that needs it is better off with one larger CTA.

use crate::analysis::uniform_loads;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::ir::rewrite::use_counts;
use crate::ir::{AtomicOp, Function, Handle, Inst, Op, Reader, SideTable, Value};
use crate::layout::{Conversion, Layout, Level, XorTable, known_conversion};

/// Reports the ops of a kernel with layouts that its CTAs cannot share.
pub(super) fn check(func: &Function, num_ctas: u32) -> Result<(), Diagnostics> {
    let mut diagnostics = Diagnostics::new();
    let readers = uniform_loads::compute(func);
    let uses = use_counts(func);
    for inst in func.all_insts() {
        if let Some(what) = obstacle(func, &readers, &uses, inst) {
            let message = format!("{what} between the CTAs of a program, of which `num_ctas = {num_ctas}` makes several");
            let help = "leave `num_ctas` out, or keep such ops out of a kernel of several CTAs: they share elementwise ops, accesses and reductions";
            diagnostics.push(Diagnostic::new(func.inst(inst).loc, message).help(help));
        }
    }
    if diagnostics.is_empty() { Ok(()) } else { Err(diagnostics) }
}

/// Is there a convert that moves no element of so many bytes to another CTA?
pub(super) fn is_convertible(from: &Layout, to: &Layout, bytes: usize) -> bool {
    let crosses = |tables: &[&XorTable]| tables.iter().any(|table| table.block.iter().any(|value| *value != 0));
    match known_conversion(from, to, 8 * bytes as u32).as_ref() {
        Ok(Conversion::Shuffle(plan)) => !crosses(&[&plan.source_lane, &plan.send, &plan.receive]),
        Ok(Conversion::Shared(plan)) => !crosses(&[&plan.store.thread, &plan.load.thread]),
        Ok(_) => true,
        Err(_) => false,
    }
}

fn obstacle(func: &Function, readers: &SideTable<Value, Reader>, uses: &[u32], inst: Inst) -> Option<String> {
    let data = func.inst(inst);
    let layout = |value| func.layouts[value].as_ref();
    let is_spread = |layout: &Layout| layout.flat_bases(Level::Block).iter().any(|basis| *basis != 0);
    let is_spread_along =
        |layout: &Layout, axis: usize| (0..layout.bits(Level::Block)).any(|bit| layout.basis_along(Level::Block, bit, axis) != 0);
    let is_shared = |value| layout(value).is_none_or(|layout| layout.free_bits().block != 0);
    let name = data.op.name();
    match &data.op {
        Op::Gather { src: x, .. } | Op::Histogram { x, .. } if is_spread(layout(*x)?) => Some(format!("`{name}` moves elements")),
        Op::Flip { x, axis } | Op::Butterfly { x, axis, .. } if is_spread_along(layout(*x)?, *axis as usize) => {
            Some(format!("`{}` moves elements", if matches!(data.op, Op::Flip { .. }) { name } else { "sort" }))
        }
        Op::Scan { inputs, axis, .. } if is_spread_along(layout(inputs[0])?, *axis as usize) => Some("a scan cannot go on".to_string()),
        // Only the CTA that performed the atomic knows the old value.
        Op::Atomic { op, offset, .. } if *op != AtomicOp::Store && data.results.iter().any(|result| uses[result.index()] > 0) => {
            is_shared(*offset).then(|| "what an atomic finds is not known".to_string())
        }
        // The owner reads, and broadcasts only to the threads of its own CTA.
        Op::Load { .. } | Op::LocalLoad { .. } if readers[data.results[0]] == Reader::Broadcast => {
            is_shared(data.results[0]).then(|| "a load of a tensor that the kernel also writes cannot be broadcast".to_string())
        }
        Op::Convert { x } => {
            let (from, to) = (layout(*x)?, layout(data.results[0])?);
            (!is_convertible(from, to, func.ty(*x).dtype().bytes())).then(|| "this access needs elements that move".to_string())
        }
        _ => None,
    }
}
