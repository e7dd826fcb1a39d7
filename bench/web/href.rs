//! References: the many ways in which HTML can name one place; all of them mean its canonical URL.
//!
//! Decides: spellings are drawn from what the URL and HTML standards allow: relative, root-relative, without scheme,
//! absolute; fragments, dot segments, upper-case schemes and hosts, backslashes, tabs, surrounding spaces, raw
//! non-ASCII, explicit ports; entities, single or no quotes, upper-case tags, doubled attributes. Most are plain.
//! Invariants: resolved against the page's base by the WHATWG URL standard, after HTML attribute decoding, every
//! spelling gives the canonical URL of its place (without the fragment).
//! Limits: about 250 bytes a link.

use super::draw::Draw;
use super::model::Model;
use super::noise;
use super::place::{Item, OriginVariant, Place, WORDS, origin_of};
use super::site::{HostLabel, Site, push_number};
use ringcrawl_url::Scheme;

/// The base of a page's references.
#[derive(Debug)]
pub(super) struct Base {
    site: Site,
    page: u64,
    scheme: Scheme,
    label: HostLabel,
    /// Path including its last slash.
    directory: Vec<u8>,
    /// Whether a `base` element moved it away from the page.
    moved: bool,
}

impl Base {
    /// The base of a page, moved to `directory` if that is given.
    pub fn new(model: &Model, site: &Site, page: u64, directory: Option<&str>) -> Base {
        let mut path = Vec::with_capacity(96);
        let label = model.push_path(site, Item::Page(page), &mut path).unwrap_or(site.main_label());
        let scheme = if site.https { Scheme::Https } else { Scheme::Http };
        let moved = directory.is_some();
        if let Some(directory) = directory {
            path.clear();
            path.extend_from_slice(directory.as_bytes());
        }
        path.truncate(directory_end(&path));
        Base { site: *site, page, scheme, label, directory: path, moved }
    }
}

/// Writes links; reuses its buffers from one to the next.
#[derive(Debug)]
pub(super) struct Speller<'a> {
    model: &'a Model,
    base: Base,
    path: Vec<u8>,
    raw: Vec<u8>,
}

impl<'a> Speller<'a> {
    /// A speller for the links of one page.
    pub fn new(model: &'a Model, base: Base) -> Speller<'a> {
        Speller { model, base, path: Vec::with_capacity(128), raw: Vec::with_capacity(256) }
    }

    /// Appends an element that links to `place`, with its text.
    pub fn element(&mut self, place: &Place, draw: &mut Draw, out: &mut Vec<u8>) {
        if self.reference(place, draw).is_none() {
            return;
        }
        let bare = !self.raw.is_empty() && !self.raw.iter().any(|byte| byte.is_ascii_whitespace());
        let (before, after): (&[u8], &[u8]) = match draw.below(64) {
            0 => (b"<a href='", b"'>"),
            1 if bare => (b"<a class=menu href=", b">"),
            2 => (b"<A HREF=\"", b"\">"),
            3 => (b"<a\nclass=\"more\"\thref = \"", b"\" >"),
            4 => (b"<a href=\"", b"\" href=\"/trap/2\">"),
            5 => (b"<a title=\"a > b\" href=\"", b"\"rel=external>"),
            6 => {
                // Void, without text.
                out.extend_from_slice(b"<area shape=rect href=\"");
                self.encode(draw, out);
                out.extend_from_slice(b"\"/>");
                return;
            }
            7..=20 => (b"<a class=\"link link--more\" href=\"", b"\">"),
            _ => (b"<a href=\"", b"\">"),
        };
        out.extend_from_slice(before);
        self.encode(draw, out);
        out.extend_from_slice(after);
        out.extend_from_slice(draw.pick(WORDS).as_bytes());
        out.extend_from_slice(b"</a>");
    }

    /// Writes a reference to `place` into `raw`, before HTML encoding.
    fn reference(&mut self, place: &Place, draw: &mut Draw) -> Option<()> {
        let base = &self.base;
        let site = if place.site == base.site.number { base.site } else { self.model.site(place.site)? };
        self.path.clear();
        self.raw.clear();
        let item_label = self.model.push_path(&site, place.item, &mut self.path)?;
        let (scheme, label) = origin_of(&site, place.variant, item_label);
        let same_origin = place.site == base.site.number && label == base.label && scheme == base.scheme;
        let bits = draw.bits();
        let style = bits % 100;
        // One reference in six is odd in one way.
        let oddity = if (bits >> 8).is_multiple_of(6) { Some((bits >> 16) % 12) } else { None };

        if same_origin
            && style < 2
            && !base.moved
            && place.item == Item::Page(base.page)
            && place.variant == OriginVariant::Canonical
        {
            self.raw.push(b'#');
            self.raw.extend_from_slice(draw.pick(WORDS).as_bytes());
            return Some(());
        }
        if same_origin && (45..80).contains(&style) {
            push_relative(&base.directory, &self.path, &mut self.raw);
            if oddity == Some(0) {
                self.raw.splice(0..0, *b"./");
            }
        } else {
            let authority_start = if same_origin && style < 80 {
                None
            } else if scheme == base.scheme && style > 92 {
                self.raw.extend_from_slice(b"//");
                Some(0)
            } else {
                let text: &[u8] = match (scheme, oddity) {
                    (Scheme::Http, Some(1)) => b"HTTP://",
                    (Scheme::Http, _) => b"http://",
                    (Scheme::Https, Some(1)) => b"HttpS://",
                    (Scheme::Https, _) => b"https://",
                };
                self.raw.extend_from_slice(text);
                Some(0)
            };
            if authority_start.is_some() {
                let host_start = self.raw.len();
                site.push_host(label, &mut self.raw);
                if oddity == Some(2) {
                    self.raw.get_mut(host_start..)?.make_ascii_uppercase();
                }
                let (port, is_default) = self.model.port(scheme);
                if !is_default || oddity == Some(3) {
                    // Leading zeros belong to the grammar of ports (URL standard, port state).
                    self.raw.extend_from_slice(if oddity == Some(3) { b":0" } else { b":" });
                    push_number(u64::from(port), &mut self.raw);
                }
            }
            match oddity {
                Some(0) => self.raw.extend_from_slice(b"/."),
                Some(4) => self.raw.extend_from_slice(b"/old/.."),
                Some(5) => self.raw.extend_from_slice(b"/x/%2e%2E"),
                _ => {}
            }
            let path_start = self.raw.len();
            if self.path != b"/" || authority_start.is_none() || oddity.is_some() || bits >> 60 != 0 {
                self.raw.extend_from_slice(&self.path);
            }
            if oddity == Some(6) && authority_start.is_some() {
                let path = self.raw.get_mut(path_start..)?;
                path.iter_mut()
                    .take_while(|byte| **byte != b'?')
                    .filter(|byte| **byte == b'/')
                    .for_each(|byte| *byte = b'\\');
            }
        }
        match oddity {
            Some(7..=9) => {
                self.raw.push(b'#');
                self.raw.extend_from_slice(draw.pick(WORDS).as_bytes());
            }
            Some(10) => {
                self.raw.insert(0, b' ');
                self.raw.extend_from_slice(b"\n ");
            }
            Some(11) => {
                let middle = self.raw.len() / 2;
                self.raw.insert(middle, if bits >> 63 == 0 { b'\t' } else { b'\n' });
            }
            _ => {}
        }
        Some(())
    }

    /// Appends `raw` as an attribute's value.
    fn encode(&self, draw: &mut Draw, out: &mut Vec<u8>) {
        let choice = draw.below(64);
        if choice > 1 && !self.raw.iter().any(|byte| matches!(byte, b'&' | b'%')) {
            out.extend_from_slice(&self.raw);
            return;
        }
        let mut rest = self.raw.as_slice();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            match first {
                b'&' => out.extend_from_slice(match choice {
                    0..8 => b"&#38;",
                    8..12 => b"&#x26;",
                    // An ambiguous ampersand is itself (HTML standard, named character reference state).
                    12..16 => b"&",
                    _ => b"&amp;",
                }),
                b'/' if choice == 0 => out.extend_from_slice(b"&#x2F;"),
                b'/' if choice == 1 => out.extend_from_slice(b"&sol;"),
                b'%' if choice.is_multiple_of(2) && after.starts_with(b"C3%A9") => {
                    rest = after.get(5..).unwrap_or_default();
                    out.extend_from_slice(if choice.is_multiple_of(4) { "é".as_bytes() } else { b"&eacute;" });
                }
                byte => out.push(*byte),
            }
        }
    }
}

impl Model {
    /// Appends noise or a link of no crawlable scheme.
    pub(super) fn push_noise(&self, draw: &mut Draw, out: &mut Vec<u8>) {
        noise::push(draw, out);
    }
}

/// Length of a path including the last slash before its query.
fn directory_end(path: &[u8]) -> usize {
    let end = path.iter().position(|byte| *byte == b'?').unwrap_or(path.len());
    path.get(..end).unwrap_or_default().iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1)
}

/// Appends `path` relative to `directory`, both with a leading slash.
fn push_relative(directory: &[u8], path: &[u8], out: &mut Vec<u8>) {
    let path_directory = directory_end(path);
    let mut shared = 0;
    let limit = directory.len().min(path_directory);
    for (index, (left, right)) in directory.iter().zip(path).enumerate().take(limit) {
        if left != right {
            break;
        }
        if *left == b'/' {
            shared = index + 1;
        }
    }
    let start = out.len();
    let up = directory.get(shared..).unwrap_or_default().iter().filter(|byte| **byte == b'/').count();
    (0..up).for_each(|_| out.extend_from_slice(b"../"));
    let rest = path.get(shared..).unwrap_or_default();
    if out.len() == start && (rest.is_empty() || rest.starts_with(b"?")) {
        // An empty or query-only reference would keep the base's file name.
        out.extend_from_slice(b"./");
    }
    out.extend_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::super::model::ModelConfig;
    use super::*;
    use ringcrawl_url::Url;
    use std::collections::BTreeSet;

    #[test]
    fn relative_references() {
        for (directory, path, expected) in [
            ("/", "/", "./"),
            ("/a/", "/a/", "./"),
            ("/a/", "/a/?q=1", "./?q=1"),
            ("/a/", "/a/x", "x"),
            ("/a/b/", "/a/x", "../x"),
            ("/a/b/", "/c/x", "../../c/x"),
            ("/a/", "/ab/x", "../ab/x"),
            ("/", "/a/b/", "a/b/"),
            ("/a/", "/", "../"),
            ("/a/", "/b/?x=/y", "../b/?x=/y"),
        ] {
            let mut out = Vec::new();
            push_relative(directory.as_bytes(), path.as_bytes(), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected, "{directory} {path}");
        }
    }

    #[test]
    fn every_spelling_resolves_to_its_place() {
        for (http_port, https_port) in [(8080, 8443), (80, 443)] {
            let config = ModelConfig { sites: 9, pages: 4_000, http_port, https_port, ..ModelConfig::default() };
            let model = Model::new(config).unwrap();
            let mut draw = Draw::new(9, super::super::draw::Purpose::Render, 0, 0);
            let mut spellings = BTreeSet::new();
            for round in 0..6_000 {
                let site = model.site(draw.below(9) as u32).unwrap();
                let page = draw.below(site.pages);
                let directory = draw.one_in(3).then_some("/elsewhere/");
                let base_url = model.url_of(&Place::canonical(site.number, Item::Page(page))).unwrap();
                let base_url = directory.map_or(base_url.clone(), |directory| base_url.join(directory).unwrap());
                let mut speller = Speller::new(&model, Base::new(&model, &site, page, directory));
                let target = model.site(draw.below(9) as u32).unwrap();
                let number = draw.below(target.pages);
                let item = match draw.below(8) {
                    0 => Item::Go(number),
                    1 => Item::Hop(2, number),
                    2 => Item::Missing(number),
                    3 if target == site => Item::Page(page),
                    _ => Item::Page(number),
                };
                let variant =
                    if target.https && draw.one_in(4) { OriginVariant::Plain } else { OriginVariant::Canonical };
                let place = Place { site: target.number, variant, item };
                speller.reference(&place, &mut draw).unwrap();
                let text = String::from_utf8(speller.raw.clone()).unwrap();
                let resolved: Url = base_url.join(&text).unwrap();
                assert_eq!(Some(resolved), model.url_of(&place), "round {round}: {text:?} from {}", base_url.as_str());
                spellings.insert(text);
            }
            assert!(spellings.len() > 4_000);
        }
    }
}
