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

impl Library {
    /// Path, identity, and whether the file was replaced, for people.
    pub fn described(&self) -> String {
        let deleted = if self.deleted { " (deleted)" } else { "" };
        format!("{}{deleted} {}", self.path, self.identity())
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
    /// Path; of one that lies elsewhere in each rank, the first rank's.
    pub path: String,
    /// How it differs.
    pub how: CodeDifference,
    /// What each rank has, in the order given.
    pub ranks: Vec<RankLibrary>,
}

/// How a library differs between ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CodeDifference {
    /// Digest or build id differ: the ranks run different code.
    Content,
    /// The ranks hold a file of this name from different folders.
    Folder,
    /// One was replaced on disk after it was loaded, or inodes differ, and no digest tells whether the code does.
    Unsure,
    /// Some ranks have it and others have not.
    OneSided,
}

/// What one rank has of a library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankLibrary {
    /// Process id of the rank's worker.
    pub pid: u32,
    /// Path with identity of its library; absent if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<String>,
}

/// Parts of paths where code is compiled at run time, by each rank for itself: those files rightly differ.
const COMPILED_HERE: &[&str] = &[
    "/torchinductor",
    "/.triton/",
    "/triton_cache",
    "/.cache/",
    "/torch_extensions/",
    "/torch_compile_cache/",
    "/flashinfer/",
    "/deep_gemm/",
    "/tvm-ffi/",
    "/cuda_utils",
    "/__triton_launcher",
    "/tmp",
    "/dev/",
    "/memfd:",
];

/// A file of shared memory or one that was compiled for this process alone is no installed library.
fn is_installed(library: &Library) -> bool {
    library.holds == Holds::Code && !COMPILED_HERE.iter().any(|part| library.path.contains(part))
}

/// Code that is not the same in every rank, sorted by path.
///
/// Data files are left out (ranks map different shards), and so is what each rank compiles for itself.
pub fn between_ranks(ranks: &[RankLibraries<'_>]) -> Vec<LibraryDifference> {
    let maps: Vec<BTreeMap<&str, &Library>> = ranks
        .iter()
        .map(|rank| {
            let code = rank.libraries.iter().filter(|l| is_installed(l));
            code.map(|l| (l.path.as_str(), l)).collect()
        })
        .collect();
    let paths: BTreeSet<&str> = maps.iter().flat_map(|m| m.keys().copied()).collect();
    let mut told: BTreeSet<&str> = BTreeSet::new();
    let mut differences = Vec::new();
    for path in paths {
        let mut each: Vec<Option<&Library>> = maps.iter().map(|m| m.get(path).copied()).collect();
        let mut how = between(&each);
        if how == Some(CodeDifference::OneSided)
            && let Some(elsewhere) = elsewhere(&maps, &each, path)
        {
            each = elsewhere;
            how = Some(CodeDifference::Folder);
        }
        let Some(how) = how else { continue };
        if each
            .iter()
            .flatten()
            .any(|l| told.contains(l.path.as_str()))
        {
            continue;
        }
        told.extend(each.iter().flatten().map(|l| l.path.as_str()));
        differences.push(LibraryDifference {
            path: path.to_owned(),
            how,
            ranks: ranks
                .iter()
                .zip(&each)
                .map(|(rank, library)| RankLibrary {
                    pid: rank.pid,
                    identity: library.map(Library::described),
                })
                .collect(),
        });
    }
    differences
}

/// What the others have of the same file name where they lack the path; nothing if one of them has no such file.
fn elsewhere<'a>(
    maps: &[BTreeMap<&'a str, &'a Library>],
    each: &[Option<&'a Library>],
    path: &str,
) -> Option<Vec<Option<&'a Library>>> {
    let name = path.rsplit('/').next()?;
    maps.iter()
        .zip(each)
        .map(|(map, own)| match own {
            Some(library) => Some(Some(*library)),
            None => map.values().find(|l| l.name() == name).map(|l| Some(*l)),
        })
        .collect()
}

/// How one path differs; a digest decides where every rank has one, then the build id, then the inode.
fn between(each: &[Option<&Library>]) -> Option<CodeDifference> {
    let Some(all) = each.iter().copied().collect::<Option<Vec<&Library>>>() else {
        return Some(CodeDifference::OneSided);
    };
    let first = all.first()?;
    let digests: Option<Vec<_>> = all.iter().map(|l| l.sha256.seen()).collect();
    if let Some(digests) = digests {
        let differ = digests.iter().any(|d| d != &digests[0]);
        return differ.then_some(CodeDifference::Content);
    }
    let ids: Option<Vec<_>> = all.iter().map(|l| l.build_id.as_ref()).collect();
    if let Some(ids) = ids
        && ids.iter().any(|id| id != &ids[0])
    {
        return Some(CodeDifference::Content);
    }
    let same = |l: &&Library| {
        (&l.device, l.inode, l.deleted) == (&first.device, first.inode, first.deleted)
    };
    (!all.iter().all(same)).then_some(CodeDifference::Unsure)
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
        assert_eq!(differences[0].how, CodeDifference::Content);
        assert_eq!(differences[1].how, CodeDifference::OneSided);
        assert_eq!(differences[1].ranks[1].identity, None);
    }

    fn compared(one: Library, two: Library) -> Vec<CodeDifference> {
        let (one, two) = ([one], [two]);
        let found = between_ranks(&[
            RankLibraries {
                pid: 7,
                libraries: &one,
            },
            RankLibraries {
                pid: 8,
                libraries: &two,
            },
        ]);
        found.iter().map(|d| d.how).collect()
    }

    fn unhashed(path: &str, inode: u64) -> Library {
        Library {
            inode,
            sha256: Sighting::absent("not asked for", "name it"),
            ..library(path, "")
        }
    }

    #[test]
    fn a_library_of_another_folder_is_one_difference() {
        assert_eq!(
            compared(library("/venv/x.so", "1"), library("/patched/x.so", "2")),
            [CodeDifference::Folder]
        );
    }

    #[test]
    fn an_inode_alone_or_a_replaced_file_leaves_it_open() {
        assert_eq!(
            compared(unhashed("/x.so", 7), unhashed("/x.so", 8)),
            [CodeDifference::Unsure]
        );
        let replaced = Library {
            deleted: true,
            ..unhashed("/x.so", 7)
        };
        assert_eq!(
            compared(unhashed("/x.so", 7), replaced),
            [CodeDifference::Unsure]
        );
        // One rank's time for digests ran out: the same inode is the same file.
        assert_eq!(
            compared(library("/x.so", "1"), unhashed("/x.so", 7)),
            vec![]
        );
    }

    #[test]
    fn what_each_rank_compiles_for_itself_may_differ() {
        let own = |rank| library(&format!("/home/u/.cache/vllm/rank_{rank}/k.so"), "1");
        assert_eq!(compared(own(0), own(1)), vec![]);
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
