//! What the tests of the CPU executor share.

#![allow(dead_code, reason = "each test uses a part")]

use kernel_lang::backend::cpu::{Program, Scratch, Violation};
use kernel_lang::ir;

/// The program of a specialised kernel's text.
pub(crate) fn compile(text: &str) -> Program {
    let func = ir::parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let verified = ir::verify(&func, ir::Stage::Tile).unwrap_or_else(|violations| panic!("{violations:?}\n{text}"));
    Program::compile(verified)
}

/// Runs every program of a grid, one after the other. The tests keep what `args` point to alive.
pub(crate) fn run_grid(program: &Program, args: &[u64], grid: [u32; 3], checked: bool) -> Result<(), Violation> {
    let mut scratch = Scratch::new();
    for z in 0..grid[2] {
        for y in 0..grid[1] {
            for x in 0..grid[0] {
                // SAFETY: the addresses in `args` are those of live buffers of at least the given lengths; one thread runs.
                unsafe { program.run(args, grid, [x, y, z], &mut scratch, checked)? };
            }
        }
    }
    Ok(())
}
