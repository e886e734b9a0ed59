//! `sekimon pack`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::{exit, print};
use crate::witness::pack::manifest_of;

/// Model packs on disk.
#[derive(Debug, Args)]
pub(super) struct Pack {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write the manifest of a pack on standard output: sizes, digests, links.
    Manifest {
        /// Folder of the pack.
        dir: PathBuf,
    },
}

impl Pack {
    /// Does it.
    pub(super) fn go(self) -> ExitCode {
        let Command::Manifest { dir } = self.command;
        match manifest_of(&dir) {
            Ok(manifest) => {
                let mut text = serde_json::to_string_pretty(&manifest).unwrap_or_default();
                text.push('\n');
                print::data(&text);
                ExitCode::SUCCESS
            }
            Err(absent) => {
                print::message(&format!("error: {}\nhelp: {}", absent.why, absent.mend));
                ExitCode::from(exit::USAGE)
            }
        }
    }
}
