//! Values of a kernel that is being written, and the indices of tiles as the language says them.

use galatea::Dtype;

/// A variable in scope.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) name: String,
    pub(crate) dtype: Dtype,
    /// Empty for a scalar.
    pub(crate) shape: Vec<usize>,
    /// Of a float that is always a whole number: no magnitude is larger. Sums of such numbers are exact in any order while they stay below [`exact_below`].
    pub(crate) whole: Option<f64>,
}

impl Value {
    pub(crate) fn is_int(&self) -> bool {
        is_int(self.dtype)
    }

    /// A float that ops compute with: those of 8 bits are types of memory.
    pub(crate) fn is_float(&self) -> bool {
        is_float(self.dtype)
    }

    pub(crate) fn is_tile(&self) -> bool {
        !self.shape.is_empty()
    }

    /// The value in a type, and what is then known of it as a whole number.
    pub(crate) fn cast(&self, dtype: Dtype) -> (String, Option<f64>) {
        if self.dtype == dtype {
            return (self.name.clone(), self.whole);
        }
        let whole = if self.dtype == Dtype::Bool { Some(1.0) } else { self.whole };
        (format!("({} as {dtype})", self.name), whole.filter(|most| is_float(dtype) && *most <= exact_below(dtype)))
    }
}

pub(crate) fn is_int(dtype: Dtype) -> bool {
    dtype != Dtype::Bool && dtype.int_range().is_some()
}

pub(crate) fn is_float(dtype: Dtype) -> bool {
    dtype.is_float() && !dtype.is_float8()
}

/// Up to here a float has every whole number. Sums of halves are sums of `f32`, but their results are halves.
pub(crate) fn exact_below(dtype: Dtype) -> f64 {
    match dtype {
        Dtype::F16 => 2048.0,
        Dtype::Bf16 => 256.0,
        Dtype::F32 => 16_777_216.0,
        _ => 9_007_199_254_740_992.0,
    }
}

/// `[4, 16]`
pub(crate) fn list(shape: &[usize]) -> String {
    format!("{shape:?}")
}

/// The index along one axis of a tile: `arange(0, 16)[(None, ..)]`.
pub(crate) fn index(shape: &[usize], axis: usize) -> String {
    let index = format!("arange(0, {})", shape[axis]);
    if shape.len() == 1 {
        return index;
    }
    let axes: Vec<&str> = (0..shape.len()).map(|other| if other == axis { ".." } else { "None" }).collect();
    format!("{index}[({})]", axes.join(", "))
}

/// The number of each element, row by row.
pub(crate) fn flat(shape: &[usize]) -> String {
    let mut stride = 1;
    let mut terms = Vec::new();
    for axis in (0..shape.len()).rev() {
        let index = index(shape, axis);
        terms.push(if stride == 1 { index } else { format!("{index} * {stride}") });
        stride *= shape[axis];
    }
    if terms.is_empty() { "0".to_string() } else { terms.join(" + ") }
}

/// The shape that two shapes broadcast to, if they match.
pub(crate) fn broadcast(lhs: &[usize], rhs: &[usize]) -> Option<Vec<usize>> {
    match (lhs, rhs) {
        ([], other) | (other, []) => Some(other.to_vec()),
        _ if lhs.len() != rhs.len() => None,
        _ => lhs.iter().zip(rhs).map(|(&l, &r)| if l == r || r == 1 { Some(l) } else { (l == 1).then_some(r) }).collect(),
    }
}
