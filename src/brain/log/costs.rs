//! What the URLs of an earlier run have cost, for budgets.
//!
//! Limits: eight bytes for each URL; without memory for them, costs are left out.

use super::{End, EndKind};
use crate::frontier::Cost;

/// The cost of each URL, by its last end, in eight bytes: the time, and bytes up to 2 GiB with a bit for pages.
#[derive(Debug, Default)]
pub struct Costs(Vec<[u32; 2]>);

impl Costs {
    /// A URL has ended.
    pub fn set(&mut self, end: &End) {
        let place = end.url as usize;
        // Without memory for it, the cost is left out.
        if place >= self.0.len() && self.0.try_reserve(place + 1 - self.0.len()).is_ok() {
            self.0.resize(place + 1, [0; 2]);
        }
        let Some(cost) = self.0.get_mut(place) else { return };
        let is_page = matches!(end.kind, EndKind::Fetched(200..300));
        // URLs that were never requested have no time.
        let seconds = if end.tries > 0 { u32::try_from(end.seconds).unwrap_or(u32::MAX) } else { 0 };
        let bytes = end.bytes.min(COST_BYTES_MAX) as u32;
        *cost = [seconds, bytes | if is_page { COST_IS_PAGE } else { 0 }];
    }

    /// What the URL of this number has cost, if it was requested.
    pub fn of(&self, number: u64) -> Option<Cost> {
        let [seconds, rest] = *self.0.get(number as usize)?;
        let (is_page, bytes) = (rest & COST_IS_PAGE != 0, u64::from(rest & !COST_IS_PAGE));
        (seconds > 0).then_some(Cost { is_page, bytes, seconds })
    }
}

const COST_IS_PAGE: u32 = 1 << 31;
const COST_BYTES_MAX: u64 = COST_IS_PAGE as u64 - 1;
