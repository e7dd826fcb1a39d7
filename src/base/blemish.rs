//! What can be wrong with a response that is kept.
//!
//! Decides: the list is closed, so that counters, records and summaries have a place for each entry.

macro_rules! blemishes {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// What can be wrong with a response that is kept. Closed: a new way is a new line here.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Blemish { $($(#[$doc])* $name,)* }

        impl Blemish {
            /// All of them, in order; `ALL[b as usize] == b`.
            pub const ALL: &'static [Blemish] = &[$(Blemish::$name,)*];

            /// The name in summaries and metrics.
            pub const fn as_str(self) -> &'static str {
                match self { $(Blemish::$name => $text,)* }
            }
        }
    };
}

blemishes! {
    /// The connection was reset, or broke in TLS, before the body's end.
    BodyReset = "body-reset";
    /// The peer closed before the announced end of the body.
    BodyShort = "body-short";
    /// The deadline passed before the body's end.
    BodyTimeout = "body-timeout";
    /// The body came more slowly than `fetch.rate_min` and was cut.
    BodySlow = "body-slow";
    /// There was no memory for more of the body (`crawl.ram_bytes_max`), and it was the longest in flight.
    BodyCrowdedOut = "body-crowded-out";
    /// More bytes came than Content-Length or the last chunk announced.
    BodyExcess = "body-excess";
    /// A length above the limit was announced; the body was cut there.
    LengthOverLimit = "length-over-limit";
    /// A body of unannounced length passed the limit and was cut there.
    BodyOverLimit = "body-over-limit";
    /// The body exceeded the limit during content decoding, and was cut there.
    DecodedOverLimit = "decoded-over-limit";
    /// Content decoding made more than `fetch.decode_ratio_max` times the bytes, and was cut there.
    DecodedOverRatio = "decoded-over-ratio";
    /// The chunked framing broke midway.
    ChunkBroken = "chunk-broken";
    /// The content coding is unknown, broken, or ended early.
    CodingBroken = "coding-broken";
    /// Content-Type claims HTML for a body that is not HTML, or another type for one that is.
    TypeMismatch = "type-mismatch";
    /// A redirect to the requested URL itself.
    RedirectToItself = "redirect-to-itself";
    /// 429 or 503: the server asks for a pause.
    Overloaded = "overloaded";
    /// 402: the page requires payment.
    PaymentRequired = "payment-required";
    /// A challenge in place of a page: the server blocks crawlers.
    Challenge = "challenge";
    /// The certificate was not acceptable; `tls.certificates = "record"` took it.
    Certificate = "certificate";
    /// robots.txt is longer than the part that is read.
    RobotsOverLimit = "robots-over-limit";
    /// Content-Length is not a number; the body was read up to the end of the connection.
    LengthInvalid = "length-invalid";
    /// The status line has another version than HTTP/1.0 to 1.9, such as `HTTP/1`.
    VersionOdd = "version-odd";
    /// The body is in fewer content codings than it names; the actual ones were decoded.
    CodingMislabelled = "coding-mislabelled";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_indexed_by_its_numbers() {
        for (index, blemish) in Blemish::ALL.iter().enumerate() {
            assert_eq!(*blemish as usize, index);
            assert!(!blemish.as_str().is_empty());
        }
    }
}
