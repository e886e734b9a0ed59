//! The report as one HTML page that needs nothing else: no script, no font, no image from anywhere.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::Printer;
use super::document::Report;
use super::outline::{
    Align, Block, CaseReasons, Cell, Fact, Heading, Headline, Language, Outline, Section, Table,
    Tone,
};
use super::plain_text::{Span, spans};
use super::strip_plot::Plot;
use crate::judge::verdict::Verdict;

const STYLE: &str = include_str!("style.css");

/// Prints `report.html`.
#[derive(Debug)]
pub struct Html;

impl Printer for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn files(&self) -> &'static [(&'static str, Language)] {
        &[
            ("report.html", Language::En),
            ("report.ja.html", Language::Ja),
        ]
    }

    fn print(&self, _report: &Report, outline: &Outline) -> String {
        page(outline).into_string()
    }
}

fn page(outline: &Outline) -> Markup {
    let headline = &outline.headline;
    html! {
        (DOCTYPE)
        html lang=(outline.language.tag()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                // Nothing may load or run, whatever a log line brings: the browser holds to it too.
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { (headline.word) " — " (headline.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    (head(headline, outline.language))
                    nav { @for (index, section) in outline.sections.iter().enumerate() {
                        a href={ "#s" (index) } { (section.heading.title) }
                    } }
                    @for (index, section) in outline.sections.iter().enumerate() { (part(index, section)) }
                }
            }
        }
    }
}

fn head(headline: &Headline, language: Language) -> Markup {
    let (other, file) = match language {
        Language::En => ("日本語", "report.ja.html"),
        Language::Ja => ("English", "report.html"),
    };
    html! {
        header class=(class(headline.verdict)) {
            a.language href=(file) { (other) }
            p.title { (headline.title) }
            h1 { span.badge { (headline.word) } }
            p.why { (sentence(&headline.why)) }
            p.tally {
                span.checks { (headline.checks) }
                @for tally in &headline.tally {
                    span class={ "chip " (class(tally.verdict)) } { b { (tally.count) } " " (tally.word) }
                }
            }
            p.subject { (headline.subject) }
        }
    }
}

fn part(index: usize, section: &Section) -> Markup {
    html! {
        section id={ "s" (index) } {
            (heading(&section.heading))
            @for item in &section.blocks { (block(item)) }
        }
    }
}

fn heading(heading: &Heading) -> Markup {
    html! { h2 { (heading.title) @if let Some(gloss) = heading.gloss { " " span.gloss lang="ja" { (gloss) } } } }
}

fn block(block: &Block) -> Markup {
    match block {
        Block::Subheading(sub) => html! {
            h3 { (sentence(&sub.title)) @if let Some(badge) = &sub.badge {
                " " span class={ "chip " (class(badge.standing)) } { (badge.word) }
            } }
        },
        Block::Paragraph(text) => html! { p { (sentence(text)) } },
        Block::Facts(facts) => html! { dl { @for fact in facts { (row_of(fact)) } } },
        Block::Table(all) => table(all),
        Block::Reasons(case) => reasons(case),
        Block::Commands(lines) => html! { pre { code { (lines.join("\n")) } } },
        Block::Blanks(names) => html! { dl.blanks { @for name in names { dt { (name) } dd {} } } },
    }
}

fn row_of(fact: &Fact) -> Markup {
    html! { dt { (fact.name) } dd { (toned(&fact.value, fact.tone)) } }
}

fn reasons(case: &CaseReasons) -> Markup {
    html! {
        article class=(class(case.verdict)) {
            h3 {
                span class={ "chip " (class(case.verdict)) } { (case.word) }
                " " (case.case) " " span.place { (case.build) " · " (case.place) }
            }
            ul {
                @for reason in &case.reasons {
                    li class=(class(reason.verdict)) { (sentence(&reason.text)) " " span.code { (reason.code) } }
                }
                @for note in &case.notes { li.note { (case.note) ": " (sentence(note)) } }
            }
        }
    }
}

fn table(table: &Table) -> Markup {
    html! {
        div.scroll {
            table {
                thead { tr { @for column in &table.columns {
                    th class=(side(column.align)) { (column.title) }
                } } }
                tbody { @for row in &table.rows {
                    // A row that begins with nothing goes on with the one above.
                    tr class=[row.first().filter(|c| c.text.is_empty()).map(|_| "more")] {
                        @for (column, item) in table.columns.iter().zip(row) {
                            td class=(side(column.align)) { (cell(item)) }
                        }
                    }
                } }
            }
        }
        @if let Some(legend) = &table.legend { p.legend { (sentence(legend)) } }
    }
}

fn cell(cell: &Cell) -> Markup {
    html! {
        @if !cell.text.is_empty() { div { (toned(&cell.text, cell.tone)) } }
        @if !cell.under.is_empty() { div.under { (sentence(&cell.under)) } }
        @if let Some(plot) = &cell.plot { (strip(plot)) }
    }
}

fn toned(text: &str, tone: Tone) -> Markup {
    match tone {
        Tone::Normal => sentence(text),
        Tone::Literal => html! { code { (text) } },
        Tone::Quiet => html! { span.quiet { (sentence(text)) } },
        Tone::Tinted(verdict) => {
            html! { span class={ "ink " (class(verdict)) } { (sentence(text)) } }
        }
        Tone::Verdict(_) if text.is_empty() => html! {},
        Tone::Verdict(verdict) => html! { span class={ "chip " (class(verdict)) } { (text) } },
    }
}

fn sentence(text: &str) -> Markup {
    html! { @for span in spans(text) { @match span {
        Span::Prose(text) => (text),
        Span::Literal(text) => code { (text) },
    } } }
}

fn side(align: Align) -> &'static str {
    match align {
        Align::Left => "words",
        Align::Right => "number",
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "pass",
        Verdict::Inconclusive => "inconclusive",
        Verdict::Unproven => "unproven",
        Verdict::NotRun => "notrun",
        Verdict::Fail => "fail",
    }
}

/// Width and height of a strip in CSS pixels.
const STRIP: (f64, f64) = (176.0, 20.0);

fn strip(plot: &Plot) -> Markup {
    let (width, height) = STRIP;
    let middle = height / 2.0;
    // Tenths of a pixel: finer is not seen, and shorter files are the same on every machine.
    let x = |value: f64| format!("{:.1}", plot.place(value) * width);
    let span = |[low, high]: [f64; 2]| {
        format!(
            "{:.1}",
            ((plot.place(high) - plot.place(low)) * width).max(1.0)
        )
    };
    html! {
        svg.strip role="img" aria-label=(plot.words) viewBox={ "0 0 " (width) " " (height) } width=(width) height=(height) {
            title { (plot.words) }
            line.axis x1="0" x2=(width) y1=(middle) y2=(middle) {}
            @if let Some(band) = plot.band {
                rect.band x=(x(band[0])) y="2" width=(span(band)) height=(height - 4.0) rx="2" {}
            }
            @if let Some(interval) = plot.interval {
                rect.interval x=(x(interval[0])) y=(middle - 3.0) width=(span(interval)) height="6" rx="3" {}
            }
            @for limit in &plot.limits { line.limit x1=(x(*limit)) x2=(x(*limit)) y1="0" y2=(height) {} }
            @for repeat in &plot.repeats { circle.dot cx=(x(*repeat)) cy=(middle) r="2.6" {} }
            @if let Some(value) = plot.value {
                line.estimate x1=(x(value)) x2=(x(value)) y1=(middle - 6.0) y2=(middle + 6.0) {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn the_page_needs_nothing_from_elsewhere() {
        let text = page(&Outline::of(&sample::mixed(), Language::En)).into_string();
        for loads in [
            "<script",
            "<link",
            "<img",
            "src=",
            "url(",
            "@import",
            "javascript:",
        ] {
            assert!(!text.contains(loads), "{loads}");
        }
        assert_eq!(text.matches("<svg").count(), text.matches("</svg>").count());
    }

    #[test]
    fn every_figure_with_repeats_has_a_strip_with_a_dot_for_each() {
        let mut report = sample::passing();
        report.checks.truncate(1);
        report.checks[0].figures.truncate(1);
        report.checks[0].references.clear();
        let text = page(&Outline::of(&report, Language::En)).into_string();
        let repeats = report.checks[0].figures[0].repeats.len();
        // Once beside its limit, once among the figures.
        assert_eq!(text.matches("<svg").count(), 2);
        assert_eq!(text.matches("<circle").count(), 2 * repeats);
        assert_eq!(text.matches("class=\"limit\"").count(), 2);
    }

    #[test]
    fn hostile_text_stays_text() {
        let text = page(&Outline::of(&sample::hostile(), Language::Ja)).into_string();
        assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
        assert!(!text.contains("<script"));
    }
}
