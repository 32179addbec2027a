//! The recording of calls of opaque ops.
//!
//! The body of an opaque op never sees a recorded tensor. Its `fake` function makes the results instead, for tensors of a recording that keeps nothing.
//! Only the dtypes and extents of the results are used: the call becomes one [`ExternCall`] with results of these types.

use std::panic::Location;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::extern_call::{ExternArg, ExternCall};
use super::recorder::{RecordedLaunch, Recorder, TensorType, Value};
use super::schema::Schema;
use super::{OpArg, OpDef, OpFunction, OpInput, OpResults, OpValue, OpsError, Tensor};
use crate::{Dim, Error, Result};

/// Records a call, and gives the tensors that the op writes their new values.
pub(super) fn record<R: OpResults>(
    def: &'static OpDef,
    recorder: &Arc<dyn Recorder>,
    inputs: Vec<OpInput<'_>>,
    flops: Option<Dim>,
    fake: OpFunction,
    location: &'static Location<'static>,
) -> Result<R> {
    let drops: Arc<dyn Recorder> = Arc::new(Drops::default());
    let faked = |tensor: &Tensor| -> Result<Tensor> {
        let ty = TensorType { dtype: tensor.dtype(), dims: tensor.dims() };
        Ok(Tensor::traced(drops.clone(), drops.alloc(ty.clone(), false, location)?, ty))
    };
    let params = Schema::parse(def.schema).map(|schema| schema.params).unwrap_or_default();
    let (mut args, mut fakes) = (Vec::new(), Vec::new());
    for (input, (_, param)) in inputs.iter().zip(params) {
        let (arg, of_arg) = match input {
            OpInput::Tensor(tensor) => (ExternArg::Tensor(value(def, recorder, tensor, param, location)?), vec![faked(tensor)?]),
            OpInput::TensorMut(tensor) if tensor.recorded().is_none() => {
                let reason = format!("it writes `{param}`, which is not recorded");
                let help = "write an input, or a tensor that `x.new_empty(..)` or `x.new_zeros(..)` makes";
                return Err(Error::Ops(OpsError::CallNotRecorded { op: def.name, reason, help }));
            }
            OpInput::TensorMut(tensor) => (ExternArg::Written(value(def, recorder, tensor, param, location)?), vec![faked(tensor)?]),
            OpInput::Tensors(tensors) => {
                let values = tensors.iter().map(|tensor| value(def, recorder, tensor, param, location));
                (ExternArg::Tensors(values.collect::<Result<_>>()?), tensors.iter().map(faked).collect::<Result<_>>()?)
            }
            OpInput::None => (ExternArg::None, Vec::new()),
            OpInput::Dim(dim) => (ExternArg::Dim(dim.clone()), Vec::new()),
            OpInput::Float(number) => (ExternArg::Float(*number), Vec::new()),
            OpInput::Bool(value) => (ExternArg::Bool(*value), Vec::new()),
            OpInput::Str(text) => (ExternArg::Str((*text).to_owned()), Vec::new()),
            OpInput::Dtype(dtype) => (ExternArg::Dtype(*dtype), Vec::new()),
        };
        args.push(arg);
        fakes.push(of_arg);
    }
    let fake_inputs = args.iter().zip(&mut fakes).map(|(arg, tensors)| arg.input(tensors, &|dim| Ok(dim.clone())));
    let results = fake(fake_inputs.collect::<Result<_>>()?)?;
    let types: Vec<TensorType> = results.iter().map(|tensor| TensorType { dtype: tensor.dtype(), dims: tensor.dims() }).collect();
    types.iter().flat_map(|ty| &ty.dims).try_for_each(|dim| dim.bounds().map(drop))?;
    let mut values = recorder.extern_call(ExternCall::new(def, args, flops), types.clone(), location)?.into_iter();
    let results = types.into_iter().zip(values.by_ref()).map(|(ty, value)| Tensor::traced(recorder.clone(), value, ty)).collect();
    for (input, value) in
        inputs.into_iter().filter_map(|input| if let OpInput::TensorMut(tensor) = input { Some(tensor) } else { None }).zip(values)
    {
        input.set_recorded(value);
    }
    super::op::typed(def, results)
}

/// The value of an argument, which is one of the recording or has elements.
fn value(
    def: &'static OpDef,
    recorder: &Arc<dyn Recorder>,
    tensor: &Tensor,
    param: &str,
    location: &'static Location<'static>,
) -> Result<Value> {
    match tensor.value(recorder) {
        OpValue::Tensor(value) => Ok(value),
        OpValue::Real(tensor) => recorder.constant(tensor.detach(), location),
        _ => Err(Error::Ops(OpsError::CallNotRecorded {
            op: def.name,
            reason: format!("`{param}` belongs to another recording"),
            help: "use the tensors of one recording",
        })),
    }
}

/// Refuses a call of an opaque op without a backward function, if gradients flow to one of its arguments: no launch of its body would.
pub fn refuse_gradients(def: &'static OpDef, args: &[(&'static str, &dyn OpArg)]) -> Result<()> {
    let mut flows = None;
    for (name, arg) in args {
        arg.each_tensor(&mut |tensor| {
            if tensor.is_some_and(Tensor::flows) {
                flows.get_or_insert(*name);
            }
        });
    }
    match flows {
        Some(input) => Err(Error::Ops(OpsError::OpaqueGradient { op: def.name, input })),
        None => Ok(()),
    }
}

/// A recording that keeps nothing: its values differ, and that is all.
#[derive(Default)]
struct Drops(AtomicU32);

impl Drops {
    fn next(&self) -> Value {
        Value(self.0.fetch_add(1, Ordering::Relaxed))
    }

    fn several(&self, count: usize) -> Vec<Value> {
        (0..count).map(|_| self.next()).collect()
    }
}

impl Recorder for Drops {
    fn alloc(&self, _: TensorType, _: bool, _: &'static Location<'static>) -> Result<Value> {
        Ok(self.next())
    }

    fn view(&self, _: Value, _: Dim, _: TensorType, _: &'static Location<'static>) -> Result<Value> {
        Ok(self.next())
    }

    fn constant(&self, _: Tensor, _: &'static Location<'static>) -> Result<Value> {
        Ok(self.next())
    }

    fn begin_op(&self, _: &'static OpDef, _: Vec<(&'static str, OpValue)>) -> usize {
        0
    }

    fn is_for_cpu(&self) -> bool {
        false
    }

    fn op_flops(&self, _: usize, _: Dim) {}

    fn end_op(&self, _: usize, _: Vec<Value>) {}

    fn launch(&self, launch: RecordedLaunch) -> Result<Vec<Value>> {
        Ok(self.several(launch.args().filter(|(_, arg)| arg.written().is_some()).count()))
    }

    fn extern_call(&self, call: ExternCall, results: Vec<TensorType>, _: &'static Location<'static>) -> Result<Vec<Value>> {
        Ok(self.several(results.len() + call.written().count()))
    }
}
