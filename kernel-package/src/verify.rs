//! The rules of plans. A session relies on them, and a package may break them.

use std::collections::HashSet;

use kernel_runtime::ops::ExternArg;
use kernel_runtime::ops::recorder::{RecordedArg, TensorType, Value};
use kernel_runtime::{Dim, Site};

use crate::plan::{NodeOp, Plan};

/// A broken rule of plans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The rule, and what breaks it.
    pub reason: String,
    /// The operation, if the rule is one of an operation's dims.
    pub location: Option<Site>,
}

impl Plan {
    /// Checks that each value has a type and one definition in front of its uses, and that a launch or a call of an opaque op defines a value for each
    /// tensor that it writes.
    ///
    /// # Errors
    /// The first broken rule.
    pub fn verify(&self) -> Result<(), Violation> {
        let invalid = |reason: String| Err(Violation { reason, location: None });
        let mut defined = vec![false; self.types.len()];
        if self.types.len() < self.inputs.len() {
            return invalid("it has fewer values than inputs".to_owned());
        }
        let mut names = HashSet::new();
        if let Some(input) = self.inputs.iter().find(|input| !names.insert(&*input.name)) {
            return invalid(format!("it has two inputs `{}`", input.name));
        }
        for ((defined, input), ty) in defined.iter_mut().zip(&self.inputs).zip(&self.types) {
            if input.ty != *ty {
                return invalid(format!("input `{}` has another type than its value", input.name));
            }
            *defined = true;
        }
        for constant in &self.constants {
            match defined.get_mut(constant.value.0 as usize) {
                Some(defined) if !*defined => *defined = true,
                _ => return invalid(format!("constant value {} is defined twice, or has no type", constant.value.0)),
            }
            let (tensor, ty) = (&constant.tensor, self.ty(constant.value));
            if tensor.dtype() != ty.dtype || tensor.dims() != ty.dims {
                return invalid(format!("constant value {} has another type than its tensor", constant.value.0));
            }
        }
        let is_defined = |defined: &[bool], value: Value| defined.get(value.0 as usize).copied().unwrap_or(false);
        for (number, node) in self.nodes.iter().enumerate() {
            let (mut undefined, mut written) = (None, Vec::new());
            node.op.each_operand(&mut |value, writes| {
                if writes {
                    written.push(value);
                }
                if !is_defined(&defined, value) {
                    undefined = Some(value);
                }
            });
            if let Some(Value(value)) = undefined {
                return invalid(format!("node {number} uses value {value} in front of its definition"));
            }
            // The number of results that are no new values of written tensors, which follow them.
            let returned = match &node.op {
                NodeOp::Alloc { .. } | NodeOp::View { .. } => 1,
                NodeOp::Launch(_) => 0,
                NodeOp::Extern(call) => call.returned().unwrap_or_else(|| node.results.len().saturating_sub(written.len())),
            };
            let expected = returned + written.len();
            if node.results.len() != expected {
                return invalid(format!("node {number} has {} results instead of {expected}", node.results.len()));
            }
            for result in &node.results {
                match defined.get_mut(result.0 as usize) {
                    Some(defined) if !*defined => *defined = true,
                    _ => return invalid(format!("node {number} defines value {} again, or without a type", result.0)),
                }
            }
            if node.results[returned..].iter().zip(&written).any(|(result, written)| self.ty(*result) != self.ty(*written)) {
                return invalid(format!("node {number} gives a tensor that it writes another type"));
            }
            self.operands_fit(number, &node.op, &node.results)?;
        }
        if let Some(value) = self.outputs.iter().find(|value| !is_defined(&defined, **value)) {
            return invalid(format!("output value {} has no definition", value.0));
        }
        let Some(on_cpu) = &self.on_cpu else { return Ok(()) };
        on_cpu.verify()?;
        if self.interface() != on_cpu.interface() || on_cpu.on_cpu.is_some() {
            return invalid("its plan for the CPU has other inputs or outputs".to_owned());
        }
        Ok(())
    }

    /// The names and the types of inputs, and the types of outputs, which are all defined.
    fn interface(&self) -> Vec<(&str, &TensorType)> {
        let inputs = self.inputs.iter().map(|input| (&*input.name, &input.ty));
        inputs.chain(self.outputs.iter().map(|value| ("", self.ty(*value)))).collect()
    }

    /// Checks the dtypes of the operands, which are defined.
    fn operands_fit(&self, number: usize, op: &NodeOp, results: &[Value]) -> Result<(), Violation> {
        let fits = match op {
            NodeOp::Alloc { .. } | NodeOp::Extern(_) => true,
            NodeOp::View { of, .. } => results.iter().all(|result| self.ty(*result).dtype == self.ty(*of).dtype),
            NodeOp::Launch(launch) => launch.args().all(|(_, arg)| match arg {
                RecordedArg::Tensor { value, dtype, .. } => self.ty(*value).dtype == *dtype,
                RecordedArg::Word { .. } | RecordedArg::Dim { .. } => true,
            }),
        };
        if fits { Ok(()) } else { Err(Violation { reason: format!("node {number} uses a value of another dtype"), location: None }) }
    }

    /// Checks that the inputs determine all dims of operations.
    ///
    /// # Errors
    /// The first dim that they do not determine, or that has an error.
    pub fn verify_dims(&self) -> Result<(), Violation> {
        // A run takes the value of a dim from an axis that is the dim itself: `2*n` gives none.
        let known: HashSet<Dim> =
            self.inputs.iter().flat_map(|input| &input.ty.dims).filter(|dim| dim.is_named()).flat_map(Dim::named).collect();
        for input in &self.inputs {
            if let Some(named) = input.ty.dims.iter().flat_map(Dim::named).find(|named| !known.contains(named)) {
                return Err(Violation { reason: format!("no input determines dim `{named}`"), location: None });
            }
        }
        for node in &self.nodes {
            let check = |dim: &Dim| {
                let undetermined = dim.named().into_iter().find(|named| !known.contains(named));
                let reason = match (dim.bounds(), undetermined) {
                    (Err(error), _) => error.to_string(),
                    (Ok(_), Some(named)) => format!("no input determines dim `{named}`"),
                    (Ok(_), None) => return Ok(()),
                };
                Err(Violation { reason, location: Some(node.location.clone()) })
            };
            node.results.iter().flat_map(|result| &self.ty(*result).dims).try_for_each(check)?;
            match &node.op {
                NodeOp::Alloc { .. } => {}
                NodeOp::View { offset, .. } => check(offset)?,
                NodeOp::Launch(launch) => {
                    launch.grids().flatten().try_for_each(check)?;
                    for (_, arg) in launch.args() {
                        if let RecordedArg::Dim { dim, .. } = arg {
                            check(dim)?;
                        }
                    }
                }
                NodeOp::Extern(call) => {
                    for arg in call.arguments() {
                        if let ExternArg::Dim(dim) = arg {
                            check(dim)?;
                        }
                    }
                }
            }
        }
        self.on_cpu.as_ref().map_or(Ok(()), |on_cpu| on_cpu.verify_dims())
    }
}
