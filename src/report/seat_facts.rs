//! What was judged and by what; how to repeat it; its hashes; the empty place for an approval.

use super::document::{Attempt, Report};
use super::headline::judged_builds;
use super::json;
use super::number;
use super::outline::{Block, Fact, Heading, Rank, Section};
use super::phrases::{Language, Phrase, fill};
use super::plain_text::{clean, shell_word};
use crate::archive::rundir::sha256_hex;

pub(super) fn section(report: &Report, language: Language) -> Section {
    let word = |p: Phrase| p.text(language);
    let seat = &report.seat;
    let version = seat
        .version
        .as_deref()
        .map_or_else(|| word(Phrase::NotTold).to_owned(), clean);
    let or_unknown = |text: &str| {
        if text.is_empty() {
            word(Phrase::NotTold).to_owned()
        } else {
            clean(text)
        }
    };
    let run = &report.conditions;
    let mut facts = vec![
        Fact::prose(
            word(Phrase::Gate),
            format!(
                "`{}` — {}",
                clean(&report.gate.name),
                clean(&report.gate.title)
            ),
        ),
        Fact::literal(word(Phrase::Seat), or_unknown(&seat.url)),
        Fact::prose(
            word(Phrase::Server),
            format!("{} {version}", or_unknown(&seat.dialect)),
        ),
        Fact::literal(word(Phrase::Model), or_unknown(&seat.model)),
        Fact::prose(word(Phrase::Builds), builds(report, language)),
        Fact::literal(word(Phrase::RunId), clean(&report.id)),
        Fact::prose(
            word(Phrase::RunStarted),
            format!(
                "{} · {}",
                number::instant(&clean(&run.started)),
                number::duration(run.seconds)
            ),
        ),
        Fact::prose(word(Phrase::RunEnded), clean(&run.ended)),
    ];
    facts.extend(attempt(&run.attempt, language));
    Section {
        heading: Heading::of(Phrase::Identity, language),
        rank: Rank::Essential,
        blocks: vec![Block::Facts(facts)],
    }
}

/// Which try it is; nothing for a first one of which nothing was said.
fn attempt(attempt: &Attempt, language: Language) -> Option<Fact> {
    let name = Phrase::Attempt.text(language);
    if let Some(why) = &attempt.new_build {
        let said = fill(Phrase::NewBuild.text(language), &[&clean(why)]);
        return Some(Fact::prose(name, said));
    }
    (attempt.earlier > 0).then(|| {
        let earlier = number::count(u64::from(attempt.earlier));
        let divisor = number::count(2_u64.saturating_pow(attempt.earlier.min(30)));
        Fact::prose(
            name,
            fill(Phrase::Rerun.text(language), &[&earlier, &divisor]),
        )
    })
}

/// Every build of the run with its boots, the judged ones named as such.
fn builds(report: &Report, language: Language) -> String {
    let judged = judged_builds(report);
    let mut all: Vec<String> = report
        .conditions
        .boots
        .iter()
        .map(|b| clean(&b.build))
        .collect();
    all.extend(judged.iter().cloned());
    let mut seen: Vec<String> = Vec::new();
    for build in all {
        if !seen.contains(&build) {
            seen.push(build);
        }
    }
    seen.iter()
        .map(|b| {
            if judged.contains(b) {
                format!("{b} ({})", Phrase::Judged.text(language))
            } else {
                b.clone()
            }
        })
        .collect::<Vec<_>>()
        .join(", ")
}

pub(super) fn reproduce(report: &Report, language: Language) -> Section {
    let dir = format!("reports/{}/{}", clean(&report.gate.name), clean(&report.id));
    let attached = report.conditions.boots.iter().all(|b| b.command.is_empty());
    let seat = match attached && !report.seat.url.is_empty() {
        true => format!(" --seat {}", shell_word(&report.seat.url)),
        false => String::new(),
    };
    let commands = vec![
        format!("sekimon judge {}", shell_word(&dir)),
        format!(
            "sekimon run {}{seat}",
            shell_word(&format!("{dir}/gate.toml"))
        ),
    ];
    Section {
        heading: Heading::of(Phrase::Reproduce, language),
        rank: Rank::Detail,
        blocks: vec![
            Block::Paragraph(Phrase::ReproduceText.text(language).into()),
            Block::Commands(commands),
        ],
    }
}

pub(super) fn hashes(report: &Report, language: Language) -> Section {
    let word = |p: Phrase| p.text(language);
    let facts = vec![
        Fact::literal(
            word(Phrase::ReportHash),
            sha256_hex(json::bytes(report).as_bytes()),
        ),
        Fact::literal(word(Phrase::GateHash), clean(&report.gate.sha256)),
        Fact::literal(word(Phrase::Fingerprint), clean(&report.seat.fingerprint)),
        Fact::prose(
            word(Phrase::ToolName),
            format!(
                "{} {} · {}",
                clean(&report.tool.name),
                clean(&report.tool.version),
                clean(&report.schema)
            ),
        ),
    ];
    Section {
        heading: Heading::of(Phrase::Hashes, language),
        rank: Rank::Detail,
        blocks: vec![Block::Facts(facts)],
    }
}

pub(super) fn approval(_report: &Report, language: Language) -> Section {
    let blanks = [
        Phrase::ApprovalDecision,
        Phrase::Approver,
        Phrase::Date,
        Phrase::Signature,
    ];
    Section {
        heading: Heading::of(Phrase::Approval, language),
        rank: Rank::Detail,
        blocks: vec![
            Block::Paragraph(Phrase::ApprovalText.text(language).into()),
            Block::Blanks(
                blanks
                    .into_iter()
                    .map(|p| p.text(language).into())
                    .collect(),
            ),
        ],
    }
}
