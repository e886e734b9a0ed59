//! The report: one document, many printers.

pub mod document;
