//! A command of the author's run now, or a result file read: what another tool says, with its hash and age.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Map;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep, timeout};

use super::boot::Stage;
use super::window::Yield;
use crate::archive::rundir::sha256_hex;
use crate::drive::cancel::Cancel;
use crate::evidence::absence::{Absent, Sighting};
use crate::evidence::redaction::redact_arguments;
use crate::evidence::tool_output::{Ended, ToolOutput, ToolText};
use crate::plan::task::ExternalTask;
use crate::seat::launch::program;
use crate::seat::placeholder::Filling;

/// Bytes of an output that are kept: a parity report of 171 cases has 40 KB, a JUnit file of 10,000 cases 2 MB.
const KEPT: usize = 4 * 1024 * 1024;
/// Bytes of standard error that are kept for messages.
const STDERR_KEPT: usize = 4 * 1024;
/// How long the pipes may stay open after the group is gone: only a process that left its group can hold them.
const DRAIN: Duration = Duration::from_secs(1);

/// Runs the command, reads the file.
pub async fn perform(
    stage: &Stage,
    task: &ExternalTask,
    gate_dir: &Path,
    cancel: &Cancel,
) -> Yield {
    let seat = Seat {
        url: stage.boot.url.clone(),
        build: stage.boot.build.clone(),
        model: stage.boot.identity.model.clone(),
    };
    let output = look(&seat, task, gate_dir, cancel).await;
    let mut results = Map::new();
    if let Ok(value) = serde_json::to_value(&output) {
        results.insert("external".into(), value);
    }
    Yield {
        conditions: vec![("source".into(), "external".into())],
        results,
        ..Yield::default()
    }
}

/// The build that the command may ask.
struct Seat {
    url: String,
    build: String,
    model: String,
}

async fn look(seat: &Seat, task: &ExternalTask, gate_dir: &Path, cancel: &Cancel) -> ToolOutput {
    let file = task.file.as_ref().map(|f| gate_dir.join(f));
    if task.command.is_empty() {
        return ToolOutput {
            command: Vec::new(),
            ended: None,
            stderr: String::new(),
            text: sighting(read(file.as_deref(), task)),
        };
    }
    let before = file.as_deref().and_then(stamp);
    let ran = run(seat, task, gate_dir, cancel).await;
    let text = match &file {
        None => Ok(text("standard output", ran.stdout, None)),
        // A file that the command did not touch is what an earlier run left there.
        Some(path) if before.is_some() && stamp(path) == before => Err(Absent::new(
            format!(
                "`{}` was there before, and the command did not write it",
                shown(task)
            ),
            "let the command write the file that the gate names",
        )),
        Some(path) => read(Some(path), task),
    };
    ToolOutput {
        command: redact_arguments(&task.command),
        ended: Some(ran.ended),
        stderr: ran.stderr,
        text: sighting(text),
    }
}

fn sighting(text: Result<ToolText, Absent>) -> Sighting<ToolText> {
    match text {
        Ok(value) => Sighting::Seen { value },
        Err(absent) => Sighting::Absent(absent),
    }
}

fn shown(task: &ExternalTask) -> &str {
    task.file.as_deref().unwrap_or("no file")
}

/// What tells two states of a file apart: another file, another time, another length.
fn stamp(path: &Path) -> Option<[i64; 4]> {
    let meta = std::fs::metadata(path).ok()?;
    let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    Some([
        whole(meta.ino()),
        meta.mtime(),
        meta.mtime_nsec(),
        whole(meta.len()),
    ])
}

fn read(path: Option<&Path>, task: &ExternalTask) -> Result<ToolText, Absent> {
    let mend = "name a result file that is there, or a `command` that writes it";
    let path = path.ok_or_else(|| Absent::new("neither command nor file is named", mend))?;
    let fault =
        |e: std::io::Error| Absent::new(format!("`{}` cannot be read: {e}", shown(task)), mend);
    let meta = std::fs::metadata(path).map_err(fault)?;
    if !meta.is_file() {
        return Err(Absent::new(
            format!("`{}` is no plain file", shown(task)),
            mend,
        ));
    }
    let age = meta.modified().ok().map(|m| {
        SystemTime::now()
            .duration_since(m)
            .unwrap_or_default()
            .as_secs()
    });
    let mut bytes = Vec::new();
    // One byte more than is kept tells that there is more.
    let file = std::fs::File::open(path).map_err(fault)?;
    file.take(KEPT as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(fault)?;
    let total = meta.len().max(bytes.len() as u64);
    bytes.truncate(KEPT);
    Ok(text(shown(task), Kept { bytes, total }, age))
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    total: u64,
}

fn text(source: &str, kept: Kept, age_s: Option<u64>) -> ToolText {
    ToolText {
        source: source.into(),
        text: String::from_utf8_lossy(&kept.bytes).into_owned(),
        bytes: kept.total,
        whole: kept.total == kept.bytes.len() as u64,
        sha256: sha256_hex(&kept.bytes),
        age_s,
    }
}

struct Ran {
    ended: Ended,
    stdout: Kept,
    stderr: String,
}

/// A process group that is killed when it goes out of scope, so that nothing of a tool outlives its window.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

async fn run(seat: &Seat, task: &ExternalTask, gate_dir: &Path, cancel: &Cancel) -> Ran {
    let began = Instant::now();
    let words = filled(seat, task, gate_dir);
    let started = spawn(seat, &words, gate_dir);
    let (mut child, group) = match started {
        Ok(started) => started,
        Err(cause) => {
            let why = format!("`{}`: {cause}", words.first().map_or("", String::as_str));
            return Ran {
                ended: Ended::NotStarted { why },
                stdout: Kept::default(),
                stderr: String::new(),
            };
        }
    };
    let stdout = tokio::spawn(keep(child.stdout.take(), KEPT));
    let stderr = tokio::spawn(keep(child.stderr.take(), STDERR_KEPT));
    let ended = tokio::select! {
        status = child.wait() => match status {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Ended::Exited { code, seconds: began.elapsed().as_secs_f64() },
                (None, signal) => Ended::Signalled { signal: signal.unwrap_or(0) },
            },
            Err(cause) => Ended::NotStarted { why: cause.to_string() },
        },
        () = sleep(Duration::from_secs(task.deadline_s)) => Ended::TimedOut { deadline_s: task.deadline_s },
        () = cancel.cancelled() => Ended::Interrupted,
    };
    drop(group);
    let _ = timeout(DRAIN, child.wait()).await;
    let stdout = timeout(DRAIN, stdout)
        .await
        .ok()
        .and_then(Result::ok)
        .unwrap_or_default();
    let stderr = timeout(DRAIN, stderr)
        .await
        .ok()
        .and_then(Result::ok)
        .unwrap_or_default();
    Ran {
        ended,
        stdout,
        stderr: String::from_utf8_lossy(&stderr.bytes).trim().to_owned(),
    }
}

fn spawn(seat: &Seat, words: &[String], gate_dir: &Path) -> std::io::Result<(Child, Group)> {
    let dir = if gate_dir.as_os_str().is_empty() {
        PathBuf::from(".")
    } else {
        gate_dir.to_owned()
    };
    let mut child = Command::new(program(words))
        .args(words.iter().skip(1))
        .env("SEKIMON_URL", &seat.url)
        .env("SEKIMON_BUILD", &seat.build)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let pid = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    match pid {
        Some(pid) => Ok((child, Group(pid))),
        None => {
            let _ = child.start_kill();
            Err(std::io::Error::other("it ended at once"))
        }
    }
}

fn filled(seat: &Seat, task: &ExternalTask, gate_dir: &Path) -> Vec<String> {
    let port = seat
        .url
        .rsplit(':')
        .next()
        .and_then(|p| p.trim_end_matches('/').parse().ok());
    let filling = Filling {
        port: port.unwrap_or(80),
        model: seat.model.clone(),
        gate_dir: gate_dir.display().to_string(),
    };
    task.command
        .iter()
        .map(|word| filling.fill(&word.replace("{url}", &seat.url)))
        .collect()
}

/// Reads a pipe to its end and keeps the first bytes: a tool that prints for ever does not block, and fills no memory.
async fn keep(pipe: Option<impl AsyncRead + Unpin>, limit: usize) -> Kept {
    let mut kept = Kept::default();
    let Some(mut pipe) = pipe else { return kept };
    let mut chunk = vec![0; 64 * 1024];
    while let Ok(n) = pipe.read(&mut chunk).await {
        if n == 0 {
            break;
        }
        kept.total += n as u64;
        let room = limit - kept.bytes.len();
        kept.bytes.extend_from_slice(&chunk[..n.min(room)]);
    }
    kept
}
