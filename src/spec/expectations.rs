//! `expect`: which figure is held to which limit, and whether it can be held at all.

use std::ops::Range;

use toml::de::DeValue;

use super::expect::{self, Expectation, Limit, Reference, Wrong};
use super::faults::line_of;
use super::gate::{Check, Gate};
use super::kind::{FigureKind, Judged};
use super::scalar;
use super::walk::{self, Ledger, Node, Walk};

/// `expect = { figure = "limit" }`, and `expect."cell" = { … }` for one cell.
pub(super) fn expectations(
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
            let text = scalar::text(ledger, node, asked.figure)?;
            match expect::parse(&text, figure)
                .and_then(|limit| comparable(limit, &text, check, gate))
                .and_then(|limit| possible(limit, &text, figure))
            {
                Ok(limit) => Some(Expectation {
                    cell: asked.cell.map(ToOwned::to_owned),
                    figure: figure.name.into(),
                    limit,
                    text,
                    line: line_of(source, node.span().start),
                }),
                Err(fault) => {
                    let span = scalar::piece(source, &node.span(), &text, &fault.at);
                    ledger.error(span, fault.message, "in this expectation", fault.help);
                    None
                }
            }
        })
        .collect()
}

fn wrong(at: Range<usize>, message: String, help: &str) -> Result<Limit, Wrong> {
    Err(Wrong {
        message,
        help: (!help.is_empty()).then(|| help.to_owned()),
        at,
    })
}

/// Whether what the limit compares with is there.
fn comparable(limit: Limit, text: &str, check: &Check, gate: &Gate) -> Result<Limit, Wrong> {
    let Some(reference) = limit.reference() else {
        return Ok(limit);
    };
    let (Reference::Build(name) | Reference::Run(name)) = reference;
    // The name ends the expectation.
    let end = text.trim_end().len();
    let at = end.saturating_sub(name.len())..end;
    match reference {
        Reference::Build(name) if *name == check.subject() => wrong(
            at,
            format!("`{name}` is the judged build: nothing is compared with itself"),
            "name a build that stands before it in `builds`",
        ),
        Reference::Build(name) if !check.builds.contains(name) => {
            let known: Vec<&str> = check.builds.iter().map(String::as_str).collect();
            let before = known.split_last().map_or(&[][..], |(_, before)| before);
            let before = before.iter().copied().filter(|b| gate.build(b).is_some());
            let help = walk::did_you_mean(name, before).unwrap_or_else(|| {
                format!(
                    "add it to `builds`, before the judged one (now `{}`)",
                    known.join("`, `")
                )
            });
            let message = if gate.build(name).is_some() {
                format!("`{name}` is not among this check's builds")
            } else {
                format!("`{name}` is no build of this gate")
            };
            wrong(at, message, &help)
        }
        Reference::Run(name) if !gate.runs.contains_key(name) => {
            let help = walk::did_you_mean(name, gate.runs.keys().map(String::as_str))
                .unwrap_or_else(|| format!("add `[runs.{name}]` with `report = \"…\"`"));
            wrong(
                at,
                format!("the recorded run `{name}` is not defined"),
                &help,
            )
        }
        _ => Ok(limit),
    }
}

/// Whether the limit can be met, and missed, at all.
fn possible(limit: Limit, text: &str, figure: &FigureKind) -> Result<Limit, Wrong> {
    let whole = 0..text.len();
    if let Limit::Is(word) = &limit {
        if figure.words.contains(&word.as_str()) {
            return Ok(limit);
        }
        if figure.words.is_empty() {
            return wrong(
                whole,
                format!("`{}` is a number, and `{word}` is a word", figure.name),
                &format!("write `{}`", format!(">= 1 {}", figure.unit).trim()),
            );
        }
        let help = walk::did_you_mean(word, figure.words.iter().copied())
            .unwrap_or_else(|| format!("one of `{}`", figure.words.join("`, `")));
        return wrong(whole, format!("`{}` is never `{word}`", figure.name), &help);
    }
    if let Some(word) = figure.words.first() {
        return wrong(
            whole,
            format!("`{}` is a word, not a number", figure.name),
            &format!("write `is {word}`"),
        );
    }
    match &limit {
        Limit::AtLeast(x) if *x <= 0.0 => wrong(
            whole,
            format!(
                "every `{}` is at least {x}: this expectation cannot fail",
                figure.name
            ),
            "ask for more",
        ),
        Limit::AtMost(x) | Limit::Exactly(x) | Limit::Between(_, x) if *x < 0.0 => wrong(
            whole,
            format!(
                "no `{}` is below zero: this expectation cannot be met",
                figure.name
            ),
            "ask for zero or more",
        ),
        Limit::RatioAtLeast(x, _) | Limit::RatioAtMost(x, _) if *x <= 0.0 => wrong(
            whole,
            "a ratio is greater than zero".into(),
            "write `>= 1.05 x incumbent`",
        ),
        Limit::WithinFraction(x, _) | Limit::WithinAmount(x, _) if *x <= 0.0 => wrong(
            whole,
            "no two measurements lie within nothing of each other".into(),
            "write `within 2 % of incumbent`",
        ),
        Limit::Between(low, high) if low > high => wrong(
            whole,
            format!("nothing lies between {low} and {high}"),
            "the lower end comes first",
        ),
        limit
            if matches!(figure.judged, Judged::ByCount { .. })
                && !matches!(limit, Limit::AtMost(_)) =>
        {
            wrong(
                whole,
                format!(
                    "`{}` is a percentile: the requests over a limit are counted",
                    figure.name
                ),
                "write `<= X`",
            )
        }
        Limit::Exactly(_) if figure.judged != Judged::Each => wrong(
            whole,
            format!(
                "`{}` is measured, and no measurement is exactly a number",
                figure.name
            ),
            "write `between A and B`, `>=` or `<=`",
        ),
        _ => Ok(limit),
    }
}
