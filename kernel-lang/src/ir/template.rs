//! Format strings with placeholders, `"row {}: {sum} or {:x}"`, for `static_print!` and `device_print!`.

use std::fmt;

/// A part of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// Literal text.
    Text(String),
    /// A placeholder: for the next value, or for the variable of that name; `{:x}` prints bits in hexadecimal.
    Value {
        /// The variable, if it is named.
        name: Option<String>,
        /// Is it printed in hexadecimal?
        hex: bool,
    },
}

/// Splits a template into pieces. `{{` and `}}` are braces.
///
/// # Errors
/// An unmatched brace or a malformed placeholder.
pub fn parse(template: &str) -> Result<Vec<Piece>, String> {
    pieces(template, Piece::Text, value)
}

/// Parses the text between the braces of a placeholder.
fn value(placeholder: &str) -> Result<Piece, String> {
    let (name, format) = placeholder.split_once(':').unwrap_or((placeholder, ""));
    if !matches!(format, "" | "x" | "?") {
        return Err(format!("values are not written as `{{:{format}}}`"));
    }
    if !name.chars().all(|c| c == '_' || c.is_alphanumeric()) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("`{name}` is no variable"));
    }
    Ok(Piece::Value { name: Some(name.to_string()).filter(|name| !name.is_empty()), hex: format == "x" })
}

/// Splits a text with placeholders in braces: `plain` makes a piece of literal text, and `placeholder` parses the text between two braces.
///
/// # Errors
/// An unmatched brace, and the errors of `placeholder`.
pub(super) fn pieces<P>(
    text: &str,
    plain: impl Fn(String) -> P,
    placeholder: impl Fn(&str) -> Result<P, String>,
) -> Result<Vec<P>, String> {
    let mut pieces = Vec::new();
    let (mut before, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("{{") || rest.starts_with("}}") {
            before.push(first);
            rest = &rest[2..];
        } else if first == '{' {
            let end = rest.find('}').ok_or("a `{` of the text has no `}`")?;
            if !before.is_empty() {
                pieces.push(plain(std::mem::take(&mut before)));
            }
            pieces.push(placeholder(&rest[1..end])?);
            rest = &rest[end + 1..];
        } else if first == '}' {
            return Err("a `}` of the text has no `{`".to_string());
        } else {
            before.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    if !before.is_empty() {
        pieces.push(plain(before));
    }
    Ok(pieces)
}

/// Replaces each placeholder by the result of `value`, whose argument says whether to print hexadecimal. A malformed template is returned
/// unchanged.
pub fn render(template: &str, mut value: impl FnMut(bool) -> String) -> String {
    let Ok(pieces) = parse(template) else { return template.to_string() };
    let text = |piece| match piece {
        Piece::Text(text) => text,
        Piece::Value { hex, .. } => value(hex),
    };
    pieces.into_iter().map(text).collect()
}

/// Prints the piece as it is written in a template.
impl fmt::Display for Piece {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Piece::Text(text) => f.write_str(&text.replace('{', "{{").replace('}', "}}")),
            Piece::Value { name, hex } => {
                let format = if *hex { ":x" } else { "" };
                write!(f, "{{{}{format}}}", name.as_deref().unwrap_or(""))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_taken_apart_and_put_together() {
        for template in ["", "plain", "{}", "a {} b {:x}c", "{x}{y:x}", "{{}} {z}", "é{}é"] {
            let pieces = parse(template).unwrap();
            assert_eq!(pieces.iter().map(Piece::to_string).collect::<String>(), template);
        }
        assert_eq!(parse("{:?}").unwrap(), [Piece::Value { name: None, hex: false }]);
        assert_eq!(parse("{{{}}}").unwrap().len(), 3);
        for wrong in ["{", "}", "{:>8}", "{0}", "{x.y}", "{x} }"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
