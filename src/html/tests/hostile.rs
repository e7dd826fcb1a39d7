//! Pages that are cut or noise, or meant to take long.

use super::*;
use ringcrawl_base::Rng;
use std::time::Duration;

const HOSTILE: &str = "\u{feff}<?xml encoding='utf-8'?><!DOCTYPE html PUBLIC \"-//\"><!-- --!><html><meta http-equiv=refresh \
    content='0;url=\"x\"'><meta name=robots content=none><link rel='next Prev' href='a&amp;b&#x20AC;&notin;'><script>\
    <!--<script></script>--></script><a href=\"é\0\r\n?ж\"><svg><desc><p><a href=1></svg><math><mi><a href=2></math>\
    <![CDATA[ ]]><img srcset='a 1x, b (2x), c 3w' src=&#0;><template><a href=3 ></template><title>&lt;</title><a href=4>";

#[test]
fn a_cut_page_has_the_first_links_of_the_whole() {
    let all = raw(HOSTILE, &Kinds::ALL);
    assert!(all.len() > 8, "{all:?}");
    for cut in 0..HOSTILE.len() {
        let some = raw(&HOSTILE.as_bytes()[..cut], &Kinds::ALL);
        assert_eq!(some, all[..some.len()], "cut at {cut}");
    }
}

#[test]
fn noise_causes_no_panic() {
    let mut rng = Rng::new(0x5eed_0001);
    let types =
        [None, Some("text/html;charset=gb18030"), Some("text/html;charset=utf-16"), Some("a;charset=iso-2022-jp")];
    for _ in 0..3_000 {
        let mut bytes = HOSTILE.as_bytes().to_vec();
        for _ in 0..1 + rng.index(12) {
            let at = rng.index(bytes.len());
            match rng.index(3) {
                0 => bytes[at] = rng.next() as u8,
                1 => bytes.truncate(at.max(10)),
                _ => {
                    let from = rng.index(bytes.len());
                    let piece: Vec<u8> = bytes[from..].iter().take(rng.index(30)).copied().collect();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let (found, summary) = scanned(&bytes, *rng.pick(&types), 20);
        assert!(found.len() == summary.links && summary.links <= 20);
    }
}

/// Seconds of CPU time for half a megabyte in a debug build on a slow machine, three times the most on a fast one;
/// anything quadratic takes minutes.
const HOSTILE_SECONDS_MAX: u64 = 10;

#[test]
fn time_is_linear() {
    let length = 500_000;
    let many = |piece: &str| piece.repeat(length / piece.len());
    let long = "x".repeat(length / 2);
    let pages = [
        many("<"),
        many("<!--"),
        many("<a "),
        many("<a href=x "),
        format!("<a {}>", many("b ")),
        format!("<a {}>", many("href=x ")),
        format!("<a href='{}", many("x>")),
        many("<!-- -->"),
        many("<script>"),
        many("<script><!--"),
        many("<script src=x></script>"),
        many("<title></titl"),
        many("</"),
        many("<svg>"),
        format!("<svg>{}{}", many("<g>"), many("</x>")),
        format!("<svg><desc>{}{}", many("<b>"), many("<p></x>")),
        many("<svg><desc>"),
        many("<x><svg></x>"),
        format!("{}><svg></x>{}", many("<x "), many("<svg></x>")),
        format!("<!--{}--><svg></x>{}", many("<x "), many("<svg></x>")),
        format!("{}<svg></x>", many("<!---->")),
        format!("{}<svg></x>", many("<!----!>")),
        format!("<!{}><svg></x>", "-".repeat(length)),
        format!("{}<svg></x>", many("<?>")),
        format!("{}{}", "<b>".repeat(300), many("<svg><g/></y></svg></z>")),
        many("<base>"),
        many("<base href=x>"),
        format!("<base href=/{long}>{}", many("<a href=x>")),
        format!("<base href=/{}>{}", "x".repeat(4000), many("<a href=x>")),
        format!("<a href='{}'>", many("&")),
        format!("<a href='{}'>", many("&lt")),
        format!("<a href='{}'>", many("&#9999999999")),
        format!("<a href='{}'>", many("../")),
        format!("<a href='//{}'>", many("é.")),
        format!("<a href='//{long}é'>"),
        format!("<img srcset='{}'>", many("a,")),
        format!("<img srcset='{}'>", many("a 1x,")),
        format!("<img srcset='{}'>", many("a (")),
        format!("<link href=x rel='{}'>", many("abc ")),
        format!("<meta http-equiv=refresh content='{}'>", many("0 ")),
        format!("<meta http-equiv=content-type content='{}'>", many("charset")),
        many("<template>"),
        format!("<svg>{}", many("<![CDATA[>")),
    ];
    // The first field: nanoseconds on a CPU.
    let cpu_time = || {
        let stat = fs::read_to_string("/proc/thread-self/schedstat").expect("this thread's");
        Duration::from_nanos(stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).expect("a number"))
    };
    for page in pages {
        let start = cpu_time();
        let (found, _) = scanned(page.as_bytes(), None, 100_000);
        raw(&page, &Kinds::parse("link,img,srcset,script,base").unwrap());
        let piece: String = page.chars().take(40).collect();
        let took = cpu_time() - start;
        assert!(took.as_secs() < HOSTILE_SECONDS_MAX, "{piece}: {took:?}, {}", found.len());
        println!("{piece}: {took:?}");
    }
}
