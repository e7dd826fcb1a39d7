//! Which tags a pass wants to see, told by the first three letters of their names.
//!
//! Decides: each name that matters has a bit, and a table for each of the three places says which names have a byte
//! there. Three look-ups and two `and` then tell whether a tag may be wanted, before it is known where its name ends,
//! and without a branch. Before that a block's tags are looked at all at once, by [`Letters`]: names go in a few groups,
//! and the lower half of a byte says which groups have it at a place.
//!
//! What begins with `<` and is no tag counts too if it is a comment or a CDATA section, or may be: `<!-` and `<![`.
//! Everything else of this sort ends where a tag without quotes would, or is text, which begins nothing.
//!
//! Invariant: sometimes wrongly yes (`<meter>` begins like `<meta>`), never wrongly no.

/// Names that may be wanted, in lower case, and so their bits.
const NAMES: [&[u8]; 21] = [
    b"a",
    b"area",
    b"base",
    b"frame",
    b"iframe",
    b"image",
    b"img",
    b"link",
    b"math",
    b"meta",
    b"noembed",
    b"noframes",
    b"plaintext",
    b"script",
    b"source",
    b"style",
    b"svg",
    b"template",
    b"textarea",
    b"title",
    b"xmp",
];

/// The group of each of `NAMES`. Those in one group can be taken for each other letter by letter, so they should not make
/// up a name that is often met: `script` and `style` have `str` in them, as `strong` does.
const GROUPS: [u8; 21] = [0, 7, 4, 6, 6, 7, 7, 5, 5, 5, 7, 7, 6, 1, 2, 2, 1, 3, 3, 4, 6];

/// The bit of `a`, which no other name begins with: where it may be, it is.
pub(super) const A: u32 = bits(&[b"a"]);
/// The bit of `<!-` and `<![`.
pub(super) const MARKUP: u32 = 1 << 31;
const MARKUP_GROUP: u8 = 0;

/// What may stand behind a name: ASCII whitespace, `/` and `>`.
const ENDS: &[u8] = b"\t\n\x0c\r />";

/// For each of the three bytes behind `<`, by its lower half: the groups that have such a byte there, a bit each.
#[derive(Clone)]
pub(super) struct Letters {
    pub first: [u8; 16],
    pub second: [u8; 16],
    /// Of bytes less 64, of which letters are, and spaces and `>` are not, below 128: above it nothing is looked up.
    pub third: [u8; 16],
    /// Groups that have any byte there.
    pub any_third: u8,
}

impl Letters {
    /// Of the names of these bits.
    fn new(names: u32) -> Letters {
        let mut letters = Letters { first: [0; 16], second: [0; 16], third: [0; 16], any_third: 0 };
        if names & MARKUP != 0 {
            letters.add(MARKUP_GROUP, b"!", b"-[", &[]);
        }
        for (bit, (name, group)) in NAMES.iter().zip(GROUPS).enumerate() {
            if names >> bit & 1 != 0 {
                let [first, second, third] = [0, 1, 2].map(|place| name.get(place..place + 1).unwrap_or_default());
                letters.add(group, first, if second.is_empty() { ENDS } else { second }, third);
            }
        }
        letters
    }

    /// Gives a group more bytes; no third ones are any.
    fn add(&mut self, group: u8, firsts: &[u8], seconds: &[u8], thirds: &[u8]) {
        let bit = 1 << group;
        for (table, bytes) in [(&mut self.first, firsts), (&mut self.second, seconds), (&mut self.third, thirds)] {
            bytes.iter().for_each(|byte| table[usize::from(byte & 15)] |= bit);
        }
        if thirds.is_empty() {
            self.any_third |= bit;
        }
    }

    /// Whether one group has these bytes.
    #[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    pub fn have(&self, [first, second, third]: [u8; 3]) -> bool {
        let of = |table: &[u8; 16], byte: u8| if byte.is_ascii() { table[usize::from(byte & 15)] } else { 0 };
        let thirds = of(&self.third, third.wrapping_sub(64)) | self.any_third;
        of(&self.first, first) & of(&self.second, second) & thirds != 0
    }
}

/// For each byte behind `<`, the next and the one after it: the names that have it there.
static PLACES: [[u32; 256]; 3] = places();

const fn places() -> [[u32; 256]; 3] {
    let mut places = [[0; 256]; 3];
    let mut place = 0;
    while place < 3 {
        let mut byte = 0;
        while byte < 256 {
            places[place][byte] = at_place(place, byte as u8);
            byte += 1;
        }
        place += 1;
    }
    places
}

const fn at_place(place: usize, byte: u8) -> u32 {
    let mut bits = match (place, byte) {
        (0, b'!') | (1, b'-' | b'[') | (2, _) => MARKUP,
        _ => 0,
    };
    let mut name = 0;
    while name < NAMES.len() {
        let letters = NAMES[name];
        // Behind a name stands what ends it, and behind that there may be anything.
        let has = match place {
            place if place < letters.len() => letters[place] == byte.to_ascii_lowercase(),
            place if place == letters.len() => is_any(byte, ENDS),
            _ => true,
        };
        if has {
            bits |= 1 << name;
        }
        name += 1;
    }
    bits
}

const fn is_any(byte: u8, bytes: &[u8]) -> bool {
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == byte {
            return true;
        }
        at += 1;
    }
    false
}

/// The bits of names that are all in `NAMES`.
pub(super) const fn bits(names: &[&[u8]]) -> u32 {
    let (mut bits, mut at) = (0, 0);
    while at < names.len() {
        let mut name = 0;
        while !is_same(NAMES[name], names[at]) {
            name += 1;
        }
        bits |= 1 << name;
        at += 1;
    }
    bits
}

const fn is_same(one: &[u8], other: &[u8]) -> bool {
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// A set of names.
#[derive(Clone)]
pub(super) struct Wanted {
    names: u32,
    letters: Letters,
    every: bool,
}

impl Wanted {
    /// The start tags of the names of these bits, and what is no tag and does not end like one.
    pub fn new(names: u32) -> Wanted {
        let names = names | MARKUP;
        Wanted { names, letters: Letters::new(names), every: false }
    }

    /// Wants every start and end tag from now on, or the named start tags alone.
    #[inline(always)]
    pub fn set_every(&mut self, every: bool) {
        self.every = every;
    }

    /// Whether every start and end tag is wanted.
    #[inline(always)]
    pub fn is_every(&self) -> bool {
        self.every
    }

    /// What the named start tags begin with.
    #[inline(always)]
    pub fn letters(&self) -> &Letters {
        &self.letters
    }

    /// Bits of the wanted start tags, or of the comments, that `<` and these bytes may begin.
    #[inline(always)]
    pub fn names(&self, [first, second, third]: [u8; 3]) -> u32 {
        let [firsts, seconds, thirds] = &PLACES;
        let has = |bits: &[u32; 256], byte: u8| bits.get(usize::from(byte)).copied().unwrap_or_default();
        has(firsts, first) & has(seconds, second) & has(thirds, third) & self.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_wrongly_no() {
        let wanted = Wanted::new(bits(&[b"a", b"link", b"style", b"svg", b"meta"]));
        let may_be = |name: &str| wanted.names(*name.as_bytes().first_chunk().unwrap()) != 0;
        for yes in ["a>-", "a x", "A/>", "link", "LINk", "style", "svg>", "meta", "meter", "a\t\u{e9}"] {
            assert!(may_be(yes), "{yes}");
        }
        for no in [
            "b> ", "li>", "li ", "abbr", "strong", "main", "p><", "h1>", "small", "/a>", "/A>", "/link", "image",
            "?xml", "/>a", "<a>",
        ] {
            assert!(!may_be(no), "{no}");
        }
        assert!(may_be("!--") && may_be("![C"));
        assert!(!may_be("!DO") && !may_be("!>-"), "both end at the next `>`, like a tag without quotes");
    }

    #[test]
    fn every_name_is_known_by_its_own_letters() {
        for name in NAMES {
            let wanted = Wanted::new(bits(&[name]));
            let text = [name, b">>"].concat();
            assert!(wanted.names(*text.first_chunk().unwrap()) != 0);
            assert!(wanted.names(*text.to_ascii_uppercase().first_chunk().unwrap()) != 0);
        }
    }

    #[test]
    fn groups_have_every_name_and_few_others() {
        let wanted = Wanted::new(bits(&NAMES));
        let letters = wanted.letters();
        for bytes in (0..1_u32 << 24).map(|number| {
            let [a, b, c, _] = number.to_le_bytes();
            [a, b, c]
        }) {
            assert!(wanted.names(bytes) == 0 || letters.have(bytes), "{bytes:?}");
        }
        let common = "abb art asi b> br> but cen dd> div dl> dt> em> fig foo for h1> hea hr> i> inp lab li> li/ mai nav ol> \
                      opt p> p/ par pic pre sec sel sma spa str sub sup tab tbo td> th/ tim tr> u> ul> vid !DO /a> /di \
                      /sp ?xm <a>";
        for found in common.split_ascii_whitespace().map(|found| format!("{found} ")) {
            assert!(!letters.have(*found.as_bytes().first_chunk().unwrap()), "{found}");
        }
    }
}
