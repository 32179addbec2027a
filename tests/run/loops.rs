//! Loops and branches: accumulators, pointers that walk, and every way out.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{Class, check, check_bits};
use crate::value::{FloatValue, Value};

tests![
    written_out_loops,columns_add_up<f16, bf16, f32, f64>, pointers_walk, ranges, ends_of_types, counters_beyond_half_of_64_bits, breaks_and_continues, whiles, early_returns, finds_and_returns, branches, a_loop_over_tiles_in_place,
    from_behind, what_a_rust_programmer_writes];

/// Each lane adds up a column, in f32.
#[kernel(B = [32, 512])]
fn columns<T: Float, const B: usize>(x: Ptr<T>, y: PtrMut<f32>, rows: usize, columns: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < columns;
    let mut sum = zeros::<f32>([B]);
    for row in 0..rows {
        sum += load(x + row * columns + at, mask = mask) as f32;
    }
    store(y + at, sum, mask = mask);
}

fn columns_add_up<T: FloatValue>(lab: &mut Lab) {
    for (rows, width) in [(0, 100), (1, 1), (17, 33), (100, 513), (3, 4096)] {
        let host = lab.numbers::<T>(rows * width, 0.0, 4.0);
        let x = lab.input(&host);
        let (mut y, mut z) = (lab.output::<f32>(width), lab.output::<f32>(width));
        columns::<T, 32>(x.slice(), &mut y.slice(), rows, width).grid(cdiv(width, 32)).launch().unwrap();
        columns::<T, 512>(x.slice(), &mut z.slice(), rows, width).grid(cdiv(width, 512)).launch().unwrap();
        let sum = |column: usize| (0..rows).map(|row| host[row * width + column].wide()).sum();
        // An f64 is rounded once more on the way in.
        check(&y.read(), Class::Chain(2 * rows), sum);
        check(&z.read(), Class::Chain(2 * rows), sum);
    }
}

/// A loop with pointers that move on, forwards and backwards, and a second value that it carries.
#[kernel(B = 64)]
fn walk<const B: usize>(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    let mut sum = full::<i32>([B], 5);
    let mut from = x + arange(0, B);
    let mut back = x + n - B;
    let mut count = 0i32;
    for start in range(0, n, B) {
        sum += load(from, mask = start + arange(0, B) < n) * (count + 1) + load(back);
        from += B;
        back -= B;
        count += 1;
    }
    store(y + arange(0, B), sum);
    store(y + B, count);
}

fn pointers_walk(lab: &mut Lab) {
    for n in [0usize, 1, 63, 64, 65, 1000] {
        let host = lab.values::<i32>(n);
        let x = lab.input(&host);
        let mut y = lab.output::<i32>(65);
        walk::<64>(x.slice(), &mut y.slice(), n).grid(1).launch().unwrap();
        let blocks = n.div_ceil(64);
        let at = |index: i64| usize::try_from(index).ok().and_then(|index| host.get(index)).copied().unwrap_or(0);
        check_bits(&y.read(), |lane| {
            if lane == 64 {
                return blocks as i32;
            }
            (0..blocks).fold(5i32, |sum, block| {
                let front = at((block * 64 + lane) as i64).wrapping_mul(block as i32 + 1);
                sum.wrapping_add(front).wrapping_add(at(n as i64 - 64 - 64 * block as i64))
            })
        });
    }
}

#[kernel]
fn count_all(y: PtrMut<i64>, start: isize, end: isize, step: isize, low: i32, high: i32, last: u8) {
    let mut sum = 0i64;
    let mut iterations = 0i64;
    for i in start..end {
        sum = sum * 3 + i;
        iterations += 1;
    }
    store(y, sum);
    store(y + 1, iterations);
    sum = 0;
    for i in (start..end).step_by(step) {
        sum = sum * 3 + i;
    }
    for i in range(start, end, 7) {
        sum += i;
    }
    store(y + 2, sum);
    let mut nested = 0i64;
    for i in low..high {
        for j in i..high {
            nested += i * 100 + j;
        }
    }
    for i in 250u8..last {
        nested += i as i64;
    }
    store(y + 3, nested);
}

fn ranges(lab: &mut Lab) {
    for (start, end, step, low, high, last) in [
        (0isize, 0isize, 1isize, 0, 0, 250u8),
        (5, -5, 2, 3, -3, 0),
        (-10, 10, 3, -3, 4, 255),
        (-1000, -990, 100, i32::MAX - 2, i32::MAX, 251),
        (0, 1000, 1, 0, 9, 3),
    ] {
        let mut y = lab.output::<i64>(4);
        count_all(&mut y.slice(), start, end, step, low, high, last).grid(1).launch().unwrap();
        let range = start as i64..end as i64;
        let fold = |numbers: &mut dyn Iterator<Item = i64>| numbers.fold(0i64, |sum, i| sum.wrapping_mul(3).wrapping_add(i));
        let stepped = fold(&mut range.clone().step_by(step as usize)).wrapping_add(range.clone().step_by(7).sum());
        // The body's numbers are i32: `i * 100 + j` wraps before it widens.
        let pairs: i64 = (low..high).flat_map(|i: i32| (i..high).map(move |j| i64::from(i.wrapping_mul(100).wrapping_add(j)))).sum();
        let small: i64 = (250..last).map(i64::from).sum();
        let want = [fold(&mut range.clone()), range.count() as i64, stepped, pairs + small];
        check_bits(&y.read(), |i| want[i]);
    }
}

/// Counts the iterations of a loop that may be left, but is not.
#[kernel]
fn count<T: Int>(y: PtrMut<i32>, start: T, end: T, step: T) {
    let mut iterations = 0i32;
    for _i in (start..end).step_by(step) {
        iterations += 1;
        if iterations > 100 {
            break;
        }
    }
    store(y, iterations);
}

fn ends_of_types(lab: &mut Lab) {
    let iterations = |launch: &mut dyn FnMut(&mut Tensor<i32>) -> galatea::Result<()>| {
        let mut y = lab.device.full(1, -1).unwrap();
        launch(&mut y).unwrap();
        y.to_vec().unwrap()[0]
    };
    let far = 1u64 << 63;
    for (start, end, step, want) in [
        (5, far, far / 2, 2),
        (far - 3, far + 2, 2, 3),
        (u64::MAX - 5, u64::MAX, 2, 3),
        (u64::MAX - 1, u64::MAX, u64::MAX, 1),
        (7, 7, 1, 0),
    ] {
        assert_eq!(iterations(&mut |y| count::<u64>(y, start, end, step).grid(1).launch()), want, "{start}..{end} by {step}");
    }
    for (start, end, step, want) in
        [(i64::MAX - 3, i64::MAX, 2, 2), (i64::MIN, i64::MAX, i64::MAX, 3), (i64::MIN, i64::MIN + 3, 1, 3), (0, 9, -1, 0), (-4, 5, 4, 3)]
    {
        assert_eq!(iterations(&mut |y| count::<i64>(y, start, end, step).grid(1).launch()), want, "{start}..{end} by {step}");
    }
    assert_eq!(iterations(&mut |y| count::<i8>(y, 120, 127, 5).grid(1).launch()), 2);
    assert_eq!(iterations(&mut |y| count::<u8>(y, 0, 255, 128).grid(1).launch()), 2);
}

/// Marks the elements that a loop's index names, from its first one on.
#[kernel]
fn marked(y: PtrMut<i32>, start: u64, end: u64) {
    for i in start..end {
        store(y + (i - start) as i64, (i % 1000) as i32);
        store(y + (i as i64 & 63) + 64, 1);
    }
}

fn counters_beyond_half_of_64_bits(lab: &mut Lab) {
    let far = 1u64 << 63;
    for (start, end) in [(far - 3, far + 4), (far, far + 2), (u64::MAX - 5, u64::MAX), (0, 3), (far + 1, far - 1)] {
        let mut y = lab.output::<i32>(128);
        marked(&mut y.slice(), start, end).grid(1).launch().unwrap();
        check_bits(&y.read(), |index| match index as u64 {
            index if index < 64 && index < end.saturating_sub(start) => ((start + index) % 1000) as i32,
            index if index >= 64 && (start..end).any(|i| i % 64 == index - 64) => 1,
            _ => y.before()[index],
        });
    }
}

#[kernel(B = 64)]
fn some<const B: usize>(x: Ptr<f32>, stops: Ptr<i32>, y: PtrMut<f32>, n: usize) {
    let row = program_id(0);
    let mut sum = zeros::<f32>([B]);
    for i in 0..n {
        let what = load(stops + row * n + i);
        if what == 1 {
            continue;
        }
        if what == 2 {
            break;
        }
        sum += load(x + i * B + arange(0, B));
        if what == 3 {
            sum = sum * 2.0;
            continue;
        }
        sum = sum - 1.0;
    }
    store(y + row * B + arange(0, B), sum);
}

fn breaks_and_continues(lab: &mut Lab) {
    let (rows, n) = (50, 20);
    let host: Vec<f32> = (0..n * 64).map(|_| lab.below(16) as f32).collect();
    let stops: Vec<i32> = (0..rows * n).map(|_| [0, 0, 0, 1, 1, 3, 2][if lab.below(3) == 0 { lab.below(7) } else { 0 }]).collect();
    let (x, s) = (lab.input(&host), lab.input(&stops));
    let mut y = lab.output::<f32>(rows * 64);
    some::<64>(x.slice(), s.slice(), &mut y.slice(), n).grid(rows).launch().unwrap();
    check_bits(&y.read(), |at| {
        let mut sum = 0.0f32;
        for i in 0..n {
            match stops[at / 64 * n + i] {
                1 => {}
                2 => break,
                3 => sum = (sum + host[i * 64 + at % 64]) * 2.0,
                _ => sum = sum + host[i * 64 + at % 64] - 1.0,
            }
        }
        sum
    });
}

/// The number of steps of Collatz, up to a limit, and a tile that goes along.
#[kernel(B = 32)]
fn collatz<const B: usize>(x: Ptr<i64>, y: PtrMut<i32>, limit: i32) {
    let row = program_id(0);
    let mut value = load(x + row);
    let mut steps = 0i32;
    let mut tile = arange(0, B) as i32;
    while value != 1 && steps < limit {
        value = if value % 2 == 0 { value / 2 } else { 3 * value + 1 };
        steps += 1;
        tile = tile * 3 + steps;
    }
    store(y + row * (B + 1) + arange(0, B), tile);
    store(y + row * (B + 1) + B, steps);
}

fn whiles(lab: &mut Lab) {
    let rows = 40;
    let host: Vec<i64> = (0..rows).map(|i| if i == 0 { 1 } else { 1 + lab.below(5000) as i64 }).collect();
    let x = lab.input(&host);
    let mut y = lab.output::<i32>(rows * 33);
    collatz::<32>(x.slice(), &mut y.slice(), 60).grid(rows).launch().unwrap();
    check_bits(&y.read(), |at| {
        let (mut value, mut steps, mut tile) = (host[at / 33], 0, (at % 33) as i32);
        while value != 1 && steps < 60 {
            value = if value % 2 == 0 { value / 2 } else { 3 * value + 1 };
            steps += 1;
            tile = tile.wrapping_mul(3).wrapping_add(steps);
        }
        if at % 33 == 32 { steps } else { tile }
    });
}

#[kernel(B = 64)]
fn leave_early<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize, skip: isize) {
    let row = program_id(0);
    if row * B >= n {
        return;
    }
    let at = row * B + arange(0, B);
    let v = load(x + at);
    store(y + at, v);
    if row == skip {
        store(y + at, 0.0);
        return;
    } else if row > skip {
        let w = if row % 2 == 0 { v * 2.0 } else { return };
        store(y + at, w);
    }
}

fn early_returns(lab: &mut Lab) {
    let (n, len) = (64 * 10, 64 * 13);
    let host = lab.numbers::<f32>(len, -1.0, 1.0);
    let x = lab.input(&host);
    let mut y = lab.output::<f32>(len);
    leave_early::<64>(x.slice(), &mut y.slice(), n, 4).grid(13).launch().unwrap();
    check_bits(&y.read(), |i| match i / 64 {
        10.. => y.before()[i],
        4 => 0.0,
        row if row > 4 && row % 2 == 0 => host[i] * 2.0,
        _ => host[i],
    });
}

#[kernel]
fn find(x: Ptr<i32>, y: PtrMut<i64>, n: usize, wanted: i32) {
    for i in 0..n {
        for j in 0..3 {
            if load(x + i) == wanted + j {
                store(y, i * 10 + j);
                return;
            }
        }
    }
    store(y, -1);
}

fn finds_and_returns(lab: &mut Lab) {
    let host: Vec<i32> = (0..200).map(|_| lab.below(1000) as i32).collect();
    let x = lab.input(&host);
    for wanted in [host[0], host[150], host[199] - 2, -50] {
        let mut y = lab.output::<i64>(1);
        find(x.slice(), &mut y.slice(), host.len(), wanted).grid(1).launch().unwrap();
        let found = host.iter().position(|value| (wanted..wanted + 3).contains(value));
        check_bits(&y.read(), |_| found.map_or(-1, |i| i as i64 * 10 + i64::from(host[i] - wanted)));
    }
}

#[kernel(B = 64)]
fn branch<const B: usize>(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let first = load(x + program_id(0) * B);
    let mut v = load(x + at);
    let mut extra = 1i32;
    // The right side of `&&` and `||` runs only if it is needed, which shows in nothing but the result.
    if first > 0 && 1000 / first > 5 || first == i32::MIN {
        v = v + extra;
    } else if first % 2 == 0 {
        (v, extra) = (v * 2, extra + 1);
        if first < -100 {
            v = -v;
        }
    }
    store(y + at, v + extra, mask = at < n);
}

fn branches(lab: &mut Lab) {
    let n = 64 * 40 - 5;
    let mut host = lab.values::<i32>(n);
    (0..20).for_each(|row| host[row * 64] = i32::near(lab.between(-300.0, 300.0)));
    host[64] = i32::MIN;
    let x = lab.input(&host);
    let mut y = lab.output::<i32>(n);
    branch::<64>(x.slice(), &mut y.slice(), n).grid(cdiv(n, 64)).launch().unwrap();
    check_bits(&y.read(), |i| {
        let (first, v) = (host[i / 64 * 64], host[i]);
        if first > 0 && 1000 / first > 5 || first == i32::MIN {
            v.wrapping_add(2)
        } else if first % 2 == 0 {
            let twice = v.wrapping_mul(2);
            (if first < -100 { twice.wrapping_neg() } else { twice }).wrapping_add(2)
        } else {
            v.wrapping_add(1)
        }
    });
}

/// Loads see what the same lanes stored in an earlier iteration.
#[kernel(B = 128)]
fn again<const B: usize>(x: PtrMut<f32>, iterations: i32, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    for i in 0..iterations {
        let v = load(x + at, mask = at < n);
        store(x + at, v * 2.0 - i as f32, mask = at < n);
    }
}

fn a_loop_over_tiles_in_place(lab: &mut Lab) {
    for (n, iterations) in [(1, 0), (129, 1), (1000, 7), (4097, -3)] {
        let host: Vec<f32> = (0..n).map(|_| lab.below(64) as f32).collect();
        let mut x = lab.in_place(&host);
        again::<128>(&mut x.slice(), iterations, n).grid(cdiv(n, 128)).launch().unwrap();
        check_bits(&x.read(), |i| (0..iterations).fold(host[i], |v, iteration| v * 2.0 - iteration as f32));
    }
}

/// Bounds that are literals, and bounds that the launch decides; the index in shapes, in conditions and in an assertion.
#[kernel]
fn written_out_kernel<const N: usize, const STEP: usize>(x: Ptr<i32>, y: PtrMut<i64>, n: usize) {
    let mut sum = 0i64;
    for i in static_range(0, N, STEP) {
        static_assert!(i < N);
        if i == STEP {
            sum += 1000;
        }
        if n == i {
            continue;
        }
        for j in static_range(i, N) {
            sum += load(x + j) as i64 * (i + 1);
        }
    }
    store(y, sum);
    let mut width = 1;
    for _ in static_range(0, 4) {
        store(y + width + arange(0, width), full::<i64>([width], width));
        width *= 2;
    }
}

fn written_out_loops(lab: &mut Lab) {
    let host = lab.numbers::<i32>(9, -100.0, 100.0);
    let x = lab.input(&host);
    for (len, step) in [(9usize, 1usize), (9, 4), (5, 3), (1, 2), (0, 1)] {
        for n in [0, 3, 100] {
            let mut y = lab.output::<i64>(16);
            match (len, step) {
                (9, 1) => written_out_kernel::<9, 1>(x.slice(), &mut y.slice(), n).grid(1).launch().unwrap(),
                (9, 4) => written_out_kernel::<9, 4>(x.slice(), &mut y.slice(), n).grid(1).launch().unwrap(),
                (5, 3) => written_out_kernel::<5, 3>(x.slice(), &mut y.slice(), n).grid(1).launch().unwrap(),
                (1, 2) => written_out_kernel::<1, 2>(x.slice(), &mut y.slice(), n).grid(1).launch().unwrap(),
                _ => written_out_kernel::<0, 1>(x.slice(), &mut y.slice(), n).grid(1).launch().unwrap(),
            };
            let mut sum = 0;
            for i in (0..len).step_by(step) {
                sum += if i == step { 1000 } else { 0 };
                if i != n {
                    sum += (i..len).map(|j| i64::from(host[j]) * (i as i64 + 1)).sum::<i64>();
                }
            }
            let got = y.read();
            assert_eq!(got[0], sum, "{len} by {step}, without {n}");
            assert_eq!(got[1..], [1, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8]);
        }
    }
}

/// The indices from the last to the first, as digits of a number; of a loop that runs to its end and of one that is left.
#[kernel]
fn digits<T: Int>(y: PtrMut<u64>, start: T, end: T, step: T) {
    let mut found = (0u64, 0u64, 0u64);
    for i in (start..end).step_by(step).rev() {
        found.0 = found.0 * 257 + i as u64;
    }
    for i in range(start, end).rev() {
        if found.1 > 1000000 {
            break;
        }
        found.1 = found.1 * 257 + i as u64;
    }
    for i in (start..end).rev().rev() {
        if i - start == 3 {
            break;
        }
        found.2 = found.2 * 257 + i as u64;
    }
    store(y, found.0);
    store(y + 1, found.1);
    store(y + 2, found.2);
}

/// Written out, with bounds that the constants decide, and the rows of a matrix from the last to the first.
#[kernel]
fn behind<const N: usize, const STEP: usize>(x: Ptr<f32>, y: PtrMut<f32>, rows: usize) {
    let mut digits = 0.0;
    for i in static_range(1, N, STEP).rev() {
        digits = digits * 10.0 + i as f32;
    }
    let mut turned = zeros::<f32>([64]);
    for row in (0..rows).rev() {
        turned = turned * 0.5 + load(x + row * 64 + arange(0, 64));
    }
    store(y + arange(0, 64), turned + digits);
}

fn from_behind(lab: &mut Lab) {
    macro_rules! check {
        ($ty:ty: $(($start:expr, $end:expr, $step:expr)),*) => {$({
            let (start, end, step): ($ty, $ty, $ty) = ($start, $end, $step);
            let mut y = lab.output::<u64>(3);
            digits::<$ty>(&mut y.slice(), start, end, step).grid(1).launch().unwrap();
            let add = |sum: u64, i: $ty| sum.wrapping_mul(257).wrapping_add(i as u64);
            let mut indices = Vec::new();
            let mut next = start;
            while next < end {
                indices.push(next);
                match next.checked_add(step) {
                    Some(further) => next = further,
                    None => break,
                }
            }
            let by_steps = indices.iter().rev().fold(0, |sum, i| add(sum, *i));
            let until = (start..end).rev().fold(0, |sum, i| if sum > 1000000 { sum } else { add(sum, i) });
            let first = (start..end).take(3).fold(0, add);
            assert_eq!(y.read(), [by_steps, until, first], "{start}..{end} by {step}");
        })*};
    }
    check!(i64: (0, 10, 1), (0, 10, 3), (-7, 5, 4), (3, 3, 1), (5, -5, 2), (i64::MAX - 9, i64::MAX, 4), (i64::MIN, i64::MIN + 5, 2));
    check!(u64: (0, 10, 3), (u64::MAX - 9, u64::MAX, 4), ((1 << 63) - 2, (1 << 63) + 3, 2));
    check!(i32: (-3, 4, 2), (i32::MIN, i32::MIN + 6, 5), (i32::MAX - 4, i32::MAX, 1));
    check!(i8: (-128, 127, 50), (100, 127, 9));
    check!(u8: (0, 255, 100), (250, 255, 2));

    let host = lab.numbers::<f32>(5 * 64, -1.0, 1.0);
    let x = lab.input(&host);
    for (rows, constants) in [(5, (6, 1)), (3, (9, 3)), (0, (1, 1))] {
        let mut y = lab.output::<f32>(64);
        let digits = match constants {
            (6, 1) => (behind::<6, 1>(x.slice(), &mut y.slice(), rows).grid(1).launch(), 54321.0),
            (9, 3) => (behind::<9, 3>(x.slice(), &mut y.slice(), rows).grid(1).launch(), 741.0),
            _ => (behind::<1, 1>(x.slice(), &mut y.slice(), rows).grid(1).launch(), 0.0),
        };
        digits.0.unwrap();
        let turned = |lane: usize| (0..rows).rev().fold(0.0f32, |sum, row| sum * 0.5 + host[row * 64 + lane]);
        check_bits(&y.read(), |lane| turned(lane) + digits.1);
    }
}

/// `loop`, closures in variables, which see what stood before them, parts of tuples, constants.
#[kernel(B = 32)]
fn as_in_rust<const B: usize>(x: Ptr<i32>, y: PtrMut<i32>, n: usize) {
    const WIDTH: usize = 2;
    const SCALE: i32 = 3;
    let lanes = arange(0, B);
    let shift = 1;
    let column = |c| load(x + lanes * WIDTH + c);
    let scaled = |v, by| {
        let twice = v * by;
        twice + shift
    };
    let shift = 100;
    let mut state = ((column(0), 0i32), shift);
    let mut iteration = 0;
    loop {
        state.0.0 = scaled(state.0.0, SCALE) + column(1);
        state.0.1 += 1;
        iteration += 1;
        if iteration >= n {
            break;
        }
        if iteration % 2 == 0 {
            continue;
        }
        state.1 -= scaled(iteration, 2);
    }
    store(y + lanes, state.0.0 + state.0.1 + state.1 as i32);
}

fn what_a_rust_programmer_writes(lab: &mut Lab) {
    let host = lab.values::<i32>(64);
    let x = lab.input(&host);
    for n in [0, 1, 2, 7] {
        let mut y = lab.output::<i32>(32);
        as_in_rust::<32>(x.slice(), &mut y.slice(), n).grid(1).launch().unwrap();
        check_bits(&y.read(), |lane| {
            let (mut v, mut rest) = (host[2 * lane], 100);
            let iterations = n.max(1) as i32;
            for iteration in 1..=iterations {
                v = v.wrapping_mul(3).wrapping_add(1).wrapping_add(host[2 * lane + 1]);
                if iteration < iterations && iteration % 2 == 1 {
                    rest -= iteration * 2 + 1;
                }
            }
            v.wrapping_add(iterations).wrapping_add(rest)
        });
    }
}
