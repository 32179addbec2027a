//! Values of named dims.

use std::sync::Arc;

use super::sum::Symbol;
use super::{Dim, DimError, Repr};
use crate::{Error, Result};

/// Values of named dims, for [`Dim::value`].
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub struct DimValues(Vec<(Arc<Symbol>, i64)>);

impl DimValues {
    /// No values.
    pub fn new() -> DimValues {
        DimValues::default()
    }

    /// Removes all values, and keeps the memory for others.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The values, and one for `dim`, which is a named dim.
    ///
    /// ```
    /// # use kernel_runtime::{Dim, DimValues};
    /// let batch = Dim::new("batch", 1..=1024);
    /// let error = DimValues::new().with(&batch, 2000).unwrap_err().to_string();
    /// assert!(error.starts_with("dim `batch` is 2000, allowed 1..=1024 (declared in "), "{error}");
    /// ```
    ///
    /// # Errors
    /// [`Error::Dim`] if the value is not in the dim's range, if the dim has another value already, or if `dim` is an expression.
    pub fn with(mut self, dim: &Dim, value: i64) -> Result<DimValues> {
        self.set(dim, value)?;
        Ok(self)
    }

    /// Adds a value for `dim`, which is a named dim.
    ///
    /// # Errors
    /// As [`DimValues::with`].
    pub fn set(&mut self, dim: &Dim, value: i64) -> Result<()> {
        let symbol = match &dim.0 {
            Repr::Sum(sum) => sum.as_symbol(),
            Repr::Known(_) => None,
            Repr::Invalid(error) => return Err(Error::Dim((**error).clone())),
        };
        let symbol = symbol.ok_or_else(|| DimError::NotNamed { expression: dim.to_string() })?;
        let name = || symbol.name.to_string();
        if !(symbol.low..=symbol.high).contains(&value) {
            let range = (symbol.low, symbol.high);
            return Err(Error::Dim(DimError::OutOfRange { name: name(), value, range, declared: symbol.declared.clone() }));
        }
        match self.0.iter().find(|(known, _)| known.name == symbol.name) {
            Some((known, _)) if known != symbol => Err(Error::Dim(DimError::conflict(known, symbol))),
            Some((_, first)) if *first != value => Err(Error::Dim(DimError::TwoValues { name: name(), first: *first, second: value })),
            Some(_) => Ok(()),
            None => {
                self.0.push((symbol.clone(), value));
                Ok(())
            }
        }
    }

    pub(super) fn get(&self, symbol: &Symbol) -> Result<i64, DimError> {
        match self.0.iter().find(|(known, _)| known.name == symbol.name) {
            Some((known, value)) if **known == *symbol => Ok(*value),
            Some((known, _)) => Err(DimError::conflict(known, symbol)),
            None => Err(DimError::Unset { name: symbol.name.to_string(), declared: symbol.declared.clone() }),
        }
    }
}
