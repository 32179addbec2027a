//! The file format of an entry: a readable key, which names the file, and a payload, protected by a checksum.
//!
//! ```text
//! galatea-cache 2 code 3f1c..          the format, the kind, and the hash of everything below
//! {"driver":"13.0","kernel":"silu",..} the key: an entry's file is named by the hash of this line and the kind
//! ..                                   the payload
//! ```
//!
//! So a file shows by itself whether it is complete, of this format and of the requested key. Any other file is ignored.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::str::FromStr;

use serde_json::{Map, Value};

/// The kind of an entry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// Machine code that an assembler made from PTX, for one architecture and driver.
    Code,
    /// PTX of a variant that was not compiled with its program.
    Ptx,
    /// A tuning record: the configurations tried for a key, and the chosen one.
    Tuning,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 3] = [Kind::Code, Kind::Ptx, Kind::Tuning];

    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Code => "code",
            Kind::Ptx => "ptx",
            Kind::Tuning => "tuning",
        }
    }

    /// The maximum size of an entry's file in bytes. A larger file is ignored and not read. Machine code of a kernel takes about 100 KiB, a
    /// record about 10 KiB.
    pub(super) fn most_bytes(self) -> u64 {
        match self {
            Kind::Code | Kind::Ptx => 64 << 20,
            Kind::Tuning => 4 << 20,
        }
    }
}

/// Formats as `code`, `ptx` or `tuning`, which `parse` reads.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> Result<Kind, String> {
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("`{name}` is no kind of entry; there are code, ptx and tuning"))
    }
}

/// The key of an entry: everything that its payload depends on, as names and values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    kind: Kind,
    /// A JSON object on one line.
    line: String,
    name: String,
}

impl Key {
    /// The key with these fields. Their order does not matter.
    pub fn new(kind: Kind, fields: &[(&str, &str)]) -> Key {
        let mut sorted = fields.to_vec();
        sorted.sort_unstable();
        let fields: Map<String, Value> = sorted.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        Key::of_line(kind, Value::Object(fields).to_string())
    }

    fn of_line(kind: Kind, line: String) -> Key {
        let name = hash(&[kind.name().as_bytes(), b"\n", line.as_bytes()]);
        Key { kind, name: name[..NAME_DIGITS].to_owned(), line }
    }

    /// The kind of the entry.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The name of the entry: a hash of the key in hexadecimal.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fields, sorted by name.
    pub fn fields(&self) -> Vec<(String, String)> {
        let text = |value: Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match serde_json::from_str(&self.line) {
            Ok(Value::Object(fields)) => fields.into_iter().map(|(name, value)| (name, text(value))).collect(),
            _ => Vec::new(),
        }
    }

    /// The value of a field.
    pub fn field(&self, name: &str) -> Option<String> {
        self.fields().into_iter().find_map(|(other, value)| (other == name).then_some(value))
    }
}

/// The number of hexadecimal digits of a name: 160 bits.
const NAME_DIGITS: usize = 40;
const MAGIC: &str = "galatea-cache 2";

/// The hash of the concatenated parts, in hexadecimal.
pub(crate) fn hash(parts: &[&[u8]]) -> String {
    let mut hasher = blake3::Hasher::new();
    parts.iter().for_each(|part| {
        hasher.update(part);
    });
    hasher.finalize().to_hex().to_string()
}

/// The contents of an entry's file.
pub(super) fn seal(key: &Key, payload: &[u8]) -> Vec<u8> {
    let checksum = hash(&[key.line.as_bytes(), b"\n", payload]);
    let mut bytes = format!("{}{checksum}\n{}\n", head(key.kind), key.line).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// The payload, if the bytes are a complete entry of this key.
pub(super) fn open(mut bytes: Vec<u8>, key: &Key) -> Option<Vec<u8>> {
    let below = bytes.strip_prefix(head(key.kind).as_bytes())?;
    let (checksum, below) = (below.get(..64)?, below.get(64..)?.strip_prefix(b"\n")?);
    let payload = below.strip_prefix(key.line.as_bytes())?.strip_prefix(b"\n")?;
    if hash(&[below]).as_bytes() != checksum {
        return None;
    }
    let start = bytes.len() - payload.len();
    Some(bytes.split_off(start))
}

/// Reads the key of an entry's file without checking the payload. None if the file is not an entry of this kind and name.
pub(super) fn read_key(file: impl Read, kind: Kind, name: &str) -> io::Result<Option<Key>> {
    // No key is longer, so a file without line ends is not read further.
    let mut lines = BufReader::new(file.take(1 << 20)).lines();
    let (Some(first), Some(line)) = (lines.next().transpose()?, lines.next().transpose()?) else { return Ok(None) };
    let key = Key::of_line(kind, line);
    Ok((first.starts_with(&head(kind)) && key.name == name).then_some(key))
}

fn head(kind: Kind) -> String {
    format!("{MAGIC} {kind} ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        Key::new(Kind::Ptx, &[("kernel", "silu"), ("values", "T = f32, \"B\" = 2")])
    }

    #[test]
    fn an_entry_is_readable_and_found_by_its_key() {
        let key = key();
        let bytes = seal(&key, b"payload\0\xff");
        let text = String::from_utf8_lossy(&bytes);
        assert!(text.starts_with("galatea-cache 2 ptx ") && text.contains("\n{\"kernel\":\"silu\","), "{text}");
        assert_eq!(open(bytes.clone(), &key).unwrap(), b"payload\0\xff");
        assert_eq!(read_key(&bytes[..], Kind::Ptx, key.name()).unwrap(), Some(key.clone()));
        assert_eq!(key.field("values").unwrap(), "T = f32, \"B\" = 2");
        assert_eq!(key, Key::new(Kind::Ptx, &[("values", "T = f32, \"B\" = 2"), ("kernel", "silu")]));
    }

    #[test]
    fn entries_of_other_keys_kinds_and_formats_are_none() {
        let key = key();
        let other = Key::new(Kind::Ptx, &[("kernel", "silu")]);
        let code = Key::new(Kind::Code, &[("kernel", "silu")]);
        assert!(key.name() != other.name() && other.name() != code.name());
        assert_eq!(open(seal(&other, b"x"), &key), None);
        assert_eq!(open(seal(&code, b"x"), &other), None);
        assert_eq!(read_key(&seal(&other, b"x")[..], Kind::Ptx, key.name()).unwrap(), None);
        let newer = String::from_utf8(seal(&key, b"x")).unwrap().replacen("galatea-cache 2", "galatea-cache 3", 1);
        assert_eq!(open(newer.into_bytes(), &key), None);
    }

    #[test]
    fn kinds_have_names() {
        assert!(Kind::ALL.into_iter().all(|kind| kind.to_string().parse() == Ok(kind)));
        assert!("cubin".parse::<Kind>().unwrap_err().contains("code, ptx and tuning"));
    }
}
