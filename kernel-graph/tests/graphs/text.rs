//! The text of graphs.

use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_graph::{Graph, Level, input};

use crate::kernels::{mlp_op, names_op, row_sums, scale, scale_op, silu, silu_op, sum_difference};
use crate::numbers;
use crate::round_trip::export;

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
  @c0 = constant : f32[8]
  %0 = alloc : f32[n]
  %1 = launch silu_elements<T = f32, BLOCK = 64> [cdiv(n, 64), 1, 1] (x = %x, y = %0, n = n) : f32[n]
  %2 = alloc : f32[n]
  %3 = alloc : f32[n]
  %4, %5 = launch sum_and_difference [cdiv(n, 64), 1, 1] (a = %1, b = @c0, sum = %2, difference = %3, n = n) : f32[n], f32[n]
  return %5
"
    );
}

/// A graph with calls in calls.
fn mlp() -> Graph {
    let n = Dim::new("n", 0..=8);
    let weight = numbers(&Device::cpu(), 8);
    let body = |x: &galatea::ops::Tensor| {
        let (total, silu) = mlp_op(x, std::slice::from_ref(&weight), None, true)?;
        let (_, last) = sum_difference(&total, &silu)?;
        silu_op(&last)
    };
    export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap().named("mlp")
}

pub(crate) fn calls_of_ops_are_one_line_or_their_nodes() {
    let graph = mlp();
    assert_eq!(
        graph.text(Level::Ops),
        "graph mlp(x: f32[n]) where n in 0..=8
  @c0 = constant : f32[8]
  %0, %1 = test::mlp(x = %x, weights = [@c0], bias = None, keep = true) : f32[n], f32[n]
  %2 = alloc : f32[n]
  %3 = alloc : f32[n]
  %4, %5 = launch sum_and_difference [cdiv(n, 64), 1, 1] (a = %0, b = %1, sum = %2, difference = %3, n = n) : f32[n], f32[n]
  %6 = test::silu(x = %5) : f32[n]
  return %6
"
    );
    assert_eq!(
        graph.to_string(),
        "graph mlp(x: f32[n]) where n in 0..=8
  @c0 = constant : f32[8]
  %0, %1 = test::mlp(x = %x, weights = [@c0], bias = None, keep = true) : f32[n], f32[n] {
    %2 = test::silu(x = %x) : f32[n] {
      %3 = alloc : f32[n]
      %2 = launch silu_elements<T = f32, BLOCK = 64> [cdiv(n, 64), 1, 1] (x = %x, y = %3, n = n) : f32[n]
    }
    %4 = alloc : f32[n]
    %5 = alloc : f32[n]
    %6, %7 = launch sum_and_difference [cdiv(n, 64), 1, 1] (a = %2, b = @c0, sum = %4, difference = %5, n = n) : f32[n], f32[n]
    %8 = test::scale_(y = %2, a = 0.5, b = -3) : f32[n] {
      %8 = launch scale_elements [cdiv(n, 64), 1, 1] (y = %2, a = 0.5, b = -3, n = n) : f32[n]
    }
    %9 = alloc : f32[n]
    %10 = alloc : f32[n]
    %0, %11 = launch sum_and_difference [cdiv(n, 64), 1, 1] (a = %6, b = %8, sum = %9, difference = %10, n = n) : f32[n], f32[n]
    %1 = test::silu(x = %7) : f32[n] {
      %12 = alloc : f32[n]
      %1 = launch silu_elements<T = f32, BLOCK = 64> [cdiv(n, 64), 1, 1] (x = %7, y = %12, n = n) : f32[n]
    }
  }
  %13 = alloc : f32[n]
  %14 = alloc : f32[n]
  %15, %16 = launch sum_and_difference [cdiv(n, 64), 1, 1] (a = %0, b = %1, sum = %13, difference = %14, n = n) : f32[n], f32[n]
  %17 = test::silu(x = %16) : f32[n] {
    %18 = alloc : f32[n]
    %17 = launch silu_elements<T = f32, BLOCK = 64> [cdiv(n, 64), 1, 1] (x = %16, y = %18, n = n) : f32[n]
  }
  return %17
"
    );
}

pub(crate) fn tables_have_the_columns_of_torch() {
    let graph = mlp();
    assert_eq!(
        graph.tabular(Level::Ops),
        "opcode         name                target              args                         kwargs
-------------  ------------------  ------------------  ---------------------------  ------------------------------------------------------------------------------------------------------------------
placeholder    x                   x                   ()                           {}
get_attr       constant            constant            ()                           {}
call_function  mlp                 test.mlp.default    (x, [constant], None, true)  {}
call_function  empty               empty               ([n],)                       {'dtype': f32}
call_function  empty_1             empty               ([n],)                       {'dtype': f32}
call_function  sum_and_difference  sum_and_difference  ()                           {'grid': [(cdiv(n, 64), 1, 1)], 'kwargs': {'a': mlp[0], 'b': mlp[1], 'sum': empty, 'difference': empty_1, 'n': n}}
call_function  silu                test.silu.default   (sum_and_difference[1],)     {}
output         output              output              ((silu,),)                   {}
"
    );
    let n = Dim::new("n", 0..=8);
    let graph = export(|[x]| silu_op(&silu_op(x)?), [input("x", [&n], Dtype::F32)]).unwrap();
    assert_eq!(
        graph.tabular(Level::Kernels),
        "opcode         name             target         args                   kwargs
-------------  ---------------  -------------  ---------------------  -------------------------------------------------------------------------------------
placeholder    x                x              ()                     {}
call_function  empty            empty          ([n],)                 {'dtype': f32}
call_function  silu_elements    silu_elements  ()                     {'grid': [(cdiv(n, 64), 1, 1)], 'kwargs': {'x': x, 'y': empty, 'n': n}}
call_function  empty_1          empty          ([n],)                 {'dtype': f32}
call_function  silu_elements_1  silu_elements  ()                     {'grid': [(cdiv(n, 64), 1, 1)], 'kwargs': {'x': silu_elements, 'y': empty_1, 'n': n}}
output         output           output         ((silu_elements_1,),)  {}
"
    );
}

pub(crate) fn definitions_have_schemas() {
    use crate::kernels;
    assert_eq!(kernels::silu_op::DEF.schema, "test::silu(Tensor x) -> Tensor");
    assert_eq!(kernels::scale_op::DEF.schema, "test::scale_(Tensor(a!) y, float a, SymInt b) -> ()");
    assert_eq!(kernels::mlp_op::DEF.schema, "test::mlp(Tensor x, Tensor[] weights, Tensor? bias, bool keep) -> (Tensor, Tensor)");
    assert_eq!(kernels::mlp_op::DEF.file, "kernel-graph/tests/graphs/kernels.rs");
    let n = Dim::new("n", 0..=8);
    let graph = export(
        |[x]| {
            let mut y = x.clone();
            scale_op(&mut y, 2.0, 1)?;
            Ok(y)
        },
        [input("x", [&n], Dtype::F32)],
    );
    let text = graph.unwrap().text(Level::Ops);
    assert_eq!(text.lines().nth(1), Some("  %0 = test::scale_(y = %x, a = 2.0, b = 1) : f32[n]"));
}

pub(crate) fn parameters_of_ops_have_any_name() {
    let n = Dim::new("n", 0..=8);
    let graph = export(
        |[x]| {
            let mut y = x.clone();
            Ok([names_op(x, 2.0, &mut y)?, y])
        },
        [input("x", [&n], Dtype::F32)],
    );
    let text = graph.unwrap().text(Level::Ops);
    assert_eq!(text.lines().nth(1), Some("  %0, %1 = test::names(body = %x, call = 2.0, result = %x) : f32[n], f32[n]"));
    let mut y = numbers(&Device::cpu(), 3);
    names_op(&y.clone(), 2.0, &mut y).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), [-6.0, -4.5, -3.0], "an op runs without a recording, too");
}

pub(crate) fn calls_that_fail_end() {
    /// An op that fails after a launch.
    #[galatea::op("test::fails")]
    fn fails(x: &galatea::ops::Tensor) -> Result<galatea::ops::Tensor> {
        silu(x)?.reshape([x.dim(0) + 1])
    }
    let n = Dim::new("n", 0..=8);
    let graph = export(|[x]| fails(x).or_else(|_| silu_op(x)), [input("x", [&n], Dtype::F32)]);
    assert_eq!(
        graph.unwrap().text(Level::Ops),
        "graph graph(x: f32[n]) where n in 0..=8
  %0 = test::silu(x = %x) : f32[n]
  return %0
"
    );
}

pub(crate) fn arguments_of_other_recordings_are_named() {
    let n = Dim::new("n", 0..=8);
    let inputs = || [input("x", [&n], Dtype::F32)];
    let mut leaked = None;
    let record = |body: &mut dyn FnMut(&galatea::ops::Tensor) -> Result<galatea::ops::Tensor>| export(|[x]| body(x), inputs());
    record(&mut |x| {
        leaked = Some((0..50).try_fold(x.clone(), |y, _| silu(&y))?);
        Ok(x.clone())
    })
    .unwrap();
    let graph = record(&mut |x| mlp_op(x, std::slice::from_ref(&numbers(&Device::cpu(), 8)), leaked.as_ref(), true).map(|both| both.0));
    let text = graph.unwrap().text(Level::Ops);
    assert!(text.contains("bias = a tensor of another recording, keep = true"), "{text}");
}

pub(crate) fn scalars_of_generic_types_are_written_as_numbers() {
    let n = Dim::new("n", 0..=8);
    let graph = export(
        |[x]| {
            let mut y = x.empty_like()?;
            crate::kernels::times::<bf16>(x, &mut y, bf16::from_f32(0.5), x.numel()).grid(1).launch()?;
            Ok(y)
        },
        [input("x", [&n], Dtype::Bf16)],
    );
    let text = graph.unwrap().to_string();
    assert!(text.contains("(x = %x, y = %0, a = 0.5, n = n)"), "{text}");
}
