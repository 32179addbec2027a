//! A place between the tokens of a module, and what every rule of the grammar asks for there.

use std::collections::HashMap;

use super::lexer::{self, Kind, Token};
use super::{Position, PtxError};

/// How deep blocks, expressions and initial values may be nested: real modules stay below ten, and each level uses stack.
const MAX_DEPTH: u32 = 100;

/// A place between the tokens of a module.
pub(super) struct Cursor<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    place: usize,
    depth: u32,
    /// Where each line begins.
    lines: Vec<usize>,
    /// Vector registers (`.reg .v4 .f32 v`) of the blocks around this place, and how many elements they have.
    vectors: Vec<HashMap<&'a str, u32>>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Result<Cursor<'a>, PtxError> {
        let tokens = lexer::tokens(text)?;
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(place, _)| place + 1)).collect();
        Ok(Cursor { text, tokens, place: 0, depth: 0, lines, vectors: Vec::new() })
    }

    /// The token that comes next.
    pub(super) fn peek(&self) -> Token<'a> {
        self.peek_after(0)
    }

    /// The token after that many others; at the end always [`Kind::End`].
    pub(super) fn peek_after(&self, count: usize) -> Token<'a> {
        let end = Token { kind: Kind::End, text: "", start: self.text.len(), end: self.text.len() };
        self.tokens.get(self.place + count).copied().unwrap_or(end)
    }

    /// Takes the token that comes next.
    pub(super) fn advance(&mut self) -> Token<'a> {
        let token = self.peek();
        self.place += 1;
        token
    }

    /// Takes the sign if it comes next.
    pub(super) fn accept(&mut self, sign: &str) -> bool {
        let found = self.peek().is(sign);
        self.place += usize::from(found);
        found
    }

    /// Takes the sign, which must come next.
    pub(super) fn expect(&mut self, sign: &str) -> Result<Token<'a>, PtxError> {
        if self.peek().is(sign) { Ok(self.advance()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    /// Takes the token of that kind, which must come next.
    pub(super) fn take(&mut self, kind: Kind, what: &str) -> Result<&'a str, PtxError> {
        if self.peek().kind == kind { Ok(self.advance().text) } else { Err(self.expected(what)) }
    }

    /// Takes `.word` if it comes next.
    pub(super) fn accept_dotted(&mut self, word: &str) -> bool {
        let found = self.peek().kind == Kind::Dotted && self.peek().text == word;
        self.place += usize::from(found);
        found
    }

    /// Takes what stands between commas, up to a sign that closes it, which is taken too.
    pub(super) fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Cursor<'a>) -> Result<T, PtxError>,
    ) -> Result<Vec<T>, PtxError> {
        let mut items = Vec::new();
        if self.accept(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.accept(close) {
                return Ok(items);
            }
            if !self.accept(",") {
                return Err(self.expected(&format!("`,` or `{close}`")));
            }
        }
    }

    /// Parses something nested, unless it is nested too deep.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Cursor<'a>) -> Result<T, PtxError>) -> Result<T, PtxError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("this is nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Where the token that comes next is.
    pub(super) fn position(&self) -> Position {
        self.position_of(self.peek())
    }

    /// Where a token is.
    pub(super) fn position_of(&self, token: Token<'_>) -> Position {
        let line = self.lines.partition_point(|&start| start <= token.start);
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(0);
        Position { line: lexer::small(line), column: lexer::small(token.start - start + 1) }
    }

    /// An error at the token that comes next.
    pub(super) fn error(&self, message: impl Into<String>) -> PtxError {
        self.error_at(self.peek(), message)
    }

    /// An error at a token.
    pub(super) fn error_at(&self, token: Token<'_>, message: impl Into<String>) -> PtxError {
        PtxError::new(self.text, self.position_of(token), message)
    }

    /// The error that something else should come next.
    pub(super) fn expected(&self, what: &str) -> PtxError {
        let token = self.peek();
        let found = match token.kind {
            Kind::End => "the end of the text".to_owned(),
            _ => format!("`{}`", &self.text[token.start..token.end]),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    /// How many tokens were taken.
    pub(super) fn taken(&self) -> usize {
        self.place
    }

    /// The text since that many tokens were taken, without comments, and with single blanks.
    pub(super) fn text_since(&self, taken: usize) -> String {
        let tokens = self.tokens.get(taken..self.place.min(self.tokens.len())).unwrap_or_default();
        let mut text = String::with_capacity(tokens.last().map_or(0, |last| last.end - tokens[0].start));
        let mut end = tokens.first().map_or(0, |first| first.start);
        for token in tokens {
            if token.start > end {
                text.push(' ');
            }
            text.push_str(&self.text[token.start..token.end]);
            end = token.end;
        }
        text
    }

    /// Enters a block of vector registers' names.
    pub(super) fn enter(&mut self) {
        self.vectors.push(HashMap::new());
    }

    /// Leaves it.
    pub(super) fn leave(&mut self) {
        self.vectors.pop();
    }

    /// Remembers a vector register of the innermost block.
    pub(super) fn declare_vector(&mut self, name: &'a str, count: u32) {
        if let Some(block) = self.vectors.last_mut() {
            block.insert(name, count);
        }
    }

    /// How many elements the vector register of that name has, if there is one.
    pub(super) fn vector(&self, name: &str) -> Option<u32> {
        self.vectors.iter().rev().find_map(|block| block.get(name).copied())
    }
}
