//! Parsing of the command line, and the choice of colours that both commands share.

use std::ffi::OsString;
use std::process::ExitCode;

use anstream::ColorChoice;
use clap::builder::styling::{AnsiColor, Style, Styles};
use clap::{Parser, ValueEnum};

/// A value of `--color`.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

/// Parses the command line. Errors, help and the version are printed here; the result is then the exit code, `usage_error` for an error.
pub(crate) fn parse<P: Parser>(usage_error: u8) -> Result<P, ExitCode> {
    // Messages about the command line have colours too, so the choice precedes parsing.
    let color = choice(std::env::args_os(), std::env::var("CARGO_TERM_COLOR").ok().as_deref());
    let shown = match color {
        ColorChoice::Never => clap::ColorChoice::Never,
        ColorChoice::Always | ColorChoice::AlwaysAnsi => clap::ColorChoice::Always,
        ColorChoice::Auto => clap::ColorChoice::Auto,
    };
    color.write_global();
    let mut command = P::command().color(shown).styles(styles());
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    parsed.and_then(|matches| P::from_arg_matches(&matches)).map_err(|error| {
        let code = if error.use_stderr() { ExitCode::from(usage_error) } else { ExitCode::SUCCESS };
        // A closed pipe is no error, as in `galatea --help | head -1`.
        let _ = error.format(&mut command).print();
        code
    })
}

/// The choice of `--color`, else of `CARGO_TERM_COLOR`, as in cargo. Without a choice, colours are shown on a terminal, unless `NO_COLOR` is
/// set.
fn choice(arguments: impl IntoIterator<Item = OsString>, of_cargo: Option<&str>) -> ColorChoice {
    let mut named = of_cargo.map(str::to_owned);
    // The arguments after `--` belong to another program.
    let mut arguments = arguments.into_iter().skip(1).map(|argument| argument.to_string_lossy().into_owned()).take_while(|a| a != "--");
    while let Some(argument) = arguments.next() {
        match argument.strip_prefix("--color") {
            Some("") => named = arguments.next().or(named),
            Some(value) => named = value.strip_prefix('=').map(str::to_owned).or(named),
            None => {}
        }
    }
    match named.as_deref() {
        Some("always") => ColorChoice::Always,
        Some("never") => ColorChoice::Never,
        _ => ColorChoice::Auto,
    }
}

/// The styles of cargo's help.
fn styles() -> Styles {
    let bold = |color: AnsiColor| color.on_default().bold();
    Styles::styled()
        .header(bold(AnsiColor::BrightGreen))
        .usage(bold(AnsiColor::BrightGreen))
        .literal(bold(AnsiColor::BrightCyan))
        .placeholder(Style::new().fg_color(Some(AnsiColor::Cyan.into())))
        .error(bold(AnsiColor::BrightRed))
        .valid(bold(AnsiColor::BrightCyan))
        .invalid(bold(AnsiColor::BrightYellow))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_precedes_the_environment_and_ends_at_the_other_program() {
        let choice = |line: &str, of_cargo| choice(line.split(' ').map(OsString::from), of_cargo);
        assert_eq!(choice("galatea cache list", None), ColorChoice::Auto);
        assert_eq!(choice("galatea cache list", Some("always")), ColorChoice::Always);
        assert_eq!(choice("galatea --color never cache list", Some("always")), ColorChoice::Never);
        assert_eq!(choice("galatea cache list --color=always", Some("never")), ColorChoice::Always);
        assert_eq!(choice("galatea cache list --color auto", Some("never")), ColorChoice::Auto);
        assert_eq!(choice("galatea sim -- cargo run --color always", None), ColorChoice::Auto);
        assert_eq!(choice("galatea cache list --colors=never", Some("always")), ColorChoice::Always);
    }
}
