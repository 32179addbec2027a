//! Statements with blocks: branches, and loops that carry values.

use galatea::Dtype;

use crate::tile::Value;
use crate::writer::Writer;

/// How deep blocks stand in each other.
const DEEPEST: usize = 2;

fn condition(writer: &mut Writer<'_>) -> String {
    if writer.chance(30) {
        return writer.pick(&["n > 40", "pid % 2 == 0", "stride == 1", "last > first + 16", "(n + pid) % 3 == 1"]).to_string();
    }
    match writer.value(|value| value.dtype == Dtype::Bool || value.is_int()) {
        Some(value) => match (value.dtype, value.is_tile()) {
            (Dtype::Bool, false) => value.name,
            (Dtype::Bool, true) => format!("any({})", value.name),
            (_, false) => format!("({} & 1) == 0", value.name),
            (_, true) => format!("(xor_sum({}) & 1) == 0", value.name),
        },
        None => "n > 40".to_string(),
    }
}

/// Statements, and a value that can replace another one: its text, and what is known of it as a whole number.
fn block(writer: &mut Writer<'_>, wanted: &Value, statements: usize) -> (String, Option<f64>) {
    for _ in 0..statements {
        writer.statement();
    }
    let like = |value: &Value| value.shape == wanted.shape && !value.dtype.is_float8();
    writer.value(like).unwrap_or_else(|| wanted.clone()).cast(wanted.dtype)
}

pub(crate) fn branch(writer: &mut Writer<'_>) -> Option<()> {
    if writer.depth >= DEEPEST {
        return None;
    }
    let wanted = writer.value(|value| !value.dtype.is_float8())?;
    let (condition, name) = (condition(writer), writer.name());
    writer.line(format!("let {name} = if {condition} {{"));
    let (statements, others) = (1 + writer.below(2), writer.below(2));
    let arm = |writer: &mut Writer<'_>, statements| {
        let (value, whole) = block(writer, &wanted, statements);
        writer.line(value);
        whole
    };
    let yes = writer.inside(|writer| arm(writer, statements));
    writer.line("} else {");
    let no = writer.inside(|writer| arm(writer, others));
    writer.line("};");
    writer.declare_value(name, wanted.dtype, &wanted.shape, yes.zip(no).map(|(yes, no)| yes.max(no)));
    Some(())
}

/// A loop over nothing but values, which it carries from iteration to iteration.
pub(crate) fn repeat(writer: &mut Writer<'_>) -> Option<()> {
    if writer.depth >= DEEPEST {
        return None;
    }
    let carried = writer.value(|value| !value.dtype.is_float8())?;
    let (name, index, iterations) = (writer.name(), writer.name(), writer.pick(&["3", "5", "(n & 3)", "(stride & 3)", "(first + 2)"]));
    let head = match writer.below(5) {
        0 => format!("for {index} in 0..{iterations} {{"),
        1 => format!("for {index} in (0..{iterations}).rev() {{"),
        2 => format!("for {index} in range(0, {iterations}, 1, unroll = {}) {{", writer.pick(&[2, 3])),
        3 => format!("for {index} in (first..first + {iterations} * 3).step_by(3) {{"),
        _ => format!("for {index} in range(0, {iterations}, 1, num_stages = {}) {{", writer.pick(&[2, 3])),
    };
    writer.line(format!("let mut {name} = {};", carried.name));
    // A loop that may be left has no options.
    let jump =
        if !head.contains("range") && writer.chance(40) { Some((condition(writer), writer.pick(&["break", "continue"]))) } else { None };
    writer.line(head);
    writer.inside(|writer| {
        writer.declare_value(index, Dtype::I64, &[], None);
        let inner = writer.declare_value(name.clone(), carried.dtype, &carried.shape, None);
        if let Some((condition, jump)) = jump {
            writer.line(format!("if {condition} {{"));
            writer.line(format!("{jump};"));
            writer.line("}");
        }
        let statements = 1 + writer.below(3);
        let (next, _) = block(writer, &inner, statements);
        writer.line(format!("{name} = {next};"));
    });
    writer.line("}");
    writer.declare_value(name, carried.dtype, &carried.shape, None);
    Some(())
}
