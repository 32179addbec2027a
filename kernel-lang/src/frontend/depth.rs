//! How deep a kernel may nest. Who parses it, checks it and compiles it follows its nesting by recursion, on a stack that somebody else has made: what
//! is deeper than these limits is a mistake, told before anybody follows it.

use proc_macro2::{Delimiter, Spacing, Span, TokenStream, TokenTree};

use super::place::{Errors, Place};

/// The most that may be open at once, where an operator counts 1. An unoptimised build takes about 4 KiB of stack for each: 3 MiB of the 8 MiB that
/// rustc gives a macro.
pub(super) const MOST: usize = 800;
/// What a pair of brackets counts, or a block, or a branch of an `else if` or a `match`.
pub(super) const BLOCK: usize = 8;

/// What is said of it, and the help.
pub(super) fn message() -> (String, &'static str) {
    let message = format!("this is nested too deeply: the limits are {} blocks and {MOST} operators inside of each other", MOST / BLOCK);
    (message, "give parts of it names with `let`, or make functions of them: `#[device] fn`")
}

/// The tokens that show the mistake.
pub(super) fn explained(place: Span) -> TokenStream {
    let (message, help) = message();
    let mut errors = Errors::default();
    errors.push_help(Place::at(place), message, help);
    errors.into_tokens()
}

/// Where a text becomes deeper than the limit, if it does.
pub(super) fn exceeded(tokens: &TokenStream) -> Option<Span> {
    // Of each open pair of brackets: what is left of it, and how much is open in front of it.
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

/// How much is open at a token.
#[derive(Clone, Copy, Default)]
struct Count {
    /// In front of the brackets in which it stands.
    around: usize,
    /// By the branches of a `match`, each of which the next ones are inside of.
    branches: usize,
    /// By the operators and calls of its expression so far.
    run: usize,
    /// Was the token before a block? Then a statement may begin here.
    is_behind_block: bool,
    /// Was it the first half of `=>`?
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
                // A closure's parameters.
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
