//! Python packages as their own records describe them. Pure readers of `METADATA`, `RECORD` and `direct_url.json`.

use serde::{Deserialize, Serialize};

use super::absence::Sighting;

/// One installed distribution.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Package {
    /// Name as its metadata spells it.
    pub name: String,
    /// Version.
    pub version: String,
    /// The folder that holds it (`…/site-packages`), as the process sees it.
    pub folder: String,
    /// Where its source lies if it is installed editable: what runs is that folder, not this record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub editable: Option<String>,
    /// Its files against its RECORD.
    pub files: Sighting<RecordCheck>,
}

/// The files of a package against its RECORD.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordCheck {
    /// Files that RECORD gives a digest for.
    pub listed: u64,
    /// Files that were hashed.
    pub checked: u64,
    /// Files that are not as recorded, sorted by path, at most [`ALTERED_LIMIT`].
    pub altered: Vec<Altered>,
    /// How many are not as recorded in all.
    pub altered_in_all: u64,
}

/// Altered files that are named; more say no more.
pub const ALTERED_LIMIT: usize = 64;

/// A file that is not as its RECORD says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Altered {
    /// Path relative to the folder.
    pub path: String,
    /// What is the matter.
    pub how: Alteration,
}

/// How a file differs from its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Alteration {
    /// Its content has another digest.
    Changed,
    /// It is not there.
    Missing,
}

/// A file that RECORD gives a SHA-256 for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordEntry {
    /// Path relative to the folder.
    pub path: String,
    /// Digest as RECORD spells it: URL-safe base64 without padding.
    pub sha256: String,
    /// Size in bytes, where given.
    pub bytes: Option<u64>,
}

/// Name and version from the head of a `METADATA` file.
pub fn parse_metadata(text: &str) -> Option<NameVersion> {
    let head = |key: &str| {
        text.lines()
            .take_while(|line| !line.is_empty())
            .find_map(|line| line.strip_prefix(key))
            .map(|value| value.trim().to_owned())
    };
    Some(NameVersion {
        name: head("Name:")?,
        version: head("Version:")?,
    })
}

/// What a package calls itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NameVersion {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
}

/// The files with a SHA-256 in a `RECORD`; bytecode and the record itself have none.
pub fn parse_record(text: &str) -> Vec<RecordEntry> {
    text.lines().filter_map(parse_record_line).collect()
}

fn parse_record_line(line: &str) -> Option<RecordEntry> {
    let mut fields = line.rsplitn(3, ',');
    let bytes = fields.next()?.trim().parse().ok();
    let sha256 = fields.next()?.strip_prefix("sha256=")?.to_owned();
    let path = fields.next()?;
    // A path with a comma or quote is quoted, quotes doubled.
    let path = match path.strip_prefix('"').and_then(|p| p.strip_suffix('"')) {
        Some(quoted) => quoted.replace("\"\"", "\""),
        None => path.to_owned(),
    };
    Some(RecordEntry {
        path,
        sha256,
        bytes,
    })
}

/// The source folder or address of an editable install, from `direct_url.json`; nothing for an ordinary install.
pub fn parse_editable(text: &str) -> Option<String> {
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    let editable = value.pointer("/dir_info/editable")?.as_bool()?;
    let url = value.get("url")?.as_str()?;
    editable.then(|| url.strip_prefix("file://").unwrap_or(url).to_owned())
}

/// URL-safe base64 without padding, as RECORD spells digests.
pub fn record_digest(digest: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity(digest.len().div_ceil(3) * 4);
    for group in digest.chunks(3) {
        let mut bits = [0; 3];
        bits[..group.len()].copy_from_slice(group);
        let number = u32::from_be_bytes([0, bits[0], bits[1], bits[2]]);
        for place in 0..=group.len() {
            let index = (number >> (18 - 6 * place)) & 63;
            text.push(char::from(LETTERS[index as usize]));
        }
    }
    text
}

/// Whether two package names are the same package: case, `-`, `_` and `.` do not count.
pub fn same_name(a: &str, b: &str) -> bool {
    let plain = |name: &str| name.to_ascii_lowercase().replace(['_', '.'], "-");
    plain(a) == plain(b)
}

/// Packages that are installed in more than one folder: which one runs depends on the search path.
pub fn shadowed(packages: &[Package]) -> Vec<&Package> {
    packages
        .iter()
        .filter(|one| {
            packages
                .iter()
                .any(|other| same_name(&one.name, &other.name) && one.folder != other.folder)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_version_come_from_the_head_only() {
        let text =
            "Metadata-Version: 2.1\nName: vllm\nVersion: 0.33.0\n\nVersion: of the description\n";
        let parsed = parse_metadata(text).unwrap();
        assert_eq!(
            (parsed.name.as_str(), parsed.version.as_str()),
            ("vllm", "0.33.0")
        );
        assert_eq!(parse_metadata("Name: x\n\nVersion: 1\n"), None);
    }

    #[test]
    fn only_files_with_a_digest_are_records() {
        let text = "a/b.py,sha256=abc,12\n\"a/x,y.py\",sha256=def,3\na/__pycache__/b.pyc,,\nx.dist-info/RECORD,,\n";
        let entries = parse_record(text);
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[1].path, "a/x,y.py");
        assert_eq!(entries[0].bytes, Some(12));
    }

    #[test]
    fn digests_are_spelled_as_record_spells_them() {
        // SHA-256 of the empty text, as pip writes it for an empty `__init__.py`.
        let empty = [
            0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f,
            0xb9, 0x24, 0x27, 0xae, 0x41, 0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b,
            0x78, 0x52, 0xb8, 0x55,
        ];
        assert_eq!(
            record_digest(&empty),
            "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"
        );
    }

    #[test]
    fn an_editable_install_names_its_source() {
        let text = r#"{"dir_info": {"editable": true}, "url": "file:///srv/plugin"}"#;
        assert_eq!(parse_editable(text).as_deref(), Some("/srv/plugin"));
        assert_eq!(
            parse_editable(r#"{"url": "https://x", "vcs_info": {}}"#),
            None
        );
    }

    #[test]
    fn one_package_in_two_folders_is_shadowed() {
        let package = |name: &str, folder: &str| Package {
            name: name.into(),
            version: "1".into(),
            folder: folder.into(),
            editable: None,
            files: Sighting::absent("x", "y"),
        };
        let all = [
            package("vllm_exl3", "/a"),
            package("vllm-exl3", "/b"),
            package("torch", "/a"),
        ];
        assert_eq!(shadowed(&all).len(), 2);
    }
}
