//! `preset = "…"` in `[paths.NAME]`: what a dialect is known to say and count.

use toml::de::DeValue;

use super::gate::{Count, CounterClaim, LineClaim, PathSpec, RefutingLine, When};
use super::scalar;
use super::walk::{self, Ledger, Node, Walk};
use crate::dialect::{DIALECTS, Dialect, Part, Preset, Scope};

pub(super) fn presets(
    walk: &Walk<'_, '_>,
    ledger: &Ledger,
    dialect: Option<&'static Dialect>,
) -> Vec<&'static Preset> {
    let Some(node) = walk.get("preset") else {
        return Vec::new();
    };
    let nodes: Vec<Node<'_, '_>> = match node.get_ref() {
        DeValue::Array(list) => list.iter().collect(),
        _ => vec![node],
    };
    let known: Vec<&'static Preset> = match dialect {
        Some(dialect) => dialect.presets.iter().collect(),
        None => DIALECTS.iter().flat_map(|d| d.presets).collect(),
    };
    nodes
        .into_iter()
        .filter_map(|node| {
            let name = &scalar::text(ledger, node, "preset")?;
            let found = known.iter().find(|p| p.name == name).copied();
            if found.is_none() {
                let help = walk::did_you_mean(name, known.iter().map(|p| p.name))
                    .unwrap_or_else(|| "`sekimon kinds` lists the presets of each dialect; name the dialect in `[seat]`".into());
                ledger.error(node.span(), format!("unknown preset `{name}`"), "unknown preset", Some(help));
            }
            found
        })
        .collect()
}

/// Adds what a preset claims.
pub(super) fn add(path: &mut PathSpec, preset: &Preset) {
    let counter = |selector: &&str| CounterClaim {
        selector: (*selector).into(),
        rank_label: None,
        at_least: 1.0,
    };
    path.announced.extend(either(preset));
    path.refuted.extend(preset.refuted.iter().map(|line| {
        RefutingLine {
            pattern: (*line).into(),
            except: None,
            when: When::SinceBoot,
            matches: preset
                .refuted_matches
                .iter()
                .map(ToString::to_string)
                .collect(),
            never: preset
                .refuted_never
                .iter()
                .map(ToString::to_string)
                .collect(),
        }
    }));
    path.moved.extend(preset.moved.iter().map(counter));
    path.still.extend(preset.still.iter().map(counter));
}

/// One claim that any of a preset's lines satisfies: servers of different versions print different ones.
fn either(preset: &Preset) -> Option<LineClaim> {
    let lines = preset.announced;
    let pattern = match lines {
        [] => return None,
        [one] => one.pattern.to_owned(),
        several => {
            let each: Vec<String> = several
                .iter()
                .map(|l| format!("(?:{})", l.pattern))
                .collect();
            each.join("|")
        }
    };
    // The newest scope: an older server prints such a line more often, never less.
    let scope = |line: &crate::dialect::PresetLine| line.later.map_or(line.scope, |l| l.scope);
    let every_rank = lines.iter().all(|l| scope(l) == Scope::EveryRank);
    let all = |of: fn(&crate::dialect::PresetLine) -> &'static [&'static str]| -> Vec<String> {
        let texts = lines.iter().flat_map(of);
        texts.map(ToString::to_string).collect()
    };
    let alone = lines.len() == 1;
    // A version that says it in its source file's name alone wants the whole record for all of them.
    let record = lines.iter().any(|l| l.part == Part::Record);
    Some(LineClaim {
        pattern,
        part: if record { Part::Record } else { Part::Message },
        on: if every_rank {
            Count::Each(Scope::EveryRank)
        } else {
            Count::AtLeast(1)
        },
        when: When::SinceBoot,
        matches: all(|l| l.matches),
        // A line that one alternative must not match may well be the other's.
        never: if alone { all(|l| l.never) } else { Vec::new() },
    })
}
