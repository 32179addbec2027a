//! Functions that are written in the language: the library's and the user's.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;

tests![programs_in_groups, tiles_in_groups];

#[kernel]
fn programs_in_groups_kernel(y: PtrMut<i64>, group: usize) {
    let (rows, columns) = (num_programs(0), num_programs(1));
    let (i, j) = (program_id(0), program_id(1));
    let (row, column) = swizzle2d(i, j, rows, columns, group);
    let at = 2 * (i * columns + j);
    store(y + at, row);
    store(y + at + 1, column);
}

/// The order that the documentation promises, written out: group by group, each column by column.
fn grouped(rows: usize, columns: usize, group: usize) -> Vec<(i64, i64)> {
    let mut order = Vec::new();
    for first in (0..rows).step_by(group) {
        for column in 0..columns {
            for row in first..rows.min(first + group) {
                order.push((row as i64, column as i64));
            }
        }
    }
    order
}

fn programs_in_groups(lab: &mut Lab) {
    for (rows, columns, group) in [(1, 1, 1), (7, 5, 3), (8, 3, 4), (5, 9, 8), (6, 6, 1)] {
        let mut y = lab.output::<i64>(2 * rows * columns);
        programs_in_groups_kernel(&mut y.slice(), group).grid((rows, columns)).launch().unwrap();
        let got: Vec<(i64, i64)> = y.read().chunks(2).map(|pair| (pair[0], pair[1])).collect();
        assert_eq!(got, grouped(rows, columns, group), "{rows} x {columns} in groups of {group}");
    }
}

#[kernel]
fn tiles_in_groups_kernel<const N: usize>(y: PtrMut<i32>, rows: i32, columns: i32, group: i32) {
    let index = arange(0, N);
    let (row, column) = swizzle2d(0, index as i32, rows, columns, group);
    let mask = index < rows * columns;
    store(y + 2 * index, row, mask = mask);
    store(y + 2 * index + 1, column, mask = mask);
}

fn tiles_in_groups(lab: &mut Lab) {
    for (rows, columns, group) in [(7i32, 9i32, 4i32), (3, 11, 2), (1, 64, 5)] {
        let mut y = lab.output::<i32>((2 * rows * columns) as usize);
        tiles_in_groups_kernel::<64>(&mut y.slice(), rows, columns, group).grid(1).launch().unwrap();
        let got: Vec<(i64, i64)> = y.read().chunks(2).map(|pair| (i64::from(pair[0]), i64::from(pair[1]))).collect();
        assert_eq!(got, grouped(rows as usize, columns as usize, group as usize), "{rows} x {columns} in groups of {group}");
    }
}
