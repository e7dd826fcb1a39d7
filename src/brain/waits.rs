//! What a shard waits for while there is nothing that it may do.
//!
//! Decides: each host with something to do waits for one thing, so a pause of the shard is divided among these in
//! proportion to their hosts. What holds all hosts at once, such as a full disk, gets the whole pause. A wait is
//! named after the configuration key that changes it, if there is one.
//! Invariants: it decides nothing.
//! Leaves to others: which host waits for what (`frontier`), what holds all (`shard`), how long a pause is (`pump`).

macro_rules! waits {
    ($($(#[doc = $doc:literal])+ $wait:ident = $name:literal,)+) => {
        /// Something to wait for.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        pub enum Wait { $($(#[doc = $doc])+ $wait,)+ }

        impl Wait {
            /// All of them, by their numbers.
            pub const ALL: &[Wait] = &[$(Wait::$wait,)+];

            /// Its name in tables and JSON.
            pub const fn as_str(self) -> &'static str {
                match self { $(Wait::$wait => $name,)+ }
            }
        }
    };
}

waits! {
    /// Responses of servers.
    Responses = "responses",
    /// Answers of name servers, or a lookup slot.
    Names = "dns",
    /// A robots.txt.
    Robots = "robots",
    /// The delay of a host, including that of its line.
    HostDelay = "host_delay",
    /// The extra delay for a slow last response.
    ResponseFactor = "response_factor",
    /// The delay that robots.txt asks for.
    CrawlDelay = "crawl_delay",
    /// A host that complained with 429 or 503: Retry-After, back-off, longer delays.
    Complaints = "retry_after",
    /// A retry of what failed.
    Retries = "retries",
    /// The hours of a host, or of the crawl.
    Hours = "hours",
    /// The turn of a site.
    SiteDelay = "site_delay",
    /// The turn of an address.
    AddressDelay = "ip_delay",
    /// The turn of an operator.
    OperatorDelay = "group_delay",
    /// Another shard's request to the same host.
    OtherShards = "other_shards",
    /// A fetch slot, or one within a site's share of them.
    InFlight = "in_flight_max",
    /// `crawl.hours`, `crawl.bandwidth_max` or `crawl.pages_max`.
    Allowance = "allowance",
    /// The disk, or the space on it.
    Disk = "disk",
    /// Our own network.
    Outage = "outage",
    /// The end of the run.
    Ending = "ending",
    /// URLs: there are none.
    Work = "work",
}

/// Number of waits.
pub const WAITS: usize = Wait::ALL.len();

/// How many hosts wait for what.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Waits([u32; WAITS]);

impl Waits {
    /// One thing, which all wait for.
    pub fn all_for(wait: Wait) -> Waits {
        let mut waits = Waits::default();
        waits.changed(None, Some(wait));
        waits
    }

    /// A host waits for something else.
    pub fn changed(&mut self, before: Option<Wait>, after: Option<Wait>) {
        let mut at = |wait: Option<Wait>, step: i32| {
            if let Some(count) = wait.and_then(|wait| self.0.get_mut(wait as usize)) {
                *count = count.saturating_add_signed(step);
            }
        };
        at(before, -1);
        at(after, 1);
    }

    /// How many hosts wait for `wait`.
    pub fn of(&self, wait: Wait) -> u32 {
        self.0.get(wait as usize).copied().unwrap_or_default()
    }

    /// These, or if no host waits, the wait for URLs.
    pub fn or_work(self) -> Waits {
        if self.0 == [0; WAITS] { Waits::all_for(Wait::Work) } else { self }
    }

    /// Adds a pause of `nanos` to the sums by number of the wait.
    pub fn divide(&self, nanos: u64, sums: &mut [u64; WAITS]) {
        let all = self.0.iter().map(|count| u64::from(*count)).sum::<u64>().max(1);
        for (sum, count) in sums.iter_mut().zip(self.0) {
            if count > 0 {
                *sum += (u128::from(nanos) * u128::from(count) / u128::from(all)) as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_divided_by_hosts() {
        let mut waits = Waits::default();
        for wait in [Wait::Responses, Wait::ResponseFactor, Wait::ResponseFactor, Wait::HostDelay] {
            waits.changed(None, Some(wait));
        }
        waits.changed(Some(Wait::HostDelay), None);
        let mut sums = [0; WAITS];
        waits.or_work().divide(300, &mut sums);
        Waits::default().or_work().divide(7, &mut sums);
        let at = |wait: Wait| sums[wait as usize];
        let expected = [100, 200, 0, 7];
        assert_eq!([Wait::Responses, Wait::ResponseFactor, Wait::HostDelay, Wait::Work].map(at), expected);
    }
}
