//! A text file that is written atomically and that shows whether it is still whole.
//!
//! Decides: the last line is a comment with the crawl's identifier and a checksum of everything before the checksum.
//! A file that was cut, changed, or taken from another crawl is not accepted.
//! Invariants: a file is written under another name, synced and then renamed: after a kill or a power cut there is
//! the old one or the new one.
//! Limits: `FILE_BYTES_MAX`.
//! Leaves to others: the content of the text (`crawl_dir`).

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use ringcrawl_files::{plain, private};

/// Longest file: some ten million seeds.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 30;

/// What is wrong with a sealed file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Unsealed {
    /// It differs from what was written.
    #[error("it is damaged or was changed: {0}")]
    Damaged(&'static str),
    /// It is whole, but belongs to another crawl.
    #[error("it belongs to another crawl ({0})")]
    OfAnother(String),
}

/// The text of a file of the crawl `crawl_id`; `None` if there is no file. The outer error is the system's.
pub(super) fn read(path: &Path, crawl_id: &str) -> io::Result<Option<Result<String, Unsealed>>> {
    let mut bytes = Vec::new();
    match plain::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)) {
        Ok(_) => {
            let of_this = |(text, id)| if id == crawl_id { Ok(text) } else { Err(Unsealed::OfAnother(id)) };
            Ok(Some(unseal(bytes).and_then(of_this)))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The identifier of the crawl of which `path` is a whole file.
pub(super) fn crawl_of(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    plain::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)).ok()?;
    unseal(bytes).ok().map(|(_, id)| id)
}

/// Writes the file `name` in `root`, replacing the existing one.
pub(super) fn write(root: &Path, name: &str, crawl_id: &str, text: &str) -> io::Result<()> {
    let unfinished = format!("{text}# crawl {crawl_id}, {SUM}");
    if (unfinished.len() + SUM_BYTES) as u64 > FILE_BYTES_MAX {
        let why = format!("longer than {FILE_BYTES_MAX} bytes, and could not be read again");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let sum = xxh3_64(unfinished.as_bytes());
    replace(root, name, &format!("{unfinished}{sum:016x}\n"))
}

/// Writes the file `name` in `root` under another name, and then renames it.
pub(super) fn replace(root: &Path, name: &str, text: &str) -> io::Result<()> {
    let open = open_name(root, name);
    let mut file = private::create(&open)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&open, root.join(name))?;
    File::open(root)?.sync_all()
}

/// The name of a file while it is being written.
pub(super) fn open_name(root: &Path, name: &str) -> PathBuf {
    root.join(format!("{name}.open"))
}

/// The text without the seal, and the crawl's identifier.
fn unseal(bytes: Vec<u8>) -> Result<(String, String), Unsealed> {
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(Unsealed::Damaged("it is longer than ringcrawl writes it"));
    }
    let mut text = String::from_utf8(bytes).map_err(|_| Unsealed::Damaged("it is not UTF-8"))?;
    let start = text.strip_suffix('\n').map(|lines| lines.rfind('\n').map_or(0, |end| end + 1));
    let start = start.ok_or(Unsealed::Damaged("its last line is incomplete"))?;
    let line = text.get(start..).unwrap_or_default();
    let seal =
        line.strip_suffix('\n').and_then(|line| line.strip_prefix("# crawl ")).and_then(|line| line.split_once(", "));
    let sum = seal.and_then(|(_, rest)| rest.strip_prefix(SUM));
    let (Some((id, _)), Some(sum)) = (seal, sum) else {
        return Err(Unsealed::Damaged("its last line is not a checksum"));
    };
    let summed = text.len() - sum.len() - 1;
    let is_right = text.as_bytes().get(..summed).is_some_and(|bytes| format!("{:016x}", xxh3_64(bytes)) == sum);
    if !is_right {
        return Err(Unsealed::Damaged("its checksum does not match"));
    }
    let id = id.to_owned();
    text.truncate(start);
    Ok((text, id))
}

/// Bytes of the checksum and the line end.
const SUM_BYTES: usize = 17;
/// The text before the checksum.
const SUM: &str = "xxh3-64 of all before this number: ";

#[cfg(test)]
mod tests {
    use super::*;
    use ringcrawl_base::TempFolder;

    #[test]
    fn what_is_whole_is_read_and_nothing_else() {
        let folder = TempFolder::new("sealed");
        let (root, path) = (folder.path(), folder.path().join("seeds"));
        assert_eq!(read(&path, "id").unwrap(), None);
        for text in ["", "one line\n", "# a comment\ntwo\n"] {
            write(root, "seeds", "id", text).unwrap();
            assert_eq!(read(&path, "id").unwrap(), Some(Ok(text.to_owned())));
            assert!(crawl_of(&path).is_some() && !open_name(root, "seeds").exists());
            assert_eq!(read(&path, "other").unwrap(), Some(Err(Unsealed::OfAnother("id".to_owned()))));
            let right = fs::read(&path).unwrap();
            for at in 0..right.len() {
                // One bit of every byte.
                let mut wrong = right.clone();
                wrong[at] ^= 1 << (at % 8);
                fs::write(&path, &wrong).unwrap();
                assert!(matches!(read(&path, "id").unwrap(), Some(Err(_))), "byte {at} of {text:?}");
                fs::write(&path, &right[..at]).unwrap();
                assert!(
                    matches!(read(&path, "id").unwrap(), Some(Err(Unsealed::Damaged(_)))),
                    "{at} bytes of {text:?}"
                );
            }
            fs::write(&path, [&right[..], b"more\n"].concat()).unwrap();
            assert!(crawl_of(&path).is_none());
        }
    }

    #[test]
    fn what_cannot_be_written_leaves_the_old_file() {
        let folder = TempFolder::new("unsealed");
        write(folder.path(), "seeds", "id", "old\n").unwrap();
        fs::create_dir(open_name(folder.path(), "seeds")).unwrap();
        assert!(write(folder.path(), "seeds", "id", "new\n").is_err());
        assert_eq!(read(&folder.path().join("seeds"), "id").unwrap(), Some(Ok("old\n".to_owned())));
    }
}
