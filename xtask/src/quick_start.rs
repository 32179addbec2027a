//! `cargo xtask quick-start`: the time to a user's first results, from nothing but a filled registry cache.
//!
//! Builds the first example of the README, and a crate of a user's own with the README's kernel and settings, in a target directory of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use comfy_table::{CellAlignment, Table, presets};

use crate::process;

#[derive(clap::Args)]
pub(crate) struct Args {}

const EXAMPLE: &str = "cargo run --release --example vector_add";

pub(crate) fn run(_: &Args) -> Result<()> {
    let folder = process::target_dir().join("quick-start");
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    process::run(&mut process::command("cargo fetch --locked --quiet"))?;
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["from nothing, in order", "seconds"]);

    let mut example = process::command(EXAMPLE);
    let took = time(example.args(["--quiet", "--", "--device", "cpu"]).env("CARGO_TARGET_DIR", folder.join("example")))?;
    table.add_row([format!("`{EXAMPLE}`"), seconds(took)]);

    let user = User::create(folder.join("user"))?;
    table.add_row(["a crate with the README's kernel: `cargo build`".to_owned(), seconds(user.cargo("build")?)]);
    let binary = fs::metadata(user.folder.join("target/debug/user")).context("the crate has no binary")?.len();
    user.edit("v * sigmoid(v)", "sigmoid(v) * v")?;
    table.add_row(["`cargo build` after an edit of the kernel".to_owned(), seconds(user.cargo("build")?)]);
    user.cargo("check")?;
    user.edit("sigmoid(v) * v", "v * sigmoid(v)")?;
    table.add_row(["`cargo check` after an edit of the kernel".to_owned(), seconds(user.cargo("check")?)]);
    if let Some(count) = table.column_mut(1) {
        count.set_cell_alignment(CellAlignment::Right);
    }
    println!("{table}\nThe debug binary has {:.0} MB.", binary as f64 / 1e6);
    Ok(())
}

/// A crate outside of the workspace that depends on Galatea.
struct User {
    folder: PathBuf,
}

impl User {
    fn create(folder: PathBuf) -> Result<User> {
        let readme = fs::read_to_string(process::root().join("README.md"))?;
        let block = |language: &str| {
            let (_, rest) = readme.split_once(&format!("```{language}\n")).with_context(|| format!("README.md has no {language} block"))?;
            rest.split_once("```").map(|(block, _)| block).with_context(|| format!("README.md has an open {language} block"))
        };
        let dependencies = block("toml")?.replace("../galatea", &process::root().display().to_string());
        fs::create_dir_all(folder.join("src"))?;
        fs::write(
            folder.join("Cargo.toml"),
            format!("[workspace]\n\n[package]\nname = \"user\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n{dependencies}"),
        )?;
        fs::write(folder.join("src/main.rs"), block("rust")?)?;
        // The same versions as in the workspace, which the registry cache has.
        fs::copy(process::root().join("Cargo.lock"), folder.join("Cargo.lock"))?;
        Ok(User { folder })
    }

    fn cargo(&self, what: &str) -> Result<Duration> {
        let mut command = process::command("cargo");
        time(command.args([what, "--quiet", "--offline"]).current_dir(&self.folder).env_remove("CARGO_TARGET_DIR"))
    }

    fn edit(&self, old: &str, new: &str) -> Result<()> {
        let file = self.folder.join(Path::new("src/main.rs"));
        let text = fs::read_to_string(&file)?;
        anyhow::ensure!(text.contains(old), "README.md's kernel has no `{old}`");
        Ok(fs::write(file, text.replace(old, new))?)
    }
}

fn time(command: &mut Command) -> Result<Duration> {
    println!("{}", process::shown(command));
    let start = Instant::now();
    process::run(command)?;
    Ok(start.elapsed())
}

fn seconds(took: Duration) -> String {
    format!("{:.1}", took.as_secs_f64())
}
