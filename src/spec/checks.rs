//! `[[check]]`.

use std::collections::BTreeSet;
use std::ops::Range;

use toml::de::DeValue;

use super::expect::{self, Expectation, Limit, Reference};
use super::faults::line_of;
use super::gate::{Check, Gate, Repeats};
use super::kind::{Default, FigureKind, Judged, Key, Kind, Params, ProofNeed, Takes, Value};
use super::walk::{self, Ledger, Node, Walk};

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
    let name = walk::text(ledger, node, "kind")?;
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
            .and_then(|n| walk::fraction(ledger, n, "alpha"))
            .unwrap_or(ALPHA),
        max_swing: table
            .get("max_swing")
            .and_then(|n| walk::fraction(ledger, n, "max_swing")),
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
    let names = walk::texts(ledger, node, "builds");
    if names.is_empty() {
        ledger.error(node.span(), "`builds` names no build", "empty", None);
    }
    let mut seen = BTreeSet::new();
    for name in &names {
        if gate.build(name).is_none() {
            let help = walk::did_you_mean(name, gate.builds.iter().map(|b| b.name.as_str()));
            ledger.error(
                node.span(),
                format!("the build `{name}` is not defined"),
                "in here",
                help,
            );
        }
        if !seen.insert(name) {
            ledger.error(
                node.span(),
                format!("the build `{name}` stands here twice"),
                "in here",
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
            (Some(min), Some(max)) if min <= max => Repeats {
                min: small(min),
                max: small(max),
            },
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
    match walk::whole(ledger, node, "repeats", 1, 1000) {
        Some(n) => Repeats {
            min: small(n),
            max: small(n),
        },
        None => fallback,
    }
}

/// The kind's own keys, defaults filled in.
fn params(table: &Walk<'_, '_>, ledger: &Ledger, keys: &'static [Key]) -> Params {
    let mut params = Params::new();
    for key in keys {
        let value = match table.get(key.name) {
            Some(node) => value(ledger, node, key),
            None => default(table, ledger, key),
        };
        if let Some(value) = value {
            params.insert(key.name, value);
        }
    }
    params
}

fn default(table: &Walk<'_, '_>, ledger: &Ledger, key: &Key) -> Option<Value> {
    match key.default {
        Default::Required => {
            ledger.error(
                walk::head(&table.span),
                format!("{} has no `{}`", table.what, key.name),
                format!("`{}` is missing", key.name),
                Some(key.about.to_owned()),
            );
            None
        }
        Default::Absent => None,
        Default::Count(n) => Some(Value::Count(n)),
        Default::Number(x) => Some(Value::Number(x)),
        Default::Flag(on) => Some(Value::Flag(on)),
        Default::Text(text) => Some(Value::Text(text.into())),
        Default::Texts(texts) => Some(Value::Texts(
            texts.iter().map(ToString::to_string).collect(),
        )),
        Default::Counts(counts) => Some(Value::Counts(counts.to_vec())),
    }
}

fn value(ledger: &Ledger, node: Node<'_, '_>, key: &Key) -> Option<Value> {
    match key.takes {
        Takes::Count(least, most) => {
            walk::whole(ledger, node, key.name, least, most).map(Value::Count)
        }
        Takes::Number(least, most) => {
            let x = walk::number(ledger, node, key.name)?;
            if (least..=most).contains(&x) {
                return Some(Value::Number(x));
            }
            ledger.error(
                node.span(),
                format!("`{}` takes a number from {least} to {most}", key.name),
                "out of range",
                None,
            );
            None
        }
        Takes::Fraction => walk::fraction(ledger, node, key.name).map(Value::Number),
        Takes::Time => walk::seconds(ledger, node, key.name).map(Value::Number),
        Takes::Flag => match node.get_ref().as_bool() {
            Some(on) => Some(Value::Flag(on)),
            None => {
                walk::wrong_type(ledger, node, key.name, "`true` or `false`");
                None
            }
        },
        Takes::Text => walk::text(ledger, node, key.name).map(Value::Text),
        Takes::Word(words) => word(ledger, node, key.name, words).map(Value::Text),
        Takes::Texts => list(ledger, node, key.name)
            .map(|nodes| Value::Texts(unique(ledger, nodes, |n| walk::text(ledger, n, key.name)))),
        Takes::Words(words) => list(ledger, node, key.name)
            .map(|nodes| Value::Texts(unique(ledger, nodes, |n| word(ledger, n, key.name, words)))),
        Takes::Counts(least, most) => list(ledger, node, key.name).map(|nodes| {
            Value::Counts(unique(ledger, nodes, |n| {
                walk::whole(ledger, n, key.name, least, most)
            }))
        }),
        Takes::Rows(columns) => list(ledger, node, key.name)
            .map(|nodes| Value::Rows(rows(ledger, nodes, key.name, columns))),
    }
}

fn rows(
    ledger: &Ledger,
    nodes: Vec<Node<'_, '_>>,
    name: &str,
    columns: &'static [Key],
) -> Vec<Params> {
    nodes
        .into_iter()
        .filter_map(|node| {
            let table = walk::table(ledger, node, name, format!("a row of `{name}`"))?;
            let row = params(&table, ledger, columns);
            let known: Vec<&'static str> = columns.iter().map(|k| k.name).collect();
            table.close(&known);
            Some(row)
        })
        .collect()
}

fn list<'a, 'd>(ledger: &Ledger, node: Node<'a, 'd>, key: &str) -> Option<Vec<Node<'a, 'd>>> {
    match node.get_ref() {
        DeValue::Array(list) if list.is_empty() => {
            ledger.error(node.span(), format!("`{key}` is empty"), "empty", None);
            None
        }
        DeValue::Array(list) => Some(list.iter().collect()),
        _ => {
            walk::wrong_type(ledger, node, key, "a list, as in `[1, 4]`");
            None
        }
    }
}

fn unique<T: PartialEq>(
    ledger: &Ledger,
    nodes: Vec<Node<'_, '_>>,
    read: impl Fn(Node<'_, '_>) -> Option<T>,
) -> Vec<T> {
    let mut all = Vec::new();
    for node in nodes {
        let Some(item) = read(node) else { continue };
        if all.contains(&item) {
            ledger.error(node.span(), "this stands in the list twice", "again", None);
        } else {
            all.push(item);
        }
    }
    all
}

fn word(ledger: &Ledger, node: Node<'_, '_>, key: &str, words: &[&'static str]) -> Option<String> {
    let text = walk::text(ledger, node, key)?;
    if words.contains(&text.as_str()) {
        return Some(text);
    }
    let help = walk::did_you_mean(&text, words.iter().copied())
        .unwrap_or_else(|| format!("one of `{}`", words.join("`, `")));
    ledger.error(
        node.span(),
        format!("`{key}` does not know `{text}`"),
        "unknown",
        Some(help),
    );
    None
}

/// `expect = { figure = "limit" }`, and `expect."cell" = { … }` for one cell.
fn expectations(
    table: &Walk<'_, '_>,
    ledger: &Ledger,
    source: &str,
    check: &Check,
    gate: &Gate,
) -> Vec<Expectation> {
    let Some(expect) = table.table("expect", "`expect`") else {
        return Vec::new();
    };
    let cells = check.kind.cells(&check.params);
    let mut all = Vec::new();
    for (key, span, node) in expect.entries() {
        if let DeValue::Table(_) = node.get_ref() {
            if !cells.iter().any(|c| c == key) {
                let help = walk::did_you_mean(key, cells.iter().map(String::as_str))
                    .unwrap_or_else(|| format!("this check has `{}`", cells.join("`, `")));
                ledger.error(
                    span,
                    format!("this check has no cell `{key}`"),
                    "no such cell",
                    Some(help),
                );
                continue;
            }
            if let Some(inner) = walk::table(ledger, node, key, format!("`expect.\"{key}\"`")) {
                for (figure, span, node) in inner.entries() {
                    all.extend(limits(
                        Asked {
                            cell: Some(key),
                            figure,
                            span,
                            node,
                        },
                        ledger,
                        source,
                        check,
                        gate,
                    ));
                }
            }
            continue;
        }
        all.extend(limits(
            Asked {
                cell: None,
                figure: key,
                span,
                node,
            },
            ledger,
            source,
            check,
            gate,
        ));
    }
    all
}

struct Asked<'a, 'd> {
    cell: Option<&'a str>,
    figure: &'a str,
    span: Range<usize>,
    node: Node<'a, 'd>,
}

fn limits(
    asked: Asked<'_, '_>,
    ledger: &Ledger,
    source: &str,
    check: &Check,
    gate: &Gate,
) -> Vec<Expectation> {
    let figures = check.kind.figures();
    let Some(figure) = figures.iter().find(|f| f.name == asked.figure) else {
        let names = figures.iter().map(|f| f.name);
        let help = walk::did_you_mean(asked.figure, names.clone())
            .unwrap_or_else(|| format!("it yields `{}`", names.collect::<Vec<_>>().join("`, `")));
        ledger.error(
            asked.span,
            format!(
                "`{}` yields no figure `{}`",
                check.kind.name(),
                asked.figure
            ),
            "no such figure",
            Some(help),
        );
        return Vec::new();
    };
    let nodes: Vec<Node<'_, '_>> = match asked.node.get_ref() {
        DeValue::Array(list) => list.iter().collect(),
        _ => vec![asked.node],
    };
    nodes
        .into_iter()
        .filter_map(|node| {
            let text = walk::text(ledger, node, asked.figure)?;
            match expect::parse(&text, figure)
                .and_then(|limit| possible(limit, figure, check, gate))
            {
                Ok(limit) => Some(Expectation {
                    cell: asked.cell.map(ToOwned::to_owned),
                    figure: figure.name.into(),
                    limit,
                    text,
                    line: line_of(source, node.span().start),
                }),
                Err(fault) => {
                    ledger.error(node.span(), fault.message, "this expectation", fault.help);
                    None
                }
            }
        })
        .collect()
}

/// What can be met, and compared, at all.
fn possible(
    limit: Limit,
    figure: &FigureKind,
    check: &Check,
    gate: &Gate,
) -> Result<Limit, expect::Wrong> {
    let wrong = |message: String, help: &str| {
        Err(expect::Wrong {
            message,
            help: (!help.is_empty()).then(|| help.to_owned()),
        })
    };
    if let Some(reference) = limit.reference() {
        match reference {
            Reference::Build(name) if *name == check.subject() => {
                return wrong(
                    format!("`{name}` is the judged build: nothing is compared with itself"),
                    "name a build that stands before it in `builds`",
                );
            }
            Reference::Build(name) if !check.builds.contains(name) => {
                let known: Vec<&str> = check.builds.iter().map(String::as_str).collect();
                let near = walk::did_you_mean(name, known.iter().copied());
                return Err(expect::Wrong {
                    message: format!("`{name}` is not among this check's builds"),
                    help: near.or_else(|| {
                        Some(format!(
                            "add it to `builds`, before the judged one (now `{}`)",
                            known.join("`, `")
                        ))
                    }),
                });
            }
            Reference::Run(name) if !gate.runs.contains_key(name) => {
                return Err(expect::Wrong {
                    message: format!("the recorded run `{name}` is not defined"),
                    help: walk::did_you_mean(name, gate.runs.keys().map(String::as_str))
                        .or_else(|| Some(format!("add `[runs.{name}]` with `report = \"…\"`"))),
                });
            }
            _ => {}
        }
    }
    let positive = figure.unit != "word";
    match &limit {
        Limit::AtLeast(x) if positive && *x <= 0.0 => wrong(
            format!(
                "every `{}` is at least {x}: this expectation cannot fail",
                figure.name
            ),
            "ask for more",
        ),
        Limit::AtMost(x) if positive && *x < 0.0 => wrong(
            format!(
                "no `{}` is below zero: this expectation cannot be met",
                figure.name
            ),
            "ask for less",
        ),
        Limit::RatioAtLeast(x, _) | Limit::RatioAtMost(x, _) if *x <= 0.0 => wrong(
            "a ratio is greater than zero".into(),
            "write `>= 1.05 x incumbent`",
        ),
        Limit::Between(low, high) if low > high => wrong(
            format!("nothing lies between {low} and {high}"),
            "the lower end comes first",
        ),
        Limit::Is(word) if !figure.words.contains(&word.as_str()) => Err(expect::Wrong {
            message: if figure.words.is_empty() {
                format!("`{}` is a number, not a word", figure.name)
            } else {
                format!("`{}` is never `{word}`", figure.name)
            },
            help: walk::did_you_mean(word, figure.words.iter().copied()).or_else(|| {
                (!figure.words.is_empty())
                    .then(|| format!("one of `{}`", figure.words.join("`, `")))
            }),
        }),
        Limit::Exactly(_) if figure.judged != Judged::Each => wrong(
            format!(
                "`{}` is measured, and no measurement is exactly a number",
                figure.name
            ),
            "write `between A and B`, `>=` or `<=`",
        ),
        _ => Ok(limit),
    }
}
