//! Proof of path: one table for each path on each build, equal evidence of several cases on one row.

use super::document::Report;
use super::number;
use super::outline::{Badge, Block, Cell, Column, Heading, Rank, Section, Subheading, Table, Tone};
use super::phrases::{self, Language, Phrase, fill};
use super::plain_text::clean;
use crate::judge::finding::{Proof, ProofItem, ProofVerdict, Tier};
use crate::judge::verdict::Verdict;

/// Different sightings of one piece of evidence that a row spells out; report.json has them all.
const SIGHTINGS: usize = 2;

/// Cases that a row names.
const NAMED_CASES: usize = 3;

/// The proofs of one path on one build.
struct Path<'a> {
    name: &'a str,
    build: &'a str,
    verdict: ProofVerdict,
    cases: Vec<&'a str>,
    rows: Vec<Row<'a>>,
}

/// One piece of evidence, of every case that has it.
struct Row<'a> {
    item: &'a ProofItem,
    seen: Vec<&'a str>,
    cases: Vec<&'a str>,
}

pub(super) fn section(report: &Report, language: Language) -> Section {
    let mut blocks = Vec::new();
    for path in gather(report) {
        let title = fill(Phrase::PathOn.text(language), &[&format!("`{}`", clean(path.name)), &clean(path.build)]);
        let badge = Some(Badge::of(path.verdict, language));
        blocks.push(Block::Subheading(Subheading { title, badge }));
        blocks.push(Block::Table(table(&path, language)));
    }
    if blocks.is_empty() {
        blocks.push(Block::Paragraph(Phrase::NoProof.text(language).into()));
    }
    Section { heading: Heading::of(Phrase::Proofs, language), rank: Rank::Essential, blocks }
}

fn gather(report: &Report) -> Vec<Path<'_>> {
    let mut paths: Vec<Path<'_>> = Vec::new();
    for finding in &report.checks {
        let own = finding.proof.iter().map(|p| (p, finding.build.as_str()));
        let theirs = finding.references.iter().filter_map(|r| Some((r.proof.as_ref()?, r.build.as_str())));
        for (proof, build) in own.chain(theirs) {
            add(&mut paths, proof, build, &finding.id);
        }
    }
    for path in &mut paths {
        path.rows.sort_by_key(|r| (order(r.item.ok), r.item.tier));
    }
    paths
}

/// What refutes comes first, then what is absent.
fn order(ok: Option<bool>) -> u8 {
    match ok {
        Some(false) => 0,
        None => 1,
        Some(true) => 2,
    }
}

fn add<'a>(paths: &mut Vec<Path<'a>>, proof: &'a Proof, build: &'a str, case: &'a str) {
    let index = paths.iter().position(|p| p.name == proof.path && p.build == build).unwrap_or_else(|| {
        let (name, verdict) = (proof.path.as_str(), proof.verdict);
        paths.push(Path { name, build, verdict, cases: Vec::new(), rows: Vec::new() });
        paths.len() - 1
    });
    let path = &mut paths[index];
    if phrases::standing(proof.verdict) > phrases::standing(path.verdict) {
        path.verdict = proof.verdict;
    }
    if !path.cases.contains(&case) {
        path.cases.push(case);
    }
    for item in &proof.items {
        let same = |r: &&mut Row<'_>| {
            let it = r.item;
            (it.tier, &it.source, &it.expected, it.ok, &it.ranks) == (item.tier, &item.source, &item.expected, item.ok, &item.ranks)
        };
        match path.rows.iter_mut().find(same) {
            Some(row) => {
                if !row.seen.contains(&item.seen.as_str()) {
                    row.seen.push(&item.seen);
                }
                if !row.cases.contains(&case) {
                    row.cases.push(case);
                }
            }
            None => path.rows.push(Row { item, seen: vec![&item.seen], cases: vec![case] }),
        }
    }
}

fn table(path: &Path<'_>, language: Language) -> Table {
    let words = |p| Column::words(p, language);
    let mut table = Table::of(vec![
        words(Phrase::Holds),
        words(Phrase::Tier),
        words(Phrase::Source),
        words(Phrase::Expected),
        words(Phrase::Seen),
        words(Phrase::Ranks),
        words(Phrase::Cases),
    ]);
    table.rows = path.rows.iter().map(|r| row(path, r, language)).collect();
    let mut narrow = Table::of(vec![words(Phrase::Holds), words(Phrase::Source), words(Phrase::Seen)]);
    narrow.rows = path
        .rows
        .iter()
        .map(|r| {
            let seen = Cell::new(seen(r)).over(format!(
                "{}: {}",
                Phrase::Expected.text(language),
                clean(&r.item.expected)
            ));
            vec![holds(r.item, language).over(phrases::tier(r.item.tier, language)), Cell::new(clean(&r.item.source)), seen]
        })
        .collect();
    table.narrow = Some(Box::new(narrow));
    table
}

fn row(path: &Path<'_>, row: &Row<'_>, language: Language) -> Vec<Cell> {
    let item = row.item;
    let example = item.example.as_deref().map(clean).unwrap_or_default();
    vec![
        holds(item, language),
        Cell::new(phrases::tier(item.tier, language)),
        Cell::new(clean(&item.source)),
        Cell::new(clean(&item.expected)),
        Cell::new(seen(row)).over(example),
        ranks(item),
        cases(path, row),
    ]
}

fn holds(item: &ProofItem, language: Language) -> Cell {
    let tone = match item.ok {
        Some(true) => Tone::Tinted(Verdict::Pass),
        Some(false) => Tone::Tinted(Verdict::Fail),
        None => Tone::Tinted(Verdict::Unproven),
    };
    Cell::new(phrases::holds(item.ok, language)).toned(tone)
}

fn seen(row: &Row<'_>) -> String {
    let mut text = row.seen.iter().take(SIGHTINGS).map(|s| clean(s)).collect::<Vec<_>>().join("; ");
    if row.seen.len() > SIGHTINGS {
        text.push_str(&format!("; … (+{})", row.seen.len() - SIGHTINGS));
    }
    text
}

fn ranks(item: &ProofItem) -> Cell {
    // What is only asked for is asked of no rank.
    if item.ranks.is_empty() && item.tier == Tier::Declared {
        return Cell::empty();
    }
    Cell::new(number::ranks(&item.ranks))
}

fn cases(path: &Path<'_>, row: &Row<'_>) -> Cell {
    if row.cases.len() == path.cases.len() && row.cases.len() > 1 {
        return Cell::new(format!("{0}/{0}", path.cases.len()));
    }
    let mut text = row.cases.iter().take(NAMED_CASES).map(|c| clean(c)).collect::<Vec<_>>().join(", ");
    if row.cases.len() > NAMED_CASES {
        text.push_str(&format!(" +{}", row.cases.len() - NAMED_CASES));
    }
    Cell::new(text)
}
