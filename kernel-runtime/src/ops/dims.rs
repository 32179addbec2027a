//! The types that can be passed as the dims of a tensor.

use crate::Dim;

/// A type that can be passed as dims: an array or a vector of numbers or [`Dim`]s, such as `[&batch, &columns]` or `[8, 128]`.
pub trait IntoDims {
    /// The dims.
    fn into_dims(self) -> Vec<Dim>;
}

impl<D: Into<Dim>, const RANK: usize> IntoDims for [D; RANK] {
    fn into_dims(self) -> Vec<Dim> {
        self.into_iter().map(D::into).collect()
    }
}

impl<D: Into<Dim>> IntoDims for Vec<D> {
    fn into_dims(self) -> Vec<Dim> {
        self.into_iter().map(D::into).collect()
    }
}

impl IntoDims for &[Dim] {
    fn into_dims(self) -> Vec<Dim> {
        self.to_vec()
    }
}

impl IntoDims for &[usize] {
    fn into_dims(self) -> Vec<Dim> {
        self.iter().map(|extent| Dim::from(*extent)).collect()
    }
}
