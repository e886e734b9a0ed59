//! Starting a build, and ending it with everything that it started.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

/// A build's command with every placeholder filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recipe {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Environment on top of ours.
    pub env: Vec<(String, String)>,
    /// Working directory; absent: ours.
    pub cwd: Option<PathBuf>,
    /// Command that stops it, for launchers that detach.
    pub stop: Vec<String>,
}

/// A running build and its process group.
///
/// Dropping it kills the group, so that a panic or an early return leaves no orphan.
#[derive(Debug)]
pub struct Launched {
    child: Child,
    group: Pid,
    recipe: Recipe,
    log: PathBuf,
    gone: bool,
}

/// The build could not be started or stopped.
#[derive(Debug)]
pub enum LaunchError {
    /// The program could not be run.
    Program {
        /// Program.
        program: String,
        /// Cause.
        cause: std::io::Error,
    },
    /// The log file could not be made.
    Log {
        /// Path.
        path: PathBuf,
        /// Cause.
        cause: std::io::Error,
    },
    /// No port was free.
    Port(std::io::Error),
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { program, cause } => write!(
                f,
                "cannot run `{program}`: {cause}; check `start` of the build and that the program is on PATH"
            ),
            Self::Log { path, cause } => {
                write!(
                    f,
                    "cannot write the build's log `{}`: {cause}; free some space or use `--out`",
                    path.display()
                )
            }
            Self::Port(cause) => write!(f, "no free port on 127.0.0.1: {cause}"),
        }
    }
}

impl std::error::Error for LaunchError {}

/// How long a build may take to end after SIGTERM before its group is killed: vLLM needs 2 s, a 305B model's eight
/// workers were seen to need 20 s, and a server that ignores SIGTERM exists (transformers serve under load).
const GRACE: Duration = Duration::from_secs(30);
/// How long the kernel is given to reap a killed group.
const REAP: Duration = Duration::from_secs(5);
/// How often a dying group is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A port that is free now.
///
/// # Errors
/// When none is.
pub fn free_port() -> Result<u16, LaunchError> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(LaunchError::Port)?;
    Ok(listener.local_addr().map_err(LaunchError::Port)?.port())
}

impl Launched {
    /// Starts the command in a process group of its own, both output streams appended to `log`.
    ///
    /// # Errors
    /// When the program cannot be run or the log cannot be made.
    pub fn start(recipe: Recipe, log: &Path) -> Result<Self, LaunchError> {
        let out = log_file(log)?;
        let err = out.try_clone().map_err(|cause| LaunchError::Log {
            path: log.to_owned(),
            cause,
        })?;
        let program = program(&recipe.command);
        let mut command = Command::new(&program);
        command
            .args(recipe.command.iter().skip(1))
            .envs(recipe.env.iter().map(|(k, v)| (k.as_str(), v.as_str())))
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err)
            .process_group(0);
        if let Some(cwd) = &recipe.cwd {
            command.current_dir(cwd);
        }
        let failed = |cause| LaunchError::Program {
            program: program.display().to_string(),
            cause,
        };
        let child = command.spawn().map_err(failed)?;
        let group = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .ok_or_else(|| failed(std::io::Error::other("it ended at once")))?;
        Ok(Self {
            child,
            group,
            recipe,
            log: log.to_owned(),
            gone: false,
        })
    }

    /// The process id of the command.
    pub fn pid(&self) -> u32 {
        self.group.as_raw_nonzero().get().unsigned_abs()
    }

    /// Where its output goes.
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// How the command ended, if it has.
    pub fn ended(&mut self) -> Option<String> {
        match self.child.try_wait() {
            Ok(Some(status)) => Some(status.to_string()),
            Ok(None) => None,
            Err(cause) => Some(cause.to_string()),
        }
    }

    /// Ends it: the stop command if there is one, then SIGTERM to the whole group, then SIGKILL after a grace.
    ///
    /// Returns how it went, for people.
    pub async fn stop(mut self) -> String {
        let asked = self.run_stop_command().await;
        let how = self.end_group().await;
        self.gone = true;
        match asked {
            Some(asked) => format!("{asked}; {how}"),
            None => how,
        }
    }

    /// Leaves it running: the build that stays at the seat.
    pub fn release(mut self) {
        self.gone = true;
    }

    async fn run_stop_command(&self) -> Option<String> {
        let (name, arguments) = self.recipe.stop.split_first()?;
        let mut command = Command::new(name);
        command
            .args(arguments)
            .envs(
                self.recipe
                    .env
                    .iter()
                    .map(|(k, v)| (k.as_str(), v.as_str())),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true);
        if let Some(cwd) = &self.recipe.cwd {
            command.current_dir(cwd);
        }
        Some(match timeout(GRACE, command.status()).await {
            Ok(Ok(status)) if status.success() => "stop command done".into(),
            Ok(Ok(status)) => format!("stop command failed with {status}"),
            Ok(Err(cause)) => format!("stop command could not run: {cause}"),
            Err(_) => format!("stop command did not end within {} s", GRACE.as_secs()),
        })
    }

    async fn end_group(&mut self) -> String {
        if kill_process_group(self.group, Signal::TERM).is_err() {
            let _ = self.child.wait().await;
            return "it had ended before".into();
        }
        if self.wait_until_gone(GRACE).await {
            return "ended on SIGTERM".into();
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        if self.wait_until_gone(REAP).await {
            format!(
                "killed: it did not end within {} s of SIGTERM",
                GRACE.as_secs()
            )
        } else {
            format!("process group {} is still there after SIGKILL", self.pid())
        }
    }

    async fn wait_until_gone(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        loop {
            // Reaping our own child first: a zombie still counts as a member of its group.
            let _ = self.child.try_wait();
            if test_kill_process_group(self.group).is_err() {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            sleep(LOOK).await;
        }
    }
}

impl Drop for Launched {
    fn drop(&mut self) {
        if !self.gone {
            let _ = kill_process_group(self.group, Signal::KILL);
            let _ = self.child.try_wait();
        }
    }
}

/// The last lines of a build's output, for the message when it does not come up: at most 12 lines of 300 characters.
pub fn tail(log: &Path) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let start = bytes.len().saturating_sub(16 * 1024);
    let text = String::from_utf8_lossy(&bytes[start..]);
    let lines: Vec<String> = text
        .lines()
        .rev()
        .filter(|l| !l.trim().is_empty())
        .take(12)
        .map(|l| l.chars().filter(|c| !c.is_control()).take(300).collect())
        .collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("\n")
}

fn log_file(path: &Path) -> Result<File, LaunchError> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|cause| LaunchError::Log {
            path: path.to_owned(),
            cause,
        })
}

/// The program to run: the word `sekimon` is this very program, so that a gate can start the embedded seat.
pub fn program(command: &[String]) -> PathBuf {
    match command.first().map(String::as_str) {
        Some("sekimon") => std::env::current_exe().unwrap_or_else(|_| PathBuf::from("sekimon")),
        Some(other) => PathBuf::from(other),
        None => PathBuf::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(script: &str) -> Recipe {
        Recipe {
            command: vec!["sh".into(), "-c".into(), script.into()],
            env: vec![("GREETING".into(), "hello".into())],
            cwd: None,
            stop: vec![],
        }
    }

    #[tokio::test]
    async fn the_whole_group_ends_with_its_leader() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = dir.path().join("log");
        let launched = Launched::start(recipe("sleep 600 & echo $!; wait"), &log).expect("sh runs");
        let grandchild = loop {
            let text = std::fs::read_to_string(&log).expect("the log is there");
            if let Ok(pid) = text.trim().parse::<i32>() {
                break pid;
            }
            sleep(LOOK).await;
        };
        assert_eq!(launched.stop().await, "ended on SIGTERM");
        let stat = std::fs::read_to_string(format!("/proc/{grandchild}/stat")).unwrap_or_default();
        assert!(
            stat.is_empty() || stat.contains(") Z "),
            "the grandchild lives on: {stat}"
        );
    }

    #[tokio::test]
    async fn output_and_environment_reach_the_log() {
        let dir = tempfile::tempdir().expect("a folder");
        let log = dir.path().join("log");
        let mut launched =
            Launched::start(recipe("echo $GREETING; exit 3"), &log).expect("sh runs");
        while launched.ended().is_none() {
            sleep(LOOK).await;
        }
        assert_eq!(launched.ended().as_deref(), Some("exit status: 3"));
        assert_eq!(tail(&log), "hello");
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let dir = tempfile::tempdir().expect("a folder");
        let mut recipe = recipe("");
        recipe.command = vec!["no-such-program".into()];
        let error = Launched::start(recipe, &dir.path().join("log")).expect_err("it is not there");
        assert!(error.to_string().contains("no-such-program"), "{error}");
    }
}
