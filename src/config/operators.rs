//! Operators: who runs the machine at an address, if known.
//!
//! Decides: a line is a name and an address range in CIDR notation, or a name and a suffix of names that hosts are
//! aliases of (CNAME), with a dot before it. The range with the longest prefix wins, and ranges take precedence over
//! aliases. Some CDNs and site hosters are built in (`operators.txt`): Cloudflare, Fastly, Imperva and a few smaller
//! ones by address ranges, and others, such as Akamai, CloudFront, Azure and Google, by aliases only. A host of the
//! latter that is not an alias, as a domain's bare name cannot be, is in no group; nor are machines that hosters and
//! clouds rent out. Files of the configuration are read after the table, and their lines win where both have one.
//! Limits: [`LINES_MAX`] lines, [`GROUPS_MAX`] names.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::value::{Field, Value};
use ringcrawl_files::plain;

/// Which operator runs which machines.
#[derive(Clone, Debug, Default)]
pub struct Operators {
    names: Vec<Box<str>>,
    numbers: HashMap<Box<str>, Group>,
    /// By prefix length, longest first: the first bits of addresses, and their operators.
    ranges: Vec<(Prefix, HashMap<u128, Group>)>,
    suffixes: HashMap<Box<str>, Group>,
}

/// The files of a configuration that name operators, and the operators once they were read.
#[derive(Clone, Default)]
pub struct OperatorFiles {
    files: Vec<PathBuf>,
    operators: Option<Arc<Operators>>,
}

/// An operator.
pub type Group = u16;

/// Whether it is IPv4, and its number of bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Prefix {
    is_v4: bool,
    bits: u8,
}

impl OperatorFiles {
    /// The built-in operators and those of the files, which are read at the first call.
    ///
    /// # Errors
    /// What is wrong with the files; never empty.
    pub fn read(&mut self) -> Result<Arc<Operators>, Vec<String>> {
        if let Some(operators) = &self.operators {
            return Ok(Arc::clone(operators));
        }
        let mut operators = Operators::built_in();
        let wrong: Vec<String> =
            self.files.iter().flat_map(|path| operators.read_file(path).err().unwrap_or_default()).collect();
        if !wrong.is_empty() {
            return Err(wrong);
        }
        Ok(Arc::clone(self.operators.insert(Arc::new(operators))))
    }

    /// The paths.
    pub(super) fn files_mut(&mut self) -> &mut Vec<PathBuf> {
        &mut self.files
    }
}

impl PartialEq for OperatorFiles {
    fn eq(&self, other: &OperatorFiles) -> bool {
        self.files == other.files
    }
}

impl fmt::Debug for OperatorFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.files.fmt(f)
    }
}

impl Field for OperatorFiles {
    fn from_value(value: Value) -> Option<OperatorFiles> {
        Field::from_value(value).map(|files| OperatorFiles { files, operators: None })
    }

    fn to_value(&self) -> Value {
        self.files.to_value()
    }
}

impl Operators {
    /// The built-in ones.
    pub fn built_in() -> Operators {
        let mut operators = Operators::default();
        for (number, line) in BUILT_IN.lines().enumerate() {
            // A test reads the same lines.
            let read = operators.read_line(line);
            debug_assert!(read.is_ok(), "line {}: {read:?}", number + 1);
        }
        operators
    }

    /// Adds the lines of `text`.
    ///
    /// # Errors
    /// Each invalid line, with its number and what is wrong.
    pub fn read(&mut self, text: &str) -> Result<(), Vec<(usize, String)>> {
        let lines = text.lines().take(LINES_MAX + 1).enumerate().map(|(number, line)| match number {
            LINES_MAX => Err((number + 1, format!("more than {LINES_MAX} lines"))),
            _ => self.read_line(line).map_err(|wrong| (number + 1, wrong)),
        });
        let wrong: Vec<_> = lines.filter_map(Result::err).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong) }
    }

    /// Adds the lines of a file.
    ///
    /// # Errors
    /// What is wrong with the file, or with its first bad lines, each with its number; never empty.
    pub fn read_file(&mut self, path: &Path) -> Result<(), Vec<String>> {
        let file = path.display();
        let wrong = |what: String| vec![format!("{file}: {what}; expected a file of operators and address ranges")];
        let bytes = plain::read(path, FILE_BYTES_MAX).map_err(|error| wrong(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| wrong("not UTF-8".to_owned()))?;
        self.read(&text).map_err(|wrong| {
            let more = wrong.len().saturating_sub(WRONG_TOLD);
            let mut told: Vec<String> =
                wrong.iter().take(WRONG_TOLD).map(|(line, what)| format!("{file}:{line}: {what}")).collect();
            if more > 0 {
                told.push(format!("{file}: {more} more lines cannot be read"));
            }
            told
        })
    }

    fn read_line(&mut self, line: &str) -> Result<(), String> {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let (name, what) = match (words.next(), words.next(), words.next()) {
            (None, ..) => return Ok(()),
            (Some(name), Some(what), None) => (name, what),
            _ => {
                return Err("expected a name and an address range or suffix, such as `example 192.0.2.0/24`".to_owned());
            }
        };
        let group = self.group(name)?;
        if let Some(suffix) = what.strip_prefix('.') {
            self.suffixes.insert(suffix.trim_end_matches('.').to_ascii_lowercase().into(), group);
            return Ok(());
        }
        let (addr, bits) = what.split_once('/').ok_or_else(|| "no range: it has no `/`".to_owned())?;
        let addr: IpAddr =
            addr.parse().map_err(|_| "no range: the part before the `/` is not an IP address".to_owned())?;
        let bits_max = if addr.is_ipv4() { 32 } else { 128 };
        let bits: u8 = bits
            .parse()
            .ok()
            .filter(|bits| *bits <= bits_max)
            .ok_or_else(|| format!("no range: expected a prefix of 0 to {bits_max} bits after the `/`"))?;
        let prefix = Prefix { is_v4: addr.is_ipv4(), bits };
        let first = prefix.of(addr);
        if first != widened(addr) {
            return Err("the address has bits after its prefix".to_owned());
        }
        let index = match self.ranges.iter().position(|(known, _)| *known == prefix) {
            Some(index) => index,
            None => {
                let index = self.ranges.partition_point(|(known, _)| known.bits >= bits);
                self.ranges.insert(index, (prefix, HashMap::new()));
                index
            }
        };
        if let Some((_, ranges)) = self.ranges.get_mut(index) {
            ranges.insert(first, group);
        }
        Ok(())
    }

    fn group(&mut self, name: &str) -> Result<Group, String> {
        if let Some(group) = self.numbers.get(name) {
            return Ok(*group);
        }
        let too_many = |_| format!("there are more than {GROUPS_MAX} operators");
        let group = Group::try_from(self.names.len()).map_err(too_many)?;
        self.names.push(name.into());
        self.numbers.insert(name.into(), group);
        Ok(group)
    }

    /// The operator of an address.
    pub fn of_address(&self, addr: IpAddr) -> Option<Group> {
        let addr = addr.to_canonical();
        let ranges = self.ranges.iter().filter(|(prefix, _)| prefix.is_v4 == addr.is_ipv4());
        ranges.filter_map(|(prefix, ranges)| ranges.get(&prefix.of(addr)).copied()).next()
    }

    /// The operator of the machine that has one of these names, which are separated by spaces. The last match takes
    /// precedence.
    pub fn of_aliases(&self, aliases: &str) -> Option<Group> {
        aliases.rsplit(' ').find_map(|alias| self.of_alias(alias))
    }

    fn of_alias(&self, alias: &str) -> Option<Group> {
        let mut rest = alias.trim_end_matches('.');
        loop {
            if let Some(group) = self.suffixes.get(rest) {
                return Some(*group);
            }
            rest = rest.split_once('.')?.1;
        }
    }

    /// The operator's name.
    pub fn name(&self, group: Group) -> &str {
        self.names.get(usize::from(group)).map_or("", |name| name)
    }
}

impl Prefix {
    /// The first bits of an address of its family, the others zero.
    fn of(self, addr: IpAddr) -> u128 {
        let all: u32 = if self.is_v4 { 32 } else { 128 };
        let behind = all - u32::from(self.bits);
        let mask = u128::MAX.checked_shl(behind).unwrap_or(0);
        widened(addr) & mask
    }
}

fn widened(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// Maximum number of bad lines reported.
const WRONG_TOLD: usize = 20;
/// Bytes of a file.
const FILE_BYTES_MAX: usize = 64 << 20;
/// Lines of one file.
pub const LINES_MAX: usize = 1 << 20;
/// Operators.
pub const GROUPS_MAX: usize = 1 << Group::BITS;

const BUILT_IN: &str = include_str!("operators.txt");

#[cfg(test)]
mod tests {
    use super::*;

    /// What `politeness.operators` says of the list.
    #[test]
    fn who_is_built_in_is_told() {
        let lines = BUILT_IN.lines().filter_map(|line| line.split_once(' ')).filter(|(name, _)| *name != "#");
        let (mut by_ranges, mut by_aliases) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
        for (name, what) in lines {
            if what.starts_with('.') { &mut by_aliases } else { &mut by_ranges }.insert(name);
        }
        let alone: Vec<&str> = by_aliases.difference(&by_ranges).copied().collect();
        let by_ranges: Vec<&str> = by_ranges.into_iter().collect();
        let told = include_str!("keys.rs").replace("\n        /// ", " ");
        for (head, names) in [("Built in by address ranges: ", by_ranges), ("hosts that are none: ", alone)] {
            let expected = format!("{head}{}.", names.join(", "));
            assert!(told.contains(&expected), "{expected}");
        }
    }

    #[test]
    fn the_list_that_is_built_in_is_right() {
        let mut operators = Operators::default();
        assert_eq!(operators.read(BUILT_IN), Ok(()));
        let of = |addr: &str| operators.of_address(addr.parse().unwrap()).map(|group| operators.name(group));
        assert_eq!(of("104.16.132.229"), Some("cloudflare"));
        assert_eq!(of("::ffff:104.16.132.229"), Some("cloudflare"));
        assert_eq!(of("2606:4700::6810:84e5"), Some("cloudflare"));
        assert_eq!(of("151.101.1.140"), Some("fastly"));
        assert_eq!((of("192.0.2.1"), of("2001:db8::1")), (None, None));
        let of = |alias| operators.of_aliases(alias).map(|group| operators.name(group));
        assert_eq!(of("d111111abcdef8.cloudfront.net."), Some("cloudfront"));
        assert_eq!((of("cloudfront.net.example.org"), of("net"), of("")), (None, None, None));
        assert_eq!(of("x.azurefd.net. shed.example.net. "), Some("azure"), "in the middle of a chain");
    }

    /// Compares with a linear search of the list.
    #[test]
    fn the_longest_prefix_holds() {
        let mut rng = ringcrawl_base::Rng::new(7);
        let mut operators = Operators::default();
        let mut slow: Vec<(u32, u8, Group)> = Vec::new();
        for _ in 0..300 {
            let (group, bits) = (rng.below(40) as Group, rng.below(33) as u8);
            let first = u32::try_from(rng.below(1 << 8)).unwrap() << 24
                & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            let line = format!("g{group} {}/{bits}", std::net::Ipv4Addr::from_bits(first));
            assert_eq!(operators.read(&line), Ok(()), "{line}");
            slow.retain(|(known, known_bits, _)| (*known, *known_bits) != (first, bits));
            slow.push((first, bits, group));
        }
        for _ in 0..10_000 {
            let addr = rng.next() as u32;
            let holds =
                |(first, bits, _): &&(u32, u8, Group)| *bits == 0 || (addr ^ first) >> (32 - u32::from(*bits)) == 0;
            let expected =
                slow.iter().filter(holds).max_by_key(|(_, bits, _)| *bits).map(|(_, _, group)| format!("g{group}"));
            let found = operators.of_address(std::net::Ipv4Addr::from_bits(addr).into());
            assert_eq!(found.map(|group| operators.name(group).to_owned()), expected);
        }
    }

    #[test]
    fn bad_lines_are_named() {
        let mut operators = Operators::built_in();
        let text = "# ours\nours 192.0.2.0/24\nours 192.0.2.1/24\nours\nours 192.0.2.0/33\nours example/8\nours ::/129\n\
                    cloudflare 104.16.0.0/13 x\nours 104.16.0.0/13 # not theirs\nours .Alias.Example.\n";
        let wrong = operators.read(text).expect_err("wrong lines");
        assert_eq!(wrong.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [3, 4, 5, 6, 7, 8], "{wrong:?}");
        let of = |addr: &str| operators.of_address(addr.parse().unwrap()).map(|group| operators.name(group));
        assert_eq!([of("192.0.2.9"), of("104.16.0.1")], [Some("ours"); 2], "the last line holds");
        assert_eq!(operators.of_alias("x.alias.example").map(|group| operators.name(group)), Some("ours"));
    }

    #[test]
    fn mistakes_of_a_file_are_a_line_each() {
        let folder = ringcrawl_base::TempFolder::new("operators");
        let told = |path: &str| Operators::default().read_file(Path::new(path)).expect_err("mistakes");
        let file = folder.file("bad", &"ours\n".repeat(WRONG_TOLD + 3));
        let lines = told(&file);
        assert_eq!(lines.len(), WRONG_TOLD + 1);
        assert!(lines[1].starts_with(&format!("{file}:2: expected a name and")), "{lines:?}");
        assert_eq!(lines[WRONG_TOLD], format!("{file}: 3 more lines cannot be read"));
        let whole = told(&folder.at(""));
        assert!(whole.len() == 1 && whole[0].contains("it is a directory, not a plain file; expected"), "{whole:?}");
    }
}
