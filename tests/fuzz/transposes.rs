//! Kernels over flat indices that read along one axis and write along another.
//!
//! The flat index is taken apart into two or three axes. The loads put them together in another order, and the store is in order or scattered.

use galatea::Dtype;

use crate::kernel::{Kernel, Tensor};
use crate::writer::Writer;

/// The elements of a program.
const BLOCKS: [usize; 4] = [256, 512, 1024, 4096];
/// Sizes of axes: of most, a tile takes a whole number.
const EXTENTS: [usize; 10] = [0, 1, 3, 8, 16, 16, 32, 32, 48, 64];

/// Writes a whole kernel.
pub(crate) fn write(mut writer: Writer<'_>) -> Kernel {
    use Dtype::{Bf16, F16, F32, I8, I32};
    writer.is_unchecked = false;
    for (name, is_written) in [("x0", false), ("x1", false), ("y0", true)] {
        let (dtype, len) = (writer.pick(&[F16, Bf16, F32, I8, I32]), if is_written { 0 } else { writer.pick(&[300, 4096, 9000]) });
        writer.tensors.push(Tensor { is_written, ..Tensor::input(name, dtype, len) });
    }
    let block = writer.pick(&BLOCKS);
    writer.line(format!("let o = pid * {block} + arange(0, {block});"));
    let axes: Vec<&str> = (0..2 + writer.below(2)).map(|_| writer.pick(&["n", "stride", "last", "n", "16", "(n * 2)"])).collect();
    for (at, axis) in axes.iter().enumerate() {
        let below = if at == 0 { "o".to_owned() } else { format!("o / ({})", axes[..at].join(" * ")) };
        let is_top = at + 1 == axes.len() && writer.chance(50);
        writer.line(if is_top { format!("let d{at} = {below};") } else { format!("let d{at} = {below} % {axis};") });
    }
    let all = axes.join(" * ");
    let is_scattered = writer.chance(30);
    let limit = if is_scattered { all } else { writer.pick(&[&all[..], &all[..], "n * stride * 16", "1000"]).to_owned() };
    writer.line(format!("let mask = o < {limit};"));
    let from = permuted(&mut writer, &axes);
    let first = if writer.chance(20) { " + first" } else { "" };
    let mut value = format!("load(x0 + {from}{first}, mask = mask) as f32");
    if writer.chance(40) {
        let digit = writer.below(axes.len());
        value = format!("{value} + load(x1 + d{digit}, mask = mask) as f32");
    }
    if writer.chance(30) {
        value = format!("select(d0 < d1, {value}, 1.0)");
    }
    let to = if is_scattered { permuted(&mut writer, &axes) } else { "o".to_owned() };
    let dtype = writer.tensors[2].dtype;
    writer.line(format!("store(y0 + {to}, ({value}) as {dtype}, mask = mask);"));
    writer.into_kernel(&EXTENTS, 6)
}

/// The index of an element in a tensor with the axes in another order, or in the same one.
fn permuted(writer: &mut Writer<'_>, axes: &[&str]) -> String {
    let mut left: Vec<usize> = (0..axes.len()).collect();
    let mut index = String::new();
    while !left.is_empty() {
        let axis = left.remove(writer.below(left.len()));
        index = if index.is_empty() { format!("d{axis}") } else { format!("({index}) * {} + d{axis}", axes[axis]) };
    }
    format!("({index})")
}
