//! The five verdicts, and which one wins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is said of a check, and of a gate.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The bound clears the limit and the path is proven in the same windows.
    Pass,
    /// The interval straddles the limit, two sources disagree, or a precondition failed.
    Inconclusive,
    /// Evidence that the check needs is absent.
    Unproven,
    /// Declared, not carried out.
    NotRun,
    /// The opposite bound misses the limit, or the evidence contradicts the path.
    Fail,
}

impl Verdict {
    /// The worse of two, in the order PASS < INCONCLUSIVE < UNPROVEN < NOT RUN < FAIL.
    pub fn worse(self, other: Self) -> Self {
        self.max(other)
    }

    /// The word as people write it (`NOT RUN`).
    pub fn word(self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Inconclusive => "INCONCLUSIVE",
            Self::Unproven => "UNPROVEN",
            Self::NotRun => "NOT RUN",
            Self::Fail => "FAIL",
        }
    }

    /// The verdict of a gate: PASS only if there are findings and every one passes.
    pub fn of_all(findings: impl IntoIterator<Item = Verdict>) -> Self {
        findings
            .into_iter()
            .reduce(Self::worse)
            .unwrap_or(Self::NotRun)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_gate_cannot_pass() {
        assert_eq!(Verdict::of_all([]), Verdict::NotRun);
    }

    #[test]
    fn one_failure_fails_the_gate() {
        let all = [Verdict::Pass, Verdict::Fail, Verdict::Unproven];
        assert_eq!(Verdict::of_all(all), Verdict::Fail);
    }

    #[test]
    fn a_check_not_run_is_never_green() {
        assert_eq!(
            Verdict::of_all([Verdict::Pass, Verdict::NotRun]),
            Verdict::NotRun
        );
    }
}
