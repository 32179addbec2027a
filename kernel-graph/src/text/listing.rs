//! A graph as a listing.

use std::collections::{HashMap, HashSet};

use kernel_package::{Node, NodeOp, Plan};
use kernel_runtime::ops::parts::{IntegerType, Kernel, KernelParts};
use kernel_runtime::ops::recorder::{RecordedArg, RecordedLaunch, Value};
use kernel_runtime::ops::{ExternArg, ExternCall, OpValue};

use super::{
    Argument, CallArgument, CallText, ConstantLine, ExternText, Input, LaunchHead, LaunchText, Line, Listing, Name, NameKind, OnCpu,
    Operation, Section, Span,
};
use crate::graph::{Call, Graph, Level};
use crate::items::Item;

/// The text of all nodes, with those of calls in braces.
impl std::fmt::Display for Graph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.listing(Level::Kernels).fmt(f)
    }
}

impl Graph {
    /// The graph as text, which [`Graph::parse`] reads.
    pub fn text(&self, level: Level) -> String {
        self.listing(level).to_string()
    }

    /// The text of the graph as data. At [`Level::Kernels`] it has the program for the CPU, too, if ops have functions of their own for it.
    pub fn listing(&self, level: Level) -> Listing {
        let shared = shared_names(&self.plan);
        let on_cpu = match (level, &self.plan.on_cpu, &self.plan.not_on_cpu) {
            (Level::Kernels, Some(plan), _) => {
                let names = self.plan.constant_names_on_cpu(plan);
                OnCpu::Section(section(&Graph { plan: (**plan).clone(), calls: Vec::new() }, level, &names, &shared))
            }
            (Level::Kernels, None, Some(reason)) => OnCpu::Not(reason.clone()),
            (Level::Kernels, None, None) | (Level::Ops, ..) => OnCpu::Same,
        };
        let input = |input: &kernel_package::PlanInput| Input { name: input.name.clone(), ty: input.ty.clone(), span: Span::default() };
        Listing {
            name: self.plan.name.clone(),
            inputs: self.plan.inputs.iter().map(input).collect(),
            dims: self.dims().into_iter().map(|dim| (dim, Span::default())).collect(),
            program: section(self, level, &self.plan.constant_names(), &shared),
            on_cpu,
            source: "".into(),
        }
    }
}

fn section(graph: &Graph, level: Level, constants: &[String], shared: &HashSet<&'static str>) -> Section {
    let items = graph.items(level);
    let mut cx = Cx { graph, level, shared, names: vec![NameKind::Unused; graph.plan.types.len()], next: 0, lines: Vec::new() };
    for (name, input) in cx.names.iter_mut().zip(&graph.plan.inputs) {
        *name = NameKind::Local(input.name.clone());
    }
    for (constant, name) in graph.plan.constants.iter().zip(constants) {
        cx.names[constant.value.0 as usize] = NameKind::Constant(name.clone());
    }
    cx.lines(&items);
    let constant = |constant: &kernel_package::Constant| ConstantLine {
        name: cx.name(constant.value),
        is_parameter: constant.name.is_some(),
        ty: graph.ty(constant.value).clone(),
    };
    let constants = graph.plan.constants.iter().map(constant).collect();
    let outputs = graph.plan.outputs.iter().map(|value| cx.name(*value)).collect();
    Section { constants, lines: cx.lines, outputs, span: Span::default() }
}

struct Cx<'g> {
    graph: &'g Graph,
    level: Level,
    /// The names that several kernels have.
    shared: &'g HashSet<&'static str>,
    /// The names of values: those of inputs and constants, and numbers for results, calls before what they contain.
    names: Vec<NameKind>,
    next: usize,
    lines: Vec<Line>,
}

impl Cx<'_> {
    fn lines(&mut self, items: &[Item<'_>]) {
        for item in items {
            match item {
                Item::Node(node) => {
                    self.number(&node.results);
                    let operation = self.operation(node);
                    self.line(&node.results, operation);
                }
                Item::Call(call, results, inner) => {
                    self.number(results);
                    let (at, operation) = (self.lines.len(), Operation::Call(self.call(call)));
                    self.line(results, operation);
                    self.lines(inner);
                    let lines = self.lines.len() - at - 1;
                    if let (Operation::Call(call), Level::Kernels) = (&mut self.lines[at].operation, self.level) {
                        call.contents = Some(lines);
                    }
                }
            }
        }
    }

    fn number(&mut self, results: &[Value]) {
        for result in results {
            let name = &mut self.names[result.0 as usize];
            if *name == NameKind::Unused {
                *name = NameKind::Local(self.next.to_string());
                self.next += 1;
            }
        }
    }

    fn name(&self, value: Value) -> Name {
        Name { kind: self.names[value.0 as usize].clone(), span: Span::default() }
    }

    fn line(&mut self, results: &[Value], operation: Operation) {
        let types = results.iter().map(|result| self.graph.ty(*result).clone()).collect();
        let results = results.iter().map(|result| self.name(*result)).collect();
        self.lines.push(Line { results, types, operation, span: Span::default() });
    }

    fn operation(&self, node: &Node) -> Operation {
        match &node.op {
            NodeOp::Alloc { zeroed } => Operation::Alloc { zeroed: *zeroed },
            NodeOp::View { of, offset } => Operation::View { of: self.name(*of), offset: offset.clone() },
            NodeOp::Launch(launch) => Operation::Launch(self.launch(launch)),
            NodeOp::Extern(call) => Operation::Extern(self.extern_call(call)),
        }
    }

    fn call(&self, call: &Call) -> CallText {
        let args = call.args.iter().map(|(name, value)| ((*name).to_owned(), self.call_argument(value), Span::default())).collect();
        CallText { op: call.def.name.to_owned(), args, flops: call.flops.clone(), contents: None }
    }

    fn call_argument(&self, value: &OpValue) -> CallArgument {
        match value {
            OpValue::Tensor(value) => CallArgument::Tensor(self.name(*value)),
            // The recorder could not keep the tensor.
            OpValue::Real(_) => CallArgument::Tensor(Name { kind: NameKind::Unused, span: Span::default() }),
            OpValue::List(values) => CallArgument::List(values.iter().map(|value| self.call_argument(value)).collect()),
            OpValue::Text(text) => CallArgument::Text(text.clone()),
        }
    }

    fn launch(&self, launch: &RecordedLaunch) -> LaunchText {
        let (kernel, key) = (launch.of_kernel(), launch.key());
        let argument = |(number, (name, arg)): (usize, (&str, &RecordedArg))| {
            let argument = match arg {
                RecordedArg::Tensor { value, .. } => Argument::Tensor(self.name(*value)),
                RecordedArg::Word { text, .. } => Argument::Scalar { text: text.clone(), dim: None, ty: None },
                RecordedArg::Dim { dim, ty } => {
                    let usual = kernel.dtype_of(number, key).and_then(IntegerType::of_dtype);
                    Argument::Scalar { text: dim.to_string(), dim: Some(dim.clone()), ty: Some(*ty).filter(|ty| Some(*ty) != usual) }
                }
            };
            (name.to_owned(), argument, Span::default())
        };
        let hash = self.shared.contains(launch.kernel()).then(|| hash(kernel));
        LaunchText { head: LaunchHead { hash, ..LaunchHead::of(launch) }, args: launch.args().enumerate().map(argument).collect() }
    }

    fn extern_call(&self, call: &ExternCall) -> ExternText {
        let argument = |arg: &ExternArg| match arg {
            ExternArg::Tensor(value) | ExternArg::Written(value) => Argument::Tensor(self.name(*value)),
            ExternArg::Tensors(values) => Argument::List(values.iter().map(|value| self.name(*value)).collect()),
            ExternArg::Dim(dim) => Argument::Scalar { text: dim.to_string(), dim: Some(dim.clone()), ty: None },
            other => Argument::Scalar { text: other.text(&|value| self.name(value).to_string()), dim: None, ty: None },
        };
        let args = call.args().map(|(name, arg)| (name.to_owned(), argument(arg), Span::default())).collect();
        ExternText { op: call.name().to_owned(), args, flops: call.flops().cloned() }
    }
}

impl LaunchHead {
    /// The head of a launch, without a hash.
    pub(crate) fn of(launch: &RecordedLaunch) -> LaunchHead {
        LaunchHead {
            kernel: launch.kernel().to_owned(),
            hash: None,
            generics: launch.generics(),
            grid: launch.grid().clone(),
            configurations: launch.grids().count(),
        }
    }
}

/// The names that kernels of a plan with different IR share.
fn shared_names(plan: &Plan) -> HashSet<&'static str> {
    let (mut first, mut shared) = (HashMap::new(), HashSet::new());
    for kernel in kernels(plan) {
        let known = *first.entry(kernel.name()).or_insert(kernel);
        if !std::ptr::eq(known, kernel) && hash(known) != hash(kernel) {
            shared.insert(kernel.name());
        }
    }
    shared
}

/// The kernels of all launches, in order.
pub(super) fn kernels(plan: &Plan) -> impl Iterator<Item = &'static Kernel> + '_ {
    let nodes = plan.nodes.iter().chain(plan.on_cpu.iter().flat_map(|plan| &plan.nodes));
    nodes.filter_map(|node| if let NodeOp::Launch(launch) = &node.op { Some(launch.of_kernel()) } else { None })
}

/// The first digits of a hash of the kernel's IR.
pub(super) fn hash(kernel: &Kernel) -> String {
    let ir = KernelParts::of(kernel, &[], false).ir_without_locations();
    blake3::hash(ir.as_bytes()).to_hex()[..8].to_owned()
}
