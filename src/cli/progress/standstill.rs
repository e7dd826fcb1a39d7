//! Explains why nothing happens in a crawl, if the cause is known.
//!
//! Decides: the crawl's own report comes first (an outage, a full disk); then name servers that do not answer; then
//! hosts that wait for another try, and what went wrong with one of them. Last come hosts that all wait for their
//! delay, for their hours, or until they or kinds of their URLs need no longer be left alone.
//! Invariants: a standstill is not reported until it has lasted for [`SILENT_MIN`].

use ringcrawl_base::grouped;
use ringcrawl_base::time::Duration;
use ringcrawl_brain::stats::Totals;

/// Observations of a crawl in which nothing may happen.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    /// Answers from name servers, and the queries sent before the last of them.
    dns_answers: u64,
    dns_queries: u64,
    /// Since when there has been no further answer although names were queried.
    silent_since: Option<Duration>,
    /// Responses, failures, connections and queries at the last look.
    happened: u64,
    /// Since when nothing has happened or been in flight although hosts have URLs left.
    still_since: Option<Duration>,
    /// What makes fetching wait, if anything does.
    told: Option<String>,
    /// The last failure at a host that has not recovered since.
    trouble: Option<String>,
}

impl Standstill {
    /// Takes what the crawl reports as holding up fetching, and the last failure.
    pub(super) fn tell(&mut self, told: Option<String>, trouble: Option<String>) {
        (self.told, self.trouble) = (told, trouble);
    }

    /// Updates from the totals after `elapsed`.
    pub(super) fn look(&mut self, totals: &Totals, elapsed: Duration) {
        if totals.dns_answers != self.dns_answers {
            (self.dns_answers, self.dns_queries) = (totals.dns_answers, totals.dns_queries);
            self.silent_since = None;
        }
        // Between two tries of the only name no lookup is in flight, and there is still no answer.
        if totals.lookups > 0 || totals.dns_queries > self.dns_queries {
            self.silent_since.get_or_insert(elapsed);
        }
        let happened = totals.responses + totals.failed() + totals.connections + totals.dns_queries;
        let nothing_happened = std::mem::replace(&mut self.happened, happened) == happened;
        let is_still = nothing_happened && totals.in_flight + totals.lookups == 0 && totals.hosts_left > 0;
        self.still_since = if is_still { self.still_since.or(Some(elapsed)) } else { None };
    }

    /// What holds the crawl up, if known.
    pub(super) fn cause(&self, totals: &Totals, elapsed: Duration) -> Option<String> {
        let lasts = |since: Option<Duration>| Some(elapsed.saturating_sub(since?)).filter(|time| *time >= SILENT_MIN);
        if self.told.is_some() {
            return self.told.clone();
        }
        if let Some(silent) = lasts(self.silent_since) {
            let (seconds, lookups) = (silent.as_secs(), grouped(totals.lookups));
            return Some(format!("no name server has answered for {seconds} s ({lookups} lookups in flight)"));
        }
        let trouble = self.trouble.as_ref().filter(|_| totals.hosts_retried > 0);
        lasts(self.still_since).map(|_| match (totals.hosts_left, trouble) {
            (1, Some(trouble)) => trouble.clone(),
            (hosts, Some(trouble)) => {
                let retried = totals.hosts_retried.min(hosts);
                format!("{} of the {} remaining hosts wait for a retry: {trouble}", grouped(retried), grouped(hosts))
            }
            (1, None) => "the only remaining host waits for its delay, its hours, or the end of a rest".to_owned(),
            (hosts, None) => {
                let hosts = grouped(hosts);
                format!("all {hosts} remaining hosts wait for their delays, their hours, or the end of a rest")
            }
        })
    }
}

/// Silence of name servers shorter than this is not reported: it is longer than a lookup should take.
const SILENT_MIN: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    /// The text after `seconds` seconds.
    fn said(standstill: &mut Standstill, seconds: u64, totals: &Totals) -> String {
        standstill.look(totals, Duration::from_secs(seconds));
        standstill.cause(totals, Duration::from_secs(seconds)).unwrap_or_default()
    }

    #[test]
    fn silent_name_servers_are_told_of() {
        let mut standstill = Standstill::default();
        let waiting = |dns_answers| Totals { lookups: 1_200, dns_answers, dns_queries: 5_000, ..Totals::default() };
        let mut said = |seconds, totals: &Totals| said(&mut standstill, seconds, totals);
        said(0, &Totals::default());
        assert_eq!(said(5, &waiting(7)), "", "they answered just now");
        assert_eq!(said(10, &waiting(7)), "no name server has answered for 5 s (1,200 lookups in flight)");
        assert_eq!(said(15, &waiting(8)), "");
        // The name will be queried again later; no lookup is in flight, and no server has answered.
        let between = Totals { lookups: 0, dns_queries: 5_003, ..waiting(8) };
        assert_eq!(said(20, &between), "no name server has answered for 5 s (0 lookups in flight)");
        assert_eq!(said(25, &Totals::default()), "", "no host is asked");
    }

    #[test]
    fn it_says_why_nothing_happens() {
        let mut standstill = Standstill::default();
        let still = |hosts_left| Totals { in_flight: 0, hosts_left, ..Totals::default() };
        said(&mut standstill, 0, &Totals::default());
        assert_eq!(said(&mut standstill, 5, &still(3)), "", "not for long");
        assert_eq!(
            said(&mut standstill, 10, &still(3)),
            "all 3 remaining hosts wait for their delays, their hours, or the end of a rest"
        );
        assert_eq!(
            said(&mut standstill, 15, &still(1)),
            "the only remaining host waits for its delay, its hours, or the end of a rest"
        );
        standstill.tell(Some("the network is down".to_owned()), Some("a.test: connection refused".to_owned()));
        assert_eq!(said(&mut standstill, 20, &still(1)), "the network is down");
        standstill.tell(None, Some("a.test: connection refused, try 2 of 5 in 9 min".to_owned()));
        assert_eq!(
            said(&mut standstill, 21, &still(1)),
            "the only remaining host waits for its delay, its hours, or the end of a rest",
            "it waits for no other try"
        );
        let retried = |hosts_left, hosts_retried| Totals { hosts_retried, ..still(hosts_left) };
        assert_eq!(
            said(&mut standstill, 22, &retried(1, 1)),
            "a.test: connection refused, try 2 of 5 in 9 min",
            "the true reason"
        );
        assert_eq!(
            said(&mut standstill, 23, &retried(3, 2)),
            "2 of the 3 remaining hosts wait for a retry: a.test: connection refused, try 2 of 5 in 9 min"
        );
        standstill.tell(None, None);
        assert_eq!(said(&mut standstill, 25, &Totals { in_flight: 1, ..still(1) }), "");
        for (seconds, responses) in [(30, 1), (35, 2), (40, 3)] {
            assert_eq!(said(&mut standstill, seconds, &Totals { responses, ..still(1) }), "", "answers came meanwhile");
        }
    }
}
