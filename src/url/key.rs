//! The key of a URL: it identifies the URL, so that two addresses of one page count as one.
//!
//! Decides: what the canonical form cannot know. Servers give the same answer under a session's name, with a mail
//! campaign's tracking mark, with parameters in another order, and under a folder's own name; no standard says so, so
//! each rule is off by default. A key is compared and never fetched: a URL is requested as it was found. Session ids
//! are recognized by name and form: `sid=` with a word is a page.
//!
//! Invariants: scheme, host and port of a key are its URL's (a rule only sees path and query), so host, site and
//! shard of both are the same; the key of a key is itself; linear, except for sorting the parameters.
//! Limits: keys are no longer than their URLs. Parameters are separated by `&`; names are compared as written,
//! ignoring letter case, without unescaping.

use super::Url;

/// Which differences between URLs are ignored. The default: none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct KeyRules {
    /// Session ids in path and query.
    pub sessions: bool,
    /// These parameters; one that ends in `*` stands for all with that prefix.
    pub parameters: Vec<String>,
    /// The order of parameters; several with one name keep theirs.
    pub order: bool,
    /// The file name of a folder's index page.
    pub index_page: bool,
}

impl KeyRules {
    /// Whether there are none: every URL is its own key.
    pub fn is_empty(&self) -> bool {
        !self.sessions && self.parameters.is_empty() && !self.order && !self.index_page
    }

    /// Writes the key of `url` to `key`, replacing its content.
    pub fn write(&self, url: &Url, key: &mut String) {
        key.clear();
        key.push_str(url.origin());
        let (path, query) = match url.path_and_query().split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (url.path_and_query(), None),
        };
        self.write_path(path, key);
        if let Some(query) = query {
            self.write_query(query, key);
        }
    }

    /// `path` begins with a slash, and so does the output.
    fn write_path(&self, path: &str, key: &mut String) {
        let mut segments = path.split('/').skip(1).peekable();
        while let Some(segment) = segments.next() {
            let is_last = segments.peek().is_none();
            let segment_start = key.len();
            key.push('/');
            let name_start = key.len();
            let mut parts = segment.split(';');
            key.push_str(parts.next().unwrap_or_default());
            for part in parts.filter(|part| !self.sessions || !is_session(part)) {
                key.push(';');
                key.push_str(part);
            }
            let name = key.get(name_start..).unwrap_or_default();
            if name.len() < segment.len() && is_dot_segment(name) {
                // Alone, the dots would mean something else.
                key.push_str(segment.get(name.len()..).unwrap_or_default());
            } else if self.sessions && !is_last && is_session_segment(name) {
                key.truncate(segment_start);
            } else if self.index_page && is_last && is_index_page(name) {
                key.truncate(name_start);
            }
        }
    }

    fn write_query(&self, query: &str, key: &mut String) {
        let is_ignored = |parameter: &str| {
            self.sessions && is_session(parameter) || self.parameters.iter().any(|name| is_named(parameter, name))
        };
        let mut mark = '?';
        let mut push = |parameter| {
            key.push(mark);
            key.push_str(parameter);
            mark = '&';
        };
        let parameters = query.split('&').filter(|parameter| !is_ignored(parameter));
        if self.order {
            let mut parameters: Vec<&str> = parameters.collect();
            parameters.sort_by(|one, other| name_of(one).cmp(name_of(other)));
            parameters.into_iter().for_each(push);
        } else {
            parameters.for_each(&mut push);
        }
    }
}

fn name_of(parameter: &str) -> &str {
    parameter.split('=').next().unwrap_or_default()
}

/// `pattern`: a name, or a prefix and `*`.
fn is_named(parameter: &str, pattern: &str) -> bool {
    let name = name_of(parameter);
    match pattern.strip_suffix('*') {
        Some(start) => name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start)),
        None => name.eq_ignore_ascii_case(pattern),
    }
}

/// Names of session ids, and the minimum length of their values in characters.
const SESSIONS: [(&str, usize); 10] = [
    ("jsessionid", 16),
    ("phpsessid", 16),
    ("sessionid", 16),
    ("session_id", 16),
    ("sid", 16),
    ("oscsid", 16),
    ("zenid", 16),
    ("aspsessionid*", 16),
    // ColdFusion counts.
    ("cfid", 1),
    ("cftoken", 1),
];

/// Whether a parameter of a query, or the text behind `;` in a path, is `NAME=ID`.
fn is_session(parameter: &str) -> bool {
    let Some((_, value)) = parameter.split_once('=') else { return false };
    SESSIONS.iter().any(|(name, value_bytes_min)| is_named(parameter, name) && is_id(value, *value_bytes_min))
}

/// Letters, digits and the separators that servers use, and at least one digit: not a word or a title.
fn is_id(value: &str, bytes_min: usize) -> bool {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'!' | b',' | b'~');
    (bytes_min..=SESSION_BYTES_MAX).contains(&value.len())
        && value.bytes().all(belongs)
        && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// ASP.NET without cookies: `/(S(lit3py55t21z5v55vlm25s55))/`, or several such in one pair of brackets.
fn is_session_segment(segment: &str) -> bool {
    let Some(mut rest) = segment.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) else { return false };
    let mut sessions = 0;
    while let Some((id, after)) =
        rest.get(1..).and_then(|kind| kind.strip_prefix('(')).and_then(|id| id.split_once(')'))
    {
        if !rest.starts_with(['A', 'F', 'S']) || !is_id(id, 16) {
            return false;
        }
        sessions += 1;
        rest = after;
    }
    sessions > 0 && rest.is_empty()
}

/// URL standard, "single-dot" and "double-dot URL path segment".
fn is_dot_segment(segment: &str) -> bool {
    let is_dot = |part: &str| part == "." || part.eq_ignore_ascii_case("%2e");
    let halves = (0..=segment.len()).filter_map(|at| segment.split_at_checked(at));
    segment.len() <= "%2e%2e".len()
        && halves.into_iter().any(|(one, other)| is_dot(other) && (one.is_empty() || is_dot(one)))
}

/// File names that servers use for a folder by default.
fn is_index_page(name: &str) -> bool {
    let endings = |name: &str, endings: &[&str]| endings.iter().any(|ending| name.eq_ignore_ascii_case(ending));
    match name.split_once('.') {
        Some((stem, ending)) if stem.eq_ignore_ascii_case("index") => {
            endings(ending, &["html", "htm", "shtml", "xhtml", "php", "asp", "aspx", "jsp", "cgi", "cfm"])
        }
        Some((stem, ending)) if stem.eq_ignore_ascii_case("default") => {
            endings(ending, &["html", "htm", "asp", "aspx"])
        }
        _ => false,
    }
}

/// Longer ones contain more than a session's name.
const SESSION_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    fn key(rules: &KeyRules, url: &str) -> String {
        let mut key = "what was there".to_owned();
        rules.write(&Url::parse(url).unwrap(), &mut key);
        key
    }

    fn sessions() -> KeyRules {
        KeyRules { sessions: true, ..KeyRules::default() }
    }

    fn tracking() -> KeyRules {
        KeyRules { parameters: vec!["utm_*".to_owned(), "gclid".to_owned()], ..KeyRules::default() }
    }

    fn order() -> KeyRules {
        KeyRules { order: true, ..KeyRules::default() }
    }

    fn index_page() -> KeyRules {
        KeyRules { index_page: true, ..KeyRules::default() }
    }

    fn all() -> KeyRules {
        KeyRules { sessions: true, order: true, index_page: true, ..tracking() }
    }

    /// Norconex #311: a normalizer's regex took a part of the host for a parameter, and the request went to another
    /// host.
    #[test]
    fn a_host_that_looks_like_what_is_left_out_stays() {
        let hosts = [
            "index.html.test",
            "phpsessid.test",
            "sid-0123456789abcdef0123456789abcdef.test",
            "utm_source.gclid.test",
            "www.b.a.test",
            "default.aspx.index.php.test",
            "[2001:db8::1]",
        ];
        let paths = [
            "",
            "/",
            "/index.html",
            "/;jsessionid=0123456789ABCDEF",
            "//index.html",
            "/(S(lit3py55t21z5v55vlm25s55))/index.php",
            "?PHPSESSID=0123456789abcdef0123456789abcdef",
            "/?utm_source=http://evil.test/&b=1&a=2",
            "/@evil.test/?gclid=1",
            "/..//evil.test/",
        ];
        let mut shorter = 0;
        for (host, path) in hosts.iter().flat_map(|host| paths.map(|path| (host, path))) {
            for port in ["", ":8080"] {
                let url = Url::parse(&format!("https://{host}{port}{path}")).expect("a URL");
                let before = url.clone();
                let key = Url::parse(&key(&all(), url.as_str())).expect("a URL");
                assert_eq!((key.host(), key.port(), key.scheme()), (url.host(), url.port(), url.scheme()), "{url}");
                assert_eq!(*host, url.host());
                assert_eq!(url, before, "what is asked stays as it was found");
                shorter += usize::from(key != url);
            }
        }
        assert!(shorter >= 7 * 2 * 6, "the rules do something: {shorter}");
    }

    #[test]
    fn each_rule() {
        for (rules, url, expected) in [
            (sessions(), "http://a.test/x;jsessionid=0123456789ABCDEF.node1?q=1", "http://a.test/x?q=1"),
            (sessions(), "http://a.test/x;v=1;JSESSIONID=0123456789ABCDEF/y;z", "http://a.test/x;v=1/y;z"),
            (sessions(), "http://a.test/?a=1&PHPSESSID=0123456789abcdef0123456789abcdef&b=2", "http://a.test/?a=1&b=2"),
            (sessions(), "http://a.test/list?sid=00000000000000ff", "http://a.test/list"),
            (sessions(), "http://a.test/?cfid=7&CFTOKEN=8&aspsessionidabcdefgh=ABCDEFGHIJKLMNOPQRS1", "http://a.test/"),
            (sessions(), "http://a.test/d/(S(lit3py55t21z5v55vlm25s55))/x.aspx", "http://a.test/d/x.aspx"),
            (sessions(), "http://a.test/(A(lit3py55t21z5v55vlm2)S(lit3py55t21z5v55vlm2))/x", "http://a.test/x"),
            (sessions(), "http://a.test/x/..;sid=00000000000000ff/y", "http://a.test/x/..;sid=00000000000000ff/y"),
            (sessions(), "http://a.test/%2E.;sid=00000000000000ff;v", "http://a.test/%2E.;v"),
            (sessions(), "http://a.test/%2E.;sid=00000000000000ff", "http://a.test/%2E.;sid=00000000000000ff"),
            (sessions(), "http://a.test/...;sid=00000000000000ff", "http://a.test/..."),
            // None of these is a session id.
            (
                sessions(),
                "http://a.test/?sid=7&sid=introduction-to-sessions",
                "http://a.test/?sid=7&sid=introduction-to-sessions",
            ),
            (sessions(), "http://a.test/?jsessionid&phpsessid=", "http://a.test/?jsessionid&phpsessid="),
            (sessions(), "http://a.test/?sid=%30123456789abcdef0", "http://a.test/?sid=%30123456789abcdef0"),
            (sessions(), "http://a.test/?classid=0123456789abcdef", "http://a.test/?classid=0123456789abcdef"),
            (
                sessions(),
                "http://a.test/(S(short1))/(x)/()/(S(lit3py55t21z5v55vlm25s55))",
                "http://a.test/(S(short1))/(x)/()/(S(lit3py55t21z5v55vlm25s55))",
            ),
            (tracking(), "http://a.test/?utm_source=x&q=1&UTM_=y&gclid", "http://a.test/?q=1"),
            (tracking(), "http://a.test/?utm_source=x", "http://a.test/"),
            (tracking(), "http://a.test/?&utm_source=x&", "http://a.test/?&"),
            (
                tracking(),
                "http://a.test/?gclid2=x&my_utm_source=y&q=gclid",
                "http://a.test/?gclid2=x&my_utm_source=y&q=gclid",
            ),
            (order(), "http://a.test/?b=2&a=2&a=1&b", "http://a.test/?a=2&a=1&b=2&b"),
            (order(), "http://a.test/?ab=1&a=2&&a-=3", "http://a.test/?&a=2&a-=3&ab=1"),
            (index_page(), "http://a.test/d/index.html", "http://a.test/d/"),
            (index_page(), "http://a.test/Default.aspx?q=index.html", "http://a.test/?q=index.html"),
            (index_page(), "http://a.test/index.html/x/index.php.bak", "http://a.test/index.html/x/index.php.bak"),
            (index_page(), "http://a.test/myindex.html", "http://a.test/myindex.html"),
            (all(), "http://a.test/index.php;jsessionid=0123456789ABCDEF?b=1&utm_x=2&a", "http://a.test/?a&b=1"),
            (KeyRules::default(), "http://a.test/index.html?b&a&utm_x#f", "http://a.test/index.html?b&a&utm_x"),
        ] {
            assert_eq!(key(&rules, url), expected, "{url}");
        }
    }

    /// For any URL: no rule touches scheme, host and port, none makes it longer, and a second application changes
    /// nothing.
    #[test]
    fn keys_of_random_urls() {
        let parts = [
            "/",
            "/",
            "/index.html",
            ";jsessionid=0123456789ABCDEF",
            "/(S(lit3py55t21z5v55vlm25s55))",
            "?",
            "?",
            "&",
            "=",
            "&sid=",
            "0123456789abcdef",
            "&utm_a=1",
            "&gclid",
            "b=2",
            "&a=1",
            "..",
            "/..",
            "%2e",
            "%2f",
            ";",
            "x",
            "index.php",
            "//",
            "@",
            ":80",
            "#",
            "http://b.test",
            "(S(",
            "))",
            "&b",
            "&&",
        ];
        let all_rules = [sessions(), tracking(), order(), index_page(), all(), KeyRules::default()];
        let mut rng = Rng::new(1);
        let mut changed = 0;
        for round in 0..60_000_usize {
            let mut text = "https://u@www.a.test:8443/".to_owned();
            for _ in 0..round % 12 {
                text += *rng.pick(&parts);
            }
            let Ok(url) = Url::parse(&text) else { continue };
            let rules = rng.pick(&all_rules);
            let mut first = String::new();
            rules.write(&url, &mut first);
            assert!(first.starts_with(url.origin()) && first.len() <= url.as_str().len(), "{url} {first}");
            let key = Url::from_canonical(&first).unwrap_or_else(|error| panic!("{url} {first}: {error}"));
            assert_eq!(Url::parse(&first).as_ref(), Ok(&key), "{url}");
            assert_eq!((key.scheme(), key.authority()), (url.scheme(), url.authority()));
            let mut second = String::new();
            rules.write(&key, &mut second);
            assert_eq!(second, first, "{url}");
            assert!(!rules.is_empty() || first == url.as_str());
            changed += u32::from(first != url.as_str());
        }
        assert!(changed > 3_000, "{changed}");
    }

    #[test]
    fn hostile_lengths_end() {
        for unit in [";sid=", "&sid=", "(S(", "/(S(lit3py55t21z5v55vlm25s55))", "&", ";", "&b=1&a=2", "/index.html"] {
            for mark in ["", "?"] {
                let url = format!("http://a.test/{mark}{}", unit.repeat(65_000 / unit.len()));
                assert!(key(&all(), &url).starts_with("http://a.test/"));
            }
        }
    }
}
