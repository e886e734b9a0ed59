//! Exit codes.

use std::process::ExitCode;

use crate::judge::verdict::Verdict;
use crate::report::document::Report;

/// Usage or gate file fault; nothing measured. clap uses the same.
pub(super) const USAGE: u8 = 2;
/// No check ran.
pub(super) const NOTHING_RAN: u8 = 4;
/// The seat is unreachable, or not the one asked for.
pub(super) const UNREACHABLE: u8 = 5;
/// A baseline is missing or not comparable.
pub(super) const BASELINE: u8 = 6;
/// Something of ours broke.
pub(super) const INTERNAL: u8 = 70;

/// The code of a report, in the order FAIL, seat unreachable, nothing ran, the rest.
pub(super) fn of(report: &Report, seat_lost: bool) -> ExitCode {
    ExitCode::from(code(report, seat_lost))
}

fn code(report: &Report, seat_lost: bool) -> u8 {
    let ran = report.checks.iter().any(|f| f.verdict != Verdict::NotRun);
    match report.verdict {
        Verdict::Fail => 1,
        _ if seat_lost => UNREACHABLE,
        _ if !ran => NOTHING_RAN,
        Verdict::Pass => 0,
        _ if only_baselines(report) => BASELINE,
        Verdict::Inconclusive | Verdict::Unproven | Verdict::NotRun => 3,
    }
}

/// Whether all that is missing is something to compare with.
fn only_baselines(report: &Report) -> bool {
    let mut open = report
        .checks
        .iter()
        .flat_map(|f| &f.reasons)
        .filter(|r| r.verdict != Verdict::Pass)
        .peekable();
    open.peek().is_some() && open.all(|r| r.code == "limit.absent")
}
