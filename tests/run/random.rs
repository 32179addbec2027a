//! Random numbers: Philox against the vectors of its authors, and the streams against Triton's formulas in plain Rust.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;

tests![known_answers, long_known_answer, integers, offsets_of_every_type, uniform, normal, four_at_once, moments, dropout];

/// Philox 4x32 as its authors define it: the counter after `rounds` rounds.
fn philox(mut counter: [u32; 4], mut key: [u32; 2], rounds: u32) -> [u32; 4] {
    for _ in 0..rounds {
        let [even, odd] = [(0xd251_1f53u64, 0), (0xcd9e_8d57u64, 2)].map(|(factor, word)| factor * u64::from(counter[word]));
        counter = [(odd >> 32) as u32 ^ counter[1] ^ key[0], odd as u32, (even >> 32) as u32 ^ counter[3] ^ key[1], even as u32];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// The words of a seed and an offset.
fn words(seed: u64, offset: u64) -> [u32; 4] {
    philox([offset as u32, (offset >> 32) as u32, 0, 0], [seed as u32, (seed >> 32) as u32], 10)
}

/// Triton's `uint_to_uniform_float`.
fn uniform_of(word: u32) -> f32 {
    let signed = word as i32;
    (if signed < 0 { -(signed + 1) } else { signed }) as f32 * (4.656_612_734_2e-10f64 as f32)
}

#[kernel]
fn philox_kernel<const ROUNDS: usize>(counters: Ptr<u32>, seeds: Ptr<u64>, y: PtrMut<u32>) {
    let at = program_id(0) * 4;
    let x = counters + at;
    let (a, b, c, d) = philox(load(seeds + program_id(0)), load(x), load(x + 1), load(x + 2), load(x + 3), n_rounds = ROUNDS);
    store(y + at, a);
    store(y + at + 1, b);
    store(y + at + 2, c);
    store(y + at + 3, d);
}

/// The file `kat_vectors` of the Random123 distribution, `philox4x32`.
fn known_answers(lab: &mut Lab) {
    let counters = [[0; 4], [u32::MAX; 4], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]];
    let seeds = [0, u64::MAX, 0x299f_31d0_a409_3822];
    let seven = [
        [0x5f6f_b709, 0x0d89_3f64, 0x4f12_1f81, 0x4f73_0a48],
        [0x5207_ddc2, 0x4516_5e59, 0x4d8e_e751, 0x8c52_f662],
        [0x4dfc_caba, 0x190a_87f0, 0xc473_62ba, 0xb6b5_242a],
    ];
    let ten = [
        [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8],
        [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
        [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
    ];
    let (x, s) = (lab.input(&counters.concat()), lab.input(&seeds));
    for (rounds, want) in [(7, seven), (10, ten)] {
        let mut y = lab.output::<u32>(12);
        match rounds {
            7 => philox_kernel::<7>(x.slice(), s.slice(), &mut y.slice()).grid(3).launch().unwrap(),
            _ => philox_kernel::<10>(x.slice(), s.slice(), &mut y.slice()).grid(3).launch().unwrap(),
        }
        let (got, want) = (y.read(), want.concat());
        check_bits(&got, |i| want[i]);
        check_bits(&got, |i| philox(counters[i / 4], [seeds[i / 4] as u32, (seeds[i / 4] >> 32) as u32], rounds)[i % 4]);
    }
}

#[kernel]
fn philox64_kernel(y: PtrMut<u64>, seed: u64, zero: u64) {
    let (a, b, c, d) = philox(seed, zero, zero, zero, zero);
    store(y, a);
    store(y + 1, b);
    store(y + 2, c);
    store(y + 3, d);
}

/// As before, `philox4x64`: the vector whose key has an upper half of 0.
fn long_known_answer(lab: &mut Lab) {
    let mut y = lab.output::<u64>(4);
    philox64_kernel(&mut y.slice(), 0, 0).grid(1).launch().unwrap();
    let want = [0x1655_4d9e_ca36_314c, 0xdb20_fe9d_672d_0fdc, 0xd7e7_72ce_e186_176b, 0x7e68_b68a_ec7b_a23b];
    check_bits(&y.read(), |i| want[i]);
}

#[kernel(B = 128)]
fn integers_kernel<const B: usize>(y: PtrMut<u32>, seed: u64, start: usize, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    store(y + at, randint(seed, start + at), mask = at < n);
}

fn integers(lab: &mut Lab) {
    for n in [1, 127, 1001] {
        for start in [0, u32::MAX as usize - 100, 1 << 40] {
            let seed = lab.random();
            let mut y = lab.output::<u32>(n);
            integers_kernel::<128>(&mut y.slice(), seed, start, n).grid(cdiv(n, 128)).launch().unwrap();
            check_bits(&y.read(), |i| words(seed, (start + i) as u64)[0]);
        }
    }
}

#[kernel(B = 64)]
fn types_kernel<I: Int, S: Int, const B: usize>(x: Ptr<I>, y: PtrMut<u32>, seed: S) {
    let at = arange(0, B);
    store(y + at, randint(seed, load(x + at)));
}

/// A negative offset of 32 bits or fewer counts as its low 32 bits, a negative seed as 64 bits.
fn offsets_of_every_type(lab: &mut Lab) {
    let of_i8: Vec<i8> = lab.values(64);
    let (x, mut y) = (lab.input(&of_i8), lab.output::<u32>(64));
    types_kernel::<i8, i32, 64>(x.slice(), &mut y.slice(), -5).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| words(-5i64 as u64, (i64::from(of_i8[i]) as u32).into())[0]);
    let of_u32: Vec<u32> = lab.values(64);
    let (x, mut y) = (lab.input(&of_u32), lab.output::<u32>(64));
    types_kernel::<u32, u8, 64>(x.slice(), &mut y.slice(), 200).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| words(200, of_u32[i].into())[0]);
    let of_u64: Vec<u64> = lab.values(64);
    let (x, mut y) = (lab.input(&of_u64), lab.output::<u32>(64));
    types_kernel::<u64, i64, 64>(x.slice(), &mut y.slice(), i64::MIN + 7).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| words((i64::MIN + 7) as u64, of_u64[i])[0]);
}

#[kernel(B = 128)]
fn floats_kernel<const B: usize>(u: PtrMut<f32>, g: PtrMut<f32>, seed: u64, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    store(u + at, rand(seed, at), mask = mask);
    store(g + at, randn(seed, at), mask = mask);
}

fn draw(lab: &mut Lab, n: usize) -> (u64, Vec<f32>, Vec<f32>) {
    let seed = lab.random();
    let (mut u, mut g) = (lab.output::<f32>(n), lab.output::<f32>(n));
    floats_kernel::<128>(&mut u.slice(), &mut g.slice(), seed, n).grid(cdiv(n, 128)).launch().unwrap();
    (seed, u.read(), g.read())
}

fn uniform(lab: &mut Lab) {
    let (seed, got, _) = draw(lab, 5001);
    check_bits(&got, |i| uniform_of(words(seed, i as u64)[0]));
    assert!(got.iter().all(|u| (0.0..1.0).contains(u)));
    assert!(uniform_of(i32::MAX as u32) < 1.0 && uniform_of(i32::MIN as u32) < 1.0 && uniform_of(u32::MAX) == 0.0);
}

/// Box and Muller in `f64`, of the `f32` that the kernel has: the pair's radius and angle.
fn normal_of(words: [u32; 4], pair: usize) -> (f64, f64) {
    let (u, v) = (uniform_of(words[2 * pair]).max(1e-7), uniform_of(words[2 * pair + 1]) * std::f32::consts::TAU);
    ((-2.0 * f64::from(u).ln()).sqrt(), f64::from(v))
}

/// Within some ulp of the radius: of `log`, `sqrt`, and `sin` or `cos`.
#[track_caller]
fn check_normal(got: f32, radius: f64, want: f64) {
    assert!((f64::from(got) - want).abs() <= radius * 2f64.powi(-21), "{got} is not {want}");
}

fn normal(lab: &mut Lab) {
    let (seed, _, got) = draw(lab, 5001);
    for (i, got) in got.into_iter().enumerate() {
        let (radius, angle) = normal_of(words(seed, i as u64), 0);
        check_normal(got, radius, radius * angle.cos());
    }
}

#[kernel(B = 64)]
fn four_kernel<const B: usize>(k: PtrMut<u32>, u: PtrMut<f32>, g: PtrMut<f32>, seed: i32) {
    let at = arange(0, B);
    let (a, b, c, d) = randint4x(seed, at);
    store(k + at, a);
    store(k + B + at, b);
    store(k + 2 * B + at, c);
    store(k + 3 * B + at, d);
    let (a, b, c, d) = rand4x(seed, at);
    store(u + at, a);
    store(u + B + at, b);
    store(u + 2 * B + at, c);
    store(u + 3 * B + at, d);
    let (a, b, c, d) = randn4x(seed, at);
    store(g + at, a);
    store(g + B + at, b);
    store(g + 2 * B + at, c);
    store(g + 3 * B + at, d);
}

fn four_at_once(lab: &mut Lab) {
    let (mut k, mut u, mut g) = (lab.output::<u32>(256), lab.output::<f32>(256), lab.output::<f32>(256));
    four_kernel::<64>(&mut k.slice(), &mut u.slice(), &mut g.slice(), 17).grid(1).launch().unwrap();
    check_bits(&k.read(), |i| words(17, i as u64 % 64)[i / 64]);
    check_bits(&u.read(), |i| uniform_of(words(17, i as u64 % 64)[i / 64]));
    for (i, got) in g.read().into_iter().enumerate() {
        let (radius, angle) = normal_of(words(17, i as u64 % 64), i / 128);
        check_normal(got, radius, radius * if i / 64 % 2 == 0 { angle.cos() } else { angle.sin() });
    }
}

/// Mean, variance and, of the normal numbers, kurtosis: each within six of its standard errors.
fn moments(lab: &mut Lab) {
    let n = 20_000;
    let (_, u, g) = draw(lab, n);
    let mean = |list: &[f32], f: &dyn Fn(f64) -> f64| list.iter().map(|x| f(f64::from(*x))).sum::<f64>() / n as f64;
    let near = |what: &str, got: f64, want: f64, deviation: f64| {
        let allowed = 6.0 * deviation / (n as f64).sqrt();
        assert!((got - want).abs() < allowed, "{what}: {got}, not {want} within {allowed}");
    };
    near("uniform mean", mean(&u, &|x| x), 0.5, (1.0 / 12.0f64).sqrt());
    near("uniform variance", mean(&u, &|x| (x - 0.5).powi(2)), 1.0 / 12.0, (1.0 / 180.0f64).sqrt());
    near("normal mean", mean(&g, &|x| x), 0.0, 1.0);
    near("normal variance", mean(&g, &|x| x * x), 1.0, 2f64.sqrt());
    near("normal fourth moment", mean(&g, &|x| x.powi(4)), 3.0, 96f64.sqrt());
}

#[kernel(B = 256)]
fn dropout_kernel<T: Float, const B: usize>(x: Ptr<T>, y: PtrMut<T>, p: f32, seed: u64, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let v = load(x + at, mask = mask);
    let kept = rand(seed, at) >= p;
    store(y + at, select(kept, (v as f32 / (1.0 - p)) as T, 0.0), mask = mask);
}

fn dropout(lab: &mut Lab) {
    let (n, p, seed) = (3001, 0.25f32, lab.random());
    let host: Vec<bf16> = lab.numbers(n, -9.0, 9.0);
    let (x, mut y) = (lab.input(&host), lab.output::<bf16>(n));
    dropout_kernel::<bf16, 256>(x.slice(), &mut y.slice(), p, seed, n).grid(cdiv(n, 256)).launch().unwrap();
    let kept = |i: usize| uniform_of(words(seed, i as u64)[0]) >= p;
    check_bits(&y.read(), |i| if kept(i) { bf16::from_f32(host[i].to_f32() / (1.0 - p)) } else { bf16::ZERO });
}
