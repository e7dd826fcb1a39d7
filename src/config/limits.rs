//! Limits as the crates have them that know no configuration.

use super::{Fetch, Http, Robots};
use ringcrawl_http::{CookieLimits, Limits};

impl Fetch {
    /// Of a response.
    pub fn limits(&self) -> Limits {
        Limits {
            header_bytes_max: self.header_bytes_max,
            header_count_max: self.header_count_max,
            body_wire_bytes_max: self.body_wire_bytes_max,
            body_bytes_max: self.body_bytes_max,
            decode_ratio_max: self.decode_ratio_max,
            interim_count_max: self.interim_count_max,
        }
    }

    /// Of a robots.txt, of which no more is read than counts, and one byte that says whether there is more. On the wire an
    /// eighth more, for a coding that makes a body longer.
    pub fn limits_of_robots(&self, robots: &Robots) -> Limits {
        let (bytes_max, limits) = (robots.body_bytes_max, self.limits());
        Limits {
            body_wire_bytes_max: limits.body_wire_bytes_max.min(bytes_max + bytes_max / 8),
            body_bytes_max: limits.body_bytes_max.min(bytes_max + 1),
            ..limits
        }
    }
}

impl Http {
    /// Of the cookies of a shard.
    pub fn cookie_limits(&self) -> CookieLimits {
        CookieLimits {
            site_count_max: self.cookie_count_max,
            bytes_max: self.cookie_bytes_max,
            ram_bytes_max: self.cookie_ram_bytes_max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_the_same() {
        assert_eq!(Fetch::default().limits(), Limits::default());
    }
}
