//! PTX in kernels: what the text gives on a GPU is what its closure gives on the CPU, and both are what Rust computes.

use galatea::prelude::*;

use crate::lab::Lab;
use crate::tests;
use crate::tolerance::check_bits;
use crate::value::{FloatValue, IntValue};

tests![
    bytes_of_two_words,
    a_scalar_beside_a_tile,
    several_results,
    registers_of_each_type<i8, u8, i16, u16, i32, u32, i64, u64>,
    registers_of_floats<f16, bf16, f32, f64>,
    booleans,
    bytes_of_floats,
    four_bytes_at_a_time<u8, i8>,
    two_halves_at_a_time<f16>,
    bytes_to_words,
    rows_and_columns,
    where_elements_are_combined,
    in_a_device_function,
    under_a_guard,
    reads_and_writes_memory,
    checked_and_with_other_constants,
];

const N: usize = 1000;

#[kernel(B = 256)]
fn bytes<const B: usize>(x: Ptr<u32>, y: Ptr<u32>, z: PtrMut<u32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let mask = at < n;
    let merged = inline_ptx!(
        "prmt.b32 {d}, {a}, {b}, 0x5140;",
        d: u32,
        a = load(x + at, mask = mask),
        b = load(y + at, mask = mask),
        cpu = |a, b| (a & 0xff) | (b & 0xff) << 8 | (a & 0xff00) << 8 | (b & 0xff00) << 16,
    );
    store(z + at, merged, mask = mask);
}

fn bytes_of_two_words(lab: &mut Lab) {
    let (x, y): (Vec<u32>, Vec<u32>) = (lab.values(N), lab.values(N));
    let (a, b, mut z) = (lab.input(&x), lab.input(&y), lab.output::<u32>(N));
    bytes::<256>(a.slice(), b.slice(), &mut z.slice(), N).grid(cdiv(N, 256)).launch().unwrap();
    check_bits(&z.read(), |i| {
        let ([a, b, ..], [c, d, ..]) = (x[i].to_le_bytes(), y[i].to_le_bytes());
        u32::from_le_bytes([a, c, b, d])
    });
}

/// A scalar of the kernel, one from memory, and a constant that has a type.
#[kernel(B = 64)]
fn funnel<const B: usize>(x: Ptr<u32>, high: u32, y: PtrMut<u32>, z: PtrMut<u32>) {
    let at = arange(0, B);
    let amount = load(x + B);
    let shifted = inline_ptx!("shf.l.wrap.b32 {d}, {low}, {high}, {amount};", d: u32, low = load(x + at), high = high, amount = amount,
    cpu = |low, high, amount| {
        let by = (amount & 31) as u64;
        ((((high as u64) << 32 | low as u64) << by) >> 32) as u32
    });
    store(y + at, shifted);
    // Scalars alone give a scalar.
    let top =
        inline_ptx!("bfind.u32 {d}, {high}; add.u32 {d}, {d}, {one};", d: u32, one = 1u32, cpu = |one, high| 32 - clz(high) + one - 1);
    store(z, top);
}

fn a_scalar_beside_a_tile(lab: &mut Lab) {
    let x: Vec<u32> = lab.values(65);
    let high = lab.random() as u32;
    let (a, mut y, mut z) = (lab.input(&x), lab.output::<u32>(64), lab.output::<u32>(1));
    funnel::<64>(a.slice(), high, &mut y.slice(), &mut z.slice()).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| ((u64::from(high) << 32 | u64::from(x[i])) << (x[64] % 32) >> 32) as u32);
    check_bits(&z.read(), |_| 32 - high.leading_zeros());
}

#[kernel(B = 128)]
fn wide_product<const B: usize>(x: Ptr<u64>, y: Ptr<u64>, low: PtrMut<u64>, high: PtrMut<u64>, less: PtrMut<bool>) {
    let at = arange(0, B);
    let (a, b) = (load(x + at), load(y + at));
    let (l, h, is_less) = inline_ptx!(
        "{{ .reg .u64 t;",
        "   mul.lo.u64 t, {a}, {b};     // the lower half",
        "   mul.hi.u64 {h}, {a}, {b};",
        "   mov.b64 {l}, t;",
        "   setp.lt.u64 {is_less}, {l}, {h}; }}",
        l: u64,
        h: u64,
        is_less: bool,
        cpu = |a, b| {
            let h = umulhi(a, b);
            (a * b, h, a * b < h)
        },
    );
    store(low + at, l);
    store(high + at, h);
    store(less + at, is_less);
}

fn several_results(lab: &mut Lab) {
    let (x, y): (Vec<u64>, Vec<u64>) = (lab.values(128), lab.values(128));
    let (a, b) = (lab.input(&x), lab.input(&y));
    let (mut low, mut high, mut less) = (lab.output::<u64>(128), lab.output::<u64>(128), lab.output::<bool>(128));
    wide_product::<128>(a.slice(), b.slice(), &mut low.slice(), &mut high.slice(), &mut less.slice()).grid(1).launch().unwrap();
    let product = |i: usize| u128::from(x[i]) * u128::from(y[i]);
    check_bits(&low.read(), |i| product(i) as u64);
    check_bits(&high.read(), |i| (product(i) >> 64) as u64);
    check_bits(&less.read(), |i| (product(i) as u64) < (product(i) >> 64) as u64);
}

/// The sum, by the instruction for the type's register. Narrow ones leave the range of the type in theirs.
#[kernel(T = [i8, u8, i16, u16, i32, u32, i64, u64], B = 96)]
fn sums<T: Int, const B: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<T>, less: PtrMut<bool>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let (a, b) = (load(x + at, mask = at < n), load(y + at, mask = at < n));
    let wide = (T == i64) | (T == u64);
    let short = (T == i16) | (T == u16);
    let sum = if wide {
        inline_ptx!("add.s64 {d}, {a}, {b};", d: T, cpu = |a, b| a + b)
    } else if short {
        inline_ptx!("add.s16 {d}, {a}, {b};", d: T, cpu = |a, b| a + b)
    } else {
        inline_ptx!("add.s32 {d}, {a}, {b};", d: T, cpu = |a, b| a + b)
    };
    store(z + at, sum + 1 as T, mask = at < n);
    // A narrow operand comes extended by its sign.
    let is_less = if T == i8 {
        inline_ptx!("setp.lt.s32 {p}, {a}, {b};", p: bool, cpu = |a, b| a < b)
    } else if T == u8 {
        inline_ptx!("setp.lt.u32 {p}, {a}, {b};", p: bool, cpu = |a, b| a < b)
    } else {
        a < b
    };
    store(less + at, is_less, mask = at < n);
}

fn registers_of_each_type<T: IntValue>(lab: &mut Lab) {
    let (x, y): (Vec<T>, Vec<T>) = (lab.values(N), lab.values(N));
    let (a, b, mut z, mut less) = (lab.input(&x), lab.input(&y), lab.output::<T>(N), lab.output::<bool>(N));
    sums::<T, 96>(a.slice(), b.slice(), &mut z.slice(), &mut less.slice(), N).grid(cdiv(N, 96)).launch().unwrap();
    check_bits(&z.read(), |i| T::wrap(x[i].wide() + y[i].wide() + 1));
    check_bits(&less.read(), |i| x[i].wide() < y[i].wide());
}

/// Bits, which no arithmetic changes: the magnitude of one and the sign of the other.
#[kernel(T = [f16, bf16, f32, f64], B = 64)]
fn signs<T: Float, const B: usize>(x: Ptr<T>, y: Ptr<T>, z: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let (a, b) = (load(x + at, mask = at < n), load(y + at, mask = at < n));
    let both = if T == f64 {
        inline_ptx!("copysign.f64 {d}, {b}, {a};", d: T, a = a, b = b, cpu = |a, b| copysign(a, b))
    } else if T == f32 {
        inline_ptx!("copysign.f32 {d}, {b}, {a};", d: T, a = a, b = b, cpu = |a, b| copysign(a, b))
    } else {
        inline_ptx!(
            "{{ .reg .b16 m, s;",
            "   and.b16 m, {a}, 0x7fff;",
            "   and.b16 s, {b}, 0x8000;",
            "   or.b16 {d}, m, s; }}",
            d: T, a = a, b = b, cpu = |a, b| copysign(a, b),
        )
    };
    store(z + at, both, mask = at < n);
}

fn registers_of_floats<T: FloatValue>(lab: &mut Lab) {
    let (x, y): (Vec<T>, Vec<T>) = (lab.values(N), lab.values(N));
    let (a, b, mut z) = (lab.input(&x), lab.input(&y), lab.output::<T>(N));
    signs::<T, 64>(a.slice(), b.slice(), &mut z.slice(), N).grid(cdiv(N, 64)).launch().unwrap();
    let sign = 1u64 << (8 * size_of::<T>() - 1);
    check_bits(&z.read(), |i| T::from_bits(x[i].bits() & (sign - 1) | y[i].bits() & sign));
}

#[kernel]
fn truth_table(x: Ptr<bool>, y: Ptr<bool>, z: PtrMut<bool>, one: bool) {
    let at = arange(0, 64);
    let v = inline_ptx!("and.pred {d}, {a}, {b}; xor.pred {d}, {d}, {one};", d: bool, a = load(x + at), b = load(y + at),
        cpu = |a, b, one| (a & b) ^ one);
    store(z + at, v);
}

fn booleans(lab: &mut Lab) {
    let (x, y): (Vec<bool>, Vec<bool>) = (lab.values(64), lab.values(64));
    for one in [false, true] {
        let (a, b, mut z) = (lab.input(&x), lab.input(&y), lab.output::<bool>(64));
        truth_table(a.slice(), b.slice(), &mut z.slice(), one).grid(1).launch().unwrap();
        check_bits(&z.read(), |i| (x[i] && y[i]) != one);
    }
}

/// Floats of 8 bits are the low bits of a register.
#[kernel(B = 128)]
fn negated_bytes<const B: usize>(x: Ptr<f8e4m3>, z: PtrMut<f8e4m3>) {
    let at = arange(0, B);
    let one = inline_ptx!("xor.b32 {d}, {a}, 0x80;", d: f8e4m3, a = load(x + at), cpu = |a| bitcast::<f8e4m3>(bitcast::<u8>(a) ^ 0x80));
    let two = inline_ptx!("xor.b32 {d}, {one}, 0x80808080;", d: f8e4m3, pack = 4, cpu = |a| bitcast::<f8e4m3>(bitcast::<u8>(a) ^ 0x80));
    store(z + at, one);
    store(z + B + at, two);
}

fn bytes_of_floats(lab: &mut Lab) {
    let bits: Vec<u8> = lab.values(128);
    let x: Vec<f8e4m3> = bits.iter().map(|bits| f8e4m3::from_bits(*bits)).collect();
    let (a, mut z) = (lab.device.tensor(&x).unwrap(), lab.device.zeros::<f8e4m3>(256).unwrap());
    negated_bytes::<128>(&a, &mut z).grid(1).launch().unwrap();
    for (i, got) in z.to_vec().unwrap().into_iter().enumerate() {
        assert_eq!(got.to_bits(), if i < 128 { bits[i] ^ 0x80 } else { bits[i - 128] });
    }
}

#[kernel(T = [u8, i8], B = [64, 100, 512])]
fn masked_bytes<T: Int, const B: usize>(x: Ptr<T>, z: PtrMut<T>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let v = load(x + at, mask = at < n);
    let low = inline_ptx!("and.b32 {y}, {v}, 0x1f1f1f1f; shl.b32 {y}, {y}, 3;", y: T, pack = 4, cpu = |v| (v & 0x1f) << 3);
    store(z + at, low, mask = at < n);
}

fn four_bytes_at_a_time<T: IntValue>(lab: &mut Lab) {
    let x: Vec<T> = lab.values(N);
    macro_rules! blocks {
        ($($b:literal),*) => {$(
            let (a, mut z) = (lab.input(&x), lab.output::<T>(N));
            masked_bytes::<T, $b>(a.slice(), &mut z.slice(), N).grid(cdiv(N, $b)).launch().unwrap();
            check_bits(&z.read(), |i| T::wrap((x[i].wide() & 0x1f) << 3));
        )*};
    }
    // The last is compiled here, and a thread holds less than a pack of it.
    blocks!(64, 100, 512, 16);
}

#[kernel(B = [256, 768])]
fn halves<const B: usize>(x: Ptr<f16>, y: Ptr<f16>, z: PtrMut<f16>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let (a, b) = (load(x + at, mask = at < n), load(y + at, mask = at < n));
    let (least, most) =
        inline_ptx!("min.f16x2 {l}, {a}, {b}; max.f16x2 {m}, {a}, {b};", l: f16, m: f16, pack = 2, cpu = |a, b| (min(a, b), max(a, b)));
    store(z + at, least, mask = at < n);
    store(z + n + at, most, mask = at < n);
}

fn two_halves_at_a_time<T: FloatValue>(lab: &mut Lab) {
    assert_eq!(T::DTYPE, f16::DTYPE);
    let (x, y): (Vec<f16>, Vec<f16>) = (lab.numbers(N, -5.0, 5.0), lab.numbers(N, -5.0, 5.0));
    macro_rules! blocks {
        ($($b:literal),*) => {$(
            let (a, b, mut z) = (lab.input(&x), lab.input(&y), lab.output::<f16>(2 * N));
            halves::<$b>(a.slice(), b.slice(), &mut z.slice(), N).grid(cdiv(N, $b)).launch().unwrap();
            check_bits(&z.read(), |i| if i < N { x[i].min(y[i]) } else { x[i - N].max(y[i - N]) });
        )*};
    }
    blocks!(256, 768);
}

/// Four bytes in one register and their floats in four, and with eight of them two and eight.
#[kernel(B = 256)]
fn unpacked<const B: usize>(q: Ptr<u8>, scale: Ptr<f32>, z: PtrMut<f32>, y: PtrMut<u8>) {
    let at = program_id(0) * B + arange(0, B);
    let (v, s) = (load(q + at), load(scale + at));
    let wide = inline_ptx!(
        "{{ .reg .b8 b<4>;",
        "   .reg .f32 f<4>;",
        "   mov.b32 {{b0, b1, b2, b3}}, {v};",
        "   cvt.rn.f32.u8 f0, b0; cvt.rn.f32.u8 f1, b1; cvt.rn.f32.u8 f2, b2; cvt.rn.f32.u8 f3, b3;",
        "   mul.rn.f32 {w[0]}, f0, {s[0]}; mul.rn.f32 {w[1]}, f1, {s[1]};",
        "   mul.rn.f32 {w[2]}, f2, {s[2]}; mul.rn.f32 {w[3]}, f3, {s[3]}; }}",
        w: f32,
        pack = 4,
        isa = 7.1,
        cpu = |v, s| v as f32 * s,
    );
    store(z + at, wide);
    let flipped = inline_ptx!("not.b32 {y[0]}, {v[0]}; not.b32 {y[1]}, {v[1]};", y: u8, pack = 8, cpu = |v| !v);
    store(y + at, flipped);
}

fn bytes_to_words(lab: &mut Lab) {
    let (x, s): (Vec<u8>, Vec<f32>) = (lab.values(512), lab.numbers(512, -3.0, 3.0));
    let (q, scale, mut z, mut y) = (lab.input(&x), lab.input(&s), lab.output::<f32>(512), lab.output::<u8>(512));
    unpacked::<256>(q.slice(), scale.slice(), &mut z.slice(), &mut y.slice()).grid(2).launch().unwrap();
    check_bits(&z.read(), |i| f32::from(x[i]) * s[i]);
    check_bits(&y.read(), |i| !x[i]);
}

/// A column beside a row, and extents that are no powers of two.
#[kernel(M = [8, 5], K = [16, 12], num_warps = 2)]
fn distances<const M: usize, const K: usize>(x: Ptr<i32>, y: Ptr<i32>, z: PtrMut<u32>, sums: PtrMut<u32>) {
    let (i, j) = (arange(0, M), arange(0, K));
    let total = inline_ptx!("sad.s32 {d}, {a}, {b}, {c};", d: u32, a = load(x + i)[(.., None)], b = load(y + j)[(None, ..)], c = i[(.., None)] as u32,
        cpu = |a, b, c| (max(a, b) - min(a, b)) as u32 + c);
    store(z + (i * K)[(.., None)] + j[(None, ..)], total);
    store(sums + j, sum(total, axis = 0));
}

fn rows_and_columns(lab: &mut Lab) {
    macro_rules! shapes {
        ($(($m:literal, $k:literal)),*) => {$({
            let (x, y): (Vec<i32>, Vec<i32>) = (lab.values($m), lab.values($k));
            let (a, b, mut z, mut sums) = (lab.input(&x), lab.input(&y), lab.output::<u32>($m * $k), lab.output::<u32>($k));
            distances::<$m, $k>(a.slice(), b.slice(), &mut z.slice(), &mut sums.slice()).grid(1).launch().unwrap();
            let at = |i: usize, j: usize| x[i].abs_diff(y[j]).wrapping_add(i as u32);
            check_bits(&z.read(), |index| at(index / $k, index % $k));
            check_bits(&sums.read(), |j| (0..$m).fold(0u32, |sum, i| sum.wrapping_add(at(i, j))));
        })*};
    }
    shapes!((8, 16), (5, 12), (8, 12), (1, 100));
}

/// In the closure of a reduction and of a scan, and in a loop that carries what it gives.
#[kernel(B = 64)]
fn combined<const B: usize>(x: Ptr<u32>, y: PtrMut<u32>, z: PtrMut<u32>, n: usize) {
    let at = arange(0, B);
    let v = load(x + at);
    store(y, reduce(v, 0, |a, b| inline_ptx!("lop3.b32 {d}, {a}, {b}, 0, 0x3c;", d: u32, cpu = |a, b| a ^ b)));
    store(y + 1 + at, associative_scan(v, 0, |a, b| inline_ptx!("max.u32 {d}, {a}, {b};", d: u32, a = a, b = b, cpu = |a, b| max(a, b))));
    let mut state = v;
    for iteration in 0..n {
        state =
            inline_ptx!("mad.lo.u32 {d}, {state}, 1664525, {by};", d: u32, by = iteration as u32, cpu = |by, state| state * 1664525 + by);
    }
    store(z + at, state);
}

fn where_elements_are_combined(lab: &mut Lab) {
    let x: Vec<u32> = lab.values(64);
    let (a, mut y, mut z) = (lab.input(&x), lab.output::<u32>(65), lab.output::<u32>(64));
    combined::<64>(a.slice(), &mut y.slice(), &mut z.slice(), 5).grid(1).launch().unwrap();
    check_bits(&y.read(), |i| if i == 0 { x.iter().fold(0, |a, b| a ^ b) } else { x[..i].iter().copied().max().unwrap_or(0) });
    check_bits(&z.read(), |i| (0..5).fold(x[i], |state, iteration| state.wrapping_mul(1_664_525).wrapping_add(iteration)));
}

/// Where the device has a word for it, the text is one instruction.
#[device]
fn dot4(a: Value<u32>, b: Value<u32>, c: Value<u32>) -> Value<u32> {
    inline_ptx!("dp4a.u32.u32 {d}, {a}, {b}, {c};", d: u32, a = a, b = b, c = c, cpu = |a, b, c| {
        let mut sum = c;
        for k in static_range(0, 4) {
            sum += (a >> (8 * k)) % 256 * ((b >> (8 * k)) % 256);
        }
        sum
    })
}

#[kernel(B = 64)]
fn dots<const B: usize>(x: Ptr<u32>, y: Ptr<u32>, z: PtrMut<u32>) {
    let at = arange(0, B);
    store(z + at, dot4(load(x + at), load(y + at), 7));
    store(z + B, dot4(load(x), load(y), load(x + 1)));
}

fn in_a_device_function(lab: &mut Lab) {
    let (x, y): (Vec<u32>, Vec<u32>) = (lab.values(64), lab.values(64));
    let (a, b, mut z) = (lab.input(&x), lab.input(&y), lab.output::<u32>(65));
    dots::<64>(a.slice(), b.slice(), &mut z.slice()).grid(1).launch().unwrap();
    let dot = |i: usize, c: u32| {
        let pairs = x[i].to_le_bytes().into_iter().zip(y[i].to_le_bytes());
        pairs.fold(c, |sum, (a, b)| sum.wrapping_add(u32::from(a) * u32::from(b)))
    };
    check_bits(&z.read(), |i| if i < 64 { dot(i, 7) } else { dot(0, x[1]) });
}

#[kernel(B = 64)]
fn guarded<const B: usize>(x: Ptr<f32>, z: PtrMut<f32>, limit: f32) {
    let at = arange(0, B);
    let v = load(x + at);
    let clipped = inline_ptx!(
        "{{ .reg .pred p;",
        "   setp.gt.f32 p, {v}, {limit};",
        "   mov.f32 {d}, {v};",
        "   @p mov.f32 {d}, {limit};",
        "   @!p neg.f32 {d}, {d}; }}",
        d: f32,
        cpu = |v, limit| select(v > limit, limit, -v),
    );
    store(z + at, clipped);
}

fn under_a_guard(lab: &mut Lab) {
    let x: Vec<f32> = lab.numbers(64, -2.0, 2.0);
    let (a, mut z) = (lab.input(&x), lab.output::<f32>(64));
    guarded::<64>(a.slice(), &mut z.slice(), 0.25).grid(1).launch().unwrap();
    check_bits(&z.read(), |i| if x[i] > 0.25 { 0.25 } else { -x[i] });
}

/// Memory is a matter of kernels that are `unchecked`. What writes is volatile, and says on the CPU what it does, too.
#[kernel(B = 64, unchecked)]
fn moved<const B: usize>(x: Ptr<f32>, y: PtrMut<f32>, count: PtrMut<u32>, n: usize) {
    let at = program_id(0) * B + arange(0, B);
    let inside = select(at < n, at, n - 1);
    let v =
        inline_ptx!("ld.global.nc.f32 {v}, [{from}];", v: f32, from = (x + inside) as u64, volatile = true, cpu = |from| load(x + inside));
    inline_ptx!(
        "@{on} st.global.f32 [{to}], {v};",
        on = at < n,
        to = (y + at) as u64,
        v = v * 2.0,
        volatile = true,
        cpu = |on, to, v| store(y + at, v, mask = on)
    );
    // A text is run for each element, by each thread that holds it: for a scalar, by all of the program.
    inline_ptx!(
        "red.global.or.b32 [{to}], {bit};",
        to = count as u64,
        bit = 1u32 << (program_id(0) as u32),
        volatile = true,
        cpu = |to, bit| {
            atomic_or(count, bit);
        }
    );
}

fn reads_and_writes_memory(lab: &mut Lab) {
    let x: Vec<f32> = lab.numbers(N, -9.0, 9.0);
    let (a, mut y, mut count) = (lab.input(&x), lab.output::<f32>(N), lab.in_place(&[0u32]));
    // SAFETY: the tensors have as many elements as the launch says.
    unsafe { moved::<64>(a.slice(), &mut y.slice(), &mut count.slice(), N).grid(cdiv(N, 64)).launch() }.unwrap();
    check_bits(&y.read(), |i| x[i] * 2.0);
    check_bits(&count.read(), |_| (1 << cdiv(N, 64)) - 1);
}

fn checked_and_with_other_constants(lab: &mut Lab) {
    let (x, y): (Vec<u32>, Vec<u32>) = (lab.values(N), lab.values(N));
    let (a, b) = (lab.input(&x), lab.input(&y));
    let merged = |i: usize| {
        let ([a, b, ..], [c, d, ..]) = (x[i].to_le_bytes(), y[i].to_le_bytes());
        u32::from_le_bytes([a, c, b, d])
    };
    let mut z = lab.output::<u32>(N);
    bytes::<256>(a.slice(), b.slice(), &mut z.slice(), N).grid(cdiv(N, 256)).checked().launch().unwrap();
    check_bits(&z.read(), merged);
    let mut z = lab.output::<u32>(N);
    // Compiled in this process.
    bytes::<32>(a.slice(), b.slice(), &mut z.slice(), N).grid(cdiv(N, 32)).launch().unwrap();
    check_bits(&z.read(), merged);
}
