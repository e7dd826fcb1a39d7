//! Draws the figures of an experiment for print: SVG and PNG.
//!
//! Decides: series differ by mark and by dashes, not by colour alone, so that they can be distinguished in grey. A
//! bar shows the minimum and maximum of a point's values.
//! Why a font of our own: text in a PNG would otherwise need a system library to find a font (fontconfig, FreeType).
//! DejaVu Sans, reduced to ASCII, has 10 kB and may be redistributed (`font/LICENSE`). SVGs leave the font to the
//! viewer.
//! Invariant: an incompletely written file is not left behind.
//! Limits: the number of marks bounds the number of distinguishable series.

use std::path::Path;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use super::axis::{Axis, last, power, powers_of_ten, shards_ticks, ticks, told};
use super::figures::{Figure, Points, Series};

/// Writes a figure into `folder`, as SVG and as PNG.
///
/// # Errors
/// What could not be written, in words.
pub fn draw(figure: &Figure, folder: &Path) -> Result<(), String> {
    static FONT: Once = Once::new();
    // If it cannot be read, figures have no text, and drawing reports that.
    FONT.call_once(|| drop(register_font("sans-serif", FontStyle::Normal, FONT_BYTES)));
    let path = |ending: &str| folder.join(format!("{}.{ending}", figure.name));
    whole(&path("svg"), |path| draw_on(&SVGBackend::new(path, SIZE).into_drawing_area(), figure, 1))?;
    let size = (SIZE.0 * PNG_SCALE, SIZE.1 * PNG_SCALE);
    whole(&path("png"), |path| draw_on(&BitMapBackend::new(path, size).into_drawing_area(), figure, PNG_SCALE))
}

/// Draws a file completely, or leaves none.
fn whole(path: &Path, draw: impl FnOnce(&Path) -> Result<(), String>) -> Result<(), String> {
    draw(path).map_err(|error| {
        let _ = std::fs::remove_file(path);
        format!("{}: the figure is not drawn: {error}", path.display())
    })
}

fn draw_on<'a, DB: DrawingBackend + 'a>(
    root: &'a DrawingArea<DB, Shift>,
    figure: &Figure,
    scale: u32,
) -> Result<(), String> {
    let words = |error: DrawingAreaErrorKind<DB::ErrorType>| error.to_string();
    let x_of = |x: f64| if figure.is_of_shards { x.max(1.0).log2() } else { x };
    let y_of = |y: f64| if figure.is_of_orders { y.log10() } else { y };
    let is_there = |point: &&(f64, [f64; 3])| !figure.is_of_orders || point.1[1] > 0.0;
    let points = || figure.series.iter().flat_map(|series| &series.points).filter(is_there);
    let ys = || points().map(|point| y_of(point.1[2]));
    let xs = points().map(|point| x_of(point.0));
    let x_ticks = if figure.is_of_shards { shards_ticks(points().map(|point| point.0)) } else { ticks(xs) };
    let (y_ticks, y_range) = match figure.is_of_orders {
        true => powers_of_ten(points().map(|point| y_of(point.1[1])).chain(ys())),
        false => {
            let ticks = ticks(ys());
            let last = last(&ticks);
            (ticks, 0.0..last * 1.04)
        }
    };
    let (x_last, y_first, y_height) = (last(&x_ticks), y_range.start, y_range.end - y_range.start);
    let pad = x_last * 0.03;
    root.fill(&WHITE).map_err(words)?;
    let size = |points: u32| ("sans-serif", f64::from(points * scale));
    let mut chart = ChartBuilder::on(root)
        .caption(&figure.title, size(17))
        .margin(12 * scale)
        .x_label_area_size(44 * scale)
        .y_label_area_size(64 * scale)
        .build_cartesian_2d(Axis { range: -pad..x_last + pad, ticks: x_ticks }, Axis { range: y_range, ticks: y_ticks })
        .map_err(words)?;
    chart
        .configure_mesh()
        .x_desc(&figure.axes[0])
        .y_desc(&figure.axes[1])
        .axis_desc_style(size(15))
        .label_style(size(13))
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225).stroke_width(scale))
        .x_label_formatter(&|x| if figure.is_of_shards { told(x.exp2().round()) } else { told(*x) })
        .y_label_formatter(&|y| if figure.is_of_orders { power(*y) } else { told(*y) })
        .draw()
        .map_err(words)?;
    let mark_size = (4 * scale) as i32;
    for (index, series) in figure.series.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let line = colour.stroke_width(2 * scale);
        let (dash, gap) = DASHES[index % DASHES.len()];
        let (dash, gap) = (dash * scale, gap * scale);
        let at: Points = series.points.iter().filter(is_there).map(|(x, [y, ..])| (x_of(*x), y_of(*y))).collect();
        let drawn = match gap {
            0 => chart.draw_series(LineSeries::new(at.clone(), line)),
            _ => chart.draw_series(DashedLineSeries::new(at.clone(), dash, gap, line)),
        };
        drawn.map_err(words)?.label(&series.name).legend(move |(x, y)| {
            let ends = [(x, y), (x + (30 * scale) as i32, y)];
            EmptyElement::at((0, 0))
                + PathElement::new(ends, colour.stroke_width(2 * scale))
                + Polygon::new(outline((x + (15 * scale) as i32, y), index, mark_size), filling(index, colour))
                + PathElement::new(
                    outline((x + (15 * scale) as i32, y), index, mark_size),
                    colour.stroke_width(2 * scale),
                )
        });
        let bars = series.points.iter().filter(is_there).filter(|(_, [_, least, greatest])| least < greatest);
        chart
            .draw_series(bars.map(|(x, [_, least, greatest])| {
                PathElement::new([(x_of(*x), y_of(*least)), (x_of(*x), y_of(*greatest))], colour.stroke_width(scale))
            }))
            .map_err(words)?;
        chart
            .draw_series(at.iter().map(|at| {
                EmptyElement::at(*at)
                    + Polygon::new(outline((0, 0), index, mark_size), filling(index, colour))
                    + PathElement::new(outline((0, 0), index, mark_size), colour.stroke_width(2 * scale))
            }))
            .map_err(words)?;
    }
    chart
        .configure_series_labels()
        .position(free_corner(&figure.series, |x| x_of(x) / x_last, |y| (y_of(y) - y_first) / y_height))
        .legend_area_size(38 * scale)
        .margin(8 * scale)
        .label_font(size(13))
        .background_style(WHITE.mix(0.85))
        .border_style(RGBColor(160, 160, 160))
        .draw()
        .map_err(words)?;
    root.present().map_err(words)
}

/// The corner with the fewest points, for the legend: `x` and `y` map values to shares of their axes.
fn free_corner(series: &[Series], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> SeriesLabelPosition {
    let mut places = Vec::new();
    for series in series {
        let at = series.points.iter().map(|point| (x(point.0), y(point.1[0])));
        let at: Points = at.collect();
        places.extend(at.first());
        for pair in at.windows(2) {
            let between = |step: u32| {
                let share = f64::from(step) / 20.0;
                (pair[0].0 + (pair[1].0 - pair[0].0) * share, pair[0].1 + (pair[1].1 - pair[0].1) * share)
            };
            places.extend((1..=20).map(between));
        }
    }
    let corners = [
        (SeriesLabelPosition::LowerRight, true, false),
        (SeriesLabelPosition::UpperRight, true, true),
        (SeriesLabelPosition::UpperLeft, false, true),
        (SeriesLabelPosition::LowerLeft, false, false),
    ];
    let is_near = |share: f64, is_high: bool| if is_high { share > 0.7 } else { share < 0.3 };
    let crowd =
        |right: bool, high: bool| places.iter().filter(|at| is_near(at.0, right) && is_near(at.1, high)).count();
    let best = corners.into_iter().min_by_key(|(_, right, high)| crowd(*right, *high));
    best.map_or(SeriesLabelPosition::LowerRight, |(corner, ..)| corner)
}

/// The outline of a series' mark around `at`: a circle, a square or a triangle, closed.
fn outline(at: (i32, i32), index: usize, size: i32) -> Vec<(i32, i32)> {
    let corners = match index % 3 {
        0 => {
            let of = |turn: u32| (f64::from(turn) / 16.0 * std::f64::consts::TAU).sin_cos();
            (0..=16).map(of).map(|(y, x)| (x * f64::from(size), y * f64::from(size))).collect()
        }
        1 => vec![(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0)],
        _ => vec![(0.0, -1.2), (1.2, 1.0), (-1.2, 1.0), (0.0, -1.2)],
    };
    let times = if index.is_multiple_of(3) { 1.0 } else { f64::from(size) };
    corners.iter().map(|(x, y)| (at.0 + (x * times).round() as i32, at.1 + (y * times).round() as i32)).collect()
}

/// The fill of the mark: its colour or none.
fn filling(index: usize, colour: RGBColor) -> ShapeStyle {
    if index % 6 < 3 { colour.filled() } else { WHITE.filled() }
}

const FONT_BYTES: &[u8] = include_bytes!("font/DejaVuSans-ascii.ttf");
const SIZE: (u32, u32) = (720, 480);
/// Factor by which a PNG has more pixels in each direction.
const PNG_SCALE: u32 = 2;
/// From dark to light, so that they differ in grey.
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 0, 0),
    RGBColor(31, 78, 150),
    RGBColor(178, 60, 40),
    RGBColor(110, 90, 170),
    RGBColor(60, 150, 90),
    RGBColor(200, 140, 40),
];
/// Pixels of line and gap; without a gap the line is solid.
const DASHES: [(u32, u32); 4] = [(1, 0), (10, 5), (3, 4), (16, 3)];
