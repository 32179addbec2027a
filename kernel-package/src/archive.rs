//! The zip file of a package: stored entries that begin at multiples of 4096, so that a mapped file has aligned tensors.
//!
//! The `zip` crate writes. The reader here reads no more than packages have: one disk, stored entries, no encryption, and no size that the central directory and the
//! local header state differently (PKWARE's APPNOTE 6.3, sections 4.3.7, 4.3.12 and 4.3.16). It copies nothing. Both know the records of zip64 (sections 4.3.14,
//! 4.3.15 and 4.5.3), which entries and files above 4 GiB have.

use std::collections::HashSet;
use std::io::{self, Seek, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::error::PackageError;

/// Where entries begin, in bytes.
const ALIGNMENT: u16 = 4096;
/// The value of a 32-bit field whose number is that of zip64.
const IN_ZIP64: u32 = u32::MAX;
/// The value of a 16-bit field whose number is that of zip64.
const COUNT_IN_ZIP64: u16 = u16::MAX;

/// A file that is written entry by entry, so that no more than a part of an entry is in memory. Equal entries give equal bytes.
pub(crate) struct Writer<W: Write + Seek> {
    zip: ZipWriter<W>,
    /// The names of the entries, and the BLAKE3 hashes of their bytes.
    hashes: Vec<(String, blake3::Hash)>,
    /// The path for errors.
    path: PathBuf,
    /// The bytes from which an entry has sizes of zip64.
    large: u64,
}

impl<W: Write + Seek> Writer<W> {
    pub(crate) fn new(file: W, path: &Path) -> Writer<W> {
        Writer { zip: ZipWriter::new(file), hashes: Vec::new(), path: path.to_owned(), large: IN_ZIP64.into() }
    }

    /// Writes an entry of `len` bytes in parts.
    pub(crate) fn entry<B: AsRef<[u8]>>(
        &mut self,
        name: &str,
        len: u64,
        parts: impl IntoIterator<Item = Result<B, PackageError>>,
    ) -> Result<(), PackageError> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .with_alignment(ALIGNMENT)
            .unix_permissions(0o644)
            .large_file(len >= self.large);
        self.zip.start_file(name, options).map_err(|error| self.failure(error))?;
        let mut hasher = blake3::Hasher::new();
        for part in parts {
            let part = part?;
            hasher.update(part.as_ref());
            self.zip.write_all(part.as_ref()).map_err(|error| self.failure(error.into()))?;
        }
        self.hashes.push((name.to_owned(), hasher.finalize()));
        Ok(())
    }

    /// The names of the entries so far, and their hashes.
    pub(crate) fn hashes(&self) -> &[(String, blake3::Hash)] {
        &self.hashes
    }

    pub(crate) fn finish(self) -> Result<W, PackageError> {
        let Writer { zip, path, .. } = self;
        zip.finish().map_err(|error| failure(&path, error))
    }

    fn failure(&self, error: ZipError) -> PackageError {
        failure(&self.path, error)
    }
}

fn failure(path: &Path, error: ZipError) -> PackageError {
    let source = match error {
        ZipError::Io(source) => source,
        error => io::Error::other(error),
    };
    PackageError::File { path: path.to_owned(), source }
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
    let Directory { count, bytes: mut rest, start } = directory(file)?;
    let mut entries: Vec<Entry> = Vec::new();
    let (mut names, mut parts) = (HashSet::new(), Vec::new());
    for _ in 0..count {
        let header = Bytes(rest);
        if header.u32(0)? != 0x0201_4b50 {
            return Err(fail("its directory is damaged"));
        }
        let [name_len, extra_len, comment_len] = [header.u16(28)?, header.u16(30)?, header.u16(32)?].map(usize::from);
        let name = header.get(46, name_len)?;
        let name = std::str::from_utf8(name).map_err(|_| fail("an entry's name is not UTF-8"))?.to_owned();
        let (flags, method) = (header.u16(8)?, header.u16(10)?);
        let extra = Extra(header.get(46 + name_len, extra_len)?);
        let [size, packed, at] = extra.numbers([header.u32(24)?, header.u32(20)?, header.u32(42)?])?;
        // Bit 11 only states that the name is UTF-8.
        if flags & !(1 << 11) != 0 || method != 0 || packed != size {
            return Err(fail(&format!("entry `{name}` is compressed or encrypted")));
        }
        let outside = || fail(&format!("entry `{name}` lies outside of the file"));
        let at = usize::try_from(at).map_err(|_| outside())?;
        let local = Bytes(file.get(at..start).ok_or_else(outside)?);
        let (local_name_len, local_extra_len) = (usize::from(local.u16(26)?), usize::from(local.u16(28)?));
        // Other programs read the local header: what they see is what this reader sees.
        let crc = header.u32(16)?;
        let is_same = local.u32(0)? == 0x0403_4b50
            && local.get(30, local_name_len)? == name.as_bytes()
            && (local.u16(6)?, local.u16(8)?, local.u32(14)?) == (flags, method, crc)
            && Extra(local.get(30 + local_name_len, local_extra_len)?).numbers([local.u32(22)?, local.u32(18)?])? == [size, packed];
        if !is_same {
            return Err(fail(&format!("entry `{name}` is damaged")));
        }
        let first = at + 30 + local_name_len + local_extra_len;
        let end = usize::try_from(size).ok().and_then(|size| first.checked_add(size)).filter(|end| *end <= start);
        let bytes = first..end.ok_or_else(|| fail("an entry is cut off"))?;
        if !names.insert(name.clone()) {
            return Err(fail(&format!("it has two entries `{name}`")));
        }
        parts.push(at..bytes.end);
        entries.push(Entry { name, bytes, crc });
        rest = rest.get(46 + name_len + extra_len + comment_len..).ok_or_else(|| fail("its directory is cut off"))?;
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

fn fail(reason: &str) -> PackageError {
    PackageError::Malformed { reason: reason.to_owned() }
}

/// The central directory of a file.
struct Directory<'a> {
    /// The number of entries that the file states.
    count: u64,
    bytes: &'a [u8],
    /// Where it begins. Entries lie in front of it.
    start: usize,
}

fn directory(file: &[u8]) -> Result<Directory<'_>, PackageError> {
    let end = find_end(file).ok_or_else(|| fail("it has no end of a zip file"))?;
    let record = Bytes(&file[end..]);
    let (count, size, start) = (record.u16(10)?, record.u32(12)?, record.u32(16)?);
    if (record.u16(4)?, record.u16(6)?, record.u16(8)?) != (0, 0, count) {
        return Err(fail("it consists of several files"));
    }
    // Other programs look for the records of zip64, whatever this record states.
    let (end, [count, size, start]) = match zip64(file, end)? {
        Some((record, numbers)) => {
            let is_same = |short: u64, in_zip64: u64, long: u64| short == in_zip64 || short == long;
            let fits = is_same(count.into(), COUNT_IN_ZIP64.into(), numbers[0])
                && is_same(size.into(), IN_ZIP64.into(), numbers[1])
                && is_same(start.into(), IN_ZIP64.into(), numbers[2]);
            if !fits {
                return Err(fail("its two ends state different directories"));
            }
            (record, numbers)
        }
        None if count == COUNT_IN_ZIP64 || size == IN_ZIP64 || start == IN_ZIP64 => return Err(fail("it has no end of a zip64 file")),
        None => (end, [count.into(), size.into(), start.into()]),
    };
    let range = || {
        let start = usize::try_from(start).ok()?;
        Some(start..start.checked_add(usize::try_from(size).ok()?).filter(|to| *to <= end)?)
    };
    let range = range().ok_or_else(|| fail("its directory lies outside of the file"))?;
    Ok(Directory { count, start: range.start, bytes: &file[range] })
}

/// Where the end record of zip64 begins, and the number of entries, the size and the start of the directory that it states. None if no locator lies in front
/// of the end record at `end`.
fn zip64(file: &[u8], end: usize) -> Result<Option<(usize, [u64; 3])>, PackageError> {
    const LOCATOR_LEN: usize = 20;
    const RECORD_LEN: usize = 56;
    let Some(at) = end.checked_sub(LOCATOR_LEN) else { return Ok(None) };
    let locator = Bytes(&file[at..end]);
    if locator.u32(0)? != 0x0706_4b50 {
        return Ok(None);
    }
    let start = at.checked_sub(RECORD_LEN).filter(|start| locator.u64(8).is_ok_and(|stated| stated == *start as u64));
    let start = start.ok_or_else(|| fail("its end of a zip64 file is elsewhere than it states"))?;
    let record = Bytes(&file[start..at]);
    // The size does not count the signature and itself.
    if (record.u32(0)?, record.u64(4)?) != (0x0606_4b50, RECORD_LEN as u64 - 12) {
        return Err(fail("its end of a zip64 file is damaged"));
    }
    let count = record.u64(32)?;
    if (locator.u32(4)?, locator.u32(16)?, record.u32(16)?, record.u32(20)?, record.u64(24)?) != (0, 1, 0, 0, count) {
        return Err(fail("it consists of several files"));
    }
    Ok(Some((start, [count, record.u64(40)?, record.u64(48)?])))
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

/// The extra fields of a header: each has an identifier, a length, and data.
struct Extra<'a>(&'a [u8]);

impl Extra<'_> {
    /// The numbers of 32-bit fields. Those that are in zip64 are in one extra field, in their order.
    fn numbers<const COUNT: usize>(&self, fields: [u32; COUNT]) -> Result<[u64; COUNT], PackageError> {
        let mut numbers = fields.map(u64::from);
        if !fields.contains(&IN_ZIP64) {
            return Ok(numbers);
        }
        const ZIP64: u16 = 1;
        let (mut rest, mut found) = (Bytes(self.0), None);
        while !rest.0.is_empty() {
            let (id, len) = (rest.u16(0)?, usize::from(rest.u16(2)?));
            if id == ZIP64 && found.replace(Bytes(rest.get(4, len)?)).is_some() {
                return Err(fail("a header has two sizes"));
            }
            rest = Bytes(rest.get(4 + len, rest.0.len().saturating_sub(4 + len))?);
        }
        let found = found.ok_or_else(|| fail("a header has no size"))?;
        let mut at = 0;
        for (number, _) in numbers.iter_mut().zip(fields).filter(|(_, field)| *field == IN_ZIP64) {
            *number = found.u64(at)?;
            at += 8;
        }
        Ok(numbers)
    }
}

/// Little-endian numbers at offsets.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn get(self, at: usize, len: usize) -> Result<&'a [u8], PackageError> {
        let bytes = at.checked_add(len).and_then(|to| self.0.get(at..to));
        bytes.ok_or_else(|| fail("a header is cut off"))
    }

    fn number<const LEN: usize>(self, at: usize) -> Result<[u8; LEN], PackageError> {
        self.get(at, LEN)?.try_into().map_err(|_| fail("a header is cut off"))
    }

    fn u16(self, at: usize) -> Result<u16, PackageError> {
        self.number(at).map(u16::from_le_bytes)
    }

    fn u32(self, at: usize) -> Result<u32, PackageError> {
        self.number(at).map(u32::from_le_bytes)
    }

    fn u64(self, at: usize) -> Result<u64, PackageError> {
        self.number(at).map(u64::from_le_bytes)
    }
}

#[cfg(test)]
mod tests;
