//! Encodings that a page names behind the bytes that the prescan looks at ("change the encoding", section 13.2.3.4).

use std::collections::BTreeMap;

use encoding_rs::{Encoding, WINDOWS_1252};

use super::scanned;
use super::twin::standard;
use ringcrawl_base::Rng;

/// More than the prescan reads.
fn far() -> String {
    format!("<script>{}</script>", "x".repeat(1_100))
}

/// The links of a page whose `<meta>` is far behind, without `http://a.test`.
fn late(page: impl AsRef<[u8]>, content_type: Option<&str>) -> String {
    let page = [far().as_bytes(), page.as_ref()].concat();
    scanned(&page, content_type, 9_000).0.join(" ").replace("http://a.test", "")
}

#[test]
fn a_late_declaration_counts_for_what_was_read_before() {
    for (page, links) in [
        ("<a href='/zürich'><meta charset=utf-8>", "/z%C3%BCrich"),
        ("<base href='/ü/'><a href='ö?ä'><META CHARSET='UTF8'>", "/%C3%BC/%C3%B6?%C3%A4"),
        ("<a href=/ü><meta http-equiv='content-TYPE' content='text/html; charset=\"utf-8\"'>", "/%C3%BC"),
        ("<a href=/ü><meta charset='utf&#45;8'>", "/%C3%BC"),
        ("<a href=/ü><meta charset=utf-16le>", "/%C3%BC"),
        ("<a href=/ü><meta charset=nosuch><meta charset=utf-8><meta charset=big5>", "/%C3%BC"),
        ("<a href=/ü><meta charset='' http-equiv=content-type content='a;charset=utf-8'>", "/%C3%BC"),
        ("<a href=/ü><template><meta charset=utf-8></template>", "/%C3%BC"),
        ("<a href=/ü><svg><meta charset=utf-8></svg>", "/%C3%BC"),
        ("<a href=/ü><meta name=robots charset=utf-8 content=none>", "/%C3%BC"),
        // These name none.
        ("<a href=/ü>", "/%C3%83%C2%BC"),
        ("<a href=/ü><!--<meta charset=utf-8>--><title><meta charset=utf-8></title>", "/%C3%83%C2%BC"),
        ("<a href=/ü><meta content='text/html; charset=utf-8'><meta name=charset content=utf-8>", "/%C3%83%C2%BC"),
        ("<a href=/ü><meta http-equiv=refresh content='9;charset=utf-8'>", "/%C3%83%C2%BC /d/charset=utf-8"),
        ("<a href=/ü><meta charset=x-user-defined><meta charset=utf-8>", "/%C3%83%C2%BC"),
        ("<a href=/ü><meta charset=utf-8", "/%C3%83%C2%BC"),
    ] {
        assert_eq!(late(page, None), links, "{page}");
    }
    assert_eq!(late("<a href=/ü><meta charset=utf-8>", Some("text/html;charset=latin1")), "/%C3%83%C2%BC", "certain");
    assert_eq!(late(b"<a href='?\xe4'><meta charset=koi8-r>", None), "/d/p?%E4");
    assert_eq!(late(b"<a href='\xe4'><meta charset=koi8-r>", None), "/d/%D0%94");
    assert_eq!(late(b"<a href='\x83\x5c'><meta charset=shift_jis>", None), "/d/%E3%82%BD");
    let jis = late(b"<a href=1>\x1b$B<a href=no>\x1b(B<a href=2><meta charset=iso-2022-jp>", None);
    assert_eq!(jis, "/d/1 /d/2");
}

/// The prescan is not a tokenizer: what it finds is tentative.
#[test]
fn the_tokenizer_has_the_last_word() {
    let page = "<script>'<meta charset=big5>'</script><a href=/ü><meta charset=utf-8>";
    let (found, summary) = scanned(page.as_bytes(), None, 9);
    assert_eq!((found.join(" ").as_str(), summary.encoding.name()), ("http://a.test/%C3%BC", "UTF-8"));
    let (_, summary) = scanned(b"<meta charset=koi8-r><meta charset=utf-8>", None, 9);
    assert_eq!(summary.encoding.name(), "KOI8-R");
    let (_, summary) = scanned(b"<?xml version='1.0' encoding='koi8-r'?><meta charset=utf-8>", None, 9);
    assert_eq!(summary.encoding.name(), "UTF-8");
}

/// Also after more elements than a batch holds, with a base before, between or behind them.
#[test]
fn a_declaration_behind_many_links_counts_for_them() {
    let (links, base, meta) = ("<a href=ü>".repeat(2_500), "<base href=/ö/>", "<meta charset=utf-8>");
    for (page, link) in [
        (format!("{links}{meta}"), "/d/%C3%BC"),
        (format!("{base}{links}{meta}"), "/%C3%B6/%C3%BC"),
        (format!("{links}{meta}{links}{base}"), "/%C3%B6/%C3%BC"),
        (format!("{links}{base}{links}{meta}"), "/%C3%B6/%C3%BC"),
    ] {
        let found = late(page, None);
        assert!(found.len() > 20_000 && found.split(' ').all(|one| one == link), "{}", &found[..100]);
    }
}

/// The encoding that html5ever's tags name.
fn by_tags(page: &str) -> &'static Encoding {
    let named = |attributes: &BTreeMap<String, String>| {
        let has = |name: &str, value: &str| attributes.get(name).is_some_and(|one| one.eq_ignore_ascii_case(value));
        let label = attributes.get("charset").and_then(|label| Encoding::for_label(label.as_bytes()));
        let of_content = || {
            let label = attributes.get("content")?.split_once("charset=")?.1;
            Encoding::for_label(label.as_bytes()).filter(|_| has("http-equiv", "content-type"))
        };
        label.or_else(of_content)
    };
    let metas = standard(page).into_iter().filter(|tag| !tag.end && tag.name == "meta");
    metas.into_iter().find_map(|tag| named(&tag.attributes)).unwrap_or(WINDOWS_1252)
}

#[rustfmt::skip]
const PIECES: [&str; 24] = [
    "<meta charset=koi8-r>", "<meta charset='big5'>", "<meta charset=\"nosuch\">", "<meta charset=utf-8/>", "<meta CHARSET = euc-kr >",
    "<meta charset=gbk", "<meta http-equiv=Content-Type content='text/html; charset=iso-8859-2'>", "<meta http-equiv=content-type ",
    "content=\"a;charset=euc-jp\">", "<metas charset=big5>", "</meta charset=big5>", "<meta name=a content=b>", "<!--", "-->", "<title>",
    "</title>", "<script>", "</script>", "<p a='", "'>", "\"", "<base href=x>", "<a href=y>", " charset=shift_jis ",
];

#[test]
fn the_same_encoding_as_by_html5evers_tags() {
    let mut rng = Rng::new(0x5eed_0031);
    let mut changed = 0;
    for round in 0..6_000 {
        let pieces: String = (0..1 + rng.index(12)).map(|_| *rng.pick(&PIECES)).collect();
        let page = format!("{}{pieces}", far());
        let (expected, found) = (by_tags(&page), scanned(page.as_bytes(), None, 9).1.encoding);
        assert_eq!(found, expected, "round {round}: {pieces}");
        changed += usize::from(found != WINDOWS_1252);
    }
    assert!(changed > 2_000, "{changed}");
}
