//! Facts in words for people and files.

use ringcrawl_base::time::{Duration, UnixTime};
use ringcrawl_config::Politeness;

/// `1 second`, `100 milliseconds`, `90 minutes`: the largest unit that makes it a whole number.
pub(super) fn duration(duration: Duration) -> String {
    let millis = duration.as_millis();
    let units = [(3_600_000, "hour"), (60_000, "minute"), (1_000, "second")];
    let (size, unit) =
        units.into_iter().find(|(size, _)| millis > 0 && millis.is_multiple_of(*size)).unwrap_or((1, "millisecond"));
    let count = millis / size;
    format!("{count} {unit}{}", if count == 1 { "" } else { "s" })
}

/// What owners of hosts agreed to beyond one request at a time with the usual delay, if anything: `up to 4 at a time,
/// and 1 second between two`.
pub(super) fn agreed(politeness: &Politeness) -> Option<String> {
    let usual = politeness.host_delay;
    let (at_once, delay) = politeness.host.laxer_than(usual)?;
    let at_once = Some(format!("up to {at_once} at a time")).filter(|_| at_once > 1);
    let delay = Some(format!("{} between two", duration(delay))).filter(|_| delay < usual);
    Some(at_once.into_iter().chain(delay).collect::<Vec<_>>().join(", and "))
}

/// `2026-11-26T10:00:00Z`.
pub(super) fn second(time: UnixTime) -> String {
    let (year, month, day, hour, minute, second, _) = time.civil();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Text in an HTML document, also in an attribute between quotes.
pub(super) fn html(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            _ => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        for (millis, text) in [
            (0, "0 milliseconds"),
            (1, "1 millisecond"),
            (1_000, "1 second"),
            (1_500, "1500 milliseconds"),
            (90_000, "90 seconds"),
            (60_000, "1 minute"),
            (86_400_000, "24 hours"),
        ] {
            assert_eq!(duration(Duration::from_millis(millis)), text);
        }
        assert_eq!(second(UnixTime::from_micros(1_795_250_432_900_000)), "2026-11-21T08:40:32Z");
        assert_eq!(html("<a b='\"'>&"), "&lt;a b=&#39;&quot;&#39;&gt;&amp;");
    }
}
