//! A case as its folder states it; an unknown file or key is an error.

use std::fs;
use std::path::{Path, PathBuf};

use sekimon::spec::gate::Gate;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// One case.
pub(crate) struct Case {
    pub(crate) id: String,
    pub(crate) dialect: String,
    pub(crate) check: String,
    pub(crate) reason: String,
    pub(crate) names: String,
    pub(crate) removed: Vec<Piece>,
    pub(crate) gate: Gate,
    pub(crate) broken: Stated,
    pub(crate) healthy: Stated,
}

/// Which of the three a case is looked at as.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Variant {
    Broken,
    Healthy,
    /// The healthy twin without its decisive evidence.
    Removed,
}

/// A piece of evidence that can be taken away.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Piece {
    Log,
    Counters,
    Residents,
    #[serde(rename = "live environ")]
    LiveEnviron,
    Usage,
    Results,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Head {
    id: String,
    title: String,
    source: String,
    dialect: String,
    check: String,
    reason: String,
    names: String,
    removed: Vec<Piece>,
}

/// What a variant states; everything else is the common traffic.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Stated {
    /// Boot lines.
    #[serde(skip)]
    pub(crate) log: String,
    /// Lines inside each window.
    #[serde(skip)]
    pub(crate) window: String,
    /// Series that go from 0 to this value in each window.
    pub(crate) moved: Vec<String>,
    /// Series that have this value at both ends.
    pub(crate) stands: Vec<String>,
    /// What is added to a series of the common traffic.
    pub(crate) adds: Vec<String>,
    /// Live environment of each worker.
    pub(crate) env: Vec<Vec<String>>,
    /// Mapped libraries of each worker: a path, or `path=sha256`.
    pub(crate) libraries: Vec<Vec<String>>,
    /// Whether the mapped files were replaced on disk.
    pub(crate) deleted: bool,
    /// Mount points of the first worker.
    pub(crate) mounts: Vec<String>,
    /// Packages of each worker: `name version`, then files that are not as their RECORD says.
    pub(crate) packages: Vec<String>,
    /// Command line of the serving process.
    pub(crate) arguments: Vec<String>,
    /// Whether another process serves at the window's close.
    pub(crate) restarted: bool,
    /// Generated tokens of each answer; 128 unless stated.
    pub(crate) completion: Option<u64>,
    /// Finish reason; `length` unless stated.
    pub(crate) finish: Option<String>,
    /// How many requests of each window were cut.
    pub(crate) failed: u32,
    /// Most requests that ran at once; as many as streams unless stated.
    pub(crate) running: Option<f64>,
    /// Other results of the window.
    pub(crate) results: serde_json::Map<String, serde_json::Value>,
}

/// Every case, by name.
pub(crate) fn all() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fallbacks");
    let mut cases: Vec<Case> = names(&root)
        .iter()
        .filter(|n| *n != "README.md")
        .map(|name| read(&root.join(name)))
        .collect();
    cases.sort_by(|a, b| a.id.cmp(&b.id));
    cases
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect()
}

fn read(folder: &Path) -> Case {
    only(folder, &["case.toml", "gate.toml", "broken", "healthy"]);
    let head: Head = toml_of(&folder.join("case.toml"));
    assert_eq!(Some(head.id.as_str()), folder.file_name().unwrap().to_str());
    assert!(
        !head.title.is_empty() && !head.source.is_empty(),
        "{}",
        head.id
    );
    assert!(
        !head.removed.is_empty() && !head.names.is_empty(),
        "{}",
        head.id
    );
    let source = text(&folder.join("gate.toml"));
    let reading =
        sekimon::spec::read::read(&head.id, "gate.toml", &source, &sekimon::check::kinds())
            .unwrap_or_else(|faults| panic!("{}: {faults:?}", head.id));
    Case {
        gate: reading.gate,
        broken: stated(&folder.join("broken")),
        healthy: stated(&folder.join("healthy")),
        id: head.id,
        dialect: head.dialect,
        check: head.check,
        reason: head.reason,
        names: head.names,
        removed: head.removed,
    }
}

fn stated(folder: &Path) -> Stated {
    only(folder, &["evidence.toml", "log.txt", "window.txt"]);
    let mut stated: Stated = toml_of(&folder.join("evidence.toml"));
    let optional = |path: PathBuf| {
        if path.exists() {
            text(&path)
        } else {
            String::new()
        }
    };
    stated.log = optional(folder.join("log.txt"));
    stated.window = optional(folder.join("window.txt"));
    stated
}

fn only(folder: &Path, known: &[&str]) {
    for name in names(folder) {
        assert!(
            known.contains(&name.as_str()),
            "{}: unknown file `{name}`",
            folder.display()
        );
    }
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn toml_of<T: DeserializeOwned>(path: &Path) -> T {
    toml::from_str(&text(path)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
