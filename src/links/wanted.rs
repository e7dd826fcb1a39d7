//! Which tags a pass wants to see, told by the first three letters of their names.
//!
//! Decides: each name that matters has a bit, and a table for each of the three places says which names have a byte
//! there. Three look-ups and two `and` then tell whether a tag may be wanted, before it is known where its name ends,
//! and without a branch. Before that a block's tags are looked at all at once, by [`LETTERS`]: names go in a few groups,
//! and a byte's halves say which groups have it at a place.
//!
//! What begins with `<` and is no tag counts too if it is a comment, or may be: `<!`. Everything else of this sort ends
//! where a tag without quotes would, or is text, which begins nothing.
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
/// up a name that is often met: `source` and `style` have `str` in them, as `strong` does.
const GROUPS: [u8; 21] = [0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 1];

/// `<!`.
const MARKUP: u32 = 1 << 31;
const MARKUP_GROUP: u8 = 7;

/// For each of the three bytes behind `<`, by its lower half and by its upper half: the groups that have such a byte there,
/// a bit each.
pub(super) type Letters = [[[u8; 16]; 2]; 3];

/// Which groups have a byte where.
pub(super) static LETTERS: Letters = letters();

const fn letters() -> Letters {
    let mut letters = [[[0; 16]; 2]; 3];
    let mut place = 0;
    while place < 3 {
        let mut byte = 0;
        while byte < 256 {
            let names = at_place(place, byte as u8);
            let mut groups = if names & MARKUP != 0 { 1 << MARKUP_GROUP } else { 0 };
            let mut name = 0;
            while name < NAMES.len() {
                if names >> name & 1 != 0 {
                    groups |= 1 << GROUPS[name];
                }
                name += 1;
            }
            letters[place][0][byte & 15] |= groups;
            letters[place][1][byte >> 4] |= groups;
            byte += 1;
        }
        place += 1;
    }
    letters
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
    let mut bits = if place > 0 || byte == b'!' { MARKUP } else { 0 };
    let mut name = 0;
    while name < NAMES.len() {
        let letters = NAMES[name];
        // Behind a name stands what ends it, and behind that there may be anything.
        let has = match place {
            place if place < letters.len() => letters[place] == byte.to_ascii_lowercase(),
            place if place == letters.len() => matches!(byte, b'\t' | b'\n' | 0x0c | b'\r' | b' ' | b'/' | b'>'),
            _ => true,
        };
        if has {
            bits |= 1 << name;
        }
        name += 1;
    }
    bits
}

/// A set of names.
#[derive(Clone)]
pub(super) struct Wanted {
    names: u32,
    every: bool,
}

impl Wanted {
    /// The start tags of these names, in lower case; only what is in `NAMES` can be wanted.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a [u8]>) -> Wanted {
        let bit = |name: &[u8]| NAMES.iter().position(|one| *one == name).map_or(0, |place| 1 << place);
        Wanted { names: names.into_iter().map(bit).fold(MARKUP, |bits, bit| bits | bit), every: false }
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

    /// Bits of the wanted start tags, or of the comments, that `<` and these bytes may begin.
    #[inline(always)]
    pub fn names(&self, [first, second, third]: [u8; 3]) -> u32 {
        let [firsts, seconds, thirds] = &PLACES;
        let has = |bits: &[u32; 256], byte: u8| bits.get(usize::from(byte)).copied().unwrap_or_default();
        has(firsts, first) & has(seconds, second) & has(thirds, third) & self.names
    }

    /// Whether what follows a tag of one of these names may hold no markup.
    #[inline(always)]
    pub fn may_hold_raw_text(names: u32) -> bool {
        names & RAW_TEXT != 0
    }
}

/// Those of `NAMES` behind which there is mostly a text that is no markup, and no short one.
const RAW_TEXT: u32 = raw_text();

const fn raw_text() -> u32 {
    let (mut bits, mut name) = (0, 0);
    while name < NAMES.len() {
        if matches!(NAMES[name], b"script" | b"style" | b"textarea") {
            bits |= 1 << name;
        }
        name += 1;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn never_wrongly_no() {
        let names: [&[u8]; 5] = [b"a", b"link", b"style", b"svg", b"meta"];
        let wanted = Wanted::new(names);
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
        for comment in ["!--", "!DO", "![C", "!>-"] {
            assert!(may_be(comment), "{comment}");
        }
    }

    #[test]
    fn every_name_is_known_by_its_own_letters() {
        for name in NAMES {
            let wanted = Wanted::new([name]);
            let text = [name, b">>"].concat();
            assert!(wanted.names(*text.first_chunk().unwrap()) != 0);
            assert!(wanted.names(*text.to_ascii_uppercase().first_chunk().unwrap()) != 0);
        }
    }

    /// Whether the groups have these three bytes.
    fn in_groups(bytes: [u8; 3]) -> bool {
        let of =
            |(place, byte): (&[[u8; 16]; 2], u8)| place[0][usize::from(byte & 15)] & place[1][usize::from(byte >> 4)];
        LETTERS.iter().zip(bytes).map(of).fold(!0, |all, one| all & one) != 0
    }

    #[test]
    fn groups_have_every_name_and_few_others() {
        let wanted = Wanted::new(NAMES);
        for bytes in (0..1_u32 << 24).map(|number| {
            let [a, b, c, _] = number.to_le_bytes();
            [a, b, c]
        }) {
            assert!(wanted.names(bytes) == 0 || in_groups(bytes), "{bytes:?}");
        }
        let common = "abb b> br> but div em> foo hea h1> inp lab li> li/ mai ol> opt p> p/ sec sma spa str tab td> th/ tr> \
                      ul> /a> /di /sp ?xm";
        for letters in common.split(' ').map(|letters| format!("{letters} ")) {
            assert!(!in_groups(*letters.as_bytes().first_chunk().unwrap()), "{letters}");
        }
    }
}
