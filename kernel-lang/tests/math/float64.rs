//! `f64` functions against a table of exact values, and their special values.
//!
//! `MATH_F64_TABLE=file` in the environment takes another table, as `data/math_f64.py 100000` makes it.

use std::collections::BTreeMap;

use crate::interpreter::{Column, Device, run};
use crate::ulp::error64;
use crate::{expanded, instructions};

const TABLE: &str = include_str!("../data/math_f64.txt");

/// The largest errors allowed, in ulp.
const BOUNDS: [(&str, f64); 11] = [
    ("exp", 1.0),
    ("exp2", 1.0),
    ("sigmoid", 2.1),
    ("tanh", 2.0),
    ("log", 1.0),
    ("log2", 0.75),
    ("rsqrt", 1.5),
    ("sin", 2.0),
    ("cos", 2.0),
    ("tan", 1.25),
    ("erf", 1.5),
];

#[test]
fn errors_stay_below_their_bounds() {
    let given = std::env::var("MATH_F64_TABLE").ok().map(|path| std::fs::read_to_string(path).unwrap());
    let table = given.as_deref().unwrap_or(TABLE);
    let mut rows: BTreeMap<&str, Vec<(f64, f64, f64)>> = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let number = |index: usize| fields[index].parse::<f64>().unwrap();
        let x = f64::from_bits(u64::from_str_radix(fields[1], 16).unwrap());
        rows.entry(fields[0]).or_default().push((x, number(2), number(3)));
    }
    let mut failures = Vec::new();
    for (name, bound) in BOUNDS {
        let func = expanded(name, "f64", 1);
        let rows = &rows[name];
        let inputs: Vec<f64> = rows.iter().map(|row| row.0).collect();
        let Column::F64(results) = run(&func, &[Column::F64(inputs)], Device::Exact) else { panic!("the result is not f64") };
        let mut worst = (0.0, 0.0);
        for ((x, high, low), got) in rows.iter().zip(results) {
            let error = error64(got, *high, *low);
            if error > worst.0 {
                worst = (error, *x);
            }
        }
        println!("{name:8} {:3} instructions, {:.3} ulp at {:?} of {}", instructions(&func), worst.0, worst.1, rows.len());
        if worst.0 > bound {
            failures.push(format!("{name}: {:.3} ulp at {:?}", worst.0, worst.1));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn specials_are_right() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    // Each row: f(0), f(-0), f(inf), f(-inf).
    let rows: [(&str, [f64; 4]); 12] = [
        ("exp", [1.0, 1.0, inf, 0.0]),
        ("exp2", [1.0, 1.0, inf, 0.0]),
        ("sigmoid", [0.5, 0.5, 1.0, 0.0]),
        ("tanh", [0.0, -0.0, 1.0, -1.0]),
        ("log", [-inf, -inf, inf, nan]),
        ("log2", [-inf, -inf, inf, nan]),
        ("rsqrt", [inf, -inf, 0.0, nan]),
        ("sin", [0.0, -0.0, nan, nan]),
        ("cos", [1.0, 1.0, nan, nan]),
        ("tan", [0.0, -0.0, nan, nan]),
        ("erf", [0.0, -0.0, 1.0, -1.0]),
        ("round", [0.0, -0.0, inf, -inf]),
    ];
    for (name, expected) in rows {
        let inputs = vec![0.0, -0.0, inf, -inf, nan];
        let func = expanded(name, "f64", 1);
        let Column::F64(results) = run(&func, &[Column::F64(inputs)], Device::Exact) else { panic!("the result is not f64") };
        for (got, expected) in results.iter().zip(expected.into_iter().chain([nan])) {
            assert!(got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()), "{name}: {results:?}, not {expected:?}");
        }
    }
}

#[test]
fn limits_and_subnormals() {
    let rows: [(&str, f64, f64); 12] = [
        ("exp", 1000.0, f64::INFINITY),
        ("exp", 1e300, f64::INFINITY),
        ("exp", -1000.0, 0.0),
        ("exp", -1e300, 0.0),
        ("exp2", -1074.0, f64::from_bits(1)),
        ("exp2", 1024.0, f64::INFINITY),
        ("exp2", 10.0, 1024.0),
        ("log2", f64::from_bits(1), -1074.0),
        ("log", -1.0, f64::NAN),
        ("log", 1.0, 0.0),
        ("tanh", 1e-310, 1e-310),
        ("erf", 40.0, 1.0),
    ];
    for (name, x, expected) in rows {
        let func = expanded(name, "f64", 1);
        let Column::F64(got) = run(&func, &[Column::F64(vec![x])], Device::Exact) else { panic!("the result is not f64") };
        assert!(got[0].to_bits() == expected.to_bits() || (got[0].is_nan() && expected.is_nan()), "{name}({x:?}) = {got:?}");
    }
    let mut func = expanded("round", "f64", 1);
    for (x, expected) in
        [(0.5, 1.0), (-0.5, -1.0), (0.5f64.next_down(), 0.0), (2.5, 3.0), (4503599627370495.5, 4503599627370496.0), (-0.2, -0.0)]
    {
        let Column::F64(got) = run(&func, &[Column::F64(vec![x])], Device::Exact) else { panic!("the result is not f64") };
        assert_eq!(got[0].to_bits(), f64::to_bits(expected), "round({x:?})");
    }
    assert!(!kernel_lang::passes::expand_math::run(&mut func), "what is expanded stays as it is");
}
