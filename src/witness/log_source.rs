//! Where a seat's log comes from.

use std::fmt;
use std::path::PathBuf;

/// A source of log lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogSource {
    /// A file of this host.
    File {
        /// Path.
        path: PathBuf,
    },
    /// The output of a command, standard output and error together (`ssh host tail -F …`, a launcher).
    Command {
        /// Program and arguments.
        command: Vec<String>,
    },
    /// The log of a docker or podman container.
    Docker {
        /// Name or id.
        container: String,
        /// Sockets of engines to try, in order.
        sockets: Vec<PathBuf>,
    },
    /// The journal of a systemd unit.
    Journald {
        /// Unit.
        unit: String,
        /// Whose unit.
        scope: Scope,
    },
    /// The log of a pod.
    Kubernetes {
        /// Pod.
        pod: String,
        /// Namespace; absent: the one of the current context.
        namespace: Option<String>,
        /// Container of the pod; absent: its only one.
        container: Option<String>,
    },
}

/// From where on a log is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// From the source's first byte that can still be had.
    Beginning,
    /// Only what is written from now on.
    End,
}

/// Whose unit a journal is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The system's.
    System,
    /// The user's.
    User,
}

/// Words by which a source says that it dropped lines.
pub(crate) struct GapSign {
    /// The line holds this text …
    pub(crate) text: &'static str,
    /// … and this one after it.
    pub(crate) then: &'static str,
}

impl LogSource {
    /// The command that gives the log from `from` on; nothing for a source that is read without one.
    pub(crate) fn command(&self, from: Start) -> Option<Vec<String>> {
        let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
        match self {
            Self::File { .. } | Self::Docker { .. } => None,
            Self::Command { command } => Some(command.clone()),
            Self::Journald { unit, scope } => {
                let mut command: Vec<String> = words(&["journalctl", "--follow", "--no-pager"]);
                // `cat` gives the server's own lines; any other form would put a second time before them.
                command.extend::<Vec<String>>(words(&["--output=cat", "--boot"]));
                command.push(match from {
                    Start::Beginning => "--lines=all".to_owned(),
                    Start::End => "--lines=0".to_owned(),
                });
                command.push(match scope {
                    Scope::System => format!("--unit={unit}"),
                    Scope::User => format!("--user-unit={unit}"),
                });
                Some(command)
            }
            Self::Kubernetes {
                pod,
                namespace,
                container,
            } => {
                // No `--timestamps`: the lines must look as the server wrote them.
                let mut command: Vec<String> = words(&["kubectl", "logs", "--follow"]);
                command.push(match from {
                    Start::Beginning => "--tail=-1".to_owned(),
                    Start::End => "--tail=0".to_owned(),
                });
                command.extend(namespace.iter().map(|n| format!("--namespace={n}")));
                command.extend(container.iter().map(|c| format!("--container={c}")));
                command.push(pod.clone());
                Some(command)
            }
        }
    }

    /// How this source says that it dropped lines.
    pub(crate) fn gap_signs(&self) -> &'static [GapSign] {
        match self {
            Self::Journald { .. } => &[GapSign {
                text: "Suppressed ",
                then: " messages from",
            }],
            Self::Kubernetes { .. } => &[
                GapSign {
                    text: "unable to retrieve container logs",
                    then: "",
                },
                GapSign {
                    text: "failed to create fsnotify watcher",
                    then: "",
                },
            ],
            Self::File { .. } | Self::Command { .. } | Self::Docker { .. } => &[],
        }
    }
}

impl GapSign {
    /// Whether a line is this sign.
    pub(crate) fn is_in(&self, line: &str) -> bool {
        line.split_once(self.text)
            .is_some_and(|(_, rest)| rest.contains(self.then))
    }
}

impl fmt::Display for LogSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path } => write!(f, "file `{}`", path.display()),
            Self::Command { command } => write!(f, "command `{}`", command.join(" ")),
            Self::Docker { container, .. } => write!(f, "container `{container}`"),
            Self::Journald { unit, .. } => write!(f, "journal of unit `{unit}`"),
            Self::Kubernetes { pod, .. } => write!(f, "pod `{pod}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_followed_without_a_second_prefix() {
        let source = LogSource::Journald {
            unit: "vllm.service".into(),
            scope: Scope::System,
        };
        assert_eq!(
            source.command(Start::Beginning).unwrap().join(" "),
            "journalctl --follow --no-pager --output=cat --boot --lines=all --unit=vllm.service"
        );
        let signs = source.gap_signs();
        assert!(signs[0].is_in("Suppressed 41 messages from vllm.service"));
        assert!(!signs[0].is_in("Suppressed warnings"));
    }

    #[test]
    fn a_pod_is_followed_from_now_on() {
        let source = LogSource::Kubernetes {
            pod: "seat-0".into(),
            namespace: Some("llm".into()),
            container: None,
        };
        assert_eq!(
            source.command(Start::End).unwrap().join(" "),
            "kubectl logs --follow --tail=0 --namespace=llm seat-0"
        );
    }

    #[test]
    fn a_file_needs_no_command() {
        let source = LogSource::File {
            path: "/var/log/seat.log".into(),
        };
        assert_eq!(source.command(Start::End), None);
        assert_eq!(source.to_string(), "file `/var/log/seat.log`");
    }
}
