//! Mapped ELF files: which ones a process has, their build id, and where the symbol `environ` lies in its memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use object::read::ReadCache;
use object::{Object, ObjectSegment, ObjectSymbol};
use procfs::process::{MMapPath, MemoryMap};

use super::rooted::{Budgeted, Rooted};
use crate::evidence::absence::Absent;

/// Bytes read of one ELF file for its tables; the largest symbol tables of the CUDA libraries are near 100 MB.
const TABLE_BYTES: u64 = 256 * 1024 * 1024;

/// Names under which libc exports the list.
const NAMES: &[&str] = &["environ", "__environ", "_environ"];

/// A file that a process has mapped, by its first mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MappedObject {
    /// Path as the process sees it, without the mark of a deleted file.
    pub(crate) path: PathBuf,
    /// Device as `major:minor`, hexadecimal as in `maps`.
    pub(crate) device: String,
    /// Inode.
    pub(crate) inode: u64,
    /// Whether the file was deleted or replaced after it was mapped.
    pub(crate) deleted: bool,
    /// Whether any of its mappings may be executed.
    pub(crate) executable: bool,
    /// First mapping, as named in `map_files`.
    range: String,
    start: u64,
    offset: u64,
}

/// The mapped files of a process, each once, in the order of their addresses.
pub(crate) fn mapped_objects(maps: &[MemoryMap]) -> Vec<MappedObject> {
    let mut order: BTreeMap<(i32, i32, u64), usize> = BTreeMap::new();
    let mut objects: Vec<MappedObject> = Vec::new();
    for map in maps {
        let MMapPath::Path(path) = &map.pathname else {
            continue;
        };
        if map.inode == 0 {
            continue;
        }
        let executable = map.perms.contains(procfs::process::MMPermissions::EXECUTE);
        let key = (map.dev.0, map.dev.1, map.inode);
        if let Some(&known) = order.get(&key) {
            objects[known].executable |= executable;
            continue;
        }
        let text = path.to_string_lossy();
        let alive = text.strip_suffix(" (deleted)");
        order.insert(key, objects.len());
        objects.push(MappedObject {
            deleted: alive.is_some(),
            path: alive.map_or_else(|| path.clone(), PathBuf::from),
            device: format!("{:02x}:{:02x}", map.dev.0, map.dev.1),
            inode: map.inode,
            executable,
            range: format!("{:x}-{:x}", map.address.0, map.address.1),
            start: map.address.0,
            offset: map.offset,
        });
    }
    objects
}

impl MappedObject {
    /// Opens the very file that is mapped: by its path if that still leads to the same inode, else through `map_files`.
    pub(crate) fn open(&self, pid: u32) -> Result<File, Absent> {
        if !self.deleted
            && let Ok(file) = Rooted::of(pid).and_then(|root| root.open(&self.path))
            && file.metadata().is_ok_and(|m| m.ino() == self.inode)
        {
            return Ok(file);
        }
        let path = format!("/proc/{pid}/map_files/{}", self.range);
        File::open(&path).map_err(|error| {
            Absent::new(
                format!(
                    "`{}` is no longer the file that process {pid} has mapped, and `{path}` cannot be opened: {error}",
                    self.path.display()
                ),
                "run sekimon as root or with `cap_checkpoint_restore`, or restart the server on the new file",
            )
        })
    }
}

/// The width of a pointer in a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// Four bytes.
    Four,
    /// Eight bytes.
    Eight,
}

impl Word {
    /// Width in bytes.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// Where the pointer to the environment lies.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EnvironSymbol {
    /// Address in the process.
    pub(crate) address: u64,
    /// Width of a pointer.
    pub(crate) word: Word,
}

/// The place of `environ` in the process's memory, if this object defines it.
pub(crate) fn environ_symbol(pid: u32, mapped: &MappedObject) -> Option<EnvironSymbol> {
    let cache = ReadCache::new(Budgeted::new(mapped.open(pid).ok()?, TABLE_BYTES));
    let file = object::File::parse(&cache).ok()?;
    let defined = |symbol: &object::Symbol<'_, '_, _>| {
        symbol.is_definition() && symbol.name().is_ok_and(|name| NAMES.contains(&name))
    };
    let symbol = file
        .dynamic_symbols()
        .find(defined)
        .or_else(|| file.symbols().find(defined))?;
    let first = file
        .segments()
        .find(|s| s.file_range().0 <= mapped.offset)?;
    // Where the file's addresses lie in memory: mappings keep the distance between file offset and address.
    let in_file = first.address().wrapping_sub(first.file_range().0);
    let base = mapped
        .start
        .wrapping_sub(mapped.offset)
        .wrapping_sub(in_file);
    Some(EnvironSymbol {
        address: base.wrapping_add(symbol.address()),
        word: if file.is_64() {
            Word::Eight
        } else {
            Word::Four
        },
    })
}

/// The build id that the linker wrote into an ELF file, in hexadecimal; nothing if it has none.
pub(crate) fn build_id(file: File) -> Option<String> {
    let cache = ReadCache::new(Budgeted::new(file, TABLE_BYTES));
    let file = object::File::parse(&cache).ok()?;
    let id = file.build_id().ok()??;
    Some(super::digest::hex(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own_objects() -> Vec<MappedObject> {
        mapped_objects(
            &procfs::process::Process::myself()
                .unwrap()
                .maps()
                .unwrap()
                .0,
        )
    }

    #[test]
    fn our_own_executable_is_mapped_with_the_inode_of_its_file() {
        let exe = std::env::current_exe().unwrap();
        let objects = own_objects();
        let own = objects.iter().find(|o| o.path == exe).unwrap();
        assert_eq!(own.inode, std::fs::metadata(&exe).unwrap().ino());
        assert!(own.executable && !own.deleted);
        assert!(own.open(std::process::id()).is_ok());
    }

    #[test]
    fn the_symbol_is_found_in_our_own_libc() {
        let objects = own_objects();
        let libc = objects
            .iter()
            .find(|o| o.path.to_string_lossy().contains("libc.so"))
            .unwrap();
        let symbol = environ_symbol(std::process::id(), libc).unwrap();
        assert_eq!(symbol.word, Word::Eight);
        assert!(symbol.address > libc.start);
    }
}
