//! The verdict table: each case, each figure that a limit holds, and what became of it.

use super::document::Report;
use super::headline::judged_builds;
use super::limit_line::LimitLine;
use super::number;
use super::outline::{Block, Cell, Column, Heading, Rank, Section, Table, Tone};
use super::phrases::{self, Language, Phrase};
use super::plain_text::clean;
use super::strip_plot::Plot;
use crate::judge::figure::{Against, Decision, Figure, LimitOutcome};
use crate::judge::finding::Finding;
use crate::judge::verdict::Verdict;

pub(super) fn section(report: &Report, language: Language) -> Section {
    let mut rows: Vec<Row> = report
        .checks
        .iter()
        .flat_map(|f| rows(f, language))
        .collect();
    // The headline names the judged build; only where there are several does each case say which.
    if judged_builds(report).len() < 2 {
        rows.iter_mut().for_each(|r| r.build.clear());
    }
    let mut table = wide(&rows, language);
    table.narrow = Some(Box::new(narrow(&rows, language)));
    Section {
        heading: Heading::of(Phrase::Verdicts, language),
        rank: Rank::Essential,
        blocks: vec![Block::Table(table)],
    }
}

/// One line of the table, before it is laid out.
struct Row {
    verdict: Option<Cell>,
    case: String,
    build: String,
    figure: Cell,
    value: Cell,
    reference: Cell,
    ratio: Cell,
    limit: Cell,
    margin: String,
}

fn rows(finding: &Finding, language: Language) -> Vec<Row> {
    let held: Vec<(&Figure, Option<&LimitOutcome>)> = finding
        .figures
        .iter()
        .flat_map(|f| f.limits.iter().map(move |l| (f, Some(l))))
        .collect();
    let shown = if held.is_empty() {
        finding.figures.iter().take(1).map(|f| (f, None)).collect()
    } else {
        held
    };
    let mut rows: Vec<Row> = shown
        .iter()
        .map(|(figure, limit)| row(figure, *limit, language))
        .collect();
    if rows.is_empty() {
        rows.push(Row::bare());
    }
    // A limit that clears on a figure that proves nothing must not look green.
    if matches!(finding.verdict, Verdict::Unproven | Verdict::Inconclusive) {
        for row in &mut rows {
            if row.limit.tone == Tone::Tinted(Verdict::Pass) {
                row.limit.tone = Tone::Quiet;
            }
        }
    }
    rows[0].verdict = Some(Cell::verdict(finding.verdict, language));
    rows[0].case = clean(&finding.id);
    rows[0].build = clean(&finding.build);
    rows
}

impl Row {
    fn bare() -> Self {
        let absent = || Cell::new(number::ABSENT).toned(Tone::Quiet);
        Self {
            verdict: None,
            case: String::new(),
            build: String::new(),
            figure: absent(),
            value: absent(),
            reference: absent(),
            ratio: absent(),
            limit: absent(),
            margin: number::ABSENT.into(),
        }
    }
}

fn row(figure: &Figure, limit: Option<&LimitOutcome>, language: Language) -> Row {
    let line = limit.map(|l| LimitLine::of(&l.text));
    let against = line
        .as_ref()
        .and_then(|l| l.reference.as_ref())
        .and_then(|name| figure.against.iter().find(|a| a.build == *name))
        .or(figure.against.first());
    let margin = limit.and_then(|l| l.margin).filter(|m| m.is_finite());
    Row {
        figure: Cell::new(clean(&figure.name)),
        value: value(figure, language),
        reference: against.map_or_else(absent, |a| reference(figure, a)),
        ratio: against.map_or_else(absent, |a| ratio(figure, a, language)),
        limit: limit.map_or_else(absent, |l| Cell {
            plot: Plot::of(figure),
            ..held(l)
        }),
        margin: match (margin, line) {
            (Some(margin), Some(line)) => number::margin(margin, &clean(line.unit(figure))),
            _ => number::ABSENT.into(),
        },
        ..Row::bare()
    }
}

fn absent() -> Cell {
    Cell::new(number::ABSENT).toned(Tone::Quiet)
}

/// A figure's value, with its interval and n under it.
pub(super) fn value(figure: &Figure, language: Language) -> Cell {
    let n = format!("n={}", figure.n);
    if let Some(word) = &figure.word {
        return Cell::new(clean(word)).over(n);
    }
    let Some(value) = figure.value.filter(|v| v.is_finite()) else {
        return Cell::new(number::ABSENT)
            .over(Phrase::NotMeasured.text(language))
            .toned(Tone::Quiet);
    };
    let interval = figure.interval.filter(|i| i.iter().all(|x| x.is_finite()));
    let text = number::value_and_range(value, interval, figure.half_range, &clean(&figure.unit));
    let bounds = match interval {
        Some(bounds) => number::interval(value, bounds),
        None => Phrase::NoInterval.text(language).into(),
    };
    // One observation is its own interval: nothing to say of it.
    if figure.n == 1 && interval.is_none() {
        Cell::new(text).over(n)
    } else {
        Cell::new(text).over(format!("{bounds} {n}"))
    }
}

fn reference(figure: &Figure, against: &Against) -> Cell {
    let text = number::value(against.value, figure.interval, &clean(&figure.unit));
    Cell::new(text).over(format!("{} n={}", clean(&against.build), against.n))
}

fn ratio(figure: &Figure, against: &Against, language: Language) -> Cell {
    let none = || Phrase::NoInterval.text(language).to_owned();
    match (against.difference, against.ratio) {
        (Some(difference), _) => {
            let bounds = against.difference_interval;
            let text = number::difference(difference, bounds, &clean(&figure.unit));
            Cell::new(text)
                .over(bounds.map_or_else(none, |b| number::difference_interval(difference, b)))
        }
        (None, Some(ratio)) => Cell::new(number::ratio(ratio))
            .over(against.interval.map_or_else(none, number::ratio_interval)),
        (None, None) => absent(),
    }
}

fn held(limit: &LimitOutcome) -> Cell {
    let standing = match limit.decision {
        Decision::Clears => Verdict::Pass,
        Decision::Misses => Verdict::Fail,
        Decision::Open => Verdict::Inconclusive,
        Decision::Absent => Verdict::Unproven,
    };
    Cell::new(format!(
        "{} {}",
        phrases::mark(limit.decision),
        clean(&limit.text)
    ))
    .toned(Tone::Tinted(standing))
}

fn wide(rows: &[Row], language: Language) -> Table {
    let words = |p| Column::words(p, language);
    let numbers = |p| Column::numbers(p, language);
    let mut table = Table::of(vec![
        words(Phrase::Verdict),
        words(Phrase::Case),
        words(Phrase::Figure),
        numbers(Phrase::Value),
        numbers(Phrase::Reference),
        numbers(Phrase::Ratio),
        words(Phrase::Limit),
        numbers(Phrase::Margin),
    ]);
    table.rows = rows
        .iter()
        .map(|r| {
            vec![
                r.verdict.clone().unwrap_or_default(),
                Cell::new(&r.case).over(&r.build),
                r.figure.clone(),
                r.value.clone(),
                r.reference.clone(),
                r.ratio.clone(),
                r.limit.clone(),
                Cell::new(&r.margin),
            ]
        })
        .collect();
    table
}

fn narrow(rows: &[Row], language: Language) -> Table {
    let both = |a: Phrase, b: Phrase| Column {
        title: format!("{} / {}", a.text(language), b.text(language)),
        align: super::outline::Align::Left,
    };
    let mut table = Table::of(vec![
        both(Phrase::Verdict, Phrase::Case),
        both(Phrase::Figure, Phrase::Value),
        both(Phrase::Ratio, Phrase::Reference),
        both(Phrase::Limit, Phrase::Margin),
    ]);
    table.rows = rows
        .iter()
        .map(|r| {
            let value = format!("{}\n{}", r.value.text, r.value.under);
            let against = [&r.ratio.under, &r.reference.text, &r.reference.under]
                .into_iter()
                .filter(|t| !t.is_empty() && *t != number::ABSENT)
                .cloned()
                .collect::<Vec<_>>()
                .join("\n");
            vec![
                r.verdict.clone().unwrap_or_default().over(&r.case),
                r.figure.clone().over(value.trim()),
                Cell::new(&r.ratio.text).over(against),
                r.limit.clone().over(&r.margin),
            ]
        })
        .collect();
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn a_cleared_limit_is_green_only_where_the_case_is_decided() {
        let mut finding = sample::passing().checks.remove(0);
        let tone = |f: &Finding| rows(f, Language::En)[0].limit.tone;
        assert_eq!(tone(&finding), Tone::Tinted(Verdict::Pass));
        finding.verdict = Verdict::Unproven;
        assert_eq!(tone(&finding), Tone::Quiet);
    }
}
