//! Conversions between all types, bit by bit.

use galatea::Dtype;

use crate::array::{Array, Tolerance};
use crate::case::{Case, Draw, Elementwise};
use crate::lab::{Arg, Source};
use crate::number::Number;
use crate::themes::{FLOATS, NUMBERS, pairs};

/// `x as T` of every type to every other, `bool` among them.
pub(crate) fn cast() -> Vec<Case> {
    let mut types = NUMBERS.to_vec();
    types.push(Dtype::Bool);
    pairs(&types, &types)
        .map(|(from, to)| {
            let expression = if from == to { "x".to_string() } else { format!("x as {to}") };
            let case = Elementwise { inputs: vec![(from, Draw::Any)], out: to, expression, tolerance: Tolerance::Exact };
            case.case(format!("{from}-{to}"), |numbers| numbers[0])
        })
        .collect()
}

/// The bits of every type as another type of the same width.
pub(crate) fn bitcast() -> Vec<Case> {
    let rows = pairs(&NUMBERS, &NUMBERS).filter(|(from, to)| from != to && from.bits() == to.bits());
    rows.map(|(from, to)| {
        let source = Source::new(format!(
            "fn kernel(x: Ptr<{from}>, y: PtrMut<{to}>) {{ let at = arange(0, 256); store(y + at, bitcast::<{to}>(load(x + at))); }}"
        ));
        Case::new(format!("{from}-{to}"), move |lab| {
            let x = lab.any(from, 256);
            let mut y = lab.any(to, 256);
            lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
            y.check_bits(|i| x.bits[i])
        })
    })
    .collect()
}

/// All numbers of a half, 4096 a program, as another type.
fn of_all_halves(from: Dtype, to: Dtype, want: fn(Number) -> Number) -> Case {
    let cast = if from == to { String::new() } else { format!(" as {to}") };
    let source = Source::new(format!(
        "fn kernel(x: Ptr<{from}>, y: PtrMut<{to}>) {{ let at = program_id(0) * 4096 + arange(0, 4096); store(y + at, load(x + at){cast}); }}"
    ));
    Case::new(format!("{from}-{to}"), move |lab| {
        let x = Array { dtype: from, bits: (0..65536).collect() };
        let mut y = lab.any(to, 65536);
        lab.launch(&source, [16, 1, 1], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        y.check(Tolerance::Exact, |i| want(x.get(i)))
    })
}

/// Every `f16` as an `f32`, and back.
pub(crate) fn convert_float16_to_float32() -> Vec<Case> {
    let there = of_all_halves(Dtype::F16, Dtype::F32, |number| number);
    let source = Source::new(
        "fn kernel(x: Ptr<f16>, y: PtrMut<f16>) { let at = program_id(0) * 4096 + arange(0, 4096); store(y + at, (load(x + at) as f32) as f16); }",
    );
    let and_back = Case::new("and-back", move |lab| {
        let x = Array { dtype: Dtype::F16, bits: (0..65536).collect() };
        let mut y = lab.any(Dtype::F16, 65536);
        lab.launch(&source, [16, 1, 1], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        y.check(Tolerance::Exact, |i| x.get(i))
    });
    vec![there, and_back]
}

/// Every half as a wider float, which keeps its value.
pub(crate) fn typeconvert_upcast() -> Vec<Case> {
    pairs(&[Dtype::F16, Dtype::Bf16], &[Dtype::F32, Dtype::F64]).map(|(from, to)| of_all_halves(from, to, |number| number)).collect()
}

/// Wider floats as narrower ones: any bits; numbers just beside the middle between two; and every half as the other half.
pub(crate) fn typeconvert_downcast() -> Vec<Case> {
    let mut cases = Vec::new();
    for (from, to) in pairs(&FLOATS, &FLOATS).filter(|(from, to)| from.bits() > to.bits()) {
        let case = Elementwise { inputs: vec![(from, Draw::Any)], out: to, expression: format!("x as {to}"), tolerance: Tolerance::Exact };
        cases.push(case.case(format!("{from}-{to}"), |numbers| numbers[0]));
        cases.push(between(from, to));
    }
    cases.push(of_all_halves(Dtype::F16, Dtype::Bf16, |number| number));
    cases.push(of_all_halves(Dtype::Bf16, Dtype::F16, |number| number));
    cases
}

/// Numbers in the middle between two of the narrower type, and their neighbours on both sides; the largest and the smallest among them.
fn between(from: Dtype, to: Dtype) -> Case {
    let source = Source::new(format!(
        "fn kernel(x: Ptr<{from}>, y: PtrMut<{to}>) {{ let at = program_id(0) * 256 + arange(0, 256); store(y + at, load(x + at) as {to}); }}"
    ));
    Case::new(format!("{from}-{to}-between"), move |lab| {
        let (digits, largest) = crate::number::format(to);
        let mut bits = Vec::new();
        for _ in 0..340 {
            let exponent = match lab.below(4) {
                0 => largest,
                1 => 1 - largest - lab.below(digits as usize) as i32,
                _ => lab.below(2 * largest as usize) as i32 - largest,
            };
            // An odd number of half units.
            let halves = (1u64 << digits) + 2 * lab.below(1 << (digits - 1)) as u64 + 1;
            let middle = Array::new(from, [Number::Float(halves as f64 * 2f64.powi(exponent - digits))]).bits[0];
            bits.extend([middle - 1, middle, middle + 1]);
        }
        let x = Array { dtype: from, bits };
        let mut y = lab.any(to, x.len());
        lab.launch(&source, [4, 1, 1], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        y.check(Tolerance::Exact, |i| x.get(i))
    })
}

/// What is too large becomes infinite, and NaN stays NaN.
pub(crate) fn typeconvert_downcast_clamping() -> Vec<Case> {
    let rows = pairs(&[Dtype::F32, Dtype::F64], &[Dtype::F16, Dtype::Bf16, Dtype::F32]).filter(|(from, to)| from.bits() > to.bits());
    rows.map(|(from, to)| {
        let source = Source::new(format!(
            "fn kernel(x: Ptr<{from}>, y: PtrMut<{to}>) {{ let at = arange(0, 8); store(y + at, load(x + at) as {to}); }}"
        ));
        Case::new(format!("{from}-{to}"), move |lab| {
            let end = 2f64.powi(crate::number::format(to).1 + 1);
            let numbers = [end, -end, 1.5 * end, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, end / 2.0, 0.0];
            let x = Array::new(from, numbers.map(Number::Float));
            let mut y = lab.any(to, 8);
            lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
            y.check(Tolerance::Exact, |i| x.get(i))
        })
    })
    .collect()
}
