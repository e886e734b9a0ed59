//! How often a text occurs in a file, as a process sees the file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use memchr::memmem::Finder;

use super::rooted::Rooted;
use crate::evidence::absence::{Absent, Sighting};

/// Bytes read at a time.
const PIECE: usize = 1024 * 1024;

/// Largest file that is counted in: source files and libraries are far smaller, a model shard is not the place to look.
const FILE_LIMIT: u64 = 4 << 30;

/// How often `text` occurs, without overlaps, in the file that process `pid` sees at `path`.
pub fn in_file_of(pid: u32, path: &Path, text: &[u8]) -> Sighting<u64> {
    Rooted::of(pid)
        .and_then(|root| root.open(path))
        .and_then(|file| count(file, path, text))
        .into()
}

/// How often `text` occurs, without overlaps, in a file of this host.
pub fn in_file(path: &Path, text: &[u8]) -> Sighting<u64> {
    in_file_of(std::process::id(), path, text)
}

fn count(file: File, path: &Path, text: &[u8]) -> Result<u64, Absent> {
    let absent = |error: io::Error| {
        Absent::new(
            format!("reading `{}`: {error}", path.display()),
            "look at the file by hand",
        )
    };
    if text.is_empty() {
        return Err(Absent::new(
            "an empty text occurs everywhere",
            "give at least one character to count",
        ));
    }
    let bytes = file.metadata().map_err(absent)?.len();
    if bytes > FILE_LIMIT {
        return Err(Absent::new(
            format!(
                "`{}` has {bytes} bytes, more than is counted in ({FILE_LIMIT})",
                path.display()
            ),
            "count in the library or source file that holds the symbol",
        ));
    }
    occurrences(file.take(FILE_LIMIT), text).map_err(absent)
}

fn occurrences(mut from: impl Read, text: &[u8]) -> io::Result<u64> {
    let finder = Finder::new(text);
    let mut count = 0;
    let mut held: Vec<u8> = Vec::with_capacity(PIECE + text.len());
    loop {
        let read = from.by_ref().take(PIECE as u64).read_to_end(&mut held)?;
        if read == 0 {
            return Ok(count);
        }
        let mut after = 0;
        while let Some(at) = finder.find(&held[after..]) {
            count += 1;
            after += at + text.len();
        }
        // What is left may be the beginning of an occurrence that the next piece completes.
        let keep = (text.len() - 1).min(held.len() - after);
        held.drain(..held.len() - keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_counted_across_the_border_of_two_pieces() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kernel.py");
        let mut content = vec![b'.'; PIECE - 3];
        content.extend_from_slice(b"fused_moe and fused_moe");
        std::fs::write(&path, &content).unwrap();
        assert_eq!(in_file(&path, b"fused_moe").seen(), Some(&2));
        assert_eq!(in_file(&path, b"no_such").seen(), Some(&0));
    }

    #[test]
    fn occurrences_do_not_overlap() {
        assert_eq!(occurrences(&b"aaaaa"[..], b"aa").unwrap(), 2);
    }

    #[test]
    fn a_missing_file_has_no_count() {
        assert!(in_file(Path::new("/no/such/file"), b"x").seen().is_none());
        assert!(
            in_file(Path::new("/proc/self/status"), b"")
                .seen()
                .is_none()
        );
    }
}
