//! Words of the standard library: sorts, the largest of a few, grids in another order.

use galatea::Dtype;

use crate::array::Tolerance;
use crate::case::{Case, Draw, Elementwise};
use crate::lab::{Arg, Source};
use crate::number::Number;
use crate::themes::NUMBERS;
use crate::tiles::Shape;

/// Rows in order, and the first of them, from either end.
pub(crate) fn sort() -> Vec<Case> {
    sorts(&[[1, 512], [8, 64], [256, 16], [512, 8]])
}

/// Rows whose length is no power of two: what pads them comes last, from either end.
pub(crate) fn sort_odd() -> Vec<Case> {
    sorts(&[[1, 500], [7, 60], [33, 10]])
}

fn sorts(shapes: &[[usize; 2]]) -> Vec<Case> {
    let mut cases = Vec::new();
    for extents in shapes {
        let mut firsts = [1, 4, 10, 100, 512].map(|k| Some(k.min(extents[1]))).to_vec();
        firsts.dedup();
        firsts.push(None);
        for first in firsts {
            for descending in [false, true] {
                for dtype in [Dtype::I32, Dtype::F16, Dtype::F32, Dtype::Bf16, Dtype::U8] {
                    cases.push(sorted(Shape::new(extents), first, descending, dtype));
                }
            }
        }
    }
    cases
}

fn sorted(shape: Shape, first: Option<usize>, descending: bool, dtype: Dtype) -> Case {
    let columns = shape.0[1];
    let width = first.unwrap_or(columns);
    let result = Shape::new(&[shape.0[0], width]);
    let end = if descending { "descending" } else { "ascending" };
    let (name, expression) = match first {
        None => (format!("sort-{dtype}-{}-{end}", shape.name()), format!("sort(v, descending = {descending})")),
        Some(k) if descending => (format!("topk{k}-{dtype}-{}-{end}", shape.name()), format!("topk(v, {k})")),
        // The smallest are the largest of the opposites; of unsigned numbers those have all bits turned.
        Some(k) if dtype == Dtype::U8 => (format!("topk{k}-{dtype}-{}-{end}", shape.name()), format!("!topk(!v, {k})")),
        Some(k) => (format!("topk{k}-{dtype}-{}-{end}", shape.name()), format!("-topk(-v, {k})")),
    };
    let source = Source::new(format!(
        "fn kernel(x: Ptr<{dtype}>, y: PtrMut<{dtype}>) {{ let v = load(x + ({})); store(y + ({}), {expression}); }}",
        shape.offsets(),
        result.offsets()
    ));
    Case::new(name, move |lab| {
        let draw = if dtype == Dtype::U8 { Draw::Any } else { Draw::Ints(-100, 100) };
        let x = draw.array(lab, dtype, shape.numel());
        let mut y = lab.any(dtype, result.numel());
        lab.launch(&source, [1; 3], &mut [Arg::In(&x), Arg::Out(&mut y)])?;
        (0..shape.0[0]).try_for_each(|row| {
            let mut line: Vec<f64> = (0..columns).map(|column| x.get(row * columns + column).float()).collect();
            line.sort_by(|a, b| if descending { b.total_cmp(a) } else { a.total_cmp(b) });
            (0..width).try_for_each(|column| match y.get(row * width + column).float() {
                got if got == line[column] => Ok(()),
                got => Err(format!("row {row}, column {column} is {got}, not {}", line[column])),
            })
        })
    })
}

/// `max` and `min` of two tiles of every type.
pub(crate) fn maximum_minimum() -> Vec<Case> {
    let mut cases = Vec::new();
    for word in ["max", "min"] {
        for dtype in NUMBERS {
            let inputs = vec![(dtype, Draw::Few), (dtype, Draw::Any)];
            // Of zeros either may come out.
            let case = Elementwise { inputs, out: dtype, expression: format!("{word}(x, y)"), tolerance: Tolerance::Ulps(0.0) };
            cases.push(case.case(format!("{word}-{dtype}"), move |numbers| match (numbers[0], numbers[1]) {
                (Number::Int(x), Number::Int(y)) => Number::Int(if word == "max" { x.max(y) } else { x.min(y) }),
                (x, y) => Number::Float(if word == "max" { x.float().max(y.float()) } else { x.float().min(y.float()) }),
            }));
        }
    }
    cases
}

/// The order of tiles, group by group.
pub(crate) fn swizzle2d() -> Vec<Case> {
    [(5, 7, 3), (4, 4, 2), (8, 3, 3)]
        .map(|(rows, columns, group)| {
            let source = Source::new(format!(
                "fn kernel(y: PtrMut<i32>) {{
                    let (i, j) = (arange(0, {rows})[(.., None)], arange(0, {columns})[(None, ..)]);
                    let (row, column) = swizzle2d(i, j, {rows}, {columns}, {group});
                    store(y + row * {columns} + column, (i * {columns} + j) as i32);
                }}"
            ));
            Case::new(format!("{rows}-{columns}-{group}"), move |lab| {
                let mut y = lab.any(Dtype::I32, rows * columns);
                lab.launch(&source, [1; 3], &mut [Arg::Out(&mut y)])?;
                // Groups of rows one after the other, each column by column.
                let mut order = Vec::new();
                for start in (0..rows).step_by(group) {
                    let end = rows.min(start + group);
                    (0..columns).for_each(|column| order.extend((start..end).map(|row| row * columns + column)));
                }
                y.check(Tolerance::Exact, |index| Number::Int(order.iter().position(|at| *at == index).unwrap_or(0) as i128))
            })
        })
        .into()
}
