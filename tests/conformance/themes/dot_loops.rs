//! Loops of products of matrices: masked loads, `total += dot(..)`, something done to the sums, and a masked store, in every program of a grid.
//!
//! A case is the kernel of a combination of options, its launch, the reference, and the check which version of the kernel runs. `dot_rounds.rs` chooses the
//! combinations.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use galatea::Dtype;

use super::dots::{KINDS, Kind};
use crate::array::{Array, Tolerance};
use crate::case::{Case, Check};
use crate::lab::{Arg, Lab, Source};
use crate::number::{Number, encode, round};

/// The kinds that have a version with roles.
pub(super) const ROLE_KINDS: [Kind; 2] = [KINDS[1], KINDS[2]];

/// How an operand is stored and loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Order {
    Rows,
    Columns,
    /// Stored by columns, and loaded as the transpose.
    Transposed,
}

pub(super) const ORDERS: [Order; 3] = [Order::Rows, Order::Columns, Order::Transposed];

/// The distance of the rows of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stride {
    /// Their length.
    Tight,
    /// A multiple of 16 bytes.
    Padded,
    Odd,
}

impl Stride {
    fn of(self, len: usize, dtype: Dtype) -> usize {
        match self {
            Stride::Tight => len,
            Stride::Padded => len.next_multiple_of(128 / dtype.bits() as usize),
            Stride::Odd => (len + 2) | 1,
        }
    }
}

/// What happens to the sums.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Epilogue {
    Nothing,
    RowBias,
    ColumnBias,
    Residual,
    ScaledRelu,
    /// A store of 16 bits.
    Narrow,
    /// A store by columns.
    ByColumns,
}

use Epilogue::{ByColumns, ColumnBias, Narrow, Nothing, Residual, RowBias, ScaledRelu};

pub(super) const EPILOGUES: [Epilogue; 7] = [Nothing, RowBias, ColumnBias, Residual, ScaledRelu, Narrow, ByColumns];

/// Programs along each axis of the grid. Along the third one, each program computes the same product.
pub(super) type Grid = [usize; 3];

/// Two programs for each worker of a GPU with 132 multiprocessors, which runs two workers, or four for each of one.
pub(super) const WORKERS: Grid = [1, 5, 108];

/// The version of a kernel that a GPU with warpgroup products runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Version {
    Roles,
    Usual,
    /// The case does not say.
    Any,
}

#[derive(Clone)]
pub(super) struct DotLoop {
    pub(super) kind: Kind,
    pub(super) orders: [Order; 2],
    /// Rows and columns of a tile, and products a sum.
    pub(super) tile: [usize; 3],
    /// The elements of the last tile along each axis, or 0 if it is whole.
    pub(super) rests: [usize; 3],
    pub(super) stride: Stride,
    pub(super) stages: usize,
    /// Does the loop state its stages? Else the schedule does.
    pub(super) is_stated: bool,
    pub(super) iterations: usize,
    pub(super) num_warps: u32,
    pub(super) epilogue: Epilogue,
    pub(super) grid: Grid,
    /// Are all tensors at aligned addresses?
    pub(super) is_aligned: bool,
    /// Are the elements random ones of any magnitude? Else they are small integers, whose sums are exact.
    pub(super) is_normal: bool,
}

impl DotLoop {
    pub(super) fn case(self) -> Case {
        let DotLoop { kind, orders, tile: [m, n, k], rests, stages, iterations, num_warps, epilogue, grid, .. } = &self;
        let [rows, columns, inner] = rests;
        let words = [
            kind.name(),
            orders.map(|order| ["row", "col", "trans"][order as usize]).join("-"),
            format!("{m}x{n}x{k}"),
            format!("rest{rows}x{columns}x{inner}"),
            format!("{:?}", self.stride).to_lowercase(),
            format!("{}{stages}", if self.is_stated { "range" } else { "stages" }),
            format!("iterations{iterations}"),
            format!("warps{num_warps}"),
            ["none", "row-bias", "col-bias", "residual", "scaled-relu", "narrow", "by-columns"][*epilogue as usize].to_owned(),
            format!("grid{}x{}x{}", grid[0], grid[1], grid[2]),
            if self.is_aligned { "aligned" } else { "anywhere" }.to_owned(),
        ];
        Case::new(words.join("-"), move |lab| self.run(lab))
    }

    /// The extents of the product.
    fn extents(&self) -> [usize; 3] {
        let [m, n, k] = self.tile;
        let extent = |tiles: usize, tile: usize, rest: usize| match (tiles, rest) {
            (0, _) => 0,
            (_, 0) => tiles * tile,
            _ => (tiles - 1) * tile + rest,
        };
        [extent(self.grid[0], m, self.rests[0]), extent(self.grid[1], n, self.rests[1]), extent(self.iterations, k, self.rests[2])]
    }

    /// The distances of rows, or of columns, in both operands and in the result.
    fn strides(&self) -> [usize; 3] {
        let [m, n, k] = self.extents();
        let [a, b] = self.orders.map(|order| order == Order::Rows);
        let lens = [if a { k } else { m }, if b { n } else { k }, if self.epilogue == ByColumns { m } else { n }];
        let dtypes = [self.kind.factors[0], self.kind.factors[1], self.out()];
        [0, 1, 2].map(|tensor| self.stride.of(lens[tensor], dtypes[tensor]))
    }

    /// The type of the result.
    fn out(&self) -> Dtype {
        match (self.epilogue, self.kind.factors[0], self.kind.sum) {
            (Narrow, _, Dtype::I32) => Dtype::I16,
            (Narrow, Dtype::F16, Dtype::F32) => Dtype::F16,
            (Narrow, ..) => Dtype::Bf16,
            (.., sum) => sum,
        }
    }

    fn source(&self) -> Source {
        let DotLoop { kind, tile: [m, n, k], .. } = self;
        let ([x, y], sum, out) = (kind.factors, kind.sum, self.out());
        let mut text = format!(
            "fn kernel(x: Ptr<{x}>, y: Ptr<{y}>, w: Ptr<{sum}>, z: PtrMut<{out}>, rows: usize, columns: usize, inner: usize, \
             x_stride: usize, y_stride: usize, z_stride: usize, z_len: usize) {{\n\
             let r = program_id(0) * {m} + arange(0, {m}); let c = program_id(1) * {n} + arange(0, {n});\n\
             let (row, column) = (r.col(), c.row());\n\
             let mut total = zeros::<{sum}>([{m}, {n}]);\n"
        );
        let stages = if self.is_stated { format!(", num_stages = {}", self.stages) } else { String::new() };
        text += &format!("for first in range(0, inner, {k}{stages}) {{ let k = first + arange(0, {k});\n");
        text += match self.orders[0] {
            Order::Rows => "let a = load(x + row * x_stride + k.row(), mask = (row < rows) & (k.row() < inner));\n",
            Order::Columns => "let a = load(x + k.row() * x_stride + row, mask = (row < rows) & (k.row() < inner));\n",
            Order::Transposed => "let a = trans(load(x + k.col() * x_stride + r.row(), mask = (r.row() < rows) & (k.col() < inner)));\n",
        };
        text += match self.orders[1] {
            Order::Rows => "let b = load(y + k.col() * y_stride + column, mask = (column < columns) & (k.col() < inner));\n",
            Order::Columns => "let b = load(y + column * y_stride + k.col(), mask = (column < columns) & (k.col() < inner));\n",
            Order::Transposed => "let b = trans(load(y + c.col() * y_stride + k.row(), mask = (c.col() < columns) & (k.row() < inner)));\n",
        };
        text += &format!("total += {}; }}\n", kind.product("a", "b"));
        let at = if self.epilogue == ByColumns { "column * z_stride + row" } else { "row * z_stride + column" };
        let is_int = sum == Dtype::I32;
        text += &match self.epilogue {
            Nothing | ByColumns => "let v = total;".to_owned(),
            Narrow => format!("let v = total as {out};"),
            RowBias => "let v = total + load(w + row, mask = row < rows);".to_owned(),
            ColumnBias => "let v = load(w + column, mask = column < columns) + total;".to_owned(),
            Residual => format!("let v = total + load(w + {at}, mask = (row < rows) & (column < columns));"),
            ScaledRelu if is_int => "let v = max(total * 3, 0);".to_owned(),
            ScaledRelu => "let v = max(total * 0.5, 0.0);".to_owned(),
        };
        text += &format!("\nstore(z + program_id(2) * z_len + {at}, v, mask = (row < rows) & (column < columns)); }}");
        let mut source = Source::new(text).warps(self.num_warps);
        if !self.is_stated {
            source.schedule.num_stages = self.stages as u32;
        }
        source.name = SLOTS[slot(&source.text)].0;
        source
    }

    /// The version that a launch runs on a GPU with warpgroup products.
    fn version(&self) -> Version {
        let DotLoop { kind, tile: [m, n, k], num_warps, .. } = self;
        let is_known = ROLE_KINDS.contains(kind) && self.extents().iter().all(|extent| *extent > 0);
        let parts = 16 * *num_warps as usize;
        let has_roles = [4, 8].contains(num_warps) && (*m >= parts || *n >= parts) && *m >= 8 && *n >= 8 && *k >= 16;
        let is_copied = self.is_aligned && self.strides()[..2].iter().all(|stride| stride.is_multiple_of(8));
        match () {
            // Blocks of padded tiles have two ends along an axis.
            () if !is_known || self.tile.iter().any(|extent| !extent.is_power_of_two()) => Version::Any,
            () if has_roles && is_copied => Version::Roles,
            () if has_roles && !self.is_aligned => Version::Any,
            () => Version::Usual,
        }
    }

    fn run(&self, lab: &mut Lab) -> Check {
        let ([m, n, k], [x_stride, y_stride, z_stride]) = (self.extents(), self.strides());
        let DotLoop { kind, orders: [of_x, of_y], grid, .. } = self;
        let draw = |lab: &mut Lab, dtype: Dtype, len: usize| match (dtype, kind.sum) {
            (Dtype::I8 | Dtype::U8, _) => lab.any(dtype, len),
            _ if self.is_normal => normal(lab, dtype, len),
            // Sums are exact in any order.
            (_, Dtype::F16) => lab.ints(dtype, len, -2, 3),
            _ => lab.ints(dtype, len, -4, 5),
        };
        let len = |rows: usize, stride: usize| if rows == 0 { 0 } else { rows * stride };
        let x = draw(lab, kind.factors[0], len(if *of_x == Order::Rows { m } else { k }, x_stride));
        let y = draw(lab, kind.factors[1], len(if *of_y == Order::Rows { k } else { n }, y_stride));
        let z_len = len(if self.epilogue == ByColumns { n } else { m }, z_stride);
        let w = lab.ints(kind.sum, z_len.max(m).max(n), -1, 2);
        let mut z = lab.any(self.out(), grid[2] * z_len);
        let before = z.clone();
        let scalars = [m, n, k, x_stride, y_stride, z_stride, z_len].map(|number| Arg::Scalar(Dtype::I64, Number::Int(number as i128)));
        let mut args = vec![Arg::In(&x), Arg::In(&y), Arg::In(&w), Arg::Out(&mut z)];
        args.extend(scalars);
        self.launch(lab, &mut args)?;

        let sums = self.sums(&x, &y);
        let w: Vec<f64> = wide(&w).collect();
        for (at, old) in before.bits[..z_len].iter().enumerate() {
            let place = [at / z_stride, at % z_stride];
            let [row, column] = if self.epilogue == ByColumns { [place[1], place[0]] } else { place };
            let mut copies = (at..z.len()).step_by(z_len);
            let of = |error| format!("{error}, row {row}, column {column}");
            if row >= m || column >= n {
                match z.bits[at] == *old {
                    true => continue,
                    false => return Err(of(format!("element {at} between rows is written"))),
                }
            }
            let Sum { sum, magnitude } = sums[row * n + column];
            let want = match self.epilogue {
                Nothing | ByColumns | Narrow => sum,
                RowBias => sum + w[row],
                ColumnBias => sum + w[column],
                Residual => sum + w[at],
                ScaledRelu => (sum * if kind.sum == Dtype::I32 { 3.0 } else { 0.5 }).max(0.0),
            };
            let number = if kind.sum == Dtype::I32 { Number::Int(want as i128) } else { Number::Float(want + 0.0) };
            let tolerance = if self.is_normal { Tolerance::Relative(0.0, self.error(k, magnitude, want)) } else { Tolerance::Exact };
            // Most elements are equal, and only others are worth a conversion to a number.
            let bits = encode(number, z.dtype);
            let differs = copies.find(|copy| z.bits[*copy] != bits && z.check_at(*copy, tolerance, number).is_err());
            differs.map_or(Ok(()), |copy| z.check_at(copy, tolerance, number)).map_err(of)?;
        }
        Ok(())
    }

    /// Launches the kernel, and checks which version runs. The simulator tells: only the version with roles copies in bulk.
    fn launch(&self, lab: &mut Lab, args: &mut [Arg<'_>]) -> Check {
        let source = self.source();
        let mut launch = |lab: &mut Lab| match self.is_aligned {
            true => lab.launch_aligned(&source, self.grid, args),
            false => lab.launch(&source, self.grid, args),
        };
        let can_be = self.version() != Version::Usual && lab.device().compute_capability() == Some((9, 0));
        let (name, locks) = &SLOTS[slot(&source.text)];
        let copied = |lab: &Lab| Some(lab.device().sim_report()?.kernel(name).map_or(0, |report| report.total().async_bytes));
        if copied(lab).is_none() {
            return launch(lab);
        }
        // Launches of one name do not overlap, so the bytes are those of this launch.
        let _guard = locks[usize::from(lab.device().compute_capability() == Some((9, 0)))].lock().unwrap_or_else(PoisonError::into_inner);
        let before = copied(lab);
        launch(lab)?;
        match copied(lab) > before {
            true if !can_be => Err(format!("the version with roles runs in\n{}", source.text)),
            false if can_be && self.version() == Version::Roles => Err(format!("the version with roles does not run in\n{}", source.text)),
            _ => Ok(()),
        }
    }

    /// The sums of the product, row by row.
    fn sums(&self, x: &Array, y: &Array) -> Vec<Sum> {
        let ([m, n, k], [x_stride, y_stride, _]) = (self.extents(), self.strides());
        let factor = |value: f64| if self.kind.precision == "tf32" { to_tf32(value) } else { value };
        let [x, y] = [x, y].map(|array| wide(array).map(factor).collect::<Vec<f64>>());
        let mut sums = vec![Sum::default(); m * n];
        for at in 0..k {
            let right: Vec<f64> = match self.orders[1] {
                Order::Rows => y[at * y_stride..][..n].to_vec(),
                _ => (0..n).map(|column| y[column * y_stride + at]).collect(),
            };
            for (row, of_row) in sums.chunks_mut(n).enumerate() {
                let left = x[if self.orders[0] == Order::Rows { row * x_stride + at } else { at * x_stride + row }];
                for (of, right) in of_row.iter_mut().zip(&right) {
                    let term = left * right;
                    of.sum += term;
                    of.magnitude += term.abs();
                }
            }
        }
        sums
    }

    /// How far a rounded sum of so many terms may be from the exact one: a unit in the last place of the sum of magnitudes for each instruction that adds to it,
    /// which is half of one where each term is rounded to nearest, and what a store rounds.
    fn error(&self, terms: usize, magnitude: f64, want: f64) -> f64 {
        let (bits, roundings) = match (self.kind.factors[0], self.kind.sum, self.kind.precision) {
            (.., Dtype::F64, _) => (53, terms),
            (.., "ieee") => (24, terms),
            (.., Dtype::F16, _) => (10, terms.div_ceil(8) + 1),
            // Warpgroup products of 8-bit floats keep 13 bits below the largest term.
            (Dtype::F8E4M3 | Dtype::F8E5M2, ..) => (13, terms.div_ceil(32) + 1),
            (.., "tf32x3") => (20, terms.div_ceil(4) + 1),
            _ => (23, terms.div_ceil(4) + 1),
        };
        let stored = if self.out() == self.kind.sum { 0.0 } else { crate::number::ulp(want, self.out()) };
        (roundings + 2) as f64 * (magnitude + 1.0) * 2f64.powi(-bits) + stored
    }
}

/// A sum of products, and that of their magnitudes.
#[derive(Clone, Copy, Default)]
struct Sum {
    sum: f64,
    magnitude: f64,
}

fn wide(array: &Array) -> impl Iterator<Item = f64> {
    array.numbers().map(|number| match number {
        Number::Int(value) => value as f64,
        number => number.float(),
    })
}

/// The nearest number of 11 bits, ties away from zero.
fn to_tf32(x: f64) -> f64 {
    if x == 0.0 {
        return x;
    }
    let unit = 2f64.powi(x.abs().log2().floor() as i32 - 10);
    (x / unit).round() * unit
}

/// Numbers of a normal distribution, nearly: the sum of twelve uniform ones (the central limit theorem).
fn normal(lab: &mut Lab, dtype: Dtype, len: usize) -> Array {
    Array::new(dtype, (0..len).map(|_| Number::Float(round((0..12).map(|_| lab.between(-0.5, 0.5)).sum(), dtype))))
}

/// Names of kernels, each with a lock for each simulated GPU. Cases take one by the text of their kernels, so that few of them wait for each other.
static SLOTS: [(&str, [Mutex<()>; 2]); 12] = [
    named("dot_loop_0"),
    named("dot_loop_1"),
    named("dot_loop_2"),
    named("dot_loop_3"),
    named("dot_loop_4"),
    named("dot_loop_5"),
    named("dot_loop_6"),
    named("dot_loop_7"),
    named("dot_loop_8"),
    named("dot_loop_9"),
    named("dot_loop_10"),
    named("dot_loop_11"),
];

const fn named(name: &'static str) -> (&'static str, [Mutex<()>; 2]) {
    (name, [Mutex::new(()), Mutex::new(())])
}

fn slot(text: &str) -> usize {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish() as usize % SLOTS.len()
}
