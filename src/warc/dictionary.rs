//! Dictionaries: what a shard's records have in common, so that short pages take less space.
//!
//! Decides: a dictionary is trained from the first [`SAMPLES_BYTES_MAX`] bytes of a segment's records. The next
//! segment uses it if it makes the last of these records, which are held out from training, shorter by
//! [`GAIN_PARTS`]; otherwise the previous one stays. It is in the segment's first frame (IIPC "Zstandard Compression
//! for WARC Files" 1.0, section "Dictionary frame format").
//! Invariants: pure; the same records give the same dictionary.
//! Limits: a training takes 14 ms, and the first one 36 to 40, as its tables are touched for the first time. That is
//! too long for a shard's turn, so the hands run it in parallel with the shard.

use std::sync::Arc;

use zstd::zstd_safe::{CCtx, CParameter};

/// A dictionary in the format of RFC 8878 section 5.
#[derive(Clone, PartialEq, Eq)]
pub struct Dictionary(Vec<u8>);

impl std::fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Dictionary").field(&self.0.len()).finish()
    }
}

impl Dictionary {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Adds the frame with which a segment begins.
    pub fn write_frame(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&FRAME_MAGIC);
        out.extend_from_slice(&(self.0.len() as u32).to_le_bytes());
        out.extend_from_slice(&self.0);
    }
}

/// Records to train a dictionary from.
#[derive(Debug)]
pub struct Samples {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
    /// Bytes needed.
    bytes_max: usize,
}

impl Samples {
    /// No samples yet, for segments of `segment_bytes_max` bytes.
    pub fn new(segment_bytes_max: u64) -> Samples {
        let bytes_max = usize::try_from(segment_bytes_max / SEGMENT_PARTS).unwrap_or(usize::MAX).min(SAMPLES_BYTES_MAX);
        Samples { bytes: Vec::new(), lengths: Vec::new(), bytes_max }
    }

    /// Adds the beginning of a record, unless there are enough samples.
    pub fn add(&mut self, parts: &[&[u8]]) {
        if self.are_enough() {
            return;
        }
        let start = self.bytes.len();
        for part in parts {
            let room = SAMPLE_BYTES_MAX - (self.bytes.len() - start);
            self.bytes.extend_from_slice(part.get(..room).unwrap_or(part));
        }
        self.lengths.push(self.bytes.len() - start);
    }

    /// Whether a dictionary can be trained.
    pub fn are_enough(&self) -> bool {
        self.bytes.len() >= self.bytes_max
    }

    /// The dictionary trained from them for `level`, if it is better than `before`.
    fn train(&self, level: i32, before: Option<&Dictionary>) -> Option<Dictionary> {
        let learned = self.lengths.len() - self.lengths.len() / TEST_PARTS;
        let (lengths, held_out) = self.lengths.split_at_checked(learned)?;
        let (bytes, rest) = self.bytes.split_at_checked(lengths.iter().sum())?;
        let trained = Dictionary(zstd::dict::from_continuous(bytes, lengths, self.bytes_max / SAMPLES_PARTS).ok()?);
        let [with, without] = [Some(&trained), before].map(|dictionary| compressed(rest, held_out, level, dictionary));
        let (with, without) = (with?, without?);
        (with + without / GAIN_PARTS <= without).then_some(trained)
    }
}

/// A dictionary to be trained.
#[derive(Debug)]
pub struct Training {
    /// From these samples.
    pub(super) samples: Samples,
    /// For records that are compressed at this level.
    pub(super) level: i32,
    /// It must be better than this.
    pub(super) before: Option<Arc<Dictionary>>,
}

impl Training {
    /// Memory of the records that a dictionary is trained from, tables of the training, and those of two dictionaries.
    pub const MEMORY_BYTES: u64 = 16 << 20;

    /// Trains it; `None`: it would not pay.
    pub fn train(&self) -> Option<Dictionary> {
        self.samples.train(self.level, self.before.as_deref())
    }
}

/// The total bytes of the records in `bytes`, each compressed by itself.
fn compressed(mut bytes: &[u8], lengths: &[usize], level: i32, dictionary: Option<&Dictionary>) -> Option<usize> {
    let mut context = CCtx::try_create()?;
    context.set_parameter(CParameter::CompressionLevel(level)).ok()?;
    context.load_dictionary(dictionary.map_or(&[], |dictionary| dictionary.bytes())).ok()?;
    let mut out = Vec::with_capacity(zstd::zstd_safe::compress_bound(SAMPLE_BYTES_MAX));
    let mut total = 0;
    for length in lengths {
        let (record, rest) = bytes.split_at_checked(*length)?;
        bytes = rest;
        out.clear();
        total += context.compress2(&mut out, record).ok()?;
    }
    Some(total)
}

/// The magic number of a dictionary's frame: 0x184D2A5D.
pub const FRAME_MAGIC: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];
/// Bytes of records needed.
const SAMPLES_BYTES_MAX: usize = 256 << 10;
/// Bytes taken from one record: longer ones gain little.
const SAMPLE_BYTES_MAX: usize = 16 << 10;
/// A short segment provides fewer: its length divided by this.
const SEGMENT_PARTS: u64 = 4;
/// A dictionary's length is that of the samples divided by this: 32 KiB at most.
const SAMPLES_PARTS: usize = 8;
/// One in this many samples is held out to test the dictionary.
const TEST_PARTS: usize = 5;
/// A dictionary must save one part in this many to replace another, or to be used at all.
const GAIN_PARTS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::Rng;

    fn samples(rng: &mut Rng, common: &str) -> Samples {
        let mut samples = Samples::new(1 << 30);
        while !samples.are_enough() {
            let (own, more) = (rng.bytes(300), rng.below(500) as usize);
            let common = common.repeat(3);
            samples.add(&[b"WARC/1.1\r\nWARC-Type: response\r\n", common.as_bytes(), &own, &common.as_bytes()[..more]]);
        }
        samples
    }

    const COMMON: &str = "Content-Type: application/http;msgtype=response\r\nServer: some server\r\n<!DOCTYPE html><html><head>\
                          <meta charset=utf-8><meta name=viewport content=width=device-width><link rel=stylesheet href=/s.css>";

    #[test]
    fn what_records_have_in_common_is_learned_once() {
        let samples = samples(&mut Rng::new(1), COMMON);
        let dictionary = samples.train(1, None).expect("it pays");
        assert!(
            dictionary.bytes().len() <= SAMPLES_BYTES_MAX / SAMPLES_PARTS
                && samples.bytes.len() < SAMPLES_BYTES_MAX + SAMPLE_BYTES_MAX
        );
        assert_eq!(samples.train(1, None), Some(dictionary.clone()));
        assert_eq!(samples.train(1, Some(&dictionary)), None, "the one before is as good");
        let mut frame = Vec::new();
        dictionary.write_frame(&mut frame);
        assert_eq!(frame.len(), dictionary.bytes().len() + 8);
    }

    #[test]
    fn where_nothing_is_common_there_is_none() {
        let mut samples = Samples::new(1 << 30);
        assert_eq!(samples.train(1, None), None, "there are no samples");
        let mut rng = Rng::new(2);
        while !samples.are_enough() {
            samples.add(&[&rng.bytes(3_000)]);
        }
        assert_eq!(samples.train(1, None), None);
    }

    #[test]
    fn short_segments_have_short_dictionaries() {
        let mut samples = Samples::new(64 << 10);
        (0..80).for_each(|_| samples.add(&[COMMON.repeat(2).as_bytes(), b"a page"]));
        assert!(samples.are_enough() && samples.bytes.len() < (16 << 10) + 1_000);
        let dictionary = samples.train(1, None).expect("it pays");
        assert!(dictionary.bytes().len() <= 2 << 10, "{dictionary:?}");
    }
}
