//! Tensors: typed elements in a device's memory, with a shape.

pub(crate) mod compare;
pub(crate) mod constant;
pub(crate) mod cuda_slice;
mod display;
pub(crate) mod element;
pub(crate) mod float8;
mod frontier;
pub(crate) mod memory;
pub(crate) mod pointer;
pub(crate) mod shape;
pub(crate) mod view;

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use cudarc::driver::CudaSlice;
use kernel_lang::dtype::Dtype;

use crate::device::driver::check_cudarc;
use crate::device::stream::{self, Queue, Stream};
use crate::replay::{self, Forbidden};
use crate::tensor::memory::{CudaBuffer, Init, Memory};
use crate::tensor::shape::{IntoShape, Shape};
use crate::tensor::view::{TensorView, TensorViewMut, fitting};
use crate::{Device, Element, Error, Result};

/// A contiguous, row-major array of elements of one type in the memory of one device, with a shape.
///
/// Kernels take `&Tensor<T>` to read a tensor and `&mut Tensor<T>` to write it. A tensor may be empty wherever tensors are accepted.
///
/// ```
/// # use kernel_runtime::{Device, Result};
/// # fn main() -> Result<()> {
/// let device = Device::cpu();
/// let mut x = device.tensor(&[1, 2, 3, 4, 5, 6])?.reshape([2, 3])?;
/// x.slice_mut(1..)?.fill(0)?;
/// assert_eq!(format!("{x:?}"), "Tensor<i32>[2, 3] on cpu [1, 2, 3, 0, 0, 0]");
/// # Ok(())
/// # }
/// ```
pub struct Tensor<T> {
    memory: Memory,
    shape: Shape,
    elements: PhantomData<T>,
}

impl Device {
    /// Makes a tensor with one axis that holds a copy of `data`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    pub fn tensor<T: Element>(&self, data: &[T]) -> Result<Tensor<T>> {
        self.tensor_from(data, data.len())
    }

    /// Makes a tensor of this shape that holds a copy of `data`.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    pub fn tensor_from<T: Element>(&self, data: &[T], shape: impl IntoShape) -> Result<Tensor<T>> {
        let mut tensor = Tensor::uninit(self, fitting(shape, data.len())?)?;
        tensor.copy_from_slice(data)?;
        Ok(tensor)
    }

    /// Makes a tensor of zeros (`false` for `bool`).
    ///
    /// # Errors
    /// [`Error::ShapeTooLarge`], [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    pub fn zeros<T: Element>(&self, shape: impl IntoShape) -> Result<Tensor<T>> {
        Tensor::new(self.stream(), shape.into_shape()?, Init::Zeros)
    }

    /// Makes a tensor whose elements all have the same value.
    ///
    /// # Errors
    /// [`Error::ShapeTooLarge`], [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    pub fn full<T: Element>(&self, shape: impl IntoShape, value: T) -> Result<Tensor<T>> {
        let mut tensor = Tensor::uninit(self, shape.into_shape()?)?;
        tensor.fill(value)?;
        Ok(tensor)
    }

    /// Makes a tensor with arbitrary elements, for a kernel that writes them. On a GPU the memory keeps its old contents. Tensors of `bool`, and
    /// tensors on the CPU, hold zeros. A simulated GPU reports kernels that read unwritten elements.
    ///
    /// # Errors
    /// [`Error::ShapeTooLarge`], [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    pub fn empty<T: Element>(&self, shape: impl IntoShape) -> Result<Tensor<T>> {
        Tensor::empty_on(self.stream(), shape.into_shape()?)
    }

    /// [`Device::empty`] with the type and shape of another tensor, which may be on another device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    pub fn empty_like<T: Element>(&self, other: &Tensor<T>) -> Result<Tensor<T>> {
        self.empty(other.shape)
    }
}

impl<T: Element> Tensor<T> {
    fn new(stream: &Stream, shape: Shape, init: Init) -> Result<Tensor<T>> {
        let too_large = || Error::ShapeTooLarge { shape: shape.dims().to_vec() };
        let bytes = shape.len().checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
        let memory = Memory::new(stream, bytes.ok_or_else(too_large)?, init)?;
        Ok(Tensor { memory, shape, elements: PhantomData })
    }

    /// [`Device::empty`] with another home stream.
    pub(crate) fn empty_on(stream: &Stream, shape: Shape) -> Result<Tensor<T>> {
        let every_pattern_is_a_value = !matches!(T::DTYPE, Dtype::Bool);
        let init = if every_pattern_is_a_value { Init::Anything } else { Init::Zeros };
        Tensor::new(stream, shape, init)
    }

    /// The memory, all of which belongs to the tensor, and the shape.
    pub(crate) fn into_parts(self) -> (Memory, Shape) {
        (self.memory, self.shape)
    }

    /// The tensor of memory that holds the elements of the shape, and nothing else.
    pub(crate) fn from_parts(memory: Memory, shape: Shape) -> Tensor<T> {
        Tensor { memory, shape, elements: PhantomData }
    }

    /// An uninitialised tensor, which this module fills before it returns it.
    fn uninit(device: &Device, shape: Shape) -> Result<Tensor<T>> {
        Tensor::new(device.stream(), shape, Init::Anything)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.len()
    }

    /// Returns whether the tensor has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        self.shape.dims()
    }

    /// The stride of each axis: the distance between neighbours along it, in elements.
    pub fn strides(&self) -> &[usize] {
        self.shape.strides()
    }

    /// The address of the first element in the device's memory, for a kernel that loads addresses from memory: `load(addresses + i) as Ptr<f32>`.
    ///
    /// The address is constant while the tensor lives. A launch does not track tensors that a kernel reaches through such addresses. The caller of
    /// the kernel, which therefore is an `unsafe fn`, must guarantee that
    ///
    /// - these tensors live until the launch is complete,
    /// - nothing else uses the memory to which the kernel stores,
    /// - the launch waits for the work on other streams that uses the tensors.
    ///
    /// ```
    /// # use kernel_runtime::{Device, Result};
    /// # fn main() -> Result<()> {
    /// let device = Device::cpu();
    /// let tensors = [device.tensor(&[1.0f32, 2.0])?, device.tensor(&[3.0f32])?];
    /// let addresses = device.tensor(&tensors.each_ref().map(|tensor| tensor.address()))?;
    /// assert_eq!(tensors[0].slice(1..)?.address(), tensors[0].address() + 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn address(&self) -> u64 {
        self.view().address()
    }

    /// The device that holds the elements.
    pub fn device(&self) -> Device {
        self.memory.device()
    }

    /// The home stream. The tensor is copied and freed on it, and a launch that writes the tensor uses it by default.
    pub fn stream(&self) -> &Stream {
        self.memory.stream()
    }

    /// Makes another stream the home stream, ordered after all work on this tensor so far.
    ///
    /// Launches on a tensor's home stream are ordered at no cost. Work on two tensors with different home streams can run concurrently.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] for a stream of another device, [`Error::InCapture`], or a CUDA driver error.
    pub fn set_stream(&mut self, stream: &Stream) -> Result<()> {
        replay::forbid(Forbidden::Waiting)?;
        if stream.device() != self.device() {
            return Err(Error::WrongDevice { what: "this stream", device: stream.device(), expected: self.device() });
        }
        self.memory.set_home(stream)
    }

    /// A view of the whole tensor.
    pub fn view(&self) -> TensorView<'_, T> {
        TensorView::new(&self.memory, self.shape)
    }

    /// A mutable view of the whole tensor.
    pub fn view_mut(&mut self) -> TensorViewMut<'_, T> {
        TensorViewMut::new(&mut self.memory, self.shape)
    }

    /// A view of the part `range` of the first axis.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`] if the range does not fit the axis.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<TensorView<'_, T>> {
        self.view().slice(range)
    }

    /// A mutable view of the part `range` of the first axis.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`] if the range does not fit the axis.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<TensorViewMut<'_, T>> {
        let (start, end) = (range.start_bound().cloned(), range.end_bound().cloned());
        self.shape.cut((start, end)).map(|(part, skipped)| TensorViewMut::part(&mut self.memory, skipped, part))
    }

    /// Views of the parts before and from `index` of the first axis.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`] if the index is past the end of the axis.
    pub fn split_at(&self, index: usize) -> Result<(TensorView<'_, T>, TensorView<'_, T>)> {
        self.view().split_at(index)
    }

    /// Mutable views of the parts before and from `index` of the first axis. The parts have no element in common, so one launch can take both
    /// as arguments, and write both.
    ///
    /// ```
    /// # use kernel_runtime::{Device, Error, Result};
    /// # fn main() -> Result<()> {
    /// let mut x = Device::cpu().tensor_from(&[1, 2, 3, 4, 5, 6], [3, 2])?;
    /// let (mut top, bottom) = x.split_at_mut(1)?;
    /// assert_eq!((top.shape(), bottom.shape()), (&[1, 2][..], &[2, 2][..]));
    /// top.copy_from(&bottom.as_view().slice(1..)?)?;
    /// assert_eq!(x.to_vec()?, [5, 6, 3, 4, 5, 6]);
    /// assert!(matches!(x.split_at_mut(4), Err(Error::SliceOutOfRange { end: 4, .. })));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Both parts borrow the tensor:
    ///
    /// ```compile_fail,E0499
    /// # use kernel_runtime::{Device, Result};
    /// # fn main() -> Result<()> {
    /// let mut x = Device::cpu().zeros::<f32>(6)?;
    /// let (top, mut bottom) = x.split_at_mut(1)?;
    /// drop(top);
    /// x.fill(1.0)?;
    /// bottom.fill(2.0)
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`] if the index is past the end of the axis.
    pub fn split_at_mut(&mut self, index: usize) -> Result<(TensorViewMut<'_, T>, TensorViewMut<'_, T>)> {
        self.view_mut().split_at_mut(index)
    }

    /// The same elements in another shape. Copies nothing.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the shape holds another number of elements.
    pub fn reshape(self, shape: impl IntoShape) -> Result<Tensor<T>> {
        Ok(Tensor { shape: fitting(shape, self.len())?, ..self })
    }

    /// Copies the elements to the host, after waiting for the work that writes them.
    ///
    /// # Errors
    /// [`Error::InCapture`], or [`Error::Asynchronous`] if that work failed.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.view().to_vec()
    }

    /// Copies the elements to `target` on the host, after waiting for the work that writes them.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::InCapture`], or [`Error::Asynchronous`] if that work failed.
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()> {
        self.view().copy_to_slice(target)
    }

    /// Copies `source` from the host into the tensor.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::InCapture`], or a CUDA driver error.
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()> {
        self.view_mut().copy_from_slice(source)
    }

    /// Sets every element to `value`.
    ///
    /// # Errors
    /// A CUDA driver error.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.view_mut().fill(value)
    }

    /// Copies the tensor to a device, which may be its own.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    pub fn to_device(&self, device: &Device) -> Result<Tensor<T>> {
        self.view().to_device(device)
    }

    /// Copies the tensor on its own device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    pub fn try_clone(&self) -> Result<Tensor<T>> {
        self.to_device(&self.device())
    }

    /// Takes over the memory of a cudarc slice, which any library may have allocated in the device's primary context. Copies nothing. The slice's
    /// stream becomes the home stream; for a slice on the per-thread default stream, the device's default stream does.
    ///
    /// # Errors
    /// [`Error::ForeignContext`], [`Error::StreamCaptured`], or a CUDA driver error.
    pub fn from_cuda_slice(slice: CudaSlice<T>) -> Result<Tensor<T>> {
        let device = Device::of_context(slice.context(), "this slice")?;
        let Some(cuda) = device.cuda_info() else { return Err(Error::NotCuda { what: "this slice" }) };
        let shape = slice.len().into_shape()?;
        let stream = slice.stream().clone();
        let own = Queue::of_others(&stream);
        own.forbid_capture("take over a slice")?;
        let home = if stream::is_per_thread(&stream) { device.stream().clone() } else { Stream::from_cuda(stream.clone())? };
        let doing = "take over a slice";
        // cudarc stores an error of `leak` in the context, and `leak` does not wait if an error is stored there already. So errors are taken out
        // before and after.
        check_cudarc(stream.context().check_err(), doing)?;
        let address = slice.leak();
        let given_up = check_cudarc(stream.context().check_err(), doing);
        let is_ordered = match &given_up {
            // Nothing can wait for the per-thread stream later, so the host waits for it now.
            Ok(()) if stream::is_per_thread(&stream) => own.synchronize(),
            Ok(()) => Ok(()),
            Err(_) => cuda.synchronize(),
        };
        // SAFETY: `leak` ordered the slice's uses before the next work on its stream, or the uses are complete. Nothing else frees the memory.
        let buffer = is_ordered.map(|()| unsafe { CudaBuffer::from_raw(address, cuda, home) });
        given_up?;
        Ok(Tensor { memory: Memory::Cuda(buffer?), shape, elements: PhantomData })
    }

    /// Converts the tensor into a cudarc slice on the tensor's home stream. Copies nothing. The slice's events cover the work that writes the memory,
    /// so cudarc makes other streams wait for that work.
    ///
    /// # Errors
    /// [`Error::NotCuda`] for a tensor that is not on a CUDA GPU, [`Error::StreamCaptured`], or a CUDA driver error. In each case the tensor is
    /// dropped.
    pub fn into_cuda_slice(self) -> Result<CudaSlice<T>> {
        let len = self.len();
        let Memory::Cuda(buffer) = self.memory else { return Err(Error::NotCuda { what: "this tensor" }) };
        buffer.give(|address, home| {
            // SAFETY: the memory holds that many elements and belongs to this tensor. `give` has ordered all uses before the work that is queued on
            // `home` from now on.
            unsafe { cuda_slice::of_address(address, len, home) }
        })
    }
}

/// Shows the dtype, shape, device and first elements: `Tensor<f32>[2, 3] on cuda:0 [0.0, 1.0, 2.0, ..]`. Waits for the work that writes them.
impl<T: Element> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}
