//! Whether the ranks of a seat are alike: the same environment but for what each rank must have of its own, the same code.
//!
//! A fallback on one rank of eight moves every counter that the other seven move. Nothing is said where there is one rank,
//! where the ranks are of different roles, or where they could not be read: a claim of the path or a row of `config` that
//! needs the reading is unproven by itself.

use std::collections::BTreeSet;

use super::finding::Reason;
use super::sample::View;
use super::verdict::Verdict;
use crate::evidence::absence::{Absent, Sighting};
use crate::evidence::environ::RankDifference;
use crate::evidence::libraries::{CodeDifference, LibraryDifference};
use crate::evidence::resident::{Asymmetry, Resident, asymmetry};
use crate::evidence::role::Role;
use crate::evidence::window::{Residents, Window};
use crate::spec::kind::ProofNeed;

/// Differences that are told one by one; the rest is counted.
const TOLD: usize = 3;

/// What differs between the ranks of the boots of these windows, for a case whose figures stand on a path.
pub(super) fn of_windows(view: &View<'_>, windows: &[&Window]) -> Vec<Reason> {
    if view.check.kind.proof() != ProofNeed::Required {
        return Vec::new();
    }
    let boots: BTreeSet<&str> = windows.iter().map(|w| w.boot.as_str()).collect();
    let all = &view.evidence.residents;
    all.iter()
        .filter(|r| boots.contains(r.boot.as_str()))
        .flat_map(reasons)
        .collect()
}

/// What differs between the ranks of one boot; absent unless at least two of one role were read.
///
/// # Errors
/// Why the ranks cannot be compared, and what would help.
pub fn of_boot(residents: &Residents) -> Result<Asymmetry, Absent> {
    let ranks = ranks(residents)?;
    Ok(asymmetry(&ranks))
}

/// The workers of a boot, which must be of one role.
fn ranks(residents: &Residents) -> Result<Vec<&Resident>, Absent> {
    let set = match &residents.set {
        Sighting::Seen { value } => value,
        Sighting::Absent(absent) => return Err(absent.clone()),
    };
    let computing = set.computing();
    let class = |role: Role| match role {
        Role::Worker { .. } => Role::Worker {
            rank: Default::default(),
        },
        other => other,
    };
    let first = computing.first().map(|p| class(p.role));
    if computing.iter().any(|p| Some(class(p.role)) != first) {
        return Err(Absent::new(
            "the processes at the port are of different roles",
            "nothing: only ranks of one role are compared",
        ));
    }
    Ok(computing
        .iter()
        .filter_map(|p| residents.each.iter().find(|r| r.pid == p.pin.pid))
        .collect())
}

fn reasons(residents: &Residents) -> Vec<Reason> {
    let Ok(found) = of_boot(residents) else {
        return Vec::new();
    };
    let name = |pid: u32| {
        let known = residents.each.iter().find(|r| r.pid == pid);
        known.map_or_else(|| format!("process {pid}"), Resident::name)
    };
    let code = found.code.seen().map_or(&[][..], Vec::as_slice);
    let (sure, unsure): (Vec<_>, Vec<_>) = code
        .iter()
        .partition(|d| matches!(d.how, CodeDifference::Content | CodeDifference::Folder));
    let mut reasons = Vec::new();
    reasons.extend(told("ranks.library", Verdict::Fail, &sure, |d| {
        code_text(d, &name)
    }));
    reasons.extend(told(
        "ranks.library-unsure",
        Verdict::Inconclusive,
        &unsure,
        |d| code_text(d, &name),
    ));
    let variables: Vec<_> = found.variables.seen().into_iter().flatten().collect();
    reasons.extend(told(
        "ranks.variable",
        Verdict::Inconclusive,
        &variables,
        |d| variable_text(d, &name),
    ));
    reasons
}

/// One reason for all differences of one sort, the first few by name.
fn told<T>(
    code: &str,
    verdict: Verdict,
    differences: &[&T],
    text: impl Fn(&T) -> String,
) -> Option<Reason> {
    if differences.is_empty() {
        return None;
    }
    let mut told: Vec<String> = differences.iter().take(TOLD).map(|d| text(d)).collect();
    if differences.len() > TOLD {
        told.push(format!("… {} more", differences.len() - TOLD));
    }
    let told = told.join("; ");
    Some(Reason::new(
        code,
        verdict,
        format!("the ranks are not alike: {told}"),
        format!("ランクが揃っていない: {told}"),
    ))
}

fn code_text(difference: &LibraryDifference, name: &impl Fn(u32) -> String) -> String {
    let values = difference.ranks.iter().map(|r| Value {
        pid: r.pid,
        text: r.identity.clone().unwrap_or_else(|| "not mapped".into()),
    });
    format!("library {}: {}", difference.path, apart(values, name))
}

fn variable_text(difference: &RankDifference, name: &impl Fn(u32) -> String) -> String {
    let values = difference.values.iter().map(|v| Value {
        pid: v.pid,
        text: match &v.value {
            Some(value) => format!("`{value}`"),
            None => "not set".into(),
        },
    });
    let apart = apart(values, name);
    format!("variable `{}`: {apart}", difference.name)
}

struct Value {
    pid: u32,
    text: String,
}

/// The first rank's value and the first that differs from it; where both are redacted, that they differ.
fn apart(values: impl Iterator<Item = Value>, name: &impl Fn(u32) -> String) -> String {
    let values: Vec<Value> = values.collect();
    let Some(first) = values.first() else {
        return String::new();
    };
    match values.iter().find(|v| v.text != first.text) {
        Some(other) => format!(
            "{} has {}, {} has {}",
            name(first.pid),
            first.text,
            name(other.pid),
            other.text
        ),
        None => format!("differs from {} on", name(first.pid)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::environ::{Environ, EnvironSource};
    use crate::evidence::libraries::{Holds, Library};
    use crate::evidence::processes::{Pin, Process, ProcessSet};
    use crate::evidence::redaction::EnvVar;
    use crate::evidence::role::Rank;

    fn process(pid: u32, role: Role) -> Process {
        Process {
            pin: Pin {
                boot_id: "b".into(),
                pid,
                start_ticks: 1,
                exe: None,
                comm: "w".into(),
                cmdline: vec![],
            },
            parent: 1,
            role,
        }
    }

    fn resident(pid: u32, env: &[&str], digest: &str) -> Resident {
        Resident {
            pid,
            rank: Some(pid - 100),
            environ: Sighting::Seen {
                value: Environ {
                    source: EnvironSource::Memory {
                        object: "libc".into(),
                    },
                    variables: env.iter().map(|e| EnvVar::parse(e).unwrap()).collect(),
                    cut: false,
                },
            },
            libraries: Sighting::Seen {
                value: vec![Library {
                    path: "/venv/moe.so".into(),
                    device: "fe:00".into(),
                    inode: 7,
                    deleted: false,
                    holds: Holds::Code,
                    bytes: None,
                    sha256: Sighting::Seen {
                        value: digest.into(),
                    },
                    build_id: None,
                }],
            },
            mounts: Sighting::absent("x", "y"),
            packages: Sighting::absent("x", "y"),
        }
    }

    fn residents(roles: [Role; 2], each: Vec<Resident>) -> Residents {
        Residents {
            boot: "b1".into(),
            set: Sighting::Seen {
                value: ProcessSet {
                    owners: vec![100, 101],
                    processes: vec![process(100, roles[0]), process(101, roles[1])],
                    notes: vec![],
                },
            },
            each,
            mounts: Sighting::absent("x", "y"),
        }
    }

    fn worker(tp: u32) -> Role {
        Role::Worker {
            rank: Rank {
                tp: Some(tp),
                ..Rank::default()
            },
        }
    }

    #[test]
    fn another_library_in_one_rank_fails_and_names_both() {
        let found = reasons(&residents(
            [worker(0), worker(1)],
            vec![resident(100, &[], "aa"), resident(101, &[], "bb")],
        ));
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].code.as_str(), found[0].verdict),
            ("ranks.library", Verdict::Fail)
        );
        assert!(
            found[0]
                .text
                .contains("rank 0 (process 100) has /venv/moe.so sha256:aa")
        );
        assert!(
            found[0]
                .text
                .contains("rank 1 (process 101) has /venv/moe.so sha256:bb")
        );
    }

    #[test]
    fn a_variable_of_one_rank_leaves_the_measurement_open_and_secrets_are_not_told() {
        let found = reasons(&residents(
            [worker(0), worker(1)],
            vec![
                resident(100, &["MOE=1", "HF_TOKEN=hf_abcdefghijklmnopqrst"], "aa"),
                resident(101, &["RANK=1", "HF_TOKEN=short"], "aa"),
            ],
        ));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].verdict, Verdict::Inconclusive);
        let text = &found[0].text;
        assert!(text.contains("`MOE`") && text.contains("`1`") && text.contains("not set"));
        assert!(text.contains("`HF_TOKEN`") && !text.contains("hf_abc") && !text.contains("short"));
    }

    #[test]
    fn ranks_that_are_alike_or_of_other_roles_are_no_matter() {
        let alike = vec![
            resident(100, &["RANK=0"], "aa"),
            resident(101, &["RANK=1"], "aa"),
        ];
        assert_eq!(reasons(&residents([worker(0), worker(1)], alike)), vec![]);
        let apart = vec![resident(100, &["A=0"], "aa"), resident(101, &["A=1"], "bb")];
        assert_eq!(
            reasons(&residents([Role::ApiServer, Role::Unknown], apart)),
            vec![]
        );
    }

    #[test]
    fn a_rank_that_could_not_be_read_makes_the_comparison_absent() {
        let mut blank = resident(101, &[], "aa");
        blank.environ = Sighting::absent("no right", "sudo");
        let residents = residents(
            [worker(0), worker(1)],
            vec![resident(100, &[], "aa"), blank],
        );
        assert!(of_boot(&residents).unwrap().variables.seen().is_none());
        assert_eq!(reasons(&residents), vec![]);
    }
}
