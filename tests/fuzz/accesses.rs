//! Statements that read and write memory. An element outside of a tensor is read as zero everywhere, and what a program writes is its own, so that nothing
//! depends on who comes first.

use galatea::Dtype;

use crate::kernel::Tensor;
use crate::tile::{flat, index, list};
use crate::writer::{Writer, fits};

/// The largest magnitude among a tensor's elements, if they are whole numbers.
pub(crate) fn whole(tensor: &Tensor) -> Option<f64> {
    tensor.is_whole.then_some(tensor.largest as f64)
}

/// The option `other` of a masked load: a random number, or no option. Without it, masked-off elements are zero.
pub(crate) fn other(writer: &mut Writer<'_>, dtype: Dtype) -> String {
    if dtype.is_float8() || writer.chance(50) { String::new() } else { format!(", other = {}", writer.literal(dtype).0) }
}

/// A mask of the elements of a tile before an end along an axis, which may differ from program to program.
fn before_end(writer: &mut Writer<'_>, shape: &[usize], axis: usize) -> String {
    let end = writer.pick(&["n", "n", "pid * 7 + 1", "n - pid", "(pid + 3) % n"]);
    format!("{} {} {end}", index(shape, axis), writer.pick(&["<", "<="]))
}

/// A tile of an input, by any strides from any index on, some of it outside.
pub(crate) fn load(writer: &mut Writer<'_>) -> Option<()> {
    let tensor = writer.tensor(|tensor| !tensor.is_written)?;
    let shape = match writer.tile(|_| true) {
        Some(value) if writer.chance(50) => value.shape,
        _ => writer.shape(),
    };
    let mut terms = if writer.chance(40) {
        flat(&shape)
    } else {
        let strides = ["0", "1", "1", "2", "5", "17", "64", "stride", "stride"];
        (0..shape.len()).map(|axis| format!("{} * {}", index(&shape, axis), writer.pick(&strides))).collect::<Vec<_>>().join(" + ")
    };
    let shifts = ["", "", " + 1", " + pid * 64", " + pid * n", " + first", if writer.is_unchecked { " + 3" } else { " - 3" }];
    terms += writer.pick(&shifts);
    let mask = match writer.below(6) {
        0 => format!(", mask = ({terms}) < n"),
        1 => format!(", mask = ({terms}) % 3 != 1"),
        2 => ", mask = n > 40".to_string(),
        3 => {
            let axis = writer.below(shape.len());
            format!(", mask = {}", before_end(writer, &shape, axis))
        }
        _ => String::new(),
    };
    let option = if mask.is_empty() { String::new() } else { other(writer, tensor.dtype) };
    let terms = writer.bounded(&tensor, terms);
    let expression = format!("load({} + ({terms}){mask}{option})", tensor.name);
    writer.bind(tensor.dtype, &shape, whole(&tensor), &expression);
    Some(())
}

/// A block of a view, which may stick out on every side.
pub(crate) fn block(writer: &mut Writer<'_>) -> Option<()> {
    let tensor = writer.tensor(|tensor| !tensor.is_written)?;
    let shape = [writer.pick(&[1, 2, 5, 8, 16]), writer.pick(&[4, 7, 16, 24, 32, 64])];
    if writer.is_unchecked || !fits(&shape) {
        return None;
    }
    let extents = writer.pick(&["[n, 40]", "[20, n]", "[16, 64]", "[last, 32]", "[5, 7]"]);
    let strides = writer.pick(&["[stride, 1]", "[64, 1]", "[40, 1]", "[1, stride]", "[1, 16]", "[7, 2]"]);
    let corner = writer.pick(&["[0, 0]", "[pid, 0]", "[1, 3]", "[-2, 4]", "[first, first]", "[pid * 2, pid]"]);
    let expression = format!("view({}, {extents}, {strides}).load({corner}, {})", tensor.name, list(&shape));
    writer.bind(tensor.dtype, &shape, whole(&tensor), &expression);
    Some(())
}

/// Threads exchange elements: one thread stores an element, and another thread loads it behind a barrier.
pub(crate) fn transfer(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|_| true)?;
    let elements: usize = value.shape.iter().product();
    let (destination, dtype) = writer.destination(elements)?;
    let mut shape = value.shape.clone();
    if writer.chance(40) {
        shape.reverse();
    }
    let (stored, step) = (value.cast(dtype).0, writer.pick(&[1, 3, 5, 7]));
    // In a loop, what the iteration before has loaded is stored over. Barriers stand on the line of their store, so that minimising leaves out both.
    let before = if writer.depth > 0 { "debug_barrier(); " } else { "" };
    let target = writer.alias(&destination);
    writer.line(format!("{before}store({target} + ({}), {stored}); debug_barrier();", flat(&value.shape)));
    writer.bind(dtype, &shape, None, &format!("load({destination} + (({}) * {step}) % {elements})", flat(&shape)));
    Some(())
}

/// Lanes load what they stored themselves, which no barrier stands between in the text.
pub(crate) fn update(writer: &mut Writer<'_>) -> Option<()> {
    let value = writer.tile(|value| !value.dtype.is_float8())?;
    let (destination, dtype) = writer.destination(value.shape.iter().product())?;
    let at = if value.shape.len() == 2 && writer.chance(30) {
        format!("{} + {} * {}", index(&value.shape, 0), index(&value.shape, 1), value.shape[0])
    } else {
        flat(&value.shape)
    };
    let axis = writer.below(value.shape.len());
    let mask = if writer.chance(40) { format!(", mask = {}", before_end(writer, &value.shape, axis)) } else { String::new() };
    let [first, second, third] = [(); 3].map(|()| writer.alias(&destination));
    let old = writer.bind(dtype, &value.shape, None, &format!("load({first} + ({at}))"));
    writer.line(format!("store({second} + ({at}), {} + {}{mask});", old.name, value.cast(dtype).0));
    writer.bind(dtype, &value.shape, None, &format!("load({third} + ({at}))"));
    Some(())
}
