//! Output of the commands to standard output and standard error.

use std::io::{ErrorKind, Write, stderr, stdout};

use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Style};
use comfy_table::{CellAlignment, Table, presets};

/// Writes a text to standard output. A closed pipe is no error, as in `galatea cache list | head`.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(format!("cannot print: {error}")),
        _ => Ok(()),
    }
}

/// Writes a message to standard error. Lines that begin with `error:`, `warning:` or `help:` begin in colour. Errors of writing are ignored.
pub(crate) fn tell(message: &str) {
    const KINDS: [(&str, AnsiColor); 3] =
        [("error:", AnsiColor::BrightRed), ("warning:", AnsiColor::BrightYellow), ("help:", AnsiColor::BrightCyan)];
    let mut text = String::new();
    for line in message.lines() {
        let kind = KINDS.iter().find_map(|(kind, color)| Some((*kind, color.on_default().bold(), line.strip_prefix(kind)?)));
        match kind {
            Some((kind, style, rest)) => text += &format!("{style}{kind}{style:#}{rest}\n"),
            None => text += &format!("{line}\n"),
        }
    }
    // The stream removes the colours unless they are wanted.
    let _ = AutoStream::auto(stderr().lock()).write_all(text.as_bytes());
}

/// Formats a table for standard output: bold titles, and two spaces between columns. The columns with the numbers `right` are aligned to the
/// right.
pub(crate) fn table<const COLUMNS: usize>(
    titles: [&str; COLUMNS],
    rows: impl IntoIterator<Item = [String; COLUMNS]>,
    right: &[usize],
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(titles).add_rows(rows);
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if right.contains(&number) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let text = table.trim_fmt();
    let (titles, rows) = text.split_once('\n').unwrap_or((&text, ""));
    let rows = if rows.is_empty() { String::new() } else { format!("{rows}\n") };
    format!("{}\n{rows}", bold(titles))
}

/// Bold text, if standard output shows colours.
fn bold(text: &str) -> String {
    let bold = if AutoStream::choice(&stdout()) == ColorChoice::Never { Style::new() } else { Style::new().bold() };
    format!("{bold}{text}{bold:#}")
}
