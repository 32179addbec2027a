//! A listing as a graph: names become values, kernels, constants and ops.

use std::collections::{HashMap, HashSet};

use kernel_package::{Constant, Node, NodeOp, Plan, PlanInput};
use kernel_runtime::ops::parts::{IntegerType, ParamKind, word_of};
use kernel_runtime::ops::recorder::{RecordedArg, RecordedLaunch, TensorType, Value};
use kernel_runtime::ops::{OpDef, OpValue};
use kernel_runtime::{Dim, Dtype};

use super::environment::{Environment, tensors};
use super::parse::site;
use super::print::symbol;
use super::{
    Argument, CallArgument, CallText, ConstantLine, Input, LaunchText, Line, Listing, Name, NameKind, OnCpu, Operation, Section, Span,
    TextError,
};
use crate::error::{GraphError, Result};
use crate::export::is_input_name;
use crate::graph::{Call, Graph};
use crate::verify;

pub(super) type Bound<T> = std::result::Result<T, TextError>;

impl Graph {
    /// The graph of a text, as [`Graph::text`] writes it. The environment has what the text only names. Errors of runs name lines of the text, as `text:3:5`.
    ///
    /// A text of [`Level::Ops`](crate::Level::Ops) lacks the operations of calls. They are those of calls of the same op, types and arguments in graphs of the environment.
    ///
    /// # Errors
    /// [`GraphError::Text`](crate::GraphError::Text): the first mistake, with its line and column.
    pub fn parse(text: &str, environment: &Environment) -> Result<Graph> {
        Listing::parse(text)?.bind(environment)
    }
}

impl Listing {
    /// The graph of the listing.
    ///
    /// # Errors
    /// [`GraphError::Text`](crate::GraphError::Text) for a name that is not defined or defined twice, for an operand of another type, and for what the environment lacks.
    pub fn bind(&self, environment: &Environment) -> Result<Graph> {
        let is_whole = |line: &Line| !matches!(line.operation, Operation::Call(CallText { contents: None, .. }));
        if !self.program.lines.iter().all(is_whole) {
            return self.expanded(environment)?.bind(environment);
        }
        let cx = Cx { listing: self, environment };
        cx.check_inputs()?;
        let (plan, calls) = cx.section(&self.program)?;
        let mut graph = Graph { plan, calls };
        let end = match &self.on_cpu {
            OnCpu::Same => self.program.span,
            OnCpu::Not(reason) => {
                graph.plan.not_on_cpu = Some(reason.clone());
                self.program.span
            }
            OnCpu::Section(section) => {
                let (plan, _) = cx.section(section)?;
                graph.plan.on_cpu = Some(Box::new(plan));
                section.span
            }
        };
        let violated = |error: GraphError| cx.of_message(end, &error.to_string());
        verify::run(&graph).map_err(violated)?;
        verify::dims(&graph).map_err(violated)?;
        Ok(graph)
    }
}

/// What every part of a listing needs.
pub(super) struct Cx<'l> {
    listing: &'l Listing,
    pub(super) environment: &'l Environment,
}

/// A section whose lines become nodes.
pub(super) struct Builder {
    values: HashMap<NameKind, (Value, Span)>,
    types: Vec<TensorType>,
    nodes: Vec<Node>,
    /// For each value, the number of the node that defines it.
    definitions: Vec<Option<usize>>,
    calls: Vec<Call>,
}

/// A call whose lines are not all read.
struct Open<'l> {
    /// The number of lines that are left.
    lines: usize,
    /// The index of the call.
    call: usize,
    line: &'l Line,
}

impl<'l> Cx<'l> {
    /// Each dim is the extent of an input.
    fn check_inputs(&self) -> Bound<()> {
        let extents: HashSet<&Dim> = self.listing.inputs.iter().flat_map(|input| &input.ty.dims).collect();
        if let Some((dim, span)) = self.listing.dims.iter().find(|(dim, _)| !extents.contains(dim)) {
            let message = format!("no input has an axis of `{dim}`, so its value is not known in a run");
            return Err(self.error(*span, message, Some("add an input with that extent")));
        }
        match self.listing.inputs.iter().find(|input| !is_input_name(&input.name)) {
            Some(Input { name, span, .. }) => {
                let help = "a name has letters, digits and `_`, and begins with a letter";
                Err(self.error(*span, format!("`{name}` is not a name for an input"), Some(help)))
            }
            None => Ok(()),
        }
    }

    fn section(&self, section: &'l Section) -> Bound<(Plan, Vec<Call>)> {
        let mut to = Builder { values: HashMap::new(), types: Vec::new(), nodes: Vec::new(), definitions: Vec::new(), calls: Vec::new() };
        for input in &self.listing.inputs {
            let name = Name { kind: NameKind::Local(input.name.clone()), span: input.span };
            self.define(&mut to, &name, &input.ty, None)?;
        }
        let mut constants = Vec::new();
        for ConstantLine { name, is_parameter, ty } in &section.constants {
            let NameKind::Constant(text) = &name.kind else { return Err(self.undefined(name)) };
            let tensor = self.environment.constant(text).map_err(|error| self.with_help(name.span, error))?;
            let found = TensorType { dtype: tensor.dtype(), dims: tensor.dims() };
            if found != *ty {
                return Err(self.error(name.span, format!("`{name}` is `{ty}`, and the tensor of the environment is `{found}`"), None));
            }
            let value = self.define(&mut to, name, ty, None)?;
            constants.push(Constant { value, name: is_parameter.then(|| text.clone()), tensor: tensor.clone() });
        }
        self.lines(&mut to, &section.lines)?;
        let outputs = section.outputs.iter().map(|name| self.value(&to, name)).collect::<Bound<_>>()?;
        let inputs = self.listing.inputs.iter().map(|input| PlanInput { name: input.name.clone(), ty: input.ty.clone() }).collect();
        let Builder { types, nodes, calls, .. } = to;
        Ok((Plan { name: self.listing.name.clone(), inputs, constants, nodes, types, outputs, on_cpu: None, not_on_cpu: None }, calls))
    }

    fn lines(&self, to: &mut Builder, lines: &'l [Line]) -> Bound<()> {
        let mut open: Vec<Open<'l>> = Vec::new();
        for line in lines {
            open.iter_mut().for_each(|call| call.lines -= 1);
            match &line.operation {
                Operation::Call(call) => {
                    let contents = call.contents.unwrap_or_default();
                    open.push(Open { lines: contents, call: to.calls.len(), line });
                    let call = self.call(to, line, call)?;
                    to.calls.push(call);
                }
                Operation::Alloc { zeroed } => {
                    let [ty] = &line.types[..] else { return Err(self.results(line, 1)) };
                    self.node(to, line, NodeOp::Alloc { zeroed: *zeroed }, std::slice::from_ref(ty))?;
                }
                Operation::View { of, offset } => {
                    let ([ty], value) = (&line.types[..], self.value(to, of)?) else { return Err(self.results(line, 1)) };
                    let whole = to.ty(value);
                    if whole.dtype != ty.dtype {
                        let message = format!("a view of `{of}` has elements of type `{}`, not `{}`", whole.dtype, ty.dtype);
                        return Err(self.error(line.span, message, None));
                    }
                    self.node(to, line, NodeOp::View { of: value, offset: offset.clone() }, std::slice::from_ref(ty))?;
                }
                Operation::Launch(text) => {
                    let launch = self.launch(to, line, text)?;
                    let written: Vec<TensorType> =
                        launch.arguments().iter().filter_map(RecordedArg::written).map(|value| to.ty(value).clone()).collect();
                    self.node(to, line, NodeOp::Launch(launch), &written)?;
                }
                Operation::Extern(text) => {
                    let call = self.extern_call(to, line, text)?;
                    let written: Vec<&TensorType> = call.written().map(|value| to.ty(value)).collect();
                    // The text alone states the types of what an op returns.
                    let returned = call.returned().unwrap_or_else(|| line.types.len().saturating_sub(written.len()));
                    let stated = line.types.get(..returned).ok_or_else(|| self.results(line, returned + written.len()))?;
                    let types: Vec<TensorType> = stated.iter().chain(written).cloned().collect();
                    self.node(to, line, NodeOp::Extern(call), &types)?;
                }
            }
            while let Some(call) = open.pop_if(|call| call.lines == 0) {
                self.close(to, &call)?;
            }
        }
        Ok(())
    }

    /// Adds a node with results of these types, which those of the line must be.
    fn node(&self, to: &mut Builder, line: &Line, op: NodeOp, types: &[TensorType]) -> Bound<()> {
        if types.len() != line.results.len() {
            return Err(self.results(line, types.len()));
        }
        let mut results = Vec::with_capacity(types.len());
        for ((name, stated), ty) in line.results.iter().zip(&line.types).zip(types) {
            if stated != ty {
                let message = format!("`{name}` is `{ty}`, and the line states `{stated}`");
                return Err(self.error(name.span, message, Some("a launch or an opaque op keeps the types of the tensors that it writes")));
            }
            results.push(self.define(to, name, ty, Some(to.nodes.len()))?);
        }
        to.nodes.push(Node { op, results, location: site(line.span) });
        Ok(())
    }

    fn launch(&self, to: &Builder, line: &Line, LaunchText { head, args: given }: &LaunchText) -> Bound<RecordedLaunch> {
        let kernel = self.environment.kernel(&head.kernel, head.hash.as_deref()).map_err(|error| self.with_help(line.span, error))?;
        let failed = |error: kernel_runtime::Error| self.of_message(line.span, &error.to_string());
        let generics: Vec<(&str, &str)> = head.generics.iter().map(|(name, value)| (&**name, &**value)).collect();
        let key = kernel.key_of(&generics).map_err(failed)?;
        let key = key.map_err(|reason| self.error(line.span, format!("`{}`: {reason}", head.kernel), None))?;
        if !kernel.params().iter().map(|param| param.name).eq(given.iter().map(|(name, ..)| &**name)) {
            let names: Vec<String> = kernel.params().iter().map(|param| symbol(param.name)).collect();
            let message = format!("`{}` has the parameters `({})`, in this order", head.kernel, names.join(", "));
            return Err(self.error(given.first().map_or(line.span, |(.., span)| *span), message, None));
        }
        let mut args = Vec::with_capacity(given.len());
        for (number, (name, argument, span)) in given.iter().enumerate() {
            let refused = |message: String| self.error(*span, format!("`{}`: `{}` {message}", head.kernel, symbol(name)), None);
            let dtype = kernel.dtype_of(number, &key).ok_or_else(|| refused("has no dtype".to_owned()))?;
            args.push(match (kernel.params()[number].kind, argument) {
                (ParamKind::Scalar, Argument::Scalar { text, dim, ty }) => scalar(dtype, text, dim.as_ref(), *ty)
                    .ok_or_else(|| refused(format!("cannot be `{argument}`: its type is `{dtype}`")))?,
                (ParamKind::Scalar, Argument::Tensor(_)) => return Err(refused(format!("is a scalar, and `{argument}` a tensor"))),
                (ParamKind::Scalar, Argument::List(_)) => return Err(refused(format!("is a scalar, and `{argument}` a list"))),
                (_, Argument::Scalar { .. } | Argument::List(_)) => return Err(refused(format!("is a tensor, not `{argument}`"))),
                (kind, Argument::Tensor(name)) => {
                    let value = self.value(to, name)?;
                    let found = to.ty(value);
                    if found.dtype != dtype {
                        return Err(refused(format!("has elements of type `{dtype}`, and `{name}` is `{found}`")));
                    }
                    if let ParamKind::View(rank) | ParamKind::ViewMut(rank) = kind
                        && found.dims.len() != rank
                    {
                        return Err(refused(format!("has {rank} axes, and `{name}` is `{found}`")));
                    }
                    RecordedArg::Tensor { value, dtype, writes: matches!(kind, ParamKind::PointerMut | ParamKind::ViewMut(_)) }
                }
            });
        }
        let launch = RecordedLaunch::of_parts(kernel, key, args, head.grid.clone(), site(line.span)).map_err(failed)?;
        let types: Vec<TensorType> = tensors(&launch).map(|value| to.ty(value).clone()).collect();
        match (self.environment.configured(&launch, &types, head.configurations), head.configurations) {
            (Some(configured), _) => Ok(configured),
            (None, 1) => Ok(launch),
            (None, count) => {
                let message = format!(
                    "the environment has no launch of `{}` with {count} configurations, this grid and these arguments",
                    head.kernel
                );
                let help = "a text has the first configuration only: add the graph or the plan with the same launch";
                Err(self.error(line.span, message, Some(help)))
            }
        }
    }

    /// A call without its nodes.
    fn call(&self, to: &Builder, line: &Line, call: &CallText) -> Bound<Call> {
        let def = self.environment.op(&call.op).map_err(|error| self.of_message(line.span, &error.to_string()))?;
        let names = parameters(def);
        let mut args = Vec::with_capacity(call.args.len());
        for (name, argument, span) in &call.args {
            let Some(known) = names.iter().find(|known| *known == name) else {
                return Err(self.error(*span, format!("`{}` has no argument `{}`: it is `{}`", call.op, symbol(name), def.schema), None));
            };
            args.push((*known, self.call_argument(to, argument)?));
        }
        let start = to.nodes.len();
        Ok(Call { def, args, nodes: start..start, results: Vec::new(), flops: call.flops.clone() })
    }

    fn call_argument(&self, to: &Builder, argument: &CallArgument) -> Bound<OpValue> {
        Ok(match argument {
            CallArgument::Tensor(Name { kind: NameKind::Unused, .. }) => OpValue::Text(NameKind::Unused.to_string()),
            CallArgument::Tensor(name) => OpValue::Tensor(self.value(to, name)?),
            CallArgument::List(values) => OpValue::List(values.iter().map(|value| self.call_argument(to, value)).collect::<Bound<_>>()?),
            CallArgument::Text(text) => OpValue::Text(text.clone()),
        })
    }

    /// Ends a call, whose lines have defined its results.
    fn close(&self, to: &mut Builder, open: &Open<'_>) -> Bound<()> {
        let mut results = Vec::with_capacity(open.line.results.len());
        let start = to.calls[open.call].nodes.start;
        for (name, stated) in open.line.results.iter().zip(&open.line.types) {
            let defined = to.values.get(&name.kind).map(|(value, _)| *value);
            let inside = defined.filter(|value| to.definitions[value.0 as usize].is_some_and(|node| node >= start));
            let Some(value) = inside else {
                let help = "a result of a call is defined by one of the lines in its braces";
                return Err(self.error(name.span, format!("the call does not define `{name}`"), Some(help)));
            };
            if to.ty(value) != stated {
                let message = format!("`{name}` is `{}`, and the line states `{stated}`", to.ty(value));
                return Err(self.error(name.span, message, None));
            }
            results.push(value);
        }
        let call = &mut to.calls[open.call];
        (call.nodes.end, call.results) = (to.nodes.len(), results);
        Ok(())
    }

    fn define(&self, to: &mut Builder, name: &Name, ty: &TensorType, node: Option<usize>) -> Bound<Value> {
        let value = u32::try_from(to.types.len()).map(Value);
        let value = value.map_err(|_| self.error(name.span, "the graph has too many values".to_owned(), None))?;
        if let Some((_, first)) = to.values.insert(name.kind.clone(), (value, name.span)) {
            let message = format!("`{name}` is defined twice, first in line {}", first.line);
            return Err(self.error(name.span, message, Some("give each value its own name")));
        }
        to.types.push(ty.clone());
        to.definitions.push(node);
        Ok(value)
    }

    pub(super) fn value(&self, to: &Builder, name: &Name) -> Bound<Value> {
        to.values.get(&name.kind).map(|(value, _)| *value).ok_or_else(|| self.undefined(name))
    }

    fn undefined(&self, name: &Name) -> TextError {
        let help = match name.kind {
            NameKind::Local(_) => "a value is an input, or the result of a line in front of this one",
            NameKind::Constant(_) => "define it in front of all lines: `@weight = parameter : f32[64]`",
            NameKind::Unused => "only arguments of ops may be unused",
        };
        self.error(name.span, format!("`{name}` is not defined"), Some(help))
    }

    fn results(&self, line: &Line, expected: usize) -> TextError {
        let (what, given) = (if expected == 1 { "result" } else { "results" }, line.results.len());
        let help = "a launch has a result for each tensor that its kernel writes, an opaque op has those that it returns and then one for each tensor that it \
                    writes, and `alloc`, `zeros` and `view` have one";
        self.error(line.span, format!("the operation has {expected} {what}, and the line has {given}"), Some(help))
    }

    fn with_help(&self, span: Span, (message, help): (String, String)) -> TextError {
        self.error(span, message, Some(&help))
    }

    /// An error of the runtime, whose text may have a help.
    pub(super) fn of_message(&self, span: Span, message: &str) -> TextError {
        match message.split_once("\nhelp: ") {
            Some((message, help)) => self.error(span, message.to_owned(), Some(help)),
            None => self.error(span, message.to_owned(), None),
        }
    }

    pub(super) fn error(&self, span: Span, message: String, help: Option<&str>) -> TextError {
        TextError::new(&self.listing.source, span, message, help.map(str::to_owned))
    }
}

impl Builder {
    fn ty(&self, value: Value) -> &TensorType {
        &self.types[value.0 as usize]
    }
}

/// The argument of a scalar parameter: a dim, or a value of the dtype.
fn scalar(dtype: Dtype, text: &str, dim: Option<&Dim>, ty: Option<IntegerType>) -> Option<RecordedArg> {
    let usual = IntegerType::of_dtype(dtype);
    match dim {
        Some(dim) if usual.is_some() && dim.known().is_none() => {
            let ty = ty.or(usual).filter(|ty| ty.takes(dtype))?;
            Some(RecordedArg::Dim { dim: dim.clone(), ty })
        }
        // An expression without dims has one value, and a parameter that takes no dims has values that are named as dims, such as `inf`.
        Some(dim) => {
            let text = dim.known().map_or_else(|| text.to_owned(), |number| number.to_string());
            word_of(dtype, &text).map(|word| RecordedArg::Word { word, text })
        }
        None => word_of(dtype, text).map(|word| RecordedArg::Word { word, text: text.to_owned() }),
    }
}

/// The names of an op's arguments, which the schema has behind their types: `mylib::silu(Tensor x, float a) -> Tensor`.
fn parameters(def: &'static OpDef) -> Vec<&'static str> {
    let list = def.schema.split_once('(').and_then(|(_, rest)| rest.split_once(") -> ")).map_or("", |(list, _)| list);
    list.split(", ").filter_map(|param| param.rsplit(' ').next()).collect()
}
