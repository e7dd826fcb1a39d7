//! Which tags a pass wants to see, told by the first three letters of their names.
//!
//! Decides: each name that matters has a bit, and a table for each of the three places says which names have a byte
//! there. Three look-ups and two `and` then tell whether a tag may be wanted, before it is known where its name ends,
//! and without a branch.
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

/// What begins with `<` and is no tag.
const NO_TAG: u32 = 1 << 30;
/// What begins with `</` and is no tag.
const NO_END_TAG: u32 = 1 << 31;

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
    let letter = byte.is_ascii_alphabetic();
    let mut bits = match place {
        0 if byte == b'/' => NO_END_TAG,
        0 if letter => 0,
        1 if letter => NO_TAG,
        _ => NO_TAG | NO_END_TAG,
    };
    let mut name = 0;
    while name < NAMES.len() {
        let letters = NAMES[name];
        // Behind the end of a name there may be anything, but no letter where the name ends.
        let has = match place {
            place if place < letters.len() => letters[place] == byte.to_ascii_lowercase(),
            place if place == letters.len() => !letter,
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
        Wanted { names: names.into_iter().map(bit).fold(NO_TAG | NO_END_TAG, |bits, bit| bits | bit), every: false }
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

    /// Bits of the wanted start tags that `<` and these bytes may begin, or of no tag at all; 0 where it is neither.
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
        for yes in ["a>-", "a x", "A/>", "link", "LINk", "style", "svg>", "meta", "meter", "a\0b"] {
            assert!(may_be(yes), "{yes}");
        }
        for no in ["b> ", "li>", "li ", "abbr", "strong", "main", "p><", "h1>", "small", "/a>", "/A>", "/link", "image"]
        {
            assert!(!may_be(no), "{no}");
        }
        for no_tag in ["!--", "?xml", " a ", "<a>", "\0li", "/>a", "/ a", "/<a", "1>a"] {
            assert!(may_be(no_tag), "{no_tag}");
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
}
