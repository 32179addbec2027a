//! The parser's position in the tokens: what is next, and what must be.

use std::collections::HashSet;

use kernel_runtime::Dim;

use super::lexer::{self, Kind, Token};
use super::{Name, NameKind, Span, TextError};

pub(super) type Parsed<T> = Result<T, TextError>;

/// The tokens of a text, and the dims that it has declared.
pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) tokens: Vec<Token>,
    /// The index of the next token.
    pub(super) at: usize,
    pub(super) dims: Vec<Dim>,
    pub(super) dim_names: HashSet<String>,
}

impl<'t> Parser<'t> {
    pub(super) fn names(&mut self) -> Parsed<Vec<Name>> {
        let mut names = vec![self.name("a value")?];
        while self.accept(",") {
            names.push(self.name("a value")?);
        }
        Ok(names)
    }

    pub(super) fn name(&mut self, what: &str) -> Parsed<Name> {
        let span = self.span();
        let kind = match (self.kind(), self.token()) {
            (Kind::Local, token) => NameKind::Local(token[1..].to_owned()),
            (Kind::Constant, token) if token.starts_with("@\"") => {
                let name = lexer::unquoted(&token[1..]);
                NameKind::Constant(name.ok_or_else(|| self.error(span, "a name has an escape that is not known".to_owned(), None))?)
            }
            (Kind::Constant, token) => NameKind::Constant(token[1..].to_owned()),
            (Kind::Word, "unused") => NameKind::Unused,
            _ => return Err(self.expected(what)),
        };
        self.at += 1;
        Ok(Name { kind, span })
    }

    /// The text of all tokens up to one of these signs outside of parentheses, with a space in place of each gap.
    pub(super) fn run_of_tokens(&mut self, what: &str, ends: &[&str]) -> Parsed<String> {
        let (start, mut depth, mut text) = (self.at, 0usize, String::new());
        loop {
            match self.kind() {
                Kind::Sign(sign) if depth == 0 && ends.contains(&sign) => break,
                Kind::Sign("(") => depth += 1,
                Kind::Sign(")") if depth > 0 => depth -= 1,
                Kind::Sign(")" | "[" | "]" | "{" | "}" | "=") | Kind::Newline | Kind::End => break,
                _ => {}
            }
            let bytes = self.tokens[self.at].bytes.clone();
            if self.at > start && self.tokens[self.at - 1].bytes.end < bytes.start {
                text.push(' ');
            }
            text.push_str(&self.text[bytes]);
            self.at += 1;
        }
        if self.at == start { Err(self.expected(what)) } else { Ok(text) }
    }

    pub(super) fn integer(&mut self) -> Parsed<i64> {
        let number = if self.kind() == Kind::Number { self.token().parse().ok() } else { None };
        self.at += usize::from(number.is_some());
        number.ok_or_else(|| self.expected("an integer"))
    }

    /// The digits behind `#`, which may begin with a letter.
    pub(super) fn hash(&mut self) -> Parsed<String> {
        let token = self.token();
        let is_hash = matches!(self.kind(), Kind::Word | Kind::Number) && token.chars().all(|c| c.is_ascii_hexdigit());
        if !is_hash {
            return Err(self.expected("the digits of a hash"));
        }
        self.at += 1;
        Ok(token.to_ascii_lowercase())
    }

    pub(super) fn word(&mut self, what: &str) -> Parsed<String> {
        if self.kind() != Kind::Word {
            return Err(self.expected(what));
        }
        self.at += 1;
        Ok(self.text[self.tokens[self.at - 1].bytes.clone()].to_owned())
    }

    /// A word, or a name in quotes.
    pub(super) fn symbol(&mut self, what: &str) -> Parsed<String> {
        if self.kind() == Kind::Text { self.quoted(what) } else { self.word(what) }
    }

    pub(super) fn quoted(&mut self, what: &str) -> Parsed<String> {
        if self.kind() != Kind::Text {
            return Err(self.expected(what));
        }
        let text = lexer::unquoted(self.token());
        let text = text.ok_or_else(|| self.error(self.span(), "a text has an escape that is not known".to_owned(), None))?;
        self.at += 1;
        Ok(text)
    }

    pub(super) fn keyword(&mut self, word: &str, help: &str) -> Parsed<()> {
        if self.accept_word(word) {
            return Ok(());
        }
        let TextError { message, .. } = self.expected(&format!("`{word}`"));
        Err(self.error(self.span(), message, Some(help.to_owned())))
    }

    pub(super) fn skip_lines(&mut self) {
        while self.kind() == Kind::Newline {
            self.at += 1;
        }
    }

    pub(super) fn end_of_line(&mut self) -> Parsed<()> {
        match self.kind() {
            Kind::Newline => self.at += 1,
            Kind::End => {}
            _ => return Err(self.expected("the end of the line")),
        }
        Ok(())
    }

    pub(super) fn accept(&mut self, sign: &str) -> bool {
        let found = self.is_sign(sign);
        self.at += usize::from(found);
        found
    }

    pub(super) fn accept_word(&mut self, word: &str) -> bool {
        let found = self.is_word(word);
        self.at += usize::from(found);
        found
    }

    pub(super) fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.accept(sign) { Ok(()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    /// Reads the first sign, where the other one would end a list.
    pub(super) fn expect_one_of(&mut self, sign: &str, end: &str) -> Parsed<()> {
        if self.accept(sign) { Ok(()) } else { Err(self.expected(&format!("`{sign}` or `{end}`"))) }
    }

    pub(super) fn is_sign(&self, sign: &str) -> bool {
        matches!(self.kind(), Kind::Sign(found) if found == sign)
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind() == Kind::Word && self.token() == word
    }

    pub(super) fn kind(&self) -> Kind {
        self.tokens[self.at].kind
    }

    pub(super) fn token(&self) -> &'t str {
        &self.text[self.tokens[self.at].bytes.clone()]
    }

    pub(super) fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    pub(super) fn expected(&self, what: &str) -> TextError {
        let found = match self.kind() {
            Kind::Newline => "the end of the line".to_owned(),
            Kind::End => "the end of the text".to_owned(),
            _ => format!("`{}`", self.token().chars().take(40).collect::<String>()),
        };
        self.error(self.span(), format!("expected {what}, found {found}"), None)
    }

    pub(super) fn error(&self, span: Span, message: String, help: Option<String>) -> TextError {
        TextError::new(self.text, span, message, help)
    }
}
