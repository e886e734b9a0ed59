//! A recorded run that expectations refer to.

use std::collections::BTreeMap;

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
    /// Conditions of its requests by case, name and value.
    pub conditions: BTreeMap<String, Vec<(String, String)>>,
    /// Why it could not be read.
    pub fault: Option<String>,
}

impl Recorded {
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
