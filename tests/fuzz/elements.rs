//! Statements that compute element by element. Floats are rounded correctly everywhere, so any bits will do.

use galatea::Dtype;

use crate::tile::{Value, broadcast};
use crate::writer::{Writer, fits};

/// Two values that meet, the second in the type of the first or a literal.
pub(crate) fn binary(writer: &mut Writer<'_>) -> Option<()> {
    let lhs = writer.value(|value| !value.dtype.is_float8())?;
    let rhs = writer.value(|value| !value.dtype.is_float8() && broadcast(&lhs.shape, &value.shape).is_some_and(|shape| fits(&shape)))?;
    let operators: &[&str] = match () {
        () if lhs.dtype == Dtype::Bool => &["&", "|", "^"],
        () if lhs.is_float() => &["+", "-", "*", "*", "/", "%", "min", "max"],
        () => &["+", "-", "*", "&", "|", "^", "/", "%", "<<", ">>", "min", "max"],
    };
    let operator = writer.pick(operators);
    let (mut shape, (mut operand, mut most)) = (broadcast(&lhs.shape, &rhs.shape)?, rhs.cast(lhs.dtype));
    if matches!(operator, "<<" | ">>") {
        operand = format!("({operand} & {})", writer.pick(&[7, 31, 63, 127]));
    } else if !matches!(operator, "/" | "%") && writer.chance(30) {
        let (text, magnitude) = writer.literal(lhs.dtype);
        (operand, most, shape) = (text, Some(magnitude), lhs.shape.clone());
    }
    let whole = lhs.whole.zip(most).and_then(|(l, r)| match operator {
        "+" | "-" => Some(l + r),
        "*" => Some(l * r),
        "min" | "max" => Some(l.max(r)),
        _ => None,
    });
    let expression = match operator {
        "min" | "max" => format!("{operator}({}, {operand})", lhs.name),
        _ => format!("{} {operator} {operand}", lhs.name),
    };
    writer.bind(lhs.dtype, &shape, whole, &expression);
    Some(())
}

pub(crate) fn unary(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.value(|value| !value.dtype.is_float8())?;
    let Value { name, dtype, shape, whole } = value.clone();
    let (dtype, whole, expression) = match () {
        () if dtype == Dtype::Bool => (dtype, whole, format!("!{name}")),
        () if value.is_float() => match writer.below(6) {
            0 => (dtype, whole, format!("-{name}")),
            1 => (dtype, whole, format!("abs({name})")),
            2 => (dtype, None, format!("sqrt(abs({name}))")),
            3 => (Dtype::Bool, None, format!("{}({name})", writer.pick(&["isnan", "isinf", "isfinite"]))),
            // Whole numbers again.
            4 => (dtype, Some(8.0), format!("clamp(rint({name}), -8.0, 8.0)")),
            _ => (dtype, whole, format!("{}({name})", writer.pick(&["floor", "ceil", "round", "trunc"]))),
        },
        () if dtype.is_signed_int() && writer.chance(40) => (dtype, None, format!("{}({name})", writer.pick(&["-", "abs"]))),
        () => match writer.below(3) {
            0 => (dtype, None, format!("!{name}")),
            1 => (dtype, None, format!("brev({name})")),
            _ => (dtype, None, format!("popc({name}) as {dtype}")),
        },
    };
    writer.bind(dtype, &shape, whole, &expression);
    Some(())
}

pub(crate) fn cast(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.value(|_| true)?;
    let dtype = writer.pick(&Dtype::ALL);
    if dtype == value.dtype {
        return None;
    }
    // Integers of few bits are whole numbers of every float.
    let (expression, whole) = if value.is_int() { (format!("({} & 15) as {dtype}", value.name), Some(15.0)) } else { value.cast(dtype) };
    writer.bind(dtype, &value.shape, whole, &expression);
    Some(())
}

pub(crate) fn compare(writer: &mut Writer<'_>) -> Option<()> {
    let lhs = writer.value(|value| value.is_int() || value.is_float())?;
    let rhs = writer.value(|value| broadcast(&lhs.shape, &value.shape).is_some_and(|shape| fits(&shape)))?;
    let operator = writer.pick(&["==", "!=", "<", "<=", ">", ">="]);
    let expression = format!("{} {operator} {}", lhs.name, rhs.cast(lhs.dtype).0);
    writer.bind(Dtype::Bool, &broadcast(&lhs.shape, &rhs.shape)?, None, &expression);
    Some(())
}

pub(crate) fn select(writer: &mut Writer<'_>) -> Option<()> {
    let condition = writer.value(|value| value.dtype == Dtype::Bool)?;
    let meets = |shape: &[usize], value: &Value| broadcast(shape, &value.shape).is_some_and(|shape| fits(&shape));
    let yes = writer.value(|value| meets(&condition.shape, value))?;
    let shape = broadcast(&condition.shape, &yes.shape)?;
    let no = writer.value(|value| meets(&shape, value))?;
    let (other, most) = no.cast(yes.dtype);
    let whole = yes.whole.zip(most).map(|(yes, no)| yes.max(no));
    let shape = broadcast(&shape, &no.shape)?;
    writer.bind(yes.dtype, &shape, whole, &format!("select({}, {}, {other})", condition.name, yes.name));
    Some(())
}
