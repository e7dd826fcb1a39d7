//! Pages: the HTML of a page, written from its plan.
//!
//! Decides: a page is a head, and its links one after the other, with pieces of the pool between them so that the
//! page grows evenly to its planned size, and then a text of its own; one place in ten has noise. A canonical link
//! names the page itself and `rel=next` its first child, which is also linked plainly. Some pages have a `base`
//! element.
//! Invariants: the same model, site and page give the same bytes, plain or after decoding; UTF-8; every planned link
//! is written exactly once as `a` or `area`.
//! Limits: the size is the planned one, give or take a piece, and never less than its links need.

use super::draw::{Draw, Purpose};
use super::gzip::Sink;
use super::href::{Base, Speller};
use super::model::Model;
use super::place::{Item, Place, WORDS};
use super::site::{Site, push_number};

impl Model {
    /// Writes a page's HTML.
    pub(super) fn render(&self, site: &Site, page: u64, sink: &mut Sink) {
        let mut draw = Draw::new(self.config().rng_seed, Purpose::Render, u64::from(site.number), page);
        let directory = draw.one_in(32).then_some("/elsewhere/");
        self.head(site, page, directory, &mut draw, sink.fresh());
        let mut speller = Speller::new(self, Base::new(self, site, page, directory));
        let mut written = 0u64;
        let mut bytes = 0u64;
        self.plan(site, page, |extent, place| {
            bytes = extent.bytes;
            let fresh = sink.fresh();
            fresh.extend_from_slice(b"<li>");
            speller.element(&place, &mut draw, fresh);
            fresh.extend_from_slice(b"</li>\n");
            if draw.one_in(10) {
                self.push_noise(&mut draw, fresh);
            }
            written += 1;
            self.fill((bytes - own_text(bytes)) * written / extent.links.max(written), &mut draw, sink);
        });
        self.pool.own_text(own_text(bytes), &mut draw, sink.fresh());
        self.fill(bytes, &mut draw, sink);
        sink.fresh().extend_from_slice(b"</ul>\n</body>\n</html>\n");
    }

    fn head(&self, site: &Site, page: u64, directory: Option<&str>, draw: &mut Draw, out: &mut Vec<u8>) {
        out.extend_from_slice(b"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>");
        for _ in 0..3 {
            out.extend_from_slice(draw.pick(WORDS).as_bytes());
            out.push(b' ');
        }
        push_number(page, out);
        if draw.one_in(64) {
            out.extend_from_slice(b" <a href=\"/trap/3\">");
        }
        out.extend_from_slice(b"</title>\n");
        if let Some(directory) = directory {
            out.extend_from_slice(b"<base href=\"");
            out.extend_from_slice(directory.as_bytes());
            out.extend_from_slice(b"\">\n");
        }
        out.extend_from_slice(b"<link rel=\"canonical\" href=\"");
        self.push_link(site, page, out);
        out.extend_from_slice(b"\">\n");
        if let Some(next) = self.child(site, page, 0) {
            out.extend_from_slice(b"<link rel=\"next\" href=\"");
            self.push_link(site, next, out);
            out.extend_from_slice(b"\">\n");
        }
        out.extend_from_slice(b"</head>\n<body>\n<ul class=\"links\">\n");
    }

    /// Appends a page's absolute URL as an attribute's value.
    fn push_link(&self, site: &Site, page: u64, out: &mut Vec<u8>) {
        let mut url = Vec::with_capacity(128);
        if self.push_url(&Place::canonical(site.number, Item::Page(page)), &mut url).is_none() {
            return;
        }
        for byte in url {
            match byte {
                b'&' => out.extend_from_slice(b"&amp;"),
                byte => out.push(byte),
            }
        }
    }

    /// Adds pieces until the page is about `goal` bytes long: never more than half a piece short.
    fn fill(&self, goal: u64, draw: &mut Draw, sink: &mut Sink) {
        while sink.plain_bytes() + self.pool.mean_bytes / 2 < goal {
            let Some(piece) = self.pool.piece(draw) else { return };
            sink.piece(piece);
        }
    }
}

/// The length of unique text in a page of `bytes` bytes.
fn own_text(bytes: u64) -> u64 {
    (bytes * 3 / 8).min(OWN_TEXT_BYTES_MAX)
}

/// Most of a long page is common to all pages of its site.
const OWN_TEXT_BYTES_MAX: u64 = 4 << 10;

#[cfg(test)]
mod tests {
    use super::super::model::{ModelConfig, Profile};
    use super::*;
    use std::io::Read;

    fn render(model: &Model, site: u32, page: u64, gzip: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out, gzip);
        model.render(&model.site(site).unwrap(), page, &mut sink);
        sink.finish();
        out
    }

    #[test]
    fn pages_are_pure() {
        let config = ModelConfig { sites: 50, pages: 5_000, ..ModelConfig::default() };
        let model = Model::new(config.clone()).unwrap();
        let here: Vec<_> = (0..50).map(|page| render(&model, 0, page, false)).collect();
        let there = std::thread::spawn(move || {
            let model = Model::new(config).unwrap();
            (0..50).rev().map(|page| render(&model, 0, page, false)).collect::<Vec<_>>()
        });
        let mut there = there.join().unwrap();
        there.reverse();
        assert!(here == there);
        assert!(here[3] != here[4]);
        let other = Model::new(ModelConfig { rng_seed: 2, sites: 50, pages: 5_000, ..ModelConfig::default() }).unwrap();
        assert!(render(&other, 0, 3, false) != here[3]);
    }

    #[test]
    fn sizes_and_ratio_are_those_of_the_web() {
        let config = ModelConfig { sites: 50, pages: 50_000, profile: Profile::Web, ..ModelConfig::default() };
        let model = Model::new(config).unwrap();
        let (mut plain_bytes, mut gzip_bytes) = (0, 0);
        for page in 0..400 {
            let plain = render(&model, 0, page, false);
            let gzip = render(&model, 0, page, true);
            let mut decoded = Vec::new();
            flate2::read::GzDecoder::new(gzip.as_slice()).read_to_end(&mut decoded).unwrap();
            assert!(decoded == plain, "page {page}");
            plain_bytes += plain.len();
            gzip_bytes += gzip.len();
        }
        let ratio = plain_bytes as f64 / gzip_bytes as f64;
        assert!((165_000..190_000).contains(&(plain_bytes / 400)), "{}", plain_bytes / 400);
        assert!((5.0..6.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn small_pages_are_small() {
        let model = Model::new(ModelConfig { sites: 10, pages: 2_000, ..ModelConfig::default() }).unwrap();
        let total: usize = (0..500).map(|page| render(&model, 0, page, false).len()).sum();
        assert!((3_500..4_700).contains(&(total / 500)), "{}", total / 500);
    }

    /// Not a check but a measurement: run it optimized, with `--ignored --nocapture`.
    #[test]
    #[ignore = "prints how long a page takes"]
    fn page_cost() {
        for profile in [Profile::Small, Profile::Web] {
            let config = ModelConfig { sites: 50, pages: 100_000, profile, ..ModelConfig::default() };
            let model = Model::new(config).unwrap();
            let site = model.site(0).unwrap();
            for gzip in [false, true] {
                let mut out = Vec::new();
                let (mut bytes, mut plain_bytes) = (0, 0);
                let start = std::time::Instant::now();
                for page in 0..10_000 {
                    out.clear();
                    let mut sink = Sink::new(&mut out, gzip);
                    model.render(&site, page, &mut sink);
                    plain_bytes += sink.plain_bytes();
                    sink.finish();
                    bytes += out.len();
                }
                let micros = start.elapsed().as_secs_f64() * 100.0;
                println!(
                    "{profile:?} gzip={gzip}: {micros:.1} us, {} of {} bytes a page",
                    bytes / 10_000,
                    plain_bytes / 10_000
                );
            }
        }
    }
}
