//! `sekimon kinds`.

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;

use super::print;
use crate::dialect::DIALECTS;
use crate::spec::kind::ProofNeed;

/// Print the table of checks.
#[derive(Debug, Args)]
pub(super) struct Kinds {
    /// Only this kind.
    kind: Option<String>,
}

impl Kinds {
    /// Prints it.
    pub(super) fn go(self) -> ExitCode {
        let mut text = String::new();
        for kind in crate::check::KINDS
            .iter()
            .filter(|k| self.kind.as_ref().is_none_or(|n| n == k.name()))
        {
            let need = match kind.proof() {
                ProofNeed::Required => "needs a path",
                ProofNeed::None => "needs no path",
            };
            let _ = writeln!(
                text,
                "{}  ({need}, {} repeats)\n  {}",
                kind.name(),
                kind.default_repeats(),
                kind.about()
            );
            for key in kind.keys() {
                let _ = writeln!(text, "    {:<12} {}", key.name, key.about);
            }
            for figure in kind.figures() {
                let unit = if figure.unit.is_empty() {
                    "–"
                } else {
                    figure.unit
                };
                let _ = writeln!(
                    text,
                    "    → {:<22} {:<12} {}",
                    figure.name, unit, figure.about
                );
            }
            text.push('\n');
        }
        let dialects: Vec<String> = DIALECTS
            .iter()
            .map(|d| format!("{} ({})", d.id, d.name))
            .collect();
        let _ = writeln!(text, "dialects: {}", dialects.join(", "));
        print::data(&text);
        ExitCode::SUCCESS
    }
}
