//! The command `cargo galatea`: reports on the kernels of a crate at build time.

mod output;
mod variants;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Parser, Subcommand};
use serde_json::Value;

/// Cargo runs this as `cargo-galatea galatea ..`.
#[derive(Parser)]
#[command(name = "cargo", bin_name = "cargo")]
enum Cargo {
    /// Report on the kernels of a crate
    Galatea(Galatea),
}

#[derive(Args)]
#[command(version, arg_required_else_help = true)]
struct Galatea {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// List the kernel variants that a build embeds, with their resource use
    Variants(Variants),
}

/// Select crates, as for `cargo check`
#[derive(Args)]
#[command(after_help = "Examples:
  cargo galatea variants --sort registers
  cargo galatea variants --example silu --json

The crates are compiled anew, in a target directory of their own. Variants that no GPU of their target can run are left out of the program; they stand below the
list, each with the reason.")]
struct Variants {
    /// Report only on this package; may be repeated
    #[arg(short, long, value_name = "SPEC")]
    package: Vec<String>,
    /// Report on all packages of the workspace
    #[arg(long)]
    workspace: bool,
    /// Build the library
    #[arg(long)]
    lib: bool,
    /// Build only this example
    #[arg(long, value_name = "NAME")]
    example: Vec<String>,
    /// Build only this binary
    #[arg(long, value_name = "NAME")]
    bin: Vec<String>,
    /// Build all targets, including tests, examples and benchmarks
    #[arg(long)]
    all_targets: bool,
    /// Build in release mode
    #[arg(short, long)]
    release: bool,
    /// Activate these features
    #[arg(short = 'F', long, value_name = "FEATURES")]
    features: Vec<String>,
    /// Do not activate the default features
    #[arg(long)]
    no_default_features: bool,
    /// Path to Cargo.toml
    #[arg(long, value_name = "PATH")]
    manifest_path: Option<PathBuf>,
    #[command(flatten)]
    report: variants::Report,
}

fn main() -> ExitCode {
    let Cargo::Galatea(Galatea { command: Task::Variants(variants) }) = Cargo::parse();
    let outcome = variants.run().and_then(|text| output::print(&text));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::tell(&format!("error: {error}"));
            // Cargo fails with the same code.
            ExitCode::from(101)
        }
    }
}

impl Variants {
    fn run(&self) -> Result<String, String> {
        let metadata = self.metadata()?;
        let target = metadata["target_directory"].as_str().ok_or("`cargo metadata` names no target directory")?;
        let target = PathBuf::from(target).join("galatea-variants");
        // Cargo recompiles crates with kernels for each value of the variable, so each run uses a new folder.
        let folders = target.join("ptx");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        let written = folders.join(now.to_string());
        let cannot = |error: std::io::Error| format!("cannot make {}: {error}", written.display());
        if folders.exists() {
            std::fs::remove_dir_all(&folders).map_err(cannot)?;
        }
        std::fs::create_dir_all(&written).map_err(cannot)?;

        let packages = self.packages(&metadata);
        let mut check = self.cargo("check");
        check.arg("--target-dir").arg(&target).env("GALATEA_PTX_DIR", &written);
        self.package.iter().for_each(|package| {
            check.args(["--package", package]);
        });
        for (flag, names) in [("--example", &self.example), ("--bin", &self.bin), ("--features", &self.features)] {
            names.iter().for_each(|name| {
                check.args([flag, name]);
            });
        }
        let flags = [
            ("--workspace", self.workspace),
            ("--lib", self.lib),
            ("--all-targets", self.all_targets),
            ("--release", self.release),
            ("--no-default-features", self.no_default_features),
        ];
        check.args(flags.iter().filter(|(_, is_on)| *is_on).map(|(flag, _)| flag));
        succeed(&mut check)?;
        if !written.join("variants.jsonl").exists() {
            return Ok("no kernel is compiled there for values that are known\n".to_owned());
        }
        // Dependencies compiled for the first time in this run have also written variants; leave them out.
        let is_wanted = |package: &str, krate: &str| packages.iter().any(|wanted| wanted == package) && self.names(krate);
        variants::report(&[written], &is_wanted, &self.report)
    }

    /// Returns whether the crate is selected by name; without names, every crate is.
    fn names(&self, krate: &str) -> bool {
        let mut named = self.example.iter().chain(&self.bin).peekable();
        named.peek().is_none() || self.lib || self.all_targets || named.any(|name| name.replace('-', "_") == krate)
    }

    fn metadata(&self) -> Result<Value, String> {
        let output = self.cargo("metadata").args(["--no-deps", "--format-version", "1"]).output();
        let output = output.map_err(|error| format!("cannot run cargo: {error}"))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).trim().trim_start_matches("error: ").to_owned());
        }
        serde_json::from_slice(&output.stdout).map_err(|error| format!("`cargo metadata` cannot be read: {error}"))
    }

    /// The names of the selected packages. As with cargo, the default is the packages of the current folder.
    fn packages(&self, metadata: &Value) -> Vec<String> {
        if !self.package.is_empty() {
            return self.package.iter().map(|spec| spec.split('@').next().unwrap_or(spec).to_owned()).collect();
        }
        let list = |name: &str| metadata[name].as_array().into_iter().flatten();
        let members: Vec<&Value> = list(if self.workspace { "workspace_members" } else { "workspace_default_members" }).collect();
        let members = list("packages").filter(|package| members.contains(&&package["id"]));
        members.filter_map(|package| package["name"].as_str().map(str::to_owned)).collect()
    }

    fn cargo(&self, command: &str) -> Command {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.arg(command);
        if let Some(path) = &self.manifest_path {
            cargo.arg("--manifest-path").arg(path);
        }
        cargo
    }
}

/// Runs a command. Its output goes to the user.
fn succeed(command: &mut Command) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("cannot run cargo: {error}"))?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("`cargo {}` ended with {status}", command.get_args().next().unwrap_or_default().display()))
    }
}
