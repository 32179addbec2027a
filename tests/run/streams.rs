//! Launches after launches: in place, on several streams, from several threads.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{check_bits, check_ints};
use crate::value::IntValue;

tests![in_place<i8, u16, i32, u64>, two_streams_keep_the_order, a_stream_of_its_own, neighbours_in_one_tensor, whole_tensors, threads_launch_beside_each_other];

/// x = x * 3 + a: read and written through one pointer.
#[kernel(B = 256)]
fn update<T: Int, const B: usize>(x: PtrMut<T>, a: T, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    store(x + at, load(x + at, mask = mask) * 3 + a, mask = mask);
}

fn in_place<T: IntValue>(lab: &mut Lab) {
    for n in [0, 1, 255, 256, 257, 10_001] {
        let more = lab.below(600);
        let host = lab.values::<T>(n + more);
        let a = lab.values::<T>(1)[0];
        let mut x = lab.in_place(&host);
        for _ in 0..3 {
            update::<T, 256>(&mut x.slice(), a, n).grid(cdiv(n, 256)).launch().unwrap();
        }
        let iterations = |i: usize| if i < n { 3 } else { 0 };
        check_ints(&x.read(), |i| (0..iterations(i)).fold(host[i].wide(), |v, _| T::wrap(v * 3).wide() + a.wide()));
    }
}

#[kernel(B = 512)]
fn combine<const B: usize>(x: Ptr<u32>, y: Ptr<u32>, out: PtrMut<u32>) {
    let at = program_id(0) * B + arange(0, B);
    store(out + at, load(x + at) * 5 + load(y + at));
}

/// Two streams read and write the same three tensors in turns; every launch must see all earlier ones.
fn two_streams_keep_the_order(lab: &mut Lab) {
    let n = 200_003;
    let streams = [lab.device.new_stream().unwrap(), lab.device.new_stream().unwrap()];
    let mut host = [(); 3].map(|()| lab.values::<u32>(n));
    let mut tensors = host.each_ref().map(|host| lab.device.tensor(host).unwrap());
    for iteration in 0..24 {
        let stream = &streams[lab.below(2)];
        let [a, b, c] = &mut tensors;
        let (x, y, out) = match iteration % 3 {
            0 => (&*a, &*b, c),
            1 => (&*b, &*c, a),
            _ => (&*c, &*a, b),
        };
        let launch = combine::<512>(x, y, out).grid(cdiv(n, 512));
        if iteration % 7 == 3 { launch.launch() } else { launch.on(stream).launch() }.unwrap();
        let (x, y, out) = (iteration % 3, (iteration + 1) % 3, (iteration + 2) % 3);
        host[out] = (0..n).map(|i| host[x][i].wrapping_mul(5).wrapping_add(host[y][i])).collect();
    }
    for (tensor, host) in tensors.iter().zip(&host) {
        check_bits(&tensor.to_vec().unwrap(), |i| host[i]);
    }
}

fn a_stream_of_its_own(lab: &mut Lab) {
    let n = 50_001;
    let stream = lab.device.new_stream().unwrap();
    let (a, b) = (lab.values::<u32>(n), lab.values::<u32>(n));
    let (mut x, y) = (lab.device.tensor(&a).unwrap(), lab.device.tensor(&b).unwrap());
    x.set_stream(&stream).unwrap();
    let mut out = lab.device.empty_like(&x).unwrap();
    out.set_stream(&stream).unwrap();
    combine::<512>(&x, &y, &mut out).grid(cdiv(n, 512)).launch().unwrap();
    combine::<512>(&out, &y, &mut x).grid(cdiv(n, 512)).launch().unwrap();
    stream.synchronize().unwrap();
    let first = |i: usize| a[i].wrapping_mul(5).wrapping_add(b[i]);
    check_bits(&out.to_vec().unwrap(), first);
    check_bits(&x.to_vec().unwrap(), |i| first(i).wrapping_mul(5).wrapping_add(b[i]));
}

fn neighbours_in_one_tensor(lab: &mut Lab) {
    let host = lab.values::<i32>(1000);
    let mut x = lab.device.tensor(&host).unwrap();
    for start in (0..1000).step_by(100) {
        let mut part = x.slice_mut(start + 1..start + 99).unwrap();
        update::<i32, 256>(&mut part, start as i32, 256).grid(1).launch().unwrap();
    }
    check_bits(&x.to_vec().unwrap(), |i| match i % 100 {
        0 | 99 => host[i],
        _ => host[i].wrapping_mul(3).wrapping_add((i / 100 * 100) as i32),
    });
}

fn whole_tensors(lab: &mut Lab) {
    let n = 1_000_001;
    let host = lab.values::<u64>(n);
    let mut x = lab.device.tensor_from(&host, [1, n]).unwrap();
    update::<u64, 256>(&mut x, 11, n).grid(cdiv(n, 256)).launch().unwrap();
    update::<u64, 256>(&mut x, 12, n).grid(cdiv(n, 256)).launch().unwrap();
    check_bits(&x.to_vec().unwrap(), |i| host[i].wrapping_mul(9).wrapping_add(45));
}

fn threads_launch_beside_each_other(lab: &mut Lab) {
    let (device, seed) = (lab.device, lab.random());
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                let mut lab = Lab::new(device, seed ^ thread, "thread");
                let host = lab.values::<u32>(3001);
                let y = lab.input(&host);
                for _ in 0..10 {
                    let mut out = lab.output::<u32>(3001);
                    combine::<512>(y.slice(), y.slice(), &mut out.slice()).grid(6).launch().unwrap();
                    check_bits(&out.read(), |i| host[i].wrapping_mul(6));
                }
            });
        }
    });
}
