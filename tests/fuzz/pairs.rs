//! Kernels that access neighbours one by one: complex numbers, and pixels of four channels.
//!
//! Loads and stores of the channels are in any order, under one mask or several, with other accesses in between. Rows begin at even and at odd indices.

use galatea::Dtype;

use crate::kernel::{Kernel, ROOM, Tensor};
use crate::tile::is_float;
use crate::writer::Writer;

/// The elements of a program.
const BLOCKS: [usize; 3] = [128, 256, 512];
const EXTENTS: [usize; 12] = [0, 1, 2, 3, 6, 16, 31, 32, 50, 64, 65, 128];

/// Writes a whole kernel.
pub(crate) fn write(mut writer: Writer<'_>) -> Kernel {
    use Dtype::{Bf16, F16, F32, I8, I16, I32, U8};
    writer.is_unchecked = false;
    for (name, is_written) in [("x0", false), ("x1", false), ("y0", true), ("y1", true)] {
        let dtype = if name == "x1" { I32 } else { writer.pick(&[F16, Bf16, F32, I8, I16, I32, U8]) };
        let len = if is_written { 0 } else { writer.pick(&[301, 1024, 4096]) };
        writer.tensors.push(Tensor { is_written, ..Tensor::input(name, dtype, len) });
    }
    let (block, channels) = (writer.pick(&BLOCKS), writer.pick(&[2, 2, 4]));
    writer.line(format!("let i = arange(0, {block});"));
    writer.line(format!("let o = pid * {block} + i;"));
    writer.line("let indexed = load(x1 + i) as usize;".to_owned());
    let masks = ["o < n * 8", "i < last", "o % n < 3"].map(str::to_owned);
    for (at, mask) in masks.iter().enumerate() {
        writer.line(format!("let m{at} = {mask};"));
    }
    for output in 0..2 {
        let from = match writer.below(7) {
            0 => format!("{channels} * o"),
            1 => format!("first + o * {channels}"),
            2 => format!("o / n * stride + {channels} * (o % n)"),
            3 => format!("(o / n * last + o % n) * {channels}"),
            4 => format!("pid * stride * n + {channels} * i + 2"),
            5 => format!("{channels} * indexed"),
            _ => format!("{channels} * (n * stride - 1 - o)"),
        };
        writer.line(format!("let from{output} = {from};"));
        let mask = mask(&mut writer);
        for channel in order(&mut writer, channels) {
            let mask = if writer.chance(10) { self::mask(&mut writer) } else { mask.clone() };
            writer.line(format!("let v{output}_{channel} = load(x0 + from{output} + {channel}{mask}) as f32;"));
        }
        let to = format!("y{output} + pid * {ROOM} + {channels} * i");
        let dtype = writer.tensors[2 + output].dtype;
        let mask = self::mask(&mut writer);
        for channel in order(&mut writer, channels) {
            let mask = if writer.chance(10) { self::mask(&mut writer) } else { mask.clone() };
            let (one, other) = (writer.below(channels), writer.below(channels));
            let mut value = format!("v{output}_{one} - v{output}_{other} + v{output}_{channel}");
            if writer.chance(15) {
                // It may have been stored.
                let zero = if is_float(dtype) { "0.0" } else { "0" };
                value = format!("{value} + load({to} + {other}, mask = i % 3 == 0, other = {zero}) as f32");
            }
            writer.line(format!("store({to} + {channel}, ({value}) as {dtype}{mask});"));
        }
    }
    writer.into_kernel(&EXTENTS, 4)
}

/// The channels in a random order.
fn order(writer: &mut Writer<'_>, channels: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..channels).collect();
    (0..channels).map(|_| left.remove(writer.below(left.len()))).collect()
}

fn mask(writer: &mut Writer<'_>) -> String {
    match writer.below(5) {
        0 => String::new(),
        1 => ", mask = m1".to_owned(),
        2 => ", mask = m2".to_owned(),
        _ => ", mask = m0".to_owned(),
    }
}
