//! A text grammar: lists of alternatives with slots, drawn from a seeded stream.
//!
//! The file format: `[name]` opens a rule with one alternative a line, `[name, words]` one whose alternatives are
//! separated by blanks. `‹name›` is a slot, `\n` a line end, `\t` one step of indentation. Blank lines mean nothing.

use std::collections::BTreeMap;

use super::splitmix::SplitMix64;

/// The rule where a text begins.
const START: &str = "sentence";
/// Slots within slots at most: the grammars here go five deep; a grammar that calls itself must still end.
const DEEPEST: u32 = 24;

/// A part of an alternative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Text(&'static str),
    Slot(usize),
    LineEnd,
    Indent,
}

/// A grammar, read once from its text.
#[derive(Debug, Clone)]
pub struct Grammar {
    rules: Vec<Vec<Vec<Part>>>,
    start: usize,
    missing: Vec<&'static str>,
}

impl Grammar {
    /// Reads a grammar.
    pub fn read(text: &'static str) -> Self {
        let sections = sections(text);
        let names: BTreeMap<&str, usize> = sections
            .iter()
            .enumerate()
            .map(|(at, (name, _))| (*name, at))
            .collect();
        let mut missing = Vec::new();
        let rules = sections
            .iter()
            .map(|(_, alternatives)| {
                alternatives
                    .iter()
                    .map(|a| parts(a, &names, &mut missing))
                    .collect()
            })
            .collect();
        if !names.contains_key(START) {
            missing.push(START);
        }
        Self {
            rules,
            start: names.get(START).copied().unwrap_or(0),
            missing,
        }
    }

    /// Slots that no rule fills; empty for a whole grammar.
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// Appends one sentence.
    pub fn sentence(&self, chance: &mut SplitMix64, into: &mut String) {
        self.expand(self.start, DEEPEST, chance, into);
    }

    fn expand(&self, rule: usize, depth: u32, chance: &mut SplitMix64, into: &mut String) {
        let Some(alternatives) = self.rules.get(rule).filter(|a| depth > 0 && !a.is_empty()) else {
            return;
        };
        for part in &alternatives[chance.below(alternatives.len())] {
            match part {
                Part::Text(text) => into.push_str(text),
                Part::Slot(slot) => self.expand(*slot, depth - 1, chance, into),
                Part::LineEnd => into.push('\n'),
                Part::Indent => into.push_str("    "),
            }
        }
    }
}

/// Rules with their alternatives, in the order of the text.
fn sections(text: &'static str) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    let mut in_words = false;
    for line in text.lines().filter(|l| !l.is_empty()) {
        // An attribute of Rust also begins with a bracket, but never with a letter after it.
        if let Some(head) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            let (name, words) = match head.strip_suffix(", words") {
                Some(name) => (name, true),
                None => (head, false),
            };
            in_words = words;
            sections.push((name, Vec::new()));
            continue;
        }
        let Some((_, alternatives)) = sections.last_mut() else {
            continue;
        };
        if in_words {
            alternatives.extend(line.split(' ').filter(|w| !w.is_empty()));
        } else {
            alternatives.push(line);
        }
    }
    sections
}

fn parts(
    text: &'static str,
    names: &BTreeMap<&str, usize>,
    missing: &mut Vec<&'static str>,
) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.find(['‹', '\\']).unwrap_or(rest.len());
        let (before, after) = rest.split_at(at);
        if !before.is_empty() {
            parts.push(Part::Text(before));
        }
        rest = after;
        if let Some(tail) = rest.strip_prefix("\\n") {
            parts.push(Part::LineEnd);
            rest = tail;
        } else if let Some(tail) = rest.strip_prefix("\\t") {
            parts.push(Part::Indent);
            rest = tail;
        } else if let Some((name, tail)) = rest.strip_prefix('‹').and_then(|r| r.split_once('›'))
        {
            match names.get(name) {
                Some(slot) => parts.push(Part::Slot(*slot)),
                None => missing.push(name),
            }
            rest = tail;
        } else if !rest.is_empty() {
            // A mark that opens nothing is text.
            let end = rest.chars().next().map_or(0, char::len_utf8);
            parts.push(Part::Text(&rest[..end]));
            rest = &rest[end..];
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(text: &'static str, seed: u64) -> String {
        let mut into = String::new();
        Grammar::read(text).sentence(&mut SplitMix64::new(seed), &mut into);
        into
    }

    #[test]
    fn slots_lines_and_indents_are_filled() {
        assert_eq!(
            say(
                "[sentence]\nif ‹word› {\\n\\t‹word›\\n}\n\n[word, words]\n x \n",
                1
            ),
            "if x {\n    x\n}"
        );
    }

    #[test]
    fn a_slot_without_a_rule_is_told_and_a_lone_mark_is_text() {
        let grammar = Grammar::read("[sentence]\na ‹b› \\ c ‹d");
        assert_eq!(grammar.missing(), ["b"]);
        assert_eq!(say("[sentence]\na \\ c ‹d", 1), "a \\ c ‹d");
        assert_eq!(Grammar::read("").missing(), ["sentence"]);
    }

    #[test]
    fn a_grammar_that_calls_itself_ends() {
        assert!(say("[sentence]\nx‹sentence›", 1).len() < 100);
        assert_eq!(say("", 1), "");
    }
}
