//! What is done in one window.

use crate::spec::kind::Params;

/// What is done in one window.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Requests of a workload by closed-loop streams.
    Load(Load),
    /// One needle in one haystack.
    Needle(NeedleTask),
    /// Logprobs of fixed token windows.
    Score(ScoreTask),
    /// The answers of another build, scored by this one.
    Audit(AuditTask),
    /// No traffic: what log, counters and processes say.
    Look,
    /// The processes, files and packages of the seat, counted.
    Count(Params),
    /// A model pack against its manifest.
    Pack(PackTask),
    /// A command of the author's, or a result file.
    External(ExternalTask),
}

/// Requests of a workload by closed-loop streams.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Workload: a built-in name, or `file:PATH`.
    pub workload: String,
    /// SHA-256 that a workload file must have; absent: any.
    pub sha256: Option<String>,
    /// Streams at once.
    pub streams: u32,
    /// Requests of each stream, one after another.
    pub requests: u32,
    /// Tokens of each answer at most.
    pub max_tokens: u32,
    /// Whether an answer may end by itself.
    pub ending: Ending,
    /// Which prompts: each repeat takes others, the same for every build.
    pub prompts: Prompts,
    /// Whether token ids are asked for in the answer.
    pub ids: Ids,
    /// Route of the requests.
    pub route: Route,
}

/// Whether an answer may end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The model ends when it ends.
    Free,
    /// The end token is ignored where the server can, so that each answer has `max_tokens` tokens.
    Ignored,
}

/// Which prompts a window takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prompts {
    /// Drawn anew for this repeat; both builds get the same.
    OfRepeat(u32),
    /// The same prompt for every request of every window.
    Same,
    /// Every task of the workload once, in order.
    Each,
}

/// Whether token ids are asked for in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// Asked for where the server can.
    Wanted,
    /// Not asked for.
    Unwanted,
}

/// One needle in one haystack.
#[derive(Debug, Clone, PartialEq)]
pub struct NeedleTask {
    /// Prompt length in tokens, exactly.
    pub tokens: u64,
    /// Language of haystack and question.
    pub language: String,
    /// Depth of the needle, 0 at the front, 1 at the end.
    pub depth: f64,
    /// Which needle: a run draws its own values from its seed.
    pub draw: u32,
    /// Decoys at most: facts of the same form with other keys.
    pub decoys: u32,
    /// What the prompt holds.
    pub content: NeedleContent,
    /// Tokens of the answer at most.
    pub max_tokens: u32,
    /// Route of the request.
    pub route: Route,
    /// Deadline of the first token in seconds.
    pub deadline_s: f64,
}

/// What a needle prompt holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeedleContent {
    /// Needle and decoys.
    Needle,
    /// Decoys only: the value must not appear.
    Missing,
    /// The question asks for a decoy's key: the decoy's value is right.
    Swapped,
}

/// Route of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// Chat, with the server's template.
    Chat,
    /// Plain completion, token ids where the server takes them.
    Completion,
}

/// Logprobs of fixed token windows.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreTask {
    /// Text: a built-in name (`code`, `en`, `ja`), or `file:PATH`.
    pub corpus: String,
    /// SHA-256 that a corpus file must have; absent: any.
    pub sha256: Option<String>,
    /// Tokens of a window.
    pub window: u32,
    /// Windows at most.
    pub windows: u32,
    /// What is scored, for the guards.
    pub control: Control,
}

/// What a scoring window is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// The text itself.
    Text,
    /// Each window's tokens shuffled: must be clearly worse.
    Shuffled,
    /// The text again, last window first: must give the same values.
    Reversed,
    /// Prefixes of one window at lengths around the engine's seams: the common part must agree.
    Seams,
}

/// The answers of another build, scored by this one.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditTask {
    /// Build whose answers are scored.
    pub written_by: String,
    /// The load that wrote them, so that its prompts can be made again.
    pub load: Load,
}

/// A model pack against its manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackTask {
    /// Folder of the pack.
    pub dir: String,
    /// Manifest file.
    pub manifest: String,
}

/// A command of the author's, or a result file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalTask {
    /// Command; empty: only the file is read.
    pub command: Vec<String>,
    /// Result file; absent: the command's standard output.
    pub file: Option<String>,
    /// Deadline in seconds.
    pub deadline_s: u64,
}

/// Decode rate assumed for durations, in tok/s per stream: the incumbent's middle in the user's record (60 tok/s).
const ASSUMED_DECODE: f64 = 60.0;
/// Prefill rate assumed for durations, in tok/s: 166k tokens in 120 s as in the user's record.
const ASSUMED_PREFILL: f64 = 1400.0;

/// Tokens of a warm-up answer at most: enough decode steps to reach every captured graph, not more.
const WARM_UP_TOKENS: u32 = 64;

impl Task {
    /// Expected seconds, at 60 tok/s a stream and 1,400 tok/s of prefill; a plan says that it assumes so.
    pub fn expected_seconds(&self) -> f64 {
        match self {
            Self::Load(load) => load.expected_seconds(),
            Self::Needle(needle) => {
                needle.tokens as f64 / ASSUMED_PREFILL
                    + f64::from(needle.max_tokens.min(32)) / ASSUMED_DECODE
            }
            Self::Score(score) => {
                f64::from(score.window) * f64::from(score.windows) / ASSUMED_PREFILL
            }
            Self::Audit(audit) => {
                audit.load.expected_seconds() + f64::from(audit.load.max_tokens) / ASSUMED_PREFILL
            }
            Self::Look | Self::Count(_) => 1.0,
            Self::Pack(_) => 10.0,
            Self::External(external) => external.deadline_s.min(60) as f64,
        }
    }

    /// The task to run and throw away before this one is first measured on a boot: the same shape, shorter; none where
    /// nothing warms up.
    pub fn warm_up(&self) -> Option<Self> {
        match self {
            Self::Load(load) => Some(Self::Load(Load {
                requests: 1,
                max_tokens: load.max_tokens.min(WARM_UP_TOKENS),
                prompts: Prompts::OfRepeat(u32::MAX),
                ..load.clone()
            })),
            Self::Needle(_)
            | Self::Score(_)
            | Self::Audit(_)
            | Self::Look
            | Self::Count(_)
            | Self::Pack(_)
            | Self::External(_) => None,
        }
    }

    /// What it is, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Load(load) => format!(
                "{} × {} streams × {} requests of ≤ {} tokens",
                load.workload, load.streams, load.requests, load.max_tokens
            ),
            Self::Needle(needle) => format!(
                "needle in {} tokens ({}, depth {:.0} %)",
                needle.tokens,
                needle.language,
                needle.depth * 100.0
            ),
            Self::Score(score) => {
                format!(
                    "logprobs of {}: ≤ {} windows of {} tokens",
                    score.corpus, score.windows, score.window
                )
            }
            Self::Audit(audit) => format!("score the answers of `{}`", audit.written_by),
            Self::Look => "no traffic: log, counters, processes".into(),
            Self::Count(_) => "count mounts, variables, files".into(),
            Self::Pack(pack) => format!("pack {} against {}", pack.dir, pack.manifest),
            Self::External(external) if external.command.is_empty() => "read a result file".into(),
            Self::External(external) => format!("run `{}`", external.command.join(" ")),
        }
    }
}

impl Load {
    fn expected_seconds(&self) -> f64 {
        f64::from(self.requests) * (f64::from(self.max_tokens) / ASSUMED_DECODE + 0.5)
    }
}
