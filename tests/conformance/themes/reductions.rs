//! Reductions along one axis and along all.

use galatea::Dtype;

use crate::array::{Array, Tolerance};
use crate::case::{Case, Check, Draw};
use crate::lab::{Arg, Lab, Source};
use crate::number::Number;
use crate::themes::NUMBERS;
use crate::tiles::Shape;

/// A reduction of the elements along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    Sum,
    Min,
    Max,
    ArgMin,
    ArgMax,
    /// The smallest element and where it is, by a closure on pairs.
    MinAndIndex,
    MaxAndIndex,
}

use What::{ArgMax, ArgMin, Max, MaxAndIndex, Min, MinAndIndex, Sum};

impl What {
    fn name(self) -> &'static str {
        match self {
            Sum => "sum",
            Min => "min",
            Max => "max",
            ArgMin => "argmin",
            ArgMax => "argmax",
            MinAndIndex => "min-with-indices",
            MaxAndIndex => "max-with-indices",
        }
    }

    fn is_index(self) -> bool {
        matches!(self, ArgMin | ArgMax | MinAndIndex | MaxAndIndex)
    }

    /// The reduction of `v` as an expression of the language; without an axis that of the whole tile.
    fn expression(self, shape: &Shape, axis: Option<usize>, keep_dims: bool) -> String {
        let options = match (axis, keep_dims) {
            (Some(axis), true) => format!(", axis = {axis}, keep_dims = true"),
            (Some(axis), false) => format!(", axis = {axis}"),
            (None, true) => ", keep_dims = true".to_string(),
            (None, false) => String::new(),
        };
        match self {
            MinAndIndex | MaxAndIndex => {
                let (sign, axis) = (if self == MinAndIndex { "<" } else { ">" }, axis.unwrap_or(0));
                let axes: Vec<&str> = (0..shape.rank()).map(|at| if at == axis { ".." } else { "None" }).collect();
                let axes = if axes.len() == 1 { String::new() } else { format!("[({})]", axes.join(", ")) };
                let index = format!("broadcast_to(arange(0, {}){axes}, {})", shape.0[axis], shape.written());
                format!(
                    "{{ let (_, index) = reduce((v, {index}), {axis}, |(a, i), (b, j)| (select(b {sign} a, b, a), select(b {sign} a, j, i))); index }}"
                )
            }
            _ => format!("{}(v{options})", self.name()),
        }
    }

    /// The same of some numbers, in their order.
    fn of(self, numbers: &[Number]) -> Number {
        let less = |a: Number, b: Number| match (a, b) {
            (Number::Int(a), Number::Int(b)) => a < b,
            (a, b) => a.float() < b.float(),
        };
        let first = |better: &dyn Fn(Number, Number) -> bool| {
            (1..numbers.len()).fold(0, |best, at| if better(numbers[at], numbers[best]) { at } else { best })
        };
        match self {
            Sum => match numbers[0] {
                Number::Int(_) => Number::Int(numbers.iter().map(|number| number.int()).sum()),
                Number::Float(_) => Number::Float(numbers.iter().map(|number| number.float()).sum()),
            },
            Min => numbers[first(&less)],
            Max => numbers[first(&|a, b| less(b, a))],
            ArgMin | MinAndIndex => Number::Int(first(&less) as i128),
            ArgMax | MaxAndIndex => Number::Int(first(&|a, b| less(b, a)) as i128),
        }
    }

    /// Sums of halves are rounded once; of other floats each step is, of numbers no larger than the sum of all sizes.
    fn tolerance(self, dtype: Dtype, numbers: &[Number]) -> Tolerance {
        if self != Sum || !dtype.is_float() {
            return Tolerance::Exact;
        }
        let sizes: f64 = numbers.iter().map(|number| number.float().abs()).sum();
        let steps = if dtype == Dtype::F64 { 2f64.powi(-52) * numbers.len() as f64 } else { 2f64.powi(-24) * 24.0 };
        let rounding = if dtype.is_half() { 2f64.powi(-7) } else { 0.0 };
        Tolerance::Relative(rounding, sizes * steps)
    }
}

/// Numbers of which some are equal, so that the first of them is asked for, and whose sums stay in range.
fn input(lab: &mut Lab, dtype: Dtype, len: usize, what: What) -> Array {
    match what {
        Sum if dtype.is_float() => Draw::Within(-1.0, 1.0).array(lab, dtype, len),
        Sum => lab.any(dtype, len),
        _ if lab.below(2) == 0 => lab.ints(dtype, len, -20, 20),
        _ => Draw::Within(-100.0, 100.0).array(lab, dtype, len),
    }
}

struct Reduction {
    what: What,
    dtype: Dtype,
    shape: Shape,
    axis: Option<usize>,
    keep_dims: bool,
    num_warps: u32,
}

impl Reduction {
    fn case(self) -> Case {
        let axis = self.axis.map_or_else(|| "all".to_string(), |axis| format!("axis{axis}"));
        let keep = if self.keep_dims { "-keep" } else { "" };
        let name = format!("{}-{}-{}-{axis}{keep}", self.what.name(), self.dtype, self.shape.name());
        Case::new(name, move |lab| self.run(lab))
    }

    /// The shape of the result.
    fn result(&self) -> Shape {
        match (self.axis, self.keep_dims) {
            (None, false) => Shape::new(&[]),
            (None, true) => Shape(vec![1; self.shape.rank()]),
            (Some(axis), false) => self.shape.without(axis),
            (Some(axis), true) => Shape(self.shape.0.iter().enumerate().map(|(at, extent)| if at == axis { 1 } else { *extent }).collect()),
        }
    }

    fn run(&self, lab: &mut Lab) -> Check {
        let Reduction { what, dtype, shape, axis, .. } = self;
        let (result, out) = (self.result(), if what.is_index() { Dtype::I64 } else { *dtype });
        let source = Source::new(format!(
            "fn kernel(x: Ptr<{dtype}>, y: PtrMut<{out}>) {{ let v = load(x + ({})); store(y + ({}), {}); }}",
            shape.offsets(),
            result.offsets(),
            what.expression(shape, *axis, self.keep_dims),
        ));
        let x = input(lab, *dtype, shape.numel(), *what);
        let mut y = lab.any(out, result.numel());
        lab.launch(&source.warps(self.num_warps), [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        (0..y.len()).try_for_each(|of| {
            let numbers: Vec<Number> = match axis {
                Some(axis) => shape.line(*axis, of).map(|at| x.get(at)).collect(),
                None => x.numbers().collect(),
            };
            y.check_at(of, what.tolerance(*dtype, &numbers), what.of(&numbers))
        })
    }
}

/// Vectors of every type.
pub(crate) fn reduce1d() -> Vec<Case> {
    let mut cases = Vec::new();
    for what in [Sum, Min, Max, ArgMin, ArgMax, MinAndIndex, MaxAndIndex] {
        for dtype in NUMBERS {
            for extent in [32, 64, 128, 512] {
                let shape = Shape::new(&[extent]);
                cases.push(Reduction { what, dtype, shape, axis: Some(0), keep_dims: false, num_warps: 4 }.case());
            }
        }
    }
    cases
}

/// One long row of every type; matrices and blocks along each axis and along all, with and without the axis that is gone through.
pub(crate) fn reduce() -> Vec<Case> {
    let words = [Sum, Min, Max, ArgMin, ArgMax];
    let mut cases = Vec::new();
    let mut add = |what, dtype, extents: &[usize], axis, keep_dims, num_warps| {
        cases.push(Reduction { what, dtype, shape: Shape::new(extents), axis, keep_dims, num_warps }.case());
    };
    for what in words {
        NUMBERS.into_iter().for_each(|dtype| add(what, dtype, &[1, 1024], Some(1), false, 4));
        for extents in [[2, 32], [4, 32], [4, 128], [32, 64], [64, 128]] {
            [0, 1].into_iter().for_each(|axis| add(what, Dtype::F32, &extents, Some(axis), false, 4));
        }
        for extents in [[2, 32, 16], [32, 2, 16], [32, 16, 2]] {
            [Some(0), Some(1), Some(2), None].into_iter().for_each(|axis| add(what, Dtype::F32, &extents, axis, false, 4));
        }
        for axis in [Some(0), Some(1), None].into_iter().filter(|axis| axis.is_some() || !what.is_index()) {
            add(what, Dtype::F32, &[16, 32], axis, true, 2);
        }
        [Some(0), Some(1)].into_iter().for_each(|axis| add(what, Dtype::I64, &[6, 40], axis, false, 1));
    }
    cases
}

/// Extents that are no powers of two, along each axis and along all, by one warp and by eight: what pads a tile counts for nothing.
pub(crate) fn reduce_odd() -> Vec<Case> {
    let mut cases = Vec::new();
    for what in [Sum, Min, Max, ArgMin, ArgMax] {
        for extents in [&[3, 5][..], &[7, 96], &[33, 10], &[1, 100], &[5, 3, 6], &[3, 1, 48]] {
            let axes = (0..extents.len()).map(Some).chain([None]);
            for (axis, (dtype, num_warps)) in axes.flat_map(|axis| [(Dtype::I16, 1), (Dtype::F32, 8)].map(|how| (axis, how))) {
                cases.push(Reduction { what, dtype, shape: Shape::new(extents), axis, keep_dims: axis == Some(1), num_warps }.case());
            }
        }
    }
    cases
}

/// The largest of numbers below zero is not zero, also where a tile is padded.
pub(crate) fn max_returns_zero() -> Vec<Case> {
    let source = Source::new("fn kernel(x: Ptr<f32>, y: PtrMut<f32>) { store(y, max(load(x + arange(0, 100)))); }");
    vec![Case::new("f32", move |lab| {
        let x = lab.within(Dtype::F32, 100, -5.0, -1.0);
        let mut y = lab.any(Dtype::F32, 1);
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        y.check(Tolerance::Exact, |_| What::Max.of(&x.numbers().collect::<Vec<_>>()))
    })]
}

/// A sum has the type of its elements; in another type it is a sum of casts.
pub(crate) fn sum_dtype() -> Vec<Case> {
    let row = |name: &str, from: Dtype, to: Dtype, value: i128| {
        let source = Source::new(format!("fn kernel(y: PtrMut<{to}>) {{ store(y, sum(full([64], {value}{from}) as {to})); }}"));
        Case::new(name, move |lab| {
            let mut y = lab.any(to, 1);
            lab.launch(&source, [1; 3], &mut [Arg::Out(&mut y)])?;
            y.check(Tolerance::Exact, |_| Number::Int(64 * value))
        })
    };
    vec![
        row("i8-i8", Dtype::I8, Dtype::I8, 100),
        row("i8-i32", Dtype::I8, Dtype::I32, 100),
        row("i32-i64", Dtype::I32, Dtype::I64, i32::MAX.into()),
        row("i32-f32", Dtype::I32, Dtype::F32, 1000),
    ]
}

/// Mean and variance in one pass: a reduction of three tiles by a closure.
pub(crate) fn generic_reduction() -> Vec<Case> {
    let source = Source::new(
        "fn kernel(x: Ptr<f32>, mean: PtrMut<f32>, variance: PtrMut<f32>) {
            let v = load(x + arange(0, 512));
            let (count, average, squares) = reduce((full([512], 1.0f32), v, zeros::<f32>([512])), 0, |(n, a, p), (m, b, q)| {
                let share = m / (n + m);
                (n + m, a + (b - a) * share, p + q + (b - a) * (b - a) * n * share)
            });
            store(mean, average);
            store(variance, squares / count);
        }",
    );
    vec![Case::new("welford", move |lab| {
        let x = lab.within(Dtype::F32, 512, 10.0, 20.0);
        let (mut mean, mut variance) = (lab.any(Dtype::F32, 1), lab.any(Dtype::F32, 1));
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut mean), Arg::Out(&mut variance)])?;
        let values = || x.numbers().map(Number::float);
        let average = values().sum::<f64>() / 512.0;
        mean.check(Tolerance::Relative(1e-6, 0.0), |_| Number::Float(average))?;
        variance.check(Tolerance::Relative(1e-5, 0.0), |_| Number::Float(values().map(|x| (x - average).powi(2)).sum::<f64>() / 512.0))
    })]
}

/// A reduction of what a reduction left.
pub(crate) fn chained_reductions() -> Vec<Case> {
    let row = |first: usize, second: usize| {
        let shape = Shape::new(&[8, 4, 16]);
        let between = shape.without(first);
        let result = between.without(second);
        let source = Source::new(format!(
            "fn kernel(x: Ptr<i32>, y: PtrMut<i32>) {{ store(y + ({}), sum(max(load(x + ({})), axis = {first}), axis = {second})); }}",
            result.offsets(),
            shape.offsets()
        ));
        Case::new(format!("axis{first}-axis{second}"), move |lab| {
            let x = lab.any(Dtype::I32, shape.numel());
            let mut y = lab.any(Dtype::I32, result.numel());
            lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
            let largest = |of| shape.line(first, of).map(|at| x.get(at).int()).max().unwrap_or(0);
            y.check(Tolerance::Exact, |of| Number::Int(between.line(second, of).map(largest).sum()))
        })
    };
    vec![row(0, 0), row(0, 1), row(1, 1), row(2, 0)]
}

/// NaN is neither the largest nor the smallest where there is a number; of equal numbers the first counts.
pub(crate) fn argmax_argmin_with_nan() -> Vec<Case> {
    let row = |name: &str, dtype: Dtype, nans: usize| {
        let source = Source::new(format!(
            "fn kernel(x: Ptr<{dtype}>, y: PtrMut<i64>) {{ let v = load(x + arange(0, 64)); store(y, argmax(v)); store(y + 1, argmin(v, axis = 0)); }}"
        ));
        Case::new(name, move |lab| {
            let mut x = lab.ints(dtype, 64, -3, 4);
            let nan = Array::new(dtype, [Number::Float(f64::NAN)]).bits[0];
            (0..64).for_each(|at| x.bits[at] = if lab.below(64) < nans { nan } else { x.bits[at] });
            let mut y = lab.any(Dtype::I64, 2);
            lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
            let values: Vec<f64> = x.numbers().map(Number::float).collect();
            let first = |better: &dyn Fn(f64, f64) -> bool| {
                (0..64).fold(
                    0,
                    |best, at| if better(values[at], values[best]) || values[best].is_nan() && !values[at].is_nan() { at } else { best },
                )
            };
            y.check(Tolerance::Exact, |i| Number::Int(if i == 0 { first(&|a, b| a > b) } else { first(&|a, b| a < b) } as i128))
        })
    };
    vec![row("f32-some", Dtype::F32, 20), row("f32-most", Dtype::F32, 60), row("f32-all", Dtype::F32, 64), row("f16-some", Dtype::F16, 20)]
}

/// A row is gone through block by block in a loop that carries what the blocks before gave.
pub(crate) fn optimize_thread_locality() -> Vec<Case> {
    let mut cases = Vec::new();
    for what in [Sum, Min, Max] {
        for block in [32, 64, 128] {
            for columns in [512, 1000, 1024] {
                for rows in [2, 16] {
                    cases.push(locality(what, block, columns, rows));
                }
            }
        }
    }
    cases
}

fn locality(what: What, block: usize, columns: usize, rows: usize) -> Case {
    let (start, join) = match what {
        Sum => ("0.0", "total + sum(v, axis = 1)".to_string()),
        Min => ("f32::INFINITY", "min(total, min(v, axis = 1))".to_string()),
        _ => ("f32::NEG_INFINITY", "max(total, max(v, axis = 1))".to_string()),
    };
    let source = Source::new(format!(
        "fn kernel(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {{
            let row = arange(0, {rows});
            let mut total = full([{rows}], {start} as f32);
            for start in range(0, n, {block}) {{
                let column = start + arange(0, {block});
                let mask = (column < n)[(None, ..)] & (row >= 0)[(.., None)];
                let v = load(x + row[(.., None)] * n + column[(None, ..)], mask = mask, other = {start});
                total = {join};
            }}
            store(y + row, total);
        }}"
    ));
    Case::new(format!("{}-{block}-{columns}-{rows}", what.name()), move |lab| {
        let x = lab.within(Dtype::F32, rows * columns, -1.0, 1.0);
        let mut y = lab.any(Dtype::F32, rows);
        let n = Arg::Scalar(Dtype::I64, Number::Int(columns as i128));
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y), n])?;
        (0..rows).try_for_each(|row| {
            let numbers: Vec<Number> = (0..columns).map(|column| x.get(row * columns + column)).collect();
            y.check_at(row, what.tolerance(Dtype::F32, &numbers), what.of(&numbers))
        })
    })
}
