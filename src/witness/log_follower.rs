//! Following a log source into a copy of it in the evidence, so that a window is two byte offsets of that copy.

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use super::log_file::{FileTail, Reach};
use super::log_source::{LogSource, Start};
use super::log_stream::{Piece, StreamFeed};
use super::log_writer::CopyWriter;
use crate::evidence::absence::Absent;
use crate::evidence::log_copy::{LogIncident, LogMark, LogPin, LogStart, LogSummary};

/// How often a file is looked at between marks: often enough that a rotation (seconds to hours apart) is never missed twice.
const FILE_LOOK: Duration = Duration::from_millis(100);

/// Silence after which a stream counts as drained at a mark. A line takes well under a millisecond through a pipe or the
/// engine's socket; a busy machine may hold a reader up for some tens.
const SETTLE: Duration = Duration::from_millis(150);

/// Longest wait for that silence: a log that never falls silent has by then given everything older than the mark.
const SETTLE_LIMIT: Duration = Duration::from_secs(2);

/// A log that is being copied.
#[derive(Debug)]
pub struct LogFollower {
    asks: mpsc::Sender<Ask>,
    task: JoinHandle<()>,
    start: LogStart,
}

#[derive(Debug)]
enum Ask {
    Mark(oneshot::Sender<LogMark>),
    Stop(oneshot::Sender<LogSummary>),
}

impl LogFollower {
    /// Begins to copy `source` into the new file `copy`; absent if the source cannot be had at all.
    ///
    /// A file that does not exist yet is waited for. Must be called inside a tokio runtime.
    pub async fn start(source: LogSource, copy: PathBuf, from: Start) -> Result<Self, Absent> {
        let mut writer = CopyWriter::create(&copy, source.gap_signs())?;
        let (feed, start) = match &source {
            LogSource::File { path } => {
                let (tail, start) = FileTail::open(path, from)?;
                (Feed::File(tail), start)
            }
            other => {
                let stream = StreamFeed::open(other, from).await?;
                if let Some(why) = stream.may_lose() {
                    writer.note(LogIncident::MayLose { why });
                }
                let start = match from {
                    Start::Beginning => LogStart::Beginning,
                    Start::End => LogStart::Late { skipped: None },
                };
                (Feed::Stream(Box::new(stream)), start)
            }
        };
        // One question at a time is all that a run asks.
        let (asks, asked) = mpsc::channel(1);
        let copying = Copying {
            feed,
            writer,
            start,
        };
        Ok(Self {
            asks,
            task: tokio::spawn(copying.run(asked)),
            start,
        })
    }

    /// Where the copy begins in its source.
    pub fn began(&self) -> LogStart {
        self.start
    }

    /// Takes over everything that the source has written until now, and says where the copy stands.
    ///
    /// A file is read to its present end. A stream is waited for until it falls silent, at most two seconds.
    pub async fn mark(&mut self) -> LogMark {
        let (answer, answered) = oneshot::channel();
        let _ = self.asks.send(Ask::Mark(answer)).await;
        answered.await.unwrap_or_else(|_| LogMark {
            offset: 0,
            pin: LogPin::NoFileYet,
            incidents: vec![gone()],
        })
    }

    /// Takes over what is left, ends the source's command if there is one, and closes the copy.
    pub async fn stop(self) -> LogSummary {
        let (answer, answered) = oneshot::channel();
        let _ = self.asks.send(Ask::Stop(answer)).await;
        let summary = answered.await.unwrap_or_else(|_| LogSummary {
            bytes: 0,
            start: self.start,
            pin: LogPin::NoFileYet,
            incidents: vec![gone()],
        });
        let _ = self.task.await;
        summary
    }
}

/// The copying task lives as long as its follower; only the end of the whole runtime can end it before.
fn gone() -> LogIncident {
    LogIncident::CopyFailed {
        at: 0,
        why: "the run was ended while the log was copied".to_owned(),
    }
}

enum Feed {
    File(FileTail),
    Stream(Box<StreamFeed>),
}

struct Copying {
    feed: Feed,
    writer: CopyWriter,
    start: LogStart,
}

impl Copying {
    async fn run(mut self, mut asked: mpsc::Receiver<Ask>) {
        loop {
            let ask = match &mut self.feed {
                Feed::File(tail) => {
                    tail.look(Reach::Some, &mut self.writer);
                    match timeout(FILE_LOOK, asked.recv()).await {
                        Ok(ask) => ask,
                        Err(_) => continue,
                    }
                }
                Feed::Stream(stream) => tokio::select! {
                    ask = asked.recv() => ask,
                    piece = stream.next() => {
                        take(&mut self.writer, piece);
                        continue;
                    }
                },
            };
            match ask {
                Some(Ask::Mark(answer)) => {
                    self.drain().await;
                    let _ = answer.send(self.mark());
                }
                Some(Ask::Stop(answer)) => {
                    self.drain().await;
                    let _ = answer.send(self.summary());
                    return;
                }
                // The follower was dropped without a stop: nobody will ask any more.
                None => return,
            }
        }
    }

    async fn drain(&mut self) {
        match &mut self.feed {
            Feed::File(tail) => tail.look(Reach::End, &mut self.writer),
            Feed::Stream(stream) => {
                let until = Instant::now() + SETTLE_LIMIT;
                while Instant::now() < until {
                    match timeout(SETTLE, stream.next()).await {
                        Ok(piece) => take(&mut self.writer, piece),
                        Err(_) => break,
                    }
                }
                if let Some(how) = stream.restarted().await {
                    let at = self.writer.bytes();
                    self.writer.note(LogIncident::Restarted { at, how });
                }
            }
        }
    }

    fn pin(&self) -> LogPin {
        match &self.feed {
            Feed::File(tail) => tail.pin(),
            Feed::Stream(stream) => stream.pin(),
        }
    }

    fn mark(&mut self) -> LogMark {
        LogMark {
            offset: self.writer.bytes(),
            pin: self.pin(),
            incidents: self.writer.take_fresh(),
        }
    }

    fn summary(&self) -> LogSummary {
        LogSummary {
            bytes: self.writer.bytes(),
            start: self.start,
            pin: self.pin(),
            incidents: self.writer.all(),
        }
    }
}

fn take(writer: &mut CopyWriter, piece: Piece) {
    match piece {
        Piece::Bytes(bytes) => writer.append(&bytes),
        Piece::Ended(how) => writer.note(LogIncident::Ended {
            at: writer.bytes(),
            how,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;

    use super::*;
    use crate::witness::container::tests::{Served, frame, serve};

    /// The bytes of a copy between two marks.
    fn between(copy: &Path, from: &LogMark, to: &LogMark) -> String {
        let bytes = std::fs::read(copy).unwrap();
        String::from_utf8(bytes[from.offset as usize..to.offset as usize].to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_window_of_a_file_holds_exactly_what_was_written_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let (log, copy) = (dir.path().join("seat.log"), dir.path().join("b1.log"));
        std::fs::write(&log, "boot\n").unwrap();
        let source = LogSource::File { path: log.clone() };
        let mut follower = LogFollower::start(source, copy.clone(), Start::Beginning)
            .await
            .unwrap();
        let opened = follower.mark().await;
        let mut file = std::fs::OpenOptions::new().append(true).open(&log).unwrap();
        file.write_all(b"F3 LNA2 ACTIVE\n").unwrap();
        let closed = follower.mark().await;
        file.write_all(b"after\n").unwrap();
        assert_eq!(between(&copy, &opened, &closed), "F3 LNA2 ACTIVE\n");
        assert_eq!((opened.offset, closed.incidents), (5, vec![]));
        let summary = follower.stop().await;
        assert_eq!((summary.bytes, summary.start), (26, LogStart::Beginning));
        assert_eq!(opened.pin, summary.pin);
    }

    #[tokio::test]
    async fn both_outputs_of_a_command_are_followed_and_its_end_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("b1.log");
        let text = "echo one; echo two >&2; exit 3";
        let source = LogSource::Command {
            command: ["sh", "-c", text].map(str::to_owned).to_vec(),
        };
        let mut follower = LogFollower::start(source, copy.clone(), Start::Beginning)
            .await
            .unwrap();
        let mark = until(&mut follower, |mark| !mark.incidents.is_empty()).await;
        assert!(
            matches!(&mark.incidents[..], [LogIncident::Ended { at: 8, how }] if how.contains('3')),
            "{mark:?}"
        );
        assert!(matches!(mark.pin, LogPin::Command { .. }));
        assert_eq!(std::fs::read_to_string(&copy).unwrap(), "one\ntwo\n");
        assert_eq!(follower.stop().await.incidents.len(), 1);
    }

    #[tokio::test]
    async fn a_command_and_its_children_end_with_the_follower() {
        let dir = tempfile::tempdir().unwrap();
        let source = LogSource::Command {
            command: ["sh", "-c", "sleep 600 & echo $!; wait"]
                .map(str::to_owned)
                .to_vec(),
        };
        let copy = dir.path().join("b1.log");
        let mut follower = LogFollower::start(source, copy.clone(), Start::End)
            .await
            .unwrap();
        assert_eq!(follower.began(), LogStart::Late { skipped: None });
        until(&mut follower, |mark| mark.offset > 0).await;
        let child: i32 = std::fs::read_to_string(&copy)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        follower.stop().await;
        // The child is reaped by whoever adopted it; a zombie has no descriptors and does not run either.
        let state = |pid| procfs::process::Process::new(pid).and_then(|p| p.stat());
        for _ in 0..200 {
            match state(child) {
                Ok(stat) if stat.state != 'Z' => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                _ => return,
            }
        }
        panic!("the child still runs");
    }

    #[tokio::test]
    async fn a_command_that_is_not_there_is_an_absence() {
        let dir = tempfile::tempdir().unwrap();
        let source = LogSource::Command {
            command: vec!["no-such-program-anywhere".into()],
        };
        let absent = LogFollower::start(source, dir.path().join("b1.log"), Start::End)
            .await
            .unwrap_err();
        assert!(absent.why.contains("no-such-program-anywhere"), "{absent}");
    }

    #[tokio::test]
    async fn a_container_log_is_followed_and_a_restart_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let served = Served::default();
        let add = |stream, text: &str| served.frames.lock().unwrap().push(frame(stream, text));
        add(1, "boot\n");
        let socket = serve(dir.path(), served.clone());
        let copy = dir.path().join("b1.log");
        let source = LogSource::Docker {
            container: "dsv4".into(),
            sockets: vec![socket],
        };
        let mut follower = LogFollower::start(source, copy.clone(), Start::Beginning)
            .await
            .unwrap();
        let opened = until(&mut follower, |mark| mark.offset == 5).await;
        add(1, "one\n");
        add(2, "two\n");
        let closed = until(&mut follower, |mark| mark.offset == 13).await;
        assert_eq!(between(&copy, &opened, &closed), "one\ntwo\n");
        assert!(closed.incidents.is_empty());
        assert!(matches!(&closed.pin, LogPin::Container { id, .. } if id.starts_with("4b1d8c2e")));
        *served.started.lock().unwrap() = Some("2026-09-04T05:00:00Z".into());
        let marked = follower.mark().await;
        assert!(matches!(
            &marked.incidents[..],
            [LogIncident::Restarted { at: 13, .. }]
        ));
        *served.ended.lock().unwrap() = true;
        let marked = until(&mut follower, |mark| !mark.incidents.is_empty()).await;
        assert!(matches!(&marked.incidents[..], [LogIncident::Ended { .. }]));
    }

    /// Marks until one is as wanted; a busy machine may be late, so this waits up to a minute.
    async fn until(follower: &mut LogFollower, wanted: impl Fn(&LogMark) -> bool) -> LogMark {
        for _ in 0..300 {
            let mark = follower.mark().await;
            if wanted(&mark) {
                return mark;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no such mark came");
    }
}
