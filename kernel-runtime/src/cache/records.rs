//! Records of tuning in a store, and as JSON in files that a team commits.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::process::{tell, usable};
use super::record::{FORMAT, FORMAT_WITHOUT_PROGRAMS};
use super::{Attempt, Key, Kind, Lock, Programs, Record, RecordKey, Store};

/// Records from a file: what `galatea cache export` writes, and `#[autotune]` may embed.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Records(Vec<Record>);

/// A text is no file of records.
#[derive(Debug, thiserror::Error)]
#[error("these are no records of tuning: {reason}\nhelp: `galatea cache export` writes them")]
pub struct RecordsError {
    reason: String,
}

impl Records {
    /// The records of a file's text.
    ///
    /// ```
    /// use kernel_runtime::cache::Records;
    ///
    /// let text = r#"{ "format": "galatea tuning records 2", "records": [{
    ///     "kernel": "add", "content": "3f1c", "device": "NVIDIA H200", "driver": "13.0", "programs": "a few waves", "key": [4096],
    ///     "chosen": "Config { BLOCK_SIZE: 1024, num_warps: 4, num_stages: 3 }",
    ///     "tried": [{ "config": "Config { BLOCK_SIZE: 1024, num_warps: 4, num_stages: 3 }", "median_us": 12.5, "samples": 20 }]
    /// }] }"#;
    /// let records = Records::parse(text)?;
    /// assert_eq!(records.iter().next().unwrap().chosen().config, "Config { BLOCK_SIZE: 1024, num_warps: 4, num_stages: 3 }");
    /// assert_eq!(Records::parse(&records.to_string())?, records);
    /// # Ok::<(), kernel_runtime::cache::RecordsError>(())
    /// ```
    ///
    /// # Errors
    /// [`RecordsError`] says what is wrong with the first record that is.
    pub fn parse(text: &str) -> Result<Records, RecordsError> {
        let wrong = |reason: String| RecordsError { reason };
        let value: Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if ![FORMAT, FORMAT_WITHOUT_PROGRAMS].iter().any(|format| value["format"] == *format) {
            return Err(wrong(format!("the field `format` is not `{FORMAT}`")));
        }
        let records = value["records"].as_array().ok_or_else(|| wrong("there is no list `records`".to_owned()))?;
        let read = |(place, record): (usize, &Value)| {
            read(record).map_err(|field| wrong(format!("record {place} has no field `{field}`, or another value than belongs there")))
        };
        records.iter().enumerate().map(read).collect::<Result<_, _>>().map(Records)
    }

    /// All of them, by kernel, device and key.
    pub fn iter(&self) -> impl Iterator<Item = &Record> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The record of this key, of the same driver if there is one, else of any: what was fast with one driver is the best that is known for the next.
    /// A record that does not say for how many programs it is comes after all that do.
    pub fn find(&self, of: &RecordKey) -> Option<&Record> {
        let fits = |record: &Record, programs: Option<Programs>| {
            let RecordKey { kernel, content, device, driver: _, programs: own, values } = &record.of;
            (kernel, content, device, values) == (&of.kernel, &of.content, &of.device, &of.values) && *own == programs
        };
        let any_driver = |programs| self.0.iter().filter(move |record| fits(record, programs));
        let best = |programs| any_driver(programs).find(|record| record.of.driver == of.driver).or_else(|| any_driver(programs).next());
        best(of.programs).or_else(|| best(None))
    }

    /// These with newer ones, in the order in which they were made. A newer one takes the place of those that are of the same kernel, GPU and key, and were
    /// found with another driver, or of an older version of the kernel, and of a newer one that is of the same.
    ///
    /// Kernels of different modules may have one name; what tells them apart, their content, tells a kernel from its older versions, too. So a record
    /// of other content stays where nothing says that the kernel was edited: if these have a record of the newer one's content as well, or if
    /// `in_use`, which are records that the program runs, have one of its own. A record that does not say for how many programs it is gives way to the
    /// first newer one that does: for other numbers the key is tuned again.
    #[must_use]
    pub fn updated(self, newer: impl IntoIterator<Item = Record>, in_use: &Records) -> Updated {
        /// The kernel by its name, GPU and key.
        fn place(record: &Record) -> (&str, &str, &[u64]) {
            (&record.of.kernel, &record.of.device, &record.of.values)
        }
        let same = |a: &Record, b: &Record| place(a) == place(b) && a.of.programs == b.of.programs && a.of.content == b.of.content;
        let is_older = |old: &Record, new: &Record| {
            let is_of_another_kernel = || self.0.iter().any(|one| same(one, new)) || in_use.iter().any(|one| same(one, old));
            let is_as_many = old.of.programs == new.of.programs || old.of.programs.is_none();
            place(old) == place(new) && is_as_many && (old.of.content == new.of.content || !is_of_another_kernel())
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
    /// What the system says of its directory.
    pub fn of_store(store: &Store) -> std::io::Result<Records> {
        let entries = store.entries()?.into_iter().filter(|entry| entry.key.kind() == Kind::Tuning);
        Ok(entries.filter_map(|entry| store.get(&entry.key).and_then(read_payload)).collect())
    }

    /// Keeps all of them in a store, in the place of those that it has of the same keys.
    ///
    /// # Errors
    /// Why one could not be kept.
    pub fn keep_in(&self, store: &Store) -> std::io::Result<()> {
        self.0.iter().try_for_each(|record| store.put(&record.of.key(), record.to_string().as_bytes()))
    }
}

/// What [`Records::updated`] made, and of how many records.
#[derive(Clone, PartialEq, Debug)]
pub struct Updated {
    /// The records.
    pub records: Records,
    /// How many of the newer ones are of what there was no record of.
    pub added: usize,
    /// How many of them are in the place of older ones.
    pub replaced: usize,
}

impl FromIterator<Record> for Records {
    fn from_iter<I: IntoIterator<Item = Record>>(records: I) -> Records {
        let mut records: Vec<Record> = records.into_iter().collect();
        // The same text for the same records, so that a diff of it is what changed.
        records.sort_by(|a, b| a.of.sorted().cmp(&b.of.sorted()));
        Records(records)
    }
}

/// The text of a file.
impl std::fmt::Display for Records {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let records: Vec<Value> = self.0.iter().map(write).collect();
        writeln!(f, "{:#}", json!({ "format": FORMAT, "records": records }))
    }
}

/// The record as JSON.
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

/// The record of this key in the process's store, else one that does not say for how many programs it is: from a file of the first format.
pub(crate) fn find(of: &RecordKey) -> Option<Record> {
    let store = usable()?;
    let find = |of: &RecordKey| read_payload(store.get(&of.key())?).filter(|record| record.of == *of);
    find(of).or_else(|| find(&RecordKey { programs: None, ..of.clone() }))
}

/// Keeps a record in the process's store.
pub(crate) fn save(record: &Record) {
    if let Some(store) = usable()
        && let Err(error) = store.put(&record.of.key(), record.to_string().as_bytes())
    {
        tell(&error);
    }
}

/// The right to tune this key: another process that wants to waits, and finds the record. Whoever gets it looks once more.
pub(crate) fn lock(of: &RecordKey) -> Option<Lock> {
    usable()?.lock(&of.key(), TUNING)
}

/// Tuning takes a second, or with very slow kernels a minute.
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
        // A nanosecond is below what an event can tell.
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

/// The record, or the name of a field that is wrong.
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

        // A newer record is of its own number, and of those that name none.
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
    fn a_newer_record_takes_the_place_of_all_older_ones() {
        let [one, two, three] = ["12.8", "13.0", "13.1"].map(|driver| record("add", driver, &[1]));
        let [other, elsewhere] = [record("add", "13.0", &[2]), record("mul", "13.0", &[1])];
        // Two drivers: one record comes for both.
        assert_eq!(updated(&[&one, &two, &elsewhere], &[&three], &[]), (vec![three.clone(), elsewhere.clone()], 0, 1));
        assert_eq!(updated(&[&one], &[&three, &other], &[]), (vec![three.clone(), other.clone()], 1, 1));
        assert_eq!(updated(&[], &[], &[]), (vec![], 0, 0));
        assert_eq!(updated(&[&one, &two], &[], &[]), (vec![one.clone(), two.clone()], 0, 0));
        // Two processes of a program tune the same key: the later one counts.
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
        // Both are tuned.
        assert_eq!(updated(&[], &[&here, &there], &[]), (vec![here.clone(), there.clone()], 2, 0));
        assert_eq!(updated(&[&here, &there], &[&there, &again], &[]), (vec![again.clone(), there.clone()], 0, 2));
        // One is, and is as it was.
        assert_eq!(updated(&[&here, &there], &[&again], &[]), (vec![again, there.clone()], 0, 1));
        // One is, for the first time or edited, while the program runs the other.
        assert_eq!(updated(&[&there], &[&edited], &[&there]), (vec![edited.clone(), there.clone()], 1, 0));
        assert_eq!(updated(&[&here, &there], &[&edited], &[&there]), (vec![edited.clone(), there.clone()], 0, 1));
        // If it does not run the other, nothing tells that from an older version.
        assert_eq!(updated(&[&here, &there], &[&edited], &[]), (vec![edited], 0, 1));
    }

    #[test]
    fn what_is_no_record_is_told_and_never_chosen() {
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
