//! Writes the output of a plan: the assignment, and pages by rank.
//!
//! Decides: an assignment ("vector") is text, sorted by name, so that any tool can compare two of them:
//!
//! ```text
//! ringcrawl-vector 1 site 8
//! 3<TAB>a.example
//! 0<TAB>b.example
//! ```
//!
//! The first line gives the version, what is assigned (`site`, `host` or `page`), and the number of shards; the
//! others give shard and name. A page without a URL is named by its number. Ranks are `RANK<TAB>URL`, the highest
//! first.
//! Invariants: a file appears under its name when it is complete and on the disk; until then the previous file stays.

use std::fs::{self, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::{Memory, PageGraph, PlanError};
use ringcrawl_brain::route::VectorUnit;
use ringcrawl_crawler::plan_files::VECTOR;

/// Writes an assignment to `shards` shards: `found` has one entry for each page or site.
pub fn write_vector(
    path: &Path,
    graph: &PageGraph,
    unit: VectorUnit,
    shards: u16,
    found: &[u16],
) -> Result<(), PlanError> {
    let name = |vertex: u32| match unit {
        VectorUnit::Page => graph.name(vertex),
        VectorUnit::Site | VectorUnit::Host => graph.site_name(vertex),
    };
    let mut order: Vec<(u32, u16)> = (0..).zip(found.iter().copied()).collect();
    order.sort_unstable_by(|(one, _), (other, _)| name(*one).cmp(name(*other)));
    write_whole(path, |out| {
        writeln!(out, "{VECTOR} {} {shards}", unit.as_str())?;
        order.iter().try_for_each(|(vertex, shard)| writeln!(out, "{shard}\t{}", name(*vertex)))
    })
}

/// Writes the pages by `ranks`; pages of equal rank by name.
pub fn write_ranks(path: &Path, graph: &PageGraph, ranks: &[f64], memory: &mut Memory) -> Result<(), PlanError> {
    let mut order: Vec<(u32, f64)> = memory.list(ranks.len() as u64, "ranks")?;
    order.extend((0..).zip(ranks.iter().copied()));
    order.sort_unstable_by(|(one, rank), (other, more)| {
        more.total_cmp(rank).then_with(|| graph.name(*one).cmp(graph.name(*other)))
    });
    write_whole(path, |out| {
        order.iter().try_for_each(|(page, rank)| writeln!(out, "{rank:.9e}\t{}", graph.name(*page)))
    })?;
    memory.release(order);
    Ok(())
}

/// Writes a file under another name next to `path`, and renames it when it is complete. `-` is standard output. An
/// existing path that is not a plain file (a pipe, a device) is written to directly, and a link is followed to its
/// target.
fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), PlanError> {
    let failed = |error| PlanError::of_file(path, error);
    if path == Path::new("-") {
        let mut out = BufWriter::new(io::stdout().lock());
        return write(&mut out).and_then(|()| out.flush()).map_err(failed);
    }
    match fs::metadata(path) {
        Ok(there) if there.is_file() => {
            // Its name could be given to another file even if the file itself is write-protected.
            OpenOptions::new().append(true).open(path).map_err(failed)?;
        }
        Ok(_) => {
            let mut out = BufWriter::new(OpenOptions::new().write(true).open(path).map_err(failed)?);
            return write(&mut out).and_then(|()| out.flush()).map_err(failed);
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let path = target.as_path();
    let name = path.file_name().ok_or_else(|| failed(io::Error::other("no name of a file")))?;
    let mut open_name = name.to_owned();
    open_name.push(format!(".{}.open", std::process::id()));
    let open = Unfinished(path.with_file_name(open_name));
    // Nothing is written through a link or over another user's file.
    let file = OpenOptions::new().write(true).create_new(true).open(&open.0).map_err(failed)?;
    let mut out = BufWriter::new(file);
    let written = write(&mut out).and_then(|()| out.into_inner().map_err(io::IntoInnerError::into_error));
    written.and_then(|file| file.sync_all()).and_then(|()| fs::rename(&open.0, path)).map_err(failed)
}

/// A file that is removed unless it was completed.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // After the rename it no longer exists.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::weighted::tests::graph;
    use ringcrawl_base::TempFolder;
    use ringcrawl_crawler::plan_files::read_vector;

    #[test]
    fn vectors_and_ranks_as_they_are_documented() {
        let folder = TempFolder::new("vectors");
        let graph = graph(&[("b.test/2", 1), ("a.test/1", 1), ("b.test/1", 1)], &[(0, 1)]);
        let path = folder.path().join("vector");
        let text = || fs::read_to_string(&path).expect("a file");
        write_vector(&path, &graph, VectorUnit::Site, 8, &[7, 0]).expect("written");
        assert_eq!(text(), "ringcrawl-vector 1 site 8\n0\ta.test\n7\tb.test\n");
        write_vector(&path, &graph, VectorUnit::Page, 2, &[1, 0, 0]).expect("written");
        let expected = "ringcrawl-vector 1 page 2\n0\thttp://a.test/1\n0\thttp://b.test/1\n1\thttp://b.test/2\n";
        assert_eq!(text(), expected);
        let mut memory = Memory::new(48);
        write_ranks(&path, &graph, &[0.25, 0.5, 0.25], &mut memory).expect("16 bytes a page");
        assert_eq!(memory, Memory::new(48));
        let lines =
            "5.000000000e-1\thttp://a.test/1\n2.500000000e-1\thttp://b.test/1\n2.500000000e-1\thttp://b.test/2\n";
        assert_eq!(text(), lines);
        let names: Vec<_> =
            fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("a file").file_name()).collect();
        assert_eq!(names, ["vector"]);
        let refused = write_ranks(&path, &graph, &[0.25, 0.5, 0.25], &mut Memory::new(47));
        assert!(refused.is_err_and(|error| error.to_string().starts_with("ranks: 48 bytes of memory are needed")));
    }

    #[test]
    fn a_vector_is_read_as_it_was_written() {
        let folder = TempFolder::new("read-vectors");
        let graph = graph(&[("b.test/2", 1), ("a.test/1", 1), ("b.test/1", 1)], &[(0, 1)]);
        let path = folder.path().join("vector");
        for (unit, found) in
            [(VectorUnit::Site, &[7, 0][..]), (VectorUnit::Host, &[0, 1]), (VectorUnit::Page, &[1, 0, 0])]
        {
            write_vector(&path, &graph, unit, 8, found).expect("written");
            let vector = read_vector(&path, 1 << 20).expect("readable");
            assert_eq!((vector.unit(), vector.shards(), vector.len()), (unit, 8, found.len()));
            let packed = zstd::encode_all(&fs::read(&path).expect("a file")[..], 1).expect("memory");
            fs::write(&path, packed).expect("a file");
            assert_eq!(read_vector(&path, 1 << 20).expect("readable"), vector);
        }
    }

    #[test]
    fn what_fails_leaves_what_was_there() {
        let folder = TempFolder::new("half-vectors");
        let path = PathBuf::from(folder.file("vector", "before"));
        let failed = write_whole(&path, |out| out.write_all(b"half").and(Err(io::Error::other("full"))));
        assert!(failed.is_err_and(|error| error.to_string().ends_with("vector: full")));
        assert_eq!(folder.content("").len(), 2, "the folder and the file");
        assert_eq!(fs::read_to_string(&path).expect("a file"), "before");
        assert!(write_whole(&folder.path().join("none/vector"), |_| Ok(())).is_err());
        // A device stays a device, and a link a link.
        assert!(write_whole(Path::new("/dev/full"), |out| out.write_all(b"all")).is_err());
        assert!(!fs::metadata("/dev/full").expect("a device").is_file());
        let (link, target) = (folder.path().join("link"), folder.path().join("target"));
        fs::write(&target, "old").expect("a file");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        write_whole(&link, |out| out.write_all(b"new")).expect("written");
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(fs::read_to_string(&target).expect("a file"), "new");
        assert!(write_whole(Path::new("/"), |_| Ok(())).is_err());
    }
}
