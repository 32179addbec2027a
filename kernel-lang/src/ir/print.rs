//! Printer of the text form. [`super::parse`] parses its output.

use std::fmt::{self, Write};

use crate::ir::arena::{Inst, Region, SideTable, Value};
use crate::ir::fields::AttributeValue;
use crate::ir::function::Function;

/// Prints the kernel's text. Values are numbered in the order of the text, independent of their handles, so that equal kernels print equal
/// texts.
impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut printer = Printer { func: self, names: SideTable::new(), next: 0 };
        f.write_str(&printer.function())
    }
}

struct Printer<'a> {
    func: &'a Function,
    names: SideTable<Value, Option<String>>,
    next: u32,
}

impl Printer<'_> {
    fn function(&mut self) -> String {
        let func = self.func;
        let mut text = format!("kernel @{}", func.name);
        let types = func.types.iter().map(|param| {
            let choices: Vec<&str> = param.choices.iter().map(|dtype| dtype.name()).collect();
            format!("{}: {}", param.name, choices.join(" | "))
        });
        let consts = func.consts.iter().map(|param| format!("const {}: {}", param.name, param.dtype));
        let generics: Vec<String> = types.chain(consts).collect();
        if !generics.is_empty() {
            let _ = write!(text, "<{}>", generics.join(", "));
        }
        let mut params = Vec::new();
        for param in &func.params {
            self.names[param.value] = Some(format!("%{}", param.name));
            params.push(format!("%{}: {}", param.name, func.ty(param.value)));
        }
        let _ = write!(text, "({})", params.join(", "));
        for file in &func.files {
            let _ = write!(text, " file {file:?}");
        }
        if func.unchecked {
            text.push_str(" unchecked");
        }
        if func.contract {
            text.push_str(" contract");
        }
        text.push_str(" {\n");
        self.insts(func.body, 1, &mut text);
        text.push_str("}\n");
        text
    }

    fn insts(&mut self, region: Region, depth: usize, text: &mut String) {
        for inst in &self.func.region(region).insts {
            self.inst(*inst, depth, text);
        }
    }

    fn define(&mut self, value: Value) -> String {
        let name = format!("%{}", self.next);
        self.next += 1;
        self.names[value] = Some(name.clone());
        name
    }

    /// A value that is used before any definition prints as `%?n`, which does not parse: the kernel is broken.
    fn name(&self, value: Value) -> String {
        self.names[value].clone().unwrap_or_else(|| format!("%?{}", value.to_string().trim_start_matches('%')))
    }

    /// The type of a value, followed by its layout if it has one.
    fn ty(&self, value: Value) -> String {
        let ty = self.func.ty(value);
        self.func.layouts[value].as_ref().map_or_else(|| ty.to_string(), |layout| format!("{ty} {layout}"))
    }

    fn inst(&mut self, inst: Inst, depth: usize, text: &mut String) {
        let data = self.func.inst(inst);
        let parts = data.op.to_parts();
        let indent = "    ".repeat(depth);
        let mut line = data.op.name().to_string();
        let operands: Vec<String> = parts.operands.iter().map(|value| self.name(*value)).collect();
        if !operands.is_empty() {
            let _ = write!(line, " {}", operands.join(", "));
        }
        let mut attributes: Vec<String> = parts.named.iter().map(|(name, value)| format!("{name} = {}", self.name(*value))).collect();
        attributes.extend(parts.attributes.iter().map(|(name, value)| match value {
            AttributeValue::Expr(expr) => format!("{name} = {expr}"),
            AttributeValue::Text(text) => format!("{name} = {text:?}"),
            AttributeValue::List(list) => {
                let list: Vec<String> = list.iter().map(ToString::to_string).collect();
                format!("{name} = [{}]", list.join(", "))
            }
        }));
        if !attributes.is_empty() {
            let _ = write!(line, " {{{}}}", attributes.join(", "));
        }
        for region in parts.regions {
            let params: Vec<String> = self
                .func
                .region(region)
                .params
                .clone()
                .into_iter()
                .map(|value| {
                    let name = self.define(value);
                    format!("{name}: {}", self.ty(value))
                })
                .collect();
            let _ = writeln!(line, " ({}) {{", params.join(", "));
            self.insts(region, depth + 1, &mut line);
            let _ = write!(line, "{indent}}}");
        }
        let results: Vec<String> = data.results.iter().map(|value| self.define(*value)).collect();
        let types: Vec<String> = data.results.iter().map(|value| self.ty(*value)).collect();
        let assign = if results.is_empty() { String::new() } else { format!("{} = ", results.join(", ")) };
        let typed = if types.is_empty() { String::new() } else { format!(" : {}", types.join(", ")) };
        let loc = if data.loc.is_some() { format!(" @{}", data.loc) } else { String::new() };
        let _ = writeln!(text, "{indent}{assign}{line}{typed}{loc}");
    }
}
