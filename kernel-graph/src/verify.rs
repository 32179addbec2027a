//! The rules of graphs. Each pass leaves a graph that follows them.

use kernel_runtime::Dim;
use kernel_runtime::ops::recorder::{RecordedArg, Value};

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
    for call in &graph.calls {
        if call.nodes.start > call.nodes.end || call.nodes.end > graph.nodes.len() {
            return invalid(format!("a call of `{}` has nodes that do not exist", call.def.name));
        }
    }
    match graph.outputs.iter().find(|value| !is_defined(&defined, **value)) {
        Some(value) => invalid(format!("output value {} has no definition", value.0)),
        None => Ok(()),
    }
}

/// Checks that the inputs determine all dims of operations.
pub(crate) fn dims(graph: &Graph) -> Result<()> {
    let known = graph.dims();
    for node in &graph.nodes {
        let check = |dim: &Dim| {
            let undetermined = dim.named().into_iter().find(|named| !known.contains(named));
            let error = match (dim.bounds(), undetermined) {
                (Err(error), _) => error.to_string(),
                (Ok(_), Some(named)) => format!("no input determines dim `{named}`"),
                (Ok(_), None) => return Ok(()),
            };
            Err(GraphError::NodeDim { error, location: node.location })
        };
        node.results.iter().flat_map(|result| &graph.ty(*result).dims).try_for_each(check)?;
        match &node.op {
            NodeOp::Alloc { .. } => {}
            NodeOp::View { offset, .. } => check(offset)?,
            NodeOp::Launch(launch) => {
                launch.grid().iter().try_for_each(check)?;
                for (_, arg) in launch.args() {
                    if let RecordedArg::Dim { dim, .. } = arg {
                        check(dim)?;
                    }
                }
            }
        }
    }
    Ok(())
}
