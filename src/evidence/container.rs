//! What a container engine says of one container: what was asked for, and what it started.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::mounts::Access;
use super::redaction::EnvVar;

/// One container as its engine describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    /// Full id.
    pub id: String,
    /// Name without the leading slash.
    pub name: String,
    /// Digest of the image's configuration: exactly which image.
    pub image_id: String,
    /// The name that the image was asked for by; it can be moved to another image.
    pub image_name: String,
    /// The program that was started.
    pub program: String,
    /// Its arguments, secrets redacted.
    pub arguments: Vec<String>,
    /// Environment from the image and the command line, secrets redacted: what was asked for, not what a process has.
    pub environment: Vec<EnvVar>,
    /// Mounts.
    pub mounts: Vec<ContainerMount>,
    /// Whether and how it runs.
    pub run: Run,
    /// How often the engine started it again by itself; absent if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u64>,
    /// Where its log goes.
    pub log: LogDriver,
}

/// The state of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Run {
    /// It runs.
    Running {
        /// Its first process, in the engine's process namespace.
        pid: u32,
        /// When it was started, RFC 3339 as the engine spells it.
        started: String,
    },
    /// It does not run.
    Stopped {
        /// The engine's word for the state (`exited`, `dead`).
        state: String,
        /// Exit code, where told.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
    },
}

/// A mount of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContainerMount {
    /// `bind`, `volume`, `tmpfs`.
    pub kind: String,
    /// On the host.
    pub source: String,
    /// In the container.
    pub target: String,
    /// Whether it may be written to.
    pub access: Access,
}

/// Where a container's log goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default)]
pub struct LogDriver {
    /// Name of the driver (`json-file`, `journald`, `none`); empty if not told.
    pub name: String,
    /// Its options (`max-size`, `mode`).
    pub options: BTreeMap<String, String>,
}

impl LogDriver {
    /// Why lines of this log can be lost before anyone reads them; nothing if the driver keeps every line.
    pub fn may_lose(&self) -> Option<String> {
        if self.name == "none" {
            return Some("the container's log driver is `none`".to_owned());
        }
        let mode = self.options.get("mode").map(String::as_str);
        (mode == Some("non-blocking")).then(|| {
            "the container's log driver may drop lines under load (`mode=non-blocking`)".to_owned()
        })
    }
}

impl Container {
    /// The first process, if it runs.
    pub fn pid(&self) -> Option<u32> {
        match self.run {
            Run::Running { pid, .. } => Some(pid),
            Run::Stopped { .. } => None,
        }
    }

    /// Program and arguments as one command line.
    pub fn command(&self) -> Vec<String> {
        let mut command = vec![self.program.clone()];
        command.extend(self.arguments.iter().cloned());
        command
    }

    /// What is no longer as it was in `self`, as sentences; empty if it is the same container in the same run.
    pub fn differs_from(&self, later: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        if self.id != later.id {
            differences.push(format!(
                "container `{}` was made anew: id {} instead of {}",
                self.name, later.id, self.id
            ));
        }
        if self.image_id != later.image_id {
            differences.push(format!(
                "container `{}` runs image {} instead of {}",
                self.name, later.image_id, self.image_id
            ));
        }
        if self.run != later.run || self.restarts != later.restarts {
            differences.push(format!(
                "container `{}` was started again or stopped",
                self.name
            ));
        }
        differences
    }
}

/// The container that a process belongs to, from its `/proc/PID/cgroup`: the last group of 64 hexadecimal digits in it.
///
/// Nothing on the host itself, and nothing from inside a container's own control group namespace, where the path is `/`.
pub fn container_id(cgroup: &str) -> Option<String> {
    let is_id = |part: &&str| part.len() == 64 && part.bytes().all(|b| b.is_ascii_hexdigit());
    cgroup
        .split(|c: char| !c.is_ascii_alphanumeric())
        .rfind(is_id)
        .map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> Container {
        Container {
            id: "abc".into(),
            name: "dsv4".into(),
            image_id: "sha256:1".into(),
            image_name: "dsv4-dense".into(),
            program: "bash".into(),
            arguments: vec!["serve.sh".into()],
            environment: vec![],
            mounts: vec![],
            run: Run::Running {
                pid: 7,
                started: "2026-09-04T01:02:03Z".into(),
            },
            restarts: Some(0),
            log: LogDriver::default(),
        }
    }

    #[test]
    fn the_same_run_does_not_differ() {
        assert_eq!(container().differs_from(&container()), Vec::<String>::new());
    }

    #[test]
    fn a_container_that_the_engine_started_again_differs() {
        let mut later = container();
        later.restarts = Some(1);
        later.run = Run::Running {
            pid: 9,
            started: "2026-09-04T02:00:00Z".into(),
        };
        assert_eq!(container().differs_from(&later).len(), 1);
    }

    #[test]
    fn a_log_driver_that_drops_lines_is_told() {
        let mut log = LogDriver {
            name: "json-file".into(),
            ..LogDriver::default()
        };
        assert_eq!(log.may_lose(), None);
        log.options.insert("mode".into(), "non-blocking".into());
        assert!(log.may_lose().unwrap().contains("drop"));
    }

    #[test]
    fn every_engine_writes_the_id_into_the_control_group() {
        let id = "4b1d8c2e6a7f4d3c9b0e5f6a7d8c9b0a1f2e3d4c5b6a79880716253443526170";
        for group in [
            format!("0::/system.slice/docker-{id}.scope"),
            format!("0::/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-{id}.scope"),
            format!("0::/machine.slice/libpod-{id}.scope/container"),
            format!("12:memory:/docker/{id}\n11:cpu:/docker/{id}\n"),
        ] {
            assert_eq!(container_id(&group).as_deref(), Some(id), "{group}");
        }
        assert_eq!(container_id("0::/user.slice/user-0.slice"), None);
    }
}
