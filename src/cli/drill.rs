//! `sekimon drill`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use comfy_table::{ContentArrangement, LineStyle, Table, TableStyle};

use super::{exit, gate_file, print, run};
use crate::archive::reading;
use crate::archive::rundir::RunDir;
use crate::drill::{Fate, KillTable, drill};

/// Knock out each proof, inject each fault, and see which checks fall.
#[derive(Debug, Args)]
pub(super) struct Drill {
    /// Gate file.
    gate: PathBuf,
    /// Drill on the evidence of this run instead of running the gate first.
    #[arg(long, value_name = "RUN")]
    run: Option<PathBuf>,
    /// Every fault and case on a line of its own, as JSON.
    #[arg(long)]
    json: bool,
}

impl Drill {
    /// Drills the gate.
    pub(super) fn go(self) -> ExitCode {
        let file = match gate_file::open(&self.gate) {
            Ok(file) => file,
            Err(code) => return code,
        };
        let dir = match self.run {
            Some(run) => RunDir::open(run),
            None => match run::run_quietly(&self.gate) {
                Ok(dir) => dir,
                Err(code) => return code,
            },
        };
        let run = match reading::read(&dir) {
            Ok(run) => run,
            Err(cause) => {
                print::message(&format!("error: {cause}"));
                return ExitCode::from(exit::USAGE);
            }
        };
        let table = drill(&file.gate, &run, &crate::check::concludes);
        print::data(&if self.json {
            json(&table)
        } else {
            text(&table)
        });
        if table.rows.is_empty() {
            print::message("error: no case passes on this evidence, so nothing could be drilled");
            return ExitCode::from(exit::NOTHING_RAN);
        }
        ExitCode::from(u8::from(table.survivors().count() > 0))
    }
}

/// One row a fault: how many cases fell, by which verdict, and which stand.
fn text(table: &KillTable) -> String {
    let mut print = Table::new();
    let rule = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    print
        .load_style(rule)
        .set_content_arrangement(ContentArrangement::Dynamic);
    print.set_header(["fault", "killed", "by", "survived", "not simulated"]);
    let mut names: Vec<&str> = Vec::new();
    for row in &table.rows {
        if !names.contains(&row.fault) {
            names.push(row.fault);
        }
    }
    for name in names {
        let rows: Vec<_> = table.rows.iter().filter(|r| r.fault == name).collect();
        let mut by: Vec<String> = Vec::new();
        let (mut killed, mut simulated) = (0, 0);
        let mut survived: Vec<&str> = Vec::new();
        let mut why = "";
        for row in &rows {
            match &row.fate {
                Fate::Killed(verdict, code) => {
                    killed += 1;
                    simulated += 1;
                    let word = format!("{} {code}", verdict.word());
                    if !by.contains(&word) {
                        by.push(word);
                    }
                }
                Fate::Survived => {
                    simulated += 1;
                    survived.push(&row.case);
                }
                Fate::NotSimulated(reason) => why = reason,
            }
        }
        print.add_row([
            name.to_owned(),
            format!("{killed} of {simulated}"),
            by.join(", "),
            survived.join(", "),
            why.to_owned(),
        ]);
    }
    let mut text = format!("{print}\n");
    if !table.already_down.is_empty() {
        text.push_str(&format!(
            "not drilled, they do not pass as it is: {}\n",
            table.already_down.join(", ")
        ));
    }
    for row in table.survivors() {
        text.push_str(&format!(
            "survivor: `{}` still passes under `{}`\n",
            row.case, row.fault
        ));
    }
    text.push_str(&format!("survivors: {}\n", table.survivors().count()));
    text
}

fn json(table: &KillTable) -> String {
    let rows: Vec<serde_json::Value> = table
        .rows
        .iter()
        .map(|row| {
            let (fate, detail) = match &row.fate {
                Fate::Killed(verdict, code) => ("killed", format!("{} {code}", verdict.word())),
                Fate::Survived => ("survived", String::new()),
                Fate::NotSimulated(why) => ("not_simulated", why.clone()),
            };
            serde_json::json!({"fault": row.fault, "case": row.case, "fate": fate, "detail": detail})
        })
        .collect();
    let all = serde_json::json!({
        "rows": rows, "already_down": table.already_down, "survivors": table.survivors().count()
    });
    let mut text = serde_json::to_string_pretty(&all).unwrap_or_default();
    text.push('\n');
    text
}
