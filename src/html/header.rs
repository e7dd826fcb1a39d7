//! What a response's header fields say: links, and permitted uses of the page.
//!
//! Decides: `Link` counts like `<link>` in a page: by each token of its first `rel`. A link whose context is another
//! resource (`anchor`) is not about this page. `Refresh` counts like a `<meta>` of that name. [`super::directives`]
//! reads `X-Robots-Tag`. Source: RFC 8288 section 3 (`Link`; its grammar, read as leniently as in appendix B.2 to
//! B.4, and continuing after invalid links).
//! Invariants: pure, linear, no byte can cause a panic.
//! Limits: those of the HTTP client on header fields.

use encoding_rs::UTF_8;

use super::listed::refresh_url;
use super::mime::{is_http_space, unquote};
use super::scan::{ADDRESS_BYTES_MAX, ALTERNATE, Format, has_token, push_tokens};
use super::{Budget, Kind, Kinds, Summary};
use ringcrawl_url::{Base, Url, UrlError, text_of_bytes};

/// A link of a header field.
#[derive(Clone, Copy, Debug)]
pub struct FieldLink<'a> {
    /// `Link` or `Refresh`.
    pub kind: Kind,
    /// Where it leads.
    pub url: &'a Url,
    /// For a link to the page itself, the format of its target.
    pub format: Format,
    /// Whether the [`Budget`] has room for a URL that was not passed on before.
    pub has_room: bool,
}

/// Passes on the URLs of the `Link` fields `values` of the response to `url` whose kinds are wanted, in order, as
/// many as `budget` admits; counts them in `summary`. `out` is like that of [`scan`](super::scan).
pub fn scan_link_fields<'a>(
    values: impl Iterator<Item = &'a [u8]>,
    url: &Url,
    kinds: &Kinds,
    budget: &mut Budget,
    summary: &mut Summary,
    out: &mut dyn FnMut(FieldLink) -> bool,
) {
    let base = Base::new(url);
    let mut rels = String::new();
    for value in values {
        let value = text_of_bytes(value);
        let mut rest: &str = &value;
        while let Some((link, after)) = next_link(rest) {
            rest = after;
            if link.anchor.is_some_and(|anchor| !is_page(&anchor, &base, url)) {
                continue;
            }
            rels.clear();
            push_tokens(&link.rel.unwrap_or_default(), &mut rels);
            let format = match has_token(&rels, ALTERNATE) {
                true => Format::of(link.media_type.unwrap_or_default().as_bytes()),
                false => Format::Page,
            };
            for _ in rels.split_ascii_whitespace().filter(|rel| kinds.link(rel).is_some()) {
                give(link.target, (Kind::Link, format), &base, budget, summary, out);
            }
        }
    }
}

/// Passes on the URL that the `Refresh` field `value` of the response to `url` names, like that of a `<meta
/// http-equiv=refresh>` (HTML section 7.5.1, "create and initialize a Document object", and 4.2.5.3, "shared
/// declarative refresh steps").
pub fn scan_refresh_field(
    value: &[u8],
    url: &Url,
    budget: &mut Budget,
    summary: &mut Summary,
    out: &mut dyn FnMut(FieldLink) -> bool,
) {
    if let Some(target) = refresh_url(&text_of_bytes(value)) {
        give(target, (Kind::Refresh, Format::Page), &Base::new(url), budget, summary, out);
    }
}

fn give(
    target: &str,
    (kind, format): (Kind, Format),
    base: &Base,
    budget: &mut Budget,
    summary: &mut Summary,
    out: &mut dyn FnMut(FieldLink) -> bool,
) {
    if !budget.admits(target) {
        summary.dropped += 1;
        return;
    }
    match base.resolve(target, UTF_8) {
        Ok(url) => {
            let is_new = out(FieldLink { kind, url: &url, format, has_room: budget.has_room() });
            let is_taken = budget.took(url.as_str().len(), is_new);
            summary.links += usize::from(is_taken);
            summary.dropped += usize::from(!is_taken);
        }
        Err(UrlError::Scheme) => summary.other_scheme += 1,
        Err(_) => summary.bad += 1,
    }
}

/// Adds what an `X-Robots-Tag` field says to all agents or to the agent with the product token `agent`.
pub fn hear_robots_tag(value: &[u8], agent: &str, summary: &mut Summary) {
    summary.robots.hear_field(&String::from_utf8_lossy(value), agent);
}

/// The first licence that the `Link` fields `values` of the response to `url` name (RFC 4946, RSL 1.0).
pub fn license_of<'a>(values: impl Iterator<Item = &'a [u8]>, url: &Url) -> Option<Url> {
    let base = Base::new(url);
    for value in values {
        let value = text_of_bytes(value);
        let mut rest: &str = &value;
        while let Some((link, after)) = next_link(rest) {
            rest = after;
            let mut rels = String::new();
            push_tokens(&link.rel.unwrap_or_default(), &mut rels);
            let is_license = rels.split_ascii_whitespace().any(|rel| rel == "license");
            if is_license
                && link.anchor.is_none_or(|anchor| is_page(&anchor, &base, url))
                && link.target.len() <= ADDRESS_BYTES_MAX
                && let Ok(license) = base.resolve(link.target, UTF_8)
                && license.as_str().len() <= ADDRESS_BYTES_MAX
            {
                return Some(license);
            }
        }
    }
    None
}

/// Whether an `anchor` is the page itself, and not another resource or a part of it.
fn is_page(anchor: &str, base: &Base, url: &Url) -> bool {
    !anchor.contains('#') && base.resolve(anchor, UTF_8).is_ok_and(|context| context == *url)
}

/// A link of a field's value, with the first occurrence of each parameter that matters.
struct Link<'v> {
    target: &'v str,
    rel: Option<String>,
    anchor: Option<String>,
    media_type: Option<String>,
}

/// The first link, and what follows the comma behind it.
fn next_link(value: &str) -> Option<(Link<'_>, &str)> {
    let (_, value) = value.split_once('<')?;
    let (target, mut rest) = value.split_once('>')?;
    let mut link = Link { target, rel: None, anchor: None, media_type: None };
    while let Some(parameter) = trim(rest).strip_prefix(';') {
        let (name, value, after) = next_parameter(trim(parameter))?;
        if name.eq_ignore_ascii_case("rel") {
            link.rel.get_or_insert(value);
        } else if name.eq_ignore_ascii_case("anchor") {
            link.anchor.get_or_insert(value);
        } else if name.eq_ignore_ascii_case("type") {
            link.media_type.get_or_insert(value);
        }
        rest = after;
    }
    Some((link, rest.split_once(',').map(|(_, after)| after).unwrap_or_default()))
}

/// A parameter's name, its value without quotes, and what follows it. `None` never occurs: each cut is at a
/// character.
fn next_parameter(parameter: &str) -> Option<(&str, String, &str)> {
    let end = parameter.find(|one| is_http_space(one) || matches!(one, '=' | ';' | ',')).unwrap_or(parameter.len());
    let (name, after) = parameter.split_at_checked(end)?;
    let Some(value) = trim(after).strip_prefix('=').map(trim) else { return Some((name, String::new(), after)) };
    if let Some(quoted) = value.strip_prefix('"') {
        let (value, after) = unquote(quoted);
        return Some((name, value, after));
    }
    let (value, after) = value.split_at_checked(value.find([';', ',']).unwrap_or(value.len()))?;
    Some((name, value.trim_end_matches(is_http_space).to_owned(), after))
}

fn trim(text: &str) -> &str {
    text.trim_start_matches(is_http_space)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(value: &str) -> Vec<String> {
        links_of(value.as_bytes())
    }

    fn links_of(value: &[u8]) -> Vec<String> {
        let url = Url::parse("http://a.test/dir/page").expect("a URL");
        let mut found = Vec::new();
        let mut summary = Summary::none(UTF_8);
        scan_link_fields(
            [value].into_iter(),
            &url,
            &Kinds::FOLLOW,
            &mut Budget::of_links(3),
            &mut summary,
            &mut |link| {
                if link.has_room {
                    found.push(link.url.as_str().to_owned());
                }
                true
            },
        );
        assert_eq!(summary.links, found.len());
        found
    }

    #[test]
    fn link_fields() {
        for (value, expected) in [
            ("</next>; rel=next", vec!["http://a.test/next"]),
            (
                "<b?x,y;z>;rel=\"NEXT\" ; title=\"a, <no>; rel=next\", <c>; rel=prev",
                vec!["http://a.test/dir/b?x,y;z", "http://a.test/dir/c"],
            ),
            ("</c>; rel=\"stylesheet canonical\"", vec!["http://a.test/c"]),
            ("</c>; title=\"a\\\", \"; rel=canonical", vec!["http://a.test/c"]),
            ("</style>; rel=preload; as=style", vec![]),
            ("</other>; rel=next; anchor=\"#foo\"", vec![]),
            (
                "</page>; rel=next; anchor=\"\", <>; rel=prev; anchor=page",
                vec!["http://a.test/page", "http://a.test/dir/page"],
            ),
            ("</other>; rel=next; anchor=\"/other\"", vec![]),
            ("</x>; rel=\"next nofollow next NEXT\"", vec!["http://a.test/x"]),
            (
                "</x>; rel = next ,</y>;rel= \"prev\",</z> ; rel\t=next",
                vec!["http://a.test/x", "http://a.test/y", "http://a.test/z"],
            ),
            ("</x>; title=5\" wide; rel=next, </y>; rel=prev", vec!["http://a.test/x", "http://a.test/y"]),
            ("</x>; rel=\"next\" and more, </y>; rel=prev", vec!["http://a.test/x", "http://a.test/y"]),
            ("</x>; rel=\"\"; rel=next, </y>; rel; rel=next, </z>; rel*=next", vec![]),
            ("< /x >; rel=\"next", vec!["http://a.test/x"]),
            ("<\u{a0}x>; rel=next", vec!["http://a.test/dir/%C2%A0x"]),
            ("</no>", vec![]),
            ("</no; rel=next", vec![]),
            ("mailto:x; rel=next, <mailto:x>; rel=next, <http://[>; rel=next", vec![]),
            (
                "</1>; rel=next, </2>; rel=next,,</3>; rel=next , </4>; rel=next",
                vec!["http://a.test/1", "http://a.test/2", "http://a.test/3"],
            ),
        ] {
            assert_eq!(links(value), expected, "{value}");
        }
    }

    #[test]
    fn formats() {
        let url = Url::parse("http://a.test/").expect("a URL");
        let value = b"</1>; rel=alternate; type=\"application/rss+xml; charset=utf-8\", </2>; rel=\"alternate next\"; \
                      type=application/json, </3>; type=text/xml; rel=next, </4>; rel=alternate, </5>; rel=alternate; \
                      type=\"text/xml+oembed\"";
        let mut formats = Vec::new();
        let mut summary = Summary::none(UTF_8);
        let budget = &mut Budget::of_links(9);
        scan_link_fields([&value[..]].into_iter(), &url, &Kinds::FOLLOW, budget, &mut summary, &mut |link| {
            formats.push((link.url.path_and_query().to_owned(), link.format));
            true
        });
        let of = |path: &str, format| (path.to_owned(), format);
        let expected = [
            of("/1", Format::Feed),
            of("/2", Format::Other),
            of("/2", Format::Other),
            of("/3", Format::Page),
            of("/4", Format::Page),
            of("/5", Format::Oembed),
        ];
        assert_eq!(formats, expected);
    }

    #[test]
    fn refresh_fields() {
        let url = Url::parse("http://a.test/d/p").expect("a URL");
        for (value, target) in [
            (&b"0; url=/x"[..], Some("http://a.test/x")),
            (b"5;URL='y?a=1'", Some("http://a.test/d/y?a=1")),
            (b"0, //b.test/", Some("http://b.test/")),
            (b"1.5 /caf\xe9", Some("http://a.test/caf%E9")),
            (b"5", None),
            (b"x; url=/x", None),
            (b"0; url=mailto:a@b.test", None),
        ] {
            let (mut found, mut summary) = (Vec::new(), Summary::none(UTF_8));
            scan_refresh_field(value, &url, &mut Budget::of_links(1), &mut summary, &mut |link| {
                assert_eq!((link.kind, link.format), (Kind::Refresh, Format::Page));
                found.push(link.url.as_str().to_owned());
                true
            });
            assert_eq!(found, Vec::from_iter(target), "{}", value.escape_ascii());
            assert_eq!(summary.links, found.len());
        }
    }

    #[test]
    fn bytes_that_are_no_utf8() {
        let value = b"</caf\xe9?\xfc>; rel=next; title=\"\xe4\", <\xe9/\xc3\xa9>; rel=prev";
        assert_eq!(links_of(value), ["http://a.test/caf%E9?%FC", "http://a.test/dir/%E9/%C3%A9"]);
        let url = Url::parse("http://a.test/dir/page").expect("a URL");
        let license = license_of([&b"<l\xe9>; rel=license"[..]].into_iter(), &url);
        assert_eq!(license.as_ref().map(Url::as_str), Some("http://a.test/dir/l%E9"));
    }

    #[test]
    fn a_rel_of_many_tokens_gives_no_more_than_a_page_would() {
        let value = format!("<{}>; rel=\"{}\"", "a".repeat(1_000), "next prev canonical ".repeat(1_000));
        assert_eq!(links(&value).len(), 3);
    }

    #[test]
    fn licenses() {
        let url = Url::parse("http://a.test/dir/page").expect("a URL");
        let long = format!("</{}>; rel=license", "x".repeat(600));
        for (value, expected) in [
            ("</license.xml>; rel=\"license\"; type=\"application/rsl+xml\"", Some("http://a.test/license.xml")),
            ("<a>; rel=next, <b>; rel=\"nofollow LICENSE\"", Some("http://a.test/dir/b")),
            ("<b>; rel=license; anchor=\"/other\", <c>; rel=license", Some("http://a.test/dir/c")),
            ("<mailto:x>; rel=license", None),
            ("<x>; rel=licensed", None),
            (&long, None),
        ] {
            let found = license_of([value.as_bytes()].into_iter(), &url);
            assert_eq!(found.as_ref().map(Url::as_str), expected, "{value}");
        }
    }
}
