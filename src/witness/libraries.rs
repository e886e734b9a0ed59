//! The files that a process has mapped, hashed where asked.

use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use procfs::process::Process as ProcEntry;

use super::digest::sha256;
use super::elf::{MappedObject, build_id, mapped_objects};
use super::processes::{pid_i32, unreadable};
use crate::evidence::absence::{Absent, Sighting};
use crate::evidence::libraries::{Holds, Library};

/// Mapped files told of one process; PyTorch with CUDA maps about 400.
const LIBRARY_LIMIT: usize = 4096;

/// Which mapped files are hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hashed {
    /// Every file that holds code.
    Code,
    /// Files whose path contains one of these texts, code or data.
    Named(Vec<String>),
}

impl Hashed {
    fn wants(&self, object: &MappedObject) -> bool {
        match self {
            Self::Code => object.executable,
            Self::Named(names) => {
                let path = object.path.to_string_lossy();
                names.iter().any(|name| path.contains(name.as_str()))
            }
        }
    }
}

/// How much a reader may spend on digests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashBudget {
    /// Largest file that is hashed, in bytes.
    pub file_bytes: u64,
    /// Time for all files of one process.
    pub time: Duration,
}

impl Default for HashBudget {
    /// 4 GiB holds the largest CUDA library (near 1 GiB) with room; 60 s hash about 20 GiB on one core.
    fn default() -> Self {
        Self {
            file_bytes: 4 << 30,
            time: Duration::from_secs(60),
        }
    }
}

/// What makes a file on disk this one: a change of any of these makes its digest void.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct FileKey {
    device: u64,
    inode: u64,
    bytes: u64,
    modified_ns: i128,
    changed_ns: i128,
}

impl FileKey {
    fn of(metadata: &Metadata) -> Self {
        let ns = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified_ns: ns(metadata.mtime(), metadata.mtime_nsec()),
            changed_ns: ns(metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// What is remembered of a hashed file.
#[derive(Debug, Clone)]
struct Known {
    sha256: Option<String>,
    build_id: Option<String>,
}

/// Reads mapped files; remembers digests, so that eight ranks with the same libraries cost one.
#[derive(Debug, Default)]
pub struct LibraryReader {
    budget: HashBudget,
    known: HashMap<FileKey, Known>,
}

impl LibraryReader {
    /// A reader with its budget.
    pub fn new(budget: HashBudget) -> Self {
        Self {
            budget,
            known: HashMap::new(),
        }
    }

    /// The mapped files of process `pid`, in the order of their addresses; those that `hashed` names with digest.
    pub fn read(&mut self, pid: u32, hashed: &Hashed) -> Sighting<Vec<Library>> {
        let maps = ProcEntry::new(pid_i32(pid)).and_then(|entry| entry.maps());
        let maps = match maps {
            Ok(maps) => maps,
            Err(error) => return Sighting::Absent(unreadable(pid, &error)),
        };
        let until = Instant::now() + self.budget.time;
        let objects = mapped_objects(&maps.0);
        let value = objects
            .iter()
            .filter(|o| is_file(o))
            .take(LIBRARY_LIMIT)
            .map(|object| self.library(pid, object, hashed, until))
            .collect();
        Sighting::Seen { value }
    }

    fn library(
        &mut self,
        pid: u32,
        object: &MappedObject,
        hashed: &Hashed,
        until: Instant,
    ) -> Library {
        let mut library = Library {
            path: object.path.display().to_string(),
            device: object.device.clone(),
            inode: object.inode,
            deleted: object.deleted,
            holds: if object.executable {
                Holds::Code
            } else {
                Holds::Data
            },
            bytes: None,
            sha256: Sighting::absent("not hashed: nobody asked for it", "name it in the gate"),
            build_id: None,
        };
        let metadata = match object.open(pid).and_then(|file| {
            file.metadata()
                .map_err(|error| Absent::new(error.to_string(), "look at the file system"))
        }) {
            Ok(metadata) => metadata,
            Err(absent) => {
                library.sha256 = Sighting::Absent(absent);
                return library;
            }
        };
        library.bytes = Some(metadata.len());
        let key = FileKey::of(&metadata);
        if !self.known.contains_key(&key) {
            let id = object.open(pid).ok().filter(|_| object.executable);
            let known = Known {
                sha256: None,
                build_id: id.and_then(build_id),
            };
            self.known.insert(key.clone(), known);
        }
        library.build_id = self.known.get(&key).and_then(|k| k.build_id.clone());
        if hashed.wants(object) {
            library.sha256 = self.digest(pid, object, &key, until).into();
        }
        library
    }

    fn digest(
        &mut self,
        pid: u32,
        object: &MappedObject,
        key: &FileKey,
        until: Instant,
    ) -> Result<String, Absent> {
        if let Some(digest) = self.known.get(key).and_then(|k| k.sha256.clone()) {
            return Ok(digest);
        }
        if key.bytes > self.budget.file_bytes {
            return Err(Absent::new(
                format!(
                    "{} bytes are more than the {} that one digest may cost",
                    key.bytes, self.budget.file_bytes
                ),
                "use a `pack` check for model files",
            ));
        }
        let mut file = object.open(pid)?;
        let digest = sha256(&mut file, Some(until)).map_err(|error| {
            Absent::new(
                format!("hashing stopped: {error}"),
                "name only the libraries that the path needs",
            )
        })?;
        if let Some(known) = self.known.get_mut(key) {
            known.sha256 = Some(digest.clone());
        }
        Ok(digest)
    }
}

/// Shared memory and devices are mapped under path-like names but are no files of a build.
fn is_file(object: &MappedObject) -> bool {
    let path = object.path.to_string_lossy();
    path.starts_with('/')
        && !["/dev/", "/memfd:", "/SYSV", "/anon_hugepage", "/[aio]"]
            .iter()
            .any(|start| path.starts_with(start))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::path::Path;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::evidence::libraries::named;

    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// A process that maps `file` and runs.
    fn mapping(file: &Path) -> Running {
        let script = "import mmap,sys,time\nf=open(sys.argv[1],'rb')\n\
             m=mmap.mmap(f.fileno(),0,prot=mmap.PROT_READ)\nprint('up',flush=True); time.sleep(600)";
        let mut child = Command::new("python3")
            .args(["-c", script])
            .arg(file)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Running(child)
    }

    #[test]
    fn our_own_libc_has_a_digest_and_a_build_id() {
        let mut reader = LibraryReader::default();
        let wanted = Hashed::Named(vec!["libc.so".into()]);
        let libraries = reader
            .read(std::process::id(), &wanted)
            .into_result()
            .unwrap();
        let libc = named(&libraries, "libc.so")[0];
        assert_eq!(libc.holds, Holds::Code);
        assert_eq!(libc.build_id.as_ref().unwrap().len(), 40);
        let mut file = std::fs::File::open(&libc.path).unwrap();
        let expected = sha256(&mut file, None).unwrap();
        assert_eq!(libc.sha256.seen(), Some(&expected));
        assert!(
            libraries
                .iter()
                .filter(|l| !l.path.contains("libc.so"))
                .all(|l| l.sha256.seen().is_none())
        );
    }

    #[test]
    fn a_file_replaced_after_loading_is_hashed_as_it_was_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("kernel.so");
        std::fs::write(&path, "abc").unwrap();
        let running = mapping(&path);
        std::fs::write(dir.path().join("new"), "other").unwrap();
        std::fs::rename(dir.path().join("new"), &path).unwrap();
        let wanted = Hashed::Named(vec!["kernel.so".into()]);
        let mut reader = LibraryReader::default();
        let libraries = reader.read(running.0.id(), &wanted).into_result().unwrap();
        let kernel = named(&libraries, "kernel.so")[0];
        assert!(kernel.deleted);
        match &kernel.sha256 {
            Sighting::Seen { value } => assert_eq!(
                value,
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
            ),
            // Without the right to `map_files` the old content cannot be had; the new one must not stand in for it.
            Sighting::Absent(absent) => assert!(absent.why.contains("map_files"), "{absent}"),
        }
    }

    #[test]
    fn a_file_over_the_budget_is_told_and_not_hashed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("model.gguf");
        std::fs::write(&path, "abc").unwrap();
        let running = mapping(&path);
        let budget = HashBudget {
            file_bytes: 2,
            ..HashBudget::default()
        };
        let wanted = Hashed::Named(vec!["model.gguf".into()]);
        let libraries = LibraryReader::new(budget)
            .read(running.0.id(), &wanted)
            .into_result()
            .unwrap();
        let model = named(&libraries, "model.gguf")[0];
        assert_eq!((model.holds, model.bytes), (Holds::Data, Some(3)));
        assert!(model.sha256.seen().is_none());
    }
}
