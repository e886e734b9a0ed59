//! The report on a terminal: verdict first, and the verdict again at the end, where the eye rests when a run is over.

use comfy_table::{Attribute, CellAlignment, Color, ContentArrangement, LineStyle, TableStyle};

use super::Printer;
use super::ascii::ascii;
use super::document::Report;
use super::outline::{
    Align, Block, CaseReasons, Cell, Fact, Headline, Language, Outline, Rank, Section, Subheading, Table, Tone,
};
use super::phrases::Phrase;
use crate::judge::verdict::Verdict;

/// Columns of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width(u16);

/// Columns of a report that goes to a file or a pipe.
const PIPED: u16 = 120;

/// Narrower than this, tables fall apart into letters.
const LEAST: u16 = 60;

/// Wider than this, the eye loses the row.
const MOST: u16 = 160;

/// From here on a table has one column for each thing.
const WIDE: u16 = 118;

impl Width {
    /// Of the terminal at standard output, or of a pipe.
    pub fn of(is_terminal: bool) -> Self {
        match is_terminal {
            true => Self::columns(comfy_table::Table::new().width().unwrap_or(PIPED)),
            false => Self(PIPED),
        }
    }

    /// So many columns, within what can be read.
    pub fn columns(columns: u16) -> Self {
        Self(columns.clamp(LEAST, MOST))
    }
}

/// Whether colours are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// No escape sequence at all.
    Off,
    /// The sixteen colours that a terminal's own theme defines.
    On,
}

impl From<bool> for Colour {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

/// Which characters are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Charset {
    /// All of Unicode.
    Unicode,
    /// ASCII only; what has no spelling in it is written `\u{…}`.
    Ascii,
}

/// How much is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// What everybody needs; the rest is in the files.
    Essential,
    /// Every section.
    Full,
}

/// The paper that a report is written on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Columns.
    pub width: Width,
    /// Colours.
    pub colour: Colour,
    /// Characters.
    pub charset: Charset,
    /// Sections.
    pub depth: Depth,
}

/// Prints the whole report as plain text; it fills no file.
#[derive(Debug)]
pub struct Terminal;

impl Printer for Terminal {
    fn name(&self) -> &'static str {
        "terminal"
    }

    fn files(&self) -> &'static [(&'static str, Language)] {
        &[]
    }

    fn print(&self, _report: &Report, outline: &Outline) -> String {
        let page = Page { width: Width(PIPED), colour: Colour::Off, charset: Charset::Unicode, depth: Depth::Full };
        page.render(outline)
    }
}

/// The essential sections in Unicode.
pub fn render(outline: &Outline, width: Width, colour: Colour) -> String {
    Page { width, colour, charset: Charset::Unicode, depth: Depth::Essential }.render(outline)
}

impl Page {
    /// Lays out a report.
    pub fn render(&self, outline: &Outline) -> String {
        let mut out = String::from("\n");
        out.push_str(&self.headline(&outline.headline));
        for section in outline.sections.iter().filter(|s| self.depth == Depth::Full || s.rank == Rank::Essential) {
            out.push_str(&self.section(section));
        }
        out.push('\n');
        out.push_str(&self.closing(outline));
        // Columns end in blanks that nobody sees and every diff shows.
        out.lines().fold(String::new(), |text, line| text + line.trim_end() + "\n")
    }

    fn headline(&self, headline: &Headline) -> String {
        let tally = headline.tally.iter().map(|t| format!("{} {}", t.count, t.word)).collect::<Vec<_>>().join(" · ");
        let lines = [
            headline.title.clone(),
            headline.why.clone(),
            format!("{}: {tally}", headline.checks).trim_end_matches(": ").to_owned(),
            headline.subject.clone(),
        ];
        let badge = self.cell(&format!(" {} ", headline.word), Align::Left, Tone::Verdict(headline.verdict));
        let mut table = self.bare();
        for (index, line) in lines.iter().enumerate() {
            let tone = if index == 3 { Tone::Quiet } else { Tone::Normal };
            let mut cell = self.cell(line, Align::Left, tone);
            if index == 0 {
                cell = cell.add_attribute(Attribute::Bold);
            }
            let first = if index == 0 { badge.clone() } else { self.cell("", Align::Left, Tone::Normal) };
            table.add_row(vec![first, cell]);
        }
        table.to_string() + "\n"
    }

    fn closing(&self, outline: &Outline) -> String {
        let headline = &outline.headline;
        let mut table = self.bare();
        table.add_row(vec![
            self.cell(&format!(" {} ", headline.word), Align::Left, Tone::Verdict(headline.verdict)),
            self.cell(&headline.why, Align::Left, Tone::Normal),
        ]);
        if self.depth == Depth::Essential {
            let more = Phrase::MoreInFiles.text(outline.language);
            table.add_row(vec![self.cell("", Align::Left, Tone::Normal), self.cell(more, Align::Left, Tone::Quiet)]);
        }
        table.to_string() + "\n"
    }

    fn section(&self, section: &Section) -> String {
        let mut title = self.paint(&self.spell(&section.heading.title), "1");
        if let Some(gloss) = section.heading.gloss.filter(|_| self.charset == Charset::Unicode) {
            title.push_str("  ");
            title.push_str(&self.paint(gloss, "2"));
        }
        let blocks: String = section.blocks.iter().map(|b| self.block(b)).collect();
        format!("\n{title}\n{blocks}")
    }

    fn block(&self, block: &Block) -> String {
        match block {
            Block::Subheading(subheading) => self.subheading(subheading),
            Block::Paragraph(text) => self.paragraph(text),
            Block::Facts(facts) => self.facts(facts),
            Block::Table(table) => self.table(table),
            Block::Reasons(reasons) => self.reasons(reasons),
            Block::Commands(lines) => lines.iter().map(|l| format!("  $ {}\n", self.spell(l))).collect(),
            Block::Blanks(names) => names.iter().map(|n| format!("  {}: ____________________\n", self.spell(n))).collect(),
        }
    }

    fn subheading(&self, subheading: &Subheading) -> String {
        let title = self.spell(&subheading.title);
        match &subheading.badge {
            None => format!("\n {title}\n"),
            Some(badge) => format!("\n {title}  {}\n", self.paint(&self.spell(badge.word), ink(badge.standing).sequence)),
        }
    }

    fn paragraph(&self, text: &str) -> String {
        let mut table = self.bare();
        table.add_row(vec![self.cell(text, Align::Left, Tone::Normal)]);
        table.to_string() + "\n"
    }

    fn facts(&self, facts: &[Fact]) -> String {
        let mut table = self.bare();
        for fact in facts {
            table.add_row(vec![
                self.cell(&fact.name, Align::Left, Tone::Quiet),
                self.cell(&fact.value, Align::Left, Tone::Normal),
            ]);
        }
        table.to_string() + "\n"
    }

    fn reasons(&self, reasons: &CaseReasons) -> String {
        let mut head = self.bare();
        head.add_row(vec![
            self.cell(&reasons.word, Align::Left, Tone::Verdict(reasons.verdict)),
            self.cell(&format!("{} · {} · {}", reasons.case, reasons.build, reasons.place), Align::Left, Tone::Normal),
        ]);
        let mut list = self.bare();
        for reason in &reasons.reasons {
            list.add_row(vec![
                self.cell("  ·", Align::Left, Tone::Tinted(reason.verdict)),
                self.cell(&format!("{}  [{}]", reason.text, reason.code), Align::Left, Tone::Normal),
            ]);
        }
        for note in &reasons.notes {
            list.add_row(vec![self.cell("  +", Align::Left, Tone::Quiet), self.cell(note, Align::Left, Tone::Quiet)]);
        }
        format!("{head}\n{list}\n")
    }

    fn table(&self, table: &Table) -> String {
        let table = table.narrow.as_deref().filter(|_| self.width.0 < WIDE).unwrap_or(table);
        let mut drawn = self.bare();
        let dash = if self.charset == Charset::Unicode { '─' } else { '-' };
        drawn.load_style(TableStyle::new().header_separator(LineStyle::none().fill(dash).junction(dash)));
        drawn.set_header(table.columns.iter().map(|c| self.cell(&c.title, c.align, Tone::Quiet)).collect::<Vec<_>>());
        for row in &table.rows {
            drawn.add_row(table.columns.iter().zip(row).map(|(c, cell)| self.two_lines(cell, c.align)).collect::<Vec<_>>());
        }
        let mut text = drawn.to_string() + "\n";
        if let Some(legend) = &table.legend {
            text.push_str(&self.paragraph(legend));
        }
        text
    }

    fn two_lines(&self, cell: &Cell, align: Align) -> comfy_table::Cell {
        let text = match (cell.text.is_empty(), cell.under.is_empty()) {
            (_, true) => cell.text.clone(),
            (true, false) => cell.under.clone(),
            (false, false) => format!("{}\n{}", cell.text, cell.under),
        };
        self.cell(&text, align, cell.tone)
    }

    /// A table without lines: comfy-table also wraps the prose, because it knows how wide a character is.
    fn bare(&self) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table.load_style(TableStyle::new());
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(self.width.0);
        table.force_no_tty();
        if self.colour == Colour::On {
            table.enforce_styling();
        }
        table
    }

    fn cell(&self, text: &str, align: Align, tone: Tone) -> comfy_table::Cell {
        let cell = comfy_table::Cell::new(self.spell(text)).set_alignment(match align {
            Align::Left => CellAlignment::Left,
            Align::Right => CellAlignment::Right,
        });
        match tone {
            Tone::Normal | Tone::Literal => cell,
            Tone::Quiet => cell.add_attribute(Attribute::Dim),
            Tone::Tinted(verdict) => cell.fg(ink(verdict).color),
            Tone::Verdict(verdict) => cell.fg(ink(verdict).color).add_attribute(Attribute::Bold),
        }
    }

    fn paint(&self, text: &str, sequence: &str) -> String {
        match self.colour {
            Colour::On => format!("\u{1b}[{sequence}m{text}\u{1b}[0m"),
            Colour::Off => text.into(),
        }
    }

    fn spell(&self, text: &str) -> String {
        match self.charset {
            Charset::Unicode => text.into(),
            Charset::Ascii => ascii(text),
        }
    }
}

/// The colour of a verdict, for tables and for text outside them.
struct Ink {
    color: Color,
    sequence: &'static str,
}

fn ink(verdict: Verdict) -> Ink {
    match verdict {
        Verdict::Pass => Ink { color: Color::DarkGreen, sequence: "32" },
        Verdict::Inconclusive => Ink { color: Color::DarkYellow, sequence: "33" },
        Verdict::Unproven => Ink { color: Color::DarkMagenta, sequence: "35" },
        Verdict::NotRun => Ink { color: Color::DarkCyan, sequence: "36" },
        Verdict::Fail => Ink { color: Color::DarkRed, sequence: "31" },
    }
}
