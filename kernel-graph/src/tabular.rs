//! A graph as a table, with the columns of PyTorch's `print_tabular`.

use kernel_package::{Node, NodeOp};
use kernel_runtime::ops::recorder::Value;

use crate::graph::{Graph, Level};
use crate::items::{Item, launch_value, op_value};

/// The columns, which are those of torch 2.
const HEADER: [&str; 5] = ["opcode", "name", "target", "args", "kwargs"];

/// The names of values as PyTorch makes them: that of the operation, with a number from its second use on.
struct Names {
    of_values: Vec<String>,
    used: Vec<(String, usize)>,
}

impl Names {
    fn fresh(&mut self, base: &str) -> String {
        match self.used.iter_mut().find(|(known, _)| known == base) {
            Some((_, count)) => {
                *count += 1;
                format!("{base}_{count}")
            }
            None => {
                self.used.push((base.to_owned(), 0));
                base.to_owned()
            }
        }
    }

    fn define(&mut self, results: &[Value], base: &str) -> String {
        let name = self.fresh(base);
        for (number, result) in results.iter().enumerate() {
            let is_only = results.len() == 1;
            self.of_values[result.0 as usize] = if is_only { name.clone() } else { format!("{name}[{number}]") };
        }
        name
    }

    /// The name of a value. Dead code removal may have removed the definition of an op's argument.
    fn of(&self, value: Value) -> String {
        let name = &self.of_values[value.0 as usize];
        if name.is_empty() { "unused".to_owned() } else { name.clone() }
    }
}

impl Graph {
    /// The graph as a table with the columns opcode, name, target, args and kwargs, as `torch.fx.Graph.print_tabular` prints it.
    pub fn tabular(&self, level: Level) -> String {
        let mut names = Names { of_values: vec![String::new(); self.plan.types.len()], used: Vec::new() };
        let mut rows = vec![HEADER.map(str::to_owned)];
        let row = |cells: [&str; 5]| cells.map(str::to_owned);
        for (number, input) in self.plan.inputs.iter().enumerate() {
            let name = names.define(&[Value(u32::try_from(number).unwrap_or(u32::MAX))], &input.name);
            rows.push(row(["placeholder", &name, &name, "()", "{}"]));
        }
        for constant in &self.plan.constants {
            // `torch.export` shows parameters as inputs with such names.
            let (opcode, base) = match &constant.name {
                Some(name) => ("placeholder", format!("p_{}", name.replace('.', "_"))),
                None => ("get_attr", "constant".to_owned()),
            };
            let name = names.define(&[constant.value], &base);
            rows.push(row([opcode, &name, &name, "()", "{}"]));
        }
        self.rows(&self.items(level), &mut names, &mut rows);
        let outputs: Vec<String> = self.plan.outputs.iter().map(|value| names.of(*value)).collect();
        rows.push(row(["output", "output", "output", &format!("({},)", tuple(&outputs)), "{}"]));
        table(&rows)
    }

    fn rows(&self, items: &[Item<'_>], names: &mut Names, rows: &mut Vec<[String; 5]>) {
        for item in items {
            match item {
                Item::Node(node) => rows.push(self.row(node, names)),
                // At the level of kernels, the table has the nodes of calls and no calls.
                Item::Call(_, _, inner) if !inner.is_empty() => self.rows(inner, names, rows),
                Item::Call(call, results, _) => {
                    let args: Vec<String> = call.args.iter().map(|(_, value)| op_value(value, &|value| names.of(value))).collect();
                    rows.push(op_row(call.def.name, &args, results, names));
                }
            }
        }
    }

    fn row(&self, node: &Node, names: &mut Names) -> [String; 5] {
        let dims = |value: Value| self.ty(value).dims.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let (base, target, args, kwargs) = match &node.op {
            NodeOp::Alloc { zeroed } => {
                let dtype = self.ty(node.results[0]).dtype;
                let target = if *zeroed { "zeros" } else { "empty" };
                (target.to_owned(), target.to_owned(), format!("([{}],)", dims(node.results[0])), format!("{{'dtype': {dtype}}}"))
            }
            NodeOp::View { of, offset } => {
                let args = format!("({}, [{}])", names.of(*of), dims(node.results[0]));
                ("view".to_owned(), "view".to_owned(), args, format!("{{'offset': {offset}}}"))
            }
            NodeOp::Launch(launch) => {
                let grid = launch.grid().each_ref().map(ToString::to_string).join(", ");
                let kwargs: Vec<String> =
                    launch.args().map(|(name, value)| format!("'{name}': {}", launch_value(value, &|value| names.of(value)))).collect();
                let kwargs = format!("{{'grid': [({grid})], 'kwargs': {{{}}}}}", kwargs.join(", "));
                (launch.kernel().to_owned(), launch.kernel().to_owned(), "()".to_owned(), kwargs)
            }
            NodeOp::Extern(call) => {
                let args: Vec<String> = call.arguments().iter().map(|arg| arg.text(&|value| names.of(value))).collect();
                return op_row(call.name(), &args, &node.results, names);
            }
        };
        ["call_function".to_owned(), names.define(&node.results, &base), target, args, kwargs]
    }
}

/// The row of a call of an op.
fn op_row(op: &str, args: &[String], results: &[Value], names: &mut Names) -> [String; 5] {
    let name = names.define(results, op.rsplit("::").next().unwrap_or(op));
    let target = format!("{}.default", op.replace("::", "."));
    ["call_function".to_owned(), name, target, tuple(args), "{}".to_owned()]
}

/// A tuple in Python's notation.
fn tuple(items: &[String]) -> String {
    match items {
        [single] => format!("({single},)"),
        items => format!("({})", items.join(", ")),
    }
}

/// The rows with aligned columns, and a line of dashes below the first one.
fn table(rows: &[[String; 5]]) -> String {
    let widths: [usize; 5] = std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let line = |cells: [String; 5]| {
        let padded: Vec<String> = cells.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        padded.join("  ").trim_end().to_owned() + "\n"
    };
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        text.push_str(&line(row.clone()));
        if number == 0 {
            text.push_str(&line(widths.map(|width| "-".repeat(width))));
        }
    }
    text
}
