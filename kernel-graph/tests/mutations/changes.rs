//! Changes of packages: of bytes, of the structure of the file, and of what entries state.

use std::io::Write;

use kernel_graph::Package;
use serde_json::{Value as Json, json};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Random numbers: xorshift64 (Marsaglia, *Xorshift RNGs*, 2003).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % end.max(1)
    }

    fn pick<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }
}

/// The entries of a file, the manifest first.
pub(crate) type Entries = Vec<(String, Vec<u8>)>;

pub(crate) fn entries(package: &Package) -> Entries {
    let mut entries: Entries =
        package.entries().into_iter().map(|(name, _)| (name.to_owned(), package.entry(name).unwrap().to_vec())).collect();
    entries.sort_by_key(|(name, _)| name != "manifest.json");
    entries
}

/// A file of these entries.
pub(crate) fn zipped(entries: &Entries) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(&**name, SimpleFileOptions::default().compression_method(CompressionMethod::Stored)).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// The file with checksums that fit, if the manifest is one.
pub(crate) fn signed(mut entries: Entries) -> Vec<u8> {
    if let Ok(mut manifest) = serde_json::from_slice::<Json>(&entries[0].1)
        && manifest["blake3"].is_object()
    {
        for (name, bytes) in &entries[1..] {
            manifest["blake3"][name] = blake3::hash(bytes).to_hex().to_string().into();
        }
        entries[0].1 = manifest.to_string().into_bytes();
    }
    zipped(&entries)
}

/// Changes some bytes, or cuts, moves, repeats or inserts some.
pub(crate) fn bytes(file: &[u8], random: &mut Random) -> Vec<u8> {
    let mut file = file.to_vec();
    let (at, len) = (random.below(file.len()), 1 + random.below(64));
    let end = (at + len).min(file.len());
    match random.below(7) {
        0 => file.truncate(at),
        1 => drop(file.drain(at..end)),
        2 => file[at..end].fill(*random.pick(&[0, 0xff, b' '])),
        3 => {
            let part = file[at..end].to_vec();
            let to = random.below(file.len());
            file.splice(to..to, part);
        }
        4 => {
            let to = random.below(file.len() - (end - at));
            file.copy_within(at..end, to);
        }
        _ => {
            for _ in 0..=random.below(3) {
                let at = random.below(file.len());
                file[at] ^= 1 << random.below(8);
            }
        }
    }
    file
}

/// Changes a field of a header, or the order, the number or the names of entries.
pub(crate) fn structure(file: &[u8], of: &Entries, random: &mut Random) -> Vec<u8> {
    let signatures: [&[u8; 4]; 3] = [b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"];
    let headers: Vec<usize> =
        (0..file.len() - 4).filter(|at| signatures.iter().any(|signature| file[*at..].starts_with(*signature))).collect();
    match random.below(6) {
        0 => {
            let mut of = of.clone();
            let (a, b) = (random.below(of.len()), random.below(of.len()));
            of.swap(a, b);
            zipped(&of)
        }
        1 => {
            let mut of = of.clone();
            of.remove(random.below(of.len()));
            zipped(&of)
        }
        2 => {
            let mut of = of.clone();
            let (a, b) = (random.below(of.len()), random.below(of.len()));
            of[a].1 = of[b].1.clone();
            zipped(&of)
        }
        _ => {
            let mut file = file.to_vec();
            for _ in 0..=random.below(2) {
                let at = random.pick(&headers) + random.below(46);
                let len = *random.pick(&[1, 2, 4]);
                let value = *random.pick(&[0u32, 1, 2, 0x7f, 0x80, 0xff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 4096, file.len() as u32]);
                if let Some(field) = file.get_mut(at..at + len) {
                    field.copy_from_slice(&value.to_le_bytes()[..len]);
                }
            }
            file
        }
    }
}

/// The paths of all values in JSON.
fn paths(json: &Json, path: &mut Vec<String>, found: &mut Vec<Vec<String>>) {
    found.push(path.clone());
    let children: Vec<(String, &Json)> = match json {
        Json::Array(list) => list.iter().enumerate().map(|(number, child)| (number.to_string(), child)).collect(),
        Json::Object(map) => map.iter().map(|(name, child)| (name.clone(), child)).collect(),
        _ => Vec::new(),
    };
    for (name, child) in children {
        path.push(name);
        paths(child, path, found);
        path.pop();
    }
}

fn at<'j>(json: &'j mut Json, path: &[String]) -> &'j mut Json {
    path.iter().fold(json, |json, name| match json {
        Json::Array(list) => &mut list[name.parse::<usize>().unwrap()],
        json => &mut json[name],
    })
}

/// Changes one or two values of JSON.
pub(crate) fn values(text: &[u8], random: &mut Random) -> Vec<u8> {
    let mut json: Json = serde_json::from_slice(text).unwrap();
    for _ in 0..=random.below(5) / 4 {
        let mut found = Vec::new();
        paths(&json, &mut Vec::new(), &mut found);
        let (from, to) = (random.below(found.len()), random.below(found.len()));
        let other = at(&mut json, &found[from]).clone();
        let value = at(&mut json, &found[to]);
        let fresh = fresh(random);
        match value {
            Json::Array(list) if !list.is_empty() && random.below(4) > 0 => match random.below(4) {
                0 => drop(list.remove(random.below(list.len()))),
                1 => list.push(other),
                2 => {
                    let (a, b) = (random.below(list.len()), random.below(list.len()));
                    list.swap(a, b);
                }
                _ => {
                    let (again, times) = (random.pick(list).clone(), 1 + random.below(200));
                    list.extend(std::iter::repeat_n(again, times));
                }
            },
            Json::Object(map) if !map.is_empty() && random.below(4) > 0 => {
                let name = map.keys().nth(random.below(map.len())).cloned().unwrap();
                let old = map.remove(&name);
                if random.below(2) == 0 {
                    map.insert(format!("{name}x"), old.unwrap_or(Json::Null));
                }
            }
            Json::String(text) if random.below(4) > 0 => *text = changed_text(text, random),
            Json::Number(number) if random.below(3) > 0 => {
                let near = number.as_i64().unwrap_or(0);
                *value = json!(near.wrapping_add(*random.pick(&[-2, -1, 1, 2, 16])));
            }
            value => *value = if random.below(3) == 0 { other } else { fresh },
        }
    }
    json.to_string().into_bytes()
}

/// A value that no entry has.
fn fresh(random: &mut Random) -> Json {
    let all = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(-1),
        json!(i32::MAX),
        json!(1u64 << 53),
        json!(i64::MAX),
        json!(i64::MIN),
        json!(u64::MAX),
        json!(1e300),
        json!(""),
        json!("x"),
        json!("0x"),
        json!("0xffffffffffffffff"),
        json!("f32[9223372036854775807, 9223372036854775807]"),
        json!("f32[rows, rows, rows, rows, rows, rows, rows, rows, rows]"),
        json!("f8e4m3[4611686018427387904]"),
        json!("rows*rows*rows*rows*rows*rows*rows*rows*rows*rows*rows*rows"),
        json!("rows - 51"),
        json!("rows / (rows - rows)"),
        json!("9223372036854775807*rows"),
        json!("(".repeat(5000)),
        json!("-".repeat(70_000)),
        json!("rows + ".repeat(5000) + "1"),
        json!("é".repeat(100)),
        json!([]),
        json!({}),
        json!([[[[[[]]]]]]),
        json!(["0xffffffffffffffff"]),
        json!(vec![0; 5000]),
        json!(vec![[0]; 5000]),
        json!(vec![json!({ "": 0 }); 2000]),
        json!(vec!["f32[rows]"; 5000]),
    ];
    random.pick(&all).clone()
}

/// Changes a character, a digit or a part of a text.
pub(crate) fn changed_text(text: &str, random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    if chars.is_empty() {
        return "0".to_owned();
    }
    let digits: Vec<usize> = (0..chars.len()).filter(|at| chars[*at].is_ascii_hexdigit()).collect();
    let at = if random.below(2) == 0 || digits.is_empty() { random.below(chars.len()) } else { *random.pick(&digits) };
    match random.below(5) {
        0 => drop(chars.remove(at)),
        1 => chars.insert(at, *random.pick(&['0', '9', '-', '(', ')', '*', ',', '[', ' ', 'x', '%', 'ß'])),
        2 => chars[at] = *random.pick(&['0', '1', '7', '9', 'f', '-', '_', '/', '@', '"']),
        3 => {
            let from = random.below(chars.len());
            let part: Vec<char> = chars[from.min(at)..from.max(at)].to_vec();
            chars.splice(at..at, part);
        }
        _ => chars.truncate(at),
    }
    chars.into_iter().collect()
}

/// Changes a line of a text: a part of it, its position, or its number.
pub(crate) fn lines(text: &[u8], random: &mut Random) -> Vec<u8> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (a, b) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(5) {
        0 => lines.swap(a, b),
        1 => drop(lines.remove(a)),
        2 => lines.insert(a, lines[b].clone()),
        _ => lines[a] = changed_text(&lines[a], random),
    }
    (lines.join("\n") + "\n").into_bytes()
}
