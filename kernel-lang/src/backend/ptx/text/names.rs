//! PTX names: kernel names and file names in ASCII, which PTX requires even in comments, without names that PTX or the module already uses.
//!
//! | Rust | PTX |
//! |---|---|
//! | `add` | `add` |
//! | `größe` | `gr$f6$$df$e` |
//! | `shared` | `shared$` |
//!
//! Rust identifiers contain no `$`, so different names stay different.

use std::fmt::Write;

use crate::backend::ptx::{arithmetic::math, exchange::shared};

/// Identifiers that a PTX module cannot declare.
const RESERVED: [&str; 2] = ["WARP_SZ", "_"];

/// The name of a kernel's entry.
pub(crate) fn entry(kernel: &str) -> String {
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

/// The name of a source file as a quoted string. PTX has no escapes in strings.
pub(crate) fn file(name: &str) -> String {
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
