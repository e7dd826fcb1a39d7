//! The files of a shard, in a folder of the test's own.

use std::os::unix::fs::MetadataExt as _;

use super::*;
use crate::lab::TempFolder;

/// Space on the disk and length of a segment of 1,000 bytes, open and closed, with what was told.
fn segment(reserve_bytes: u64) -> ([(u64, u64); 2], Vec<String>) {
    let folder = TempFolder::new("disk");
    let segments = folder.path().join("segments");
    std::fs::create_dir(&segments).expect("a folder");
    let look = |name: &str| {
        let found = std::fs::metadata(segments.join(name)).expect("a segment");
        (found.blocks() * 512, found.len())
    };
    ring::Runtime::new(8).expect("io_uring").block_on(async {
        let (disk, done) = (Rc::new(Disk::default()), Rc::new(Signal::default()));
        ring::spawn(Rc::clone(&disk).work(folder.path().to_owned(), reserve_bytes, Rc::clone(&done)));
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

#[test]
fn a_segment_has_its_space_in_advance_and_gives_back_the_rest() {
    let ([open, closed], _) = segment(0);
    assert!(open.0 <= 16_384 && closed.0 <= 16_384 && (open.1, closed.1) == (1_000, 1_000));
    let ([open, closed], notes) = segment(1 << 20);
    assert_eq!((open.1, closed.1), (1_000, 1_000), "nothing is seen of it");
    assert!(closed.0 <= 16_384, "{closed:?}");
    // Where the file system cannot, it is told.
    assert_eq!(open.0 >= 1 << 20, notes.is_empty(), "{open:?} {notes:?}");
    // More than should be taken of what there is: the segment is written all the same.
    let ([open, closed], notes) = segment(1 << 55);
    assert!(open.0 <= 16_384 && closed.1 == 1_000 && notes.is_empty(), "{open:?} {notes:?}");
}
