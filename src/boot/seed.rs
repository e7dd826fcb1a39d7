//! One seed: from what somebody typed to a URL.
//!
//! Decides: a seed without a scheme gets `http://`, as people write them. Text that the URL standard accepts but nobody
//! means is refused: to the standard, `https//example.org` is a host called "https", and `exmaple` a host of that name.
//! An error says what is wrong and, where that can be guessed, what may have been meant.
//! Why so: a mistyped seed costs a crawl that ends at once or, worse, one that lacks a part, which is noticed weeks
//! later.
//!
//! Invariants: a guess is itself a valid seed.
//! Limits: a host without a dot is accepted only with its scheme, `http://intranet/`: whoever writes that means it.

use crate::config::nearest;
use crate::url::Url;

/// Reads one seed, already trimmed.
pub(super) fn parse(text: &str) -> Result<Url, String> {
    if let Some((first, _)) = text.split_once(char::is_whitespace) {
        let why = "white space in it: a seed is one URL, and a space in a URL is written %20";
        return Err(wrong(why, first));
    }
    let (word, mark, rest) = split(text);
    let scheme = word.to_ascii_lowercase();
    let near = nearest(&scheme, ["http", "https"].into_iter()).filter(|_| !scheme.contains('.'));
    let meant = |scheme: &str| format!("{scheme}://{rest}");
    match (near, mark) {
        (Some(known), "://") if known == scheme => whole(text),
        (Some(known), "://") => Err(wrong("the scheme is not http or https", &meant(known))),
        (Some(known), mark) if known == scheme && !mark.is_empty() || mark.len() > 1 => {
            Err(wrong(&format!("\"{word}\" is followed by \"{mark}\", not by \"://\""), &meant(known)))
        }
        (None, "://") if !word.is_empty() => Err("the scheme is not http or https".to_owned()),
        (None, mark) if word.is_empty() && !mark.is_empty() => {
            Err(wrong(&format!("there is no scheme before \"{mark}\""), &meant("http")))
        }
        // "example.org:8080" and "localhost:8080" are hosts and ports, "mailto:a@b.test" is a scheme.
        (_, ":") if !word.contains('.') && !rest.starts_with(|character: char| character.is_ascii_digit()) => {
            Err("the scheme is not http or https".to_owned())
        }
        _ => bare(text),
    }
}

/// A seed with its scheme.
fn whole(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    if url.host().split('.').rev().skip(1).any(str::is_empty) {
        return Err(format!("\"{}\" is not a host name: it begins with a dot, or has two in a row", url.host()));
    }
    Ok(url)
}

/// A seed without a scheme.
fn bare(text: &str) -> Result<Url, String> {
    let authority = text.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    if let Some((_, host)) = authority.rsplit_once('@') {
        return Err(wrong("a mail address, or credentials, which a seed cannot carry", host));
    }
    let host = match authority.split_once(':') {
        Some((host, _)) if !authority.starts_with('[') => host,
        _ => authority,
    };
    // RFC 3490 section 3.1: IDNA accepts these as dots, too.
    let has_dot = host.trim_end_matches('.').contains(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']);
    let with_scheme = format!("http://{text}");
    if has_dot || host.starts_with('[') || host.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
        return whole(&with_scheme);
    }
    // An empty host and the like are better explained by the parser.
    let url = whole(&with_scheme)?;
    Err(format!("\"{host}\" is not a host name: there is no dot in it (if it is one, write {})", url.as_str()))
}

/// The first word of `text`, the punctuation after it that may have been meant to end a scheme, and the rest.
fn split(text: &str) -> (&str, &str, &str) {
    let is_word = |character: char| character.is_ascii_alphanumeric() || matches!(character, '+' | '-' | '.');
    let after_word = text.trim_start_matches(is_word);
    let rest = after_word.trim_start_matches([':', ';', '/', '\\']);
    let word = text.strip_suffix(after_word).unwrap_or_default();
    (word, after_word.strip_suffix(rest).unwrap_or_default(), rest)
}

/// What is wrong, and `guess` if that is a valid seed.
fn wrong(why: &str, guess: &str) -> String {
    match parse(guess) {
        Ok(url) => format!("{why} (did you mean {}?)", url.as_str()),
        Err(_) => why.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_as_people_write_them() {
        for (text, url) in [
            ("example.org", "http://example.org/"),
            ("example.org/path?q=http://x.test/", "http://example.org/path?q=http://x.test/"),
            ("EXAMPLE.org:8080", "http://example.org:8080/"),
            ("example.org.", "http://example.org./"),
            ("https.example.org", "http://https.example.org/"),
            ("http-archive.org//x", "http://http-archive.org//x"),
            ("xn--mnchen-3ya.de", "http://xn--mnchen-3ya.de/"),
            ("münchen.de/straße", "http://xn--mnchen-3ya.de/stra%C3%9Fe"),
            ("例え。jp", "http://xn--r8jz45g.jp/"),
            ("localhost", "http://localhost/"),
            ("LOCALHOST:8080/x", "http://localhost:8080/x"),
            ("127.0.0.1:9", "http://127.0.0.1:9/"),
            ("[::1]", "http://[::1]/"),
            ("[::1]:8080/a", "http://[::1]:8080/a"),
            ("http://intranet/a", "http://intranet/a"),
            ("HTTPS://example.org/a#b", "https://example.org/a"),
            ("http://user:password@example.org/", "http://example.org/"),
        ] {
            assert_eq!(parse(text).as_ref().map(Url::as_str), Ok(url), "{text}");
        }
    }

    #[test]
    fn mistyped_seeds_are_refused_with_a_guess() {
        for (text, why, guess) in [
            ("http:/wiki.test", "\"http\" is followed by \":/\"", "http://wiki.test/"),
            ("https//foo.org", "\"https\" is followed by \"//\"", "https://foo.org/"),
            ("HTTPS:foo.org/a", "\"HTTPS\" is followed by \":\"", "https://foo.org/a"),
            ("http:///foo.org", "\"http\" is followed by \":///\"", "http://foo.org/"),
            ("http;//foo.org", "\"http\" is followed by \";//\"", "http://foo.org/"),
            ("http:\\\\foo.org\\a", "\"http\" is followed by", "http://foo.org/a"),
            ("https/foo.org", "\"https\" is followed by \"/\"", "https://foo.org/"),
            ("htp://foo.org", "the scheme is not http or https", "http://foo.org/"),
            ("htps:/foo.org", "\"htps\" is followed by \":/\"", "https://foo.org/"),
            ("//foo.org/a", "no scheme before \"//\"", "http://foo.org/a"),
            ("://foo.org/a", "no scheme before \"://\"", "http://foo.org/a"),
            ("http://bbox.test/ trailing", "white space in it", "http://bbox.test/"),
            ("foo.org # ours", "white space in it", "http://foo.org/"),
            ("bot@foo.org", "a mail address", "http://foo.org/"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
            assert!(error.ends_with(&format!("(did you mean {guess}?)")), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_no_seed_is_refused_without_one() {
        for (text, why) in [
            ("exmaple", "\"exmaple\" is not a host name: there is no dot in it (if it is one, write http://exmaple/)"),
            ("wiki:8080/x", "if it is one, write http://wiki:8080/x)"),
            ("exmaple.", "there is no dot in it"),
            ("42", "there is no dot in it"),
            ("http", "there is no dot in it"),
            ("not a url", "white space in it"),
            ("http:/exmaple", "\"http\" is followed by \":/\""),
            ("", "empty host"),
            ("http://", "empty host"),
            ("ftp://a.test/", "not http or https"),
            ("mailto:a@b.test", "not http or https"),
            ("javascript:void(0)", "not http or https"),
            ("news:c", "not http or https"),
            ("http://[b/", "not a URL"),
            ("<http://a.test/>", "not a URL"),
            ("example..org", "two in a row"),
            ("http://.example.org/", "begins with a dot"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        // With a scheme a host without a dot is accepted, and so it is guessed.
        assert!(parse("http:/exmaple").is_err_and(|error| error.ends_with("(did you mean http://exmaple/?)")));
    }
}
