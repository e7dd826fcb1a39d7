//! The files of a shard, in a folder of the test.

use std::os::unix::fs::MetadataExt as _;

use super::*;
use ringcrawl_base::TempFolder;

/// Space on the disk and length of a segment of 1,000 bytes, open and closed, with the notes.
fn segment(reserve_bytes: u64, leave_bytes: u64) -> ([(u64, u64); 2], Vec<String>) {
    let ways = SegmentWays { reserve_bytes, leave_bytes, is_uncached: false };
    let folder = TempFolder::new("disk");
    let segments = folder.path().join("segments");
    std::fs::create_dir(&segments).expect("a folder");
    let look = |name: &str| {
        let found = std::fs::metadata(segments.join(name)).expect("a segment");
        (found.blocks() * 512, found.len())
    };
    ring::Runtime::new(8).expect("io_uring").block_on(async {
        let (disk, done) = (Rc::new(Disk::default()), Rc::new(Signal::default()));
        ring::spawn(Rc::clone(&disk).work(folder.path().to_owned(), ways, Rc::clone(&done)));
        let carried_out = async |ops: Vec<SegmentOp>| {
            for op in ops {
                disk.push(DiskOp::Segment(op));
                while disk.next_end().is_none() {
                    done.wait().await;
                }
            }
        };
        let (bytes, index) = (vec![7; 1_000], Vec::new());
        carried_out(vec![SegmentOp::Begin("a.warc.zst".to_owned()), SegmentOp::Write { bytes, offset: 0 }]).await;
        let open = look("a.warc.zst.open");
        carried_out(vec![SegmentOp::Close { index }]).await;
        ([open, look("a.warc.zst")], disk.take_notes())
    })
}

/// Pages in the page cache of a segment of a megabyte when it is closed, and the notes.
fn cached(is_uncached: bool) -> (u64, Vec<String>) {
    let folder = TempFolder::new("cache");
    let segments = folder.path().join("segments");
    std::fs::create_dir(&segments).expect("a folder");
    let notes = ring::Runtime::new(8).expect("io_uring").block_on(async {
        let (disk, done) = (Rc::new(Disk::default()), Rc::new(Signal::default()));
        let ways = SegmentWays { is_uncached, ..SegmentWays::default() };
        ring::spawn(Rc::clone(&disk).work(folder.path().to_owned(), ways, Rc::clone(&done)));
        let write = |offset| SegmentOp::Write { bytes: vec![7; 512 << 10], offset };
        for op in [
            SegmentOp::Begin("a.warc.zst".to_owned()),
            write(0),
            write(512 << 10),
            SegmentOp::Close { index: Vec::new() },
        ] {
            disk.push(DiskOp::Segment(op));
            while disk.next_end().is_none() {
                done.wait().await;
            }
        }
        disk.take_notes()
    });
    let segment = segments.join("a.warc.zst");
    let pages = || -> u64 {
        let counted = std::process::Command::new("fincore").args(["-n", "-o", "PAGES"]).arg(&segment).output();
        String::from_utf8_lossy(&counted.expect("fincore").stdout).trim().parse().expect("a number")
    };
    let started = std::time::Instant::now();
    // The kernel drops them a moment after writing.
    while is_uncached && notes.is_empty() && pages() > 0 && started.elapsed() < std::time::Duration::from_secs(10) {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let pages = pages();
    assert_eq!(std::fs::read(&segment).expect("a segment"), vec![7; 1 << 20]);
    (pages, notes)
}

#[test]
fn a_segment_leaves_the_page_cache_if_that_is_asked_for() {
    assert_eq!(cached(false), (256, Vec::new()));
    let (pages, notes) = cached(true);
    // Where it cannot, it reports that.
    let expected = if writes_uncached() { (true, 0) } else { (false, 1) };
    assert_eq!((pages == 0, notes.len()), expected, "{pages} {notes:?}");
}

#[test]
fn a_segment_has_its_space_in_advance_and_gives_back_the_rest() {
    let ([open, closed], _) = segment(0, 0);
    assert!(open.0 <= 16_384 && closed.0 <= 16_384 && (open.1, closed.1) == (1_000, 1_000));
    let ([open, closed], notes) = segment(1 << 20, 0);
    assert_eq!((open.1, closed.1), (1_000, 1_000), "nothing is seen of it");
    assert!(closed.0 <= 16_384, "{closed:?}");
    // Where the file system cannot, it reports that.
    let expected = if reserves() { (true, 0) } else { (false, 1) };
    assert_eq!((open.0 >= 1 << 20, notes.len()), expected, "{open:?} {notes:?}");
    // More than may be reserved, or too little would be left: the segment is written all the same.
    for (reserve_bytes, leave_bytes) in [(1 << 55, 0), (1 << 20, 1 << 60)] {
        let ([open, closed], notes) = segment(reserve_bytes, leave_bytes);
        assert!(open.0 <= 16_384 && closed.1 == 1_000 && notes.is_empty(), "{open:?} {notes:?}");
    }
}

/// Whether the file system of the tests' folders reserves space, by another program: fallocate(1).
fn reserves() -> bool {
    let folder = TempFolder::new("fallocate");
    let fallocate = std::process::Command::new("fallocate").args(["-n", "-l", "1M"]).arg(folder.file("a", "")).output();
    fallocate.expect("fallocate").status.success()
}

/// Whether the file system of the tests' folders writes past the page cache, by one write of the ring alone.
fn writes_uncached() -> bool {
    let folder = TempFolder::new("uncached");
    ring::Runtime::new(8).expect("io_uring").block_on(async {
        let file = ring::File::create_new(&folder.path().join("a")).await.expect("a file");
        match file.write_all_uncached_at(vec![7; 4_096], 0).await.0 {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(libc::EOPNOTSUPP), "{error}");
                false
            }
        }
    })
}

#[test]
fn a_reservation_leaves_what_the_crawl_may_not_use() {
    let ways = SegmentWays { reserve_bytes: 100, leave_bytes: 900, is_uncached: false };
    assert_eq!([799, 800, 999, 1_000].map(|free| ways.may_reserve(free)), [false, false, false, true]);
    // An eighth of what is free, without a floor.
    let ways = SegmentWays { leave_bytes: 0, ..ways };
    assert_eq!([0, 799, 800].map(|free| ways.may_reserve(free)), [false, false, true]);
}

/// Where segments are short, others are always being closed.
#[test]
fn a_sync_waits_for_no_segment_that_is_closed_after_it() {
    const OPS_MAX: usize = 2_000;
    let folder = TempFolder::new("closings");
    std::fs::create_dir(folder.path().join("segments")).expect("a folder");
    let ops = ring::Runtime::new(8).expect("io_uring").block_on(async {
        let (disk, done) = (Rc::new(Disk::default()), Rc::new(Signal::default()));
        ring::spawn(Rc::clone(&disk).work(folder.path().to_owned(), SegmentWays::default(), Rc::clone(&done)));
        let segment = |number: usize| {
            disk.push(DiskOp::Segment(SegmentOp::Begin(format!("{number}.warc.zst"))));
            disk.push(DiskOp::Segment(SegmentOp::Write { bytes: vec![7; 1_000], offset: 0 }));
            disk.push(DiskOp::Segment(SegmentOp::Close { index: Vec::new() }));
        };
        let (mut pushed, mut ended) = (3, 0);
        segment(0);
        disk.push(DiskOp::Sync { to_device: true });
        while ended < OPS_MAX {
            while pushed < ended + 24 {
                segment(pushed);
                pushed += 3;
            }
            match disk.next_end() {
                Some(DiskEnd::Synced) => break,
                Some(end) => assert!(matches!(end, DiskEnd::Done { .. }), "{end:?}"),
                None => {
                    done.wait().await;
                    continue;
                }
            }
            ended += 1;
        }
        ended
    });
    assert!(ops < OPS_MAX / 4, "{ops} operations went before it");
}
