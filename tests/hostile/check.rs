//! What a crawl of the faulty web stored, held against the truth, URL by URL.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use ringcrawl_http::{Headers, Limits, decode_content};
use ringcrawl_url::Url;
use ringcrawl_warc::index::IndexEntry;
use ringcrawl_warc::read::{SegmentReader, find_segments, read_rest};
use ringcrawl_warc::verify::index_path;
use ringcrawl_web::faults::ending::Ending;
use ringcrawl_web::truth::{Expected, Truth};
use ringcrawl_web::{Item, Model};
use xxhash_rust::xxh3::xxh3_64;

/// One response as it was stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capture {
    status: u16,
    body: Vec<u8>,
    truncated: Option<String>,
}

/// The responses for each URL, in the order of their making; robots.txt apart.
pub type Harvest = BTreeMap<String, Vec<Capture>>;

/// Reads a crawl's directory. Of a payload in a content coding this is the content that a crawl with these `limits` made of
/// it, and a mark says if that is not all.
pub fn stored(dir: &str, limits: &Limits) -> Harvest {
    let mut harvest = Harvest::new();
    // Of a revisit the payload was stored before, by the same shard.
    let mut payloads = BTreeMap::new();
    for segment in find_segments(Path::new(dir)).expect("a crawl's directory") {
        let index = index_path(&segment).expect("a closed segment");
        let text = std::fs::read_to_string(&index).expect("its index");
        let mut reader = SegmentReader::open(&segment).expect("a segment");
        let mut entries: Vec<IndexEntry> =
            text.lines().map(|line| IndexEntry::parse(line).expect("an index line")).collect();
        entries.sort_by_key(|entry| entry.offset);
        for entry in entries.into_iter().filter(|entry| !entry.url.ends_with("/robots.txt")) {
            let record = reader.record_at(entry.offset).expect("a good frame").expect("a record");
            let truncated = record.head.get("WARC-Truncated").map(str::to_owned);
            let head = reader.read_http_head().expect("an HTTP head");
            let status = head.status();
            let mut body = Vec::new();
            assert!(read_rest(&mut reader, &mut body, BODY_BYTES_MAX).expect("a body"), "{}", entry.url);
            if entry.is_revisit() {
                body.clone_from(payloads.get(&entry.digest).expect("it was stored before"));
            } else {
                payloads.insert(entry.digest, body.clone());
            }
            let decoded = decode_content(&Headers::of_head(&head.bytes), &body, limits);
            let truncated = truncated.or(decoded.truncated.map(|why| why.as_str().to_owned()));
            let body = decoded.bytes.into_owned();
            harvest.entry(entry.url).or_default().push(Capture { status, body, truncated });
        }
    }
    harvest
}

const BODY_BYTES_MAX: usize = 64 << 20;

impl Capture {
    fn is(&self, expected: &Expected, truncated: Option<&str>) -> bool {
        self.truncated.as_deref() == truncated && self.found() == *expected
    }

    fn found(&self) -> Expected {
        Expected { status: self.status, body_bytes: self.body.len() as u64, body_digest: xxh3_64(&self.body) }
    }

    fn begins_with(&self, expected: &Expected) -> bool {
        let start = self.body.get(..expected.body_bytes as usize).unwrap_or_default();
        self.status == expected.status && xxh3_64(start) == expected.body_digest
    }
}

/// Calls `each` with the harvest after one thing in it was made wrong, for every kind of thing there is.
pub fn spoil(harvest: &mut Harvest, truth: &Truth, each: &dyn Fn(&str, &Harvest)) {
    let mut spoil = |what: &str, url: &str, change: &dyn Fn(&mut Vec<Capture>)| {
        let before = harvest.get(url).cloned();
        change(harvest.entry(url.to_owned()).or_default());
        each(&format!("{what}: {url}"), harvest);
        match before {
            Some(captures) => harvest.insert(url.to_owned(), captures),
            None => harvest.remove(url),
        };
    };
    let made_up = Capture { status: 200, body: b"made up".to_vec(), truncated: None };
    if let Some(url) = truth.fetched.keys().next() {
        spoil("a page that is missing", url.as_str(), &|captures| captures.clear());
        spoil("a page that is there twice", url.as_str(), &|captures| captures.push(captures[0].clone()));
        spoil("a page with another byte", url.as_str(), &|captures| captures[0].body.push(b'x'));
        spoil("a page called truncated", url.as_str(), &|captures| captures[0].truncated = Some("length".to_owned()));
        let beyond = url.join("/nowhere").expect("a URL");
        spoil("a page that nobody links to", beyond.as_str(), &|captures| captures.push(made_up.clone()));
    }
    for cut in [false, true] {
        let is_such = |ending: &Ending| matches!(ending, Ending::Cut { open, .. } if *open == cut);
        let Some((url, _)) = truth.faulty.iter().find(|(_, ending)| is_such(ending)) else { continue };
        spoil("a cut page that is missing", url.as_str(), &|captures| captures.clear());
        spoil("a cut page without its mark", url.as_str(), &|captures| captures[0].truncated = None);
        spoil("a cut page that is too short", url.as_str(), &|captures| captures[0].body.truncate(100));
    }
    for (url, ending) in &truth.faulty {
        match ending {
            Ending::Failed { .. } => spoil("a response from nowhere", url.as_str(), &|it| it.push(made_up.clone())),
            Ending::Again { .. } => spoil("a try less", url.as_str(), &|captures| drop(captures.pop())),
            Ending::Cut { .. } => continue,
        }
    }
    if let Some(url) = truth.mazes.first() {
        spoil("a maze that nobody went into", url.as_str(), &|captures| captures.clear());
    }
}

/// What was stored and cannot be foreseen one by one: pages of mazes.
fn unforeseen<'a>(harvest: &'a Harvest, truth: &Truth) -> impl Iterator<Item = (&'a String, &'a Vec<Capture>)> {
    let known = truth.fetched.keys().chain(truth.missing.keys()).chain(truth.faulty.keys());
    let known: BTreeSet<String> = known.map(|url| url.as_str().to_owned()).collect();
    harvest.iter().filter(move |(url, _)| !known.contains(url.as_str()))
}

/// How many pages of mazes were fetched once more by a shorter way.
pub fn once_more(harvest: &Harvest, truth: &Truth) -> u64 {
    unforeseen(harvest, truth).filter(|(_, found)| found.len() == 2).count() as u64
}

/// Every URL that was not stored as the truth wants it, and what is wrong.
pub fn wrongs(harvest: &Harvest, truth: &Truth, model: &Model, depth_max: usize) -> Vec<String> {
    let mut wrongs = Vec::new();
    let captures = |url: &Url| harvest.get(url.as_str()).map(Vec::as_slice).unwrap_or_default();
    let mut wrong = |url: &str, what: String| wrongs.push(format!("{url}: {what}"));
    let brief = |captures: &[Capture]| {
        let each = captures.iter().map(|it| format!("{} {} bytes {:?}", it.status, it.body.len(), it.truncated));
        each.collect::<Vec<_>>().join("; ")
    };
    for (url, expected) in truth.fetched.iter().chain(&truth.missing) {
        let found = captures(url);
        if !matches!(found, [one] if one.is(expected, None)) {
            wrong(url.as_str(), format!("{expected:?}, but [{}]", brief(found)));
        }
    }
    for (url, ending) in &truth.faulty {
        let found = captures(url);
        let right = match ending {
            Ending::Cut { why, kept, open: false } => {
                matches!(found, [one] if one.is(kept, Some(why.as_str())))
            }
            Ending::Cut { why, kept, open: true } => {
                matches!(found, [one] if one.begins_with(kept) && one.truncated.as_deref() == Some(why.as_str()))
            }
            Ending::Again { statuses, last } => {
                let seen: Vec<u16> = found.iter().map(|it| it.status).collect();
                seen == *statuses && found.last().is_some_and(|it| it.is(last, None))
            }
            Ending::Failed { .. } => found.is_empty(),
        };
        if !right {
            wrong(url.as_str(), format!("{ending:?}, but [{}]", brief(found)));
        }
    }
    // Of a maze, pages that begin at the entrance and end where the crawl's limits do. Some are so deep that a
    // shorter way has them once more.
    let mut rooms: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut twice: BTreeMap<String, usize> = BTreeMap::new();
    for (text, found) in unforeseen(harvest, truth) {
        let url = Url::parse(text).expect("a stored URL");
        let place = model.locate_url(&url);
        match place.map(|place| place.item) {
            Some(Item::Fault(fault, spot)) if fault.is_maze() && spot.is_maze() => {
                let (count, most) = rooms.entry(url.host().to_owned()).or_default();
                (*count, *most) = (*count + 1, depth_max * fault.doors() as usize);
                let is_whole = found.iter().all(|one| one.status == 200 && one.truncated.is_none());
                if !is_whole || !(1..=2).contains(&found.len()) {
                    wrong(text, format!("a page of a maze, but [{}]", brief(found)));
                }
                *twice.entry(url.host().to_owned()).or_default() += usize::from(found.len() == 2);
            }
            _ => wrong(text, format!("not in the truth, but [{}]", brief(found))),
        }
    }
    for entrance in &truth.mazes {
        let (count, most) = rooms.get(entrance.host()).copied().unwrap_or_default();
        if captures(entrance).len() != 1 || !(2..=most).contains(&count) {
            wrong(entrance.as_str(), format!("an entrance, and {count} pages behind it"));
        }
        let twice = twice.get(entrance.host()).copied().unwrap_or_default();
        if twice > count / 20 {
            wrong(entrance.as_str(), format!("an entrance, and {twice} of {count} pages behind it were fetched twice"));
        }
    }
    wrongs
}
