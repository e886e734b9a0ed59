//! A gate as it stands after reading: every name resolved, every default filled in.

use std::collections::BTreeMap;
use std::time::Duration;

use super::expect::Expectation;
use super::kind::{Kind, Params};
use crate::dialect::{Dialect, Scope};

pub use crate::dialect::{Part, Ranks};

/// What must hold before a build may take the seat.
#[derive(Debug, Clone)]
pub struct Gate {
    /// Name of the gate: the file's stem; names the folder of its runs.
    pub name: String,
    /// Title for people.
    pub title: String,
    /// The seat.
    pub seat: Seat,
    /// The builds, in the order of the file; never empty. Without `[builds]` there is one, `seat`, that is attached to.
    pub builds: Vec<Build>,
    /// The paths, in the order of the file.
    pub paths: Vec<PathSpec>,
    /// The checks, in the order of the file; never empty.
    pub checks: Vec<Check>,
    /// Recorded runs that expectations refer to, by name: path of a run directory or `report.json`.
    pub runs: BTreeMap<String, RecordedRun>,
    /// The file's text as read.
    pub source: String,
}

/// Where the build sits.
#[derive(Debug, Clone)]
pub struct Seat {
    /// Base URL; port 0 means "a free port, chosen at boot and given to the command as `{port}`".
    pub url: String,
    /// Model to ask for; absent: the first that the seat offers.
    pub model: Option<String>,
    /// Dialect; absent: recognised.
    pub dialect: Option<&'static Dialect>,
    /// Ranks that serve.
    pub ranks: Ranks,
    /// Where its log is; absent: the log of the command that we start, or none when attached.
    pub log: Option<LogSource>,
    /// Further metrics URLs (several API servers); the base URL's own is always read.
    pub metrics: Vec<String>,
    /// Environment variable that holds the API key.
    pub api_key_env: Option<String>,
    /// Build that must serve when the run is over (restore); absent: none is started again.
    pub restore: Option<String>,
    /// Whether builds run one at a time or all at once.
    pub occupancy: Occupancy,
    /// GPUs by index whose clocks belong to the figure; empty: all that the seat's processes use.
    pub gpus: Vec<u32>,
    /// Lowest SM clock in MHz that a figure may have been measured at; absent: none is asked for.
    pub clock_floor_mhz: Option<u32>,
}

/// Whether two builds can be up at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occupancy {
    /// One build at a time: alternation costs a boot (one set of GPUs).
    OneAtATime,
    /// All builds at once, each at its own URL: alternation is by window.
    SideBySide,
}

/// Where a log comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogSource {
    /// A file.
    File(String),
    /// A docker or podman container, by name or id.
    Docker(String),
    /// Standard output of a command (ssh, a launcher).
    Command(Vec<String>),
    /// A systemd unit.
    Journald(String),
    /// A pod, `namespace/pod` or `namespace/pod/container`.
    Kubernetes(String),
}

/// How a build comes to the seat.
#[derive(Debug, Clone)]
pub struct Build {
    /// Name.
    pub name: String,
    /// Command that starts it; empty: attach to what serves. The word `sekimon` in first place is this program.
    pub start: Vec<String>,
    /// Command that stops it, for launchers that detach (docker); empty: its process group is ended.
    pub stop: Vec<String>,
    /// Environment on top of ours.
    pub env: BTreeMap<String, String>,
    /// Working directory.
    pub cwd: Option<String>,
    /// How long it may take to become ready.
    pub ready: Duration,
    /// Its own URL; absent: the seat's.
    pub url: Option<String>,
    /// Its own log; absent: the seat's.
    pub log: Option<LogSource>,
    /// The path that this build takes when it serves as a reference; absent: none is claimed.
    pub path: Option<String>,
    /// Line of the gate file that names it.
    pub line: usize,
}

/// What proves that a path was taken, and what refutes it.
#[derive(Debug, Clone)]
pub struct PathSpec {
    /// Name.
    pub name: String,
    /// Lines that announce it.
    pub announced: Vec<LineClaim>,
    /// What must live in every worker.
    pub resident: Vec<ResidentClaim>,
    /// Counters that must move in the measured window.
    pub moved: Vec<CounterClaim>,
    /// Counters that must be still in the measured window.
    pub still: Vec<CounterClaim>,
    /// Lines that refute it.
    pub refuted: Vec<RefutingLine>,
    /// Line of the gate file that names it.
    pub line: usize,
}

/// A log line that must be seen.
#[derive(Debug, Clone)]
pub struct LineClaim {
    /// Regular expression.
    pub pattern: String,
    /// Which part of a line it is held against: the message, or the whole record with its source file.
    pub part: Part,
    /// How many times.
    pub on: Count,
    /// Between which moments.
    pub when: When,
    /// Example lines that must match, tested at load.
    pub matches: Vec<String>,
    /// Example lines that must not match, tested at load.
    pub never: Vec<String>,
}

/// How many lines are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// At least once on each unit of this scope.
    Each(Scope),
    /// Exactly this many in all.
    Exactly(u64),
    /// At least this many in all.
    AtLeast(u64),
}

/// Which stretch of the log counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// From the boot's first byte to the window's end.
    SinceBoot,
    /// Only while the window was open.
    Window,
}

/// Something that must live in the serving processes.
#[derive(Debug, Clone)]
pub enum ResidentClaim {
    /// A mapped library, by file name, with its SHA-256 where given.
    Library {
        /// File name, or the end of a path.
        name: String,
        /// Lower-case hex SHA-256; absent: any.
        sha256: Option<String>,
    },
    /// A variable in the live environment of every worker.
    Env {
        /// Name.
        name: String,
        /// Value; absent: must not be set.
        value: Option<String>,
    },
}

/// A counter that a path claims.
#[derive(Debug, Clone)]
pub struct CounterClaim {
    /// Selector (`name{label="value"}`).
    pub selector: String,
    /// Label that tells the rank, when each rank must be seen.
    pub rank_label: Option<String>,
    /// Smallest movement that counts; 1 unless given.
    pub at_least: f64,
}

/// A line that refutes a path.
#[derive(Debug, Clone)]
pub struct RefutingLine {
    /// Regular expression on the message.
    pub pattern: String,
    /// Lines that match this as well are harmless.
    pub except: Option<String>,
    /// Between which moments.
    pub when: When,
    /// Example lines that must match, tested at load.
    pub matches: Vec<String>,
    /// Example lines that must not match, tested at load.
    pub never: Vec<String>,
}

/// A run that expectations refer to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedRun {
    /// Path of the run directory, of its `report.json`, or of a folder of certified runs (sessions), relative to the gate
    /// file.
    pub path: String,
    /// Build of that run to compare with; absent: the build of the same name as the judged one, else its only one.
    pub build: Option<String>,
    /// SHA-256 that its `report.json` must have; absent: any.
    pub sha256: Option<String>,
}

/// One check of a gate.
#[derive(Debug, Clone)]
pub struct Check {
    /// Id, unique in the gate: `kind` unless given.
    pub id: String,
    /// Its kind.
    pub kind: &'static dyn Kind,
    /// Builds that it runs on; the last one is judged, the others are references.
    pub builds: Vec<String>,
    /// Path that the judged build must prove; absent where the kind needs none.
    pub path: Option<String>,
    /// Repeats of each case on each build.
    pub repeats: Repeats,
    /// What is expected.
    pub expect: Vec<Expectation>,
    /// The kind's own keys, defaults filled in.
    pub params: Params,
    /// Error rate of each one-sided bound.
    pub alpha: f64,
    /// Largest swing (range over median) with which a figure may be judged; absent: none.
    pub max_swing: Option<f64>,
    /// Line of the gate file.
    pub line: usize,
}

impl Check {
    /// The build that is judged.
    pub fn subject(&self) -> &str {
        self.builds.last().map_or("", String::as_str)
    }
}

/// How often a case is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeats {
    /// At least.
    pub min: u32,
    /// At most; more than `min` lets the run go on until decided.
    pub max: u32,
}

impl Gate {
    /// The build of this name.
    pub fn build(&self, name: &str) -> Option<&Build> {
        self.builds.iter().find(|b| b.name == name)
    }

    /// The path of this name.
    pub fn path(&self, name: &str) -> Option<&PathSpec> {
        self.paths.iter().find(|p| p.name == name)
    }

    /// The check of this id.
    pub fn check(&self, id: &str) -> Option<&Check> {
        self.checks.iter().find(|c| c.id == id)
    }
}
