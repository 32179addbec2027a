//! Conversions between all types, bit by bit.

use galatea::Dtype;

use crate::array::{Array, Tolerance};
use crate::case::{Case, Draw, Elementwise};
use crate::lab::{Arg, Source};
use crate::number::{Number, decode};
use crate::themes::{FLOATS, NUMBERS, pairs};

/// `x as T` of every type to every other, `bool` among them; bits taken as another type; and `x.to::<T>()`.
pub(crate) fn cast() -> Vec<Case> {
    let mut types = NUMBERS.to_vec();
    types.push(Dtype::Bool);
    // Triton's suite leaves two pairs out: this one has all.
    let mut cases: Vec<Case> = pairs(&types, &types)
        .map(|(from, to)| {
            let (inputs, expression) = (vec![(from, Draw::Any)], if from == to { "x".to_string() } else { format!("x as {to}") });
            let case = Elementwise { inputs, out: to, expression, tolerance: Tolerance::Exact };
            case.case(format!("{from}-{to}"), |numbers| numbers[0])
        })
        .collect();
    for (from, to) in pairs(&NUMBERS, &NUMBERS).filter(|(from, to)| from != to && from.bits() == to.bits()) {
        let (inputs, expression) = (vec![(from, Draw::Any)], format!("bitcast::<{to}>(x)"));
        let case = Elementwise { inputs, out: to, expression, tolerance: Tolerance::Exact };
        cases.push(case.case(format!("bits-{from}-{to}"), move |numbers| decode(crate::number::encode(numbers[0], from), to)));
    }
    cases
}
