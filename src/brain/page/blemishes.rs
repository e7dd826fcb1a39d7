//! Defects of a response that is kept all the same.
//!
//! Decides: which [`Blemish`]es it has. Each is counted once per response, and a consequence of another is not
//! counted as well.

use super::Page;
use crate::job::JobKind;
use crate::outcome::Interstitial;
use crate::stats::Totals;
use ringcrawl_base::{Blemish, Truncated};
use ringcrawl_html as html;
use ringcrawl_http::{CodingProblem, Framing};

impl Page<'_> {
    pub(super) fn count_blemishes(&self, robots_bytes_max: usize, stats: &mut Totals) {
        let Page { job, transaction, decoded, fetched, .. } = self;
        let is_page = job.kind == JobKind::Page;
        let ok = (200..300).contains(&fetched.status);
        let is_long_robots = !is_page && ok && fetched.body_bytes > robots_bytes_max as u64;
        let (cut, coding) = match self.cut() {
            // The rest of the robots.txt is not wanted.
            None | Some(Blemish::LengthOverLimit | Blemish::BodyOverLimit) if is_long_robots => (None, None),
            cut => (cut, self.coding(cut)),
        };
        let others = [
            (transaction.excess, Blemish::BodyExcess),
            (is_page && ok && html::is_misnamed(self.content_type.as_deref(), &decoded.bytes), Blemish::TypeMismatch),
            (is_page && fetched.redirect.as_ref() == Some(&job.url), Blemish::RedirectToItself),
            (matches!(fetched.status, 429 | 503) && fetched.interstitial.is_none(), Blemish::Overloaded),
            (fetched.interstitial == Some(Interstitial::Payment), Blemish::PaymentRequired),
            (fetched.interstitial == Some(Interstitial::Challenge), Blemish::Challenge),
            (transaction.tls.as_ref().is_some_and(|tls| tls.certificate_error.is_some()), Blemish::Certificate),
            (is_long_robots, Blemish::RobotsOverLimit),
            (transaction.response.has_bad_length, Blemish::LengthInvalid),
            (transaction.response.has_odd_version, Blemish::VersionOdd),
        ];
        let others = others.into_iter().filter(|(is_so, _)| *is_so).map(|(_, blemish)| blemish);
        cut.into_iter().chain(coding).chain(others).for_each(|blemish| stats.blemish(blemish));
    }

    /// Why the body is not everything the server had to say.
    fn cut(&self) -> Option<Blemish> {
        let transaction = self.transaction;
        Some(match transaction.response.truncated? {
            Truncated::Time if transaction.slow => Blemish::BodySlow,
            Truncated::Time => Blemish::BodyTimeout,
            Truncated::Disconnect if transaction.reset => Blemish::BodyReset,
            Truncated::Disconnect => Blemish::BodyShort,
            Truncated::Length if transaction.crowded_out => Blemish::BodyCrowdedOut,
            Truncated::Length if transaction.response.framing == Framing::Length => Blemish::LengthOverLimit,
            Truncated::Length => Blemish::BodyOverLimit,
            Truncated::Unspecified => Blemish::ChunkBroken,
        })
    }

    /// The defect in the content coding of a body; `cut` is the defect of its transfer.
    fn coding(&self, cut: Option<Blemish>) -> Option<Blemish> {
        match (&self.decoded.problem, self.decoded.truncated) {
            (Some(CodingProblem::OverRatio), _) => Some(Blemish::DecodedOverRatio),
            (Some(CodingProblem::TooLarge), _) if self.decoded.coding.is_some() => Some(Blemish::DecodedOverLimit),
            // Uncoded content has two limits; it is cut at the lower one, and counted once.
            (Some(CodingProblem::TooLarge), _) => cut.is_none().then_some(Blemish::BodyOverLimit),
            (Some(CodingProblem::Mislabelled), None) => Some(Blemish::CodingMislabelled),
            (Some(_), _) => Some(Blemish::CodingBroken),
            // A body cut on the wire ends early in its coding, too.
            (None, Some(_)) if cut.is_none() => Some(Blemish::CodingBroken),
            (None, _) => None,
        }
    }
}
