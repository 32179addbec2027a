//! Charts as SVG: curves over sizes, and groups of horizontal bars. The same data gives the same bytes.
//!
//! The background is always white, so that a chart can be read on a dark page too.
//!
//! ```
//! # use kernel_runtime::bench::chart::{Curve, CurveChart, CurvePoint};
//! let point = |x: f64, y: f64| CurvePoint { x, low: 0.95 * y, y, high: 1.05 * y };
//! let svg = CurveChart {
//!     caption: "vector add".into(),
//!     x: "elements".into(),
//!     y: "GB/s".into(),
//!     log_x: true,
//!     curves: vec![Curve { name: "galatea".into(), points: vec![point(4096.0, 20.0), point(16384.0, 71.0)] }],
//! }
//! .svg();
//! assert!(svg.starts_with("<svg") && svg.contains("2^12"));
//! ```

mod bars;
mod curves;

pub use bars::{BarChart, BarGroup};
pub(super) use curves::size as curve_size;
pub use curves::{Curve, CurveChart, CurvePoint};

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::style::{RGBColor, WHITE};

/// The colour of texts and axes.
const INK: RGBColor = RGBColor(60, 60, 60);

/// The colours of the series; the first is ours. They also differ in brightness, for print.
const COLORS: [RGBColor; 7] = [
    RGBColor(38, 105, 173),
    RGBColor(238, 155, 79),
    RGBColor(150, 150, 150),
    RGBColor(109, 170, 122),
    RGBColor(178, 132, 190),
    RGBColor(160, 60, 60),
    RGBColor(70, 160, 175),
];

fn color(series: usize) -> RGBColor {
    COLORS[series % COLORS.len()]
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>>;

/// Renders an SVG of that size in pixels: a white background, then the output of `draw`.
fn svg((width, height): (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> String {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, (width, height)).into_drawing_area();
        let drawn = area.fill(&WHITE).and_then(|()| draw(&area)).and_then(|()| area.present());
        drawn.expect("writing to a string does not fail");
    }
    text
}
