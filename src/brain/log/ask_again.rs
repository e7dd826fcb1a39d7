//! Final URLs that an operator wants fetched again.
//!
//! Decides: URLs are chosen by how they ended, a status or a failure, or by a prefix; several choices add up. One
//! choice is everything that failed. It excludes URLs that robots.txt forbids; these need an explicit choice.
//! Invariants: an unknown failure name is refused, with the nearest known one.
//! Limits: as many of each choice as fit on a command line.

use super::EndKind;
use ringcrawl_base::Failure;
use ringcrawl_config::nearest;
use ringcrawl_url::Url;

/// URLs to fetch again.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AskAgain {
    has_failed: bool,
    /// Ranges of statuses, both ends included.
    statuses: Vec<(u16, u16)>,
    causes: Vec<Failure>,
    /// Pages that are not everything their server had to say.
    are_cut: bool,
    prefixes: Vec<Box<str>>,
}

impl AskAgain {
    /// All that failed, except those that robots.txt forbids; or none.
    pub fn failed(has_failed: bool) -> AskAgain {
        AskAgain { has_failed, ..AskAgain::default() }
    }

    /// Parses a choice: `status=`, `cause=` or `prefix=` and a comma-separated list; the error names what was
    /// expected.
    pub fn parse(text: &str) -> Result<AskAgain, String> {
        let mut chosen = AskAgain::default();
        match text.split_once('=') {
            Some(("status", list)) => chosen.statuses = each(list.split(','), statuses)?,
            Some(("cause", list)) => {
                let (cut, causes): (Vec<_>, Vec<_>) = list.split(',').partition(|word| word.trim() == CUT);
                (chosen.causes, chosen.are_cut) = (each(causes.into_iter(), cause)?, !cut.is_empty());
            }
            Some(("prefix", list)) => chosen.prefixes = each(urls(list), prefix)?,
            Some((key, _)) => {
                let guess = nearest(key, ["status", "cause", "prefix"].into_iter());
                let guess = guess.map(|guess| format!(" (did you mean {guess}?)")).unwrap_or_default();
                return Err(format!("there is no choice {key:?}{guess}; {EXPECTED}"));
            }
            None => return Err(EXPECTED.to_owned()),
        }
        Ok(chosen)
    }

    /// Adds the choices of `other`.
    pub fn and(mut self, other: AskAgain) -> AskAgain {
        self.has_failed |= other.has_failed;
        self.statuses.extend(other.statuses);
        self.causes.extend(other.causes);
        self.are_cut |= other.are_cut;
        self.prefixes.extend(other.prefixes);
        self
    }

    /// Whether anything is chosen.
    pub fn is_any(&self) -> bool {
        *self != AskAgain::default()
    }

    /// Whether a URL with this end is chosen; `is_cut` says whether its body was cut.
    pub fn is_of_end(&self, kind: EndKind, is_cut: bool) -> bool {
        let has = |status: u16| self.statuses.iter().any(|(first, last)| (*first..=*last).contains(&status));
        match kind {
            EndKind::Fetched(status) => self.are_cut && is_cut || has(status),
            EndKind::Failed(failure) => {
                self.causes.contains(&failure) || self.has_failed && failure != Failure::RobotsDenied
            }
            EndKind::Reopened => false,
        }
    }

    /// Whether a URL is chosen, however it ended.
    pub fn is_of_url(&self, url: &str) -> bool {
        self.prefixes.iter().any(|prefix| url.starts_with(&**prefix))
    }
}

/// The cause of a page that is not everything its server had to say.
pub const CUT: &str = "cut";

/// Parses a status such as 404, or a class such as 5xx, into the first and the last status.
pub fn statuses(text: &str) -> Result<(u16, u16), String> {
    let wrong = || format!("{text:?} is no status; expected one such as 404, or a class such as 5xx");
    if let Some(class) = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX")) {
        let class: u16 = class.parse().ok().filter(|class| (1..=9).contains(class)).ok_or_else(wrong)?;
        return Ok((class * 100, class * 100 + 99));
    }
    let status = text.parse().ok().filter(|status| (100..=999).contains(status)).ok_or_else(wrong)?;
    Ok((status, status))
}

/// Parses the name of a failure, as `urls` and the summary print it.
pub fn cause(text: &str) -> Result<Failure, String> {
    if let Some(failure) = Failure::ALL.iter().find(|failure| failure.as_str() == text) {
        return Ok(*failure);
    }
    let guess = nearest(text, Failure::ALL.iter().map(|failure| failure.as_str()));
    let guess = guess.map(|guess| format!(" (did you mean {guess}?)")).unwrap_or_default();
    if statuses(text).is_ok() {
        return Err(format!("{text} is a status, and no failure: status={text}"));
    }
    Err(format!("there is no cause {text:?}{guess}; expected a name as `ringcrawl urls` shows it"))
}

/// Parses a prefix of URLs, as the crawl writes them.
pub fn prefix(text: &str) -> Result<Box<str>, String> {
    match Url::parse(text) {
        Ok(url) => Ok(url.as_str().into()),
        Err(error) => {
            Err(format!("{text:?}: {error}; expected the beginning of URLs, such as https://example.org/forum/"))
        }
    }
}

/// The URLs of a list: a URL may contain a comma.
fn urls(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(list);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let end = [",http://", ",https://"].iter().filter_map(|next| text.find(next)).min();
        match end.and_then(|end| text.split_at_checked(end)) {
            Some((url, behind)) => {
                rest = behind.strip_prefix(',');
                Some(url)
            }
            None => Some(text),
        }
    })
}

fn each<'a, T>(
    words: impl Iterator<Item = &'a str>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, String> {
    words.map(|word| read(word.trim())).collect()
}

const EXPECTED: &str = "expected status=401,5xx, cause=NAME or prefix=URL, each also a list with commas";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_add_up() {
        let chosen = ["status=401, 5xx", "cause=dns-failed,reset", "prefix=http://A.test/x,y,https://b.test"]
            .into_iter()
            .map(|text| AskAgain::parse(text).expect(text))
            .fold(AskAgain::default(), AskAgain::and);
        let statuses =
            [200, 400, 401, 402, 499, 500, 599, 600].map(|status| chosen.is_of_end(EndKind::Fetched(status), true));
        assert_eq!(statuses, [false, false, true, false, false, true, true, false]);
        for failure in Failure::ALL {
            let is_named = matches!(failure, Failure::DnsFailed | Failure::Reset);
            assert_eq!(chosen.is_of_end(EndKind::Failed(*failure), false), is_named, "{failure:?}");
            let is_failed = *failure != Failure::RobotsDenied;
            assert_eq!(AskAgain::failed(true).is_of_end(EndKind::Failed(*failure), false), is_failed);
        }
        assert!(
            AskAgain::parse("cause=robots-denied")
                .expect("a name")
                .is_of_end(EndKind::Failed(Failure::RobotsDenied), false)
        );
        let cut = AskAgain::parse("cause=reset, cut").expect("both");
        let ends =
            [(EndKind::Fetched(200), true), (EndKind::Fetched(200), false), (EndKind::Failed(Failure::Reset), false)];
        assert_eq!(ends.map(|(kind, is_cut)| cut.is_of_end(kind, is_cut)), [true, false, true]);
        let urls =
            ["http://a.test/x,y", "http://a.test/x,yz/w", "http://a.test/x", "https://b.test/", "http://b.test/"];
        assert_eq!(urls.map(|url| chosen.is_of_url(url)), [true, true, false, true, false]);
        assert!(chosen.is_any() && !AskAgain::failed(false).is_any() && !chosen.is_of_end(EndKind::Reopened, false));
    }

    #[test]
    fn what_is_no_choice_is_refused_with_the_nearest() {
        for (text, why) in [
            (
                "cause=dns-fail",
                "there is no cause \"dns-fail\" (did you mean dns-failed?); expected a name as `ringcrawl urls` shows it",
            ),
            ("cause=reset,conect-refused", "there is no cause \"conect-refused\" (did you mean connect-refused?)"),
            ("cause=", "there is no cause \"\"; expected"),
            ("status=404,x", "\"x\" is no status; expected one such as 404, or a class such as 5xx"),
            ("status=0xx", "\"0xx\" is no status"),
            ("cause=404", "404 is a status, and no failure: status=404"),
            ("status=1000", "\"1000\" is no status"),
            ("prefix=/forum", "\"/forum\": "),
            ("prefix=http://a.test/,", ""),
            (
                "statuses=404",
                "there is no choice \"statuses\" (did you mean status?); expected status=401,5xx, cause=NAME or prefix=URL",
            ),
            ("dns-failed", "expected status=401,5xx"),
        ] {
            match AskAgain::parse(text) {
                Err(error) => assert!(error.starts_with(why) && !why.is_empty(), "{text}: {error}"),
                Ok(_) => assert!(why.is_empty(), "{text}"),
            }
        }
    }
}
