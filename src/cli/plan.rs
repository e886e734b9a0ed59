//! `sekimon plan`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use super::{gate_file, print};
use crate::plan::{self, Step, notes};

/// Show what a run would do.
#[derive(Debug, Args)]
pub(super) struct Plan {
    /// Gate file.
    gate: PathBuf,
    /// Every window on a line of its own.
    #[arg(long)]
    windows: bool,
}

impl Plan {
    /// Prints the plan.
    pub(super) fn go(self) -> ExitCode {
        let file = match gate_file::open(&self.gate) {
            Ok(file) => file,
            Err(code) => return code,
        };
        let plan = plan::Plan::of(&file.gate, &crate::check::planned);
        let mut text = head(&file.gate, &plan);
        steps(&mut text, &plan, self.windows);
        for note in notes::of(&file.gate, &plan) {
            let _ = writeln!(text, "{}:{}: {}", file.name, note.line, note.text);
        }
        print::data(&text);
        ExitCode::SUCCESS
    }
}

fn head(gate: &crate::spec::gate::Gate, plan: &plan::Plan) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{} — {}", gate.name, gate.title);
    let _ = writeln!(
        text,
        "{} checks, {} cases, {} windows, {} boots; about {} of measuring (assuming 60 tok/s a stream and 1,400 tok/s of prefill) and the boots",
        gate.checks.len(),
        plan.cases.len(),
        plan.windows().count(),
        plan.boots(),
        crate::report::number::duration(plan.expected_seconds()),
    );
    text
}

fn steps(text: &mut String, plan: &plan::Plan, each: bool) {
    let mut open: Vec<&str> = Vec::new();
    let mut pending: Vec<&plan::PlannedWindow> = Vec::new();
    for step in &plan.steps {
        match step {
            Step::Window(window) => pending.push(window),
            Step::Boot(build) => {
                flush(text, plan, &mut pending, each);
                open.push(build);
                let _ = writeln!(text, "boot {build}");
            }
            Step::Extend(builds) => {
                flush(text, plan, &mut pending, each);
                let _ = writeln!(
                    text,
                    "  what is still open on {} goes on to its next look",
                    builds.join(", ")
                );
            }
            Step::Stop(build) => {
                flush(text, plan, &mut pending, each);
                open.retain(|b| b != build);
                let _ = writeln!(text, "stop {build}");
            }
        }
    }
    flush(text, plan, &mut pending, each);
    for build in open {
        let _ = writeln!(text, "{build} stays at the seat");
    }
}

fn flush(
    text: &mut String,
    plan: &plan::Plan,
    pending: &mut Vec<&plan::PlannedWindow>,
    each: bool,
) {
    if each {
        for window in pending.drain(..) {
            let _ = writeln!(
                text,
                "  {:>4}  {:<28} {:<12} {:<10} {}",
                window.id,
                plan.cases[window.case].id,
                window.build,
                window.part,
                window.task.describe()
            );
        }
        return;
    }
    let mut rows: Vec<(String, usize, f64)> = Vec::new();
    for window in pending.drain(..) {
        let name = format!(
            "{:<28} {:<12} {}",
            plan.cases[window.case].id,
            window.build,
            window.task.describe()
        );
        let seconds = window.task.expected_seconds();
        match rows.iter_mut().find(|r| r.0 == name) {
            Some(row) => {
                row.1 += 1;
                row.2 += seconds;
            }
            None => rows.push((name, 1, seconds)),
        }
    }
    for (name, times, seconds) in rows {
        let _ = writeln!(
            text,
            "  {times:>3} × {name}  ~{}",
            crate::report::number::duration(seconds)
        );
    }
}
