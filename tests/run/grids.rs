//! Grids of one to three axes, empty ones, and many programs.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;

tests![every_program_knows_its_index, programs_that_step_over_the_grid, an_empty_grid_does_nothing, many_small_programs];

/// Each program marks one element with what it knows of itself.
#[kernel]
fn mark(y: PtrMut<i64>) {
    let (i, j, k) = (program_id(0), program_id(1), program_id(2));
    let (a, b, c) = (num_programs(0), num_programs(1), num_programs(2));
    store(y + (k * b + j) * a + i, i + 1000 * j + 1_000_000 * k + 1_000_000_000 * (a + 100 * b + 10_000 * c));
}

fn every_program_knows_its_index(lab: &mut Lab) {
    for (a, b, c) in [(1, 1, 1), (7, 1, 1), (1, 5, 1), (1, 1, 9), (3, 4, 5), (64, 2, 3)] {
        let len = (a * b * c) as usize;
        let want = |at: usize| {
            let at = at as i64;
            at % a + 1000 * (at / a % b) + 1_000_000 * (at / a / b) + 1_000_000_000 * (a + 100 * b + 10_000 * c)
        };
        let mut y = lab.output::<i64>(len);
        mark(&mut y.slice()).grid((a as usize, b as usize, c as usize)).launch().unwrap();
        check_bits(&y.read(), want);
        if c == 1 {
            let mut y = lab.output::<i64>(len);
            mark(&mut y.slice()).grid([a as u32, b as u32]).launch().unwrap();
            check_bits(&y.read(), want);
        }
    }
}

#[kernel(B = 64)]
fn step<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let mut block = program_id(0);
    while block < cdiv(n, B) {
        let at = block * B + arange(0, B);
        store(y + at, load(x + at, mask = at < n), mask = at < n);
        block += num_programs(0);
    }
}

fn programs_that_step_over_the_grid(lab: &mut Lab) {
    for n in [0, 1, 64, 65, 10_000] {
        for programs in [1, 3, 64, 1000] {
            let host = lab.values::<f32>(n);
            let x = lab.input(&host);
            let mut y = lab.output::<f32>(n);
            step::<64>(x.slice(), &mut y.slice(), n).grid(programs).launch().unwrap();
            check_bits(&y.read(), |i| host[i]);
        }
    }
}

fn an_empty_grid_does_nothing(lab: &mut Lab) {
    let mut y = lab.output::<i64>(100);
    mark(&mut y.slice()).grid(0).launch().unwrap();
    mark(&mut y.slice()).grid((5, 0)).launch().unwrap();
    mark(&mut y.slice()).grid((5, 5, 0)).launch().unwrap();
    check_bits(&y.read(), |i| y.before()[i]);
    let error = mark(&mut y.slice()).grid((1, 65_536)).launch().unwrap_err();
    assert!(matches!(error, Error::GridTooLarge { axis: 1, .. }), "{error}");
}

fn many_small_programs(lab: &mut Lab) {
    let n = 70_001i64;
    let mut y = lab.output::<i64>(n as usize);
    mark(&mut y.slice()).grid(n as usize).launch().unwrap();
    check_bits(&y.read(), |i| i as i64 + 1_000_000_000 * (n + 10_100));
}
