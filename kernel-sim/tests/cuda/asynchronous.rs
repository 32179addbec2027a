//! Pipelines of asynchronous copies, mbarriers, tensor cores and clusters: right ones run, and each mistake that the last parameter
//! turns on is found.

use half::bf16;
use kernel_sim::FaultKind;

use crate::harness::{Cuda, SEEDS, load, params, whole};
use crate::planted::{found, is_out_of_bounds, is_race, numbers};

fn is_pending(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::PendingAsync { .. }) || is_race(kind)
}

fn is_any(_: &FaultKind) -> bool {
    true
}

#[test]
fn mma_pipeline() {
    let n = 80usize;
    let brains = |seed| -> Vec<bf16> { whole(seed, 32 * n).into_iter().map(bf16::from_f32).collect() };
    let params =
        |cuda: &Cuda, out, mistake: i32| params![cuda.put(&brains(cuda.seed)), cuda.put(&brains(cuda.seed + 1)), out, n as i32, mistake];
    for seed in SEEDS {
        let cuda = load("async", seed);
        let out = cuda.allocate(4096);
        let total = cuda.run("mma_pipeline", 1, 128, params(&cuda, out, 0)).total();
        let (a, b) = (whole(seed, 32 * n), whole(seed + 1, 32 * n));
        let expected: Vec<f32> = (0..1024).map(|index| (0..n).map(|k| a[index / 32 * n + k] * b[index % 32 * n + k]).sum()).collect();
        assert_eq!(cuda.get::<f32>(out, 1024), expected);
        assert_eq!((total.matrix_flops, total.global.load_bytes), (2 * 32 * 32 * n as u64, 2 * 32 * n as u64 * 2));
        // Rows of 48 bytes suit `ldmatrix`; a quarter of a warp's copies, 4 rows of 32 bytes, meets 4 of its banks twice.
        assert_eq!(total.shared.bank_conflicts(), 4 * 4 * n as u64 / 16);
    }
    let run = |mistake| move |cuda: &Cuda| cuda.fault("mma_pipeline", 1, 128, params(cuda, cuda.allocate(4096), mistake));
    found("async", run(1), is_pending, "ldmatrix");
    found("async", run(2), is_pending, "ldmatrix");
    found("async", run(3), is_pending, "");
    found("async", run(4), |kind| matches!(kind, FaultKind::Misaligned { .. }), "ldmatrix");
}

#[test]
fn bulk_pipeline() {
    let params = |cuda: &Cuda, out, mistake: i32| params![cuda.put(&numbers(cuda.seed, 5 * 128, 100)), out, 5i32, mistake];
    for seed in SEEDS {
        let cuda = load("async", seed);
        let out = cuda.allocate(512);
        let total = cuda.run("bulk_pipeline", 1, 128, params(&cuda, out, 0)).total();
        let input = numbers(seed, 5 * 128, 100);
        let expected: Vec<i32> = (0..128).map(|thread| (0..5).map(|tile| input[tile * 128 + (thread ^ 1)]).sum()).collect();
        assert_eq!(cuda.get::<i32>(out, 128), expected);
        assert_eq!(total.async_bytes, 6 * 512);
    }
    let run = |mistake| move |cuda: &Cuda| cuda.fault("bulk_pipeline", 1, 128, params(cuda, cuda.allocate(512), mistake));
    found("async", run(1), is_any, "mbarrier.");
    found("async", run(2), |kind| matches!(kind, FaultKind::Deadlock { .. } | FaultKind::TooLong { .. }), "mbarrier.try_wait");
    found("async", run(3), is_any, "");
    found("async", run(4), is_pending, "stages[tile & 1]");
    found("async", run(5), is_pending, "");
    found("async", run(6), is_any, "cp.async.bulk.global.shared::cta");
    found("async", run(7), is_pending, "result[0] = 0");
}

#[test]
fn producer_consumer() {
    let params = |cuda: &Cuda, out, mistake: i32| params![cuda.put(&numbers(cuda.seed, 6 * 32, 100)), out, 6i32, mistake];
    for seed in SEEDS {
        let cuda = load("async", seed);
        let out = cuda.allocate(128);
        cuda.run("producer_consumer", 1, 64, params(&cuda, out, 0));
        let input = numbers(seed, 6 * 32, 100);
        let expected: Vec<i32> = (0..32).map(|lane| (0..6).map(|round| input[round * 32 + 31 - lane]).sum()).collect();
        assert_eq!(cuda.get::<i32>(out, 32), expected);
    }
    let run = |mistake| move |cuda: &Cuda| cuda.fault("producer_consumer", 1, 64, params(cuda, cuda.allocate(128), mistake));
    found("async", run(2), is_race, "buffer[");
    for seed in SEEDS {
        for mistake in [1, 3] {
            run(mistake)(&load("async", seed));
        }
    }
}

#[test]
fn library_bulk() {
    for seed in SEEDS {
        let cuda = load("async", seed);
        let (input, out) = (numbers(seed, 256, 1000), cuda.allocate(1024));
        cuda.run("library_bulk", 1, 64, params![cuda.put(&input), out]);
        assert_eq!(cuda.get::<i32>(out, 256), input.iter().rev().map(|value| value + 1).collect::<Vec<_>>());
    }
}

#[test]
fn cluster_histogram() {
    let params = |cuda: &Cuda, bins, mistake: i32| params![cuda.put(&numbers(cuda.seed, 900, 64)), bins, 900i32, mistake];
    for seed in SEEDS {
        let cuda = load("async", seed);
        let bins = cuda.put(&[0i32; 64]);
        cuda.run("cluster_histogram", 8, 64, params(&cuda, bins, 0));
        let mut expected = vec![0; 64];
        numbers(seed, 900, 64).into_iter().for_each(|bin| expected[bin as usize] += 1);
        assert_eq!(cuda.get::<i32>(bins, 64), expected);
    }
    let run = |mistake| move |cuda: &Cuda| cuda.fault("cluster_histogram", 8, 64, params(cuda, cuda.put(&[0i32; 64]), mistake));
    for seed in SEEDS {
        for mistake in [1, 2] {
            let fault = run(mistake)(&load("async", seed));
            assert!(is_race(&fault.kind), "{fault}");
        }
        let fault = run(3)(&load("async", seed));
        assert!(is_out_of_bounds(&fault.kind), "{fault}");
    }
    found("async", run(4), is_race, "there[bin % 16] += 1");
}
