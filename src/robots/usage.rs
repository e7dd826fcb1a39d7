//! What robots.txt says about the use of content that may be fetched.
//!
//! Decides: `Content-Usage: /path train-ai=n` (draft-ietf-aipref-attach, "Robots Exclusion Protocol Content-Usage
//! Rule") applies to the paths that an Allow line with this path would match, and the longest matching path wins; if
//! two lines have the same path, both count. `Content-Signal: search=yes, ai-train=no` usually has no path and then
//! applies to all; if it has one, it is read in the same way, separately from the others. Both belong to a group, and
//! ours is the one whose rules we obey. Older drafts omit the path; lines here may, too. `License:` (RSL 1.0) names
//! the address of the conditions: that of our group, or else the first in the file, as that is in no group. None of
//! these lines ends the list of agents of a group: by RFC 9309 section 2.2.4 only rules do, and a file must have the
//! same meaning for parsers that do not know these lines.
//! Invariants: nothing here changes what may be fetched.
//! Limits: [`LINES_MAX`] lines of a group, [`LICENSE_BYTES_MAX`] bytes of an address; anything beyond is ignored.

use super::pattern::{self, Pattern};
use ringcrawl_base::fuel::{Fuel, RULE_COST};
use ringcrawl_base::preferences::{Preferences, Use};
use ringcrawl_url::text_of_bytes;

/// The usage preferences and licence for one URL.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// By categories.
    pub preferences: Preferences,
    /// The address of the licence, as written.
    pub license: Option<Box<str>>,
}

/// The lines of one group.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct UsageLines {
    pub lines: Vec<UsageLine>,
    pub license: Option<Box<str>>,
}

/// Preferences for the paths of one line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct UsageLine {
    pub pattern: Pattern,
    pub is_signal: bool,
    pub preferences: Preferences,
}

impl UsageLines {
    /// Adds the value of a line of either kind.
    pub fn add(&mut self, value: &[u8], is_signal: bool) {
        let end = value.iter().position(|byte| matches!(byte, b' ' | b'\t')).unwrap_or(value.len());
        let (path, said) = match value.first() {
            Some(b'/') => value.split_at_checked(end).unwrap_or((value, b"")),
            _ => (&b"/"[..], value),
        };
        let preferences = match is_signal {
            true => Preferences::of_signals(said),
            false => Preferences::of_dictionary(said.trim_ascii()),
        };
        if let Some(pattern) = Pattern::new(path)
            && self.lines.len() < LINES_MAX
            && path.len() <= usize::from(u16::MAX) / 4
        {
            // A line without preferences counts, too: a longer path may revoke those of a shorter one.
            self.lines.push(UsageLine { pattern, is_signal, preferences });
        }
    }

    /// Records the address of a licence, if none is recorded yet.
    pub fn license(&mut self, value: &[u8]) {
        let is_address = |text: &str| {
            (1..=LICENSE_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
        };
        let text = text_of_bytes(value);
        if is_address(&text) {
            self.license.get_or_insert_with(|| text.into());
        }
    }

    /// The usage of the URL with this path and query. If there is not enough `work` left to find out, every use is
    /// denied.
    pub fn of(&self, path_and_query: &str, fuel: &mut Fuel) -> Usage {
        let path = pattern::normalize(path_and_query.as_bytes());
        let folded = pattern::fold_query(&path);
        // For usages and for signals: the longest path so far, and its preferences.
        let mut best = [(0, Preferences::default()); 2];
        for line in &self.lines {
            let path = if line.pattern.has_query { &folded } else { &path };
            let weight = line.pattern.weight();
            let Some((longest, said)) = best.get_mut(usize::from(line.is_signal)) else { continue };
            if !fuel.spend(RULE_COST) {
                break;
            }
            if weight < *longest || !pattern::matches(&line.pattern.text, line.pattern.anchored, path, fuel) {
                continue;
            }
            *said = if weight > *longest { line.preferences } else { said.and(line.preferences) };
            *longest = weight;
        }
        let [(_, usages), (_, signals)] = best;
        // A line that was not compared may deny any use that such lines cover.
        let mut unread = Preferences::default();
        if fuel.is_spent() {
            [Use::Search, Use::AiUse, Use::TrainAi].into_iter().for_each(|one| unread.add(Preferences::of(one, false)));
        }
        let licensed = self.license.as_ref().map(|_| Preferences::of(Use::License, false)).unwrap_or_default();
        Usage { preferences: usages.and(signals).and(unread).and(licensed), license: self.license.clone() }
    }

    /// Whether there are no preferences and no licence.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.license.is_none()
    }

    /// Memory in addition to the value itself.
    pub fn ram_bytes(&self) -> usize {
        let lines: usize = self.lines.iter().map(|line| size_of::<UsageLine>() + line.pattern.text.len()).sum();
        lines + self.license.as_ref().map_or(0, |license| license.len())
    }

    /// As bytes, for another shard: 2 bytes, the number of lines; for each line 1 byte of flags, 2 of preferences, 2
    /// of length, and the text; 2 bytes, the length of the licence, and its text.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend((self.lines.len() as u16).to_le_bytes());
        for UsageLine { pattern, is_signal, preferences } in &self.lines {
            bytes.push(u8::from(*is_signal) | u8::from(pattern.anchored) << 1 | u8::from(pattern.has_query) << 2);
            bytes.extend(preferences.to_bytes());
            bytes.extend((pattern.text.len() as u16).to_le_bytes());
            bytes.extend(&pattern.text);
        }
        let license = self.license.as_deref().unwrap_or_default();
        bytes.extend((license.len() as u16).to_le_bytes());
        bytes.extend(license.as_bytes());
    }

    /// Reads what `write` wrote, and returns the rest.
    pub fn read(bytes: &[u8]) -> Option<(UsageLines, &[u8])> {
        let (count, mut rest) = bytes.split_first_chunk::<2>()?;
        let mut read = UsageLines::default();
        for _ in 0..u16::from_le_bytes(*count).min(LINES_MAX as u16 + 1) {
            let ([flags, denied, allowed, low, high], behind) = rest.split_first_chunk::<5>()?;
            let (text, behind) = behind.split_at_checked(usize::from(u16::from_le_bytes([*low, *high])))?;
            let pattern = Pattern { text: text.into(), anchored: flags & 2 != 0, has_query: flags & 4 != 0 };
            let preferences = Preferences::from_bytes([*denied, *allowed])?;
            (*flags <= 7 && read.lines.len() < LINES_MAX).then_some(())?;
            read.lines.push(UsageLine { pattern, is_signal: flags & 1 != 0, preferences });
            rest = behind;
        }
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (license, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        if !license.is_empty() {
            read.license(license);
            read.license.as_ref()?;
        }
        Some((read, rest))
    }
}

/// Lines of one group; no known file has more than five.
const LINES_MAX: usize = 256;
/// Longer addresses are dropped.
const LICENSE_BYTES_MAX: usize = 512;

#[cfg(test)]
mod tests {
    use super::super::{Rules, VERDICT_FUEL};
    use super::*;

    fn said(body: &str, path: &str) -> String {
        let rules = Rules::parse(body.as_bytes(), "ExampleBot", 1 << 20);
        let again = Rules::from_bytes(&rules.to_bytes()).expect("rules");
        let of = |rules: &Rules| {
            let usage = rules.usage(path, &mut Fuel::new(VERDICT_FUEL)).unwrap_or_default();
            format!("{} {}", usage.preferences.to_label(), usage.license.unwrap_or_default())
        };
        assert_eq!(of(&again), of(&rules), "what another shard is told");
        of(&rules).trim().to_owned()
    }

    /// The example of the draft.
    #[test]
    fn the_longest_path_of_our_group() {
        let body = "User-Agent: *\nAllow: /\nDisallow: /never/\nContent-Usage: / train-ai=n\n\
                    Content-Usage: /ai-ok/ train-ai=y\n\nUser-Agent: OtherBot\nAllow: /\nContent-Usage: / train-ai=y\n";
        assert_eq!([said(body, "/test"), said(body, "/ai-ok/test")], ["train-ai=n", "train-ai=y"]);
        assert_eq!(said(&body.replace("OtherBot", "ExampleBot"), "/test"), "train-ai=y");
    }

    #[test]
    fn lines() {
        for (lines, path, expected) in [
            ("Content-Usage: train-ai=n, search=y", "/x", "search=y, train-ai=n"),
            ("content-usage :\t/a\tsearch=n # words", "/ab", "search=n"),
            ("Content-Usage: /a search=n", "/b", ""),
            ("Content-Usage: /a search=n\nContent-Usage: /a search=y, ai-use=y", "/a", "ai-use=y, search=n"),
            ("Content-Usage: /a* search=n\nContent-Usage: /a$ search=y", "/a", "search=n"),
            ("Content-Usage: / search=n\nContent-Usage: /b", "/b", ""),
            ("Content-Usage: /%61?b=%2F search=n", "/a?b=/c", "search=n"),
            ("Content-Usage: / Search=n", "/", ""),
            ("Content-Signal: search=yes, ai-train=no", "/x", "search=y, train-ai=n"),
            ("Content-Signal: /a ai-input=no\nContent-Signal: ai-input=yes", "/a", "ai-use=n"),
            ("Content-Signal: /a ai-input=no\nContent-Usage: /ab ai-use=y", "/abc", "ai-use=n"),
            ("License: https://a.test/license.xml", "/", "license=n https://a.test/license.xml"),
            (
                "License: no address\nLicense: https://b.test/2\nLicense: https://b.test/3",
                "/",
                "license=n https://b.test/2",
            ),
        ] {
            assert_eq!(said(&format!("User-agent: *\n{lines}\nDisallow: /no\n"), path), expected, "{lines} {path}");
        }
        assert_eq!(
            said("License: https://a.test/1\nUser-agent: *\nDisallow:\nLicense: https://a.test/2", "/"),
            "license=n https://a.test/2"
        );
        assert_eq!(said("License: https://a.test/1\nUser-agent: *\nDisallow:\n", "/"), "license=n https://a.test/1");
        assert_eq!(said("User-agent: x\nContent-Usage: / search=n\nDisallow: /\n", "/"), "");
    }

    /// An expensive line precedes the one that denies, and its verdict is unknown.
    #[test]
    fn what_takes_too_long_is_denied() {
        let body =
            format!("User-agent: *\nContent-Usage: /{}b search=y\nContent-Usage: / search=y\n", "*a".repeat(2_000));
        let rules = Rules::parse(body.as_bytes(), "ExampleBot", 1 << 20);
        let label = |fuel| {
            let usage = rules.usage(&format!("/{}", "ca".repeat(3_000)), &mut Fuel::new(fuel)).unwrap_or_default();
            usage.preferences.to_label()
        };
        assert_eq!(label(VERDICT_FUEL), "search=y");
        assert_eq!([label(10_000), label(0)], ["ai-use=n, search=n, train-ai=n", "ai-use=n, search=n, train-ai=n"]);
    }

    /// A parser that does not know these lines reads the same rules.
    #[test]
    fn rules_stay_what_they_are() {
        let lines = "Content-Usage: / train-ai=n\nContent-Signal: search=no\nLicense: https://a.test/\n";
        let body = |lines: &str| {
            format!("User-agent: ExampleBot\n{lines}User-agent: x\n{lines}Disallow: /a\n{lines}Allow: /a/b\n")
        };
        let rules = |lines: &str| Rules::parse(body(lines).as_bytes(), "ExampleBot", 1 << 20);
        for path in ["/", "/a", "/a/b"] {
            assert_eq!(rules(lines).allows(path), rules("").allows(path), "{path}");
        }
        let many: String = (0..1_000).map(|number| format!("Content-Usage: /{number} search=n\n")).collect();
        let usage = rules(&many);
        assert!(usage.ram_bytes() < 40_000, "{}", usage.ram_bytes());
    }
}
