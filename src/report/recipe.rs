//! How each build was started and asked, and where the recipes differ.

use std::collections::BTreeMap;

use super::document::{BootRecipe, Report};
use super::number;
use super::outline::{Block, Cell, Column, Fact, Heading, Rank, Section, Subheading, Table};
use super::phrases::{Language, Phrase, fill};
use super::plain_text::{clean, shell, shell_word};

/// The recipe of each build side by side, only what differs.
pub(super) fn differences(report: &Report, language: Language) -> Section {
    let boots = first_boots(report);
    let mut table = Table::of(vec![Column::words(Phrase::Name, language)]);
    table.columns.extend(boots.iter().map(|b| Column { title: clean(&b.build), align: super::outline::Align::Left }));
    let recipes: Vec<BTreeMap<String, String>> = boots.iter().map(|b| recipe(b, language)).collect();
    let mut names: Vec<&String> = recipes.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    for name in names {
        let values: Vec<Option<&String>> = recipes.iter().map(|r| r.get(name)).collect();
        if values.windows(2).all(|pair| pair[0] == pair[1]) {
            continue;
        }
        let mut row = vec![Cell::literal(name)];
        row.extend(values.into_iter().map(|v| match v {
            Some(value) => Cell::literal(value),
            None => Cell::new(Phrase::Unset.text(language)).toned(super::outline::Tone::Quiet),
        }));
        table.rows.push(row);
    }
    let block = match (boots.len(), table.rows.is_empty()) {
        (0 | 1, _) | (_, true) => Block::Paragraph(nothing(boots.len(), language)),
        _ => Block::Table(table),
    };
    Section { heading: Heading::of(Phrase::Differences, language), rank: Rank::Detail, blocks: vec![block] }
}

fn nothing(builds: usize, language: Language) -> String {
    let phrase = if builds < 2 { Phrase::None } else { Phrase::NoDifference };
    phrase.text(language).into()
}

/// The first boot of each build: its recipe is the build's.
fn first_boots(report: &Report) -> Vec<&BootRecipe> {
    let mut boots: Vec<&BootRecipe> = Vec::new();
    for boot in &report.conditions.boots {
        if !boots.iter().any(|b| b.build == boot.build) {
            boots.push(boot);
        }
    }
    boots
}

fn recipe(boot: &BootRecipe, language: Language) -> BTreeMap<String, String> {
    let mut recipe: BTreeMap<String, String> =
        boot.env.iter().map(|(name, value)| (clean(name), clean(value))).collect();
    let command = if boot.command.is_empty() { Phrase::Attached.text(language).into() } else { shell(&boot.command) };
    // A blank keeps the command before every variable: no variable has one in its name.
    recipe.insert(" command".into(), command);
    recipe
}

/// The recipe of every boot, in full, then host and GPUs.
pub(super) fn conditions(report: &Report, language: Language) -> Section {
    let mut blocks: Vec<Block> = Vec::new();
    for boot in &report.conditions.boots {
        let title = fill(Phrase::Boot.text(language), &[&clean(&boot.id), &clean(&boot.build)]);
        blocks.push(Block::Subheading(Subheading { title, badge: None }));
        match boot.command.is_empty() {
            true => blocks.push(Block::Paragraph(Phrase::Attached.text(language).into())),
            false => blocks.push(Block::Commands(vec![command_line(boot)])),
        }
        blocks.push(Block::Facts(boot_facts(boot, language)));
    }
    for (phrase, facts) in [(Phrase::Host, &report.conditions.host), (Phrase::Gpu, &report.conditions.gpu)] {
        if !facts.is_empty() {
            blocks.push(Block::Subheading(Subheading { title: phrase.text(language).into(), badge: None }));
            blocks.push(Block::Facts(facts.iter().map(|(n, v)| Fact::prose(clean(n), clean(v))).collect()));
        }
    }
    if blocks.is_empty() {
        blocks.push(Block::Paragraph(Phrase::None.text(language).into()));
    }
    Section { heading: Heading::of(Phrase::Conditions, language), rank: Rank::Detail, blocks }
}

/// Environment and command as one line that a shell would take.
fn command_line(boot: &BootRecipe) -> String {
    let mut words: Vec<String> =
        boot.env.iter().map(|(name, value)| format!("{}={}", clean(name), shell_word(value))).collect();
    words.push(shell(&boot.command));
    words.join(" ")
}

fn boot_facts(boot: &BootRecipe, language: Language) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(seconds) = boot.ready_s {
        facts.push(Fact::prose(Phrase::Ready.text(language), number::duration(seconds)));
    }
    facts.push(Fact::prose(Phrase::Log.text(language), clean(&boot.log)));
    let told: Vec<String> = boot.identity.iter().map(|(n, v)| format!("{}={}", clean(n), shell_word(v))).collect();
    if !told.is_empty() {
        facts.push(Fact::prose(Phrase::Told.text(language), told.join("  ")));
    }
    // A started build shows its variables in the command line above.
    if boot.command.is_empty() && !boot.env.is_empty() {
        let env: Vec<String> = boot.env.iter().map(|(n, v)| format!("{}={}", clean(n), shell_word(v))).collect();
        facts.push(Fact::prose(Phrase::Environment.text(language), env.join("  ")));
    }
    facts
}

/// Conditions of the requests, cases with the same ones on one row.
pub(super) fn requests(report: &Report, language: Language) -> Section {
    let mut groups: Vec<(Vec<String>, &Vec<(String, String)>)> = Vec::new();
    for case in &report.conditions.requests {
        match groups.iter_mut().find(|(_, values)| **values == case.values) {
            Some((cases, _)) => cases.push(clean(&case.case)),
            None => groups.push((vec![clean(&case.case)], &case.values)),
        }
    }
    let block = if groups.is_empty() {
        Block::Paragraph(Phrase::None.text(language).into())
    } else {
        let mut table =
            Table::of(vec![Column::words(Phrase::Cases, language), Column::words(Phrase::Conditions, language)]);
        table.rows = groups
            .into_iter()
            .map(|(cases, values)| {
                let values: Vec<String> = values.iter().map(|(n, v)| format!("{}={}", clean(n), clean(v))).collect();
                vec![Cell::new(cases.join(", ")), Cell::new(values.join(", "))]
            })
            .collect();
        Block::Table(table)
    };
    Section { heading: Heading::of(Phrase::Requests, language), rank: Rank::Detail, blocks: vec![block] }
}
