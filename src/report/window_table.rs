//! The windows, in the order of the run: what was sent, and what both sides counted.

use super::document::{Report, WindowRef};
use super::number;
use super::outline::{Block, Cell, Column, Heading, Rank, Section, Table, Tone};
use super::phrases::{Language, Phrase, fill};
use super::plain_text::clean;
use crate::judge::verdict::Verdict;

pub(super) fn section(report: &Report, language: Language) -> Section {
    let words = |p| Column::words(p, language);
    let numbers = |p| Column::numbers(p, language);
    let mut table = Table::of(vec![
        words(Phrase::Window),
        words(Phrase::Case),
        words(Phrase::Build),
        words(Phrase::Started),
        numbers(Phrase::Length),
        numbers(Phrase::Sent),
        numbers(Phrase::UsageTokens),
        numbers(Phrase::SeatTokens),
        words(Phrase::Incidents),
    ]);
    table.rows = report.windows.iter().map(|w| row(w, language)).collect();
    table.legend = Some(Phrase::AbsentLegend.text(language).into());
    let block = if table.rows.is_empty() {
        Block::Paragraph(Phrase::NoWindows.text(language).into())
    } else {
        Block::Table(table)
    };
    Section {
        heading: Heading::of(Phrase::Windows, language),
        rank: Rank::Detail,
        blocks: vec![block],
    }
}

fn row(window: &WindowRef, language: Language) -> Vec<Cell> {
    let pair = |a: Option<u64>, b: Option<u64>| {
        format!(
            "{} / {}",
            number::count_or_absent(a),
            number::count_or_absent(b)
        )
    };
    let counted = |x: Option<f64>| x.map_or_else(|| number::ABSENT.into(), number::plain);
    let failed = match window.failed {
        0 => String::new(),
        n => fill(Phrase::FailedRequests.text(language), &[&number::count(n)]),
    };
    let sent = Cell::new(number::count(window.requests)).over(&failed);
    vec![
        Cell::new(clean(&window.id)).over(clean(&window.part)),
        Cell::new(clean(&window.case)),
        Cell::new(clean(&window.build)).over(clean(&window.boot)),
        Cell::new(number::instant(&clean(&window.started))).toned(Tone::Quiet),
        Cell::new(number::duration(window.seconds)),
        if failed.is_empty() {
            sent
        } else {
            sent.toned(Tone::Tinted(Verdict::Inconclusive))
        },
        Cell::new(pair(window.prompt_tokens, window.completion_tokens)),
        Cell::new(format!(
            "{} / {}",
            counted(window.seat.prompt_tokens),
            counted(window.seat.generation_tokens)
        )),
        Cell::new(
            window
                .incidents
                .iter()
                .map(|i| clean(i))
                .collect::<Vec<_>>()
                .join("; "),
        ),
    ]
}
