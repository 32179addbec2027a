//! Definitions and last uses of values, computed once for all calls of a graph.

use std::collections::HashSet;

use kernel_runtime::ops::recorder::Value;

use crate::graph::{Call, Graph};

/// For each value, the index of the node that defines it and of the last one that uses it.
pub(crate) struct Uses {
    /// None for inputs and constants.
    definitions: Vec<Option<usize>>,
    /// The number of nodes if the value is an output. None without uses.
    last: Vec<Option<usize>>,
}

impl Uses {
    pub(crate) fn new(graph: &Graph) -> Uses {
        let mut uses = Uses { definitions: vec![None; graph.plan.types.len()], last: vec![None; graph.plan.types.len()] };
        for (number, node) in graph.plan.nodes.iter().enumerate() {
            node.op.each_operand(&mut |value, _| uses.last[value.0 as usize] = Some(number));
            node.results.iter().for_each(|result| uses.definitions[result.0 as usize] = Some(number));
        }
        graph.plan.outputs.iter().for_each(|output| uses.last[output.0 as usize] = Some(graph.plan.nodes.len()));
        uses
    }

    /// Whether a node of the call defines the value.
    pub(crate) fn is_inside(&self, value: Value, call: &Call) -> bool {
        self.definitions[value.0 as usize].is_some_and(|definition| call.nodes.contains(&definition))
    }

    /// The values that a call defines, and that it returned or something outside of it uses.
    pub(crate) fn visible_results(&self, graph: &Graph, call: &Call) -> Vec<Value> {
        let mut visible: Vec<Value> = call.results.iter().copied().filter(|value| self.is_inside(*value, call)).collect();
        let returned: HashSet<Value> = visible.iter().copied().collect();
        let results = graph.plan.nodes[call.nodes.clone()].iter().flat_map(|node| &node.results);
        let is_used_outside = |value: Value| self.last[value.0 as usize].is_some_and(|last| last >= call.nodes.end);
        visible.extend(results.filter(|value| is_used_outside(**value) && !returned.contains(value)));
        visible
    }
}
