//! The processes of a seat, each pinned so that a later look can say whether it is still the same one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::role::Role;

/// What makes a process this one and no other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Id of the kernel's boot (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: String,
    /// Process id in the namespace of the reader.
    pub pid: u32,
    /// Start time in clock ticks since the boot (field 22 of `/proc/PID/stat`).
    pub start_ticks: u64,
    /// The executable; absent if the right to read it is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exe: Option<String>,
    /// The kernel's short name, at most 15 bytes.
    pub comm: String,
    /// Arguments or the title that replaced them, secrets redacted.
    pub cmdline: Vec<String>,
}

/// One process of a seat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its identity.
    pub pin: Pin,
    /// Its parent's process id.
    pub parent: u32,
    /// What it seems to be for.
    pub role: Role,
}

/// The processes of a seat at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct ProcessSet {
    /// Process ids that hold the port open (several with SO_REUSEPORT), or the roots that were asked for.
    pub owners: Vec<u32>,
    /// Owners and all their descendants, parents first.
    pub processes: Vec<Process>,
    /// What limits this look (processes whose descriptors could not be read, a proxy as owner).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl ProcessSet {
    /// The pins of all its processes.
    pub fn pins(&self) -> Pins {
        Pins(self.processes.iter().map(|p| p.pin.clone()).collect())
    }

    /// The processes that run the model: workers if there are any, else engine cores, else every owner.
    pub fn computing(&self) -> Vec<&Process> {
        let workers = self.pick(|p| matches!(p.role, Role::Worker { .. }));
        if !workers.is_empty() {
            return workers;
        }
        let engines = self.pick(|p| p.role == Role::EngineCore);
        if !engines.is_empty() {
            return engines;
        }
        self.pick(|p| self.owners.contains(&p.pin.pid))
    }

    /// Whether every owner only forwards the port to a container.
    pub fn only_proxies(&self) -> bool {
        let owners = self.pick(|p| self.owners.contains(&p.pin.pid));
        !owners.is_empty() && owners.iter().all(|p| p.role == Role::Proxy)
    }

    fn pick(&self, keep: impl Fn(&Process) -> bool) -> Vec<&Process> {
        self.processes.iter().filter(|p| keep(p)).collect()
    }
}

/// A set of pins taken at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct Pins(pub Vec<Pin>);

/// How a later set of processes differs from an earlier one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Difference {
    /// The machine was booted again; nothing of before is left.
    Rebooted {
        /// Boot id before.
        before: String,
        /// Boot id after.
        after: String,
    },
    /// The process has ended.
    Ended {
        /// The process.
        pin: Pin,
    },
    /// The process id was given to another process.
    Replaced {
        /// Before.
        before: Pin,
        /// After.
        after: Pin,
    },
    /// The process now runs another executable.
    OtherExecutable {
        /// Before.
        before: Pin,
        /// After.
        after: Pin,
    },
    /// The process has another title or arguments; it is still the same one (titles change while a seat starts).
    Retitled {
        /// Before.
        before: Pin,
        /// After.
        after: Pin,
    },
    /// The process was not there before.
    Started {
        /// The process.
        pin: Pin,
    },
}

impl Difference {
    /// Whether the two looks were at different seats, so that evidence of one says nothing of the other.
    pub fn breaks_identity(&self) -> bool {
        !matches!(self, Self::Retitled { .. } | Self::Started { .. })
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rebooted { .. } => write!(f, "the machine was booted again"),
            Self::Ended { pin } => write!(f, "{pin} has ended"),
            Self::Replaced { before, after } => {
                write!(f, "{before} was replaced by {after}, started later")
            }
            Self::OtherExecutable { before, after } => {
                write!(
                    f,
                    "{before} now runs `{}`",
                    after.exe.as_deref().unwrap_or("?")
                )
            }
            Self::Retitled { before, after } => {
                write!(f, "{before} is now titled `{}`", after.title())
            }
            Self::Started { pin } => write!(f, "{pin} was not there before"),
        }
    }
}

impl Pin {
    /// Whether both pins are of one process: same boot, id and start time.
    pub fn is(&self, other: &Self) -> bool {
        self.boot_id == other.boot_id
            && self.pid == other.pid
            && self.start_ticks == other.start_ticks
    }

    /// Title or command, cut for messages.
    fn title(&self) -> String {
        let line = self.cmdline.join(" ");
        let shown = if line.is_empty() { &self.comm } else { &line };
        // 60 characters name a process; more drowns the message.
        shown.chars().take(60).collect()
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} (`{}`)", self.pid, self.title())
    }
}

impl Pins {
    /// How `later` differs; empty if every process is still there, unchanged, and none came.
    pub fn same_as(&self, later: &Self) -> Vec<Difference> {
        if let (Some(before), Some(after)) = (self.0.first(), later.0.first())
            && before.boot_id != after.boot_id
        {
            return vec![Difference::Rebooted {
                before: before.boot_id.clone(),
                after: after.boot_id.clone(),
            }];
        }
        let kept = self.0.iter().filter_map(|pin| later.differs_from(pin));
        let started = later
            .0
            .iter()
            .filter(|pin| !self.0.iter().any(|old| old.pid == pin.pid))
            .map(|pin| Difference::Started { pin: pin.clone() });
        kept.chain(started).collect()
    }

    fn differs_from(&self, before: &Pin) -> Option<Difference> {
        let Some(after) = self.0.iter().find(|pin| pin.pid == before.pid) else {
            return Some(Difference::Ended {
                pin: before.clone(),
            });
        };
        let (before, after) = (before.clone(), after.clone());
        if !before.is(&after) {
            Some(Difference::Replaced { before, after })
        } else if before.exe != after.exe {
            Some(Difference::OtherExecutable { before, after })
        } else if before.cmdline != after.cmdline || before.comm != after.comm {
            Some(Difference::Retitled { before, after })
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(pid: u32, start_ticks: u64) -> Pin {
        Pin {
            boot_id: "b".into(),
            pid,
            start_ticks,
            exe: Some("/usr/bin/python3".into()),
            comm: "python3".into(),
            cmdline: vec!["python3".into(), "serve.py".into()],
        }
    }

    #[test]
    fn the_same_pins_do_not_differ() {
        let pins = Pins(vec![pin(7, 100), pin(8, 101)]);
        assert_eq!(pins.same_as(&pins.clone()), vec![]);
    }

    #[test]
    fn a_reused_process_id_is_another_process() {
        let differences = Pins(vec![pin(7, 100)]).same_as(&Pins(vec![pin(7, 900)]));
        assert!(matches!(differences[..], [Difference::Replaced { .. }]));
        assert!(differences[0].breaks_identity());
    }

    #[test]
    fn an_ended_and_a_new_process_are_both_told() {
        let differences =
            Pins(vec![pin(7, 100), pin(8, 100)]).same_as(&Pins(vec![pin(7, 100), pin(9, 300)]));
        assert!(matches!(
            differences[..],
            [Difference::Ended { .. }, Difference::Started { .. }]
        ));
    }

    #[test]
    fn a_new_title_is_told_but_keeps_the_identity() {
        let mut later = pin(7, 100);
        later.cmdline = vec!["VLLM::Worker_TP0".into()];
        let differences = Pins(vec![pin(7, 100)]).same_as(&Pins(vec![later]));
        assert!(matches!(differences[..], [Difference::Retitled { .. }]));
        assert!(!differences[0].breaks_identity());
    }

    #[test]
    fn another_boot_makes_every_pin_void() {
        let mut later = pin(7, 100);
        later.boot_id = "c".into();
        let differences = Pins(vec![pin(7, 100)]).same_as(&Pins(vec![later]));
        assert!(matches!(differences[..], [Difference::Rebooted { .. }]));
    }

    #[test]
    fn workers_stand_before_engines_and_owners() {
        let process = |pid, role| Process {
            pin: pin(pid, 1),
            parent: 1,
            role,
        };
        let worker = Role::Worker {
            rank: Default::default(),
        };
        let mut set = ProcessSet {
            owners: vec![7],
            processes: vec![process(7, Role::ApiServer), process(8, Role::EngineCore)],
            notes: vec![],
        };
        assert_eq!(set.computing()[0].pin.pid, 8);
        set.processes.push(process(9, worker));
        assert_eq!(set.computing()[0].pin.pid, 9);
        set.processes.truncate(1);
        assert_eq!(set.computing()[0].pin.pid, 7);
    }
}
