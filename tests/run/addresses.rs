//! Pointers that lie in memory: lists of tensors of different lengths, in one launch.

use galatea::prelude::*;

use crate::lab::{Input, Lab, Output};
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::{FloatValue, Value};

tests![
    scales_a_list<f16, f32, f64>,
    copies_a_list<bool, u8, i16, bf16, u32, u64>,
    adam_w_of_a_list,
    sums_of_rows_of_a_list,
    counts_by_atomics,
    through_a_device_function,
    addresses_of_addresses,
    chosen_in_a_loop,
    read_behind_a_tile,
    a_pointer_as_a_number,
    checked_and_with_other_constants,
];

/// Lengths with empty tensors, short ones, and multiples of a block and their neighbours.
const LENGTHS: [usize; 9] = [1000, 0, 1, 127, 128, 129, 5000, 4096, 3];

/// One row of the grid a tensor, one program a block of it.
#[kernel(T = [f16, f32, f64], B = [128], unchecked)]
fn scale_all<T: Float, const B: usize>(addresses: Ptr<u64>, lengths: Ptr<u32>, factor: f32) {
    let tensor = program_id(1);
    let x = load(addresses + tensor) as PtrMut<T>;
    let at = program_id(0) * B + arange(0, B);
    let mask = at < load(lengths + tensor);
    store(x + at, (load(x + at, mask = mask) as f32 * factor) as T, mask = mask);
}

fn outputs<T: Value>(lab: &mut Lab, host: &[Vec<T>]) -> Vec<Output<T>> {
    host.iter().map(|data| lab.in_place(data)).collect()
}

fn inputs<T: Value>(lab: &mut Lab, host: &[Vec<T>]) -> Vec<Input<T>> {
    host.iter().map(|data| lab.input(data)).collect()
}

fn list(lab: &Lab, addresses: impl Iterator<Item = u64>) -> Tensor<u64> {
    lab.device.tensor(&addresses.collect::<Vec<u64>>()).unwrap()
}

fn lengths(lab: &Lab) -> Tensor<u32> {
    lab.device.tensor(&LENGTHS.map(|length| length as u32)).unwrap()
}

fn scales_a_list<T: FloatValue>(lab: &mut Lab) {
    let host: Vec<Vec<T>> = LENGTHS.iter().map(|length| lab.numbers(*length, -100.0, 100.0)).collect();
    let mut tensors = outputs(lab, &host);
    let addresses = list(lab, tensors.iter_mut().map(|tensor| tensor.slice().address()));
    let lengths = lengths(lab);
    // SAFETY: the list holds these tensors and their lengths, and nobody else uses them.
    unsafe { scale_all::<T, 128>(&addresses, &lengths, 0.5).grid((40, LENGTHS.len())).launch() }.unwrap();
    for (tensor, host) in tensors.iter_mut().zip(&host) {
        check_bits(&tensor.read(), |i| T::near((host[i].wide() as f32 * 0.5).into()));
    }
}

/// The blocks of a tensor in a loop, which reads them ahead and 16 bytes at a time.
#[kernel(T = [bool, u8, i16, bf16, u32, u64], B = 256, unchecked)]
fn copy_all<T: Element, const B: usize>(from: Ptr<u64>, to: Ptr<u64>, lengths: Ptr<u32>) {
    let tensor = program_id(0);
    let (x, y) = (load(from + tensor) as Ptr<T>, load(to + tensor) as PtrMut<T>);
    let n = load(lengths + tensor) as usize;
    for start in range(0, n, B, num_stages = 2) {
        let at = start + arange(0, B);
        store(y + at, load(x + at, mask = at < n), mask = at < n);
    }
}

fn copies_a_list<T: Value>(lab: &mut Lab) {
    let host: Vec<Vec<T>> = LENGTHS.iter().map(|length| lab.values(*length)).collect();
    let from = inputs(lab, &host);
    let mut to: Vec<Output<T>> = LENGTHS.iter().map(|length| lab.output(*length)).collect();
    let sources = list(lab, from.iter().map(|tensor| tensor.slice().address()));
    let targets = list(lab, to.iter_mut().map(|tensor| tensor.slice().address()));
    let lengths = lengths(lab);
    // SAFETY: the lists hold these tensors and their lengths.
    unsafe { copy_all::<T, 256>(&sources, &targets, &lengths).grid(LENGTHS.len()).launch() }.unwrap();
    for (tensor, host) in to.iter_mut().zip(&host) {
        check_bits(&tensor.read(), |i| host[i]);
    }
}

/// One step of AdamW on all parameters of a model: parameters in `bf16`, gradients, and moments in `f32`. The list has the addresses of the
/// parameters first, then those of the gradients, of the first moments and of the second.
#[kernel(B = 256, unchecked)]
fn adam_w_all<const B: usize>(list: Ptr<u64>, lengths: Ptr<u32>, count: usize, rate: f32, decay: f32, step: i32) {
    let tensor = program_id(1);
    let p = load(list + tensor) as PtrMut<bf16>;
    let g = load(list + count + tensor) as Ptr<f32>;
    let m = load(list + 2 * count + tensor) as PtrMut<f32>;
    let v = load(list + 3 * count + tensor) as PtrMut<f32>;
    let at = program_id(0) * B + arange(0, B);
    let mask = at < load(lengths + tensor);
    let gradient = load(g + at, mask = mask);
    let first = 0.9 * load(m + at, mask = mask) + 0.1 * gradient;
    let second = 0.999 * load(v + at, mask = mask) + 0.001 * gradient * gradient;
    store(m + at, first, mask = mask);
    store(v + at, second, mask = mask);
    let old = load(p + at, mask = mask) as f32;
    let mean = first / (1.0 - pow(0.9f32, step as f32));
    let scale = sqrt(second / (1.0 - pow(0.999f32, step as f32))) + 1e-8;
    store(p + at, (old - rate * (mean / scale + decay * old)) as bf16, mask = mask);
}

fn adam_w_of_a_list(lab: &mut Lab) {
    let count = LENGTHS.len();
    let p: Vec<Vec<bf16>> = LENGTHS.iter().map(|length| lab.numbers(*length, -2.0, 2.0)).collect();
    let g: Vec<Vec<f32>> = LENGTHS.iter().map(|length| lab.numbers(*length, -1.0, 1.0)).collect();
    let m: Vec<Vec<f32>> = LENGTHS.iter().map(|length| lab.numbers(*length, -1.0, 1.0)).collect();
    let v: Vec<Vec<f32>> = LENGTHS.iter().map(|length| lab.numbers(*length, 0.0, 1.0)).collect();
    let (mut ps, gs, mut ms, mut vs) = (outputs(lab, &p), inputs(lab, &g), outputs(lab, &m), outputs(lab, &v));
    let mut addresses: Vec<u64> = ps.iter_mut().map(|tensor| tensor.slice().address()).collect();
    addresses.extend(gs.iter().map(|tensor| tensor.slice().address()));
    addresses.extend(ms.iter_mut().chain(&mut vs).map(|tensor| tensor.slice().address()));
    let (list, lengths) = (lab.device.tensor(&addresses).unwrap(), lengths(lab));
    // SAFETY: the list holds these tensors and their lengths, and nobody else uses them.
    unsafe { adam_w_all::<256>(&list, &lengths, count, 0.01, 0.1, 3).grid((20, count)).launch() }.unwrap();
    for index in 0..count {
        let (p, g, m, v) = (&p[index], &g[index], &m[index], &v[index]);
        let first = |i: usize| 0.9 * f64::from(m[i]) + 0.1 * f64::from(g[i]);
        let second = |i: usize| 0.999 * f64::from(v[i]) + 0.001 * f64::from(g[i]).powi(2);
        let new = |i: usize| {
            let (mean, scale) = (first(i) / (1.0 - 0.9f64.powi(3)), (second(i) / (1.0 - 0.999f64.powi(3))).sqrt() + 1e-8);
            p[i].to_f64() - 0.01 * (mean / scale + 0.1 * p[i].to_f64())
        };
        near(&ms[index].read(), |i| (first(i), 1e-6));
        near(&vs[index].read(), |i| (second(i), 1e-6));
        near(&ps[index].read(), |i| (new(i), new(i).abs() / 256.0 + 1e-4));
    }
}

/// Sums that may cancel are held to a distance, not to their last places.
#[track_caller]
fn near<T: FloatValue>(got: &[T], want: impl Fn(usize) -> (f64, f64)) {
    for (i, got) in got.iter().enumerate() {
        let (want, allowed) = want(i);
        assert!((got.wide() - want).abs() <= allowed, "{i}: got {got:?}, want {want:e}");
    }
}

/// A view of what an address leads to.
#[kernel(M = 4, N = 64, unchecked)]
fn row_sums<const M: usize, const N: usize>(list: Ptr<u64>, columns: Ptr<i32>, rows: usize, sums: PtrMut<i32>) {
    let tensor = program_id(1);
    let n = load(columns + tensor) as usize;
    let x = view(load(list + tensor) as Ptr<i32>, [rows, n], [n, 1]);
    let first = program_id(0) * M;
    let mut total = zeros::<i32>([M]);
    for column in (0..n).step_by(N) {
        total += sum(x.load([first, column], [M, N]), axis = 1);
    }
    let at = first + arange(0, M);
    store(sums + tensor * rows + at, total, mask = at < rows);
}

fn sums_of_rows_of_a_list(lab: &mut Lab) {
    let rows = 7;
    let columns = [1usize, 64, 100, 3];
    let host: Vec<Vec<i32>> = columns.iter().map(|n| lab.values(rows * n)).collect();
    let tensors = inputs(lab, &host);
    let addresses = list(lab, tensors.iter().map(|tensor| tensor.slice().address()));
    let widths = lab.device.tensor(&columns.map(|n| n as i32)).unwrap();
    let mut sums = lab.output::<i32>(rows * columns.len());
    // SAFETY: the list holds these matrices.
    unsafe { row_sums::<4, 64>(&addresses, &widths, rows, &mut sums.slice()).grid((2, columns.len())).launch() }.unwrap();
    check_bits(&sums.read(), |i| {
        let (tensor, row) = (i / rows, i % rows);
        let n = columns[tensor];
        host[tensor][row * n..][..n].iter().fold(0i32, |sum, x| sum.wrapping_add(*x))
    });
}

/// Programs that add up in tensors of a list.
#[kernel(B = 64, unchecked)]
fn count_all<const B: usize>(list: Ptr<u64>, tensors: usize, x: Ptr<u32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let key = load(x + at, mask = at < n);
    for tensor in 0..tensors {
        let counts = load(list + tensor) as PtrMut<u32>;
        atomic_add(counts + key % 10, key, mask = (at < n) & (key % tensors as u32 == tensor as u32));
    }
    atomic_max(load(list) as PtrMut<u32> + 10, 7u32);
}

fn counts_by_atomics(lab: &mut Lab) {
    let x: Vec<u32> = (0..1000).map(|_| lab.below(1 << 20) as u32).collect();
    let mut counts = outputs(lab, &vec![vec![0u32; 11]; 3]);
    let addresses = list(lab, counts.iter_mut().map(|tensor| tensor.slice().address()));
    let input = lab.input(&x);
    // SAFETY: the list holds three tensors of ten counts, and one more element behind them.
    unsafe { count_all::<64>(&addresses, 3, input.slice(), x.len()).grid(16).launch() }.unwrap();
    for (tensor, counts) in counts.iter_mut().enumerate() {
        let sum = |i: usize| x.iter().filter(|key| **key as usize % 3 == tensor && **key as usize % 10 == i).sum::<u32>();
        check_bits(&counts.read(), |i| if (tensor, i) == (0, 10) { 7 } else { sum(i) });
    }
}

#[device]
fn add_one<T: Number>(x: PtrMut<T>, n: usize) {
    let at = arange(0, 64);
    store(x + at, load(x + at, mask = at < n) + 1 as T, mask = at < n);
}

#[kernel(unchecked)]
fn add_one_to_both(list: Ptr<i64>, n: usize) {
    add_one(load(list) as PtrMut<f32>, n);
    add_one(load(list + 1) as PtrMut<i16>, n - 1);
}

fn through_a_device_function(lab: &mut Lab) {
    let (x, k): (Vec<f32>, Vec<i16>) = (lab.numbers(20, -9.0, 9.0), lab.values(20));
    let (mut xs, mut ks) = (lab.in_place(&x), lab.in_place(&k));
    let list = lab.device.tensor(&[xs.slice().address() as i64, ks.slice().address() as i64]).unwrap();
    // SAFETY: the list holds these two tensors of twenty elements.
    unsafe { add_one_to_both(&list, 20).grid(1).launch() }.unwrap();
    check_bits(&xs.read(), |i| x[i] + 1.0);
    check_bits(&ks.read(), |i| if i < 19 { k[i].wrapping_add(1) } else { k[i] });
}

/// A list of lists.
#[kernel(unchecked)]
fn deep(lists: Ptr<u64>, y: PtrMut<f32>) {
    let list = load(lists + 1) as Ptr<u64>;
    let x = load(list + 2) as Ptr<f32>;
    store(y, load(x + 3));
}

fn addresses_of_addresses(lab: &mut Lab) {
    let host: Vec<f32> = lab.values(8);
    let x = lab.input(&host);
    let inner = lab.device.tensor(&[0, 0, x.slice().address()]).unwrap();
    let outer = lab.device.tensor(&[0, inner.address()]).unwrap();
    let mut y = lab.output::<f32>(1);
    // SAFETY: the second list's third tensor has eight elements.
    unsafe { deep(&outer, &mut y.slice()).grid(1).launch() }.unwrap();
    check_bits(&y.read(), |_| host[3]);
}

/// Which tensor is read depends on data, and on the iteration of a loop.
#[kernel(B = 32, unchecked)]
fn sum_of_chosen<const B: usize>(list: Ptr<u64>, choice: Ptr<u8>, y: PtrMut<u32>, iterations: usize) {
    let at = arange(0, B);
    let mut total = zeros::<u32>([B]);
    for iteration in 0..iterations {
        let x = load(list + load(choice + iteration)) as Ptr<u32>;
        if iteration % 2 == 0 {
            total += load(x + at);
        } else {
            total -= load(x + (B - 1 - at));
        }
    }
    store(y + at, total);
}

fn chosen_in_a_loop(lab: &mut Lab) {
    let host: Vec<Vec<u32>> = (0..4).map(|_| lab.values(32)).collect();
    let choice: Vec<u8> = (0..13).map(|_| lab.below(4) as u8).collect();
    let tensors = inputs(lab, &host);
    let addresses = list(lab, tensors.iter().map(|tensor| tensor.slice().address()));
    let chosen = lab.input(&choice);
    let mut y = lab.output::<u32>(32);
    // SAFETY: the list has four tensors of 32 elements, and each choice is one of them.
    unsafe { sum_of_chosen::<32>(&addresses, chosen.slice(), &mut y.slice(), choice.len()).grid(1).launch() }.unwrap();
    check_bits(&y.read(), |i| {
        let term = |iteration: usize| host[usize::from(choice[iteration])][if iteration.is_multiple_of(2) { i } else { 31 - i }];
        (0..choice.len()).fold(0u32, |sum, iteration| {
            if iteration.is_multiple_of(2) { sum.wrapping_add(term(iteration)) } else { sum.wrapping_sub(term(iteration)) }
        })
    });
}

/// The address is read between accesses to tiles, and used in a loop behind them.
#[kernel(B = 256, unchecked)]
fn sum_behind<const B: usize>(x: Ptr<i32>, list: Ptr<u64>, y: PtrMut<i32>, n: usize) {
    let at = arange(0, B);
    let mut total = load(x + at, mask = at < n);
    let other = load(list + 1) as Ptr<i32>;
    store(y + at, total, mask = at < n);
    for start in range(0, n, B) {
        total += load(other + start + at, mask = start + at < n);
    }
    store(y + n + at, total);
}

fn read_behind_a_tile(lab: &mut Lab) {
    let (x, other): (Vec<i32>, Vec<i32>) = (lab.values(N), lab.values(N));
    let (a, b) = (lab.input(&x), lab.input(&other));
    let addresses = list(lab, [0, b.slice().address()].into_iter());
    let mut y = lab.output::<i32>(N + 256);
    // SAFETY: the list's second tensor has `N` elements, and the last the room that is stored to.
    unsafe { sum_behind::<256>(a.slice(), &addresses, &mut y.slice(), N).grid(1).launch() }.unwrap();
    let before = y.before().to_vec();
    check_bits(&y.read(), |i| match i {
        0..256 => x[i],
        N.. => other.iter().skip(i - N).step_by(256).fold(x[i - N], |sum, x| sum.wrapping_add(*x)),
        _ => before[i],
    });
}

const N: usize = 1000;

macro_rules! as_numbers {
    ($($name:ident: $ty:ty),*) => {
        $(#[kernel]
        fn $name(x: Ptr<$ty>, y: PtrMut<u64>, i: usize) {
            let at = arange(0, 8);
            store(y + at, (x + i + at) as u64);
            store(y + 8, x as u64);
            store(y + 9, (x + i - 1) as i64 as u64);
        })*

        fn a_pointer_as_a_number(lab: &mut Lab) {
            $({
                let host: Vec<$ty> = lab.values(20);
                let x = lab.device.tensor(&host).unwrap();
                let mut y = lab.output::<u64>(10);
                $name(&x, &mut y.slice(), 5).grid(1).launch().unwrap();
                let offsets = [5, 6, 7, 8, 9, 10, 11, 12, 0, 4];
                check_bits(&y.read(), |i| x.address() + offsets[i] * size_of::<$ty>() as u64);
            })*
        }
    };
}

as_numbers! { address_u8: u8, address_f16: f16, address_f32: f32, address_i64: i64 }

/// A checked launch looks at what it can: an address has a start, but no end.
fn checked_and_with_other_constants(lab: &mut Lab) {
    let host: Vec<Vec<f32>> = LENGTHS.iter().map(|length| lab.numbers(*length, -100.0, 100.0)).collect();
    let mut tensors = outputs(lab, &host);
    let addresses = list(lab, tensors.iter_mut().map(|tensor| tensor.slice().address()));
    let counts = lengths(lab);
    // SAFETY: the list holds these tensors and their lengths, and nobody else uses them.
    unsafe { scale_all::<f32, 128>(&addresses, &counts, 2.0).grid((40, LENGTHS.len())).checked().launch() }.unwrap();
    // SAFETY: as above. The block is compiled in this process.
    unsafe { scale_all::<f32, 512>(&addresses, &counts, 2.0).grid((10, LENGTHS.len())).launch() }.unwrap();
    for (tensor, host) in tensors.iter_mut().zip(&host) {
        check_bits(&tensor.read(), |i| host[i] * 4.0);
    }
    let mut y = lab.output::<f32>(1);
    // SAFETY: the kernel reads in front of a tensor, which a checked launch does not do.
    let result = unsafe { in_front(&addresses, &mut y.slice(), 1).grid(1).checked().launch() };
    let Err(Error::OutOfBounds(found)) = result else { panic!("{result:?}") };
    assert_eq!((found.index, found.op, found.parameter.as_str()), (-1, "load", ""));
    assert!(found.to_string().contains("load at index -1 of what an address leads to"), "{found}");
    // SAFETY: the kernel reads behind the list, which a checked launch does not do.
    let result = unsafe { in_front(&addresses, &mut y.slice(), 100).grid(1).checked().launch() };
    let Err(Error::OutOfBounds(found)) = result else { panic!("{result:?}") };
    assert_eq!((found.index, found.parameter.as_str()), (100, "list"));
}

#[kernel(unchecked)]
fn in_front(list: Ptr<u64>, y: PtrMut<f32>, i: usize) {
    let x = load(list) as Ptr<f32>;
    if i > 1 {
        store(y, load(list + i) as f32);
    } else {
        store(y, load(x - i));
    }
}
