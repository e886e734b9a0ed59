//! The processes of a seat on this host: pinned around each window, looked into once a boot.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::evidence::absence::Sighting;
use crate::evidence::processes::{Pins, ProcessSet};
use crate::evidence::window::Residents;
use crate::spec::gate::{Gate, ResidentClaim};
use crate::spec::kind::Read as _;
use crate::witness::libraries::{HashBudget, Hashed, LibraryReader};
use crate::witness::processes;
use crate::witness::resident::{self, Wanted};

/// The seat's address, if it is on this host.
fn address(url: &str) -> Option<SocketAddr> {
    let rest = url.split("://").nth(1)?;
    let authority = rest.split('/').next()?;
    let (host, port) = authority.rsplit_once(':').unwrap_or((
        authority,
        if url.starts_with("https") {
            "443"
        } else {
            "80"
        },
    ));
    let ip = match host.trim_matches(['[', ']']) {
        "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        other => other.parse().ok()?,
    };
    ip.is_loopback()
        .then_some(SocketAddr::new(ip, port.parse().ok()?))
}

fn set(url: &str) -> Sighting<ProcessSet> {
    match address(url) {
        Some(address) => processes::at_port(address),
        None => Sighting::absent(
            format!("the seat at {url} is not on this host"),
            "run sekimon on the seat's host and name it by 127.0.0.1",
        ),
    }
}

/// The processes at the seat's port now.
pub(super) fn pins(url: &str) -> Sighting<Pins> {
    match set(url) {
        Sighting::Seen { value } => Sighting::Seen {
            value: value.pins(),
        },
        Sighting::Absent(absent) => Sighting::Absent(absent),
    }
}

/// Packages that are compared with their RECORD though nobody names them: the servers and kernels that get patched by
/// hand. PyTorch is left out (2 GB, 10 s); a gate names it where it wants it.
const WATCHED: &[&str] = &["vllm", "sglang", "exllamav3", "vllm-exl3"];

/// Looks into every process at the seat's port that runs the model: live environment, mapped code, mounts, packages.
///
/// Only libraries that a path names are hashed; the others are told by name, inode and build id.
pub(super) fn look(boot: &str, url: &str, gate: &Gate) -> Residents {
    let set = set(url);
    let wanted = Wanted {
        hashed: Hashed::Named(libraries(gate)),
        packages: packages(gate),
        ranks: gate.seat.ranks,
    };
    let mut reader = LibraryReader::new(HashBudget::default());
    let each = set
        .seen()
        .map(|s| resident::look(s, &wanted, &mut reader))
        .unwrap_or_default();
    let mounts = match each.first() {
        Some(first) => first.mounts.clone(),
        None => Sighting::absent("no process of the seat was seen", "see `set`"),
    };
    Residents {
        boot: boot.into(),
        set,
        each,
        mounts,
    }
}

fn libraries(gate: &Gate) -> Vec<String> {
    gate.paths
        .iter()
        .flat_map(|p| &p.resident)
        .filter_map(|claim| match claim {
            ResidentClaim::Library { name, .. } => Some(name.clone()),
            ResidentClaim::Env { .. } => None,
        })
        .collect()
}

/// Packages that the gate names, and those that are watched anyway.
fn packages(gate: &Gate) -> Vec<String> {
    let named = gate.checks.iter().flat_map(|check| {
        let rows = check.params.rows("rows").iter();
        rows.filter(|row| row.text("count") == Some("altered"))
            .filter_map(|row| row.text("pattern").map(str::to_owned))
    });
    let watched = WATCHED.iter().map(|name| (*name).to_owned());
    named.chain(watched).collect()
}
