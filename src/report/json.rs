//! `report.json`: the document itself, in bytes that are the same for the same report.

use super::Printer;
use super::document::Report;
use super::finite;
use super::outline::{Language, Outline};
use super::plain_text::is_deceptive;

/// Prints `report.json`.
#[derive(Debug)]
pub struct Json;

impl Printer for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn files(&self) -> &'static [(&'static str, Language)] {
        &[("report.json", Language::En)]
    }

    fn print(&self, report: &Report, _outline: &Outline) -> String {
        bytes(report)
    }
}

/// The canonical text: keys in the order of the document, two spaces, finite numbers only, a newline at the end.
///
/// Characters that hide or reorder others are escaped: the same string to a parser, harmless to a terminal.
pub fn bytes(report: &Report) -> String {
    let text = serde_json::to_string_pretty(&finite::only(report))
        .expect("a report has string keys and no number that JSON cannot write");
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        // Below U+0020 serde_json has escaped what stands in strings, and newlines of the layout stay.
        if (c.is_control() && c != '\n') || is_deceptive(c) {
            let mut units = [0u16; 2];
            for unit in c.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;

    #[test]
    fn what_is_written_reads_back_the_same() {
        let report = sample::mixed();
        let back: Report = serde_json::from_str(&bytes(&report)).unwrap();
        assert_eq!(back, report);
        assert_eq!(bytes(&back), bytes(&report));
    }

    #[test]
    fn no_character_of_a_log_line_reaches_a_terminal_raw() {
        let text = bytes(&sample::hostile());
        assert!(text.contains("\\u001b") && text.contains("\\u202e"));
        assert!(!text.chars().any(|c| (c.is_control() && c != '\n') || is_deceptive(c)));
        let back: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(back, sample::hostile());
    }
}
