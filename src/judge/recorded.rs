//! A recorded run that expectations refer to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::figure::Figure;
use super::finding::Finding;

/// A recorded run, as far as a comparison needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its name under `[runs]`.
    pub name: String,
    /// Its findings; empty when it could not be read.
    pub findings: Vec<Finding>,
    /// Build of that run to compare with; absent: the one of the same name as the judged build, else the judged one.
    pub build: Option<String>,
    /// Figures of each session, where the name stands for several runs, oldest first; empty for one run.
    pub sessions: Vec<Session>,
    /// Conditions of its requests by case, name and value.
    pub conditions: BTreeMap<String, Vec<(String, String)>>,
    /// Why it could not be read.
    pub fault: Option<String>,
}

/// One of several certified runs: what a later session is predicted from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Session {
    /// Id of the run.
    pub id: String,
    /// Its figures.
    pub figures: Vec<SessionFigure>,
}

/// One figure of one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionFigure {
    /// Case.
    pub case: String,
    /// Build.
    pub build: String,
    /// Name.
    pub figure: String,
    /// Its estimate.
    pub value: f64,
}

impl Session {
    /// The figures of a report.
    ///
    /// # Errors
    /// When it is no report, or did not pass: what was not accepted is no baseline.
    pub fn of(report: &Value) -> Result<Self, String> {
        let id = report.get("id").and_then(Value::as_str).unwrap_or("?");
        if report.get("verdict").and_then(Value::as_str) != Some("pass") {
            return Err(format!("the run `{id}` did not pass"));
        }
        let checks = report.get("checks").cloned().unwrap_or_default();
        let findings: Vec<Finding> = serde_json::from_value(checks)
            .map_err(|cause| format!("the run `{id}` does not read: {cause}"))?;
        let mut figures = Vec::new();
        for finding in &findings {
            let own = std::iter::once((&finding.build, &finding.figures));
            let others = finding.references.iter().map(|r| (&r.build, &r.figures));
            for (build, all) in own.chain(others) {
                figures.extend(all.iter().filter_map(|f| {
                    Some(SessionFigure {
                        case: finding.id.clone(),
                        build: build.clone(),
                        figure: f.name.clone(),
                        value: f.value?,
                    })
                }));
            }
        }
        Ok(Self {
            id: id.into(),
            figures,
        })
    }
}

impl Recorded {
    /// The figure of a case in each session; empty for a name that stands for one run.
    pub fn sessions_of(&self, case: &str, build: &str, figure: &str) -> Vec<f64> {
        let wanted = self.build.as_deref().unwrap_or(build);
        self.sessions
            .iter()
            .filter_map(|session| {
                let of_case = || {
                    session
                        .figures
                        .iter()
                        .filter(|f| f.case == case && f.figure == figure)
                };
                // The judged build stands first in a finding: without the wanted one it is the run's own.
                let found = of_case()
                    .find(|f| f.build == wanted)
                    .or_else(|| of_case().next().filter(|_| self.build.is_none()))?;
                Some(found.value)
            })
            .collect()
    }

    /// With the sessions that the name stands for.
    pub fn with_sessions(mut self, sessions: &[Session]) -> Self {
        self.sessions = sessions.to_vec();
        self
    }

    /// A recorded run from its `report.json`.
    pub fn of(
        name: &str,
        build: Option<&str>,
        report: Option<&Value>,
        fault: Option<&str>,
    ) -> Self {
        let (findings, unread) = match report.and_then(|r| r.get("checks")) {
            Some(checks) => match serde_json::from_value(checks.clone()) {
                Ok(findings) => (findings, None),
                Err(cause) => (
                    Vec::new(),
                    Some(format!("the recorded run `{name}` does not read: {cause}")),
                ),
            },
            None => (
                Vec::new(),
                Some(format!("the recorded run `{name}` is no report")),
            ),
        };
        Self {
            name: name.into(),
            findings,
            build: build.map(Into::into),
            sessions: Vec::new(),
            conditions: report.map(conditions).unwrap_or_default(),
            fault: fault.map(Into::into).or(unread),
        }
    }

    /// The figure of a case on the build to compare with.
    pub fn figure(&self, case: &str, judged: &str, figure: &str) -> Option<&Figure> {
        let finding = self.findings.iter().find(|f| f.id == case)?;
        let wanted = self.build.as_deref().unwrap_or(judged);
        let figures = if finding.build == wanted {
            &finding.figures
        } else if let Some(reference) = finding.references.iter().find(|r| r.build == wanted) {
            &reference.figures
        } else if self.build.is_none() {
            &finding.figures
        } else {
            return None;
        };
        figures.iter().find(|f| f.name == figure)
    }
}

/// Conditions by case, as a report keeps them; what does not read is left out, and then nothing is compared by it.
fn conditions(report: &Value) -> BTreeMap<String, Vec<(String, String)>> {
    let cases = report.pointer("/conditions/requests");
    cases
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|case| {
            let name = case.get("case")?.as_str()?.to_owned();
            let values = serde_json::from_value(case.get("values")?.clone()).ok()?;
            Some((name, values))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn report(verdict: &str, value: f64) -> Value {
        json!({ "id": "r", "verdict": verdict, "checks": [{
            "id": "throughput/en/1", "kind": "throughput", "build": "candidate", "verdict": "pass", "reasons": [],
            "figures": [{ "name": "decode_tok_s", "unit": "tok/s", "value": value, "interval": null, "n": 7, "of": "repeats",
                "origin": "measured", "method": "m", "windows": [] }],
            "windows": [], "line": 1,
        }]})
    }

    #[test]
    fn only_runs_that_passed_are_sessions_of_a_baseline() {
        assert!(Session::of(&report("pass", 100.0)).is_ok());
        assert!(
            Session::of(&report("inconclusive", 100.0))
                .unwrap_err()
                .contains("did not pass")
        );
    }

    #[test]
    fn the_figure_of_each_session_is_found_by_case() {
        let sessions: Vec<Session> = [100.0, 101.0]
            .iter()
            .map(|v| Session::of(&report("pass", *v)).unwrap())
            .collect();
        let recorded = Recorded::of("certified", None, Some(&report("pass", 101.0)), None)
            .with_sessions(&sessions);
        let of = |case: &str| recorded.sessions_of(case, "another-name", "decode_tok_s");
        assert_eq!(of("throughput/en/1"), [100.0, 101.0]);
        assert!(of("throughput/ja/1").is_empty());
    }
}
