//! `[[check]]`.

use std::collections::BTreeSet;

use toml::de::DeValue;

use super::expectations::expectations;
use super::faults::line_of;
use super::gate::{Check, Gate, Repeats};
use super::kind::{Judged, Kind, ProofNeed};
use super::params::params;
use super::scalar;
use super::walk::{self, Ledger, Walk};
use crate::stats::signed_rank::MIN_REPEATS;

/// Error rate of each one-sided bound unless the gate says otherwise: 5 %, the field's habit; all checks must pass, so no
/// correction is needed.
const ALPHA: f64 = 0.05;

/// Reads every check; `gate` holds the parts that were read before.
pub(super) fn read<'a>(
    root: &Walk<'a, '_>,
    ledger: &'a Ledger,
    source: &str,
    kinds: &[&'static dyn Kind],
    gate: &mut Gate,
) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    let Some(node) = root.get("check") else {
        ledger.error(
            0..0,
            "the gate has no check",
            "`[[check]]` is missing",
            Some("add `[[check]]` with `kind = \"throughput\"`; `sekimon kinds` lists them".into()),
        );
        return checks;
    };
    let DeValue::Array(list) = node.get_ref() else {
        walk::wrong_type(ledger, node, "check", "a list: write `[[check]]`");
        return checks;
    };
    if list.is_empty() {
        ledger.error(
            node.span(),
            "the gate has no check",
            "empty",
            Some("add `[[check]]` with `kind = \"throughput\"`; `sekimon kinds` lists them".into()),
        );
    }
    let mut ids = BTreeSet::new();
    for node in list.iter() {
        let Some(table) = walk::table(ledger, node, "check", "[[check]]") else {
            continue;
        };
        let place = table.span.clone();
        if let Some(check) = one(table, ledger, source, kinds, gate) {
            if !ids.insert(check.id.clone()) {
                ledger.error(
                    walk::head(&place),
                    format!("two checks have the id `{}`", check.id),
                    "the second",
                    Some("give one of them an `id`".into()),
                );
            }
            checks.push(check);
        }
    }
    checks
}

fn one(
    mut table: Walk<'_, '_>,
    ledger: &Ledger,
    source: &str,
    kinds: &[&'static dyn Kind],
    gate: &Gate,
) -> Option<Check> {
    let node = table.required("kind", "\"throughput\"")?;
    let name = scalar::text(ledger, node, "kind")?;
    let Some(kind) = kinds.iter().copied().find(|k| k.name() == name) else {
        let names = kinds.iter().map(|k| k.name());
        let help = walk::did_you_mean(&name, names.clone())
            .unwrap_or_else(|| format!("one of `{}`", names.collect::<Vec<_>>().join("`, `")));
        ledger.error(
            node.span(),
            format!("unknown kind of check `{name}`"),
            "unknown kind",
            Some(help),
        );
        return None;
    };
    table.what = format!("[[check]] of kind `{name}`");
    let params = params(&table, ledger, kind.keys());
    let builds = builds(&table, ledger, gate);
    let repeats = repeats(&table, ledger, kind);
    let check = Check {
        id: table.text("id").unwrap_or_else(|| name.clone()),
        kind,
        path: path(&table, ledger, kind, gate),
        repeats,
        expect: Vec::new(),
        alpha: table
            .get("alpha")
            .and_then(|n| scalar::fraction(ledger, n, "alpha"))
            .unwrap_or(ALPHA),
        max_swing: table
            .get("max_swing")
            .and_then(|n| scalar::fraction(ledger, n, "max_swing")),
        line: line_of(source, table.span.start),
        params,
        builds,
    };
    if !(check.alpha > 0.0 && check.alpha < 0.5) {
        ledger.error(
            table.place("alpha"),
            "`alpha` lies between 0 and 0.5",
            "out of range",
            Some("5 % is usual, 1 % is strict".into()),
        );
    }
    let expect = expectations(&table, ledger, source, &check, gate);
    let check = Check { expect, ..check };
    for fault in kind.faults(&check, gate) {
        let span = fault
            .key
            .map_or_else(|| walk::head(&table.span), |key| table.place(key));
        ledger.error(span, fault.message, "here", Some(fault.help));
    }
    let keys: Vec<&'static str> = kind.keys().iter().map(|k| k.name).collect();
    table.close(&keys);
    Some(check)
}

fn builds(table: &Walk<'_, '_>, ledger: &Ledger, gate: &Gate) -> Vec<String> {
    let Some(node) = table.get("builds") else {
        if let [only] = gate.builds.as_slice() {
            return vec![only.name.clone()];
        }
        ledger.error(walk::head(&table.span), format!("{} does not say which build it judges", table.what), "`builds` is missing", Some("add `builds = [\"incumbent\", \"candidate\"]`: the last one is judged, the others are references".into()));
        return Vec::new();
    };
    let names = scalar::texts(ledger, node, "builds");
    if names.is_empty() {
        ledger.error(node.span(), "`builds` names no build", "empty", None);
    }
    let mut seen = BTreeSet::new();
    let nodes = node.get_ref().as_array().into_iter().flat_map(|l| l.iter());
    for node in nodes {
        let Some(name) = node.get_ref().as_str() else {
            continue;
        };
        if gate.build(name).is_none() {
            let help = walk::did_you_mean(name, gate.builds.iter().map(|b| b.name.as_str()));
            ledger.error(
                node.span(),
                format!("the build `{name}` is not defined"),
                "not defined",
                help,
            );
        }
        if !seen.insert(name) {
            ledger.error(
                node.span(),
                format!("the build `{name}` stands here twice"),
                "again",
                None,
            );
        }
    }
    names
}

fn path(table: &Walk<'_, '_>, ledger: &Ledger, kind: &dyn Kind, gate: &Gate) -> Option<String> {
    let given = table.text("path");
    match &given {
        Some(name) if gate.path(name).is_none() => {
            let help = walk::did_you_mean(name, gate.paths.iter().map(|p| p.name.as_str()))
                .unwrap_or_else(|| format!("add `[paths.{name}]`"));
            ledger.error(
                table.place("path"),
                format!("the path `{name}` is not defined"),
                "not defined",
                Some(help),
            );
        }
        None if kind.proof() == ProofNeed::Required => ledger.error(
            walk::head(&table.span),
            format!(
                "{} names no path: a figure without proof of its path can never pass",
                table.what
            ),
            "`path` is missing",
            Some("define `[paths.NAME]` with what proves it, and add `path = \"NAME\"`".into()),
        ),
        _ => {}
    }
    given
}

/// A range of repeats must be able to decide something: from five on, for figures that are held by a bound.
fn range_decides(ledger: &Ledger, at: std::ops::Range<usize>, min: u64, kind: &dyn Kind) {
    if min < MIN_REPEATS as u64 {
        ledger.error(
            at.clone(),
            format!("a range of repeats is looked at from `min` on, and with {min} nothing can be decided"),
            "here",
            Some(format!("write `min = {MIN_REPEATS}` or more; `{{ min = 8, max = 20 }}` is usual")),
        );
    }
    let bounded = |f: &super::kind::FigureKind| f.judged != Judged::Each;
    if !kind.figures().iter().any(bounded) {
        ledger.error(
            at,
            format!(
                "each observation of `{}` is held by itself: a range of repeats decides nothing",
                kind.name()
            ),
            "here",
            Some("write a number: `repeats = 3`".into()),
        );
    }
}

fn repeats(table: &Walk<'_, '_>, ledger: &Ledger, kind: &dyn Kind) -> Repeats {
    let fallback = Repeats {
        min: kind.default_repeats(),
        max: kind.default_repeats(),
    };
    let Some(node) = table.get("repeats") else {
        return fallback;
    };
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    if let DeValue::Table(_) = node.get_ref() {
        let Some(inner) = walk::table(ledger, node, "repeats", "`repeats`") else {
            return fallback;
        };
        let (min, max) = (inner.count("min", 1, 1000), inner.count("max", 1, 1000));
        inner.close(&[]);
        return match (min, max) {
            (Some(min), Some(max)) if min <= max => {
                if min < max {
                    range_decides(ledger, node.span(), min, kind);
                }
                Repeats {
                    min: small(min),
                    max: small(max),
                }
            }
            (Some(_), Some(_)) => {
                ledger.error(
                    node.span(),
                    "`max` repeats are fewer than `min`",
                    "here",
                    None,
                );
                fallback
            }
            _ => {
                ledger.error(
                    node.span(),
                    "`repeats` takes a number or both ends",
                    "here",
                    Some("write `repeats = 7` or `repeats = { min = 8, max = 20 }`".into()),
                );
                fallback
            }
        };
    }
    match scalar::whole(ledger, node, "repeats", 1, 1000) {
        Some(n) => Repeats {
            min: small(n),
            max: small(n),
        },
        None => fallback,
    }
}
