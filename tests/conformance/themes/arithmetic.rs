//! Operators between all pairs of types, and between tiles and constants.

use galatea::Dtype;

use crate::array::Tolerance;
use crate::case::{Case, Draw, Elementwise, refused};
use crate::number::Number;
use crate::themes::{INTS, NUMBERS, SIGNED, UNSIGNED, pairs};

/// The type in which two types meet, as in Triton: the float, the wider float, the wider integer, of equally wide integers the unsigned one.
fn meeting(a: Dtype, b: Dtype) -> Dtype {
    let either = |dtype: Dtype| a == dtype || b == dtype;
    let wide = [Dtype::F64, Dtype::F32, Dtype::F16].into_iter().find(|dtype| either(*dtype));
    match wide {
        _ if a == b => a,
        Some(float) => float,
        None if either(Dtype::Bf16) => Dtype::F32,
        None if a.is_signed_int() == b.is_signed_int() => std::cmp::max_by_key(a, b, |dtype| dtype.bits()),
        None => {
            let (signed, unsigned) = if a.is_signed_int() { (a, b) } else { (b, a) };
            if unsigned.bits() >= signed.bits() { unsigned } else { signed }
        }
    }
}

/// `(x as i32)`, where it is not that already and does not become it by itself.
fn cast(name: &str, from: Dtype, to: Dtype) -> String {
    if from.widens_to(to) { name.to_string() } else { format!("({name} as {to})") }
}

/// The result of an operator. Integers are exact here; storing them in the output type wraps them.
fn operate(sign: &str, a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Int(a), Number::Int(b)) => Number::Int(match sign {
            "+" => a + b,
            "-" => a - b,
            "*" => a.wrapping_mul(b),
            "/" => a.checked_div(b).unwrap_or(0),
            "%" => a.checked_rem(b).unwrap_or(a),
            "&" => a & b,
            "|" => a | b,
            "^" => a ^ b,
            // Counts of the width and more shift everything out.
            "<<" => {
                if b < 64 {
                    a << b
                } else {
                    0
                }
            }
            ">>" => a >> b.min(100),
            _ => return compare(sign, a.cmp(&b).into()),
        }),
        _ => {
            let (a, b) = (a.float(), b.float());
            Number::Float(match sign {
                "+" => a + b,
                "-" => a - b,
                "*" => a * b,
                "/" => a / b,
                "%" => a % b,
                _ => return compare(sign, a.partial_cmp(&b)),
            })
        }
    }
}

/// A comparison: what is not ordered, because one side is NaN, is unequal and nothing else.
fn compare(sign: &str, ordering: Option<std::cmp::Ordering>) -> Number {
    let holds = match sign {
        "==" => ordering.is_some_and(|ordering| ordering.is_eq()),
        "!=" => ordering.is_none_or(|ordering| ordering.is_ne()),
        "<" => ordering.is_some_and(|ordering| ordering.is_lt()),
        "<=" => ordering.is_some_and(|ordering| ordering.is_le()),
        ">" => ordering.is_some_and(|ordering| ordering.is_gt()),
        ">=" => ordering.is_some_and(|ordering| ordering.is_ge()),
        _ => panic!("no operator is written `{sign}`"),
    };
    Number::Int(holds.into())
}

const ARITHMETIC: [(&str, &str); 5] = [("add", "+"), ("sub", "-"), ("mul", "*"), ("div", "/"), ("rem", "%")];
const BITWISE: [(&str, &str); 3] = [("and", "&"), ("or", "|"), ("xor", "^")];
const SHIFTS: [(&str, &str); 2] = [("shl", "<<"), ("shr", ">>")];
const COMPARISONS: [(&str, &str); 6] = [("eq", "=="), ("ne", "!="), ("gt", ">"), ("lt", "<"), ("ge", ">="), ("le", "<=")];

/// `x sign y` in a type that both are cast to.
fn binary(name: String, sign: &'static str, (a, b): (Dtype, Dtype), (ty, out): (Dtype, Dtype), draw: [Draw; 2]) -> Case {
    let expression = format!("{} {sign} {}", cast("x", a, ty), cast("y", b, ty));
    let case = Elementwise { inputs: vec![(a, draw[0]), (b, draw[1])], out, expression, tolerance: Tolerance::Exact };
    case.case(name, move |numbers| operate(sign, numbers[0].to(ty), numbers[1].to(ty)))
}

/// `+ - * / %` of every type with every other. The quotient of integers is one of floats, as in Triton; `floordiv` has the other one.
pub(crate) fn bin_op() -> Vec<Case> {
    let rows = ARITHMETIC.into_iter().flat_map(|operator| pairs(&NUMBERS, &NUMBERS).map(move |pair| (operator, pair)));
    rows.map(|((name, sign), (a, b))| {
        let met = meeting(a, b);
        let ty = if sign == "/" && met.is_int() { Dtype::F32 } else { met };
        binary(format!("{name}-{a}-{b}"), sign, (a, b), (ty, ty), [Draw::Any; 2])
    })
    .collect()
}

/// `& | ^` of integers; with a float on either side they are refused.
pub(crate) fn bitwise_op() -> Vec<Case> {
    let rows = BITWISE.into_iter().flat_map(|operator| pairs(&NUMBERS, &NUMBERS).map(move |pair| (operator, pair)));
    rows.map(|((name, sign), (a, b))| {
        let ty = meeting(a, b);
        let name = format!("{name}-{a}-{b}");
        if ty.is_int() {
            return binary(name, sign, (a, b), (ty, ty), [Draw::Any; 2]);
        }
        let expression = format!("{} {sign} {}", cast("x", a, ty), cast("y", b, ty));
        let inputs = vec![(a, Draw::Any), (b, Draw::Any)];
        refused(name, Elementwise { inputs, out: ty, expression, tolerance: Tolerance::Exact }.source(), "cannot apply `")
    })
    .collect()
}

/// Comparisons of every type with every other, and with NaN on either side and on both.
pub(crate) fn compare_op() -> Vec<Case> {
    let mut cases = Vec::new();
    let types: Vec<Dtype> = NUMBERS.into_iter().filter(|dtype| *dtype != Dtype::Bf16).collect();
    for (name, sign) in COMPARISONS {
        for (a, b) in pairs(&types, &types) {
            cases.push(binary(format!("{name}-{a}-{b}"), sign, (a, b), (meeting(a, b), Dtype::Bool), [Draw::Few; 2]));
        }
        for (side, draw) in
            [("nan-real", [Draw::Nans, Draw::Few]), ("real-nan", [Draw::Few, Draw::Nans]), ("nan-nan", [Draw::Nans, Draw::Nans])]
        {
            cases.push(binary(format!("{name}-{side}"), sign, (Dtype::F32, Dtype::F32), (Dtype::F32, Dtype::Bool), draw));
        }
    }
    cases
}

/// Shifts of every integer by every unsigned one, also by the width and more; the result has the type of the left side.
pub(crate) fn shift_op() -> Vec<Case> {
    let rows = SHIFTS.into_iter().flat_map(|operator| pairs(&INTS, &UNSIGNED).map(move |pair| (operator, pair)));
    rows.map(|((name, sign), (a, b))| binary(format!("{name}-{a}-{b}"), sign, (a, b), (a, a), [Draw::Any, Draw::Ints(0, 80)])).collect()
}

/// The quotient of integers is cut off to zero; by zero it is zero.
pub(crate) fn floordiv() -> Vec<Case> {
    let rows = pairs(&SIGNED, &SIGNED).chain(pairs(&UNSIGNED, &UNSIGNED));
    rows.map(|(a, b)| binary(format!("{a}-{b}"), "/", (a, b), (meeting(a, b), meeting(a, b)), [Draw::Few; 2])).collect()
}

/// Operators between a tile and a constant on either side, two tiles, and two constants: what is folded is what is computed.
pub(crate) fn bin_op_constexpr() -> Vec<Case> {
    let mut cases = Vec::new();
    let signs = ARITHMETIC.into_iter().chain(BITWISE).chain(SHIFTS).chain([COMPARISONS[0], COMPARISONS[3]]);
    for (name, sign) in signs {
        for (side, a, b) in [("tile-tile", "x", "y"), ("tile-constant", "x", "3"), ("constant-tile", "4", "y"), ("constants", "4", "3")] {
            let out = if COMPARISONS.iter().any(|(_, known)| *known == sign) { Dtype::Bool } else { Dtype::I32 };
            let case = Elementwise {
                inputs: vec![(Dtype::I32, Draw::Ints(-20, 20)), (Dtype::I32, Draw::Ints(0, 40))],
                out,
                expression: format!("{a} {sign} {b}"),
                tolerance: Tolerance::Exact,
            };
            let (is_x, is_y) = (a == "x", b == "y");
            cases.push(case.case(format!("{name}-{side}"), move |numbers| {
                let a = if is_x { numbers[0] } else { Number::Int(4) };
                let b = if is_y { numbers[1] } else { Number::Int(3) };
                operate(sign, a, b)
            }));
        }
    }
    cases
}

/// `-x` of every type with a sign; of the others it is refused, and `0 - x` wraps. `!x` of integers.
pub(crate) fn unary_op() -> Vec<Case> {
    let row = |name: String, dtype: Dtype, expression: &str| {
        (
            name,
            Elementwise { inputs: vec![(dtype, Draw::Any)], out: dtype, expression: expression.to_string(), tolerance: Tolerance::Exact },
        )
    };
    let negated = NUMBERS.into_iter().map(move |dtype| {
        let is_unsigned = UNSIGNED.contains(&dtype);
        let (name, case) = row(format!("neg-{dtype}"), dtype, if is_unsigned { "0 - x" } else { "-x" });
        case.case(name, |numbers| match numbers[0] {
            Number::Int(value) => Number::Int(-value),
            Number::Float(value) => Number::Float(-value),
        })
    });
    let inverted = SIGNED.into_iter().map(|dtype| {
        let (name, case) = row(format!("not-{dtype}"), dtype, "!x");
        case.case(name, |numbers| Number::Int(!numbers[0].int()))
    });
    negated.chain(inverted).collect()
}
