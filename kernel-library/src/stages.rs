//! Reductions of rows and of columns in one launch, or in two where one has too few programs for the device.
//!
//! The first of two launches divides each row, or the rows of each matrix, into groups and reduces each group to a part. The second launch reduces the
//! parts. Parts of sums are `f32`, so that a sum is rounded once. No launch has atomics: the result is the same in every call on one device.

use std::ops::Range;

use galatea::prelude::*;

use crate::call::Call;
use crate::kernels;

/// When a reduction is divided into groups, and into how many.
struct Division {
    /// The programs for each multiprocessor that keep a device busy without a division.
    enough: usize,
    /// The programs for each multiprocessor with a division.
    programs: usize,
    /// The rows, or the elements of a row, that a program reduces at least.
    least: usize,
}

/// Division of long rows. A program has up to 16 warps, which load 8192 elements at once. The least number amortises the second launch.
const OF_ROWS: Division = Division { enough: 1, programs: 4, least: 16_384 };
/// Division of many rows, of which a program reduces some columns, with 4 or 8 warps.
const OF_COLUMNS: Division = Division { enough: 2, programs: 2, least: 256 };
/// The columns of the widest block of the kernels `column_sum` and `column_max`.
const COLUMNS_OF_A_BLOCK: usize = 128;
/// The groups of a block of the kernel `group_argmax`, which is compiled with this crate.
const GROUPS_AT_ONCE: usize = 1024;
/// The largest extent of a grid along its second and third axis.
const LONGEST_AXIS_OF_A_GRID: usize = 65_535;

impl Division {
    /// The number of groups; 1 for a single launch.
    ///
    /// `programs` is the number of programs without groups, and `extent` what each of them reduces: elements of a row, or rows. If these programs are
    /// fewer than `enough` for each multiprocessor, there are as many groups as give the device `self.programs` for each multiprocessor. A group has
    /// at least `least` of the extent.
    fn groups(&self, multiprocessors: usize, programs: usize, extent: usize) -> usize {
        if programs >= self.enough * multiprocessors {
            return 1;
        }
        cdiv(self.programs * multiprocessors, programs.max(1)).min(extent / self.least).max(1)
    }
}

/// The sums of rows in their own type.
pub(crate) fn sum_of_rows<T: Float>(
    call: &Call<'_>,
    x: TensorView<'_, T>,
    rows: usize,
    columns: usize,
    shape: &[usize],
) -> Result<Tensor<T>> {
    if x.is_empty() {
        return call.zeros(shape);
    }
    if OF_ROWS.groups(call.device().multiprocessors(), rows, columns) > 1 {
        return sum_of_blocks(call, x, rows, columns, shape);
    }
    let mut y = call.empty(shape)?;
    kernels::row_sum(x, &mut y, columns).grid(|_| rows).launch()?;
    Ok(y)
}

/// The sums of rows in any type.
pub(crate) fn sum_of_blocks<S: Float, T: Float>(
    call: &Call<'_>,
    x: TensorView<'_, S>,
    rows: usize,
    columns: usize,
    shape: &[usize],
) -> Result<Tensor<T>> {
    if x.is_empty() {
        return call.zeros(shape);
    }
    let mut y = call.empty(shape)?;
    let groups = OF_ROWS.groups(call.device().multiprocessors(), rows, columns);
    if groups == 1 {
        launch_block_sum(x, &mut y, rows, columns, 1)?;
        return Ok(y);
    }
    let mut parts = call.empty::<f32>(&[rows, groups])?;
    launch_block_sum(x, &mut parts, rows, columns, groups)?;
    launch_block_sum(parts.view(), &mut y, rows, groups, 1)?;
    Ok(y)
}

fn launch_block_sum<S: Float, T: Float>(x: TensorView<'_, S>, y: &mut Tensor<T>, rows: usize, columns: usize, groups: usize) -> Result<()> {
    launch_on_parts(rows, x, y, |x, y, rows| kernels::block_sum(x, y, columns).grid(|_| (groups, rows)).launch())
}

/// The largest elements of rows; `-inf` for rows without elements.
pub(crate) fn max_of_rows<T: Float>(
    call: &Call<'_>,
    x: TensorView<'_, T>,
    rows: usize,
    columns: usize,
    shape: &[usize],
) -> Result<Tensor<T>> {
    let mut y = call.empty(shape)?;
    if y.is_empty() {
        return Ok(y);
    }
    let groups = OF_ROWS.groups(call.device().multiprocessors(), rows, columns);
    if groups == 1 {
        kernels::row_max(x, &mut y, columns).grid(|_| rows).launch()?;
        return Ok(y);
    }
    let mut parts = call.empty::<T>(&[rows, groups])?;
    kernels::block_max(x, &mut parts, columns).grid(|_| (groups, rows)).launch()?;
    kernels::row_max(&parts, &mut y, groups).grid(|_| rows).launch()?;
    Ok(y)
}

/// The columns of the largest elements of rows that have elements.
pub(crate) fn argmax_of_rows<T: Float>(
    call: &Call<'_>,
    x: TensorView<'_, T>,
    rows: usize,
    columns: usize,
    shape: &[usize],
) -> Result<Tensor<i64>> {
    let mut y = call.empty(shape)?;
    if x.is_empty() {
        return Ok(y);
    }
    let groups = OF_ROWS.groups(call.device().multiprocessors(), rows, columns);
    if groups == 1 {
        kernels::row_argmax(x, &mut y, columns).grid(|_| rows).launch()?;
        return Ok(y);
    }
    let (mut values, mut indices) = (call.empty::<T>(&[rows, groups])?, call.empty::<i64>(&[rows, groups])?);
    kernels::block_argmax(x, &mut values, &mut indices, columns).grid(|_| (groups, rows)).launch()?;
    kernels::group_argmax::<T, GROUPS_AT_ONCE>(&values, &indices, &mut y, groups).grid(rows).launch()?;
    Ok(y)
}

/// A tensor as matrices, whose columns are reduced: `[matrices, rows, columns]`.
#[derive(Clone, Copy)]
pub(crate) struct Matrices {
    pub(crate) matrices: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
}

impl Matrices {
    fn groups(self, device: Device) -> usize {
        let programs = self.matrices.saturating_mul(cdiv(self.columns, COLUMNS_OF_A_BLOCK));
        OF_COLUMNS.groups(device.multiprocessors(), programs, self.rows)
    }

    /// The shape of the parts of so many groups.
    fn of_groups(self, groups: usize) -> [usize; 3] {
        [self.matrices, groups, self.columns]
    }
}

/// The sums of the columns of each matrix.
pub(crate) fn sum_of_columns<S: Float, T: Float>(
    call: &Call<'_>,
    x: TensorView<'_, S>,
    extents: Matrices,
    shape: &[usize],
) -> Result<Tensor<T>> {
    if x.is_empty() {
        return call.zeros(shape);
    }
    let mut y = call.empty(shape)?;
    let groups = extents.groups(call.device());
    if groups == 1 {
        launch_column_sum(x, &mut y, extents, 1)?;
        return Ok(y);
    }
    let mut parts = call.empty::<f32>(&extents.of_groups(groups))?;
    launch_column_sum(x, &mut parts, extents, groups)?;
    launch_column_sum(parts.view(), &mut y, Matrices { rows: groups, ..extents }, 1)?;
    Ok(y)
}

fn launch_column_sum<S: Float, T: Float>(x: TensorView<'_, S>, y: &mut Tensor<T>, extents: Matrices, groups: usize) -> Result<()> {
    let Matrices { matrices, rows, columns } = extents;
    launch_on_parts(matrices, x, y, |x, y, matrices| {
        kernels::column_sum(x, y, rows, columns).grid(|config| (cdiv(columns, config.BLOCK_SIZE), groups, matrices)).launch()
    })
}

/// The largest elements of the columns of each matrix; `-inf` for matrices without rows.
pub(crate) fn max_of_columns<T: Float>(call: &Call<'_>, x: TensorView<'_, T>, extents: Matrices, shape: &[usize]) -> Result<Tensor<T>> {
    let mut y = call.empty(shape)?;
    if y.is_empty() {
        return Ok(y);
    }
    let groups = extents.groups(call.device());
    if groups == 1 {
        launch_column_max(x, &mut y, extents, 1)?;
        return Ok(y);
    }
    let mut parts = call.empty::<T>(&extents.of_groups(groups))?;
    launch_column_max(x, &mut parts, extents, groups)?;
    launch_column_max(parts.view(), &mut y, Matrices { rows: groups, ..extents }, 1)?;
    Ok(y)
}

fn launch_column_max<T: Float>(x: TensorView<'_, T>, y: &mut Tensor<T>, extents: Matrices, groups: usize) -> Result<()> {
    let Matrices { matrices, rows, columns } = extents;
    launch_on_parts(matrices, x, y, |x, y, matrices| {
        kernels::column_max(x, y, rows, columns).grid(|config| (cdiv(columns, config.BLOCK_SIZE), groups, matrices)).launch()
    })
}

/// Launches on parts of the first axis, which has `count` elements, more than an axis of a grid may have.
fn launch_on_parts<S: Float, T: Float>(
    count: usize,
    x: TensorView<'_, S>,
    y: &mut Tensor<T>,
    launch: impl Fn(TensorView<'_, S>, &mut TensorViewMut<'_, T>, usize) -> Result<()>,
) -> Result<()> {
    let x = x.reshape([count, x.len() / count.max(1)])?;
    let len = y.len() / count.max(1);
    let mut y = y.view_mut().reshape([count, len])?;
    for range in ranges(count) {
        launch(x.slice(range.clone())?, &mut y.slice_mut(range.clone())?, range.len())?;
    }
    Ok(())
}

/// Ranges that are together `0..count`, none longer than an axis of a grid.
pub(crate) fn ranges(count: usize) -> impl Iterator<Item = Range<usize>> {
    (0..count).step_by(LONGEST_AXIS_OF_A_GRID).map(move |start| start..count.min(start + LONGEST_AXIS_OF_A_GRID))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The groups of rows on a device with 132 multiprocessors, at each threshold of the rule.
    #[test]
    fn groups_of_rows() {
        let groups = |rows, columns| OF_ROWS.groups(132, rows, columns);
        // Less than two groups of the least length are one group.
        assert_eq!([0, 1, 16_384, 32_767, 32_768, 49_151, 49_152].map(|columns| groups(1, columns)), [1, 1, 1, 1, 2, 2, 3]);
        // Long rows: four programs for each multiprocessor.
        assert_eq!([1, 4, 5, 66, 131, 132, 133].map(|rows| groups(rows, 10_000_000)), [528, 132, 106, 8, 5, 1, 1]);
        assert_eq!(groups(0, 10_000_000), 528, "no rows are no division by zero");
    }

    /// The groups of matrices with so many blocks of columns.
    #[test]
    fn groups_of_columns() {
        let groups = |blocks, rows| OF_COLUMNS.groups(132, blocks, rows);
        assert_eq!([0, 511, 512, 767, 768].map(|rows| groups(1, rows)), [1, 1, 2, 2, 3]);
        assert_eq!([1, 3, 131, 132, 133, 263, 264].map(|blocks| groups(blocks, 1 << 20)), [264, 88, 3, 2, 2, 2, 1]);
    }

    #[test]
    fn ranges_fit_an_axis_of_a_grid() {
        let ranges = |count| ranges(count).map(|range| (range.start, range.end)).collect::<Vec<_>>();
        assert_eq!(ranges(0), []);
        assert_eq!(ranges(65_535), [(0, 65_535)]);
        assert_eq!(ranges(131_071), [(0, 65_535), (65_535, 131_070), (131_070, 131_071)]);
    }

    /// Each part of the result belongs to the same part of the input.
    #[test]
    fn parts_of_more_than_an_axis_of_a_grid() {
        const COUNT: usize = 65_537;
        let device = Device::cpu();
        let host: Vec<f32> = (0..2 * COUNT).map(|i| i as f32).collect();
        let x = device.tensor(&host).unwrap();
        let mut y = device.zeros::<f32>([COUNT, 2]).unwrap();
        let counts = std::cell::RefCell::new(Vec::new());
        launch_on_parts(COUNT, x.view(), &mut y, |x, y, count| {
            counts.borrow_mut().push(count);
            y.copy_from(&x)
        })
        .unwrap();
        assert_eq!(counts.into_inner(), [65_535, 2]);
        assert!(y.to_vec().unwrap() == host, "the parts are in their order");
    }
}
