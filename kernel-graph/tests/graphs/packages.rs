//! Packages: what a graph computes, without the program that recorded it.

use std::io::Write;

use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype};
use kernel_graph::{Graph, Limits, Package, PackageError, Session, input};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::kernels::{row_sums, scale, silu, silu_elements, times};
use crate::numbers;
use crate::round_trip::export;

/// Launches with weights, scalars of several types and dims, in place, and of views; parts and zeros.
fn program(x: &Tensor, weight: &Tensor) -> Result<[Tensor; 4]> {
    let mut y = silu(x)?;
    scale(&mut y, 1.5, -3)?;
    let before = y.clone();
    scale(&mut y, 0.25, 7)?;
    let mut part = row_sums(&y)?.slice(Dim::from(0)..Dim::from(1))?;
    scale(&mut part, 2.0, 0)?;
    let mut zeros = x.new_zeros(Dtype::F32, [x.numel() + 1])?;
    scale(&mut zeros, 1.0, 2)?;
    let mut scaled = x.new_zeros(Dtype::F32, [16])?;
    times::<f32>(weight, &mut scaled, -1.5, x.dim(0).min(16)).grid(1).launch()?;
    Ok([before, part, zeros, scaled])
}

fn graph(weight: &Tensor) -> Graph {
    let rows = Dim::new("rows", 1..=50);
    export(|[x]| program(x, weight), [input("x", [&rows, &4.into()], Dtype::F32)]).unwrap().named("program")
}

fn bytes(tensors: &[Tensor]) -> Vec<Vec<u8>> {
    tensors.iter().map(|tensor| tensor.to_bytes().unwrap()).collect()
}

pub(crate) fn a_package_computes_what_its_graph_computes(device: Device) {
    let weight = numbers(&device, 16);
    let graph = graph(&weight);
    let file = graph.package().to_bytes().unwrap();
    // Of an untrusted package, the device compiles the kernels again.
    let untrusted = Package::untrusted(file.clone(), Limits::new()).unwrap().load(&device).unwrap();
    let package = Package::from_bytes(file).unwrap();
    let (session, loaded) = (Session::new(graph, &device).unwrap(), package.load(&device).unwrap());
    for rows in [1, 2, 15, 16, 17, 50] {
        let x = numbers(&device, 4 * rows).reshape([rows, 4]).unwrap();
        let expected = bytes(&program(&x, &weight).unwrap());
        assert_eq!(bytes(&session.run([&x]).unwrap()), expected, "{rows} rows");
        assert_eq!(bytes(&loaded.run([&x]).unwrap()), expected, "{rows} rows");
        assert_eq!(bytes(&untrusted.run([&x]).unwrap()), expected, "{rows} rows, untrusted");
    }
}

pub(crate) fn a_package_is_loaded_on_every_device(device: Device) {
    let bytes_of_package = graph(&numbers(&Device::cpu(), 16)).package().to_bytes().unwrap();
    let loaded = Package::from_bytes(bytes_of_package).unwrap().load(&device).unwrap();
    let x = numbers(&device, 8).reshape([2, 4]).unwrap();
    let outputs = loaded.run([&x]).unwrap();
    assert_eq!(outputs[0].device(), Some(device));
    assert_eq!(bytes(&outputs), bytes(&program(&x, &numbers(&device, 16)).unwrap()));
}

pub(crate) fn equal_programs_give_equal_bytes() {
    let weight = numbers(&Device::cpu(), 16);
    let package = |weight: &Tensor| graph(weight).package().to_bytes().unwrap();
    assert_eq!(package(&weight), package(&weight));
    assert_ne!(package(&weight), package(&numbers(&Device::cpu(), 17).slice(1..17).unwrap()), "the elements of weights are in it");
}

pub(crate) fn guards_of_a_package_name_the_line_of_the_declaration() {
    let cpu = Device::cpu();
    let loaded = Package::from_bytes(graph(&numbers(&cpu, 16)).package().to_bytes().unwrap()).unwrap().load(&cpu).unwrap();
    let run = |rows: usize| loaded.run([&numbers(&cpu, 4 * rows).reshape([rows, 4]).unwrap()]).unwrap_err().to_string();
    for rows in [0, 51] {
        let expected =
            format!("input `x`, axis 0: dim `rows` is {rows}, allowed 1..=50 (declared in kernel-graph/tests/graphs/packages.rs:");
        assert!(run(rows).starts_with(&expected), "{}", run(rows));
    }
}

pub(crate) fn a_file_replaces_another_in_one_step() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.gpk");
    let graph = graph(&numbers(&Device::cpu(), 16));
    for _ in 0..2 {
        graph.package().write(&path).unwrap();
        let package = Package::open(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), graph.package().to_bytes().unwrap());
        package.load(&Device::cpu()).unwrap();
    }
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["program.gpk"], "no other file is left");
    let missing = Package::open(folder.path().join("other.gpk")).unwrap_err();
    assert!(matches!(missing, PackageError::File { .. }) && missing.to_string().contains("other.gpk"), "{missing}");
    let nowhere = graph.package().write(folder.path().join("no/such/folder.gpk")).unwrap_err();
    assert!(nowhere.to_string().contains("folder.gpk"), "{nowhere}");
}

/// Changes of bytes and files that are cut off: an error, or a package whose program is the same.
pub(crate) fn damaged_files_are_errors() {
    let file = graph(&numbers(&Device::cpu(), 16)).package().to_bytes().unwrap();
    let same = Package::from_bytes(file.clone()).unwrap().entries().len();
    let (mut random, mut errors) = (0x2545_f491_4f6c_dd1d_u64, 0);
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize
    };
    for _ in 0..500 {
        let mut damaged = file.clone();
        let at = next() % damaged.len();
        damaged[at] ^= 1 << (next() % 8);
        match Package::from_bytes(damaged) {
            // The gaps between entries are not covered, and say nothing.
            Ok(package) => assert_eq!(package.entries().len(), same),
            Err(PackageError::Malformed { .. } | PackageError::Format { .. }) => errors += 1,
            Err(error) => panic!("{error}"),
        }
        assert!(Package::from_bytes(file[..next() % file.len()].to_vec()).is_err());
    }
    assert!(errors > 100, "{errors} of 500 changes were noticed");
}

/// The package with an entry that `change` changes, and new checksums.
pub(crate) fn changed(package: &Package, name: &str, change: &dyn Fn(String) -> String) -> Vec<u8> {
    let mut entries: Vec<(String, Vec<u8>)> = package
        .entries()
        .into_iter()
        .filter(|(entry, _)| *entry != "manifest.json")
        .map(|(entry, _)| (entry.to_owned(), package.entry(entry).unwrap().to_vec()))
        .collect();
    for (entry, bytes) in entries.iter_mut().filter(|(entry, _)| entry == name) {
        let text = String::from_utf8(bytes.clone()).unwrap();
        *bytes = change(text.clone()).into_bytes();
        assert_ne!(*bytes, text.into_bytes(), "{entry} has changed");
    }
    let mut manifest = package.manifest().clone();
    for (entry, bytes) in &entries {
        manifest["blake3"][entry] = blake3::hash(bytes).to_hex().to_string().into();
    }
    let manifest = if name == "manifest.json" { change(manifest.to_string()) } else { manifest.to_string() };
    entries.push(("manifest.json".to_owned(), manifest.into_bytes()));
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(name, SimpleFileOptions::default().compression_method(CompressionMethod::Stored)).unwrap();
        writer.write_all(&bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub(crate) fn contents_that_do_not_belong_together_are_errors() {
    let package = Package::from_bytes(graph(&numbers(&Device::cpu(), 16)).package().to_bytes().unwrap()).unwrap();
    let load = |name: &str, change: &dyn Fn(String) -> String| {
        Package::from_bytes(changed(&package, name, change)).and_then(|package| package.load(&Device::cpu())).map(drop)
    };
    let ir = package.entries().iter().find(|(name, _)| name.contains("silu") && name.ends_with(".ir")).unwrap().0.to_owned();
    let view = package.entries().iter().find(|(name, _)| name.contains("sum_rows") && name.ends_with(".ir")).unwrap().0.to_owned();
    let unchanged = changed(&package, "plan.json", &|text| text + " ");
    Package::from_bytes(unchanged).unwrap().load(&Device::cpu()).unwrap();
    for (name, from, to, expected) in [
        ("plan.json", "\"f32[rows, 4]\"", "\"f16[rows, 4]\"", "`silu_elements` is no kernel: argument `x` of a launch has another type"),
        ("plan.json", "\"f32[rows, 4]\"", "\"f32[rows, 4\"", "`f32[rows, 4` is no type"),
        ("plan.json", "[rows, 4]", "[lines, 4]", "`lines` names `lines`, which is not declared"),
        ("plan.json", "\"launch\": 0", "\"launch\": 9", "a launch names a kernel that does not exist"),
        ("plan.json", "\"tensor\": 0", "\"tensor\": 4000000000", "it names a value that does not exist"),
        ("plan.json", "\"tensor\": 0", "\"tensor\": 5", "in front of its definition"),
        ("plan.json", "\"writes\":", "\"tensor\":", "has another type"),
        ("plan.json", "\"type\": \"usize\"", "\"type\": \"i32\"", "has another type"),
        ("plan.json", "\"type\": \"usize\"", "\"type\": \"f32\"", "`f32` is no integer type"),
        ("plan.json", "\"0xb\"", "\"0xfff\"", "names no dtype that `T` can be"),
        ("plan.json", "\"word\": \"0x", "\"word\": \"0xfff", "has another type"),
        ("plan.json", "\"name\": \"c0\"", "\"name\": \"c1\"", "it has no weight `c1`"),
        ("plan.json", "\"c0\"", "\"x\"", "it has no weight `x`"),
        ("plan.json", "\"inputs\": [", "\"inputs\": [\"x\", ", "it has two inputs `x`"),
        ("manifest.json", "\"pointer_mut\"", "\"pointer\"", "its parameters are not those of its IR"),
        ("manifest.json", "\"view2\"", "\"view3\"", "its parameters are not those of its IR"),
        (
            "manifest.json",
            "\"ir\":\"kernels/1-scale_elements.ir\"",
            "\"ir\":\"kernels/0-silu_elements.ir\"",
            "two kernels or variants name entry `kernels/0-silu_elements.ir`",
        ),
        ("manifest.json", "\"format\":1", "\"format\":2", "the package has format 2, and this program reads format 1"),
        (&*ir, "kernel @silu_elements", "kernel @other", "its IR is that of `other`"),
        (&*ir, "load %x", "load %z", "its IR cannot be read"),
        (&*ir, "%n: i64", "%n: ptr<f32>", "is no kernel"),
        (&*ir, "{mask = ", "{in_bounds = true, mask = ", "that no safe kernel has"),
        (&*ir, "    return", "    %p = pointer %n : ptr_mut<f32>\n    return", "its IR has a `pointer` that no safe kernel has"),
        (&*view, "%x_extent0: i64", "%x_extent0: i32", "is no kernel"),
    ] {
        let error = load(name, &|text| text.replace(from, to)).expect_err(&format!("{from} -> {to}")).to_string();
        assert!(error.contains(expected), "{from} -> {to}: {error}");
    }
}

pub(crate) fn a_kernel_without_a_built_variant_is_compiled() {
    let n = Dim::new("n", 1..=100);
    // No program of this crate launches it with this constant.
    let body = |x: &Tensor| {
        let (n, mut y) = (x.numel(), x.empty_like()?);
        silu_elements::<f32, 16>(x, &mut y, &n).grid(n.cdiv(16)).launch()?;
        Ok(y)
    };
    let graph = export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap();
    let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
    let ptx: Vec<_> = package.entries().into_iter().filter(|(name, _)| name.ends_with(".ptx")).collect();
    assert_eq!(ptx.len(), 1, "{ptx:?}");
    let sim = Device::sim(galatea::Target::SM_80).unwrap();
    let x = numbers(&sim, 37);
    assert_eq!(bytes(&package.load(&sim).unwrap().run([&x]).unwrap()), bytes(&[body(&x).unwrap()]));
}

/// A GPU runs the PTX of the package as it is: nothing is compiled.
pub(crate) fn the_code_of_the_package_is_what_runs() {
    let n = Dim::new("n", 1..=100);
    let body = |x: &Tensor| {
        let mut y = x.clone();
        crate::kernels::triple(&mut y, x.numel()).grid(1).launch()?;
        Ok(y)
    };
    let graph = export(|[x]| body(x), [input("x", [&n], Dtype::F32)]).unwrap();
    let package = Package::from_bytes(graph.package().to_bytes().unwrap()).unwrap();
    let (sim, first) = (Device::sim(galatea::Target::SM_80).unwrap(), |session: Session, x: &Tensor| {
        session.run([x]).unwrap()[0].to_vec::<f32>().unwrap()
    });
    let x = numbers(&sim, 9);
    assert_eq!(first(package.load(&sim).unwrap(), &x), x.to_vec::<f32>().unwrap().iter().map(|x| x * 3.0).collect::<Vec<_>>());
    let ptx = package.entries().iter().find(|(name, _)| name.ends_with(".ptx")).unwrap().0.to_owned();
    // The bits of 3 become those of 5.
    let other = changed(&package, &ptx, &|text| text.replace("0f40400000", "0f40A00000"));
    let other = Package::from_bytes(other).unwrap().load(&sim).unwrap();
    assert_eq!(first(other, &x), x.to_vec::<f32>().unwrap().iter().map(|x| x * 5.0).collect::<Vec<_>>());
}

pub(crate) fn a_check_goes_on_behind_the_first_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("program.gpk");
    let package = Package::from_bytes(graph(&numbers(&Device::cpu(), 16)).package().to_bytes().unwrap()).unwrap();
    let errors = |bytes: &[u8], targets: &[galatea::Target]| -> Vec<String> {
        std::fs::write(&path, bytes).unwrap();
        Package::check(&path, targets).unwrap().into_iter().flat_map(|check| check.errors).collect()
    };
    let whole = graph(&numbers(&Device::cpu(), 16)).package().to_bytes().unwrap();
    let all = galatea::Target::ALL;
    assert!(errors(&whole, &[]).is_empty() && errors(&whole, &all).is_empty());
    // The launches of one kernel have another type: an error for each of them.
    let types = errors(&changed(&package, "plan.json", &|text| text.replace("\"type\": \"usize\"", "\"type\": \"i32\"")), &[]);
    assert!(!types.is_empty() && types.iter().all(|error| error.starts_with("step ") && error.contains("has another type")), "{types:?}");
    // Code for Hopper alone does not run on other GPUs.
    let hopper = changed(&package, "manifest.json", &|text| text.replace("\"sm_80\"", "\"sm_90a\""));
    assert!(errors(&hopper, &[]).is_empty() && errors(&hopper, &all[1..]).is_empty());
    let errors = errors(&hopper, &all[..1]);
    assert_eq!(errors.len(), package.plan(&Device::cpu()).unwrap().nodes.iter().filter(|node| is_launch(node)).count());
    assert!(errors[0].contains("has no variant for `sm_80`\nhelp: write the package with `.targets([..])`"), "{errors:?}");
}

fn is_launch(node: &kernel_graph::Node) -> bool {
    matches!(node.op, kernel_graph::NodeOp::Launch(_))
}
