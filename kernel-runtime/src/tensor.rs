//! Tensors: elements in a device's memory, with a shape.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use cudarc::driver::CudaSlice;
use kernel_lang::dtype::Dtype;

use crate::driver::check_cudarc;
use crate::graph::{self, Forbidden};
use crate::memory::{CudaBuffer, Init, Memory};
use crate::shape::{IntoShape, Shape};
use crate::slice;
use crate::stream::{self, Queue, Stream};
use crate::view::{TensorView, TensorViewMut, fitting};
use crate::{Device, Element, Error, Result};

/// Elements of one type in the memory of one device, contiguous and row-major, with a shape.
///
/// Kernels take `&Tensor<T>` where they read and `&mut Tensor<T>` where they write. A tensor may be empty everywhere.
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
    /// A tensor with one axis that holds a copy of `data`.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::InCapture`], or what the driver says.
    pub fn tensor<T: Element>(&self, data: &[T]) -> Result<Tensor<T>> {
        self.tensor_from(data, data.len())
    }

    /// A tensor of this shape that holds a copy of `data`.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`], [`Error::OutOfMemory`], [`Error::InCapture`], or what the driver says.
    pub fn tensor_from<T: Element>(&self, data: &[T], shape: impl IntoShape) -> Result<Tensor<T>> {
        let mut tensor = Tensor::uninit(self, fitting(shape, data.len())?)?;
        tensor.copy_from_slice(data)?;
        Ok(tensor)
    }

    /// A tensor of zeros (of `false`).
    ///
    /// # Errors
    /// [`Error::ShapeTooLarge`], [`Error::OutOfMemory`], [`Error::InCapture`], or what the driver says.
    pub fn zeros<T: Element>(&self, shape: impl IntoShape) -> Result<Tensor<T>> {
        Tensor::new(self, shape.into_shape()?, Init::Zeros)
    }

    /// A tensor with the same value everywhere.
    ///
    /// # Errors
    /// [`Error::ShapeTooLarge`], [`Error::OutOfMemory`], [`Error::InCapture`], or what the driver says.
    pub fn full<T: Element>(&self, shape: impl IntoShape, value: T) -> Result<Tensor<T>> {
        let mut tensor = Tensor::uninit(self, shape.into_shape()?)?;
        tensor.fill(value)?;
        Ok(tensor)
    }

    /// A tensor to be written: its elements are any values. On a GPU they are whatever the memory held, of `bool` and on the
    /// CPU zeros. A simulated GPU finds kernels that read them.
    ///
    /// # Errors
    /// [`Error::ShapeTooLarge`], [`Error::OutOfMemory`], [`Error::InCapture`], or what the driver says.
    pub fn empty<T: Element>(&self, shape: impl IntoShape) -> Result<Tensor<T>> {
        let every_pattern_is_a_value = !matches!(T::DTYPE, Dtype::Bool);
        let init = if every_pattern_is_a_value { Init::Anything } else { Init::Zeros };
        Tensor::new(self, shape.into_shape()?, init)
    }

    /// [`Device::empty`] with the type and shape of another tensor, which may live elsewhere.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::InCapture`], or what the driver says.
    pub fn empty_like<T: Element>(&self, other: &Tensor<T>) -> Result<Tensor<T>> {
        self.empty(other.shape)
    }
}

impl<T: Element> Tensor<T> {
    fn new(device: &Device, shape: Shape, init: Init) -> Result<Tensor<T>> {
        let too_large = || Error::ShapeTooLarge { shape: shape.dims().to_vec() };
        let bytes = shape.len().checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
        let memory = Memory::new(device.stream(), bytes.ok_or_else(too_large)?, init)?;
        Ok(Tensor { memory, shape, elements: PhantomData })
    }

    /// A tensor that this module fills before anybody sees it.
    fn uninit(device: &Device, shape: Shape) -> Result<Tensor<T>> {
        Tensor::new(device, shape, Init::Anything)
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The dimensions.
    pub fn shape(&self) -> &[usize] {
        self.shape.dims()
    }

    /// Elements between neighbours along each axis.
    pub fn strides(&self) -> &[usize] {
        self.shape.strides()
    }

    /// Where the first element is in its device's memory, for a kernel that reads addresses from memory: `load(addresses + i) as Ptr<f32>`.
    ///
    /// It stays the same as long as the tensor lives. A launch knows nothing of the tensors behind addresses: that they live until it is
    /// over, that nobody else uses what it stores to, and that work on other streams is waited for, is up to the caller of the kernel, which is
    /// an `unsafe fn` therefore.
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

    /// Where the elements live.
    pub fn device(&self) -> Device {
        self.memory.device()
    }

    /// The home stream: where the tensor is copied and freed, and where a launch that writes it goes by default.
    pub fn stream(&self) -> &Stream {
        self.memory.stream()
    }

    /// Makes another stream the home, behind all work on this tensor so far.
    ///
    /// Launches on a tensor's home stream order themselves for free. Two tensors at home on two streams can be worked on at
    /// the same time.
    ///
    /// # Errors
    /// [`Error::WrongDevice`] for a stream of another device, [`Error::InCapture`], or what the driver says.
    pub fn set_stream(&mut self, stream: &Stream) -> Result<()> {
        graph::forbid(Forbidden::Waiting)?;
        if stream.device() != self.device() {
            return Err(Error::WrongDevice { what: "this stream", device: stream.device(), expected: self.device() });
        }
        match &mut self.memory {
            Memory::Cuda(buffer) => buffer.set_home(stream),
            Memory::Host(_) | Memory::Sim(_) => Ok(()),
        }
    }

    /// The whole tensor, borrowed.
    pub fn view(&self) -> TensorView<'_, T> {
        TensorView::new(&self.memory, self.shape)
    }

    /// The whole tensor, borrowed mutably.
    pub fn view_mut(&mut self) -> TensorViewMut<'_, T> {
        TensorViewMut::new(&mut self.memory, self.shape)
    }

    /// The part `range` of the first axis.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<TensorView<'_, T>> {
        self.view().slice(range)
    }

    /// The part `range` of the first axis, borrowed mutably.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`].
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<TensorViewMut<'_, T>> {
        let (start, end) = (range.start_bound().cloned(), range.end_bound().cloned());
        self.shape.cut((start, end)).map(|(part, skipped)| TensorViewMut::part(&mut self.memory, skipped, part))
    }

    /// The same elements in another shape. Copies nothing.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the shape holds another number of elements.
    pub fn reshape(self, shape: impl IntoShape) -> Result<Tensor<T>> {
        Ok(Tensor { shape: fitting(shape, self.len())?, ..self })
    }

    /// The elements, copied to the host. Waits for the work that writes them.
    ///
    /// # Errors
    /// [`Error::InCapture`], or a failure of that work: [`Error::Asynchronous`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        self.view().to_vec()
    }

    /// Copies the elements to the host. Waits for the work that writes them.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::InCapture`], or a failure of that work: [`Error::Asynchronous`].
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()> {
        self.view().copy_to_slice(target)
    }

    /// Copies elements from the host.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::InCapture`], or what the driver says.
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()> {
        self.view_mut().copy_from_slice(source)
    }

    /// Sets every element.
    ///
    /// # Errors
    /// What the driver says.
    pub fn fill(&mut self, value: T) -> Result<()> {
        self.view_mut().fill(value)
    }

    /// A copy on any device, this one too.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::InCapture`], or what the driver says.
    pub fn to_device(&self, device: &Device) -> Result<Tensor<T>> {
        self.view().to_device(device)
    }

    /// A copy on the same device.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::InCapture`], or what the driver says.
    pub fn try_clone(&self) -> Result<Tensor<T>> {
        self.to_device(&self.device())
    }

    /// Takes over the memory of a slice of cudarc's, which was made by any library on the device's primary context.
    /// Copies nothing; the slice's stream becomes the tensor's home.
    ///
    /// # Errors
    /// [`Error::ForeignContext`], [`Error::StreamCaptured`], or what the driver says.
    pub fn from_cuda_slice(slice: CudaSlice<T>) -> Result<Tensor<T>> {
        let device = Device::of_context(slice.context(), "this slice")?;
        let Some(cuda) = device.cuda_info() else { return Err(Error::NotCuda { what: "this slice" }) };
        let shape = slice.len().into_shape()?;
        let stream = slice.stream().clone();
        let own = Queue::of_others(&stream);
        own.forbid_capture("take over a slice")?;
        let home = if stream::is_per_thread(&stream) { device.stream().clone() } else { Stream::from_cuda(stream.clone())? };
        let doing = "take over a slice";
        // cudarc leaves in the context what fails while it gives the memory up, and would not wait where something is left there already.
        check_cudarc(stream.context().check_err(), doing)?;
        let address = slice.leak();
        let given_up = check_cudarc(stream.context().check_err(), doing);
        let is_ordered = match &given_up {
            // The per-thread stream cannot be waited for later, so it is waited for now.
            Ok(()) if stream::is_per_thread(&stream) => own.synchronize(),
            Ok(()) => Ok(()),
            Err(_) => cuda.synchronize(),
        };
        // SAFETY: `leak` orders the slice's uses before what its stream does next, or they are over, and nobody else frees the memory.
        let buffer = is_ordered.map(|()| unsafe { CudaBuffer::from_raw(address, cuda, home) });
        given_up?;
        Ok(Tensor { memory: Memory::Cuda(buffer?), shape, elements: PhantomData })
    }

    /// Gives the memory to a slice of cudarc's, on the tensor's home stream. Copies nothing. The slice knows of the work that writes it: cudarc
    /// makes other streams wait for that.
    ///
    /// # Errors
    /// [`Error::NotCuda`] for a tensor that is not on a CUDA GPU, [`Error::StreamCaptured`], or what the driver says; the tensor is gone then.
    pub fn into_cuda_slice(self) -> Result<CudaSlice<T>> {
        let len = self.len();
        let Memory::Cuda(buffer) = self.memory else { return Err(Error::NotCuda { what: "this tensor" }) };
        buffer.give(|address, home| {
            // SAFETY: the memory holds that many elements, and is ours to give; `give` has ordered all uses before what is queued on `home` from now on.
            unsafe { slice::of_address(address, len, home) }
        })
    }
}

/// The dtype, shape, device and first elements: `Tensor<f32>[2, 3] on cuda:0 [0.0, 1.0, 2.0, ..]`. Waits for the work
/// that writes them.
impl<T: Element> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.view().fmt(f)
    }
}
