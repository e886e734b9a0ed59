//! A window: one measurement with everything that stood beside it.

use serde::{Deserialize, Serialize};

use super::absence::Sighting;
use super::exchange::Exchange;
use super::exposition::Exposition;
use super::gpu::GpuSummary;
use super::mounts::Mount;
use super::processes::{Pins, ProcessSet};
use super::resident::Resident;

/// One boot of one build: from its start (or our attaching) to its stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// `b1`, `b2`, … in the order of the run.
    pub id: String,
    /// Name of the build.
    pub build: String,
    /// The URL that answered.
    pub url: String,
    /// UTC time of the start, RFC 3339.
    pub started: String,
    /// Seconds until the seat was ready; absent when we attached to a running seat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_s: Option<f64>,
    /// The command that started it, as given to the kernel; empty when attached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Environment asked for on top of ours, secrets redacted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(String, String)>,
    /// What the seat said of itself (dialect, version, model, context length …).
    pub identity: Identity,
    /// What the log witness holds of this boot.
    pub log: LogWitness,
}

/// What a seat says of itself over HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Identity {
    /// Id of the dialect in use.
    pub dialect: String,
    /// Server version, where told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The model asked for.
    pub model: String,
    /// Every model that the seat offers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Longest prompt plus answer in tokens, where told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_model_len: Option<u64>,
    /// Other facts told: build info, slots, `owned_by`; sorted by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<(String, String)>,
}

/// What the log witness can say of one boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LogWitness {
    /// The log is copied to `file` in the evidence folder from the boot's first byte on.
    Followed {
        /// Path relative to the evidence folder.
        file: String,
        /// Where it comes from, for people (`file …`, `docker container …`).
        source: String,
        /// Whether the copy starts at the log's beginning; if not, boot lines may be missing and absence proves nothing.
        from_beginning: bool,
    },
    /// There is no log to look at.
    Absent {
        /// Why, and what would give it.
        why: String,
    },
}

/// One measured stretch of time on one boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// `w1`, `w2`, … in the order of the run.
    pub id: String,
    /// Id of the case that it belongs to (`throughput/code/1`).
    pub case: String,
    /// Name of the build.
    pub build: String,
    /// Id of the boot.
    pub boot: String,
    /// Which repeat of its case on its build, from 0.
    pub repeat: u32,
    /// Which part of the case's programme this is (`measure`, `control`, `floor`, …).
    pub part: String,
    /// UTC time of the opening, RFC 3339.
    pub started: String,
    /// Length in seconds.
    pub seconds: f64,
    /// The counters at both ends and gauges between.
    pub counters: CounterTestimony,
    /// Log bytes `[from, to)` of the boot's copy that were written while the window was open; absent without a log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogSlice>,
    /// The seat's processes at both ends.
    pub processes: PinTestimony,
    /// GPUs over the window; absent without NVML.
    pub gpu: Sighting<Vec<GpuSummary>>,
    /// Conditions of the requests that decide comparability (temperature, max tokens, salt policy, corpus digest …), sorted by name.
    #[serde(default)]
    pub conditions: Vec<(String, String)>,
    /// Other results of the programme, by name (needle facts, scores' file, external output).
    #[serde(default)]
    pub results: serde_json::Map<String, serde_json::Value>,
    /// What disturbed it (rotated log, failed scrape, sampler gap), as sentences.
    #[serde(default)]
    pub incidents: Vec<String>,
    /// The requests; kept in the journal one by one as they end, joined on reading.
    #[serde(default, skip_serializing)]
    pub exchanges: Vec<Exchange>,
}

/// The seat's processes around a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PinTestimony {
    /// At the opening.
    pub before: Sighting<Pins>,
    /// At the close.
    pub after: Sighting<Pins>,
}

/// What lives in the processes of a boot, looked at once after its first measured window, when everything is loaded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Residents {
    /// Boot id.
    pub boot: String,
    /// The processes.
    pub set: Sighting<ProcessSet>,
    /// Each process of the set that runs the model, in its order.
    pub each: Vec<Resident>,
    /// Mounts of the first such process's namespace.
    pub mounts: Sighting<Vec<Mount>>,
}

/// A stretch of a boot's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSlice {
    /// First byte.
    pub from: u64,
    /// One past the last byte.
    pub to: u64,
    /// Whether every byte of the slice can be trusted to be there (no rotation, truncation or gap since its opening).
    pub whole: bool,
    /// Whether the same holds for every byte of the copy up to the slice's end.
    pub unbroken: bool,
}

/// What the counters said around a window.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CounterTestimony {
    /// At the opening.
    pub before: Scrape,
    /// At the close.
    pub after: Scrape,
    /// Gauges in between: seconds from the opening, requests running, requests waiting.
    #[serde(default)]
    pub gauges: Vec<GaugeSample>,
}

/// One look at the seat's metrics.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Scrape {
    /// The text is in `file` of the evidence folder.
    Taken {
        /// Path relative to the evidence folder.
        file: String,
        /// Parsed text; filled on reading, never written.
        #[serde(skip)]
        exposition: Exposition,
    },
    /// There was nothing to read.
    Absent {
        /// Why, and what would give it.
        why: String,
    },
}

/// Requests in the seat at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GaugeSample {
    /// Seconds from the window's opening.
    pub at_s: f64,
    /// Requests running; absent if the metric is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub running: Option<f64>,
    /// Requests waiting; absent if the metric is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting: Option<f64>,
}
