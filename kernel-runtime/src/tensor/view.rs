//! Views: borrowed parts of tensors.

use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;

use crate::tensor::memory::Memory;
use crate::tensor::shape::{IntoShape, Shape};
use crate::{Device, Element, Error, Result, Stream, Tensor, replay};

/// A borrowed contiguous part of a tensor, made by [`Tensor::slice`] or [`Tensor::view`]. Kernels take it as an argument that they read.
#[derive(Clone, Copy)]
pub struct TensorView<'a, T> {
    memory: &'a Memory,
    /// The index of the first element.
    offset: usize,
    shape: Shape,
    elements: PhantomData<&'a [T]>,
}

/// A mutably borrowed contiguous part of a tensor, made by [`Tensor::slice_mut`] or [`Tensor::view_mut`]. Kernels take `&mut` of it as an argument
/// that they write.
pub struct TensorViewMut<'a, T> {
    /// Only the part is borrowed mutably, not the rest of the memory.
    memory: &'a Memory,
    offset: usize,
    shape: Shape,
    elements: PhantomData<&'a mut [T]>,
}

impl<'a, T: Element> TensorView<'a, T> {
    /// A view of the whole of `memory`.
    ///
    /// The constructors in this module guarantee that the elements are inside their memory.
    pub(crate) fn new(memory: &'a Memory, shape: Shape) -> TensorView<'a, T> {
        TensorView::part(memory, 0, shape)
    }

    /// A view of the elements of `shape` that start at `offset`.
    pub(crate) fn part(memory: &'a Memory, offset: usize, shape: Shape) -> TensorView<'a, T> {
        TensorView { memory, offset, shape, elements: PhantomData }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.len()
    }

    /// Returns whether the view has no elements.
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

    /// The shape with its strides.
    pub(crate) fn layout(&self) -> Shape {
        self.shape
    }

    /// The device that holds the elements.
    pub fn device(&self) -> Device {
        self.memory.device()
    }

    /// The home stream of the tensor, see [`Tensor::stream`].
    pub fn stream(&self) -> &'a Stream {
        self.memory.stream()
    }

    /// A view of the part `range` of the first axis.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`] if the range does not fit the axis.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<TensorView<'a, T>> {
        let (shape, skipped) = self.shape.cut(range)?;
        Ok(TensorView { offset: self.offset + skipped, shape, ..*self })
    }

    /// Splits the view before `index` of the first axis.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`] if the index is past the end of the axis.
    pub fn split_at(&self, index: usize) -> Result<(TensorView<'a, T>, TensorView<'a, T>)> {
        Ok((self.slice(..index)?, self.slice(index..)?))
    }

    /// The same elements in another shape.
    ///
    /// # Errors
    /// [`Error::ShapeMismatch`] if the shape holds another number of elements.
    pub fn reshape(&self, shape: impl IntoShape) -> Result<TensorView<'a, T>> {
        Ok(TensorView { shape: fitting(shape, self.len())?, ..*self })
    }

    /// Copies the elements to the host, after waiting for the work that writes them.
    ///
    /// # Errors
    /// [`Error::InCapture`], or [`Error::Asynchronous`] if that work failed.
    pub fn to_vec(&self) -> Result<Vec<T>> {
        let mut target = vec![T::default(); self.len()];
        self.copy_to_slice(&mut target)?;
        Ok(target)
    }

    /// Copies the elements to `target` on the host, after waiting for the work that writes them.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::InCapture`], or [`Error::Asynchronous`] if that work failed.
    pub fn copy_to_slice(&self, target: &mut [T]) -> Result<()> {
        same_length(self.len(), target.len())?;
        self.read(0, target)
    }

    /// Copies the elements from `start` on, in row-major order, to `target` on the host, after waiting for the work that writes them.
    ///
    /// # Errors
    /// As [`TensorView::copy_to_slice`].
    ///
    /// # Panics
    /// If the view has fewer elements.
    pub(crate) fn read(&self, start: usize, target: &mut [T]) -> Result<()> {
        assert!(start <= self.len() && target.len() <= self.len() - start, "the elements are inside the view");
        // SAFETY: the elements are inside the view, and thus inside the memory and borrowed.
        unsafe { self.memory.read((self.offset + start) * size_of::<T>(), bytes_of_mut(target)) }
    }

    /// Copies the elements into a new tensor on a device, which may be their own.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], [`Error::InCapture`], or a CUDA driver error.
    pub fn to_device(&self, device: &Device) -> Result<Tensor<T>> {
        let mut copy = device.empty(self.shape)?;
        copy.view_mut().copy_from(self)?;
        Ok(copy)
    }

    /// The address of the first element, see [`Tensor::address`].
    #[inline]
    pub fn address(&self) -> u64 {
        self.memory.address() + (self.offset * size_of::<T>()) as u64
    }

    pub(crate) fn memory(&self) -> &'a Memory {
        self.memory
    }
}

impl<'a, T: Element> TensorViewMut<'a, T> {
    /// The address of the first element, see [`Tensor::address`].
    #[inline]
    pub fn address(&self) -> u64 {
        self.as_view().address()
    }

    /// A mutable view of the whole of `memory`.
    pub(crate) fn new(memory: &'a mut Memory, shape: Shape) -> TensorViewMut<'a, T> {
        TensorViewMut::part(memory, 0, shape)
    }

    /// A mutable view of the elements of `shape` that start at `offset`.
    pub(crate) fn part(memory: &'a mut Memory, offset: usize, shape: Shape) -> TensorViewMut<'a, T> {
        TensorViewMut { memory, offset, shape, elements: PhantomData }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.len()
    }

    /// Returns whether the view has no elements.
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

    /// The device that holds the elements.
    pub fn device(&self) -> Device {
        self.memory.device()
    }

    /// A read-only view of the same elements.
    pub fn as_view(&self) -> TensorView<'_, T> {
        TensorView { memory: self.memory, offset: self.offset, shape: self.shape, elements: PhantomData }
    }

    /// A mutable view of the same elements, which borrows this view.
    pub fn view_mut(&mut self) -> TensorViewMut<'_, T> {
        TensorViewMut { memory: self.memory, offset: self.offset, shape: self.shape, elements: PhantomData }
    }

    /// A mutable view of the part `range` of the first axis.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`] if the range does not fit the axis.
    pub fn slice_mut(&mut self, range: impl RangeBounds<usize>) -> Result<TensorViewMut<'_, T>> {
        let (shape, skipped) = self.shape.cut(range)?;
        Ok(TensorViewMut { memory: self.memory, offset: self.offset + skipped, shape, elements: PhantomData })
    }

    /// The same elements in another shape. A kernel's `ViewMut` of several axes can thus take a part of a tensor with one axis.
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

    /// Splits the view before `index` of the first axis. The parts have no element in common, so one launch can write both. The parts take
    /// the place of the view; `view.slice_mut(..)?.split_at_mut(index)` only borrows it.
    ///
    /// # Errors
    /// [`Error::SliceOutOfRange`] if the index is past the end of the axis.
    pub fn split_at_mut(self, index: usize) -> Result<(TensorViewMut<'a, T>, TensorViewMut<'a, T>)> {
        let part = |(shape, skipped)| TensorViewMut { memory: self.memory, offset: self.offset + skipped, shape, elements: PhantomData };
        Ok((part(self.shape.cut(..index)?), part(self.shape.cut(index..)?)))
    }

    /// Copies `source` from the host into the elements.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], [`Error::InCapture`], or a CUDA driver error.
    pub fn copy_from_slice(&mut self, source: &[T]) -> Result<()> {
        same_length(source.len(), self.len())?;
        // SAFETY: the elements are inside the memory and borrowed mutably, and the source has as many.
        unsafe { self.memory.write(self.offset * size_of::<T>(), bytes_of(source)) }
    }

    /// Copies elements from a tensor on any device. The shapes may differ.
    ///
    /// # Errors
    /// [`Error::LengthMismatch`], or a CUDA driver error.
    pub fn copy_from(&mut self, source: &TensorView<'_, T>) -> Result<()> {
        same_length(source.len(), self.len())?;
        if replay::is_capturing() {
            return replay::capture_copy(source, self);
        }
        let (from, to) = (source.offset * size_of::<T>(), self.offset * size_of::<T>());
        // SAFETY: both views have that many elements. Those of the target are borrowed mutably, those of the source immutably.
        unsafe { source.memory.copy_to(from, self.len() * size_of::<T>(), self.memory, to) }
    }

    /// Sets every element to `value`.
    ///
    /// # Errors
    /// A CUDA driver error.
    pub fn fill(&mut self, value: T) -> Result<()> {
        if replay::is_capturing() {
            return replay::capture_fill(self, value);
        }
        match self.memory {
            Memory::Host(_) => {
                // SAFETY: the elements are inside the memory, aligned, initialised and borrowed mutably.
                unsafe { std::slice::from_raw_parts_mut(self.as_view().address() as *mut T, self.len()) }.fill(value);
                Ok(())
            }
            // SAFETY: the elements are inside the memory, aligned and borrowed mutably.
            Memory::Cuda(buffer) => unsafe { buffer.fill(self.offset * size_of::<T>(), self.len(), size_of::<T>(), value.bits()) },
            Memory::Sim(buffer) => buffer.fill(self.offset * size_of::<T>(), self.len(), size_of::<T>(), value.bits()),
        }
    }
}

impl<'a, T: Element> From<&'a Tensor<T>> for TensorView<'a, T> {
    fn from(tensor: &'a Tensor<T>) -> TensorView<'a, T> {
        tensor.view()
    }
}

impl<'a, T: Element> From<&TensorView<'a, T>> for TensorView<'a, T> {
    fn from(view: &TensorView<'a, T>) -> TensorView<'a, T> {
        *view
    }
}

impl<'a, T: Element> From<&'a TensorViewMut<'_, T>> for TensorView<'a, T> {
    fn from(view: &'a TensorViewMut<'_, T>) -> TensorView<'a, T> {
        view.as_view()
    }
}

/// Returns `shape` if it holds `len` elements, else an error.
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
    // SAFETY: elements have no padding, and the callers write only valid elements.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), size_of_val(elements)) }
}

/// Shows the dtype, shape, device and first elements: `Tensor<f32>[2, 3] on cuda:0 [0.0, 1.0, 2.0, ..]`. Waits for the work that writes them.
impl<T: Element> fmt::Debug for TensorView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        write!(f, "Tensor<{}>{:?} on {} ", T::DTYPE.name(), self.shape, self.device())?;
        let mut first = vec![T::default(); self.len().min(SHOWN)];
        match self.read(0, &mut first) {
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
