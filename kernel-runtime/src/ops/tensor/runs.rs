//! Tensors in the runs of recorded graphs: their memory, which one run leaves to the next. No method allocates anything but that memory.

use std::sync::Arc;

use kernel_lang::dtype::Dtype;

use super::{Real, Repr, Tensor};
use crate::ops::OpsError;
use crate::ops::recorder::TensorType;
use crate::tensor::shape::Shape;
use crate::{Dim, DimError, DimValues, Error, MAX_RANK, Result, Stream, bf16, f8e4m3, f8e5m2, f16};

impl Tensor {
    /// The extents; `None` in a recording. Allocates nothing.
    #[doc(hidden)]
    pub fn extents(&self) -> Option<&[usize]> {
        match &self.repr {
            Repr::Real(real) => Some(real.shape.dims()),
            Repr::Traced(_) => None,
        }
    }

    /// The address of the first element; `None` in a recording.
    #[doc(hidden)]
    pub fn address(&self) -> Option<u64> {
        match &self.repr {
            Repr::Real(real) => Some(real.memory.address() + (real.offset * real.dtype.bytes()) as u64),
            Repr::Traced(_) => None,
        }
    }

    /// The number of elements for which the memory has room; 0 in a recording.
    #[doc(hidden)]
    pub fn capacity(&self) -> usize {
        match &self.repr {
            Repr::Real(real) => real.total,
            Repr::Traced(_) => 0,
        }
    }

    /// The elements of a tensor of this shape that begin at an element, without a gradient. Copies and allocates nothing.
    ///
    /// # Errors
    /// [`OpsError::DimOutOfRange`] if there are fewer elements, or [`OpsError::RecordedData`] for a tensor of a recording.
    #[doc(hidden)]
    #[track_caller]
    pub fn part_at(&self, offset: i64, shape: Shape) -> Result<Tensor> {
        let real = self.real()?;
        let skipped = usize::try_from(offset).ok();
        match skipped.filter(|skipped| skipped.checked_add(shape.len()).is_some_and(|end| end <= real.shape.len())) {
            Some(skipped) => Ok(Tensor::real_of(Real { offset: real.offset + skipped, shape, failed: None, ..real.clone() })),
            None => {
                let (start, extent) = (Dim::from(offset), Dim::from(real.shape.len()));
                Err(Error::Ops(OpsError::DimOutOfRange { end: &start + Dim::from(shape.len()), start, extent }))
            }
        }
    }

    /// The memory of the tensor for elements of another shape, which are arbitrary. `None` if another tensor shares it, if it holds fewer elements, or in a recording.
    #[doc(hidden)]
    pub fn reused(self, shape: Shape) -> Option<Tensor> {
        let Repr::Real(real) = self.repr else { return None };
        let fits = shape.len() <= real.total && Arc::strong_count(&real.memory) == 1;
        fits.then_some(Tensor::real_of(Real { offset: 0, shape, failed: None, ..real }))
    }

    /// [`Tensor::empty`] with another home stream.
    ///
    /// # Errors
    /// As [`Tensor::empty`].
    #[doc(hidden)]
    pub fn empty_on(stream: &Stream, dtype: Dtype, shape: Shape) -> Result<Tensor> {
        with_element!(dtype, T => crate::Tensor::<T>::empty_on(stream, shape).map(Tensor::from))
    }

    /// Makes a stream of the same device the home stream, if no other tensor shares the memory.
    ///
    /// # Errors
    /// A CUDA driver error.
    #[doc(hidden)]
    pub fn set_stream(&mut self, stream: &Stream) -> Result<()> {
        match &mut self.repr {
            Repr::Real(real) => Arc::get_mut(&mut real.memory).map_or(Ok(()), |memory| memory.set_home(stream)),
            Repr::Traced(_) => Ok(()),
        }
    }
}

impl TensorType {
    /// The shape for these values of the dims. Allocates nothing.
    ///
    /// # Errors
    /// [`Error::Dim`] for a dim without a value, or with a negative one, and [`Error::ShapeTooLarge`].
    #[doc(hidden)]
    pub fn shape(&self, dims: &DimValues) -> Result<Shape> {
        let mut extents = [0; MAX_RANK];
        let Some(extents) = extents.get_mut(..self.dims.len()) else {
            return Err(Error::ShapeTooLarge { shape: vec![0; self.dims.len()] });
        };
        for (extent, dim) in extents.iter_mut().zip(&self.dims) {
            let value = dim.value(dims)?;
            *extent = usize::try_from(value).map_err(|_| Error::Dim(DimError::Negative { value }))?;
        }
        Shape::new(extents)
    }
}
