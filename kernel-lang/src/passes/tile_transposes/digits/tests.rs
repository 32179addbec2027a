//! Random kernels of indices: forms and parts give the indices.

use super::*;
use crate::analysis::polynomial::Product;
use crate::ir::parse;
use crate::random::Random;

const EXTENT: i64 = 8;

impl Random {
    /// A random kernel of indices. `%v0` is the flat index, and each line defines `%v<n>`.
    fn flat_kernel(&mut self, count: usize) -> String {
        let ty = format!("tile<i64, [{EXTENT}]>");
        let mut lines = vec![
            "%p = program_id : i64".to_owned(),
            format!("%e = const {{value = {EXTENT}}} : i64"),
            "%f = mul %p, %e : i64".to_owned(),
            format!("%s = broadcast %f : {ty}\n%i = arange {{start = 0, end = {EXTENT}}} : {ty}\n%v0 = add %s, %i : {ty}"),
            "%ab = mul %a, %b : i64\n%abc = mul %ab, %c : i64\n%three = const {value = 3} : i64\n%a3 = mul %a, %three : i64".to_owned(),
        ];
        let scalars = ["a", "b", "c", "ab", "abc", "three", "a3"];
        lines.extend(scalars.map(|scalar| format!("%b{scalar} = broadcast %{scalar} : {ty}")));
        for at in 1..count {
            // Mostly the last values, so that digits come together again.
            let (x, y) = (self.below(at), at - 1 - self.below(at.min(3)));
            let scalar = scalars[self.below(scalars.len())];
            lines.push(match self.below(8) {
                0 | 1 => format!("%v{at} = div %v{x}, %b{scalar} : {ty}"),
                2 | 3 => format!("%v{at} = rem %v{x}, %b{scalar} : {ty}"),
                4 | 5 => format!("%v{at} = mul %v{y}, %b{scalar} : {ty}"),
                6 => format!("%v{at} = sub %v{x}, %v{y} : {ty}"),
                _ => format!("%v{at} = add %v{x}, %v{y} : {ty}"),
            });
        }
        format!("kernel @k(%a: i64, %b: i64, %c: i64) {{\n{}\nreturn\n}}", lines.join("\n"))
    }
}

/// The values of the scalars, and of all tiles for one element.
fn evaluate(func: &Function, program: i64, position: i64, params: [i64; 3]) -> FxHashMap<Value, i64> {
    let mut values: FxHashMap<Value, i64> = func.params.iter().map(|param| param.value).zip(params).collect();
    for inst in func.all_insts() {
        let value = match func.inst(inst).op {
            Op::ProgramId { .. } => program,
            Op::Const { ref value } => i64::try_from(value.as_int().unwrap()).unwrap(),
            Op::Arange { .. } => position,
            Op::Broadcast { x } => values[&x],
            Op::Binary { op, lhs, rhs } => {
                let (lhs, rhs) = (values[&lhs], values[&rhs]);
                match op {
                    BinaryOp::Add => lhs.wrapping_add(rhs),
                    BinaryOp::Sub => lhs.wrapping_sub(rhs),
                    BinaryOp::Mul => lhs.wrapping_mul(rhs),
                    BinaryOp::Div => lhs / rhs,
                    BinaryOp::Rem => lhs % rhs,
                    _ => unreachable!("the kernels have no other ops"),
                }
            }
            _ => continue,
        };
        values.insert(func.result(inst), value);
    }
    values
}

fn product(factors: &Factors, values: &FxHashMap<Value, i64>) -> i64 {
    factors.scalars().iter().map(|scalar| values[scalar]).product::<i64>() * i64::try_from(factors.constant()).unwrap()
}

fn polynomial(polynomial: &Polynomial, values: &FxHashMap<Value, i64>) -> i64 {
    let term = |(factors, number): &(Product, i64)| factors.iter().fold(*number, |product, factor| product.wrapping_mul(values[factor]));
    polynomial.terms.iter().map(term).fold(polynomial.constant, i64::wrapping_add)
}

/// `number / low % size`.
fn digit(number: i64, low: &Factors, size: Option<&Factors>, values: &FxHashMap<Value, i64>) -> i64 {
    let quotient = number / product(low, values);
    size.map_or(quotient, |size| quotient % product(size, values))
}

#[test]
fn forms_and_parts_are_the_indices() {
    let mut random = Random { state: 1 };
    let (mut digits_seen, mut merged, mut split) = (0, 0, 0);
    for _ in 0..600 {
        let text = random.flat_kernel(14);
        let func = parse(&text).unwrap();
        let program = func.result(func.region(func.body).insts[0]);
        let tiles: Vec<Value> = func.all_insts().into_iter().flat_map(|inst| func.inst(inst).results.clone()).collect();
        let tiles: Vec<Value> = tiles.into_iter().filter(|value| func.ty(*value).is_tile()).collect();
        let mut varying = FxHashSet::from_iter([program]);
        for inst in func.all_insts() {
            func.inst(inst).op.for_each_operand(&mut |operand| {
                if varying.contains(&operand) {
                    varying.extend(&func.inst(inst).results);
                }
            });
        }
        let mut digits = Digits::new(&func, program, &varying, EXTENT);
        let params = [0; 3].map(|_| 1 + random.below(6) as i64);
        let forms: Vec<(Value, Form)> = tiles.iter().filter_map(|tile| Some((*tile, digits.form(*tile)?))).collect();
        let lows = forms.iter().flat_map(|(_, form)| &form.digits).map(|(digit, _)| digit.low.clone());
        let periods: FxHashSet<Factors> = lows.filter(|low| !low.is_one()).collect();
        let split_forms: Vec<(Value, &Factors, Parts)> = periods
            .iter()
            .flat_map(|period| tiles.iter().map(move |tile| (*tile, period)))
            .filter_map(|(tile, period)| Some((tile, period, digits.parts(tile, period)?)))
            .collect();
        for (at, position) in (0..9).flat_map(|at| (0..EXTENT).map(move |position| (at, position))) {
            let values = evaluate(&func, at, position, params);
            let flat = at * EXTENT + position;
            for (tile, form) in &forms {
                let of = |(part, coefficient): &(Digit, Polynomial)| {
                    polynomial(coefficient, &values).wrapping_mul(digit(flat, &part.low, part.size.as_ref(), &values))
                };
                let sum = form.digits.iter().map(of).fold(polynomial(&form.rest, &values), i64::wrapping_add);
                assert_eq!(sum, values[tile], "{tile:?} at {flat}: {form:?}\n{text}");
                (digits_seen, merged) = (digits_seen + form.digits.len(), merged + form.exact.len());
            }
            for (tile, period, parts) in &split_forms {
                let period = product(period, &values);
                let of = |(part, coefficient): &(Part, Polynomial)| {
                    let number = [flat / period, flat % period][part.axis];
                    polynomial(coefficient, &values).wrapping_mul(digit(number, &part.low, part.size.as_ref(), &values))
                };
                let sum = parts.parts.iter().map(of).fold(polynomial(&parts.rest, &values), i64::wrapping_add);
                assert_eq!(sum, values[tile], "{tile:?} at {flat}: {parts:?}\n{text}");
                split += 1;
            }
        }
    }
    assert!(digits_seen > 10_000 && merged > 1_000 && split > 10_000, "{digits_seen}, {merged}, {split}");
}
