//! `sekimon judge`, and what `run` shares with it: judging a run directory and writing its reports.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::gate_file::GateFile;
use super::{exit, gate_file, print};
use crate::archive::reading;
use crate::archive::rundir::{ArchiveError, RunDir};
use crate::judge::looks;
use crate::plan::Case;
use crate::plan::order::Undecided;
use crate::report::assemble::assemble;
use crate::report::document::Report;
use crate::report::outline::{Language, Outline};
use crate::report::{PRINTERS, json, terminal};

/// Judge a recorded run again.
#[derive(Debug, Args)]
pub(super) struct Judge {
    /// Run directory.
    run: PathBuf,
    /// Judge by this gate file instead of the one that was in effect; the run's own reports stay as they are.
    #[arg(long, value_name = "FILE")]
    gate: Option<PathBuf>,
    /// Language of the terminal report.
    #[arg(long, value_enum, default_value_t = Tongue::En)]
    language: Tongue,
    /// Print `report.json` on standard output instead of the table.
    #[arg(long)]
    json: bool,
}

/// A language by its short name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Tongue {
    /// English.
    En,
    /// Japanese.
    Ja,
}

impl Tongue {
    /// As the report knows it.
    pub(super) fn language(self) -> Language {
        match self {
            Self::En => Language::En,
            Self::Ja => Language::Ja,
        }
    }
}

impl Judge {
    /// Judges the run.
    pub(super) fn go(self) -> ExitCode {
        let dir = RunDir::open(self.run);
        let judged = match &self.gate {
            None => judge_and_write(&dir),
            Some(gate) => gate_file::open(gate).and_then(|file| {
                let run = reading::read(&dir).map_err(refuse)?;
                Ok(assemble(&file.gate, &run, &crate::check::concludes))
            }),
        };
        match judged {
            Ok(report) => {
                show(&report, &dir, self.language.language(), self.json);
                exit::of(&report, false)
            }
            Err(code) => code,
        }
    }
}

fn refuse(cause: ArchiveError) -> ExitCode {
    print::message(&format!("error: {cause}"));
    ExitCode::from(exit::USAGE)
}

/// Judges a run directory by the gate in it and writes every report into it.
pub(super) fn judge_and_write(dir: &RunDir) -> Result<Report, ExitCode> {
    let run = reading::read(dir).map_err(refuse)?;
    let gate = gate_file::parse(&run.start.gate, &run.start.gate_file, &run.gate_source)?;
    let report = assemble(&gate, &run, &crate::check::concludes);
    write(dir, &report).map_err(|cause| {
        print::message(&format!("error: {cause}"));
        ExitCode::from(exit::INTERNAL)
    })?;
    Ok(report)
}

/// The cases of a run that is still going on which more repeats could settle; none where its evidence does not read, which
/// the end of the run will tell.
pub(super) fn undecided(file: &GateFile, dir: &RunDir) -> Vec<Undecided> {
    let Ok(run) = reading::read(dir) else {
        return Vec::new();
    };
    let report = assemble(&file.gate, &run, &crate::check::concludes);
    let made = |case: &Case, build: &str| {
        let repeats: BTreeSet<u32> = run
            .evidence
            .windows
            .iter()
            .filter(|w| w.case == case.id && w.build == build && w.part == "measure")
            .map(|w| w.repeat)
            .collect();
        u32::try_from(repeats.len()).unwrap_or(u32::MAX)
    };
    looks::undecided(&file.gate, &report.checks, &made, run.start.earlier_runs)
}

fn write(dir: &RunDir, report: &Report) -> Result<(), ArchiveError> {
    for printer in PRINTERS {
        for (name, language) in printer.files() {
            let outline = Outline::of(report, *language);
            dir.write(name, printer.print(report, &outline).as_bytes())?;
        }
    }
    Ok(())
}

/// Shows a report on standard output.
pub(super) fn show(report: &Report, dir: &RunDir, language: Language, as_json: bool) {
    if as_json {
        print::data(&json::bytes(report));
        return;
    }
    let out = std::io::stdout();
    let width = terminal::Width::of(out.is_terminal());
    let colour = print::colours_on(&out).into();
    print::data(&terminal::render(
        &Outline::of(report, language),
        width,
        colour,
    ));
    print::message(&format!("reports and evidence: {}", dir.root().display()));
}
