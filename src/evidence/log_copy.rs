//! The copy of a log in the evidence: marks in it, what it was pinned to, and what went wrong while it was made.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a log source was when the copy began; another pin later is another log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LogPin {
    /// A file.
    File {
        /// Device number.
        device: u64,
        /// Inode.
        inode: u64,
    },
    /// A file that does not exist yet.
    NoFileYet,
    /// A command whose output is the log.
    Command {
        /// Process id.
        pid: u32,
    },
    /// A container in one run of it.
    Container {
        /// Full id.
        id: String,
        /// When it was started, as the engine spells it.
        started: String,
    },
}

/// Something that happened to a log while it was followed. After any of these the absence of a line proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LogIncident {
    /// The path now leads to another file; the old one was read to its end first.
    Rotated {
        /// Bytes of the copy when it was noticed.
        at: u64,
    },
    /// The file was cut or written anew; what was written and cut between two looks is lost.
    Truncated {
        /// Bytes of the copy when it was noticed.
        at: u64,
    },
    /// The source says itself that it dropped lines.
    Gap {
        /// Bytes of the copy when it was noticed.
        at: u64,
        /// Its words.
        text: String,
    },
    /// The source can lose lines without saying so.
    MayLose {
        /// How.
        why: String,
    },
    /// The file is not there.
    Missing {
        /// Bytes of the copy when it was noticed.
        at: u64,
    },
    /// The source cannot be read any more.
    Unreadable {
        /// Bytes of the copy when it was noticed.
        at: u64,
        /// Why.
        why: String,
    },
    /// The source ended: the command exited, the container stopped.
    Ended {
        /// Bytes of the copy when it was noticed.
        at: u64,
        /// How.
        how: String,
    },
    /// The container was started again or made anew.
    Restarted {
        /// Bytes of the copy when it was noticed.
        at: u64,
        /// What differs.
        how: String,
    },
    /// The copy could not be written.
    CopyFailed {
        /// Bytes of the copy when it was noticed.
        at: u64,
        /// Why.
        why: String,
    },
}

impl fmt::Display for LogIncident {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rotated { at } => write!(f, "the log was rotated at byte {at} of the copy"),
            Self::Truncated { at } => {
                write!(
                    f,
                    "the log was truncated or written anew at byte {at} of the copy"
                )
            }
            Self::Gap { at, text } => write!(
                f,
                "the log's source dropped lines before byte {at} of the copy: `{text}`"
            ),
            Self::MayLose { why } => f.write_str(why),
            Self::Missing { at } => {
                write!(f, "the log file was not there at byte {at} of the copy")
            }
            Self::Unreadable { at, why } => write!(
                f,
                "the log could not be read after byte {at} of the copy: {why}"
            ),
            Self::Ended { at, how } => {
                write!(f, "the log ended at byte {at} of the copy: {how}")
            }
            Self::Restarted { at, how } => {
                write!(f, "at byte {at} of the copy: {how}")
            }
            Self::CopyFailed { at, why } => {
                write!(f, "the copy could not be written after byte {at}: {why}")
            }
        }
    }
}

/// Where the copy begins in its source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum LogStart {
    /// At its first byte, as far as the source still has it.
    Beginning,
    /// Later: lines of the boot may be missing, and their absence proves nothing.
    Late {
        /// Bytes of the source before the copy's first; absent if the source does not say.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skipped: Option<u64>,
    },
}

/// A moment in a copy. Two marks bound a window.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogMark {
    /// Bytes of the copy at this moment.
    pub offset: u64,
    /// What the source is now.
    pub pin: LogPin,
    /// What happened since the mark before; empty means that every byte between the two marks is there.
    pub incidents: Vec<LogIncident>,
}

/// A finished copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogSummary {
    /// Bytes of the copy.
    pub bytes: u64,
    /// Where it begins.
    pub start: LogStart,
    /// What the source was at the end.
    pub pin: LogPin,
    /// Everything that happened, in order; at most [`INCIDENT_LIMIT`].
    pub incidents: Vec<LogIncident>,
}

/// Incidents kept of one copy; a log that is truncated every second says no more with more.
pub const INCIDENT_LIMIT: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incidents_read_back_as_recorded_and_say_where() {
        let incidents = [
            LogIncident::Rotated { at: 7 },
            LogIncident::Gap {
                at: 7,
                text: "Suppressed 12 messages".into(),
            },
        ];
        let text = serde_json::to_string(&incidents).unwrap();
        let back: Vec<LogIncident> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, incidents);
        assert!(incidents.iter().all(|i| i.to_string().contains("byte 7")));
    }
}
