//! Files as one process sees them: paths resolved inside its own root, so that a container's links cannot lead out of it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};

use super::processes::RIGHTS;
use crate::evidence::absence::Absent;

/// The file tree of one process.
#[derive(Debug)]
pub struct Rooted {
    pid: u32,
    root: File,
}

impl Rooted {
    /// The tree that process `pid` sees; absent without the right to look into it.
    pub fn of(pid: u32) -> Result<Self, Absent> {
        let path = format!("/proc/{pid}/root");
        openat(
            CWD,
            path.as_str(),
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map(|root| Self {
            pid,
            root: File::from(root),
        })
        .map_err(|error| Absent::new(format!("opening `{path}`: {error}"), RIGHTS))
    }

    /// Opens a regular file of the tree for reading; devices and pipes are refused, so a read never waits.
    pub fn open(&self, path: &Path) -> Result<File, Absent> {
        let file = self
            .open_with(path, OFlags::RDONLY | OFlags::NONBLOCK)
            .map_err(|error| self.absent(path, &error))?;
        let kind = file
            .metadata()
            .map_err(|error| self.absent(path, &error))?
            .file_type();
        if kind.is_file() {
            Ok(file)
        } else {
            Err(Absent::new(
                format!("`{}` is not a regular file", path.display()),
                "name a file",
            ))
        }
    }

    /// The first `limit` bytes of a file of the tree.
    pub fn read(&self, path: &Path, limit: u64) -> Result<Vec<u8>, Absent> {
        let mut bytes = Vec::new();
        self.open(path)?
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| self.absent(path, &error))?;
        Ok(bytes)
    }

    /// Names in a folder of the tree, sorted, at most `limit` of them.
    pub fn list(&self, path: &Path, limit: usize) -> Result<Vec<String>, Absent> {
        let absent = |error: io::Error| self.absent(path, &error);
        let folder = self
            .open_with(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(absent)?;
        let own = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        let mut names: Vec<String> = std::fs::read_dir(own)
            .map_err(absent)?
            .take(limit)
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .collect();
        names.sort_unstable();
        Ok(names)
    }

    /// Whether a path of the tree leads to something.
    pub fn has(&self, path: &Path) -> bool {
        self.open_with(path, OFlags::PATH).is_ok()
    }

    fn open_with(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let file = openat2(
            &self.root,
            path,
            flags | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::IN_ROOT,
        )?;
        Ok(File::from(file))
    }

    fn absent(&self, path: &Path, error: &io::Error) -> Absent {
        let mend = match error.kind() {
            io::ErrorKind::NotFound => "give the path as the server's process sees it".to_owned(),
            io::ErrorKind::PermissionDenied => RIGHTS.to_owned(),
            _ => format!("look at it by hand: `ls -l /proc/{}/root`", self.pid),
        };
        Absent::new(
            format!(
                "reading `{}` as process {} sees it: {error}",
                path.display(),
                self.pid
            ),
            mend,
        )
    }
}

/// A reader that refuses to give more than its budget, so that a damaged file cannot fill the memory.
#[derive(Debug)]
pub(crate) struct Budgeted {
    file: File,
    left: u64,
}

impl Budgeted {
    /// Reads from `file`, `budget` bytes in all.
    pub(crate) fn new(file: File, budget: u64) -> Self {
        Self { file, left: budget }
    }
}

impl Read for Budgeted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.len() as u64 > self.left {
            return Err(io::Error::other(
                "more is asked for than a sound file needs",
            ));
        }
        let read = self.file.read(buffer)?;
        self.left -= read as u64;
        Ok(read)
    }
}

impl Seek for Budgeted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Rooted {
        Rooted::of(std::process::id()).unwrap()
    }

    #[test]
    fn a_file_is_read_as_the_process_sees_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "abcdef").unwrap();
        std::os::unix::fs::symlink(&path, dir.path().join("link")).unwrap();
        assert_eq!(own().read(&dir.path().join("link"), 3).unwrap(), b"abc");
        assert_eq!(own().list(dir.path(), 10).unwrap(), ["link", "x"]);
        assert!(own().has(&path));
        assert!(!own().has(&dir.path().join("y")));
    }

    #[test]
    fn a_pipe_is_refused_instead_of_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let absent = own().open(&path).unwrap_err();
        assert!(absent.why.contains("not a regular file"), "{absent}");
    }

    #[test]
    fn a_missing_file_is_an_absence() {
        let absent = own().read(Path::new("/no/such/file"), 10).unwrap_err();
        assert!(absent.why.contains("/no/such/file"));
    }

    #[test]
    fn a_reader_stops_at_its_budget() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, [7u8; 100]).unwrap();
        let mut reader = Budgeted::new(File::open(path).unwrap(), 60);
        assert_eq!(reader.read(&mut [0; 50]).unwrap(), 50);
        assert!(reader.read(&mut [0; 50]).is_err());
    }
}
