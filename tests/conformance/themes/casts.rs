//! Conversions between all types, bit by bit.

use galatea::Dtype;

use crate::array::{Array, Tolerance};
use crate::case::{Case, Draw, Elementwise, refused};
use crate::lab::{Arg, Source};
use crate::number::{Format, Number, format};
use crate::themes::{FLOATS, NUMBERS, pairs};

/// The floats of 8 bits, which are stored and cast, but not computed with.
const EIGHT: [Dtype; 2] = [Dtype::F8E4M3, Dtype::F8E5M2];
const HALVES: [Dtype; 2] = [Dtype::F16, Dtype::Bf16];

/// `x as T` of every type to every other, `bool` and floats of 8 bits among them.
pub(crate) fn cast() -> Vec<Case> {
    let types = [&NUMBERS[..], &[Dtype::Bool], &EIGHT].concat();
    pairs(&types, &types)
        // A cast to its own type is none, and keeps infinities, which rounding to 8 bits does not.
        .filter(|(from, to)| from != to || !EIGHT.contains(from))
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

/// All numbers of a type of 8 or 16 bits as another type.
fn of_all(from: Dtype, to: Dtype) -> Case {
    let (len, block) = (1 << from.bits(), 4096.min(1 << from.bits()));
    let source = Source::new(format!(
        "fn kernel(x: Ptr<{from}>, y: PtrMut<{to}>) {{ let at = program_id(0) * {block} + arange(0, {block}); store(y + at, load(x + at) as {to}); }}"
    ));
    Case::new(format!("{from}-{to}-all"), move |lab| {
        let x = Array { dtype: from, bits: (0..len).collect() };
        let mut y = lab.any(to, x.len());
        lab.launch(&source, [x.len() / block, 1, 1], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        y.check(Tolerance::Exact, |i| x.get(i))
    })
}

/// Every `f16` as an `f32`, and back.
pub(crate) fn convert_float16_to_float32() -> Vec<Case> {
    let there = of_all(Dtype::F16, Dtype::F32);
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

/// Every half, and every float of 8 bits, as a wider float, which keeps its value.
pub(crate) fn typeconvert_upcast() -> Vec<Case> {
    pairs(&HALVES, &[Dtype::F32, Dtype::F64]).chain(pairs(&EIGHT, &FLOATS)).map(|(from, to)| of_all(from, to)).collect()
}

/// Wider floats as narrower ones: any bits; numbers in the middle between two and just beside it; and every number of a half or of 8 bits.
pub(crate) fn typeconvert_downcast() -> Vec<Case> {
    let mut cases = Vec::new();
    for (from, to) in pairs(&FLOATS, &FLOATS).chain(pairs(&FLOATS, &EIGHT)).filter(|(from, to)| from.bits() > to.bits()) {
        let case = Elementwise { inputs: vec![(from, Draw::Any)], out: to, expression: format!("x as {to}"), tolerance: Tolerance::Exact };
        cases.push(case.case(format!("{from}-{to}"), |numbers| numbers[0]));
        cases.push(between(from, to));
    }
    let across = [(Dtype::F16, Dtype::Bf16), (Dtype::Bf16, Dtype::F16), (EIGHT[0], EIGHT[1]), (EIGHT[1], EIGHT[0])].into_iter();
    cases.extend(across.chain(pairs(&HALVES, &EIGHT)).map(|(from, to)| of_all(from, to)));
    cases
}

/// Numbers in the middle between two of the narrower type, and their neighbours on both sides; the largest and the smallest among them.
fn between(from: Dtype, to: Dtype) -> Case {
    let source = Source::new(format!(
        "fn kernel(x: Ptr<{from}>, y: PtrMut<{to}>) {{ let at = program_id(0) * 256 + arange(0, 256); store(y + at, load(x + at) as {to}); }}"
    ));
    Case::new(format!("{from}-{to}-between"), move |lab| {
        let Format { digits, bias, .. } = format(to);
        let largest = format(to).largest();
        let mut bits = Vec::new();
        for _ in 0..340 {
            let exponent = match lab.below(4) {
                0 => largest,
                1 => 1 - bias - lab.below(digits as usize) as i32,
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

/// Numbers out of range become infinite, or the largest number of a float of 8 bits. NaN stays NaN. One case for each limit, infinity and NaN.
pub(crate) fn typeconvert_downcast_clamping() -> Vec<Case> {
    let rows = pairs(&[Dtype::F32, Dtype::F64], &[Dtype::F16, Dtype::Bf16, Dtype::F32]).chain(pairs(&FLOATS, &EIGHT));
    let modes = [("max", 1.0), ("min", -1.0), ("inf", f64::INFINITY), ("-inf", f64::NEG_INFINITY), ("nan", f64::NAN)];
    let mut cases = Vec::new();
    for (from, to) in rows.filter(|(from, to)| from.bits() > to.bits()) {
        let source = Source::new(format!(
            "fn kernel(x: Ptr<{from}>, y: PtrMut<{to}>) {{ let at = arange(0, 8); store(y + at, load(x + at) as {to}); }}"
        ));
        for (name, size) in modes {
            let source = source.clone();
            cases.push(Case::new(format!("{from}-{to}-{name}"), move |lab| {
                // The largest number, what still rounds to it, and what does not.
                let sizes = [1.0, 1.001, 1.01, 1.05, 1.2, 1.5, 2.0, 4.0].map(|more| Number::Float(size * more * format(to).end));
                let x = Array::new(from, sizes);
                let mut y = lab.any(to, 8);
                lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
                y.check(Tolerance::Exact, |i| x.get(i))
            }));
        }
    }
    cases
}

/// Floats of 8 bits are not computed with; by way of `f32` they are.
pub(crate) fn abs_fp8() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in EIGHT {
        let case = Elementwise {
            inputs: vec![(dtype, Draw::Any)],
            out: dtype,
            expression: format!("abs(x as f32) as {dtype}"),
            tolerance: Tolerance::Exact,
        };
        cases.push(case.case(format!("{dtype}-cast"), |numbers| Number::Float(numbers[0].float().abs())));
        for (name, expression) in [("abs", "abs(v)"), ("add", "v + v")] {
            let text = format!("fn kernel(x: PtrMut<{dtype}>) {{ let v = load(x); store(x, {expression}); }}");
            cases.push(refused(format!("{dtype}-{name}"), Source::new(text), "f8e"));
        }
    }
    cases
}
