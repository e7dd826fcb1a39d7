//! gzip and deflate, undone.
//!
//! Decides: gzip's framing (RFC 1952) is read here, so that several members, bytes after the last one, and
//! a missing check sum can be told from broken data. Stray bytes behind a member are ignored and a check
//! sum that is not there is not missed, as by browsers; one that is there and differs marks the content.
//! `deflate` is zlib when its first two bytes say so (RFC 1950 section 2.2) and inflates, else bare deflate.
//!
//! Limits: `MEMBERS_MAX` members, so that empty ones cannot keep a shard busy.

use flate2::{Crc, Decompress, FlushDecompress, Status};

use super::{Ending, PIECE_BYTES, Sink};

/// A gzip body has one member; some servers flush by starting another.
const MEMBERS_MAX: usize = 10_000;

/// Undoes gzip.
pub(super) fn gzip(input: &[u8], sink: &mut Sink) -> Ending {
    let mut input = input;
    let mut inflate = Decompress::new(false);
    for member in 0..MEMBERS_MAX {
        match skip_header(&mut input) {
            Ok(()) => {}
            // Not another member, then: stray bytes.
            Err(_) if member > 0 => return Ending::Whole,
            Err(ending) => return ending,
        }
        inflate.reset(false);
        let start = sink.bytes.len();
        match run(&mut inflate, &mut input, sink) {
            Ending::Whole => {}
            ending => return ending,
        }
        let Some((footer, rest)) = input.split_first_chunk::<8>() else { return Ending::Whole };
        let [c0, c1, c2, c3, l0, l1, l2, l3] = *footer;
        let mut crc = Crc::new();
        crc.update(sink.bytes.get(start..).unwrap_or_default());
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

/// Undoes deflate, in whichever of its two senses.
pub(super) fn deflate(input: &[u8], sink: &mut Sink) -> Ending {
    if let [first, second, ..] = input
        && first & 0x0f == 8
        && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0
    {
        let ending = run(&mut Decompress::new(true), &mut &input[..], sink);
        if ending != Ending::Corrupt || !sink.bytes.is_empty() {
            return ending;
        }
    }
    let ending = run(&mut Decompress::new(false), &mut &input[..], sink);
    if ending == Ending::Corrupt {
        // Bare deflate has no mark of its own. Text that was never coded may inflate to a few bytes before
        // it breaks, and is likelier than a bare stream damaged midway: the text is worth more.
        sink.bytes.clear();
    }
    ending
}

/// Inflates up to the stream's end.
fn run(inflate: &mut Decompress, input: &mut &[u8], sink: &mut Sink) -> Ending {
    let mut piece = [0; PIECE_BYTES];
    loop {
        let (in_before, out_before) = (inflate.total_in(), inflate.total_out());
        let result = inflate.decompress(input, &mut piece, FlushDecompress::None);
        let used = (inflate.total_in() - in_before) as usize;
        let made = (inflate.total_out() - out_before) as usize;
        *input = input.get(used..).unwrap_or_default();
        if !sink.push(piece.get(..made).unwrap_or_default()) {
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

/// Skips a member's header (RFC 1952 section 2.3).
fn skip_header(input: &mut &[u8]) -> Result<(), Ending> {
    const MAGIC: &[u8] = &[0x1f, 0x8b, 8];
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
