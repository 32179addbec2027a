//! The tokens of the text of a graph.

use std::ops::Range;

use super::Span;

/// A token: its kind, the bytes of the text that it takes, and where it begins.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) bytes: Range<usize>,
    pub(super) span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A name or a keyword.
    Word,
    /// A token that begins with a digit.
    Number,
    /// `%x`
    Local,
    /// `@layer.weight`, `@"a name"`
    Constant,
    /// `"a text"`
    Text,
    Sign(&'static str),
    /// The end of a line, outside of parentheses and brackets.
    Newline,
    End,
}

const SIGNS: [&str; 19] = ["..=", "::", "(", ")", "[", "]", "{", "}", "<", ">", ",", ":", "=", "+", "-", "*", "/", "%", "#"];

/// Letters, digits and `_`. Rust's names may have marks beyond ASCII that are no letters.
pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || !(c.is_ascii() || c.is_whitespace() || c.is_control())
}

/// Splits a text into tokens, of which the last one is the end. A comment runs from `//` to the end of the line.
///
/// # Errors
/// Where the first character is that begins no token, and what is wrong.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, (Span, String)> {
    let (mut tokens, mut depth, mut at) = (Vec::new(), 0usize, 0);
    let mut span = Span { line: 1, column: 1 };
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let words = |from: usize| rest[from..].find(|c| !is_word(c)).unwrap_or(rest.len() - from);
        let quoted = |from: usize| {
            let length = quoted_length(&rest[from..]).ok_or_else(|| (span, "a text has no closing quote".to_owned()))?;
            Ok::<usize, (Span, String)>(from + length)
        };
        let (kind, length) = match first {
            '\n' if depth == 0 => (Some(Kind::Newline), 1),
            _ if first.is_whitespace() => (None, first.len_utf8()),
            _ if rest.starts_with("//") => (None, rest.find('\n').unwrap_or(rest.len())),
            '%' if words(1) > 0 => (Some(Kind::Local), 1 + words(1)),
            '@' if rest[1..].starts_with('"') => (Some(Kind::Constant), quoted(1)?),
            '@' => match rest[1..].find(|c| !(is_word(c) || c == '.')).unwrap_or(rest.len() - 1) {
                0 => return Err((span, "`@` has no name".to_owned())),
                length => (Some(Kind::Constant), 1 + length),
            },
            '"' => (Some(Kind::Text), quoted(0)?),
            '0'..='9' => (Some(Kind::Number), number_length(rest)),
            _ if is_word(first) => (Some(Kind::Word), words(0)),
            _ => {
                let sign = SIGNS.into_iter().find(|sign| rest.starts_with(sign));
                let sign = sign.ok_or_else(|| (span, format!("{first:?} has no meaning here")))?;
                match sign {
                    "(" | "[" => depth += 1,
                    ")" | "]" => depth = depth.saturating_sub(1),
                    _ => {}
                }
                (Some(Kind::Sign(sign)), sign.len())
            }
        };
        tokens.extend(kind.map(|kind| Token { kind, bytes: at..at + length, span }));
        let taken = &rest[..length];
        span = match taken.rfind('\n') {
            None => Span { column: span.column + taken.chars().count(), ..span },
            Some(last) => Span { line: span.line + taken.matches('\n').count(), column: taken[last + 1..].chars().count() + 1 },
        };
        at += length;
    }
    tokens.push(Token { kind: Kind::End, bytes: at..at, span });
    Ok(tokens)
}

/// The length of a number: digits and letters, such as of `0x1f`, a fraction and an exponent. The `..` of a range ends it.
fn number_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut length = 0;
    loop {
        let is_exponent =
            matches!(bytes.get(length), Some(b'e' | b'E')) && bytes[..length].iter().all(|byte| matches!(byte, b'0'..=b'9' | b'.'));
        if is_exponent && matches!(bytes.get(length + 1), Some(b'+' | b'-')) && is_digit(length + 2) {
            length += 2;
        } else if bytes.get(length).is_some_and(u8::is_ascii_alphanumeric) || (bytes.get(length) == Some(&b'.') && is_digit(length + 1)) {
            length += 1;
        } else {
            return length;
        }
    }
}

/// The length of a quoted text with its quotes. `None` without a closing quote in the line.
fn quoted_length(text: &str) -> Option<usize> {
    let mut chars = text.char_indices().skip(1);
    loop {
        match chars.next()? {
            (at, '"') => return Some(at + 1),
            (_, '\\') => drop(chars.next().filter(|(_, escaped)| *escaped != '\n')?),
            (_, '\n') => return None,
            _ => {}
        }
    }
}

/// The text that Rust's `{:?}` writes so, with its quotes. `None` for an escape that Rust has not.
pub(super) fn unquoted(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.strip_prefix('"')?.strip_suffix('"')?.chars();
    while let Some(c) = chars.next() {
        out.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                '0' => '\0',
                'u' => {
                    let digits: String = chars.by_ref().take_while(|c| *c != '}').collect();
                    char::from_u32(u32::from_str_radix(digits.strip_prefix('{')?, 16).ok()?)?
                }
                escaped @ ('"' | '\\' | '\'') => escaped,
                _ => return None,
            },
            c => c,
        });
    }
    Some(out)
}
