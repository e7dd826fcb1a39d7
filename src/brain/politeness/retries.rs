//! How often a URL is retried, and after how long, by what went wrong.
//!
//! Decides: each transient failure has a class: the name servers failed, no connection, a broken handshake, a
//! transfer that broke or took too long, a server error, and a server that gets too many requests. They pass after
//! different times: a reset is over at once, a server that is down stays so for minutes. Each class has a rule
//! (`[retry]`); `politeness` sets whatever a rule omits. Failures of our proxy have no class, and follow
//! `politeness`.
//! A URL has used up its tries when it was tried as often as the rule of its last failure allows, whatever went wrong
//! before.
//! Permanent failures are never retried, whatever the rule: in TLS a wrong name, an untrusted issuer, an expired
//! certificate, and a server with no protocol in common with us ([`Failure::is_transient`]).
//! Limits: 100 tries; a wait grows at most ten times and lasts at most a day, because a host that waits for nothing
//! else is held in memory.
//! Leaves to others: how long the host and the origin rest in the meantime ([`super::HostPace`],
//! [`super::FailureStreak`]).

use super::is_overload;
use crate::outcome::Outcome;
use ringcrawl_base::Failure;
use ringcrawl_base::time::Duration;
use ringcrawl_config::{self as config, RetryRule};

/// A failure that may pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RetryClass {
    /// The name servers failed.
    Name,
    /// There was no connection.
    Connect,
    /// The handshake broke, or took too long.
    Tls,
    /// No response, or not all of its head.
    Transfer,
    /// 500, 502 and 504.
    Server,
    /// 429 and 503.
    Overload,
    /// Our proxy, or ourselves.
    Own,
}

impl RetryClass {
    /// The class of an outcome; `None` if it succeeded or will not pass.
    pub fn of(outcome: &Outcome) -> Option<RetryClass> {
        match outcome {
            // A retry gives the same again, and the server is not overloaded.
            Outcome::Fetched(fetched) if fetched.interstitial.is_some() => None,
            Outcome::Fetched(fetched) if is_overload(fetched.status) => Some(RetryClass::Overload),
            Outcome::Fetched(fetched) if is_hiccup(fetched.status) => Some(RetryClass::Server),
            Outcome::Failed(failure) if failure.is_transient() => Some(RetryClass::of_failure(*failure)),
            Outcome::Failed(_) | Outcome::Fetched(_) | Outcome::Resolved { .. } | Outcome::NoAddress { .. } => None,
        }
    }

    fn of_failure(failure: Failure) -> RetryClass {
        match failure {
            Failure::DnsFailed | Failure::DnsTimeout => RetryClass::Name,
            failure if failure.is_of_connect() => RetryClass::Connect,
            Failure::TlsFailed | Failure::TlsTimeout => RetryClass::Tls,
            Failure::ProxyFailed | Failure::ProxyUnreachable | Failure::Aborted => RetryClass::Own,
            _ => RetryClass::Transfer,
        }
    }
}

/// The rules.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Retries {
    /// By class.
    rules: [Rule; 7],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Rule {
    tries: u8,
    delay: Duration,
    factor: u32,
    delay_max: Duration,
}

impl Retries {
    /// The configured rules.
    pub fn new(politeness: &config::Politeness, retry: &config::Retry) -> Retries {
        let rule = |rule: RetryRule| Rule {
            tries: rule.tries.unwrap_or(politeness.retries_max),
            delay: rule.delay.unwrap_or(politeness.retry_delay),
            factor: rule.factor.unwrap_or(FACTOR),
            delay_max: rule.delay_max.unwrap_or(DELAY_MAX),
        };
        let config::Retry { name, connect, tls, transfer, server, overload } = *retry;
        Retries { rules: [name, connect, tls, transfer, server, overload, RetryRule::default()].map(rule) }
    }

    /// The number of retries of one URL.
    pub fn max(&self, class: RetryClass) -> u8 {
        self.rule(class).tries
    }

    /// How long to wait after the try `attempt`, counted from 0.
    pub fn wait(&self, class: RetryClass, attempt: u8) -> Duration {
        let Rule { delay, factor, delay_max, .. } = self.rule(class);
        let times = factor.saturating_pow(u32::from(attempt.min(GROWS_MAX)));
        delay.saturating_mul(times).min(delay_max)
    }

    fn rule(&self, class: RetryClass) -> Rule {
        self.rules[class as usize]
    }
}

/// The server failed in a way that often passes.
fn is_hiccup(status: u16) -> bool {
    matches!(status, 500 | 502 | 504)
}

/// The factor between one wait and the next, unless the rule sets it.
const FACTOR: u32 = 2;
/// The longest wait, unless the rule sets it.
const DELAY_MAX: Duration = Duration::from_secs(86_400);
/// How often a wait grows.
const GROWS_MAX: u8 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Fetched, Interstitial};
    use ringcrawl_config::Config;

    #[test]
    fn a_rule_says_what_is_other_than_for_all() {
        let mut config = Config::default();
        config.politeness.retry_delay = Duration::from_secs(10);
        for (key, rule) in [
            ("retry.name", "{ factor = 1 }"),
            ("retry.connect", "{ tries = 9, delay = \"1m\", factor = 3, delay_max = \"10m\" }"),
            ("retry.tls", "{ tries = 0 }"),
            ("retry.transfer", "{ delay = \"0s\" }"),
            ("retry.overload", "{ factor = 10, delay = \"24h\" }"),
        ] {
            config.set(key, rule).expect("a rule");
        }
        let retries = Retries::new(&config.politeness, &config.retry);
        let of = |class| (retries.max(class), [0, 1, 2, 3, 200].map(|attempt| retries.wait(class, attempt).as_secs()));
        let day = 86_400;
        assert_eq!(of(RetryClass::Name), (4, [10; 5]));
        assert_eq!(of(RetryClass::Connect), (9, [60, 180, 540, 600, 600]));
        assert_eq!(of(RetryClass::Tls), (0, [10, 20, 40, 80, 10_240]));
        assert_eq!(of(RetryClass::Transfer), (4, [0; 5]));
        assert_eq!(of(RetryClass::Server), (4, [10, 20, 40, 80, 10_240]), "nothing is other");
        let (_, waits) = of(RetryClass::Overload);
        assert_eq!(waits, [day; 5], "no longer than a day");
        assert_eq!(of(RetryClass::Own), of(RetryClass::Server));
    }

    #[test]
    fn what_may_pass_is_of_a_class() {
        let status = |status, interstitial| Outcome::Fetched(Fetched { status, interstitial, ..Fetched::default() });
        for (code, class) in [
            (200, None),
            (404, None),
            (500, Some(RetryClass::Server)),
            (501, None),
            (502, Some(RetryClass::Server)),
            (503, Some(RetryClass::Overload)),
            (504, Some(RetryClass::Server)),
            (429, Some(RetryClass::Overload)),
        ] {
            assert_eq!(RetryClass::of(&status(code, None)), class, "{code}");
            assert_eq!(RetryClass::of(&status(code, Some(Interstitial::Challenge))), None);
        }
        for failure in Failure::ALL {
            let expected = match failure.as_str() {
                "dns-failed" | "dns-timeout" => Some(RetryClass::Name),
                "connect-refused" | "connect-timeout" | "connect-failed" => Some(RetryClass::Connect),
                "tls-failed" | "tls-timeout" => Some(RetryClass::Tls),
                "first-byte-timeout" | "deadline" | "hurried" | "reset" | "closed-early" => Some(RetryClass::Transfer),
                "proxy-failed" | "proxy-unreachable" | "aborted" => Some(RetryClass::Own),
                // A bad certificate, for example, is still bad an hour later.
                _ => None,
            };
            assert_eq!(RetryClass::of(&Outcome::Failed(*failure)), expected, "{}", failure.as_str());
        }
    }
}
