//! `cargo xtask book`: builds the book of `docs/` with mdBook, and checks its sources and its links.
//!
//! mdBook replaces a missing anchor by nothing, and does not check links. So this task checks, before the build, what chapters include and which of their programs
//! are tested ([`sources`]); and after the build, every link of the pages ([`links`]).

mod links;
mod sources;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::process;

/// The version that the chapters were written for, and that is installed where there is none.
const MDBOOK: &str = "0.5.4";

#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// Show the book in the browser
    #[arg(long)]
    open: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let (root, folder) = (process::root(), process::target_dir().join("book"));
    refuse("the sources of the book", sources::problems(&root)?)?;
    build(&mdbook()?, &folder)?;
    let (pages, links, problems) = links::check(&root, &folder)?;
    refuse("the links of the book", problems)?;
    let index = folder.join("index.html");
    println!("{}: {pages} pages, {links} links", index.display());
    if args.open { open(&index) } else { Ok(()) }
}

/// Fails with all problems at once.
fn refuse(what: &str, problems: Vec<String>) -> Result<()> {
    ensure!(problems.is_empty(), "{what} have mistakes, {} in all:\n{}", problems.len(), problems.join("\n"));
    Ok(())
}

/// The installed mdBook: in `PATH`, or in the target directory, where this function installs it if there is none.
fn mdbook() -> Result<PathBuf> {
    let has_version = |program: &Path| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim() == format!("mdbook v{MDBOOK}"))
    };
    let tools = process::target_dir().join("tools");
    let own = tools.join("bin").join(format!("mdbook{}", std::env::consts::EXE_SUFFIX));
    for program in [PathBuf::from("mdbook"), own.clone()] {
        if has_version(&program) {
            return Ok(program);
        }
    }
    println!("installing mdBook {MDBOOK} into {}", tools.display());
    // Without optimisation and debug information the build takes about a minute on two cores, and building the book two seconds.
    let line = format!("cargo install mdbook --version ={MDBOOK} --locked --no-default-features --features search --debug --quiet --root");
    process::run(process::command(&line).arg(&tools).env("CARGO_PROFILE_DEV_DEBUG", "0"))?;
    Ok(own)
}

/// Runs mdBook. Its warnings are errors here.
fn build(mdbook: &Path, folder: &Path) -> Result<()> {
    if folder.exists() {
        // A page that was removed would otherwise stay, and links to it would count as good.
        fs::remove_dir_all(folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    let mut command = Command::new(mdbook);
    command.args(["build", "docs", "--dest-dir"]).arg(folder).current_dir(process::root());
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("cannot start {}", process::shown(&command)))?;
    let log = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} ended with {}:\n{log}", process::shown(&command), output.status);
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR")).collect();
    ensure!(warnings.is_empty(), "mdBook warns:\n{}", warnings.join("\n"));
    Ok(())
}

fn open(page: &Path) -> Result<()> {
    let program = match std::env::consts::OS {
        "macos" => "open",
        "windows" => "explorer",
        _ => "xdg-open",
    };
    process::run(Command::new(program).arg(page)).with_context(|| format!("open {} in a browser", page.display()))
}
