//! The programs of a worker, and their order.

use crate::dtype::Dtype;
use crate::ir::{BinaryOp, Builder, CompareOp, Function, Op, Region, Type, Value};
use crate::location::Loc;

/// The workers of a large GPU, for the choice of the order.
const WORKERS: u32 = 132;

/// The numbers of programs of the grid. A launch of this version has fewer than 2^31 programs, so they are counted in 32 bits, and a quotient is the upper half of a
/// product.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    /// Along each axis, as `i64`.
    pub(super) programs: [Value; 3],
    /// In all.
    pub(super) total: Value,
    /// Along the first axis.
    first: Value,
    /// In a plane of the first two axes.
    plane: Divisor,
    /// In a group of `group` along the first axis.
    in_group: Divisor,
    group: u32,
    /// The reciprocal of those along the first axis in the last group, if it has fewer.
    rest: Value,
}

/// A divisor that is the same in all programs.
#[derive(Clone, Copy)]
struct Divisor {
    number: Value,
    /// `2^62 / number + 1`, rounded down. The quotient of `n` below 2^31 is `n * reciprocal / 2^62`: the product exceeds `n / number * 2^62` by at most `n`, which is less
    /// than `2^62 / number`.
    reciprocal: Value,
}

/// The bits of a fraction in a reciprocal. The upper half of a product of 64-bit numbers has two less.
const FRACTION_BITS: u32 = 62;

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
    pub(super) fn append(func: &mut Function, head: Region, group: u32) -> Grid {
        let compute = func.add_region();
        let mut b = Builder::new(func, compute, Loc::NONE);
        let programs = [0, 1, 2].map(|axis| b.op(Op::NumPrograms { axis }, &[]));
        let height = b.index(group.into());
        let plane = b.binary(BinaryOp::Mul, programs[0], programs[1]);
        let total = b.binary(BinaryOp::Mul, plane, programs[2]);
        let in_group = b.binary(BinaryOp::Mul, programs[1], height);
        let rest = b.binary(BinaryOp::Rem, programs[0], height);
        let narrow = [total, programs[0], plane, in_group].map(|count| b.cast(count, Dtype::I32));
        let reciprocals = [plane, in_group, rest].map(|divisor| reciprocal(&mut b, divisor));
        b.yield_values(programs.into_iter().chain(narrow).chain(reciprocals).collect());
        let types = [&[Dtype::I64; 3][..], &[Dtype::I32; 4], &[Dtype::I64; 3]].concat().into_iter().map(Type::scalar);
        let launch_value = func.append(head, Op::LaunchValue { compute }, types, Loc::NONE);
        let results = &func.inst(launch_value).results;
        Grid {
            programs: [results[0], results[1], results[2]],
            total: results[3],
            first: results[4],
            plane: Divisor { number: results[5], reciprocal: results[7] },
            in_group: Divisor { number: results[6], reciprocal: results[8] },
            group,
            rest: results[9],
        }
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
    pub(super) fn ids(self, b: &mut Builder<'_>, number: Value) -> [Value; 3] {
        let (third, in_plane) = self.plane.divide(b, number);
        let (group, of_group) = self.in_group.divide(b, in_plane);
        let height = b.int_like(self.group.into(), number);
        let first = b.binary(BinaryOp::Mul, group, height);
        let left = b.binary(BinaryOp::Sub, self.first, first);
        let rows = b.binary(BinaryOp::Min, left, height);
        let is_last = b.compare(CompareOp::Lt, left, height);
        let in_last = quotient(b, of_group, self.rest);
        let bits = b.int_like(self.group.trailing_zeros().into(), number);
        let in_others = b.binary(BinaryOp::Shr, of_group, bits);
        let second = b.select(is_last, in_last, in_others);
        let row = b.binary(BinaryOp::Mul, second, rows);
        let row = b.binary(BinaryOp::Sub, of_group, row);
        let first = b.binary(BinaryOp::Add, first, row);
        [first, second, third].map(|id| b.cast(id, Dtype::I64))
    }
}

impl Divisor {
    /// Appends a quotient and its remainder.
    fn divide(self, b: &mut Builder<'_>, number: Value) -> (Value, Value) {
        let quotient = quotient(b, number, self.reciprocal);
        let whole = b.binary(BinaryOp::Mul, quotient, self.number);
        (quotient, b.binary(BinaryOp::Sub, number, whole))
    }
}

/// Appends a reciprocal: that of 1 if the divisor is 0.
fn reciprocal(b: &mut Builder<'_>, divisor: Value) -> Value {
    let (one, unit) = (b.index(1), b.index(1 << FRACTION_BITS));
    let divisor = b.binary(BinaryOp::Max, divisor, one);
    let quotient = b.binary(BinaryOp::Div, unit, divisor);
    b.binary(BinaryOp::Add, quotient, one)
}

/// Appends the quotient of a number by the divisor with this reciprocal.
fn quotient(b: &mut Builder<'_>, number: Value, reciprocal: Value) -> Value {
    let wide = b.cast(number, Dtype::I64);
    let shift = b.index((u64::BITS - FRACTION_BITS).into());
    let scaled = b.binary(BinaryOp::Shl, wide, shift);
    let quotient = b.binary(BinaryOp::MulHigh, scaled, reciprocal);
    b.cast(quotient, Dtype::I32)
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
