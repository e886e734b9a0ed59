//! Faults of a gate file: all at once, each at its place, with what would mend it.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// A fault, or a warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Bytes of the file that are at fault.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What stands there, in a few words, under the caret.
    pub label: String,
    /// How to mend it.
    pub help: Option<String>,
    /// How bad it is.
    pub severity: Severity,
}

/// How bad a fault is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The gate is refused.
    Error,
    /// The gate is taken.
    Warning,
}

/// Whether messages are coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// ANSI colours.
    Ansi,
    /// None.
    Plain,
}

impl From<bool> for Colour {
    fn from(on: bool) -> Self {
        if on { Self::Ansi } else { Self::Plain }
    }
}

/// The faults of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    /// File name for messages.
    pub file: String,
    /// The file's text.
    pub source: String,
    /// The faults, in the order of the file.
    pub list: Vec<Fault>,
}

impl Faults {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Without colour.
    pub fn plain(&self) -> String {
        self.render(Colour::Plain)
    }

    /// Every fault with its line and caret.
    pub fn render(&self, colour: Colour) -> String {
        let renderer = match colour {
            Colour::Ansi => Renderer::styled(),
            Colour::Plain => Renderer::plain(),
        };
        // A gate file may hold terminal codes; they are shown as what they are, byte for byte as long.
        let source = shown(&self.source);
        let mut text = String::new();
        for fault in &self.list {
            let level = match fault.severity {
                Severity::Error => Level::ERROR,
                Severity::Warning => Level::WARNING,
            };
            let snippet = Snippet::source(source.as_str())
                .path(&self.file)
                .annotation(
                    AnnotationKind::Primary
                        .span(fault.span.clone())
                        .label(&fault.label),
                );
            let mut group = level.primary_title(&fault.message).element(snippet);
            if let Some(help) = &fault.help {
                group = group.element(Level::HELP.message(help));
            }
            text.push_str(&renderer.render(&[group]));
            text.push_str("\n\n");
        }
        let errors = self
            .list
            .iter()
            .filter(|f| f.severity == Severity::Error)
            .count();
        if errors > 0 {
            let word = if errors == 1 { "fault" } else { "faults" };
            text.push_str(&format!(
                "{errors} {word} in {}; nothing was measured",
                self.file
            ));
        }
        text.trim_end().to_owned()
    }
}

/// The text with control characters other than line ends and tabs replaced by as many question marks as they have bytes.
fn shown(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let hidden = c.is_control() && c != '\n' && c != '\t' && c != '\r';
            let times = if hidden { c.len_utf8() } else { 1 };
            std::iter::repeat_n(if hidden { '?' } else { c }, times)
        })
        .collect()
}

/// Line of a byte in a text, from 1.
pub fn line_of(source: &str, byte: usize) -> usize {
    source
        .as_bytes()
        .iter()
        .take(byte)
        .filter(|b| **b == b'\n')
        .count()
        + 1
}
