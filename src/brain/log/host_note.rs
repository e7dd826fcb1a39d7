//! What the log of ends says about a host: what it asks for, its health, and its latest troubles.
//!
//! Decides: the last note on a host holds, as a whole. A note for the host without a name is the crawl's own: what
//! makes all fetching wait. An odd port that asks for a rest of its own has a note of its own, under
//! `http://name:port`.
//! Formats: with numbers as in [`super::number`], of the last part of a payload: delay in force and mean time of a
//! response in milliseconds; troubles (count), each as: 0 a name, 1 robots.txt, 2 a page; 0 or twice the port, with
//! one more for https, and one more; the status of a response, or 0 and the failure's name; the detail; tries; how
//! many there are; when, in seconds since 1970; 0, or in how many seconds the next try is, and one more.
//! Limits: at most [`TROUBLES_MAX`] troubles of a host are written.

use super::ends::{End, put_text, take_text};
use super::number;
use crate::job::JobKind;
use crate::trouble::{Cause, HostHealth, Trouble};
use ringcrawl_base::Failure;
use ringcrawl_base::time::Duration;
use ringcrawl_url::{Scheme, Url};

/// What a host has asked for, or brought upon itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostNote {
    /// Its name, or that of one of its origins; empty: the crawl's own note.
    pub host: Box<str>,
    /// The time between two requests that its robots.txt asks for.
    pub delay: Duration,
    /// Until when it rests, in seconds since 1970.
    pub until_seconds: u64,
    /// How long it was to rest when that was noted, in seconds: a clock that was set back since does not prolong it.
    /// [`HostNote::UNTOLD`] if an older version has not written it.
    pub lasts_seconds: u64,
    /// Its health; nothing is known if an older version has written it.
    pub health: HostHealth,
}

impl HostNote {
    /// The duration is unknown.
    pub const UNTOLD: u64 = u64::MAX;

    /// For how many seconds it still rests when the clock says `seconds`.
    pub fn left(&self, seconds: u64) -> u64 {
        self.until_seconds.saturating_sub(seconds).min(self.lasts_seconds)
    }

    /// The origin, if the note is for one alone.
    pub fn origin(&self) -> Option<Url> {
        if self.host.contains("://") { Url::parse(&self.host).ok() } else { None }
    }

    /// The approximate size before compression.
    pub fn bytes(&self) -> usize {
        let of_trouble = |trouble: &Trouble| TROUBLE_BYTES + trouble.detail.len();
        End::BYTES + self.host.len() + self.health.troubles.iter().map(of_trouble).sum::<usize>()
    }

    pub(super) fn put_health(&self, out: &mut Vec<u8>) {
        let HostHealth { delay, response, troubles } = &self.health;
        number::put(out, delay.as_millis() as u64);
        number::put(out, response.as_millis() as u64);
        let troubles = troubles.get(..TROUBLES_MAX).unwrap_or(troubles);
        number::put(out, troubles.len() as u64);
        for trouble in troubles {
            put_trouble(out, trouble);
        }
    }

    pub(super) fn take_health(&mut self, bytes: &mut &[u8]) -> Option<()> {
        self.health.delay = Duration::from_millis(number::take(bytes)?);
        self.health.response = Duration::from_millis(number::take(bytes)?);
        let count = number::take(bytes)?;
        if count > TROUBLES_MAX as u64 {
            return None;
        }
        for _ in 0..count {
            self.health.troubles.push(take_trouble(bytes)?);
        }
        Some(())
    }
}

fn put_trouble(out: &mut Vec<u8>, trouble: &Trouble) {
    let Trouble { asked, origin, cause, detail, tries, tries_max, seconds, again } = trouble;
    number::put(out, ASKED.iter().position(|kind| kind == asked).unwrap_or_default() as u64);
    let place = |(scheme, port): (Scheme, u16)| 1 + 2 * u64::from(port) + u64::from(scheme == Scheme::Https);
    number::put(out, origin.map_or(0, place));
    match cause {
        Cause::Status(status) => number::put(out, u64::from(*status)),
        Cause::Failure(failure) => {
            number::put(out, 0);
            put_text(out, failure.as_str());
        }
    }
    put_text(out, detail);
    number::put(out, u64::from(*tries));
    number::put(out, u64::from(*tries_max));
    number::put(out, *seconds);
    number::put(out, again.map_or(0, |again| again.saturating_add(1)));
}

fn take_trouble(bytes: &mut &[u8]) -> Option<Trouble> {
    let asked = *ASKED.get(usize::try_from(number::take(bytes)?).ok()?)?;
    let origin = match number::take(bytes)?.checked_sub(1) {
        None => None,
        Some(place) => {
            let scheme = if place & 1 == 1 { Scheme::Https } else { Scheme::Http };
            Some((scheme, u16::try_from(place >> 1).ok()?))
        }
    };
    let cause = match number::take(bytes)? {
        0 => {
            let name = take_text(bytes)?;
            Cause::Failure(*Failure::ALL.iter().find(|failure| failure.as_str() == name)?)
        }
        status => Cause::Status(u16::try_from(status).ok()?),
    };
    let detail = take_text(bytes)?.into();
    let [tries, tries_max] = [number::take(bytes)?, number::take(bytes)?];
    let (seconds, again) = (number::take(bytes)?, number::take(bytes)?.checked_sub(1));
    let (tries, tries_max) = (u8::try_from(tries).ok()?, u8::try_from(tries_max).ok()?);
    Some(Trouble { asked, origin, cause, detail, tries, tries_max, seconds, again })
}

const ASKED: [JobKind; 3] = [JobKind::Resolve, JobKind::Robots, JobKind::Page];
/// The name, two usual origins, and some odd ports.
const TROUBLES_MAX: usize = 8;
/// The approximate size of one without its detail.
const TROUBLE_BYTES: usize = 32;
