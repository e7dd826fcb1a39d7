//! Selects captures by URL, host, time, status and type.
//!
//! Decides: all given conditions must hold. Times are compared by as many digits as are given, so `2026-11` is the
//! whole of November. The type is that of the response, or the one detected from its bytes; a revisit's is
//! `warc/revisit` as well.
//! Limits: nothing is looked up in the network, and no name is decoded: hosts are written as in URLs.

use ringcrawl_brain::log;
use ringcrawl_url::Url;
use ringcrawl_warc::selection::UrlChoice;

/// Options of what takes URLs.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug, Default)]
pub struct UrlFilter {
    /// Only URLs that begin with this.
    #[arg(long, value_name = "URL")]
    prefix: Option<String>,
    /// Only URLs of this host and of names below it.
    #[arg(long, value_name = "NAME", value_parser = host)]
    host: Option<String>,
}

impl UrlFilter {
    /// The choice that the options make.
    pub fn choice(&self) -> UrlChoice {
        UrlChoice { prefix: self.prefix.clone(), host: self.host.clone() }
    }
}

/// Options of what lists or takes captures.
#[derive(clap::Args, Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    #[command(flatten)]
    urls: UrlFilter,
    /// Only captures of this time or later, such as 2026, 2026-11-21 or 20261121084032 (UTC).
    #[arg(long, value_name = "TIME", value_parser = digits)]
    since: Option<String>,
    /// Only captures of this time or earlier.
    #[arg(long, value_name = "TIME", value_parser = digits)]
    until: Option<String>,
    /// Only responses of this status, or of a class such as 4xx.
    #[arg(long, value_name = "CODE", value_parser = statuses)]
    status: Option<Statuses>,
    /// Only responses of this media type, or of all below such as image/*.
    #[arg(long = "type", value_name = "TYPE", value_parser = media_range)]
    media_type: Option<String>,
}

/// An inclusive range of statuses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Statuses(u16, u16);

/// The facts about a capture that conditions test.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Its URL as recorded.
    pub url: &'a str,
    /// The 14 digits of its time.
    pub timestamp: &'a str,
    /// HTTP status; 0 when there is none.
    pub status: u16,
    /// Its media types: declared, and detected.
    pub types: [&'a str; 2],
}

impl Filter {
    /// Whether any condition is set.
    pub fn is_set(&self) -> bool {
        *self != Filter::default()
    }

    /// The same conditions without the type.
    pub fn without_type(&self) -> Filter {
        Filter { media_type: None, ..self.clone() }
    }

    /// Whether a capture meets all conditions.
    pub fn takes(&self, facts: &Facts<'_>) -> bool {
        let from = |digits: &String| facts.timestamp.get(..digits.len()).unwrap_or(facts.timestamp);
        self.since.as_ref().is_none_or(|since| from(since) >= since.as_str())
            && self.until.as_ref().is_none_or(|until| from(until) <= until.as_str())
            && self.status.is_none_or(|Statuses(first, last)| (first..=last).contains(&facts.status))
            && self.media_type.as_ref().is_none_or(|range| facts.types.iter().any(|found| is_in(range, found)))
            && self.urls.choice().takes(facts.url)
    }
}

fn is_in(range: &str, found: &str) -> bool {
    match range.strip_suffix('*') {
        Some(start) => found.starts_with(start),
        None => found == range,
    }
}

fn host(text: &str) -> Result<String, String> {
    // As in URLs: lower-case, and in Punycode.
    let url = Url::parse(&format!("http://{}/", text.trim_end_matches('.'))).map_err(|_| "no host name".to_owned())?;
    if url.path_and_query() == "/" { Ok(url.host().to_owned()) } else { Err("no host name".to_owned()) }
}

pub(super) fn digits(text: &str) -> Result<String, String> {
    let digits: String = text.chars().filter(char::is_ascii_digit).take(14).collect();
    let is_time = text.chars().all(|char| char.is_ascii_digit() || "-:.TZ ".contains(char));
    let is_whole = matches!(digits.len(), 4 | 6 | 8 | 10 | 12 | 14);
    if is_time && is_whole {
        Ok(digits)
    } else {
        Err("expected a time such as 2026-11-21 or 20261121084032".to_owned())
    }
}

fn statuses(text: &str) -> Result<Statuses, String> {
    log::statuses(text).map(|(first, last)| Statuses(first, last))
}

fn media_range(text: &str) -> Result<String, String> {
    let range = text.trim().to_ascii_lowercase();
    let is_range = range.split_once('/').is_some_and(|(kind, sub)| {
        !kind.is_empty() && !kind.contains('*') && !sub.is_empty() && (sub == "*" || !sub.contains('*'))
    });
    if is_range { Ok(range) } else { Err("expected a media type such as text/html, or image/*".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts<'_> = Facts {
        url: "https://www.example.org/news/1",
        timestamp: "20261121084032",
        status: 404,
        types: ["text/html", "application/pdf"],
    };

    #[test]
    fn each_option_takes_what_it_names() {
        let none = Filter::default();
        let of_urls = |urls: UrlFilter| Filter { urls, ..Filter::default() };
        assert!(none.takes(&FACTS) && !none.is_set());
        let host = |text: &str| of_urls(UrlFilter { host: Some(host(text).expect("a host")), prefix: None });
        let since = |text: &str| Filter { since: Some(digits(text).expect("a time")), ..Filter::default() };
        let until = |text: &str| Filter { until: Some(digits(text).expect("a time")), ..Filter::default() };
        let status = |text: &str| Filter { status: Some(statuses(text).expect("a status")), ..Filter::default() };
        let kind = |text: &str| Filter { media_type: Some(media_range(text).expect("a type")), ..Filter::default() };
        let prefix = |text: &str| of_urls(UrlFilter { prefix: Some(text.to_owned()), host: None });
        for (taken, not) in [
            (host("Example.org."), host("ample.org")),
            (host("www.example.org"), host("w.example.org")),
            (since("2026-11"), since("2026-12")),
            (since("20261121084032"), since("2026-11-21T08:40:33Z")),
            (until("2026"), until("2025")),
            (until("2026-11-21 08:40"), until("2026-11-21 08:39")),
            (status("4xx"), status("5xx")),
            (status("404"), status("403")),
            (kind("text/*"), kind("image/*")),
            (kind("application/pdf"), kind("application/pd")),
            (prefix("https://www.example.org/news/"), prefix("https://www.example.org/old/")),
        ] {
            assert!(taken.takes(&FACTS) && taken.is_set(), "{taken:?}");
            assert!(!not.takes(&FACTS), "{not:?}");
        }
    }

    #[test]
    fn what_means_nothing_is_refused() {
        assert!(["", "20", "yesterday", "2026-1", "2026-11-21T08:4"].iter().all(|text| digits(text).is_err()));
        assert!(["", "xx", "0xx", "99", "1000", "4x", "-4"].iter().all(|text| statuses(text).is_err()));
        assert!(["", "text", "*/*", "/html", "text/", "text/h*"].iter().all(|text| media_range(text).is_err()));
        assert!(["", "a/b", "a b"].iter().all(|text| host(text).is_err()));
    }
}
