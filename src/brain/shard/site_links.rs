//! Links between sites, which are counted on the shard of the site that they lead to.
//!
//! Decides: a link counts if it leads to a URL in the scope and to another site than its page's, whether the URL is
//! new or not. Redirects count, too. The finder does not report again what it has reported recently. Each report of
//! another linking site is logged, so that counts survive restarts.
//! Limits: a kill loses what was found since the last commit and what was on its way to another shard. Sites may then
//! have fewer pages ahead of others until they are linked to again. Advice (nofollow) does not travel with links to
//! other hosts, so these count, too.

use super::Shard;
use crate::backlinks::SiteLink;
use crate::frontier::LinkQuotas;
use ringcrawl_base::RecentHashes;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::Instant;
use ringcrawl_config::ExchangeMode;
use ringcrawl_url::{SiteKey, Url};

/// What a shard needs to count them; `None` in a shard that does not count them.
#[derive(Debug, Default)]
pub struct FoundLinks {
    told: RecentHashes,
}

impl FoundLinks {
    /// For a shard of a crawl that counts them.
    pub(super) fn of(allowances: &LinkQuotas) -> Option<FoundLinks> {
        allowances.are_set().then(FoundLinks::default)
    }
}

impl Shard {
    /// A page of the site `from` links to a URL that shard `owner` has.
    pub(super) fn linked(&mut self, now: Instant, from: SiteKey, url: &Url, owner: u16) {
        let Some(found) = &mut self.found_links else { return };
        let _stage = stage::enter(Stage::Exchange);
        let to = self.keys.site(self.sites.of(url.host()).name);
        let Some(link) = SiteLink::new(from, to) else { return };
        if owner == self.index {
            self.count_link(now, link);
        } else if self.mode == ExchangeMode::Exchange
            && self.lanes.has_room_for_link(owner)
            && !found.told.is_again(link.number())
        {
            self.lanes.link(now, owner, link);
        }
    }

    /// Another shard found such links.
    pub(super) fn receive_links(&mut self, now: Instant, from: u16, bytes: &[u8]) {
        let Some(links) = SiteLink::all_from_bytes(bytes) else { panic!("shard {from} sent links that are none") };
        links.for_each(|link| self.count_link(now, link));
    }

    fn count_link(&mut self, now: Instant, link: SiteLink) {
        if self.frontier.linked(link) {
            let _stage = stage::enter(Stage::Journal);
            self.log.note_link(link);
            self.commits.note(now);
        }
    }
}
