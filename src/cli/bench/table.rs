//! Shows the results of a run to people.

use std::fmt::Write as _;

use super::figures::Figures;
use super::floors;
use crate::cli::summary::{Rows, bytes, rounded};
use ringcrawl_base::grouped;
use ringcrawl_base::stage::Stage;

/// The figures as tables that end in a line break.
pub fn of(figures: &Figures) -> String {
    let Figures { setting, cpu_micros_per_page: cpu, busy, .. } = figures;
    let optional = |number: Option<f64>| number.map_or("–".to_owned(), rounded);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut text = format!(
        "\n{}: {} on CPU {}, the web on CPU {}, {:.1} s after {:.1} s of warm-up, {}\n",
        setting.workload,
        if setting.shards == 1 { "1 shard".to_owned() } else { format!("{} shards", setting.shards) },
        super::layout::Layout::list(&setting.cpus),
        super::layout::Layout::list(&setting.web_cpus),
        figures.seconds,
        figures.warm_up_seconds,
        figures.ended,
    );
    if setting.cpus_shared {
        text.push_str("The web and the shards share a CPU: pages a second cover both.\n");
    }
    text.push('\n');
    let mut rows = Rows::default();
    let per_core = figures.pages_per_second_per_core.map(|rate| format!("{} per core", rounded(rate)));
    rows.text("pages a second", rounded(figures.pages_per_second), per_core);
    rows.text("pages a CPU second", optional(figures.pages_per_cpu_second), None);
    rows.text(
        "CPU of a page",
        format!("{} µs", optional(cpu.all)),
        Some(format!("{} user, {} system", optional(cpu.user), optional(cpu.system))),
    );
    rows.text("limit", figures.bottleneck.to_owned(), Some(figures.bottleneck_means.to_owned()));
    if let Some(ceiling) = figures.ceiling_per_second {
        rows.text("requests a second", rounded(ceiling), Some("at most, by the delays".to_owned()));
    }
    rows.text("shards' CPUs busy", percent(busy.shards), Some(format!("{} waiting", percent(busy.shards_waiting))));
    rows.text("web's CPUs busy", percent(busy.web), None);
    let other = figures.cpu_seconds.crawler_besides;
    rows.text("other CPU", format!("{other:.2} s"), Some("of the crawler, outside its shards".to_owned()));
    let rate = &figures.megabytes_per_second;
    rows.text(
        "MB a second",
        rounded(rate.wire),
        Some(format!("on the wire; {} decoded, {} stored", rounded(rate.decoded), rounded(rate.stored))),
    );
    rows.text("in flight", rounded(figures.in_flight_mean), Some("on average".to_owned()));
    let memory = &figures.memory;
    rows.text(
        "peak memory",
        bytes(memory.rss_bytes_max),
        memory.rss_bytes_per_connection.map(|each| {
            format!("{} for each of {} open connections", bytes(each as u64), grouped(memory.connections_open))
        }),
    );
    rows.text(
        "system calls a page",
        figures.system_calls_per_page.map_or("–".to_owned(), |calls| format!("{calls:.2}")),
        figures.system_calls_missing.clone(),
    );
    let operations = figures.ring_operations_per_page.map_or("–".to_owned(), |each| format!("{each:.2}"));
    rows.text("ring operations a page", operations, None);
    tls(figures, &mut rows);
    for (name, count) in &figures.failures {
        rows.text(&format!("failed: {name}"), grouped(*count), None);
    }
    text.push_str(&rows.align());
    text.push_str(&stages(figures));
    text.push_str(&latencies(figures));
    text.push_str("\nThe workload, as seen\n\n");
    let mut rows = Rows::default();
    for check in &figures.checks {
        let least = check.least;
        let expected = match check.most {
            None => format!("{least} or more"),
            Some(most) if least == most => format!("{least}"),
            Some(most) => format!("{least} to {most}"),
        };
        let seen = check.seen.map_or("–".to_owned(), |seen| format!("{seen:.2}"));
        let verdict = if check.holds { "" } else { "  NOT SO" };
        rows.text(check.name, seen, Some(format!("expected {expected}{verdict}")));
    }
    text.push_str(&rows.align());
    text
}

/// TLS rows, if there was any TLS.
fn tls(figures: &Figures, rows: &mut Rows) {
    let count = |name: &str| figures.counters.get(name).copied().unwrap_or(0);
    let (all, resumed, known) = (count("handshakes"), count("resumed"), count("chains_recognized"));
    if all == 0 {
        return;
    }
    let share = |part: u64, whole: u64| format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64);
    let full = all.saturating_sub(resumed);
    let each = figures.tls_micros_per_handshake.map(|micros| format!("{micros:.0} µs of TLS each, ciphers included"));
    rows.text("TLS handshakes", grouped(all), each);
    rows.text("  resumed", grouped(resumed), Some(share(resumed, all)));
    rows.text("  full", grouped(full), Some(format!("{} with a chain that was known", share(known, full))));
}

fn stages(figures: &Figures) -> String {
    let Some(stages) = &figures.stages else { return String::new() };
    let mut text = format!(
        "\nCPU of a page by stage, of {} samples: the sum is {:.1} % of the threads' CPU time\n\n  {:<10}  {:>12}  {:>9}\n",
        grouped(stages.looks),
        stages.sum_of_thread_cpu * 100.0,
        "",
        "",
        "floor"
    );
    let floor = |stage: Stage| floors::of(stage, &figures.seen);
    let micros = |micros: Option<f64>| micros.map_or("–".to_owned(), |micros| format!("{micros:.1}"));
    let mut by_size: Vec<_> =
        Stage::ALL.iter().filter_map(|stage| Some((*stage, stages.by_stage.get(stage.as_str())?))).collect();
    by_size.sort_by(|(_, left), (_, right)| right.share.total_cmp(&left.share));
    for (stage, cpu) in by_size {
        let (name, ours, floor) = (stage.as_str(), micros(cpu.micros_per_page), micros(floor(stage)));
        let kernel = cpu.kernel_share.map_or(String::new(), |share| format!("  {:>5.1} % of it kernel", share * 100.0));
        let _ = writeln!(text, "  {name:<10}  {ours:>9} µs  {floor:>9}  {:>5.1} %{kernel}", cpu.share * 100.0);
    }
    let all = Stage::ALL.iter().filter_map(|stage| floor(*stage)).sum();
    let ours = micros(figures.cpu_micros_per_page.all);
    let _ = writeln!(text, "  {:<10}  {ours:>9} µs  {:>9}", "sum", micros(Some(all)));
    text
}

fn latencies(figures: &Figures) -> String {
    let mut text = format!(
        "\nTimes in µs\n\n  {:<11} {:>11} {:>10} {:>10} {:>10} {:>10} {:>10}\n",
        "", "count", "p50", "p90", "p99", "p99.9", "max"
    );
    for name in ["dns", "connect", "tls", "first_byte", "exchange"] {
        let Some(Some(times)) = figures.latency_micros.get(name) else { continue };
        let _ = writeln!(
            text,
            "  {name:<11} {:>11} {:>10} {:>10} {:>10} {:>10} {:>10}",
            grouped(times.count),
            grouped(times.p50),
            grouped(times.p90),
            grouped(times.p99),
            grouped(times.p99_9),
            grouped(times.max)
        );
    }
    text
}
