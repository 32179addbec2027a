//! Syntax errors: rustc's own message comes first, and this module adds a help for common mistakes.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::span::{Errors, SourceSpan};

/// The error of `syn`, as tokens.
pub(super) fn explained(tokens: &TokenStream, error: &syn::Error) -> TokenStream {
    let mut errors = Errors::default();
    explain(tokens, error, &mut errors);
    errors.into_tokens()
}

/// Adds the error of `syn`, with a help for mistakes that are common among users of other languages.
pub(super) fn explain(tokens: &TokenStream, error: &syn::Error, errors: &mut Errors) {
    if let Some(brackets) = axes_without_parentheses(tokens) {
        let help = "a column is `x[(.., None)]`, a row `x[(None, ..)]`";
        errors.push_help(brackets, "several entries in `[]` stand in parentheses", help);
    } else if error.to_string().contains("cannot be chained") {
        let message = "comparisons are not chained, and `&` and `|` bind closer than they do";
        errors.push_help(SourceSpan::at(error.span()), message, "put each comparison in parentheses: `(0 <= x) & (x < n)`");
    } else {
        errors.push_syn(error);
    }
}

/// The span of `[.., None]`: a list in brackets that contains a full range.
fn axes_without_parentheses(tokens: &TokenStream) -> Option<SourceSpan> {
    tokens.clone().into_iter().find_map(|token| {
        let TokenTree::Group(group) = token else { return None };
        let is_dot = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == '.');
        let inner: Vec<TokenTree> = group.stream().into_iter().collect();
        let parts: Vec<&[TokenTree]> = inner.split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')).collect();
        let is_axes = parts.len() > 1 && parts.iter().any(|part| part.len() == 2 && part.iter().all(is_dot));
        if group.delimiter() == Delimiter::Bracket && is_axes {
            return Some(SourceSpan::at(group.span()));
        }
        axes_without_parentheses(&group.stream())
    })
}
