//! Statements along an axis. Sums and products are of integers, which wrap, and of whole numbers that a float has: so their order does not matter.

use galatea::Dtype;

use crate::tile::{Value, exact_below};
use crate::writer::Writer;

/// Whole numbers of which even the sum of so many is exact.
fn summable(value: &Value, count: usize) -> bool {
    value.is_int() || value.whole.is_some_and(|most| value.is_float() && most * count as f64 <= exact_below(Dtype::F32))
}

pub(crate) fn reduce(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|value| !value.dtype.is_float8())?;
    let all = writer.chance(25);
    let (axis, keep) = (writer.below(value.shape.len()), !all && writer.chance(40));
    let mut shape = value.shape.clone();
    let count = if all { shape.drain(..).product() } else { std::mem::replace(&mut shape[axis], 1) };
    if !all && !keep {
        shape.remove(axis);
    }
    let words: &[&str] = match () {
        () if value.dtype == Dtype::Bool => &["any", "all"],
        () if value.is_int() => &["sum", "sum", "prod", "xor_sum", "max", "min", "argmax", "argmin"],
        () if summable(&value, count) => &["sum", "sum", "max", "min", "argmax", "argmin"],
        () => &["max", "min", "argmax", "argmin"],
    };
    let word = writer.pick(words);
    let dtype = if word.starts_with("arg") { Dtype::I64 } else { value.dtype };
    let whole = value.whole.map(|most| if word == "sum" { most * count as f64 } else { most });
    let options = match (all, keep) {
        (true, _) => String::new(),
        (_, false) => format!(", axis = {axis}"),
        (_, true) => format!(", axis = {axis}, keep_dims = true"),
    };
    writer.bind(dtype, &shape, whole, &format!("{word}({}{options})", value.name));
    Some(())
}

fn reverse(writer: &mut Writer<'_>) -> &'static str {
    writer.pick(&["", ", reverse = true"])
}

pub(crate) fn scan(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|value| value.is_int() || value.is_float())?;
    let axis = writer.below(value.shape.len());
    let count = value.shape[axis];
    let words: &[&str] = match () {
        () if value.is_int() => &["cumsum", "cumsum", "cumprod", "cummax", "cummin"],
        () if summable(&value, count) => &["cumsum", "cummax", "cummin"],
        () => &["cummax", "cummin"],
    };
    let word = writer.pick(words);
    let whole = value.whole.map(|most| if word == "cumsum" { most * count as f64 } else { most });
    let options = reverse(writer);
    writer.bind(value.dtype, &value.shape, whole, &format!("{word}({}, axis = {axis}{options})", value.name));
    Some(())
}

/// A scan or a reduction with a random closure. The closures are associative, but not all are commutative.
pub(crate) fn closure(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(Value::is_int)?;
    let axis = writer.below(value.shape.len());
    let closure = writer.pick(&["|a, b| a ^ b", "|a, b| a", "|a, b| b", "|a, b| a + b + a * b"]);
    if writer.chance(50) {
        let options = reverse(writer);
        writer.bind(value.dtype, &value.shape, None, &format!("associative_scan({}, {axis}, {closure}{options})", value.name));
    } else {
        let mut shape = value.shape.clone();
        shape.remove(axis);
        writer.bind(value.dtype, &shape, None, &format!("reduce({}, {axis}, {closure})", value.name));
    }
    Some(())
}

/// Of integers: equal ones are the same.
pub(crate) fn sort(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|value| value.is_int() && value.shape.iter().product::<usize>() <= 256)?;
    let axis = writer.below(value.shape.len());
    if writer.chance(30) {
        let mut shape = value.shape.clone();
        shape[axis] = 1 + writer.below(shape[axis]);
        writer.bind(value.dtype, &shape, None, &format!("topk({}, {}, axis = {axis})", value.name, shape[axis]));
    } else {
        let order = writer.pick(&["", ", descending = true"]);
        writer.bind(value.dtype, &value.shape, None, &format!("sort({}, axis = {axis}{order})", value.name));
    }
    Some(())
}
