//! Models with named parameters.

use galatea::ops::{Module, Tensor};
use galatea::prelude::*;
use galatea::{Dim, Dtype, Target};
use kernel_graph::{Graph, Level, Package, input, load_parameters, save_parameters, weights};

use crate::kernels::{scale, silu, sum_difference, times};
use crate::numbers;
use crate::round_trip::export;

#[derive(Module)]
struct Layer {
    weight: Tensor,
    #[module(skip)]
    factor: f32,
}

/// A pair, whose fields have numbers.
#[derive(Module)]
struct Pair<M>(M, Tensor);

#[derive(Module)]
struct Model {
    layers: Vec<Layer>,
    last: Option<Box<Layer>>,
    none: Option<Layer>,
    r#type: Pair<Layer>,
}

fn layer(factor: f32) -> Layer {
    Layer { weight: numbers(&Device::cpu(), 16), factor }
}

fn model() -> Model {
    let pair = Pair(layer(4.0), numbers(&Device::cpu(), 1));
    Model { layers: vec![layer(1.0), layer(2.0)], last: Some(Box::new(layer(3.0))), none: None, r#type: pair }
}

impl Model {
    fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let mut y = silu(x)?;
        for layer in self.layers.iter().chain(self.last.as_deref()) {
            let mut product = y.zeros_like()?;
            times::<f32>(&layer.weight, &mut product, layer.factor, y.dim(0)).grid(1).launch()?;
            y = sum_difference(&y, &product)?.0;
        }
        scale(&mut y, 2.0, 0)?;
        Ok(y)
    }
}

const NAMES: [&str; 5] = ["layers.0.weight", "layers.1.weight", "last.weight", "type.0.weight", "type.1"];

fn graph(model: &Model) -> Graph {
    let n = Dim::new("n", 1..=16);
    export(|[x]| model.forward(x), [input("x", [&n], Dtype::F32)]).unwrap().with_params(model)
}

pub(crate) fn parameters_are_named_by_their_paths() {
    let mut model = model();
    let names: Vec<String> = model.parameters().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, NAMES);
    assert!(model.parameters()[1].1.is_same(&model.layers[1].weight), "the handles are those of the model");
    let mut visited = Vec::new();
    let stopped = model.visit_mut("", &mut |name, tensor| {
        visited.push(name.to_owned());
        if name == "last.weight" { tensor.reshape([3]).map(drop) } else { Ok(()) }
    });
    assert!(stopped.is_err() && visited == NAMES[..3], "the first error ends the visit: {visited:?}");
}

pub(crate) fn a_graph_and_its_package_name_parameters() {
    let model = model();
    let graph = graph(&model);
    let text = graph.text(Level::Kernels);
    assert!(text.contains("  @layers.0.weight = parameter : f32[16]\n") && text.contains("(x = @last.weight, y = "), "{text}");
    assert!(!text.contains("type.0"), "a parameter that the function does not use is no constant: {text}");
    let table = graph.tabular(Level::Ops);
    let row = table.lines().find(|line| line.contains("p_layers_1_weight")).unwrap();
    assert_eq!(
        row.split_whitespace().collect::<Vec<_>>(),
        ["placeholder", "p_layers_1_weight", "p_layers_1_weight", "()", "{}"],
        "{table}"
    );
    let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
    let weights = String::from_utf8_lossy(package.entry("weights.safetensors").unwrap()).into_owned();
    for name in &NAMES[..3] {
        assert!(weights.contains(&format!("\"{name}\"")), "{name}");
    }
    let plan = package.plan(&Device::cpu()).unwrap();
    assert_eq!(plan.constants.iter().map(|constant| constant.name.as_deref().unwrap()).collect::<Vec<_>>(), NAMES[..3]);
    let x = numbers(&Device::cpu(), 7);
    let outputs = package.load(&Device::cpu()).unwrap().run([&x]).unwrap();
    assert_eq!(outputs[0].to_bytes().unwrap(), model.forward(&x).unwrap().to_bytes().unwrap());
}

pub(crate) fn a_model_moves_between_devices() {
    let sim = Device::sim(Target::SM_80).unwrap();
    let model = model().to(&sim).unwrap();
    assert!(model.parameters().iter().all(|(_, tensor)| tensor.device() == Some(sim)));
    let x = numbers(&sim, 5);
    let own = graph(&model);
    assert_eq!(own.constants().len(), 3);
    assert_eq!(model.forward(&x).unwrap().device(), Some(sim));
}

/// A model with parameters of several dtypes.
#[derive(Module)]
struct Mixed {
    model: Model,
    table: Vec<Option<Tensor>>,
    wide: Tensor,
    trained: Tensor,
}

fn mixed(device: &Device) -> Mixed {
    let ids = Tensor::from(device.tensor(&[3i64, -1]).unwrap());
    // Halfway between neighbours of `bf16`, whose even one is below and above, and 2^-40 above a halfway point that a rounding to `f32` would lose.
    let wide = [1.0 + 2f64.powi(-8), 1.0 + 3.0 * 2f64.powi(-8), 1.0 + 2f64.powi(-8) + 2f64.powi(-40), -0.0, 1e300];
    let trained = Tensor::from(device.tensor(&[0.1f32]).unwrap()).requires_grad().unwrap();
    let flags = Tensor::from(device.tensor(&[true]).unwrap());
    let table = vec![Some(ids), None, Some(flags)];
    Mixed { model: model().to(device).unwrap(), table, wide: device.tensor(&wide).unwrap().into(), trained }
}

pub(crate) fn a_model_changes_its_dtype(device: Device) {
    let before = mixed(&device).parameters();
    let after = mixed(&device).to(Dtype::Bf16).unwrap();
    let names = |parameters: &[(String, Tensor)]| parameters.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&after.parameters()), names(&before));
    for ((name, old), (_, new)) in before.iter().zip(after.parameters()) {
        let expected = if old.dtype().is_float() { Dtype::Bf16 } else { old.dtype() };
        assert_eq!((new.dtype(), new.dims(), new.device()), (expected, old.dims(), Some(device)), "{name}");
        assert_eq!(new.needs_grad(), name == "trained", "{name}");
        match old.dtype() {
            Dtype::F32 => {
                let rounded: Vec<bf16> = old.to_vec::<f32>().unwrap().into_iter().map(bf16::from_f32).collect();
                assert_eq!(new.to_vec::<bf16>().unwrap(), rounded, "{name}");
            }
            Dtype::F64 => {
                let bits: Vec<u16> = new.to_vec::<bf16>().unwrap().into_iter().map(bf16::to_bits).collect();
                assert_eq!(bits, [0x3f80, 0x3f82, 0x3f81, 0x8000, 0x7f80], "{name}");
            }
            _ => assert_eq!(new.to_bytes().unwrap(), old.to_bytes().unwrap(), "{name}"),
        }
    }
    // The same dtype copies nothing.
    let handles = after.parameters();
    let again = after.to((Dtype::Bf16, &device)).unwrap().parameters();
    assert!(handles.iter().zip(&again).all(|((_, old), (_, new))| old.is_same(new)));
    // Back, and to another device at once.
    let cpu = mixed(&device).to((Dtype::F64, &Device::cpu())).unwrap();
    assert!(cpu.parameters().iter().all(|(_, tensor)| tensor.device() == Some(Device::cpu())));
    assert_eq!(cpu.trained.to_vec::<f64>().unwrap(), [f64::from(0.1f32)]);
    assert_eq!(cpu.model.layers[1].weight.dtype(), Dtype::F64);
    // Dtypes without arithmetic are stored.
    let stored = Tensor::from(device.tensor(&[1.0f32, 17.0, 1e9]).unwrap()).to(Dtype::F8E4M3).unwrap();
    assert_eq!(stored.to_bytes().unwrap(), [0x38, 0x58, 0x7e]);
    for dtype in [Dtype::I32, Dtype::Bool] {
        let error = mixed(&device).to(dtype).map(|model| model.wide).unwrap_err().to_string();
        let help = "help: name a dtype of floats; parameters of other dtypes keep theirs";
        assert_eq!(error, format!("the parameters of a model cannot become `{dtype}`\n{help}"));
    }
}

pub(crate) fn parameters_are_saved_and_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let (saved, sim) = (model(), Device::sim(Target::SM_80).unwrap());
    save_parameters(&saved, &path).unwrap();
    let names: Vec<String> = weights::load(&path, &Device::cpu()).unwrap().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, NAMES, "the file has the order of the model");
    let mut loaded = model().to(&sim).unwrap();
    loaded.layers[1].weight = loaded.layers[1].weight.zeros_like().unwrap();
    load_parameters(&mut loaded, &path).unwrap();
    for ((name, old), (_, new)) in saved.parameters().iter().zip(loaded.parameters()) {
        assert_eq!((new.device(), new.to_bytes().unwrap()), (Some(sim), old.to_bytes().unwrap()), "{name}");
    }
    // Saving replaces the file, and leaves no other one.
    save_parameters(&loaded, &path).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

pub(crate) fn parameters_that_do_not_fit_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let (mut model, cpu) = (model(), Device::cpu());
    let whole = model.parameters();
    let mut error = |tensors: &[(String, Tensor)]| {
        weights::save(&path, tensors).unwrap();
        let before: Vec<Vec<u8>> = model.parameters().iter().map(|(_, tensor)| tensor.to_bytes().unwrap()).collect();
        let error = load_parameters(&mut model, &path).unwrap_err().to_string();
        let after: Vec<Vec<u8>> = model.parameters().iter().map(|(_, tensor)| tensor.to_bytes().unwrap()).collect();
        assert_eq!(before, after, "the model keeps its parameters");
        error.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
    };
    let help = "\nhelp: write the file from a model with the same fields";
    assert_eq!(error(&whole[..4]), format!("it has no tensor `type.1`, which is a parameter of the model{help}"));
    let with = |name: &str, tensor: Tensor| {
        let others = whole.iter().filter(|(known, _)| known != name).cloned();
        others.chain([(name.to_owned(), tensor)]).collect::<Vec<_>>()
    };
    assert_eq!(error(&with("other", numbers(&cpu, 3))), format!("tensor `other` is no parameter of the model{help}"));
    let help = "\nhelp: make the model with the sizes of the file";
    let expected = format!("tensor `layers.1.weight` is f32[15], and the parameter of the model is f32[16]{help}");
    assert_eq!(error(&with("layers.1.weight", numbers(&cpu, 15))), expected);
    let wrong = cpu.zeros::<f64>(16).unwrap().into();
    let expected = format!("tensor `last.weight` is f64[16], and the parameter of the model is f32[16]{help}");
    assert_eq!(error(&with("last.weight", wrong)), expected);
    let missing = load_parameters(&mut model, folder.path().join("none.safetensors")).unwrap_err().to_string();
    assert!(missing.contains("none.safetensors: "), "{missing}");
}
