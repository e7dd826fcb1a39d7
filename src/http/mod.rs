//! HTTP/1.1 as a client speaks it, without a socket: bytes in, facts out.

/// Limits on one response.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of status line and header fields together.
    pub header_bytes_max: usize,
    /// Number of header fields.
    pub header_count_max: usize,
    /// Bytes of the body after transfer decoding, before content decoding.
    pub body_wire_bytes_max: usize,
    /// Bytes of the body after content decoding.
    pub body_bytes_max: usize,
}
