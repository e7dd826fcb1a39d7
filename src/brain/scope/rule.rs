//! One line of a file of rules: `deny fetch,follow host=forum.example.org depth>3`.
//!
//! Decides: a line has `allow` or `deny`, the stages it is for (`schedule` if none is named), and conditions, which
//! must all hold. A word that begins with `#` begins a comment.
//! Invariants: no rule uses at a stage what is not known there.

use std::fmt;

use super::condition::{Condition, EMBED};
use super::subject::Subject;
use ringcrawl_base::fuel::Fuel;
use ringcrawl_config::nearest;

/// When a URL is judged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// It was found: is it queued?
    Schedule,
    /// Its turn has come: is it requested?
    Fetch,
    /// Its response has come: are the links in it taken?
    Follow,
    /// Its response has come: is it stored?
    Store,
}

impl Stage {
    /// All stages, in the order in which a URL meets them.
    pub const ALL: [Stage; 4] = [Stage::Schedule, Stage::Fetch, Stage::Follow, Stage::Store];

    /// Its name in rules.
    pub const fn as_str(self) -> &'static str {
        match self {
            Stage::Schedule => "schedule",
            Stage::Fetch => "fetch",
            Stage::Follow => "follow",
            Stage::Store => "store",
        }
    }

    /// The stage of this name.
    pub fn named(name: &str) -> Option<Stage> {
        Stage::ALL.into_iter().find(|stage| stage.as_str() == name)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Whether the response is known.
    const fn has_response(self) -> bool {
        matches!(self, Stage::Follow | Stage::Store)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The action of a rule on what it matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// It belongs to the crawl.
    Allow,
    /// It does not.
    Deny,
}

impl Action {
    /// Its name in rules.
    pub const fn as_str(self) -> &'static str {
        match self {
            Action::Allow => "allow",
            Action::Deny => "deny",
        }
    }
}

/// A rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// What it says.
    pub action: Action,
    /// Its line in the file, from 1.
    pub line: usize,
    /// Its text, without comment.
    pub text: Box<str>,
    stages: u8,
    /// The cheapest first.
    conditions: Box<[Condition]>,
}

impl Rule {
    /// Parses line number `line`; `None` if it holds no rule. The errors are all mistakes in it.
    pub fn parse(line: usize, text: &str) -> Option<Result<Rule, Vec<String>>> {
        let words: Vec<&str> = text.split_whitespace().take_while(|word| !word.starts_with('#')).collect();
        let (first, rest) = words.split_first()?;
        let mut wrong = Vec::new();
        let action = match *first {
            "allow" => Action::Allow,
            "deny" => Action::Deny,
            other => match nearest(&other.to_ascii_lowercase(), ["allow", "deny"].into_iter()) {
                Some(guess) => {
                    let expected = "expected allow or deny at the beginning of the line";
                    wrong.push(format!("{other:?} is no rule (did you mean {guess}?); {expected}"));
                    Action::Deny
                }
                // Otherwise anyone who can replace the file by a link could read another user's secrets in the log.
                None => return Some(Err(vec![NO_RULE.to_owned()])),
            },
        };
        let (mut stages, mut conditions) = (0, Vec::new());
        for (index, word) in rest.iter().enumerate() {
            if matches!(word.to_ascii_lowercase().as_str(), "!" | "not") {
                let next = rest.get(index + 1).filter(|next| next.contains('='));
                let turned = next
                    .map_or("!host=www.example.org".to_owned(), |next| format!("!{}", next.trim_start_matches('!')));
                wrong.push(format!(
                    "{word:?} stands alone; expected \"!\" at the condition that it turns around: {turned}"
                ));
            } else if *word != EMBED && word.chars().all(|character| character.is_ascii_lowercase() || character == ',')
            {
                for name in word.split(',') {
                    match Stage::named(name) {
                        Some(stage) => stages |= stage.bit(),
                        None => wrong.push(no_stage(name)),
                    }
                }
            } else {
                match Condition::parse(word) {
                    Ok(condition) => conditions.push(condition),
                    Err(why) => wrong.push(why),
                }
            }
        }
        if stages == 0 {
            stages = Stage::Schedule.bit();
        }
        let is_early = Stage::ALL.into_iter().any(|stage| stages & stage.bit() != 0 && !stage.has_response());
        if let Some(late) = conditions.iter().find(|condition| is_early && condition.is_of_response()) {
            let late = late.as_str();
            wrong.push(format!("{late} is known only when the response is there; expected the stages follow or store"));
        }
        conditions.sort_by_key(Condition::cost);
        let (text, conditions) = (words.join(" ").into(), conditions.into());
        Some(if wrong.is_empty() { Ok(Rule { action, line, text, stages, conditions }) } else { Err(wrong) })
    }

    /// Whether it is for `stage`.
    pub fn is_for(&self, stage: Stage) -> bool {
        self.stages & stage.bit() != 0
    }

    /// Whether all its conditions hold; also `false` if the fuel left does not suffice.
    pub fn matches(&self, subject: &Subject<'_>, fuel: &mut Fuel) -> bool {
        self.conditions.iter().all(|condition| fuel.spend(condition.fuel(subject)) && condition.holds(subject))
    }

    /// The conditions, which must all hold.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }
}

/// A line without a rule is never quoted.
const NO_RULE: &str = "no rule; expected allow or deny at the beginning of the line";

fn no_stage(name: &str) -> String {
    let names = Stage::ALL.map(Stage::as_str);
    let guess = nearest(name, names.into_iter().chain([EMBED]))
        .map(|name| format!(" (did you mean {name}?)"))
        .unwrap_or_default();
    format!(
        "there is no stage {name:?}{guess}; expected {}, or a condition such as host=www.example.org",
        names.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let parse = |text: &str| Rule::parse(7, text).map(|rule| rule.unwrap());
        assert!(parse("").is_none() && parse("  # allow").is_none());
        let rule = parse("\tdeny fetch,follow store  regex=a#b depth>3 # why").unwrap();
        assert_eq!(
            (rule.action, rule.line, &*rule.text),
            (Action::Deny, 7, "deny fetch,follow store regex=a#b depth>3")
        );
        assert_eq!(Stage::ALL.map(|stage| rule.is_for(stage)), [false, true, true, true]);
        assert_eq!(rule.conditions().iter().map(Condition::as_str).collect::<Vec<_>>(), ["depth>3", "regex=a#b"]);
        let rule = parse("allow embed schedule,fetch !embed").unwrap();
        assert_eq!(rule.conditions().iter().map(Condition::as_str).collect::<Vec<_>>(), ["embed", "!embed"]);
        assert_eq!(Stage::ALL.map(|stage| rule.is_for(stage)), [true, true, false, false]);
        let rule = parse("allow").unwrap();
        assert_eq!(Stage::ALL.map(|stage| rule.is_for(stage)), [true, false, false, false]);
    }

    #[test]
    fn every_mistake_of_a_line_is_said() {
        let wrong = |text: &str| Rule::parse(1, text).unwrap().unwrap_err();
        let found = wrong("alow shedule host=a/b depth=x");
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(found[0].contains("did you mean allow?") && found[1].contains("did you mean schedule?"), "{found:?}");
        for secret in ["host=a.test", "root:$6$salt$hash:19000:0:99999:7:::", "-----BEGIN KEY-----", "key deny host=a"]
        {
            assert_eq!(wrong(secret), ["no rule; expected allow or deny at the beginning of the line"]);
        }
        for text in ["deny ! host=a.test", "deny not host=a.test", "deny NOT !host=a.test"] {
            let found = wrong(text);
            assert!(found.len() == 1 && found[0].ends_with("turns around: !host=a.test"), "{found:?}");
        }
        assert!(wrong("deny not")[0].ends_with("!host=www.example.org"));
        for text in ["deny type=text/html", "deny store,fetch !type=text/html", "allow schedule type=a/b"] {
            assert!(wrong(text)[0].contains("expected the stages follow or store"), "{text}");
        }
        assert!(wrong("allow embeds")[0].contains("did you mean embed?"));
        assert!(Rule::parse(1, "deny store,follow type=text/html").unwrap().is_ok());
    }
}
