//! Tests of writes, syncs and power cuts on the disk.

use std::collections::BTreeSet;

use super::*;
use ringcrawl_brain::log::{End, EndKind, Log, Owner, Replay, read_ends};
use ringcrawl_brain::spool::Block;
use ringcrawl_url::FoundUrl;
use ringcrawl_warc::frame::FrameWriter;

const OWNER: Owner = Owner { crawl: 1, shard: 0 };

fn append(disk: &mut FakeDisk, bytes: &[u8]) {
    let position = disk.log(LogFile::Ends).len() as u64;
    disk.push(DiskOp::Append(Append { file: LogFile::Ends, position, bytes: bytes.to_vec() }));
}

#[test]
fn a_kill_tears_what_is_being_done_and_loses_what_waits() {
    let mut lengths = BTreeSet::new();
    for seed in 0..100 {
        let (mut rng, mut disk) = (Rng::new(seed), FakeDisk::default());
        append(&mut disk, b"written");
        assert!(matches!(disk.work(), Some(DiskEnd::Done { bytes: 7, .. })));
        append(&mut disk, b"torn");
        disk.push(DiskOp::Append(Append { file: LogFile::Ends, position: 11, bytes: b"never".to_vec() }));
        disk.kill(&mut rng);
        assert!(b"writtentor".starts_with(disk.log(LogFile::Ends)) && disk.work().is_none());
        lengths.insert(disk.log(LogFile::Ends).len());
    }
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [7, 8, 9, 10]);
}

/// Appends a block that says that the URLs of these numbers are done.
fn end(disk: &mut FakeDisk, log: &mut Log, url: u64) {
    log.end(End {
        url,
        kind: EndKind::Fetched(200),
        tries: 1,
        is_duplicate: false,
        is_challenge: false,
        cut: None,
        seconds: 0,
        place: None,
        bytes: 0,
    });
    log.freeze_ends();
    disk.push(DiskOp::Append(log.take_ends().expect("a block")));
}

/// The URLs that are done, from all blocks before the first incomplete one.
fn over(disk: &FakeDisk) -> Vec<u64> {
    read_ends(disk.log(LogFile::Ends)).map(|end| end.url).collect()
}

fn sync(disk: &mut FakeDisk) {
    disk.push(DiskOp::Sync { to_device: true });
    assert!(disk.work().is_none() && disk.is_syncing());
}

/// Logs with one block on the device, two written blocks (one of them before a sync that has not ended), and one
/// block still in transit.
fn logs() -> (FakeDisk, Log) {
    let (mut disk, mut log) = (FakeDisk::default(), Log::new(OWNER, 1, 0));
    (0..10).for_each(|number| assert_eq!(log.accept(FoundUrl::unlinked(0, "http://a.test/")), number));
    assert!(log.take_append(true).is_some());
    log.freeze_ends();
    log.confirm_facts();
    end(&mut disk, &mut log, 1);
    disk.work();
    sync(&mut disk);
    assert!(matches!(disk.finish_sync(), Some(DiskEnd::Synced)));
    end(&mut disk, &mut log, 2);
    disk.work();
    sync(&mut disk);
    end(&mut disk, &mut log, 3);
    disk.work();
    end(&mut disk, &mut log, 4);
    (disk, log)
}

#[test]
fn a_power_cut_loses_what_was_not_synced() {
    let (mut left, mut torn) = (BTreeSet::new(), 0);
    for seed in 0..500 {
        let (mut rng, (mut disk, _)) = (Rng::new(seed), logs());
        let has_ended = seed % 2 == 0;
        if has_ended {
            assert!(disk.finish_sync().is_some());
        }
        disk.cut_power(&mut rng);
        let kept = over(&disk);
        assert!(kept.starts_with(if has_ended { &[1, 2] } else { &[1] }) && disk.work().is_none());
        let mut replay = Replay::new(OWNER, 1, &[], BTreeMap::new());
        replay.read(disk.log(LogFile::Ends), &mut |_| {}).expect("our own");
        replay.read(&[], &mut |_| {}).expect("our own");
        replay.read(&[], &mut |_| {}).expect("our own");
        torn += u64::from(!replay.finish().0.torn.is_empty());
        left.insert(kept);
        // What one power cut has left is durable, and no later one removes it.
        let length = disk.log(LogFile::Ends).len();
        disk.cut_power(&mut rng);
        assert_eq!(disk.log(LogFile::Ends).len(), length);
    }
    let expected = [vec![1], vec![1, 2], vec![1, 2, 3]];
    assert_eq!(left.into_iter().collect::<Vec<_>>(), expected, "never the one in flight");
    assert!(torn > 300, "{torn} of 500 end within a block");
}

#[test]
fn a_flipped_bit_costs_its_block_alone() {
    let mut lost = BTreeSet::new();
    for seed in 0..500 {
        let (mut rng, (mut disk, _)) = (Rng::new(seed), logs());
        let before = disk.log(LogFile::Ends).to_vec();
        disk.flip_bit(&mut rng);
        let differs = before.iter().zip(disk.log(LogFile::Ends));
        assert_eq!(differs.map(|(one, other)| (one ^ other).count_ones()).sum::<u32>(), 1);
        let kept = over(&disk);
        assert_eq!(kept.len(), 2);
        lost.extend((1..4).filter(|url| !kept.contains(url)));
    }
    assert_eq!(lost.into_iter().collect::<Vec<_>>(), [1, 2, 3]);
}

#[test]
fn a_sync_waits_for_segments_that_are_being_closed() {
    let mut disk = FakeDisk::default();
    let begin = |number: u64| DiskOp::Segment(SegmentOp::Begin(format!("rc-20260101000000-00-{number:05}.warc.zst")));
    for op in [begin(0), DiskOp::Segment(SegmentOp::Close { index: Vec::new() }), begin(1)] {
        disk.push(op);
        disk.work();
    }
    sync(&mut disk);
    assert!(!disk.can_finish_sync() && disk.finish_sync().is_none());
    disk.finish_closing(&mut Rng::new(0));
    assert!(matches!(disk.finish_sync(), Some(DiskEnd::Synced)));
}

fn record(number: u64) -> Vec<u8> {
    let head = format!(
        "WARC/1.1\r\nWARC-Type: metadata\r\nWARC-Record-ID: <urn:uuid:{number}>\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n\
        WARC-Target-URI: http://a.test/{number}\r\nContent-Length: 4\r\n\r\nbody\r\n\r\n"
    );
    let mut frame = Vec::new();
    FrameWriter::new(1).expect("a context").compress(&[head.as_bytes()], &mut frame).expect("a frame");
    frame
}

/// A segment is synced when it is closed; an open one keeps complete records from its beginning.
#[test]
fn a_power_cut_leaves_closed_segments_and_the_beginning_of_the_open_one() {
    let (closed, open) = ([record(1), record(2)].concat(), [record(3), record(4)]);
    let mut left = BTreeSet::new();
    for seed in 0..300 {
        let (mut rng, mut disk) = (Rng::new(seed), FakeDisk::default());
        let begin = |number: u64| SegmentOp::Begin(format!("rc-20260101000000-00-{number:05}.warc.zst"));
        let write = |bytes: &[u8], offset: usize| SegmentOp::Write { bytes: bytes.to_vec(), offset: offset as u64 };
        let ops = [begin(0), write(&closed, 0), SegmentOp::Close { index: Vec::new() }, begin(1), write(&open[0], 0)];
        for op in ops {
            disk.push(DiskOp::Segment(op));
            let end = disk.work().or_else(|| disk.finish_closing(&mut rng));
            assert!(matches!(end, Some(DiskEnd::Done { .. })));
        }
        disk.push(DiskOp::Segment(write(&open[1], open[0].len())));
        disk.cut_power(&mut rng);
        let next = disk.begin_run().next_segment;
        let segments: Vec<&[u8]> = disk.segments().map(|(_, bytes, _)| bytes).collect();
        assert_eq!(segments[0], closed);
        // The file of the open one may never have been created, and then its number is free.
        assert!(next == 2 || next == 1 && segments.len() == 1);
        left.insert(segments.get(1).map(|bytes| bytes.to_vec()));
    }
    let [whole, _] = open;
    assert_eq!(left.into_iter().collect::<Vec<_>>(), [None, Some(whole)], "never the record in flight");
}

#[test]
fn a_full_disk_fails_once_and_comes_back() {
    let mut disk = FakeDisk { is_full: true, ..FakeDisk::default() };
    append(&mut disk, b"bytes");
    assert!(matches!(disk.work(), Some(DiskEnd::Failed(_))));
    assert!(disk.work().is_none() && disk.log(LogFile::Ends).is_empty());
    disk.is_full = false;
    append(&mut disk, b"bytes");
    assert!(matches!(disk.work(), Some(DiskEnd::Done { .. })));
}

#[test]
fn a_bit_flips() {
    let mut disk = FakeDisk::default();
    let block = Block { file: 0, offset: 0, bytes: 3, urls: 1, sum: 0 };
    disk.push(DiskOp::Spool(SpoolOp::Write { block, bytes: vec![0; 3] }));
    disk.work();
    disk.flip_bit(&mut Rng::new(1));
    disk.push(DiskOp::Spool(SpoolOp::Read { block }));
    let Some(DiskEnd::BlockRead { bytes, .. }) = disk.work() else { panic!("no block") };
    assert_eq!(bytes.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
}
