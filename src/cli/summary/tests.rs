//! Tests of the summary.

use super::*;

fn summary() -> Summary {
    let mut totals = Totals {
        pages: 12_345,
        responses: 13_000,
        bytes_wire: 310_000_000,
        bytes_decoded: 1_234_567_890,
        bytes_stored: 98_765_432,
        records: 37_035,
        hosts: 321,
        hosts_left: 20,
        visited: 1_045_678,
        queued: 1_000_000,
        over: 45_678,
        robots_denied: 70,
        links_crossing: 31_000,
        links_crossing_dropped: 2_000,
        exchanged_out: 20_000,
        exchanged_in: 20_000,
        connections: 1_300,
        handshakes: 800,
        resumed: 600,
        chains_recognized: 50,
        retries: 7,
        statuses: [1, 0, 12_345, 300, 350, 4],
        robots_4xx: 310,
        ..Totals::default()
    };
    for (failure, count) in [(Failure::DnsNotFound, 30), (Failure::DnsTimeout, 70)] {
        if let Some(slot) = totals.failures.get_mut(failure as usize) {
            *slot = count;
        }
    }
    Summary {
        ended: "finished".into(),
        totals,
        shards: 2,
        pages_by_shard: vec![8_230, 4_115],
        elapsed: Duration::from_millis(10_000),
        outages: (2, Duration::from_millis(4_500)),
        last_trouble: Some("dead.test: robots.txt: connection refused, given up after 3 tries".into()),
        rss_bytes_max: Some(123_456_789),
        cpu_time: Some(Duration::from_millis(15_000)),
        causes: CauseLines::default(),
    }
}

#[test]
fn people_read_a_table() {
    let expected = "\
finished after 00:10

  pages                    12,345  1,235/s, 617/s per core (2 cores)
  hosts                       321  38.5 pages each, 20 left
  URLs of the crawl     1,045,678
    over                   45,678
    waiting             1,000,000
  responses                13,000
    2xx                    12,345  95.0 %
    3xx                       300  2.3 %
    4xx                       350  2.7 %
      of robots.txt           310  responses to robots.txt requests: none exists, or not for us
    5xx                         4  0.0 %
    other                       1  0.0 %
  failures                    100  0.8 % of outcomes
    dns-not-found              30  30.0 %
    dns-timeout                70  70.0 %
  last problem                     dead.test: robots.txt: connection refused, given up after 3 tries
  denied by robots.txt         70
  links across shards      31,000
    dropped                 2,000
  retries                       7
  outages                       2  00:04 without the network
  connections               1,300  10.0 responses each
  TLS handshakes              800  75.0 % resumed
    chains known               50  25.0 % of those not resumed
  URLs exchanged           20,000  1.620 a page
  balance                    1.33  pages of the busiest shard, over the average
  on the wire            310.0 MB  31.0 MB/s
  decoded                  1.2 GB
  stored                  98.8 MB  12.5 : 1, 37,035 records
  CPU time                 15.0 s  1215 µs a page, 75 % of 2 cores
  peak memory            123.5 MB
";
    assert_eq!(summary().human(), expected);
}

#[test]
fn a_run_that_went_on_is_told_from_the_crawl() {
    let mut resumed = summary();
    (resumed.totals.known_urls, resumed.totals.known_waiting) = (500_000, 499_000);
    (resumed.totals.urls_lost, resumed.totals.records_elsewhere) = (7, 326);
    let text = resumed.human();
    assert!(text.starts_with("finished after 00:10; this run resumed a crawl\n"), "{text}");
    for line in [
        "  URLs of the crawl     1,045,678  500,000 before this run\n",
        "    over                   46,678  1,000 before this run\n",
        "    waiting               999,000  499,000 before this run\n",
        "    lost                        7  lost in damaged logs, unless found again\n",
        "    records elsewhere         326  pages in missing segments; they are not fetched again\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
    let json = serde_json::to_value(resumed.json()).expect("plain numbers");
    assert_eq!(json["crawl"], serde_json::json!({ "urls": 1_045_678, "waiting": 999_000, "over": 46_678 }));
    assert_eq!(json["crawl_before"], serde_json::json!({ "urls": 500_000, "waiting": 499_000, "over": 1_000 }));
}

#[test]
fn an_empty_run_divides_by_nothing() {
    let empty = Summary::default();
    let expected = "\
ended after 00:00

  pages                0
  hosts                0
  URLs of the crawl    0
    over               0
    waiting            0
  responses            0
  failures             0
  on the wire        0 B
  decoded            0 B
  stored             0 B
";
    assert_eq!(empty.human(), expected);
    let json = serde_json::to_value(empty.json()).expect("plain numbers");
    assert_eq!(json.get("pages_per_second"), Some(&serde_json::Value::Null));
    assert_eq!(json.pointer("/failures/dns-timeout"), Some(&0.into()));
    assert_eq!((json.pointer("/failures/robots-denied"), json.pointer("/robots_denied")), (None, Some(&0.into())));
}

#[test]
fn programs_read_stable_names() {
    let json = serde_json::to_value(summary().json()).expect("plain numbers");
    let names: Vec<&String> = json.as_object().expect("an object").keys().collect();
    let expected = "ended elapsed_seconds shards pages_per_second pages_per_second_per_core pages duplicates responses \
        bytes_wire bytes_decoded bytes_stored records revisits coded links listings sitemaps pdfs not_stored hosts visited exchanged_out exchanged_in robots_denied robots_4xx urls_over_budget \
        dns_queries connections connections_further handshakes resumed chains_recognized retries ring_operations links_too_deep links_too_long \
        redirects_too_many seeds_led_outside seed_pages_led_outside links_dropped links_deferred links_advised_against links_other_formats links_over_bytes links_out_of_scope links_crossing links_crossing_dropped links_sent_before external_unlisted links_blocked set_aside over_share dns_answers over shard_millis shard_busy_millis reading_logs known_urls known_waiting urls_lost records_elsewhere hosts_left hosts_retried queued queued_lowered urls_lowered turns_over_allowance budget_uncounted in_flight lookups connections_open disk_backlog_bytes idle statuses \
        crawl crawl_before failures blemishes \
        outages outage_seconds last_trouble idle_share waited stored_ratio cpu_seconds cpu_micros_per_page rss_bytes_max exchanged_per_page balance causes largest_hosts slowest_hosts";
    let expected: Vec<&str> = expected.split_whitespace().collect();
    assert_eq!(names, expected);
    for (pointer, value) in [
        ("/pages", 12_345.0),
        ("/pages_per_second", 1_234.5),
        ("/pages_per_second_per_core", 617.25),
        ("/statuses/2xx", 12_345.0),
        ("/statuses/other", 1.0),
        ("/failures/dns-timeout", 70.0),
        ("/robots_denied", 70.0),
        ("/crawl/waiting", 1_000_000.0),
        ("/outages", 2.0),
        ("/outage_seconds", 4.5),
        ("/cpu_seconds", 15.0),
        ("/balance", 8_230.0 / 6_172.5),
        ("/exchanged_per_page", 20_000.0 / 12_345.0),
    ] {
        assert_eq!(json.pointer(pointer).and_then(serde_json::Value::as_f64), Some(value), "{pointer}");
    }
}

#[test]
fn numbers_as_people_write_them() {
    assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    assert_eq!([0.0, 99.94, 99.96, 1234.5].map(rounded), ["0.0", "99.9", "100", "1,235"]);
    assert_eq!(
        [0, 999, 1_000, 999_949, 999_950, u64::MAX].map(bytes),
        ["0 B", "999 B", "1.0 kB", "999.9 kB", "1.0 MB", "18446.7 PB"]
    );
    assert_eq!(
        [0, 59, 60, 3_599, 3_600, 360_000].map(|s| clock(Duration::from_secs(s))),
        ["00:00", "00:59", "01:00", "59:59", "1:00:00", "100:00:00"]
    );
}
