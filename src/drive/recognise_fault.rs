//! Why a seat was not recognised, and whether waiting may mend it.

use std::fmt;

use super::fault::{Fault, FaultKind};

/// Why a seat was not recognised.
#[derive(Debug, Clone, PartialEq)]
pub enum RecogniseFault {
    /// The conversation failed.
    Http(Fault),
    /// HTTP is answered, but no OpenAI-like route.
    NotOpenAi {
        /// URL.
        url: String,
        /// Status of `/v1/models`.
        status: u16,
        /// Start of the body.
        body: String,
    },
    /// The model that the gate names is not offered.
    ModelNotOffered {
        /// URL.
        url: String,
        /// The model asked for.
        model: String,
        /// What is offered.
        offered: Vec<String>,
    },
    /// The gate names no model and the seat does not offer exactly one.
    ModelUnclear {
        /// URL.
        url: String,
        /// What is offered.
        offered: Vec<String>,
    },
    /// The seat was not ready in time.
    NotReady {
        /// Seconds that were waited.
        waited_s: f64,
        /// What it said last.
        last: Box<RecogniseFault>,
    },
    /// The waiting ended because the seat cannot come any more (its process ended); the text says why.
    Gone(String),
}

impl fmt::Display for RecogniseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(fault) => write!(f, "{fault}"),
            Self::NotOpenAi { url, status, body } => write!(
                f,
                "`{url}`: HTTP {status}: `{body}`; something answers HTTP there, but it is no OpenAI-like seat"
            ),
            Self::ModelNotOffered {
                url,
                model,
                offered,
            } => {
                write!(
                    f,
                    "`{url}`: model `{model}` is not offered; offered: {}",
                    list(offered)
                )?;
                match nearest(model, offered) {
                    Some(near) => write!(f, "; did you mean `{near}`?"),
                    None => Ok(()),
                }
            }
            Self::ModelUnclear { url, offered } => write!(
                f,
                "`{url}`: which model? offered: {}; name one with `model = \"…\"`",
                list(offered)
            ),
            Self::NotReady { waited_s, last } => write!(
                f,
                "not ready after {waited_s:.0} s; at last: {last}; look at the seat's log, or raise the deadline"
            ),
            Self::Gone(why) => write!(f, "the seat is gone: {why}"),
        }
    }
}

impl std::error::Error for RecogniseFault {}

impl RecogniseFault {
    /// Whether the seat may yet become ready: nobody listens yet, or it says that it is loading.
    pub fn may_become_ready(&self) -> bool {
        matches!(
            self,
            Self::Http(Fault {
                kind: FaultKind::Refused
                    | FaultKind::Connect(_)
                    | FaultKind::TimedOut(_)
                    | FaultKind::Loading(_)
                    | FaultKind::Broken(_)
                    | FaultKind::Status {
                        status: 500..=599,
                        ..
                    },
                ..
            })
        )
    }
}

fn list(offered: &[String]) -> String {
    if offered.is_empty() {
        return "none".to_owned();
    }
    let named: Vec<String> = offered.iter().map(|m| format!("`{m}`")).collect();
    named.join(", ")
}

fn nearest<'a>(model: &str, offered: &'a [String]) -> Option<&'a String> {
    // 0.7 is where strsim's own examples stop looking alike to a person.
    offered
        .iter()
        .map(|m| (strsim::jaro_winkler(model, m), m))
        .filter(|(likeness, _)| *likeness > 0.7)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, m)| m)
}
