//! Plans: a program as a list of allocations, parts and launches.

use std::collections::HashSet;

use kernel_runtime::ops::recorder::{RecordedArg, RecordedLaunch, TensorType, Value};
use kernel_runtime::ops::{ExternCall, Tensor};
use kernel_runtime::{Device, Dim, Site};

/// A program that a [`Session`](crate::Session) runs.
///
/// A value is an input, a constant or a result of a node. It has one definition, and a launch that writes a tensor defines a new value of it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The name of the program.
    pub name: String,
    /// The inputs, in the order of a run's tensors. Their values are the first ones.
    pub inputs: Vec<PlanInput>,
    /// The tensors that are the same in each run.
    pub constants: Vec<Constant>,
    /// The operations, in the order of their execution.
    pub nodes: Vec<Node>,
    /// The type of each value.
    pub types: Vec<TensorType>,
    /// The values that a run returns.
    pub outputs: Vec<Value>,
    /// The plan for the CPU, if ops have functions of their own for it: with the same inputs, and outputs of the same types.
    pub on_cpu: Option<Box<Plan>>,
    /// Why the program does not run on the CPU, if it does not: an op has a function of its own for it that cannot be recorded.
    pub not_on_cpu: Option<String>,
}

/// An input of a program.
#[derive(Clone, Debug)]
pub struct PlanInput {
    /// The name, which no other input has.
    pub name: String,
    /// The dtype and the extents.
    pub ty: TensorType,
}

/// A tensor whose elements are the same in each run, such as a parameter of a model.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Its value in the plan.
    pub value: Value,
    /// The name of a parameter, such as `linear1.weight`.
    pub name: Option<String>,
    /// The elements, shared with the tensor that the recorded function used.
    pub tensor: Tensor,
}

/// An operation.
#[derive(Clone, Debug)]
pub struct Node {
    /// The operation.
    pub op: NodeOp,
    /// The values that it defines.
    pub results: Vec<Value>,
    /// Where the program asked for it.
    pub location: Site,
}

/// The kinds of operations.
#[derive(Clone, Debug)]
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
    /// A call of an opaque op. It defines a value for each tensor that the op returns, and then one for each tensor that it writes, in the order of the arguments.
    Extern(ExternCall),
}

impl Plan {
    /// The dtype and the extents of a value.
    ///
    /// # Panics
    /// If the plan has no such value.
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

    /// The name of each constant: that of a parameter, or `c0`, `c1` and so on. No two are equal, unless two constants are one parameter.
    pub fn constant_names(&self) -> Vec<String> {
        let known: HashSet<&String> = self.constants.iter().filter_map(|constant| constant.name.as_ref()).collect();
        let of = |(number, constant): (usize, &Constant)| {
            if let Some(name) = &constant.name {
                return name.clone();
            }
            let mut name = format!("c{number}");
            while known.contains(&name) {
                name.push('_');
            }
            name
        };
        self.constants.iter().enumerate().map(of).collect()
    }

    /// The names of the constants of the plan for the CPU: of a constant of this plan, the same name.
    pub fn constant_names_on_cpu(&self, on_cpu: &Plan) -> Vec<String> {
        let own = self.constant_names();
        let of = |(constant, name): (&Constant, String)| {
            if constant.name.is_some() {
                return name;
            }
            match self.constants.iter().position(|own| own.tensor.is_same(&constant.tensor)) {
                Some(number) => own[number].clone(),
                None => format!("cpu.{name}"),
            }
        };
        on_cpu.constants.iter().zip(on_cpu.constant_names()).map(of).collect()
    }

    /// The schemas of the opaque ops that the plan calls, and those of its plan for the CPU: each once, sorted.
    pub fn opaque_ops(&self) -> Vec<&str> {
        let plans = std::iter::once(self).chain(self.on_cpu.as_deref());
        let ops = plans.flat_map(|plan| &plan.nodes).map(|node| &node.op);
        let mut schemas: Vec<&str> = ops.filter_map(|op| if let NodeOp::Extern(call) = op { Some(call.schema()) } else { None }).collect();
        schemas.sort_unstable();
        schemas.dedup();
        schemas
    }

    /// The plan for a device: this one, or that for the CPU.
    pub(crate) fn on(&self, device: &Device) -> &Plan {
        self.on_cpu.as_deref().filter(|_| device.is_cpu()).unwrap_or(self)
    }

    /// [`Plan::on`], to change.
    pub(crate) fn on_mut(&mut self, device: &Device) -> &mut Plan {
        if self.on_cpu.is_none() || !device.is_cpu() {
            return self;
        }
        self.on_cpu.as_deref_mut().unwrap_or_else(|| unreachable!("it was tested"))
    }
}

impl NodeOp {
    /// Calls the function with each value that the operation uses, and whether a launch writes it.
    pub fn each_operand(&self, visit: &mut dyn FnMut(Value, bool)) {
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
            NodeOp::Extern(call) => call.each_value(visit),
        }
    }
}
