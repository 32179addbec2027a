//! The file of an entry: a hash of the key names it, and it begins with a checksum of key and value.

use std::hash::{DefaultHasher, Hasher};

/// The file name for this key.
pub(super) fn name(key: &str) -> String {
    format!("{:016x}{:016x}", hash(1, &[key.as_bytes()]), hash(2, &[key.as_bytes()]))
}

/// The contents of the file.
pub(super) fn seal(key: &str, value: &[u8]) -> Vec<u8> {
    [&checksum(key, value).to_le_bytes()[..], value].concat()
}

/// The value, if the bytes are a complete entry of this key.
pub(super) fn open(key: &str, entry: &[u8]) -> Option<Vec<u8>> {
    let (sum, value) = entry.split_at_checked(size_of::<u64>())?;
    (sum == checksum(key, value).to_le_bytes()).then(|| value.to_vec())
}

fn checksum(key: &str, value: &[u8]) -> u64 {
    hash(3, &[key.as_bytes(), value])
}

fn hash(seed: u8, parts: &[&[u8]]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write_u8(seed);
    for part in parts {
        hasher.write_usize(part.len());
        hasher.write(part);
    }
    hasher.finish()
}
