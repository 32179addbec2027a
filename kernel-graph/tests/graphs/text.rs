//! The text of graphs.

use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_graph::{export, input};

use crate::kernels::{row_sums, scale, silu, sum_difference};
use crate::numbers;

pub(crate) fn the_text_shows_grids_arguments_and_types_as_expressions() {
    let [rows, columns] = [Dim::new("rows", 1..=9), Dim::new("columns", 0..=100)];
    let graph = export(
        |[x]| {
            let mut y = silu(x)?;
            scale(&mut y, 0.5, -3)?;
            let sums = row_sums(&y.slice(Dim::from(1)..y.dim(0))?)?;
            let (sum, _) = sum_difference(&sums, &sums)?;
            Ok([sum, y.reshape([y.numel()])?])
        },
        [input("x", [&rows, &columns], Dtype::F32)],
    );
    let text = graph.unwrap().named("all").to_string();
    assert_eq!(
        text,
        "graph all(x: f32[rows, columns]) where columns in 0..=100, rows in 1..=9
  %0 = alloc : f32[rows, columns]
  %1 = launch silu_elements<T = f32, BLOCK = 64> [cdiv(columns*rows, 64), 1, 1] (x = %x, y = %0, n = columns*rows) : f32[rows, columns]
  %2 = launch scale_elements [cdiv(columns*rows, 64), 1, 1] (y = %1, a = 0.5, b = -3, n = columns*rows) : f32[rows, columns]
  %3 = view %2 at columns : f32[rows - 1, columns]
  %4 = alloc : f32[rows - 1]
  %5 = launch sum_rows<BLOCK = 32> [rows - 1, 1, 1] (x = %3, y = %4) : f32[rows - 1]
  %6 = alloc : f32[rows - 1]
  %7 = alloc : f32[rows - 1]
  %8, %9 = launch sum_and_difference [(rows + 62) / 64, 1, 1] (a = %5, b = %5, sum = %6, difference = %7, n = rows - 1) : f32[rows - 1], f32[rows - 1]
  %10 = view %2 at 0 : f32[columns*rows]
  return %8, %10
"
    );
}

pub(crate) fn constants_come_first_and_dead_code_is_left_out() {
    let n = Dim::new("n", 0..=8);
    let [weight, unused] = [8, 5].map(|len| numbers(&Device::cpu(), len));
    let graph = export(
        |[x]| {
            let _ = sum_difference(x, &unused)?;
            let y = silu(x)?;
            let _ = silu(&y)?;
            Ok(sum_difference(&y, &weight)?.1)
        },
        [input("x", [&n], Dtype::F32)],
    );
    assert_eq!(
        graph.unwrap().to_string(),
        "graph graph(x: f32[n]) where n in 0..=8
  %c0 = constant : f32[8]
  %0 = alloc : f32[n]
  %1 = launch silu_elements<T = f32, BLOCK = 64> [cdiv(n, 64), 1, 1] (x = %x, y = %0, n = n) : f32[n]
  %2 = alloc : f32[n]
  %3 = alloc : f32[n]
  %4, %5 = launch sum_and_difference [cdiv(n, 64), 1, 1] (a = %1, b = %c0, sum = %2, difference = %3, n = n) : f32[n], f32[n]
  return %5
"
    );
}
