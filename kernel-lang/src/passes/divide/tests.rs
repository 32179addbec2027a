//! The pass and what follows it, executed for many operands, against the op itself.

use super::{scalars, *};
use crate::ir::{Handle, Stage, parse, verify};
use crate::passes::{cse, dce};
use crate::random::Random;
use crate::scalar::{self, Scalar};

const INTEGERS: [Dtype; 8] = [Dtype::I8, Dtype::U8, Dtype::I16, Dtype::U16, Dtype::I32, Dtype::U32, Dtype::I64, Dtype::U64];

/// The least and the greatest number of an integer type.
fn limits(dtype: Dtype) -> (i128, i128) {
    let bits = dtype.bits();
    if dtype.is_signed_int() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn element(number: i128, dtype: Dtype) -> Scalar {
    Scalar::from_bits(dtype, number as u64)
}

/// Numbers of a type at the edges of 8, 16, 31, 32, 63 and 64 bits, small ones, powers of two and their neighbours, and random ones of any length.
fn numbers(dtype: Dtype, random: &mut Random) -> Vec<i128> {
    let (least, most) = limits(dtype);
    let mut all: Vec<i128> = (-3..13).chain([25, 60, 100, 641, 1000, 12_672, least, least + 1, most, most - 1]).collect();
    all.extend((3..64).flat_map(|bit| [(1i128 << bit) - 1, 1 << bit, (1 << bit) + 1]));
    for bit in (0..64).step_by(3) {
        let words = (random.below(1 << 31) as i128) << 33 | (random.below(1 << 31) as i128) << 2 | random.below(4) as i128;
        all.push(words >> (63 - bit));
    }
    all.extend(all.clone().iter().map(|number| -number));
    all.retain(|number| (least..=most).contains(number));
    all.sort_unstable();
    all.dedup();
    all
}

/// The values that a straight-line kernel stores, in the order of its stores. All elements of a tile are computed alike. A load gives the value of
/// `argument` for its tensor.
fn stored(func: &Function, argument: &dyn Fn(&str) -> Scalar) -> Vec<Scalar> {
    let mut values = vec![Scalar::from_bits(Dtype::Bool, 0); func.value_count()];
    func.params.iter().for_each(|param| values[param.value.index()] = argument(&param.name));
    let mut results = Vec::new();
    execute(func, func.body, &mut values, &mut results);
    results
}

fn execute(func: &Function, region: Region, values: &mut [Scalar], stored: &mut Vec<Scalar>) {
    for inst in &func.region(region).insts {
        let data = func.inst(*inst);
        let dtype = |value: &Value| func.ty(*value).dtype();
        let at = |value: Value| values[value.index()];
        let result = match &data.op {
            Op::Const { value } => Scalar::from_const(value, dtype(&data.results[0])),
            Op::Broadcast { x } | Op::ExpandDims { x, .. } => Some(at(*x)),
            // The tests are about the number 7 of each tile, as about any other one, and about the program 7.
            Op::Arange { .. } | Op::ProgramId { .. } => Some(element(7, Dtype::I64)),
            Op::Load { base, .. } => Some(at(*base)),
            Op::Unary { op, x } => scalar::unary(*op, at(*x)),
            Op::Binary { op, lhs, rhs } => scalar::binary(*op, at(*lhs), at(*rhs)),
            Op::Compare { op, lhs, rhs } => scalar::compare(*op, at(*lhs), at(*rhs)),
            Op::Select { cond, on_true, on_false } => scalar::select(at(*cond), at(*on_true), at(*on_false)),
            Op::Cast { x } => Some(scalar::cast(at(*x), dtype(&data.results[0]))),
            Op::Bitcast { x } => scalar::bitcast(at(*x), dtype(&data.results[0])),
            Op::Store { value, .. } => {
                stored.push(at(*value));
                continue;
            }
            Op::If { cond, then_region, else_region, .. } => {
                let taken = if at(*cond).bits() == 1 { *then_region } else { *else_region };
                execute(func, taken, values, stored);
                for (result, value) in data.results.iter().zip(func.yielded(taken)) {
                    values[result.index()] = values[value.index()];
                }
                continue;
            }
            Op::Yield { .. } | Op::Return {} => continue,
            op => panic!("a kernel of these tests has no `{}`", op.name()),
        };
        values[data.results[0].index()] = result.unwrap_or_else(|| panic!("{:?} is not defined", data.op));
    }
}

/// Runs the pass, then the passes that tidy its result.
fn divided(func: &mut Function) {
    assert!(run(func), "{func}");
    cse::run(func);
    dce::run(func);
    scalars::run(func);
    assert!(verify(func, Stage::Tile).is_ok(), "{func}");
}

/// A kernel that stores the quotient and the remainder of `n` and `d`. Both are tiles that are loaded, scalars that are loaded, or arguments.
fn kernel(dtype: Dtype, [n, d]: [&str; 2]) -> String {
    let ty = if [n, d].contains(&"tile") { format!("tile<{dtype}, [512]>") } else { dtype.to_string() };
    let operand = |name: &str, kind: &str| match kind {
        "tile" => format!("%{name} = load %p{name}, %i : {ty}\n"),
        "loaded" => format!("%s{name} = load %p{name}, %zero : {dtype}\n"),
        _ => String::new(),
    };
    let spread = |name: &str, kind: &str| match kind {
        "tile" => String::new(),
        _ if ty.starts_with("tile") => format!("%{name} = broadcast %s{name} : {ty}\n"),
        _ => String::new(),
    };
    let name = |name: &str, kind: &str| if kind == "tile" || ty.starts_with("tile") { name.to_owned() } else { format!("s{name}") };
    let (x, y) = (name("n", n), name("d", d));
    let offset = if ty.starts_with("tile") { "%i" } else { "%zero" };
    let text = format!(
        "kernel @k(%pn: ptr<{dtype}>, %pd: ptr<{dtype}>, %y: ptr_mut<{dtype}>, %sn: {dtype}, %sd: {dtype}) {{
        %zero = const {{value = 0}} : i64
        %i = arange {{start = 0, end = 512}} : tile<i64, [512]>
        {}{}{}{}%q = div %{x}, %{y} : {ty}
        %r = rem %{x}, %{y} : {ty}
        store %y, {offset}, %q
        store %y, {offset}, %r
        return\n}}",
        operand("n", n),
        operand("d", d),
        spread("n", n),
        spread("d", d),
    );
    // A name is a parameter's or a result's.
    let mut text = text;
    for (name, kind) in [("sn", n), ("sd", d)] {
        if kind == "loaded" {
            text = text.replacen(&format!(", %{name}: {dtype}"), "", 1);
        }
    }
    text
}

/// Compares a kernel of [`kernel`] with the op.
fn check(dtype: Dtype, kinds: [&str; 2], pairs: impl Iterator<Item = (i128, i128)>) {
    let text = kernel(dtype, kinds);
    let mut func = parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    divided(&mut func);
    for (n, d) in pairs {
        let [x, y] = [n, d].map(|number| element(number, dtype));
        let wanted = [BinaryOp::Div, BinaryOp::Rem].map(|op| scalar::binary(op, x, y).expect("it is total"));
        let found = stored(&func, &|name| if name.ends_with('n') { x } else { y });
        assert_eq!(found, wanted, "{n} and {d} of {dtype}, {kinds:?}\n{func}");
    }
}

#[test]
fn every_pair_of_8_bits() {
    for dtype in [Dtype::I8, Dtype::U8] {
        let (least, most) = limits(dtype);
        let pairs = || (least..=most).flat_map(|n| (least..=most).map(move |d| (n, d)));
        for kinds in [["tile", "argument"], ["loaded", "argument"], ["tile", "loaded"]] {
            check(dtype, kinds, pairs());
        }
    }
}

#[test]
fn pairs_at_the_edges_of_every_type() {
    let mut random = Random { state: 11 };
    for dtype in INTEGERS {
        let numbers = numbers(dtype, &mut random);
        for kinds in [["tile", "argument"], ["loaded", "argument"], ["tile", "loaded"], ["tile", "tile"], ["argument", "loaded"]] {
            // About a multiple of the divisor, too.
            let near = |n: i128, d: i128| (d != 0).then(|| [n - n % d, n - n % d - 1]).into_iter().flatten();
            let (least, most) = limits(dtype);
            let pairs = numbers.iter().flat_map(|n| numbers.iter().flat_map(move |d| near(*n, *d).chain([*n]).map(move |n| (n, *d))));
            check(dtype, kinds, pairs.filter(|(n, _)| (least..=most).contains(n)).step_by(37));
        }
    }
}

/// Constants, by which the pass makes another kernel each.
#[test]
fn constants_of_every_type() {
    let mut random = Random { state: 13 };
    for dtype in INTEGERS {
        let numbers = numbers(dtype, &mut random);
        for d in &numbers {
            let text = kernel(dtype, ["argument", "argument"]).replace(&format!(", %sd: {dtype}"), "");
            let text = text.replacen("%zero", &format!("%sd = const {{value = {d}}} : {dtype}\n%zero"), 1);
            let mut func = parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
            divided(&mut func);
            let near = |n: i128| (*d != 0).then(|| [n - n % d, n - n % d - 1, n - n % d + 1]).into_iter().flatten();
            let (least, most) = limits(dtype);
            let edges = numbers.iter().flat_map(|n| near(*n).chain([*n])).filter(|n| (least..=most).contains(n));
            for n in edges.step_by(5).chain([0, *d, least, most]) {
                let [x, y] = [n, *d].map(|number| element(number, dtype));
                let wanted = [BinaryOp::Div, BinaryOp::Rem].map(|op| scalar::binary(op, x, y).expect("it is total"));
                assert_eq!(stored(&func, &|_| x), wanted, "{n} and {d} of {dtype}\n{func}");
            }
        }
    }
}

/// Indices that are taken apart and put together, with arguments for which the values fit in 32 bits, or just do not, against the kernel as it was.
#[test]
fn groups_of_indices() {
    let text = "kernel @k(%px: ptr<i64>, %y: ptr_mut<i64>, %start: i64, %m: i64, %n: i64) {
        %i = arange {start = 0, end = 512} : tile<i64, [512]>
        %s = broadcast %start : tile<i64, [512]>
        %o = add %s, %i : tile<i64, [512]>
        %a = broadcast %m : tile<i64, [512]>
        %b = broadcast %n : tile<i64, [512]>
        %q = div %o, %a : tile<i64, [512]>
        %r = rem %q, %b : tile<i64, [512]>
        %p = mul %r, %a : tile<i64, [512]>
        %t = rem %o, %a : tile<i64, [512]>
        %u = add %p, %t : tile<i64, [512]>
        %v = sub %u, %s : tile<i64, [512]>
        %w = max %v, %t : tile<i64, [512]>
        store %y, %i, %w
        store %y, %i, %r
        %x = load %px, %i : tile<i64, [512]>
        %z = add %q, %x : tile<i64, [512]>
        %g = div %z, %b : tile<i64, [512]>
        store %y, %i, %g
        return\n}";
    let given = parse(text).expect("it is well formed");
    let mut func = given.clone();
    divided(&mut func);
    assert!(func.all_insts().iter().any(|inst| matches!(func.inst(*inst).op, Op::If { .. })), "{func}");
    let edge = 1i64 << 31;
    let starts = [0, 1, 1 << 20, edge - 9, edge - 8, edge - 7, edge, 2 * edge - 8, 1 << 40, -8, -7, -1, i64::MIN, i64::MAX - 8, i64::MAX];
    let divisors =
        [0, 1, 2, 3, 7, 512, 1 << 16, (1 << 16) + 1, edge - 1, edge, edge + 1, 2 * edge, 2 * edge + 3, -1, -3, i64::MIN, i64::MAX];
    for start in starts {
        for (m, n) in divisors.iter().flat_map(|m| divisors.map(|n| (*m, n))) {
            let x = if n % 2 == 0 { m } else { 5 * edge };
            let argument = |name: &str| {
                let number = match name {
                    "start" => start,
                    "m" => m,
                    "n" => n,
                    _ => x,
                };
                element(number.into(), Dtype::I64)
            };
            assert_eq!(stored(&func, &argument), stored(&given, &argument), "{start} by {m} and {n}, {x}\n{func}");
        }
    }
}

/// The sizes of a kernel's values: exact where arguments do not count, and the whole type where they do.
#[test]
fn sizes_of_indices() {
    let func = parse(
        "kernel @k(%y: ptr_mut<i64>, %n: i64, %c: u8) {
        %id = program_id : i64
        %i = arange {start = 3, end = 512} : tile<i64, [512]>
        %k = const {value = 1024} : i64
        %s = mul %id, %k : i64
        %b = broadcast %s : tile<i64, [512]>
        %o = add %b, %i : tile<i64, [512]>
        %q = div %id, %n : i64
        %r = rem %id, %n : i64
        %w = cast %c : i64
        %d = sub %w, %k : i64
        %m = mul %n, %n : i64
        %five = const {value = -5} : i64
        for %five, %w, %k (%at: i64) {
            %e = add %at, %k : i64
            store %y, %at, %e
            yield
        }
        store %y, %i, %o
        return\n}",
    )
    .expect("it is well formed");
    let sizes = Sizes::of(&func);
    let of = |found: &dyn Fn(&Op) -> bool, which: usize| {
        let insts = func.all_insts();
        let results: Vec<Value> = insts.into_iter().filter(|inst| found(&func.inst(*inst).op)).map(|inst| func.result(inst)).collect();
        sizes.size(&func, results[which]).map(|size| (size.low, size.high))
    };
    let binary = |wanted: BinaryOp, which: usize| of(&|op| matches!(op, Op::Binary { op, .. } if *op == wanted), which);
    let most = (1i128 << 31) - 1;
    assert_eq!(of(&|op| matches!(op, Op::Arange { .. }), 0), Some((3, 511)));
    assert_eq!(binary(BinaryOp::Mul, 0), Some((0, most * 1024)));
    assert_eq!(binary(BinaryOp::Add, 0), Some((3, most * 1024 + 511)));
    assert_eq!(binary(BinaryOp::Div, 0), Some((-most, most)));
    assert_eq!(binary(BinaryOp::Rem, 0), Some((0, most)));
    assert_eq!(binary(BinaryOp::Sub, 0), Some((-1024, 255 - 1024)));
    assert_eq!(binary(BinaryOp::Mul, 1), Some((i64::MIN.into(), i64::MAX.into())));
    // The index of the loop is at least -5 and less than 255.
    assert_eq!(binary(BinaryOp::Add, 1), Some((1019, 1278)));
}

/// Dividends of 64 bits that are small by the ops that compute them, or just are not: numbers of 16 and 32 bits, and sums.
#[test]
fn dividends_that_are_small() {
    let mut random = Random { state: 17 };
    let divisors = numbers(Dtype::I64, &mut random);
    for dtype in [Dtype::I16, Dtype::U16, Dtype::I32, Dtype::U32] {
        let dividends = numbers(dtype, &mut random);
        for (ty, added) in [("i64", 0), ("i64", 1), ("tile<i64, [512]>", 0), ("tile<i64, [512]>", -1)] {
            let (of, at, spread) = match ty {
                "i64" => (dtype.to_string(), "%zero", ""),
                _ => (format!("tile<{dtype}, [512]>"), "%i", "%d = broadcast %sd : tile<i64, [512]>"),
            };
            let d = if spread.is_empty() { "%sd" } else { "%d" };
            let text = |constant: &str| {
                format!(
                    "kernel @k(%pn: ptr<{dtype}>, %y: ptr_mut<i64>, %sd: i64) {{
                    %zero = const {{value = 0}} : i64
                    %i = arange {{start = 0, end = 512}} : tile<i64, [512]>
                    %x = load %pn, {at} : {of}
                    %w = cast %x : {ty}
                    %c = const {{value = {added}}} : {ty}
                    %n = add %w, %c : {ty}
                    {spread}
                    {constant}
                    %q = div %n, {0} : {ty}
                    %r = rem %n, {0} : {ty}
                    store %y, {at}, %q
                    store %y, {at}, %r
                    return\n}}",
                    if constant.is_empty() { d } else { "%k" }
                )
            };
            let check = |func: &Function, d: i128| {
                for n in &dividends {
                    let argument = |name: &str| if name == "pn" { element(*n, dtype) } else { element(d, Dtype::I64) };
                    let [x, y] = [n + added, d].map(|number| element(number, Dtype::I64));
                    let wanted = [BinaryOp::Div, BinaryOp::Rem].map(|op| scalar::binary(op, x, y).expect("it is total"));
                    assert_eq!(stored(func, &argument), wanted, "{n} + {added} by {d}\n{func}");
                }
            };
            let given = parse(&text("")).unwrap_or_else(|error| panic!("{error:?}\n{}", text("")));
            let mut func = given.clone();
            divided(&mut func);
            divisors.iter().step_by(5).for_each(|d| check(&func, *d));
            for d in divisors.iter().step_by(13) {
                let mut func = parse(&text(&format!("%k = const {{value = {d}}} : {ty}"))).expect("it is well formed");
                divided(&mut func);
                check(&func, *d);
            }
        }
    }
}

#[test]
fn a_fine_reciprocal_needs_no_correction() {
    divided_by_reciprocals(|b, op, n, d| FineReciprocal::of(b, d).divided(b, op, n));
}

#[test]
fn a_reciprocal_of_a_positive_number_is_corrected() {
    divided_by_reciprocals(|b, op, n, d| Reciprocal::of_positive(b, d).divided(b, op, n));
}

/// Compares quotients and remainders of numbers below 2^31 by numbers from 1 to 2^31.
fn divided_by_reciprocals(divided: impl Fn(&mut Builder<'_>, BinaryOp, Value, Value) -> Value) {
    let mut func = parse(&kernel(Dtype::U32, ["argument"; 2])).expect("it parses");
    expand_each(&mut func, |func, region, inst| {
        let Op::Binary { op: op @ (BinaryOp::Div | BinaryOp::Rem), lhs: n, rhs: d } = func.inst(inst).op else { return None };
        let b = &mut Builder::new(func, region, func.inst(inst).loc);
        Some(divided(b, op, n, d))
    });
    let numbers = numbers(Dtype::U32, &mut Random { state: 31 });
    for &d in numbers.iter().filter(|d| (1..=1 << 31).contains(*d)) {
        // An error of the reciprocal shows first next to large multiples of the divisor.
        let largest = ((1 << 31) - 1) / d * d;
        let near = [largest - 1, largest, d - 1, d, d + 1];
        for n in numbers.iter().copied().chain(near).filter(|n| (0..1 << 31).contains(n)) {
            let argument = |name: &str| element(if name == "sn" { n } else { d }, Dtype::U32);
            assert_eq!(stored(&func, &argument), [n / d, n % d].map(|number| element(number, Dtype::U32)), "{n} by {d}");
        }
    }
}
