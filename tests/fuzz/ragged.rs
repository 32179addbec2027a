//! Kernels of rows that end elsewhere in each program, as those of ragged sequences, of causal attention and of long rows do.
//!
//! The number of elements is loaded, computed from the number of the program, or an argument. Most of a kernel computes element by element from tiles whose
//! masks end there, so that all elements behind the end are equal, and takes maxima and scans of them. Loops walk along a row, with an index that they carry or
//! that they count in 32 bits.

use galatea::Dtype;

use crate::kernel::{Kernel, ROOM, Tensor};
use crate::writer::Writer;

/// The elements of a tile.
const BLOCKS: [usize; 5] = [128, 256, 512, 1024, 1024];
const EXTENTS: [usize; 14] = [0, 1, 2, 5, 8, 16, 31, 33, 64, 65, 128, 200, 257, 512];

/// Writes a whole kernel.
pub(crate) fn write(mut writer: Writer<'_>) -> Kernel {
    use Dtype::{Bf16, F16, F32, I8, I16, I32, I64, U8};
    writer.is_unchecked = false;
    for (name, dtypes) in [("x0", &[F16, Bf16, F32][..]), ("x1", &[F16, Bf16, F32, I8, U8, I16]), ("x2", &[I16, I32, I64])] {
        let (dtype, len) = (writer.pick(dtypes), writer.pick(&[301, 1024, 4096]));
        writer.tensors.push(Tensor::input(name, dtype, len));
    }
    for name in ["y0", "y1"] {
        let dtype = writer.pick(&[F16, Bf16, F32, F32, I32]);
        writer.tensors.push(Tensor::output(name, dtype));
    }
    let block = writer.pick(&BLOCKS);
    writer.line(format!("let i = arange(0, {block});"));
    let end = writer.pick(&[
        "load(x2 + pid) as usize * 9 + 40",
        "load(x2 + pid + 1) as usize * n",
        "min(load(x2 + pid) as usize + last, n)",
        "pid * 37 + first",
        "n - pid * 16",
        "n",
    ]);
    writer.line(format!("let end = {end};"));
    let start = writer.pick(&["pid * stride", "pid * n", "first + pid * 65", "load(x2 + pid + 3) as usize * 5 + 100"]);
    writer.line(format!("let start = {start};"));
    writer.line("let scale = load(x1 + pid) as f32;".to_string());
    if writer.chance(50) {
        walk(&mut writer, block);
    } else {
        writer.line("let walked = scale * 0.5;".to_string());
    }
    let mut tiles = Vec::new();
    for tensor in [0, 1, 0] {
        let name = writer.name();
        let (shift, option) = (writer.pick(&["", "", " + 1", " + n"]), other(&mut writer, tensor));
        let test =
            writer.pick(&["i < end", "i < end", "i < end", "i < end / 2", "i <= end - 3", "i <= n - 3", "(i < end) & (i + pid < n)"]);
        writer.line(format!("let {name} = load(x{tensor} + start{shift} + i, mask = {test}{option}) as f32;"));
        tiles.push(name);
    }
    for _ in 0..12 + writer.below(20) {
        statement(&mut writer, &mut tiles);
    }
    for (output, base) in [(0, 0), (1, 0), (0, ROOM / 2)] {
        let (value, dtype) = (writer.pick(&tiles[tiles.len() - 3..]), writer.tensors[3 + output].dtype);
        let mask = writer.pick(&["", ", mask = i < end", ", mask = i < end", ", mask = i < n"]);
        let at = writer.pick(&["i".to_string(), "i".to_string(), "i + 1".to_string(), format!("({} - i)", block - 1)]);
        writer.line(format!("store(y{output} + pid * {ROOM} + {base} + {at}, {value} as {dtype}{mask});"));
    }
    writer.into_kernel(&EXTENTS, 4)
}

fn other(writer: &mut Writer<'_>, tensor: usize) -> String {
    let dtype = writer.tensors[tensor].dtype;
    if writer.chance(30) { String::new() } else { format!(", other = {}", writer.literal(dtype).0) }
}

/// A tile that is computed from others: element by element, by a scan, or from the row's maximum.
fn statement(writer: &mut Writer<'_>, tiles: &mut Vec<String>) {
    let name = writer.name();
    // Long chains of one tile, which sometimes meets another.
    let x = tiles[tiles.len() - 1].clone();
    let y = if writer.chance(60) { x.clone() } else { writer.pick(&tiles[tiles.len() - 3..]) };
    let number = writer.pick(&["scale", "walked", "2.0", "0.5", "(-3.0)", "(n as f32)", "load(x0 + pid + 7) as f32"]);
    let operator = writer.pick(&["+", "-", "*", "*"]);
    let expression = match writer.below(32) {
        0..=8 => format!("{x} {operator} {number}"),
        9..=14 => format!("{x} {operator} {y}"),
        15..=16 => format!("{x} / {number}"),
        17..=18 => format!("abs({x} - {number})"),
        19..=21 => format!("max({x}, {y} {operator} {number})"),
        22..=23 => format!("select({x} < {number}, {y}, {x} {operator} {number})"),
        24..=26 => format!("({x} {operator} {number}) * ({y} - {number})"),
        27 => format!("sqrt(abs({x})) {operator} {number}"),
        28 => format!("{x} {operator} max({y})"),
        29..=30 => format!("{}({x}{})", writer.pick(&["cummax", "cummin"]), writer.pick(&["", ", reverse = true"])),
        _ => format!("({x} as {}) as f32", writer.pick(&[Dtype::F16, Dtype::Bf16, Dtype::F64])),
    };
    writer.line(format!("let {name} = {expression};"));
    tiles.push(name);
}

/// A loop along the row, which finds the largest of what is computed from each tile, and adds up the row.
fn walk(writer: &mut Writer<'_>, block: usize) {
    let (stages, narrow) = (writer.pick(&[1, 2, 3]), writer.chance(30));
    let head = if narrow {
        format!("range(0i32, min(end, 2000) as i32, {block}i32)")
    } else {
        format!("range(0, min(end, 2000), {block}, num_stages = {stages})")
    };
    let option = other(writer, 0);
    let carried = writer.chance(50);
    let at = match (carried, narrow) {
        (true, _) => "at".to_string(),
        (false, true) => "start + (c as usize + i)".to_string(),
        (false, false) => "start + (c + i)".to_string(),
    };
    writer.line(format!("let (mut most, mut sums) = (full::<f32>([{block}], -100.0), zeros::<f32>([{block}]));"));
    if carried {
        writer.line("let mut at = start + i;".to_string());
    }
    writer.line(format!("for c in {head} {{"));
    let left = if narrow { "c as usize + i" } else { "c + i" };
    writer.line(format!("let v = load(x0 + {at}, mask = {left} < end{option}) as f32;"));
    let number = writer.pick(&["scale", "2.0", "(n as f32)"]);
    writer.line(format!("most = max(most, (v - {number}) * (v + {number}) + abs(v * 0.5 - 1.0));"));
    writer.line("sums += v;".to_string());
    if carried {
        writer.line(format!("at += {block};"));
    }
    writer.line("}".to_string());
    let result = writer.pick(&["max(most)", "sum(sums)", "max(most) - sum(sums)"]);
    writer.line(format!("let walked = {result};"));
}
