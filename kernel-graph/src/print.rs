//! The text of a graph.
//!
//! ```text
//! graph mlp(x: f32[batch, 64]) where batch in 1..=1024
//!   %0 = mylib::silu(x = %x) : f32[batch, 64] {
//!     %1 = alloc : f32[batch, 64]
//!     %0 = launch silu_elements<BLOCK = 1024> [cdiv(64*batch, 1024), 1, 1] (x = %x, y = %1, n = 64*batch) : f32[batch, 64]
//!   }
//!   return %0
//! ```
//!
//! At [`Level::Ops`], the lines in braces are left out.

use std::fmt;

use kernel_package::{Node, NodeOp};
use kernel_runtime::ops::OpValue;
use kernel_runtime::ops::recorder::{RecordedArg, RecordedLaunch, Value};

use crate::graph::{Call, Graph, Level};
use crate::uses::Uses;

/// What the text has at one level of braces.
pub(crate) enum Item<'g> {
    Node(&'g Node),
    /// A call, the values that it defines for nodes outside of it, and what it contains.
    Call(&'g Call, Vec<Value>, Vec<Item<'g>>),
}

/// The names of values: those of inputs, `c` and a number for constants, and numbers for results, calls before what they contain.
pub(crate) struct Names(Vec<String>);

impl Names {
    /// The names for the text of these items.
    pub(crate) fn new(graph: &Graph, items: &[Item<'_>], level: Level) -> Names {
        let mut names = vec![String::new(); graph.plan.types.len()];
        names.iter_mut().zip(&graph.plan.inputs).for_each(|(name, input)| name.clone_from(&input.name));
        for (constant, name) in graph.plan.constants.iter().zip(graph.plan.constant_names()) {
            names[constant.value.0 as usize] = name;
        }
        let (mut names, mut next) = (Names(names), 0);
        names.number(items, level, &mut next);
        names
    }

    fn number(&mut self, items: &[Item<'_>], level: Level, next: &mut usize) {
        for item in items {
            let (Item::Node(Node { results, .. }) | Item::Call(_, results, _)) = item;
            for result in results {
                let name = &mut self.0[result.0 as usize];
                if name.is_empty() {
                    *name = next.to_string();
                    *next += 1;
                }
            }
            if let (Item::Call(_, _, inner), Level::Kernels) = (item, level) {
                self.number(inner, level, next);
            }
        }
    }

    /// The name of a value. Dead code removal may have removed the definition of an op's argument.
    pub(crate) fn of(&self, value: Value) -> String {
        match &*self.0[value.0 as usize] {
            "" => "unused".to_owned(),
            name => format!("%{name}"),
        }
    }

    pub(crate) fn list(&self, values: &[Value]) -> String {
        values.iter().map(|value| self.of(*value)).collect::<Vec<_>>().join(", ")
    }
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

/// The text of all nodes, with those of calls in braces.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Level::Kernels))
    }
}

impl Graph {
    /// The graph as text.
    pub fn text(&self, level: Level) -> String {
        let items = self.items(level);
        let names = Names::new(self, &items, level);
        let inputs: Vec<String> = self.plan.inputs.iter().map(|input| format!("{}: {}", input.name, input.ty)).collect();
        let dims: Vec<String> = self.dims().iter().filter_map(kernel_runtime::Dim::declaration).collect();
        let ranges = if dims.is_empty() { String::new() } else { format!(" where {}", dims.join(", ")) };
        let mut text = format!("graph {}({}){ranges}\n", self.plan.name, inputs.join(", "));
        for constant in &self.plan.constants {
            text.push_str(&format!("  {} = constant : {}\n", names.of(constant.value), self.ty(constant.value)));
        }
        self.lines(&items, &names, level, 1, &mut text);
        text.push_str(&format!("  return {}\n", names.list(&self.plan.outputs)));
        text
    }

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

    fn lines(&self, items: &[Item<'_>], names: &Names, level: Level, depth: usize, text: &mut String) {
        let indent = "  ".repeat(depth);
        for item in items {
            match item {
                Item::Node(node) => text.push_str(&format!("{indent}{}\n", self.line(&node.results, &self.operation(node, names), names))),
                Item::Call(call, results, inner) => {
                    let line = self.line(results, &call_text(call, names), names);
                    if level == Level::Ops {
                        text.push_str(&format!("{indent}{line}\n"));
                        continue;
                    }
                    text.push_str(&format!("{indent}{line} {{\n"));
                    self.lines(inner, names, level, depth + 1, text);
                    text.push_str(&format!("{indent}}}\n"));
                }
            }
        }
    }

    fn line(&self, results: &[Value], operation: &str, names: &Names) -> String {
        let types: Vec<String> = results.iter().map(|result| self.ty(*result).to_string()).collect();
        match results {
            [] => operation.to_owned(),
            results => format!("{} = {operation} : {}", names.list(results), types.join(", ")),
        }
    }

    fn operation(&self, node: &Node, names: &Names) -> String {
        match &node.op {
            NodeOp::Alloc { zeroed: false } => "alloc".to_owned(),
            NodeOp::Alloc { zeroed: true } => "zeros".to_owned(),
            NodeOp::View { of, offset } => format!("view {} at {offset}", names.of(*of)),
            NodeOp::Launch(launch) => launch_text(launch, names),
        }
    }
}

fn call_text(call: &Call, names: &Names) -> String {
    let args: Vec<String> =
        call.args.iter().map(|(name, value)| format!("{name} = {}", op_value(value, &|value| names.of(value)))).collect();
    format!("{}({})", call.def.name, args.join(", "))
}

fn launch_text(launch: &RecordedLaunch, names: &Names) -> String {
    let parameters = launch.parameters();
    let generics = if parameters.is_empty() { String::new() } else { format!("<{parameters}>") };
    let grid = launch.grid().each_ref().map(ToString::to_string).join(", ");
    let args: Vec<String> = launch.args().map(|(name, arg)| format!("{name} = {}", launch_value(arg, &|value| names.of(value)))).collect();
    let configs = match launch.grids().count() {
        1 => String::new(),
        count => format!(" of {count} configurations"),
    };
    format!("launch {}{generics} [{grid}]{configs} ({})", launch.kernel(), args.join(", "))
}
