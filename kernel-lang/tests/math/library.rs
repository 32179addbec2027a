//! The library's functions: `f32` against `f64` of another library, `f64` against a table of 400 bits, special values against C's annex F.
//!
//! More of both, in the environment: `LIBRARY_F32_SAMPLES=2000` for each exponent, and `LIBRARY_F64_TABLE=file`, a table as
//! `data/library_f64.py 20000` makes it.

use std::collections::BTreeMap;

use kernel_frontend::lower_source;
use kernel_lang::dtype::Dtype;
use kernel_lang::ir::Function;
use kernel_lang::passes::specialize::{self, Bindings};
use kernel_lang::passes::{self, SIMPLIFY, expand_math};

use crate::instructions;
use crate::interpreter::{Column, Device, run};
use crate::ulp::{error32, error64};

/// The reference of a function in `f64`, of one argument or of two.
#[derive(Clone, Copy)]
enum Exact {
    One(fn(f64) -> f64),
    Two(fn(f64, f64) -> f64),
}

use Exact::{One, Two};

/// A function, its exact value, where formulas change, and the largest errors allowed: of `f32` on any device, and of `f64`.
struct Case {
    name: &'static str,
    exact: Exact,
    edges: &'static [f32],
    bounds: [f64; 2],
}

const fn case(name: &'static str, exact: Exact, edges: &'static [f32], bounds: [f64; 2]) -> Case {
    Case { name, exact, edges, bounds }
}

const CASES: &[Case] = &[
    case("exp10", One(libm::exp10), &[38.53, -37.9, -45.0, 1.0, 10.0], [0.8, 0.7]),
    case("expm1", One(libm::expm1), &[0.346_573_6, -0.346_573_6, 88.72, -17.3], [1.4, 1.2]),
    case("log1p", One(libm::log1p), &[-1.0, 0.414_213_57, -0.292_893_2, 1.0, 3.4e38], [1.8, 1.4]),
    case("log10", One(libm::log10), &[1.0, 10.0, 1000.0, 0.75], [0.6, 0.6]),
    case("cbrt", One(libm::cbrt), &[1.0, 8.0, 27.0, 1.1e-38], [0.8, 0.6]),
    case("asin", One(libm::asin), &[0.5, 1.0], [2.0, 1.9]),
    case("acos", One(libm::acos), &[0.5, 1.0], [1.2, 1.2]),
    case("atan", One(libm::atan), &[1.0, 2.4, 0.41], [1.3, 1.2]),
    case("sinh", One(libm::sinh), &[22.0, 88.7, 89.41, 0.35], [2.4, 2.1]),
    case("cosh", One(libm::cosh), &[22.0, 88.7, 89.41, 0.35], [1.3, 1.2]),
    case("asinh", One(libm::asinh), &[1.0, 16384.0], [2.3, 1.5]),
    case("acosh", One(|x| if x < 1.0 { f64::NAN } else { libm::acosh(x) }), &[1.0, 2.0, 16384.0], [2.3, 1.7]),
    case("atanh", One(libm::atanh), &[0.5, 1.0, 0.3], [2.5, 1.5]),
    case("erfc", One(libm::erfc), &[0.5, 10.05, 9.2, 2.0], [2.9, 2.5]),
    case("erfinv", One(erfinv), &[1.0, 0.996_625, 0.5], [2.6, 3.2]),
    case("tgamma", One(libm::tgamma), &[1.0, 2.0, 8.0, 35.0, 42.0, 1e-9], [4.8, 3.1]),
    case("lgamma", One(lgamma), &[1.0, 2.0, 3.0, 8.0, 1e-9], [2.8, 2.0]),
    case("pow", Two(libm::pow), &[1.0, 2.0, 0.5, 10.0], [0.9, 1.1]),
    case("hypot", Two(libm::hypot), &[1.0, 9.223_372e18, 2.168_404_3e-19], [0.6, 1.0]),
    case("atan2", Two(libm::atan2), &[1.0], [1.6, 1.3]),
    case("fmod", Two(libm::fmod), &[1.0, 3.0], [0.0, 0.0]),
];

/// A kernel that stores the function of what it loads, as a GPU runs it: specialised, simplified and expanded.
fn library(name: &str, arity: usize, dtype: Dtype) -> Function {
    let (params, args) = if arity == 1 { ("x: Ptr<T>", "load(x)") } else { ("x: Ptr<T>, u: Ptr<T>", "load(x), load(u)") };
    let source = format!("#[kernel]\nfn k<T: Float>({params}, y: PtrMut<T>) {{ store(y, {name}({args})); }}");
    let func = lower_source(&source, "library.rs").unwrap_or_else(|diagnostics| panic!("{}", diagnostics.render(&["library.rs".into()])));
    let mut func = specialize::run(&func, &Bindings::new().ty("T", dtype), None).unwrap();
    passes::run(&mut func, SIMPLIFY, &mut |_, _, _| {});
    expand_math::run(&mut func);
    passes::run(&mut func, SIMPLIFY, &mut |_, _, _| {});
    func
}

/// The root of erf(y) = x, by Newton's method on what is small there.
fn erfinv(x: f64) -> f64 {
    if x.is_nan() || x.abs() >= 1.0 {
        return if x.abs() == 1.0 { f64::INFINITY.copysign(x) } else { f64::NAN };
    }
    if x.abs() < 1e-9 {
        return x / std::f64::consts::FRAC_2_SQRT_PI;
    }
    let size = x.abs();
    let mut y = if size < 0.5 { size } else { (-(1.0 - size).ln()).sqrt() * 0.9 };
    for _ in 0..50 {
        let slope = std::f64::consts::FRAC_2_SQRT_PI * (-y * y).exp();
        let step = if size < 0.5 {
            (size - libm::erf(y)) / slope
        } else {
            let rest = libm::erfc(y);
            rest * (rest.ln() - (1.0 - size).ln()) / slope
        };
        y += step;
        if step.abs() < 1e-16 * y {
            break;
        }
    }
    y.copysign(x)
}

/// Of negative numbers it is measured by itself: near its zeros there only the absolute error is small.
fn lgamma(x: f64) -> f64 {
    if x.is_sign_negative() { UNMEASURED } else { libm::lgamma(x) }
}

/// Stands for what a case leaves out.
const UNMEASURED: f64 = f64::from_bits(0x7ff8_0000_dead_beef);

fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    state.wrapping_mul(0x2545_f491_4f6c_dd1d)
}

/// Specials, each exponent, the neighbours of the arguments where formulas change, and where most kernels live; both signs.
fn samples(edges: &[f32], per_exponent: usize) -> Vec<f32> {
    let state = &mut 0x1234_5678_9abc_def1u64;
    let mut bits = Vec::new();
    for exponent in 0..=255u32 {
        bits.extend([exponent << 23, (exponent << 23) | 1, (exponent << 23) | 0x7f_ffff]);
        bits.extend((0..per_exponent).map(|_| (exponent << 23) | (random(state) as u32 & 0x7f_ffff)));
    }
    for edge in edges.iter().chain(&[1.0]) {
        bits.extend((0..200u32).map(|step| (edge.abs().to_bits() + step).saturating_sub(100)));
    }
    for scale in [1.0, 4.0, 40.0, 100.0] {
        bits.extend((0..per_exponent * 64).map(|_| ((random(state) >> 40) as f32 / 2f32.powi(24) * scale).to_bits()));
    }
    bits.iter().flat_map(|bits| [f32::from_bits(*bits), f32::from_bits(bits | 1 << 31)]).collect()
}

/// How many for each exponent.
fn given_samples() -> usize {
    std::env::var("LIBRARY_F32_SAMPLES").map_or(60, |count| count.parse().unwrap())
}

/// Pairs of anything, and of numbers around 1 with exponents of a size that matters.
fn pairs(edges: &[f32], count: usize) -> [Vec<f32>; 2] {
    let state = &mut 0xfedc_ba98_7654_3211u64;
    let specials = [0.0, 1.0, 2.0, 3.0, 0.5, 1e-40, 3e38, f32::INFINITY, f32::NAN, 4_194_303.5, 16_777_215.0, 8_388_609.0];
    let specials: Vec<f32> = specials.iter().chain(edges).flat_map(|x| [*x, -*x]).collect();
    let mut all: Vec<(f32, f32)> = specials.iter().flat_map(|x| specials.iter().map(move |y| (*x, *y))).collect();
    for _ in 0..count {
        let mut unit = || (random(state) >> 40) as f32 / 2f32.powi(24);
        let (a, b, c) = (unit(), unit(), unit());
        let x = f32::from_bits(random(state) as u32);
        all.push((x, f32::from_bits(random(state) as u32)));
        all.push((a * 10.0 - 5.0, b * 20.0 - 10.0));
        all.push((x.abs(), (b * 195.0 - 105.0) / x.abs().ln()));
        all.push((1.0 + (a - 0.5) * 2f32.powf(-22.0 * b), (c - 0.5) * 2f32.powf(28.0 * b)));
        all.push((a, a * 2f32.powf(-26.0 * b)));
    }
    [all.iter().map(|pair| pair.0).collect(), all.iter().map(|pair| pair.1).collect()]
}

#[test]
fn errors_of_f32_stay_below_their_bounds() {
    let per_exponent = given_samples();
    let mut failures = Vec::new();
    for case in CASES {
        let inputs = match case.exact {
            One(_) => vec![samples(case.edges, per_exponent)],
            Two(_) => pairs(case.edges, per_exponent * 100).to_vec(),
        };
        let func = library(case.name, inputs.len(), Dtype::F32);
        let mut report = format!("{:8} {:3} instructions", case.name, instructions(&func));
        let columns: Vec<Column> = inputs.iter().cloned().map(Column::F32).collect();
        let is_approximate = func.to_string().contains("_approx");
        for device in [Device::Exact, Device::Random(7), Device::High, Device::Low].into_iter().take(if is_approximate { 4 } else { 1 }) {
            let Column::F32(results) = run(&func, &columns, device) else { panic!("the result is not f32") };
            let (mut worst, mut at) = (0.0, 0);
            for (i, got) in results.iter().enumerate() {
                let wide = |column: usize| f64::from(inputs[column][i]);
                let exact = match case.exact {
                    One(f) => f(wide(0)),
                    Two(f) => f(wide(0), wide(1)),
                };
                let error = if exact.to_bits() == UNMEASURED.to_bits() { 0.0 } else { error32(*got, exact) };
                (worst, at) = if error > worst { (error, i) } else { (worst, at) };
            }
            let arguments: Vec<f32> = inputs.iter().map(|column| column[at]).collect();
            report += &format!(", {device:?} {worst:.3} at {arguments:?}");
            if worst.is_nan() || worst > case.bounds[0] {
                failures.push(format!("{} {device:?}: {worst:.3} ulp at {arguments:?}, is {:?}", case.name, results[at]));
            }
        }
        println!("{report}");
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

const TABLE: &str = include_str!("../data/library_f64.txt");

/// Arguments, and the value in two parts.
type Row = (Vec<f64>, f64, f64);

/// The table's rows by function.
fn rows(table: &str) -> BTreeMap<&str, Vec<Row>> {
    let mut rows: BTreeMap<&str, Vec<Row>> = BTreeMap::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let arguments = fields[1].split(',').map(|bits| f64::from_bits(u64::from_str_radix(bits, 16).unwrap())).collect();
        rows.entry(fields[0]).or_default().push((arguments, fields[2].parse().unwrap(), fields[3].parse().unwrap()));
    }
    rows
}

#[test]
fn errors_of_f64_stay_below_their_bounds() {
    let given = std::env::var("LIBRARY_F64_TABLE").ok().map(|path| std::fs::read_to_string(path).unwrap());
    let table = given.as_deref().unwrap_or(TABLE);
    let rows = rows(table);
    let mut failures = Vec::new();
    for case in CASES {
        let Some(rows) = rows.get(case.name) else { continue };
        let arity = rows[0].0.len();
        let func = library(case.name, arity, Dtype::F64);
        let columns: Vec<Column> = (0..arity).map(|i| Column::F64(rows.iter().map(|row| row.0[i]).collect())).collect();
        let Column::F64(results) = run(&func, &columns, Device::Exact) else { panic!("the result is not f64") };
        let (mut worst, mut at) = (0.0, 0);
        for (i, ((_, high, low), got)) in rows.iter().zip(&results).enumerate() {
            let error = error64(*got, *high, *low);
            (worst, at) = if error > worst { (error, i) } else { (worst, at) };
        }
        println!("{:8} {:3} instructions, {worst:.3} ulp at {:?} of {}", case.name, instructions(&func), rows[at].0, rows.len());
        if worst > case.bounds[1] {
            failures.push(format!("{}: {worst:.3} ulp at {:?}: {:?}, not {:?}", case.name, rows[at].0, results[at], rows[at].1));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// C's annex F: special arguments, and what the function gives for them.
#[rustfmt::skip]
fn specials() -> Vec<(&'static str, Vec<f64>, f64)> {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let half_pi = std::f64::consts::FRAC_PI_2;
    let pi = std::f64::consts::PI;
    // Each row: f(0), f(-0), f(inf), f(-inf).
    let limits: &[(&str, [f64; 4])] = &[
        ("exp10", [1.0, 1.0, inf, 0.0]),
        ("expm1", [0.0, -0.0, inf, -1.0]),
        ("log1p", [0.0, -0.0, inf, nan]),
        ("log10", [-inf, -inf, inf, nan]),
        ("cbrt", [0.0, -0.0, inf, -inf]),
        ("asin", [0.0, -0.0, nan, nan]),
        ("acos", [half_pi, half_pi, nan, nan]),
        ("atan", [0.0, -0.0, half_pi, -half_pi]),
        ("sinh", [0.0, -0.0, inf, -inf]),
        ("cosh", [1.0, 1.0, inf, inf]),
        ("asinh", [0.0, -0.0, inf, -inf]),
        ("acosh", [nan, nan, inf, nan]),
        ("atanh", [0.0, -0.0, nan, nan]),
        ("erfc", [1.0, 1.0, 0.0, 2.0]),
        ("erfinv", [0.0, -0.0, nan, nan]),
        ("tgamma", [inf, -inf, inf, nan]),
        ("lgamma", [inf, inf, inf, inf]),
        ("j0", [1.0, 1.0, 0.0, 0.0]),
        ("j1", [0.0, -0.0, 0.0, 0.0]),
        ("y0", [-inf, -inf, 0.0, nan]),
        ("y1", [-inf, -inf, 0.0, nan]),
    ];
    let mut rows = Vec::new();
    for (name, values) in limits {
        let arguments = [0.0, -0.0, inf, -inf, nan];
        rows.extend(arguments.into_iter().zip(values.iter().copied().chain([nan])).map(|(x, want)| (*name, vec![x], want)));
    }
    rows.extend([
        ("exp10", 2.0, 100.0), ("exp10", 3.0, 1000.0), ("exp10", -400.0, 0.0), ("exp10", 400.0, inf),
        ("expm1", -1000.0, -1.0), ("expm1", 1000.0, inf),
        ("log1p", -1.0, -inf), ("log1p", -1.5, nan),
        ("log10", 1.0, 0.0), ("log10", 10.0, 1.0), ("log10", 1000.0, 3.0), ("log10", 1e10, 10.0), ("log10", -1.0, nan),
        ("cbrt", 27.0, 3.0), ("cbrt", -8.0, -2.0),
        ("asin", 1.0, half_pi), ("asin", -1.0, -half_pi), ("asin", 1.5, nan), ("asin", -1.5, nan),
        ("acos", 1.0, 0.0), ("acos", -1.0, pi), ("acos", 1.5, nan), ("acos", -1.5, nan),
        ("acosh", 1.0, 0.0), ("acosh", 0.5, nan), ("acosh", -3.0, nan),
        ("atanh", 1.0, inf), ("atanh", -1.0, -inf), ("atanh", 1.5, nan), ("atanh", -1.5, nan), ("atanh", 1e9, nan),
        ("y0", -1.0, nan), ("y1", -20.0, nan),
        ("erfc", 40.0, 0.0), ("erfc", -40.0, 2.0),
        ("erfinv", 1.0, inf), ("erfinv", -1.0, -inf), ("erfinv", 1.5, nan),
        ("tgamma", 1.0, 1.0), ("tgamma", 2.0, 1.0), ("tgamma", 4.0, 6.0), ("tgamma", 6.0, 120.0), ("tgamma", -1.0, nan), ("tgamma", -30.0, nan),
        ("tgamma", 200.0, inf), ("tgamma", -200.5, -0.0), ("tgamma", -201.5, 0.0),
        ("lgamma", 1.0, 0.0), ("lgamma", 2.0, 0.0), ("lgamma", -1.0, inf), ("lgamma", -40.0, inf),
        ("sinh", 1000.0, inf), ("sinh", -1000.0, -inf), ("cosh", -1000.0, inf),
    ].map(|(name, x, want)| (name, vec![x], want)));
    rows.extend([
        ("pow", 0.0, -3.0, inf), ("pow", -0.0, -3.0, -inf), ("pow", 0.0, -2.0, inf), ("pow", -0.0, -2.0, inf), ("pow", -0.0, -2.5, inf),
        ("pow", 0.0, -inf, inf), ("pow", -0.0, -inf, inf), ("pow", 0.0, 3.0, 0.0), ("pow", -0.0, 3.0, -0.0), ("pow", -0.0, 2.0, 0.0),
        ("pow", -0.0, 0.5, 0.0), ("pow", -0.0, inf, 0.0), ("pow", -1.0, inf, 1.0), ("pow", -1.0, -inf, 1.0), ("pow", 1.0, nan, 1.0),
        ("pow", 1.0, inf, 1.0), ("pow", nan, 0.0, 1.0), ("pow", nan, -0.0, 1.0), ("pow", inf, 0.0, 1.0), ("pow", -2.0, 0.5, nan),
        ("pow", -2.0, 3.0, -8.0), ("pow", -2.0, -2.0, 0.25), ("pow", 0.5, -inf, inf), ("pow", -0.5, -inf, inf), ("pow", 2.0, -inf, 0.0),
        ("pow", -2.0, -inf, 0.0), ("pow", 0.5, inf, 0.0), ("pow", -0.5, inf, 0.0), ("pow", 2.0, inf, inf), ("pow", -2.0, inf, inf),
        ("pow", -inf, -3.0, -0.0), ("pow", -inf, -2.0, 0.0), ("pow", -inf, -0.5, 0.0), ("pow", -inf, 3.0, -inf), ("pow", -inf, 2.0, inf),
        ("pow", -inf, 0.5, inf), ("pow", inf, -2.0, 0.0), ("pow", inf, 2.0, inf), ("pow", nan, 2.0, nan), ("pow", 2.0, nan, nan),
        ("pow", -2.0, 1e30, inf), ("pow", 10.0, -400.0, 0.0), ("pow", -10.0, 401.0, -inf), ("pow", 3.0, 2.0, 9.0), ("pow", 10.0, 3.0, 1000.0),
        ("hypot", inf, nan, inf), ("hypot", nan, -inf, inf), ("hypot", nan, 1.0, nan), ("hypot", 0.0, -0.0, 0.0), ("hypot", -3.0, 4.0, 5.0),
        ("hypot", -0.0, 2.0, 2.0),
        ("fmod", 0.0, 3.0, 0.0), ("fmod", -0.0, 3.0, -0.0), ("fmod", 3.0, 0.0, nan), ("fmod", inf, 3.0, nan), ("fmod", 3.0, inf, 3.0),
        ("fmod", -3.0, -inf, -3.0), ("fmod", 5.5, -2.0, 1.5), ("fmod", -6.0, 2.0, -0.0), ("fmod", nan, 2.0, nan),
        ("atan2", 0.0, -0.0, pi), ("atan2", -0.0, -0.0, -pi), ("atan2", 0.0, 0.0, 0.0), ("atan2", -0.0, 0.0, -0.0), ("atan2", 0.0, -1.0, pi),
        ("atan2", -0.0, -1.0, -pi), ("atan2", 0.0, 1.0, 0.0), ("atan2", -0.0, 1.0, -0.0), ("atan2", -1.0, 0.0, -half_pi),
        ("atan2", 1.0, -0.0, half_pi), ("atan2", 1.0, -inf, pi), ("atan2", -1.0, -inf, -pi), ("atan2", 1.0, inf, 0.0), ("atan2", -1.0, inf, -0.0),
        ("atan2", inf, 1.0, half_pi), ("atan2", -inf, -1.0, -half_pi), ("atan2", inf, -inf, 0.75 * pi), ("atan2", -inf, -inf, -0.75 * pi),
        ("atan2", inf, inf, 0.25 * pi), ("atan2", -inf, inf, -0.25 * pi), ("atan2", nan, 1.0, nan), ("atan2", 1.0, nan, nan),
    ].map(|(name, x, y, want)| (name, vec![x, y], want)));
    rows
}

/// Bit by bit, of all float types; what is no float of the type, such as pi, is the nearest one.
#[test]
fn specials_are_right() {
    let mut functions: BTreeMap<&str, [Function; 2]> = BTreeMap::new();
    for (name, arguments, want) in specials() {
        let [narrow, wide] =
            functions.entry(name).or_insert_with(|| [Dtype::F32, Dtype::F64].map(|dtype| library(name, arguments.len(), dtype)));
        let columns: Vec<Column> = arguments.iter().map(|x| Column::F32(vec![*x as f32])).collect();
        let Column::F32(got) = run(narrow, &columns, Device::Exact) else { panic!("the result is not f32") };
        let fits = got[0].to_bits() == (want as f32).to_bits() || got[0].is_nan() && want.is_nan();
        assert!(fits, "{name}{arguments:?} of f32 is {:?}, not {want:?}", got[0]);
        let columns: Vec<Column> = arguments.iter().map(|x| Column::F64(vec![*x])).collect();
        let Column::F64(got) = run(wide, &columns, Device::Exact) else { panic!("the result is not f64") };
        let fits = got[0].to_bits() == want.to_bits() || got[0].is_nan() && want.is_nan();
        assert!(fits, "{name}{arguments:?} of f64 is {:?}, not {want:?}", got[0]);
    }
    for case in CASES {
        assert!(functions.contains_key(case.name), "`{}` has no special values", case.name);
    }
}

/// ln |gamma| of negative numbers has a zero between any two poles, near which only the absolute error is small.
#[test]
fn lgamma_of_negative_numbers() {
    let state = &mut 77u64;
    let inputs: Vec<f64> = (0..20_000).map(|_| -((random(state) >> 11) as f64) / 2f64.powi(53) * 60.0).collect();
    let inputs: Vec<f32> = inputs.into_iter().map(|x| x as f32).filter(|x| *x != 0.0).collect();
    let off = |got: f64, x: f32| (got - libm::lgamma(f64::from(x))).abs() / libm::lgamma(f64::from(x)).abs().max(1.0);
    let Column::F32(got) = run(&library("lgamma", 1, Dtype::F32), &[Column::F32(inputs.clone())], Device::Exact) else { panic!() };
    let worst = inputs.iter().zip(&got).map(|(x, got)| off(f64::from(*got), *x)).fold(0.0, f64::max) * 2f64.powi(23);
    assert!(worst < 4.0, "{worst}");
    let wide: Vec<f64> = inputs.iter().map(|x| f64::from(*x)).collect();
    let Column::F64(got) = run(&library("lgamma", 1, Dtype::F64), &[Column::F64(wide)], Device::Exact) else { panic!() };
    let worst_wide = inputs.iter().zip(&got).map(|(x, got)| off(*got, *x)).fold(0.0, f64::max) * 2f64.powi(52);
    assert!(worst_wide < 6.0, "{worst_wide}");
    println!("lgamma of negative numbers: {worst:.2} and {worst_wide:.2} units of 2^-23 and 2^-52");
}

/// Bessel functions have zeros all along; beyond the first ones the error is small beside the waves' height, sqrt(2 / (pi x)).
struct Wave {
    name: &'static str,
    exact: fn(f64) -> f64,
    /// For `f32` and `f64` in units of 2^-23 and 2^-52: of the result below 8, of the larger of the result and the height everywhere.
    below_8: [f64; 2],
    everywhere: [f64; 2],
}

const WAVES: &[Wave] = &[
    Wave { name: "j0", exact: libm::j0, below_8: [14.0, 11.0], everywhere: [9.0, 8.0] },
    Wave { name: "j1", exact: libm::j1, below_8: [4.5, 8.5], everywhere: [4.0, 7.0] },
    Wave { name: "y0", exact: libm::y0, below_8: [f64::INFINITY, f64::INFINITY], everywhere: [12.0, 12.0] },
    Wave { name: "y1", exact: libm::y1, below_8: [f64::INFINITY, f64::INFINITY], everywhere: [9.0, 11.0] },
];

impl Wave {
    /// The largest errors: of the result below 8, and of the larger of the result and the height everywhere; in units of `epsilon`.
    fn measure(&self, rows: &[(f64, f64, f64)], epsilon: f64) -> [f64; 2] {
        let mut worst = [0.0f64; 2];
        for (x, got, want) in rows {
            let height = (std::f64::consts::FRAC_2_PI / x.abs().max(1e-300)).sqrt().min(1.0);
            let error = if got == want { 0.0 } else { (got - want).abs() / epsilon };
            let error = if got.is_nan() == want.is_nan() { if want.is_nan() { 0.0 } else { error } } else { f64::INFINITY };
            let tiny = 2f64.powi(-126);
            if x.abs() < 8.0 {
                worst[0] = worst[0].max(error / want.abs().max(tiny));
            }
            worst[1] = worst[1].max(error / want.abs().max(height).max(tiny));
        }
        worst
    }
}

#[test]
fn bessel_functions() {
    let given = std::env::var("LIBRARY_F64_TABLE").ok().map(|path| std::fs::read_to_string(path).unwrap());
    let rows = rows(given.as_deref().unwrap_or(TABLE));
    let mut failures = Vec::new();
    for wave in WAVES {
        let inputs: Vec<f32> = samples(&[8.0, 2.404_825_7, 3.831_706], given_samples());
        let Column::F32(got) = run(&library(wave.name, 1, Dtype::F32), &[Column::F32(inputs.clone())], Device::Exact) else { panic!() };
        // The references have no value for infinities.
        let exact = |x: f32| if x.is_infinite() && (x > 0.0 || wave.name.starts_with('j')) { 0.0 } else { (wave.exact)(x.into()) };
        let triples: Vec<_> =
            inputs.iter().zip(&got).map(|(x, got)| (f64::from(*x), f64::from(*got), f64::from(exact(*x) as f32))).collect();
        let triples: Vec<_> = triples.into_iter().filter(|(_, got, want)| got.is_finite() || want.is_finite() || got != want).collect();
        let narrow = wave.measure(&triples, 2f64.powi(-23));
        let rows = &rows[wave.name];
        let wide: Vec<f64> = rows.iter().map(|row| row.0[0]).collect();
        let func = library(wave.name, 1, Dtype::F64);
        let Column::F64(got) = run(&func, &[Column::F64(wide.clone())], Device::Exact) else { panic!() };
        let triples: Vec<_> = rows.iter().zip(&got).map(|(row, got)| (row.0[0], *got, row.1)).collect();
        let wide = wave.measure(&triples, 2f64.powi(-52));
        println!("{} {} instructions of f64, f32 {narrow:.2?}, f64 {wide:.2?}", wave.name, instructions(&func));
        for (errors, dtype) in [(narrow, 0), (wide, 1)] {
            if errors[0] > wave.below_8[dtype] || errors[1] > wave.everywhere[dtype] {
                failures.push(format!("{} of {}: {errors:?}", wave.name, ["f32", "f64"][dtype]));
            }
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}
