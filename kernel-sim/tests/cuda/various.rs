//! Kernels of the kinds that first programs and benchmarks have.

use half::{bf16, f16};

use crate::harness::{SEEDS, close, load, params, random, whole};
use crate::planted::numbers;

#[test]
fn mandelbrot() {
    let (width, height, limit) = (50usize, 30usize, 60);
    let point = |x: usize, y: usize| {
        let (re, im) = (-2.0 + 3.0 * x as f64 / width as f64, -1.5 + 3.0 * y as f64 / height as f64);
        let (mut a, mut b) = (0.0f64, 0.0f64);
        let escapes = (0..limit).position(|_| {
            if a * a + b * b > 4.0 {
                return true;
            }
            (a, b) = (a * a - b * b + re, 2.0 * a * b + im);
            false
        });
        escapes.map_or(limit, |round| round as i32)
    };
    let expected: Vec<i32> = (0..width * height).map(|index| point(index % width, index / width)).collect();
    for seed in SEEDS {
        let cuda = load("various", seed);
        let out = cuda.allocate(4 * width * height);
        let params = params![out, width as i32, height as i32, limit];
        cuda.try_run("mandelbrot", [4, 4, 1], [16, 8, 1], params).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(cuda.get::<i32>(out, width * height), expected);
    }
}

#[test]
fn bitonic_sort() {
    for seed in SEEDS {
        let mut cuda = load("various", seed);
        cuda.shared_bytes = 128 * 8;
        let mut next = random(seed, 1 << 30);
        let mut keys: Vec<i64> = (0..128).map(|_| (next() as i64 - (1 << 29)) * 0x1_0000_0001).collect();
        let mut narrow: Vec<i16> = keys.iter().map(|&key| key as i16).collect();
        let (wide_address, narrow_address) = (cuda.put(&keys), cuda.put(&narrow));
        cuda.run("_Z7bitonicIxEvPT_i", 1, 128, params![wide_address, 128i32]);
        cuda.run("_Z7bitonicIsEvPT_i", 1, 128, params![narrow_address, 128i32]);
        keys.sort_unstable();
        narrow.sort_unstable();
        assert_eq!((cuda.get::<i64>(wide_address, 128), cuda.get::<i16>(narrow_address, 128)), (keys, narrow));
    }
}

#[test]
fn stencil() {
    let (width, height) = (45i32, 19i32);
    for seed in SEEDS {
        let cuda = load("various", seed);
        let input = whole(seed, (width * height) as usize);
        let out = cuda.allocate(input.len() * 4);
        let params = params![cuda.put(&input), out, width, height];
        cuda.try_run("stencil", [2, 3, 1], [32, 8, 1], params).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let inside = |x: i32, y: i32| (0..width).contains(&x) && (0..height).contains(&y);
        let at = |x: i32, y: i32| if inside(x, y) { input[(y * width + x) as usize] } else { 0.0 };
        let around = |x, y| 4.0 * at(x, y) - at(x - 1, y) - at(x + 1, y) - at(x, y - 1) - at(x, y + 1);
        let expected: Vec<f32> = (0..width * height).map(|index| around(index % width, index / width)).collect();
        assert_eq!(cuda.get::<f32>(out, input.len()), expected);
    }
}

#[test]
fn groups() {
    for seed in SEEDS {
        let cuda = load("various", seed);
        let input = numbers(seed, 150, 50);
        let (out, total, sums) = (cuda.allocate(600), cuda.put(&[0i32]), cuda.put(&[-1i32; 4]));
        cuda.run("groups", 3, 64, params![cuda.put(&input), out, total, sums, 150i32]);
        let group = |index: usize| &input[index / 8 * 8..150.min(index / 8 * 8 + 8)];
        let before = |index: usize| input[index / 8 * 8..index].iter().sum::<i32>();
        let expected: Vec<i32> = (0..150).map(|index| group(index).iter().sum::<i32>() * 1000 + before(index)).collect();
        assert_eq!(cuda.get::<i32>(out, 150), expected);
        assert_eq!(cuda.get::<i32>(total, 1), [input.iter().filter(|&value| value & 1 == 1).count() as i32]);
        let most = |kind: i32| input.iter().copied().filter(|value| value & 3 == kind).max().unwrap_or(-1);
        // Threads without an element have a 0.
        assert_eq!(cuda.get::<i32>(sums, 4), [most(0).max(0), most(1), most(2), most(3)]);
    }
}

#[test]
fn match_count() {
    for seed in SEEDS {
        let cuda = load("various", seed);
        let keys: Vec<u64> = numbers(seed, 200, 9).into_iter().map(|key| key as u64 * 0x10_0000_0003).collect();
        let bins = cuda.put(&[0i32; 16]);
        cuda.run("match_count", 2, 128, params![cuda.put(&keys), bins, 200i32]);
        let mut expected = vec![0; 16];
        keys.iter().for_each(|key| expected[(key % 16) as usize] += 1);
        assert_eq!(cuda.get::<i32>(bins, 16), expected);
    }
}

#[test]
fn atomics_by_hand() {
    for seed in SEEDS {
        let cuda = load("various", seed);
        let input = whole(seed, 100);
        let (most, half, pair) = (cuda.put(&[-100.0f32]), cuda.put(&[f16::ZERO; 2]), cuda.put(&[bf16::ZERO; 2]));
        let product = cuda.put(&[1.0f64]);
        cuda.run("atomics_by_hand", 2, 64, params![cuda.put(&input), most, half, pair, product, 100i32]);
        let positive = input.iter().filter(|&&value| value > 0.0).count() as f32;
        assert_eq!(cuda.get::<f32>(most, 1), [input.iter().copied().fold(-100.0, f32::max)]);
        assert_eq!(cuda.get::<f16>(half, 2), [f16::from_f32(positive), f16::ZERO]);
        assert_eq!(cuda.get::<bf16>(pair, 2), [bf16::from_f32(100.0), bf16::from_f32(positive)]);
        assert_eq!(cuda.get::<f64>(product, 1), [32768.0]);
    }
}

#[test]
fn integers() {
    for seed in SEEDS {
        let cuda = load("various", seed);
        let mut next = random(seed, 1 << 31);
        let mut long = |index: usize| ((next() << 33 | next() << 10 | 1) as i64) >> (index * 5 % 60) | 1;
        let (a, b): (Vec<i64>, Vec<i64>) = (0..40).map(|index| (long(index), long(40 - index))).unzip();
        let out = cuda.allocate(40 * 64);
        cuda.run("integers", 1, 64, params![cuda.put(&a), cuda.put(&b), out, 40i32]);
        let found: Vec<i64> = cuda.get(out, 320);
        for (i, row) in found.chunks(8).enumerate() {
            let (x, y) = (a[i], b[i]);
            let (u, v) = (x as u64, y as u64);
            let high = ((i128::from(x) * i128::from(y)) >> 64) as i64 ^ ((u128::from(u) * u128::from(v)) >> 64) as i64;
            assert_eq!(row[..4], [x / y, x % y, (u / v) as i64, high], "{x} {y}");
            assert_eq!(row[4], (i128::from(x) * i128::from(y) % 1_000_003) as i64);
            // The record at index `i + 1` was made in round 1.
            assert_eq!(row[5], 2000 + x % 3 * 10 + i as i64);
            let bits = i64::from(x.count_ones()) + i64::from(y.leading_zeros()) * 100 + (i64::from(x.trailing_zeros()) + 1) * 10000;
            assert_eq!(row[6], bits.wrapping_add(i64::from((x as u32).reverse_bits()) << 32));
            let (low, other) = (x as u32, y as u32);
            let funnel = ((u64::from(other) << 32 | u64::from(low)) << (i % 32) >> 32) as u32;
            let eight = (u64::from(other) << 32 | u64::from(low)).to_le_bytes();
            let permuted = u32::from_le_bytes(std::array::from_fn(|index| eight[(0x5140 + i) >> (4 * index) & 7]));
            let (own, others) = (low.to_le_bytes(), other.to_le_bytes());
            let dot = (0..4).map(|index| i32::from(own[index] as i8) * i32::from(others[index] as i8)).sum::<i32>() + i as i32;
            let far = u32::from_le_bytes(std::array::from_fn(|index| own[index].abs_diff(others[index])));
            let sum = funnel.wrapping_add(permuted).wrapping_add(dot as u32).wrapping_add(far);
            assert_eq!(row[7], i64::from(sum), "{x:#x} {y:#x} {i}");
        }
    }
}

#[test]
fn wmma() {
    for seed in SEEDS {
        let cuda = load("various", seed);
        let (a, b) = (whole(seed, 1024), whole(seed + 1, 1024));
        let brains = |values: &[f32]| -> Vec<bf16> { values.iter().copied().map(bf16::from_f32).collect() };
        let out = cuda.allocate(4096);
        cuda.run("wmma_bf16", 1, 128, params![cuda.put(&brains(&a)), cuda.put(&brains(&b)), out]);
        let dot = |row: usize, column: usize| (0..32).map(|k| a[row * 32 + k] * b[k * 32 + column]).sum::<f32>();
        let expected: Vec<f32> = (0..1024).map(|index| 2.0 * dot(index / 32, index % 32) + 1.0).collect();
        assert_eq!(cuda.get::<f32>(out, 1024), expected);
        let doubles = |values: &[f32]| -> Vec<f64> { values[..32].iter().map(|&value| f64::from(value)).collect() };
        let (a, b) = (doubles(&a), doubles(&b));
        let out = cuda.allocate(512);
        cuda.run("wmma_double", 1, 32, params![cuda.put(&a), cuda.put(&b), out]);
        let expected: Vec<f64> = (0..64).map(|index| (0..4).map(|k| a[index / 8 * 4 + k] * b[index % 8 * 4 + k]).sum()).collect();
        assert_eq!(cuda.get::<f64>(out, 64), expected);
    }
}

/// Registers that nobody wrote go through shuffles, and nothing depends on them.
#[test]
fn partial() {
    for seed in SEEDS {
        let cuda = load("various", seed);
        for count in [1, 5, 16, 27, 32] {
            let mut values = numbers(seed, 32, 40);
            let out = cuda.allocate(4);
            cuda.run("partial", 1, 32, params![cuda.put(&values), out, count]);
            for offset in [16, 8, 4, 2, 1] {
                for lane in (0..32usize).filter(|lane| lane + offset < count as usize) {
                    values[lane] = values[lane].max(values[lane + offset]) + i32::from(values[lane] == values[lane + offset]);
                }
            }
            assert_eq!(cuda.get::<i32>(out, 1), values[..1]);
        }
    }
}

#[test]
fn softmax() {
    let (rows, columns) = (3usize, 4 * 37usize);
    for seed in SEEDS {
        let cuda = load("various", seed);
        let input: Vec<f32> = whole(seed, rows * columns).iter().map(|value| value / 3.0).collect();
        let out = cuda.allocate(4 * rows * columns);
        cuda.run("softmax", rows as u32, 96, params![cuda.put(&input), out, 37i32]);
        let found: Vec<f32> = cuda.get(out, rows * columns);
        for (input, found) in input.chunks(columns).zip(found.chunks(columns)) {
            let sum: f64 = input.iter().map(|&value| f64::from(value).exp()).sum();
            input.iter().zip(found).for_each(|(&value, &found)| close(found.into(), f64::from(value).exp() / sum, 1e-5));
        }
    }
}
