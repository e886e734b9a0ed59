//! Every figure of every case, judged or not, with the same figure of each reference build.

use super::document::Report;
use super::outline::{Block, Cell, Column, Heading, Rank, Section, Table, Tone};
use super::phrases::{self, Language, Phrase};
use super::plain_text::clean;
use super::strip_plot::Plot;
use super::verdict_table;
use crate::judge::figure::Figure;
use crate::judge::finding::Finding;

/// Windows that a row names; report.json has them all.
const NAMED_WINDOWS: usize = 4;

pub(super) fn section(report: &Report, language: Language) -> Section {
    let words = |p| Column::words(p, language);
    let mut table = Table::of(vec![
        words(Phrase::Case),
        words(Phrase::Figure),
        words(Phrase::Build),
        Column::numbers(Phrase::Value, language),
        words(Phrase::Repeats),
        words(Phrase::Method),
        words(Phrase::SeenIn),
    ]);
    table.rows = report.checks.iter().flat_map(|f| rows(f, language)).collect();
    if table.rows.iter().flatten().any(|c| c.plot.is_some()) {
        table.legend = Some(Phrase::StripLegend.text(language).into());
    }
    let block = if table.rows.is_empty() {
        Block::Paragraph(Phrase::NoFigures.text(language).into())
    } else {
        Block::Table(table)
    };
    Section { heading: Heading::of(Phrase::Figures, language), rank: Rank::Detail, blocks: vec![block] }
}

fn rows(finding: &Finding, language: Language) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for figure in &finding.figures {
        rows.push(row(figure, &finding.build, language));
        for reference in &finding.references {
            for theirs in reference.figures.iter().filter(|f| f.name == figure.name) {
                let mut cells = row(theirs, &reference.build, language);
                cells[1] = Cell::empty();
                rows.push(cells);
            }
        }
    }
    if let Some(first) = rows.first_mut() {
        first[0] = Cell::new(clean(&finding.id));
    }
    rows
}

fn row(figure: &Figure, build: &str, language: Language) -> Vec<Cell> {
    let plot = Plot::of(figure);
    let repeats = plot.as_ref().map(|p| p.words.clone()).unwrap_or_default();
    let origin = phrases::origin(figure.origin, language);
    vec![
        Cell::empty(),
        Cell::new(clean(&figure.name)),
        Cell::new(clean(build)),
        verdict_table::value(figure, language),
        Cell { text: repeats, plot, ..Cell::default() },
        Cell::new(clean(&figure.method)).over(format!("{origin}, {}", clean(&figure.of))),
        Cell::new(windows(&figure.windows)).toned(Tone::Quiet),
    ]
}

/// Names of windows, cut after a few.
pub(super) fn windows(ids: &[String]) -> String {
    let mut text = ids.iter().take(NAMED_WINDOWS).map(|w| clean(w)).collect::<Vec<_>>().join(", ");
    if ids.len() > NAMED_WINDOWS {
        text.push_str(&format!(" +{}", ids.len() - NAMED_WINDOWS));
    }
    text
}
