//! Words that are written in the language itself: the files of `src/library`, parsed when a kernel first uses a word of them.
//!
//! A file holds one family of words as plain functions, and whatever functions these need; the functions of a file see each other and
//! every word. To the user a call of one looks as a call of any other word: mistakes are shown at the call.

use std::rc::Rc;

use crate::frontend::device::{self, DeviceFn, Home};
use crate::frontend::place::Errors;

/// The families: the name of a file, and its text.
const FILES: &[(&str, &str)] = &[("indexing", include_str!("../library/indexing.rs"))];

/// The functions of a family.
///
/// # Panics
/// If the library itself is at fault, which the tests of this module rule out.
pub(crate) fn functions(family: &'static str) -> Vec<Rc<DeviceFn>> {
    let text = FILES.iter().find(|(name, _)| *name == family).map_or("", |(_, text)| text);
    let file = syn::parse_file(text).expect("the library's files are Rust");
    let mut errors = Errors::default();
    let parse = |item: &syn::Item| match item {
        syn::Item::Fn(item) => Some(Rc::new(device::parse(item, Home::Library(family), &mut errors))),
        _ => None,
    };
    let functions = file.items.iter().filter_map(parse).collect();
    assert!(errors.is_empty(), "the library's `{family}` has mistakes: {errors:?}");
    functions
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::words::{WORDS, Word};

    /// Every word has its function, every public function is a word, and all have the parameters that the table says.
    #[test]
    fn words_and_functions_agree() {
        for (family, text) in FILES {
            let functions = functions(family);
            for row in WORDS.iter().filter(|row| row.word == Word::Library(family)) {
                let func = functions.iter().find(|func| func.name.text == row.name);
                let func = func.unwrap_or_else(|| panic!("the library's `{family}` has no function `{}`", row.name));
                let args = func.params.iter().filter(|param| param.option.is_none()).count();
                assert_eq!(args, row.args, "`{}` takes {args} arguments", row.name);
            }
            for line in text.lines().filter_map(|line| line.strip_prefix("pub fn ")) {
                let name = line.split(['<', '(']).next().unwrap_or_default();
                assert!(WORDS.iter().any(|row| row.name == name && row.word == Word::Library(family)), "`{name}` is no word");
            }
        }
        for row in WORDS {
            if let Word::Library(family) = row.word {
                assert!(FILES.iter().any(|(name, _)| *name == family), "there is no file `{family}`");
            }
        }
    }
}
