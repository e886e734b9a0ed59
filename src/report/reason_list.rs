//! The reasons of every case that is not PASS, in full, and what was declared but not carried out.

use super::document::Report;
use super::headline::sentence;
use super::outline::{Block, CaseReasons, Cell, Column, Heading, Rank, ReasonLine, Section, Table};
use super::phrases::{self, Language, Phrase, fill};
use super::plain_text::clean;
use crate::judge::finding::Finding;
use crate::judge::verdict::Verdict;

pub(super) fn section(report: &Report, language: Language) -> Section {
    let mut open: Vec<&Finding> =
        report.checks.iter().filter(|f| f.verdict != Verdict::Pass || !f.notes.is_empty()).collect();
    // The worst first; cases of one verdict keep the order of the gate.
    open.sort_by_key(|f| std::cmp::Reverse(f.verdict));
    let mut blocks: Vec<Block> = Vec::new();
    if report.checks.iter().all(|f| f.verdict == Verdict::Pass) && !report.checks.is_empty() {
        blocks.push(Block::Paragraph(Phrase::AllPass.text(language).into()));
    }
    blocks.extend(open.into_iter().map(|f| Block::Reasons(of(f, language))));
    Section { heading: Heading::of(Phrase::Reasons, language), rank: Rank::Essential, blocks }
}

fn of(finding: &Finding, language: Language) -> CaseReasons {
    CaseReasons {
        case: clean(&finding.id),
        build: clean(&finding.build),
        verdict: finding.verdict,
        word: phrases::verdict(finding.verdict, language),
        place: fill(Phrase::AskedAtLine.text(language), &[&finding.line.to_string()]),
        reasons: finding
            .reasons
            .iter()
            .map(|r| ReasonLine { verdict: r.verdict, code: clean(&r.code), text: sentence(r, language) })
            .collect(),
        notes: finding.notes.iter().map(|n| clean(n)).collect(),
    }
}

pub(super) fn not_run(report: &Report, language: Language) -> Section {
    let block = if report.not_run.is_empty() {
        Block::Paragraph(Phrase::NothingNotRun.text(language).into())
    } else {
        let mut table =
            Table::of(vec![Column::words(Phrase::Case, language), Column::words(Phrase::Reasons, language)]);
        table.rows =
            report.not_run.iter().map(|n| vec![Cell::new(clean(&n.id)), Cell::new(said(report, n.id.as_str(), &n.reason, language))]).collect();
        Block::Table(table)
    };
    Section { heading: Heading::of(Phrase::NotRun, language), rank: Rank::Essential, blocks: vec![block] }
}

/// The reason in the report's language, where the finding of the case has it in both.
fn said(report: &Report, id: &str, reason: &str, language: Language) -> String {
    report
        .checks
        .iter()
        .filter(|f| f.id == id)
        .flat_map(|f| &f.reasons)
        .find(|r| r.text == reason)
        .map_or_else(|| clean(reason), |r| sentence(r, language))
}
