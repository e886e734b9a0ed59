//! A model pack on disk: walks it, hashes it, and looks whether a server would start from it again.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::bounded;
use super::digest::{sha256, sha256_of};
use crate::evidence::absence::Absent;
use crate::evidence::pack::{Content, Entry, Leads, Manifest, WHOLE_LIMIT, stretches};
use crate::evidence::pack_fault::PackFault;
use crate::evidence::restart::{PackView, restart_faults};

/// Files and links of one pack at most; the largest packs have some hundreds.
const ENTRY_LIMIT: usize = 100_000;

/// Depth of folders at most, so that a loop of bind mounts ends.
const DEPTH_LIMIT: usize = 32;

/// Bytes of one JSON file that are read; the index of a model with 100,000 tensors is near 10 MB.
const JSON_BYTES: u64 = 64 * 1024 * 1024;

/// Bytes of a safetensors header at most; the format itself allows 100 MB.
const HEADER_BYTES: u64 = 100_000_000;

/// The manifest of a pack as it is now; absent if the folder or a file in it cannot be read.
///
/// Takes as long as reading every small file and 16 MiB of every large one.
pub fn manifest_of(folder: &Path) -> Result<Manifest, Absent> {
    let seen = look(folder)?;
    match seen.faults.first() {
        Some(fault) => Err(Absent::new(
            fault.to_string(),
            "give the right to read every file of the pack",
        )),
        None => Ok(seen.manifest),
    }
}

/// What is wrong with the pack in `folder` against its manifest, and what a restart would not find; empty if nothing.
pub fn compare(manifest: &Manifest, folder: &Path) -> Result<Vec<PackFault>, Absent> {
    let seen = look(folder)?;
    let mut faults = seen.faults;
    // A file that could not be read is told once, as unreadable, and not as missing too.
    let hidden: Vec<String> = faults.iter().filter_map(path_of_unreadable).collect();
    let differences = manifest.compare(&seen.manifest);
    faults.extend(
        differences
            .into_iter()
            .filter(|fault| !matches!(fault, PackFault::Missing { path } if hidden.contains(path))),
    );
    faults.extend(restart_faults(&view(folder, &seen.manifest)));
    Ok(faults)
}

/// What is wrong with a pack that has no manifest: its links, and what a restart would not find.
pub fn inspect(folder: &Path) -> Result<Vec<PackFault>, Absent> {
    let seen = look(folder)?;
    let mut faults = seen.faults;
    faults.extend(seen.manifest.link_faults());
    faults.extend(restart_faults(&view(folder, &seen.manifest)));
    Ok(faults)
}

fn path_of_unreadable(fault: &PackFault) -> Option<String> {
    match fault {
        PackFault::Unreadable { path, .. } => Some(path.clone()),
        _ => None,
    }
}

struct Seen {
    manifest: Manifest,
    faults: Vec<PackFault>,
}

fn look(folder: &Path) -> Result<Seen, Absent> {
    let absent = |error: io::Error| {
        Absent::new(
            format!("reading the pack `{}`: {error}", folder.display()),
            "give the folder of the model, and the right to read it",
        )
    };
    let root = folder.canonicalize().map_err(absent)?;
    let mut walk = Walk {
        root: root.clone(),
        entries: BTreeMap::new(),
        faults: Vec::new(),
    };
    for entry in fs::read_dir(&root).map_err(absent)? {
        walk.visit(&entry.map_err(absent)?.path(), 1);
    }
    Ok(Seen {
        manifest: Manifest::new(walk.entries),
        faults: walk.faults,
    })
}

struct Walk {
    root: PathBuf,
    entries: BTreeMap<String, Entry>,
    faults: Vec<PackFault>,
}

impl Walk {
    fn visit(&mut self, path: &Path, depth: usize) {
        let name = self.relative(path);
        if self.entries.len() >= ENTRY_LIMIT || depth > DEPTH_LIMIT {
            // Told once: the limit itself is the finding.
            if !self
                .faults
                .iter()
                .any(|f| f.to_string().contains("too many"))
            {
                self.unreadable(
                    name,
                    "too many files or folders for a model pack".to_owned(),
                );
            }
            return;
        }
        match self.entry(path, depth) {
            Ok(Some(entry)) => {
                self.entries.insert(name, entry);
            }
            Ok(None) => {}
            Err(error) => self.unreadable(name, error.to_string()),
        }
    }

    /// The entry of a file or link; a folder is walked and has none.
    fn entry(&mut self, path: &Path, depth: usize) -> io::Result<Option<Entry>> {
        let metadata = fs::symlink_metadata(path)?;
        if metadata.is_symlink() {
            return Ok(Some(Entry::Link {
                target: fs::read_link(path)?.display().to_string(),
                leads: self.leads(path),
            }));
        }
        if metadata.is_dir() {
            for entry in fs::read_dir(path)? {
                self.visit(&entry?.path(), depth + 1);
            }
            return Ok(None);
        }
        if !metadata.is_file() {
            return Err(io::Error::other(
                "it is neither a file, a folder nor a link",
            ));
        }
        let mut file = File::open(path)?;
        let bytes = metadata.len();
        let content = if bytes <= WHOLE_LIMIT {
            Content::Whole {
                sha256: sha256(&mut file, None)?,
            }
        } else {
            let stretches = stretches(bytes);
            Content::Sampled {
                sha256: sha256_of(&file, &stretches)?,
                stretches,
                modified_s: metadata.mtime(),
            }
        };
        Ok(Some(Entry::File { bytes, content }))
    }

    fn leads(&self, link: &Path) -> Leads {
        match link.canonicalize() {
            Ok(end) if end.starts_with(&self.root) => Leads::Inside,
            Ok(_) => Leads::Outside,
            Err(_) => Leads::Nowhere,
        }
    }

    fn relative(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.root).unwrap_or(path);
        relative.to_string_lossy().into_owned()
    }

    fn unreadable(&mut self, path: String, why: String) {
        self.faults.push(PackFault::Unreadable { path, why });
    }
}

/// The pack as a restart would see it: links followed, JSON files at the top read.
fn view(folder: &Path, manifest: &Manifest) -> PackView {
    let mut view = PackView::default();
    for path in manifest.entries.keys() {
        let full = folder.join(path);
        let Ok(metadata) = fs::metadata(&full) else {
            continue;
        };
        if !metadata.is_file() {
            continue;
        }
        view.files.insert(path.clone(), metadata.len());
        if path.ends_with(".json") && !path.contains('/') {
            if let Ok(bytes) = bounded::read(&full, JSON_BYTES) {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                view.texts.insert(path.clone(), text);
            }
        } else if path.ends_with(".safetensors") {
            let declared = declared_bytes(&full).map_err(|error| error.to_string());
            view.safetensors.insert(path.clone(), declared);
        }
    }
    view
}

/// The size that a safetensors header declares: eight bytes of length, the header, and the end of the last tensor.
fn declared_bytes(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    let mut length = [0; 8];
    file.read_exact(&mut length)
        .map_err(|_| io::Error::other("it is shorter than a safetensors header"))?;
    let length = u64::from_le_bytes(length);
    if length > HEADER_BYTES {
        return Err(io::Error::other(format!(
            "its header would have {length} bytes: it is no safetensors file"
        )));
    }
    let mut header = Vec::new();
    file.take(length).read_to_end(&mut header)?;
    let header: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(&header)
        .map_err(|error| io::Error::other(format!("its header is damaged: {error}")))?;
    let ends = header
        .values()
        .filter_map(|tensor| tensor.pointer("/data_offsets/1")?.as_u64());
    Ok(8 + length + ends.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    /// A pack that would start: config, tokenizer, one safetensors file of one tensor.
    fn model() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("config.json"), "{}").unwrap();
        fs::write(at("tokenizer.json"), "{}").unwrap();
        let header = br#"{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}"#;
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header);
        bytes.extend_from_slice(b"wxyz");
        fs::write(at("model.safetensors"), bytes).unwrap();
        dir
    }

    #[test]
    fn an_untouched_pack_has_no_faults() {
        let dir = model();
        let manifest = manifest_of(dir.path()).unwrap();
        assert_eq!(manifest.entries.len(), 3);
        assert_eq!(compare(&manifest, dir.path()).unwrap(), vec![]);
        assert_eq!(inspect(dir.path()).unwrap(), vec![]);
    }

    #[test]
    fn links_that_leave_or_dangle_are_faults() {
        let (dir, elsewhere) = (model(), tempfile::tempdir().unwrap());
        fs::write(elsewhere.path().join("t.json"), "{}").unwrap();
        fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
        symlink(
            elsewhere.path().join("t.json"),
            dir.path().join("tokenizer.json"),
        )
        .unwrap();
        symlink("config.json", dir.path().join("inside.json")).unwrap();
        let faults = inspect(dir.path()).unwrap();
        assert!(
            matches!(&faults[..], [PackFault::LeavesPack { path, .. }] if path == "tokenizer.json")
        );
        drop(elsewhere);
        let faults = inspect(dir.path()).unwrap();
        assert!(matches!(
            &faults[..],
            [PackFault::Dangling { path, .. }, PackFault::NeededMissing { path: needed, .. }]
                if path == "tokenizer.json" && needed == "tokenizer.json"
        ));
    }

    #[test]
    fn a_changed_a_missing_and_an_extra_file_are_told() {
        let dir = model();
        let manifest = manifest_of(dir.path()).unwrap();
        fs::write(dir.path().join("config.json"), "[]").unwrap();
        fs::remove_file(dir.path().join("tokenizer.json")).unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        fs::write(dir.path().join("sub/patch.py"), "x").unwrap();
        let faults: Vec<String> = compare(&manifest, dir.path())
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(faults.len(), 4, "{faults:?}");
        assert!(faults[0].contains("config.json") && faults[0].contains("another content"));
        assert!(faults[1].contains("tokenizer.json"));
        assert!(faults[2].contains("sub/patch.py"));
        assert!(faults[3].contains("no tokenizer"));
    }

    #[test]
    fn a_large_file_is_sampled_at_both_ends() {
        let dir = model();
        let path = dir.path().join("shard.bin");
        let file = File::create(&path).unwrap();
        // Sparse: it takes no room on disk.
        file.set_len(WHOLE_LIMIT + 10).unwrap();
        let manifest = manifest_of(dir.path()).unwrap();
        assert!(matches!(
            &manifest.entries["shard.bin"],
            Entry::File {
                content: Content::Sampled { .. },
                ..
            }
        ));
        use std::os::unix::fs::FileExt;
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.write_all_at(b"x", WHOLE_LIMIT + 9).unwrap();
        let faults = compare(&manifest, dir.path()).unwrap();
        assert!(matches!(&faults[..], [PackFault::Changed { path, .. }] if path == "shard.bin"));
    }

    #[test]
    fn a_shard_that_was_cut_would_not_load() {
        let dir = model();
        let path = dir.path().join("model.safetensors");
        let whole = fs::metadata(&path).unwrap().len();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(whole - 1).unwrap();
        let faults = inspect(dir.path()).unwrap();
        assert!(
            matches!(&faults[..], [PackFault::Unusable { why, .. }] if why.contains("cut")),
            "{faults:?}"
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_absence() {
        let absent = inspect(Path::new("/no/such/pack")).unwrap_err();
        assert!(absent.why.contains("/no/such/pack"));
    }
}
