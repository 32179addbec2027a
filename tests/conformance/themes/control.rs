//! Control flow on scalars, functions, and constants.

use galatea::Dtype;
use kernel_lang::target::Target;
use kernel_lang::{Bindings, Options, Schedule};

use crate::array::Tolerance;
use crate::case::{Case, refused};
use crate::lab::{Arg, Source};
use crate::number::Number;

/// How many elements the input and the output have.
const LEN: usize = 16;

/// A kernel over `x` and `y`, of 16 numbers from -20 to 19 each, that changes `y`; what it makes of them is written beside it in Rust.
fn case(name: &str, body: &str, functions: &str, want: fn(&[i128], &mut [i128])) -> Case {
    let source = Source::new(format!("fn kernel(x: Ptr<i32>, y: PtrMut<i32>) {{ {body} }}\n{functions}"));
    Case::new(name, move |lab| {
        let (x, first) = (lab.ints(Dtype::I32, LEN, -20, 20), lab.ints(Dtype::I32, LEN, -20, 20));
        let mut y = first.clone();
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        let (given, mut wanted): (Vec<i128>, Vec<i128>) =
            (x.numbers().map(Number::int).collect(), first.numbers().map(Number::int).collect());
        want(&given, &mut wanted);
        y.check(Tolerance::Exact, |i| Number::Int(wanted[i]))
    })
}

/// Loops whose bounds are of every integer type, far from zero and near the end of the type.
pub(crate) fn for_iv() -> Vec<Case> {
    let rows: [(Dtype, i128, i128); 8] = [
        (Dtype::I32, -5, 5),
        (Dtype::I64, (1 << 40) - 3, (1 << 40) + 3),
        (Dtype::U32, (1 << 32) - 8, (1 << 32) - 1),
        (Dtype::U64, (1 << 63) - 3, (1 << 63) + 3),
        (Dtype::I8, 120, 127),
        (Dtype::U8, 250, 255),
        (Dtype::I16, -32768, -32760),
        (Dtype::I64, -(1 << 40), -(1 << 40) + 6),
    ];
    rows.map(|(dtype, start, end)| {
        let source = Source::new(format!(
            "fn kernel(y: PtrMut<{dtype}>, start: {dtype}, end: {dtype}) {{
                let mut at = 0;
                for i in start..end {{ store(y + at, i); at += 1; }}
            }}"
        ));
        Case::new(format!("{dtype}-{start}-{end}"), move |lab| {
            let mut y = lab.any(dtype, (end - start) as usize);
            let scalar = |value| Arg::Scalar(dtype, Number::Int(value));
            lab.launch(&source, [1; 3], &mut [Arg::Out(&mut y), scalar(start), scalar(end)])?;
            y.check(Tolerance::Exact, |i| Number::Int(start + i as i128))
        })
    })
    .into()
}

/// An `if` whose condition is a number of any type compared, a `bool`, a constant, or a comparison of loads.
pub(crate) fn if_() -> Vec<Case> {
    type Holds = fn(&[i128]) -> bool;
    let rows: [(&str, &str, Holds); 8] = [
        ("comparison", "load(x) > 0", |x| x[0] > 0),
        ("bool", "load(x) as bool", |x| x[0] != 0),
        ("not", "!(load(x) == load(x + 1))", |x| x[0] != x[1]),
        ("and", "load(x) > 0 && load(x + 1) > 0", |x| x[0] > 0 && x[1] > 0),
        ("or", "load(x) > 0 || load(x + 1) > 0", |x| x[0] > 0 || x[1] > 0),
        ("constant-true", "3 > 2", |_| true),
        ("constant-false", "3 < 2", |_| false),
        ("reduction", "any(load(x + arange(0, 16)) > 18)", |x| x.iter().any(|x| *x > 18)),
    ];
    rows.into_iter()
        .map(|(name, condition, holds)| {
            let source = Source::new(format!(
                "fn kernel(x: Ptr<i32>, y: PtrMut<i32>) {{ if {condition} {{ store(y, 1); }} else {{ store(y, 2); }} }}"
            ));
            Case::new(name, move |lab| {
                for _ in 0..4 {
                    let x = lab.ints(Dtype::I32, LEN, -20, 20);
                    let mut y = lab.any(Dtype::I32, 1);
                    lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
                    let given: Vec<i128> = x.numbers().map(Number::int).collect();
                    y.check(Tolerance::Exact, |_| Number::Int(if holds(&given) { 1 } else { 2 }))?;
                }
                Ok(())
            })
        })
        .collect()
}

/// Values of branches, branches in branches, and leaving early.
pub(crate) fn branches() -> Vec<Case> {
    vec![
        case("if-else-value", "let v = if load(x) > 0 { load(x + 1) } else { load(x + 2) * 2 }; store(y, v);", "", |x, y| {
            y[0] = if x[0] > 0 { x[1] } else { x[2] * 2 };
        }),
        case("else-if", "let v = load(x); if v > 5 { store(y, 1); } else if v > -5 { store(y, 2); } else { store(y, 3); }", "", |x, y| {
            y[0] = if x[0] > 5 {
                1
            } else if x[0] > -5 {
                2
            } else {
                3
            };
        }),
        case("if-return", "if load(x) > 0 { store(y, 1); return; } store(y, 2);", "", |x, y| y[0] = if x[0] > 0 { 1 } else { 2 }),
        case(
            "if-return-else",
            "if load(x) > 0 { store(y, 1); if load(x + 1) > 0 { return; } } else { return; } store(y + 1, 3);",
            "",
            |x, y| {
                if x[0] > 0 {
                    y[0] = 1;
                    if x[1] <= 0 {
                        y[1] = 3;
                    }
                }
            },
        ),
        case(
            "return-in-loop",
            "for i in 0..16 { if load(x + i) > 10 { store(y, i as i32); return; } } store(y + 1, 7);",
            "",
            |x, y| match x.iter().position(|x| *x > 10) {
                Some(at) => y[0] = at as i128,
                None => y[1] = 7,
            },
        ),
        case(
            "tile-in-branches",
            "let at = arange(0, 16); let mut v = load(x + at); if load(x) > 0 { v = v * 2; } else { v = v + load(y + at); } store(y + at, v);",
            "",
            |x, y| y.iter_mut().zip(x).for_each(|(y, v)| *y = if x[0] > 0 { 2 * v } else { v + *y }),
        ),
        case("pointer-in-branches", "let mut p = x; if load(x) > 0 { p = x + 4; } else { p = x + 8; } store(y, load(p));", "", |x, y| {
            y[0] = if x[0] > 0 { x[4] } else { x[8] }
        }),
        case("loop-in-branch", "if load(x) > 0 { for i in 0..4 { store(y + i, 9); } }", "", |x, y| {
            if x[0] > 0 {
                y[..4].fill(9);
            }
        }),
    ]
}

/// Functions in branches, and branches in functions, on one value and on a tile.
pub(crate) fn calls() -> Vec<Case> {
    let add = "#[device]\nfn add_to(y: PtrMut<i32>, v: Value<i32>) { store(y, load(y) + v); }";
    let twice = "#[device]\nfn twice<T: Number>(v: Value<T>) -> Value<T> { v + v }";
    let choose = "#[device]\nfn choose(v: Value<i32>) -> Value<i32> { if v > 0 { return v; } if v > -10 { 1 } else { 2 } }";
    vec![
        case("call", "store(y, twice(load(x)));", twice, |x, y| y[0] = 2 * x[0]),
        case("call-of-tile", "let at = arange(0, 16); store(y + at, twice(twice(load(x + at))));", twice, |x, y| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y = 4 * x);
        }),
        case("call-with-effect", "add_to(y, 3); add_to(y + 1, load(x));", add, |x, y| {
            y[0] += 3;
            y[1] += x[0];
        }),
        case("call-in-branch", "if load(x) > 0 { add_to(y, 3); } else { add_to(y + 1, 4); }", add, |x, y| {
            if x[0] > 0 { y[0] += 3 } else { y[1] += 4 }
        }),
        case("value-of-call-in-branch", "let v = if load(x) > 0 { twice(load(x)) } else { 0 }; store(y, v);", twice, |x, y| {
            y[0] = if x[0] > 0 { 2 * x[0] } else { 0 };
        }),
        case("call-in-loop", "for i in 0..16 { add_to(y + i, twice(load(x + i))); }", &format!("{add}\n{twice}"), |x, y| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y += 2 * x);
        }),
        case("returns-in-function", "store(y, choose(load(x)));", choose, |x, y| {
            y[0] = if x[0] > 0 {
                x[0]
            } else if x[0] > -10 {
                1
            } else {
                2
            };
        }),
        case("nested-calls", "store(y, twice(choose(twice(load(x)))));", &format!("{choose}\n{twice}"), |x, y| {
            let v = 2 * x[0];
            y[0] = 2 * if v > 0 {
                v
            } else if v > -10 {
                1
            } else {
                2
            };
        }),
        case(
            "tuple-of-function",
            "let (a, b) = both(load(x), load(x + 1)); store(y, a); store(y + 1, b);",
            "#[device]\nfn both(a: Value<i32>, b: Value<i32>) -> (Value<i32>, Value<i32>) { (a + b, a - b) }",
            |x, y| {
                y[0] = x[0] + x[1];
                y[1] = x[0] - x[1];
            },
        ),
        case(
            "option-with-default",
            "store(y, scaled(load(x))); store(y + 1, scaled(load(x), by = 5));",
            "#[device]\nfn scaled(v: Value<i32>, #[option(3)] by: i32) -> Value<i32> { v * by }",
            |x, y| {
                y[0] = 3 * x[0];
                y[1] = 5 * x[0];
            },
        ),
        case(
            "constant-of-function",
            "store(y + arange(0, 8), part::<8>(x)); store(y + arange(8, 12), part::<4>(x));",
            "#[device]\nfn part<const N: usize>(x: Ptr<i32>) -> Value<i32> { load(x + arange(0, N)) }",
            |x, y| {
                y[..8].copy_from_slice(&x[..8]);
                y[8..12].copy_from_slice(&x[..4]);
            },
        ),
        case(
            "function-as-argument",
            "store(y, sum(reduce(load(x + arange(0, 16)[(None, ..)]), 1, larger)));",
            "#[device]\nfn larger(a: Value<i32>, b: Value<i32>) -> Value<i32> { max(a, b) }",
            |x, y| y[0] = *x.iter().max().unwrap_or(&0),
        ),
    ]
}

/// A call in each arm of branches in branches, with and without a result that is left out.
pub(crate) fn nested_if_else_return() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, inner) in [("return", "return 1;"), ("value", "store(y + 1, 1); return 3;")] {
        for outer in ["load(x) > 0", "load(x) > 0 && load(x + 1) > 0"] {
            for last in ["4", "load(x + 2)"] {
                let functions = format!(
                    "#[device]\nfn deep(x: Ptr<i32>, y: PtrMut<i32>) -> Value<i32> {{
                        if {outer} {{ if load(x + 3) > 0 {{ {inner} }} else {{ return 2; }} }}
                        {last}
                    }}"
                );
                let name = format!(
                    "{name}-{}-{}",
                    if outer.contains("&&") { "two" } else { "one" },
                    if last == "4" { "constant" } else { "load" }
                );
                let source = Source::new(format!("fn kernel(x: Ptr<i32>, y: PtrMut<i32>) {{ store(y, deep(x, y)); }}\n{functions}"));
                let (both, is_return, is_constant) = (outer.contains("&&"), inner.starts_with("return"), last == "4");
                cases.push(Case::new(name, move |lab| {
                    for _ in 0..4 {
                        let (x, first) = (lab.ints(Dtype::I32, 4, -2, 3), lab.any(Dtype::I32, 2));
                        let mut y = first.clone();
                        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
                        let at = |i: usize| x.get(i).int();
                        let mut want = [0, first.get(1).int()];
                        want[0] = match at(0) > 0 && (!both || at(1) > 0) {
                            true if at(3) > 0 && is_return => 1,
                            true if at(3) > 0 => 3,
                            true => 2,
                            false if is_constant => 4,
                            false => at(2),
                        };
                        if want[0] == 3 && !is_return && at(0) > 0 && at(3) > 0 && (!both || at(1) > 0) {
                            want[1] = 1;
                        }
                        y.check(Tolerance::Exact, |i| Number::Int(want[i]))?;
                    }
                    Ok(())
                }));
            }
        }
    }
    cases
}

/// `while`, loops in loops, `break` and `continue`, and loops that are written out.
pub(crate) fn loops() -> Vec<Case> {
    vec![
        case(
            "while",
            "let mut i = load(x); let mut n = 0i32; while i < 25 { i += 3; n += 1; } store(y, i); store(y + 1, n);",
            "",
            |x, y| {
                let iterations = if x[0] < 25 { (25 - x[0] + 2) / 3 } else { 0 };
                y[0] = x[0] + 3 * iterations;
                y[1] = iterations;
            },
        ),
        case(
            "nested-while",
            "let mut n = 0i32; let mut i = 0i32; while i < 10 { let mut j = i; while j < 10 { j += 1; n += 1; } i += 1; } store(y, n);",
            "",
            |_, y| y[0] = 55,
        ),
        case(
            "while-with-tile",
            "let at = arange(0, 16); let mut v = load(x + at); while any(v > 0) { v = select(v > 0, v - 7, v); } store(y + at, v);",
            "",
            |x, y| y.iter_mut().zip(x).for_each(|(y, x)| *y = if *x > 0 { x - 7 * ((x + 6) / 7) } else { *x }),
        ),
        case("static-range", "for i in static_range(0, 16, 3) { store(y + i, i as i32 * 2); }", "", |_, y| {
            (0..16).step_by(3).for_each(|i| y[i] = 2 * i as i128);
        }),
        case("static-range-carries", "let mut v = load(x); for i in static_range(0, 4) { v = v * 2 + 1; } store(y, v);", "", |x, y| {
            y[0] = 16 * x[0] + 15;
        }),
        case("range-of-steps", "let mut s = 0i32; for i in range(1, 16, 4) { s += load(x + i); } store(y, s);", "", |x, y| {
            y[0] = x[1] + x[5] + x[9] + x[13];
        }),
        case("empty-range", "for i in range(5, 5) { store(y, 1); } for i in range(7, 2) { store(y, 1); }", "", |_, _| {}),
        case("break", "for i in 0..16 { if load(x + i) < -10 { break; } store(y + i, 1); }", "", |x, y| {
            let end = x.iter().position(|x| *x < -10).unwrap_or(LEN);
            y[..end].fill(1);
        }),
        case("continue", "for i in 0..16 { if load(x + i) < 0 { continue; } store(y + i, 1); }", "", |x, y| {
            y.iter_mut().zip(x).for_each(|(y, x)| *y = if *x < 0 { *y } else { 1 });
        }),
        case(
            "break-of-the-inner-loop",
            "let mut n = 0i32; for i in 0..4 { for j in 0..4 { if load(x + (4 * i + j)) > 5 { break; } n += 1; } } store(y, n);",
            "",
            |x, y| y[0] = x.chunks(4).map(|row| row.iter().take_while(|x| **x <= 5).count() as i128).sum(),
        ),
        case(
            "temporary-in-loop",
            "let mut s = 0i32; for i in 0..16 { let t = load(x + i); let u = t * t; s += u - t; } store(y, s);",
            "",
            |x, y| {
                y[0] = x.iter().map(|x| x * x - x).sum();
            },
        ),
        case("range-of-a-scalar", "let n = (load(x) & 7) as i64; for i in 0..n { store(y + i, 5); }", "", |x, y| {
            y[..(x[0] & 7) as usize].fill(5)
        }),
        case(
            "two-values-carried",
            "let (mut a, mut b) = (load(x), load(x + 1)); for _ in 0..5 { (a, b) = (b, a + b); } store(y, a); store(y + 1, b);",
            "",
            |x, y| {
                let (mut a, mut b) = (x[0], x[1]);
                (0..5).for_each(|_| (a, b) = (b, a + b));
                (y[0], y[1]) = (a, b);
            },
        ),
    ]
}

/// Loops that load ahead, or do several iterations at once, give what the loop as it stands gives.
pub(crate) fn stages_and_unrolling() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [Dtype::F16, Dtype::F32, Dtype::I32] {
        for stages in [1, 2, 3, 5] {
            for unroll in [1, 3] {
                let source = Source::new(format!(
                    "fn kernel(x: Ptr<{dtype}>, w: Ptr<{dtype}>, y: PtrMut<i64>, n: usize) {{
                        let mut total = zeros::<i64>([256]);
                        for start in range(0, n, 256, num_stages = {stages}, unroll = {unroll}) {{
                            let at = start + arange(0, 256);
                            total += load(x + at, mask = at < n) as i64 * load(w + at, mask = at < n) as i64;
                        }}
                        store(y, sum(total));
                    }}"
                ));
                cases.push(Case::new(format!("{dtype}-stages{stages}-unroll{unroll}"), move |lab| {
                    for n in [0, 1 + lab.below(255), 256 * lab.below(6), 1 + lab.below(2000)] {
                        let (x, w) = (lab.ints(dtype, n, -9, 10), lab.ints(dtype, n, -9, 10));
                        let mut y = lab.any(Dtype::I64, 1);
                        let count = Arg::Scalar(Dtype::I64, Number::Int(n as i128));
                        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::In(&w), Arg::Out(&mut y), count])?;
                        let total = x.numbers().zip(w.numbers()).map(|(x, w)| x.float() as i128 * w.float() as i128).sum();
                        y.check(Tolerance::Exact, |_| Number::Int(total))?;
                    }
                    Ok(())
                }));
            }
        }
    }
    cases
}

/// Compile-time constants: arithmetic, types, tuples, and branches on them.
pub(crate) fn constants() -> Vec<Case> {
    let mut cases = vec![
        case("assignment", "let n = 4; let m = n * 2 + 1; store(y + arange(0, m), 1);", "", |_, y| y[..9].fill(1)),
        case(
            "arithmetic",
            "static_assert!((7 / 2) * 2 + 7 % 2 == 7); static_assert!(1 << 4 == 16); store(y, (7 / 2) * 10 + 7 % 2);",
            "",
            |_, y| {
                y[0] = 31;
            },
        ),
        case("negative", "store(y, -7 / 2); store(y + 1, -7 % 2);", "", |_, y| (y[0], y[1]) = (-3, -1)),
        case("if", "let v = if 2 * 3 == 6 { load(x) } else { load(x + 1) }; store(y, v);", "", |x, y| y[0] = x[0]),
        case("if-return", "if 1 == 1 { store(y, 1); return; } store(y, 2);", "", |_, y| y[0] = 1),
        case("types", "if 1 == 2 { static_assert!(1 == 2); } store(y, 3);", "", |_, y| y[0] = 3),
        case("bounds-of-types", "store(y, i32::MAX); store(y + 1, i32::MIN); store(y + 2, u8::MAX as i32);", "", |_, y| {
            (y[0], y[1], y[2]) = (i32::MAX.into(), i32::MIN.into(), 255);
        }),
        case("tuple", "let t = (1, (2, 3)); let (a, (b, c)) = t; store(y, a + 10 * b + 100 * c);", "", |_, y| y[0] = 321),
        case("short-circuit", "if 1 == 2 && load(x) > 0 { store(y, 1); } if 1 == 1 || load(x) > 0 { store(y + 1, 1); }", "", |_, y| {
            y[1] = 1
        }),
        case("extent", "let v = load(x + arange(0, 8)); store(y, extent(v, 0) as i32 + numel(v) as i32 + rank(v) as i32);", "", |_, y| {
            y[0] = 17
        }),
    ];
    for (name, body, message) in [
        ("assertion-fails", "static_assert!(1 == 2, \"one is not two\"); store(y, 1);", "one is not two"),
        ("axis-of-programs", "store(y, program_id(3) as i32);", "axis"),
        ("undefined", "store(y, v);", "`v`"),
        ("extent-at-run-time", "let n = load(x) as i64; store(y + arange(0, n), 1);", "constant"),
        ("type-changes-in-a-loop", "let mut v = 1.0f32; for i in 0..4 { v = zeros::<f32>([4]); } store(y, 1);", "`v`"),
    ] {
        cases.push(refused(name, Source::new(format!("fn kernel(x: Ptr<i32>, y: PtrMut<i32>) {{ {body} }}")), message));
    }
    cases
}

/// Scalars of every type as arguments, at the ends of their ranges: the kernel is the same for each value.
pub(crate) fn value_specialization() -> Vec<Case> {
    let rows: [(Dtype, i128); 15] = [
        (Dtype::I8, -128),
        (Dtype::U8, 255),
        (Dtype::I16, -32768),
        (Dtype::U16, 65535),
        (Dtype::I32, -1),
        (Dtype::I32, 0),
        (Dtype::I32, 1),
        (Dtype::I32, 16),
        (Dtype::I32, i32::MIN as i128),
        (Dtype::U32, u32::MAX as i128),
        (Dtype::I64, -1),
        (Dtype::I64, i64::MIN as i128),
        (Dtype::I64, 1 << 40),
        (Dtype::U64, u64::MAX as i128),
        (Dtype::U64, 1 << 63),
    ];
    let mut cases: Vec<Case> = rows
        .into_iter()
        .map(|(dtype, value)| {
            let source =
                Source::new(format!("fn kernel(y: PtrMut<{dtype}>, v: {dtype}) {{ store(y, v); store(y + 1 + arange(0, 4), v); }}"));
            Case::new(format!("{dtype}-{value}"), move |lab| {
                let mut y = lab.any(dtype, 5);
                lab.launch(&source, [1; 3], &mut [Arg::Out(&mut y), Arg::Scalar(dtype, Number::Int(value))])?;
                y.check(Tolerance::Exact, |_| Number::Int(value))
            })
        })
        .collect();
    for dtype in [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64, Dtype::Bool] {
        let source = Source::new(format!("fn kernel(y: PtrMut<{dtype}>, v: {dtype}) {{ store(y + arange(0, 4), v); }}"));
        cases.push(Case::new(dtype.name(), move |lab| {
            let v = lab.any(dtype, 1);
            let mut y = lab.any(dtype, 4);
            lab.launch(&source, [1; 3], &mut [Arg::Out(&mut y), Arg::Scalar(dtype, v.get(0))])?;
            y.check(Tolerance::Exact, |_| v.get(0))
        }));
    }
    cases
}

/// A grid of three axes tells each program where it is.
pub(crate) fn num_programs() -> Vec<Case> {
    let source = Source::new(
        "fn kernel(y: PtrMut<i64>) {
            let (i, j, k) = (program_id(0), program_id(1), program_id(2));
            let at = (i * num_programs(1) + j) * num_programs(2) + k;
            store(y + at, i * 100 + j * 10 + k);
        }",
    );
    vec![Case::new("axes", move |lab| {
        let mut y = lab.any(Dtype::I64, 60);
        lab.launch(&source, [3, 4, 5], &mut [Arg::Out(&mut y)])?;
        y.check(Tolerance::Exact, |at| Number::Int((at / 20 * 100 + at / 5 % 4 * 10 + at % 5) as i128))
    })]
}

/// The same result whatever the number of warps; a number that is no power of two is refused.
pub(crate) fn num_warps() -> Vec<Case> {
    let mut cases: Vec<Case> = [1, 2, 4, 8, 16, 32]
        .map(|num_warps| {
            let source = Source::new("fn kernel(x: Ptr<i32>, y: PtrMut<i32>) { let at = arange(0, 512); store(y + at, cumsum(load(x + at))); store(y + 512, sum(load(x + at))); }");
            Case::new(num_warps.to_string(), move |lab| {
                let (x, mut y) = (lab.any(Dtype::I32, 512), lab.any(Dtype::I32, 513));
                lab.launch(&source.clone().warps(num_warps), [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
                y.check(Tolerance::Exact, |i| Number::Int((0..=i.min(511)).map(|at| x.get(at).int()).sum()))
            })
        })
        .into();
    cases.push(Case::new("3", |_| {
        let func = kernel_lang::ir::parse(&Source::new("fn kernel(y: PtrMut<i32>) { store(y, 1); }").lower()?)
            .map_err(|error| error.to_string())?;
        let schedule = Schedule { num_warps: 3, ..Schedule::DEFAULT };
        let options = Options { schedule, ..Options::new(Bindings::new(), Target::SM_80) };
        let errors = match kernel_lang::compile(&func, &options) {
            Ok(_) => return Err("three warps are accepted".into()),
            Err(errors) => errors.render(&func.files),
        };
        if errors.contains("power of two") { Ok(()) } else { Err(errors) }
    }));
    cases
}

/// The most registers of a thread are passed to the assembler.
pub(crate) fn maxnreg() -> Vec<Case> {
    vec![Case::new("64", |_| {
        let func = kernel_lang::ir::parse(&Source::new("fn kernel(y: PtrMut<i32>) { store(y, 1); }").lower()?)
            .map_err(|error| error.to_string())?;
        let schedule = Schedule { maxnreg: Some(64), ..Schedule::DEFAULT };
        let options = Options { schedule, ..Options::new(Bindings::new(), Target::SM_90A) };
        let compiled = kernel_lang::compile(&func, &options).map_err(|errors| errors.render(&func.files))?;
        if compiled.ptx.contains(".maxnreg 64") { Ok(()) } else { Err(compiled.ptx) }
    })]
}
