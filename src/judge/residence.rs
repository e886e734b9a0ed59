//! What must live in the serving processes: mapped libraries and live environment of every worker.

use super::finding::{ProofItem, Tier};
use super::sample::View;
use crate::evidence::absence::Sighting;
use crate::evidence::environ::EnvLookup;
use crate::evidence::libraries::named;
use crate::evidence::processes::Process;
use crate::evidence::resident::Resident;
use crate::evidence::role::Role;
use crate::evidence::window::{Residents, Window};
use crate::spec::gate::ResidentClaim;

/// One claim on the processes of a window's boot.
pub(super) fn resident(view: &View<'_>, claim: &ResidentClaim, window: &Window) -> ProofItem {
    let mut item = ProofItem {
        tier: Tier::Resident,
        source: format!(
            "{} of the processes of boot {}",
            subject(claim),
            window.boot
        ),
        expected: expected(claim),
        seen: String::new(),
        ok: None,
        ranks: Vec::new(),
        windows: vec![window.id.clone()],
        example: None,
    };
    let Some(residents) = view
        .evidence
        .residents
        .iter()
        .find(|r| r.boot == window.boot)
    else {
        item.seen = "absent: the processes of this seat were not looked into".into();
        return item;
    };
    let workers = match workers(residents) {
        Ok(workers) => workers,
        Err(why) => {
            item.seen = format!("absent: {why}");
            return item;
        }
    };
    let looks: Vec<Look> = workers
        .iter()
        .map(|(process, resident)| look(claim, process, resident))
        .collect();
    (item.ok, item.seen) = verdict(&looks);
    item.ranks = looks
        .iter()
        .filter(|l| l.ok == Some(true))
        .filter_map(|l| l.rank)
        .collect();
    item
}

fn subject(claim: &ResidentClaim) -> &'static str {
    match claim {
        ResidentClaim::Library { .. } => "mapped libraries",
        ResidentClaim::Env { .. } => "live environment",
    }
}

fn expected(claim: &ResidentClaim) -> String {
    match claim {
        ResidentClaim::Library {
            name,
            sha256: Some(sha256),
        } => {
            format!("`{name}` with SHA-256 {sha256} in every worker")
        }
        ResidentClaim::Library { name, sha256: None } => {
            format!("`{name}` in every worker, the same file in each")
        }
        ResidentClaim::Env {
            name,
            value: Some(value),
        } => format!("{name}={value} in every worker"),
        ResidentClaim::Env { name, value: None } => format!("{name} set in no worker"),
    }
}

/// The processes that compute; all of them where none is known to.
fn workers(residents: &Residents) -> Result<Vec<(&Process, &Resident)>, String> {
    let set = match &residents.set {
        Sighting::Seen { value } => value,
        Sighting::Absent(absent) => return Err(format!("{}; {}", absent.why, absent.mend)),
    };
    let computing = set.computing();
    let pairs: Vec<_> = computing
        .into_iter()
        .filter_map(|p| Some((p, residents.each.iter().find(|r| r.pid == p.pin.pid)?)))
        .collect();
    if pairs.is_empty() {
        Err("no worker process was found at the seat's port".into())
    } else {
        Ok(pairs)
    }
}

/// What one worker says to a claim.
struct Look {
    pid: u32,
    rank: Option<u32>,
    ok: Option<bool>,
    says: String,
    identity: Option<String>,
}

fn look(claim: &ResidentClaim, process: &Process, resident: &Resident) -> Look {
    let (ok, says, identity) = match claim {
        ResidentClaim::Env { name, value } => env(resident, name, value.as_deref()),
        ResidentClaim::Library { name, sha256 } => library(resident, name, sha256.as_deref()),
    };
    let titled = match process.role {
        Role::Worker { rank } => rank.tp,
        _ => None,
    };
    Look {
        pid: process.pin.pid,
        rank: resident.rank.or(titled),
        ok,
        says,
        identity,
    }
}

type Said = (Option<bool>, String, Option<String>);

fn env(resident: &Resident, name: &str, value: Option<&str>) -> Said {
    let environ = match &resident.environ {
        Sighting::Seen { value } => value,
        Sighting::Absent(absent) => {
            return (
                None,
                format!("absent: {}; {}", absent.why, absent.mend),
                None,
            );
        }
    };
    match (environ.get(name), value) {
        (EnvLookup::Set(found), Some(want)) => match found.text() {
            Some(text) => (
                Some(text == want),
                format!("{name}={text}"),
                Some(text.into()),
            ),
            None => (None, format!("{name} is set, its value is redacted"), None),
        },
        (EnvLookup::Set(_), None) => (Some(false), format!("{name} is set"), None),
        (EnvLookup::Unset, Some(_)) => (Some(false), format!("{name} is not set"), None),
        (EnvLookup::Unset, None) => (Some(true), format!("{name} is not set"), None),
        (EnvLookup::Unknown(why), _) => (None, format!("absent: {why}"), None),
    }
}

fn library(resident: &Resident, name: &str, sha256: Option<&str>) -> Said {
    let libraries = match &resident.libraries {
        Sighting::Seen { value } => value,
        Sighting::Absent(absent) => {
            return (
                None,
                format!("absent: {}; {}", absent.why, absent.mend),
                None,
            );
        }
    };
    let Some(found) = named(libraries, name).into_iter().next() else {
        return (Some(false), format!("`{name}` is not mapped"), None);
    };
    let digest = found.sha256.seen().cloned();
    let identity = Some(found.identity());
    let says = format!("{} ({})", found.path, found.identity());
    match (sha256, digest) {
        _ if found.deleted => (
            Some(false),
            format!("{} was replaced on disk after it was loaded", found.path),
            identity,
        ),
        (None, _) => (Some(true), says, identity),
        (Some(want), Some(got)) => (Some(want == got), says, identity),
        (Some(_), None) => (
            None,
            format!("{says}: its digest could not be read"),
            identity,
        ),
    }
}

/// All workers together: one that contradicts refutes, one that cannot be read leaves it open, and two that hold
/// different things refute.
fn verdict(looks: &[Look]) -> (Option<bool>, String) {
    if let Some(bad) = looks.iter().find(|l| l.ok == Some(false)) {
        return (Some(false), format!("process {}: {}", bad.pid, bad.says));
    }
    if let Some(unread) = looks.iter().find(|l| l.ok.is_none()) {
        return (None, format!("process {}: {}", unread.pid, unread.says));
    }
    let first = looks.first();
    if let Some(odd) = looks
        .iter()
        .find(|l| l.identity != first.and_then(|f| f.identity.clone()))
    {
        return (
            Some(false),
            format!("process {} differs from the others: {}", odd.pid, odd.says),
        );
    }
    let says = first.map(|f| f.says.clone()).unwrap_or_default();
    (
        Some(true),
        format!("{} of {} workers: {says}", looks.len(), looks.len()),
    )
}
