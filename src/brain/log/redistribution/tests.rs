//! Logs written by some shards, redistributed, and listed.

use super::super::{Damage, EndKind, HostNote, Listing, ListingStep, RecordPlace, UrlState};
use super::*;
use crate::backlinks::SiteLink;
use ringcrawl_base::Failure;
use ringcrawl_base::Rng;
use ringcrawl_base::time::Duration;

const CRAWL: u64 = 7;
const RNG_SEED: u64 = 8;
const SITE: &str = "http://www.site";

/// Files of shards in memory.
#[derive(Default)]
struct Files {
    earlier: BTreeMap<(u16, LogFile), Vec<u8>>,
    new: BTreeMap<(u16, LogFile), Vec<u8>>,
}

impl RedistributedFiles for Files {
    fn read(&mut self, shard: u16, file: LogFile, position: u64) -> Result<Vec<u8>, String> {
        let bytes = self.earlier.get(&(shard, file)).map(Vec::as_slice).unwrap_or_default();
        let from = bytes.len().min(position as usize);
        Ok(bytes[from..bytes.len().min(from + 1_000)].to_vec())
    }

    fn append(&mut self, shard: u16, append: Append) -> Result<(), String> {
        let log = self.new.entry((shard, append.file)).or_default();
        assert_eq!(append.position, log.len() as u64);
        log.extend(append.bytes);
        Ok(())
    }
}

fn partition(shards: u16) -> Partition {
    Partition::by_site(shards)
}

fn write(shard: u16, log: &mut Log, files: &mut Files) {
    while let Some(append) = log.take_append(true) {
        files.append(shard, append).unwrap();
    }
    log.freeze_ends();
    log.confirm_facts();
    while let Some(append) = log.take_ends() {
        files.append(shard, append).unwrap();
    }
    log.confirm_ends();
}

fn url(site: u64, page: u64) -> String {
    format!("{SITE}{site}.test/{page}")
}

/// The page that links to that one, from another site.
fn via(site: u64, page: u64) -> Option<String> {
    (page > 0).then(|| url(site + 1, page))
}

/// A link to a site.
fn link_to(site: u64) -> SiteLink {
    SiteLink { to: SiteKey::new(RNG_SEED, &format!("site{site}.test")).number(), mark: site as u16 }
}

/// 20 sites of 10 URLs each, in every state, written by `shards` shards in many blocks; a note on each host, and
/// batches.
fn written(shards: u16) -> Files {
    let mut files = Files::default();
    let mut logs: Vec<Log> = (0..shards).map(|shard| Log::new(Owner { crawl: CRAWL, shard }, shards, 0)).collect();
    for page in 0..10 {
        for site in 0..20 {
            let shard = partition(shards).home_of(&format!("www.site{site}.test"));
            let log = &mut logs[usize::from(shard)];
            if page == 9 {
                log.set_aside(FoundUrl { via: via(site, page).as_deref(), depth: 9, url: &url(site, page) });
                write(shard, log, &mut files);
                continue;
            }
            let via = via(site, page);
            let number = log.accept(FoundUrl { via: via.as_deref(), depth: page as u16, url: &url(site, page) });
            let end = |kind, place| End {
                url: number,
                kind,
                tries: 3,
                is_duplicate: page == 1,
                is_challenge: page == 1,
                cut: None,
                seconds: 1_800_000_000 + page,
                place,
                bytes: 0,
            };
            let place = |segment| Some(RecordPlace { shard, segment, offset: 100 * site });
            match page {
                0 => {}
                1 | 2 => log.end(end(EndKind::Fetched(200), place(0))),
                3 => log.end(end(EndKind::Failed(Failure::HostDead), None)),
                // Its record is lost: the segment is shorter.
                4 => log.end(end(EndKind::Fetched(404), Some(RecordPlace { shard, segment: 1, offset: 50 }))),
                5 => {
                    log.end(end(EndKind::Fetched(200), place(0)));
                    log.end(end(EndKind::Reopened, None));
                }
                _ => log.end(end(EndKind::Fetched(301), place(0))),
            }
            write(shard, log, &mut files);
        }
    }
    // For a URL that arrived, for one that was acknowledged but is missing, and for one that did not arrive.
    for (number, site, page) in [(1, 3, 0), (2, 4, 77), (3, 5, 78)] {
        let mut urls = UrlBatch::new();
        urls.push_found(FoundUrl { via: via(site, page).as_deref(), depth: 2, url: &url(site, page) });
        logs[0].send(1, number, &urls);
        write(0, &mut logs[0], &mut files);
        if number == 2 {
            logs[0].acknowledge(1, number);
        }
    }
    let hosts = (0..20).map(|site| (site, format!("www.site{site}.test")));
    // An odd port has a note of its own.
    let hosts = hosts.chain((0..3).map(|site| (site, format!("http://www.site{site}.test:8080/"))));
    for (site, host) in hosts {
        let shard = partition(shards).home_of(&format!("www.site{site}.test"));
        let is_host = !host.contains("://");
        let note = HostNote {
            host: host.into(),
            delay: Duration::from_secs(site),
            until_seconds: 1_800_000_000,
            lasts_seconds: 60,
            ..HostNote::default()
        };
        let log = &mut logs[usize::from(shard)];
        log.note_host(note);
        if is_host {
            log.note_link(link_to(site));
            // No shard has a URL of this site.
            log.note_link(link_to(99));
        }
        write(shard, log, &mut files);
    }
    Files { earlier: files.new, new: BTreeMap::new() }
}

/// Redistributes the files of `from` shards to `to`; these then become the earlier ones.
fn redistributed(mut files: Files, from: u16, to: u16) -> (Files, Vec<Replayed>) {
    let earlier = |shard| {
        let journal =
            files.earlier.keys().filter(|(of, _)| *of == shard).filter_map(|(_, log)| log.journal()).collect();
        EarlierShard { journal, segments: BTreeMap::from([(0, 1_000_000), (1, 50)]) }
    };
    let earlier: Vec<EarlierShard> = (0..from).map(earlier).collect();
    let found = redistribute((CRAWL, RNG_SEED), &earlier, partition(to), &mut files).unwrap().found;
    (Files { earlier: files.new, new: BTreeMap::new() }, found)
}

/// A URL's state, tries, time, and whether it is a duplicate; a host's delay; the sites that others link to.
type Known = (BTreeMap<String, (UrlState, u8, Option<u64>, bool)>, BTreeMap<String, Duration>, Vec<u64>);

/// What the logs of `shards` shards say.
fn known(files: &mut Files, shards: u16) -> Known {
    let mut known = Known::default();
    for shard in 0..shards {
        let mut listing = Listing::new(Owner { crawl: CRAWL, shard }, false);
        while let Some((file, position)) = listing.next_read() {
            let bytes = files.read(shard, file, position).unwrap();
            let each = &mut |step: ListingStep<'_>| match step {
                ListingStep::Host(note) => {
                    let origin = note.origin();
                    let host = origin.as_ref().map_or(&*note.host, |origin| origin.host());
                    assert_eq!(partition(shards).home_of(host), shard);
                    known.1.insert(note.host.into(), note.delay);
                }
                ListingStep::Link(link) => {
                    let site = (0..20).find(|site| link_to(*site) == link);
                    if let Some(site) = site {
                        assert_eq!(partition(shards).home_of(&format!("site{site}.test")), shard);
                    }
                    known.2.extend(site);
                }
                ListingStep::Url(listed) => {
                    assert_eq!(partition(shards).shard_of(&Url::parse(listed.text).unwrap()), shard);
                    let (site, page) = listed.text[SITE.len()..].split_once(".test/").expect("a page of a site");
                    let via = via(site.parse().expect("a number"), page.parse().expect("a number"));
                    assert_eq!(listed.via, via.as_deref(), "{}", listed.text);
                    let state = (listed.state, listed.tries, listed.seconds, listed.is_duplicate);
                    let before = known.0.insert(listed.text.to_owned(), state);
                    assert_eq!(before, None, "{} is listed twice", listed.text);
                }
            };
            listing.read(&bytes, each).unwrap();
        }
        assert_eq!(listing.finish(), Damage::default());
    }
    known.2.sort_unstable();
    known
}

#[test]
fn everything_is_known_to_its_new_owner() {
    let mut files = written(3);
    let (mut urls, hosts, links) = known(&mut files, 3);
    assert_eq!((urls.len(), hosts.len()), (200, 23));
    assert!(hosts.contains_key("http://www.site2.test:8080/") && links == (0..20).collect::<Vec<_>>());
    let waiting = (UrlState::Waiting, 0, None, false);
    for site in 0..20 {
        urls.insert(url(site, 4), waiting);
    }
    urls.insert(url(5, 78), (UrlState::SetAside, 0, None, false));
    let mut shards = 3;
    for to in [2, 1, 5, 64, 3] {
        let (next, found) = redistributed(files, shards, to);
        let lost: u64 = found.iter().map(|found| found.records_lost).sum();
        assert_eq!(lost, if shards == 3 { 20 } else { 0 }, "segments are cut once");
        assert!(found.iter().all(|found| (found.urls_lost, found.ends_lost) == (0, 0) && found.damaged.is_empty()));
        assert!(next.earlier.keys().all(|(_, log)| log.journal().is_none()));
        (files, shards) = (next, to);
        assert_eq!(known(&mut files, shards), (urls.clone(), hosts.clone(), links.clone()), "{to} shards");
    }
}

/// The place of a record is kept, in its shard only.
#[test]
fn records_stay_where_they_are() {
    let places = |files: &Files| {
        let logs = files.earlier.iter().filter(|((_, log), _)| *log == LogFile::Ends);
        let mut places: Vec<_> =
            logs.flat_map(|(_, bytes)| super::super::read_ends(bytes)).filter_map(|end| end.place).collect();
        places.sort_unstable();
        places
    };
    let files = written(3);
    let mut before = places(&files);
    before.retain(|place| place.segment == 0);
    let (files, _) = redistributed(files, 3, 2);
    // Except for the reopened pages.
    before.dedup();
    let mut after = places(&files);
    after.dedup();
    assert_eq!(after, before);
    assert!(after.iter().any(|place| place.shard == 2));
}

/// This includes a shard whose directory will be gone: its segments may have been moved away, and may come back.
#[test]
fn numbers_of_segments_are_told() {
    let from = |files: &mut Files, shards: u16, to: u16| {
        let earlier = vec![EarlierShard::default(); usize::from(shards)];
        redistribute((CRAWL, RNG_SEED), &earlier, partition(to), files).unwrap().segments_from
    };
    let mut files = written(3);
    assert_eq!(from(&mut files, 3, 2), [2, 2]);
    let mut files = Files { earlier: files.new, new: BTreeMap::new() };
    assert_eq!(from(&mut files, 2, 4), [2, 2, 2, 0]);
}

/// Whichever bit is flipped, readable entries are kept, and the others are counted.
#[test]
fn damage_is_told_and_the_rest_is_known() {
    let mut whole = written(3);
    let (all, ..) = known(&mut whole, 3);
    let (mut told, mut rng) = (0, Rng::new(1));
    for _ in 0..100 {
        let mut files = written(3);
        let log = rng.below(files.earlier.len() as u64) as usize;
        let bytes = files.earlier.values_mut().nth(log).unwrap();
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << rng.below(8);
        let (mut files, found) = redistributed(files, 3, 2);
        let (urls, ..) = known(&mut files, 2);
        let lost: u64 = found.iter().map(|found| found.urls_lost).sum();
        let missing = all.keys().filter(|url| !urls.contains_key(*url)).count() as u64;
        // URLs without room have no numbers; one is only in its block.
        assert!(missing == lost || missing == 1 && lost == 0, "{missing} URLs are missing, {lost} are told");
        let is_told = found.iter().any(|found| !found.damaged.is_empty() || !found.torn.is_empty());
        assert!(is_told, "a flipped bit");
        told += u64::from(lost > 0);
    }
    assert!(told > 6, "{told}");
}

#[test]
fn logs_that_were_mixed_up_are_refused() {
    let mut files = written(3);
    let other = files.earlier[&(1, LogFile::Urls)].clone();
    files.earlier.insert((2, LogFile::Urls), other);
    let earlier = vec![EarlierShard::default(); 3];
    let refused = redistribute((CRAWL, RNG_SEED), &earlier, partition(2), &mut files).unwrap_err();
    assert!(refused.contains("shard-02/urls holds a block of shard 1"), "{refused}");
}

/// One of several shards must let a host rest for two hours; the others do not know about it.
#[test]
fn the_longest_rest_of_several_shards_holds() {
    let note = |until_seconds: u64, delay| HostNote {
        host: "a.test".into(),
        delay: Duration::from_secs(delay),
        until_seconds,
        lasts_seconds: if until_seconds == 0 { 0 } else { 60 },
        ..HostNote::default()
    };
    let mut rests = HostRests::default();
    // A shard's last note counts.
    assert_eq!([note(900, 9), note(7_000, 0)].map(|note| rests.take(note).until_seconds), [900, 7_000]);
    rests.end_shard();
    assert_eq!(rests.take(note(0, 5)), note(7_000, 5));
    assert_eq!(rests.take(note(8_000, 0)), note(8_000, 0));
    assert_eq!(rests.take(note(0, 0)), note(7_000, 0), "it was mended there, and not here");
    rests.end_shard();
    assert_eq!(rests.take(note(10, 1)), note(7_000, 1));
    assert_eq!(rests.take(HostNote { host: "b.test".into(), ..note(10, 0) }).until_seconds, 10);
}
