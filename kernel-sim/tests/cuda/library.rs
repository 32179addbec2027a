//! Algorithms of CUB: code that was not written with a simulator in mind.

use crate::harness::{SEEDS, load, params, random, whole};
use crate::planted::numbers;

#[test]
fn radix_sort() {
    for seed in SEEDS {
        let cuda = load("cub", seed);
        let mut next = random(seed, 1 << 31);
        let mut keys: Vec<u32> = (0..256).map(|_| next() as u32).collect();
        let out = cuda.allocate(1024);
        cuda.run("radix_sort", 1, 64, params![cuda.put(&keys), out]);
        keys.sort_unstable();
        assert_eq!(cuda.get::<u32>(out, 256), keys);
    }
}

#[test]
fn merge_sort() {
    for seed in SEEDS {
        let cuda = load("cub", seed);
        let mut keys = numbers(seed, 192, 100);
        let out = cuda.allocate(768);
        cuda.run("merge_sort", 1, 64, params![cuda.put(&keys), out]);
        keys.sort_unstable();
        assert_eq!(cuda.get::<i32>(out, 192), keys);
    }
}

#[test]
fn scans() {
    for seed in SEEDS {
        let cuda = load("cub", seed);
        let values = numbers(seed, 96, 100);
        let sums: Vec<i32> = (0..=96).map(|count| values[..count].iter().sum()).collect();
        let (out, total) = (cuda.allocate(384), cuda.allocate(4));
        cuda.run("block_scan", 1, 96, params![cuda.put(&values), out, total]);
        assert_eq!((cuda.get::<i32>(out, 96), cuda.get::<i32>(total, 1)), (sums[..96].to_vec(), sums[96..].to_vec()));
        cuda.run("block_scan_raking", 1, 96, params![cuda.put(&values), out]);
        assert_eq!(cuda.get::<i32>(out, 96), sums[1..]);
    }
}

#[test]
fn reduce() {
    for seed in SEEDS {
        let cuda = load("cub", seed);
        let values = whole(seed, 100);
        for valid in [100, 77, 40, 3] {
            let out = cuda.allocate(4);
            cuda.run("block_reduce", 1, 100, params![cuda.put(&values), out, valid]);
            assert_eq!(cuda.get::<f32>(out, 1), [values[..valid as usize].iter().sum::<f32>()]);
        }
    }
}

#[test]
fn histogram() {
    for seed in SEEDS {
        let cuda = load("cub", seed);
        let values: Vec<u8> = numbers(seed, 256, 256).into_iter().map(|value| value as u8).collect();
        let out = cuda.allocate(1024);
        cuda.run("block_histogram", 1, 64, params![cuda.put(&values), out]);
        let mut expected = vec![0u32; 256];
        values.into_iter().for_each(|value| expected[usize::from(value)] += 1);
        assert_eq!(cuda.get::<u32>(out, 256), expected);
    }
}
