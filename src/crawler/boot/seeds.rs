//! Seeds: from arguments and files to URLs with their options.
//!
//! Decides: a line of a file is a seed, a comment or empty. `#` begins a comment at the start of a line and after
//! white space; in a URL it begins the fragment. A file that begins as gzip is unpacked, whatever its name; `-` is
//! standard input. Every bad seed is reported, with its line, what is wrong and what may have been meant. So is every
//! file that cannot be read or contains no seed; nothing is crawled then. With `seeds.errors = "skip"` bad lines are
//! reported and skipped; bad arguments and files are refused.
//! Files are read line by line: only their seeds are kept in memory.
//! Limits: a file of [`FILE_BYTES_MAX`], unpacked; a line of [`LINE_BYTES_MAX`]; [`TOLD_MAX`] mistakes per file.
//! Leaves to others: what one seed must look like (`seed`), what its options mean (`ringcrawl_brain::seed`).

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use super::sealed_file::FILE_BYTES_MAX;
use super::seed;
use ringcrawl_brain::seed::{Seed, SeedList, SeedOptions};
use ringcrawl_config::SeedErrors;

/// A bad seed, or a file without any.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub struct SeedError {
    place: String,
    why: String,
    is_of_file: bool,
}

impl SeedError {
    /// Whether it concerns a whole file, so that the message should name the option that named the file.
    pub fn is_of_file(&self) -> bool {
        self.is_of_file
    }
}

/// Seeds that were read.
#[derive(Debug, Default)]
pub struct SeedsRead {
    /// In order, and without duplicates.
    pub seeds: Vec<Seed>,
    /// Lines that are not seeds and are skipped.
    pub skipped: Vec<SeedError>,
}

/// The seeds of the command line and of `files` (`-` is standard input).
///
/// # Errors
/// What an operator can fix; never empty. It includes lines of files only with [`SeedErrors::Refuse`], or where a
/// file has nothing else.
pub fn read_seeds(
    arguments: &[String],
    files: &[impl AsRef<Path>],
    on_errors: SeedErrors,
) -> Result<SeedsRead, Vec<SeedError>> {
    let (mut seeds, mut errors, mut wrong_lines) = (SeedList::default(), Vec::new(), Vec::new());
    for (index, text) in arguments.iter().enumerate() {
        match one_by_one(text.trim()).and_then(|()| parse(text.trim())) {
            Ok(seed) => seeds.push(seed),
            Err(why) => errors.push(SeedError { place: format!("seed {}", index + 1), why, is_of_file: false }),
        }
    }
    // Errors about whole files are reported after all seeds.
    let mut unread = Vec::new();
    for file in files {
        let file = file.as_ref();
        if let Err(error) = open(file)
            .map_err(|error| at(file, None, format!("{error}{}", several(file))))
            .and_then(|lines| read_lines(file, lines, on_errors, &mut seeds, &mut wrong_lines))
        {
            unread.push(error);
        }
    }
    if on_errors == SeedErrors::Refuse || !errors.is_empty() || !unread.is_empty() {
        errors.append(&mut wrong_lines);
    }
    errors.append(&mut unread);
    if errors.is_empty() { Ok(SeedsRead { seeds: seeds.into_seeds(), skipped: wrong_lines }) } else { Err(errors) }
}

/// The part of a line before a comment. A `#` inside a word begins a URL's fragment.
fn before_comment(line: &str) -> &str {
    let mut ends = line.match_indices('#').map(|(at, _)| line.split_at(at).0);
    ends.find(|before| before.is_empty() || before.ends_with(char::is_whitespace)).unwrap_or(line).trim()
}

/// A seed of a line or an argument, already trimmed.
fn parse(text: &str) -> Result<Seed, String> {
    let (url, options) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let quoted = |why| format!("\"{}\": {why}", shortened(&seed::without_password(text)));
    // Without "=" it is a URL with a space in it, or a remark.
    if !options.is_empty() && !options.split_whitespace().all(|word| word.contains('=')) {
        return seed::parse(text).map(Seed::from).map_err(quoted);
    }
    let url = seed::parse(url).map_err(quoted)?;
    let options = if options.is_empty() { None } else { Some(SeedOptions::parse(options).map_err(quoted)?) };
    Ok(Seed { url, options: options.map(Box::new) })
}

/// The seeds of a file; an error concerns the whole file, and stops reading it.
fn read_lines(
    file: &Path,
    lines: impl BufRead,
    on_errors: SeedErrors,
    seeds: &mut SeedList,
    errors: &mut Vec<SeedError>,
) -> Result<(), SeedError> {
    let mut lines = lines.take(FILE_BYTES_MAX + 1);
    let (mut line, mut number, mut is_without, mut wrong) = (Vec::new(), 0, true, 0);
    loop {
        line.clear();
        number += 1;
        let read = (&mut lines).take(LINE_BYTES_MAX + 1).read_until(b'\n', &mut line);
        let here = |why: String| at(file, Some(number), why);
        let bytes = read.map_err(|error| here(error.to_string()))?;
        if lines.limit() == 0 {
            return Err(here(format!(
                "the unpacked file exceeds {FILE_BYTES_MAX} bytes here; expected less, or several files"
            )));
        }
        if bytes == 0 {
            break;
        }
        let is_long = bytes as u64 > LINE_BYTES_MAX;
        let read = match str::from_utf8(&line) {
            _ if is_long => Err(format!("longer than {LINE_BYTES_MAX} bytes; expected URLs, one a line")),
            Err(_) => Err("not UTF-8; expected URLs in UTF-8, one a line".to_owned()),
            // Editors on Windows put a byte order mark first.
            Ok(text) => match before_comment(text.strip_prefix('\u{feff}').filter(|_| number == 1).unwrap_or(text)) {
                "" => continue,
                text => parse(text),
            },
        };
        // A file that is not text at all is not a list.
        let is_text = !is_long && str::from_utf8(&line).is_ok();
        match read {
            Ok(seed) => {
                is_without = false;
                seeds.push(seed);
            }
            Err(why) if !is_text && on_errors == SeedErrors::Refuse => return Err(here(why)),
            Err(why) => {
                wrong += 1;
                if wrong <= TOLD_MAX {
                    errors.push(here(why));
                }
            }
        }
        if is_long && !line.ends_with(b"\n") {
            lines.skip_until(b'\n').map_err(|error| at(file, Some(number), error.to_string()))?;
        }
        if wrong >= TOLD_MAX && on_errors == SeedErrors::Refuse {
            return Err(at(
                file,
                Some(number),
                format!("{TOLD_MAX} errors up to here; the rest of the file was not read"),
            ));
        }
    }
    if let Some(more) = wrong.checked_sub(TOLD_MAX).filter(|more| *more > 0) {
        errors.push(at(file, None, format!("{more} more lines are not seeds")));
    }
    // An operator who gives a file expects its seeds to be crawled, whatever other seeds there are.
    match is_without && (wrong == 0 || on_errors == SeedErrors::Skip) {
        true => Err(at(file, None, "no seed in it; expected URLs, one a line".to_owned())),
        false => Ok(()),
    }
}

fn at(file: &Path, line: Option<u64>, why: String) -> SeedError {
    let file = file.display();
    let place = line.map_or_else(|| file.to_string(), |line| format!("{file}:{line}"));
    SeedError { place, why, is_of_file: line.is_none() }
}

/// The text of a file, unpacked.
fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut source: Box<dyn BufRead> = match path == Path::new("-") {
        true => Box::new(BufReader::new(io::stdin())),
        false => Box::new(BufReader::new(File::open(path)?)),
    };
    // RFC 1952 section 2.3.1: no text begins with this. A pipe may return one byte at first.
    let mut first = Vec::new();
    source.by_ref().take(GZIP.len() as u64).read_to_end(&mut first)?;
    let is_packed = first == GZIP;
    let source = io::Cursor::new(first).chain(source);
    Ok(if is_packed {
        Box::new(BufReader::new(flate2::bufread::MultiGzDecoder::new(source)))
    } else {
        Box::new(source)
    })
}

/// What to do if one name may be meant for several files.
fn several(file: &Path) -> String {
    let names: Vec<&str> = file.to_str().unwrap_or_default().split(',').map(str::trim).collect();
    if names.len() < 2 || names.contains(&"") {
        return String::new();
    }
    let options: Vec<String> = names.iter().map(|name| format!("--seeds {name}")).collect();
    format!("; give several files one by one: {}", options.join(" "))
}

/// Arguments are given with spaces between them. To the URL standard a comma is part of a path.
fn one_by_one(text: &str) -> Result<(), String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let are_seeds = parts.len() > 1 && parts.iter().all(|part| seed::parse(part).is_ok());
    let begin_like_one = parts.iter().skip(1).all(|part| {
        let is_host = !part.contains('/') && part.contains('.');
        is_host || part.starts_with("http://") || part.starts_with("https://")
    });
    if are_seeds && begin_like_one {
        return Err(format!("\"{}\": give several seeds one by one: {}", shortened(text), parts.join(" ")));
    }
    Ok(())
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

const GZIP: [u8; 2] = [0x1f, 0x8b];
/// A URL has 65,535 bytes at most, and options follow it.
const LINE_BYTES_MAX: u64 = 1 << 17;
/// Mistakes reported per file: a file that is not a list of seeds at all has millions.
const TOLD_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    use ringcrawl_base::TempFolder;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text).expect("memory");
        packed.finish().expect("memory")
    }

    fn error_of(folder: &TempFolder, bytes: &[u8]) -> String {
        let path = folder.path().join("wrong");
        std::fs::write(&path, bytes).unwrap();
        read_seeds(&[], &[&path], SeedErrors::Refuse).unwrap_err().iter().map(|error| format!("{error}\n")).collect()
    }

    #[test]
    fn packed_files_are_known_by_their_first_bytes() {
        let folder = TempFolder::new("packed-seeds");
        let path = folder.path().join("seeds.txt");
        // Two members, as tools append them.
        let bytes = [packed(b"http://a.test/ pages=3\n"), packed(b"b.test\n# c.test\n")].concat();
        std::fs::write(&path, &bytes).unwrap();
        let seeds = read_seeds(&[], &[&path], SeedErrors::Refuse).unwrap().seeds;
        let texts: Vec<String> = seeds.iter().map(Seed::to_string).collect();
        assert_eq!(texts, ["http://a.test/ pages=3", "http://b.test/"]);
        assert!(error_of(&folder, &bytes[..bytes.len() - 9]).contains("wrong:"), "cut short");
        assert!(error_of(&folder, b"\x1f\x8bhttp://a.test/\n").contains("wrong:1: "), "none");
        assert!(error_of(&folder, b"\x1f").contains("wrong:1: "), "a byte");
        assert!(error_of(&folder, &packed(b"ftp://a.test/\n")).contains("wrong:1: \"ftp://a.test/\""));
    }

    #[test]
    fn bombs_are_bounded() {
        let folder = TempFolder::new("seed-bombs");
        let line = error_of(&folder, &packed(&vec![b'x'; 1 << 26]));
        assert!(line.contains("wrong:1: longer than 131072 bytes"), "{line}");
        let lines = error_of(&folder, &packed("x\n".repeat(1 << 20).as_bytes()));
        assert!(lines.lines().count() == TOLD_MAX + 1 && lines.contains("wrong:1000: 1000 errors"), "{lines}");
        // More than a gigabyte in one megabyte.
        let comment = format!("#{}\n", "x".repeat(100_000));
        let piece = packed(comment.repeat(160).as_bytes());
        let long = error_of(&folder, &piece.repeat(68));
        assert!(long.contains("the unpacked file exceeds 1073741824 bytes here"), "{long}");
    }

    #[test]
    fn arguments_and_files_in_order_each_once() {
        let folder = TempFolder::new("seeds");
        let file = folder.path().join("seeds");
        std::fs::write(&file, "\u{feff}http://example.org/b\r\n  # a comment\nhttp://example.org/\r\n").unwrap();
        let arguments = ["example.org", "https://example.org/a#b"].map(str::to_owned);
        let seeds = read_seeds(&arguments, &[&file], SeedErrors::Refuse).unwrap().seeds;
        let texts: Vec<String> = seeds.iter().map(Seed::to_string).collect();
        assert_eq!(texts, ["http://example.org/", "https://example.org/a", "http://example.org/b"]);
    }

    #[test]
    fn every_bad_seed_is_named() {
        let folder = TempFolder::new("bad-seeds");
        let file = folder.path().join("seeds");
        std::fs::write(&file, "# seeds\nhttp://good.test/\nftp://x.test/\n\nhttp:/wiki.test\n").unwrap();
        let errors =
            read_seeds(&["mailto:a@b.test".to_owned()], &[&file, &file.with_extension("none")], SeedErrors::Refuse)
                .unwrap_err();
        let texts: Vec<String> = errors.iter().map(SeedError::to_string).collect();
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(texts[0].contains("seed 1") && texts[0].contains("http"));
        assert!(texts[1].contains(":3: \"ftp://x.test/\""));
        assert!(
            texts[2].contains(":5: \"http:/wiki.test\"") && texts[2].ends_with("(did you mean http://wiki.test/?)")
        );
        assert!(errors[3].is_of_file() && texts[3].contains(".none: No such file"), "{texts:?}");
    }

    /// Only after white space: in a URL it begins the fragment.
    #[test]
    fn a_number_sign_behind_white_space_begins_a_comment() {
        for (line, seed) in [
            ("http://a.test/ # ours", Some("http://a.test/")),
            ("http://a.test/#part", Some("http://a.test/")),
            ("http://a.test/x#part # ours # twice", Some("http://a.test/x")),
            ("a.test pages=3 depth=1\t#three", Some("http://a.test/ pages=3 depth=1")),
            ("a.test #", Some("http://a.test/")),
            ("a.test\u{a0}# a space of a word processor", Some("http://a.test/")),
            ("a.test/?q=a#b pages=1", Some("http://a.test/?q=a pages=1")),
            ("  # http://a.test/", None),
            ("#a.test", None),
        ] {
            let folder = TempFolder::new("seed-comments");
            let file = folder.file("seeds", &format!("{line}\nb.test\n"));
            let seeds =
                read_seeds(&[], &[&file], SeedErrors::Refuse).unwrap_or_else(|errors| panic!("{errors:?}")).seeds;
            let texts: Vec<String> = seeds.iter().map(Seed::to_string).collect();
            let expected: Vec<&str> = seed.into_iter().chain(["http://b.test/"]).collect();
            assert_eq!(texts, expected, "{line:?}");
        }
    }

    /// Each bad line is reported with its number, and the lines around it are read, even after a line that is not
    /// text or has no end.
    #[test]
    fn bad_lines_are_skipped_where_that_is_wanted() {
        let folder = TempFolder::new("skipped-seeds");
        let file = folder.path().join("seeds");
        let long = [&b"x".repeat(300_000)[..], b"\n"].concat();
        let lines =
            [b"http://a.test/\nftp://x.test/\n\xff\xfe\n", &long[..], b"b.test nonsense=1\nc.test # last\n"].concat();
        std::fs::write(&file, &lines).unwrap();
        let SeedsRead { seeds, skipped } = read_seeds(&[], &[&file], SeedErrors::Skip).unwrap();
        assert_eq!(seeds.iter().map(Seed::to_string).collect::<Vec<_>>(), ["http://a.test/", "http://c.test/"]);
        let told: Vec<String> = skipped.iter().map(SeedError::to_string).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        for (told, why) in told.iter().zip([
            "seeds:2: \"ftp://x.test/\": the scheme is not http or https",
            "seeds:3: not UTF-8",
            "seeds:4: longer than 131072 bytes",
            "seeds:5: \"b.test nonsense=1\": \"nonsense\" is no option",
        ]) {
            assert!(told.contains(why), "{told}");
        }
        // A list that would leave nothing is refused, and so is a file that is not a list of lines.
        let refused = |arguments: &[&str], text: &str| {
            std::fs::write(&file, text).unwrap();
            let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
            read_seeds(&arguments, &[&file], SeedErrors::Skip).unwrap_err().len()
        };
        assert_eq!(refused(&[], "ftp://x.test/\n# a.test\n"), 2);
        assert_eq!(refused(&["ftp://x.test/"], "a.test\n"), 1);
        let many = format!("a.test\n{}", "ftp://x.test/\n".repeat(TOLD_MAX + 7));
        std::fs::write(&file, many).unwrap();
        let skipped = read_seeds(&[], &[&file], SeedErrors::Skip).unwrap().skipped;
        assert_eq!(skipped.len(), TOLD_MAX + 1);
        assert!(
            skipped[TOLD_MAX].to_string().ends_with("seeds: 7 more lines are not seeds"),
            "{:?}",
            skipped[TOLD_MAX]
        );
    }
}
