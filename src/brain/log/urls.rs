//! The URL log's entries: URLs that a shard accepted, and those that it had no room for.
//!
//! An accepted URL's number is its place in the log: the first of the shard is 0. Everything else refers to it by
//! this number.
//! The payload of a block: the length of the accepted ones in bytes, these themselves, and the others, both as
//! [`UrlBatch`] with the page that linked to them first. Older versions did not record that page.

use super::number;
use ringcrawl_url::UrlBatch;

/// The content of one block.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UrlEntries {
    /// URLs that the visited set took in, to be fetched.
    pub accepted: UrlBatch,
    /// URLs that the visited set had no room for.
    pub aside: UrlBatch,
}

impl UrlEntries {
    /// The size of its content in bytes.
    pub fn bytes(&self) -> usize {
        self.accepted.as_bytes().len() + self.aside.as_bytes().len()
    }

    /// The payload.
    pub fn to_payload(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(self.bytes() + 4);
        number::put(&mut payload, self.accepted.as_bytes().len() as u64);
        payload.extend_from_slice(self.accepted.as_bytes());
        payload.extend_from_slice(self.aside.as_bytes());
        payload
    }

    /// Parses a payload; `None` if it is invalid.
    pub fn from_payload(mut payload: &[u8]) -> Option<UrlEntries> {
        let accepted_bytes = number::take(&mut payload)?;
        let accepted = UrlBatch::from_bytes(number::take_bytes(&mut payload, accepted_bytes)?.to_vec())?;
        let aside = UrlBatch::from_bytes(payload.to_vec())?;
        Some(UrlEntries { accepted, aside })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Log, Owner};
    use super::*;
    use ringcrawl_base::Rng;
    use ringcrawl_url::FoundUrl;

    #[test]
    fn there_and_back() {
        let mut entries = UrlEntries::default();
        assert_eq!(UrlEntries::from_payload(&entries.to_payload()), Some(entries.clone()));
        entries.accepted.push(0, "http://a.test/");
        entries.accepted.push(4, "http://a.test/b");
        entries.aside.push(9, "http://c.test/");
        let payload = entries.to_payload();
        assert_eq!(UrlEntries::from_payload(&payload), Some(entries));
        let mut cuts = (0..payload.len()).filter_map(|cut| UrlEntries::from_payload(&payload[..cut]));
        assert_eq!(cuts.next().map(|cut| (cut.accepted.len(), cut.aside.len())), Some((2, 0)), "between the two");
        assert_eq!(cuts.next(), None);
    }

    /// The cost of recording which page linked to a URL first: on sites whose pages have forty links, six of them
    /// new.
    #[test]
    fn a_page_that_links_costs_few_bytes_a_url() {
        let block = |is_told: bool| {
            let (mut log, mut rng) = (Log::new(Owner { crawl: 1, shard: 0 }, 1, 0), Rng::new(5));
            for page in 0..4_000_u64 {
                let site = format!("https://www.site-{}.example/", rng.below(300));
                let section = ["articles", "products", "people", "news/archive"][rng.index(4)];
                let via = format!("{site}{section}/{}-{:x}.html", page, rng.below(1 << 32));
                for link in 0..6 {
                    let url = format!("{site}{section}/{}-{:x}.html", 10 * page + link, rng.below(1 << 32));
                    log.accept(FoundUrl { via: Some(&*via).filter(|_| is_told), depth: 3, url: &url });
                }
            }
            std::iter::from_fn(|| log.take_append(true)).map(|append| append.bytes.len()).sum::<usize>()
        };
        let (without, with) = (block(false) as f64 / 24_000.0, block(true) as f64 / 24_000.0);
        println!("{without:.1} bytes a URL, {with:.1} where pages are told");
        assert!(with - without < 6.0 && with > without, "{without} {with}");
    }
}
