//! The tensor of ops: a shared handle with value semantics, real or recorded.

mod runs;

use std::fmt;
use std::ops::Range;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use kernel_lang::dtype::Dtype;

use super::autograd::{self, Edge};
use super::recorder::{Recorder, TensorType, Value};
use super::{IntoDims, OpsError, copies};
use crate::launch::scalar::Untyped;
use crate::tensor::element::ElementArg;
use crate::tensor::memory::Memory;
use crate::tensor::pointer::{Deferred, Owner, Pointer};
use crate::tensor::shape::Shape;
use crate::tensor::view::{TensorView, TensorViewMut};
use crate::{Comparison, Device, Dim, DimError, DimValues, Element, Error, Result, Stream, bf16, f8e4m3, f8e5m2, f16, profile};

/// A contiguous, row-major array whose dtype is known when the program runs. Clones and parts of a tensor share its memory.
///
/// A tensor is a value: writing one never changes another. A launch that writes a tensor copies its elements first if the memory is shared, and
/// writes them in place otherwise. [`copies`](super::copies) counts the copies.
///
/// While a program is recorded, a tensor has no memory: its extents are expressions of dims, and launches that take it are recorded.
///
/// ```
/// # use kernel_runtime::{Device, Dtype, Result, ops};
/// # fn main() -> Result<()> {
/// let x: ops::Tensor = Device::cpu().tensor(&[1, 2, 3, 4, 5, 6])?.into();
/// let row = x.reshape([2, 3])?.slice(1..2)?;
/// assert_eq!((row.dtype(), row.dims(), row.to_vec::<i32>()?), (Dtype::I32, vec![1.into(), 3.into()], vec![4, 5, 6]));
/// assert_eq!(x.numel().cdiv(4), 2.into());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Tensor {
    repr: Repr,
    /// How it was computed, if gradients flow through it.
    edge: Option<Edge>,
}

#[derive(Clone)]
enum Repr {
    Real(Real),
    Traced(Traced),
}

/// A tensor with memory.
#[derive(Clone)]
pub(crate) struct Real {
    memory: Arc<Memory>,
    /// The number of elements in the memory.
    total: usize,
    /// The index of the first element.
    offset: usize,
    shape: Shape,
    dtype: Dtype,
    /// The error of the copy before a launch that writes the tensor.
    failed: Option<Arc<Mutex<Option<Error>>>>,
}

/// A tensor of a recording.
pub(crate) struct Traced {
    pub(crate) recorder: Arc<dyn Recorder>,
    /// The number of the [`Value`]. A launch that borrows the tensor mutably changes it.
    value: AtomicU32,
    pub(crate) ty: TensorType,
}

impl Traced {
    pub(crate) fn value(&self) -> Value {
        Value(self.value.load(Ordering::Relaxed))
    }

    /// Sets the value after a launch that writes the tensor.
    pub(crate) fn set_value(&self, value: Value) {
        self.value.store(value.0, Ordering::Relaxed);
    }

    fn alloc(&self, ty: TensorType, zeroed: bool, location: &'static Location<'static>) -> Result<Tensor> {
        ty.dims.iter().try_for_each(|dim| dim.bounds().map(drop))?;
        let value = self.recorder.alloc(ty.clone(), zeroed, location)?;
        Ok(Tensor::traced(self.recorder.clone(), value, ty))
    }

    fn argument<T: ElementArg>(&self) -> (Pointer<'_>, Shape) {
        (Pointer::deferred(wrong_dtype::<T>(self.ty.dtype).unwrap_or(Deferred::Traced(self))), Shape::SCALAR)
    }
}

impl Clone for Traced {
    fn clone(&self) -> Traced {
        Traced { recorder: self.recorder.clone(), value: AtomicU32::new(self.value().0), ty: self.ty.clone() }
    }
}

impl<T: Element> From<crate::Tensor<T>> for Tensor {
    fn from(tensor: crate::Tensor<T>) -> Tensor {
        Tensor::real_of(Real::whole(tensor))
    }
}

impl Tensor {
    /// A tensor with arbitrary elements, for a kernel that writes them, see [`Device::empty`].
    ///
    /// # Errors
    /// [`Error::Dim`] for dims without values, [`Error::ShapeTooLarge`], [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    pub fn empty(device: &Device, dtype: Dtype, dims: impl IntoDims) -> Result<Tensor> {
        let shape = known_shape(&dims.into_dims())?;
        with_element!(dtype, T => device.empty::<T>(shape).map(Tensor::from))
    }

    /// A tensor of zeros (`false` for `bool`).
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    pub fn zeros(device: &Device, dtype: Dtype, dims: impl IntoDims) -> Result<Tensor> {
        let shape = known_shape(&dims.into_dims())?;
        with_element!(dtype, T => device.zeros::<T>(shape).map(Tensor::from))
    }

    /// A tensor of a recording. For recorders, which give each of their inputs a value.
    pub fn traced(recorder: Arc<dyn Recorder>, value: Value, ty: TensorType) -> Tensor {
        Tensor { repr: Repr::Traced(Traced { recorder, value: AtomicU32::new(value.0), ty }), edge: None }
    }

    /// The recorder and the value of a recorded tensor.
    pub fn recorded(&self) -> Option<(&Arc<dyn Recorder>, Value)> {
        match &self.repr {
            Repr::Real(_) => None,
            Repr::Traced(traced) => Some((&traced.recorder, traced.value())),
        }
    }

    /// Gives a recorded tensor the value that it has after a call that writes it.
    pub(super) fn set_recorded(&self, value: Value) {
        if let Repr::Traced(traced) = &self.repr {
            traced.set_value(value);
        }
    }

    /// A tensor with arbitrary elements where this one is: on its device, or in its recording.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    #[track_caller]
    pub fn new_empty(&self, dtype: Dtype, dims: impl IntoDims) -> Result<Tensor> {
        match &self.repr {
            Repr::Real(real) => Tensor::empty(&real.memory.device(), dtype, dims),
            Repr::Traced(traced) => traced.alloc(TensorType { dtype, dims: dims.into_dims() }, false, Location::caller()),
        }
    }

    /// A tensor of zeros (`false` for `bool`) where this one is: on its device, or in its recording.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    #[track_caller]
    pub fn new_zeros(&self, dtype: Dtype, dims: impl IntoDims) -> Result<Tensor> {
        match &self.repr {
            Repr::Real(real) => Tensor::zeros(&real.memory.device(), dtype, dims),
            Repr::Traced(traced) => traced.alloc(TensorType { dtype, dims: dims.into_dims() }, true, Location::caller()),
        }
    }

    /// [`Tensor::new_zeros`] with the dtype and the dims of this tensor.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    #[track_caller]
    pub fn zeros_like(&self) -> Result<Tensor> {
        self.new_zeros(self.dtype(), self.dims())
    }

    /// [`Tensor::new_empty`] with the dtype and the dims of this tensor.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    #[track_caller]
    pub fn empty_like(&self) -> Result<Tensor> {
        self.new_empty(self.dtype(), self.dims())
    }

    /// The dtype of the elements.
    pub fn dtype(&self) -> Dtype {
        match &self.repr {
            Repr::Real(real) => real.dtype,
            Repr::Traced(traced) => traced.ty.dtype,
        }
    }

    /// The extents.
    pub fn dims(&self) -> Vec<Dim> {
        match &self.repr {
            Repr::Real(real) => real.shape.dims().iter().map(|extent| Dim::from(*extent)).collect(),
            Repr::Traced(traced) => traced.ty.dims.clone(),
        }
    }

    /// The number of axes.
    pub fn rank(&self) -> usize {
        match &self.repr {
            Repr::Real(real) => real.shape.dims().len(),
            Repr::Traced(traced) => traced.ty.dims.len(),
        }
    }

    /// The extent of an axis. Axes below 0 count from the end: -1 is the last one. For an axis that the tensor lacks, the dim has an error.
    pub fn dim(&self, axis: isize) -> Dim {
        let dims = self.dims();
        let index = if axis < 0 { axis.checked_add_unsigned(dims.len()) } else { Some(axis) };
        let extent = index.and_then(|index| dims.get(usize::try_from(index).ok()?));
        extent.cloned().unwrap_or_else(|| Dim::invalid(DimError::NoAxis { axis, rank: dims.len() }))
    }

    /// The number of elements.
    pub fn numel(&self) -> Dim {
        match &self.repr {
            Repr::Real(real) => real.shape.len().into(),
            Repr::Traced(traced) => traced.ty.numel(),
        }
    }

    /// The device that holds the elements. A recorded tensor has none.
    pub fn device(&self) -> Option<Device> {
        match &self.repr {
            Repr::Real(real) => Some(real.memory.device()),
            Repr::Traced(_) => None,
        }
    }

    /// Returns whether no other tensor shares the memory, so that a write copies nothing. A recorded tensor has no memory, and the answer is true.
    pub fn is_unique(&self) -> bool {
        match &self.repr {
            Repr::Real(real) => Arc::strong_count(&real.memory) == 1,
            Repr::Traced(_) => true,
        }
    }

    /// Returns whether both are the same elements of the same memory in the same shape.
    pub fn is_same(&self, other: &Tensor) -> bool {
        match (&self.repr, &other.repr) {
            (Repr::Real(a), Repr::Real(b)) => {
                Arc::ptr_eq(&a.memory, &b.memory) && (a.offset, a.dtype) == (b.offset, b.dtype) && a.shape.dims() == b.shape.dims()
            }
            (Repr::Traced(a), Repr::Traced(b)) => Arc::ptr_eq(&a.recorder, &b.recorder) && a.value() == b.value(),
            _ => false,
        }
    }

    /// A number that tensors have in common which are the [same](Tensor::is_same). Other tensors seldom share it.
    pub fn identity(&self) -> u64 {
        let (address, index) = match &self.repr {
            Repr::Real(real) => (Arc::as_ptr(&real.memory).addr(), real.offset),
            Repr::Traced(traced) => (Arc::as_ptr(&traced.recorder).addr(), traced.value().0 as usize),
        };
        (address as u64).rotate_left(32) ^ index as u64
    }

    /// The same elements in another shape. Copies nothing.
    ///
    /// # Errors
    /// [`OpsError::Reshape`] if the shape holds another number of elements, or [`Error::Dim`] if that is not decided.
    #[track_caller]
    pub fn reshape(&self, dims: impl IntoDims) -> Result<Tensor> {
        let ty = TensorType { dtype: self.dtype(), dims: dims.into_dims() };
        if !ty.numel().is_eq(self.numel())? {
            return Err(Error::Ops(OpsError::Reshape { from: self.dims(), to: ty.dims }));
        }
        self.part(Dim::from(0), ty, Location::caller())
    }

    /// The part `range` of the first axis. Copies nothing.
    ///
    /// # Errors
    /// [`OpsError::DimOutOfRange`] if the range does not fit the axis, or [`Error::Dim`] if that is not decided.
    #[track_caller]
    pub fn slice<D: Into<Dim>>(&self, range: Range<D>) -> Result<Tensor> {
        let (start, end): (Dim, Dim) = (range.start.into(), range.end.into());
        let mut ty = TensorType { dtype: self.dtype(), dims: self.dims() };
        let extent = self.dim(0);
        if !(start.is_ge(0)? && start.is_le(&end)? && end.is_le(&extent)?) {
            return Err(Error::Ops(OpsError::DimOutOfRange { start, end, extent }));
        }
        let row = TensorType { dtype: ty.dtype, dims: ty.dims[1..].to_vec() }.numel();
        ty.dims[0] = &end - &start;
        self.part(start * row, ty, Location::caller())
    }

    /// The elements of `ty` from number `offset` on, which exist.
    fn part(&self, offset: Dim, ty: TensorType, location: &'static Location<'static>) -> Result<Tensor> {
        let edge = if self.flows() { Edge::part(self, offset.clone(), &ty) } else { None };
        let part = match &self.repr {
            Repr::Real(real) => {
                let skipped = known(&offset)?;
                let shape = known_shape(&ty.dims)?;
                Tensor::real_of(Real { offset: real.offset + skipped, shape, failed: None, ..real.clone() })
            }
            Repr::Traced(traced) => {
                let value = traced.recorder.view(traced.value(), offset, ty.clone(), location)?;
                Tensor::traced(traced.recorder.clone(), value, ty)
            }
        };
        Ok(Tensor { edge, ..part })
    }

    fn real_of(real: Real) -> Tensor {
        Tensor { repr: Repr::Real(real), edge: None }
    }

    pub(super) fn edge(&self) -> Option<&Edge> {
        self.edge.as_ref()
    }

    pub(super) fn set_edge(&mut self, edge: Option<Edge>) {
        self.edge = edge;
    }

    /// The same elements without a gradient: what is computed from the result is a constant for [`Tensor::backward`]. Copies nothing.
    #[must_use]
    pub fn detach(&self) -> Tensor {
        Tensor { repr: self.repr.clone(), edge: None }
    }

    /// The elements, to read.
    ///
    /// # Errors
    /// [`OpsError::WrongDtype`] if the elements are not of type `T`, or [`OpsError::RecordedData`] for a tensor of a recording.
    #[track_caller]
    pub fn view<T: Element>(&self) -> Result<TensorView<'_, T>> {
        self.real()?.view()
    }

    /// The elements, to write. If the memory is shared, they are copied first, and other tensors keep theirs.
    ///
    /// # Errors
    /// [`OpsError::WrongDtype`] if the elements are not of type `T`, [`OpsError::RecordedData`] for a tensor of a recording, [`OpsError::CopyDenied`] in
    /// [`deny_copies`](super::deny_copies), [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    #[track_caller]
    pub fn view_mut<T: Element>(&mut self) -> Result<TensorViewMut<'_, T>> {
        self.real()?;
        if self.flows() {
            return Err(Error::Ops(OpsError::GradientLost { location: Location::caller() }));
        }
        self.edge.take_if(|edge| !edge.is_leaf());
        match &mut self.repr {
            Repr::Real(real) => real.view_mut(Location::caller()),
            Repr::Traced(_) => unreachable!("it is real"),
        }
    }

    /// The tensor with a static element type. Copies nothing if no other tensor shares the memory, and the tensor is all of it. Otherwise, the
    /// elements are copied.
    ///
    /// # Errors
    /// As [`Tensor::view_mut`].
    #[track_caller]
    pub fn into_typed<T: Element>(self) -> Result<crate::Tensor<T>> {
        let real = self.real()?;
        real.check::<T>()?;
        if real.total != real.shape.len() {
            return real.copied(Location::caller(), false);
        }
        let Repr::Real(real) = self.repr else { unreachable!("it is real") };
        match Arc::try_unwrap(real.memory) {
            Ok(memory) => Ok(crate::Tensor::from_parts(memory, real.shape)),
            Err(memory) => Real { memory, ..real }.copied(Location::caller(), false),
        }
    }

    /// Copies the elements to the host, after waiting for the work that writes them.
    ///
    /// # Errors
    /// As [`Tensor::view`], [`Error::InCapture`], or [`Error::Asynchronous`] if that work failed.
    #[track_caller]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.view::<T>()?.to_vec()
    }

    /// A tensor with these numbers, each rounded to the dtype.
    ///
    /// # Errors
    /// [`OpsError::Number`] for a number that an integer dtype cannot represent, or that is finite and would become infinite; [`OpsError::ByteCount`] for another number
    /// of elements than the dims have, and those of [`Tensor::empty`].
    pub fn from_numbers(device: &Device, dtype: Dtype, dims: impl IntoDims, numbers: &[f32]) -> Result<Tensor> {
        let mut bytes = Vec::with_capacity(numbers.len() * dtype.bytes());
        for number in numbers {
            let word = Untyped::Float(f64::from(*number)).word(dtype).ok_or(Error::Ops(OpsError::Number { number: *number, dtype }))?;
            bytes.extend_from_slice(&word.to_le_bytes()[..dtype.bytes()]);
        }
        Tensor::from_bytes(device, dtype, dims, &bytes)
    }

    /// A tensor with these elements: little-endian bytes, a `bool` 0 or 1.
    ///
    /// # Errors
    /// [`OpsError::ByteCount`] for another number of bytes than the elements have, and those of [`Tensor::empty`].
    pub fn from_bytes(device: &Device, dtype: Dtype, dims: impl IntoDims, bytes: &[u8]) -> Result<Tensor> {
        let shape = known_shape(&dims.into_dims())?;
        let expected = shape.len().checked_mul(dtype.bytes());
        if expected != Some(bytes.len()) {
            return Err(Error::Ops(OpsError::ByteCount { expected: expected.unwrap_or(usize::MAX), given: bytes.len() }));
        }
        let bits = |chunk: &[u8]| chunk.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte));
        with_element!(dtype, T => {
            let elements: Vec<T> = bytes.chunks_exact(dtype.bytes()).map(|chunk| T::of_bits(bits(chunk))).collect();
            device.tensor_from(&elements, shape).map(Tensor::from)
        })
    }

    /// The elements as [`Tensor::from_bytes`] takes them, after waiting for the work that writes them.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    #[track_caller]
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let width = self.dtype().bytes();
        with_element!(self.dtype(), T => {
            let elements = self.to_vec::<T>()?;
            Ok(elements.into_iter().flat_map(|element| element.bits().to_le_bytes().into_iter().take(width)).collect())
        })
    }

    /// The tensor on a device. On its own device it shares the memory; on another one it is a copy.
    ///
    /// # Errors
    /// [`OpsError::RecordedData`] for a tensor of a recording, [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    #[track_caller]
    pub fn to_device(&self, device: &Device) -> Result<Tensor> {
        let real = self.real()?;
        if real.memory.device() == *device {
            return Ok(self.clone());
        }
        let edge = if self.flows() { Edge::copy(self, real.memory.device()) } else { None };
        let copy: Tensor = with_element!(real.dtype, T => real.view::<T>()?.to_device(device).map(Tensor::from))?;
        Ok(Tensor { edge, ..copy })
    }

    /// The home stream: the tensor is copied and freed on it, and a launch that writes the tensor uses it by default. A recorded tensor has none.
    pub fn stream(&self) -> Option<&Stream> {
        match &self.repr {
            Repr::Real(real) => Some(real.memory.stream()),
            Repr::Traced(_) => None,
        }
    }

    /// Sets all elements to 0, or `false`. If the memory is shared, the tensor gets memory of its own first.
    ///
    /// # Errors
    /// As [`Tensor::view_mut`].
    #[track_caller]
    pub fn fill_zeros(&mut self) -> Result<()> {
        with_element!(self.dtype(), T => self.view_mut::<T>()?.fill(T::default()))
    }

    /// The tensor as an argument that a kernel reads, with elements of type `T`.
    #[inline]
    pub(crate) fn argument<T: ElementArg>(&self) -> (Pointer<'_>, Shape) {
        if self.edge.is_some() && autograd::is_on() {
            return (Pointer::deferred(Deferred::Differentiable(self.dtype())), Shape::SCALAR);
        }
        match &self.repr {
            Repr::Real(real) => match wrong_dtype::<T>(real.dtype) {
                Some(wrong) => (Pointer::deferred(wrong), real.shape),
                None => real.pointer::<T>(),
            },
            Repr::Traced(traced) => traced.argument::<T>(),
        }
    }

    /// All memory of which the tensor is a part, as an argument.
    pub(crate) fn memory_argument(&self) -> Pointer<'_> {
        let (pointer, _) = self.argument::<super::Any>();
        match &self.repr {
            Repr::Real(real) => Pointer { address: real.memory.address(), len: real.total as u64, ..pointer },
            Repr::Traced(_) => pointer,
        }
    }

    /// The tensor as an argument that a kernel writes, with elements of type `T`. Shared elements are copied.
    #[track_caller]
    pub(crate) fn argument_mut<T: ElementArg>(&mut self) -> (Pointer<'_>, Shape) {
        if let Some(edge) = &self.edge {
            if autograd::is_on() {
                return (Pointer::deferred(Deferred::Differentiable(self.dtype())), Shape::SCALAR);
            }
            if !edge.is_leaf() {
                self.edge = None;
            }
        }
        match &mut self.repr {
            Repr::Real(real) => {
                if let Some(wrong) = wrong_dtype::<T>(real.dtype) {
                    return (Pointer::deferred(wrong), real.shape);
                }
                real.failed = match real.make_unique(Location::caller(), true) {
                    Ok(()) => None,
                    Err(error) => Some(Arc::new(Mutex::new(Some(error)))),
                };
                match &real.failed {
                    Some(failed) => (Pointer::deferred(Deferred::Failed(failed)), real.shape),
                    None => real.pointer::<T>(),
                }
            }
            Repr::Traced(traced) => traced.argument::<T>(),
        }
    }

    #[track_caller]
    fn real(&self) -> Result<&Real> {
        match &self.repr {
            Repr::Real(real) => Ok(real),
            Repr::Traced(traced) => Err(Error::Ops(OpsError::RecordedData { tensor: traced.ty.to_string(), location: Location::caller() })),
        }
    }
}

impl Real {
    /// The owner of the memory.
    pub(crate) fn owner(&self) -> Owner<'_> {
        Owner::of(&self.memory)
    }

    /// The dtype of the elements.
    pub(crate) fn dtype(&self) -> Dtype {
        self.dtype
    }

    /// The tensor as an argument for a `T`, which is the type of the elements or `Any`.
    #[inline]
    fn pointer<T: ElementArg>(&self) -> (Pointer<'_>, Shape) {
        let bytes = T::KNOWN.unwrap_or(self.dtype).bytes();
        let address = self.memory.address() + (self.offset * bytes) as u64;
        (Pointer { address, len: self.shape.len() as u64, owner: Owner::Shared(self) }, self.shape)
    }

    /// The same tensor as a handle.
    pub(crate) fn handle(&self) -> Tensor {
        Tensor::real_of(Real { failed: None, ..self.clone() })
    }

    fn whole<T: Element>(tensor: crate::Tensor<T>) -> Real {
        let (memory, shape) = tensor.into_parts();
        Real { memory: Arc::new(memory), total: shape.len(), offset: 0, shape, dtype: T::DTYPE, failed: None }
    }

    fn check<T: Element>(&self) -> Result<()> {
        if T::DTYPE == self.dtype { Ok(()) } else { Err(Error::Ops(OpsError::WrongDtype { expected: T::DTYPE, found: self.dtype })) }
    }

    fn view<T: Element>(&self) -> Result<TensorView<'_, T>> {
        self.check::<T>()?;
        Ok(self.elements())
    }

    /// The elements, which are of type `T`.
    fn elements<T: Element>(&self) -> TensorView<'_, T> {
        TensorView::part(&self.memory, self.offset, self.shape)
    }

    fn view_mut<T: Element>(&mut self, location: &'static Location<'static>) -> Result<TensorViewMut<'_, T>> {
        self.check::<T>()?;
        self.make_unique(location, false)?;
        let (offset, shape) = (self.offset, self.shape);
        let memory = Arc::get_mut(&mut self.memory).expect("no other handle of a copy exists");
        Ok(TensorViewMut::part(memory, offset, shape))
    }

    /// Copies the elements if the memory is shared. For an argument of a launch, the launch knows the user's line, and not the caller.
    fn make_unique(&mut self, location: &'static Location<'static>, is_argument: bool) -> Result<()> {
        if Arc::get_mut(&mut self.memory).is_none() {
            *self = with_element!(self.dtype, T => Real::whole(self.copied::<T>(location, is_argument)?));
        }
        Ok(())
    }

    /// A counted copy with the same home stream.
    fn copied<T: Element>(&self, location: &'static Location<'static>, is_argument: bool) -> Result<crate::Tensor<T>> {
        let bytes = self.shape.len() * self.dtype.bytes();
        copies::allow(bytes, location)?;
        let ty = || TensorType { dtype: self.dtype, dims: self.shape.dims().into_dims() };
        let _span = profile::copy(ty, bytes, (!is_argument).then_some(location));
        let mut copy = crate::Tensor::empty_on(self.memory.stream(), self.shape)?;
        copy.view_mut().copy_from(&self.view::<T>()?)?;
        copies::count();
        Ok(copy)
    }
}

/// The argument in place of a tensor whose dtype is not that of `T`.
fn wrong_dtype<'a, T: ElementArg>(found: Dtype) -> Option<Deferred<'a>> {
    T::KNOWN.filter(|expected| *expected != found).map(|expected| Deferred::WrongDtype { expected, found })
}

impl TensorType {
    /// The number of elements.
    pub fn numel(&self) -> Dim {
        self.dims.iter().fold(Dim::from(1), |product, dim| product * dim)
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> = self.dims.iter().map(Dim::to_string).collect();
        write!(f, "{}[{}]", self.dtype, dims.join(", "))
    }
}

/// Compares two tensors of one dtype and shape, as [`compare`](crate::compare) does.
///
/// ```
/// # use kernel_runtime::{Device, Result, ops};
/// # fn main() -> Result<()> {
/// let x: ops::Tensor = Device::cpu().tensor(&[1.0f32, 2.0])?.into();
/// assert!(ops::compare(&x, &x.clone())?.bit_equal);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`OpsError::WrongDtype`] for tensors of two dtypes, [`OpsError::RecordedData`] for a tensor of a recording, and those of
/// [`compare`](crate::compare).
#[track_caller]
pub fn compare(a: &Tensor, b: &Tensor) -> Result<Comparison> {
    with_element!(a.dtype(), T => crate::compare(a.view::<T>()?, b.view::<T>()?))
}

/// The number that a dim is outside of a recording.
fn known(dim: &Dim) -> Result<usize> {
    let number = dim.value(&DimValues::new())?;
    usize::try_from(number).map_err(|_| Error::Dim(DimError::Negative { value: number }))
}

fn known_shape(dims: &[Dim]) -> Result<Shape> {
    Shape::new(&dims.iter().map(known).collect::<Result<Vec<usize>>>()?)
}

/// Shows a real tensor as a typed one, and the type of a recorded one.
impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.repr {
            Repr::Real(real) => with_element!(real.dtype, T => fmt::Debug::fmt(&real.elements::<T>(), f)),
            Repr::Traced(traced) => write!(f, "Tensor {} of a recording", traced.ty),
        }
    }
}

/// Shows a real tensor as PyTorch prints it, and the type of a recorded one.
impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.repr {
            Repr::Real(real) => with_element!(real.dtype, T => fmt::Display::fmt(&real.elements::<T>(), f)),
            Repr::Traced(traced) => write!(f, "tensor({}, recorded)", traced.ty),
        }
    }
}
