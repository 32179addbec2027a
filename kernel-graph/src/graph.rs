//! Graphs: a program as a list of allocations, parts and launches.

use std::ops::Range;

use kernel_package::{Constant, Node, PackageWriter, Plan, PlanInput, Session};
use kernel_runtime::ops::recorder::{TensorType, Value};
use kernel_runtime::ops::{Module, OpDef, OpValue};
use kernel_runtime::{Device, Dim};

use crate::error::Result;

/// A recorded program: a plan, and the calls of ops in it. `Display` prints it as text.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) plan: Plan,
    /// The calls of ops, in the order in which they began. A call contains the calls that began and ended in it.
    pub(crate) calls: Vec<Call>,
}

/// A call of an op: the nodes that its function recorded.
#[derive(Clone, Debug)]
pub struct Call {
    /// The op.
    pub def: &'static OpDef,
    /// The names and the values of its arguments.
    pub args: Vec<(&'static str, OpValue)>,
    /// The nodes of the call.
    pub nodes: Range<usize>,
    /// The values that it returned or wrote.
    pub results: Vec<Value>,
    /// Its floating-point operations, if the op has a formula for them.
    pub flops: Option<Dim>,
}

/// How much of a graph its text shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// A line for each call of an op, and the nodes outside of calls.
    Ops,
    /// All nodes.
    Kernels,
}

impl Graph {
    /// The name; `graph` if none was given.
    pub fn name(&self) -> &str {
        &self.plan.name
    }

    /// The same graph with a name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Graph {
        name.clone_into(&mut self.plan.name);
        self
    }

    /// The allocations, parts and launches, which a session runs.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The inputs, in the order of a run's tensors.
    pub fn inputs(&self) -> &[PlanInput] {
        &self.plan.inputs
    }

    /// The tensors that are the same in each run.
    pub fn constants(&self) -> &[Constant] {
        &self.plan.constants
    }

    /// The operations, in the order of their execution.
    pub fn nodes(&self) -> &[Node] {
        &self.plan.nodes
    }

    /// The calls of ops.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The values that a run returns.
    pub fn outputs(&self) -> &[Value] {
        &self.plan.outputs
    }

    /// The dtype and the extents of a value.
    ///
    /// # Panics
    /// If the graph has no such value.
    pub fn ty(&self, value: Value) -> &TensorType {
        self.plan.ty(value)
    }

    /// The same graph, in which constants have the names of the model's parameters. Other constants keep theirs: `c0`, `c1` and so on.
    #[must_use]
    pub fn with_params(mut self, model: &impl Module) -> Graph {
        let parameters = model.parameters();
        let on_cpu = self.plan.on_cpu.iter_mut().flat_map(|plan| &mut plan.constants);
        for constant in self.plan.constants.iter_mut().chain(on_cpu) {
            let named = parameters.iter().find(|(_, parameter)| parameter.is_same(&constant.tensor));
            constant.name = named.map(|(name, _)| name.clone()).or(constant.name.take());
        }
        self
    }

    /// A session that runs the graph on a device.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn compile(&self, device: &Device) -> Result<Session> {
        Ok(Session::new(self.plan.clone(), device)?)
    }

    /// Writes packages of the graph.
    ///
    /// ```no_run
    /// # fn f(graph: &kernel_graph::Graph) -> Result<(), kernel_package::PackageError> {
    /// graph.package().write("silu_mlp.gpk")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn package(&self) -> PackageWriter<'_> {
        PackageWriter::new(&self.plan)
    }

    /// The named dims of the inputs, sorted by name.
    pub fn dims(&self) -> Vec<Dim> {
        self.plan.dims()
    }
}

/// A session runs the plan.
impl From<Graph> for Plan {
    fn from(graph: Graph) -> Plan {
        graph.plan
    }
}
