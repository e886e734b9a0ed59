//! The report on a terminal: verdict first, and the verdict again at the end, where the eye rests when a run is over.

use comfy_table::{
    Attribute, CellAlignment, Color, ColumnConstraint, ContentArrangement, LineStyle, TableStyle,
};

use super::Printer;
use super::ascii::ascii;
use super::document::Report;
use super::outline::{
    Align, Block, CaseReasons, Cell, Fact, Headline, Language, Outline, Rank, Section, Subheading,
    Table, Tone,
};
use super::paper::PIPED;
pub use super::paper::{Charset, Colour, Depth, Page, Width};
use super::phrases::Phrase;
use crate::judge::verdict::Verdict;

/// From here on a table has one column for each thing.
const WIDE: u16 = 118;

/// Blanks between two columns: one that comfy-table puts in place of a line, and one of ours.
const PADDING: u16 = 2;

/// A column up to this width holds a number or a name.
const SHORT: u16 = 20;

/// A column that wraps still takes a word of this width.
const TIGHT: u16 = 12;

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
        let page = Page {
            width: Width(PIPED),
            colour: Colour::Off,
            charset: Charset::Unicode,
            depth: Depth::Full,
        };
        page.render(outline)
    }
}

/// The essential sections in Unicode.
pub fn render(outline: &Outline, width: Width, colour: Colour) -> String {
    Page {
        width,
        colour,
        charset: Charset::Unicode,
        depth: Depth::Essential,
    }
    .render(outline)
}

impl Page {
    /// Lays out a report.
    pub fn render(&self, outline: &Outline) -> String {
        let mut out = String::from("\n");
        out.push_str(&self.headline(&outline.headline));
        for section in outline
            .sections
            .iter()
            .filter(|s| self.depth == Depth::Full || s.rank == Rank::Essential)
        {
            out.push_str(&self.section(section));
        }
        out.push('\n');
        out.push_str(&self.closing(outline));
        // Columns end in blanks that nobody sees and every diff shows.
        out.lines()
            .fold(String::new(), |text, line| text + line.trim_end() + "\n")
    }

    fn headline(&self, headline: &Headline) -> String {
        let tally = headline
            .tally
            .iter()
            .map(|t| format!("{} {}", t.count, t.word))
            .collect::<Vec<_>>()
            .join(" · ");
        let lines = [
            headline.title.clone(),
            headline.why.clone(),
            format!("{}: {tally}", headline.checks)
                .trim_end_matches(": ")
                .to_owned(),
            headline.subject.clone(),
        ];
        let badge = self.badge(headline);
        let mut table = self.bare();
        for (index, line) in lines.iter().enumerate() {
            let tone = if index == 3 {
                Tone::Quiet
            } else {
                Tone::Normal
            };
            let mut cell = self.cell(line, Align::Left, tone);
            if index == 0 {
                cell = cell.add_attribute(Attribute::Bold);
            }
            let first = if index == 0 {
                badge.clone()
            } else {
                self.cell("", Align::Left, Tone::Normal)
            };
            table.add_row(vec![first, cell]);
        }
        table.to_string() + "\n"
    }

    fn closing(&self, outline: &Outline) -> String {
        let headline = &outline.headline;
        let mut table = self.bare();
        table.add_row(vec![
            self.badge(headline),
            self.cell(&headline.why, Align::Left, Tone::Normal),
        ]);
        if self.depth == Depth::Essential {
            let more = Phrase::MoreInFiles.text(outline.language);
            table.add_row(vec![
                self.cell("", Align::Left, Tone::Normal),
                self.cell(more, Align::Left, Tone::Quiet),
            ]);
        }
        table.to_string() + "\n"
    }

    fn badge(&self, headline: &Headline) -> comfy_table::Cell {
        self.cell(
            &format!(" {} ", headline.word),
            Align::Left,
            Tone::Verdict(headline.verdict),
        )
        .add_attribute(Attribute::Reverse)
    }

    fn section(&self, section: &Section) -> String {
        let mut title = self.paint(&self.spell(&section.heading.title), "1");
        if let Some(gloss) = section
            .heading
            .gloss
            .filter(|_| self.charset == Charset::Unicode)
        {
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
            Block::Commands(lines) => lines
                .iter()
                .map(|l| format!("  $ {}\n", self.spell(l)))
                .collect(),
            Block::Blanks(names) => names
                .iter()
                .map(|n| format!("  {}: ____________________\n", self.spell(n)))
                .collect(),
        }
    }

    fn subheading(&self, subheading: &Subheading) -> String {
        let title = self.spell(&subheading.title);
        match &subheading.badge {
            None => format!("\n {title}\n"),
            Some(badge) => format!(
                "\n {title}  {}\n",
                self.paint(&self.spell(badge.word), ink(badge.standing).sequence)
            ),
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
            self.cell(
                &format!("{} · {} · {}", reasons.case, reasons.build, reasons.place),
                Align::Left,
                Tone::Normal,
            ),
        ]);
        let mut list = self.bare();
        for reason in &reasons.reasons {
            list.add_row(vec![
                self.cell("  ·", Align::Left, Tone::Tinted(reason.verdict)),
                self.cell(
                    &format!("{}  [{}]", reason.text, reason.code),
                    Align::Left,
                    Tone::Normal,
                ),
            ]);
        }
        for note in &reasons.notes {
            list.add_row(vec![
                self.cell("  +", Align::Left, Tone::Quiet),
                self.cell(note, Align::Left, Tone::Quiet),
            ]);
        }
        format!("{head}\n{list}\n")
    }

    fn table(&self, table: &Table) -> String {
        let table = table
            .narrow
            .as_deref()
            .filter(|_| self.width.0 < WIDE)
            .unwrap_or(table);
        let mut drawn = self.bare();
        let dash = if self.charset == Charset::Unicode {
            '─'
        } else {
            '-'
        };
        drawn.load_style(
            TableStyle::new().header_separator(LineStyle::none().fill(dash).junction(dash)),
        );
        drawn.set_header(
            table
                .columns
                .iter()
                .map(|c| self.cell(&c.title, c.align, Tone::Quiet))
                .collect::<Vec<_>>(),
        );
        for row in &table.rows {
            drawn.add_row(
                table
                    .columns
                    .iter()
                    .zip(row)
                    .map(|(c, cell)| self.two_lines(cell, c.align))
                    .collect::<Vec<_>>(),
            );
        }
        for (index, column) in drawn.column_iter_mut().enumerate() {
            column.set_padding((u16::from(index == 0), 1));
        }
        self.keep_short_columns_whole(&mut drawn, table);
        let mut text = drawn.to_string() + "\n";
        if let Some(legend) = &table.legend {
            text.push_str(&self.paragraph(legend));
        }
        text
    }

    /// Lets only the long columns wrap, so that a number or a name is not torn apart to give a sentence room.
    fn keep_short_columns_whole(&self, drawn: &mut comfy_table::Table, table: &Table) {
        let widths = drawn.column_max_content_widths();
        let padded = |w: u16| w.saturating_add(PADDING);
        let total = widths
            .iter()
            .fold(0u16, |sum, w| sum.saturating_add(padded(*w)));
        if total <= self.width.0 {
            return;
        }
        let mut order: Vec<usize> = (0..widths.len()).collect();
        // Words break at their blanks; a number beside its unit, or a name, would break anywhere.
        order.sort_by_key(|i| (is_prose(table, *i), widths[*i]));
        let mut room = self.width.0;
        for (done, index) in order.iter().enumerate() {
            let others = u16::try_from(order.len() - done - 1).unwrap_or(u16::MAX);
            let needed = padded(widths[*index]);
            if widths[*index] > SHORT
                || needed.saturating_add(others.saturating_mul(padded(TIGHT))) > room
            {
                return;
            }
            room -= needed;
            if let Some(column) = drawn.column_mut(*index) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
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

/// Whether a column holds words with blanks between them.
fn is_prose(table: &Table, index: usize) -> bool {
    table.columns[index].align == Align::Left
        && table
            .rows
            .iter()
            .filter_map(|r| r.get(index))
            .any(|c| c.text.contains(' ') || c.under.contains(' '))
}

/// The colour of a verdict, for tables and for text outside them.
struct Ink {
    color: Color,
    sequence: &'static str,
}

fn ink(verdict: Verdict) -> Ink {
    match verdict {
        Verdict::Pass => Ink {
            color: Color::DarkGreen,
            sequence: "32",
        },
        Verdict::Inconclusive => Ink {
            color: Color::DarkYellow,
            sequence: "33",
        },
        Verdict::Unproven => Ink {
            color: Color::DarkMagenta,
            sequence: "35",
        },
        Verdict::NotRun => Ink {
            color: Color::DarkCyan,
            sequence: "36",
        },
        Verdict::Fail => Ink {
            color: Color::DarkRed,
            sequence: "31",
        },
    }
}
