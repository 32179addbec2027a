//! Builtins that are written in the language itself: the functions in the files of `library`, parsed when a kernel first uses them.
//!
//! A file contains one family of builtins as plain functions, with their helper functions. The functions of a file see each other and every
//! builtin; `use super::..` imports functions of other files. A call looks the same to the user as a call of any other builtin: errors are
//! reported at the call.

use std::rc::Rc;

use crate::device::{self, DeviceFn, Home};
use crate::span::Errors;

/// The families: file name and text.
const FILES: &[(&str, &str)] = &[
    ("assumptions", include_str!("library/assumptions.rs")),
    ("bessel", include_str!("library/bessel.rs")),
    ("error", include_str!("library/error.rs")),
    ("exponential", include_str!("library/exponential.rs")),
    ("extended", include_str!("library/extended.rs")),
    ("fast", include_str!("library/fast.rs")),
    ("floats", include_str!("library/floats.rs")),
    ("gamma", include_str!("library/gamma.rs")),
    ("hyperbolic", include_str!("library/hyperbolic.rs")),
    ("indexing", include_str!("library/indexing.rs")),
    ("inverse_trigonometric", include_str!("library/inverse_trigonometric.rs")),
    ("power", include_str!("library/power.rs")),
    ("random", include_str!("library/random.rs")),
    ("statistics", include_str!("library/statistics.rs")),
];

/// A function of a family: its own, or one that its file imports. Only the requested function is parsed, because few kernels use many.
///
/// # Panics
/// If the library itself has an error, which the tests of this module rule out.
pub(crate) fn function(family: &str, name: &str) -> Option<Rc<DeviceFn>> {
    let (family, text) = *FILES.iter().find(|(known, _)| *known == family)?;
    let Some(source) = source(text, name) else {
        return used(text).filter(|(_, names)| names.contains(&name)).and_then(|(other, _)| function(other, name));
    };
    let item = syn::parse_str(source).expect("the library's files are Rust");
    let mut errors = Errors::default();
    let func = device::parse(&item, Home::Library(family), &mut errors);
    assert!(errors.is_empty(), "the library's `{family}` has mistakes: {errors:?}");
    Some(Rc::new(func))
}

/// The text of a function: from the line with its name to the brace in the first column.
fn source<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    const END: &str = "\n}\n";
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let head = line.split_once("fn ").filter(|(before, _)| ["", "pub ", "pub(super) "].contains(before));
        let generics = head.and_then(|(_, head)| head.strip_prefix(name));
        if generics.is_some_and(|rest| rest.starts_with(['<', '('])) {
            let length = text[start..].find(END)? + END.len();
            return text.get(start..start + length);
        }
        start += line.len();
    }
    None
}

/// The imports of a file: `use super::extended::{two_sum, two_product};`.
fn used(text: &str) -> Option<(&str, Vec<&str>)> {
    let line = text.lines().find_map(|line| line.strip_prefix("use super::"))?;
    let (other, names) = line.split_once("::{")?;
    Some((other, names.strip_suffix("};")?.split(", ").collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::{BUILTINS, Builtin};

    /// Every library builtin has its function, every public function is a builtin, and the parameters match the table.
    #[test]
    fn builtins_and_functions_agree() {
        for (family, text) in FILES {
            for row in BUILTINS.iter().filter(|row| row.builtin == Builtin::Library(family)) {
                let func = function(family, row.name);
                let func = func.unwrap_or_else(|| panic!("the library's `{family}` has no function `{}`", row.name));
                let args = func.params.iter().filter(|param| param.option.is_none()).count();
                assert_eq!(args, row.args, "`{}` takes {args} arguments", row.name);
            }
            for line in text.lines().filter_map(|line| line.strip_prefix("pub fn ")) {
                let name = line.split(['<', '(']).next().unwrap_or_default();
                assert!(BUILTINS.iter().any(|row| row.name == name && row.builtin == Builtin::Library(family)), "`{name}` is no builtin");
            }
        }
        for row in BUILTINS {
            if let Builtin::Library(family) = row.builtin {
                assert!(FILES.iter().any(|(name, _)| *name == family), "there is no file `{family}`");
            }
        }
    }

    /// The textual search finds each function that rustc would find, and each imported function exists.
    #[test]
    fn every_function_is_found() {
        for (family, text) in FILES {
            for item in syn::parse_file(text).expect("it is Rust").items {
                match item {
                    syn::Item::Fn(mut item) => {
                        item.attrs.retain(|attribute| !attribute.path().is_ident("doc"));
                        let name = item.sig.ident.to_string();
                        let found = source(text, &name).unwrap_or_else(|| panic!("`{name}` is not found in `{family}`"));
                        let found: syn::ItemFn = syn::parse_str(found).expect("it is a function");
                        assert_eq!(quote::quote!(#found).to_string(), quote::quote!(#item).to_string());
                        assert_eq!(function(family, &name).expect("it is there").name.text, name);
                    }
                    syn::Item::Use(item) => {
                        let (other, names) = used(text).expect("`use super::extended::{two_sum, two_product};` in one line");
                        let whole: proc_macro2::TokenStream = format!("use super::{other}::{{{}}};", names.join(", ")).parse().unwrap();
                        assert_eq!(quote::quote!(#item).to_string(), whole.to_string());
                        names.iter().for_each(|name| assert!(function(family, name).is_some(), "`{other}` has no `{name}`"));
                    }
                    _ => panic!("`{family}` holds something else than functions, and what it takes from another file"),
                }
            }
        }
    }
}
