//! The formulas of `expand_math`, run by an interpreter of their own and compared with references of higher precision.
//!
//! `RUSTFLAGS="-C target-cpu=native" cargo test --release -p kernel-lang --test math -- --ignored --nocapture` runs every `f32` there is
//! through every function, or through one, as `FUNCTION=exp` in the environment; every 16th with `STRIDE=16`.

mod float32;
mod float64;
mod halves;
mod interpreter;
mod library;
mod reduction;
mod structure;
mod ulp;

use kernel_lang::ir::{Function, Op, Stage, parse, verify};
use kernel_lang::passes::expand_math;

/// The kernel `%1 = op %x, ..` of that dtype, expanded and verified.
fn expanded(op: &str, dtype: &str, arity: usize) -> Function {
    let names: Vec<String> = (0..arity).map(|index| format!("%x{index}")).collect();
    let params: Vec<String> = names.iter().map(|name| format!("{name}: {dtype}")).collect();
    let text = format!("kernel @{op}({}) {{\n%0 = {op} {} : {dtype}\nreturn\n}}", params.join(", "), names.join(", "));
    let mut func = parse(&text).unwrap();
    verify(&func, Stage::Tile).unwrap();
    assert!(expand_math::run(&mut func), "{op} of {dtype} is not expanded");
    if let Err(violations) = verify(&func, Stage::Tile) {
        panic!("{op} of {dtype}: {violations:?}\n{func}");
    }
    func
}

/// The cost of an expanded kernel: the number of its ops, without constants, bitcasts and `return`.
fn instructions(func: &Function) -> usize {
    let is_free = |op: &Op| matches!(op, Op::Const { .. } | Op::Bitcast { .. } | Op::Return {});
    func.all_insts().into_iter().filter(|inst| !is_free(&func.inst(*inst).op)).count()
}
