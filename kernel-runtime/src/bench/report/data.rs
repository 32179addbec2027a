//! What was measured, and the files that say it.

use std::path::{Path, PathBuf};

use crate::bench::chart::{Curve, CurveChart, Place};
use crate::bench::{Bound, Comparison, Stats, Work};

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The name that [`perf_report`](super::perf_report) was given.
    pub name: String,
    /// Of the device.
    pub device: String,
    /// What the sizes count.
    pub x: String,
    /// Do the ratios of sizes matter, rather than their differences?
    pub log_x: bool,
    /// What table and plot show.
    pub unit: Unit,
    /// In the order in which they were first timed; ours is the first.
    pub series: Vec<Series>,
}

/// One contender at all sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name.
    pub name: String,
    /// In the order of measuring.
    pub points: Vec<Point>,
}

/// One contender at one size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// The size.
    pub x: usize,
    /// What a run did.
    pub work: Work,
    /// How long it took.
    pub stats: Stats,
    /// The least time by the device's [`Roof`](crate::bench::Roof), in microseconds, and what sets it; none where no roof is known.
    pub roof: Option<(f64, Bound)>,
    /// How many times as fast the report's first contender was at this size; none for itself, where it has a gap, and where a clock stood still.
    pub first: Option<Ahead>,
}

/// How many times as fast the first contender was: see [`Comparison`], whose second it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ahead {
    /// The ratio of the median times: above 1, the first is faster.
    pub speedup: f64,
    /// The lower end of its confidence interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// What a table or a plot shows of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes moved, in 10^9 a second: higher is better.
    GbPerS,
    /// Operations, in 10^12 a second: higher is better.
    Tflops,
    /// The time itself in microseconds: lower is better.
    Us,
}

impl Ahead {
    /// None where a clock stood still: then there is no ratio.
    pub(super) fn of(Comparison { speedup, low, high, .. }: Comparison) -> Option<Ahead> {
        [speedup, low, high].iter().all(|ratio| ratio.is_finite()).then_some(Ahead { speedup, low, high })
    }
}

impl Unit {
    /// As it is written: `GB/s`, `TFLOP/s`, `us`.
    pub const fn name(self) -> &'static str {
        match self {
            Unit::GbPerS => "GB/s",
            Unit::Tflops => "TFLOP/s",
            Unit::Us => "us",
        }
    }

    /// The value of a run of that work in so many microseconds.
    pub fn value(self, work: &Work, us: f64) -> f64 {
        match self {
            Unit::GbPerS => work.bytes as f64 / us * 1e-3,
            Unit::Tflops => work.flops / us * 1e-6,
            Unit::Us => us,
        }
    }

    /// The value of the median run; of the lower and the upper edge of the band in which three fifths of the runs are.
    pub(super) fn band(self, point: &Point) -> (f64, f64, f64) {
        let value = |us| self.value(&point.work, us);
        let (p20, p80) = (value(point.stats.p20_us), value(point.stats.p80_us));
        (value(point.stats.median_us), p20.min(p80), p20.max(p80))
    }
}

impl Report {
    /// The plot: a line for each contender, with the band from the 20th to the 80th percentile. The same report gives the same bytes.
    pub fn to_svg(&self) -> String {
        let place = |point: &Point| {
            let (y, low, high) = self.unit.band(point);
            Place { x: point.x as f64, low, y, high }
        };
        let curves = self.series.iter().map(|series| {
            let mut places: Vec<Place> = series.points.iter().map(place).collect();
            places.sort_by(|a, b| a.x.total_cmp(&b.x));
            Curve { name: series.name.clone(), places }
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

    /// Writes the table, the data and the plot into a folder, which is made if it is not there: `vector-add.md`, `.json` and `.svg` for a report called
    /// `vector add`. Their paths.
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

    /// The name as a part of a path: small letters and digits, and a hyphen for all else.
    pub(super) fn file_name(&self) -> String {
        let words: Vec<String> =
            self.name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
        if words.is_empty() { "report".to_owned() } else { words.join("-") }
    }
}

/// A report that cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// A file or its folder cannot be written.
    #[error("cannot write the report to `{}`: {error}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The text is no report.
    #[error("this is no report of a benchmark: {reason}")]
    NoReport {
        /// What is wrong with it.
        reason: String,
    },
    /// A report of a version that this program does not know.
    #[error("the report has schema {found}; this program reads schema {known}")]
    Schema {
        /// Its schema.
        found: u64,
        /// The one that is known.
        known: u64,
    },
}
