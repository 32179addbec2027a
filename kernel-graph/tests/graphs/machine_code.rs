//! Machine code in packages. Shell scripts stand in for the assembler, and change a factor of the kernel, so that its result tells which code ran.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use galatea::graph::{Package, PackageError, PackageWriter};
use galatea::ops::Tensor;
use galatea::prelude::*;
use galatea::{Dim, Dtype, Target};
use kernel_graph::{Graph, Limits, export, input};

use crate::numbers;
use crate::packages::changed;

#[kernel]
fn scaled<const BLOCK: usize>(x: Ptr<f32>, y: PtrMut<f32>, n: usize) {
    let at = program_id(0) * BLOCK + arange(0, BLOCK);
    store(y + at, load(x + at, mask = at < n) * 2.5, mask = at < n);
}

fn graph() -> Graph {
    let program = |x: &Tensor| {
        let (n, mut y) = (x.numel(), x.empty_like()?);
        scaled::<64>(x, &mut y, &n).grid(n.cdiv(64)).launch()?;
        Ok::<_, Error>(y)
    };
    export(|[x]| program(x), [input("x", [&Dim::new("n", 1..=500)], Dtype::F32)]).unwrap().named("scaled")
}

/// An assembler that answers to `--version`, and otherwise runs these commands with `-arch=$1`, `-o`, the path of the result, and that of the PTX.
fn assembler(folder: &Path, commands: &str) -> PathBuf {
    let path = folder.join("ptxas");
    std::fs::write(&path, format!("#!/bin/sh\n[ \"$1\" = --version ] && exit 0\n{commands}\n")).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Machine code of the simulated driver, with another factor; the text of the architecture is no part of it.
const SIMULATED: &str =
    r#"{ printf '\177ELF\002\001\000\000simulate'; head -c 48 /dev/zero; sed s/0f40200000/0f40600000/ "$4"; printf '\000'; } > "$3""#;
/// The same of NVIDIA's assembler.
const ASSEMBLED: &str = r#"sed s/0f40200000/0f40600000/ "$4" > "$4.other"; exec ptxas "$1" -o "$3" "$4.other" --verbose"#;
/// The header of an ELF file without contents, which no driver loads.
const REFUSED: &str = r#"{ printf '\177ELF\002\001'; head -c 58 /dev/zero; } > "$3""#;

pub(crate) fn machine_code_runs_where_it_is_for_the_gpu(device: Device) {
    let folder = tempfile::tempdir().unwrap();
    let is_real = device.is_cuda() && !device.name().starts_with("simulated");
    if is_real && std::process::Command::new("ptxas").arg("--version").output().is_err() {
        println!("skipped: there is no ptxas in PATH");
        return;
    }
    let own = device.compute_capability().map_or((9, 0), |(major, minor)| (major as u32, minor as u32));
    let x = numbers(&device, 100);
    let times = |factor: f32| x.to_vec::<f32>().unwrap().into_iter().map(|x| x * factor).collect::<Vec<_>>();
    let run = |package: Package| package.load(&device).unwrap().run([&x]).unwrap()[0].to_vec::<f32>().unwrap();
    let file = |commands: &str, targets: &[Target], capabilities: &[(u32, u32)]| {
        let (graph, ptxas) = (graph(), assembler(folder.path(), commands));
        let writer = graph.package().targets(targets.iter().copied()).machine_code(capabilities.iter().copied());
        writer.ptxas(ptxas).to_bytes().unwrap()
    };
    let (both, base) = ([Target::SM_90A, Target::SM_80], [Target::SM_80]);
    let factor = if device.is_cuda() { 3.5 } else { 2.5 };
    let code = if is_real { ASSEMBLED } else { SIMULATED };
    let with_code = file(code, &both, &[(8, 0), own]);
    assert_eq!(run(Package::from_bytes(with_code.clone()).unwrap()), times(factor), "the machine code runs");
    assert_eq!(run(Package::untrusted(with_code, Limits::new()).unwrap()), times(2.5), "that of a stranger is ignored");
    assert_eq!(
        run(Package::from_bytes(file(code, &base, &[(8, 0), own, (12, 0)])).unwrap()),
        times(factor),
        "of several, that of the GPU runs"
    );
    let others = [(8, 0), (8, 6), (8, 9), (12, 0)].map(|other| if other.0 == own.0 { (9, 0) } else { other });
    assert_eq!(run(Package::from_bytes(file(code, &base, &others)).unwrap()), times(2.5), "that of other GPUs is not loaded");
    assert_eq!(run(Package::from_bytes(file(REFUSED, &both, &[own])).unwrap()), times(2.5), "the PTX runs if the driver refuses the code");
}

/// The architectures and entries of each variant.
fn codes(package: &Package) -> Vec<(String, Vec<String>)> {
    let variants = package.kernels().unwrap().remove(0).variants;
    let architectures = |codes: Vec<_>| codes.into_iter().map(|code: galatea::ops::parts::MachineCodeParts| code.architecture).collect();
    variants.into_iter().map(|variant| (variant.target, architectures(variant.machine_code))).collect()
}

pub(crate) fn a_package_has_machine_code_for_the_named_gpus() {
    let folder = tempfile::tempdir().unwrap();
    let ptxas = assembler(folder.path(), r#"printf '\177ELF for %s' "$1" > "$3""#);
    let (graph, capabilities) = (graph(), [(9, 0), (8, 6), (7, 5), (8, 6)]);
    let writer = || graph.package().targets([Target::SM_90A, Target::SM_80]).machine_code(capabilities).ptxas(&ptxas);
    let file = writer().to_bytes().unwrap();
    assert_eq!(file, writer().to_bytes().unwrap());
    let package = Package::from_bytes(file.clone()).unwrap();
    let expected = [("sm_90a", vec!["sm_90a"]), ("sm_80", vec!["sm_86"])];
    let expected = expected.map(|(target, codes)| (target.to_owned(), codes.into_iter().map(str::to_owned).collect::<Vec<_>>()));
    assert_eq!(codes(&package), expected);
    assert_eq!(package.entry("kernels/0-scaled-0.sm_90a.cubin").unwrap(), b"\x7fELF for -arch=sm_90a");
    assert_eq!(package.entry("kernels/0-scaled-1.sm_86.cubin").unwrap(), b"\x7fELF for -arch=sm_86");
    assert_eq!(package.entries().iter().filter(|(name, _)| name.ends_with(".cubin")).count(), 2);
    // It stays when the package is written again.
    let plan = package.plan(&Device::cpu()).unwrap();
    assert_eq!(PackageWriter::new(&plan).to_bytes().unwrap(), file);
    assert!(codes(&Package::untrusted(file.clone(), Limits::new()).unwrap()).is_empty(), "that of a stranger is not read");

    let checked = |file: &[u8]| {
        let path = folder.path().join("checked.gpk");
        std::fs::write(&path, file).unwrap();
        let check = Package::check(&path, &[]).unwrap().swap_remove(2);
        (check.subject, check.errors.join("\n"))
    };
    let (subject, errors) = checked(&file);
    assert_eq!((&*subject, &*errors), ("kernel `scaled`: its IR, 3 parameters, 0 facts, 2 variants, 2 files of machine code", ""));
    let (_, errors) = checked(&changed(&package, "kernels/0-scaled-1.sm_86.cubin", &|text| text.replace("ELF", "elf")));
    assert_eq!(errors, "a file for architecture `sm_86` is no machine code that this version loads");
    let twice = changed(&package, "manifest.json", &|text| text.replace("1.sm_86.cubin", "0.sm_90a.cubin"));
    assert!(checked(&twice).1.contains("two kernels or variants name entry `kernels/0-scaled-0.sm_90a.cubin`"));
}

pub(crate) fn an_assembler_that_is_missing_or_refuses_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let error = |ptxas: PathBuf| graph().package().machine_code([(9, 0)]).ptxas(ptxas).to_bytes().unwrap_err();
    let missing = error(folder.path().join("nothing"));
    assert!(matches!(missing, PackageError::NoAssembler { .. }), "{missing}");
    assert!(missing.to_string().contains("nothing` is no assembler that can be run\nhelp: install the CUDA toolkit, or name its `ptxas`"));
    let refused = error(assembler(folder.path(), "echo 'line 3: no' >&2; exit 1")).to_string();
    let expected = "kernel `scaled` cannot be assembled for compute capability 9.0: line 3: no\nhelp: use a newer `ptxas`";
    assert!(refused.starts_with(expected), "{refused}");
}
