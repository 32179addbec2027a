//! Source spans, and the errors found at them.

use std::collections::HashMap;
use std::ops::Range;

use proc_macro2::{Ident, LineColumn, Span, TokenStream};
use quote::{ToTokens, quote_spanned};

use kernel_lang::diagnostic::{Diagnostic, Diagnostics};
use kernel_lang::location::Loc;

/// A range of the user's source: its first and its last token.
///
/// Stable Rust does not join spans inside a macro, so both ends are kept and an error underlines from one to the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SourceSpan {
    pub(crate) start: Span,
    pub(crate) end: Span,
}

impl SourceSpan {
    /// The span from the first to the last of some tokens.
    pub(crate) fn of(tokens: &impl ToTokens) -> SourceSpan {
        let mut tokens = tokens.to_token_stream().into_iter();
        let start = tokens.next().map_or_else(Span::call_site, |token| token.span());
        let end = tokens.last().map_or(start, |token| token.span());
        SourceSpan { start, end }
    }

    /// The span of one token.
    pub(crate) fn at(span: Span) -> SourceSpan {
        SourceSpan { start: span, end: span }
    }

    /// The span from the start of `self` to the end of `last`.
    pub(crate) fn to(self, last: SourceSpan) -> SourceSpan {
        SourceSpan { start: self.start, end: last.end }
    }

    /// The line and the column of both ends.
    fn ends(self) -> (LineColumn, LineColumn) {
        (self.start.start(), self.end.end())
    }

    /// The byte range in the source; stable Rust does not provide it for the compiler's own spans.
    fn bytes(self) -> Range<usize> {
        self.start.byte_range().start..self.end.byte_range().end
    }

    /// The line and the column of the start.
    pub(crate) fn loc(self) -> Loc {
        let start = self.start.start();
        Loc::new(u32::try_from(start.line).unwrap_or(0), u32::try_from(start.column + 1).unwrap_or(0))
    }
}

impl From<&Ident> for SourceSpan {
    fn from(ident: &Ident) -> SourceSpan {
        SourceSpan::at(ident.span())
    }
}

/// The errors found so far, each with the span to underline.
#[derive(Debug, Default)]
pub(crate) struct Errors {
    list: Vec<(SourceSpan, Diagnostic)>,
    inside: Vec<Inside>,
}

/// The location that the user is shown for an error inside a function's body.
pub(crate) enum Shown {
    /// The span in the body, in that file of the kernel.
    Body(u16),
    /// Only the call: the body belongs to the library.
    Call,
    /// The call, and a remark with this text about the line in the body: the body is in another crate.
    CallAnd(String),
}

/// The functions that are suspended while a closure is elaborated.
pub(crate) struct Outside(Vec<Inside>);

/// A function whose body is being elaborated for a call.
#[derive(Clone, Debug)]
struct Inside {
    /// The span that replaces every span of the body, if the user does not see the body.
    instead: Option<SourceSpan>,
    /// The file of the body, as an index into the kernel's files.
    file: u16,
    /// The remark about a span in a body that is not shown.
    within: Option<String>,
    /// The location of the call, and the remark there.
    call: Option<(Loc, String)>,
    /// Spans in the body that name a parameter, with the span of the argument that is shown instead. The key is their first and last line and
    /// column.
    arguments: HashMap<(LineColumn, LineColumn), SourceSpan>,
}

impl Errors {
    /// Adds an error.
    pub(crate) fn push(&mut self, span: SourceSpan, message: impl Into<String>) {
        self.add(span, Diagnostic::new(span.loc(), message));
    }

    /// Adds an error with a help.
    pub(crate) fn push_help(&mut self, span: SourceSpan, message: impl Into<String>, help: impl Into<String>) {
        self.add(span, Diagnostic::new(span.loc(), message).help(help));
    }

    /// Enters a function that is called at `call`: later spans are in its body.
    pub(crate) fn enter(&mut self, call: SourceSpan, remark: String, shown: Shown) {
        let (call, loc) = self.seen(call);
        // A call from the library to itself is not actionable for the user.
        let is_hidden = matches!(shown, Shown::Call) && self.inside.last().is_some_and(|inside| inside.instead.is_some());
        let (instead, file, within) = match shown {
            Shown::Body(file) => (None, file, None),
            Shown::Call => (Some(call), loc.file, None),
            Shown::CallAnd(within) => (Some(call), loc.file, Some(within)),
        };
        let call = (!is_hidden).then_some((loc, remark));
        self.inside.push(Inside { instead, file, within, call, arguments: HashMap::new() });
    }

    /// Registers a span of the current function as a parameter's: the user is shown the argument instead.
    pub(crate) fn stands_for(&mut self, span: SourceSpan, argument: SourceSpan) {
        if let Some(inside) = self.inside.last_mut().filter(|inside| inside.instead.is_some()) {
            inside.arguments.insert(span.ends(), argument);
        }
    }

    /// Leaves the last function that was entered.
    pub(crate) fn leave(&mut self) {
        self.inside.pop();
    }

    /// Suspends all but the first `depth` functions, because a closure belongs to one of those.
    pub(crate) fn step_out(&mut self, depth: usize) -> Outside {
        Outside(self.inside.split_off(depth))
    }

    /// Resumes the suspended functions.
    pub(crate) fn step_in(&mut self, outside: Outside) {
        self.inside.extend(outside.0);
    }

    /// The span that the user is shown: the span itself, or the call that leads to it.
    pub(crate) fn seen(&self, span: SourceSpan) -> (SourceSpan, Loc) {
        let Some(inside) = self.inside.last() else { return (span, span.loc()) };
        let span = inside.arguments.get(&span.ends()).copied().or(inside.instead).unwrap_or(span);
        (span, Loc { file: inside.file, ..span.loc() })
    }

    /// Adds a complete diagnostic; the same message at the same span is kept once.
    pub(crate) fn add(&mut self, span: SourceSpan, mut diagnostic: Diagnostic) {
        let hidden = span.loc();
        let (span, loc) = self.seen(span);
        if let Some(inside) = self.inside.last() {
            diagnostic.loc = loc;
            diagnostic.labels.extend(inside.within.clone().map(|within| (hidden, within)));
            diagnostic.labels.extend(self.inside.iter().rev().filter_map(|inside| inside.call.clone()));
        }
        if !self.list.iter().any(|(_, known)| *known == diagnostic) {
            self.list.push((span, diagnostic));
        }
    }

    /// Adds all errors of another list; returns whether there were any.
    pub(crate) fn append(&mut self, others: Errors) -> bool {
        let any = !others.list.is_empty();
        others.list.into_iter().for_each(|(span, diagnostic)| self.add(span, diagnostic));
        any
    }

    /// Adds a syntax error of `syn`.
    pub(crate) fn push_syn(&mut self, error: &syn::Error) {
        for error in error.clone() {
            self.push(SourceSpan::at(error.span()), error.to_string());
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Drops the errors after the first `len`, at the end of a trial.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.list.truncate(len);
    }

    /// The errors with the byte ranges to underline, in source order.
    pub(crate) fn into_underlined(mut self) -> Vec<(Range<usize>, Diagnostic)> {
        self.list.sort_by_key(|(_, diagnostic)| diagnostic.loc);
        self.list.into_iter().map(|(span, diagnostic)| (span.bytes(), diagnostic)).collect()
    }

    /// The errors as diagnostics of the compiler, for output as text.
    pub(crate) fn into_diagnostics(self) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        self.list.into_iter().for_each(|(_, diagnostic)| diagnostics.push(diagnostic));
        diagnostics
    }

    /// The errors as `compile_error!` invocations on the user's tokens, in source order.
    pub(crate) fn into_tokens(mut self) -> TokenStream {
        self.list.sort_by_key(|(_, diagnostic)| diagnostic.loc);
        self.list
            .into_iter()
            .map(|(span, diagnostic)| {
                let message = diagnostic.to_string();
                // rustc underlines from the first token of the invocation to its last.
                let mut tokens = quote_spanned!(span.start=> ::core::compile_error!);
                tokens.extend(quote_spanned!(span.end=> { #message }));
                tokens
            })
            .collect()
    }
}

/// Maps positions in the IR to spans, so that an error found in the IR is underlined in the source.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    map: HashMap<Loc, SourceSpan>,
}

impl Spans {
    /// Records a span. Of several spans that start at one token the first is kept, which is the innermost.
    pub(crate) fn add(&mut self, (span, loc): (SourceSpan, Loc)) -> Loc {
        self.map.entry(loc).or_insert(span);
        loc
    }

    /// The span at a position of the IR.
    pub(crate) fn get(&self, loc: Loc) -> Option<SourceSpan> {
        self.map.get(&loc).copied()
    }
}
