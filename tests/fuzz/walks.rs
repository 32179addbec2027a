//! Loops over memory, which the compiler rewrites most: it hoists, splits full iterations off, runs loads ahead, and tells aligned tiles from others.

use galatea::Dtype;

use crate::accesses::{other, whole};
use crate::kernel::Tensor;
use crate::tile::{Value, flat, index, is_float, list};
use crate::writer::{Writer, fits};

/// The state that all statements of one loop share.
struct Walk {
    shape: Vec<usize>,
    acc: Value,
    /// A scalar in the indices: a parameter, or a known multiple.
    stride: String,
}

/// No sum in a walk becomes larger: 64 iterations of three statements, each at most a product of two numbers up to 20.
const LARGEST_SUM: f64 = 64.0 * 3.0 * 400.0;

pub(crate) fn walk(writer: &mut Writer<'_>) -> Option<()> {
    let rows = writer.pick(&[1, 2, 3, 4, 5, 7, 8, 9, 13, 16]);
    let columns = writer.pick(&[3, 4, 8, 11, 16, 17, 24, 32, 33, 40, 64, 100, 128, 256]);
    let shape = if writer.chance(70) { vec![rows, columns] } else { vec![columns] };
    if !fits(&shape) {
        return None;
    }
    let dtype = writer.pick(&[Dtype::F32, Dtype::F32, Dtype::F64, Dtype::I32, Dtype::I64, Dtype::U32]);
    if is_float(dtype) && writer.tensor(readable(dtype)).is_none() {
        return None;
    }
    let stride = match writer.below(4) {
        0 => {
            let factor = writer.pick(&[4, 8, 16]);
            writer.bind(Dtype::I64, &[], None, &format!("multiple_of(stride * {factor}, {factor})")).name
        }
        1 => {
            writer.line("assume((n > 0) & (last >= first) & (pid < 1000));");
            "stride".to_string()
        }
        _ => "stride".to_string(),
    };
    let name = writer.name();
    writer.line(format!("let mut {name} = zeros::<{dtype}>({});", list(&shape)));
    let acc = writer.declare_value(name, dtype, &shape, Some(LARGEST_SUM));
    let (at, step) = (writer.name(), writer.pick(&[1, 2, 16, columns, columns, rows]));
    let head = match writer.below(5) {
        0 | 1 => format!("range(first, last, {step}, num_stages = {})", writer.pick(&[1, 2, 3, 4])),
        2 => format!("range(first, last, {step}, unroll = {})", writer.pick(&[2, 3])),
        3 => format!("range(first, last, {step}).rev()"),
        _ => format!("(first..last).step_by({step})"),
    };
    writer.line(format!("for {at} in {head} {{"));
    let walk = Walk { shape, acc, stride };
    for _ in 0..1 + writer.below(3) {
        writer.inside(|writer| statement(writer, &walk, &at));
    }
    writer.line("}");
    Some(())
}

/// Which inputs a loop adds up: as floats only small whole numbers, of which sums are exact.
fn readable(dtype: Dtype) -> impl Fn(&Tensor) -> bool {
    move |tensor| !tensor.is_written && (!is_float(dtype) || tensor.is_whole && !tensor.dtype.is_float8())
}

fn statement(writer: &mut Writer<'_>, walk: &Walk, at: &str) {
    let acc = &walk.acc.name;
    match writer.below(9) {
        0..4 => {
            let term = term(writer, walk, at);
            let term = if writer.chance(30) { format!("{term} * {}", self::term(writer, walk, at)) } else { term };
            writer.line(format!("{acc} += {term};"));
        }
        4 => shared_mask(writer, walk, at),
        5 => {
            let (inner, iterations, stages) = (writer.name(), writer.pick(&["2", "3", "(n & 3)"]), writer.pick(&[1, 2, 3]));
            writer.line(format!("for {inner} in range(0, {iterations}, 1, num_stages = {stages}) {{"));
            let value = writer.pick(&[at.to_string(), inner.clone(), format!("({at} + {inner})")]);
            let term = term(writer, walk, &value);
            writer.line(format!("{acc} += {term};"));
            writer.line("}");
        }
        6 => copy(writer, walk, at),
        7 => update(writer, walk, at),
        _ => {
            let term = term(writer, walk, at);
            writer.line(format!("if ({at} + n) % 3 < 1 {{"));
            writer.line(format!("{acc} -= {term};"));
            writer.line("}");
        }
    }
}

/// The indices of a tile in memory, which advance with the loop index.
fn indices(writer: &mut Writer<'_>, walk: &Walk, at: &str) -> String {
    let (shape, stride) = (&walk.shape, &walk.stride);
    let column = index(shape, shape.len() - 1);
    let extent = shape[shape.len() - 1];
    if shape.len() == 1 {
        return match writer.below(5) {
            0 | 1 => format!("{column} + {at}"),
            2 => format!("{column} + {at} * {stride}"),
            3 => format!("{column} * {stride} + {at}"),
            _ => format!("{column} + {at} * {extent}"),
        };
    }
    let row = index(shape, 0);
    match writer.below(6) {
        0 => format!("({row} + {at}) * {stride} + {column}"),
        1 | 2 => format!("{row} * {stride} + ({column} + {at})"),
        3 => format!("({row} * {extent} + {column}) + {at} * {stride}"),
        4 => format!("({row} + pid * {}) * 64 + ({column} + {at})", shape[0]),
        _ => format!("({row} + {at}) * 5 + {column} * {stride}"),
    }
}

/// A condition, often of one axis only, or nothing.
fn mask(writer: &mut Writer<'_>, walk: &Walk, at: &str) -> Option<String> {
    let (row, column) = (index(&walk.shape, 0), index(&walk.shape, walk.shape.len() - 1));
    let condition = match writer.below(8) {
        0 | 1 => return None,
        2 => format!("{column} < n"),
        3 => format!("{column} + {at} < n"),
        4 => format!("{row} + {at} < last"),
        5 => format!("({row} < 3) & ({column} + {at} < n)"),
        6 => format!("({row} + {at} < last) & ({column} < n)"),
        _ => format!("({row} + {column} + {at}) % 3 < 2"),
    };
    Some(condition)
}

fn as_option(mask: Option<&String>) -> String {
    mask.map_or(String::new(), |mask| format!(", mask = {mask}"))
}

/// A load as what is added up.
fn term(writer: &mut Writer<'_>, walk: &Walk, at: &str) -> String {
    let dtype = walk.acc.dtype;
    let Some(tensor) = writer.tensor(readable(dtype)) else { return format!("({at} as {dtype})") };
    if walk.shape.len() == 2 && !writer.is_unchecked && writer.chance(15) {
        let corner = writer.pick(&[format!("[0, {at}]"), format!("[{at}, 0]"), format!("[-1, {at} - 2]")]);
        let extents = writer.pick(&["[last, n]", "[n, 64]", "[n, n]"]);
        return format!("(view({}, {extents}, [{}, 1]).load({corner}, {}) as {dtype})", tensor.name, walk.stride, list(&walk.shape));
    }
    let (indices, mask) = (indices(writer, walk, at), mask(writer, walk, at));
    let indices = writer.bounded(&tensor, indices);
    let option = if mask.is_some() { other(writer, tensor.dtype) } else { String::new() };
    format!("(load({} + ({indices}){}{option}) as {dtype})", tensor.name, as_option(mask.as_ref()))
}

/// Loads from two tensors, often of two types, under one mask.
fn shared_mask(writer: &mut Writer<'_>, walk: &Walk, at: &str) {
    let (indices, dtype) = (indices(writer, walk, at), walk.acc.dtype);
    let Some(condition) = mask(writer, walk, at) else { return };
    let name = writer.name();
    writer.line(format!("let {name} = {condition};"));
    for _ in 0..2 {
        if let Some(tensor) = writer.tensor(readable(dtype)) {
            let other = other(writer, tensor.dtype);
            let indices = writer.bounded(&tensor, indices.clone());
            writer.line(format!("{} += load({} + ({indices}), mask = {name}{other}) as {dtype};", walk.acc.name, tensor.name));
        }
    }
}

/// Loads a tile and stores it to an output: every iteration at the same indices, or each at one of four blocks.
fn copy(writer: &mut Writer<'_>, walk: &Walk, at: &str) {
    let elements: usize = walk.shape.iter().product();
    let iterations = writer.pick(&[1, 1, 4]);
    let (Some(tensor), Some((destination, dtype))) =
        (writer.tensor(|tensor| !tensor.is_written), writer.destination(elements * iterations))
    else {
        return;
    };
    let (indices, loaded) = (indices(writer, walk, at), mask(writer, walk, at));
    let indices = writer.bounded(&tensor, indices);
    let stored = if writer.chance(50) { loaded.clone() } else { mask(writer, walk, at) };
    let value = writer.bind(
        tensor.dtype,
        &walk.shape,
        whole(&tensor),
        &format!("load({} + ({indices}){})", tensor.name, as_option(loaded.as_ref())),
    );
    let iteration = if iterations > 1 { format!(" + ({at} % {iterations}) * {elements}") } else { String::new() };
    writer.line(format!(
        "store({destination} + ({}{iteration}), {}{});",
        flat(&walk.shape),
        value.cast(dtype).0,
        as_option(stored.as_ref())
    ));
}

/// Updates a tile in memory, which later iterations load again. A barrier follows if the tiles of two iterations can partly overlap.
fn update(writer: &mut Writer<'_>, walk: &Walk, at: &str) {
    let elements: usize = walk.shape.iter().product();
    let shift = writer.pick(&[0, 0, 1, walk.shape[walk.shape.len() - 1]]);
    let Some((destination, dtype)) = writer.destination(elements + 4 * shift) else { return };
    let indices = format!("{} + ({at} % 4) * {shift}", flat(&walk.shape));
    let source = writer.alias(&destination);
    let old = writer.bind(dtype, &walk.shape, None, &format!("load({source} + ({indices}))"));
    let mask = mask(writer, walk, at);
    let barrier = if shift > 0 { " debug_barrier();" } else { "" };
    writer.line(format!(
        "store({destination} + ({indices}), {} + {} as {dtype}{});{barrier}",
        old.name,
        walk.acc.name,
        as_option(mask.as_ref())
    ));
}
