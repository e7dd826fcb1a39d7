//! What shards say to each other, as bytes.
//!
//! | bytes | meaning |
//! |---|---|
//! | 1 | version of the format |
//! | 1 | kind |
//! | 8, little endian | number of the message in its lane, from 1; 0 for a bare acknowledgement |
//! | 8, little endian | number of the last message that came the other way and is accepted; it and all before it |
//! | 8, little endian | number of the batch of URLs in it, from 1; 0 where there is none |
//! | 8, little endian | number of the last batch that came the other way and is on the disk there; it and all before it |
//! | n | what it says, by its kind |
//!
//! Why numbered: the other end need not stay a thread forever. A gap or a repeat is our own bug and shows at once.
//! Message numbers start again in each run. Batch numbers continue where the run before ended, because their sender
//! keeps batches until they are on the receiver's disk.
//! Why the kind and the version: entries will say more, and a fleet is never upgraded in one moment.

/// The kind of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum MessageKind {
    /// Nothing but its acknowledgement.
    Acknowledgement = 0,
    /// URLs, as a [`ringcrawl_url::UrlBatch`].
    Urls = 1,
    /// Requests a robots.txt.
    RobotsRequest = 2,
    /// The result of such a request.
    RobotsAnswer = 3,
    /// Links from sites to others: a list of [`crate::backlinks::SiteLink`].
    SiteLinks = 4,
    /// Pages link to URLs of the receiver: a [`ringcrawl_url::UrlBatch`] of them, with the number of pages in place
    /// of the depth.
    LinkCounts = 5,
}

/// The part before the content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// What the message says.
    pub kind: MessageKind,
    /// Its number in its lane.
    pub number: u64,
    /// The last accepted message of the other direction.
    pub acknowledged: u64,
    /// The number of the batch in it; 0: none.
    pub batch: u64,
    /// The last batch of the other direction that is on disk.
    pub durable: u64,
}

impl Header {
    /// Length in bytes.
    pub const BYTES: usize = 34;

    /// The message with `content`.
    pub fn with(self, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Header::BYTES + content.len());
        bytes.extend_from_slice(&[VERSION, self.kind as u8]);
        for field in [self.number, self.acknowledged, self.batch, self.durable] {
            bytes.extend_from_slice(&field.to_le_bytes());
        }
        bytes.extend_from_slice(content);
        bytes
    }

    /// Header and content of a message; `None` if it is not one of this version.
    pub fn read(bytes: &[u8]) -> Option<(Header, &[u8])> {
        let (head, content) = bytes.split_first_chunk::<2>()?;
        let (fields, content) = content.split_first_chunk::<32>()?;
        let (fields, _) = fields.as_chunks::<8>();
        let [number, acknowledged, batch, durable] = <[[u8; 8]; 4]>::try_from(fields).ok()?.map(u64::from_le_bytes);
        let kind = match head {
            [VERSION, 0] => MessageKind::Acknowledgement,
            [VERSION, 1] => MessageKind::Urls,
            [VERSION, 2] => MessageKind::RobotsRequest,
            [VERSION, 3] => MessageKind::RobotsAnswer,
            [VERSION, 4] => MessageKind::SiteLinks,
            [VERSION, 5] => MessageKind::LinkCounts,
            _ => return None,
        };
        Some((Header { kind, number, acknowledged, batch, durable }, content))
    }
}

/// Whether the end of a crawl waits for a message: all but bare acknowledgements.
pub fn is_counted(bytes: &[u8]) -> bool {
    Header::read(bytes).is_some_and(|(header, _)| header.kind != MessageKind::Acknowledgement)
}

const VERSION: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back_and_nothing_else() {
        for kind in [
            MessageKind::Acknowledgement,
            MessageKind::Urls,
            MessageKind::RobotsRequest,
            MessageKind::RobotsAnswer,
            MessageKind::SiteLinks,
            MessageKind::LinkCounts,
        ] {
            let header = Header { kind, number: 7, acknowledged: u64::MAX, batch: 3, durable: 1 << 40 };
            let bytes = header.with(b"content");
            assert_eq!(Header::read(&bytes), Some((header, &b"content"[..])));
            for cut in 0..Header::BYTES {
                assert_eq!(Header::read(&bytes[..cut]), None, "cut at {cut}");
            }
        }
        let mut bytes = Header { kind: MessageKind::Urls, number: 1, acknowledged: 0, batch: 1, durable: 0 }.with(b"");
        bytes[1] = 6;
        assert_eq!(Header::read(&bytes), None, "a kind of a later version");
        (bytes[0], bytes[1]) = (VERSION + 1, 1);
        assert_eq!(Header::read(&bytes), None, "a later version");
    }
}
