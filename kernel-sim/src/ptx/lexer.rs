//! The lexer: splits PTX text into tokens.

use super::{Position, PtxError};

/// The kinds of tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// A name: `ld`, `%r1`, `$L__BB0_1`, `_`.
    Name,
    /// A dot and a word: `.global`, `.L2::128B`, `.2d`. The text of the token excludes the dot.
    Dotted,
    /// A number, in any notation.
    Number,
    /// `".."`; the text of the token excludes the quotes.
    Text,
    /// One or two characters: `,`, `[`, `<<`.
    Sign,
    /// The end of the text.
    End,
}

/// A token: its kind, its text and its range in the input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// The start in the input, including dots and quotes.
    pub(super) start: usize,
    /// The end in the input.
    pub(super) end: usize,
}

impl Token<'_> {
    /// Whether the token is this sign.
    pub(super) fn is(&self, sign: &str) -> bool {
        self.kind == Kind::Sign && self.text == sign
    }
}

/// Splits the text into tokens; the last one is [`Kind::End`]. Comments are dropped.
pub(super) fn tokens(text: &str) -> Result<Vec<Token<'_>>, PtxError> {
    if let Some((offset, c)) = text.char_indices().find(|(_, c)| !c.is_ascii()) {
        // NVIDIA's assembler also rejects such characters, even in comments and file names.
        return Err(error(text, offset, format!("PTX is ASCII, and has no `{c}`")));
    }
    let mut tokens = Vec::with_capacity(text.len() / 4 + 1);
    let mut offset = 0;
    loop {
        offset = skip_blanks(text, offset)?;
        let token = next(text, offset)?;
        offset = token.end;
        tokens.push(token);
        if token.kind == Kind::End {
            return Ok(tokens);
        }
    }
}

/// The line and the column of an offset in the text.
pub(super) fn position(text: &str, offset: usize) -> Position {
    let before = text.as_bytes().get(..offset).unwrap_or_default();
    let line = before.iter().filter(|&&byte| byte == b'\n').count();
    let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
    Position { line: small(line + 1), column: small(offset - start + 1) }
}

/// Converts a line or column to 32 bits; larger values saturate.
pub(super) fn small(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn error(text: &str, offset: usize, message: impl Into<String>) -> PtxError {
    PtxError::new(text, position(text, offset), message)
}

/// The offset of the next byte that is neither white space nor part of a comment.
fn skip_blanks(text: &str, mut offset: usize) -> Result<usize, PtxError> {
    let bytes = text.as_bytes();
    loop {
        match bytes.get(offset..).unwrap_or_default() {
            [b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c', ..] => offset += 1,
            [b'/', b'/', rest @ ..] => offset += 2 + rest.iter().position(|&byte| byte == b'\n').unwrap_or(rest.len()),
            [b'/', b'*', rest @ ..] => match rest.windows(2).position(|two| two == b"*/") {
                Some(length) => offset += length + 4,
                None => return Err(error(text, offset, "the comment has no end")),
            },
            _ => return Ok(offset),
        }
    }
}

fn next(text: &str, start: usize) -> Result<Token<'_>, PtxError> {
    let bytes = text.as_bytes();
    let token = |kind: Kind, skip: usize, end: usize| Token { kind, text: &text[start + skip..end], start, end };
    let word_end = |from: usize| from + bytes[from..].iter().take_while(|&&byte| is_word(byte)).count();
    Ok(match bytes[start..] {
        [] => token(Kind::End, 0, start),
        [b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'$', ..] => token(Kind::Name, 0, word_end(start)),
        [b'%', next, ..] if is_word(next) => token(Kind::Name, 0, word_end(start + 1)),
        [b'.', next, ..] if is_word(next) => {
            let mut end = word_end(start + 1);
            while let [b':', b':', next, ..] = bytes[end..]
                && is_word(next)
            {
                end = word_end(end + 2);
            }
            token(Kind::Dotted, 1, end)
        }
        [b'0'..=b'9', ..] => token(Kind::Number, 0, number_end(bytes, start)),
        [b'"', ref rest @ ..] => match rest.iter().position(|&byte| matches!(byte, b'"' | b'\n')) {
            Some(length) if rest[length] == b'"' => {
                let end = start + length + 2;
                Token { kind: Kind::Text, text: &text[start + 1..end - 1], start, end }
            }
            _ => return Err(error(text, start, "the text has no closing quote")),
        },
        [b'<', b'<', ..] | [b'>', b'>', ..] | [b'<' | b'>' | b'=' | b'!', b'=', ..] | [b'&', b'&', ..] | [b'|', b'|', ..] => {
            token(Kind::Sign, 0, start + 2)
        }
        [byte, ..] if b",;:()[]{}<>=+-*/%!~&|^?@".contains(&byte) => token(Kind::Sign, 0, start + 1),
        _ => {
            let found = text[start..].chars().next().unwrap_or_default();
            let found = if found.is_control() { found.escape_default().to_string() } else { found.to_string() };
            return Err(error(text, start, format!("`{found}` has no meaning in PTX")));
        }
    })
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}

/// The end of a number: digits and letters, a fraction, and an exponent with its sign. The parser decides the value.
fn number_end(bytes: &[u8], start: usize) -> usize {
    let digits = |from: usize| from + bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut end = digits(start);
    let is_prefixed = bytes[start] == b'0' && matches!(bytes.get(start + 1), Some(b'x' | b'X' | b'b' | b'B' | b'f' | b'F' | b'd' | b'D'));
    if !is_prefixed {
        if bytes.get(end) == Some(&b'.') {
            end = digits(end + 1);
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let signed = end + 1 + usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
            if bytes.get(signed).is_some_and(u8::is_ascii_digit) {
                end = digits(signed);
            }
        }
    }
    end + bytes[end..].iter().take_while(|&&byte| is_word(byte)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<(Kind, &str)> {
        let tokens = tokens(text).unwrap();
        tokens.iter().map(|token| (token.kind, token.text)).filter(|(kind, _)| *kind != Kind::End).collect()
    }

    #[test]
    fn words_and_dots() {
        use Kind::{Dotted, Name, Sign};
        let expected = [
            (Sign, "@"),
            (Name, "%p1"),
            (Name, "ld"),
            (Dotted, "global"),
            (Dotted, "L2::128B"),
            (Name, "%tid"),
            (Dotted, "x"),
            (Name, "_"),
            (Sign, ":"),
            (Sign, "<<"),
        ];
        assert_eq!(cut("@%p1 ld.global.L2::128B /* no */ %tid.x // no\n_:<<"), expected);
    }

    #[test]
    fn numbers_end_where_they_end() {
        for number in ["0", "017", "0x1FU", "0b101U", "0f3F800000", "0d3FF0000000000000", "1.5", "1.", "1e5", "1.5e-7", "12U", "0x1p"] {
            assert_eq!(cut(number), [(Kind::Number, number)]);
        }
        assert_eq!(cut("1e-x"), [(Kind::Number, "1e"), (Kind::Sign, "-"), (Kind::Name, "x")]);
    }

    #[test]
    fn text_that_is_no_token_is_an_error_with_its_position() {
        for (text, line, column) in
            [("a\n  #", 2, 3), ("/* a", 1, 1), ("a \"b\n\"", 1, 3), ("é", 1, 1), ("a // é", 1, 6), ("% ", 0, 0), (". ", 1, 1)]
        {
            match tokens(text) {
                Ok(_) => assert_eq!(line, 0, "{text}"),
                Err(error) => assert_eq!((error.position.line, error.position.column), (line, column), "{text}"),
            }
        }
    }
}
