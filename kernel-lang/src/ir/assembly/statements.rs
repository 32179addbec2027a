//! The statements of an inline PTX text: whether the instructions exist, what they access besides registers, and whether every register is
//! set before it is read.
//!
//! During this analysis a placeholder stands in the text between two mark characters; the emitter later replaces placeholders by registers.

use std::collections::{HashMap, HashSet};

use crate::diagnostic::did_you_mean;
use crate::ir::assembly::Piece;

/// Instructions that only compute from registers.
const COMPUTING: &str = "\
    abs add addc and bfe bfi bfind bmsk brev clz cnot copysign cos cvt div dp2a dp4a ex2 fma fns lg2 lop3 mad mad24 madc max min mov \
    mul mul24 neg not or popc prmt rcp rem rsqrt sad selp set setp shf shl shr sin slct sqrt sub subc szext tanh testp vabsdiff \
    vabsdiff2 vabsdiff4 vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vset vset2 vset4 vshl vshr vsub vsub2 \
    vsub4 xor";

/// Instructions that read memory or other threads, or that jump within the text.
const LOOKING: &str = "\
    activemask bra brx createpolicy cvta elect getctarank isspacep istypep ld ldmatrix ldu mapa match mma movmatrix redux shfl suld \
    suq tex tld4 txq vote wmma";

/// Instructions that change state besides registers, wait, or end the thread.
const ACTING: &str = "\
    alloca applypriority atom bar barrier brkpt call clusterlaunchcontrol cp discard exit fence griddepcontrol mbarrier membar \
    multimem nanosleep pmevent prefetch prefetchu red ret setmaxnreg st stackrestore stacksave stmatrix sured sust tcgen05 tensormap \
    trap wgmma";

/// An element of a text that does more than compute from registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reach {
    /// The instruction, the special register, the directive or the label.
    pub name: String,
    /// Does it change state besides registers, wait, or end the thread?
    pub acts: bool,
}

/// A message and its help.
type Mistake = (String, String);

/// The marks around the name of a placeholder.
const MARKS: [char; 2] = ['\u{1}', '\u{2}'];
/// The flag that `add.cc` sets and `addc` reads.
const CARRY: &str = "the carry";

/// Checks the statements of a text and returns the elements that do more than compute from registers. If there are none, every register is
/// set before it is read, and each of the `results` is set at the end, so that all threads compute the same values.
///
/// # Errors
/// Message and help for a statement without a semicolon, an unknown instruction or register, or a register that is not set.
pub fn statements(pieces: &[Piece], results: &[&str]) -> Result<Vec<Reach>, (String, String)> {
    let texts = pieces.iter().filter_map(|piece| if let Piece::Text(text) = piece { Some(text) } else { None });
    if let Some(c) = texts.flat_map(|text| text.chars()).find(|c| !c.is_ascii()) {
        return Err((format!("PTX is ASCII, and has no `{c}`"), "spell it with ASCII characters, in comments too".to_string()));
    }
    let text = without_comments(&pieces.iter().map(marked).collect::<String>());
    let list = taken_apart(&text)?;
    let mut names = Vec::new();
    for statement in &list {
        match (statement.strip_prefix('.'), statement.strip_suffix(':')) {
            (Some(directive), _) => declared(directive, &mut names),
            (_, Some(label)) => names.push(label.to_string()),
            _ => {}
        }
    }
    let (mut reaches, mut set) = (Vec::new(), Set::default());
    for statement in &list {
        if statement.ends_with(':') {
            reaches.push(Reach { name: statement.clone(), acts: false });
        } else if let Some(directive) = statement.strip_prefix('.') {
            let first = directive.split_whitespace().next().unwrap_or("");
            reaches.extend((first != "reg").then(|| Reach { name: format!(".{first}"), acts: false }));
        } else {
            let instruction = Instruction::of(statement);
            reaches.extend(instruction.reach(&names)?);
            instruction.check_target(results)?;
            set.follow(&instruction, &names, results);
        }
    }
    if reaches.is_empty() {
        set.check(pieces, results)?;
    }
    Ok(reaches)
}

fn is_among(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|known| known == name)
}

/// Splits the text at each semicolon and after each label's colon, without the braces of scopes.
fn taken_apart(text: &str) -> Result<Vec<String>, Mistake> {
    let unbalanced = || ("the braces of the text do not match".to_string(), "a scope is `{{ .. }}`, a vector `{{{x}, {y}}}`".to_string());
    let (mut scopes, mut vectors, mut statement, mut list) = (0usize, 0usize, String::new(), Vec::new());
    for (at, next) in text.char_indices() {
        let is_new = statement.trim().is_empty();
        match next {
            '{' if is_new => scopes += 1,
            '}' if is_new && scopes > 0 => scopes -= 1,
            ';' if is_new => {}
            ';' if vectors == 0 => list.push(std::mem::take(&mut statement).trim().to_string()),
            ':' if is_label(statement.trim()) && !text[at + 1..].starts_with(':') => {
                list.push(format!("{}:", std::mem::take(&mut statement).trim()));
            }
            '}' if is_new || vectors == 0 => return Err(unbalanced()),
            _ => {
                vectors = if next == '{' { vectors + 1 } else { vectors - usize::from(next == '}') };
                statement.push(next);
            }
        }
    }
    let rest = statement.trim();
    if !rest.is_empty() {
        let message = format!("the statement `{}` of the text does not end", shown(rest));
        return Err((message, "every statement of PTX ends in `;`".to_string()));
    }
    if scopes + vectors > 0 { Err(unbalanced()) } else { Ok(list) }
}

fn marked(piece: &Piece) -> String {
    match piece {
        Piece::Text(text) => text.clone(),
        Piece::Register { name, part } => {
            let part = part.map_or(String::new(), |part| format!("[{part}]"));
            format!("{}{name}{part}{}", MARKS[0], MARKS[1])
        }
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

fn is_label(text: &str) -> bool {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$');
    !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(is_inside)
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

/// An instruction of a text.
struct Instruction<'a> {
    /// `p` of `@p`, `!p` of `@!p`; empty if there is none.
    guard: &'a str,
    opcode: &'a str,
    /// The register that it writes, if it computes: the first operand.
    target: &'a str,
    sources: &'a str,
}

impl<'a> Instruction<'a> {
    fn of(statement: &'a str) -> Instruction<'a> {
        let halves = |text: &'a str| text.split_once(char::is_whitespace).map_or((text, ""), |(first, rest)| (first, rest.trim_start()));
        let (guard, instruction) = statement.strip_prefix('@').map_or(("", statement), halves);
        let (opcode, operands) = halves(instruction);
        // A vector, `{lo, hi}`, is one operand.
        let end = if operands.starts_with('{') { operands.find('}').map_or(operands.len(), |end| end + 1) } else { 0 };
        let (target, sources) = operands.split_at(end + operands[end..].find(',').unwrap_or(operands.len() - end));
        Instruction { guard, opcode, target, sources }
    }

    fn base_opcode(&self) -> &'a str {
        self.opcode.split(['.', MARKS[0]]).next().unwrap_or("")
    }

    /// Operand registers belong to the kernel and must not be written.
    fn check_target(&self, results: &[&str]) -> Result<(), Mistake> {
        let opcode = self.base_opcode();
        let writes = is_among(COMPUTING, opcode) || is_among(LOOKING, opcode) && !opcode.starts_with("br") || opcode == "atom";
        match names_in(self.target).find(|name| writes && is_placeholder(name) && !results.contains(&base(name))) {
            Some(name) => {
                let message = format!("the text writes to `{}`, which is an operand", shown(name));
                Err((message, "write to a result, or to a register of its own: `{{ .reg .b32 t; .. }}`".to_string()))
            }
            None => Ok(()),
        }
    }

    /// The part that does more than compute from registers.
    fn reach(&self, names: &[String]) -> Result<Option<Reach>, Mistake> {
        let opcode = self.base_opcode();
        let (looks, acts) = (is_among(LOOKING, opcode), is_among(ACTING, opcode));
        if !looks && !acts && !is_among(COMPUTING, opcode) {
            let help = match did_you_mean(opcode, [COMPUTING, LOOKING, ACTING].into_iter().flat_map(str::split_whitespace)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "instructions are those of the PTX ISA, in lower case: `add.f32 {y}, {x}, {x};`".to_string(),
            };
            return Err((format!("there is no PTX instruction `{opcode}`"), help));
        }
        let mut reach = (looks || acts).then(|| Reach { name: opcode.to_string(), acts });
        let known = |name: &str| names.iter().any(|known| known == name) || matches!(name, "_" | "WARP_SZ");
        for name in
            [self.guard, self.target, self.sources].into_iter().flat_map(names_in).filter(|name| !is_placeholder(name) && !known(name))
        {
            if !name.starts_with('%') {
                let help = format!(
                    "what the text takes and gives stands in braces, `{{{name}}}`; its own registers are declared: `.reg .b32 {name};`"
                );
                return Err((format!("the text names `{name}`, which it does not declare"), help));
            }
            if is_ours(name) {
                let help = "name what the text takes and gives, `{x}`, and declare its own registers: `.reg .b32 t;`".to_string();
                return Err((format!("`{name}` may be a register of the kernel around the text"), help));
            }
            reach = reach.or(Some(Reach { name: name.to_string(), acts: false }));
        }
        Ok(reach)
    }
}

/// The registers that are set so far, in a text without branches.
#[derive(Default)]
struct Set<'a> {
    set: HashSet<&'a str>,
    /// Registers that are set under a guard.
    guarded: HashMap<&'a str, HashSet<&'a str>>,
    unset: Option<&'a str>,
}

impl<'a> Set<'a> {
    fn follow(&mut self, instruction: &Instruction<'a>, names: &[String], results: &[&str]) {
        let Instruction { guard, opcode, target, sources } = *instruction;
        let is_own = |name: &str| names.iter().any(|known| known == name) || results.contains(&base(name));
        let mut reads: Vec<&str> = names_in(guard).chain(names_in(sources)).filter(|name| is_own(name)).collect();
        if opcode.starts_with("addc") || opcode.starts_with("subc") || opcode.starts_with("madc") {
            reads.push(CARRY);
        }
        self.unset = self.unset.or(reads.into_iter().find(|name| !self.set.contains(name)));
        let carry = opcode.split('.').any(|part| part == "cc").then_some(CARRY);
        for name in names_in(target).chain(carry) {
            // A new value of a guard does not complement what was set under its old value.
            self.guarded.values_mut().for_each(|guards| guards.retain(|guard| guard.trim_start_matches('!') != name));
            let under = self.guarded.entry(name).or_default();
            under.insert(guard);
            let is_other = |other: &&str| other.strip_prefix('!') == Some(guard) || guard.strip_prefix('!') == Some(*other);
            if guard.is_empty() || under.iter().any(is_other) {
                self.set.insert(name);
            }
        }
    }

    fn check(&self, pieces: &[Piece], results: &[&str]) -> Result<(), Mistake> {
        let placeholders: Vec<String> = pieces.iter().filter(|piece| matches!(piece, Piece::Register { .. })).map(marked).collect();
        let left = placeholders.iter().find(|placeholder| results.contains(&base(placeholder)) && !self.set.contains(placeholder.as_str()));
        match (self.unset, left) {
            (Some(name), _) => Err((format!("the text reads {} before it is set", named(name)), SET_FIRST.to_string())),
            (None, Some(name)) => Err((format!("the text does not set `{}` in every case", shown(name)), SET_FIRST.to_string())),
            _ => Ok(()),
        }
    }
}

const SET_FIRST: &str = "a register that nothing was written to holds anything; behind `@p`, set it under `@!p`, too, or before";

/// Is it a placeholder for a register of the kernel?
fn is_placeholder(name: &str) -> bool {
    name.starts_with(MARKS[0])
}

fn named(name: &str) -> String {
    if name == CARRY { name.to_string() } else { format!("`{}`", shown(name)) }
}

/// The part of the text as the user wrote it.
fn shown(text: &str) -> String {
    text.replace(MARKS[0], "{").replace(MARKS[1], "}")
}

/// The name in a placeholder, without marks and register index.
fn base(placeholder: &str) -> &str {
    let name = placeholder.trim_matches(MARKS);
    name.split('[').next().unwrap_or(name)
}

/// The names among the operands: placeholders, and identifiers that are not part of a number. The `.x` of a special register is not part of
/// its name.
fn names_in(operands: &str) -> impl Iterator<Item = &str> {
    let is_inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%' | '.');
    let mut rest = operands;
    std::iter::from_fn(move || {
        loop {
            let first = rest.chars().next()?;
            let end = match first == MARKS[0] {
                true => rest.find(MARKS[1]).map_or(rest.len(), |end| end + 1),
                false => rest.find(|c| !is_inside(c)).unwrap_or(rest.len()).max(first.len_utf8()),
            };
            let name = &rest[..end];
            rest = &rest[end..];
            if first == MARKS[0] {
                return Some(name);
            }
            if first.is_ascii_alphabetic() || matches!(first, '_' | '$' | '%') {
                return name.split('.').next();
            }
        }
    })
}

/// Is it a name that the emitter gives to registers?
fn is_ours(name: &str) -> bool {
    ["%p", "%h", "%r", "%rd", "%f", "%fd"]
        .iter()
        .any(|prefix| name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::assembly::parse;

    /// The elements that do more than compute from registers, each marked with `!` if it acts.
    fn look_at(text: &str) -> Result<String, String> {
        let reaches = statements(&parse(text).unwrap(), &["d", "e"]).map_err(|(message, _)| message)?;
        Ok(reaches.into_iter().map(|Reach { name, acts }| if acts { name + "!" } else { name }).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_is_read_is_set_before() {
        for right in [
            "@{p} mov.b32 {d}, {a}; @!{p} mov.b32 {d}, {b};",
            "add.cc.u32 {d}, {a}, {b}; addc.u32 {e}, {a}, {b};",
            "{{ .reg .pred p; setp.lt.s32 p, {a}, {b}; mov.b32 {d}, {a}; @p mov.b32 {d}, {b}; }}",
            "mov.b64 {{{d}, {e}}}, {a};",
        ] {
            assert_eq!(look_at(right), Ok(String::new()), "{right}");
        }
        for (wrong, message) in [
            ("add.u32 {d}, {d}, 1;", "the text reads `{d}` before it is set"),
            ("{{ .reg .b32 t; add.u32 {d}, {a}, t; }}", "the text reads `t` before it is set"),
            ("@{p} mov.b32 {d}, {a};", "the text does not set `{d}` in every case"),
            ("mov.b32 {d[0]}, {a}; st.b32 [{a}], {d[1]};", ""),
            ("mov.b32 {d[0]}, {a}; mov.b32 {e}, {d[1]};", "the text reads `{d[1]}` before it is set"),
            ("addc.u32 {d}, {a}, {b};", "the text reads the carry before it is set"),
            (
                "{{ .reg .pred p; setp.eq.b32 p, {a}, 0; @p mov.b32 {d}, 1; not.pred p, p; @!p mov.b32 {d}, 2; }}",
                "the text does not set `{d}` in every case",
            ),
            ("mov.b32 {a}, {b};", "the text writes to `{a}`, which is an operand"),
            ("ld.global.b32 {a}, [{b}];", "the text writes to `{a}`, which is an operand"),
        ] {
            match message {
                "" => assert_eq!(look_at(wrong), Ok("st!".to_string())),
                message => assert_eq!(look_at(wrong), Err(message.to_string()), "{wrong}"),
            }
        }
    }

    #[test]
    fn statements_are_distinguished() {
        assert_eq!(look_at("// one\n add.f32 {d}, {a}, 0f3F800000; /* two; */ @!{p} mov.b32 {d}, -1;"), Ok(String::new()));
        assert_eq!(look_at("{{ .reg .pred p, q<2>; setp.lt.f32 p|q1, {a}, 1.5e-3; selp.b32 {d}, {a}, 0x10, p; }}"), Ok(String::new()));
        assert_eq!(look_at("{{ .reg .b16 lo, hi; mov.b32 {{lo, hi}}, {a}; mov.b32 {d}, {{hi, lo}}; }}"), Ok(String::new()));
        assert_eq!(look_at("ld.global.f32 {d}, [{p}+4];"), Ok("ld".into()));
        assert_eq!(look_at("// größe\nmov.b32 {d}, {a};"), Err("PTX is ASCII, and has no `ö`".into()));
        assert_eq!(look_at("mov.u32 {d}, %tid.x;"), Ok("%tid".into()));
        assert_eq!(look_at("L: add.u32 {d}, {d}, 1; bra L;"), Ok("L: bra".into()));
        assert_eq!(look_at("bar.sync 0;"), Ok("bar!".into()));
        assert_eq!(look_at("{{ .shared .b32 s[4]; }}"), Ok(".shared".into()));
        assert_eq!(look_at("add.f32 {d}, {a}, {b}"), Err("the statement `add.f32 {d}, {a}, {b}` of the text does not end".into()));
        assert_eq!(look_at("addd.f32 {d}, {a}, {b};"), Err("there is no PTX instruction `addd`".into()));
        assert_eq!(look_at("add.f32 d, {a}, {b};"), Err("the text names `d`, which it does not declare".into()));
        assert_eq!(look_at("add.f32 {d}, %f3, {b};"), Err("`%f3` may be a register of the kernel around the text".into()));
        for wrong in ["{{ add.f32 {d}, {a}, {b};", "add.f32 {d}, {a}, {b}; }}", "mov.b64 {d}, {{{a};"] {
            assert!(look_at(wrong).is_err(), "{wrong}");
        }
    }
}
