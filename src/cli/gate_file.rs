//! Reading a gate file from disk, with its faults printed where they stand.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use super::{exit, print};
use crate::spec::gate::Gate;
use crate::spec::read::read;

/// A gate file that read well.
#[derive(Debug)]
pub(super) struct GateFile {
    /// The gate.
    pub(super) gate: Gate,
    /// Its file name as given.
    pub(super) name: String,
    /// Its folder.
    pub(super) dir: PathBuf,
}

/// Reads a gate file; on faults they are printed and the exit code is given.
pub(super) fn open(path: &Path) -> Result<GateFile, ExitCode> {
    let source = match std::fs::read_to_string(path) {
        Ok(source) => source,
        Err(cause) => {
            print::message(&format!(
                "error: cannot read the gate file `{}`: {cause}\nhelp: `ls gates/` shows the gates that ship with sekimon",
                path.display()
            ));
            return Err(ExitCode::from(exit::USAGE));
        }
    };
    let name = path
        .file_stem()
        .map_or_else(|| "gate".into(), |s| s.to_string_lossy().into_owned());
    let file = path.display().to_string();
    let gate = parse(&name, &file, &source)?;
    let dir = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
        .to_owned();
    Ok(GateFile {
        gate,
        name: file,
        dir,
    })
}

/// Reads a gate's text; on faults they are printed and the exit code is given.
pub(super) fn parse(name: &str, file: &str, source: &str) -> Result<Gate, ExitCode> {
    let colour = print::colours_on(&std::io::stderr());
    match read(name, file, source, &crate::check::kinds()) {
        Ok(reading) => {
            if !reading.warnings.is_empty() {
                print::message(&reading.warnings.render(colour.into()));
            }
            Ok(reading.gate)
        }
        Err(faults) => {
            print::message(&faults.render(colour.into()));
            Err(ExitCode::from(exit::USAGE))
        }
    }
}
