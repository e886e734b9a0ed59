//! `sekimon schema`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::print;

/// Print a JSON Schema.
#[derive(Debug, Args)]
pub(super) struct Schema {
    /// Of which document.
    #[arg(value_enum)]
    document: Document,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Document {
    /// The gate file.
    Gate,
    /// `report.json`.
    Report,
}

impl Schema {
    /// Prints it.
    pub(super) fn go(self) -> ExitCode {
        let schema = match self.document {
            Document::Gate => crate::spec::schema::schema(&crate::check::kinds()),
            Document::Report => crate::report::json_schema::schema(),
        };
        let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
        text.push('\n');
        print::data(&text);
        ExitCode::SUCCESS
    }
}
