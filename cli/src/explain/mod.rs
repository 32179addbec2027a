//! `galatea explain`: why a memory-bound kernel is as fast as it is.
//!
//! The compiler says how wide each access is, why it is not wider, and which cache hint it chose ([`kernel_lang::explain`]). The simulator
//! runs the compiled kernel and counts the sectors that it moves. From both, and the properties of a GPU, follow occupancy and times.

mod card;
mod estimate;
mod occupancy;
mod product_cost;
mod products;
mod products_text;
mod report;
mod request;
mod simulate;
mod text;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;
use kernel_frontend::Listed;
use kernel_lang::explain::explain;
use kernel_lang::ir::Function;

use card::Model;
use request::Request;

use crate::output::print;
use crate::{ptxas, sim};

/// Print why a kernel is as fast as it is: its accesses, registers, occupancy and times
#[derive(Args)]
#[command(after_help = "Examples:
  galatea explain src/copy.rs T=f32 x=65536 y=65536 n=65536 --grid 64
  galatea explain src/norms.rs --kernel layer_norm BLOCK=1024 num_warps=8 x=4096x1000 y=4096x1000 --grid 4096 --gpu h100
  galatea explain src/gather.rs table=1000000 index=4096=below:3906 y=1048576 --grid 4096 --programs 16

NAME=VALUE gives a type `T=f32`, a constant `BLOCK=1024`, a part of the schedule `num_warps=8`, a number `n=1000`, or a tensor: its elements
`x=65536`, or the shape of a view `x=64x1024`. Types, constants and the schedule are optional where the attributes list one value. Contents of a tensor stand behind its size: `=zeros|ones|iota|random|below:N|nothing|@FILE`.")]
pub(crate) struct Explain {
    /// Rust file with the kernel, and the device functions that it calls
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Generics, schedule and arguments of the kernel
    #[arg(value_name = "NAME=VALUE")]
    values: Vec<String>,
    /// Explain this kernel, if the file has more than one
    #[arg(long)]
    kernel: Option<String>,
    /// Launch this many programs: X, X,Y or X,Y,Z
    #[arg(long, value_parser = sim::extents)]
    grid: [u32; 3],
    /// Explain for this GPU
    #[arg(long, value_enum, default_value_t = Model::H200)]
    gpu: Model,
    /// Explain the variant for this fact: `NAME=VALUE` or `NAME%NUMBER=0`
    #[arg(long = "assume", value_name = "FACT")]
    facts: Vec<String>,
    /// Simulate at most so many programs, spread over the grid, or `all`
    #[arg(long, value_name = "COUNT", default_value = "64")]
    programs: Most,
    /// Count registers and spills with this ptxas [default: `GALATEA_PTXAS`, else `ptxas` in `PATH`]
    #[arg(long, value_name = "PATH")]
    ptxas: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// The most programs that are simulated; `None` for all.
#[derive(Clone, Copy, Debug)]
struct Most(Option<u64>);

impl FromStr for Most {
    type Err = String;

    fn from_str(text: &str) -> Result<Most, String> {
        match text {
            "all" => Ok(Most(None)),
            count => match count.parse() {
                Ok(count) if count > 0 => Ok(Most(Some(count))),
                _ => Err("a positive number or `all` is wanted".to_owned()),
            },
        }
    }
}

impl Explain {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        if self.grid.contains(&0) {
            return Err("the grid has no program\nhelp: a launch has at least one along each axis".to_owned());
        }
        let (Listed { func, choices, .. }, card) = (read(&self.file, self.kernel.as_deref())?, self.gpu.card());
        if func.has_prints() {
            return Err(format!("`{}` prints\nhelp: remove `device_print!` to explain it", func.name));
        }
        let request = Request::of(&func, &choices, card.target, &self.values, &self.facts)?;
        let explained = explain(&func, &request.options, &|name| request.known(name)).map_err(|errors| rendered(errors, &func))?;
        let run = simulate::run(&explained, &request, self.grid, self.programs.0, self.gpu)?;
        let target = card.target.to_string();
        let cta = report::cta(&request, &run);
        let assemble = |ptxas: PathBuf| occupancy::usage(&ptxas, &explained.compiled.ptx, &target, card.multiprocessor, cta);
        let usage = ptxas::find(self.ptxas.as_deref())?.map(assemble).transpose()?;
        let report = report::of(&explained, &request, &run, usage.as_ref(), &card, &func);
        let text = if self.json {
            serde_json::to_string_pretty(&report).map_err(|error| format!("cannot write the report as JSON: {error}"))? + "\n"
        } else {
            text::render(&report, &card)
        };
        print(&text).map(|()| ExitCode::SUCCESS)
    }
}

/// The kernel in a file: of this name, or the only one.
fn read(path: &Path, name: Option<&str>) -> Result<Listed, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
    let file = path.display().to_string();
    let listed =
        kernel_frontend::lower_kernel(&text, &file, name).map_err(|errors| without_prefix(errors.render(&[file.as_str().into()])))?;
    if name.is_none() && listed.kernels.len() > 1 {
        return Err(format!("the file has several kernels\nhelp: `--kernel` and one of {}", listed.kernels.join(", ")));
    }
    Ok(listed)
}

fn rendered(errors: kernel_lang::diagnostic::Diagnostics, func: &Function) -> String {
    without_prefix(errors.render(&func.files))
}

/// `main` writes the first `error:`.
fn without_prefix(text: String) -> String {
    let text = text.trim_end();
    text.strip_prefix("error: ").unwrap_or(text).to_owned()
}
