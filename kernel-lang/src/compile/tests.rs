//! Modules with two entries, which are separated.

use super::*;
use crate::launch_value::persistent_entry::separate_modules;
use crate::{dtype::Dtype, ir};

/// The module of a matrix product with and without its persistent entry, and that of the persistent entry alone.
fn modules(num_warps: u32) -> [String; 3] {
    let source = include_str!("../../tests/data/product.txt");
    let text = kernel_frontend::lower_source(source, "product.rs").map_err(|errors| errors.render(&[])).unwrap().to_string();
    let bindings = Bindings::new().ty("T", Dtype::Bf16).constant("M", 128).constant("N", 128).constant("K", 64);
    let schedule = Schedule { num_warps, ..Schedule::DEFAULT };
    let prepared = Prepared::new(&ir::parse(&text).unwrap(), &bindings, Target::SM_90A, false).unwrap();
    let target = Asked::new(Target::SM_90A);
    let mut func = prepared.simplified.clone();
    passes::run(&mut func, PIPELINE, &mut |_, _, _| {});
    let usual = schedule_and_emit(&func, schedule, &target, &mut |_, _, _| {}).unwrap();
    let Ok((persistent, _)) = with_roles(&prepared.simplified, schedule, &target, &mut |_, _, _| {}).unwrap() else {
        panic!("it has a persistent entry")
    };
    [usual.text(Some(&persistent)), usual.text(None), persistent.text(None)]
}

#[test]
fn an_entry_alone_is_what_the_compiler_writes_without_the_other() {
    for num_warps in [4, 8] {
        let [both, usual, persistent] = modules(num_warps);
        let (usual_alone, persistent_alone) = separate_modules(&both);
        // Only the persistent entry needs memory of this alignment.
        let expected = usual.replacen(".extern .shared .align 16 ", ".extern .shared .align 1024 ", 1);
        assert!(expected != usual && expected == usual_alone, "{num_warps} warps");
        // Apart from the comment that names the kernel.
        let directives = |text: &str| text[text.find(".version ").unwrap()..].replace("\n\n", "\n");
        assert!(directives(&persistent) == directives(&persistent_alone.unwrap()), "{num_warps} warps");
    }
}
