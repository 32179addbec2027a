//! Grids: how many programs a launch runs along each axis.

use crate::{Error, Result};

/// The most programs along each axis, as CUDA has it. The CPU keeps to the same limits.
const LIMITS: [i64; 3] = [i32::MAX as i64, 65_535, 65_535];

/// The number of blocks of size `b` that cover `a` elements: `a / b`, rounded up.
///
/// There is no way to cover something with blocks of nothing: `cdiv(a, 0)` is `usize::MAX`, which a launch refuses
/// as a grid that is too large, rather than a panic. `cdiv(0, b)` is 0 for every `b`.
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

/// The programs of a launch along its three axes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid([i64; 3]);

impl Grid {
    /// The grid as the hardware counts it.
    #[inline]
    pub(crate) fn check(self, kernel: &'static str) -> Result<[u32; 3]> {
        let fits = |axis: usize| (0..=LIMITS[axis]).contains(&self.0[axis]);
        match (0..3).find(|axis| !fits(*axis)) {
            None => Ok(self.0.map(|programs| programs as u32)),
            Some(axis) => Err(Error::GridTooLarge { kernel, axis, programs: self.0[axis], limit: LIMITS[axis] }),
        }
    }
}

/// The CTAs of a grid of programs, of which each is a cluster along the first axis.
#[inline]
pub(crate) fn of_ctas(grid: [u32; 3], num_ctas: u32, kernel: &'static str) -> Result<[u32; 3]> {
    if num_ctas == 1 {
        return Ok(grid);
    }
    let [x, y, z] = grid.map(i64::from);
    Grid([x * i64::from(num_ctas), y, z]).check(kernel)
}

/// One number of a grid.
pub trait GridDim {
    /// The number of programs.
    fn programs(self) -> i64;
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

/// So that a bare literal is a grid. A negative one is an error of the launch.
impl GridDim for i32 {
    fn programs(self) -> i64 {
        self.into()
    }
}

/// What can be written where a grid is asked for: `n`, `(a, b)`, `(a, b, c)`, `[a]`, `[a, b]`, `[a, b, c]`, of
/// `usize`, `u32` or literals.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a grid",
    note = "a grid is a number, or a tuple or array of up to three; numbers are `usize`, `u32` or literals"
)]
pub trait IntoGrid {
    /// The grid meant; axes that are not named have one program.
    fn into_grid(self) -> Grid;
}

impl IntoGrid for Grid {
    fn into_grid(self) -> Grid {
        self
    }
}

impl<A: GridDim> IntoGrid for A {
    fn into_grid(self) -> Grid {
        Grid([self.programs(), 1, 1])
    }
}

impl<A: GridDim, B: GridDim> IntoGrid for (A, B) {
    fn into_grid(self) -> Grid {
        Grid([self.0.programs(), self.1.programs(), 1])
    }
}

impl<A: GridDim, B: GridDim, C: GridDim> IntoGrid for (A, B, C) {
    fn into_grid(self) -> Grid {
        Grid([self.0.programs(), self.1.programs(), self.2.programs()])
    }
}

impl<A: GridDim> IntoGrid for [A; 1] {
    fn into_grid(self) -> Grid {
        let [a] = self;
        a.into_grid()
    }
}

impl<A: GridDim> IntoGrid for [A; 2] {
    fn into_grid(self) -> Grid {
        let [a, b] = self;
        (a, b).into_grid()
    }
}

impl<A: GridDim> IntoGrid for [A; 3] {
    fn into_grid(self) -> Grid {
        let [a, b, c] = self;
        (a, b, c).into_grid()
    }
}

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
