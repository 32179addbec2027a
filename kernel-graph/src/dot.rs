//! A graph in the language of Graphviz.
//!
//! ```text
//! digraph "silu" {
//!   node [shape = box, fontname = "monospace"];
//!   i0 [label = "x", shape = ellipse];
//!   subgraph cluster0 {
//!     label = "mylib::silu";
//!     n0 [label = "alloc"];
//!     n1 [label = "silu_elements<BLOCK = 1024>\n[cdiv(n, 1024), 1, 1]"];
//!   }
//!   return [label = "return", shape = ellipse];
//!   i0 -> n1 [label = "f32[n]"];
//!   n0 -> n1 [label = "f32[n]"];
//!   n1 -> return [label = "f32[n]"];
//! }
//! ```

use std::collections::HashSet;
use std::fmt::Write as _;

use kernel_runtime::ops::recorder::{RecordedLaunch, Value};

use crate::graph::{Call, Graph, Level};
use crate::items::Item;
use kernel_package::{Node, NodeOp};

/// The text of the nodes and edges. Both depend on the graph only, not on addresses or on the order of a map.
struct Cx<'g> {
    graph: &'g Graph,
    /// For each value, the node that defines it.
    sources: Vec<String>,
    nodes: String,
    edges: String,
    clusters: usize,
}

impl Graph {
    /// The graph in the language of Graphviz: `dot -Tsvg` draws it. An edge is a value, with its type. At [`Level::Ops`] a call of an op is a node, and at
    /// [`Level::Kernels`] a frame around its nodes.
    pub fn dot(&self, level: Level) -> String {
        let mut cx = Cx {
            graph: self,
            sources: vec![String::new(); self.plan.types.len()],
            nodes: String::new(),
            edges: String::new(),
            clusters: 0,
        };
        for (number, input) in self.plan.inputs.iter().enumerate() {
            cx.sources[number] = format!("i{number}");
            let _ = writeln!(cx.nodes, "  i{number} [label = {}, shape = ellipse];", quoted(&input.name));
        }
        for (number, (constant, name)) in self.plan.constants.iter().zip(self.plan.constant_names()).enumerate() {
            cx.sources[constant.value.0 as usize] = format!("c{number}");
            let _ = writeln!(cx.nodes, "  c{number} [label = {}, shape = ellipse];", quoted(&name));
        }
        let mut number = 0;
        cx.items(&self.items(level), level, 1, &mut number);
        cx.nodes.push_str("  return [label = \"return\", shape = ellipse];\n");
        for output in &self.plan.outputs {
            cx.edge(*output, "return");
        }
        format!("digraph {} {{\n  node [shape = box, fontname = \"monospace\"];\n{}{}}}\n", quoted(&self.plan.name), cx.nodes, cx.edges)
    }
}

impl Cx<'_> {
    /// Adds items. `number` is the index of the first node in them, and then of the first one after them.
    fn items(&mut self, items: &[Item<'_>], level: Level, depth: usize, number: &mut usize) {
        let indent = "  ".repeat(depth);
        for item in items {
            match item {
                Item::Node(node) => {
                    let name = format!("n{number}");
                    let _ = writeln!(self.nodes, "{indent}{name} [label = {}];", quoted(&label(node)));
                    self.connect(std::slice::from_ref(*node), &name);
                    *number += 1;
                }
                Item::Call(call, _, _) if level == Level::Ops => {
                    let name = format!("n{}", call.nodes.start);
                    let _ = writeln!(self.nodes, "{indent}{name} [label = {}, style = bold];", quoted(call.def.name));
                    self.connect(&self.graph.plan.nodes[call.nodes.clone()], &name);
                    *number = call.nodes.end;
                }
                Item::Call(call, _, inner) => self.cluster(call, inner, depth, number),
            }
        }
    }

    fn cluster(&mut self, call: &Call, inner: &[Item<'_>], depth: usize, number: &mut usize) {
        let indent = "  ".repeat(depth);
        let _ = writeln!(self.nodes, "{indent}subgraph cluster{} {{\n{indent}  label = {};", self.clusters, quoted(call.def.name));
        self.clusters += 1;
        self.items(inner, Level::Kernels, depth + 1, number);
        let _ = writeln!(self.nodes, "{indent}}}");
    }

    /// Adds an edge for each value that these nodes, which are one node of the drawing, take from others.
    fn connect(&mut self, nodes: &[Node], name: &str) {
        nodes.iter().flat_map(|node| &node.results).for_each(|result| name.clone_into(&mut self.sources[result.0 as usize]));
        let mut drawn: HashSet<Value> = HashSet::new();
        for node in nodes {
            node.op.each_operand(&mut |value, _| {
                if self.sources[value.0 as usize] != name && drawn.insert(value) {
                    self.edge(value, name);
                }
            });
        }
    }

    fn edge(&mut self, value: Value, target: &str) {
        let source = &self.sources[value.0 as usize];
        let _ = writeln!(self.edges, "  {source} -> {target} [label = {}];", quoted(&self.graph.ty(value).to_string()));
    }
}

fn label(node: &Node) -> String {
    match &node.op {
        NodeOp::Alloc { zeroed: false } => "alloc".to_owned(),
        NodeOp::Alloc { zeroed: true } => "zeros".to_owned(),
        NodeOp::View { offset, .. } => format!("view at {offset}"),
        NodeOp::Launch(launch) => launch_label(launch),
        NodeOp::Extern(call) => format!("extern {}", call.name()),
    }
}

fn launch_label(launch: &RecordedLaunch) -> String {
    let parameters = launch.parameters();
    let generics = if parameters.is_empty() { String::new() } else { format!("<{parameters}>") };
    format!("{}{generics}\n[{}]", launch.kernel(), launch.grid().each_ref().map(ToString::to_string).join(", "))
}

/// A string of the language: in quotes, with escapes for what would end it or the line.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
