//! A server's log read by its dialect: records with rank, process, level and message.
//!
//! Logs lie in known ways (colours, progress bars, two writers in one line); each is taken out here, so that a pattern
//! sees the message and nothing else. Memory is bounded by the longest line, [`LINE_LIMIT`].

use std::borrow::Cow;
use std::io::{self, BufRead};

use regex::Regex;

use super::log_hint::hints;
pub use super::log_text::{LINE_LIMIT, LogAccount, excerpt};
use super::log_text::{clean, for_each_line};
use super::rank::RankTag;
use crate::dialect::Dialect;
pub use crate::dialect::Part;
use crate::spec::gate::Ranks;

/// One record of a log.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine<'a> {
    /// The rank that its prefix tells.
    pub rank: Option<RankTag>,
    /// Name of the process in its prefix (`Worker_TP0`, `EngineCore`).
    pub proc: Option<&'a str>,
    /// Process id in its prefix.
    pub pid: Option<u32>,
    /// Level, where the prefix tells it.
    pub level: Option<Level>,
    /// The message, without prefix.
    pub message: &'a str,
    /// The whole record with its prefix.
    pub record: &'a str,
    /// Byte offset of the physical line that holds it.
    pub offset: u64,
}

/// Severity of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Details.
    Debug,
    /// Normal.
    Info,
    /// Warning.
    Warning,
    /// Error.
    Error,
    /// Fatal.
    Critical,
}

/// Reads logs of one dialect; compile once, use often.
#[derive(Debug)]
pub struct LogReader {
    dialect: &'static Dialect,
    line: Regex,
    head: Option<Regex>,
    ranks: Vec<Regex>,
}

impl LogReader {
    /// Compiles a dialect's grammar.
    pub fn new(dialect: &'static Dialect) -> LogReader {
        // A test compiles every expression of every dialect, so none can fail here.
        let compile = |expression| Regex::new(expression).expect("dialect expressions are tested");
        let grammar = &dialect.log;
        LogReader {
            dialect,
            line: compile(grammar.line),
            head: (!grammar.head.is_empty()).then(|| compile(grammar.head)),
            ranks: grammar.rank.iter().copied().map(compile).collect(),
        }
    }

    /// The dialect that it reads.
    pub fn dialect(&self) -> &'static Dialect {
        self.dialect
    }

    /// Calls `each` with every record of the log.
    ///
    /// # Errors
    /// What the source says; a byte slice never fails.
    pub fn read<R: BufRead>(
        &self,
        source: R,
        mut each: impl FnMut(&LogLine<'_>),
    ) -> io::Result<LogAccount> {
        for_each_line(source, |offset, bytes| {
            self.records(offset, &clean(bytes), &mut each)
        })
    }

    /// Calls `each` with every record that one of `patterns` could match, and some more: lines that cannot hold a match
    /// are not even parsed. The caller matches again on what it is given.
    ///
    /// # Errors
    /// What the source says; a byte slice never fails.
    pub fn read_matching<R: BufRead>(
        &self,
        source: R,
        patterns: &[&str],
        mut each: impl FnMut(&LogLine<'_>),
    ) -> io::Result<LogAccount> {
        let Some(hints) = hints(patterns) else {
            return self.read(source, each);
        };
        for_each_line(source, |offset, bytes| {
            let line = clean(bytes);
            // JSON escapes its text: a hint might not see through it.
            let escaped = self.dialect.log.json.is_some() && line.starts_with('{');
            if escaped || hints.is_match(&line) {
                self.records(offset, &line, &mut each);
            }
        })
    }

    /// Global rank of a record, by its prefix; with a single rank also by the processes that stand for it.
    pub fn rank(&self, line: &LogLine<'_>, ranks: &Ranks) -> Option<u32> {
        if let Some(tag) = line.rank {
            return tag.index(ranks);
        }
        let stands = self
            .dialect
            .log
            .single_rank_procs
            .contains(&line.proc.unwrap_or(""));
        (ranks.total() == 1 && stands).then_some(0)
    }

    /// The first line that proves that the log is whole from its start; absent if there is none.
    pub fn banner(&self, log: &[u8]) -> Option<String> {
        self.first(log, self.dialect.log.first_lines, |found, line| {
            found
                .is_match(line.message)
                .then(|| excerpt(line.message, 300))
        })
    }

    /// The server's version, as its log tells it.
    pub fn version(&self, log: &[u8]) -> Option<String> {
        self.first(log, self.dialect.log.version, |found, line| {
            Some(
                found
                    .captures(line.message)?
                    .name("version")?
                    .as_str()
                    .to_owned(),
            )
        })
    }

    /// What `take` makes of the first record that gives it something.
    fn first(
        &self,
        log: &[u8],
        patterns: &[&str],
        take: impl Fn(&Regex, &LogLine<'_>) -> Option<String>,
    ) -> Option<String> {
        let expressions: Vec<Regex> = patterns.iter().filter_map(|p| Regex::new(p).ok()).collect();
        let mut found = None;
        // A byte slice does not fail to be read.
        let _ = self.read_matching(log, patterns, |line| {
            if found.is_none() {
                found = expressions.iter().find_map(|e| take(e, line));
            }
        });
        found
    }

    /// The record of a line that is a JSON object with a message.
    fn json(&self, offset: u64, line: &str, each: &mut impl FnMut(&LogLine<'_>)) -> bool {
        let (Some(keys), true) = (self.dialect.log.json, line.starts_with('{')) else {
            return false;
        };
        let Ok(serde_json::Value::Object(object)) = serde_json::from_str(line) else {
            return false;
        };
        let text = |key: &str| object.get(key).and_then(|v| v.as_str());
        // TGI puts the message one level down.
        let below = || object.get("fields")?.get(keys.message)?.as_str();
        let Some(message) = text(keys.message).or_else(below) else {
            return false;
        };
        let proc = text(keys.proc);
        each(&LogLine {
            rank: proc.and_then(|p| self.tag(p)),
            proc,
            pid: object
                .get(keys.pid)
                .and_then(|v| v.as_u64())
                .and_then(|p| u32::try_from(p).ok()),
            level: text(keys.level).and_then(Level::read),
            message,
            record: line,
            offset,
        });
        true
    }

    fn tag(&self, name: &str) -> Option<RankTag> {
        self.ranks.iter().find_map(|e| RankTag::read(e, name))
    }

    /// The records of one physical line: progress bars cut at their carriage returns, two writers parted.
    fn records(&self, offset: u64, line: &str, each: &mut impl FnMut(&LogLine<'_>)) {
        if self.json(offset, line, each) {
            return;
        }
        let mut segments = line.split('\r').filter(|s| !s.is_empty()).peekable();
        if segments.peek().is_none() {
            self.parts(offset, "", each);
        }
        while let Some(segment) = segments.next() {
            // A bar writes over itself: what it wrote before is gone. A record that a bar has overwritten is evidence.
            let overwritten = segments.peek().is_some();
            let has_head = || {
                self.head
                    .as_ref()
                    .is_some_and(|head| head.is_match(segment))
            };
            if !overwritten || has_head() {
                self.parts(offset, segment, each);
            }
        }
    }

    /// Parts a line at every record head after its first byte.
    fn parts(&self, offset: u64, line: &str, each: &mut impl FnMut(&LogLine<'_>)) {
        let mut from = 0;
        if let Some(head) = &self.head {
            for found in head.find_iter(line).filter(|m| m.start() > 0) {
                if let Some(part) = line.get(from..found.start()) {
                    each(&self.record(offset, part));
                }
                from = found.start();
            }
        }
        each(&self.record(offset, &line[from..]));
    }

    fn record<'a>(&self, offset: u64, record: &'a str) -> LogLine<'a> {
        let mut line = LogLine {
            rank: None,
            proc: None,
            pid: None,
            level: None,
            message: record,
            record,
            offset,
        };
        let Some(found) = self.line.captures(record) else {
            return line;
        };
        let group = |name| found.name(name).map(|m| m.as_str());
        line.proc = group("proc");
        line.pid = group("pid").and_then(|pid| pid.parse().ok());
        line.level = group("level").and_then(Level::read);
        line.message = group("msg").unwrap_or(record);
        let tags = group("tags").or(line.proc);
        line.rank = tags.and_then(|t| self.tag(t));
        line
    }
}

impl LogLine<'_> {
    /// What a pattern with this part is looked for in.
    pub fn part(&self, part: Part) -> &str {
        match part {
            Part::Message => self.message,
            Part::Record => self.record,
        }
    }

    /// How often a de-duplicating launcher says that it left this line out (`[repeated 7x across cluster]`, Ray).
    pub fn left_out(&self) -> Option<u64> {
        let at = self.message.rfind("[repeated ")?;
        let rest = &self.message[at + "[repeated ".len()..];
        rest[..rest.find('x')?].parse().ok()
    }
}

impl Level {
    fn read(text: &str) -> Option<Level> {
        let first = text.trim().bytes().next()?.to_ascii_uppercase();
        Some(match first {
            b'D' | b'T' | b'V' => Level::Debug,
            b'I' => Level::Info,
            b'W' => Level::Warning,
            b'E' => Level::Error,
            b'C' | b'F' => Level::Critical,
            _ => return None,
        })
    }
}

/// The text of a log line without terminal codes; for callers that look at single lines.
pub fn plain(line: &[u8]) -> Cow<'_, str> {
    clean(line)
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
