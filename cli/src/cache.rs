//! `galatea cache`: the commands for the disk cache.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use kernel_runtime::cache::{self, Entry, Key, Kind, Records, Store};
use serde::Serialize;
use trusted_files::Refused;

use crate::output::{self, print};
use crate::records_file;

/// Print, remove, export and import what the disk cache holds
#[derive(Args)]
#[command(after_help = "Examples:
  galatea cache list --kind tuning
  galatea cache export --device H200 --out tuned/h200.json
  galatea cache clear --kind code --dry-run")]
pub(crate) struct Cache {
    /// Use this directory instead of `GALATEA_CACHE` or the user's cache directory
    #[arg(long, global = true, value_name = "DIR")]
    dir: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Print the entries, most recently used first
    List {
        #[command(flatten)]
        which: Which,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the key and the contents of an entry
    Show {
        /// Name of the entry, or the beginning of it
        name: String,
        /// Write the contents to this file instead
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Remove entries
    Clear {
        #[command(flatten)]
        which: Which,
        /// Print what would be removed, without removing it
        #[arg(short = 'n', long)]
        dry_run: bool,
    },
    /// Print the tuning records as JSON, for `import` or for a commit
    Export {
        /// Write to this file instead of standard output
        #[arg(short, long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Export only records of this kernel
        #[arg(long)]
        kernel: Option<String>,
        /// Export only records of GPUs whose names contain this text
        #[arg(long)]
        device: Option<String>,
    },
    /// Add the tuning records of files that `export` wrote
    Import {
        /// File of records
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

/// The entries that a command is about
#[derive(Args)]
struct Which {
    /// Select only entries of this kind: code, ptx or tuning
    #[arg(long)]
    kind: Option<Kind>,
    /// Select only entries of this kernel
    #[arg(long)]
    kernel: Option<String>,
}

impl Cache {
    pub(crate) fn run(&self) -> Result<ExitCode, String> {
        let store = match &self.dir {
            Some(directory) => Store::open(directory),
            None => cache::current()
                .ok_or("the caches are switched off, or this user has no home for them\nhelp: name a directory: `--dir DIR`")?,
        };
        let text = match &self.command {
            Command::List { which, json: false } => list(&store, which),
            Command::List { which, json: true } => list_as_json(&store, which),
            Command::Show { name, out } => show(&store, name, out.as_ref()),
            Command::Clear { which, dry_run } => clear(&store, which, *dry_run),
            Command::Export { out, kernel, device } => export(&store, out.as_ref(), kernel.as_deref(), device.as_deref()),
            Command::Import { files } => import(&store, files),
        }?;
        print(&text).map(|()| ExitCode::SUCCESS)
    }
}

// Each of these functions returns the text to print.

fn list(store: &Store, which: &Which) -> Result<String, String> {
    let entries = chosen(store, which)?;
    let mut text = table(&entries);
    text += &format!("{}, of {} at most, in {}\n", sum(&entries), size(store.limit_bytes()), store.directory().display());
    Ok(text)
}

/// A list as JSON: docs/caches.md documents it, and other programs read it. A change that breaks readers needs another `format`.
#[derive(Serialize)]
struct List<'s> {
    format: &'static str,
    directory: String,
    limit_bytes: u64,
    entries: Vec<ListEntry<'s>>,
}

#[derive(Serialize)]
struct ListEntry<'s> {
    name: &'s str,
    kind: String,
    bytes: u64,
    used_unix_s: u64,
    key: BTreeMap<String, String>,
}

fn list_as_json(store: &Store, which: &Which) -> Result<String, String> {
    let entries = chosen(store, which)?;
    let entries = entries.iter().map(|Entry { key, bytes, used }| ListEntry {
        name: key.name(),
        kind: key.kind().to_string(),
        bytes: *bytes,
        used_unix_s: used.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        key: key.fields().into_iter().collect(),
    });
    let list = List {
        format: "galatea cache list 1",
        directory: store.directory().display().to_string(),
        limit_bytes: store.limit_bytes(),
        entries: entries.collect(),
    };
    serde_json::to_string_pretty(&list).map(|text| text + "\n").map_err(|error| format!("cannot write the list as JSON: {error}"))
}

/// The table of entries; nothing without entries.
fn table(entries: &[Entry]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let row =
        |Entry { key, bytes, used }: &Entry| [short(key).to_owned(), key.kind().to_string(), size(*bytes), age(*used), description(key)];
    output::table(["NAME", "KIND", "SIZE", "USED", "OF"], entries.iter().map(row), &[2])
}

fn show(store: &Store, name: &str, out: Option<&PathBuf>) -> Result<String, String> {
    let all = Which { kind: None, kernel: None };
    let mut found = chosen(store, &all)?;
    found.retain(|entry| entry.key.name().starts_with(name));
    let entry = match found.as_slice() {
        [entry] => entry,
        [] => return Err(format!("no entry is called `{name}`\nhelp: `galatea cache list` shows the names")),
        several => return Err(format!("{} entries are called `{name}..`\nhelp: give more of the name", several.len())),
    };
    let key = &entry.key;
    let payload = store.get(key).ok_or("the entry was broken, and is gone")?;
    if let Some(file) = out {
        return write(file, &payload).map(|()| String::new());
    }
    let mut text = format!("name: {}\nkind: {}\nsize: {}\nused: {}\n", key.name(), key.kind(), size(entry.bytes), age(entry.used));
    for (name, value) in key.fields() {
        text += &format!("{name}: {value}\n");
    }
    text += &match String::from_utf8(payload) {
        Ok(payload) if key.kind() != Kind::Code => format!("\n{payload}"),
        _ => "\nmachine code; `--out FILE` writes it to a file, which `cuobjdump --dump-sass` reads\n".to_owned(),
    };
    Ok(text)
}

fn clear(store: &Store, which: &Which, dry_run: bool) -> Result<String, String> {
    let entries = chosen(store, which)?;
    if dry_run {
        return Ok(format!("{}{} would be removed from {}\n", table(&entries), sum(&entries), store.directory().display()));
    }
    // Without a filter, clear all files, including those that are not valid entries.
    match &which.kernel {
        None => {
            let kinds = which.kind.map_or(Kind::ALL.to_vec(), |kind| vec![kind]);
            store.clear(&kinds).map_err(|error| cannot("clear", store, &error))?;
        }
        Some(_) => entries.iter().for_each(|entry| store.remove(&entry.key)),
    }
    Ok(format!("removed {} from {}\n", sum(&entries), store.directory().display()))
}

fn export(store: &Store, out: Option<&PathBuf>, kernel: Option<&str>, device: Option<&str>) -> Result<String, String> {
    let records = Records::of_store(store).map_err(|error| cannot("read", store, &error))?;
    let wanted = records.iter().filter(|record| {
        kernel.is_none_or(|kernel| record.of.kernel == kernel) && device.is_none_or(|device| record.of.device.contains(device))
    });
    let wanted: Records = wanted.cloned().collect();
    match out {
        Some(file) => {
            write(file, wanted.to_string().as_bytes())?;
            Ok(format!("{} in {}\n", counted(wanted.len(), "record"), file.display()))
        }
        None => Ok(wanted.to_string()),
    }
}

fn import(store: &Store, files: &[PathBuf]) -> Result<String, String> {
    let mut told = String::new();
    for file in files {
        let records = records_file::read(file)?.ok_or_else(|| format!("cannot read `{}`: there is no such file", file.display()))?;
        records.keep_in(store).map_err(|error| cannot("write to", store, &error))?;
        told += &format!("{} from {}\n", counted(records.len(), "record"), file.display());
    }
    Ok(told)
}

fn chosen(store: &Store, which: &Which) -> Result<Vec<Entry>, String> {
    let mut entries = store.entries().map_err(|error| cannot("read", store, &error))?;
    entries.retain(|entry| {
        which.kind.is_none_or(|kind| entry.key.kind() == kind)
            && which.kernel.as_ref().is_none_or(|kernel| entry.key.field("kernel").as_ref() == Some(kernel))
    });
    Ok(entries)
}

fn write(file: &PathBuf, bytes: &[u8]) -> Result<(), String> {
    std::fs::write(file, bytes).map_err(|error| format!("cannot write `{}`: {error}", file.display()))
}

fn cannot(what: &str, store: &Store, error: &std::io::Error) -> String {
    let help = Refused::of(error).map_or_else(String::new, |refused| format!("\nhelp: {}", refused.help()));
    format!("cannot {what} {}: {error}{help}", store.directory().display())
}

/// A prefix of the name, long enough to distinguish entries.
fn short(key: &Key) -> &str {
    key.name().get(..12).unwrap_or(key.name())
}

/// The key of an entry in one line.
fn description(key: &Key) -> String {
    let field = |name: &str| key.field(name).unwrap_or_default();
    let kernel = field("kernel");
    match key.kind() {
        Kind::Code => format!("{kernel}, for {}, driver {}", field("architecture"), field("driver")),
        Kind::Ptx => {
            let parts = [kernel, field("values"), field("schedule")];
            let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            format!("{}, for {}", parts.join(", "), field("target"))
        }
        Kind::Tuning => {
            format!("{kernel}, key {}, {}, on {}, driver {}", field("key"), programs(&field("programs")), field("device"), field("driver"))
        }
    }
}

/// Formats the class of the number of programs, such as `many waves`; records of the first format have none.
fn programs(field: &str) -> &str {
    if field == "any" { "any number of programs" } else { field }
}

/// Formats the total of a list: `3 entries, 4.0 KiB`.
fn sum(entries: &[Entry]) -> String {
    let bytes = entries.iter().map(|entry| entry.bytes).sum();
    let count = if entries.len() == 1 { "1 entry".to_owned() } else { format!("{} entries", entries.len()) };
    format!("{count}, {}", size(bytes))
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

fn age(used: SystemTime) -> String {
    let seconds = SystemTime::now().duration_since(used).unwrap_or_default().as_secs();
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} ago", counted(seconds as usize / 60, "minute")),
        3600..86_400 => format!("{} ago", counted(seconds as usize / 3600, "hour")),
        _ => format!("{} ago", counted(seconds as usize / 86_400, "day")),
    }
}

fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn sizes_and_ages_are_for_people() {
        let sizes = [0, 1023, 1024, 1536, 1 << 20, 5 << 30].map(size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "1.0 MiB", "5.0 GiB"]);
        let ago = |seconds| age(SystemTime::now() - Duration::from_secs(seconds));
        let ages = [0, 61, 7300, 86_400, 10 * 86_400].map(ago);
        assert_eq!(ages, ["just now", "1 minute ago", "2 hours ago", "1 day ago", "10 days ago"]);
        assert_eq!(age(SystemTime::now() + Duration::from_secs(100)), "just now");
    }
}
