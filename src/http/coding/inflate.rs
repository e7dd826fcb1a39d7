//! Decodes gzip and deflate.
//!
//! Decides: gzip's framing (RFC 1952) is read here, to distinguish several members, bytes after the last one, and a
//! missing checksum from broken data. As in browsers, stray bytes behind a member are ignored and a missing checksum
//! is accepted; a wrong one marks the content. `deflate` is zlib if its first two bytes say so (RFC 1950 section 2.2)
//! and it inflates, otherwise bare deflate.
//!
//! Why two paths through gzip: nearly every body is one whole member with a true footer, and for those libdeflate
//! takes less than half the time (bench/micro). All others take the slow path, which determines what they are.
//! Invariants: both paths give the same content and ending for everything that the quick one accepts.
//! Limits: `MEMBERS_MAX` members, so that empty ones cannot keep a shard busy; the quick path reserves `QUICK_RATIO`
//! times the received bytes, and no more.

use flate2::{Crc, Decompress, FlushDecompress, Status};
use libdeflater::Decompressor;
use memchr::memmem::Finder;

use super::{Ending, PIECE_BYTES, Sink};

/// A gzip body has one member; some servers flush by starting another.
const MEMBERS_MAX: usize = 10_000;

/// Maximum ratio of content to coded bytes on the quick path, where the length is only claimed in advance. Pages are
/// some five times as long.
const QUICK_RATIO: usize = 32;

/// The quick path, created at its first use.
#[derive(Default)]
pub(super) struct Quick(Option<Box<(Decompressor, Finder<'static>)>>);

impl Quick {
    /// Writes the content of `input` to the empty `sink` if it is one whole member within the limit; otherwise, or if
    /// it does not look like one, nothing.
    fn one_member(&mut self, input: &[u8], sink: &mut Sink) -> Option<()> {
        let (decompressor, magic) =
            &mut **self.0.get_or_insert_with(|| Box::new((Decompressor::new(), Finder::new(MAGIC))));
        let length = usize::try_from(claimed_bytes(input)).ok()?;
        // Stray bytes behind a member are harmless, but another member would be more content.
        if length > sink.bytes_max.min(input.len().saturating_mul(QUICK_RATIO))
            || magic.find(input.strip_prefix(MAGIC)?).is_some()
        {
            return None;
        }
        let room = sink.room(length).get_mut(..length)?;
        let made = decompressor.gzip_decompress(input, room).ok()?;
        sink.made(made).then_some(())
    }
}

/// Decodes gzip into an empty sink.
pub(super) fn gzip(input: &[u8], sink: &mut Sink, quick: &mut Quick) -> Ending {
    match quick.one_member(input, sink) {
        Some(()) => Ending::Whole,
        None => members(input, sink),
    }
}

/// The content length of the last member, as claimed by its footer (RFC 1952 section 2.3.1); 0 if there is none.
pub(super) fn claimed_bytes(input: &[u8]) -> u64 {
    let is_gzip = input.starts_with(MAGIC);
    input.last_chunk::<4>().filter(|_| is_gzip).map_or(0, |length| u32::from_le_bytes(*length).into())
}

/// Decodes gzip of any number of members, whole or not.
fn members(input: &[u8], sink: &mut Sink) -> Ending {
    let mut input = input;
    let mut inflate = Decompress::new(false);
    for member in 0..MEMBERS_MAX {
        match skip_header(&mut input) {
            Ok(()) => {}
            // Not another member: stray bytes.
            Err(_) if member > 0 => return Ending::Whole,
            Err(ending) => return ending,
        }
        inflate.reset(false);
        let start = sink.length;
        match run(&mut inflate, &mut input, sink) {
            Ending::Whole => {}
            ending => return ending,
        }
        let Some((footer, rest)) = input.split_first_chunk::<8>() else { return Ending::Whole };
        let [c0, c1, c2, c3, l0, l1, l2, l3] = *footer;
        let mut crc = Crc::new();
        crc.update(sink.content().get(start..).unwrap_or_default());
        if crc.sum() != u32::from_le_bytes([c0, c1, c2, c3]) || crc.amount() != u32::from_le_bytes([l0, l1, l2, l3]) {
            return Ending::Corrupt;
        }
        input = rest;
        if input.is_empty() {
            return Ending::Whole;
        }
    }
    Ending::Corrupt
}

/// Decodes deflate, in either of its two senses.
pub(super) fn deflate(input: &[u8], sink: &mut Sink) -> Ending {
    if let [first, second, ..] = input
        && first & 0x0f == 8
        && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0
    {
        let ending = run(&mut Decompress::new(true), &mut &input[..], sink);
        if ending != Ending::Corrupt || sink.length > 0 {
            return ending;
        }
    }
    let ending = run(&mut Decompress::new(false), &mut &input[..], sink);
    if ending == Ending::Corrupt {
        // Bare deflate has no signature. Text that was never coded may inflate to a few bytes before it breaks, and
        // is more likely than a bare stream damaged midway: the text is worth more.
        sink.clear();
    }
    ending
}

/// Inflates up to the stream's end.
fn run(inflate: &mut Decompress, input: &mut &[u8], sink: &mut Sink) -> Ending {
    loop {
        let (in_before, out_before) = (inflate.total_in(), inflate.total_out());
        let result = inflate.decompress(input, sink.room(PIECE_BYTES), FlushDecompress::None);
        let used = (inflate.total_in() - in_before) as usize;
        let made = (inflate.total_out() - out_before) as usize;
        *input = input.get(used..).unwrap_or_default();
        if !sink.made(made) {
            return Ending::Full;
        }
        match result {
            Err(_) => return Ending::Corrupt,
            Ok(Status::StreamEnd) => return Ending::Whole,
            Ok(_) if used == 0 && made == 0 => return Ending::Short,
            Ok(_) => {}
        }
    }
}

/// The start of a member; 8 is the only method (RFC 1952 section 2.3.1).
const MAGIC: &[u8] = &[0x1f, 0x8b, 8];

/// Skips a member's header (RFC 1952 section 2.3).
fn skip_header(input: &mut &[u8]) -> Result<(), Ending> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const CHECK: u8 = 2;
    const RESERVED: u8 = 0xe0;
    let matching = input.iter().zip(MAGIC).take_while(|(byte, expected)| byte == expected).count();
    if matching < MAGIC.len() {
        return Err(if matching == input.len() { Ending::Short } else { Ending::Corrupt });
    }
    let flags = input.get(3).copied().ok_or(Ending::Short)?;
    if flags & RESERVED != 0 {
        return Err(Ending::Corrupt);
    }
    let mut rest = input.get(10..).ok_or(Ending::Short)?;
    if flags & EXTRA != 0 {
        let ([low, high], after) = rest.split_first_chunk::<2>().ok_or(Ending::Short)?;
        rest = after.get(usize::from(u16::from_le_bytes([*low, *high]))..).ok_or(Ending::Short)?;
    }
    for text in [NAME, COMMENT] {
        if flags & text != 0 {
            let end = memchr::memchr(0, rest).ok_or(Ending::Short)?;
            rest = rest.get(end + 1..).ok_or(Ending::Short)?;
        }
    }
    if flags & CHECK != 0 {
        rest = rest.get(2..).ok_or(Ending::Short)?;
    }
    *input = rest;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use ringcrawl_base::Rng;
    use std::io::Write;

    const BYTES_MAX: usize = 40_000;

    fn member(content: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(content).expect("a Vec takes everything");
        encoder.finish().expect("a Vec takes everything")
    }

    /// Returns whether the quick path was taken; `buffer` has been used before.
    fn compare_in(buffer: &mut Vec<u8>, quick: &mut Quick, input: &[u8]) -> bool {
        let mut fresh = Vec::new();
        let mut slow = Sink::new(&mut fresh, BYTES_MAX);
        let ending = members(input, &mut slow);
        let mut sink = Sink::new(buffer, BYTES_MAX);
        let taken = quick.one_member(input, &mut sink).is_some();
        if taken {
            assert_eq!((ending, slow.content()), (Ending::Whole, sink.content()));
        } else {
            assert_eq!(sink.length, 0);
            assert_eq!((ending, slow.content()), (gzip(input, &mut sink, quick), slow.content()));
            assert_eq!(slow.content(), sink.content());
        }
        taken
    }

    fn compare(input: &[u8]) -> bool {
        compare_in(&mut Vec::new(), &mut Quick::default(), input)
    }

    #[test]
    fn the_quick_way_is_taken_for_what_it_is_for() {
        let text: Vec<u8> = (0..4_000).flat_map(|i: u32| (i * 7919).to_string().into_bytes()).collect();
        assert!(compare(&member(&text)));
        assert!(compare(&member(b"")));
        assert!(!compare(&[member(&text), member(&text)].concat()), "the same twice");
        assert!(!compare(&member(&vec![b'x'; BYTES_MAX])), "shorter than a thirty-second");
        assert!(!compare(&member(&text)[..100]), "cut");
        assert!(!compare(&[member(b"x"), b"stray".to_vec()].concat()), "not its footer");
        assert!(!compare(b""));
    }

    /// Members with any content, truncated, damaged, one behind another, with stray bytes.
    #[test]
    fn both_ways_agree() {
        let seed = 1;
        let mut rng = Rng::new(seed);
        let mut quick = 0;
        let (mut buffer, mut kept) = (Vec::new(), Quick::default());
        for round in 0..1_000 {
            let mut input = Vec::new();
            for _ in 0..1 + rng.below(20) / 18 {
                let length = [0, 3, 300, 39_999, 40_001][rng.below(5) as usize];
                let variety = 1 + rng.below(256);
                let content: Vec<u8> = (0..length).map(|_| rng.below(variety) as u8).collect();
                input.extend(member(&content));
            }
            for _ in 0..rng.below(4) {
                let at = rng.below(input.len() as u64) as usize;
                match rng.below(8) {
                    0 => input.truncate(at.max(1)),
                    1 => input[at] ^= 1 << rng.below(8),
                    2 => input.extend((0..rng.below(9)).map(|_| rng.below(256) as u8)),
                    3 => input.iter_mut().take(4).for_each(|byte| *byte ^= (rng.below(64) == 0) as u8),
                    _ => {}
                }
            }
            println!("seed {seed}, round {round}");
            quick += u32::from(compare_in(&mut buffer, &mut kept, &input));
        }
        assert!((250..1_000).contains(&quick), "{quick}");
    }
}
