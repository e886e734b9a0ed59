//! SHA-256 of files, read in pieces.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::time::Instant;

use sha2::{Digest, Sha256};

use crate::evidence::pack::Stretch;

/// Bytes read at a time: large enough for the disk, small beside any server's memory.
const PIECE: usize = 1024 * 1024;

/// Lower-case hexadecimal of bytes.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes
        .iter()
        .flat_map(|b| [DIGITS[usize::from(b >> 4)], DIGITS[usize::from(b & 15)]])
        .map(char::from)
        .collect()
}

/// SHA-256 of a whole file from its present position, in hexadecimal; `TimedOut` when `until` passes.
pub(crate) fn sha256(file: &mut File, until: Option<Instant>) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        if until.is_some_and(|until| Instant::now() >= until) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let read = match file.read(&mut piece) {
            Ok(0) => return Ok(hex(&digest.finalize())),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        digest.update(&piece[..read]);
    }
}

/// SHA-256 over stretches of a file, one after another, in hexadecimal.
pub(crate) fn sha256_of(file: &File, stretches: &[Stretch]) -> io::Result<String> {
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE];
    for stretch in stretches {
        let mut done = 0;
        while done < stretch.length {
            let wanted = (stretch.length - done).min(PIECE as u64) as usize;
            file.read_exact_at(&mut piece[..wanted], stretch.from + done)?;
            digest.update(&piece[..wanted]);
            done += wanted as u64;
        }
    }
    Ok(hex(&digest.finalize()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_digest_of_abc() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(
            sha256(&mut File::open(&path).unwrap(), None).unwrap(),
            expected
        );
        let whole = [
            Stretch { from: 0, length: 1 },
            Stretch { from: 1, length: 2 },
        ];
        assert_eq!(
            sha256_of(&File::open(&path).unwrap(), &whole).unwrap(),
            expected
        );
    }

    #[test]
    fn a_digest_stops_when_its_time_is_over() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        std::fs::write(&path, "abc").unwrap();
        let error = sha256(&mut File::open(&path).unwrap(), Some(Instant::now())).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
