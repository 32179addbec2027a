//! What is no Rust: rustc says first where it stops reading, and here stands how a kernel says what was meant.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::place::{Errors, Place};

/// The tokens that show the mistake of `syn`.
pub(super) fn explained(tokens: &TokenStream, error: &syn::Error) -> TokenStream {
    let mut errors = Errors::default();
    explain(tokens, error, &mut errors);
    errors.into_tokens()
}

/// Adds the mistake of `syn`, with a help where it is one that users of other languages make.
pub(super) fn explain(tokens: &TokenStream, error: &syn::Error, errors: &mut Errors) {
    if let Some(brackets) = axes_without_parentheses(tokens) {
        let help = "a column is `x[(.., None)]`, a row `x[(None, ..)]`";
        errors.push_help(brackets, "several places in `[]` stand in parentheses", help);
    } else if error.to_string().contains("cannot be chained") {
        let message = "comparisons are not chained, and `&` and `|` bind closer than they do";
        errors.push_help(Place::at(error.span()), message, "put each comparison in parentheses: `(0 <= x) & (x < n)`");
    } else {
        errors.push_syn(error);
    }
}

/// The place of a `[.., None]`: a list in brackets that names a whole axis.
fn axes_without_parentheses(tokens: &TokenStream) -> Option<Place> {
    tokens.clone().into_iter().find_map(|token| {
        let TokenTree::Group(group) = token else { return None };
        let is_dot = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '.');
        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
        let parts: Vec<&[TokenTree]> = inner.split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')).collect();
        let is_axes = parts.len() > 1 && parts.iter().any(|part| part.len() == 2 && part.iter().all(is_dot));
        if group.delimiter() == Delimiter::Bracket && is_axes {
            return Some(Place::at(group.span()));
        }
        axes_without_parentheses(&group.stream())
    })
}
