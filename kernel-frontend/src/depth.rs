//! Limits on the nesting depth of a kernel. The parser, the checks and the compiler recurse over the nesting, on a stack whose size they do
//! not control. Deeper source is rejected before any of them runs.

use proc_macro2::{Delimiter, Spacing, Span, TokenStream, TokenTree};

use super::span::{Errors, SourceSpan};

/// The maximum depth, where an operator counts 1. A debug build takes about 4 KiB of stack per level: 3 MiB of the 8 MiB that rustc gives a
/// macro.
pub(super) const MOST: usize = 800;
/// The depth of a pair of brackets, of a block, and of a branch of an `else if` or a `match`.
pub(super) const BLOCK: usize = 8;

/// The message and the help.
pub(super) fn message() -> (String, &'static str) {
    let message = format!("this is nested too deeply: the limits are {} blocks and {MOST} operators inside of each other", MOST / BLOCK);
    (message, "give parts of it names with `let`, or make functions of them: `#[device] fn`")
}

/// The error as tokens.
pub(super) fn explained(span: Span) -> TokenStream {
    let (message, help) = message();
    let mut errors = Errors::default();
    errors.push_help(SourceSpan::at(span), message, help);
    errors.into_tokens()
}

/// The first span that exceeds the limit, if there is one.
pub(super) fn exceeded(tokens: &TokenStream) -> Option<Span> {
    // For each open pair of brackets: the remaining tokens, and the depth so far.
    let mut open = vec![(tokens.clone().into_iter(), Count::default())];
    while let Some((tokens, count)) = open.last_mut() {
        let Some(token) = tokens.next() else {
            open.pop();
            continue;
        };
        count.take(&token);
        if count.all() > MOST {
            return Some(token.span());
        }
        if let TokenTree::Group(group) = token {
            let inner = Count { around: count.all() + BLOCK, ..Count::default() };
            open.push((group.stream().into_iter(), inner));
        }
    }
    None
}

/// The depth at a token, by cause.
#[derive(Clone, Copy, Default)]
struct Count {
    /// Depth before the enclosing brackets.
    around: usize,
    /// Depth from the branches of a `match`: each branch nests inside the previous ones.
    branches: usize,
    /// Depth from the operators and calls of the current expression.
    run: usize,
    /// Was the previous token a block? Then a statement may begin here.
    is_behind_block: bool,
    /// Was the previous token the first half of `=>`?
    is_arrow: bool,
}

impl Count {
    fn all(self) -> usize {
        self.around + self.branches + self.run
    }

    fn take(&mut self, token: &TokenTree) {
        let (is_behind_block, is_arrow) = (std::mem::take(&mut self.is_behind_block), std::mem::take(&mut self.is_arrow));
        match token {
            TokenTree::Punct(punct) => match punct.as_char() {
                ';' | ',' => self.run = 0,
                '#' if is_behind_block => self.run = 0,
                '>' if is_arrow => (self.branches, self.run) = (self.branches + BLOCK, 0),
                // The parameters of a closure.
                '|' => self.run += BLOCK / 2,
                ':' | '\'' => {}
                sign => {
                    self.is_arrow = sign == '=' && punct.spacing() == Spacing::Joint;
                    self.run += 1;
                }
            },
            TokenTree::Ident(ident) if ident == "else" => self.run += BLOCK,
            TokenTree::Ident(ident) if ident == "as" => self.run += 1,
            TokenTree::Ident(_) | TokenTree::Literal(_) => self.run *= usize::from(!is_behind_block),
            TokenTree::Group(group) => {
                self.run += 1;
                self.is_behind_block = group.delimiter() == Delimiter::Brace;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_exceeded(text: &str) -> bool {
        exceeded(&text.parse().expect("it is made of tokens")).is_some()
    }

    #[test]
    fn what_stands_side_by_side_is_not_deep() {
        for line in
            ["a = b + c * f(d, e)[(.., None)];", "if a < b { c } else if d { e }", "#[device] fn f(x: Value<f32>) -> Value<f32> { x }"]
        {
            assert!(!is_exceeded(&line.repeat(2000)), "{line}");
        }
    }

    #[test]
    fn what_stands_inside_of_another_is() {
        for (before, behind) in [("(", ")"), ("{", "}"), ("f(", ")"), ("if a {", "}"), ("a + b + (", ")")] {
            assert!(!is_exceeded(&format!("{}{}", before.repeat(50), behind.repeat(50))), "{before}");
            assert!(is_exceeded(&format!("{}{}", before.repeat(2000), behind.repeat(2000))), "{before}");
        }
        for part in ["+ a", "-", "!", ".exp()", " as f32", "else if a { b }", "|x| "] {
            assert!(!is_exceeded(&part.repeat(50)), "{part}");
            assert!(is_exceeded(&part.repeat(2000)), "{part}");
        }
        assert!(!is_exceeded(&format!("match n {{ {} }}", "1 => { a } ".repeat(90))));
        assert!(is_exceeded(&format!("match n {{ {} }}", "1 => { a } ".repeat(2000))));
    }
}
