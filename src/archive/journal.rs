//! The journal: append-only, one JSON record a line, on disk before anything else happens.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::record::Record;
use super::rundir::ArchiveError;

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    line: Vec<u8>,
}

impl Journal {
    /// A new journal at this path.
    ///
    /// # Errors
    /// When the file exists or cannot be made.
    pub fn create(path: &Path) -> Result<Self, ArchiveError> {
        let file = OpenOptions::new()
            .create_new(true)
            .append(true)
            .open(path)
            .map_err(|e| ArchiveError::at(path, "create", e))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            line: Vec::with_capacity(4096),
        })
    }

    /// Appends one record in a single write.
    ///
    /// A window's record is synced to the device; requests are left to the kernel, which keeps them over a crash of ours.
    ///
    /// # Errors
    /// When the disk refuses it (full, gone, read-only).
    pub fn append(&mut self, record: &Record) -> Result<(), ArchiveError> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, record)
            .map_err(|e| ArchiveError::at(&self.path, "write", std::io::Error::other(e)))?;
        self.line.push(b'\n');
        self.file
            .write_all(&self.line)
            .map_err(|e| ArchiveError::at(&self.path, "write", e))?;
        if !matches!(record, Record::Exchange { .. }) {
            self.file
                .sync_data()
                .map_err(|e| ArchiveError::at(&self.path, "sync", e))?;
        }
        Ok(())
    }
}
