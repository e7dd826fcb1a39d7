//! What a page and its site's robots.txt say about the use of the page.
//!
//! Decides: all statements count, the stricter where two differ ([`ringcrawl_base::preferences`]). The source nearest
//! to the page names the licence and the conditions: a header field, then the page, then robots.txt. An image itself
//! speaks about its use for training (`noimageai`); on a page this is about images, which are other URLs.
//! Invariants: pure; it triggers no fetch, and `/.well-known/tdmrep.json` is never requested.
//! Limits: addresses of 512 bytes; longer ones are left out, and the page still counts as licensed.

use ringcrawl_base::preferences::{Preferences, Use};
use ringcrawl_html::{Summary, license_of};
use ringcrawl_http::Headers;
use ringcrawl_robots::Usage;
use ringcrawl_url::{Url, text_of_bytes};

/// The statements.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Said {
    /// By categories.
    pub preferences: Preferences,
    /// Where the licence lies (RSL).
    pub license: Option<Box<str>>,
    /// Where the conditions of mining are (TDMRep).
    pub tdm_policy: Option<Box<str>>,
}

impl Said {
    /// The statements about the response to `url` with these fields, an image or not, whose body yields `summary`,
    /// and whose robots.txt says `usage`.
    pub fn of(url: &Url, headers: &Headers, is_image: bool, summary: Option<&Summary>, usage: Option<&Usage>) -> Said {
        let mut said = Said::default();
        // Fields of one name are one list (RFC 9651 section 4.2).
        let mut dictionary = Vec::new();
        let mut has_links = false;
        for (name, value) in headers.iter() {
            let is = |written: &str| name.eq_ignore_ascii_case(written.as_bytes());
            match name.len() {
                4 => has_links |= is("link"),
                10 if is("tdm-policy") => {
                    let text = text_of_bytes(value);
                    said.tdm_policy = said.tdm_policy.or_else(|| is_address(&text).then(|| Box::from(text)));
                }
                13 if is("content-usage") => {
                    if !dictionary.is_empty() {
                        dictionary.extend_from_slice(b", ");
                    }
                    dictionary.extend_from_slice(value);
                }
                14 if is("content-signal") => said.preferences.add(Preferences::of_signals(value)),
                15 if is("tdm-reservation") => said.preferences.add(Preferences::of_tdm_reservation(value)),
                _ => {}
            }
        }
        if !dictionary.is_empty() {
            said.preferences.add(Preferences::of_dictionary(&dictionary));
        }
        if has_links && let Some(license) = license_of(headers.all("link"), url) {
            said.license = Some(license.as_str().into());
            said.preferences.add(Preferences::of(Use::License, false));
        }
        if let Some(summary) = summary {
            if summary.robots.noai || summary.robots.noimageai && is_image {
                said.preferences.add(Preferences::of(Use::TrainAi, false));
            }
            said.preferences.add(summary.tdm);
            let policy = || summary.tdm_policy.as_deref().filter(|text| is_address(text)).map(Box::from);
            said.tdm_policy = said.tdm_policy.or_else(policy);
        }
        if let Some(usage) = usage {
            said.preferences.add(usage.preferences);
            said.license = said.license.or_else(|| usage.license.clone());
        }
        said
    }
}

/// Whether it may appear in a record.
fn is_address(text: &str) -> bool {
    text.len() <= ADDRESS_BYTES_MAX && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Bytes of the longest address that is kept.
const ADDRESS_BYTES_MAX: usize = 512;
