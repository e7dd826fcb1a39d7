//! What pages embed, and how that relates to their links.

use super::*;
use ringcrawl_config::Embeds;

const PAGE: &str = "<link rel='preload stylesheet' href=/s.css><link rel=preconnect href=//x.test/><link rel=alternate href=/feed>\
                    <a href=/photo.png><img src=/photo.png srcset='/1x.png, /photo.png 2x'></a><img src=/photo.png>\
                    <script src=/j.js></script><a href=/advised.png rel=nofollow><img src=/advised.png></a>\
                    <link rel='icon nofollow' href=/i.ico><iframe src=/frame></iframe><video src=/v.mp4></video><a href=/last>";

/// Paths of URLs with L for a link, E for an embed and D for a deferred URL, in the order in which they are offered.
fn offered(depth: u16, page: &str, change: impl FnOnce(&mut Config)) -> (String, Totals) {
    let bytes = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n{page}");
    let job = FetchJob { depth, ..job(JobKind::Page, "http://a.test/") };
    let (fetched, stats, _) = read(&job, bytes.as_bytes(), change);
    let page = Hops::from_bits(depth);
    let told = fetched.links.iter().map(|(depth, url)| {
        let hops = Hops::from_bits(depth);
        let (kind, expected) = if hops.is_embed() { ("E", page.embed()) } else { ("L", page.link()) };
        let expected = if hops.is_deferred() { expected.deferred() } else { expected };
        assert_eq!(hops, expected, "{url}");
        format!("{kind}{}{}", if hops.is_deferred() { "D" } else { "" }, url.trim_start_matches("http://a.test/"))
    });
    (told.collect::<Vec<_>>().join(" "), stats)
}

#[test]
fn links_come_first_and_what_is_advised_against_last() {
    const LINKS: &str = "Lfeed Lphoto.png Lframe Llast";
    let with = |embeds| move |config: &mut Config| config.links.embeds = embeds;
    assert_eq!(offered(3, PAGE, |_| {}).0, format!("{LINKS} LDadvised.png"));
    let all = format!("{LINKS} Es.css Ephoto.png E1x.png Ej.js Eadvised.png LDadvised.png EDi.ico");
    for embeds in [Embeds::InScope, Embeds::OffSite] {
        let (found, stats) = offered(3, PAGE, with(embeds));
        assert_eq!((found, stats.links_deferred), (all.clone(), 2));
    }
    // An embedded document embeds nothing more, but its links go on.
    let embedded = Hops::from_bits(3).embed();
    for depth in [embedded, embedded.redirect(), embedded.deferred()] {
        assert_eq!(offered(depth.bits(), PAGE, with(Embeds::OffSite)).0, format!("{LINKS} LDadvised.png"));
    }
}

/// Advice and limits apply to embeds as to links.
#[test]
fn advice_and_limits_hold() {
    let with = |config: &mut Config| config.links.embeds = Embeds::InScope;
    let obeyed = |page: &str| {
        offered(3, page, |config| {
            (config.links.nofollow, config.links.from_noindex) = (AdvisedAgainst::Obey, AdvisedAgainst::Obey);
            with(config);
        })
    };
    let (found, stats) = obeyed(PAGE);
    assert!(found.ends_with("Llast Es.css Ephoto.png E1x.png Ej.js Eadvised.png"), "{found}");
    assert_eq!(stats.links_advised_against, 2);
    for robots in ["nofollow", "noindex"] {
        let (found, stats) = obeyed(&format!("<meta name=robots content={robots}>{PAGE}"));
        assert_eq!((found.as_str(), stats.links_advised_against), ("", 11));
    }
    let (found, _) = offered(3, &format!("<meta name=robots content=none>{PAGE}"), with);
    assert!(found.split(' ').all(|one| one.starts_with("LD") || one.starts_with("ED")), "{found}");
    let images: String = (0..20).map(|number| format!("<img src={number}><a href=l{number}>")).collect();
    let (found, stats) = offered(3, &images, |config| {
        with(config);
        config.links.page_links_max = 10;
    });
    assert_eq!((found.matches('E').count(), found.matches('L').count(), stats.links_dropped), (5, 5, 30));
    let long = "x".repeat(1_000);
    let images: String = (0..200).map(|number| format!("<img src={number}{long}>")).collect();
    let (found, stats) = offered(3, &images, |config| {
        with(config);
        config.links.page_link_bytes_max = 64 << 10;
    });
    let count = found.matches('E').count() as u64;
    assert!((60..=65).contains(&count) && count + stats.links_over_bytes == 200, "{count} {}", stats.links_over_bytes);
}

#[test]
fn records_say_what_was_found_as_an_embed() {
    let found_as = |hops: Hops| {
        let job = FetchJob { depth: hops.bits(), ..job(JobKind::Page, "http://a.test/x.png") };
        let transaction = transaction(b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n\r\nx");
        let mut decoder = Decoder::default();
        let page = PageReader::new(Arc::default()).read(&job, &transaction, &mut decoder, &mut Totals::default());
        let found = |capture: &ringcrawl_warc::Capture<'_>| {
            let of = ["hopsFromSeed", "foundAs"].map(|name| said(capture, name).unwrap_or_default().to_owned());
            of.join(" ")
        };
        page.store(|capture| found(capture)).expect("stored")
    };
    assert_eq!(found_as(Hops::from_bits(2).embed()), "2 embed");
    assert_eq!(found_as(Hops::from_bits(2).embed().redirect().deferred()), "2 embed");
    assert_eq!(found_as(Hops::from_bits(2)), "2 ");
}
