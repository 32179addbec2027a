//! Loops that read ahead what the program writes elsewhere, before them or behind them: a load that runs ahead must find what stood there, and nothing that is stored later.

use galatea::Dtype;

use crate::kernel::LARGEST_WHOLE;
use crate::tile::flat;
use crate::writer::{Writer, fits};

/// A loop over elements of the program's own, with stores of the same elements by the same lanes before or behind it; behind a barrier also by others.
pub(crate) fn sweep(writer: &mut Writer<'_>) -> Option<()> {
    // CTAs share a tile of which each has a part, and refuse one that they would have copies of.
    let columns = if writer.is_cluster { writer.pick(&[32, 256, 512]) } else { writer.pick(&[8, 16, 24, 32, 32, 64, 100, 128]) };
    let shape = if columns <= 128 && writer.chance(30) { vec![writer.pick(&[2, 3, 4]), columns] } else { vec![columns] };
    let elements: usize = shape.iter().product();
    let end = elements * writer.pick(if elements > 128 { &[2, 3] } else { &[2, 3, 5, 8] });
    if writer.depth > 0 || !fits(&shape) {
        return None;
    }
    let (destination, dtype) = writer.destination(end)?;
    let limit = if writer.chance(30) { end.to_string() } else { format!("min(n, {end})") };
    let at = writer.name();
    // All numbers are whole and small, so that sums are exact.
    let number = format!("(({} + {at}) % 7) as {dtype}", flat(&shape));
    if writer.chance(40) {
        let destination = writer.alias(&destination);
        writer.line(format!("for {at} in range(0, {limit}, {elements}) {{"));
        writer.line(format!("store({destination} + ({at} + {}), {number});", flat(&shape)));
        writer.line("}");
    }
    let acc = writer.name();
    writer.line(format!("let mut {acc} = zeros::<{dtype}>({shape:?});"));
    let (loaded, stages) = (writer.alias(&destination), writer.pick(&[2, 3, 3, 4]));
    writer.line(format!("for {at} in range(0, {limit}, {elements}, num_stages = {stages}) {{"));
    let mask = if writer.chance(25) { format!(", mask = {at} + {} < n", flat(&shape)) } else { String::new() };
    writer.line(format!("{acc} += load({loaded} + ({at} + {}){mask});", flat(&shape)));
    writer.line("}");
    let acc = writer.declare_value(acc, dtype, &shape, Some(LARGEST_WHOLE as f64 * 8.0));
    // Each warp has a part of what shows the largest element, also where the elements are copies.
    let most = writer.name();
    writer.line(format!("let {most} = max({});", acc.name));
    if writer.chance(85) {
        let destination = writer.alias(&destination);
        let others = writer.chance(25);
        if others {
            writer.line("debug_barrier();");
        }
        let element = if others { format!("({} - ({}))", elements - 1, flat(&shape)) } else { flat(&shape) };
        writer.line(format!("for {at} in range(0, {limit}, {elements}) {{"));
        writer.line(format!("store({destination} + ({at} + {element}), {number});"));
        writer.line("}");
    }
    if let Some((destination, dtype)) = writer.destination(256) {
        writer.line(format!("store({destination} + arange(0, 256), full::<{dtype}>([256], {most} as {dtype}));"));
    }
    writer.declare_value(most, acc.dtype, &[], acc.whole);
    Some(())
}

/// Programs add up, or whatever else needs no order, in one tensor.
pub(crate) fn combine(writer: &mut Writer<'_>) -> Option<()> {
    let (word, dtype) = writer.combined?;
    let value = writer.value(|value| value.is_int())?;
    let number = if dtype == Dtype::F32 { format!("({} & 7) as f32", value.name) } else { value.cast(dtype).0 };
    let index = format!("({}) * {} % {SHARED}", flat(&value.shape), writer.pick(&[0, 1, 1, 3, 16]));
    let mask = if writer.chance(40) { format!(", mask = {} < n", flat(&value.shape)) } else { String::new() };
    let order = writer.pick(&["", ", sem = \"relaxed\"", ", sem = \"release\", scope = \"gpu\""]);
    let shift = writer.pick(&["", " + pid", " + 7"]);
    writer.line(format!("atomic_{word}(z + (({index}){shift}), {number}{mask}{order});"));
    Some(())
}

/// The elements of the tensor that all programs combine into; more are there than indices reach.
pub(crate) const SHARED: usize = 64;

/// Each lane changes its own element, and uses what it found.
pub(crate) fn exchange(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|value| value.is_int())?;
    let (destination, dtype) = writer.destination(value.shape.iter().product())?;
    if !matches!(dtype, Dtype::I32 | Dtype::U32 | Dtype::I64) {
        return None;
    }
    let (word, number) = (writer.pick(&["add", "max", "min", "and", "or", "xor", "xchg"]), value.cast(dtype).0);
    let at = flat(&value.shape);
    let mask = if writer.chance(30) { format!(", mask = ({at}) % 5 != 2") } else { String::new() };
    let target = writer.alias(&destination);
    let old = writer.name();
    writer.line(format!("let {old} = atomic_{word}({target} + ({at}), {number}{mask});"));
    // Later statements use the old values only if the atomic has no mask.
    if mask.is_empty() {
        writer.declare_value(old, dtype, &value.shape, None);
    }
    let source = writer.alias(&destination);
    writer.bind(dtype, &value.shape, None, &format!("load({source} + ({at}))"));
    Some(())
}
