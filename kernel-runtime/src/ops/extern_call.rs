//! Recorded calls of opaque ops: the schema and the arguments of a call that stays one operation.
//!
//! A launch is data: its kernel travels with it. An opaque op is code of a program, of which a call has the name. So a call that comes from a file is
//! [resolved](ExternCall::resolve) first: this program must have an opaque op with the same schema.

use std::borrow::Cow;

use super::input::registered;
use super::recorder::Value;
use super::schema::Schema;
use super::{OpDef, OpInput, OpsError, Tensor};
use crate::kernel::literals::{word_of, written};
use crate::{Dim, DimValues, Dtype, Error, Result};

/// A call of an opaque op, without memory and without values of dims.
///
/// The arguments fit the schema.
#[derive(Clone, Debug)]
pub struct ExternCall {
    /// `None` in a call of a file that is not resolved.
    def: Option<&'static OpDef>,
    schema: Cow<'static, str>,
    args: Vec<ExternArg>,
    flops: Option<Dim>,
}

/// An argument of a recorded call of an opaque op.
#[derive(Clone, PartialEq, Debug)]
pub enum ExternArg {
    /// A tensor that the op reads.
    Tensor(Value),
    /// A tensor that the op may write: its value before the call.
    Written(Value),
    /// A list of tensors.
    Tensors(Vec<Value>),
    /// No tensor.
    None,
    /// An integer, as an expression.
    Dim(Dim),
    /// A number.
    Float(f64),
    /// A `bool`.
    Bool(bool),
    /// A text.
    Str(String),
    /// A dtype.
    Dtype(Dtype),
}

impl ExternArg {
    /// The values of the tensors.
    pub fn values(&self) -> &[Value] {
        match self {
            ExternArg::Tensor(value) | ExternArg::Written(value) => std::slice::from_ref(value),
            ExternArg::Tensors(values) => values,
            _ => &[],
        }
    }

    /// The argument as text, with the names of values. [`ExternArg::of_text`] reads that of a number, a `bool` or a dtype.
    pub fn text(&self, name: &dyn Fn(Value) -> String) -> String {
        match self {
            ExternArg::Tensor(value) | ExternArg::Written(value) => name(*value),
            ExternArg::Tensors(values) => format!("[{}]", values.iter().map(|value| name(*value)).collect::<Vec<_>>().join(", ")),
            ExternArg::None => "None".to_owned(),
            ExternArg::Dim(dim) => dim.to_string(),
            ExternArg::Float(number) => written(Dtype::F64, number.to_bits()),
            ExternArg::Bool(value) => value.to_string(),
            ExternArg::Str(text) => format!("{text:?}"),
            ExternArg::Dtype(dtype) => dtype.to_string(),
        }
    }

    /// The argument that has this text, for a parameter of this type of a schema: no tensor, a number, a `bool` or a dtype. `None` for other types and texts.
    pub fn of_text(ty: &str, text: &str) -> Option<ExternArg> {
        match ty {
            "Tensor?" => (text == "None").then_some(ExternArg::None),
            "float" => word_of(Dtype::F64, text).map(|word| ExternArg::Float(f64::from_bits(word))),
            "bool" => text.parse().ok().map(ExternArg::Bool),
            "ScalarType" => text.parse().ok().map(ExternArg::Dtype),
            _ => None,
        }
    }

    /// Whether a parameter of this type of a schema takes the argument.
    pub fn fits(&self, ty: &str) -> bool {
        match self {
            ExternArg::Tensor(_) => matches!(ty, "Tensor" | "Tensor?"),
            ExternArg::Written(_) => ty.starts_with("Tensor(") && ty.ends_with("!)"),
            ExternArg::Tensors(_) => ty == "Tensor[]",
            ExternArg::None => ty == "Tensor?",
            ExternArg::Dim(_) => ty == "SymInt",
            ExternArg::Float(_) => ty == "float",
            ExternArg::Bool(_) => ty == "bool",
            ExternArg::Str(_) => ty == "str",
            ExternArg::Dtype(_) => ty == "ScalarType",
        }
    }

    /// The argument of a call by name, with these tensors for its values.
    pub(crate) fn input<'a>(&'a self, tensors: &'a mut [Tensor], dims: &dyn Fn(&Dim) -> Result<Dim>) -> Result<OpInput<'a>> {
        Ok(match (self, tensors) {
            (ExternArg::Tensor(_), [tensor]) => OpInput::Tensor(tensor),
            (ExternArg::Written(_), [tensor]) => OpInput::TensorMut(tensor),
            (ExternArg::Tensors(_), tensors) => OpInput::Tensors(tensors),
            (ExternArg::Dim(dim), _) => OpInput::Dim(dims(dim)?),
            (ExternArg::Float(number), _) => OpInput::Float(*number),
            (ExternArg::Bool(value), _) => OpInput::Bool(*value),
            (ExternArg::Str(text), _) => OpInput::Str(text),
            (ExternArg::Dtype(dtype), _) => OpInput::Dtype(*dtype),
            (ExternArg::None | ExternArg::Tensor(_) | ExternArg::Written(_), _) => OpInput::None,
        })
    }
}

/// An opaque op that a program calls and this process lacks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MissingOp {
    /// The schema that the program was recorded with.
    pub schema: String,
    /// The op of that name in this process, if there is one: its schema, and whether it is opaque.
    pub found: Option<(&'static str, bool)>,
}

impl std::fmt::Display for MissingOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`{}`", self.schema)?;
        match self.found {
            None => Ok(()),
            Some((_, false)) => f.write_str(", which is not opaque here"),
            Some((schema, true)) => write!(f, ", whose schema is `{schema}` here"),
        }
    }
}

impl ExternCall {
    pub(crate) fn new(def: &'static OpDef, args: Vec<ExternArg>, flops: Option<Dim>) -> ExternCall {
        ExternCall { def: Some(def), schema: def.schema.into(), args, flops }
    }

    /// A call of these parts, such as those of a file. It is not [resolved](ExternCall::resolve).
    ///
    /// # Errors
    /// [`OpsError::NotACall`] if the text is no schema, or the arguments do not fit it.
    pub fn of_parts(schema: String, args: Vec<ExternArg>) -> Result<ExternCall> {
        let refused = |reason: String| Err(Error::Ops(OpsError::NotACall { schema: schema.clone(), reason }));
        let Some(parts) = Schema::parse(&schema) else { return refused("it is no schema of an op".to_owned()) };
        if parts.params.len() != args.len() {
            return refused(format!("a call has {} arguments", args.len()));
        }
        if let Some(((_, name), _)) = parts.params.iter().zip(&args).find(|((ty, _), arg)| !arg.fits(ty)) {
            return refused(format!("the argument `{name}` of a call has another type"));
        }
        Ok(ExternCall { def: None, schema: schema.into(), args, flops: None })
    }

    /// The name of the op.
    pub fn name(&self) -> &str {
        self.schema.split('(').next().unwrap_or_default()
    }

    /// The schema of the op.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// The names of the parameters with their arguments.
    pub fn args(&self) -> impl Iterator<Item = (&str, &ExternArg)> {
        let params = Schema::parse(&self.schema).map(|schema| schema.params).unwrap_or_default();
        params.into_iter().map(|(_, name)| name).zip(&self.args)
    }

    /// The arguments, in the order of the schema.
    pub fn arguments(&self) -> &[ExternArg] {
        &self.args
    }

    /// The call as text, with the names of values: `mylib::sort(x = %0, descending = true)`.
    pub fn text(&self, name: &dyn Fn(Value) -> String) -> String {
        let args: Vec<String> = self.args().map(|(param, arg)| format!("{param} = {}", arg.text(name))).collect();
        format!("{}({})", self.name(), args.join(", "))
    }

    /// The floating-point operations, if the op has a formula for them. The call of a package has none.
    pub fn flops(&self) -> Option<&Dim> {
        self.flops.as_ref()
    }

    /// With the floating-point operations that the formula of the op gives.
    #[must_use]
    pub fn with_flops(self, flops: Option<Dim>) -> ExternCall {
        ExternCall { flops, ..self }
    }

    /// The number of tensors that the op returns; `None` for a list of any length. A call defines a value for each, and then one for each tensor that it
    /// writes.
    pub fn returned(&self) -> Option<usize> {
        Schema::parse(&self.schema).and_then(|schema| schema.results)
    }

    /// The values of the tensors that the op writes, before the call.
    pub fn written(&self) -> impl Iterator<Item = Value> {
        self.args.iter().filter_map(|arg| if let ExternArg::Written(value) = arg { Some(*value) } else { None })
    }

    /// Calls the function with the value of each tensor that the call takes, and whether the op writes it.
    pub fn each_value(&self, visit: &mut dyn FnMut(Value, bool)) {
        for arg in &self.args {
            arg.values().iter().for_each(|value| visit(*value, matches!(arg, ExternArg::Written(_))));
        }
    }

    /// Calls the function with the value of each tensor that the call takes, to replace it by a value of the same type.
    pub fn map_values(&mut self, map: &mut dyn FnMut(Value) -> Value) {
        for arg in &mut self.args {
            match arg {
                ExternArg::Tensor(value) | ExternArg::Written(value) => *value = map(*value),
                ExternArg::Tensors(values) => values.iter_mut().for_each(|value| *value = map(*value)),
                _ => {}
            }
        }
    }

    /// Finds the op in this process.
    ///
    /// # Errors
    /// The op, if the process lacks an opaque one of this schema.
    pub fn resolve(&mut self) -> std::result::Result<(), MissingOp> {
        if self.def.is_none() {
            let known = registered(self.name());
            self.def = known.iter().copied().find(|def| def.is_opaque && def.schema == self.schema);
            if self.def.is_none() {
                let found = known.iter().max_by_key(|def| def.is_opaque).map(|def| (def.schema, def.is_opaque));
                return Err(MissingOp { schema: self.schema.clone().into_owned(), found });
            }
        }
        Ok(())
    }

    /// Calls the op with these tensors: for each argument, those of its values. Returns the results. The tensors of an argument that the op writes are
    /// changed.
    ///
    /// # Errors
    /// [`OpsError::UnknownOp`] for a call that is not resolved, [`Error::Dim`] for dims without values, and those of the op.
    pub fn run(&self, tensors: &mut [Vec<Tensor>], dims: &DimValues) -> Result<Vec<Tensor>> {
        let Some(def) = self.def else {
            return Err(Error::Ops(OpsError::UnknownOp { name: self.name().to_owned(), similar: None }));
        };
        let value = |dim: &Dim| Ok(Dim::from(dim.value(dims)?));
        let inputs = self.args.iter().zip(tensors).map(|(arg, tensors)| arg.input(tensors, &value));
        def.call(inputs.collect::<Result<Vec<_>>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_are_written() {
        for (ty, arg) in [
            ("Tensor?", ExternArg::None),
            ("float", ExternArg::Float(-0.0)),
            ("float", ExternArg::Float(5e-324)),
            ("float", ExternArg::Float(f64::NEG_INFINITY)),
            ("bool", ExternArg::Bool(false)),
            ("ScalarType", ExternArg::Dtype(Dtype::Bf16)),
        ] {
            let text = arg.text(&|value| unreachable!("{value:?} is no tensor"));
            assert_eq!(ExternArg::of_text(ty, &text), Some(arg), "{text}");
        }
        for bits in [f64::NAN.to_bits(), 0xfff8_0000_0000_0000, 0x7ff0_0000_0000_0001] {
            let text = ExternArg::Float(f64::from_bits(bits)).text(&|_| String::new());
            let read = ExternArg::of_text("float", &text);
            assert!(matches!(read, Some(ExternArg::Float(number)) if number.to_bits() == bits), "{text}: {read:?}");
        }
        for (ty, text) in
            [("Tensor?", "none"), ("float", "x"), ("bool", "1"), ("ScalarType", "f31"), ("SymInt", "1"), ("str", "s"), ("Tensor", "None")]
        {
            assert_eq!(ExternArg::of_text(ty, text), None, "{text} as {ty}");
        }
    }

    #[test]
    fn arguments_fit_the_schema() {
        let value = Value(0);
        let schema = "ns::f(Tensor x, Tensor(a!) y, Tensor? z, Tensor[] all, SymInt n, float a, bool b, str s, ScalarType t) -> Tensor";
        let args = vec![
            ExternArg::Tensor(value),
            ExternArg::Written(value),
            ExternArg::None,
            ExternArg::Tensors(vec![value, value]),
            ExternArg::Dim(Dim::from(3)),
            ExternArg::Float(0.5),
            ExternArg::Bool(true),
            ExternArg::Str("s".to_owned()),
            ExternArg::Dtype(Dtype::F32),
        ];
        let call = ExternCall::of_parts(schema.to_owned(), args.clone()).unwrap();
        assert_eq!((call.name(), call.returned(), call.args().count()), ("ns::f", Some(1), 9));
        for wrong in 0..args.len() {
            let mut args = args.clone();
            args[wrong] = if wrong == 4 { ExternArg::Bool(false) } else { ExternArg::Dim(Dim::from(1)) };
            let error = ExternCall::of_parts(schema.to_owned(), args).unwrap_err().to_string();
            let name = ["x", "y", "z", "all", "n", "a", "b", "s", "t"][wrong];
            assert_eq!(
                error,
                format!("`{schema}` is not called so: the argument `{name}` of a call has another type\nhelp: write the package again")
            );
        }
        let error = |schema: &str, args| ExternCall::of_parts(schema.to_owned(), args).unwrap_err().to_string();
        assert!(error("ns::f(Tensor x) -> Tensor", Vec::new()).contains("a call has 0 arguments"));
        assert!(error("f", Vec::new()).contains("it is no schema of an op"));
    }
}
