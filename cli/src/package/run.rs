//! `galatea run`: runs the program of a package once.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use clap::Args;
use kernel_package::weights;
use kernel_runtime::Device;
use kernel_runtime::ops::Tensor;

use super::inputs::Inputs;
use super::of_file;
use super::trust::Trust;
use crate::output::print;

/// Run the program of a package once, and print its outputs
#[derive(Args)]
#[command(after_help = "Examples:
  galatea run model.gpk batch=16 --device cpu --seed 7
  galatea run model.gpk --inputs x.safetensors --outputs y.safetensors
  galatea run downloaded.gpk batch=16 --untrusted --max-memory 256

Random inputs have floats between -4 and 4, integers from 0 to 99, and booleans. The PTX of a package runs as it is: run packages of strangers with `--untrusted`.")]
pub(crate) struct Run {
    /// Package
    file: PathBuf,
    /// Value of a dim, as `batch=16`
    #[arg(value_name = "NAME=VALUE", value_parser = value)]
    values: Vec<(String, i64)>,
    /// Run on this device: `cpu`, `cuda`, `cuda:1`, `sim`, `sim:sm_80` [default: `GALATEA_DEVICE`, else the first GPU, else the CPU]
    #[arg(long)]
    device: Option<String>,
    /// Read inputs from this safetensors file; the others are random
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// Write the outputs to this safetensors file, as `output0`, `output1` and so on
    #[arg(long, value_name = "FILE")]
    outputs: Option<PathBuf>,
    /// Make random inputs from this number [default: a new one, which is printed]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    trust: Trust,
}

/// Parses `batch=16`.
fn value(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("a value of a dim is `NAME=VALUE`")?;
    let number = value.parse().map_err(|_| format!("`{value}` is no integer"))?;
    Ok((name.to_owned(), number))
}

impl Run {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let text = self.run_once().map_err(|error| self.trust.shown(error))?;
        print(&self.trust.shown(text)).map(|()| ExitCode::SUCCESS)
    }

    /// The text of the outputs.
    fn run_once(&self) -> Result<String, String> {
        let of_device = |error: kernel_runtime::Error| error.to_string();
        let device = self.device.as_deref().map_or_else(Device::default, Device::parse).map_err(of_device)?;
        let session = self.trust.open(&self.file)?.load(&device).map_err(|error| of_file(&self.file, &error))?;
        let now = || UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_micros() as u64);
        let seed = self.seed.unwrap_or_else(now);
        let inputs = Inputs::of(session.plan(), &device, &self.values, self.inputs.as_deref(), (seed, self.trust.limits()))?;
        let outputs = session.run(inputs.tensors.iter().collect::<Vec<_>>()).map_err(|error| error.to_string())?;
        let mut text = String::new();
        if inputs.are_random {
            text += &format!("seed {seed}\n");
        }
        for (number, output) in outputs.iter().enumerate() {
            text += &format!("output {number}: {}\n{output}\n", ty(output));
        }
        if let Some(file) = &self.outputs {
            let named: Vec<(String, Tensor)> =
                outputs.into_iter().enumerate().map(|(number, output)| (format!("output{number}"), output)).collect();
            weights::save(file, &named).map_err(|error| error.to_string())?;
        }
        Ok(text)
    }
}

fn ty(tensor: &Tensor) -> String {
    let dims: Vec<String> = tensor.dims().iter().map(ToString::to_string).collect();
    format!("{}[{}]", tensor.dtype(), dims.join(", "))
}
