//! Tables of floating-point operations.

use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, DimValues, Dtype};
use kernel_graph::{Graph, input};

use crate::kernels::{mlp_op, row_sums, scale_op, silu_op, sum_difference};
use crate::numbers;
use crate::round_trip::export;

/// The largest element of each row, whose blocks the programs share: `num_programs(0)` of them work on all rows.
#[kernel]
fn shared_rows<const ROWS: usize>(x: Ptr<f32>, y: PtrMut<f32>, rows: usize, scale: f32) {
    for first in range(program_id(0) * ROWS, rows, num_programs(0) * ROWS) {
        let at = first + arange(0, ROWS);
        store(y + at, load(x + at, mask = at < rows) * scale + 1.0, mask = at < rows);
    }
}

/// Halves each number until it is below 1.
#[kernel]
fn halve(x: PtrMut<f32>) {
    let mut v = load(x + program_id(0));
    while v >= 1.0 {
        v = v * 0.5;
    }
    store(x + program_id(0), v * 2.0);
}

/// Its loops and its branch depend on extents and scalars.
#[kernel]
fn parameters(x: View<f32, 3>, y: PtrMut<f32>, first: i32, is_long: bool) {
    let mut v = load(y);
    for _ in range(0, extent(x, 1)) {
        v = v * 2.0;
    }
    for _ in range(0, extent(x, 2)) {
        v = v + 1.0;
    }
    for _ in range(first, 3) {
        v = v - 1.0;
    }
    if is_long {
        v = sin(v);
    }
    store(y, v);
}

/// The quotient is rounded towards zero.
#[kernel]
fn quotients(y: PtrMut<f32>, n: i64) {
    let mut v = load(y);
    for _ in range(n / 2, 9) {
        v = v * 2.0;
    }
    store(y, v);
}

fn model() -> Graph {
    let [rows, columns] = [Dim::new("rows", 1..=1000), Dim::new("columns", 0..=4096)];
    let body = |x: &Tensor| {
        let mut y = silu_op(&silu_op(x)?)?;
        scale_op(&mut y, 0.5, -3)?;
        let sums = row_sums(&y)?;
        let mut z = sums.empty_like()?;
        shared_rows::<16>(&sums, &mut z, sums.numel(), 0.5).grid(7).launch()?;
        Ok(z)
    };
    export(|[x]| body(x), [input("x", [&rows, &columns], Dtype::F32)]).unwrap().named("model")
}

pub(crate) fn a_symbolic_table_has_expressions() {
    assert_eq!(
        model().flops().unwrap().to_string(),
        "\
Module                                                                                FLOP    % Total                      Bytes    FLOP/byte
--------------  --------------------------------------------------------------------------  ---------  -------------------------  -----------
model           32*rows*cdiv(columns, 32) + 384*cdiv(columns*rows, 64) + 32*cdiv(rows, 16)    100.00%  28*columns*rows + 12*rows            -
- test::silu                                                    256*cdiv(columns*rows, 64)          -            16*columns*rows            -
- test::scale_                                                  128*cdiv(columns*rows, 64)          -             8*columns*rows            -
- sum_rows                                                       32*rows*cdiv(columns, 32)          -    4*columns*rows + 4*rows            -
- shared_rows                                                            32*cdiv(rows, 16)          -                     8*rows            -
"
    );
}

pub(crate) fn a_table_for_sizes_has_the_layout_of_torch() {
    let graph = model();
    let table = graph.flops_at(&[("rows", 100), ("columns", 4000)]).unwrap();
    assert_eq!(
        table.to_string(),
        "\
Module               FLOP    % Total    Bytes    FLOP/byte
--------------  ---------  ---------  -------  -----------
model           2800.224K    100.00%  11.201M         0.25
- test::silu    1600.000K     57.14%   6.400M         0.25
- test::scale_   800.000K     28.57%   3.200M         0.25
- sum_rows       400.000K     14.28%   1.600M         0.25
- shared_rows      0.224K      0.01%   0.001M         0.28
"
    );
    let [rows, columns] = &graph.dims()[..] else { panic!("it has two dims") };
    let values = DimValues::new().with(rows, 100).unwrap().with(columns, 100).unwrap();
    assert_eq!(graph.flops().unwrap().at(&values).unwrap(), graph.flops_at(&[("columns", 100), ("rows", 100)]).unwrap());
}

pub(crate) fn counts_at_sizes_are_those_of_the_kernels() {
    let graph = model();
    for (rows, columns) in [(1, 0), (1, 1), (16, 32), (17, 33), (1000, 4096)] {
        let table = graph.flops_at(&[("rows", rows), ("columns", columns)]).unwrap();
        let cdiv = |a: i64, b: i64| (a + b - 1) / b;
        let elementwise = 2 * 64 * cdiv(rows * columns, 64);
        let sums = rows * cdiv(columns, 32) * (31 + 1);
        let shared = cdiv(rows, 16) * 16 * 2;
        let expected = [3 * elementwise + sums + shared, 2 * elementwise, elementwise, sums, shared].map(Dim::from);
        let found: Vec<Dim> = table.rows().iter().map(|row| row.flops.clone()).collect();
        assert_eq!(found, expected, "{rows}x{columns}");
        assert!(table.rows().iter().all(|row| row.is_exact));
        let bytes: Vec<Dim> = table.rows().iter().map(kernel_graph::FlopRow::bytes).collect();
        let whole = 4 * rows * columns;
        assert_eq!(bytes, [7 * whole + 12 * rows, 4 * whole, 2 * whole, whole + 4 * rows, 8 * rows].map(Dim::from));
    }
}

pub(crate) fn counts_that_depend_on_data_are_lower_bounds() {
    let n = Dim::new("n", 0..=64);
    let graph = export(
        |[x]| {
            let mut y = x.clone();
            halve(&mut y).grid(x.numel()).launch()?;
            silu_op(&y)
        },
        [input("x", [&n], Dtype::F32)],
    );
    assert_eq!(
        graph.unwrap().flops().unwrap().to_string(),
        "\
Module                        FLOP    % Total    Bytes    FLOP/byte
------------  --------------------  ---------  -------  -----------
graph         ~n + 128*cdiv(n, 64)    100.00%     16*n            -
- test::silu       128*cdiv(n, 64)          -      8*n            -
- halve                         ~n          -      8*n        ~0.12
"
    );
}

pub(crate) fn only_the_outermost_calls_have_rows() {
    let weight = numbers(&Device::cpu(), 8);
    let n = Dim::new("n", 0..=8);
    let body = |x: &Tensor| {
        let (total, silu) = mlp_op(x, std::slice::from_ref(&weight), None, true)?;
        silu_op(&sum_difference(&total, &silu)?.1)
    };
    let graph = export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap().named("mlp");
    assert_eq!(
        graph.flops_at(&[("n", 8)]).unwrap().to_string(),
        "\
Module                   FLOP    % Total    Bytes    FLOP/byte
--------------------  -------  ---------  -------  -----------
mlp                   896.000    100.00%  640.000         1.40
- test::mlp           640.000     71.43%  448.000         1.43
- test::silu          128.000     14.29%   64.000         2.00
- sum_and_difference  128.000     14.29%  128.000         1.00
"
    );
}

pub(crate) fn sizes_are_those_of_the_graph() {
    let graph = model();
    let error = |dims: &[(&str, i64)]| graph.flops_at(dims).unwrap_err().to_string();
    assert_eq!(error(&[("batch", 1)]), "`batch` names `batch`, which is not declared");
    assert_eq!(error(&[("rows", 1)]).split(" (declared").next(), Some("dim `columns` has no value"));
    assert_eq!(error(&[("rows", 1), ("columns", 5000)]).split(" (declared").next(), Some("dim `columns` is 5000, allowed 0..=4096"));
}

pub(crate) fn a_graph_without_launches_has_one_row() {
    let n = Dim::new("n", 0..=8);
    let graph = export(|[x]| Ok(x.clone()), [input("x", [&n], Dtype::F32)]).unwrap();
    assert_eq!(
        graph.flops().unwrap().to_string(),
        "\
Module      FLOP    % Total    Bytes    FLOP/byte
--------  ------  ---------  -------  -----------
graph      0.000         0%    0.000            -
"
    );
}

pub(crate) fn arguments_decide_loops_and_branches() {
    let [a, b, c] = ["a", "b", "c"].map(|name| Dim::new(name, 1..=9));
    let count = |first: i32, is_long: bool| {
        let graph = export(
            |[x]| {
                let mut y = x.new_zeros(Dtype::F32, [1])?;
                parameters(x, &mut y, first, is_long).grid((2, 1, 3)).launch()?;
                Ok(y)
            },
            [input("x", [&a, &b, &c], Dtype::F32)],
        );
        let table = graph.unwrap().flops().unwrap();
        assert!(table.total().is_exact);
        table.total().flops.clone()
    };
    assert_eq!(count(-4, true), (&b + &c + 8) * 6);
    assert_eq!(count(2, false), (&b + &c + 1) * 6);
    assert_eq!(count(5, false), (&b + &c) * 6, "a loop without iterations");
}

pub(crate) fn quotients_of_negative_numbers_are_not_those_of_dims() {
    let count = |n: &Dim, number: Dim| {
        let graph = export(
            |[x]| {
                let mut y = x.new_zeros(Dtype::F32, [1])?;
                quotients(&mut y, &number).grid(1).launch()?;
                Ok(y)
            },
            [input("x", [n], Dtype::F32)],
        );
        let row = graph.unwrap().flops().unwrap().total().clone();
        (row.flops, row.is_exact)
    };
    let n = Dim::new("n", 0..=9);
    assert_eq!(count(&n, n.clone()), (9 - &n / 2, true));
    assert_eq!(count(&n, &n - 4), (Dim::from(0), false), "-3 / 2 is -1 in a kernel, and -2 as a dim");
}
