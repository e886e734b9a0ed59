//! Faults of a gate file: all at once, each at its place, with what would mend it.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use serde_json::{Value, json};

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

/// Label of a fault whose place holds a secret: what stands there is never printed.
pub(super) const SECRET: &str = "a secret in a gate file";

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
        let (source, file) = (self.printable(), one_line(&self.file));
        let mut text = String::new();
        for fault in &self.list {
            let level = match fault.severity {
                Severity::Error => Level::ERROR,
                Severity::Warning => Level::WARNING,
            };
            let (message, label) = (one_line(&fault.message), one_line(&fault.label));
            let snippet = Snippet::source(source.as_str()).path(&file).annotation(
                AnnotationKind::Primary
                    .span(within(&source, &fault.span))
                    .label(&label),
            );
            let help = fault.help.as_deref().map(one_line);
            let mut group = level.primary_title(&message).element(snippet);
            if let Some(help) = &help {
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
            text.push_str(&format!("{errors} {word} in {file}; nothing was measured"));
        }
        text.trim_end().to_owned()
    }

    /// For scripts: `[{"file", "severity", "message", "label", "help", "line", "column", "start", "end"}]`; line and column from 1,
    /// column in characters, start and end in bytes.
    pub fn to_json(&self) -> Value {
        let rows = self.list.iter().map(|fault| {
            let start = fault.span.start.min(self.source.len());
            json!({
                "file": self.file,
                "severity": match fault.severity {
                    Severity::Error => "error",
                    Severity::Warning => "warning",
                },
                "message": fault.message,
                "label": fault.label,
                "help": fault.help,
                "line": line_of(&self.source, start),
                "column": column_of(&self.source, start),
                "start": fault.span.start,
                "end": fault.span.end,
            })
        });
        Value::Array(rows.collect())
    }

    /// The source as a terminal may see it, byte for byte as long: no terminal codes, no secrets.
    fn printable(&self) -> String {
        let mut bytes = shown(&self.source).into_bytes();
        for secret in self.list.iter().filter(|f| f.label == SECRET) {
            let span = secret.span.start..secret.span.end.min(bytes.len());
            for byte in bytes.get_mut(span).unwrap_or_default() {
                if !b"\"'\r\n".contains(byte) {
                    *byte = b'*';
                }
            }
        }
        // Only whole values are masked, so no character is cut.
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// A span that lies in the text, on its characters.
fn within(text: &str, span: &Range<usize>) -> Range<usize> {
    let mut start = span.start.min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut end = span.end.clamp(start, text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    start..end
}

/// Whether a character steers a terminal or turns the reading order instead of being seen.
fn steers(c: char) -> bool {
    let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || turns
}

/// The text with characters that steer replaced by as many question marks as they have bytes; line ends and tabs stay.
fn shown(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut all = text.chars().peekable();
    while let Some(c) = all.next() {
        // A return that ends no line would let the rest of the line overwrite its front.
        let line_end = c == '\n' || c == '\r' && all.peek() == Some(&'\n');
        if steers(c) && !line_end && c != '\t' {
            shown.extend(std::iter::repeat_n('?', c.len_utf8()));
        } else {
            shown.push(c);
        }
    }
    shown
}

/// A message on one line: what steers is written out as an escape.
fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// Column of a byte in its line, in characters from 1.
fn column_of(source: &str, byte: usize) -> usize {
    let start = within(source, &(byte..byte)).start;
    let front = source.get(..start).unwrap_or_default();
    let line = front.rsplit('\n').next().unwrap_or_default();
    line.chars().count() + 1
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
