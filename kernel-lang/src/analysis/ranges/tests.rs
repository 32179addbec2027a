//! Random kernels of indices: every element lies in its range, and every access that is proved inside is inside.

use super::bound::{Bound, Bounds, Check, END, Node};
use super::*;
use crate::ir::{Builder, CompareOp, Region, parse};
use crate::location::Loc;
use crate::random::Random;
use crate::scalar::{self, Scalar};

const EXTENT: i64 = 8;

impl Random {
    /// Lines that define `%v0` to `%v<count - 1>`, a mask, and loads of a window with that mask.
    fn kernel(&mut self, count: usize) -> String {
        let ty = format!("tile<i64, [{EXTENT}]>");
        let mut lines = vec![format!("%v0 = arange {{start = 0, end = {EXTENT}}} : {ty}"), format!("%v1 = broadcast %a : {ty}")];
        lines.push(format!("%v2 = broadcast %b : {ty}"));
        lines.push(format!("%v3 = const {{value = {}}} : {ty}", self.pick(&[-3, 0, 1, 2, 5])));
        lines.push(format!("%v4 = add %v0, %v1 : {ty}"));
        for at in lines.len()..count {
            let (x, y) = (self.below(at), self.below(at));
            lines.push(match self.below(13) {
                0 | 1 => format!("%v{at} = div %v{x}, %v{} : {ty}", self.pick(&[1, 2])),
                2 | 3 => format!("%v{at} = rem %v{x}, %v{} : {ty}", self.pick(&[1, 2])),
                4 | 5 => self.select(at, x, y),
                6 => format!("%v{at} = abs %v{x} : {ty}"),
                7 | 8 => self.float(at, x),
                other => format!("%v{at} = {} %v{x}, %v{y} : {ty}", ["add", "sub", "mul", "max", "min"][other % 5]),
            });
        }
        let test = self.pick(&["lt", "le", "gt", "ge", "eq"]);
        let (of, to, at) = (self.below(count), self.below(count), count - 1 - self.below(3));
        format!(
            "kernel @k(%x: ptr<f32>, %a: i64, %b: i64) {{\n{}\n%m = {test} %v{of}, %v{to} : tile<bool, [{EXTENT}]>\n\
             {}\nreturn\n}}",
            lines.join("\n"),
            self.window(at),
        )
    }
}

impl Random {
    /// Loads of elements next to `%v<at>` and to its double.
    fn window(&mut self, at: usize) -> String {
        let ty = format!("tile<i64, [{EXTENT}]>");
        let mut lines = vec![format!("%double = add %v{at}, %v{at} : {ty}\n%most = min %double, %v2 : {ty}")];
        for load in 0..4 {
            let (of, moved) = (self.pick(&[format!("%v{at}").as_str(), "%double", "%most"]).to_owned(), self.pick(&[-2, -1, 0, 1, 2]));
            lines.push(format!("%c{load} = const {{value = {moved}}} : {ty}\n%w{load} = add {of}, %c{load} : {ty}"));
            lines.push(format!("%x{load} = min %w{load}, %v1 : {ty}"));
            let offset = self.pick(&["w", "x"]);
            lines.push(format!("%l{load} = load %x, %{offset}{load} {{mask = %m}} : tile<f32, [{EXTENT}]>"));
        }
        lines.join("\n")
    }

    /// Lines that select `%v<at>` by a comparison of `%v<x>` and `%v<y>`, between tiles that are computed from one of them.
    fn select(&mut self, at: usize, x: usize, y: usize) -> String {
        let ty = format!("tile<i64, [{EXTENT}]>");
        let test = self.pick(&["lt", "le", "gt", "ge", "eq", "ne"]);
        let mut lines = vec![format!("%m{at} = {test} %v{x}, %v{y} : tile<bool, [{EXTENT}]>")];
        let sides = ["a", "b"].map(|side| {
            let (compared, other, name) = (self.pick(&[x, y]), self.below(at), format!("%{side}{at}"));
            match self.below(4) {
                0 => format!("%v{compared}"),
                1 => {
                    lines.push(format!("{name} = neg %v{compared} : {ty}"));
                    name
                }
                _ => {
                    let [lhs, rhs] = if self.below(2) == 0 { [compared, other] } else { [other, compared] };
                    let (first, then) = (self.pick(&["add", "sub", "mul"]), self.pick(&["add", "sub"]));
                    lines.push(format!("{name}_0 = {first} %v{lhs}, %v{rhs} : {ty}"));
                    lines.push(format!("{name} = {then} {name}_0, %v{} : {ty}", self.below(at)));
                    name
                }
            }
        });
        lines.push(format!("%v{at} = select %m{at}, {}, {} : {ty}", sides[0], sides[1]));
        lines.join("\n")
    }

    /// Lines that compute `%v<at>` from `%v<x>` by some ops on floats.
    fn float(&mut self, at: usize, x: usize) -> String {
        let of = |dtype: &str| format!("tile<{dtype}, [{EXTENT}]>");
        let ty = of(self.pick(&["f32", "f64"]));
        let mut lines = vec![format!("%f{at}_0 = cast %v{x} : {ty}")];
        let count = 1 + self.below(4);
        for step in 0..count {
            let (last, next) = (format!("%f{at}_{step}"), format!("%f{at}_{}", step + 1));
            let constant = self.pick(&["0.5", "-0.5", "0.3333333333333333", "3.0", "1.0e-3", "0.0", "inf", "-1.0"]);
            let op = self.pick(&["add", "sub", "mul", "div", "min", "max", "floor", "rint"]);
            if matches!(op, "floor" | "rint") {
                lines.push(format!("{next} = {op} {last} : {ty}"));
            } else {
                lines.push(format!("%c{at}_{step} = const {{value = {constant}}} : {ty}"));
                let [lhs, rhs] = if self.below(3) == 0 { [format!("%c{at}_{step}"), last] } else { [last, format!("%c{at}_{step}")] };
                lines.push(format!("{next} = {op} {lhs}, {rhs} : {ty}"));
            }
        }
        lines.push(format!("%v{at} = cast %f{at}_{count} : {}", of("i64")));
        lines.join("\n")
    }
}

/// The elements of a tile of floats.
fn floats(func: &Function, value: Value, scalars: &[(Value, i128)]) -> Vec<Scalar> {
    let dtype = func.ty(value).dtype();
    let of = |value: Value| floats(func, value, scalars);
    let number = |number: i128| Scalar::from_const(&ConstExpr::Int(number), Dtype::I64).expect("it fits");
    match *func.def_op(value).expect("it is computed") {
        Op::Const { ref value } => vec![Scalar::from_const(value, dtype).expect("a float"); EXTENT as usize],
        Op::Cast { x } => elements(func, x, scalars).into_iter().map(|element| scalar::cast(number(element), dtype)).collect(),
        Op::Unary { op, x } => of(x).into_iter().map(|x| scalar::unary(op, x).expect("it is defined")).collect(),
        Op::Binary { op, lhs, rhs } => {
            of(lhs).into_iter().zip(of(rhs)).map(|(x, y)| scalar::binary(op, x, y).expect("it is defined")).collect()
        }
        ref op => panic!("{} is not drawn", op.name()),
    }
}

fn as_index(x: Scalar) -> i128 {
    scalar::cast(x, Dtype::I64).to_const().as_int().expect("an integer")
}

/// The elements of a tile, or `None` if one does not fit in an `i128` of reasonable size.
fn elements(func: &Function, value: Value, scalars: &[(Value, i128)]) -> Vec<i128> {
    let of = |value: Value| elements(func, value, scalars);
    let both = |lhs, rhs, f: &dyn Fn(i128, i128) -> i128| of(lhs).into_iter().zip(of(rhs)).map(|(x, y)| f(x, y)).collect();
    match *func.def_op(value).expect("it is computed") {
        Op::Const { ref value } => vec![value.as_int().expect("a number"); EXTENT as usize],
        Op::Arange { .. } => (0..i128::from(EXTENT)).collect(),
        Op::Broadcast { x } => vec![scalars.iter().find(|(scalar, _)| *scalar == x).expect("a parameter").1; EXTENT as usize],
        Op::Unary { op: UnaryOp::Neg, x } => of(x).into_iter().map(|x| -x).collect(),
        Op::Unary { x, .. } => of(x).into_iter().map(i128::abs).collect(),
        Op::Cast { x } => floats(func, x, scalars).into_iter().map(as_index).collect(),
        Op::Select { cond, on_true, on_false } => {
            let (cond, x, y) = (of(cond), of(on_true), of(on_false));
            (0..EXTENT as usize).map(|at| if cond[at] != 0 { x[at] } else { y[at] }).collect()
        }
        Op::Compare { op, lhs, rhs } => both(lhs, rhs, &|x, y| {
            i128::from(match op {
                CompareOp::Lt => x < y,
                CompareOp::Le => x <= y,
                CompareOp::Gt => x > y,
                CompareOp::Ge => x >= y,
                CompareOp::Eq => x == y,
                CompareOp::Ne => x != y,
            })
        }),
        Op::Binary { op, lhs, rhs } => both(lhs, rhs, &|x, y| match op {
            BinaryOp::Add => x + y,
            BinaryOp::Sub => x - y,
            BinaryOp::Mul => x.saturating_mul(y).clamp(-(1 << 100), 1 << 100),
            BinaryOp::Div => x.checked_div(y).unwrap_or(0),
            BinaryOp::Rem => x.checked_rem(y).unwrap_or(x),
            BinaryOp::Min => x.min(y),
            _ => x.max(y),
        }),
        ref op => panic!("{} is not drawn", op.name()),
    }
}

/// A bound, as a kernel computes it: modulo 2^64, and quotients in 32 bits.
fn evaluated(bounds: &Bounds, bound: Bound, scalars: &[(Value, i128)], length: i128) -> i128 {
    let of = |bound| evaluated(bounds, bound, scalars, length);
    let wrapped = |number: i128| i128::from(number as i64);
    match bounds.node(bound) {
        Node::Constant(constant) => constant.into(),
        Node::Scalar(value) => scalars.iter().find(|(scalar, _)| *scalar == value).expect("a parameter").1,
        Node::Length(_) => length,
        Node::Binary(op, x, y) => match op {
            BinaryOp::Add => wrapped(of(x) + of(y)),
            BinaryOp::Sub => wrapped(of(x) - of(y)),
            BinaryOp::Mul => wrapped(of(x) * of(y)),
            BinaryOp::Div => i128::from((of(x) as u32).checked_div(of(y) as u32).unwrap_or(0)),
            BinaryOp::Min => of(x).min(of(y)),
            _ => of(x).max(of(y)),
        },
        Node::Cast(_, x) => as_index(evaluated_float(bounds, x, scalars, length)),
        Node::Float(..) | Node::Unary(..) => unreachable!("a float is cast"),
    }
}

fn evaluated_float(bounds: &Bounds, bound: Bound, scalars: &[(Value, i128)], length: i128) -> Scalar {
    let of = |bound| evaluated_float(bounds, bound, scalars, length);
    match bounds.node(bound) {
        Node::Float(dtype, bits) => Scalar::from_const(&ConstExpr::Float(f64::from_bits(bits)), dtype).expect("a float"),
        Node::Unary(op, x) => scalar::unary(op, of(x)).expect("it is defined"),
        Node::Binary(op, x, y) => scalar::binary(op, of(x), of(y)).expect("it is defined"),
        Node::Cast(dtype, x) => {
            let x = i64::try_from(evaluated(bounds, x, scalars, length)).expect("a small number");
            scalar::cast(Scalar::from_const(&ConstExpr::Int(x.into()), Dtype::I64).expect("it fits"), dtype)
        }
        _ => unreachable!("it is a float"),
    }
}

/// Whether the test that a region makes holds.
fn tests_true(func: &Function, region: Region, test: Value, scalars: &[(Value, i128)], length: i128) -> bool {
    let number = |number: i128| Scalar::from_const(&ConstExpr::Int(number), Dtype::I64).expect("it fits");
    let mut known: FxHashMap<Value, Scalar> = scalars.iter().map(|(value, of)| (*value, number(*of))).collect();
    for inst in func.region(region).insts.clone() {
        let (of, result) = (|value: Value| known[&value], func.result(inst));
        let dtype = func.ty(result).dtype();
        let value = match func.inst(inst).op {
            Op::Const { ref value } => Scalar::from_const(value, dtype),
            Op::Length { .. } => Some(number(length)),
            Op::Unary { op, x } => scalar::unary(op, of(x)),
            Op::Binary { op, lhs, rhs } => scalar::binary(op, of(lhs), of(rhs)),
            Op::Compare { op, lhs, rhs } => scalar::compare(op, of(lhs), of(rhs)),
            Op::Select { cond, on_true, on_false } => scalar::select(of(cond), of(on_true), of(on_false)),
            Op::Cast { x } => Some(scalar::cast(of(x), dtype)),
            Op::Bitcast { x } => scalar::bitcast(of(x), dtype),
            ref op => panic!("{} is no part of a test", op.name()),
        };
        known.insert(result, value.unwrap_or_else(|| panic!("{} is not defined", func.inst(inst).op.name())));
    }
    known[&test].to_const() == ConstExpr::Bool(true)
}

#[test]
fn elements_are_in_their_ranges_if_the_checks_hold() {
    let mut random = Random { state: 7 };
    let (mut held, mut proved) = (0, 0);
    for _ in 0..2000 {
        let count = 6 + random.below(6);
        let text = random.kernel(count);
        let func = parse(&text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
        let always = |_: Value| true;
        let mut ranges = Ranges::new(&func, &func.all_insts(), &always);
        let mut known = Vec::new();
        let mut accesses = Vec::new();
        for inst in func.all_insts() {
            accesses.extend(func.inst(inst).op.access());
            for result in &func.inst(inst).results {
                known.extend(ranges.of(*result).map(|range| (*result, range)));
            }
        }
        let sealed = random.below(accesses.len());
        let mut number = 0;
        accesses.retain(|access| {
            number += 1;
            if number == sealed {
                ranges.seal();
            }
            ranges.require_inside(*access, &mut AffineFacts::new(), &FxHashSet::default())
        });
        let bounds = ranges.into_bounds();
        let mut written = func.clone();
        let region = written.add_region();
        let test = bounds.test(0..bounds.checks(), &mut Builder::new(&mut written, region, Loc::NONE));
        for _ in 0..20 {
            let numbers = [0; 2].map(|_| random.pick(&[-1i128, 0, 1, 2, 3, 4, 7, 8, 60, 1 << 20, (1 << 31) - 1, 1 << 31]));
            let length = random.pick(&[0i128, 1, 8, 40, 1000, 1 << 40]);
            let scalars: Vec<(Value, i128)> = func.params[1..].iter().map(|param| param.value).zip(numbers).collect();
            let holds = bounds.checks.iter().all(|check| match check {
                Check::Fits(bound) => (0..i128::from(END)).contains(&evaluated(&bounds, *bound, &scalars, length)),
                Check::NotNegative(bound) => evaluated(&bounds, *bound, &scalars, length) >= 0,
            });
            let is_tested_so = test.is_none_or(|test| tests_true(&written, region, test, &scalars, length));
            assert_eq!(is_tested_so, holds, "{numbers:?}\n{text}");
            if !holds {
                continue;
            }
            held += 1;
            for (value, range) in &known {
                let [low, high] = [range.low, range.high].map(|bound| evaluated(&bounds, bound, &scalars, length));
                for element in elements(&func, *value, &scalars) {
                    assert!(low <= element && element <= high, "{element} of {value} is not in {low}..={high}, {numbers:?}\n{text}");
                    assert!(i32::try_from(element).is_ok(), "{element} of {value}, {numbers:?}\n{text}");
                }
            }
            for access in &accesses {
                let mask = elements(&func, access.mask.expect("it has one"), &scalars);
                for (element, inside) in elements(&func, access.offset, &scalars).into_iter().zip(mask) {
                    assert!(inside == 0 || (0..length).contains(&element), "{element} of {length}, {numbers:?}\n{text}");
                }
                proved += 1;
            }
        }
    }
    assert!(held > 1000 && proved > 500, "{held} launches were tested, {proved} with accesses");
}

/// Does the test of the accesses of this kernel hold for these arguments?
fn accesses_are_inside(text: &str, numbers: [i128; 2], length: i128) -> bool {
    let mut func = parse(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let always = |_: Value| true;
    let bounds = {
        let mut ranges = Ranges::new(&func, &func.all_insts(), &always);
        for access in func.all_insts().into_iter().filter_map(|inst| func.inst(inst).op.access()) {
            assert!(ranges.require_inside(access, &mut AffineFacts::new(), &FxHashSet::default()));
        }
        ranges.into_bounds()
    };
    let scalars: Vec<(Value, i128)> = func.params[1..].iter().map(|param| param.value).zip(numbers).collect();
    let region = func.add_region();
    let test = bounds.test(0..bounds.checks(), &mut Builder::new(&mut func, region, Loc::NONE));
    test.is_none_or(|test| tests_true(&func, region, test, &scalars, length))
}

#[test]
fn a_mask_of_remainders_or_quotients_says_something_of_the_dividend() {
    // `%a + i` is at least its remainder, and at least `%b` times its quotient.
    let kernel = |test: &str, back: &str| {
        format!(
            "kernel @k(%x: ptr<f32>, %a: i64, %b: i64) {{
            %0 = arange {{start = 0, end = 8}} : tile<i64, [8]>
            %1 = broadcast %a : tile<i64, [8]>
            %2 = broadcast %b : tile<i64, [8]>
            %at = add %1, %0 : tile<i64, [8]>
            %one = const {{value = 1}} : tile<i64, [8]>
            %three = const {{value = 3}} : tile<i64, [8]>
            %column = rem %at, %2 : tile<i64, [8]>
            %row = div %at, %2 : tile<i64, [8]>
            %next = add %column, %one : tile<i64, [8]>
            %m = {test} : tile<bool, [8]>
            %to = sub %at, {back} : tile<i64, [8]>
            %v = load %x, %to {{mask = %m}} : tile<f32, [8]>
            return
            }}"
        )
    };
    for (test, back, numbers) in [
        ("ge %column, %three", "%three", [0, 100]),
        ("gt %next, %three", "%three", [0, 100]),
        ("le %three, %column", "%three", [2, 100]),
        ("ge %row, %one", "%2", [0, 3]),
    ] {
        assert!(accesses_are_inside(&kernel(test, back), numbers, 1000), "{test}");
    }
    for (test, back, numbers) in
        [("ge %column, %one", "%three", [0, 100]), ("le %column, %three", "%three", [0, 100]), ("le %row, %one", "%2", [0, 3])]
    {
        assert!(!accesses_are_inside(&kernel(test, back), numbers, 1000), "{test}");
    }
    // A quotient of at most 1 means an index below `2 * %b`.
    assert!(accesses_are_inside(&kernel("le %row, %one", "%0"), [900, 40], 80));
    assert!(!accesses_are_inside(&kernel("le %row, %one", "%0"), [900, 41], 80));
}
