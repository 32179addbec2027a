//! Programs that wait for each other, and lanes that do: what acquiring and releasing is for.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;

tests![
    a_lock_keeps_others_out,
    a_lock_for_each_group_of_rows,
    the_last_program_adds_up,
    programs_take_turns,
    a_barrier_shows_the_tile,
    a_flag_for_every_lane,
    a_volatile_scalar_is_one,
    what_many_threads_read_is_one,
];

/// Every program adds its tile to one sum, element by element, with plain loads and stores under a lock.
#[kernel(B = [64, 512])]
fn add_under_lock<const B: usize>(x: Ptr<i32>, sum: PtrMut<i32>, lock: PtrMut<i32>, n: usize) {
    let lanes = arange(0, B);
    let v = load(x + program_id(0) * n + lanes, mask = lanes < n);
    while atomic_cas(lock, 0, 1) == 1 {}
    store(sum + lanes, load(sum + lanes) + v, mask = lanes < n);
    atomic_xchg(lock, 0);
}

fn a_lock_keeps_others_out(lab: &mut Lab) {
    for (n, programs) in [(1, 1), (64, 40), (60, 33), (500, 20)] {
        let host = lab.values::<i32>(n * programs);
        let x = lab.input(&host);
        let (mut sum, mut lock) = (lab.in_place(&vec![0; n]), lab.in_place(&[0]));
        if n > 64 {
            add_under_lock::<512>(x.slice(), &mut sum.slice(), &mut lock.slice(), n).grid(programs).launch().unwrap();
        } else {
            add_under_lock::<64>(x.slice(), &mut sum.slice(), &mut lock.slice(), n).grid(programs).launch().unwrap();
        }
        assert_eq!(lock.read(), [0]);
        check_bits(&sum.read(), |i| (0..programs).fold(0i32, |sum, program| sum.wrapping_add(host[program * n + i])));
    }
}

/// The sums of a layer norm's backward pass: programs of one group share a row, its lock, and a flag that says whether the row holds anything.
#[kernel(B = 128)]
fn group_sums<const B: usize>(dy: Ptr<f32>, dw: PtrMut<f32>, locks: PtrMut<i32>, groups: usize, n: usize) {
    let (row, group) = (program_id(0), program_id(0) % groups);
    let columns = arange(0, B);
    let mask = columns < n;
    let mut partial = load(dy + row * n + columns, mask = mask);
    while atomic_cas(locks + group, 0, 1) == 1 {}
    if load(locks + groups + group) == 0 {
        atomic_xchg(locks + groups + group, 1);
    } else {
        partial += load(dw + group * n + columns, mask = mask);
    }
    store(dw + group * n + columns, partial, mask = mask);
    debug_barrier();
    atomic_xchg(locks + group, 0);
}

fn a_lock_for_each_group_of_rows(lab: &mut Lab) {
    for (rows, groups, n) in [(1, 1, 1), (40, 4, 100), (31, 7, 128), (5, 8, 77)] {
        let host: Vec<f32> = (0..rows * n).map(|_| lab.below(1000) as f32 - 500.0).collect();
        let x = lab.input(&host);
        // The rows begin as noise: a group's first program overwrites it.
        let noise: Vec<f32> = (0..groups * n).map(|_| lab.below(1000) as f32).collect();
        let (mut dw, mut locks) = (lab.in_place(&noise), lab.in_place(&vec![0; 2 * groups]));
        group_sums::<128>(x.slice(), &mut dw.slice(), &mut locks.slice(), groups, n).grid(rows).launch().unwrap();
        check_bits(&locks.read(), |i| i32::from(i >= groups && i - groups < rows));
        check_bits(&dw.read(), |i| {
            let (group, column) = (i / n, i % n);
            if group >= rows {
                noise[i]
            } else {
                (group..rows).step_by(groups).map(|row| host[row * n + column]).fold(0.0, |sum, value| sum + value)
            }
        });
    }
}

/// Each program stores its part; the one that comes last adds up all parts.
#[kernel(B = 256, P = 64)]
fn sum_in_one_launch<const B: usize, const P: usize>(x: Ptr<i64>, parts: PtrMut<i64>, done: PtrMut<u32>, y: PtrMut<i64>) {
    let at = program_id(0) * B + arange(0, B);
    store(parts + program_id(0), sum(load(x + at)));
    if atomic_add(done, 1) as i64 == num_programs(0) - 1 {
        let own = arange(0, P);
        store(y, sum(load(parts + own, mask = own < num_programs(0))));
        atomic_store(done, 0);
    }
}

fn the_last_program_adds_up(lab: &mut Lab) {
    let (mut parts, mut done, mut y) = (lab.output::<i64>(64), lab.in_place(&[0u32]), lab.output::<i64>(1));
    for n in [1, 255, 256, 5000, 16384] {
        let host = lab.values::<i64>(n);
        let x = lab.input(&host);
        // The counter is ready for the next launch.
        sum_in_one_launch::<256, 64>(x.slice(), &mut parts.slice(), &mut done.slice(), &mut y.slice()).grid(cdiv(n, 256)).launch().unwrap();
        assert_eq!(y.read(), [host.iter().fold(0i64, |sum, value| sum.wrapping_add(*value))]);
    }
}

/// A scan over programs: each waits for the sum of those in front of it. Its number comes from a counter, so those run already.
#[kernel(B = 64, num_warps = 1)]
fn running_sum<const B: usize>(x: Ptr<i32>, y: PtrMut<i32>, next: PtrMut<i32>, carry: PtrMut<i32>, turn: PtrMut<i32>) {
    let number = atomic_add(next, 1, sem = "relaxed");
    let at = number as i64 * B + arange(0, B);
    let sums = cumsum(load(x + at));
    while atomic_load(turn) != number {}
    let before = load(carry);
    store(carry, before + load(x + at).sum());
    atomic_store(turn, number + 1);
    store(y + at, before + sums);
}

fn programs_take_turns(lab: &mut Lab) {
    for n in [1, 64, 65, 1000, 4000] {
        let host = lab.values::<i32>(n);
        let x = lab.input(&host);
        let mut y = lab.output::<i32>(n);
        let [mut next, mut carry, mut turn] = [(); 3].map(|()| lab.in_place(&[0]));
        running_sum::<64>(x.slice(), &mut y.slice(), &mut next.slice(), &mut carry.slice(), &mut turn.slice())
            .grid(cdiv(n, 64))
            .launch()
            .unwrap();
        let mut sum = 0i32;
        let sums: Vec<i32> = host.iter().map(|value| (sum = sum.wrapping_add(*value), sum).1).collect();
        check_bits(&y.read(), |i| sums[i]);
    }
}

/// Turns each tile around by way of memory.
#[kernel(B = [32, 512], T = bf16)]
fn turn_around<T: Element, const B: usize>(x: Ptr<T>, y: PtrMut<T>, rounds: i32) {
    let (first, lanes) = (program_id(0) * B, arange(0, B));
    store(y + first + lanes, load(x + first + lanes));
    for _ in 0..rounds {
        debug_barrier();
        let turned = load(y + first + (B - 1 - lanes));
        debug_barrier();
        store(y + first + lanes, turned);
    }
}

fn a_barrier_shows_the_tile(lab: &mut Lab) {
    let (n, rounds) = (2048, 1 + lab.below(4));
    let host = lab.values::<bf16>(n);
    let x = lab.input(&host);
    let (mut y, mut z) = (lab.output::<bf16>(n), lab.output::<bf16>(n));
    turn_around::<bf16, 32>(x.slice(), &mut y.slice(), rounds as i32).grid(n / 32).launch().unwrap();
    turn_around::<bf16, 512>(x.slice(), &mut z.slice(), rounds as i32).grid(n / 512).launch().unwrap();
    let from = |i: usize, block: usize| if rounds % 2 == 0 { i } else { i / block * block + block - 1 - i % block };
    check_bits(&y.read(), |i| host[from(i, 32)]);
    check_bits(&z.read(), |i| host[from(i, 512)]);
}

/// The first program of a pair sets a flag for each of its elements, the second waits until all are set.
#[kernel(B = 256)]
fn hand_over<const B: usize>(x: Ptr<i32>, middle: PtrMut<i32>, flags: PtrMut<u8>, next: PtrMut<i32>, y: PtrMut<i32>) {
    let number = atomic_add(next, 1) as i64;
    let at = number / 2 * B + arange(0, B);
    if number % 2 == 0 {
        store(middle + at, load(x + at) * 3);
        atomic_store(flags + at, 1);
    } else {
        while !all(atomic_load(flags + at) == 1) {}
        // Other lanes than those that the flags are for.
        store(y + at, load(middle + (number / 2 * B + (B - 1)) - arange(0, B)));
    }
}

fn a_flag_for_every_lane(lab: &mut Lab) {
    let n = 1024;
    let host = lab.values::<i32>(n);
    let x = lab.input(&host);
    let (mut middle, mut y) = (lab.output::<i32>(n), lab.output::<i32>(n));
    let (mut flags, mut next) = (lab.in_place(&vec![0u8; n]), lab.in_place(&[0]));
    hand_over::<256>(x.slice(), &mut middle.slice(), &mut flags.slice(), &mut next.slice(), &mut y.slice())
        .grid(2 * n / 256)
        .launch()
        .unwrap();
    check_bits(&y.read(), |i| host[i / 256 * 256 + 255 - i % 256].wrapping_mul(3));
}

/// Counts how often it had to look: every lane says the same, whenever its thread would have looked.
#[kernel(B = 256)]
fn wait_by_volatile_loads<const B: usize>(y: PtrMut<i32>, next: PtrMut<i32>, turn: PtrMut<i32>) {
    let number = atomic_add(next, 1, sem = "relaxed");
    let mut looks: i32 = 0;
    while load(turn, volatile = true) != number {
        looks += 1;
    }
    store(y + number as i64 * B + arange(0, B), looks);
    atomic_store(turn, number + 1);
}

fn a_volatile_scalar_is_one(lab: &mut Lab) {
    let mut y = lab.output::<i32>(256 * 20);
    let [mut next, mut turn] = [(); 2].map(|()| lab.in_place(&[0]));
    wait_by_volatile_loads::<256>(&mut y.slice(), &mut next.slice(), &mut turn.slice()).grid(20).launch().unwrap();
    let got = y.read();
    check_bits(&got, |i| got[i / 256 * 256]);
}

/// Reads what it then writes, with nothing but plain accesses: a warp that is late must not see what the first one stored, neither in the scalar that
/// the branch is on nor in the tile, which is so small that several threads hold each element.
#[kernel(B = 256)]
fn first_come<const B: usize>(flags: PtrMut<i32>, few: PtrMut<i32>, y: PtrMut<i32>) {
    let row = program_id(0);
    let lanes = arange(0, B);
    if load(flags + row) == 0 {
        store(flags + row, 1);
        let at = few + row * 4 + arange(0, 4);
        let v = load(at);
        store(at, v + 1);
        if any(v > 50) {
            store(y + row * B + lanes, gather(v, lanes % 4, 0));
        } else {
            store(y + row * B + lanes, -sum(v));
        }
    }
}

fn what_many_threads_read_is_one(lab: &mut Lab) {
    let rows = 12;
    let flags: Vec<i32> = (0..rows).map(|_| lab.below(2) as i32).collect();
    // A sum of 50 at most is that of numbers that are 50 again when 1 was added.
    let few: Vec<i32> = (0..4 * rows).map(|i| if i / 4 % 2 == 0 { 50 } else { lab.below(100) as i32 }).collect();
    let old = lab.values::<i32>(256 * rows);
    let (mut f, mut x, mut y) = (lab.in_place(&flags), lab.in_place(&few), lab.in_place(&old));
    first_come::<256>(&mut f.slice(), &mut x.slice(), &mut y.slice()).grid(rows).launch().unwrap();
    check_bits(&f.read(), |_| 1);
    check_bits(&x.read(), |i| few[i] + i32::from(flags[i / 4] == 0));
    check_bits(&y.read(), |i| {
        let row = i / 256;
        let v = &few[4 * row..4 * row + 4];
        match flags[row] {
            0 if v.iter().any(|v| *v > 50) => v[i % 4],
            0 => -v.iter().sum::<i32>(),
            _ => old[i],
        }
    });
}
