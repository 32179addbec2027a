//! Running other programs from the workspace root. An error names the command line that failed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

/// The workspace root, independent of the current directory.
pub(crate) fn root() -> PathBuf {
    // Cargo also sets the variable at run time, so a target directory shared by two checkouts works.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    manifest.parent().map(Path::to_path_buf).unwrap_or(manifest)
}

/// Cargo's target directory.
pub(crate) fn target_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |dir| root().join(dir))
}

/// A command line split at spaces: `command("cargo fmt --check")`. Add arguments that may contain spaces with `.arg`.
pub(crate) fn command(line: &str) -> Command {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    let mut command = match program {
        // The cargo that runs this program, not the first one in PATH.
        "cargo" => Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())),
        _ => Command::new(program),
    };
    command.args(words).current_dir(root());
    command
}

/// Runs a command to its end with the caller's output streams.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| cannot_start(command))?;
    ensure!(status.success(), "{} ended with {status}", shown(command));
    Ok(())
}

/// Runs a command to its end and returns its standard output. Standard error goes to the caller's.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let mut text = String::new();
    each_line(command, |line| {
        text.push_str(line);
        text.push('\n');
    })?;
    Ok(text)
}

/// Runs a command to its end, and passes each line of standard output to `take` as it arrives.
pub(crate) fn each_line(command: &mut Command, mut take: impl FnMut(&str)) -> Result<()> {
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| cannot_start(command))?;
    let stdout = child.stdout.take().context("standard output was not piped")?;
    for line in BufReader::new(stdout).split(b'\n') {
        take(&String::from_utf8_lossy(&line?));
    }
    let status = child.wait()?;
    ensure!(status.success(), "{} ended with {status}", shown(command));
    Ok(())
}

/// The name of the Python interpreter on this machine.
pub(crate) fn python() -> Result<&'static str> {
    for name in ["python3", "python"] {
        let answer = Command::new(name).arg("--version").output();
        if answer.is_ok_and(|output| output.status.success()) {
            return Ok(name);
        }
    }
    bail!("no Python interpreter was found; install python3 with pip");
}

/// The command line as text.
pub(crate) fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}

fn cannot_start(command: &Command) -> String {
    format!("cannot start {}", shown(command))
}
