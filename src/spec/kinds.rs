//! The table of kinds as data, for whoever prints it.

use super::kind::{Default, Kind, ProofNeed, Takes};

/// One kind of check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindRow {
    /// Name in a gate.
    pub kind: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// Its own keys.
    pub keys: Vec<KeyRow>,
    /// Its figures.
    pub figures: Vec<FigureRow>,
    /// Whether it must name a path.
    pub proof: ProofNeed,
    /// Repeats when the gate names none.
    pub repeats: u32,
}

/// One key of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyRow {
    /// Name.
    pub name: &'static str,
    /// What it takes, for people (`a whole number from 1 to 1024`).
    pub takes: String,
    /// What it is when left out, as a gate would write it; absent: it has no value, see `required`.
    pub default: Option<String>,
    /// Whether it must be given.
    pub required: bool,
    /// What it does.
    pub about: &'static str,
}

/// One figure of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FigureRow {
    /// Name.
    pub name: &'static str,
    /// Unit; empty for a pure number.
    pub unit: &'static str,
    /// Words that it can be; empty for a number.
    pub words: &'static [&'static str],
    /// What it is.
    pub about: &'static str,
}

/// A row for each kind.
pub fn table(kinds: &[&'static dyn Kind]) -> Vec<KindRow> {
    kinds
        .iter()
        .map(|kind| KindRow {
            kind: kind.name(),
            about: kind.about(),
            keys: kind
                .keys()
                .iter()
                .map(|key| KeyRow {
                    name: key.name,
                    takes: takes(&key.takes),
                    default: default(&key.default, &key.takes),
                    required: matches!(key.default, Default::Required),
                    about: key.about,
                })
                .collect(),
            figures: kind
                .figures()
                .iter()
                .map(|f| FigureRow {
                    name: f.name,
                    unit: f.unit,
                    words: f.words,
                    about: f.about,
                })
                .collect(),
            proof: kind.proof(),
            repeats: kind.default_repeats(),
        })
        .collect()
}

/// What a key takes, for people.
fn takes(takes: &Takes) -> String {
    let words = |words: &[&str]| format!("`{}`", words.join("`, `"));
    match takes {
        Takes::Count(least, most) => format!("a whole number from {least} to {most}"),
        Takes::Number(least, most) => format!("a number from {least} to {most}"),
        Takes::Fraction => "a fraction, `0.05` or `\"5 %\"`".into(),
        Takes::Flag => "`true` or `false`".into(),
        Takes::Text => "a text".into(),
        Takes::Word(list) => format!("one of {}", words(list)),
        Takes::Texts => "a list of texts".into(),
        Takes::Words(list) => format!("a list of {}", words(list)),
        Takes::Counts(least, most) => format!("a list of whole numbers from {least} to {most}"),
        Takes::Time => "a time, `\"90 s\"`, `\"45m\"`".into(),
        Takes::Rows(columns) => {
            let names: Vec<&str> = columns.iter().map(|c| c.name).collect();
            format!("a list of tables with {}", words(&names))
        }
    }
}

/// A default as a gate would write it.
fn default(default: &Default, takes: &Takes) -> Option<String> {
    match default {
        Default::Required | Default::Absent => None,
        Default::Count(n) => Some(n.to_string()),
        Default::Number(x) if matches!(takes, Takes::Time) => Some(format!("\"{x} s\"")),
        Default::Number(x) => Some(x.to_string()),
        Default::Flag(on) => Some(on.to_string()),
        Default::Text(text) => Some(format!("\"{text}\"")),
        Default::Texts(texts) => Some(format!("{texts:?}")),
        Default::Counts(counts) => Some(format!("{counts:?}")),
    }
}
