//! Atomics: of scalars by many programs, of tiles whose lanes meet, with each memory order.

use galatea::Dtype;

use crate::array::{Array, Tolerance};
use crate::case::{Case, Check, Draw, refused};
use crate::lab::{Arg, Lab, Source};
use crate::number::Number;
use crate::tiles::Shape;

/// The memory orders; the first is the default.
const ORDERS: [&str; 5] = ["default", "acquire", "release", "acq_rel", "relaxed"];
const SUMMED: [Dtype; 8] = [Dtype::Bf16, Dtype::F16, Dtype::U32, Dtype::I32, Dtype::F32, Dtype::U64, Dtype::I64, Dtype::F64];
const COMPARED: [Dtype; 6] = [Dtype::U32, Dtype::I32, Dtype::F32, Dtype::U64, Dtype::I64, Dtype::F64];

fn order(sem: &str) -> String {
    if sem == "default" { String::new() } else { format!(", sem = \"{sem}\"") }
}

/// The value in memory after an atomic with operand `b` on the old value `a`.
fn joined(word: &str, a: Number, b: Number) -> Number {
    match (word, a, b) {
        ("add", Number::Int(a), Number::Int(b)) => Number::Int(a + b),
        ("max", Number::Int(a), Number::Int(b)) => Number::Int(a.max(b)),
        ("min", Number::Int(a), Number::Int(b)) => Number::Int(a.min(b)),
        ("add", a, b) => Number::Float(a.float() + b.float()),
        ("max", a, b) => Number::Float(a.float().max(b.float())),
        (_, a, b) => Number::Float(a.float().min(b.float())),
    }
}

/// Small integers of one sign, or with one that is larger or smaller than all.
fn numbers(lab: &mut Lab, mode: &str, len: usize) -> Vec<i128> {
    let mut values: Vec<i128> = (0..len).map(|_| 1 + lab.below(8) as i128).collect();
    match mode {
        "all_neg" => values.iter_mut().for_each(|value| *value = -*value),
        "min_neg" => values[lab.below(len)] = -9,
        "max_pos" => values[lab.below(len)] = 9,
        _ => {}
    }
    values
}

/// Many programs at one element: of every word and type, with each order.
pub(crate) fn atomic_rmw() -> Vec<Case> {
    let words = SUMMED.map(|dtype| ("add", dtype)).into_iter();
    let words = words.chain(COMPARED.map(|dtype| ("max", dtype))).chain(COMPARED.map(|dtype| ("min", dtype)));
    let mut cases = Vec::new();
    for (word, dtype) in words {
        for mode in ["all_neg", "all_pos", "min_neg", "max_pos"] {
            for sem in ORDERS {
                let source = Source::new(format!(
                    "fn kernel(x: Ptr<{dtype}>, z: PtrMut<{dtype}>, old: PtrMut<{dtype}>) {{
                        let program = program_id(0);
                        store(old + program, atomic_{word}(z, load(x + program){}));
                    }}",
                    order(sem)
                ));
                cases.push(Case::new(format!("{word}-{dtype}-{mode}-{sem}"), move |lab| meet(lab, &source, word, dtype, mode)));
            }
        }
    }
    cases
}

fn meet(lab: &mut Lab, source: &Source, word: &str, dtype: Dtype, mode: &str) -> Check {
    const PROGRAMS: usize = 13;
    let x = Array::ints(dtype, numbers(lab, mode, PROGRAMS));
    let first = Array::ints(dtype, [if word == "add" { 0 } else { x.get(0).float() as i128 }]);
    let (mut z, mut old) = (first.clone(), lab.any(dtype, PROGRAMS));
    lab.launch(source, [PROGRAMS, 1, 1], &mut [Arg::In(&x), Arg::Out(&mut z), Arg::Out(&mut old)])?;
    let last = x.numbers().fold(first.get(0), |a, b| joined(word, a, b).to(dtype));
    z.check(Tolerance::Exact, |_| last)?;
    take_turns(first.get(0), &old, |at, found| joined(word, found, x.get(at)).to(dtype))
}

/// Can what programs found be what each left for the next, from the first value on?
fn take_turns(first: Number, found: &Array, leaves: impl Fn(usize, Number) -> Number) -> Check {
    let mut left: Vec<usize> = (0..found.len()).collect();
    match goes_on(first, &mut left, found, &leaves) {
        true => Ok(()),
        false => Err(format!("no order of programs leads from {first:?} by {:?}", found.numbers().collect::<Vec<_>>())),
    }
}

/// Is there an order of those that are left, the first of which finds `current`?
fn goes_on(current: Number, left: &mut Vec<usize>, found: &Array, leaves: &impl Fn(usize, Number) -> Number) -> bool {
    let next = |program: usize| (found.get(program) == current).then(|| leaves(program, current));
    // A program that leaves the value unchanged may come next in every order, so no other choice need be tried.
    if let Some(at) = left.iter().position(|program| next(*program) == Some(current)) {
        left.swap_remove(at);
        return goes_on(current, left, found, leaves);
    }
    left.is_empty()
        || left.clone().into_iter().any(|program| {
            let mut others: Vec<usize> = left.iter().copied().filter(|other| *other != program).collect();
            next(program).is_some_and(|value| goes_on(value, &mut others, found, leaves))
        })
}

/// The bits of integers, and values that replace each other.
pub(crate) fn atomic_bits() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [Dtype::I32, Dtype::U32, Dtype::I64, Dtype::U64] {
        for word in ["and", "or", "xor", "xchg"] {
            let source = Source::new(format!(
                "fn kernel(x: Ptr<{dtype}>, z: PtrMut<{dtype}>, old: PtrMut<{dtype}>) {{
                    let at = program_id(0) * 64 + arange(0, 64);
                    store(old + at, atomic_{word}(z + at, load(x + at)));
                }}"
            ));
            cases.push(Case::new(format!("{word}-{dtype}"), move |lab| {
                let (x, first) = (lab.any(dtype, 100), lab.any(dtype, 100));
                let (mut z, mut old) = (first.clone(), lab.any(dtype, 100));
                lab.launch(&source, [2, 1, 1], &mut [Arg::In(&x), Arg::Out(&mut z), Arg::Out(&mut old)])?;
                old.check_bits(|i| first.bits[i])?;
                z.check_bits(|i| match word {
                    "and" => first.bits[i] & x.bits[i],
                    "or" => first.bits[i] | x.bits[i],
                    "xor" => first.bits[i] ^ x.bits[i],
                    _ => x.bits[i],
                })
            }));
        }
    }
    cases
}

/// Where the predicate does not hold, nothing happens and the result is 0.
pub(crate) fn atomic_rmw_predicate() -> Vec<Case> {
    let source = Source::new(
        "fn kernel(x: Ptr<i32>, z: PtrMut<i32>, old: PtrMut<i32>) {
            let v = load(x + program_id(0));
            store(old + program_id(0), atomic_max(z, v, mask = v < 64));
        }",
    );
    vec![Case::new("max", move |lab| {
        let x = Array::ints(Dtype::I32, (0..100).map(|_| 1 + lab.below(128) as i128));
        let (mut z, mut old) = (Array::ints(Dtype::I32, [0]), lab.any(Dtype::I32, 100));
        lab.launch(&source, [100, 1, 1], &mut [Arg::In(&x), Arg::Out(&mut z), Arg::Out(&mut old)])?;
        z.check(Tolerance::Exact, |_| Number::Int(x.numbers().map(Number::int).filter(|x| *x < 64).max().unwrap_or(0)))?;
        let (on, off): (Vec<usize>, Vec<usize>) = (0..100).partition(|i| x.get(*i).int() < 64);
        off.iter().try_for_each(|i| old.check_at(*i, Tolerance::Exact, Number::Int(0)))?;
        let found = Array { dtype: Dtype::I32, bits: on.iter().map(|i| old.bits[*i]).collect() };
        take_turns(Number::Int(0), &found, |at, found| joined("max", found, x.get(on[at])))
    })]
}

/// The sums along an axis of a matrix, added by several programs.
pub(crate) fn tensor_atomic_rmw() -> Vec<Case> {
    let mut cases = Vec::new();
    for extents in [[2, 2], [2, 8], [8, 2], [8, 8], [32, 32], [64, 64], [128, 128]] {
        for axis in [0, 1] {
            for dtype in [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64, Dtype::I32, Dtype::U64] {
                let (shape, result) = (Shape::new(&extents), Shape::new(&extents).without(axis));
                let source = Source::new(format!(
                    "fn kernel(x: Ptr<{dtype}>, z: PtrMut<{dtype}>, old: PtrMut<{dtype}>) {{
                        let at = {};
                        let before = atomic_add(z + at, sum(load(x + ({})), axis = {axis}));
                        store(old + at, before);
                    }}",
                    result.offsets(),
                    shape.offsets()
                ));
                cases.push(Case::new(format!("{dtype}-{}-axis{axis}", shape.name()), move |lab| {
                    // Mostly zeros, so that no sum leaves what a `bf16` counts.
                    let x = Array::ints(dtype, (0..shape.numel()).map(|_| i128::from(lab.below(16) == 0)));
                    let first = lab.ints(dtype, result.numel(), 0, 20);
                    let (mut z, mut old) = (first.clone(), lab.any(dtype, result.numel()));
                    lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut z), Arg::Out(&mut old)])?;
                    old.check(Tolerance::Exact, |of| first.get(of))?;
                    z.check(Tolerance::Exact, |of| shape.line(axis, of).fold(first.get(of), |sum, at| joined("add", sum, x.get(at))))
                }));
            }
        }
    }
    cases
}

/// A block of several axes at once, every program the same.
pub(crate) fn tensor_atomic_rmw_block() -> Vec<Case> {
    let shape = Shape::new(&[8, 8]);
    let source = Source::new(format!(
        "fn kernel(z: PtrMut<f32>) {{ let at = {}; atomic_min(z + at, at as f32 + program_id(0) as f32); }}",
        shape.offsets()
    ));
    vec![Case::new("min", move |lab| {
        let mut z = Array::new(Dtype::F32, vec![Number::Float(f64::INFINITY); 64]);
        lab.launch(&source, [5, 1, 1], &mut [Arg::Out(&mut z)])?;
        z.check(Tolerance::Exact, |i| Number::Int(i as i128))
    })]
}

/// Lanes go where indices say: in order, against it, anywhere, and several to one index; some are masked off.
pub(crate) fn tensor_atomic_add_access_patterns() -> Vec<Case> {
    let mut cases = Vec::new();
    for extents in [[2, 2], [4, 4], [5, 5], [6, 6], [8, 8]] {
        for pattern in ["increase", "decrease", "random-no-duplication", "random"] {
            for step in 1..=4 {
                for dtype in [Dtype::Bf16, Dtype::F16, Dtype::F32] {
                    cases.push(pattern_case(Shape::new(&extents), pattern, step, dtype));
                }
            }
        }
    }
    cases
}

fn pattern_case(shape: Shape, pattern: &'static str, step: usize, dtype: Dtype) -> Case {
    let source = Source::new(format!(
        "fn kernel(index: Ptr<i32>, x: Ptr<{dtype}>, z: PtrMut<{dtype}>) {{
            let at = {};
            atomic_add(z + load(index + at), load(x + at), mask = at % {step} == 0, sem = \"relaxed\");
        }}",
        shape.offsets()
    ));
    Case::new(format!("{}-{pattern}-step{step}-{dtype}", shape.name()), move |lab| {
        let len = shape.numel();
        let mut to: Vec<usize> = (0..len).collect();
        match pattern {
            "decrease" => to.reverse(),
            "random" => to.iter_mut().for_each(|to| *to = lab.below(len)),
            "random-no-duplication" => (1..len).rev().for_each(|last| to.swap(last, lab.below(last + 1))),
            _ => {}
        }
        let index = Array::ints(Dtype::I32, to.iter().map(|to| *to as i128));
        // Sums of 64 of them stay what a `bf16` counts.
        let (x, first) = (lab.ints(dtype, len, -2, 3), lab.ints(dtype, len, -9, 10));
        let mut z = first.clone();
        lab.launch(&source, [1; 3], &mut [Arg::In(&index), Arg::In(&x), Arg::Out(&mut z)])?;
        z.check(Tolerance::Exact, |of| {
            let here = (0..len).filter(|at| at % step == 0 && to[*at] == of);
            here.fold(first.get(of), |sum, at| joined("add", sum, x.get(at)))
        })
    })
}

/// A vector of lanes; where each goes, and what its result is used for.
fn lanes(name: &str, sizes: &[usize], dtypes: &[Dtype], to: &'static str, of: fn(usize) -> usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for &size in sizes {
        for &dtype in dtypes {
            let source = Source::new(format!(
                "fn kernel(x: Ptr<{dtype}>, z: PtrMut<{dtype}>) {{ let at = arange(0, {size}); atomic_add(z + {to}, load(x + at)); }}"
            ));
            cases.push(Case::new(format!("{name}{size}-{dtype}"), move |lab| {
                let (x, first) = (lab.ints(dtype, size, -9, 10), lab.ints(dtype, size + 1, -9, 10));
                let mut z = first.clone();
                lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut z)])?;
                z.check(Tolerance::Exact, |element| {
                    (0..size).filter(|at| of(*at) == element).fold(first.get(element), |sum, at| joined("add", sum, x.get(at)))
                })
            }));
        }
    }
    cases
}

const HALVES_AND_SINGLE: [Dtype; 3] = [Dtype::F16, Dtype::Bf16, Dtype::F32];

/// Two lanes at one element each.
pub(crate) fn tensor_atomic_add_non_exclusive_offset() -> Vec<Case> {
    lanes("", &[2, 8, 32, 64, 128, 256], &HALVES_AND_SINGLE, "at / 2", |at| at / 2)
}

/// Lanes that begin one element behind an aligned address.
pub(crate) fn tensor_atomic_add_shift_1() -> Vec<Case> {
    lanes("", &[2, 8, 32, 64, 128, 256], &HALVES_AND_SINGLE, "(at + 1)", |at| at + 1)
}

/// The old value that an atomic returns is used in arithmetic.
pub(crate) fn tensor_atomic_use_result() -> Vec<Case> {
    let mut cases = Vec::new();
    for size in [32, 64, 128, 512] {
        for dtype in HALVES_AND_SINGLE {
            let source = Source::new(format!(
                "fn kernel(x: Ptr<{dtype}>, z: PtrMut<{dtype}>, y: PtrMut<{dtype}>) {{
                    let at = arange(0, {size});
                    store(y + at, atomic_add(z + at, load(x + at)) * 2.0 + 1.0);
                }}"
            ));
            cases.push(Case::new(format!("{size}-{dtype}"), move |lab| {
                let (x, first) = (lab.ints(dtype, size, -9, 10), lab.ints(dtype, size, -9, 10));
                let (mut z, mut y) = (first.clone(), lab.any(dtype, size));
                lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut z), Arg::Out(&mut y)])?;
                y.check(Tolerance::Exact, |at| Number::Float(first.get(at).float() * 2.0 + 1.0))?;
                z.check(Tolerance::Exact, |at| joined("add", first.get(at), x.get(at)))
            }));
        }
    }
    cases
}

/// A lock made of a compare-and-swap: programs add to a tile one after the other; and one that changes what it meets, once.
pub(crate) fn atomic_cas() -> Vec<Case> {
    let mut cases = Vec::new();
    for sem in ORDERS {
        let change = Source::new(format!("fn kernel(z: PtrMut<i32>) {{ atomic_cas(z, 0, 1{}); }}", order(sem)));
        cases.push(Case::new(format!("change-{sem}"), move |lab| {
            let first = lab.below(3) as i128;
            let mut z = Array::ints(Dtype::I32, [first]);
            lab.launch(&change, [3, 1, 1], &mut [Arg::Out(&mut z)])?;
            z.check(Tolerance::Exact, |_| Number::Int(if first == 0 { 1 } else { first }))
        }));
    }
    // Taking a lock acquires, and giving it back releases: orders that promise less are no locks.
    for (dtype, sem) in
        [(Dtype::F32, "default"), (Dtype::F32, "acq_rel"), (Dtype::F32, "acquire"), (Dtype::I64, "default"), (Dtype::U8, "acq_rel")]
    {
        let taking_turns = Source::new(format!(
            "fn kernel(sum: PtrMut<{dtype}>, lock: PtrMut<i32>) {{
                let at = arange(0, 128);
                while atomic_cas(lock, 0, 1{}) == 1 {{}}
                store(sum + at, load(sum + at) + 1 as {dtype});
                atomic_xchg(lock, 0);
            }}",
            order(sem)
        ));
        cases.push(Case::new(format!("lock-{dtype}-{sem}"), move |lab| {
            let (mut sum, mut lock) = (Array::ints(dtype, vec![0; 128]), Array::ints(Dtype::I32, [0]));
            lab.launch(&taking_turns, [30, 1, 1], &mut [Arg::Out(&mut sum), Arg::Out(&mut lock)])?;
            lock.check(Tolerance::Exact, |_| Number::Int(0))?;
            sum.check(Tolerance::Exact, |_| Number::Int(30))
        }));
    }
    cases
}

/// Each lane changes its element where it has the bits that are compared.
pub(crate) fn tensor_atomic_cas() -> Vec<Case> {
    let dtypes = [Dtype::I16, Dtype::F16, Dtype::Bf16, Dtype::I32, Dtype::F32, Dtype::U64, Dtype::I64, Dtype::F64];
    let mut cases = Vec::new();
    for dtype in dtypes {
        for size in [4, 128, 512] {
            for sem in ORDERS {
                let source = Source::new(format!(
                    "fn kernel(compare: Ptr<{dtype}>, z: PtrMut<{dtype}>, old: PtrMut<{dtype}>) {{
                        let at = arange(0, {size});
                        store(old + at, atomic_cas(z + at, load(compare + at), 2 as {dtype}{}));
                    }}",
                    order(sem)
                ));
                cases.push(Case::new(format!("{dtype}-{size}-{sem}"), move |lab| {
                    let (compare, first) = (lab.ints(dtype, size, 0, 2), lab.ints(dtype, size, 0, 2));
                    let (mut z, mut old) = (first.clone(), lab.any(dtype, size));
                    lab.launch(&source, [1; 3], &mut [Arg::In(&compare), Arg::Out(&mut z), Arg::Out(&mut old)])?;
                    old.check_bits(|i| first.bits[i])?;
                    z.check(Tolerance::Exact, |i| if first.bits[i] == compare.bits[i] { Number::Int(2) } else { first.get(i) })
                }));
            }
        }
    }
    cases
}

/// Of zeros the one with a minus is the smaller one.
pub(crate) fn atomic_min_max_neg_zero() -> Vec<Case> {
    let source = Source::new(
        "fn kernel(x: Ptr<f32>, low: PtrMut<f32>, high: PtrMut<f32>) {
            let at = arange(0, 4);
            atomic_min(low + at, load(x + at));
            atomic_max(high + at, load(x + at));
        }",
    );
    vec![Case::new("f32", move |lab| {
        let zeros = |values: [f64; 4]| Array::new(Dtype::F32, values.map(Number::Float));
        let (x, first) = (zeros([0.0, -0.0, 0.0, -0.0]), zeros([0.0, 0.0, -0.0, -0.0]));
        let (mut low, mut high) = (first.clone(), first);
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut low), Arg::Out(&mut high)])?;
        let (want_low, want_high) = (zeros([0.0, -0.0, -0.0, -0.0]), zeros([0.0, 0.0, 0.0, -0.0]));
        low.check_bits(|i| want_low.bits[i])?;
        high.check_bits(|i| want_high.bits[i])
    })]
}

/// Types that no GPU adds to in one step are refused.
pub(crate) fn atomic_unsupported_type() -> Vec<Case> {
    [Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16, Dtype::Bool]
        .map(|dtype| {
            let text = format!("fn kernel(z: PtrMut<{dtype}>) {{ atomic_add(z, load(z)); }}");
            refused(dtype.name(), Source::new(text), "atomic_add")
        })
        .into()
}

/// A program waits until another has stored what it needs: of each type, order and scope.
pub(crate) fn atomic_poll() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in [Dtype::I32, Dtype::U32, Dtype::I64, Dtype::U64] {
        for scope in ["gpu", "sys"] {
            for sem in ["acquire", "relaxed"] {
                // A relaxed load does not order the loads behind it. So this kernel waits for the flag, and does not read the data.
                let read = if sem == "acquire" { "load(data + at)".to_string() } else { "full([64], 7i32)".to_string() };
                let source = Source::new(format!(
                    "fn kernel(next: PtrMut<i32>, flag: PtrMut<{dtype}>, data: PtrMut<i32>, y: PtrMut<i32>) {{
                        let at = arange(0, 64);
                        if atomic_add(next, 1) == 0 {{
                            store(data + at, 7);
                            atomic_store(flag, 1, scope = \"{scope}\");
                        }} else {{
                            while atomic_load(flag, sem = \"{sem}\", scope = \"{scope}\") == 0 {{}}
                            store(y + at, {read});
                        }}
                    }}"
                ));
                cases.push(Case::new(format!("{dtype}-{scope}-{sem}"), move |lab| {
                    let (mut next, mut flag) = (Array::ints(Dtype::I32, [0]), Array::ints(dtype, [0]));
                    let (mut data, mut y) = (Draw::Any.array(lab, Dtype::I32, 64), lab.any(Dtype::I32, 64));
                    let mut args = [Arg::Out(&mut next), Arg::Out(&mut flag), Arg::Out(&mut data), Arg::Out(&mut y)];
                    lab.launch(&source, [2, 1, 1], &mut args)?;
                    next.check(Tolerance::Exact, |_| Number::Int(2))?;
                    flag.check(Tolerance::Exact, |_| Number::Int(1))?;
                    data.check(Tolerance::Exact, |_| Number::Int(7))?;
                    y.check(Tolerance::Exact, |_| Number::Int(7))
                }));
            }
        }
    }
    cases
}

/// A program that is a cluster adds once, however many CTAs share it. Where there are no clusters, the launch says so.
pub(crate) fn multicta() -> Vec<Case> {
    let mut cases = Vec::new();
    for num_ctas in [2, 4] {
        for (name, body) in [
            ("scalar", "atomic_add(z, 1);"),
            ("tile", "atomic_add(z + arange(0, 512), 1);"),
            ("sum", "atomic_add(z + 1, sum(load(x + arange(0, 512))));"),
        ] {
            let source = Source::new(format!("fn kernel(x: Ptr<i32>, z: PtrMut<i32>) {{ {body} }}")).ctas(num_ctas);
            cases.push(Case::new(format!("{name}-ctas{num_ctas}"), move |lab| {
                let (x, first) = (lab.any(Dtype::I32, 512), lab.any(Dtype::I32, 512));
                let mut z = first.clone();
                let launched = lab.launch(&source, [3, 1, 1], &mut [Arg::In(&x), Arg::Out(&mut z)]);
                if !lab.has_clusters() {
                    return match launched {
                        Err(error) if error.contains("clusters") => Ok(()),
                        other => Err(format!("a device without clusters ran one: {other:?}")),
                    };
                }
                launched?;
                let sum: i128 = x.numbers().map(Number::int).sum();
                z.check(Tolerance::Exact, |i| {
                    let added = match (name, i) {
                        ("tile", _) | ("scalar", 0) => 3,
                        ("sum", 1) => 3 * sum,
                        _ => 0,
                    };
                    Number::Int(first.get(i).int() + added)
                })
            }));
        }
    }
    cases
}
