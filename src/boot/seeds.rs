//! Seeds: from arguments and files to URLs.
//!
//! Decides: a line of a file that starts with `#` is a comment. Every bad seed is reported, with its line, what is
//! wrong and what may have been meant, and so is every file that cannot be read or contains no seed; nothing is crawled
//! then.
//! Leaves to others: what one seed must look like (`seed`).

use std::io::Read;
use std::path::Path;

use super::seed;
use crate::url::Url;

/// A bad seed, or a file without any.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub struct SeedError {
    place: String,
    why: String,
}

/// The seeds of the command line and of `files` (`-` is standard input), in order and without duplicates.
pub fn read_seeds(arguments: &[String], files: &[impl AsRef<Path>]) -> Result<Vec<Url>, Vec<SeedError>> {
    let (mut seeds, mut errors) = (Vec::new(), Vec::new());
    let mut take = |place: String, text: &str| match seed::parse(text) {
        Ok(url) => seeds.push(url),
        Err(why) => {
            errors.push(SeedError { place, why: format!("\"{}\": {why}", shortened(&seed::without_password(text))) })
        }
    };
    for (index, text) in arguments.iter().enumerate() {
        take(format!("seed {}", index + 1), text.trim());
    }
    let mut unread = Vec::new();
    for file in files {
        let file = file.as_ref();
        let mut place = file.display().to_string();
        let bytes = read(file);
        let why = match bytes.as_deref().map(str::from_utf8) {
            Ok(Err(error)) => {
                let before = bytes.as_deref().unwrap_or_default().get(..error.valid_up_to()).unwrap_or_default();
                place = format!("{place}:{}", memchr::memchr_iter(b'\n', before).count() + 1);
                "not UTF-8; expected URLs in UTF-8, one a line".to_owned()
            }
            Ok(Ok(text)) => {
                // Editors on Windows put a byte order mark first.
                let text = text.strip_prefix('\u{feff}').unwrap_or(text);
                let lines = text.lines().map(str::trim).enumerate();
                let mut lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).peekable();
                if lines.peek().is_some() {
                    lines.for_each(|(index, line)| take(format!("{}:{}", file.display(), index + 1), line));
                    continue;
                }
                // Whoever gives a file expects its seeds to be crawled, whatever others there are.
                "no seed in it; expected URLs, one a line".to_owned()
            }
            Err(error) => error.to_string(),
        };
        unread.push(SeedError { place, why });
    }
    errors.append(&mut unread);
    let mut known = std::collections::HashSet::new();
    seeds.retain(|seed| known.insert(seed.clone()));
    if errors.is_empty() { Ok(seeds) } else { Err(errors) }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    std::fs::read(path)
}

fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::TempFolder;

    #[test]
    fn arguments_and_files_in_order_each_once() {
        let folder = TempFolder::new("seeds");
        let file = folder.path().join("seeds");
        std::fs::write(&file, "\u{feff}http://example.org/b\r\n  # a comment\nhttp://example.org/\r\n").unwrap();
        let arguments = ["example.org", "https://example.org/a#b"].map(str::to_owned);
        let seeds = read_seeds(&arguments, &[&file]).unwrap();
        let texts: Vec<&str> = seeds.iter().map(Url::as_str).collect();
        assert_eq!(texts, ["http://example.org/", "https://example.org/a", "http://example.org/b"]);
    }

    #[test]
    fn every_bad_seed_is_named() {
        let folder = TempFolder::new("bad-seeds");
        let file = folder.path().join("seeds");
        std::fs::write(&file, "# seeds\nhttp://good.test/\nftp://x.test/\n\nhttp:/wiki.test\n").unwrap();
        let errors = read_seeds(&["mailto:a@b.test".to_owned()], &[&file, &file.with_extension("none")]).unwrap_err();
        let texts: Vec<String> = errors.iter().map(SeedError::to_string).collect();
        assert_eq!(texts.len(), 4, "{texts:?}");
        assert!(texts[0].contains("seed 1") && texts[0].contains("http"));
        assert!(texts[1].contains(":3: \"ftp://x.test/\""));
        assert!(
            texts[2].contains(":5: \"http:/wiki.test\"") && texts[2].ends_with("(did you mean http://wiki.test/?)")
        );
        assert!(texts[3].contains(".none"));
    }
}
