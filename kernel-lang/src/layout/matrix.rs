//! Linear algebra over GF(2): vectors are the bits of a `u64`, addition is `^`.
//!
//! A [`Matrix`] is a linear map, stored as its columns. Applying the map is the xor of the columns whose input bit is set:
//!
//! ```text
//! columns [1, 3]   0b00 -> 0   0b01 -> 1   0b10 -> 3   0b11 -> 1 ^ 3 = 2
//! ```
//!
//! A [`Span`] is a subspace to which vectors are added one at a time. It tests membership and writes a vector as a sum of the added
//! vectors.

/// A linear map over GF(2), from at most 64 bits to at most 64 bits, stored as the images of the input bits.
///
/// ```
/// use kernel_lang::layout::Matrix;
/// let gray = Matrix::new(vec![1, 3, 6]); // binary to Gray code: bit i flips bits i and i - 1
/// assert_eq!(gray.apply(0b101), 0b111);
/// let back = gray.inverse(3).unwrap();
/// assert_eq!(back.apply(gray.apply(0b110)), 0b110);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Matrix {
    columns: Vec<u64>,
}

impl Matrix {
    /// The map from input bit `i` to `columns[i]`.
    ///
    /// # Panics
    /// With more than 64 columns.
    pub fn new(columns: Vec<u64>) -> Self {
        assert!(columns.len() <= 64, "a matrix has at most 64 columns");
        Self { columns }
    }

    /// The identity on `bits` bits.
    ///
    /// # Panics
    /// With more than 64 bits.
    pub fn identity(bits: usize) -> Self {
        Self::new((0..bits).map(|bit| 1 << bit).collect())
    }

    /// The images of the input bits, lowest first.
    pub fn columns(&self) -> &[u64] {
        &self.columns
    }

    /// The image of `input`; bits beyond the columns count as zero.
    pub fn apply(&self, input: u64) -> u64 {
        combine(&self.columns, input)
    }

    /// `self` after `inner`: `x -> self(inner(x))`.
    pub fn compose(&self, inner: &Matrix) -> Matrix {
        Self { columns: inner.columns.iter().map(|&column| self.apply(column)).collect() }
    }

    /// The dimension of the image.
    pub fn rank(&self) -> usize {
        Span::of(&self.columns).rank()
    }

    /// A basis of the inputs that the map sends to zero. The basis is empty exactly if the map is injective.
    pub fn kernel(&self) -> Vec<u64> {
        let mut span = Span::default();
        let mut kernel = Vec::new();
        for (bit, &column) in self.columns.iter().enumerate() {
            match span.solve(column) {
                Some(inputs) => kernel.push(inputs | 1 << bit),
                None => span.insert(column, 1 << bit),
            }
        }
        kernel
    }

    /// The inverse of a bijection onto `bits` bits, `None` for any other map.
    pub fn inverse(&self, bits: usize) -> Option<Matrix> {
        if self.columns.len() == bits { self.pseudo_inverse(bits) } else { None }
    }

    /// A right inverse of a surjection onto `bits` bits: `self(result(y)) = y`. Of several preimages the result is the one that uses only a
    /// maximal independent set of columns, chosen from the lowest. `None` if some `y` has no preimage.
    pub fn pseudo_inverse(&self, bits: usize) -> Option<Matrix> {
        let span = Span::of(&self.columns);
        let columns = (0..bits).map(|bit| span.solve(1 << bit)).collect::<Option<_>>()?;
        Some(Self { columns })
    }
}

/// The sum of the `vectors` whose bit is set in `mask`.
pub(crate) fn combine(vectors: &[u64], mask: u64) -> u64 {
    vectors.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1).fold(0, |sum, (_, &vector)| sum ^ vector)
}

/// A subspace to which vectors are added one at a time. Each independent vector carries a tag. [`Span::solve`] returns the sum of the tags
/// of the vectors that add up to its argument, so the tag map is linear on the span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    /// Vector, the vector's highest bit alone, tag. No vector contains the highest bit of an earlier row.
    rows: Vec<(u64, u64, u64)>,
}

impl Span {
    /// The span of `vectors`; vector `i` has tag `1 << i`.
    pub(crate) fn of(vectors: &[u64]) -> Self {
        let mut span = Self::default();
        for (bit, &vector) in vectors.iter().enumerate() {
            span.insert(vector, 1 << bit);
        }
        span
    }

    pub(crate) fn rank(&self) -> usize {
        self.rows.len()
    }

    /// Adds `vector`. A vector that is already in the span is ignored together with its tag.
    pub(crate) fn insert(&mut self, vector: u64, tag: u64) {
        let (rest, tags) = self.reduce(vector);
        if rest != 0 {
            self.rows.push((rest, 1 << (63 - rest.leading_zeros()), tags ^ tag));
        }
    }

    /// Adds `vector` without a tag and returns whether the span grew.
    pub(crate) fn grow(&mut self, vector: u64) -> bool {
        let before = self.rank();
        self.insert(vector, 0);
        self.rank() > before
    }

    /// Adds `vectors` without tags.
    pub(crate) fn extend(&mut self, vectors: impl IntoIterator<Item = u64>) {
        for vector in vectors {
            self.insert(vector, 0);
        }
    }

    pub(crate) fn contains(&self, vector: u64) -> bool {
        self.reduce(vector).0 == 0
    }

    /// The sum of the tags of the inserted vectors that add up to `vector`; `None` if `vector` is not in the span.
    pub(crate) fn solve(&self, vector: u64) -> Option<u64> {
        let (rest, tags) = self.reduce(vector);
        (rest == 0).then_some(tags)
    }

    fn reduce(&self, vector: u64) -> (u64, u64) {
        self.rows.iter().fold(
            (vector, 0),
            |(rest, tags), &(row, lead, tag)| {
                if rest & lead != 0 { (rest ^ row, tags ^ tag) } else { (rest, tags) }
            },
        )
    }
}

/// A basis of span(`a`) ∩ span(`b`), each vector as a combination of `a`. Vectors of `a` that lie in span(`b`) come first and unchanged, in
/// the order of `a`, so that layouts whose bases are single bits give single bits.
pub(crate) fn intersection(a: &[u64], b: &[u64]) -> Vec<u64> {
    let inside = Span::of(b);
    let mut found = Span::default();
    let mut basis: Vec<u64> = a.iter().copied().filter(|&v| inside.contains(v) && found.grow(v)).collect();
    // The other vectors come from the kernel of [a | b]: equal sums from both sides.
    let both = Matrix::new(a.iter().chain(b).copied().collect());
    for equal in both.kernel() {
        let vector = combine(a, equal & ((1u64 << a.len()) - 1));
        if found.grow(vector) {
            basis.push(vector);
        }
    }
    basis
}
