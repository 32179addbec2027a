//! Names and file names as PTX can spell them: ASCII only, even in comments, and no name that the language or the module itself has taken.
//!
//! | Rust | PTX |
//! |---|---|
//! | `add` | `add` |
//! | `größe` | `gr$f6$$df$e` |
//! | `shared` | `shared$` |
//!
//! Rust identifiers contain no `$`, so two names never become one.

use std::fmt::Write;

use super::{math, shared};

/// Identifiers of PTX that it does not let a module declare.
const RESERVED: [&str; 2] = ["WARP_SZ", "_"];

/// The entry of a kernel.
pub(super) fn entry(kernel: &str) -> String {
    let mut text = String::new();
    for c in kernel.chars() {
        if c.is_ascii() {
            text.push(c);
        } else {
            let _ = write!(text, "${:x}$", u32::from(c));
        }
    }
    if RESERVED.contains(&kernel) || [shared::NAME, math::TABLE_NAME].contains(&kernel) {
        text.push('$');
    }
    text
}

/// The name of a source file as a quoted text, in which PTX knows no escapes.
pub(super) fn file(name: &str) -> String {
    let mut text = String::from("\"");
    for c in name.chars() {
        match c {
            '"' => text.push('\''),
            ' '..='~' => text.push(c),
            c => {
                let _ = write!(text, "${:x}$", u32::from(c));
            }
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_ascii_and_stay_different() {
        let names = ["add", "größe", "grosse", "shared", "WARP_SZ", "two_over_pi", "_f6_", "\u{928}\u{94d}"];
        let entries: Vec<String> = names.iter().map(|name| entry(name)).collect();
        assert_eq!(entries, ["add", "gr$f6$$df$e", "grosse", "shared$", "WARP_SZ$", "two_over_pi$", "_f6_", "$928$$94d$"]);
    }

    #[test]
    fn file_names_need_no_escapes() {
        assert_eq!(file("src/größe \"x\"\n.rs"), "\"src/gr$f6$$df$e 'x'$a$.rs\"");
    }
}
