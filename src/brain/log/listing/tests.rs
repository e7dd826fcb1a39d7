//! Lists of logs as a shard writes them, and of damaged ones.

use std::collections::BTreeMap;

use super::super::{Log, RecordPlace};
use super::*;
use ringcrawl_base::Rng;
use ringcrawl_base::time::Duration;

const OWNER: Owner = Owner { crawl: 7, shard: 1 };

type Files = BTreeMap<LogFile, Vec<u8>>;

fn write(log: &mut Log, files: &mut Files) {
    let mut appends: Vec<_> = std::iter::from_fn(|| log.take_append(true)).collect();
    log.freeze_ends();
    log.confirm_facts();
    appends.extend(std::iter::from_fn(|| log.take_ends()));
    log.confirm_ends();
    appends.into_iter().for_each(|append| files.entry(append.file).or_default().extend(append.bytes));
}

fn end(url: u64, kind: EndKind) -> End {
    End {
        url,
        kind,
        tries: 2,
        is_duplicate: url == 3,
        is_challenge: url == 3,
        cut: (url == 3).then_some(Truncated::Unspecified),
        seconds: 1_800_000_000 + url,
        place: Some(RecordPlace::default()),
        bytes: 0,
    }
}

/// URL, state, tries, time.
type Line = (String, UrlState, u8, Option<u64>);

fn list(files: &Files, is_running: bool) -> Result<(Vec<Line>, Vec<HostNote>, Damage), String> {
    let (mut listing, mut lines, mut notes) = (Listing::new(OWNER, is_running), Vec::new(), Vec::new());
    while let Some((file, at)) = listing.next_read() {
        let bytes = files.get(&file).map(Vec::as_slice).unwrap_or_default();
        let piece = &bytes[at as usize..bytes.len().min(at as usize + 1_000)];
        listing.read(piece, &mut |step| match step {
            ListingStep::Host(note) => notes.push(note),
            ListingStep::Link(_) => {}
            ListingStep::Url(listed) => {
                let is_third = listed.text.ends_with("/3") && listed.seconds.is_some();
                assert_eq!((listed.is_duplicate, listed.interstitial.is_some()), (is_third, is_third));
                assert_eq!(listed.cut, is_third.then_some(Truncated::Unspecified));
                lines.push((listed.text.to_owned(), listed.state, listed.tries, listed.seconds));
            }
        })?;
    }
    Ok((lines, notes, listing.finish()))
}

fn url(number: u64) -> String {
    format!("http://a.test/{number}")
}

/// Five URLs, each in a block of its own: a page, a failure, a waiting URL, an error after a failure, a reopened URL.
fn written() -> Files {
    let (mut log, mut files) = (Log::new(OWNER, 2, 0), Files::new());
    for number in 0..5 {
        log.accept(FoundUrl::unlinked(0, &url(number)));
        write(&mut log, &mut files);
    }
    for end in [
        end(0, EndKind::Fetched(200)),
        end(3, EndKind::Failed(Failure::HostDead)),
        end(4, EndKind::Fetched(301)),
        end(1, EndKind::Failed(Failure::RobotsDenied)),
        end(4, EndKind::Reopened),
        end(3, EndKind::Fetched(500)),
    ] {
        log.end(end);
        write(&mut log, &mut files);
    }
    files
}

#[test]
fn the_last_end_of_each_url_counts() {
    let (lines, notes, damage) = list(&written(), false).expect("our own");
    let over = |number: u64, state| (url(number), state, 2, Some(1_800_000_000 + number));
    let waiting = |number| (url(number), UrlState::Waiting, 0, None);
    let expected = vec![
        over(0, UrlState::Fetched(200)),
        over(1, UrlState::Failed(Failure::RobotsDenied)),
        waiting(2),
        over(3, UrlState::Fetched(500)),
        waiting(4),
    ];
    assert_eq!((lines, notes, damage), (expected, vec![], Damage::default()));
    assert_eq!(list(&Files::new(), false), Ok((vec![], vec![], Damage::default())));
    assert_eq!(size_of::<LastEnd>(), 8);
}

#[test]
fn what_found_no_room_is_listed_once_unless_it_was_accepted_later() {
    let (mut log, mut files) = (Log::new(OWNER, 2, 0), Files::new());
    log.accept(FoundUrl::unlinked(0, "http://a.test/first"));
    for _ in 0..2 {
        ["http://a.test/never", "http://a.test/later"].iter().for_each(|url| log.set_aside(FoundUrl::unlinked(0, url)));
        log.set_aside(FoundUrl::unlinked(Hops::EXTERNAL.bits(), "http://b.test/no-url-of-the-crawl"));
        write(&mut log, &mut files);
    }
    log.accept(FoundUrl::unlinked(0, "http://a.test/later"));
    write(&mut log, &mut files);
    let (lines, ..) = list(&files, false).expect("our own");
    let short: Vec<_> = lines.iter().map(|(url, state, ..)| (url.as_str(), *state)).collect();
    let waiting = UrlState::Waiting;
    let expected = [
        ("http://a.test/first", waiting),
        ("http://a.test/later", waiting),
        ("http://a.test/never", UrlState::SetAside),
    ];
    assert_eq!(short, expected);
}

/// However many a server gives, and however often: the set of their hashes is bounded.
#[test]
fn many_that_found_no_room_are_listed_once_in_parts() {
    let (mut log, mut files) = (Log::new(OWNER, 2, 0), Files::new());
    let url = |number: u64| format!("http://a.test/{number}");
    for round in 0..3 {
        for number in 0..20 * ASIDE_MAX as u64 {
            if round < 2 || !number.is_multiple_of(7) {
                log.set_aside(FoundUrl::unlinked(0, &url(number)));
            }
            if round == 1 && number.is_multiple_of(7) {
                log.accept(FoundUrl::unlinked(0, &url(number)));
            }
            if number % 50 == 0 {
                write(&mut log, &mut files);
            }
        }
        write(&mut log, &mut files);
        let (mut listing, mut listed, mut most) = (Listing::new(OWNER, false), Vec::new(), 0);
        while let Some((file, at)) = listing.next_read() {
            let bytes = files.get(&file).map(Vec::as_slice).unwrap_or_default();
            let piece = &bytes[at as usize..bytes.len().min(at as usize + 1_000)];
            let read = listing.read(piece, &mut |step| {
                if let ListingStep::Url(url) = step {
                    listed.push((url.text.to_owned(), url.state));
                }
            });
            read.expect("our own");
            most = most.max(listing.aside.capacity());
        }
        let is_accepted = |number: u64| round > 0 && number.is_multiple_of(7);
        let state = |number| if is_accepted(number) { UrlState::Waiting } else { UrlState::SetAside };
        let mut expected: Vec<_> = (0..20 * ASIDE_MAX as u64).map(|number| (url(number), state(number))).collect();
        expected.sort_by(|one, other| one.0.cmp(&other.0));
        listed.sort_by(|one, other| one.0.cmp(&other.0));
        assert!(listed == expected && most < 3 * ASIDE_MAX, "{} of {}, room for {most}", listed.len(), expected.len());
    }
    let (mut listing, mut listed) = (Listing::new(OWNER, false).without_aside(), 0);
    while let Some((file, at)) = listing.next_read() {
        let bytes = files.get(&file).map(Vec::as_slice).unwrap_or_default();
        let read = listing.read(&bytes[at as usize..], &mut |step| {
            assert!(matches!(step, ListingStep::Url(Listed { state: UrlState::Waiting, .. })));
            listed += 1;
        });
        read.expect("our own");
    }
    assert_eq!(listed, (20 * ASIDE_MAX).div_ceil(7));
}

/// What a crawl accepts while it is listed stays in the list, which is as old as its beginning.
#[test]
fn what_is_accepted_between_two_passes_is_listed_as_it_was() {
    let (mut log, mut files) = (Log::new(OWNER, 2, 0), Files::new());
    let count = 3 * ASIDE_MAX as u64;
    for number in 0..count {
        log.set_aside(FoundUrl::unlinked(0, &url(number)));
        if number % 50 == 0 {
            write(&mut log, &mut files);
        }
    }
    write(&mut log, &mut files);
    let (mut listing, mut listed, mut passes) = (Listing::new(OWNER, true), Vec::new(), 0);
    while let Some((file, at)) = listing.next_read() {
        passes += u64::from(file == LogFile::Urls && at == 0);
        if passes == 2 && at == 0 {
            for number in 0..count {
                log.accept(FoundUrl::unlinked(0, &url(number)));
            }
            write(&mut log, &mut files);
        }
        let bytes = files.get(&file).map(Vec::as_slice).unwrap_or_default();
        let piece = &bytes[at as usize..bytes.len().min(at as usize + 1_000)];
        let read = listing.read(piece, &mut |step| {
            if let ListingStep::Url(url) = step {
                assert_eq!(url.state, UrlState::SetAside);
                listed.push(url.text.to_owned());
            }
        });
        read.expect("our own");
    }
    listed.sort();
    let mut expected: Vec<String> = (0..count).map(url).collect();
    expected.sort();
    assert!(listed == expected && passes > 2, "{} in {passes} passes", listed.len());
}

/// A URL that failed again has the detail of that failure, or none.
#[test]
fn what_more_is_known_of_a_failure_is_that_of_the_last_one() {
    let (mut log, mut files) = (Log::new(OWNER, 2, 0), Files::new());
    for number in 0..3 {
        log.accept(FoundUrl::unlinked(0, &url(number)));
    }
    for (number, detail) in [(0, "first"), (1, "one"), (0, "last"), (1, "")] {
        if !detail.is_empty() {
            log.note_detail(number, detail.into());
        }
        log.end(end(number, EndKind::Failed(Failure::Malformed)));
        write(&mut log, &mut files);
    }
    let (mut listing, mut details) = (Listing::new(OWNER, false), Vec::new());
    while let Some((file, at)) = listing.next_read() {
        let bytes = files.get(&file).map(Vec::as_slice).unwrap_or_default();
        let rest = bytes.get(at as usize..).unwrap_or_default();
        let read = listing.read(rest, &mut |step| {
            if let ListingStep::Url(listed) = step {
                details.push(listed.detail.to_owned());
            }
        });
        read.expect("our own");
    }
    assert_eq!(details, ["last", "", ""]);
}

#[test]
fn notes_on_hosts_come_first() {
    let (mut log, mut files) = (Log::new(OWNER, 2, 0), Files::new());
    let note = HostNote {
        host: "a.test".into(),
        delay: Duration::from_secs(7),
        until_seconds: 1_800_000_000,
        lasts_seconds: 60,
        ..HostNote::default()
    };
    log.accept(FoundUrl::unlinked(0, "http://a.test/"));
    log.note_host(note.clone());
    write(&mut log, &mut files);
    let (lines, notes, _) = list(&files, false).expect("our own");
    assert_eq!((lines.len(), notes), (1, vec![note]));
}

#[test]
fn files_of_others_are_refused() {
    let files = written();
    for other in [LogFile::Ends, LogFile::Urls] {
        let mixed = BTreeMap::from([(LogFile::Ends, files[&other].clone()), (LogFile::Urls, files[&other].clone())]);
        assert!(list(&mixed, false).is_err_and(|error| error.contains("mixed up")));
    }
    let mut listing = Listing::new(Owner { shard: 2, ..OWNER }, false);
    assert!(listing.read(&files[&LogFile::Ends], &mut |_| {}).is_err());
}

/// The log of ends as it was when reading began, and later URLs whose blocks count more ends.
#[test]
fn beside_a_running_crawl_nothing_is_missed_that_came_later() {
    let mut log = Log::new(OWNER, 2, 0);
    log.accept(FoundUrl::unlinked(0, &url(0)));
    log.end(end(0, EndKind::Fetched(200)));
    write(&mut log, &mut Files::new());
    log.accept(FoundUrl::unlinked(0, &url(1)));
    let block = log.take_append(true).expect("a block of URLs");
    let earlier = Files::from([(LogFile::Urls, block.bytes.clone())]);
    let (_, _, damage) = list(&earlier, false).expect("our own");
    assert_eq!((damage.ends_lost, damage.urls_lost), (1, 1));
    let (lines, _, damage) = list(&earlier, true).expect("our own");
    assert_eq!((lines.len(), damage.ends_lost), (1, 0));
    // So is a block that is being written.
    let mut growing = written();
    growing.entry(LogFile::Ends).or_default().extend(&block.bytes[..30]);
    assert_eq!(list(&growing, true).expect("our own").2, Damage::default());
    assert_eq!(list(&growing, false).expect("our own").2.torn, [(LogFile::Ends, 30)]);
}

/// Bits are flipped or bytes cut: every listed state was true at some time, and missing entries are counted.
#[test]
fn damage_is_told_and_the_rest_is_listed() {
    let whole = written();
    let (truth, ..) = list(&whole, false).expect("our own");
    for seed in 0..4_000 {
        let (mut rng, mut files) = (Rng::new(seed), whole.clone());
        let name = [LogFile::Ends, LogFile::Urls][rng.below(2) as usize];
        let bytes = files.get_mut(&name).expect("a file");
        let at = rng.below(bytes.len() as u64) as usize;
        if seed % 2 == 0 {
            bytes[at] ^= 1 << rng.below(8)
        } else {
            bytes.truncate(at)
        }
        let (lines, _, damage) = list(&files, false).expect("damaged bytes are no error");
        let is_told = damage != Damage::default();
        if name == LogFile::Urls {
            assert!(lines.iter().all(|line| truth.contains(line)), "seed {seed}");
            assert_eq!((damage.urls_lost, is_told), (5 - lines.len() as u64, true), "seed {seed}");
        } else {
            assert_eq!(lines.len(), 5, "seed {seed}");
            // Nothing says how many ends there were after the last whole block.
            assert!(is_told || lines == truth || seed % 2 == 1, "seed {seed}");
        }
    }
}
