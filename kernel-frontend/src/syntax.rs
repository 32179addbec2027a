//! Syntax errors: rustc's own message comes first, and this module adds a help for common mistakes.
//!
//! rustc parses the function before the macro gets it, and hands over the tokens of a function that does not parse too. Most mistakes of this
//! kind are habits from Python. They are recognised by a pattern of tokens, or by the token at which `syn` stops.

use proc_macro2::{Delimiter, Group, LineColumn, TokenStream, TokenTree};

use super::signature::dtype_of;
use super::span::{Errors, SourceSpan};

/// The error of `syn`, as tokens.
pub(super) fn explained(tokens: &TokenStream, error: &syn::Error) -> TokenStream {
    let mut errors = Errors::default();
    explain(tokens, error, &mut errors);
    errors.into_tokens()
}

/// Adds the error of `syn`, with a help for mistakes that are common among users of other languages.
pub(super) fn explain(tokens: &TokenStream, error: &syn::Error, errors: &mut Errors) {
    let text = error.to_string();
    let stop = Stop { at: error.span().start(), is_chained: text.contains("cannot be chained"), lacks_type: text == "expected `:`" };
    match find(tokens, &stop) {
        Some(Mistake { span, message, help }) => errors.push_help(span, message, help),
        None => errors.push_syn(error),
    }
}

/// The function with an empty body, if only its body does not parse: callers of the kernel then still compile.
pub(super) fn without_body(tokens: &TokenStream) -> Option<syn::ItemFn> {
    let mut list: Vec<TokenTree> = tokens.clone().into_iter().collect();
    match list.last_mut() {
        Some(TokenTree::Group(body)) if body.delimiter() == Delimiter::Brace => {
            let mut empty = Group::new(Delimiter::Brace, TokenStream::new());
            empty.set_span(body.span());
            *body = empty;
        }
        _ => return None,
    }
    syn::parse2(list.into_iter().collect()).ok()
}

/// The token at which `syn` stops.
struct Stop {
    at: LineColumn,
    /// Is it the second of two comparisons without parentheses?
    is_chained: bool,
    /// Is a colon missing there?
    lacks_type: bool,
}

struct Mistake {
    span: SourceSpan,
    message: &'static str,
    help: &'static str,
}

/// The mistake at the token where `syn` stops, or else the first pattern that is always a mistake, in source order.
fn find(tokens: &TokenStream, stop: &Stop) -> Option<Mistake> {
    walk(tokens, Delimiter::None, &|list, index, _| at_stop(list, index, stop)).or_else(|| walk(tokens, Delimiter::None, &pattern))
}

/// A rule looks at the token with that index, in a list of tokens within such brackets.
type Rule<'a> = &'a dyn Fn(&[TokenTree], usize, Delimiter) -> Option<Mistake>;

fn walk(tokens: &TokenStream, around: Delimiter, rule: Rule<'_>) -> Option<Mistake> {
    let list: Vec<TokenTree> = tokens.clone().into_iter().collect();
    (0..list.len()).find_map(|index| {
        let inside = || if let TokenTree::Group(group) = &list[index] { walk(&group.stream(), group.delimiter(), rule) } else { None };
        rule(&list, index, around).or_else(inside)
    })
}

/// An identifier or a sign as text; nothing for brackets, literals and what is not there.
fn text(list: &[TokenTree], index: Option<usize>) -> String {
    match index.and_then(|index| list.get(index)) {
        Some(TokenTree::Ident(ident)) => ident.to_string(),
        Some(TokenTree::Punct(punct)) => punct.as_char().to_string(),
        _ => String::new(),
    }
}

fn said(span: SourceSpan, message: &'static str, help: &'static str) -> Option<Mistake> {
    Some(Mistake { span, message, help })
}

/// The mistake that makes `syn` stop at this token.
fn at_stop(list: &[TokenTree], index: usize, stop: &Stop) -> Option<Mistake> {
    const CHOICE: &str = "write `if cond { a } else { b }`; for each element of a tile `select(cond, a, b)`";
    let here = SourceSpan::at(list[index].span());
    if list[index].span().start() != stop.at {
        return None;
    }
    if stop.is_chained {
        let help = "put each comparison in parentheses: `(0 <= x) & (x < n)`";
        return said(here, "comparisons are not chained, and `&` and `|` bind closer than they do", help);
    }
    let previous = index.checked_sub(1);
    if stop.lacks_type && matches!(previous.map(|index| &list[index]), Some(TokenTree::Ident(_))) {
        return said(here, "a parameter has a type", "write `x: Ptr<f32>`, `y: PtrMut<f32>`, `n: usize`");
    }
    let before = text(list, previous);
    let behind = previous.map_or(here, |index| SourceSpan::at(list[index].span()));
    match (text(list, Some(index)).as_str(), before.as_str()) {
        ("and", _) => said(here, "there is no operator `and`", "write `a && b`"),
        ("or", _) => said(here, "there is no operator `or`", "write `a || b`"),
        ("is", _) => said(
            here,
            "there is no operator `is`",
            "compare numbers with `==`; a constant says whether a tensor is there, `const HAS_W: bool`",
        ),
        ("~", _) => said(here, "there is no operator `~`", "write `!cond`"),
        ("if", _) if index > 0 => said(here, "a choice begins with `if`", CHOICE),
        ("+", "+") | ("-", "-") => said(behind.to(here), "there are no operators `++` and `--`", "write `i += 1` as a statement"),
        (":", _) if (0..index).any(|earlier| matches!(text(list, Some(earlier)).as_str(), "if" | "for" | "while" | "else")) => {
            said(here, "a block stands in braces", "write `if cond { .. }`, `for i in 0..n { .. }`")
        }
        (_, "not") => said(behind, "there is no operator `not`", "write `!cond`"),
        (_, "?") => said(behind, "there is no operator `? :`", CHOICE),
        _ => None,
    }
}

/// Tokens that no kernel contains.
fn pattern(list: &[TokenTree], index: usize, around: Delimiter) -> Option<Mistake> {
    let here = SourceSpan::at(list[index].span());
    if let TokenTree::Group(group) = &list[index] {
        return axes(group, here);
    }
    let previous = text(list, index.checked_sub(1));
    let [first, next, second] = [0, 1, 2].map(|ahead| text(list, Some(index + ahead)));
    let is_next = |delimiter: Delimiter| matches!(list.get(index + 1), Some(TokenTree::Group(group)) if group.delimiter() == delimiter);
    match first.as_str() {
        "where" if is_next(Delimiter::Parenthesis) => said(here, "there is no function `where`", "write `select(cond, a, b)`"),
        "as" if dtype_of(&next).is_some() && second == "<" => {
            let span = here.to(SourceSpan::at(list[index + 2].span()));
            said(span, "behind a type, `<` begins generic arguments", "put the cast in parentheses: `(x as i32) < n`")
        }
        "lambda" => said(here, "`lambda` has no meaning in a kernel", "a closure is written `let f = |a, b| a + b;`"),
        "elif" => said(here, "`elif` has no meaning in a kernel", "write `else if cond { .. }`"),
        "constexpr" if previous == "." => {
            said(here, "`constexpr` has no meaning in a kernel", "a constant of the body is written `const K: usize = 4;`")
        }
        "const" if around == Delimiter::Parenthesis && second == ":" && is_parameter(&list[index..]) => {
            said(here, "a constant parameter stands in `<>`", "write `fn kernel<const N: usize>(..)`")
        }
        "#" if !is_next(Delimiter::Bracket) && next != "!" => said(here, "`#` begins no comment", "a comment is written `// ..`"),
        _ => None,
    }
}

/// Is `const N: usize` without a value, up to the next comma?
fn is_parameter(tokens: &[TokenTree]) -> bool {
    let is_punct = |token: &TokenTree, sign: char| matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign);
    !tokens.iter().take_while(|token| !is_punct(token, ',')).any(|token| is_punct(token, '='))
}

/// `[:, None]`, `[0:4]`, `[.., None]`: the brackets of Triton around the axes of a tile.
fn axes(brackets: &Group, span: SourceSpan) -> Option<Mistake> {
    if brackets.delimiter() != Delimiter::Bracket {
        return None;
    }
    const HELP: &str = "a column is `x[(.., None)]`, a row `x[(None, ..)]`";
    let inner: Vec<TokenTree> = brackets.stream().into_iter().collect();
    let is_punct = |token: &TokenTree, sign: char| matches!(token, TokenTree::Punct(punct) if punct.as_char() == sign);
    let parts: Vec<&[TokenTree]> = inner.split(|token| is_punct(token, ',')).collect();
    let slice = |part: &[TokenTree]| {
        let colons = part.iter().filter(|token| is_punct(token, ':')).count();
        let is_path = part.windows(2).any(|pair| is_punct(&pair[0], ':') && is_punct(&pair[1], ':'));
        colons > 0 && !is_path
    };
    if parts.iter().any(|part| part.len() == 1 && is_punct(&part[0], ':')) {
        return said(span, "an axis of a tile is written `..`, and several entries in `[]` stand in parentheses", HELP);
    }
    if parts.iter().any(|part| slice(part)) {
        let help = "of memory, load the part: `load(x + start + arange(0, N))`; in `[]` stand `..` and `None`, as in `x[(.., None)]`";
        return said(span, "parts of a tile are not taken out", help);
    }
    let is_whole = |part: &&[TokenTree]| part.len() == 2 && part.iter().all(|token| is_punct(token, '.'));
    if parts.len() > 1 && parts.iter().any(is_whole) {
        return said(span, "several entries in `[]` stand in parentheses", HELP);
    }
    None
}
