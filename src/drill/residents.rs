//! Faults in what lives in the serving processes.

use super::fault::{Injection, Target, done_if};
use crate::evidence::absence::Sighting;
use crate::evidence::body::Evidence;
use crate::evidence::resident::Resident;
use crate::spec::gate::ResidentClaim;

/// The last resident of each boot of the build.
fn last<'e>(evidence: &'e mut Evidence, target: &Target<'_>) -> Vec<&'e mut Resident> {
    let boots: Vec<String> = evidence
        .boots
        .iter()
        .filter(|b| b.build == target.build)
        .map(|b| b.id.clone())
        .collect();
    let computing = |r: &crate::evidence::window::Residents| {
        r.set
            .seen()
            .and_then(|s| s.computing().last().map(|p| p.pin.pid))
    };
    evidence
        .residents
        .iter_mut()
        .filter(|r| boots.contains(&r.boot))
        .filter_map(|r| {
            let pid = computing(r)?;
            r.each.iter_mut().find(|x| x.pid == pid)
        })
        .collect()
}

fn claims<'a>(target: &Target<'a>) -> &'a [ResidentClaim] {
    target.spec().map_or(&[], |p| &p.resident)
}

/// A wanted variable is not set in one worker.
pub(super) fn change_environment(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let wanted = claims(target).iter().find_map(|c| match c {
        ResidentClaim::Env {
            name,
            value: Some(_),
        } => Some(name),
        _ => None,
    });
    let Some(name) = wanted else {
        return Injection::Impossible("the path wants no variable".into());
    };
    let mut changed = false;
    for resident in last(evidence, target) {
        if let Sighting::Seen { value } = &mut resident.environ {
            value.variables.retain(|v| v.name != *name);
            changed = true;
        }
    }
    done_if(changed, "no worker's environment was read")
}

/// A wanted library is not mapped in one worker.
pub(super) fn change_library(evidence: &mut Evidence, target: &Target<'_>) -> Injection {
    let wanted = claims(target).iter().find_map(|c| match c {
        ResidentClaim::Library { name, .. } => Some(name),
        ResidentClaim::Env { .. } => None,
    });
    let Some(name) = wanted else {
        return Injection::Impossible("the path wants no library".into());
    };
    let mut changed = false;
    for resident in last(evidence, target) {
        if let Sighting::Seen { value } = &mut resident.libraries {
            value.retain(|l| !l.path.contains(name.as_str()));
            changed = true;
        }
    }
    done_if(changed, "no worker's libraries were read")
}
