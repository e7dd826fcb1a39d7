//! Records other than responses: URLs that have none, and the addresses of hosts.
//!
//! Decides: a failure is a `metadata` record of its URL. A host's addresses are a `resource` record of its `dns:` URI
//! (WARC 1.1 section 6.4.4, RFC 4501) in the form of a zone file (`text/dns`, RFC 4027; RFC 1035 section 5): the
//! answer as the crawl uses it, without aliases, with the time for which it is cached.
//! Leaves to others: what is worth a note (`shard`).

use std::io::Write as _;
use std::net::IpAddr;

use super::StoreError;
use super::capture::{CaptureWriter, Pays};
use super::record::{RecordId, write_field, write_number};
use ringcrawl_base::time::{Duration, UnixTime};
use ringcrawl_url::Url;

/// Facts of the crawl that are recorded in addition to responses.
#[derive(Clone, Copy, Debug)]
pub enum Note<'a> {
    /// A URL ended without a response.
    Failure(Failure<'a>),
    /// A name server gave a host's addresses.
    Addresses(HostAddresses<'a>),
}

/// A URL that ended without a response.
#[derive(Clone, Copy, Debug)]
pub struct Failure<'a> {
    /// The URL that was requested, or that must not be requested.
    pub url: &'a Url,
    /// The cause, as named in summaries.
    pub cause: &'a str,
    /// Number of requests tried.
    pub tries: u8,
    /// The page that first linked to it, if known.
    pub via: Option<&'a str>,
    /// Links from a seed, if known.
    pub hops: Option<u16>,
}

/// A host's addresses.
#[derive(Clone, Copy, Debug)]
pub struct HostAddresses<'a> {
    /// Its name, without a dot at the end.
    pub host: &'a str,
    /// At least one.
    pub addrs: &'a [IpAddr],
    /// How long they are used.
    pub ttl: Duration,
}

impl CaptureWriter {
    /// Adds the record of `note`, which was learned at `time`, to `out`.
    pub(super) fn write_note(
        &mut self,
        note: &Note<'_>,
        time: UnixTime,
        (id, warcinfo): (&RecordId, &RecordId),
        out: &mut Vec<u8>,
    ) -> Result<(), StoreError> {
        let (kind, uri, media_type) = match note {
            Note::Failure(failure) => {
                self.set_failure(failure);
                ("metadata", failure.url.as_str().to_owned(), "application/warc-fields")
            }
            Note::Addresses(found) => {
                self.set_addresses(found);
                ("resource", format!("dns:{}", found.host), "text/dns")
            }
        };
        self.start_head(kind, id, time);
        write_field(&mut self.head, "WARC-Warcinfo-ID", warcinfo.as_bytes());
        write_field(&mut self.head, "WARC-Target-URI", uri.as_bytes());
        write_field(&mut self.head, "Content-Type", media_type.as_bytes());
        self.put_record(&[], Pays::Always, out).map(drop)
    }

    fn set_failure(&mut self, failure: &Failure<'_>) {
        self.block.clear();
        write_field(&mut self.block, "outcome", b"failed");
        write_field(&mut self.block, "cause", failure.cause.as_bytes());
        write_number(&mut self.block, "tries", failure.tries.into());
        if let Some(via) = failure.via {
            write_field(&mut self.block, "via", via.as_bytes());
        }
        if let Some(hops) = failure.hops {
            write_number(&mut self.block, "hopsFromSeed", hops.into());
        }
    }

    fn set_addresses(&mut self, found: &HostAddresses<'_>) {
        self.block.clear();
        let seconds = found.ttl.as_secs();
        for addr in found.addrs {
            let kind = if addr.is_ipv4() { "A" } else { "AAAA" };
            // Writing to a Vec never fails.
            let _ = write!(self.block, "{}.\t{seconds}\tIN\t{kind}\t{addr}\r\n", found.host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::RecordIds;
    use crate::{Packing, read};

    fn record_of(note: Note<'_>) -> (String, String) {
        let mut writer = CaptureWriter::new(Packing { is_raw: true, ..Packing::default() }).expect("a writer");
        let (mut ids, mut out) = (RecordIds::new(1), Vec::new());
        let ids = (&ids.next_id(), &ids.next_id());
        writer.write_note(&note, UnixTime::from_micros(0), ids, &mut out).expect("a record");
        let mut reader = read::SegmentReader::new(std::io::Cursor::new(out)).expect("a segment");
        let record = reader.next_record().expect("whole").expect("a record");
        let mut block = Vec::new();
        assert!(read::read_rest(&mut reader, &mut block, 1 << 20).expect("a block"));
        let head =
            ["WARC-Type", "WARC-Target-URI", "Content-Type"].map(|name| record.head.get(name).unwrap_or_default());
        (head.join(" "), String::from_utf8(block).expect("UTF-8"))
    }

    #[test]
    fn addresses_are_a_zone_file() {
        let addrs = [IpAddr::from([192, 0, 2, 1]), IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1])];
        let ttl = Duration::from_millis(300_900);
        let (head, block) = record_of(Note::Addresses(HostAddresses { host: "www.example.com", addrs: &addrs, ttl }));
        assert_eq!(head, "resource dns:www.example.com text/dns");
        assert_eq!(
            block,
            "www.example.com.\t300\tIN\tA\t192.0.2.1\r\nwww.example.com.\t300\tIN\tAAAA\t2001:db8::1\r\n"
        );
    }

    #[test]
    fn failures_are_fields() {
        let url = Url::parse("http://a.example/").expect("a URL");
        let via = Some("http://b.example/");
        let mut failure = Failure { url: &url, cause: "dns-not-found", tries: 2, via, hops: Some(3) };
        let (head, block) = record_of(Note::Failure(failure));
        assert_eq!(head, "metadata http://a.example/ application/warc-fields");
        let way = "via: http://b.example/\r\nhopsFromSeed: 3\r\n";
        assert_eq!(block, format!("outcome: failed\r\ncause: dns-not-found\r\ntries: 2\r\n{way}"));
        (failure.via, failure.hops) = (None, None);
        assert!(record_of(Note::Failure(failure)).1.ends_with("tries: 2\r\n"));
    }
}
