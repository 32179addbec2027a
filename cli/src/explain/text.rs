//! The report as text.

use kernel_lang::occupancy::Cta;

use super::card::Card;
use super::occupancy::most_registers;
use super::products_text;
use super::report::{Report, Row};
use crate::output;

/// Formats the report.
pub(super) fn render(report: &Report, card: &Card) -> String {
    let mut text = head(report);
    text += &output::table(
        ["LINE", "ACCESS", "TYPE", "BYTES", "SECTORS", "LEAST", "WIDTH", "HINT"],
        report.accesses.iter().map(|row| cells(report, row)),
        &[3, 4, 5, 6],
    );
    text += "BYTES: asked for by all threads. SECTORS, LEAST: sectors of 32 bytes that a request of a warp moves, and the fewest that hold its bytes.\n";
    text += "WIDTH: bytes of one thread's access.\n";
    text += &limits(report);
    text += &hints(report);
    text += &resources(report, card);
    text += &times(report, card);
    text += &products_text::render(report);
    text
}

fn head(report: &Report) -> String {
    let Report { kernel, gpu, target, programs, programs_simulated, resources, .. } = report;
    let simulated = match programs_simulated {
        run if run == programs => "all were simulated".to_owned(),
        run => format!("{run} were simulated"),
    };
    let (warps, s) = (resources.warps_per_cta, if *programs == 1 { "" } else { "s" });
    format!("`{kernel}` on an {gpu} ({target}): {programs} program{s}, {warps} warps a CTA; {simulated}\n\n")
}

fn line(report: &Report, row: &Row) -> String {
    // The file is named where the accesses are in several, as those of device functions.
    let first = report.accesses.first().map(|first| &first.file);
    match first.is_none_or(|first| *first == row.file) {
        true => row.line.to_string(),
        false => format!("{}:{}", row.file, row.line),
    }
}

fn access(row: &Row) -> String {
    match row.tensors.as_slice() {
        [] => format!("{} a computed pointer", row.builtin),
        tensors => format!("{} {}", row.builtin, tensors.join(", ")),
    }
}

fn cells(report: &Report, row: &Row) -> [String; 8] {
    let hint = if row.hint.is_empty() { "-" } else { row.hint };
    let executed = |text: String| if row.width == 0 { "-".to_owned() } else { text };
    [
        line(report, row),
        access(row),
        row.dtype.clone(),
        executed(bytes(row.asked_bytes)),
        executed(format!("{:.1}", row.sectors_per_request)),
        executed(format!("{:.1}", row.least_sectors_per_request)),
        executed(row.width.to_string()),
        hint.to_owned(),
    ]
}

fn limits(report: &Report) -> String {
    let text = grouped(report, |row| {
        let mut text = String::new();
        if row.width == 0 {
            text += "no program executes it\n";
        }
        for why in &row.limits {
            text += &format!("{}\n", why.reason);
            text += &why.help.as_ref().map_or(String::new(), |help| format!("help: {help}\n"));
        }
        // The edge of a grid counts too much in a part of its programs.
        let least = if report.programs_simulated < report.programs { 1.5 / report.programs_simulated as f64 } else { 0.0 };
        if row.narrower > least.max(0.005) {
            let part = 100.0 * row.narrower;
            text += &format!("{part:.0} % of the bytes move in narrower accesses, in tiles that are not full\n");
        }
        text
    });
    if text.is_empty() { text } else { format!("\nwhat limits accesses\n{text}") }
}

fn hints(report: &Report) -> String {
    let hint = |row: &Row| if row.hint.is_empty() { "none" } else { row.hint };
    format!("\ncache hints\n{}", grouped(report, |row| format!("{}, because {}\n", hint(row), row.hint_reason)))
}

/// Notes on accesses. Accesses of one kind and one tensor with the same notes are named together.
fn grouped(report: &Report, notes: impl Fn(&Row) -> String) -> String {
    let mut groups: Vec<(String, String, Vec<String>)> = Vec::new();
    for row in &report.accesses {
        let (access, notes, line) = (access(row), notes(row), line(report, row));
        match groups.iter_mut().find(|(known, same, _)| (known, same) == (&access, &notes)) {
            Some((.., lines)) => lines.push(line),
            None if !notes.is_empty() => groups.push((access, notes, vec![line])),
            None => {}
        }
    }
    let mut text = String::new();
    for (access, notes, mut lines) in groups {
        lines.dedup();
        let word = if lines.len() == 1 { "line" } else { "lines" };
        text += &format!("  {access}, {word} {}\n", lines.join(", "));
        text += &notes.lines().map(|note| format!("    {note}\n")).collect::<String>();
    }
    text
}

fn resources(report: &Report, card: &Card) -> String {
    let own = &report.resources;
    let registers = match (own.registers, own.spill_bytes) {
        (Some(registers), Some(0)) => format!("{registers} a thread, no spills (NVIDIA's assembler)"),
        (Some(registers), spilt) => format!("{registers} a thread, {} B of spills (NVIDIA's assembler)", spilt.unwrap_or(0)),
        (None, _) => {
            format!(
                "unknown without NVIDIA's assembler (`--ptxas PATH`); up to {} a thread do not change the occupancy",
                own.most_registers
            )
        }
    };
    let limited = match own.limited_by.as_slice() {
        [] => "nothing".to_owned(),
        limits => limits.join(" and "),
    };
    let (ctas, warps) = (own.ctas_per_multiprocessor, own.warps_per_multiprocessor);
    let more = match own.limited_by.as_slice() {
        ["registers"] => {
            let cta = Cta { warps: own.warps_per_cta, shared_bytes: own.shared_bytes };
            format!(" ({} CTAs need at most {} a thread)", ctas + 1, most_registers(card.multiprocessor, cta, ctas + 1))
        }
        _ => String::new(),
    };
    let mut text = format!("\nresources\n  registers      {registers}\n  shared memory  {} B a CTA\n", own.shared_bytes);
    let most = card.multiprocessor.warps;
    text += &format!("  occupancy      {warps} of {most} warps of a multiprocessor, in {ctas} CTAs; limited by {limited}{more}\n");
    let at_once = card.multiprocessors * u64::from(ctas);
    if own.ctas < card.multiprocessors {
        text += &format!(
            "  grid           {} CTAs leave {} of {} multiprocessors idle\n",
            own.ctas,
            card.multiprocessors - own.ctas,
            card.multiprocessors
        );
    } else if at_once > 0 {
        text += &format!("  grid           {} CTAs in {:.1} waves of {at_once}\n", own.ctas, own.ctas as f64 / at_once as f64);
    }
    text
}

fn times(report: &Report, card: &Card) -> String {
    let (times, traffic) = (&report.times, &report.traffic);
    let rows = [
        ("memory", times.memory_us, format!("{} of different sectors at {} GB/s", bytes(traffic.memory_bytes), card.memory_gb_per_s)),
        ("L2", times.l2_us, format!("{} of sectors that programs load, and that requests store", bytes(traffic.l2_bytes))),
        ("L1", times.l1_us, format!("{:.0} cache lines of requests, one in a cycle", traffic.l1_lines)),
        ("issue", times.issue_us, format!("{:.0} instructions of warps", traffic.instructions)),
        ("shared memory", times.shared_us, format!("{:.0} bank conflicts", traffic.bank_conflicts)),
        ("roof", times.roof_us, format!("{} of different elements at {} GB/s", bytes(traffic.least_bytes), card.memory_gb_per_s)),
    ];
    let mut text = format!("\ntime\n  {:<14} {:>8.2} us, limited by {}\n", "predicted", times.predicted_us, times.bound);
    for (name, time, of) in rows {
        text += &format!("  {name:<14} {time:>8.2} us: {of}\n");
    }
    text += &format!("  the predicted time reaches {:.0} % of the roof\n", 100.0 * times.part_of_roof);
    text += "assumes the bandwidth and clock of the data sheet (a copy reaches about 90 % of it), caches that lose nothing, a machine instruction for each\n";
    text += "of PTX, and enough warps to hide latencies; the launch itself, of 2 to 3 us, is not counted\n";
    text
}

fn bytes(count: f64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1000.0 {
        return format!("{count:.0} B");
    }
    let (mut value, mut unit) = (count / 1000.0, 0);
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    #[test]
    fn bytes_are_for_people() {
        let texts = [0.0, 999.0, 1000.0, 65536.0, 999_949.0, 999_950.0, 4e9].map(super::bytes);
        assert_eq!(texts, ["0 B", "999 B", "1.0 kB", "65.5 kB", "999.9 kB", "1.0 MB", "4.0 GB"]);
    }
}
