//! The tokens of the text form, and its syntax errors.

use std::fmt;

/// A text that is not a kernel: the line (from 1) and the error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The line.
    pub line: u32,
    /// The error message.
    pub message: String,
}

impl ParseError {
    pub(super) fn new(line: u32, message: impl Into<String>) -> ParseError {
        ParseError { line, message: message.into() }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// A token; the lexer pairs it with its line.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Token {
    /// An identifier or keyword: an op, a dtype, an attribute, `kernel`.
    Word(String),
    /// `%name`, without the percent sign.
    Value(String),
    /// An integer.
    Int(i128),
    /// A float: it has a point, an exponent, or is `inf` or `nan`.
    Float(f64),
    /// A quoted string.
    Text(String),
    /// Punctuation.
    Sign(&'static str),
    /// The end of the text.
    End,
}

const SIGNS: &[&str] = &[
    "<<", ">>", "==", "!=", "<=", ">=", "::", "(", ")", "{", "}", "[", "]", "<", ">", ",", ":", "=", "|", "@", "+", "-", "*", "/", "%",
    "&", "^", "!",
];

/// Splits a text into tokens. A comment runs from `;` to the end of the line.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, u32)>, ParseError> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\n' => {
                line += 1;
                1
            }
            ';' => rest.find('\n').unwrap_or(rest.len()),
            _ if first.is_whitespace() => first.len_utf8(),
            '%' if rest[1..].starts_with(is_word) => {
                let length = 1 + word_length(&rest[1..]);
                tokens.push((Token::Value(rest[1..length].to_string()), line));
                length
            }
            '"' => {
                let (text, length) = quoted(rest).ok_or_else(|| ParseError::new(line, "a text has no closing quote"))?;
                tokens.push((Token::Text(text), line));
                length
            }
            '0'..='9' => {
                let (token, length) = number(rest).ok_or_else(|| ParseError::new(line, "a number is malformed"))?;
                tokens.push((token, line));
                length
            }
            _ if is_word(first) => {
                let length = word_length(rest);
                let is_name = matches!(tokens.last(), Some((Token::Sign("@"), _)));
                let token = match &rest[..length] {
                    "inf" if !is_name => Token::Float(f64::INFINITY),
                    "nan" if !is_name => Token::Float(f64::NAN),
                    word => Token::Word(word.to_string()),
                };
                tokens.push((token, line));
                length
            }
            _ => {
                let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
                let sign = sign.ok_or_else(|| ParseError::new(line, format!("`{first}` has no meaning here")))?;
                tokens.push((Token::Sign(sign), line));
                sign.len()
            }
        };
        rest = &rest[length..];
    }
    tokens.push((Token::End, line));
    Ok(tokens)
}

/// Rust's identifiers may also contain marks that are not letters.
fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || !(c.is_ascii() || c.is_whitespace() || c.is_control())
}

fn word_length(text: &str) -> usize {
    text.find(|c: char| !is_word(c)).unwrap_or(text.len())
}

fn number(text: &str) -> Option<(Token, usize)> {
    let bytes = text.as_bytes();
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut length = digits(0);
    let mut is_float = false;
    if bytes.get(length) == Some(&b'.') {
        is_float = true;
        length += 1 + digits(length + 1);
    }
    if matches!(bytes.get(length), Some(b'e' | b'E')) {
        is_float = true;
        length += 1 + usize::from(matches!(bytes.get(length + 1), Some(b'+' | b'-')));
        length += digits(length);
    }
    let number = &text[..length];
    let token = if is_float { Token::Float(number.parse().ok()?) } else { Token::Int(number.parse().ok()?) };
    Some((token, length))
}

/// Parses a string as Rust's `{:?}` prints it.
fn quoted(text: &str) -> Option<(String, usize)> {
    let mut out = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return Some((out, index + 1)),
            '\\' => match chars.next()?.1 {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                '0' => out.push('\0'),
                'u' => {
                    let digits: String = chars.by_ref().map(|(_, c)| c).skip(1).take_while(|c| *c != '}').collect();
                    out.push(char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?);
                }
                escaped => out.push(escaped),
            },
            _ => out.push(c),
        }
    }
    None
}
