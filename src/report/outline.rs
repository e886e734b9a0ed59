//! What a person reads and in which order, once: every printer lays out this value and adds no words of its own.

use super::document::Report;
pub use super::phrases::Language;
use super::phrases::Phrase;
use super::strip_plot::Plot;
use super::{
    figure_table, finite, headline, power_card, proof_table, reason_list, recipe, seat_facts,
    verdict_table, window_table,
};
use crate::judge::finding::ProofVerdict;
use crate::judge::verdict::Verdict;

/// A report, ready to be laid out.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// Language of every text in it.
    pub language: Language,
    /// Verdict first.
    pub headline: Headline,
    /// Sections in reading order.
    pub sections: Vec<Section>,
}

/// The first screen.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    /// Verdict of the gate.
    pub verdict: Verdict,
    /// The verdict in words of the language.
    pub word: String,
    /// Title of the gate.
    pub title: String,
    /// Why, in one sentence.
    pub why: String,
    /// How many checks have which verdict, worst first, every verdict that occurs.
    pub tally: Vec<Tally>,
    /// How many checks there are, in words.
    pub checks: String,
    /// Seat, builds and run, in one line.
    pub subject: String,
}

/// How many checks have one verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    /// Verdict.
    pub verdict: Verdict,
    /// Its words.
    pub word: String,
    /// How many.
    pub count: usize,
}

/// One section.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Heading.
    pub heading: Heading,
    /// Who needs it.
    pub rank: Rank,
    /// What stands in it.
    pub blocks: Vec<Block>,
}

/// A heading, with the Japanese word beside an English one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// The heading.
    pub title: String,
    /// Its Japanese, in an English report.
    pub gloss: Option<&'static str>,
}

impl Heading {
    /// The heading of a phrase.
    pub fn of(phrase: Phrase, language: Language) -> Self {
        Self {
            title: phrase.text(language).into(),
            gloss: (language == Language::En).then(|| phrase.text(Language::Ja)),
        }
    }
}

/// Who needs a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rank {
    /// Everybody, at once.
    Essential,
    /// Who repeats or distrusts the run.
    Detail,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Block {
    /// A heading inside the section, with the verdict that it is about.
    Subheading(Subheading),
    /// A paragraph.
    Paragraph(String),
    /// Names and values.
    Facts(Vec<Fact>),
    /// A table.
    Table(Table),
    /// Reasons of one case.
    Reasons(CaseReasons),
    /// Commands, verbatim, one a line.
    Commands(Vec<String>),
    /// Lines to be filled in by hand.
    Blanks(Vec<String>),
}

/// A heading inside a section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subheading {
    /// The heading.
    pub title: String,
    /// A verdict beside it.
    pub badge: Option<Badge>,
}

/// A verdict on a path, beside a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Badge {
    /// What it means for a check.
    pub standing: Verdict,
    /// Its words.
    pub word: &'static str,
}

impl Badge {
    /// The badge of a proof.
    pub fn of(verdict: ProofVerdict, language: Language) -> Self {
        Self {
            standing: super::phrases::standing(verdict),
            word: super::phrases::proof_verdict(verdict, language),
        }
    }
}

/// A name and a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Name.
    pub name: String,
    /// Value.
    pub value: String,
    /// How the value is written.
    pub tone: Tone,
}

impl Fact {
    /// A fact in prose.
    pub fn prose(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            tone: Tone::Normal,
        }
    }

    /// A fact whose value is a literal (a URL, a hash, an option).
    pub fn literal(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            tone: Tone::Literal,
        }
    }
}

/// Reasons of one case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseReasons {
    /// Case.
    pub case: String,
    /// Judged build.
    pub build: String,
    /// Verdict of the case.
    pub verdict: Verdict,
    /// Its words.
    pub word: String,
    /// Where it was asked for.
    pub place: String,
    /// Reasons, most important first.
    pub reasons: Vec<ReasonLine>,
    /// Facts worth reading that decide nothing.
    pub notes: Vec<String>,
    /// What a note is called.
    pub note: &'static str,
}

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasonLine {
    /// Verdict that it alone would give.
    pub verdict: Verdict,
    /// Stable code.
    pub code: String,
    /// The sentence.
    pub text: String,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Columns.
    pub columns: Vec<Column>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
    /// The same content in fewer columns, for narrow paper.
    pub narrow: Option<Box<Table>>,
    /// Said under it.
    pub legend: Option<String>,
}

impl Table {
    /// A table of these columns without rows.
    pub fn of(columns: Vec<Column>) -> Self {
        Self {
            columns,
            ..Self::default()
        }
    }
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Title.
    pub title: String,
    /// Alignment.
    pub align: Align,
}

impl Column {
    /// A column of words.
    pub fn words(title: Phrase, language: Language) -> Self {
        Self {
            title: title.text(language).into(),
            align: Align::Left,
        }
    }

    /// A column of numbers.
    pub fn numbers(title: Phrase, language: Language) -> Self {
        Self {
            title: title.text(language).into(),
            align: Align::Right,
        }
    }
}

/// Alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// A cell: a line, and a smaller one under it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// The line.
    pub text: String,
    /// The smaller line; empty for none.
    pub under: String,
    /// How the line is written.
    pub tone: Tone,
    /// A drawing of the observations, for printers that draw.
    pub plot: Option<Plot>,
}

impl Cell {
    /// A cell of one line.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// An empty cell: it repeats the one above.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A literal.
    pub fn literal(text: impl Into<String>) -> Self {
        Self::new(text).toned(Tone::Literal)
    }

    /// A verdict.
    pub fn verdict(verdict: Verdict, language: Language) -> Self {
        Self::new(super::phrases::verdict(verdict, language)).toned(Tone::Verdict(verdict))
    }

    /// With a smaller line under it.
    pub fn over(mut self, under: impl Into<String>) -> Self {
        self.under = under.into();
        self
    }

    /// In another tone.
    pub fn toned(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

/// How a text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Tone {
    /// As prose.
    #[default]
    Normal,
    /// As a literal.
    Literal,
    /// In the colour of a verdict, as its badge.
    Verdict(Verdict),
    /// In the colour of a verdict, without being one.
    Tinted(Verdict),
    /// Receding: absent, or less important.
    Quiet,
}

impl Outline {
    /// The outline of a report in a language.
    pub fn of(report: &Report, language: Language) -> Self {
        let report = &finite::only(report);
        Self {
            language,
            headline: headline::of(report, language),
            sections: vec![
                seat_facts::section(report, language),
                verdict_table::section(report, language),
                reason_list::section(report, language),
                reason_list::not_run(report, language),
                proof_table::section(report, language),
                figure_table::section(report, language),
                power_card::section(report, language),
                window_table::section(report, language),
                recipe::differences(report, language),
                recipe::conditions(report, language),
                recipe::requests(report, language),
                seat_facts::reproduce(report, language),
                seat_facts::hashes(report, language),
                seat_facts::approval(report, language),
            ],
        }
    }
}
