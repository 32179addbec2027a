//! Bar charts: groups of bars, with ours first in each group.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, Drawn, INK, color};

/// Groups of bars, with a bar for each series: higher is better. Long lists of groups wrap into further bands below.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// The title.
    pub caption: String,
    /// The label of the vertical axis, with the unit.
    pub y: String,
    /// The names of the series, in the order of each group's bars.
    pub series: Vec<String>,
    /// The groups, from left to right.
    pub groups: Vec<BarGroup>,
}

/// The bars of one measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    /// The two lines of text below the group.
    pub labels: [String; 2],
    /// The height of each series' bar. None and non-finite heights are gaps.
    pub heights: Vec<Option<f64>>,
    /// The text above the first bar.
    pub note: String,
}

/// The number of groups in one band.
const BAND: usize = 6;
/// The height of a band and the parts of its width, in pixels.
const BAND_HEIGHT: u32 = 340;
const MARGINS: u32 = 160;
const GROUP_WIDTH: u32 = 190;

impl BarGroup {
    /// The height of the bar at index `slot`, if there is a bar.
    fn height(&self, slot: usize) -> Option<f64> {
        self.heights.get(slot).copied().flatten().filter(|height| height.is_finite())
    }
}

impl BarChart {
    /// Renders the chart as an SVG file.
    pub fn svg(&self) -> String {
        let bands: Vec<&[BarGroup]> = self.groups.chunks(BAND).collect();
        let width = MARGINS + GROUP_WIDTH * self.groups.len().clamp(3, BAND) as u32;
        super::svg((width, BAND_HEIGHT * bands.len().max(1) as u32), |area| {
            for (index, (part, groups)) in area.split_evenly((bands.len().max(1), 1)).iter().zip(&bands).enumerate() {
                let caption = if index == 0 { &self.caption } else { "" };
                // Groups in the last band are as wide as in the others.
                let places = if bands.len() > 1 { BAND } else { groups.len() };
                self.band(part, groups, places, caption)?;
            }
            Ok(())
        })
    }

    fn band(&self, area: &Area<'_>, groups: &[BarGroup], places: usize, caption: &str) -> Drawn {
        // The space above the highest bar is for the legend.
        let top = groups.iter().flat_map(|group| (0..group.heights.len()).filter_map(|slot| group.height(slot))).fold(0.0, f64::max) * 1.35;
        let top = if top > 0.0 { top } else { 1.0 };
        let mut chart = ChartBuilder::on(area)
            .caption(caption, ("sans-serif", 16, &INK))
            .margin(12)
            .x_label_area_size(44)
            .y_label_area_size(56)
            .build_cartesian_2d(0.0..places as f64, 0.0..top)?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .disable_x_axis()
            .light_line_style(TRANSPARENT)
            .y_desc(&self.y)
            .y_label_formatter(&|value| format!("{value:.0}"))
            .label_style(("sans-serif", 12, &INK))
            .draw()?;

        let bar = 0.76 / self.series.len().max(1) as f64;
        let left_of = |group: usize, slot: usize| group as f64 + 0.12 + bar * slot as f64;
        for (slot, name) in self.series.iter().enumerate() {
            let color = color(slot);
            let bars = groups.iter().enumerate().filter_map(|(group, bars)| {
                let left = left_of(group, slot);
                let height = bars.height(slot)?;
                Some(Rectangle::new([(left, 0.0), (left + bar * 0.92, height)], color.filled()))
            });
            let legend = move |(x, y): (i32, i32)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled());
            chart.draw_series(bars)?.label(name).legend(legend);
        }

        let label = |pixels: i32, vertical: VPos| ("sans-serif", pixels).into_font().color(&INK).pos(Pos::new(HPos::Center, vertical));
        chart.draw_series(groups.iter().enumerate().map(|(index, group)| {
            let middle = left_of(index, 0) + bar * 0.46;
            let height = group.height(0).unwrap_or(0.0);
            Text::new(group.note.clone(), (middle, height + top * 0.01), label(13, VPos::Bottom))
        }))?;
        for line in 0..2 {
            for (index, group) in groups.iter().enumerate() {
                let (x, y) = chart.backend_coord(&(index as f64 + 0.5, 0.0));
                area.draw(&Text::new(group.labels[line].clone(), (x, y + 8 + 16 * line as i32), label(13, VPos::Top)))?;
            }
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .background_style(WHITE.mix(0.85))
            .label_font(("sans-serif", 13, &INK))
            .draw()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_high_as_its_value_and_a_gap_is_none() {
        let group = |name: &str, heights| BarGroup { labels: [name.to_owned(), "2^20".to_owned()], heights, note: "1.50x".to_owned() };
        let chart = BarChart {
            caption: "a GPU".to_owned(),
            y: "GB/s".to_owned(),
            series: vec!["ours".to_owned(), "theirs".to_owned()],
            groups: vec![group("add", vec![Some(300.0), Some(100.0)]), group("copy", vec![Some(200.0), None])],
        };
        let svg = chart.svg();
        let heights: Vec<f64> =
            svg.lines().filter(|line| line.starts_with("<rect") && !line.contains("fill=\"#FFFFFF\"")).map(height).collect();
        // The last two belong to the legend.
        assert!((heights[0] / heights[1] - 1.5).abs() < 0.02 && (heights[0] / heights[2] - 3.0).abs() < 0.05, "{heights:?}");
        assert_eq!(heights.len(), 5, "{svg}");
        assert!(["ours", "theirs", "GB/s", "1.50x", "add", "2^20", "a GPU"].iter().all(|text| svg.contains(text)));
        assert_eq!(svg, chart.svg());
    }

    #[test]
    fn what_is_no_number_is_a_gap() {
        let chart = |heights: [Option<f64>; 3]| {
            let group = |height| BarGroup { labels: [const { String::new() }; 2], heights: vec![height], note: String::new() };
            let groups = heights.map(group).to_vec();
            BarChart { caption: String::new(), y: String::new(), series: vec!["ours".to_owned()], groups }.svg()
        };
        assert_eq!(chart([Some(2.0), Some(f64::INFINITY), Some(f64::NAN)]), chart([Some(2.0), None, None]));
        // Without bars the axis still has a positive length.
        for empty in [chart([None, None, None]), chart([Some(0.0), None, None]), chart([Some(f64::INFINITY), None, None])] {
            assert!(empty.starts_with("<svg") && !empty.contains("NaN") && !empty.contains("inf"), "{empty}");
        }
    }

    fn height(line: &str) -> f64 {
        line.split_once(" height=\"").and_then(|(_, rest)| rest.split('"').next()).and_then(|text| text.parse().ok()).unwrap()
    }
}
