//! The opaque ops of packages: calls as JSON, and the list of the manifest.
//!
//! ```json
//! { "extern": "mylib::sort(Tensor x, bool descending) -> Tensor", "args": [{ "tensor": 0 }, { "bool": true }], "results": [1], "at": "src/main.rs:18:9" }
//! ```

use kernel_runtime::ops::recorder::Value;
use kernel_runtime::ops::{ExternArg, ExternCall};
use kernel_runtime::{Dim, Dtype};
use serde_json::{Value as Json, json};

use crate::error::PackageError;
use crate::json::{fail, hex, list, numbers, text, unhex};
use crate::package::Package;
use crate::plan::Plan;

type Result<T, E = PackageError> = std::result::Result<T, E>;

/// A call as JSON.
pub(crate) fn write(call: &ExternCall) -> Json {
    json!({ "extern": call.schema(), "args": call.arguments().iter().map(write_arg).collect::<Vec<_>>() })
}

fn write_arg(arg: &ExternArg) -> Json {
    match arg {
        ExternArg::Tensor(value) => json!({ "tensor": value.0 }),
        ExternArg::Written(value) => json!({ "writes": value.0 }),
        ExternArg::Tensors(values) => json!({ "tensors": numbers(values) }),
        ExternArg::None => Json::Null,
        ExternArg::Dim(dim) => json!({ "dim": dim.to_string() }),
        ExternArg::Float(number) => json!({ "float": hex(number.to_bits()), "text": format!("{number:?}") }),
        ExternArg::Bool(value) => json!({ "bool": value }),
        ExternArg::Str(text) => json!({ "str": text }),
        ExternArg::Dtype(dtype) => json!({ "dtype": dtype.to_string() }),
    }
}

/// The call of JSON. `value` and `dim` read a value and an expression.
pub(crate) fn read(json: &Json, value: &dyn Fn(&Json) -> Result<Value>, dim: &dyn Fn(&str) -> Result<Dim>) -> Result<ExternCall> {
    let arg = |json: &Json| {
        let field = |name: &str| Some(&json[name]).filter(|json| !json.is_null());
        if json.is_null() {
            return Ok(ExternArg::None);
        }
        if let Some(tensor) = field("tensor") {
            return Ok(ExternArg::Tensor(value(tensor)?));
        }
        if let Some(written) = field("writes") {
            return Ok(ExternArg::Written(value(written)?));
        }
        if let Some(tensors) = field("tensors") {
            return Ok(ExternArg::Tensors(list(tensors, "tensors")?.iter().map(value).collect::<Result<_>>()?));
        }
        if let Some(expression) = field("dim") {
            return Ok(ExternArg::Dim(dim(text(expression, "dim")?)?));
        }
        if let Some(bits) = field("float") {
            let bits = unhex(text(bits, "float")?).ok_or_else(|| fail("a number is hexadecimal"))?;
            return Ok(ExternArg::Float(f64::from_bits(bits)));
        }
        if let Some(value) = field("bool") {
            return value.as_bool().map(ExternArg::Bool).ok_or_else(|| fail("`bool` is no boolean"));
        }
        if let Some(string) = field("str") {
            return Ok(ExternArg::Str(text(string, "str")?.to_owned()));
        }
        let dtype = text(&json["dtype"], "dtype")?;
        dtype.parse::<Dtype>().map(ExternArg::Dtype).map_err(|_| fail(&format!("`{dtype}` is no dtype")))
    };
    let args = list(&json["args"], "args")?.iter().map(arg).collect::<Result<_>>()?;
    Ok(ExternCall::of_parts(text(&json["extern"], "extern")?.to_owned(), args)?)
}

impl Package {
    /// The schemas of the opaque ops that the program calls, sorted. A process that [loads](Package::load) the package must have them.
    ///
    /// # Errors
    /// [`PackageError::Malformed`] for a manifest that cannot be read.
    pub fn opaque_ops(&self) -> Result<Vec<&str>> {
        match &self.manifest()["opaque_ops"] {
            Json::Null => Ok(Vec::new()),
            schemas => list(schemas, "opaque_ops")?.iter().map(|schema| text(schema, "opaque_ops")).collect(),
        }
    }

    /// Refuses opaque ops in the package of a stranger.
    pub(crate) fn allow_ops(&self) -> Result<()> {
        let schemas = self.opaque_ops()?;
        if self.limits.is_none() || schemas.is_empty() {
            return Ok(());
        }
        Err(PackageError::OpaqueOps { schemas: schemas.into_iter().map(str::to_owned).collect() })
    }

    /// Checks that the manifest names the opaque ops of a plan.
    pub(crate) fn names_ops_of(&self, plan: &Plan) -> Result<()> {
        if self.opaque_ops()? == plan.opaque_ops() { Ok(()) } else { Err(fail("its manifest has other opaque ops than its plan")) }
    }
}
