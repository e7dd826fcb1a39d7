//! Ringcrawl's link scanner beside lol_html, a streaming rewriter that builds no tree either, and beside `memchr` going
//! from `<` to `<`: the same pages, in turns, in one run.
//!
//!     scanner-beside-peers DIR [ROUNDS]
//!
//! `followed`: what a crawl follows; `every`: those, links of every `rel`, and `base`, `img`, `srcset`. lol_html has a handler
//! for each kind, that adds up the lengths of values, as ringcrawl's does, and what it writes is thrown away. It leaves out
//! what a page says of its links (base, nofollow, `meta robots`), charsets, character references, and the URLs in `srcset`
//! and `meta refresh`, which ringcrawl does in its time; `and told` has lol_html look at what is said of links, too, and at
//! `&amp;`.
//! Limits: files that end in `.html`; all stay in memory.

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::{Duration, Instant};

use lol_html::html_content::Element;
use lol_html::{HtmlRewriter, Settings, element};
use ringcrawl_html::{self as html, Kinds, Page};
use ringcrawl_url::Url;

/// References and the bytes of their values.
type Sum = (usize, usize);

/// Finds the references of a page.
type Way<'a> = &'a dyn Fn(&[u8]) -> Sum;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().expect("usage: scanner-beside-peers DIR [ROUNDS]");
    let rounds = arguments.next().map_or(15, |text| text.parse().expect("a number"));
    let files = std::fs::read_dir(dir).expect("a directory").flatten().map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "html"));
    let pages: Vec<Vec<u8>> = files.map(|path| std::fs::read(path).expect("a page")).collect();
    let bytes: usize = pages.iter().map(Vec::len).sum();
    assert!(bytes > 0, "no pages");

    let url = Url::parse("http://page.example/").expect("a URL");
    let followed = [&PLAIN[..], &RELS].concat();
    let told = [&followed[..], &SAID].concat();
    let every = [&PLAIN[..], &OTHERS].concat();
    let ways: [(&str, Way); 6] = [
        ("memchr", &|page| (memchr::memchr_iter(b'<', page).fold(0, usize::wrapping_add), 0)),
        ("followed, ringcrawl", &|page| ours(page, &url, &Kinds::FOLLOW)),
        ("followed, lol_html", &|page| lol_html(page, &followed, false)),
        ("and told, lol_html", &|page| lol_html(page, &told, true)),
        ("every, ringcrawl", &|page| ours(page, &url, &Kinds::ALL)),
        ("every, lol_html", &|page| lol_html(page, &every, false)),
    ];
    let mut times = vec![Vec::new(); ways.len()];
    let mut sums = vec![(0, 0); ways.len()];
    for _ in 0..rounds {
        for (((_, way), times), sum) in ways.iter().zip(&mut times).zip(&mut sums) {
            let begun = Instant::now();
            *sum = pages
                .iter()
                .map(|page| way(page))
                .fold((0, 0), |all, one| (usize::wrapping_add(all.0, one.0), usize::wrapping_add(all.1, one.1)));
            times.push(black_box(begun.elapsed()));
        }
    }
    println!("{} pages, {:.1} MB; milliseconds of {rounds} rounds", pages.len(), bytes as f64 / 1e6);
    println!("{:<22} {:>9} {:>9} {:>10} {:>10} {:>12}", "", "fastest", "median", "to memchr", "references", "bytes");
    for (place, (name, _)) in ways.iter().enumerate() {
        times[place].sort();
        let [fastest, floor] = [place, 0].map(|place| times[place][0].as_secs_f64());
        let median: Duration = times[place][rounds / 2];
        let (count, bytes) = if place == 0 { (0, 0) } else { sums[place] };
        let (fastest_ms, median_ms) = (fastest * 1e3, median.as_secs_f64() * 1e3);
        println!("{name:<22} {fastest_ms:>9.2} {median_ms:>9.2} {:>10.2} {count:>10} {bytes:>12}", floor / fastest);
    }
    for (place, beside) in [(2, 1), (3, 1), (5, 4)] {
        let [fastest, median] =
            [0, rounds / 2].map(|at| times[place][at].as_secs_f64() / times[beside][at].as_secs_f64());
        println!("{}: {fastest:.1} times ringcrawl, by medians {median:.1}", ways[place].0);
    }
}

fn ours(page: &[u8], url: &Url, kinds: &Kinds) -> Sum {
    let page = Page { body: page, content_type: Some("text/html; charset=utf-8"), url, agent: "ringcrawl" };
    let mut sum = (0, 0);
    html::references(&page, kinds, &mut |reference| sum = (sum.0 + 1, sum.1 + reference.text.len()));
    sum
}

/// Selectors and the attribute that each is about.
type Kind = (&'static str, &'static str);

const PLAIN: [Kind; 3] = [("a, area", "href"), ("frame, iframe", "src"), ("meta[http-equiv=refresh i]", "content")];
/// Those of `Kinds::FOLLOW`.
const RELS: [Kind; 1] =
    [("link[rel~=canonical i], link[rel~=alternate i], link[rel~=next i], link[rel~=prev i]", "href")];
const SAID: [Kind; 3] = [("a, area", "rel"), ("base", "href"), ("meta[name=robots i]", "content")];
const OTHERS: [Kind; 4] = [("link[rel]", "href"), ("base", "href"), ("img", "src"), ("img, source", "srcset")];

fn lol_html(page: &[u8], kinds: &[Kind], expands: bool) -> Sum {
    let sum = Rc::new(Cell::new((0, 0)));
    let mut settings = Settings::new().with_strict(false);
    for (selector, attribute) in kinds {
        let (sum, attribute) = (sum.clone(), *attribute);
        let handler = element!(*selector, move |element: &mut Element| {
            if let Some(mut value) = element.get_attribute(attribute) {
                if expands && value.contains('&') {
                    value = value.replace("&amp;", "&");
                }
                let (count, bytes) = sum.get();
                sum.set((count + 1, bytes + value.len()));
            }
            Ok(())
        });
        settings = settings.append_element_content_handler(handler);
    }
    let mut rewriter = HtmlRewriter::new(settings, |_: &[u8]| ());
    rewriter.write(page).and_then(|()| rewriter.end()).expect("lol_html");
    sum.get()
}
