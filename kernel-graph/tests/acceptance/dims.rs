//! Named dims and the errors of recordings: tasks 2, 5, 6 and 7.

use galatea::graph::{Level, compile, input};
use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype};

use crate::model::silu;
use crate::{assert_same, golden, numbers, round_trip::export};

fn batch() -> Dim {
    Dim::new("batch", 1..=1024)
}

pub(crate) fn a_plain_function_is_exported_with_its_launch() {
    let graph = export(|[x]| silu(x), [input("x", [&batch(), &64.into()], Dtype::F32)]).unwrap().named("silu");
    golden("plain-function.txt", &format!("{graph}\n{}", graph.tabular(Level::Kernels)));
    assert!(graph.to_string().contains("[cdiv(64*batch, 1024), 1, 1]"), "{graph}");
}

pub(crate) fn all_batches_of_the_range_run(device: Device) {
    let compiled = compile(|[x]| silu(x), [input("x", [&batch(), &4.into()], Dtype::F32)], &device).unwrap();
    for rows in [1usize, 8, 16, 1024] {
        let x = numbers(&device, 4 * rows).reshape([rows, 4]).unwrap();
        assert_same(&compiled.run([&x]).unwrap()[0], &silu(&x).unwrap());
    }
}

pub(crate) fn errors_of_batches_name_dim_and_line() {
    let cpu = Device::cpu();
    let compiled = compile(|[x]| silu(x), [input("x", [&batch(), &4.into()], Dtype::F32)], &cpu).unwrap();
    let error = |rows: usize| compiled.run([&Tensor::zeros(&cpu, Dtype::F32, [rows, 4]).unwrap()]).unwrap_err();
    golden("batches.txt", &format!("{}\n{}\n", error(0), error(1025)));
}

fn forward(x: &Tensor) -> Result<Tensor> {
    if x.dim(0).is_gt(4)? { silu(x) } else { Ok(x.clone()) }
}

pub(crate) fn an_undecided_branch_names_its_line() {
    let inputs = |batch: Dim| [input("x", [batch, 64.into()], Dtype::F32)];
    golden("undecided.txt", &format!("{}\n", export(|[x]| forward(x), inputs(batch())).unwrap_err()));
    // The help helps.
    for (narrow, launches) in [(1..=4, 0), (5..=1024, 1)] {
        let graph = export(|[x]| forward(x), inputs(Dim::new("batch", narrow))).unwrap();
        assert_eq!(graph.to_string().matches("launch").count(), launches);
    }
}

pub(crate) fn elements_cannot_be_read_while_recording() {
    let read = |x: &Tensor| {
        let y = silu(x)?;
        println!("{:?}", y.to_vec::<f32>()?);
        Ok(y)
    };
    let error = export(|[x]| read(x), [input("x", [&batch(), &64.into()], Dtype::F32)]).unwrap_err();
    golden("read.txt", &format!("{error}\n"));
}
