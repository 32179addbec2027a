//! Gives the calls of a text of ops their operations: those of an equal call of the environment.
//!
//! ```text
//! text                                     environment
//!   %0 = mylib::silu(x = %x) : f32[n]        %4 = mylib::silu(x = %3) : f32[n] {
//!   %1 = mylib::silu(x = %0) : f32[n]          %5 = alloc : f32[n]
//!   return %1                                  %4 = launch silu_elements [1, 1, 1] (x = %3, y = %5) : f32[n]
//!                                            }
//! ```
//!
//! Calls are equal if op, other arguments, and the types of tensors and results are. Both calls of the text thus get the two lines, with names of their own.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kernel_runtime::ops::recorder::TensorType;

use super::bind::Bound;
use super::{
    Argument, CallArgument, CallText, Environment, ExternText, LaunchText, Line, Listing, Name, NameKind, OnCpu, Operation, Section, Span,
    TextError,
};

/// The listings of graphs, whose calls have lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Calls {
    listings: Vec<Arc<(Listing, Types)>>,
    /// For each op, the indices of listings and of lines in them.
    by_op: HashMap<String, Vec<(usize, usize)>>,
}

/// The type of each value that a listing names.
type Types = HashMap<NameKind, TensorType>;

impl Calls {
    /// Adds the calls of a listing.
    pub(super) fn add(&mut self, listing: Listing) {
        let index = self.listings.len();
        for (number, line) in listing.program.lines.iter().enumerate() {
            if let Operation::Call(call) = &line.operation {
                self.by_op.entry(call.op.clone()).or_default().push((index, number));
            }
        }
        let mut types = declared(&listing);
        listing.program.lines.iter().for_each(|line| define(&mut types, line));
        self.listings.push(Arc::new((listing, types)));
    }

    /// The lines of an equal call, with the names of this one. `prefix` is one that no other call has.
    fn lines(&self, line: &Line, call: &CallText, types: &Types, prefix: usize) -> Option<Vec<Line>> {
        let candidates = self.by_op.get(&call.op)?;
        candidates.iter().find_map(|(listing, number)| {
            let (listing, known) = &*self.listings[*listing];
            let [of, rest @ ..] = &listing.program.lines[*number..] else { return None };
            let Operation::Call(CallText { args, flops, contents: Some(contents), .. }) = &of.operation else { return None };
            let names = names(&of.results, &line.results).filter(|_| of.types == line.types && *flops == call.flops)?;
            let mut cx = Renaming { names, known, types, prefix };
            let is_equal = args.len() == call.args.len()
                && std::iter::zip(args, &call.args).all(|((name, arg, _), (own, own_arg, _))| name == own && cx.unify(arg, own_arg));
            if !is_equal {
                return None;
            }
            rest.get(..*contents)?.iter().map(|inner| cx.renamed(inner, line)).collect()
        })
    }
}

/// Pairs of names, if there are as many.
fn names(of: &[Name], own: &[Name]) -> Option<HashMap<NameKind, NameKind>> {
    (of.len() == own.len()).then(|| std::iter::zip(of, own).map(|(of, own)| (of.kind.clone(), own.kind.clone())).collect())
}

/// The names of the lines of a call, and the names in their place.
struct Renaming<'l> {
    names: HashMap<NameKind, NameKind>,
    /// The types of the names, and of those in their place.
    known: &'l Types,
    types: &'l Types,
    prefix: usize,
}

impl Renaming<'_> {
    /// Whether an argument can be in the place of the other one.
    fn unify(&mut self, of: &CallArgument, own: &CallArgument) -> bool {
        match (of, own) {
            (CallArgument::Text(of), CallArgument::Text(own)) => of == own,
            (CallArgument::List(of), CallArgument::List(own)) => {
                of.len() == own.len() && std::iter::zip(of, own).all(|(of, own)| self.unify(of, own))
            }
            // The lines do not need the value.
            (CallArgument::Tensor(of), CallArgument::Tensor(own)) if of.kind == NameKind::Unused || own.kind == NameKind::Unused => true,
            (CallArgument::Tensor(of), CallArgument::Tensor(own)) => {
                let known = self.names.insert(of.kind.clone(), own.kind.clone());
                known.is_none_or(|known| known == own.kind) && self.known.get(&of.kind) == self.types.get(&own.kind)
            }
            _ => false,
        }
    }

    /// A line with other names, where the call is. `None` if it needs a value that is no argument of the call.
    fn renamed(&mut self, line: &Line, call: &Line) -> Option<Line> {
        let operation = match &line.operation {
            Operation::Alloc { zeroed } => Operation::Alloc { zeroed: *zeroed },
            Operation::View { of, offset } => Operation::View { of: self.name(of, call)?, offset: offset.clone() },
            Operation::Launch(launch) => {
                Operation::Launch(LaunchText { head: launch.head.clone(), args: self.arguments(&launch.args, call)? })
            }
            Operation::Extern(inner) => Operation::Extern(ExternText { args: self.arguments(&inner.args, call)?, ..inner.clone() }),
            Operation::Call(inner) => {
                let args = inner.args.iter().map(|(name, arg, _)| (name.clone(), self.argument(arg, call), call.span)).collect();
                Operation::Call(CallText { args, ..inner.clone() })
            }
        };
        let results = line.results.iter().map(|result| self.result(result, call)).collect();
        Some(Line { results, types: line.types.clone(), operation, span: call.span })
    }

    fn arguments(&self, args: &[(String, Argument, Span)], call: &Line) -> Option<Vec<(String, Argument, Span)>> {
        let renamed = |arg: &Argument| {
            Some(match arg {
                Argument::Tensor(name) => Argument::Tensor(self.name(name, call)?),
                Argument::List(names) => Argument::List(names.iter().map(|name| self.name(name, call)).collect::<Option<_>>()?),
                Argument::Scalar { .. } => arg.clone(),
            })
        };
        args.iter().map(|(name, arg, _)| Some((name.clone(), renamed(arg)?, call.span))).collect()
    }

    fn name(&self, name: &Name, call: &Line) -> Option<Name> {
        let kind = match (self.names.get(&name.kind), &name.kind) {
            (Some(kind), _) => kind.clone(),
            // A constant of the op itself, which the text has under the same name.
            (None, kind @ NameKind::Constant(_)) if self.types.get(kind) == self.known.get(kind) => kind.clone(),
            _ => return None,
        };
        Some(Name { kind, span: call.span })
    }

    fn argument(&self, arg: &CallArgument, call: &Line) -> CallArgument {
        match arg {
            CallArgument::Tensor(name) => {
                CallArgument::Tensor(self.name(name, call).unwrap_or(Name { kind: NameKind::Unused, span: call.span }))
            }
            CallArgument::List(values) => CallArgument::List(values.iter().map(|value| self.argument(value, call)).collect()),
            CallArgument::Text(text) => CallArgument::Text(text.clone()),
        }
    }

    /// A result: one of the call, or one with a name that no text can have.
    fn result(&mut self, name: &Name, call: &Line) -> Name {
        let fresh = || NameKind::Local(format!("{}.{}", self.prefix, name));
        let kind = self.names.get(&name.kind).cloned().unwrap_or_else(fresh);
        self.names.insert(name.kind.clone(), kind.clone());
        Name { kind, span: call.span }
    }
}

impl Listing {
    /// The listing with the lines of all calls.
    pub(super) fn expanded(&self, environment: &Environment) -> Bound<Listing> {
        let mut lines: Vec<Line> = Vec::with_capacity(self.program.lines.len());
        let mut types = declared(self);
        for (number, line) in self.program.lines.iter().enumerate() {
            let mut expanded = vec![line.clone()];
            if let Operation::Call(call) = &mut expanded[0].operation
                && call.contents.is_none()
            {
                let inner = environment.calls().lines(line, call, &types, number).ok_or_else(|| self.lacks(line, call, environment))?;
                call.contents = Some(inner.len());
                expanded.extend(inner);
            }
            define(&mut types, line);
            lines.extend(expanded);
        }
        let ops: HashSet<&str> =
            lines.iter().filter_map(|line| if let Operation::Call(call) = &line.operation { Some(&*call.op) } else { None }).collect();
        let mut with_cpu: Vec<&str> = ops.into_iter().filter(|op| environment.op(op).is_ok_and(|def| def.has_cpu)).collect();
        with_cpu.sort_unstable();
        let on_cpu = match (&self.on_cpu, with_cpu.first()) {
            (OnCpu::Same, Some(op)) => {
                OnCpu::Not(format!("it is the program of a text of ops, and `{op}` has a function of its own for the CPU"))
            }
            (on_cpu, _) => on_cpu.clone(),
        };
        Ok(Listing { program: Section { lines, ..self.program.clone() }, on_cpu, ..self.clone() })
    }

    fn lacks(&self, line: &Line, call: &CallText, environment: &Environment) -> TextError {
        if environment.op(&call.op).is_ok_and(|def| def.is_opaque) {
            let help = format!("write `extern {}(..)`", call.op);
            return TextError::new(
                &self.source,
                line.span,
                format!("`{}` is opaque: a call of it has no other operations", call.op),
                Some(help),
            );
        }
        let message = format!("the text lacks the operations of `{}`, and the environment has no call of the same types", call.op);
        let help = "add a graph with such a call, or print the graph at the level of kernels";
        TextError::new(&self.source, line.span, message, Some(help.to_owned()))
    }
}

/// The types of inputs and constants.
fn declared(listing: &Listing) -> Types {
    let inputs = listing.inputs.iter().map(|input| (NameKind::Local(input.name.clone()), input.ty.clone()));
    inputs.chain(listing.program.constants.iter().map(|constant| (constant.name.kind.clone(), constant.ty.clone()))).collect()
}

fn define(types: &mut Types, line: &Line) {
    types.extend(std::iter::zip(&line.results, &line.types).map(|(name, ty)| (name.kind.clone(), ty.clone())));
}
