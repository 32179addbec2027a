//! Curve charts: values over sizes, each curve with a band.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;

use super::{INK, color};

/// A curve over the sizes for each contender, with a band that shows the spread of the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CurveChart {
    /// The title.
    pub caption: String,
    /// The label of the axis of sizes.
    pub x: String,
    /// The label of the axis of values, with the unit.
    pub y: String,
    /// Whether the axis of sizes is logarithmic. Then sizes must be above 0.
    pub log_x: bool,
    /// The curves, in the order of the legend.
    pub curves: Vec<Curve>,
}

/// The curve of one contender.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// The points, in the order of their sizes.
    pub points: Vec<CurvePoint>,
}

/// A point: a value with its band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// The size.
    pub x: f64,
    /// The lower edge of the band.
    pub low: f64,
    /// The value.
    pub y: f64,
    /// The upper edge of the band.
    pub high: f64,
}

/// The size of the chart in pixels.
const SIZE: (u32, u32) = (860, 480);
/// The maximum number of labels on the axis of sizes.
const MOST_LABELS: usize = 16;

impl CurveChart {
    /// Renders the chart as an SVG file. Points with non-finite coordinates are gaps.
    pub fn svg(&self) -> String {
        super::svg(SIZE, |area| {
            let all = || self.curves.iter().flat_map(|curve| &curve.points).filter(|point| self.is_drawn(point));
            let mut sizes: Vec<f64> = all().map(|point| point.x).collect();
            sizes.sort_by(f64::total_cmp);
            sizes.dedup();
            let (first, last) = (sizes.first().map_or(0.0, |x| self.across(*x)), sizes.last().map_or(1.0, |x| self.across(*x)));
            // Centre a single size.
            let (first, last) = if first < last { (first, last) } else { (first - 0.5, last + 0.5) };
            // The space above the highest value is for the legend.
            let top = all().map(|point| point.high).fold(0.0, f64::max) * 1.2;
            let top = if top > 0.0 { top } else { 1.0 };
            let digits = if top < 10.0 { 2 } else { 0 };
            let labels: Vec<f64> = thinned(&sizes).map(|x| self.across(x)).collect();
            let mut chart = ChartBuilder::on(area)
                .caption(&self.caption, ("sans-serif", 18, &INK))
                .margin(14)
                .x_label_area_size(48)
                .y_label_area_size(64)
                .build_cartesian_2d(Across { range: first..last, labels }, 0.0..top)?;
            chart
                .configure_mesh()
                .light_line_style(TRANSPARENT)
                .bold_line_style(INK.mix(0.12))
                .axis_style(INK)
                .x_desc(&self.x)
                .y_desc(&self.y)
                .x_label_formatter(&|x| size(self.along(*x)))
                .y_label_formatter(&|value| format!("{value:.digits$}"))
                .label_style(("sans-serif", 13, &INK))
                .axis_desc_style(("sans-serif", 15, &INK))
                .draw()?;

            let drawn = |curve: &Curve| curve.points.iter().filter(|point| self.is_drawn(point)).copied().collect::<Vec<_>>();
            let at = |point: &CurvePoint, y: f64| (self.across(point.x), y);
            // Draw all bands below all lines.
            for (index, curve) in self.curves.iter().enumerate() {
                let points = drawn(curve);
                let (low, high) = (points.iter().map(|point| at(point, point.low)), points.iter().rev().map(|point| at(point, point.high)));
                chart.draw_series([Polygon::new(low.chain(high).collect::<Vec<_>>(), color(index).mix(0.2).filled())])?;
            }
            for (index, curve) in self.curves.iter().enumerate() {
                let color = color(index);
                let line: Vec<(f64, f64)> = drawn(curve).iter().map(|point| at(point, point.y)).collect();
                chart.draw_series(line.iter().map(|at| Circle::new(*at, 3, color.filled())))?;
                chart
                    .draw_series([PathElement::new(line, color.stroke_width(2))])?
                    .label(&curve.name)
                    .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(3)));
            }
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperLeft)
                .background_style(WHITE.mix(0.85))
                .label_font(("sans-serif", 14, &INK))
                .draw()?;
            Ok(())
        })
    }

    fn is_drawn(&self, point: &CurvePoint) -> bool {
        [point.x, point.low, point.y, point.high].iter().all(|value| value.is_finite()) && (!self.log_x || point.x > 0.0)
    }

    /// The horizontal coordinate of a size.
    fn across(&self, x: f64) -> f64 {
        if self.log_x { x.log2() } else { x }
    }

    /// The size at a horizontal coordinate.
    fn along(&self, across: f64) -> f64 {
        if self.log_x { across.exp2() } else { across }
    }
}

/// The axis of sizes, with labels at measured sizes.
struct Across {
    range: Range<f64>,
    labels: Vec<f64>,
}

impl Ranged for Across {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        let part = (value - self.range.start) / (self.range.end - self.range.start);
        first + (part * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // Grid lines between the labels have no meaning.
        if hint.weight().allow_light_points() { Vec::new() } else { self.labels.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// At most `MOST_LABELS` of the sizes, evenly spaced from the last one down, because the last size is the most important.
fn thinned(sizes: &[f64]) -> impl Iterator<Item = f64> {
    sizes.iter().rev().step_by(sizes.len().div_ceil(MOST_LABELS).max(1)).copied()
}

/// Formats powers of two from 1024 on as `2^20`; other numbers in full, or in thousands, millions or billions if they are long.
pub(in crate::bench) fn size(x: f64) -> String {
    let whole = x.round();
    if (x - whole).abs() > 1e-6 * x.abs() {
        return format!("{x:.2}");
    }
    let power = whole.log2();
    if whole >= 1024.0 && power.fract() == 0.0 {
        return format!("2^{power:.0}");
    }
    match whole {
        1e9.. => format!("{}G", whole / 1e9),
        1e6.. => format!("{}M", whole / 1e6),
        1e4.. => format!("{}k", whole / 1e3),
        _ => format!("{whole}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<CurvePoint>) -> CurveChart {
        let curve = Curve { name: "ours".to_owned(), points };
        CurveChart { caption: "add & copy".to_owned(), x: "elements".to_owned(), y: "GB/s".to_owned(), log_x: true, curves: vec![curve] }
    }

    fn point(x: f64, y: f64) -> CurvePoint {
        CurvePoint { x, low: y - 1.0, y, high: y + 1.0 }
    }

    #[test]
    fn doubling_is_a_step_of_the_same_width_and_values_have_their_height() {
        let svg = chart(vec![point(4096.0, 10.0), point(8192.0, 20.0), point(16384.0, 30.0)]).svg();
        let circles: Vec<(f64, f64)> =
            svg.lines().filter(|line| line.starts_with("<circle")).map(|line| (number(line, "cx"), number(line, "cy"))).collect();
        let [a, b, c] = circles[..] else { panic!("{svg}") };
        assert!((b.0 - a.0 - (c.0 - b.0)).abs() <= 1.0 && b.0 - a.0 > 100.0, "{circles:?}");
        assert!((a.1 - b.1 - (b.1 - c.1)).abs() <= 1.0 && a.1 > b.1, "{circles:?}");
        assert!(svg.contains("<polygon") && svg.contains("<polyline"), "{svg}");
        for text in ["2^12", "2^13", "2^14", "elements", "GB/s", "ours", "add &amp; copy"] {
            assert!(svg.contains(text), "`{text}` in {svg}");
        }
    }

    #[test]
    fn the_same_data_give_the_same_bytes_and_gaps_are_no_failure() {
        let points = vec![point(4096.0, 10.0), point(f64::NAN, 3.0), point(0.0, 3.0), point(8192.0, f64::INFINITY)];
        let (with_gaps, alone) = (chart(points).svg(), chart(vec![point(4096.0, 10.0)]).svg());
        assert_eq!((with_gaps.as_str(), with_gaps.matches("<circle").count()), (alone.as_str(), 1));
        assert!(chart(Vec::new()).svg().starts_with("<svg"));
    }

    #[test]
    fn sizes_are_short() {
        let sizes = [1.0, 781.0, 1024.0, 12672.0, 1_000_000.0, 1_500_000.0, (1u64 << 26) as f64, 0.5];
        assert_eq!(sizes.map(size).join(" "), "1 781 2^10 12.672k 1M 1.5M 2^26 0.50");
        let many: Vec<f64> = (1..=40).map(f64::from).collect();
        let labels: Vec<f64> = thinned(&many).collect();
        assert!(labels.len() <= MOST_LABELS && labels[0] == 40.0 && labels[1] == 37.0, "{labels:?}");
    }

    fn number(line: &str, name: &str) -> f64 {
        line.split_once(&format!(" {name}=\"")).and_then(|(_, rest)| rest.split('"').next()).and_then(|text| text.parse().ok()).unwrap()
    }
}
