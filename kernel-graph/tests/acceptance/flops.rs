//! FLOP counts: task 9.

use galatea::graph::{flops, input};
use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_library::nn::{Linear, Seed};

use crate::golden;
use crate::ops::mysin;
use crate::round_trip::export;

/// A linear layer and an op with a formula of its own, as in PyTorch's recipe.
struct Model(Linear);

impl Model {
    fn new() -> Model {
        Model(Linear::init(&Device::cpu(), Dtype::F32, 256, 64, &mut Seed(42)).unwrap())
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        mysin(&self.0.forward(x)?)
    }
}

pub(crate) fn a_model_without_a_recording_has_the_table_of_torch() {
    let (model, x) = (Model::new(), Tensor::zeros(&Device::cpu(), Dtype::F32, [8, 256]).unwrap());
    golden("flops.txt", &flops(|| model.forward(&x)).unwrap().to_string());
    let error = flops(|| model.0.forward(&model.0.forward(&x)?)).unwrap_err().to_string();
    assert!(error.starts_with("`galatea::linear`"), "the error of the function: {error}");
}

pub(crate) fn a_recorded_model_has_the_same_table() {
    let model = Model::new();
    let graph = export(|[x]| model.forward(x), [input("x", [&Dim::new("batch", 1..=1024), &256.into()], Dtype::F32)]).unwrap();
    let (recorded, x) = (graph.flops_at(&[("batch", 8)]).unwrap(), Tensor::zeros(&Device::cpu(), Dtype::F32, [8, 256]).unwrap());
    assert_eq!(recorded.rows()[1..], flops(|| model.forward(&x)).unwrap().rows()[1..]);
}
