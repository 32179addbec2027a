//! Borrowed parts of tensors.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::memory::Memory;
use crate::shape::{IntoShape, Shape};
use crate::{Device, Element, Error, Result, Tensor, graph};

/// A borrowed contiguous part of a tensor, made by [`Tensor::slice`] or [`Tensor::view`]. Kernels take it where they
/// read.
#[derive(Clone, Copy)]
pub struct TensorView<'a, T> {
    memory: &'a Memory,
    /// First element.
    offset: usize,
    shape: Shape,
    elements: PhantomData<&'a [T]>,
}

/// A mutably borrowed contiguous part of a tensor, made by [`Tensor::slice_mut`] or [`Tensor::view_mut`]. Kernels take
/// `&mut` of it where they write.
pub struct TensorViewMut<'a, T> {
    /// The part is borrowed mutably, the rest of the memory is not.
    memory: &'a Memory,
    offset: usize,
    shape: Shape,
    elements: PhantomData<&'a mut [T]>,
}

impl<'a, T: Element> TensorView<'a, T> {
    /// The whole of `memory`.
    ///
    /// The constructors of this module are where elements are promised to be inside their memory.
    pub(crate) fn new(memory: &'a Memory, shape: Shape) -> TensorView<'a, T> {
        TensorView { memory, offset: 0, shape, elements: PhantomData }
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

    /// The dimensions and the strides.
    pub(crate) fn layout(&self) -> Shape {
        self.shape
    }

    /// Where the elements live.
    pub fn device(&self) -> Device {
        self.memory.device()
    }

    /// The part `range` of the first axis.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`].
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<TensorView<'a, T>> {
        let (shape, skipped) = self.shape.cut(range)?;
        Ok(TensorView { offset: self.offset + skipped, shape, ..*self })
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the shape holds another number of elements.
    pub fn reshape(&self, shape: impl IntoShape) -> Result<TensorView<'a, T>> {
        Ok(TensorView { shape: fitting(shape, self.len())?, ..*self })
    }

    /// The elements, copied to the host. Waits for the work that writes them.
    ///
    /// # Errors
    /// [`Error::InCapture`], or a failure of that work: [`Error::Asynchronous`].
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut target = vec![T::default(); self.len()];
        self.copy_to_slice(&mut target)?;
        Ok(target)
    }

    /// Copies the elements to the host. Waits for the work that writes them.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::InCapture`], or a failure of that work: [`Error::Asynchronous`].
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()> {
        same_length(self.len(), target.len())?;
        // SAFETY: the elements are inside, borrowed, and the target has as many.
        unsafe { self.memory.read(self.offset * size_of::<T>(), bytes_of_mut(target)) }
    }

    /// A copy on any device, this one too.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::InCapture`], or what the driver says.
    pub fn to_device(&self, device: &Device) -> Result<Tensor<T>> {
        let mut copy = device.empty(self.shape)?;
        copy.view_mut().copy_from(self)?;
        Ok(copy)
    }

    /// Where the first element is: see [`Tensor::address`].
    #[inline]
    pub fn address(&self) -> u64 {
        self.memory.address() + (self.offset * size_of::<T>()) as u64
    }

    pub(crate) fn memory(&self) -> &'a Memory {
        self.memory
    }
}

impl<'a, T: Element> TensorViewMut<'a, T> {
    /// Where the first element is: see [`Tensor::address`].
    #[inline]
    pub fn address(&self) -> u64 {
        self.as_view().address()
    }

    /// The whole of `memory`.
    pub(crate) fn new(memory: &'a mut Memory, shape: Shape) -> TensorViewMut<'a, T> {
        TensorViewMut::part(memory, 0, shape)
    }

    /// The elements of `shape` that start at `offset`.
    pub(crate) fn part(memory: &'a mut Memory, offset: usize, shape: Shape) -> TensorViewMut<'a, T> {
        TensorViewMut { memory, offset, shape, elements: PhantomData }
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

    /// Where the elements live.
    pub fn device(&self) -> Device {
        self.memory.device()
    }

    /// The same elements, to be read only.
    pub fn as_view(&self) -> TensorView<'_, T> {
        TensorView { memory: self.memory, offset: self.offset, shape: self.shape, elements: PhantomData }
    }

    /// The part `range` of the first axis.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`].
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<TensorViewMut<'_, T>> {
        let (shape, skipped) = self.shape.cut(range)?;
        Ok(TensorViewMut { memory: self.memory, offset: self.offset + skipped, shape, elements: PhantomData })
    }

    /// The same elements in another shape, so that a kernel's `ViewMut` of several axes can take a part of a tensor with one.
    ///
    /// ```
    /// # use kernel_runtime::{Device, Result};
    /// # fn main() -> Result<()> {
    /// let mut x = Device::cpu().zeros::<f32>([7])?;
    /// let matrix = x.slice_mut(1..)?.reshape([2, 3])?;
    /// assert_eq!(matrix.shape(), [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the shape holds another number of elements.
    pub fn reshape(self, shape: impl IntoShape) -> Result<TensorViewMut<'a, T>> {
        Ok(TensorViewMut { shape: fitting(shape, self.len())?, ..self })
    }

    /// The parts before and from `index` of the first axis, which two kernels can write at the same time.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`].
    pub fn split_at_mut(self, index: usize) -> Result<(TensorViewMut<'a, T>, TensorViewMut<'a, T>)> {
        let part = |(shape, skipped)| TensorViewMut { memory: self.memory, offset: self.offset + skipped, shape, elements: PhantomData };
        Ok((part(self.shape.cut(..index)?), part(self.shape.cut(index..)?)))
    }

    /// Copies elements from the host.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::InCapture`], or what the driver says.
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()> {
        same_length(source.len(), self.len())?;
        // SAFETY: the elements are inside, borrowed mutably, and the source has as many.
        unsafe { self.memory.write(self.offset * size_of::<T>(), bytes_of(source)) }
    }

    /// Copies elements from a tensor on any device; shapes may differ.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], or what the driver says.
    pub fn copy_from(&mut self, source: &TensorView<'_, T>) -> Result<()> {
        same_length(source.len(), self.len())?;
        if graph::is_capturing() {
            return graph::capture_copy(source, self);
        }
        let (from, to) = (source.offset * size_of::<T>(), self.offset * size_of::<T>());
        // SAFETY: both have that many elements, these borrowed mutably and those not.
        unsafe { source.memory.copy_to(from, self.len() * size_of::<T>(), self.memory, to) }
    }

    /// Sets every element.
    ///
    /// # Errors
    /// What the driver says.
    pub fn fill(&mut self, value: T) -> Result<()> {
        if graph::is_capturing() {
            return graph::capture_fill(self, value);
        }
        match self.memory {
            Memory::Host(_) => {
                // SAFETY: the elements are inside, aligned, initialised and borrowed mutably.
                unsafe { std::slice::from_raw_parts_mut(self.as_view().address() as *mut T, self.len()) }.fill(value);
                Ok(())
            }
            // SAFETY: the elements are inside, aligned and borrowed mutably.
            Memory::Cuda(buffer) => unsafe { buffer.fill(self.offset * size_of::<T>(), self.len(), size_of::<T>(), value.bits()) },
            Memory::Sim(buffer) => buffer.fill(self.offset * size_of::<T>(), self.len(), size_of::<T>(), value.bits()),
        }
    }
}

/// `shape`, if it holds `len` elements.
pub(crate) fn fitting(shape: impl IntoShape, len: usize) -> Result<Shape> {
    let shape = shape.into_shape()?;
    if shape.len() == len { Ok(shape) } else { Err(Error::ShapeMismatch { shape: shape.dims().to_vec(), len }) }
}

fn same_length(source_len: usize, len: usize) -> Result<()> {
    if source_len == len { Ok(()) } else { Err(Error::LengthMismatch { source_len, len }) }
}

fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: elements have no padding.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

fn bytes_of_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    // SAFETY: elements have no padding, and only elements are copied here.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) }
}

/// The dtype, shape, device and first elements: `Tensor<f32>[2, 3] on cuda:0 [0.0, 1.0, 2.0, ..]`. Waits for the work
/// that writes them.
impl<T: Element> fmt::Debug for TensorView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        write!(f, "Tensor<{}>{:?} on {} ", T::DTYPE.name(), self.shape, self.device())?;
        let mut first = vec![T::default(); self.len().min(SHOWN)];
        // SAFETY: these elements are inside and borrowed.
        match unsafe { self.memory.read(self.offset * size_of::<T>(), bytes_of_mut(&mut first)) } {
            Ok(()) if self.len() > SHOWN => f.debug_list().entries(first).finish_non_exhaustive(),
            Ok(()) => f.debug_list().entries(first).finish(),
            Err(error) => write!(f, "({error})"),
        }
    }
}

impl<T: Element> fmt::Debug for TensorViewMut<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_view().fmt(f)
    }
}
