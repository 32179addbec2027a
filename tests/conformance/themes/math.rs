//! Functions of one element, choices between elements, and NaN among them.

use galatea::Dtype;

use crate::array::{Array, Tolerance};
use crate::case::{Case, Draw, Elementwise};
use crate::lab::{Arg, Source};
use crate::number::{Number, encode};
use crate::themes::NUMBERS;

type Function = fn(f64) -> f64;

/// The functions, the interval that they are tried in, and what they are in `f64`.
const FUNCTIONS: [(&str, (f64, f64), Function); 10] = [
    ("exp", (-20.0, 20.0), f64::exp),
    ("log", (0.0, 100.0), f64::ln),
    ("cos", (-100.0, 100.0), f64::cos),
    ("sin", (-100.0, 100.0), f64::sin),
    ("exp2", (-20.0, 20.0), f64::exp2),
    ("log2", (0.0, 100.0), f64::log2),
    ("sqrt", (0.0, 1e6), f64::sqrt),
    ("floor", (-100.0, 100.0), f64::floor),
    ("ceil", (-100.0, 100.0), f64::ceil),
    ("rsqrt", (0.0, 100.0), |x| 1.0 / x.sqrt()),
];
const SINGLE_AND_DOUBLE: [Dtype; 2] = [Dtype::F32, Dtype::F64];

/// A function of one float. Math functions are within 6 units in the last place, those that round correctly are exact.
fn of_one(
    name: String,
    dtype: Dtype,
    expression: String,
    (low, high): (f64, f64),
    exact: bool,
    want: impl Fn(f64) -> f64 + Send + Sync + 'static,
) -> Case {
    let tolerance = if exact { Tolerance::Exact } else { Tolerance::Ulps(6.0) };
    let case = Elementwise { inputs: vec![(dtype, Draw::Within(low, high))], out: dtype, expression, tolerance };
    case.case(name, move |numbers| Number::Float(want(numbers[0].float())))
}

fn is_exact(name: &str) -> bool {
    ["sqrt", "floor", "ceil", "abs"].contains(&name)
}

/// Each function of a tile, and of a constant.
pub(crate) fn math_op() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in SINGLE_AND_DOUBLE {
        for (name, interval, function) in FUNCTIONS {
            cases.push(of_one(format!("{name}-{dtype}-tile"), dtype, format!("{name}(x)"), interval, is_exact(name), function));
            let constant = format!("{name}(3.0{dtype})");
            cases.push(of_one(format!("{name}-{dtype}-constant"), dtype, constant, interval, is_exact(name), move |_| function(3.0)));
        }
    }
    cases
}

/// The error function of a tile, and of a constant.
pub(crate) fn math_erf_op() -> Vec<Case> {
    let rows = SINGLE_AND_DOUBLE.into_iter().flat_map(|dtype| [("tile", "x"), ("constant", "3.0")].map(|of| (dtype, of)));
    rows.map(|(dtype, (of, argument))| {
        let is_tile = of == "tile";
        let argument = if is_tile { "x".to_string() } else { format!("{argument}{dtype}") };
        let want = move |x: f64| libm::erf(if is_tile { x } else { 3.0 });
        of_one(format!("{dtype}-{of}"), dtype, format!("erf({argument})"), (-4.0, 4.0), false, want)
    })
    .collect()
}

/// `fma` rounds once.
pub(crate) fn math_fma_op() -> Vec<Case> {
    SINGLE_AND_DOUBLE
        .map(|dtype| {
            let inputs = vec![(dtype, Draw::Within(-2.0, 2.0)); 3];
            // The reference for `f32` is rounded to `f64` before: a hair more than half a unit.
            let tolerance = if dtype == Dtype::F64 { Tolerance::Exact } else { Tolerance::Ulps(0.500_001) };
            let case = Elementwise { inputs, out: dtype, expression: "fma(x, y, z)".into(), tolerance };
            case.case(dtype.name(), |numbers| Number::Float(numbers[0].float().mul_add(numbers[1].float(), numbers[2].float())))
        })
        .into()
}

fn quotient(name: &str, dtype: Dtype, expression: &str, tolerance: Tolerance) -> Case {
    let inputs = vec![(dtype, Draw::Within(-50.0, 50.0)), (dtype, Draw::Within(0.1, 20.0))];
    Elementwise { inputs, out: dtype, expression: expression.into(), tolerance }
        .case(name, |numbers| Number::Float(numbers[0].float() / numbers[1].float()))
}

/// Quotients of floats; the fast ones are within 2 units in the last place.
pub(crate) fn math_divide_op() -> Vec<Case> {
    vec![quotient("div", Dtype::F32, "x / y", Tolerance::Exact), quotient("fast_div", Dtype::F32, "fast_div(x, y)", Tolerance::Ulps(2.5))]
}

/// Triton's `div_rn` and `sqrt_rn` are `/` and `sqrt` here, which round to nearest anyway.
pub(crate) fn precise_math() -> Vec<Case> {
    vec![
        quotient("div_rn", Dtype::F32, "x / y", Tolerance::Exact),
        of_one("sqrt_rn".into(), Dtype::F32, "x.sqrt()".into(), (0.0, 1e9), true, f64::sqrt),
    ]
}

/// A quotient in IEEE's rounding.
pub(crate) fn fdiv_ieee_rounding() -> Vec<Case> {
    vec![quotient("f64", Dtype::F64, "x / y", Tolerance::Exact)]
}

/// The size of a number; the smallest integer stays what it is.
pub(crate) fn abs() -> Vec<Case> {
    let case = |dtype: Dtype| {
        let case = Elementwise { inputs: vec![(dtype, Draw::Any)], out: dtype, expression: "abs(x)".into(), tolerance: Tolerance::Exact };
        case.case(dtype.name(), |numbers| match numbers[0] {
            Number::Int(value) => Number::Int(value.abs()),
            Number::Float(value) => Number::Float(value.abs()),
        })
    };
    NUMBERS.into_iter().map(case).collect()
}

/// Functions as methods of a value.
pub(crate) fn math_member_fn() -> Vec<Case> {
    let of = |name: &'static str, interval, function: Function| {
        of_one(name.to_string(), Dtype::F32, format!("x.{name}()"), interval, is_exact(name), function)
    };
    let mut cases: Vec<Case> = FUNCTIONS.into_iter().map(|(name, interval, function)| of(name, interval, function)).collect();
    cases.push(of("erf", (-4.0, 4.0), libm::erf));
    cases.push(of("abs", (-9.0, 9.0), f64::abs));
    cases
}

/// `select`, whose condition is a tile.
pub(crate) fn select() -> Vec<Case> {
    let case = |dtype: Dtype| {
        let inputs = vec![(Dtype::Bool, Draw::Any), (dtype, Draw::Any), (dtype, Draw::Any)];
        let case = Elementwise { inputs, out: dtype, expression: "select(x, y, z)".into(), tolerance: Tolerance::Exact };
        case.case(dtype.name(), |numbers| if numbers[0] == Number::Int(1) { numbers[1] } else { numbers[2] })
    };
    NUMBERS.into_iter().map(case).collect()
}

/// A column as the condition, a matrix and a scalar to choose from.
pub(crate) fn select_broadcast() -> Vec<Case> {
    let source = Source::new(
        "fn kernel(c: Ptr<bool>, x: Ptr<f32>, y: PtrMut<f32>) {
            let (row, column) = (arange(0, 32), arange(0, 32));
            let at = row[(.., None)] * 32 + column[(None, ..)];
            store(y + at, select(load(c + row)[(.., None)], load(x + at), 0.0));
        }",
    );
    vec![Case::new("column", move |lab| {
        let (c, x) = (lab.any(Dtype::Bool, 32), lab.any(Dtype::F32, 1024));
        let mut y = lab.any(Dtype::F32, 1024);
        lab.launch(&source, [1; 3], &mut [Arg::In(&c), Arg::In(&x), Arg::Out(&mut y)])?;
        y.check(Tolerance::Exact, |i| if c.bits[i / 32] == 1 { x.get(i) } else { Number::Float(0.0) })
    })]
}

/// Between two tiles, of which the first is the smaller one.
pub(crate) fn clamp() -> Vec<Case> {
    let case = |dtype: Dtype| {
        let inputs = vec![(dtype, Draw::Any), (dtype, Draw::Within(-50.0, 0.0)), (dtype, Draw::Within(0.0, 50.0))];
        let case = Elementwise { inputs, out: dtype, expression: "clamp(x, y, z)".into(), tolerance: Tolerance::Exact };
        // NaN becomes the lower bound.
        case.case(dtype.name(), |numbers| {
            let [x, low, high] = [0, 1, 2].map(|i| numbers[i].float());
            Number::Float(if x > low { if x < high { x } else { high } } else { low })
        })
    };
    [Dtype::F16, Dtype::F32].map(case).into()
}

/// Between a number and its opposite, which an instruction may do at once.
pub(crate) fn clamp_symmetric() -> Vec<Case> {
    let case = |dtype: Dtype| {
        let inputs = vec![(dtype, Draw::Within(-100.0, 100.0)), (dtype, Draw::Within(0.0, 50.0))];
        let case = Elementwise { inputs, out: dtype, expression: "clamp(x, -y, y)".into(), tolerance: Tolerance::Exact };
        case.case(dtype.name(), |numbers| Number::Float(numbers[0].float().clamp(-numbers[1].float(), numbers[1].float())))
    };
    [Dtype::F16, Dtype::Bf16, Dtype::F32].map(case).into()
}

/// NaN loses against numbers, or wins where that is asked for, on each side.
pub(crate) fn propagate_nan() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [Dtype::F16, Dtype::F32] {
        for word in ["min", "max"] {
            for (side, draw) in [
                ("left", [Draw::Nans, Draw::Within(-5.0, 5.0)]),
                ("right", [Draw::Within(-5.0, 5.0), Draw::Nans]),
                ("both", [Draw::Nans, Draw::Nans]),
            ] {
                let inputs = draw.map(|draw| (dtype, draw)).into();
                let case = Elementwise { inputs, out: dtype, expression: format!("{word}(x, y)"), tolerance: Tolerance::Exact };
                cases.push(case.case(format!("{word}-{dtype}-{side}"), move |numbers| {
                    let (x, y) = (numbers[0].float(), numbers[1].float());
                    Number::Float(if word == "min" { x.min(y) } else { x.max(y) })
                }));
            }
        }
    }
    cases
}

/// Along an axis NaN loses too, and wins where that is asked for.
pub(crate) fn max_min_with_nan() -> Vec<Case> {
    let source = Source::new(
        "fn kernel(x: Ptr<f32>, y: PtrMut<f32>) {
            let v = load(x + arange(0, 64));
            store(y, max(v));
            store(y + 1, min(v));
            store(y + 2, max(v, axis = 0, propagate_nan = true));
            store(y + 3, min(v, axis = 0, propagate_nan = true));
        }",
    );
    vec![Case::new("f32", move |lab| {
        let x = Draw::Nans.array(lab, Dtype::F32, 64);
        let mut y = lab.any(Dtype::F32, 4);
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        let values = || x.numbers().map(Number::float);
        let is_nan = values().any(f64::is_nan);
        let of = |number: f64, wins: bool| Number::Float(if wins && is_nan { f64::NAN } else { number });
        let (low, high) = (values().fold(f64::NAN, f64::min), values().fold(f64::NAN, f64::max));
        y.check(Tolerance::Exact, |i| [of(high, false), of(low, false), of(high, true), of(low, true)][i])
    })]
}

/// The upper half of a product.
pub(crate) fn umulhi() -> Vec<Case> {
    let inputs = vec![(Dtype::U32, Draw::Any), (Dtype::U32, Draw::Any)];
    let case = Elementwise { inputs, out: Dtype::U32, expression: "umulhi(x, y)".into(), tolerance: Tolerance::Exact };
    vec![case.case("u32", |numbers| Number::Int((numbers[0].int() * numbers[1].int()) >> 32))]
}

/// A `bool` is one bit: `true + true` is no `bool`, but a sum of integers.
pub(crate) fn bool_as_int() -> Vec<Case> {
    ["+", "-"]
        .map(|sign| {
            let inputs = vec![(Dtype::Bool, Draw::Any), (Dtype::Bool, Draw::Any)];
            let expression = format!("(x as i32 {sign} y as i32) as i8");
            let case = Elementwise { inputs, out: Dtype::I8, expression, tolerance: Tolerance::Exact };
            case.case(if sign == "+" { "add" } else { "sub" }, move |numbers| {
                let (x, y) = (numbers[0].int(), numbers[1].int());
                Number::Int(if sign == "+" { x + y } else { x - y })
            })
        })
        .into()
}

/// The opposite of zero has its sign.
pub(crate) fn neg_preserves_signed_zero() -> Vec<Case> {
    let source = Source::new("fn kernel(x: Ptr<f32>, y: PtrMut<f32>) { let at = arange(0, 4); store(y + at, -load(x + at)); }");
    vec![Case::new("f32", move |lab| {
        let x = Array::new(Dtype::F32, [0.0, -0.0, 1.0, -1.0].map(Number::Float));
        let mut y = lab.any(Dtype::F32, 4);
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        let want = [-0.0, 0.0, -1.0, 1.0].map(|value| encode(Number::Float(value), Dtype::F32));
        if y.bits == want { Ok(()) } else { Err(format!("{:x?}, not {want:x?}", y.bits)) }
    })]
}

/// A product of `bf16` is rounded once, to nearest even.
pub(crate) fn bfloat16_mul_rounds_to_nearest_even() -> Vec<Case> {
    let inputs = vec![(Dtype::Bf16, Draw::Within(1.0, 2.0)), (Dtype::Bf16, Draw::Within(1.0, 2.0))];
    let case = Elementwise { inputs, out: Dtype::Bf16, expression: "x * y".into(), tolerance: Tolerance::Exact };
    vec![case.case("bf16", |numbers| Number::Float(numbers[0].float() * numbers[1].float()))]
}

/// Unsigned and signed parameters of one width are told apart.
pub(crate) fn unsigned_name_mangling() -> Vec<Case> {
    let source = Source::new(
        "fn kernel(x: Ptr<u32>, y: Ptr<i32>, a: PtrMut<u32>, b: PtrMut<i32>) {
            let at = arange(0, 64);
            store(a + at, abs(load(x + at)));
            store(b + at, abs(load(y + at)));
        }",
    );
    vec![Case::new("u32-i32", move |lab| {
        let (x, y) = (lab.any(Dtype::U32, 64), lab.any(Dtype::I32, 64));
        let (mut a, mut b) = (lab.any(Dtype::U32, 64), lab.any(Dtype::I32, 64));
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::In(&y), Arg::Out(&mut a), Arg::Out(&mut b)])?;
        a.check(Tolerance::Exact, |i| x.get(i))?;
        b.check(Tolerance::Exact, |i| Number::Int(y.get(i).int().abs()))
    })]
}

/// To the nearest integer, of two the even one: `rint` of halves.
pub(crate) fn rint() -> Vec<Case> {
    SINGLE_AND_DOUBLE
        .map(|dtype| {
            let inputs = vec![(dtype, Draw::Ints(-40, 40))];
            let case = Elementwise { inputs, out: dtype, expression: "rint(x * 0.5)".into(), tolerance: Tolerance::Exact };
            case.case(dtype.name(), |numbers| Number::Float((numbers[0].float() * 0.5).round_ties_even()))
        })
        .into()
}
