//! Performance reports: several implementations timed over many sizes, like Triton's `perf_report`. The output is data, a table and a plot.

mod data;
mod json;
mod markdown;

pub use data::{Ahead, Point, Report, ReportError, Series, Unit};

use indicatif::{ProgressBar, ProgressStyle};

use super::chart::curve_size;
use super::{Comparison, Roof, Stats, Work, timer};
use crate::{Device, Result};

/// Starts a report. Its files are named after `name`.
///
/// ```
/// # use kernel_runtime::{Device, Result, bench::{Contender, Unit, Work, perf_report}};
/// # fn main() -> Result<()> {
/// let report = perf_report("fill").x("elements", [1 << 10, 1 << 14]).unit(Unit::GbPerS).run(&Device::cpu(), |n, step| {
///     let (mut x, mut y) = (step.device().empty::<f32>(n)?, step.device().empty::<f64>(n)?);
///     step.time([
///         Contender::new("f32", Work::bytes(4 * n), || x.fill(1.0)),
///         Contender::new("f64", Work::bytes(8 * n), || y.fill(1.0)),
///     ])
/// })?;
/// println!("{}", report.to_markdown());
/// # let folder = tempfile::tempdir().unwrap();
/// # let folder = folder.path();
/// report.save(folder).unwrap(); // fill.md, fill.json and fill.svg
/// # Ok(())
/// # }
/// ```
pub fn perf_report(name: impl Into<String>) -> PerfReport {
    PerfReport { name: name.into(), x: "size".to_owned(), sizes: Vec::new(), log_x: true, unit: Unit::GbPerS }
}

/// The settings of a report, made by [`perf_report`].
#[derive(Clone, Debug)]
#[must_use = "nothing is measured until `.run(..)`"]
pub struct PerfReport {
    name: String,
    x: String,
    sizes: Vec<usize>,
    log_x: bool,
    unit: Unit,
}

/// The measurement of one size.
pub struct Step<'r> {
    device: &'r Device,
    x: usize,
    roof: Option<Roof>,
    series: &'r mut Vec<Series>,
}

/// One of the implementations that are compared; a line of the plot.
pub struct Contender<'w> {
    name: &'w str,
    work: Work,
    run: Box<dyn FnMut() -> Result<()> + 'w>,
}

impl<'w> Contender<'w> {
    /// A contender. `name` must be the same at every size. `work` is the work of one run. `run` queues its work on the default stream of
    /// the device, or executes it on the CPU.
    pub fn new(name: &'w str, work: Work, run: impl FnMut() -> Result<()> + 'w) -> Contender<'w> {
        Contender { name, work, run: Box::new(run) }
    }
}

impl PerfReport {
    /// Sets the unit of the sizes, and the sizes.
    pub fn x(mut self, name: impl Into<String>, sizes: impl IntoIterator<Item = usize>) -> PerfReport {
        self.x = name.into();
        self.sizes = sizes.into_iter().collect();
        self
    }

    /// Selects a linear axis of sizes. The default is logarithmic.
    pub fn linear_x(mut self) -> PerfReport {
        self.log_x = false;
        self
    }

    /// Sets the unit of table and plot; the default is GB/s. The data contains all values.
    pub fn unit(mut self, unit: Unit) -> PerfReport {
        self.unit = unit;
        self
    }

    /// Runs the measurements. `step` is called with each size; it makes the data and times the contenders with [`Step::time`]. On a
    /// terminal a progress bar is shown.
    ///
    /// # Errors
    /// The error of `step`.
    pub fn run(self, device: &Device, mut step: impl FnMut(usize, &mut Step<'_>) -> Result<()>) -> Result<Report> {
        let PerfReport { name, x, sizes, log_x, unit } = self;
        // The bar is hidden if standard error is not a terminal.
        let progress = ProgressBar::new(sizes.len() as u64).with_prefix(name.clone());
        let style = ProgressStyle::with_template("{prefix} {bar:24} {pos}/{len} {msg}");
        progress.set_style(style.expect("the template names only fields that progress bars have"));
        let (roof, mut series) = (Roof::of(device), Vec::new());
        for size in sizes {
            progress.set_message(format!("{x} = {}", curve_size(size as f64)));
            step(size, &mut Step { device, x: size, roof, series: &mut series })?;
            progress.inc(1);
        }
        progress.finish_and_clear();
        Ok(Report { name, device: device.name().to_owned(), x, log_x, unit, series })
    }
}

impl Step<'_> {
    /// The device of the measurement.
    pub fn device(&self) -> &Device {
        self.device
    }

    /// Times the contenders alternately, by the method of [`do_bench`](super::do_bench), and compares the others with the first one, which
    /// is ours. If the runs are so slow that fewer than ten rounds fit, there is no comparison. A contender that is not passed at a size
    /// has a gap there.
    ///
    /// # Errors
    /// The error of a run or of the work that it queued.
    pub fn time<const N: usize>(&mut self, mut contenders: [Contender<'_>; N]) -> Result<()> {
        let mut works: Vec<&mut dyn FnMut() -> Result<()>> = Vec::new();
        works.extend(contenders.iter_mut().map(|contender| &mut contender.run as _));
        let times = timer::in_rounds(self.device, 1, std::time::Duration::ZERO, &mut works)?;
        let ours = self.series.first().map_or(Some(0), |ours| contenders.iter().position(|contender| contender.name == ours.name));
        for (index, (Contender { name, work, .. }, own)) in contenders.iter().zip(&times).enumerate() {
            let roof = self.roof.and_then(|roof| roof.least_us(work));
            let first = ours.filter(|ours| *ours != index).and_then(|ours| Ahead::of(Comparison::of(own, &times[ours])));
            let point = Point { x: self.x, work: *work, stats: Stats::of(own.clone()), roof, first };
            match self.series.iter_mut().find(|series| series.name == *name) {
                Some(series) => series.points.push(point),
                None => self.series.push(Series { name: (*name).to_owned(), points: vec![point] }),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn every_contender_has_a_point_at_every_size_where_it_ran() {
        let mut asked = Vec::new();
        let report = perf_report("sleep").x("us", [200, 800]).unit(Unit::Us).run(&Device::cpu(), |us, step| {
            asked.push(us);
            let sleep = |us| {
                std::thread::sleep(Duration::from_micros(us as u64));
                Ok(())
            };
            if us == 200 {
                return step.time([Contender::new("once", Work::bytes(us), || sleep(us))]);
            }
            step.time([Contender::new("once", Work::bytes(us), || sleep(us)), Contender::new("twice", Work::bytes(us), || sleep(2 * us))])
        });
        let report = report.unwrap();
        assert_eq!((asked, report.series.len(), report.device.as_str()), (vec![200, 800], 2, "CPU"));
        let [once, twice] = &report.series[..] else { panic!("{report:?}") };
        assert_eq!((once.points.len(), twice.points.len(), twice.points[0].x), (2, 1, 800));
        assert!(once.points[1].stats.median_us >= 800.0 && twice.points[0].stats.median_us >= 1600.0);
        assert_eq!(once.points[1].stats.samples, twice.points[0].stats.samples);
        assert!(once.points[0].roof.is_none(), "nobody knows the CPU's roof");
        let ahead = twice.points[0].first.unwrap();
        assert!(
            once.points[1].first.is_none() && ahead.low > 1.2 && ahead.low <= ahead.speedup && ahead.speedup <= ahead.high,
            "{ahead:?}"
        );
    }

    #[test]
    fn an_error_of_a_step_ends_the_report() {
        let report = perf_report("none").x("n", [1, 2]).run(&Device::cpu(), |_, _| Err(crate::Error::EventNotRecorded));
        assert!(matches!(report, Err(crate::Error::EventNotRecorded)));
    }
}
