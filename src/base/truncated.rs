//! Why a stored body is incomplete, in the words of WARC.

/// Why a body is incomplete: the words of WARC-Truncated (WARC 1.1 section 5.13).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Truncated {
    /// Our limit on size.
    Length,
    /// Our limit on time.
    Time,
    /// The peer closed or reset before the end.
    Disconnect,
    /// Framing or content coding broke midway; the bytes before that are kept.
    Unspecified,
}

impl Truncated {
    /// The token that WARC-Truncated carries.
    pub const fn as_str(self) -> &'static str {
        match self {
            Truncated::Length => "length",
            Truncated::Time => "time",
            Truncated::Disconnect => "disconnect",
            Truncated::Unspecified => "unspecified",
        }
    }
}
