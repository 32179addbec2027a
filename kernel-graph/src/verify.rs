//! The rules of graphs. Each pass leaves a graph that follows them.

use kernel_runtime::ops::recorder::Value;

use crate::error::{GraphError, Result};
use crate::graph::{Graph, NodeOp};

/// Checks that each value has a type and one definition in front of its uses, and that a launch defines a value for each tensor that it writes.
pub(crate) fn run(graph: &Graph) -> Result<()> {
    let invalid = |reason: String| Err(GraphError::Invalid { reason });
    let mut defined = vec![false; graph.types.len()];
    let inputs = defined.iter_mut().zip(&graph.inputs).zip(&graph.types);
    for ((defined, input), ty) in inputs {
        if input.ty != *ty {
            return invalid(format!("input `{}` has another type than its value", input.name));
        }
        *defined = true;
    }
    for constant in &graph.constants {
        match defined.get_mut(constant.value.0 as usize) {
            Some(defined) if !*defined => *defined = true,
            _ => return invalid(format!("constant value {} is defined twice, or has no type", constant.value.0)),
        }
    }
    let is_defined = |defined: &[bool], value: Value| defined.get(value.0 as usize).copied().unwrap_or(false);
    for (number, node) in graph.nodes.iter().enumerate() {
        let (mut undefined, mut written) = (None, 0);
        node.op.each_operand(&mut |value, writes| {
            written += usize::from(writes);
            if !is_defined(&defined, value) {
                undefined = Some(value);
            }
        });
        if let Some(Value(value)) = undefined {
            return invalid(format!("node {number} uses value {value} in front of its definition"));
        }
        let expected = if matches!(node.op, NodeOp::Launch(_)) { written } else { 1 };
        if node.results.len() != expected {
            return invalid(format!("node {number} has {} results instead of {expected}", node.results.len()));
        }
        for result in &node.results {
            match defined.get_mut(result.0 as usize) {
                Some(defined) if !*defined => *defined = true,
                _ => return invalid(format!("node {number} defines value {} again, or without a type", result.0)),
            }
        }
    }
    match graph.outputs.iter().find(|value| !is_defined(&defined, **value)) {
        Some(value) => invalid(format!("output value {} has no definition", value.0)),
        None => Ok(()),
    }
}
