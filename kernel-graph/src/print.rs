//! The text of a graph.

use std::fmt;

use kernel_runtime::ops::recorder::{RecordedArg, RecordedLaunch, Value};

use crate::graph::{Graph, Node, NodeOp};

/// The names of values: those of inputs, and numbers in the order of definitions, with a `c` for constants.
struct Names(Vec<String>);

impl Names {
    fn new(graph: &Graph) -> Names {
        let mut names = vec![String::new(); graph.types.len()];
        names.iter_mut().zip(&graph.inputs).for_each(|(name, input)| *name = format!("%{}", input.name));
        for (number, constant) in graph.constants.iter().enumerate() {
            names[constant.value.0 as usize] = format!("%c{number}");
        }
        for (number, result) in graph.nodes.iter().flat_map(|node| &node.results).enumerate() {
            names[result.0 as usize] = format!("%{number}");
        }
        Names(names)
    }

    fn of(&self, value: Value) -> &str {
        &self.0[value.0 as usize]
    }

    fn list(&self, values: &[Value]) -> String {
        values.iter().map(|value| self.of(*value)).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Names::new(self);
        let inputs: Vec<String> = self.inputs.iter().map(|input| format!("{}: {}", input.name, input.ty)).collect();
        write!(f, "graph {}({})", self.name, inputs.join(", "))?;
        let dims: Vec<String> = self.dims().iter().map(|dim| dim.declaration().unwrap_or_default()).collect();
        if !dims.is_empty() {
            write!(f, " where {}", dims.join(", "))?;
        }
        writeln!(f)?;
        for constant in &self.constants {
            writeln!(f, "  {} = constant : {}", names.of(constant.value), self.ty(constant.value))?;
        }
        for node in &self.nodes {
            writeln!(f, "  {}", self.line(node, &names))?;
        }
        writeln!(f, "  return {}", names.list(&self.outputs))
    }
}

impl Graph {
    fn line(&self, node: &Node, names: &Names) -> String {
        let op = match &node.op {
            NodeOp::Alloc => "alloc".to_owned(),
            NodeOp::View { of, offset } => format!("view {} at {offset}", names.of(*of)),
            NodeOp::Launch(launch) => launch_text(launch, names),
        };
        let types: Vec<String> = node.results.iter().map(|result| self.ty(*result).to_string()).collect();
        match &node.results[..] {
            [] => op,
            results => format!("{} = {op} : {}", names.list(results), types.join(", ")),
        }
    }
}

fn launch_text(launch: &RecordedLaunch, names: &Names) -> String {
    let parameters = launch.parameters();
    let generics = if parameters.is_empty() { String::new() } else { format!("<{parameters}>") };
    let grid = launch.grid.each_ref().map(ToString::to_string).join(", ");
    let arg = |arg: &RecordedArg| match arg {
        RecordedArg::Tensor { value, .. } => names.of(*value).to_owned(),
        RecordedArg::Dim { dim, .. } => dim.to_string(),
        RecordedArg::Word { text, .. } => text.clone(),
    };
    let args: Vec<String> =
        launch.kernel.params().iter().zip(&launch.args).map(|(param, value)| format!("{} = {}", param.name, arg(value))).collect();
    format!("launch {}{generics} [{grid}] ({})", launch.kernel.name(), args.join(", "))
}
