//! Kernels as users write them: the correct one runs under every schedule, and each mistake that its last parameter turns on is found
//! where it is.

use std::fs;

use half::{bf16, f16};
use kernel_sim::{Fault, FaultKind};

use crate::harness::{Cuda, SEEDS, close, load, params, random, whole};

/// The text of the line that a fault names.
fn line(file: &str, fault: &Fault) -> String {
    let path = format!("{}/tests/cuda/{file}.cu", env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    // A mistake in a header is identified by the line that calls it.
    let name = format!("{file}.cu");
    let callers = fault.callers.iter().map(|caller| (caller.file.as_ref(), caller.line));
    let mut positions = std::iter::once((fault.file.as_ref(), fault.line)).chain(callers);
    let number = positions.find(|position| position.0 == Some(&name)).map_or(0, |position| position.1);
    let line = text.lines().nth(number.saturating_sub(1) as usize);
    line.unwrap_or_else(|| panic!("there is no such line: {fault}")).to_owned()
}

/// A mistake is found under every schedule, as a fault of that kind, in a line that contains that text.
#[track_caller]
pub(crate) fn found(file: &str, run: impl Fn(&Cuda) -> Fault, kind: impl Fn(&FaultKind) -> bool, text: &str) {
    for seed in SEEDS {
        let fault = run(&load(file, seed));
        let line = line(file, &fault);
        assert!(kind(&fault.kind) && line.contains(text), "seed {seed}: {fault}\n{line}");
    }
}

/// Two threads are not ordered; the one may also come before the other wrote at all.
pub(crate) fn is_race(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::SharedRace { .. } | FaultKind::UninitialisedMemory { .. })
}

fn is_mask(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::MemberMask { .. })
}

pub(crate) fn is_out_of_bounds(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::OutOfBounds { .. })
}

fn is_uninitialised(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::UninitialisedMemory { .. } | FaultKind::UninitialisedRegister { .. })
}

pub(crate) fn numbers(seed: u64, count: usize, limit: u64) -> Vec<i32> {
    let mut next = random(seed, limit);
    (0..count).map(|_| next() as i32).collect()
}

#[test]
fn early_exit() {
    let input = |cuda: &Cuda| numbers(cuda.seed, 75, 100);
    let params = |cuda: &Cuda, out, mistake| params![cuda.put(&input(cuda)), out, 75i32, mistake];
    for seed in SEEDS {
        let cuda = load("planted", seed);
        let out = cuda.put(&[0i32]);
        cuda.run("early_exit", 2, 64, params(&cuda, out, 0));
        assert_eq!(cuda.get::<i32>(out, 1), [input(&cuda).iter().sum::<i32>()]);
    }
    let run = |mistake| move |cuda: &Cuda| cuda.fault("early_exit", 2, 64, params(cuda, cuda.put(&[0i32]), mistake));
    found("planted", run(1), is_mask, "__shfl_down_sync(mask, sum, offset)");
    found("planted", run(2), is_mask, "__shfl_down_sync(mask, sum, offset)");
    found("planted", run(3), is_out_of_bounds, "out[i + 1] = sum");
}

#[test]
fn blelloch() {
    let input = |cuda: &Cuda| numbers(cuda.seed, 256, 100);
    for seed in SEEDS {
        let cuda = load("planted", seed);
        let out = cuda.allocate(1024);
        cuda.run("blelloch", 1, 128, params![cuda.put(&input(&cuda)), out, 0i32]);
        let sums = input(&cuda)
            .iter()
            .scan(0, |sum, value| {
                *sum += value;
                Some(*sum - value)
            })
            .collect::<Vec<_>>();
        assert_eq!(cuda.get::<i32>(out, 256), sums);
    }
    let run =
        |mistake: i32| move |cuda: &Cuda| cuda.fault("blelloch", 1, 128, params![cuda.put(&input(cuda)), cuda.allocate(1024), mistake]);
    found("planted", run(1), is_race, "tree[");
    let is_caught = |kind: &FaultKind| is_race(kind) || is_out_of_bounds(kind);
    found("planted", run(2), is_caught, "tree[right + (mistake == 2 ? 1 : 0)] += tree[left]");
    found("planted", run(3), is_race, "tree[");
    let is_divergent = |kind: &FaultKind| matches!(kind, FaultKind::DivergentWarp { .. } | FaultKind::Deadlock { .. });
    found("planted", run(4), is_divergent, "__syncthreads()");
}

#[test]
fn last_block() {
    let params = |cuda: &Cuda, out, mistake| params![cuda.put(&whole(cuda.seed, 1000)), cuda.allocate(20), out, 1000i32, mistake];
    for seed in SEEDS {
        let cuda = load("planted", seed);
        let out = cuda.put(&[0.0f32]);
        for _ in 0..2 {
            cuda.run("last_block", 5, 128, params(&cuda, out, 0));
            assert_eq!(cuda.get::<f32>(out, 1), [whole(seed, 1000).iter().sum::<f32>()]);
        }
    }
    let run = |mistake| move |cuda: &Cuda| cuda.fault("last_block", 5, 128, params(cuda, cuda.put(&[0.0f32]), mistake));
    found("planted", run(1), is_race, "sums[threadIdx.x] += ");
    found("planted", run(2), is_race, "is_last");
    found("planted", run(3), is_out_of_bounds, "total += ");
}

#[test]
fn spin_lock() {
    for seed in SEEDS {
        let cuda = load("planted", seed);
        let counts = cuda.put(&[0i32; 2]);
        cuda.run("spin_lock", 4, 40, params![counts, 0i32]);
        assert_eq!(cuda.get::<i32>(counts, 2), [4, 160]);
    }
}

#[test]
fn grid_barrier() {
    for seed in SEEDS {
        let cuda = load("planted", seed);
        let (values, out) = (cuda.allocate(8 * 64 * 4), cuda.allocate(8 * 64 * 4));
        cuda.run("grid_barrier", 8, 64, params![values, out, cuda.put(&[0u32]), 0i32]);
        assert_eq!(cuda.get::<i32>(out, 512), (0..512).rev().map(|i| i * i).collect::<Vec<_>>());
    }
    let run = |cuda: &Cuda| cuda.fault("grid_barrier", 8, 64, params![cuda.allocate(2048), cuda.allocate(2048), cuda.put(&[0u32]), 1i32]);
    let is_stuck = |kind: &FaultKind| matches!(kind, FaultKind::Deadlock { .. } | FaultKind::TooLong { .. });
    found("planted", run, is_stuck, "");
}

#[test]
fn special_functions() {
    for seed in SEEDS {
        let cuda = load("planted", seed);
        let input: Vec<f64> = numbers(seed, 64, 2001).iter().map(|&value| f64::from(value - 1000) / 130.0 + 0.001).collect();
        let out = cuda.allocate(8 * 12 * 64);
        cuda.run("doubles", 1, 64, params![cuda.put(&input), out, 64i32]);
        let results: Vec<f64> = cuda.get(out, 12 * 64);
        for (index, &x) in input.iter().enumerate() {
            let expected = [
                (x.sin(), 4e-16),
                (x.exp(), 4e-16),
                (x.abs().powf(1.7), 1e-15),
                (x / (x * x + 1.0), 4e-16),
                (x.abs().ln(), 4e-16),
                (1.0 / x.abs().sqrt(), 4e-16),
                (x.atan2(2.0), 6e-16),
                (x.cbrt(), 4e-16),
            ];
            for (function, (expected, relative)) in expected.into_iter().enumerate() {
                close(results[function * 64 + index], expected, relative);
            }
            assert_eq!(results[9 * 64 + index], x % 0.7);
            close(results[10 * 64 + index], x.tanh(), 1e-15);
            assert_eq!(results[11 * 64 + index], x.abs().sqrt());
        }
        let input: Vec<f32> = input.iter().map(|&value| value as f32).collect();
        let out = cuda.allocate(4 * 13 * 64);
        cuda.run("floats", 1, 64, params![cuda.put(&input), out, 64i32]);
        let results: Vec<f32> = cuda.get(out, 13 * 64);
        for (index, &x) in input.iter().enumerate() {
            let wide = f64::from(x);
            let expected = [
                (wide.sin(), 2e-7),
                (wide.exp(), 2e-7),
                (wide.abs().powf(f64::from(1.7f32)), 3e-7),
                (f64::from(x / (x * x + 1.0)), 0.0),
                (wide.abs().ln(), 2e-7),
                (1.0 / wide.abs().sqrt(), 2e-7),
                (wide.atan2(2.0), 3e-7),
                (wide.cbrt(), 2e-7),
            ];
            for (function, (expected, relative)) in expected.into_iter().enumerate() {
                close(results[function * 64 + index].into(), expected, relative);
            }
            assert_eq!(results[9 * 64 + index], x % 0.7);
            close(results[10 * 64 + index].into(), wide.tanh(), 3e-7);
            assert_eq!(results[11 * 64 + index], x.abs().sqrt());
            close(results[12 * 64 + index].into(), wide.exp() * wide / 3.0 + wide.sin(), 2e-5);
        }
    }
}

#[test]
fn tiled() {
    let n = 40usize;
    let params = |cuda: &Cuda, out, mistake: i32| {
        params![cuda.put(&whole(cuda.seed, n * n)), cuda.put(&whole(cuda.seed + 1, n * n)), out, n as i32, mistake]
    };
    for seed in SEEDS {
        let cuda = load("planted", seed);
        let out = cuda.allocate(4 * n * n);
        cuda.try_run("tiled", [3, 3, 1], [16, 16, 1], params(&cuda, out, 0)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let (a, b) = (whole(seed, n * n), whole(seed + 1, n * n));
        let expected: Vec<f32> = (0..n * n).map(|index| (0..n).map(|k| a[index / n * n + k] * b[k * n + index % n]).sum()).collect();
        assert_eq!(cuda.get::<f32>(out, n * n), expected);
    }
    let run = |mistake| {
        move |cuda: &Cuda| match cuda.try_run("tiled", [3, 3, 1], [16, 16, 1], params(cuda, cuda.allocate(4 * n * n), mistake)) {
            Err(kernel_sim::LaunchError::Fault(fault)) => *fault,
            other => panic!("{other:?}"),
        }
    };
    found("planted", run(1), is_race, "left[threadIdx.y]");
    found("planted", run(2), is_race, "left[threadIdx.y]");
    found("planted", run(3), is_uninitialised, "sum += left[threadIdx.y][j] * right[j][threadIdx.x]");
    found("planted", run(4), is_out_of_bounds, "right[threadIdx.y][threadIdx.x] = ");
}

#[test]
fn sides() {
    for seed in SEEDS {
        let cuda = load("planted", seed);
        let input = numbers(seed, 32, 1000);
        let out = cuda.allocate(128);
        cuda.run("sides", 1, 32, params![cuda.put(&input), out, 0i32]);
        let first: Vec<i32> = (0..12).map(|lane| input[lane] + input[lane ^ 1]).collect();
        let value: Vec<i32> = (0..32)
            .map(|lane| match lane {
                0..12 => first[lane] + first[3],
                // The lane below the first of the upper side does not take part.
                12 => input[12],
                _ => input[lane] - input[lane - 1],
            })
            .collect();
        let exchanged: Vec<i32> = (0..32).map(|lane| value[lane ^ 5]).collect();
        for (lane, found) in cuda.get::<i32>(out, 32).into_iter().enumerate() {
            assert_eq!(found, exchanged[lane] + 2 * exchanged[lane | 1], "lane {lane}");
        }
    }
    let run =
        |mistake: i32| move |cuda: &Cuda| cuda.fault("sides", 1, 32, params![cuda.put(&numbers(1, 32, 10)), cuda.allocate(128), mistake]);
    let is_stray = |kind: &FaultKind| matches!(kind, FaultKind::InactiveSource { .. });
    found("planted", run(1), is_stray, "value += __shfl_sync(low, value, mistake == 1 ? 20 : 3)");
    found("planted", run(2), is_mask, "__shfl_up_sync(mistake == 2 ? FULL : ~low, value, 1)");
    found("planted", run(3), is_race, "words[lane");
    found("planted", run(4), is_race, "words[lane");
    found("planted", run(5), is_stray, "int below = __shfl_up_sync");
}

#[test]
fn automaton() {
    let params = |cuda: &Cuda, out, mistake: i32| params![cuda.put(&numbers(cuda.seed, 50, 9)), out, 50i32, mistake];
    for seed in SEEDS {
        let cuda = load("planted", seed);
        let out = cuda.allocate(64 * 4);
        cuda.run("automaton", 1, 64, params(&cuda, out, 0));
        let symbols = numbers(seed, 50, 9);
        for (thread, found) in cuda.get::<i32>(out, 64).into_iter().enumerate() {
            let (mut trace, mut state) = ([0, 1, 2, 3i32], thread as i32 & 7);
            for k in 0..50 {
                let symbol = symbols[(thread + k) % 50];
                state = match state {
                    0 => {
                        trace[symbol as usize & 3] += 1;
                        if symbol & 1 == 1 { 3 } else { 1 }
                    }
                    1 => {
                        trace[0] -= symbol;
                        symbol % 5
                    }
                    2 => {
                        if trace[1] > 3 {
                            4
                        } else {
                            0
                        }
                    }
                    3 => {
                        trace[3] ^= symbol;
                        2
                    }
                    4 => {
                        let at = symbol as usize % 4;
                        trace[at] = trace[at].wrapping_mul(3);
                        if symbol > 6 { 5 } else { 1 }
                    }
                    5 => {
                        trace[2] = trace[1].wrapping_add(trace[0]);
                        6
                    }
                    6 => {
                        if trace[3] & 1 == 1 {
                            7
                        } else {
                            0
                        }
                    }
                    _ => {
                        trace[1] = trace[1].wrapping_add(state);
                        0
                    }
                };
            }
            let expected = trace.iter().fold(state, |sum, value| sum.wrapping_mul(31).wrapping_add(*value));
            assert_eq!(found, expected);
        }
    }
    let run = |cuda: &Cuda| cuda.fault("automaton", 1, 64, params(cuda, cuda.allocate(256), 1));
    found("planted", run, is_uninitialised, "trace[");
}

#[test]
fn named_barriers() {
    let params = |cuda: &Cuda, out, mistake: i32| params![cuda.put(&numbers(cuda.seed, 7 * 32, 100)), out, 7i32, mistake];
    for seed in SEEDS {
        let cuda = load("planted", seed);
        let out = cuda.allocate(96 * 4);
        cuda.run("named_barriers", 1, 128, params(&cuda, out, 0));
        let input = numbers(seed, 7 * 32, 100);
        let expected: Vec<i32> =
            (0..96).map(|thread| (0..7).map(|round| input[round * 32 + (thread + thread / 32 + 1) % 32]).sum()).collect();
        assert_eq!(cuda.get::<i32>(out, 96), expected);
    }
    let run = |mistake| move |cuda: &Cuda| cuda.fault("named_barriers", 1, 128, params(cuda, cuda.allocate(384), mistake));
    found("planted", run(1), |kind| is_race(kind) || matches!(kind, FaultKind::Barrier { .. }), "");
    // Warps that do not wait read the buffer too early, and arrive too often at the barrier of the producer.
    found("planted", run(2), |kind| is_race(kind) || matches!(kind, FaultKind::Barrier { .. }), "stage");
    let is_barrier = |kind: &FaultKind| matches!(kind, FaultKind::Barrier { .. } | FaultKind::Deadlock { .. });
    found("planted", run(3), is_barrier, "bar.");
}

#[test]
fn packed() {
    let halves = |seed| -> Vec<f16> { whole(seed, 128).into_iter().map(|value| f16::from_f32(value / 4.0)).collect() };
    let brains = |seed| -> Vec<bf16> { whole(seed, 128).into_iter().map(bf16::from_f32).collect() };
    let params = |cuda: &Cuda, out, mistake: i32| params![cuda.put(&halves(cuda.seed)), cuda.put(&brains(cuda.seed + 1)), out, mistake];
    for seed in SEEDS {
        let cuda = load("planted", seed);
        let out = cuda.allocate(512);
        cuda.run("packed", 1, 64, params(&cuda, out, 0));
        let (a, b) = (halves(seed), brains(seed + 1));
        let (half, brain) = (|at: usize| a[at].to_f32() * a[at].to_f32() + 0.5, |at: usize| -b[at].to_f32() * b[at].to_f32());
        let out: Vec<f32> = cuda.get(out, 128);
        for i in 0..64 {
            let (x, y) = (2 * (63 - i), 2 * ((i + 1) & 63));
            assert_eq!(out[2 * i], half(x) + brain(y));
            let least = a[2 * i].to_f32().min(a[2 * (i ^ 1)].to_f32());
            assert_eq!(out[2 * i + 1], half(x + 1) + brain(y + 1) + least + 1.0);
        }
    }
    let run = |cuda: &Cuda| cuda.fault("packed", 1, 64, params(cuda, cuda.allocate(512), 1));
    // Both the stores and the loads index with `i`.
    found("planted", run, is_race, "i]");
}
