//! The meter: what a server sends under TLS that is not content.
//!
//! Decides: a handshake is limited to [`HANDSHAKE_BYTES_MAX`] on the wire. Everything after it that is not content,
//! such as tickets, padding and key updates, is limited to [`EXTRA_BYTES_MAX`] for as long as the connection lasts.
//! Why so: rustls takes messages of 64 KB and turns them into ten times as much when they hold certificates of a byte
//! each. It also takes tickets without end, at 0.1 s of CPU time a megabyte. The limits of chains and bodies see
//! neither.
//! Records are counted by their headers, which are in the clear. The overhead of a record in addition to its content
//! is not extra, so that records of one byte pass. Chains have 16 KiB at most (`chains`), what belongs to them 1 or 2
//! KB, tickets 0.2 to 2 KB.
//! Invariants: TLS processes no byte beyond the handshake's limit; after the handshake it processes at most one
//! record too many. A connection with half of its extra used is not used again, so a server that pads loses no page.
//! Limits: content and extra that were processed together are distinguished by their sums.

/// Bytes on the wire until the handshake is done.
pub(super) const HANDSHAKE_BYTES_MAX: usize = 24 << 10;
/// Bytes that are not content, after it.
const EXTRA_BYTES_MAX: usize = 16 << 10;
/// Type, version, length (RFC 8446 section 5.1).
const HEADER_BYTES: u8 = 5;
/// The overhead of a record in TLS 1.3: header, tag, type (RFC 8446 section 5.2).
pub(super) const RECORD_BYTES: usize = 5 + 16 + 1;
/// The same in TLS 1.2, at most: header, tag, a nonce (RFC 5288 section 3).
pub(super) const RECORD_BYTES_TLS12: usize = 5 + 16 + 8;

/// More bytes arrived than allowed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Excess;

/// What has arrived on one connection.
#[derive(Default, Debug)]
pub(super) struct Meter {
    /// Bytes of the present record's header that have arrived.
    header: u8,
    /// After its header: what is missing of the record. Before: the length, to the extent that it has arrived.
    left: u16,
    /// Bytes of the present record that have arrived.
    begun: usize,
    /// Records that arrived whole since content was last reported, and their bytes.
    records: usize,
    whole: usize,
    /// Bytes of the handshake, or after it those that were not content.
    extra: usize,
    /// The overhead of a record; `None` in the handshake.
    record_bytes: Option<usize>,
}

impl Meter {
    /// `bytes` have arrived, and TLS has not processed them yet.
    pub(super) fn came(&mut self, bytes: &[u8]) -> Result<(), Excess> {
        self.walk(bytes);
        if self.record_bytes.is_none() {
            self.extra = self.extra.saturating_add(bytes.len());
        }
        self.verdict()
    }

    /// The handshake is done, and records have `record_bytes` of overhead from here on.
    pub(super) fn opened(&mut self, record_bytes: usize) {
        if self.record_bytes.is_none() {
            (self.extra, self.records, self.whole) = (0, 0, 0);
            self.record_bytes = Some(record_bytes);
        }
    }

    /// The whole records that have arrived held `content` bytes.
    pub(super) fn held(&mut self, content: usize) -> Result<(), Excess> {
        let (records, whole) = (std::mem::take(&mut self.records), std::mem::take(&mut self.whole));
        if let Some(record_bytes) = self.record_bytes {
            let due = content.saturating_add(records.saturating_mul(record_bytes));
            self.extra = self.extra.saturating_add(whole.saturating_sub(due));
        }
        self.verdict()
    }

    /// Bytes that the handshake has brought; 0 after it.
    pub(super) fn handshake_bytes(&self) -> usize {
        if self.record_bytes.is_none() { self.extra } else { 0 }
    }

    /// Whether so much of the limit is used up that the connection should not be used again.
    pub(super) fn is_worn(&self) -> bool {
        self.extra > EXTRA_BYTES_MAX / 2
    }

    fn verdict(&self) -> Result<(), Excess> {
        let max = if self.record_bytes.is_some() { EXTRA_BYTES_MAX } else { HANDSHAKE_BYTES_MAX };
        if self.extra > max { Err(Excess) } else { Ok(()) }
    }

    /// From record to record.
    fn walk(&mut self, mut bytes: &[u8]) {
        while let Some((byte, behind)) = bytes.split_first() {
            if self.header < HEADER_BYTES {
                // The length is the header's last two bytes: what was before them is shifted out.
                self.left = self.left << 8 | u16::from(*byte);
                self.header += 1;
                self.begun += 1;
                bytes = behind;
            } else {
                let here = bytes.len().min(usize::from(self.left));
                self.left = self.left.saturating_sub(u16::try_from(here).unwrap_or(u16::MAX));
                self.begun += here;
                bytes = bytes.get(here..).unwrap_or_default();
            }
            if self.header == HEADER_BYTES && self.left == 0 {
                self.header = 0;
                self.records += 1;
                self.whole = self.whole.saturating_add(std::mem::take(&mut self.begun));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(length: usize) -> Vec<u8> {
        [&[23, 3, 3][..], &u16::try_from(length).expect("a length").to_be_bytes(), &vec![0xab; length]].concat()
    }

    fn open() -> Meter {
        let mut meter = Meter::default();
        meter.opened(RECORD_BYTES);
        meter
    }

    #[test]
    fn a_handshake_has_24_kib_however_it_comes() {
        for piece in [1, 5, 4_096, 24 << 10] {
            let (mut meter, bytes) = (Meter::default(), record(30_000));
            let came = bytes.chunks(piece).take_while(|piece| meter.came(piece).is_ok()).count();
            assert_eq!(came, (24 << 10) / piece);
        }
    }

    #[test]
    fn what_the_handshake_had_is_not_missing_behind_it() {
        let mut meter = Meter::default();
        let (flight, rest) = (record(16_000), record(8_000));
        assert_eq!(meter.came(&flight), Ok(()));
        // A record that began before the end of the handshake counts as one after it.
        assert_eq!(meter.came(&rest[..7_000]), Ok(()));
        meter.opened(RECORD_BYTES);
        assert_eq!((meter.came(&rest[7_000..]), meter.held(0)), (Ok(()), Ok(())));
        assert_eq!(meter.extra, 8_005 - RECORD_BYTES);
        // Once is enough.
        meter.opened(RECORD_BYTES);
        assert_eq!(meter.extra, 8_005 - RECORD_BYTES);
    }

    /// Records of every size, in pieces of every size: all is content, except for a record's overhead.
    #[test]
    fn content_is_free_whatever_its_records() {
        for (content, piece) in [(1, 1), (1, 4_096), (100, 3), (1_400, 4_096), (16_384, 4_096), (16_384, 60_000)] {
            let mut meter = open();
            let bytes = record(content + 17).repeat(2_000_000 / (content + 22));
            let mut passed = 0;
            for piece in bytes.chunks(piece) {
                assert_eq!(meter.came(piece), Ok(()));
                let whole = meter.records * content;
                passed += whole;
                assert_eq!(meter.held(whole), Ok(()), "{content} {piece:?}");
            }
            assert_eq!((meter.extra, meter.is_worn()), (0, false));
            assert_eq!(passed, bytes.len() / (content + 22) * content);
        }
    }

    #[test]
    fn tickets_have_16_kib_and_content_wins_none_back() {
        let mut meter = open();
        let ticket = 233;
        for number in 1.. {
            let came = meter.came(&record(ticket + 17)).and_then(|()| meter.held(0));
            assert_eq!(came.is_ok(), number * ticket <= 16 << 10, "{number}");
            assert_eq!(meter.is_worn(), number * ticket > 8 << 10, "{number}");
            if came.is_err() {
                break;
            }
            assert_eq!(meter.came(&record(1_000 + 17)).and_then(|()| meter.held(1_000)), Ok(()));
        }
        // Tickets and content that are processed together.
        let (mut meter, both) = (open(), [record(ticket + 17), record(1_017), record(0)].concat());
        let rounds = (0..1_000).take_while(|_| meter.came(&both).and_then(|()| meter.held(1_000)).is_ok()).count();
        // The empty record costs less than a record may.
        assert_eq!(rounds, (16 << 10) / (ticket - 17));
    }
}
