//! The zip file of a package: stored entries that begin at multiples of 4096, so that a mapped file has aligned tensors.
//!
//! The `zip` crate writes. The reader here reads no more than packages have: one disk, stored entries, no encryption, and no size that the central directory and the
//! local header state differently (PKWARE's APPNOTE 6.3, sections 4.3.7, 4.3.12 and 4.3.16). It copies nothing.

use std::collections::HashSet;
use std::io::{Cursor, Write};
use std::ops::Range;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::error::PackageError;

/// Where entries begin, in bytes.
const ALIGNMENT: u16 = 4096;
/// The most entries of a package.
const MOST_ENTRIES: usize = 1 << 16;

/// The bytes of a file with these entries. Equal entries give equal bytes.
pub(crate) fn write(entries: &[(String, Vec<u8>)]) -> Result<Vec<u8>, PackageError> {
    let malformed = |error: &dyn std::fmt::Display| PackageError::Malformed { reason: format!("the file cannot be written: {error}") };
    // The reader knows no other sizes.
    let len: usize = entries.iter().map(|(name, bytes)| bytes.len() + 2 * (name.len() + 64) + usize::from(ALIGNMENT)).sum();
    if u32::try_from(len).is_err() || entries.len() >= MOST_ENTRIES {
        return Err(malformed(&"a package has at most 4 GiB and 65535 entries"));
    }
    let mut writer = ZipWriter::new(Cursor::new(Vec::with_capacity(len)));
    for (name, bytes) in entries {
        let options =
            SimpleFileOptions::default().compression_method(CompressionMethod::Stored).with_alignment(ALIGNMENT).unix_permissions(0o644);
        writer.start_file(&**name, options).map_err(|error| malformed(&error))?;
        writer.write_all(bytes).map_err(|error| malformed(&error))?;
    }
    let file = writer.finish().map_err(|error| malformed(&error))?;
    Ok(file.into_inner())
}

/// An entry of a file.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Where its bytes lie in the file.
    pub(crate) bytes: Range<usize>,
    /// The CRC-32 of its bytes, which is not compared with them here.
    pub(crate) crc: u32,
}

/// The entries of a file.
pub(crate) fn read(file: &[u8]) -> Result<Vec<Entry>, PackageError> {
    let fail = |reason: &str| PackageError::Malformed { reason: reason.to_owned() };
    let end = find_end(file).ok_or_else(|| fail("it has no end of a zip file"))?;
    let record = Bytes(&file[end..]);
    let (count, size, start) = (record.u16(10)?, record.u32(12)?, record.u32(16)?);
    if (record.u16(4)?, record.u16(6)?, record.u16(8)?) != (0, 0, count) {
        return Err(fail("it consists of several files"));
    }
    let start = start as usize;
    let directory = start.checked_add(size as usize).and_then(|to| file.get(start..to)).filter(|_| start + size as usize <= end);
    let mut rest = directory.ok_or_else(|| fail("its directory lies outside of the file"))?;
    let mut entries: Vec<Entry> = Vec::new();
    let (mut names, mut parts) = (HashSet::new(), Vec::new());
    for _ in 0..count {
        let header = Bytes(rest);
        if header.u32(0)? != 0x0201_4b50 {
            return Err(fail("its directory is damaged"));
        }
        let lengths = [28, 30, 32].map(|at| header.u16(at).map(usize::from));
        let [name_len, extra_len, comment_len] = lengths;
        let (name_len, len) = (name_len?, 46 + extra_len? + comment_len?);
        let name = header.get(46, name_len)?;
        let name = std::str::from_utf8(name).map_err(|_| fail("an entry's name is not UTF-8"))?.to_owned();
        let (flags, method) = (header.u16(8)?, header.u16(10)?);
        let (packed, size, at) = (header.u32(20)?, header.u32(24)?, header.u32(42)? as usize);
        // Bit 11 only states that the name is UTF-8.
        if flags & !(1 << 11) != 0 || method != 0 || packed != size {
            return Err(fail(&format!("entry `{name}` is compressed or encrypted")));
        }
        let local = Bytes(file.get(at..start).ok_or_else(|| fail(&format!("entry `{name}` lies outside of the file")))?);
        // Other programs read the local header: what they see is what this reader sees.
        let crc = header.u32(16)?;
        let is_same = local.u32(0)? == 0x0403_4b50
            && local.get(30, usize::from(local.u16(26)?))? == name.as_bytes()
            && (local.u16(6)?, local.u16(8)?) == (flags, method)
            && (local.u32(14)?, local.u32(18)?, local.u32(22)?) == (crc, packed, size);
        if !is_same {
            return Err(fail(&format!("entry `{name}` is damaged")));
        }
        let first = at + 30 + usize::from(local.u16(26)?) + usize::from(local.u16(28)?);
        let bytes = first..first.checked_add(size as usize).filter(|to| *to <= start).ok_or_else(|| fail("an entry is cut off"))?;
        if !names.insert(name.clone()) {
            return Err(fail(&format!("it has two entries `{name}`")));
        }
        parts.push(at..bytes.end);
        entries.push(Entry { name, bytes, crc });
        rest = rest.get(len + name_len..).ok_or_else(|| fail("its directory is cut off"))?;
    }
    if !rest.is_empty() {
        return Err(fail("its directory has more entries than it states"));
    }
    // Otherwise a small file could state entries of any size together.
    parts.sort_unstable_by_key(|part| (part.start, part.end));
    if parts.windows(2).any(|pair| pair[1].start < pair[0].end) {
        return Err(fail("its entries overlap"));
    }
    Ok(entries)
}

/// Where the end record begins. Packages have no comment behind it, but other programs may add one.
fn find_end(file: &[u8]) -> Option<usize> {
    const LEN: usize = 22;
    let last = file.len().checked_sub(LEN)?;
    let first = last.saturating_sub(usize::from(u16::MAX));
    (first..=last).rev().find(|at| {
        let record = Bytes(&file[*at..]);
        record.u32(0).is_ok_and(|signature| signature == 0x0605_4b50)
            && record.u16(20).is_ok_and(|comment| at + LEN + usize::from(comment) == file.len())
    })
}

/// Little-endian numbers at offsets.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn get(self, at: usize, len: usize) -> Result<&'a [u8], PackageError> {
        let bytes = at.checked_add(len).and_then(|to| self.0.get(at..to));
        bytes.ok_or_else(|| PackageError::Malformed { reason: "a header is cut off".to_owned() })
    }

    fn u16(self, at: usize) -> Result<u16, PackageError> {
        self.get(at, 2).map(|bytes| u16::from_le_bytes([bytes[0], bytes[1]]))
    }

    fn u32(self, at: usize) -> Result<u32, PackageError> {
        self.get(at, 4).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries() -> Vec<(String, Vec<u8>)> {
        vec![("a.json".to_owned(), b"{}".to_vec()), ("dir/b".to_owned(), vec![7; 5000]), ("empty".to_owned(), Vec::new())]
    }

    #[test]
    fn entries_come_back_aligned() {
        let file = write(&entries()).unwrap();
        let read = read(&file).unwrap();
        let found: Vec<(String, Vec<u8>)> = read.iter().map(|entry| (entry.name.clone(), file[entry.bytes.clone()].to_vec())).collect();
        assert_eq!(found, entries());
        assert!(read.iter().all(|entry| entry.bytes.start % usize::from(ALIGNMENT) == 0), "{read:?}");
    }

    #[test]
    fn equal_entries_give_equal_bytes() {
        assert_eq!(write(&entries()).unwrap(), write(&entries()).unwrap());
    }

    /// Every byte of the headers, changed and cut off: an error or the same entries, never a panic.
    #[test]
    fn damaged_files_are_errors() {
        let file = write(&entries()).unwrap();
        let mut errors = 0;
        for at in 0..file.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut damaged = file.clone();
                damaged[at] ^= change;
                match read(&damaged) {
                    Ok(entries) => assert!(entries.iter().all(|entry| entry.bytes.end <= file.len())),
                    Err(_) => errors += 1,
                }
            }
        }
        assert!(errors > 100, "{errors}");
        (0..file.len()).for_each(|len| assert!(read(&file[..len]).is_err(), "{len}"));
    }

    /// Two entries of the directory with one local header, and a directory that is longer than its number of entries.
    #[test]
    fn each_byte_belongs_to_one_entry() {
        let file = write(&[("a".to_owned(), vec![1; 9]), ("b".to_owned(), vec![1; 9])]).unwrap();
        let headers: Vec<usize> = (0..file.len()).filter(|at| file[*at..].starts_with(b"PK\x01\x02")).collect();
        let mut shared = file.clone();
        // The local header is that of `a`, under a second name that is its own in the directory only.
        shared.copy_within(headers[0] + 42..headers[0] + 46, headers[1] + 42);
        assert!(read(&shared).unwrap_err().to_string().contains("entry `b` is damaged"));
        let mut same = file.clone();
        same.copy_within(headers[0]..headers[1], headers[1]);
        assert!(read(&same).unwrap_err().to_string().contains("two entries `a`"));
        // An entry that ends in the header of the next one.
        let mut longer = file.clone();
        let next = read(&file).unwrap()[1].bytes.start as u32;
        let size = next - read(&file).unwrap()[0].bytes.start as u32;
        for at in [18, 22, headers[0] + 20, headers[0] + 24] {
            longer[at..at + 4].copy_from_slice(&size.to_le_bytes());
        }
        assert!(read(&longer).unwrap_err().to_string().contains("its entries overlap"));
        let mut fewer = file.clone();
        let end = file.len() - 22;
        fewer[end + 8..end + 12].copy_from_slice(&[1, 0, 1, 0]);
        assert!(read(&fewer).unwrap_err().to_string().contains("more entries than it states"));
    }

    /// A program that reads local headers would see another file.
    #[test]
    fn local_headers_state_what_the_directory_states() {
        let file = write(&entries()).unwrap();
        for (field, len) in [(6, 2), (8, 2), (14, 4), (18, 4), (22, 4)] {
            for at in field..field + len {
                let mut changed = file.clone();
                changed[at] ^= 1;
                assert!(read(&changed).unwrap_err().to_string().contains("entry `a.json` is damaged"), "byte {at}");
            }
        }
    }

    #[test]
    fn comments_behind_the_end_are_allowed() {
        let mut file = write(&entries()).unwrap();
        let len = file.len();
        file[len - 2..].copy_from_slice(&3u16.to_le_bytes());
        file.extend(b"abc");
        assert_eq!(read(&file).unwrap().len(), 3);
    }
}
