//! Checks of a builtin call: its options, the number of its arguments, and its types.

use std::ops::RangeInclusive;

use super::Elaborator;
use crate::ast::{Call, Expr, ExprKind, Name};
use crate::builtins::{Builtin, Row};
use crate::span::SourceSpan;
use kernel_lang::diagnostic::did_you_mean;
use kernel_lang::ir::BinaryOp;

impl Elaborator<'_> {
    /// Runs the checks that do not depend on the arguments' meanings. At most one error per call is reported; the arguments are checked in
    /// any case.
    pub(super) fn check_call(&mut self, row: &Row, call: &Call) -> bool {
        let before = self.errors.len();
        // A misspelt option often also causes a missing argument or a missing type, so options are checked first.
        for (option, _) in &call.named {
            self.check_option(row, call, option);
        }
        let is_complete = call.args.len() == row.args && types(row).contains(&call.types.len());
        if self.errors.len() > before && is_complete && !has_shaping_options(row) {
            // The result does not depend on the option: the call continues without it.
            return true;
        }
        if self.errors.len() == before {
            self.check_count(row, call);
        }
        if self.errors.len() == before {
            self.check_types(row, call);
        }
        let fine = self.errors.len() == before;
        if !fine {
            self.check_arguments(call);
        }
        fine
    }

    /// Reports the errors inside the arguments of a call that is itself an error.
    pub(super) fn check_arguments(&mut self, call: &Call) {
        for arg in call.args.iter().chain(call.named.iter().map(|(_, value)| value)) {
            // Errors about pointers or shapes themselves would be noise here.
            if !matches!(arg.kind, ExprKind::Shape(_) | ExprKind::Text(_) | ExprKind::Closure(..)) && !self.is_type(arg) {
                self.expr(arg);
            }
        }
    }

    fn check_option(&mut self, row: &Row, call: &Call, option: &Name) {
        let options = options(row, call.args.len());
        if options.contains(&option.text.as_str()) {
            return;
        }
        let name = row.name;
        let help = match option.text.as_str() {
            "axis" | "keep_dims" if is_extreme(row) => {
                format!("two values meet element by element; along an axis goes one tile: `{name}(x, axis = 0)`")
            }
            "return_indices" if is_extreme(row) => format!("where it is says `arg{name}(x, axis = 0)`"),
            "axis" if matches!(row.builtin, Builtin::ProgramId | Builtin::NumPrograms) => {
                format!("name the axis by its number: `{name}(0)`")
            }
            "dtype" if row.builtin == Builtin::Full => "the type stands behind the name: `full::<f32>([N], value)`".to_string(),
            "other" if matches!(row.builtin, Builtin::Atomic(_)) => "lanes that are masked off give 0".to_string(),
            "boundary_check" | "padding_option" => {
                "no access leaves its tensor: elements outside read `other`, 0 if it is absent, and are not stored".to_string()
            }
            "other" if row.builtin == Builtin::Store => "lanes that are masked off store nothing".to_string(),
            _ => option_help(option, options, &usage(row, call)),
        };
        self.errors.push_help(option.span, format!("`{name}` has no option `{}`", option.text), help);
    }

    fn check_count(&mut self, row: &Row, call: &Call) {
        // `max(x, axis = 0)` takes one tile, `max(a, b)` two values. `dot(a, b, total)` is `dot(a, b, acc = total)`.
        let given = call.args.len();
        let fits = given == row.args || is_extreme(row) && given == 1;
        let names_acc = call.named.iter().any(|(option, _)| option.text == "acc");
        if fits || row.builtin == Builtin::Dot && given == 3 && !names_acc {
            return;
        }
        let name = row.name;
        let is_more = given > row.args;
        let has_shape = call.args.iter().any(|arg| matches!(arg.kind, ExprKind::Shape(_)));
        let help = match row.builtin {
            Builtin::ProgramId | Builtin::NumPrograms => format!("name the axis by its number: `{name}(0)`"),
            Builtin::Zeros | Builtin::Ones if is_more => format!("the type stands behind the name: `{name}::<f32>([N])`"),
            Builtin::Full if is_more => "the type stands behind the name: `full::<f32>([N], value)`".to_string(),
            Builtin::Load if has_shape => "a view is read by blocks: `x.load([i, j], [M, N])`".to_string(),
            Builtin::Store if has_shape => "a view is written by blocks: `y.store([i, j], tile)`".to_string(),
            Builtin::Load if is_more => {
                "offsets are added, and options have names: `load(x + offsets, mask = mask, other = 0.0)`".to_string()
            }
            Builtin::Store if is_more => "offsets are added, and options have names: `store(y + offsets, value, mask = mask)`".to_string(),
            Builtin::Atomic(_) if is_more => format!("options have names: `{}`", row.usage),
            Builtin::Arange if given == 1 => "write both bounds: `arange(0, N)`".to_string(),
            Builtin::Fold(_) | Builtin::Predicate(_) | Builtin::Arg(_) | Builtin::Cumulative(_) | Builtin::Flip if is_more => {
                format!("the axis is an option: `{name}(x, axis = 0)`")
            }
            Builtin::Sort | Builtin::Topk | Builtin::Histogram | Builtin::Dot if is_more => format!("options have names: `{}`", row.usage),
            Builtin::Cat if is_more => "two tiles at a time, and the axis is an option: `cat(a, b, axis = 0)`".to_string(),
            Builtin::Permute if is_more => "the order stands in brackets: `permute(x, [1, 0, 2])`".to_string(),
            Builtin::Reshape | Builtin::BroadcastTo if is_more => format!("the shape stands in brackets: `{name}(x, [M, N])`"),
            Builtin::Trans if is_more => "axes in another order: `permute(x, [1, 0, 2])`".to_string(),
            _ => format!("write `{}`", usage(row, call)),
        };
        self.wrong_count(&format!("`{name}`"), row.args, call, help);
    }

    /// Reports a wrong number of arguments of a builtin or a function; the receiver of a method is not counted.
    pub(super) fn wrong_count(&mut self, what: &str, wanted: usize, call: &Call, help: String) {
        let at = call.args.get(wanted).map_or(call.name.span, |extra| extra.span);
        let receiver = usize::from(call.is_method);
        let (wanted, given) = (wanted.saturating_sub(receiver), call.args.len() - receiver);
        self.errors.push_help(at, format!("{what} takes {}, not {given}", counted(wanted, "argument")), help);
    }

    pub(super) fn check_types(&mut self, row: &Row, call: &Call) {
        let (least, most) = types(row).into_inner();
        let usage = usage(row, call);
        if call.types.len() < least {
            self.errors.push_help(call.name.span, format!("`{}` needs a type", row.name), format!("write `{usage}`"));
        } else if let Some(extra) = call.types.get(most) {
            let help = if most == 0 { format!("the arguments say it; write `{usage}`") } else { format!("write `{usage}`") };
            self.errors.push_help(extra.span, format!("`{}` takes {}", row.name, counted(most, "type")), help);
        }
    }

    /// Reports arguments that have no type in common; the help names one to cast.
    pub(super) fn types_differ_among(
        &mut self,
        name: &str,
        elems: &[(Option<kernel_lang::ir::Elem>, &Expr)],
        pair: &(kernel_lang::ir::Elem, kernel_lang::ir::Elem),
        span: SourceSpan,
    ) {
        let (a, b) = pair;
        let (keep, other) = if super::operator::holds_more(a, b) { (a, b) } else { (b, a) };
        let one = elems
            .iter()
            .find(|(elem, _)| elem.as_ref() == Some(other))
            .map_or("(..)".to_string(), |(_, expr)| super::operator::written(expr));
        self.errors.push_help(
            span,
            format!("the arguments of `{name}` are `{a}` and `{b}`"),
            format!("cast one of them: `{one} as {keep}`"),
        );
    }
}

/// `min` and `max` each stand for two builtins: of two values, and of one tile.
fn is_extreme(row: &Row) -> bool {
    matches!(row.builtin, Builtin::Binary(BinaryOp::Min | BinaryOp::Max))
}

/// The number of types after the name of a builtin.
fn types(row: &Row) -> RangeInclusive<usize> {
    match row.builtin {
        Builtin::Zeros | Builtin::Ones | Builtin::Bitcast | Builtin::To => 1..=1,
        Builtin::Full => 0..=1,
        _ => 0..=0,
    }
}

/// Do the builtin's options determine the shape of its result?
fn has_shaping_options(row: &Row) -> bool {
    let is_along_axis = matches!(
        row.builtin,
        Builtin::Fold(_) | Builtin::Predicate(_) | Builtin::Arg(_) | Builtin::Cumulative(_) | Builtin::Reduce | Builtin::Scan
    );
    is_extreme(row) || is_along_axis || matches!(row.builtin, Builtin::Flip | Builtin::Cat | Builtin::Sort | Builtin::Topk)
}

/// The options of a builtin, for a given number of arguments.
fn options(row: &Row, given: usize) -> &'static [&'static str] {
    match row.builtin {
        Builtin::Load => &["mask", "other", "cache", "evict", "volatile"],
        Builtin::Store => &["mask", "cache", "evict"],
        Builtin::Atomic(_) => &["mask", "sem", "scope"],
        Builtin::Fold(_) | Builtin::Predicate(_) | Builtin::Arg(_) => &["axis", "keep_dims"],
        Builtin::Binary(_) if is_extreme(row) && given == 1 => &["axis", "keep_dims", "propagate_nan"],
        Builtin::Cumulative(_) => &["axis", "reverse"],
        Builtin::Flip | Builtin::Cat => &["axis"],
        Builtin::Histogram => &["mask"],
        Builtin::Dot => &["acc", "precision", "acc_type"],
        Builtin::Sort => &["axis", "descending"],
        Builtin::Topk => &["axis"],
        Builtin::Reduce => &["keep_dims"],
        Builtin::Scan => &["reverse"],
        _ => &[],
    }
}

/// The help for an option that does not exist.
pub(super) fn option_help(option: &Name, options: &[&str], usage: &str) -> String {
    let has = |name: &str| options.contains(&name);
    // `gather(x, index, axis)`: the option that the user wrote is a positional argument there.
    let is_argument = usage.split_once('(').is_some_and(|(_, rest)| {
        let arguments = rest.trim_end_matches(')').split(", ").filter(|argument| !argument.contains('='));
        arguments.into_iter().any(|argument| argument == option.text)
    });
    match (option.text.as_str(), did_you_mean(&option.text, options.iter().copied())) {
        _ if is_argument => format!("it is an argument, which has no name: `{usage}`"),
        ("cache_modifier", _) if has("cache") => "write `cache = \"cg\"`".to_string(),
        ("eviction_policy", _) if has("evict") => "write `evict = \"evict_first\"`".to_string(),
        ("dim", _) if has("axis") => "write `axis = 0`".to_string(),
        ("semantic" | "semantics" | "order" | "ordering", _) if has("sem") => "write `sem = \"relaxed\"`".to_string(),
        ("dtype", _) if usage.contains("::<") => format!("the type stands behind the name: `{usage}`"),
        ("dtype", _) => format!("cast what it takes or gives, `x as f32`: `{usage}`"),
        (_, Some(near)) => format!("did you mean `{near}`?"),
        _ if options.is_empty() => format!("it has none: `{usage}`"),
        _ => format!("its options are `{}`", options.join("`, `")),
    }
}

/// The usage of the builtin, as a function or a method, as the user wrote the call.
fn usage(row: &Row, call: &Call) -> String {
    if call.is_method { as_method(row.usage) } else { row.usage.to_string() }
}

/// Converts `pow(x, y)` to `x.pow(y)`.
pub(super) fn as_method(usage: &str) -> String {
    let Some((name, args)) = usage.split_once('(').filter(|(name, _)| !name.contains('.')) else { return usage.to_string() };
    let (first, rest) = args.split_once(", ").unwrap_or((args.trim_end_matches(')'), ")"));
    format!("{first}.{name}({rest}")
}

/// Formats `no argument`, `1 type`, `2 arguments`.
pub(super) fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what}{}", if what == "type" { "s" } else { "" }),
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usage_as_a_method() {
        assert_eq!(as_method("exp(x)"), "x.exp()");
        assert_eq!(as_method("pow(x, y)"), "x.pow(y)");
        assert_eq!(as_method("bitcast::<u32>(x)"), "x.bitcast::<u32>()");
        assert_eq!(as_method("x.to::<f32>()"), "x.to::<f32>()");
        assert_eq!(as_method("reduce(x, axis, |a, b| a + b)"), "x.reduce(axis, |a, b| a + b)");
    }
}
