//! Results of tuning for packages: of all known records, those that the recorded launches of a kernel use on any GPU.

use super::KeyPart;
use super::recall::description;
use super::recorded::{RecordedTuning, TunerParts};
use super::verify::Verify;
use crate::cache::{self, Record};
use crate::kernel::Kernel;
use crate::ops::recorder::RecordedLaunch;

/// Records of tuning, of which a package takes those of its launches. There are none without the feature `cache`.
#[derive(Clone, Debug, Default)]
pub struct KnownRecords(Vec<Record>);

impl KnownRecords {
    /// The records of this machine: those in the store of the process, and those that the process made.
    pub fn of_machine() -> KnownRecords {
        KnownRecords(cache::all_records().into_iter().chain(super::recall::of_process::all()).collect())
    }

    /// All records.
    pub fn all(&self) -> &[Record] {
        &self.0
    }

    /// The text of a file with those that launches of one kernel use, and that the files of `records` do not replace. Empty if there are none. A kernel of a
    /// package also has those of its package.
    pub fn of_launches(&self, launches: &[&RecordedLaunch]) -> String {
        let mut used: Vec<Record> = Vec::new();
        for launch in launches {
            let Some((tuning, parts)) = launch.tuning().and_then(|tuning| Some((tuning, tuning.parts().ok()?))) else { continue };
            let kernel = launch.of_kernel();
            let (contents, packed) = (contents(kernel, tuning, parts), read(kernel.packed_records()));
            for record in self.0.iter().chain(&packed) {
                let is_used = record.of.kernel == kernel.name()
                    && contents.contains(&record.of.content)
                    && has_key(&record.of.values, tuning, parts)
                    && !used.iter().any(|known| known.of == record.of)
                    && !is_replaced(record, parts);
                if is_used {
                    used.push(record.clone());
                }
            }
        }
        if used.is_empty() { String::new() } else { write(used) }
    }
}

/// The contents that keys of records have for these configurations, on GPUs of each target, whether all configurations were built or not.
fn contents(kernel: &Kernel, tuning: &RecordedTuning, parts: &TunerParts) -> Vec<String> {
    let key: Vec<KeyPart> = parts.key.iter().map(|part| (*part).into()).collect();
    let verify = parts.verifies.then(|| Verify { by: None, rtol: parts.rtol.map(f64::from_bits) });
    let text = description(tuning.configs().iter().map(|config| &*config.text), &key, kernel.facts(), verify);
    let of_source = format!("{text}{}", kernel.source());
    let targets = kernel.built_parts(|_| false).contents;
    let of_target = |(_, content): &(String, String)| [&text, &of_source].map(|text| cache::hash(&[content.as_bytes(), text.as_bytes()]));
    targets.iter().flat_map(of_target).collect()
}

/// Whether the values of a tuning key end with the types and constants of a launch. Only facts come behind these, see `AutotunedLaunch::tuning_key`.
fn has_key(values: &[u64], tuning: &RecordedTuning, parts: &TunerParts) -> bool {
    const UNPRUNED_AND_UNALIGNED: usize = 3;
    values.get(UNPRUNED_AND_UNALIGNED + parts.key.len()..).is_some_and(|key| key.starts_with(tuning.key()))
}

#[cfg(feature = "cache")]
mod texts {
    use super::KnownRecords;
    use crate::cache::{Record, Records};
    use crate::tune::recorded::TunerParts;

    impl KnownRecords {
        /// The records of a file, such as `galatea tune` and `galatea cache export` write.
        ///
        /// # Errors
        /// The reason why the text is no such file.
        pub fn parse(text: &str) -> Result<KnownRecords, String> {
            Records::parse(text).map(|records| KnownRecords(records.iter().cloned().collect())).map_err(|error| error.to_string())
        }
    }

    /// The records of a text that a package has. A damaged text has none, as for launches.
    pub(super) fn read(text: &str) -> Vec<Record> {
        Records::parse(text).map_or_else(|_| Vec::new(), |records| records.iter().cloned().collect())
    }

    pub(super) fn write(records: Vec<Record>) -> String {
        records.into_iter().collect::<Records>().to_string()
    }

    /// Whether a launch finds another record first: one of the files that the program names.
    pub(super) fn is_replaced(record: &Record, parts: &TunerParts) -> bool {
        parts.records.iter().any(|(_, text)| Records::parse(text).is_ok_and(|records| records.find(&record.of).is_some()))
    }
}

#[cfg(not(feature = "cache"))]
mod texts {
    use super::KnownRecords;
    use crate::cache::Record;
    use crate::tune::recorded::TunerParts;

    impl KnownRecords {
        /// No records: without the feature `cache`, nothing reads them.
        ///
        /// # Errors
        /// None.
        pub fn parse(_: &str) -> Result<KnownRecords, String> {
            Ok(KnownRecords::default())
        }
    }

    pub(super) fn read(_: &str) -> Vec<Record> {
        Vec::new()
    }

    pub(super) fn write(_: Vec<Record>) -> String {
        String::new()
    }

    pub(super) fn is_replaced(_: &Record, _: &TunerParts) -> bool {
        false
    }
}

use texts::{is_replaced, read, write};
