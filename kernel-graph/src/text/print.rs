//! A listing as text.

use std::fmt::{self, Display, Formatter, Write as _};

use super::lexer::is_word;
use super::{
    Argument, CallArgument, CallText, ConstantLine, ExternText, LaunchHead, LaunchText, Line, Listing, Name, NameKind, OnCpu, Operation,
    Section, Span,
};

impl Display for Listing {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let inputs = self.inputs.iter().map(|input| format!("{}: {}", input.name, input.ty));
        write!(f, "graph {}({})", symbol(&self.name), list(inputs))?;
        let dims: Vec<String> = self.dims.iter().filter_map(|(dim, _)| dim.declaration()).collect();
        if !dims.is_empty() {
            write!(f, " where {}", dims.join(", "))?;
        }
        write!(f, "\n{}", self.program)?;
        match &self.on_cpu {
            OnCpu::Same => Ok(()),
            OnCpu::Section(section) => write!(f, "on cpu\n{section}"),
            OnCpu::Not(reason) => writeln!(f, "not on cpu: {reason:?}"),
        }
    }
}

impl Display for Section {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for ConstantLine { name, is_parameter, ty } in &self.constants {
            writeln!(f, "  {name} = {} : {ty}", if *is_parameter { "parameter" } else { "constant" })?;
        }
        // The numbers of lines that the open calls have left.
        let mut open: Vec<usize> = Vec::new();
        for line in &self.lines {
            writeln!(f, "{:indent$}{line}", "", indent = 2 * open.len() + 2)?;
            open.iter_mut().for_each(|left| *left -= 1);
            if let Operation::Call(CallText { contents: Some(lines), .. }) = &line.operation {
                open.push(*lines);
            }
            while open.pop_if(|left| *left == 0).is_some() {
                writeln!(f, "{:indent$}}}", "", indent = 2 * open.len() + 2)?;
            }
        }
        match &self.outputs[..] {
            [] => f.write_str("  return\n"),
            outputs => writeln!(f, "  return {}", list(outputs)),
        }
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if !self.results.is_empty() {
            write!(f, "{} = ", list(&self.results))?;
        }
        match &self.operation {
            Operation::Alloc { zeroed } => f.write_str(if *zeroed { "zeros" } else { "alloc" })?,
            Operation::View { of, offset } => write!(f, "view {of} at {offset}")?,
            Operation::Launch(launch) => launch.fmt(f)?,
            Operation::Extern(call) => write!(f, "extern {}({})", call.op, arguments(&call.args))?,
            Operation::Call(call) => {
                let args = call.args.iter().map(|(name, arg, _)| format!("{} = {arg}", symbol(name)));
                write!(f, "{}({})", call.op, list(args))?;
            }
        }
        if !self.types.is_empty() {
            write!(f, " : {}", list(&self.types))?;
        }
        if let Operation::Call(CallText { flops: Some(flops), .. }) | Operation::Extern(ExternText { flops: Some(flops), .. }) =
            &self.operation
        {
            write!(f, " flops {flops}")?;
        }
        f.write_str(if matches!(self.operation, Operation::Call(CallText { contents: Some(_), .. })) { " {" } else { "" })
    }
}

impl Display for LaunchText {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "launch {} ({})", self.head, arguments(&self.args))
    }
}

impl Display for LaunchHead {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&symbol(&self.kernel))?;
        if let Some(hash) = &self.hash {
            write!(f, "#{hash}")?;
        }
        if !self.generics.is_empty() {
            write!(f, "<{}>", list(self.generics.iter().map(|(name, value)| format!("{} = {value}", symbol(name)))))?;
        }
        write!(f, " [{}]", list(&self.grid))?;
        if self.configurations != 1 {
            write!(f, " of {} configurations", self.configurations)?;
        }
        Ok(())
    }
}

impl Display for Argument {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Argument::Tensor(name) => name.fmt(f),
            Argument::List(names) => write!(f, "[{}]", list(names)),
            Argument::Scalar { text, ty: None, .. } => f.write_str(text),
            Argument::Scalar { text, ty: Some(ty), .. } => write!(f, "{text} as {}", ty.name()),
        }
    }
}

impl Display for CallArgument {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            CallArgument::Tensor(name) => name.fmt(f),
            CallArgument::List(values) => write!(f, "[{}]", list(values)),
            CallArgument::Text(text) => f.write_str(text),
        }
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl Display for NameKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            NameKind::Local(name) => write!(f, "%{name}"),
            NameKind::Constant(name) if !name.is_empty() && name.chars().all(|c| is_word(c) || c == '.') => write!(f, "@{name}"),
            NameKind::Constant(name) => write!(f, "@{name:?}"),
            NameKind::Unused => f.write_str("unused"),
        }
    }
}

/// A name of the program: in quotes if it is no word, such as that of an outer constant.
pub(super) fn symbol(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| is_word(c) && !c.is_ascii_digit()) && name.chars().all(is_word);
    if is_plain { name.to_owned() } else { format!("{name:?}") }
}

/// The arguments of a launch or of an opaque op, with the names of parameters.
fn arguments(args: &[(String, Argument, Span)]) -> String {
    list(args.iter().map(|(name, arg, _)| format!("{} = {arg}", symbol(name))))
}

fn list(items: impl IntoIterator<Item = impl Display>) -> String {
    let mut text = String::new();
    for item in items {
        let separator = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{separator}{item}");
    }
    text
}
