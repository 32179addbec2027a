//! Kernels that flatten a tensor: one index for each element, taken apart by `/` and `%`, and combined again for loads and masks.
//!
//! Divisors are arguments, which may be 0, constants, and products of both. Programs store to their own elements, in order or permuted.

use galatea::Dtype;

use crate::kernel::{Kernel, ROOM, Sizes, Tensor};
use crate::tile::{exact_below, is_float};
use crate::writer::Writer;

/// The elements of a program.
const BLOCKS: [usize; 3] = [256, 512, 1024];
/// Sizes of axes: runs of neighbours have one quotient for some, others cut through every run.
const EXTENTS: [usize; 14] = [0, 1, 2, 3, 5, 7, 8, 16, 24, 31, 40, 48, 64, 96];

/// Writes a whole kernel.
pub(crate) fn write(mut writer: Writer<'_>) -> Kernel {
    use Dtype::{Bf16, F16, F32, I8, I32, I64, U16};
    writer.is_unchecked = false;
    for (name, dtypes) in [("x0", &[F16, Bf16, F32, F32][..]), ("x1", &[F32, I8, U16, I32, I64])] {
        let (dtype, len) = (writer.pick(dtypes), writer.pick(&[300, 1000, 4096]));
        writer.tensors.push(Tensor::input(name, dtype, len));
    }
    for name in ["y0", "y1"] {
        let dtype = writer.pick(&[F16, F32, F32, I32, I64]);
        writer.tensors.push(Tensor::output(name, dtype));
    }
    let block = writer.pick(&BLOCKS);
    let start = writer.pick(&["pid * {block}", "pid * {block}", "first + pid * {block}", "pid * n"]).replace("{block}", &block.to_string());
    writer.line(format!("let i = arange(0, {block});"));
    writer.line(format!("let o = {start} + i;"));
    let mut indices = vec!["o".to_string()];
    let mut masks = vec!["(o < n * stride)".to_string()];
    for _ in 0..2 + writer.below(5) {
        index(&mut writer, &mut indices, &masks);
        if writer.chance(40) {
            mask(&mut writer, &indices, &mut masks);
        }
    }
    for output in 0..2 {
        let terms: Vec<String> = (0..1 + writer.below(3)).map(|_| term(&mut writer, &indices, &masks, output)).collect();
        let at = match writer.below(4) {
            0 => format!("(i % 16) * {} + i / 16", block / 16),
            1 => format!("{} - i", block - 1),
            _ => "i".to_string(),
        };
        let mask = if writer.chance(50) { format!(", mask = {}", any(&mut writer, &masks)) } else { String::new() };
        writer.line(format!("store(y{output} + pid * {ROOM} + ({at}), {}{mask});", terms.join(" + ")));
    }
    let mut schedule = kernel_lang::Schedule::DEFAULT;
    schedule.num_warps = writer.pick(&[1, 2, 4, 8]);
    let launches = (0..3).map(|_| sizes(&mut writer)).collect();
    Kernel { tensors: writer.tensors, lines: writer.lines, schedule, is_unchecked: false, is_aligned: false, launches }
}

fn sizes(writer: &mut Writer<'_>) -> Sizes {
    let [n, stride, first, last] = [0; 4].map(|_| writer.pick(&EXTENTS));
    Sizes { programs: 1 + writer.below(3), n, stride, first, last }
}

fn any(writer: &mut Writer<'_>, masks: &[String]) -> String {
    writer.pick(masks)
}

/// An index from others.
fn index(writer: &mut Writer<'_>, indices: &mut Vec<String>, masks: &[String]) {
    let name = writer.name();
    let (x, y) = (writer.pick(indices), writer.pick(indices));
    let divisor = writer.pick(&["n", "n", "stride", "last", "(n * stride)", "(last * stride)", "3", "8", "16", "12"]);
    let number = writer.pick(&["1", "2", "3", "4", "8", "stride", "n"]);
    let expression = match writer.below(12) {
        0..=2 => format!("{x} / {divisor}"),
        3..=5 => format!("{x} % {divisor}"),
        6 => format!("{x} * {number} + {y}"),
        7 => format!("{x} * 2 + {number} - 1"),
        8 => format!("min(max({x} - {number}, 0), n - 1)"),
        9 => format!("select({}, {x}, {y})", writer.pick(masks)),
        10 => format!("min(max(({x} as f32) * 0.5 - 1.0, 0.0) as usize, {number})"),
        _ => format!("{x} - {y}"),
    };
    writer.line(format!("let {name} = {expression};"));
    indices.push(name);
}

fn mask(writer: &mut Writer<'_>, indices: &[String], masks: &mut Vec<String>) {
    let name = writer.name();
    let x = writer.pick(indices);
    let test = writer.pick(&[">= 0", "< n", "< stride", "<= last", "!= 3", "> 1"]);
    let expression = if writer.chance(50) { format!("({x} {test}) & {}", writer.pick(masks)) } else { format!("{x} {test}") };
    writer.line(format!("let {name} = {expression};"));
    masks.push(name);
}

/// A loaded element, or an index, as a whole number that the output's type holds exactly.
fn term(writer: &mut Writer<'_>, indices: &[String], masks: &[String], output: usize) -> String {
    let dtype = writer.tensors[2 + output].dtype;
    if writer.chance(25) {
        let modulus = if is_float(dtype) { 100.0f64.min(exact_below(dtype)) } else { 1000.0 };
        return format!("(({} % {modulus}) as {dtype})", writer.pick(indices));
    }
    let (input, offset) = (writer.below(2), writer.pick(indices));
    let offset = match writer.below(3) {
        0 => format!("({offset} + {})", writer.pick(indices)),
        1 => format!("({offset} * stride + {})", writer.pick(indices)),
        _ => offset,
    };
    let mask = match writer.below(3) {
        0 => String::new(),
        1 => format!(", mask = {}", writer.pick(masks)),
        _ => format!(", mask = {}, other = 1", writer.pick(masks))
            .replace("other = 1", if is_float(writer.tensors[input].dtype) { "other = 1.0" } else { "other = 1" }),
    };
    format!("(load(x{input} + {offset}{mask}) as {dtype})")
}
