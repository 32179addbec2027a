//! Types and expressions of dims in the text of a graph.

use std::ops::Range;

use kernel_runtime::ops::recorder::TensorType;
use kernel_runtime::{Dim, DimError, Dtype, Error, MAX_RANK};

use super::Span;
use super::cursor::{Parsed, Parser};
use super::lexer::{Kind, Token};

/// The dtype and the texts of the extents of a type, for inputs: they come before the dims.
pub(super) struct Unresolved {
    dtype: Dtype,
    extents: Vec<Range<usize>>,
}

impl Parser<'_> {
    pub(super) fn ty(&mut self) -> Parsed<TensorType> {
        let ty = self.unresolved_type()?;
        self.resolved(ty)
    }

    /// `f32[batch, 64]`
    pub(super) fn unresolved_type(&mut self) -> Parsed<Unresolved> {
        let span = self.span();
        let dtype = self.word("a type, such as `f32[n, 64]`")?;
        let dtype = dtype.parse::<Dtype>().map_err(|_| {
            let all: Vec<String> = Dtype::ALL.iter().map(ToString::to_string).collect();
            self.error(span, format!("`{dtype}` is no dtype"), Some(format!("the dtypes are {}", all.join(", "))))
        })?;
        self.expect("[")?;
        let mut extents = Vec::new();
        while !self.accept("]") {
            if !extents.is_empty() {
                self.expect_one_of(",", "]")?;
            }
            extents.push(self.expression()?);
        }
        match extents.len() {
            0..=MAX_RANK => Ok(Unresolved { dtype, extents }),
            _ => Err(self.error(span, format!("a type has at most {MAX_RANK} extents"), None)),
        }
    }

    pub(super) fn resolved(&self, ty: Unresolved) -> Parsed<TensorType> {
        let dims = ty.extents.into_iter().map(|tokens| self.dim_of(tokens)).collect::<Parsed<_>>()?;
        Ok(TensorType { dtype: ty.dtype, dims })
    }

    pub(super) fn dim(&mut self) -> Parsed<Dim> {
        let tokens = self.expression()?;
        self.dim_of(tokens)
    }

    /// The tokens of an expression of dims.
    pub(super) fn expression(&mut self) -> Parsed<Range<usize>> {
        let (start, mut depth) = (self.at, 0usize);
        loop {
            let after_operand =
                self.at > start && matches!(self.tokens[self.at - 1].kind, Kind::Word | Kind::Number | Kind::Local | Kind::Sign(")"));
            match self.kind() {
                Kind::Sign("(") => depth += 1,
                Kind::Sign(")") if depth > 0 => depth -= 1,
                Kind::Sign("," | "+" | "-" | "*" | "/" | "%") if depth > 0 => {}
                Kind::Sign("+" | "-" | "*" | "/" | "%") | Kind::Number => {}
                // `n%8` is a remainder.
                Kind::Local if after_operand => {}
                Kind::Word if !after_operand => {}
                _ if self.at == start => return Err(self.expected("a number or an expression of dims")),
                _ => return Ok(start..self.at),
            }
            self.at += 1;
        }
    }

    pub(super) fn dim_of(&self, tokens: Range<usize>) -> Parsed<Dim> {
        let span = self.tokens[tokens.start].span;
        let bytes = self.tokens[tokens.start].bytes.start..self.tokens[tokens.end - 1].bytes.end;
        match Dim::parse(&self.text[bytes.clone()], &self.dims) {
            Ok(dim) => self.checked(&dim, span).map(|()| dim),
            Err(Error::Dim(DimError::Syntax { column, expected, .. })) => {
                let before = self.text[bytes].chars().take(column - 1);
                let span = before.fold(span, |span, c| match c {
                    '\n' => Span { line: span.line + 1, column: 1 },
                    _ => Span { column: span.column + 1, ..span },
                });
                Err(self.error(span, format!("expected {expected}"), None))
            }
            Err(Error::Dim(DimError::Undeclared { name, .. })) => {
                let is_name = |token: &&Token| &self.text[token.bytes.clone()] == name.as_str();
                let span = self.tokens[tokens].iter().find(is_name).map_or(span, |token| token.span);
                let help = format!("give its range behind the inputs: `where {name} in 0..=1024`");
                Err(self.error(span, format!("dim `{name}` is not declared"), Some(help)))
            }
            Err(error) => Err(self.error(span, error.to_string(), None)),
        }
    }

    /// Refuses an expression with a mistake, such as a division by 0.
    pub(super) fn checked(&self, dim: &Dim, span: Span) -> Parsed<()> {
        dim.bounds().map(drop).map_err(|error| {
            let error = error.to_string();
            match error.split_once("\nhelp: ") {
                Some((message, help)) => self.error(span, message.to_owned(), Some(help.to_owned())),
                None => self.error(span, error, None),
            }
        })
    }
}
