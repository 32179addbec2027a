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
//! The numbers of values stay as they are; the text numbers them anew.

use crate::graph::Graph;

pub(crate) fn run(graph: &mut Graph) {
    let mut needed = vec![false; graph.types.len()];
    graph.outputs.iter().for_each(|value| needed[value.0 as usize] = true);
    // A use comes after the definition, so one walk from the end sees all uses first.
    let mut nodes = std::mem::take(&mut graph.nodes);
    nodes.reverse();
    nodes.retain(|node| {
        let is_needed = node.results.iter().any(|result| needed[result.0 as usize]);
        if is_needed {
            node.op.each_operand(&mut |value, _| needed[value.0 as usize] = true);
        }
        is_needed
    });
    nodes.reverse();
    graph.nodes = nodes;
    graph.constants.retain(|constant| needed[constant.value.0 as usize]);
}
