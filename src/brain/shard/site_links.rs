//! Links between sites, which are counted where the site is that they lead to.
//!
//! Decides: a link to a URL in the scope, of another site than its page's, counts, whether the URL is new or not; so does a redirect.
//! What the finder has told lately it does not tell again. Each that told of another linking site is written down, so that counts
//! hold over restarts.
//! Limits: what was found since the last commit, and what was on its way to another shard, is lost with a kill: sites may have fewer
//! pages before others then, until they are linked to again. Advice (nofollow) does not travel with links to other hosts, so these
//! count, too.

use super::Shard;
use crate::backlinks::SiteLink;
use crate::frontier::LinkQuotas;
use ringcrawl_base::RecentHashes;
use ringcrawl_base::stage::{self, Stage};
use ringcrawl_base::time::Instant;
use ringcrawl_config::ExchangeMode;
use ringcrawl_url::{SiteKey, Url};

/// What a shard needs to count them; `None` in a shard that counts none.
#[derive(Debug, Default)]
pub struct FoundLinks {
    told: RecentHashes,
}

impl FoundLinks {
    /// Where they are counted.
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
