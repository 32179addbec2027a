//! `f32` functions against `f64`.

use crate::interpreter::{Column, Device, run};
use crate::ulp::error32;
use crate::{expanded, instructions};

/// A function, its exact value, and the largest error allowed: with the worst device, and with an exact one.
struct Case {
    name: &'static str,
    exact: fn(f64) -> f64,
    worst_device: f64,
    exact_device: f64,
}

const CASES: &[Case] = &[
    Case { name: "exp", exact: f64::exp, worst_device: 2.5, exact_device: 1.0 },
    Case { name: "exp2", exact: f64::exp2, worst_device: 2.0, exact_device: 0.5 },
    Case { name: "sigmoid", exact: sigmoid, worst_device: 5.2, exact_device: 2.4 },
    Case { name: "tanh", exact: f64::tanh, worst_device: 2.6, exact_device: 1.8 },
    Case { name: "log", exact: f64::ln, worst_device: 1.2, exact_device: 1.2 },
    Case { name: "log2", exact: f64::log2, worst_device: 1.9, exact_device: 1.9 },
    Case { name: "rsqrt", exact: |x| 1.0 / x.sqrt(), worst_device: 2.0, exact_device: 0.5 },
    Case { name: "sin", exact: f64::sin, worst_device: 1.6, exact_device: 1.6 },
    Case { name: "cos", exact: f64::cos, worst_device: 1.6, exact_device: 1.6 },
    Case { name: "tan", exact: f64::tan, worst_device: 3.6, exact_device: 3.2 },
    Case { name: "erf", exact: erf, worst_device: 1.5, exact_device: 1.3 },
    Case { name: "round", exact: f64::round, worst_device: 0.0, exact_device: 0.0 },
];

fn sigmoid(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

/// The series 2/sqrt(pi) e^(-x^2) sum 2^n x^(2n+1) / (2n+1)!!, whose terms all have one sign (Abramowitz and Stegun, 7.1.6).
pub(crate) fn erf(x: f64) -> f64 {
    if x.is_nan() || x == 0.0 {
        return x;
    }
    if x.abs() > 6.0 {
        return 1f64.copysign(x);
    }
    let (mut term, mut sum, mut n) = (x, x, 0.0);
    while term.abs() > 1e-18 * sum.abs() {
        n += 1.0;
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// Specials, each exponent, and the neighbours of arguments where formulas change or results overflow.
fn samples(per_exponent: usize) -> Vec<f32> {
    let mut state = 0x1234_5678_9abc_def0u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let mut bits = Vec::new();
    for exponent in 0..=255u32 {
        bits.extend([exponent << 23, (exponent << 23) | 1, (exponent << 23) | 0x7f_ffff]);
        bits.extend((0..per_exponent).map(|_| (exponent << 23) | (random() & 0x7f_ffff)));
    }
    let mut edges = vec![
        0.0f32,
        1.0,
        0.5,
        2.0,
        0.5625,
        0.9375,
        3.9375,
        std::f32::consts::FRAC_1_SQRT_2,
        std::f32::consts::SQRT_2,
        87.336_55,
        88.722_84,
        103.972_08,
        104.0,
        105_615.0,
    ];
    edges.extend([126.0, 127.0, 128.0, 149.0, 150.0, 8_388_608.0, 4_194_304.0, 2.5, 1.5, 9.010_914, 17.33, 8_388_607.5]);
    edges.extend((1..200).map(|n| (f64::from(n) * std::f64::consts::FRAC_PI_4) as f32));
    for edge in edges {
        bits.extend((0..80u32).map(|step| (edge.to_bits() + step).saturating_sub(40)));
    }
    // Where most kernels live.
    bits.extend((0..per_exponent * 64).map(|_| (random() as f32 / 2f32.powi(31) * 20.0).to_bits()));
    bits.iter().flat_map(|bits| [f32::from_bits(*bits), f32::from_bits(bits | 1 << 31)]).collect()
}

/// The worst error and where.
fn measure(case: &Case, func: &kernel_lang::ir::Function, inputs: Vec<f32>, device: Device) -> (f64, f32) {
    let Column::F32(results) = run(func, &[Column::F32(inputs.clone())], device) else { panic!("the result is not f32") };
    let mut worst = (0.0, 0.0);
    for (x, got) in inputs.into_iter().zip(results) {
        let error = error32(got, (case.exact)(f64::from(x)));
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

#[test]
fn errors_stay_below_their_bounds() {
    let per_exponent = if cfg!(debug_assertions) { 100 } else { 2000 };
    let inputs = samples(per_exponent);
    let mut failures = Vec::new();
    for case in CASES {
        let func = expanded(case.name, "f32", 1);
        let mut report = format!("{:8} {:2} instructions", case.name, instructions(&func));
        for device in [Device::Exact, Device::Random(7), Device::High, Device::Low] {
            let (error, x) = measure(case, &func, inputs.clone(), device);
            let bound = if matches!(device, Device::Exact) { case.exact_device } else { case.worst_device };
            report += &format!(", {device:?} {error:.3} at {x:?}");
            if error.is_nan() || error > bound {
                failures.push(format!("{} {device:?}: {error:.3} ulp at {x:?} ({:08x})", case.name, x.to_bits()));
            }
        }
        println!("{report}");
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
#[ignore = "all 2^32 inputs: minutes in release"]
fn every_float() {
    const BATCH: u32 = 1 << 14;
    let only = std::env::var("FUNCTION").ok();
    let stride = std::env::var("STRIDE").map_or(1, |stride| stride.parse::<u32>().unwrap());
    // An odd or even function, or one of positive numbers, needs no negative ones: the samples have some.
    let one_sided = ["sin", "cos", "tan", "tanh", "erf", "log", "log2", "rsqrt"];
    for case in CASES.iter().filter(|case| only.as_ref().is_none_or(|only| only == case.name)) {
        let func = expanded(case.name, "f32", 1);
        let is_approximate = func.to_string().contains("_approx");
        for device in [Device::Exact, Device::Random(3)].into_iter().take(1 + usize::from(is_approximate)) {
            let worst = std::thread::scope(|scope| {
                let last = if one_sided.contains(&case.name) { (1u32 << 31) / BATCH } else { u32::MAX / BATCH + 1 } / stride;
                let threads: Vec<_> = (0..2u32)
                    .map(|thread| {
                        let func = &func;
                        scope.spawn(move || {
                            let mut worst = (0.0, 0.0);
                            for batch in (thread..last).step_by(2) {
                                let first = batch * BATCH * stride;
                                let inputs: Vec<f32> = (0..BATCH).map(|index| f32::from_bits(first + index * stride)).collect();
                                let found = measure(case, func, inputs, device);
                                worst = if found.0 > worst.0 { found } else { worst };
                            }
                            worst
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).fold((0.0, 0.0), |a, b| if b.0 > a.0 { b } else { a })
            });
            println!("{:8} {device:?}: {:.4} ulp at {:?} ({:08x})", case.name, worst.0, worst.1, worst.1.to_bits());
            let bound = if matches!(device, Device::Exact) { case.exact_device } else { case.worst_device };
            assert!(worst.0 <= bound);
        }
    }
}
