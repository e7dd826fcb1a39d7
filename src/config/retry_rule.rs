//! How often and when one class of failures is retried: `{ tries = 6, delay = "1m", factor = 2, delay_max = "1h" }`.
//!
//! Decides: an omitted value is as for all classes: `politeness.retries_max` and `retry_delay`, doubled each time. So
//! a table needs only the values that differ.
//! Leaves to others: the class of each failure (`politeness::Retries`).

use toml_edit::Item;

use super::kind::{Kind, ValueFault, describe, quote, quote_all, time};
use super::nearest::nearest;
use super::unit::format_duration;
use super::value::{Field, Value};
use ringcrawl_base::time::Duration;

/// The keys of a table.
const KEYS: [(&str, Kind); 4] = [
    ("tries", Kind::Number(0, 100)),
    ("delay", time("0s", "24h")),
    ("factor", Kind::Number(1, 10)),
    ("delay_max", time("0s", "24h")),
];

pub(super) const EXPECTED: &str = "a table with any of tries (0 to 100), delay, factor (1 to 10) and delay_max, such as \
    { tries = 2, delay = \"1m\" }";

/// The values that differ from those for all classes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RetryRule {
    /// Retries of one URL.
    pub tries: Option<u8>,
    /// Before the first.
    pub delay: Option<Duration>,
    /// Each further delay is this many times as long.
    pub factor: Option<u32>,
    /// The longest delay.
    pub delay_max: Option<Duration>,
}

impl RetryRule {
    /// As the file has it.
    pub(super) fn format(self) -> String {
        let time =
            |name, time: Option<Duration>| time.map(|time| format!("{name} = {}", quote_all(&format_duration(time))));
        let parts = [
            self.tries.map(|tries| format!("tries = {tries}")),
            time("delay", self.delay),
            self.factor.map(|factor| format!("factor = {factor}")),
            time("delay_max", self.delay_max),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "{}".to_owned() } else { format!("{{ {} }}", parts.join(", ")) }
    }
}

impl Field for RetryRule {
    fn from_value(value: Value) -> Option<RetryRule> {
        if let Value::Retry(rule) = value { Some(rule) } else { None }
    }

    fn to_value(&self) -> Value {
        Value::Retry(*self)
    }
}

/// Reads a table.
pub(super) fn read(item: &Item) -> Result<RetryRule, Vec<ValueFault>> {
    let mut faults = Vec::new();
    let mut blame = |span, message: String| faults.push(ValueFault { span, name: None, message });
    let mut rule = RetryRule::default();
    let Some(table) = item.as_table_like() else {
        blame(item.span(), format!("{}; expected {EXPECTED}", describe(item)));
        return Err(faults);
    };
    for (key, item) in table.iter() {
        let at = table.get_key_value(key).and_then(|(key, _)| key.span());
        let Some((_, kind)) = KEYS.iter().find(|(known, _)| *known == key) else {
            let near = nearest(key, KEYS.iter().map(|(known, _)| *known));
            let guess = near.map(|near| format!(" (did you mean \"{near}\"?)")).unwrap_or_default();
            blame(at, format!("unknown key {}{guess}; expected tries, delay, factor or delay_max", quote(key)));
            continue;
        };
        match (key, kind.read(item)) {
            (_, Err(wrong)) => wrong.into_iter().for_each(|fault| {
                blame(fault.span.or_else(|| at.clone()), format!("{key}: {}", fault.message));
            }),
            ("tries", Ok(Value::Number(number))) => rule.tries = u8::try_from(number).ok(),
            ("delay", Ok(Value::Time(delay))) => rule.delay = Some(delay),
            ("factor", Ok(Value::Number(number))) => rule.factor = u32::try_from(number).ok(),
            ("delay_max", Ok(Value::Time(delay))) => rule.delay_max = Some(delay),
            (_, Ok(_)) => blame(at, format!("{key}: another kind of value; expected {}", kind.expected())),
        }
    }
    if faults.is_empty() { Ok(rule) } else { Err(faults) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn a_table_says_what_is_other() {
        let text = "[retry]\nconnect = { tries = 2, delay = \"1m\" }\n[retry.name]\nfactor = 1\ndelay_max = \"5s\"\n";
        let config = Config::parse(text, "f").expect("right");
        let minute = Some(Duration::from_secs(60));
        assert_eq!(config.retry.connect, RetryRule { tries: Some(2), delay: minute, ..RetryRule::default() });
        let seconds = Some(Duration::from_secs(5));
        assert_eq!(config.retry.name, RetryRule { factor: Some(1), delay_max: seconds, ..RetryRule::default() });
        assert_eq!(config.retry.tls, RetryRule::default());
        assert_eq!(Config::parse(&config.to_toml(), "again"), Ok(config));
    }

    #[test]
    fn mistakes_name_line_and_what_was_expected() {
        for (text, expected) in [
            ("tls = 1", "f:2: retry.tls: the number 1; expected a table with any of tries"),
            (
                "tls = { tries = 101 }",
                "f:2: retry.tls: tries: 101 is out of range; expected a whole number from 0 to 100",
            ),
            ("[retry.tls]\ndelay = 5", "f:3: retry.tls: delay: the number 5 without a unit; expected a duration"),
            (
                "tls = { tris = 1 }",
                "f:2: retry.tls: unknown key \"tris\" (did you mean \"tries\"?); expected tries, delay",
            ),
            ("dns = {}", "f:2: retry.dns: unknown key"),
        ] {
            let errors = Config::parse(&format!("[retry]\n{text}\n"), "f").expect_err(text);
            assert!(errors.len() == 1 && errors[0].to_string().contains(expected), "{text}: {errors:?}");
        }
    }
}
