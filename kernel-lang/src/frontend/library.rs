//! Words that are written in the language itself: the files of `src/library`, parsed when a kernel first uses a word of them.
//!
//! A file holds one family of words as plain functions, and whatever functions these need; the functions of a file see each other and
//! every word, and a file takes others' by `use super::..`. To the user a call of one looks as a call of any other word: mistakes are shown at the call.

use std::rc::Rc;

use crate::frontend::device::{self, DeviceFn, Home};
use crate::frontend::place::Errors;

/// The families: the name of a file, and its text.
const FILES: &[(&str, &str)] = &[
    ("assumptions", include_str!("../library/assumptions.rs")),
    ("bessel", include_str!("../library/bessel.rs")),
    ("error", include_str!("../library/error.rs")),
    ("exponential", include_str!("../library/exponential.rs")),
    ("extended", include_str!("../library/extended.rs")),
    ("fast", include_str!("../library/fast.rs")),
    ("floats", include_str!("../library/floats.rs")),
    ("gamma", include_str!("../library/gamma.rs")),
    ("hyperbolic", include_str!("../library/hyperbolic.rs")),
    ("indexing", include_str!("../library/indexing.rs")),
    ("inverse_trigonometric", include_str!("../library/inverse_trigonometric.rs")),
    ("power", include_str!("../library/power.rs")),
    ("random", include_str!("../library/random.rs")),
    ("statistics", include_str!("../library/statistics.rs")),
];

/// The functions of a family.
///
/// # Panics
/// If the library itself is at fault, which the tests of this module rule out.
pub(crate) fn functions(family: &'static str) -> Vec<Rc<DeviceFn>> {
    let text = FILES.iter().find(|(name, _)| *name == family).map_or("", |(_, text)| text);
    let file = syn::parse_file(text).expect("the library's files are Rust");
    let mut errors = Errors::default();
    let mut own = Vec::new();
    for item in &file.items {
        match item {
            syn::Item::Fn(item) => own.push(Rc::new(device::parse(item, Home::Library(family), &mut errors))),
            syn::Item::Use(item) => own.extend(used(item)),
            _ => {}
        }
    }
    assert!(errors.is_empty(), "the library's `{family}` has mistakes: {errors:?}");
    own
}

/// The functions that a file takes from another: `use super::extended::{two_sum, two_product};`.
fn used(item: &syn::ItemUse) -> Vec<Rc<DeviceFn>> {
    let form = "a file of the library takes functions from another: `use super::extended::{two_sum, two_product};`";
    let syn::UseTree::Path(path) = &item.tree else { panic!("{form}") };
    let syn::UseTree::Path(path) = &*path.tree else { panic!("{form}") };
    let (other, _) = FILES.iter().find(|(name, _)| path.ident == name).expect(form);
    let name = |tree: &syn::UseTree| match tree {
        syn::UseTree::Name(name) => name.ident.to_string(),
        _ => panic!("{form}"),
    };
    let names: Vec<String> = match &*path.tree {
        syn::UseTree::Group(group) => group.items.iter().map(name).collect(),
        one => vec![name(one)],
    };
    let mut functions = functions(other);
    functions.retain(|func| names.contains(&func.name.text));
    assert_eq!(functions.len(), names.len(), "not every function of `{names:?}` is in the library's `{other}`");
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
