//! Evidence that could not be had: why, and what would give it. Never an error that ends a run, never a zero.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a piece of evidence is not there.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Absent {
    /// What was looked at and what came back (``reading `/proc/7/mem`: permission denied``).
    pub why: String,
    /// The right, command or setting that would give it.
    pub mend: String,
}

impl Absent {
    /// An absence with its cure.
    pub fn new(why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            why: why.into(),
            mend: mend.into(),
        }
    }
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.why, self.mend)
    }
}

impl std::error::Error for Absent {}

/// A piece of evidence, or the reason why it is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Sighting<T> {
    /// It was seen.
    Seen {
        /// What was seen.
        value: T,
    },
    /// It could not be had.
    Absent(Absent),
}

impl<T> Sighting<T> {
    /// An absence with its cure.
    pub fn absent(why: impl Into<String>, mend: impl Into<String>) -> Self {
        Self::Absent(Absent::new(why, mend))
    }

    /// What was seen; nothing if it could not be had.
    pub fn seen(&self) -> Option<&T> {
        match self {
            Self::Seen { value } => Some(value),
            Self::Absent(_) => None,
        }
    }

    /// The same evidence as a `Result`, for `?` in functions that return an absence.
    pub fn into_result(self) -> Result<T, Absent> {
        match self {
            Self::Seen { value } => Ok(value),
            Self::Absent(absent) => Err(absent),
        }
    }
}

impl<T> From<Result<T, Absent>> for Sighting<T> {
    fn from(result: Result<T, Absent>) -> Self {
        match result {
            Ok(value) => Self::Seen { value },
            Err(absent) => Self::Absent(absent),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_absence_reads_back_as_the_same_absence() {
        let absent: Sighting<u64> = Sighting::absent("no NVML", "install the driver");
        let text = serde_json::to_string(&absent).unwrap();
        assert_eq!(
            text,
            r#"{"kind":"absent","why":"no NVML","mend":"install the driver"}"#
        );
        assert_eq!(
            serde_json::from_str::<Sighting<u64>>(&text).unwrap(),
            absent
        );
    }

    #[test]
    fn a_seen_zero_is_not_an_absence() {
        let zero = Sighting::Seen { value: 0u64 };
        let text = serde_json::to_string(&zero).unwrap();
        assert_eq!(
            serde_json::from_str::<Sighting<u64>>(&text).unwrap().seen(),
            Some(&0)
        );
    }
}
