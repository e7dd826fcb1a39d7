//! The content of an experiment's figures: which column is drawn against which.
//!
//! Decides: one figure for each combination of the other axes. A point is the mean over the rng seeds, with minimum
//! and maximum.
//! Leaves to others: how they look (`super::drawing`).

use std::collections::BTreeMap;

use super::ExperimentRow;
use super::measures::SHARES;

/// A figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Its file name, without `.svg` and `.png`.
    pub name: String,
    /// The title above it.
    pub title: String,
    /// The labels of the x and y axes.
    pub axes: [String; 2],
    /// Whether x is a number of shards, drawn as its logarithm.
    pub is_of_shards: bool,
    /// Whether y is drawn as its logarithm, because the lines are orders of magnitude apart; points at 0 are left
    /// out.
    pub is_of_orders: bool,
    /// The lines.
    pub series: Vec<Series>,
}

/// A line of a figure.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// x, then mean, minimum and maximum of y.
    pub points: Vec<(f64, [f64; 3])>,
}

/// x and y of each point of a line.
pub(super) type Points = Vec<(f64, f64)>;
/// Rows, each with its points.
type Drawn<'a> = Vec<(&'a ExperimentRow, Points)>;
/// Points at one position of a series: by K, by the limit of pages, and by their position in their row.
type Places = BTreeMap<(u64, u64, usize), Points>;
/// Another axis of the experiment, by its word in a row.
type Word = fn(&ExperimentRow) -> String;
const PARTITION: Word = |row| row.partition.clone();
const MODE: Word = |row| row.mode.clone();
const ORDER: Word = |row| row.order.clone();
const SHARDS: Word = |row| format!("K = {}", row.shards);
const LIMIT: Word = |row| if row.limit == 0 { String::new() } else { format!("{} pages", row.limit) };
const SEEDS: Word = |row| row.seeds.map_or(String::new(), |seeds| format!("{seeds} seeds"));

/// All figures that these rows have points for.
pub fn figures(rows: &[ExperimentRow]) -> Vec<Figure> {
    let last = rows.iter().map(|row| row.seconds).fold(0.0, f64::max);
    let (unit, divisor) = match last {
        0.0..300.0 => ("s", 1.0),
        300.0..18_000.0 => ("min", 60.0),
        _ => ("h", 3_600.0),
    };
    let all = |_: &ExperimentRow| true;
    let has_sent = |row: &ExperimentRow| row.mode == "exchange" && row.urls_sent_per_page.is_some();
    let overlaps = |row: &ExperimentRow| ["cross-over", "independent"].contains(&row.mode.as_str());
    let shards_max = rows.iter().map(|row| row.shards).max().unwrap_or_default();
    let (coverage, shards) = ("coverage I/U".to_owned(), "shards K".to_owned());
    let mut figures = Vec::new();
    let mut add = |name: &str, title: &str, axes: [&str; 2], by: Word, of: [Word; 4], rows: Drawn<'_>| {
        figures.extend(split(name, title, axes, by, of, &rows));
    };
    let points = |keeps: &dyn Fn(&ExperimentRow) -> bool, y: &dyn Fn(&ExperimentRow) -> f64| -> Drawn<'_> {
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
fn split(
    name: &str,
    title: &str,
    axes: [&str; 2],
    by: Word,
    of: [Word; 4],
    rows: &[(&ExperimentRow, Points)],
) -> Vec<Figure> {
    let words_of = |row: &ExperimentRow| of.map(|word| word(row));
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
        // Numbers common to all figures are left out.
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

/// The figure whose lines may be far apart.
const EXCHANGE: &str = "exchange";
/// Ratio above which some lines would lie on the axis.
const MAGNITUDES_APART: f64 = 50.0;

#[cfg(test)]
mod tests {
    use super::super::draw;
    use super::*;
    use ringcrawl_base::TempFolder;

    fn row(mode: &str, shards: u64, rng_seed: u64, coverage: f64) -> ExperimentRow {
        let [partition, order] = ["site-hash", "breadth-first"].map(str::to_owned);
        ExperimentRow {
            partition,
            mode: mode.to_owned(),
            order,
            shards,
            rng_seed,
            coverage,
            seconds: 90.0,
            ..ExperimentRow::default()
        }
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
        // Balance and communication have a figure for each mode, if there are several.
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
        let folder = TempFolder::new("figures");
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
    fn limits_of_pages_are_points_of_a_line_for_each_number_of_shards() {
        let row = |shards: u64, limit: u64| ExperimentRow {
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
            ExperimentRow { partition, mode, order, seeds, shards, urls_sent_per_page, ..ExperimentRow::default() }
        };
        let mut rows = vec![row("a", 1, 0.0), row("a", 4, 0.02), row("b", 1, 0.0), row("b", 4, 0.03)];
        let exchange =
            |rows: &[ExperimentRow]| figures(rows).into_iter().find(|figure| figure.name == "exchange").expect("one");
        assert!(!exchange(&rows).is_of_orders);
        rows[3].urls_sent_per_page = Some(7.0);
        assert!(exchange(&rows).is_of_orders);
        let folder = TempFolder::new("logarithms");
        draw(&exchange(&rows), folder.path()).expect("drawn");
        let svg = std::fs::read_to_string(folder.path().join("exchange.svg")).expect("a file");
        assert!(svg.contains("0.01") && svg.contains("10\n"), "{svg}");
        // Two numbers of seeds: a figure for each, and a line for each in the figure of rates.
        rows.push(ExperimentRow { seeds: Some(20), ..rows[3].clone() });
        let names: Vec<String> = figures(&rows).into_iter().map(|figure| figure.name).collect();
        assert!(names.contains(&"exchange-10-seeds".to_owned()) && names.contains(&"exchange-20-seeds".to_owned()));
        assert!(names.contains(&"coverage-seeds-a".to_owned()) && !names.contains(&"overlap-pages".to_owned()));
        let rate = figures(&rows).into_iter().find(|figure| figure.name == "rate-b").expect("a figure");
        let lines: Vec<&str> = rate.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(lines, ["10 seeds", "20 seeds"]);
    }
}
