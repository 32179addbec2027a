//! The programs of a worker, and their order.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Op, Region, Type, Value};
use crate::location::Loc;

/// The workers of a large GPU, for the choice of the order.
const WORKERS: u32 = 132;

/// The numbers of programs of the grid. A launch of this version has fewer than 2^31 programs, so they are counted in 32 bits, in which a division is fast.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    /// Along each axis, as `i64`.
    pub(super) programs: [Value; 3],
    /// Along each axis.
    narrow: [Value; 3],
    /// In a plane of the first two axes.
    plane: Value,
    /// In all.
    pub(super) total: Value,
}

/// The most programs of a launch.
const MOST_PROGRAMS: i128 = (1 << 31) - 1;

/// Appends a test: may the programs be counted in 32 bits?
pub(super) fn are_few(b: &mut Builder<'_>) -> Value {
    let programs = [0, 1, 2].map(|axis| b.op(Op::NumPrograms { axis }, &[]));
    // Each is below 2^31, and the last two are below 2^16.
    let across = b.binary(BinaryOp::Mul, programs[1], programs[2]);
    let most = b.index(MOST_PROGRAMS);
    let most = b.binary(BinaryOp::Div, most, across);
    b.compare(CompareOp::Le, programs[0], most)
}

impl Grid {
    /// Appends the numbers of programs, which the host states: the hardware only knows how many workers there are.
    pub(super) fn append(func: &mut Function, head: Region) -> Grid {
        let compute = func.add_region();
        let mut b = Builder::new(func, compute, Loc::NONE);
        let programs = [0, 1, 2].map(|axis| b.op(Op::NumPrograms { axis }, &[]));
        let narrow = programs.map(|count| b.cast(count, Dtype::I32));
        let plane = b.binary(BinaryOp::Mul, narrow[0], narrow[1]);
        let total = b.binary(BinaryOp::Mul, plane, narrow[2]);
        b.yield_values(programs.into_iter().chain(narrow).chain([plane, total]).collect());
        let types = [[Dtype::I64; 3], [Dtype::I32; 3]].concat().into_iter().chain([Dtype::I32; 2]).map(Type::scalar);
        let launch_value = func.append(head, Op::LaunchValue { compute }, types, Loc::NONE);
        let results = &func.inst(launch_value).results;
        let three = |first: usize| [results[first], results[first + 1], results[first + 2]];
        Grid { programs: three(0), narrow: three(3), plane: results[6], total: results[7] }
    }

    /// Appends the ids of a program along each axis. Programs are numbered in groups of `group` along the first axis: within a group, ids along the first axis change
    /// first, and then those along the second one.
    ///
    /// ```text
    /// group = 2      second axis 0    1    2
    /// first axis 0               0    2    4
    /// 1                          1    3    5
    /// 2                          6    7    8       the last group has one row
    /// ```
    pub(super) fn ids(self, b: &mut Builder<'_>, number: Value, group: u32) -> [Value; 3] {
        let in_plane = b.binary(BinaryOp::Rem, number, self.plane);
        let third = b.binary(BinaryOp::Div, number, self.plane);
        let most = b.int_like(group.into(), number);
        let in_group = b.binary(BinaryOp::Mul, self.narrow[1], most);
        let first = b.binary(BinaryOp::Div, in_plane, in_group);
        let of_group = b.binary(BinaryOp::Mul, first, in_group);
        let of_group = b.binary(BinaryOp::Sub, in_plane, of_group);
        let first = b.binary(BinaryOp::Mul, first, most);
        let left = b.binary(BinaryOp::Sub, self.narrow[0], first);
        let rows = b.binary(BinaryOp::Min, left, most);
        let second = b.binary(BinaryOp::Div, of_group, rows);
        let row = b.binary(BinaryOp::Mul, second, rows);
        let row = b.binary(BinaryOp::Sub, of_group, row);
        let first = b.binary(BinaryOp::Add, first, row);
        [first, second, third].map(|id| b.cast(id, Dtype::I64))
    }
}

/// The rows of a group for which the workers read the fewest different elements: each reads a block of its row and one of its column.
pub(super) fn group([rows, columns]: [u32; 2]) -> u32 {
    let read = |group: &u32| group * rows + WORKERS.div_ceil(*group) * columns;
    [4, 8, 16, 32].into_iter().min_by_key(read).unwrap_or(8)
}

#[cfg(test)]
mod tests {
    use super::group;

    #[test]
    fn groups_are_about_as_high_as_wide() {
        assert_eq!([[128, 256], [128, 128], [64, 256], [256, 64]].map(group), [16, 8, 16, 4].map(|rows| rows));
    }
}
