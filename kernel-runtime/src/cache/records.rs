//! Tuning records in a store, and as JSON in files that a team commits.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::process::{tell, usable};
use super::record::{FORMAT, FORMAT_WITHOUT_PROGRAMS};
use super::{Attempt, Key, Kind, Lock, Programs, Record, RecordKey, Store};

/// The records of a file. `galatea cache export` writes such files, and `#[autotune]` can embed them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Records(Vec<Record>);

/// The error for a text that is not a file of records.
#[derive(Debug, thiserror::Error)]
#[error("these are no records of tuning: {reason}\nhelp: `galatea cache export` writes them")]
pub struct RecordsError {
    reason: String,
}

impl Records {
    /// Parses the text of a file.
    ///
    /// ```
    /// use kernel_runtime::cache::Records;
    ///
    /// let text = r#"{ "format": "galatea tuning records 2", "records": [{
    ///     "kernel": "add", "content": "3f1c", "device": "NVIDIA H200", "driver": "13.0", "programs": "a few waves", "key": [4096],
    ///     "chosen": "Config { BLOCK_SIZE: 1024, num_warps: 4, num_stages: 8 }",
    ///     "tried": [{ "config": "Config { BLOCK_SIZE: 1024, num_warps: 4, num_stages: 8 }", "median_us": 12.5, "samples": 20 }]
    /// }] }"#;
    /// let records = Records::parse(text)?;
    /// assert_eq!(records.iter().next().unwrap().chosen().config, "Config { BLOCK_SIZE: 1024, num_warps: 4, num_stages: 8 }");
    /// assert_eq!(Records::parse(&records.to_string())?, records);
    /// # Ok::<(), kernel_runtime::cache::RecordsError>(())
    /// ```
    ///
    /// # Errors
    /// [`RecordsError`] describes the first record that is invalid.
    pub fn parse(text: &str) -> Result<Records, RecordsError> {
        let wrong = |reason: String| RecordsError { reason };
        let value: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if ![FORMAT, FORMAT_WITHOUT_PROGRAMS].iter().any(|format| value["format"] == *format) {
            return Err(wrong(format!("the field `format` is not `{FORMAT}`")));
        }
        let records = value["records"].as_array().ok_or_else(|| wrong("there is no list `records`".to_owned()))?;
        let read = |(index, record): (usize, &Value)| {
            read(record).map_err(|field| wrong(format!("record {index} has no field `{field}`, or another value than belongs there")))
        };
        records.iter().enumerate().map(read).collect::<Result<_, _>>().map(Records)
    }

    /// All records, sorted by kernel, device and key.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.0.iter()
    }

    /// The number of records.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The record of this key. A record of the same driver is preferred; otherwise the record of any driver is returned, as the best known
    /// choice. Records without a number of programs come after all records with one.
    pub fn find(&self, of: &RecordKey) -> Option<&Record> {
        let fits = |record: &Record, programs: Option<Programs>| {
            let RecordKey { kernel, content, device, driver: _, programs: own, values } = &record.of;
            (kernel, content, device, values) == (&of.kernel, &of.content, &of.device, &of.values) && *own == programs
        };
        let any_driver = |programs| self.0.iter().filter(move |record| fits(record, programs));
        let best = |programs| any_driver(programs).find(|record| record.of.driver == of.driver).or_else(|| any_driver(programs).next());
        best(of.programs).or_else(|| best(None))
    }

    /// Merges newer records, given in the order in which they were made, into these. A newer record replaces each record of the same kernel
    /// name, GPU, key and number of programs that has the same content, with any driver, or that is from an older version of the kernel. Of
    /// several newer records with the same content, the last one counts.
    ///
    /// Kernels of different modules can have the same name. Only the content distinguishes them, and the content also distinguishes a
    /// kernel from its older versions. So a record with other content may be of another kernel, and then stays: if `self` has a record of
    /// the newer content, too, or if `in_use`, the records that the program embeds, has one of the older content. Otherwise the kernel was
    /// edited. A record without a number of programs is replaced by the first newer one that has a number; for other numbers the key is
    /// tuned again.
    #[must_use]
    pub fn updated(self, newer: impl IntoIterator<Item = Record>, in_use: &Records) -> Updated {
        /// The kernel's name, the GPU and the key.
        fn identity(record: &Record) -> (&str, &str, &[u64]) {
            (&record.of.kernel, &record.of.device, &record.of.values)
        }
        let same = |a: &Record, b: &Record| identity(a) == identity(b) && a.of.programs == b.of.programs && a.of.content == b.of.content;
        let is_older = |old: &Record, new: &Record| {
            let is_of_another_kernel = || self.0.iter().any(|one| same(one, new)) || in_use.iter().any(|one| same(one, old));
            let is_as_many = old.of.programs == new.of.programs || old.of.programs.is_none();
            identity(old) == identity(new) && is_as_many && (old.of.content == new.of.content || !is_of_another_kernel())
        };
        let mut folded: Vec<Record> = Vec::new();
        for record in newer {
            folded.retain(|before| !same(before, &record));
            folded.push(record);
        }
        let replaced = folded.iter().filter(|new| self.0.iter().any(|old| is_older(old, new))).count();
        let added = folded.len() - replaced;
        let kept: Vec<&Record> = self.0.iter().filter(|old| !folded.iter().any(|new| is_older(old, new))).collect();
        let records = kept.into_iter().chain(&folded).cloned().collect();
        Updated { records, added, replaced }
    }

    /// All records of a store.
    ///
    /// # Errors
    /// The system's error for its directory.
    pub fn of_store(store: &Store) -> std::io::Result<Records> {
        let entries = store.entries()?.into_iter().filter(|entry| entry.key.kind() == Kind::Tuning);
        Ok(entries.filter_map(|entry| store.get(&entry.key).and_then(read_payload)).collect())
    }

    /// Stores all records. They replace those with the same keys.
    ///
    /// # Errors
    /// The error of the first record that cannot be stored.
    pub fn keep_in(&self, store: &Store) -> std::io::Result<()> {
        self.0.iter().try_for_each(|record| store.put(&record.of.key(), record.to_string().as_bytes()))
    }
}

/// The result of [`Records::updated`].
#[derive(Clone, PartialEq, Debug)]
pub struct Updated {
    /// The merged records.
    pub records: Records,
    /// The number of newer records that replaced none.
    pub added: usize,
    /// The number of newer records that replaced older ones.
    pub replaced: usize,
}

impl FromIterator<Record> for Records {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Records {
        let mut records: Vec<Record> = records.into_iter().collect();
        // Equal records give equal texts, so that a diff of the file shows only changes.
        records.sort_by(|a, b| a.of.sorted().cmp(&b.of.sorted()));
        Records(records)
    }
}

/// Formats the text of a file.
impl std::fmt::Display for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let records: Vec<Value> = self.0.iter().map(write).collect();
        writeln!(f, "{:#}", json!({ "format": FORMAT, "records": records }))
    }
}

/// Formats the record as JSON.
impl std::fmt::Display for Record {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{:#}", write(self))
    }
}

impl RecordKey {
    fn key(&self) -> Key {
        let RecordKey { kernel, content, device, driver, programs, values } = self;
        let values: Vec<String> = values.iter().map(u64::to_string).collect();
        let programs = programs.map_or_else(|| "any".to_owned(), |programs| programs.to_string());
        let (values, programs) = (values.join(" "), programs.as_str());
        let fields: [(&str, &str); 6] =
            [("kernel", kernel), ("content", content), ("device", device), ("driver", driver), ("programs", programs), ("key", &values)];
        Key::new(Kind::Tuning, &fields)
    }

    fn sorted(&self) -> (&str, &str, &[u64], Option<Programs>, &str, &str) {
        (&self.kernel, &self.device, &self.values, self.programs, &self.content, &self.driver)
    }
}

/// The record of this key in the process's store; otherwise one without a number of programs, which comes from a file of the first format.
pub(crate) fn find(of: &RecordKey) -> Option<Record> {
    let store = usable()?;
    let find = |of: &RecordKey| read_payload(store.get(&of.key())?).filter(|record| record.of == *of);
    find(of).or_else(|| find(&RecordKey { programs: None, ..of.clone() }))
}

/// All records of the process's store.
pub(crate) fn all() -> Vec<Record> {
    usable().and_then(|store| Records::of_store(&store).ok()).map_or_else(Vec::new, |Records(records)| records)
}

/// Stores a record in the process's store.
pub(crate) fn save(record: &Record) {
    if let Some(store) = usable()
        && let Err(error) = store.put(&record.of.key(), record.to_string().as_bytes())
    {
        tell(&error);
    }
}

/// Locks this key for tuning. Another process that wants to tune the key waits and then finds the record. The holder must look for the
/// record once more.
pub(crate) fn lock(of: &RecordKey) -> Option<Lock> {
    usable()?.lock(&of.key(), TUNING)
}

/// Tuning takes about a second; with very slow kernels up to a minute.
const TUNING: Duration = Duration::from_secs(60);

fn write(record: &Record) -> Value {
    let Record { of: RecordKey { kernel, content, device, driver, programs, values }, attempts, .. } = record;
    let tried: Vec<Value> = attempts.iter().map(write_attempt).collect();
    let chosen = &record.chosen().config;
    let mut value = json!({ "kernel": kernel, "content": content, "device": device, "driver": driver, "key": values, "chosen": chosen, "tried": tried });
    if let Some(programs) = programs {
        value["programs"] = programs.to_string().into();
    }
    value
}

fn write_attempt(Attempt { config, timed, failed }: &Attempt) -> Value {
    let mut fields = Map::from_iter([("config".to_owned(), config.as_str().into())]);
    if let Some((median_us, samples)) = timed {
        // Events do not resolve a nanosecond.
        fields.insert("median_us".to_owned(), ((median_us * 1000.0).round() / 1000.0).into());
        fields.insert("samples".to_owned(), (*samples).into());
    }
    if let Some(reason) = failed {
        fields.insert("failed".to_owned(), reason.as_str().into());
    }
    Value::Object(fields)
}

fn read_payload(payload: Vec<u8>) -> Option<Record> {
    read(&serde_json::from_slice(&payload).ok()?).ok()
}

/// The record, or the name of the invalid field.
fn read(value: &Value) -> Result<Record, &'static str> {
    let text = |name: &'static str| value[name].as_str().map(str::to_owned).ok_or(name);
    let list = |name: &'static str| value[name].as_array().ok_or(name);
    let values = list("key")?.iter().map(|value| value.as_u64().ok_or("key")).collect::<Result<_, _>>()?;
    let attempts = list("tried")?.iter().map(|attempt| read_attempt(attempt).ok_or("tried")).collect::<Result<Vec<_>, _>>()?;
    let chosen = text("chosen")?;
    let chosen = attempts.iter().position(|attempt| attempt.config == chosen).ok_or("chosen")?;
    let programs = match &value["programs"] {
        Value::Null => None,
        programs => Some(programs.as_str().and_then(Programs::parse).ok_or("programs")?),
    };
    let (kernel, content, device, driver) = (text("kernel")?, text("content")?, text("device")?, text("driver")?);
    let of = RecordKey { kernel, content, device, driver, programs, values };
    Ok(Record { of, attempts, chosen })
}

fn read_attempt(value: &Value) -> Option<Attempt> {
    let timed = value["median_us"].as_f64().zip(value["samples"].as_u64().and_then(|samples| usize::try_from(samples).ok()));
    let failed = value["failed"].as_str().map(str::to_owned);
    Some(Attempt { config: value["config"].as_str()?.to_owned(), timed, failed })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kernel: &str, driver: &str, values: &[u64]) -> Record {
        let of = RecordKey {
            kernel: kernel.into(),
            content: "3f1c".into(),
            device: "NVIDIA H200".into(),
            driver: driver.into(),
            programs: Some(Programs::FewWaves),
            values: values.to_vec(),
        };
        let attempt =
            |config: &str, timed, failed: Option<&str>| Attempt { config: config.into(), timed, failed: failed.map(str::to_owned) };
        let attempts = vec![
            attempt("Config { B: 64 }", None, Some("not enough \"shared\" memory\n")),
            attempt("Config { B: 128 }", Some((12.346, 20)), None),
            attempt("Config { B: 256 }", None, None),
        ];
        Record { of, attempts, chosen: 1 }
    }

    #[test]
    fn a_file_of_records_reads_as_it_was_written_and_in_one_order() {
        let [a, b, c] = [record("add", "13.0", &[1, u64::MAX]), record("add", "13.0", &[2]), record("mul", "13.0", &[1])];
        let records: Records = [c.clone(), a.clone(), b.clone()].into_iter().collect();
        assert!(records.iter().eq([&a, &b, &c]));
        assert_eq!(Records::parse(&records.to_string()).unwrap(), records);
        assert_eq!(records.to_string(), [b, c, a].into_iter().collect::<Records>().to_string());
    }

    #[test]
    fn a_committed_record_serves_other_drivers_and_no_other_kernel_or_device() {
        let [old, new] = [record("add", "12.8", &[1]), record("add", "13.0", &[1])];
        let records: Records = [new.clone(), old.clone()].into_iter().collect();
        let find = |change: &dyn Fn(&mut RecordKey)| {
            let mut of = old.of.clone();
            change(&mut of);
            records.find(&of)
        };
        assert_eq!(find(&|_| ()), Some(&old));
        assert_eq!(find(&|of| of.driver = "13.0".into()), Some(&new));
        assert!(find(&|of| of.driver = "14.0".into()).is_some());
        assert_eq!(find(&|of| of.content = "edited".into()), None);
        assert_eq!(find(&|of| of.device = "NVIDIA A100".into()), None);
        assert_eq!(find(&|of| of.values = vec![2]), None);
    }

    fn for_programs(programs: Option<Programs>, record: Record) -> Record {
        Record { of: RecordKey { programs, ..record.of }, ..record }
    }

    #[test]
    fn a_record_is_for_so_many_programs_or_as_in_the_first_format_for_any() {
        let few = record("add", "13.0", &[1]);
        let any = for_programs(None, record("add", "12.8", &[1]));
        let text = [any.clone()].into_iter().collect::<Records>().to_string();
        assert!(!text.contains("programs"), "{text}");
        let first_format = text.replace("records 2", "records 1");
        assert_eq!(Records::parse(&first_format).unwrap().iter().collect::<Vec<_>>(), [&any]);

        let both: Records = [few.clone(), any.clone()].into_iter().collect();
        let of = |programs| for_programs(Some(programs), few.clone()).of;
        assert_eq!(Programs::ALL.map(|programs| both.find(&of(programs)).unwrap()), [&any, &few, &any]);
        let alone: Records = [few.clone()].into_iter().collect();
        assert_eq!(Programs::ALL.map(|programs| alone.find(&of(programs))), [None, Some(&few), None]);

        // A newer record replaces those of its own number of programs and those without one.
        let many = for_programs(Some(Programs::ManyWaves), few.clone());
        assert_eq!(updated(&[&few], &[&many], &[]), (vec![few.clone(), many.clone()], 1, 0));
        assert_eq!(updated(&[&any, &few], &[&many], &[]), (vec![few.clone(), many.clone()], 0, 1));
        assert_eq!(updated(&[&many], &[&many, &few], &[]), (vec![few, many], 1, 1));
    }

    fn of_content(content: &str, record: Record) -> Record {
        Record { of: RecordKey { content: content.into(), ..record.of }, ..record }
    }

    fn updated(old: &[&Record], newer: &[&Record], in_use: &[&Record]) -> (Vec<Record>, usize, usize) {
        let records = |list: &[&Record]| list.iter().copied().cloned().collect::<Records>();
        let Updated { records: Records(all), added, replaced } = records(old).updated(newer.iter().copied().cloned(), &records(in_use));
        (all, added, replaced)
    }

    #[test]
    fn a_newer_record_replaces_all_older_ones() {
        let [one, two, three] = ["12.8", "13.0", "13.1"].map(|driver| record("add", driver, &[1]));
        let [other, elsewhere] = [record("add", "13.0", &[2]), record("mul", "13.0", &[1])];
        // There are records of two drivers; one new record replaces both.
        assert_eq!(updated(&[&one, &two, &elsewhere], &[&three], &[]), (vec![three.clone(), elsewhere.clone()], 0, 1));
        assert_eq!(updated(&[&one], &[&three, &other], &[]), (vec![three.clone(), other.clone()], 1, 1));
        assert_eq!(updated(&[], &[], &[]), (vec![], 0, 0));
        assert_eq!(updated(&[&one, &two], &[], &[]), (vec![one.clone(), two.clone()], 0, 0));
        // Two processes of a program tune the same key; the later record is kept.
        assert_eq!(updated(&[], &[&three, &other, &one], &[]), (vec![one.clone(), other.clone()], 2, 0));
        let edited = of_content("edited", three.clone());
        assert_eq!(updated(&[&one, &two], &[&edited], &[]), (vec![edited], 0, 1));
    }

    #[test]
    fn kernels_of_one_name_keep_their_records() {
        let here = record("add", "13.0", &[1]);
        let there = of_content("there", here.clone());
        let again = Record { chosen: 0, ..here.clone() };
        let edited = of_content("edited", here.clone());
        // Both kernels are tuned.
        assert_eq!(updated(&[], &[&here, &there], &[]), (vec![here.clone(), there.clone()], 2, 0));
        assert_eq!(updated(&[&here, &there], &[&there, &again], &[]), (vec![again.clone(), there.clone()], 0, 2));
        // One kernel is tuned and unchanged.
        assert_eq!(updated(&[&here, &there], &[&again], &[]), (vec![again, there.clone()], 0, 1));
        // One kernel is tuned for the first time or edited, while the program embeds the other's record.
        assert_eq!(updated(&[&there], &[&edited], &[&there]), (vec![edited.clone(), there.clone()], 1, 0));
        assert_eq!(updated(&[&here, &there], &[&edited], &[&there]), (vec![edited.clone(), there.clone()], 0, 1));
        // If the program does not embed the other's record, the other cannot be told from an older version.
        assert_eq!(updated(&[&here, &there], &[&edited], &[]), (vec![edited], 0, 1));
    }

    #[test]
    fn an_invalid_record_is_an_error() {
        let good = [record("add", "13.0", &[1])].into_iter().collect::<Records>().to_string();
        let cases = [
            ("", "EOF"),
            ("{}", "`format`"),
            (&good.replace("records 2", "records 3"), "`format`"),
            (&good.replace("a few waves", "a few"), "`programs`"),
            (&good.replace("\"records\"", "\"others\""), "`records`"),
            (&good.replace("\"device\"", "\"gpu\""), "record 0 has no field `device`"),
            (&good.replacen("Config { B: 128 }", "Config { B: 512 }", 1), "`chosen`"),
            (&good.replace("18446744073709551615", "-1").replacen("      1\n", "      -1\n", 1), "`key`"),
        ];
        for (text, part) in cases {
            let error = Records::parse(text).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("help: "), "{text}: {error}");
        }
    }

    #[test]
    fn a_store_gives_back_the_record_of_its_own_key_only() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path());
        let records: Records = [record("add", "13.0", &[1]), record("add", "13.1", &[1])].into_iter().collect();
        records.keep_in(&store).unwrap();
        assert_eq!(Records::of_store(&store).unwrap(), records);
        assert!(store.get(&record("add", "14.0", &[1]).of.key()).is_none());
    }
}
