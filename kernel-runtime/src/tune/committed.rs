//! Committed records: files that a team commits and that `#[autotune(records = "..")]` embeds in the program.
//!
//! A record applies if it matches the kernel's PTX without its spans, the configurations, the GPU and the key. The driver may differ. A
//! file that cannot be parsed or belongs to an edited kernel is ignored; with `GALATEA_PRINT_TUNING`, a note says so.

#[cfg(feature = "cache")]
use std::sync::OnceLock;

#[cfg(feature = "cache")]
use crate::cache::Records;
use crate::cache::{RECORDS_FORMAT, RECORDS_FORMAT_WITHOUT_PROGRAMS, Record, RecordKey};

/// An embedded file of records.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct RecordsFile {
    name: &'static str,
    text: &'static str,
}

impl RecordsFile {
    /// Embeds a file with this name and text.
    ///
    /// # Panics
    /// At compile time, if the text does not begin like a file of records.
    #[track_caller]
    pub const fn new(name: &'static str, text: &'static str) -> RecordsFile {
        assert!(
            is_of_records(text.as_bytes()),
            "this file holds no records of tuning: `galatea tune` and `galatea cache export` write them"
        );
        RecordsFile { name, text }
    }
}

impl RecordsFile {
    /// The name and the text.
    pub(super) fn parts(&self) -> (String, String) {
        (self.name.to_owned(), self.text.to_owned())
    }

    /// A file for the rest of the process, if the text begins like a file of records.
    pub(super) fn of_parts(name: &str, text: &str) -> Option<RecordsFile> {
        let leaked = |text: &str| &*String::leak(text.to_owned());
        is_of_records(text.as_bytes()).then(|| RecordsFile { name: leaked(name), text: leaked(text) })
    }
}

/// Returns whether the text begins with `{ "format": "galatea tuning records 2"`, or `1`, with any white space. The rest is not parsed at
/// compile time.
const fn is_of_records(text: &[u8]) -> bool {
    let parts: [&[u8]; 4] = [b"{", b"\"format\"", b":", b"\""];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        while at < text.len() && text[at].is_ascii_whitespace() {
            at += 1;
        }
        if !begins(text, at, parts[part]) {
            return false;
        }
        at += parts[part].len();
        part += 1;
    }
    is_text(text, at, RECORDS_FORMAT) || is_text(text, at, RECORDS_FORMAT_WITHOUT_PROGRAMS)
}

const fn is_text(text: &[u8], at: usize, value: &str) -> bool {
    begins(text, at, value.as_bytes()) && begins(text, at + value.len(), b"\"")
}

const fn begins(text: &[u8], at: usize, with: &[u8]) -> bool {
    let mut i = 0;
    while i < with.len() {
        if at + i >= text.len() || text[at + i] != with[i] {
            return false;
        }
        i += 1;
    }
    true
}

/// The files of a kernel. They are parsed when a key is new to the process.
#[derive(Debug)]
pub(super) struct Committed {
    pub(super) files: &'static [RecordsFile],
    #[cfg(feature = "cache")]
    read: OnceLock<Records>,
}

impl Committed {
    pub(super) const fn new(files: &'static [RecordsFile]) -> Committed {
        Committed {
            files,
            #[cfg(feature = "cache")]
            read: OnceLock::new(),
        }
    }

    /// The record of this key.
    #[cfg(feature = "cache")]
    pub(super) fn find(&self, of: &RecordKey) -> Option<Record> {
        if self.files.is_empty() {
            return None;
        }
        let records = self.read.get_or_init(|| self.files.iter().flat_map(|file| file.read(&of.kernel)).collect());
        let found = records.find(of);
        if found.is_none() && super::is_printed() {
            let is_of_key = |record: &Record| {
                let is_as_many = record.of.programs.is_none_or(|programs| Some(programs) == of.programs);
                record.of.device == of.device && record.of.values == of.values && is_as_many
            };
            if records.iter().any(is_of_key) {
                crate::launch::prints::show(format!(
                    "note: `{}` is not what it was when its records were made: they are not used\nhelp: `galatea tune` makes new ones",
                    of.kernel
                ));
            }
        }
        found.cloned()
    }

    /// The records are not read without the feature `cache`.
    #[cfg(not(feature = "cache"))]
    pub(super) fn find(&self, of: &RecordKey) -> Option<Record> {
        if !self.files.is_empty() && super::is_printed() {
            crate::launch::prints::show(format!(
                "note: records of `{}` are not used: this program was built without the feature `cache`",
                of.kernel
            ));
        }
        None
    }
}

#[cfg(feature = "cache")]
impl RecordsFile {
    /// The records of a kernel in this file.
    fn read(&self, kernel: &str) -> Vec<Record> {
        match Records::parse(self.text) {
            Ok(records) => records.iter().filter(|record| record.of.kernel == kernel).cloned().collect(),
            Err(error) => {
                if super::is_printed() {
                    crate::launch::prints::show(format!("warning: {}: {error}", self.name));
                }
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_records_is_known_by_its_beginning() {
        let good = ["{ \"format\": \"galatea tuning records 1\", \"records\": [] }", "\n{\n\t\"format\"\n:\"galatea tuning records 2\"}"];
        good.iter().for_each(|text| assert!(is_of_records(text.as_bytes()), "{text}"));
        let bad =
            ["", "{", "[]", "{ \"format\": \"galatea tuning records 3\"", "{ \"format\": \"galatea tuning records 1", "{ \"records\": []"];
        bad.iter().for_each(|text| assert!(!is_of_records(text.as_bytes()), "{text}"));
    }

    #[cfg(feature = "cache")]
    #[test]
    fn an_exported_file_can_be_embedded() {
        let text = Records::default().to_string();
        assert!(is_of_records(text.as_bytes()), "{text}");
    }

    #[cfg(feature = "cache")]
    #[test]
    fn a_broken_file_is_none_and_the_others_are_read() {
        let (kernel, content, device, driver) = ("add".into(), "3f".into(), "H".into(), "1".into());
        let of = RecordKey { kernel, content, device, driver, programs: None, values: vec![1] };
        let text = r#"{"format": "galatea tuning records 1", "records": [{ "kernel": "add", "content": "3f", "device": "H", "driver": "2", "key": [1],
            "chosen": "A", "tried": [{"config": "A", "median_us": 1.5, "samples": 3}] }]}"#;
        static FILES: std::sync::OnceLock<[RecordsFile; 2]> = std::sync::OnceLock::new();
        let files = FILES.get_or_init(|| {
            [RecordsFile::new("broken.json", "{\"format\": \"galatea tuning records 1\", \"rec"), RecordsFile::new("good.json", text)]
        });
        let committed = Committed::new(files);
        assert_eq!(committed.find(&of).unwrap().chosen().config, "A");
        assert!(committed.find(&RecordKey { content: "edited".into(), ..of.clone() }).is_none());
        assert!(committed.find(&RecordKey { kernel: "mul".into(), ..of }).is_none());
    }
}
