//! The copy of a log on disk: appends bytes, counts them, and notes what went wrong.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use super::log_source::GapSign;
use crate::evidence::absence::Absent;
use crate::evidence::log_copy::{INCIDENT_LIMIT, LogIncident};

/// Bytes of one copy at most. A day of a chatty server is near 1 GB; more would fill the disk of the one who gates.
const COPY_LIMIT: u64 = 4 << 30;

/// Bytes of the last unfinished line that are kept to look for signs in; the signs are far shorter.
const LINE_LIMIT: usize = 4096;

/// A copy that grows.
#[derive(Debug)]
pub(crate) struct CopyWriter {
    file: File,
    bytes: u64,
    broken: bool,
    line: Vec<u8>,
    signs: &'static [GapSign],
    fresh: Vec<LogIncident>,
    all: Vec<LogIncident>,
}

impl std::fmt::Debug for GapSign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}…{}", self.text, self.then)
    }
}

impl CopyWriter {
    /// A new copy at `path`, which must not exist yet: a copy is never mixed with another.
    pub(crate) fn create(path: &Path, signs: &'static [GapSign]) -> Result<Self, Absent> {
        let file = File::create_new(path).map_err(|error| {
            Absent::new(
                format!("creating the log's copy `{}`: {error}", path.display()),
                "give a run directory that can be written and is not used by another run",
            )
        })?;
        Ok(Self {
            file,
            bytes: 0,
            broken: false,
            line: Vec::new(),
            signs,
            fresh: Vec::new(),
            all: Vec::new(),
        })
    }

    /// Bytes written so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends what the source gave. After a failure nothing more is written: a copy with a hole would lie.
    pub(crate) fn append(&mut self, bytes: &[u8]) {
        if self.broken {
            return;
        }
        let written = if self.bytes + bytes.len() as u64 > COPY_LIMIT {
            Err(std::io::Error::other(format!(
                "the copy reached its limit of {COPY_LIMIT} bytes"
            )))
        } else {
            self.file.write_all(bytes)
        };
        if let Err(error) = written {
            self.broken = true;
            self.note(LogIncident::CopyFailed {
                at: self.bytes,
                why: error.to_string(),
            });
            return;
        }
        self.bytes += bytes.len() as u64;
        self.look_for_signs(bytes);
    }

    fn look_for_signs(&mut self, bytes: &[u8]) {
        if self.signs.is_empty() {
            return;
        }
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            let room = LINE_LIMIT.saturating_sub(self.line.len());
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let line = String::from_utf8_lossy(&line);
                if self.signs.iter().any(|sign| sign.is_in(&line)) {
                    self.note(LogIncident::Gap {
                        at: self.bytes,
                        text: line.trim_end().chars().take(200).collect(),
                    });
                }
            }
        }
    }

    /// Notes an incident for the next mark and the summary.
    pub(crate) fn note(&mut self, incident: LogIncident) {
        for list in [&mut self.fresh, &mut self.all] {
            if list.len() < INCIDENT_LIMIT {
                list.push(incident.clone());
            }
        }
    }

    /// Incidents since this was last asked.
    pub(crate) fn take_fresh(&mut self) -> Vec<LogIncident> {
        std::mem::take(&mut self.fresh)
    }

    /// Every incident.
    pub(crate) fn all(&self) -> Vec<LogIncident> {
        self.all.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::witness::log_source::{LogSource, Scope};

    #[test]
    fn a_copy_is_never_mixed_with_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("b1.log");
        CopyWriter::create(&path, &[]).unwrap().append(b"one\n");
        assert!(CopyWriter::create(&path, &[]).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"one\n");
    }

    #[test]
    fn a_sign_of_dropped_lines_is_found_across_two_pieces() {
        let dir = tempfile::tempdir().unwrap();
        let signs = LogSource::Journald {
            unit: "u".into(),
            scope: Scope::System,
        }
        .gap_signs();
        let mut copy = CopyWriter::create(&dir.path().join("b1.log"), signs).unwrap();
        copy.append(b"ok\nSuppressed 41 mess");
        copy.append(b"ages from vllm.service\nok\n");
        let fresh = copy.take_fresh();
        assert!(
            matches!(&fresh[..], [LogIncident::Gap { text, .. }] if text.starts_with("Suppressed 41"))
        );
        assert_eq!(copy.take_fresh(), vec![]);
        assert_eq!(copy.all().len(), 1);
    }
}
