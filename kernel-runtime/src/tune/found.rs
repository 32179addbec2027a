//! Reports to `galatea tune`: a program writes one file for each key into a directory that an environment variable names.

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use super::{Origin, shapes};
use crate::cache::{Record, Records};

/// The environment variable that names the directory.
const VARIABLE: &str = "GALATEA_TUNED";
/// If this variable is set, every key is tuned again, even if a record exists.
const AGAIN: &str = "GALATEA_TUNE_AGAIN";

/// The result for one key, as a program under `galatea tune` reports it.
#[derive(Clone, PartialEq, Debug)]
pub struct Found {
    /// The configurations that were tried, and the chosen one.
    pub record: Record,
    /// The origin of the times.
    pub origin: Origin,
    /// The time that the launch spent on it.
    pub took: Duration,
    /// The row of shapes that was current.
    pub shape: Option<String>,
}

impl Found {
    /// Reads all reports in the directory, oldest first.
    ///
    /// # Errors
    /// The system's error if the directory cannot be read.
    pub fn read_all(directory: impl AsRef<Path>) -> std::io::Result<Vec<Found>> {
        let mut files = std::fs::read_dir(directory)?.map(|file| file.map(|file| file.path())).collect::<Result<Vec<_>, _>>()?;
        files.sort();
        // A program that was killed can leave an incomplete file; skip it.
        Ok(files.into_iter().filter_map(|file| Found::parse(&std::fs::read_to_string(file).ok()?)).collect())
    }

    fn parse(text: &str) -> Option<Found> {
        let value: Value = serde_json::from_str(text).ok()?;
        let records = Records::parse(&value["found"].to_string()).ok()?;
        let origin = ORIGINS.iter().find(|(_, name)| value["origin"] == *name)?.0;
        let took = Duration::from_secs_f64(value["took"].as_f64().filter(|took| (0.0..1e9).contains(took))?);
        let record = records.iter().next()?.clone();
        Some(Found { record, origin, took, shape: value["shape"].as_str().map(str::to_owned) })
    }
}

impl std::fmt::Display for Found {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let records: Records = [self.record.clone()].into_iter().collect();
        let records: Value = serde_json::from_str(&records.to_string()).unwrap_or_default();
        let origin = ORIGINS.iter().find_map(|(origin, name)| (*origin == self.origin).then_some(*name));
        write!(f, "{}", json!({ "found": records, "origin": origin, "took": self.took.as_secs_f64(), "shape": self.shape }))
    }
}

const ORIGINS: [(Origin, &str); 3] = [(Origin::Timed, "timed"), (Origin::Stored, "stored"), (Origin::Committed, "committed")];

/// Returns whether known keys are to be tuned again.
pub(super) fn is_asked_again() -> bool {
    std::env::var_os(AGAIN).is_some()
}

/// Writes a report, if the environment asks for reports.
pub(super) fn tell(record: impl FnOnce() -> Record, origin: Origin, took: Duration) {
    let Some(directory) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) else { return };
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let found = Found { record: record(), origin, took, shape: shapes::current() };
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let file = format!("{now:039}-{}-{}.json", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let path = Path::new(&directory).join(file);
    if let Err(error) = std::fs::write(&path, found.to_string()) {
        crate::launch::prints::show(format!("warning: {VARIABLE}: cannot write {}: {error}", path.display()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Attempt, Programs, RecordKey};

    #[test]
    fn a_written_result_is_read_as_it_was() {
        let text = str::to_owned;
        let (kernel, content, device, driver) = (text("k"), text("3f"), text("H"), text("1"));
        let of = RecordKey { kernel, content, device, driver, programs: Some(Programs::ManyWaves), values: vec![7, u64::MAX] };
        let attempts = vec![Attempt { config: text("A"), timed: Some((1.5, 3)), failed: None }];
        let record = Record { of, attempts, chosen: 0 };
        let directory = tempfile::tempdir().unwrap();
        let mut all = Vec::new();
        for (index, (origin, _)) in ORIGINS.into_iter().enumerate() {
            let shape = (index > 0).then(|| text("n = 7"));
            let found = Found { record: record.clone(), origin, took: Duration::from_millis(1250), shape };
            std::fs::write(directory.path().join(format!("{index}.json")), found.to_string()).unwrap();
            all.push(found);
        }
        std::fs::write(directory.path().join("9.json"), "{\"found\": ").unwrap();
        assert_eq!(Found::read_all(directory.path()).unwrap(), all);
    }
}
