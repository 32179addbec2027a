//! Texts with places for values: `"row {}: {sum} or {:x}"`, as `static_print!` and `device_print!` take them.

use std::fmt;

/// A part of a template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Piece {
    /// What stands there.
    Text(String),
    /// A place for a value: the next one, or the variable of that name; `{:x}` writes its bits in hexadecimal.
    Value {
        /// The variable, if it is named.
        name: Option<String>,
        /// In hexadecimal?
        hex: bool,
    },
}

/// Takes a template apart. `{{` and `}}` are braces.
///
/// # Errors
/// A brace without its other half, and what no value can be written as.
pub fn parse(template: &str) -> Result<Vec<Piece>, String> {
    pieces(template, Piece::Text, value)
}

/// What stands between the braces of a place for a value.
fn value(place: &str) -> Result<Piece, String> {
    let (name, format) = place.split_once(':').unwrap_or((place, ""));
    if !matches!(format, "" | "x" | "?") {
        return Err(format!("values are not written as `{{:{format}}}`"));
    }
    if !name.chars().all(|c| c == '_' || c.is_alphanumeric()) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!("`{name}` is no variable"));
    }
    Ok(Piece::Value { name: Some(name.to_string()).filter(|name| !name.is_empty()), hex: format == "x" })
}

/// Takes any text with places in braces apart: what is plain becomes a piece by `plain`, and what stands between two braces by `place`.
///
/// # Errors
/// A brace without its other half, and what `place` refuses.
pub(super) fn pieces<P>(text: &str, plain: impl Fn(String) -> P, place: impl Fn(&str) -> Result<P, String>) -> Result<Vec<P>, String> {
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
            pieces.push(place(&rest[1..end])?);
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

/// The template with what `value` gives at its places, asked whether in hexadecimal. A text that is no template stays as it is.
pub fn render(template: &str, mut value: impl FnMut(bool) -> String) -> String {
    let Ok(pieces) = parse(template) else { return template.to_string() };
    let text = |piece| match piece {
        Piece::Text(text) => text,
        Piece::Value { hex, .. } => value(hex),
    };
    pieces.into_iter().map(text).collect()
}

/// As it is written in a template.
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
