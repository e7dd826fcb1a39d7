//! The links of 1,500 real pages, compared with what parse5, html-encoding-sniffer and whatwg-url make of them.
//!
//! The oracle builds a tree and drops what the tree builder drops; the scanner reads tags. So a few pages may differ,
//! and the thresholds say how few. The oracle does not change an encoding that a page names late: such pages are compared in its
//! encoding. It looks for images in `src` and `srcset` of `<img>` alone: pages with others are not compared. Pages and oracle are others' work and are not part of this project.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use ringcrawl_html::{Kind, Kinds, scan_raw};
use ringcrawl_url::Absolute;
use serde_json::Value;

use crate::rig::conformance;

/// Pages where the oracle is behind the standard: its parser still drops all but options from `<select>`, which the
/// standard stopped doing in 2025.
const SELECT_PAGES: [&str; 2] = ["formasaurus/www.avastkorea.com-0.html", "formasaurus/www.avastkorea.com-1.html"];
/// Pages whose ordered a and area lists are the oracle's.
const ANCHORS_SHARE_MIN: f64 = 0.999;
/// Pages whose ordered lists of any other kind are the oracle's.
const OTHERS_SHARE_MIN: f64 = 0.995;

#[test]
fn real_pages() {
    let Some(root) = conformance("html") else { return };
    let oracle = std::fs::File::open(root.join("oracle.jsonl.zst")).expect("oracle");
    let mut lines = String::new();
    zstd::Decoder::new(oracle).expect("zstd").read_to_string(&mut lines).expect("oracle text");
    let (mut pages, mut links, mut changed) = (0_usize, 0_usize, 0_usize);
    let (mut wrong, mut images) = (Wrong::default(), 0_usize);
    for line in lines.lines() {
        let record: Value = serde_json::from_str(line).expect("oracle record");
        let id = record["id"].as_str().expect("id");
        let body = read_gz(&root.join("pages").join(format!("{id}.gz")));
        let document = Absolute::parse(record["url"].as_str().expect("url")).expect("absolute URL");
        let mut found: Vec<(String, String)> = Vec::new();
        let text = String::from_utf8_lossy(&body).to_ascii_lowercase();
        let first = record["encoding"].as_str().unwrap_or_default();
        let named = scan_raw(&body, None, &document, &Kinds::ALL, &mut |_| {}).encoding.name();
        let content_type = (named != first).then(|| format!("text/html; charset={first}"));
        if named != first {
            changed += 1;
            let label = named.to_ascii_lowercase();
            let is_named = text.contains(&label) || text.contains(&label.replace("utf-8", "utf8"));
            assert!(is_named && body.len() > 1_024, "{id}: {first}, and then {named}");
        }
        let summary = scan_raw(&body, content_type.as_deref(), &document, &Kinds::ALL, &mut |raw| {
            let kind = match raw.kind {
                Kind::Link => format!("link:{}", raw.rel),
                Kind::Canonical => "link:canonical".to_owned(),
                other => other.name().to_owned(),
            };
            found.push((kind, raw.url.map_or_else(|_| "null".to_owned(), Absolute::to_string)));
        });
        let mut expected = expected(&record["links"]);
        let mut resources = expected_resources(&record["resources"]);
        if record["encoding"] == "windows-1252" {
            for (_, url) in expected.iter_mut().chain(&mut resources).chain(&mut found) {
                *url = as_node_reads(url);
            }
        }
        pages += 1;
        links += expected.len();
        let encoding = record["encoding"].as_str().unwrap_or_default().to_owned();
        wrong.count("encoding", id, &[encoding], &[summary.encoding.name().to_owned()]);
        let base = summary.base.as_ref().unwrap_or(&document).to_string();
        wrong.count("base", id, &[record["base"].as_str().unwrap_or_default().to_owned()], &[base]);
        wrong.count("a, area", id, &of_kinds(&expected, &["a", "area"]), &of_kinds(&found, &["a", "area"]));
        for kind in ["link", "iframe", "frame", "refresh", "svg-a"] {
            wrong.count(kind, id, &of_kinds(&expected, &[kind]), &of_kinds(&found, &[kind]));
        }
        let has_other_images =
            ["data-src", "imagesrcset", "as=\"image\"", "as=image", "type=\"image\"", "type='image'", "type=image"]
                .iter()
                .any(|other| text.contains(other));
        images += usize::from(!has_other_images);
        for kind in ["img", "srcset", "script"].into_iter().filter(|kind| *kind == "script" || !has_other_images) {
            wrong.count(kind, id, &of_kinds(&resources, &[kind]), &of_kinds(&found, &[kind]));
        }
    }
    assert!(pages > 1000, "{pages} pages only");
    assert!(changed > 100 && images > 700, "{changed} encodings changed, images of {images} pages compared");
    println!("{pages} pages, {links} links, {changed} encodings changed");
    let mut failed = Vec::new();
    for (kind, ids) in &wrong.pages {
        let share = 1.0 - ids.len() as f64 / pages as f64;
        println!("{kind}: {} of {pages} pages as the oracle's ({:.3} %)", pages - ids.len(), share * 100.0);
        let share_min = if *kind == "a, area" { ANCHORS_SHARE_MIN } else { OTHERS_SHARE_MIN };
        if share < share_min {
            failed.push(*kind);
        }
    }
    assert!(failed.is_empty(), "too many pages differ: {failed:?}");
}

#[derive(Default)]
struct Wrong {
    pages: BTreeMap<&'static str, Vec<String>>,
}

impl Wrong {
    fn count(&mut self, kind: &'static str, id: &str, expected: &[String], found: &[String]) {
        let pages = self.pages.entry(kind).or_default();
        if expected == found || (kind == "a, area" && SELECT_PAGES.contains(&id)) {
            return;
        }
        let at = expected.iter().zip(found).take_while(|(expected, found)| expected == found).count();
        println!(
            "{kind} of {id}: {} expected, {} found; link {at}: {:?} expected, {:?} found",
            expected.len(),
            found.len(),
            expected.get(at),
            found.get(at)
        );
        pages.push(id.to_owned());
    }
}

/// `KIND URL` of those whose kind, up to a colon, is one of `kinds`.
fn of_kinds(links: &[(String, String)], kinds: &[&str]) -> Vec<String> {
    let wanted = links.iter().filter(|(kind, _)| kinds.contains(&kind.split(':').next().unwrap_or(kind)));
    wanted.map(|(kind, url)| format!("{kind} {url}")).collect()
}

/// The oracle's links; one for each distinct token of a link's `rel`.
fn expected(links: &Value) -> Vec<(String, String)> {
    let mut expected = Vec::new();
    for link in links.as_array().into_iter().flatten() {
        let kind = link[0].as_str().expect("kind");
        let url = link[1].as_str().unwrap_or("null").to_owned();
        if kind != "link" {
            expected.push((kind.to_owned(), url));
            continue;
        }
        let mut tokens: Vec<String> = Vec::new();
        for token in link[2]["rel"].as_str().unwrap_or_default().split_ascii_whitespace() {
            let token = format!("link:{}", token.to_ascii_lowercase());
            if !tokens.contains(&token) {
                tokens.push(token);
            }
        }
        expected.extend(tokens.into_iter().map(|token| (token, url.clone())));
    }
    expected
}

/// The oracle was made with Node 20, whose `TextDecoder` reads windows-1252 as ISO 8859-1: 0x80 to 0x9F as control
/// characters. This writes a URL with the right characters as one with those.
fn as_node_reads(url: &str) -> String {
    let mut url = url.to_owned();
    for byte in 0x80..=0x9f_u8 {
        let escaped = |one: char| {
            let mut bytes = [0; 4];
            one.encode_utf8(&mut bytes).bytes().map(|byte| format!("%{byte:02X}")).collect::<String>()
        };
        let right = encoding_rs::WINDOWS_1252.decode_without_bom_handling(&[byte]).0.chars().next();
        let control = char::from(byte);
        if let Some(right) = right.filter(|right| *right != control) {
            url = url.replace(&escaped(right), &escaped(control)).replace(right, &control.to_string());
        }
    }
    url
}

fn expected_resources(resources: &Value) -> Vec<(String, String)> {
    let resources = resources.as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or("null").to_owned();
    resources.map(|resource| (text(&resource[0]), text(&resource[1]))).collect()
}

fn read_gz(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    flate2::read::MultiGzDecoder::new(file).read_to_end(&mut bytes).expect("gzip");
    bytes
}
