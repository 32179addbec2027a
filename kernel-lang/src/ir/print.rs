//! Printer of the text form. [`super::parse`] parses its output.

use std::fmt::{self, Write};

use crate::ir::arena::{Inst, Region, SideTable, Value};
use crate::ir::fields::AttributeValue;
use crate::ir::function::Function;

/// Prints the kernel's text. Values are numbered in the order of the text, independent of their handles, so that equal kernels print equal
/// texts.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer { func: self, text: String::new(), names: SideTable::new(), next: 0 };
        printer.function();
        f.write_str(&printer.text)
    }
}

struct Printer<'a> {
    func: &'a Function,
    text: String,
    names: SideTable<Value, Option<Name>>,
    next: u32,
}

/// The name of a value.
#[derive(Clone, Copy)]
enum Name {
    /// That of the kernel's parameter at this index.
    Parameter(usize),
    Number(u32),
}

/// Appends to the text. Writing to a `String` never fails.
macro_rules! text {
    ($printer:expr, $($format:tt)*) => { _ = write!($printer.text, $($format)*) };
}

impl Printer<'_> {
    fn function(&mut self) {
        let func = self.func;
        text!(self, "kernel @{}", func.name);
        let types = func.types.iter().map(|param| {
            let choices: Vec<&str> = param.choices.iter().map(|dtype| dtype.name()).collect();
            format!("{}: {}", param.name, choices.join(" | "))
        });
        let consts = func.consts.iter().map(|param| format!("const {}: {}", param.name, param.dtype));
        let generics: Vec<String> = types.chain(consts).collect();
        if !generics.is_empty() {
            text!(self, "<{}>", generics.join(", "));
        }
        self.text.push('(');
        self.list(func.params.iter().enumerate(), |printer, (index, param)| {
            printer.names[param.value] = Some(Name::Parameter(index));
            printer.typed(param.value);
        });
        self.text.push(')');
        for file in &func.files {
            text!(self, " file {file:?}");
        }
        if func.unchecked {
            self.text.push_str(" unchecked");
        }
        if func.contract {
            self.text.push_str(" contract");
        }
        if !func.requires.is_empty() {
            text!(self, " requires(");
            self.list(&func.requires, |printer, requirement| text!(printer, "{requirement}"));
            self.text.push(')');
        }
        self.text.push_str(" {\n");
        self.insts(func.body, 1);
        self.text.push_str("}\n");
    }

    fn insts(&mut self, region: Region, depth: usize) {
        for inst in &self.func.region(region).insts {
            self.inst(*inst, depth);
        }
    }

    /// Prints the items, with commas between them.
    fn list<T>(&mut self, items: impl IntoIterator<Item = T>, mut print: impl FnMut(&mut Self, T)) {
        for (index, item) in items.into_iter().enumerate() {
            if index > 0 {
                self.text.push_str(", ");
            }
            print(self, item);
        }
    }

    fn define(&mut self, value: Value) {
        self.names[value] = Some(Name::Number(self.next));
        self.next += 1;
    }

    /// A value that is used before any definition prints as `%?n`, which does not parse: the kernel is broken.
    fn name(&mut self, value: Value) {
        match self.names[value] {
            Some(Name::Parameter(index)) => text!(self, "%{}", self.func.params[index].name),
            Some(Name::Number(number)) => text!(self, "%{number}"),
            None => text!(self, "%?{}", value.to_string().trim_start_matches('%')),
        }
    }

    /// The type of a value, followed by its layout if it has one.
    fn ty(&mut self, value: Value) {
        text!(self, "{}", self.func.ty(value));
        if let Some(layout) = &self.func.layouts[value] {
            text!(self, " {layout}");
        }
    }

    /// The name and the type of a parameter.
    fn typed(&mut self, param: Value) {
        self.name(param);
        self.text.push_str(": ");
        self.ty(param);
    }

    /// Numbers the results of an op, and prints what assigns to them.
    fn results(&mut self, results: &[Value]) {
        if results.is_empty() {
            return;
        }
        self.list(results, |printer, result| {
            printer.define(*result);
            printer.name(*result);
        });
        self.text.push_str(" = ");
    }

    fn attribute(&mut self, name: &str, value: &AttributeValue) {
        match value {
            AttributeValue::Expr(expr) => text!(self, "{name} = {expr}"),
            AttributeValue::Text(text) => text!(self, "{name} = {text:?}"),
            AttributeValue::List(list) => {
                text!(self, "{name} = [");
                self.list(list, |printer, item| text!(printer, "{item}"));
                self.text.push(']');
            }
        }
    }

    fn inst(&mut self, inst: Inst, depth: usize) {
        let (func, data) = (self.func, self.func.inst(inst));
        let mut parts = data.op.to_parts();
        if let Some(scratch) = &func.scratch[inst] {
            scratch.print(&mut parts);
        }
        let indent = |printer: &mut Self| (0..depth).for_each(|_| printer.text.push_str("    "));
        indent(self);
        let start = self.text.len();
        if parts.regions.is_empty() {
            self.results(&data.results);
        }
        self.text.push_str(data.op.name());
        if !parts.operands.is_empty() {
            self.text.push(' ');
            self.list(&parts.operands, |printer, operand| printer.name(*operand));
        }
        if !parts.named.is_empty() || !parts.attributes.is_empty() {
            self.text.push_str(" {");
            self.list(&parts.named, |printer, (name, value)| {
                text!(printer, "{name} = ");
                printer.name(*value);
            });
            if !parts.named.is_empty() && !parts.attributes.is_empty() {
                self.text.push_str(", ");
            }
            self.list(&parts.attributes, |printer, (name, value)| printer.attribute(name, value));
            self.text.push('}');
        }
        for region in &parts.regions {
            self.text.push_str(" (");
            self.list(&func.region(*region).params, |printer, param| {
                printer.define(*param);
                printer.typed(*param);
            });
            self.text.push_str(") {\n");
            self.insts(*region, depth + 1);
            indent(self);
            self.text.push('}');
        }
        if !parts.regions.is_empty() {
            // The text starts with the results, but the values in the regions have lower numbers.
            let op = self.text.split_off(start);
            self.results(&data.results);
            self.text.push_str(&op);
        }
        if !data.results.is_empty() {
            self.text.push_str(" : ");
            self.list(&data.results, |printer, result| printer.ty(*result));
        }
        if data.loc.is_some() {
            text!(self, " @{}", data.loc);
        }
        self.text.push('\n');
    }
}
