//! The crawl while it runs: a live display on a terminal, one line a minute anywhere else.
//!
//! Decides: what holds a crawl up is reported when it begins or changes, and not only with the next line. Rates are
//! over the last `WINDOW`, so that a stall shows at once and noise does not. Each column of the history above them is
//! one second. All of it goes to stderr, so that stdout stays for results. With more shards than `SHARD_LINES_MAX`,
//! each becomes one letter of a chart: a slow shard shows as a gap.
//!
//! Invariants: the display only shows the totals passed in; it reads no clock. A failing terminal never stops a
//! crawl: write errors are dropped.
//! Limits: `HISTORY_MAX` seconds of history, `SAMPLES_MAX` samples.
//! Leaves to others: when to call (`cli::crawl`; four times a second works well), the table at the end (`summary`).

mod standstill;

use std::collections::VecDeque;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use standstill::Standstill;

use super::summary::{bytes, clock, rounded};
use super::{output, terminal};
use ringcrawl_base::grouped;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::stats::Totals;

/// Time over which rates are computed.
const WINDOW: Duration = Duration::from_secs(5);
/// Time between lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(60);
/// Minimum time between two lines, whatever is reported in between.
const LINES_APART: Duration = Duration::from_secs(5);
/// A sample closer than this to the last one is dropped.
const SAMPLE_EVERY: Duration = Duration::from_millis(200);
/// Enough samples for a window and a few more.
const SAMPLES_MAX: usize = 32;
/// Seconds of the history chart: fits a terminal of 80 columns.
const HISTORY_MAX: usize = 50;
/// With at most this many shards, each has a line of its own.
const SHARD_LINES_MAX: usize = 8;
/// Levels of a chart, the lowest for zero.
const STEPS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The display of one run.
pub struct Progress {
    shards: usize,
    budget: Option<u64>,
    live: Option<Live>,
    samples: VecDeque<Sample>,
    /// Pages in each full second, the newest last.
    history: VecDeque<u64>,
    /// Second and pages when the history was last updated.
    history_mark: (u64, u64),
    next_line: Duration,
    /// When the last line was printed, and what it named as holding the crawl up, without its numbers.
    last_line: (Duration, String),
    standstill: Standstill,
}

struct Sample {
    elapsed: Duration,
    totals: Totals,
    /// Pages of each shard.
    shard_pages: Vec<u64>,
}

impl Progress {
    /// A display for `shards` shards and, when known, the number of pages after which the crawl stops.
    pub fn new(shards: usize, budget: Option<u64>, is_terminal: bool) -> Progress {
        let target = || ProgressDrawTarget::stderr_with_hz(10);
        Progress::with_live(shards, budget, is_terminal.then(|| Live::new(shards, budget, target())))
    }

    fn with_live(shards: usize, budget: Option<u64>, live: Option<Live>) -> Progress {
        let (samples, history) = (VecDeque::new(), VecDeque::new());
        Progress {
            shards: shards.max(1),
            budget,
            live,
            samples,
            history,
            history_mark: (0, 0),
            next_line: LINE_EVERY,
            last_line: Default::default(),
            standstill: Standstill::default(),
        }
    }

    /// Shows the state of the crawl `elapsed` after its start. `per_shard` is in the order of shards. The texts say
    /// what makes fetching wait, an outage or a full disk, and what went wrong last.
    pub fn tick(
        &mut self,
        totals: &Totals,
        per_shard: &[Totals],
        elapsed: Duration,
        [waiting, trouble]: [Option<String>; 2],
    ) {
        let shown = |words: Option<String>| words.map(|words| terminal::shown(&words));
        self.standstill.tell(shown(waiting), shown(trouble));
        if let Some(line) = self.step(totals, per_shard, elapsed) {
            output::line(format_args!("{line}"));
        }
    }

    /// Writes a line above the display, or to stderr when there is none.
    pub fn println(&self, line: &str) {
        match &self.live {
            Some(live) => drop(live.all.println(terminal::shown(line))),
            None => output::line(format_args!("{line}")),
        }
    }

    /// Removes the display; the summary follows.
    pub fn finish(&mut self) {
        if let Some(live) = self.live.take() {
            let _ = live.all.clear();
        }
    }

    /// Draws if there is a terminal; otherwise returns the line that is due, if any.
    fn step(&mut self, totals: &Totals, per_shard: &[Totals], elapsed: Duration) -> Option<String> {
        self.sample(totals, per_shard, elapsed);
        self.standstill.look(totals, elapsed);
        let rates = self.rates(totals, per_shard, elapsed);
        if let Some(live) = &self.live {
            live.draw(self, totals, per_shard, &rates, elapsed);
            return None;
        }
        let cause: String = self.standstill.cause(totals, elapsed).unwrap_or_default();
        let cause: String = cause.chars().filter(|char| !char.is_ascii_digit()).collect();
        let (last, told) = &self.last_line;
        let is_news = cause != *told && !cause.is_empty() && elapsed.saturating_sub(*last) >= LINES_APART;
        if elapsed < self.next_line && !is_news {
            return None;
        }
        self.last_line = (elapsed, cause);
        // The next full interval: a late tick does not print two lines for one moment.
        let interval = LINE_EVERY.as_secs();
        self.next_line = Duration::from_secs((elapsed.as_secs() / interval + 1) * interval);
        Some(self.line(totals, &rates, elapsed))
    }

    /// Stores a sample, and drops those that no rate needs.
    fn sample(&mut self, totals: &Totals, per_shard: &[Totals], elapsed: Duration) {
        let second = elapsed.as_secs();
        let (last_second, last_pages) = self.history_mark;
        if second > last_second {
            // Ticks may be seconds apart: the pages are spread evenly over them.
            let pages = totals.pages.saturating_sub(last_pages) / (second - last_second);
            for _ in last_second.max(second.saturating_sub(HISTORY_MAX as u64))..second {
                self.history.push_back(pages);
            }
            while self.history.len() > HISTORY_MAX {
                self.history.pop_front();
            }
            self.history_mark = (second, totals.pages);
        }
        let early = self.samples.back().is_some_and(|last| elapsed < last.elapsed.saturating_add(SAMPLE_EVERY));
        if early {
            return;
        }
        let shard_pages = per_shard.iter().map(|shard| shard.pages).collect();
        self.samples.push_back(Sample { elapsed, totals: totals.clone(), shard_pages });
        // The oldest sample is kept until the next one is old enough, so that the window is full.
        while self.samples.get(1).is_some_and(|second| elapsed.saturating_sub(second.elapsed) >= WINDOW)
            || self.samples.len() > SAMPLES_MAX
        {
            self.samples.pop_front();
        }
    }

    fn rates(&self, totals: &Totals, per_shard: &[Totals], elapsed: Duration) -> Rates {
        // Until two samples differ, the rate is measured from the start of the run.
        let first = self.samples.front().filter(|first| first.elapsed < elapsed);
        let seconds = elapsed.saturating_sub(first.map_or(Duration::ZERO, |first| first.elapsed)).as_secs_f64();
        let per_second = |now: u64, then: u64| {
            if seconds > 0.0 { now.saturating_sub(then) as f64 / seconds } else { 0.0 }
        };
        let then = |get: fn(&Totals) -> u64| first.map_or(0, |first| get(&first.totals));
        let shards = per_shard.iter().enumerate().map(|(index, shard)| {
            per_second(shard.pages, first.and_then(|first| first.shard_pages.get(index).copied()).unwrap_or(0))
        });
        Rates {
            pages: per_second(totals.pages, then(|totals| totals.pages)),
            bytes: per_second(totals.bytes_wire, then(|totals| totals.bytes_wire)),
            shards: shards.collect(),
        }
    }

    fn line(&self, totals: &Totals, rates: &Rates, elapsed: Duration) -> String {
        let mut parts = vec![
            clock(elapsed),
            format!("{} pages", grouped(totals.pages)),
            format!("{}/s", rounded(rates.pages)),
            format!("{}/s/core", rounded(rates.pages / self.shards as f64)),
            queue(totals),
            format!("in flight {}", grouped(totals.in_flight)),
            hosts(totals),
            errors(totals),
            format!("{}/s", bytes(rates.bytes as u64)),
        ];
        if let Some(budget) = self.budget {
            parts.push(format!("{} %", percent(totals.pages, budget)));
            parts.push(format!("ETA {}", eta(totals.pages, budget, rates.pages)));
        }
        parts.extend(self.standstill.cause(totals, elapsed));
        parts.join("  ")
    }
}

struct Rates {
    /// Pages per second.
    pages: f64,
    /// Bytes per second on the wire.
    bytes: f64,
    /// Pages per second of each shard.
    shards: Vec<f64>,
}

/// The lines on the terminal, from top to bottom.
struct Live {
    all: MultiProgress,
    head: ProgressBar,
    chart: ProgressBar,
    state: ProgressBar,
    shards: Vec<ProgressBar>,
    budget: Option<ProgressBar>,
}

impl Live {
    fn new(shards: usize, budget: Option<u64>, target: ProgressDrawTarget) -> Live {
        let all = MultiProgress::with_draw_target(target);
        let add = |template: &str| {
            let bar = ProgressBar::new(budget.unwrap_or(0));
            // A template that does not parse is a bug in this file; the crawl continues with the plain bar.
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ ").tick_chars("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏ "));
            }
            all.add(bar)
        };
        Live {
            head: add("{spinner:.cyan} {prefix:.bold}  {wide_msg}"),
            chart: add("  {prefix:.dim}  {msg:.green}"),
            state: add("  {wide_msg:.dim}"),
            shards: (0..if shards > SHARD_LINES_MAX { 1 } else { shards })
                .map(|_| add("  {prefix:.dim}  {wide_msg}"))
                .collect(),
            budget: budget.map(|_| add("  {bar:40.cyan/black} {wide_msg}")),
            all,
        }
    }

    fn draw(&self, progress: &Progress, totals: &Totals, per_shard: &[Totals], rates: &Rates, elapsed: Duration) {
        self.head.set_prefix(format!("{} pages", grouped(totals.pages)));
        self.head.set_message(format!(
            "{}/s  {}/s/core  {}/s  {}  {}",
            rounded(rates.pages),
            rounded(rates.pages / progress.shards as f64),
            bytes(rates.bytes as u64),
            errors(totals),
            clock(elapsed),
        ));
        let peak = progress.history.iter().copied().max().unwrap_or(0);
        self.chart.set_prefix("pages/s");
        let history: Vec<f64> = progress.history.iter().map(|pages| *pages as f64).collect();
        self.chart.set_message(format!("{}  peak {}", chart(&history), grouped(peak)));
        let waits_for = progress.standstill.cause(totals, elapsed).map_or(String::new(), |what| format!("  {what}"));
        self.state.set_message(format!(
            "{}  in flight {}  {}  stored {}{waits_for}",
            queue(totals),
            grouped(totals.in_flight),
            hosts(totals),
            bytes(totals.bytes_stored),
        ));
        self.draw_shards(per_shard, rates);
        if let (Some(bar), Some(pages_max)) = (&self.budget, progress.budget) {
            bar.set_position(totals.pages.min(pages_max));
            bar.set_message(format!(
                "{} % of {}  ETA {}",
                percent(totals.pages, pages_max),
                grouped(pages_max),
                eta(totals.pages, pages_max, rates.pages),
            ));
        }
        self.head.tick();
    }

    fn draw_shards(&self, per_shard: &[Totals], rates: &Rates) {
        if per_shard.len() > SHARD_LINES_MAX {
            let slowest =
                rates.shards.iter().copied().enumerate().min_by(|(_, left), (_, right)| left.total_cmp(right));
            if let (Some(line), Some((index, rate))) = (self.shards.first(), slowest) {
                line.set_prefix("shards ");
                line.set_message(format!("{}  slowest {index} with {}/s", chart(&rates.shards), rounded(rate)));
            }
            return;
        }
        let most = rates.shards.iter().copied().fold(0.0, f64::max);
        for (index, ((line, shard), rate)) in self.shards.iter().zip(per_shard).zip(&rates.shards).enumerate() {
            line.set_prefix(format!("shard {index}"));
            line.set_message(format!(
                "{}  {:>9}  queue {}  in flight {}{}",
                gauge(*rate, most),
                format!("{}/s", rounded(*rate)),
                grouped(shard.queued),
                grouped(shard.in_flight),
                if shard.idle > 0 { "  idle" } else { "" },
            ));
        }
    }
}

/// `queue 1,234 of 5,678 known`: the crawl's queued URLs, and all URLs ever found.
fn queue(totals: &Totals) -> String {
    format!("queue {} of {} known", grouped(totals.queued), grouped(totals.visited))
}

/// `hosts 3,210 (120 left)`: the hosts known, and those with URLs left.
fn hosts(totals: &Totals) -> String {
    format!("hosts {} ({} left)", grouped(totals.hosts), grouped(totals.hosts_left))
}

/// `38 errors (0.3 %)`: failures that are not our own decision, and their share of the requests.
fn errors(totals: &Totals) -> String {
    let errors = totals.errors();
    let asked = errors.saturating_add(totals.responses).max(1);
    format!("{} errors ({:.1} %)", grouped(errors), errors as f64 * 100.0 / asked as f64)
}

/// Whole percents, rounded down: 100 appears only when it is reached.
fn percent(pages: u64, budget: u64) -> u64 {
    u64::try_from(u128::from(pages.min(budget)) * 100 / u128::from(budget.max(1))).unwrap_or(100)
}

fn eta(pages: u64, budget: u64, rate: f64) -> String {
    /// A longer estimate predicts nothing.
    const ETA_SECONDS_MAX: f64 = 100.0 * 3_600.0;
    let seconds = budget.saturating_sub(pages) as f64 / rate;
    if seconds <= ETA_SECONDS_MAX { clock(Duration::from_secs_f64(seconds.ceil())) } else { "–".to_owned() }
}

/// Formats values as a line of blocks, with a full block for the highest; a value above zero is never blank.
fn chart(values: &[f64]) -> String {
    let most = values.iter().copied().fold(0.0, f64::max);
    let top = STEPS.len() - 1;
    let block = |value: &f64| {
        let step = if most > 0.0 { (value / most * top as f64).ceil() as usize } else { 0 };
        STEPS.get(step.min(top)).copied().unwrap_or(' ')
    };
    values.iter().map(block).collect()
}

/// A bar of ten blocks, filled from the left.
fn gauge(value: f64, most: f64) -> String {
    const PLACES: usize = 10;
    let full = if most > 0.0 { (value / most * PLACES as f64).round() as usize } else { 0 }.min(PLACES);
    format!("{}{}", "█".repeat(full), "░".repeat(PLACES - full))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Failure;

    fn totals(pages: u64) -> Totals {
        let mut totals = Totals {
            pages,
            responses: pages,
            bytes_wire: pages * 20_000,
            queued: 1_234_567,
            visited: 2_345_678,
            in_flight: 812,
            hosts: 3_210,
            hosts_left: 1_100,
            ..Totals::default()
        };
        if let Some(slot) = totals.failures.get_mut(Failure::DnsTimeout as usize) {
            *slot = pages / 100;
        }
        totals
    }

    fn run(progress: &mut Progress, until_millis: u64, pages_per_second: u64) -> Vec<String> {
        let step = |millis: u64| {
            let now = totals(millis * pages_per_second / 1_000);
            let half = totals(millis * pages_per_second / 2_000);
            progress.step(&now, &[half.clone(), half], Duration::from_millis(millis))
        };
        (0..=until_millis).step_by(250).filter_map(step).collect()
    }

    #[test]
    fn a_line_a_minute() {
        let mut progress = Progress::new(2, Some(400_000), false);
        let lines = run(&mut progress, 121_000, 2_000);
        let expected = [
            "01:00  120,000 pages  2,000/s  1,000/s/core  queue 1,234,567 of 2,345,678 known  in flight 812  hosts 3,210 (1,100 left)  1,200 errors (1.0 %)  \
             40.0 MB/s  30 %  ETA 02:20",
            "02:00  240,000 pages  2,000/s  1,000/s/core  queue 1,234,567 of 2,345,678 known  in flight 812  hosts 3,210 (1,100 left)  2,400 errors (1.0 %)  \
             40.0 MB/s  60 %  ETA 01:20",
        ];
        assert_eq!(lines, expected);
        let late = progress.step(&totals(244_000), &[], Duration::from_secs(240)).expect("due");
        assert!(late.starts_with("04:00  244,000 pages  16.8/s"), "{late}");
        assert!(late.ends_with("61 %  ETA 2:34:42"), "{late}");
        assert_eq!(progress.step(&totals(244_000), &[], Duration::from_secs(299)), None);
    }

    #[test]
    fn what_holds_a_crawl_up_is_told_at_once() {
        let mut progress = Progress::new(1, None, false);
        let mut said = |seconds: u64, told: Option<&str>| {
            progress.standstill.tell(told.map(str::to_owned), None);
            progress.step(&totals(7), &[], Duration::from_secs(seconds)).is_some()
        };
        let wait = |minutes: u64| format!("crawl.hours begin in {minutes} min");
        assert!(!said(6, None), "nothing is to be told");
        assert!(said(7, Some(&wait(9))) && !said(13, Some(&wait(8))), "the same, with another number");
        assert!(!said(20, None) && said(60, None) && said(65, Some(&wait(1))));
        assert!(!said(69, Some("the disk is full")) && said(70, Some("the disk is full")), "not more often");
    }

    #[test]
    fn rates_are_those_of_the_window() {
        let mut progress = Progress::new(1, None, false);
        run(&mut progress, 20_000, 100);
        for second in 21..=26 {
            progress.step(&totals(2_000), &[], Duration::from_secs(second));
        }
        let rates = progress.rates(&totals(2_000), &[], Duration::from_secs(26));
        assert_eq!(rates.pages, 0.0);
        assert!(progress.samples.len() <= SAMPLES_MAX);
        assert_eq!(progress.history.len(), 26);
        assert_eq!(progress.history.iter().sum::<u64>(), 2_000);
        progress.step(&totals(2_000), &[], Duration::from_secs(u64::MAX / 2));
        assert_eq!(progress.history.len(), HISTORY_MAX);
    }

    #[test]
    fn live_displays_take_any_number_of_shards() {
        for shards in [0, 1, 2, SHARD_LINES_MAX, SHARD_LINES_MAX + 1, 500] {
            let live = Live::new(shards, Some(10), ProgressDrawTarget::hidden());
            let mut progress = Progress::with_live(shards, Some(10), Some(live));
            let per_shard = vec![totals(1); shards];
            assert_eq!(progress.step(&totals(5), &per_shard, Duration::from_secs(9)), None);
            let live = progress.live.as_ref().expect("live");
            assert_eq!(live.head.prefix(), "5 pages");
            assert!(live.budget.as_ref().is_some_and(|bar| bar.message().starts_with("50 % of 10")));
        }
    }

    #[test]
    fn charts_and_predictions() {
        assert_eq!(chart(&[0.0, 0.1, 4.0, 8.0]), " ▁▄█");
        assert_eq!(chart(&[0.0, 0.0]), "  ");
        assert_eq!(gauge(5.0, 10.0), "█████░░░░░");
        assert_eq!(gauge(0.0, 0.0), "░░░░░░░░░░");
        assert_eq!(eta(0, 10, 0.0), "–");
        assert_eq!(eta(10, 10, 0.0), "–");
        assert_eq!(eta(5, 10, 2.0), "00:03");
        assert_eq!((percent(999, 1_000), percent(5, 0), percent(u64::MAX, u64::MAX)), (99, 0, 100));
    }
}
