//! Kinds: what pages are worth, and what weights come of it.

use super::*;
use ringcrawl_base::Rng;

fn url(path: &str) -> Url {
    Url::parse(&format!("http://a.test{path}")).expect("a URL")
}

/// A page with the texts of these numbers, of 100 anchors each, and the site's frame.
fn page(texts: impl IntoIterator<Item = u64>) -> Fetched {
    words(texts.into_iter().flat_map(|text| (0..100).map(move |anchor| text << 8 | anchor)))
}

fn words(own: impl IntoIterator<Item = u64>) -> Fetched {
    let frame = (0..40).map(|anchor| u64::MAX - anchor);
    let anchors = own.into_iter().chain(frame).map(|anchor| xxh3_64(&anchor.to_le_bytes()) as u32);
    Fetched { status: 200, text: Some(PageText::Page(TextSample::of(anchors))), ..Fetched::default() }
}

/// A word of its own for each number.
fn letters(number: u64) -> String {
    number.to_string().bytes().map(|digit| char::from(digit + 49)).collect()
}

/// A host that is crawled in the order in which URLs are given.
#[derive(Default)]
struct Host(HostKinds, usize);

impl Host {
    /// Fetches a page with these links, all of them new.
    fn fetch(&mut self, path: &str, fetched: &Fetched, links: &[String]) {
        let url_of_page = url(path);
        let is_examined = self.0.judge(&url_of_page, false).wants_look;
        self.1 += usize::from(is_examined);
        if is_examined {
            self.0.begin_links(&url_of_page);
            links.iter().for_each(|link| self.0.found(&url(link)));
        }
        self.0.note(&url_of_page, fetched, is_examined);
    }

    fn weight(&self, path: &str) -> Weight {
        self.0.judge(&url(path), false).lowered.map_or(Weight::Whole, |facts| facts.weight)
    }
}

/// The weight of a kind after 100 such pages.
fn weight_after(fetched: impl Fn(u64) -> Fetched) -> Weight {
    let mut host = Host::default();
    (0..100).for_each(|number| host.fetch(&format!("/kind/{number}"), &fetched(number), &[]));
    assert!(host.0.ram_bytes() <= HOST_BYTES_MAX);
    host.weight("/kind/1234")
}

#[test]
fn a_kind_weighs_what_its_pages_are_worth() {
    use Weight::{Quarter, Sixteenth, Whole};
    assert_eq!(weight_after(|number| page([number])), Whole);
    assert_eq!(weight_after(|number| page([number % 3])), Sixteenth, "the same again");
    assert_eq!(weight_after(|_| words([])), Sixteenth, "nothing but the frame");
    // Short texts of their own, of at least 14 words.
    assert_eq!(weight_after(|number| words([7 * number, 7 * number + 1, 7 * number + 2, 7 * number + 3])), Whole);
    assert_eq!(weight_after(|number| words((0..number % 2).map(|_| number))), Quarter, "a word here and there");
    // Versions, and choices from the same texts.
    assert_eq!(weight_after(|number| page([0, 1].into_iter().chain((number % 10 == 0).then_some(number)))), Sixteenth);
    assert!(weight_after(|number| page((0..16).filter(|text| number >> (text % 7) & 1 == 1))) < Whole);
    // One page in four has text.
    assert_eq!(weight_after(|number| page([if number % 4 == 0 { 100 + number } else { 0 }])), Quarter);
    assert_eq!(weight_after(|number| page([if number % 2 == 0 { 100 + number } else { 0 }])), Whole);
    assert_eq!(weight_after(|number| Fetched { payload: Some(7), ..page([number]) }), Sixteenth);
    assert_eq!(
        weight_after(|number| Fetched { payload: Some(xxh3_64(&number.to_le_bytes())), ..page([number]) }),
        Whole
    );
    assert_eq!(weight_after(|number| Fetched { is_noindex: true, ..page([number]) }), Sixteenth, "and leads nowhere");
    assert_eq!(weight_after(|_| Fetched { is_archive: true, text: None, ..page([]) }), Sixteenth);
    assert_eq!(
        weight_after(|number| Fetched { status: 404, ..page([number % 3]) }),
        Whole,
        "anyone may link to anything"
    );
    assert_eq!(weight_after(|_| Fetched { status: 200, text: None, ..Fetched::default() }), Whole, "no text");
    let moved = |to: String| Fetched { status: 302, redirect: Url::parse(&to).ok(), ..Fetched::default() };
    assert_eq!(weight_after(|_| moved("http://a.test/login".to_owned())), Sixteenth);
    assert_eq!(weight_after(|number| moved(format!("http://a.test/{number}"))), Whole);
}

/// Without evidence no weight is lowered, except where authors advise against a URL. Evidence outweighs advice.
#[test]
fn advice_is_a_smaller_beginning() {
    let mut host = Host::default();
    let lowered = |host: &Host| host.0.judge(&url("/article/5"), true).lowered.map(|facts| facts.weight);
    assert_eq!((lowered(&host), host.weight("/article/5")), (Some(Weight::Sixteenth), Weight::Whole));
    (0..5).for_each(|number| host.fetch(&format!("/article/{number}"), &page([number]), &[]));
    assert_eq!(lowered(&host), None);
}

/// A feed and a front page with the text of articles that are fetched later.
#[test]
fn lists_give_no_text_to_what_was_seen() {
    let mut host = Host::default();
    host.fetch("/about", &page([500]), &[]);
    let articles: Vec<String> = (0..10).map(|number| format!("/article/{number}")).collect();
    host.fetch("/", &page(0..10), &articles);
    let feed = Fetched { status: 200, text: Some(PageText::Feed), ..Fetched::default() };
    host.fetch("/feed.xml", &feed, &[]);
    (0..10).for_each(|number| host.fetch(&format!("/article/{number}"), &page([number]), &[]));
    assert_eq!(host.weight("/article/11"), Weight::Whole);
    // Other formats of these say nothing new.
    (0..10).for_each(|number| host.fetch(&format!("/print/{number}"), &page([number]), &[]));
    assert!(host.weight("/print/3") < Weight::Whole);
    assert_eq!(host.weight("/article/11"), Weight::Whole);
}

/// While no kind has proved anything, pages that lead to unknown kinds are not judged. Later they are: permuted
/// parameters stay unknown forever.
#[test]
fn what_leads_to_the_unknown_is_judged_later() {
    let weight_of_lists = |pages, lists: u64| {
        let mut host = Host(HostKinds::new(pages), 0);
        host.fetch("/about", &page([500]), &[]);
        for number in 0..lists {
            let links: Vec<String> = (0..8).map(|link| format!("/{}/{link}", letters(8 * number + link))).collect();
            host.fetch(&format!("/tree/{number}"), &words([]), &links);
        }
        host.weight("/tree/7777")
    };
    for pages in [0, FREE_PAGES] {
        assert_eq!(weight_of_lists(pages, 30), Weight::Whole);
        assert!(weight_of_lists(pages, 400) < Weight::Whole, "{pages} pages before");
    }
}

/// A host has so many kinds that most of its pages would be examined.
#[test]
fn kinds_that_proved_nothing_are_looked_at_once_a_page_was_poor() {
    let looks = |is_poor: bool| {
        let mut host = Host(HostKinds::new(FREE_PAGES), 0);
        for number in 0..16 {
            host.fetch(&format!("/kind/{number}"), &page([if is_poor { 0 } else { number }]), &[]);
        }
        let before = host.1;
        (100..160).for_each(|number| host.fetch(&format!("/?{}={number}", letters(number)), &page([number]), &[]));
        host.1 - before
    };
    assert!((10..30).contains(&looks(false)), "{}", looks(false));
    assert!(looks(true) > 55, "{}", looks(true));
}

/// A page repeats what was not examined, and would seem new.
#[test]
fn variants_of_what_was_not_looked_at_are_no_evidence() {
    let mut host = Host(HostKinds::new(FREE_PAGES), 0);
    for number in 0..150 {
        host.fetch(&format!("/post/{number}"), &page([number]), &[]);
        // Another kind for every third page, so none has proved anything.
        host.fetch(&format!("/post/{number}?{}=1", letters(number / 3)), &page([number]), &[]);
        // Otherwise the one page in sixteen would never be a variant.
        if number % 7 == 0 {
            host.fetch(&format!("/error/{number}"), &Fetched { status: 404, ..Fetched::default() }, &[]);
        }
    }
    assert_eq!(host.weight("/post/1?other=1"), Weight::Sixteenth);
    assert_eq!(host.weight("/post/1000"), Weight::Whole);
}

/// A list has no text of its own: it is worth what it leads to, and only while that is new.
#[test]
fn lists_are_worth_what_they_lead_to() {
    let mut host = Host::default();
    (0..5).for_each(|number| host.fetch(&format!("/article/{number}"), &page([number]), &[]));
    for number in 1..40u64 {
        let links: Vec<String> = (0..5).map(|link| format!("/article/{}", 5 * number + link)).collect();
        host.fetch(&format!("/list/{number}"), &page([number % 2]), &links);
        host.fetch(&format!("/article/{}", 5 * number), &page([5 * number]), &[]);
    }
    assert_eq!(host.weight("/list/77"), Weight::Whole);
    // The same lists, sorted: they lead to other sorted lists.
    let sorted = |number: u64| format!("/list?sort={}", letters(number));
    for number in 0..40u64 {
        host.fetch(&sorted(number), &page([number % 2]), &[sorted(1_000 + 5 * number), sorted(1_001 + 5 * number)]);
    }
    assert_eq!(host.weight(&sorted(9_999)), Weight::Sixteenth);
    assert_eq!((host.weight("/list/78"), host.weight("/list")), (Weight::Whole, Weight::Whole));
}

/// New parameters, values and paths below a poor kind begin with its weight.
#[test]
fn what_is_new_below_a_kind_begins_with_its_weight() {
    let mut host = Host::default();
    (0..30).for_each(|number| host.fetch(&format!("/article/{}", letters(number)), &page([number]), &[]));
    for number in 0..30u64 {
        host.fetch(&format!("/shop?color={}&size={number}", letters(number)), &page([999]), &[]);
        host.fetch(&format!("/calendar/{number}/"), &words([]), &[]);
    }
    let facts = |path: &str| host.0.judge(&url(path), false).lowered.expect("a lowered kind");
    let branch = facts("/shop?a=Q1").branch;
    for path in ["/shop?b=Q2&c=Q3", "/shop?color=red,blue", "/shop?color=Q4&size=Q5&page=Q6"] {
        assert_eq!(
            (facts(path).branch, facts(path).weight, facts(path).is_proven()),
            (branch, Weight::Sixteenth, false)
        );
    }
    assert!(facts("/shop?color=x&size=777").is_proven() && facts("/shop?color=x&size=777").branch != branch);
    for path in ["/calendar/9/9/9/", "/calendar/7/"] {
        assert_eq!(facts(path).weight, Weight::Sixteenth, "{path}");
    }
    for path in ["/shop", "/article/zzz", "/new", "/"] {
        assert_eq!(host.weight(path), Weight::Whole, "{path}");
    }
}

/// A URL that differs from others in a name alone is judged by them, and advice against it has no effect.
#[test]
fn names_below_one_path_are_alike() {
    let mut host = Host::default();
    for number in 0..8 {
        host.fetch(&format!("/wiki/Title{}", letters(number)), &page([number]), &[]);
        host.fetch(&format!("/wiki/Special:Links/Title{}", letters(number)), &page([99]), &[]);
    }
    let facts = |path: &str| host.0.judge(&url(path), true).lowered;
    assert_eq!((facts("/wiki/Other"), host.weight("/wiki/Other")), (None, Weight::Whole));
    for path in ["/wiki/Special:Links/Other", "/wiki/Other?action=edit", "/other/Title", "/wiki/a/b"] {
        assert_eq!(facts(path).map(|facts| facts.weight), Some(Weight::Sixteenth), "{path}");
    }
}

/// Branches of a repository show each commit again: their items were met before.
#[test]
fn what_is_asked_again_is_another_kind() {
    let mut host = Host::default();
    let commit = |branch: &str, number: u64| format!("/commit?h={branch}&id={:040x}", u128::from(number) + (7 << 90));
    for number in 0..200u64 {
        // Whichever branch is first.
        let order = if number % 2 == 0 { ["main", "old"] } else { ["old", "main"] };
        order.iter().for_each(|branch| host.fetch(&commit(branch, number), &page([number]), &[]));
    }
    assert_eq!((host.weight(&commit("main", 999)), host.weight(&commit("old", 999))), (Weight::Whole, Weight::Whole));
    assert_eq!(
        (host.weight(&commit("main", 7)), host.weight(&commit("old", 8))),
        (Weight::Sixteenth, Weight::Sixteenth)
    );
}

/// A sample that takes some items with all their pages recognizes repetitions.
#[test]
fn an_items_pages_are_looked_at_together() {
    let mut host = Host::default();
    for number in 0..1_000u64 {
        let name = format!("Name-of-{}", letters(number));
        host.fetch(&format!("/wiki/{name}"), &page([number]), &[]);
        host.fetch(&format!("/print?title={name}"), &page([number]), &[]);
        if number % 7 == 0 {
            host.fetch(&format!("/error/{number}"), &Fetched { status: 404, ..Fetched::default() }, &[]);
        }
    }
    assert_eq!(
        (host.weight("/wiki/Other"), host.weight(&format!("/print?title=Name-of-{}", letters(7)))),
        (Weight::Whole, Weight::Sixteenth)
    );
}

#[test]
fn weights_rise_again() {
    let mut host = Host::default();
    (0..100).for_each(|number| host.fetch(&format!("/kind/{number}"), &page([7]), &[]));
    assert_eq!(host.weight("/kind/1234"), Weight::Sixteenth);
    let until_whole = (100..1_000).position(|number| {
        host.fetch(&format!("/kind/{number}"), &page([1_000 + number]), &[]);
        host.weight("/kind/1234") == Weight::Whole
    });
    assert!(until_whole.is_some_and(|pages| pages < 300), "{until_whole:?}");
}

#[test]
fn only_some_pages_of_a_good_kind_are_looked_at() {
    let mut host = Host::default();
    for number in 0..2_000u64 {
        host.fetch(&format!("/section{}/article{number}", letters(number % 7)), &page([number]), &[]);
    }
    assert!((200..400).contains(&host.1), "{} of 2,000", host.1);
}

/// Arbitrary URLs and pages.
#[test]
fn memory_is_bounded_and_nothing_panics() {
    let (mut host, mut rng) = (Host::default(), Rng::new(7));
    for _ in 0..5_000 {
        let path: String = (0..rng.below(6)).map(|_| format!("/{}", letters(rng.below(90)))).collect();
        let query: String =
            (0..rng.below(4)).map(|_| format!("&{}={}", letters(rng.below(40)), rng.below(9))).collect();
        let links: Vec<String> = (0..rng.below(9)).map(|_| format!("/{}/{}", rng.below(9), rng.next())).collect();
        let fetched = page((0..rng.below(4)).map(|_| rng.below(5_000)));
        host.fetch(&format!("{path}/?{query}"), &Fetched { payload: Some(rng.below(1_000)), ..fetched }, &links);
    }
    assert!(host.0.ram_bytes() <= HOST_BYTES_MAX, "{} bytes", host.0.ram_bytes());
}
