//! Prometheus text: what `/metrics` said at one moment.
//!
//! Source: <https://prometheus.io/docs/instrumenting/exposition_formats/> and OpenMetrics 1.0. Full names are matched,
//! never prefixes: `prometheus_client` puts a `_created` gauge with a Unix time beside each counter, and
//! `vllm:iteration_tokens_total` is a histogram whose series end in `_total_bucket`, `_total_sum`, `_total_count`.
//!
//! The text is copied once; names, labels and values are spans into that copy, so a scrape costs a handful of
//! allocations however many series it has.

use std::collections::HashMap;
use std::fmt;

use super::exposition_line::{self, Line};

/// Longest text read, in bytes: a large vLLM scrape has 100 kB; what is longer is cut at a line end and counted as a fault.
pub const TEXT_LIMIT: usize = 64 * 1024 * 1024;

/// Faults that are kept with their line; the rest is only counted.
pub const FAULTS_KEPT: usize = 16;

/// One scrape, parsed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Exposition {
    text: String,
    names: Vec<Name>,
    labels: Vec<LabelSpan>,
    rows: Vec<Row>,
    faults: Vec<Fault>,
    fault_count: u64,
}

/// A stretch of the kept text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Span {
    pub(super) from: u32,
    pub(super) to: u32,
}

#[derive(Debug, Clone, PartialEq)]
struct Name {
    span: Span,
    kind: Option<Kind>,
}

/// A label as two spans.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LabelSpan {
    pub(super) name: Span,
    pub(super) value: Span,
}

#[derive(Debug, Clone, PartialEq)]
struct Row {
    name: u32,
    labels_from: u32,
    labels_to: u32,
    value: f64,
}

/// What a `# TYPE` line declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes both ways.
    Gauge,
    /// Buckets, `_sum` and `_count`.
    Histogram,
    /// Quantiles, `_sum` and `_count`.
    Summary,
    /// Facts in labels, value 1.
    Info,
    /// One series a state, 0 or 1.
    StateSet,
    /// Declared `untyped` or `unknown`.
    Unknown,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Line number, from 1.
    pub line: u32,
    /// What was wrong.
    pub what: &'static str,
    /// The line's first 80 characters, control characters replaced.
    pub excerpt: String,
}

/// One sample of an [`Exposition`].
#[derive(Clone, Copy)]
pub struct Sample<'a> {
    exposition: &'a Exposition,
    row: &'a Row,
}

/// One label of a [`Sample`], unescaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label<'a> {
    /// Name.
    pub name: &'a str,
    /// Value.
    pub value: &'a str,
}

impl Exposition {
    /// Reads a text; lines that cannot be read become faults, the rest counts. Never fails.
    ///
    /// A last line without its newline is dropped as a fault: the answer was cut, and `81` may be the front of `810`.
    pub fn parse(text: &str) -> Exposition {
        let mut parser = Parser::new(text);
        let mut number = 0u32;
        let mut rest = parser.input;
        while !rest.is_empty() {
            number = number.saturating_add(1);
            let Some(end) = memchr::memchr(b'\n', rest.as_bytes()) else {
                if exposition_line::is_end(rest) {
                    break;
                }
                parser.fault(
                    number,
                    "the last line has no newline: the text was cut",
                    rest,
                );
                break;
            };
            let line = rest[..end].strip_suffix('\r').unwrap_or(&rest[..end]);
            rest = &rest[end + 1..];
            if exposition_line::is_end(line) {
                break;
            }
            parser.line(number, line);
        }
        if parser.input.len() < text.len() {
            parser.fault(
                number,
                "the text is longer than 64 MiB: the rest was not read",
                "",
            );
        }
        parser.out
    }

    /// Number of samples.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no sample at all.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Every sample, in the order of the text.
    pub fn samples(&self) -> impl Iterator<Item = Sample<'_>> {
        self.rows.iter().map(|row| Sample {
            exposition: self,
            row,
        })
    }

    /// The samples of one series name, in the order of the text.
    pub fn named<'a>(&'a self, name: &str) -> impl Iterator<Item = Sample<'a>> + use<'a> {
        let id = self.id(name);
        self.rows
            .iter()
            .filter(move |row| Some(row.name) == id)
            .map(move |row| Sample {
                exposition: self,
                row,
            })
    }

    /// Every name that has a sample or a declaration, in the order of first appearance; for suggestions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| self.str(name.span))
    }

    /// What kind a family or one of its series is: `x_total_count` of the histogram `x_total` is a histogram.
    pub fn kind(&self, name: &str) -> Option<Kind> {
        let declared = |name: &str| self.id(name).and_then(|id| self.names[id as usize].kind);
        if let Some(kind) = declared(name) {
            return Some(kind);
        }
        for suffix in ["_bucket", "_sum", "_count"] {
            let base = name.strip_suffix(suffix).and_then(&declared);
            if let Some(kind @ (Kind::Histogram | Kind::Summary)) = base {
                return Some(kind);
            }
        }
        // OpenMetrics declares the family without the suffix that its samples carry.
        for (suffix, of) in [("_total", Kind::Counter), ("_info", Kind::Info)] {
            if name.strip_suffix(suffix).and_then(&declared) == Some(of) {
                return Some(of);
            }
        }
        name.strip_suffix("_created")
            .and_then(declared)
            .map(|_| Kind::Gauge)
    }

    /// The first [`FAULTS_KEPT`] lines that could not be read.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// How many lines could not be read.
    pub fn fault_count(&self) -> u64 {
        self.fault_count
    }

    fn id(&self, name: &str) -> Option<u32> {
        let at = self.names.iter().position(|n| self.str(n.span) == name)?;
        u32::try_from(at).ok()
    }

    fn str(&self, span: Span) -> &str {
        // Spans are made by the parser from this very text.
        self.text
            .get(span.from as usize..span.to as usize)
            .unwrap_or("")
    }
}

impl<'a> Sample<'a> {
    /// Full series name.
    pub fn name(&self) -> &'a str {
        self.exposition
            .str(self.exposition.names[self.row.name as usize].span)
    }

    /// Value; may be NaN or infinite where the server wrote so.
    pub fn value(&self) -> f64 {
        self.row.value
    }

    /// Labels in the order of the text.
    pub fn labels(&self) -> impl Iterator<Item = Label<'a>> + use<'a> {
        let exposition = self.exposition;
        exposition.labels[self.row.labels_from as usize..self.row.labels_to as usize]
            .iter()
            .map(move |l| Label {
                name: exposition.str(l.name),
                value: exposition.str(l.value),
            })
    }

    /// The value of one label.
    pub fn label(&self, name: &str) -> Option<&'a str> {
        self.labels().find(|l| l.name == name).map(|l| l.value)
    }
}

impl fmt::Debug for Sample<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{{", self.name())?;
        for label in self.labels() {
            write!(f, "{}={:?},", label.name, label.value)?;
        }
        write!(f, "}} {}", self.value())
    }
}

/// The state of one reading; `'t` is the given text, so that names can be looked up without a copy.
struct Parser<'t> {
    input: &'t str,
    out: Exposition,
    ids: HashMap<&'t str, u32>,
    last: Option<(&'t str, u32)>,
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Parser<'t> {
        let mut end = text.len().min(TEXT_LIMIT);
        if end < text.len() {
            end = memchr::memrchr(b'\n', &text.as_bytes()[..end]).map_or(0, |at| at + 1);
        }
        let input = &text[..end];
        // vLLM's scrapes have one series in about 110 bytes, comments included, and two or three labels each.
        let guess = input.len() / 110 + 1;
        Parser {
            input,
            out: Exposition {
                text: input.to_owned(),
                rows: Vec::with_capacity(guess),
                labels: Vec::with_capacity(guess * 2),
                ..Exposition::default()
            },
            ids: HashMap::new(),
            last: None,
        }
    }

    fn line(&mut self, number: u32, line: &'t str) {
        match exposition_line::read(line) {
            Ok(Line::Blank) => {}
            Ok(Line::Type { name, kind }) => {
                let id = self.intern(name);
                self.out.names[id as usize].kind = Some(kind);
            }
            Ok(Line::Sample {
                name,
                labels,
                value,
            }) => {
                let from = self.out.labels.len();
                if let Err(what) = self.labels(labels) {
                    self.out.labels.truncate(from);
                    self.fault(number, what, line);
                    return;
                }
                let name = self.intern(name);
                let (from, to) = (from as u32, self.out.labels.len() as u32);
                self.out.rows.push(Row {
                    name,
                    labels_from: from,
                    labels_to: to,
                    value,
                });
            }
            Err(what) => self.fault(number, what, line),
        }
    }

    fn labels(&mut self, mut rest: &'t str) -> Result<(), &'static str> {
        while let Some(next) = exposition_line::label(rest)? {
            let name = self.span(next.name);
            let value = if memchr::memchr(b'\\', next.value.as_bytes()).is_some() {
                let from = self.out.text.len() as u32;
                exposition_line::unescape(next.value, &mut self.out.text);
                Span {
                    from,
                    to: self.out.text.len() as u32,
                }
            } else {
                self.span(next.value)
            };
            self.out.labels.push(LabelSpan { name, value });
            rest = next.rest;
        }
        Ok(())
    }

    fn intern(&mut self, name: &'t str) -> u32 {
        if let Some((last, id)) = self.last
            && last == name
        {
            return id;
        }
        let span = self.span(name);
        let names = &mut self.out.names;
        let id = *self.ids.entry(name).or_insert_with(|| {
            names.push(Name { span, kind: None });
            (names.len() - 1) as u32
        });
        self.last = Some((name, id));
        id
    }

    /// Where a piece of the input stands; the kept text begins with the whole input, so offsets are the same.
    fn span(&self, piece: &str) -> Span {
        let from = (piece.as_ptr() as usize).saturating_sub(self.input.as_ptr() as usize);
        Span {
            from: from as u32,
            to: (from + piece.len()) as u32,
        }
    }

    fn fault(&mut self, line: u32, what: &'static str, text: &str) {
        self.out.fault_count += 1;
        if self.out.faults.len() < FAULTS_KEPT {
            let clean = |c: char| if c.is_control() { '·' } else { c };
            let excerpt = text.chars().take(80).map(clean).collect();
            self.out.faults.push(Fault {
                line,
                what,
                excerpt,
            });
        }
    }
}

#[cfg(test)]
#[path = "exposition_tests.rs"]
mod tests;
