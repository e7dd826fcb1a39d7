//! A shard's logs: whole files, and the payloads of blocks whose checksum is right.

use ringcrawl_base::time::Duration;
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_brain::backlinks::SiteLink;
use ringcrawl_brain::log::{
    End, EndEntries, EndKind, HostNote, JournalEntry, Log, LogFile, LogReader, Owner, RecordPlace, UrlEntries,
    journal_entries,
};
use ringcrawl_brain::trouble::{HostHealth, Trouble};
use ringcrawl_url::{FoundUrl, Url, UrlBatch};

/// A file in pieces gives the same blocks as in one, and every byte is accounted for.
pub fn log(data: &[u8]) {
    let (piece, file) = super::steered(data);
    let read = |piece: usize| {
        let (mut reader, mut blocks) = (LogReader::default(), Vec::new());
        for bytes in file.chunks(piece).chain([&b""[..]]) {
            reader.push(bytes);
            blocks.extend(std::iter::from_fn(|| reader.next_block()));
        }
        assert_eq!(reader.append_at() + reader.torn_bytes(), file.len() as u64);
        assert!(reader.damaged_bytes() <= reader.append_at());
        (blocks, reader.torn_bytes(), reader.damaged_bytes())
    };
    assert_eq!(read(usize::from(piece) + 1), read(file.len().max(1)));
}

/// What is read of a payload is written as what is read again.
pub fn entries(data: &[u8]) {
    let (kind, payload) = super::steered(data);
    match kind % 3 {
        0 => {
            if let Some(entries) = UrlEntries::from_payload(payload) {
                assert_eq!(UrlEntries::from_payload(&entries.to_payload()), Some(entries));
            }
        }
        1 => {
            if let Some(entries) = EndEntries::from_payload(payload) {
                assert_eq!(EndEntries::from_payload(&entries.to_payload()), Some(entries));
            }
        }
        _ => {
            for entry in journal_entries(payload, 3).into_iter().flatten() {
                let (JournalEntry::Batch { to, .. } | JournalEntry::Acknowledged { to, .. }) = entry;
                assert!(to < 3);
            }
        }
    }
}

fn batch(count: u64) -> UrlBatch {
    let mut batch = UrlBatch::new();
    (0..count).for_each(|number| assert!(batch.push(number as u16, &format!("http://a.test/{number}"))));
    batch
}

fn ends() -> EndEntries {
    let end = |url, kind, segment| End {
        url,
        kind,
        tries: 2,
        is_duplicate: url % 2 == 0,
        is_challenge: url % 3 == 0,
        cut: (url % 3 == 1).then_some(Truncated::Disconnect),
        seconds: 1_800_000_000 + url,
        place: Some(RecordPlace { shard: 0, segment, offset: 1_000 * url }),
        bytes: url % 3 * 100_000,
    };
    let page = Url::parse("https://a.test:8443/").expect("a URL");
    let troubles = vec![Trouble::of_page(&page, Failure::Malformed, "unknown HTTP version", 2)];
    let health = HostHealth { delay: Duration::from_secs(4), response: Duration::from_millis(70), troubles };
    let host = HostNote {
        host: "a.test".into(),
        delay: Duration::from_secs(30),
        until_seconds: 1_800_000_000,
        lasts_seconds: 60,
        health,
    };
    EndEntries {
        ends: vec![
            end(1, EndKind::Fetched(200), 0),
            end(2, EndKind::Failed(Failure::HostDead), 3),
            End { place: None, ..end(3, EndKind::Reopened, 0) },
        ],
        hosts: vec![host],
        links: vec![SiteLink { to: 1 << 60, mark: 77 }],
        details: vec![(2, "words".into())],
    }
}

/// Files of three blocks each.
pub fn log_seeds() -> Vec<Vec<u8>> {
    let mut log = Log::new(Owner { crawl: 7, shard: 1 }, 3, 0);
    let (mut urls, mut all_ends, mut journal) = (vec![6], vec![200], vec![0]);
    for number in 0..3 {
        log.accept(FoundUrl::unlinked(0, &format!("http://a.test/{number}")));
        log.set_aside(FoundUrl::unlinked(1, "http://b.test/"));
        log.send(2, number + 1, &batch(3));
        log.end(End { url: number, ..ends().ends[0] });
        while let Some(append) = log.take_append(true) {
            let file = if append.file == LogFile::Urls { &mut urls } else { &mut journal };
            file.extend(append.bytes);
        }
        log.freeze_ends();
        log.confirm_facts();
        while let Some(append) = log.take_ends() {
            all_ends.extend(append.bytes);
        }
    }
    vec![urls, all_ends, journal]
}

/// One payload of each kind.
pub fn entries_seeds() -> Vec<Vec<u8>> {
    let urls = UrlEntries { accepted: batch(5), aside: batch(2) };
    let batch = batch(1);
    let journal = [&[1, 0, 9, batch.as_bytes().len() as u8], batch.as_bytes(), &[2, 1, 8]].concat();
    [(0, urls.to_payload()), (1, ends().to_payload()), (2, journal)]
        .map(|(kind, payload)| [&[kind], &payload[..]].concat())
        .to_vec()
}
