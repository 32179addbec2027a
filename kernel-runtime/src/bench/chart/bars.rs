//! Bar charts: groups of horizontal bars, one group below the other, with ours first in each group.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{Area, Drawn, INK, color};

/// Groups of horizontal bars, with a bar for each series: longer is better. The chart is narrow, so that a phone shows it legibly, and
/// grows downwards.
#[derive(Clone, Debug, PartialEq)]
pub struct BarChart {
    /// The title.
    pub caption: String,
    /// The label of the horizontal axis, with the unit.
    pub axis: String,
    /// The names of the series, in the order of each group's bars.
    pub series: Vec<String>,
    /// The name of the groups' marks in the legend. Empty if there are none.
    pub mark: String,
    /// The groups, from top to bottom.
    pub groups: Vec<BarGroup>,
}

/// The bars of one measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct BarGroup {
    /// The two lines of text beside the bars.
    pub labels: [String; 2],
    /// The length of each series' bar. None and non-finite lengths are gaps.
    pub lengths: Vec<Option<f64>>,
    /// A value that all bars of the group are compared with: a line across the bars.
    pub mark: Option<f64>,
    /// The text at the end of the first bar.
    pub note: String,
}

// Sizes in pixels.
const WIDTH: i32 = 560;
/// The left ends of the bars, right of the labels.
const LEFT: i32 = 196;
/// The space right of the longest bar, for its note.
const RIGHT: i32 = 60;
const BAR: i32 = 11;
const GAP: i32 = 14;
const LINE: i32 = 20;
/// The approximate number of labels on the axis of lengths.
const TICKS: f64 = 4.0;

impl BarGroup {
    /// The length of the bar at index `slot`, if there is a bar.
    fn length(&self, slot: usize) -> Option<f64> {
        self.lengths.get(slot).copied().flatten().filter(|length| length.is_finite())
    }

    fn mark(&self) -> Option<f64> {
        self.mark.filter(|mark| mark.is_finite())
    }
}

impl BarChart {
    /// Renders the chart as an SVG file.
    pub fn svg(&self) -> String {
        super::svg((WIDTH as u32, (self.top() + self.group_height() * self.groups.len() as i32 + 3 * LINE) as u32), |area| self.draw(area))
    }

    /// The legend has an entry for each series, and one for the mark.
    fn legend(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        let series = self.series.iter().enumerate().map(|(slot, name)| (name.as_str(), Some(slot)));
        series.chain((!self.mark.is_empty()).then_some((self.mark.as_str(), None)))
    }

    /// The top of the first group, below the title and the legend, which has two entries a line.
    fn top(&self) -> i32 {
        2 * LINE + LINE * (self.legend().count() as i32 + 1) / 2 + GAP
    }

    fn group_height(&self) -> i32 {
        // Two lines of labels fit beside one bar.
        (BAR * self.series.len() as i32).max(2 * LINE - 6) + GAP
    }

    fn draw(&self, area: &Area<'_>) -> Drawn {
        let lengths =
            self.groups.iter().flat_map(|group| (0..group.lengths.len()).filter_map(|slot| group.length(slot)).chain(group.mark()));
        let longest = lengths.fold(0.0, f64::max);
        let longest = if longest > 0.0 { longest } else { 1.0 };
        let x_of = |length: f64| LEFT + (length.max(0.0) / longest * f64::from(WIDTH - LEFT - RIGHT)).round() as i32;
        let text = |pixels: i32, horizontal: HPos, vertical: VPos| {
            ("sans-serif", pixels).into_font().color(&INK).pos(Pos::new(horizontal, vertical))
        };

        area.draw(&Text::new(self.caption.clone(), (GAP, GAP), text(16, HPos::Left, VPos::Top)))?;
        for (entry, (name, slot)) in self.legend().enumerate() {
            let (x, y) = (GAP + (entry as i32 % 2) * (WIDTH / 2), 2 * LINE + LINE * (entry as i32 / 2));
            match slot {
                Some(slot) => area.draw(&Rectangle::new([(x, y), (x + 22, y + BAR)], color(slot).filled()))?,
                None => area.draw(&Rectangle::new([(x + 10, y - 1), (x + 12, y + BAR + 1)], BLACK.filled()))?,
            }
            area.draw(&Text::new(name.to_owned(), (x + 30, y + BAR / 2), text(14, HPos::Left, VPos::Center)))?;
        }

        let (top, bottom) = (self.top(), self.top() + self.group_height() * self.groups.len() as i32);
        let step = step(longest / TICKS);
        for tick in (0..).map(|n| f64::from(n) * step).take_while(|value| *value <= longest) {
            area.draw(&PathElement::new([(x_of(tick), top - GAP / 2), (x_of(tick), bottom)], RGBColor(225, 225, 225)))?;
            area.draw(&Text::new(format!("{tick}"), (x_of(tick), bottom + 6), text(13, HPos::Center, VPos::Top)))?;
        }
        area.draw(&Text::new(self.axis.clone(), (LEFT, bottom + 6 + LINE), text(13, HPos::Left, VPos::Top)))?;

        for (index, group) in self.groups.iter().enumerate() {
            let top = top + self.group_height() * index as i32;
            for (line, label) in group.labels.iter().enumerate() {
                area.draw(&Text::new(label.clone(), (LEFT - 8, top - 2 + (LINE - 3) * line as i32), text(14, HPos::Right, VPos::Top)))?;
            }
            for slot in 0..self.series.len() {
                let y = top + BAR * slot as i32;
                if let Some(length) = group.length(slot) {
                    area.draw(&Rectangle::new([(LEFT, y), (x_of(length), y + BAR - 2)], color(slot).filled()))?;
                }
            }
            if let Some(mark) = group.mark() {
                let x = x_of(mark);
                area.draw(&Rectangle::new([(x - 1, top - 2), (x + 1, top + BAR * self.series.len() as i32)], BLACK.filled()))?;
            }
            let end = group.length(0).into_iter().chain(group.mark()).fold(0.0, f64::max);
            area.draw(&Text::new(group.note.clone(), (x_of(end) + 6, top + BAR / 2), text(14, HPos::Left, VPos::Center)))?;
        }
        Ok(())
    }
}

/// The distance of labelled lengths: 1, 2 or 5 times a power of ten, at least `least`.
fn step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|step| *step >= least).unwrap_or(power)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bars(svg: &str) -> Vec<f64> {
        let is_bar = |line: &&str| line.starts_with("<rect") && [color(0), color(1)].iter().any(|color| line.contains(&hex(*color)));
        svg.lines().filter(is_bar).map(width).collect()
    }

    fn hex(RGBColor(red, green, blue): RGBColor) -> String {
        format!("#{red:02X}{green:02X}{blue:02X}")
    }

    fn width(line: &str) -> f64 {
        line.split_once(" width=\"").and_then(|(_, rest)| rest.split('"').next()).and_then(|text| text.parse().ok()).unwrap()
    }

    #[test]
    fn a_bar_is_as_long_as_its_value_and_a_gap_is_none() {
        let group = |name: &str, lengths| BarGroup {
            labels: [name.to_owned(), "2^20".to_owned()],
            lengths,
            mark: Some(150.0),
            note: "1.50x".to_owned(),
        };
        let chart = BarChart {
            caption: "a GPU".to_owned(),
            axis: "GB/s".to_owned(),
            series: vec!["ours".to_owned(), "theirs".to_owned()],
            mark: "a copy".to_owned(),
            groups: vec![group("add", vec![Some(300.0), Some(100.0)]), group("copy", vec![Some(200.0), None])],
        };
        let svg = chart.svg();
        // The first two belong to the legend.
        let lengths = bars(&svg);
        assert_eq!(lengths.len(), 5, "{svg}");
        assert!((lengths[2] / lengths[3] - 3.0).abs() < 0.05 && (lengths[2] / lengths[4] - 1.5).abs() < 0.02, "{lengths:?}");
        assert!(["ours", "theirs", "GB/s", "1.50x", "add", "2^20", "a GPU", "a copy"].iter().all(|text| svg.contains(text)));
        assert_eq!(svg, chart.svg());
    }

    #[test]
    fn values_that_are_not_finite_are_gaps() {
        let chart = |lengths: [Option<f64>; 3]| {
            let group =
                |length| BarGroup { labels: [const { String::new() }; 2], lengths: vec![length], mark: length, note: String::new() };
            let groups = lengths.map(group).to_vec();
            BarChart { caption: String::new(), axis: String::new(), series: vec!["ours".to_owned()], mark: String::new(), groups }.svg()
        };
        assert_eq!(chart([Some(2.0), Some(f64::INFINITY), Some(f64::NAN)]), chart([Some(2.0), None, None]));
        // Without bars the axis still has a positive length.
        for empty in [chart([None, None, None]), chart([Some(0.0), None, None]), chart([Some(f64::INFINITY), None, None])] {
            assert!(empty.starts_with("<svg") && !empty.contains("NaN") && !empty.contains("inf"), "{empty}");
        }
    }

    #[test]
    fn labels_of_the_axis_are_round_numbers() {
        assert_eq!([0.3, 1.0, 1200.0, 4.9, 60.0].map(step), [0.5, 1.0, 2000.0, 5.0, 100.0]);
    }
}
