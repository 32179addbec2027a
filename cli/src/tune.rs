//! `galatea tune`: runs a program that tunes its kernels for the sizes of a file, and stores the results in the file that the program
//! embeds.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Args;
use kernel_runtime::cache::{Attempt, Records, Updated};
use kernel_runtime::tune::{Found, Origin, Shapes};

use crate::output::{self, print, tell};
use crate::records_file;
use crate::status::exit_code;

/// Tune the kernels of a program for the sizes in a file
#[derive(Args)]
#[command(after_help = "Examples:
  galatea tune shapes.json -- cargo run --release --example tune
  galatea tune shapes.json --records tuned/h200.json -- ./target/release/tune

The file lists sizes for each kernel: `{ \"add_kernel\": [{ \"n\": 1048576, \"T\": \"f32\" }] }`. The program asks for them by
`galatea::tune::shapes(\"add_kernel\")`, and launches its kernel for each. What it finds is kept on disk, as always, and in FILE, which
`#[autotune(records = \"FILE\")]` embeds.")]
pub(crate) struct Tune {
    /// File with the sizes
    #[arg(value_name = "SHAPES")]
    shapes: PathBuf,
    /// Write the records to this file, replacing those of the same kernels, GPUs and keys
    #[arg(long, value_name = "FILE")]
    records: Option<PathBuf>,
    /// Tune also the keys that have records
    #[arg(long)]
    again: bool,
    /// Program to run, with its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<String>,
}

impl Tune {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let kernels = Shapes::kernels(&self.shapes).map_err(|error| error.to_string())?;
        let shapes = self.shapes.canonicalize().map_err(|error| format!("{}: {error}", self.shapes.display()))?;
        let known = self.records.as_deref().map(read_or_begin).transpose()?;
        let (program, arguments) = self.program.split_first().ok_or("a program is wanted")?;
        let told = tempfile::tempdir().map_err(|error| format!("cannot make a directory: {error}"))?;

        let mut command = Command::new(program);
        command.args(arguments).env("GALATEA_SHAPES", &shapes).env("GALATEA_TUNED", told.path()).env_remove("GALATEA_TUNE_AGAIN");
        if self.again {
            command.env("GALATEA_TUNE_AGAIN", "1");
        }
        let status = command.status().map_err(|error| format!("cannot run `{program}`: {error}"))?;
        if !status.success() {
            tell(&format!("error: `{}` ended with {status}, so no records are written", self.program.join(" ")));
            return Ok(exit_code(status));
        }

        let found = Found::read_all(told.path()).map_err(|error| format!("cannot read what was tuned: {error}"))?;
        if found.is_empty() {
            return Err(format!(
                "`{program}` tuned nothing\nhelp: it launches kernels with `#[autotune]`, of several configurations, on a GPU, for each of \
                 `galatea::tune::shapes(\"{}\")`",
                kernels.first().map_or("kernel", String::as_str)
            ));
        }
        print(&table(&found))?;
        for kernel in kernels.iter().filter(|kernel| found.iter().all(|found| found.record.of.kernel != **kernel)) {
            tell(&format!(
                "warning: `{kernel}` of {} was not tuned\nhelp: `{program}` knows no kernel of that name, or does not launch it",
                self.shapes.display()
            ));
        }
        if let (Some(file), Some(known)) = (&self.records, known) {
            // Records that the program embeds are in the file already.
            let (embedded, new): (Vec<&Found>, Vec<&Found>) = found.iter().partition(|found| found.origin == Origin::Committed);
            let embedded: Records = embedded.into_iter().map(|found| found.record.clone()).collect();
            let Updated { records, added, replaced } = known.updated(new.into_iter().map(|found| found.record.clone()), &embedded);
            write(file, &records)?;
            let count = counted(records.len(), "record");
            print(&format!("{} holds {count}: {added} new, {replaced} in the place of older ones\n", file.display()))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// The records of a file. A missing file is created, so that a program that embeds it can be compiled.
fn read_or_begin(file: &Path) -> Result<Records, String> {
    if let Some(records) = records_file::read(file)? {
        return Ok(records);
    }
    let none = Records::default();
    write(file, &none).map(|()| none)
}

/// Writes a temporary file and renames it, so that no reader sees an incomplete file. An unchanged file is not rewritten, so that cargo
/// does not rebuild.
fn write(file: &Path, records: &Records) -> Result<(), String> {
    let text = records.to_string();
    if std::fs::read_to_string(file).is_ok_and(|there| there == text) {
        return Ok(());
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || {
        std::fs::create_dir_all(folder)?;
        let mut written = tempfile::Builder::new().prefix(".galatea").tempfile_in(folder)?;
        written.write_all(text.as_bytes())?;
        #[cfg(unix)]
        {
            // Other users may read the file, unlike files of a cache.
            use std::os::unix::fs::PermissionsExt;
            written.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
        }
        written.persist(file).map_err(|failure| failure.error).map(|_| ())
    };
    write().map_err(|error| format!("cannot write `{}`: {error}", file.display()))
}

/// The results: a table for each kernel and GPU, and a total.
fn table(found: &[Found]) -> String {
    let mut text = String::new();
    let mut headings: Vec<(&str, &str, &str)> = Vec::new();
    for Found { record, .. } in found {
        let heading = (record.of.kernel.as_str(), record.of.device.as_str(), record.of.driver.as_str());
        if !headings.contains(&heading) {
            headings.push(heading);
        }
    }
    for heading in headings {
        let (kernel, device, driver) = heading;
        text += &format!("{kernel} on {device}, driver {driver}\n");
        let of = found
            .iter()
            .filter(|Found { record: kept, .. }| (kept.of.kernel.as_str(), kept.of.device.as_str(), kept.of.driver.as_str()) == heading);
        let rows = output::table(["FOR", "CHOSEN", "TAKES", "NEXT BEST", "TUNED"], of.map(row), &[]);
        rows.lines().for_each(|line| text += &format!("  {line}\n"));
    }
    let timed: Vec<Duration> = found.iter().filter(|found| found.origin == Origin::Timed).map(|found| found.took).collect();
    let seconds = timed.iter().sum::<Duration>().as_secs_f64();
    text +=
        &format!("{}: {} tuned in {seconds:.1} s, {} known already\n", counted(found.len(), "key"), timed.len(), found.len() - timed.len());
    text
}

fn row(Found { record, origin, took, shape }: &Found) -> [String; 5] {
    let median = |attempt: &Attempt| attempt.timed.map(|(median_us, _)| median_us);
    let chosen = record.chosen();
    let best = median(chosen).unwrap_or(f64::NAN);
    let others = record.attempts.iter().enumerate().filter(|(index, _)| *index != record.chosen);
    let next = others.filter_map(|(_, attempt)| Some((median(attempt)?, attempt))).min_by(|a, b| a.0.total_cmp(&b.0));
    let next = next.map_or_else(String::new, |(median, attempt)| format!("{:+.1} %  {}", (median / best - 1.0) * 100.0, config(attempt)));
    let key = || {
        let values: Vec<String> = record.of.values.iter().map(u64::to_string).collect();
        let programs = record.of.programs.map_or_else(String::new, |programs| format!(", {programs}"));
        format!("{}{programs}", values.join(" "))
    };
    let tuned = match origin {
        Origin::Timed => format!("now, in {:.2} s", took.as_secs_f64()),
        Origin::Committed => "known from the program's records".to_owned(),
        _ => "known from the disk".to_owned(),
    };
    [shape.clone().unwrap_or_else(|| format!("key {}", key())), config(chosen).to_owned(), format!("{best:.1} us"), next, tuned]
}

/// Formats the fields of a configuration: `BLOCK_SIZE: 1024, num_warps: 4`
fn config(attempt: &Attempt) -> &str {
    let config = attempt.config.as_str();
    config.strip_prefix("Config { ").and_then(|fields| fields.strip_suffix(" }")).unwrap_or(config)
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
