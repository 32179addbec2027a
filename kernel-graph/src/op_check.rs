//! All tests of an op that need nothing but arguments: [`op_check`].

use std::fmt;

use kernel_package::{RunError, Session};
use kernel_runtime::ops::{self, GradCheck, GradTolerance, OpDef, OpInput, Tensor, gradcheck};
use kernel_runtime::{Device, Dim, Dtype, Error};

use crate::error::{GraphError, Result};
use crate::export::{export_slice, input};

/// How [`op_check`] compares.
#[derive(Clone, Debug)]
pub struct OpCheckOptions {
    /// The devices on which the op runs, besides that of the arguments. By default the CPU and, where they exist, the first CUDA GPU and a simulated GPU.
    pub devices: Vec<Device>,
    /// The allowed absolute and relative errors between devices, whose sums have different orders. By default 1e-5 for both, for `f16` and `bf16` 2e-2.
    pub within: Option<(f64, f64)>,
    /// How gradients are compared with finite differences.
    pub gradients: GradTolerance,
}

impl Default for OpCheckOptions {
    fn default() -> OpCheckOptions {
        let devices = ["cpu", "cuda:0", "sim"].map(Device::parse).into_iter().flatten().collect();
        OpCheckOptions { devices, within: None, gradients: GradTolerance::default() }
    }
}

/// What [`op_check`] found: every test passed, or does not apply.
#[derive(Clone, Debug)]
pub struct OpCheck {
    /// The schema of the op.
    pub schema: &'static str,
    /// The devices whose results agree.
    pub devices: Vec<Device>,
    /// The gradients; `None` for an op without a backward function.
    pub gradients: Option<GradCheck>,
    /// Whether a recording was run on the device of the arguments. Otherwise the reason: the op has a function for the CPU that cannot be recorded.
    pub recorded: Result<(), String>,
    /// Whether the op can be recorded for other extents: each number among the extents was a named dim. Otherwise the reason.
    pub dims: Result<(), String>,
}

impl fmt::Display for OpCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let devices: Vec<String> = self.devices.iter().map(Device::to_string).collect();
        writeln!(f, "{}", self.schema)?;
        writeln!(f, "  arguments that are not written keep their elements: ok")?;
        match &self.recorded {
            Ok(()) => writeln!(f, "  recorded types and elements are those of a call: ok")?,
            Err(reason) => writeln!(f, "  recorded types and elements are those of a call: not run, {reason}")?,
        }
        match &self.dims {
            Ok(()) => writeln!(f, "  recorded with named dims: ok")?,
            Err(reason) => writeln!(f, "  recorded with named dims: no, {reason}")?,
        }
        writeln!(f, "  devices agree: ok ({})", devices.join(", "))?;
        match &self.gradients {
            Some(check) => writeln!(f, "  {check}"),
            None => writeln!(f, "  gradients: none"),
        }
    }
}

/// Tests an op on arguments:
///
/// - The arguments fit the schema, and those that the op does not write keep their elements.
/// - A recording has the dtypes and extents of a call, and its run gives the bytes of the call.
/// - The results of an opaque op have the types that its `fake` function declares.
/// - A recording with named dims in place of the extents does, too. An op that cannot be recorded so passes, and the result says why.
/// - All devices agree.
/// - The gradients of an op with a backward function are those of finite differences, in `f64` on the CPU.
///
/// [`op_check!`](https://docs.rs/galatea) is shorter to write.
///
/// # Errors
/// [`GraphError::OpCheck`] for a test that fails, and the errors of the op.
pub fn op_check<'a>(def: &'static OpDef, inputs: impl IntoIterator<Item = OpInput<'a>>, options: &OpCheckOptions) -> Result<OpCheck> {
    let args: Vec<Arg> = inputs.into_iter().map(Arg::of).collect();
    let failed = |test: &'static str, reason: String| GraphError::OpCheck { op: def.name, test, reason };
    let before = bytes(args.iter().flat_map(Arg::tensors))?;
    let eager = call(def, &args)?;
    let after = bytes(args.iter().flat_map(Arg::tensors))?;
    if before != after {
        return Err(failed("mutation", "an argument that the op does not write has other elements after the call".to_owned()));
    }

    let device = args.iter().flat_map(Arg::tensors).find_map(Tensor::device).unwrap_or_else(Device::cpu);
    let record = |named: bool| -> Result<Result<(), String>> {
        let tensors: Vec<&Tensor> = args.iter().flat_map(Arg::tensors).collect();
        let types = tensors.iter().enumerate().map(|(number, tensor)| {
            let dims: Vec<Dim> = tensor.dims().iter().map(|dim| if named { symbol(dim) } else { dim.clone() }).collect();
            input(&format!("input{number}"), dims, tensor.dtype())
        });
        let body = |traced: &[&Tensor]| call(def, &substituted(&args, &mut traced.iter().copied())).map(|results| results.tensors);
        let graph = export_slice(body, types.collect())?;
        let recorded = match Session::new(graph, &device) {
            Ok(session) => session.run(&tensors).map_err(|error| match error {
                RunError::Node { source, .. } if matches!(*source, RunError::OpResult { .. }) => failed("fake", source.to_string()),
                error => error.into(),
            })?,
            Err(RunError::NotOnCpu { reason }) => return Ok(Err(reason)),
            Err(error) => return Err(error.into()),
        };
        if recorded.len() != eager.tensors.len() {
            let reason = format!("a recording has {} results, and a call {}", recorded.len(), eager.tensors.len());
            return Err(failed("recording", reason));
        }
        for (number, (recorded, eager)) in recorded.iter().zip(&eager.tensors).enumerate() {
            if (recorded.dtype(), recorded.dims()) != (eager.dtype(), eager.dims()) {
                let [recorded, eager] = [recorded, eager].map(|tensor| format!("{} {:?}", tensor.dtype(), tensor.dims()));
                return Err(failed("recording", format!("result {number} is {recorded} in a recording, and {eager} in a call")));
            }
            if bytes([recorded])? != bytes([eager])? {
                return Err(failed("recording", format!("result {number} differs: {}", ops::compare(recorded, eager)?)));
            }
        }
        Ok(Ok(()))
    };
    let recorded = record(false)?;
    let dims = match record(true) {
        Ok(_) => Ok(()),
        Err(GraphError::Runtime(error)) if matches!(*error, Error::Dim(_)) => Err(error.to_string()),
        Err(error) => return Err(error),
    };

    let mut devices = vec![device];
    for other in &options.devices {
        if devices.contains(other) {
            continue;
        }
        let results = call(def, &converted(&args, |tensor| tensor.detach().to_device(other))?)?;
        for (number, (result, eager)) in results.tensors.iter().zip(&eager.tensors).enumerate() {
            let comparison = ops::compare(&result.to_device(&device)?, eager)?;
            let bound = if eager.dtype().bytes() < 4 && eager.dtype().is_float() { 2e-2 } else { 1e-5 };
            let (absolute, relative) = options.within.unwrap_or((bound, bound));
            if !comparison.within(absolute, relative) {
                return Err(failed("devices", format!("result {number} on {other} is not that on {device}: {comparison}")));
            }
        }
        devices.push(*other);
    }

    let gradients = def.has_backward.then(|| {
        let wide = |tensor: &Tensor| if tensor.dtype().is_float() { in_f64(tensor) } else { tensor.detach().to_device(&Device::cpu()) };
        let args = converted(&args, wide)?;
        let inputs: Vec<Tensor> = args.iter().flat_map(Arg::tensors).cloned().collect();
        let function = |moved: &[Tensor]| Ok(call(def, &substituted(&args, &mut moved.iter()))?.tensors);
        gradcheck(&inputs, options.gradients, function)
    });
    let gradients = gradients.transpose().map_err(|error| match error {
        Error::Ops(ops::OpsError::WrongGradient { .. } | ops::OpsError::GradientType { .. } | ops::OpsError::GradientCount { .. }) => {
            failed("gradients", error.to_string())
        }
        error => error.into(),
    })?;
    Ok(OpCheck { schema: def.schema, devices, gradients, recorded, dims })
}

/// An argument that several calls take.
#[derive(Clone)]
enum Arg {
    Tensor(Tensor),
    Written(Tensor),
    None,
    Tensors(Vec<Tensor>),
    Dim(Dim),
    Float(f64),
    Bool(bool),
    Str(String),
    Dtype(Dtype),
}

impl Arg {
    fn of(input: OpInput<'_>) -> Arg {
        match input {
            OpInput::Tensor(tensor) => Arg::Tensor(tensor.detach()),
            OpInput::TensorMut(tensor) => Arg::Written(tensor.detach()),
            OpInput::None => Arg::None,
            OpInput::Tensors(tensors) => Arg::Tensors(tensors.iter().map(Tensor::detach).collect()),
            OpInput::Dim(dim) => Arg::Dim(dim),
            OpInput::Float(number) => Arg::Float(number),
            OpInput::Bool(value) => Arg::Bool(value),
            OpInput::Str(text) => Arg::Str(text.to_owned()),
            OpInput::Dtype(dtype) => Arg::Dtype(dtype),
        }
    }

    fn input(&mut self) -> OpInput<'_> {
        match self {
            Arg::Tensor(tensor) => OpInput::Tensor(tensor),
            Arg::Written(tensor) => OpInput::TensorMut(tensor),
            Arg::None => OpInput::None,
            Arg::Tensors(tensors) => OpInput::Tensors(tensors),
            Arg::Dim(dim) => OpInput::Dim(dim.clone()),
            Arg::Float(number) => OpInput::Float(*number),
            Arg::Bool(value) => OpInput::Bool(*value),
            Arg::Str(text) => OpInput::Str(text),
            Arg::Dtype(dtype) => OpInput::Dtype(*dtype),
        }
    }

    fn tensors(&self) -> &[Tensor] {
        match self {
            Arg::Tensor(tensor) | Arg::Written(tensor) => std::slice::from_ref(tensor),
            Arg::Tensors(tensors) => tensors,
            _ => &[],
        }
    }

    fn tensors_mut(&mut self) -> &mut [Tensor] {
        match self {
            Arg::Tensor(tensor) | Arg::Written(tensor) => std::slice::from_mut(tensor),
            Arg::Tensors(tensors) => tensors,
            _ => &mut [],
        }
    }
}

/// What a call computes.
struct Results {
    /// The results, and then the arguments that the op wrote.
    tensors: Vec<Tensor>,
}

fn call(def: &'static OpDef, args: &[Arg]) -> kernel_runtime::Result<Results> {
    let mut args = args.to_vec();
    let mut tensors = def.call(args.iter_mut().map(Arg::input))?;
    tensors.extend(args.into_iter().filter_map(|arg| if let Arg::Written(tensor) = arg { Some(tensor) } else { None }));
    Ok(Results { tensors })
}

/// The arguments with other tensors.
fn substituted(args: &[Arg], tensors: &mut dyn Iterator<Item = &Tensor>) -> Vec<Arg> {
    let mut args = args.to_vec();
    let slots = args.iter_mut().flat_map(Arg::tensors_mut);
    slots.zip(tensors).for_each(|(slot, tensor)| *slot = tensor.clone());
    args
}

fn converted(args: &[Arg], convert: impl Fn(&Tensor) -> kernel_runtime::Result<Tensor>) -> kernel_runtime::Result<Vec<Arg>> {
    let mut args = args.to_vec();
    for tensor in args.iter_mut().flat_map(Arg::tensors_mut) {
        *tensor = convert(tensor)?;
    }
    Ok(args)
}

fn bytes<'t>(tensors: impl IntoIterator<Item = &'t Tensor>) -> kernel_runtime::Result<Vec<Vec<u8>>> {
    tensors.into_iter().map(Tensor::to_bytes).collect()
}

/// A dim in place of an extent. Equal extents are one dim, because the op may need that.
fn symbol(extent: &Dim) -> Dim {
    match extent.known() {
        // An axis of one element may be broadcast.
        Some(number) if number > 1 => Dim::new(&format!("d{number}"), 1..=number.saturating_mul(2)),
        _ => extent.clone(),
    }
}

/// The elements in `f64` on the CPU.
fn in_f64(tensor: &Tensor) -> kernel_runtime::Result<Tensor> {
    let values: Vec<f64> = match tensor.dtype() {
        Dtype::F64 => tensor.to_vec()?,
        Dtype::F32 => tensor.to_vec::<f32>()?.into_iter().map(f64::from).collect(),
        Dtype::F16 => tensor.to_vec::<kernel_runtime::f16>()?.into_iter().map(f64::from).collect(),
        Dtype::Bf16 => tensor.to_vec::<kernel_runtime::bf16>()?.into_iter().map(f64::from).collect(),
        _ => return tensor.detach().to_device(&Device::cpu()),
    };
    let bytes: Vec<u8> = values.into_iter().flat_map(f64::to_le_bytes).collect();
    Tensor::from_bytes(&Device::cpu(), Dtype::F64, &*tensor.dims(), &bytes)
}
