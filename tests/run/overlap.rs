//! Launches that may begin before the one in front of them is over give what launches in turn give, wherever their kernel waits.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::Class;
use crate::tolerance::{check, check_bits};

tests![
    a_chain_of_early_launches,
    every_position_of_the_builtins,
    tuned_ones,
    reads_what_the_launch_before_wrote_elsewhere,
    a_kernel_without_the_builtins_runs_in_order
];

/// y[i] = x[n - 1 - i] + a: each program reads what another one wrote.
#[kernel(B = 256)]
fn turned<const B: usize>(x: Ptr<u32>, y: PtrMut<u32>, a: u32, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    gdc_wait();
    gdc_launch_dependents();
    store(y + at, load(x + (n - 1 - at), mask = mask) + a, mask = mask);
}

fn a_chain_of_early_launches(lab: &mut Lab) {
    for n in [0, 1, 255, 3001, 20_011] {
        let host = lab.values::<u32>(n);
        let mut x = lab.device.tensor(&host).unwrap();
        let mut y = lab.device.zeros::<u32>(n).unwrap();
        for iteration in 0..10u32 {
            turned::<256>(&x, &mut y, iteration, n).grid(cdiv(n, 256)).overlap_previous().launch().unwrap();
            std::mem::swap(&mut x, &mut y);
        }
        // Ten iterations turn nothing round; 0 + .. + 9 = 45.
        check_bits(&x.to_vec().unwrap(), |i| host[i].wrapping_add(45));
    }
}

/// Where a kernel calls the builtins: as constants choose.
#[kernel(WHERE = [0, 1, 2, 3, 4, 5], B = 128)]
fn positions<const WHERE: usize, const B: usize>(x: PtrMut<f32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    if WHERE == 0 {
        gdc_wait();
    }
    if WHERE == 1 {
        gdc_launch_dependents();
    }
    if WHERE == 2 && n > 1000 {
        gdc_wait();
    }
    if program_id(0) > 5 && WHERE == 3 {
        return;
    }
    let v = load(x + at, mask = mask);
    if WHERE == 3 || WHERE == 4 {
        gdc_wait();
    }
    let mut sum = v;
    for _ in 0..2 {
        if WHERE == 5 {
            gdc_wait();
            gdc_launch_dependents();
        }
        sum += load(x + at, mask = mask);
    }
    store(x + at, sum, mask = mask);
}

fn every_position_of_the_builtins(lab: &mut Lab) {
    for n in [100, 2000] {
        let host = lab.numbers::<f32>(n, -10.0, 10.0);
        let mut x = lab.device.tensor(&host).unwrap();
        let grid = cdiv(n, 128);
        for _ in 0..2 {
            positions::<0, 128>(&mut x, n).grid(grid).overlap_previous().launch().unwrap();
            positions::<1, 128>(&mut x, n).grid(grid).overlap_previous().launch().unwrap();
            positions::<2, 128>(&mut x, n).grid(grid).overlap_previous().launch().unwrap();
            positions::<3, 128>(&mut x, n).grid(grid).overlap_previous().launch().unwrap();
            positions::<4, 128>(&mut x, n).grid(grid).overlap_previous().launch().unwrap();
            positions::<5, 128>(&mut x, n).grid(grid).overlap_previous().launch().unwrap();
            x.view_mut().fill(host[0]).unwrap();
            positions::<4, 128>(&mut x, n).grid(grid).overlap_previous().launch().unwrap();
        }
        check(&x.to_vec().unwrap(), Class::Rounded, |_| 3.0 * f64::from(host[0]));
        let mut x = lab.device.tensor(&host).unwrap();
        positions::<0, 128>(&mut x, n).grid(grid).launch().unwrap();
        positions::<3, 128>(&mut x, n).grid(grid).overlap_previous().launch().unwrap();
        // Each sum rounds twice; programs behind the sixth return at once.
        let triple = |x: f32| x + x + x;
        check_bits(&x.to_vec().unwrap(), |i| if i < 6 * 128 { triple(triple(host[i])) } else { triple(host[i]) });
    }
}

#[autotune(configs = [Config { B: 128 }, Config { B: 512, num_warps: 8 }], key = [n])]
#[kernel]
fn doubled<const B: usize>(x: PtrMut<u32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    gdc_launch_dependents();
    store(x + at, load(x + at, mask = mask) * 2, mask = mask);
}

fn tuned_ones(lab: &mut Lab) {
    let n = 5001;
    let host = lab.values::<u32>(n);
    let mut x = lab.device.tensor(&host).unwrap();
    for _ in 0..5 {
        doubled(&mut x, n).grid(|config| cdiv(n, config.B)).overlap_previous().launch().unwrap();
    }
    check_bits(&x.to_vec().unwrap(), |i| host[i].wrapping_mul(32));
}

/// A table in many programs, summed up by the next launch, in loops that load ahead.
#[kernel(B = 64)]
fn total<const B: usize>(x: Ptr<u32>, y: PtrMut<u32>, n: usize) {
    let columns = arange(0, B);
    let mut sum = zeros::<u32>([B]);
    gdc_wait();
    for start in range(0, n, B, num_stages = 3) {
        sum += load(x + start + columns, mask = start + columns < n);
    }
    store(y + program_id(0), sum.sum());
}

fn reads_what_the_launch_before_wrote_elsewhere(lab: &mut Lab) {
    let n = 5003;
    let host = lab.values::<u32>(n);
    let x = lab.device.tensor(&host).unwrap();
    let (mut y, mut sums) = (lab.device.zeros::<u32>(n).unwrap(), lab.device.zeros::<u32>(40).unwrap());
    for iteration in 0..4 {
        turned::<256>(&x, &mut y, iteration, n).grid(cdiv(n, 256)).overlap_previous().launch().unwrap();
        total::<64>(&y, &mut sums, n).grid(40).overlap_previous().launch().unwrap();
        let want = host.iter().fold(0u32, |sum, &x| sum.wrapping_add(x).wrapping_add(iteration));
        check_bits(&sums.to_vec().unwrap(), |_| want);
    }
}

/// Without the words nothing overlaps, and nothing needs to wait.
#[kernel(B = 256)]
fn plain<const B: usize>(x: PtrMut<u32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(x + at, load(x + at) + 1, mask = at < n);
}

fn a_kernel_without_the_builtins_runs_in_order(lab: &mut Lab) {
    let mut x = lab.device.zeros::<u32>(10_000).unwrap();
    for _ in 0..8 {
        plain::<256>(&mut x, 10_000).grid(40).overlap_previous().launch().unwrap();
    }
    check_bits(&x.to_vec().unwrap(), |_| 8);
}
