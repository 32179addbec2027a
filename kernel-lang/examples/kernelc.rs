//! Compiles a kernel, from its text form or from Rust, and prints it after each pass, then its PTX.
//!
//! ```sh
//! cargo run -p kernel-lang --example kernelc -- kernel.kir T=f32 BLOCK_SIZE=1024 num_warps=4 num_stages=3 target=sm_90a [--passes] [--checked]
//! ```
//!
//! Facts about arguments have the same form: `stride=1 n%16=0`.

use kernel_lang::target::Target;
use kernel_lang::{Bindings, Options, compile_with, ir};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = Options::new(Bindings::new(), Target::SM_80);
    let (mut path, mut show_passes) = (None, false);
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("num_warps", value)) => options.schedule.num_warps = value.parse()?,
            Some(("num_ctas", value)) => options.schedule.num_ctas = value.parse()?,
            Some(("num_stages", value)) => options.schedule.num_stages = value.parse()?,
            Some(("target", value)) => options.target = value.parse().map_err(|_| format!("`{value}` is not a target"))?,
            Some((name, "0")) if let Some((name, of)) = name.split_once('%') => {
                options.bindings = options.bindings.multiple(name, of.parse()?);
            }
            Some((name, value)) => match value.parse() {
                Ok(dtype) => options.bindings = options.bindings.ty(name, dtype),
                Err(_) => options.bindings = options.bindings.constant(name, value.parse()?),
            },
            None if argument == "--passes" => show_passes = true,
            None if argument == "--checked" => options.checked = true,
            None => path = Some(argument),
        }
    }
    let path = path.ok_or("usage: kernelc KERNEL.kir [NAME=VALUE].. [--passes]")?;
    let func = read(&path)?;
    let compiled = compile_with(&func, &options, &mut |pass, func, changed| {
        if show_passes {
            println!("; after {pass}{}", if changed { format!("\n{func}") } else { " (unchanged)".to_string() });
        }
    });
    match compiled {
        Ok(compiled) => print!("{}", compiled.ptx),
        Err(diagnostics) => return Err(diagnostics.render(&func.files).into()),
    }
    Ok(())
}

fn read(path: &str) -> Result<ir::Function, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(path)?;
    if path.ends_with(".rs") {
        return kernel_frontend::lower_source(&text, path).map_err(|diagnostics| diagnostics.render(&[path.into()]).into());
    }
    Ok(ir::parse(&text)?)
}
