//! Packages as those who ship them use them: tasks 17 and 18. `cli/tests/packages` has the commands.

use std::io::Cursor;

use galatea::graph::{Graph, Package, input};
use galatea::ops::{Module, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype, Target};
use kernel_library::nn::{Linear, Seed};
use zip::{CompressionMethod, ZipArchive};

use crate::model::silu;
use crate::round_trip::export;
use crate::{assert_same, golden, numbers};

#[derive(Module)]
struct Model {
    linear: Linear,
}

impl Model {
    fn new(seed: u64, columns: usize) -> Model {
        Model { linear: Linear::init(&Device::cpu(), Dtype::F32, 8, columns, &mut Seed(seed)).unwrap() }
    }

    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        silu(&self.linear.forward(x)?)
    }

    fn graph(&self) -> Graph {
        let inputs = [input("x", [&Dim::new("batch", 1..=64), &8.into()], Dtype::F32)];
        export(|[x]| self.forward(x), inputs).unwrap().named("model").with_params(self)
    }
}

fn x(device: &Device, rows: usize) -> Tensor {
    numbers(device, 8 * rows).reshape([rows, 8]).unwrap()
}

pub(crate) fn any_zip_program_lists_a_package() {
    let bytes = Model::new(1, 4).graph().package().to_bytes().unwrap();
    let package = Package::from_bytes(bytes.clone()).unwrap();
    let mut archive = ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut entries = Vec::new();
    for index in 0..archive.len() {
        let file = archive.by_index(index).unwrap();
        assert_eq!(file.compression(), CompressionMethod::Stored);
        let name = file.name().unwrap().into_owned();
        assert_eq!(file.data_start().unwrap() % 4096, 0, "{name}");
        entries.push((name, file.size() as usize));
    }
    let own: Vec<(String, usize)> = package.entries().into_iter().map(|(name, size)| (name.to_owned(), size)).collect();
    entries.sort();
    assert_eq!(entries, own);
    assert!(["manifest.json", "plan.json", "weights.safetensors"].iter().all(|name| own.iter().any(|(own, _)| own == name)));
}

pub(crate) fn bytes_of_the_program_are_a_package() {
    let model = Model::new(1, 4);
    let bytes: Vec<u8> = model.graph().package().to_bytes().unwrap();
    let session = Package::from_bytes(bytes).unwrap().load(&Device::cpu()).unwrap();
    assert_same(&session.run([&x(&Device::cpu(), 3)]).unwrap()[0], &model.forward(&x(&Device::cpu(), 3)).unwrap());
}

pub(crate) fn a_flipped_byte_is_named() {
    let bytes = Model::new(1, 4).graph().package().to_bytes().unwrap();
    let weights = Package::from_bytes(bytes.clone()).unwrap().offset("weights.safetensors").unwrap();
    let mut flipped = bytes;
    flipped[weights + 200] ^= 1;
    golden("flipped.txt", &format!("{}\n", Package::from_bytes(flipped).unwrap_err()));
}

/// A package for Hopper alone runs on an older GPU: its kernels are compiled again.
pub(crate) fn another_gpu_compiles_the_kernels_again() {
    let model = Model::new(1, 4);
    let bytes = model.graph().package().targets([Target::SM_90A]).to_bytes().unwrap();
    let sim = Device::sim(Target::SM_80).unwrap();
    let session = Package::from_bytes(bytes).unwrap().load(&sim).unwrap();
    assert_same(&session.run([&x(&sim, 3)]).unwrap()[0], &model.to(&sim).unwrap().forward(&x(&sim, 3)).unwrap());
}

pub(crate) fn eight_threads_have_a_session_each(device: Device) {
    let model = Model::new(1, 4);
    let package = Package::from_bytes(model.graph().package().to_bytes().unwrap()).unwrap();
    let model = model.to(&device).unwrap();
    std::thread::scope(|scope| {
        for rows in 1..=8 {
            let (package, device, model) = (&package, &device, &model);
            scope.spawn(move || {
                let session = package.load(device).unwrap();
                for rows in [rows, 9 - rows] {
                    assert_same(&session.run([&x(device, rows)]).unwrap()[0], &model.forward(&x(device, rows)).unwrap());
                }
            });
        }
    });
}

pub(crate) fn new_parameters_are_those_of_the_next_run(device: Device) {
    let (first, second) = (Model::new(1, 4), Model::new(2, 4));
    let mut session = Package::from_bytes(first.graph().package().to_bytes().unwrap()).unwrap().load(&device).unwrap();
    let x = x(&device, 3);
    let before = session.run([&x]).unwrap().remove(0);
    assert_same(&before, &first.to(&device).unwrap().forward(&x).unwrap());
    session.update_params(&second).unwrap();
    let mut second = second.to(&device).unwrap();
    let expected = second.forward(&x).unwrap();
    assert_same(&session.run([&x]).unwrap()[0], &expected);
    // Later writes of the model are no writes of the session, whose results belong to the caller.
    second.linear.bias = second.linear.bias.map(|bias| bias.zeros_like().unwrap());
    assert_same(&session.run([&x]).unwrap()[0], &expected);
    assert_same(&before, &Model::new(1, 4).to(&device).unwrap().forward(&x).unwrap());
}

pub(crate) fn parameters_that_do_not_fit_are_named() {
    #[derive(Module)]
    struct Other {
        layer: Linear,
    }
    let model = Model::new(1, 4);
    let mut session = model.graph().compile(&Device::cpu()).unwrap();
    let missing = session.update_params(&Other { layer: Model::new(2, 4).linear }).unwrap_err();
    let shape = session.update_params(&Model::new(2, 5)).unwrap_err();
    golden("update-params.txt", &format!("{missing}\n{shape}\n"));
    let x = x(&Device::cpu(), 3);
    assert_same(&session.run([&x]).unwrap()[0], &model.forward(&x).unwrap());
}
