//! A report as a Markdown page.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::data::{Ahead, Point, Report, Unit};
use crate::bench::chart::curve_size;

impl Report {
    /// The report as Markdown: the method, a table with a row for each size, and a reference to the plot, which [`Report::save`] writes
    /// beside it.
    pub fn to_markdown(&self) -> String {
        let Report { name, device, unit, .. } = self;
        let mut text = format!(
            "# {name}\n\n\
             On {device}, in {}: the median run, in brackets the 20th and the 80th percentile; ratios of medians, in brackets their confidence intervals at \
             99 %. Contenders ran in rounds, on a GPU with the L2 cache emptied before each run; bytes count once what must be read and written.\n\n| {} |",
            unit.name(),
            cell(&self.x)
        );
        for series in &self.series {
            let _ = write!(text, " {} |", cell(&series.name));
        }
        let ours = self.series.first();
        let has_peers = self.series.len() > 1;
        let has_roof = ours.is_some_and(|ours| ours.points.iter().any(|point| point.roof.is_some()));
        if let (Some(ours), true) = (ours, has_peers) {
            let _ = write!(text, " {} to the best other |", cell(&ours.name));
        }
        if let (Some(ours), true) = (ours, has_roof) {
            let _ = write!(text, " {} to the roof |", cell(&ours.name));
        }
        let columns = 1 + self.series.len() + usize::from(has_peers) + usize::from(has_roof);
        let _ = writeln!(text, "\n|{}", "---:|".repeat(columns));

        let sizes: BTreeSet<usize> = self.series.iter().flat_map(|series| &series.points).map(|point| point.x).collect();
        for size in sizes {
            let points: Vec<Option<&Point>> = self.series.iter().map(|series| series.points.iter().find(|point| point.x == size)).collect();
            let _ = write!(text, "| {} |", curve_size(size as f64));
            for point in &points {
                let _ = match point {
                    Some(point) => write!(text, " {} |", value(*unit, point)),
                    None => write!(text, " |"),
                };
            }
            let ours = points.first().copied().flatten();
            if has_peers {
                let _ = match to_the_best(&points[1..]) {
                    Some(ahead) => write!(text, " {ahead} |"),
                    None => write!(text, " |"),
                };
            }
            if has_roof {
                let part = ours.and_then(|ours| Some(100.0 * ours.roof?.0 / ours.stats.median_us));
                let _ = match part {
                    Some(part) => write!(text, " {part:.0} % |"),
                    None => write!(text, " |"),
                };
            }
            text += "\n";
        }
        if has_roof {
            text += "\nThe roof is an estimate from the clocks that the driver names.\n";
        }
        let file = self.file_name();
        let _ = write!(text, "\n![{name}]({file}.svg)\n\nThe same as data: [{file}.json]({file}.json).\n");
        text
    }
}

/// The speedup of ours over the fastest other contender at this size, with its confidence interval.
fn to_the_best(others: &[Option<&Point>]) -> Option<String> {
    let timed = others.iter().flatten().filter(|other| other.stats.median_us > 0.0);
    let ahead = timed.min_by(|a, b| a.stats.median_us.total_cmp(&b.stats.median_us))?.first?;
    let Ahead { speedup, low, high } = ahead;
    Some(format!("{speedup:.2}x ({low:.2} to {high:.2})"))
}

/// The median with its band.
fn value(unit: Unit, point: &Point) -> String {
    // The clock of a simulated GPU does not advance while memory is copied.
    if point.stats.median_us <= 0.0 {
        return "not timed".to_owned();
    }
    let (median, low, high) = unit.band(point);
    // At least three digits.
    let digits = match median.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    format!("{median:.digits$} ({low:.digits$} to {high:.digits$})")
}

/// Escapes a text for a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::super::json::tests::report;

    #[test]
    fn the_page_has_a_row_for_each_size() {
        let want = "# Vector add: f32

On a GPU, in GB/s: the median run, in brackets the 20th and the 80th percentile; ratios of medians, in brackets their confidence intervals at 99 %. Contenders ran in rounds, on a GPU with the L2 cache emptied before each run; bytes count once what must be read and written.

| elements | galatea | copy \\| \"plain\" | galatea to the best other | galatea to the roof |
|---:|---:|---:|---:|---:|
| 2^12 | 24.6 (18.9 to 27.0) | | | 33 % |
| 2^20 | 1798 (1383 to 1977) | 1297 (998 to 1427) | 1.39x (1.30 to 1.51) | 33 % |

The roof is an estimate from the clocks that the driver names.

![Vector add: f32](vector-add-f32.svg)

The same as data: [vector-add-f32.json](vector-add-f32.json).
";
        assert_eq!(report().to_markdown(), want);
    }

    #[test]
    fn a_time_of_zero_has_no_speed() {
        let mut report = report();
        report.series[1].points[0].stats.median_us = 0.0;
        let page = report.to_markdown();
        assert!(page.contains("| 2^20 | 1798 (1383 to 1977) | not timed | | 33 % |"), "{page}");
    }

    #[test]
    fn three_files_are_saved() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("new");
        let paths = report().save(&folder).unwrap();
        let [page, data, plot] = paths.each_ref().map(|path| std::fs::read_to_string(path).unwrap());
        assert_eq!((page, data, plot), (report().to_markdown(), report().to_json(), report().to_svg()));
        assert_eq!(paths[2].file_name().unwrap(), "vector-add-f32.svg");
        let error = report().save(&paths[0]).unwrap_err();
        assert!(error.to_string().starts_with("cannot write the report to `"), "{error}");
    }

    #[test]
    fn the_plot_has_a_line_for_each_contender() {
        let svg = report().to_svg();
        assert_eq!((svg.matches("<polygon").count(), svg.matches("<circle").count()), (2, 3), "{svg}");
        assert!(svg.contains("higher is better") && svg.contains("copy | &quot;plain&quot;"), "{svg}");
        assert_eq!(svg, report().to_svg());
    }
}
