//! The power card: for each limit that is held by a bound, its margin, the smallest effect that the run could have seen,
//! and how far the reference lies from itself.

use super::document::Report;
use super::limit_line::LimitLine;
use super::number;
use super::outline::{Block, Cell, Column, Heading, Rank, Section, Table, Tone};
use super::phrases::{Language, Phrase};
use super::plain_text::clean;
use crate::judge::figure::{Figure, LimitOutcome};
use crate::judge::finding::Finding;

pub(super) fn section(report: &Report, language: Language) -> Section {
    let words = |p| Column::words(p, language);
    let numbers = |p| Column::numbers(p, language);
    let mut table = Table::of(vec![
        words(Phrase::Case),
        words(Phrase::Figure),
        words(Phrase::Limit),
        numbers(Phrase::Observations),
        numbers(Phrase::Margin),
        numbers(Phrase::SmallestEffect),
        numbers(Phrase::AaFloor),
    ]);
    table.rows = report.checks.iter().flat_map(rows).collect();
    table.legend = Some(Phrase::PowerLegend.text(language).into());
    let block = if table.rows.is_empty() {
        Block::Paragraph(Phrase::NoPower.text(language).into())
    } else {
        Block::Table(table)
    };
    Section {
        heading: Heading::of(Phrase::Power, language),
        rank: Rank::Detail,
        blocks: vec![block],
    }
}

fn rows(finding: &Finding) -> Vec<Vec<Cell>> {
    finding
        .figures
        .iter()
        .flat_map(|figure| figure.limits.iter().map(move |limit| (figure, limit)))
        .filter_map(|(figure, limit)| row(finding, figure, limit))
        .collect()
}

fn row(finding: &Finding, figure: &Figure, limit: &LimitOutcome) -> Option<Vec<Cell>> {
    let effect = limit.smallest_effect?;
    let line = LimitLine::of(&limit.text);
    let floor = line
        .reference
        .as_ref()
        .and_then(|name| figure.against.iter().find(|a| a.build == *name))
        .and_then(|a| a.aa_floor);
    let absent = || Cell::new(number::ABSENT).toned(Tone::Quiet);
    let unit = clean(line.unit(figure));
    let number = |x: Option<f64>| x.map_or_else(absent, |x| Cell::new(number::margin(x, &unit)));
    Some(vec![
        Cell::new(clean(&finding.id)),
        Cell::new(clean(&figure.name)),
        Cell::literal(clean(&limit.text)),
        Cell::new(number::count(figure.n)),
        number(limit.margin),
        Cell::new(format!(
            "±{}",
            number::margin(effect, &unit).trim_start_matches('+')
        )),
        floor.map_or_else(absent, |f| Cell::new(format!("{:.2} %", f * 100.0))),
    ])
}
