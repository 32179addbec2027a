//! The data of a report, and the files that it is written to.

use std::path::{Path, PathBuf};

use crate::bench::chart::{Curve, CurveChart, CurvePoint};
use crate::bench::{Bound, Comparison, Stats, Work};

/// The measurements of a report.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The name that was passed to [`perf_report`](super::perf_report).
    pub name: String,
    /// The name of the device.
    pub device: String,
    /// The unit of the sizes.
    pub x: String,
    /// Whether the plot has a logarithmic axis of sizes.
    pub log_x: bool,
    /// The unit of table and plot.
    pub unit: Unit,
    /// The series, in the order in which they were first timed. The first one is ours.
    pub series: Vec<Series>,
}

/// The measurements of one contender at all sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// The points, in the order of measuring.
    pub points: Vec<Point>,
}

/// The measurement of one contender at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The size.
    pub x: usize,
    /// The work of a run.
    pub work: Work,
    /// The statistics of the run times.
    pub stats: Stats,
    /// The minimum time by the device's [`Roof`](crate::bench::Roof) in microseconds, and the limit that sets it; none if no roof is known.
    pub roof: Option<(f64, Bound)>,
    /// The speedup of the report's first contender over this one at this size. None for the first contender itself, if it was not timed at
    /// this size, and if the device's clock did not advance.
    pub first: Option<Ahead>,
}

/// The speedup of the first contender over another one: see [`Comparison`], in which the first contender is the second work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ahead {
    /// The ratio of the median times. Above 1, the first contender is faster.
    pub speedup: f64,
    /// The lower end of its confidence interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The unit of the values in a table or a plot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes moved, in 10^9 per second: higher is better.
    GbPerS,
    /// Operations, in 10^12 per second: higher is better.
    Tflops,
    /// The time in microseconds: lower is better.
    Us,
}

impl Ahead {
    /// None if the device's clock did not advance, so that there is no ratio.
    pub(super) fn of(Comparison { speedup, low, high, .. }: Comparison) -> Option<Ahead> {
        [speedup, low, high].iter().all(|ratio| ratio.is_finite()).then_some(Ahead { speedup, low, high })
    }
}

impl Unit {
    /// The text of the unit: `GB/s`, `TFLOP/s` or `us`.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::GbPerS => "GB/s",
            Unit::Tflops => "TFLOP/s",
            Unit::Us => "us",
        }
    }

    /// The value of a run of that work that takes `us` microseconds.
    pub fn value(self, work: &Work, us: f64) -> f64 {
        match self {
            Unit::GbPerS => work.bytes as f64 / us * 1e-3,
            Unit::Tflops => work.flops / us * 1e-6,
            Unit::Us => us,
        }
    }

    /// The value of the median run, and the values at the 20th and 80th percentiles, in ascending order.
    pub(super) fn band(self, point: &Point) -> (f64, f64, f64) {
        let value = |us| self.value(&point.work, us);
        let (p20, p80) = (value(point.stats.p20_us), value(point.stats.p80_us));
        (value(point.stats.median_us), p20.min(p80), p20.max(p80))
    }
}

impl Report {
    /// The plot: a line for each contender, with a band from the 20th to the 80th percentile. The same report gives the same bytes.
    pub fn to_svg(&self) -> String {
        let curve_point = |point: &Point| {
            let (y, low, high) = self.unit.band(point);
            CurvePoint { x: point.x as f64, low, y, high }
        };
        let curves = self.series.iter().map(|series| {
            let mut points: Vec<CurvePoint> = series.points.iter().map(curve_point).collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            Curve { name: series.name.clone(), points }
        });
        let better = if self.unit == Unit::Us { "lower" } else { "higher" };
        CurveChart {
            caption: format!("{}, {}: {better} is better", self.name, self.device),
            x: self.x.clone(),
            y: self.unit.name().to_owned(),
            log_x: self.log_x,
            curves: curves.collect(),
        }
        .svg()
    }

    /// Writes the table, the data and the plot into a folder, which is created if it does not exist. A report named `vector add` gives
    /// `vector-add.md`, `.json` and `.svg`. Returns the paths.
    ///
    /// # Errors
    /// [`ReportError::Write`].
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<[PathBuf; 3], ReportError> {
        let folder = folder.as_ref();
        let written =
            |path: &Path, result: std::io::Result<()>| result.map_err(|error| ReportError::Write { path: path.to_owned(), error });
        written(folder, std::fs::create_dir_all(folder))?;
        let texts = [("md", self.to_markdown()), ("json", self.to_json()), ("svg", self.to_svg())];
        let paths = texts.each_ref().map(|(extension, _)| folder.join(format!("{}.{extension}", self.file_name())));
        for (path, (_, text)) in paths.iter().zip(texts) {
            written(path, std::fs::write(path, text))?;
        }
        Ok(paths)
    }

    /// The name as part of a path: lower-case letters and digits, with hyphens for all other characters.
    pub(super) fn file_name(&self) -> String {
        let words: Vec<String> =
            self.name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
        if words.is_empty() { "report".to_owned() } else { words.join("-") }
    }
}

/// The error of writing or reading a report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or its folder cannot be written.
    #[error("cannot write the report to `{}`: {error}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
    /// The text is not a report.
    #[error("this is no report of a benchmark: {reason}")]
    NoReport {
        /// The reason.
        reason: String,
    },
    /// The report has a schema that this program does not know.
    #[error("the report has schema {found}; this program reads schema {known}")]
    Schema {
        /// The schema of the report.
        found: u64,
        /// The schema that this program reads.
        known: u64,
    },
}
