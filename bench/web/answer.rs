//! Answers: the web's response to one request, as status, fields and body, without a connection.
//!
//! Decides: origins other than the canonical one redirect (301) with the path kept, also for robots.txt. Trap
//! addresses answer 200, so that following one shows up as a mistake and not as a dead link.
//! Invariants: pure; an answer's plain body does not depend on whether the client accepts gzip.
//! Leaves to others: HTTP framing (`connection`), counting (`watch`).

use super::faults::spot::Spot;
use super::faults::{ending, pages};
use super::gzip::Sink;
use super::model::Model;
use super::place::{Item, OriginVariant, Place};
use super::site::push_number;
use ringcrawl_url::Url;

/// A response without its body, which is written to a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// Content-Type.
    pub content_type: &'static str,
    /// Location of a redirect: absolute, or a path.
    pub location: Option<String>,
    /// Whether the body is gzip-coded.
    pub gzip: bool,
    /// Whether the site sends its bodies in chunks.
    pub chunked: bool,
}

impl Model {
    /// Answers a request for `place`; `None` is a host that is not of this web. Appends to `body`.
    pub fn answer(
        &self,
        place: Option<&Place>,
        path_and_query: &str,
        accepts_gzip: bool,
        body: &mut Vec<u8>,
    ) -> Answer {
        let mut answer =
            Answer { status: 404, content_type: "text/plain", location: None, gzip: false, chunked: false };
        let Some((place, site)) = place.and_then(|place| Some((place, self.site(place.site)?))) else {
            // RFC 9110 section 15.5.20: Misdirected Request.
            answer.status = 421;
            body.extend_from_slice(b"No such site here.\n");
            return answer;
        };
        if let Some((status, location)) = self.redirect(place, path_and_query) {
            answer.status = status;
            answer.location = Some(location);
            body.extend_from_slice(b"Moved.\n");
            return answer;
        }
        match place.item {
            Item::Page(page) => {
                answer.status = 200;
                answer.content_type = "text/html; charset=utf-8";
                answer.gzip = accepts_gzip && self.config().gzip;
                answer.chunked = site.chunked;
                let mut sink = Sink::new(body, answer.gzip);
                self.render(&site, page, &mut sink);
                sink.finish();
            }
            Item::Robots => {
                if let Some(text) = site.robots_txt() {
                    answer.status = 200;
                    body.extend_from_slice(text.as_bytes());
                }
            }
            Item::Trap(_) => {
                answer.status = 200;
                answer.content_type = "text/html; charset=utf-8";
                body.extend_from_slice(b"<!DOCTYPE html><title>Trap</title><p>There was no link to this page.\n");
            }
            Item::Fault(fault, spot) => {
                let missing = matches!(spot, Spot::Robots | Spot::Unknown | Spot::Chain(_));
                if missing {
                    body.extend_from_slice(b"Not here.\n");
                } else {
                    answer.status = 200;
                    answer.content_type = "text/html; charset=utf-8";
                    let html = ending::body(fault, spot).unwrap_or_else(|| pages::Parts::new(fault, spot, 0).whole());
                    body.extend_from_slice(&html);
                }
            }
            Item::Image => {
                answer.status = 200;
                answer.content_type = "image/gif";
                body.extend_from_slice(PIXEL);
            }
            _ => body.extend_from_slice(b"Not here.\n"),
        }
        answer
    }

    /// Status and Location of a place that redirects.
    fn redirect(&self, place: &Place, path_and_query: &str) -> Option<(u16, String)> {
        let site = self.site(place.site)?;
        let mut location = Vec::with_capacity(128);
        if place.variant != OriginVariant::Canonical {
            // http to https first, then to the main host, as real sites do.
            let variant = if place.variant == OriginVariant::PlainAlias {
                OriginVariant::Alias
            } else {
                OriginVariant::Canonical
            };
            let mut path = Vec::with_capacity(128);
            let label = self.push_path(&site, place.item, &mut path).unwrap_or(site.main_label());
            self.push_origin(&site, variant, label, &mut location);
            location.extend_from_slice(path_and_query.as_bytes());
            return Some((301, String::from_utf8(location).ok()?));
        }
        let (status, target) = match place.item {
            Item::Go(page) => (302, Item::Page(page)),
            Item::Old(page) => (301, Item::Page(page)),
            Item::Hop(0 | 1, page) => (307, Item::Page(page)),
            Item::Hop(hops, page) => {
                // A relative reference, as RFC 9110 section 10.2.2 allows.
                location.extend_from_slice(b"../");
                push_number(u64::from(hops - 1), &mut location);
                location.push(b'/');
                push_number(page, &mut location);
                return Some((302, String::from_utf8(location).ok()?));
            }
            Item::Fault(fault, spot) => (302, Item::Fault(fault, pages::redirect(fault, spot)?)),
            _ => return None,
        };
        self.push_url(&Place::canonical(place.site, target), &mut location)?;
        Some((status, String::from_utf8(location).ok()?))
    }

    /// Answers a GET of `url` with a plain body: for the truth, and for people who want to look.
    pub fn answer_url(&self, url: &Url, body: &mut Vec<u8>) -> Answer {
        self.answer(self.locate_url(url).as_ref(), url.path_and_query(), false, body)
    }
}

/// A transparent GIF of one pixel.
pub(super) const PIXEL: &[u8] =
    b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

#[cfg(test)]
mod tests {
    use super::super::model::ModelConfig;
    use super::*;

    #[test]
    fn redirects_end_at_the_page() {
        let model = Model::new(ModelConfig { https_share: 1.0, ..ModelConfig::default() }).unwrap();
        for variant in [OriginVariant::Canonical, OriginVariant::Plain, OriginVariant::Alias, OriginVariant::PlainAlias]
        {
            for item in [Item::Page(0), Item::Go(5), Item::Old(5), Item::Hop(4, 5), Item::Hop(1, 5)] {
                let mut url = model.url_of(&Place { site: 0, variant, item }).unwrap();
                let mut hops = 0;
                loop {
                    let mut body = Vec::new();
                    let answer = model.answer_url(&url, &mut body);
                    let Some(location) = answer.location else {
                        assert_eq!(answer.status, 200);
                        break;
                    };
                    url = url.join(&location).unwrap();
                    hops += 1;
                    assert!(hops <= 6);
                }
                let end = model.locate_url(&url).unwrap();
                assert!(end == Place::canonical(0, Item::Page(0)) || end == Place::canonical(0, Item::Page(5)));
            }
        }
    }

    #[test]
    fn statuses() {
        let model = Model::new(ModelConfig { https_share: 0.0, ..ModelConfig::default() }).unwrap();
        let status = |text: &str| model.answer_url(&Url::parse(text).unwrap(), &mut Vec::new()).status;
        let host = model.site(0).unwrap().hosts().remove(0);
        assert_eq!(status(&format!("http://{host}:8080/")), 200);
        assert_eq!(status(&format!("http://{host}:8080/nothing")), 404);
        assert_eq!(status(&format!("http://{host}:8080/missing/3.html")), 404);
        assert_eq!(status(&format!("http://{host}:8080/trap/3")), 200);
        assert_eq!(status(&format!("http://{host}:8080/img/3.gif")), 200);
        assert_eq!(status(&format!("http://{host}:8081/")), 421);
        assert_eq!(status("http://www.example.test:8080/"), 421);
        assert_eq!(status("http://s20.test:8080/"), 421);
    }
}
