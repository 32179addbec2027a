//! Times of a trace, summed by name, as the table of PyTorch's `key_averages().table()`.
//!
//! ```text
//! Name              Self CPU %  Self CPU  CPU total  CPU time avg  Device total  Calls   FLOPs
//! ----------------  ----------  --------  ---------  ------------  ------------  -----  ------
//! silu_elements         62.50%  50.000us   50.000us      25.000us      30.000us      2  4.096K
//! custom_ops::silu      37.50%  30.000us   80.000us      40.000us      30.000us      2  4.096K
//! ----------------  ----------  --------  ---------  ------------  ------------  -----  ------
//! Self CPU time total: 80.000us
//! Device time total: 30.000us
//! ```

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use super::op_span::SpanKind;
use super::steps::STEP;
use super::trace::{SpanRecord, Trace};

/// The times of a trace by name. `Display` prints a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyAverages {
    rows: Vec<KeyAverage>,
    device_total: Duration,
}

/// The spans or the launches with one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyAverage {
    /// The name of the spans, or of the kernel.
    pub name: String,
    /// Their number.
    pub calls: usize,
    /// The time of the host in them and not in spans and launches inside of them.
    pub self_cpu: Duration,
    /// The time of the host in them. Of calls inside of each other, the outermost counts.
    pub cpu_total: Duration,
    /// The time in which kernels ran that were launched in them, on any device. On the CPU, this time is also the host's.
    pub device_total: Duration,
    /// The floating-point operations of these kernels.
    pub flops: u64,
}

impl KeyAverage {
    /// The mean time of a call on the host.
    pub fn cpu_average(&self) -> Duration {
        self.cpu_total / u32::try_from(self.calls.max(1)).unwrap_or(u32::MAX)
    }
}

/// A column by which [`KeyAverages::sorted_by`] sorts, the largest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SortBy {
    /// [`KeyAverage::self_cpu`], as [`Trace::key_averages`] sorts.
    SelfCpu,
    /// [`KeyAverage::cpu_total`].
    CpuTotal,
    /// [`KeyAverage::device_total`].
    DeviceTotal,
    /// [`KeyAverage::calls`].
    Calls,
    /// [`KeyAverage::flops`].
    Flops,
}

/// What the rows of a name stand for: an op and a kernel may have one name.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Annotation,
    Call,
    Launch,
}

impl Trace {
    /// Sums the times of spans and launches by their names, largest [`KeyAverage::self_cpu`] first.
    ///
    /// ```
    /// # use kernel_runtime::profile::{Profile, span};
    /// let profile = Profile::start();
    /// drop(span("work"));
    /// drop(span("work"));
    /// let averages = profile.finish().key_averages();
    /// assert_eq!((averages.rows()[0].name.as_str(), averages.rows()[0].calls), ("work", 2));
    /// println!("{averages}");
    /// ```
    pub fn key_averages(&self) -> KeyAverages {
        let spans = self.spans();
        let mut children = vec![Duration::ZERO; spans.len()];
        let inside = spans.iter().map(|span| (span.parent, length(&span.time)));
        for (parent, time) in inside.chain(self.launches().iter().map(|launch| (launch.span, length(&launch.enqueued)))) {
            if let Some(parent) = parent {
                children[parent] += time;
            }
        }
        let mut table = Table::default();
        for (span, children) in spans.iter().zip(children) {
            let total = length(&span.time);
            let row = table.row(key(span));
            row.calls += 1;
            row.self_cpu += total.saturating_sub(children);
            if !around(spans, span.parent).any(|outer| key(outer) == key(span)) {
                row.cpu_total += total;
                row.flops = row.flops.saturating_add(span.flops);
            }
        }
        let mut device_total = Duration::ZERO;
        for launch in self.launches() {
            let (queued, ran) = (length(&launch.enqueued), launch.ran.as_ref().map_or(Duration::ZERO, length));
            device_total += ran;
            let row = table.row((Kind::Launch, launch.kernel));
            row.calls += 1;
            row.self_cpu += queued;
            row.cpu_total += queued;
            row.device_total += ran;
            row.flops = row.flops.saturating_add(launch.flops.unwrap_or(0));
            let mut keys: Vec<_> = around(spans, launch.span).map(key).collect();
            keys.sort_unstable_by_key(|(kind, name)| (*kind as u8, *name));
            keys.dedup();
            keys.into_iter().for_each(|key| table.row(key).device_total += ran);
        }
        KeyAverages { rows: table.rows, device_total }.sorted_by(SortBy::SelfCpu)
    }
}

/// Rows in the order of their first use.
#[derive(Default)]
struct Table<'t> {
    rows: Vec<KeyAverage>,
    indices: HashMap<(Kind, &'t str), usize>,
}

impl<'t> Table<'t> {
    fn row(&mut self, key: (Kind, &'t str)) -> &mut KeyAverage {
        let new = self.rows.len();
        let index = *self.indices.entry(key).or_insert(new);
        if index == new {
            let (name, zero) = (key.1.to_owned(), Duration::ZERO);
            self.rows.push(KeyAverage { name, calls: 0, self_cpu: zero, cpu_total: zero, device_total: zero, flops: 0 });
        }
        &mut self.rows[index]
    }
}

/// The row of a span. As in PyTorch, the steps of a profiler are one row.
fn key(span: &SpanRecord) -> (Kind, &str) {
    match span.kind {
        SpanKind::Annotation if span.name.starts_with(STEP) => (Kind::Annotation, "ProfilerStep*"),
        SpanKind::Annotation => (Kind::Annotation, &span.name),
        _ => (Kind::Call, &span.name),
    }
}

/// The span at an index, and all spans around it.
fn around(spans: &[SpanRecord], innermost: Option<usize>) -> impl Iterator<Item = &SpanRecord> {
    std::iter::successors(innermost.map(|index| &spans[index]), |span| span.parent.map(|index| &spans[index]))
}

fn length(time: &std::ops::Range<Duration>) -> Duration {
    time.end.saturating_sub(time.start)
}

impl KeyAverages {
    /// The rows.
    pub fn rows(&self) -> &[KeyAverage] {
        &self.rows
    }

    /// The same rows by another column, the largest first. Equal ones stay in their order.
    #[must_use]
    pub fn sorted_by(mut self, column: SortBy) -> KeyAverages {
        let value = |row: &KeyAverage| match column {
            SortBy::SelfCpu => row.self_cpu.as_nanos(),
            SortBy::CpuTotal => row.cpu_total.as_nanos(),
            SortBy::DeviceTotal => row.device_total.as_nanos(),
            SortBy::Calls => row.calls as u128,
            SortBy::Flops => row.flops.into(),
        };
        self.rows.sort_by_key(|row| std::cmp::Reverse(value(row)));
        self
    }
}

/// The names of the columns.
const HEADER: [&str; 8] = ["Name", "Self CPU %", "Self CPU", "CPU total", "CPU time avg", "Device total", "Calls", "FLOPs"];

impl fmt::Display for KeyAverages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let self_total: Duration = self.rows.iter().map(|row| row.self_cpu).sum();
        let cells = |row: &KeyAverage| {
            let share = 100.0 * row.self_cpu.as_secs_f64() / self_total.as_secs_f64().max(f64::MIN_POSITIVE);
            [
                row.name.clone(),
                format!("{share:.2}%"),
                time(row.self_cpu),
                time(row.cpu_total),
                time(row.cpu_average()),
                time(row.device_total),
                row.calls.to_string(),
                operations(row.flops),
            ]
        };
        let rows: Vec<[String; 8]> = std::iter::once(HEADER.map(str::to_owned)).chain(self.rows.iter().map(cells)).collect();
        let widths: [usize; 8] = std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
        let rule = widths.map(|width| "-".repeat(width)).join("  ");
        for (number, row) in rows.iter().enumerate() {
            let mut line = format!("{:width$}", row[0], width = widths[0]);
            for (cell, width) in row[1..].iter().zip(&widths[1..]) {
                line.push_str(&format!("  {cell:>width$}"));
            }
            writeln!(f, "{line}")?;
            if number == 0 {
                writeln!(f, "{rule}")?;
            }
        }
        writeln!(f, "{rule}\nSelf CPU time total: {}\nDevice time total: {}", time(self_total), time(self.device_total))
    }
}

/// A time with three decimals, in PyTorch's units.
fn time(time: Duration) -> String {
    let us = time.as_nanos() as f64 / 1e3;
    match us {
        us if us >= 1e6 => format!("{:.3}s", us / 1e6),
        us if us >= 1e3 => format!("{:.3}ms", us / 1e3),
        us => format!("{us:.3}us"),
    }
}

/// A number of operations in thousands, millions, billions or trillions. As in PyTorch, none are `--`.
fn operations(flops: u64) -> String {
    let unit = (flops.checked_ilog10().unwrap_or(0) / 3).min(4);
    match (flops, unit) {
        (0, _) => "--".to_owned(),
        (flops, 0) => flops.to_string(),
        (flops, unit) => format!("{:.3}{}", flops as f64 / 1000f64.powi(unit as i32), ["", "K", "M", "B", "T"][unit as usize]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::trace::tests::{launch, span, trace};
    use super::*;

    fn op() -> SpanKind {
        SpanKind::Op { inputs: Vec::new() }
    }

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    /// Two calls of an op, the second of which calls itself, in a step; and a launch outside.
    fn two_calls() -> Trace {
        let spans = vec![
            span("step", SpanKind::Annotation, 0..100),
            span("ns::f", op(), 10..30),
            span("ns::f", op(), 40..90),
            span("ns::f", op(), 50..80),
        ];
        trace(vec![launch(0, 12..22, 25..32), launch(0, 55..60, 70..74), launch(0, 200..201, 210..215)], spans)
    }

    #[test]
    fn times_are_summed_by_name() {
        let averages = two_calls().key_averages();
        let row = |name: &str| averages.rows().iter().find(|row| row.name == name).unwrap();
        let expected = |name: &str, calls, self_cpu, cpu_total, device_total, flops| KeyAverage {
            name: name.to_owned(),
            calls,
            self_cpu: us(self_cpu),
            cpu_total: us(cpu_total),
            device_total: us(device_total),
            flops,
        };
        assert_eq!(*row("step"), expected("step", 1, 30, 100, 11, 200));
        // 20 - 10, 50 - 30 and 30 - 5; the inner call is in the total of the outer one.
        assert_eq!(*row("ns::f"), expected("ns::f", 3, 10 + 20 + 25, 20 + 50, 11, 200));
        assert_eq!(*row("add"), expected("add", 3, 16, 16, 16, 300));
    }

    #[test]
    fn the_table_is_sorted_by_the_column() {
        let by = |column| two_calls().key_averages().sorted_by(column).rows().iter().map(|row| row.name.clone()).collect::<Vec<_>>();
        assert_eq!(by(SortBy::SelfCpu), ["ns::f", "step", "add"]);
        assert_eq!(by(SortBy::CpuTotal), ["step", "ns::f", "add"]);
        assert_eq!(by(SortBy::DeviceTotal), ["add", "ns::f", "step"]);
        assert_eq!(by(SortBy::Calls), ["ns::f", "add", "step"]);
        assert_eq!(by(SortBy::Flops), ["add", "ns::f", "step"]);
        let expected = "\
Name   Self CPU %  Self CPU  CPU total  CPU time avg  Device total  Calls  FLOPs
-----  ----------  --------  ---------  ------------  ------------  -----  -----
ns::f      54.46%  55.000us   70.000us      23.333us      11.000us      3    200
step       29.70%  30.000us  100.000us     100.000us      11.000us      1    200
add        15.84%  16.000us   16.000us       5.333us      16.000us      3    300
-----  ----------  --------  ---------  ------------  ------------  -----  -----
Self CPU time total: 101.000us
Device time total: 16.000us
";
        assert_eq!(two_calls().key_averages().to_string(), expected);
    }

    #[test]
    fn steps_are_one_row() {
        let spans = [0, 10].map(|start| span(&format!("ProfilerStep#{start}"), SpanKind::Annotation, start..start + 5));
        let averages = trace(Vec::new(), spans.to_vec()).key_averages();
        let [row] = averages.rows() else { panic!("{averages}") };
        assert_eq!((row.name.as_str(), row.calls, row.cpu_total, row.cpu_average()), ("ProfilerStep*", 2, us(10), us(5)));
    }

    #[test]
    fn numbers_have_units() {
        assert_eq!(
            [0, 7, 999, 1000, 262_144, 5_000_000_000_000_000].map(operations),
            ["--", "7", "999", "1.000K", "262.144K", "5000.000T"]
        );
        assert_eq!([us(0), us(999), us(1500), us(2_500_000)].map(time), ["0.000us", "999.000us", "1.500ms", "2.500s"]);
    }
}
