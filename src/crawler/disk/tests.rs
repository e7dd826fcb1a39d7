//! The files of a shard, in a folder of the test.

use std::os::unix::fs::MetadataExt as _;

use super::*;
use ringcrawl_base::TempFolder;

/// Space on the disk and length of a segment of 1,000 bytes, open and closed, with the notes.
fn segment(reserve_bytes: u64) -> ([(u64, u64); 2], Vec<String>) {
    let ways = SegmentWays { reserve_bytes, is_uncached: false };
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
        let ways = SegmentWays { reserve_bytes: 0, is_uncached };
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
    assert_eq!(pages == 0, notes.is_empty(), "{pages} {notes:?}");
}

#[test]
fn a_segment_has_its_space_in_advance_and_gives_back_the_rest() {
    let ([open, closed], _) = segment(0);
    assert!(open.0 <= 16_384 && closed.0 <= 16_384 && (open.1, closed.1) == (1_000, 1_000));
    let ([open, closed], notes) = segment(1 << 20);
    assert_eq!((open.1, closed.1), (1_000, 1_000), "nothing is seen of it");
    assert!(closed.0 <= 16_384, "{closed:?}");
    // Where the file system cannot, it reports that.
    assert_eq!(open.0 >= 1 << 20, notes.is_empty(), "{open:?} {notes:?}");
    // More than may be reserved: the segment is written all the same.
    let ([open, closed], notes) = segment(1 << 55);
    assert!(open.0 <= 16_384 && closed.1 == 1_000 && notes.is_empty(), "{open:?} {notes:?}");
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
