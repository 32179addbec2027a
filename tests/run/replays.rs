//! Replays replay what launches do: on every device, for tuned kernels and plain ones, with other arguments later, on many threads at once.

use galatea::Update;
use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::{check_bits, check_ints};
use crate::value::IntValue;

tests![
    a_chain_is_replayed<i8, u16, i32, u64>,
    other_lengths_and_scalars,
    a_tuned_kernel_runs_as_it_was_tuned,
    a_kernel_that_prints_is_refused,
    many_graphs_on_many_threads,
    many_threads_launch_the_same_kernels,
];

/// x = x * 3 + a
#[kernel(B = 256)]
fn update<T: Int, const B: usize>(x: PtrMut<T>, a: T, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    store(x + at, load(x + at, mask = mask) * 3 + a, mask = mask);
}

/// out = x + y
#[kernel(B = 512)]
fn sum<T: Int, const B: usize>(x: Ptr<T>, y: Ptr<T>, out: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    store(out + at, load(x + at, mask = mask) + load(y + at, mask = mask), mask = mask);
}

fn a_chain_is_replayed<T: IntValue>(lab: &mut Lab) {
    for n in [1, 255, 256, 10_001] {
        let (a, first, second) = (lab.values::<T>(1)[0], lab.values::<T>(n), lab.values::<T>(n));
        let (mut x, y) = (lab.device.tensor(&first).unwrap(), lab.device.tensor(&second).unwrap());
        let mut out = lab.device.zeros::<T>(n).unwrap();
        let mut replay = Replay::capture(lab.device.stream(), || {
            update::<T, 256>(&mut x, a, n).grid(cdiv(n, 256)).launch()?;
            sum::<T, 512>(&x, &y, &mut out, n).grid(cdiv(n, 512)).launch()?;
            x.view_mut().copy_from(&out.view())
        })
        .unwrap();
        for _ in 0..3 {
            replay.launch((&mut x, &y, &mut out)).unwrap();
        }
        let want = |i: usize| (0..3).fold(first[i].wide(), |x, _| T::wrap(x * 3 + a.wide()).wide() + second[i].wide());
        check_ints(&x.to_vec().unwrap(), want);
        check_ints(&out.to_vec().unwrap(), want);
    }
}

fn other_lengths_and_scalars(lab: &mut Lab) {
    let most = 5000;
    let host = lab.values::<u32>(most);
    let mut x = lab.device.tensor(&host).unwrap();
    let mut want = host.clone();
    let mut replay = Replay::capture(lab.device.stream(), || update::<u32, 256>(&mut x, 0, 1).grid(1).launch()).unwrap();
    replay.launch(&mut x).unwrap();
    want[0] = want[0].wrapping_mul(3);
    for _ in 0..5 {
        let (n, a) = (1 + lab.below(most), lab.random() as u32);
        let done = replay.update(|| update::<u32, 256>(&mut x, a, n).grid(cdiv(n, 256)).launch()).unwrap();
        assert_eq!(done, Update::InPlace { changed: 1 });
        replay.launch(&mut x).unwrap();
        want[..n].iter_mut().for_each(|x| *x = x.wrapping_mul(3).wrapping_add(a));
    }
    check_bits(&x.to_vec().unwrap(), |i| want[i]);
}

/// Writes its configuration.
#[autotune(configs = [Config { B: 128, num_warps: 2 }, Config { B: 32, num_warps: 1 }], key = [n])]
#[kernel]
fn chosen<const B: usize>(x: PtrMut<u32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(x + at, full([B], B as u32), mask = at < n);
}

fn a_tuned_kernel_runs_as_it_was_tuned(lab: &mut Lab) {
    // No other test, and no other run, has seen this length.
    let n = 1000 + lab.below(1 << 20);
    let mut x = lab.device.zeros::<u32>(n).unwrap();
    let capture = |x: &mut Tensor<u32>| Replay::capture(lab.device.stream(), || chosen(x, n).grid(|config| cdiv(n, config.B)).launch());
    let untuned = capture(&mut x);
    match untuned {
        Err(Error::InCapture { doing: "tune a kernel", .. }) => assert!(!lab.device.is_cpu()),
        other => assert!(lab.device.is_cpu(), "{other:?}"),
    }
    chosen(&mut x, n).grid(|config| cdiv(n, config.B)).launch().unwrap();
    let want = x.to_vec().unwrap();
    x.fill(0).unwrap();
    let mut replay = capture(&mut x).unwrap();
    replay.launch(&mut x).unwrap();
    check_bits(&x.to_vec().unwrap(), |i| want[i]);
}

#[kernel(B = 32)]
fn says<const B: usize>(x: Ptr<u32>) {
    let v = load(x + arange(0, B));
    device_print!("v is {}", v);
}

fn a_kernel_that_prints_is_refused(lab: &mut Lab) {
    let x = lab.device.zeros::<u32>(32).unwrap();
    let printing = Replay::capture(lab.device.stream(), || says::<32>(&x).grid(1).launch());
    assert!(matches!(printing, Err(Error::InCapture { .. })));
}

fn many_graphs_on_many_threads(lab: &mut Lab) {
    let (device, seed) = (lab.device, lab.random());
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            scope.spawn(move || {
                let mut lab = Lab::new(device, seed ^ thread, "replays");
                let stream = device.new_stream().unwrap();
                let host = lab.values::<u32>(3001);
                let mut x = device.tensor(&host).unwrap();
                let mut replay = Replay::capture(&stream, || update::<u32, 256>(&mut x, thread as u32, 3001).grid(12).launch()).unwrap();
                let iterations = 1 + lab.below(6);
                // In turns with launches at home.
                for iteration in 0..2 * iterations {
                    if iteration % 2 == 0 {
                        replay.launch(&mut x).unwrap();
                    } else {
                        update::<u32, 256>(&mut x, thread as u32, 3001).grid(12).launch().unwrap();
                    }
                }
                check_bits(&x.to_vec().unwrap(), |i| {
                    (0..2 * iterations).fold(host[i], |x, _| x.wrapping_mul(3).wrapping_add(thread as u32))
                });
            });
        }
    });
}

/// Plain and tuned kernels, of the same key and of different ones, for the first time and again, on this device and, where there are several, on all of its kind at once.
fn many_threads_launch_the_same_kernels(lab: &mut Lab) {
    fn is_shared<T: Send + Sync>(launch: T) -> T {
        launch
    }
    let seed = lab.random();
    let devices = if lab.device.is_sim() {
        vec![lab.device, Device::sim(Target::SM_80).unwrap(), Device::sim(Target::SM_90A).unwrap()]
    } else {
        vec![lab.device]
    };
    let tuned = 2000 + lab.below(1000);
    let barrier = std::sync::Barrier::new(6);
    std::thread::scope(|scope| {
        for thread in 0..6usize {
            let (device, barrier) = (devices[thread % devices.len()], &barrier);
            scope.spawn(move || {
                let mut lab = Lab::new(device, seed ^ thread as u64, "threads");
                let n = 1000 + 100 * (thread % 3);
                let (a, b) = (lab.values::<i64>(n), lab.values::<i64>(n));
                let (x, y) = (device.tensor(&a).unwrap(), device.tensor(&b).unwrap());
                let (mut out, mut picked) = (device.zeros::<i64>(n).unwrap(), device.zeros::<u32>(tuned + thread / 3).unwrap());
                barrier.wait();
                for _ in 0..5 {
                    is_shared(sum::<i64, 512>(&x, &y, &mut out, n).grid(cdiv(n, 512))).launch().unwrap();
                    // An unlisted constant is compiled in process, by one of them.
                    is_shared(sum::<i64, 128>(&x, &y, &mut out, n).grid(cdiv(n, 128))).launch().unwrap();
                    let len = picked.len();
                    chosen(&mut picked, len).grid(|config| cdiv(len, config.B)).launch().unwrap();
                }
                check_bits(&out.to_vec().unwrap(), |i| a[i].wrapping_add(b[i]));
                let picked = picked.to_vec().unwrap();
                assert!(picked.iter().all(|&b| b == picked[0] && [32, 128].contains(&b)));
            });
        }
    });
}
