//! Removes operations whose results no output needs, and constants that no operation needs.
//!
//! ```text
//! before                                                       after
//!   %0 = alloc : f32[n]                                          %0 = alloc : f32[n]
//!   %1 = launch double<..> [..] (x = %x, y = %0) : f32[n]        %1 = launch double<..> [..] (x = %x, y = %0) : f32[n]
//!   %2 = alloc : f32[n]
//!   %3 = launch double<..> [..] (x = %1, y = %2) : f32[n]
//!   return %1                                                    return %1
//! ```
//!
//! A call of an opaque op that writes a tensor stays. One that writes none is a function of its arguments, as an op in PyTorch is: what else its body does,
//! such as printing, is no reason to run it.
//!
//! The pass also removes a call of an op if it removes all nodes of the call. It does not change the numbers of values; the printer assigns names.

use kernel_package::NodeOp;

use crate::graph::Graph;

pub(crate) fn run(graph: &mut Graph) {
    let mut needed = vec![false; graph.plan.types.len()];
    graph.plan.outputs.iter().for_each(|value| needed[value.0 as usize] = true);
    // A use comes after the definition, so one walk from the end sees all uses first.
    let mut kept = vec![false; graph.plan.nodes.len()];
    for (kept, node) in kept.iter_mut().zip(&graph.plan.nodes).rev() {
        let has_effect = matches!(&node.op, NodeOp::Extern(call) if call.written().next().is_some());
        *kept = has_effect || node.results.iter().any(|result| needed[result.0 as usize]);
        if *kept {
            node.op.each_operand(&mut |value, _| needed[value.0 as usize] = true);
        }
    }
    let mut flags = kept.iter();
    graph.plan.nodes.retain(|_| flags.next() == Some(&true));
    // The number of kept nodes in front of each one, and of all.
    let new_index: Vec<usize> = std::iter::once(0)
        .chain(kept.iter().scan(0, |count, kept| {
            *count += usize::from(*kept);
            Some(*count)
        }))
        .collect();
    for call in &mut graph.calls {
        call.nodes = new_index[call.nodes.start]..new_index[call.nodes.end];
    }
    graph.calls.retain(|call| !call.nodes.is_empty());
    graph.plan.constants.retain(|constant| needed[constant.value.0 as usize]);
}
