//! Log sources that give bytes as they come: commands and containers.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::process::Stdio;

use futures_util::{Stream, StreamExt};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};

use super::container::Engine;
use super::log_source::{LogSource, Start};
use crate::evidence::absence::{Absent, Sighting};
use crate::evidence::container::{Container, Run};
use crate::evidence::log_copy::LogPin;

/// Bytes taken at a time.
const PIECE: usize = 64 * 1024;

/// What a stream gives.
#[derive(Debug)]
pub(crate) enum Piece {
    /// Bytes of the log.
    Bytes(Vec<u8>),
    /// The end, and how it came.
    Ended(String),
}

/// A source that gives bytes as they come.
pub(crate) struct StreamFeed {
    source: Source,
    over: bool,
}

enum Source {
    Command(Running),
    Container(Followed),
}

/// A command whose output is read. Its group is killed when this is dropped.
struct Running {
    child: Child,
    pid: u32,
    output: pipe::Receiver,
}

struct Followed {
    engine: Engine,
    container: Container,
    log: Pin<Box<dyn Stream<Item = Result<bytes::Bytes, String>> + Send>>,
    restart_told: bool,
}

impl StreamFeed {
    /// Opens the source; absent if its command or engine is not there.
    pub(crate) async fn open(source: &LogSource, from: Start) -> Result<Self, Absent> {
        let source = match source {
            LogSource::Docker { container, sockets } => {
                let engine = Engine::find(sockets).await.into_result()?;
                let described = engine.inspect(container).await.into_result()?;
                // By id, so that a new container of the same name is never taken for this one.
                let log = Box::pin(engine.log(&described.id, from));
                Source::Container(Followed {
                    engine,
                    container: described,
                    log,
                    restart_told: false,
                })
            }
            other => Source::Command(Running::start(&other.command(from).unwrap_or_default())?),
        };
        Ok(Self {
            source,
            over: false,
        })
    }

    /// Why this source can lose lines without saying so.
    pub(crate) fn may_lose(&self) -> Option<String> {
        match &self.source {
            Source::Command(_) => None,
            Source::Container(followed) => followed.container.log.may_lose(),
        }
    }

    /// What the source is.
    pub(crate) fn pin(&self) -> LogPin {
        match &self.source {
            Source::Command(running) => LogPin::Command { pid: running.pid },
            Source::Container(followed) => LogPin::Container {
                id: followed.container.id.clone(),
                started: match &followed.container.run {
                    Run::Running { started, .. } => started.clone(),
                    Run::Stopped { state, .. } => state.clone(),
                },
            },
        }
    }

    /// The next piece; never comes after the end. May be dropped half-way without loss.
    pub(crate) async fn next(&mut self) -> Piece {
        if self.over {
            return std::future::pending().await;
        }
        let piece = match &mut self.source {
            Source::Command(running) => running.next().await,
            Source::Container(followed) => match followed.log.next().await {
                Some(Ok(bytes)) => Piece::Bytes(bytes.to_vec()),
                Some(Err(error)) => Piece::Ended(format!("the engine broke off: {error}")),
                None => Piece::Ended("the container stopped".to_owned()),
            },
        };
        self.over = matches!(piece, Piece::Ended(_));
        piece
    }

    /// How the container differs from the one that was pinned; told once.
    pub(crate) async fn restarted(&mut self) -> Option<String> {
        let Source::Container(followed) = &mut self.source else {
            return None;
        };
        if followed.restart_told {
            return None;
        }
        let now = followed.engine.inspect(&followed.container.id).await;
        let differences = match now {
            Sighting::Seen { value } => followed.container.differs_from(&value),
            Sighting::Absent(absent) => vec![absent.why],
        };
        followed.restart_told = !differences.is_empty();
        (!differences.is_empty()).then(|| differences.join("; "))
    }
}

impl Running {
    fn start(command: &[String]) -> Result<Self, Absent> {
        let absent = |error: io::Error| {
            Absent::new(
                format!(
                    "starting the log's command `{}`: {error}",
                    command.join(" ")
                ),
                "install it, or name its path in the gate",
            )
        };
        let Some((program, arguments)) = command.split_first() else {
            return Err(Absent::new("the log's command is empty", "name a program"));
        };
        // One pipe for both outputs keeps their order as the command wrote it.
        let (reader, writer) = io::pipe().map_err(absent)?;
        let mut prepared = Command::new(program);
        prepared
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(absent)?)
            .stderr(writer)
            .process_group(0)
            .kill_on_drop(true);
        let child = prepared.spawn().map_err(absent)?;
        // Our own ends for writing must be closed, or the pipe never ends.
        drop(prepared);
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(absent)?;
        Ok(Self {
            pid: child.id().unwrap_or_default(),
            child,
            output,
        })
    }

    async fn next(&mut self) -> Piece {
        let mut piece = vec![0; PIECE];
        match self.output.read(&mut piece).await {
            Ok(0) => Piece::Ended(match self.child.wait().await {
                Ok(status) => format!("its command ended with {status}"),
                Err(error) => format!("its command ended: {error}"),
            }),
            Ok(read) => {
                piece.truncate(read);
                Piece::Bytes(piece)
            }
            Err(error) => Piece::Ended(format!("reading its command's output: {error}")),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Only while it is not reaped is its id surely its own; children of it (`ssh`, `tail`) are in its group.
        if let Ok(None) = self.child.try_wait()
            && let Some(group) = i32::try_from(self.pid).ok().and_then(Pid::from_raw)
        {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}
