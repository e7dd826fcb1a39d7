//! Reads what a plan wrote: the assignment of URLs to shards, and URLs by rank.
//!
//! Decides: an assignment is exactly what `ringcrawl-lab plan` writes; ranks may come from another program.
//! Limits: memory as the caller gives it; lines as [`ringcrawl_files::lines`] allows.

mod ranks;

use std::path::Path;

use ringcrawl_brain::route::{Vector, VectorBuilder, VectorUnit};
use ringcrawl_files::lines::{Lines, LinesError};

pub use ranks::{read_highest, read_ranks};

/// Reads an assignment, which may use `bytes_max` bytes of memory.
///
/// # Errors
/// The first wrong line: it has another format, an unknown shard, no name, or a name that occurred before.
pub fn read_vector(path: &Path, bytes_max: u64) -> Result<Vector, LinesError> {
    let mut lines = Lines::open(path)?;
    let head = lines.next()?.unwrap_or_default().to_owned();
    let (unit, shards) = read_head(&head)
        .ok_or_else(|| lines.bad("expected \"ringcrawl-vector 1 UNIT SHARDS\", as ringcrawl-lab plan writes it"))?;
    let mut builder = VectorBuilder::new(unit, shards, bytes_max);
    while let Some(line) = lines.next()? {
        let read = match line.split_once('\t').and_then(|(shard, name)| Some((shard.parse().ok()?, name))) {
            Some((shard, name)) => builder.add(shard, name),
            None => Err("expected SHARD<TAB>NAME".to_owned()),
        };
        read.map_err(|why| lines.bad(why))?;
    }
    let vector = builder.build();
    if vector.is_empty() {
        return Err(lines.bad("nothing is assigned"));
    }
    Ok(vector)
}

fn read_head(head: &str) -> Option<(VectorUnit, u16)> {
    let (unit, shards) = head.strip_prefix(VECTOR)?.strip_prefix(' ')?.split_once(' ')?;
    Some((VectorUnit::of_word(unit)?, shards.parse().ok().filter(|shards| *shards > 0)?))
}

/// Name and version of the format.
pub const VECTOR: &str = "ringcrawl-vector 1";

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;

    #[test]
    fn vectors_that_are_wrong_are_told_by_line() {
        let folder = TempFolder::new("bad-vectors");
        for (text, words) in [
            ("", ":1: expected \"ringcrawl-vector 1 UNIT SHARDS\""),
            ("ringcrawl-vector 2 site 8\n", ":1: expected"),
            ("ringcrawl-vector 1 door 8\n", ":1: expected"),
            ("ringcrawl-vector 1 site 0\n", ":1: expected"),
            ("ringcrawl-vector 1 site 65536\n", ":1: expected"),
            ("ringcrawl-vector 1 site 8\n", "nothing is assigned"),
            (
                "ringcrawl-vector 1 site 8\n0\ta.test\n8\tb.test\n",
                ":3: there is no shard 8: the assignment is to 8, from 0",
            ),
            ("ringcrawl-vector 1 site 8\n0\ta.test\n\n1\ta.test\n", ":4: a.test stands here a second time"),
            ("ringcrawl-vector 1 site 8\n0\twww.a.test\n", ":2: www.a.test is no site: it is of a.test"),
            ("ringcrawl-vector 1 page 8\n0\t17\n", ":2: \"17\" is no URL of a page"),
            ("ringcrawl-vector 1 page 8\nhttp://a.test/\n", ":2: expected SHARD<TAB>NAME"),
            ("ringcrawl-vector 1 page 8\n-1\thttp://a.test/\n", ":2: expected SHARD<TAB>NAME"),
        ] {
            let path = folder.file("vector", text);
            let error = read_vector(Path::new(&path), 1 << 20).expect_err(text).to_string();
            assert!(error.contains(words), "{text:?}: {error}");
        }
    }
}
