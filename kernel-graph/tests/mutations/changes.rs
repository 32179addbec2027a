//! Changes of packages: of bytes, of the structure of the file, and of what entries state.

use std::io::Write;

use kernel_graph::Package;
use kernel_lang::ir::{BinaryOp, CompareOp, Op, UnaryOp};
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
    zipped_with(entries, SimpleFileOptions::default())
}

fn zipped_with(entries: &Entries, options: SimpleFileOptions) -> Vec<u8> {
    let mut writer = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        writer.start_file(&**name, options.compression_method(CompressionMethod::Stored)).unwrap();
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
    // Sizes of zip64, as of entries above 4 GiB.
    let in_zip64 = zipped_with(of, SimpleFileOptions::default().large_file(true));
    let file = if random.below(3) == 0 { &in_zip64 } else { file };
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

/// The tokens of a text of IR: words, numbers, and single characters.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let is_word = |c: char| c.is_alphanumeric() || "_%@.".contains(c);
    for c in text.chars() {
        match tokens.last_mut() {
            Some(last) if is_word(c) && last.chars().all(is_word) => last.push(c),
            _ => tokens.push(c.to_string()),
        }
    }
    tokens
}

/// Changes IR so that it probably stays a kernel: an operand to another value of its type, an op to another of its family, or a number.
pub(crate) fn typed_ir(text: &[u8], random: &mut Random) -> Vec<u8> {
    let text = String::from_utf8(text.to_vec()).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let result = |line: &str| {
        let (name, rest) = line.trim().split_once(" = ")?;
        let ty = rest.rsplit_once(" : ")?.1.split(" @").next()?;
        (name.starts_with('%') && !name.contains(',')).then(|| (name.to_owned(), ty.to_owned()))
    };
    let results: Vec<(usize, String, String)> =
        lines.iter().enumerate().filter_map(|(at, line)| result(line).map(|(name, ty)| (at, name, ty))).collect();
    let families: [Vec<&str>; 3] = [
        UnaryOp::ALL.iter().map(|op| op.name()).collect(),
        BinaryOp::ALL.iter().map(|op| op.name()).collect(),
        CompareOp::ALL.iter().map(|op| op.name()).collect(),
    ];
    for _ in 0..=random.below(3) {
        let kind = random.below(3);
        // Some places do not fit the kind of change.
        for _ in 0..50 {
            let at = random.below(lines.len());
            let mut tokens = tokens(&lines[at]);
            let spot = random.below(tokens.len().max(1));
            let Some(token) = tokens.get(spot).cloned() else { continue };
            let new = match kind {
                0 => {
                    let Some((.., ty)) = results.iter().find(|(_, name, _)| *name == token).filter(|(line, ..)| *line < at) else {
                        continue;
                    };
                    let alike: Vec<&String> = results
                        .iter()
                        .filter(|(line, name, other)| *line < at && other == ty && *name != token)
                        .map(|(_, name, _)| name)
                        .collect();
                    if alike.is_empty() {
                        continue;
                    }
                    (*random.pick(&alike)).clone()
                }
                1 => match families.iter().find(|family| family.contains(&&*token)) {
                    Some(family) => (*random.pick(family)).to_owned(),
                    None => continue,
                },
                _ if token.parse::<u64>().is_ok() && !lines[at].trim_start().starts_with("kernel") => {
                    // A position of the source, which means nothing.
                    if tokens[..spot].iter().any(|token| token.starts_with('@')) {
                        continue;
                    }
                    (*random.pick(&["0", "1", "2", "5", "8", "31", "63", "64", "100", "1024", "1048576", "9223372036854775807"])).to_owned()
                }
                _ => continue,
            };
            tokens[spot] = new;
            lines[at] = tokens.concat();
            break;
        }
    }
    (lines.join("\n") + "\n").into_bytes()
}

/// Changes some tokens of IR to others that the language has: ops, values, types, attributes, numbers. Much of it stays a kernel.
pub(crate) fn ir(text: &[u8], random: &mut Random) -> Vec<u8> {
    const NUMBERS: [&str; 16] = [
        "0",
        "1",
        "2",
        "3",
        "7",
        "16",
        "64",
        "-1",
        "127",
        "4096",
        "1048576",
        "2147483647",
        "4294967296",
        "9223372036854775807",
        "-9223372036854775808",
        "170141183460469231731687303715884105727",
    ];
    const TYPES: [&str; 16] =
        ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "bf16", "f32", "f64", "f8e4m3", "f8e5m2", "T"];
    const ATTRIBUTES: [&str; 12] = [
        ", in_bounds = true",
        ", align = 16",
        ", partial = true",
        ", shifted = true",
        ", volatile = true",
        ", rare = true",
        ", remainder = true",
        ", guarded = true",
        ", num_stages = 16",
        ", unroll = 64",
        ", evict = \"evict_first_if_small\"",
        ", cache = \"wb\"",
    ];
    let text = String::from_utf8(text.to_vec()).unwrap();
    let mut tokens = tokens(&text);
    let (values, known): (Vec<String>, Vec<String>) = {
        let words = |is: &dyn Fn(&str) -> bool| tokens.iter().filter(|token| is(token)).cloned().collect::<Vec<String>>();
        (words(&|token| token.starts_with('%')), words(&|token| token.chars().all(|c| c.is_ascii_lowercase() || c == '_')))
    };
    let ops: Vec<&str> = Op::TABLE.iter().map(|(name, _)| *name).collect();
    for _ in 0..=random.below(8) / 6 {
        // One of a kind, so that each kind is changed as often.
        let kind = random.below(8);
        let is_of_kind = |token: &String| match kind {
            0 | 1 => token.starts_with('%'),
            2 => token.parse::<i128>().is_ok(),
            3 => TYPES.contains(&&**token),
            4 => ops.contains(&&**token),
            5 => token == "{" || token == "}",
            _ => token.len() > 1,
        };
        let of_kind: Vec<usize> = (0..tokens.len()).filter(|at| is_of_kind(&tokens[*at])).collect();
        if of_kind.is_empty() {
            continue;
        }
        let at = *random.pick(&of_kind);
        tokens[at] = match kind {
            0 | 1 => random.pick(&values).clone(),
            2 => (*random.pick(&NUMBERS)).to_owned(),
            3 => (*random.pick(&TYPES)).to_owned(),
            4 => (*random.pick(&ops)).to_owned(),
            5 if tokens[at] == "}" => format!("{}}}", random.pick(&ATTRIBUTES)),
            5 => format!("{{{} ", random.pick(&ATTRIBUTES).trim_start_matches(", ").to_owned() + ", "),
            6 => random.pick(&known).clone(),
            _ => changed_text(&tokens[at], random),
        };
    }
    tokens.concat().into_bytes()
}
