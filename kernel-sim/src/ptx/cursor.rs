//! The cursor over the tokens of a module, with the operations that all grammar rules use.

use std::collections::HashMap;

use super::lexer::{self, Kind, Token};
use super::{Position, PtxError};

/// The maximum nesting depth of blocks, expressions and initial values. Real modules need less than ten levels, and each level uses stack.
const MAX_DEPTH: u32 = 100;

/// The position of the parser in the tokens of a module.
pub(super) struct Cursor<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    index: usize,
    depth: u32,
    /// The start of each line.
    lines: Vec<usize>,
    /// The vector registers (`.reg .v4 .f32 v`) of the enclosing blocks, and their numbers of elements.
    vectors: Vec<HashMap<&'a str, u32>>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Result<Cursor<'a>, PtxError> {
        let tokens = lexer::tokens(text)?;
        let newlines = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let lines = std::iter::once(0).chain(newlines.map(|(offset, _)| offset + 1)).collect();
        Ok(Cursor { text, tokens, index: 0, depth: 0, lines, vectors: Vec::new() })
    }

    /// The next token.
    pub(super) fn peek(&self) -> Token<'a> {
        self.peek_after(0)
    }

    /// The token `count` tokens after the next one; [`Kind::End`] after the last one.
    pub(super) fn peek_after(&self, count: usize) -> Token<'a> {
        let end = Token { kind: Kind::End, text: "", start: self.text.len(), end: self.text.len() };
        self.tokens.get(self.index + count).copied().unwrap_or(end)
    }

    /// Consumes the next token.
    pub(super) fn advance(&mut self) -> Token<'a> {
        let token = self.peek();
        self.index += 1;
        token
    }

    /// Consumes the next token if it is this sign.
    pub(super) fn accept(&mut self, sign: &str) -> bool {
        let found = self.peek().is(sign);
        self.index += usize::from(found);
        found
    }

    /// Consumes the next token, which must be this sign.
    pub(super) fn expect(&mut self, sign: &str) -> Result<Token<'a>, PtxError> {
        if self.peek().is(sign) { Ok(self.advance()) } else { Err(self.expected(&format!("`{sign}`"))) }
    }

    /// Consumes the next token, which must be of this kind.
    pub(super) fn take(&mut self, kind: Kind, what: &str) -> Result<&'a str, PtxError> {
        if self.peek().kind == kind { Ok(self.advance().text) } else { Err(self.expected(what)) }
    }

    /// Consumes the next token if it is `.word`.
    pub(super) fn accept_dotted(&mut self, word: &str) -> bool {
        let found = self.peek().kind == Kind::Dotted && self.peek().text == word;
        self.index += usize::from(found);
        found
    }

    /// Parses a list separated by commas, and consumes the closing sign.
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

    /// Parses a nested construct. Too deep nesting is an error.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Cursor<'a>) -> Result<T, PtxError>) -> Result<T, PtxError> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(format!("this is nested deeper than {MAX_DEPTH} levels")));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// The position of the next token.
    pub(super) fn position(&self) -> Position {
        self.position_of(self.peek())
    }

    /// The position of a token.
    pub(super) fn position_of(&self, token: Token<'_>) -> Position {
        let line = self.lines.partition_point(|&start| start <= token.start);
        let start = self.lines.get(line.saturating_sub(1)).copied().unwrap_or(0);
        Position { line: lexer::small(line), column: lexer::small(token.start - start + 1) }
    }

    /// An error at the next token.
    pub(super) fn error(&self, message: impl Into<String>) -> PtxError {
        self.error_at(self.peek(), message)
    }

    /// An error at a token.
    pub(super) fn error_at(&self, token: Token<'_>, message: impl Into<String>) -> PtxError {
        PtxError::new(self.text, self.position_of(token), message)
    }

    /// The error for an unexpected token; `what` names the expected token.
    pub(super) fn expected(&self, what: &str) -> PtxError {
        let token = self.peek();
        let found = match token.kind {
            Kind::End => "the end of the text".to_owned(),
            _ => format!("`{}`", &self.text[token.start..token.end]),
        };
        self.error(format!("expected {what}, found {found}"))
    }

    /// The number of consumed tokens.
    pub(super) fn taken(&self) -> usize {
        self.index
    }

    /// The text of all tokens after the first `taken` ones that are consumed, without comments and with single spaces.
    pub(super) fn text_since(&self, taken: usize) -> String {
        let tokens = self.tokens.get(taken..self.index.min(self.tokens.len())).unwrap_or_default();
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

    /// Enters a scope of vector registers.
    pub(super) fn enter(&mut self) {
        self.vectors.push(HashMap::new());
    }

    /// Leaves the scope.
    pub(super) fn leave(&mut self) {
        self.vectors.pop();
    }

    /// Declares a vector register in the innermost block.
    pub(super) fn declare_vector(&mut self, name: &'a str, count: u32) {
        if let Some(block) = self.vectors.last_mut() {
            block.insert(name, count);
        }
    }

    /// The number of elements of a vector register; `None` if the name denotes no vector register.
    pub(super) fn vector(&self, name: &str) -> Option<u32> {
        self.vectors.iter().rev().find_map(|block| block.get(name).copied())
    }
}
