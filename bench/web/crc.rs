//! CRC-32 that can be combined: the checksum of a gzip member whose parts were summed in advance.
//!
//! Decides: own tables instead of a crate, because a sum must be resumed from a state and combined by a part's
//! precomputed factor. The compression crates do not offer that, and summing every page again took half its cost.
//! Invariants: `joined(crc(a), crc(b), factor(b)) == crc(ab)`, as in zlib's crc32_combine.
//! Limits: parts below 2^32 bytes.

/// Extends the sum `state` by `bytes`; the sum of nothing is 0 (RFC 1952 section 8).
pub(super) fn extended(state: u32, bytes: &[u8]) -> u32 {
    let [t0, t1, t2, t3, t4, t5, t6, t7] = &TABLES;
    let at = |table: &[u32; 256], byte: u8| table.get(usize::from(byte)).copied().unwrap_or_default();
    let mut sum = !state;
    let (blocks, rest) = bytes.as_chunks::<8>();
    for [a, b, c, d, e, f, g, h] in blocks {
        let [s0, s1, s2, s3] = sum.to_le_bytes();
        sum = at(t7, a ^ s0)
            ^ at(t6, b ^ s1)
            ^ at(t5, c ^ s2)
            ^ at(t4, d ^ s3)
            ^ at(t3, *e)
            ^ at(t2, *f)
            ^ at(t1, *g)
            ^ at(t0, *h);
    }
    for byte in rest {
        let [low, ..] = sum.to_le_bytes();
        sum = at(t0, byte ^ low) ^ (sum >> 8);
    }
    !sum
}

/// The sum of two parts, from the sum of each and the factor of the second's length.
pub(super) fn joined(first: u32, second: u32, factor: u32) -> u32 {
    product(factor, first) ^ second
}

/// The factor that `joined` needs for a second part of `bytes` bytes: x^(8·bytes) modulo the polynomial.
pub(super) fn factor(bytes: u32) -> u32 {
    let mut power = 1 << 23;
    let mut result = 1 << 31;
    let mut left = bytes;
    while left > 0 {
        if left & 1 == 1 {
            result = product(power, result);
        }
        power = product(power, power);
        left >>= 1;
    }
    result
}

/// The polynomial of RFC 1952 section 8, bits reversed: bit 31 is x^0.
const POLYNOMIAL: u32 = 0xedb8_8320;

/// `a·b` modulo the polynomial.
fn product(a: u32, mut b: u32) -> u32 {
    let mut result = 0;
    for bit in (0..32).rev() {
        // All ones if the bit is set: without branches, which random bits would make mispredict.
        result ^= b & 0u32.wrapping_sub((a >> bit) & 1);
        b = (b >> 1) ^ (POLYNOMIAL & 0u32.wrapping_sub(b & 1));
    }
    result
}

/// Slicing by eight (Kounavis and Berry 2005): table `n` advances a byte by `n` further bytes of zeros.
static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut tables = [[0u32; 256]; 8];
    let mut byte = 0;
    while byte < 256 {
        let mut sum = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ POLYNOMIAL } else { sum >> 1 };
            bit += 1;
        }
        tables[0][byte] = sum;
        byte += 1;
    }
    let mut table = 1;
    while table < 8 {
        let mut byte = 0;
        while byte < 256 {
            let before = tables[table - 1][byte];
            tables[table][byte] = (before >> 8) ^ tables[0][(before & 255) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

#[cfg(test)]
mod tests {
    use super::super::draw::{Draw, Purpose};
    use super::*;

    #[test]
    fn agrees_with_the_compression_library() {
        assert_eq!(extended(0, b"123456789"), 0xcbf4_3926);
        let mut draw = Draw::new(8, Purpose::Pool, 0, 0);
        for _ in 0..300 {
            let bytes: Vec<u8> = (0..draw.below(3_000)).map(|_| draw.bits() as u8).collect();
            let mut library = flate2::Crc::new();
            library.update(&bytes);
            assert_eq!(extended(0, &bytes), library.sum());
            let (first, second) = bytes.split_at(draw.below(bytes.len() as u64 + 1) as usize);
            let sums = (extended(0, first), extended(0, second));
            assert_eq!(extended(sums.0, second), library.sum());
            assert_eq!(joined(sums.0, sums.1, factor(second.len() as u32)), library.sum());
        }
    }
}
