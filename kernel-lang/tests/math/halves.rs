//! `f16` and `bf16` against `f64`, every value of them.

use half::{bf16, f16};

use crate::interpreter::{Column, Device, run};
use crate::{expanded, instructions};

type Unary = fn(f64) -> f64;
type Binary = fn(f64, f64) -> f64;
/// A kind of half: its name, its value from bits, the bits of a rounded `f64`.
type Half = (&'static str, fn(u16) -> f64, fn(f64) -> u16);
const HALVES: [Half; 2] = [
    ("f16", |bits| f16::from_bits(bits).to_f64(), |x| f16::from_f64(x).to_bits()),
    ("bf16", |bits| bf16::from_bits(bits).to_f64(), |x| bf16::from_f64(x).to_bits()),
];

/// How many floats lie between; 0 for equal bits and two NaN.
fn distance(a: u16, b: u16, is_nan: impl Fn(u16) -> bool) -> u32 {
    if is_nan(a) && is_nan(b) {
        return 0;
    }
    let order = |bits: u16| if bits & 0x8000 != 0 { -i32::from(bits & 0x7fff) - 1 } else { i32::from(bits) };
    order(a).abs_diff(order(b))
}

#[test]
fn functions_are_within_one_ulp() {
    let functions: [(&str, Unary); 17] = [
        ("exp", f64::exp),
        ("exp2", f64::exp2),
        ("sigmoid", |x| if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }),
        ("tanh", f64::tanh),
        ("log", f64::ln),
        ("log2", f64::log2),
        ("rsqrt", |x| 1.0 / x.sqrt()),
        ("sqrt", f64::sqrt),
        ("sin", f64::sin),
        ("cos", f64::cos),
        ("tan", f64::tan),
        ("erf", crate::float32::erf),
        ("round", f64::round),
        ("rint", f64::round_ties_even),
        ("floor", f64::floor),
        ("neg", |x| -x),
        ("abs", f64::abs),
    ];
    for (dtype, value, round) in HALVES {
        for (name, exact) in functions {
            let func = expanded(name, dtype, 1);
            // Every value in release, a third of them otherwise.
            let inputs: Vec<u16> = (0..=u16::MAX).step_by(if cfg!(debug_assertions) { 3 } else { 1 }).collect();
            let is_exact = matches!(name, "sqrt" | "round" | "rint" | "floor" | "neg" | "abs");
            let (mut worst, mut wrong) = (0, 0);
            for device in [Device::Exact, Device::Random(5), Device::High, Device::Low] {
                let Column::Half(results) = run(&func, &[Column::Half(inputs.clone())], device) else { panic!("not a half") };
                wrong = 0;
                for (x, got) in inputs.iter().zip(results) {
                    let expected = round(exact(value(*x)));
                    let error = distance(got, expected, |bits| value(bits).is_nan());
                    assert!(
                        error <= u32::from(!is_exact),
                        "{name} of {dtype} {:?}: {:?}, not {:?}",
                        value(*x),
                        value(got),
                        value(expected)
                    );
                    worst = worst.max(error);
                    wrong += u32::from(error != 0);
                }
            }
            println!(
                "{dtype} {name}: {} instructions, {worst} ulp, {wrong} of {} not correctly rounded",
                instructions(&func),
                inputs.len()
            );
        }
    }
}

#[test]
fn arithmetic_is_correctly_rounded() {
    let functions: [(&str, Binary); 6] =
        [("add", |a, b| a + b), ("sub", |a, b| a - b), ("mul", |a, b| a * b), ("div", |a, b| a / b), ("min", f64::min), ("max", f64::max)];
    for (dtype, value, round) in HALVES {
        for (name, exact) in functions {
            let func = expanded(name, dtype, 2);
            let mut state = 99u64;
            let mut random = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 48) as u16
            };
            let lhs: Vec<u16> = (0..30_000).map(|_| random()).collect();
            let rhs: Vec<u16> = (0..30_000).map(|_| random()).collect();
            let columns = [Column::Half(lhs.clone()), Column::Half(rhs.clone())];
            let Column::Half(results) = run(&func, &columns, Device::Exact) else { panic!("not a half") };
            for ((a, b), got) in lhs.into_iter().zip(rhs).zip(results) {
                // The f64 result is itself rounded, but to 53 digits, at least twice 11 and 2 more: harmless, as for f32.
                let expected = round(exact(value(a), value(b)));
                let error = distance(got, expected, |bits| value(bits).is_nan());
                assert_eq!(error, 0, "{name} of {dtype} {:?}, {:?}: {:?}", value(a), value(b), value(got));
            }
        }
    }
}
