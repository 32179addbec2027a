//! Graphs: a program as a list of allocations, parts and launches.

use std::ops::Range;
use std::panic::Location;

use kernel_runtime::Dim;
use kernel_runtime::ops::recorder::{RecordedArg, RecordedLaunch, TensorType, Value};
use kernel_runtime::ops::{OpDef, OpValue, Tensor};

/// A recorded program. `Display` prints it as text.
///
/// A value is an input, a constant or a result of a node. It has one definition, and a launch that writes a tensor defines a new value of it.
#[derive(Debug)]
pub struct Graph {
    pub(crate) name: String,
    pub(crate) inputs: Vec<GraphInput>,
    /// Sorted by value.
    pub(crate) constants: Vec<Constant>,
    pub(crate) nodes: Vec<Node>,
    /// The calls of ops, in the order in which they began. A call contains the calls that began and ended in it.
    pub(crate) calls: Vec<Call>,
    /// The type of each value.
    pub(crate) types: Vec<TensorType>,
    pub(crate) outputs: Vec<Value>,
}

/// An input of a graph.
#[derive(Clone, Debug)]
pub struct GraphInput {
    /// The name, which no other input has.
    pub name: String,
    /// The dtype and the extents.
    pub ty: TensorType,
}

/// A tensor whose elements are the same in each run, such as a parameter of a model.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Its value in the graph.
    pub value: Value,
    /// The elements, shared with the tensor that the recorded function used.
    pub tensor: Tensor,
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
}

/// How much of a graph its text shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// A line for each call of an op, and the nodes outside of calls.
    Ops,
    /// All nodes.
    Kernels,
}

/// An operation of a graph.
#[derive(Debug)]
pub struct Node {
    /// The operation.
    pub op: NodeOp,
    /// The values that it defines.
    pub results: Vec<Value>,
    /// Where the program asked for it.
    pub location: &'static Location<'static>,
}

/// The kinds of operations.
#[derive(Debug)]
pub enum NodeOp {
    /// New memory.
    Alloc {
        /// Whether the elements are zeros. Otherwise they are arbitrary.
        zeroed: bool,
    },
    /// A part of a value: the elements from number `offset` on.
    View {
        /// The whole.
        of: Value,
        /// The number of the first element.
        offset: Dim,
    },
    /// A launch. It defines a value for each tensor that the kernel writes, in the order of the arguments.
    Launch(RecordedLaunch),
}

impl Graph {
    /// The name; `graph` if none was given.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same graph with a name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Graph {
        name.clone_into(&mut self.name);
        self
    }

    /// The inputs, in the order of a run's tensors.
    pub fn inputs(&self) -> &[GraphInput] {
        &self.inputs
    }

    /// The tensors that are the same in each run.
    pub fn constants(&self) -> &[Constant] {
        &self.constants
    }

    /// The operations, in the order of their execution.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The calls of ops.
    pub fn calls(&self) -> &[Call] {
        &self.calls
    }

    /// The values that a run returns.
    pub fn outputs(&self) -> &[Value] {
        &self.outputs
    }

    /// The dtype and the extents of a value.
    ///
    /// # Panics
    /// If the graph has no such value.
    pub fn ty(&self, value: Value) -> &TensorType {
        &self.types[value.0 as usize]
    }

    /// The named dims of the inputs, sorted by name.
    pub fn dims(&self) -> Vec<Dim> {
        let mut dims: Vec<Dim> = self.inputs.iter().flat_map(|input| &input.ty.dims).flat_map(Dim::named).collect();
        dims.sort_by_key(Dim::to_string);
        dims.dedup();
        dims
    }
}

impl NodeOp {
    /// Calls the function with each value that the operation uses, and whether a launch writes it.
    pub(crate) fn each_operand(&self, visit: &mut dyn FnMut(Value, bool)) {
        match self {
            NodeOp::Alloc { .. } => {}
            NodeOp::View { of, .. } => visit(*of, false),
            NodeOp::Launch(launch) => {
                for (_, arg) in launch.args() {
                    if let RecordedArg::Tensor { value, writes, .. } = arg {
                        visit(*value, *writes);
                    }
                }
            }
        }
    }
}
