//! What a response's header fields say: links, and what may be done with the page.
//!
//! Decides: `Link` counts as `<link>` does in a page: by each token of its `rel`. A link whose context is another resource
//! (`anchor`) says nothing of this page. `X-Robots-Tag` counts when it is for everybody or for us.
//! Source: RFC 8288 section 3 (`Link`; its grammar, read as leniently as appendix B.2 has it); the robots tag as search
//! engines document it.
//! Invariants: pure, linear, no byte can cause a panic.
//! Limits: header fields have their own, of the HTTP client.

use encoding_rs::UTF_8;

use super::{Kinds, Summary};
use crate::url::{Base, Url, UrlError};

/// Gives the URLs of the `Link` fields `values` of the response to `url` whose kinds are wanted, in order, as long as
/// `summary` counts fewer than `links_max`; counts them there.
pub fn scan_link_fields<'a>(
    values: impl Iterator<Item = &'a [u8]>,
    url: &Url,
    kinds: &Kinds,
    links_max: usize,
    summary: &mut Summary,
    out: &mut dyn FnMut(Url),
) {
    let base = Base::new(url);
    for value in values {
        let value = String::from_utf8_lossy(value);
        let mut rest: &str = &value;
        while let Some((target, parameters, after)) = next_link(rest) {
            rest = after;
            let Some(rel) = parameter(parameters, "rel").filter(|_| parameter(parameters, "anchor").is_none()) else {
                continue;
            };
            for token in rel.split_ascii_whitespace().map(str::to_ascii_lowercase) {
                if kinds.link(&token).is_none() {
                    continue;
                }
                if summary.links >= links_max {
                    summary.dropped += 1;
                    continue;
                }
                match base.resolve(target.trim(), UTF_8) {
                    Ok(url) => {
                        summary.links += 1;
                        out(url);
                    }
                    Err(UrlError::Scheme) => summary.other_scheme += 1,
                    Err(_) => summary.bad += 1,
                }
            }
        }
    }
}

/// Adds what an `X-Robots-Tag` field says to the agent with the product token `agent` or to all.
pub fn hear_robots_tag(value: &[u8], agent: &str, summary: &mut Summary) {
    let value = String::from_utf8_lossy(value);
    let mut is_for_us = true;
    for part in value.split(',') {
        let mut directive = part.trim();
        if let Some((name, after)) = directive.split_once(':') {
            let name = name.trim();
            const WITH_VALUES: [&str; 4] =
                ["unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"];
            if !WITH_VALUES.iter().any(|known| name.eq_ignore_ascii_case(known)) {
                // A name holds for all that follows.
                is_for_us = name.eq_ignore_ascii_case(agent);
                directive = after.trim();
            }
        }
        if is_for_us {
            let none = directive.eq_ignore_ascii_case("none");
            summary.noindex |= none || directive.eq_ignore_ascii_case("noindex");
            summary.nofollow_page |= none || directive.eq_ignore_ascii_case("nofollow");
        }
    }
}

/// The first link of a field's value: its target, its parameters, and what follows the comma behind them.
fn next_link(value: &str) -> Option<(&str, &str, &str)> {
    let (_, value) = value.split_once('<')?;
    let (target, value) = value.split_once('>')?;
    let mut is_quoted = false;
    let mut is_escaped = false;
    let end = value.bytes().position(|byte| {
        let was_escaped = std::mem::replace(&mut is_escaped, false);
        match byte {
            b'\\' if is_quoted && !was_escaped => is_escaped = true,
            b'"' if !was_escaped => is_quoted = !is_quoted,
            b',' => return !is_quoted,
            _ => {}
        }
        false
    });
    let (parameters, after) = value.split_at_checked(end.unwrap_or(value.len()))?;
    Some((target, parameters, after.strip_prefix(',').unwrap_or(after)))
}

/// The first parameter of that name, without case, quotes removed.
fn parameter(parameters: &str, name: &str) -> Option<String> {
    super::mime::parameter(parameters, name).map(|value| value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(value: &str) -> Vec<String> {
        let url = Url::parse("http://a.test/dir/page").expect("a URL");
        let mut found = Vec::new();
        let mut summary = Summary::none(UTF_8);
        scan_link_fields([value.as_bytes()].into_iter(), &url, &Kinds::FOLLOW, 3, &mut summary, &mut |url| {
            found.push(url.as_str().to_owned());
        });
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
    fn robots_tags() {
        let heard = |value: &str| {
            let mut summary = Summary::none(UTF_8);
            hear_robots_tag(value.as_bytes(), "ringcrawl", &mut summary);
            (summary.noindex, summary.nofollow_page)
        };
        for (value, expected) in [
            ("noindex", (true, false)),
            ("NoFollow , max-snippet: 5, noindex", (true, true)),
            ("none", (true, true)),
            ("otherbot: none", (false, false)),
            ("otherbot: noindex, nofollow, ringcrawl: nofollow", (false, true)),
            ("RingCrawl:none", (true, true)),
            ("unavailable_after: 25 Jun 2030 15:00:00 PST, noindex", (true, false)),
            ("", (false, false)),
        ] {
            assert_eq!(heard(value), expected, "{value}");
        }
    }
}
