//! A file of rules: which URLs are queued, fetched, scanned for links and stored.
//!
//! Decides: rules are tried in the order of the file, and the first that matches decides. If none matches,
//! `scope.follow` decides (schedule), or the URL goes on (the other stages). A rule that is never reached is a
//! mistake, because the rule before it was not meant to hide it. All mistakes of a file are reported at once.
//! Limits: [`FILE_BYTES_MAX`], [`RULES_MAX`] rules, lines of [`LINE_BYTES_MAX`]; [`VERDICT_FUEL`] a verdict, beyond
//! which a URL is denied at every stage: an expensive URL must not bypass a denial.
//! Leaves to others: reading the file (`boot`).

use super::index::Index;
use super::rule::{Rule, Stage};
use super::subject::Subject;
use ringcrawl_base::fuel::{Fuel, OutOfFuel, VERDICT_FUEL};

/// Longest file.
pub const FILE_BYTES_MAX: usize = 16 << 20;
/// Most rules of a file.
const RULES_MAX: usize = 100_000;
/// Longest line.
const LINE_BYTES_MAX: usize = 8 << 10;
/// Mistakes that are reported in full; the others are counted.
const TOLD_MAX: usize = 100;

/// Parsed rules.
#[derive(Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    by_stage: [Index; Stage::ALL.len()],
}

/// A mistake in a file that an operator wrote.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct LineError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what was expected.
    pub what: String,
}

impl Rules {
    /// Parses the `text` of `file`, whose name only appears in errors; the errors are the mistakes in it.
    pub fn parse(file: &str, text: &[u8]) -> Result<Rules, Vec<LineError>> {
        let error = |line: usize, what: String| LineError { file: file.to_owned(), line, what };
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        if text.len() > FILE_BYTES_MAX {
            return Err(vec![error(1, format!("the file is longer than {FILE_BYTES_MAX} bytes"))]);
        }
        let (mut rules, mut errors) = (Vec::new(), Vec::new());
        for (line, bytes) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            let parsed = match str::from_utf8(bytes) {
                Ok(text) if text.len() <= LINE_BYTES_MAX => Rule::parse(line, text),
                Ok(_) => Some(Err(vec![format!("longer than {LINE_BYTES_MAX} bytes; expected a rule a line")])),
                Err(_) => Some(Err(vec!["not UTF-8; expected a rule in UTF-8".to_owned()])),
            };
            match parsed {
                Some(Ok(rule)) if rules.len() < RULES_MAX => rules.push(rule),
                Some(Ok(_)) => {
                    errors.push(error(line, format!("more than {RULES_MAX} rules; expected hosts in scope.block")));
                    break;
                }
                Some(Err(wrong)) => errors.extend(wrong.into_iter().map(|what| error(line, what))),
                None => {}
            }
        }
        errors.extend(unreached(&rules).map(|(line, what)| error(line, what)));
        errors.sort_by_key(|error| error.line);
        if let Some(more) = errors.len().checked_sub(TOLD_MAX + 1) {
            let line = errors.get(TOLD_MAX).map_or(1, |error| error.line);
            errors.truncate(TOLD_MAX);
            errors.push(error(line, format!("here and behind are {} more mistakes", more + 1)));
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let mut by_stage: [Index; Stage::ALL.len()] = Default::default();
        for (index, stage) in by_stage.iter_mut().zip(Stage::ALL) {
            *index = Index::new(&rules, |rule| rule.is_for(stage)).map_err(|what| vec![error(1, what)])?;
        }
        Ok(Rules { rules, by_stage })
    }

    /// The number of rules.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    /// Whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether any is for `stage`.
    pub fn has(&self, stage: Stage) -> bool {
        self.by_stage.get(stage as usize).is_some_and(|index| !index.is_empty())
    }

    /// All that are for `stage`, in order.
    pub fn of(&self, stage: Stage) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| rule.is_for(stage))
    }

    /// The rule that decides on `subject` at `stage`, or `None` if none matches. An error means that the search would
    /// take too long: an untried rule may deny it.
    pub fn decide(&self, stage: Stage, subject: &Subject<'_>) -> Result<Option<&Rule>, OutOfFuel> {
        self.decide_within(stage, subject, &mut Fuel::new(VERDICT_FUEL))
    }

    fn decide_within(&self, stage: Stage, subject: &Subject<'_>, fuel: &mut Fuel) -> Result<Option<&Rule>, OutOfFuel> {
        match self.by_stage.get(stage as usize) {
            Some(index) => index.first(&self.rules, subject, fuel),
            None => Ok(None),
        }
    }

    /// The slow twin of [`Rules::decide`]: tries each rule in order.
    pub fn decide_in_order(&self, stage: Stage, subject: &Subject<'_>) -> Option<&Rule> {
        self.of(stage).find(|rule| rule.matches(subject, &mut Fuel::new(u64::MAX)))
    }
}

/// Rules after one that matches everything, by their lines.
fn unreached(rules: &[Rule]) -> impl Iterator<Item = (usize, String)> {
    let mut ends: [Option<usize>; Stage::ALL.len()] = [None; Stage::ALL.len()];
    rules.iter().filter_map(move |rule| {
        let of_rule = |ends: &[Option<usize>; Stage::ALL.len()]| -> Vec<Option<usize>> {
            Stage::ALL.into_iter().zip(ends).filter(|(stage, _)| rule.is_for(*stage)).map(|(_, end)| *end).collect()
        };
        let before = of_rule(&ends);
        if rule.conditions().is_empty() {
            for (end, _) in ends.iter_mut().zip(Stage::ALL).filter(|(_, stage)| rule.is_for(*stage)) {
                end.get_or_insert(rule.line);
            }
        }
        let end = before.iter().all(Option::is_some).then(|| before.into_iter().flatten().max()).flatten()?;
        let what =
            format!("never reached, as line {end} matches everything; expected that one below, or with a condition");
        Some((rule.line, what))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hops::Hops;
    use ringcrawl_base::Rng;
    use ringcrawl_url::Url;

    fn parse(text: &str) -> Result<Rules, Vec<LineError>> {
        Rules::parse("scope.rules", text.as_bytes())
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let rules = parse(
            "# This site without its forum, and PDFs up to one hop away.\n\
             deny host=forum.example.org\n\
             allow site=example.org\n\
             allow extension=pdf offsite<=1\n\
             deny\n",
        )
        .unwrap();
        let line = |url: &str, offsite: u16| {
            let url = Url::parse(url).unwrap();
            let subject = Subject::new(&url, Hops::default().with_offsite(offsite));
            rules.decide(Stage::Schedule, &subject).unwrap().map(|rule| rule.line)
        };
        assert_eq!(line("http://forum.example.org/a.pdf", 0), Some(2));
        assert_eq!(line("http://www.example.org/", 0), Some(3));
        assert_eq!(line("http://other.test/a.PDF", 1), Some(4));
        assert_eq!(line("http://other.test/a.pdf", 2), Some(5));
        assert_eq!(line("http://other.test/", 1), Some(5));
        assert!(rules.has(Stage::Schedule) && !rules.has(Stage::Fetch));
    }

    #[test]
    fn every_mistake_is_said_with_its_line() {
        let errors =
            parse("\u{feff}alow\n\nallow hots=a\ndeny\nallow host=a.test\ndeny fetch\ndeny schedule,fetch depth>1\n");
        let told: Vec<String> = errors.unwrap_err().iter().map(ToString::to_string).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        for (told, line) in
            told.iter().zip(["rules:1: ", "rules:3: ", "rules:5: never reached, as line 4", "rules:7: "])
        {
            assert!(told.contains(line), "{told}");
        }
        assert!(parse("deny fetch\nallow\nallow store\nallow follow").is_ok());
        let many = parse(&"bad\n".repeat(500)).unwrap_err();
        assert_eq!(
            (many.len(), many[100].to_string()),
            (101, "scope.rules:101: here and behind are 400 more mistakes".to_owned())
        );
        let broken = Rules::parse("r", b"allow\n\xff\n").unwrap_err();
        assert_eq!((broken.len(), broken[0].line), (1, 2));
    }

    /// Random rules and URLs of few words, so that much matches: the index finds the same rule as trying each in
    /// order.
    #[test]
    fn decisions_are_those_of_the_twin() {
        let mut rng = Rng::new(5);
        let (mut decided, mut undecided) = (0, 0);
        for round in 0..400 {
            let text: String = (0..rng.below(60)).map(|_| line(&mut rng)).collect();
            let rules = match parse(&text) {
                Ok(rules) => rules,
                Err(errors) => {
                    assert!(errors.iter().all(|error| error.what.contains("never reached")), "{errors:?}\n{text}");
                    continue;
                }
            };
            for _ in 0..100 {
                let url = url(&mut rng);
                let hops = Hops::from_bits(rng.below(6) as u16).with_offsite(rng.below(4) as u16);
                let hops = if rng.percent(30) { hops.embed() } else { hops };
                let types = [None, Some(&b"text/html"[..]), Some(b"image/png;x"), Some(b"application/pdf")];
                let subject = Subject::new(&url, hops).with_type(*rng.pick(&types));
                for stage in Stage::ALL {
                    let (fast, slow) = (rules.decide(stage, &subject).unwrap(), rules.decide_in_order(stage, &subject));
                    let lines = [fast, slow].map(|rule| rule.map(|rule| rule.line));
                    assert_eq!(lines[0], lines[1], "round {round}, {stage}, {url}\n{text}");
                    *if slow.is_some() { &mut decided } else { &mut undecided } += 1;
                }
            }
        }
        assert!(decided > 10_000 && undecided > 10_000, "{decided} {undecided}");
    }

    /// A text that a URL repeats costs no more than one that appears once, except for the search.
    #[test]
    fn a_text_that_is_repeated_is_compared_once() {
        let rules = parse("deny regex=session[0-9a-f]{32}(/|$)\ndeny path=*calendar*x*\n").unwrap();
        let spent = |path: &str| {
            let url = Url::parse(&format!("http://a.test/{path:z<2000}")).unwrap();
            let mut fuel = Fuel::new(VERDICT_FUEL);
            let found = rules.decide_within(Stage::Schedule, &Subject::new(&url, Hops::default()), &mut fuel);
            assert_eq!(found.map(|rule| rule.map(|rule| rule.line)), Ok(None));
            VERDICT_FUEL - fuel.left()
        };
        for text in ["session", "calendar", "sessioncalendar"] {
            let (once, often) = (spent(text), spent(&text.repeat(2_000 / text.len())));
            assert!(often < 2 * once, "{text}: {once} {often}");
        }
    }

    /// More texts than a list holds: each is found, and none twice.
    #[test]
    fn many_texts_in_one_url() {
        let text: String = (0..100).map(|number| format!("deny regex=text{number}x[0-9]\n")).collect();
        let rules = parse(&text).unwrap();
        let all: String = (0..100).rev().map(|number| format!("text{number}x")).collect();
        for last in [0, 50, 99] {
            let url = Url::parse(&format!("http://a.test/{all}{all}text{last}x1")).unwrap();
            let found = rules.decide(Stage::Schedule, &Subject::new(&url, Hops::default())).unwrap();
            assert_eq!(found.map(|rule| rule.line), Some(last + 1));
        }
    }

    /// What takes too long to judge might be denied.
    #[test]
    fn a_verdict_that_is_too_dear_is_an_error() {
        let text: String = (0..2_000).map(|number| format!("deny regex=same[a-z]*{number:04}$\n")).collect();
        let rules = parse(&format!("allow site=b.test\n{text}")).unwrap();
        let decide = |url: &str| {
            let url = Url::parse(url).unwrap();
            rules.decide(Stage::Schedule, &Subject::new(&url, Hops::default())).map(|rule| rule.map(|rule| rule.line))
        };
        assert_eq!(decide("http://a.test/samex0007"), Ok(Some(9)));
        assert_eq!(decide(&format!("http://a.test/{}", "same".repeat(500))), Err(OutOfFuel));
        assert_eq!(decide(&format!("http://b.test/{}", "same".repeat(500))), Ok(Some(1)), "no later one counts");
    }

    const WORDS: [&str; 6] = ["a", "ab", "forum", "example", "x1", "cal"];
    const TLDS: [&str; 4] = ["org", "co.uk", "test", "github.io"];

    fn host(rng: &mut Rng) -> String {
        let labels: String = (0..1 + rng.below(3)).map(|_| format!("{}.", rng.pick(&WORDS))).collect();
        format!("{labels}{}", rng.pick(&TLDS))
    }

    fn path(rng: &mut Rng) -> String {
        (0..1 + rng.below(3)).map(|_| format!("/{}", rng.pick(&WORDS))).collect()
    }

    fn url(rng: &mut Rng) -> Url {
        let (scheme, dot) = (rng.pick(&["http", "https"]).to_owned(), if rng.percent(5) { "." } else { "" });
        let (host, port, path) = (host(rng), *rng.pick(&["", "", ":8080"]), path(rng));
        let ending = *rng.pick(&["", "/", ".pdf", ".PDF", ".php?forum=1", "?cal"]);
        Url::parse(&format!("{scheme}://{host}{dot}{port}{path}{ending}")).unwrap()
    }

    fn line(rng: &mut Rng) -> String {
        let mut line = (*rng.pick(&["allow", "deny"])).to_owned();
        let stages = *rng.pick(&["", " schedule", " fetch", " follow", " store", " schedule,store"]);
        line.push_str(stages);
        let is_late = stages.contains("follow") || stages == " store";
        for _ in 0..1 + rng.below(3) {
            let (host, path) = (host(rng), path(rng));
            let site = ringcrawl_url::site_of(&host).to_owned();
            let labels: Vec<&str> = host.rsplit('.').collect();
            let condition = match rng.below(15) {
                0 => format!("host={host}"),
                1 => format!("site={site}"),
                2 => format!("suffix={host},{site}"),
                3 => format!("tld={}", labels[0]),
                4 => format!("surt={}{}", labels.join(","), rng.pick(&[",", ")", "", ")/a"])),
                5 => format!("path={path}*"),
                6 => format!("path=*{}*", rng.pick(&WORDS)),
                7 => "query=*forum*".to_owned(),
                8 => format!("regex={}[0-9a-z]*/{}", rng.pick(&WORDS), rng.pick(&["", "$", "cal", "(a|b)+"])),
                9 => format!("extension={}", rng.pick(&["pdf", "php,pdf", "html"])),
                10 => format!("depth{}{}", rng.pick(&["<", "<=", "=", ">", ">="]), rng.below(5)),
                11 => format!("offsite<={}", rng.below(3)),
                12 if is_late => "type=text/html,image/*".to_owned(),
                12 => "scheme=https".to_owned(),
                13 => "embed".to_owned(),
                _ => "port=80,8000-9000".to_owned(),
            };
            line.push_str(if rng.percent(20) { " !" } else { " " });
            line.push_str(&condition);
        }
        line.push('\n');
        line
    }
}
