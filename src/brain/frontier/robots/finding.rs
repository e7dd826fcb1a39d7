//! What a fetched robots.txt, or its absence, means for its origin.
//!
//! Decides: an unavailable robots.txt forbids everything (RFC 9309 section 2.3.1.4). The response sets how long a file
//! is valid, within `robots.ttl_min` and `robots.ttl`.
//! Invariants: what may be torn says nothing.
//! Limits: redirects of [`TARGET_BYTES_MAX`] bytes.

use super::files::Finding;
use super::message::RobotsResult;
use super::rules_cache::RulesCache;
use crate::frontier::settings::Settings;
use crate::outcome::{Fetched, Outcome};
use ringcrawl_base::time::Instant;
use ringcrawl_base::{Failure, Truncated};
use ringcrawl_robots::{self as robots, Rules};

/// What the outcome of a request says about the file, and how long that is valid; its host may be queried again at
/// `may_act`.
pub fn finding_of(
    [now, may_act]: [Instant; 2],
    outcome: &Outcome,
    rules: &mut RulesCache,
    settings: &Settings,
) -> Finding {
    let (mut retry_after, mut stated, mut is_file) = (None, None, false);
    if let Outcome::Fetched(fetched) = outcome {
        stated = fetched.fresh_for;
    }
    let result = match outcome {
        // A client that is denied access has not read what is allowed.
        Outcome::Fetched(fetched) if fetched.interstitial.is_some() => {
            RobotsResult::Unreachable(Failure::RobotsUnreachable)
        }
        Outcome::Fetched(fetched) if (300..400).contains(&fetched.status) => match &fetched.redirect {
            Some(target) if target.as_str().len() <= TARGET_BYTES_MAX => RobotsResult::Redirect(target.clone()),
            Some(_) => RobotsResult::Unreachable(Failure::RobotsUnreachable),
            // It leads nowhere: treated as no robots.txt.
            None => RobotsResult::Rules(Rules::allow_all()),
        },
        Outcome::Fetched(fetched) => match robots::meaning(fetched.status) {
            robots::Meaning::Parse if is_torn(fetched, settings.robots.body_bytes_max) => {
                RobotsResult::Unreachable(Failure::RobotsUnreachable)
            }
            robots::Meaning::Parse => match &fetched.rules {
                Some(parsed) => {
                    is_file = true;
                    RobotsResult::Rules(parsed.clone())
                }
                None => RobotsResult::Unreachable(Failure::RobotsUnreachable),
            },
            robots::Meaning::AllowAll => RobotsResult::Rules(Rules::allow_all()),
            robots::Meaning::Unreachable => {
                retry_after = fetched.retry_after;
                RobotsResult::Unreachable(Failure::RobotsServerError)
            }
        },
        // A server's TLS error persists across attempts, and means more than a missing robots.txt.
        Outcome::Failed(failure) if failure.is_of_tls() => RobotsResult::Refused(*failure),
        Outcome::Failed(Failure::ConnectRefused) => RobotsResult::Unreachable(Failure::ConnectRefused),
        Outcome::Failed(_) | Outcome::Resolved { .. } | Outcome::NoAddress { .. } => {
            RobotsResult::Unreachable(Failure::RobotsUnreachable)
        }
    };
    let until = match &result {
        RobotsResult::Rules(_) | RobotsResult::Redirect(_) => {
            let ttl = settings.robots.ttl;
            now + stated.map_or(ttl, |stated| stated.max(settings.robots.ttl_min).min(ttl))
        }
        RobotsResult::Unreachable(why) => {
            let asked = retry_after.unwrap_or_default().min(settings.politeness.retry_after_max);
            now + asked.max(settings.robots_wait(*why, 0))
        }
        // Counted from the instant at which the host can act on it: the host may rest for longer than a verdict
        // holds.
        RobotsResult::Refused(_) => may_act + settings.robots.ttl,
    };
    let keep = |parsed| if is_file { rules.keep(parsed) } else { rules.allow_all() };
    (result.map(keep), until)
}

/// Whether rules may be missing at the end, such as a rule that forbids everything: then nothing is known.
fn is_torn(fetched: &Fetched, bytes_max: usize) -> bool {
    match fetched.truncated {
        None => false,
        Some(Truncated::Length) => fetched.body_bytes < bytes_max as u64,
        Some(Truncated::Time | Truncated::Disconnect | Truncated::Unspecified) => true,
    }
}

/// A redirect to a longer URL is not followed, and nothing is known.
const TARGET_BYTES_MAX: usize = 512;
