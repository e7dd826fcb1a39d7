//! One seed: from what somebody typed to a URL.
//!
//! Decides: a seed without a scheme gets `http://`, as people write them. Text that the URL standard accepts but that
//! is almost certainly a mistake is refused: to the standard, `https//example.org` is a host called "https",
//! `exmaple` a host of that name, and `1.2.3` the address 1.2.0.3. A relative URL, such as `/about` or `index.html`,
//! is refused, too. Credentials are refused, because a URL of the crawl has none: they would be dropped.
//! An error says what is wrong and, where it can be guessed, what may have been meant.
//! Why so: a mistyped seed causes a crawl that ends at once or, worse, one with a missing part, which is noticed
//! weeks later.
//!
//! Invariants: a guess is itself a valid seed.
//! Limits: a host without a dot is accepted only with its scheme, `http://intranet/`: with a scheme it is intended.

use std::net::Ipv4Addr;

use ringcrawl_config::nearest;
use ringcrawl_url::Url;

/// Reads one seed, already trimmed.
pub(super) fn parse(text: &str) -> Result<Url, String> {
    if let Some((first, _)) = text.split_once(char::is_whitespace) {
        let why = "it has white space: a seed is one URL, and a space in a URL is written %20";
        // A space within the name of a host leaves the name of another one.
        return Err(if first.contains('.') { wrong(why, first) } else { why.to_owned() });
    }
    if is_relative(text) {
        return Err("a relative URL: a seed needs a host, such as https://example.org/path".to_owned());
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
    let (scheme, _, rest) = split(text);
    let (word, mark, after) = split(rest);
    if matches!(word.to_ascii_lowercase().as_str(), "http" | "https") && mark.len() > 1 {
        return Err(wrong("two schemes", &format!("{word}://{after}")));
    }
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let authority = authority(rest);
    if let Some((_, place)) = authority.rsplit_once('@') {
        let after = rest.strip_prefix(authority).unwrap_or_default();
        let why = "it has credentials, which a seed cannot carry; set http.auth for its origin";
        return Err(wrong(why, &format!("{scheme}://{place}{after}")));
    }
    host_name(&url)?;
    // An address of four numbers is kept as it is written; any other spelling obscures the address.
    let written = host_of(authority).trim_end_matches('.');
    if url.host().parse::<Ipv4Addr>().is_ok() && written != url.host() {
        return Err(format!("\"{written}\" means the address {}; write that if you mean it", url.host()));
    }
    Ok(url)
}

/// Whether the host of `url` can exist: the URL standard accepts nearly every character. An underscore is no mistake:
/// such hosts exist.
fn host_name(url: &Url) -> Result<(), String> {
    let host = url.host();
    let no_name = |why: &str| Err(format!("\"{host}\" is not a host name: {why}"));
    if host.starts_with('[') {
        return Ok(());
    }
    if host.split('.').rev().skip(1).any(str::is_empty) {
        return no_name("it begins with a dot, or has two in a row");
    }
    let is_of_names = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_');
    if let Some(other) = host.chars().find(|character| !is_of_names(*character)) {
        let why = format!("names cannot contain '{other}'");
        let guess = host.replace(',', ".");
        return if guess.chars().all(is_of_names) {
            Err(wrong(&format!("\"{host}\" is not a host name: {why}"), &url.as_str().replacen(host, &guess, 1)))
        } else {
            no_name(&why)
        };
    }
    // Below the registered name such hosts exist, against RFC 1123 section 2.1.
    let registered = url.site().split('.').next().unwrap_or_default();
    if registered.starts_with('-') || registered.ends_with('-') {
        return no_name("a registered name neither begins nor ends with a hyphen");
    }
    Ok(())
}

/// Credentials, host and port: the part before the path.
fn authority(after_scheme: &str) -> &str {
    after_scheme.split(['/', '\\', '?', '#']).next().unwrap_or_default()
}

fn host_of(authority: &str) -> &str {
    match authority.split_once(':') {
        Some((host, _)) if !authority.starts_with('[') => host,
        _ => authority,
    }
}

/// `text` without its password, for a message: other people read logs.
pub(super) fn without_password(text: &str) -> String {
    let (_, mark, after) = split(text);
    let rest = if mark.contains(['/', '\\']) { after } else { text };
    let credentials = authority(rest).rsplit_once('@').and_then(|(credentials, _)| credentials.split_once(':'));
    match credentials {
        Some((user, password)) if !password.is_empty() && !user.eq_ignore_ascii_case("mailto") => {
            text.replacen(&format!("{user}:{password}@"), &format!("{user}:…@"), 1)
        }
        _ => text.to_owned(),
    }
}

/// A seed without a scheme.
fn bare(text: &str) -> Result<Url, String> {
    let authority = authority(text);
    if let Some((_, host)) = authority.rsplit_once('@') {
        return Err(wrong("a mail address, or credentials, which a seed cannot carry", host));
    }
    let host = host_of(authority);
    // RFC 3490 section 3.1: IDNA accepts these as dots, too.
    let has_dot = host.trim_end_matches('.').contains(['.', '\u{3002}', '\u{ff0e}', '\u{ff61}']);
    let with_scheme = format!("http://{text}");
    if has_dot || host.starts_with('[') || host.trim_end_matches('.').eq_ignore_ascii_case("localhost") {
        return whole(&with_scheme);
    }
    // The parser explains an empty host and the like better.
    let url = whole(&with_scheme)?;
    Err(format!("\"{host}\" is not a host name: it has no dot (if it is one, write {})", url.as_str()))
}

/// Whether it can only be a reference relative to another page (RFC 3986 section 4.2): its path, its query, or the
/// name of a file, whose extension is not a top-level domain.
fn is_relative(text: &str) -> bool {
    let is_file = || {
        let ending =
            text.split(['/', '?', '#']).next().and_then(|name| name.rsplit_once('.')).map(|(_, ending)| ending);
        ending.is_some_and(|ending| FILES.iter().any(|file| file.eq_ignore_ascii_case(ending)))
    };
    let is_path = text.starts_with('/') && !text.starts_with("//");
    is_path || ["./", "../", "?", "#"].iter().any(|start| text.starts_with(start)) || is_file()
}

/// File extensions of pages; none is a top-level domain.
const FILES: [&str; 9] = ["html", "htm", "xhtml", "php", "asp", "aspx", "jsp", "pdf", "xml"];

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
            ("http://http/a", "http://http/a"),
            ("http://http:8080/", "http://http:8080/"),
            ("http://my_host.example.org/", "http://my_host.example.org/"),
            ("http://-a-.example.org/", "http://-a-.example.org/"),
            ("http://192.0.2.1./", "http://192.0.2.1/"),
            ("php.example.org/x.html", "http://php.example.org/x.html"),
            ("http://index.html/", "http://index.html/"),
            ("http://[2001:DB8::0:1]:81/", "http://[2001:db8::1]:81/"),
            ("http://example.org/?mail=a@b.test", "http://example.org/?mail=a@b.test"),
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
            ("http://bbox.test/ trailing", "it has white space", "http://bbox.test/"),
            ("foo.org # ours", "it has white space", "http://foo.org/"),
            ("bot@foo.org", "a mail address", "http://foo.org/"),
            ("http://http://foo.org/a", "two schemes", "http://foo.org/a"),
            ("http://https//foo.org/a", "two schemes", "https://foo.org/a"),
            ("https://HTTPS://foo.org", "two schemes", "https://foo.org/"),
            ("http://foo,org/a,b", "\"foo,org\" is not a host name: names cannot contain ','", "http://foo.org/a,b"),
            ("foo,bar.org", "names cannot contain ','", "http://foo.bar.org/"),
            ("https://user:pw@foo.org:81/a@b", "set http.auth for its origin", "https://foo.org:81/a@b"),
            ("http://user@foo.org", "set http.auth for its origin", "http://foo.org/"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
            assert!(error.ends_with(&format!("(did you mean {guess}?)")), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_no_seed_is_refused_without_one() {
        for (text, why) in [
            ("exmaple", "\"exmaple\" is not a host name: it has no dot (if it is one, write http://exmaple/)"),
            ("wiki:8080/x", "if it is one, write http://wiki:8080/x)"),
            ("exmaple.", "it has no dot"),
            ("42", "\"42\" means the address 0.0.0.42"),
            ("1.2.3", "\"1.2.3\" means the address 1.2.0.3; write that if you mean it"),
            ("http://1.2.3/", "\"1.2.3\" means the address 1.2.0.3; write that if you mean it"),
            ("http://0x7f.1:81/a", "\"0x7f.1\" means the address 127.0.0.1"),
            ("http://-x.org/", "neither begins nor ends with a hyphen"),
            ("http://www.x-.co.uk/", "neither begins nor ends with a hyphen"),
            ("http://a$b.org/", "\"a$b.org\" is not a host name: names cannot contain '$'"),
            ("http", "it has no dot"),
            ("not a url", "it has white space"),
            ("http:/exmaple", "\"http\" is followed by \":/\""),
            ("", "empty host"),
            ("http://", "empty host"),
            ("ftp://a.test/", "not http or https"),
            ("mailto:a@b.test", "not http or https"),
            ("javascript:void(0)", "not http or https"),
            ("news:c", "not http or https"),
            ("http://[b/", "not a URL"),
            ("<http://a.test/>", "not a URL"),
            ("/about", "a relative URL: a seed needs a host, such as https://example.org/path"),
            ("../a/b.html", "a relative URL"),
            ("./example.org", "a relative URL"),
            ("?page=2", "a relative URL"),
            ("index.HTML#top", "a relative URL"),
            ("sitemap.xml?x=1", "a relative URL"),
            ("example..org", "two in a row"),
            ("http://.example.org/", "begins with a dot"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
        for (text, shown) in [
            ("https://me:secret@a.test/b:c@d", "https://me:…@a.test/b:c@d"),
            ("http:/me:secret@a.test", "http:/me:…@a.test"),
            ("me:secret@a.test", "me:…@a.test"),
            ("mailto:a@b.test", "mailto:a@b.test"),
            ("http://a.test:80/b@c", "http://a.test:80/b@c"),
            ("a.test/?x=y:z@", "a.test/?x=y:z@"),
            (":@a.test", ":@a.test"),
        ] {
            assert_eq!(without_password(text), shown);
        }
        assert!(parse("http://exa mple.com/").is_err_and(|error| error.ends_with("is written %20")), "no other host");
        // With a scheme a host without a dot is accepted, so it can be a guess.
        assert!(parse("http:/exmaple").is_err_and(|error| error.ends_with("(did you mean http://exmaple/?)")));
    }
}
