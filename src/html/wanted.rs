//! Which tags a pass wants to see, by the first three letters of their names.
//!
//! Decides: each name that matters has a bit, and a table for each of the three positions holds the names with a
//! given byte there. Three lookups and two `and` then determine whether a tag may be wanted, before the end of its
//! name is known, and without a branch. Before that, [`Letters`] checks all tags of a block at once: names form a few
//! groups, and the lower half of a byte selects the groups that have it at a position. It uses the first, second and
//! fourth letters, which distinguish names best from others: the third of `<li>` is `>`, with the same lower half as
//! that of `link`.
//!
//! What begins with `<` and is not a tag also counts if it is, or may be, a comment or a CDATA section: `<!-` and
//! `<![`. Everything else of this sort ends where a tag without quotes would, or is text, which begins nothing.
//!
//! Invariant: false positives occur (`<meter>` begins like `<meta>`), false negatives never.

/// Names that may be wanted, in lower case, and so their bits.
pub(super) const NAMES: [&[u8]; 22] = [
    b"a",
    b"area",
    b"base",
    b"frame",
    b"iframe",
    b"image",
    b"img",
    b"input",
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

/// The group of each of `NAMES`. Letters of names in one group can combine, so a group should not accept common
/// names: `base` and `title` would accept `table`. Found by experiment, with the tags of real pages.
const GROUPS: [u8; 22] = [0, 6, 1, 6, 6, 7, 7, 5, 5, 2, 6, 2, 4, 3, 1, 2, 2, 1, 3, 4, 4, 7];

/// The bit of `a`. No other name begins with it, so a possible match is a match.
pub(super) const A: u32 = bits(&[b"a"]);
/// The bit of `<!-` and `<![`.
pub(super) const MARKUP: u32 = 1 << 31;
const MARKUP_GROUP: u8 = 0;

/// Bytes that may follow a name: ASCII whitespace, `/` and `>`.
const ENDS: &[u8] = b"\t\n\x0c\r />";

/// For three of the bytes behind `<`, by the lower half: the groups that have such a byte there, one bit each.
#[derive(Clone)]
pub(super) struct Letters {
    /// Of an ASCII byte; others are in no group.
    pub first: [u8; 16],
    /// Of an ASCII byte; others are in no group.
    pub second: [u8; 16],
    /// Of an ASCII byte.
    pub fourth: [u8; 16],
    /// The groups that accept any fourth byte; a non-ASCII byte is in no other group.
    pub any_fourth: u8,
}

impl Letters {
    const NONE: Letters = Letters { first: [0; 16], second: [0; 16], fourth: [0; 16], any_fourth: 0 };

    /// For the names of these bits.
    fn new(names: u32) -> Letters {
        let mut letters = Letters::NONE;
        let mut left = names;
        while let Some(of_name) = LETTERS.get(left.trailing_zeros() as usize) {
            letters.add(of_name);
            left &= left - 1;
        }
        letters
    }

    /// Adds those of another set.
    fn add(&mut self, more: &Letters) {
        let add = |to: &mut [u8; 16], more: &[u8; 16]| to.iter_mut().zip(more).for_each(|(to, more)| *to |= more);
        add(&mut self.first, &more.first);
        add(&mut self.second, &more.second);
        add(&mut self.fourth, &more.fourth);
        self.any_fourth |= more.any_fourth;
    }

    /// Of names that begin with one of `firsts`, then one of `seconds`, and have one of `fourths`; an empty `fourths`
    /// accepts any byte.
    const fn of(group: u8, firsts: &[u8], seconds: &[u8], fourths: &[u8]) -> Letters {
        let bit = 1 << group;
        Letters {
            first: at_halves(firsts, bit),
            second: at_halves(seconds, bit),
            fourth: at_halves(fourths, bit),
            any_fourth: if fourths.is_empty() { bit } else { 0 },
        }
    }

    /// Whether one group has these bytes.
    #[cfg(any(test, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    pub fn have(&self, [first, second, _, fourth]: [u8; 4]) -> bool {
        let of = |table: &[u8; 16], byte: u8| if byte.is_ascii() { table[usize::from(byte & 15)] } else { 0 };
        of(&self.first, first) & of(&self.second, second) & (of(&self.fourth, fourth) | self.any_fourth) != 0
    }
}

/// A table with `bit` at the lower half of each byte.
const fn at_halves(bytes: &[u8], bit: u8) -> [u8; 16] {
    let (mut table, mut at) = ([0; 16], 0);
    while at < bytes.len() {
        table[(bytes[at] & 15) as usize] = bit;
        at += 1;
    }
    table
}

/// For each bit of names.
static LETTERS: [Letters; 32] = letters();

const fn letters() -> [Letters; 32] {
    let mut letters = [Letters::NONE; 32];
    let mut at = 0;
    while at < NAMES.len() {
        let (name, group) = (NAMES[at], GROUPS[at]);
        letters[at] = match *name {
            [first] => Letters::of(group, &[first], ENDS, &[]),
            [first, second] => Letters::of(group, &[first], &[second], &[]),
            [first, second, _] => Letters::of(group, &[first], &[second], ENDS),
            [first, second, _, fourth, ..] => Letters::of(group, &[first], &[second], &[fourth]),
            [] => Letters::NONE,
        };
        at += 1;
    }
    letters[MARKUP.trailing_zeros() as usize] = Letters::of(MARKUP_GROUP, b"!", b"-[", &[]);
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
    let mut bits = match (place, byte) {
        (0, b'!') | (1, b'-' | b'[') | (2, _) => MARKUP,
        _ => 0,
    };
    let mut name = 0;
    while name < NAMES.len() {
        let letters = NAMES[name];
        // A name is followed by a byte that ends it, and then by any byte.
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

/// The bit of a name, without case; none if it is not in `NAMES`.
pub(super) fn bit(name: &[u8]) -> u32 {
    let [firsts, seconds, thirds] = &PLACES;
    let at = |bits: &[u32; 256], place| bits[usize::from(name.get(place).copied().unwrap_or(b'>'))];
    let bit = at(firsts, 0) & at(seconds, 1) & at(thirds, 2);
    let known = NAMES.get(bit.trailing_zeros() as usize);
    if known.is_some_and(|known| known.eq_ignore_ascii_case(name)) { bit } else { 0 }
}

/// The name of this bit, if the bytes behind a `<` spell it; not for names of more than eight bytes.
#[inline(always)]
pub(super) fn name(bit: u32, behind: &[u8]) -> Option<&'static [u8]> {
    let name = *NAMES.get(bit.trailing_zeros() as usize)?;
    let (letters, mask) = *FIRST_EIGHT.get(bit.trailing_zeros() as usize)?;
    let written = u64::from_le_bytes(*behind.first_chunk()?) | SMALL;
    let ends = is_any(*behind.get(name.len())?, ENDS);
    (name.len() <= size_of::<u64>() && written & mask == letters && ends).then_some(name)
}

/// The bit that distinguishes lower-case letters, in eight bytes.
const SMALL: u64 = u64::from_le_bytes([0x20; 8]);

/// The first eight letters of each of `NAMES` as a number, and a mask of as many bytes.
static FIRST_EIGHT: [(u64, u64); NAMES.len()] = first_eight();

const fn first_eight() -> [(u64, u64); NAMES.len()] {
    let mut names = [(0, 0); NAMES.len()];
    let mut at = 0;
    while at < NAMES.len() {
        let (mut letters, mut mask, mut place) = ([0; 8], [0; 8], 0);
        while place < 8 && place < NAMES[at].len() {
            letters[place] = NAMES[at][place];
            mask[place] = 0xff;
            place += 1;
        }
        names[at] = (u64::from_le_bytes(letters), u64::from_le_bytes(mask));
        at += 1;
    }
    names
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
    /// The start tags of the names of these bits, and markup that is not a tag and does not end like one.
    pub fn new(names: u32) -> Wanted {
        let names = names | MARKUP;
        Wanted { names, letters: Letters::new(names), every: false }
    }

    /// From now on, wants every start and end tag, or only the named start tags.
    #[inline(always)]
    pub fn set_every(&mut self, every: bool) {
        self.every = every;
    }

    /// Whether every start and end tag is wanted.
    #[inline(always)]
    pub fn is_every(&self) -> bool {
        self.every
    }

    /// The letters with which the named start tags begin.
    #[inline(always)]
    pub fn letters(&self) -> &Letters {
        &self.letters
    }

    /// Bits of the wanted start tags or comments that `<` and these bytes may begin.
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
        for bytes in (0..1_u32 << 24).map(u32::to_le_bytes) {
            let [a, b, c, _] = bytes;
            let names = wanted.names([a, b, c]);
            if names == 0 {
                continue;
            }
            for (_, name) in NAMES.iter().enumerate().filter(|(bit, _)| names >> bit & 1 != 0) {
                let fourth = match name.len() {
                    1 => 0xff,
                    3 => b'>',
                    _ => name[3],
                };
                assert!(letters.have([a, b, c, fourth]), "{bytes:?}");
            }
            assert!(names & MARKUP == 0 || letters.have([a, b, c, 0xff]), "{bytes:?}");
        }
        let common = "abbr artic aside b>x br>x butt cente dd>x div> div_ dl>x dt>x em>x figu foote form h1>x head hr>x \
                      i>x label li>x li>H li_c li/> main nav> nav_ ol>x opti p>x p/>x para pict pre> secti selec \
                      small span stron sub> sup> table tbody td>x th/> th>x time tr>x u>x ul>x video !DOC /a>x /div \
                      /spa ?xml <a>x";
        for found in common.split_ascii_whitespace().map(|found| format!("{} ", found.replace('_', " "))) {
            assert!(!letters.have(*found.as_bytes().first_chunk().unwrap()), "{found}");
        }
    }
}
