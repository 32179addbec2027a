//! The syntax of expressions of dims, which is Rust's.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = factor { ("*" | "/" | "%") factor }
//! factor  = number | name | "-" factor | "(" sum ")" | ("cdiv" | "min" | "max") "(" sum { "," sum } ")"
//! ```

use super::sum::MOST_DEPTH;
use super::{Dim, DimError, Repr};

type Result<T> = std::result::Result<T, DimError>;

/// The functions of the syntax, which no dim is named as.
const FUNCTIONS: [&str; 3] = ["cdiv", "max", "min"];
/// The maximum length of a text in bytes.
const MOST_BYTES: usize = 1 << 16;

/// Whether a text can be the name of a dim.
pub(super) fn is_name(text: &str) -> bool {
    let begins_with_letter = text.starts_with(|c: char| c.is_ascii_alphabetic());
    begins_with_letter && text.chars().all(is_name_char) && !FUNCTIONS.contains(&text)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The expression that a text consists of.
pub(super) fn run(text: &str, dims: &[Dim]) -> Result<Dim> {
    if text.len() > MOST_BYTES {
        return Err(DimError::TooComplex);
    }
    let mut parser = Parser { text, rest: text, dims, depth: 0 };
    let dim = parser.sum()?;
    if parser.skip_spaces().is_empty() { Ok(dim) } else { Err(parser.expected("an operator or the end")) }
}

struct Parser<'a> {
    text: &'a str,
    /// The text that was not read yet.
    rest: &'a str,
    dims: &'a [Dim],
    depth: usize,
}

impl<'a> Parser<'a> {
    fn skip_spaces(&mut self) -> &'a str {
        self.rest = self.rest.trim_start();
        self.rest
    }

    /// Reads the character if it is next.
    fn take(&mut self, c: char) -> bool {
        let after = self.skip_spaces().strip_prefix(c);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn expected(&self, expected: &'static str) -> DimError {
        let column = self.text[..self.text.len() - self.rest.len()].chars().count() + 1;
        DimError::Syntax { text: self.text.to_owned(), column, expected }
    }

    fn sum(&mut self) -> Result<Dim> {
        let mut total = self.product()?;
        loop {
            if self.take('+') {
                total = total + self.product()?;
            } else if self.take('-') {
                total = total - self.product()?;
            } else {
                return Ok(total);
            }
        }
    }

    fn product(&mut self) -> Result<Dim> {
        let mut total = self.factor()?;
        loop {
            if self.take('*') {
                total = total * self.factor()?;
            } else if self.take('/') {
                total = total / self.factor()?;
            } else if self.take('%') {
                total = total % self.factor()?;
            } else {
                return Ok(total);
            }
        }
    }

    fn factor(&mut self) -> Result<Dim> {
        self.depth += 1;
        // A sum in parentheses may be as deep as an expression, and each level of that has a quotient and a product.
        if self.depth > 4 * MOST_DEPTH {
            return Err(DimError::TooComplex);
        }
        let factor = self.factor_at_depth();
        self.depth -= 1;
        factor
    }

    fn factor_at_depth(&mut self) -> Result<Dim> {
        if self.take('-') {
            // The least number has no positive one.
            let digits = self.skip_spaces().len() - self.rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if let Ok(number) = format!("-{}", &self.rest[..digits]).parse::<i64>() {
                self.rest = &self.rest[digits..];
                return Ok(number.into());
            }
            return Ok(-self.factor()?);
        }
        if self.take('(') {
            let inner = self.sum()?;
            return if self.take(')') { Ok(inner) } else { Err(self.expected("`)` or an operator")) };
        }
        let length = self.rest.find(|c| !is_name_char(c)).unwrap_or(self.rest.len());
        let (token, after) = self.rest.split_at(length);
        if token.starts_with(|c: char| c.is_ascii_digit()) {
            let Ok(number) = token.parse::<i64>() else { return Err(self.expected("a number of 64 bits")) };
            self.rest = after;
            return Ok(number.into());
        }
        if FUNCTIONS.contains(&token) {
            self.rest = after;
            return self.call(token);
        }
        if token.is_empty() {
            return Err(self.expected("a number, a name, `(` or `-`"));
        }
        self.rest = after;
        let is_named = |dim: &&Dim| matches!(&dim.0, Repr::Sum(sum) if sum.as_symbol().is_some_and(|symbol| *symbol.name == *token));
        let dim = self.dims.iter().find(is_named);
        dim.cloned().ok_or_else(|| DimError::Undeclared { text: self.text.to_owned(), name: token.to_owned() })
    }

    /// The arguments of a function, and its result.
    fn call(&mut self, function: &str) -> Result<Dim> {
        if !self.take('(') {
            return Err(self.expected("`(`"));
        }
        let mut total = self.sum()?;
        if function == "cdiv" && !self.take(',') {
            return Err(self.expected("`,` and a divisor"));
        }
        if function == "cdiv" {
            total = total.cdiv(self.sum()?);
        } else {
            while self.take(',') {
                let argument = self.sum()?;
                total = if function == "min" { total.min(argument) } else { total.max(argument) };
            }
        }
        if self.take(')') { Ok(total) } else { Err(self.expected("`,` or `)`")) }
    }
}
