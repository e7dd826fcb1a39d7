//! What conditions hold for, and what is wrong with others.

use super::*;
use crate::hops::Hops;
use ringcrawl_url::Url;

fn holds(condition: &str, url: &str, hops: Hops, content_type: Option<&str>) -> bool {
    let url = Url::parse(url).unwrap();
    let subject = Subject::new(&url, hops).with_type(content_type.map(str::as_bytes));
    Condition::parse(condition).unwrap().holds(&subject)
}

#[test]
fn each_compares_what_it_says() {
    for (condition, held, others) in [
        ("host=a.test,WWW.b.test", "http://a.test/ http://www.b.test./x", "http://b.test/ http://x.a.test/"),
        ("site=example.co.uk", "http://example.co.uk/ http://a.example.co.uk/", "http://example2.co.uk/"),
        ("suffix=.b.test", "http://b.test/ http://a.b.test/", "http://ab.test/"),
        ("tld=org,net", "http://a.org/ http://b.a.net/", "http://a.com/ http://org.com/"),
        ("surt=org,example,", "http://example.org/ http://x.example.org/", "http://example.com/"),
        ("path=/forum/*", "http://a.test/forum/x?y", "http://a.test/forum http://a.test/?/forum/"),
        (
            "path=/%70rivate/%7Euser/*",
            "http://a.test/private/~user/ http://a.test/%70rivate/%7euser/x",
            "http://a.test/private",
        ),
        (
            "path=/~user/caf%c3%a9*",
            "http://a.test/%7Euser/caf%C3%A9 http://a.test/~user/café/x",
            "http://a.test/user/café",
        ),
        ("query=*to=/a*", "http://a.test/?to=/a http://a.test/?x&to=%2Fa%2fb", "http://a.test/?to%3D/a"),
        ("surt=test,a)/%7Ex", "http://a.test/~xy http://a.test/%7ex", "http://a.test/x"),
        ("path=*.cgi", "http://a.test/x.cgi?y", "http://a.test/x?.cgi"),
        ("query=*print=1*", "http://a.test/?a&print=1", "http://a.test/print=1"),
        ("regex=^https://[^/]*/20[0-9]{2}/", "https://a.test/2026/", "http://a.test/2026/ https://a.test/x/2026/"),
        ("regex=(?i)FORUM", "http://forum.test/ http://a.test/Forum", "http://a.test/"),
        ("scheme=https", "https://a.test/", "http://a.test/"),
        ("port=443,8000-8001", "https://a.test/ http://a.test:8001/", "http://a.test/ http://a.test:8002/"),
        (
            "extension=pdf,.Docx",
            "http://a.test/x.PDF?a http://a.test/x.docx http://a.test/x%2E%70df",
            "http://a.test/?x.pdf http://a.test/pdf",
        ),
    ] {
        let not = format!("!{condition}");
        for (urls, expected) in [(held, true), (others, false)] {
            for url in urls.split(' ') {
                assert_eq!(holds(condition, url, Hops::default(), None), expected, "{condition} {url}");
                assert_eq!(holds(&not, url, Hops::default(), None), !expected, "{not} {url}");
            }
        }
    }
    let hops = Hops::default().link().link().with_offsite(1);
    for (condition, expected) in [
        ("depth=2", true),
        ("depth<2", false),
        ("depth<=2", true),
        ("depth>2", false),
        ("depth>=2", true),
        ("depth>1", true),
        ("offsite<=1", true),
        ("offsite=0", false),
        ("offsite<2", true),
        ("!offsite>=1", false),
    ] {
        assert_eq!(holds(condition, "http://a.test/", hops, None), expected, "{condition}");
    }
    for (condition, link, embed) in [("embed", false, true), ("!embed", true, false)] {
        let holds = |hops: Hops| holds(condition, "http://a.test/", hops, None);
        assert_eq!((holds(hops), holds(hops.embed()), holds(hops.embed().redirect())), (link, embed, embed));
    }
    for (content_type, expected) in
        [(Some("Text/HTML; charset=x"), true), (Some("image/png"), true), (Some("text/css"), false), (None, false)]
    {
        assert_eq!(holds("type=text/html,image/*", "http://a.test/", hops, content_type), expected);
    }
}

#[test]
fn what_cannot_be_read_is_said_with_what_was_expected() {
    for (condition, why) in [
        ("hots=a.test", "there is no condition \"hots\" (did you mean host?); expected one of host, site"),
        ("Host=a.test", "did you mean host?"),
        ("host", "expected host=…"),
        ("host!=a.test", "write !host=…"),
        ("host:a.test", "expected host=…"),
        ("host<=a.test", "host is no number: expected host=a.test"),
        ("host=", "expected host=www.example.org"),
        ("host=a.test,", "\"\" is no name of a host"),
        ("host=http://a.test/", "is no name of a host; expected host=www.example.org"),
        ("host=*.a.test", "is no name of a host"),
        ("site=www.example.org", "expected site=example.org or host=www.example.org"),
        ("tld=co.uk", "expected suffix=co.uk"),
        ("surt=example.org", "stand in reverse"),
        ("path=forum", "expected path=/forum or path=*forum"),
        ("path=/a?b", "query="),
        ("regex=(", "the regex \"(\" cannot be read: unclosed group"),
        ("regex=(?=a)", "look-around"),
        ("regex=(a{1000}){1000}", "is longer than 1048576 bytes when compiled"),
        ("scheme=ftp", "expected scheme=https or scheme=http"),
        ("port=0x50", "expected port=8080 or port=8000-8999"),
        ("port=9-8", "is no port"),
        ("extension=tar.gz", "is no extension"),
        ("type=pdf", "expected type=application/pdf or type=image/*"),
        ("offsite<=3", "\"3\" is no number from 0 to 2: expected offsite<=1"),
        ("embed=1", "\"embed=1\" compares embed with something: expected embed or !embed"),
        ("!embed<1", "expected embed or !embed"),
        ("!embedded", "there is no condition \"embedded\""),
        ("depth<=x", "\"x\" is no number from 0 to 254: expected depth<=3"),
    ] {
        let error = Condition::parse(condition).expect_err(condition);
        assert!(error.contains(why), "{condition}: {error}");
    }
}
