//! Files through the ring: writes of the store and the journals never block the shard.
//!
//! Decides: offsets are always explicit; a write is repeated until everything is written. Opening, reading, writing,
//! reserving, syncing, renaming and removing are ring operations. Truncating is a system call: the ring learned it
//! only in Linux 6.9, and it is rare.
//! Invariants: bytes and paths given to the kernel stay with their operation; dropping a future does not cancel a file
//! operation, which soon ends by itself. `create_new` never opens an existing file; no symbolic link is followed.
//! Limits: durable means that `sync` of the file and then `sync_dir` of its directory both returned without error.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;

use io_uring::{opcode, types};

use super::op;
use ringcrawl_files::private;

/// An open file. Closed when the last clone is dropped.
#[derive(Clone)]
pub struct File {
    fd: Rc<OwnedFd>,
}

impl File {
    /// Creates a file for reading and writing; an error when the name is taken.
    pub async fn create_new(path: &Path) -> io::Result<File> {
        File::open_with(path, libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_NOFOLLOW).await
    }

    /// Opens a file for reading and writing, creating an empty one when there is none.
    pub async fn open_or_create(path: &Path) -> io::Result<File> {
        File::open_with(path, libc::O_RDWR | libc::O_CREAT | libc::O_NOFOLLOW).await
    }

    /// Opens an existing file for reading.
    pub async fn open(path: &Path) -> io::Result<File> {
        File::open_with(path, libc::O_RDONLY | libc::O_NOFOLLOW).await
    }

    async fn open_with(path: &Path, flags: libc::c_int) -> io::Result<File> {
        let path = c_path(path)?;
        let entry = opcode::OpenAt::new(types::Fd(libc::AT_FDCWD), path.as_ptr())
            .flags(flags | libc::O_CLOEXEC)
            .mode(private::FILE_MODE)
            .build();
        let (result, _) = op::submit(entry, path).await;
        let fd = libc::c_int::try_from(result.map_err(private::in_words)?)
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        // SAFETY: the kernel gave this new descriptor to this operation; nothing else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(File { fd: Rc::new(fd) })
    }

    /// Writes all of `bytes` at `offset`, and returns them.
    pub async fn write_all_at(&self, bytes: Vec<u8>, offset: u64) -> (io::Result<()>, Vec<u8>) {
        self.write_all(bytes, offset, 0).await
    }

    /// The same, and the written data leaves the page cache once it is on the device (RWF_DONTCACHE, Linux 6.14).
    /// `EOPNOTSUPP` if the file system or the kernel does not support it.
    pub async fn write_all_uncached_at(&self, bytes: Vec<u8>, offset: u64) -> (io::Result<()>, Vec<u8>) {
        self.write_all(bytes, offset, libc::RWF_DONTCACHE).await
    }

    async fn write_all(&self, mut bytes: Vec<u8>, offset: u64, flags: i32) -> (io::Result<()>, Vec<u8>) {
        let mut written = 0;
        loop {
            let rest = bytes.get(written..).unwrap_or_default();
            if rest.is_empty() {
                return (Ok(()), bytes);
            }
            let length = u32::try_from(rest.len()).unwrap_or(CHUNK_BYTES_MAX).min(CHUNK_BYTES_MAX);
            let entry = opcode::Write::new(types::Fd(self.fd.as_raw_fd()), rest.as_ptr(), length)
                .offset(offset.saturating_add(written as u64))
                .rw_flags(flags)
                .build();
            let (result, (returned, _)) = op::submit(entry, (bytes, self.fd.clone())).await;
            bytes = returned;
            match result {
                Ok(0) => return (Err(io::ErrorKind::WriteZero.into()), bytes),
                Ok(more) => written += more as usize,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (Err(error), bytes),
            }
        }
    }

    /// Reads up to `bytes_max` bytes at `offset`; fewer only at the end of the file.
    pub async fn read_at(&self, bytes_max: usize, offset: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0u8; bytes_max];
        let mut read = 0;
        while let Some(rest) = bytes.get_mut(read..).filter(|rest| !rest.is_empty()) {
            let length = u32::try_from(rest.len()).unwrap_or(CHUNK_BYTES_MAX).min(CHUNK_BYTES_MAX);
            let entry = opcode::Read::new(types::Fd(self.fd.as_raw_fd()), rest.as_mut_ptr(), length)
                .offset(offset.saturating_add(read as u64))
                .build();
            let (result, (returned, _)) = op::submit(entry, (bytes, self.fd.clone())).await;
            bytes = returned;
            match result {
                Ok(0) => break,
                Ok(more) => read += more as usize,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Reserves space for `bytes` from the beginning of the file; its length does not change (fallocate(2)). The next
    /// [`File::truncate`] frees what is beyond the end. Not every file system supports it.
    pub async fn reserve(&self, bytes: u64) -> io::Result<()> {
        let entry = opcode::Fallocate::new(types::Fd(self.fd.as_raw_fd()), bytes).mode(libc::FALLOC_FL_KEEP_SIZE);
        op::submit(entry.build(), self.fd.clone()).await.0.map(drop)
    }

    /// Waits until data, and the length needed to read it, are on the device (fdatasync).
    pub async fn sync(&self) -> io::Result<()> {
        let entry = opcode::Fsync::new(types::Fd(self.fd.as_raw_fd())).flags(types::FsyncFlags::DATASYNC).build();
        op::submit(entry, self.fd.clone()).await.0.map(drop)
    }

    /// Truncates or extends the file to `bytes` bytes. Blocks for as long as the file system needs.
    pub fn truncate(&self, bytes: u64) -> io::Result<()> {
        let length = libc::off_t::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        // SAFETY: two integers; the descriptor is open while `self` lives.
        let result = unsafe { libc::ftruncate(self.fd.as_raw_fd(), length) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Closes through the ring, after what was submitted before.
    pub fn close(self) {
        if let Ok(fd) = Rc::try_unwrap(self.fd) {
            op::close(fd);
        }
    }
}

/// Renames `from` to `to`, replacing a file of that name.
pub async fn rename(from: &Path, to: &Path) -> io::Result<()> {
    let paths = (c_path(from)?, c_path(to)?);
    let here = types::Fd(libc::AT_FDCWD);
    let entry = opcode::RenameAt::new(here, paths.0.as_ptr(), here, paths.1.as_ptr()).build();
    op::submit(entry, paths).await.0.map(drop)
}

/// Removes the file `path`.
pub async fn remove(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    let entry = opcode::UnlinkAt::new(types::Fd(libc::AT_FDCWD), path.as_ptr()).build();
    op::submit(entry, path).await.0.map(drop)
}

/// Makes the names in the directory `path` durable.
pub async fn sync_dir(path: &Path) -> io::Result<()> {
    let folder = File::open_with(path, libc::O_RDONLY | libc::O_DIRECTORY).await?;
    let entry = opcode::Fsync::new(types::Fd(folder.fd.as_raw_fd())).build();
    op::submit(entry, folder.fd.clone()).await.0.map(drop)
}

/// One operation moves at most this many bytes: a file operation takes at most 2 GiB less a page.
const CHUNK_BYTES_MAX: u32 = 1 << 30;

fn c_path(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(|_| io::ErrorKind::InvalidInput.into())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::super::Runtime;
    use super::*;
    use ringcrawl_base::TempFolder;

    #[test]
    fn writes_syncs_renames_cuts() {
        let temp = TempFolder::new("file");
        let folder = temp.path();
        Runtime::new(8).expect("io_uring").block_on(async {
            let (first, second) = (folder.join("first"), folder.join("second"));
            let file = File::create_new(&first).await.expect("create");
            let again = File::create_new(&first).await.err().expect("exists");
            assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
            let (result, bytes) = file.write_all_at(vec![7; 100_000], 10).await;
            result.expect("write");
            assert_eq!(bytes.len(), 100_000);
            assert_eq!(std::fs::metadata(&first).expect("metadata").len(), 100_010);
            // tmpfs, ext4 and XFS support it; on others there is nothing to check.
            let blocks = || std::fs::metadata(&first).expect("metadata").blocks();
            let before = blocks();
            if file.reserve(1 << 20).await.is_ok() {
                assert_eq!(std::fs::metadata(&first).expect("metadata").len(), 100_010);
                assert!(blocks() * 512 >= 1 << 20, "{} blocks, {before} before", blocks());
                file.truncate(100_010).expect("truncate");
                assert_eq!(blocks(), before);
            }
            file.truncate(12).expect("truncate");
            file.sync().await.expect("sync");
            assert_eq!(file.read_at(100, 8).await.expect("read"), [0, 0, 7, 7]);
            file.close();
            rename(&first, &second).await.expect("rename");
            sync_dir(folder).await.expect("sync folder");
            let file = File::open(&second).await.expect("open");
            assert_eq!(std::fs::metadata(&second).expect("metadata").len(), 12);
            assert!(file.write_all_at(vec![1], 0).await.0.is_err(), "opened for reading");
            let link = folder.join("link");
            std::os::unix::fs::symlink(&second, &link).expect("a link");
            for opened in [File::open(&link).await, File::open_or_create(&link).await, File::create_new(&link).await] {
                assert!(opened.is_err(), "a link is not followed");
            }
            remove(&second).await.expect("remove");
            assert!(File::open(&second).await.is_err());
        });
    }
}
