//! Texts of PTX in a kernel: their places for registers, and what their statements do.
//!
//! A place is `{name}`, or `{name[1]}` where several registers hold what the text takes of a value; `{{` and `}}` are braces, as in Rust's `asm!`.

use std::fmt;

use crate::diagnostic::did_you_mean;
use crate::dtype::Dtype;

/// A part of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// What stands there.
    Text(String),
    /// A register of a result or an operand.
    Register {
        /// Which one: by its name in the language, by its number in the IR.
        name: String,
        /// Which of its registers, if it has several.
        part: Option<usize>,
    },
}

/// As it is written in a text.
impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Piece::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            Piece::Register { name, part: None } => write!(f, "{{{name}}}"),
            Piece::Register { name, part: Some(part) } => write!(f, "{{{name}[{part}]}}"),
        }
    }
}

/// Takes a text apart.
///
/// # Errors
/// A brace without its other half, and what is no place.
pub fn parse(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let (mut plain, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        if let Some(doubled) = ["{{", "}}"].into_iter().find(|doubled| rest.starts_with(doubled)) {
            plain.push(first);
            rest = &rest[doubled.len()..];
        } else if first == '{' {
            let end = rest.find('}').ok_or("a `{` of the text has no `}`")?;
            if !plain.is_empty() {
                pieces.push(Piece::Text(std::mem::take(&mut plain)));
            }
            pieces.push(place(&rest[1..end])?);
            rest = &rest[end + 1..];
        } else if first == '}' {
            return Err("a `}` of the text has no `{`".to_string());
        } else {
            plain.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    Ok(pieces)
}

/// What stands between the braces of a place.
fn place(text: &str) -> Result<Piece, String> {
    let (name, part) = match text.split_once('[').map(|(name, part)| (name, part.strip_suffix(']').and_then(|part| part.parse().ok()))) {
        None => (text, None),
        Some((name, Some(part))) => (name, Some(part)),
        Some((_, None)) => return Err(format!("`{{{text}}}` is no place for a register")),
    };
    let is_name = !name.is_empty() && name.chars().all(|c| c == '_' || c.is_alphanumeric());
    if is_name { Ok(Piece::Register { name: name.to_string(), part }) } else { Err(format!("`{{{text}}}` is no place for a register")) }
}

/// Does a register of 32 bits hold several elements, where a text takes `pack` of them at once?
pub fn is_packed(dtype: Dtype, pack: usize) -> bool {
    pack > 1 && dtype.bits() < 32 && dtype != Dtype::Bool
}

/// How many registers hold `pack` elements.
///
/// # Errors
/// Narrow elements that do not fill registers of 32 bits.
pub fn registers(dtype: Dtype, pack: usize) -> Result<usize, String> {
    if !is_packed(dtype, pack) {
        return Ok(pack);
    }
    let bits = pack * dtype.bits() as usize;
    if bits % 32 != 0 {
        return Err(format!("`pack = {pack}` of `{dtype}` are {bits} bits, and packed elements fill registers of 32 bits"));
    }
    Ok(bits / 32)
}

/// Checks the places of a text against the types of the results and operands in their order, as far as these are known.
///
/// # Errors
/// A place that names none of them or none of their registers, and elements that cannot be packed.
pub fn check(text: &str, types: &[Option<Dtype>], pack: usize) -> Result<(), String> {
    for dtype in types.iter().flatten() {
        registers(*dtype, pack)?;
    }
    for piece in parse(text)? {
        let Piece::Register { name, part } = &piece else { continue };
        let index = name.parse::<usize>().ok().filter(|index| *index < types.len());
        let Some(index) = index else { return Err(format!("the place `{piece}` is that of no result and no operand")) };
        let Some(dtype) = types[index] else { continue };
        check_part(&piece, dtype, pack, *part)?;
    }
    Ok(())
}

/// Checks one place of something with that element type.
///
/// # Errors
/// A register that is not there, or several where one is meant.
pub fn check_part(piece: &Piece, dtype: Dtype, pack: usize, part: Option<usize>) -> Result<(), String> {
    let count = registers(dtype, pack)?;
    match part {
        None if count > 1 => Err(format!("`{piece}` is {count} registers, because `pack = {pack}` of `{dtype}` are")),
        Some(part) if part >= count => {
            Err(format!("there is no `{piece}`: it has {count} register{}", if count == 1 { "" } else { "s" }))
        }
        _ => Ok(()),
    }
}

/// Instructions that compute from registers and nothing else.
const COMPUTING: &[&str] = &[
    "abs", "add", "addc", "and", "bfe", "bfi", "bfind", "bmsk", "brev", "clz", "cnot", "copysign", "cos", "cvt", "div", "dp2a", "dp4a",
    "ex2", "fma", "fns", "lg2", "lop3", "mad", "mad24", "madc", "max", "min", "mov", "mul", "mul24", "neg", "not", "or", "popc", "prmt",
    "rcp", "rem", "rsqrt", "sad", "selp", "set", "setp", "shf", "shl", "shr", "sin", "slct", "sqrt", "sub", "subc", "szext", "tanh",
    "testp", "vabsdiff", "vabsdiff2", "vabsdiff4", "vadd", "vadd2", "vadd4", "vavrg2", "vavrg4", "vmad", "vmax", "vmax2", "vmax4", "vmin",
    "vmin2", "vmin4", "vset", "vset2", "vset4", "vshl", "vshr", "vsub", "vsub2", "vsub4", "xor",
];

/// Instructions that look at memory or at other threads, or go elsewhere in the text.
const LOOKING: &[&str] = &[
    "activemask", "bra", "brx", "createpolicy", "cvta", "elect", "getctarank", "isspacep", "istypep", "ld", "ldmatrix", "ldu", "mapa", "match",
    "mma", "movmatrix", "redux", "shfl", "suld", "suq", "tex", "tld4", "txq", "vote", "wmma",
];

/// Instructions that change something besides registers, wait, or end the thread.
const ACTING: &[&str] = &[
    "alloca", "applypriority", "atom", "bar", "barrier", "brkpt", "call", "clusterlaunchcontrol", "cp", "discard", "exit", "fence",
    "griddepcontrol", "mbarrier", "membar", "multimem", "nanosleep", "pmevent", "prefetch", "prefetchu", "red", "ret", "setmaxnreg", "st",
    "stackrestore", "stacksave", "stmatrix", "sured", "sust", "tcgen05", "tensormap", "trap", "wgmma",
];

/// Something in a text that does more than compute from registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reach {
    /// The instruction, the special register, the directive or the label.
    pub word: String,
    /// Does it change something besides registers, wait, or end the thread?
    pub acts: bool,
}

/// Checks the statements of a text, whose places stand for registers. Gives what in it does more than compute from registers.
///
/// # Errors
/// What is wrong and how to mend it: a statement without a semicolon, an instruction or a register that there is not.
pub fn statements(pieces: &[Piece]) -> Result<Vec<Reach>, (String, String)> {
    let text = without_comments(&pieces.iter().map(register_as_star).collect::<String>());
    let (mut scopes, mut vectors, mut statement) = (0usize, 0usize, String::new());
    let (mut list, mut names) = (Vec::new(), Vec::new());
    for (at, next) in text.char_indices() {
        let is_new = statement.trim().is_empty();
        match next {
            '{' if is_new => scopes += 1,
            '}' if is_new && scopes > 0 => scopes -= 1,
            '}' if is_new || vectors == 0 => return Err(unbalanced()),
            '{' => vectors += 1,
            '}' => vectors -= 1,
            ';' if is_new => {}
            ';' if vectors == 0 => list.push(std::mem::take(&mut statement).trim().to_string()),
            ':' if is_word(statement.trim()) && !text[at + 1..].starts_with(':') => {
                names.push(statement.trim().to_string());
                list.push(format!("{}:", std::mem::take(&mut statement).trim()));
                continue;
            }
            _ => {}
        }
        if !(matches!(next, '{' | '}' | ';') && is_new || next == ';') {
            statement.push(next);
        }
    }
    let rest = statement.trim();
    if !rest.is_empty() {
        let message = format!("the statement `{}` of the text does not end", rest.replace('*', "{..}"));
        return Err((message, "every statement of PTX ends in `;`".to_string()));
    }
    if scopes + vectors > 0 {
        return Err(unbalanced());
    }
    list.iter().filter_map(|statement| statement.strip_prefix('.')).for_each(|directive| declared(directive, &mut names));
    let mut reaches = Vec::new();
    for statement in &list {
        reaches.extend(look(statement, &names)?);
    }
    Ok(reaches)
}

fn unbalanced() -> (String, String) {
    ("the braces of the text do not match".to_string(), "a scope is `{{ .. }}`, a vector `{{{x}, {y}}}`".to_string())
}

fn register_as_star(piece: &Piece) -> String {
    match piece {
        Piece::Text(text) => text.clone(),
        Piece::Register { .. } => "*".to_string(),
    }
}

fn without_comments(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("//").into_iter().chain(rest.find("/*")).min() {
        out.push_str(&rest[..at]);
        let (end, skipped) = if rest[at..].starts_with("//") { ("\n", 0) } else { ("*/", 2) };
        rest = rest[at..].find(end).map_or("", |length| &rest[at + length + skipped..]);
    }
    out + rest
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '$'))
}

/// The names that `.reg .b32 a, b<4>` declares.
fn declared(directive: &str, names: &mut Vec<String>) {
    for part in directive.split(',') {
        let name = part.split_whitespace().next_back().unwrap_or("");
        match name.split_once('<').and_then(|(name, count)| Some((name, count.trim_end_matches('>').parse::<usize>().ok()?))) {
            Some((name, count)) => names.extend((0..count.min(1024)).map(|index| format!("{name}{index}"))),
            None => names.push(name.split('[').next().unwrap_or("").to_string()),
        }
    }
}

/// Checks one statement; gives what in it does more than compute.
fn look(statement: &str, names: &[String]) -> Result<Option<Reach>, (String, String)> {
    let looks = |word: String| Some(Reach { word, acts: false });
    if statement.ends_with(':') {
        return Ok(looks(statement.to_string()));
    }
    if let Some(directive) = statement.strip_prefix('.') {
        let word = directive.split_whitespace().next().unwrap_or("");
        return Ok(if word == "reg" { None } else { looks(format!(".{word}")) });
    }
    let (guard, instruction) = match statement.strip_prefix('@') {
        Some(rest) => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        None => ("", statement),
    };
    let instruction = instruction.trim_start();
    let (opcode, operands) = instruction.split_once(char::is_whitespace).unwrap_or((instruction, ""));
    let word = opcode.split(['.', '*']).next().unwrap_or("");
    let (looks_around, acts) = (LOOKING.contains(&word), ACTING.contains(&word));
    if !looks_around && !acts && !COMPUTING.contains(&word) {
        let help = match did_you_mean(word, COMPUTING.iter().chain(LOOKING).chain(ACTING).copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "instructions are those of the PTX ISA, in lower case: `add.f32 {y}, {x}, {x};`".to_string(),
        };
        return Err((format!("PTX has no instruction `{word}`"), help));
    }
    let mut special = None;
    for name in words(guard).chain(words(operands)) {
        let plain = name.split('.').next().unwrap_or("");
        if plain == "_" || names.iter().any(|known| known == plain) || plain == "WARP_SZ" {
            continue;
        }
        if !plain.starts_with('%') {
            let help = format!("what the text takes and gives stands in braces, `{{{plain}}}`; its own registers are declared: `.reg .b32 {plain};`");
            return Err((format!("the text names `{plain}`, which it does not declare"), help));
        }
        if is_ours(plain) {
            let help = "name what the text takes and gives, `{x}`, and declare its own registers: `.reg .b32 t;`".to_string();
            return Err((format!("`{plain}` may be a register of the kernel around the text"), help));
        }
        special = special.or(Some(plain.to_string()));
    }
    Ok(if acts || looks_around { Some(Reach { word: word.to_string(), acts }) } else { special.and_then(looks) })
}

/// The names among operands: what begins as a name and is no part of a number.
fn words(operands: &str) -> impl Iterator<Item = &str> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    operands.split(move |c| !is_inside(c)).filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '%')))
}

/// Is it a name that the emitter gives to registers?
fn is_ours(name: &str) -> bool {
    ["%p", "%h", "%r", "%rd", "%f", "%fd"].iter().any(|prefix| {
        name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What reaches out of the registers; with a `!` if it acts.
    fn look_at(text: &str) -> Result<String, String> {
        let reaches = statements(&parse(text).unwrap()).map_err(|(message, _)| message)?;
        Ok(reaches.into_iter().map(|Reach { word, acts }| if acts { word + "!" } else { word }).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn texts_are_taken_apart_and_put_together() {
        for text in ["", "add.f32 {d}, {a}, {b};", "{{ .reg .b32 t; mov.b32 {d[1]}, t; }}", "mov.b32 {0}, {{{1}, {2[0]}}};"] {
            assert_eq!(parse(text).unwrap().iter().map(Piece::to_string).collect::<String>(), text);
        }
        for wrong in ["{", "}", "{}", "{a b}", "{a[}", "{a[b]}", "{a.0}"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn statements_are_told_apart() {
        assert_eq!(look_at("// one\n add.f32 {d}, {a}, 0f3F800000; /* two; */ @!{p} mov.b32 {d}, -1;"), Ok(String::new()));
        assert_eq!(look_at("{{ .reg .pred p, q<2>; setp.lt.f32 p|q1, {a}, 1.5e-3; selp.b32 {d}, {a}, 0x10, p; }}"), Ok(String::new()));
        assert_eq!(look_at("{{ .reg .b16 lo, hi; mov.b32 {{lo, hi}}, {a}; mov.b32 {d}, {{hi, lo}}; }}"), Ok(String::new()));
        assert_eq!(look_at("ld.global.f32 {d}, [{p}+4];"), Ok("ld".into()));
        assert_eq!(look_at("mov.u32 {d}, %tid.x;"), Ok("%tid".into()));
        assert_eq!(look_at("L: add.u32 {d}, {d}, 1; bra L;"), Ok("L: bra".into()));
        assert_eq!(look_at("bar.sync 0;"), Ok("bar!".into()));
        assert_eq!(look_at("{{ .shared .b32 s[4]; }}"), Ok(".shared".into()));
        assert_eq!(look_at("add.f32 {d}, {a}, {b}"), Err("the statement `add.f32 {..}, {..}, {..}` of the text does not end".into()));
        assert_eq!(look_at("addd.f32 {d}, {a}, {b};"), Err("PTX has no instruction `addd`".into()));
        assert_eq!(look_at("add.f32 d, {a}, {b};"), Err("the text names `d`, which it does not declare".into()));
        assert_eq!(look_at("add.f32 {d}, %f3, {b};"), Err("`%f3` may be a register of the kernel around the text".into()));
        for wrong in ["{{ add.f32 {d}, {a}, {b};", "add.f32 {d}, {a}, {b}; }}", "mov.b64 {d}, {{{a};"] {
            assert!(look_at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn narrow_elements_fill_whole_registers() {
        assert_eq!(registers(Dtype::U8, 4), Ok(1));
        assert_eq!(registers(Dtype::F16, 4), Ok(2));
        assert_eq!(registers(Dtype::F32, 4), Ok(4));
        assert_eq!(registers(Dtype::U8, 1), Ok(1));
        assert!(registers(Dtype::U8, 2).is_err());
    }
}
