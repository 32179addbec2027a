//! Layout constructors: blocked layouts, and the layouts of sliced, reshaped and permuted tiles.

use super::{Layout, LayoutError, Level, check_shape, flatten};

impl Layout {
    /// Triton's blocked layout. Each thread holds `size_per_thread` adjacent elements along each axis; `threads_per_warp` threads are
    /// adjacent, and then `warps` warps. In each of the three lists, `order[0]` varies fastest. A larger tile repeats the pattern in more
    /// registers, again with `order[0]` first. Along an axis on which the tile is smaller, the bits beyond the extent hold copies.
    ///
    /// ```
    /// use kernel_lang::layout::Layout;
    /// let layout = Layout::blocked(&[128, 64], &[1, 8], &[4, 8], &[8, 1], &[1, 0]).unwrap();
    /// assert_eq!(layout.registers_per_thread(), 32); // 8 columns of 4 rows
    /// assert_eq!(layout.apply(8, 9, 1, 0), [1 + 4 + 32, 8]); // the second row; lane 9 = (1, 1); warp 1 = 4 rows down
    /// ```
    ///
    /// # Errors
    /// If the lists differ in length, an entry is not a power of two, `order` does not name each axis once, or the layout needs more bits
    /// than [`Level::most_bits`].
    pub fn blocked(
        shape: &[u32],
        size_per_thread: &[u32],
        threads_per_warp: &[u32],
        warps: &[u32],
        order: &[usize],
    ) -> Result<Layout, LayoutError> {
        Layout::nested(shape, &[(Level::Register, size_per_thread), (Level::Lane, threads_per_warp), (Level::Warp, warps)], order)
    }

    /// The layout in which the units of each level lie side by side, so many along each axis, in blocks of those of the levels before it. Within a
    /// level, they lie along the axes in the order of `order`. The rest of the tile is in further registers.
    ///
    /// ```
    /// use kernel_lang::layout::{Layout, Level};
    /// // Each of two warps has 64 neighbours, of which each lane holds every 32nd.
    /// let layout = Layout::nested(&[128], &[(Level::Lane, &[32]), (Level::Register, &[2]), (Level::Warp, &[2])], &[0]).unwrap();
    /// assert_eq!(layout.apply(1, 3, 1, 0), [32 + 3 + 64]);
    /// ```
    ///
    /// # Errors
    /// If the lists differ in length, an entry is not a power of two, or `order` is not a permutation of the axes.
    pub fn nested(shape: &[u32], levels: &[(Level, &[u32])], order: &[usize]) -> Result<Layout, LayoutError> {
        check_order(order, shape.len())?;
        let mut tiler = Tiler::new(shape)?;
        for &(level, counts) in levels {
            if counts.len() != shape.len() {
                return Err(LayoutError::Rank { expected: shape.len(), found: counts.len() });
            }
            for &axis in order {
                tiler.extend(level, axis, counts[axis])?;
            }
        }
        tiler.finish(order)
    }

    /// This layout in each CTA of a cluster, with `ctas` adjacent CTAs along each axis of a tile of `shape`. The first CTA has the elements
    /// with the lowest indices. Along an axis on which the tile is no larger than this layout's tile, the CTAs hold copies.
    ///
    /// ```
    /// use kernel_lang::layout::Layout;
    /// let layout = Layout::vectorised_1d(256, 4, 2).unwrap().over_blocks(&[1024], &[4]).unwrap();
    /// assert_eq!(layout.apply(1, 1, 1, 3), [1 + 4 + 128 + 3 * 256]);
    /// ```
    ///
    /// # Errors
    /// If the lists differ in length, an entry is not a power of two, or the CTAs do not cover the tile ([`LayoutError::ElementCount`]).
    pub fn over_blocks(&self, shape: &[u32], ctas: &[u32]) -> Result<Layout, LayoutError> {
        let mut tiler = Tiler::new(shape)?;
        for found in [self.rank(), ctas.len()] {
            if found != shape.len() {
                return Err(LayoutError::Rank { expected: shape.len(), found });
            }
        }
        for level in [Level::Register, Level::Lane, Level::Warp] {
            let bases = (0..self.bits(level)).filter_map(|bit| self.basis(level, bit));
            tiler.bases[level as usize] = bases.map(|basis| flatten(shape, &basis)).collect();
        }
        tiler.covered = self.shape().to_vec();
        for (axis, count) in ctas.iter().enumerate() {
            tiler.extend(Level::Block, axis, *count)?;
        }
        let covered = tiler.covered.iter().zip(shape).all(|(covered, extent)| covered >= extent);
        if !covered {
            return Err(LayoutError::ElementCount { from: self.elements(), to: shape.iter().map(|extent| u64::from(*extent)).product() });
        }
        Layout::from_flat(shape, tiler.bases)
    }

    /// The 1-d blocked layout for memory-bound kernels: `vector` consecutive elements per thread, 32 threads per warp.
    ///
    /// ```
    /// use kernel_lang::layout::Layout;
    /// assert_eq!(
    ///     Layout::vectorised_1d(1024, 4, 4).unwrap().to_string(),
    ///     "layout<[1024], register = [1, 2, 512], lane = [4, 8, 16, 32, 64], warp = [128, 256], block = []>"
    /// );
    /// ```
    ///
    /// # Errors
    /// If an argument is not a power of two, or the layout has too many registers or warps.
    pub fn vectorised_1d(extent: u32, vector: u32, num_warps: u32) -> Result<Layout, LayoutError> {
        Self::blocked(&[extent], &[vector], &[32], &[num_warps], &[0])
    }

    /// The identity: the bits of the row-major index, in order, are those of the register, then of the lane, the warp and the block. The
    /// counts must add up to the bits of the index.
    ///
    /// # Errors
    /// If the counts do not add up ([`LayoutError::ElementCount`]), or `shape` is not a valid shape.
    pub fn identity(shape: &[u32], bits: [usize; 4]) -> Result<Layout, LayoutError> {
        let from = check_shape(shape)?;
        let total = bits.iter().fold(0usize, |sum, &count| sum.saturating_add(count));
        if total != from.trailing_zeros() as usize {
            return Err(LayoutError::ElementCount { from, to: 1u64.checked_shl(total as u32).unwrap_or(0) });
        }
        let mut next = 0;
        Self::from_flat(
            shape,
            bits.map(|count| {
                next += count;
                (next - count..next).map(|bit| 1 << bit).collect()
            }),
        )
    }

    /// The layout of a reduction's result, which is Triton's slice layout: the tile loses `axis`, and each thread keeps its indices along
    /// the other axes. Registers that differed only along `axis` become copies, which [`Layout::without_register_copies`] removes.
    ///
    /// # Errors
    /// [`LayoutError::Axis`].
    pub fn slice(&self, axis: usize) -> Result<Layout, LayoutError> {
        self.check_axis(axis, self.rank())?;
        let mut shape = self.shape().to_vec();
        shape[axis] = 1;
        let bases = self.collapsed(&shape);
        shape.remove(axis);
        Self::from_flat(&shape, bases)
    }

    /// The layout with a new axis of extent 1 before `axis`.
    ///
    /// # Errors
    /// [`LayoutError::Axis`], if `axis` is beyond the rank.
    pub fn expand_dims(&self, axis: usize) -> Result<Layout, LayoutError> {
        self.check_axis(axis, self.rank() + 1)?;
        let mut shape = self.shape().to_vec();
        shape.insert(axis, 1);
        self.reshape(&shape)
    }

    /// The layout in which axis `i` is axis `order[i]` of `self`.
    ///
    /// # Errors
    /// [`LayoutError::NotAPermutation`].
    pub fn permute(&self, order: &[usize]) -> Result<Layout, LayoutError> {
        check_order(order, self.rank())?;
        let pick = |from: &[u32]| order.iter().map(|&axis| from[axis]).collect::<Vec<_>>();
        let shape = pick(self.shape());
        let bases =
            Level::ALL.map(|level| self.flat_bases(level).iter().map(|&flat| flatten(&shape, &pick(&self.unflatten(flat)))).collect());
        Self::from_flat(&shape, bases)
    }

    /// The layout of the transposed tile: the last two axes swapped.
    ///
    /// # Errors
    /// [`LayoutError::Rank`], if there are fewer than two axes.
    pub fn transpose(&self) -> Result<Layout, LayoutError> {
        let rank = self.rank();
        if rank < 2 {
            return Err(LayoutError::Rank { expected: 2, found: rank });
        }
        let mut order: Vec<usize> = (0..rank).collect();
        order.swap(rank - 2, rank - 1);
        self.permute(&order)
    }

    /// The layout of the same elements, in row-major order, under another shape. No basis changes.
    ///
    /// # Errors
    /// [`LayoutError::ElementCount`], or if `shape` is not a valid shape.
    pub fn reshape(&self, shape: &[u32]) -> Result<Layout, LayoutError> {
        let (from, to) = (self.elements(), check_shape(shape)?);
        if from != to {
            return Err(LayoutError::ElementCount { from, to });
        }
        Self::from_flat(shape, self.0.bases.clone())
    }

    /// The layout of the operand of a broadcast whose result has this layout, where the operand has `shape`. Along an axis of extent 1 in
    /// `shape` every index becomes zero. Registers that differed only along such axes become copies, as in [`Layout::slice`].
    ///
    /// ```
    /// use kernel_lang::layout::Layout;
    /// let whole: Layout = "layout<[4, 4], register = [(0, 1)], lane = [(0, 2), (1, 0), (2, 0)], warp = [], block = []>".parse().unwrap();
    /// let column = "layout<[4, 1], register = [(0, 0)], lane = [(0, 0), (1, 0), (2, 0)], warp = [], block = []>";
    /// assert_eq!(whole.unbroadcast(&[4, 1]).unwrap().to_string(), column);
    /// ```
    ///
    /// # Errors
    /// [`LayoutError::Rank`], or [`LayoutError::ShapesDiffer`] if an extent is neither 1 nor the extent of this layout.
    pub fn unbroadcast(&self, shape: &[u32]) -> Result<Layout, LayoutError> {
        if shape.len() != self.rank() {
            return Err(LayoutError::Rank { expected: self.rank(), found: shape.len() });
        }
        if shape.iter().zip(self.shape()).any(|(small, large)| *small != 1 && small != large) {
            return Err(LayoutError::ShapesDiffer);
        }
        Self::from_flat(shape, self.collapsed(shape))
    }

    /// The bases in a tile of `shape`, where every index is zero along an axis that has extent 1 there.
    fn collapsed(&self, shape: &[u32]) -> [Vec<u64>; 4] {
        let mut bases = self.0.bases.clone();
        for basis in bases.iter_mut().flatten() {
            let (mut left, mut below) = (std::mem::take(basis), 0);
            for (axis, extent) in self.shape().iter().enumerate().rev() {
                *basis |= (left & u64::from(shape[axis] - 1)) << below;
                left >>= extent.trailing_zeros();
                below += shape[axis].trailing_zeros();
            }
        }
        bases
    }

    fn check_axis(&self, axis: usize, end: usize) -> Result<(), LayoutError> {
        if axis < end { Ok(()) } else { Err(LayoutError::Axis { axis, rank: self.rank() }) }
    }
}

fn check_order(order: &[usize], rank: usize) -> Result<(), LayoutError> {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    if sorted.into_iter().eq(0..rank) { Ok(()) } else { Err(LayoutError::NotAPermutation) }
}

/// Assigns bits to the axes of a tile, innermost first.
pub(super) struct Tiler {
    shape: Vec<u32>,
    /// By axis: the number of elements that the bits so far span.
    covered: Vec<u32>,
    bases: [Vec<u64>; 4],
}

impl Tiler {
    pub(super) fn new(shape: &[u32]) -> Result<Self, LayoutError> {
        check_shape(shape)?;
        Ok(Self { shape: shape.to_vec(), covered: vec![1; shape.len()], bases: Default::default() })
    }

    /// Adds one bit that stands for steps along several axes, of which the first one is covered by it.
    pub(super) fn bits(&mut self, level: Level, steps: &[(usize, u32)]) {
        let mut index = vec![0; self.shape.len()];
        steps.iter().for_each(|&(axis, step)| index[axis] = step);
        if let Some(&(axis, step)) = steps.first() {
            self.covered[axis] = self.covered[axis].max(step.saturating_mul(2));
        }
        self.bases[level as usize].push(flatten(&self.shape, &index));
    }

    /// Adds one bit that stands for `step` elements along `axis`. A step beyond the extent makes a copy.
    pub(super) fn bit(&mut self, level: Level, axis: usize, step: u32) {
        let mut index = vec![0; self.shape.len()];
        if step < self.shape[axis] {
            index[axis] = step;
        }
        self.covered[axis] = self.covered[axis].max(step.saturating_mul(2));
        self.bases[level as usize].push(flatten(&self.shape, &index));
    }

    /// Repeats the pattern so far `count` times along `axis`.
    pub(super) fn extend(&mut self, level: Level, axis: usize, count: u32) -> Result<(), LayoutError> {
        if !count.is_power_of_two() {
            return Err(LayoutError::NotAPowerOfTwo { value: count });
        }
        for _ in 0..count.trailing_zeros() {
            self.bit(level, axis, self.covered[axis]);
        }
        Ok(())
    }

    /// Adds bits that only make copies.
    pub(super) fn copies(&mut self, level: Level, count: u32) -> Result<(), LayoutError> {
        if !count.is_power_of_two() {
            return Err(LayoutError::NotAPowerOfTwo { value: count });
        }
        self.bases[level as usize].extend((0..count.trailing_zeros()).map(|_| 0));
        Ok(())
    }

    /// Fills the tile with repetitions in registers; `order[0]` varies fastest.
    pub(super) fn finish(mut self, order: &[usize]) -> Result<Layout, LayoutError> {
        for &axis in order {
            while self.covered[axis] < self.shape[axis] {
                self.bit(Level::Register, axis, self.covered[axis]);
            }
        }
        Layout::from_flat(&self.shape, self.bases)
    }
}
