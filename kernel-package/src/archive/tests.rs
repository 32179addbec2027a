//! Files that the writer makes, damaged ones, and files with records of zip64.

use super::*;

/// The bytes of a file with these entries, those from `large` bytes on with sizes of zip64.
fn written(entries: &[(String, Vec<u8>)], large: u64) -> Vec<u8> {
    let mut writer = Writer { large, ..Writer::new(io::Cursor::new(Vec::new()), Path::new("memory")) };
    for (name, bytes) in entries {
        let (first, second) = bytes.split_at(bytes.len() / 2);
        writer.entry(name, bytes.len() as u64, [Ok(first), Ok(second)]).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

fn write(entries: &[(String, Vec<u8>)]) -> Vec<u8> {
    written(entries, u64::MAX)
}

fn entries() -> Vec<(String, Vec<u8>)> {
    vec![("a.json".to_owned(), b"{}".to_vec()), ("dir/b".to_owned(), vec![7; 5000]), ("empty".to_owned(), Vec::new())]
}

#[test]
fn entries_come_back_aligned() {
    let file = write(&entries());
    let read = read(&file).unwrap();
    let found: Vec<(String, Vec<u8>)> = read.iter().map(|entry| (entry.name.clone(), file[entry.bytes.clone()].to_vec())).collect();
    assert_eq!(found, entries());
    assert!(read.iter().all(|entry| entry.bytes.start % usize::from(ALIGNMENT) == 0), "{read:?}");
}

#[test]
fn equal_entries_give_equal_bytes() {
    assert_eq!(write(&entries()), write(&entries()));
}

/// Every byte of the headers, changed and cut off: an error or the same entries, never a panic.
#[test]
fn damaged_files_are_errors() {
    let file = write(&entries());
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
    let file = write(&[("a".to_owned(), vec![1; 9]), ("b".to_owned(), vec![1; 9])]);
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
    let file = write(&entries());
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
    let mut file = write(&entries());
    let len = file.len();
    file[len - 2..].copy_from_slice(&3u16.to_le_bytes());
    file.extend(b"abc");
    assert_eq!(read(&file).unwrap().len(), 3);
}

/// Each header with sizes of zip64, as for entries above 4 GiB.
#[test]
fn sizes_of_zip64_are_those_of_the_entries() {
    let file = written(&entries(), 0);
    assert!(file.windows(4).filter(|bytes| *bytes == [1, 0, 16, 0]).count() >= 3, "each local header has both sizes in an extra field");
    let read_entries = read(&file).unwrap();
    let found: Vec<(String, Vec<u8>)> = read_entries.iter().map(|entry| (entry.name.clone(), file[entry.bytes.clone()].to_vec())).collect();
    assert_eq!(found, entries());
    assert!(read_entries.iter().all(|entry| entry.bytes.start % usize::from(ALIGNMENT) == 0), "{read_entries:?}");
    // Changes of headers are errors, or the same entries.
    let headers = (0..file.len()).filter(|at| file[*at..].starts_with(b"PK"));
    for at in headers.flat_map(|start| start..(start + 80).min(file.len())) {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = file.clone();
            damaged[at] ^= change;
            if let Ok(entries) = read(&damaged) {
                assert!(entries.iter().all(|entry| entry.bytes.end <= file.len()), "byte {at}");
            }
        }
    }
}

/// The fields of a header from the CRC-32 to the lengths, and its extra field.
fn sizes(crc: u32, len: u64, name: &str, at: Option<u64>) -> (Vec<u8>, Vec<u8>) {
    let long = |number: u64| number >= IN_ZIP64.into();
    let short = |number: u64| u32::try_from(number).unwrap_or(IN_ZIP64).to_le_bytes();
    let in_zip64 = [len, len].into_iter().chain(at).filter(|number| long(*number)).flat_map(u64::to_le_bytes).collect::<Vec<_>>();
    let extra = match &in_zip64[..] {
        [] => Vec::new(),
        numbers => [&[1, 0], &(numbers.len() as u16).to_le_bytes()[..], numbers].concat(),
    };
    let lengths = [name.len() as u16, extra.len() as u16].map(u16::to_le_bytes).concat();
    ([&crc.to_le_bytes()[..], &short(len), &short(len), &lengths].concat(), extra)
}

/// The parts of a file above 4 GiB, each with its offset: an entry `large` of 5 GiB of zeros, an entry `b`, an entry `last` as
/// large as the first, the directory, and the three ends.
fn above_4_gib() -> Vec<(u64, Vec<u8>)> {
    let (large, content) = (5u64 << 30, b"behind 4 GiB");
    let crc = crc32fast::hash(content);
    let local = |name: &str, crc: u32, len: u64| {
        let (fields, extra) = sizes(crc, len, name, None);
        [b"PK\x03\x04\x2d\0\0\0\0\0\0\0\x21\0", &fields[..], name.as_bytes(), &extra].concat()
    };
    let central = |name: &str, crc: u32, len: u64, at: u64| {
        let (fields, extra) = sizes(crc, len, name, Some(at));
        let at = u32::try_from(at).unwrap_or(IN_ZIP64).to_le_bytes();
        [b"PK\x01\x02\x2d\x03\x2d\0\0\0\0\0\0\0\x21\0", &fields[..], &[0; 10], &at, name.as_bytes(), &extra].concat()
    };
    let first = local("large", 0, large);
    let second_at = first.len() as u64 + large;
    let second = [&local("b", crc, content.len() as u64)[..], content].concat();
    let third_at = second_at + second.len() as u64;
    let third = local("last", 0, large);
    let start = third_at + third.len() as u64 + large;
    let directory =
        [central("large", 0, large, 0), central("b", crc, content.len() as u64, second_at), central("last", 0, large, third_at)].concat();
    let end = start + directory.len() as u64;
    let numbers = [3, 3, directory.len() as u64, start].map(u64::to_le_bytes).concat();
    let record = [b"PK\x06\x06", &44u64.to_le_bytes()[..], &[0x2d, 3, 0x2d, 0], &[0; 8], &numbers].concat();
    let locator = [b"PK\x06\x07\0\0\0\0", &end.to_le_bytes()[..], &1u32.to_le_bytes()].concat();
    let last = [b"PK\x05\x06\0\0\0\0\x03\0\x03\0", &(directory.len() as u32).to_le_bytes()[..], &IN_ZIP64.to_le_bytes(), &[0; 2]].concat();
    let ends = [(end, record), (end + 56, locator), (end + 76, last)];
    [(0, first), (second_at, second), (third_at, third), (start, directory)].into_iter().chain(ends).collect()
}

/// A sparse file of these parts.
fn sparse(parts: &[(u64, Vec<u8>)]) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    for (at, bytes) in parts {
        file.seek(io::SeekFrom::Start(*at)).unwrap();
        file.write_all(bytes).unwrap();
    }
    file
}

fn read_sparse(parts: &[(u64, Vec<u8>)]) -> Result<Vec<(String, Range<usize>)>, String> {
    let file = sparse(parts);
    let entries = read(&crate::files::map(file.path()).unwrap()).map_err(|error| error.to_string())?;
    Ok(entries.into_iter().map(|entry| (entry.name, entry.bytes)).collect())
}

#[test]
fn files_above_4_gib_are_read() {
    let parts = above_4_gib();
    let ends = |part: usize| parts[part].0 as usize + parts[part].1.len();
    let expected = [("large", ends(0)..ends(0) + (5 << 30)), ("b", ends(1) - 12..ends(1)), ("last", ends(2)..ends(2) + (5 << 30))];
    assert_eq!(read_sparse(&parts).unwrap(), expected.map(|(name, bytes)| (name.to_owned(), bytes)));
    let changed = |part: usize, at: usize, bytes: &[u8]| {
        let mut parts = above_4_gib();
        parts[part].1[at..at + bytes.len()].copy_from_slice(bytes);
        read_sparse(&parts).unwrap_err()
    };
    assert!(changed(0, 35 + 4, &[1]).contains("entry `large` is damaged"), "the size of the local header");
    assert!(changed(3, 46 + 5 + 4, &[1]).contains("entry `large` is compressed or encrypted"), "one of two sizes");
    assert!(changed(3, 46 + 5, &[7]).contains("a header has no size"), "another kind of extra field");
    assert!(changed(3, 46 + 5 + 20 + 46 + 1 + 4, &[0; 8]).contains("entry `b` is damaged"), "the offset of an entry");
    assert!(changed(4, 32, &[4]).contains("several files"), "one of two numbers of entries");
    assert!(changed(4, 24, &[1, 0, 0, 0, 0, 0, 0, 0, 1]).contains("two ends state different directories"), "another number of entries");
    assert!(changed(4, 4, &[45]).contains("its end of a zip64 file is damaged"), "a longer record");
    assert!(changed(5, 8, &[0; 8]).contains("its end of a zip64 file is elsewhere than it states"), "the offset of the record");
    assert!(changed(5, 0, b"P_").contains("it has no end of a zip64 file"), "no locator");
    assert!(changed(6, 12, &[1, 0, 0, 0]).contains("two ends state different directories"), "another size of the directory");
}

/// Python's `zipfile` as a second reader.
#[test]
fn python_reads_the_records_of_zip64() {
    const SCRIPT: &str = "import sys, zipfile\nfile = zipfile.ZipFile(sys.argv[1])\n\
        print([(entry.filename, entry.file_size) for entry in file.infolist()], file.read(sys.argv[2]))";
    let python = |path: &Path, entry: &str| {
        let output = std::process::Command::new("python3").arg("-c").arg(SCRIPT).arg(path).arg(entry).output().ok()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Some(if output.status.success() { text(&output.stdout) } else { text(&output.stderr) })
    };
    let file = sparse(&[(0, written(&entries(), 0))]);
    let Some(seen) = python(file.path(), "a.json") else {
        println!("skipped: there is no python3");
        return;
    };
    assert_eq!(seen, "[('a.json', 2), ('dir/b', 5000), ('empty', 0)] b'{}'\n");
    let seen = python(sparse(&above_4_gib()).path(), "b").unwrap();
    assert_eq!(seen, "[('large', 5368709120), ('b', 12), ('last', 5368709120)] b'behind 4 GiB'\n");
}

/// A sparse file without the zeros that are written to it.
struct WithoutZeros<'f> {
    file: &'f std::fs::File,
    at: u64,
}

impl Write for WithoutZeros<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.iter().any(|byte| *byte != 0) {
            self.file.seek(io::SeekFrom::Start(self.at))?;
            self.file.write_all(bytes)?;
        }
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for WithoutZeros<'_> {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.at = match to {
            io::SeekFrom::Start(at) => at,
            io::SeekFrom::Current(by) => self.at.wrapping_add_signed(by),
            io::SeekFrom::End(by) => self.file.metadata()?.len().wrapping_add_signed(by),
        };
        Ok(self.at)
    }
}

#[test]
#[ignore = "checksums of 4 GiB take minutes without optimisation: cargo test --release -p kernel-package -- --ignored"]
fn files_above_4_gib_are_written() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let (part, parts) = (vec![0u8; 1 << 20], 4097u64);
    let mut writer = Writer::new(WithoutZeros { file: file.as_file(), at: 0 }, file.path());
    writer.entry("large", parts << 20, (0..parts).map(|_| Ok(&part))).unwrap();
    writer.entry("b", 12, [Ok(b"behind 4 GiB")]).unwrap();
    writer.finish().unwrap();
    let map = crate::files::map(file.path()).unwrap();
    let entries = read(&map).unwrap();
    let found: Vec<_> = entries.iter().map(|entry| (&*entry.name, entry.bytes.len() as u64)).collect();
    assert_eq!(found, [("large", parts << 20), ("b", 12)]);
    assert_eq!(map[entries[1].bytes.clone()], *b"behind 4 GiB");
    assert!(entries.iter().all(|entry| entry.bytes.start % usize::from(ALIGNMENT) == 0), "{entries:?}");
}

#[test]
fn a_header_has_one_field_of_zip64() {
    let field = |number: u64| [&[1u8, 0, 8, 0][..], &number.to_le_bytes()].concat();
    let (one, two) = (field(7), [field(7), field(8)].concat());
    assert_eq!(Extra(&one).numbers([9, IN_ZIP64]).unwrap(), [9, 7]);
    assert_eq!(Extra(&two).numbers([9]).unwrap(), [9], "no number is in zip64");
    assert!(Extra(&two).numbers([IN_ZIP64]).unwrap_err().to_string().contains("a header has two sizes"));
    assert!(Extra(&one).numbers([IN_ZIP64; 2]).is_err() && Extra(&one[..9]).numbers([IN_ZIP64]).is_err());
}
