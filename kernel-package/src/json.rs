//! A plan as JSON, without the elements of its constants. Kernels are numbers into a list beside it.
//!
//! ```json
//! { "name": "silu",
//!   "dims": [{ "name": "batch", "range": [1, 1024], "declared": "src/main.rs:21:17" }],
//!   "inputs": ["x"],
//!   "values": ["f32[batch, 64]", "f32[batch, 64]", "f32[batch, 64]"],
//!   "constants": [],
//!   "nodes": [
//!     { "alloc": "uninitialized", "results": [1], "at": "src/main.rs:17:33" },
//!     { "launch": 0, "key": ["0x400"], "grid": ["cdiv(64*batch, 1024)", "1", "1"], "results": [2], "at": "src/main.rs:18:81",
//!       "args": [{ "tensor": 0 }, { "writes": 1 }, { "dim": "64*batch", "type": "usize" }] }],
//!   "outputs": [2] }
//! ```

use std::collections::HashSet;

use kernel_runtime::ops::parts::{IntegerType, Kernel};
use kernel_runtime::ops::recorder::{RecordedArg, RecordedLaunch, TensorType, Value};
use kernel_runtime::{Dim, Dtype, MAX_RANK, Site};
use serde_json::{Value as Json, json};

use crate::error::PackageError;
use crate::plan::{Constant, Node, NodeOp, Plan, PlanInput};
use crate::{opaque, tuning};

/// The plan as JSON, with these names of its constants. `number` gives the number of a kernel.
pub(crate) fn write(plan: &Plan, names: &[String], number: &dyn Fn(&'static Kernel) -> usize) -> Json {
    let dims = plan.dims();
    let dims: Vec<Json> = dims
        .iter()
        .filter_map(Dim::declared)
        .map(|(name, range, site)| json!({ "name": name, "range": [range.start(), range.end()], "declared": site.to_string() }))
        .collect();
    let constant = |(constant, name): (&Constant, &String)| match constant.name {
        Some(_) => json!({ "value": constant.value.0, "name": name }),
        None => json!({ "value": constant.value.0, "name": name, "unnamed": true }),
    };
    let constants: Vec<Json> = plan.constants.iter().zip(names).map(constant).collect();
    let mut json = json!({
        "name": plan.name,
        "dims": dims,
        "inputs": plan.inputs.iter().map(|input| &*input.name).collect::<Vec<_>>(),
        "values": plan.types.iter().map(TensorType::to_string).collect::<Vec<_>>(),
        "constants": constants,
        "nodes": plan.nodes.iter().map(|node| write_node(node, number)).collect::<Vec<_>>(),
        "outputs": numbers(&plan.outputs),
    });
    if let Some(reason) = &plan.not_on_cpu {
        json["not_on_cpu"] = reason.as_str().into();
    }
    json
}

pub(crate) fn numbers(values: &[Value]) -> Vec<u32> {
    values.iter().map(|value| value.0).collect()
}

fn write_node(node: &Node, number: &dyn Fn(&'static Kernel) -> usize) -> Json {
    let mut json = match &node.op {
        NodeOp::Alloc { zeroed } => json!({ "alloc": if *zeroed { "zeros" } else { "uninitialized" } }),
        NodeOp::View { of, offset } => json!({ "view": of.0, "offset": offset.to_string() }),
        NodeOp::Launch(launch) => json!({
            "launch": number(launch.of_kernel()),
            "key": write_key(launch.key()),
            "grid": launch.grid().each_ref().map(Dim::to_string),
            "args": launch.arguments().iter().map(write_arg).collect::<Vec<_>>(),
        }),
        NodeOp::Extern(call) => opaque::write(call),
    };
    if let NodeOp::Launch(launch) = &node.op
        && let Some(tuning) = launch.tuning()
    {
        json["tuning"] = tuning::write(tuning);
    }
    json["results"] = numbers(&node.results).into();
    json["at"] = node.location.to_string().into();
    json
}

pub(crate) fn write_key(key: &[u64]) -> Vec<String> {
    key.iter().map(|word| hex(*word)).collect()
}

pub(crate) fn read_key(json: &Json) -> Result<Vec<u64>, PackageError> {
    let key = list(json, "key")?.iter().map(|word| word.as_str().and_then(unhex)).collect::<Option<Vec<u64>>>();
    key.ok_or_else(|| fail("a key has hexadecimal words"))
}

fn write_arg(arg: &RecordedArg) -> Json {
    match arg {
        RecordedArg::Tensor { value, writes: false, .. } => json!({ "tensor": value.0 }),
        RecordedArg::Tensor { value, writes: true, .. } => json!({ "writes": value.0 }),
        RecordedArg::Word { word, text } => json!({ "word": hex(*word), "text": text }),
        RecordedArg::Dim { dim, ty } => json!({ "dim": dim.to_string(), "type": ty.name() }),
    }
}

/// A word as text: JSON numbers are not exact above 2^53.
pub(crate) fn hex(word: u64) -> String {
    format!("{word:#x}")
}

pub(crate) fn unhex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// A constant of a plan: its value, the name of its weight, and whether that is the name of a parameter.
pub(crate) struct ReadConstant {
    pub(crate) value: Value,
    pub(crate) weight: String,
    pub(crate) is_named: bool,
}

/// A plan of JSON, with the named values of constants: the runtime fills them in. Its rules are not checked.
pub(crate) struct Read {
    pub(crate) plan: Plan,
    pub(crate) constants: Vec<ReadConstant>,
    /// The numbers of the first nodes that cannot be read, and why. If there is one, the plan lacks nodes.
    pub(crate) errors: Vec<(usize, PackageError)>,
}

/// The most bytes of a plan or a manifest. Read, JSON takes a multiple of its size.
const MOST_BYTES: usize = 64 << 20;
/// The most errors of one plan: an error takes more memory than the text that causes it.
const MOST_ERRORS: usize = 20;
/// The most named dims of a plan.
const MOST_DIMS: usize = 1024;

/// Checks the size of an entry with JSON, which a writer and a reader limit alike.
pub(crate) fn check_size(entry: &str, bytes: &[u8]) -> Result<(), PackageError> {
    match bytes.len() {
        0..=MOST_BYTES => Ok(()),
        _ => Err(fail(&format!("entry `{entry}` is larger than {} MiB", MOST_BYTES >> 20))),
    }
}

/// Whether the values of JSON take at most 64 times its bytes, and a page. Texts such as `[{"":0},{"":0}]` take more: a map has room for eleven values.
pub(crate) fn is_sparse(bytes: &[u8]) -> bool {
    let values = bytes.iter().map(|byte| match byte {
        b'{' => 640,
        b'[' => 128,
        // A list that grows is there twice.
        b',' => 64,
        _ => 0,
    });
    values.sum::<usize>() <= 64 * bytes.len() + 4096
}

/// Reads the JSON of an entry.
pub(crate) fn parse(entry: &str, bytes: &[u8]) -> Result<Json, PackageError> {
    check_size(entry, bytes)?;
    if !is_sparse(bytes) {
        return Err(fail(&format!("entry `{entry}` has too many values for its size")));
    }
    serde_json::from_slice(bytes).map_err(|error| fail(&format!("entry `{entry}` is no JSON: {error}")))
}

/// Reads a plan.
pub(crate) fn read(json: &Json, kernels: &[&'static Kernel]) -> Result<Read, PackageError> {
    let cx = Reader { kernels, dims: read_dims(json)?, types: Vec::new() };
    cx.plan(json)
}

fn read_dims(json: &Json) -> Result<Vec<Dim>, PackageError> {
    let dim = |entry: &Json| {
        let range = list(&entry["range"], "range")?;
        let bound = |at: usize| range.get(at).and_then(Json::as_i64).ok_or_else(|| fail("a range of a dim has two bounds"));
        let dim =
            Dim::declared_at(text(&entry["name"], "name")?, bound(0)?..=bound(1)?, Site::of_text(text(&entry["declared"], "declared")?));
        dim.bounds()?;
        Ok(dim)
    };
    let list = list(&json["dims"], "dims")?;
    if list.len() > MOST_DIMS {
        return Err(fail(&format!("it has more than {MOST_DIMS} dims")));
    }
    let dims = list.iter().map(dim).collect::<Result<Vec<Dim>, PackageError>>()?;
    let mut names = HashSet::new();
    match dims.iter().map(Dim::to_string).find(|name| !names.insert(name.clone())) {
        Some(name) => Err(fail(&format!("it has two dims `{name}`"))),
        None => Ok(dims),
    }
}

struct Reader<'k> {
    kernels: &'k [&'static Kernel],
    dims: Vec<Dim>,
    types: Vec<TensorType>,
}

impl Reader<'_> {
    fn plan(mut self, json: &Json) -> Result<Read, PackageError> {
        self.types = list(&json["values"], "values")?.iter().map(|ty| self.ty(ty)).collect::<Result<_, _>>()?;
        let name = text(&json["name"], "name")?.to_owned();
        let inputs = list(&json["inputs"], "inputs")?;
        if inputs.len() > self.types.len() {
            return Err(fail("it has more inputs than values"));
        }
        let inputs = inputs.iter().zip(&self.types).map(|(name, ty)| {
            let name = text(name, "inputs")?.to_owned();
            Ok(PlanInput { name, ty: ty.clone() })
        });
        let inputs = inputs.collect::<Result<Vec<_>, PackageError>>()?;
        let constant = |entry: &Json| {
            let is_named = !entry["unnamed"].as_bool().unwrap_or(false);
            Ok(ReadConstant { value: self.value(&entry["value"])?, weight: text(&entry["name"], "name")?.to_owned(), is_named })
        };
        let constants = list(&json["constants"], "constants")?.iter().map(constant).collect::<Result<Vec<_>, PackageError>>()?;
        let (mut nodes, mut errors) = (Vec::new(), Vec::new());
        for (number, node) in list(&json["nodes"], "nodes")?.iter().enumerate() {
            match self.node(node) {
                Ok(node) => nodes.push(node),
                Err(error) => errors.push((number, error)),
            }
            if errors.len() == MOST_ERRORS {
                break;
            }
        }
        let outputs = self.values(&json["outputs"], "outputs")?;
        let not_on_cpu = Some(&json["not_on_cpu"]).filter(|reason| !reason.is_null());
        let not_on_cpu = not_on_cpu.map(|reason| text(reason, "not_on_cpu").map(str::to_owned)).transpose()?;
        Ok(Read {
            plan: Plan { name, inputs, constants: Vec::new(), nodes, types: self.types, outputs, on_cpu: None, not_on_cpu },
            constants,
            errors,
        })
    }

    /// A type: `f32[batch, 64]`.
    fn ty(&self, json: &Json) -> Result<TensorType, PackageError> {
        let ty = text(json, "values")?;
        let (dtype, dims) = ty.strip_suffix(']').and_then(|ty| ty.split_once('[')).ok_or_else(|| fail(&format!("`{ty}` is no type")))?;
        let dtype: Dtype = dtype.parse().map_err(|_| fail(&format!("`{dtype}` is no dtype")))?;
        let dims = split(dims);
        if dims.len() > MAX_RANK {
            return Err(fail(&format!("`{ty}` has more than {MAX_RANK} axes")));
        }
        let dims = dims.into_iter().map(|dim| self.dim(dim)).collect::<Result<_, _>>()?;
        Ok(TensorType { dtype, dims })
    }

    fn dim(&self, text: &str) -> Result<Dim, PackageError> {
        Ok(Dim::parse(text, &self.dims)?)
    }

    fn value(&self, json: &Json) -> Result<Value, PackageError> {
        let number = json.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| (*number as usize) < self.types.len());
        number.map(Value).ok_or_else(|| fail("it names a value that does not exist"))
    }

    fn values(&self, json: &Json, name: &str) -> Result<Vec<Value>, PackageError> {
        list(json, name)?.iter().map(|value| self.value(value)).collect()
    }

    fn node(&self, json: &Json) -> Result<Node, PackageError> {
        let location = Site::of_text(text(&json["at"], "at")?);
        let op = if let Some(alloc) = json["alloc"].as_str() {
            match alloc {
                "zeros" => NodeOp::Alloc { zeroed: true },
                "uninitialized" => NodeOp::Alloc { zeroed: false },
                _ => return Err(fail(&format!("`{alloc}` is no kind of allocation"))),
            }
        } else if !json["view"].is_null() {
            NodeOp::View { of: self.value(&json["view"])?, offset: self.dim(text(&json["offset"], "offset")?)? }
        } else if !json["extern"].is_null() {
            NodeOp::Extern(opaque::read(json, &|value| self.value(value), &|dim| self.dim(dim))?)
        } else {
            NodeOp::Launch(self.launch(json, &location)?)
        };
        Ok(Node { op, results: self.values(&json["results"], "results")?, location })
    }

    fn launch(&self, json: &Json, location: &Site) -> Result<RecordedLaunch, PackageError> {
        let number = json["launch"].as_u64().and_then(|number| usize::try_from(number).ok());
        let kernel =
            number.and_then(|number| self.kernels.get(number)).ok_or_else(|| fail("a launch names a kernel that does not exist"))?;
        let key = read_key(&json["key"])?;
        let args = list(&json["args"], "args")?.iter().map(|arg| self.arg(arg)).collect::<Result<Vec<_>, _>>()?;
        let launch = RecordedLaunch::of_parts(kernel, key, args, self.grid(&json["grid"])?, location.clone())?;
        match &json["tuning"] {
            Json::Null => Ok(launch),
            json => tuning::read(json, launch, &|grid| self.grid(grid)),
        }
    }

    fn grid(&self, json: &Json) -> Result<[Dim; 3], PackageError> {
        let [x, y, z] = &list(json, "grid")?[..] else { return Err(fail("a grid has three axes")) };
        let axis = |dim: &Json| self.dim(text(dim, "grid")?);
        Ok([axis(x)?, axis(y)?, axis(z)?])
    }

    fn arg(&self, json: &Json) -> Result<RecordedArg, PackageError> {
        for (name, writes) in [("tensor", false), ("writes", true)] {
            if !json[name].is_null() {
                let value = self.value(&json[name])?;
                return Ok(RecordedArg::Tensor { value, dtype: self.types[value.0 as usize].dtype, writes });
            }
        }
        if let Some(word) = json["word"].as_str() {
            let word = unhex(word).ok_or_else(|| fail("a word is hexadecimal"))?;
            return Ok(RecordedArg::Word { word, text: text(&json["text"], "text")?.to_owned() });
        }
        let name = text(&json["type"], "type")?;
        let ty = IntegerType::ALL.into_iter().find(|ty| ty.name() == name).ok_or_else(|| fail(&format!("`{name}` is no integer type")))?;
        Ok(RecordedArg::Dim { dim: self.dim(text(&json["dim"], "dim")?)?, ty })
    }
}

/// Splits a list at its outer commas.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

pub(crate) fn fail(reason: &str) -> PackageError {
    PackageError::Malformed { reason: reason.to_owned() }
}

pub(crate) fn list<'j>(json: &'j Json, name: &str) -> Result<&'j Vec<Json>, PackageError> {
    json.as_array().ok_or_else(|| fail(&format!("`{name}` is no list")))
}

pub(crate) fn text<'j>(json: &'j Json, name: &str) -> Result<&'j str, PackageError> {
    json.as_str().ok_or_else(|| fail(&format!("`{name}` is no text")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bounded_before_anything_is_read() {
        let message = |result: Result<(), PackageError>| result.unwrap_err().to_string();
        assert!(message(parse("plan.json", &vec![b' '; MOST_BYTES + 1]).map(drop)).contains("larger than 64 MiB"));
        let dense = "{\"\":0},".repeat(1000);
        assert!(message(parse("plan.json", dense.as_bytes()).map(drop)).contains("`plan.json` has too many values for its size"));
        let dim = |name: String| json!({ "name": name, "range": [0, 1], "declared": "a.rs:1:1" });
        let plan = |dims: Vec<Json>, values: &[&str], inputs: &[&str]| json!({ "name": "p", "dims": dims, "inputs": inputs, "values": values, "constants": [], "nodes": [], "outputs": [] });
        let read = |plan: Json| read(&plan, &[]).map(drop);
        assert!(read(plan((0..MOST_DIMS).map(|number| dim(format!("d{number}"))).collect(), &[], &[])).is_ok());
        let many = (0..=MOST_DIMS).map(|number| dim(format!("d{number}"))).collect();
        assert!(message(read(plan(many, &[], &[]))).contains("it has more than 1024 dims"));
        assert!(message(read(plan(vec![dim("d".to_owned()), dim("d".to_owned())], &[], &[]))).contains("it has two dims `d`"));
        let axes = format!("f32[{}]", ["1"; MAX_RANK + 1].join(", "));
        assert!(message(read(plan(Vec::new(), &[&axes], &[]))).contains("axes"));
        assert!(message(read(plan(Vec::new(), &["f32[1]"], &["x", "y"]))).contains("it has more inputs than values"));
        let json = json!({ "name": "p", "dims": [], "inputs": [], "values": [], "constants": [], "nodes": [0, 0], "outputs": [] });
        assert_eq!(super::read(&json, &[]).unwrap().errors.len(), 2);
        let mut many = json;
        many["nodes"] = vec![0; 5000].into();
        assert_eq!(super::read(&many, &[]).unwrap().errors.len(), MOST_ERRORS);
    }
}
