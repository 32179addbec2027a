//! Where something stands in the user's source, and the mistakes found there.

use std::collections::HashMap;
use std::ops::Range;

use proc_macro2::{Ident, LineColumn, Span, TokenStream};
use quote::{ToTokens, quote_spanned};

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::location::Loc;

/// A stretch of the user's source: its first and its last token.
///
/// Stable Rust does not join spans inside a macro, so both ends are kept and an error underlines from one to the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) start: Span,
    pub(crate) end: Span,
}

impl Place {
    /// From the first to the last of some tokens.
    pub(crate) fn of(tokens: &impl ToTokens) -> Place {
        let mut tokens = tokens.to_token_stream().into_iter();
        let start = tokens.next().map_or_else(Span::call_site, |token| token.span());
        let end = tokens.last().map_or(start, |token| token.span());
        Place { start, end }
    }

    /// Of one token.
    pub(crate) fn at(span: Span) -> Place {
        Place { start: span, end: span }
    }

    /// From the start of `self` to the end of `last`.
    pub(crate) fn to(self, last: Place) -> Place {
        Place { start: self.start, end: last.end }
    }

    /// The line and the column of both ends.
    fn ends(self) -> (LineColumn, LineColumn) {
        (self.start.start(), self.end.end())
    }

    /// The stretch as bytes of the source; the compiler's own spans do not tell on stable Rust.
    fn bytes(self) -> Range<usize> {
        self.start.byte_range().start..self.end.byte_range().end
    }

    /// Line and column of the start.
    pub(crate) fn loc(self) -> Loc {
        let start = self.start.start();
        Loc::new(u32::try_from(start.line).unwrap_or(0), u32::try_from(start.column + 1).unwrap_or(0))
    }
}

impl From<&Ident> for Place {
    fn from(ident: &Ident) -> Place {
        Place::at(ident.span())
    }
}

/// The mistakes found so far, each with the tokens to underline.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    list: Vec<(Place, Diagnostic)>,
    inside: Vec<Inside>,
}

/// What the user is shown of a function with a mistake in its body.
pub(crate) enum Shown {
    /// The place in the body, which stands in that file of the kernel.
    Body(u16),
    /// The call alone: the body is the library's.
    Call,
    /// The call, and with these words the line in the body: it stands in another crate.
    CallAnd(String),
}

/// The functions that have been left for the time that a closure takes.
pub(crate) struct Outside(Vec<Inside>);

/// A function whose body is being walked at a call of it.
#[derive(Clone, Debug)]
struct Inside {
    /// What stands for every place of the body, if the user does not see it.
    instead: Option<Place>,
    /// The file of the body, as an index into the kernel's files.
    file: u16,
    /// What to say of a place in a body that is not shown.
    within: Option<String>,
    /// Where the call is, and what to say there.
    call: Option<(Loc, String)>,
    /// Places in the body that stand for an argument, which is seen instead: by their first and last lines and columns.
    arguments: HashMap<(LineColumn, LineColumn), Place>,
}

impl Errors {
    /// Adds a mistake.
    pub(crate) fn push(&mut self, place: Place, message: impl Into<String>) {
        self.add(place, Diagnostic::new(place.loc(), message));
    }

    /// Adds a mistake and how to mend it.
    pub(crate) fn push_help(&mut self, place: Place, message: impl Into<String>, help: impl Into<String>) {
        self.add(place, Diagnostic::new(place.loc(), message).help(help));
    }

    /// From here on, places are those of a function that is called at `call`.
    pub(crate) fn enter(&mut self, call: Place, remark: String, shown: Shown) {
        let (call, loc) = self.seen(call);
        // How the library calls itself is nothing that a user could act on.
        let is_hidden = matches!(shown, Shown::Call) && self.inside.last().is_some_and(|inside| inside.instead.is_some());
        let (instead, file, within) = match shown {
            Shown::Body(file) => (None, file, None),
            Shown::Call => (Some(call), loc.file, None),
            Shown::CallAnd(within) => (Some(call), loc.file, Some(within)),
        };
        let call = (!is_hidden).then_some((loc, remark));
        self.inside.push(Inside { instead, file, within, call, arguments: HashMap::new() });
    }

    /// In the function that is being walked, a place is a parameter's: what the user sees there is the argument.
    pub(crate) fn stands_for(&mut self, place: Place, argument: Place) {
        if let Some(inside) = self.inside.last_mut().filter(|inside| inside.instead.is_some()) {
            inside.arguments.insert(place.ends(), argument);
        }
    }

    /// Back where the last function was called.
    pub(crate) fn leave(&mut self) {
        self.inside.pop();
    }

    /// Forgets all but the first `depth` functions for a while: a closure is that of one of them.
    pub(crate) fn step_out(&mut self, depth: usize) -> Outside {
        Outside(self.inside.split_off(depth))
    }

    /// Back inside.
    pub(crate) fn step_in(&mut self, outside: Outside) {
        self.inside.extend(outside.0);
    }

    /// What the user sees of a place: it, or the call that leads there.
    pub(crate) fn seen(&self, place: Place) -> (Place, Loc) {
        let Some(inside) = self.inside.last() else { return (place, place.loc()) };
        let place = inside.arguments.get(&place.ends()).copied().or(inside.instead).unwrap_or(place);
        (place, Loc { file: inside.file, ..place.loc() })
    }

    /// Adds a mistake that is already put in words; the same words at the same place are kept once.
    pub(crate) fn add(&mut self, place: Place, mut diagnostic: Diagnostic) {
        let hidden = place.loc();
        let (place, loc) = self.seen(place);
        if let Some(inside) = self.inside.last() {
            diagnostic.loc = loc;
            diagnostic.labels.extend(inside.within.clone().map(|within| (hidden, within)));
            diagnostic.labels.extend(self.inside.iter().rev().filter_map(|inside| inside.call.clone()));
        }
        if !self.list.iter().any(|(_, known)| *known == diagnostic) {
            self.list.push((place, diagnostic));
        }
    }

    /// Adds all of these; says whether there were any.
    pub(crate) fn append(&mut self, others: Errors) -> bool {
        let any = !others.list.is_empty();
        others.list.into_iter().for_each(|(place, diagnostic)| self.add(place, diagnostic));
        any
    }

    /// Adds what `syn` could not parse.
    pub(crate) fn push_syn(&mut self, error: &syn::Error) {
        for error in error.clone() {
            self.push(Place::at(error.span()), error.to_string());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Forgets the mistakes after the first `len`: a trial is over.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.list.truncate(len);
    }

    /// Each with the bytes of the source that are underlined, in the order of the source.
    pub(crate) fn into_underlined(mut self) -> Vec<(Range<usize>, Diagnostic)> {
        self.list.sort_by_key(|(_, diagnostic)| diagnostic.loc);
        self.list.into_iter().map(|(place, diagnostic)| (place.bytes(), diagnostic)).collect()
    }

    /// As the compiler's diagnostics, for who shows them as text.
    pub(crate) fn into_diagnostics(self) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        self.list.into_iter().for_each(|(_, diagnostic)| diagnostics.push(diagnostic));
        diagnostics
    }

    /// As `compile_error!`s on the user's tokens, in the order of the source.
    pub(crate) fn into_tokens(mut self) -> TokenStream {
        self.list.sort_by_key(|(_, diagnostic)| diagnostic.loc);
        self.list
            .into_iter()
            .map(|(place, diagnostic)| {
                let message = diagnostic.to_string();
                // rustc underlines from the first token of the invocation to its last.
                let mut tokens = quote_spanned!(place.start=> ::core::compile_error!);
                tokens.extend(quote_spanned!(place.end=> { #message }));
                tokens
            })
            .collect()
    }
}

/// Which tokens stand at a place of the IR: so that a mistake found in the IR is underlined in the source.
#[derive(Debug, Default)]
pub(crate) struct Places {
    map: HashMap<Loc, Place>,
}

impl Places {
    /// Remembers a place; of several that start at one token the first, which is the innermost.
    pub(crate) fn add(&mut self, (place, loc): (Place, Loc)) -> Loc {
        self.map.entry(loc).or_insert(place);
        loc
    }

    /// The tokens at a place of the IR.
    pub(crate) fn get(&self, loc: Loc) -> Option<Place> {
        self.map.get(&loc).copied()
    }
}
