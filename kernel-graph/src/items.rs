//! The items of a graph at one level of detail: nodes, and calls with the nodes inside them. The text, the table and the drawing of a graph print them.

use kernel_package::Node;
use kernel_runtime::ops::OpValue;
use kernel_runtime::ops::recorder::{RecordedArg, Value};

use crate::graph::{Call, Graph, Level};
use crate::uses::Uses;

/// What is at one level of braces.
pub(crate) enum Item<'g> {
    Node(&'g Node),
    /// A call, the values that it defines for nodes outside of it, and what it contains.
    Call(&'g Call, Vec<Value>, Vec<Item<'g>>),
}

/// The text of an argument of an op, with the names of values.
pub(crate) fn op_value(value: &OpValue, name: &dyn Fn(Value) -> String) -> String {
    match value {
        OpValue::Tensor(value) => name(*value),
        OpValue::Real(tensor) => tensor.to_string(),
        OpValue::List(values) => format!("[{}]", values.iter().map(|value| op_value(value, name)).collect::<Vec<_>>().join(", ")),
        OpValue::Text(text) => text.clone(),
    }
}

/// The text of an argument of a launch, with the names of values.
pub(crate) fn launch_value(arg: &RecordedArg, name: &dyn Fn(Value) -> String) -> String {
    match arg {
        RecordedArg::Tensor { value, .. } => name(*value),
        RecordedArg::Dim { dim, .. } => dim.to_string(),
        RecordedArg::Word { text, .. } => text.clone(),
    }
}

impl Graph {
    /// The nodes and calls, each call with what it contains. At the level of ops, a call contains nothing.
    pub(crate) fn items(&self, level: Level) -> Vec<Item<'_>> {
        self.items_of(0..self.plan.nodes.len(), &self.calls, level, &Uses::new(self))
    }

    /// The items of a range of nodes, and of calls in it.
    fn items_of<'g>(&'g self, nodes: std::ops::Range<usize>, calls: &'g [Call], level: Level, uses: &Uses) -> Vec<Item<'g>> {
        let (mut items, mut at, mut rest) = (Vec::new(), nodes.start, calls);
        while let Some((call, after)) = rest.split_first() {
            items.extend(self.plan.nodes[at..call.nodes.start].iter().map(Item::Node));
            // The calls that begin before this one ends are inside of it.
            let inside = after.iter().take_while(|inner| inner.nodes.start < call.nodes.end).count();
            let (inner, outer) = after.split_at(inside);
            let contents = if level == Level::Kernels { self.items_of(call.nodes.clone(), inner, level, uses) } else { Vec::new() };
            items.push(Item::Call(call, uses.visible_results(self, call), contents));
            (at, rest) = (call.nodes.end, outer);
        }
        items.extend(self.plan.nodes[at..nodes.end].iter().map(Item::Node));
        items
    }
}
