//! Lines for hosts, right and wrong ones.

use super::*;
use crate::Config;
use ringcrawl_base::Rng;

fn parsed(text: &str) -> Result<Config, Vec<String>> {
    Config::parse(text, "f").map_err(|errors| errors.iter().map(ToString::to_string).collect())
}

fn lines(text: &str) -> HostLines {
    parsed(text).expect("right").politeness.host
}

#[test]
fn the_first_that_matches_holds() {
    let lines = lines(
        "[[politeness.host]]\nmatch = \"WWW.Example.org\"\ndelay = \"1s\"\n\
         [[politeness.host]]\nmatch = \"*.example.org\"\ndelay = \"2s\"\nhours = \"22:00-06:00\"\n\
         [[politeness.host]]\nmatch = \".example.org\"\ndelay = \"3s\"\n\
         [[politeness.host]]\nmatch = \"bücher.test\"\nconcurrency = 64\n\
         [[politeness.host]]\nmatch = \"[2001:DB8::1]\"\ndelay = \"0s\"\n\
         [politeness]\nhost_delay = \"9s\"\n",
    );
    let delay = |host| lines.terms_of(host).delay.map(|delay| delay.as_secs());
    for (host, seconds) in [
        ("www.example.org", Some(1)),
        ("www.example.org.", Some(1)),
        ("a.www.example.org", Some(2)),
        ("b.example.org", Some(2)),
        ("example.org", Some(3)),
        ("notexample.org", None),
        ("org", None),
        ("[2001:db8::1]", Some(0)),
    ] {
        assert_eq!(delay(host), seconds, "{host}");
    }
    let agreed = lines.terms_of("xn--bcher-kva.test");
    assert_eq!(agreed, HostTerms { concurrency: 64, ..HostTerms::default() });
    assert_eq!(lines.terms_of("a.xn--bcher-kva.test"), HostTerms::default());
    let seconds = Duration::from_secs;
    assert_eq!(lines.laxer_than(seconds(9)), Some((64, seconds(0))));
    let one = |line: &str| self::lines(&format!("[[politeness.host]]\nmatch = \"a.test\"\n{line}"));
    for (line, is_laxer) in [("delay = \"2s\"", false), ("delay = \"1s\"", true), ("concurrency = 1", false)] {
        assert_eq!(one(line).laxer_than(seconds(2)).is_some(), is_laxer, "{line}");
    }
    assert_eq!(lines.terms_of("x.example.org").hours, Hours::parse("22:00-06:00").expect("hours"));
}

#[test]
fn hosts_of_ones_own() {
    let lines = lines(
        "[[politeness.host]]\nmatch = \".mine.test\"\nmine = true\n\
         [[politeness.host]]\nmatch = \"slow.test\"\nmine = true\ndelay = \"2s\"\nconcurrency = 1\n\
         [[politeness.host]]\nmatch = \"other.test\"\nmine = false\ndelay = \"3s\"\n",
    );
    let terms = |is_mine, seconds, concurrency| HostTerms {
        delay: Some(Duration::from_secs(seconds)),
        hours: None,
        concurrency,
        is_mine,
    };
    assert_eq!(lines.terms_of("www.mine.test"), terms(true, 0, MINE_AT_ONCE));
    assert_eq!(lines.terms_of("slow.test"), terms(true, 2, 1));
    assert_eq!(lines.terms_of("other.test"), terms(false, 3, 1));
    assert!(lines.have_several());
    assert_eq!(lines.laxer_than(Duration::from_secs(3)), None, "strangers are distinguished");
    for (pattern, is_own) in [(".com", false), ("*.co.uk", false), (".example.com", true), (".corp", true)] {
        let text = format!("[[politeness.host]]\nmatch = \"{pattern}\"\nmine = true\n");
        assert_eq!(parsed(&text).is_ok(), is_own, "{pattern}");
    }
    let again = parsed(&format!("[politeness]\nhost = {}", lines.format())).expect("its own form");
    assert_eq!(again.politeness.host, lines);
    let set = Config::default().set("politeness.host", "[{ match = '.mine.test', mine = true }]");
    assert!(set.is_ok(), "{set:?}");
    let wrong = parsed("[[politeness.host]]\nmatch = \"a.test\"\nmine = \"yes\"\n").expect_err("no such word");
    assert!(
        wrong[0].contains("f:3:") && wrong[0].contains("mine: ") && wrong[0].contains("true or false"),
        "{wrong:?}"
    );
    let torn = parsed("[partition]\nby = \"url-hash\"\n[[politeness.host]]\nmatch = \"a.test\"\nmine = true\n");
    assert!(torn.is_err_and(|errors| errors[0].contains("mine")));
}

/// The slow twin: checks each line in turn, and each host of each line.
#[test]
fn a_line_is_found_as_by_looking_at_each() {
    let names = ["a.test", "b.a.test", "c.b.a.test", "test", "d.test", "x.d.test"];
    let hosts: Vec<String> =
        names.iter().flat_map(|name| ["", "y.", "z.y."].map(|low| format!("{low}{name}"))).collect();
    let is_for = |pattern: &str, host: &str| match (pattern.strip_prefix('*'), pattern.strip_prefix('.')) {
        (Some(below), _) => host.ends_with(below),
        (None, Some(name)) => host == name || host.ends_with(pattern),
        (None, None) => host == pattern,
    };
    let mut rng = Rng::new(1);
    for _ in 0..40 {
        let mut kept: Vec<(String, u128)> = Vec::new();
        let mut lines = Lines::default();
        for number in 0..12 {
            let pattern = format!("{}{}", rng.pick(&["", "", ".", "*."]), rng.pick(&names));
            let has_all = |before: &str| hosts.iter().all(|host| !is_for(&pattern, host) || is_for(before, host));
            let is_left = !kept.iter().any(|(before, _)| has_all(before));
            let delay = Some(Duration::from_millis(number));
            let added =
                lines.add(Pattern::read(&pattern).expect("a host"), HostTerms { delay, ..HostTerms::default() });
            assert_eq!(added.is_ok(), is_left, "{pattern} behind {kept:?}");
            if is_left {
                kept.push((pattern, number.into()));
            }
        }
        let lines = HostLines(Arc::new(lines));
        for host in hosts.iter().map(String::as_str).chain(["other", "notest"]) {
            let expected = kept.iter().find(|(pattern, _)| is_for(pattern, host)).map(|(_, number)| *number);
            assert_eq!(lines.terms_of(host).delay.map(|delay| delay.as_millis()), expected, "{host} {kept:?}");
        }
        assert_eq!(parsed(&format!("politeness.host = {}", lines.format())).expect("valid").politeness.host, lines);
    }
}

#[test]
fn mistakes_name_line_and_what_was_expected() {
    for (text, expected) in [
        ("host = 1", "f:2: politeness.host: the number 1; expected tables with match"),
        ("host = [1]", "f:2: politeness.host: not a table; expected tables with match"),
        ("host = [{ delay = \"1s\" }]", "f:2: politeness.host: no match; expected match = "),
        (
            "host = [{ match = \"a.test\" }]",
            "politeness.host.\"a.test\": only match is set; expected mine, delay, hours",
        ),
        (
            "host = [{ match = \"a b\", delay = \"1s\" }]",
            "match: \"a b\" is not a host; expected match = \"www.example.org\"",
        ),
        (
            "[[politeness.host]]\nmatch = \"a.test\"\ndelay = 5",
            "f:4: politeness.host.\"a.test\": delay: the number 5 without a unit; expected a duration from 0s to 24h",
        ),
        (
            "[[politeness.host]]\nmatch = \"a.test\"\nconcurrency = 65",
            "f:4: politeness.host.\"a.test\": concurrency: 65 is out of range; expected a whole number from 1 to 64",
        ),
        ("[[politeness.host]]\nmatch = \"a.test\"\nhours = \"22-6\"", "f:4: politeness.host.\"a.test\": hours: "),
        (
            "[[politeness.host]]\nmatch = \"a.test\"\ndely = \"1s\"",
            "f:4: politeness.host.\"a.test\": unknown key \"dely\" (did you mean \"delay\"?); expected match",
        ),
        (
            "[[politeness.host]]\nmatch = \"a.test\"\nhost_delay = \"1s\"",
            "f:4: politeness.host.\"a.test\": unknown key \"host_delay\" (did you mean \"delay\"?); expected match",
        ),
        (
            "[[politeness.host]]\nmatch = \"a.test\"\nown = true",
            "f:4: politeness.host.\"a.test\": unknown key \"own\" (did you mean \"mine\"?); expected match",
        ),
        (
            "[[politeness.host]]\nmatch = \"a.test\"\nrate = 1",
            "f:4: politeness.host.\"a.test\": unknown key \"rate\" (did you mean \"delay\"?); expected match",
        ),
        (
            "[[politeness.host]]\nmatch = \"a.test\"\ndelay = \"1s\"\n[[politeness.host]]\nmatch = \"A.test\"\ndelay = \"1s\"",
            "f:6: politeness.host.\"a.test\": match: a.test is listed twice; expected each once",
        ),
        (
            "[[politeness.host]]\nmatch = \".a.test\"\ndelay = \"1s\"\n[[politeness.host]]\nmatch = \"*.b.a.test\"\ndelay = \"1s\"",
            "f:6: politeness.host.\"*.b.a.test\": match: never used: \".a.test\" matches all of its hosts first",
        ),
    ] {
        let errors = parsed(&format!("[politeness]\n{text}\n")).expect_err(text);
        assert!(errors.len() == 1 && errors[0].contains(expected), "{text}: {errors:?}");
    }
    let many = format!("politeness.host = [{}]", "{ match = 'a.test', delay = '1s' },".repeat(LINES_MAX + 1));
    assert!(parsed(&many).expect_err("too many")[0].contains("100001 lines; expected at most 100000"));
}

#[test]
fn the_example_is_a_line() {
    let mut text = example().replace("# ", "");
    assert_eq!(lines(&text).terms_of("www.example.org").delay, Some(Duration::from_secs(5)));
    // In its place in the file, too.
    text = Config::annotated().replace(example(), &text);
    assert_eq!(lines(&text).terms_of("www.example.org").delay, Some(Duration::from_secs(5)));
}

#[test]
fn each_of_many_lines_finds_its_host() {
    let many: String = (0..10_000).map(|number| format!("{{ match = 'h{number}.test', delay = '5s' }},")).collect();
    let lines = lines(&format!("politeness.host = [{many}]"));
    let found = (0..20_000).filter(|number| lines.terms_of(&format!("h{number}.test")).delay.is_some()).count();
    assert_eq!(found, 10_000);
}
