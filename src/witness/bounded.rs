//! Reading with a bound on memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The first `limit` bytes of a file.
pub(crate) fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}
