//! The environment of a parsed text: the kernels, constants, configurations and ops that the text refers to by name.

use std::collections::HashMap;

use kernel_package::{Constant, NodeOp, Plan};
use kernel_runtime::ops::parts::{Kernel, did_you_mean};
use kernel_runtime::ops::recorder::{RecordedArg, RecordedLaunch, TensorType};
use kernel_runtime::ops::{self, Module, OpDef, Tensor};

use super::expand::Calls;
use super::listing::{hash, kernels};
use crate::graph::{Graph, Level};

/// What the text of a graph names and does not contain: kernels, the elements of constants, the configurations of launches, and ops. [`Graph::parse`] looks them up here.
///
/// ```
/// use galatea::ops::Tensor;
/// use galatea::prelude::*;
/// use galatea::{Dim, Dtype};
/// use kernel_graph::{Environment, Graph, export, input};
///
/// #[kernel]
/// fn add_weights(x: Ptr<f32>, w: Ptr<f32>, y: PtrMut<f32>, n: usize) {
///     let at = program_id(0) * 64 + arange(0, 64);
///     store(y + at, load(x + at, mask = at < n) + load(w + at, mask = at < n), mask = at < n);
/// }
///
/// # fn main() -> kernel_graph::Result<()> {
/// let device = Device::cpu();
/// let w: Tensor = device.tensor(&[1.0f32, 2.0])?.into();
/// let body = |x: &Tensor| {
///     let mut y = x.empty_like()?;
///     add_weights(x, &w, &mut y, x.numel()).grid(1).launch()?;
///     Ok(y)
/// };
/// let graph = export(|[x]| body(x), [input("x", [Dim::new("n", 0..=2)], Dtype::F32)])?;
///
/// // The same program with other elements in place of `c0`.
/// let other = device.tensor(&[10.0f32, 20.0])?.into();
/// let environment = Environment::from(&graph).with_constant("c0", other);
/// let parsed = Graph::parse(&graph.to_string(), &environment)?;
/// assert_eq!(parsed.to_string(), graph.to_string());
///
/// let x: Tensor = device.tensor(&[0.5f32, 0.5])?.into();
/// assert_eq!(parsed.compile(&device)?.run([&x])?[0].to_vec::<f32>()?, [10.5, 20.5]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Environment {
    kernels: Vec<&'static Kernel>,
    /// By name. `None` if two plans have different tensors of one name.
    constants: HashMap<String, Option<Tensor>>,
    /// Launches with configurations, and the types of their tensors.
    configured: Vec<(RecordedLaunch, Vec<TensorType>)>,
    ops: HashMap<&'static str, &'static OpDef>,
    /// The schemas of the opaque ops that plans call, by name.
    opaque: HashMap<String, String>,
    calls: Calls,
}

impl Environment {
    /// Without kernels and constants.
    pub fn new() -> Environment {
        Environment::default()
    }

    /// With the kernels, constants and configurations of a plan, and with the schemas of its opaque ops, such as that of a package. Constants have the names that a text of the plan gives them.
    #[must_use]
    pub fn with_plan(mut self, plan: &Plan) -> Environment {
        for kernel in kernels(plan) {
            if !self.kernels.iter().any(|known| std::ptr::eq(*known, kernel)) {
                self.kernels.push(kernel);
            }
        }
        let on_cpu = plan.on_cpu.as_deref().map(|on_cpu| (on_cpu, plan.constant_names_on_cpu(on_cpu)));
        for (plan, names) in std::iter::once((plan, plan.constant_names())).chain(on_cpu) {
            for (name, Constant { tensor, .. }) in names.into_iter().zip(&plan.constants) {
                let known = self.constants.entry(name).or_insert_with(|| Some(tensor.clone()));
                known.take_if(|known| !known.is_same(tensor));
            }
            for node in &plan.nodes {
                match &node.op {
                    NodeOp::Launch(launch) if launch.tuning().is_some() => {
                        let types = tensors(launch).map(|value| plan.ty(value).clone()).collect();
                        self.configured.push((launch.clone(), types));
                    }
                    NodeOp::Extern(call) => drop(self.opaque.insert(call.name().to_owned(), call.schema().to_owned())),
                    NodeOp::Alloc { .. } | NodeOp::View { .. } | NodeOp::Launch(_) => {}
                }
            }
        }
        self
    }

    /// With what [`Environment::with_plan`] takes of the graph's plan, and with the calls of ops.
    #[must_use]
    pub fn with_graph(self, graph: &Graph) -> Environment {
        let mut environment = self.with_plan(&graph.plan);
        environment.ops.extend(graph.calls.iter().map(|call| (call.def.name, call.def)));
        environment.calls.add(graph.listing(Level::Kernels));
        environment
    }

    /// With the parameters of a model, in place of constants of their names.
    #[must_use]
    pub fn with_parameters(mut self, model: &impl Module) -> Environment {
        self.constants.extend(model.parameters().into_iter().map(|(name, tensor)| (name, Some(tensor))));
        self
    }

    /// With a constant, in place of one of its name.
    #[must_use]
    pub fn with_constant(mut self, name: &str, tensor: Tensor) -> Environment {
        self.constants.insert(name.to_owned(), Some(tensor));
        self
    }

    /// The kernel of a name, with IR of that hash if there is one.
    pub(super) fn kernel(&self, name: &str, digits: Option<&str>) -> Result<&'static Kernel, (String, String)> {
        let named: Vec<&'static Kernel> = self.kernels.iter().copied().filter(|kernel| kernel.name() == name).collect();
        let fitting = |kernel: &&'static Kernel| digits.is_none_or(|digits| hash(kernel).starts_with(digits));
        let mut found: Vec<&'static Kernel> = Vec::new();
        for kernel in named.iter().copied().filter(fitting) {
            // Kernels with the same IR are one.
            if found.iter().all(|known| hash(known) != hash(kernel)) {
                found.push(kernel);
            }
        }
        match (&found[..], &named[..]) {
            ([kernel], _) => Ok(kernel),
            ([], []) => {
                let known: Vec<&str> = self.kernels.iter().map(|kernel| kernel.name()).collect();
                let help = match similar(name, &known) {
                    Some(similar) => format!("did you mean `{similar}`?"),
                    None => "add the graph or the plan that launches it: `Environment::from(&graph)`".to_owned(),
                };
                Err((format!("the environment has no kernel `{name}`"), help))
            }
            (several, all) => {
                let kernels = if several.is_empty() { all } else { several };
                let listed: Vec<String> = kernels.iter().map(|kernel| format!("`{name}#{}`", hash(kernel))).collect();
                let written = digits.map_or_else(|| name.to_owned(), |digits| format!("{name}#{digits}"));
                let count = if several.is_empty() { "no kernel".to_owned() } else { format!("{} kernels", several.len()) };
                let message = format!("the environment has {count} `{written}`");
                Err((message, format!("write {}", listed.join(" or "))))
            }
        }
    }

    /// The elements of a constant.
    pub(super) fn constant(&self, name: &str) -> Result<&Tensor, (String, String)> {
        let add = "add it: `environment.with_constant(name, tensor)`, or `.with_parameters(&model)`";
        match self.constants.get(name) {
            Some(Some(tensor)) => Ok(tensor),
            Some(None) => Err((format!("the environment has several constants `{name}`"), add.to_owned())),
            None => {
                let mut known: Vec<&str> = self.constants.keys().map(|name| &**name).collect();
                known.sort_unstable();
                let help = similar(name, &known).map_or_else(|| add.to_owned(), |similar| format!("did you mean `{similar}`?"));
                Err((format!("the environment has no constant `{name}`"), help))
            }
        }
    }

    /// The calls of graphs.
    pub(super) fn calls(&self) -> &Calls {
        &self.calls
    }

    /// The launch with the configurations of an equal one.
    pub(super) fn configured(&self, launch: &RecordedLaunch, types: &[TensorType], count: usize) -> Option<RecordedLaunch> {
        let equal = self.configured.iter().filter(|(known, of)| known.grids().count() == count && of == types);
        equal.filter_map(|(known, _)| launch.clone().configured_as(known)).next()
    }

    /// The schema of an opaque op that a plan of the environment calls.
    pub(super) fn opaque_schema(&self, name: &str) -> Option<&str> {
        self.opaque.get(name).map(|schema| &**schema)
    }

    /// The op of a name: one that a graph of the environment calls, or one of the program.
    pub(super) fn op(&self, name: &str) -> kernel_runtime::Result<&'static OpDef> {
        self.ops.get(name).map_or_else(|| ops::get(name), |def| Ok(*def))
    }
}

/// [`Environment::with_graph`] alone.
impl From<&Graph> for Environment {
    fn from(graph: &Graph) -> Environment {
        Environment::new().with_graph(graph)
    }
}

/// The tensors of a launch.
pub(super) fn tensors(launch: &RecordedLaunch) -> impl Iterator<Item = kernel_runtime::ops::recorder::Value> + '_ {
    launch.arguments().iter().filter_map(|arg| if let RecordedArg::Tensor { value, .. } = arg { Some(*value) } else { None })
}

/// A suggestion for a name that does not exist. A long text is no misspelt name.
fn similar<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    if name.len() > 100 { None } else { did_you_mean(name, known.iter().copied()) }
}
