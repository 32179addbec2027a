//! Shapes and row-major strides, stored inline so that slicing a tensor allocates nothing.

use crate::{Error, Result};

/// The maximum number of dimensions of a tensor.
pub const MAX_RANK: usize = 8;

/// A shape with its row-major strides, in elements.
///
/// | shape     | strides   | elements |
/// |-----------|-----------|----------|
/// | `[]`      | `[]`      | 1        |
/// | `[6]`     | `[1]`     | 6        |
/// | `[2, 3]`  | `[3, 1]`  | 6        |
/// | `[2, 0]`  | `[1, 1]`  | 0        |
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    dims: [usize; MAX_RANK],
    strides: [usize; MAX_RANK],
    rank: usize,
    len: usize,
}

impl Shape {
    /// The shape without dimensions, which has one element.
    pub(crate) const SCALAR: Shape = Shape { dims: [0; MAX_RANK], strides: [0; MAX_RANK], rank: 0, len: 1 };

    /// The shape with these dimensions.
    ///
    /// # Errors
    /// [`Error::ShapeTooLarge`] for more than [`MAX_RANK`] dimensions or `isize::MAX` elements.
    pub fn new(dims: &[usize]) -> Result<Shape> {
        let too_large = || Error::ShapeTooLarge { shape: dims.to_vec() };
        if dims.len() > MAX_RANK {
            return Err(too_large());
        }
        let mut shape = Shape { dims: [0; MAX_RANK], strides: [0; MAX_RANK], rank: dims.len(), len: 0 };
        let mut stride = 1usize;
        for (axis, &dim) in dims.iter().enumerate().rev() {
            shape.dims[axis] = dim;
            shape.strides[axis] = stride;
            // A dimension of 0 counts as 1 here, which keeps the other strides meaningful.
            stride = stride.checked_mul(dim.max(1)).filter(|&s| isize::try_from(s).is_ok()).ok_or_else(too_large)?;
        }
        shape.len = if dims.contains(&0) { 0 } else { stride };
        Ok(shape)
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank]
    }

    /// The stride of each axis: the distance between neighbours along it, in elements.
    pub fn strides(&self) -> &[usize] {
        &self.strides[..self.rank]
    }

    /// The number of elements: the product of the dimensions.
    #[expect(clippy::len_without_is_empty, reason = "a shape is no container")]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The part `range` of the first axis: its shape, and the offset of its first element. A shape without axes counts as one element.
    pub(crate) fn cut(&self, range: impl std::ops::RangeBounds<usize>) -> Result<(Shape, usize)> {
        use std::ops::Bound;
        let rows = self.dims().first().copied().unwrap_or(1);
        let start = match range.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match range.end_bound() {
            Bound::Included(&end) => end.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => rows,
        };
        if start > end || end > rows {
            return Err(Error::SliceOutOfRange { start, end, shape: self.dims().to_vec() });
        }
        let stride = self.strides().first().copied().unwrap_or(1);
        let mut part = *self;
        part.rank = self.rank.max(1);
        part.strides[0] = stride;
        part.dims[0] = end - start;
        part.len = self.len.checked_div(rows).map_or(0, |row| row * (end - start));
        // A shape with a zero dimension elsewhere has no elements to skip.
        let offset = if self.len == 0 { 0 } else { start * stride };
        Ok((part, offset))
    }
}

impl std::fmt::Debug for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.dims().fmt(f)
    }
}

/// A type that can be passed as a shape: `n`, `(m, n)`, `[m, n]`, `&[usize]`, a [`Shape`].
pub trait IntoShape {
    /// The shape.
    ///
    /// # Errors
    /// Those of [`Shape::new`].
    fn into_shape(self) -> Result<Shape>;
}

impl IntoShape for Shape {
    fn into_shape(self) -> Result<Shape> {
        Ok(self)
    }
}

impl IntoShape for usize {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&[self])
    }
}

impl IntoShape for (usize, usize) {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&[self.0, self.1])
    }
}

impl IntoShape for (usize, usize, usize) {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&[self.0, self.1, self.2])
    }
}

impl<const RANK: usize> IntoShape for [usize; RANK] {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(&self)
    }
}

impl IntoShape for &[usize] {
    fn into_shape(self) -> Result<Shape> {
        Shape::new(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_row_major() {
        for (dims, strides, len) in [
            (&[][..], &[][..], 1),
            (&[6], &[1], 6),
            (&[2, 3], &[3, 1], 6),
            (&[2, 3, 4], &[12, 4, 1], 24),
            (&[2, 0], &[1, 1], 0),
            (&[0, 5], &[5, 1], 0),
        ] {
            let shape = Shape::new(dims).unwrap();
            assert_eq!((shape.dims(), shape.strides(), shape.len()), (dims, strides, len));
        }
    }

    #[test]
    fn a_shape_beyond_memory_or_rank_is_an_error() {
        assert!(matches!(Shape::new(&[usize::MAX, 2]), Err(Error::ShapeTooLarge { .. })));
        assert!(matches!(Shape::new(&[1; MAX_RANK + 1]), Err(Error::ShapeTooLarge { .. })));
        assert_eq!(Shape::new(&[1; MAX_RANK]).unwrap().len(), 1);
    }

    #[test]
    fn a_cut_takes_rows() {
        let shape = Shape::new(&[4, 3]).unwrap();
        let (part, offset) = shape.cut(1..3).unwrap();
        assert_eq!((part.dims(), part.strides(), part.len(), offset), (&[2, 3][..], &[3, 1][..], 6, 3));
        let (part, offset) = shape.cut(..=0).unwrap();
        assert_eq!((part.len(), offset), (3, 0));
        assert_eq!(shape.cut(4..).unwrap().0.len(), 0);
        let reversed = std::ops::Range { start: 3, end: 2 };
        for bad in [shape.cut(3..5), shape.cut(reversed)] {
            assert!(matches!(bad, Err(Error::SliceOutOfRange { .. })));
        }
    }

    #[test]
    fn a_cut_of_no_elements_starts_inside() {
        let (part, offset) = Shape::new(&[4, 0]).unwrap().cut(2..4).unwrap();
        assert_eq!((part.dims(), part.len(), offset), (&[2, 0][..], 0, 0));
        let (part, _) = Shape::new(&[]).unwrap().cut(..).unwrap();
        assert_eq!((part.dims(), part.len()), (&[1][..], 1));
    }
}
