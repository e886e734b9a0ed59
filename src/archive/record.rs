//! One line of the journal.

use serde::{Deserialize, Serialize};

use crate::evidence::exchange::Exchange;
use crate::evidence::window::{Boot, Residents, Window};
use crate::judge::recorded::Session;

/// Something that happened in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum Record {
    /// The run began.
    Start(Box<Start>),
    /// A build is at the seat and answers.
    Boot(Box<Boot>),
    /// The processes of a boot were looked at.
    Residents(Box<Residents>),
    /// A request ended.
    Exchange {
        /// Window that it belongs to.
        window: String,
        /// The request.
        exchange: Box<Exchange>,
    },
    /// A window closed.
    Window(Box<Window>),
    /// Something was declared and not carried out.
    NotRun {
        /// Case id.
        case: String,
        /// Build.
        build: String,
        /// Why.
        reason: String,
    },
    /// A build left the seat.
    Stop {
        /// Boot id.
        boot: String,
        /// How it ended, for people.
        how: String,
    },
    /// The run ended.
    End {
        /// `complete`, or why it ended before.
        how: String,
        /// Wall time in seconds.
        seconds: f64,
    },
}

/// The conditions that a run began under.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Start {
    /// Id of the run.
    pub id: String,
    /// UTC time, RFC 3339.
    pub started: String,
    /// Version of this program.
    pub tool_version: String,
    /// Gate name.
    pub gate: String,
    /// File name of the gate, for messages.
    pub gate_file: String,
    /// SHA-256 of the gate file.
    pub gate_sha256: String,
    /// Seed that every needle and salt of the run was drawn from; chosen anew for each run, told only here.
    pub seed: u64,
    /// URL that `--seat` put in place of the gate's; absent if none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seat_override: Option<String>,
    /// How many runs of this gate on this build stand in the same folder before this one; re-runs are judged stricter.
    #[serde(default)]
    pub earlier_runs: u32,
    /// Why earlier runs do not count against this one, in the words of who started it; absent if nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_build: Option<String>,
    /// Host facts, name and value.
    pub host: Vec<(String, String)>,
    /// GPU facts, name and value.
    #[serde(default)]
    pub gpu: Vec<(String, String)>,
    /// Recorded runs that expectations refer to, as they were read at the start: name and the figures.
    #[serde(default)]
    pub references: Vec<RecordedReference>,
}

/// A recorded run that this one is compared with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
pub struct RecordedReference {
    /// Its name under `[runs]`.
    pub name: String,
    /// SHA-256 of its `report.json`.
    pub sha256: String,
    /// The report; absent when it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Box<serde_json::Value>>,
    /// The sessions that it stands for, where it is a folder of runs; `report` is then the newest of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<Session>,
    /// Why it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
}
