//! Figures of an experiment, as a paper could print them: SVG and PNG.
//!
//! Decides: which column is drawn against which ([`figures`]), one figure for each combination of the other axes. A point is the mean over
//! the rng seeds; a bar shows the least and the greatest. Series differ by mark and by dashes, not by colour alone, so that they can be told
//! apart in grey.
//! Why a font of our own: the PNGs' letters would otherwise need a library of the system to find one (fontconfig, FreeType). DejaVu Sans, cut
//! down to ASCII, has 10 kB and may be passed on (`font/LICENSE`). SVGs leave the font to whoever shows them.
//! Limits: as many series as there are marks are told apart.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, ValueFormatter};
use plotters::prelude::*;
use plotters::style::{FontStyle, register_font};

use super::Row;
use super::measures::SHARES;

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its files' name, without `.svg` and `.png`.
    pub name: String,
    /// Above it.
    pub title: String,
    /// What stands below, and what at the side.
    pub axes: [String; 2],
    /// Whether x is a number of shards, drawn as its logarithm.
    pub is_of_shards: bool,
    /// Whether y is drawn as its logarithm, as the lines lie orders of magnitude apart; points at 0 are left out.
    pub is_of_orders: bool,
    /// The lines.
    pub series: Vec<Series>,
}

/// A line of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// What the legend says.
    pub name: String,
    /// x, mean of y, least and greatest y.
    pub points: Vec<(f64, [f64; 3])>,
}

/// Rows, each with its points.
type Drawn<'a> = Vec<(&'a Row, Points)>;
type Points = Vec<(f64, f64)>;
/// Points of one place in a series: by K, by the limit of pages, and by their place in their row.
type Places = BTreeMap<(u64, u64, usize), Points>;
/// Another axis of the experiment, by its word in a row.
type Word = fn(&Row) -> String;
const PARTITION: Word = |row| row.partition.clone();
const MODE: Word = |row| row.mode.clone();
const ORDER: Word = |row| row.order.clone();
const SHARDS: Word = |row| format!("K = {}", row.shards);
const LIMIT: Word = |row| if row.limit == 0 { String::new() } else { format!("{} pages", row.limit) };
const SEEDS: Word = |row| row.seeds.map_or(String::new(), |seeds| format!("{seeds} seeds"));

/// All figures that these rows have points for.
pub fn figures(rows: &[Row]) -> Vec<Figure> {
    let last = rows.iter().map(|row| row.seconds).fold(0.0, f64::max);
    let (unit, divisor) = match last {
        0.0..300.0 => ("s", 1.0),
        300.0..18_000.0 => ("min", 60.0),
        _ => ("h", 3_600.0),
    };
    let all = |_: &Row| true;
    let has_sent = |row: &Row| row.mode == "exchange" && row.urls_sent_per_page.is_some();
    let overlaps = |row: &Row| ["cross-over", "independent"].contains(&row.mode.as_str());
    let shards_max = rows.iter().map(|row| row.shards).max().unwrap_or_default();
    let (coverage, shards) = ("coverage I/U".to_owned(), "shards K".to_owned());
    let mut figures = Vec::new();
    let mut add = |name: &str, title: &str, axes: [&str; 2], by: Word, of: [Word; 4], rows: Drawn<'_>| {
        figures.extend(split(name, title, axes, by, of, &rows));
    };
    let points = |keeps: &dyn Fn(&Row) -> bool, y: &dyn Fn(&Row) -> f64| -> Drawn<'_> {
        rows.iter().filter(|row| keeps(row)).map(|row| (row, vec![(row.shards as f64, y(row))])).collect()
    };
    add(
        "coverage",
        "Coverage by mode",
        [&shards, &coverage],
        MODE,
        [PARTITION, ORDER, SEEDS, LIMIT],
        points(&all, &|row| row.coverage),
    );
    let against: Drawn<'_> =
        rows.iter().filter(|row| overlaps(row)).map(|row| (row, vec![(row.overlap, row.coverage)])).collect();
    add(
        "overlap",
        "Coverage against overlap, a point for each K",
        ["overlap (N-I)/I", &coverage],
        MODE,
        [PARTITION, ORDER, SEEDS, LIMIT],
        against,
    );
    let has_many = |of: Word| rows.iter().any(|row| of(row) != of(&rows[0]));
    if has_many(SEEDS) {
        let title = "Coverage by number of seeds";
        let of = [PARTITION, MODE, ORDER, LIMIT];
        add("coverage-seeds", title, [&shards, &coverage], SEEDS, of, points(&all, &|row| row.coverage));
    }
    if has_many(LIMIT) {
        let against: Drawn<'_> =
            rows.iter().filter(|row| overlaps(row)).map(|row| (row, vec![(row.overlap, row.coverage)])).collect();
        let title = "Coverage against overlap by limit of pages";
        let axes = ["overlap (N-I)/I", &*coverage];
        add("overlap-pages", title, axes, SHARDS, [PARTITION, MODE, ORDER, SEEDS], against);
    }
    add(
        EXCHANGE,
        "Communication by partition",
        [&shards, "URLs sent per page fetched"],
        PARTITION,
        [MODE, ORDER, SEEDS, LIMIT],
        points(&has_sent, &|row| row.urls_sent_per_page.unwrap_or_default()),
    );
    let quality: Drawn<'_> = rows
        .iter()
        .filter(|row| row.shards == shards_max)
        .map(|row| (row, SHARES.iter().zip(row.quality).map(|(share, quality)| (*share as f64, quality)).collect()))
        .collect();
    let title = format!("Quality by order, K = {shards_max}");
    add(
        "quality",
        &title,
        ["share of U fetched, %", "quality |A and P|/|P|"],
        ORDER,
        [PARTITION, MODE, SEEDS, LIMIT],
        quality,
    );
    add(
        "balance",
        "Balance by partition",
        [&shards, "pages of the fullest shard / average"],
        PARTITION,
        [MODE, ORDER, SEEDS, LIMIT],
        points(&all, &|row| row.balance_pages),
    );
    let time = format!("simulated time to the end, {unit}");
    let of_time = points(&all, &|row| row.seconds / divisor);
    add("time", "Time by mode", [&shards, &time], MODE, [PARTITION, ORDER, SEEDS, LIMIT], of_time);
    let rate = points(&|row| row.seeds.is_some(), &|row| row.pages_per_second_shard);
    let axes = [&*shards, "simulated pages a second, a shard"];
    add("rate", "Rate by number of seeds", axes, SEEDS, [PARTITION, MODE, ORDER, LIMIT], rate);
    figures
}

/// A figure for each combination of words that `of` finds in the rows, with a line for each word of `by`.
fn split(name: &str, title: &str, axes: [&str; 2], by: Word, of: [Word; 4], rows: &[(&Row, Points)]) -> Vec<Figure> {
    let words_of = |row: &Row| of.map(|word| word(row));
    let mut all = Vec::new();
    for (row, _) in rows {
        if !all.contains(&words_of(row)) {
            all.push(words_of(row));
        }
    }
    let has_many = |which: usize| all.iter().any(|one| one[which] != all[0][which]);
    let told = [0, 1, 2, 3].map(has_many);
    let figure = |words: &[String; 4]| {
        let mut series: Vec<Series> = Vec::new();
        let own = rows.iter().filter(|(row, _)| words_of(row) == *words);
        let mut groups: Vec<(String, Places)> = Vec::new();
        for (row, points) in own {
            let word = by(row);
            let place = groups.iter().position(|(name, _)| *name == word).unwrap_or(groups.len());
            if place == groups.len() {
                groups.push((word, BTreeMap::new()));
            }
            for (index, point) in points.iter().enumerate() {
                groups[place].1.entry((row.shards, row.limit, index)).or_default().push(*point);
            }
        }
        for (name, groups) in groups {
            let mean = |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / count as f64;
            let points = groups.into_values().map(|group| {
                let ys = || group.iter().map(|point| point.1);
                let x = mean(&mut group.iter().map(|point| point.0), group.len());
                let (least, greatest) = (ys().fold(f64::INFINITY, f64::min), ys().fold(f64::NEG_INFINITY, f64::max));
                (x, [mean(&mut ys(), group.len()), least, greatest])
            });
            series.push(Series { name, points: points.collect() });
        }
        let named = words.iter().zip(told).filter(|(_, told)| *told);
        let suffix: String = named.map(|(word, _)| format!("-{}", word.replace(' ', "-"))).collect();
        // Numbers that all figures have in common are no news.
        let is_word = |word: &str| !word.contains(' ') && !word.is_empty();
        let shown = words.iter().zip(told).filter(|(word, told)| is_word(word) || *told && !word.is_empty());
        let shown: Vec<&str> = shown.map(|(word, _)| word.as_str()).collect();
        let ys = || series.iter().flat_map(|series| &series.points).map(|point| point.1[0]).filter(|y| *y > 0.0);
        let (least, most) = (ys().fold(f64::INFINITY, f64::min), ys().fold(0.0, f64::max));
        Figure {
            name: format!("{name}{suffix}"),
            title: format!("{title} ({})", shown.join(", ")),
            axes: axes.map(str::to_owned),
            is_of_shards: axes[0].starts_with("shards"),
            is_of_orders: name == EXCHANGE && least * MAGNITUDES_APART < most,
            series,
        }
    };
    all.iter().map(figure).collect()
}

/// Writes a figure into `folder`, as SVG and as PNG.
///
/// # Errors
/// What could not be written, in words.
pub fn draw(figure: &Figure, folder: &Path) -> Result<(), String> {
    static FONT: Once = Once::new();
    // One that is not read leaves figures without letters, which the drawing tells.
    FONT.call_once(|| drop(register_font("sans-serif", FontStyle::Normal, FONT_BYTES)));
    let path = |ending: &str| folder.join(format!("{}.{ending}", figure.name));
    let [svg, png] = ["svg", "png"].map(path);
    let named = |path: &Path, error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let root = SVGBackend::new(&svg, SIZE).into_drawing_area();
    draw_on(&root, figure, 1).map_err(|error| named(&svg, &error))?;
    let root = BitMapBackend::new(&png, (SIZE.0 * PNG_SCALE, SIZE.1 * PNG_SCALE)).into_drawing_area();
    draw_on(&root, figure, PNG_SCALE).map_err(|error| named(&png, &error))
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
        .build_cartesian_2d(
            Scale { range: -pad..x_last + pad, ticks: x_ticks },
            Scale { range: y_range, ticks: y_ticks },
        )
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

/// The corner with the least of the lines, for the legend: `x` and `y` become shares of their axes.
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

/// The outline of a series' mark round `at`: a circle, a square or a triangle, closed.
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

/// What fills it: its colour or nothing.
fn filling(index: usize, colour: RGBColor) -> ShapeStyle {
    if index % 6 < 3 { colour.filled() } else { WHITE.filled() }
}

/// An axis with marks of our choice.
struct Scale {
    range: Range<f64>,
    ticks: Vec<f64>,
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let share = (value - self.range.start) / (self.range.end - self.range.start);
        limit.0 + (f64::from(limit.1 - limit.0) * share).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() { Vec::new() } else { self.ticks.clone() }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(value: &f64) -> String {
        told(*value)
    }
}

/// Round numbers from 0 until all of `values` are passed.
fn ticks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let most = values.filter(|value| value.is_finite()).fold(0.0, f64::max).max(1e-6);
    let magnitude = 10f64.powf((most / 5.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0].map(|step| step * magnitude);
    let step = steps.into_iter().find(|step| most / step <= 6.0).unwrap_or(magnitude * 10.0);
    (0..=(most / step - 1e-9).ceil() as u32).map(|count| f64::from(count) * step).collect()
}

/// The powers of ten round these logarithms, as logarithms, and from where to where they go.
fn powers_of_ten(logarithms: impl Iterator<Item = f64>) -> (Vec<f64>, Range<f64>) {
    let (least, most) =
        logarithms.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), it| (least.min(it), most.max(it)));
    let (first, last) = (least.max(-12.0).floor(), most.min(12.0).ceil());
    let last = if last > first { last } else { first + 1.0 };
    let ticks = (0..=(last - first) as u32).map(|power| first + f64::from(power)).collect();
    (ticks, first..last + 0.1)
}

/// A power of ten by its logarithm.
fn power(logarithm: f64) -> String {
    let number = 10f64.powf(logarithm);
    let digits = if logarithm < 0.0 { (-logarithm).ceil() as usize } else { 0 };
    format!("{number:.digits$}")
}

/// The numbers of shards that there are, as logarithms.
fn shards_ticks(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut all: Vec<f64> = values.map(|value| value.max(1.0).log2()).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

fn last(ticks: &[f64]) -> f64 {
    ticks.last().copied().filter(|last| *last > 0.0).unwrap_or(1.0)
}

/// A number without digits that say nothing.
fn told(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The figure whose lines may lie far apart.
const EXCHANGE: &str = "exchange";
/// So far that some would lie on the axis.
const MAGNITUDES_APART: f64 = 50.0;
const FONT_BYTES: &[u8] = include_bytes!("font/DejaVuSans-ascii.ttf");
const SIZE: (u32, u32) = (720, 480);
/// A PNG has so many times as many pixels each way.
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
/// Pixels of line and gap; without a gap it is whole.
const DASHES: [(u32, u32); 4] = [(1, 0), (10, 5), (3, 4), (16, 3)];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::TempFolder;

    fn row(mode: &str, shards: u64, rng_seed: u64, coverage: f64) -> Row {
        let [partition, order] = ["site-hash", "breadth-first"].map(str::to_owned);
        Row { partition, mode: mode.to_owned(), order, shards, rng_seed, coverage, seconds: 90.0, ..Row::default() }
    }

    #[test]
    fn figures_are_means_by_series_and_become_files() {
        let mut rows = vec![
            row("exchange", 1, 1, 1.0),
            row("exchange", 4, 1, 1.0),
            row("firewall", 1, 1, 1.0),
            row("firewall", 4, 1, 0.25),
            row("firewall", 4, 2, 0.75),
            row("independent", 4, 1, 1.0),
        ];
        rows[5].overlap = 2.5;
        let all = figures(&rows);
        let names: Vec<&str> = all.iter().map(|figure| figure.name.as_str()).collect();
        // Balance and communication have a figure for each mode, where there are several.
        let expected = [
            "coverage",
            "overlap",
            "quality-exchange",
            "quality-firewall",
            "quality-independent",
            "balance-exchange",
            "balance-firewall",
            "balance-independent",
            "time",
        ];
        assert_eq!(names, expected);
        let firewall = &all[0].series[1];
        assert_eq!(firewall.name, "firewall");
        assert_eq!(firewall.points, [(1.0, [1.0, 1.0, 1.0]), (4.0, [0.5, 0.25, 0.75])]);
        let folder = TempFolder::new("plots");
        for figure in &all {
            draw(figure, folder.path()).expect("drawn");
        }
        let svg = std::fs::read_to_string(folder.path().join("coverage.svg")).expect("a file");
        for word in ["firewall", "shards K", "coverage I/U", "Coverage by mode (site-hash, breadth-first)"] {
            assert!(svg.contains(word), "{word}: {svg}");
        }
        let png = std::fs::read(folder.path().join("time.png")).expect("a file");
        assert!(png.starts_with(b"\x89PNG") && png.len() > 5_000, "{} bytes", png.len());
        assert!(draw(&all[0], &folder.path().join("none")).is_err());
    }

    #[test]
    fn ticks_are_round_and_pass_all() {
        assert_eq!(ticks([0.93].into_iter()), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks([37.0].into_iter()), [0.0, 10.0, 20.0, 30.0, 40.0]);
        assert_eq!(ticks([0.0].into_iter()).len(), ticks([1e-6].into_iter()).len());
        assert_eq!([0.6000000000000001, 2.5, 8.0].map(told), ["0.6", "2.5", "8"]);
        assert_eq!(powers_of_ten([-1.5, 0.3].into_iter()), (vec![-2.0, -1.0, 0.0, 1.0], -2.0..1.1));
        assert_eq!(powers_of_ten([2.0].into_iter()).0, [2.0, 3.0]);
        assert_eq!([-3.0, -1.0, 0.0, 2.0].map(power), ["0.001", "0.1", "1", "100"]);
    }

    #[test]
    fn limits_of_pages_are_points_of_a_line_for_each_number_of_shards() {
        let row = |shards: u64, limit: u64| Row {
            limit,
            overlap: limit as f64 / 1_000.0,
            coverage: limit as f64 / 2_000.0,
            ..row("independent", shards, 1, 0.0)
        };
        let rows = [row(2, 500), row(2, 1_000), row(4, 500), row(4, 1_000)];
        let figure = figures(&rows).into_iter().find(|figure| figure.name == "overlap-pages").expect("a figure");
        let lines: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(lines, ["K = 2", "K = 4"]);
        assert_eq!(figure.series[1].points, [(0.5, [0.25; 3]), (1.0, [0.5; 3])]);
        let names: Vec<String> = figures(&rows).into_iter().map(|figure| figure.name).collect();
        assert!(names.contains(&"coverage-500-pages".to_owned()), "{names:?}");
    }

    #[test]
    fn lines_that_lie_far_apart_are_drawn_as_logarithms() {
        let row = |partition: &str, shards: u64, sent: f64| {
            let [mode, order] = ["exchange", "breadth-first"].map(str::to_owned);
            let (partition, urls_sent_per_page, seeds) = (partition.to_owned(), Some(sent), Some(10));
            Row { partition, mode, order, seeds, shards, urls_sent_per_page, ..Row::default() }
        };
        let mut rows = vec![row("a", 1, 0.0), row("a", 4, 0.02), row("b", 1, 0.0), row("b", 4, 0.03)];
        let exchange = |rows: &[Row]| figures(rows).into_iter().find(|figure| figure.name == "exchange").expect("one");
        assert!(!exchange(&rows).is_of_orders);
        rows[3].urls_sent_per_page = Some(7.0);
        assert!(exchange(&rows).is_of_orders);
        let folder = TempFolder::new("logarithms");
        draw(&exchange(&rows), folder.path()).expect("drawn");
        let svg = std::fs::read_to_string(folder.path().join("exchange.svg")).expect("a file");
        assert!(svg.contains("0.01") && svg.contains("10\n"), "{svg}");
        // Two numbers of seeds: a figure for each, and a line for each in that of rates.
        rows.push(Row { seeds: Some(20), ..rows[3].clone() });
        let names: Vec<String> = figures(&rows).into_iter().map(|figure| figure.name).collect();
        assert!(names.contains(&"exchange-10-seeds".to_owned()) && names.contains(&"exchange-20-seeds".to_owned()));
        assert!(names.contains(&"coverage-seeds-a".to_owned()) && !names.contains(&"overlap-pages".to_owned()));
        let rate = figures(&rows).into_iter().find(|figure| figure.name == "rate-b").expect("a figure");
        let lines: Vec<&str> = rate.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(lines, ["10 seeds", "20 seeds"]);
    }
}
