//! Examples of whole pages, invariants under cuts and noise, and time.

mod encodings;
mod hostile;
mod linear;
mod skim;
mod slow;
mod standard;
mod tree;
mod twin;

use std::fs;
use std::path::{Path, PathBuf};

use super::{Budget, Kind, Kinds, Page, Summary, scan, scan_raw};
use ringcrawl_url::{Absolute, Url};

/// A folder of the conformance data next to the project, if present; required when CI is set.
fn conformance(part: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/conformance").join(part);
    if root.is_dir() {
        return Some(root);
    }
    assert!(std::env::var_os("CI").is_none(), "not skipped where CI is set: no conformance data {part}");
    eprintln!("skipped: no conformance data {part}");
    None
}

/// `kind[:rel] url` of each reference, resolved against `http://a.test/d/p`; `!text` if it is not a URL.
fn raw(html: impl AsRef<[u8]>, kinds: &Kinds) -> Vec<String> {
    // The last bytes of a page are read by other code.
    let behind = [html.as_ref(), &b" ".repeat(200)].concat();
    let found = raw_of(html.as_ref(), kinds);
    assert_eq!(raw_of(&behind, kinds), found, "{:?} and spaces", String::from_utf8_lossy(html.as_ref()));
    found
}

fn raw_of(html: &[u8], kinds: &Kinds) -> Vec<String> {
    let document = Absolute::parse("http://a.test/d/p").unwrap();
    let mut found = Vec::new();
    scan_raw(html, Some("text/html; charset=utf-8"), &document, kinds, &mut |raw| {
        let colon = if raw.rel.is_empty() { "" } else { ":" };
        let url = raw.url.map_or_else(|_| format!("!{}", raw.text), Absolute::to_string);
        found.push(format!("{}{colon}{} {url}", raw.kind.name(), raw.rel));
    });
    found
}

fn hrefs(html: &str) -> String {
    let found = raw(html, &Kinds::parse("a,svg-a,area").unwrap());
    let short =
        |line: &String| line.replace("a http://a.test/d/", "").replace("svg-", "svg:").replace("area http", "ar");
    found.iter().map(short).collect::<Vec<_>>().join(" ")
}

fn scanned(body: &[u8], content_type: Option<&str>, links_max: usize) -> (Vec<String>, Summary) {
    let url = Url::parse("http://a.test/d/p").unwrap();
    let mut found = Vec::new();
    let summary = scan(
        &Page { body, content_type, url: &url, agent: "My_Bot" },
        &Kinds::FOLLOW,
        &mut Budget::of_links(links_max),
        &mut |link| {
            if link.has_room {
                found.push(format!(
                    "{}{}{}",
                    link.url.as_str(),
                    if link.is_advised_against { " nofollow " } else { "" },
                    link.rel
                ));
            }
            true
        },
    );
    (found, summary)
}

#[test]
fn tags_and_attributes() {
    for (html, found) in [
        ("<a href=1><A HREF='2'><a\nhref\n=\n\"3\"\n><a/href=4/>", "1 2 3 4/"),
        ("<a href=1 href=2><a x=y=z href=3><a =href=x href=4><a 'href=5'><a \"\"href=6>", "1 3 4"),
        ("<a href><a><a href=>", "p p"),
        ("<a href=1", ""),
        ("<a href='1><a href=2>", ""),
        ("<a href='1'href='2'><a title='>' href=3><a title=\"<a href=x>\">", "1 3"),
        ("<ahref=1><a\0 href=1><abbr href=2>< a href=3></a href=4>", ""),
        ("<a hr\0ef=1><a href=&#x31;&amp;2&copy=>", "1&2&copy="),
        ("<a href=' \t\n1\r\n2\t3 '>", "123"),
        ("a<b<a href=1><<a href=2>", "2"),
        ("<a>href=\"1\"><a\thref=\"2\"><a/href=\"3\"> <a href=\"4\"> <a>href=\"5\"", "2 3 4"),
    ] {
        assert_eq!(hrefs(html), found, "{html:?}");
    }
}

#[test]
fn an_end_tag_around_what_is_foreign_ends_it() {
    for (html, found) in [
        ("<div><svg></div><a href=1><script>'<a href=no>'</script>", "a 1"),
        ("<x-y><math></X-Y ><a href=1><link rel=next href=2>", "a 1, link:next 2"),
        ("<label><svg><g></label><base href=b/><a href=x>", "base b/, a b/x"),
        ("<a href=1><svg><path d=''></a><a href=2>", "a 1, a 2"),
        ("<svg></div><a href=1>", "svg-a 1"),
        ("<div></div><svg></div><a href=1>", "svg-a 1"),
        ("<svg><path/></svg><img><svg></path></img><a href=1></svg><a href=2>", "svg-a 1, a 2"),
        ("<div><svg><desc><b></div><a href=1></svg><a href=2>", "a 1, a 2"),
        ("<div><svg><div><svg></div><a href=1>", "a 1"),
        ("<p><a href=1/><svg></a><a href=2>", "a 1/, a 2"),
        ("<math><img><svg></math><a href=1>", "svg-a 1"),
        ("<script>'<script src=x><\\/script>'</script><svg></script><a href=1>", "svg-a 1"),
        ("<body><svg></body><a href=1>", "svg-a 1"),
        ("<span><div><svg></span><a href=1>", "svg-a 1"),
        ("<h1><svg></h2><a href=1>", "a 1"),
        ("<div title='</div>'><svg></div><a href=1>", "a 1"),
        // A link ends the one before, a block the paragraph.
        ("<a href=1><a href=2></a><svg></a><a href=3>", "a 1, a 2, svg-a 3"),
        ("<x-y><p><section></section><svg></x-y><a href=1>", "a 1"),
        ("<p><button><p></button><svg></p><a href=1>", "a 1"),
        // Formatting stays open, and so do blocks in it.
        ("<div><b></div><svg></b><a href=1>", "a 1"),
        ("<b><div></b><svg></div><a href=1>", "a 1"),
        ("<b><x-y></b><svg></x-y><a href=1>", "svg-a 1"),
        ("<table><td><b></table><svg></b><a href=1>", "svg-a 1"),
        // Tables contain implied elements.
        ("<table><td><svg></tr><a href=1>", "a 1"),
        ("<table><h1><tr><svg></h1><a href=1>", "svg-a 1"),
        ("<div><table><table></table><svg></table><a href=1>", "svg-a 1"),
        ("<math><div><path /><svg></path><a href=1>", "a 1"),
        ("<svg><a href=1></svg><span><svg></span><a href=2>", "svg-a 1, a 2"),
        // An integration point blocks the end tag.
        ("<div><math><mtext><svg></div><a href=1>", "svg-a 1"),
        ("<div><math><annotation-xml></div><svg><a href=1>", "svg-a 1"),
        ("<svg><desc><a href=1><a href=2></a></desc><a href=3>", "a 1, a 2, svg-a 3"),
        ("<svg><desc><a href=1><x-y><a href=2></a></desc><a href=3>", "a 1, a 2, svg-a 3"),
    ] {
        let kinds = Kinds::parse("a,svg-a,link:next,base").unwrap();
        assert_eq!(raw(html, &kinds).join(", ").replace("http://a.test/d/", ""), found, "{html}");
    }
    let many = "<li><a href=1><svg><path/></a></li>".repeat(1_000);
    assert_eq!(raw(many, &Kinds::parse("a").unwrap()).len(), 1_000);
}

#[test]
fn comments_and_declarations() {
    for (html, found) in [
        ("<!--<a href=1>--><a href=2>", "2"),
        ("<!--><a href=1>--><a href=2><!---><a href=3>", "1 2 3"),
        ("<!----><a href=1><!-----><a href=2><!----!><a href=3>", "1 2 3"),
        ("<!--!><a href=1>--!><a href=2>", "2"),
        ("<!---!><a href=1>--><a href=2>", "2"),
        ("<!-- <!-- --> <a href=1> -->", "1"),
        ("<!-- -- > <a href=1> ->", ""),
        ("<!x '>' <a href=1>'><?x ?><a href=2></ <a href=3>><a href=4>", "1 2 4"),
        ("<!doctype html \"><a href=1>\"><a href=2>", "1 2"),
        ("<![CDATA[<a href=1>]]><a href=2>", "2"),
        ("<svg><![CDATA[<a href=1>]]></svg><a href=2>", "2"),
        ("<svg><desc><![CDATA[<a href=1>]]><p><![CDATA[<a href=2>]]><a href=3>", "3"),
        ("</><a href=1>", "1"),
    ] {
        assert_eq!(hrefs(html), found, "{html:?}");
    }
}

#[test]
fn raw_text() {
    for (html, found) in [
        ("<script>'<a href=1>'</script><a href=2>", "2"),
        ("<script><!-- <script> </script> <a href=1> --></script><a href=2>", "2"),
        ("<script><!-- <scriptx> </script> <a href=1>", "1"),
        ("<script><!--><script></script><a href=1>", "1"),
        ("<script><!-- <script> --> </script><a href=1>", "1"),
        ("<script></scriptx><a href=1></script\n x='>'><a href=2></script", "2"),
        ("<style><a href=1></STYLE/><a href=2><textarea><a href=3></textarea><title><a href=4></title>", "2"),
        ("<xmp><a href=1></xmp><noembed><a href=2></noembed><noframes><a href=3></noframes><a href=4>", "4"),
        ("<iframe><a href=1></iframe><a href=2><noscript><a href=3></noscript>", "2 3"),
        ("<template><a href=1></template><select><a href=2></select>", "1 2"),
        ("<a href=1><plaintext><a href=2></plaintext>", "1"),
        ("<title></titl><a href=1>", ""),
        ("<svg><title><a href=1></a></title><style><a href=2></style><script><a href=3></script>", "1 svg:2 svg:3"),
        ("<svg><a xlink:href=1 href=2><a xlink:href=3></svg><a xlink:href=4>", "svg:2 svg:3"),
        ("<svg><p><style><a href=1></style><math><a href=2><mi><a href=3>", "3"),
    ] {
        assert_eq!(hrefs(html), found, "{html:?}");
    }
}

/// XML section 3.1: `<x/>` is an empty element. In HTML (section 13.2.5.2) the slash of a script is ignored.
#[test]
fn what_closes_itself_is_empty_in_xml() {
    for page in [
        "<html><head><title/></head><body><a href=1>",
        "<script src='a.js'/><a href='1'>x</a><script src='b.js' />",
        "<style/><textarea name='t'/><a href='1'>",
        "<noembed/><xmp /><a href='1'>",
    ] {
        for (content_type, links) in [
            ("application/xhtml+xml", &["http://a.test/d/1"][..]),
            ("application/xml; charset=utf-8", &["http://a.test/d/1"]),
            ("text/html", &[]),
        ] {
            assert_eq!(scanned(page.as_bytes(), Some(content_type), 9).0, links, "{page} {content_type}");
        }
    }
    let whole = "<script>'<a href=0>'</script><title>x</title><a href='1'>";
    assert_eq!(scanned(whole.as_bytes(), Some("application/xhtml+xml"), 9).0, ["http://a.test/d/1"]);
}

#[test]
fn every_kind() {
    let html = "<head><link rel='NEXT stylesheet next' href=n><link rel=canonical href=c><link href=x><link rel=prev>\
        <meta http-equiv=REFRESH content='0;url=r'><meta http-equiv=refresh content=5></head><frame src=f>\
        <iframe src=i></iframe><img src=g srcset='s 1x, t 2x'><source srcset=u><image src=v><area href=w>\
        <script async src=z>'<a href=no>'</script><script>'<img src=no>'</script><template><SCRIPT SRC=y></SCRIPT></template>\
        <svg><script src=no></script></svg><script src=x/></script>\
        <a href='mailto:x@y'><a href='//['><a href=#f>";
    let all = "link:next n;link:stylesheet n;canonical c;refresh r;frame f;iframe i;img g;srcset s;srcset t;srcset u;\
        img v;area w;script z;script y;script x/;a mailto:x@y;a !//[;a p#f";
    let found = raw(html, &Kinds::ALL).join(";").replace("http://a.test/d/", "");
    assert_eq!(found, all);
    let found = raw(html, &Kinds::DEFAULT).join(";").replace("http://a.test/d/", "");
    assert_eq!(found, "link:next n;canonical c;refresh r;frame f;iframe i;area w;a mailto:x@y;a !//[;a p#f");
    let found = raw(html, &Kinds::parse("link:stylesheet,srcset").unwrap()).join(";");
    assert_eq!(found.replace("http://a.test/d/", ""), "link:stylesheet n;srcset s;srcset t;srcset u");
    let found = raw(html, &Kinds::parse("script").unwrap()).join(";");
    assert_eq!(found.replace("http://a.test/d/", ""), "script z;script y;script x/");
}

/// Images loaded by scripts, preloaded ones, and buttons.
#[test]
fn images_in_other_places() {
    let kinds = Kinds::parse("img,srcset").unwrap();
    let long = "c".repeat(70);
    for (html, found) in [
        ("<img src=0.gif data-src=1 data-srcset='2 1x, 3 2x'>", "img 1, srcset 2, srcset 3, img 0.gif"),
        ("<img data-src=\"1\" class=\"LONG\">", "img 1"),
        ("<img src=\"0\" class=\"LONG\" DATA-SRC=\"1\">", "img 1, img 0"),
        ("<img src=\"0\" class=\"LONG\" data-srcset=\"2 1x\" srcset=\"4\">", "srcset 2, img 0, srcset 4"),
        (
            "<picture><source srcset=\"4\" data-srcset=\"2 1x\"><source data-srcset=3></picture>",
            "srcset 2, srcset 4, srcset 3",
        ),
        ("<link rel=preload as=image href=1 imagesrcset='2 1x, 3 2x'>", "img 1, srcset 2, srcset 3"),
        ("<link rel=\"preload\" href=\"1\" as=\"IMAGE\" class=\"LONG\">", "img 1"),
        ("<link rel='next PRELOAD' as=image imagesrcset=2>", "srcset 2"),
        ("<input type=image src=1><INPUT TYPE='Image' SRC='2' alt=LONG>", "img 1, img 2"),
        ("<template><input type=image src=1><img data-src=2></template>", "img 1, img 2"),
        // These are none.
        ("<link rel=preload as=font href=1><link rel=preload href=2><link rel=icon as=image href=3>", ""),
        ("<input type=text src=1><input src=2><ins src=3>", ""),
        ("<p data-src=1><img data-href=2><source data-src=3><svg><input type=image src=4></svg>", ""),
    ] {
        let all = raw(html.replace("LONG", &long), &kinds).join(", ").replace("http://a.test/d/", "");
        assert_eq!(all, found, "{html}");
    }
    let page = "<link rel=preload as=image href=1><input type=image src=2><img data-src=3>";
    assert_eq!(raw(page, &Kinds::FOLLOW), [""; 0], "where no images are wanted");
}

#[test]
fn links_of_a_site_to_its_other_pages() {
    let html = "<link rel=index href=1><link rel='search' type='application/opensearchdescription+xml' href=2><link rel=UP href=3>\
                <link rel=stylesheet href=no><link rel=\"contents\" href=\"4\"><link rel=author href=no><link rel=license href=no>";
    let found = raw(html, &Kinds::FOLLOW).join(" ").replace("http://a.test/d/", "");
    assert_eq!(found, "link:index 1 link:search 2 link:up 3 link:contents 4");
}

#[test]
fn the_first_base_counts_for_all() {
    let kinds = Kinds::parse("a,base").unwrap();
    let found = raw("<a href=1><base target=x><base href=/b/><base href=/c/><a href=2>", &kinds);
    assert_eq!(found, ["a http://a.test/b/1", "base http://a.test/b/", "a http://a.test/b/2"]);
    assert_eq!(raw("<base href=b/><a href=1>", &kinds), ["base http://a.test/d/b/", "a http://a.test/d/b/1"]);
    let hidden = "<!--<base href=/x/>--><template><base href=/y/></template><svg><base href=/z/></svg><a href=1>";
    assert_eq!(raw(hidden, &kinds), ["a http://a.test/d/1"]);
    let (_, summary) = scanned(b"<BASE href='//b.test'>", None, 1);
    assert_eq!(summary.base.map(Absolute::into_text).as_deref(), Some("http://b.test/"));
}

/// Also if more elements precede it than a batch holds.
#[test]
fn a_base_behind_many_links_counts_for_them() {
    let kinds = Kinds::parse("a,base").unwrap();
    for many in [1_999, 2_000, 2_001, 4_500] {
        let links = "<a href=1>".repeat(many);
        let found = raw(format!("{links}<base href=/b/><a href=2><base href=/c/>{links}"), &kinds);
        assert_eq!(found.len(), 2 * many + 2);
        assert!(found[..many].iter().all(|link| link == "a http://a.test/b/1"), "{many}");
        assert_eq!(found[many..many + 2], ["base http://a.test/b/", "a http://a.test/b/2"]);
        assert!(found[many + 2..].iter().all(|link| link == "a http://a.test/b/1"), "{many}");
        assert_eq!(raw(&links, &kinds), vec!["a http://a.test/d/1"; many]);
    }
}

#[test]
fn what_a_page_says_of_itself() {
    let (found, summary) = scanned(
        b"<meta name=ROBOTS content='NoIndex, nofollow'><a rel='x NOFOLLOW' href=1><a href=2#f><link rel=next href=3>",
        None,
        100,
    );
    assert_eq!(found, ["http://a.test/d/1 nofollow ", "http://a.test/d/2", "http://a.test/d/3next"]);
    assert!(summary.robots.noindex && summary.robots.nofollow);
    let behind = "x ".repeat(100);
    for meta in [
        "name=robots",
        "NAME = Robots",
        "name=\"ROBOTS\"",
        "class=\"efg\" name='robots'",
        "name=\"\nrobots\" name=robots",
    ] {
        for behind in ["", &behind] {
            let (_, summary) = scanned(format!("<meta {meta} content=none>{behind}").as_bytes(), None, 100);
            assert_eq!(summary.robots.noindex && summary.robots.nofollow, !meta.contains('\n'), "{meta}");
        }
    }
    let (_, summary) = scanned(b"<meta name=robots content=index><meta name=keywords content=noindex>", None, 100);
    assert!(summary.robots.is_empty());
    // For one agent, and about mining.
    let behind = "x ".repeat(100);
    for (meta, heard) in [
        ("name=my_bot content=nofollow", "nofollow"),
        ("content=\"noindex, noarchive\" NAME=\"MY_BOT\"", "noindex, noarchive"),
        ("name=my_bot2 content=none", ""),
        ("name=other_bot content=none", ""),
        ("name='my' content=none", ""),
        (
            "name=my_bot property='x' content='unavailable_after: 2030-01-02'",
            "unavailable_after: 2030-01-02T00:00:00.000000Z",
        ),
    ] {
        let (_, summary) = scanned(format!("<meta {meta}>{behind}").as_bytes(), None, 100);
        assert_eq!(summary.robots.to_label(), heard, "{meta}");
    }
    let page = format!(
        "<meta name=TDM-Reservation content=1><meta name=\"tdm-policy\" content=\"https://a.test/p?a&amp;b\">{behind}"
    );
    let (_, summary) = scanned(page.as_bytes(), None, 100);
    assert_eq!(summary.tdm.to_label(), "tdm=n, train-ai=n");
    assert_eq!(summary.tdm_policy.as_deref(), Some("https://a.test/p?a&b"));
}

#[test]
fn counts() {
    let html = format!("<a href=mailto:x><a href='//['><a href={}>{}", "x".repeat(70_000), "<a href=1>".repeat(5));
    let (found, summary) = scanned(html.as_bytes(), None, 3);
    assert_eq!((found.len(), summary.links, summary.dropped), (3, 3, 2));
    assert_eq!((summary.bad, summary.other_scheme), (2, 1));
}

#[test]
fn pages_in_encodings() {
    let html = "<a href='é?é&amp;ж'>";
    let utf16: Vec<u8> = html.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let as_utf8 = ["http://a.test/d/%C3%A9?%C3%A9&%D0%B6"];
    assert_eq!(scanned(&utf16, Some("text/html; charset=utf-16be"), 9).0, as_utf8);
    assert_eq!(scanned(&[b"\xfe\xff", &utf16[..]].concat(), None, 9).0, as_utf8);
    assert_eq!(scanned(&[b"\xef\xbb\xbf", html.as_bytes()].concat(), Some("text/html;charset=big5"), 9).0, as_utf8);
    let latin = b"<meta charset=latin1><a href='\xe9?\xe9&amp;&#1078;'>";
    assert_eq!(scanned(latin, None, 9).0, ["http://a.test/d/%C3%A9?%E9&%26%231078%3B"]);
    // In ISO-2022-JP `<a` may be half of a character.
    let jis = b"<meta charset=iso-2022-jp>\x1b$B<a href=1>\x1b(B<a href=2>";
    assert_eq!(scanned(jis, None, 9).0, ["http://a.test/d/2"]);
    assert_eq!(scanned(b"<a href=1>", Some("text/html; charset=hz-gb-2312"), 9).0, [""; 0]);
}

/// Attributes off the fast path.
#[test]
fn attributes_behind_a_link_count() {
    let long = "c".repeat(70);
    for (tag, nofollow) in [
        ("<a href=\"1\" rel=\"nofollow\">", true),
        ("<a href=\"1\" class=\"LONG\" rel='nofollow'>", true),
        ("<a class=\"LONG\" href=\"1\" title=\"t\" REL=nofollow>", true),
        ("<a rel=\"nofollow\" href=\"1\" title=\"t\">", true),
        ("<area href=\"1\" alt=\"LONG\" rel=\"nofollow\">", true),
        ("<a href=\"1\" title=\"rel=nofollow\">", false),
        ("<a rel=\"x\" href=\"1\" rel=\"nofollow\">", false),
        ("<a href=\"1\" rel rel=\"nofollow\">", false),
    ] {
        let page = format!("{}{}", tag.replace("LONG", &long), " ".repeat(200));
        let found = if nofollow { "http://a.test/d/1 nofollow " } else { "http://a.test/d/1" };
        assert_eq!(scanned(page.as_bytes(), None, 10).0, [found], "{tag}");
    }
    for (tag, found) in [
        ("<img src=\"1\" class=\"LONG\" srcset=\"2 1x\">", "img 1;srcset 2"),
        ("<img srcset=\"2 1x\" src=\"1\" alt=\"LONG\" src=\"3\">", "img 1;srcset 2"),
        ("<link rel=\"next\" class=\"LONG\" href=\"1\">", "link:next 1"),
        ("<meta http-equiv=\"Refresh\" content=\"0;url=1\">", "refresh 1"),
        ("<meta name=LONG http-equiv=refresh content=\"0;url=1\">", "refresh 1"),
        ("<link rel=\"n&#101;xt\" href=\"1\">", "link:next 1"),
        ("<link rel=\"icon\" href=\"1\"><link href=\"2\" rel=\"next\" rel=\"icon\">", "link:next 2"),
        ("<svg><g a=x/><path b=\"c\"/><a href=\"1\"></svg><a href=\"2\">", "svg-a 1;a 2"),
        ("<svg a=x/><a href=\"1\"></svg>", "svg-a 1"),
        ("<svg a=\"x\"/><a href=\"1\">", "a 1"),
        ("<svg/><A\u{20}href=\"1\"><a\0href=\"2\"><a href=\"3\">", "a 1;a 3"),
    ] {
        let kinds = Kinds::parse("a,svg-a,img,srcset,refresh,link:next").unwrap();
        let all = raw(tag.replace("LONG", &long), &kinds).join(";").replace("http://a.test/d/", "");
        assert_eq!(all, found, "{tag}");
    }
}

#[test]
fn kinds_of_a_link_are_reported_as_such() {
    let document = Absolute::parse("http://a.test/").unwrap();
    let mut kinds = Vec::new();
    scan_raw(b"<a href=1><link rel=canonical href=2>", None, &document, &Kinds::DEFAULT, &mut |raw| {
        kinds.push(raw.kind)
    });
    assert_eq!(kinds, [Kind::A, Kind::Canonical]);
}
