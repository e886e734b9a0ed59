//! The files that a process has mapped, and how they differ between ranks.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::absence::Sighting;

/// One file that a process has mapped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Library {
    /// Path as the process sees it.
    pub path: String,
    /// Device as `major:minor` in hexadecimal.
    pub device: String,
    /// Inode.
    pub inode: u64,
    /// Whether the file was deleted or replaced after it was mapped: the path now leads elsewhere.
    pub deleted: bool,
    /// Whether code of it can run (a library or program), or it is only data (a GGUF model).
    pub holds: Holds,
    /// Size in bytes; absent if the file could not be opened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// SHA-256 of the mapped file in lower-case hexadecimal.
    pub sha256: Sighting<String>,
    /// The linker's build id in hexadecimal; absent if the file has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
}

/// What a mapped file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// Code.
    Code,
    /// Data only.
    Data,
}

impl Library {
    /// File name without its folders.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The strongest identity that is known: digest, else build id, else device and inode.
    pub fn identity(&self) -> String {
        match (&self.sha256, &self.build_id) {
            (Sighting::Seen { value }, _) => format!("sha256:{value}"),
            (_, Some(id)) => format!("build-id:{id}"),
            _ => format!("inode:{}/{}", self.device, self.inode),
        }
    }
}

/// Libraries whose path or file name contains `name`.
pub fn named<'a>(libraries: &'a [Library], name: &str) -> Vec<&'a Library> {
    libraries.iter().filter(|l| l.path.contains(name)).collect()
}

/// The libraries of one rank, for comparison with the others.
#[derive(Debug, Clone, Copy)]
pub struct RankLibraries<'a> {
    /// Process id of the rank's worker.
    pub pid: u32,
    /// Its libraries.
    pub libraries: &'a [Library],
}

/// A library that not every rank has alike.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibraryDifference {
    /// Path.
    pub path: String,
    /// What each rank has under that path, in the order given.
    pub ranks: Vec<RankLibrary>,
}

/// What one rank has under a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankLibrary {
    /// Process id of the rank's worker.
    pub pid: u32,
    /// Identity of its library; absent if it has none there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// Code that is not the same in every rank, sorted by path. Data files are left out: ranks map different shards.
pub fn between_ranks(ranks: &[RankLibraries<'_>]) -> Vec<LibraryDifference> {
    let maps: Vec<BTreeMap<&str, String>> = ranks
        .iter()
        .map(|rank| {
            let code = rank.libraries.iter().filter(|l| l.holds == Holds::Code);
            code.map(|l| (l.path.as_str(), l.identity())).collect()
        })
        .collect();
    let paths: BTreeSet<&str> = maps.iter().flat_map(|m| m.keys().copied()).collect();
    paths
        .into_iter()
        .filter(|path| maps.iter().any(|m| m.get(path) != maps[0].get(path)))
        .map(|path| LibraryDifference {
            path: path.to_owned(),
            ranks: ranks
                .iter()
                .zip(&maps)
                .map(|(rank, map)| RankLibrary {
                    pid: rank.pid,
                    identity: map.get(path).cloned(),
                })
                .collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(path: &str, sha256: &str) -> Library {
        Library {
            path: path.into(),
            device: "fe:00".into(),
            inode: 7,
            deleted: false,
            holds: Holds::Code,
            bytes: Some(10),
            sha256: Sighting::Seen {
                value: sha256.into(),
            },
            build_id: None,
        }
    }

    #[test]
    fn ranks_with_the_same_code_do_not_differ() {
        let set = [library("/a.so", "1"), library("/b.so", "2")];
        let ranks = [7, 8].map(|pid| RankLibraries {
            pid,
            libraries: &set,
        });
        assert_eq!(between_ranks(&ranks), vec![]);
    }

    #[test]
    fn another_build_and_a_missing_library_are_told_by_rank() {
        let (one, two) = (
            [library("/a.so", "1"), library("/b.so", "2")],
            [library("/a.so", "9")],
        );
        let ranks = [
            RankLibraries {
                pid: 7,
                libraries: &one,
            },
            RankLibraries {
                pid: 8,
                libraries: &two,
            },
        ];
        let differences = between_ranks(&ranks);
        assert_eq!(
            differences
                .iter()
                .map(|d| d.path.as_str())
                .collect::<Vec<_>>(),
            ["/a.so", "/b.so"]
        );
        assert_eq!(differences[1].ranks[1].identity, None);
    }

    #[test]
    fn a_library_without_digest_is_known_by_its_build_id() {
        let mut library = library("/x/a.so", "1");
        library.sha256 = Sighting::absent("too large", "name it");
        assert_eq!(library.identity(), "inode:fe:00/7");
        library.build_id = Some("ab".into());
        assert_eq!(library.identity(), "build-id:ab");
        assert_eq!(library.name(), "a.so");
        assert_eq!(named(&[library], "a.so").len(), 1);
    }
}
