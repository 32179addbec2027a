//! A report as JSON, and back. The types in this file are the schema: a change that makes old files read differently needs the next schema
//! number.

use kernel_lang::dtype::Dtype;
use serde::{Deserialize, Serialize};

use super::data::{Ahead, Point, Report, ReportError, Series, Unit};
use crate::bench::{Bound, Stats, Work};

const SCHEMA: u64 = 1;

#[derive(Deserialize, Serialize)]
struct File {
    schema: u64,
    name: String,
    device: String,
    /// The unit of the sizes.
    x: String,
    log_x: bool,
    /// The unit of table and plot, as [`Unit::name`]. Derived values are not in the file.
    unit: String,
    series: Vec<FileSeries>,
}

#[derive(Deserialize, Serialize)]
struct FileSeries {
    name: String,
    points: Vec<FilePoint>,
}

#[derive(Deserialize, Serialize)]
struct FilePoint {
    x: usize,
    bytes: u64,
    flops: f64,
    dtype: String,
    median_us: f64,
    p20_us: f64,
    p80_us: f64,
    min_us: f64,
    mean_us: f64,
    /// Files of earlier versions do not have it.
    #[serde(default)]
    middle_us: Option<f64>,
    samples: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    roof: Option<FileRoof>,
    /// The speedup of the first contender.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    first: Option<FileAhead>,
}

#[derive(Deserialize, Serialize)]
struct FileAhead {
    speedup: f64,
    low: f64,
    high: f64,
}

#[derive(Deserialize, Serialize)]
struct FileRoof {
    least_us: f64,
    bound: FileBound,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum FileBound {
    Memory,
    Arithmetic,
}

impl Report {
    /// The data as JSON, which [`Report::from_json`] reads. Times are in microseconds.
    pub fn to_json(&self) -> String {
        let point = |Point { x, work, stats, roof, first }: &Point| FilePoint {
            x: *x,
            bytes: work.bytes,
            flops: work.flops,
            dtype: work.dtype.name().to_owned(),
            median_us: stats.median_us,
            p20_us: stats.p20_us,
            p80_us: stats.p80_us,
            min_us: stats.min_us,
            mean_us: stats.mean_us,
            middle_us: Some(stats.middle_us),
            samples: stats.samples,
            roof: roof.map(|(least_us, bound)| FileRoof {
                least_us,
                bound: match bound {
                    Bound::Memory => FileBound::Memory,
                    Bound::Arithmetic => FileBound::Arithmetic,
                },
            }),
            first: first.map(|Ahead { speedup, low, high }| FileAhead { speedup, low, high }),
        };
        let series = |series: &Series| FileSeries { name: series.name.clone(), points: series.points.iter().map(point).collect() };
        let file = File {
            schema: SCHEMA,
            name: self.name.clone(),
            device: self.device.clone(),
            x: self.x.clone(),
            log_x: self.log_x,
            unit: self.unit.name().to_owned(),
            series: self.series.iter().map(series).collect(),
        };
        serde_json::to_string_pretty(&file).expect("strings, numbers and lists have a form in JSON") + "\n"
    }

    /// Reads the output of [`Report::to_json`]. All numbers are restored exactly.
    ///
    /// # Errors
    /// [`ReportError::NoReport`] if the text is not a report, or [`ReportError::Schema`] for a file of a later version.
    pub fn from_json(text: &str) -> Result<Report, ReportError> {
        let no_report = |reason: String| ReportError::NoReport { reason };
        // Check the schema first, because another schema may have other fields.
        let value: serde_json::Value = serde_json::from_str(text).map_err(|error| no_report(error.to_string()))?;
        match value.get("schema").and_then(serde_json::Value::as_u64) {
            Some(SCHEMA) => {}
            Some(found) => return Err(ReportError::Schema { found, known: SCHEMA }),
            None => return Err(no_report("it has no `schema`".to_owned())),
        }
        let file: File = serde_json::from_value(value).map_err(|error| no_report(error.to_string()))?;
        let unit = [Unit::GbPerS, Unit::Tflops, Unit::Us].into_iter().find(|unit| unit.name() == file.unit);
        let unit = unit.ok_or_else(|| no_report(format!("`{}` is no unit", file.unit)))?;
        let point = |point: FilePoint| {
            let FilePoint { x, bytes, flops, median_us, p20_us, p80_us, min_us, mean_us, middle_us, samples, .. } = point;
            let dtype = Dtype::ALL.into_iter().find(|dtype| dtype.name() == point.dtype);
            let dtype = dtype.ok_or_else(|| no_report(format!("`{}` is no element type", point.dtype)))?;
            let roof = point.roof.map(|FileRoof { least_us, bound }| match bound {
                FileBound::Memory => (least_us, Bound::Memory),
                FileBound::Arithmetic => (least_us, Bound::Arithmetic),
            });
            let ahead = |FileAhead { speedup, low, high }| Ahead { speedup, low, high };
            let stats = Stats { median_us, p20_us, p80_us, min_us, mean_us, middle_us: middle_us.unwrap_or(median_us), samples };
            Ok(Point { x, work: Work { bytes, flops, dtype }, stats, roof, first: point.first.map(ahead) })
        };
        let series = file.series.into_iter().map(|series| {
            let points = series.points.into_iter().map(point).collect::<Result<_, _>>()?;
            Ok(Series { name: series.name, points })
        });
        let series = series.collect::<Result<_, _>>()?;
        Ok(Report { name: file.name, device: file.device, x: file.x, log_x: file.log_x, unit, series })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A report with two contenders; one of them is missing at one size.
    pub(in super::super) fn report() -> Report {
        let point = |x: usize, us: f64| Point {
            x,
            work: Work::bytes(12 * x).and_flops(x as f64, Dtype::F32),
            // Numbers that need all their digits.
            stats: Stats {
                median_us: us,
                p20_us: us / 1.1,
                p80_us: us * 1.3,
                min_us: us / 3.0,
                mean_us: us * 1.01,
                middle_us: us * 1.02,
                samples: 77,
            },
            roof: Some((us / 3.0, if x > 10_000 { Bound::Memory } else { Bound::Arithmetic })),
            first: None,
        };
        let mut plain = point(1 << 20, 9.7);
        plain.roof = None;
        plain.first = Some(Ahead { speedup: 9.7 / 7.0, low: 1.3, high: 1.51 });
        Report {
            name: "Vector add: f32".to_owned(),
            device: "a GPU".to_owned(),
            x: "elements".to_owned(),
            log_x: true,
            unit: Unit::GbPerS,
            series: vec![
                Series { name: "galatea".to_owned(), points: vec![point(4096, 2.0), point(1 << 20, 7.0)] },
                Series { name: "copy | \"plain\"".to_owned(), points: vec![plain] },
            ],
        }
    }

    #[test]
    fn a_report_is_read_as_it_was_written() {
        for unit in [Unit::GbPerS, Unit::Tflops, Unit::Us] {
            let report = Report { unit, ..report() };
            let text = report.to_json();
            assert_eq!(Report::from_json(&text).unwrap(), report);
            assert_eq!(Report::from_json(&text).unwrap().to_json(), text);
        }
    }

    #[test]
    fn the_schema_is_stable() {
        let one = Report { series: vec![Series { name: "galatea".to_owned(), points: vec![report().series[0].points[0]] }], ..report() };
        let want = r#"{"schema":1,"name":"Vector add: f32","device":"a GPU","x":"elements","log_x":true,"unit":"GB/s","series":[{"name":"galatea",
            "points":[{"x":4096,"bytes":49152,"flops":4096.0,"dtype":"f32","median_us":2.0,"p20_us":1.8181818181818181,"p80_us":2.6,
            "min_us":0.6666666666666666,"mean_us":2.02,"middle_us":2.04,"samples":77,"roof":{"least_us":0.6666666666666666,"bound":"arithmetic"}}]}]}"#;
        assert_eq!(Report::from_json(want).unwrap(), one);
        assert_eq!(one.to_json().split_whitespace().collect::<String>(), want.replace(char::is_whitespace, ""));
        // An earlier version wrote no mean of the middle half.
        let earlier = Report::from_json(&want.replace("\"middle_us\":2.04,", "")).unwrap();
        assert_eq!(earlier.series[0].points[0].stats.middle_us, 2.0);
    }

    #[test]
    fn an_invalid_report_is_an_error_with_the_reason() {
        let good = report().to_json();
        let error = |text: &str| Report::from_json(text).unwrap_err().to_string();
        assert!(error("").starts_with("this is no report of a benchmark: EOF"));
        assert_eq!(error("{}"), "this is no report of a benchmark: it has no `schema`");
        assert_eq!(error(&good.replace("\"schema\": 1", "\"schema\": 2")), "the report has schema 2; this program reads schema 1");
        assert_eq!(error(&good.replace("GB/s", "GB")), "this is no report of a benchmark: `GB` is no unit");
        assert_eq!(error(&good.replace("\"f32\"", "\"f31\"")), "this is no report of a benchmark: `f31` is no element type");
        assert_eq!(error(&good.replace("samples", "sample")), "this is no report of a benchmark: missing field `samples`");
    }
}
