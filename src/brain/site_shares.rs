//! How much of a bounded resource one site holds, and how much it may hold.
//!
//! Decides: a site may hold `times` as much as is free. So a site may have more as others leave room, and one that
//! takes all it can get leaves one part of `times + 1` free. `k` such sites leave one of `k × times + 1` if they come
//! together, and one of `(times + 1)^k` if each comes after the one before has all that it can get.
//! Counts are in a fixed array, at slots chosen by the site's key. Two sites in one slot count as one, which matters
//! only to small sites when hardly anything is free; outsiders cannot force it on a certain site.
//! Invariants: what is taken is given back.
//! Limits: 4 bytes a slot, always. An owner of many registrable domains gets a share for each.

use ringcrawl_url::SiteKey;

/// How much each site holds.
#[derive(Debug)]
pub struct SiteShares {
    held: Box<[u32]>,
    times: u64,
}

impl SiteShares {
    /// No site holds anything, and a site may hold `times` as much as is free; counted in `places` slots.
    pub fn new(places: usize, times: u64) -> SiteShares {
        SiteShares { held: vec![0; places.max(1)].into(), times }
    }

    /// Whether `site` may have one more while `free` are free.
    pub fn may_take(&self, site: SiteKey, free: u64) -> bool {
        u64::from(self.held_by(site)) < self.times.saturating_mul(free)
    }

    /// Whether any site can be over its share while `free` are free and `held` are not.
    pub fn may_be_over(&self, held: u64, free: u64) -> bool {
        held >= self.times.saturating_mul(free)
    }

    /// `site` has one less.
    pub fn gave_back(&mut self, site: SiteKey) {
        let held = &mut self.held[site.place_among(self.held.len())];
        assert!(*held > 0, "a site gives back what it does not have");
        *held -= 1;
    }

    /// `site` holds `after` more and `before` less.
    pub fn changed(&mut self, site: SiteKey, before: u32, after: u32) {
        let held = &mut self.held[site.place_among(self.held.len())];
        *held = held.saturating_sub(before).saturating_add(after);
    }

    /// What `site` holds.
    pub fn held_by(&self, site: SiteKey) -> u32 {
        self.held[site.place_among(self.held.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(number: usize) -> SiteKey {
        SiteKey::of_host(7, &format!("s{number}.test"))
    }

    /// What is left of 10,000 when each of `sites` sites has as much as it may have: in turns, or one after the
    /// other.
    fn left_by(sites: usize, times: u64, in_turns: bool) -> u64 {
        let mut shares = SiteShares::new(1 << 16, times);
        let mut free = 10_000;
        let mut next = 0;
        let mut refused = 0;
        while refused < sites {
            if shares.may_take(site(next), free) {
                shares.changed(site(next), 0, 1);
                (free, refused) = (free - 1, 0);
                next = (next + usize::from(in_turns)) % sites;
            } else {
                (next, refused) = ((next + 1) % sites, refused + 1);
            }
        }
        free
    }

    #[test]
    fn some_is_left_for_others_whatever_a_few_take() {
        assert_eq!([left_by(1, 3, true), left_by(2, 3, true), left_by(5, 3, true)], [2_500, 1_428, 625]);
        assert_eq!([left_by(1, 3, false), left_by(2, 3, false), left_by(5, 3, false)], [2_500, 625, 9]);
        assert_eq!([left_by(1, 15, true), left_by(3, 15, true)], [625, 217]);
        assert_eq!(left_by(0, 3, true), 10_000);
    }

    #[test]
    fn what_is_given_back_can_be_taken_again() {
        let mut shares = SiteShares::new(64, 3);
        (0..3).for_each(|_| shares.changed(site(0), 0, 1));
        assert!(!shares.may_take(site(0), 1) && shares.may_take(site(0), 2));
        assert!(!shares.may_take(site(1), 0), "nothing is free");
        shares.gave_back(site(0));
        assert!(shares.may_take(site(0), 1));
        assert!(shares.may_be_over(3, 1) && !shares.may_be_over(2, 1));
    }
}
