//! The processes of a seat on this host: pinned around each window, looked into once a boot.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::evidence::absence::Sighting;
use crate::evidence::processes::{Pins, ProcessSet};
use crate::evidence::window::{Resident, Residents};
use crate::spec::gate::{Gate, ResidentClaim};
use crate::witness::libraries::{HashBudget, Hashed, LibraryReader};
use crate::witness::{environ, mounts, processes};

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

/// Looks into every process at the seat's port: live environment, mapped code, mounts.
///
/// Only libraries that a path names are hashed; the others are told by name, inode and build id.
pub(super) fn look(boot: &str, url: &str, gate: &Gate) -> Residents {
    let set = set(url);
    let named: Vec<String> = gate
        .paths
        .iter()
        .flat_map(|p| &p.resident)
        .filter_map(|claim| match claim {
            ResidentClaim::Library { name, .. } => Some(name.clone()),
            ResidentClaim::Env { .. } => None,
        })
        .collect();
    let mut reader = LibraryReader::new(HashBudget::default());
    let hashed = Hashed::Named(named);
    let pids: Vec<u32> = set
        .seen()
        .map(|s| s.processes.iter().map(|p| p.pin.pid).collect())
        .unwrap_or_default();
    let each = pids
        .iter()
        .map(|pid| Resident {
            pid: *pid,
            environ: environ::of(*pid),
            libraries: reader.read(*pid, &hashed),
        })
        .collect();
    let mounts = match pids.first() {
        Some(pid) => mounts::of(*pid),
        None => Sighting::absent("no process of the seat was seen", "see `set`"),
    };
    Residents {
        boot: boot.into(),
        set,
        each,
        mounts,
    }
}
