//! Kernels with loops of matrix products, as those of layers and of attention have them.
//!
//! Several products of a loop share operands, or multiply what another product gives; operands are loaded in both orders, with masks and odd strides, computed,
//! and used by other ops, too. Sums begin with zeros or with elements of a tensor. A grid has fewer or more programs than a GPU runs at the same time, or its
//! programs go through tiles in a loop of their own. Operands are whole numbers so small that all sums are exact.
//!
//! Half of the kernels are *regular*: their loads are blocks of tensors with aligned rows, which a GPU with warpgroup products can copy ahead.

use galatea::Dtype;

use crate::kernel::{Kernel, Sizes, Tensor};
use crate::tile::{flat, is_float};
use crate::writer::Writer;

/// The types of the operands and of the sums, and the precision; the frequent ones more than once.
const KINDS: [([Dtype; 3], &str); 18] = {
    use Dtype::{Bf16, F8E4M3, F8E5M2, F16, F32, F64, I8, I32, U8};
    [
        ([F16, F16, F32], ""),
        ([F16, F16, F32], ""),
        ([F16, F16, F32], ""),
        ([Bf16, Bf16, F32], ""),
        ([Bf16, Bf16, F32], ""),
        ([Bf16, Bf16, F32], ""),
        ([F16, F16, F16], ""),
        ([F32, F32, F32], "ieee"),
        ([F32, F32, F32], "tf32"),
        ([F32, F32, F32], "tf32x3"),
        ([F64, F64, F64], ""),
        ([I8, I8, I32], ""),
        ([U8, I8, I32], ""),
        ([U8, U8, I32], ""),
        ([F8E4M3, F8E4M3, F32], ""),
        ([F8E5M2, F8E5M2, F32], ""),
        ([F8E4M3, F8E5M2, F32], ""),
        ([F8E5M2, F8E4M3, F32], ""),
    ]
};

/// Rows and columns of a tile, and products a sum. A program stores two tiles of sums into its own part of a tensor.
const TILES: [[usize; 3]; 12] = [
    [64, 32, 32],
    [64, 32, 16],
    [64, 16, 64],
    [32, 64, 32],
    [16, 64, 64],
    [128, 16, 32],
    [16, 128, 16],
    [32, 32, 32],
    [16, 16, 128],
    [16, 8, 32],
    [48, 24, 40],
    [33, 12, 17],
];
/// Those of which four warps have 16 rows or columns each.
const REGULAR_TILES: usize = 7;
/// Kinds that regular kernels have most often.
const REGULAR_KINDS: usize = 6;

/// The elements of an operand: so many rows of the largest stride.
const ELEMENTS: usize = 140 * 136;

/// What all products of a kernel have in common.
struct Products {
    factors: [Dtype; 2],
    sum: Dtype,
    precision: &'static str,
    tile: [usize; 3],
    /// Programs along the columns of the result.
    across: usize,
    is_regular: bool,
}

/// A tile of sums: its name, rows and columns.
type Sums = (String, [usize; 2]);

impl Products {
    /// A product of tiles.
    fn product(&self, a: &str, b: &str) -> String {
        let precision = if self.precision.is_empty() { String::new() } else { format!(", precision = \"{}\"", self.precision) };
        format!("dot({a}, {b}, acc_type = {}{precision})", self.sum)
    }

    /// The chance of something that blocks of regular kernels cannot have.
    fn rarely(&self, percent: usize) -> usize {
        if self.is_regular { percent / 5 } else { percent }
    }

    /// The least elements along the sum that an instruction multiplies.
    fn least(&self) -> usize {
        if self.factors[0].bits() == 8 { 32 } else { 16 }
    }
}

/// Writes a whole kernel.
pub(crate) fn write(mut writer: Writer<'_>) -> Kernel {
    let is_large = writer.chance(4);
    let is_regular = is_large || writer.chance(50);
    let ([a, b, sum], precision) = if is_regular && writer.chance(85) { writer.pick(&KINDS[..REGULAR_KINDS]) } else { writer.pick(&KINDS) };
    let mut tile = match () {
        () if is_large => writer.pick(&[[64, 16, 16], [16, 64, 16], [64, 8, 32]]),
        () if is_regular => writer.pick(&TILES[..REGULAR_TILES]),
        () => writer.pick(&TILES),
    };
    if a.bits() == 8 && tile[2] < 32 {
        tile[2] = 32;
    }
    let of = Products { factors: [a, b], sum, precision, tile, across: writer.pick(&[1, 2, 3]), is_regular };
    // Chains of two products are exact with such elements, too.
    let largest = if sum == Dtype::F16 { 2 } else { 4 };
    let is_whole = |dtype: Dtype| dtype.is_float();
    for (name, dtype) in [("x0", a), ("x1", b), ("x2", sum)] {
        let is_whole = is_whole(dtype) || name == "x2";
        writer.tensors.push(Tensor { is_whole, largest, ..Tensor::input(name, dtype, ELEMENTS) });
    }
    let of_result = if sum.is_float() { [sum, Dtype::F32, Dtype::F16, Dtype::Bf16] } else { [sum, Dtype::I32, Dtype::I16, Dtype::I64] };
    let (len, stored) = (writer.pick(&[9000, 20000]), writer.pick(&of_result));
    writer.tensors.push(Tensor { is_shared: true, len, ..Tensor::output("y0", stored) });
    if !is_large {
        let own = writer.pick(&of_result);
        writer.tensors.push(Tensor::output("y1", own));
    }
    let is_persistent = writer.chance(12);
    let tile_of_program = if is_persistent {
        writer.line("for tile in range(pid, first + 7, num_programs(0)) {");
        "tile"
    } else {
        "pid"
    };
    let [m, n, _] = of.tile;
    writer.line(format!("let r = {tile_of_program} / {} * {m} + arange(0, {m});", of.across));
    writer.line(format!("let c = {tile_of_program} % {} * {n} + arange(0, {n});", of.across));
    writer.line("let (row, column) = (r.col(), c.row());");
    let mut sums: Vec<Sums> = Vec::new();
    sum_up(&mut writer, &of, &mut sums);
    if writer.chance(20) {
        sum_up(&mut writer, &of, &mut sums);
    }
    results(&mut writer, &of, &sums, is_large);
    if is_persistent {
        writer.line("}");
    }
    let mut schedule = kernel_lang::Schedule::DEFAULT;
    schedule.num_warps = if is_regular { writer.pick(&[4, 4, 4, 4, 8]) } else { writer.pick(&[1, 2, 4, 4, 8, 8, 16]) };
    schedule.num_stages = writer.pick(&[1, 2, 3, 4, 5]);
    let launches = (0..if is_large { 1 } else { 2 }).map(|_| sizes(&mut writer, is_large, is_regular)).collect();
    let is_aligned = writer.chance(if is_regular { 95 } else { 40 });
    Kernel { tensors: writer.tensors, lines: writer.lines, schedule, is_unchecked: false, is_aligned, launches }
}

fn sizes(writer: &mut Writer<'_>, is_large: bool, is_regular: bool) -> Sizes {
    let programs = if is_large { 265 + writer.below(40) } else { 1 + writer.below(6) };
    let [strides, firsts]: [&[usize]; 2] = if is_regular && writer.chance(90) {
        [&[64, 72, 128], &[0, 0, 8, 16]]
    } else {
        [&[1, 16, 24, 65, 72, 128, 131], &[0, 0, 0, 8, 1, 3]]
    };
    Sizes {
        programs,
        n: writer.pick(&[0, 1, 7, 16, 60, 64, 64, 65, 71, 100, 128, 128]),
        stride: writer.pick(strides),
        first: writer.pick(firsts),
        last: writer.pick(&[0, 1, 7, 16, 32, 33, 40, 64, 64, 71, 96, 100, 128]),
    }
}

/// The index of a tile of an operand: `along` is its axis of the result, as a row or a column, and `k` that of the sum.
fn index(writer: &mut Writer<'_>, of: &Products, along: &str, k: &str) -> String {
    let [strides, offsets]: [&[&str]; 2] = if of.is_regular {
        [&["stride", "stride", "stride", "64", "72"], &["", "", "", " + first", " + 16"]]
    } else {
        [&["stride", "stride", "64", "(stride + 1)", "72"], &["", "", " + first", " + pid * 8", " + 3"]]
    };
    let (stride, offset) = (writer.pick(strides), writer.pick(offsets));
    if writer.chance(50) { format!("{along} * {stride} + {k}{offset}") } else { format!("{k} * {stride} + {along}{offset}") }
}

fn mask(writer: &mut Writer<'_>, of: &Products, along: &str, k: &str, dtype: Dtype) -> String {
    let mask = match writer.below(if of.is_regular { 60 } else { 8 }) {
        0 => return String::new(),
        1 => format!("{k} < last"),
        2 => format!("{along} < n"),
        3 => format!("({along} < n) & ({k} < last) & ({along} > 2)"),
        4 => format!("({along} + {k}) % 3 != 1"),
        _ => format!("({along} < n) & ({k} < last)"),
    };
    // 8-bit floats have no literals.
    let other = match () {
        () if dtype.is_float8() || writer.chance(if of.is_regular { 97 } else { 85 }) => "",
        () if is_float(dtype) => ", other = 1.0",
        () => ", other = 1",
    };
    format!(", mask = {mask}{other}")
}

/// Loads an operand, sometimes as its transpose, and sometimes computes with it. `side` is 0 for one whose rows are `along` rows of the result.
fn operand(writer: &mut Writer<'_>, of: &Products, side: usize, along: &str) -> String {
    let dtype = of.factors[side];
    let name = writer.name();
    // The tile that is loaded has the rows and columns of the operand, or the exchanged ones.
    let is_transposed = writer.chance(25);
    let [of_rows, of_columns] = [".col()", ".row()"];
    let [of_along, of_k] = if (side == 0) != is_transposed { [of_rows, of_columns] } else { [of_columns, of_rows] };
    let (along, k) = (format!("{along}{of_along}"), format!("k{of_k}"));
    let (index, mask) = (index(writer, of, &along, &k), mask(writer, of, &along, &k, dtype));
    let load = format!("load(x{side} + ({index}){mask})");
    let value = if is_transposed { format!("trans({load})") } else { load };
    writer.line(format!("let {name} = {value};"));
    if !dtype.is_float8() && writer.chance(of.rarely(15)) {
        let zero = if is_float(dtype) { "0.0" } else { "0" };
        let computed = writer.name();
        let expression = match writer.below(3) {
            0 => format!("max({name}, {zero})"),
            1 => format!("select({name} > {zero}, {name}, {zero})"),
            _ => format!("min({name}, {zero}) + max({name}, {zero})"),
        };
        writer.line(format!("let {computed} = {expression};"));
        return computed;
    }
    name
}

/// What sums begin with.
fn begin(writer: &mut Writer<'_>, of: &Products, [rows, columns]: [usize; 2]) -> String {
    let name = writer.name();
    let zero = format!("zeros::<{}>([{rows}, {columns}])", of.sum);
    let expression = match writer.below(4) {
        0 => format!("load(x2 + ({}))", flat(&[rows, columns])),
        1 => format!("{zero} + {}", if of.sum.is_float() { "1.0" } else { "1" }),
        _ => zero,
    };
    writer.line(format!("let mut {name} = {expression};"));
    name
}

/// A loop that adds products to one or more sums.
fn sum_up(writer: &mut Writer<'_>, of: &Products, sums: &mut Vec<Sums>) {
    let [m, n, inner] = of.tile;
    let total = begin(writer, of, [m, n]);
    sums.push((total.clone(), [m, n]));
    let shared = writer.chance(35).then(|| begin(writer, of, [m, n]));
    let gram = (m * m <= 4096 && m > 8 && writer.chance(15)).then(|| begin(writer, of, [m, m]));
    let is_chain = of.sum != Dtype::F16 && n >= of.least() && writer.chance(of.rarely(20));
    let chain = is_chain.then(|| begin(writer, of, [m, n]));
    let used = writer.chance(of.rarely(20)).then(|| {
        let name = writer.name();
        writer.line(format!("let mut {name} = zeros::<f32>([{m}]);"));
        name
    });
    sums.extend([&shared, &chain].into_iter().flatten().map(|name| (name.clone(), [m, n])));
    sums.extend(gram.iter().map(|name| (name.clone(), [m, m])));
    sums.extend(used.iter().map(|name| (name.clone(), [m, 1])));

    let stages = if writer.chance(50) { format!(", num_stages = {}", writer.pick(&[1, 2, 3, 4, 5])) } else { String::new() };
    let [start, end] = [writer.pick(&["0", "0", "0", "first"]), writer.pick(&["last", "last", "last", "last + first", "64"])];
    writer.line(format!("for at in range({start}, {end}, {inner}{stages}) {{"));
    writer.line(format!("let k = at + arange(0, {inner});"));
    let (a, b) = (operand(writer, of, 0, "r"), operand(writer, of, 1, "c"));
    let condition = writer.chance(8).then(|| writer.pick(&["at % 3 != 1", "pid % 2 == 0", "at + pid > 20"]));
    if let Some(condition) = condition {
        writer.line(format!("if {condition} {{"));
    }
    let product = of.product(&a, &b);
    let line = match writer.below(4) {
        0 => format!("{total} = {};", product.replace(", acc_type", &format!(", acc = {total}, acc_type"))),
        1 => format!("{total} = {product} + {total};"),
        _ => format!("{total} += {product};"),
    };
    writer.line(line);
    if condition.is_some() {
        writer.line("}");
    }
    if let Some(shared) = &shared {
        // The same operand on one side, or the same tile again.
        let line = match writer.below(3) {
            0 => format!("{shared} += {product};"),
            1 => format!("{shared} += {};", of.product(&operand(writer, of, 0, "r"), &b)),
            _ => format!("{shared} += {};", of.product(&a, &operand(writer, of, 1, "c"))),
        };
        writer.line(line);
    }
    if let Some(gram) = &gram {
        writer.line(format!("{gram} += {};", of.product(&a, &format!("trans({a})"))));
    }
    if let Some(chain) = &chain {
        let weights = format!("load(x1 + ({}))", flat(&[n, n]));
        writer.line(format!("{chain} += {};", of.product(&format!("({product} as {})", of.factors[0]), &weights)));
    }
    if let Some(used) = &used {
        writer.line(format!("{used} += sum({a} as f32, axis = 1);"));
    }
    writer.line("}");
}

/// Computes with the sums, and stores the results.
fn results(writer: &mut Writer<'_>, of: &Products, sums: &[Sums], is_large: bool) {
    let [m, n, _] = of.tile;
    let across = of.across * n;
    let (total, _) = &sums[0];
    let others: Vec<&String> = sums[1..].iter().filter(|(_, shape)| *shape == [m, n]).map(|(name, _)| name).collect();
    let is_inside = "(row < n) & (column < stride + 5)";
    let zero = if of.sum.is_float() { "0.0" } else { "0" };
    let value = match writer.below(7) {
        0 => format!("{total} + load(x2 + row, mask = row < n)"),
        1 => format!("{total} + load(x2 + column)"),
        2 => format!("{total} + load(x2 + row * {across} + column, mask = {is_inside})"),
        3 => format!("max({total}, {zero})"),
        4 if !others.is_empty() => format!("{total} - {}", writer.pick(&others)),
        _ => total.clone(),
    };
    // Rows of all programs lie side by side, with a gap between them or none.
    let width = across + writer.pick(&[0, 0, 8, 3]);
    let mask = writer.pick(&["", ", mask = row < n", ", mask = (row < n) & (column < stride + 5)"]);
    let dtype = writer.tensors[3].dtype;
    writer.line(format!("store(y0 + row * {width} + column, ({value}) as {dtype}{mask});"));
    if is_large {
        return;
    }
    for (name, shape) in sums {
        let is_tile = shape[1] > 1;
        // A reduction, the transpose, or the sums themselves.
        let (value, shape): (String, Vec<usize>) = match writer.below(6) {
            _ if !is_tile => (name.clone(), vec![shape[0]]),
            0 => (format!("sum({name}{}, axis = 1)", if of.sum == Dtype::F16 { " as f32" } else { "" }), vec![shape[0]]),
            1 => (format!("max({name}, axis = 0)"), vec![shape[1]]),
            2 => (format!("trans({name})"), vec![shape[1], shape[0]]),
            _ => (name.clone(), shape.to_vec()),
        };
        let Some((destination, dtype)) = writer.destination(shape.iter().product()) else { return };
        writer.line(format!("store({destination} + ({}), ({value}) as {dtype});", flat(&shape)));
    }
}
