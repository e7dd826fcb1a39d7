//! Ranks of URLs, as `ringcrawl-lab plan` writes them: one line each of a number, a tab and a URL.
//!
//! Decides: any number is a rank, whichever program computed it, except NaN, which has no order. URLs are in the
//! crawler's own form. The file is read twice: first all lines are checked and counted, so that memory is allocated
//! once.
//! Limits: as many URLs as the caller has room for.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::path::Path;

use ringcrawl_files::lines::{Lines, LinesError};
use ringcrawl_url::Url;

/// The results of `key` for each URL of the file at `path`, with its rank; for at most as many URLs as `room` allows,
/// with the reason.
///
/// # Errors
/// The file, or its first wrong line.
pub fn read_ranks(
    path: &Path,
    (urls_max, why): (u64, &str),
    key: impl Fn(&Url) -> u64,
) -> Result<Vec<(u64, f64)>, LinesError> {
    let mut count = 0;
    let mut lines = Lines::open(path)?;
    while next(&mut lines)?.is_some() {
        count += 1;
        if count > urls_max {
            return Err(lines.bad(format!("more than {urls_max} URLs: {why}")));
        }
    }
    if count == 0 {
        return Err(lines.bad("the list is empty"));
    }
    let mut ranks = Vec::new();
    let room = usize::try_from(count).unwrap_or(usize::MAX);
    if ranks.try_reserve_exact(room).is_err() {
        return Err(lines.bad(format!("not enough memory for {count} URLs")));
    }
    let mut lines = Lines::open(path)?;
    while let Some((rank, url)) = next(&mut lines)? {
        if ranks.len() == room {
            return Err(lines.bad("the file grew while it was read"));
        }
        ranks.push((key(&url), rank));
    }
    Ok(ranks)
}

/// The results of `key` for the `most` URLs of the file at `path` with the highest ranks, of equal ones the first;
/// all lines are checked.
///
/// # Errors
/// The file, or its first wrong line.
pub fn read_highest(path: &Path, most: usize, key: impl Fn(&Url) -> u64) -> Result<Vec<u64>, LinesError> {
    // The lowest is on top.
    let mut highest: BinaryHeap<Reverse<(Rank, Reverse<u64>, u64)>> = BinaryHeap::new();
    let mut lines = Lines::open(path)?;
    let mut line = 0;
    while let Some((rank, url)) = next(&mut lines)? {
        line += 1;
        highest.push(Reverse((Rank(rank), Reverse(line), key(&url))));
        if highest.len() > most {
            highest.pop();
        }
    }
    if line == 0 {
        return Err(lines.bad("the list is empty"));
    }
    Ok(highest.into_iter().map(|Reverse((.., key))| key).collect())
}

/// A rank, in the order of numbers.
struct Rank(f64);

impl Ord for Rank {
    fn cmp(&self, other: &Rank) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Rank {
    fn partial_cmp(&self, other: &Rank) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Rank {
    fn eq(&self, other: &Rank) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Rank {}

fn next(lines: &mut Lines) -> Result<Option<(f64, Url)>, LinesError> {
    let Some(line) = lines.next()? else { return Ok(None) };
    let read = match line.split_once('\t') {
        None => Err("expected a number, a tab and a URL".to_owned()),
        Some((rank, url)) => match (rank.trim().parse::<f64>(), Url::parse(url.trim())) {
            (Err(_), _) => Err(format!("{rank:?} is not a number")),
            (Ok(rank), _) if !rank.is_finite() => Err(format!("{rank} is not a rank")),
            (_, Err(error)) => Err(format!("not a web URL: {error}")),
            (Ok(rank), Ok(url)) => Ok((rank, url)),
        },
    };
    read.map(Some).map_err(|why| lines.bad(why))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use ringcrawl_base::TempFolder;

    fn texts(path: &Path, urls_max: u64) -> Result<Vec<(String, f64)>, String> {
        let urls = RefCell::new(Vec::new());
        let read = read_ranks(path, (urls_max, "raise it"), |url| {
            urls.borrow_mut().push(url.as_str().to_owned());
            0
        });
        let read = read.map_err(|error| error.to_string().replace(&path.display().to_string(), "FILE"))?;
        Ok(urls.into_inner().into_iter().zip(read.into_iter().map(|(_, rank)| rank)).collect())
    }

    #[test]
    fn the_highest_are_kept_and_every_line_is_checked() {
        let folder = TempFolder::new("highest");
        let path = folder.path().join("list");
        let text = |url: &Url| url.as_str().len() as u64;
        std::fs::write(&path, "2\thttp://a.test/\n9\thttp://a.test/b\n2\thttp://a.test/cc\n1e3\thttp://a.test/ddd\n")
            .expect("written");
        let kept = |most: usize| {
            let mut kept = read_highest(&path, most, text).expect("a list");
            kept.sort_unstable();
            kept.iter().map(|bytes| bytes - 14).collect::<Vec<_>>()
        };
        assert_eq!([kept(0), kept(2), kept(3), kept(9)], [vec![], vec![1, 3], vec![0, 1, 3], vec![0, 1, 2, 3]]);
        std::fs::write(&path, "2\thttp://a.test/\nx\thttp://a.test/b\n").expect("written");
        assert!(read_highest(&path, 1, text).unwrap_err().to_string().contains(":2: \"x\" is not a number"));
        std::fs::write(&path, "").expect("written");
        assert!(read_highest(&path, 1, text).is_err());
    }

    #[test]
    fn packed_or_not_by_whatever_program() {
        let folder = TempFolder::new("ranks");
        let path = folder.path().join("ranks");
        let text = "5.000000000e-1\thttp://a.test/1\n2.500000000e-1\thttp://b.test/2\n";
        let expected = vec![("http://a.test/1".to_owned(), 0.5), ("http://b.test/2".to_owned(), 0.25)];
        std::fs::write(&path, text).expect("a file");
        assert_eq!(texts(&path, 2), Ok(expected.clone()));
        std::fs::write(&path, zstd::encode_all(text.as_bytes(), 1).expect("memory")).expect("a file");
        assert_eq!(texts(&path, 2), Ok(expected));
        // Another program's scores, and another spelling.
        std::fs::write(&path, "# scores\n12\tHTTP://A.test:80/x#y\r\n-3.5e2\thttp://a.test\n").expect("a file");
        let expected = vec![("http://a.test/x".to_owned(), 12.0), ("http://a.test/".to_owned(), -350.0)];
        assert_eq!(texts(&path, 2), Ok(expected));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line() {
        let folder = TempFolder::new("bad-ranks");
        for (text, words) in [
            ("1\thttp://a.test/\n\nhttp://b.test/\n", "FILE:3: expected a number, a tab and a URL"),
            ("1\thttp://a.test/\nhigh\thttp://b.test/\n", "FILE:2: \"high\" is not a number"),
            ("NaN\thttp://a.test/\n", "FILE:1: NaN is not a rank"),
            ("1e999\thttp://a.test/\n", "FILE:1: inf is not a rank"),
            ("# nothing\n\n", "FILE:3: the list is empty"),
            ("1\tmailto:a@b.test\n", "FILE:1: not a web URL"),
            ("1\thttp://a.test/\n1\thttp://a.test/2\n1\thttp://a.test/3\n", "FILE:3: more than 2 URLs: raise it"),
        ] {
            let path = folder.path().join("bad");
            std::fs::write(&path, text).expect("a file");
            let error = texts(&path, 2).expect_err("a bad file");
            assert!(error.starts_with(words), "{error}");
        }
    }
}
