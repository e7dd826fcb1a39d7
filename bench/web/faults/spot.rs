//! Spots: the content of each address of a faulty host.
//!
//! Decides: every faulty host has the same few addresses, so that a log is easy to read: the root, and numbered
//! pages, the odd ones faulty and the even ones healthy. A `past` page is linked only from the first bytes of a
//! faulty page: to fetch it, a crawler must extract links from what is left of a page. A `lost` page is linked only
//! from bytes that a crawler must not use: a crawler that requests one took bytes for part of a page that are not.
//! Invariants: `read` and `push_path` are inverse to each other.

use super::Fault;
use crate::draw::{Draw, Purpose};
use crate::site::{parse_number, push_number};

/// An address of a faulty host.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Spot {
    /// `/`: healthy if the host is.
    Root,
    /// `/robots.txt`
    Robots,
    /// `/K`: faulty when odd.
    Page(u64),
    /// `/past/K`: linked from the first bytes of page K.
    Past(u64),
    /// `/lost/K`: linked from bytes that are not page K's.
    Lost(u64),
    /// `/chain/K`: redirects to the next.
    Chain(u64),
    /// `/private/K`: forbidden by a rule at the beginning of robots.txt.
    Private(u64),
    /// `/late/K`: forbidden by a rule far behind in robots.txt.
    Late(u64),
    /// A page of a maze, by its number.
    Maze(u64),
    /// Nothing: 404.
    Unknown,
}

impl Spot {
    /// The spot at a path and query of a host of `fault`.
    pub fn read(fault: Fault, path_and_query: &str) -> Spot {
        let text = path_and_query.as_bytes();
        let numbered =
            |prefix: &str, spot: fn(u64) -> Spot| text.strip_prefix(prefix.as_bytes()).and_then(parse_number).map(spot);
        let spot = match text {
            b"/" => Some(Spot::Root),
            b"/robots.txt" => Some(Spot::Robots),
            _ => numbered("/past/", Spot::Past)
                .or_else(|| numbered("/lost/", Spot::Lost))
                .or_else(|| numbered("/", Spot::Page))
                .or_else(|| match fault {
                    Fault::RedirectChain => numbered("/chain/", Spot::Chain),
                    Fault::RobotsHuge => {
                        numbered("/private/", Spot::Private).or_else(|| numbered("/late/", Spot::Late))
                    }
                    Fault::Calendar => numbered("/calendar?month=", Spot::Maze),
                    Fault::SessionIds => session(text).map(Spot::Maze),
                    Fault::PathTrap => levels(text).map(Spot::Maze),
                    Fault::Facets => facets(text).map(Spot::Maze),
                    Fault::Versions => numbered(VERSION, Spot::Maze),
                    Fault::Mirrors => sections(text).map(Spot::Maze),
                    _ => None,
                }),
        };
        match spot {
            Some(Spot::Page(number)) if !(1..=PAGES).contains(&number) => Spot::Unknown,
            Some(Spot::Past(number) | Spot::Private(number) | Spot::Late(number)) if number > PAGES => Spot::Unknown,
            Some(Spot::Chain(number)) if !(1..=CHAIN).contains(&number) => Spot::Unknown,
            Some(spot) => spot,
            None => Spot::Unknown,
        }
    }

    /// Appends its path and query; `None` if it has none.
    pub fn push_path(self, fault: Fault, out: &mut Vec<u8>) -> Option<()> {
        let (prefix, number) = match self {
            Spot::Root => ("/", None),
            Spot::Robots => ("/robots.txt", None),
            Spot::Page(number) => ("/", Some(number)),
            Spot::Past(number) => ("/past/", Some(number)),
            Spot::Lost(number) => ("/lost/", Some(number)),
            Spot::Chain(number) => ("/chain/", Some(number)),
            Spot::Private(number) => ("/private/", Some(number)),
            Spot::Late(number) => ("/late/", Some(number)),
            Spot::Maze(number) => match fault {
                Fault::Calendar => ("/calendar?month=", Some(number)),
                Fault::SessionIds => {
                    out.extend_from_slice(format!("{SESSION}{number:016x}").as_bytes());
                    return Some(());
                }
                Fault::PathTrap => {
                    for _ in 0..=number.min(LEVELS_MAX) {
                        out.extend_from_slice(LEVEL);
                    }
                    out.push(b'/');
                    return Some(());
                }
                Fault::Facets => {
                    out.extend_from_slice(b"/shop?");
                    let chosen = digits(number, FACET_VALUES).enumerate().filter(|(_, value)| *value > 0);
                    let chosen: Vec<String> = chosen.map(|(facet, value)| format!("f{facet:02}={value}")).collect();
                    out.extend_from_slice(chosen.join("&").as_bytes());
                    return Some(());
                }
                Fault::Versions => (VERSION, Some(number)),
                Fault::Mirrors => {
                    for digit in digits(number, SECTIONS.len() as u64) {
                        out.push(b'/');
                        out.extend_from_slice(SECTIONS.get(digit as usize)?.as_bytes());
                    }
                    out.push(b'/');
                    return Some(());
                }
                _ => return None,
            },
            Spot::Unknown => return None,
        };
        out.extend_from_slice(prefix.as_bytes());
        if let Some(number) = number {
            push_number(number, out);
        }
        Some(())
    }

    /// Whether it is a page of a maze.
    pub fn is_maze(self) -> bool {
        matches!(self, Spot::Maze(_))
    }

    /// The first page of a maze.
    pub fn entrance(fault: Fault) -> Option<Spot> {
        match fault {
            Fault::Calendar => Some(Spot::Maze(2026 * 12)),
            Fault::SessionIds | Fault::PathTrap => Some(Spot::Maze(0)),
            Fault::Facets | Fault::Versions | Fault::Mirrors => Some(Spot::Maze(1)),
            _ => None,
        }
    }

    /// The pages of a maze that are linked from page `number`. With several doors all numbers occur, so that the maze
    /// grows only with its depth: a crawl up to some depth ends.
    pub fn deeper(fault: Fault, number: u64) -> impl Iterator<Item = Spot> {
        (1..=fault.doors()).map(move |door| match fault {
            // A new identifier for every visit: a bijection of the previous one, so it takes very long until one
            // recurs.
            Fault::SessionIds => Spot::Maze(Draw::new(0, Purpose::Fault, number, 0).bits()),
            _ => Spot::Maze(number.saturating_add(door)),
        })
    }
}

/// The number of a session's address.
fn session(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(SESSION.as_bytes())?;
    let lower = digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
    if digits.len() != 16 || !lower {
        return None;
    }
    u64::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// The number of levels below the first one in an address of a path trap.
fn levels(text: &[u8]) -> Option<u64> {
    let mut rest = text.strip_suffix(b"/")?;
    let mut count = 0u64;
    while let Some(after) = rest.strip_prefix(LEVEL) {
        rest = after;
        count += 1;
    }
    if rest.is_empty() { count.checked_sub(1).filter(|count| *count <= LEVELS_MAX) } else { None }
}

/// The number of a list with these filters.
fn facets(text: &[u8]) -> Option<u64> {
    let query = std::str::from_utf8(text).ok()?.strip_prefix("/shop?")?;
    let mut number = 0u64;
    for parameter in query.split('&') {
        let (facet, value) = parameter.strip_prefix('f')?.split_once('=')?;
        let place = FACET_VALUES.checked_pow(facet.parse().ok()?)?;
        number = number.checked_add(place.checked_mul(value.parse().ok()?)?)?;
    }
    is_written_so(Fault::Facets, number, text)
}

/// The number of a path of sections.
fn sections(text: &[u8]) -> Option<u64> {
    let path = std::str::from_utf8(text).ok()?.strip_prefix('/')?.strip_suffix('/')?;
    let mut number = 0u64;
    for section in path.rsplit('/') {
        let digit = SECTIONS.iter().position(|name| *name == section)? as u64;
        number = number.checked_mul(SECTIONS.len() as u64)?.checked_add(digit)?;
    }
    is_written_so(Fault::Mirrors, number, text)
}

/// Checks that the address is the page's only one.
fn is_written_so(fault: Fault, number: u64, text: &[u8]) -> Option<u64> {
    let mut path = Vec::new();
    Spot::Maze(number).push_path(fault, &mut path)?;
    (number > 0 && path == text).then_some(number)
}

/// The digits of a number, least significant first.
fn digits(number: u64, base: u64) -> impl Iterator<Item = u64> {
    let above = move |rest: &u64| Some(rest / base).filter(|rest| *rest > 0);
    std::iter::successors(Some(number), move |rest| above(rest)).map(move |rest| rest % base)
}

/// Numbered pages of a faulty host.
pub(crate) const PAGES: u64 = 3;
/// Redirects of a chain, not counting its first page's.
pub(crate) const CHAIN: u64 = 60;
/// One level of a path trap.
const LEVEL: &[u8] = b"/deeper";
/// Deepest level served: longer addresses than this do not fit a request head anyway.
const LEVELS_MAX: u64 = 4_096;
const SESSION: &str = "/list?sid=";
const VERSION: &str = "/wiki?title=page&oldid=";
/// Values of a filter, including "not set".
const FACET_VALUES: u64 = 4;
const SECTIONS: [&str; 5] = ["news", "sport", "local", "money", "more"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spots_and_paths_are_inverse() {
        let path = |spot: Spot, fault| {
            let mut path = Vec::new();
            spot.push_path(fault, &mut path).map(|()| String::from_utf8(path).unwrap())
        };
        for fault in Fault::ALL.iter().copied() {
            let mut spots = vec![Spot::Root, Spot::Robots, Spot::Page(1), Spot::Page(3), Spot::Past(1), Spot::Lost(1)];
            spots.extend(Spot::entrance(fault));
            if let Some(Spot::Maze(mut number)) = Spot::entrance(fault) {
                for _ in 0..200 {
                    let Some(Spot::Maze(next)) = Spot::deeper(fault, number).last() else { panic!("{fault:?}") };
                    spots.push(Spot::Maze(next));
                    number = next;
                }
            }
            if fault == Fault::RedirectChain {
                spots.extend([Spot::Chain(1), Spot::Chain(CHAIN)]);
            }
            if fault == Fault::RobotsHuge {
                spots.extend([Spot::Private(1), Spot::Late(1)]);
            }
            for spot in spots {
                let text = path(spot, fault).unwrap();
                assert_eq!(Spot::read(fault, &text), spot, "{fault:?} {text}");
            }
            assert_eq!(path(Spot::Unknown, fault), None);
        }
        assert_eq!(path(Spot::Maze(2), Fault::PathTrap).unwrap(), "/deeper/deeper/deeper/");
        assert_eq!(path(Spot::Maze(9), Fault::Facets).unwrap(), "/shop?f00=1&f01=2");
        assert_eq!(path(Spot::Maze(8), Fault::Facets).unwrap(), "/shop?f01=2");
        assert_eq!(path(Spot::Maze(11), Fault::Mirrors).unwrap(), "/sport/local/");
    }

    #[test]
    fn other_paths_are_unknown() {
        for wrong in
            ["", "x", "/0", "/4", "/01", "/past/", "/past/4", "/chain/1", "/deeper", "/deeper/", "/list?sid=", "//"]
        {
            assert_eq!(Spot::read(Fault::BadChunk, wrong), Spot::Unknown, "{wrong}");
        }
        for (fault, wrong) in [
            (Fault::RedirectChain, "/chain/61"),
            (Fault::SessionIds, "/list?sid=00000000000000000"),
            (Fault::SessionIds, "/list?sid=000000000000000G"),
            (Fault::SessionIds, "/list?sid=000000000000000A"),
            (Fault::PathTrap, "/deeper"),
            (Fault::PathTrap, "/deeper/x/"),
            (Fault::PathTrap, "/deeper//"),
            (Fault::Calendar, "/calendar?month="),
            (Fault::Facets, "/shop?"),
            (Fault::Facets, "/shop?f00=0"),
            (Fault::Facets, "/shop?f01=1&f00=1"),
            (Fault::Facets, "/shop?f00=4"),
            (Fault::Facets, "/shop?f99=1"),
            (Fault::Mirrors, "/sport/news/"),
            (Fault::Mirrors, "/sport"),
            (Fault::Mirrors, "/elsewhere/"),
        ] {
            assert_eq!(Spot::read(fault, wrong), Spot::Unknown, "{wrong}");
        }
    }
}
