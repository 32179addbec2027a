//! The modules of one entry each that are made of modules with two, and NVIDIA's assembler: `cargo xtask ptxas` names it in `GALATEA_PTXAS`.

use std::process::Command;

use kernel_lang::dtype::Dtype;
use kernel_lang::launch_value::persistent_entry::{separate_modules, split_entries};
use kernel_lang::launch_value::{LaunchValues, PersistentEntry};
use kernel_lang::target::Target;
use kernel_lang::{Bindings, Options, Schedule, compile};

#[test]
fn each_module_is_complete() {
    let source = include_str!("data/product.txt");
    let func = kernel_frontend::lower_source(source, "product.rs").map_err(|errors| errors.render(&[])).unwrap();
    for (dtype, [m, n, k], num_warps) in [(Dtype::F16, [64, 64, 64], 4), (Dtype::Bf16, [128, 128, 64], 8), (Dtype::Bf16, [128, 256, 64], 8)]
    {
        let bindings = Bindings::new().ty("T", dtype).constant("M", m).constant("N", n).constant("K", k);
        let schedule = Schedule { num_warps, ..Schedule::DEFAULT };
        let compiled = compile(&func, &Options { schedule, ..Options::new(bindings, Target::SM_90A) }).unwrap();
        let (usual, persistent) = separate_modules(&compiled.ptx);
        let (entry, values) = PersistentEntry::of_ptx(&compiled.ptx).unwrap().expect("it has a persistent entry");
        let persistent = persistent.unwrap();
        let (own, own_values) = PersistentEntry::of_ptx(&persistent).unwrap().unwrap();
        assert_eq!((own, own_values.parameter_count()), (entry.clone(), values.parameter_count()));
        let count = |part: &str| LaunchValues::of_ptx(part).unwrap().map(|values| values.parameter_count());
        assert_eq!((count(&usual), split_entries(&usual).1), (count(&compiled.ptx), None));
        for (part, own, other) in [(&usual, &compiled.entry, &entry.name), (&persistent, &entry.name, &compiled.entry)] {
            let has = |name: &str| part.contains(&format!(".entry {name}("));
            assert_eq!((has(own), has(other)), (true, false), "{own}");
            assemble(own, part);
        }
    }
}

/// Assembles PTX, if there is an assembler; a warning is a failure.
fn assemble(name: &str, ptx: &str) {
    let Some(assembler) = std::env::var_os("GALATEA_PTXAS") else { return };
    let path = std::env::temp_dir().join(format!("galatea-{}-{name}.ptx", std::process::id()));
    std::fs::write(&path, ptx).unwrap();
    let run = Command::new(assembler).args(["--warning-as-error", "-arch", "sm_90a", "-o", "/dev/null"]).arg(&path).output().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(run.status.success(), "{}\n{ptx}", String::from_utf8_lossy(&run.stderr));
}
