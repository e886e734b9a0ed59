//! The folder of one run.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::journal::Journal;

/// A run's folder while it is written.
#[derive(Debug)]
pub struct RunDir {
    root: PathBuf,
}

/// The disk would not.
#[derive(Debug)]
pub struct ArchiveError {
    path: PathBuf,
    doing: &'static str,
    cause: String,
    help: &'static str,
}

impl ArchiveError {
    /// An I/O error with the path that it happened at.
    pub fn at(path: &Path, doing: &'static str, cause: io::Error) -> Self {
        let help = match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "free some space, or name another folder with `--out`; what was measured before is kept"
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "name a folder that can be written with `--out`"
            }
            io::ErrorKind::AlreadyExists => {
                "name another folder with `--out`: a run never overwrites another"
            }
            io::ErrorKind::NotFound => {
                "is this a run directory (it holds `gate.toml` and `evidence/`)?"
            }
            _ => "look at the disk",
        };
        Self {
            path: path.to_owned(),
            doing,
            cause: cause.to_string(),
            help,
        }
    }

    /// A file that reads, but not as what it should be.
    pub fn unreadable(path: &Path, cause: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            doing: "read",
            cause: cause.into(),
            help: "the run directory was changed after the run, or written by a newer version",
        }
    }
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cannot {} `{}`: {}; {}",
            self.doing,
            self.path.display(),
            self.cause,
            self.help
        )
    }
}

impl std::error::Error for ArchiveError {}

impl RunDir {
    /// Makes the folder of a new run with the gate in it.
    ///
    /// # Errors
    /// When it exists already or cannot be written: better in second 0 than in hour 2.
    pub fn create(root: PathBuf, gate_source: &str) -> Result<Self, ArchiveError> {
        if root.join("evidence").exists() {
            return Err(ArchiveError::at(
                &root,
                "create",
                io::ErrorKind::AlreadyExists.into(),
            ));
        }
        for sub in ["evidence/scrapes", "evidence/logs", "evidence/scores"] {
            let path = root.join(sub);
            fs::create_dir_all(&path).map_err(|e| ArchiveError::at(&path, "create", e))?;
        }
        let dir = Self { root };
        dir.write("gate.toml", gate_source.as_bytes())?;
        Ok(dir)
    }

    /// The folder of a run that is there.
    pub fn open(root: PathBuf) -> Self {
        Self { root }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Path of a file in the evidence folder.
    pub fn evidence(&self, relative: &str) -> PathBuf {
        self.root.join("evidence").join(relative)
    }

    /// The journal of a new run.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn journal(&self) -> Result<Journal, ArchiveError> {
        Journal::create(&self.evidence("journal.jsonl"))
    }

    /// Writes a whole file, under a temporary name first so that a reader never sees half of it.
    ///
    /// # Errors
    /// When the disk refuses it.
    pub fn write(&self, relative: &str, bytes: &[u8]) -> Result<(), ArchiveError> {
        let path = self.root.join(relative);
        let part = path.with_extension("part");
        fs::write(&part, bytes).map_err(|e| ArchiveError::at(&path, "write", e))?;
        fs::rename(&part, &path).map_err(|e| ArchiveError::at(&path, "write", e))
    }

    /// Reads a text file of the run.
    ///
    /// # Errors
    /// When it is not there or not UTF-8.
    pub fn read(&self, relative: &str) -> Result<String, ArchiveError> {
        let path = self.root.join(relative);
        fs::read_to_string(&path).map_err(|e| ArchiveError::at(&path, "read", e))
    }
}

/// Lower-case hex SHA-256.
pub fn sha256_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
