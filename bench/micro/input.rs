//! The pages that the benches work on, and what must be in them.
//!
//! Decides: pages of the synthetic web's `web` profile, whose sizes, links and gzip ratio are those of the open web's
//! HTML; with `BENCH_HTML=DIR` the `.html` and `.htm` files of a directory instead. All stay in memory.
//! Limits: 64 MiB of a directory.
#![allow(dead_code, reason = "each bench uses a part of it")]

use std::path::Path;
use std::sync::OnceLock;

use ringcrawl_html::{self as html, Kinds};
use ringcrawl_url::{Absolute, Url};
use ringcrawl_web::{Item, Model, ModelConfig, Place, Profile};

/// An HTML page.
pub struct Page {
    /// Where it was found.
    pub url: Url,
    /// Its bytes, nothing coded.
    pub html: Vec<u8>,
}

impl Page {
    /// Every reference that is followed, as written.
    pub fn references(&self) -> Vec<String> {
        let document = Absolute::parse(self.url.as_str()).expect("a page's URL");
        let mut references = Vec::new();
        html::scan_raw(&self.html, Some(CONTENT_TYPE), &document, &Kinds::FOLLOW, &mut |raw| {
            references.push(raw.text.trim_ascii().to_owned());
        });
        references
    }
}

/// What the pages are served as.
pub const CONTENT_TYPE: &str = "text/html; charset=utf-8";

/// The pages; the same at every call.
pub fn pages() -> &'static [Page] {
    static PAGES: OnceLock<Vec<Page>> = OnceLock::new();
    PAGES.get_or_init(|| match std::env::var_os("BENCH_HTML") {
        Some(dir) => files(Path::new(&dir)),
        None => synthetic(),
    })
}

/// Whether they are those of the synthetic web, of which everything is known.
pub fn is_synthetic() -> bool {
    std::env::var_os("BENCH_HTML").is_none()
}

/// Bytes of all pages.
pub fn bytes() -> usize {
    pages().iter().map(|page| page.html.len()).sum()
}

fn synthetic() -> Vec<Page> {
    let config = ModelConfig { sites: 10, pages: 4_000, profile: Profile::Web, https_share: 0.0, ..Default::default() };
    let model = Model::new(config).expect("a web");
    let url = |page| model.url_of(&Place::canonical(0, Item::Page(page))).expect("a page");
    let page = |number| {
        let (url, mut html) = (url(number), Vec::new());
        assert_eq!(model.answer_url(&url, &mut html).status, 200);
        Page { url, html }
    };
    let pages: Vec<Page> = (0..PAGES).map(page).collect();
    let bytes: usize = pages.iter().map(|page| page.html.len()).sum();
    assert_eq!(bytes, SYNTHETIC_BYTES, "the pages are not those that results are compared by");
    pages
}

fn files(dir: &Path) -> Vec<Page> {
    let mut paths: Vec<_> = std::fs::read_dir(dir).expect("BENCH_HTML").flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "html" || extension == "htm"));
    paths.sort();
    let mut room = 64 << 20;
    let mut pages = Vec::new();
    for path in paths {
        let html = std::fs::read(&path).expect("a file of BENCH_HTML");
        let Some(left) = usize::checked_sub(room, html.len()) else { break };
        room = left;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let url = Url::parse("http://www.example.com/").and_then(|root| root.join(&name)).expect("a URL");
        pages.push(Page { url, html });
    }
    assert!(!pages.is_empty(), "BENCH_HTML has no .html file");
    pages
}

const PAGES: u64 = 40;
const SYNTHETIC_BYTES: usize = 7_465_106;
