//! Equal conditions: a comparison is refused where the two sides were not asked alike, naming what differs.

use super::finding::Reason;
use super::verdict::Verdict;
use crate::evidence::window::Window;

/// A condition that two sides do not share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    name: String,
    ours: Option<String>,
    theirs: Option<String>,
}

/// Conditions of requests, name and value.
pub(super) type Conditions = [(String, String)];

/// The conditions of a case: those of its first measured window.
pub(super) fn of<'a>(windows: &[&'a Window]) -> &'a Conditions {
    windows.first().map_or(&[], |w| w.conditions.as_slice())
}

/// What differs; nothing when one side recorded no conditions at all (a build that was not measured says so elsewhere).
pub(super) fn differences(ours: &Conditions, theirs: &Conditions) -> Vec<Difference> {
    if ours.is_empty() || theirs.is_empty() {
        return Vec::new();
    }
    let value =
        |of: &Conditions, name: &str| of.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    let mut names: Vec<&String> = ours.iter().chain(theirs).map(|(n, _)| n).collect();
    names.sort();
    names.dedup();
    names
        .into_iter()
        .map(|name| Difference {
            name: name.clone(),
            ours: value(ours, name),
            theirs: value(theirs, name),
        })
        .filter(|d| d.ours != d.theirs)
        .collect()
}

/// The refusal of a comparison with `reference`; nothing when all conditions are shared.
pub(super) fn refusal(reference: &str, differences: &[Difference]) -> Option<Reason> {
    if differences.is_empty() {
        return None;
    }
    let told = |absent: &str| {
        differences
            .iter()
            .map(|d| {
                let side = |v: &Option<String>| v.clone().unwrap_or_else(|| absent.into());
                format!("{}: {} / {}", d.name, side(&d.ours), side(&d.theirs))
            })
            .collect::<Vec<_>>()
            .join("; ")
    };
    Some(Reason::new(
        "conditions.differ",
        Verdict::Inconclusive,
        format!(
            "`{reference}` was not measured under the same conditions (ours / theirs): {}",
            told("not said")
        ),
        format!(
            "`{reference}` は同じ条件で測られていない（こちら / あちら）: {}",
            told("記録なし")
        ),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(of: &[(&str, &str)]) -> Vec<(String, String)> {
        of.iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect()
    }

    #[test]
    fn equal_conditions_refuse_nothing() {
        let a = conditions(&[("window", "512"), ("BOS", "none")]);
        let b = conditions(&[("BOS", "none"), ("window", "512")]);
        assert_eq!(refusal("incumbent", &differences(&a, &b)), None);
    }

    #[test]
    fn a_refusal_names_what_differs_and_both_values() {
        let a = conditions(&[("window", "512"), ("BOS", "none")]);
        let b = conditions(&[("window", "1024")]);
        let refusal = refusal("incumbent", &differences(&a, &b)).unwrap();
        assert_eq!(refusal.verdict, Verdict::Inconclusive);
        assert!(
            refusal.text.contains("window: 512 / 1024"),
            "{}",
            refusal.text
        );
        assert!(
            refusal.text.contains("BOS: none / not said"),
            "{}",
            refusal.text
        );
    }

    #[test]
    fn a_side_without_any_conditions_is_not_compared() {
        let a = conditions(&[("window", "512")]);
        assert!(differences(&a, &[]).is_empty());
    }
}
