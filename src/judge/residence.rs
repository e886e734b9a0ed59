//! What must live in the serving processes: mapped libraries and live environment.

use super::finding::{ProofItem, Tier};
use super::sample::View;
use crate::evidence::window::Window;
use crate::spec::gate::ResidentClaim;

/// One claim on the processes of a window.
pub(super) fn resident(_view: &View<'_>, claim: &ResidentClaim, window: &Window) -> ProofItem {
    let (source, expected) = match claim {
        ResidentClaim::Library { name, sha256 } => (
            format!("mapped libraries of the processes of boot {}", window.boot),
            match sha256 {
                Some(sha256) => format!("`{name}` with SHA-256 {sha256}"),
                None => format!("`{name}`"),
            },
        ),
        ResidentClaim::Env { name, value } => (
            format!("live environment of the processes of boot {}", window.boot),
            match value {
                Some(value) => format!("{name}={value}"),
                None => format!("{name} not set"),
            },
        ),
    };
    ProofItem {
        tier: Tier::Resident,
        source,
        expected,
        seen: "absent: the processes of this seat were not seen".into(),
        ok: None,
        ranks: Vec::new(),
        windows: vec![window.id.clone()],
        example: None,
    }
}
