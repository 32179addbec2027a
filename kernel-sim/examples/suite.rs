//! Writes the instruction suite to a folder, for a GPU to run: `cargo run -p kernel-sim --example suite -- FOLDER`.
//!
//! The folder gets `suite.ptx`, `inputs.bin` and `manifest.txt`; `tests/suite/record.py FOLDER ANSWERS` runs them.

#[path = "../tests/suite/emit.rs"]
#[expect(dead_code, reason = "what compares answers is for the test")]
mod emit;
#[path = "../tests/suite/inputs.rs"]
mod inputs;
#[path = "../tests/suite/rows/mod.rs"]
mod rows;

use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let Some(folder) = env::args_os().nth(1).map(PathBuf::from) else {
        return Err(io::Error::other("name the folder to write to"));
    };
    fs::create_dir_all(&folder)?;
    let entries = emit::entries();
    let mut manifest = format!("{:016x}\n", emit::digest(&entries));
    let mut inputs = Vec::new();
    for entry in &entries {
        // Kernel, offset of its inputs, offset and bytes of its answers, CTAs of 32 threads.
        _ = writeln!(manifest, "{} {} {} {} {}", entry.name, inputs.len(), entry.answers.start, entry.answers.len(), entry.row.warps);
        inputs.extend_from_slice(&entry.inputs);
    }
    let kernels: String = entries.iter().map(|entry| entry.kernel.as_str()).collect();
    fs::write(folder.join("suite.ptx"), format!("{}{kernels}", emit::HEADER))?;
    fs::write(folder.join("inputs.bin"), &inputs)?;
    fs::write(folder.join("manifest.txt"), manifest)?;
    println!(
        "{} rows, {} bytes of inputs, {} bytes of answers",
        entries.len(),
        inputs.len(),
        entries.last().map_or(0, |last| last.answers.end)
    );
    Ok(())
}
