//! The rules of graphs. Each pass leaves a graph that follows them.

use kernel_package::Violation;

use crate::error::{GraphError, Result};
use crate::graph::Graph;

/// Checks the rules of plans, and that calls have nodes that exist.
pub(crate) fn run(graph: &Graph) -> Result<()> {
    let invalid = |reason: String| Err(GraphError::Invalid { reason });
    graph.plan.verify().or_else(|violation| invalid(violation.reason))?;
    for call in &graph.calls {
        if call.nodes.start > call.nodes.end || call.nodes.end > graph.plan.nodes.len() {
            return invalid(format!("a call of `{}` has nodes that do not exist", call.def.name));
        }
    }
    Ok(())
}

/// Checks that the inputs determine all dims of operations.
pub(crate) fn dims(graph: &Graph) -> Result<()> {
    graph.plan.verify_dims().map_err(|Violation { reason, location }| match location {
        Some(location) => GraphError::NodeDim { error: reason, location },
        None => GraphError::Invalid { reason },
    })
}
