//! Grids: the number of programs of a launch along each axis.

use crate::{Dim, Error, Result};

/// The maximum number of programs along each axis in CUDA. The CPU has the same limits.
const LIMITS: [i64; 3] = [i32::MAX as i64, 65_535, 65_535];

/// The number of blocks of size `b` that cover `a` elements: `a / b`, rounded up.
///
/// `cdiv(0, b)` is 0 for every `b`. Blocks of size 0 cover nothing, so `cdiv(a, 0)` is `usize::MAX` for every other `a`. It does not panic; the
/// launch reports a grid that is too large.
///
/// ```
/// # use kernel_runtime::cdiv;
/// assert_eq!((cdiv(1000, 256), cdiv(1024, 256), cdiv(0, 256)), (4, 4, 0));
/// ```
pub const fn cdiv(a: usize, b: usize) -> usize {
    match (a, b) {
        (0, _) => 0,
        (_, 0) => usize::MAX,
        _ => a.div_ceil(b),
    }
}

/// The number of programs of a launch along each of the three axes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid([i64; 3]);

impl Grid {
    /// A grid of these numbers.
    pub(crate) fn of_numbers(programs: [i64; 3]) -> Grid {
        Grid(programs)
    }

    /// The numbers as dims, with other dims in place of some.
    pub(crate) fn with_dims(self, dims: [Option<Dim>; 3]) -> [Dim; 3] {
        let [x, y, z] = dims;
        let [a, b, c] = self.0;
        [(x, a), (y, b), (z, c)].map(|(dim, programs)| dim.unwrap_or_else(|| Dim::from(programs)))
    }

    /// The grid in the hardware's types, or an error if it is too large.
    #[inline]
    pub(crate) fn check(self, kernel: &'static str) -> Result<[u32; 3]> {
        let fits = |axis: usize| (0..=LIMITS[axis]).contains(&self.0[axis]);
        match (0..3).find(|axis| !fits(*axis)) {
            None => Ok(self.0.map(|programs| programs as u32)),
            Some(axis) => Err(Error::GridTooLarge { kernel, axis, programs: self.0[axis], limit: LIMITS[axis] }),
        }
    }
}

/// The number of CTAs of a grid of programs. Each program is a cluster of `num_ctas` CTAs along the first axis.
#[inline]
pub(crate) fn of_ctas(grid: [u32; 3], num_ctas: u32, kernel: &'static str) -> Result<[u32; 3]> {
    if num_ctas == 1 {
        return Ok(grid);
    }
    let [x, y, z] = grid.map(i64::from);
    Grid([x * i64::from(num_ctas), y, z]).check(kernel)
}

/// One number in a grid.
pub trait GridDim {
    /// The number of programs; -1 for a [`Dim`] without a value.
    fn programs(self) -> i64;

    /// The number as a dim, if it has no value yet. Only a recorded launch can have such a grid.
    #[doc(hidden)]
    fn unknown(&self) -> Option<Dim> {
        None
    }

    /// Returns whether the number has no value yet.
    #[doc(hidden)]
    #[inline]
    fn is_unknown(&self) -> bool {
        false
    }
}

impl GridDim for Dim {
    fn programs(self) -> i64 {
        self.known().unwrap_or(-1)
    }

    fn unknown(&self) -> Option<Dim> {
        if self.known().is_some() { None } else { Some(self.clone()) }
    }

    fn is_unknown(&self) -> bool {
        self.known().is_none()
    }
}

impl GridDim for &Dim {
    fn programs(self) -> i64 {
        self.known().unwrap_or(-1)
    }

    fn unknown(&self) -> Option<Dim> {
        GridDim::unknown(*self)
    }

    fn is_unknown(&self) -> bool {
        self.known().is_none()
    }
}

impl GridDim for usize {
    fn programs(self) -> i64 {
        i64::try_from(self).unwrap_or(i64::MAX)
    }
}

impl GridDim for u32 {
    fn programs(self) -> i64 {
        self.into()
    }
}

/// Allows a bare literal as a grid. A negative number is an error of the launch.
impl GridDim for i32 {
    fn programs(self) -> i64 {
        self.into()
    }
}

/// A type that can be passed as a grid: `n`, `(a, b)`, `(a, b, c)`, `[a]`, `[a, b]`, `[a, b, c]`, of `usize`, `u32`, [`Dim`] or literals.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a grid",
    note = "a grid is a number, or a tuple or array of up to three; numbers are `usize`, `u32` or literals",
    note = "a closure is the grid of a kernel with `#[autotune]` or heuristics only"
)]
pub trait IntoGrid {
    /// The grid. Axes that are not given have one program.
    fn into_grid(self) -> Grid;

    /// For each axis, the number of programs as a dim if it has no value yet.
    #[doc(hidden)]
    fn unknown(&self) -> [Option<Dim>; 3] {
        [const { None }; 3]
    }

    /// Returns whether a number of programs has no value yet.
    #[doc(hidden)]
    #[inline]
    fn is_unknown(&self) -> bool {
        false
    }
}

impl IntoGrid for Grid {
    fn into_grid(self) -> Grid {
        self
    }
}

#[diagnostic::do_not_recommend]
impl<A: GridDim> IntoGrid for A {
    fn into_grid(self) -> Grid {
        Grid([self.programs(), 1, 1])
    }

    fn unknown(&self) -> [Option<Dim>; 3] {
        [GridDim::unknown(self), None, None]
    }

    #[inline]
    fn is_unknown(&self) -> bool {
        GridDim::is_unknown(self)
    }
}

impl<A: GridDim, B: GridDim> IntoGrid for (A, B) {
    fn into_grid(self) -> Grid {
        Grid([self.0.programs(), self.1.programs(), 1])
    }

    fn unknown(&self) -> [Option<Dim>; 3] {
        [GridDim::unknown(&self.0), GridDim::unknown(&self.1), None]
    }

    #[inline]
    fn is_unknown(&self) -> bool {
        GridDim::is_unknown(&self.0) || GridDim::is_unknown(&self.1)
    }
}

impl<A: GridDim, B: GridDim, C: GridDim> IntoGrid for (A, B, C) {
    fn into_grid(self) -> Grid {
        Grid([self.0.programs(), self.1.programs(), self.2.programs()])
    }

    fn unknown(&self) -> [Option<Dim>; 3] {
        [GridDim::unknown(&self.0), GridDim::unknown(&self.1), GridDim::unknown(&self.2)]
    }

    #[inline]
    fn is_unknown(&self) -> bool {
        GridDim::is_unknown(&self.0) || GridDim::is_unknown(&self.1) || GridDim::is_unknown(&self.2)
    }
}

impl<A: GridDim> IntoGrid for [A; 1] {
    fn into_grid(self) -> Grid {
        let [a] = self;
        a.into_grid()
    }

    fn unknown(&self) -> [Option<Dim>; 3] {
        let [a] = self;
        [GridDim::unknown(a), None, None]
    }

    #[inline]
    fn is_unknown(&self) -> bool {
        self.iter().any(GridDim::is_unknown)
    }
}

impl<A: GridDim> IntoGrid for [A; 2] {
    fn into_grid(self) -> Grid {
        let [a, b] = self;
        (a, b).into_grid()
    }

    fn unknown(&self) -> [Option<Dim>; 3] {
        let [a, b] = self;
        [GridDim::unknown(a), GridDim::unknown(b), None]
    }

    #[inline]
    fn is_unknown(&self) -> bool {
        self.iter().any(GridDim::is_unknown)
    }
}

impl<A: GridDim> IntoGrid for [A; 3] {
    fn into_grid(self) -> Grid {
        let [a, b, c] = self;
        (a, b, c).into_grid()
    }

    fn unknown(&self) -> [Option<Dim>; 3] {
        self.each_ref().map(GridDim::unknown)
    }

    #[inline]
    fn is_unknown(&self) -> bool {
        self.iter().any(GridDim::is_unknown)
    }
}

/// The grid of a launch that may run: [`Launch::grid`](crate::Launch::grid) has set it. The method `launch` has this bound, and not its `impl`
/// block, so that a launch without a grid is an error with this message.
#[diagnostic::on_unimplemented(
    message = "this launch has no grid",
    label = "call `.grid(..)` before it is launched",
    note = "the grid is the number of programs: `.grid(cdiv(n, BLOCK_SIZE)).launch()?`"
)]
pub trait HasGrid {
    /// The grid.
    fn chosen(self) -> Grid;
}

#[diagnostic::do_not_recommend]
impl HasGrid for Grid {
    fn chosen(self) -> Grid {
        self
    }
}

/// As [`HasGrid`], for a kernel with configurations `C`.
#[diagnostic::on_unimplemented(
    message = "this launch has no grid that is a function of the configuration",
    label = "call `.grid(|config| ..)` before it is launched",
    note = "the grid is the number of programs: `.grid(|config| cdiv(n, config.BLOCK_SIZE)).launch()?`"
)]
pub trait HasGridOf<C> {
    /// The grid for a configuration.
    fn of(&self, config: C) -> Grid;

    /// The same as dims.
    #[doc(hidden)]
    fn dims(&self, config: C) -> [Dim; 3];
}

#[diagnostic::do_not_recommend]
impl<C, F: Fn(C) -> G, G: IntoGrid> HasGridOf<C> for F {
    #[inline]
    fn of(&self, config: C) -> Grid {
        self(config).into_grid()
    }

    fn dims(&self, config: C) -> [Dim; 3] {
        let grid = self(config);
        let unknown = grid.unknown();
        grid.into_grid().with_dims(unknown)
    }
}

/// A grid as a function of the configuration. The supertrait gives the closure of a call the type of its parameter; this trait gives the error
/// for anything else a message.
#[diagnostic::on_unimplemented(
    message = "the grid of an autotuned kernel, or of one with heuristics, is a closure, not `{Self}`",
    label = "expected a closure that takes the configuration",
    note = "write `.grid(|config| cdiv(n, config.BLOCK_SIZE))`; the same grid for every configuration is `.grid(|_| rows)`"
)]
pub trait GridRule<C, G>: Fn(C) -> G {}

#[diagnostic::do_not_recommend]
impl<C, G, F: Fn(C) -> G> GridRule<C, G> for F {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_written_in_many_ways() {
        for grid in [Grid([7, 1, 1]), 7.into_grid(), 7usize.into_grid(), 7u32.into_grid(), [7].into_grid()] {
            assert_eq!(grid.check("k").unwrap(), [7, 1, 1]);
        }
        assert_eq!((cdiv(9, 2), 3).into_grid().check("k").unwrap(), [5, 3, 1]);
        assert_eq!([1usize, 2, 3].into_grid(), (1, 2u32, 3usize).into_grid());
    }

    #[test]
    fn a_grid_beyond_the_hardware_names_its_axis() {
        assert!(i32::MAX.into_grid().check("k").is_ok());
        for (grid, bad_axis) in [
            ((1usize << 31).into_grid(), 0),
            ((-1).into_grid(), 0),
            (cdiv(4, 0).into_grid(), 0),
            ((1, 65_536).into_grid(), 1),
            ((1, 1, 65_536).into_grid(), 2),
        ] {
            match grid.check("k") {
                Err(Error::GridTooLarge { axis, .. }) => assert_eq!(axis, bad_axis),
                other => panic!("{other:?}"),
            }
        }
    }
}
