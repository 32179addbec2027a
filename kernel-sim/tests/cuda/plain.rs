//! Small kernels of many kinds: each result is compared with a reference, and counters where they are known.

use half::{bf16, f16};
use kernel_sim::Class;

use crate::harness::{SEEDS, close, load, params, random, whole};

#[test]
fn vector_add() {
    for seed in SEEDS {
        let cuda = load("vector_add", seed);
        let (a, b) = (whole(seed, 1000), whole(seed + 50, 1000));
        let sums: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
        let out = cuda.allocate(4000);
        let total = cuda.run("vector_add", 8, 128, params![cuda.put(&a), cuda.put(&b), out, 1000i32]).total();
        assert_eq!(cuda.get::<f32>(out, 1000), sums);
        assert_eq!((total.global.load_bytes, total.global.store_bytes), (8000, 4000));
        assert_eq!(total.global.efficiency(), 1.0);
        let out = cuda.allocate(4000);
        let total = cuda.run("vector_add_grid", 2, 64, params![cuda.put(&a), cuda.put(&b), out, 250u32]).total();
        assert_eq!(cuda.get::<f32>(out, 1000), sums);
        assert_eq!((total.global.load_bytes, total.global.store_bytes), (8000, 4000));
    }
}

#[test]
fn transpose() {
    for seed in SEEDS {
        let cuda = load("transpose", seed);
        let (rows, columns) = (50, 70);
        let input = whole(seed, rows * columns);
        let out = cuda.allocate(4 * rows * columns);
        let params = params![cuda.put(&input), out, rows as i32, columns as i32];
        let counters = cuda.try_run("transpose", [3, 2, 1], [32, 8, 1], params).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let found: Vec<f32> = cuda.get(out, rows * columns);
        for (index, value) in found.into_iter().enumerate() {
            assert_eq!(value, input[index % rows * columns + index / rows]);
        }
        let shared = counters.total().shared;
        assert_eq!((shared.bank_conflicts(), shared.load_bytes, shared.store_bytes), (0, 14000, 14000));
    }
}

#[test]
fn reduce() {
    for seed in SEEDS {
        let cuda = load("reduce", seed);
        let input = whole(seed, 3001);
        let out = cuda.put(&[0.0f32]);
        let counters = cuda.run("reduce", 5, 96, params![cuda.put(&input), out, 3001i32]);
        assert_eq!(cuda.get::<f32>(out, 1), [input.iter().sum::<f32>()]);
        // Five shuffles in each warp of a CTA, and again in the first.
        assert_eq!(counters.total().of(Class::Warp), 5 * (3 + 1) * 5);
    }
}

#[test]
fn histogram() {
    for seed in SEEDS {
        let cuda = load("histogram", seed);
        let mut next = random(seed, 200);
        let input: Vec<u8> = (0..2000).map(|_| next() as u8).collect();
        let bins = cuda.put(&[0u32; 256]);
        cuda.run("histogram", 3, 100, params![cuda.put(&input), bins, 2000i32]);
        let mut expected = vec![0u32; 256];
        input.iter().for_each(|&value| expected[usize::from(value)] += 1);
        assert_eq!(cuda.get::<u32>(bins, 256), expected);
    }
}

#[test]
fn atomics() {
    for seed in SEEDS {
        let cuda = load("histogram", seed);
        let (ints, longs) = (cuda.put(&[5i32; 132]), cuda.put(&[0u64; 33]));
        let (doubles, flag) = (cuda.put(&[1.0f64]), cuda.put(&[0u32]));
        cuda.run("atomics", 1, 32, params![ints, longs, doubles, flag]);
        let found: Vec<i32> = cuda.get(ints, 132);
        assert_eq!(found[..3], [31, -31, 5 ^ (0..32).fold(0, |all, lane| all ^ lane)]);
        assert_eq!(found[100..], [31; 32]);
        // The counter starts from what some lane left there, and wraps after 17.
        let mut turns = found[4..36].to_vec();
        turns.sort_unstable();
        let chain = |first: i32| {
            let mut chain: Vec<i32> = std::iter::successors(Some(first), |&at| Some(if at >= 17 { 0 } else { at + 1 })).take(32).collect();
            chain.sort_unstable();
            chain
        };
        assert!((0..32).any(|first| chain(first) == turns), "{turns:?}");
        let found: Vec<u64> = cuda.get(longs, 33);
        assert!((0..found[0]).all(|at| found[1 + at as usize] == at), "{found:?}");
        assert_eq!(cuda.get::<f64>(doubles, 1), [1.0 + 0.5 * 496.0]);
        assert_eq!(cuda.get::<u32>(flag, 1), [32]);
    }
}

#[test]
fn device_function() {
    for seed in SEEDS {
        let cuda = load("device_function", seed);
        let coefficients = [1.0f32, -0.5, 0.25, 0.125, -2.0];
        let points: Vec<f32> = whole(seed, 86).iter().map(|value| value / 7.0).collect();
        let (out, steps) = (cuda.allocate(70 * 8), cuda.allocate(70 * 4));
        let mut params = params![cuda.put(&points), out, steps, 70i32];
        let polynomial = coefficients.iter().flat_map(|value| value.to_le_bytes()).chain(3i32.to_le_bytes()).collect();
        params.insert(0, polynomial);
        cuda.run("ranges", 3, 32, params);
        let (ranges, steps): (Vec<f32>, Vec<u32>) = (cuda.get(out, 140), cuda.get(steps, 70));
        for i in 0..70 {
            let value = |x: f32| (0..=3).rev().fold(0.0f32, |value, power| value.mul_add(x, coefficients[power]));
            let values: Vec<f32> = points[i..i + 16].iter().map(|&x| value(x)).collect();
            assert_eq!(ranges[2 * i], values.iter().copied().fold(f32::MAX, f32::min));
            assert_eq!(ranges[2 * i + 1], values.iter().copied().fold(f32::MIN, f32::max));
            let mut number = i as u32 + 1;
            let mut count = 0;
            while number != 1 {
                number = if number % 2 == 1 { 3 * number + 1 } else { number / 2 };
                count += 1;
            }
            assert_eq!(steps[i], count);
        }
    }
}

#[test]
fn dynamic_shared() {
    for seed in SEEDS {
        let mut cuda = load("dynamic_shared", seed);
        cuda.shared_bytes = 2 * 4 * 96;
        let mut next = random(seed, 100);
        let input: Vec<i32> = (0..90).map(|_| next() as i32).collect();
        let out = cuda.put(&[0i32; 90]);
        cuda.run("scan", 1, 96, params![cuda.put(&input), out, 90i32]);
        let sums: Vec<i32> = input
            .iter()
            .scan(0, |sum, value| {
                *sum += value;
                Some(*sum)
            })
            .collect();
        assert_eq!(cuda.get::<i32>(out, 90), sums);

        cuda.shared_bytes = 0;
        let input: Vec<i32> = (0..512).map(|at| at * 3 + seed as i32).collect();
        let out = cuda.allocate(2048);
        cuda.run("neighbours", 4, 128, params![cuda.put(&input), out]);
        let expected: Vec<i32> = (0..512).map(|at| input[at ^ 128]).collect();
        assert_eq!(cuda.get::<i32>(out, 512), expected);
    }
}

#[test]
fn halves() {
    for seed in SEEDS {
        let cuda = load("halves", seed);
        let some = |seed| -> Vec<f16> { whole(seed, 200).iter().map(|value| f16::from_f32(value / 4.0)).collect() };
        let (a, b) = (some(seed), some(seed + 9));
        let out = cuda.allocate(400);
        cuda.run("halves", 1, 128, params![cuda.put(&a), cuda.put(&b), out, 100i32]);
        for (index, found) in cuda.get::<f16>(out, 200).into_iter().enumerate() {
            let (x, y) = (a[index].to_f64(), b[index].to_f64());
            let sum = f16::from_f64(x.mul_add(y, x.max(y)).max(0.0)).to_f64() + y.exp2();
            if (sum - y).abs() > 0.02 {
                assert_eq!(found, f16::from_f32(f32::from(u8::from(sum > y))), "{x} {y}");
            }
        }
    }
}

/// The value of each e4m3 number (OCP 8-bit Floating Point Specification).
fn e4m3(bits: u8) -> f32 {
    let (exponent, fraction) = (i32::from(bits >> 3 & 15), f32::from(bits & 7));
    let size = if exponent == 0 { fraction / 8.0 * 2f32.powi(-6) } else { (1.0 + fraction / 8.0) * 2f32.powi(exponent - 7) };
    if bits >> 7 == 1 { -size } else { size }
}

#[test]
fn brains() {
    for seed in SEEDS {
        let cuda = load("halves", seed);
        let input: Vec<bf16> =
            whole(seed, 200).iter().enumerate().map(|(index, value)| bf16::from_f32(value * (index as f32) / 37.0)).collect();
        let (out, narrow, tiny) = (cuda.allocate(800), cuda.allocate(200), cuda.allocate(200));
        cuda.run("brains", 2, 64, params![cuda.put(&input), out, narrow, tiny, 100i32]);
        let (out, narrow, tiny): (Vec<f32>, Vec<bf16>, Vec<u8>) = (cuda.get(out, 200), cuda.get(narrow, 100), cuda.get(tiny, 200));
        for index in 0..200 {
            let square = bf16::from_f32(input[index].to_f32() * input[index].to_f32()).to_f32();
            assert_eq!(out[index], square);
            let nearest = (0..127u8).min_by(|&left, &right| {
                let far = |bits: u8| (e4m3(bits) - square).abs();
                far(left).total_cmp(&far(right)).then((left & 1).cmp(&(right & 1)))
            });
            assert_eq!(Some(tiny[index]), nearest, "{square}");
        }
        for index in 0..100 {
            let cut = (out[2 * index] - out[2 * index + 1]).to_bits() & 0xffff_0000;
            assert_eq!(narrow[index].to_f32().to_bits(), cut);
        }
    }
}

#[test]
fn matrices() {
    for seed in SEEDS {
        let cuda = load("matrix", seed);
        let (a, b) = (whole(seed, 16 * 64), whole(seed + 3, 16 * 64));
        let halves = |values: &[f32]| -> Vec<f16> { values.iter().map(|&value| f16::from_f32(value)).collect() };
        let c = cuda.allocate(1024);
        let total = cuda.run("wmma", 1, 32, params![cuda.put(&halves(&a)), cuda.put(&halves(&b)), c]).total();
        let dot = |row: usize, column: usize, depth: usize| (0..depth).map(|k| a[row * depth + k] * b[column * depth + k]).sum::<f32>();
        let expected: Vec<f32> = (0..256).map(|index| dot(index / 16, index % 16, 64)).collect();
        assert_eq!(cuda.get::<f32>(c, 256), expected);
        assert_eq!(total.matrix_flops, 2 * 16 * 16 * 64);

        let brains = |values: &[f32]| -> Vec<bf16> { values.iter().map(|&value| bf16::from_f32(value)).collect() };
        let c = cuda.allocate(512);
        let total = cuda.run("mma", 1, 32, params![cuda.put(&brains(&a[..256])), cuda.put(&brains(&b[..128])), c]).total();
        let expected: Vec<f32> = (0..128).map(|index| dot(index / 8, index % 8, 16)).collect();
        assert_eq!(cuda.get::<f32>(c, 128), expected);
        assert_eq!(total.matrix_flops, 2 * 16 * 8 * 16);
    }
}

#[test]
fn pipelines() {
    for seed in SEEDS {
        let mut cuda = load("pipeline", seed);
        cuda.shared_bytes = 2 * 64 * 4;
        let input = whole(seed, 7 * 64);
        let out = cuda.allocate(2 * 64 * 4);
        let total = cuda.run("pipeline", 2, 64, params![cuda.put(&input), out, 7i32]).total();
        let expected: Vec<f32> = (0..128).map(|thread| (0..7).map(|tile| input[tile * 64 + ((thread % 64) ^ 1)]).sum()).collect();
        assert_eq!(cuda.get::<f32>(out, 128), expected);
        assert_eq!((total.global.load_bytes, total.async_bytes), (2 * 7 * 64 * 4, 0));

        cuda.shared_bytes = 0;
        let input: Vec<i32> = (0..512).map(|at| at * 7 - seed as i32).collect();
        let out = cuda.allocate(2048);
        cuda.run("pipeline_asm", 1, 128, params![cuda.put(&input), out]);
        let expected: Vec<i32> = (0..512).map(|at| input[(127 - at / 4) * 4 + at % 4]).collect();
        assert_eq!(cuda.get::<i32>(out, 512), expected);
    }
}

#[test]
fn sin_cos() {
    for seed in SEEDS {
        let cuda = load("sin_cos", seed);
        let mut next = random(seed, 1 << 30);
        let input: Vec<f64> = (0..64).map(|at| (next() as f64 - 5e8) * 10f64.powi(at % 40 - 12)).collect();
        let (sines, cosines) = (cuda.allocate(512), cuda.allocate(512));
        cuda.run("sin_cos", 2, 32, params![cuda.put(&input), sines, cosines, 64i32]);
        for (index, (sine, cosine)) in cuda.get::<f64>(sines, 64).into_iter().zip(cuda.get::<f64>(cosines, 64)).enumerate() {
            close(sine, input[index].sin(), 4e-16);
            close(cosine, input[index].cos(), 4e-16);
        }
        let divisors: Vec<f64> = input.iter().rev().map(|value| value + 0.3).collect();
        let (quotients, rounded) = (cuda.allocate(512), cuda.allocate(512));
        let small: Vec<f64> = input.iter().map(|value| value % 1e15).collect();
        cuda.run("divide", 2, 32, params![cuda.put(&small), cuda.put(&divisors), quotients, rounded, 64i32]);
        let (quotients, rounded): (Vec<f64>, Vec<i64>) = (cuda.get(quotients, 64), cuda.get(rounded, 64));
        for index in 0..64 {
            assert_eq!(quotients[index], small[index] / divisors[index] + small[index].abs().sqrt());
            assert_eq!(rounded[index], small[index].round_ties_even() as i64 % (index as i64 + 1));
        }
    }
}

#[test]
fn tables() {
    for seed in SEEDS {
        let cuda = load("tables", seed);
        let mut next = random(seed, 12);
        let input: Vec<i32> = (0..32).map(|_| next() as i32).collect();
        let (out, lengths) = (cuda.allocate(256), cuda.allocate(128));
        cuda.run("lookup", 1, 32, params![cuda.put(&input), out, lengths]);
        let weights = [[0.25f32, -1.5, 3.0e-40], [1.0, 2.0, 4.0], [0.1, 0.0, 0.0], [0.0; 3]];
        let (out, lengths): (Vec<f64>, Vec<i32>) = (cuda.get(out, 32), cuda.get(lengths, 32));
        for index in 0..32 {
            let at = input[index] as usize;
            assert_eq!(out[index], f64::from(weights[at & 3][at % 3]) * 0.1);
            assert_eq!(lengths[index], [4, 3, 4][at % 3] - 2 + 3 + [97, 98][at & 1]);
        }

        let values: Vec<f32> = whole(seed, 32).iter().map(|value| value.abs() + 0.5).collect();
        let out = cuda.put(&values);
        cuda.run("choose", 1, 32, params![cuda.put(&input), out]);
        for (index, found) in cuda.get::<f32>(out, 32).into_iter().enumerate() {
            let x = values[index];
            let expected = match input[index] {
                0 => x + 1.0,
                1 => x * x,
                2 => x.sqrt(),
                3 => 1.0 / x,
                4 => x.exp(),
                5 => x.ln().min(3.0),
                6 => x.min(3.0),
                7 => x.floor(),
                8 => f32::from_bits(x.to_bits() ^ 5),
                9 => x.tanh(),
                _ => -x,
            };
            close(found.into(), expected.into(), if matches!(input[index], 4 | 5 | 9) { 1e-6 } else { 0.0 });
        }

        let values: Vec<i32> = input.iter().map(|value| value * 1000 - 5000).collect();
        let out = cuda.put(&values);
        cuda.run("jump", 1, 32, params![out]);
        let expected = values.iter().map(|&value| match value as u32 % 3 {
            0 => value + 100,
            1 => value.wrapping_mul(-7),
            _ => value ^ 0x55,
        });
        assert_eq!(cuda.get::<i32>(out, 32), expected.collect::<Vec<_>>());
    }
}

#[test]
fn warp() {
    for seed in SEEDS {
        let cuda = load("warp", seed);
        let mut next = random(seed, 9);
        let input: Vec<i32> = (0..96).map(|thread| if thread >= 64 { 7 } else { next() as i32 - 1 }).collect();
        let out = cuda.allocate(384);
        cuda.run("warp", 1, 96, params![cuda.put(&input), out]);
        for (thread, found) in cuda.get::<i32>(out, 96).into_iter().enumerate() {
            let (warp, lane) = (&input[thread / 32 * 32..][..32], thread % 32);
            let mask = |holds: &dyn Fn(i32) -> bool| (0..32).filter(|&at| holds(warp[at])).fold(0u32, |mask, at| mask | 1 << at);
            let agree = warp.iter().all(|&value| value == warp[0]);
            let odd = mask(&|value| value & 1 == 1);
            let mut expected = mask(&|value| value > 0) as i32;
            expected = expected.wrapping_add(i32::from(warp.contains(&7)) + i32::from(!warp.contains(&0)));
            expected = expected.wrapping_add(mask(&|value| value == warp[lane]) as i32);
            expected = expected.wrapping_add(i32::from(agree)).wrapping_add(if agree { -1 } else { 0 });
            expected = expected.wrapping_add(warp.iter().sum::<i32>());
            expected = expected.wrapping_add(*warp.iter().max_by_key(|&&value| value as u32).unwrap());
            expected = expected.wrapping_add(warp[lane & 16 | (lane + 1) & 15] + warp[lane ^ 3]);
            expected = expected.wrapping_add(warp[lane & 24..][..8].iter().sum::<i32>());
            if warp[lane] & 1 == 1 {
                expected = expected.wrapping_add(odd.count_ones() as i32 + (odd & ((1 << lane) - 1)).count_ones() as i32);
            }
            assert_eq!(found, expected.wrapping_add(32), "seed {seed}, thread {thread}");
        }
    }
}
