//! The report of the counters: a row for each source line, and the total.

use std::collections::BTreeMap;

use super::{Counters, LineCounters};
use crate::ptx::SourceLine;

const HEADINGS: [&str; 8] =
    ["line", "instructions", "global bytes", "sectors/request", "efficiency", "shared bytes", "bank conflicts", "matrix flops"];

pub(super) fn render(counters: &Counters, files: &[(u32, String)]) -> String {
    let mut rows = vec![HEADINGS.map(str::to_owned)];
    // Merges the columns of a line into one row.
    let mut lines: BTreeMap<(u32, u32), LineCounters> = BTreeMap::new();
    for (SourceLine { file, line, .. }, counters) in counters.lines() {
        lines.entry((file, line)).or_default().merge(counters);
    }
    rows.extend(lines.iter().map(|(&(file, line), counters)| row(position(file, line, files), counters)));
    rows.push(row("total".to_owned(), &counters.total()));
    let widths: [usize; HEADINGS.len()] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn position(file: u32, line: u32, files: &[(u32, String)]) -> String {
    if file == 0 {
        return "(no line)".to_owned();
    }
    let name = files.iter().find(|(number, _)| *number == file).map_or("?", |(_, name)| name);
    format!("{name}:{line}")
}

/// The cells of a row. Counters that are zero become empty cells.
fn row(position: String, counters: &LineCounters) -> [String; HEADINGS.len()] {
    let LineCounters { global, shared, .. } = counters;
    let unless_zero = |number: u64| if number == 0 { String::new() } else { number.to_string() };
    let per_request = |text: String| if global.requests == 0 { String::new() } else { text };
    [
        position,
        counters.warp_instructions().to_string(),
        unless_zero(global.load_bytes + global.store_bytes + counters.async_bytes),
        per_request(format!("{:.1}", global.sectors() as f64 / global.requests.max(1) as f64)),
        per_request(format!("{:.0}%", 100.0 * global.efficiency())),
        unless_zero(shared.load_bytes + shared.store_bytes),
        if shared.requests == 0 { String::new() } else { shared.bank_conflicts().to_string() },
        unless_zero(counters.matrix_flops),
    ]
}
