//! Ports of other protocols, which no browser sends an HTTP request to.
//!
//! Decides: the list of the Fetch standard, section "port blocking". A link may name any port of any machine; what an
//! HTTP request says is a command to some of those servers, as to one of mail or chat.

/// In ascending order.
const BAD_PORTS: [u16; 83] = [
    0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109,
    110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531,
    532, 540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060,
    5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080,
];

/// Whether `port` belongs to another protocol.
#[inline]
pub fn is_bad_port(port: u16) -> bool {
    !matches!(port, 80 | 443) && BAD_PORTS.binary_search(&port).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_of_mail_and_none_of_the_web() {
        assert!(BAD_PORTS.is_sorted());
        assert!(BAD_PORTS.iter().all(|port| is_bad_port(*port)));
        assert!([80, 443, 8_080, 8_443, 81, 3_000, 65_535].iter().all(|port| !is_bad_port(*port)));
    }
}
