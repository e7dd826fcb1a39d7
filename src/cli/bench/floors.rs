//! The least that each stage of a page could cost: the reference column of the table.
//!
//! Decides: a floor is the time an isolated part took on a Sapphire Rapids core of 2026, by the bytes and links of
//! the pages seen. The parts are a minimal client that only counts bytes, bare libdeflate, the scanner and the
//! resolver by themselves, a batched and prefetched visited set, two digests, and the page cache. `docs/BENCH.md` has
//! the table and explains the remainder.
//! Limits: another machine has other floors in about the same proportion. A stage that only decides has none.

use super::figures::Seen;
use ringcrawl_base::stage::Stage;

/// Minimum microseconds that a stage takes per page; `None`: not measured.
pub fn of(stage: Stage, seen: &Seen) -> Option<f64> {
    let decoded = seen.body_bytes_mean? / 1_000.0;
    let coded = seen.coded_share?;
    let (wire, stored) = (decoded / seen.decoded_by_wire?, decoded / seen.decoded_by_stored?);
    let links = seen.links_mean?;
    Some(match stage {
        Stage::Ring => RING + RING_KB * wire,
        Stage::Decode => DECODE_KB * decoded * coded,
        Stage::Scan => SCAN_KB * decoded,
        Stage::Url => URL_LINK * links,
        Stage::Visited => VISITED_LINK * links,
        Stage::Store => DIGESTS * DIGEST_KB * wire + WRITE_KB * stored + COMPRESS_KB * decoded * (1.0 - coded),
        _ => return None,
    })
}

/// Per response, in the kernel and in a client that only counts bytes.
const RING: f64 = 8.2;
/// Per kilobyte received.
const RING_KB: f64 = 0.22;
/// libdeflate, per kilobyte of output.
const DECODE_KB: f64 = 0.46;
const SCAN_KB: f64 = 0.16;
/// Resolving and hashing a link.
const URL_LINK: f64 = 0.12;
const VISITED_LINK: f64 = 0.017;
/// Of the block and of the payload.
const DIGESTS: f64 = 2.0;
/// SHA-256.
const DIGEST_KB: f64 = 0.56;
/// To the page cache.
const WRITE_KB: f64 = 0.21;
/// zstd at level 1.
const COMPRESS_KB: f64 = 3.9;

#[cfg(test)]
mod tests {
    use super::*;

    /// As measured for isolated parts: some 28 µs for `small`, 195 to 210 for `web`.
    #[test]
    fn sums_are_those_of_the_workloads() {
        let sum = |bytes: f64, links: f64, coded: f64, by_wire: f64, by_stored: f64| {
            let seen = Seen {
                body_bytes_mean: Some(bytes),
                links_mean: Some(links),
                coded_share: Some(coded),
                decoded_by_wire: Some(by_wire),
                decoded_by_stored: Some(by_stored),
                responses_per_connection: None,
                responses_per_handshake: None,
                resumed_share: None,
                chains_recognized_share: None,
            };
            Stage::ALL.iter().filter_map(|stage| of(*stage, &seen)).sum::<f64>()
        };
        let (small, web) = (sum(3_700.0, 12.0, 0.0, 0.93, 1.6), sum(175_000.0, 164.0, 1.0, 5.0, 4.8));
        assert!((25.0..33.0).contains(&small), "{small}");
        assert!((190.0..212.0).contains(&web), "{web}");
    }
}
