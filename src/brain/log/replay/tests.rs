//! Logs as a shard writes them, read back whole and damaged.

use super::super::Log;
use super::*;
use ringcrawl_base::Rng;

const OWNER: Owner = Owner { crawl: 7, shard: 1 };

/// Files by their names.
type Files = BTreeMap<LogFile, Vec<u8>>;

fn write(log: &mut Log, files: &mut Files) {
    let mut appends: Vec<_> = std::iter::from_fn(|| log.take_append(true)).collect();
    log.freeze_ends();
    log.confirm_facts();
    appends.extend(std::iter::from_fn(|| log.take_ends()));
    log.confirm_ends();
    for append in appends {
        let file = files.entry(append.file).or_default();
        assert_eq!(append.position, file.len() as u64);
        file.extend(append.bytes);
    }
}

fn end(url: u64, segment: u32, offset: u64) -> End {
    let place = Some(RecordPlace { shard: OWNER.shard, segment, offset });
    End {
        url,
        kind: EndKind::Fetched(200),
        tries: 1,
        is_duplicate: false,
        is_challenge: false,
        cut: None,
        seconds: 1_800_000_000,
        place,
        bytes: 0,
    }
}

/// The page that links to a URL: an older version, which did not record it, wrote the first ones.
fn via(number: u64) -> Option<&'static str> {
    (number >= 3).then_some("http://a.test/2")
}

/// Ten URLs in blocks of their own; the even ones are final, with records of 100 bytes; and a batch for another
/// shard.
fn written() -> Files {
    let (mut log, mut files) = (Log::new(OWNER, 3, 0), Files::new());
    for number in 0..10 {
        let found = FoundUrl { via: via(number), depth: number as u16, url: &format!("http://a.test/{number}") };
        assert_eq!(log.accept(found), number);
        if number % 2 == 0 {
            log.end(end(number, 0, 100 * number));
        }
        let mut urls = UrlBatch::new();
        urls.push_found(FoundUrl { via: via(number), depth: 0, url: "http://b.test/" });
        log.send(2, number + 1, &urls);
        write(&mut log, &mut files);
    }
    files
}

/// Which URLs are final, which batches there are, and what was found.
type Taken = (BTreeMap<u64, bool>, Vec<u64>, Replayed);

/// What is read.
fn read(files: &Files, segment_bytes: u64) -> Result<Taken, String> {
    let journal: Vec<u32> = files.keys().filter_map(|file| file.journal()).collect();
    let mut replay = Replay::new(OWNER, 3, &journal, BTreeMap::from([(0, segment_bytes)]));
    let (mut urls, mut batches) = (BTreeMap::new(), Vec::new());
    while let Some((file, at)) = replay.next_read() {
        let bytes = files.get(&file).map(Vec::as_slice).unwrap_or_default();
        let piece = &bytes[at as usize..bytes.len().min(at as usize + 1_000)];
        replay.read(piece, &mut |step| match step {
            ReplayStep::Url { number, depth, text, via: page, is_over, .. } => {
                assert_eq!((u64::from(depth), text), (number, format!("http://a.test/{number}").as_str()));
                assert_eq!(page, via(number));
                urls.insert(number, is_over);
            }
            ReplayStep::Batch { to: 2, number, urls } if urls.len() == 1 => {
                assert_eq!(urls.found().next().and_then(|found| found.via), via(number - 1));
                batches.push(number);
            }
            ReplayStep::End(end) => assert!(!urls.contains_key(&end.url), "ends come first"),
            ReplayStep::Block(_) => {}
            step => panic!("{step:?}"),
        })?;
    }
    let (found, reopened) = replay.finish();
    assert_eq!(found.records_lost, reopened.count() as u64);
    Ok((urls, batches, found))
}

#[test]
fn there_and_back() {
    let files = written();
    let (urls, batches, found) = read(&files, 1_000).expect("our own");
    assert!(urls.iter().all(|(number, is_over)| *is_over == (number % 2 == 0)) && urls.len() == 10);
    assert_eq!(batches, (1..=10).collect::<Vec<_>>());
    let lengths = files.iter().map(|(file, bytes)| (*file, bytes.len() as u64)).collect();
    let bytes = files[&LogFile::Journal(0)].len() as u64;
    let journal = vec![JournalFile { number: 0, bytes, is_damaged: false, last: vec![0, 0, 10] }];
    let next = Replayed { next_url: 10, next_end: 5, next_sent: 10, next_segment: 1, ..Replayed::default() };
    assert_eq!(found, Replayed { append_at: lengths, journal, ..next });
}

#[test]
fn a_url_whose_record_is_lost_is_asked_for_again_until_it_is_there() {
    let mut files = written();
    let over = |files: &Files, bytes| {
        let (urls, _, found) = read(files, bytes).expect("our own");
        (
            urls.into_iter().filter(|(_, is_over)| *is_over).map(|(number, _)| number).collect::<Vec<_>>(),
            found.records_lost,
        )
    };
    assert_eq!(over(&files, 350), (vec![0, 2], 3));
    // The next run records that they are owed, and is interrupted; its segment is another one.
    let mut log = Log::new(OWNER, 3, 1);
    log.take_up(&read(&files, 350).expect("our own").2);
    for url in [4, 6, 8] {
        log.end(End { kind: EndKind::Reopened, place: None, ..end(url, 0, 0) });
    }
    write(&mut log, &mut files);
    assert_eq!(over(&files, 10_000), (vec![0, 2], 0), "whatever is behind the end now");
    log.end(end(6, 1, 0));
    write(&mut log, &mut files);
    assert_eq!(over(&files, 350), (vec![0, 2, 6], 0));
}

#[test]
fn who_answered_is_known_from_how_urls_ended() {
    let (mut log, mut files) = (Log::new(OWNER, 3, 0), Files::new());
    let kinds = [
        Some((EndKind::Fetched(404), Some(true))),
        Some((EndKind::Failed(Failure::HostDead), Some(false))),
        Some((EndKind::Failed(Failure::ConnectTimeout), Some(false))),
        Some((EndKind::Failed(Failure::RobotsUnreachable), Some(false))),
        Some((EndKind::Failed(Failure::RobotsDenied), None)),
        None,
    ];
    for (url, kind) in (0..).zip(kinds) {
        log.accept(FoundUrl::unlinked(0, &format!("http://a.test/{url}")));
        if let Some((kind, _)) = kind {
            log.end(End { kind, place: None, ..end(url, 0, 0) });
        }
    }
    write(&mut log, &mut files);
    let mut replay = Replay::new(OWNER, 3, &[], BTreeMap::new());
    let mut said = Vec::new();
    while let Some((file, at)) = replay.next_read() {
        let bytes = files.get(&file).map(Vec::as_slice).unwrap_or_default();
        let each = &mut |step: ReplayStep<'_>| {
            if let ReplayStep::Url { was_answered, .. } = step {
                said.push(was_answered);
            }
        };
        replay.read(&bytes[at as usize..], each).expect("our own");
    }
    assert_eq!(said, kinds.map(|kind| kind.and_then(|(_, expected)| expected)));
}

#[test]
fn what_failed_is_opened_again_if_that_is_wanted() {
    let (mut log, mut files) = (Log::new(OWNER, 3, 0), Files::new());
    let failed = |url, failure| End { kind: EndKind::Failed(failure), place: None, ..end(url, 0, 0) };
    for url in 0..5 {
        log.accept(FoundUrl::unlinked(0, &format!("http://a.test/{url}")));
    }
    // The last entry holds: 1 came in the end, and 2 failed in the end.
    log.end(failed(0, Failure::RobotsDenied));
    log.end(failed(1, Failure::Reset));
    log.end(end(1, 0, 100));
    log.end(end(2, 0, 200));
    log.end(failed(2, Failure::HostDead));
    log.end(end(3, 0, 900));
    write(&mut log, &mut files);
    let open = |is_wanted: bool, segment_bytes| {
        let replay = Replay::new(OWNER, 3, &[], BTreeMap::from([(0, segment_bytes)]));
        let mut replay = if is_wanted { replay.with_again(AskAgain::failed(true)) } else { replay };
        let mut open = Vec::new();
        while let Some((file, at)) = replay.next_read() {
            let bytes = files.get(&file).map(Vec::as_slice).unwrap_or_default();
            let each = &mut |step: ReplayStep<'_>| {
                if let ReplayStep::Url { number, is_over: false, .. } = step {
                    open.push(number);
                }
            };
            replay.read(&bytes[at as usize..], each).expect("our own");
        }
        let (found, reopened) = replay.finish();
        (open, reopened.collect::<Vec<_>>(), found.records_lost, found.retried)
    };
    assert_eq!(open(false, 1_000), (vec![4], vec![], 0, 0));
    assert_eq!(open(true, 1_000), (vec![2, 4], vec![2], 0, 1));
    assert_eq!(open(true, 500), (vec![2, 3, 4], vec![3, 2], 1, 1), "beside a lost record");
}

#[test]
fn files_of_others_are_refused() {
    let mut files = written();
    for owner in [Owner { shard: 2, ..OWNER }, Owner { crawl: 8, ..OWNER }] {
        let (mut log, mut others) = (Log::new(owner, 3, 0), Files::new());
        log.accept(FoundUrl::unlinked(0, "http://c.test/"));
        write(&mut log, &mut others);
        let mut mixed = files.clone();
        mixed.insert(LogFile::Urls, others[&LogFile::Urls].clone());
        assert!(read(&mixed, 1_000).is_err_and(|error| error.contains("mixed up")));
    }
    let ends = files[&LogFile::Ends].clone();
    files.insert(LogFile::Urls, ends);
    assert!(read(&files, 1_000).is_err_and(|error| error.contains("Ends")));
}

/// Where the blocks of a file begin, and where the last one ends.
fn starts(bytes: &[u8]) -> Vec<u64> {
    let mut reader = LogReader::default();
    reader.push(bytes);
    let mut starts = vec![0];
    while reader.next_block().is_some() {
        starts.push(reader.whole_end());
    }
    starts
}

/// Three files of a journal, each with a batch to either shard.
fn journals() -> Files {
    let mut files = Files::new();
    for number in 0..3 {
        let (_, _, found) = read(&files, 1_000).expect("our own");
        let mut log = Log::new(OWNER, 3, number);
        log.take_up(&found);
        let mut urls = UrlBatch::new();
        urls.push(0, "http://b.test/");
        log.send(2, u64::from(number) + 1, &urls);
        write(&mut log, &mut files);
    }
    assert_eq!(files.len(), 3);
    files
}

#[test]
fn files_of_a_journal_that_were_mixed_up_are_refused() {
    let whole = journals();
    let (_, batches, found) = read(&whole, 1_000).expect("our own");
    assert_eq!((batches, found.next_sent, found.sent_lost), (vec![1, 2, 3], 3, 0));
    let [first, second, third] = [0, 1, 2].map(|number| whole[&LogFile::Journal(number)].clone());
    let swapped = [(LogFile::Journal(0), second.clone()), (LogFile::Journal(1), first)];
    let copied = [(LogFile::Journal(7), second.clone()), (LogFile::Journal(8), third)];
    for changes in [swapped, copied] {
        let mut files = whole.clone();
        files.extend(changes);
        let refused = read(&files, 1_000).expect_err("files in wrong places");
        assert!(refused.contains("holds what an earlier file of the journal has"), "{refused}");
    }
    // A missing file may have been deleted because everything in it was acknowledged; the file after a damaged one
    // reveals it.
    let mut files = whole.clone();
    files.remove(&LogFile::Journal(1));
    let (_, batches, found) = read(&files, 1_000).expect("our own");
    assert_eq!((batches, found.sent_lost), (vec![1, 3], 0));
    let mut files = whole;
    files.insert(LogFile::Journal(1), vec![0; second.len()]);
    let (_, batches, found) = read(&files, 1_000).expect("our own");
    assert_eq!((batches, found.sent_lost), (vec![1, 3], 1));
    assert!(found.journal[1].is_damaged && !found.journal[0].is_damaged);
}

/// Segments that were moved away: their numbers are not reused, or a new one would be mistaken for them.
#[test]
fn numbers_of_segments_that_are_gone_are_known() {
    let (mut log, mut files) = (Log::new(OWNER, 3, 0), Files::new());
    for url in 0..2 {
        log.accept(FoundUrl::unlinked(url as u16, &format!("http://a.test/{url}")));
        log.end(end(url, 7, 100));
    }
    write(&mut log, &mut files);
    let (_, _, found) = read(&files, 1_000).expect("our own");
    assert_eq!((found.next_segment, found.records_elsewhere, found.records_lost), (8, 2, 0));
}

/// No shard writes batches to itself, or numbers that do not grow.
#[test]
fn batches_that_no_shard_sent_are_damage() {
    for (to, numbers) in [(1, [1, 2]), (2, [5, 5]), (2, [5, 4])] {
        let (mut log, mut files) = (Log::new(OWNER, 3, 0), Files::new());
        for number in numbers {
            log.send(to, number, &UrlBatch::new());
        }
        write(&mut log, &mut files);
        let (_, _, found) = read(&files, 1_000).expect("our own");
        assert_eq!(found.damaged.len(), 1, "{to} {numbers:?}: {found:?}");
    }
}

/// Bits are flipped, bytes cut or files gone: everything read is true, and missing entries are counted.
#[test]
fn damage_is_told_in_urls_and_never_wrong() {
    let whole = written();
    let (truth, _, _) = read(&whole, 1_000).expect("our own");
    let mut told = [0; 3];
    for seed in 0..2_200 {
        let (mut rng, mut files) = (Rng::new(seed), whole.clone());
        let names: Vec<LogFile> = files.keys().copied().collect();
        let name = names[rng.below(names.len() as u64) as usize];
        let bytes = files.get_mut(&name).expect("a file");
        let length = bytes.len() as u64;
        match seed {
            0..2_000 => bytes[rng.below(length) as usize] ^= 1 << rng.below(8),
            2_000..2_190 => bytes.truncate(rng.below(length) as usize),
            _ => drop(files.remove(&name)),
        }
        let (urls, batches, found) = read(&files, 1_000).expect("damaged bytes are no error");
        for (number, is_over) in &urls {
            assert!(truth[number] || !is_over, "seed {seed}: {number} is over and was not");
        }
        let open = urls.iter().filter(|(number, is_over)| truth[number] && !**is_over).count() as u64;
        let left = files.get(&name).map_or(0, Vec::len);
        let is_cut_at_a_block = seed >= 2_000 && starts(&whole[&name]).contains(&(left as u64));
        if name == LogFile::Urls {
            // No other log knows the last URL.
            assert!([0, 1].contains(&(10 - urls.len() as u64 - found.urls_lost)), "seed {seed}: {urls:?} {found:?}");
            assert!(urls.contains_key(&9) == (found.urls_lost == 10 - urls.len() as u64), "seed {seed}");
        } else {
            assert_eq!(urls.len(), 10, "seed {seed}");
        }
        if name == LogFile::Ends {
            assert_eq!(found.ends_lost, open, "seed {seed}");
        }
        if name.journal().is_some() {
            // No block follows the last one to reveal it.
            let lost = 10 - batches.len() as u64;
            assert_eq!(found.sent_lost, if batches.last() == Some(&10) { lost } else { 0 }, "seed {seed}");
        }
        assert_eq!(found.torn.is_empty() && found.damaged.is_empty(), is_cut_at_a_block, "seed {seed}");
        assert!(batches.is_sorted() && (name.journal().is_some() || batches.len() == 10), "seed {seed}");
        for (count, is_told) in told.iter_mut().zip([found.urls_lost > 0, found.ends_lost > 0, !found.torn.is_empty()])
        {
            *count += u64::from(is_told);
        }
    }
    assert!(told.iter().all(|count| *count > 60), "{told:?}");
}
