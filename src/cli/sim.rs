//! `sekimon sim`.

use std::process::ExitCode;

use clap::Args;

/// Serve the embedded seat.
#[derive(Debug, Args)]
pub(super) struct Sim {}

impl Sim {
    /// Serves.
    pub(super) fn go(self) -> ExitCode {
        ExitCode::from(super::exit::INTERNAL)
    }
}
