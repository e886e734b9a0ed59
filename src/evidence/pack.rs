//! A model pack on disk: its manifest, and what is wrong with a folder that should be it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::pack_fault::PackFault;

/// Version of the manifest's form.
pub const SCHEMA: &str = "sekimon.pack/1";

/// Files up to this size have a digest of their whole content; 64 MiB are hashed in a blink, a shard of 5 GB is not.
pub const WHOLE_LIMIT: u64 = 64 * 1024 * 1024;

/// Bytes of one sampled stretch.
pub const STRETCH_BYTES: u64 = 1024 * 1024;

/// Sampled stretches of one large file: its first and last MiB and fourteen evenly between.
pub const STRETCHES: u64 = 16;

/// Every file and link of a pack, by path relative to its folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Entries by relative path, `/` between parts.
    pub entries: BTreeMap<String, Entry>,
}

/// One file or link of a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// A file with its digest.
    File {
        /// Size in bytes.
        bytes: u64,
        /// How its content is known.
        content: Content,
    },
    /// A symbolic link.
    Link {
        /// Where it points, as written.
        target: String,
        /// Where it leads.
        leads: Leads,
    },
}

/// How a file's content is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// By the SHA-256 of all of it.
    Whole {
        /// Lower-case hexadecimal.
        sha256: String,
    },
    /// By the SHA-256 of some stretches; a change between them is not seen.
    Sampled {
        /// The stretches, in order.
        stretches: Vec<Stretch>,
        /// SHA-256 over the stretches one after another, lower-case hexadecimal.
        sha256: String,
        /// Time of the last change in whole seconds since 1970; a copy may have another.
        modified_s: i64,
    },
}

/// A stretch of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stretch {
    /// First byte.
    pub from: u64,
    /// Bytes.
    pub length: u64,
}

/// Where a link leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Leads {
    /// To something inside the pack.
    Inside,
    /// Out of the pack.
    Outside,
    /// To nothing.
    Nowhere,
}

/// The stretches that are sampled of a file of `bytes`; one stretch over all of it if it is small.
pub fn stretches(bytes: u64) -> Vec<Stretch> {
    if bytes <= STRETCHES * STRETCH_BYTES {
        return vec![Stretch {
            from: 0,
            length: bytes,
        }];
    }
    let last = bytes - STRETCH_BYTES;
    (0..STRETCHES)
        .map(|n| Stretch {
            // In 128 bits, so that a file of many exabytes does not overflow.
            from: (u128::from(last) * u128::from(n) / u128::from(STRETCHES - 1)) as u64,
            length: STRETCH_BYTES,
        })
        .collect()
}

impl Manifest {
    /// A manifest of these entries.
    pub fn new(entries: BTreeMap<String, Entry>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            entries,
        }
    }

    /// Links that leave the pack or lead to nothing; these are faults without any other manifest beside it.
    pub fn link_faults(&self) -> Vec<PackFault> {
        self.entries
            .iter()
            .filter_map(|(path, entry)| link_fault(path, entry))
            .collect()
    }

    /// How `seen`, the manifest of a folder now, differs from this one; link faults of `seen` come first.
    pub fn compare(&self, seen: &Self) -> Vec<PackFault> {
        let mut faults = seen.link_faults();
        for (path, expected) in &self.entries {
            match seen.entries.get(path) {
                None => faults.push(PackFault::Missing { path: path.clone() }),
                Some(found) => faults.extend(entry_fault(path, expected, found)),
            }
        }
        let extra = seen
            .entries
            .keys()
            .filter(|path| !self.entries.contains_key(*path));
        faults.extend(extra.map(|path| PackFault::Extra { path: path.clone() }));
        faults
    }
}

fn link_fault(path: &str, entry: &Entry) -> Option<PackFault> {
    let Entry::Link { target, leads } = entry else {
        return None;
    };
    let (path, target) = (path.to_owned(), target.clone());
    match leads {
        Leads::Inside => None,
        Leads::Outside => Some(PackFault::LeavesPack { path, target }),
        Leads::Nowhere => Some(PackFault::Dangling { path, target }),
    }
}

fn entry_fault(path: &str, expected: &Entry, found: &Entry) -> Option<PackFault> {
    let changed = |how: String| {
        Some(PackFault::Changed {
            path: path.to_owned(),
            how,
        })
    };
    match (expected, found) {
        (Entry::Link { target: a, .. }, Entry::Link { target: b, .. }) if a == b => None,
        (Entry::Link { target: a, .. }, Entry::Link { target: b, .. }) => {
            changed(format!("it points to `{b}` instead of `{a}`"))
        }
        (Entry::File { bytes: a, .. }, Entry::File { bytes: b, .. }) if a != b => {
            changed(format!("{b} bytes instead of {a}"))
        }
        (Entry::File { content: a, .. }, Entry::File { content: b, .. }) => {
            content_fault(path, a, b)
        }
        (Entry::File { .. }, Entry::Link { .. }) => changed("a link instead of a file".into()),
        (Entry::Link { .. }, Entry::File { .. }) => changed("a file instead of a link".into()),
    }
}

fn content_fault(path: &str, expected: &Content, found: &Content) -> Option<PackFault> {
    let (path, changed) = (path.to_owned(), "another content".to_owned());
    match (expected, found) {
        (Content::Whole { sha256: a }, Content::Whole { sha256: b }) => {
            (a != b).then_some(PackFault::Changed { path, how: changed })
        }
        (
            Content::Sampled {
                stretches: s,
                sha256: a,
                modified_s: m,
            },
            Content::Sampled {
                stretches: t,
                sha256: b,
                modified_s: n,
            },
        ) if s == t => {
            if a != b {
                Some(PackFault::Changed { path, how: changed })
            } else {
                (m != n).then_some(PackFault::Rewritten { path })
            }
        }
        _ => Some(PackFault::Unreadable {
            path,
            why: "the manifest was made with other samples: write it again with this version"
                .into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::pack_fault::Weight;
    use super::*;

    fn whole(bytes: u64, sha256: &str) -> Entry {
        Entry::File {
            bytes,
            content: Content::Whole {
                sha256: sha256.into(),
            },
        }
    }

    fn sampled(sha256: &str, modified_s: i64) -> Entry {
        Entry::File {
            bytes: 1 << 40,
            content: Content::Sampled {
                stretches: stretches(1 << 40),
                sha256: sha256.into(),
                modified_s,
            },
        }
    }

    fn manifest(entries: &[(&str, Entry)]) -> Manifest {
        Manifest::new(
            entries
                .iter()
                .map(|(p, e)| ((*p).to_owned(), e.clone()))
                .collect(),
        )
    }

    #[test]
    fn the_same_pack_has_no_faults() {
        let pack = manifest(&[
            ("config.json", whole(3, "a")),
            ("m.safetensors", sampled("b", 5)),
        ]);
        assert_eq!(pack.compare(&pack), vec![]);
    }

    #[test]
    fn every_difference_is_told_with_its_path() {
        let before = manifest(&[
            ("a", whole(3, "1")),
            ("b", whole(3, "1")),
            ("c", whole(3, "1")),
            ("s", sampled("1", 5)),
        ]);
        let after = manifest(&[
            ("a", whole(4, "1")),
            ("b", whole(3, "2")),
            ("d", whole(3, "1")),
            ("s", sampled("1", 6)),
        ]);
        let faults = before.compare(&after);
        assert!(matches!(&faults[..], [
            PackFault::Changed { path: a, .. },
            PackFault::Changed { path: b, .. },
            PackFault::Missing { path: c },
            PackFault::Rewritten { path: s },
            PackFault::Extra { path: d },
        ] if [a, b, c, s, d] == ["a", "b", "c", "s", "d"]));
        assert_eq!(faults[3].weight(), Weight::Notes);
    }

    #[test]
    fn a_link_out_of_the_pack_is_a_fault_even_if_the_manifest_has_it_too() {
        let pack = manifest(&[(
            "tokenizer.json",
            Entry::Link {
                target: "/srv/old/tokenizer.json".into(),
                leads: Leads::Outside,
            },
        )]);
        assert!(matches!(
            pack.compare(&pack)[..],
            [PackFault::LeavesPack { .. }]
        ));
    }

    #[test]
    fn samples_reach_from_the_first_to_the_last_byte() {
        let stretches = stretches(5_000_000_001);
        assert_eq!(stretches.len() as u64, STRETCHES);
        assert_eq!(stretches[0].from, 0);
        let last = stretches[stretches.len() - 1];
        assert_eq!(last.from + last.length, 5_000_000_001);
        assert!(
            stretches
                .windows(2)
                .all(|w| w[0].from + w[0].length <= w[1].from)
        );
    }

    #[test]
    fn a_manifest_reads_back_as_written() {
        let pack = manifest(&[("a", whole(3, "1")), ("s", sampled("1", 5))]);
        let text = serde_json::to_string(&pack).unwrap();
        assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), pack);
    }
}
