//! The report: one document, one outline, many printers.
//!
//! [`document`] is the truth; [`outline`] says once, in one language, what a person reads and in which order; a printer
//! only lays it out. A new format is one file with one unit struct that implements [`Printer`], and its row in [`PRINTERS`].
//! Whatever came from outside (a log line, a URL, a gate's words) passes [`plain_text`] on its way into the outline.

use document::Report;
use outline::{Language, Outline};

mod ascii;
pub mod assemble;
pub mod document;
mod figure_table;
mod finite;
mod headline;
pub mod html;
pub mod json;
pub mod json_schema;
pub mod junit;
mod limit_line;
pub mod markdown;
pub mod number;
pub mod outline;
pub mod paper;
pub mod phrases;
pub mod plain_text;
mod power_card;
mod proof_table;
mod reason_list;
mod recipe;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod sample_findings;
mod seat_facts;
pub mod strip_plot;
pub mod terminal;
mod verdict_table;
mod window_table;

/// A format of the report.
pub trait Printer: std::fmt::Debug + Sync {
    /// Name (`markdown`).
    fn name(&self) -> &'static str;

    /// Files that it fills in a run's directory, each with its language; none for a printer that only shows.
    fn files(&self) -> &'static [(&'static str, Language)];

    /// The whole text of one file; `outline` is the outline of `report` in the file's language.
    fn print(&self, report: &Report, outline: &Outline) -> String;
}

/// Every printer.
pub static PRINTERS: &[&dyn Printer] = &[
    &json::Json,
    &markdown::Markdown,
    &html::Html,
    &junit::Junit,
    &terminal::Terminal,
];

#[cfg(test)]
mod tests;
