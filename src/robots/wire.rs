//! Rules as bytes, for another shard.
//!
//! Format: 8 bytes of Crawl-delay in nanoseconds, all ones for none; 4 bytes: the number of rules; for each rule 2
//! bytes of length and 1 byte of flags; the usage lines; then the texts of all rules, one after the other. Little
//! endian.
//! Invariants: reading preserves the order that matching relies on: heaviest first, allow before disallow.
//! Limits: sitemaps are omitted. Memory is never reserved for a count that the bytes do not support.

use super::usage::UsageLines;
use super::{Rule, Rules, second_of};
use ringcrawl_base::time::Duration;

impl Rules {
    /// The rules without their sitemaps.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(12 + 3 * self.rules.len() + self.patterns.len());
        let nanos = |delay: Duration| u64::try_from(delay.as_nanos()).unwrap_or(NO_DELAY).min(NO_DELAY - 1);
        bytes.extend(self.crawl_delay.map_or(NO_DELAY, nanos).to_le_bytes());
        bytes.extend((self.rules.len() as u32).to_le_bytes());
        for rule in &self.rules {
            bytes.extend(rule.bytes.to_le_bytes());
            bytes.push(u8::from(rule.allows) | u8::from(rule.anchored) << 1 | u8::from(rule.has_query) << 2);
        }
        match &self.usage {
            Some(usage) => usage.write(&mut bytes),
            None => UsageLines::default().write(&mut bytes),
        }
        // Each rule's text separately: it need not follow that of the previous rule.
        for rule in &self.rules {
            let start = rule.start as usize;
            bytes.extend(self.patterns.get(start..start + usize::from(rule.bytes)).unwrap_or_default());
        }
        bytes
    }

    /// Reads what [`Rules::to_bytes`] wrote; `None` when it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Rules> {
        let (delay, rest) = bytes.split_first_chunk::<8>()?;
        let (count, rest) = rest.split_first_chunk::<4>()?;
        let delay = u64::from_le_bytes(*delay);
        let heads_bytes = usize::try_from(u32::from_le_bytes(*count)).ok()?.checked_mul(3)?;
        let (heads, rest) = rest.split_at_checked(heads_bytes)?;
        let (usage, patterns) = UsageLines::read(rest)?;
        let (mut rules, mut start) = (Vec::with_capacity(heads.len() / 3), 0_u32);
        for head in heads.chunks_exact(3) {
            let [low, high, flags] = *head else { return None };
            let bytes = u16::from_le_bytes([low, high]);
            let end = start.checked_add(u32::from(bytes))?;
            let second = second_of(patterns.get(start as usize..end as usize)?);
            let (allows, anchored, has_query) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0);
            let rule = Rule { start, bytes, second, allows, anchored, has_query };
            if flags > 7 || rules.last().is_some_and(|before: &Rule| before.rank() < rule.rank()) {
                return None;
            }
            rules.push(rule);
            start = end;
        }
        (start as usize == patterns.len()).then_some(())?;
        Some(Rules {
            patterns: patterns.into(),
            rules: rules.into(),
            crawl_delay: (delay != NO_DELAY).then(|| Duration::from_nanos(delay)),
            sitemaps: Box::default(),
            usage: (!usage.is_empty()).then(|| Box::new(usage)),
        })
    }
}

impl Rule {
    /// The higher one decides.
    fn rank(&self) -> (usize, bool) {
        (usize::from(self.bytes) + usize::from(self.anchored), self.allows)
    }
}

const NO_DELAY: u64 = u64::MAX;
