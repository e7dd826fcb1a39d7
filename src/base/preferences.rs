//! What a site says about the use of its content after fetching.
//!
//! Decides: the categories are those of the AIPREF vocabulary (draft-ietf-aipref-vocab), and two of our own: text and
//! data mining (TDMRep), and "under a licence" (RSL), whose terms we do not read. Other conventions are translated
//! into these categories, so that one filter serves all. If two statements differ, the stricter one wins ("Combining
//! Preferences" there).
//!
//! | convention | says | becomes |
//! |---|---|---|
//! | `Content-Usage` (draft-ietf-aipref-attach) | `train-ai`, `ai-use`, `search` = `y` or `n` | the same; other labels are ignored |
//! | `Content-Signal` | `ai-train`, `ai-input`, `search` = `yes` or `no` | `train-ai`, `ai-use`, `search` |
//! | `tdm-reservation` | 1 | `tdm=n` and, as training is mining, `train-ai=n` |
//! | | 0 | `tdm=y` |
//! | `noai` among robots directives | | `train-ai=n` |
//! | `License` in robots.txt, `Link` with `rel=license` | an address | `license=n` |
//!
//! A dictionary that breaks the rules of RFC 9651 is ignored as a whole, and if a label occurs twice, the last one
//! counts ("Multiple Preferences" there).
//! Invariants: pure, linear, no byte can cause a panic; a value fits into two bytes.
//! Leaves to others: the source of a statement (`robots`, `page`), its consequences (`cli::store`): it never affects
//! what is fetched.

use std::fmt::Write as _;

/// A category of use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// To be found by search.
    Search,
    /// As input of a generative model that answers a question.
    AiUse,
    /// To train a generative model.
    TrainAi,
    /// Text and data mining (Directive (EU) 2019/790, article 4).
    Tdm,
    /// Without a licence.
    License,
}

impl Use {
    /// All of them, in the order in which they are written.
    pub const ALL: [Use; 5] = [Use::AiUse, Use::License, Use::Search, Use::Tdm, Use::TrainAi];

    /// Its label.
    pub const fn label(self) -> &'static str {
        match self {
            Use::Search => "search",
            Use::AiUse => "ai-use",
            Use::TrainAi => "train-ai",
            Use::Tdm => "tdm",
            Use::License => "license",
        }
    }

    /// The one with this label.
    pub fn of_label(label: &str) -> Option<Use> {
        Use::ALL.into_iter().find(|one| one.label() == label)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The uses with a stated preference, and the preference.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Preferences {
    denied: u8,
    allowed: u8,
}

impl Preferences {
    /// A preference for or against this use.
    pub fn of(one: Use, is_allowed: bool) -> Preferences {
        match is_allowed {
            true => Preferences { denied: 0, allowed: one.bit() },
            false => Preferences { denied: one.bit(), allowed: 0 },
        }
    }

    /// Reads a `Content-Usage` dictionary (RFC 9651 section 4.2.2).
    pub fn of_dictionary(text: &[u8]) -> Preferences {
        let mut stated = [None; Use::ALL.len()];
        let is_whole = dictionary(text, |key, value| {
            if let Some(one) = std::str::from_utf8(key).ok().filter(|key| AIPREF.contains(key)).and_then(Use::of_label)
                && let Some(slot) = stated.get_mut(one as usize)
            {
                *slot = match value {
                    b"y" => Some(true),
                    b"n" => Some(false),
                    _ => None,
                };
            }
        });
        let mut all = Preferences::default();
        for one in Use::ALL.into_iter().filter(|_| is_whole.is_some()) {
            if let Some(is_allowed) = stated.get(one as usize).copied().flatten() {
                all.add(Preferences::of(one, is_allowed));
            }
        }
        all
    }

    /// Reads the value of a `Content-Signal` line or field: `search=yes, ai-train=no`.
    pub fn of_signals(text: &[u8]) -> Preferences {
        let mut all = Preferences::default();
        for signal in text.split(|byte| *byte == b',') {
            let mut parts = signal.splitn(2, |byte| *byte == b'=').map(<[u8]>::trim_ascii);
            let (Some(name), Some(value)) = (parts.next(), parts.next()) else { continue };
            let named = |label: &str| name.eq_ignore_ascii_case(label.as_bytes());
            let known = [("search", Use::Search), ("ai-input", Use::AiUse), ("ai-train", Use::TrainAi)];
            let Some((_, one)) = known.into_iter().find(|(label, _)| named(label)) else { continue };
            if value.eq_ignore_ascii_case(b"yes") || value.eq_ignore_ascii_case(b"no") {
                all.add(Preferences::of(one, value.len() == 3));
            }
        }
        all
    }

    /// Reads `tdm-reservation`: 1 reserves the right to mine the content, 0 does not.
    pub fn of_tdm_reservation(value: &[u8]) -> Preferences {
        match value.trim_ascii() {
            b"1" => Preferences::of(Use::Tdm, false).and(Preferences::of(Use::TrainAi, false)),
            b"0" => Preferences::of(Use::Tdm, true),
            _ => Preferences::default(),
        }
    }

    /// Both combined; the stricter one wins.
    #[must_use]
    pub fn and(mut self, other: Preferences) -> Preferences {
        self.add(other);
        self
    }

    /// Adds another statement.
    pub fn add(&mut self, other: Preferences) {
        self.denied |= other.denied;
        self.allowed |= other.allowed;
    }

    /// Whether nothing is stated.
    pub fn is_empty(self) -> bool {
        self.denied | self.allowed == 0
    }

    /// Whether this use is unwanted; a use without a statement is not.
    pub fn denies(self, one: Use) -> bool {
        self.denied & one.bit() != 0
    }

    /// As bytes, for other shards.
    pub fn to_bytes(self) -> [u8; 2] {
        [self.denied, self.allowed]
    }

    /// Reads what `to_bytes` wrote; `None` when it is something else.
    pub fn from_bytes([denied, allowed]: [u8; 2]) -> Option<Preferences> {
        const KNOWN: u8 = (1 << Use::ALL.len()) - 1;
        ((denied | allowed) & !KNOWN == 0).then_some(Preferences { denied, allowed })
    }

    /// As a dictionary: `search=y, train-ai=n`; empty if nothing is stated.
    pub fn to_label(self) -> String {
        let mut label = String::new();
        for one in Use::ALL {
            let value = match (self.denies(one), self.allowed & one.bit() != 0) {
                (true, _) => 'n',
                (false, true) => 'y',
                (false, false) => continue,
            };
            let comma = if label.is_empty() { "" } else { ", " };
            let _ = write!(label, "{comma}{}={value}", one.label());
        }
        label
    }

    /// Reads what `to_label` wrote; anything else in it is ignored.
    pub fn of_label(label: &str) -> Preferences {
        let mut all = Preferences::default();
        for (name, value) in label.split(',').filter_map(|member| member.trim().split_once('=')) {
            if let (Some(one), "y" | "n") = (Use::of_label(name), value) {
                all.add(Preferences::of(one, value == "y"));
            }
        }
        all
    }
}

/// The labels of draft-ietf-aipref-vocab ("Usage Category Labels").
const AIPREF: [&str; 3] = ["search", "ai-use", "train-ai"];

/// Passes each member of a dictionary to `take`, with an empty value if that is not a token; `None` if `text` is not
/// a dictionary.
fn dictionary<'a>(text: &'a [u8], mut take: impl FnMut(&'a [u8], &'a [u8])) -> Option<()> {
    let mut rest = spaces(text, b" ");
    while !rest.is_empty() {
        let key;
        (key, rest) = key_of(rest)?;
        let mut value: &[u8] = b"";
        if let Some(behind) = rest.strip_prefix(b"=") {
            (value, rest) = if behind.starts_with(b"(") { (&b""[..], inner_list(behind)?) } else { bare_item(behind)? };
        }
        rest = parameters(rest)?;
        take(key, value);
        rest = spaces(rest, b" \t");
        if rest.is_empty() {
            break;
        }
        rest = spaces(rest.strip_prefix(b",")?, b" \t");
        // A comma with nothing behind it.
        rest.first()?;
    }
    Some(())
}

fn spaces<'a>(text: &'a [u8], which: &[u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !which.contains(byte)).unwrap_or(text.len());
    text.get(end..).unwrap_or_default()
}

fn key_of(text: &[u8]) -> Option<(&[u8], &[u8])> {
    text.first().filter(|byte| byte.is_ascii_lowercase() || **byte == b'*')?;
    let is_key = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(byte);
    split(text, is_key)
}

/// The prefix for which `is_part` holds, and the rest.
fn split(text: &[u8], is_part: impl Fn(&u8) -> bool) -> Option<(&[u8], &[u8])> {
    text.split_at_checked(text.iter().position(|byte| !is_part(byte)).unwrap_or(text.len()))
}

/// The bytes of the item if it is a token, none for other kinds; and the rest.
fn bare_item(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, behind) = text.split_first()?;
    let quoted = |text: &'_ [u8]| {
        let mut is_escaped = false;
        let end = text.iter().position(|byte| {
            let ends = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            ends
        })?;
        let inside = text.get(..end)?;
        inside.iter().all(|byte| (0x20..0x7f).contains(byte)).then_some(end + 1)
    };
    let rest = match first {
        b'a'..=b'z' | b'A'..=b'Z' | b'*' => {
            return split(text, |byte| byte.is_ascii_alphanumeric() || b":/!#$%&'*+-.^_`|~".contains(byte));
        }
        b'"' => behind.get(quoted(behind)?..)?,
        b'%' => {
            let behind = behind.strip_prefix(b"\"")?;
            behind.get(quoted(behind)?..)?
        }
        b':' => behind.get(behind.iter().position(|byte| *byte == b':')? + 1..)?,
        b'?' => match behind.split_first()? {
            (b'0' | b'1', rest) => rest,
            _ => return None,
        },
        b'@' | b'-' | b'0'..=b'9' => {
            let digits = if first.is_ascii_digit() { text } else { behind.strip_prefix(b"-").unwrap_or(behind) };
            digits.first().filter(|byte| byte.is_ascii_digit())?;
            split(digits, |byte| byte.is_ascii_digit() || *byte == b'.')?.1
        }
        _ => return None,
    };
    Some((b"", rest))
}

fn parameters(mut text: &[u8]) -> Option<&[u8]> {
    while let Some(behind) = text.strip_prefix(b";") {
        text = key_of(spaces(behind, b" "))?.1;
        if let Some(value) = text.strip_prefix(b"=") {
            text = bare_item(value)?.1;
        }
    }
    Some(text)
}

fn inner_list(text: &[u8]) -> Option<&[u8]> {
    let mut rest = spaces(text.strip_prefix(b"(")?, b" ");
    loop {
        if let Some(behind) = rest.strip_prefix(b")") {
            return parameters(behind);
        }
        let before = parameters(bare_item(rest)?.1)?;
        rest = spaces(before, b" ");
        before.first().filter(|byte| matches!(byte, b' ' | b')'))?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries() {
        for (text, expected) in [
            ("train-ai=n", "train-ai=n"),
            ("train-ai=y, search=n", "search=n, train-ai=y"),
            (" search=y;x=1;y=\"a,b\" ,\tai-use=n ", "ai-use=n, search=y"),
            ("", ""),
            // From the draft: parameters are not the value, and the last of a name counts.
            ("train-ai;allow=n, train-ai=y", "train-ai=y"),
            ("train-ai=y, train-ai, search=n, search=\"n\"", ""),
            ("train-ai;has;parameters=\"?\"", ""),
            ("bots=n, x-y=(1 \"a\" b;c=?1);d, search=n", "search=n"),
            ("a=1, b=-1.5, c=:aGk=:, d=?0, e=@17, f=%\"x\", g=\"\\\"\", search=n", "search=n"),
            // Our own names are unknown there.
            ("tdm=n, license=n, search=y", "search=y"),
            // An invalid dictionary is ignored.
            ("Train-AI=n", ""),
            ("search=n, Train-AI=n", ""),
            ("search=n,", ""),
            ("search=n train-ai=n", ""),
            ("search=n, x=\"open", ""),
            ("search=n, x=(1", ""),
            ("search=n, x=(1)(2)", ""),
            ("search=n, =y", ""),
            ("search=n, \u{e4}=1", ""),
        ] {
            assert_eq!(Preferences::of_dictionary(text.as_bytes()).to_label(), expected, "{text}");
        }
    }

    #[test]
    fn signals_and_reservations() {
        for (text, expected) in [
            ("search=yes, ai-train=no", "search=y, train-ai=n"),
            ("search=yes,ai-train=no,ai-input=NO,use=reference", "ai-use=n, search=y, train-ai=n"),
            ("ai-train = no , x, =", "train-ai=n"),
            ("ai-train=maybe", ""),
        ] {
            assert_eq!(Preferences::of_signals(text.as_bytes()).to_label(), expected, "{text}");
        }
        let tdm = |text: &str| Preferences::of_tdm_reservation(text.as_bytes()).to_label();
        assert_eq!([" 1 ", "0", "2", ""].map(tdm), ["tdm=n, train-ai=n", "tdm=y", "", ""]);
    }

    #[test]
    fn the_stricter_one_holds() {
        let of = |text: &str| Preferences::of_dictionary(text.as_bytes());
        let both = of("search=y, train-ai=y").and(of("train-ai=n"));
        assert_eq!(both.to_label(), "search=y, train-ai=n");
        assert!(both.denies(Use::TrainAi) && !both.denies(Use::Search) && !both.denies(Use::Tdm));
        assert_eq!(Preferences::of_label(&both.to_label()).to_label(), both.to_label());
        assert!(Preferences::of_label("x=n, search, search=maybe").is_empty());
        let all: Vec<Option<Use>> = Use::ALL.iter().map(|one| Use::of_label(one.label())).collect();
        assert_eq!(all, Use::ALL.map(Some));
    }

    /// No bytes can cause a panic, and a truncated input states less or nothing.
    #[test]
    fn hostile_bytes() {
        let sample = b" search=y;x=\"\\\"\", ai-use=(1 b;c=?1);d, train-ai=n, e=@1, f=:a:, g=%\"%c3\"";
        let mut rng = crate::Rng::new(1);
        for round in 0..20_000 {
            let mut bytes = sample.to_vec();
            for _ in 0..1 + round % 4 {
                let at = rng.index(bytes.len());
                bytes[at] = rng.next() as u8;
            }
            bytes.truncate(rng.index(bytes.len() + 1));
            let label = Preferences::of_dictionary(&bytes).to_label();
            assert!(label.len() <= "ai-use=n, search=y, train-ai=n".len());
            Preferences::of_signals(&bytes);
        }
    }
}
