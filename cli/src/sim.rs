//! `galatea sim`: runs PTX or a whole program on the simulator.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::{Args, ValueEnum};
use kernel_lang::launch_value::{LaunchValues, PersistentEntry};
use kernel_sim::{Argument as Memory, Gpu, Kernel, Launch, LaunchError, Machine, Options};

use crate::argument::{Argument, Element};
use crate::output::{print, tell};
use crate::status::exit_code;

/// Run PTX, or a program, on a simulated GPU that checks every access
#[derive(Args)]
#[command(after_help = "Examples:
  galatea sim --report add.ptx --grid 8 --block 128 --arg f32:1024=random --arg f32:1024=iota --arg f32:1024=nothing --show 4
  galatea sim --report -- cargo run --example vector_add

A program runs on the simulator if it asks for no device of its own and was built with the feature `sim` of `galatea`.")]
pub(crate) struct Sim {
    /// PTX file
    #[arg(required_unless_present = "program", conflicts_with = "program")]
    ptx: Option<PathBuf>,
    /// Run this kernel, if the file has more than one
    #[arg(long)]
    kernel: Option<String>,
    /// Run this many CTAs: X, X,Y or X,Y,Z
    #[arg(long, default_value = "1", value_parser = extents)]
    grid: [u32; 3],
    /// Run this many threads per CTA: X, X,Y or X,Y,Z
    #[arg(long, default_value = "128", value_parser = extents)]
    block: [u32; 3],
    /// Group this many CTAs into a cluster: X, X,Y or X,Y,Z
    #[arg(long, value_parser = extents)]
    cluster: Option<[u32; 3]>,
    /// Allocate this many bytes of dynamic shared memory
    #[arg(long, default_value_t = 0)]
    shared: u32,
    /// Pass the next kernel argument: `TYPE=VALUE`, or a buffer as `TYPE:COUNT[=zeros|ones|iota|random|below:N|nothing|@FILE]`
    #[arg(long = "arg", value_name = "ARG")]
    arguments: Vec<Argument>,
    /// Print the first elements of each buffer after the launch
    #[arg(long, default_value_t = 0, value_name = "COUNT")]
    show: usize,
    /// Print the instructions, bytes and transactions of each source line
    #[arg(long)]
    report: bool,
    /// Simulate this GPU
    #[arg(long, value_enum, default_value_t = Model::H200)]
    gpu: Model,
    /// Schedule the warps in the order of this seed
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Allow reads of uninitialised memory
    #[arg(long)]
    allow_uninitialised: bool,
    /// Allow races in global memory, which takes less time and memory
    #[arg(long)]
    allow_races: bool,
    /// Program to run, with its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Model {
    H200,
    A100,
}

impl Sim {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        match self.program.split_first() {
            Some((program, arguments)) => self.run_program(program, arguments),
            None => self.run_ptx(),
        }
    }

    fn run_program(&self, program: &str, arguments: &[String]) -> Result<ExitCode, String> {
        let device = match self.gpu {
            Model::H200 => "sim:sm_90a",
            Model::A100 => "sim:sm_80",
        };
        let mut command = Command::new(program);
        command.args(arguments).env("GALATEA_DEVICE", device);
        // Every process that launches kernels writes its own report.
        let reports = tempfile::tempdir().map_err(|error| format!("cannot make a directory for reports: {error}"))?;
        if self.report {
            command.env("GALATEA_SIM_REPORT", reports.path());
        }
        if self.allow_races {
            command.env("GALATEA_SIM_RACES", "allow");
        }
        let status = command.status().map_err(|error| format!("cannot run `{program}`: {error}"))?;
        let mut files: Vec<PathBuf> = std::fs::read_dir(reports.path()).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort();
        for file in &files {
            let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read a report: {error}"))?;
            print(&format!("\n{text}"))?;
        }
        if self.report && files.is_empty() {
            tell(&format!(
                "no kernel ran on a simulated GPU\nhelp: `{program}` must use `Device::default()` and the feature `sim` of `galatea`"
            ));
        }
        Ok(exit_code(status))
    }

    fn run_ptx(&self) -> Result<ExitCode, String> {
        let path = self.ptx.as_deref().unwrap_or(std::path::Path::new(""));
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))?;
        let machine = Machine::new(match self.gpu {
            Model::H200 => Gpu::h200(),
            Model::A100 => Gpu::a100(),
        });
        let module = machine.load(&text).map_err(|error| format!("{}: {error}", path.display()))?;
        let broken = |error: String| format!("{}: {error}", path.display());
        let persistent = PersistentEntry::of_ptx(&text).map_err(broken)?.map(|(entry, _)| entry.name);
        let kernel = self.pick(&module, persistent.as_deref())?;

        let mut params = Vec::new();
        let mut buffers = Vec::new();
        for (index, argument) in self.arguments.iter().enumerate() {
            match argument {
                Argument::Scalar(bytes) => params.push(bytes.clone()),
                Argument::Buffer { element, count, fill } => {
                    let address = machine.allocate(count * element.bytes()).map_err(|error| error.to_string())?;
                    if let Some(bytes) = fill.bytes(*element, *count)? {
                        machine.write(address, &bytes).map_err(|error| error.to_string())?;
                    }
                    buffers.push((index, *element, *count, address));
                    params.push(address.to_le_bytes().to_vec());
                }
            }
        }
        let sizes: Vec<u32> = kernel.params().collect();
        let values = LaunchValues::of_ptx(&text).map_err(broken)?;
        let own = sizes.len().saturating_sub(values.as_ref().map_or(0, LaunchValues::parameter_count));
        if own != params.len() {
            return Err(format!(
                "`{}` has {own} parameters, of {:?} bytes, and {} are given\nhelp: one `--arg` for each",
                kernel.name(),
                &sizes[..own],
                params.len()
            ));
        }
        if let Some(values) = values {
            // A program is a CTA, or a cluster of them.
            let ctas = self.cluster.or(kernel.cluster()).unwrap_or([1; 3]);
            let programs = std::array::from_fn(|axis| self.grid[axis] / ctas[axis].max(1));
            params.extend(values.bytes(&params, programs).map_err(broken)?.0);
        }
        let params: Vec<&[u8]> = params.iter().map(Vec::as_slice).collect();
        let Sim { seed, allow_uninitialised, allow_races, .. } = *self;
        let options = Options { seed, allow_uninitialised, allow_races, ..Options::default() };
        let Sim { grid, block, cluster, shared, .. } = *self;
        let start = Instant::now();
        let names: Vec<&str> = kernel.param_names().collect();
        let memory = |&(index, element, count, address): &(usize, Element, usize, u64)| Memory {
            name: names[index],
            address,
            elements: count as u64,
            element_bytes: element.bytes() as u32,
        };
        let arguments: Vec<Memory<'_>> = buffers.iter().map(memory).collect();
        let launch = Launch { grid, block, cluster, shared_bytes: shared, params: &params, arguments: &arguments, options };
        let counters = machine.launch(&kernel, &launch).map_err(|error: LaunchError| error.to_string())?;
        let seconds = start.elapsed().as_secs_f64();
        let mut text = format!("`{}` ran without a fault on a {}, in {seconds:.3} s\n", kernel.name(), machine.gpu().name);
        for (index, element, count, address) in buffers {
            let mut bytes = vec![0; count.min(self.show) * element.bytes()];
            machine.read(address, &mut bytes).map_err(|error| error.to_string())?;
            if !bytes.is_empty() {
                text += &format!("argument {index}: {}\n", element.show(&bytes));
            }
        }
        if self.report {
            text += &counters.to_table(kernel.files());
        }
        print(&text).map(|()| ExitCode::SUCCESS)
    }

    /// The kernel to run. That is never a persistent entry, which takes tensor maps.
    fn pick(&self, module: &kernel_sim::Module, persistent: Option<&str>) -> Result<Kernel, String> {
        let mut names: Vec<&str> = module.kernels().filter(|name| Some(*name) != persistent).collect();
        names.sort_unstable();
        let name = match (&self.kernel, names.as_slice()) {
            (Some(name), _) => name,
            (None, [only]) => *only,
            (None, []) => return Err("the file has no kernel".to_owned()),
            (None, _) => return Err(format!("the file has several kernels\nhelp: `--kernel` and one of {}", names.join(", "))),
        };
        let kernel = module.kernel(name).filter(|_| Some(name) != persistent);
        kernel.ok_or_else(|| format!("the file has no kernel `{name}`\nhelp: there are {}", names.join(", ")))
    }
}

/// Parses `X`, `X,Y` or `X,Y,Z`.
pub(crate) fn extents(text: &str) -> Result<[u32; 3], String> {
    let parts: Vec<u32> = text.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| "numbers are wanted: X, X,Y or X,Y,Z")?;
    match parts[..] {
        [x] => Ok([x, 1, 1]),
        [x, y] => Ok([x, y, 1]),
        [x, y, z] => Ok([x, y, z]),
        _ => Err("there are at most three extents".to_owned()),
    }
}
