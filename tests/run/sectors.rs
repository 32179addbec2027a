//! Rows that are not aligned: loops over such rows load few more sectors than over aligned ones, take no shared memory, and add up the same.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check};
use crate::value::FloatValue;

tests![rows_of_odd_lengths_take_whole_sectors, large_blocks_of_odd_rows_take_whole_sectors, rows_of_odd_lengths_take_no_shared_memory];

/// Carries the sums of columns, and reduces each row.
#[kernel]
fn sums_of_both_axes(x: Ptr<f16>, y: PtrMut<f32>, sums: PtrMut<f32>, rows: usize, columns: usize) {
    let column = arange(0, 1024);
    let mask = column < columns;
    let mut total = zeros::<f32>([1024]);
    for row in 0..rows {
        let v = load(x + row * columns + column, mask = mask) as f32;
        store(sums + row, sum(v));
        total += v;
    }
    store(y + column, total, mask = mask);
}

fn rows_of_odd_lengths_take_whole_sectors(lab: &mut Lab) {
    const ROWS: usize = 20;
    let mut counts = Vec::new();
    for columns in [1024, 1001] {
        let host = lab.numbers::<f16>(ROWS * columns, 0.0, 4.0);
        let x = lab.input_at(&host, 0);
        let (mut y, mut sums) = (lab.output::<f32>(columns), lab.output::<f32>(ROWS));
        sums_of_both_axes(x.slice(), &mut y.slice(), &mut sums.slice(), ROWS, columns).grid(1).launch().unwrap();
        check(&y.read(), Class::Chain(ROWS), |column| (0..ROWS).map(|row| host[row * columns + column].wide()).sum());
        check(&sums.read(), Class::Chain(columns), |row| host[row * columns..][..columns].iter().map(|v| v.wide()).sum());
        if let Some(report) = lab.device.sim_report() {
            let total = report.kernel("sums_of_both_axes").expect("it was launched").total();
            counts.push((total.global.load_sectors, total.thread_instructions));
        }
    }
    if let [even, both] = counts[..] {
        let (odd_sectors, odd_instructions) = (both.0 - even.0, both.1 - even.1);
        // A warp's access of 64 bytes at an odd address touches three sectors, not two.
        assert!(odd_sectors <= even.0 * 8 / 5, "{} sectors for aligned rows, {odd_sectors} for others", even.0);
        assert!(odd_instructions <= even.1 * 2, "{} instructions of threads for aligned rows, {odd_instructions} for others", even.1);
    }
}

/// Each program adds up 128 columns, from blocks of 32 rows.
#[kernel]
fn sums_of_blocks(x: Ptr<f32>, y: PtrMut<f32>, rows: usize, columns: usize) {
    let column = program_id(0) * 128 + arange(0, 128);
    let mut total = zeros::<f32>([32, 128]);
    for first in range(0, rows, 32) {
        let row = first + arange(0, 32);
        let mask = (row < rows)[(.., None)] & (column < columns)[(None, ..)];
        total += load(x + row[(.., None)] * columns + column[(None, ..)], mask = mask);
    }
    store(y + column, sum(total, axis = 0), mask = column < columns);
}

fn large_blocks_of_odd_rows_take_whole_sectors(lab: &mut Lab) {
    const ROWS: usize = 107;
    let mut sectors = Vec::new();
    for columns in [512, 509] {
        let host = lab.numbers::<f32>(ROWS * columns, 0.0, 4.0);
        let x = lab.input_at(&host, 0);
        let mut y = lab.output::<f32>(columns);
        sums_of_blocks(x.slice(), &mut y.slice(), ROWS, columns).grid(cdiv(columns, 128)).launch().unwrap();
        check(&y.read(), Class::Chain(ROWS), |column| (0..ROWS).map(|row| host[row * columns + column].wide()).sum());
        if let Some(report) = lab.device.sim_report() {
            sectors.push(report.kernel("sums_of_blocks").expect("it was launched").total().global.load_sectors);
        }
    }
    if let [even, both] = sectors[..] {
        // A warp's access of 128 bytes at an odd element touches five sectors, not four.
        assert!(both - even <= even * 3 / 2, "{even} sectors for aligned rows, {} for others", both - even);
    }
}

/// Each program adds up 512 columns, from rows that are `stride` elements apart.
#[kernel]
fn sums_of_columns(x: Ptr<f32>, y: PtrMut<f32>, rows: usize, stride: usize, columns: usize) {
    let column = program_id(0) * 512 + arange(0, 512);
    let mask = column < columns;
    let mut total = zeros::<f32>([512]);
    for row in 0..rows {
        total += load(x + row * stride + column, mask = mask);
    }
    store(y + column, total, mask = mask);
}

fn rows_of_odd_lengths_take_no_shared_memory(lab: &mut Lab) {
    const ROWS: usize = 37;
    // Aligned rows of whole tiles, of two whole tiles and a part of one, and rows that are not aligned.
    for (columns, stride, is_shared) in [(1024, 1024, true), (1500, 1500, true), (1024, 1037, false)] {
        let host = lab.numbers::<f32>(ROWS * stride, 0.0, 4.0);
        let x = lab.input_at(&host, 0);
        let mut y = lab.output::<f32>(columns);
        // Tests that run at the same time read the report, too, so none resets it.
        let requests = || {
            let report = lab.device.sim_report()?;
            Some(report.kernel("sums_of_columns").map_or(0, |kernel| kernel.total().shared.requests))
        };
        let before = requests();
        sums_of_columns(x.slice(), &mut y.slice(), ROWS, stride, columns).grid(cdiv(columns, 512)).launch().unwrap();
        check(&y.read(), Class::Chain(ROWS), |column| (0..ROWS).map(|row| host[row * stride + column].wide()).sum());
        if let (Some(before), Some(after)) = (before, requests()) {
            assert_eq!(after > before, is_shared, "{columns} columns of {stride} take {} requests", after - before);
        }
    }
}
