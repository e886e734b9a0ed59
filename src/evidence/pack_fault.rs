//! What can be wrong with a model pack, and how much it weighs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Something wrong with a pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum PackFault {
    /// A link leads out of the pack: whoever tidies up there takes the model away.
    LeavesPack {
        /// Path of the link.
        path: String,
        /// Where it points.
        target: String,
    },
    /// A link leads to nothing.
    Dangling {
        /// Path of the link.
        path: String,
        /// Where it points.
        target: String,
    },
    /// A file of the manifest is not there.
    Missing {
        /// Path.
        path: String,
    },
    /// A file is there that the manifest does not know.
    Extra {
        /// Path.
        path: String,
    },
    /// Size or content is not that of the manifest.
    Changed {
        /// Path.
        path: String,
        /// In what.
        how: String,
    },
    /// Size and sampled content are the same but the file was written again: a change between the samples is possible.
    Rewritten {
        /// Path.
        path: String,
    },
    /// A file that a restart needs is not there.
    NeededMissing {
        /// Path.
        path: String,
        /// What needs it.
        because: String,
    },
    /// A file that a restart needs is there and cannot be used.
    Unusable {
        /// Path.
        path: String,
        /// Why.
        why: String,
    },
    /// A part of the folder could not be read.
    Unreadable {
        /// Path.
        path: String,
        /// Why.
        why: String,
    },
}

/// How much a fault weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// The pack is not the one of the manifest, or would not start again.
    Fails,
    /// Evidence is absent: nothing can be said.
    Hides,
    /// Worth knowing; decides nothing.
    Notes,
}

impl PackFault {
    /// How much it weighs.
    pub fn weight(&self) -> Weight {
        match self {
            Self::Unreadable { .. } => Weight::Hides,
            Self::Rewritten { .. } => Weight::Notes,
            _ => Weight::Fails,
        }
    }
}

impl fmt::Display for PackFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeavesPack { path, target } => write!(
                f,
                "`{path}` is a link out of the pack, to `{target}`: copy the file into the pack"
            ),
            Self::Dangling { path, target } => write!(
                f,
                "`{path}` is a link to `{target}`, which is not there: a running seat goes on, but it would not start again"
            ),
            Self::Missing { path } => write!(f, "`{path}` of the manifest is missing"),
            Self::Extra { path } => write!(f, "`{path}` is not in the manifest"),
            Self::Changed { path, how } => write!(f, "`{path}` is not that of the manifest: {how}"),
            Self::Rewritten { path } => write!(
                f,
                "`{path}` has another time of change; size and sampled content are the same"
            ),
            Self::NeededMissing { path, because } => {
                write!(f, "`{path}` is missing: {because}")
            }
            Self::Unusable { path, why } => write!(f, "`{path}` cannot be used: {why}"),
            Self::Unreadable { path, why } => write!(f, "`{path}` could not be read: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_file_is_no_failure_and_a_rewritten_one_only_a_note() {
        let (path, why) = ("m.safetensors".to_owned(), "permission denied".to_owned());
        let hidden = PackFault::Unreadable {
            path: path.clone(),
            why,
        };
        assert_eq!(hidden.weight(), Weight::Hides);
        assert_eq!(
            PackFault::Rewritten { path: path.clone() }.weight(),
            Weight::Notes
        );
        let missing = PackFault::Missing { path };
        assert_eq!(missing.weight(), Weight::Fails);
        assert!(missing.to_string().contains("`m.safetensors`"));
    }
}
