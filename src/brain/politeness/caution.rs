//! How careful we are with a host: by how much its delay exceeds the usual one.
//!
//! Decides: a new host starts at `politeness.slow_start` times its delay, until it has answered [`STRANGE_FOR`]
//! times.
//! Complaints are 429 and 503. For one URL, each costs one rest: that page alone may be broken. From the first
//! complaint that follows for another URL, each doubles the delay, and the rest too unless the server says how long
//! that should be. Forgiveness is slow, one doubling for [`FORGIVEN_AFTER`] responses without a complaint: a server
//! that got too many requests at one rate will again.
//! A complaint also follows another one if up to [`FOLLOWS_WITHIN`] responses came between. A limiter lets some
//! requests through, and a rest alone would only lead to the same rate again. Complaints for a URL that was tried
//! before are excepted: two broken pages are no limiter. Once other URLs were answered well, another complaint for
//! that URL costs nothing. Where the first few complaints in a row end with another page that is answered well, their
//! doublings are taken back.
//! Why jitter: hosts that fail together must not all be retried at the same instant.
//! Invariants: no delay is shorter than the usual one, and no rest shorter than its back-off.
//! Limits: a delay is doubled at most [`DOUBLINGS_MAX`] times, a rest ends within `politeness.backoff_max`.

use ringcrawl_base::time::Duration;
use ringcrawl_config::Politeness;

/// The caution that one host has earned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caution {
    /// Doublings that are not yet forgiven.
    overloads: u8,
    /// Complaints since the last response without one; consecutive complaints of one URL count once.
    in_row: u32,
    /// The URL of the last complaint, as a hash, and whether the one before was for another.
    of_url: u64,
    is_for_another: bool,
    /// Responses without a complaint since the last one, or since one was forgiven.
    fine: u8,
    /// Responses without a complaint until a new complaint no longer follows the last one.
    lately: u8,
    /// Responses until it is no longer new.
    strange_for: u8,
    /// Doublings of the current run of complaints, if none came shortly before it.
    of_first_row: u8,
    is_first_row: bool,
}

/// A response in which a host says that it gets too many requests.
#[derive(Clone, Copy, Debug)]
pub struct Complaint {
    /// The URL, as a hash.
    pub of_url: u64,
    /// Whether the URL was tried before.
    pub is_again: bool,
    /// Whether the URL is known to have complained before.
    pub is_of_page: bool,
    /// A random number, for the jitter.
    pub draw: u64,
}

impl Default for Caution {
    fn default() -> Caution {
        Caution::of_stranger()
    }
}

impl Caution {
    /// The caution for a host that never got a request.
    pub fn of_stranger() -> Caution {
        let fine = 0;
        Caution {
            overloads: 0,
            in_row: 0,
            of_url: 0,
            is_for_another: false,
            fine,
            lately: 0,
            strange_for: STRANGE_FOR,
            of_first_row: 0,
            is_first_row: false,
        }
    }

    /// The host answered without a complaint. `is_fine` says that this was a page: robots.txt and errors say little
    /// about load.
    pub fn answered(&mut self, is_fine: bool) {
        self.strange_for = self.strange_for.saturating_sub(1);
        if !is_fine {
            return;
        }
        if self.in_row <= BROKEN_MAX {
            self.overloads = self.overloads.saturating_sub(self.of_first_row);
        }
        (self.in_row, self.of_first_row) = (0, 0);
        self.lately = self.lately.saturating_sub(1);
        self.fine += 1;
        if self.fine >= FORGIVEN_AFTER || self.overloads == 0 {
            self.fine = 0;
            self.overloads = self.overloads.saturating_sub(1);
        }
    }

    /// The host says that it gets too many requests. Returns how long it rests, unless it says so itself.
    pub fn is_overloaded(&mut self, complaint: Complaint, politeness: &Politeness) -> Duration {
        let Complaint { of_url, is_again, is_of_page, draw } = complaint;
        let follows = self.lately > 0 && !is_again && of_url != self.of_url;
        // Other URLs were answered well since it complained: that page is broken.
        let is_of_page = is_of_page && self.in_row == 0;
        if self.in_row == 0 {
            self.is_first_row = self.lately == 0;
        }
        self.is_for_another = self.in_row > 0 && of_url != self.of_url;
        if self.in_row == 0 || self.is_for_another {
            (self.in_row, self.of_url) = (self.in_row.saturating_add(1), of_url);
        }
        if self.in_row > 1 || follows {
            let doubled = self.overloads.saturating_add(1).min(DOUBLINGS_MAX);
            self.of_first_row += if self.is_first_row { doubled - self.overloads } else { 0 };
            self.overloads = doubled;
        }
        if is_of_page {
            return Duration::ZERO;
        }
        (self.fine, self.lately) = (0, FOLLOWS_WITHIN);
        let wait = politeness.retry_delay * (1 << u32::from(self.overloads));
        let jitter = wait / JITTER * (draw % u64::from(JITTER)) as u32 / JITTER_PART;
        (wait + jitter).min(politeness.backoff_max.max(politeness.retry_delay))
    }

    /// Whether the complaint before the last one was for another URL, in a run longer than a few broken pages
    /// explain: then the host itself complains. One URL alone is not spared forever.
    pub fn is_of_host(&self) -> bool {
        self.is_for_another && self.in_row > BROKEN_MAX
    }

    /// Complaints since the last response without one; consecutive complaints of one URL count once.
    pub fn in_row(&self) -> u32 {
        self.in_row
    }

    /// Whether it is no longer new, and has nothing to be forgiven.
    pub fn is_at_ease(&self) -> bool {
        self.strange_for == 0 && self.is_forgiven()
    }

    /// Whether it has nothing to be forgiven.
    pub fn is_forgiven(&self) -> bool {
        self.in_row == 0 && self.overloads == 0
    }

    /// What must outlive the host in memory; nothing if it has not complained lately.
    pub fn to_remember(&self) -> Caution {
        if self.overloads > 0 { *self } else { Caution::of_stranger() }
    }

    /// How long to wait where `delay` is usual.
    pub fn stretch(&self, delay: Duration, politeness: &Politeness) -> Duration {
        let at_first = if self.strange_for > 0 { politeness.slow_start } else { 1 };
        (delay * at_first.max(1 << u32::from(self.overloads.min(DOUBLINGS_MAX)))).min(politeness.backoff_max.max(delay))
    }
}

/// Responses after which a host is no longer new.
const STRANGE_FOR: u8 = 2;
/// Responses without a complaint after which one earlier complaint is forgiven.
const FORGIVEN_AFTER: u8 = 16;
/// Complaints in a row that a few broken pages may explain, if another page is answered well after them.
const BROKEN_MAX: u32 = 4;
/// Longer than a doubling lasts; otherwise the first complaint after each would be forgotten.
const FOLLOWS_WITHIN: u8 = 64;
/// Doublings that count: up to 64 times a delay, or a rest.
const DOUBLINGS_MAX: u8 = 6;
/// Jitter extends a rest by up to a quarter, in 256 steps.
const JITTER: u32 = 256;
const JITTER_PART: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_config::Config;

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn politeness() -> Politeness {
        Politeness { retry_delay: seconds(10), backoff_max: seconds(3_600), ..Config::default().politeness }
    }

    fn of(url: u64) -> Complaint {
        Complaint { of_url: url, is_again: false, is_of_page: false, draw: 0 }
    }

    #[test]
    fn strangers_are_asked_less_often() {
        let (mut caution, politeness) = (Caution::of_stranger(), Politeness { slow_start: 3, ..politeness() });
        let delays = [0; 4].map(|_| {
            let delay = caution.stretch(seconds(1), &politeness);
            caution.answered(true);
            delay
        });
        assert_eq!(delays, [3, 3, 1, 1].map(seconds));
    }

    #[test]
    fn rests_double_and_are_forgiven_slowly() {
        let (mut caution, politeness) = (Caution::of_stranger(), politeness());
        (0..2).for_each(|_| caution.answered(true));
        let rests = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|url| caution.is_overloaded(of(url), &politeness));
        assert_eq!(rests, [10, 20, 40, 80, 160, 320, 640, 640, 640].map(seconds));
        assert_eq!(caution.stretch(seconds(1), &politeness), seconds(64));
        let mut delays = Vec::new();
        for _ in 0..7 * 16 {
            caution.answered(true);
            delays.push(caution.stretch(seconds(1), &politeness));
        }
        delays.dedup();
        assert_eq!(delays, [64, 32, 16, 8, 4, 2, 1].map(seconds));
        (0..15).for_each(|_| caution.answered(true));
        assert_eq!(
            [0; 3].map(|_| caution.is_overloaded(of(7), &politeness)),
            [seconds(10); 3],
            "all is forgiven; one page"
        );
    }

    /// A limiter that lets every other request through; a broken page, and another page.
    #[test]
    fn complaints_follow_each_other_over_responses_between() {
        let (mut caution, politeness) = (Caution::of_stranger(), politeness());
        let mut rests = Vec::new();
        for url in 1..9 {
            rests.push(caution.is_overloaded(of(url), &politeness));
            (0..15).for_each(|_| caution.answered(true));
        }
        assert_eq!(rests, [10, 20, 40, 80, 160, 320, 640, 640].map(seconds));
        assert!(!caution.is_of_host(), "each costs its URL a try: the next one may be let through");
        let mut caution = Caution::of_stranger();
        for url in [1, 2, 1, 2, 1, 2] {
            let rest = caution.is_overloaded(Complaint { is_again: true, is_of_page: true, ..of(url) }, &politeness);
            assert_eq!(rest, seconds(0), "others were answered well since");
            caution.answered(true);
        }
        assert_eq!(caution.stretch(seconds(1), &politeness), seconds(1));
    }

    /// Some links to a broken script come in a row: the page after them shows that the host is well.
    #[test]
    fn a_few_broken_pages_double_nothing_for_long() {
        let politeness = politeness();
        for (broken, stretched) in [(1, 1), (3, 1), (4, 1), (5, 16)] {
            let mut caution = Caution::of_stranger();
            (0..4).for_each(|_| caution.answered(true));
            (0..broken).for_each(|url| _ = caution.is_overloaded(of(url), &politeness));
            caution.answered(true);
            assert_eq!(caution.stretch(seconds(1), &politeness), seconds(stretched), "{broken}");
            // The next row is no accident.
            (0..2).for_each(|url| _ = caution.is_overloaded(of(90 + url), &politeness));
            caution.answered(true);
            assert!(caution.stretch(seconds(1), &politeness) >= seconds(4), "{broken}");
        }
    }

    #[test]
    fn rests_differ_by_a_quarter_at_most_and_have_an_end() {
        let politeness = politeness();
        let rests =
            (0..1_000).map(|draw| Caution::of_stranger().is_overloaded(Complaint { draw, ..of(1) }, &politeness));
        let (mut least, mut most) = (seconds(100), Duration::ZERO);
        rests.for_each(|rest| (least, most) = (least.min(rest), most.max(rest)));
        assert!(
            least == seconds(10) && most > seconds(12) && most < Duration::from_millis(12_500),
            "{least:?} {most:?}"
        );
        let short = Politeness { backoff_max: seconds(60), ..politeness };
        let mut caution = Caution::of_stranger();
        assert_eq!(
            [1, 2, 3, 4, 5].map(|url| caution.is_overloaded(Complaint { draw: 255, ..of(url) }, &short)).last(),
            Some(&seconds(60))
        );
        assert_eq!(caution.stretch(seconds(30), &short), seconds(60));
        assert_eq!(caution.stretch(seconds(90), &short), seconds(90), "no delay is shorter than the usual one");
        assert_eq!(caution.stretch(Duration::ZERO, &short), Duration::ZERO, "of one's own servers");
    }
}
