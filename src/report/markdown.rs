//! The report in Markdown: pipe tables and code spans, no HTML, so that it pastes into GitHub and into Slack.

use super::Printer;
use super::document::Report;
use super::outline::{
    Align, Block, CaseReasons, Cell, Column, Fact, Headline, Language, Outline, Section, Table, Tone,
};
use super::phrases::Phrase;
use super::plain_text::{Span, spans};

/// GitHub drops a step summary of more than 1,024 KiB whole; this leaves room for one beside it.
const MOST_BYTES: usize = 1_000_000;

/// Prints `report.md`.
#[derive(Debug)]
pub struct Markdown;

impl Printer for Markdown {
    fn name(&self) -> &'static str {
        "markdown"
    }

    fn files(&self) -> &'static [(&'static str, Language)] {
        &[("report.md", Language::En), ("report.ja.md", Language::Ja)]
    }

    fn print(&self, _report: &Report, outline: &Outline) -> String {
        render(outline, MOST_BYTES)
    }
}

/// Lays out a report in at most so many bytes.
pub fn render(outline: &Outline, most: usize) -> String {
    let mut text = headline(&outline.headline);
    for part in &outline.sections {
        text.push_str(&section(part));
    }
    cut(text, most, Phrase::CutShort.text(outline.language))
}

/// Cuts at the end of a line, closes what was open, and says so.
fn cut(text: String, most: usize, note: &str) -> String {
    if text.len() <= most {
        return text;
    }
    // Room for a fence, blank lines and the note.
    let room = most.saturating_sub(note.len() + 16);
    let mut kept = String::new();
    for line in text.split_inclusive('\n') {
        if kept.len() + line.len() > room {
            break;
        }
        kept.push_str(line);
    }
    if kept.lines().filter(|l| l.starts_with("```")).count() % 2 == 1 {
        kept.push_str("```\n");
    }
    kept + "\n**" + note + "**\n"
}

fn headline(headline: &Headline) -> String {
    let tally = headline.tally.iter().map(|t| format!("{} {}", t.count, t.word)).collect::<Vec<_>>().join(" · ");
    let checks = if tally.is_empty() { headline.checks.clone() } else { format!("{}: {tally}", headline.checks) };
    format!(
        "# {} — {}\n\n**{}**\n\n{checks}\n\n{}\n",
        headline.word,
        prose(&headline.title),
        sentence(&headline.why),
        prose(&headline.subject)
    )
}

fn section(section: &Section) -> String {
    let gloss = section.heading.gloss.map(|g| format!(" · {g}")).unwrap_or_default();
    let blocks: String = section.blocks.iter().map(block).collect();
    format!("\n## {}{gloss}\n{blocks}", section.heading.title)
}

fn block(block: &Block) -> String {
    match block {
        Block::Subheading(sub) => {
            let badge = sub.badge.as_ref().map(|b| format!(" — {}", b.word)).unwrap_or_default();
            format!("\n### {}{badge}\n", sentence(&sub.title))
        }
        Block::Paragraph(text) => format!("\n{}\n", sentence(text)),
        Block::Facts(facts) => format!("\n{}", facts.iter().map(fact).collect::<String>()),
        Block::Table(all) => table(all),
        Block::Reasons(case) => reasons(case),
        Block::Commands(lines) => fenced(lines),
        Block::Blanks(names) => {
            format!("\n{}", names.iter().map(|n| format!("- {}:\n", prose(n))).collect::<String>())
        }
    }
}

fn fact(fact: &Fact) -> String {
    let value = match fact.tone {
        Tone::Literal => code(&fact.value),
        Tone::Normal | Tone::Quiet | Tone::Verdict(_) | Tone::Tinted(_) => sentence(&fact.value),
    };
    format!("- {}: {value}\n", prose(&fact.name))
}

fn reasons(case: &CaseReasons) -> String {
    let mut text = format!("\n**{} {}** ({}, {})\n\n", case.word, code(&case.case), prose(&case.build), case.place);
    for reason in &case.reasons {
        text.push_str(&format!("- {} ({})\n", sentence(&reason.text), code(&reason.code)));
    }
    for note in &case.notes {
        text.push_str(&format!("- _+_ {}\n", sentence(note)));
    }
    text
}

/// A fence longer than any run of backticks inside.
fn fenced(lines: &[String]) -> String {
    let longest = lines.iter().flat_map(|l| l.split(|c| c != '`')).map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("\n{fence}sh\n{}\n{fence}\n", lines.join("\n"))
}

fn table(table: &Table) -> String {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = String::from("\n");
    text.push_str(&line(table.columns.iter().map(|c| in_cell(&prose(&c.title))).collect()));
    text.push_str(&line(table.columns.iter().map(divider).collect()));
    for row in &table.rows {
        text.push_str(&line(row.iter().map(cell).collect()));
    }
    if let Some(legend) = &table.legend {
        text.push_str(&format!("\n{}\n", prose(legend)));
    }
    text
}

fn divider(column: &Column) -> String {
    match column.align {
        Align::Left => "---".into(),
        Align::Right => "---:".into(),
    }
}

fn cell(cell: &Cell) -> String {
    let main = match cell.tone {
        Tone::Verdict(_) if !cell.text.is_empty() => format!("**{}**", cell.text),
        Tone::Literal => code(&cell.text),
        Tone::Normal | Tone::Quiet | Tone::Tinted(_) | Tone::Verdict(_) => sentence(&cell.text),
    };
    let under = sentence(&cell.under);
    in_cell([main, under].into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" ").as_str())
}

/// A table splits at every bar, even inside code.
fn in_cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// A sentence whose literals become code spans.
fn sentence(text: &str) -> String {
    spans(text)
        .into_iter()
        .map(|span| match span {
            Span::Prose(text) => prose(text),
            Span::Literal(text) => code(text),
        })
        .collect()
}

/// A code span; the fence is longer than any run of backticks inside.
fn code(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// Prose with everything escaped that Markdown or HTML would take for markup.
fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            // In front of a number or a sign `>` is a comparison; only a tag needs it closed, and `<` is gone.
            '\\' | '`' | '*' | '~' => {
                out.push('\\');
                out.push(c);
            }
            // An underscore inside a word is a name; at its edge it is emphasis.
            '_' if !(before.is_alphanumeric() && rest.peek().is_some_and(|n| n.is_alphanumeric())) => out.push_str("\\_"),
            // A link needs `](`, an image `![`.
            ']' if rest.peek() == Some(&'(') => out.push_str("\\]"),
            '!' if rest.peek() == Some(&'[') => out.push_str("\\!"),
            _ => out.push(c),
        }
        before = c;
    }
    match out.chars().next() {
        Some('#' | '>' | '-' | '+' | '=') if out.len() > 1 && !out.starts_with("->") => format!("\\{out}"),
        _ => out,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn prose_cannot_become_markup() {
        assert_eq!(prose("<b> & *x* `y`"), "&lt;b> &amp; \\*x\\* \\`y\\`");
        assert_eq!(prose("[a](http://x) ![b](y)"), "[a\\](http://x) \\![b\\](y)");
        assert_eq!(prose("decode_tok_s _x_"), "decode_tok_s \\_x\\_");
        assert_eq!(prose("# no heading"), "\\# no heading");
    }

    #[test]
    fn code_spans_hold_backticks_and_bars() {
        assert_eq!(code("a`b"), "``a`b``");
        assert_eq!(cell(&Cell::literal("a|b")), "`a\\|b`");
    }

    #[test]
    fn every_row_of_a_table_has_as_many_cells_as_its_head() {
        for language in [Language::En, Language::Ja] {
            let text = render(&Outline::of(&sample::hostile(), language), MOST_BYTES);
            let mut wanted = None;
            for line in text.lines() {
                if !line.starts_with("| ") {
                    wanted = None;
                    continue;
                }
                let bars = line.replace("\\|", "").matches('|').count();
                assert_eq!(bars, *wanted.get_or_insert(bars), "{line}");
            }
        }
    }

    #[test]
    fn a_long_report_is_cut_at_a_line_and_says_so() {
        let outline = Outline::of(&sample::mixed(), Language::En);
        let whole = render(&outline, MOST_BYTES);
        for most in [1_000, 3_000, whole.len() - 1] {
            let text = render(&outline, most);
            assert!(text.len() <= most, "{} > {most}", text.len());
            assert!(text.ends_with(&format!("**{}**\n", Phrase::CutShort.text(Language::En))));
            assert_eq!(text.lines().filter(|l| l.starts_with("```")).count() % 2, 0);
        }
    }
}
